"""The machines of one model on a stream, each learning from its own examples as they come, and the Model they make.

Nothing of the stream is kept but what the solvers keep. The same stream gives the same model, however it is cut into parts.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate, compress
from typing import cast

import numpy as np

from svmkit import mapped, maps
from svmkit.assembly import assemble
from svmkit.config import TrainConfig
from svmkit.data import NO_ROWS, Bools, Floats, Ints, Rows, dense_rows, stack
from svmkit.errors import UsageError
from svmkit.model import REST, Model, class_pairs, decision_values, predict
from svmkit.pairs import bias_of, check_type, costs, kernel_of, label_factors, with_bias, with_multiclass
from svmkit.problem import LINEAR, PRECOMPUTED, Kernel, Solution, Stream, lam_to_C
from svmkit.solvers import solver_with
from svmkit.solvers.base import OnlineSolver, finish, options_of
from svmkit.trace import Progress, Status
from svmkit.trained import uncertified
from svmkit.warm import check_model, check_solver, starts_of_stream

#: The votes of machines that an example of several classes does not belong to are at most this many examples old.
_VOTES_FOR = 1024


def solver_for_streams(name: str) -> OnlineSolver:
    """The solver module called ``name``; UsageError with those that can where it cannot learn from a stream."""
    why = "needs all of the data at once; solvers that learn from a stream"
    return cast("OnlineSolver", solver_with("start_stream", name, why))


class Machines:
    """The machines of a model of ``labels``, learning; of which of these there were examples, ``known`` (k,) says.

    Raises UsageError for a config that a stream cannot have.
    """

    def __init__(
        self,
        config: TrainConfig,
        labels: Ints,
        n_rows: int | None = None,
        on_warning: Callable[[str], None] = lambda text: None,
        begun: Model | None = None,
    ) -> None:
        """Those of ``begun``, where that is given, go on from there. Raises ModelError where they cannot."""
        self.solver = solver_for_streams(config.solver)
        if begun is not None:
            check_model(begun)
        _check(config, labels)
        self.config = config = with_multiclass(with_bias(config, on_warning), len(labels))
        self.labels, self.kernel, self.map = labels, kernel_of(config, 0), None
        if config.map is not None:
            self.map, self.kernel = maps.fit(NO_ROWS, self.kernel, config), Kernel(LINEAR)
        self.pairs = list(zip(*class_pairs(len(labels), config.multiclass).tolist(), strict=True))
        self._factors = label_factors(config, labels, on_warning)
        options = options_of(self.solver, config.solver_options, cache_mb=config.cache_mb, shrinking=config.shrinking)
        stream = self._stream(n_rows)
        self._C = stream.C or 1.0
        self._states = [self.solver.start_stream(stream, options, config.eps, config.seed) for _ in self.pairs]
        self.rows = self._renewed_at = 0
        self.known = np.zeros(len(labels), dtype=bool)
        self._voters: Model | None = None
        if begun is not None:
            self._go_on_from(begun)

    def _go_on_from(self, model: Model) -> None:
        """Each machine begins with the support vectors of the model's own; one that the model lacks, with none."""
        check_solver(self.config.solver, on_a_stream=True)
        assert hasattr(self.solver, "resume")
        C, bias = costs(self._C, self._factors), bias_of(self.config)
        starts = starts_of_stream(model, self.labels, self.pairs, C, self.kernel, bias)
        for state, start in zip(self._states, starts, strict=True):
            self.solver.resume(state, start)
        assert model.labels is not None
        self.known = np.isin(self.labels, model.labels)

    def _stream(self, n_rows: int | None) -> Stream:
        """A machine's problem; one of two classes of k is taken to see two of every k examples."""
        config, share = self.config, 1.0 if self.config.multiclass == "ovr" else 2.0 / len(self.labels)
        n = None if n_rows is None else n_rows * share
        if config.lam is None:
            return Stream(self.kernel, config.C, None if n is None else 1.0 / (config.C * n), bias_of(config))
        return Stream(self.kernel, None if n is None else lam_to_C(config.lam, n), config.lam, bias_of(config))

    def begin_pass(self) -> None:
        """The examples come again, from the first."""
        if hasattr(self.solver, "begin_pass"):
            for state in self._states:
                self.solver.begin_pass(state)

    def rows_left(self) -> int:
        """How many examples the next call of ``learn`` may have."""
        return self._renewal() - self.rows if self._votes else sys.maxsize

    @property
    def _votes(self) -> bool:
        """Whether there are machines that an example does not belong to, and which yet have a say in what it is taken for."""
        return len(self.pairs) > 1 and self.config.multiclass == "ovo"

    def _renewal(self) -> int:
        """The number of rows at which the voters are made anew: twice that of the last time, at most ``_VOTES_FOR`` more."""
        return min(2 * self._renewed_at, self._renewed_at + _VOTES_FOR) if self._renewed_at else 1

    def learn(self, rows: Rows, classes: Ints, weight: Floats) -> Bools:
        """Learns examples of the given classes (positions in ``labels``) in order; which were predicted wrong before, (n,).

        Raises DataError, with none of them learned, for a weight or a value that the machines or their map cannot take.
        """
        with np.errstate(over="ignore"):
            weight = weight * self._factors[classes]
        costs(self._C, weight)
        seen = rows if self.map is None else dense_rows(self.map.transform(rows))
        self.rows += rows.n
        self.known[classes] = True
        if self._votes:
            return self._learn_pairs(rows, seen, classes, weight)
        firsts = [classes == i for i, _ in self.pairs]
        values = [
            self.solver.extend(state, seen, np.where(first, 1.0, -1.0), weight)
            for state, first in zip(self._states, firsts, strict=True)
        ]
        wrong: Bools = (values[0] > 0) != firsts[0] if len(values) == 1 else np.argmax(values, axis=0) != classes
        return wrong

    def _learn_pairs(self, rows: Rows, seen: Rows, classes: Ints, weight: Floats) -> Bools:
        """An example whose own machines all vote for its class is right. Only of the others are the other votes looked at.

        ``seen`` are the rows as the solver sees them.
        """
        decisions = np.full((rows.n, len(self.pairs)), np.nan)
        lost = np.zeros(rows.n, dtype=bool)
        for column, (i, j) in enumerate(self.pairs):
            own = np.flatnonzero((classes == i) | (classes == j))
            if len(own) == 0:
                continue  # a call costs something even so
            first = classes[own] == i
            f = self.solver.extend(self._states[column], seen.take(own), np.where(first, 1.0, -1.0), weight[own])
            decisions[own, column] = f
            lost[own] |= (f > 0) != first
        asked = np.flatnonzero(lost)
        if len(asked):
            voters = self._voters or self.model()
            votes = decisions[asked]
            votes = np.where(np.isnan(votes), decision_values(voters, rows.take(asked)), votes)
            lost[asked] = predict(voters, votes) != self.labels[classes[asked]]
        if self.rows >= self._renewal():
            self._renewed_at, self._voters = self.rows, self.model()
        return lost

    def finish(self, given_up: Callable[[], Status | None]) -> Status:
        """What the solver does once the stream has ended; the status of the machine that came out worst, or ``given_up``'s."""
        if not hasattr(self.solver, "finish"):
            return Status.COMPLETED
        stalled = False
        for state in self._states:
            progress = finish(self.solver, state, lambda: given_up() is not None)
            if progress is None:
                return given_up() or Status.INTERRUPTED
            stalled |= progress.stalled
        return Status.STALLED if stalled else Status.COMPLETED

    def progress(self) -> Progress:
        """Sums over the machines."""
        all_of_them = [self.solver.progress(state) for state in self._states]
        return Progress(
            steps=sum(progress.steps for progress in all_of_them),
            kernel_evaluations=sum(progress.kernel_evaluations for progress in all_of_them),
            n_support=sum(progress.n_support for progress in all_of_them),
        )

    def most_kernel_evaluations(self) -> int:
        """Of any machine."""
        return max(self.solver.progress(state).kernel_evaluations for state in self._states)

    def model(self) -> Model:
        """The model so far."""
        solutions = [self.solver.solution(state) for state in self._states]
        pool, classes, numbered = _pooled(solutions, self.pairs)
        everyone = np.arange(pool.n)
        trained = [uncertified(everyone, found) for found in numbered]
        members = [np.flatnonzero(classes == c) for c in range(len(self.labels))]
        config = self.config
        model = assemble(pool, config.svm_type, self.kernel, self.labels, members, trained, config.multiclass)[0]
        return replace(model, map=self.map)


