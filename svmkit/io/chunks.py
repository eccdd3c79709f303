"""Data files part by part, for pipes and for what is larger than memory: the same lines by the same parser.

Memory is that of a part, whatever the file's size. What a pipe has delivered is handed on within a second, so that a slow
stream is learned from as it comes; from a compressed one, what can be unpacked of it. Of a damaged file all that stands before
the damage comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from svmkit.data import Chunk
from svmkit.io.files import open_bytes
from svmkit.io.libsvm_data import empty, line_of_row, parse_up_to_fault
from svmkit.io.sparse_text import Text, count_newlines

#: Bytes of text to a chunk: many pieces of work for the parser, and few enough to be learned from in seconds.
CHUNK_BYTES = 1 << 22


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
    first_line, found = 1, False
    for content in _whole_lines(path, chunk_bytes):
        text = np.frombuffer(content, dtype=np.uint8)
        warned: list[str] = []
        dataset, fault = parse_up_to_fault(text, path, first_line, warned.append)
        if warned and on_warning is not None:
            on_warning(warned[0])
            on_warning = None
        if dataset.n:
            found = True
            yield Chunk(dataset, _where(path, text, first_line))
        if fault is not None:
            raise fault
        first_line += count_newlines(text, len(text))
    if not found:
        raise empty(path)


def _where(path: str, text: Text, first_line: int) -> Callable[[int], str]:
    return lambda row: f"{path}, line {first_line - 1 + line_of_row(text, row)}"


def _whole_lines(path: str, chunk_bytes: int) -> Iterator[bytes]:
    """The file's content, cut behind newlines; a line longer than a chunk stays whole."""
    with open_bytes(path) as read:
        rest: list[bytes] = []
        while block := read(chunk_bytes):
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*rest, block[:end]])
                rest = [block[end:]] if end < len(block) else []
            else:
                rest.append(block)
        if rest:
            yield b"".join(rest)
