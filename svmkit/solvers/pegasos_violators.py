"""Pegasos with a kernel where each step draws from the examples that violate the margin (pegasos.py has the problem).

The subgradient of all examples is a sum over the violators: one of them, drawn by its weight and multiplied by the weight of
all, stands for it as well as an example drawn from all, most of which say nothing where few violate. So every step learns, and
from a gradient of far less variance. All responses are kept, and rows, as by sbp, which draws likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmkit.data import Floats, Ints
from svmkit.engine import linear
from svmkit.engine import subgradient as places
from svmkit.engine import violators as loops
from svmkit.engine.kept_rows import KeptRows
from svmkit.engine.kernels import Engine
from svmkit.problem import Problem, Solution, as_expansion

#: Steps foretold for each row that is evaluated, rows evaluated for each used of those before, and steps between looks at the
#: certificate.
_FORESIGHT, _HOPED_FOR, _STRETCH = 4, 4, 512
#: Kernel values that take as long as one of a kept row that is added.
_ADDED = 0.2


@dataclass
class State:
    """w = scale·Σ beta_i φ(x_i); ``f`` its responses over scale; ``used_before``: rows used when some were last evaluated; for
    the rest see violators.py."""

    problem: Problem
    seed: int
    flags: places.Flags
    constant: float
    omega: Floats
    heaviest: float
    rows: KeptRows
    f: Floats
    beta: Floats
    late: Floats
    sums: Floats
    counts: Ints
    drawn: Ints
    used_before: int = 0


def start(
    problem: Problem, omega: Floats, flags: places.Flags, batch: int, constant: float, cache_mb: float, seed: int
) -> State:
    """w = 0; ``constant`` is the feature that stands for a bias."""
    n, engine = problem.n, Engine(problem.rows, problem.kernel)
    diagonal = engine.diagonal()
    counts = np.zeros(loops.N_COUNTS, np.int64)
    counts[places.T] = 1
    omega = np.where(diagonal + constant**2 == 0, 0.0, omega)
    return State(
        problem=problem,
        seed=seed,
        flags=flags,
        constant=constant,
        omega=omega,
        heaviest=float(omega.max(initial=0.0)),
        rows=KeptRows(engine, diagonal, cache_mb, batch),
        f=np.zeros(n),
        beta=np.zeros(n),
        late=np.zeros(n if flags.average != places.NO_AVERAGE else 0),
        sums=np.array([1.0, 0.0, 0.0, 0.0]),
        counts=counts,
        drawn=np.zeros(batch, np.int64),
    )


def run(state: State, first: int, end: int, total: int) -> tuple[int, bool]:
    """Steps from ``first`` up to ``end``, but no further than a stretch goes; the next step, and whether one has ended."""
    stop = min(end, total, (first // _STRETCH + 1) * _STRETCH)
    step = first
    while step < stop:
        taken = loops.take_steps[state.rows.real](
            *(state.rows.K, state.rows.slot_of, state.rows.unused, state.problem.y, state.omega, state.heaviest),
            *(state.f, state.beta, state.late, state.sums, state.counts, state.drawn),
            *(state.constant**2, state.seed, *state.flags, stop - step),
        )
        step += taken
        if step < stop:
            _load_rows(state, total - step)
    return stop, stop == total or stop % _STRETCH == 0


def solution(state: State) -> Solution:
    """The average of the iterates, or the last one where none is kept."""
    sums = state.sums
    beta = linear.iterate(state.beta, state.late, *sums[[places.SCALE, places.SCALE_SUM, places.WEIGHTS]])
    return as_expansion(beta, -float(beta.sum()) * state.constant**2)


def n_support(state: State) -> int:
    """Coefficients of w other than 0."""
    return int(np.count_nonzero(state.beta))


def evaluations(state: State) -> int:
    """Kernel values of the rows that steps have used, one that went and came again counted again."""
    return int(state.counts[loops.ROWS]) * state.problem.n


def work(state: State) -> float:
    """What has been done, in kernel values evaluated: rows that are kept cost next to none, but must be added up."""
    return evaluations(state) + _ADDED * int(state.counts[places.HITS]) * state.problem.n


def _load_rows(state: State, left: int) -> None:
    """Evaluates the rows that the next of ``left`` steps will want; only some, where few of the last ones have been used."""
    rows, used = state.rows, int(state.counts[loops.ROWS])
    rows.make_room()
    found = np.empty(min(rows.together, max(len(state.drawn), _HOPED_FOR * (used - state.used_before))), np.int64)
    state.used_before = used
    count = loops.foresee(
        *(state.f, state.problem.y, state.omega, state.heaviest, state.sums, state.counts, rows.slot_of),
        *(state.seed, len(state.drawn), min(_FORESIGHT * len(found), left), found),
    )
    rows.fill(found[:count])
