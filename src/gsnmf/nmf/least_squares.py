r"""Nonnegative matrix factorization by accelerated hierarchical alternating least squares, A-HALS.

.. math:: \min_{W \ge 0,\; H \ge 0} \; \tfrac12 \|M - W H\|_F^2

With one factor fixed this is a quadratic problem, the same for every column of H (row of W), in the products W'W and
W'M alone. A-HALS (Gillis and Glineur 2012) computes these products, the expensive part, and then makes several sweeps
of coordinate descent with them: at most :math:`1 + \alpha \rho`, where :math:`\rho` is the cost of the products in
sweeps, and fewer once a sweep moves little. If entries are missing or have weights, the error is summed over the
observed entries, and every row of a factor has a Gram matrix of its own. `gsnmf.nmf.alternating` has the loop.

The optimality conditions are measured with the components of the other factor at unit length,

.. math:: \Big( \sum_k \|\min(w_k \|h_k\|,\; \nabla_{w_k} / \|h_k\|)\|^2
    + \|\min(h_k \|w_k\|,\; \nabla_{h_k} / \|w_k\|)\|^2 \Big)^{1/2}
    \,/\, \max(\|M - W H\|_F,\; 10^{-3} \|M\|_F),

with columns :math:`w_k` of W and rows :math:`h_k` of H: a dimensionless number that does not change when a component is
scaled up in one factor and down in the other. The problem is not convex, so a point that meets the conditions is one of
several; restarts choose among them.

References
----------
N. Gillis, F. Glineur, Accelerated multiplicative updates and hierarchical ALS algorithms for nonnegative matrix
factorization, Neural Computation 24 (2012), doi:10.1162/NECO_a_00256.
C. Boutsidis, E. Gallopoulos, SVD based initialization: a head start for nonnegative matrix factorization, Pattern
Recognition 41 (2008), doi:10.1016/j.patcog.2007.09.010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gsnmf._kernels.coordinate_descent import descend
from gsnmf._kernels.observed_entries import descend_observed, residuals
from gsnmf._parallel import blas_threads
from gsnmf.matrix import InMemoryMatrix, Matrix, wrap_in_memory
from gsnmf.matrix.input import MissingValues
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.singular_values import singular_triplets
from gsnmf.matrix.validation import check_block, check_count, check_indices, check_positive, check_rank
from gsnmf.nmf.alternating import (
    LITTLE,
    Factors,
    NMFResult,
    change,
    extrapolated,
    inner,
    minimize,
    n_sweeps,
    relative_violation,
    squared_violation,
    times,
    warn_unless_converged,
)
from gsnmf.problem import Problem
from gsnmf.records import Selection
from gsnmf.result import Factorization
from gsnmf.selection.successive_projection import generalized_successive_projection
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.progress import Progress, reported
from gsnmf.weights import solve_weights

DEFAULT_TOLERANCE = 3e-4
DEFAULT_MAX_ITERATIONS = 1000
NAMED_STARTS = ("random", "nndsvd", "selection")

_OBSERVED_SWEEPS = 3
"""Sweeps over each factor of observed entries per iteration; they cost less than the Gram matrices that they share."""
_WEIGHT_TOLERANCE = 1e-2
"""Tolerance for the weights of chosen columns and rows; the factorization goes on from there."""


def hals(
    matrix: Any,
    rank: Any,
    *,
    init: Any = "random",
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    n_restarts: int = 1,
    random_state: int | np.random.Generator | None = None,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    progress: Progress = None,
) -> NMFResult:
    """Nonnegative matrix factorization M ~ W H by accelerated hierarchical alternating least squares.

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse is never made dense.
    rank : int
        Columns of W and rows of H.
    init : {"random", "nndsvd", "selection"}, pair (W, H), Selection or Factorization
        Where to start. ``"random"``: absolute values of normal numbers. ``"nndsvd"``: nonnegative parts of the leading
        singular vectors; rank at most min(m, n). ``"selection"``: columns and rows chosen by generalized successive
        projection, with their weights; or a ``Selection`` or ``Factorization`` of this matrix, with at most ``rank``
        indices. The objective never rises above its value at a given pair (W, H).
    tolerance : float
        Bound on the relative violation of the optimality conditions.
    max_iterations : int
        Limit on the updates of both factors; a ``ConvergenceWarning`` says if it was reached.
    n_restarts : int
        Number of random starts; the result with the smallest error is returned.
    random_state : int, numpy.random.Generator or None
        Seed. Without it every call starts elsewhere, and may end at another stationary point.
    missing_values, entry_weights
        As for `gsnmf.factorize`: what is missing, and how much each entry counts. The error then refers to observed
        entries, and ``init`` must be ``"random"`` or a pair (W, H).
    progress : True or callable, optional
        True shows a bar on standard error. A function is called with small records: ``stage``, ``message`` and
        ``fraction`` of the way to the tolerance.

    Returns
    -------
    NMFResult

    Notes
    -----
    An iteration makes two products with M, O(nnz(M) r), and at most about half as many operations in sweeps. Besides M
    it holds about eight arrays of the size of W and of H. The number of threads affects only the rounding of BLAS.

    A zero matrix gives zero factors.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.nmf import hals
    >>> rng = np.random.default_rng(0)
    >>> matrix = rng.random((40, 3)) @ rng.random((3, 30))
    >>> result = hals(matrix, 3, random_state=0)
    >>> result.W.shape, result.H.shape
    ((40, 3), (3, 30))
    >>> result.converged, result.relative_error < 0.01
    (True, True)
    """
    limits = check_positive(tolerance, "tolerance"), check_count(max_iterations, "max_iterations")
    n_restarts = check_count(n_restarts, "n_restarts")
    if n_restarts > 1 and not (isinstance(init, str) and init == "random"):
        raise ValueError(f"n_restarts must be 1 unless init is 'random', for it would repeat itself; got {n_restarts}.")
    rng = np.random.default_rng(random_state)
    if missing_values is None and entry_weights is None:
        held: Matrix | Observed = wrap_in_memory(matrix)
    else:
        problem = Problem.of(matrix, missing_values=missing_values, entry_weights=entry_weights)
        problem.warn()
        held = problem.matrix
    rank = check_rank(rank, held.shape)

    def solved() -> NMFResult:
        if isinstance(held, Observed):
            return _fit_observed(held, _observed_start(held, rank, init, rng), *limits)
        assert isinstance(held, InMemoryMatrix)
        return _fit_whole(held, initial_factors(held, rank, init, rng), *limits)

    with reported(progress):
        best = min((solved() for _ in range(n_restarts)), key=lambda result: result.relative_error)
    warn_unless_converged(best, tolerance, "gsnmf.nmf.hals")
    return best


@dataclass(frozen=True)
class _WholeMatrix:
    """All entries count alike."""

    sweeps: tuple[int, int]

    def step(self, now: Factors, before: Factors, momentum: float) -> tuple[Factors, float]:
        H_ahead = extrapolated(now.H, before.H, momentum)
        W = np.maximum(extrapolated(now.W, before.W, momentum), 0)
        descend(W, extrapolated(now.HM, before.HM, momentum), H_ahead @ H_ahead.T, self.sweeps[0], LITTLE)
        WM = times(now.matrix.T, W)
        W_ahead = extrapolated(W, now.W, momentum)
        H = np.maximum(H_ahead, 0)
        descend(H, extrapolated(WM, now.WM, momentum), W_ahead @ W_ahead.T, self.sweeps[1], LITTLE)
        rise = change(now.W, W, now.HM, now.H @ now.H.T) + change(now.H, H, WM, W @ W.T)
        return Factors(now.matrix, W, H, WM), -rise

    def violation(self, now: Factors, objective: float) -> float:
        squared = squared_violation(now.W, now.HM, now.H @ now.H.T) + squared_violation(now.H, now.WM, now.W @ now.W.T)
        return relative_violation(squared, 2.0 * objective, now.matrix.squared_norm)


def _fit_whole(
    matrix: InMemoryMatrix, start: tuple[Floats, Floats], tolerance: float, max_iterations: int
) -> NMFResult:
    W, H = start
    (m, n), r = matrix.shape, len(W)
    problem = _WholeMatrix((n_sweeps(matrix.n_stored, m, n, r), n_sweeps(matrix.n_stored, n, m, r)))
    with blas_threads(matrix.n_stored * r):
        objective = 0.5 * matrix.squared_residual(W.T, H)
        found = minimize(problem, Factors.of(matrix, W, H), objective, matrix.dtype, tolerance, max_iterations)
        W, H = found.point.W, found.point.H
        squared_error = matrix.squared_residual(W.T, H)
    found = replace(found, objective=np.maximum(found.objective, 0.0))  # sums of changes are negative by rounding
    left, right = _unit_exponents(matrix.exponent)
    return found.result(np.ldexp(W.T, left), np.ldexp(H, right), squared_error, matrix.squared_norm)


class _ObservedFactors(NamedTuple):
    """W (m x r), H' (n x r), and the weighted sum of squared errors over the observed entries."""

    W: Doubles
    F: Doubles
    squared_error: float


