"""What a run reports of itself: ``Progress`` from the solver, ``Status`` at the end, ``TraceRow`` on the way (on a stream
``StreamRow``, from a pool ``ActiveRow``), ``Limits``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import nan
from typing import NamedTuple


class Progress(NamedTuple):
    """What a solver says after a call of ``advance``; all counts since the start.

    ``violation`` and ``gap``, relative to the primal objective, are the solver's own view; nan where it has none.
    ``kernel_evaluations`` are the kernel values the algorithm uses; a linear method counts one for each ⟨w, x⟩. ``said`` is all
    that a solver with words of its own (``pair``) has said.
    """

    steps: int
    kernel_evaluations: int
    violation: float = nan
    done: bool = False
    completed: bool = False  # a fixed budget is used up; nothing is claimed of the tolerance
    stalled: bool = False
    n_support: int = 0
    said: str = ""
    gap: float = nan

    @property
    def ended(self) -> bool:
        """Whether the solver has nothing left to do."""
        return self.done or self.completed or self.stalled


class Status(Enum):
    """How a run ended. CONVERGED: the stated tolerance is met, by freshly computed kernel values."""

    CONVERGED = "CONVERGED"
    COMPLETED = "COMPLETED"  # a fixed-budget method ran its course
    MAX_ITER = "MAX_ITER"
    MAX_EVALUATIONS = "MAX_EVALUATIONS"
    TIME_LIMIT = "TIME_LIMIT"
    EARLY_STOP = "EARLY_STOP"  # the held-out error went flat
    INTERRUPTED = "INTERRUPTED"  # by a signal, or as nobody answers any more
    STALLED = "STALLED"


class TraceRow(NamedTuple):
    """One line of a trace; nan where undefined. ``seconds`` leave out compiling and recording."""

    seconds: float
    steps: int
    kernel_evaluations: int
    primal: float
    dual: float
    violation: float
    holdout_error: float
    n_support: int


class StreamRow(NamedTuple):
    """One line of a stream's trace. Errors are those of predictions made before the example was learned, in the first pass over
    all rows so far and over the last ``window``, ten thousand at most; ``rows_per_s`` is since the row before, ``memory_mb``
    what the process has at this time.
    """

    seconds: float
    rows: int
    error: float
    window_error: float
    window: int
    rows_per_s: float
    kernel_evaluations: int
    n_support: int
    memory_mb: float


class ActiveRow(NamedTuple):
    """One line of an active learner's trace: ``labels`` of the pool known so far; nan where nothing is held out."""

    seconds: float
    labels: int
    holdout_error: float
    kernel_evaluations: int
    n_support: int


@dataclass(frozen=True)
class Limits:
    """When to stop before the tolerance is met; None: never.

    ``max_evaluations`` kernel evaluations are passed by some 2 %, or one step: of smo that may be a block, of wolfe 2048
    columns of K, of scs a sample, of newton what it begins with. ``patience``: so many held-out points in a row bring no lower
    error (``solvers.base.run`` says where the points lie).
    """

    max_iter: int | None = None
    time_limit_s: float | None = None
    max_evaluations: int | None = None
    patience: int | None = None
