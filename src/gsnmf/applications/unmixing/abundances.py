r"""Abundances: fully constrained least squares (FCLS), and nonnegative least squares.

With endmembers E (r x bands), the abundances of a pixel x are

.. math:: \min_a \|x - E^T a\| \quad\text{subject to}\quad a \ge 0,\; e^T a = 1,

or without the sum if the brightness of a material may vary from pixel to pixel.

References
----------
D. C. Heinz, C.-I Chang, Fully constrained least squares linear spectral mixture analysis method for material
quantification in hyperspectral imagery, IEEE Trans. Geosci. Remote Sens. 39 (2001), doi:10.1109/36.911111.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gsnmf._kernels.least_squares import nonnegative_least_squares
from gsnmf._kernels.simplex import simplex_least_squares
from gsnmf.applications.unmixing.scene import Scene
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.progress import logger


def fcls(pixels: Any, endmembers: Any, *, sum_to_one: bool = True) -> Doubles:
    """Nonnegative abundances of endmembers in every pixel, exactly.

    Parameters
    ----------
    pixels : array-like, shape (n, bands)
    endmembers : array-like, shape (r, bands)
        Spectra in the units of the pixels.
    sum_to_one : bool
        Whether the abundances of a pixel sum to one.

    Returns
    -------
    array, shape (n, r)

    Notes
    -----
    One product of the pixels with r vectors reduces the problem to r dimensions.

    Examples
    --------
    >>> fcls([[1.0, 2.0, 3.0], [9.0, 0.0, 0.0]], [[1, 0, 3], [1, 4, 3], [2, 0, 0]]).round(6)
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    >>> fcls([[9.0, 0.0, 0.0]], [[1, 0, 3], [1, 4, 3], [2, 0, 0]], sum_to_one=False).round(6)
    array([[0. , 0. , 4.5]])
    """
    spectra = np.atleast_2d(np.asarray(endmembers, dtype=np.float64))
    targets = np.atleast_2d(np.asarray(pixels))
    targets = targets if targets.dtype == np.float32 else targets.astype(np.float64, copy=False)
    if spectra.ndim != 2 or targets.ndim != 2 or spectra.shape[1] != targets.shape[1]:
        raise ValueError(
            f"pixels and endmembers must have the same bands; got shapes {targets.shape} and {spectra.shape}."
        )
    reduced, triangle = _reduced(targets, spectra) if np.isfinite(spectra).all() else (np.array([np.nan]), spectra)
    # a value that is not finite makes its product with any basis not finite
    if not np.isfinite(reduced).all():
        raise ValueError("pixels and endmembers must be finite; leave out those that are not.")
    return _solve(reduced, triangle, sum_to_one)


def abundances_of(pixels: Floats, endmembers: Doubles, sum_to_one: bool) -> Doubles:
    """`fcls` without its checks."""
    return _solve(*_reduced(pixels, endmembers), sum_to_one)


def _reduced(pixels: Floats, endmembers: Doubles) -> tuple[Doubles, Doubles]:
    """Pixels in an orthonormal basis of the span of the endmembers, and the endmembers in it, one per column."""
    basis, triangle = np.linalg.qr(endmembers.T)
    return np.asarray(pixels @ basis.astype(pixels.dtype, copy=False), dtype=np.float64), triangle


def _solve(reduced: Doubles, triangle: Doubles, sum_to_one: bool) -> Doubles:
    if sum_to_one:
        return simplex_least_squares(triangle, reduced)
    r = triangle.shape[1]
    square, targets = np.zeros((r, r)), np.zeros((len(reduced), r))
    square[: len(triangle)], targets[:, : len(triangle)] = triangle, reduced  # fewer bands than endmembers
    lengths = np.linalg.norm(square, axis=0)
    lengths[lengths == 0] = 1.0
    abundances = np.zeros((len(reduced), r))
    nonnegative_least_squares(abundances, square / lengths, targets)
    return np.asarray(abundances / lengths)


def fit_abundances(scene: Scene, spectra: Doubles, sum_to_one: bool) -> tuple[Floats, Floats, float]:
    """Abundances and root mean squared residuals of all pixels, NaN where a pixel is not used; the relative error."""
    n_pixels = scene.cube.n_pixels
    abundances = np.full((n_pixels, len(spectra)), np.nan, dtype=np.float32)
    residuals: Floats = np.full(n_pixels, np.nan, dtype=np.float32)
    error = energy = 0.0
    for positions, pixels in scene.blocks():
        weights = abundances_of(pixels, spectra, sum_to_one)
        rest = pixels - (weights @ spectra).astype(pixels.dtype)
        squares = np.einsum("ij,ij->i", rest, rest, dtype=np.float64)
        abundances[positions] = weights
        residuals[positions] = np.sqrt(squares / pixels.shape[1])
        error += float(squares.sum())
        energy += float(np.einsum("ij,ij->", pixels, pixels, dtype=np.float64))
        done = int(positions[-1]) + 1
        logger.info("abundances of %d of %d pixels", done, n_pixels, extra={"fraction": done / n_pixels})
    if scene.exponent:  # which single precision may not hold
        residuals = scene.in_units_of_cube(residuals.astype(np.float64))
    return abundances, residuals, float(np.sqrt(error / energy))
