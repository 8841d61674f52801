r"""Matrices with planted columns and rows: random ones of any size, dense or sparse.

Up to permutations of its rows and columns, an (r1, r2)-separable matrix is (Property 2 of the paper)

.. math::

    M = \begin{pmatrix} W_1 & W_1 H_1 + W_2 H_2 \\ 0 & H_2 \end{pmatrix}
      = \underbrace{\begin{pmatrix} W_1 & W_2 \\ 0 & I \end{pmatrix}}_{W}
        \underbrace{\begin{pmatrix} I & H_1 \\ 0 & H_2 \end{pmatrix}}_{H},

where the first r1 columns and the last r2 rows are the ones to find. Every generator sets the four blocks, adds noise,
permutes, and returns a `Planted`.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import DTypeLike, NDArray
from scipy.optimize import brentq

from gsnmf.matrix.validation import check_count, check_positive, check_rank_pair
from gsnmf.support.arrays import Doubles, Indices, RawMatrix

RandomState: TypeAlias = int | Generator | None


@dataclass(frozen=True, eq=False)
class Planted:
    """A generalized separable matrix with the columns and rows that were planted in it.

    Attributes
    ----------
    matrix : ndarray or csr_array, shape (m, n)
        The matrix to factorize: noisy, and permuted.
    noiseless : ndarray or csr_array, shape (m, n)
        The same without noise; equal to ``W @ H`` up to rounding.
    columns, rows : int arrays of length r1 and r2
        The planted columns and rows, in increasing order.
    W : ndarray or csr_array, shape (m, r1 + r2)
        ``[noiseless[:, columns], P2]``.
    H : ndarray or csr_array, shape (r1 + r2, n)
        ``[P1; noiseless[rows, :]]``.
    noise_level : float
        ||N||_F / ||noiseless||_F for the noise N that was added before negative entries were set to zero.

    Examples
    --------
    >>> from gsnmf.datasets import non_unique_example
    >>> truth = non_unique_example()
    >>> truth.columns, truth.rows
    (array([0, 1]), array([2]))
    >>> bool((truth.W @ truth.H == truth.matrix).all())
    True
    """

    matrix: RawMatrix
    noiseless: RawMatrix
    columns: Indices
    rows: Indices
    W: RawMatrix
    H: RawMatrix
    noise_level: float

    @property
    def column_weights(self) -> RawMatrix:
        """P1, shape (r1, n)."""
        return self.H[: self.columns.size]

    @property
    def row_weights(self) -> RawMatrix:
        """P2, shape (m, r2)."""
        return self.W[:, self.columns.size :]


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

    The nonzeros of :math:`W_1` and :math:`H_2` are uniform in (0, 1]. The columns of :math:`H_1` and the rows of
    :math:`W_2` have equal sums, and at least two nonzero weights each where possible: with one alone, a column (row)
    would repeat a planted one and could take its place.

    Parameters
    ----------
    shape : pair of ints
        Rows and columns (m, n) of the matrix.
    n_columns, n_rows : int
        Numbers of planted columns r1 and rows r2.
    density : float
        Expected share of nonzeros of the whole matrix, which sets the density of :math:`W_1` and :math:`H_2`. A share
        that would need a density above one, as the default does, gives full :math:`W_1` and :math:`H_2`.
    weight_density : float, optional
        Probability that an entry of :math:`H_1` and :math:`W_2` is not zero, besides the two that each column or row
        has at least. By default 1/2, and 0 for a sparse matrix.
    weight_sum : float, optional
        Sum of every column of :math:`H_1` and row of :math:`W_2`. By default 1 if only columns or only rows are
        planted, so that all others are convex combinations of them. Otherwise at most 1/2; see the notes.
    noise_level : float
        ||N||_F / ||noiseless||_F of the Gaussian noise N. A sparse matrix gets noise on its nonzeros only, and those
        that become negative are removed.
    sparse : bool
        Whether all matrices are CSR arrays. No dense matrix is then formed: time and memory grow with the number of
        nonzeros of the factors and the result.
    dtype : float32 or float64
        Type of all matrices.
    random_state : int, numpy.random.Generator or None
        Seed.

    Returns
    -------
    Planted

    Notes
    -----
    With densities p of :math:`W_1` and :math:`H_2` and q of the weights, an entry of :math:`W_1 H_1 + W_2 H_2` is not
    zero with probability :math:`1 - (1 - pq)^{r_1 + r_2}` (q includes the two nonzeros that each has at least); p makes
    the expected number of nonzeros ``density * m * n``. Every planted column and row has a nonzero, so a very small
    ``density`` is exceeded.

    If both columns and rows are planted, a column that meets a nonzero of a planted row gets a multiple of a column of
    :math:`W_2`, which has more nonzeros than a planted column if p < q. The default ``weight_sum``,
    :math:`\min(1/2, r \sqrt{pq} / 4)` with :math:`r = \min(r_1, r_2)`, keeps its norm below that of a planted one on
    average, so that methods that choose by norms can find the planted ones without scaling.

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
    float_type = np.dtype(dtype)
    if float_type not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {float_type}.")
    if weight_density is None:
        weight_density = 0.0 if sparse else 0.5
    q = check_share(weight_density, "weight_density")
    p = _block_density(share, q, m, n, r1, r2)
    total = _weight_sum(p, q, r1, r2) if weight_sum is None else check_positive(weight_sum, "weight_sum")
    rng = np.random.default_rng(random_state)
    W1, H2 = _covered(rng, (m - r2, r1), p, 1), _covered(rng, (n - r1, r2), p, 1).T
    H1 = _with_column_sums(_covered(rng, (r1, n - r1), q, 2), total)
    W2 = _with_column_sums(_covered(rng, (r2, m - r2), q, 2), total).T
    W, H = stacked_factors(W1, H1, W2.tocsr(), H2.tocsr())
    if sparse:
        truth = permuted(rng, *_noisy_product(rng, W, H, level), W, H, r1, level)
    else:
        truth = planted_dense(rng, W.toarray(), H.toarray(), r1, level)
    if float_type == np.float64:
        return truth
    converted = {name: getattr(truth, name).astype(float_type) for name in ("matrix", "noiseless", "W", "H")}
    return replace(truth, **converted)


def stacked_factors(W1: Any, H1: Any, W2: Any, H2: Any) -> tuple[Any, Any]:
    """W = [W1, W2; 0, I] and H = [I, H1; 0, H2], sparse if the blocks are."""
    r1, r2 = W1.shape[1], H2.shape[0]
    if isinstance(W1, np.ndarray):
        zeros = np.zeros((r2, r1))
        return np.block([[W1, W2], [zeros, np.eye(r2)]]), np.block([[np.eye(r1), H1], [zeros, H2]])
    empty = sp.csr_array((r2, r1))
    W = sp.block_array([[W1, W2], [empty, sp.eye_array(r2)]], format="csr")
    return W, sp.block_array([[sp.eye_array(r1), H1], [empty, H2]], format="csr")


def planted_dense(rng: Generator, W: Doubles, H: Doubles, r1: int, level: float, *, permute: bool = True) -> Planted:
    """W H with Gaussian noise and without negative entries."""
    noiseless = W @ H
    noise = with_norm(rng.standard_normal(noiseless.shape), level, noiseless)
    noisy = np.maximum(0.0, noiseless + noise)
    return permuted(rng if permute else None, noisy, noiseless, W, H, r1, level)


def permuted(
    rng: Generator | None, matrix: RawMatrix, noiseless: RawMatrix, W: RawMatrix, H: RawMatrix, r1: int, level: float
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


def with_norm(noise: Doubles, level: float, reference: Doubles) -> Doubles:
    """``noise`` times the constant that gives it the norm ``level * ||reference||``."""
    norm = np.linalg.norm(noise)
    return noise * (level * np.linalg.norm(reference) / norm) if norm > 0 else noise


def sparse_uniform(rng: Generator, shape: tuple[int, int], density: float) -> sp.coo_array:
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


def check_sizes(shape: Any, n_columns: Any, n_rows: Any) -> tuple[int, int, int, int]:
    """Shape (m, n) and numbers of planted columns and rows (r1, r2), for which the blocks above are not empty."""
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


def check_noise_level(value: Any) -> float:
    """A norm of noise relative to the matrix."""
    if not _is_real(value) or not 0 <= value < np.inf:
        raise ValueError(f"noise_level must be a finite number of at least 0; got {value!r}.")
    return float(value)


def check_share(value: Any, name: str, *, positive: bool = False) -> float:
    """A density or probability."""
    if not _is_real(value) or not 0 <= value <= 1 or (positive and value == 0):
        raise ValueError(f"{name} must be in {'(' if positive else '['}0, 1]; got {value!r}.")
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _noisy_product(rng: Generator, W: sp.csr_array, H: sp.csr_array, level: float) -> tuple[sp.csr_array, sp.csr_array]:
    """W H with noise on its nonzeros, and W H itself."""
    noiseless = W @ H
    noisy = noiseless.copy()
    noise = with_norm(rng.standard_normal(noisy.nnz), level, noiseless.data)
    noisy.data = np.maximum(0.0, noisy.data + noise)
    noisy.eliminate_zeros()
    return noisy, noiseless


def _reordered(matrix: RawMatrix, rows: Indices, columns: Indices) -> RawMatrix:
    if isinstance(matrix, np.ndarray):
        return matrix[np.ix_(rows, columns)]
    reordered = matrix[rows][:, columns]
    reordered.sort_indices()
    return reordered


def _coordinates(data: Doubles, row: NDArray[Any], column: NDArray[Any], shape: tuple[int, int]) -> sp.coo_array:
    """A sparse array with the smallest index type, for faster products and less memory."""
    index_type = sp.get_index_dtype(maxval=max(shape))
    return sp.coo_array((data, (row.astype(index_type), column.astype(index_type))), shape=shape)


def _covered(rng: Generator, shape: tuple[int, int], density: float, at_least: int) -> sp.csr_array:
    """As `sparse_uniform`, with ``at_least`` nonzeros in each column that is long enough."""
    drawn = sparse_uniform(rng, shape, density)
    row, column = drawn.row, drawn.col
    for count in range(min(at_least, shape[0])):
        short = np.flatnonzero(np.bincount(column, minlength=shape[1]) == count)
        start, room = np.zeros(shape[1], dtype=np.int64), shape[0] - count
        start[column] = row + 1  # if there is a nonzero, begin after it and stop before it, round the end
        added = (start[short] + rng.integers(room, size=short.size)) % shape[0]
        row, column = np.concatenate([row, added]), np.concatenate([column, short])
    data = np.concatenate([drawn.data, 1.0 - rng.random(row.size - drawn.data.size)])
    return _coordinates(data, row, column, shape).tocsr()


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
