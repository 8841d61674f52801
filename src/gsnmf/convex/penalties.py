r"""Penalties that make rows of X (and columns of Y) vanish, and the projection on the feasible set of the trace.

Each is a sum over rows, lambda times

- ``trace``: :math:`X_{ii}`, with :math:`0 \le X_{ij} \le (w_j / w_i) X_{ii}` and :math:`X_{ii} \le 1` (the set Omega);
- ``group-2``: :math:`\|X(i, :)\|_2`, with X nonnegative (Elhamifar, Sapiro, Vidal 2012);
- ``group-inf``: :math:`\|X(i, :)\|_\infty`, with X nonnegative (Esser et al. 2012).

A penalty gives the solver four things: the step that lowers it (`shrink`), the score of a row, which says how much the
row could still lower the objective, its value, and a lower bound on the optimum from the scores.

References
----------
E. Elhamifar, G. Sapiro, R. Vidal, See all by looking at a few, CVPR 2012, doi:10.1109/CVPR.2012.6247852.
E. Esser et al., A convex model for nonnegative matrix factorization and dimensionality reduction on physical space,
IEEE Trans. Image Process. 21 (2012), doi:10.1109/TIP.2012.2190081.
N. Gillis, R. Luce, Robust near-separable nonnegative matrix factorization using linear optimization, JMLR 15 (2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Floats, Indices

_project_rows = Loop(native.project_rows_on_omega)
_shrink_euclidean, _shrink_maximum = Loop(native.shrink_euclidean_rows), Loop(native.shrink_maximum_rows)
_trace_scores, _group_scores = Loop(native.trace_score_rows), Loop(native.group_score_rows)

OPERATIONS_PER_ENTRY = 16
"""Operations per entry of a projection or a penalty: a few passes over its row."""

_SMALLEST_WEIGHT = {np.dtype(np.float32): 1e-37, np.dtype(np.float64): 1e-150}
"""Smaller weights, relative to the largest, count as zero: kernels square them and divide by them."""


@dataclass(frozen=True)
class Penalty:
    """A penalty on rows: ``trace``, ``group-2`` or ``group-inf``."""

    name: str

    @property
    def capped(self) -> bool:
        """Whether a row is bounded by one; its dual condition may then be violated at a price."""
        return self.name == "trace"

    def shrink(self, X: Floats, thresholds: Floats, indices: Indices, weights: Floats) -> None:
        """Minimise |z - x|^2 / 2 + threshold penalty(z) over z for each row x of X, in place."""
        work = OPERATIONS_PER_ENTRY * X.size
        if self.name == "trace":
            X[np.arange(indices.size), indices] -= thresholds
            _project_rows(X, weights, indices, X, work=work)
        else:
            shrink = _shrink_euclidean if self.name == "group-2" else _shrink_maximum
            shrink(X, np.ascontiguousarray(thresholds, dtype=X.dtype), work=work)

    def scores(self, slopes: Floats, indices: Indices, weights: Floats) -> Floats:
        """The dual norm of each row of ``slopes`` = M_i'E. A row can help only if it exceeds lambda."""
        scores = np.empty(slopes.shape[0])
        slopes, work = np.ascontiguousarray(slopes), OPERATIONS_PER_ENTRY * slopes.size
        if self.name == "trace":
            _trace_scores(slopes, indices, weights.astype(slopes.dtype, copy=False), scores, work=work)
        else:
            _group_scores(slopes, self.name == "group-2", scores, work=work)
        return scores

    def value(self, X: Floats, indices: Indices) -> float:
        """The penalty, without lambda."""
        if self.name == "trace":
            return float(X[np.arange(indices.size), indices].sum())
        return float(np.linalg.norm(X, axis=1, ord=2 if self.name == "group-2" else np.inf).sum())

    def dual_bound(self, scores: Floats, inner: float, squared_norm: float, strength: float) -> float:
        r"""A lower bound on the optimum from the residual E times the best factor t.

        .. math:: D(t) = t \langle E, M \rangle - \tfrac{t^2}{2} \|E\|^2 + \sum_i \min(0, \lambda - t s_i)

        for the trace, and without the sum but with all :math:`t s_i \le \lambda` for the norms.
        """
        if squared_norm <= 0.0 or inner <= 0.0:
            return 0.0
        positive = np.sort(scores[scores > 0.0])[::-1]
        if not self.capped:
            t = inner / squared_norm
            if positive.size:
                t = min(t, strength / float(positive[0]))
            return t * inner - 0.5 * t * t * squared_norm
        # D is concave; its slope falls by s_i where t passes lambda / s_i
        breaks = strength / positive
        drops = np.cumsum(positive)
        passed = int(np.searchsorted(-(inner - squared_norm * breaks - drops), 0.0))
        upper = breaks[passed] if passed < breaks.size else np.inf
        slope = inner - (drops[passed - 1] if passed else 0.0)
        t = max(0.0, min(upper, slope / squared_norm))
        return float(t * inner - 0.5 * t * t * squared_norm + np.minimum(0.0, strength - t * positive).sum())


TRACE = Penalty("trace")
GROUP_2 = Penalty("group-2")
GROUP_INF = Penalty("group-inf")

PENALTIES = {penalty.name: penalty for penalty in (TRACE, GROUP_2, GROUP_INF)}


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

    moved into [0, 1]. For :math:`t \ge 0` the function :math:`g` is increasing, concave and piecewise linear, so Newton
    steps from :math:`t_0 = \max(x_i, 0)` only grow and never pass the root. The active set
    :math:`A(t) = \{j : x_j > c_j t\}` only shrinks: once its size has stopped changing, the last step was exact. A step
    is one pass over the row, usually two to six passes in all, against a sort with :math:`O(n \log n)` in [2]_.

    Rows are shared among threads. Sums are accumulated in double precision. A weight below 1e-150 times the largest
    (1e-37 in float32) counts as zero, so that no ratio of weights overflows.

    The paper bounds all of :math:`X` by one; here only its diagonal is, because off the diagonal the weights of an
    unscaled matrix can be larger.

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
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional; got shape {array.shape}.")
    rows = np.ascontiguousarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)
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
    _project_rows(rows, scaled, positions, target, work=OPERATIONS_PER_ENTRY * rows.size)
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
