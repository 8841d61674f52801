"""Compiled loops for exchanging columns and rows: scores of all exchanges at once, and short fits of trials.

Weights are held with one row per column (row) of the matrix, and their rows are independent problems with one Gram
matrix. Many rows descend side by side, in steps that have no branches. Sums are made in a fixed number of chunks, in an
order that does not depend on the number of threads: results are the same with one thread and with many.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.loops import loop
from gsnmf.support.arrays import Doubles

_CHUNKS = 32
_TILE = 64
"""Rows of weights that descend side by side, so that the innermost loops are long and have no branches."""
_PER_WEIGHT = 30
"""Multiplications that take as long as reading, dividing and writing one weight."""


def exchange_scores(slopes: Doubles, coefficients: Doubles, vectors: Doubles) -> Doubles:
    r"""Squared length of the positive part of slopes + coefficient * vector, for all slopes and all vectors.

    Parameters
    ----------
    slopes : array, shape (c, n)
        M_j'E for candidates j.
    coefficients : array, shape (c, r)
        M_j'W for the left vectors W of the factors.
    vectors : array, shape (r, n)
        The right vectors of the factors.

    Returns
    -------
    array, shape (c, r)
        :math:`\sum_l \max(0, M_j^T E + (M_j^T W_k) H_k)_l^2`: what candidate j explains, times its squared norm, after
        factor k is removed.
    """
    scores = np.empty((slopes.shape[0], vectors.shape[0]))
    coefficients = np.ascontiguousarray(coefficients)  # one order of memory is one compilation
    _score_all(slopes, coefficients, vectors, scores, work=slopes.size * vectors.shape[0])
    return scores


def coupled(A: Doubles, B: Doubles, *, threads: bool) -> Doubles:
    """A'B of two tall arrays."""
    parts = np.zeros((_CHUNKS, A.shape[1], B.shape[1]))
    _cross_chunks(A, B, parts, work=A.size * B.shape[1] if threads else 0)
    return np.asarray(parts.sum(axis=0))


def descend_rows(
    X: Doubles, linear: Doubles, left: Doubles, right: Doubles, gram: Doubles, *, threads: bool
) -> tuple[float, float, float, float]:
    """Improve X in place: two sweeps of coordinate descent on x'Gx / 2 + (linear + left right) x for its rows x >= 0.

    Parameters
    ----------
    X, linear : arrays, shape (n, r), in C order
    left, right : arrays, shape (n, q) and (q, r), in C order
        The low-rank part of the linear term; q may be 0.
    gram : array, shape (r, r)
        Its diagonal is not zero.
    threads : bool
        Whether rows may be shared among threads.

    Returns
    -------
    tuple
        The sums over all rows of x . linear, of x . (linear + left right) and of x . gradient, and the operations, with
        those of reading and writing a row.
    """
    (n, r), q = X.shape, left.shape[1]
    operations = float(-(-n // _TILE) * _TILE * (r * (q + 3 * r) + _PER_WEIGHT * (r + q)))
    parts = np.zeros((_CHUNKS, 3))
    _descend_chunks(X, linear, left, right, gram, parts, work=operations if threads else 0)
    sums = parts.sum(axis=0)
    return float(sums[0]), float(sums[1]), float(sums[2]), operations


@loop(reordered=True)
def _score_all(
    slopes: Doubles, coefficients: Doubles, vectors: Doubles, scores: Doubles, first: int, stride: int
) -> None:
    for j in range(first, slopes.shape[0], stride):
        row = slopes[j]
        for k in range(vectors.shape[0]):
            coefficient = coefficients[j, k]
            total = 0.0
            for i in range(row.size):
                value = max(0.0, row[i] + coefficient * vectors[k, i])
                total += value * value
            scores[j, k] = total


@loop(reordered=True)
def _descend_chunks(
    X: Doubles, linear: Doubles, left: Doubles, right: Doubles, gram: Doubles, parts: Doubles, first: int, stride: int
) -> None:
    """Two sweeps on the rows of some chunks; adds x . linear, x . (linear + coupling) and x . gradient."""
    n, r = X.shape
    tiles = np.zeros((4, r, _TILE))
    x, plain, start, slopes = tiles[0], tiles[1], tiles[2], tiles[3]
    factors = np.zeros((left.shape[1], _TILE))
    for chunk in range(first, _CHUNKS, stride):
        for top in range(chunk * _TILE, n, _CHUNKS * _TILE):
            _read(x, X, top)
            _read(plain, linear, top)
            _read(factors, left, top)
            _copy(start, plain)
            _add_product(start, right, factors)
            _copy(slopes, start)
            _add_product(slopes, gram, x)
            for _ in range(2):
                _sweep(x, slopes, gram)
            for row in range(top, min(top + _TILE, n)):
                for i in range(r):
                    X[row, i] = x[i, row - top]
            parts[chunk, 0] += _dot(x, plain)
            parts[chunk, 1] += _dot(x, start)
            parts[chunk, 2] += _dot(x, slopes)


@compiled(reordered=True, inner=True)
def _read(tile: Doubles, rows: Doubles, top: int) -> None:
    """Rows from ``top`` on become columns of the tile; zeros fill it after the last one."""
    n_rows = min(_TILE, rows.shape[0] - top)
    for row in range(n_rows):
        for i in range(tile.shape[0]):
            tile[i, row] = rows[top + row, i]
    for i in range(tile.shape[0]):
        for row in range(n_rows, _TILE):
            tile[i, row] = 0.0


@compiled(reordered=True, inner=True)
def _copy(target: Doubles, tile: Doubles) -> None:
    for i in range(tile.shape[0]):
        for row in range(_TILE):
            target[i, row] = tile[i, row]


@compiled(reordered=True, inner=True)
def _add_product(tile: Doubles, coefficients: Doubles, factors: Doubles) -> None:
    """Add the transpose of ``coefficients`` times ``factors``."""
    for i in range(factors.shape[0]):
        for k in range(tile.shape[0]):
            coefficient = coefficients[i, k]
            for row in range(_TILE):
                tile[k, row] += coefficient * factors[i, row]


@compiled(reordered=True, inner=True)
def _sweep(x: Doubles, slopes: Doubles, gram: Doubles) -> None:
    """One step of every coordinate of the columns of x, which keeps their slopes up to date."""
    steps = np.empty(_TILE)
    for i in range(x.shape[0]):
        curvature = gram[i, i]
        for row in range(_TILE):
            steps[row] = max(-x[i, row], -slopes[i, row] / curvature)
            x[i, row] = max(0.0, x[i, row] + steps[row])
        for k in range(x.shape[0]):
            coefficient = gram[i, k]
            for row in range(_TILE):
                slopes[k, row] += coefficient * steps[row]


@compiled(reordered=True, inner=True)
def _dot(A: Doubles, B: Doubles) -> float:
    total = 0.0
    for i in range(A.shape[0]):
        for row in range(_TILE):
            total += A[i, row] * B[i, row]
    return total


@loop(reordered=True)
def _cross_chunks(A: Doubles, B: Doubles, parts: Doubles, first: int, stride: int) -> None:
    """Add to the parts of some chunks the product of the transpose of their rows of A with those of B."""
    n = A.shape[0]
    for chunk in range(first, _CHUNKS, stride):
        out = parts[chunk]
        for j in range(chunk * n // _CHUNKS, (chunk + 1) * n // _CHUNKS):
            for i in range(A.shape[1]):
                factor = A[j, i]
                if factor != 0.0:
                    for k in range(B.shape[1]):
                        out[i, k] += factor * B[j, k]