@dataclass(frozen=True)
class _ObservedEntries:
    """Only observed entries count, each with its weight."""

    observed: Observed

    def at(self, W: Doubles, F: Doubles) -> _ObservedFactors:
        return _ObservedFactors(W, F, self.observed.weighted_squares(residuals(self.observed.entries, W, F)))

    def step(self, now: _ObservedFactors, before: _ObservedFactors, momentum: float) -> tuple[_ObservedFactors, float]:
        F_ahead = extrapolated(now.F, before.F, momentum)
        W = np.maximum(extrapolated(now.W, before.W, momentum), 0)
        descend_observed(self.observed.entries, F_ahead, W, _OBSERVED_SWEEPS)
        F = np.maximum(F_ahead, 0)
        descend_observed(self.observed.T.entries, extrapolated(W, now.W, momentum), F, _OBSERVED_SWEEPS)
        new = self.at(W, F)
        return new, 0.5 * (now.squared_error - new.squared_error)

    def violation(self, now: _ObservedFactors, objective: float) -> float:
        """Each unknown is scaled so that its second derivative is one: without holes as for a whole matrix."""
        squared = descend_observed(self.observed.entries, now.F, now.W.copy(), 0).sum()
        squared += descend_observed(self.observed.T.entries, now.W, now.F.copy(), 0).sum()
        return relative_violation(float(squared), 2.0 * objective, self.observed.squared_norm)


