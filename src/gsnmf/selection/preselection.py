r"""Preselection: a few hundred columns and rows that stand for all the others.

Methods whose cost grows with the square of the matrix first choose candidates. The paper clusters the columns, and
the rows, keeps one representative a cluster, and scales it by the square root of the size of its cluster, so that the
reduced matrix weighs what it stands for. Weights and errors are always those of the whole matrix.

The clustering is hierarchical. A cluster K of columns is described by the best rank-one approximation of M(:, K),
whose squared error is :math:`\|M(:, K)\|_F^2 - \sigma_1^2(K)`. Splitting K into K1 and K2 therefore lowers the error by

.. math:: \sigma_1^2(K_1) + \sigma_1^2(K_2) - \sigma_1^2(K) \;\in\; [0, \sigma_2^2(K)],

and the cluster whose split lowers it most is split next. The upper bound holds because the two rank-one
approximations together have rank two; it spares the splits that cannot be next. A split follows the rank-two
factorization M(:, K) ~ W H with nonnegative W and H: W starts from the two extreme columns of the best rank-two
approximation, and each factor given the other is nonnegative least squares in two variables, solved in closed form.

References
----------
N. Gillis, D. Kuang, H. Park, Hierarchical clustering of hyperspectral images using rank-two nonnegative matrix
factorization, IEEE Trans. Geosci. Remote Sens. 53 (2015), doi:10.1109/TGRS.2014.2352857.
D. Kuang, H. Park, Fast rank-2 nonnegative matrix factorization for hierarchical document clustering, KDD (2013),
doi:10.1145/2487575.2487606.
J. Pan, N. Gillis, Generalized separable nonnegative matrix factorization, IEEE TPAMI 43 (2021),
doi:10.1109/TPAMI.2019.2956046.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf.products import DenseProducts, Products, SparseProducts, products
from gsnmf.results import Selection
from gsnmf.validation import Floats, Indices, check_count
from gsnmf.weights import single_threaded_blas

_SMALL = 64
"""Up to this many columns or rows, singular vectors come from the eigenvectors of a Gram matrix."""

_KRYLOV_STEPS = 4
"""Steps of three vectors each; clusters need singular values to a percent or so, not to rounding."""

_ROUNDS = 2
"""How often W is updated. Two led to better selections of the paper's documents than none, ten to no better ones."""

_CANDIDATES = 4
"""Successive projection looks at this many times as many columns as are asked for."""

_TIE = 64.0
"""Squared quantities closer than this times eps are equal."""

