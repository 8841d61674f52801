"""Random generalized separable matrices of any size, dense or sparse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import DTypeLike
from scipy.optimize import brentq

from gsnmf.datasets.ground_truth import Planted
from gsnmf.datasets.planting import (
    RandomState,
    check_noise_level,
    check_share,
    check_sizes,
    coordinates,
    permuted,
    planted_dense,
    sparse_uniform,
    with_norm,
)
from gsnmf.matrix.checks import check_positive


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
    m, n, r1, r2 = check_sizes(shape, n_columns, n_rows)
    level = check_noise_level(noise_level)
    share = check_share(density, "density", positive=True)
    float_type = _check_float_type(dtype)
    if weight_density is None:
        weight_density = 0.0 if sparse else 0.5
    q = check_share(weight_density, "weight_density")
    p = _block_density(share, q, m, n, r1, r2)
    total = _weight_sum(p, q, r1, r2) if weight_sum is None else check_positive(weight_sum, "weight_sum")
    rng = np.random.default_rng(random_state)
    W1, H2 = _covered(rng, (m - r2, r1), p, 1), _covered(rng, (n - r1, r2), p, 1).T
    H1 = _with_column_sums(_covered(rng, (r1, n - r1), q, 2), total)
    W2 = _with_column_sums(_covered(rng, (r2, m - r2), q, 2), total).T
    W, H = _sparse_factors(W1, H1, W2.tocsr(), H2.tocsr())
    if sparse:
        return _cast(_planted_sparse(rng, W, H, r1, level), float_type)
    return _cast(planted_dense(rng, W.toarray(), H.toarray(), r1, level), float_type)


def _sparse_factors(
    W1: sp.csr_array, H1: sp.csr_array, W2: sp.csr_array, H2: sp.csr_array
) -> tuple[sp.csr_array, sp.csr_array]:
    r1, r2 = W1.shape[1], H2.shape[0]
    zeros = sp.csr_array((r2, r1))
    W = sp.block_array([[W1, W2], [zeros, sp.eye_array(r2)]], format="csr")
    H = sp.block_array([[sp.eye_array(r1), H1], [zeros, H2]], format="csr")
    return W, H


def _planted_sparse(rng: Generator, W: sp.csr_array, H: sp.csr_array, r1: int, level: float) -> Planted:
    noiseless = W @ H
    noisy = noiseless.copy()
    noise = with_norm(rng.standard_normal(noisy.nnz), level, noiseless.data)
    noisy.data = np.maximum(0.0, noisy.data + noise)
    noisy.eliminate_zeros()
    return permuted(rng, noisy, noiseless, W, H, r1, level)


def _covered(rng: Generator, shape: tuple[int, int], density: float, at_least: int) -> sp.csr_array:
    """As `sparse_uniform`, with one or two nonzeros at least in each column, if it is long enough."""
    drawn = sparse_uniform(rng, shape, density)
    row, column = drawn.row, drawn.col
    for count in range(min(at_least, shape[0])):
        short = np.flatnonzero(np.bincount(column, minlength=shape[1]) == count)
        start, room = np.zeros(shape[1], dtype=np.int64), shape[0] - count
        start[column] = row + 1  # if there is a nonzero, begin after it and stop before it, round the end
        added = (start[short] + rng.integers(room, size=short.size)) % shape[0]
        row, column = np.concatenate([row, added]), np.concatenate([column, short])
    data = np.concatenate([drawn.data, 1.0 - rng.random(row.size - drawn.data.size)])
    return coordinates(data, row, column, shape).tocsr()


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
    matrices = {name: getattr(truth, name).astype(dtype) for name in ("matrix", "noiseless", "W", "H")}
    return replace(truth, **matrices)


def _check_float_type(dtype: DTypeLike) -> np.dtype[np.float32] | np.dtype[np.float64]:
    float_type = np.dtype(dtype)
    if float_type == np.float32:
        return np.dtype(np.float32)
    if float_type == np.float64:
        return np.dtype(np.float64)
    raise ValueError(f"dtype must be float32 or float64; got {float_type}.")
