"""LIBSVM's model files: a header of keys, then one line a support vector, ``coef … coef index:value index:value``.

Style "native" writes every number so that it reads back exactly; style "libsvm" writes what svm-train writes for the same
model, byte for byte (values cut to 8 digits). Both are LIBSVM's format, so svm-predict reads them. What is read is checked in
full: a file cut short or damaged is refused with the line that breaks it. A model of each class against the rest has the
key ``multiclass ovr`` and a coefficient a class in every line, one over random Fourier features the key ``feature_map`` with
what these are drawn by; svm-predict refuses either because of that key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from svmkit import maps
from svmkit.config import KERNEL_NUMBERS, KERNELS, SVM_TYPES
from svmkit.data import Floats, Ints, Rows
from svmkit.errors import DataError, ModelError
from svmkit.features import feature_names, places_of
from svmkit.io.inputs import map_bytes
from svmkit.io.numbers_out import shortest, significant
from svmkit.io.outputs import atomic_output
from svmkit.io.sparse_text import Text, TextError, count_newlines, line_end, parse
from svmkit.io.texts import Texts, by_rows, joined, lines
from svmkit.maps import FeatureMap
from svmkit.model import Model, count_machines
from svmkit.problem import LINEAR, PRECOMPUTED, Kernel

Style = Literal["native", "libsvm"]
#: Texts of numbers.
Format = Callable[[Floats], Texts]
#: Texts of coefficients, indices and values that are held at a time.
_TEXTS_AT_A_TIME = 1 << 16
#: Bytes at a file's end that are searched for its last line.
_TAIL = 4096

_KERNEL_KEYS = ("degree", "gamma", "coef0")
_NUMBER_KEYS = (*_KERNEL_KEYS, "nr_class", "total_sv", "rho", "label", "probA", "probB", "prob_density_marks", "nr_sv")
_KEYS = frozenset(("svm_type", "multiclass", "feature_map", "kernel_type", *_NUMBER_KEYS, "SV"))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BEYOND = re.compile(r"[+-]?(inf|nan)", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_INT32 = range(-(2**31), 2**31)


# --- writing ----------------------------------------------------------------------------------------------------------------


def write_model(path: str, model: Model, *, style: Style = "native") -> None:
    """Writes ``model`` to ``path``, which is complete or untouched. Raises OutputError where it cannot be written."""
    with atomic_output(path) as out:
        for piece in _pieces(model, style):
            out.write(piece)


def model_text(model: Model, *, style: Style = "native") -> bytes:
    """The file's bytes."""
    return b"".join(_pieces(model, style))


