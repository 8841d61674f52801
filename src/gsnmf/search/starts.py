"""Starts of a search: the answers of single methods, adapted to the constraints, and a short NMF."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gsnmf._kernels.least_squares import nonnegative_quadratic
from gsnmf.constraints import Limits
from gsnmf.convex.selection import convex_selection
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.records import Selection, Start
from gsnmf.search.alternating import alternate, matched_factors, short_nmf
from gsnmf.search.candidate_vectors import LONG
from gsnmf.search.candidates import candidate_indices
from gsnmf.search.effort import Stage, nominal_seconds, seconds_of_blocks
from gsnmf.search.exchange import batches, grow
from gsnmf.search.state import State, by_error
from gsnmf.search.trials import Incumbent, Trials
from gsnmf.selection.successive_nonnegative import successive_nonnegative_projection
from gsnmf.selection.successive_projection import generalized_successive_projection, successive_projection
from gsnmf.selection.xray import xray
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axis, Indices

AFFORDABLE = 0.1
"""Fraction of a stage's work that a single start may take."""
_CLOSE = 1.2
"""Starts with a squared error of at most this many times the best are fitted well before their first exchanges."""
_MEMORY_OF_STARTS = 1 << 28
"""Bytes that starts may take while they wait for their first exchanges."""
_FEW_ENTRIES = 1 << 22
"""Methods run at the same time only on matrices of at most this many entries, because each takes memory of its own."""
_UNEVEN = 4.0
"""The shorter side of a matrix may have up to this many times its even share of candidates."""
_SCANS = 60.0
"""The number of candidates is such that all exchanges can be scored this often in a stage."""

_FIT_ROUNDS = 15
"""Rounds of coordinate descent on the weights of a start, if solving for them is not cheap."""
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


class Starts:
    """Makes the starts of every stage and keeps them until they have had their first exchanges."""

    def __init__(self, best: Incumbent) -> None:
        self.best = best
        self.trials = best.trials
        self.matrix = best.trials.candidates.matrix
        self.limits = best.trials.limits
        self.records: dict[str, Start] = {}
        self._entries = float(self.matrix.n_stored)
        self._waiting: dict[str, State] = {}
        """Starts that have not had their first exchanges."""

    def add_candidates(self, stage: Stage) -> None:
        """Add the candidates of this stage to the existing ones."""
        n_columns, n_rows = self._n_candidates(stage)
        self.trials.candidates.include(
            candidate_indices(self.matrix, "columns", self.limits, n_columns),
            candidate_indices(self.matrix, "rows", self.limits, n_rows),
        )
        operations = 2.0 * self._entries * max(n_columns, n_rows) * (0.2 if self.matrix.in_memory else 0.0)
        self.trials.work.spent += nominal_seconds(products=operations)

    def _n_candidates(self, stage: Stage) -> tuple[int, int]:
        """How many candidate columns and rows the stage can afford; more on the side where they cost less."""
        m, n = self.matrix.shape
        size = self.limits.size
        affordable = stage.work / _SCANS / (5e-10 * size)
        if stage.name == "fast" and not self.matrix.in_memory and affordable < size * (m + n):
            return 0, 0  # saves one pass over the data
        of_each = affordable / (m + n)
        columns, rows = (max(of_each, min(_UNEVEN * of_each, affordable / (2 * length))) for length in (n, m))
        return max(size, min(stage.candidates, int(columns))), max(size, min(stage.candidates, int(rows)))

    def make_starts(self, stage: Stage) -> None:
        """Run all methods that the stage can afford, and keep their selections."""
        methods = list(start_methods(self.matrix, self.limits, self._entries, stage.convex_entries))
        several = self.matrix.in_memory and self._entries <= _FEW_ENTRIES
        for always in (True, False):
            new = [method for method in methods if method.always == always and method.name not in self.records]
            for batch in batches(new, self.trials.n_chains() if several else 1):
                self._run_methods(stage, batch)
            if always:
                self._start_from_nmf(stage)
        if self._pursuit_seconds() <= AFFORDABLE * stage.work and self.trials.work.left() and not self.best.exact:
            none = np.empty(0, dtype=np.intp)
            self._start(stage, {f"pursuit ({stage.name})": (none, none)})

    def _run_methods(self, stage: Stage, methods: Sequence[StartMethod]) -> None:
        """Run those methods that the stage can afford, at the same time where there are threads."""
        work = self.trials.work
        limit = AFFORDABLE * stage.work
        runs = [method for method in methods if method.always or (method.seconds <= limit and work.left())]
        if self.best.exact:
            return
        work.spent += sum(method.seconds for method in runs)
        selections = self.trials.candidates.threads.map(lambda method: method.choose(self.matrix, self.limits), runs)
        self._start(stage, dict(zip([method.name for method in runs], selections, strict=True)))

    def _pursuit_seconds(self) -> float:
        """Approximate nominal seconds of a pursuit among the candidates."""
        m, n = self.matrix.shape
        candidates, rank = self.trials.candidates, self.limits.size
        scores = float(candidates.columns.indices.size * n + candidates.rows.indices.size * m) * rank**2
        return nominal_seconds(products=scores) + 2e-9 * (m + n) * rank**3

    def _start(self, stage: Stage, selections: dict[str, tuple[Indices, Indices]]) -> State | None:
        """Fit the selections of starts and keep them; return the last one."""
        prepared = [prepare(self.trials, *selection) for selection in selections.values()]
        chains = [partial(start_from, columns=columns, rows=rows) for columns, rows in prepared]
        state = None
        norm = self.matrix.squared_norm
        for name, state in zip(selections, self.trials.run_chains(chains), strict=True):
            error = math.sqrt(state.squared_error / norm) if norm > 0 else 0.0
            self.records[name] = Start(name, error, state.columns.size, state.rows.size)
            self._keep(name, state, stage)
        return state

    def _keep(self, name: str, state: State, stage: Stage) -> None:
        """Keep a start for its first exchanges; if all take too much memory, drop the worst."""
        self._waiting[name] = state
        self.best.offer(state, stage)
        total = 0
        for other, held in sorted(self._waiting.items(), key=lambda item: item[1].squared_error):
            total += held.n_bytes
            if total > _MEMORY_OF_STARTS:
                del self._waiting[other]

    def _start_from_nmf(self, stage: Stage) -> None:
        """Starts from the ideal vectors of the best selection, and from the factors of a short NMF started there."""
        size = self.limits.size
        seconds = seconds_of_blocks(self.matrix, 4.0 * stage.nmf_iterations * self._entries * size, size)
        if not self.matrix.in_memory or self.best.exact or not self.trials.work.left():
            return
        if seconds > 3 * AFFORDABLE * stage.work:
            return
        self.trials.work.spent += seconds
        W, H = short_nmf(self.matrix, self.best.state.left, self.best.state.right, stage.nmf_iterations)
        name = f"nmf ({stage.name})"
        state = self._start(stage, {name: matched_factors(self.matrix, W, H, self.limits)})
        assert state is not None
        self._keep(name, alternate(self.trials, state, self._entries), stage)

    def distinct(self, stage: Stage) -> list[State]:
        """The best so far and the starts that wait, best first; those close to the best are fitted well."""
        states = {frozenset(state.factors()): state for state in (self.best.state, *self._waiting.values())}
        self._waiting.clear()
        for factors, state in states.items():
            if state.squared_error <= _CLOSE * self.best.state.squared_error:
                states[factors] = self.trials.polish(state)
                self.best.offer(states[factors], stage)
        return sorted(states.values(), key=by_error)


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


