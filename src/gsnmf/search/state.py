"""A state of the search: a selection with its weights, and short fits that improve the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.exchange import cross_product, descend_trial
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.protocol import dense
from gsnmf.support.arrays import Axis, Doubles, Indices, Vectors
from gsnmf.weights.joint import JointProblem, Side, solve_joint, transposed_dot

_LARGE = 1 << 21
"""Above this number of entries in both factors, the threads share one trial, and trials are made one by one."""
_SPARSE_ENTRY = 12
"""Bytes of a stored entry: its value and its index."""
_QUICKEST, _SLOWEST = 0.7, 0.84
"""Bounds on the expected decrease of the next round of descent, as a fraction of the last one."""


@dataclass(frozen=True)
class Chosen:
    """Chosen columns of an m x n matrix with their weights; chosen rows are columns of the transpose."""

    indices: Indices
    weights: Doubles
    """n x r, for columns of unit length."""
    side: Side
    """The columns at unit length, and their products."""

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.indices.size

    @property
    def n_bytes(self) -> int:
        """Memory of the weights and of the products."""
        vectors = self.side.vectors
        of_vectors = _SPARSE_ENTRY * vectors.nnz if sp.issparse(vectors) else vectors.nbytes
        return int(of_vectors + self.weights.nbytes + self.side.linear.nbytes)


@dataclass(frozen=True)
class State:
    """A selection with its weights, which is a factorization W H with W = [C, Q] and H = [P, R]'."""

    columns: Chosen
    rows: Chosen
    squared_error: float
    """Squared error of these weights; infinite if it is not known."""
    squared_norm: float
    """That of the matrix."""

    def on(self, axis: Axis) -> Chosen:
        """The chosen columns, or the chosen rows."""
        return self.columns if axis == "columns" else self.rows

    def replaced(self, axis: Axis, chosen: Chosen, squared_error: float = math.inf) -> State:
        """The state with other columns, or other rows."""
        columns, rows = (chosen, self.rows) if axis == "columns" else (self.columns, chosen)
        return State(columns, rows, squared_error, self.squared_norm)

    def reweighted(self, P: Doubles, Q: Doubles, squared_error: float) -> State:
        """The same selection with other weights."""
        columns, rows = replace(self.columns, weights=P), replace(self.rows, weights=Q)
        return State(columns, rows, squared_error, self.squared_norm)

    @property
    def problem(self) -> JointProblem:
        """The problem whose solutions are the best weights."""
        return JointProblem(self.columns.side, self.rows.side, self.squared_norm)

    @property
    def plain_weights(self) -> tuple[Doubles, Doubles]:
        """Column weights, r1 x n, and row weights, m x r2, of the columns and rows as they are in the matrix."""
        return (self.columns.weights / self.columns.side.lengths).T, self.rows.weights / self.rows.side.lengths

    def solved(self, tolerance: float = 1e-3, max_iterations: int = 30) -> tuple[State, int]:
        """The same selection with weights that violate the optimality conditions by little, and the iterations."""
        P, Q = (np.array(own.weights, order="C") for own in (self.columns, self.rows))
        squared_error, _, n_iterations = solve_joint(self.problem, P, Q, tolerance, max_iterations)
        return self.reweighted(P, Q, squared_error), n_iterations

    @property
    def size(self) -> int:
        """Total number of columns and rows."""
        return self.columns.size + self.rows.size

    @property
    def large(self) -> bool:
        """Whether one trial keeps all threads busy, and several at a time would take too much memory."""
        n_entries = self.size * (self.columns.weights.shape[0] + self.rows.weights.shape[0])
        return bool(n_entries >= _LARGE)

    @property
    def n_bytes(self) -> int:
        """Memory of the weights and of the products."""
        return self.columns.n_bytes + self.rows.n_bytes

    @property
    def left(self) -> Doubles:
        """W, shape (m, r)."""
        return np.hstack([dense(self.columns.side.vectors), self.rows.weights])

    @property
    def right(self) -> Doubles:
        """H, shape (r, n)."""
        return np.vstack([self.columns.weights.T, dense(self.rows.side.vectors).T])

    def across(self, axis: Axis) -> tuple[Vectors, Vectors]:
        """The other side of all factors along an axis, column factors first: weights or rows for columns."""
        if axis == "columns":
            return self.columns.weights, self.rows.side.vectors
        return self.columns.side.vectors, self.rows.weights

    def factor(self, position: int) -> tuple[Axis, int]:
        """Axis and index of a factor; columns come first."""
        if position < self.columns.size:
            return "columns", int(self.columns.indices[position])
        return "rows", int(self.rows.indices[position - self.columns.size])

    def factors(self) -> list[tuple[Axis, int]]:
        """Axes and indices of all factors."""
        return [self.factor(position) for position in range(self.size)]


def by_error(state: State) -> float:
    """Sort key: the squared error of a state."""
    return state.squared_error


def descend_jointly(
    problem: JointProblem,
    P: Doubles,
    Q: Doubles,
    *,
    squared_error: float = math.inf,
    goal: float = math.inf,
    max_rounds: int,
    tolerance: float,
    threads: bool = False,
) -> tuple[float, float]:
    """Improve weights in place by coordinate descent on P and on Q in turn, as long as a goal is in reach.

    Parameters
    ----------
    problem : JointProblem
    P, Q : arrays, shape (n, r1) and (m, r2), in C order
    squared_error : float
        Squared error of the given weights, or infinity.
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
    columns, rows = problem.columns, problem.rows
    both = P.shape[1] > 0 and Q.shape[1] > 0
    error, decrease, operations = squared_error, math.inf, 0.0
    for _ in range(max_rounds):
        of_P = of_Q = 0.0
        if P.shape[1]:
            coupling = _coupling(Q, columns.vectors, rows.vectors, both, P.shape, threads)
            plain, whole, slopes, count = descend_trial(P, columns.linear, *coupling, columns.gram, threads=threads)
            of_P = 2.0 * plain + slopes - whole
            operations += count
        if Q.shape[1]:
            coupling = _coupling(P, rows.vectors, columns.vectors, both, Q.shape, threads)
            plain, whole, slopes, count = descend_trial(Q, rows.linear, *coupling, rows.gram, threads=threads)
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
    others: Doubles, theirs: Vectors, own: Vectors, both: bool, shape: tuple[int, ...], threads: bool
) -> tuple[Doubles, Doubles]:
    """What the other weights add to the linear term, as a product of two factors."""
    if not both:
        return np.empty((shape[0], 0)), np.empty((0, shape[1]))
    if threads and not sp.issparse(theirs):
        small = cross_product(others, theirs, threads=True)
    else:
        with single_threaded_blas():  # whose sums do not depend on the number of threads
            small = transposed_dot(others, theirs)
    return (np.asarray(own @ small), np.eye(shape[1])) if sp.issparse(own) else (own, small)