def _fit_observed(observed: Observed, start: tuple[Floats, Floats], tolerance: float, max_iterations: int) -> NMFResult:
    problem = _ObservedEntries(observed)
    begin = problem.at(*(np.array(factor, dtype=np.float64, order="C") for factor in start))
    found = minimize(problem, begin, 0.5 * begin.squared_error, np.float64, tolerance, max_iterations)
    W, F, squared_error = found.point
    H = np.ascontiguousarray(F.T, dtype=observed.dtype)
    return found.result(W.astype(observed.dtype, copy=False), H, squared_error, observed.squared_norm)


def initial_factors(matrix: InMemoryMatrix, rank: int, init: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """W' (r x m) and H (r x n) to start from, in the unit in which the matrix is held; see `gsnmf.nmf.hals`."""
    m, n = matrix.shape
    if matrix.squared_norm == 0:
        return np.zeros((rank, m), dtype=matrix.dtype), np.zeros((rank, n), dtype=matrix.dtype)
    if isinstance(init, Selection | Factorization):
        return _from_selection(matrix, rank, init, rng)
    if isinstance(init, tuple | list) and len(init) == 2:
        W, H = (factor.astype(matrix.dtype) for factor in _given(init, (m, n), rank))
        left, right = _unit_exponents(matrix.exponent)
        return np.ascontiguousarray(np.ldexp(W, -left).T), np.ascontiguousarray(np.ldexp(H, -right))
    if not isinstance(init, str) or init not in NAMED_STARTS:
        names = ", ".join(map(repr, NAMED_STARTS))
        raise ValueError(f"init must be {names}, a pair (W, H), a Selection or a Factorization; got {init!r}.")
    if init == "selection":
        return _from_selection(matrix, rank, generalized_successive_projection(matrix, rank), rng)
    if init == "nndsvd":
        W, H = _from_singular_vectors(matrix, rank)
    else:
        W, H = (np.abs(rng.standard_normal((rank, length))).astype(matrix.dtype) for length in (m, n))
    # the common factor that makes W H closest to the matrix
    explained = inner(W @ W.T, H @ H.T)
    roots = _roots(inner(times(matrix.T, W), H) / explained if explained > 0 else 0.0)
    return W * W.dtype.type(roots[0]), H * H.dtype.type(roots[1])


def _observed_start(observed: Observed, rank: int, init: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """W (m x r) and H' (n x r) to start from."""
    if isinstance(init, tuple | list) and len(init) == 2:
        given_W, given_H = _given(init, observed.shape, rank)
        return given_W, given_H.T
    if not isinstance(init, str) or init != "random":
        raise ValueError(f"init must be 'random' or a pair (W, H) with missing entries or entry_weights; got {init!r}.")
    W, F = (np.abs(rng.standard_normal((length, rank))) for length in observed.shape)
    fitted = observed.values.data.astype(np.float64) - residuals(observed.entries, W, F)
    weights = observed.relative_weights
    explained = float(np.vdot(fitted, weights * fitted))
    factor = float(np.vdot(fitted, weights * observed.values.data)) / explained if explained > 0 else 0.0
    return W * np.sqrt(factor), F * np.sqrt(factor)


def _given(init: Any, shape: tuple[int, int], rank: int) -> tuple[Floats, Floats]:
    """W (m x r) and H (r x n), checked."""
    W = check_block(init[0], (shape[0], rank), name="W of init", nonnegative=True)
    return W, check_block(init[1], (rank, shape[1]), name="H of init", nonnegative=True)


def _from_singular_vectors(matrix: InMemoryMatrix, rank: int) -> tuple[Floats, Floats]:
    """NNDSVD: of each pair of singular vectors, the positive or the negative parts, whichever are larger together."""
    if rank > min(matrix.shape):
        raise ValueError(
            f"rank must be in [1, {min(matrix.shape)}] for init='nndsvd' and a matrix of shape {matrix.shape}; "
            f"got {rank}."
        )
    U, values, V = singular_triplets(matrix, rank)
    W, H = (np.empty((rank, length), dtype=matrix.dtype) for length in matrix.shape)
    for k in range(rank):
        pairs = [(np.maximum(sign * U[:, k], 0), np.maximum(sign * V[:, k], 0)) for sign in (1, -1)]
        lengths = [float(np.linalg.norm(u) * np.linalg.norm(v)) for u, v in pairs]
        (u, v), length = pairs[int(np.argmax(lengths))], max(lengths)
        left, right = _roots(float(values[k]) * length)
        W[k] = left * u / (np.linalg.norm(u) or 1.0)
        H[k] = right * v / (np.linalg.norm(v) or 1.0)
    return W, H


def _from_selection(
    matrix: InMemoryMatrix, rank: int, chosen: Selection | Factorization, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """[M[:, columns], P2] and [P1; M[rows, :]]; components that are missing are random in W and zero in H."""
    m, n = matrix.shape
    columns, rows = check_indices(chosen.columns, n, "columns"), check_indices(chosen.rows, m, "rows")
    missing = rank - columns.size - rows.size
    if missing < 0:
        raise ValueError(f"init must have at most {rank} columns and rows, the rank; got {rank - missing}.")
    weights = (
        chosen
        if isinstance(chosen, Factorization)
        else solve_weights(matrix, columns, rows, tolerance=_WEIGHT_TOLERANCE, max_iterations=100)
    )
    if weights.column_weights.shape != (columns.size, n) or weights.row_weights.shape != (m, rows.size):
        raise ValueError(f"init must be a Factorization of a matrix of shape {(m, n)}; its weights have other shapes.")
    noise = np.abs(rng.standard_normal((missing, m)))
    W = np.vstack([matrix.columns(columns).T, weights.row_weights.T, noise])
    H = np.vstack([weights.column_weights, matrix.T.columns(rows).T, np.zeros((missing, n))])
    return np.ascontiguousarray(W, dtype=matrix.dtype), np.ascontiguousarray(H, dtype=matrix.dtype)


def _roots(value: float) -> tuple[float, float]:
    """Two numbers of about the same size with product ``value``; a power of two in it changes no digit of either."""
    mantissa, exponent = math.frexp(value)
    root = math.sqrt(mantissa)
    left, right = _unit_exponents(exponent)
    return math.ldexp(root, left), math.ldexp(root, right)


def _unit_exponents(exponent: int) -> tuple[int, int]:
    """Powers of two that W and H get when the matrix is held in units of two to the power ``exponent``."""
    return exponent - exponent // 2, exponent // 2
