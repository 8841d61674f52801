r"""Weights on the unit simplex: projections, a fast gradient method, nearest points in a hull, exact least squares.

.. math:: \min_x \tfrac12 \|R x - b\|^2 \quad\text{subject to}\quad x \ge 0,\; e^T x = 1

for many targets b and one matrix R (`simplex_least_squares`). Every point of the simplex satisfies :math:`e^T x = 1`,
so a row :math:`\sqrt s\, e^T` below R and an entry :math:`\sqrt s` below b change neither the objective nor the
minimiser. With this row the columns are linearly independent as soon as they are *affinely* independent, which is all
that the problem needs: a zero column, or a column that is a multiple of another, is no special case.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Doubles, Floats

_project_blocks, _descend_blocks = Loop(native.project_on_simplex_blocks), Loop(native.descend_on_simplex_blocks)
_project_on_hull_rows = Loop(native.project_on_hull_rows)
_simplex_least_squares_rows = Loop(native.simplex_least_squares_rows)

_PROJECTION = 16
"""Operations per entry that a projection takes: a few passes."""

_HULL_PER_ROW = 1500
"""Operations per target that come on top of those in proportion to the square of the number of points; measured with 3
to 51 points."""

_PRECISE = 1e-12
_N_REFINEMENTS = 6
"""Weights are refined, at most so many times, until a correction is below the first number relative to them."""


def project_on_simplex(X: Floats, exact: bool) -> None:
    """Project each column of X, in place, on {x >= 0, sum(x) <= 1}, or with ``exact`` on {x >= 0, sum(x) = 1}.

    Examples
    --------
    >>> X = np.array([[0.2, 2.0], [0.2, 1.5]])
    >>> project_on_simplex(X, exact=False)
    >>> X
    array([[0.2 , 0.75],
           [0.2 , 0.25]])
    """
    _project_blocks(X, exact, work=_PROJECTION * X.size)


def descend_on_simplex(X: Floats, target: Floats, gram: Floats, exact: bool, max_steps: int, tolerance: float) -> None:
    """Improve X in place: a fast projected gradient method on x'Gx / 2 - t'x over the simplex of `project_on_simplex`.

    Nesterov's method with step 1 / lambda_max(G), restarted without momentum when a step would raise the objective of a
    block of columns, so the objective never rises. X must be in the simplex; the other parameters are those of
    `gsnmf._kernels.coordinate_descent.descend`.
    """
    largest = float(linalg.eigh(gram, eigvals_only=True, subset_by_index=[len(gram) - 1] * 2)[0])
    if largest > 0:
        work = X.size * (X.shape[0] + _PROJECTION) * max_steps
        arrays = X, np.ascontiguousarray(target), np.ascontiguousarray(gram)
        _descend_blocks(*arrays, 1.0 / largest, exact, max_steps, tolerance, work=work)


def project_on_hull(X: Doubles, residuals: Doubles, multipliers: Doubles, columns: Doubles, targets: Doubles) -> None:
    r"""Turn each row x of X in place into weights of the point nearest to its target in a convex hull.

    Minimises :math:`\|t - \sum_i x_i r_i\|` over x >= 0 with sum one. Row i of ``columns`` is the point r_i, with zeros
    after entry i and in entry 0; so the first point is the origin, and there is at least one more. On entry each x must
    solve the problem for the points with positive weights; all weight on the origin always does. ``residuals`` receives
    t minus the nearest point, ``multipliers`` the multiplier of the sum.

    The active-set method of Wolfe (``active_set.hpp``). Affinely independent points become linearly
    independent once the same coordinate is appended to all of them, so a Cholesky factor of their inner products
    plus a constant is enough. The solutions are refined with the points themselves.

    References
    ----------
    P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976), doi:10.1007/BF01580381.

    Examples
    --------
    The point of the segment from the origin to (0, 2) that is nearest to (0, 1.5):

    >>> X, points, target = np.array([[1.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.5]])
    >>> project_on_hull(X, np.empty((1, 2)), np.empty(1), points, target)
    >>> X
    array([[0.25, 0.75]])
    """
    gram = columns @ columns.T
    squared_lengths = gram.diagonal()[1:]
    longest = math.sqrt(squared_lengths.max())
    gram += squared_lengths.min()
    arrays = X, residuals, multipliers, np.ascontiguousarray(columns), gram
    work = X.shape[0] * (_HULL_PER_ROW + 8 * X.shape[1] ** 2)
    _project_on_hull_rows(*arrays, longest, np.ascontiguousarray(targets), work=work)


def simplex_least_squares(triangle: Doubles, targets: Doubles) -> Doubles:
    """Nonnegative weights that sum to one and fit each target best, exactly.

    Parameters
    ----------
    triangle : array, shape (k, r)
        R, the matrix of the least-squares problem; usually the triangle of a QR decomposition of a taller one.
    targets : array, shape (n, k)
        One target b per row, in the basis in which the triangle is written.

    Returns
    -------
    array, shape (n, r)
        The minimiser for each target. Rows are nonnegative and sum to one up to rounding. If columns are affinely
        dependent, the minimiser is not unique, and one of the minimisers is returned.

    Notes
    -----
    First the sum alone is asked for, for all targets at once. Where all weights are positive they are the solution.
    Elsewhere columns with negative weights leave, all at once, until the weights of the others are positive. From there
    the active-set method of Wolfe (``active_set.hpp``) lets back in what left too early. It ends, after
    finitely many steps that each lower the error, at a point that satisfies the optimality conditions. Where columns
    are affinely dependent it starts at the nearest column instead. The cost is O(r^3) operations per step and target.

    References
    ----------
    D. C. Heinz, C.-I Chang, Fully constrained least squares linear spectral mixture analysis method for material
    quantification in hyperspectral imagery, IEEE Trans. Geosci. Remote Sens. 39 (2001), doi:10.1109/36.911111.

    Examples
    --------
    >>> simplex_least_squares(np.eye(2), np.array([[0.75, 0.25], [3.0, 0.0], [1.0, 1.0]]))
    array([[0.75, 0.25],
           [1.  , 0.  ],
           [0.5 , 0.5 ]])
    """
    triangle, targets = np.asarray(triangle, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    k, r = triangle.shape
    size = math.sqrt(float(np.mean(np.einsum("ij,ij->j", triangle, triangle)))) or 1.0
    basis, upper = np.linalg.qr(np.vstack([triangle / size, np.ones((1, r))]))
    columns = np.zeros((r, r))
    columns[:, : len(upper)] = upper.T  # row i holds column i: i + 1 entries, then zeros
    right = np.zeros((len(targets), r))
    right[:, : len(upper)] = targets @ (basis[:k] / size) + basis[k]
    gram = columns @ columns.T
    X = _with_sum_alone(columns, gram, right)
    others = np.flatnonzero(~(X > 0.0).all(axis=1))  # positive weights are the solution
    signs = (X[others] > 0.0).astype(np.float64)
    longest = math.sqrt(gram.diagonal().max())
    _simplex_least_squares_rows(signs, columns, gram, longest, right[others], work=8 * signs.size * r)
    X[others] = signs
    return X


def _with_sum_alone(columns: Doubles, gram: Doubles, targets: Doubles) -> Doubles:
    """Weights of any sign that sum to one, for all targets; zero if the columns depend on each other.

    The solution from the Gram matrix is refined with the columns
    themselves until the correction is mere rounding.
    """
    weights = np.zeros_like(targets)
    try:
        factor = linalg.cho_factor(gram)
    except np.linalg.LinAlgError:
        return weights
    shift = linalg.cho_solve(factor, np.ones(len(gram)))
    shift /= shift.sum()
    residual = targets
    for _ in range(_N_REFINEMENTS):
        correction = linalg.cho_solve(factor, columns @ residual.T).T
        missing = 1.0 - weights.sum(axis=1) - correction.sum(axis=1)
        correction += missing[:, None] * shift
        weights += correction
        if np.all(np.abs(correction).max(axis=1) <= _PRECISE * np.abs(weights).max(axis=1)):
            return np.ascontiguousarray(weights)
        residual = targets - weights @ columns
    return np.zeros_like(targets)
