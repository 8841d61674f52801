"""Pursuit: one column or row after the other, each the one with the largest guaranteed decrease of the error.

After every choice the weights of all chosen are fitted again from where they are, so that the next choice sees what is
really left unexplained. The selections are nested: the first k of rank r are those of rank k.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from gsnmf.kernels.threads import single_threaded_blas
from gsnmf.matrices.protocol import Matrix
from gsnmf.results import Choice, Selection
from gsnmf.search.candidates import Candidates, Fit, candidate_pool
from gsnmf.search.starting_weights import starting_weights
from gsnmf.support.arrays import Axes
from gsnmf.support.reasons import selection_reason

_ROUNDING = 1e-14
"""A squared error below this part of the matrix is rounding."""


def pursuit_choice(matrix: Matrix, rank: int) -> Choice:
    """Choose ``rank`` columns and rows greedily by what each guarantees to explain of the rest."""
    candidates = candidate_pool(matrix)
    fits = list(pursuit_path(candidates, rank))
    last = fits[-1] if fits else candidates.empty()
    selection = Selection(last.columns, last.rows, _order(fits), "pursuit", selection_reason(len(fits), rank))
    return Choice(selection, starting_weights(matrix, last))


def pursuit_path(candidates: Candidates, rank: int, start: Fit | None = None) -> Iterator[Fit]:
    """Fits of one index more each, up to ``rank`` indices or until nothing is left to explain."""
    fit = start or candidates.empty()
    with single_threaded_blas():
        while fit.columns.size + fit.rows.size < rank:
            if fit.squared_error <= _ROUNDING * candidates.matrix.squared_norm:
                return
            best = candidates.best(fit)
            if not best:
                return
            grown = candidates.extended(fit, *best[0])
            fit = candidates.fit(grown.columns, grown.rows, grown.P, grown.Q)
            yield fit


def _order(fits: list[Fit]) -> Axes:
    n_columns = [0, *(fit.columns.size for fit in fits)]
    return tuple("columns" if after > before else "rows" for before, after in pairwise(n_columns))
