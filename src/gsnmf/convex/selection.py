"""From solutions of the convex model to the best selection.

On real data no single value of lambda~ is best. The paper tries ten values in [1e-3, 10] and keeps the selection with
the smallest true error. `convex_selection` does the same from large to small, each time starting from the previous
solution. Along this path it accepts a wide gap, ends once the solution uses more than the rank (trace X + trace Y
counts columns and rows), and then solves the best value again to the requested gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.convex.exact import solve_exact
from gsnmf.convex.fast_gradient import fast_gradient, memory_needed
from gsnmf.convex.model import ConvexModel
from gsnmf.convex.penalties import TRACE, Penalty
from gsnmf.convex.postprocess import EQUAL, by_importance, completed, largest_diagonal, largest_of_both, settle_ties
from gsnmf.convex.solve import SELECTION_GAP, Start, is_trivial, started_solver
from gsnmf.convex.working_set import DEFAULT_MEMORY, WorkingSetSolver
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.holding import hold
from gsnmf.matrix.protocol import largest_of
from gsnmf.results import ConvexSolution, Selection
from gsnmf.selection.constraints import Limits
from gsnmf.selection.successive_projection import generalized_successive_projection
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Axis, Indices
from gsnmf.support.warning import warn_caller
from gsnmf.weights import solve_weights

PATH = tuple(float(value) for value in np.logspace(1, -3, 10))
"""The paper's ten values of lambda~, largest first."""

_PATH_GAP = 3e-2
"""Gap along the path, where solutions only serve to rank selections."""
_RANKING = 1e-3
"""Tolerance on the weights of selections that are ranked."""
_EXACT_FIT = 1e-6
_ROUNDING = 16.0
"""Relative errors below this many units of rounding count as equal."""
_GIVEN_SIZES = 0.5
"""lambda~ if the numbers of columns and of rows are given."""
_PATIENCE = 2
"""The path ends after this many values of lambda~ without a better selection."""


def convex_selection(
    matrix: InMemoryMatrix,
    rank: int | tuple[int, int],
    *,
    penalty: Penalty = TRACE,
    axes: Axes = COLUMNS_AND_ROWS,
    method: str = "convex",
    tolerance: float = SELECTION_GAP,
    memory: int = DEFAULT_MEMORY,
    start: Selection | None = None,
    warn: bool = True,
    limits: Limits | None = None,
) -> Selection:
    """Columns and rows by the convex model.

    With a pair (n_columns, n_rows): those of the largest diagonal entries for lambda~ = 0.5, ties settled by the true
    error. With one number: in order of importance or by the largest of both diagonals (`gsnmf.convex.postprocess`), the
    best by the true error along a descending path of lambda~. If the gap is not reached, a warning says so. ``start``
    is the GSPA selection (SPA for one axis) of the same rank, if already known. With ``limits``, the model
    is solved without what is excluded, and the choice is in order of importance after what is included.
    """
    matrix = matrix.in_one_order()
    size = rank if isinstance(rank, int) else sum(rank)
    if limits is not None:
        start = generalized_successive_projection(matrix, size, limits=limits)
        rank = size  # the limits say how many of each
    first = Start.of(matrix, size, axes, start)
    solver = started_solver(matrix, first, axes, memory, 2000)

    def model(relative: float) -> ConvexModel:
        return ConvexModel(matrix, first.strength(relative, size), penalty, axes, limits)

    solution: ConvexSolution | None
    if isinstance(rank, int):
        selection, solution = _best_along_path(solver, model, rank, first, method, tolerance, limits)
    else:
        solution = solver.solve(model(_GIVEN_SIZES), tolerance)
        chosen = settle_ties(largest_diagonal(solution, *rank, method), solution, matrix)
        selection = _completed(chosen, rank, matrix, first)
    if warn and solution is not None and not solution.converged:
        warn_caller(
            f"The convex model stopped at a relative gap of {solution.gap:.1e}, above {tolerance:.1e} "
            f"({solution.stop_reason}): the choice may be right, but is not certified. The less noise, the more steps "
            "it takes; gsnmf.convex.solve_convex has no limit on them but max_iterations.",
            ConvergenceWarning,
        )
    return selection


def fast_gradient_selection(
    matrix: InMemoryMatrix,
    rank: int | tuple[int, int],
    *,
    axes: Axes = COLUMNS_AND_ROWS,
    method: str = "gs-fgm",
    as_printed: bool = False,
) -> Selection:
    """GS-FGM, or FGNSR without rows, by the paper's protocol.

    With a pair (n_columns, n_rows): lambda~ = 0.25, tolerance 1e-4, largest diagonal entries (its synthetic
    experiments), ties settled by the true error unless ``as_printed``. With one number: ten lambda~, the printed
    stopping rule with tolerance 1e-2, order of importance (its real data).
    """
    needed = memory_needed(matrix.shape, axes)
    if needed > 2 * DEFAULT_MEMORY:
        raise ValueError(
            f"method={method!r} holds all of X and Y, about {needed / 2**30:.0f} GiB for a matrix of shape "
            f"{matrix.shape}; use method='convex', which solves the same model on a working set."
        )
    matrix = hold(matrix.columns(np.arange(matrix.shape[1])))  # one memory order, so that rounding decides nothing
    given = not isinstance(rank, int)
    size = sum(rank) if not isinstance(rank, int) else rank
    start = Start.of(matrix, size, axes)

    def solve(relative: float) -> ConvexSolution:
        model = ConvexModel(matrix, start.strength(relative, size), TRACE, axes)
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


