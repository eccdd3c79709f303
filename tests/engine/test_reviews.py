"""When a run counts as stalled."""

from __future__ import annotations

from svmkit.engine.reviews import _HURRIED_STEPS, Checks, Reviews

EVERY = 5_000_000


def looks(n: int, falls: list[float], every: int = EVERY) -> list[bool]:
    """What is said at looks after which the violation has fallen to these shares of itself, and just before each."""
    reviews, violation, steps, said = Reviews(n), 100.0, EVERY, []
    for share in falls:
        violation *= share
        assert not reviews.review(steps - 1, 0.0)
        said.append(reviews.review(steps, violation))
        steps += every
    return said


def test_four_looks_without_a_fall_are_a_stall() -> None:
    assert looks(10, [1.0] * 5) == [False] * 4 + [True]
    assert looks(10, [1.0, 1.0, 1.0, 1.0, 0.8, 1.0, 1.0, 1.0, 1.0]) == [False] * 8 + [True]


def test_slow_falls_add_up() -> None:
    assert not any(looks(10, [0.94] * 40))
    assert looks(10, [0.99] * 5) == [False] * 4 + [True]


def test_of_many_variables_looks_are_further_apart() -> None:
    assert looks(1_000_000, [1.0] * 5, every=50_000_000) == [False] * 4 + [True]


def test_in_a_hurry_looks_come_soon_and_the_first_without_a_fall_is_the_last() -> None:
    for least, said in ((50.0, True), (40.0, False)):
        reviews = Reviews(10)
        assert not reviews.review(EVERY, 100.0)
        reviews.hurry(EVERY + 7, 50.0)
        assert not reviews.review(EVERY + 7 + _HURRIED_STEPS - 1, 50.0)
        assert reviews.review(EVERY + 7 + _HURRIED_STEPS, least) is said
    assert [reviews.review(EVERY + 7 + k * _HURRIED_STEPS, least) for k, least in ((2, 32.0), (3, 30.0))] == [False, True]


def test_where_nothing_is_known_of_violations_the_next_look_is_the_first() -> None:
    reviews = Reviews(10)
    assert not any(reviews.review(k * EVERY, 1.0) for k in range(1, 5))
    reviews.begin_again()
    assert [reviews.review(k * EVERY, 90.0) for k in range(5, 10)] == [False] * 4 + [True]


def test_checks_may_fail_to_halve_the_violation_a_few_times() -> None:
    checks = Checks()
    assert [checks.fail(v) for v in (8.0, 3.0, 2.0, 0.9, 0.8, 0.4, 0.3)] == [False] * 6 + [True]
    assert checks.least == 0.3


def test_looks_are_apart_by_where_the_last_one_was() -> None:
    """Which a long block of steps may have put off."""
    reviews = Reviews(10)
    assert [reviews.review(steps, 1.0) for steps in (8 * EVERY, 9 * EVERY - 1, 9 * EVERY, 10 * EVERY, 11 * EVERY)] == [
        False
    ] * 5
    assert reviews.review(12 * EVERY, 1.0)


def test_a_check_is_measured_by_the_least_violation_of_all_before() -> None:
    checks = Checks()
    assert [checks.fail(v) for v in (8.0, 1.0, 7.0, 3.0, 0.9)] == [False, False, False, False, True]
    assert checks.least == 0.9
