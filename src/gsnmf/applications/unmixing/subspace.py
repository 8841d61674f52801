"""The subspace in which pixels of a few materials lie, and the farthest points in it."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from gsnmf.support.arrays import Doubles, Floats, Indices


def leading_directions(pixels: Floats, n_directions: int, *, centred: bool = False) -> tuple[Doubles, Doubles]:
    """Orthonormal directions of the largest energy, or variance, of pixels, and the mean pixel.

    Parameters
    ----------
    pixels : array, shape (n, bands)
    n_directions : int
    centred : bool
        Whether the mean is subtracted first: principal components instead of singular vectors.

    Returns
    -------
    directions : array, shape (bands, n_directions)
        The largest first.
    mean : array, shape (bands,)
    """
    values = np.asarray(pixels, dtype=np.float64)
    mean = values.mean(axis=0)
    gram = values.T @ values / len(values)
    if centred:
        gram -= np.outer(mean, mean)
    n_bands = gram.shape[0]
    _, vectors = linalg.eigh(gram, subset_by_index=(n_bands - n_directions, n_bands - 1))
    return np.asarray(vectors[:, ::-1]), mean


def farthest_points(points: Doubles, count: int) -> Indices:
    """Successive projection on the rows of an array: the longest, then the longest of what it leaves, and so on.

    Entries may have any sign, and no point is taken twice.
    """
    residual, chosen = np.array(points, dtype=np.float64), np.empty(count, dtype=np.intp)
    for k in range(count):
        norms = np.einsum("ij,ij->i", residual, residual)
        norms[chosen[:k]] = -1.0
        chosen[k] = int(np.argmax(norms))
        if norms[chosen[k]] > 0:
            unit = residual[chosen[k]] / np.sqrt(norms[chosen[k]])
            residual -= np.outer(residual @ unit, unit)
    return chosen
