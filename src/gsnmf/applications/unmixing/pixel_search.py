"""The default choice of pixels: a search for those that explain all others with the smallest error.

This is the one place where unmixing meets the search engine.
"""

from __future__ import annotations

import numpy as np

from gsnmf.matrix import wrap
from gsnmf.search.automatic import automatic_search
from gsnmf.support.arrays import Floats, Indices


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
    Deterministic. The error is at most that of successive projection, successive nonnegative projection and XRAY.
    """
    matrix = wrap(np.ascontiguousarray(pixels.T))
    return automatic_search(matrix, (min(rank, len(pixels)), 0)).selection.columns