_Array = NDArray[np.float64]
_Submatrix = Floats | sp.csc_array
_Axis = Literal["columns", "rows"]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Columns (or rows) grouped by direction.

    Attributes
    ----------
    representatives : int array, shape (n_clusters,)
        Of each cluster the column of smallest angle to its leading singular vector, in increasing order.
    sizes : int array, shape (n_clusters,)
        Number of columns in each cluster.
    labels : int array, shape (n,)
        Cluster of each column, -1 for a zero column.
    """

    representatives: Indices
    sizes: Indices
    labels: Indices


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

    def reduced(self, matrix: Products) -> Floats:
        """M[rows][:, columns], each column and row times the square root of its size, as a dense array.

        In the unit in which ``matrix`` is held (`Products.exponent`).
        """
        block = _dense(_submatrix(matrix, self.columns)[self.rows])
        column_scale = np.sqrt(self.column_sizes).astype(matrix.dtype)
        row_scale = np.sqrt(self.row_sizes).astype(matrix.dtype)
        return np.asarray(block * row_scale[:, np.newaxis] * column_scale)


def select_preselected(
    matrix: Products,
    rank: Any,
    method: Callable[[Products, Any], Selection],
    *,
    n_columns: int = 500,
    n_rows: int = 500,
    preselection: Literal["clusters", "norms"] = "clusters",
) -> Selection:
    """Choose columns and rows among preselected ones, as in the paper's document experiment.

    Parameters
    ----------
    matrix : Products, shape (m, n)
    rank : int, or pair (n_columns, n_rows)
        What ``method`` takes.
    method : callable
        Chooses columns and rows of the reduced matrix, for example
        `gsnmf.selection.successive_projection.generalized_successive_projection` or a `gsnmf.Method`.
    n_columns, n_rows : int
        Candidates each way. A side that has no more than that is kept whole.
    preselection : {"clusters", "norms"}
        How the candidates are found; see `preselect`.

    Returns
    -------
    Selection
        Indices of the whole matrix. Its ``stop_reason`` is about the reduced matrix.

    Examples
    --------
    >>> from gsnmf.datasets import fully_random
    >>> from gsnmf.products import products
    >>> from gsnmf.selection.successive_projection import generalized_successive_projection
    >>> data = fully_random(0.0, shape=(60, 80), n_columns=3, n_rows=2, random_state=0)
    >>> selection = select_preselected(
    ...     products(data.matrix), 5, generalized_successive_projection, n_columns=40, n_rows=40
    ... )
    >>> selection.n_selected
    5
    """
    candidates = preselect(matrix, n_columns, n_rows, method=preselection)
    if candidates.columns.size == 0:  # a zero matrix
        return method(matrix, rank)
    selection = method(products(candidates.reduced(matrix)), rank)
    return replace(selection, columns=candidates.columns[selection.columns], rows=candidates.rows[selection.rows])


def preselect(
    matrix: Products, n_columns: int, n_rows: int, *, method: Literal["clusters", "norms"] = "clusters"
) -> Preselection:
    """Choose columns and rows that stand for all the others.

    Parameters
    ----------
    matrix : Products, shape (m, n)
    n_columns, n_rows : int
        How many of each at most. A side that has no more nonzero ones is kept whole.
    method : {"clusters", "norms"}
        ``"clusters"``: representatives of `hierarchical_clusters`, with the sizes of their clusters. ``"norms"``: those
        of `largest_and_farthest`, each of size one.
    """
    if method == "clusters":
        columns = hierarchical_clusters(matrix, n_columns, axis="columns")
        rows = hierarchical_clusters(matrix, n_rows, axis="rows")
        return Preselection(columns.representatives, rows.representatives, columns.sizes, rows.sizes)
    if method != "norms":
        raise ValueError(f"method must be 'clusters' or 'norms'; got {method!r}.")
    column_indices = largest_and_farthest(matrix, n_columns, axis="columns")
    row_indices = largest_and_farthest(matrix, n_rows, axis="rows")
    return Preselection(column_indices, row_indices, np.ones_like(column_indices), np.ones_like(row_indices))


def largest_and_farthest(matrix: Products, n: int, *, axis: _Axis = "columns") -> Indices:
    """At most ``n`` nonzero columns (or rows): half by successive projection, the others by the largest norms.

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
    >>> from gsnmf.products import products
    >>> largest_and_farthest(products(np.array([[9.0, 8, 0, 7], [0, 0, 1, 0]])), 2)
    array([0, 1])
    """
    n = check_count(n, "n")
    side = matrix if axis == "columns" else matrix.T
    by_norm = np.argsort(-side.squared_column_norms, kind="stable")[: np.count_nonzero(side.squared_column_norms)]
    if by_norm.size <= n:
        return np.sort(by_norm)
    candidates = by_norm[: _CANDIDATES * n]
    farthest = candidates[_farthest(_submatrix(side, candidates), n // 2)]
    largest = by_norm[~np.isin(by_norm, farthest)]
    return np.sort(np.concatenate([farthest, largest[: n - farthest.size]]))


def _farthest(columns: _Submatrix, n: int) -> list[int]:
    """At most ``n`` columns by successive projection, as the pivots of a Cholesky factorization of the Gram matrix.

    Its vectors are as long as there are columns, not rows. It stops early where Gram products have lost their digits.
    """
    gram = _dense(columns.T @ columns).astype(np.float64, copy=False)
    residual = gram.diagonal().copy()
    zero = residual.size * float(np.finfo(columns.dtype).eps) * float(residual.max())
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


def hierarchical_clusters(matrix: Products, n_clusters: int, *, axis: _Axis = "columns") -> Clusters:
    """Group columns (or rows) by direction, by repeated rank-two nonnegative factorization.

    Parameters
    ----------
    matrix : Products, shape (m, n)
    n_clusters : int
        How many clusters at most. There are fewer if there are fewer nonzero columns, each then a cluster of its own,
        or if, to rounding, there are fewer directions.
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
    >>> from gsnmf.products import products
    >>> M = products(np.array([[1.0, 0, 2, 0, 1], [0, 1, 0, 0, 1], [0, 3, 0, 0, 0]]))
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
    """How to split it; None if its columns are parallel."""


