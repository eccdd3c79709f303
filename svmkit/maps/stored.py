"""Numbers out of what a file says of a map. All functions raise ModelError where it says no such thing."""

from __future__ import annotations

from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.errors import ModelError

_LARGEST = float_info.max


def entry(stored: Any, name: str) -> Any:
    """What is stored as ``name``, whatever it is."""
    if not isinstance(stored, dict) or name not in stored:
        raise ModelError(f"map: `{name}` is missing")
    return stored[name]


def whole(stored: Any, name: str, least: int, most: int) -> int:
    """A whole number, least … most."""
    value = entry(stored, name)
    if type(value) is not int or not least <= value <= most:
        raise _wrong(name, value, f"a whole number from {least} to {most}")
    return value


def real(stored: Any, name: str, least: float = -_LARGEST) -> float:
    """A finite number, ``least`` or more."""
    value = entry(stored, name)
    if type(value) not in (int, float) or not least <= value <= _LARGEST:
        raise _wrong(name, value, "a finite number" + (f" of {least:g} or more" if least > -_LARGEST else ""))
    return float(value)


def truth(stored: Any, name: str) -> bool:
    """A truth value."""
    value = entry(stored, name)
    if type(value) is not bool:
        raise _wrong(name, value, "a truth value")
    return value


def reals(stored: Any, name: str, ndim: int = 1) -> NDArray[np.float64]:
    """Finite numbers in ``ndim`` dimensions."""
    found = _array(stored, name, ndim)
    if found.size and (found.dtype.kind not in "iuf" or not np.isfinite(found).all()):
        raise _wrong(name, entry(stored, name), "a list of finite numbers")
    return found.astype(np.float64)


def counts(stored: Any, name: str) -> NDArray[np.int64]:
    """Whole numbers, 0 … 2^31 − 1."""
    found = _array(stored, name, 1)
    if found.size and (found.dtype.kind not in "iu" or not 0 <= found.min() <= found.max() < 2**31):
        raise _wrong(name, entry(stored, name), "a list of whole numbers from 0 to 2^31 - 1")
    return found.astype(np.int64)


def _array(stored: Any, name: str, ndim: int) -> NDArray[Any]:
    """An array of ``ndim`` dimensions; an empty list is one of any number."""
    value = entry(stored, name)
    try:
        found = np.array(value)
    except ValueError:  # rows of different lengths
        raise _wrong(name, value, "a list of numbers") from None
    found = found.reshape((0,) * ndim) if found.shape == (0,) else found
    if found.ndim != ndim:
        raise _wrong(name, value, f"a list of numbers in {ndim} dimensions")
    return found


def _wrong(name: str, value: Any, wanted: str) -> ModelError:
    text = ascii(value)
    return ModelError(f"map: `{name}` is {text if len(text) <= 40 else text[:37] + '...'}, not {wanted}")
