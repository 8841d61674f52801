r"""Matrices that are generalized separable by construction, with their ground truth.

Up to permutations of its rows and columns, an (r1, r2)-separable matrix is (Property 2 of the paper)

.. math::

    M = \begin{pmatrix} W_1 & W_1 H_1 + W_2 H_2 \\ 0 & H_2 \end{pmatrix}
      = \underbrace{\begin{pmatrix} W_1 & W_2 \\ 0 & I \end{pmatrix}}_{W}
        \underbrace{\begin{pmatrix} I & H_1 \\ 0 & H_2 \end{pmatrix}}_{H},

where the first r1 columns and the last r2 rows are the ones to find. Every generator here draws or sets the
four blocks and returns a `Planted`.

References
----------
J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE Transactions on Pattern
Analysis and Machine Intelligence 43 (2021). doi:10.1109/TPAMI.2019.2956046
"""

from __future__ import annotations

import numbers
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import DTypeLike, NDArray
from scipy.optimize import brentq

from gsnmf.datasets.ground_truth import Doubles, Planted, stacked_factors
from gsnmf.scaling import scale as scale_matrix
from gsnmf.validation import Indices, Matrix, check_count, check_positive, check_rank_pair

RandomState: TypeAlias = int | Generator | None


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
        Whether to scale (see `gsnmf.scaling.scale`: mean entry one); :math:`D_r = I, D_c = I` if not.
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
    level = _check_noise_level(noise_level)
    m, n, r1, r2 = _check_sizes(shape, n_columns, n_rows)
    share = _check_share(density, "density")
    if scale:
        _check_scalable(m, n, r1, r2)
    rng = np.random.default_rng(random_state)
    W1, H2 = rng.random((m - r2, r1)), rng.random((r2, n - r1))
    H1 = _sparse_uniform(rng, (r1, n - r1), share).toarray()
    W2 = _sparse_uniform(rng, (m - r2, r2), share).toarray()
    W, H = stacked_factors(W1, H1, W2, H2)
    if scale:
        W, H = _scaled_factors(W, H, r1)
    return _planted_dense(rng, W, H, r1, level, permute=permute)


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
    permute : bool
        Whether to permute; if not, the planted columns come first and the planted rows last.
    random_state : int, numpy.random.Generator or None
        Seed.

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
    level = _check_noise_level(noise_level)
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
    noisy = np.maximum(0.0, noiseless + _with_norm(noise, level, noiseless))
    return _permuted(rng if permute else None, noisy, noiseless, W, H, r1, level)


