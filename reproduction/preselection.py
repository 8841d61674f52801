r"""Hierarchical clustering of columns, or rows, by rank-two nonnegative factorizations.

A cluster K of columns is described by the best rank-one approximation of M(:, K),
whose squared error is :math:`\|M(:, K)\|_F^2 - \sigma_1^2(K)`. Splitting K into K1 and K2 therefore lowers the error by

.. math:: \sigma_1^2(K_1) + \sigma_1^2(K_2) - \sigma_1^2(K) \;\in\; [0, \sigma_2^2(K)],

and the cluster whose split lowers it most is split next. The upper bound holds because the two rank-one approximations
together have rank two; it avoids computing splits that cannot be next. A split follows the rank-two factorization M(:,
K) ~ W H with nonnegative W and H: W starts from the two extreme columns of the best rank-two approximation, and each
factor given the other is nonnegative least squares in two variables, solved in closed form.

References
----------
N. Gillis, D. Kuang, H. Park, Hierarchical clustering of hyperspectral images using rank-two nonnegative matrix
factorization, IEEE Trans. Geosci. Remote Sens. 53 (2015), doi:10.1109/TGRS.2014.2352857.
D. Kuang, H. Park, Fast rank-2 nonnegative matrix factorization for hierarchical document clustering, KDD (2013),
doi:10.1145/2487575.2487606.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.protocol import dense
from gsnmf.matrix.validation import check_count
from gsnmf.support.arrays import Axis, Doubles, Flags, Floats, Indices

_SMALL = 64
"""Up to this many columns or rows, singular vectors come from the eigenvectors of a Gram matrix."""

_KRYLOV_STEPS = 4
"""Steps of three vectors each; clusters need singular values to a percent or so, not to rounding."""

_ROUNDS = 2
"""How often W is updated. On the paper's documents two updates gave better selections than none, ten no better."""

_TIE = 64.0
"""Squared quantities closer than this times eps are equal."""

_Submatrix = Floats | sp.csc_array


@dataclass(frozen=True, eq=False)
class Clusters:
    """Columns (or rows) grouped by direction.

    Attributes
    ----------
    representatives : int array, shape (n_clusters,)
        For each cluster, the column with the smallest angle to its leading singular vector, in increasing order.
    sizes : int array, shape (n_clusters,)
        Number of columns in each cluster.
    labels : int array, shape (n,)
        Cluster of each column, -1 for a zero column.
    """

    representatives: Indices
    sizes: Indices
    labels: Indices


def hierarchical_clusters(matrix: InMemoryMatrix, n_clusters: int, *, axis: Axis = "columns") -> Clusters:
    """Group columns (or rows) by direction, by repeated rank-two nonnegative factorization.

    Parameters
    ----------
    matrix : InMemoryMatrix, shape (m, n)
    n_clusters : int
        The largest number of clusters. There are fewer if there are fewer nonzero columns (each is then its own
        cluster), or fewer directions, up to rounding.
    axis : {"columns", "rows"}
        What to group.

    Returns
    -------
    Clusters

    Notes
    -----
    Costs O(nnz(M) log C) for C clusters of similar size, and at most O(nnz(M) C); the largest extra memory is a copy
    of M. Sparse matrices stay sparse.

    A column goes with the factor of its larger weight, for factors of unit length. The publication balances the sizes
    of the two parts instead, which led to worse selections on most of the paper's document matrices.

    Examples
    --------
    Three directions:

    >>> import numpy as np
    >>> from gsnmf.matrix import wrap
    >>> M = wrap(np.array([[1.0, 0, 2, 0, 1], [0, 1, 0, 0, 1], [0, 3, 0, 0, 0]]))
    >>> clusters = hierarchical_clusters(M, 3)
    >>> clusters.representatives, clusters.sizes, clusters.labels
    (array([1, 2, 4]), array([1, 2, 1]), array([ 1,  0,  1, -1,  2]))
    """
    n_clusters = check_count(n_clusters, "n_clusters")
    side = matrix if axis == "columns" else matrix.T
    nonzero = np.flatnonzero(side.squared_column_norms)
    if nonzero.size <= n_clusters:
        representatives, groups = nonzero, list(nonzero.reshape(-1, 1))
    else:
        with single_threaded_blas():  # many small problems
            leaves = _split_repeatedly(side, nonzero, n_clusters)
        leaves.sort(key=lambda cluster: cluster.representative)
        representatives = np.array([cluster.representative for cluster in leaves], dtype=np.intp)
        groups = [cluster.indices for cluster in leaves]
    labels = np.full(side.shape[1], -1, dtype=np.intp)
    for label, group in enumerate(groups):
        labels[group] = label
    return Clusters(representatives, np.array([group.size for group in groups], dtype=np.intp), labels)


