r"""Minimum-volume nonnegative matrix factorization, MV-NMF.

.. math:: \min_{W \ge 0,\; H \ge 0,\; e^T H \le e^T} \; \tfrac12 \|M - W H\|_F^2
    + \lambda \log\det(W^T W / s^2 + \delta I)

The columns of M are approximated by points in the convex hull of the columns of W and the origin, whose volume grows
with :math:`\det W^T W`. So the columns of W fit as tightly around the data as possible. The factorization is unique if
H is sufficiently scattered, a much weaker condition than separability. The sums of the columns of H are at most one
(Leplat, Ang and Gillis 2019), or equal to one if the origin is to be left out (Fu et al. 2016).

:math:`s^2` is the mean squared column norm of W at the start, so that :math:`\delta` and the volume have no unit, and

.. math:: \lambda = \tilde\lambda \, \frac{\tfrac12 \|M - W_0 H_0\|_F^2}
    {\max(1,\; |\log\det(W_0^T W_0 / s^2 + \delta I)|)}

balances the two terms at the start.

W is updated by sweeps of coordinate descent on a quadratic bound: the logarithm is concave, so with
:math:`Y = (W^T W / s^2 + \delta I)^{-1}` at the last W the volume is at most
:math:`\langle Y, W^T W \rangle / s^2` plus a constant. H is updated by a fast gradient method with projection on the
constraints. Both are extrapolated, and the objective never rises; `gsnmf.nmf.alternating` says how.

References
----------
X. Fu, K. Huang, B. Yang, W.-K. Ma, N. D. Sidiropoulos, Robust volume minimization-based matrix factorization for remote
sensing and document clustering, IEEE Transactions on Signal Processing 64 (2016), doi:10.1109/TSP.2016.2602800.
V. Leplat, A. M. S. Ang, N. Gillis, Minimum-volume rank-deficient nonnegative matrix factorizations, ICASSP 2019,
doi:10.1109/ICASSP.2019.8682280.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from gsnmf._kernels.coordinate_descent import descend
from gsnmf._kernels.simplex import descend_on_simplex, project_on_simplex
from gsnmf._parallel import blas_threads
from gsnmf.matrix import InMemoryMatrix, wrap_in_memory
from gsnmf.matrix.validation import check_count, check_positive, check_rank
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
from gsnmf.nmf.least_squares import NAMED_STARTS, initial_factors
from gsnmf.selection.successive_projection import successive_projection
from gsnmf.support.arrays import Floats
from gsnmf.support.progress import Progress, reported

DEFAULT_TOLERANCE = 1e-3
DEFAULT_MAX_ITERATIONS = 1000

_MAX_STEPS = 10
"""Largest number of gradient steps on H per iteration."""
_FIRST_STEPS, _FIRST_LITTLE = 200, 1e-3
"""Limits of the gradient steps on H for the starting columns of W, which are not repeated."""


def minimum_volume(
    matrix: Any,
    rank: Any,
    *,
    weight: float = 0.003,
    delta: float = 0.1,
    sum_to_one: bool = False,
    init: Any = "spa-columns",
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    random_state: int | np.random.Generator | None = None,
    progress: Progress = None,
) -> NMFResult:
    r"""Nonnegative factorization M ~ W H whose columns of W span the least volume around the data.

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse is never made dense. The model is about columns: those
        of M are mixtures of those of W.
    rank : int
        Columns of W and rows of H.
    weight : float
        :math:`\tilde\lambda`, the weight of the volume relative to the error at the start.
    delta : float
        :math:`\delta`, which keeps the volume finite when columns of W depend on each other.
    sum_to_one : bool
        Whether each column of H sums to one; by default to at most one.
    init : "spa-columns", or what `gsnmf.nmf.hals` takes
        By default W starts as columns of M chosen by successive projection, and H as the best for it. Other factors
        are scaled to meet the constraints.
    tolerance : float
        Bound on the relative violation of the optimality conditions.
    max_iterations : int
        Limit on the updates of both factors; a ``ConvergenceWarning`` says if it was reached.
    random_state : int, numpy.random.Generator or None
        Seed; with the default ``init`` it matters only if M has fewer independent columns than the rank.
    progress : True or callable, optional
        As for `gsnmf.nmf.hals`.

    Returns
    -------
    NMFResult
        Its ``weight`` is :math:`\lambda / \|M\|_F^2`.

    Notes
    -----
    An iteration makes two products with M, O(nnz(M) r), and O((m + n) r^2) operations besides.

    A zero matrix gives W = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.nmf import minimum_volume
    >>> rng = np.random.default_rng(0)
    >>> matrix = rng.random((20, 3)) @ rng.dirichlet(np.full(3, 0.3), size=100).T
    >>> result = minimum_volume(matrix, 3)
    >>> bool(result.H.sum(axis=0).max() < 1 + 1e-12), result.relative_error < 0.05
    (True, True)
    """
    weight, delta = check_positive(weight, "weight"), check_positive(delta, "delta")
    tolerance = check_positive(tolerance, "tolerance")
    max_iterations = check_count(max_iterations, "max_iterations")
    held = wrap_in_memory(matrix)
    rank = check_rank(rank, held.shape)
    with reported(progress), blas_threads(held.n_stored * rank):
        W, H = _start(held, rank, init, sum_to_one, np.random.default_rng(random_state))
        result = _fit(held, W, H, (weight, delta, sum_to_one), tolerance, max_iterations)
    warn_unless_converged(result, tolerance, "gsnmf.nmf.minimum_volume")
    return result


def _start(
    matrix: InMemoryMatrix, rank: int, init: Any, sum_to_one: bool, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """W' as it is given or chosen, scaled so that the H that came with it is feasible, and the best H for it."""
    if isinstance(init, str) and init == "spa-columns":
        chosen = matrix.columns(successive_projection(matrix, rank, axis="columns").columns).T
        noise = np.abs(rng.standard_normal((rank - len(chosen), matrix.shape[0]))) * (chosen.max(initial=0.0) / 10)
        W = np.vstack([chosen, noise.astype(matrix.dtype)])
        H = np.zeros((rank, matrix.shape[1]), dtype=matrix.dtype)
    elif isinstance(init, str) and init not in NAMED_STARTS:
        raise ValueError(f"init must be 'spa-columns' or what hals takes; got {init!r}.")
    else:
        W, H = initial_factors(matrix, rank, init, rng)
        largest = H.sum(axis=0).max() or H.dtype.type(1)
        W, H = W * largest, H / largest
    project_on_simplex(H, sum_to_one)
    descend_on_simplex(H, times(matrix.T, W), W @ W.T, sum_to_one, _FIRST_STEPS, _FIRST_LITTLE)
    return W, H


