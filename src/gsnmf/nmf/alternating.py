r"""The loop of factorizations that update one factor of M ~ W H with the other fixed, and what they return.

Updates start from, and take their products at, factors extrapolated along the last step (Ang and Gillis 2019), which
saves most of the iterations. As all products are linear, those of extrapolated factors cost nothing extra. A step that
does not lower the objective is repeated without extrapolation; such a step cannot raise it, so the objective never
rises.

References
----------
A. Ang, N. Gillis, Accelerating nonnegative matrix factorization algorithms using extrapolation, Neural Computation
31 (2019), doi:10.1162/neco_a_01157.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.matrix.protocol import Matrix
from gsnmf.nmf.low_rank import LowRankResult
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.progress import logger
from gsnmf.support.reasons import StopReason, iteration_reason
from gsnmf.support.warning import warn_caller

LITTLE = 0.1
"""Sweeps end when one moves less than this fraction of the first (epsilon of Gillis and Glineur 2012)."""
_ALPHA = 0.5
"""Largest cost of the sweeps, relative to the products they use (Gillis and Glineur 2012)."""

_FIRST_MOMENTUM = 0.5
_GROWTH, _LIMIT_GROWTH, _DECAY = 1.05, 1.01, 1.5
"""Momentum and its limit grow when a step succeeds. When it fails, the limit falls to the momentum, which decays."""
_ROUNDING = 0.01
"""A relative decrease of the objective below this times eps is rounding."""
_SMALL_RESIDUAL = 1e-3
"""A violation is relative to the residual or, if that is larger, to this fraction of the matrix."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NMFResult(LowRankResult):
    """A nonnegative factorization M ~ W H.

    Attributes
    ----------
    optimality : float
        Relative violation of the optimality conditions, as the function that made the result defines it.
    stop_reason : StopReason
        ``"tolerance reached"``, ``"max_iterations reached"``, or ``"no further decrease"`` if the objective has stopped
        falling because of rounding.
    objective : array of length n_iterations + 1
        The objective at the start and after each iteration, divided by ||M||_F^2 / 2. It never rises. Each value is
        the one before plus the change, computed from the change of the factors; so values far below the first one
        carry the rounding of the first one, while ``relative_error`` does not.
    weight : float
        Weight of the volume in the objective of `gsnmf.nmf.minimum_volume`, divided by ||M||_F^2; otherwise zero.

    Examples
    --------
    >>> from gsnmf.nmf import hals
    >>> result = hals([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> result.W.shape, result.H.shape
    ((3, 2), (2, 3))
    >>> bool(result.objective[-1] <= result.objective[0])
    True
    """

    optimality: float
    stop_reason: StopReason
    objective: Doubles
    weight: float = 0.0


Point = TypeVar("Point")
Array = TypeVar("Array", Doubles, Floats)


class Alternation(Protocol[Point]):
    """What differs between the factorizations that `minimize` computes."""

    def step(self, now: Point, before: Point, momentum: float) -> tuple[Point, float]:
        """Update both factors, extrapolated from the last two points; returns them and by how much the objective fell.

        Without momentum the objective must not rise, except by rounding.
        """

    def violation(self, now: Point, objective: float) -> float:
        """Relative violation of the optimality conditions."""


@dataclass(frozen=True)
class Descent(Generic[Point]):
    """The last point, the objective at the start and after each step, the last violation, and why it ended."""

    point: Point
    objective: Doubles
    optimality: float
    stop_reason: StopReason
    converged: bool

    def result(self, W: Floats, H: Floats, squared_error: float, squared_norm: float, weight: float = 0.0) -> NMFResult:
        """The result with these factors; its objective and ``weight`` are relative to the matrix."""
        unit = squared_norm if squared_norm > 0 else 1.0
        return NMFResult(
            W=W,
            H=H,
            relative_error=math.sqrt(squared_error / unit) if squared_norm > 0 else 0.0,
            n_iterations=self.objective.size - 1,
            converged=self.converged,
            optimality=self.optimality,
            stop_reason=self.stop_reason,
            objective=self.objective * (2.0 / unit),
            weight=weight / unit,
        )


def minimize(
    problem: Alternation[Point], start: Point, objective: float, dtype: Any, tolerance: float, max_iterations: int
) -> Descent[Point]:
    """Make steps from a start with this objective until a point meets the tolerance."""
    before = now = start
    momentum, limit = _FIRST_MOMENTUM, 1.0
    objectives, violations = [objective], list[float]()
    rounding = _ROUNDING * float(np.finfo(dtype).eps)
    while True:
        violations.append(problem.violation(now, objectives[-1]))
        _log_progress(violations, tolerance, max_iterations)
        reason = iteration_reason(violations[-1], tolerance, len(objectives) - 1, max_iterations)
        if reason is not None:
            break
        least = rounding * abs(objectives[-1])
        new, gain = problem.step(now, before, momentum)
        if gain > least:
            limit = min(1.0, _LIMIT_GROWTH * limit)
            momentum = min(limit, _GROWTH * momentum)
        else:
            limit, momentum = momentum, momentum / _DECAY
            new, gain = problem.step(now, now, 0.0)
            if gain <= least:
                reason = StopReason.NO_FURTHER_DECREASE
                break
        before, now = now, new
        objectives.append(objectives[-1] - gain)
    return Descent(now, np.array(objectives), violations[-1], reason, violations[-1] <= tolerance)


def _log_progress(violations: list[float], tolerance: float, max_iterations: int) -> None:
    """Log how much of the way from the first violation to the tolerance is done, on a logarithmic scale."""
    n_iterations, first, last = len(violations) - 1, violations[0], violations[-1]
    if n_iterations and logger.isEnabledFor(logging.INFO):
        done = math.log(first / max(last, tolerance)) / math.log(first / tolerance)
        fraction = min(1.0, max(0.0, done, n_iterations / max_iterations))
        logger.info("iteration %d: violation %.1e", n_iterations, last, extra={"fraction": fraction})


@dataclass(frozen=True)
class Factors:
    """Factors with their components as rows, and their products with the matrix.

    Each factor X is then the unknown of a quadratic problem <G, X X'> / 2 - <T, X>, with G = W'W and T = W'M for X = H,
    and G = H H' and T = H M' for X = W'.
    """

    matrix: Matrix
    W: Floats
    """W', r x m."""
    H: Floats
    """H, r x n."""
    WM: Floats
    """W'M, r x n."""

    @cached_property
    def HM(self) -> Floats:
        """H M', r x m; not computed for a step that is rejected."""
        return times(self.matrix, self.H)

    @classmethod
    def of(cls, matrix: Matrix, W: Floats, H: Floats) -> Factors:
        """The factors with their first product."""
        return cls(matrix, W, H, times(matrix.T, W))


def extrapolated(last: Array, previous: Array, momentum: float) -> Array:
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
    """Change of the objective from X to new, computed from the change of the factor.

    The difference of two objective values would be lost in rounding near a solution, and in single precision.
    """
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
    return math.sqrt(squared / scale) if scale > 0 else 0.0


def inner(a: Floats, b: Floats) -> float:
    """<a, b>, accumulated in double precision."""
    return float(np.vdot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))


def warn_unless_converged(result: NMFResult, tolerance: float, name: str) -> None:
    """Warn the caller of a public function that the factors did not reach the tolerance."""
    if not result.converged:
        warn_caller(
            f"{name} stopped after {result.n_iterations} iterations ({result.stop_reason}) with an optimality "
            f"violation of {result.optimality:.1e}, above the tolerance {tolerance:.1e}; raise max_iterations or "
            "tolerance.",
            ConvergenceWarning,
        )
