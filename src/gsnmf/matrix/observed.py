"""A matrix in which some entries were not observed, or count less than others.

The observed entries are held by rows and by columns. A stored zero is an observed zero. Sparse data never becomes a
dense array.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.observed_entries import Entries
from gsnmf.matrix.checks import as_floats, check_matrix, check_with_largest
from gsnmf.matrix.protocol import safe_exponent
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices, RawMatrix
from gsnmf.support.formatting import columns_and_rows
from gsnmf.support.warning import warn_caller

MissingValues = float | Literal["unstored"] | None
"""What ``missing_values=`` takes: NaN, "unstored", or None if nothing is missing."""

MissingKind = Literal["nan", "unstored"] | None
"""The same as a word."""


class Observed:
    """The observed entries of an m x n matrix with their weights; ``.T`` is the transpose.

    Parameters
    ----------
    values : csr_array
        The observed entries, in canonical order. A stored zero is an observed zero.
    weights : array or None
        One positive weight per stored entry; None if all of them are equal.
    from_dense : bool
        Whether the matrix was a dense array.
    missing_values : {"nan", "unstored", None}
        How the matrix marks missing entries.

    Examples
    --------
    >>> seen = observe([[1.0, float("nan")], [0.0, 2.0]], missing_values=float("nan"))
    >>> seen.share, seen.squared_norm, seen.complete
    (0.75, 5.0, False)
    """

    def __init__(
        self, values: sp.csr_array, weights: Floats | None, *, from_dense: bool, missing_values: MissingKind = None
    ) -> None:
        self.shape = (int(values.shape[0]), int(values.shape[1]))
        self.dtype: np.dtype[Any] = values.dtype
        self.values = values
        self.weights = weights
        self.from_dense = from_dense
        self.missing_values = missing_values

    @cached_property
    def T(self) -> Observed:
        """The transpose, held by its own rows."""
        order = sp.csr_array((np.arange(self.values.nnz), self.values.indices, self.values.indptr), shape=self.shape)
        turned = order.tocsc()
        parts = self.values.data[turned.data], turned.indices, turned.indptr
        transpose = Observed(
            sp.csr_array(parts, shape=self.shape[::-1]),
            None if self.weights is None else self.weights[turned.data],
            from_dense=self.from_dense,
            missing_values=self.missing_values,
        )
        transpose.__dict__["T"] = self
        return transpose

    @property
    def entries(self) -> Entries:
        """The entries by rows, as compiled loops take them."""
        weights = np.empty(0, dtype=self.dtype) if self.weights is None else self.weights
        return Entries(self.values.indptr, self.values.indices, self.values.data, weights)

    @property
    def share(self) -> float:
        """Share of the entries that are observed, in (0, 1]."""
        return float(self.values.nnz / (self.shape[0] * self.shape[1]))

    @property
    def complete(self) -> bool:
        """Whether every entry is observed and all have the same weight."""
        return self.weights is None and self.values.nnz == self.shape[0] * self.shape[1]

    @cached_property
    def relative_weights(self) -> Doubles:
        """Weight of every stored entry relative to the largest weight."""
        if self.weights is None:
            return np.ones(self.values.nnz)
        return self.weights.astype(np.float64) / float(self.weights.max())

    @property
    def mean_weight(self) -> float:
        """Mean weight of the observed entries."""
        return 1.0 if self.weights is None else float(self.weights.mean(dtype=np.float64))

    @cached_property
    def squared_norm(self) -> float:
        """Weighted sum of squares of the observed entries."""
        return self.weighted_squares(self.values.data)

    def weighted_squares(self, numbers: Floats) -> float:
        """Weighted sum of squares, for one number per stored entry."""
        doubles = numbers.astype(np.float64, copy=False)
        weighted = doubles if self.weights is None else doubles * self.weights
        return float(np.vdot(doubles, weighted))

    def part(self, keep: Flags) -> Observed:
        """The stored entries where ``keep`` is True; it has one flag per entry, in storage order."""
        counts = np.concatenate([[0], np.cumsum(keep)])[self.values.indptr]
        values = sp.csr_array((self.values.data[keep], self.values.indices[keep], counts), shape=self.shape)
        weights = None if self.weights is None else self.weights[keep]
        return Observed(values, weights, from_dense=self.from_dense, missing_values=self.missing_values)

    def weighted(self, of_rows: Doubles, of_columns: Doubles) -> Observed:
        """The same entries, each weight multiplied by that of its row and its column; entries of weight 0 are dropped.

        Examples
        --------
        >>> seen = observe([[1.0, 2.0], [3.0, float("nan")]], missing_values=float("nan"))
        >>> seen.weighted(np.array([1.0, 2.0]), np.array([0.0, 3.0])).weighted_squares(np.array([2.0]))
        4.0
        """
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.values.indptr))
        factors = of_rows[rows] * of_columns[self.values.indices]
        weights = factors if self.weights is None else factors * self.weights
        keep = weights > 0
        part = self.part(keep)
        kept = weights[keep].astype(self.dtype)
        part.weights = None if kept.size == 0 or kept.min() == kept.max() else kept
        return part

    @property
    def empty_rows(self) -> Indices:
        """Rows without an observed entry."""
        return np.flatnonzero(np.diff(self.values.indptr) == 0)


def observe(
    matrix: Any, *, missing_values: MissingValues = None, entry_weights: Any = None, name: str = "matrix"
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
    >>> observe([[1.0, -2.0]], missing_values=float("nan"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: matrix must be nonnegative; got -2.0 at row 0, column 1. ...
    """
    kind = check_missing_values(missing_values)
    values = _sparse_values(matrix, name) if sp.issparse(matrix) else _dense_values(matrix, kind, name)
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
    return Observed(values, weights, from_dense=not sp.issparse(matrix), missing_values=kind)


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


def _dense_values(matrix: Any, kind: MissingKind, name: str) -> _Dense:
    if kind == "unstored":
        raise ValueError(
            f"missing_values='unstored' is for SciPy sparse arrays, and {name} is dense; write NaN where it has no "
            "value and pass missing_values=numpy.nan."
        )
    array = as_floats(matrix, name=name)
    missing = np.isnan(array) if kind == "nan" else np.zeros(0, dtype=bool)
    if not missing.any():
        return _Dense(np.asarray(check_matrix(array, name=name)), None)
    return _Dense(np.asarray(check_matrix(np.where(missing, array.dtype.type(0), array), name=name)), ~missing)


def _sparse_values(matrix: Any, name: str) -> sp.csr_array:
    if matrix.format in _WITH_DATA and matrix.dtype.kind == "f" and np.isnan(matrix.data).any():
        raise ValueError(
            f"{name} is sparse and stores NaN. In sparse data the missing entries are those that are not stored: take "
            "the NaN out of it and pass missing_values='unstored'."
        )
    check_with_largest(matrix, name=name)  # raises; its result has lost the stored zeros
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
