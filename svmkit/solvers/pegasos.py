"""Pegasos: stochastic subgradient steps on the primal, for any kernel and, on w itself, for linear f.

Solves    min  (λ/2)‖w‖² + (1/n) Σ ω_i max(0, 1 − y_i ⟨w, φ(x_i)⟩),    λ = 1/(n·mean C), ω_i = C_i / mean C
          which is the C-form divided by n·mean C
Bias      none; or free, as a constant feature B: its weight counts in ‖w‖², so steps go to an optimum near that of the free
          bias, the nearer the larger B; what is reported is measured against the free one
Steps     t = 1, 2, …: k examples drawn with replacement, A those of them with a margin below 1; w ← (1 − 1/t)w +
          (1/(λtk)) Σ_A ω_i y_i φ(x_i), which from w = 0 is 1/(λt) times a sum of one term for each violation
Stops     after the stated number of epochs (n examples drawn), or when a look at the certificate shows gap ≤ eps·primal;
          looks come when the work since the last one is ten times what one costs
Memory    kernel: packed rows, a q × q block, some vectors of length n; linear: w, some vectors of length n
Paper     Shalev-Shwartz, Singer, Srebro & Cotter, Mathematical Programming 127 (2011), figures 1–3

With a kernel, the response of a drawn example comes from all n responses kept up to date (n kernel values for each violation)
or from a sum over the support vectors so far (that many for each example drawn). Draws are known ahead, so q of them are taken
together: one block of their kernel values, the steps one after another inside it, then one fused product for what they
changed. The result is that of taking them singly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.certificate import certify
from svmkit.data import Floats, Ints, Rows, dense_rows
from svmkit.engine import rng
from svmkit.engine import subgradient as loops
from svmkit.engine.kernels import Engine, diagonal
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, Bias, Problem, Solution, Stream
from svmkit.solvers import pegasos_stream as stream_steps
from svmkit.trace import Progress

SUMMARY = "Pegasos: stochastic subgradient steps, kernel or linear; no bias, or one as a feature"
PAPER = "Shalev-Shwartz, Singer, Srebro & Cotter, Math. Programming 127 (2011) 3–30"
EXACT = False
ACCURACY: float | None = 0.3
BIASES: tuple[Bias, ...] = ("none", "free")

_AVERAGES = {"none": loops.NO_AVERAGE, "uniform": loops.UNIFORM, "step": loops.BY_STEP}
_RESPONSES = ("all", "demand")
#: Examples to a block: enough for a product with a hundred columns, and few against the n values of each column.
_BLOCK = 512
#: A kernel block must hold a whole step.
_LARGEST_BATCH = 1024
#: A look at the certificate may cost this share of the work since the last one.
_LOOK_SHARE = 0.1
#: The stream of random numbers that examples are drawn by.
_DRAWS = 0


@dataclass(frozen=True)
class Options:
    """Fields as their help says."""

    epochs: float = field(default=30.0, metadata={"help": "times n examples are drawn, at most"})
    batch: int = field(default=1, metadata={"help": "examples drawn for a step"})
    average: str = field(
        default="step", metadata={"help": "which iterates make the result: none (the last), uniform, step (weight t)"}
    )
    projection: bool = field(default=True, metadata={"help": "keep w in the ball of radius 1/√λ, where the optimum lies"})
    hold_step: bool = field(default=False, metadata={"help": "t grows only after steps with a margin below 1"})
    bias: float = field(default=1.0, metadata={"help": "the constant feature that stands for a bias, with --bias free"})
    responses: str = field(default="all", metadata={"help": "all: kept for every example; demand: summed over support vectors"})


def supports(problem: Problem) -> str | None:
    """Takes every problem."""
    return None


@dataclass
class _Steps:
    """What both forms keep: the problem in λ-form, the feature ``constant`` that stands for a bias, and how far the run is."""

    problem: Problem
    options: Options
    eps: float
    seed: int
    lam: float
    omega: Floats
    constant: float
    total: int
    sums: Floats
    counts: Ints
    done_steps: int = 0
    looked_at: float = 0.0
    done: bool = False

    @property
    def flags(self) -> tuple[float, int, int, int]:
        """What the loops want to know."""
        return self.lam, _AVERAGES[self.options.average], int(self.options.projection), int(self.options.hold_step)


@dataclass
class _Block:
    """Steps ``first`` … ``last`` − 1 of which ``at`` is next: their distinct rows, the place among these of each drawn example,
    and for the rest see subgradient.py.
    """

    rows: Ints
    place: Ints
    K: NDArray[Any]
    y: Floats
    omega: Floats
    c: Floats
    change: Floats
    summed: Floats
    held: Ints
    first: int
    last: int
    at: int


@dataclass
class _Kernel:
    """w = Σ beta_i φ(x_i) at the block's begin, ``responses`` ⟨w, φ(x_i)⟩; ``beta_sum``: the weighted sum of all iterates."""

    steps: _Steps
    engine: Engine
    beta: Floats
    beta_sum: Floats
    responses: Floats | None
    omega: Floats
    hits: Ints
    block: _Block | None = None


