r"""Which squared errors are summed: every entry, every entry with weights of rows and columns, or observed entries.

Each objective has a matrix without holes from which columns and rows are chosen, ``source``, and fits their weights in
two ways: nonnegative, or nonnegative with sum one for each row. A new kind of error is a new class here.

With weights :math:`s_i` of rows and :math:`f_j` of columns the weighted error is an ordinary one,

.. math:: \sum_{ij} s_i f_j (M - C P_1 - P_2 R)_{ij}^2 = \| S^{1/2} (M - C P_1 - P_2 R) F^{1/2} \|_F^2 ,

of the scaled matrix :math:`S^{1/2} M F^{1/2}`, whose columns and rows are the scaled columns and rows of M. So nothing
has to be filled, and a sparse matrix stays sparse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gsnmf.matrix.completion import Completion, complete, filled, with_anchors
from gsnmf.matrix.in_memory import scaled_matrix
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.problem import Problem
from gsnmf.records import Record, Weights
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.weights import solve_weights
from gsnmf.weights.observed import solve_anchored
from gsnmf.weights.optimality import ratio
from gsnmf.weights.sum_to_one import solve_simplex

Start = tuple[Floats, Floats]
"""Weights of columns and rows from which a solver starts, shape (r1, n) and (m, r2)."""


@dataclass(frozen=True, eq=False)
class Filling(Record):
    """What fills the holes of a matrix.

    Attributes
    ----------
    left, right : arrays, shape (m, k) and (n, k)
        Factors of the low-rank matrix that fills them.
    columns, rows : arrays, shape (m, r1) and (r2, n), or None
        The chosen columns and rows, with holes filled by the factorization itself; None if the low-rank matrix filled
        them.
    """

    left: Doubles
    right: Doubles
    columns: Floats | None = None
    rows: Floats | None = None


@dataclass(frozen=True)
class Fitted:
    """Weights of a selection, the matrix that the result explains, and what fills its holes."""

    weights: Weights
    source: Matrix
    filling: Filling | None = None


class Objective(Protocol):
    """Which squared errors are summed."""

    source: Matrix
    """The matrix without holes from which columns and rows are chosen."""
    filling: Filling | None
    """What fills the holes, if there are any."""

    def nonnegative(
        self, columns: Indices, rows: Indices, start: Start | None, tolerance: float, max_iterations: int
    ) -> Fitted:
        """Nonnegative weights of chosen columns and rows."""

    def summing_to_one(self, rows: Indices, tolerance: float) -> Fitted:
        """Weights of chosen rows that sum to one for each row."""


class EveryEntry:
    """All entries count the same."""

    filling: Filling | None = None

    def __init__(self, matrix: Matrix) -> None:
        self.source = matrix

    def nonnegative(
        self, columns: Indices, rows: Indices, start: Start | None, tolerance: float, max_iterations: int
    ) -> Fitted:
        """Nonnegative weights of chosen columns and rows."""
        weights = solve_weights(
            self.source, columns, rows, tolerance=tolerance, max_iterations=max_iterations, start=start
        )
        return Fitted(weights, self.source)

    def summing_to_one(self, rows: Indices, tolerance: float) -> Fitted:
        """Weights of chosen rows that sum to one for each row."""
        return Fitted(solve_simplex(self.source, _chosen_rows(self.source, rows), tolerance), self.source)


class WeightedAxes:
    """Every entry counts with the weight of its row times the weight of its column.

    Rows and columns of weight zero are never chosen, and their factor weights are zero. The weight of a row affects
    which rows are chosen, but not the mixture that explains the row.
    """

    filling: Filling | None = None

    def __init__(self, matrix: Matrix, of_rows: Doubles, of_columns: Doubles) -> None:
        self._matrix = matrix
        self._rows, self._columns = np.sqrt(of_rows), np.sqrt(of_columns)
        self.source: Matrix = scaled_matrix(matrix, self._rows, self._columns)

    def nonnegative(
        self, columns: Indices, rows: Indices, start: Start | None, tolerance: float, max_iterations: int
    ) -> Fitted:
        """Nonnegative weights of chosen columns and rows."""
        found = EveryEntry(self.source).nonnegative(columns, rows, start, tolerance, max_iterations).weights
        P1 = found.column_weights * self._columns[columns][:, None] * _inverse(self._columns)
        P2 = found.row_weights * self._rows[rows] * _inverse(self._rows)[:, None]
        dtype = self._matrix.dtype
        weights = replace(found, column_weights=P1.astype(dtype, copy=False), row_weights=P2.astype(dtype, copy=False))
        return Fitted(weights, self._matrix)

    def summing_to_one(self, rows: Indices, tolerance: float) -> Fitted:
        """Weights of chosen rows that sum to one for each row."""
        chosen = _chosen_rows(self._matrix, rows) * self._columns
        weights = solve_simplex(scaled_matrix(self._matrix, None, self._columns), chosen, tolerance)
        squared_error = self.source.squared_distance(weights.row_weights * self._rows[:, None], chosen)
        error = ratio(math.sqrt(squared_error), math.sqrt(self.source.squared_norm))
        return Fitted(replace(weights, relative_error=error), self._matrix)


class ObservedEntries:
    """Only observed entries count, each with its weight.

    A low-rank matrix fills the holes before columns and rows are chosen (`gsnmf.matrix.completion`). The weights, and
    the values in the holes of the chosen columns and rows, minimise the error on observed entries
    (`gsnmf.weights.observed`). A row or column without an observed entry is never chosen, and predicted as
    zero. Sparse data is never made dense: the filled matrix is a sparse matrix plus one of low rank.
    """

    def __init__(self, observed: Observed, completion: Completion) -> None:
        self._observed = observed
        self.filling: Filling | None = Filling(completion.left, completion.right)
        self._filled = filled(observed, completion)
        self.source: Matrix = self._filled

    def nonnegative(
        self, columns: Indices, rows: Indices, start: Start | None, tolerance: float, max_iterations: int
    ) -> Fitted:
        """Nonnegative weights of chosen columns and rows."""
        found = solve_anchored(
            self._observed,
            self._filled,
            columns,
            rows,
            tolerance=tolerance,
            max_iterations=max_iterations,
            start=start,
        )
        source = with_anchors(self._filled, columns, rows, found.columns, found.rows)
        assert self.filling is not None
        return Fitted(found.weights, source, replace(self.filling, columns=found.columns, rows=found.rows))

    def summing_to_one(self, rows: Indices, tolerance: float) -> Fitted:
        """Weights of chosen rows that sum to one for each row."""
        weights = solve_simplex(self._observed, _chosen_rows(self.source, rows), tolerance)
        return Fitted(weights, self.source, self.filling)


def objective_of(problem: Problem, size: int) -> Objective:
    """The objective of a problem; if the matrix has holes, a matrix whose rank is ``size`` fills them."""
    matrix = problem.counted
    if isinstance(matrix, Observed):
        return ObservedEntries(matrix, complete(matrix, size))
    return WeightedAxes(matrix, *problem.axis_weights) if problem.weighted else EveryEntry(matrix)


def _chosen_rows(matrix: Matrix, rows: Indices) -> Floats:
    return matrix.T.raw_columns(rows).T


def _inverse(factors: Doubles) -> Doubles:
    return np.divide(1.0, factors, out=np.zeros_like(factors), where=factors > 0)
