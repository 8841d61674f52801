r"""The convex model from a matrix to a solution.

As in the paper, a dimensionless number sets the strength lambda of the penalty,

.. math:: \lambda = \tilde\lambda \, \|M - M X_0 - Y_0 M\|_F^2 / (2 r),

with the columns and rows of GSPA and their weights as the start (X0, Y0). Alternatively, a noise level can be given
that the solution must meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.convex.model import ConvexModel
from gsnmf.convex.penalties import PENALTIES
from gsnmf.convex.working_set import DEFAULT_MEMORY, WorkingSetSolver
from gsnmf.matrix import InMemoryMatrix, Matrix, wrap_in_memory
from gsnmf.matrix.checks import check_count, check_positive, check_rank
from gsnmf.results import ConvexSolution, Selection
from gsnmf.selection.successive_projection import generalized_successive_projection, successive_projection
from gsnmf.support.arrays import COLUMNS_ALONE, COLUMNS_AND_ROWS, Axes, Floats, Indices
from gsnmf.support.warning import warn_caller
from gsnmf.weights import solve_weights

SELECTION_GAP = 1e-2
_SMALLEST_ERROR = 1e-4
"""Smallest relative error for which lambda is computed; a smaller one would drown in rounding."""


@dataclass(frozen=True)
class Start:
    """Columns and rows of a fast method, their weights, and the error that they leave."""

    columns: Indices
    rows: Indices
    X: Floats
    Y: Floats
    relative_error: float
    squared_norm: float

    @classmethod
    def of(cls, matrix: InMemoryMatrix, rank: int, axes: Axes, known: Selection | None = None) -> Start:
        """GSPA, or SPA if only one axis may be chosen from, and its weights; ``known`` is its selection, if known."""
        choose = generalized_successive_projection if "rows" in axes else _columns_only
        selection = choose(matrix, rank) if known is None else known
        weights = solve_weights(matrix, selection.columns, selection.rows)
        return cls(
            columns=selection.columns,
            rows=selection.rows,
            X=weights.column_weights.astype(np.float64),
            Y=weights.row_weights.astype(np.float64),
            relative_error=weights.relative_error,
            squared_norm=matrix.squared_norm,
        )

    @property
    def squared_error(self) -> float:
        """The residual of the start, or the smallest one that a lambda can be computed for."""
        return max(self.relative_error, _SMALLEST_ERROR) ** 2 * self.squared_norm

    def strength(self, relative: float, rank: int) -> float:
        """The lambda of a lambda~; positive unless the matrix is zero."""
        return relative * self.squared_error / (2 * rank)


def _columns_only(matrix: InMemoryMatrix, rank: int) -> Selection:
    return successive_projection(matrix, rank, axis="columns")


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
        lambda~; see `gsnmf.convex.solve`. Smaller values explain more with more columns and rows.
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
    solver = started_solver(
        checked, start, axes, check_count(memory, "memory"), check_count(max_iterations, "max_iterations")
    )

    def solve(strength: float) -> ConvexSolution:
        return solver.solve(ConvexModel(checked, strength, PENALTIES[penalty], axes), gap)

    if noise is None:
        solution = solve(start.strength(relative, size))
    else:
        solution = _meet_noise(solve, check_positive(noise, "noise"), checked, start.strength(10.0, size))
    _warn(solution, checked, start, gap, size)
    return _in_unit(solution, checked.exponent)


def started_solver(
    matrix: InMemoryMatrix, start: Start, axes: Axes, memory: int, max_iterations: int
) -> WorkingSetSolver:
    """A solver that begins with the columns, rows and weights of a start."""
    solver = WorkingSetSolver(matrix, axes=axes, memory=memory, max_iterations=max_iterations)
    solver.start(start.columns, start.rows, start.X, np.ascontiguousarray(start.Y.T))
    return solver


def is_trivial(solution: ConvexSolution, shape: tuple[int, int]) -> bool:
    """Whether X is about a I and Y about (1 - a) I: such a solution explains every matrix and says nothing."""
    m, n = shape
    a, b = solution.column_diagonal.sum() / n, solution.row_diagonal.sum() / m
    if a + b < 0.95:
        return False
    off_diagonal = np.sum(solution.X**2) + np.sum(solution.Y**2)
    on_diagonal = np.sum(solution.column_diagonal**2) + np.sum(solution.row_diagonal**2)
    return bool(off_diagonal - on_diagonal < 0.05 * on_diagonal)


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
    with np.errstate(over="ignore", under="ignore"):
        return replace(
            solution,
            strength=float(np.ldexp(solution.strength, 2 * exponent)),
            objective=float(np.ldexp(solution.objective, 2 * exponent)),
            lower_bound=float(np.ldexp(solution.lower_bound, 2 * exponent)),
            residual_norm=float(np.ldexp(solution.residual_norm, exponent)),
        )


def _warn(solution: ConvexSolution, matrix: Matrix, start: Start, tolerance: float, rank: int) -> None:
    if not solution.converged:
        warn_caller(
            f"The convex model stopped at a relative gap of {solution.gap:.1e}, above the tolerance {tolerance:.1e} "
            f"({solution.stop_reason}); raise tolerance, max_iterations or memory.",
            ConvergenceWarning,
        )
    if rank < min(matrix.shape) and is_trivial(solution, matrix.shape):
        better = 4.0 * max(solution.strength, start.squared_error / min(matrix.shape))
        warn_caller(
            f"lambda = {solution.strength:.3g} is so small that the solution is about a multiple of the identity, "
            f"which explains every matrix; try lambda = {better:.3g} (relative_strength times "
            f"{better / solution.strength:.3g}).",
            RuntimeWarning,
        )