def _title(name: str, n_columns: int, limits: Limits) -> str:
    if n_columns == limits.size:
        return f"{name} on columns"
    return f"{name} on rows" if n_columns == 0 else f"{name} on {n_columns} columns and {limits.size - n_columns} rows"


def _on_both_sides(
    matrix: Matrix, limits: Limits, *, choose: Callable[..., Selection], n_columns: int
) -> tuple[Indices, Indices]:
    """A method for one side, on columns and on rows independently."""
    n_rows = limits.size - n_columns
    none = np.empty(0, dtype=np.intp)
    columns = choose(matrix, n_columns, axis="columns", limits=limits).columns if n_columns else none
    rows = choose(matrix, n_rows, axis="rows", limits=limits).rows if n_rows else none
    return columns, rows


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


def prepare(trials: Trials, columns: Indices, rows: Indices) -> tuple[Indices, Indices]:
    """The allowed indices of a selection plus the required ones, within the limits; they become candidates."""
    limits, matrix = trials.limits, trials.candidates.matrix
    kept: dict[Axis, Indices] = {}
    for axis, indices in zip(COLUMNS_AND_ROWS, (columns, rows), strict=True):
        usable = (matrix.along(axis).squared_column_norms[indices] > 0) & ~limits.excluded(axis)[indices]
        included = limits.included(axis)
        kept[axis] = np.concatenate([included, indices[usable & ~np.isin(indices, included)]])[: limits.most(axis)]
    room = limits.size - max(limits.least_rows, min(kept["rows"].size, limits.most_rows))
    n_columns = min(kept["columns"].size, max(room, limits.least_columns, limits.included_columns.size))
    n_rows = min(kept["rows"].size, limits.size - max(n_columns, limits.least_columns))
    columns, rows = kept["columns"][:n_columns], kept["rows"][:n_rows]
    trials.candidates.include(columns, rows)
    return columns, rows


def start_from(trials: Trials, columns: Indices, rows: Indices) -> State:
    """The state of a selection that `prepare` has returned, with its weights fitted, completed by pursuit."""
    state = trials.candidates.state(columns, rows)
    _solve_one_side(trials, state)
    state = grow(trials, trials.polish_or_descend(state, _FIT_ROUNDS, in_place=True), well=True)
    return _with_least(trials, state)


def _solve_one_side(trials: Trials, state: State) -> None:
    """Exact weights of the columns without the rows, or of the rows if there are no columns, in place."""
    chosen = state.columns if state.columns.size else state.rows
    X, gram, linear = chosen.weights, chosen.side.gram, chosen.side.linear
    if chosen.size and np.linalg.eigvalsh(gram)[0] > _CONDITIONED:
        for start in range(0, X.shape[0], _ROWS_AT_A_TIME):
            block = slice(start, start + _ROWS_AT_A_TIME)
            nonnegative_quadratic(X[block], gram, -linear[block])
        trials.work.spent += nominal_seconds(sweeps=0.5 * X.size * chosen.size**2)


def _with_least(trials: Trials, state: State) -> State:
    """The selection, filled with the longest candidates up to the smallest allowed number of each.

    Pursuit may stop before the limits are met, because nothing is left to explain.
    """
    limits, squared_error = trials.limits, state.squared_error
    for axis, least in zip(COLUMNS_AND_ROWS, (limits.least_columns, limits.least_rows), strict=True):
        side, own = trials.candidates.on(axis), state.on(axis)
        others = side.indices[np.argsort(-side.lengths, kind="stable")]
        added = others[~np.isin(others, own.indices)][: max(0, least - own.size)]
        if added.size:
            weights = np.hstack([own.weights, np.zeros((own.weights.shape[0], added.size))])
            state = state.replaced(axis, side.chosen(np.append(own.indices, added), weights), squared_error)
    return state
