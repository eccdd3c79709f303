"""A loader for the object files that LLVM makes of our functions, in place of LLVM's own.

Importing llvmlite, setting LLVM up and taking it down again costs 60 ms in every process, a third of a short run. But an object
compiled for x86-64's large code model asks for little: its sections copied into memory, 64-bit addresses written into them.
Where an object holds anything else ``load`` declines, and LLVM must do it (_llvm.py).
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from functools import cache

_HEADER = struct.Struct("<8s8xHH20xQ10xHH2x")  # magic, type, machine; section headers: offset, size of one, number
_SECTION = struct.Struct("<4xIQ8xQQIIQ8x")  # type, flags, offset, size, link, info, alignment
_SYMBOL = struct.Struct("<I2xHQ8x")  # name, section, value
_RELOCATION = struct.Struct("<QIIq")  # offset, type, symbol, addend
_WORD = struct.Struct("<Q")
_OBJECT_X86_64 = (b"\x7fELF\x02\x01\x01\x00", 1, 62)
_SYMBOLS, _ADDENDS, _ZEROS, _NO_ADDENDS = 2, 4, 8, 9  # types of sections
_ALLOCATED = 2
_ABSOLUTE_64, _RELATIVE_64 = 1, 24
_UNDEFINED = 0
_kept: list[mmap.mmap] = []


def load(code: bytes, function: str) -> int | None:
    """Puts the object ``code`` into memory for good; the address of ``function`` in it, None where LLVM has to do this."""
    try:
        *kind, at, size, number = _HEADER.unpack_from(code)
        if tuple(kind) != _OBJECT_X86_64:
            return None
        sections = [_SECTION.unpack_from(code, at + size * k) for k in range(number)]
        memory, places = _copied(code, sections)
        entry = _relocated(code, sections, memory, places, function)
    # A damaged object, or a name that nothing defines.
    except (struct.error, LookupError, StopIteration, ValueError, AttributeError, OSError):
        return None
    base, length = ctypes.c_void_p(_address(memory)), ctypes.c_size_t(len(memory))
    if entry is None or _library(None).mprotect(base, length, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        return None
    _kept.append(memory)
    return entry


def _copied(code: bytes, sections: list[tuple[int, ...]]) -> tuple[mmap.mmap, dict[int, int]]:
    """New memory that holds the sections which are to be there, and the address of each."""
    content = bytearray()
    offsets = {}
    for k, (kind, flags, offset, size, _, _, alignment) in enumerate(sections):
        if flags & _ALLOCATED and size:
            content += bytes(-len(content) % max(alignment, 1))
            offsets[k] = len(content)
            content += bytes(size) if kind == _ZEROS else code[offset : offset + size]
    memory = mmap.mmap(-1, len(content), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = bytes(content)
    return memory, {k: _address(memory) + offset for k, offset in offsets.items()}


def _relocated(
    code: bytes, sections: list[tuple[int, ...]], memory: mmap.mmap, places: dict[int, int], function: str
) -> int | None:
    """Writes the addresses that the object leaves open; returns that of ``function``, None for a kind it does not know."""
    (table,) = (section for section in sections if section[0] == _SYMBOLS)
    names = sections[table[4]][2]

    def name_of(start: int) -> str:
        return code[names + start : code.index(0, names + start)].decode()

    symbols: list[tuple[int, int, int]] = list(_SYMBOL.iter_unpack(code[table[2] : table[2] + table[3]]))
    for kind, _, offset, size, _, info, _ in sections:
        if info not in places or kind not in (_ADDENDS, _NO_ADDENDS):
            continue
        if kind == _NO_ADDENDS:
            return None
        start = places[info] - _address(memory)
        for at, form, number, addend in _RELOCATION.iter_unpack(code[offset : offset + size]):
            name, section, value = symbols[number]
            if form not in (_ABSOLUTE_64, _RELATIVE_64):
                return None
            address = _external(name_of(name)) if section == _UNDEFINED else places[section] + value
            base = places[info] + at if form == _RELATIVE_64 else 0
            _WORD.pack_into(memory, start + at, (address + addend - base) % 2**64)
    name, section, value = next(symbol for symbol in symbols if symbol[1] in places and name_of(symbol[0]) == function)
    return places[section] + value


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _external(name: str) -> int:
    """The address of a function of the C library. Raises AttributeError or OSError if there is none."""
    library = _library(None) if hasattr(_library(None), name) else _library("libm.so.6")
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


@cache
def _library(name: str | None) -> ctypes.CDLL:
    return ctypes.CDLL(name)
