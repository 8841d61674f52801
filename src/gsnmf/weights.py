r"""Nonnegative weights of chosen columns and rows, solved to a tolerance on the optimality conditions.

For chosen columns C = M(:, columns) and rows R = M(rows, :) the weights solve the convex problem

.. math:: \min_{P_1 \ge 0,\; P_2 \ge 0} \; \tfrac12 \|M - C P_1 - P_2 R\|_F^2 .

With one side only it is nonnegative least squares, one small problem a column, and solved exactly. With both it is
singular: adding Z R to P1 and taking C Z from P2 changes nothing, and alternating between the two sides crawls along
that valley. The solver here is a projected conjugate gradient method in the manner of Moré and Toraldo (1991): sweeps
of coordinate descent find which weights are positive, conjugate gradients on those, leaving out what they would make
negative, move along the valley in a few steps, and a projected search keeps the objective falling. It works on the
Gram products C'C, C'M, RR' and MR' alone, so that an iteration costs O((m + n) r^2) whatever the size of M.

Columns of C and rows of R are taken with unit length, which makes the violation of the optimality conditions,

.. math:: \| P - \max(0, P - \nabla f(P)) \|_F \,/\, \max(\|M - C P_1 - P_2 R\|_F,\; 10^{-3} \|M\|_F),

a number without a unit. The solver stops when it is below the tolerance.

References
----------
J. Moré, G. Toraldo, On the solution of large quadratic programming problems with bound constraints, SIAM J. Optim. 1
(1991), doi:10.1137/0801008.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import blas
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from gsnmf.kernels import coordinate_sweep, nonnegative_least_squares
from gsnmf.products import Products, products
from gsnmf.results import Weights
from gsnmf.validation import Floats, Indices, check_count, check_indices, check_matrix, check_positive

DEFAULT_TOLERANCE = 1e-4
DEFAULT_MAX_ITERATIONS = 1000

_SMALL_RESIDUAL = 1e-3
"""The violation is measured against the residual, or against this part of the matrix where that is larger."""

_CANCELLED = 1e-8
"""Squared relative errors below this are computed from the residual itself: Gram products have lost their digits."""

_INDEPENDENT = 1e-4
"""Columns whose residuals after those before them are longer than this part of them are solved for by Gram products."""

_GUESSING_SWEEPS = 3
_SWEEPS = 2
_ROUNDS = 3
"""How often conjugate gradients start again without the weights that they made negative."""
_CG_STEPS = 40
_SLOW = 0.05
"""Conjugate gradients stop when a step gains less than this part of the best step: the face may be wrong."""
_MAX_PATIENCE = 5
"""The longer a problem takes, the more thorough an iteration: up to this many times the steps above."""

_Array = NDArray[np.float64]


def fit_weights(
    matrix: Any,
    columns: Any,
    rows: Any,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    start: tuple[Floats, Floats] | None = None,
) -> Weights:
    """Nonnegative weights with which chosen columns and rows explain a matrix best.

    Parameters
    ----------
    matrix : array-like or sparse, shape (m, n)
        Nonnegative.
    columns, rows : sequences of int
        Chosen columns and rows, distinct; one of them may be empty.
    tolerance : float
        On the relative violation of the optimality conditions defined in `gsnmf.weights`. With one side only the
        weights are exact whatever it is.
    max_iterations : int
        Limit on iterations; a `ConvergenceWarning` says if it was reached.
    start : pair of arrays, shape (r1, n) and (m, r2), optional
        Weights to start from. The result is never worse.

    Returns
    -------
    Weights

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.weights import fit_weights
    >>> M = np.array([[1.0, 0, 2], [0, 1, 2], [0, 0, 1]])
    >>> weights = fit_weights(M, columns=[0, 1], rows=[2])
    >>> weights.column_weights.round(3)
    array([[1., 0., 2.],
           [0., 1., 2.]])
    >>> weights.converged
    True
    """
    checked = check_matrix(matrix, lazy=True)
    m, n = checked.shape
    columns, rows = check_indices(columns, n, "columns"), check_indices(rows, m, "rows")
    if start is not None:
        start = _check_start(start, (columns.size, n), (m, rows.size))
    weights = solve_weights(
        products(checked),
        columns,
        rows,
        tolerance=check_positive(tolerance, "tolerance"),
        max_iterations=check_count(max_iterations, "max_iterations"),
        start=start,
    )
    warn_unless_converged(weights, tolerance)
    return weights


def warn_unless_converged(weights: Weights, tolerance: float) -> None:
    """Tell the caller of a public function that the weights are not what was asked for."""
    if not weights.converged:
        warnings.warn(
            f"The weights stopped after {weights.n_iterations} iterations with an optimality violation of "
            f"{weights.optimality:.1e}, above the tolerance {tolerance:.1e}; raise max_iterations or tolerance.",
            ConvergenceWarning,
            stacklevel=3,
        )


def solve_weights(
    matrix: Products,
    columns: Indices,
    rows: Indices,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    start: tuple[Floats, Floats] | None = None,
) -> Weights:
    """`fit_weights` for input that is known to be right, and without its warning."""
    m, n = matrix.shape
    used_columns, used_rows = _nonzero(matrix, columns), _nonzero(matrix.T, rows)
    if start is not None:
        start = (start[0][used_columns], start[1][:, used_rows])
    solved = _solve_nonzero(matrix, columns[used_columns], rows[used_rows], tolerance, max_iterations, start)
    column_weights = np.zeros((columns.size, n), dtype=matrix.dtype)
    row_weights = np.zeros((m, rows.size), dtype=matrix.dtype)
    column_weights[used_columns] = solved.column_weights
    row_weights[:, used_rows] = solved.row_weights
    return replace(solved, column_weights=column_weights, row_weights=row_weights)


def _nonzero(matrix: Products, columns: Indices) -> Indices:
    """Positions of those columns that are not zero; the norms of all are not asked for if there are none."""
    return np.flatnonzero(matrix.squared_column_norms[columns] > 0) if columns.size else columns


def _solve_nonzero(
    matrix: Products,
    columns: Indices,
    rows: Indices,
    tolerance: float,
    max_iterations: int,
    start: tuple[Floats, Floats] | None,
) -> Weights:
    if rows.size and columns.size:
        problem = JointProblem.of(matrix, columns, rows)
        P, Q = problem.start(start)
        with single_threaded_blas():
            squared_error, optimality, n_iterations = solve_joint(problem, P, Q, tolerance, max_iterations)
        column_weights, row_weights = (P / problem.column_lengths).T, Q / problem.row_lengths
    else:
        side, indices = (matrix, columns) if columns.size else (matrix.T, rows)
        X, squared_error, optimality = _one_sided(side, indices)
        n_iterations = 1
        none = np.zeros((0, matrix.shape[1])), np.zeros((matrix.shape[0], 0))
        column_weights, row_weights = (X.T, none[1]) if columns.size else (none[0], X)
    if squared_error < _CANCELLED * matrix.squared_norm:
        W = np.hstack([matrix.columns(columns), row_weights])
        H = np.vstack([column_weights, matrix.T.columns(rows).T])
        squared_error = matrix.squared_residual(W, H)
    return Weights(
        column_weights=column_weights,
        row_weights=row_weights,
        relative_error=_ratio(np.sqrt(squared_error), np.sqrt(matrix.squared_norm)),
        optimality=optimality,
        n_iterations=n_iterations,
        converged=optimality <= tolerance,
    )


def _one_sided(matrix: Products, indices: Indices) -> tuple[_Array, float, float]:
    """Exact weights of columns alone, as an n x r array, with the squared error and the violation."""
    if indices.size == 0:
        return np.zeros((matrix.shape[1], 0)), matrix.squared_norm, 0.0
    lengths = np.sqrt(matrix.squared_column_norms[indices])
    triangle, targets = _reduced_columns(matrix, indices, lengths)
    X = _exact(triangle, targets)
    residual = targets - X @ triangle.T
    outside = max(0.0, matrix.squared_norm - float(np.vdot(targets, targets)))
    squared_error = outside + float(np.vdot(residual, residual))
    violation = _violation(X, -(residual @ triangle))
    return X / lengths, squared_error, _relative(violation, squared_error, matrix.squared_norm)


def _reduced_columns(matrix: Products, indices: Indices, lengths: _Array) -> tuple[_Array, _Array]:
    """R and M'Q of a factorization C = QR of the chosen columns, scaled to unit length."""
    if matrix.out_of_core:
        images = matrix.gram_rows(indices) / lengths[:, None]
        with contextlib.suppress(linalg.LinAlgError):
            lower = linalg.cholesky(images[:, indices] / lengths, lower=True)
            if lower.diagonal().min() > _INDEPENDENT:  # Gram products have kept half of their digits or more
                targets = linalg.solve_triangular(lower, images, lower=True, check_finite=False)
                return np.ascontiguousarray(lower.T), np.ascontiguousarray(targets.T)
    orthogonal, triangle = _reduced(matrix.columns(indices).astype(np.float64, copy=False) / lengths)
    return triangle, np.ascontiguousarray(matrix.T.dot(orthogonal), dtype=np.float64)


