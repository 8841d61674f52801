"""Turn anything matrix-like into the kind of matrix that algorithms use.

`wrap` takes arrays, DataFrames, sparse and Dask arrays; `observe` takes data with holes or entry weights;
`clip_negative` sets negative entries to zero. `gsnmf.matrix.validation` checks whether an array is allowed at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.in_memory import InMemoryMatrix, hold
from gsnmf.matrix.observed import MissingKind, Observed
from gsnmf.matrix.protocol import Matrix, safe_exponent
from gsnmf.matrix.validation import Hints, as_floats, check_matrix, check_with_largest, is_dask, negative_share
from gsnmf.records import Record
from gsnmf.support.arrays import Flags, Floats, RawMatrix
from gsnmf.support.formatting import columns_and_rows
from gsnmf.support.warning import warn_caller

MissingValues = float | Literal["unstored"] | None
"""What ``missing_values=`` takes: NaN, "unstored", or None if nothing is missing."""

Negative = Literal["error", "clip"]
"""What ``negative=`` takes."""


def wrap(matrix: Any, *, name: str = "matrix", hints: Hints | None = None) -> Matrix:
    """Check a matrix, which error messages call ``name``, and hold it in the form that algorithms use.

    Parameters
    ----------
    matrix : array-like, DataFrame, SciPy sparse, Dask array, or a `Matrix`, which comes back as it is
        The entries of a Dask array are checked when they are first read.
    name : str
    hints : Hints, optional
        How messages advise to treat NaN and negative entries.

    Examples
    --------
    >>> M = wrap([[3, 0], [4, 2]])
    >>> M.squared_column_norms, M.T.squared_column_norms
    (array([25.,  4.]), array([ 9., 20.]))
    """
    if isinstance(matrix, Matrix):
        return matrix
    if is_dask(matrix):
        from gsnmf.matrix.dask import ChunkedMatrix, check_dask_array  # only here: it needs Dask

        return ChunkedMatrix(check_dask_array(matrix, name), name)
    return hold(*check_with_largest(matrix, name=name, hints=hints))


def wrap_in_memory(matrix: Any, *, name: str = "matrix") -> InMemoryMatrix:
    """`wrap` for computations that need the matrix in memory."""
    held = wrap(matrix, name=name)
    if not isinstance(held, InMemoryMatrix):
        raise TypeError(f"{name} is a Dask array, and this needs it in memory; pass {name}.compute() if it fits.")
    return held


LARGE_SHARE = 0.01
"""Share of the norm above which a warning says that more than noise was cut off."""


@dataclass(frozen=True, eq=False)
class Clipped(Record):
    """A matrix without its negative entries.

    Attributes
    ----------
    matrix : array or sparse array
        The matrix with zeros in place of negative entries; NaN, which may stand for missing entries, stays NaN.
    n_clipped : int
        How many entries were negative.
    clipped_share : float
        Norm of the negative entries over the norm of the matrix.
    """

    matrix: RawMatrix
    n_clipped: int
    clipped_share: float


def clip_negative(matrix: Any, *, name: str = "matrix") -> Clipped:
    """Set the negative entries of a matrix to zero.

    Subtracting a baseline or background leaves small negative entries, which the model does not allow.

    Parameters
    ----------
    matrix : array-like or SciPy sparse array, shape (m, n)
        Real numbers. It is not changed. Entries that a sparse matrix stores stay stored.
    name : str
        Its name in messages.

    Returns
    -------
    Clipped

    Examples
    --------
    >>> clipped = clip_negative([[3.0, -0.01], [4.0, 0.0]])
    >>> clipped.matrix.tolist(), clipped.n_clipped, round(clipped.clipped_share, 4)
    ([[3.0, 0.0], [4.0, 0.0]], 1, 0.002)
    """
    is_sparse = bool(sp.issparse(matrix))
    array: Any = sp.csr_array(matrix) if is_sparse else as_floats(matrix, name=name)
    entries = array.data if is_sparse else array
    if array.ndim != 2 or entries.dtype.kind not in "fiub":
        check_matrix(matrix, name=name)  # says what is wrong
    negative = entries < 0
    if not negative.any():
        return Clipped(array, 0, 0.0)
    if np.isneginf(entries).any():
        raise ValueError(f"{name} must be finite; got -inf, which negative='clip' does not set to zero.")
    n_clipped, share = negative_share(entries)
    zeroed: Floats = np.where(negative, entries.dtype.type(0), entries)
    clipped = sp.csr_array((zeroed, array.indices, array.indptr), shape=array.shape) if is_sparse else zeroed
    return Clipped(clipped, n_clipped, share)


def warn_of_clipping(n_clipped: int, clipped_share: float, *, name: str = "matrix") -> None:
    """Warn the caller of a public function that more than noise was cut off."""
    if clipped_share > LARGE_SHARE:
        warn_caller(
            f"The negative entries of {name} were set to zero: {n_clipped} in number, {100 * clipped_share:.3g} % of "
            "its norm. That is more than noise: look at the data, or add a constant to it first.",
        )


def observe(
    matrix: Any,
    *,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    name: str = "matrix",
    hints: Hints | None = None,
) -> Observed:
    """Check a matrix with holes or entry weights, and hold its observed entries.

    Parameters
    ----------
    matrix : array-like, or SciPy sparse array or matrix, shape (m, n)
        Observed entries are finite and nonnegative.
    missing_values : NaN, "unstored" or None
        NaN: entries of a dense array that are NaN are missing. "unstored": entries that a sparse array does not store
        are missing, and stored zeros are observed zeros. None: nothing is missing.
    entry_weights : array or sparse array, shape (m, n), optional
        Nonnegative weight of every entry in the sum of squares; 0, or not stored in a sparse array, means missing.
    name : str
        Name of the matrix in messages.
    hints : Hints, optional
        How messages advise to treat negative entries.

    Returns
    -------
    Observed

    Raises
    ------
    TypeError, ValueError
        The message says what is allowed, what was given, and what to do.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> ratings = sp.csr_array(([5.0, 0.0, 3.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
    >>> observe(ratings, missing_values="unstored").share
    0.5
    >>> observe([[1.0, -2.0]], missing_values=float("nan"))
    Traceback (most recent call last):
    ...
    ValueError: matrix must be nonnegative; got -2.0 at row 0, column 1.
    """
    kind = check_missing_values(missing_values)
    is_sparse = bool(sp.issparse(matrix))
    values = _sparse_values(matrix, name, hints) if is_sparse else _dense_values(matrix, kind, name, hints)
    weights = None
    if entry_weights is not None:
        checked = _checked_weights(entry_weights, values.shape)
        values, weights = _weighted(values, checked, only_stored=kind == "unstored")
    elif sp.issparse(values) and kind != "unstored":
        raise ValueError(
            "Nothing is missing in this sparse matrix: what it does not store is zero. Pass missing_values='unstored' "
            "if what it does not store is missing."
        )
    if isinstance(values, _Dense):
        values = values.stored()
    if values.nnz == 0:
        raise ValueError(
            f"No entry of {_called(name)}, of shape {tuple(values.shape)}, is observed: all are missing or have weight "
            "0. Check missing_values and the weights."
        )
    _refuse_extreme(values, name)
    return Observed(values, weights, from_dense=not is_sparse, missing_values=kind)


def check_missing_values(missing_values: Any) -> MissingKind:
    """What ``missing_values`` asks for, or an error that says what is allowed."""
    if missing_values is None:
        return None
    if isinstance(missing_values, str) and missing_values == "unstored":
        return "unstored"
    if isinstance(missing_values, (float, np.floating)) and math.isnan(missing_values):
        return "nan"
    raise ValueError(f"missing_values must be numpy.nan, 'unstored' or None; got {missing_values!r}.")


def warn_of_empty(held: Any, *, name: str = "matrix") -> None:
    """Warn the caller of a public function about rows and columns without an observed entry."""
    if not isinstance(held, Observed):
        return
    empty_columns, empty_rows = held.T.empty_rows.size, held.empty_rows.size
    if empty_columns or empty_rows:
        warn_caller(
            f"No entry is observed in {columns_and_rows(empty_columns, empty_rows)} of {_called(name)}. Such columns "
            "and rows are not chosen, and predicted as zero; leave them out if that is not wanted.",
        )


def _called(name: str) -> str:
    return "the matrix" if name == "matrix" else name


class _Dense:
    """A dense array in which missing entries are zero, and where they are."""

    def __init__(self, filled: Floats, present: Flags | None) -> None:
        self.filled, self.present = filled, present
        self.shape = filled.shape

    def stored(self) -> sp.csr_array:
        """The observed entries as a sparse array, zeros included."""
        if self.present is None:
            return stored_everywhere(self.filled)
        return _picked(self.present, self.filled)


def stored_everywhere(array: Floats) -> sp.csr_array:
    """A dense array as a sparse one that stores every entry, zeros included."""
    m, n = array.shape
    indices = np.tile(np.arange(n, dtype=np.int32), m)
    indptr = np.arange(0, m * n + 1, n)
    return sp.csr_array((np.ascontiguousarray(array).ravel(), indices, indptr), shape=(m, n))


def _picked(present: Flags, array: Floats) -> sp.csr_array:
    columns = np.nonzero(present)[1].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(present, axis=1))])
    return sp.csr_array((array[present], columns, indptr), shape=array.shape)


def _dense_values(matrix: Any, kind: MissingKind, name: str, hints: Hints | None) -> _Dense:
    if kind == "unstored":
        raise ValueError(
            f"missing_values='unstored' is for SciPy sparse arrays, and {name} is dense; write NaN where it has no "
            "value and pass missing_values=numpy.nan."
        )
    array = as_floats(matrix, name=name)
    missing = np.isnan(array) if kind == "nan" else np.zeros(0, dtype=bool)
    if not missing.any():
        return _Dense(np.asarray(check_with_largest(array, name=name, hints=hints)[0]), None)
    filled = np.where(missing, array.dtype.type(0), array)
    return _Dense(np.asarray(check_with_largest(filled, name=name, hints=hints)[0]), ~missing)


def _sparse_values(matrix: Any, name: str, hints: Hints | None) -> sp.csr_array:
    if matrix.format in _WITH_DATA and matrix.dtype.kind == "f" and np.isnan(matrix.data).any():
        raise ValueError(
            f"{name} is sparse and stores NaN. In sparse data the missing entries are those that are not stored: take "
            "the NaN out of it and pass missing_values='unstored'."
        )
    check_with_largest(matrix, name=name, hints=hints)  # raises; its result has lost the stored zeros
    values = sp.csr_array(matrix, copy=True)
    values.sum_duplicates()
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    return values


_WITH_DATA = ("csr", "csc", "coo", "bsr", "dia")


def _checked_weights(entry_weights: Any, shape: tuple[int, ...]) -> RawMatrix:
    """Nonnegative, finite weights of the right shape, at least one of them positive."""
    checked = check_matrix(entry_weights, name="entry_weights")
    if tuple(checked.shape) != tuple(shape):
        raise ValueError(
            f"entry_weights must have the shape of the matrix, {tuple(shape)}; got {tuple(checked.shape)}."
        )
    return checked


def _weighted(
    values: sp.csr_array | _Dense, weights: RawMatrix, *, only_stored: bool
) -> tuple[sp.csr_array, Floats | None]:
    """The entries that are observed and have a positive weight, and these weights unless all are equal.

    What a sparse array does not store is zero, or missing if ``only_stored``.
    """
    pattern = _picked(weights > 0, weights) if isinstance(weights, np.ndarray) else sp.csr_array(weights)
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    if isinstance(values, _Dense):
        seen = values.filled[rows, pattern.indices]
        keep = np.ones(seen.size, dtype=bool) if values.present is None else values.present[rows, pattern.indices]
    else:
        places = sp.csr_array((np.arange(1.0, values.nnz + 1), values.indices, values.indptr), shape=values.shape)
        found = np.asarray(places[rows, pattern.indices]).ravel().astype(np.intp)
        keep = found > 0 if only_stored else np.ones(found.size, dtype=bool)
        seen = np.append(values.data.dtype.type(0), values.data)[found]
    counts = np.bincount(rows[keep], minlength=pattern.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    chosen = sp.csr_array((seen[keep], pattern.indices[keep], indptr), shape=pattern.shape)
    kept = pattern.data[keep]
    return chosen, None if kept.size == 0 or kept.min() == kept.max() else kept


def _refuse_extreme(values: sp.csr_array, name: str) -> None:
    largest = float(values.data.max())
    if largest > 0 and safe_exponent(largest, values.dtype):
        raise ValueError(
            f"The largest observed entry of {name} is {largest:.3g}, whose square is too extreme for {values.dtype}; "
            f"multiply {name} by a constant first."
        )
