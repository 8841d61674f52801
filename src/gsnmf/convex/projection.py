"""Euclidean projection on the feasible set Omega of the convex model, exact and without sorting."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Floats, Indices

# Kernels square the scaled weights and divide by them. A weight this far below the largest would underflow
# there, and its bound w_j / w_i would overflow: it counts as zero.
_SMALLEST_WEIGHT = {np.dtype(np.float32): 1e-37, np.dtype(np.float64): 1e-150}

project_rows = Loop(native.project_rows_on_omega)
"""Write the projections of the rows of X to ``out``, which may be X: ``(X, weights, indices, out, work=...)``, with the
weights of `scaled_weights`."""

OPERATIONS_PER_ENTRY = 16
"""Operations per entry of a projection or a penalty: a few passes over its row."""


def project(X: ArrayLike, weights: ArrayLike, indices: ArrayLike | None = None, out: Floats | None = None) -> Floats:
    r"""Project the rows of a matrix on the set Omega of the convex model.

    Row :math:`a` of ``X`` belongs to the diagonal position :math:`i =` ``indices[a]`` and is replaced by the
    solution of

    .. math::

        \min_p \tfrac12 \|p - x\|_2^2 \quad \text{such that} \quad
        0 \le p_i \le 1, \quad 0 \le w_i p_j \le w_j p_i \ \text{for all } j \ne i.

    With all :math:`n` rows and :math:`w_j = \|M(:,j)\|_1` this is the projection on :math:`\Omega_1`; for
    :math:`\Omega_2` pass the transpose of :math:`Y` and the :math:`\ell_1` norms of the rows of :math:`M`.

    Parameters
    ----------
    X : array-like of shape (k, n)
        Rows to project. float32 and float64 are kept, any other type becomes float64.
    weights : array-like of shape (n,)
        The weights :math:`w`, finite and not negative; only their ratios count. Where :math:`w_j = 0` the
        entries :math:`p_j` are zero; a row with :math:`w_i = 0` is left out of the model and becomes zero.
    indices : array-like of int of shape (k,), optional
        Position of the diagonal entry of each row: a working set of rows. Default: ``arange(n)``, which
        needs a square ``X``.
    out : ndarray of shape (k, n), optional
        Where to write the result, of the same type as ``X``; may be ``X`` itself.

    Returns
    -------
    ndarray of shape (k, n)
        The projection; ``out`` if given.

    Notes
    -----
    For a given diagonal entry :math:`t` the best rest is :math:`p_j = \min(\max(x_j, 0), c_j t)` with
    :math:`c_j = w_j / w_i`, and the best :math:`t` is the root of

    .. math:: g(t) = t - x_i - \sum_{j \ne i} c_j \max(0, x_j - c_j t),

    moved into [0, 1]. For :math:`t \ge 0` the function :math:`g` is increasing, concave and piecewise linear.
    A concave function lies under its tangents, so :math:`g \le 0` at the end of every Newton step: started
    at :math:`t_0 = \max(x_i, 0)`, where :math:`g(t_0) \le 0` unless the answer is :math:`t = 0`, the
    iterates only grow and never pass the root. The active set :math:`A(t) = \{j : x_j > c_j t\}` then only
    shrinks, so it has stopped changing as soon as its *size* has; the last step was taken on the linear piece
    that holds the root, and is exact. No sort is needed: a step is one pass over the row, usually two to six
    passes in all (at most :math:`|A(t_0)| + 1`), against :math:`O(n \log n)` in [2]_.

    Rows are independent and are shared among threads. Sums are accumulated in double precision. A weight
    below 1e-150 times the largest (1e-37 in float32) counts as zero, so that no ratio of weights overflows.

    The paper bounds all of :math:`X` by one; here only its diagonal is, because off the diagonal the weights
    of an unscaled matrix can be larger.

    References
    ----------
    .. [1] J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 43 (2021). doi:10.1109/TPAMI.2019.2956046
    .. [2] N. Gillis and R. Luce, "A fast gradient method for nonnegative sparse regression with
       self-dictionary", IEEE Transactions on Image Processing 27 (2018). doi:10.1109/TIP.2017.2753400

    Examples
    --------
    >>> project([[0.5, 1.0], [-1.0, 2.0]], weights=[1.0, 1.0])
    array([[0.75, 0.75],
           [0.  , 1.  ]])

    A working set that holds only the second row:

    >>> project([[-1.0, 2.0]], weights=[1.0, 1.0], indices=[1])
    array([[0., 1.]])
    """
    rows = _float_rows(X)
    n_rows, n_columns = rows.shape
    scaled = scaled_weights(weights, rows.dtype)
    if scaled.size != n_columns:
        raise ValueError(f"weights must have length {n_columns} for X of shape {rows.shape}; got {scaled.size}.")
    positions = _positions(indices, n_rows, n_columns)
    if out is None:
        out = np.empty_like(rows)
    elif out.shape != rows.shape or out.dtype != rows.dtype:
        raise ValueError(f"out must have shape {rows.shape} and dtype {rows.dtype}; got {out.shape} and {out.dtype}.")
    target = out if out.flags.c_contiguous else np.empty_like(rows)
    project_rows(rows, scaled, positions, target, work=OPERATIONS_PER_ENTRY * rows.size)
    if target is not out:
        out[...] = target
    return out


def scaled_weights(weights: ArrayLike, dtype: np.dtype[Any]) -> Floats:
    """Return the weights divided by the largest one, the very smallest set to zero, as the kernels want them.

    Examples
    --------
    >>> scaled_weights([2.0, 4.0, 1e-200], np.dtype(np.float64))
    array([0.5, 1. , 0. ])
    """
    given = np.asarray(weights, dtype=np.float64)
    if given.ndim != 1 or given.size == 0:
        raise ValueError(f"weights must be one-dimensional and not empty; got shape {given.shape}.")
    largest = given.max()
    if not (given.min() >= 0 and largest < np.inf):  # NaN fails too
        raise ValueError(f"weights must be finite and not negative; got {given.min()} to {largest}.")
    if largest == 0:
        return np.asarray(given, dtype=dtype)
    scaled = given / largest
    scaled[scaled < _SMALLEST_WEIGHT[dtype]] = 0
    return np.asarray(scaled, dtype=dtype)


def _float_rows(X: ArrayLike) -> Floats:
    array = np.asarray(X)
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional; got shape {array.shape}.")
    return np.ascontiguousarray(array, dtype=dtype)


def _positions(indices: ArrayLike | None, n_rows: int, n_columns: int) -> Indices:
    if indices is None:
        if n_rows != n_columns:
            raise ValueError(f"X must be square without indices; got shape {(n_rows, n_columns)}.")
        return np.arange(n_rows)
    positions = np.asarray(indices, dtype=np.intp)
    if positions.shape != (n_rows,):
        raise ValueError(f"indices must have shape {(n_rows,)}, one for each row; got {positions.shape}.")
    if n_rows and not (positions.min() >= 0 and positions.max() < n_columns):
        raise ValueError(f"indices must be in [0, {n_columns - 1}]; got {positions.min()} to {positions.max()}.")
    return positions
