"""What svm-train says while it trains: dots and stars, then a block of figures a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from svmkit.cli.compat.svm_train import most_steps
from svmkit.cli.compat.tool import inform, warn
from svmkit.config import TrainConfig
from svmkit.fit import ONE_CLASS
from svmkit.pairs import Pair, label_factors
from svmkit.solvers.base import SolverResult
from svmkit.solvers.pair import PairReport
from svmkit.trace import Progress, Status
from svmkit.training import DoneTogether


class TrainingText:
    """Listens to ``fit``. A dot is ``dot_every`` steps, a star the final look at every example; pair has words of its own."""

    def __init__(self, quiet: bool, dot_every: int, config: TrainConfig) -> None:
        self.quiet = quiet
        self.dot_every = dot_every
        self.config = config
        self.told = 0

    def progress(self, seconds: float, progress: Progress) -> None:
        """What ``fit`` calls as its ``on_progress``."""
        line = progress.said if self.config.solver == "pair" else "." * (progress.steps // self.dot_every)
        if len(line) > self.told:
            self._inform(line[self.told :])
        self.told = len(line)

    def machines(self, count: int, each: Callable[[], Iterator[tuple[Pair, SolverResult]]]) -> None:
        """What ``fit`` calls as its ``on_machines``."""
        if isinstance(each, DoneTogether) and each.part.status is Status.CONVERGED:  # there is nothing to warn of
            if not self.quiet:
                self._inform("".join(_text("." * (said.iterations // self.dot_every) + "*", said) for said in _reports(each)))
            return
        for pair, result in each():
            if self.config.solver != "pair":  # of machines trained together nobody has said how far they are
                self.progress(result.seconds, Progress(result.steps, result.kernel_evaluations))
            self._machine(pair, result)

    def _machine(self, pair: Pair, result: SolverResult) -> None:
        rest = "*" if result.report is None else result.report.progress[self.told :]
        self.told = 0
        self._warn_if_unfinished(pair, result)
        if not self.quiet:
            self._inform(_text(rest, result.report if result.report is not None else _figures(pair, result)))

    def fitted(self, n_support: int) -> None:
        """One model is done, of so many support vectors."""
        self._inform(f"Total nSV = {n_support}\n")

    def nothing_to_train_on(self) -> None:
        """What svm-train says of the last fold of ``-v`` where that holds everything out."""
        label_factors(self.config, np.empty(0, dtype=np.int64), warn)  # -wi of any class is not found
        self._inform("Total nSV = 0\n")

    def warning(self, text: str) -> None:
        """What ``fit`` calls as its ``on_warning``."""
        if text == ONE_CLASS:
            self._inform(f"{text}\n")
        else:
            warn(text)

    def _inform(self, text: str) -> None:
        if not self.quiet:
            inform(text)

    def _warn_if_unfinished(self, pair: Pair, result: SolverResult) -> None:
        svm_trains_own = result.report is not None  # which end as svm-train's do, whatever fresh kernel values say
        at_the_limit = result.steps >= most_steps(len(pair.examples)) if svm_trains_own else result.status is Status.MAX_ITER
        if at_the_limit:
            warn("", "WARNING: reaching max number of iterations")
        elif not svm_trains_own and result.status is not Status.CONVERGED:
            warn(
                "",
                f"WARNING: no further progress is possible in floating point; the violation is "
                f"{result.certificate.violation:g}, -e asks for {self.config.eps:g}",
            )


def _text(progress: str, said: PairReport) -> str:
    """Counts, objective and support vectors of one machine; in svm-train's own rounding where the solver keeps that."""
    nu = "" if said.nu is None else f"nu = {said.nu:f}\n"
    return (
        f"{progress}\noptimization finished, #iter = {said.iterations}\n{nu}obj = {said.objective:f}, rho = {said.rho:f}\n"
        f"nSV = {said.n_support}, nBSV = {said.n_bounded}\n"
    )


def _figures(pair: Pair, result: SolverResult) -> PairReport:
    solution, upper = result.solution, pair.upper
    used, alpha = solution.origin, np.abs(solution.coef)
    if solution.alpha is not None:  # of a machine that is w alone
        used = np.flatnonzero(solution.alpha)
        alpha = solution.alpha[used]
    return PairReport(
        progress="*",
        iterations=result.steps,
        nu=float(alpha.sum() / upper.sum()) if upper.min() == upper.max() else None,
        objective=0.0 - result.certificate.dual,
        rho=solution.rho,
        n_support=int(np.count_nonzero(alpha)),
        n_bounded=int((alpha >= upper[used]).sum()),
    )


def _reports(done: DoneTogether) -> Iterator[PairReport]:
    """``_figures`` of each machine, all in one go: there may be half a million."""
    part, upper, starts = done.part, done.machines.upper, done.machines.starts[:-1]
    alpha, lengths = np.abs(part.found.coef), part.found.lengths
    machine_of, at_bound = np.repeat(np.arange(len(lengths)), lengths), alpha >= upper[part.places(done.machines)]
    sums = np.bincount(machine_of, alpha, minlength=len(lengths))
    n_bounded = np.bincount(machine_of[at_bound], minlength=len(lengths))
    alike = np.minimum.reduceat(upper, starts) == np.maximum.reduceat(upper, starts)
    nus = [nu if known else None for nu, known in zip((sums / np.add.reduceat(upper, starts)).tolist(), alike, strict=True)]
    figures = (each.tolist() for each in (0.0 - part.certificates.dual, part.found.rho, lengths, n_bounded))
    for steps, nu, *others in zip(part.steps.tolist(), nus, *figures, strict=True):
        yield PairReport("*", steps, nu, *others)
