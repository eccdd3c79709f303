"""Files as commands see them: checked before any work, read with warnings on stderr, ``-`` for the standard streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from svmkit.cli.progress import Reporter
from svmkit.config import TrainConfig
from svmkit.errors import DataError, UsageError

if TYPE_CHECKING:
    from svmkit.data import Dataset, Floats, Ints
    from svmkit.io.traces import TraceWriter


#: Stream of random numbers that held-out examples are drawn by, apart from those of maps and solvers.
_HELD_OUT = 1 << 45


def check_output(path: str, *others: str | None) -> None:
    """Refuses, before any work, an output that cannot be written (OutputError) or is one of the ``others`` (UsageError), of
    which None are those not given.
    """
    from svmkit.io.outputs import check_writable, would_overwrite

    if any(name is not None and would_overwrite(path, name) for name in others):
        raise UsageError(f"{path}: names one file for two purposes, and would be overwritten")
    check_writable(path)


def refuse_shared_input(**paths: str | None) -> None:
    """Raises UsageError where more than one of the inputs is standard input; options go without their dashes."""
    readers = [name if name.isupper() else f"--{name}" for name, path in paths.items() if path == "-"]
    if len(readers) > 1:
        raise UsageError(f"{' and '.join(readers)} cannot both be standard input")


def refuse_shared_output(*, as_json: bool = False, **paths: str | None) -> None:
    """The same of the outputs, among them the report of --json."""
    from svmkit.io.descriptors import named

    given = {name if name.isupper() else f"--{name}": path for name, path in paths.items() if path is not None}
    writers = [f"{name} {path}" for name, path in given.items() if named(path) == 1]
    writers += ["--json"] * as_json
    if len(writers) > 1:
        raise UsageError(f"{' and '.join(writers)} would both write standard output; name a file")


def begin(threads: int, reporter: Reporter) -> None:
    """What every command that computes does first: sets the number of threads, and prepares for a cold start."""
    from svmkit import parallel

    parallel.use_threads(threads)
    reporter.cold.listen()


def read_data(path: str, reporter: Reporter, *, precomputed: bool = False, training: bool = False) -> Dataset:
    """The data set in ``path``; see ``read_dataset``."""
    from svmkit.io.libsvm_data import read_dataset

    return read_dataset(path, precomputed=precomputed, training=training, on_warning=reporter.warn)


def read_training(path: str, config: TrainConfig, reporter: Reporter) -> Dataset:
    """The data set in ``path``, to be trained on as ``config`` says. Labels that are no whole numbers are told."""
    dataset = read_data(path, reporter, precomputed=config.kernel == "precomputed", training=True)
    cut = dataset.y[dataset.y != dataset.y.round()]
    if len(cut):
        what = f"{len(cut):,} of {dataset.n:,} labels are no whole numbers, such as {cut[0]:g}"
        reporter.warn(f"{what}: a class is what is before the point, as in LIBSVM")
    return dataset


def set_aside(dataset: Dataset, holdout: str | None, config: TrainConfig, reporter: Reporter) -> tuple[Dataset, Dataset | None]:
    """The examples to train on and those held out: another file's, or a random fraction of these.

    Raises UsageError for a fraction that leaves nothing on one side, or as ``fraction`` does, and DataError for a file without
    kernel values against every example where the kernel is precomputed.
    """
    if holdout is None:
        return dataset, None
    share = fraction(holdout)
    if share is None:
        return dataset, _against_all(holdout, dataset, config, reporter)
    import numpy as np

    from svmkit.engine import rng

    n_out = round(share * dataset.n)
    if not 0 < n_out < dataset.n:
        raise UsageError(f"--holdout {holdout}: {dataset.n} examples leave nothing on one side")
    order = rng.permutation(config.seed, _HELD_OUT, dataset.n)
    return dataset.take(np.sort(order[n_out:])), dataset.take(np.sort(order[:n_out]))


def _against_all(path: str, dataset: Dataset, config: TrainConfig, reporter: Reporter) -> Dataset:
    """The held-out data in a file, with kernel values against every example where the kernel is precomputed."""
    held_out = read_held_out(path, dataset.learned_classes, reporter, precomputed=config.kernel == "precomputed")
    needed, there = int(dataset.rows.serial.max(initial=0)), held_out.rows.gram.shape[1]
    if held_out.n and needed > there:
        detail = f"{path}: has kernel values against training rows up to {there}, but there are rows up to {needed} to train on"
        raise DataError("Wrong input format: sample_serial_number out of range", detail)
    return held_out


def read_held_out(path: str, known: Floats | Ints, reporter: Reporter, *, precomputed: bool = False) -> Dataset:
    """Held-out data. Labels that no model of the ``known`` ones can answer are told, as where one file has 0, the other −1."""
    import numpy as np

    held_out = read_data(path, reporter, precomputed=precomputed)
    other = held_out.classes[~np.isin(held_out.classes, known)]
    if len(other):
        what = f"{path}: {len(other):,} of {held_out.n:,} labels, such as {other[0]:g}, are none of those trained on"
        reporter.warn(f"{what}; they count as errors")
    return held_out


def fraction(text: str) -> float | None:
    """The fraction that ``text`` is, or None for the name of a file. Raises UsageError for a number outside 0 … 1."""
    try:
        value = float(text)
    except ValueError:
        return None
    if os.path.exists(text):
        return None
    if not 0 < value < 1:
        raise UsageError(f"--holdout {text}: a fraction lies between 0 and 1 (and there is no file of that name)")
    return value


def tracing(path: str | None, on_failure: Callable[[str], None]) -> AbstractContextManager[TraceWriter | None]:
    """What writes the rows of --trace, which has no ``path`` where it is not given; see ``TraceWriter``."""
    if path is None:
        return nullcontext()
    from svmkit.io.traces import TraceWriter

    return TraceWriter(path, on_failure)


def write(path: str, content: bytes) -> None:
    """Writes a file whole or not at all; ``-`` is standard output."""
    from svmkit.io.outputs import atomic_output

    with atomic_output(path) as file:
        file.write(content)
