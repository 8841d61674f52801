"""Selections of many ranks, each from its neighbour: upwards by pursuit and exchanges, then downwards.

A candidate's products with the matrix are computed once for all ranks. On the way up, each selection grows by the
candidates with the largest guaranteed decrease of the error and is improved by exchanges. On the way down it loses the
index that explains least and is improved again. The better of the two selections of each rank is kept. The way down
finds what the way up misses: indices that only help together with others. Selections that are known from elsewhere,
such as from a similar matrix, may be tried on the way up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from gsnmf.constraints import Constraints
from gsnmf.matrix.protocol import Matrix
from gsnmf.search.candidates import candidate_pool
from gsnmf.search.exchange import completed, improved
from gsnmf.search.fitted import Fitted, by_error
from gsnmf.search.trials import Trials
from gsnmf.search.work import Work

_ROUNDS = 12
"""Rounds of coordinate descent after an index was dropped."""
_SETTLING_ROUNDS = 20
"""Rounds of coordinate descent where a small error is enough."""
_SETTLED = 1e-3
"""They end earlier when a round lowers the squared error by less than this fraction."""
_FAILURES = 24
"""Exchanges in a row that may fail."""


@dataclass(frozen=True)
class NestedFit:
    """A selection with its weights, and the seconds that it took from the one before it."""

    fitted: Fitted
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
        Nominal seconds that all exchanges together may take: see `gsnmf.search.work`.
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
        trials.candidates.include(one.fitted.fit.columns, one.fitted.fit.rows)
    shares = {rank: 0.5 * work * rank / sum(ordered) for rank in ordered}
    found: dict[int, NestedFit] = {}
    steps = [(rank, True) for rank in ordered] + [(rank, False) for rank in reversed(ordered[:-1])]
    with trials.running():
        fitted = trials.of(trials.candidates.fit(last.included_columns, last.included_rows))
        for number, (rank, upwards) in enumerate(steps, 1):
            began = time.perf_counter()
            trials.limits = limits[rank]
            fitted = completed(trials, fitted) if upwards else _shrunk(trials, fitted)
            if upwards and known and rank in known:
                fitted = min(fitted, _same_indices(trials, known[rank]), key=by_error)
            fitted = _settled(trials, fitted, enough)
            if fitted.squared_error > enough:
                until = trials.work.spent + shares[rank]
                fitted = _settled(trials, improved(trials, fitted, until, _FAILURES)[0], enough)
            seconds = time.perf_counter() - began
            if not upwards:
                other = found[rank]
                fitted = min(fitted, other.fitted, key=by_error)
                seconds += other.seconds
            found[rank] = NestedFit(fitted, seconds)
            if progress is not None:
                progress(number / len(steps))
    return found


def _settled(trials: Trials, fitted: Fitted, enough: float) -> Fitted:
    """The selection with nearly optimal weights, or with good ones if a small error is enough.

    On a matrix that the selection explains almost exactly, optimal weights take long to find and gain little.
    """
    if enough == 0.0:
        return trials.polished(fitted)
    return trials.refitted(fitted, _SETTLING_ROUNDS, tolerance=_SETTLED)


def _same_indices(trials: Trials, other: NestedFit) -> Fitted:
    """The selection of a fit of another matrix, with its weights fitted to this one."""
    return trials.refitted(trials.of(replace(other.fitted.fit, squared_error=np.inf)), _SETTLING_ROUNDS)


def _shrunk(trials: Trials, fitted: Fitted) -> Fitted:
    """The selection without the indices that explain least, down to the size of the limits."""
    limits = trials.limits
    while fitted.size > limits.size:
        worths = trials.worths(fitted)
        is_column = np.arange(fitted.size) < fitted.fit.columns.size
        worths[trials.fixed(fitted)] = np.inf
        if fitted.fit.columns.size <= limits.least_columns:
            worths[is_column] = np.inf
        if fitted.fit.rows.size <= limits.least_rows:
            worths[~is_column] = np.inf
        dropped = int(np.argmin(worths))
        fitted = trials.refitted(trials.of(trials.candidates.without(fitted.fit, dropped)), _ROUNDS)
    return fitted