def _fit(
    matrix: InMemoryMatrix,
    W: Floats,
    H: Floats,
    parameters: tuple[float, float, bool],
    tolerance: float,
    max_iterations: int,
) -> NMFResult:
    gram = W @ W.T
    relative_weight, delta, sum_to_one = parameters
    scale = float(np.trace(gram)) / len(W) or 1.0
    error = 0.5 * matrix.squared_residual(W.T, H)
    problem = _Volume(0.0, delta, scale, sum_to_one, n_sweeps(matrix.n_stored, *matrix.shape, len(W)))
    problem = replace(problem, weight=relative_weight * error / max(1.0, abs(problem.volume(gram))))
    objective = error + problem.weight * problem.volume(gram)
    found = minimize(problem, Factors.of(matrix, W, H), objective, matrix.dtype, tolerance, max_iterations)
    W, H = found.point.W, found.point.H
    squared_error = matrix.squared_residual(W.T, H)
    return found.result(np.ldexp(W.T, matrix.exponent), H, squared_error, matrix.squared_norm, problem.weight)


@dataclass(frozen=True)
class _Volume:
    """The error plus lambda times the logarithm of the volume."""

    weight: float
    """lambda."""
    delta: float
    scale: float
    """s^2."""
    sum_to_one: bool
    sweeps: int

    def shrunk(self, gram: Floats) -> Floats:
        """W'W / s^2 + delta I."""
        return np.asarray(gram / self.scale + self.delta * np.eye(len(gram)), dtype=np.float64)

    def volume(self, gram: Floats) -> float:
        """Its logarithmic determinant."""
        return float(np.linalg.slogdet(self.shrunk(gram))[1])

    def bound(self, gram: Floats) -> Floats:
        """Twice the gradient of lambda times the volume with respect to W'W."""
        inverse = linalg.inv(self.shrunk(gram), check_finite=False)
        symmetric = (inverse + inverse.T) * (self.weight / self.scale)
        return np.asarray(symmetric, dtype=gram.dtype)

    def step(self, now: Factors, before: Factors, momentum: float) -> tuple[Factors, float]:
        gram = now.W @ now.W.T
        H_ahead = extrapolated(now.H, before.H, momentum)
        W = np.maximum(extrapolated(now.W, before.W, momentum), 0)
        target = extrapolated(now.HM, before.HM, momentum)
        descend(W, target, H_ahead @ H_ahead.T + self.bound(gram), self.sweeps, LITTLE)
        WM, new_gram = times(now.matrix.T, W), W @ W.T
        W_ahead = extrapolated(W, now.W, momentum)
        H = H_ahead.copy()
        project_on_simplex(H, self.sum_to_one)
        target = extrapolated(WM, now.WM, momentum)
        descend_on_simplex(H, target, W_ahead @ W_ahead.T, self.sum_to_one, _MAX_STEPS, LITTLE)
        rise = change(now.W, W, now.HM, now.H @ now.H.T) + change(now.H, H, WM, new_gram)
        rise += self.weight * (self.volume(new_gram) - self.volume(gram))
        return Factors(now.matrix, W, H, WM), -rise

    def violation(self, now: Factors, objective: float) -> float:
        gram = now.W @ now.W.T
        squared_error = 2.0 * (objective - self.weight * self.volume(gram))
        squared = squared_violation(now.W, now.HM, now.H @ now.H.T + self.bound(gram))
        trace = gram.dtype.type(max(np.trace(gram), np.finfo(gram.dtype).tiny))
        moved = now.H - (gram @ now.H - now.WM) / trace
        project_on_simplex(moved, self.sum_to_one)
        moved -= now.H
        squared += float(trace) * inner(moved, moved)
        return relative_violation(squared, squared_error, now.matrix.squared_norm)
