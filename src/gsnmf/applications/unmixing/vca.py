r"""Vertex component analysis, VCA.

The pixels are projected on a subspace of r dimensions: if the signal is strong, on the leading singular vectors and
then on the plane :math:`\{y : y^T u = 1\}` through the mean u, which removes differences of illumination; else on r - 1
principal components and a constant. Each step draws a random direction orthogonal to the endmembers so far and takes
the pixel that is farthest along it.

References
----------
J. M. P. Nascimento, J. M. Bioucas-Dias, Vertex component analysis: a fast algorithm to unmix hyperspectral data, IEEE
Trans. Geosci. Remote Sens. 43 (2005), doi:10.1109/TGRS.2005.844293.
"""

from __future__ import annotations

import math

import numpy as np

from gsnmf.applications.unmixing.subspace import leading_directions
from gsnmf.support.arrays import Doubles, Floats, Indices


def vertex_component_analysis(pixels: Floats, rank: int, rng: np.random.Generator) -> Indices:
    """Choose pixels by VCA; the choice depends on the random numbers.

    Parameters
    ----------
    pixels : array, shape (n, bands)
    rank : int
        At most the number of bands.
    rng : numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> corners = np.eye(3)
    >>> pixels = np.vstack([corners, np.random.default_rng(0).dirichlet(np.ones(3), 50)])
    >>> sorted(vertex_component_analysis(pixels, 3, np.random.default_rng(1)).tolist())
    [0, 1, 2]
    """
    reduced = _reduced(np.asarray(pixels, dtype=np.float64), rank)
    corners = np.zeros((rank, rank))
    corners[-1, 0] = 1.0
    chosen = np.empty(rank, dtype=np.intp)
    for k in range(rank):
        direction = rng.standard_normal(rank)
        basis = np.linalg.qr(corners[:, : max(1, k)])[0]
        direction -= basis @ (basis.T @ direction)
        projections = np.abs(reduced @ direction)
        projections[chosen[:k]] = -1.0  # rounding must not choose a pixel twice
        chosen[k] = int(np.argmax(projections))
        corners[:, k] = reduced[chosen[k]]
    return chosen


def _reduced(pixels: Doubles, rank: int) -> Doubles:
    """Coordinates of the pixels, shape (n, rank)."""
    directions, mean = leading_directions(pixels, rank, centred=True)
    centred = (pixels - mean) @ directions
    if _signal_to_noise(pixels, centred, mean) >= 15.0 + 10.0 * math.log10(rank):
        directions, _ = leading_directions(pixels, rank)
        projected = pixels @ directions
        scale = projected @ projected.mean(axis=0)
        return np.asarray(projected / np.where(np.abs(scale) > 0, scale, 1.0)[:, None])
    if rank == 1:
        return np.ones((len(pixels), 1))
    components = centred[:, : rank - 1]
    largest = math.sqrt(float(np.einsum("ij,ij->i", components, components).max()))
    return np.hstack([components, np.full((len(components), 1), largest)])


def _signal_to_noise(pixels: Doubles, centred: Doubles, mean: Doubles) -> float:
    """In decibels, as the paper estimates it from the energy inside and outside the subspace."""
    n, n_bands = pixels.shape
    rank = centred.shape[1]
    energy = float(np.einsum("ij,ij->", pixels, pixels)) / n
    inside = float(np.einsum("ij,ij->", centred, centred)) / n + float(mean @ mean)
    noise = energy - inside
    signal = inside - rank / n_bands * energy
    if noise <= 1e-12 * energy:
        return math.inf
    return 10.0 * math.log10(signal / noise) if signal > 0 else -math.inf
