"""Errors meant for people: each message says what is wrong, where, why, and what to do.

The command line prints them line by line and exits with ``exit_code``; no traceback is shown.
"""

from __future__ import annotations

import errno


class SvmkitError(Exception):
    """Anything svmkit refuses to do, with a reason a user can act on; ``args`` are its lines."""

    exit_code = 1

    def __str__(self) -> str:
        return "\n".join(self.args)


class UsageError(SvmkitError):
    """An option that cannot be, or two that cannot be together."""

    exit_code = 2


class TooLargeError(UsageError):
    """More memory than is there for what is asked."""


class DataError(SvmkitError):
    """A data file that cannot be read as LIBSVM text, or does not suit what is asked of it.

    ``summary`` is LIBSVM's own first line where it has one (other tools match it), ``detail`` the file, column,
    token and reason.
    """

    def __init__(self, summary: str, detail: str = "") -> None:
        super().__init__(*filter(None, (summary, detail)))
        self.summary = summary
        self.detail = detail


class ModelError(SvmkitError):
    """A model file that is not one, is cut short, or cannot do what is asked of it."""


class Abandoned(SvmkitError):
    """Training that was given up before there was anything to make a model of; after a signal with that signal's exit code."""


class OutputError(SvmkitError):
    """An output that cannot be written: no such folder, no permission, no space."""


def reason_of(error: Exception) -> str:
    """The system's reason, without number and name; of a descriptor that is none, what has become of it."""
    if not isinstance(error, OSError):
        return str(error)
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
