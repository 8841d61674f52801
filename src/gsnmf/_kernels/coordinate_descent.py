"""Coordinate descent for many nonnegative problems that share a Gram matrix: one per row, or one per column.

`coordinate_sweep` takes the problems as rows and sweeps once over each. `descend` takes them as columns, in blocks of
neighbours, and updates the same coordinate of a whole block at once: the processor then adds vectors instead of
computing one short inner product after another.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.loops import Loop, loop
from gsnmf.support.arrays import Doubles, Floats

BLOCK = 128
"""Columns that are updated together: enough to fill vector registers, few enough for the cache. Rows in one piece."""


def coordinate_sweep(X: Doubles, linear: Doubles, gram: Doubles) -> None:
    """Improve X in place: one sweep of coordinate descent for each row x of X.

    Minimises x G x / 2 + x . linear over x >= 0, one coordinate after another. The diagonal of G must not have a zero.

    Examples
    --------
    >>> X = np.zeros((1, 2))
    >>> coordinate_sweep(X, np.array([[-3.0, 1.0]]), np.eye(2))
    >>> X
    array([[3., 0.]])
    """
    _sweep_rows(X, linear, gram, work=X.size * X.shape[1])


def descend(X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float) -> None:
    """Improve X in place: coordinate descent on x'Gx / 2 - t'x over x >= 0, for columns x of X and t of ``target``.

    Parameters
    ----------
    X, target : arrays, shape (r, n), in C order
    gram : array, shape (r, r)
        Symmetric positive semidefinite. A coordinate whose diagonal entry is zero is left as it is.
    max_sweeps : int
        Limit on the sweeps over the coordinates.
    tolerance : float
        A block of columns ends earlier if a sweep moves it, in the norm of the diagonal of G, by less than this
        fraction of its first sweep.
    """
    _descend_blocks(X, target, gram, max_sweeps, tolerance, work=X.size * X.shape[0] * max_sweeps)


@loop(reordered=True)
def _sweep_rows(X: Doubles, linear: Doubles, gram: Doubles, first: int, stride: int) -> None:
    n = X.shape[0]
    for start in range(first * BLOCK, n, stride * BLOCK):  # rows are short: threads keep away from each other's
        for j in range(start, min(start + BLOCK, n)):
            x = X[j]
            for i in range(x.size):
                slope = linear[j, i]
                for k in range(x.size):
                    slope += gram[i, k] * x[k]
                x[i] = max(0.0, x[i] - slope / gram[i, i])


@compiled(reordered=True)
def _descend_block(
    X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float, start: int, stop: int
) -> None:
    r, width = X.shape[0], stop - start
    zero = X.dtype.type(0)
    block = np.zeros((r + 1, BLOCK), X.dtype)
    slope = block[r]
    for i in range(r):
        for j in range(width):
            block[i, j] = X[i, start + j]
    first = 0.0
    for sweep in range(max_sweeps):
        change = 0.0
        for i in range(r):
            if gram[i, i] <= zero:
                continue
            for j in range(BLOCK):
                slope[j] = zero
            for k in range(r):
                entry = gram[i, k]
                for j in range(BLOCK):
                    slope[j] += entry * block[k, j]
            moved = 0.0
            for j in range(width):
                step = max(-block[i, j], (target[i, start + j] - slope[j]) / gram[i, i])
                block[i, j] = max(zero, block[i, j] + step)
                moved += step * step
            change += moved * gram[i, i]
        if sweep == 0:
            first = change
        elif change <= tolerance * tolerance * first:
            break
    for i in range(r):
        for j in range(width):
            X[i, start + j] = block[i, j]


@Loop
def _descend_blocks(
    X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float, first: int, stride: int
) -> None:
    n = X.shape[1]
    for start in range(first * BLOCK, n, stride * BLOCK):
        _descend_block(X, target, gram, max_sweeps, tolerance, start, min(start + BLOCK, n))
