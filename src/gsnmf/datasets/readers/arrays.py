"""Matrices as NumPy, MATLAB, Matrix Market and CLUTO write them.

SciPy's readers of MATLAB and Matrix Market files trust their input: an unknown type or word, or bytes that belong in
no number, can crash the whole process. So the structure of such a file is checked here before SciPy reads it, and
impossible sizes are refused before memory is allocated.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
import scipy.io
import scipy.sparse as sp

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.datasets.readers.files import (
    FileError,
    ReadOptions,
    decoded,
    open_seekable,
    open_text,
    read_lines,
    reading,
    shortened,
)

Names = tuple[str, ...]

_USUAL_KEYS = ("matrix", "M", "X", "data")
_SPARSE_KEYS = {"format", "shape", "data"}

_MATLAB_TYPES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 15, 16, 17, 18})
"""Types of elements that version 5 of the MATLAB format defines."""
_MATLAB_MATRIX, _MATLAB_COMPRESSED = 14, 15
_MATLAB_HEADER = 128
_DEEPEST = 50
"""Levels of cells within cells that are followed."""

_LAYOUTS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_NUMBER_BYTES = b"0123456789+-.eE \t\r\n"
_BLOCK_BYTES = 1 << 20
_LONGEST_LINE = 1 << 16
"""Longest line of the head of a Matrix Market file that is accepted, in bytes."""


def read_npy(path: Path, options: ReadOptions) -> LabelledMatrix:
    """A NumPy array, memory-mapped."""
    with reading(path, "a NumPy array"):
        values = np.lib.format.open_memmap(path, mode="r")
    return _from_array(values, path, options)


def read_npz(path: Path, options: ReadOptions) -> LabelledMatrix:
    """An archive with one matrix in it, or several of which ``options.key`` names one; SciPy's sparse matrices as well.

    An array with three dimensions that is called "images" is a stack of images.
    """
    # NumPy leaves a damaged file open if it opens it itself
    with reading(path, "an .npz archive"), path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        row_names, column_names = (
            tuple(map(str, archive[name])) if name in archive.files else () for name in ("row_names", "column_names")
        )
        if options.key is None and set(archive.files) >= _SPARSE_KEYS:
            sparse: Any = sp.load_npz(path)
            return LabelledMatrix(sparse, row_names, column_names)
        found = {name: archive[name] for name in archive.files if options.key in (None, name)}
        chosen = _choose(found, options.key, path, archive.files)
        data = _from_array(found[chosen], path, options, row_names, column_names, images=chosen.startswith("images"))
        if data.image_shape is None and "image_shape" in archive.files:
            height, width = (int(side) for side in archive["image_shape"])
            if height * width in data.matrix.shape:
                return data.with_image_shape((height, width))
        return data


def read_mat(path: Path, options: ReadOptions) -> LabelledMatrix:
    """A MATLAB file up to version 7, or a CLUTO file, which may have the same ending."""
    with open_seekable(path) as stream:
        beginning = stream.read(_MATLAB_HEADER)
        stream.seek(0)
        if beginning.startswith(b"MATLAB 7.3"):
            raise FileError(f"{path}: is a MATLAB 7.3 file; save it with the option -v7.")
        words = beginning.split(b"\n")[0].split()
        if len(words) in (2, 3) and all(word.isdigit() for word in words):
            with decoded(stream, path) as text:
                return _from_cluto(path, text)
        with reading(path, "a MATLAB file"):
            variables = load_mat(stream)
            chosen = _choose(variables, options.key, path, list(variables))
            values = variables[chosen]
            if not sp.issparse(values) and values.ndim == 3 and not options.cube:
                values = np.moveaxis(values, 2, 0)  # images are stacked along the last axis
            return _from_array(values, path, options, images=chosen.startswith("images"))


def load_mat(stream: BinaryIO) -> dict[str, Any]:
    """The variables of a MATLAB file up to version 7; a ValueError if it is damaged where SciPy would not notice."""
    header = stream.read(_MATLAB_HEADER)
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    if order is not None:
        _check_elements(memoryview(stream.read()), order, 0)
    stream.seek(0)
    opened: Any = stream
    found = scipy.io.loadmat(opened)
    return {name: value for name, value in found.items() if not name.startswith("__")}


def _check_elements(data: memoryview, order: str, depth: int) -> None:
    """Check that the data are complete elements of known types, one after another."""
    if depth > _DEEPEST:
        raise ValueError("cells are nested too deeply")
    at = 0
    while at < len(data):
        if len(data) - at < 8:
            raise ValueError("the last element is cut off")
        kind, size = struct.unpack_from(f"{order}II", data, at)
        at += 8
        if kind >> 16:  # a short element: up to four bytes beside the type
            short = kind & 0xFFFF
            if short not in _MATLAB_TYPES or short in (_MATLAB_MATRIX, _MATLAB_COMPRESSED) or kind >> 16 > 4:
                raise ValueError(f"a short element has the unknown type {short}")
            continue
        if kind not in _MATLAB_TYPES:
            raise ValueError(f"an element has the unknown type {kind}")
        if size > len(data) - at:
            raise ValueError("an element is larger than what holds it")
        inside = data[at : at + size]
        if kind == _MATLAB_COMPRESSED:
            _check_elements(memoryview(zlib.decompress(inside)), order, depth + 1)
        elif kind == _MATLAB_MATRIX:
            _check_elements(inside, order, depth + 1)
        at += size if kind == _MATLAB_COMPRESSED else size + (-size) % 8


def read_matrix_market(path: Path, options: ReadOptions) -> LabelledMatrix:
    """A Matrix Market file of real numbers, dense or sparse."""
    with reading(path, "a Matrix Market file"), open_seekable(path) as stream:
        last = _check_matrix_market(stream, path)
        stream.seek(0)
        # without a line end the parser may read on after the end
        ended = stream if last == b"\n" else io.BytesIO(stream.read() + b"\n")
        values: Any = scipy.io.mmread(ended)
    return LabelledMatrix(values)


def _check_matrix_market(stream: BinaryIO, path: Path) -> bytes:
    """Refuse a file that announces more than it holds or than fits in memory, or that holds anything but numbers.

    Returns its last byte.
    """
    layout, field, symmetry = _read_banner(stream, path)
    line = _read_line(stream, path)
    while line and (line.startswith(b"%") or not line.strip()):
        line = _read_line(stream, path)
    words, wanted = line.split(), 2 if layout == "array" else 3
    if len(words) != wanted or not all(word.isdigit() and len(word) < 19 for word in words):
        raise FileError(f"{path}: its sizes must be {wanted} integers; got {shortened(line.decode('latin-1'))!r}.")
    m, n, *announced = (int(word) for word in words)
    if symmetry != "general" and m != n:
        raise FileError(f"{path}: a {symmetry} matrix must be square; got {m} x {n}.")
    stored = {"general": m * n, "symmetric": m * (m + 1) // 2, "skew-symmetric": m * (m - 1) // 2}[symmetry]
    n_entries = announced[0] if announced else stored
    memory = 24 * n_entries + 8 * (m + n) if announced else 8 * m * n
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 40
    if memory > available:
        raise FileError(
            f"{path}: announces a matrix of {m} x {n}, which takes {memory / 1e9:.3g} GB; this machine has "
            f"{available / 1e9:.3g} GB."
        )
    n_bytes, last = 0, b""
    while block := stream.read(_BLOCK_BYTES):
        n_bytes, last = n_bytes + len(block), block[-1:]
        strange = block.translate(None, _NUMBER_BYTES)
        if strange:
            raise FileError(f"{path}: entries must be numbers; got {strange[:1].decode('latin-1')!r} among them.")
    if last in (b"e", b"E", b"+", b"-"):
        raise FileError(f"{path}: ends in the middle of a number.")
    # at least a digit and a separator for each number
    fewest = n_entries * (2 if layout == "array" else 4 if field == "pattern" else 6) - 1
    if n_bytes < fewest:
        raise FileError(f"{path}: announces {n_entries} entries, but has only {n_bytes} bytes of them.")
    return last


def _read_banner(stream: BinaryIO, path: Path) -> list[str]:
    """Layout, field and symmetry in the first line of a Matrix Market file."""
    banner = _read_line(stream, path).decode("latin-1").lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise FileError(f"{path}: a Matrix Market file opens with: %%MatrixMarket matrix LAYOUT FIELD SYMMETRY.")
    for word, allowed in zip(banner[2:], (_LAYOUTS, _FIELDS, _SYMMETRIES), strict=True):
        if word not in allowed:
            raise FileError(f"{path}: its first line must have one of {', '.join(allowed)}; got {word[:40]!r}.")
    if banner[2:4] == ["array", "pattern"]:
        raise FileError(f"{path}: an array must have a field of numbers; got 'pattern'.")
    return banner[2:]


def _read_line(stream: BinaryIO, path: Path) -> bytes:
    line = stream.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise FileError(f"{path}: cannot be read as a Matrix Market file: a line of its head is too long.")
    return line


def read_cluto(path: Path, options: ReadOptions) -> LabelledMatrix:
    """A CLUTO file: a line "rows columns nonzeros", then per row pairs of a column, from 1, and a value.

    A first line "rows columns" opens a dense matrix. Names come from files with ``.rlabel`` and ``.clabel`` added.
    """
    with open_text(path) as text:
        return _from_cluto(path, text)


def _from_cluto(path: Path, text: TextIO) -> LabelledMatrix:
    with reading(path, "a CLUTO file"):
        header = [int(word) for word in text.readline().split()]
        if len(header) not in (2, 3):
            raise FileError(f"{path}: a CLUTO file opens with two or three integers; got {len(header)}.")
        lines = [array("d", map(float, line.split())) for line in text]
        while lines and len(lines) > header[0] and not lines[-1]:
            lines.pop()
        if len(lines) != header[0]:
            raise FileError(f"{path}: {header[0]} rows were announced; got {len(lines)}.")
        values = np.array(lines).reshape(header) if len(header) == 2 else _cluto_sparse(lines, header, path)
    companions = (path.with_name(path.name + ending) for ending in (".rlabel", ".clabel"))
    row_names, column_names = (read_lines(file) if file.is_file() else () for file in companions)
    return LabelledMatrix(values, row_names, column_names)


def _cluto_sparse(lines: list[array[float]], header: list[int], path: Path) -> Any:
    m, n, n_nonzero = header
    if any(len(line) % 2 for line in lines):
        raise FileError(f"{path}: a row must hold pairs of a column and a value.")
    entries = np.concatenate([np.asarray(line) for line in lines]) if lines else np.empty(0)
    columns, values = entries[::2], entries[1::2]
    if values.size != n_nonzero:
        raise FileError(f"{path}: {n_nonzero} nonzeros were announced; got {values.size}.")
    if columns.size and (columns.min() < 1 or columns.max() > n or np.any(columns != np.floor(columns))):
        raise FileError(f"{path}: columns must be integers in [1, {n}]; got {columns.min():g} to {columns.max():g}.")
    starts = np.cumsum([0, *(len(line) // 2 for line in lines)])
    return sp.csr_array((values, columns.astype(np.intp) - 1, starts), shape=(m, n))


def _choose(values: Mapping[str, Any], key: str | None, path: Path, available: Sequence[str]) -> str:
    """The name of the one matrix among several values."""
    if key is not None:
        if key not in values:
            raise FileError(f"{path}: has no array {key!r}; got {', '.join(available) or 'none'}.")
        return key
    matrices = [name for name, value in values.items() if _is_matrix(value)]
    usual = [name for name in _USUAL_KEYS if name in matrices]
    if len(matrices) == 1 or usual:
        return (usual or matrices)[0]
    if not matrices:
        raise FileError(f"{path}: holds no matrix; got {', '.join(available) or 'nothing'}.")
    raise FileError(f"{path}: holds several matrices, {', '.join(matrices)}; name one as key.")


def _is_matrix(value: Any) -> bool:
    if sp.issparse(value):
        return True
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.ndim in (2, 3) and value.size > 1


def _from_array(
    values: Any,
    path: Path,
    options: ReadOptions,
    row_names: Names = (),
    column_names: Names = (),
    *,
    images: bool = False,
) -> LabelledMatrix:
    """A matrix, pixels x bands of a spectral image, or images x pixels of a stack of ``images``, as the options say."""
    if values.ndim == 2 and not options.cube:
        return LabelledMatrix(values, row_names, column_names)
    if options.cube:
        if values.ndim != 3:
            raise FileError(
                f"{path}: a spectral image has three dimensions, height x width x bands; got {values.shape}."
            )
        height, width, n_bands = values.shape
        flat = values.reshape(height * width, n_bands)
        pixels = LabelledMatrix(flat, row_names, column_names, row_kind="pixel", column_kind="band")
        return replace(pixels, image_shape=(height, width), pixels="rows")
    if values.ndim != 3:
        raise FileError(f"{path}: must hold a matrix, or images one after the other; got shape {values.shape}.")
    n_images, height, width = values.shape
    if options.image_shape is None and not images:
        raise FileError(
            f"{path}: has three dimensions, {values.shape}, which can mean two things. A spectral image, height x "
            f"width x bands, is read with cube=True, a stack of images with image_shape=({height}, {width})."
        )
    if options.image_shape not in (None, (height, width)):
        raise FileError(
            f"{path}: image_shape must be {height} x {width}, as the file has it, for {n_images} images; got "
            f"{' x '.join(map(str, options.image_shape))}."
        )
    flat = values.reshape(n_images, height * width)
    return LabelledMatrix(flat, row_names, column_names).with_image_shape((height, width))
