"""Nonnegative least squares for many targets with the same few columns, and the curvature at the solutions."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Doubles, Indices

_pivot_rows, _active_set_rows = Loop(native.pivot_rows), Loop(native.active_set_rows)
_passive_inverse_rows = Loop(native.passive_inverse_rows)

_PER_WEIGHT, _PER_WEIGHT_BY_GRAM = 500, 100
"""Operations per weight that come on top of those in proportion to the square of the number of columns; measured with
3 to 51 columns."""


def nonnegative_least_squares(X: Doubles, triangle: Doubles, targets: Doubles) -> None:
    """Turn each row x of X in place into the minimiser of |R x - b| over x >= 0, b its row of ``targets``.

    R is upper triangular with columns of unit length. Block principal pivoting (Kim and Park 2011), started from the
    positive entries of x: solve on the passive set, exchange all indices of the wrong sign, or only the last one once
    that no longer helps; this ends after finitely many steps. If it meets columns that depend on each other to working
    precision, the active-set method of Lawson and Hanson takes over. Solutions on the passive set come from its Gram
    matrix and are refined with R itself, so they are as accurate as those of a QR decomposition.

    References
    ----------
    J. Kim, H. Park, Fast nonnegative matrix factorization: an active-set-like method and comparisons, SIAM J. Sci.
    Comput. 33 (2011), doi:10.1137/110821172.

    Examples
    --------
    >>> X = np.zeros((2, 2))
    >>> nonnegative_least_squares(X, np.eye(2), np.array([[3.0, -1.0], [1.0, 2.0]]))
    >>> X
    array([[3., 0.],
           [1., 2.]])
    """
    columns = np.ascontiguousarray(triangle.T)  # row i holds column i: i + 1 entries, then zeros
    gram = columns @ triangle
    failed = _pivot(X, columns, gram, targets, by_gram=False)
    _solve_from_zero(X, columns, gram, targets[failed], failed)


def nonnegative_quadratic(X: Doubles, gram: Doubles, linear: Doubles) -> None:
    """Turn each row of X, which holds zeros, in place into the minimiser x of x G x / 2 - x . b over x >= 0.

    b is the matching row of ``linear``. G must have a unit diagonal and be well conditioned; otherwise use
    `nonnegative_least_squares`. Coordinate descent guesses the positive entries and skips what stays zero; block
    principal pivoting then makes the guess exact. The cost thus follows the number of positive entries.
    """
    lower = np.ascontiguousarray(np.linalg.cholesky(gram), dtype=np.float64)
    gram = np.ascontiguousarray(gram)
    failed = _pivot(X, lower, gram, linear, by_gram=True)
    if failed.size:
        targets = linalg.solve_triangular(lower, linear[failed].T, lower=True).T
        _solve_from_zero(X, lower, gram, np.ascontiguousarray(targets), failed)


def _pivot(X: Doubles, columns: Doubles, gram: Doubles, right: Doubles, *, by_gram: bool) -> Indices:
    """Block principal pivoting for all rows of X, in place; returns those at which it met dependent columns."""
    failed = np.empty(X.shape[0], dtype=np.uint8)
    per_weight = _PER_WEIGHT_BY_GRAM if by_gram else _PER_WEIGHT
    work = X.size * (per_weight + 8 * X.shape[1])
    _pivot_rows(X, columns, gram, np.ascontiguousarray(right), by_gram, failed, work=work)
    return np.flatnonzero(failed)


def _solve_from_zero(X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles, rows: Indices) -> None:
    """The active-set method for some rows of X, which have one target each."""
    if rows.size:
        solutions = np.zeros((rows.size, X.shape[1]))
        work = solutions.size * (_PER_WEIGHT + 8 * X.shape[1])
        _active_set_rows(solutions, columns, gram, np.ascontiguousarray(targets), work=work)
        X[rows] = solutions


def passive_inverses(X: Doubles, gram: Doubles) -> Doubles:
    """Upper triangle of the inverse Gram matrix of the positive entries of each row of X, zero elsewhere.

    All zero where those columns depend on each other.
    """
    n, r = X.shape
    inverses = np.zeros((n, r * (r + 1) // 2))
    _passive_inverse_rows(np.ascontiguousarray(X), np.ascontiguousarray(gram), inverses, work=X.size * r * r)
    return inverses
