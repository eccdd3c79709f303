"""The standard streams, made safe to rely on: all three open, and a standard output that takes everything or fails."""

from __future__ import annotations

import atexit
import errno
import io
import os
import sys
from contextlib import suppress
from math import prod
from typing import NoReturn, TextIO

from svmkit.errors import reason_of

#: What ends a write.
_OF_WRITING = (errno.EBADF, errno.EIO, errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EPIPE)
#: What the loader of libraries says where there is no memory for one.
_UNMAPPED = ("failed to map segment", "annot allocate memory")
#: The control characters, but for tabs, which stand between words of data.
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\t"}


def settle() -> None:
    """To be called before anything is opened.

    A stream that came closed is opened on the null device, the wrong way round for input and output, so that using them fails
    but no file can come to stand in their place; errors go nowhere. With PYTHONUNBUFFERED Python's standard output drops, and
    says nothing of it, what a full disk leaves over of a write: it gets a buffer, which does not. One that does not block would
    fail where its reader is slow: it is waited for. What its encoding lacks (λ in Latin-1) is written as an escape.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):  # there need not be a /dev
                os.open(os.devnull, mode)  # takes the lowest free number, which is this one
    if sys.stdout is None or isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115  (for the whole process)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  (likewise)
    if not _blocks(1):
        sys.stdout = _patient(1, sys.stdout.encoding)
    if not _blocks(2):
        sys.stderr = _patient(2, sys.stderr.encoding)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _blocks(number: int) -> bool:
    """Whether writing waits, where that can be known."""
    try:
        return os.get_blocking(number)
    except (AttributeError, OSError):  # on Windows known of pipes alone
        return True


def _patient(number: int, encoding: str) -> io.TextIOWrapper:
    """A stream on descriptor ``number`` that waits where that does not."""
    from svmkit.io.descriptors import Patient

    return io.TextIOWrapper(io.BufferedWriter(Patient(number)), encoding, "backslashreplace")


def complaint(error: Exception) -> str:
    """What went wrong, in words. With SVMKIT_DEBUG=1 what is nobody else's fault is raised again."""
    if isinstance(error, OSError):
        reason = reason_of(error)
        if error.filename is not None:
            return f"{error.filename}: {reason}"
        if error.errno in _OF_WRITING:  # other files are named
            return f"can't write to standard output: {reason}"
        return reason
    if isinstance(error, MemoryError) or _is_unmapped(error):
        return f"not enough memory for this{_asked_for(error)}"
    if os.environ.get("SVMKIT_DEBUG") == "1":
        raise error
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"unexpected error, a fault of svmkit's: {what}; please report it with the output of SVMKIT_DEBUG=1"


def _asked_for(error: Exception) -> str:
    """How much memory an array would have taken that could not be had, where NumPy says so: it tells which option to lower."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        return ""
    return f": {prod(shape) * dtype.itemsize / 1e9:,.1f} GB at once"


def _is_unmapped(error: Exception) -> bool:
    """Whether a library could not be loaded for want of memory, of which the loader's words alone tell."""
    return isinstance(error, ImportError) and any(words in str(error) for words in _UNMAPPED)


def shown(text: str) -> str:
    """``text`` with its control characters, as names of files may have, as escapes: a terminal obeys none of them."""
    return text.translate(_ESCAPES)


def tell(*lines: str, begin: str = "", end: str = "\n") -> None:
    """Writes ``lines``, ``shown``, to standard error; where that is full, or its reader has gone, the work goes on unheard."""
    try:
        print(begin + "\n".join(map(shown, lines)), end=end, file=sys.stderr, flush=True)
    except OSError:
        forget(sys.stderr)


def forget(stream: TextIO) -> None:
    """Points a standard stream at nothing, so that what is left in its buffer raises no second error when Python exits."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def leave(code: int) -> NoReturn:
    """Ends the process with exit code ``code``, without taking down what nobody will use again: modules, NumPy, LLVM.

    That saves a tenth of a short run and loses nothing: files are closed where they are written, exit functions are called, the
    streams flushed. A tracer or profiler sees Python's own end.
    """
    if sys.gettrace() is not None or sys.getprofile() is not None or _is_monitored():
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # what could not be written has been reported; ValueError: closed
            stream.flush()
    os._exit(code)


def _is_monitored() -> bool:
    """Whether there is a tracer or profiler by the means that Python has for them from 3.12 on."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(monitoring.get_tool(number) is not None for number in range(6))
