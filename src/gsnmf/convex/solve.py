r"""Solve the convex model: alternating directions on a working set, stopped by the duality gap.

The solver keeps the rows of X and the columns of Y in a working set, A the columns and B the rows of M in it, scaled
to unit length. It takes the steps of the alternating direction method of multipliers: weights that are *free* of
constraints,

.. math:: \min_{X, Y} \tfrac12 \|M - A X - Y B\|^2 + \tfrac\rho2 \left( \|X - X_0\|^2 + \|Y - Y_0\|^2 \right),

then *feasible* ones by the penalty's `shrink`, row by row, then the multipliers of the difference, which make
:math:`X_0, Y_0` for the next step. The first problem couples X and Y, and the columns of M are often almost parallel
(faces, say), which is what makes gradient methods slow; but in the eigenvectors of A'A and BB' it is solved exactly by
dividing numbers:

.. math:: E + (A A^T E + E B^T B) / \rho = M - A X_0 - Y_0 B \quad\text{for the residual } E.

The residual of the free weights is also the better dual point: its scores violate the dual constraints only by as much
as the last step moved the feasible weights. They say which columns and rows to add, and when to stop. Memory is
O(k (m + n)) for a working set of size k, against n^2 + m^2 for the whole of X and Y.

Accelerated proximal gradient steps on the same working set cost half as much each, but about ten times as many are
needed; block coordinate descent needs as many sweeps, which cannot be matrix products. Anderson acceleration with five
steps of memory saves a tenth to a quarter of the time, and doubles the memory. Single precision saves a third, but does
not always reach a gap of 1e-2.

References
----------
S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein, Distributed optimization and statistical learning via the
alternating direction method of multipliers, Found. Trends Mach. Learn. 3 (2011), doi:10.1561/2200000016.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf._parallel import single_threaded_blas
from gsnmf.convex.model import ConvexModel, ConvexSolution, Side, Start
from gsnmf.convex.penalties import PENALTIES
from gsnmf.matrix import InMemoryMatrix, Matrix, wrap_in_memory
from gsnmf.matrix.protocol import Residual
from gsnmf.matrix.validation import check_count, check_positive, check_rank
from gsnmf.support.arrays import COLUMNS_ALONE, COLUMNS_AND_ROWS, Axes, Floats, Indices
from gsnmf.support.reasons import StopReason
from gsnmf.support.warning import warn_caller

_log = logging.getLogger(__name__)

SELECTION_GAP = 1e-2
"""Default relative duality gap: selections do not change below it."""
_RELAXATION = 1.9
"""Over-relaxation of the steps, which converge for any number in (0, 2)."""
_STIFFNESS = 0.5
"""The first rho. It is dimensionless because columns have unit length."""
_IMBALANCE = 3.0
"""rho changes if one of its two violations is more than this many times the other."""
_CHECK = 5
"""Steps between two checks of the gap over the working set."""
_MAX_STEPS = 100
"""Steps on one working set before it is revised."""
_FEWEST_ADDED = 20
"""Smallest number of columns and rows added at a time, as long as so many help."""
_POOL, _SMALLEST_POOL = 3, 500
"""How many columns and rows are scored between full scorings: for each one in the working set, and at least."""
_TINY = float(np.finfo(np.float64).tiny)
_ARRAYS = 9
"""Arrays of k x n numbers, for a working set of k columns, that a step needs."""
DEFAULT_MEMORY = 2 << 30
"""Bytes that the working set may take by default."""


def solve_convex(
    matrix: Any,
    rank: int,
    *,
    relative_strength: float = 1.0,
    noise: float | None = None,
    penalty: str = "trace",
    axes: Axes = COLUMNS_AND_ROWS,
    tolerance: float = SELECTION_GAP,
    max_iterations: int = 5000,
    memory: int = DEFAULT_MEMORY,
) -> ConvexSolution:
    r"""Solve the convex model of generalized separable NMF with a certificate of optimality.

    .. math:: \min_{X, Y} \tfrac12 \|M - M X - Y M\|_F^2 + \lambda (\Phi(X) + \Phi(Y^T))

    Parameters
    ----------
    matrix : array-like or sparse, shape (m, n)
        Nonnegative.
    rank : int
        Size of the selection that the start and lambda are made for.
    relative_strength : float
        lambda~; see `gsnmf.convex.model`. Smaller values explain more with more columns and rows.
    noise : float, optional
        Instead of ``relative_strength``: the level that ||M - M X - Y M||_F / ||M||_F must meet (equation e4 of the
        paper). lambda is then found by bisection.
    penalty : {"trace", "group-2", "group-inf"}
        See `gsnmf.convex.penalties`.
    axes : ("columns", "rows") or ("columns",)
        What may be chosen. Columns alone are the model of separable NMF.
    tolerance : float
        Relative duality gap to reach.
    max_iterations : int
        Limit on the steps of the solver.
    memory : int
        Bytes that the working set may take.

    Returns
    -------
    ConvexSolution

    Examples
    --------
    >>> from gsnmf.convex import solve_convex
    >>> from gsnmf.datasets import fully_random
    >>> data = fully_random(0.05, shape=(40, 50), n_columns=3, n_rows=2, random_state=0)
    >>> solution = solve_convex(data.matrix, 5)
    >>> 0 <= solution.gap <= 0.01
    True
    """
    checked = wrap_in_memory(matrix)
    size = check_rank(rank, checked.shape)
    if axes not in (COLUMNS_AND_ROWS, COLUMNS_ALONE):
        raise ValueError(f"axes must be {COLUMNS_AND_ROWS} or {COLUMNS_ALONE}; got {axes!r}.")
    if penalty not in PENALTIES:
        raise ValueError(f"penalty must be one of {', '.join(PENALTIES)}; got {penalty!r}.")
    gap = check_positive(tolerance, "tolerance")
    relative = check_positive(relative_strength, "relative_strength")
    start = Start.of(checked, size, axes)
    solver = WorkingSetSolver(
        checked,
        start,
        axes=axes,
        memory=check_count(memory, "memory"),
        max_iterations=check_count(max_iterations, "max_iterations"),
    )

    def solve(strength: float) -> ConvexSolution:
        return solver.solve(ConvexModel(checked, strength, PENALTIES[penalty], axes), gap)

    if noise is None:
        solution = solve(start.strength(relative, size))
    else:
        solution = _meet_noise(solve, check_positive(noise, "noise"), checked, start.strength(10.0, size))
    _warn(solution, checked, start, gap, size)
    return _in_unit(solution, checked.exponent)


class WorkingSetSolver:
    """Solves the model for one lambda after another, each from the previous solution, sharing all products."""

    def __init__(
        self,
        matrix: InMemoryMatrix,
        start: Start | None = None,
        *,
        axes: Axes = COLUMNS_AND_ROWS,
        memory: int = DEFAULT_MEMORY,
        max_iterations: int = 5000,
    ) -> None:
        self.columns, self.rows = Side(matrix), Side(matrix.T)
        self.axes = axes
        self.matrix = matrix
        self._score_memory = max(1 << 24, min(1 << 28, memory // 4))
        self.max_iterations = max_iterations
        self.stiffness = _STIFFNESS
        self._strength = 0.0
        m, n = matrix.shape
        self.max_size = max(2, int(memory // (8 * _ARRAYS * (m + n))))
        if start is not None:
            self.columns.extend(start.columns, start.X)
            if "rows" in axes:
                self.rows.extend(start.rows, np.ascontiguousarray(start.Y.T))

    def copy(self) -> WorkingSetSolver:
        """The same state, to go on from later."""
        other = copy.copy(self)
        other.columns, other.rows = self.columns.copy(), self.rows.copy()
        return other

    def solve(self, model: ConvexModel, tolerance: float) -> ConvexSolution:
        """Minimise to a relative duality gap of ``tolerance``."""
        with single_threaded_blas():
            return self._solve(model, tolerance)

    def _solve(self, model: ConvexModel, tolerance: float) -> ConvexSolution:
        self._adapt(model.strength)
        n_steps, lower, gap = 0, 0.0, 1.0
        pools: tuple[Indices, Indices] | None = None
        while True:
            n_steps += self._descend(model, max(0.7 * tolerance, 0.3 * gap))
            free = self._residual(self.columns.free, self.rows.free)
            fitted = self._residual(self.columns.X, self.rows.X)
            objective = 0.5 * fitted.squared_norm + model.strength * self._penalty_value(model)
            if pools is not None and n_steps < self.max_iterations:
                scores = model.scores(free, self._score_memory, pools)
                gap = _relative_gap(objective, model.dual_bound(free, scores))  # as if there were nothing else
                if gap > tolerance and self._exchange(model, scores, free) >= _FEWEST_ADDED:
                    continue
            scores = model.scores(free, self._score_memory)
            lower = max(lower, model.dual_bound(free, scores))
            gap = _relative_gap(objective, lower)
            _log.info("steps %d, working set %d + %d, gap %.2e", n_steps, *self._sizes(), gap)
            if gap <= tolerance:
                reason = StopReason.TOLERANCE_REACHED
            elif n_steps >= self.max_iterations:
                reason = StopReason.MAX_ITERATIONS_REACHED
            elif self._exchange(model, scores, free) == 0 and sum(self._sizes()) >= self.max_size:
                reason = StopReason.MEMORY_EXCEEDED
            else:
                pools = self._pools(scores)
                continue
            return self._solution(model, objective, lower, fitted, n_steps, reason)

    def _pools(self, scores: tuple[Floats, Floats]) -> tuple[Indices, Indices]:
        """The working set and the most promising of the others: scoring these is much faster than scoring all."""
        everything = np.concatenate(scores)
        size = min(everything.size, max(_SMALLEST_POOL, _POOL * sum(self._sizes())))
        best = np.argpartition(-everything, size - 1)[:size]
        n = scores[0].size
        return np.union1d(best[best < n], self.columns.indices), np.union1d(best[best >= n] - n, self.rows.indices)

    def _adapt(self, strength: float) -> None:
        """Rescale the multipliers from the previous lambda to this one: they are roughly proportional to it."""
        factor = math.sqrt(strength / self._strength) if self._strength else 1.0
        self._strength = strength
        self.stiffness *= factor
        for side in self._chosen_from:
            side.dual *= factor

    @property
    def _chosen_from(self) -> list[Side]:
        return [self.columns, self.rows] if "rows" in self.axes else [self.columns]

    def _sizes(self) -> tuple[int, int]:
        return self.columns.indices.size, self.rows.indices.size

    def _residual(self, X: Floats, Y: Floats) -> Residual:
        return self.matrix.residual(np.hstack([self.columns.vectors.T, Y.T]), np.vstack([X, self.rows.vectors]))

    def _penalty_value(self, model: ConvexModel) -> float:
        return sum(model.penalty.value(side.unscaled, side.indices) for side in self._chosen_from)

    def _descend(self, model: ConvexModel, tolerance: float) -> int:
        """Step until the gap over the working set is below ``tolerance``; return the number of steps."""
        pair = (self.columns, self.rows)
        self._prepare()
        for n_steps in range(1, _MAX_STEPS + 1):
            self._free_weights()
            before = [side.X for side in pair]
            for side in pair:
                side.X, side.dual = self._feasible(model, side)
            if n_steps % _CHECK == 0:
                objective, lower = self._evaluate(model)
                if objective - lower <= tolerance * objective:
                    break
                self._balance(before)
        return n_steps

    def _prepare(self) -> None:
        self.columns.prepare(self.rows, self.stiffness)
        self.rows.prepare(self.columns, self.stiffness)

    def _free_weights(self) -> None:
        """The minimiser without constraints, near X minus the multiplier."""
        one, two = self.columns, self.rows
        near_one, near_two = one.X - one.dual, two.X - two.dual
        in_one = one.rotation.T @ (near_one @ two.basis.T)
        in_two = two.rotation.T @ (near_two @ one.basis.T)
        one.free_weights(two, near_one, in_one, in_two, self.stiffness)
        two.free_weights(one, near_two, in_two, in_one, self.stiffness)

    def _feasible(self, model: ConvexModel, side: Side) -> tuple[Floats, Floats]:
        """The relaxed penalty step from the free weights, and the new multiplier, which is what the step removed."""
        extrapolated = _RELAXATION * side.free + (1.0 - _RELAXATION) * side.X + side.dual
        X = self._shrink(model, side, extrapolated)
        extrapolated -= X
        return X, extrapolated

    def _shrink(self, model: ConvexModel, side: Side, extrapolated: Floats) -> Floats:
        X = extrapolated / side.lengths[:, None]
        thresholds = model.strength / (self.stiffness * side.lengths**2)
        model.penalty.shrink(X, thresholds, side.indices, side.weights)
        X *= side.lengths[:, None]
        return X

    def _evaluate(self, model: ConvexModel) -> tuple[float, float]:
        """Objective of the feasible weights, and lower bound on the optimum over the working set."""
        squared_norm = inner = dual_norm = self.matrix.squared_norm
        scores = []
        pair = (self.columns, self.rows)
        for side, other in zip(pair, pair[::-1], strict=True):
            squared_norm -= float(np.vdot(side.products, side.X)) + float(np.vdot(side.gradient(other), side.X))
            inner -= float(np.vdot(side.products, side.free))
            dual_norm -= float(np.vdot(side.products, side.free)) + float(np.vdot(side.slopes, side.free))
            slopes = side.slopes * side.lengths[:, None]
            scores.append(model.penalty.scores(slopes, side.indices, side.weights))
        objective = 0.5 * max(0.0, squared_norm) + model.strength * self._penalty_value(model)
        return objective, model.penalty.dual_bound(np.concatenate(scores), inner, dual_norm, model.strength)

    def _balance(self, before: list[Floats]) -> None:
        """Change rho where the constraint and the optimality of the feasible weights are far from equally violated.

        Each violation is relative to the terms of its difference (Wohlberg 2017).
        """
        pair = (self.columns, self.rows)
        disagreement = _size(side.free - side.X for side in pair) / _size(side.X for side in pair)
        moved = _size(side.X - X for side, X in zip(pair, before, strict=True)) / _size(side.dual for side in pair)
        if disagreement > _IMBALANCE * moved:
            factor = 2.0
        elif moved > _IMBALANCE * disagreement:
            factor = 0.5
        else:
            return
        self.stiffness *= factor
        self._prepare()
        for side in (self.columns, self.rows):
            side.dual /= factor

    def _exchange(self, model: ConvexModel, scores: tuple[Floats, Floats], residual: Residual) -> int:
        """Drop what is zero and not needed, add the most promising by score; return how many were added."""
        excess = np.concatenate(scores) - model.strength
        n = self.columns.matrix.shape[1]
        for side, offset in zip(self._chosen_from, (0, n), strict=False):
            side.keep(side.X.any(axis=1) | (excess[offset + side.indices] > 0))
            excess[offset + side.indices] = -np.inf
        size = sum(self._sizes())
        limit = min(max(_FEWEST_ADDED, size // 2), self.max_size - size)
        best = np.argsort(-excess, kind="stable")[: max(0, limit)]
        best = best[excess[best] > 0]
        self._add(model, self.columns, best[best < n], residual)
        self._add(model, self.rows, best[best >= n] - n, residual.T)
        return int(best.size)

    def _add(self, model: ConvexModel, side: Side, indices: Indices, residual: Residual) -> None:
        """Add columns with zero weights, and the multiplier that belongs to the residual."""
        if indices.size == 0:
            return
        size = side.indices.size
        side.extend(indices)
        extrapolated = np.zeros_like(side.X)
        extrapolated[size:] = residual.cross(indices) / (self.stiffness * side.lengths[size:, None])
        extrapolated -= self._shrink(model, side, extrapolated)
        side.dual += extrapolated

    def _solution(
        self, model: ConvexModel, objective: float, lower: float, residual: Residual, n_steps: int, reason: StopReason
    ) -> ConvexSolution:
        columns, rows = (side.X.any(axis=1) for side in (self.columns, self.rows))
        return ConvexSolution(
            columns=self.columns.indices[columns],
            rows=self.rows.indices[rows],
            X=self.columns.unscaled[columns],
            Y=np.ascontiguousarray(self.rows.unscaled[rows].T),
            strength=model.strength,
            objective=objective,
            lower_bound=lower,
            residual_norm=float(np.sqrt(residual.squared_norm)),
            n_iterations=n_steps,
            converged=reason == StopReason.TOLERANCE_REACHED,
            stop_reason=reason,
        )


def _meet_noise(
    solve: Callable[[float], ConvexSolution], noise: float, matrix: Matrix, strength: float
) -> ConvexSolution:
    """The largest lambda, within a few percent, whose solution meets the noise level."""
    target = noise * math.sqrt(matrix.squared_norm)
    solution = solve(strength)
    lower, upper = (strength, math.inf) if solution.residual_norm <= target else (0.0, strength)
    while upper == math.inf or lower == 0.0 or upper > 1.05 * lower:
        bracketed = math.sqrt(lower * upper) if lower else upper / 4.0
        strength = 4.0 * lower if upper == math.inf else bracketed
        trial = solve(strength)
        if trial.residual_norm <= target:
            solution, lower = trial, strength
        else:
            upper = strength
        if strength > 1e3 * matrix.squared_norm or strength < 1e-14 * matrix.squared_norm:
            solution = trial
            break
    if solution.residual_norm > target:
        warn_caller(
            f"No lambda meets noise={noise:.3g}: the smallest tried, {solution.strength:.3g}, leaves "
            f"{noise * solution.residual_norm / target:.3g}; ask for more noise, or raise max_iterations.",
            ConvergenceWarning,
        )
    return solution


def _in_unit(solution: ConvexSolution, exponent: int) -> ConvexSolution:
    """Convert the solution from the unit in which the matrix is held (`Matrix.exponent`) to that of the data."""
    if exponent == 0:
        return solution
    exponents = {"strength": 2, "objective": 2, "lower_bound": 2, "residual_norm": 1}
    with np.errstate(over="ignore", under="ignore"):
        values: dict[str, Any] = {
            name: float(np.ldexp(getattr(solution, name), power * exponent)) for name, power in exponents.items()
        }
    return replace(solution, **values)


def _warn(solution: ConvexSolution, matrix: Matrix, start: Start, tolerance: float, rank: int) -> None:
    if not solution.converged:
        warn_caller(
            f"The convex model stopped at a relative gap of {solution.gap:.1e}, above the tolerance {tolerance:.1e} "
            f"({solution.stop_reason}); raise tolerance, max_iterations or memory.",
            ConvergenceWarning,
        )
    if rank < min(matrix.shape) and solution.is_trivial:
        better = 4.0 * max(solution.strength, start.squared_error / min(matrix.shape))
        warn_caller(
            f"lambda = {solution.strength:.3g} is so small that the solution is about a multiple of the identity, "
            f"which explains every matrix; try lambda = {better:.3g} (relative_strength times "
            f"{better / solution.strength:.3g}).",
            RuntimeWarning,
        )


def _relative_gap(objective: float, lower: float) -> float:
    return (objective - lower) / objective if objective > 0 else 0.0


def _size(parts: Iterable[Floats]) -> float:
    return math.sqrt(max(sum(float(np.vdot(part, part)) for part in parts), _TINY))