def _reduced(basis: _Array) -> tuple[_Array, _Array]:
    """An orthogonal basis of the columns of a matrix, and the triangle that makes them from it, both r columns wide."""
    with single_threaded_blas():  # threads gain nothing on few columns, and lose much on a busy machine
        factors: tuple[Any, Any] = linalg.qr(basis, mode="economic", check_finite=False)
    orthogonal, triangle = factors
    missing = triangle.shape[1] - triangle.shape[0]
    if missing > 0:  # more columns than they have entries
        triangle = np.vstack([triangle, np.zeros((missing, triangle.shape[1]))])
        orthogonal = np.hstack([orthogonal, np.zeros((orthogonal.shape[0], missing))])
    return orthogonal, np.ascontiguousarray(triangle)


def _exact(triangle: _Array, targets: _Array, n_sweeps: int = 0) -> _Array:
    """Nonnegative least squares for each row of ``targets``.

    Sweeps of coordinate descent guess first which weights are positive. They cost a little where most are, and make
    it two to three times as fast where few are.
    """
    X = np.zeros(targets.shape)
    with single_threaded_blas():
        if n_sweeps:
            gram, linear = triangle.T @ triangle, np.negative(targets @ triangle, order="C")
            for _ in range(n_sweeps):
                coordinate_sweep(X, linear, gram)
        nonnegative_least_squares(X, triangle, targets)
    return X