def _pieces(model: Model, style: Style) -> Iterator[bytes]:
    """The file's bytes, some rows at a time: the texts of all would take many times their room."""
    native = style == "native"
    exact = shortest if native else partial(significant, digits=17)
    brief = shortest if native else partial(significant, digits=8)
    for key, words in _header(model, exact):
        yield key.encode("ascii")
        for some in words:
            yield b" " + some.encode("ascii")
        yield b"\n"
    yield b"SV\n"
    rows, coef = model.rows, model.coef
    texts_a_row = coef.shape[1] + 2 * len(rows.data) // max(rows.n, 1) + 1
    step = max(1, _TEXTS_AT_A_TIME // texts_a_row)
    for first in range(0, rows.n, step):
        last = min(first + step, rows.n)
        yield _support_text(rows.part(first, last), coef[first:last], exact, brief)


def _word(value: object) -> str:
    """The text of a number, truth value or text that ``_value`` reads back."""
    return repr(value).strip("'")


def _header(model: Model, exact: Format) -> Iterator[tuple[str, Iterable[str]]]:
    """Its keys and what stands behind each."""
    kernel = model.kernel
    yield "svm_type", [model.svm_type]
    if model.multiclass == "ovr":
        yield "multiclass", ["ovr"]
    if model.map is not None:
        yield "feature_map", (f"{name}={_word(value)}" for name, value in model.map.to_dict().items())
    yield "kernel_type", [kernel.name]
    for name in KERNEL_NUMBERS[kernel.name]:
        value = getattr(kernel, name)
        yield name, [str(value)] if name == "degree" else _listed(np.array([value]), exact)
    yield "nr_class", [str(model.n_class)]
    yield "total_sv", [str(model.n_support)]
    yield "rho", _listed(model.rho, exact)
    if model.labels is not None:
        yield "label", map(str, model.labels.tolist())
    for key, numbers in (("probA", model.prob_a), ("probB", model.prob_b), ("prob_density_marks", model.density_marks)):
        if numbers is not None:
            yield key, _listed(numbers, exact)
    if model.class_counts is not None:
        yield "nr_sv", map(str, model.class_counts.tolist())


def _listed(numbers: Floats, exact: Format) -> Iterator[str]:
    """All of them, some at a time: of a thousand classes there is half a million of rho."""
    return (exact(numbers[k : k + _TEXTS_AT_A_TIME]).line() for k in range(0, len(numbers), _TEXTS_AT_A_TIME))


def _support_text(rows: Rows, coef: Floats, exact: Format, brief: Format) -> bytes:
    """Lines after ``SV``."""
    n = len(coef)
    if rows.precomputed:  # a pair 0:serial in each
        features, which = np.zeros(1, np.int32), np.zeros(n, np.int64)
        bounds, values = np.arange(n + 1), rows.serial.astype(np.float64)
    else:
        features, bounds, values = feature_names(rows), rows.indptr, rows.data
        which = places_of(features, rows.indices).astype(np.int64)
    heads = by_rows(exact(coef.ravel()), coef.shape[1], " ")
    names = joined([f"{number}:" for number in features.tolist()])
    before_pair, at_end = np.zeros(len(values), np.int64), np.zeros(n, np.int64)
    no_gaps, no_text = (before_pair, before_pair, at_end), np.empty(0, np.uint8)
    return lines(heads, bounds, no_gaps, names, which, brief(values), " ", no_text)


# --- reading ----------------------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A header line: its number in the file and the words after the key, in lines that follow too."""

    number: int
    words: list[str]


class _Header:
    """The header's lines by key, and the errors of this file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[str, _Line] = {}

    def fail(self, number: int, why: str) -> NoReturn:
        raise ModelError(f"{self.path}, line {number}: {why}")

    def line(self, key: str) -> _Line:
        if key not in self.lines:
            raise ModelError(f"{self.path}: the key `{key}` is missing from the header: not a LIBSVM model, or a damaged one")
        return self.lines[key]

    def words(self, key: str, count: int) -> _Line:
        line = self.line(key)
        if len(line.words) != count:
            self.fail(line.number, f"`{key}` must have {count} value{'s' * (count != 1)}, not {len(line.words)}")
        return line

    def floats(self, key: str, count: int, *, beyond: bool = False) -> Floats:
        """Finite numbers; ``beyond`` them also inf and nan, which LIBSVM may compute (rho with ``-s 2 -n 1``)."""
        line = self.words(key, count)
        return np.array([self._number(line.number, key, word, beyond) for word in line.words], dtype=np.float64)

    def ints(self, key: str, count: int, least: int = _INT32.start) -> Ints:
        line = self.words(key, count)
        return np.array([self._integer(line.number, key, word, least) for word in line.words], dtype=np.int64)

    def _number(self, number: int, key: str, word: str, beyond: bool) -> float:
        odd = beyond and _BEYOND.fullmatch(word)
        value = float(word) if odd or _NUMBER.fullmatch(word) else math.nan
        if not (odd or math.isfinite(value)):
            self.fail(number, f"`{key}`: {_shown(word)!r} is not a finite number")
        return value

    def _integer(self, number: int, key: str, word: str, least: int) -> int:
        if not _INTEGER.fullmatch(word) or int(word) not in _INT32:
            self.fail(number, f"`{key}`: {_shown(word)!r} is not an integer below 2^31 in size")
        if int(word) < least:
            self.fail(number, f"`{key}`: {word} must be at least {least}")
        return int(word)


def read_model(path: str) -> Model:
    """The model in the file ``path`` (``-`` is standard input; compression is undone).

    Raises ModelError where it cannot be opened, or, with file, line and reason, where it is not a whole LIBSVM model.
    """
    try:
        text = map_bytes(path)
    except DataError as error:
        raise ModelError(f"can't open model file {path}: {error.detail}") from None
    return _model_in(text, path)


def parse_model(text: bytes, path: str) -> Model:
    """The model in ``text``; ``path`` is for messages. Raises ModelError as ``read_model``."""
    return _model_in(np.frombuffer(text, dtype=np.uint8), path)


def _model_in(text: Text, path: str) -> Model:
    header, support_at = _read_header(text, path)
    svm_type = _one_of(header, "svm_type", SVM_TYPES, "unknown svm type.")
    kernel = _read_kernel(header)
    feature_map = _read_map(header, kernel)
    n_class = int(header.ints("nr_class", 1, least=1)[0])
    total = int(header.ints("total_sv", 1, least=0)[0])
    labels = counts = None
    multiclass = _read_multiclass(header, n_class)
    n_machines = count_machines(n_class, multiclass)
    if svm_type in ("c_svc", "nu_svc"):
        labels, counts = _read_classes(header, n_class, total)
    elif n_class != 2:
        header.fail(header.line("nr_class").number, f"`nr_class` of a {svm_type} model must be 2, not {n_class}")
    rho = header.floats("rho", n_machines, beyond=True)
    table, rows = _read_support(
        text, support_at, header, kernel, total, n_class if multiclass == "ovr" else max(n_class - 1, 1)
    )
    if feature_map is not None and rows.n_features > feature_map.dim:
        why = f"`feature_map` has {feature_map.dim} features, and there is a weight for feature {rows.n_features}"
        header.fail(header.line("feature_map").number, why)
    return Model(
        svm_type=svm_type,
        kernel=kernel,
        rows=rows,
        coef=table,
        rho=rho,
        labels=labels,
        class_counts=counts,
        prob_a=header.floats("probA", n_machines, beyond=True) if "probA" in header.lines else None,
        prob_b=header.floats("probB", n_machines, beyond=True) if "probB" in header.lines else None,
        density_marks=header.floats("prob_density_marks", 10) if "prob_density_marks" in header.lines else None,
        multiclass=multiclass,
        map=feature_map,
    )


def _read_header(text: Text, path: str) -> tuple[_Header, int]:
    """The header and where the support vectors begin."""
    header, at, number = _Header(path), 0, 0
    while at < len(text):
        end = line_end(text, at)
        number += 1
        words = text[at:end].tobytes().decode("latin-1").split()
        at = end + 1
        if not words:
            continue
        key = words[0]
        last = next(reversed(header.lines), "")
        if last in _NUMBER_KEYS and all(_NUMBER.fullmatch(word) or _BEYOND.fullmatch(word) for word in words):
            header.lines[last].words.extend(words)  # a long list may go on in another line
            continue
        if key not in _KEYS:
            header.fail(number, f"unknown text in model file: [{_shown(key)}]")
        if key in header.lines:
            header.fail(number, f"`{key}` stands here a second time")
        header.lines[key] = _Line(number, words[1:])
        if key == "SV":
            header.words("SV", 0)
            return header, at
    raise ModelError(f"{path}: ends after line {number} without its support vectors (no line `SV`): not a model, or cut short")


def _shown(text: str) -> str:
    """At most 80 printable characters of ``text``, for a message."""
    return "".join(c if c.isprintable() else "?" for c in text[:80])


def _one_of(header: _Header, key: str, names: tuple[str, ...], otherwise: str) -> str:
    number, (word,) = header.words(key, 1)
    if word not in names:
        header.fail(number, f"{otherwise} `{key}` is {_shown(word)!r}, not one of {', '.join(names)}")
    return word


def _read_multiclass(header: _Header, n_class: int) -> str:
    """How several classes are told apart; LIBSVM's way where nothing is said."""
    if "multiclass" not in header.lines:
        return "ovo"
    line = header.line("multiclass")
    _one_of(header, "multiclass", ("ovr",), "unknown way to tell classes apart.")
    if header.line("svm_type").words != ["c_svc"] or n_class < 3 or "probA" in header.lines:
        header.fail(line.number, "`multiclass ovr` belongs to a c_svc model of three classes or more, without probabilities")
    return "ovr"


def _read_map(header: _Header, kernel: Kernel) -> FeatureMap | None:
    """The map whose features the support vectors are of."""
    if "feature_map" not in header.lines:
        return None
    line = header.line("feature_map")
    pairs = [word.partition("=") for word in line.words]
    stored: dict[str, Any] = {name: _value(text) for name, _, text in pairs}
    if kernel.kind != LINEAR or stored.get("map") != "fourier":
        header.fail(line.number, "`feature_map` stands for Fourier features under the linear kernel")
    try:
        return maps.from_dict(stored)
    except ModelError as error:
        header.fail(line.number, str(error))


def _value(text: str) -> Any:
    """The number or truth value that ``text`` is, or the text itself."""
    if text in ("True", "False"):
        return text == "True"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _read_kernel(header: _Header) -> Kernel:
    """The kernel, with the numbers that its kind uses."""
    name = _one_of(header, "kernel_type", KERNELS, "unknown kernel function.")
    kernel, used = Kernel(KERNELS.index(name)), KERNEL_NUMBERS[name]
    for key in _KERNEL_KEYS:
        if key in header.lines:  # one that this kernel does not use is one number, too
            header.words(key, 1)
    if "degree" in used:
        kernel = kernel._replace(degree=int(header.ints("degree", 1, least=0)[0]))
    if "gamma" in used:
        kernel = kernel._replace(gamma=float(header.floats("gamma", 1)[0]))
        if kernel.gamma < 0:
            header.fail(header.line("gamma").number, f"`gamma` is {kernel.gamma:g}, it must not be negative")
    if "coef0" in used:
        kernel = kernel._replace(coef0=float(header.floats("coef0", 1)[0]))
    return kernel


def _read_classes(header: _Header, n_class: int, total: int) -> tuple[Ints, Ints]:
    labels, counts = header.ints("label", n_class), header.ints("nr_sv", n_class, least=0)
    if len(set(labels.tolist())) < n_class:
        header.fail(header.line("label").number, "`label` names a class twice")
    if counts.sum() != total:
        header.fail(header.line("nr_sv").number, f"`nr_sv` adds up to {counts.sum()}, `total_sv` is {total}")
    if n_class == 1 and total:
        header.fail(header.line("total_sv").number, "a model of one class has no support vectors")
    return labels, counts


def _read_support(text: Text, at: int, header: _Header, kernel: Kernel, total: int, n_coef: int) -> tuple[Floats, Rows]:
    """Coefficients (total, n_coef) and support vectors from ``text[at:]``."""
    first = header.line("SV").number + 1
    body = text[at:]
    body = body[: _end_of_lines(body)]
    if len(body) and body[-1] != ord("\n"):
        header.fail(first + count_newlines(body, len(body)), "the file ends within this line: it was cut short")
    try:
        found = parse(body, n_leading=n_coef, notes=False, subnormal=True)
    except TextError as error:
        header.fail(first - 1 + error.line, f"column {error.column}: '{error.token}': {error.reason}")
    n = len(found.leading)
    if n < total:
        header.fail(first + n, f"`total_sv` is {total}, but the file ends after {n} support vectors: it was cut short")
    if n > total:
        header.fail(first + total, f"`total_sv` is {total}, but more lines follow, {n} in all")
    rows = Rows(found.data, found.indices, found.indptr, found.max_index)
    return found.leading, _serial_rows(rows, header, first) if kernel.kind == PRECOMPUTED else rows


def _end_of_lines(body: Text) -> int:
    """Where the last line with something in it ends, blank ones after it being an editor's; the whole if it has no end."""
    tail = body[-_TAIL:].tobytes()
    before, filled = len(body) - len(tail), len(tail.rstrip())
    if not before and not filled:
        return 0
    end = tail.find(b"\n", filled)
    return len(body) if end < 0 else before + end + 1


def _serial_rows(rows: Rows, header: _Header, first: int) -> Rows:
    """Support vectors of a precomputed kernel, whose lines hold one pair ``0:serial``."""
    bad = np.flatnonzero(np.diff(rows.indptr) != 1)
    if len(bad) == 0:
        bad = np.flatnonzero((rows.indices != 0) | (rows.data < 1) | (rows.data >= 2**31) | (rows.data % 1 != 0))
    if len(bad):
        header.fail(first + int(bad[0]), "a support vector of a precomputed kernel is one pair `0:serial`, serial 1 or more")
    empty = np.zeros(rows.n + 1, dtype=np.int64)
    return Rows(np.empty(0), np.empty(0, dtype=np.int32), empty, 0, serial=rows.data.astype(np.int64))
