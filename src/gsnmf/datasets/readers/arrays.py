"""Readers of arrays: ``.npy``, ``.npz``, MATLAB and CLUTO files."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp

from gsnmf.datasets.readers.files import FileError, decoded, open_text, read_lines, reading, seekable
from gsnmf.datasets.readers.labelled import LabelledMatrix
from gsnmf.datasets.readers.matlab import load_mat

_USUAL_KEYS = ("matrix", "M", "X", "data")
_SPARSE_KEYS = {"format", "shape", "data"}
_MATLAB_7_3 = b"MATLAB 7.3"


@dataclass(frozen=True)
class Layout:
    """What was said about an array with three dimensions: images of a shape, a spectral image, or nothing."""

    image_shape: tuple[int, int] | None = None
    cube: bool = False


_UNSAID = Layout()


def read_npy(path: Path, layout: Layout = _UNSAID) -> LabelledMatrix:
    """A NumPy array, memory-mapped; three dimensions are read as the layout says."""
    with reading(path, "a NumPy array"):
        values = np.lib.format.open_memmap(path, mode="r")
    return _from_array(values, path, layout)


def read_npz(path: Path, key: str | None = None, layout: Layout = _UNSAID) -> LabelledMatrix:
    """An archive with one matrix in it, or several of which ``key`` names one; SciPy's sparse matrices as well.

    An array with three dimensions that is called "images" is a stack of images.
    """
    # NumPy leaves a damaged file open if it opens it itself
    with reading(path, "an .npz archive"), path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        names = set(archive.files)
        if key is None and names >= _SPARSE_KEYS:
            sparse: Any = sp.load_npz(path)
            return LabelledMatrix(sparse, *_names(archive))
        chosen = _choose(
            {name: archive[name] for name in archive.files if key in (None, name)}, key, path, archive.files
        )
        values = archive[chosen]
        if chosen.startswith("images") and values.ndim == 3 and layout == _UNSAID:
            layout = Layout(image_shape=values.shape[1:])
        labelled = _from_array(values, path, layout, *_names(archive))
        if labelled.image_shape is None and "image_shape" in names:
            height, width = (int(side) for side in archive["image_shape"])
            if height * width in labelled.matrix.shape:
                return labelled.with_image_shape((height, width))
        return labelled


def read_mat(path: Path, key: str | None = None, layout: Layout = _UNSAID) -> LabelledMatrix:
    """A MATLAB file up to version 7, or a CLUTO file, which may bear the same ending."""
    with seekable(path) as stream:
        beginning = stream.read(128)
        stream.seek(0)
        if beginning.startswith(_MATLAB_7_3):
            raise FileError(f"{path}: is a MATLAB 7.3 file; save it with the option -v7.")
        if _is_cluto(beginning):
            with decoded(stream, path) as text:
                return _from_cluto(path, text)
        with reading(path, "a MATLAB file"):
            variables = load_mat(stream)
            chosen = _choose(variables, key, path, list(variables))
            values = variables[chosen]
            if sp.issparse(values) or values.ndim != 3 or layout.cube:
                return _from_array(values, path, layout)
            if chosen.startswith("images") and layout == _UNSAID:
                layout = Layout(image_shape=values.shape[:2])
            return _from_array(np.moveaxis(values, 2, 0), path, layout)


def read_cluto(path: Path) -> LabelledMatrix:
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
    with reading(path, "a CLUTO file"):
        values = np.array(lines).reshape(header) if len(header) == 2 else _cluto_sparse(lines, header, path)
    return LabelledMatrix(values, _cluto_names(path, ".rlabel"), _cluto_names(path, ".clabel"))


def _is_cluto(beginning: bytes) -> bool:
    words = beginning.split(b"\n")[0].split()
    return len(words) in (2, 3) and all(word.isdigit() for word in words)


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


def _cluto_names(path: Path, ending: str) -> tuple[str, ...]:
    companion = path.with_name(path.name + ending)
    return read_lines(companion) if companion.is_file() else ()


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
    values: Any, path: Path, layout: Layout, row_names: tuple[str, ...] = (), column_names: tuple[str, ...] = ()
) -> LabelledMatrix:
    if values.ndim == 3:
        return _from_three_dimensions(values, path, layout, row_names, column_names)
    if layout.cube:
        raise FileError(f"{path}: a spectral image has three dimensions, height x width x bands; got {values.shape}.")
    if values.ndim != 2:
        raise FileError(f"{path}: must hold a matrix, or images one after the other; got shape {values.shape}.")
    return LabelledMatrix(values, row_names, column_names)


def _from_three_dimensions(
    values: Any, path: Path, layout: Layout, row_names: tuple[str, ...], column_names: tuple[str, ...]
) -> LabelledMatrix:
    """Pixels x bands of a spectral image, or images x pixels of a stack of images: whichever was said."""
    if layout.cube:
        height, width, n_bands = values.shape
        flat = values.reshape(height * width, n_bands)
        pixels = LabelledMatrix(flat, row_names, column_names, row_kind="pixel", column_kind="band")
        return replace(pixels, image_shape=(height, width), pixels="rows")
    n_images, height, width = values.shape
    if layout.image_shape is None:
        raise FileError(
            f"{path}: has three dimensions, {values.shape}, which can mean two things. A spectral image, height x "
            "width x bands, is for gsnmf unmix (gsnmf.applications.unmix), or for gsnmf factorize --cube. If it is a "
            f"stack of images, say so: --image-shape {height}x{width}."
        )
    if layout.image_shape != (height, width):
        raise FileError(
            f"{path}: image_shape must be {height} x {width}, as the file has it, for {n_images} images; got "
            f"{layout.image_shape[0]} x {layout.image_shape[1]}."
        )
    return LabelledMatrix(values.reshape(n_images, height * width), row_names, column_names).with_image_shape(
        (height, width)
    )


def _names(archive: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of rows and columns that an archive brings along."""
    rows, columns = (
        tuple(map(str, archive[name])) if name in archive.files else () for name in ("row_names", "column_names")
    )
    return rows, columns
