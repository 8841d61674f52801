r"""Preconditioned successive projection: make the endmembers nearly orthogonal before they are chosen.

After a projection on r dimensions, the ellipsoid :math:`\{y : y^T A y \le 1\}` of the least volume around all pixels
and their negatives is found. If the scene is near-separable its boundary touches the pure pixels, and
:math:`A^{1/2}` turns them into almost orthogonal vectors of equal length, for which successive projection tolerates the
most noise.

The ellipsoid is that of a D-optimal design: with weights u on the simplex and :math:`Q(u) = \sum_i u_i y_i y_i^T`,

.. math:: \max_u \; \log\det Q(u), \qquad A = \frac{1}{r} Q(u)^{-1},

solved by Khachiyan's method with steps towards and away from single pixels; :math:`\max_i y_i^T A y_i \le 1 + \epsilon`
certifies how far the volume is from the least.

References
----------
N. Gillis, S. A. Vavasis, Semidefinite programming based preconditioning for more robust near-separable nonnegative
matrix factorization, SIAM J. Optim. 25 (2015), doi:10.1137/130940670.
M. J. Todd, E. A. Yıldırım, On Khachiyan's algorithm for the computation of minimum-volume enclosing ellipsoids,
Discrete Appl. Math. 155 (2007), doi:10.1016/j.dam.2007.02.013.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from gsnmf.applications.unmixing.subspace import farthest_points, leading_directions
from gsnmf.support.arrays import Doubles, Floats, Indices

_TOLERANCE = 1e-4
_MAX_STEPS = 20_000


def enclosing_ellipsoid(points: Doubles, tolerance: float = _TOLERANCE) -> Doubles:
    """The matrix A of the least ellipsoid :math:`y^T A y \\le 1` around points and their negatives.

    Parameters
    ----------
    points : array, shape (n, d)
        Spanning all d dimensions.
    tolerance : float
        On :math:`\\max_i y_i^T A y_i - 1` before A is scaled so that the largest value is one.

    Examples
    --------
    >>> import numpy as np
    >>> enclosing_ellipsoid(np.array([[2.0, 0], [0, 1], [0.5, 0.5]])).round(3)
    array([[0.25, 0.  ],
           [0.  , 1.  ]])
    """
    n, d = points.shape
    weights = np.full(n, 1.0 / n)
    inverse = np.linalg.inv((points.T * weights) @ points)
    values = np.einsum("ij,jk,ik->i", points, inverse, points)
    for step in range(1, _MAX_STEPS + 1):
        farthest = int(np.argmax(values))
        inside = int(np.argmin(np.where(weights > 0, values, np.inf)))
        if values[farthest] - d <= tolerance * d and d - values[inside] <= tolerance * d:
            break
        towards = values[farthest] - d >= d - values[inside]
        i = farthest if towards else inside
        length = (values[i] - d) / (d * (values[i] - 1.0)) if values[i] > 1.0 else -np.inf
        if not towards:
            length = max(length, -weights[i] / (1.0 - weights[i]))
        weights *= 1.0 - length
        weights[i] = max(0.0, weights[i] + length)
        if step % 200 == 0:  # rank-one updates gather rounding
            inverse = np.linalg.inv((points.T * weights) @ points)
            values = np.einsum("ij,jk,ik->i", points, inverse, points)
            continue
        image = inverse @ points[i]
        factor = length / (1.0 - length + length * values[i])
        inverse = (inverse - factor * np.outer(image, image)) / (1.0 - length)
        values = (values - factor * np.square(points @ image)) / (1.0 - length)
    return inverse / max(float(values.max()), np.finfo(float).tiny)


def preconditioned_projection(pixels: Floats, rank: int) -> Indices:
    """Choose pixels by successive projection after the preconditioning.

    Examples
    --------
    >>> import numpy as np
    >>> spectra = np.array([[1.0, 1, 0], [1, 0.9, 0.2], [0.2, 0, 1]])
    >>> mixed = np.random.default_rng(0).dirichlet(np.ones(3), 60) @ spectra
    >>> sorted(preconditioned_projection(np.vstack([mixed, spectra]), 3).tolist())
    [60, 61, 62]
    """
    directions, _ = leading_directions(pixels, rank)
    points = np.asarray(pixels, dtype=np.float64) @ directions
    points /= max(float(np.abs(points).max()), np.finfo(float).tiny)
    spread = np.linalg.svd(points, compute_uv=False)
    independent = int(np.count_nonzero(spread > 1e-10 * spread[0]))
    points = points[
        :, :independent
    ]  # fewer materials than asked for: the others are chosen by their place in the order
    root = linalg.sqrtm(enclosing_ellipsoid(points))
    return farthest_points(points @ np.real(root), rank)