@dataclass
class _Linear:
    """w = scale·v = scale·Σ a_i y_i x_i over the features ``names`` and the constant one; averages as in subgradient.py."""

    steps: _Steps
    rows: Rows
    names: NDArray[np.int32]
    square: Floats
    v: Floats
    a: Floats
    late_v: Floats
    late_a: Floats
    hits: Ints


_State = _Kernel | _Linear


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state at w = 0. Raises UsageError for an option that cannot be."""
    linear = problem.kernel.kind == LINEAR
    _check(options, linear)
    mean = float(problem.upper.mean())
    steps = _Steps(
        problem=problem,
        options=options,
        eps=eps,
        seed=seed,
        lam=1.0 / (problem.n * mean),
        omega=problem.upper / mean,
        constant=options.bias if problem.bias == "free" else 0.0,
        total=max(1, ceil(options.epochs * problem.n / options.batch)),
        sums=np.array([1.0, 0.0, 0.0, 0.0]),
        counts=np.array([1, 0, 0, 0]),
    )
    return _start_linear(steps) if linear else _start_kernel(steps)


def _check(options: Options, linear: bool) -> None:
    if not (options.epochs > 0 and isfinite(options.epochs)):
        raise UsageError(f"-O epochs={options.epochs:g}: must be greater than 0")
    if options.batch < 1:
        raise UsageError(f"-O batch={options.batch}: must be at least 1")
    if not (options.bias > 0 and isfinite(options.bias)):
        raise UsageError(f"-O bias={options.bias:g}: must be greater than 0")
    if not linear and options.batch > _LARGEST_BATCH:
        raise UsageError(f"-O batch={options.batch}: at most {_LARGEST_BATCH} with a kernel other than linear")
    for key, value, known in (("average", options.average, _AVERAGES), ("responses", options.responses, _RESPONSES)):
        if value not in known:
            raise UsageError(f"-O {key}={value}: must be one of {', '.join(known)}")


def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more steps of ``batch`` examples."""
    steps = state.steps
    end = min(steps.total, steps.done_steps + budget)
    while steps.done_steps < end and not steps.done:
        if isinstance(state, _Linear):
            _run_linear(state, end)
        else:
            _run_kernel(state, end)
    return Progress(
        steps=steps.done_steps,
        kernel_evaluations=int(_evaluations(state)),
        done=steps.done,
        completed=steps.done_steps >= steps.total and not steps.done,
        n_support=min(1, int(steps.counts[loops.HITS])) if isinstance(state, _Linear) else int(steps.counts[loops.SUPPORTS]),
    )


def start_stream(stream: Stream, options: Options, eps: float, seed: int) -> stream_steps.State:
    """A fresh state for examples to come. Raises UsageError for a kernel, where λ is not known, or an option that cannot be."""
    _check(options, linear=True)
    if stream.kernel.kind != LINEAR:
        raise UsageError("--solver pegasos: learns a stream with the linear kernel only (-t 0, or --map fourier)")
    if stream.lam is None:
        raise UsageError("--solver pegasos: needs λ before the stream begins: give --lambda, or -c with --rows N")
    constant = options.bias if stream.bias == "free" else 0.0
    average = _AVERAGES[options.average]
    return stream_steps.start(stream.lam, average, options.projection, options.hold_step, options.batch, constant)


def extend(state: stream_steps.State, rows: Rows, y: Floats, weight: Floats) -> Floats:
    """Learns the examples in order, a batch a step; f of each before."""
    return stream_steps.extend(state, rows, y, weight)