def exact_selection(matrix: InMemoryMatrix, rank: int | tuple[int, int]) -> Selection:
    """The columns and rows of the smallest exact decomposition of at most this rank, or of exactly this pair."""
    whole = matrix.columns(np.arange(matrix.shape[1]))
    solution = solve_exact(whole, max_rank=rank) if isinstance(rank, int) else solve_exact(whole, pair=rank)
    if not solution.found:
        raise ValueError(
            f"the matrix has no exact decomposition of rank {rank}: at least {solution.lower_bound} columns and rows "
            "are needed; use method='convex' or 'auto' for an approximate one."
        )
    size = rank if isinstance(rank, int) else sum(rank)
    columns, rows = (
        chosen[side.squared_column_norms[chosen] > 0]  # a pair may ask for more than there are nonzero ones
        for side, chosen in ((matrix, solution.columns), (matrix.T, solution.rows))
    )
    return Selection.of_indices(columns, rows, "exact", size)


class _Search:
    """The best selection so far by the true error."""

    def __init__(
        self,
        matrix: InMemoryMatrix,
        rank: int | tuple[int, int],
        start: Start,
        method: str,
        limits: Limits | None = None,
    ) -> None:
        self.matrix, self.rank, self.start, self.limits = matrix, rank, start, limits
        size = rank if isinstance(rank, int) else sum(rank)
        self._best = Selection.of_indices(start.columns, start.rows, method, size)
        self._error = math.inf
        self._rounding = _ROUNDING * float(np.finfo(matrix.dtype).eps)
        self.settled = start.relative_error <= _EXACT_FIT and (
            isinstance(rank, int) or rank == (start.columns.size, start.rows.size)
        )
        """Whether the start already explains everything."""

    def offer(self, *selections: Selection) -> bool:
        """Keep the best of these if it beats all before; return whether it does."""
        errors = [
            solve_weights(self.matrix, selection.columns, selection.rows, tolerance=_RANKING).relative_error
            for selection in selections
        ]
        errors = [max(error, self._rounding) for error in errors]
        best = next(i for i, error in enumerate(errors) if error <= (1.0 + EQUAL) * min(errors))
        if errors[best] >= (1.0 - EQUAL) * self._error:
            return False
        self._best, self._error = selections[best], errors[best]
        return True

    @property
    def result(self) -> Selection:
        if self.settled or self._error <= _EXACT_FIT or self.limits is not None:
            return self._best
        return _completed(self._best, self.rank, self.matrix, self.start)


def _best_along_path(
    solver: WorkingSetSolver,
    model: Callable[[float], ConvexModel],
    rank: int,
    start: Start,
    method: str,
    tolerance: float,
    limits: Limits | None,
) -> tuple[Selection, ConvexSolution | None]:
    """The best selection, and the solution it came from; no solution if the start explains everything."""
    matrix = solver.matrix
    search = _Search(matrix, rank, start, method, limits)

    def offer(solution: ConvexSolution) -> bool:
        important = by_importance(solution, matrix, rank, method, limits)
        if limits is not None:
            return search.offer(_filled(important, start, limits))
        return search.offer(important, largest_of_both(solution, rank, method))

    if search.settled:
        return search.result, None
    best, at_best, waited = PATH[0], solver, 0
    for relative in PATH:
        solution = solver.solve(model(relative), max(tolerance, _PATH_GAP))
        waited += 1
        if offer(solution):
            best, at_best, waited = relative, solver.copy(), 0
        spent = solution.column_diagonal.sum() + solution.row_diagonal.sum()
        if waited >= _PATIENCE or spent >= rank or is_trivial(solution, matrix.shape):
            break
    certified = at_best.solve(model(best), tolerance)
    offer(certified)
    return search.result, certified


def _filled(selection: Selection, start: Start, limits: Limits) -> Selection:
    """The selection with what it lacks taken from the start, within the limits."""
    chosen: dict[Axis, list[int]] = {"columns": selection.columns.tolist(), "rows": selection.rows.tolist()}
    from_start: dict[Axis, list[int]] = {"columns": start.columns.tolist(), "rows": start.rows.tolist()}
    for axis, indices in from_start.items():
        for index in indices:
            if index not in chosen[axis] and axis in limits.open_axes(len(chosen["columns"]), len(chosen["rows"])):
                chosen[axis].append(index)
    columns, rows = (np.array(indices, dtype=np.intp) for indices in chosen.values())
    return Selection.of_indices(columns, rows, selection.method, limits.size)


def _completed(selection: Selection, rank: int | tuple[int, int], matrix: InMemoryMatrix, start: Start) -> Selection:
    """The selection, filled up if the solution has fewer columns and rows than requested."""
    if not isinstance(rank, int):
        by_norm = [largest_of(side.squared_column_norms) for side in (matrix, matrix.T)]  # never a zero one
        others = [np.concatenate(pair) for pair in zip((start.columns, start.rows), by_norm, strict=True)]
        return completed(selection, *rank, *(_distinct(indices) for indices in others))
    missing = rank - selection.n_selected
    columns = start.columns[~np.isin(start.columns, selection.columns)][: max(0, missing)]
    n_columns = selection.columns.size + columns.size
    return completed(selection, n_columns, rank - n_columns, columns, start.rows)


def _distinct(indices: Indices) -> Indices:
    _, first = np.unique(indices, return_index=True)
    return indices[np.sort(first)]
