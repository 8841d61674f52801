r"""Latent low-rank representation, LatLRR: a matrix that represents itself from both sides.

Without noise (Liu and Yan 2011)

.. math:: \min_{X, L} \; \|X\|_* + \|L\|_* \quad\text{such that}\quad M = M X + L M,

with nuclear norms. From the skinny SVD :math:`M = U \Sigma V^T` of rank k its solutions are
:math:`X = V Z V^T`, :math:`L = U (I - Z) U^T` for a range of Z (Zhang, Lin and Zhang 2013); the one with
:math:`Z = I / 2`, which treats columns and rows alike, is returned.

With noise the constraint becomes a term of the objective, either of

.. math::

    \|X\|_* + \|L\|_* + \tfrac{w}{2} \|M - M X - L M\|_F^2, \qquad
    \|X\|_* + \|L\|_* + w \|M - M X - L M\|_1 .

The first has a closed form as well. Replacing X by :math:`V V^T X V V^T` and L by :math:`U U^T L U U^T` raises no
term, so :math:`X = V \hat X V^T`, :math:`L = U \hat L U^T`; changing the signs of pairs of singular vectors changes
nothing, and by convexity the average over all such changes, which keeps only the diagonals of :math:`\hat X` and
:math:`\hat L`, is no worse. What is left is one problem per singular value, with the solution

.. math:: \hat x_i + \hat l_i = t_i = \max(0,\; 1 - 1 / (w \sigma_i^2)), \qquad \hat x_i = \hat l_i = t_i / 2 .

The second is solved by the alternating direction method of multipliers (ADMM). As :math:`X = V \tilde X` and
:math:`L = \tilde L U^T` raise no term either, its variables are :math:`\tilde X` (k x n) and :math:`\tilde L`
(m x k). They alternate with copies :math:`J = \tilde X`, :math:`K = \tilde L` and
:math:`E = M - U \Sigma \tilde X - \tilde L \Sigma V^T`, whose three subproblems are soft thresholdings, and are
themselves found together in closed form: two blocks, for which ADMM converges. It stops on the larger of the primal
and the dual residual, each relative to the size of what should agree.

References
----------
G. Liu, S. Yan, Latent low-rank representation for subspace segmentation and feature extraction, ICCV 2011,
doi:10.1109/ICCV.2011.6126422.
H. Zhang, Z. Lin, C. Zhang, A counterexample for the validity of using nuclear norm as a convex surrogate of rank,
ECML PKDD 2013, doi:10.1007/978-3-642-40991-2_15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from gsnmf.matrix import wrap_in_memory
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_count, check_positive
from gsnmf.nmf import LowRankResult
from gsnmf.nmf.alternating import inner
from gsnmf.support.arrays import Floats
from gsnmf.support.reasons import StopReason
from gsnmf.support.warning import warn_caller

DEFAULT_TOLERANCE = 1e-4
DEFAULT_MAX_ITERATIONS = 1000
DEFAULT_MEMORY = 2 << 30

_IMBALANCE, _ADAPTATION, _ADAPTIVE_ITERATIONS = 10.0, 2.0, 100
"""The penalty follows the ratio of the two residuals, but only at first: convergence needs it fixed in the end."""

_Triple: TypeAlias = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LatentLowRankResult(LowRankResult):
    """A matrix that represents itself from both sides, M ~ M X + L M, held in factors: W H = M X + L M.

    Attributes
    ----------
    X_factors : pair of arrays, shape (n, k) and (k, n)
        Their product is X; k is the rank of M.
    L_factors : pair of arrays, shape (m, k) and (k, m)
        Their product is L.
    objective : float
        Value of the objective in the unit of M.
    optimality : float
        Relative violation of the optimality conditions.
    stop_reason : str
        ``"closed form"``, ``"tolerance reached"`` or ``"max_iterations reached"``.

    Examples
    --------
    >>> from reproduction.latent_low_rank import latent_low_rank
    >>> result = latent_low_rank([[1, 0, 2], [0, 1, 2], [0, 0, 1]])
    >>> result.stop_reason
    'closed form'
    """

    X_factors: tuple[Floats, Floats]
    L_factors: tuple[Floats, Floats]
    objective: float
    optimality: float
    stop_reason: str

    @property
    def X(self) -> Floats:
        """The representation by columns, a dense n x n array made at each call."""
        return np.asarray(self.X_factors[0] @ self.X_factors[1])

    @property
    def L(self) -> Floats:
        """The representation by rows, a dense m x m array made at each call."""
        return np.asarray(self.L_factors[0] @ self.L_factors[1])


def latent_low_rank(
    matrix: Any,
    *,
    weight: float | None = None,
    error: Literal["squared", "absolute"] = "squared",
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    memory: int = DEFAULT_MEMORY,
) -> LatentLowRankResult:
    """Latent low-rank representation M ~ M X + L M; the problem is stated above.

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32. A sparse matrix is made dense.
    weight : float, optional
        w, the weight of the error, in the unit of the matrix (1 / its square for the squared error). By default the
        representation is exact.
    error : {"squared", "absolute"}
        Frobenius norm, with a closed form, or sum of absolute values, which is robust to a few wrong entries.
    tolerance, max_iterations : float and int
        For the ADMM of the absolute error; a ``ConvergenceWarning`` says if the limit was reached.
    memory : int
        Bytes that the dense arrays may take; an error is raised if they need more.

    Returns
    -------
    LatentLowRankResult
        X and L are held in factors of the rank k of M; the n x n and m x m arrays are made only on demand.

    Notes
    -----
    The whole SVD costs O(m n min(m, n)) and holds M and its factors dense. The absolute error adds as much at each
    iteration, and six arrays of the size of M.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.latent_low_rank import latent_low_rank
    >>> matrix = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    >>> result = latent_low_rank(matrix)
    >>> bool(np.allclose(matrix @ result.X + result.L @ matrix, matrix))
    True
    >>> round(result.objective, 6)
    1.0
    """
    if error not in ("squared", "absolute"):
        raise ValueError(f"error must be 'squared' or 'absolute'; got {error!r}.")
    tolerance = check_positive(tolerance, "tolerance")
    max_iterations = check_count(max_iterations, "max_iterations")
    if weight is not None:
        weight = check_positive(weight, "weight")
    held = wrap_in_memory(matrix)
    _check_memory(held, 2 if weight is None or error == "squared" else 8, check_count(memory, "memory"))
    dense = held.columns(np.arange(held.shape[1]))
    U, values, V = _skinny_svd(dense)
    if weight is None or error == "squared":
        unit = 1.0 if weight is None else np.ldexp(weight, 2 * held.exponent)
        return _closed_form(held, U, values, V, None if weight is None else float(unit))
    result = _absolute_error(
        held, dense, (U, values, V), float(np.ldexp(weight, held.exponent)), tolerance, max_iterations
    )
    if not result.converged:
        warn_caller(
            f"latent_low_rank stopped after {result.n_iterations} iterations with a relative residual of "
            f"{result.optimality:.1e}, above the tolerance {tolerance:.1e}; raise max_iterations or tolerance.",
            ConvergenceWarning,
        )
    return result


def _check_memory(matrix: Matrix, n_copies: int, memory: int) -> None:
    m, n = matrix.shape
    needed = matrix.dtype.itemsize * (n_copies * m * n + (m + n) * min(m, n))
    if needed > memory:
        raise ValueError(
            f"The latent low-rank representation of a matrix of shape {(m, n)} needs about {needed / 2**30:.1f} GiB of "
            f"dense arrays, above memory={memory} bytes ({memory / 2**30:.1f} GiB)."
        )


def _skinny_svd(dense: Floats) -> tuple[Floats, Floats, Floats]:
    """U (m x k), singular values and V (n x k) for the numerical rank k."""
    U, values, Vt = linalg.svd(dense, full_matrices=False, check_finite=False)
    k = int(np.count_nonzero(values > values[0] * max(dense.shape) * np.finfo(dense.dtype).eps))
    return U[:, :k], values[:k], Vt[:k].T


def _closed_form(matrix: Matrix, U: Floats, values: Floats, V: Floats, weight: float | None) -> LatentLowRankResult:
    squares = values.astype(np.float64) ** 2
    kept = np.ones_like(squares) if weight is None else np.maximum(0.0, 1.0 - 1.0 / (weight * squares))
    squared_error = float(np.sum(squares * (1.0 - kept) ** 2))
    half = (kept / 2).astype(matrix.dtype)
    return LatentLowRankResult(
        W=np.ldexp(U * (values * half * 2), matrix.exponent),
        H=V.T,
        relative_error=float(np.sqrt(squared_error / np.sum(squares))) if values.size else 0.0,
        n_iterations=1,
        converged=True,
        X_factors=(V * half, V.T),
        L_factors=(U * half, U.T),
        objective=float(kept.sum()) + 0.5 * (weight or 0.0) * squared_error,
        optimality=0.0,
        stop_reason="closed form",
    )


def _soft(values: Floats, threshold: float) -> Floats:
    return np.sign(values) * np.maximum(np.abs(values) - values.dtype.type(threshold), 0)


def _singular_soft(matrix: Floats, threshold: float) -> Floats:
    """Soft thresholding of the singular values: the proximal operator of the nuclear norm."""
    U, values, Vt = linalg.svd(matrix, full_matrices=False, check_finite=False)
    return np.asarray((U * _soft(values, threshold)) @ Vt)


def _absolute_error(
    matrix: Matrix, M: Floats, svd: _Triple, weight: float, tolerance: float, max_iterations: int
) -> LatentLowRankResult:
    U, values, V = svd
    if values.size == 0:
        return _closed_form(matrix, U, values, V, None)
    unit = values[0]
    problem = _Problem(M / unit, U, values / unit, V)
    weights = (1.0, 1.0, weight * float(unit))
    X, L, optimality, n_iterations = _alternate(problem, weights, tolerance, max_iterations)
    residual = problem.image(X, L)[2]
    parts = [_nuclear_norm(X), _nuclear_norm(L), float(np.abs(residual, dtype=np.float64).sum())]
    converged = optimality <= tolerance
    reason = StopReason.TOLERANCE_REACHED if converged else StopReason.MAX_ITERATIONS_REACHED
    return LatentLowRankResult(
        W=np.ldexp(np.hstack([U * values, L * values]), matrix.exponent),
        H=np.vstack([X, V.T]),
        relative_error=float(np.linalg.norm(residual) / np.linalg.norm(problem.M)),
        n_iterations=n_iterations,
        converged=converged,
        X_factors=(V, X),
        L_factors=(L, U.T),
        objective=float(np.dot(weights, parts)),
        optimality=optimality,
        stop_reason=reason,
    )


@dataclass(frozen=True)
class _Problem:
    """M and its skinny SVD."""

    M: Floats
    U: Floats
    values: Floats
    V: Floats

    def image(self, X: Floats, L: Floats) -> _Triple:
        """X, L and M - U S X - L S V': what the copies J, K and E should equal."""
        return X, L, self.M - (self.U * self.values) @ X - L @ (self.values * self.V).T

    def nearest(self, J: Floats, K: Floats, E: Floats) -> tuple[Floats, Floats]:
        """The X and L whose image is closest to given J, K and E, exactly.

        With R = M - E the normal equations are X = J + S U' Z and L = K + Z V S, Z = R - U S X - L S V'. On the spaces
        of U and V they are a scalar equation for each entry of U' Z V, and next to them for one of U' Z or Z V alone.
        """
        U, s, V = self.U, self.values, self.V
        left, right = s[:, None], s[None, :]
        R = self.M - E
        to_left, to_right = U.T @ R, R @ V
        core = to_left @ V
        Z = (core - left * (J @ V) - (U.T @ K) * right) / (1 + left**2 + right**2)
        Z_left = ((to_left - core @ V.T) - left * (J - (J @ V) @ V.T)) / (1 + left**2) + Z @ V.T
        Z_right = ((to_right - U @ core) - (K - U @ (U.T @ K)) * right) / (1 + right**2) + U @ Z
        return J + left * Z_left, K + Z_right * right


