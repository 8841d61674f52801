r"""The convex model from a matrix to a solution, and from a path of solutions to the best selection.

The strength lambda of the penalty is given as in the paper by a number without a unit,

.. math:: \lambda = \tilde\lambda \, \|M - M X_0 - Y_0 M\|_F^2 / (2 r),

with the columns and rows of GSPA and their weights as the start (X0, Y0). On real data no one value is best: the paper
tries ten in [1e-3, 10] and keeps the selection with the smallest true error, and so does `convex_selection`, from large
to small, each from the solution before. It goes along them with a wide gap, ends where the solution spends more than
the rank (trace X + trace Y counts columns and rows), and solves the best of them again to the gap asked for.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.convex.fast_gradient import fast_gradient, memory_needed
from gsnmf.convex.model import ConvexModel
from gsnmf.convex.penalties import PENALTIES, TRACE, Penalty
from gsnmf.convex.postprocess import by_importance, completed, largest_diagonal, largest_of_both, settle_ties
from gsnmf.convex.working_set import DEFAULT_MEMORY, WorkingSetSolver
from gsnmf.products import Products, products
from gsnmf.results import ConvexSolution, Selection
from gsnmf.selection.successive_projection import generalized_successive_projection, successive_projection
from gsnmf.validation import Floats, Indices, check_count, check_matrix, check_positive, check_rank
from gsnmf.weights import solve_weights

PATH = tuple(float(value) for value in np.logspace(1, -3, 10))
"""The paper's ten values of lambda~, from the largest."""

SELECTION_GAP = 1e-2
_PATH_GAP = 3e-2
"""Gap along the path, where solutions are only ranked by the selections that they lead to."""
_RANKING = 1e-3
"""Tolerance on the weights of selections that are ranked."""
_EXACT_FIT = 1e-6
_SMALLEST_ERROR = 1e-4
"""Relative error that lambda is made for where the start leaves less: a smaller one would drown in rounding."""
_GIVEN_SIZES = 0.5
"""lambda~ where the numbers of columns and of rows are given."""
_PATIENCE = 2
"""Values of lambda~ without a better selection before the path ends."""


@dataclass(frozen=True)
class _Start:
    """Columns and rows of a fast method, their weights, and the error that they leave."""

    columns: Indices
    rows: Indices
    X: Floats
    Y: Floats
    relative_error: float
    squared_norm: float

    @classmethod
    def of(cls, matrix: Products, rank: int, with_rows: bool) -> _Start:
        choose = generalized_successive_projection if with_rows else _columns_only
        selection = choose(matrix, rank)
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
        return max(self.relative_error, _SMALLEST_ERROR) ** 2 * self.squared_norm

    def strength(self, relative: float, rank: int) -> float:
        """The lambda of a lambda~; positive unless the matrix is zero."""
        return relative * self.squared_error / (2 * rank)


def _columns_only(matrix: Products, rank: int) -> Selection:
    return successive_projection(matrix, rank, axis="columns")


