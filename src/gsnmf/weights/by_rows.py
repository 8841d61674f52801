"""Weights of a matrix with too many rows to hold the row weights: column weights in memory, row weights lazy.

Row weights follow from the column weights and the chosen rows, one small problem per row (`remaining_weights`), and are
computed on request. Finding the column weights and the error needs only sums over the rows (`eliminated`), so no more
than O(n r) numbers are ever in one place.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gsnmf._kernels.orthogonal import orthogonal_factors
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import Weights
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.weights.eliminated import ColumnProblem, RowSums, n_row_sums, row_sums, solve_columns
from gsnmf.weights.one_sided import one_sided_weights, row_weights_for
from gsnmf.weights.optimality import CANCELLED, ratio, relative_violation

_Solved = tuple[Doubles, Floats, float, float, int]
"""Column weights, n x r1, the chosen rows, r2 x n, the squared error, the violation and the iterations."""


def solve_by_rows(
    matrix: Matrix, columns: Indices, rows: Indices, tolerance: float, max_iterations: int, start: Floats | None
) -> Weights:
    """Weights of columns and rows, the latter as an array that stays with the data; ``start`` are column weights."""
    places = np.flatnonzero(matrix.squared_column_norms[columns] > 0)
    places = places[np.argsort(columns[places])]
    used = columns[places]
    given = None if start is None else start[places]
    X, basis, squared_error, optimality, n_iterations = _solved(matrix, used, rows, tolerance, max_iterations, given)
    column_weights = np.zeros((columns.size, matrix.shape[1]), dtype=matrix.dtype)
    column_weights[places] = X.T
    raw_basis = np.ldexp(basis, matrix.exponent, dtype=matrix.dtype)
    row_weights = row_weights_for(matrix, columns, column_weights, raw_basis)
    if squared_error < CANCELLED * matrix.squared_norm:
        W, H = matrix.left_factor(columns, row_weights), np.vstack([column_weights, raw_basis])
        squared_error = matrix.squared_distance(W, H)
    relative_error = ratio(np.sqrt(squared_error), np.sqrt(matrix.squared_norm))
    return Weights(column_weights, row_weights, relative_error, optimality, n_iterations, optimality <= tolerance)


def _solved(
    matrix: Matrix, columns: Indices, rows: Indices, tolerance: float, max_iterations: int, start: Floats | None
) -> _Solved:
    if rows.size == 0:
        return _columns_alone(matrix, columns, np.zeros((0, matrix.shape[1]), dtype=matrix.dtype))
    if columns.size == 0:
        return _rows_alone(matrix, rows)
    C, images, basis = matrix.chosen(columns, rows)
    if not basis.any():
        return _columns_alone(matrix, columns, basis.T)
    lengths = np.sqrt(matrix.squared_column_norms[columns])
    R, orthogonal, triangle = _unit_rows(basis)
    images = images / lengths
    problem = ColumnProblem(
        R=R,
        orthogonal=orthogonal,
        triangle=triangle,
        gram_C=images[columns] / lengths[:, None],
        linear=np.ascontiguousarray(-images),
        squared_norm=matrix.squared_norm,
    )
    projected = matrix.row_product(orthogonal)

    def sums(P: Doubles) -> RowSums:
        r1, r2 = P.shape[1], triangle.shape[0]
        work = partial(
            _row_sums,
            coordinates=(P / lengths).T @ orthogonal,
            lengths=lengths,
            triangle=triangle,
            with_curvature=problem.with_curvature,
        )
        shape = (n_row_sums(r1, r2, problem.with_curvature),)
        return RowSums.unpacked(matrix.sum_over_rows(work, projected, C, shape=shape), r1, r2)

    first = np.zeros(problem.linear.shape) if start is None else np.multiply(start.T, lengths, dtype=np.float64)
    P, squared_error, optimality, n_iterations = solve_columns(problem, first, sums, tolerance, max_iterations)
    return P / lengths, basis.T, squared_error, optimality, n_iterations


def _row_sums(
    projected: Doubles, C: Floats, *, coordinates: Doubles, lengths: Doubles, triangle: Doubles, with_curvature: bool
) -> Doubles:
    C = C.astype(np.float64, copy=False)
    return row_sums(projected - C @ coordinates, C / lengths, triangle, with_curvature)


def _columns_alone(matrix: Matrix, columns: Indices, basis: Floats) -> _Solved:
    X, squared_error, optimality = one_sided_weights(matrix, columns)
    return X, basis, squared_error, optimality, 1


def _rows_alone(matrix: Matrix, rows: Indices) -> _Solved:
    """One pass, and one read of the chosen rows."""
    none = np.zeros((matrix.shape[1], 0))
    basis = matrix.T.columns(rows)
    if not basis.any():
        return none, basis.T, matrix.squared_norm, 0.0, 1
    _, orthogonal, triangle = _unit_rows(basis)
    work = partial(_sums_of_rows_alone, triangle=triangle)
    shape = (n_row_sums(0, triangle.shape[0], False),)
    found = RowSums.unpacked(
        matrix.sum_over_rows(work, matrix.row_product(orthogonal), shape=shape), 0, triangle.shape[0]
    )
    squared_error = max(0.0, matrix.squared_norm + found.squared_change)
    violated = np.sqrt(found.squared_violation)
    return none, basis.T, squared_error, relative_violation(violated, squared_error, matrix.squared_norm), 1


def _sums_of_rows_alone(targets: Doubles, *, triangle: Doubles) -> Doubles:
    return row_sums(targets, np.empty((targets.shape[0], 0)), triangle, with_curvature=False)


def _unit_rows(basis: Floats) -> tuple[Doubles, Doubles, Doubles]:
    """The nonzero rows, given as columns, at unit length, and their orthogonal factor and triangle."""
    double = basis.astype(np.float64, copy=False)
    lengths = np.linalg.norm(double, axis=0)
    R = np.ascontiguousarray(double[:, lengths > 0] / lengths[lengths > 0])
    return R, *orthogonal_factors(R)
