"""How good a selection or a factorization is: the three measures of the paper."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from gsnmf.matrix import wrap
from gsnmf.matrix.protocol import dense
from gsnmf.matrix.validation import check_block
from gsnmf.support.arrays import Doubles, Floats, Indices, Sparse

Factor: TypeAlias = Floats | Sparse


def accuracy(columns: ArrayLike, rows: ArrayLike, true_columns: ArrayLike, true_rows: ArrayLike) -> float:
    r"""Share of the true columns and rows that were found.

    .. math:: \frac{|K_1^* \cap K_1| + |K_2^* \cap K_2|}{|K_1^*| + |K_2^*|}

    Parameters
    ----------
    columns, rows : sequences of ints
        The indices found, :math:`K_1` and :math:`K_2`, in any order.
    true_columns, true_rows : sequences of ints
        The indices to be found, :math:`K_1^*` and :math:`K_2^*`, at least one in all.

    Returns
    -------
    float
        Between 0 and 1. Wrong indices are not penalised beyond the places they take, so compare only selections of the
        same size.

    Examples
    --------
    >>> accuracy([0, 3], [5], true_columns=[3, 0], true_rows=[2, 4])
    0.5
    """
    wanted_columns, wanted_rows = _index_set(true_columns, "true_columns"), _index_set(true_rows, "true_rows")
    n_wanted = wanted_columns.size + wanted_rows.size
    if n_wanted == 0:
        raise ValueError("true_columns and true_rows must have at least one index in all; got none.")
    found_columns = np.intersect1d(wanted_columns, _index_set(columns, "columns"))
    found_rows = np.intersect1d(wanted_rows, _index_set(rows, "rows"))
    return (found_columns.size + found_rows.size) / n_wanted


def relative_error(matrix: Any, W: ArrayLike | Factor, H: ArrayLike | Factor) -> float:
    r"""Relative error of an approximation of a matrix by a product.

    .. math:: \frac{\|M - W H\|_F}{\|M\|_F}

    Parameters
    ----------
    matrix : array-like, sparse or Dask array, shape (m, n)
        Nonnegative.
    W : array-like or sparse array, shape (m, r)
        Of any sign. If the matrix is a Dask array, W may be one too, and is then read chunk by chunk.
    H : array-like or sparse array, shape (r, n)
        Of any sign.

    Returns
    -------
    float
        For a zero matrix 0 if the product is zero too, infinity otherwise.

    Notes
    -----
    The residual of a dense matrix is formed in blocks of rows: O(mnr) operations, little memory. A sparse matrix takes
    :math:`\|M\|^2 - 2 \langle M, WH \rangle + \langle W^T W, H H^T \rangle`, which costs O(nnz r + (m + n) r^2),
    unless the error is so small that this cancels; then the residual is formed in sparse blocks.

    Examples
    --------
    >>> relative_error([[3.0, 0.0], [0.0, 4.0]], [[1.0], [0.0]], [[3.0, 0.0]])
    0.8
    """
    held = wrap(matrix)
    right = _dense(H, "H")
    left = _dense(W, "W") if sp.issparse(W) else check_block(W, (None, None), name="W")
    expected = (held.shape[0], right.shape[0]), (left.shape[1], held.shape[1])
    if (left.shape, right.shape) != expected:
        raise ValueError(
            f"W and H must have shapes (m, r) and (r, n) for a matrix of shape {held.shape}; "
            f"got {left.shape} and {right.shape}."
        )
    squared_error = held.squared_distance(left, right)
    if held.squared_norm == 0.0:
        return 0.0 if squared_error == 0.0 else math.inf
    return math.sqrt(squared_error / held.squared_norm)


def quality(matrix: Any, W: ArrayLike | Factor, H: ArrayLike | Factor) -> float:
    r"""One minus the `relative_error`, the measure of the paper's tables (there in percent).

    .. math:: 1 - \frac{\|M - W H\|_F}{\|M\|_F}

    Parameters
    ----------
    matrix, W, H : array-like or sparse array, shapes (m, n), (m, r), (r, n)
        As in `relative_error`.

    Returns
    -------
    float
        1 for an exact product, 0 for a zero product; negative if the product is worse than zero.

    Examples
    --------
    >>> quality([[3.0, 0.0], [0.0, 4.0]], [[0.0], [1.0]], [[0.0, 4.0]])
    0.4
    """
    return 1.0 - relative_error(matrix, W, H)


def distance_to_ground_truth(
    W: ArrayLike | Factor, H: ArrayLike | Factor, true_W: ArrayLike | Factor, true_H: ArrayLike | Factor
) -> float:
    r"""Distance of two factors from the true ones, up to the order of their columns and rows.

    .. math:: \frac{\min_{\pi} \|W^* - W(:, \pi)\|_F}{2 \|W^*\|_F}
        + \frac{\min_{\pi} \|H^* - H(\pi, :)\|_F}{2 \|H^*\|_F}

    Parameters
    ----------
    W : array-like or sparse array, shape (m, r)
        Left factor.
    H : array-like or sparse array, shape (r, n)
        Right factor.
    true_W : array-like or sparse array, shape (m, r*)
        True left factor, not zero.
    true_H : array-like or sparse array, shape (r*, n)
        True right factor, not zero.

    Returns
    -------
    float
        Zero if the factors are the true ones in another order.

    Notes
    -----
    The two permutations are chosen independently, as in the paper, each as an assignment problem. If there
    are fewer columns (rows) than true ones, or more, the missing ones on either side count as zero.

    The factors are compared as they are: a column of W twice as long with a row of H half as long is the same
    factorization, but not the same distance. The measure is meant for factors whose scale is fixed in the same way as
    the truth: W = [M[:, columns], P2] and H = [P1; M[rows, :]]. Other factorizations must be brought to a comparable
    scale first, as `rescale_factors` does.

    Examples
    --------
    >>> import numpy as np
    >>> true_W, true_H = np.eye(2), np.array([[3.0, 0.0], [0.0, 4.0]])
    >>> distance_to_ground_truth(true_W[:, ::-1], true_H[::-1], true_W, true_H)
    0.0
    >>> distance_to_ground_truth(true_W[:, ::-1], true_H[:1], true_W, true_H)  # one row missing
    0.4
    """
    left = _distance_of_columns(_dense(W, "W"), _dense(true_W, "true_W"), "W")
    right = _distance_of_columns(_dense(H, "H").T, _dense(true_H, "true_H").T, "H")
    return (left + right) / 2


def rescale_factors(
    W: ArrayLike | Factor, H: ArrayLike | Factor, true_W: ArrayLike | Factor, true_H: ArrayLike | Factor
) -> tuple[Floats, Floats]:
    r"""The same factorization rescaled to match the true one, so that their distance is meaningful.

    Each factor :math:`W(:, k) H(k, :)` is matched with a true one such that the sum of the cosines between the rank-one
    matrices is largest. Then :math:`W(:, k)` is divided, and :math:`H(k, :)` multiplied, by the number that gives their
    lengths the true ratio. Unmatched factors stay as they are.

    Parameters
    ----------
    W, H, true_W, true_H : array-like or sparse array
        As in `distance_to_ground_truth`.

    Returns
    -------
    pair of arrays

    Examples
    --------
    >>> import numpy as np
    >>> true_W, true_H = np.eye(2), np.array([[3.0, 0.0], [0.0, 4.0]])
    >>> W, H = rescale_factors(10.0 * true_W, true_H / 10.0, true_W, true_H)
    >>> distance_to_ground_truth(W, H, true_W, true_H)
    0.0
    """
    left, right = _dense(W, "W"), _dense(H, "H")
    true_left, true_right = _dense(true_W, "true_W"), _dense(true_H, "true_H")
    tiny = np.finfo(np.float64).tiny
    lengths, true_lengths = (
        (np.maximum(np.linalg.norm(a, axis=0), tiny), np.maximum(np.linalg.norm(b, axis=1), tiny))
        for a, b in ((left, right), (true_left, true_right))
    )
    cosines = (true_left.T @ left) * (true_right @ right.T)
    cosines /= np.outer(true_lengths[0] * true_lengths[1], lengths[0] * lengths[1])
    true, found = linear_sum_assignment(cosines, maximize=True)
    scale = np.ones(left.shape[1])
    scale[found] = np.sqrt((lengths[0] / lengths[1])[found] * (true_lengths[1] / true_lengths[0])[true])
    return left / scale, right * scale[:, np.newaxis]


def _distance_of_columns(found: Doubles, truth: Doubles, name: str) -> float:
    """||true - columns||_F / ||true||_F for the best order of the columns."""
    if found.shape[0] != truth.shape[0]:
        axis = "rows" if name == "W" else "columns"
        raise ValueError(
            f"{name} and true_{name} must have the same number of {axis}; got {found.shape[0]} and {truth.shape[0]}."
        )
    largest = float(np.abs(truth).max(initial=0.0))
    if largest == 0.0:
        raise ValueError(f"true_{name} must have a nonzero entry; got only zeros.")
    exponent = math.frexp(max(largest, float(np.abs(found).max(initial=0.0))))[1]
    count = max(found.shape[1], truth.shape[1])
    found, truth = (np.ldexp(np.pad(X, ((0, 0), (0, count - X.shape[1]))), -exponent) for X in (found, truth))
    costs = cdist(truth.T, found.T, "sqeuclidean")  # explicit differences: nothing cancels
    return math.sqrt(costs[linear_sum_assignment(costs)].sum()) / float(np.linalg.norm(truth))


def _dense(factor: Any, name: str) -> Doubles:
    """A two-dimensional array of finite doubles, of any sign."""
    array = dense(factor) if sp.issparse(factor) else np.asarray(factor)
    return check_block(array, (None, None), name=name).astype(np.float64, copy=False)


def _index_set(indices: ArrayLike, name: str) -> Indices:
    array: NDArray[Any] = np.asarray(indices)
    if array.size and (array.ndim != 1 or array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a one-dimensional sequence of integers; got {indices!r}.")
    return np.unique(array).astype(np.intp)
