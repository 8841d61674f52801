r"""Weights of a matrix with too many rows to hold the row weights: column weights in memory, row weights lazy.

For given column weights, the best row weights solve one small nonnegative least-squares problem per row
(`gsnmf.weights.one_sided.remaining_weights`), and are computed on request. That makes the objective a convex function
of the column weights alone,

.. math:: F(P) = \min_{Q \ge 0} \; \tfrac12 \|M - C P^T - Q R^T\|_F^2, \qquad
    \nabla F(P) = P C^T C - M^T C + R\, (Q^T C),

in which the rows appear only in sums: :math:`Q^T C`, a number and, as long as the set of positive row weights stays the
same, the second derivative

.. math:: D \;\mapsto\; D\, C^T C - R\, T(R^T D), \qquad T(K) = \sum_i S_i K c_i c_i^T,

where :math:`c_i` is row i of C and :math:`S_i` is the inverse Gram matrix of the chosen rows with positive weights in
row i, padded with zeros. T is a matrix of (r1 r2)^2 numbers, whatever the number of rows, so no more than O(n r) and
(r1 r2)^2 numbers are ever in one place. Between two sums over the rows the quadratic model is minimised over P >= 0 by
projected conjugate gradients; a line search on F itself makes the steps safe. About ten sums are enough, as usual for
Newton's method on a piecewise quadratic function. Without T, the step would be alternation between columns and rows,
which is very slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from gsnmf._kernels.coordinate_descent import coordinate_sweep
from gsnmf._kernels.least_squares import passive_inverses
from gsnmf._kernels.orthogonal import orthogonal_factors
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import Weights
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.weights.joint import Quadratic, solve_joint
from gsnmf.weights.one_sided import GUESSING_SWEEPS, exact_weights, one_sided_weights, row_weights_for
from gsnmf.weights.optimality import CANCELLED, ratio, relative_violation, violation

_CURVATURE_BYTES = 1 << 30
"""T is left out if it would have more bytes than this."""
_INNER_ITERATIONS = 30
_INNER_PART = 0.01
"""The model is minimised for so many iterations, or until its violation is this fraction of the current one."""
_SUFFICIENT = 1e-4
"""Armijo's rule: the objective must fall by this fraction of what the slope promises."""
_HALVINGS = 12
"""Steps of length 1, 1/2, 1/4, ... are tried, so many of them."""
_ROWS_AT_ONCE = 2048
"""Rows of the matrix whose weights are computed at a time; a block of them stays in the processor's cache."""

_Solved = tuple[Doubles, Floats, float, float, int]
"""Column weights, n x r1, the chosen rows, r2 x n, the squared error, the violation and the iterations."""


def solve_out_of_core(
    matrix: Matrix, columns: Indices, rows: Indices, tolerance: float, max_iterations: int, start: Floats | None
) -> Weights:
    """Weights of columns and rows, the latter as an array that stays with the data; ``start`` are column weights."""
    places = np.flatnonzero(matrix.squared_column_norms[columns] > 0)
    places = places[np.argsort(columns[places])]
    used = columns[places]
    given = None if start is None else start[places]
    X, basis, squared_error, optimality, n_iterations = _solve(matrix, used, rows, tolerance, max_iterations, given)
    column_weights = np.zeros((columns.size, matrix.shape[1]), dtype=matrix.dtype)
    column_weights[places] = X.T
    raw_basis = np.ldexp(basis, matrix.exponent, dtype=matrix.dtype)
    row_weights = row_weights_for(matrix, columns, column_weights, raw_basis)
    if squared_error < CANCELLED * matrix.squared_norm:
        W, H = matrix.left_factor(columns, row_weights), np.vstack([column_weights, raw_basis])
        squared_error = matrix.squared_distance(W, H)
    relative_error = ratio(np.sqrt(squared_error), np.sqrt(matrix.squared_norm))
    return Weights(column_weights, row_weights, relative_error, optimality, n_iterations, optimality <= tolerance)


def _solve(
    matrix: Matrix, columns: Indices, rows: Indices, tolerance: float, max_iterations: int, start: Floats | None
) -> _Solved:
    if rows.size == 0:
        return _solve_columns_alone(matrix, columns, np.zeros((0, matrix.shape[1]), dtype=matrix.dtype))
    if columns.size == 0:
        return _solve_rows_alone(matrix, rows)
    C, images, basis = matrix.chosen(columns, rows)
    if not basis.any():
        return _solve_columns_alone(matrix, columns, basis.T)
    problem = _ColumnProblem(matrix, columns, C, images, basis)
    P = np.zeros(problem.linear.shape)
    if start is not None:
        P = np.multiply(start.T, problem.lengths, dtype=np.float64)
    P, squared_error, optimality, n_iterations = _newton(problem, P, tolerance, max_iterations)
    return P / problem.lengths, basis.T, squared_error, optimality, n_iterations


