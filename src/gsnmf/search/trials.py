r"""Trials of a search: what an exchange would gain, short fits of the selections that it leads to, and the best so far.

A selection with weights is a factorization W H of the matrix, with W = [C, Q] and H = [P, R]' for chosen columns C and
rows R of unit length. Exchanging factor k for candidate column j, while all other weights stay fixed, lowers the
squared error by

.. math:: \frac{1}{\|M_j\|^2} \sum_l \max\bigl(0, M_j^T E_l + (M_j^T W_k) H_{kl}\bigr)^2
          - \bigl(\|E + W_k H_k\|^2 - \|E\|^2\bigr) .

The slopes M'E of all candidates are computed once and serve every k: scoring all exchanges costs little more than
scoring the candidates for one of them. The best are then fitted, starting from the current weights, by a few rounds of
coordinate descent, which end as soon as the goal is out of reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from gsnmf._kernels.exchange import exchange_scores
from gsnmf._parallel import single_threaded_blas
from gsnmf.constraints import Limits
from gsnmf.search.candidates import Candidates
from gsnmf.search.effort import Stage, Work, nominal_seconds
from gsnmf.search.state import State, descend_jointly
from gsnmf.support.arrays import Axis, Doubles, Flags, Indices
from gsnmf.support.progress import log_progress

BATCH = 4
"""How many trials are fitted, by all threads together, before the best of them is taken."""

_CHAINS = 4
"""How many searches go on side by side; the same on every machine, since each is judged only at its end."""
_SMALL = 1 << 19
"""Up to this number of entries in both factors, several searches at a time take little memory."""
_MOST_THREADS = 16
"""As many as four chains with four trials each can use."""

_MOVED = 40
"""Multiplications that take as long as writing and reading one number of a large array."""
_READ = 10
"""Multiplications that take as long as reading one number of a large array."""
_NEARLY_EXACT = 1e-6
"""Part of the squared norm that coordinate descent does not come below in a few rounds, even if the fit is exact."""
_SETTLED = 1e-6
"""Rounds of descent end when one lowers the squared error by less than this fraction, which no exchange counts as
progress."""
_POLISH_ITERATIONS = 30
"""Limit on the iterations of `polish`; the final solve goes on from there."""
_POLISH_PRODUCTS = 60.0
"""Products that take as long as one iteration of `polish`."""
_CHEAP = 0.005
"""Fraction of the work that polishing may take and still count as cheap."""

_EXACT = 1e-12
"""Relative squared error below which the fit counts as exact."""
_THOROUGHLY = 1e-6, 200
"""Tolerance and iterations with which the weights of a nearly exact selection tell whether it is exact."""
_PROMISING = 1.05
"""Columns alone, or rows alone, get exchanges if their squared error is at most this many times the best."""


class Trials:
    """Makes trials among candidates, within limits, and counts the work and the exchanges."""

    def __init__(self, candidates: Candidates, limits: Limits, work: Work) -> None:
        self.candidates = candidates
        self.limits = limits
        self.work = work
        self.tried = 0
        self.kept = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep threads for trials, chains and scores within the block."""
        with single_threaded_blas(), self.candidates.threads.limited_to(_MOST_THREADS):
            yield

    def run_chains(self, chains: Sequence[Callable[[Trials], State]]) -> list[State]:
        """Run independent searches at the same time where there are threads, each with trials of its own.

        None sees the work of the others: a limit holds for the work before plus its own. So what they find does not
        depend on the number of threads.
        """
        forks = [Trials(self.candidates, self.limits, self.work.fork()) for _ in chains]

        def run(number: int) -> State:
            with self.work.clock.stopping():
                return chains[number](forks[number])

        with self.work.clock.stopping():
            found = self.candidates.threads.map(run, range(len(chains)))
        self.work.join([fork.work for fork in forks])
        self.tried += sum(fork.tried for fork in forks)
        self.kept += sum(fork.kept for fork in forks)
        return found

    def n_chains(self) -> int:
        """How many chains to begin at a time: several only if their memory is small."""
        n_entries = self.limits.size * sum(self.candidates.matrix.shape)
        return _CHAINS if n_entries <= _SMALL else 1

    @contextmanager
    def within(self, limits: Limits) -> Iterator[None]:
        """Obey tighter limits within the block."""
        outside, self.limits = self.limits, limits
        try:
            yield
        finally:
            self.limits = outside

    def open_axes(self, state: State) -> tuple[Axis, ...]:
        """Axes along which one more index leaves room for what the limits still require."""
        return self.limits.open_axes(state.columns.size, state.rows.size)

    # fits

    def descend(
        self,
        state: State,
        rounds: int,
        *,
        tolerance: float = _SETTLED,
        goal: float = math.inf,
        in_place: bool = False,
    ) -> State:
        """Lower the error by rounds of coordinate descent, as long as ``goal`` is in reach.

        The weights of the given state are lost if it may be changed in place, which saves a copy.
        """
        better, operations = _descend(state, rounds, goal, tolerance, in_place=in_place)
        self.work.spent += nominal_seconds(descents=operations)
        return better

    def polish(self, state: State, tolerance: float = 1e-3, max_iterations: int = _POLISH_ITERATIONS) -> State:
        """Weights that violate the optimality conditions by little."""
        polished, iterations = state.solved(tolerance, max_iterations)
        self.work.spent += nominal_seconds(products=_polish_products(state, iterations))
        return state if polished.squared_error >= state.squared_error else polished

    def polish_or_descend(self, state: State, rounds: int, *, in_place: bool = False) -> State:
        """`polish` where that is cheap, `descend` elsewhere, perhaps in place.

        Rounds of coordinate descent come close to the exact weights of one side soon, but slowly to those of columns
        and rows together, whose error they overestimate.
        """
        seconds = nominal_seconds(products=_polish_products(state, _POLISH_ITERATIONS))
        if seconds <= _CHEAP * self.work.limit:
            return self.polish(state)
        return self.descend(state, rounds, in_place=in_place)

    def nearly_exact(self, state: State) -> bool:
        """Whether so little is left unexplained that short fits cannot tell which trial explains all of it."""
        return state.squared_error <= _NEARLY_EXACT * state.squared_norm

    def try_all(self, starts: Sequence[State], rounds: int, goal: float = math.inf) -> list[State]:
        """`descend` from several states, at the same time where there are threads."""
        self.tried += len(starts)
        moved = sum(_MOVED * (start.columns.weights.size + start.rows.weights.size) for start in starts)
        self.work.spent += nominal_seconds(trials=len(starts)) + nominal_seconds(products=moved)
        found = self.candidates.threads.map(lambda start: _descend(start, rounds, goal, _SETTLED), starts)
        self.work.spent += nominal_seconds(descents=sum(operations for _, operations in found))
        return [state for state, _ in found]

    def batch_size(self, state: State) -> int:
        """How many trials to make at a time."""
        return 1 if state.large else BATCH

    # exchanges

    def best_candidates(self, state: State, count: int) -> list[tuple[Axis, int]]:
        """The allowed candidates with the largest guaranteed decrease of the error, as pairs of axis and index."""
        axes = self.open_axes(state)
        best = self.candidates.best(state, count, axes) if axes else []
        m, n = self.candidates.matrix.shape
        of_columns, of_rows = self.candidates.columns.indices.size, self.candidates.rows.indices.size
        products = (of_columns * n + of_rows * m) * (state.size + 20.0)
        self.work.spent += nominal_seconds(products=products) + nominal_seconds(trials=1)
        return best

    def gains(self, state: State) -> Doubles:
        """By how much every exchange lowers the squared error while all other weights stay fixed.

        Shape (candidate columns + candidate rows, r); minus infinity where an exchange is not allowed.
        """
        candidates, limits = self.candidates, self.limits
        n_columns = candidates.columns.indices.size
        gains = np.vstack([self._scores(state, "columns"), self._scores(state, "rows")])
        gains -= self.worths(state)
        is_column = np.arange(state.size) < state.columns.size
        of_columns = np.arange(gains.shape[0]) < n_columns
        if state.columns.size == limits.most_columns:
            gains[np.ix_(of_columns, ~is_column)] = -np.inf
        if state.rows.size == limits.most_rows:
            gains[np.ix_(~of_columns, is_column)] = -np.inf
        gains[:, self.fixed(state)] = -np.inf
        gains[candidates.columns.positions(state.columns.indices)] = -np.inf
        gains[n_columns + candidates.rows.positions(state.rows.indices)] = -np.inf
        return gains

    def _scores(self, state: State, axis: Axis) -> Doubles:
        scores = self.candidates.sums_over_slopes(state, axis, exchange_scores)
        self.work.spent += self._seconds_of_scores(axis, state.size)
        return scores

    def seconds_of_gains(self, size: int) -> float:
        """Nominal seconds of `gains` of a selection of this size."""
        return self._seconds_of_scores("columns", size) + self._seconds_of_scores("rows", size)

    def _seconds_of_scores(self, axis: Axis, size: int) -> float:
        m, n = self.candidates.matrix.shape
        length = n if axis == "columns" else m
        n_candidates = float(self.candidates.on(axis).indices.size)
        return nominal_seconds(
            products=n_candidates * (size * (m + n) + _READ * length), scores=n_candidates * size * length
        )

    def fixed(self, state: State) -> Flags:
        """Which factors must stay."""
        columns = np.isin(state.columns.indices, self.limits.included_columns)
        return np.concatenate([columns, np.isin(state.rows.indices, self.limits.included_rows)])

    def worths(self, state: State) -> Doubles:
        """By how much the squared error rises when a factor is removed and all other weights stay."""
        weights = state.columns.weights, state.rows.weights
        gradients = state.problem.gradient(*weights)
        return np.concatenate(
            [_column_dots(X, X) - 2.0 * _column_dots(X, slopes) for X, slopes in zip(weights, gradients, strict=True)]
        )

    def exchange(self, state: State, place: int, position: int, gain: float) -> State:
        """The state after one of the exchanges in `gains`, with first weights of the candidate, not fitted."""
        axis, at = self.candidates.candidate(place)
        weights = self.candidates.best_weights(state, axis, at, without=position)
        error = state.squared_error - gain
        r1 = state.columns.size
        if (position < r1) != (axis == "columns"):
            return self.candidates.grown(self.candidates.without(state, [position]), axis, at, weights, error)
        own = position if axis == "columns" else position - r1
        return state.replaced(axis, self.candidates.on(axis).exchanged(state.on(axis), own, at, weights), error)


