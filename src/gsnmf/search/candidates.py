r"""Columns and rows among which pursuit and exchange choose, with the products that every trial shares.

With the weights of a selection fitted and residual E, adding column j as a new rank-one factor lowers the squared error
by at least

.. math:: \sum_l \max(0, M_j^T E_l)^2 / \|M_j\|^2

(take :math:`\max(0, M_j^T E_l) / \|M_j\|^2` as its weights). The products of all candidates with the matrix are
computed once; trying a selection, or scoring all candidates against it, then never touches the matrix again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf._kernels.reductions import positive_squares
from gsnmf._parallel import ThreadBudget
from gsnmf.constraints import Limits
from gsnmf.matrix.protocol import Matrix
from gsnmf.search.candidate_vectors import GrowingRows, candidate_vectors
from gsnmf.search.slopes import sums_over_slopes
from gsnmf.selection.preselection import largest_and_farthest
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Axis, Doubles, Floats, Indices
from gsnmf.weights.joint import JointProblem, solve_joint

_MEMORY = 1 << 30
"""Bytes that the products of all candidates may take."""
_MOST_MEMORY = 1 << 36
"""The hard limit for a matrix that is not in memory itself."""
MOST = 3000
"""Largest number of candidates per side."""
_FEWEST = 50
"""Smallest number of candidates per side, whatever memory they take."""
_BLOCK = 1 << 12
"""Products of each candidate that are transposed at a time."""
_AXES: tuple[Axis, ...] = ("columns", "rows")


def candidate_pool(matrix: Matrix, limit: int = MOST, limits: Limits | None = None) -> Candidates:
    """At most ``limit`` candidates per side: all of them, those of `largest_and_farthest`, or none.

    With ``limits``, excluded indices are never candidates, included ones always are, and a side from which nothing may
    be chosen has none.
    """
    return Candidates(matrix, *(candidate_indices(matrix, axis, limits, limit) for axis in _AXES))


def candidate_indices(matrix: Matrix, axis: Axis, limits: Limits | None = None, limit: int = MOST) -> Indices:
    """The candidates of one side of `candidate_pool`."""
    if limit == 0:
        return np.empty(0, dtype=np.intp)
    least = 16 * _FEWEST * sum(matrix.shape)
    if least > _MOST_MEMORY and not matrix.in_memory:
        raise ValueError(
            f"method must be one of 'gspa', 'spa-columns', 'spa-rows', 'spa-both' for a Dask array of shape "
            f"{matrix.shape}: the products of candidates, which others keep in memory, would take {least / 1e9:.0f} GB."
        )
    affordable = max(_FEWEST, _MEMORY // (16 * sum(matrix.shape)))
    return _candidates_of(matrix, min(limit, affordable), axis, limits)


def _candidates_of(matrix: Matrix, limit: int, axis: Axis, limits: Limits | None) -> Indices:
    """At most ``limit`` allowed indices plus the required ones; the longest ones replace excluded ones."""
    if limits is None:
        return largest_and_farthest(matrix, limit, axis=axis)
    if limits.most(axis) == 0:
        return np.empty(0, dtype=np.intp)
    excluded = limits.excluded(axis)
    best = largest_and_farthest(matrix, limit, axis=axis)
    allowed = best[~excluded[best]]
    if allowed.size < best.size:
        norms = np.where(excluded, 0.0, (matrix if axis == "columns" else matrix.T).squared_column_norms)
        norms[allowed] = 0.0
        longest = np.argsort(-norms, kind="stable")[: best.size - allowed.size]
        allowed = np.concatenate([allowed, longest[norms[longest] > 0]])
    return np.union1d(allowed, limits.included(axis))


@dataclass(frozen=True)
class Fit:
    """A selection with its weights, in the units of `gsnmf.weights.joint.JointProblem`."""

    columns: Indices
    rows: Indices
    P: Doubles
    Q: Doubles
    squared_error: float

    def weights(self, matrix: Matrix) -> tuple[Doubles, Doubles]:
        """Column weights, r1 x n, and row weights, m x r2, of the columns and rows as they are."""
        column_lengths = np.sqrt(matrix.squared_column_norms[self.columns])
        row_lengths = np.sqrt(matrix.T.squared_column_norms[self.rows]) if self.rows.size else np.empty(0)
        return (self.P / column_lengths).T, self.Q / row_lengths


class CandidateSide:
    """Candidate columns of a matrix; the candidate rows are the side of its transpose."""

    def __init__(self, matrix: Matrix, indices: Indices) -> None:
        self.matrix = matrix
        self.indices: Indices = np.empty(0, dtype=np.intp)
        self.vectors = candidate_vectors(matrix)
        self._products = GrowingRows(matrix.shape[1], self.vectors.precision)
        self.lengths: Doubles = np.empty(0)
        self._position = np.full(matrix.shape[1], -1)
        self.extend(indices)

    @property
    def products(self) -> Floats:
        """Products of the candidates with all columns, one candidate per row."""
        return self._products.array

    def products_with(self, indices: Indices, at: int | None = None) -> Doubles:
        """Products of all candidates, or of one, with some columns."""
        found = self.products[:, indices] if at is None else self.products[at, indices]
        return found.astype(np.float64, copy=False)

    def extend(self, indices: Indices) -> None:
        """Add new candidates; zero columns are ignored."""
        new = np.unique(indices[(self._position[indices] < 0) & (self.matrix.squared_column_norms[indices] > 0)])
        if new.size == 0:
            return
        self._products.append(self.vectors.extend(new))
        self._position[new] = np.arange(self.indices.size, self.indices.size + new.size)
        self.indices = np.concatenate([self.indices, new])
        self.lengths = np.sqrt(self.matrix.squared_column_norms[self.indices])

    def positions(self, indices: Indices) -> Indices:
        """Where these columns are among the candidates."""
        return self._position[indices]

    def decreases(
        self, columns: Indices, P: Doubles, other: CandidateSide, rows: Indices, Q: Doubles, threads: ThreadBudget
    ) -> Doubles:
        """Guaranteed decrease of the squared error by each candidate; minus infinity for those already chosen.

        P and Q are the weights of ``columns`` and of the ``rows`` of the other side, in the units of the matrix.
        """
        coefficients = np.hstack([self.products_with(columns), self.vectors.dot(Q)])
        factors = P, other.vectors.as_columns(other.positions(rows))
        decreases = sums_over_slopes(self.products, coefficients, factors, _positive_squares, threads)
        decreases /= self.lengths**2
        decreases[self.positions(columns)] = -np.inf
        return decreases

    def slopes(
        self, index: int, columns: Indices, P: Doubles, other: CandidateSide, rows: Indices, Q: Doubles
    ) -> Doubles:
        """M_j'E for one candidate."""
        at = int(self._position[index])
        slopes = self.products[at] - P @ self.products[at, columns]
        coupling = self.vectors.dot(Q, at)[np.newaxis]
        return np.asarray(slopes - other.vectors.combined(coupling, other.positions(rows))[0])