def _solve_columns_alone(matrix: Matrix, columns: Indices, basis: Floats) -> _Solved:
    X, squared_error, optimality = one_sided_weights(matrix, columns)
    return X, basis, squared_error, optimality, 1


def _solve_rows_alone(matrix: Matrix, rows: Indices) -> _Solved:
    """One pass, and one read of the chosen rows."""
    none = np.zeros((matrix.shape[1], 0))
    basis = matrix.T.columns(rows)
    if not basis.any():
        return none, basis.T, matrix.squared_norm, 0.0, 1
    _, orthogonal, triangle = _unit_rows(basis)
    r2 = triangle.shape[0]
    work = partial(_sums_without_columns, triangle=triangle)
    sums = matrix.sum_over_rows(work, matrix.row_product(orthogonal), shape=(_n_row_sums(0, r2, False),))
    found = RowSums.unpacked(sums, 0, r2)
    squared_error = max(0.0, matrix.squared_norm + found.squared_change)
    violated = np.sqrt(found.squared_violation)
    return none, basis.T, squared_error, relative_violation(violated, squared_error, matrix.squared_norm), 1


def _unit_rows(basis: Floats) -> tuple[Doubles, Doubles, Doubles]:
    """The nonzero rows, given as columns, at unit length, and their orthogonal factor and triangle."""
    double = basis.astype(np.float64, copy=False)
    lengths = np.linalg.norm(double, axis=0)
    R = np.ascontiguousarray(double[:, lengths > 0] / lengths[lengths > 0])
    return R, *orthogonal_factors(R)


@dataclass(frozen=True)
class RowSums:
    """What the objective needs to know about the rows, as sums over them."""

    squared_change: float
    """Sum of |t - R q|^2 - |t|^2 over the problems of the rows."""
    squared_violation: float
    coupling: Doubles
    """Q'C, r2 x r1."""
    curvature: Doubles
    """T, packed; empty if it is not wanted."""

    @classmethod
    def unpacked(cls, sums: Doubles, r1: int, r2: int) -> RowSums:
        """Unpack what `row_sums` gives, summed over all rows."""
        coupling = sums[2 : 2 + r1 * r2].reshape(r2, r1)
        return cls(float(sums[0]), float(sums[1]), coupling, sums[2 + r1 * r2 :])