def _check(config: TrainConfig, labels: Ints) -> None:
    config.check()
    check_type(config)
    if len(labels) < 2 or len(np.unique(labels)) < len(labels):
        raise UsageError("--labels: name at least two labels, each once")
    kernel = kernel_of(config, 0)
    if kernel.kind == PRECOMPUTED:
        raise UsageError("-t 4: a stream has no kernel matrix; give the examples' features")
    if kernel.kind != LINEAR and config.gamma == 0:
        raise UsageError("-g: a stream's number of features is not known ahead, so gamma has no default; give one")
    mapped.check(config)
    if config.map == "nystroem":
        raise UsageError("--map nystroem: chooses its landmarks among all examples; a stream can have --map fourier")
    if config.constant:
        raise UsageError("--constant: is not there for streams; take a solver with a bias")
    if config.orthogonal:
        raise UsageError("--orthogonal: needs the number of features, which of a stream is not known ahead")
    if any(key == "epochs" for key, _ in config.solver_options):
        raise UsageError("-O epochs: a stream is read once; --passes reads a file several times")


def _pooled(solutions: list[Solution], pairs: list[tuple[int, int]]) -> tuple[Rows, Ints, list[Solution]]:
    """All machines' basis rows as one set, each one's class, and the solutions with their places in the set as origin.

    A row's class is the one that its coefficient speaks for, which against the rest may not be known and is then the first. A
    row that several machines hold has one place.
    """
    rows = stack([found.own for found in solutions])
    coef = np.concatenate([found.coef for found in solutions])
    sizes = [found.n_support for found in solutions]
    first, second = (np.repeat([pair[side] for pair in pairs], sizes) for side in (0, 1))
    own = (coef > 0) & (second == REST)  # whose class against the rest is known
    classes = np.where(second == REST, 0, np.where(coef > 0, first, second))
    place = np.arange(rows.n) if len(pairs) == 1 else _first_of_equals(rows, classes, own, sizes)
    classes[place[own]] = first[own]
    cuts = np.cumsum(sizes)[:-1]
    numbered = [replace(one, origin=part, own=NO_ROWS) for one, part in zip(solutions, np.split(place, cuts), strict=True)]
    return rows, classes, numbered


