"""The solvers by name; a new one is a file in this folder and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from svmkit.errors import UsageError

if TYPE_CHECKING:
    from svmkit.solvers.base import Solver

NAMES = ("smo", "pair", "lasvm", "pegasos", "perceptron", "sdca", "sbp", "scs", "wolfe", "asset", "newton")
#: Those whose linear form works on w alone, and so takes mapped data.
LINEAR_FORM = ("sdca", "newton", "asset", "pegasos")


def solver(name: str) -> Solver:
    """The solver module called ``name``; UsageError with the names there are otherwise."""
    if name not in NAMES:
        raise UsageError(f"no solver is called {name!r}; there are {', '.join(NAMES)}")
    return cast("Solver", import_module(f"svmkit.solvers.{name}"))


def solver_with(function: str, name: str, why: str) -> Solver:
    """The solver module called ``name`` if it offers ``function``; else UsageError with ``why`` and those that do."""
    module = solver(name)
    if hasattr(module, function):
        return module
    raise UsageError(f"--solver {name}: {why}: {', '.join(other for other in NAMES if hasattr(solver(other), function))}")