def _alternate(
    problem: _Problem, weights: tuple[float, float, float], tolerance: float, max_iterations: int
) -> tuple[Floats, Floats, float, int]:
    """X, L, the larger of the two relative residuals, and the iterations made."""
    X: Floats = problem.V.T / 2
    L: Floats = problem.U / 2
    copies = problem.image(X, L)
    duals = tuple(np.zeros_like(part) for part in copies)
    penalty, optimality = 1.0, np.inf
    for iteration in range(1, max_iterations + 1):
        X, L = problem.nearest(*(c - d for c, d in zip(copies, duals, strict=True)))
        image = problem.image(X, L)
        moved = [i + d for i, d in zip(image, duals, strict=True)]
        before = copies
        copies = (
            _singular_soft(moved[0], weights[0] / penalty),
            _singular_soft(moved[1], weights[1] / penalty),
            _soft(moved[2], weights[2] / penalty),
        )
        duals = tuple(v - c for v, c in zip(moved, copies, strict=True))
        primal = _distance(image, copies) / max(_norm(image), _norm(copies))
        dual = _distance(copies, before) / max(_norm(duals), np.finfo(np.float64).tiny)
        optimality = max(primal, dual)
        if optimality <= tolerance:
            break
        if iteration <= _ADAPTIVE_ITERATIONS and max(primal, dual) > _IMBALANCE * min(primal, dual):
            factor = _ADAPTATION if primal > dual else 1 / _ADAPTATION
            penalty *= factor
            duals = tuple(d / d.dtype.type(factor) for d in duals)
    return X, L, float(optimality), iteration


def _nuclear_norm(matrix: Floats) -> float:
    return float(linalg.svdvals(matrix, check_finite=False).sum(dtype=np.float64))


def _norm(parts: tuple[Floats, ...]) -> float:
    return float(np.sqrt(sum(inner(part, part) for part in parts)))


def _distance(a: tuple[Floats, ...], b: tuple[Floats, ...]) -> float:
    return _norm(tuple(x - y for x, y in zip(a, b, strict=True)))
