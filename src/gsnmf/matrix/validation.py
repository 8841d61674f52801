"""Validation of arrays and numbers.

Everything behind it trusts what it gets: a two-dimensional, finite, nonnegative matrix in float32 or float64, either a
NumPy array in any memory order or a canonical SciPy CSR or CSC array.

Objects of other libraries are recognised without importing them, and refused at once. `numpy.asarray` treats every
object with a length and items as a nested sequence: an AnnData object of a few hundred cells keeps it busy for minutes,
before it fails with a message about dimensions.
"""

from __future__ import annotations

import array
import math
import numbers
import sys
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf.support.arrays import Floats, Indices, RawMatrix, Sparse

_CHECK_BLOCK = 1 << 22  # entries checked at a time: bounds the memory of a check, even on a memory map
_PARTS = ("data", "indices", "indptr")


def check_matrix(matrix: Any, *, name: str = "matrix", origin: tuple[int, int] = (0, 0)) -> RawMatrix:
    """Return ``matrix`` as a nonnegative float array or canonical sparse array, or say what is wrong with it.

    float32 and float64 stay what they are, every other real type becomes float64. What already has the right form is
    not copied, and the input is never changed.

    Parameters
    ----------
    matrix : array-like, DataFrame, or SciPy sparse array or matrix of any format, shape (m, n)
        Two-dimensional, at least one row and one column, entries finite and not negative.
    name : str
        Its name in error messages.
    origin : pair of int
        Position of the first entry, for error messages.

    Returns
    -------
    ndarray, csr_array or csc_array
        Sparse results have sorted indices and neither duplicates nor stored zeros.

    Raises
    ------
    TypeError
        If the entries are not real numbers.
    ValueError
        If the shape or an entry is not allowed; the message gives the position of the first bad entry.

    Examples
    --------
    >>> check_matrix([[1, 0], [2, 3]])
    array([[1., 0.],
           [2., 3.]])
    >>> check_matrix([[1.0, -2.0]], name="counts")
    Traceback (most recent call last):
    ...
    ValueError: counts must be nonnegative; got -2.0 at row 0, column 1.
    """
    return check_with_largest(matrix, name=name, origin=origin)[0]


def check_with_largest(
    matrix: Any, *, name: str = "matrix", origin: tuple[int, int] = (0, 0), hints: Hints | None = None
) -> tuple[RawMatrix, float]:
    """`check_matrix`, and the largest entry, which the same pass over the entries finds.

    ``hints`` say what to do about NaN and negative entries.
    """
    checked = _canonical_sparse(matrix, name, origin) if sp.issparse(matrix) else as_floats(matrix, name=name)
    if min(checked.shape) == 0:
        raise ValueError(f"{name} must have at least one row and one column; got shape {checked.shape}.")
    return checked, _check_entries(checked, name, origin, hints)


def check_rank(rank: Any, shape: tuple[int, int], *, name: str = "rank") -> int:
    """Return ``rank``, which error messages call ``name``, as an int in [1, max(shape)], or say what is allowed.

    More indices than the rank of the matrix can be useful: a 3 x n matrix may have n extreme columns.

    Examples
    --------
    >>> check_rank(55, (30, 40))
    Traceback (most recent call last):
    ...
    ValueError: rank must be in [1, 40] for a matrix of shape (30, 40); got 55.
    """
    value = _integer(rank, name)
    limit = max(shape)
    if not 1 <= value <= limit:
        raise ValueError(f"{name} must be in [1, {limit}] for a matrix of shape {shape}; got {value}.")
    return value


def check_rank_pair(rank: Any, shape: tuple[int, int], *, name: str = "rank") -> tuple[int, int]:
    """Return ``rank`` as a pair (n_columns, n_rows) that a matrix of this shape can give.

    Error messages call it ``name``; for the estimator's ``"n_components"`` they speak of features and samples.
    """
    columns, rows = ("n_features", "n_samples") if name == "n_components" else ("n_columns", "n_rows")
    try:
        n_columns, n_rows = rank
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair ({columns}, {rows}) here; got {rank!r}.") from None
    pair = _integer(n_columns, columns), _integer(n_rows, rows)
    if not (0 <= pair[0] <= shape[1] and 0 <= pair[1] <= shape[0]) or pair == (0, 0):
        raise ValueError(
            f"{name} must be a pair ({columns}, {rows}) with {columns} in [0, {shape[1]}], {rows} in "
            f"[0, {shape[0]}] and at least one of them positive for a matrix of shape {shape}; got {pair}."
        )
    return pair