def remaining_weights(matrix: Products, columns: Indices, column_weights: Floats, basis: Floats) -> _Array:
    r"""Exact row weights of a matrix for given column weights and given rows, which need not be its own.

    .. math:: \min_{P_2 \ge 0} \; \|M - M(:, \mathrm{columns})\, P_1 - P_2 B\|_F

    Parameters
    ----------
    matrix : Products, shape (m, n)
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
    The matrix is read through one product with an n x r2 block, so that a sparse one stays sparse.
    """
    weights = np.zeros((matrix.shape[0], basis.shape[0]))
    exponents = np.frexp(basis.max(axis=1, initial=0.0))[1]  # rows of size one: their squares are safe
    scaled = np.ldexp(basis.astype(np.float64), -exponents[:, None])
    lengths = np.linalg.norm(scaled, axis=1)
    used = np.flatnonzero(lengths)
    if used.size:
        orthogonal, triangle = _reduced((scaled[used] / lengths[used, None]).T)
        targets = matrix.dot(orthogonal)
        if columns.size:
            targets -= matrix.columns(columns) @ (column_weights @ orthogonal)
        solved = _exact(triangle, np.ascontiguousarray(targets, dtype=np.float64), _GUESSING_SWEEPS)
        weights[:, used] = np.ldexp(solved / lengths[used], matrix.exponent - exponents[used])
    return weights


