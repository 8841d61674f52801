"""How many columns and rows: the errors of nested selections, and good selections of many ranks.

`rank_path` adds one index at a time by pursuit. `nested_fits` finds good selections of many ranks, each from its
neighbour. On the way up, each selection grows by the candidates with the largest guaranteed decrease of the error and
is improved by exchanges. On the way down it loses the index that explains least and is improved again. The better of
the two selections of each rank is kept. The way down finds what the way up misses: indices that only help together with
others. Selections that are known from elsewhere, such as from a similar matrix, may be tried on the way up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
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
from gsnmf.search.candidates import candidate_pool
from gsnmf.search.effort import Work
from gsnmf.search.exchange import grow, improve
from gsnmf.search.pursuit import pursue
from gsnmf.search.state import State, by_error
from gsnmf.search.trials import Trials
from gsnmf.support.arrays import Floats, Indices
from gsnmf.weights.observed import solve_observed_weights

_ROUNDS = 12
"""Rounds of coordinate descent after an index was dropped."""
_SETTLING_ROUNDS = 20
"""Rounds of coordinate descent where a small error is enough."""
_SETTLED = 1e-3
"""They end earlier when a round lowers the squared error by less than this fraction."""
_FAILURES = 24
"""Exchanges in a row that may fail."""


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
    problem = Problem.of(matrix, missing_values=missing_values, entry_weights=entry_weights, negative=negative)
    limit = check_rank(max_rank, problem.matrix.shape)
    goal = 0.0 if target_error is None else check_positive(target_error, "target_error")
    problem.warn()
    limits = None if constraints is None else constraints.resolve(problem.matrix.shape, limit)
    source, squared_error_of = _source(problem.matrix, limit)
    scale = problem.matrix.squared_norm
    squared_errors, n_columns = [scale], [0]
    columns = rows = np.empty(0, dtype=np.intp)
    for state in pursue(source, limit, limits):
        squared_errors.append(squared_error_of(state))
        n_columns.append(state.columns.size)
        columns, rows = state.columns.indices, state.rows.indices
        if squared_errors[-1] <= goal**2 * scale:
            break
    errors = np.sqrt(np.array(squared_errors) / scale) if scale > 0 else np.zeros(1)
    return RankPath(errors, columns, rows, np.array(n_columns, dtype=np.intp))


def _source(held: Matrix | Observed, rank: int) -> tuple[Matrix, Callable[[State], float]]:
    """The matrix to choose from, and a function for the squared errors of nested selections."""
    if isinstance(held, Matrix):
        return held, by_error
    source = filled(held, complete(held, rank))
    return source, _observed_errors(held, source)


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


@dataclass(frozen=True)
class NestedFit:
    """A selection with its weights, and the seconds that it took from the one before it."""

    state: State
    seconds: float


def nested_fits(
    matrix: Matrix,
    ranks: Iterable[int],
    *,
    work: float,
    n_candidates: int,
    constraints: Constraints | None = None,
    known: Mapping[int, NestedFit] | None = None,
    enough: float = 0.0,
    progress: Callable[[float], None] | None = None,
) -> dict[int, NestedFit]:
    """Selections of all ranks, with their weights.

    Parameters
    ----------
    matrix : Matrix
    ranks : ints
    work : float
        Nominal seconds that all exchanges together may take: see `gsnmf.search.effort`.
    n_candidates : int
        Candidates per side.
    constraints : Constraints, optional
    known : mapping, optional
        Maps ranks to fits of another matrix, whose selections are tried too.
    enough : float
        Squared error below which a selection is not improved further. If it is zero, all weights are nearly optimal;
        otherwise they are good.
    progress : callable, optional
        Called with the share of the ranks that is done.

    Returns
    -------
    dict
        Maps each rank to its selection, which has fewer indices if these explain everything.
    """
    ordered = sorted(set(ranks))
    limits = {rank: (constraints or Constraints()).resolve(matrix.shape, rank) for rank in ordered}
    last = limits[ordered[-1]]
    trials = Trials(candidate_pool(matrix, max(n_candidates, ordered[-1]), last), last, Work(float("inf")))
    for one in (known or {}).values():
        trials.candidates.include(one.state.columns.indices, one.state.rows.indices)
    shares = {rank: 0.5 * work * rank / sum(ordered) for rank in ordered}
    found: dict[int, NestedFit] = {}
    steps = [(rank, True) for rank in ordered] + [(rank, False) for rank in reversed(ordered[:-1])]
    with trials.running():
        state, _ = trials.candidates.state(last.included_columns, last.included_rows).solved()
        for number, (rank, upwards) in enumerate(steps, 1):
            began = time.perf_counter()
            trials.limits = limits[rank]
            state = grow(trials, state) if upwards else _shrink(trials, state)
            if upwards and known and rank in known:
                state = min(state, _same_indices(trials, known[rank].state), key=by_error)
            state = _settle(trials, state, enough)
            if state.squared_error > enough:
                until = trials.work.spent + shares[rank]
                state = _settle(trials, improve(trials, state, until, _FAILURES)[0], enough)
            seconds = time.perf_counter() - began
            if not upwards:
                other = found[rank]
                state = min(state, other.state, key=by_error)
                seconds += other.seconds
            found[rank] = NestedFit(state, seconds)
            if progress is not None:
                progress(number / len(steps))
    return found


def _settle(trials: Trials, state: State, enough: float) -> State:
    """The selection with nearly optimal weights, or with good ones if a small error is enough.

    On a matrix that the selection explains almost exactly, optimal weights take long to find and gain little.
    """
    if enough == 0.0:
        return trials.polish(state)
    return trials.descend(state, _SETTLING_ROUNDS, tolerance=_SETTLED)


def _same_indices(trials: Trials, known: State) -> State:
    """The selection of a state of another matrix, with its weights fitted to this one."""
    columns, rows = known.columns, known.rows
    state = trials.candidates.state(columns.indices, rows.indices, columns.weights, rows.weights)
    return trials.descend(state, _SETTLING_ROUNDS)


def _shrink(trials: Trials, state: State) -> State:
    """The selection without the indices that explain least, down to the size of the limits."""
    limits = trials.limits
    while state.size > limits.size:
        worths = trials.worths(state)
        is_column = np.arange(state.size) < state.columns.size
        worths[trials.fixed(state)] = np.inf
        if state.columns.size <= limits.least_columns:
            worths[is_column] = np.inf
        if state.rows.size <= limits.least_rows:
            worths[~is_column] = np.inf
        dropped = int(np.argmin(worths))
        state = trials.descend(trials.candidates.without(state, [dropped]), _ROUNDS)
    return state
