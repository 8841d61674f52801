"""Compiled inner loops of the factorizations: arrays in, arrays out.

A factor is an r x n array whose columns are independent problems with one Gram matrix. The loops run over blocks of
neighbouring columns: the same coordinate of all of them is updated at once, so that the processor adds vectors where
a single column would need one short inner product after the other.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from scipy import linalg

from gsnmf.support.arrays import Floats

_BLOCK = 128
"""Columns that are updated together: enough to fill vector registers, few enough for the cache."""

_PARALLEL_WORK = 1 << 26
"""Multiplications below which threads, which wait for each other at the end, cost more than they save."""


def descend(X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float) -> None:
    """Improve X in place: sweeps of coordinate descent on x'Gx / 2 - t'x over x >= 0, x and t columns of X and target.

    Parameters
    ----------
    X, target : arrays, shape (r, n), in C order
    gram : array, shape (r, r)
        Symmetric positive semidefinite. A coordinate whose diagonal entry is zero is left as it is.
    max_sweeps : int
        Limit on the sweeps over the coordinates.
    tolerance : float
        A block of columns ends earlier if a sweep moved it, in the norm of the diagonal of G, by less than this part
        of what its first sweep did.
    """
    run = _descend_parallel if X.size * X.shape[0] * max_sweeps >= _PARALLEL_WORK else _descend_serial
    run(X, target, gram, max_sweeps, tolerance)


def descend_on_simplex(X: Floats, target: Floats, gram: Floats, exact: bool, max_steps: int, tolerance: float) -> None:
    """Improve X in place: a fast projected gradient method on x'Gx / 2 - t'x over the simplex of `project_on_simplex`.

    Nesterov's method with step 1 / lambda_max(G), restarted without momentum when a step would raise the objective of
    a block of columns: it never rises. X must be in the simplex; the other parameters are those of `descend`.
    """
    largest = float(linalg.eigh(gram, eigvals_only=True, subset_by_index=[len(gram) - 1] * 2)[0])
    if largest > 0:
        parallel = X.size * X.shape[0] * max_steps >= _PARALLEL_WORK
        run = _descend_on_simplex_parallel if parallel else _descend_on_simplex_serial
        run(X, target, gram, 1.0 / largest, exact, max_steps, tolerance)


def project_on_simplex(X: Floats, exact: bool) -> None:
    """Project each column of X, in place, on {x >= 0, sum(x) <= 1}, or with ``exact`` on {x >= 0, sum(x) = 1}."""
    _project_all(X, exact)


def _descend_block(
    X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float, start: int, stop: int
) -> None:
    r, width = X.shape[0], stop - start
    zero = X.dtype.type(0)
    slope = np.empty(_BLOCK, X.dtype)
    block = np.zeros((r, _BLOCK), X.dtype)
    block[:, :width] = X[:, start:stop]
    first = 0.0
    for sweep in range(max_sweeps):
        change = 0.0
        for i in range(r):
            if gram[i, i] <= zero:
                continue
            slope[:] = zero
            for k in range(r):
                entry = gram[i, k]
                for j in range(_BLOCK):
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
    X[:, start:stop] = block[:, :width]


def _project_block(X: Floats, exact: bool, start: int, stop: int) -> None:
    """Newton's method on sum(max(0, x - t)) = 1, convex and decreasing in t, for each column: a few passes, no sort."""
    r, width = X.shape[0], stop - start
    zero, one = X.dtype.type(0), X.dtype.type(1)
    shift, previous = np.zeros(width, X.dtype), np.full(width, r + one)
    if exact:
        shift[:] = -np.inf
    total, active = np.empty(width, X.dtype), np.empty(width, X.dtype)
    moving = width
    while moving:
        total[:] = zero
        active[:] = zero
        for i in range(r):
            for j in range(width):
                value = X[i, start + j]
                above = value > shift[j]
                total[j] += value if above else zero
                active[j] += one if above else zero
        moving = 0
        for j in range(width):
            if zero < active[j] < previous[j]:  # otherwise the column is done: what is above has not changed
                previous[j] = active[j]
                solution = (total[j] - one) / active[j]
                if solution > shift[j]:  # always, unless the sum is below one and may be
                    shift[j] = solution
                    moving += 1
    for i in range(r):
        for j in range(width):
            X[i, start + j] = max(zero, X[i, start + j] - shift[j])


