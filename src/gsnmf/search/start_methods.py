"""Starts of a search: the answers of single methods, adapted to the constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gsnmf._kernels.least_squares import nonnegative_quadratic
from gsnmf.constraints import Limits
from gsnmf.convex.selection import convex_selection
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.records import Selection
from gsnmf.search.candidate_vectors import LONG
from gsnmf.search.candidates import Fit
from gsnmf.search.exchange import completed
from gsnmf.search.fitted import Fitted
from gsnmf.search.trials import Trials
from gsnmf.selection.successive_nonnegative import successive_nonnegative_projection
from gsnmf.selection.successive_projection import generalized_successive_projection, successive_projection
from gsnmf.selection.xray import xray
from gsnmf.support.arrays import Axis, Indices

_FIT_ROUNDS = 15
_ROWS_AT_A_TIME = 1 << 17
"""Weights are computed for so many columns (rows) of the matrix at a time, because each time takes memory."""
_PRODUCT, _LONG_PRODUCT = 4e-10, 7e-10
"""Nominal seconds per stored entry of a product with a vector, and with one that is larger than caches."""
_CONDITIONED = 1e-8
"""Exact weights are computed from a Gram matrix only if its smallest eigenvalue is at least this."""


@dataclass(frozen=True)
class StartMethod:
    """A way to choose columns and rows to start from."""

    name: str
    choose: Callable[[Matrix, Limits], tuple[Indices, Indices]]
    seconds: float
    """Approximate nominal seconds."""
    always: bool = False
    """Whether it is always run, whatever it costs."""


_OneSided = Callable[..., Selection]


def start_methods(matrix: Matrix, limits: Limits, entries: float, convex_entries: int) -> Iterator[StartMethod]:
    """All methods that can answer the request or come close to it; those that always run come first."""
    m, n = matrix.shape
    rank = limits.size
    products = (_LONG_PRODUCT if max(m, n) >= LONG and entries < m * n else _PRODUCT) * entries * rank
    splits = dict.fromkeys((limits.least_columns, limits.most_columns))
    for n_columns in splits:
        choose = partial(_on_both_sides, choose=successive_projection, n_columns=n_columns)
        yield StartMethod(_title("spa", n_columns, limits), choose, 2 * products, always=True)
    yield StartMethod("gspa", _gspa, 4 * products, always=True)
    if not matrix.in_memory:
        return
    if m * n <= convex_entries:
        yield StartMethod("convex", _convex, 0.0)
    for name, method, seconds in (
        ("snpa", successive_nonnegative_projection, 2 * products + 3e-10 * (m + n) * rank**3),
        ("xray", xray, 4 * products + 3e-10 * (m + n) * rank**3),
        ("xray-greedy", partial(xray, rule="greedy"), 4e-10 * (m + n) * max(m, n) * rank),
    ):
        for n_columns in splits:
            choose = partial(_on_both_sides, choose=method, n_columns=n_columns)
            yield StartMethod(_title(name, n_columns, limits), choose, seconds)


def prepared(trials: Trials, columns: Indices, rows: Indices) -> tuple[Indices, Indices]:
    """The allowed indices of a selection plus the required ones, made candidates."""
    columns, rows = _obedient(trials, columns, rows)
    trials.candidates.include(columns, rows)
    return columns, rows


def started(trials: Trials, columns: Indices, rows: Indices) -> Fitted:
    """A `prepared` selection, fitted and completed by pursuit."""
    m, n = trials.candidates.matrix.shape
    nothing = Fit(columns, rows, np.zeros((n, columns.size)), np.zeros((m, rows.size)), np.inf)
    fitted = trials.of(nothing)
    _exact_on_one_side(trials, fitted)
    return _with_least(trials, completed(trials, trials.well_fitted(fitted, _FIT_ROUNDS, in_place=True), well=True))


def _exact_on_one_side(trials: Trials, fitted: Fitted) -> None:
    """Exact weights of the columns without the rows, or of the rows if there are no columns, in place."""
    problem = fitted.problem
    X, gram, linear = fitted.fit.P, problem.gram_C, problem.linear_P
    if X.shape[1] == 0:
        X, gram, linear = fitted.fit.Q, problem.gram_R, problem.linear_Q
    if X.shape[1] and np.linalg.eigvalsh(gram)[0] > _CONDITIONED:
        for start in range(0, X.shape[0], _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            nonnegative_quadratic(X[rows], gram, -linear[rows])
        trials.work.sweeps(0.5 * X.size * X.shape[1] ** 2)


def _obedient(trials: Trials, columns: Indices, rows: Indices) -> tuple[Indices, Indices]:
    limits, matrix = trials.limits, trials.candidates.matrix
    kept: dict[Axis, Indices] = {}
    sides: tuple[tuple[Axis, Indices, Matrix], ...] = (("columns", columns, matrix), ("rows", rows, matrix.T))
    for axis, indices, side in sides:
        usable = (side.squared_column_norms[indices] > 0) & ~limits.excluded(axis)[indices]
        included = limits.included(axis)
        kept[axis] = np.concatenate([included, indices[usable & ~np.isin(indices, included)]])[: limits.most(axis)]
    room = limits.size - max(limits.least_rows, min(kept["rows"].size, limits.most_rows))
    n_columns = min(kept["columns"].size, max(room, limits.least_columns, limits.included_columns.size))
    n_rows = min(kept["rows"].size, limits.size - max(n_columns, limits.least_columns))
    return kept["columns"][:n_columns], kept["rows"][:n_rows]


def _with_least(trials: Trials, fitted: Fitted) -> Fitted:
    """The selection, filled with the longest candidates up to the smallest allowed number of each.

    Pursuit may stop before the limits are met, because nothing is left to explain.
    """
    limits, candidates = trials.limits, trials.candidates
    columns, rows = fitted.fit.columns, fitted.fit.rows
    if columns.size >= limits.least_columns and rows.size >= limits.least_rows:
        return fitted
    added = []
    for side, chosen, least in (
        (candidates.columns, columns, limits.least_columns),
        (candidates.rows, rows, limits.least_rows),
    ):
        others = side.indices[np.argsort(-side.lengths, kind="stable")]
        added.append(others[~np.isin(others, chosen)][: max(0, least - chosen.size)])
    P = np.hstack([fitted.fit.P, np.zeros((fitted.fit.P.shape[0], added[0].size))])
    Q = np.hstack([fitted.fit.Q, np.zeros((fitted.fit.Q.shape[0], added[1].size))])
    fit = Fit(np.append(columns, added[0]), np.append(rows, added[1]), P, Q, fitted.squared_error)
    return trials.of(fit)


def _on_both_sides(matrix: Matrix, limits: Limits, *, choose: _OneSided, n_columns: int) -> tuple[Indices, Indices]:
    """A method for one side, on columns and on rows independently."""
    n_rows = limits.size - n_columns
    none = np.empty(0, dtype=np.intp)
    columns = choose(matrix, n_columns, axis="columns", limits=limits).columns if n_columns else none
    rows = choose(matrix, n_rows, axis="rows", limits=limits).rows if n_rows else none
    return columns, rows


def _title(name: str, n_columns: int, limits: Limits) -> str:
    if n_columns == limits.size:
        return f"{name} on columns"
    return f"{name} on rows" if n_columns == 0 else f"{name} on {n_columns} columns and {limits.size - n_columns} rows"


def _gspa(matrix: Matrix, limits: Limits) -> tuple[Indices, Indices]:
    selection = generalized_successive_projection(matrix, limits.size, limits=limits)
    return selection.columns, selection.rows


def _convex(matrix: Matrix, limits: Limits) -> tuple[Indices, Indices]:
    assert isinstance(matrix, InMemoryMatrix)
    pair = (limits.least_columns, limits.least_rows) if limits.least_columns == limits.most_columns else None
    selection = convex_selection(
        matrix, pair or limits.size, warn=False, limits=None if limits.only_numbers else limits
    )
    return selection.columns, selection.rows
