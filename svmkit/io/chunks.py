"""Data files part by part, for pipes and for what is larger than memory: the same lines by the same parser.

Memory is that of a part, whatever the file's size. ``read_chunks`` is for learning: what a pipe has delivered is handed on
within a second, so that a slow stream is learned from as it comes; from a compressed one, what can be unpacked of it. Of a
damaged file all that stands before the damage comes first. ``read_parts`` is for answers, whose last digits may depend on the
examples that are looked at together: its parts are the same however the bytes come.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

import numpy as np

from svmkit.data import Chunk, Dataset
from svmkit.errors import DataError, reason_of
from svmkit.io.inputs import map_plain, open_bytes
from svmkit.io.libsvm_data import empty, line_of_row, parse_dataset, parse_up_to_fault
from svmkit.io.sparse_text import Text, count_newlines, let_go, line_start

#: Bytes of text to a chunk: many pieces of work for the parser, and few enough to be learned from in seconds.
CHUNK_BYTES = 1 << 22
#: Bytes of text to a part: answers to so much take far longer than it does to prepare a model for them.
PART_BYTES = 1 << 23

#: Makes examples of some lines of a file, the first of which has that number.
Parse = Callable[[Text, int], Dataset]


def read_chunks(
    path: str,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    on_warning: Callable[[str], None] | None = None,
) -> Iterator[Chunk]:
    """The examples in ``path`` in order, in chunks of about ``chunk_bytes`` of text; none is empty.

    Reads as ``libsvm_data.read_dataset`` does; of dropped words only the first chunk that has some is told. Raises DataError
    after the examples before a bad line, with the line's number in the file, and where there is no example at all.
    """
    tell, found = once(on_warning), False
    for text, first_line in _numbered(_read(path, chunk_bytes)):
        dataset, fault = parse_up_to_fault(text, path, first_line, tell)
        if dataset.n:
            found = True
            yield Chunk(dataset, _where(path, text, first_line))
        if fault is not None:
            raise fault
    if not found:
        raise empty(path)


def read_parts(
    path: str,
    *,
    precomputed: bool = False,
    may_be_empty: bool = False,
    on_warning: Callable[[str], None] | None = None,
) -> Iterator[Chunk]:
    """The examples in ``path`` in order, in parts of about ``PART_BYTES`` of text; none is empty.

    Reads as ``read_chunks`` does, and ``precomputed`` as ``libsvm_data.read_dataset``, but hands on nothing of a part with a
    bad line. A file of no byte is refused too, unless it ``may_be_empty``. The first part is read before this returns: what is
    wrong with a small file is known before anything is made of it.
    """
    tell = once(on_warning)
    parts = _parts(
        path,
        lambda text, line: parse_dataset(text, path, precomputed=precomputed, first_line=line, on_warning=tell),
        may_be_empty,
    )
    return chain(list(islice(parts, 1)), parts)


def passes_over(path: str, parse: Parse, *, may_be_empty: bool = False) -> Callable[[], Iterable[Dataset]]:
    """What gives the examples in parts of ``path``, as ``parse`` makes them of text and first line, as often as it is called.

    A file is read again each time, and refused (DataError) if it has changed; what else can be read only once is kept.
    """
    if path == "-" or not os.path.isfile(path):
        kept = [part.dataset for part in _parts(path, parse, may_be_empty)]  # not their text
        return lambda: kept
    before = _state_of(path)

    def again() -> Iterator[Dataset]:
        for part in _parts(path, parse, may_be_empty):
            yield part.dataset
        if _state_of(path) != before:
            raise DataError(f"can't read input file {path}", "it was changed meanwhile; its content must stay as it is")

    return again


def _state_of(path: str) -> tuple[int, int]:
    """Its size, and when it was written last."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise DataError(f"can't read input file {path}", reason_of(error)) from None
    return status.st_size, status.st_mtime_ns


def _parts(path: str, parse: Parse, may_be_empty: bool) -> Iterator[Chunk]:
    plain = map_plain(path)
    texts = _read(path, PART_BYTES, patient=True) if plain is None else _cut(plain, PART_BYTES)
    some_text = some_example = False
    for text, first_line in _numbered(texts):
        some_text = True
        dataset = parse(text, first_line)
        if dataset.n:
            some_example = True
            yield Chunk(dataset, _where(path, text, first_line))
    if not some_example and (some_text or not may_be_empty):
        raise empty(path)


def once(on_warning: Callable[[str], None] | None) -> Callable[[str], None]:
    """``on_warning`` for the first of many warnings of one kind."""
    left = [] if on_warning is None else [on_warning]
    return lambda warning: left.pop()(warning) if left else None


def _where(path: str, text: Text, first_line: int) -> Callable[[int], str]:
    return lambda row: f"{path}, line {first_line - 1 + line_of_row(text, row)}"


def _numbered(texts: Iterator[Text]) -> Iterator[tuple[Text, int]]:
    """Each of a file's parts, and the number of its first line."""
    first_line = 1
    for text in texts:
        yield text, first_line
        first_line += count_newlines(text, len(text))


def _cut(text: Text, size: int) -> Iterator[Text]:
    """A mapped file as ``_read`` cuts it, patiently; nothing is copied, and what has been used leaves memory."""
    first = 0
    for start in range(0, len(text), size):
        block = text[start : start + size]
        behind = line_start(block, size) if len(block) == size else len(block)
        if behind:
            end = start + behind
            yield text[first:end]
            let_go(text, 0, end)  # from the start: a look at the next part may have brought back pages before it
            first = end
    if first < len(text):
        yield text[first:]


def _read(path: str, size: int, patient: bool = False) -> Iterator[Text]:
    """The file as it comes or, patiently, ``size`` bytes at a time; cut behind newlines, and a longer line stays whole.

    A last line without a newline stands alone where what comes before may be the end; patiently, a short block is known to be.
    """
    with open_bytes(path) as read:
        rest: list[bytes] = []
        while block := _in_full(read, size) if patient else read(size):
            end = len(block) if patient and len(block) < size else block.rfind(b"\n") + 1
            if end:
                yield np.frombuffer(b"".join([*rest, memoryview(block)[:end]]), dtype=np.uint8)
                rest = [block[end:]] if end < len(block) else []
            else:
                rest.append(block)
        if rest:
            yield np.frombuffer(b"".join(rest), dtype=np.uint8)


def _in_full(read: Callable[[int], bytes], n: int) -> bytes:
    """The next n bytes, fewer only at the end, however often a pipe pauses."""
    blocks, size = [], 0
    while size < n and (block := read(n - size)):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)
