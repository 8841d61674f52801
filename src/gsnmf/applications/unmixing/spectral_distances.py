r"""Distances between spectra: spectral angle and spectral information divergence.

Neither depends on the brightness of a spectrum. The spectral angle between x and y is

.. math:: \arccos \frac{x^T y}{\|x\| \|y\|}.

The spectral information divergence takes spectra as distributions over the bands, :math:`p = x / e^T x` and
:math:`q = y / e^T y`, and is :math:`\sum_b (p_b - q_b)(\log p_b - \log q_b)`.

References
----------
F. A. Kruse et al., The spectral image processing system (SIPS): interactive visualization and analysis of imaging
spectrometer data, Remote Sens. Environ. 44 (1993), doi:10.1016/0034-4257(93)90013-N.
C.-I Chang, An information-theoretic approach to spectral variability, similarity, and discrimination for hyperspectral
image analysis, IEEE Trans. Inf. Theory 46 (2000), doi:10.1109/18.857802.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from gsnmf.support.arrays import Doubles, Indices


def spectral_angle(spectra: Any, others: Any = None) -> Doubles:
    """Angles in degrees between spectra, shape (n, m); between all pairs of ``spectra`` without ``others``.

    Parameters
    ----------
    spectra : array-like, shape (n, bands)
    others : array-like, shape (m, bands), optional

    Notes
    -----
    Computed from the length of the difference of unit vectors, which is accurate for small angles, where the arc
    cosine is not. Bands that are not finite in a spectrum are left out for all. The angle to a zero spectrum is 90.

    Examples
    --------
    >>> spectral_angle([[1, 0], [1, 1]], [[2, 0]])
    array([[ 0.],
           [45.]])
    """
    left, right = _pair(spectra, others)
    left, right = _unit(left), _unit(right)
    differences = np.stack([np.linalg.norm(left - one, axis=1) for one in right], axis=1)
    degrees = np.degrees(2.0 * np.arcsin(np.clip(differences / 2.0, 0.0, 1.0)))
    degrees[~np.asarray(left.any(axis=1))] = 90.0
    degrees[:, ~np.asarray(right.any(axis=1))] = 90.0
    return np.asarray(degrees)


def spectral_information_divergence(spectra: Any, others: Any = None) -> Doubles:
    """Spectral information divergences between nonnegative spectra, shape (n, m); see `spectral_angle`.

    Notes
    -----
    Infinite where one spectrum is zero in a band in which the other is not.

    Examples
    --------
    >>> spectral_information_divergence([[1, 3]], [[2, 6], [3, 1]]).round(6)
    array([[0.      , 1.098612]])
    """
    left, right = _pair(spectra, others)
    if left.min() < 0 or right.min() < 0:
        raise ValueError(f"spectra must be nonnegative; got {min(left.min(), right.min())}.")
    p, q = (values / np.maximum(values.sum(axis=1, keepdims=True), np.finfo(float).tiny) for values in (left, right))
    positive = (p[:, None] > 0) & (q[None] > 0)
    ratios = np.log(np.where(positive, p[:, None], 1.0)) - np.log(np.where(positive, q[None], 1.0))
    one_only = ((p[:, None] > 0) != (q[None] > 0)).any(axis=2)
    return np.where(one_only, np.inf, ((p[:, None] - q[None]) * ratios).sum(axis=2))


def match_spectra(found: Any, true: Any) -> tuple[Indices, Doubles]:
    """For each true spectrum a found one of its own, so that the sum of the angles is least, and the angles in degrees.

    Examples
    --------
    >>> order, degrees = match_spectra([[0, 1], [1, 0]], [[1, 0], [0, 1]])
    >>> order, degrees
    (array([1, 0]), array([0., 0.]))
    """
    angles = spectral_angle(true, found)
    if angles.shape[1] < angles.shape[0]:
        raise ValueError(
            f"found must have at least {angles.shape[0]} spectra, one per true one; got {angles.shape[1]}."
        )
    rows, order = linear_sum_assignment(angles)
    return np.asarray(order, dtype=np.intp), angles[rows, order]


def _pair(spectra: Any, others: Any) -> tuple[Doubles, Doubles]:
    left = np.atleast_2d(np.asarray(spectra, dtype=np.float64))
    right = left if others is None else np.atleast_2d(np.asarray(others, dtype=np.float64))
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ValueError(f"spectra must be arrays of the same bands; got shapes {left.shape} and {right.shape}.")
    known = np.isfinite(left).all(axis=0) & np.isfinite(right).all(axis=0)
    if not known.any():
        raise ValueError("spectra must have at least one band in which all are finite; got none.")
    return left[:, known], right[:, known]


def _unit(spectra: Doubles) -> Doubles:
    largest = np.abs(spectra).max(axis=1, keepdims=True)  # squares of huge and tiny values are not representable
    scaled = spectra / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1.0))
