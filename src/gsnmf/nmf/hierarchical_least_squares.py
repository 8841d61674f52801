r"""Nonnegative matrix factorization by accelerated hierarchical alternating least squares, A-HALS.

.. math:: \min_{W \ge 0,\; H \ge 0} \; \tfrac12 \|M - W H\|_F^2

With one factor fixed this is a quadratic problem, the same for every column of H (row of W), in the products W'W and
W'M alone. A-HALS (Gillis and Glineur 2012) computes these products, the expensive part, and then makes several sweeps
of coordinate descent with them, at most :math:`1 + \alpha \rho` where :math:`\rho` is the cost of the products in
sweeps, and fewer if a sweep has come to move little.

The sweeps are extrapolated, and the objective never rises; `gsnmf.nmf.alternating` says how.

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
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gsnmf._kernels.coordinate_descent import descend
from gsnmf._parallel import blas_threads
from gsnmf.matrix import InMemoryMatrix, wrap_in_memory
from gsnmf.matrix.input import MissingValues
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_block, check_count, check_positive, check_rank
from gsnmf.nmf.alternating import (
    Point,
    change,
    extrapolated,
    iterate,
    n_sweeps,
    relative_violation,
    squared_violation,
    times,
    unit_exponents,
    warn_unless_converged,
)
from gsnmf.nmf.initialization import initial_factors
from gsnmf.nmf.observed_hals import observed_start, solve_observed_hals
from gsnmf.nmf.results import NMFResult
from gsnmf.problem import Problem
from gsnmf.support.arrays import Floats

DEFAULT_TOLERANCE = 3e-4
DEFAULT_MAX_ITERATIONS = 1000

_EPSILON = 0.1
"""Sweeps end when one moves less than this fraction of the first."""


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
        indices. The objective never rises above that of a given pair (W, H).
    tolerance : float
        Bound on the relative violation of the optimality conditions.
    max_iterations : int
        Limit on the updates of both factors; a ``ConvergenceWarning`` says if it was reached.
    n_restarts : int
        Number of random starts; the result with the smallest error is returned.
    random_state : int, numpy.random.Generator or None
        Seed.
    missing_values, entry_weights
        As for `gsnmf.factorize`: what is missing, and how much each entry counts. The error then refers to observed
        entries, and ``init`` must be ``"random"`` or a pair (W, H); see `gsnmf.nmf.observed_hals`.

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
    tolerance = check_positive(tolerance, "tolerance")
    max_iterations = check_count(max_iterations, "max_iterations")
    n_restarts = check_count(n_restarts, "n_restarts")
    if n_restarts > 1 and not (isinstance(init, str) and init == "random"):
        raise ValueError(f"n_restarts must be 1 unless init is 'random', for it would repeat itself; got {n_restarts}.")
    rng = np.random.default_rng(random_state)
    problem = None
    if missing_values is not None or entry_weights is not None:
        problem = Problem.of(matrix, missing_values=missing_values, entry_weights=entry_weights)
    held = wrap_in_memory(matrix) if problem is None else problem.matrix
    rank = check_rank(rank, held.shape)

    def solved() -> NMFResult:
        if isinstance(held, Observed):
            return solve_observed_hals(held, _observed_start(held, rank, init, rng), tolerance, max_iterations)
        assert isinstance(held, InMemoryMatrix)
        return _solve(held, initial_factors(held, rank, init, rng), held.n_stored, tolerance, max_iterations)

    if problem is not None:
        problem.warn()
    best = min((solved() for _ in range(n_restarts)), key=lambda result: result.relative_error)
    warn_unless_converged(best, tolerance, "gsnmf.nmf.hals")
    return best


def _observed_start(observed: Observed, rank: int, init: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    if isinstance(init, str) and init == "random":
        return observed_start(observed, rank, rng)
    if not (isinstance(init, tuple | list) and len(init) == 2):
        raise ValueError(f"init must be 'random' or a pair (W, H) with missing entries or entry_weights; got {init!r}.")
    m, n = observed.shape
    W = check_block(init[0], (m, rank), name="W of init", nonnegative=True)
    return W, check_block(init[1], (rank, n), name="H of init", nonnegative=True).T


def _solve(
    matrix: Matrix, start: tuple[Floats, Floats], n_stored: int, tolerance: float, max_iterations: int
) -> NMFResult:
    W, H = start
    (m, n), r = matrix.shape, len(W)
    sweeps = n_sweeps(n_stored, m, n, r), n_sweeps(n_stored, n, m, r)
    with blas_threads(n_stored * r):
        squared_error = matrix.squared_residual(W.T, H)
        point, objective, optimality, stop_reason = iterate(
            matrix,
            Point(W, H, times(matrix.T, W), times(matrix, H)),
            0.5 * squared_error,
            step=lambda now, before, momentum: _step(matrix, now, before, momentum, sweeps),
            optimality=lambda point, objective: _optimality(matrix, point, 2.0 * objective),
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
        squared_error = matrix.squared_residual(point.W.T, point.H)
    norm = matrix.squared_norm
    left, right = unit_exponents(matrix.exponent)
    return NMFResult(
        W=np.ldexp(point.W.T, left),
        H=np.ldexp(point.H, right),
        relative_error=float(np.sqrt(squared_error / norm)) if norm > 0 else 0.0,
        n_iterations=objective.size - 1,
        converged=optimality <= tolerance,
        optimality=optimality,
        stop_reason=stop_reason,
        objective=np.maximum(objective, 0.0) * (2.0 / norm if norm > 0 else 1.0),
    )


def _step(
    matrix: Matrix, now: Point, before: Point, momentum: float, sweeps: tuple[int, int]
) -> tuple[Floats, Floats, Floats, float]:
    H_ahead = extrapolated(now.H, before.H, momentum)
    W = np.maximum(extrapolated(now.W, before.W, momentum), 0)
    descend(W, extrapolated(now.HM, before.HM, momentum), H_ahead @ H_ahead.T, sweeps[0], _EPSILON)
    WM = times(matrix.T, W)
    W_ahead = extrapolated(W, now.W, momentum)
    H = np.maximum(H_ahead, 0)
    descend(H, extrapolated(WM, now.WM, momentum), W_ahead @ W_ahead.T, sweeps[1], _EPSILON)
    rise = change(now.W, W, now.HM, now.H @ now.H.T) + change(now.H, H, WM, W @ W.T)
    return W, H, WM, -rise


def _optimality(matrix: Matrix, point: Point, squared_error: float) -> float:
    violation = squared_violation(point.W, point.HM, point.H @ point.H.T)
    violation += squared_violation(point.H, point.WM, point.W @ point.W.T)
    return relative_violation(violation, squared_error, matrix.squared_norm)
