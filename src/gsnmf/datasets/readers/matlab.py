"""MATLAB files up to version 7, screened before SciPy reads them.

SciPy's reader trusts the type of every element of a version 5 file, and a damaged one can end the whole process. Here
the elements are walked through first; what is not an element of a known type within its bounds is an error.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, BinaryIO

import scipy.io

_TYPES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 15, 16, 17, 18})
"""Types of elements that the format defines."""
_MATRIX, _COMPRESSED = 14, 15
_HEADER = 128
_DEEPEST = 50
"""Cells within cells that are followed."""


def load_mat(stream: BinaryIO) -> dict[str, Any]:
    """The variables of a MATLAB file; a ValueError if it is damaged where SciPy would not notice."""
    header = stream.read(_HEADER)
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    if order is not None:
        _check_elements(memoryview(stream.read()), order, 0)
    stream.seek(0)
    opened: Any = stream
    found = scipy.io.loadmat(opened)
    return {name: value for name, value in found.items() if not name.startswith("__")}


def _check_elements(data: memoryview, order: str, depth: int) -> None:
    """Check that the data are whole elements of known types, one after another."""
    if depth > _DEEPEST:
        raise ValueError("cells are nested too deeply")
    at = 0
    while at < len(data):
        if len(data) - at < 8:
            raise ValueError("the last element is cut off")
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # up to four bytes beside the tag
            if kind & 0xFFFF not in _TYPES or kind & 0xFFFF in (_MATRIX, _COMPRESSED) or kind >> 16 > 4:
                raise ValueError(f"a short element has the unknown type {kind & 0xFFFF}")
            at += 8
            continue
        at += 8
        if kind not in _TYPES:
            raise ValueError(f"an element has the unknown type {kind}")
        if size > len(data) - at:
            raise ValueError("an element is larger than what holds it")
        inside = data[at : at + size]
        if kind == _COMPRESSED:
            _check_elements(memoryview(zlib.decompress(inside)), order, depth + 1)
        elif kind == _MATRIX:
            _check_elements(inside, order, depth + 1)
        at += size if kind == _COMPRESSED else size + (-size) % 8
