"""Exchanging columns and rows: scores of all exchanges at once, and short fits of trials.

Weights are held with one row per column (row) of the matrix, and their rows are independent problems with one Gram
matrix. Many rows descend side by side, in steps that have no branches. Sums are made in a fixed number of chunks, so
results are the same with one thread and with many.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Doubles

_exchange_score_rows, _positive_square_rows = Loop(native.exchange_score_rows), Loop(native.positive_square_rows)
_cross_product_chunks, _descend_trial_chunks = Loop(native.cross_product_chunks), Loop(native.descend_trial_chunks)

_PER_WEIGHT = 30
"""Multiplications that take as long as reading, dividing and writing one weight; measured with 6 to 40 factors."""


def positive_squares(rows: Doubles) -> Doubles:
    """Sum of the squares of the positive entries of each row.

    Examples
    --------
    >>> positive_squares(np.array([[1.0, -2.0, 3.0], [-1.0, 0.0, -1.0]]))
    array([10.,  0.])
    """
    sums = np.empty(rows.shape[0])
    _positive_square_rows(np.ascontiguousarray(rows), sums, work=8 * rows.size)
    return sums


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
    arrays = (np.ascontiguousarray(array) for array in (slopes, coefficients, vectors))
    _exchange_score_rows(*arrays, scores, work=slopes.size * vectors.shape[0])
    return scores


def cross_product(A: Doubles, B: Doubles, *, threads: bool) -> Doubles:
    """A'B of two tall arrays, the same for any number of threads."""
    products = np.zeros((native.N_CHUNKS, A.shape[1], B.shape[1]))
    work = A.size * B.shape[1] if threads else 0
    _cross_product_chunks(np.ascontiguousarray(A), np.ascontiguousarray(B), products, work=work)
    return np.asarray(products.sum(axis=0))


def descend_trial(
    X: Doubles, linear: Doubles, left: Doubles, right: Doubles, gram: Doubles, *, threads: bool
) -> tuple[float, float, float, float]:
    """Improve X in place: two sweeps of coordinate descent on x'Gx / 2 + (linear + left right) x for its rows x >= 0.

    Parameters
    ----------
    X, linear : arrays, shape (n, r)
        X in C order.
    left, right : arrays, shape (n, q) and (q, r)
        The low-rank part of the linear term; q may be 0.
    gram : array, shape (r, r)
        Its diagonal is not zero.
    threads : bool
        Whether rows may be shared among threads.

    Returns
    -------
    tuple
        The sums over all rows of x . linear, of x . (linear + left right) and of x . gradient, and the number of
        operations, including those of reading and writing a row.
    """
    (n, r), q = X.shape, left.shape[1]
    n_padded = -(-n // native.TILE_WIDTH) * native.TILE_WIDTH
    operations = float(n_padded * (r * (q + 3 * r) + _PER_WEIGHT * (r + q)))
    parts = np.zeros((native.N_CHUNKS, 3))
    arrays = (np.ascontiguousarray(array) for array in (linear, left, right, gram))
    _descend_trial_chunks(X, *arrays, parts, work=operations if threads else 0)
    plain, whole, slopes = parts.sum(axis=0).tolist()
    return plain, whole, slopes, operations
