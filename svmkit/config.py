"""Every training option, its default and its check, in one place. Pure Python: ``--help`` and usage errors load no NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from svmkit.errors import UsageError

SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
BIASES = ("free", "none")
#: One machine a pair of classes (LIBSVM's), or one a class, against all others.
MULTICLASS = ("ovo", "ovr")
MAPS = ("nystroem", "fourier")
#: Which problem the certificate of a training on mapped data is of.
CERTIFICATES = ("map", "kernel")
#: Landmarks that are chosen by looking at rows, and all; "reduced" ones take an SVM, which only training has.
ROW_LANDMARKS = ("pivoted", "kmeans", "uniform")
LANDMARKS = (*ROW_LANDMARKS, "reduced")
#: The largest C_i, and λ; the least C and λ is its reciprocal.
MOST_C = 1e100
#: Each kernel, in the order of LIBSVM's numbers for them, and the numbers that it uses.
KERNEL_NUMBERS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}
KERNELS = tuple(KERNEL_NUMBERS)


@dataclass(frozen=True)
class TrainConfig:
    """What to train and how; ``fit`` reads it, the command lines fill it.

    ``gamma`` 0 means 1/number of features. ``lam`` (λ-form) replaces ``C`` by 1/(λ n). ``class_weight`` holds (label, factor)
    pairs; factors of a repeated label multiply, as in svm-train. ``bias``: "free" is LIBSVM's rho, "none" drops it, None takes
    what the solver does best.
    ``map`` replaces the kernel by ``dim`` explicit features, on which a linear problem is solved: "nystroem", of ``landmarks``
    and the eigenvalues above ``cut`` times the largest, or "fourier", of ``orthogonal`` frequencies or independent ones.
    ``constant`` is the value of one feature more, a bias whose square is penalised. The certificate is then of that problem,
    or, by ``certificate_of``, of the kernel's own.
    ``solver_options`` are the solver's own knobs as (key, text) pairs. ``threads``, 0 for all cores, is for commands to set for
    the process (``parallel.use_threads``); results are the same.
    """

    svm_type: str = "c_svc"
    kernel: str = "rbf"
    degree: int = 3
    gamma: float = 0.0
    coef0: float = 0.0
    C: float = 1.0
    lam: float | None = None
    eps: float = 1e-3
    cache_mb: float = 100.0
    shrinking: bool = True
    class_weight: tuple[tuple[int, float], ...] = ()
    bias: str | None = None
    multiclass: str = "ovo"
    map: str | None = None
    dim: int = 512
    landmarks: str = "pivoted"
    cut: float = 0.0
    orthogonal: bool = False
    constant: float = 0.0
    certificate_of: str = "map"
    solver: str = "smo"
    solver_options: tuple[tuple[str, str], ...] = ()
    max_iter: int | None = None
    max_evaluations: int | None = None
    time_limit_s: float | None = None
    patience: int | None = None
    seed: int = 0
    threads: int = 0

    def check(self) -> None:
        """Raises UsageError for the first value that cannot be."""
        for option, good, why in self._conditions():
            if not good:
                raise UsageError(f"{option}: {why}")

    def _conditions(self) -> list[tuple[str, bool, str]]:
        finite = {"-g": self.gamma, "-r": self.coef0, "-c": self.C, "-e": self.eps, "-m": self.cache_mb}
        out = [(name, math.isfinite(value), f"{value} is not a finite number") for name, value in finite.items()]
        counts = {"--max-iter": self.max_iter, "--budget-evals": self.max_evaluations, "--patience": self.patience}
        used, limit_s = KERNEL_NUMBERS.get(self.kernel, ()), self.time_limit_s
        out += [
            ("-s", self.svm_type in SVM_TYPES, f"unknown svm type {self.svm_type!r}; one of {', '.join(SVM_TYPES)}"),
            ("-t", self.kernel in KERNELS, f"unknown kernel {self.kernel!r}; one of {', '.join(KERNELS)}"),
            ("-g", "gamma" not in used or self.gamma >= 0, f"gamma {self.gamma:g} must not be negative"),
            ("-d", "degree" not in used or 0 <= self.degree < 2**31, f"degree {self.degree} must lie in 0 … 2^31 − 1"),
            ("-c", self.C > 0, f"C {self.C:g} must be greater than 0"),
            ("-c", 1 / MOST_C <= self.C <= MOST_C, f"C {self.C:g} must lie in 1e-100 … 1e100: its square has to be a double"),
            ("--lambda", self.lam is None or self.lam > 0, f"{self.lam} must be greater than 0"),
            ("--lambda", self.lam is None or 1 / MOST_C <= self.lam <= MOST_C, f"{self.lam} must lie in 1e-100 … 1e100"),
            ("-e", self.eps > 0, f"tolerance {self.eps:g} must be greater than 0"),
            ("-m", 0 < self.cache_mb <= 1e12, f"cache of {self.cache_mb:g} MB must be greater than 0 and at most 1e12"),
            *((name, count is None or count >= 1, f"{count} must be at least 1") for name, count in counts.items()),
            ("--time-limit", limit_s is None or limit_s > 0, f"{limit_s} s must be greater than 0"),
            ("--seed", 0 <= self.seed < 2**63, f"{self.seed} must lie in 0 … 2^63 − 1"),
            ("-j", self.threads >= 0, f"{self.threads} must not be negative (0 means all cores)"),
            ("--multiclass", self.multiclass in MULTICLASS, f"unknown way {self.multiclass!r}; one of {', '.join(MULTICLASS)}"),
            ("--map", self.map in (None, *MAPS), f"unknown map {self.map!r}; one of {', '.join(MAPS)}"),
            ("--dim", 1 <= self.dim <= 2**20, f"{self.dim} must lie in 1 … 2^20"),
            ("--landmarks", self.landmarks in LANDMARKS, f"unknown choice {self.landmarks!r}; one of {', '.join(LANDMARKS)}"),
            ("--certificate-of", self.certificate_of in CERTIFICATES, f"unknown problem {self.certificate_of!r}"),
            ("--constant", 0 <= self.constant <= 1e15, f"{self.constant} must lie in 0 … 1e15"),  # its square is a float32
            ("--constant", self.map is not None or not self.constant, "stands beside the features of a --map; give one"),
            ("--cut", 0 <= self.cut < 1, f"{self.cut} must be at least 0 and below 1, as a share of the largest eigenvalue"),
            ("--bias", self.bias in (None, *BIASES), f"unknown bias {self.bias!r}"),
        ]
        for label, factor in self.class_weight:
            out.append((f"-w{label}", math.isfinite(factor), f"weight {factor} is not a finite number"))
            out.append((f"-w{label}", factor > 0, f"weight {factor:g} must be greater than 0"))
        return out