def _n_row_sums(r1: int, r2: int, with_curvature: bool) -> int:
    """How many numbers `row_sums` gives."""
    return 2 + r1 * r2 + with_curvature * (r1 * (r1 + 1) // 2) * (r2 * (r2 + 1) // 2)


def row_sums(targets: Doubles, C: Doubles, triangle: Doubles, with_curvature: bool) -> Doubles:
    """The sums over some rows, with ``targets`` (M - C P') Q for an orthogonal basis Q of the chosen rows."""
    sums = np.zeros(_n_row_sums(C.shape[1], triangle.shape[0], with_curvature))
    gram = triangle.T @ triangle
    upper = np.triu_indices(C.shape[1])
    for start in range(0, targets.shape[0], _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        t, c = np.ascontiguousarray(targets[block]), C[block]
        X = exact_weights(triangle, t, GUESSING_SWEEPS)
        residual = t - X @ triangle.T
        sums[0] += np.vdot(residual, residual) - np.vdot(t, t)
        sums[1] += violation(X, -(residual @ triangle)) ** 2
        coupling = X.T @ c
        sums[2 : 2 + coupling.size] += coupling.ravel()
        if with_curvature:
            squares = c[:, upper[0]] * c[:, upper[1]]
            sums[2 + coupling.size :] += (passive_inverses(X, gram).T @ squares).ravel()
    return sums


def _sums_without_columns(targets: Doubles, *, triangle: Doubles) -> Doubles:
    return row_sums(targets, np.empty((targets.shape[0], 0)), triangle, with_curvature=False)


def _sums_with_columns(
    projected: Doubles, C: Floats, *, coordinates: Doubles, lengths: Doubles, triangle: Doubles, with_curvature: bool
) -> Doubles:
    C = C.astype(np.float64, copy=False)
    return row_sums(projected - C @ coordinates, C / lengths, triangle, with_curvature)


class _ColumnProblem:
    """F for columns and rows of unit length; the rows of the matrix are read only through sums over them."""

    def __init__(self, matrix: Matrix, columns: Indices, C: Floats, images: Doubles, basis: Floats) -> None:
        self._matrix, self._C = matrix, C
        self.R, self._orthogonal, self._triangle = _unit_rows(basis)
        self._projected = matrix.row_product(self._orthogonal)
        self.lengths = np.sqrt(matrix.squared_column_norms[columns])
        images = images / self.lengths
        self.gram = images[columns] / self.lengths[:, None]
        self.linear = np.ascontiguousarray(-images)
        """-M'C, n x r1."""
        self.squared_norm = matrix.squared_norm

    def sums(self, P: Doubles) -> RowSums:
        """The sums over all rows of the matrix."""
        r1, r2 = P.shape[1], self._triangle.shape[0]
        with_curvature = 8 * int(r1 * r2) ** 2 <= _CURVATURE_BYTES
        work = partial(
            _sums_with_columns,
            coordinates=(P / self.lengths).T @ self._orthogonal,
            lengths=self.lengths,
            triangle=self._triangle,
            with_curvature=with_curvature,
        )
        shape = (_n_row_sums(r1, r2, with_curvature),)
        return RowSums.unpacked(self._matrix.sum_over_rows(work, self._projected, self._C, shape=shape), r1, r2)

    def squared_error(self, P: Doubles, sums: RowSums) -> float:
        of_columns = float(np.vdot(P, P @ self.gram + 2.0 * self.linear))
        return max(0.0, self.squared_norm + of_columns + sums.squared_change)


def _newton(
    problem: _ColumnProblem, P: Doubles, tolerance: float, max_iterations: int
) -> tuple[Doubles, float, float, int]:
    """Column weights from a starting point, the squared error, the relative violation, and the iterations spent."""
    sums = problem.sums(P)
    squared_error = problem.squared_error(P, sums)
    for iteration in range(max_iterations + 1):
        gradient = P @ problem.gram + problem.linear + problem.R @ sums.coupling
        violated = np.hypot(violation(P, gradient), np.sqrt(sums.squared_violation))
        optimality = relative_violation(violated, squared_error, problem.squared_norm)
        if optimality <= tolerance or iteration == max_iterations:
            break
        model = _Model(problem, sums.curvature, P, gradient, squared_error)
        reached = P.copy()
        with single_threaded_blas():
            inner_tolerance = max(_INNER_PART * optimality, 0.1 * tolerance)
            solve_joint(model, reached, np.empty((0, 0)), inner_tolerance, _INNER_ITERATIONS)
        step = reached - P
        slope = float(np.vdot(gradient, step))
        rounding = np.finfo(np.float64).eps * problem.squared_norm
        for halvings in range(_HALVINGS):
            length = 0.5**halvings
            trial = np.maximum(P + length * step, 0.0)
            trial_sums = problem.sums(trial)
            trial_error = problem.squared_error(trial, trial_sums)
            if trial_error <= squared_error + 2.0 * _SUFFICIENT * length * slope + rounding:
                break
        else:  # no step lowers the objective beyond rounding
            break
        P, sums, squared_error = trial, trial_sums, trial_error
    return P, squared_error, optimality, iteration


class _Model(Quadratic):
    """The quadratic model of F around a point, as a problem of the joint solver without row weights."""

    def __init__(
        self, problem: _ColumnProblem, curvature: Doubles, P: Doubles, gradient: Doubles, squared_error: float
    ) -> None:
        self._R, self._gram = problem.R, problem.gram
        r1, r2 = self._gram.shape[0], problem.R.shape[1]
        self._curvature = curvature_matrix(curvature, r1, r2) if curvature.size else None
        self._linear = gradient - self._second_derivative(P)
        self._squared_error = squared_error
        self.squared_norm = problem.squared_norm

    @property
    def linear(self) -> tuple[Doubles, Doubles]:
        return self._linear, np.empty((0, 0))

    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        image = self._second_derivative(P)
        if out is None:
            return image, Q
        out[0][...] = image
        return out

    def squared_error(self, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles]) -> float:
        """The error of F at the point of the model: what its violation is relative to."""
        return self._squared_error

    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """The part of the rows is concave, so its linear approximation never underestimates the model."""
        for _ in range(n_sweeps):
            coordinate_sweep(P, self._linear - self._part_of_rows(P), self._gram)

    def _second_derivative(self, P: Doubles) -> Doubles:
        return np.asarray(P @ self._gram - self._part_of_rows(P))

    def _part_of_rows(self, P: Doubles) -> Doubles:
        if self._curvature is None:
            return np.zeros_like(P)
        K = self._R.T @ P
        return np.asarray(self._R @ (self._curvature @ K.ravel()).reshape(K.shape))


def curvature_matrix(curvature: Doubles, r1: int, r2: int) -> Doubles:
    """T as a matrix that acts on r2 x r1 matrices in one vector."""
    of_rows, of_columns = _full_positions(r2), _full_positions(r1)
    packed = curvature.reshape(r2 * (r2 + 1) // 2, -1)
    full = packed[of_rows[:, None, :, None], of_columns[None, :, None, :]]  # [a, b, c, d] from (a, c), (b, d)
    return np.ascontiguousarray(full.reshape(r1 * r2, r1 * r2))


def _full_positions(r: int) -> Indices:
    """Where the entries of a symmetric matrix are in its upper triangle."""
    positions = np.empty((r, r), dtype=np.intp)
    upper = np.triu_indices(r)
    positions[upper] = positions.T[upper] = np.arange(upper[0].size)
    return positions
