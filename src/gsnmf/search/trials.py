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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from gsnmf.kernels.exchange import coupled, descend_rows, exchange_scores
from gsnmf.kernels.threads import n_threads_allowed, single_threaded_blas
from gsnmf.search.candidates import Candidates, CandidateSide, Fit
from gsnmf.search.work import Work, nominal_seconds
from gsnmf.selection.constraints import Limits
from gsnmf.support.arrays import Axis, Doubles, Flags
from gsnmf.weights.joint import JointProblem, solve_joint

BATCH = 4
"""How many trials are fitted, by all threads together, before the best of them is taken."""

_LARGE = 1 << 21
"""Above this number of entries in both factors, the threads share one trial, and trials are made one by one."""
_BLOCK = 1 << 22
"""How many array entries are formed at a time."""
_MOVED = 40
"""Multiplications that take as long as writing and reading one number of a large array."""
_NEARLY_EXACT = 1e-6
"""Part of the squared norm that coordinate descent does not come below in a few rounds, even if the fit is exact."""
_SETTLED = 1e-6
_POLISH_ITERATIONS = 30
_POLISH_PRODUCTS = 60.0
"""Products that take as long as one iteration of `polished`."""
_CHEAP = 0.005
"""Fraction of the work that polishing may take and still count as cheap."""
_QUICKEST, _SLOWEST = 0.7, 0.84
"""Bounds on the expected decrease of the next round, as a fraction of the last one."""


@dataclass(frozen=True)
class Fitted:
    """A selection with its weights and the products of its columns and rows."""

    fit: Fit
    problem: JointProblem

    @property
    def squared_error(self) -> float:
        """Squared error of these weights."""
        return self.fit.squared_error

    @property
    def size(self) -> int:
        """Total number of columns and rows."""
        return self.fit.columns.size + self.fit.rows.size

    @property
    def large(self) -> bool:
        """Whether one trial keeps all threads busy, and several at a time would take too much memory."""
        return bool(self.size * (self.fit.P.shape[0] + self.fit.Q.shape[0]) >= _LARGE)

    @property
    def n_bytes(self) -> int:
        """Memory of the weights and of the products."""
        problem = self.problem
        arrays = (self.fit.P, self.fit.Q, problem.C, problem.R, problem.linear_P, problem.linear_Q)
        return sum(array.nbytes for array in arrays)

    @property
    def left(self) -> Doubles:
        """W, shape (m, r)."""
        return np.hstack([self.problem.C, self.fit.Q])

    @property
    def right(self) -> Doubles:
        """H, shape (r, n)."""
        return np.vstack([self.fit.P.T, self.problem.R.T])

    def across(self, axis: Axis) -> tuple[Doubles, Doubles]:
        """The other side of all factors along an axis, column factors first: weights or rows for columns."""
        return (self.fit.P, self.problem.R) if axis == "columns" else (self.problem.C, self.fit.Q)

    def identity(self, position: int) -> tuple[Axis, int]:
        """Axis and index of a factor; columns come first."""
        n_columns = self.fit.columns.size
        if position < n_columns:
            return "columns", int(self.fit.columns[position])
        return "rows", int(self.fit.rows[position - n_columns])

    def identities(self) -> list[tuple[Axis, int]]:
        """Axes and indices of all factors."""
        return [self.identity(position) for position in range(self.size)]


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


def by_error(fitted: Fitted) -> float:
    """The key that sorts selections by their errors."""
    return fitted.squared_error


