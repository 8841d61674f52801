"""Candidates: a few hundred columns or rows, the largest and those farthest from each other."""

from __future__ import annotations

import numpy as np

from gsnmf.matrix import Matrix
from gsnmf.matrix.validation import check_count
from gsnmf.support.arrays import Axis, Doubles, Indices

_CANDIDATES = 4
"""Successive projection considers this many times as many columns as requested."""


def largest_and_farthest(matrix: Matrix, n: int, *, axis: Axis = "columns") -> Indices:
    """At most ``n`` nonzero columns (or rows): half by successive projection, the rest by the largest norms.

    Returns
    -------
    int array
        Distinct, in increasing order; fewer than ``n`` only if there are no more nonzero ones.

    Notes
    -----
    Successive projection is run on the 4 n largest columns and costs their Gram matrix and O(n^3). It is that of all
    columns as long as no residual that it chooses is smaller than the largest column left out.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrix import wrap
    >>> largest_and_farthest(wrap(np.array([[9.0, 8, 0, 7], [0, 0, 1, 0]])), 2)
    array([0, 1])
    """
    n = check_count(n, "n")
    side = matrix.along(axis)
    by_norm = np.argsort(-side.squared_column_norms, kind="stable")[: np.count_nonzero(side.squared_column_norms)]
    if by_norm.size <= n:
        return np.sort(by_norm)
    candidates = np.sort(by_norm[: _CANDIDATES * n])
    farthest = candidates[_farthest(side.gram(candidates), float(np.finfo(side.dtype).eps), n // 2)]
    largest = by_norm[~np.isin(by_norm, farthest)]
    return np.sort(np.concatenate([farthest, largest[: n - farthest.size]]))


def _farthest(gram: Doubles, eps: float, n: int) -> list[int]:
    """At most ``n`` columns by successive projection, as the pivots of a Cholesky factorization of their Gram matrix.

    Its vectors have one entry per column, not per row. It stops early once Gram products have lost their digits.
    """
    residual = gram.diagonal().copy()
    zero = residual.size * eps * float(residual.max())
    factor = np.empty((n, residual.size))
    chosen: list[int] = []
    for k in range(n):
        pivot = int(np.argmax(residual))
        if residual[pivot] <= zero:
            break
        row = (gram[pivot] - factor[:k, pivot] @ factor[:k]) / np.sqrt(residual[pivot])
        residual -= np.square(row)
        residual[pivot] = 0.0
        factor[k] = row
        chosen.append(pivot)
    return chosen
