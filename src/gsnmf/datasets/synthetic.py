"""The random matrices of the paper's experiments: fully random, and middle points with adversarial noise.

References
----------
J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE Transactions on Pattern
Analysis and Machine Intelligence 43 (2021). doi:10.1109/TPAMI.2019.2956046
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from gsnmf.datasets.ground_truth import Planted, stacked_factors
from gsnmf.datasets.planting import (
    RandomState,
    check_noise_level,
    check_share,
    check_sizes,
    permuted,
    planted_dense,
    sparse_uniform,
    with_norm,
)
from gsnmf.matrix.checks import check_count
from gsnmf.matrix.scaling import scale as scale_matrix
from gsnmf.support.arrays import Doubles


def fully_random(
    noise_level: float = 0.0,
    *,
    shape: tuple[int, int] = (100, 100),
    n_columns: int = 20,
    n_rows: int = 20,
    density: float = 0.5,
    scale: bool = True,
    permute: bool = True,
    random_state: RandomState = None,
) -> Planted:
    r"""The paper's fully random matrices (section "Fully randomly generated data").

    .. math:: \Pi_r \max\left(0, D_r
        \begin{pmatrix} W_1 & W_1 H_1 + W_2 H_2 \\ 0 & H_2 \end{pmatrix} D_c + N\right) \Pi_c

    with :math:`W_1, H_2` uniform in [0, 1], :math:`H_1, W_2` sparse with uniform nonzeros, diagonal
    :math:`D_r, D_c` that scale the rows and columns to equal sums, Gaussian noise with
    :math:`\|N\|_F = \epsilon \|M_s\|_F`, where :math:`M_s` is the scaled matrix without noise, and random
    permutations.

    Parameters
    ----------
    noise_level : float
        :math:`\epsilon`; the paper takes 20 values, ``numpy.logspace(-3, 0, 20)``.
    shape : pair of ints
        Rows and columns (m, n) of the matrix.
    n_columns, n_rows : int
        Numbers of planted columns r1 and rows r2. To be scaled, the matrix needs r1 / n + r2 / m < 1 unless
        one of them is zero.
    density : float
        Probability that an entry of :math:`H_1` and :math:`W_2` is not zero.
    scale : bool
        Whether to scale (see `gsnmf.scale`: mean entry one); :math:`D_r = I, D_c = I` if not.
    permute : bool
        Whether to permute; if not, the planted columns come first and the planted rows last.
    random_state : int, numpy.random.Generator or None
        Seed.

    Returns
    -------
    Planted

    Examples
    --------
    >>> truth = fully_random(0.01, shape=(30, 40), n_columns=4, n_rows=5, random_state=0)
    >>> truth.matrix.shape, truth.columns.size, truth.rows.size
    ((30, 40), 4, 5)
    >>> float(truth.noiseless[truth.rows][:, truth.columns].max())
    0.0
    """
    level = check_noise_level(noise_level)
    m, n, r1, r2 = check_sizes(shape, n_columns, n_rows)
    share = check_share(density, "density")
    if scale:
        _check_scalable(m, n, r1, r2)
    rng = np.random.default_rng(random_state)
    W1, H2 = rng.random((m - r2, r1)), rng.random((r2, n - r1))
    H1 = sparse_uniform(rng, (r1, n - r1), share).toarray()
    W2 = sparse_uniform(rng, (m - r2, r2), share).toarray()
    W, H = stacked_factors(W1, H1, W2, H2)
    if scale:
        W, H = _scaled_factors(W, H, r1)
    return planted_dense(rng, W, H, r1, level, permute=permute)


def middle_points(
    noise_level: float = 0.0,
    *,
    n_columns: int = 10,
    n_rows: int = 12,
    permute: bool = True,
    random_state: RandomState = None,
) -> Planted:
    r"""The paper's middle points with adversarial noise.

    As `fully_random`, except that the columns of :math:`H_1` (rows of :math:`W_2`) are all the vectors with
    two entries 1/2, so that the matrix consists of middle points of the planted columns and rows, and that
    the noise moves these outwards: it is zero on the planted columns and rows, and elsewhere proportional to

    .. math:: W_1 H_1 + W_2 H_2 - \bar w e^T - e \bar h, \qquad
        \bar w = \tfrac{1}{r_1} W_1 e, \quad \bar h = \tfrac{1}{r_2} e^T H_2,

    with :math:`\|N\|_F = \epsilon \|M_s\|_F`. The matrix is m x n with :math:`m = r_2 + \binom{r_2}{2}` and
    :math:`n = r_1 + \binom{r_1}{2}`: 78 x 55 in the paper.

    Parameters
    ----------
    noise_level : float
        :math:`\epsilon`.
    n_columns, n_rows : int
        Numbers of planted columns r1 and rows r2, with 2 / (r1 + 1) + 2 / (r2 + 1) < 1: only then can the
        matrix be scaled.
    permute, random_state : bool and seed
        As for `fully_random`.

    Returns
    -------
    Planted

    Notes
    -----
    The sum :math:`W_1 H_1 + W_2 H_2` above is the block of the scaled matrix, while :math:`\bar w` and
    :math:`\bar h` are the averages of :math:`W_1` and :math:`H_2` as they were drawn, before scaling. The
    paper leaves this open; with averages of the scaled blocks the noise is so mild that every method stays
    perfect, which is not what the paper reports.

    Examples
    --------
    >>> truth = middle_points(0.1, random_state=0)
    >>> truth.matrix.shape
    (78, 55)
    >>> bool((truth.matrix[:, truth.columns] == truth.noiseless[:, truth.columns]).all())
    True
    """
    level = check_noise_level(noise_level)
    r1, r2 = check_count(n_columns, "n_columns"), check_count(n_rows, "n_rows")
    m, n = r2 * (r2 + 1) // 2, r1 * (r1 + 1) // 2
    if 2 / (r1 + 1) + 2 / (r2 + 1) >= 1:
        raise ValueError(
            "2 / (n_columns + 1) + 2 / (n_rows + 1) must be below 1 for the matrix to be scaled; "
            f"got n_columns={r1} and n_rows={r2}."
        )
    rng = np.random.default_rng(random_state)
    W1, H2 = rng.random((m - r2, r1)), rng.random((r2, n - r1))
    W, H = _scaled_factors(*stacked_factors(W1, _midpoints(r1).T, _midpoints(r2), H2), r1)
    noiseless = W @ H
    noise = np.zeros_like(noiseless)
    noise[: m - r2, r1:] = noiseless[: m - r2, r1:] - W1.mean(axis=1)[:, None] - H2.mean(axis=0)
    noisy = np.maximum(0.0, noiseless + with_norm(noise, level, noiseless))
    return permuted(rng if permute else None, noisy, noiseless, W, H, r1, level)


def _scaled_factors(W: Doubles, H: Doubles, r1: int) -> tuple[Doubles, Doubles]:
    """The factors of the scaled W H, again with identities in the weights (Property 6)."""
    scaling = scale_matrix(W @ H)
    r2 = W.shape[1] - r1
    r, c = scaling.row_factors, scaling.column_factors
    planted_columns, planted_rows = c[:r1], r[r.size - r2 :]
    scaled_W = r[:, None] * W * np.concatenate([planted_columns, 1.0 / planted_rows])
    scaled_H = np.concatenate([1.0 / planted_columns, planted_rows])[:, None] * H * c
    scaled_W[r.size - r2 :, r1:] = np.eye(r2)  # exactly, so that W H repeats the planted columns and rows
    scaled_H[:r1, :r1] = np.eye(r1)
    return scaled_W, scaled_H


def _midpoints(r: int) -> Doubles:
    """All vectors of length r with two entries 1/2, as rows."""
    pairs = np.array(list(combinations(range(r), 2)))
    points = np.zeros((pairs.shape[0], r))
    np.put_along_axis(points, pairs, 0.5, axis=1)
    return points


def _check_scalable(m: int, n: int, r1: int, r2: int) -> None:
    if r1 and r2 and r1 * m + r2 * n >= m * n:
        raise ValueError(
            f"n_columns / {n} + n_rows / {m} must be below 1 to scale a matrix of shape {(m, n)}; "
            f"got n_columns={r1} and n_rows={r2}."
        )