def planted(
    shape: tuple[int, int],
    n_columns: int,
    n_rows: int,
    *,
    density: float = 1.0,
    weight_density: float | None = None,
    weight_sum: float | None = None,
    noise_level: float = 0.0,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    random_state: RandomState = None,
) -> Planted:
    r"""A random generalized separable matrix of any size, dense or sparse, not scaled.

    .. math:: \Pi_r \max\left(0,
        \begin{pmatrix} W_1 & W_1 H_1 + W_2 H_2 \\ 0 & H_2 \end{pmatrix} + N\right) \Pi_c

    The nonzeros of :math:`W_1` and :math:`H_2` are uniform in (0, 1]. The columns of :math:`H_1` and the rows
    of :math:`W_2` have equal sums. Each has at least two nonzero weights if it can have two, for otherwise a
    column (row) that repeats a planted one could take its place.

    Parameters
    ----------
    shape : pair of ints
        Rows and columns (m, n) of the matrix.
    n_columns, n_rows : int
        Numbers of planted columns r1 and rows r2.
    density : float
        Wanted share of nonzeros of the whole matrix, which it has on average: ``k / (m * n)`` for about k
        nonzeros. The densities of :math:`W_1` and :math:`H_2` follow from it. They cannot exceed one: a share
        that would ask for more, as the default does, gives full :math:`W_1` and :math:`H_2`.
    weight_density : float, optional
        Probability that an entry of :math:`H_1` and :math:`W_2` is not zero, before the two that a column or
        row has at least. By default 1/2, and for a sparse matrix 0: just these two.
    weight_sum : float, optional
        Sum of every column of :math:`H_1` and row of :math:`W_2`. By default 1 if only columns or only rows are
        planted: all others are then convex combinations of them. Otherwise at most 1/2; see the notes.
    noise_level : float
        ||N||_F / ||noiseless||_F of the Gaussian noise N. A sparse matrix gets noise on its nonzeros only,
        and entries that it makes negative disappear.
    sparse : bool
        Whether all matrices are CSR arrays. Nothing is ever dense then: time and memory grow with the number
        of nonzeros of the factors and the result.
    dtype : float32 or float64
        Type of all matrices.
    random_state : int, numpy.random.Generator or None
        Seed.

    Returns
    -------
    Planted

    Notes
    -----
    With densities p of :math:`W_1` and :math:`H_2` and q of the weights, an entry of
    :math:`W_1 H_1 + W_2 H_2` is not zero with probability :math:`1 - (1 - pq)^{r_1 + r_2}` (with a q for
    :math:`H_1` and one for :math:`W_2` that count the two weights there are at least); p is chosen so that the
    expected number of nonzeros is ``density * m * n``. Every planted column and row has a nonzero;
    this alone can be more than was asked for if ``density`` is very small.

    If both columns and rows are planted, a column that meets a nonzero of a planted row gets a multiple of a
    column of :math:`W_2`, which has more nonzeros than a planted column if p < q. The default ``weight_sum``,
    :math:`\min(1/2, r \sqrt{pq} / 4)` with :math:`r = \min(r_1, r_2)`, keeps the norm of such a column below
    that of a planted one on average, so that the planted ones stand out for methods that choose by norms,
    although the matrix is not scaled.

    Examples
    --------
    >>> truth = planted((300, 200), 3, 2, density=0.05, sparse=True, random_state=0)
    >>> truth.matrix.format, 2000 < truth.matrix.nnz < 4000
    ('csr', True)
    >>> truth.noiseless[truth.rows][:, truth.columns].nnz
    0
    """
    m, n, r1, r2 = _check_sizes(shape, n_columns, n_rows)
    level = _check_noise_level(noise_level)
    share = _check_share(density, "density", positive=True)
    float_type = _check_float_type(dtype)
    if weight_density is None:
        weight_density = 0.0 if sparse else 0.5
    q = _check_share(weight_density, "weight_density")
    p = _block_density(share, q, m, n, r1, r2)
    total = _weight_sum(p, q, r1, r2) if weight_sum is None else check_positive(weight_sum, "weight_sum")
    rng = np.random.default_rng(random_state)
    W1, H2 = _covered(rng, (m - r2, r1), p, 1), _covered(rng, (n - r1, r2), p, 1).T
    H1 = _with_column_sums(_covered(rng, (r1, n - r1), q, 2), total)
    W2 = _with_column_sums(_covered(rng, (r2, m - r2), q, 2), total).T
    W, H = _sparse_factors(W1, H1, W2.tocsr(), H2.tocsr())
    if sparse:
        truth = _planted_sparse(rng, W, H, r1, level)
    else:
        truth = _planted_dense(rng, W.toarray(), H.toarray(), r1, level)
    return _cast(truth, float_type)


def _sparse_factors(
    W1: sp.csr_array, H1: sp.csr_array, W2: sp.csr_array, H2: sp.csr_array
) -> tuple[sp.csr_array, sp.csr_array]:
    r1, r2 = W1.shape[1], H2.shape[0]
    zeros = sp.csr_array((r2, r1))
    W = sp.block_array([[W1, W2], [zeros, sp.eye_array(r2)]], format="csr")
    H = sp.block_array([[sp.eye_array(r1), H1], [zeros, H2]], format="csr")
    return W, H


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


def _planted_dense(rng: Generator, W: Doubles, H: Doubles, r1: int, level: float, *, permute: bool = True) -> Planted:
    noiseless = W @ H
    noise = _with_norm(rng.standard_normal(noiseless.shape), level, noiseless)
    noisy = np.maximum(0.0, noiseless + noise)
    return _permuted(rng if permute else None, noisy, noiseless, W, H, r1, level)


