r"""The subspace that the spectra of a scene span: how many endmembers there are (HySime), and leading directions.

HySime, hyperspectral signal identification by minimum error, estimates the noise of each band as what its regression on
all other bands leaves. With the correlation matrices :math:`\hat R_y` of the pixels and :math:`\hat R_n` of the noise,
and orthonormal eigenvectors :math:`e_i` of the correlation of the signal, projecting on a set of eigenvectors loses
power and removes noise. Including direction i changes the mean squared error by

.. math:: \delta_i = -e_i^T \hat R_y e_i + 2\, e_i^T \hat R_n e_i,

and the number of directions with :math:`\delta_i < 0` is the dimension of the signal subspace.

References
----------
J. M. Bioucas-Dias, J. M. P. Nascimento, Hyperspectral subspace identification, IEEE Trans. Geosci. Remote Sens. 46
(2008), doi:10.1109/TGRS.2008.918089.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from gsnmf.records import Record
from gsnmf.support.arrays import Doubles, Floats, Indices

_RIDGE = 1e-10
"""Added to the correlation of the bands, relative to its mean diagonal: bands may be linearly dependent."""


@dataclass(frozen=True, eq=False)
class EndmemberCount(Record):
    """The number of endmembers that HySime finds.

    Attributes
    ----------
    number : int
    changes : array, shape (bands,)
        :math:`\\delta_i` in increasing order.
    noise : array, shape (bands,)
        Standard deviation of the noise of each band.
    signal_to_noise : float or None
        In decibels; None without noise.
    """

    number: int
    changes: Doubles = field(repr=False)
    noise: Doubles = field(repr=False)
    signal_to_noise: float | None


def count_endmembers(pixels: Floats, numbers: Sequence[int] | None = None) -> EndmemberCount:
    """Estimate the number of endmembers by HySime.

    Parameters
    ----------
    pixels : array, shape (n, bands)
        More pixels than bands.
    numbers : sequence of int, optional
        The numbers to choose from, at most the number of bands: that with the smallest mean squared error is taken.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> spectra = rng.random((4, 50))
    >>> pixels = rng.dirichlet(np.ones(4), 2000) @ spectra + 0.01 * rng.standard_normal((2000, 50))
    >>> count_endmembers(pixels).number, count_endmembers(pixels, range(6, 10)).number
    (4, 6)
    """
    n, n_bands = pixels.shape
    if n <= n_bands:
        raise ValueError(
            f"the number of endmembers can be estimated only from more pixels than bands, {n_bands}; got {n} pixels. "
            "Pass the number instead."
        )
    values = np.asarray(pixels, dtype=np.float64)
    noise = estimate_noise(values)
    signal = values - noise
    R_y, R_n, R_x = (part.T @ part / n for part in (values, noise, signal))
    R_n = np.diag(np.diag(R_n))
    vectors = linalg.eigh(R_x)[1]
    changes = np.sort(np.einsum("ji,jk,ki->i", vectors, 2.0 * R_n - R_y, vectors))
    errors = np.concatenate([[0.0], np.cumsum(changes)])
    number = int(np.argmin(errors)) if numbers is None else min(numbers, key=errors.__getitem__)
    of_signal, of_noise = float(np.trace(R_x)), float(np.trace(R_n))
    ratio = 10.0 * float(np.log10(of_signal / of_noise)) if min(of_signal, of_noise) > 0 else None
    return EndmemberCount(max(1, number), changes, np.sqrt(np.diag(R_n)), ratio)


def estimate_noise(pixels: Floats) -> Doubles:
    """What the regression of each band on all others leaves, shape (n, bands).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> signal = rng.random((4000, 2)) @ rng.random((2, 12))
    >>> noise = estimate_noise(signal + 0.1 * rng.standard_normal(signal.shape))
    >>> bool(abs(noise.std() - 0.1) < 0.01)
    True
    """
    values = np.asarray(pixels, dtype=np.float64)
    correlation = values.T @ values
    ridge = max(_RIDGE * float(np.trace(correlation)) / len(correlation), np.finfo(float).tiny)
    inverse = np.linalg.inv(correlation + ridge * np.eye(len(correlation)))
    # column b of inverse / inverse[b, b] is 1 at b and minus the regression coefficients elsewhere
    return np.asarray(values @ (inverse / np.diag(inverse)))


def leading_directions(pixels: Floats, n_directions: int, *, centred: bool = False) -> tuple[Doubles, Doubles]:
    """Orthonormal directions in which the pixels have the largest energy or variance, and the mean pixel.

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
    """Successive projection on the rows of an array whose entries may have any sign; no row is chosen twice."""
    residual, chosen = np.array(points, dtype=np.float64), np.empty(count, dtype=np.intp)
    for k in range(count):
        norms = np.einsum("ij,ij->i", residual, residual)
        norms[chosen[:k]] = -1.0
        chosen[k] = int(np.argmax(norms))
        if norms[chosen[k]] > 0:
            unit = residual[chosen[k]] / np.sqrt(norms[chosen[k]])
            residual -= np.outer(residual @ unit, unit)
    return chosen
