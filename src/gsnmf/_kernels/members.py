r"""A few members that explain a target: nonnegative least squares on them, and the best single change. Compiled.

A target t, of which only the products b = M't are known, is explained by q columns of M with weights x >= 0. At the
best weights, the squared distance falls from t't by

.. math:: \max_{x \ge 0} \; 2\, b_S^T x - x^T G_{SS}\, x \;=\; b_S^T x^* ,

where G = M'M. Everything here needs the rows of G at the members, the diagonal of G, and b.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gsnmf._kernels.active_set import DEPENDENT, append, move, solve, without_zeros
from gsnmf._kernels.compilation import compiled
from gsnmf.support.arrays import Doubles, Flags, Indices

_FLAT = 1e-14
"""Slopes below this fraction of the largest product are rounding."""


@compiled()
def member_weights(gram: Doubles, linear: Doubles) -> Doubles:
    """Weights x >= 0 that maximise 2 b'x - x'Gx, by the active-set method of Lawson and Hanson.

    Parameters
    ----------
    gram : array, shape (q, q)
    linear : array of length q

    Returns
    -------
    array of length q

    Examples
    --------
    >>> member_weights(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([1.0, 0.2]))
    array([1., 0.])
    """
    size = linear.size
    x, z, lower = np.zeros(size), np.zeros(size), np.zeros((size, size))
    _solve_members(gram, linear, size, x, z, lower, np.zeros(size, dtype=np.int64))
    return x


@compiled(inner=True)
def _solve_members(
    gram: Doubles, linear: Doubles, q: int, x: Doubles, z: Doubles, lower: Doubles, indices: NDArray[np.int64]
) -> float:
    """Weights x of the first q members, in place, and what they explain."""
    blocked = np.zeros(q, dtype=np.uint8)
    largest = 0.0
    for i in range(q):
        x[i] = 0.0
        largest = max(largest, abs(linear[i]) / np.sqrt(gram[i, i]))
    size = int(np.int64(0))
    for _ in range(10 * q + 10):
        entering, steepest = int(np.int64(-1)), _FLAT * largest
        for i in range(q):
            if x[i] > 0.0 or blocked[i]:
                continue
            slope = linear[i]
            for a in range(size):
                slope -= gram[i, indices[a]] * x[indices[a]]
            slope /= np.sqrt(gram[i, i])
            if slope > steepest:
                entering, steepest = i, slope
        if entering < 0:
            break
        if not append(gram, entering, lower, indices, size):
            blocked[entering] = 1
            continue
        size += 1
        while True:
            for a in range(size):
                z[a] = linear[indices[a]]
            solve(lower, size, z)
            if not move(x, z, indices, size):
                break
            if x[entering] == 0.0:
                blocked[entering] = 1
            size = without_zeros(x, gram, lower, indices, size)
    explained = 0.0
    for i in range(q):
        explained += linear[i] * x[i]
    return explained


@compiled()
def best_change(
    members: Indices, rows: Doubles, diagonal: Doubles, linear: Doubles, allowed: Flags, most: int, least: float
) -> tuple[int, int, float]:
    """The one change that explains most: add a member or, if there are ``most`` of them already, exchange one.

    Parameters
    ----------
    members : int array of length q
        Present members, all with positive weight.
    rows : array, shape (q, n)
        The rows of G at the members.
    diagonal : array of length n
        The diagonal of G.
    linear : array of length n
        b.
    allowed : bool array of length n
        Which columns may become members.
    most : int
        Number of members allowed. Below it an addition explains at least as much as any exchange.
    least : float
        A change must explain more than this.

    Returns
    -------
    position, index, explained
        The position in ``members`` that takes the new index (q for an addition), the index, and what all members then
        explain. The position is -1 if no change explains more than ``least``.

    Notes
    -----
    If the weights of the other members could be negative, a change would explain

    .. math:: b_K^T G_{KK}^{-1} b_K + \\max(0, s_j)^2 / d_j ,

    where s_j and d_j are what the kept members K leave of b_j and of the diagonal. This is an upper bound, so the exact
    problem is solved only where it exceeds the best change so far.
    """
    q = members.size
    size = q + 1 if q < most else q
    found, chosen, best = int(np.int64(-1)), int(np.int64(-1)), least
    for slot in range(0 if q == most else q, size):
        kept = np.empty(size - 1, dtype=np.int64)
        for a in range(size - 1):
            kept[a] = a if a < slot else a + 1
        index, explained = _best_companion(kept, members, rows, diagonal, linear, allowed, best)
        if index >= 0:
            found, chosen, best = slot, index, explained
    return found, chosen, best


@compiled(inner=True)
def _best_companion(
    kept: NDArray[np.int64],
    members: Indices,
    rows: Doubles,
    diagonal: Doubles,
    linear: Doubles,
    allowed: Flags,
    least: float,
) -> tuple[int, float]:
    """The column that explains most together with the kept members; -1 if none explains more than ``least``."""
    q = kept.size
    gram, right = np.zeros((q + 1, q + 1)), np.zeros(q + 1)
    x, z, lower, indices = np.zeros(q + 1), np.zeros(q + 1), np.zeros((q + 1, q + 1)), np.zeros(q + 1, dtype=np.int64)
    factor, order = np.zeros((q + 1, q + 1)), np.zeros(q + 1, dtype=np.int64)
    half, across = np.zeros(q), np.zeros(q)
    chosen, best, before = int(np.int64(-1)), least, 0.0
    for a in range(q):
        right[a] = linear[members[kept[a]]]
        for c in range(q):
            gram[a, c] = rows[kept[a], members[kept[c]]]
    for a in range(q):
        if not append(gram, a, factor, order, a):
            return chosen, best
        half[a] = right[a]
        for c in range(a):
            half[a] -= factor[a, c] * half[c]
        half[a] /= factor[a, a]
        before += half[a] * half[a]
    for j in range(linear.size):
        if not allowed[j] or diagonal[j] <= 0.0:
            continue
        slope, left = linear[j], diagonal[j]
        for a in range(q):
            across[a] = rows[kept[a], j]
            for c in range(a):
                across[a] -= factor[a, c] * across[c]
            across[a] /= factor[a, a]
            slope -= across[a] * half[a]
            left -= across[a] * across[a]
        if slope <= 0.0 or left <= DEPENDENT * diagonal[j] or before + slope * slope / left <= best:
            continue
        right[q], gram[q, q] = linear[j], diagonal[j]
        for a in range(q):
            gram[a, q] = gram[q, a] = rows[kept[a], j]
        explained = _solve_members(gram, right, q + 1, x, z, lower, indices)
        if explained > best:
            chosen, best = j, explained
    return chosen, best
