"""The matrices of the paper: closed forms that show one property each, and the random ones of its experiments.

References
----------
J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE Transactions on Pattern
Analysis and Machine Intelligence 43 (2021). doi:10.1109/TPAMI.2019.2956046
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from gsnmf.datasets.planting import (
    Planted,
    RandomState,
    check_noise_level,
    check_share,
    check_sizes,
    permuted,
    planted_dense,
    sparse_uniform,
    stacked_factors,
    with_norm,
)
from gsnmf.matrix.scaling import scale as scale_matrix
from gsnmf.matrix.validation import check_count, check_positive
from gsnmf.support.arrays import Doubles


def two_one_separable(n: int) -> Planted:
    r"""The 3 x n matrix of Lemma 1: (2, 1)-separable, but not (n - 1, 0)-separable.

    .. math:: M_n = \begin{pmatrix} 1 & 0 & 1/2 & 0 & x^T \\ 0 & 1 & 0 & 1/2 & y^T \\
        0 & 0 & 1/2 & 1/2 & z^T \end{pmatrix},

    with :math:`y_i = 2 (1/2 - x_i)^2`, :math:`z_i = 1 - x_i - y_i` and :math:`x` evenly spaced strictly
    inside (0, 1/2). Every column is an extreme ray of the cone that they span; but two columns and the last
    row explain everything, :math:`M_n = M_n(:, 1{:}2) M_n(1{:}2, :) + (0, 0, 1)^T M_n(3, :)`.

    Parameters
    ----------
    n : int
        Number of columns, at least 4.

    Returns
    -------
    Planted
        With columns 0 and 1 and row 2. The decomposition is not the only one of its size: three rows do too.

    Examples
    --------
    >>> two_one_separable(5).matrix
    array([[1.   , 0.   , 0.5  , 0.   , 0.25 ],
           [0.   , 1.   , 0.   , 0.5  , 0.125],
           [0.   , 0.   , 0.5  , 0.5  , 0.625]])
    """
    M = _curve(check_count(n, "n"), "n")
    W, H = np.eye(3), M  # [M(:, 1:2), P2] and [P1; M(3, :)]
    return _closed_form(M, W, H, columns=[0, 1], rows=[2])


def three_three_separable(m: int, n: int) -> Planted:
    r"""The matrix of Property 5: (3, 3)-separable, while neither columns nor rows alone compress it.

    .. math:: M = \begin{pmatrix} 0_{3,3} & M_n \\ M_m^T & 0_{m,n} \end{pmatrix}

    of shape (m + 3) x (n + 3), with :math:`M_n` as in `two_one_separable`. It is not (n + 2, 0)-separable nor
    (0, m + 2)-separable.

    Parameters
    ----------
    m, n : int
        At least 4 each.

    Returns
    -------
    Planted
        With columns and rows 2, 3 and 4. The decomposition is not the only one of its size.

    Examples
    --------
    >>> truth = three_three_separable(20, 30)
    >>> truth.matrix.shape, truth.columns, truth.rows
    ((23, 33), array([2, 3, 4]), array([2, 3, 4]))
    """
    upper, lower = _curve(check_count(n, "n"), "n"), _curve(check_count(m, "m"), "m").T
    rows, columns = lower.shape[0] + 3, upper.shape[1] + 3
    M = np.zeros((rows, columns))
    M[:3, 3:] = upper
    M[3:, :3] = lower
    P1, P2 = np.zeros((3, columns)), np.zeros((rows, 3))
    P1[0, 2] = P2[2, 0] = 1.0  # column 2 and row 2 serve themselves alone
    P1[1:, 3:] = upper[:2]
    P2[3:, 1:] = lower[:, :2]
    selected = [2, 3, 4]
    return _closed_form(M, np.hstack([M[:, selected], P2]), np.vstack([P1, M[selected]]), selected, selected)


def non_unique_example() -> Planted:
    """The paper's smallest matrix that is both (2, 1)- and (1, 2)-separable (after Property 9).

    Returns
    -------
    Planted
        With columns 0 and 1 and row 2; column 0 and rows 1 and 2 do as well.

    Examples
    --------
    >>> non_unique_example().matrix
    array([[1., 0., 2.],
           [0., 1., 2.],
           [0., 0., 1.]])
    """
    M = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]])
    W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    return _closed_form(M, W, H, columns=[0, 1], rows=[2])


def gspa_failure_example(epsilon: float = 0.001) -> Planted:
    r"""The paper's Example 1: a 5 x 5 matrix, not scaled, on which GSPA fails after scaling.

    It is (2, 2)-separable with

    .. math:: W_1 = \begin{pmatrix} 1 & \epsilon \\ 1 & 2 \\ 1 & 3 \end{pmatrix}, \quad
        H_1 = \begin{pmatrix} \epsilon & 2\epsilon & 3\epsilon \\ \epsilon & 1 & 2 \end{pmatrix}, \quad
        H_2 = W_1^T, \quad W_2 = H_1^T.

    Scaled, its largest column is the third and its largest row the first, and neither is planted.

    Parameters
    ----------
    epsilon : float
        Positive; the paper takes 0.001.

    Returns
    -------
    Planted
        With columns 0 and 1 and rows 3 and 4 (the paper's text has rows {5, 6}, counted from one; {4, 5} is
        meant).

    Examples
    --------
    >>> gspa_failure_example().matrix.round(3)
    array([[1.0000e+00, 1.0000e-03, 2.0000e-03, 6.0000e-03, 9.0000e-03],
           [1.0000e+00, 2.0000e+00, 6.0000e-03, 4.0040e+00, 7.0050e+00],
           [1.0000e+00, 3.0000e+00, 9.0000e-03, 7.0050e+00, 1.2006e+01],
           [0.0000e+00, 0.0000e+00, 1.0000e+00, 1.0000e+00, 1.0000e+00],
           [0.0000e+00, 0.0000e+00, 1.0000e-03, 2.0000e+00, 3.0000e+00]])
    """
    small = check_positive(epsilon, "epsilon")
    W1 = np.array([[1.0, small], [1.0, 2.0], [1.0, 3.0]])
    H1 = np.array([[small, 2 * small, 3 * small], [small, 1.0, 2.0]])
    W, H = stacked_factors(W1, H1, H1.T, W1.T)
    return _closed_form(W @ H, W, H, columns=[0, 1], rows=[3, 4])


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
    if scale and r1 and r2 and r1 * m + r2 * n >= m * n:
        raise ValueError(
            f"n_columns / {n} + n_rows / {m} must be below 1 to scale a matrix of shape {(m, n)}; "
            f"got n_columns={r1} and n_rows={r2}."
        )
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


def _closed_form(M: Doubles, W: Doubles, H: Doubles, columns: list[int], rows: list[int]) -> Planted:
    return Planted(M, M.copy(), np.array(columns, dtype=np.intp), np.array(rows, dtype=np.intp), W, H, 0.0)


def _curve(n: int, name: str) -> Doubles:
    """The matrix M_n of Lemma 1."""
    if n < 4:
        raise ValueError(f"{name} must be an integer of at least 4; got {n}.")
    x = np.concatenate([[0.5, 0.0], np.linspace(0.0, 0.5, n - 2)[1:-1]])
    y = 2 * (0.5 - x) ** 2
    return np.hstack([np.eye(3, 2), np.vstack([x, y, 1 - x - y])])


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
