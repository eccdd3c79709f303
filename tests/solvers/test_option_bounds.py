"""The ends of what ``-O`` takes, on a stream too: the last value that a solver begins with, and the first refused by name."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nextafter

import pytest
from zoo import named

from svmkit import solvers
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, RBF, Kernel, Stream

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
    ("lasvm", RBF, "delta_max", (LEAST, inf), (0.0,)),
    ("lasvm", RBF, "budget", (0, 2), (-1, 1)),
    ("pegasos", LINEAR, "epochs", (LEAST, 1e9), (0.0, nextafter(1e9, inf))),
    ("pegasos", LINEAR, "batch", (1, 1_000_000), (0, 1_000_001)),
    ("pegasos", RBF, "batch", (1, 1024), (0, 1025)),
    ("pegasos", LINEAR, "bias", (LEAST, 1e15), (0.0, nextafter(1e15, inf))),
    ("perceptron", RBF, "epochs", (1,), (0,)),
    ("perceptron", RBF, "beta", (-1e300, 1e300), (-inf, inf)),
    ("perceptron", RBF, "budget", (0, 1), (-1,)),
    ("sbp", RBF, "epochs", (1,), (0,)),
    ("sbp", RBF, "batch", (1, 1024), (0, 1025)),
    ("sbp", RBF, "nu_slack", (0.0, 1e-100, 1e300), (-LEAST, LEAST, nextafter(1e-100, 0.0), inf)),
    ("scs", RBF, "iterations", (1,), (0,)),
    ("scs", RBF, "first", (1,), (0,)),
    ("scs", RBF, "sample", (1,), (0,)),
    *(("scs", RBF, key, (0.0, 1e9), (-LEAST, nextafter(1e9, inf))) for key in ("growth", "validation", "eta1", "eta2")),
    *(("scs", RBF, key, (0.0, 1e9), (-LEAST, nextafter(1e9, inf))) for key in ("delta", "least")),
    ("scs", RBF, "factor", (nextafter(1.0, 2.0), 1e9), (1.0, nextafter(1e9, inf))),
    ("sdca", RBF, "epochs", (LEAST, inf), (0.0,)),
    ("smo", RBF, "working_set", (0, 4), (3, -1)),
    ("wolfe", RBF, "iterations", (1,), (0,)),
    ("wolfe", RBF, "bundle", (2,), (1,)),
]


@pytest.mark.parametrize(("name", "kind", "key", "taken", "refused"), ENDS, ids=[f"{e[0]} {e[2]} {e[1]}" for e in ENDS])
def test_ends(name: str, kind: int, key: str, taken: tuple[float, ...], refused: tuple[float, ...]) -> None:
    solver = solvers.solver(name)
    case = replace(named("linear" if kind == LINEAR else "rbf"), bias=solver.BIASES[0])
    for value in taken:
        solver.start(case, solver.Options(**{key: value}), 1e-3, 0)
    for value in refused:
        with pytest.raises(UsageError, match=f"-O {key}="):
            solver.start(case, solver.Options(**{key: value}), 1e-3, 0)
        if hasattr(solver, "start_stream") and (name, kind) != ("pegasos", RBF):  # which takes no stream of a kernel
            stream = Stream(Kernel(kind, 1.0), 1.0, 0.1, case.bias)
            with pytest.raises(UsageError, match=f"-O {key}="):
                solver.start_stream(stream, solver.Options(**{key: value}), 1e-3, 0)
