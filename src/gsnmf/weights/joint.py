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

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas

from gsnmf._kernels.coordinate_descent import coordinate_sweep
from gsnmf.matrix.protocol import Matrix
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices, Vectors
from gsnmf.weights.optimality import relative_violation, violation

_SWEEPS = 2
"""Sweeps of coordinate descent before each subspace step: they only have to find which weights are positive."""
_ROUNDS = 3
"""How often conjugate gradients restart without the weights that they made negative."""
_CG_STEPS = 40
"""Limit on the steps of conjugate gradients in a round; ``_SLOW`` may end them earlier."""
_SLOW = 0.05
"""Conjugate gradients stop when a step gains less than this fraction of the best step: the face may be wrong."""
_FLAT = 1e-14
"""Curvature along a unit direction below which it is rounding; along a single weight it is one."""
_MAX_PATIENCE = 5
"""Iterations grow more thorough the longer a problem takes: up to this many times the steps above."""


class Quadratic(ABC):
    """A convex quadratic function of two arrays of nonnegative weights: half the squared error of an approximation.

    Its variables are P (n x r1, the transposed column weights) and Q (m x r2, the row weights), scaled so that every
    single weight has a second derivative of one. Kinds of data differ in how the products are formed.
    """

    squared_norm: float
    """||M||_F^2."""

    @property
    @abstractmethod
    def linear(self) -> tuple[Doubles, Doubles]:
        """Gradient at zero."""

    @abstractmethod
    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        """Second derivative applied to a direction, written to ``out`` if given."""

    @abstractmethod
    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """Coordinate descent on P and on Q in turn, in place."""

    def gradient(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """Gradient."""
        in_P, in_Q = self.hessian(P, Q)
        in_P += self.linear[0]
        in_Q += self.linear[1]
        return in_P, in_Q

    def squared_error(self, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles]) -> float:
        """||M - C P1 - P2 R||_F^2, twice the objective, from the gradient at the same point."""
        return max(0.0, self.squared_norm + (_dot((P, Q), gradient) + _dot((P, Q), self.linear)))

    def split(self, joined: Doubles) -> tuple[Doubles, Doubles]:
        """Views of one joined vector as P and as Q."""
        P, Q = self.linear
        return joined[: P.size].reshape(P.shape), joined[P.size :].reshape(Q.shape)


@dataclass(frozen=True)
class Side:
    """Chosen columns C of a matrix M, at unit length, with their products; chosen rows are columns of the transpose."""

    vectors: Vectors
    """C, m x r."""
    gram: Doubles
    """C'C."""
    linear: Doubles
    """-M'C, n x r."""
    lengths: Doubles
    """Lengths of the columns as they are in the matrix."""

    @classmethod
    def of(cls, matrix: Matrix, indices: Indices) -> Side:
        """Gather the products of nonzero columns."""
        lengths = np.sqrt(matrix.squared_column_norms[indices])
        columns, products = matrix.with_products(indices)
        C = np.divide(columns, lengths, dtype=np.float64, order="C")
        return cls(C, C.T @ C, np.divide(products, -lengths, dtype=np.float64, order="C"), lengths)

    @classmethod
    def of_vectors(cls, matrix: Matrix, vectors: Doubles) -> Side:
        """Gather the products of given vectors, which need not be columns of the matrix; zero ones have length one."""
        lengths = np.linalg.norm(vectors, axis=0)
        lengths = np.where(lengths > 0, lengths, 1.0)
        C = np.ascontiguousarray(vectors / lengths)
        return cls(C, C.T @ C, -np.asarray(matrix.T.dot(C), dtype=np.float64), lengths)

    def take(self, positions: Indices) -> Side:
        """Some of the columns."""
        return Side(
            np.ascontiguousarray(self.vectors[:, positions]),
            self.gram[np.ix_(positions, positions)],
            np.ascontiguousarray(self.linear[:, positions]),
            self.lengths[positions],
        )

    def scaled(self, weights: Floats) -> Doubles:
        """Weights of the columns of the matrix, n x r, as weights of columns of unit length."""
        return np.multiply(weights, self.lengths, dtype=np.float64, order="C")


@dataclass(frozen=True)
class JointProblem(Quadratic):
    """The joint problem in Gram products, for columns and rows of unit length."""

    columns: Side
    rows: Side
    squared_norm: float

    @classmethod
    def of(cls, matrix: Matrix, columns: Indices, rows: Indices) -> JointProblem:
        """Gather the Gram products of nonzero columns and rows."""
        return cls(Side.of(matrix, columns), Side.of(matrix.T, rows), matrix.squared_norm)

    @property
    def linear(self) -> tuple[Doubles, Doubles]:
        """Gradient at zero."""
        return self.columns.linear, self.rows.linear

    def _coupling_P(self, Q: Doubles) -> Doubles:
        """What the row weights contribute to the gradient of P."""
        return np.asarray(self.rows.vectors @ transposed_dot(Q, self.columns.vectors))

    def _coupling_Q(self, P: Doubles) -> Doubles:
        """What the column weights contribute to the gradient of Q."""
        return np.asarray(self.columns.vectors @ transposed_dot(P, self.rows.vectors))

    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        """Second derivative applied to a direction, written to ``out`` if given."""
        in_P, in_Q = (np.empty_like(P), np.empty_like(Q)) if out is None else out
        np.matmul(P, self.columns.gram, out=in_P)
        np.matmul(Q, self.rows.gram, out=in_Q)
        if P.size and Q.size:
            in_P += self._coupling_P(Q)
            in_Q += self._coupling_Q(P)
        return in_P, in_Q

    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """Coordinate descent on P and on Q in turn, in place."""
        for _ in range(n_sweeps):
            coordinate_sweep(P, self._coupling_P(Q) + self.columns.linear, self.columns.gram)
            coordinate_sweep(Q, self._coupling_Q(P) + self.rows.linear, self.rows.gram)


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
        residual = -(slopes + _joined(*problem.hessian(*problem.split(direction)))) * free
    return problem.split(direction)


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
    search_parts, image_parts = problem.split(search), problem.split(image)
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
        slopes += length * _joined(*problem.hessian(*problem.split(direction)))
    P[...], Q[...] = problem.split(np.maximum(weights, 0.0))


def _dot(a: tuple[Doubles, ...], b: tuple[Doubles, ...]) -> float:
    return sum(float(np.vdot(x, y)) for x, y in zip(a, b, strict=True))
