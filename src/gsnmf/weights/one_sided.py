"""Weights of columns alone, or of rows alone: exact nonnegative least squares.

The chosen columns are reduced once, to a triangle or, if that is accurate enough, to their Gram matrix. After that,
every column of the matrix is a problem with r unknowns and r equations.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from gsnmf._kernels.coordinate_descent import coordinate_sweep
from gsnmf._kernels.least_squares import nonnegative_least_squares, nonnegative_quadratic
from gsnmf._kernels.orthogonal import orthogonal_factors
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.protocol import Matrix
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.weights.optimality import relative_violation, violation

_WELL_CONDITIONED = 1e-4
"""Ratio of the smallest to the largest eigenvalue above which a Gram matrix keeps twelve of sixteen digits."""

GUESSING_SWEEPS = 3
"""Sweeps of coordinate descent that guess the positive weights before they are solved for exactly."""


def one_sided_weights(matrix: Matrix, indices: Indices) -> tuple[Doubles, float, float]:
    """Exact weights of columns alone, as an n x r array, with the squared error and the violation."""
    if indices.size == 0:
        return np.zeros((matrix.shape[1], 0)), matrix.squared_norm, 0.0
    triangle, targets = matrix.reduced(indices)
    X = exact_weights(triangle, targets)
    residual = targets - X @ triangle.T
    outside = max(0.0, matrix.squared_norm - float(np.vdot(targets, targets)))
    squared_error = outside + float(np.vdot(residual, residual))
    violated = violation(X, -(residual @ triangle))
    lengths = np.sqrt(matrix.squared_column_norms[indices])
    return X / lengths, squared_error, relative_violation(violated, squared_error, matrix.squared_norm)


def exact_weights(triangle: Doubles, targets: Doubles, n_sweeps: int = 0) -> Doubles:
    """Nonnegative least squares for each row of ``targets``.

    Sweeps of coordinate descent first guess the positive weights. They cost little if most weights are positive, and
    make it two to three times as fast if few are.
    """
    X = np.zeros(targets.shape)
    with single_threaded_blas():
        if n_sweeps:
            gram, linear = triangle.T @ triangle, np.negative(targets @ triangle, order="C")
            for _ in range(n_sweeps):
                coordinate_sweep(X, linear, gram)
        nonnegative_least_squares(X, triangle, targets)
    return X


def cone_weights(generators: Doubles, point: Doubles) -> Doubles:
    """Nonnegative weights with which the columns of ``generators``, which may be dependent, come closest to a point."""
    weights = np.zeros(generators.shape[1])
    lengths = np.linalg.norm(generators, axis=0)
    used = np.flatnonzero(lengths)
    if used.size:
        orthogonal, triangle = orthogonal_factors(generators[:, used] / lengths[used])
        weights[used] = exact_weights(triangle, (point @ orthogonal)[None])[0] / lengths[used]
    return weights


def remaining_weights(matrix: Matrix, columns: Indices, column_weights: Floats, basis: Floats) -> Doubles:
    r"""Exact row weights of a matrix for given column weights and given rows, which may come from another matrix.

    .. math:: \min_{P_2 \ge 0} \; \|M - M(:, \mathrm{columns})\, P_1 - P_2 B\|_F

    Parameters
    ----------
    matrix : Matrix, shape (m, n)
    columns : int array of length r1
    column_weights : array, shape (r1, n)
        P1.
    basis : array, shape (r2, n)
        B, rows of any matrix with as many columns; a row of zeros gets weights of zero.

    Returns
    -------
    array, shape (m, r2)

    Notes
    -----
    The matrix is read through one product with an n x r2 block, so a sparse matrix stays sparse.
    """
    weights = np.zeros((matrix.shape[0], basis.shape[0]))
    exponents = np.frexp(basis.max(axis=1, initial=0.0))[1]  # scale the rows to size one: their squares are safe
    scaled = np.ldexp(basis.astype(np.float64), -exponents[:, None])
    lengths = np.linalg.norm(scaled, axis=1)
    used = np.flatnonzero(lengths)
    if used.size:
        unit = np.ascontiguousarray((scaled[used] / lengths[used, None]).T)
        gram = unit.T @ unit
        if _well_conditioned(gram):
            solved = _exact_by_gram(gram, _remainder_dot(matrix, columns, column_weights, unit))
        else:
            orthogonal, triangle = orthogonal_factors(unit)
            targets = _remainder_dot(matrix, columns, column_weights, orthogonal)
            solved = exact_weights(triangle, targets, GUESSING_SWEEPS)
        weights[:, used] = np.ldexp(solved / lengths[used], matrix.exponent - exponents[used])
    return weights


def _remainder_dot(matrix: Matrix, columns: Indices, column_weights: Floats, block: Doubles) -> Doubles:
    """(M - M(:, columns) P1) times a block."""
    product = matrix.dot(block)
    if columns.size:
        product -= matrix.columns(columns) @ (column_weights @ block)
    return np.ascontiguousarray(product, dtype=np.float64)


def _well_conditioned(gram: Doubles) -> bool:
    spectrum = linalg.eigvalsh(gram, check_finite=False)
    return bool(spectrum[0] >= _WELL_CONDITIONED * spectrum[-1])


def _exact_by_gram(gram: Doubles, linear: Doubles) -> Doubles:
    """Nonnegative least squares from the Gram matrix of the columns and their products with each target."""
    X = np.zeros(linear.shape)
    with single_threaded_blas():
        nonnegative_quadratic(X, gram, linear)
    return X


def coefficients_for(matrix: Matrix, components: Floats) -> Doubles:
    r"""Exact nonnegative coefficients of every row of a matrix for given components.

    Solves

    .. math:: \min_{W \ge 0} \; \|M - W H\|_F

    for components H of shape (r, n), of any scale.
    """
    nothing = np.empty(0, dtype=np.intp)
    return remaining_weights(matrix, nothing, np.empty((0, matrix.shape[1])), components)


def row_weights_for(matrix: Matrix, columns: Indices, column_weights: Floats, basis: Floats) -> Any:
    """`remaining_weights` in the precision of the matrix, as an array that stays with the data."""
    work = partial(_row_weights, columns=columns)
    return matrix.map_rows(work, basis.shape[0], shared=(column_weights, basis))


def _row_weights(rows: Matrix, column_weights: Floats, basis: Floats, *, columns: Indices) -> Floats:
    return remaining_weights(rows, columns, column_weights, basis).astype(rows.dtype, copy=False)
