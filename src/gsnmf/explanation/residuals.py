"""What a factorization says about its matrix: its factors, and where it is right and wrong.

All of it is computed from products of the matrix with the factors; a sparse matrix stays sparse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gsnmf.matrix.checks import check_count
from gsnmf.matrix.protocol import Matrix
from gsnmf.results import Factor, Factorization
from gsnmf.search.factor_path import FactorPath, factor_path
from gsnmf.search.ranks import RankPath
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices
from gsnmf.support.records import Record

_MOST_BYTES = 1 << 30
"""Largest left factor of a Dask array that is held in memory."""


@dataclass(frozen=True, eq=False)
class Residuals(Record):
    """How well the rows, or the columns, of a matrix are explained.

    Attributes
    ----------
    relative_errors : array
        ||residual|| / ||M|| of each; 0 where both are zero, infinite where only the latter is.
    error_shares : array
        The part of the squared error that lies in each; they sum to one, or to zero if there is no error.
    strongest : int array
        The factor with the largest part of each one's reconstruction, columns before rows; -1 where there is none.
    """

    relative_errors: Doubles
    error_shares: Doubles
    strongest: Indices


class Explanation:
    """A factorization with what follows from it, computed on request and kept.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.explanation.residuals import Explanation
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> explanation = Explanation(result)
    >>> [(factor.axis, factor.index, factor.columns.tolist()) for factor in explanation.factors()]
    [('rows', 0, [2, 0]), ('rows', 1, [2, 1])]
    >>> explanation.residuals("rows").relative_errors.round(3)
    array([0.   , 0.   , 0.333])
    """

    def __init__(self, result: Factorization) -> None:
        self.result = result

    @property
    def matrix(self) -> Matrix:
        """The matrix, in a unit in which its squares are safe; errors and shares are the same in every unit."""
        return self.result.source

    @cached_property
    def W(self) -> Doubles:
        """[M[:, columns], P2] in that unit; in memory even for a Dask array."""
        m, r = self.matrix.shape[0], self.result.selection.n_selected
        if not self.matrix.in_memory and 8 * m * r > _MOST_BYTES:
            raise ValueError(
                f"to look at every row of a Dask array, W must have at most {_MOST_BYTES // 8} entries; got {m} x {r}. "
                "Factorize some of the rows, matrix[:k], with the same columns and rows by gsnmf.fit_weights."
            )
        return np.hstack([self._columns, np.asarray(self.result.row_weights)]).astype(np.float64)

    @cached_property
    def H(self) -> Doubles:
        """[P1; M[rows, :]] in that unit."""
        return np.vstack([self.result.column_weights, self._rows.T]).astype(np.float64)

    @cached_property
    def _columns(self) -> Floats:
        """The factors that are columns, or mixtures of columns, shape (m, r1)."""
        if self.result.mixtures is None:
            return self.matrix.columns(self.result.columns)
        return np.ldexp(self.result.mixtures.mixed_columns(self.matrix), -self.matrix.exponent)

    @cached_property
    def _rows(self) -> Floats:
        """The factors that are rows, or mixtures of rows, shape (n, r2)."""
        if self.result.mixtures is None:
            return self.matrix.T.columns(self.result.rows)
        return np.ldexp(self.result.mixtures.mixed_rows(self.matrix), -self.matrix.exponent).T

    def factors(self, n_strongest: int = 8) -> tuple[Factor, ...]:
        """Every chosen column, then every chosen row, each with the columns and rows in which it is strongest."""
        return self.result.factors(check_count(n_strongest, "n_strongest"))

    def residuals(self, axis: Axis) -> Residuals:
        """How well each row, or each column, is explained."""
        return self._row_residuals if axis == "rows" else self._column_residuals

    @cached_property
    def _row_residuals(self) -> Residuals:
        return _residuals(self.matrix, self.W, self.H)

    @cached_property
    def _column_residuals(self) -> Residuals:
        return _residuals(self.matrix.T, self.H.T, self.W.T)

    @cached_property
    def factor_order(self) -> Indices:
        """Numbers of the factors, the most useful first, as in `rank_path`."""
        return self._path.order

    def rank_path(self) -> RankPath:
        """The chosen columns and rows, most useful first, with the error of the first 1, 2, ... of them.

        The order is that of pursuit among the chosen ones, whatever method chose them, with weights fitted again after
        each. A mixture is one step, named by its leading member.
        """
        order, n_columns = self._path.order, self.result.columns.size
        squared, norm = self._path.squared_errors, self.matrix.squared_norm
        errors = np.sqrt(squared / norm) if norm > 0 else np.zeros(1)
        if order.size == self.result.selection.n_selected:
            errors[-1] = self.result.relative_error  # the weights of the result are more exact
        return RankPath(
            errors=errors,
            columns=self.result.columns[order[order < n_columns]],
            rows=self.result.rows[order[order >= n_columns] - n_columns],
            n_columns=np.concatenate([[0], np.cumsum(order < n_columns)]).astype(np.intp),
        )

    @cached_property
    def _path(self) -> FactorPath:
        C, R = (np.asarray(side, dtype=np.float64) for side in (self._columns, self._rows))
        return factor_path(self.matrix, C, R)

    def pictures(self, side: int = 160) -> tuple[Doubles, Doubles]:
        """The matrix and the residual as small pictures of at most ``side`` x ``side`` blocks of entries.

        Rows and columns are grouped by their strongest factor, so factors appear as blocks. A pixel is the root of
        the mean square of its entries, in the unit of the root mean square of the whole matrix.
        """
        row_blocks, column_blocks = (_blocks(self.residuals(axis).strongest, side) for axis in ("rows", "columns"))
        m, n = self.matrix.shape
        sizes = np.outer(np.bincount(row_blocks), np.bincount(column_blocks))
        unit = self.matrix.squared_norm / (m * n)
        zero = np.zeros((m, 0)), np.zeros((0, n))
        pictures = []
        for W, H in (zero, (self.W, self.H)):
            squares = self.matrix.block_residuals(W, H, row_blocks, column_blocks)
            pictures.append(np.sqrt(np.maximum(squares, 0.0) / sizes / unit) if unit > 0 else squares)
        return pictures[0], pictures[1]


def _residuals(held: Matrix, left: Doubles, right: Doubles) -> Residuals:
    """How well the rows of a matrix are explained by a product."""
    norms = held.T.squared_column_norms
    squared = norms - 2.0 * np.einsum("ik,ik->i", held.dot(right.T), left)
    squared += np.einsum("ik,ik->i", left @ (right @ right.T), left)
    squared = np.where(squared > 1e-14 * norms, squared, 0.0)  # the rest is rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.sqrt(np.where(squared > 0, squared / norms, 0.0))
    contributions = left * right.sum(axis=1)
    leading = np.full(norms.size, -1, dtype=np.intp)
    if contributions.shape[1]:
        leading = np.where(contributions.max(axis=1) > 0, contributions.argmax(axis=1), -1)
    total = squared.sum()
    return Residuals(relative, squared / total if total > 0 else squared, leading)


def _blocks(groups: Indices, side: int) -> Indices:
    """Which of at most ``side`` blocks of about equal size each position is in, in the order of its group."""
    order = np.lexsort([np.arange(groups.size), np.where(groups < 0, groups.size, groups)])
    blocks = np.empty(groups.size, dtype=np.intp)
    blocks[order] = np.arange(groups.size) // math.ceil(groups.size / side)
    return blocks
