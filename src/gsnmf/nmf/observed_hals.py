r"""Nonnegative matrix factorization on observed entries, by hierarchical alternating least squares.

.. math:: \min_{W \ge 0,\; H \ge 0} \; \tfrac12 \sum_{(i,j) \text{ observed}} w_{ij} (M - W H)_{ij}^2

With one factor fixed, every row of the other is a small quadratic problem with a Gram matrix of its own. Sweeps of
coordinate descent on all of them, first for W and then for H, never raise the objective. The violation of the
optimality conditions is that of `gsnmf.nmf.hals`, with each unknown scaled so that its second derivative is one;
without holes it is the same number.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels.observed_descent import descend_rows
from gsnmf._kernels.observed_entries import residuals
from gsnmf.matrix.observed import Observed
from gsnmf.nmf.alternating import relative_violation
from gsnmf.nmf.results import NMFResult
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.reasons import StopReason, iteration_reason

_SWEEPS = 3
"""Sweeps over each factor per iteration; they cost less than the Gram matrices that they share."""


def observed_start(observed: Observed, rank: int, rng: np.random.Generator) -> tuple[Doubles, Doubles]:
    """Random factors, of shape (m, r) and (n, r), times the number that makes W H closest to the observed entries."""
    W, F = (np.abs(rng.standard_normal((length, rank))) for length in observed.shape)
    fitted = observed.values.data.astype(np.float64) - residuals(observed.entries, W, F)
    weights = observed.relative_weights
    explained = float(np.vdot(fitted, weights * fitted))
    factor = float(np.vdot(fitted, weights * observed.values.data)) / explained if explained > 0 else 0.0
    return W * np.sqrt(factor), F * np.sqrt(factor)


def solve_observed_hals(
    observed: Observed, start: tuple[Floats, Floats], tolerance: float, max_iterations: int
) -> NMFResult:
    """Factors W (m x r) and H', (n x r), from a start of these shapes, until they meet the tolerance."""
    W, F = (np.array(factor, dtype=np.float64, order="C") for factor in start)
    norm = observed.squared_norm
    objective = [_squared_error(observed, W, F)]
    while True:
        before = W.copy(), F.copy()
        violation = float(descend_rows(observed.entries, F, W, 0).sum())
        violation += float(descend_rows(observed.T.entries, W, F, 0).sum())
        optimality = relative_violation(violation, objective[-1], norm)
        reason = iteration_reason(optimality, tolerance, len(objective) - 1, max_iterations)
        if reason is not None:
            break
        descend_rows(observed.entries, F, W, _SWEEPS)
        descend_rows(observed.T.entries, W, F, _SWEEPS)
        reached = _squared_error(observed, W, F)
        if not reached < objective[-1]:
            W, F = before
            reason = StopReason.NO_FURTHER_DECREASE
            break
        objective.append(reached)
    return NMFResult(
        W=W.astype(observed.dtype, copy=False),
        H=np.ascontiguousarray(F.T, dtype=observed.dtype),
        relative_error=float(np.sqrt(objective[-1] / norm)) if norm > 0 else 0.0,
        n_iterations=len(objective) - 1,
        converged=optimality <= tolerance,
        optimality=optimality,
        stop_reason=reason,
        objective=np.array(objective) / (norm if norm > 0 else 1.0),
    )


def _squared_error(observed: Observed, W: Doubles, F: Doubles) -> float:
    return observed.weighted_squares(residuals(observed.entries, W, F))
