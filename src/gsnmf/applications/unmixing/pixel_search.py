"""The default choice of pixels: starts by several methods, improved by exchanges of the true error.

This is the one place where unmixing meets the search engine.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gsnmf.kernels.threads import single_threaded_blas
from gsnmf.matrices.protocol import wrap
from gsnmf.search.candidates import Candidates, Fit
from gsnmf.search.exchange import refine
from gsnmf.selection.preselection import largest_and_farthest
from gsnmf.selection.successive_nonnegative import successive_nonnegative_projection
from gsnmf.selection.successive_projection import successive_projection
from gsnmf.selection.xray import xray
from gsnmf.support.arrays import Floats, Indices

_CANDIDATES = 800
_EXCHANGES = 60
"""Exchanges that are tried from each start."""
_EXACT = 1e-12
"""Relative squared error below which a selection counts as exact."""
_STARTS = (successive_projection, successive_nonnegative_projection, partial(xray, rule="max"))


def search_pixels(pixels: Floats, rank: int) -> Indices:
    """Choose the pixels that explain all others best, by nonnegative combinations.

    Parameters
    ----------
    pixels : array, shape (n, bands)
        Finite, nonnegative.
    rank : int

    Returns
    -------
    int array
        Fewer than ``rank`` only if fewer explain everything.

    Notes
    -----
    Deterministic. The error of what comes back is at most that of successive projection, of successive nonnegative
    projection and of XRAY.
    """
    matrix = wrap(np.ascontiguousarray(pixels.T))
    none = np.empty(0, dtype=np.intp)
    pool = largest_and_farthest(matrix, min(_CANDIDATES, len(pixels)), axis="columns")
    candidates = Candidates(matrix, pool, none)
    best: Fit | None = None
    seen = set()
    for start in _STARTS:
        columns = start(matrix, rank, axis="columns").columns
        if frozenset(columns.tolist()) in seen:
            continue
        seen.add(frozenset(columns.tolist()))
        candidates.include(columns, none)
        with single_threaded_blas():
            fit = candidates.fit(columns, none)
        if fit.squared_error > _EXACT * matrix.squared_norm:
            fit = refine(candidates, fit, max_exchanges=_EXCHANGES)
        if best is None or fit.squared_error < best.squared_error:
            best = fit
        if best.squared_error <= _EXACT * matrix.squared_norm:
            break
    return none if best is None else best.columns
