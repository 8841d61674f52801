"""From solutions of the convex model to columns and rows.

How a solution becomes a selection:

- Largest diagonal entries: given how many columns and how many rows, those with the largest X_ii and Y_ll. For matrices
  close to the model. Given only how many together, the largest of both diagonals. Entries that are nearly equal say
  little: such ties can be settled by the true error.
- In order of importance: for real data, where a single outlier can have a large diagonal entry, columns are ordered by
  SPA on X^T and rows by SPA on Y, so that many large entries in a row of X count; then the next column or the next row
  is taken, whichever leaves the smaller residual after projection.

On real data no single value of lambda~ is best. The paper tries ten values in [1e-3, 10] and keeps the selection with
the smallest true error. `convex_selection` does the same from large to small, each time starting from the previous
solution. Along this path it accepts a wide gap, ends once the solution uses more than the rank (trace X + trace Y
counts columns and rows), and then solves the best value again to the requested gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.constraints import Limits
from gsnmf.convex.fast_gradient import fast_gradient, memory_needed
from gsnmf.convex.model import ConvexModel, ConvexSolution, Start
from gsnmf.convex.penalties import TRACE, Penalty
from gsnmf.convex.solve import DEFAULT_MEMORY, SELECTION_GAP, WorkingSetSolver
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.projection import ResidualProjection
from gsnmf.matrix.protocol import largest_of
from gsnmf.records import Selection
from gsnmf.selection.successive_projection import generalized_successive_projection, successive_projection
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Axis, Floats, Indices, axes_of
from gsnmf.support.reasons import selection_reason
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
_MAX_STEPS = 2000
"""Limit on the steps of the solver for each lambda~."""
_PATIENCE = 2
"""The path ends after this many values of lambda~ without a better selection."""
_TIE = 0.1
"""Relative difference up to which diagonal entries count as nearly equal."""
_MAX_TIES = 5
"""How many indices on each side of the border may be in doubt."""
EQUAL = 1e-6
"""Relative difference up to which numbers count as equal, so that rounding decides nothing."""


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
    error. With one number: in order of importance or by the largest of both diagonals, the best by the true error along
    a descending path of lambda~. If the gap is not reached, a warning says so. ``start`` is the GSPA selection (SPA for
    one axis) of the same rank, if already known. With ``limits``, the model is solved without what is excluded, and the
    choice is in order of importance after what is included.
    """
    matrix = matrix.in_one_order()
    size = rank if isinstance(rank, int) else sum(rank)
    if limits is not None:
        start = generalized_successive_projection(matrix, size, limits=limits)
        rank = size  # the limits say how many of each
    first = Start.of(matrix, size, axes, start)
    solver = WorkingSetSolver(matrix, first, axes=axes, memory=memory, max_iterations=_MAX_STEPS)

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
    one_number = isinstance(rank, int)
    size = rank if isinstance(rank, int) else sum(rank)
    start = Start.of(matrix, size, axes)
    from_start = start.columns, start.rows, start.X, start.Y
    search = _Search(matrix, rank, start, method)
    for relative in () if search.settled else PATH if one_number else [0.25]:
        model = ConvexModel(matrix, start.strength(relative, size), TRACE, axes)
        solution = fast_gradient(model, *from_start, tolerance=1e-2 if one_number else 1e-4, as_printed=one_number)
        if isinstance(rank, int):
            search.offer(by_importance(solution, matrix, rank, method))
        else:
            selection = largest_diagonal(solution, *rank, method)
            search.offer(selection if as_printed else settle_ties(selection, solution, matrix))
        if solution.is_trivial:
            break
    return search.result


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
        if waited >= _PATIENCE or spent >= rank or solution.is_trivial:
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
        columns, rows = (
            np.array(list(dict.fromkeys([*chosen.tolist(), *others.tolist()])), dtype=np.intp)
            for chosen, others in zip((start.columns, start.rows), by_norm, strict=True)
        )
        return completed(selection, *rank, columns, rows)
    missing = rank - selection.n_selected
    columns = start.columns[~np.isin(start.columns, selection.columns)][: max(0, missing)]
    n_columns = selection.columns.size + columns.size
    return completed(selection, n_columns, rank - n_columns, columns, start.rows)


