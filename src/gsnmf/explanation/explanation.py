"""What a factorization says about its matrix: its factors in words, and where it is right and wrong.

All of it is computed from products of the matrix with the factors; a sparse matrix stays sparse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from gsnmf.explanation.topics import strongest, strongest_rows
from gsnmf.matrices.checks import check_count
from gsnmf.matrices.protocol import Matrix, wrap
from gsnmf.results.records import Factorization
from gsnmf.search.candidates import Candidates
from gsnmf.search.pursuit import pursuit_path
from gsnmf.search.ranks import RankPath
from gsnmf.support.arrays import Doubles, Floats, Indices

_MOST_BYTES = 1 << 30
"""Of the left factor of a Dask array, to be held in memory."""


@dataclass(frozen=True)
class Factor:
    """One chosen column or row, and what goes with it.

    Attributes
    ----------
    axis : {"column", "row"}
        Which it is.
    index : int
        Its position in the matrix.
    share : float
        Its part of the sum of all entries of the reconstruction.
    columns, rows : int arrays
        The columns and rows in which the factor is strongest, the strongest first, itself left out.
    column_strengths, row_strengths : arrays
        How strong, in the unit of the factor's row of H and column of W.
    """

    axis: Literal["column", "row"]
    index: int
    share: float
    columns: Indices
    column_strengths: Floats
    rows: Indices
    row_strengths: Floats


@dataclass(frozen=True)
class Residuals:
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
    """A factorization with what follows from it, computed when asked for and kept.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.explanation.explanation import Explanation
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> explanation = Explanation(result)
    >>> [(factor.axis, factor.index, factor.columns.tolist()) for factor in explanation.factors()]
    [('row', 0, [2, 0]), ('row', 1, [2, 1])]
    >>> explanation.residuals("rows").relative_errors.round(3)
    array([0.   , 0.   , 0.333])
    """

    def __init__(self, result: Factorization) -> None:
        self.result = result

    @cached_property
    def products(self) -> Matrix:
        """The matrix, in a unit in which its squares are safe; errors and shares are the same in every unit."""
        return wrap(self.result.matrix)

    @cached_property
    def W(self) -> Doubles:
        """[M[:, columns], P2] in that unit; of a Dask array, too, it is in memory here."""
        m, r = self.products.shape[0], self.result.selection.n_selected
        if self.products.out_of_core and 8 * m * r > _MOST_BYTES:
            raise ValueError(
                f"to look at every row of a Dask array, W must have at most {_MOST_BYTES // 8} entries; got {m} x {r}. "
                "Factorize some of the rows, matrix[:k], with the same columns and rows by gsnmf.fit_weights."
            )
        weights = np.asarray(self.result.row_weights)
        return np.hstack([self.products.columns(self.result.columns), weights]).astype(np.float64)

    @cached_property
    def H(self) -> Doubles:
        """[P1; M[rows, :]] in that unit."""
        return np.vstack([self.result.column_weights, self.products.T.columns(self.result.rows).T]).astype(np.float64)

    @cached_property
    def shares(self) -> Doubles:
        """Part of each factor in the sum of all entries of the reconstruction."""
        of_weights = np.asarray(self.result.row_weights.sum(axis=0, dtype=np.float64))
        heights = np.concatenate([self.products.column_sums[self.result.columns], of_weights])
        masses = heights * self.H.sum(axis=1)
        return np.asarray(masses / masses.sum() if masses.sum() > 0 else masses)

    def factors(self, n_strongest: int = 8) -> tuple[Factor, ...]:
        """Every chosen column, then every chosen row, each with the columns and rows in which it is strongest."""
        count = check_count(n_strongest, "n_strongest")
        result, H = self.result, self.result.H
        members = strongest_rows(result.W, count + 1)
        chosen: list[tuple[Literal["column", "row"], int]] = [("column", int(j)) for j in result.columns]
        chosen += [("row", int(i)) for i in result.rows]
        factors = []
        for k, (axis, index) in enumerate(chosen):
            columns = _strongest(H[k], count, index if axis == "column" else None)
            rows, strengths = members[k]
            others = (rows != index if axis == "row" else rows >= 0).nonzero()[0][:count]
            share = float(self.shares[k])
            factors.append(Factor(axis, index, share, columns, H[k, columns], rows[others], strengths[others]))
        return tuple(factors)

    def residuals(self, axis: Literal["rows", "columns"]) -> Residuals:
        """How well each row, or each column, is explained."""
        return self._row_residuals if axis == "rows" else self._column_residuals

    @cached_property
    def _row_residuals(self) -> Residuals:
        return _residuals(self.products, self.W, self.H)

    @cached_property
    def _column_residuals(self) -> Residuals:
        return _residuals(self.products.T, self.H.T, self.W.T)

    def rank_path(self) -> RankPath:
        """The chosen columns and rows one after the other, the most useful first, with the error of each beginning.

        The order is that of pursuit among the chosen ones, whatever method chose them, with weights fitted anew for
        every beginning.
        """
        result, held = self.result, self.products
        candidates = Candidates(held, result.columns, result.rows)
        path = RankPath.of_fits(list(pursuit_path(candidates, result.selection.n_selected)), held.squared_norm)
        if path.errors.size == result.selection.n_selected + 1:
            path.errors[-1] = result.relative_error  # whose weights are fitted to a finer tolerance
        return path

    def pictures(self, side: int = 160) -> tuple[Doubles, Doubles]:
        """The matrix and the residual as small pictures of at most ``side`` x ``side`` blocks of entries.

        Rows and columns are grouped by their strongest factor, so that the factors are blocks. A pixel is the root of
        the mean square of its entries, in the unit of the root mean square of the whole matrix.
        """
        row_blocks, column_blocks = (_blocks(self.residuals(axis).strongest, side) for axis in ("rows", "columns"))
        m, n = self.products.shape
        sizes = np.outer(np.bincount(row_blocks), np.bincount(column_blocks))
        unit = self.products.squared_norm / (m * n)
        zero = np.zeros((m, 0)), np.zeros((0, n))
        pictures = []
        for W, H in (zero, (self.W, self.H)):
            squares = self.products.block_residuals(W, H, row_blocks, column_blocks)
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


def _strongest(values: Floats, count: int, itself: int | None) -> Indices:
    """Positions of the largest positive values, the largest first, without the factor's own."""
    if itself is None:
        return strongest(values, count)
    found = strongest(values, count + 1)
    return np.asarray(found[found != itself][:count])


def _blocks(groups: Indices, side: int) -> Indices:
    """Which of at most ``side`` blocks of about equal size each position is in, in the order of its group."""
    order = np.lexsort([np.arange(groups.size), np.where(groups < 0, groups.size, groups)])
    blocks = np.empty(groups.size, dtype=np.intp)
    blocks[order] = np.arange(groups.size) // math.ceil(groups.size / side)
    return blocks
