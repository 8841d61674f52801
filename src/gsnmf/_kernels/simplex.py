"""Projection on the simplex, and quadratic problems over it, for the columns of an array in blocks of neighbours."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.coordinate_descent import BLOCK
from gsnmf._kernels.loops import Loop
from gsnmf.support.arrays import Floats


def project_on_simplex(X: Floats, exact: bool) -> None:
    """Project each column of X, in place, on {x >= 0, sum(x) <= 1}, or with ``exact`` on {x >= 0, sum(x) = 1}.

    Examples
    --------
    >>> X = np.array([[0.2, 2.0], [0.2, 1.5]])
    >>> project_on_simplex(X, exact=False)
    >>> X
    array([[0.2 , 0.75],
           [0.2 , 0.25]])
    """
    _project_blocks(X, exact, work=_PROJECTION * X.size)


def descend_on_simplex(X: Floats, target: Floats, gram: Floats, exact: bool, max_steps: int, tolerance: float) -> None:
    """Improve X in place: a fast projected gradient method on x'Gx / 2 - t'x over the simplex of `project_on_simplex`.

    Nesterov's method with step 1 / lambda_max(G), restarted without momentum when a step would raise the objective of a
    block of columns, so the objective never rises. X must be in the simplex; the other parameters are those of
    `gsnmf._kernels.coordinate_descent.descend`.
    """
    largest = float(linalg.eigh(gram, eigvals_only=True, subset_by_index=[len(gram) - 1] * 2)[0])
    if largest > 0:
        work = X.size * (X.shape[0] + _PROJECTION) * max_steps
        _descend_blocks(X, target, gram, 1.0 / largest, exact, max_steps, tolerance, work=work)


_PROJECTION = 16
"""Operations per entry that a projection takes: a few passes."""


@compiled(reordered=True)
def _project_block(X: Floats, exact: bool, start: int, stop: int) -> None:
    """Newton's method on sum(max(0, x - t)) = 1, convex and decreasing in t, for each column: a few passes, no sort."""
    r, width = X.shape[0], stop - start
    zero, one = X.dtype.type(0), X.dtype.type(1)
    shift, previous = np.empty(width, X.dtype), np.empty(width, X.dtype)
    total, active = np.empty(width, X.dtype), np.empty(width, X.dtype)
    for j in range(width):
        shift[j], previous[j] = -np.inf if exact else 0.0, r + 1
    moving = width
    while moving:
        for j in range(width):
            total[j], active[j] = zero, zero
        for i in range(r):
            for j in range(width):
                value = X[i, start + j]
                above = value > shift[j]
                total[j] += value if above else zero
                active[j] += one if above else zero
        moving = 0
        for j in range(width):
            if zero < active[j] < previous[j]:  # otherwise done: the entries above the shift are the same
                previous[j] = active[j]
                solution = (total[j] - one) / active[j]
                if solution > shift[j]:  # always, unless the sum is below one and may stay so
                    shift[j] = solution
                    moving += 1
    for i in range(r):
        for j in range(width):
            X[i, start + j] = max(zero, X[i, start + j] - shift[j])


@compiled(inner=True, reordered=True)
def _multiply(gram: Floats, block: Floats, out: Floats) -> None:
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = 0
        for k in range(block.shape[0]):
            entry = gram[i, k]
            for j in range(block.shape[1]):
                out[i, j] += entry * block[k, j]


@compiled(inner=True, reordered=True)
def _step(
    x: Floats,
    previous: Floats,
    image: Floats,
    previous_image: Floats,
    target: Floats,
    length: float,
    momentum: float,
    out: Floats,
) -> None:
    """A gradient step from x extrapolated by the momentum; ``image`` is G x."""
    step_size, speed = x.dtype.type(length), x.dtype.type(momentum)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            slope = image[i, j] + speed * (image[i, j] - previous_image[i, j]) - target[i, j]
            out[i, j] = x[i, j] + speed * (x[i, j] - previous[i, j]) - step_size * slope


@compiled(inner=True, reordered=True)
def _rise(x: Floats, image: Floats, new: Floats, new_image: Floats, target: Floats) -> tuple[float, float]:
    """By how much the objective rises from x to ``new``, and the squared distance between the two."""
    rise, moved = 0.0, 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            change = new[i, j] - x[i, j]
            rise += change * (0.5 * (image[i, j] + new_image[i, j]) - target[i, j])
            moved += change * change
    return rise, moved


@compiled(reordered=True)
def _descend_block(
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
    _multiply(gram, x, image)
    previous, previous_image = x.copy(), image.copy()
    speed, first = 1.0, 0.0
    for step in range(max_steps):
        next_speed = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * speed * speed))
        momentum = (speed - 1.0) / next_speed
        while True:
            _step(x, previous, image, previous_image, t, length, momentum, new)
            _project_block(new, exact, 0, x.shape[1])
            _multiply(gram, new, new_image)
            rise, moved = _rise(x, image, new, new_image, t)
            if rise < 0.0 or momentum == 0:
                break
            momentum, next_speed = 0.0, 1.0
        if not rise < 0.0:  # not even the gradient step lowers it: this is the solution, up to rounding
            break
        x, previous, new = new, x, previous
        image, previous_image, new_image = new_image, image, previous_image
        speed = next_speed
        if step == 0:
            first = moved
        elif moved <= tolerance * tolerance * first:
            break
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            X[i, start + j] = x[i, j]


@Loop
def _project_blocks(X: Floats, exact: bool, first: int, stride: int) -> None:
    n = X.shape[1]
    for start in range(first * BLOCK, n, stride * BLOCK):
        _project_block(X, exact, start, min(start + BLOCK, n))


@Loop
def _descend_blocks(
    X: Floats,
    target: Floats,
    gram: Floats,
    length: float,
    exact: bool,
    max_steps: int,
    tolerance: float,
    first: int,
    stride: int,
) -> None:
    n = X.shape[1]
    for start in range(first * BLOCK, n, stride * BLOCK):
        _descend_block(X, target, gram, length, exact, max_steps, tolerance, start, min(start + BLOCK, n))
