r"""A few members that explain a target: nonnegative least squares on them, and the best single change.

A target t, of which only the products b = M't are known, is explained by q columns of M with weights x >= 0. At the
best weights, the squared distance falls from t't by

.. math:: \max_{x \ge 0} \; 2\, b_S^T x - x^T G_{SS}\, x \;=\; b_S^T x^* ,

where G = M'M. Everything here needs the rows of G at the members, the diagonal of G, and b.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels import native
from gsnmf.support.arrays import Doubles, Flags, Indices


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
    weights = np.zeros(linear.size)
    native.member_weights(np.ascontiguousarray(gram), np.ascontiguousarray(linear), weights)
    return weights


def best_change(
    members: Indices, rows: Doubles, diagonal: Doubles, linear: Doubles, allowed: Flags, most: int, least: float
) -> tuple[int, int, float]:
    r"""The one change that explains most: add a member or, if there are ``most`` of them already, exchange one.

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

    .. math:: b_K^T G_{KK}^{-1} b_K + \max(0, s_j)^2 / d_j ,

    where s_j and d_j are what the kept members K leave of b_j and of the diagonal. This is an upper bound, so the exact
    problem is solved only where it exceeds the best change so far.
    """
    contiguous = np.ascontiguousarray
    return native.best_member_change(
        members, contiguous(rows), contiguous(diagonal), contiguous(linear), contiguous(allowed), most, least
    )