def _multiply(gram: Floats, block: Floats, out: Floats) -> None:
    out[:] = 0
    for i in range(block.shape[0]):
        for k in range(block.shape[0]):
            entry = gram[i, k]
            for j in range(block.shape[1]):
                out[i, j] += entry * block[k, j]


_compile: dict[str, Any] = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
_block = numba.njit(**_compile)(_descend_block)
_project = numba.njit(**_compile)(_project_block)
_times_gram = numba.njit(**_compile)(_multiply)


def _fast_gradient_block(
    X: Floats,
    target: Floats,
    gram: Floats,
    length: float,
    exact: bool,
    max_steps: int,
    tolerance: float,
    start: int,
    stop: int,
) -> None:
    x, t = X[:, start:stop].copy(), target[:, start:stop].copy()
    image, new, new_image = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    _times_gram(gram, x, image)
    previous, previous_image = x.copy(), image.copy()
    step_size = x.dtype.type(length)
    speed, first = 1.0, 0.0
    for step in range(max_steps):
        next_speed = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * speed * speed))
        momentum = x.dtype.type((speed - 1.0) / next_speed)
        while True:
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    slope = image[i, j] + momentum * (image[i, j] - previous_image[i, j]) - t[i, j]
                    new[i, j] = x[i, j] + momentum * (x[i, j] - previous[i, j]) - step_size * slope
            _project(new, exact, 0, x.shape[1])
            _times_gram(gram, new, new_image)
            rise, moved = 0.0, 0.0
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    change = new[i, j] - x[i, j]
                    rise += change * (0.5 * (image[i, j] + new_image[i, j]) - t[i, j])
                    moved += change * change
            if rise < 0.0 or momentum == 0:
                break
            momentum = x.dtype.type(0)
            next_speed = 1.0
        if rise >= 0.0:  # not even the gradient step lowers it: this is the solution, up to rounding
            break
        x, previous, new = new, x, previous
        image, previous_image, new_image = new_image, image, previous_image
        speed = next_speed
        if step == 0:
            first = moved
        elif moved <= tolerance * tolerance * first:
            break
    X[:, start:stop] = x


_fast_gradient = numba.njit(**_compile)(_fast_gradient_block)


def _descend_in_turn(X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float) -> None:
    for start in range(0, X.shape[1], _BLOCK):
        _block(X, target, gram, max_sweeps, tolerance, start, min(start + _BLOCK, X.shape[1]))


def _descend_at_once(X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float) -> None:
    for b in numba.prange((X.shape[1] + _BLOCK - 1) // _BLOCK):
        _block(X, target, gram, max_sweeps, tolerance, b * _BLOCK, min((b + 1) * _BLOCK, X.shape[1]))


def _on_simplex_in_turn(
    X: Floats, target: Floats, gram: Floats, length: float, exact: bool, max_steps: int, tolerance: float
) -> None:
    for start in range(0, X.shape[1], _BLOCK):
        stop = min(start + _BLOCK, X.shape[1])
        _fast_gradient(X, target, gram, length, exact, max_steps, tolerance, start, stop)


def _on_simplex_at_once(
    X: Floats, target: Floats, gram: Floats, length: float, exact: bool, max_steps: int, tolerance: float
) -> None:
    for b in numba.prange((X.shape[1] + _BLOCK - 1) // _BLOCK):
        stop = min((b + 1) * _BLOCK, X.shape[1])
        _fast_gradient(X, target, gram, length, exact, max_steps, tolerance, b * _BLOCK, stop)


def _project_in_turn(X: Floats, exact: bool) -> None:
    for start in range(0, X.shape[1], _BLOCK):
        _project(X, exact, start, min(start + _BLOCK, X.shape[1]))


_descend_serial = numba.njit(**_compile)(_descend_in_turn)
_descend_parallel = numba.njit(parallel=True, **_compile)(_descend_at_once)
_descend_on_simplex_serial = numba.njit(**_compile)(_on_simplex_in_turn)
_descend_on_simplex_parallel = numba.njit(parallel=True, **_compile)(_on_simplex_at_once)
_project_all = numba.njit(**_compile)(_project_in_turn)
