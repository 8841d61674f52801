"""Matrix Market files, screened before they are parsed.

SciPy's parser trusts its input: an unknown word in the header, or bytes that belong in no number, can crash the whole
process. So the header is read here, impossible sizes are refused before memory is allocated, and the parser sees only
lines of numbers.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import scipy.io

from gsnmf.datasets.readers.files import STANDARD_INPUT, FileError, open_bytes, reading
from gsnmf.datasets.readers.labelled import LabelledMatrix

_LAYOUTS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_NUMBERS = b"0123456789+-.eE \t\r\n"
_AT_ONCE = 1 << 20
_LONGEST_LINE = 1 << 16
"""Longest line of the head that is accepted, in bytes."""


@dataclass(frozen=True)
class _Head:
    """What the first lines of a file announce."""

    layout: str
    field: str
    symmetry: str
    shape: tuple[int, int]
    n_entries: int

    @property
    def fewest_bytes(self) -> int:
        """Smallest number of bytes for these entries: a digit and a separator for each number."""
        per_entry = 2 if self.layout == "array" else 4 if self.field == "pattern" else 6
        return max(0, per_entry * self.n_entries - 1)

    @property
    def memory(self) -> int:
        """Bytes that the matrix takes: all entries of an array; positions, values and starts of a sparse one."""
        m, n = self.shape
        return 8 * m * n if self.layout == "array" else 24 * self.n_entries + 8 * (m + n)


def read_matrix_market(path: Path) -> LabelledMatrix:
    """A Matrix Market file of real numbers, dense or sparse."""
    with reading(path, "a Matrix Market file"):
        with _repeatable(path) as stream:
            head = _read_head(stream, path)
            last = _screen(stream, head, path)
        with _repeatable(path, copy=stream) as whole:
            ended = (
                whole if last == b"\n" else io.BytesIO(whole.read() + b"\n")
            )  # or the parser may read on after the end
            values: Any = scipy.io.mmread(ended)
    return LabelledMatrix(values)


@contextmanager
def _repeatable(path: Path, copy: BinaryIO | None = None) -> Iterator[BinaryIO]:
    """The bytes of a file from the beginning; those of a pipe are kept in memory to be read twice."""
    if isinstance(copy, io.BytesIO):
        copy.seek(0)
        yield copy
    elif path == STANDARD_INPUT or not path.is_file():
        with open_bytes(path) as stream:
            content = io.BytesIO(stream.read())
        yield content
    else:
        with open_bytes(path) as stream:
            yield stream


def _line(stream: BinaryIO, path: Path) -> bytes:
    line = stream.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise FileError(f"{path}: cannot be read as a Matrix Market file: a line of its head is too long.")
    return line


def _read_head(stream: BinaryIO, path: Path) -> _Head:
    banner = _line(stream, path).decode("latin-1").lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise FileError(f"{path}: a Matrix Market file opens with: %%MatrixMarket matrix LAYOUT FIELD SYMMETRY.")
    for word, allowed in zip(banner[2:], (_LAYOUTS, _FIELDS, _SYMMETRIES), strict=True):
        if word not in allowed:
            raise FileError(f"{path}: its first line must have one of {', '.join(allowed)}; got {word[:40]!r}.")
    layout, field, symmetry = banner[2:]
    if layout == "array" and field == "pattern":
        raise FileError(f"{path}: an array must have a field of numbers; got 'pattern'.")
    line = _line(stream, path)
    while line and (line.startswith(b"%") or not line.strip()):
        line = _line(stream, path)
    words = line.split()
    wanted = 2 if layout == "array" else 3
    if len(words) != wanted or not all(word.isdigit() and len(word) < 19 for word in words):
        raise FileError(f"{path}: its sizes must be {wanted} integers; got {line[:40].decode('latin-1').strip()!r}.")
    m, n, *entries = (int(word) for word in words)
    if symmetry != "general" and m != n:
        raise FileError(f"{path}: a {symmetry} matrix must be square; got {m} x {n}.")
    if entries:
        return _Head(layout, field, symmetry, (m, n), entries[0])
    stored = {"general": m * n, "symmetric": m * (m + 1) // 2, "skew-symmetric": m * (m - 1) // 2}[symmetry]
    return _Head(layout, field, symmetry, (m, n), stored)


def _screen(stream: BinaryIO, head: _Head, path: Path) -> bytes:
    """Refuse a file that announces more than it holds or than fits in memory, or that holds anything but numbers.

    Returns its last byte.
    """
    available = _physical_memory()
    if head.memory > available:
        raise FileError(
            f"{path}: announces a matrix of {head.shape[0]} x {head.shape[1]}, which takes {head.memory / 1e9:.3g} GB; "
            f"this machine has {available / 1e9:.3g} GB."
        )
    n_bytes, last = 0, b""
    while block := stream.read(_AT_ONCE):
        n_bytes, last = n_bytes + len(block), block[-1:]
        strange = block.translate(None, _NUMBERS)
        if strange:
            raise FileError(f"{path}: entries must be numbers; got {strange[:1].decode('latin-1')!r} among them.")
    if last in (b"e", b"E", b"+", b"-"):
        raise FileError(f"{path}: ends in the middle of a number.")
    if n_bytes < head.fewest_bytes:
        raise FileError(f"{path}: announces {head.n_entries} entries, but has only {n_bytes} bytes of them.")
    return last


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 40
