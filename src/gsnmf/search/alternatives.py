"""Alternatives: what else could have been chosen instead of each column and row, and at what price."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gsnmf.constraints import Constraints, Limits
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_count
from gsnmf.records import Alternative
from gsnmf.result import Factorization
from gsnmf.search.candidates import Candidates, Fit, candidate_pool
from gsnmf.search.fitted import Fitted
from gsnmf.search.member_alternatives import QUICK, THOROUGH, member_alternatives
from gsnmf.search.member_model import Space, model_of
from gsnmf.search.trials import Exchange, Trials
from gsnmf.search.work import Work
from gsnmf.support.arrays import Indices

_CANDIDATES = 500
_TRIED = 3
"""How many candidates are fitted for each requested substitute."""
_ROUNDS = 20


def substitutes(
    result: Factorization, *, count: int, quick: bool, constraints: Constraints | None = None
) -> list[Alternative]:
    """The best substitutes for the members of every factor of a result, for `Factorization.alternatives`.

    Mixtures and quick answers come from `gsnmf.search.member_alternatives`, the others from `alternatives`.
    """
    matrix = result.source
    if result.mixtures is None and not (quick and matrix.in_memory):
        return alternatives(matrix, result.columns, result.rows, count=count, constraints=constraints)
    assert isinstance(matrix, InMemoryMatrix)  # mixtures exist only in memory
    limits = (constraints or Constraints()).resolve(matrix.shape, (result.columns.size, result.rows.size))
    model, used = model_of(result, Space.of(matrix, limits, Work(math.inf)))
    found = member_alternatives(model, count, QUICK if quick else THOROUGH)
    numbers = np.flatnonzero(used)  # numbers of the nonzero factors
    return [replace(one, factor=int(numbers[one.factor])) for one in found]


def alternatives(
    matrix: Matrix,
    columns: Indices,
    rows: Indices,
    *,
    count: int = 5,
    constraints: Constraints | None = None,
    n_candidates: int = _CANDIDATES,
) -> list[Alternative]:
    """The best substitutes of every chosen column by another column, and of every chosen row by another row.

    Parameters
    ----------
    matrix : Matrix
    columns, rows : int arrays
        The selection.
    count : int
        Largest number of substitutes per index.
    constraints : Constraints, optional
        Excluded indices are never substitutes, and included ones are never given up.
    n_candidates : int
        Candidates per side.

    Returns
    -------
    list of Alternative
        Columns first, each with its substitutes by increasing error. Weights are close to optimal, so errors are
        slightly too large.

    Notes
    -----
    Candidates are ranked by what they gain while all other weights stay fixed, and three times ``count`` are fitted for
    each index, at O((m + n) r^2) operations each.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrix import wrap
    >>> M = wrap(np.array([[4.0, 3.9, 0, 1], [0, 0.1, 2, 0], [0, 0, 0, 1]]))
    >>> found = alternatives(M, np.array([0, 2]), np.array([], dtype=int), count=1)
    >>> [(one.chosen, one.index) for one in found]
    [(0, 1), (2, 3)]
    """
    count = check_count(count, "count")
    pair = int(columns.size), int(rows.size)
    limits = (constraints or Constraints()).resolve(matrix.shape, pair)
    trials = Trials(_pool(matrix, columns, rows, limits, n_candidates), limits, Work(math.inf))
    m, n = matrix.shape
    nothing = Fit(columns, rows, np.zeros((n, columns.size)), np.zeros((m, rows.size)), math.inf)
    nonzero = [matrix.squared_column_norms[columns] > 0, matrix.T.squared_column_norms[rows] > 0]
    if not (nonzero[0].all() and nonzero[1].all()):
        raise ValueError("columns and rows must not be zero; zero ones explain nothing and have no substitutes.")
    with trials.running():
        fitted = trials.polished(trials.refitted(trials.of(nothing), _ROUNDS))
        gains = trials.gains(fitted)
        return [one for position in range(fitted.size) for one in _substitutes(trials, fitted, gains, position, count)]


def _pool(matrix: Matrix, columns: Indices, rows: Indices, limits: Limits, n_candidates: int) -> Candidates:
    pool = candidate_pool(matrix, max(n_candidates, columns.size + rows.size), limits)
    pool.include(columns, rows)
    return pool


def _substitutes(trials: Trials, fitted: Fitted, gains: np.ndarray, position: int, count: int) -> list[Alternative]:
    axis, chosen = fitted.identity(position)
    order = np.argsort(-gains[:, position], kind="stable")[: _TRIED * count]
    places = [int(place) for place in order if np.isfinite(gains[place, position])]
    exchanges = [trials.exchange(fitted, place, position, float(gains[place, position])) for place in places]
    starts = [trials.exchanged(fitted, exchange) for exchange in exchanges]
    found = trials.all(starts, _ROUNDS, math.inf)
    norm = trials.candidates.matrix.squared_norm
    best = sorted(zip(found, exchanges, strict=True), key=lambda pair: pair[0].squared_error)[:count]
    return [
        Alternative(
            position,
            "columns" if axis == "columns" else "rows",
            chosen,
            _index(trials, exchange),
            math.sqrt(trials.polished(trial).squared_error / norm),
        )
        for trial, exchange in best
    ]


def _index(trials: Trials, exchange: Exchange) -> int:
    side = trials.candidates.columns if exchange.axis == "columns" else trials.candidates.rows
    return int(side.indices[exchange.place])
