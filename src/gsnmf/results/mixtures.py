"""Factors with a few members each: which columns and rows are mixed, and in which shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.protocol import Matrix
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.records import Record

NO_GAIN = 1e-9
"""A change of one member must lower the squared error by more than this fraction to count."""


@dataclass(frozen=True, eq=False, repr=False)
class Mixtures(Record):
    """Factors that are nonnegative mixtures of a few columns, or of a few rows, M ~ (M A) P1 + P2 (B M).

    Attributes
    ----------
    column_mixture : sparse array, shape (n, r1)
        A: column k holds the shares of the members of factor k, which sum to one.
    row_mixture : sparse array, shape (r2, m)
        B: row k holds the shares of the members of row factor k, which sum to one.
    most : int
        How many members a factor may have.
    gain : float or None
        The largest relative decrease of the squared error from adding or exchanging one member of one factor while the
        weights stay as they are. Zero means that no such change helps. None if members were not chosen to lower the
        error.

    Examples
    --------
    >>> mixtures = Mixtures.of([([4, 1], [0.3, 0.7])], [([2], [1.0])], (3, 5), most=2)
    >>> mixtures.column_mixture.toarray().ravel()
    array([0. , 0.7, 0. , 0. , 0.3])
    >>> mixtures.leading_columns, mixtures.leading_rows
    (array([1]), array([2]))
    """

    column_mixture: sp.csc_array
    row_mixture: sp.csr_array
    most: int
    gain: float | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[tuple[Any, Any]],
        rows: Sequence[tuple[Any, Any]],
        shape: tuple[int, int],
        most: int,
        gain: float | None = None,
        dtype: Any = np.float64,
    ) -> Mixtures:
        """Mixtures from pairs of members and weights, for a matrix of this shape."""
        A, B = _assembled(columns, shape[1], dtype), _assembled(rows, shape[0], dtype)
        return cls(A, B.T, most, gain)

    @classmethod
    def single(cls, columns: Indices, rows: Indices, shape: tuple[int, int], dtype: Any) -> Mixtures:
        """Factors of one member each."""
        one = np.ones(1)
        return cls.of([([j], one) for j in columns], [([i], one) for i in rows], shape, 1, dtype=dtype)

    @property
    def settled(self) -> bool:
        """Whether no addition or exchange of one member lowers the error, up to rounding."""
        return self.gain is not None and self.gain <= NO_GAIN

    @property
    def leading_columns(self) -> Indices:
        """The member with the largest share of each mixture of columns; two mixtures may share it."""
        return _leading(self.column_mixture)

    @property
    def leading_rows(self) -> Indices:
        """The member with the largest share of each mixture of rows; two mixtures may share it."""
        return _leading(self.row_mixture.T)

    def members(self) -> list[tuple[Indices, Floats]]:
        """Members and shares of every factor, mixtures of columns first, largest share first."""
        return _pairs(self.column_mixture) + _pairs(self.row_mixture.T)

    def mixed_columns(self, matrix: Matrix) -> Floats:
        """M A in the unit of the data, shape (m, r1)."""
        return _mixed(matrix, self.column_mixture)

    def mixed_rows(self, matrix: Matrix) -> Floats:
        """B M in the unit of the data, shape (r2, n)."""
        return _mixed(matrix.T, self.row_mixture.T).T

    def sums(self, matrix: Matrix) -> Doubles:
        """Sums of the entries of every factor, mixtures of columns first, in the unit in which the matrix is held."""
        of_columns = self.column_mixture.T @ matrix.column_sums
        return np.concatenate([of_columns, self.row_mixture @ matrix.T.column_sums])

    def __repr__(self) -> str:
        r1, r2 = self.column_mixture.shape[1], self.row_mixture.shape[0]
        return f"Mixtures: {r1} of columns and {r2} of rows, of at most {self.most} members each"


def _assembled(mixtures: Sequence[tuple[Any, Any]], length: int, dtype: Any) -> sp.csc_array:
    """Sparse array with one mixture per column, whose entries sum to one."""
    ends = np.cumsum([0] + [len(members) for members, _ in mixtures])
    indices = np.concatenate([np.asarray(members, dtype=np.intp) for members, _ in mixtures] or [np.empty(0, np.intp)])
    shares = [np.asarray(weights, dtype=np.float64) / np.sum(weights) for _, weights in mixtures]
    values = np.concatenate(shares or [np.empty(0)]).astype(dtype)
    array = sp.csc_array((values, indices, ends), shape=(length, len(mixtures)))
    array.sort_indices()
    return array


def _pairs(mixture: sp.csc_array) -> list[tuple[Indices, Floats]]:
    found = []
    for start, stop in zip(mixture.indptr[:-1], mixture.indptr[1:], strict=True):
        order = start + np.argsort(-mixture.data[start:stop], kind="stable")
        found.append((mixture.indices[order].astype(np.intp), mixture.data[order]))
    return found


def _leading(mixture: sp.csc_array) -> Indices:
    return np.array([members[0] for members, _ in _pairs(mixture)], dtype=np.intp)


def _mixed(matrix: Matrix, mixture: sp.csc_array) -> Floats:
    members, positions = np.unique(mixture.indices, return_inverse=True)
    small = sp.csc_array((mixture.data, positions, mixture.indptr), shape=(members.size, mixture.shape[1]))
    product: Floats = matrix.raw_columns(members.astype(np.intp)) @ small.toarray()
    return product
