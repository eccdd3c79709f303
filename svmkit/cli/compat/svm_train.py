"""svm-train by its own name: its options, its text on standard output, its model file; only sooner.

The block solver trains; SVMKIT_EXACT=1 in the environment takes svm-train's own steps instead, and then every figure printed
and every byte of the model come out as svm-train's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from svmkit.cli.compat.argv import Arguments, Usage, atof, atoi
from svmkit.cli.compat.tool import announce_compiling, check_input, check_output, prefaced, run_tool, say, warn
from svmkit.config import KERNELS, SVM_TYPES, TrainConfig
from svmkit.errors import SvmkitError

if TYPE_CHECKING:
    from svmkit.cli.compat.training_text import TrainingText
    from svmkit.data import Dataset, Floats
    from svmkit.folds import Folds

USAGE = """\
Usage: svm-train [options] training_set_file [model_file]
Trains a support vector machine; the model goes to model_file, or to the training file's name + .model in this folder.
options:
-s type : 0 C-SVC (the only one in this version), 1 nu-SVC, 2 one-class SVM, 3 epsilon-SVR, 4 nu-SVR (default 0)
-t kernel : 0 linear u'v, 1 polynomial (gamma u'v + coef0)^degree, 2 RBF exp(-gamma |u-v|^2),
            3 sigmoid tanh(gamma u'v + coef0), 4 precomputed, the training file holds kernel values (default 2)
-d degree : of the polynomial kernel (default 3)
-g gamma : of the polynomial, RBF and sigmoid kernels (default 1/number of features)
-r coef0 : of the polynomial and sigmoid kernels (default 0)
-c C : what an error costs, in C-SVC and both kinds of SVR (default 1)
-n nu : of nu-SVC, one-class SVM and nu-SVR (default 0.5)
-p epsilon : half the width of epsilon-SVR's tube (default 0.1)
-m megabytes : memory for kernel values (default 100)
-e tolerance : where to stop (default 0.001)
-h 0|1 : whether to set variables aside that seem settled (default 1)
-b 0|1 : whether to fit probabilities as well (default 0; 1 is not in this version)
-wi factor : multiplies C for class i (default 1)
-v n : n-fold cross-validation instead of a model
-q : quiet, nothing on standard output but -v's result
"""


@dataclass
class Call:
    """What the arguments ask for; settings that ``TrainConfig`` has too go by its names and start from its defaults."""

    svm_type: int = 0
    kernel: int = 2
    shrinking: int = 1
    probability: int = 0
    n_folds: int = 0
    quiet: bool = False
    degree: int = TrainConfig.degree
    gamma: float = TrainConfig.gamma
    coef0: float = TrainConfig.coef0
    C: float = TrainConfig.C
    eps: float = TrainConfig.eps
    cache_mb: float = TrainConfig.cache_mb
    weights: list[tuple[int, float]] = field(default_factory=list)
    data: str = ""
    model: str = ""


def main(argv: list[str] | None = None) -> int:
    """svm-train with the arguments ``argv``; returns its exit code, 0 or 1. Without ``argv`` it ends the process."""
    return run_tool("svm-train", USAGE, lambda args: _train(parse(args)), argv)


def parse(argv: list[str]) -> Call:
    """The call. Raises Usage."""
    call, arguments = Call(), Arguments(argv)
    while (option := arguments.next_option()) is not None:
        if not arguments.rest:
            raise Usage
        _take(call, option, arguments)
    if not arguments.rest:
        raise Usage
    call.data = arguments.rest[0]
    call.model = arguments.rest[1] if len(arguments.rest) > 1 else _model_name(call.data)
    call.quiet |= call.model == "-"  # there the model is written, and nothing else
    return call


def _take(call: Call, option: str, arguments: Arguments) -> None:
    """Puts one option into ``call``."""
    letter = option[0]
    if letter == "q":
        call.quiet = True
    elif letter == "w":
        call.weights.append((atoi(option[1:]), atof(arguments.value())))
    elif letter == "v":
        call.n_folds = atoi(arguments.value())
        if call.n_folds < 2:
            raise Usage("n-fold cross validation: n must >= 2")
    elif letter in "np":  # numbers of types that are not trained
        arguments.value()
    elif letter in _NUMBERS:
        setattr(call, _NUMBERS[letter], atof(arguments.value()))
    elif letter in _INTEGERS:
        setattr(call, _INTEGERS[letter], atoi(arguments.value()))
    else:
        raise Usage(f"Unknown option: -{letter}")


_NUMBERS = {"g": "gamma", "r": "coef0", "m": "cache_mb", "c": "C", "e": "eps"}
_INTEGERS = {"s": "svm_type", "t": "kernel", "d": "degree", "h": "shrinking", "b": "probability"}


def _model_name(data: str) -> str:
    return ("stdin" if data == "-" else data.rpartition("/")[2]) + ".model"


def _train(call: Call) -> None:
    _refuse_what_is_missing(call)
    check_input(call.data, f"can't open input file {call.data}")
    announce_compiling("svm-train")
    from svmkit.io.libsvm_data import read_dataset

    precomputed = call.kernel == KERNELS.index("precomputed")
    dataset = read_dataset(call.data, precomputed=precomputed, training=True, on_warning=lambda text: warn(f"WARNING: {text}"))
    check_parameters(call)
    config = _config(call, dataset.n)
    config.check()
    from svmkit.cli.compat.training_text import TrainingText

    text = TrainingText(call.quiet, min(dataset.n, 1000), config)
    if call.n_folds:
        _cross_validate(call.n_folds, dataset, config, text)
        return
    complaint = f"can't save model to file {call.model}"
    check_output(call.model, complaint, call.data)
    from svmkit.fit import fit
    from svmkit.io.model_libsvm import write_model

    found = fit(dataset, config, on_progress=text.progress, on_machines=text.machines, on_warning=text.warning)
    text.fitted(found.model.n_support)
    with prefaced(complaint):
        # rows that carry w in place of α: cut to 8 digits, their values would lose it
        carries_w = bool((found.sv_index < 0).any())
        write_model(call.model, found.model, style="native" if carries_w else "libsvm")


def _refuse_what_is_missing(call: Call) -> None:
    if 0 < call.svm_type < len(SVM_TYPES):
        raise SvmkitError(
            f"-s {call.svm_type} ({SVM_TYPES[call.svm_type]}): training this type is not available in this version of svmkit"
        )
    if call.probability == 1:
        raise SvmkitError("-b 1: fitting probabilities is not available in this version of svmkit")


def check_parameters(call: Call) -> None:
    """Raises SvmkitError with svm-train's message for the first parameter that cannot be."""
    uses_gamma = call.kernel in (1, 2, 3)
    for wrong, message in (
        (not 0 <= call.svm_type < len(SVM_TYPES), "unknown svm type"),
        (not 0 <= call.kernel < len(KERNELS), "unknown kernel type"),
        (uses_gamma and call.gamma < 0, "gamma < 0"),
        (call.kernel == 1 and call.degree < 0, "degree of polynomial kernel < 0"),
        (call.cache_mb <= 0, "cache_size <= 0"),
        (call.eps <= 0, "eps <= 0"),
        (call.C <= 0, "C <= 0"),
        (call.shrinking not in (0, 1), "shrinking != 0 and shrinking != 1"),
        (call.probability not in (0, 1), "probability != 0 and probability != 1"),
    ):
        if wrong:
            raise SvmkitError(f"ERROR: {message}")


def most_steps(n: int) -> int:
    """svm-train's limit of iterations for a machine of n examples."""
    return max(10_000_000, 100 * n)


def _config(call: Call, n: int) -> TrainConfig:
    return TrainConfig(
        kernel=KERNELS[call.kernel],
        degree=call.degree,
        gamma=call.gamma,
        coef0=call.coef0,
        C=call.C,
        eps=call.eps,
        cache_mb=call.cache_mb,
        shrinking=call.shrinking == 1,
        class_weight=tuple(call.weights),
        solver="pair" if os.environ.get("SVMKIT_EXACT") == "1" else "smo",
        max_iter=most_steps(n),
    )


def _folds(y: Floats, k: int) -> Folds:
    """svm-train's; a single example is a single fold."""
    import numpy as np

    from svmkit.cli.compat.glibc_rand import glibc_rand
    from svmkit.folds import Folds, folds

    return folds(y, k, glibc_rand()) if k > 1 else Folds(np.array([0]), np.array([0, 1]))


def _cross_validate(n_folds: int, dataset: Dataset, config: TrainConfig, text: TrainingText) -> None:
    from svmkit.folds import cross_validate

    if n_folds > dataset.n:
        warn(
            f"WARNING: # folds ({n_folds}) > # data ({dataset.n}). "
            "Will use # folds = # data instead (i.e., leave-one-out cross validation)"
        )
    split = _folds(dataset.y, min(n_folds, dataset.n))
    answers = cross_validate(
        dataset,
        config,
        split,
        every_fold=True,
        on_progress=text.progress,
        on_machines=text.machines,
        on_fold=lambda _, n_support: text.fitted(n_support),
        on_warning=text.warning,
    )
    if split.starts[-2] == 0:
        text.nothing_to_train_on()
    say(f"Cross Validation Accuracy = {100.0 * int((answers == dataset.y).sum()) / dataset.n:g}%\n")
