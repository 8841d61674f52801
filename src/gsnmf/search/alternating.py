r"""Alternating start: in turn, take the columns and rows closest to the ideal vectors, and fit their weights.

With all weights fixed, the squared error is least for the factor k if its column is

.. math:: t_k = \frac{(M - \sum_{l \ne k} W_l H_l)\, H_k^T}{\|H_k\|^2} ,

which is usually not a column of the matrix. The column with the smallest angle to it takes its place, the weights are
fitted again, and so on; likewise for rows. The factors of a short NMF serve as ideal vectors too: each is matched with
the column closest to its left vector or the row closest to its right one.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels.coordinate_descent import descend
from gsnmf.constraints import Limits
from gsnmf.matrix.protocol import Matrix
from gsnmf.search.effort import nominal_seconds
from gsnmf.search.state import State
from gsnmf.search.trials import Trials
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axis, Doubles, Indices

_ROUNDS = 30
"""Limit on alternations; they end earlier if a selection recurs."""
_FIT_ROUNDS = 12
"""Rounds of coordinate descent on the weights after each alternation, as for a trial of the exchange."""
_SWEEPS = 2
"""Sweeps over one factor before the other: products with the matrix cost more than a sweep."""


def alternate(trials: Trials, state: State, entries: float, max_rounds: int = _ROUNDS) -> State:
    """Repeatedly take what is closest to the ideal vectors; return the best state, never worse than the given one.

    Parameters
    ----------
    trials : Trials
    state : State
    entries : float
        Number of nonzero entries of the matrix, for counting work.
    max_rounds : int
        Limit on rounds; it ends earlier if a selection recurs.
    """
    matrix, best = trials.candidates.matrix, state
    seen = {frozenset(state.factors())}
    for _ in range(max_rounds if state.size else 0):
        columns, rows = (_closest_to_ideal(matrix, state, trials.limits, axis) for axis in COLUMNS_AND_ROWS)
        trials.work.spent += nominal_seconds(products=4.0 * entries * state.size)
        trials.candidates.include(columns, rows)
        closest = trials.candidates.state(columns, rows, state.columns.weights, state.rows.weights)
        state = trials.descend(closest, _FIT_ROUNDS)
        if state.squared_error < best.squared_error:
            best = state
        factors = frozenset(state.factors())
        if factors in seen or not trials.work.left():
            break
        seen.add(factors)
    return best


def matched_factors(matrix: Matrix, W: Doubles, H: Doubles, limits: Limits) -> tuple[Indices, Indices]:
    """Columns closest to left vectors W, shape (m, r), or rows closest to right vectors H, shape (r, n).

    Each factor goes to the side with the closer match, as far as the limits allow.
    """
    by_column, by_row = cosines(matrix, W), cosines(matrix.T, H.T)
    by_column[limits.excluded_columns] = -1.0
    by_row[limits.excluded_rows] = -1.0
    preference = by_column.max(axis=0, initial=-1.0) - by_row.max(axis=0, initial=-1.0)
    wanted = int(np.count_nonzero(preference >= 0))
    n_columns = min(max(wanted, limits.least_columns), limits.most_columns, preference.size)
    order = np.argsort(-preference, kind="stable")
    return distinct_closest(by_column[:, order[:n_columns]]), distinct_closest(by_row[:, order[n_columns:]])


def short_nmf(matrix: Matrix, W: Doubles, H: Doubles, n_iterations: int) -> tuple[Doubles, Doubles]:
    """A few iterations of hierarchical alternating least squares from given factors; these are not changed.

    References
    ----------
    N. Gillis, F. Glineur, Accelerated multiplicative updates and hierarchical ALS algorithms for nonnegative matrix
    factorization, Neural Comput. 24 (2012), doi:10.1162/NECO_a_00256.
    """
    left, right = np.ascontiguousarray(W.T), np.array(H, order="C")
    for _ in range(n_iterations):
        target = np.ascontiguousarray(matrix.T.dot(np.ascontiguousarray(left.T)).T, dtype=np.float64)
        descend(right, target, left @ left.T, _SWEEPS, 0.0)
        target = np.ascontiguousarray(matrix.dot(np.ascontiguousarray(right.T)).T, dtype=np.float64)
        descend(left, target, right @ right.T, _SWEEPS, 0.0)
    return left.T, right


def cosines(matrix: Matrix, vectors: Doubles) -> Doubles:
    """Cosines of the angles between all columns of the matrix and vectors, shape (n, k); -1 for zero columns."""
    lengths = np.sqrt(matrix.squared_column_norms)
    of_vectors = np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(np.float64).tiny)
    products = np.array(matrix.T.dot(np.ascontiguousarray(vectors)), dtype=np.float64)
    products /= of_vectors
    products[lengths > 0] /= lengths[lengths > 0, None]
    products[lengths == 0] = -1.0
    return products


def distinct_closest(closeness: Doubles) -> Indices:
    """For each column of ``closeness``, the row with the largest entry; none twice, closest pairs first."""
    closeness = closeness.copy()
    chosen = np.empty(closeness.shape[1], dtype=np.intp)
    for k in np.argsort(-closeness.max(axis=0, initial=-1.0), kind="stable"):
        chosen[k] = np.argmax(closeness[:, k])
        closeness[chosen[k]] = -2.0
    return chosen


def _closest_to_ideal(matrix: Matrix, state: State, limits: Limits, axis: Axis) -> Indices:
    """For each chosen column (row), the one closest in angle to its ideal vector."""
    side, chosen = matrix.along(axis), state.on(axis)
    if chosen.size == 0:
        return chosen.indices
    left, right, own = state.left, state.right, slice(0, chosen.size)
    if axis == "rows":
        left, right, own = right.T, left.T, slice(state.columns.size, state.size)
    weights = chosen.weights
    used = np.square(weights).sum(axis=0)
    images = np.asarray(side.dot(np.ascontiguousarray(weights)), dtype=np.float64)
    ideal = images - left @ (right @ weights) + left[:, own] * used
    closeness = cosines(side, ideal)
    closeness[limits.excluded(axis)] = -2.0
    for k in np.flatnonzero((used == 0.0) | np.isin(chosen.indices, limits.included(axis))):
        closeness[chosen.indices[k]] = -2.0  # included ones stay, and those without weights have no ideal vector
        closeness[chosen.indices[k], k] = 2.0
    return distinct_closest(closeness)
