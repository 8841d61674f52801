r"""Planting columns and rows in a matrix: random blocks, noise, permutations, and checks of what was asked for.

Up to permutations of its rows and columns, an (r1, r2)-separable matrix is (Property 2 of the paper)

.. math::

    M = \begin{pmatrix} W_1 & W_1 H_1 + W_2 H_2 \\ 0 & H_2 \end{pmatrix}
      = \underbrace{\begin{pmatrix} W_1 & W_2 \\ 0 & I \end{pmatrix}}_{W}
        \underbrace{\begin{pmatrix} I & H_1 \\ 0 & H_2 \end{pmatrix}}_{H},

where the first r1 columns and the last r2 rows are the ones to find. Every generator draws or sets the four blocks,
adds noise, permutes, and returns a `Planted`.
"""

from __future__ import annotations

import numbers
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import NDArray

from gsnmf.datasets.ground_truth import Planted
from gsnmf.matrix.checks import check_count, check_rank_pair
from gsnmf.support.arrays import Doubles, Indices, RawMatrix

RandomState: TypeAlias = int | Generator | None


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


def _reordered(matrix: RawMatrix, rows: Indices, columns: Indices) -> RawMatrix:
    if isinstance(matrix, np.ndarray):
        return matrix[np.ix_(rows, columns)]
    reordered = matrix[rows][:, columns]
    reordered.sort_indices()
    return reordered


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
    return coordinates(1.0 - rng.random(positions.size), row, column, shape)


def coordinates(data: Doubles, row: NDArray[Any], column: NDArray[Any], shape: tuple[int, int]) -> sp.coo_array:
    """A sparse array with the smallest index type: products are faster, and memory is less."""
    index_type = sp.get_index_dtype(maxval=max(shape))
    return sp.coo_array((data, (row.astype(index_type), column.astype(index_type))), shape=shape)


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
