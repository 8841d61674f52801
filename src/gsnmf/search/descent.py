"""Short fits of the weights of columns and rows together, by coordinate descent on one side and the other in turn."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.exchange import coupled, descend_rows
from gsnmf._parallel import single_threaded_blas
from gsnmf.support.arrays import Doubles, Vectors
from gsnmf.weights.joint import JointProblem, transposed_dot

_QUICKEST, _SLOWEST = 0.7, 0.84
"""Bounds on the expected decrease of the next round, as a fraction of the last one."""


def descend_jointly(
    problem: JointProblem,
    P: Doubles,
    Q: Doubles,
    *,
    squared_error: float,
    goal: float,
    max_rounds: int,
    tolerance: float,
    threads: bool,
) -> tuple[float, float]:
    """Improve weights in place by coordinate descent on P and on Q in turn, as long as a goal is in reach.

    Parameters
    ----------
    problem : JointProblem
    P, Q : arrays, shape (n, r1) and (m, r2), in C order
    squared_error : float
        That of the given weights, or infinity.
    goal : float
        Stop once the squared error, judging by its decrease so far, will not fall below this.
    max_rounds : int
        Limit on the rounds, two sweeps over P and two over Q each.
    tolerance : float
        Stop once a round lowers the squared error by less than this fraction.
    threads : bool
        Whether rows of weights may be shared among threads.

    Returns
    -------
    tuple
        The squared error, and the multiplications spent.
    """
    if P.shape[1] + Q.shape[1] == 0:
        return problem.squared_norm, 0.0
    both = P.shape[1] > 0 and Q.shape[1] > 0
    error, decrease, operations = squared_error, math.inf, 0.0
    for _ in range(max_rounds):
        of_P = of_Q = 0.0
        if P.shape[1]:
            coupling = _coupling(Q, problem.C, problem.R, both, P.shape, threads)
            plain, whole, slopes, count = descend_rows(P, problem.linear_P, *coupling, problem.gram_C, threads=threads)
            of_P = 2.0 * plain + slopes - whole
            operations += count
        if Q.shape[1]:
            coupling = _coupling(P, problem.R, problem.C, both, Q.shape, threads)
            plain, whole, slopes, count = descend_rows(Q, problem.linear_Q, *coupling, problem.gram_R, threads=threads)
            of_Q = whole + slopes
            operations += count
        operations += both * (P.size * Q.shape[1] + Q.size * P.shape[1])
        previous, error = error, max(0.0, problem.squared_norm + of_P + of_Q)
        before, decrease = decrease, previous - error
        if decrease <= tolerance * error:
            break
        if decrease < math.inf:  # the error falls roughly geometrically: a generous estimate of what is left to gain
            ratio = min(_SLOWEST, max(_QUICKEST, decrease / before))
            if error - decrease * ratio / (1.0 - ratio) > goal:
                break
    return error, operations


def _coupling(
    others: Doubles, theirs: Vectors, own: Vectors, both: bool, shape: tuple[int, ...], threads: bool
) -> tuple[Doubles, Doubles]:
    """What the other weights add to the linear term, as a product of two factors."""
    if not both:
        return np.empty((shape[0], 0)), np.empty((0, shape[1]))
    if threads and not sp.issparse(theirs):
        small = coupled(others, theirs, threads=True)
    else:
        with single_threaded_blas():  # whose sums do not depend on the number of threads
            small = transposed_dot(others, theirs)
    return (np.asarray(own @ small), np.eye(shape[1])) if sp.issparse(own) else (own, small)