class Candidates:
    """Candidate columns and rows, and the fitting and scoring of selections among them."""

    def __init__(self, matrix: Matrix, columns: Indices, rows: Indices) -> None:
        self.matrix = matrix
        self.columns = CandidateSide(matrix, columns)
        self.rows = CandidateSide(matrix.T, rows)
        self.threads = ThreadBudget()
        """Threads that share the scoring."""

    def empty(self) -> Fit:
        """The empty selection."""
        m, n = self.matrix.shape
        none = np.empty(0, dtype=np.intp)
        return Fit(none, none, np.zeros((n, 0)), np.zeros((m, 0)), self.matrix.squared_norm)

    def include(self, columns: Indices, rows: Indices) -> None:
        """Make sure that a selection is among the candidates."""
        self.columns.extend(columns)
        self.rows.extend(rows)

    def fit(
        self, columns: Indices, rows: Indices, P: Doubles | None = None, Q: Doubles | None = None, *,
        tolerance: float = 1e-3, max_iterations: int = 30,
    ) -> Fit:  # fmt: skip
        """Weights of a selection of candidates, started from (P, Q) or from zero."""
        m, n = self.matrix.shape
        problem = self.problem(columns, rows)
        P = np.zeros((n, columns.size)) if P is None else np.array(P, order="C")
        Q = np.zeros((m, rows.size)) if Q is None else np.array(Q, order="C")
        squared_error, _, _ = solve_joint(problem, P, Q, tolerance, max_iterations)
        return Fit(columns, rows, P, Q, squared_error)

    def without(self, fit: Fit, position: int) -> Fit:
        """The selection without one index (columns first, then rows); the other weights are kept, not fitted."""
        keep_columns = np.arange(fit.columns.size) != position
        keep_rows = np.arange(fit.rows.size) != position - fit.columns.size
        return Fit(fit.columns[keep_columns], fit.rows[keep_rows], fit.P[:, keep_columns], fit.Q[:, keep_rows], np.inf)

    def extended(self, fit: Fit, axis: Axis, index: int) -> Fit:
        """The selection with one more index, whose weights give the guaranteed decrease; nothing is fitted."""
        P, Q = self._plain_weights(fit)
        if axis == "columns":
            slopes = self.columns.slopes(index, fit.columns, P, self.rows, fit.rows, Q)
            length = self.columns.lengths[self.columns.positions(np.array([index]))]
            added = np.maximum(slopes, 0.0)[:, None] / length
            return Fit(np.append(fit.columns, index), fit.rows, np.hstack([fit.P, added]), fit.Q, np.inf)
        slopes = self.rows.slopes(index, fit.rows, Q, self.columns, fit.columns, P)
        length = self.rows.lengths[self.rows.positions(np.array([index]))]
        added = np.maximum(slopes, 0.0)[:, None] / length
        return Fit(fit.columns, np.append(fit.rows, index), fit.P, np.hstack([fit.Q, added]), np.inf)

    def best(self, fit: Fit, count: int = 1, axes: Axes = COLUMNS_AND_ROWS) -> list[tuple[Axis, int]]:
        """The candidates with the largest guaranteed decrease, as pairs of axis and index."""
        P, Q = self._plain_weights(fit)
        by_column, by_row = np.zeros(self.columns.indices.size), np.zeros(self.rows.indices.size)
        if "columns" in axes:
            by_column = self.columns.decreases(fit.columns, P, self.rows, fit.rows, Q, self.threads)
        if "rows" in axes:
            by_row = self.rows.decreases(fit.rows, Q, self.columns, fit.columns, P, self.threads)
        everything = np.concatenate([by_column, by_row])
        order = np.argsort(-everything, kind="stable")[:count]
        n = by_column.size
        return [
            ("columns", int(self.columns.indices[i])) if i < n else ("rows", int(self.rows.indices[i - n]))
            for i in order
            if everything[i] > 0
        ]

    def _plain_weights(self, fit: Fit) -> tuple[Doubles, Doubles]:
        P = fit.P / self.columns.lengths[self.columns.positions(fit.columns)]
        Q = fit.Q / self.rows.lengths[self.rows.positions(fit.rows)]
        return P, Q

    def problem(self, columns: Indices, rows: Indices) -> JointProblem:
        """The problem of the weights of a selection of candidates."""
        at_columns, at_rows = self.columns.positions(columns), self.rows.positions(rows)
        column_lengths, row_lengths = self.columns.lengths[at_columns], self.rows.lengths[at_rows]
        of_columns, of_rows = self.columns.products, self.rows.products
        return JointProblem(
            C=self.columns.vectors.of_unit_length(at_columns, column_lengths),
            R=self.rows.vectors.of_unit_length(at_rows, row_lengths),
            gram_C=of_columns[np.ix_(at_columns, columns)] / np.outer(column_lengths, column_lengths),
            gram_R=of_rows[np.ix_(at_rows, rows)] / np.outer(row_lengths, row_lengths),
            linear_P=_linear(of_columns, at_columns, column_lengths),
            linear_Q=_linear(of_rows, at_rows, row_lengths),
            column_lengths=column_lengths,
            row_lengths=row_lengths,
            squared_norm=self.matrix.squared_norm,
        )


def _linear(products: Floats, positions: Indices, lengths: Doubles) -> Doubles:
    """Some rows of the products, transposed and divided by minus the lengths; in blocks that fit in the cache."""
    linear = np.empty((products.shape[1], positions.size))
    for start in range(0, linear.shape[0], _BLOCK):
        block = slice(start, start + _BLOCK)
        np.divide(products[positions, block].T, -lengths, out=linear[block])
    return linear


def _positive_squares(slopes: Doubles, _coefficients: Doubles, _factors: Doubles) -> Doubles:
    return positive_squares(slopes)
