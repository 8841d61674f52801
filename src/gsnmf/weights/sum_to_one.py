r"""Nonnegative weights that sum to one: the shares in which every row mixes given components.

.. math:: \min_X \; \|M - X H\|_F \quad\text{subject to}\quad X \ge 0,\; X e = e

One small problem per row, solved exactly by an active-set method (`gsnmf._kernels.simplex`). A row x is optimal if
the slopes g of its error satisfy :math:`g_k \ge g^T x`, with equality where :math:`x_k > 0`. The reported violation is
the one of `gsnmf.weights.optimality` for the slopes :math:`g - g^T x`. Columns are the rows of the transpose.
"""

from __future__ import annotations

import math

import numpy as np

from gsnmf._kernels.observed_entries import residuals, row_slopes, simplex_rows
from gsnmf._kernels.orthogonal import orthogonal_factors
from gsnmf._kernels.simplex import simplex_least_squares
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import Weights
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.weights.optimality import ratio, relative_violation, violation


def simplex_weights(held: Matrix | Observed, components: Floats) -> Doubles:
    """Shares of given components in every row of a matrix, which sum to one.

    Parameters
    ----------
    held : Matrix or Observed, shape (m, n)
        With holes, the shares of a row are fitted to its observed entries; a row without any has equal shares.
    components : array, shape (r, n)
        In the unit of the data, of any scale.

    Returns
    -------
    array, shape (m, r)

    Notes
    -----
    A matrix without holes is read through one product with an n x r block, so a sparse matrix stays sparse.

    Examples
    --------
    >>> from gsnmf.matrix import wrap
    >>> simplex_weights(wrap([[2.0, 2.0], [9.0, 0.0]]), np.array([[4.0, 0.0], [0.0, 4.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    if isinstance(held, Observed):
        X = simplex_rows(held.entries, _by_columns(components))
        X[held.empty_rows] = 1.0 / components.shape[0]
        return X
    triangle, targets, _ = _reduced(held, components)
    return simplex_least_squares(triangle, targets)


def solve_simplex(held: Matrix | Observed, components: Floats, tolerance: float) -> Weights:
    """`simplex_weights` of chosen rows, as `Weights` of rows alone, with their error and optimality."""
    X, squared_error, optimality = _solved(held, components)
    relative_error = ratio(np.sqrt(squared_error), np.sqrt(held.squared_norm))
    no_columns = np.zeros((0, held.shape[1]), dtype=held.dtype)
    row_weights = X.astype(held.dtype, copy=False)
    return Weights(no_columns, row_weights, relative_error, optimality, 1, optimality <= tolerance)


def _solved(held: Matrix | Observed, components: Floats) -> tuple[Doubles, float, float]:
    """The shares, the squared error in the unit in which the matrix is held, and the violation."""
    if isinstance(held, Observed):
        X, F = simplex_weights(held, components), _by_columns(components)
        slopes = row_slopes(held.entries, X, F, F, with_values=True)
        squared_error = held.weighted_squares(residuals(held.entries, X, F))
        violated = _violation(X, slopes, np.linalg.norm(F, axis=0))
        return X, squared_error, relative_violation(violated, squared_error, held.squared_norm)
    triangle, targets, exponent = _reduced(held, components)
    X = simplex_least_squares(triangle, targets)
    squared_error = held.squared_distance(X, components.astype(np.float64))
    slopes = (X @ triangle.T - targets) @ triangle
    violated = math.ldexp(_violation(X, slopes, np.linalg.norm(triangle, axis=0)), exponent - held.exponent)
    return X, squared_error, relative_violation(violated, squared_error, held.squared_norm)


def _by_columns(components: Floats) -> Doubles:
    return np.ascontiguousarray(components.T, dtype=np.float64)


def _reduced(matrix: Matrix, components: Floats) -> tuple[Doubles, Doubles, int]:
    """The triangle of the components, one target per row in its basis, and the power of two that is their unit."""
    exponent = int(np.frexp(components.max(initial=0.0))[1])  # scale the components to size one: their squares are safe
    orthogonal, triangle = orthogonal_factors(np.ldexp(_by_columns(components), -exponent))
    products = np.asarray(matrix.dot(orthogonal), dtype=np.float64)
    return triangle, np.ldexp(products, matrix.exponent - exponent), exponent


def _violation(X: Doubles, slopes: Doubles, lengths: Doubles) -> float:
    reduced = slopes - np.einsum("ik,ik->i", slopes, X)[:, None]
    return violation(X * lengths, reduced / np.where(lengths > 0, lengths, 1.0))
