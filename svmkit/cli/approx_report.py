"""``svmkit approx --report``: the error of every map's kernel matrix against its number of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from svmkit.cli import files, pictures
from svmkit.cli.progress import Reporter
from svmkit.cli.report import to_json
from svmkit.config import ROW_LANDMARKS, TrainConfig
from svmkit.errors import TooLargeError, UsageError

if TYPE_CHECKING:
    from svmkit.data import Dataset

#: Stream of random numbers that the sample is drawn by, apart from those of the maps.
_SAMPLE = 1 << 44
_MEASURES = {"spectral": "spectral norm", "frobenius": "Frobenius norm"}


def run(
    data: str, config: TrainConfig, dims: Sequence[int], sample: int, picture: str | None, as_json: bool, quiet: bool
) -> None:
    """Prints the table, and draws it where asked. What cannot be measured is told, and left out."""
    if picture == "-":
        raise UsageError("--picture -: the table goes to standard output; name a file")
    if picture is not None:
        if not pictures.available():
            raise UsageError("--picture: matplotlib cannot be imported; pip install svmkit[plot] brings it")
        files.check_output(picture, data)
    with Reporter(quiet) as reporter:
        files.begin(config.threads, reporter)
        dataset = files.read_data(data, reporter)
        found = []
        dims = sorted(set(dims))
        beyond = [str(dim) for dim in dims if dim > dataset.n]
        if beyond and config.map != "fourier":
            reporter.note(f"nystroem is left out with {', '.join(beyond)} features: only {dataset.n} rows can be landmarks")
        for row in _measured(dataset, config, dims, sample, reporter):
            found.append(row)
            reporter.show(lambda elapsed, row=row: f"{elapsed:.1f} s, {row['map']} with {row['dim']} features")  # type: ignore[misc]
    if not found:
        raise UsageError(f"--dims: nothing to measure, as nystroem has no more features than DATA has rows, {dataset.n}")
    if picture is not None:
        files.write(picture, _picture(found))
    click.echo(to_json({"n": dataset.n, "sample": min(sample, dataset.n), "errors": found}) if as_json else _table(found))


def _kinds(config: TrainConfig, indefinite: bool) -> list[tuple[str, dict[str, Any]]]:
    """The maps to be measured, by name, with their settings: all, or those of the one that is asked for.

    Pivoted landmarks of a kernel that may be indefinite are left out, being uniform ones.
    """
    kinds: list[tuple[str, dict[str, Any]]] = []
    if config.map in (None, "nystroem"):
        names = [name for name in ROW_LANDMARKS if name != "pivoted" or not indefinite]
        kinds += [(f"nystroem {name}", {"map": "nystroem", "landmarks": name}) for name in names]
    if config.map == "fourier" or (config.map is None and config.kernel == "rbf"):
        kinds += [("fourier", {"map": "fourier", "orthogonal": False})]
        kinds += [("fourier orthogonal", {"map": "fourier", "orthogonal": True})]
    return kinds


def _measured(
    dataset: Dataset, config: TrainConfig, dims: Sequence[int], sample: int, reporter: Reporter
) -> Iterator[dict[str, Any]]:
    """One map and number of features after another, with its errors; no more landmarks than rows.

    ``dim`` is the number asked for, ``features`` the number that the map has: fewer where the kernel's rank is less.
    """
    import numpy as np

    from svmkit import maps
    from svmkit.engine import rng
    from svmkit.maps.quality import errors, kernel_matrix, norms
    from svmkit.pairs import kernel_of

    rows, kernel = dataset.rows, kernel_of(config, dataset.n_features)
    some = rows.take(np.sort(rng.permutation(config.seed, _SAMPLE, rows.n)[:sample]))
    K = kernel_matrix(some, kernel)
    whole = reporter.during("the kernel matrix is measured", partial(norms, K))
    for name, settings in _kinds(config, kernel.indefinite):
        for dim in dims:
            if settings["map"] == "nystroem" and dim > rows.n:
                continue
            try:
                made = maps.fit(rows, kernel, replace(config, dim=dim, **settings), dataset.y, reporter.doing)
            except TooLargeError as error:
                reporter.warn(f"{name} is left out with {dim} features: {error}")
                continue
            found = reporter.during(f"{name} with {dim} features is measured", partial(errors, made, some, K, whole))
            yield {"map": name, "dim": dim, "features": made.dim, **found._asdict()}


def _table(found: list[dict[str, Any]]) -> str:
    """A line a map and number of features."""
    lines = [f"{'map':<20}{'features':>10}{'spectral':>12}{'frobenius':>12}"]
    lines += [f"{row['map']:<20}{row['features']:>10}{row['spectral']:>12.4g}{row['frobenius']:>12.4g}" for row in found]
    return "\n".join(lines)


def _picture(found: list[dict[str, Any]]) -> bytes:
    """PNG: both errors against the number of features."""
    figure = pictures.new_figure(9.0, 4.2)
    for panel, (measure, label) in zip(figure.subplots(1, 2), _MEASURES.items(), strict=True):
        for number, name in enumerate(dict.fromkeys(row["map"] for row in found)):
            curve = [(row["features"], row[measure]) for row in found if row["map"] == name]
            panel.plot(*zip(*curve, strict=True), label=name, **pictures.style(number, len(curve)))
        if any(row["features"] for row in found):  # a logarithmic scale needs a number above 0
            panel.set_xscale("log", base=2)
        if any(row[measure] for row in found):
            panel.set_yscale("log", nonpositive="mask")
        pictures.name_axes(panel, "features", f"relative error, {label}")
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return pictures.png(figure)
