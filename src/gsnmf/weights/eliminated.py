r"""Weights of columns and rows together if the row weights are too many to hold: Newton steps without them.

For given column weights, the best row weights solve one small nonnegative least-squares problem per row. That makes the
objective a convex function of the column weights alone,

.. math:: F(P) = \min_{Q \ge 0} \; \tfrac12 \|M - C P^T - Q R^T\|_F^2, \qquad
    \nabla F(P) = P C^T C - M^T C + R\, (Q^T C),

in which the rows appear only in sums: :math:`Q^T C`, a number and, as long as the set of positive row weights stays the
same, the second derivative

.. math:: D \;\mapsto\; D\, C^T C - R\, T(R^T D), \qquad T(K) = \sum_i S_i K c_i c_i^T,

where :math:`c_i` is row i of C and :math:`S_i` is the inverse Gram matrix of the chosen rows with positive weights in
row i, padded with zeros. T is a matrix of (r1 r2)^2 numbers, whatever the number of rows. So the rows may be anywhere:
each step takes one sum over them. Between two sums the quadratic model is minimised over P >= 0 by projected conjugate
gradients; a line search on F itself makes the steps safe. About ten sums are enough, as usual for Newton's method on a
piecewise quadratic function.

Without T, the step would be alternation between columns and rows, which is very slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gsnmf._kernels.coordinate_descent import coordinate_sweep
from gsnmf._kernels.least_squares import passive_inverses
from gsnmf._parallel import single_threaded_blas
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.weights.joint import solve_joint
from gsnmf.weights.one_sided import GUESSING_SWEEPS, exact_weights
from gsnmf.weights.optimality import relative_violation, violation

_CURVATURE_BYTES = 1 << 30
"""T is left out if it would have more bytes than this."""

_INNER_ITERATIONS = 30
_INNER_PART = 0.01
"""The model is minimised until its violation is this fraction of the current one."""
_SUFFICIENT = 1e-4
_HALVINGS = 12
_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class ColumnProblem:
    """What is known about columns and rows of unit length without looking at all rows of the matrix."""

    R: Doubles
    """Chosen rows, transposed, n x r2."""
    orthogonal: Doubles
    """The triangle in R = orthogonal triangle."""
    triangle: Doubles
    gram_C: Doubles
    linear: Doubles
    """-M'C, n x r1."""
    squared_norm: float

    @property
    def with_curvature(self) -> bool:
        """Whether T is small enough to be computed."""
        return 8 * int(self.gram_C.shape[0] * self.triangle.shape[0]) ** 2 <= _CURVATURE_BYTES


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


def n_row_sums(r1: int, r2: int, with_curvature: bool) -> int:
    """How many numbers `row_sums` gives."""
    return 2 + r1 * r2 + with_curvature * (r1 * (r1 + 1) // 2) * (r2 * (r2 + 1) // 2)


def row_sums(targets: Doubles, C: Doubles, triangle: Doubles, with_curvature: bool) -> Doubles:
    """The sums over some rows, with ``targets`` (M - C P') Q for an orthogonal basis Q of the chosen rows."""
    sums = np.zeros(n_row_sums(C.shape[1], triangle.shape[0], with_curvature))
    gram = triangle.T @ triangle
    upper = np.triu_indices(C.shape[1])
    for start in range(0, targets.shape[0], _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        t, c = np.ascontiguousarray(targets[part]), C[part]
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


def solve_columns(
    problem: ColumnProblem, P: Doubles, sums: Callable[[Doubles], RowSums], tolerance: float, max_iterations: int
) -> tuple[Doubles, float, float, int]:
    """Column weights P, the squared error, the relative violation, and the iterations spent.

    Parameters
    ----------
    problem : ColumnProblem
    P : array, shape (n, r1)
        The starting point.
    sums : callable
        Gives the `RowSums` for column weights.
    tolerance : float
    max_iterations : int
    """
    found = sums(P)
    squared_error = _squared_error(problem, P, found)
    for iteration in range(max_iterations + 1):
        gradient = P @ problem.gram_C + problem.linear + problem.R @ found.coupling
        violated = np.hypot(violation(P, gradient), np.sqrt(found.squared_violation))
        optimality = relative_violation(violated, squared_error, problem.squared_norm)
        if optimality <= tolerance or iteration == max_iterations:
            break
        step = _model_step(problem, P, gradient, found, squared_error, optimality, tolerance)
        slope = float(np.vdot(gradient, step))
        rounding = np.finfo(np.float64).eps * problem.squared_norm
        for halvings in range(_HALVINGS):
            length = 0.5**halvings
            trial = np.maximum(P + length * step, 0.0)
            seen = sums(trial)
            reached = _squared_error(problem, trial, seen)
            if reached <= squared_error + 2.0 * _SUFFICIENT * length * slope + rounding:
                break
        else:  # no step lowers the objective beyond rounding
            break
        P, found, squared_error = trial, seen, reached
    return P, squared_error, optimality, iteration


def _squared_error(problem: ColumnProblem, P: Doubles, found: RowSums) -> float:
    of_columns = float(np.vdot(P, P @ problem.gram_C + 2.0 * problem.linear))
    return max(0.0, problem.squared_norm + of_columns + found.squared_change)


def _model_step(
    problem: ColumnProblem,
    P: Doubles,
    gradient: Doubles,
    found: RowSums,
    squared_error: float,
    optimality: float,
    tolerance: float,
) -> Doubles:
    """From P to the minimiser of the quadratic model over nonnegative weights."""
    model = _Model(problem, found.curvature, P, gradient, squared_error)
    reached = P.copy()
    with single_threaded_blas():
        wanted = max(_INNER_PART * optimality, 0.1 * tolerance)
        solve_joint(model, reached, np.empty((0, 0)), wanted, _INNER_ITERATIONS)
    return reached - P


class _Model:
    """The quadratic model of F around a point, as a problem of the joint solver without row weights."""

    def __init__(
        self, problem: ColumnProblem, curvature: Doubles, P: Doubles, gradient: Doubles, squared_error: float
    ) -> None:
        self._R, self._gram = problem.R, problem.gram_C
        r1, r2 = self._gram.shape[0], problem.triangle.shape[0]
        self._curvature = curvature_matrix(curvature, r1, r2) if curvature.size else None
        self._linear = gradient - self._second(P)
        self._squared_error = squared_error
        self.squared_norm = problem.squared_norm

    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        image = self._second(P)
        if out is None:
            return image, Q
        out[0][...] = image
        return out

    def gradient(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        return self._second(P) + self._linear, Q

    def squared_error(self, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles]) -> float:
        return self._squared_error

    def parts(self, joined: Doubles) -> tuple[Doubles, Doubles]:
        return joined.reshape(self._linear.shape), np.empty((0, 0))

    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """The part of the rows is concave, so its linear approximation never underestimates the model."""
        for _ in range(n_sweeps):
            coordinate_sweep(P, self._linear - self._of_rows(P), self._gram)

    def _second(self, P: Doubles) -> Doubles:
        return np.asarray(P @ self._gram - self._of_rows(P))

    def _of_rows(self, P: Doubles) -> Doubles:
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
