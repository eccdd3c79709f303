"""Pegasos: stochastic subgradient steps on the primal, for any kernel and, on w itself, for linear f.

Solves    min  (λ/2)‖w‖² + (1/n) Σ ω_i max(0, 1 − y_i ⟨w, φ(x_i)⟩),    λ = 1/(n·mean C), ω_i = C_i / mean C
          which is the C-form divided by n·mean C
Bias      none; or free, as a constant feature B: its weight counts in ‖w‖², so steps go to an optimum near that of the free
          bias, the nearer the larger B; what is reported is measured against the free one
Steps     t = 1, 2, …: k examples drawn with replacement, A those of them with a margin below 1; w ← (1 − 1/t)w +
          (1/(λtk)) Σ_A ω_i y_i φ(x_i), which from w = 0 is 1/(λt) times a sum of one term for each violation
Stops     after the stated number of epochs (n examples drawn), or when a look at the certificate shows gap ≤ eps·primal;
          looks come when the work since the last one is ten times what one costs
Memory    kernel: packed rows, a q × q block or, for draw=violators, cache_mb of rows, some vectors of length n; linear: w, some
          vectors of length n
Paper     Shalev-Shwartz, Singer, Srebro & Cotter, Mathematical Programming 127 (2011), figures 1–3

With a kernel, the response of a drawn example comes from all n responses kept up to date (n kernel values for each violation)
or from a sum over the support vectors so far (that many for each example drawn). Draws are known ahead, so q of them are taken
together: one block of their kernel values, the steps one after another inside it, then one fused product for what they
changed. The result is that of taking them singly. With draw=violators only those with a margin below 1 are drawn
(pegasos_violators.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.certificate import certify
from svmkit.data import Floats, Ints
from svmkit.engine import rng
from svmkit.engine import subgradient as loops
from svmkit.engine.kernels import Engine, diagonal
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, Bias, Problem, Solution, Stream, as_expansion
from svmkit.solvers import pegasos_linear as linear_steps
from svmkit.solvers import pegasos_stream as stream_steps
from svmkit.solvers import pegasos_violators as violator_steps
from svmkit.solvers.base import lam_of_stream
from svmkit.trace import Progress

SUMMARY = "Pegasos: stochastic subgradient steps, kernel or linear; no bias, or one as a feature"
PAPER = "Shalev-Shwartz, Singer, Srebro & Cotter, Math. Programming 127 (2011) 3–30"
EXACT = False
ACCURACY: float | None = 0.3
BIASES: tuple[Bias, ...] = ("none", "free")

_AVERAGES = {"none": loops.NO_AVERAGE, "uniform": loops.UNIFORM, "step": loops.BY_STEP}
_RESPONSES, _DRAWS = ("all", "demand"), ("uniform", "violators")
#: Examples to a block: enough for a product with a hundred columns, and few against the n values of each column.
_BLOCK = 512
#: So many epochs, of as many examples as memory holds, have draws that 64 bits can count.
_MOST_EPOCHS = 1e9
#: Its square is a float32.
_LARGEST_BIAS = 1e15
#: Examples of a step, which are drawn before it.
_MOST_DRAWN = 1_000_000
#: A kernel block must hold a whole step.
_LARGEST_BATCH = 1024
#: A look at the certificate may cost this share of the work since the last one.
_LOOK_SHARE = 0.1


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
    responses: str = field(
        default="all", metadata={"help": "of a kernel: all: kept for every example; demand: summed over support vectors"}
    )
    draw: str = field(
        default="uniform", metadata={"help": "from which examples: uniform (all); of a kernel: violators (margins below 1)"}
    )
    cache_mb: float = field(default=100.0, metadata={"help": "MB of kernel rows kept, with draw=violators (-m)"})


@dataclass
class _Block:
    """Steps ``first`` … ``last`` − 1: their distinct rows, the place among these of each drawn example, and for the rest see
    subgradient.py.
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


@dataclass
class _Kernel:
    """w = Σ beta_i φ(x_i) at the block's begin, ``responses`` ⟨w, φ(x_i)⟩; ``beta_sum``: the weighted sum of all iterates."""

    problem: Problem
    seed: int
    flags: loops.Flags
    constant: float
    omega: Floats
    engine: Engine
    beta: Floats
    beta_sum: Floats
    responses: Floats | None
    sums: Floats
    counts: Ints
    hits: Ints
    block: _Block | None = None