def _descend(
    state: State, rounds: int, goal: float, tolerance: float, *, in_place: bool = False
) -> tuple[State, float]:
    """The state with weights of a smaller error, and the multiplications that these took."""
    P, Q = state.columns.weights, state.rows.weights
    if not in_place:
        P, Q = P.copy(), Q.copy()
    error, operations = descend_jointly(
        state.problem,
        P,
        Q,
        squared_error=state.squared_error,
        goal=goal,
        max_rounds=rounds,
        tolerance=tolerance,
        threads=state.large,
    )
    return state.reweighted(P, Q, error), operations


def _polish_products(state: State, iterations: int) -> float:
    P, Q = state.columns.weights, state.rows.weights
    r1, r2 = P.shape[1], Q.shape[1]
    once = float(P.size * r1 + Q.size * r2 + 2 * (P.size * r2 + Q.size * r1))
    return _POLISH_PRODUCTS * (iterations + 1) * once


def _column_dots(A: Doubles, B: Doubles) -> Doubles:
    return np.asarray(np.einsum("ij,ij->j", A, B))


class Incumbent:
    """The best state of a search so far; logs the progress towards the total work."""

    def __init__(self, trials: Trials, total: float) -> None:
        self.trials = trials
        self._limits = trials.limits
        self._total = total
        self._state: State | None = None
        self.extremes: dict[int, tuple[float, Indices, Indices]] = {}
        """Squared error, columns and rows of the best selection with as few, and with as many columns as allowed, by
        their number; their weights would take much memory."""

    @property
    def known(self) -> bool:
        """Whether there is one yet."""
        return self._state is not None

    @property
    def state(self) -> State:
        """The best state so far."""
        assert self._state is not None
        return self._state

    @property
    def exact(self) -> bool:
        """Whether it explains the whole matrix."""
        return self._state is not None and self._state.squared_error <= _EXACT * self._state.squared_norm

    def offer(self, state: State, stage: Stage) -> None:
        """Keep a state if it is the best so far."""
        if self._state is None or state.squared_error < self._state.squared_error:
            nearly_exact = self.trials.nearly_exact(state)
            self._state = self.trials.polish(state, *_THOROUGHLY) if nearly_exact else state
        self._remember_extreme(state)
        self.report(stage)

    def _remember_extreme(self, state: State) -> None:
        limits, n_columns = self._limits, state.columns.size
        if state.size < limits.size or limits.least_columns == limits.most_columns:
            return
        if n_columns in (limits.least_columns, limits.most_columns):
            known = self.extremes.get(n_columns)
            if known is None or state.squared_error < known[0]:
                self.extremes[n_columns] = state.squared_error, state.columns.indices, state.rows.indices

    def report(self, stage: Stage) -> None:
        """Log how much work is done and the best quality."""
        if self._state is not None:
            norm = self._state.squared_norm
            quality = 1.0 - math.sqrt(self._state.squared_error / norm) if norm > 0 else 1.0
            log_progress(stage.name, min(self.trials.work.spent, self._total), self._total, quality)

    def promising_extremes(self) -> list[int]:
        """The numbers of columns of extreme selections that exchanges may make the best."""
        enough = _PROMISING * self.state.squared_error
        return sorted(number for number, (squared_error, _, _) in self.extremes.items() if squared_error <= enough)