def _planted_sparse(rng: Generator, W: sp.csr_array, H: sp.csr_array, r1: int, level: float) -> Planted:
    noiseless = W @ H
    noisy = noiseless.copy()
    noise = _with_norm(rng.standard_normal(noisy.nnz), level, noiseless.data)
    noisy.data = np.maximum(0.0, noisy.data + noise)
    noisy.eliminate_zeros()
    return _permuted(rng, noisy, noiseless, W, H, r1, level)


def _permuted(
    rng: Generator | None, matrix: Matrix, noiseless: Matrix, W: Matrix, H: Matrix, r1: int, level: float
) -> Planted:
    """Permute rows and columns, and the rank-one factors so that the planted indices increase."""
    m, n = matrix.shape
    r2 = W.shape[1] - r1
    row_order = np.arange(m) if rng is None else rng.permutation(m)
    column_order = np.arange(n) if rng is None else rng.permutation(n)
    columns = np.argsort(column_order)[:r1]  # where the first r1 columns went
    rows = np.argsort(row_order)[m - r2 :]
    factors = np.concatenate([np.argsort(columns), r1 + np.argsort(rows)])
    return Planted(
        matrix=_reordered(matrix, row_order, column_order),
        noiseless=_reordered(noiseless, row_order, column_order),
        columns=np.sort(columns),
        rows=np.sort(rows),
        W=_reordered(W, row_order, factors),
        H=_reordered(H, factors, column_order),
        noise_level=level,
    )


def _reordered(matrix: Matrix, rows: Indices, columns: Indices) -> Matrix:
    if isinstance(matrix, np.ndarray):
        return matrix[np.ix_(rows, columns)]
    reordered = matrix[rows][:, columns]
    reordered.sort_indices()
    return reordered


def _midpoints(r: int) -> Doubles:
    """All vectors of length r with two entries 1/2, as rows."""
    pairs = np.array(list(combinations(range(r), 2)))
    points = np.zeros((pairs.shape[0], r))
    np.put_along_axis(points, pairs, 0.5, axis=1)
    return points


def _with_norm(noise: Doubles, level: float, reference: Doubles) -> Doubles:
    """``noise`` times the constant that gives it the norm ``level * ||reference||``."""
    norm = np.linalg.norm(noise)
    return noise * (level * np.linalg.norm(reference) / norm) if norm > 0 else noise


def _sparse_uniform(rng: Generator, shape: tuple[int, int], density: float) -> sp.coo_array:
    """Entries that are nonzero with probability ``density``, and then uniform in (0, 1]."""
    size = shape[0] * shape[1]
    positions = np.empty(0, dtype=np.int64)
    last = -1
    while density > 0 and last < size:  # the gaps between nonzeros are geometric: memory follows their number
        missing = (size - last) * density
        gaps = rng.geometric(density, int(missing + 4 * np.sqrt(missing)) + 8)
        positions = np.concatenate([positions, last + np.cumsum(np.minimum(gaps, size + 1))])
        last = int(positions[-1])
    positions = positions[positions < size]
    row, column = np.divmod(positions, max(1, shape[1]))
    return _coordinates(1.0 - rng.random(positions.size), row, column, shape)


def _covered(rng: Generator, shape: tuple[int, int], density: float, at_least: int) -> sp.csr_array:
    """As `_sparse_uniform`, with one or two nonzeros at least in each column, if it is long enough."""
    drawn = _sparse_uniform(rng, shape, density)
    row, column = drawn.row, drawn.col
    for count in range(min(at_least, shape[0])):
        short = np.flatnonzero(np.bincount(column, minlength=shape[1]) == count)
        start, room = np.zeros(shape[1], dtype=np.int64), shape[0] - count
        start[column] = row + 1  # if there is a nonzero, begin after it and stop before it, round the end
        added = (start[short] + rng.integers(room, size=short.size)) % shape[0]
        row, column = np.concatenate([row, added]), np.concatenate([column, short])
    data = np.concatenate([drawn.data, 1.0 - rng.random(row.size - drawn.data.size)])
    return _coordinates(data, row, column, shape).tocsr()


