r"""The common part of methods that update one factor of M ~ W H with the other fixed.

Both factors are held with their components as rows, W' (r x m) and H (r x n), so that each is the factor X of a
quadratic problem

.. math:: \tfrac12 \langle G, X X^T \rangle - \langle T, X \rangle

where :math:`G = W^T W` and :math:`T = W^T M` for X = H, and :math:`G = H H^T`, :math:`T = H M^T` for X = W'.

Updates start from, and take their products at, factors extrapolated along the last step (Ang and Gillis 2019), which
saves most of the iterations. As all products are linear, those of extrapolated factors cost nothing extra. A step that
does not lower the objective is repeated without extrapolation; such a step cannot raise it, so the objective never
rises. The change of the objective is computed from the change of the factors. The difference of two objective values
would drown in rounding near a solution and in single precision.

References
----------
A. Ang, N. Gillis, Accelerating nonnegative matrix factorization algorithms using extrapolation, Neural Computation
31 (2019), doi:10.1162/neco_a_01157.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.matrix.protocol import Matrix
from gsnmf.nmf.results import NMFResult
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.reasons import StopReason, iteration_reason
from gsnmf.support.warning import warn_caller

_SMALL_RESIDUAL = 1e-3
"""A violation is relative to the residual or, if that is larger, to this fraction of the matrix."""

_ALPHA = 0.5
"""Largest cost of the sweeps, relative to the products they use (Gillis and Glineur 2012)."""

_FIRST_MOMENTUM = 0.5
_GROWTH, _LIMIT_GROWTH, _DECAY = 1.05, 1.01, 1.5
"""Momentum and its limit grow when a step succeeds. When it fails, the limit falls to the momentum, which decays."""

_ROUNDING = 0.01
"""A relative decrease of the objective below this times eps is rounding."""


@dataclass(frozen=True)
class Point:
    """Factors, with their components as rows, and their products with the matrix."""

    W: Floats
    """W', r x m."""
    H: Floats
    """H, r x n."""
    WM: Floats
    """W'M, r x n."""
    HM: Floats
    """H M', r x m."""


Step: TypeAlias = Callable[[Point, Point, float], tuple[Floats, Floats, Floats, float]]
"""From the last point, the one before and the momentum: W, H, W'M, and by how much the objective fell."""


def iterate(
    matrix: Matrix,
    now: Point,
    objective: float,
    *,
    step: Step,
    optimality: Callable[[Point, float], float],
    tolerance: float,
    max_iterations: int,
) -> tuple[Point, Doubles, float, StopReason]:
    """Make steps until a point meets the tolerance.

    Returns the last point, the objective at the start and after each step, the optimality of the last point, and why it
    is the last. A step without momentum must not raise the objective, except by rounding.
    """
    before = now
    momentum, limit = _FIRST_MOMENTUM, 1.0
    objectives = [objective]
    rounding = _ROUNDING * float(np.finfo(matrix.dtype).eps)
    while True:
        violation = optimality(now, objectives[-1])
        reason = iteration_reason(violation, tolerance, len(objectives) - 1, max_iterations)
        if reason is not None:
            break
        W, H, WM, gain = step(now, before, momentum)
        if gain > rounding * abs(objectives[-1]):
            limit = min(1.0, _LIMIT_GROWTH * limit)
            momentum = min(limit, _GROWTH * momentum)
        else:
            limit, momentum = momentum, momentum / _DECAY
            W, H, WM, gain = step(now, now, 0.0)
            reason = StopReason.NO_FURTHER_DECREASE
            if gain <= rounding * abs(objectives[-1]):
                break
        before, now = now, Point(W, H, WM, times(matrix, H))
        objectives.append(objectives[-1] - gain)
    return now, np.array(objectives), violation, reason


def extrapolated(last: Floats, previous: Floats, momentum: float) -> Floats:
    """Extrapolate the step from ``previous`` to ``last``."""
    return last + momentum * (last - previous) if momentum else last


def times(matrix: Matrix, X: Floats) -> Floats:
    """X M' for a factor with components as rows, in C order."""
    return np.ascontiguousarray(matrix.dot(X.T).T)


def n_sweeps(n_stored: int, length: int, other_length: int, rank: int) -> int:
    r"""Most sweeps over a factor: :math:`1 + \alpha (1 + (\mathrm{nnz}(M) + n r) / (m r + m))` for W, m its length."""
    ratio = 1.0 + (n_stored + other_length * rank) / (length * (rank + 1))
    return int(1.0 + _ALPHA * ratio)


def change(X: Floats, new: Floats, target: Floats, gram: Floats) -> float:
    """Change of the objective from X to new; accurate even if tiny, as it is not a difference of two values."""
    step = new - X
    return inner(gram @ X - target, step) + 0.5 * inner(gram @ step, step)


def squared_violation(X: Floats, target: Floats, gram: Floats) -> float:
    """Squared violation of the optimality conditions over X >= 0, for components of unit length."""
    lengths = np.sqrt(np.diagonal(gram))[:, None]
    slope = (gram @ X - target) / np.where(lengths > 0, lengths, 1)
    least = np.minimum(X * lengths, slope)
    return inner(least, least)


def relative_violation(squared: float, squared_error: float, squared_norm: float) -> float:
    """A squared violation relative to the residual, as a dimensionless number."""
    scale = max(squared_error, _SMALL_RESIDUAL**2 * squared_norm)
    return float(np.sqrt(squared / scale)) if scale > 0 else 0.0


def inner(a: Floats, b: Floats) -> float:
    """<a, b>, accumulated in double precision."""
    return float(np.vdot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))


def unit_exponents(exponent: int) -> tuple[int, int]:
    """Powers of two that W and H get when the matrix is held in units of two to the power ``exponent``."""
    return exponent - exponent // 2, exponent // 2


def warn_unless_converged(result: NMFResult, tolerance: float, name: str) -> None:
    """Warn the caller of a public function that the factors did not reach the tolerance."""
    if not result.converged:
        warn_caller(
            f"{name} stopped after {result.n_iterations} iterations ({result.stop_reason}) with an optimality "
            f"violation of {result.optimality:.1e}, above the tolerance {tolerance:.1e}; raise max_iterations or "
            "tolerance.",
            ConvergenceWarning,
        )