def solve_convex(
    matrix: Any,
    rank: int,
    *,
    relative_strength: float = 1.0,
    noise: float | None = None,
    penalty: str = "trace",
    with_rows: bool = True,
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
        Instead of ``relative_strength``: the level that ||M - M X - Y M||_F / ||M||_F is to meet (equation e4 of the
        paper). lambda is then found by bisection.
    penalty : {"trace", "group-2", "group-inf"}
        See `gsnmf.convex.penalties`.
    with_rows : bool
        Whether rows may be chosen too. Without, it is the model of separable NMF.
    tolerance : float
        Relative duality gap to reach.
    max_iterations : int
        Limit on gradient steps.
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
    checked = products(check_matrix(matrix))
    size = check_rank(rank, checked.shape)
    if penalty not in PENALTIES:
        raise ValueError(f"penalty must be one of {', '.join(PENALTIES)}; got {penalty!r}.")
    gap = check_positive(tolerance, "tolerance")
    relative = check_positive(relative_strength, "relative_strength")
    start = _Start.of(checked, size, with_rows)
    solver = _solver(
        checked, start, with_rows, check_count(memory, "memory"), check_count(max_iterations, "max_iterations")
    )

    def solve(strength: float) -> ConvexSolution:
        return solver.solve(ConvexModel(checked, strength, PENALTIES[penalty], with_rows), gap)

    if noise is None:
        solution = solve(start.strength(relative, size))
    else:
        solution = _meet_noise(solve, check_positive(noise, "noise"), checked, start.strength(10.0, size))
    _warn(solution, checked, start, gap, size)
    return _in_unit(solution, checked.exponent)


def convex_selection(
    matrix: Products,
    rank: int | tuple[int, int],
    *,
    penalty: Penalty = TRACE,
    with_rows: bool = True,
    method: str = "convex",
    tolerance: float = SELECTION_GAP,
    memory: int = DEFAULT_MEMORY,
) -> Selection:
    """Columns and rows by the convex model.

    With a pair (n_columns, n_rows): those of the largest diagonal entries for lambda~ = 0.5, ties settled by the true
    error. With one number: in order of importance or by the largest of both diagonals (`gsnmf.convex.postprocess`), the
    best by the true error along a descending path of lambda~.
    """
    size = rank if isinstance(rank, int) else sum(rank)
    start = _Start.of(matrix, size, with_rows)
    solver = _solver(matrix, start, with_rows, memory, 2000)

    def model(relative: float) -> ConvexModel:
        return ConvexModel(matrix, start.strength(relative, size), penalty, with_rows)

    if isinstance(rank, int):
        return _best_along_path(solver, model, rank, start, method, tolerance)
    solution = solver.solve(model(_GIVEN_SIZES), tolerance)
    return _completed(settle_ties(largest_diagonal(solution, *rank, method), solution, matrix), rank, matrix, start)


def fast_gradient_selection(
    matrix: Products,
    rank: int | tuple[int, int],
    *,
    with_rows: bool = True,
    method: str = "gs-fgm",
    as_printed: bool = False,
) -> Selection:
    """GS-FGM, or FGNSR without rows, by the paper's protocol.

    With a pair (n_columns, n_rows): lambda~ = 0.25, tolerance 1e-4, largest diagonal entries (its synthetic
    experiments), ties settled by the true error unless ``as_printed``. With one number: ten lambda~, the printed
    stopping rule with tolerance 1e-2, order of importance (its real data).
    """
    needed = memory_needed(matrix.shape, with_rows)
    if needed > 2 * DEFAULT_MEMORY:
        raise ValueError(
            f"method={method!r} holds all of X and Y, about {needed / 2**30:.0f} GiB for a matrix of shape "
            f"{matrix.shape}; use method='convex', which solves the same model on a working set."
        )
    given = not isinstance(rank, int)
    size = sum(rank) if not isinstance(rank, int) else rank
    start = _Start.of(matrix, size, with_rows)

    def solve(relative: float) -> ConvexSolution:
        model = ConvexModel(matrix, start.strength(relative, size), TRACE, with_rows)
        tolerance = 1e-4 if given else 1e-2
        return fast_gradient(
            model, start.columns, start.rows, start.X, start.Y, tolerance=tolerance, as_printed=not given
        )

    search = _Search(matrix, rank, start, method)
    for relative in () if search.settled else [0.25] if given else PATH:
        solution = solve(relative)
        if isinstance(rank, int):
            search.offer(by_importance(solution, matrix, rank, method))
        else:
            selection = largest_diagonal(solution, *rank, method)
            search.offer(selection if as_printed else settle_ties(selection, solution, matrix))
        if is_trivial(solution, matrix.shape):
            break
    return search.result


def _solver(matrix: Products, start: _Start, with_rows: bool, memory: int, max_steps: int) -> WorkingSetSolver:
    solver = WorkingSetSolver(matrix, with_rows=with_rows, memory=memory, max_steps=max_steps)
    solver.start(start.columns, start.rows, start.X, np.ascontiguousarray(start.Y.T))
    return solver


class _Search:
    """The best selection so far by the true error."""

    def __init__(self, matrix: Products, rank: int | tuple[int, int], start: _Start, method: str) -> None:
        self.matrix, self.rank, self.start = matrix, rank, start
        order = "c" * start.columns.size + "r" * start.rows.size
        enough = len(order) == (rank if isinstance(rank, int) else sum(rank))
        self._best = Selection(
            start.columns, start.rows, order, method, "rank reached" if enough else "residual is zero"
        )
        self._error = math.inf
        self.settled = start.relative_error <= _EXACT_FIT and (
            isinstance(rank, int) or rank == (start.columns.size, start.rows.size)
        )
        """Whether the start leaves nothing to explain."""

    def offer(self, *selections: Selection) -> bool:
        """Take the best of these if it is better than all before; whether it is."""
        errors = [
            solve_weights(self.matrix, selection.columns, selection.rows, tolerance=_RANKING).relative_error
            for selection in selections
        ]
        best = int(np.argmin(errors))
        if errors[best] >= self._error:
            return False
        self._best, self._error = selections[best], errors[best]
        return True

    @property
    def result(self) -> Selection:
        if self.settled or self._error <= _EXACT_FIT:
            return self._best
        return _completed(self._best, self.rank, self.matrix, self.start)


def _best_along_path(
    solver: WorkingSetSolver,
    model: Callable[[float], ConvexModel],
    rank: int,
    start: _Start,
    method: str,
    tolerance: float,
) -> Selection:
    matrix = solver.matrix
    search = _Search(matrix, rank, start, method)

    def offer(solution: ConvexSolution) -> bool:
        return search.offer(by_importance(solution, matrix, rank, method), largest_of_both(solution, rank, method))

    best, at_best, waited = PATH[0], solver, 0
    for relative in () if search.settled else PATH:
        solution = solver.solve(model(relative), max(tolerance, _PATH_GAP))
        waited += 1
        if offer(solution):
            best, at_best, waited = relative, solver.copy(), 0
        spent = solution.column_diagonal.sum() + solution.row_diagonal.sum()
        if waited >= _PATIENCE or spent >= rank or is_trivial(solution, matrix.shape):
            break
    if not search.settled and tolerance < _PATH_GAP:
        offer(at_best.solve(model(best), tolerance))
    return search.result


def _completed(selection: Selection, rank: int | tuple[int, int], matrix: Products, start: _Start) -> Selection:
    """The selection, filled up if the solution has fewer columns and rows than asked for."""
    if not isinstance(rank, int):
        by_norm = [np.argsort(-side.squared_column_norms, kind="stable") for side in (matrix, matrix.T)]
        others = [np.concatenate(pair) for pair in zip((start.columns, start.rows), by_norm, strict=True)]
        return completed(selection, *rank, *(_distinct(indices) for indices in others))
    missing = rank - selection.n_selected
    columns = start.columns[~np.isin(start.columns, selection.columns)][: max(0, missing)]
    n_columns = selection.columns.size + columns.size
    return completed(selection, n_columns, rank - n_columns, columns, start.rows)


def _distinct(indices: Indices) -> Indices:
    _, first = np.unique(indices, return_index=True)
    return indices[np.sort(first)]


def is_trivial(solution: ConvexSolution, shape: tuple[int, int]) -> bool:
    """Whether X is about a I and Y about (1 - a) I, which explains any matrix and says nothing about this one."""
    m, n = shape
    a, b = solution.column_diagonal.sum() / n, solution.row_diagonal.sum() / m
    if a + b < 0.95:
        return False
    off = np.sum(solution.X**2) + np.sum(solution.Y**2)
    on = np.sum(solution.column_diagonal**2) + np.sum(solution.row_diagonal**2)
    return bool(off - on < 0.05 * on)


def _meet_noise(
    solve: Callable[[float], ConvexSolution], noise: float, matrix: Products, strength: float
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
        warnings.warn(
            f"No lambda meets noise={noise:.3g}: the smallest tried, {solution.strength:.3g}, leaves "
            f"{noise * solution.residual_norm / target:.3g}; ask for more noise, or raise max_iterations.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solution


def _in_unit(solution: ConvexSolution, exponent: int) -> ConvexSolution:
    """The solution of the matrix as it was given, from that of the matrix as it is held (`Products.exponent`)."""
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


def _warn(solution: ConvexSolution, matrix: Products, start: _Start, tolerance: float, rank: int) -> None:
    if not solution.converged:
        warnings.warn(
            f"The convex model stopped at a relative gap of {solution.gap:.1e}, above the tolerance {tolerance:.1e} "
            f"({solution.stop_reason}); raise tolerance, max_iterations or memory.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if rank < min(matrix.shape) and is_trivial(solution, matrix.shape):
        better = 4.0 * max(solution.strength, start.squared_error / min(matrix.shape))
        warnings.warn(
            f"lambda = {solution.strength:.3g} is so small that the solution is about a multiple of the identity, "
            f"which explains every matrix; try lambda = {better:.3g} (relative_strength times "
            f"{better / solution.strength:.3g}).",
            RuntimeWarning,
            stacklevel=3,
        )
