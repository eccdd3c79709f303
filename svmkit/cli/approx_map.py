"""``svmkit approx --map`` and ``--load``: data with mapped features in place of its own, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from svmkit.cli import files
from svmkit.cli.progress import Reporter
from svmkit.cli.report import counted
from svmkit.config import TrainConfig

if TYPE_CHECKING:
    from svmkit.data import Chunk, Dataset
    from svmkit.maps import FeatureMap

#: Features that are made at a time, 16 MB, and their text, ten times that at most.
_VALUES = 1 << 22


def run(data: str, output: str, config: TrainConfig, save: str | None, load: str | None, quiet: bool) -> None:
    """Maps ``data`` to ``output``, part by part; all of it is in memory only where the map is made of it."""
    files.refuse_shared_input(DATA=data, load=load)
    files.refuse_shared_output(OUTPUT=output, save=save)
    files.check_output(output, data, load)
    if save is not None:
        files.check_output(save, data, output)
    with Reporter(quiet) as reporter:
        files.begin(config.threads, reporter)
        if load is not None:
            from svmkit.io.map_file import read_map

            feature_map, parts = read_map(load), _chunks(data, reporter)
        elif config.map == "fourier" and config.gamma and not config.orthogonal:
            feature_map, parts = _made(None, config, reporter), _chunks(data, reporter)
        else:
            dataset = files.read_data(data, reporter)
            feature_map, parts = _made(dataset, config, reporter), _whole(dataset)
        n = _write(output, parts, feature_map, save, reporter)
        reporter.note(f"{counted(n, 'example')} of {counted(feature_map.dim, 'feature')} written")


def _made(dataset: Dataset | None, config: TrainConfig, reporter: Reporter) -> FeatureMap:
    """The map made of the data; of none where it does not depend on them, as independent frequencies do not."""
    from svmkit import maps
    from svmkit.data import NO_ROWS
    from svmkit.pairs import kernel_of

    rows, y = (NO_ROWS, None) if dataset is None else (dataset.rows, dataset.y)
    return maps.fit(rows, kernel_of(config, rows.n_features), config, y, reporter.doing)


def _chunks(data: str, reporter: Reporter) -> Iterator[Chunk]:
    from svmkit.io.chunks import read_parts

    return read_parts(data, on_warning=reporter.warn)


def _whole(dataset: Dataset) -> Iterator[Chunk]:
    from svmkit.data import Chunk

    yield Chunk(dataset, lambda row: f"{dataset.source}, example {row + 1}")


def _write(output: str, parts: Iterator[Chunk], feature_map: FeatureMap, save: str | None, reporter: Reporter) -> int:
    """Writes all parts, and the map where it is to be saved; neither without the other. Returns the number of examples."""
    from svmkit.io.dense_text import lines
    from svmkit.io.outputs import atomic_output
    from svmkit.maps import refuse_infinite

    n, step = 0, max(1, _VALUES // max(1, feature_map.dim))
    with atomic_output(output) as out:
        for chunk in parts:
            for first in range(0, chunk.dataset.n, step):
                last = min(first + step, chunk.dataset.n)
                features = feature_map.transform(chunk.dataset.rows.part(first, last))
                refuse_infinite(features, lambda row, chunk=chunk, first=first: chunk.where(first + row))  # type: ignore[misc]
                for text in lines(chunk.dataset, first, features):
                    out.write(text)
                n += last - first
                reporter.show(lambda elapsed, n=n: f"{elapsed:.1f} s, {n:,} examples mapped")  # type: ignore[misc]
        if save is not None:
            from svmkit.io.map_file import write_map

            write_map(save, feature_map)
    return n
