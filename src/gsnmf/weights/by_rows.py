"""Weights for a Dask array: those of columns in memory, those of rows lazy, in its chunks of rows.

Row weights follow from the column weights and the chosen rows, one small problem a row (`remaining_weights`), and are
computed where they are asked for. What is needed of them to find the column weights, and to know how good all are, are
sums over the rows (`eliminated`), so that no more than O(n r) numbers are ever in the driver.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import cast

import dask.array as da
import numpy as np
from scipy import linalg

from gsnmf.matrices.chunked.arrays import map_rows
from gsnmf.matrices.chunked.matrix import ChunkedMatrix
from gsnmf.matrices.chunked.passes import side_by_side, sum_by_rows
from gsnmf.matrices.protocol import wrap
from gsnmf.results.records import Weights
from gsnmf.support.arrays import Doubles, Floats, Indices, RawMatrix
from gsnmf.weights.eliminated import ColumnProblem, RowSums, n_row_sums, row_sums, solve_columns
from gsnmf.weights.one_sided import reduced, reduced_weights, remaining_weights
from gsnmf.weights.optimality import CANCELLED, ratio, relative_violation

_INDEPENDENT = 1e-4
"""Columns whose residuals after those before them are longer than this part of them are solved for by Gram products."""


def lazy_row_weights(matrix: da.Array, columns: Indices, column_weights: Floats, basis: Floats) -> Floats:
    """`remaining_weights` of the rows of a Dask array, as a Dask array with the same chunks of rows.

    Parameters
    ----------
    matrix : Dask array, shape (m, n)
    columns : int array of length r1
    column_weights : array, shape (r1, n)
    basis : array, shape (r2, n)
        The chosen rows.
    """
    work = partial(_row_weights, columns=columns)
    return cast("Floats", map_rows(matrix, work, basis.shape[0], shared=(column_weights, basis)))


def _row_weights(rows: RawMatrix, column_weights: Floats, basis: Floats, *, columns: Indices) -> Floats:
    return remaining_weights(wrap(rows), columns, column_weights, basis).astype(rows.dtype, copy=False)


def solve_chunked_weights(
    matrix: ChunkedMatrix,
    columns: Indices,
    rows: Indices,
    tolerance: float,
    max_iterations: int,
    start: Floats | None,
) -> Weights:
    """Weights of columns and rows of a Dask array; ``start`` are column weights."""
    places = np.flatnonzero(matrix.squared_column_norms[columns] > 0)
    places = places[np.argsort(columns[places])]
    used = columns[places]
    given = None if start is None else start[places]
    X, basis, squared_error, optimality, n_iterations = _solved(matrix, used, rows, tolerance, max_iterations, given)
    column_weights = np.zeros((columns.size, matrix.shape[1]), dtype=matrix.dtype)
    column_weights[places] = X.T
    row_weights = lazy_row_weights(
        matrix.passes.array, columns, column_weights, np.ldexp(basis, matrix.exponent, dtype=matrix.dtype)
    )
    if squared_error < CANCELLED * matrix.squared_norm:
        squared_error = _explicit_error(matrix, used, row_weights, np.vstack([X.T, basis]))
    relative_error = ratio(np.sqrt(squared_error), np.sqrt(matrix.squared_norm))
    return Weights(column_weights, row_weights, relative_error, optimality, n_iterations, optimality <= tolerance)


def _explicit_error(matrix: ChunkedMatrix, columns: Indices, row_weights: Floats, H: Floats) -> float:
    lazy = cast("da.Array", row_weights)
    if columns.size == 0:
        return matrix.squared_residual(row_weights, H)
    chosen = matrix.lazy_columns(columns)[0]
    W = side_by_side(chosen, lazy)
    return matrix.squared_residual(cast("Floats", W), H)


def _solved(
    matrix: ChunkedMatrix,
    columns: Indices,
    rows: Indices,
    tolerance: float,
    max_iterations: int,
    start: Floats | None,
) -> tuple[Doubles, Floats, float, float, int]:
    """Column weights, n x r1, the chosen rows, the squared error, the violation and the iterations."""
    if rows.size == 0:
        return (*_columns_alone(matrix, columns), 1)
    if columns.size == 0:
        return (*_rows_alone(matrix, rows), 1)
    lengths = np.sqrt(matrix.squared_column_norms[columns])
    lazy_C, lazy_images, _ = matrix.lazy_with_products(columns)
    lazy_rows, order, _ = matrix.T.lazy_columns(rows)
    (C,), (images, chosen) = matrix.passes.run(keep=(lazy_C,), fetch=(lazy_images, lazy_rows))
    basis = chosen[:, order]
    if not basis.any():
        X, _, squared_error, optimality = _columns_alone(matrix, columns)
        return X, basis.T, squared_error, optimality, 1
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
    (projected,), _ = matrix.passes.run(keep=(matrix.lazy_dot(orthogonal),))

    def sums(P: Doubles) -> RowSums:
        r1, r2 = P.shape[1], triangle.shape[0]
        work = partial(
            _row_sums,
            coordinates=(P / lengths).T @ orthogonal,
            lengths=lengths,
            triangle=triangle,
            with_curvature=problem.with_curvature,
        )
        lazy = sum_by_rows(work, projected, C, shape=(n_row_sums(r1, r2, problem.with_curvature),))
        return RowSums.unpacked(matrix.passes.compute(lazy, part=0.0)[0], r1, r2)

    first = np.zeros(problem.linear.shape) if start is None else np.multiply(start.T, lengths, dtype=np.float64)
    P, squared_error, optimality, n_iterations = solve_columns(problem, first, sums, tolerance, max_iterations)
    return P / lengths, basis.T, squared_error, optimality, n_iterations


def _row_sums(
    projected: Doubles, C: Floats, *, coordinates: Doubles, lengths: Doubles, triangle: Doubles, with_curvature: bool
) -> Doubles:
    C = C.astype(np.float64, copy=False)
    return row_sums(projected - C @ coordinates, C / lengths, triangle, with_curvature)


def _rows_alone(matrix: ChunkedMatrix, rows: Indices) -> tuple[Doubles, Floats, float, float]:
    """No column weights, the rows, the squared error and the violation, in one pass and the read of the rows."""
    none = np.zeros((matrix.shape[1], 0))
    basis = matrix.T.columns(rows)
    if not basis.any():
        return none, basis.T, matrix.squared_norm, 0.0
    _, orthogonal, triangle = _unit_rows(basis)
    work = partial(_sums_of_rows_alone, triangle=triangle)
    lazy = sum_by_rows(work, matrix.lazy_dot(orthogonal), shape=(n_row_sums(0, triangle.shape[0], False),))
    found = RowSums.unpacked(matrix.passes.compute(lazy)[0], 0, triangle.shape[0])
    squared_error = max(0.0, matrix.squared_norm + found.squared_change)
    violated = np.sqrt(found.squared_violation)
    return none, basis.T, squared_error, relative_violation(violated, squared_error, matrix.squared_norm)


def _sums_of_rows_alone(targets: Doubles, *, triangle: Doubles) -> Doubles:
    return row_sums(targets, np.empty((targets.shape[0], 0)), triangle, with_curvature=False)


def _unit_rows(basis: Floats) -> tuple[Doubles, Doubles, Doubles]:
    """Those rows, given as columns, that are not zero, in unit length, and their orthogonal factor and triangle."""
    double = basis.astype(np.float64, copy=False)
    lengths = np.linalg.norm(double, axis=0)
    R = np.ascontiguousarray(double[:, lengths > 0] / lengths[lengths > 0])
    return R, *reduced(R)


def _columns_alone(matrix: ChunkedMatrix, columns: Indices) -> tuple[Doubles, Floats, float, float]:
    """Exact column weights, n x r, no rows, the squared error and the violation."""
    no_rows = np.zeros((0, matrix.shape[1]), dtype=matrix.dtype)
    if columns.size == 0:
        return np.zeros((matrix.shape[1], 0)), no_rows, matrix.squared_norm, 0.0
    lengths = np.sqrt(matrix.squared_column_norms[columns])
    triangle, targets = _reduced_columns(matrix, columns, lengths)
    X, squared_error, optimality = reduced_weights(triangle, targets, matrix.squared_norm)
    return X / lengths, no_rows, squared_error, optimality


def _reduced_columns(matrix: ChunkedMatrix, columns: Indices, lengths: Doubles) -> tuple[Doubles, Doubles]:
    """R and M'Q of a factorization C = QR of the chosen columns, scaled to unit length."""
    images = matrix.gram_rows(columns) / lengths[:, None]
    with contextlib.suppress(linalg.LinAlgError):
        lower = linalg.cholesky(images[:, columns] / lengths, lower=True)
        if lower.diagonal().min() > _INDEPENDENT:  # Gram products have kept half of their digits or more
            targets = linalg.solve_triangular(lower, images, lower=True, check_finite=False)
            return np.ascontiguousarray(lower.T), np.ascontiguousarray(targets.T)
    orthogonal, triangle = matrix.orthonormal_columns(columns)
    return triangle, np.ascontiguousarray(matrix.T.dot(orthogonal), dtype=np.float64)
