"""The field's algorithms that choose pure pixels: VCA, N-FINDR, PPI and preconditioned successive projection.

Each takes pixels, shape (n, bands), and how many to choose, and returns positions among the pixels.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg

from gsnmf.applications.unmixing.signal_subspace import farthest_points, leading_directions
from gsnmf.support.arrays import Doubles, Floats, Indices

_TINY = np.finfo(float).tiny
_LARGER_VOLUME = 1e-10
"""N-FINDR: a replacement must enlarge the volume by this fraction to count; otherwise rounding could cycle."""
_MAX_ROUNDS = 100
_PPI_DIRECTIONS, _PPI_BLOCK = 2000, 100
"""PPI: random directions, and how many are tried at a time."""
_PPI_CANDIDATES = 20
"""PPI: pixels with the largest counts, per endmember, among which the choice is made."""
_ELLIPSOID_TOLERANCE, _ELLIPSOID_STEPS = 1e-4, 20_000


def vertex_component_analysis(pixels: Floats, rank: int, rng: np.random.Generator) -> Indices:
    r"""Choose pixels by vertex component analysis, VCA; the choice depends on the random numbers.

    The pixels are projected on a subspace of r dimensions: if the signal is strong, on the leading singular vectors and
    then on the plane :math:`\{y : y^T u = 1\}` through the mean u, which removes differences of illumination; else on
    r - 1 principal components and a constant. Each step draws a random direction orthogonal to the endmembers so far
    and takes the pixel that is farthest along it.

    References
    ----------
    J. M. P. Nascimento, J. M. Bioucas-Dias, Vertex component analysis: a fast algorithm to unmix hyperspectral data,
    IEEE Trans. Geosci. Remote Sens. 43 (2005), doi:10.1109/TGRS.2005.844293.

    Examples
    --------
    >>> import numpy as np
    >>> pixels = np.vstack([np.eye(3), np.random.default_rng(0).dirichlet(np.ones(3), 50)])
    >>> sorted(vertex_component_analysis(pixels, 3, np.random.default_rng(1)).tolist())
    [0, 1, 2]
    """
    reduced = _projected_for_vca(np.asarray(pixels, dtype=np.float64), rank)
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


def _projected_for_vca(pixels: Doubles, rank: int) -> Doubles:
    """Coordinates of the pixels, shape (n, rank)."""
    directions, mean = leading_directions(pixels, rank, centred=True)
    centred = (pixels - mean) @ directions
    if _signal_to_noise(pixels, centred, mean) >= 15.0 + 10.0 * math.log10(rank):  # threshold of the paper
        projected = pixels @ leading_directions(pixels, rank)[0]
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
    energy = float(np.einsum("ij,ij->", pixels, pixels)) / n
    inside = float(np.einsum("ij,ij->", centred, centred)) / n + float(mean @ mean)
    noise = energy - inside
    signal = inside - centred.shape[1] / n_bands * energy
    if noise <= 1e-12 * energy:
        return math.inf
    return 10.0 * math.log10(signal / noise) if signal > 0 else -math.inf


def n_findr(pixels: Floats, rank: int) -> Indices:
    r"""Choose the pixels that span the simplex of the largest volume, up to single replacements.

    In r - 1 principal components the volume of the simplex of pixels :math:`y_1, \dots, y_r` is

    .. math:: \frac{1}{(r-1)!} \left| \det \begin{pmatrix} 1 & \cdots & 1 \\ y_1 & \cdots & y_r \end{pmatrix} \right| .

    The determinant is linear in each vertex, so the volumes of all replacements of one vertex are one product of its
    cofactors with all pixels. Starting from successive projection, each vertex is replaced by the best pixel in turn
    until no single replacement enlarges the volume. ``rank`` is at most the number of bands plus one.

    References
    ----------
    M. E. Winter, N-FINDR: an algorithm for fast autonomous spectral end-member determination in hyperspectral data,
    Imaging Spectrometry V, Proc. SPIE 3753 (1999), doi:10.1117/12.366289.

    Examples
    --------
    >>> import numpy as np
    >>> pixels = np.vstack([np.random.default_rng(0).dirichlet(np.ones(3), 50), np.eye(3)])
    >>> sorted(n_findr(pixels, 3).tolist())
    [50, 51, 52]
    """
    values = np.asarray(pixels, dtype=np.float64)
    if rank == 1:  # no volume to maximise: the brightest pixel
        return farthest_points(values, 1)
    directions, mean = leading_directions(values, rank - 1, centred=True)
    reduced = (values - mean) @ directions
    reduced /= np.maximum(np.abs(reduced).max(axis=0), _TINY)
    points = np.hstack([np.ones((len(reduced), 1)), reduced])
    chosen = farthest_points(points, rank)
    for _ in range(_MAX_ROUNDS):
        changed = False
        for k in range(rank):
            volumes = np.abs(points @ _cofactors(points[chosen], k))
            best = int(np.argmax(volumes))
            if volumes[best] > (1.0 + _LARGER_VOLUME) * volumes[chosen[k]] and best not in chosen:
                chosen[k] = best
                changed = True
        if not changed:
            break
    return chosen


def _cofactors(vertices: Doubles, k: int) -> Doubles:
    """The vector c with det(vertices with row k replaced by y) = c . y, up to sign."""
    others = np.delete(vertices, k, axis=0)
    minors = [np.linalg.det(np.delete(others, i, axis=1)) for i in range(len(vertices))]
    return np.asarray((-1.0) ** np.arange(len(vertices)) * minors)


def pixel_purity_index(pixels: Floats, rank: int, rng: np.random.Generator) -> Indices:
    """Choose among the purest pixels those that are most different.

    The pixel purity index, PPI, is how often a pixel is the extreme one along a random direction. It names no
    materials: people looked at the pixels with large counts and grouped them by hand. Here successive projection picks
    among the pixels with the largest counts, so that those chosen are different materials.

    References
    ----------
    J. W. Boardman, F. A. Kruse, R. O. Green, Mapping target signatures via partial unmixing of AVIRIS data, Summaries
    of the Fifth JPL Airborne Earth Science Workshop (1995).
    C.-I Chang, A. Plaza, A fast iterative algorithm for implementation of pixel purity index, IEEE Geosci. Remote Sens.
    Lett. 3 (2006), doi:10.1109/LGRS.2005.856701.
    """
    counts = purity_counts(pixels, rank, rng)
    n_candidates = max(rank, min(_PPI_CANDIDATES * rank, int(np.count_nonzero(counts))))
    purest = np.argsort(-counts, kind="stable")[:n_candidates]
    return purest[farthest_points(np.asarray(pixels[purest], dtype=np.float64), rank)]


def purity_counts(pixels: Floats, rank: int, rng: np.random.Generator, n_directions: int = _PPI_DIRECTIONS) -> Indices:
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
    for start in range(0, n_directions, _PPI_BLOCK):
        projections = reduced @ rng.standard_normal((n_components, min(_PPI_BLOCK, n_directions - start)))
        np.add.at(counts, projections.argmax(axis=0), 1)
        np.add.at(counts, projections.argmin(axis=0), 1)
    return counts


def preconditioned_projection(pixels: Floats, rank: int) -> Indices:
    r"""Choose pixels by successive projection after the endmembers were made nearly orthogonal.

    After a projection on r dimensions, the ellipsoid :math:`\{y : y^T A y \le 1\}` of the least volume around all
    pixels and their negatives is found. If the scene is near-separable its boundary touches the pure pixels, and
    :math:`A^{1/2}` turns them into almost orthogonal vectors of equal length, for which successive projection tolerates
    the most noise.

    References
    ----------
    N. Gillis, S. A. Vavasis, Semidefinite programming based preconditioning for more robust near-separable nonnegative
    matrix factorization, SIAM J. Optim. 25 (2015), doi:10.1137/130940670.

    Examples
    --------
    >>> import numpy as np
    >>> spectra = np.array([[1.0, 1, 0], [1, 0.9, 0.2], [0.2, 0, 1]])
    >>> mixed = np.random.default_rng(0).dirichlet(np.ones(3), 60) @ spectra
    >>> sorted(preconditioned_projection(np.vstack([mixed, spectra]), 3).tolist())
    [60, 61, 62]
    """
    points = np.asarray(pixels, dtype=np.float64) @ leading_directions(pixels, rank)[0]
    points /= max(float(np.abs(points).max()), _TINY)
    spread = np.linalg.svd(points, compute_uv=False)
    # with fewer materials than asked for, the last directions are empty and the ellipsoid would be flat
    points = points[:, : max(1, int(np.count_nonzero(spread > 1e-10 * spread[0])))]
    eigenvalues, vectors = linalg.eigh(enclosing_ellipsoid(points))
    return farthest_points(points @ (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))), rank)


def enclosing_ellipsoid(points: Doubles, tolerance: float = _ELLIPSOID_TOLERANCE) -> Doubles:
    r"""The matrix A of the least ellipsoid :math:`y^T A y \le 1` around points and their negatives.

    It is that of a D-optimal design: with weights u on the simplex and :math:`Q(u) = \sum_i u_i y_i y_i^T`,

    .. math:: \max_u \; \log\det Q(u), \qquad A = \frac{1}{d} Q(u)^{-1},

    solved by Khachiyan's method with steps towards and away from single points;
    :math:`\max_i y_i^T A y_i \le 1 + \epsilon` certifies how far the volume is from the least.

    Parameters
    ----------
    points : array, shape (n, d)
        Spanning all d dimensions.
    tolerance : float
        :math:`\epsilon`, before A is scaled so that the largest value is one.

    References
    ----------
    M. J. Todd, E. A. Yıldırım, On Khachiyan's algorithm for the computation of minimum-volume enclosing ellipsoids,
    Discrete Appl. Math. 155 (2007), doi:10.1016/j.dam.2007.02.013.

    Examples
    --------
    >>> import numpy as np
    >>> enclosing_ellipsoid(np.array([[2.0, 0], [0, 1], [0.5, 0.5]])).round(3)
    array([[0.25, 0.  ],
           [0.  , 1.  ]])
    """
    n, d = points.shape
    if d == 1:  # the step below would have length one and leave a single point
        return np.array([[1.0 / max(float(np.square(points).max()), _TINY)]])
    weights = np.full(n, 1.0 / n)
    inverse = np.linalg.inv((points.T * weights) @ points)
    values = np.einsum("ij,jk,ik->i", points, inverse, points)
    for step in range(1, _ELLIPSOID_STEPS + 1):
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
        if step % 200 == 0:  # rank-one updates accumulate rounding
            inverse = np.linalg.inv((points.T * weights) @ points)
            values = np.einsum("ij,jk,ik->i", points, inverse, points)
            continue
        image = inverse @ points[i]
        factor = length / (1.0 - length + length * values[i])
        inverse = (inverse - factor * np.outer(image, image)) / (1.0 - length)
        values = (values - factor * np.square(points @ image)) / (1.0 - length)
    return inverse / max(float(values.max()), _TINY)