@dataclass(frozen=True, eq=False)
class _Cluster:
    indices: Indices
    representative: int
    energy: float
    """Largest squared singular value: what a rank-one approximation explains."""
    bound: float = 0.0
    """Second squared singular value: no split explains more than this in addition."""
    parts: tuple[Indices, Indices] | None = None
    """How to split the cluster; None if its columns are parallel."""


def _split_repeatedly(matrix: InMemoryMatrix, indices: Indices, n_clusters: int) -> list[_Cluster]:
    """Split the cluster that gains most until there are ``n_clusters``, or only parallel columns in each.

    The heap ranks a cluster by its bound until it reaches the top, and then by the gain of its split.
    """
    tolerance = _TIE * float(np.finfo(matrix.dtype).eps)
    heap: list[tuple[float, int, _Cluster, tuple[_Cluster, ...]]] = []
    leaves: list[_Cluster] = []
    n_made = 0

    def add(cluster: _Cluster) -> None:
        nonlocal n_made
        n_made += 1
        if cluster.parts is None:
            leaves.append(cluster)
        else:
            heapq.heappush(heap, (-cluster.bound, n_made, cluster, ()))

    add(_cluster(matrix, indices))
    while heap and len(heap) + len(leaves) < n_clusters:
        _, order, cluster, children = heapq.heappop(heap)
        if children:
            for child in children:
                add(child)
            continue
        children = tuple(_cluster(matrix, part) for part in cluster.parts or ())
        gain = sum(child.energy for child in children) - cluster.energy
        if gain > tolerance * cluster.energy:
            heapq.heappush(heap, (-gain, order, cluster, children))
        else:
            leaves.append(cluster)
    return leaves + [cluster for _, _, cluster, _ in heap]


def _cluster(matrix: InMemoryMatrix, indices: Indices) -> _Cluster:
    norms = matrix.squared_column_norms[indices]
    if indices.size == 1:
        return _Cluster(indices, int(indices[0]), float(norms[0]))
    columns = _without_zero_rows(matrix.submatrix(indices))
    if columns.shape[0] == 1:
        return _Cluster(indices, int(indices[np.argmax(norms)]), float(norms.sum()))
    tolerance = _TIE * float(np.finfo(matrix.dtype).eps)
    squares, left, coordinates = _leading_two(columns, norms)
    cosines = np.square(coordinates[0]) / norms
    closest = np.flatnonzero(cosines >= (1.0 - tolerance) * cosines.max())
    representative = int(indices[closest[np.argmax(norms[closest])]])
    energy, bound = float(squares[0]), float(squares[1])
    first = _first_part(columns, left, coordinates, np.sqrt(norms)) if bound > tolerance * energy else None
    parts = None if first is None else (indices[first], indices[~first])
    return _Cluster(indices, representative, energy, bound, parts)


def _leading_two(columns: _Submatrix, norms: Doubles) -> tuple[Doubles, Floats, Floats]:
    """The two largest squared singular values, their left vectors U (m x 2), and the coordinates U'A (2 x n)."""
    transpose = columns.T
    if min(columns.shape) > _SMALL:
        basis, image = _krylov(columns, transpose, norms)
        squares, vectors = _largest_eigenpairs(image.T @ image)
        return squares, basis @ vectors, (image @ vectors).T
    if columns.shape[0] < columns.shape[1]:
        squares, left = _largest_eigenpairs(columns @ transpose)
        return squares, left, np.asarray(transpose @ left).T
    squares, right = _largest_eigenpairs(transpose @ columns)
    lengths = np.sqrt(squares).astype(right.dtype)
    left = np.asarray(columns @ right) / np.maximum(lengths, np.finfo(right.dtype).tiny)
    return squares, left, (right * lengths).T


def _largest_eigenpairs(gram: Any) -> tuple[Doubles, Floats]:
    values, vectors = np.linalg.eigh(dense(gram))
    return np.maximum(values[:-3:-1], 0.0).astype(np.float64), vectors[:, :-3:-1]


def _krylov(columns: _Submatrix, transpose: Any, norms: Doubles) -> tuple[Floats, Floats]:
    """Orthonormal basis Q of a block Krylov space of AA', and A'Q.

    It starts from three vectors, none of them random: the sum of the columns, the largest column and the one farthest
    from it. A single vector would find only one of several equal singular values.
    """
    largest = int(np.argmax(norms))
    projections = np.asarray(transpose @ _dense_column(columns, largest)) / np.sqrt(norms[largest])
    farthest = int(np.argmax(norms - np.square(projections)))
    total = np.asarray(columns @ np.ones(columns.shape[1], dtype=columns.dtype))
    block = np.column_stack([total, _dense_column(columns, largest), _dense_column(columns, farthest)])
    basis = np.empty((columns.shape[0], 3 * _KRYLOV_STEPS), dtype=columns.dtype, order="F")
    image = np.empty((columns.shape[1], 3 * _KRYLOV_STEPS), dtype=columns.dtype, order="F")
    for end in range(0, 3 * _KRYLOV_STEPS, 3):
        known = basis[:, :end]
        for _ in range(2):  # once would leave rounding errors within the basis (Kahan)
            block = np.linalg.qr(block - known @ (known.T @ block))[0]
        new = slice(end, end + 3)
        basis[:, new], image[:, new] = block, transpose @ block
        block = np.asarray(columns @ np.ascontiguousarray(image[:, new]))
    return basis, image