@dataclass
class _State:
    """How far a run of ``total`` steps is; ``form`` has w."""

    form: _Kernel | violator_steps.State | linear_steps.State
    eps: float
    total: int
    done_steps: int = 0
    looked_at: float = 0.0
    done: bool = False


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state at w = 0. Raises UsageError for an option that cannot be."""
    linear = problem.kernel.kind == LINEAR
    _check(options, linear)
    flags, omega = _flags(options, problem.lam), problem.omega
    constant = options.bias if problem.bias == "free" else 0.0
    form: _Kernel | violator_steps.State | linear_steps.State
    if linear:
        form = linear_steps.start(problem, omega, flags, options.batch, constant, seed)
    elif options.draw == "violators":
        form = violator_steps.start(problem, omega, flags, options.batch, constant, options.cache_mb, seed)
    else:
        form = _start_kernel(problem, omega, flags, options, constant, seed)
    return _State(form, eps, total=max(1, ceil(options.epochs * problem.n / options.batch)))


def _flags(options: Options, lam: float) -> loops.Flags:
    return loops.Flags(lam, _AVERAGES[options.average], int(options.projection), int(options.hold_step))


def _check(options: Options, linear: bool) -> None:
    if not 0 < options.epochs <= _MOST_EPOCHS:
        raise UsageError(f"-O epochs={options.epochs:g}: must be greater than 0 and at most {_MOST_EPOCHS:g}")
    if not 1 <= options.batch <= _MOST_DRAWN:
        raise UsageError(f"-O batch={options.batch}: must lie in 1 … {_MOST_DRAWN:,}")
    if not 0 < options.bias <= _LARGEST_BIAS:
        raise UsageError(f"-O bias={options.bias:g}: must be greater than 0 and at most {_LARGEST_BIAS:g}")
    if linear and options.responses == "demand":
        raise UsageError("-O responses=demand: of linear f (-t 0, --map) w itself is kept, and nothing is summed; leave it out")
    if options.draw == "violators" and (linear or options.responses == "demand"):
        why = "of linear f (-t 0, --map) w is kept" if linear else "-O responses=demand keeps none"
        raise UsageError(f"-O draw=violators: needs the response of every example, and {why}; leave it out")
    if not linear and options.batch > _LARGEST_BATCH:
        raise UsageError(f"-O batch={options.batch}: at most {_LARGEST_BATCH} with a kernel other than linear")
    given = (
        ("average", options.average, _AVERAGES),
        ("responses", options.responses, _RESPONSES),
        ("draw", options.draw, _DRAWS),
    )
    for key, value, known in given:
        if value not in known:
            raise UsageError(f"-O {key}={value}: must be one of {', '.join(known)}")


def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more steps of ``batch`` examples."""
    form = state.form
    end = min(state.total, state.done_steps + budget)
    while state.done_steps < end and not state.done:
        if isinstance(form, linear_steps.State):
            state.done_steps, closed = linear_steps.run(form, state.done_steps, end)
        elif isinstance(form, violator_steps.State):
            state.done_steps, closed = violator_steps.run(form, state.done_steps, end, state.total)
        else:
            state.done_steps, closed = _run_kernel(form, state.done_steps, end, state.total)
        if closed:
            _look(state)
        if parallel.is_over():
            break
    return Progress(
        steps=state.done_steps,
        kernel_evaluations=_evaluations(state),
        done=state.done,
        completed=state.done_steps >= state.total and not state.done,
        n_support=_n_support(form),
    )


def _n_support(form: _Kernel | violator_steps.State | linear_steps.State) -> int:
    if isinstance(form, linear_steps.State):
        return min(1, int(form.counts[loops.HITS]))
    return violator_steps.n_support(form) if isinstance(form, violator_steps.State) else int(form.counts[loops.SUPPORTS])


def start_stream(stream: Stream, options: Options, eps: float, seed: int) -> stream_steps.State:
    """A fresh state for examples to come. Raises UsageError for a kernel, where λ is not known, or an option that cannot be."""
    _check(options, linear=True)
    flags = _flags(options, lam_of_stream("pegasos", stream))
    return stream_steps.start(flags, options.batch, options.bias if stream.bias == "free" else 0.0)


extend, progress = stream_steps.extend, stream_steps.progress


def finish(state: stream_steps.State, budget: int) -> Progress:
    """The examples that did not fill a batch make a last, smaller step; more may follow."""
    stream_steps.finish(state)
    return progress(state)._replace(completed=True)


def solution(state: _State | stream_steps.State) -> Solution:
    """The average of the iterates, or the last one where none is kept."""
    if isinstance(state, stream_steps.State):
        return stream_steps.solution(state)
    if isinstance(state.form, linear_steps.State):
        return linear_steps.solution(state.form)
    return violator_steps.solution(state.form) if isinstance(state.form, violator_steps.State) else _kernel_solution(state.form)


