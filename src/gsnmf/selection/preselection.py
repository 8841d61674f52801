"""Preselection: a few hundred columns and rows that stand for all the others.

Methods whose cost grows with the square of the matrix first choose candidates. The paper clusters the columns and the
rows, keeps one representative per cluster, and scales it by the square root of the size of its cluster, so each counts
for all that it represents. Weights and errors always refer to the whole matrix.

References
----------
J. Pan, N. Gillis, Generalized separable nonnegative matrix factorization, IEEE TPAMI 43 (2021),
doi:10.1109/TPAMI.2019.2956046.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.checks import check_count
from gsnmf.matrix.protocol import dense
from gsnmf.selection.clustering import hierarchical_clusters
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices

_CANDIDATES = 4
"""Successive projection considers this many times as many columns as requested."""


@dataclass(frozen=True, eq=False)
class Preselection:
    """Columns and rows that stand for all the others.

    Attributes
    ----------
    columns, rows : int arrays
        Indices in increasing order, of nonzero columns and rows only.
    column_sizes, row_sizes : int arrays
        How many columns each column stands for, itself included, and the same for rows.
    """

    columns: Indices
    rows: Indices
    column_sizes: Indices
    row_sizes: Indices

    def reduced(self, matrix: InMemoryMatrix) -> Floats:
        """M[rows][:, columns], each column and row times the square root of its size, as a dense array.

        In the unit in which ``matrix`` is held (`Matrix.exponent`).
        """
        block = dense(matrix.submatrix(self.columns)[self.rows])
        column_scale = np.sqrt(self.column_sizes).astype(matrix.dtype)
        row_scale = np.sqrt(self.row_sizes).astype(matrix.dtype)
        return np.asarray(block * row_scale[:, np.newaxis] * column_scale)


def preselect(matrix: InMemoryMatrix, n_columns: int, n_rows: int) -> Preselection:
    """Choose columns and rows that stand for all the others: representatives of `hierarchical_clusters`.

    Parameters
    ----------
    matrix : InMemoryMatrix, shape (m, n)
    n_columns, n_rows : int
        The largest numbers of each. A side with no more nonzero ones than that is kept whole.
    """
    columns = hierarchical_clusters(matrix, n_columns, axis="columns")
    rows = hierarchical_clusters(matrix, n_rows, axis="rows")
    return Preselection(columns.representatives, rows.representatives, columns.sizes, rows.sizes)


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
