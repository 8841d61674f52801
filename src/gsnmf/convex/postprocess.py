"""From a solution of the convex model to columns and rows: the paper's procedures, and how many to choose.

- Largest diagonal entries: given how many columns and how many rows, those with the largest X_ii and Y_ll. For matrices
  close to the model. Given only how many together, the largest of both diagonals. Entries that are nearly equal say
  little: such ties can be settled by the true error.
- In order of importance: for real data, where a single outlier can have a large diagonal entry, columns are ordered by
  SPA on X^T and rows by SPA on Y, so that many large entries in a row of X count; then the next column or the next row
  is taken, whichever leaves the smaller residual after projection.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.holding import hold
from gsnmf.matrix.projection import ResidualProjection
from gsnmf.results import ConvexSolution, Selection
from gsnmf.selection.constraints import Limits
from gsnmf.selection.successive_projection import successive_projection
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axis, Floats, Indices, axes_of
from gsnmf.support.reasons import selection_reason
from gsnmf.weights import solve_weights

_TIE = 0.1
"""Relative difference up to which diagonal entries count as nearly equal."""
_MAX_TIES = 5
"""How many indices on each side of the border may be in doubt."""
EQUAL = 1e-6
"""Relative difference up to which numbers count as equal, so that rounding decides nothing."""


def largest_diagonal(solution: ConvexSolution, n_columns: int, n_rows: int, method: str) -> Selection:
    """The columns with the ``n_columns`` largest X_ii and the rows with the ``n_rows`` largest Y_ll."""
    return _largest_of_each(solution, n_columns, n_rows, method, n_columns + n_rows)


def _largest_of_each(solution: ConvexSolution, n_columns: int, n_rows: int, method: str, wanted: int) -> Selection:
    columns = _largest(solution.columns, solution.column_diagonal, n_columns)
    rows = _largest(solution.rows, solution.row_diagonal, n_rows)
    return Selection.of_indices(columns, rows, method, wanted)


def largest_of_both(solution: ConvexSolution, rank: int, method: str) -> Selection:
    """The columns and rows with the ``rank`` largest entries of both diagonals together."""
    diagonal = np.concatenate([solution.column_diagonal, solution.row_diagonal])
    indices = np.concatenate([solution.columns, solution.rows + solution.X.shape[1]])
    chosen = _from_largest(diagonal, indices)[:rank]
    n_columns = int((chosen < solution.columns.size).sum())
    return _largest_of_each(solution, n_columns, chosen.size - n_columns, method, rank)


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


def _largest(indices: Indices, diagonal: Floats, count: int) -> Indices:
    return indices[_from_largest(diagonal, indices)[:count]]


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
    return sorted_indices[
        successive_projection(hold(rounded), min(indices.size, 2 * rank + 10), axis="columns").columns
    ]