def largest_diagonal(
    solution: ConvexSolution, n_columns: int, n_rows: int, method: str, wanted: int | None = None
) -> Selection:
    """The columns with the ``n_columns`` largest X_ii and the rows with the ``n_rows`` largest Y_ll."""
    columns = solution.columns[_from_largest(solution.column_diagonal, solution.columns)[:n_columns]]
    rows = solution.rows[_from_largest(solution.row_diagonal, solution.rows)[:n_rows]]
    return Selection.of_indices(columns, rows, method, n_columns + n_rows if wanted is None else wanted)


def largest_of_both(solution: ConvexSolution, rank: int, method: str) -> Selection:
    """The columns and rows with the ``rank`` largest entries of both diagonals together."""
    diagonal = np.concatenate([solution.column_diagonal, solution.row_diagonal])
    indices = np.concatenate([solution.columns, solution.rows + solution.X.shape[1]])
    chosen = _from_largest(diagonal, indices)[:rank]
    n_columns = int((chosen < solution.columns.size).sum())
    return largest_diagonal(solution, n_columns, chosen.size - n_columns, method, rank)


def settle_ties(selection: Selection, solution: ConvexSolution, matrix: InMemoryMatrix) -> Selection:
    """Exchange columns, and rows, whose diagonal entries are nearly equal, as long as that lowers the true error."""
    chosen = [selection.columns, selection.rows]
    diagonals = (solution.columns, solution.column_diagonal), (solution.rows, solution.row_diagonal)
    ties = [_ties(own, *diagonal) for own, diagonal in zip(chosen, diagonals, strict=True)]
    if not any(ties):
        return selection
    error = solve_weights(matrix, *chosen).relative_error
    for axis, pairs in enumerate(ties):
        for leaves, enters in pairs:
            if leaves not in chosen[axis] or enters in chosen[axis]:
                continue
            trial = list(chosen)
            trial[axis] = np.where(chosen[axis] == leaves, enters, chosen[axis])
            trial_error = solve_weights(matrix, *trial).relative_error
            if trial_error < (1.0 - EQUAL) * error:
                chosen, error = trial, trial_error
    return replace(selection, columns=chosen[0], rows=chosen[1])


def _ties(chosen: Indices, indices: Indices, diagonal: Floats) -> list[tuple[int, int]]:
    """Pairs of a chosen index and another one whose diagonal entry is nearly as large, the closest pairs first."""
    own = np.isin(indices, chosen)
    inside, outside = np.flatnonzero(own), np.flatnonzero(~own)
    inside = inside[_from_largest(diagonal[inside], indices[inside])[::-1][:_MAX_TIES]]
    outside = outside[_from_largest(diagonal[outside], indices[outside])[:_MAX_TIES]]
    ties = [(i, o) for i in inside for o in outside if diagonal[o] >= (1.0 - _TIE) * diagonal[i]]
    ties.sort(key=lambda pair: diagonal[pair[0]] - diagonal[pair[1]])
    return [(int(indices[i]), int(indices[o])) for i, o in ties]


def by_importance(
    solution: ConvexSolution, matrix: InMemoryMatrix, rank: int, method: str, limits: Limits | None = None
) -> Selection:
    """``rank`` columns and rows in order of importance, dividing the rank between them, within limits.

    What must be chosen comes first.
    """
    important: dict[Axis, Indices] = {
        "columns": _importance(solution.X.T, solution.columns, rank),
        "rows": _importance(solution.Y, solution.rows, rank),
    }
    projection = matrix.projection(rank, COLUMNS_AND_ROWS)
    picks: list[tuple[Axis, int]] = []
    if limits is not None:
        picks = [(axis, index) for axis in important for index in limits.included(axis).tolist()]
        for pick in picks:
            projection.choose(*pick)
    queues = {axis: [i for i in indices.tolist() if (axis, i) not in picks] for axis, indices in important.items()}
    while len(picks) < rank:
        n_columns = sum(axis == "columns" for axis, _ in picks)
        axes = COLUMNS_AND_ROWS if limits is None else limits.open_axes(n_columns, len(picks) - n_columns)
        gains = {axis: _next_gain(queues[axis], projection, axis) if axis in axes else 0.0 for axis in queues}
        axis: Axis = "columns" if gains["columns"] >= (1.0 - EQUAL) * gains["rows"] else "rows"
        if gains[axis] <= 0.0:
            break
        picks.append((axis, queues[axis].pop(0)))
        projection.choose(*picks[-1])
    return Selection.of(picks, method, rank)