#: A row's class, and the bytes of its indices and values.
_Content = tuple[int, bytes, bytes]


def _first_of_equals(rows: Rows, classes: Ints, own: Bools, sizes: list[int]) -> Ints:
    """For each row the first one of its class that is the same copy of the same content. ``sizes``: rows of each machine."""
    first: dict[tuple[_Content, int], int] = {}
    place = np.empty(rows.n, dtype=np.int64)
    own_before: Counter[_Content] = Counter()
    start = 0
    for stop in accumulate(sizes):
        contents = [_content(rows, classes, row) for row in range(start, stop)]
        for row, copy in enumerate(zip(contents, _copies(contents, own[start:stop], own_before), strict=True), start):
            place[row] = first.setdefault(copy, row)
        own_before.update(compress(contents, own[start:stop]))
        start = stop
    return place


def _content(rows: Rows, classes: Ints, row: int) -> _Content:
    here = slice(rows.indptr[row], rows.indptr[row + 1])
    return int(classes[row]), rows.indices[here].tobytes(), rows.data[here].tobytes()


def _copies(contents: list[_Content], own: Bools, own_before: Counter[_Content]) -> Iterator[int]:
    """Which of the copies of its content, numbered from 0, each row of a machine is; one number, one example in all machines.

    One that is a machine's ``own`` (of its class, against the rest) is no other's. So these are numbered in the order of the
    machines, ``own_before`` of them in machines before this one, and the others of a machine are taken to be these in order,
    without its own: of x twice in the first class and once in the second, the first machine has 0 and 1 as its own and 2, the
    second has 2 as its own and 0 and 1.
    """
    own_here = Counter(compress(contents, own))
    seen: Counter[tuple[_Content, bool]] = Counter()
    for content, is_own in zip(contents, own.tolist(), strict=True):
        copy = seen[content, is_own]
        seen[content, is_own] += 1
        if is_own:
            yield own_before[content] + copy
        else:
            yield copy if copy < own_before[content] else copy + own_here[content]
