r"""N-FINDR: the pixels that span the simplex of the largest volume.

In r - 1 principal components the volume of the simplex of pixels :math:`y_1, \dots, y_r` is

.. math:: \frac{1}{(r-1)!} \left| \det \begin{pmatrix} 1 & \cdots & 1 \\ y_1 & \cdots & y_r \end{pmatrix} \right| .

The determinant is linear in each vertex, so that the volumes of all replacements of one vertex are one product of its
cofactors with all pixels. Starting from successive projection, each vertex is replaced by the best pixel in turn until
no replacement helps. Each replacement raises the volume, so no single exchange can improve the result.

References
----------
M. E. Winter, N-FINDR: an algorithm for fast autonomous spectral end-member determination in hyperspectral data,
Imaging Spectrometry V, Proc. SPIE 3753 (1999), doi:10.1117/12.366289.
"""

from __future__ import annotations

import numpy as np

from gsnmf.applications.unmixing.subspace import farthest_points, leading_directions
from gsnmf.support.arrays import Doubles, Floats, Indices

_PROGRESS = 1e-10
"""A replacement must enlarge the volume by this fraction to count."""
_MAX_ROUNDS = 100


def n_findr(pixels: Floats, rank: int) -> Indices:
    """Choose the pixels whose simplex is largest, up to single replacements.

    Parameters
    ----------
    pixels : array, shape (n, bands)
    rank : int
        At most the number of bands plus one, and the number of pixels.

    Examples
    --------
    >>> import numpy as np
    >>> pixels = np.vstack([np.random.default_rng(0).dirichlet(np.ones(3), 50), np.eye(3)])
    >>> sorted(n_findr(pixels, 3).tolist())
    [50, 51, 52]
    """
    points = _lifted(pixels, rank)
    chosen = farthest_points(points, rank)
    for _ in range(_MAX_ROUNDS):
        changed = False
        for k in range(rank):
            volumes = np.abs(points @ _cofactors(points[chosen], k))
            best = int(np.argmax(volumes))
            if volumes[best] > (1.0 + _PROGRESS) * volumes[chosen[k]] and best not in chosen:
                chosen[k] = best
                changed = True
        if not changed:
            break
    return chosen


def _lifted(pixels: Floats, rank: int) -> Doubles:
    """Pixels in r - 1 principal components scaled to about one, after an entry of one; shape (n, r)."""
    if rank == 1:  # no volume to maximise: the brightest pixel, as a simplex with the origin
        return np.asarray(np.linalg.norm(np.asarray(pixels, dtype=np.float64), axis=1, keepdims=True))
    directions, mean = leading_directions(pixels, rank - 1, centred=True)
    reduced = (np.asarray(pixels, dtype=np.float64) - mean) @ directions
    reduced /= np.maximum(np.abs(reduced).max(axis=0), np.finfo(float).tiny)
    return np.hstack([np.ones((len(reduced), 1)), reduced])


def _cofactors(vertices: Doubles, k: int) -> Doubles:
    """The vector c with det(vertices with row k replaced by y) = c . y, up to sign."""
    others = np.delete(vertices, k, axis=0)
    r = vertices.shape[0]
    signs = (-1.0) ** np.arange(r)
    return np.asarray(signs * [np.linalg.det(np.delete(others, i, axis=1)) for i in range(r)])
