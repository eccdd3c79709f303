"""What the table, the curves and the picture of a comparison are made of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from shell import rows_of

from svmkit.cli import pictures
from svmkit.cli.comparison import Optimum, Run, curve, groups, optima, table
from svmkit.cli.comparison_picture import picture
from svmkit.trace import TraceRow


def made(
    solver: str, bias: str, primal: float, dual: float, rows: list[tuple[float, float, float]], seed: int = 0, **more: Any
) -> Run:
    """A run that ends at (primal, dual) and whose trace has (seconds, primal, held-out error)."""
    trace = tuple(TraceRow(s, 0, int(1000 * s), value, 0.0, 0.0, error, 1) for s, value, error in rows)
    gap = primal - dual if more.pop("definite", True) else float("nan")
    certificate = SimpleNamespace(primal=primal, dual=dual, gap=gap)
    status = SimpleNamespace(value=more.pop("status", "COMPLETED"))
    evaluations, support = more.pop("evaluations", 7), SimpleNamespace(n_support=more.pop("n_support", 3))
    counts = {"seconds": rows[-1][0], "kernel_evaluations": evaluations, "solution": support}
    return Run(solver, seed, bias, SimpleNamespace(certificate=certificate, status=status, trace=trace, **counts), **more)


ROWS = [(1.0, 20.0, 0.5), (2.0, 12.0, 0.25)]


def test_an_optimum_is_the_largest_dual_of_its_form() -> None:
    runs = [made("a", "free", 12, 9, ROWS), made("b", "free", 11, 10, ROWS), made("c", "none", 30, 8, ROWS)]
    runs.append(made("d", "none", 25, 20, ROWS, reference=True))
    assert optima(runs) == {"free": Optimum(10, "b"), "none": Optimum(20, "d")}
    assert [line["above optimum"] for line in rows_of(table(runs))] == ["2.00e-01", "1.00e-01", "5.00e-01", "2.50e-01"]
    assert rows_of(table([made("a", "free", 12, 0, ROWS)]))[0]["above optimum"] == "–"  # as where time was up at once


def test_a_kernel_that_is_not_definite_has_no_optimum() -> None:
    runs = [made("a", "free", 12, 9, ROWS), made("b", "free", 11, 10, ROWS, definite=False), made("c", "free", 12, 9, ROWS)]
    assert {line["above optimum"] for line in rows_of(table(runs))} == {"–"}


def test_seeds_that_ended_differently_are_counted() -> None:
    runs = [made("a", "free", 12, 9, ROWS, seed, status=status) for seed, status in enumerate(["COMPLETED", "STALLED"] * 2)]
    assert rows_of(table(runs))[0]["status"] == "2 COMPLETED, 2 STALLED"


def test_a_line_of_the_table_has_the_median_of_each_figure() -> None:
    seeds = [(4.0, 5, 12, 8, 3), (1.0, 7, 30, 9, 8), (2.0, 90, 11, 10, 5)]
    runs = [
        made("a", "free", primal, dual, [(seconds, primal, 0.5)], seed, evaluations=evaluations, n_support=n_support)
        for seed, (seconds, evaluations, primal, dual, n_support) in enumerate(seeds)
    ]
    (line,) = rows_of(table(runs))
    names = ("seconds", "kernel evaluations", "primal", "above optimum", "gap", "support vectors")
    assert [line[name] for name in names] == ["2", "7", "12", "2.00e-01", "4", "5"]


def test_a_curve_is_the_median_of_runs_that_keep_their_last_value() -> None:
    runs = [
        made("a", "free", 12, 10, [(1.0, 20.0, 0.5), (3.0, 16.0, 0.4)]),
        made("a", "free", 12, 10, [(2.0, 30.0, 0.3), (4.0, 14.0, 0.1)], 1),
        made("a", "free", 12, 10, [(0.0, 99.0, 0.9), (2.5, 12.0, 0.2), (5.0, 11.0, float("nan"))], 2),
    ]
    (group,) = groups(runs)
    found = curve(group, "seconds", "above", Optimum(10, "a"))
    assert found.x.tolist() == [2.5, 3.0, 4.0, 5.0]
    np.testing.assert_allclose(found.low, [0.2, 0.2, 0.2, 0.1])
    np.testing.assert_allclose(found.middle, [1.0, 0.6, 0.4, 0.4])
    np.testing.assert_allclose(found.high, [2.0, 2.0, 0.6, 0.6])
    found = curve(group, "kernel_evaluations", "holdout_error", Optimum(10, "a"))
    assert found.x.tolist() == [2500, 3000, 4000]
    np.testing.assert_allclose(found.middle, [0.3, 0.3, 0.2])
    assert len(curve(group, "seconds", "above", Optimum(float("nan"), "a")).x) == 0


def test_a_picture_of_nothing_known_is_a_picture() -> None:
    rows = [(1.0, 20.0, float("nan"))]
    runs = [made("a", "free", 12, 10, rows, definite=False), made("b", "none", 12, 10, rows, definite=False)]
    assert picture(runs)[:4] == b"\x89PNG"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("primals", [(10.0, 10.0), (1e300, 10.0 + 1e-9)])
def test_pictures_of_runs_at_the_optimum_or_endlessly_far_from_it_are_pictures(primals: tuple[float, float]) -> None:
    """A logarithmic axis has neither a 0 nor room beyond the largest double."""
    rows = [(seconds, primal, 0.5) for seconds, primal in enumerate(primals, start=1)]
    runs = [made("a", "free", 10, 10, rows, seed) for seed in range(2)]
    assert picture(runs)[:4] == b"\x89PNG"


def test_no_two_of_eight_solvers_look_alike_in_grey() -> None:
    styles = list(zip(pictures._LINES, pictures._MARKERS, strict=False))
    assert len(set(pictures._LINES)) == len(pictures._LINES) == len(styles) == len({marker for _, marker in styles}) == 8
