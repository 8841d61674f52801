r"""Pixels that no other pixel resembles: dead detectors, cosmic rays, glints, damaged records.

How far a pixel x is from its third-nearest other pixel y in angle is measured by :math:`\|x\| \sin\angle(x, y)`, the
part of x that no multiple of y explains: noise makes it as large for dark pixels as for bright ones. In real scenes the
largest such distance is a few times the median; a pixel is an outlier if it is more than five times the 95th
percentile. A material that is pure in three pixels is not an outlier.
"""

from __future__ import annotations

import numpy as np

from gsnmf.support.arrays import Doubles, Flags, Floats

_NEIGHBOUR = 3
_PERCENTILE, _TIMES = 0.95, 5.0
_BRIGHT = 3.0
"""Pixels longer than this times the 95th percentile of the lengths are shortened to it."""
_NEVER_BELOW = 0.01
"""A distance below this fraction of the median length does not indicate an outlier."""
_BLOCK = 1 << 22
"""Cosines that are formed at a time."""


def shortened(pixels: Floats) -> Floats:
    """Pixels whose length does not exceed three times the 95th percentile of all, in their own directions.

    A saturated pixel may be a hundred times as long as others and would count ten thousand times in a squared error.
    """
    lengths = np.linalg.norm(pixels, axis=1)
    limit = _BRIGHT * float(np.quantile(lengths, _PERCENTILE))
    if lengths.max() <= limit:
        return pixels
    return np.asarray(pixels * np.minimum(1.0, limit / lengths)[:, None], dtype=pixels.dtype)


def isolated_pixels(pixels: Floats) -> Flags:
    """Whether each pixel is an outlier.

    Parameters
    ----------
    pixels : array, shape (n, bands)
        Nonzero.

    Notes
    -----
    Costs n^2 products of spectra.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pixels = rng.dirichlet(np.ones(3), 200) @ rng.random((3, 20))
    >>> pixels[7, 4] += 5.0
    >>> np.flatnonzero(isolated_pixels(pixels))
    array([7])
    """
    if len(pixels) <= 2 * _NEIGHBOUR:
        return np.zeros(len(pixels), dtype=np.bool_)
    bounded = shortened(pixels)
    distances = _distances(bounded)
    typical = float(np.median(np.linalg.norm(bounded, axis=1)))
    threshold = max(_TIMES * float(np.quantile(distances, _PERCENTILE)), _NEVER_BELOW * typical)
    found: Flags = distances > threshold
    return found


def _distances(pixels: Floats) -> Doubles:
    lengths = np.linalg.norm(pixels, axis=1)
    unit = np.asarray(pixels / lengths[:, None], dtype=np.float32)
    distances = np.empty(len(pixels))
    step = max(1, _BLOCK // len(pixels))
    for start in range(0, len(pixels), step):
        cosines = unit[start : start + step] @ unit.T
        # the nearest is the pixel itself, so that neighbour k is at position k
        nearest = np.partition(cosines, len(pixels) - 1 - _NEIGHBOUR, axis=1)[:, len(pixels) - 1 - _NEIGHBOUR]
        distances[start : start + step] = np.sqrt(np.maximum(0.0, 1.0 - np.square(nearest, dtype=np.float64)))
    return np.asarray(distances * lengths)
