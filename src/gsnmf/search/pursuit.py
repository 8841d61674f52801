"""Pursuit: one column or row after another, each with the largest guaranteed decrease of the error.

After every choice all weights are fitted again from where they are, so the next choice sees what is really left
unexplained. The selections are nested: the first k of rank r are those of rank k.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from gsnmf._parallel import single_threaded_blas
from gsnmf.constraints import Limits
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import Choice, Selection
from gsnmf.search.candidates import Candidates, Fit, candidate_pool
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, axes_of
from gsnmf.support.reasons import selection_reason

ROUNDING = 1e-14
"""A squared error below this fraction of the matrix is rounding."""


def pursuit_choice(matrix: Matrix, rank: int, limits: Limits | None = None) -> Choice:
    """Choose ``rank`` columns and rows greedily by how much of the rest each is guaranteed to explain.

    With ``limits`` it starts from the included indices, and excluded ones are never candidates.
    """
    candidates = candidate_pool(matrix, limits=limits)
    start = candidates.empty()
    if limits is not None and limits.included_columns.size + limits.included_rows.size:
        start = candidates.fit(limits.included_columns, limits.included_rows)
    fits = list(pursuit_path(candidates, rank, start, limits))
    last = fits[-1] if fits else start
    order = axes_of(start.columns.size, start.rows.size) + _order([start, *fits])
    selection = Selection(last.columns, last.rows, order, "pursuit", selection_reason(len(order), rank))
    return Choice(selection, last.weights(matrix))


def pursuit_path(
    candidates: Candidates, rank: int, start: Fit | None = None, limits: Limits | None = None
) -> Iterator[Fit]:
    """Fits with one more index each, up to ``rank`` indices or until nothing is left to explain."""
    fit = start or candidates.empty()
    with single_threaded_blas():
        while fit.columns.size + fit.rows.size < rank:
            if fit.squared_error <= ROUNDING * candidates.matrix.squared_norm:
                return
            axes = COLUMNS_AND_ROWS if limits is None else limits.open_axes(fit.columns.size, fit.rows.size)
            best = candidates.best(fit, axes=axes)
            if not best:
                return
            grown = candidates.extended(fit, *best[0])
            fit = candidates.fit(grown.columns, grown.rows, grown.P, grown.Q)
            yield fit


def _order(fits: list[Fit]) -> Axes:
    """The axis of the index that each fit adds."""
    n_columns = [fit.columns.size for fit in fits]
    return tuple("columns" if after > before else "rows" for before, after in pairwise(n_columns))