def _evaluations(state: _State) -> int:
    """Kernel values used so far: one for each ⟨w, x⟩; n for each violation, or for each row that was kept; or one for each
    support vector at each draw.
    """
    form = state.form
    if isinstance(form, linear_steps.State):
        return state.done_steps * len(form.hits)
    if isinstance(form, violator_steps.State):
        return violator_steps.evaluations(form)
    if form.responses is not None:
        return int(form.counts[loops.HITS]) * form.problem.n
    return int(form.counts[loops.ON_DEMAND])


def _look(state: _State) -> None:
    """Ends the run where the certificate is good enough, once the work since the last look is worth one."""
    cost = 2.0 * _n_support(state.form) * state.form.problem.n
    work = violator_steps.work(state.form) if isinstance(state.form, violator_steps.State) else _evaluations(state)
    if cost > _LOOK_SHARE * (work - state.looked_at):
        return
    state.looked_at = work
    with parallel.leavable():
        found = certify(state.form.problem, solution(state))
    state.done = isfinite(found.primal) and found.gap <= state.eps * found.primal


# --- with a kernel --------------------------------------------------------------------------------------------------------


def _start_kernel(problem: Problem, omega: Floats, flags: loops.Flags, options: Options, constant: float, seed: int) -> _Kernel:
    n = problem.n
    square = diagonal(problem.rows, problem.kernel) + constant**2
    return _Kernel(
        problem=problem,
        seed=seed,
        flags=flags,
        constant=constant,
        omega=np.where(square == 0, 0.0, omega),
        engine=Engine(problem.rows, problem.kernel),
        beta=np.zeros(n),
        beta_sum=np.zeros(n if flags.average != loops.NO_AVERAGE else 0),
        responses=np.zeros(n) if options.responses == "all" else None,
        sums=np.array([1.0, 0.0, 0.0, 0.0]),
        counts=np.array([1, 0, 0, 0]),
        hits=np.empty(options.batch, np.int64),
    )


def _run_kernel(state: _Kernel, first: int, end: int, total: int) -> tuple[int, bool]:
    """Steps from ``first`` up to ``end`` or to the end of the block, of which none goes past ``total``.

    Returns the next step, and whether a block has been closed.
    """
    block = state.block
    if block is None:
        block = state.block = _open(state, first, total)
    stop = min(end, block.last)
    loops.block_steps[state.engine.real](
        *(block.K, block.place, block.y, block.omega, block.c, block.change, block.summed, block.held),
        *(state.sums, state.counts, state.hits, *state.flags, first - block.first, stop - block.first),
    )
    if stop == block.last:
        state.beta, state.beta_sum = _now(state)
        _close(state, block)
    return stop, stop == block.last


def _open(state: _Kernel, first: int, total: int) -> _Block:
    """The block of draws from step ``first`` on, its kernel values and responses."""
    k = len(state.hits)
    last = min(total, first + max(1, _BLOCK // k))
    drawn = rng.integers(state.seed, loops.DRAWS, first * k, (last - first) * k, state.problem.n)
    rows, place = np.unique(drawn, return_inverse=True)
    if state.responses is None:
        c = np.zeros(len(rows))
        support = np.flatnonzero(state.beta)
        state.engine.apply(state.engine.packed.take(rows), support, state.beta[support], c)
        c += state.constant**2 * state.beta.sum()
    else:
        c = state.responses[rows]
    K = state.engine.block(rows, rows)
    K += K.dtype.type(state.constant**2)
    state.sums[loops.KEPT], state.sums[loops.KEPT_SUM] = 1.0, 0.0
    return _Block(
        rows=rows,
        place=place,
        K=K,
        y=state.problem.y[rows],
        omega=state.omega[rows],
        c=c,
        change=np.zeros(len(rows)),
        summed=np.zeros(len(rows)),
        held=(state.beta[rows] != 0).astype(np.int64),
        first=first,
        last=last,
    )


def _now(state: _Kernel) -> tuple[Floats, Floats]:
    """The coefficients of w, and the weighted sum of those of all iterates, open block included."""
    block, sums = state.block, state.sums
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
        state.responses *= state.sums[loops.KEPT]
        changed = np.flatnonzero(block.change)
        state.engine.apply(state.engine.packed, block.rows[changed], block.change[changed], state.responses)
        state.responses += state.constant**2 * block.change.sum()


def _kernel_solution(state: _Kernel) -> Solution:
    beta, beta_sum = _now(state)
    weights = float(state.sums[loops.WEIGHTS])
    if weights > 0:
        beta = beta_sum / weights
    return as_expansion(beta, -float(beta.sum()) * state.constant**2)