def progress(state: stream_steps.State) -> Progress:
    """How far a stream is."""
    return stream_steps.progress(state)


def solution(state: _State | stream_steps.State) -> Solution:
    """The average of the iterates, or the last one where none is kept."""
    if isinstance(state, stream_steps.State):
        return stream_steps.solution(state)
    return _linear_solution(state) if isinstance(state, _Linear) else _kernel_solution(state)


def _evaluations(state: _State) -> float:
    """Kernel values used so far: one for each ⟨w, x⟩; n for each violation; or one for each support vector at each draw."""
    steps = state.steps
    if isinstance(state, _Linear):
        return steps.done_steps * len(state.hits)
    if state.responses is not None:
        return int(steps.counts[loops.HITS]) * steps.problem.n
    return int(steps.counts[loops.ON_DEMAND])


def _look(state: _State, cost: float) -> None:
    """Ends the run where the certificate is good enough, once the work since the last look is worth one of ``cost``."""
    steps, work = state.steps, _evaluations(state)
    if cost > _LOOK_SHARE * (work - steps.looked_at):
        return
    steps.looked_at = work
    found = certify(steps.problem, solution(state))
    steps.done = found.gap <= steps.eps * found.primal


# --- with a kernel --------------------------------------------------------------------------------------------------------


def _start_kernel(steps: _Steps) -> _Kernel:
    n = steps.problem.n
    square = diagonal(steps.problem.rows, steps.problem.kernel) + steps.constant**2
    return _Kernel(
        steps=steps,
        engine=Engine(steps.problem.rows, steps.problem.kernel),
        beta=np.zeros(n),
        beta_sum=np.zeros(n if steps.options.average != "none" else 0),
        responses=np.zeros(n) if steps.options.responses == "all" else None,
        omega=np.where(square == 0, 0.0, steps.omega),
        hits=np.empty(steps.options.batch, np.int64),
    )


def _run_kernel(state: _Kernel, end: int) -> None:
    """Steps up to ``end`` or to the end of the block, which is then closed."""
    block = state.block
    if block is None:
        block = state.block = _open(state)
    steps = state.steps
    stop = min(end, block.last)
    loops.block_steps[state.engine.packed.real](
        *(block.K, block.place, block.y, block.omega, block.c, block.change, block.summed, block.held),
        *(steps.sums, steps.counts, state.hits, *steps.flags, block.at - block.first, stop - block.first),
    )
    block.at = steps.done_steps = stop
    if block.at == block.last:
        state.beta, state.beta_sum = _now(state)
        _close(state, block)
        support = int(steps.counts[loops.SUPPORTS])
        _look(state, 2.0 * support * steps.problem.n)