class Trials:
    """Makes trials among candidates, within limits, and counts the work and the exchanges."""

    def __init__(self, candidates: Candidates, limits: Limits, work: Work) -> None:
        self.candidates = candidates
        self.limits = limits
        self.work = work
        self.tried = 0
        self.kept = 0
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep threads for trials within the block."""
        n_threads = min(BATCH, n_threads_allowed())
        with single_threaded_blas():
            if n_threads == 1:
                yield
                return
            with ThreadPoolExecutor(n_threads) as pool:
                self._pool = pool
                try:
                    yield
                finally:
                    self._pool = None

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
        self, fitted: Fitted, rounds: int, *, goal: float = math.inf, tolerance: float = _SETTLED, share: bool = True
    ) -> Fitted:
        """Lower the error by rounds of coordinate descent, as long as ``goal`` is in reach."""
        P, Q = fitted.fit.P.copy(), fitted.fit.Q.copy()
        threads = share and fitted.large
        error, operations = descend_jointly(
            fitted.problem,
            P,
            Q,
            squared_error=fitted.squared_error,
            goal=goal,
            max_rounds=rounds,
            tolerance=tolerance,
            threads=threads,
        )
        self.work.sweeps(operations)
        return Fitted(replace(fitted.fit, P=P, Q=Q, squared_error=error), fitted.problem)

    def polished(self, fitted: Fitted, tolerance: float = 1e-3, max_iterations: int = _POLISH_ITERATIONS) -> Fitted:
        """Weights that violate the optimality conditions by little."""
        P, Q = fitted.fit.P.copy(), fitted.fit.Q.copy()
        error, _, iterations = solve_joint(fitted.problem, P, Q, tolerance, max_iterations)
        self.work.products(_polish_products(fitted, iterations))
        if error >= fitted.squared_error:
            return fitted
        return Fitted(replace(fitted.fit, P=P, Q=Q, squared_error=error), fitted.problem)

    def well_fitted(self, fitted: Fitted, rounds: int) -> Fitted:
        """`polished` where that is cheap, `refitted` elsewhere.

        Rounds of coordinate descent come close to the exact weights of one side soon, but slowly to those of columns
        and rows together, whose error they overestimate.
        """
        seconds = nominal_seconds(products=_polish_products(fitted, _POLISH_ITERATIONS))
        return self.polished(fitted) if seconds <= _CHEAP * self.work.limit else self.refitted(fitted, rounds)

    def nearly_exact(self, fitted: Fitted) -> bool:
        """Whether so little is left unexplained that short fits cannot tell which trial explains all of it."""
        return fitted.squared_error <= _NEARLY_EXACT * self.candidates.matrix.squared_norm

    def all(self, starts: Sequence[Fitted], rounds: int, goal: float) -> list[Fitted]:
        """`refitted` of several selections, at the same time where there are threads."""

        def run(start: Fitted) -> Fitted:
            return self.refitted(start, rounds, goal=goal, share=self._pool is None)

        self.tried += len(starts)
        self.work.calls(len(starts))
        self.work.products(sum(_MOVED * (start.fit.P.size + start.fit.Q.size) for start in starts))
        return list(self._pool.map(run, starts) if self._pool and len(starts) > 1 else map(run, starts))

    def batch_size(self, fitted: Fitted) -> int:
        """How many trials to make at a time."""
        return 1 if fitted.large else BATCH

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
            products=n_candidates * (size * (m + n) + _MOVED * length), scores=n_candidates * size * length
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
        n_candidates, size = coefficients.shape
        length = side.products.shape[1]
        scores = np.zeros(coefficients.shape)
        for across in _blocks(length, size):
            right = np.ascontiguousarray(np.hstack([factors[across] for factors in fitted.across(axis)]).T)
            for part in _blocks(n_candidates, right.shape[1]):
                slopes = side.products[part, across] - coefficients[part] @ right
                scores[part] += exchange_scores(slopes, coefficients[part], right)
        self.work.spent += self._seconds_of_scores(axis, size)
        return scores / side.lengths[:, None] ** 2


def _polish_products(fitted: Fitted, iterations: int) -> float:
    P, Q = fitted.fit.P, fitted.fit.Q
    r1, r2 = P.shape[1], Q.shape[1]
    once = float(P.size * r1 + Q.size * r2 + 2 * (P.size * r2 + Q.size * r1))
    return _POLISH_PRODUCTS * (iterations + 1) * once


def _blocks(length: int, width: int) -> Iterator[slice]:
    """Slices of an axis that hold about `_BLOCK` entries each, at ``width`` entries per position."""
    step = max(1, _BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, length, step))


def _column_dots(A: Doubles, B: Doubles) -> Doubles:
    return np.asarray(np.einsum("ij,ij->j", A, B))


def descend_jointly(
    problem: JointProblem,
    P: Doubles,
    Q: Doubles,
    *,
    squared_error: float,
    goal: float,
    max_rounds: int,
    tolerance: float,
    threads: bool,
) -> tuple[float, float]:
    """Improve weights in place by coordinate descent on P and on Q in turn, as long as a goal is in reach.

    Parameters
    ----------
    problem : JointProblem
    P, Q : arrays, shape (n, r1) and (m, r2), in C order
    squared_error : float
        That of the given weights, or infinity.
    goal : float
        Stop once the squared error, judging by its decrease so far, will not fall below this.
    max_rounds : int
        Limit on the rounds, two sweeps over P and two over Q each.
    tolerance : float
        Stop once a round lowers the squared error by less than this fraction.
    threads : bool
        Whether rows of weights may be shared among threads.

    Returns
    -------
    tuple
        The squared error, and the multiplications spent.
    """
    if P.shape[1] + Q.shape[1] == 0:
        return problem.squared_norm, 0.0
    both = P.shape[1] > 0 and Q.shape[1] > 0
    error, decrease, operations = squared_error, math.inf, 0.0
    for _ in range(max_rounds):
        of_P = of_Q = 0.0
        if P.shape[1]:
            coupling = _coupling(Q, problem.C, problem.R, both, P.shape, threads)
            plain, whole, slopes, count = descend_rows(P, problem.linear_P, *coupling, problem.gram_C, threads=threads)
            of_P = 2.0 * plain + slopes - whole
            operations += count
        if Q.shape[1]:
            coupling = _coupling(P, problem.R, problem.C, both, Q.shape, threads)
            plain, whole, slopes, count = descend_rows(Q, problem.linear_Q, *coupling, problem.gram_R, threads=threads)
            of_Q = whole + slopes
            operations += count
        operations += both * (P.size * Q.shape[1] + Q.size * P.shape[1])
        previous, error = error, max(0.0, problem.squared_norm + of_P + of_Q)
        before, decrease = decrease, previous - error
        if decrease <= tolerance * error:
            break
        if decrease < math.inf:  # the error falls roughly geometrically: a generous estimate of what is left to gain
            ratio = min(_SLOWEST, max(_QUICKEST, decrease / before))
            if error - decrease * ratio / (1.0 - ratio) > goal:
                break
    return error, operations


def _coupling(
    others: Doubles, theirs: Doubles, own: Doubles, both: bool, shape: tuple[int, ...], threads: bool
) -> tuple[Doubles, Doubles]:
    """What the other weights add to the linear term, as a product of two factors."""
    if not both:
        return np.empty((shape[0], 0)), np.empty((0, shape[1]))
    return own, coupled(others, theirs, threads=threads)


def _grown(fit: Fit, exchange: Exchange, index: int, error: float) -> Fit:
    weights = exchange.weights
    if exchange.axis == "columns":
        return Fit(np.append(fit.columns, index), fit.rows, np.column_stack([fit.P, weights]), fit.Q.copy(), error)
    return Fit(fit.columns, np.append(fit.rows, index), fit.P.copy(), np.column_stack([fit.Q, weights]), error)


def _replaced(fitted: Fitted, side: CandidateSide, exchange: Exchange, at: int, index: int) -> Fitted:
    """Replace column ``at`` of one side; all arrays of the other side stay as they are."""
    fit, problem = fitted.fit, fitted.problem
    column = exchange.axis == "columns"
    indices = (fit.columns if column else fit.rows).copy()
    weights = (fit.P if column else fit.Q).copy()
    vectors = (problem.C if column else problem.R).copy()
    linear = (problem.linear_P if column else problem.linear_Q).copy()
    lengths = (problem.column_lengths if column else problem.row_lengths).copy()
    gram = (problem.gram_C if column else problem.gram_R).copy()
    length, products = side.lengths[exchange.place], side.products[exchange.place]
    indices[at], lengths[at], weights[:, at] = index, length, exchange.weights
    vectors[:, at] = side.vectors.as_columns(np.array([exchange.place]))[:, 0] / length
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