def _coordinates(data: Doubles, row: NDArray[Any], column: NDArray[Any], shape: tuple[int, int]) -> sp.coo_array:
    """A sparse array with the smallest index type: products are faster, and memory is less."""
    index_type = sp.get_index_dtype(maxval=max(shape))
    return sp.coo_array((data, (row.astype(index_type), column.astype(index_type))), shape=shape)


def _with_column_sums(weights: sp.csr_array, total: float) -> sp.csr_array:
    """Every column divided so that it sums to ``total``; none is zero unless there are no rows."""
    sums = weights.T @ np.ones(weights.shape[0])
    weights.data *= total / sums[weights.indices]
    return weights


def _block_density(share: float, q: float, m: int, n: int, r1: int, r2: int) -> float:
    """The density of W1 and H2 for which a ``share`` of all entries is expected to be nonzero."""
    planted_entries = (m - r2) * r1 + r2 * (n - r1)
    other_entries = (m - r2) * (n - r1)
    column_q, row_q = _weight_density(q, r1), _weight_density(q, r2)

    def excess(p: float) -> float:
        other = 1 - (1 - p * column_q) ** r1 * (1 - p * row_q) ** r2
        return p * planted_entries + other * other_entries - share * m * n

    return 1.0 if excess(1.0) <= 0 else float(brentq(excess, 0.0, 1.0, xtol=1e-15, rtol=1e-12))


def _weight_density(q: float, r: int) -> float:
    """Expected density of columns of length r drawn with density q, with at least two nonzeros each."""
    if r < 2:
        return 1.0
    none, one = (1 - q) ** r, r * q * (1 - q) ** (r - 1)
    return q + (2 * none + one) / r


def _weight_sum(p: float, q: float, r1: int, r2: int) -> float:
    r = min(r1, r2)
    return 1.0 if r == 0 else min(0.5, r * float(np.sqrt(p * _weight_density(q, r))) / 4)


def _cast(truth: Planted, dtype: np.dtype[Any]) -> Planted:
    if dtype == np.float64:
        return truth
    return Planted(
        truth.matrix.astype(dtype),
        truth.noiseless.astype(dtype),
        truth.columns,
        truth.rows,
        truth.W.astype(dtype),
        truth.H.astype(dtype),
        truth.noise_level,
    )


def _check_sizes(shape: Any, n_columns: Any, n_rows: Any) -> tuple[int, int, int, int]:
    try:
        m, n = shape
    except (TypeError, ValueError):
        raise ValueError(f"shape must be a pair (rows, columns); got {shape!r}.") from None
    m, n = check_count(m, "shape[0]"), check_count(n, "shape[1]")
    r1, r2 = check_rank_pair((n_columns, n_rows), (m, n))
    if (r1 and r2 == m) or (r2 and r1 == n):
        raise ValueError(
            f"n_columns must be below {n} and n_rows below {m}, or one of them 0, for shape {(m, n)}; "
            f"got n_columns={r1} and n_rows={r2}."
        )
    return m, n, r1, r2


def _check_scalable(m: int, n: int, r1: int, r2: int) -> None:
    if r1 and r2 and r1 * m + r2 * n >= m * n:
        raise ValueError(
            f"n_columns / {n} + n_rows / {m} must be below 1 to scale a matrix of shape {(m, n)}; "
            f"got n_columns={r1} and n_rows={r2}."
        )


def _check_noise_level(value: Any) -> float:
    if not _is_real(value) or not 0 <= value < np.inf:
        raise ValueError(f"noise_level must be a finite number of at least 0; got {value!r}.")
    return float(value)


def _check_share(value: Any, name: str, *, positive: bool = False) -> float:
    if not _is_real(value) or not 0 <= value <= 1 or (positive and value == 0):
        raise ValueError(f"{name} must be in {'(' if positive else '['}0, 1]; got {value!r}.")
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_float_type(dtype: DTypeLike) -> np.dtype[np.float32] | np.dtype[np.float64]:
    float_type = np.dtype(dtype)
    if float_type == np.float32:
        return np.dtype(np.float32)
    if float_type == np.float64:
        return np.dtype(np.float64)
    raise ValueError(f"dtype must be float32 or float64; got {float_type}.")
