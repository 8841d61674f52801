"""Pixel purity index, PPI: how often a pixel is the extreme one along a random direction.

The index itself names no materials: people looked at the pixels with large counts and grouped them by hand. Here
successive projection picks among the pixels with the largest counts, so that those chosen are different materials.

References
----------
J. W. Boardman, F. A. Kruse, R. O. Green, Mapping target signatures via partial unmixing of AVIRIS data, Summaries of
the Fifth JPL Airborne Earth Science Workshop (1995).
C.-I Chang, A. Plaza, A fast iterative algorithm for implementation of pixel purity index, IEEE Geosci. Remote Sens.
Lett. 3 (2006), doi:10.1109/LGRS.2005.856701.
"""

from __future__ import annotations

import numpy as np

from gsnmf.applications.unmixing.subspace import farthest_points, leading_directions
from gsnmf.support.arrays import Floats, Indices

_DIRECTIONS = 2000
_BLOCK = 100
"""Directions that are tried at a time."""
_SHORT_LIST = 20
"""Pixels with the largest counts, per endmember, among which the choice is made."""


def purity_counts(pixels: Floats, rank: int, rng: np.random.Generator, n_directions: int = _DIRECTIONS) -> Indices:
    """How many of the random directions, in the leading principal components, have each pixel at one of their ends.

    Examples
    --------
    >>> import numpy as np
    >>> pixels = np.array([[0.0, 1], [1, 0], [0.5, 0.6], [0.4, 0.6]])
    >>> purity_counts(pixels, 2, np.random.default_rng(0), 10)
    array([10, 10,  0,  0])
    """
    n_components = max(1, min(rank, pixels.shape[1]) - 1)
    directions, mean = leading_directions(pixels, n_components, centred=True)
    reduced = (np.asarray(pixels, dtype=np.float64) - mean) @ directions
    counts = np.zeros(len(pixels), dtype=np.intp)
    for start in range(0, n_directions, _BLOCK):
        projections = reduced @ rng.standard_normal((n_components, min(_BLOCK, n_directions - start)))
        np.add.at(counts, projections.argmax(axis=0), 1)
        np.add.at(counts, projections.argmin(axis=0), 1)
    return counts


def pixel_purity_index(pixels: Floats, rank: int, rng: np.random.Generator) -> Indices:
    """Choose among the purest pixels those that are most different."""
    counts = purity_counts(pixels, rank, rng)
    purest = np.argsort(-counts, kind="stable")[: max(rank, min(_SHORT_LIST * rank, int(np.count_nonzero(counts))))]
    return purest[farthest_points(np.asarray(pixels[purest], dtype=np.float64), rank)]
