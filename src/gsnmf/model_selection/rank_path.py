"""The errors of nested selections, one more column or row at a time: a quick look at how the error falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gsnmf.constraints import Constraints
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.completion import complete, filled
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.validation import check_positive, check_rank
from gsnmf.problem import Problem
from gsnmf.records import Record
from gsnmf.search.automatic import check_included
from gsnmf.search.pursuit import pursue
from gsnmf.search.state import State
from gsnmf.support.arrays import Floats, Indices
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE
from gsnmf.weights.observed import solve_observed_weights


@dataclass(frozen=True, eq=False)
class RankPath(Record):
    """Nested selections by pursuit and the relative error of each.

    Attributes
    ----------
    errors : array
        ``errors[k]`` is the relative error of the first k indices; ``errors[0]`` is 1.
    columns, rows : int arrays
        All columns and rows, in the order of choice.
    n_columns : int array
        How many of the first k indices are columns.

    Examples
    --------
    >>> import gsnmf
    >>> path = gsnmf.rank_path([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 3)
    >>> path.errors.round(2)
    array([1.  , 0.32, 0.22, 0.  ])
    >>> path.columns, path.rows
    (array([2, 0, 1]), array([], dtype=int64))
    """

    errors: Floats
    columns: Indices
    rows: Indices
    n_columns: Indices

    def selection(self, rank: int) -> tuple[Indices, Indices]:
        """Columns and rows of the first ``rank`` indices."""
        limit = self.errors.size - 1
        if not 0 <= rank <= limit:
            raise ValueError(f"rank must be in [0, {limit}] on this path; got {rank}.")
        n_columns = int(self.n_columns[rank])
        return self.columns[:n_columns], self.rows[: rank - n_columns]

    def smallest(self, target_error: float) -> int:
        """The smallest rank on the path whose error is at most ``target_error``."""
        sufficient = np.flatnonzero(self.errors <= target_error)
        if sufficient.size == 0:
            raise ValueError(
                f"no rank up to {self.errors.size - 1} reaches an error of {target_error}; "
                f"the smallest error on the path is {self.errors[-1]:.4g}."
            )
        return int(sufficient[0])


def rank_path(
    matrix: Any,
    max_rank: int,
    *,
    target_error: float | None = None,
    constraints: Constraints | None = None,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    negative: Negative = "error",
) -> RankPath:
    """Errors of nested selections of 1, 2, ... columns and rows, to help choose the rank.

    Parameters
    ----------
    matrix : array-like or sparse, shape (m, n)
        Nonnegative.
    max_rank : int
        Where to stop.
    target_error : float, optional
        Stop earlier, as soon as the relative error is at most this.
    constraints : gsnmf.Constraints, optional
        What must be chosen (these come first), what must not, and how many of each there may be at ``max_rank``.
    missing_values, entry_weights, negative
        As for `gsnmf.factorize`. With missing entries or entry weights, a matrix of rank ``max_rank`` fills the holes
        before indices are chosen, and the errors count observed entries only.

    Returns
    -------
    RankPath

    Examples
    --------
    >>> import gsnmf
    >>> path = gsnmf.rank_path([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 3)
    >>> path.errors.round(3)
    array([1.   , 0.318, 0.225, 0.   ])
    >>> path.smallest(0.25)
    2
    """
    problem = Problem.of(
        matrix,
        missing_values=missing_values,
        entry_weights=entry_weights,
        negative=negative,
        constraints=constraints,
    )
    limit = check_rank(max_rank, problem.matrix.shape)
    goal = 0.0 if target_error is None else check_positive(target_error, "target_error")
    problem.warn()
    source, squared_error_of = _source(problem.matrix, limit)
    limits = None
    if constraints is not None:
        limits = constraints.resolve(source.shape, limit)
        check_included(source, limits)
    scale = problem.matrix.squared_norm
    squared_errors, n_columns = [scale], [0]
    columns = rows = np.empty(0, dtype=np.intp)
    for state in pursue(source, limit, limits):
        squared_errors.append(min(squared_errors[-1], squared_error_of(state)))
        n_columns.append(state.columns.size)
        columns, rows = state.columns.indices, state.rows.indices
        if squared_errors[-1] <= goal**2 * scale:
            break
    errors = np.sqrt(np.array(squared_errors) / scale) if scale > 0 else np.zeros(1)
    return RankPath(errors, columns, rows, np.array(n_columns, dtype=np.intp))


def _source(held: Matrix | Observed, rank: int) -> tuple[Matrix, Callable[[State], float]]:
    """The matrix to choose from, and a function for the squared errors of nested selections."""
    if isinstance(held, Matrix):
        return held, _refitted_error
    source = filled(held, complete(held, rank))
    return source, _observed_errors(held, source)


def _refitted_error(state: State) -> float:
    """Squared error with weights as exact as those of `gsnmf.fit_weights`; pursuit itself needs less exact ones."""
    return max(0.0, state.solved(DEFAULT_TOLERANCE, DEFAULT_MAX_ITERATIONS)[0].squared_error)


def _observed_errors(observed: Observed, source: InMemoryMatrix) -> Callable[[State], float]:
    """A function that gives the squared errors of nested fits on observed entries; none is above the one before."""
    start: tuple[Floats, Floats] = np.zeros((0, observed.shape[1])), np.zeros((observed.shape[0], 0))

    def squared_error(state: State) -> float:
        nonlocal start
        C, R = source.raw_columns(state.columns.indices), source.T.raw_columns(state.rows.indices).T
        P1 = np.vstack([start[0], np.zeros((state.columns.size - len(start[0]), observed.shape[1]))])
        P2 = np.hstack([start[1], np.zeros((observed.shape[0], state.rows.size - start[1].shape[1]))])
        weights = solve_observed_weights(observed, C, R, start=(P1, P2))
        start = weights.column_weights, weights.row_weights
        return weights.relative_error**2 * observed.squared_norm

    return squared_error
