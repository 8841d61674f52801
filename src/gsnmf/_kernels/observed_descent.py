"""Compiled coordinate descent for the problems of `gsnmf._kernels.observed_entries`, over some of the unknowns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gsnmf._kernels.loops import loop
from gsnmf._kernels.observed_entries import Entries, accumulate
from gsnmf.support.arrays import Doubles, Flags

EVERYTHING = np.ones((0, 0), dtype=bool)
NOWHERE = np.ones((0, 0))
"""Stands for "all unknowns are free, and none has a prior value" where an array would have a number for each."""


class Pull(NamedTuple):
    """Prior values of the unknowns, and the weights of their squared distances from them; empty if there are none."""

    prior: Doubles
    stiffness: Doubles


def descend_rows(
    entries: Entries,
    F: Doubles,
    X: Doubles,
    n_sweeps: int,
    free: Flags = EVERYTHING,
    prior: Doubles = NOWHERE,
    weights: Doubles = NOWHERE,
) -> Doubles:
    """Sweeps of coordinate descent over x >= 0 on each row's problem, from the rows of X and in place.

    With a prior, half of sum_k v_k (x_k - p_k)^2 is added to the problem of a row.

    Parameters
    ----------
    entries : Entries
    F : array, shape (n, r)
    X : array, shape (m, r)
        Nonnegative. The error of no row rises.
    n_sweeps : int
    free : bool array, shape (m, r)
        Which unknowns may change.
    prior, weights : arrays, shape (m, r)
        p and v, nonnegative.

    Returns
    -------
    array, shape (m,)
        Squared violation of the optimality conditions of each row before the sweeps, over the free unknowns, each
        scaled so that its second derivative is one.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 1]), np.array([3.0, 1.0]), np.empty(0))
    >>> X = np.array([[1.0, 1.0]])
    >>> _ = descend_rows(entries, np.eye(2), X, 1, np.array([[True, False]]))
    >>> X
    array([[3., 1.]])
    """
    violations = np.zeros(X.shape[0])
    pull = Pull(prior, weights)
    _descend_rows(entries, F, X, n_sweeps, free, pull, violations, work=entries.values.size * F.shape[1] ** 2)
    return violations


@loop(reordered=True)
def _descend_rows(
    entries: Entries,
    F: Doubles,
    X: Doubles,
    n_sweeps: int,
    free: Flags,
    pull: Pull,
    violations: Doubles,
    first: int,
    stride: int,
) -> None:
    r = X.shape[1]
    prior, stiffness = pull
    gram, slopes = np.empty((r, r)), np.empty(r)
    for i in range(first, X.shape[0], stride):
        accumulate(entries, i, F, gram, slopes)
        for k in range(r):
            if stiffness.size:
                gram[k, k] += stiffness[i, k]
                slopes[k] += stiffness[i, k] * prior[i, k]
            for l in range(k):  # noqa: E741
                gram[l, k] = gram[k, l]
        for k in range(r):
            slope = -slopes[k]
            for l in range(r):  # noqa: E741
                slope += gram[k, l] * X[i, l]
            slopes[k] = slope
        for k in range(r):
            if gram[k, k] > 0.0 and (free.size == 0 or free[i, k]):
                least = min(X[i, k] * gram[k, k], slopes[k])
                violations[i] += least * least / gram[k, k]
        for _ in range(n_sweeps):
            for k in range(r):
                if gram[k, k] > 0.0 and (free.size == 0 or free[i, k]):
                    step = max(-slopes[k] / gram[k, k], -X[i, k])
                    if step != 0.0:
                        X[i, k] += step
                        for l in range(r):  # noqa: E741
                            slopes[l] += step * gram[k, l]