@dataclass(frozen=True)
class JointProblem:
    """The joint problem in Gram products, for columns and rows of unit length.

    Its variables are P (n x r1, the transposed column weights) and Q (m x r2, the row weights), in these units.
    """

    C: _Array
    """Chosen columns, m x r1."""
    R: _Array
    """Chosen rows, transposed, n x r2."""
    gram_C: _Array
    gram_R: _Array
    linear_P: _Array
    """-M'C, n x r1."""
    linear_Q: _Array
    """-MR, m x r2."""
    column_lengths: _Array
    row_lengths: _Array
    squared_norm: float

    @classmethod
    def of(cls, matrix: Products, columns: Indices, rows: Indices) -> JointProblem:
        """Gather the Gram products of nonzero columns and rows."""
        column_lengths = np.sqrt(matrix.squared_column_norms[columns])
        row_lengths = np.sqrt(matrix.T.squared_column_norms[rows])
        (chosen_columns, image_of_C), (chosen_rows, image_of_R) = (
            side.with_products(indices) for side, indices in ((matrix, columns), (matrix.T, rows))
        )
        C = np.ascontiguousarray(chosen_columns / column_lengths, dtype=np.float64)
        R = np.ascontiguousarray(chosen_rows / row_lengths, dtype=np.float64)
        return cls(
            C=C,
            R=R,
            gram_C=C.T @ C,
            gram_R=R.T @ R,
            linear_P=np.ascontiguousarray(-image_of_C / column_lengths),
            linear_Q=np.ascontiguousarray(-image_of_R / row_lengths),
            column_lengths=column_lengths,
            row_lengths=row_lengths,
            squared_norm=matrix.squared_norm,
        )

    def start(self, weights: tuple[Floats, Floats] | None) -> tuple[_Array, _Array]:
        """Weights in the units of the problem; zeros if there are none."""
        if weights is None:
            return np.zeros_like(self.linear_P), np.zeros_like(self.linear_Q)
        P = np.multiply(weights[0].T, self.column_lengths, dtype=np.float64, order="C")
        Q = np.multiply(weights[1], self.row_lengths, dtype=np.float64, order="C")
        return P, Q

    def coupling_P(self, Q: _Array) -> _Array:
        """What the row weights contribute to the gradient of P."""
        return np.asarray(self.R @ (Q.T @ self.C))

    def coupling_Q(self, P: _Array) -> _Array:
        """What the column weights contribute to the gradient of Q."""
        return np.asarray(self.C @ (P.T @ self.R))

    def hessian(self, P: _Array, Q: _Array) -> tuple[_Array, _Array]:
        """Second derivative applied to a direction."""
        return P @ self.gram_C + self.coupling_P(Q), Q @ self.gram_R + self.coupling_Q(P)

    def parts(self, joined: _Array) -> tuple[_Array, _Array]:
        """P and Q in one vector, as views of it."""
        middle = self.linear_P.size
        return joined[:middle].reshape(self.linear_P.shape), joined[middle:].reshape(self.linear_Q.shape)

    def gradient(self, P: _Array, Q: _Array) -> tuple[_Array, _Array]:
        """Gradient of the objective."""
        in_P, in_Q = self.hessian(P, Q)
        in_P += self.linear_P
        in_Q += self.linear_Q
        return in_P, in_Q

    def squared_error(self, P: _Array, Q: _Array, gradient: tuple[_Array, _Array]) -> float:
        """||M - C P1 - P2 R||_F^2, twice the objective, from the gradient at the same point."""
        value = _dot((P, Q), gradient) + _dot((P, Q), (self.linear_P, self.linear_Q))
        return max(0.0, self.squared_norm + value)

    def sweep(self, P: _Array, Q: _Array, n_sweeps: int) -> None:
        """Coordinate descent on P and on Q in turn, in place."""
        for _ in range(n_sweeps):
            coordinate_sweep(P, self.coupling_P(Q) + self.linear_P, self.gram_C)
            coordinate_sweep(Q, self.coupling_Q(P) + self.linear_Q, self.gram_R)


