r"""Weights of columns and rows together, by projected conjugate gradients.

The problem is singular: adding Z R to P1 and subtracting C Z from P2 changes nothing, and alternating between the two
sides is slow along that valley. The solver here is a projected conjugate gradient method in the manner of Moré and
Toraldo (1991): sweeps of coordinate descent find the positive weights; conjugate gradients on these move along the
valley in a few steps, leaving out weights that would become negative; and a projected search keeps the objective
falling. If leaving out many weights at once does not lower the objective, they are left out one by one. The method
needs only the Gram products C'C, C'M, RR' and MR', so an iteration costs O((m + n) r^2) whatever the size of M.

References
----------
J. Moré, G. Toraldo, On the solution of large quadratic programming problems with bound constraints, SIAM J. Optim. 1
(1991), doi:10.1137/0801008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas

from gsnmf._kernels.coordinate_descent import coordinate_sweep
from gsnmf.matrix.protocol import Matrix
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices, Vectors
from gsnmf.weights.optimality import relative_violation, violation

_SWEEPS = 2
_ROUNDS = 3
"""How often conjugate gradients restart without the weights that they made negative."""
_CG_STEPS = 40
_SLOW = 0.05
"""Conjugate gradients stop when a step gains less than this fraction of the best step: the face may be wrong."""
_FLAT = 1e-14
"""Curvature along a unit direction below which it is rounding; along a single weight it is one."""
_MAX_PATIENCE = 5
"""Iterations grow more thorough the longer a problem takes: up to this many times the steps above."""


class Quadratic(Protocol):
    """A convex quadratic of two arrays of weights, as the solver sees it."""

    @property
    def squared_norm(self) -> float:
        """||M||_F^2."""

    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        """Second derivative applied to a direction, written to ``out`` if given."""

    def gradient(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """Gradient."""

    def squared_error(self, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles]) -> float:
        """The square of what the violation of the optimality conditions is relative to."""

    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """Coordinate descent, in place."""

    def parts(self, joined: Doubles) -> tuple[Doubles, Doubles]:
        """Views of one joined vector as P and as Q."""


@dataclass(frozen=True)
class JointProblem:
    """The joint problem in Gram products, for columns and rows of unit length.

    Its variables are P (n x r1, the transposed column weights) and Q (m x r2, the row weights), in these units.
    """

    C: Vectors
    """Chosen columns, m x r1."""
    R: Vectors
    """Chosen rows, transposed, n x r2."""
    gram_C: Doubles
    gram_R: Doubles
    linear_P: Doubles
    """-M'C, n x r1."""
    linear_Q: Doubles
    """-MR, m x r2."""
    column_lengths: Doubles
    row_lengths: Doubles
    squared_norm: float

    @classmethod
    def of(cls, matrix: Matrix, columns: Indices, rows: Indices) -> JointProblem:
        """Gather the Gram products of nonzero columns and rows."""
        column_lengths = np.sqrt(matrix.squared_column_norms[columns])
        row_lengths = np.sqrt(matrix.T.squared_column_norms[rows])
        (chosen_columns, image_of_C), (chosen_rows, image_of_R) = (
            side.with_products(indices) for side, indices in ((matrix, columns), (matrix.T, rows))
        )
        C = np.divide(chosen_columns, column_lengths, dtype=np.float64, order="C")
        R = np.divide(chosen_rows, row_lengths, dtype=np.float64, order="C")
        return cls(
            C=C,
            R=R,
            gram_C=C.T @ C,
            gram_R=R.T @ R,
            linear_P=np.divide(image_of_C, -column_lengths, dtype=np.float64, order="C"),
            linear_Q=np.divide(image_of_R, -row_lengths, dtype=np.float64, order="C"),
            column_lengths=column_lengths,
            row_lengths=row_lengths,
            squared_norm=matrix.squared_norm,
        )

    def start(self, weights: tuple[Floats, Floats] | None) -> tuple[Doubles, Doubles]:
        """Weights in the units of the problem; zeros if there are none."""
        if weights is None:
            return np.zeros_like(self.linear_P), np.zeros_like(self.linear_Q)
        P = np.multiply(weights[0].T, self.column_lengths, dtype=np.float64, order="C")
        Q = np.multiply(weights[1], self.row_lengths, dtype=np.float64, order="C")
        return P, Q

    def coupling_P(self, Q: Doubles) -> Doubles:
        """What the row weights contribute to the gradient of P."""
        return np.asarray(self.R @ transposed_dot(Q, self.C))

    def coupling_Q(self, P: Doubles) -> Doubles:
        """What the column weights contribute to the gradient of Q."""
        return np.asarray(self.C @ transposed_dot(P, self.R))

    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        """Second derivative applied to a direction, written to ``out`` if given."""
        in_P, in_Q = (np.empty_like(P), np.empty_like(Q)) if out is None else out
        np.matmul(P, self.gram_C, out=in_P)
        np.matmul(Q, self.gram_R, out=in_Q)
        if P.size and Q.size:
            in_P += self.coupling_P(Q)
            in_Q += self.coupling_Q(P)
        return in_P, in_Q

    def parts(self, joined: Doubles) -> tuple[Doubles, Doubles]:
        """Views of one joined vector as P and as Q."""
        middle = self.linear_P.size
        return joined[:middle].reshape(self.linear_P.shape), joined[middle:].reshape(self.linear_Q.shape)

    def gradient(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """Gradient of the objective."""
        in_P, in_Q = self.hessian(P, Q)
        in_P += self.linear_P
        in_Q += self.linear_Q
        return in_P, in_Q

    def squared_error(self, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles]) -> float:
        """||M - C P1 - P2 R||_F^2, twice the objective, from the gradient at the same point."""
        value = _dot((P, Q), gradient) + _dot((P, Q), (self.linear_P, self.linear_Q))
        return max(0.0, self.squared_norm + value)

    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """Coordinate descent on P and on Q in turn, in place."""
        for _ in range(n_sweeps):
            coordinate_sweep(P, self.coupling_P(Q) + self.linear_P, self.gram_C)
            coordinate_sweep(Q, self.coupling_Q(P) + self.linear_Q, self.gram_R)