def _first_part(columns: _Submatrix, left: Floats, coordinates: Floats, lengths: Doubles) -> Flags | None:
    """Which columns belong to the first of two nonnegative factors; None if nothing tells them apart.

    Columns that are orthogonal to both, up to rounding, stay together: the shares of their weights mean nothing. The
    split is at the gap between shares that is nearest to one half, so columns of one direction stay together and
    neither part is empty.
    """
    weights = _rank_two_weights(columns, left, coordinates)
    total = weights.sum(axis=0)
    rounding = _TIE * float(np.finfo(columns.dtype).eps) * lengths
    shares = np.divide(weights[0], total, out=np.full(total.size, 0.5), where=total > rounding)
    ordered = np.sort(shares)
    gaps = np.flatnonzero(np.diff(ordered) > np.sqrt(np.finfo(columns.dtype).eps))
    if gaps.size == 0:
        return None
    middles = 0.5 * (ordered[gaps] + ordered[gaps + 1])
    return np.asarray(shares > middles[np.argmin(np.abs(middles - 0.5))])


def _rank_two_weights(columns: _Submatrix, left: Floats, coordinates: Floats) -> Doubles:
    """H (2 x n) of a nonnegative rank-two factorization A ~ W H with columns of W of unit length."""
    transpose = columns.T
    first = int(np.argmax(np.einsum("ij,ij->j", coordinates, coordinates)))
    cross_products = coordinates[0] * coordinates[1, first] - coordinates[1] * coordinates[0, first]
    extremes = coordinates[:, [first, int(np.argmax(np.abs(cross_products)))]]
    W = np.maximum(left @ extremes, 0.0)
    for _ in range(_ROUNDS):
        W = _best_weights(columns, _best_weights(transpose, W).T).T
    return _best_weights(transpose, W)


def _best_weights(transpose: Any, factor: Floats) -> Doubles:
    """H >= 0 (2 x n) that minimises ||A - W H||, given A' and a nonnegative ``factor`` whose columns make W.

    W has columns of unit length, with cosine c between them. For a column a of A let f = W'a: if f2 <= c f1 the second
    weight would be negative, and the best is (f1, 0); likewise with 1 and 2 swapped; otherwise both are positive.
    """
    lengths = np.linalg.norm(factor, axis=0)
    unit = np.divide(factor, lengths, out=np.zeros(factor.shape), where=lengths > 0).astype(transpose.dtype)
    cosine = float(unit[:, 0] @ unit[:, 1])
    if cosine > 1.0 - _TIE * float(np.finfo(transpose.dtype).eps):
        cosine = 1.0
    f = np.asarray(transpose @ unit).T.astype(np.float64)
    unbounded = f - cosine * f[::-1]
    one_is_zero = (unbounded <= 0.0).any(axis=0)
    H = np.divide(unbounded, (1.0 - cosine) * (1.0 + cosine), out=np.zeros(f.shape), where=~one_is_zero)
    larger = np.array([f[0] >= f[1], f[0] < f[1]])
    return np.where(one_is_zero & larger, f, H)


def _without_zero_rows(columns: _Submatrix) -> _Submatrix:
    """The same columns without empty rows, so the work on a sparse cluster is proportional to its nonzeros."""
    if isinstance(columns, np.ndarray):
        used = columns.any(axis=1)
        return columns if used.all() else columns[used]
    present = np.zeros(columns.shape[0], dtype=np.bool_)
    present[columns.indices] = True
    position = np.cumsum(present, dtype=columns.indices.dtype) - 1
    shape = (int(position[-1]) + 1, columns.shape[1])
    return sp.csc_array((columns.data, position[columns.indices], columns.indptr), shape=shape)


def _dense_column(columns: _Submatrix, index: int) -> Floats:
    if isinstance(columns, np.ndarray):
        return columns[:, index]
    start, end = columns.indptr[index : index + 2]
    column = np.zeros(columns.shape[0], dtype=columns.dtype)
    column[columns.indices[start:end]] = columns.data[start:end]
    return column


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