def _open(state: _Kernel) -> _Block:
    """The next block of draws, its kernel values and responses."""
    steps, k = state.steps, len(state.hits)
    first = steps.done_steps
    last = min(steps.total, first + max(1, _BLOCK // k))
    drawn = rng.integers(steps.seed, _DRAWS, first * k, (last - first) * k, steps.problem.n)
    rows, place = np.unique(drawn, return_inverse=True)
    if state.responses is None:
        c = np.zeros(len(rows))
        support = np.flatnonzero(state.beta)
        state.engine.apply(state.engine.packed.take(rows), support, state.beta[support], c)
        c += steps.constant**2 * state.beta.sum()
    else:
        c = state.responses[rows]
    K = state.engine.block(rows, rows)
    K += K.dtype.type(steps.constant**2)
    steps.sums[loops.KEPT], steps.sums[loops.KEPT_SUM] = 1.0, 0.0
    return _Block(
        rows=rows,
        place=place,
        K=K,
        y=steps.problem.y[rows],
        omega=state.omega[rows],
        c=c,
        change=np.zeros(len(rows)),
        summed=np.zeros(len(rows)),
        held=(state.beta[rows] != 0).astype(np.int64),
        first=first,
        last=last,
        at=first,
    )


def _now(state: _Kernel) -> tuple[Floats, Floats]:
    """The coefficients of w, and the weighted sum of those of all iterates, open block included."""
    block, sums = state.block, state.steps.sums
    if block is None:
        return state.beta, state.beta_sum
    beta_sum = state.beta_sum
    if len(beta_sum):
        beta_sum = beta_sum + sums[loops.KEPT_SUM] * state.beta
        beta_sum[block.rows] += block.summed
    beta: Floats = sums[loops.KEPT] * state.beta
    beta[block.rows] += block.change
    return beta, beta_sum


def _close(state: _Kernel, block: _Block) -> None:
    """Brings all responses up to date."""
    state.block = None
    if state.responses is not None:
        state.responses *= state.steps.sums[loops.KEPT]
        changed = np.flatnonzero(block.change)
        state.engine.apply(state.engine.packed, block.rows[changed], block.change[changed], state.responses)
        state.responses += state.steps.constant**2 * block.change.sum()


def _kernel_solution(state: _Kernel) -> Solution:
    beta, beta_sum = _now(state)
    weights = float(state.steps.sums[loops.WEIGHTS])
    if weights > 0:
        beta = beta_sum / weights
    origin = np.flatnonzero(beta)
    rho = -float(beta.sum()) * state.steps.constant**2
    return Solution(basis=state.steps.problem.rows.take(origin), origin=origin, coef=beta[origin], rho=rho)


# --- linear ---------------------------------------------------------------------------------------------------------------


def _start_linear(steps: _Steps) -> _Linear:
    rows, n = steps.problem.rows, steps.problem.n
    if rows.form == "dense":
        names = np.arange(1, rows.n_features + 1, dtype=np.int32)
    else:
        names = np.unique(rows.indices)
        rows = rows._replace(indices=np.searchsorted(names, rows.indices).astype(np.int32))
    if steps.constant:
        rows = _with_feature(rows, len(names), steps.constant)
    width = len(names) + (steps.constant > 0)
    averaged = steps.options.average != "none"
    return _Linear(
        steps=steps,
        rows=rows,
        names=names,
        square=rows.sqnorms(),
        v=np.zeros(width),
        a=np.zeros(n),
        late_v=np.zeros(width * averaged),
        late_a=np.zeros(n * averaged),
        hits=np.empty(steps.options.batch, np.int64),
    )


def _with_feature(rows: Rows, number: int, value: float) -> Rows:
    """``rows`` with one more nonzero in each."""
    if rows.form == "dense":
        return dense_rows(np.insert(rows.matrix(), rows.n_features, value, axis=1))
    ends = rows.indptr[1:]
    return rows._replace(
        data=np.insert(rows.data, ends, value),
        indices=np.insert(rows.indices, ends, number),
        indptr=rows.indptr + np.arange(rows.n + 1),
    )


def _run_linear(state: _Linear, end: int) -> None:
    """Steps up to ``end`` or to the end of the epoch."""
    steps, k, rows = state.steps, len(state.hits), state.rows
    n = steps.problem.n
    first = steps.done_steps
    epoch_end = -(-(first * k // n + 1) * n // k)
    stop = min(end, epoch_end)
    loops.linear_steps[rows.form](
        *(rows.indptr, rows.indices, rows.data, state.square, steps.problem.y, steps.omega),
        *(state.v, state.a, state.late_v, state.late_a, steps.sums, steps.counts, state.hits),
        *(steps.seed, _DRAWS, *steps.flags, first, stop),
    )
    steps.done_steps = stop
    if stop == epoch_end:
        _look(state, 2.0 * n)


def _linear_solution(state: _Linear) -> Solution:
    """w as one row; its dual point is α with w = Σ α_i y_i x_i, cut to the box."""
    sums = state.steps.sums
    if sums[loops.WEIGHTS] > 0:
        w = (sums[loops.SCALE_SUM] * state.v - state.late_v) / sums[loops.WEIGHTS]
        alpha = (sums[loops.SCALE_SUM] * state.a - state.late_a) / sums[loops.WEIGHTS]
    else:
        w, alpha = sums[loops.SCALE] * state.v, sums[loops.SCALE] * state.a
    steps, width = state.steps, len(state.names)
    used = np.flatnonzero(w[:width])
    count = min(1, len(used))
    basis = Rows(
        data=w[used],
        indices=state.names[used],
        indptr=np.array([0, len(used)][: count + 1]),
        n_features=steps.problem.rows.n_features,
    )
    return Solution(
        basis=basis,
        origin=np.full(count, -1),
        coef=np.ones(count),
        rho=-steps.constant * float(w[width:].sum()),
        alpha=np.minimum(alpha, steps.problem.upper),
    )
