"""Where a factorization is right and wrong, and what else its rank could do.

Everything is computed from products of the matrix with the factors; a sparse matrix stays sparse.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.protocol import Matrix
from gsnmf.model_selection.rank_path import RankPath
from gsnmf.nmf import hals, truncated_svd
from gsnmf.records import Record
from gsnmf.result import Factorization
from gsnmf.search.pursuit import FactorPath, factor_path
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices

_MOST_BYTES = 1 << 30
"""Largest left factor of a Dask array that is held in memory."""

_DEFAULT_OPERATIONS = 4e10
"""About ten seconds on a laptop. Operations rather than seconds: the result is the same on every machine."""
_MOST_ITERATIONS, _FEWEST_ITERATIONS = 300, 20
"""Limit on the iterations of NMF, and the number below which its quality would mean little."""
_LANCZOS_ROUNDS, _SVD_FACTOR = 10, 20
"""Operations of a truncated and of a full SVD, in products with the matrix and in units of m n min(m, n); measured."""
_SMALL = 300
"""If the smaller dimension is at most this, or the rank more than 0.3 times it, `truncated_svd` decomposes fully."""


@dataclass(frozen=True, eq=False)
class Comparison(Record):
    """Truncated SVD and NMF of a matrix at the rank of a factorization.

    Attributes
    ----------
    svd_quality : float or None
        The largest quality that any approximation of this rank can have; None if it was not computed.
    svd_path : array
        ``svd_path[k]`` is the bound for rank k; empty if it was not computed.
    nmf_quality : float or None
        Quality of NMF from one random start; None if it was not computed.
    nmf_note, svd_note : str
        Why there is no quality, or why NMF stopped early.
    """

    svd_quality: float | None
    svd_path: Doubles
    nmf_quality: float | None
    nmf_note: str = ""
    svd_note: str = ""


_TOO_MUCH_WORK = "not computed: too much work at this size"
_OUT_OF_CORE = "not computed: the matrix is not held in memory"
_WITH_HOLES = "not computed: entries are missing, or have weights"

NO_COMPARISON = Comparison(None, np.empty(0), None, svd_note="not computed: no comparison was asked for")
"""Stands for no comparison."""


def compare(result: Factorization, *, nmf: bool = False, max_operations: float = _DEFAULT_OPERATIONS) -> Comparison:
    """Truncated SVD and, on request, NMF of the matrix of a result, at its rank, within a budget of operations.

    Parameters
    ----------
    result : Factorization
    nmf : bool
        Compute NMF too, which can take longer than the factorization.
    max_operations : float
        Budget for each of the two. Neither can be stopped midway, so a method that would need more is left out.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.diagnostics import compare
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 1)
    >>> compare(result).svd_path.round(3)
    array([0.   , 0.684])
    """
    rank, matrix = result.selection.n_selected, result.source
    if not isinstance(matrix, InMemoryMatrix) or result.problem.partial:
        reason = _WITH_HOLES if isinstance(matrix, InMemoryMatrix) else _OUT_OF_CORE
        return Comparison(None, np.empty(0), None, reason if nmf else "", reason)
    if rank == 0:
        return Comparison(result.quality, np.array([result.quality]), result.quality if nmf else None)
    path = _svd_path(matrix, rank, max_operations)
    nmf_quality, note = _nmf_quality(matrix, rank, max_operations) if nmf else (None, "")
    bound = float(path[-1]) if path.size else None
    return Comparison(bound, path, nmf_quality, note, _TOO_MUCH_WORK if bound is None else "")


def _svd_path(matrix: InMemoryMatrix, rank: int, max_operations: float) -> Doubles:
    m, n = matrix.shape
    used = min(rank, m, n)
    full = min(m, n) <= _SMALL or used > 0.3 * min(m, n)
    work = _SVD_FACTOR * m * n * min(m, n) if full else 2 * matrix.n_stored * max(2 * used + 1, 20) * _LANCZOS_ROUNDS
    if work > max_operations:
        return np.empty(0)
    svd = truncated_svd(matrix, used)
    squares = svd.singular_values.astype(np.float64) ** 2
    last = svd.relative_error**2
    # each error from the last one upwards, which loses no digits
    errors = np.sqrt(last + (1.0 - last) * np.cumsum([0.0, *squares[::-1]])[::-1] / squares.sum())
    return np.concatenate([1.0 - errors, np.full(rank - used, 1.0 - errors[-1])])


def _nmf_quality(matrix: InMemoryMatrix, rank: int, max_operations: float) -> tuple[float | None, str]:
    per_iteration = 6.0 * matrix.n_stored * rank + 4.0 * sum(matrix.shape) * rank**2
    n_iterations = min(_MOST_ITERATIONS, int(max_operations / per_iteration))
    if n_iterations < _FEWEST_ITERATIONS:
        return None, _TOO_MUCH_WORK
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = hals(matrix, rank, max_iterations=n_iterations, random_state=0)
    return found.quality, "" if found.converged else f"stopped after {found.n_iterations} iterations"


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
    """A factorization with its residuals, rank path and pictures, each computed when it is first used and then kept.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.diagnostics import Explanation
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> Explanation(result).residuals("rows").relative_errors.round(3)
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
        """[M[:, columns], P2] in the unit of `matrix`; in memory even for a Dask array."""
        m, r = self.matrix.shape[0], self.result.selection.n_selected
        if not self.matrix.in_memory and 8 * m * r > _MOST_BYTES:
            raise ValueError(
                f"to look at every row of a Dask array, W must have at most {_MOST_BYTES // 8} entries; got {m} x {r}. "
                "Factorize some of the rows, matrix[:k], with the same columns and rows by gsnmf.fit_weights."
            )
        return np.hstack([self._columns, np.asarray(self.result.row_weights)]).astype(np.float64)

    @cached_property
    def H(self) -> Doubles:
        """[P1; M[rows, :]] in the unit of `matrix`."""
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

    def residuals(self, axis: Axis) -> Residuals:
        """How well each row, or each column, is explained."""
        return self._row_residuals if axis == "rows" else self._column_residuals

    @cached_property
    def _row_residuals(self) -> Residuals:
        return _residuals(self.matrix, self.W, self.H)

    @cached_property
    def _column_residuals(self) -> Residuals:
        return _residuals(self.matrix.T, self.H.T, self.W.T)

    @property
    def factor_order(self) -> Indices:
        """Numbers of the factors, the most useful first, as in `rank_path`."""
        return self._path.order

    def rank_path(self) -> RankPath:
        """The chosen columns and rows, most useful first, with the error of the first 1, 2, ... of them.

        They are ordered by pursuit among the chosen ones, whatever method chose them, with weights fitted again after
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
        return factor_path(self.matrix, self._columns.astype(np.float64), self._rows.astype(np.float64))

    def pictures(self, side: int = 160) -> tuple[Doubles, Doubles]:
        """The matrix and the residual as small pictures of at most ``side`` x ``side`` blocks of entries.

        Rows and columns are grouped by their strongest factor, so factors appear as blocks. A pixel is the root of
        the mean square of its entries, in the unit of the root mean square of the whole matrix.
        """
        row_blocks, column_blocks = (_blocks(self.residuals(axis).strongest, side) for axis in ("rows", "columns"))
        m, n = self.matrix.shape
        sizes = np.outer(np.bincount(row_blocks), np.bincount(column_blocks))
        unit = self.matrix.squared_norm / (m * n)
        pictures = []
        for W, H in ((np.zeros((m, 0)), np.zeros((0, n))), (self.W, self.H)):
            squares = self.matrix.block_residuals(W, H, row_blocks, column_blocks)
            pictures.append(np.sqrt(np.maximum(squares, 0.0) / sizes / unit) if unit > 0 else squares)
        return pictures[0], pictures[1]


def _residuals(matrix: Matrix, left: Doubles, right: Doubles) -> Residuals:
    """How well the rows of a matrix are explained by a product."""
    norms = matrix.T.squared_column_norms
    squared = norms - 2.0 * np.einsum("ik,ik->i", matrix.dot(right.T), left)
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
    """Divide positions, ordered by group, into at most ``side`` blocks of about equal size; returns the block of each.

    Positions without a group, which is negative, come last.
    """
    order = np.lexsort([np.arange(groups.size), np.where(groups < 0, groups.size, groups)])
    blocks = np.empty(groups.size, dtype=np.intp)
    blocks[order] = np.arange(groups.size) // math.ceil(groups.size / side)
    return blocks
