"""A matrix in which some entries were not observed, or count less than others.

The observed entries are held by rows and by columns. A stored zero is an observed zero. Sparse data never becomes a
dense array.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf._kernels.observed_entries import Entries
from gsnmf.matrix.protocol import WithTranspose
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices

MissingKind = Literal["nan", "unstored"] | None
"""How a matrix marks missing entries."""


class Observed(WithTranspose):
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
    >>> from gsnmf.matrix.input import observe
    >>> seen = observe([[1.0, float("nan")], [0.0, 2.0]], missing_values=float("nan"))
    >>> seen.share, seen.squared_norm, seen.complete
    (0.75, 5.0, False)
    """

    in_memory = True

    def __init__(
        self, values: sp.csr_array, weights: Floats | None, *, from_dense: bool, missing_values: MissingKind = None
    ) -> None:
        self.shape = (int(values.shape[0]), int(values.shape[1]))
        self.dtype: np.dtype[Any] = values.dtype
        self.values = values
        self.weights = weights
        self.from_dense = from_dense
        self.missing_values = missing_values

    if TYPE_CHECKING:

        @property
        def T(self) -> Observed:
            """The transpose, held by its own rows."""

    def _transposed(self) -> Observed:
        order = sp.csr_array((np.arange(self.values.nnz), self.values.indices, self.values.indptr), shape=self.shape)
        turned = order.tocsc()
        parts = self.values.data[turned.data], turned.indices, turned.indptr
        return Observed(
            sp.csr_array(parts, shape=self.shape[::-1]),
            None if self.weights is None else self.weights[turned.data],
            from_dense=self.from_dense,
            missing_values=self.missing_values,
        )

    @property
    def data(self) -> Floats | sp.csr_array:
        """The observed entries as an array with NaN in its holes, or sparse if the data was."""
        if not self.from_dense:
            return self.values
        array = np.full(self.shape, np.nan, dtype=self.dtype)
        array[self.places] = self.values.data
        return array

    @property
    def places(self) -> tuple[Indices, NDArray[np.integer[Any]]]:
        """Row and column of every stored entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.values.indptr)), self.values.indices

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
        >>> from gsnmf.matrix.input import observe
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
