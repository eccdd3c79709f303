"""What ``-O`` takes, on a stream too: the last values that a solver begins with, and the first that it refuses by name."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan, nextafter
from typing import Any

import pytest
from zoo import named

from svmkit import solvers
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, RBF, Kernel, Problem, Stream
from svmkit.solvers.base import options_of

LEAST = 5e-324  # above 0

#: Solver, kernel, option; ends that are taken, values that are not.
ENDS = [
    ("asset", LINEAR, "epochs", (LEAST, 1e9), (0.0, nextafter(1e9, inf))),
    ("asset", LINEAR, "step", (LEAST, 1e300), (0.0, inf)),
    ("asset", LINEAR, "burn_in", (0.0, nextafter(1.0, 0.0)), (-LEAST, 1.0)),
    ("asset", LINEAR, "bound", (0.0, 1e150), (-LEAST, nextafter(1e150, inf))),
    ("asset", LINEAR, "draws", (1, 1_000_000), (0, 1_000_001)),
    ("lasvm", RBF, "epochs", (1,), (0,)),
    ("lasvm", RBF, "candidates", (1,), (0,)),
    ("lasvm", RBF, "delta_max", (LEAST, inf), (0.0, nan)),
    ("lasvm", RBF, "keep_within", (0.0, inf), (-LEAST, nan)),
    ("lasvm", RBF, "budget", (0, 2), (-1, 1)),
    ("pegasos", LINEAR, "epochs", (LEAST, 1e9), (0.0, nextafter(1e9, inf))),
    ("pegasos", LINEAR, "batch", (1, 1_000_000), (0, 1_000_001)),
    ("pegasos", RBF, "batch", (1, 1024), (0, 1025)),
    ("pegasos", LINEAR, "bias", (LEAST, 1e15), (0.0, nextafter(1e15, inf))),
    ("perceptron", RBF, "epochs", (1,), (0,)),
    ("perceptron", RBF, "beta", (-1e300, 1e300), (-inf, inf, nan)),
    ("perceptron", RBF, "budget", (0, 1), (-1,)),
    ("sbp", RBF, "epochs", (1,), (0,)),
    ("sbp", RBF, "batch", (1, 1024), (0, 1025)),
    ("sbp", RBF, "nu_slack", (0.0, 1e-100, 1e100), (-LEAST, LEAST, nextafter(1e-100, 0.0), 1.1e100, inf, nan)),
    ("scs", RBF, "iterations", (1,), (0,)),
    ("scs", RBF, "first", (1,), (0,)),
    ("scs", RBF, "sample", (1,), (0,)),
    *(("scs", RBF, key, (0.0, 1e9), (-LEAST, nextafter(1e9, inf))) for key in ("growth", "validation", "eta1", "eta2")),
    *(("scs", RBF, key, (0.0, 1e9), (-LEAST, nextafter(1e9, inf))) for key in ("delta", "least")),
    ("scs", RBF, "factor", (nextafter(1.0, 2.0), 1e9), (1.0, nextafter(1e9, inf))),
    ("sdca", RBF, "epochs", (LEAST, inf), (0.0, nan)),
    ("smo", RBF, "working_set", (0, 4, 4096), (3, -1, 4097)),
    ("wolfe", RBF, "iterations", (1,), (0,)),
    ("wolfe", RBF, "bundle", (2,), (1,)),
]

#: Solver, kernel, options that cannot be, and what is said of them.
SAID = [
    ("lasvm", RBF, {"selection": "best"}, "selection=best.*autoactive"),
    ("lasvm", RBF, {"budget": 1}, "budget=1: must be 0 .* at least 2"),
    ("pegasos", LINEAR, {"epochs": 1e300}, r"epochs=1e\+300: .* at most 1e\+09"),
    ("pegasos", LINEAR, {"batch": 2**62}, "batch=4611686018427387904: .*1 … 1,000,000"),
    ("pegasos", RBF, {"batch": 1025}, "batch=1025: .*at most 1024"),
    ("pegasos", RBF, {"average": "mean"}, "average=mean"),
    ("pegasos", RBF, {"responses": "some"}, "responses=some"),
    ("pegasos", LINEAR, {"responses": "some"}, "responses=some: must be one of all, demand"),
    ("pegasos", LINEAR, {"responses": "demand"}, "responses=demand: of linear f .* w itself is kept"),
    ("scs", RBF, {"iterations": 0}, "iterations=0: must be at least 1"),
    ("scs", RBF, {"growth": -0.5}, r"growth=-0.5: must lie in 0 … 1e\+09"),
    ("scs", RBF, {"factor": 0.0}, "factor=0: must be greater than 1"),
    ("scs", RBF, {"m1": 0.0}, "m1=0, m2=0.02: must be 0 < m2 < m1 < 0.5"),
    ("scs", RBF, {"m2": 0.0}, "m1=0.1, m2=0"),
    ("smo", RBF, {"working_set": 3}, "working_set=3: must be 0, or lie in 4 … 4096"),
    ("wolfe", RBF, {"iterations": 0}, "iterations=0: must be at least 1"),
    ("wolfe", RBF, {"bundle": 0}, "bundle=0: must be at least 2"),
    ("wolfe", RBF, {"m1": 0.0}, "m1=0, m2=0.02: must be 0 < m2 < m1 < 0.5"),
    ("wolfe", RBF, {"m2": 0.0}, "m1=0.1, m2=0"),
]


def case_of(name: str, kind: int) -> Problem:
    return replace(named("linear" if kind == LINEAR else "rbf"), bias=solvers.solver(name).BIASES[0])


def assert_refused(name: str, kind: int, given: dict[str, Any], said: str) -> None:
    solver, case = solvers.solver(name), case_of(name, kind)
    with pytest.raises(UsageError, match=f"-O .*{said}"):
        solver.start(case, solver.Options(**given), 1e-3, 0)
    if hasattr(solver, "start_stream") and (name, kind) != ("pegasos", RBF):  # which takes no stream of a kernel
        stream = Stream(Kernel(kind, 1.0), 1.0, 0.1, case.bias)
        with pytest.raises(UsageError, match=f"-O .*{said}"):
            solver.start_stream(stream, solver.Options(**given), 1e-3, 0)


@pytest.mark.parametrize(("name", "kind", "key", "taken", "refused"), ENDS, ids=[f"{e[0]} {e[2]} {e[1]}" for e in ENDS])
def test_ends(name: str, kind: int, key: str, taken: tuple[float, ...], refused: tuple[float, ...]) -> None:
    solver = solvers.solver(name)
    for value in taken:
        solver.start(case_of(name, kind), solver.Options(**{key: value}), 1e-3, 0)
    for value in refused:
        assert_refused(name, kind, {key: value}, f"{key}=")


@pytest.mark.parametrize(("name", "kind", "given", "said"), SAID, ids=str)
def test_the_bounds_are_said(name: str, kind: int, given: dict[str, Any], said: str) -> None:
    assert_refused(name, kind, given, said)


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63))])
def test_whole_numbers_that_64_bits_cannot_count_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"-O epochs={text}: must be below 2\\^63"):
        options_of(solvers.solver("lasvm"), (("epochs", text),))
    assert options_of(solvers.solver("lasvm"), (("epochs", str(2**63 - 1)),)).epochs == 2**63 - 1


def test_kernel_values_are_kept_in_an_exabyte_at_most() -> None:
    assert options_of(solvers.solver("lasvm"), (("cache_mb", "1e12"),)).cache_mb == 1e12
    for text in ("1.001e12", "0", "inf"):
        with pytest.raises(UsageError, match="must be greater than 0 and at most 1e12"):
            options_of(solvers.solver("lasvm"), (("cache_mb", text),))