def transposed_dot(A: Doubles, V: Vectors) -> Doubles:
    """A'V."""
    return np.asarray((V.T @ A).T if sp.issparse(V) else A.T @ V)


def solve_joint(
    problem: Quadratic, P: Doubles, Q: Doubles, tolerance: float, max_iterations: int
) -> tuple[float, float, int]:
    """Improve (P, Q) in place by projected conjugate gradients.

    Returns the squared error, the relative violation of the optimality conditions, and the iterations spent.
    """
    iteration = 0
    while True:
        problem.sweep(P, Q, _SWEEPS)
        gradient = problem.gradient(P, Q)
        squared_error = problem.squared_error(P, Q, gradient)
        violated = np.hypot(violation(P, gradient[0]), violation(Q, gradient[1]))
        optimality = relative_violation(violated, squared_error, problem.squared_norm)
        if optimality <= tolerance or iteration == max_iterations:
            return squared_error, optimality, iteration
        iteration += 1
        patience = min(1 + iteration // 10, _MAX_PATIENCE)
        direction = _subspace_step(problem, P, Q, gradient, patience)
        if not _projected_search(problem, P, Q, gradient, direction):
            _feasible_steps(problem, P, Q, gradient, patience)


def _subspace_step(
    problem: Quadratic, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles], patience: int
) -> tuple[Doubles, Doubles]:
    """Direction from (P, Q) to about the minimiser over its positive weights.

    Weights that would become negative on the way are set to zero and left out, and the others are solved for again. P
    and Q form one vector, which halves the number of small operations.
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
    problem: Quadratic,
    free: Flags,
    residual: Doubles,
    direction: Doubles,
    max_steps: int,
    slow: float,
) -> None:
    """Improve ``direction`` in place on the free weights, from its ``residual``, which changes along."""
    search, image = residual.copy(), np.empty_like(residual)
    search_parts, image_parts = problem.parts(search), problem.parts(image)
    mask = free.astype(np.float64)  # converted once, not in every product
    squared = float(residual @ residual)
    best_gain = 0.0
    for _ in range(max_steps):
        problem.hessian(*search_parts, out=image_parts)
        image *= mask
        curvature = float(search @ image)
        if curvature <= _FLAT * float(search @ search):  # nothing or only rounding is left, along the valley
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


def _joined(P: Doubles, Q: Doubles) -> Doubles:
    return np.concatenate([P.ravel(), Q.ravel()])


def _projected_search(
    problem: Quadratic, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles], direction: tuple[Doubles, Doubles]
) -> bool:
    """Take, in place, the first projected step of length 1, 1/2, 1/4, ... that lowers the objective, if any does.

    The change of the objective is computed from the change of the weights. The difference of two objective values would
    drown in rounding near the solution.
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
            return True
    return False


def _feasible_steps(
    problem: Quadratic, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles], patience: int
) -> None:
    """Go in place towards the minimiser over the positive weights until one becomes zero; repeat without that one.

    Unlike `_subspace_step`, which sets many weights to zero at once, each step lowers the objective.
    """
    weights, slopes = _joined(P, Q), _joined(*gradient)
    free = weights > 0
    for _ in range(_ROUNDS * patience):
        direction, residual = np.zeros_like(weights), -slopes * free
        _conjugate_gradients(problem, free, residual, direction, _CG_STEPS * patience, _SLOW / patience)
        falling = np.flatnonzero(direction < 0)
        ratios = weights[falling] / -direction[falling]
        length = min(1.0, ratios.min(initial=1.0))
        weights += length * direction
        if length == 1.0:
            break
        weights[falling[ratios <= length]] = 0.0
        free = weights > 0
        slopes += length * _joined(*problem.hessian(*problem.parts(direction)))
    P[...], Q[...] = problem.parts(np.maximum(weights, 0.0))


def _dot(a: tuple[Doubles, ...], b: tuple[Doubles, ...]) -> float:
    return sum(float(np.vdot(x, y)) for x, y in zip(a, b, strict=True))
