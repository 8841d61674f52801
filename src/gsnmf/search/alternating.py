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
from gsnmf.search.candidates import Fit
from gsnmf.search.fitted import Fitted
from gsnmf.search.trials import Trials
from gsnmf.support.arrays import Axis, Doubles, Flags, Indices

_ROUNDS = 30
_FIT_ROUNDS = 12
_NMF_ITERATIONS = 20
_SWEEPS = 2


def alternated(trials: Trials, fitted: Fitted, entries: float, max_rounds: int = _ROUNDS) -> Fitted:
    """Repeatedly take what is closest to the ideal vectors; return the best selection, never worse than ``fitted``.

    Parameters
    ----------
    trials : Trials
    fitted : Fitted
    entries : float
        Number of nonzero entries of the matrix, for counting work.
    max_rounds : int
        Limit on rounds; it ends earlier if a selection recurs.
    """
    matrix, best = trials.candidates.matrix, fitted
    seen = {frozenset(fitted.identities())}
    for _ in range(max_rounds if fitted.size else 0):
        columns = _closest_to_ideal(matrix, fitted, trials.limits, "columns")
        rows = _closest_to_ideal(matrix, fitted, trials.limits, "rows")
        trials.work.products(4.0 * entries * fitted.size)
        trials.candidates.include(columns, rows)
        fit = Fit(columns, rows, fitted.fit.P, fitted.fit.Q, np.inf)
        fitted = trials.refitted(trials.of(fit), _FIT_ROUNDS)
        if fitted.squared_error < best.squared_error:
            best = fitted
        identity = frozenset(fitted.identities())
        if identity in seen or not trials.work.left():
            break
        seen.add(identity)
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


def short_nmf(matrix: Matrix, W: Doubles, H: Doubles, n_iterations: int = _NMF_ITERATIONS) -> tuple[Doubles, Doubles]:
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


def _closest_to_ideal(matrix: Matrix, fitted: Fitted, limits: Limits, axis: Axis) -> Indices:
    """For each chosen column (row), the one closest in angle to its ideal vector."""
    if axis == "columns":
        side, left, right, weights = matrix, fitted.left, fitted.right, fitted.fit.P
        chosen, own = fitted.fit.columns, slice(0, fitted.fit.columns.size)
    else:
        side, left, right, weights = matrix.T, fitted.right.T, fitted.left.T, fitted.fit.Q
        chosen, own = fitted.fit.rows, slice(fitted.fit.columns.size, fitted.size)
    if chosen.size == 0:
        return chosen
    used = np.square(weights).sum(axis=0)
    images = np.asarray(side.dot(np.ascontiguousarray(weights)), dtype=np.float64)
    ideal = images - left @ (right @ weights) + left[:, own] * used
    closeness = cosines(side, ideal)
    _keep(closeness, chosen, used, limits.included(axis), limits.excluded(axis))
    return distinct_closest(closeness)


def _keep(closeness: Doubles, chosen: Indices, used: Doubles, included: Indices, excluded: Flags) -> None:
    """Rule out excluded indices, and keep those that are included or have no weights."""
    closeness[excluded] = -2.0
    for k in np.flatnonzero((used == 0.0) | np.isin(chosen, included)):
        closeness[chosen[k]] = -2.0
        closeness[chosen[k], k] = 2.0