def check_indices(indices: Any, length: int, name: str, *, distinct: bool = True) -> Indices:
    """Return ``indices``, by default distinct, as positions in [0, length) in the order given."""
    given = np.asarray(indices)
    if given.size == 0:
        return np.empty(0, dtype=np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a one-dimensional sequence of integers; got {indices!r}.")
    if given.min() < 0 or given.max() >= length:
        raise ValueError(f"{name} must be in [0, {length - 1}]; got {given.min()} to {given.max()}.")
    if distinct and np.unique(given).size != given.size:
        raise ValueError(f"{name} must be distinct; got {given.tolist()}.")
    return given.astype(np.intp, copy=False)


def check_positive(value: Any, name: str) -> float:
    """Return ``value`` as a finite float above zero."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
    return float(value)


def check_count(value: Any, name: str) -> int:
    """Return ``value`` as an int of at least one."""
    count = _integer(value, name)
    if count < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {count}.")
    return count


def _integer(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r} of type {type(value).__name__}.")
    return int(value)


def float_type(dtype: np.dtype[Any], name: str) -> type[np.floating[Any]]:
    """The type that entries of type ``dtype`` are computed in."""
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {dtype}.")
    return np.float32 if dtype == np.float32 else np.float64


def as_floats(matrix: Any, *, name: str = "matrix") -> Floats:
    """Return anything dense as a two-dimensional float array, with any entries, or say what is wrong with it."""
    if type(matrix).__module__.startswith("dask"):
        if hasattr(matrix, "to_dask_array"):
            raise TypeError(f"{name} is a Dask DataFrame; pass {name}.to_dask_array(lengths=True).")
        raise TypeError(f"{name} is a Dask array, and this needs it in memory; pass {name}.compute() if it fits.")
    if isinstance(matrix, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array; fill its masked entries first, with 0, or with NaN if they are missing "
            "(missing_values=numpy.nan)."
        )
    refuse_foreign(matrix, name=name)
    values = np.asarray(matrix)
    if values.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional; got shape {values.shape}.{_shape_hint(values.ndim, name)}")
    if values.dtype == object:
        values = _numbers_from_objects(values, name)
    target = float_type(values.dtype, name)
    with np.errstate(over="ignore"):  # an overflowing long double is reported as infinite below
        # byte order counts: compiled kernels want the machine's own
        return values.astype(np.dtype(target), copy=False, subok=False)


def _shape_hint(n_dimensions: int, name: str) -> str:
    """What to do with an array that is not two-dimensional."""
    if n_dimensions == 1:
        return f" Reshape your data: {name}.reshape(1, -1) is one row, {name}.reshape(-1, 1) one column."
    if n_dimensions == 3:
        return (
            " For a spectral image (height x width x bands) call gsnmf.applications.unmix; a stack of images becomes a "
            f"matrix with one image per row by {name}.reshape(len({name}), -1)."
        )
    return ""


def _numbers_from_objects(array: NDArray[np.object_], name: str) -> NDArray[Any]:
    """An object array as floats, if all entries are real numbers, as in a DataFrame of mixed numeric columns."""
    for position, entry in np.ndenumerate(array):
        if not isinstance(entry, numbers.Real):
            raise TypeError(
                f"{name} must hold real numbers; got {entry!r} of type {type(entry).__name__} "
                f"at row {position[0]}, column {position[1]}."
            )
    return array.astype(np.float64)


def canonical(matrix: Sparse) -> Sparse:
    """A sparse matrix with sorted indices and neither duplicates nor stored zeros."""
    return _canonical_sparse(matrix, "matrix", (0, 0))


def _canonical_sparse(matrix: Any, name: str, origin: tuple[int, int]) -> Sparse:
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional; got shape {matrix.shape}.")
    target = float_type(matrix.dtype, name)
    kind = sp.csc_array if matrix.format == "csc" else sp.csr_array
    compressed = kind(matrix)
    try:
        compressed.check_format(full_check=True)  # native loops trust indices
    except ValueError as error:
        raise ValueError(f"{name} is a damaged sparse matrix: {error}.") from error
    if compressed.dtype != target:
        compressed = compressed.astype(target)
    stored_zeros = np.count_nonzero(compressed.data) != compressed.data.size
    if stored_zeros or not compressed.has_canonical_format:
        shared = (np.may_share_memory(getattr(compressed, a), getattr(matrix, a, None)) for a in _PARTS)
        if any(shared):
            compressed = compressed.copy()
        compressed.sum_duplicates()
        _check_entries(compressed, name, origin)
        compressed.eliminate_zeros()
    return compressed


def _check_entries(matrix: RawMatrix, name: str, origin: tuple[int, int], hints: Hints | None = None) -> float:
    """Raise unless every entry is finite and not negative; return the largest."""
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data.reshape(1, -1)
    step = max(1, _CHECK_BLOCK // max(1, entries.shape[1]))
    largest = 0.0
    for start in range(0, entries.shape[0], step):
        block = entries[start : start + step]
        peak = float(block.max(initial=0.0))
        if block.size == 0 or (block.min() >= 0 and peak < np.inf):  # NaN fails both comparisons
            largest = max(largest, peak)
            continue
        bad = ~((block >= 0) & (block < np.inf))
        row_in_block, offset = divmod(int(np.argmax(bad)), block.shape[1])
        value = block[row_in_block, offset]
        row, column = _position(matrix, start + row_in_block, offset)
        place = f"at row {origin[0] + row}, column {origin[1] + column}"
        if value < 0 and np.isfinite(value):
            hint = hints.for_negative(entries) if hints else ""
            raise ValueError(f"{name} must be nonnegative; got {value} {place}.{hint}")
        if np.isnan(value):
            raise ValueError(f"{name} must be finite; got NaN {place}.{hints.for_nan() if hints else ''}")
        raise ValueError(f"{name} must be finite; got {value} {place}.")
    return largest


def _position(matrix: RawMatrix, row: int, column: int) -> tuple[int, int]:
    """Row and column in the matrix of an entry found by ``_check_entries``."""
    if isinstance(matrix, np.ndarray):
        return row, column
    major = int(np.searchsorted(matrix.indptr, column, side="right")) - 1
    minor = int(matrix.indices[column])
    return (major, minor) if matrix.format == "csr" else (minor, major)


@dataclass(frozen=True)
class Hints:
    """How a caller asks for missing values and for clipping negative entries."""

    missing: str
    clip: str

    def for_nan(self) -> str:
        """A sentence that names the option for missing values."""
        return f" {self.missing} takes NaN as missing."

    def for_negative(self, entries: Any) -> str:
        """A sentence that names the option for negative entries, and how much it would cut off."""
        n_negative, share = negative_share(entries)
        negatives = "the one negative entry" if n_negative == 1 else f"the {n_negative} negative entries"
        return f" {self.clip} sets {negatives}, {100 * share:.3g} % of the norm, to zero."


def negative_share(entries: Any) -> tuple[int, float]:
    """How many entries are negative, and their norm over the norm of all finite entries.

    Examples
    --------
    >>> negative_share(np.array([3.0, -4.0, np.nan]))
    (1, 0.8)
    """
    below = entries[(entries < 0) & np.isfinite(entries)].astype(np.float64)
    finite = entries[np.isfinite(entries)].astype(np.float64)
    largest = float(np.abs(finite).max(initial=0.0))
    if below.size == 0 or largest == 0.0:
        return 0, 0.0
    squares = np.square(below / largest).sum(), np.square(finite / largest).sum()  # in a unit in which they are safe
    return int(below.size), math.sqrt(float(squares[0] / squares[1]))


_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")
_SEQUENCES = (list, tuple, range, deque, array.array, memoryview, bytes, bytearray)
_SCALARS = (int, float, complex, str, bool, type(None))

_LIBRARIES: dict[tuple[str, str], str] = {
    ("anndata", "AnnData"): (
        "call gsnmf.applications.markers, which chooses marker genes and prototype cells, or pass one of its matrices: "
        "{name}.X, {name}.layers[...] or {name}.raw.X"
    ),
    ("anndata", "Raw"): "pass {name}.X",
    ("mudata", "MuData"): "pass one of its matrices: {name}.mod[...].X",
    ("spatialdata", "SpatialData"): "pass one of its matrices: {name}.tables[...].X",
    ("xarray", "Dataset"): "pass one of its variables: {name}[...].values",
    ("xarray", "DataTree"): "pass one of its variables: {name}[...].values",
    ("h5py", "File"): "pass one of its data sets: {name}[...][:]",
    ("h5py", "Group"): "pass one of its data sets: {name}[...][:]",
    ("zarr", "Group"): "pass one of its arrays: {name}[...][:]",
    ("pyarrow", "Table"): "pass {name}.to_pandas()",
}
"""What to do with types of other libraries, by the first part of the module and the name of the type."""


def is_anndata(value: Any) -> bool:
    """Whether this is an AnnData object or a subclass; anndata is not imported to find out.

    Examples
    --------
    >>> is_anndata([[1.0, 2.0]])
    False
    """
    return ("anndata", "AnnData") in _kinds(value)


def is_foreign(value: Any) -> bool:
    """Whether `refuse_foreign` refuses an object.

    Examples
    --------
    >>> is_foreign({1, 2}), is_foreign([[1, 2]])
    (True, False)
    """
    try:
        refuse_foreign(value)
    except TypeError:
        return True
    return False


def refuse_foreign(value: Any, *, name: str = "matrix") -> None:
    """Raise unless NumPy converts an object to an array at once; known types of other libraries get a hint.

    Allowed are arrays, everything that offers the array protocol (DataFrames, xarray's DataArray, tensors in main
    memory), and Python's own sequences, whose items are looked at one level deep. Sparse matrices and Dask arrays must
    be recognised beforehand.

    Raises
    ------
    TypeError
        In microseconds, whatever the size of the object.

    Examples
    --------
    >>> refuse_foreign([[1, 2], [3, 4]])
    >>> refuse_foreign({1, 2})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    TypeError: matrix must be an array, a DataFrame, ... or nested lists of numbers; got an object of type set.
    """
    hint = _library_hint(value, name)
    if hint:
        raise TypeError(f"{name} is of type {_title(value)}; {hint}.")
    if not _is_array_like(value):
        raise TypeError(
            f"{name} must be an array, a DataFrame, a sparse or Dask array, or nested lists of numbers; got an "
            f"object of type {_title(value)}."
        )
    if isinstance(value, (list, tuple, deque)):
        for item in value:
            if _library_hint(item, name) or not (isinstance(item, _SCALARS) or _is_array_like(item)):
                raise TypeError(f"{name} must be made of numbers; got an item of type {_title(item)}.")


def _is_array_like(value: Any) -> bool:
    """Whether NumPy converts an object by a protocol or by walking one of Python's own sequences."""
    kind = type(value)
    return isinstance(value, (*_SEQUENCES, *_SCALARS)) or any(hasattr(kind, protocol) for protocol in _ARRAY_PROTOCOLS)


def _library_hint(value: Any, name: str) -> str:
    found = (_LIBRARIES[kind] for kind in _kinds(value) if kind in _LIBRARIES)
    return next(found, "").format(name=name)


def _kinds(value: Any) -> list[tuple[str, str]]:
    """The library and the name of the type of an object and of the types it derives from."""
    return [(kind.__module__.split(".")[0], kind.__name__) for kind in type(value).__mro__]


def _title(value: Any) -> str:
    return next((name for library, name in _kinds(value) if (library, name) in _LIBRARIES), type(value).__name__)


def check_block(block: Any, shape: tuple[int | None, int | None], *, name: str, nonnegative: bool = False) -> Floats:
    """Return a dense block of numbers of a given shape (None: any length), or say what is wrong with it.

    A Dask array passes with its shape checked; it is one of the arrays that stay with their data.
    """
    array = block if is_dask(block) else np.asarray(block)
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional; got shape {tuple(array.shape)}.")
    wanted = tuple("any" if length is None else length for length in shape)
    if any(w is not None and w != s for w, s in zip(shape, array.shape, strict=False)):
        raise ValueError(f"{name} must have shape ({wanted[0]}, {wanted[1]}); got {tuple(array.shape)}.")
    if is_dask(array):
        return array
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    floats: Floats = array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} must be finite; got NaN or infinity.")
    if nonnegative and floats.size and floats.min() < 0:
        raise ValueError(f"{name} must be nonnegative; got {floats.min()}.")
    return floats


def is_dask(matrix: Any) -> bool:
    """Whether this is a Dask array; Dask is not imported to find out."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(matrix, module.Array)