def _split_repeatedly(matrix: Products, indices: Indices, n_clusters: int) -> list[_Cluster]:
    """Split the cluster that gains most until there are ``n_clusters``, or only parallel columns in each.

    The heap holds a cluster by its bound until it comes to the top, and then by the gain of its split.
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


def _cluster(matrix: Products, indices: Indices) -> _Cluster:
    norms = matrix.squared_column_norms[indices]
    if indices.size == 1:
        return _Cluster(indices, int(indices[0]), float(norms[0]))
    columns = _without_zero_rows(_submatrix(matrix, indices))
    if columns.shape[0] == 1:
        return _Cluster(indices, int(indices[np.argmax(norms)]), float(norms.sum()))
    tolerance = _TIE * float(np.finfo(matrix.dtype).eps)
    squares, left, coordinates = _leading_two(columns, norms)
    cosines = np.square(coordinates[0]) / norms
    closest = np.flatnonzero(cosines >= (1.0 - tolerance) * cosines.max())
    representative = int(indices[closest[np.argmax(norms[closest])]])
    energy, bound = float(squares[0]), float(squares[1])
    first = _first_part(columns, left, coordinates) if bound > tolerance * energy else None
    parts = None if first is None else (indices[first], indices[~first])
    return _Cluster(indices, representative, energy, bound, parts)


def _leading_two(columns: _Submatrix, norms: _Array) -> tuple[_Array, Floats, Floats]:
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


def _largest_eigenpairs(gram: Any) -> tuple[_Array, Floats]:
    values, vectors = np.linalg.eigh(_dense(gram))
    return np.maximum(values[:-3:-1], 0.0).astype(np.float64), vectors[:, :-3:-1]


def _krylov(columns: _Submatrix, transpose: Any, norms: _Array) -> tuple[Floats, Floats]:
    """Orthonormal basis Q of a block Krylov space of AA', and A'Q.

    It starts from the sum of the columns, the largest column and the one farthest from it: three vectors, since one
    would find only one of several equal singular values, and none of them random.
    """
    largest = int(np.argmax(norms))
    along = np.asarray(transpose @ _dense_column(columns, largest)) / np.sqrt(norms[largest])
    farthest = int(np.argmax(norms - np.square(along)))
    total = np.asarray(columns @ np.ones(columns.shape[1], dtype=columns.dtype))
    block = np.column_stack([total, _dense_column(columns, largest), _dense_column(columns, farthest)])
    basis = np.empty((columns.shape[0], 3 * _KRYLOV_STEPS), dtype=columns.dtype, order="F")
    image = np.empty((columns.shape[1], 3 * _KRYLOV_STEPS), dtype=columns.dtype, order="F")
    for end in range(0, 3 * _KRYLOV_STEPS, 3):
        known = basis[:, :end]
        for _ in range(2):  # once would leave rounding of the block within the basis (Kahan)
            block = np.linalg.qr(block - known @ (known.T @ block))[0]
        new = slice(end, end + 3)
        basis[:, new], image[:, new] = block, transpose @ block
        block = np.asarray(columns @ np.ascontiguousarray(image[:, new]))
    return basis, image


def _first_part(columns: _Submatrix, left: Floats, coordinates: Floats) -> NDArray[np.bool_] | None:
    """Which columns belong to the first of two nonnegative factors; None if nothing tells them apart.

    Where no share of weights lies near one half, the split is the nearest gap between shares, so that columns of one
    direction stay together and neither part is empty.
    """
    weights = _rank_two_weights(columns, left, coordinates)
    total = weights.sum(axis=0)
    shares = np.divide(weights[0], total, out=np.full(total.size, 0.5), where=total > 0)
    ordered = np.sort(shares)
    gaps = np.flatnonzero(np.diff(ordered) > np.sqrt(np.finfo(columns.dtype).eps))
    if gaps.size == 0:
        return None
    middles = 0.5 * (ordered[gaps] + ordered[gaps + 1])
    return np.asarray(shares > middles[np.argmin(np.abs(middles - 0.5))])


def _rank_two_weights(columns: _Submatrix, left: Floats, coordinates: Floats) -> _Array:
    """H (2 x n) of a nonnegative rank-two factorization A ~ W H with columns of W of unit length."""
    transpose = columns.T
    first = int(np.argmax(np.einsum("ij,ij->j", coordinates, coordinates)))
    across = coordinates[0] * coordinates[1, first] - coordinates[1] * coordinates[0, first]
    extremes = coordinates[:, [first, int(np.argmax(np.abs(across)))]]
    W = np.maximum(left @ extremes, 0.0)
    for _ in range(_ROUNDS):
        W = _best_weights(columns, _best_weights(transpose, W).T).T
    return _best_weights(transpose, W)


def _best_weights(transpose: Any, factor: Floats) -> _Array:
    """H >= 0 (2 x n) that minimises ||A - W H||, given A' and a nonnegative ``factor`` whose columns make W.

    W has columns of unit length, with cosine c between them. For a column a of A let f = W'a: if f2 <= c f1 the second
    weight would be negative, and the best is (f1, 0); the same the other way round; else both are positive.
    """
    lengths = np.linalg.norm(factor, axis=0)
    unit = np.divide(factor, lengths, out=np.zeros(factor.shape), where=lengths > 0).astype(transpose.dtype)
    cosine = float(unit[:, 0] @ unit[:, 1])
    if cosine > 1.0 - _TIE * float(np.finfo(transpose.dtype).eps):
        cosine = 1.0
    f = np.asarray(transpose @ unit).T.astype(np.float64)
    both = f - cosine * f[::-1]
    alone = (both <= 0.0).any(axis=0)
    H = np.divide(both, (1.0 - cosine) * (1.0 + cosine), out=np.zeros(f.shape), where=~alone)
    larger = np.array([f[0] >= f[1], f[0] < f[1]])
    return np.where(alone & larger, f, H)


def _submatrix(matrix: Products, indices: Indices) -> _Submatrix:
    """Some columns, sparse if the matrix is, and all of a dense matrix without a copy."""
    if isinstance(matrix, SparseProducts):
        return matrix._by_columns[:, indices]
    if isinstance(matrix, DenseProducts) and indices.size == matrix.shape[1]:
        return matrix.matrix
    return matrix.columns(indices)


def _without_zero_rows(columns: _Submatrix) -> _Submatrix:
    """The same columns of shorter length, so that work on a sparse cluster is in proportion to its nonzeros."""
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


def _dense(block: Any) -> Floats:
    return block if isinstance(block, np.ndarray) else np.asarray(block.toarray())
