r"""How many endmembers a scene has, by HySime: hyperspectral signal identification by minimum error.

The noise of each band is what its regression on all other bands leaves. With the correlation matrices
:math:`\hat R_y` of the pixels and :math:`\hat R_n` of the noise, and orthonormal eigenvectors :math:`e_i` of the
correlation of the signal, projecting on a set of eigenvectors loses power and removes noise; the direction i pays if

.. math:: \delta_i = -e_i^T \hat R_y e_i + 2\, e_i^T \hat R_n e_i < 0,

and the number of such directions is the dimension of the signal subspace.

References
----------
J. M. Bioucas-Dias, J. M. P. Nascimento, Hyperspectral subspace identification, IEEE Trans. Geosci. Remote Sens. 46
(2008), doi:10.1109/TGRS.2008.918089.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from gsnmf.support.arrays import Doubles, Floats


@dataclass(frozen=True)
class EndmemberCount:
    """The number of endmembers that HySime finds.

    Attributes
    ----------
    number : int
    changes : array, shape (bands,)
        :math:`\\delta_i` in increasing order: the change of the mean squared error that each direction brings, and
        below zero for those that count.
    noise : array, shape (bands,)
        Standard deviation of the noise of each band.
    signal_to_noise : float
        In decibels.
    """

    number: int
    changes: Doubles = field(repr=False)
    noise: Doubles = field(repr=False)
    signal_to_noise: float


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
    ridge = 1e-10 * float(np.trace(correlation)) / len(correlation)
    inverse = np.linalg.inv(correlation + ridge * np.eye(len(correlation)))
    # column b of inverse / inverse[b, b] is 1 at b and minus the regression coefficients elsewhere
    return np.asarray(values @ (inverse / np.diag(inverse)))


def count_endmembers(pixels: Floats) -> EndmemberCount:
    """Estimate the number of endmembers by HySime.

    Parameters
    ----------
    pixels : array, shape (n, bands)
        More pixels than bands.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> spectra = rng.random((4, 50))
    >>> pixels = rng.dirichlet(np.ones(4), 2000) @ spectra + 0.01 * rng.standard_normal((2000, 50))
    >>> count_endmembers(pixels).number
    4
    """
    n, n_bands = pixels.shape
    if n <= n_bands:
        raise ValueError(
            f"the number of endmembers can be estimated from more pixels than bands only, {n_bands}; got {n} pixels. "
            "Name the number instead."
        )
    values = np.asarray(pixels, dtype=np.float64)
    noise = estimate_noise(values)
    signal = values - noise
    R_y, R_n, R_x = (part.T @ part / n for part in (values, noise, signal))
    R_n = np.diag(np.diag(R_n))
    vectors = linalg.eigh(R_x)[1]
    changes = np.sort(
        2.0 * np.einsum("ji,jk,ki->i", vectors, R_n, vectors) - np.einsum("ji,jk,ki->i", vectors, R_y, vectors)
    )
    power = float(np.trace(R_n))
    ratio = 10.0 * np.log10(float(np.trace(R_x)) / power) if power > 0 else np.inf
    return EndmemberCount(max(1, int(np.count_nonzero(changes < 0))), changes, np.sqrt(np.diag(R_n)), float(ratio))