def solve_joint(
    problem: JointProblem, P: _Array, Q: _Array, tolerance: float, max_iterations: int
) -> tuple[float, float, int]:
    """Improve (P, Q) in place by projected conjugate gradients.

    Returns the squared error, the relative violation of the optimality conditions, and the iterations spent.
    """
    iteration = 0
    while True:
        problem.sweep(P, Q, _SWEEPS)
        gradient = problem.gradient(P, Q)
        squared_error = problem.squared_error(P, Q, gradient)
        violation = np.hypot(_violation(P, gradient[0]), _violation(Q, gradient[1]))
        optimality = _relative(violation, squared_error, problem.squared_norm)
        if optimality <= tolerance or iteration == max_iterations:
            return squared_error, optimality, iteration
        iteration += 1
        patience = min(1 + iteration // 10, _MAX_PATIENCE)
        direction = _subspace_step(problem, P, Q, gradient, patience)
        _projected_search(problem, P, Q, gradient, direction)


def _subspace_step(
    problem: JointProblem, P: _Array, Q: _Array, gradient: tuple[_Array, _Array], patience: int
) -> tuple[_Array, _Array]:
    """Direction from (P, Q) to about the minimiser over its positive weights.

    Weights that would become negative on the way are set to zero and left out, and the others solved for again. P and Q
    are joined in one vector, which halves the number of small operations.
    """
    weights, slopes = _joined(P, Q), _joined(*gradient)
    free = weights > 0
    direction = np.zeros_like(weights)
    residual = -slopes * free
    for _ in range(_ROUNDS * patience):
        _conjugate_gradients(problem, free, residual, direction, _CG_STEPS * patience, _SLOW / patience)
        negative = weights + direction < 0
        if not negative.any():
            break
        direction[negative] = -weights[negative]
        free[negative] = False
        residual = -(slopes + _joined(*problem.hessian(*problem.parts(direction)))) * free
    return problem.parts(direction)


def _conjugate_gradients(
    problem: JointProblem,
    free: NDArray[np.bool_],
    residual: _Array,
    direction: _Array,
    max_steps: int,
    slow: float,
) -> None:
    """Improve ``direction`` in place on the free weights, from its ``residual``, which changes along."""
    search, image = residual.copy(), np.empty_like(residual)
    search_parts, image_parts = problem.parts(search), problem.parts(image)
    squared = float(residual @ residual)
    best_gain = 0.0
    for _ in range(max_steps):
        for part, value in zip(image_parts, problem.hessian(*search_parts), strict=True):
            part[...] = value
        image *= free
        curvature = float(search @ image)
        if curvature <= 0.0:  # nothing is left, or a flat direction, of which the residual holds only rounding
            break
        length = squared / curvature
        blas.daxpy(search, direction, a=length)  # in place
        blas.daxpy(image, residual, a=-length)
        gain = length * squared
        best_gain = max(best_gain, gain)
        if gain <= slow * best_gain:
            break
        previous, squared = squared, float(residual @ residual)
        search *= squared / previous
        search += residual


def _joined(P: _Array, Q: _Array) -> _Array:
    return np.concatenate([P.ravel(), Q.ravel()])


def _projected_search(
    problem: JointProblem, P: _Array, Q: _Array, gradient: tuple[_Array, _Array], direction: tuple[_Array, _Array]
) -> None:
    """Take, in place, the first of the steps 1, 1/2, 1/4, ..., each projected, that lowers the objective.

    The change of the objective is computed from the change of the weights, not as a difference of two values, whose
    rounding would hide it near the solution.
    """
    for halvings in range(10):
        length = 0.5**halvings
        change = (
            np.maximum(P + length * direction[0], 0.0) - P,
            np.maximum(Q + length * direction[1], 0.0) - Q,
        )
        if _dot(gradient, change) + 0.5 * _dot(change, problem.hessian(*change)) < 0.0:
            P += change[0]
            Q += change[1]
            np.maximum(P, 0.0, out=P)  # P + (0 - P) is not always 0 in floating point
            np.maximum(Q, 0.0, out=Q)
            return


def _violation(X: _Array, gradient: _Array) -> float:
    return float(np.linalg.norm(np.minimum(X, gradient)))


def _relative(violation: float, squared_error: float, squared_norm: float) -> float:
    return _ratio(violation, max(np.sqrt(squared_error), _SMALL_RESIDUAL * np.sqrt(squared_norm)))


def _ratio(value: float, scale: float) -> float:
    return float(value / scale) if scale > 0 else 0.0


def _dot(a: tuple[_Array, ...], b: tuple[_Array, ...]) -> float:
    return sum(float(np.vdot(x, y)) for x, y in zip(a, b, strict=True))


def _check_start(
    start: tuple[Floats, Floats], column_shape: tuple[int, int], row_shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    checked = []
    for part, shape, name in zip(start, (column_shape, row_shape), ("column", "row"), strict=True):
        array = np.asarray(part, dtype=np.float64)
        if array.shape != shape or not np.all(array >= 0) or not np.all(np.isfinite(array)):
            raise ValueError(
                f"start must give nonnegative {name} weights of shape {shape}; got shape {array.shape}"
                + ("." if array.shape != shape else " with a negative or infinite entry or NaN.")
            )
        checked.append(array)
    return checked[0], checked[1]


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> Any:
    """Keep BLAS to one thread for a while: its waiting threads would take the cores from the compiled kernels."""
    return _thread_pools().limit(limits=1, user_api="blas")