def _next_gain(queue: list[int], projection: ResidualProjection, axis: Axis) -> float:
    """Gain of the first in the queue, after dropping those that the chosen ones already explain."""
    while queue:
        gain = projection.gain(axis, queue[0])
        if gain > 0.0:
            return gain
        queue.pop(0)
    return 0.0


def completed(selection: Selection, n_columns: int, n_rows: int, columns: Indices, rows: Indices) -> Selection:
    """Add the first missing ones of ``columns`` and ``rows`` until there are as many of each as wanted."""
    more_columns = columns[~np.isin(columns, selection.columns)][: max(0, n_columns - selection.columns.size)]
    more_rows = rows[~np.isin(rows, selection.rows)][: max(0, n_rows - selection.rows.size)]
    order = selection.order + axes_of(more_columns.size, more_rows.size)
    return replace(
        selection,
        columns=np.concatenate([selection.columns, more_columns]),
        rows=np.concatenate([selection.rows, more_rows]),
        order=order,
        stop_reason=selection_reason(len(order), n_columns + n_rows),
    )


def automatic_sizes(solution: ConvexSolution, threshold: float | None = None) -> tuple[int, int]:
    """How many columns and rows the diagonals ask for.

    Parameters
    ----------
    solution : ConvexSolution
    threshold : float, optional
        Count the diagonal entries above it. By default it lies in the widest gap between two successive entries, which
        separates the chosen from the others if the matrix is close to the model.

    Returns
    -------
    n_columns, n_rows : int
        How many diagonal entries are above the threshold, of columns and of rows.

    Examples
    --------
    >>> from gsnmf.convex import solve_convex
    >>> from gsnmf.datasets import planted
    >>> data = planted((20, 15), n_columns=2, n_rows=1, noise_level=0.05, random_state=0)
    >>> automatic_sizes(solve_convex(data.matrix, 3))
    (2, 1)
    """
    diagonal = np.sort(np.concatenate([solution.column_diagonal, solution.row_diagonal, [0.0]]))
    if threshold is None:
        widest = int(np.argmax(np.diff(diagonal))) if diagonal.size > 1 else 0
        threshold = float(diagonal[widest])
    return int((solution.column_diagonal > threshold).sum()), int((solution.row_diagonal > threshold).sum())


def _from_largest(values: Floats, indices: Indices) -> Indices:
    """Positions of the values in descending order; values that count as equal are ordered by index."""
    order = np.argsort(-values, kind="stable")
    descending = values[order]
    falls = descending[1:] < (1.0 - EQUAL) * descending[:-1]
    group = np.concatenate([[0], np.cumsum(falls)])[: order.size]
    return np.asarray(order[np.lexsort((indices[order], group))])


def _importance(vectors: Floats, indices: Indices, rank: int) -> Indices:
    """The first of ``indices`` in the order of SPA on their columns of ``vectors``.

    More than can be chosen, because some are already explained. Entries are rounded to 20 bits, which is much finer
    than the accuracy of the solution, so that copies of a column are equal and the first of them wins.
    """
    if indices.size == 0:
        return indices
    sorted_indices = np.sort(indices)
    fractions, exponents = np.frexp(vectors[:, np.argsort(indices)])
    rounded = np.ldexp(np.round(np.ldexp(fractions, 20)), exponents - 20)
    most = min(indices.size, 2 * rank + 10)
    return sorted_indices[successive_projection(hold(rounded), most, axis="columns").columns]
