r"""Trials of a search: what an exchange would gain, and short fits of the selections that it leads to.

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
from dataclasses import dataclass, replace

import numpy as np

from gsnmf._kernels.exchange import exchange_scores
from gsnmf._parallel import single_threaded_blas
from gsnmf.constraints import Limits
from gsnmf.search.candidates import Candidates, CandidateSide, Fit
from gsnmf.search.descent import descend_jointly
from gsnmf.search.fitted import Fitted
from gsnmf.search.slopes import sums_over_slopes
from gsnmf.search.work import Work, nominal_seconds
from gsnmf.support.arrays import Axis, Doubles, Flags, Indices, Vectors
from gsnmf.weights.joint import solve_joint

BATCH = 4
"""How many trials are fitted, by all threads together, before the best of them is taken."""

_CHAINS = 4
"""How many searches go on side by side; the same on every machine, since each is judged only at its end."""
_SMALL = 1 << 19
"""Up to this number of entries in both factors, several searches at a time take little memory."""
_MOST_THREADS = 16

_MOVED = 40
"""Multiplications that take as long as writing and reading one number of a large array."""
_READ = 10
"""Multiplications that take as long as reading one number of a large array."""
_NEARLY_EXACT = 1e-6
"""Part of the squared norm that coordinate descent does not come below in a few rounds, even if the fit is exact."""
_SETTLED = 1e-6
_POLISH_ITERATIONS = 30
_POLISH_PRODUCTS = 60.0
"""Products that take as long as one iteration of `polished`."""
_CHEAP = 0.005
"""Fraction of the work that polishing may take and still count as cheap."""


@dataclass(frozen=True)
class Exchange:
    """Factor at ``position`` for the candidate ``place`` of an axis."""

    position: int
    axis: Axis
    place: int
    gain: float
    """Decrease of the squared error if no other weight changes."""
    weights: Doubles
    """First weights of the candidate, in the units of `JointProblem`."""


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

    def chains(self, tasks: Sequence[Callable[[Trials], Fitted]]) -> list[Fitted]:
        """Do independent tasks at the same time where there are threads, each with trials of its own.

        No task sees the work of the others: a limit holds for the work before plus its own. So what they find does not
        depend on the number of threads.
        """
        forks = [Trials(self.candidates, self.limits, self.work.fork()) for _ in tasks]
        with self.work.clock.stopping():
            found = self.candidates.threads.map(_done, list(zip(tasks, forks, strict=True)))
        self.work.join([fork.work for fork in forks])
        self.tried += sum(fork.tried for fork in forks)
        self.kept += sum(fork.kept for fork in forks)
        return found

    @contextmanager
    def within(self, limits: Limits) -> Iterator[None]:
        """Obey tighter limits within the block."""
        outside, self.limits = self.limits, limits
        try:
            yield
        finally:
            self.limits = outside

    # fits

    def of(self, fit: Fit) -> Fitted:
        """The fit with its products."""
        return Fitted(fit, self.candidates.problem(fit.columns, fit.rows))

    def refitted(
        self,
        fitted: Fitted,
        rounds: int,
        *,
        goal: float = math.inf,
        tolerance: float = _SETTLED,
        in_place: bool = False,
    ) -> Fitted:
        """Lower the error by rounds of coordinate descent, as long as ``goal`` is in reach.

        The weights of the given selection are lost if it may be changed in place, which saves a copy.
        """
        better, operations = _descended(fitted, rounds, goal, tolerance, in_place=in_place)
        self.work.descents(operations)
        return better

    def polished(self, fitted: Fitted, tolerance: float = 1e-3, max_iterations: int = _POLISH_ITERATIONS) -> Fitted:
        """Weights that violate the optimality conditions by little."""
        P, Q = fitted.fit.P.copy(), fitted.fit.Q.copy()
        error, _, iterations = solve_joint(fitted.problem, P, Q, tolerance, max_iterations)
        self.work.products(_polish_products(fitted, iterations))
        if error >= fitted.squared_error:
            return fitted
        return Fitted(replace(fitted.fit, P=P, Q=Q, squared_error=error), fitted.problem)

    def well_fitted(self, fitted: Fitted, rounds: int, *, in_place: bool = False) -> Fitted:
        """`polished` where that is cheap, `refitted` elsewhere, perhaps in place.

        Rounds of coordinate descent come close to the exact weights of one side soon, but slowly to those of columns
        and rows together, whose error they overestimate.
        """
        seconds = nominal_seconds(products=_polish_products(fitted, _POLISH_ITERATIONS))
        if seconds <= _CHEAP * self.work.limit:
            return self.polished(fitted)
        return self.refitted(fitted, rounds, in_place=in_place)

    def nearly_exact(self, fitted: Fitted) -> bool:
        """Whether so little is left unexplained that short fits cannot tell which trial explains all of it."""
        return fitted.squared_error <= _NEARLY_EXACT * self.candidates.matrix.squared_norm

    def all(self, starts: Sequence[Fitted], rounds: int, goal: float) -> list[Fitted]:
        """`refitted` of several selections, at the same time where there are threads."""
        self.tried += len(starts)
        self.work.calls(len(starts))
        self.work.products(sum(_MOVED * (start.fit.P.size + start.fit.Q.size) for start in starts))
        found = self.candidates.threads.map(lambda start: _descended(start, rounds, goal, _SETTLED), starts)
        self.work.descents(sum(operations for _, operations in found))
        return [fitted for fitted, _ in found]

    def batch_size(self, fitted: Fitted) -> int:
        """How many trials to make at a time."""
        return 1 if fitted.large else BATCH

    def n_chains(self) -> int:
        """How many tasks of `chains` to begin at a time: several only if their memory is small."""
        n_entries = self.limits.size * sum(self.candidates.matrix.shape)
        return _CHAINS if n_entries <= _SMALL else 1

    # exchanges

    def gains(self, fitted: Fitted) -> Doubles:
        """By how much every exchange lowers the squared error while all other weights stay fixed.

        Shape (candidate columns + candidate rows, r); minus infinity where an exchange is not allowed.
        """
        n_columns = self.candidates.columns.indices.size
        gains = np.vstack([self._scores(fitted, "columns"), self._scores(fitted, "rows")])
        gains -= self.worths(fitted)
        positions = np.arange(fitted.size)
        is_column = positions < fitted.fit.columns.size
        of_candidates = np.arange(gains.shape[0]) < n_columns
        if fitted.fit.columns.size == self.limits.most_columns:
            gains[np.ix_(of_candidates, ~is_column)] = -np.inf
        if fitted.fit.rows.size == self.limits.most_rows:
            gains[np.ix_(~of_candidates, is_column)] = -np.inf
        gains[:, self.fixed(fitted)] = -np.inf
        gains[self.candidates.columns.positions(fitted.fit.columns)] = -np.inf
        gains[n_columns + self.candidates.rows.positions(fitted.fit.rows)] = -np.inf
        return gains

    def seconds_of_gains(self, size: int) -> float:
        """Nominal seconds of `gains` of a selection of this size."""
        return self._seconds_of_scores("columns", size) + self._seconds_of_scores("rows", size)

    def _seconds_of_scores(self, axis: Axis, size: int) -> float:
        m, n = self.candidates.matrix.shape
        side, length = (self.candidates.columns, n) if axis == "columns" else (self.candidates.rows, m)
        n_candidates = float(side.indices.size)
        return nominal_seconds(
            products=n_candidates * (size * (m + n) + _READ * length), scores=n_candidates * size * length
        )

    def fixed(self, fitted: Fitted) -> Flags:
        """Which factors must stay."""
        columns = np.isin(fitted.fit.columns, self.limits.included_columns)
        return np.concatenate([columns, np.isin(fitted.fit.rows, self.limits.included_rows)])

    def worths(self, fitted: Fitted) -> Doubles:
        """By how much the squared error rises when a factor is removed and all other weights stay."""
        gradients = fitted.problem.gradient(fitted.fit.P, fitted.fit.Q)
        sides = zip((fitted.fit.P, fitted.fit.Q), gradients, strict=True)
        return np.concatenate([_column_dots(X, X) - 2.0 * _column_dots(X, gradient) for X, gradient in sides])

    def exchange(self, fitted: Fitted, place: int, position: int, gain: float) -> Exchange:
        """One entry of `gains` with the first weights of the candidate."""
        n_columns = self.candidates.columns.indices.size
        axis: Axis = "columns" if place < n_columns else "rows"
        at = place if place < n_columns else place - n_columns
        side = self.candidates.columns if axis == "columns" else self.candidates.rows
        coefficients = self._coefficients(fitted, axis, at)
        coefficients[position] = 0.0
        slopes = side.products[at].astype(np.float64)
        first = 0
        for factors in fitted.across(axis):
            last = first + factors.shape[1]
            slopes -= factors @ coefficients[first:last]
            first = last
        return Exchange(position, axis, at, gain, np.maximum(slopes, 0.0) / side.lengths[at])

    def exchanged(self, fitted: Fitted, exchange: Exchange) -> Fitted:
        """The selection after an exchange, with the first weights of the candidate, not fitted."""
        side = self.candidates.columns if exchange.axis == "columns" else self.candidates.rows
        index = int(side.indices[exchange.place])
        n_columns = fitted.fit.columns.size
        if (exchange.position < n_columns) != (exchange.axis == "columns"):
            smaller = self.candidates.without(fitted.fit, exchange.position)
            return self.of(_grown(smaller, exchange, index, fitted.squared_error - exchange.gain))
        at = exchange.position if exchange.axis == "columns" else exchange.position - n_columns
        return _replaced(fitted, side, exchange, at, index)

    def _coefficients(self, fitted: Fitted, axis: Axis, at: int | None = None) -> Doubles:
        """Products of all candidates, or of one, with the factors, column factors first; some are already known."""
        fit, problem = fitted.fit, fitted.problem
        if axis == "columns":
            side = self.candidates.columns
            parts = side.products_with(fit.columns, at) / problem.column_lengths, side.vectors.dot(fit.Q, at)
        else:
            side = self.candidates.rows
            parts = side.vectors.dot(fit.P, at), side.products_with(fit.rows, at) / problem.row_lengths
        return np.concatenate(parts, axis=-1)

    def _scores(self, fitted: Fitted, axis: Axis) -> Doubles:
        side = self.candidates.columns if axis == "columns" else self.candidates.rows
        coefficients = self._coefficients(fitted, axis)
        factors = fitted.across(axis)
        scores = sums_over_slopes(side.products, coefficients, factors, exchange_scores, self.candidates.threads)
        self.work.spent += self._seconds_of_scores(axis, fitted.size)
        return scores / side.lengths[:, None] ** 2


def _done(pair: tuple[Callable[[Trials], Fitted], Trials]) -> Fitted:
    task, trials = pair
    with trials.work.clock.stopping():
        return task(trials)


def _descended(
    fitted: Fitted, rounds: int, goal: float, tolerance: float, *, in_place: bool = False
) -> tuple[Fitted, float]:
    """The selection with weights of a smaller error, and the multiplications that these took."""
    P, Q = fitted.fit.P, fitted.fit.Q
    if not in_place:
        P, Q = P.copy(), Q.copy()
    error, operations = descend_jointly(
        fitted.problem,
        P,
        Q,
        squared_error=fitted.squared_error,
        goal=goal,
        max_rounds=rounds,
        tolerance=tolerance,
        threads=fitted.large,
    )
    return Fitted(replace(fitted.fit, P=P, Q=Q, squared_error=error), fitted.problem), operations


def _polish_products(fitted: Fitted, iterations: int) -> float:
    P, Q = fitted.fit.P, fitted.fit.Q
    r1, r2 = P.shape[1], Q.shape[1]
    once = float(P.size * r1 + Q.size * r2 + 2 * (P.size * r2 + Q.size * r1))
    return _POLISH_PRODUCTS * (iterations + 1) * once


def _column_dots(A: Doubles, B: Doubles) -> Doubles:
    return np.asarray(np.einsum("ij,ij->j", A, B))


def _grown(fit: Fit, exchange: Exchange, index: int, error: float) -> Fit:
    weights = exchange.weights
    if exchange.axis == "columns":
        return Fit(np.append(fit.columns, index), fit.rows, np.column_stack([fit.P, weights]), fit.Q.copy(), error)
    return Fit(fit.columns, np.append(fit.rows, index), fit.P.copy(), np.column_stack([fit.Q, weights]), error)


def _other_vector(vectors: Vectors, side: CandidateSide, indices: Indices, at: int, lengths: Doubles) -> Vectors:
    """The vectors of these indices, given those in which the one at ``at`` is another one."""
    positions = side.positions(indices)
    if not isinstance(vectors, np.ndarray):
        return side.vectors.of_unit_length(positions, lengths)
    vectors = vectors.copy()
    vectors[:, at] = side.vectors.as_columns(positions[at : at + 1])[:, 0] / lengths[at]
    return vectors


def _replaced(fitted: Fitted, side: CandidateSide, exchange: Exchange, at: int, index: int) -> Fitted:
    """Replace column ``at`` of one side; all arrays of the other side stay as they are."""
    fit, problem = fitted.fit, fitted.problem
    column = exchange.axis == "columns"
    indices = (fit.columns if column else fit.rows).copy()
    weights = (fit.P if column else fit.Q).copy()
    linear = (problem.linear_P if column else problem.linear_Q).copy()
    lengths = (problem.column_lengths if column else problem.row_lengths).copy()
    gram = (problem.gram_C if column else problem.gram_R).copy()
    length, products = side.lengths[exchange.place], side.products[exchange.place]
    indices[at], lengths[at], weights[:, at] = index, length, exchange.weights
    vectors = _other_vector(problem.C if column else problem.R, side, indices, at, lengths)
    linear[:, at] = -products / length
    gram[at] = gram[:, at] = products[indices] / (lengths * length)
    if column:
        return Fitted(
            Fit(indices, fit.rows, weights, fit.Q, fitted.squared_error - exchange.gain),
            replace(problem, C=vectors, linear_P=linear, column_lengths=lengths, gram_C=gram),
        )
    return Fitted(
        Fit(fit.columns, indices, fit.P, weights, fitted.squared_error - exchange.gain),
        replace(problem, R=vectors, linear_Q=linear, row_lengths=lengths, gram_R=gram),
    )
