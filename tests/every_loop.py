"""Run every compiled loop in one thread and in all of them, and compare: a program for `test_portability`."""

import gc
import math
from functools import partial

import numpy as np
import scipy.sparse as sp

from gsnmf import _parallel
from gsnmf._kernels.convex_hull import project_on_hull
from gsnmf._kernels.coordinate_descent import coordinate_sweep, descend
from gsnmf._kernels.exchange import coupled, descend_rows, exchange_scores
from gsnmf._kernels.least_squares import nonnegative_least_squares, nonnegative_quadratic, passive_inverses
from gsnmf._kernels.loops import Loop
from gsnmf._kernels.observed_descent import descend_rows as descend_observed
from gsnmf._kernels.observed_entries import (
    Entries,
    nonnegative_rows,
    residuals,
    ridge_rows,
    row_grams,
    row_slopes,
    simplex_rows,
    sweep_rows,
)
from gsnmf._kernels.reductions import positive_squares
from gsnmf._kernels.simplex import descend_on_simplex, project_on_simplex
from gsnmf._kernels.sparse_products import sparse_column_sums, sparse_dot, sparse_gram_rows
from gsnmf._kernels.sum_to_one import simplex_least_squares
from gsnmf.convex.penalties import PENALTIES
from gsnmf.convex.projection import project

N, R = 150, 7
TOLERANCE = 1e-10
"""Relative to the largest entry: loops may add in another order, and small products are SciPy's in one thread."""


def outcomes():
    """What every public kernel computes from the same data, as (name, arrays)."""
    rng = np.random.default_rng(0)
    columns, targets = rng.random((3 * R, R)), rng.standard_normal((N, R))
    triangle = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[1]
    gram, linear = triangle.T @ triangle, targets @ triangle
    dependent = triangle.copy()
    dependent[:, -1] = dependent[:, 0]
    wide = np.ascontiguousarray(np.abs(targets).T)

    def changed(function, start, *rest):
        X = start.copy()
        function(X, *rest)
        return X

    zeros = np.zeros((N, R))
    for name, basis in ("independent", triangle), ("dependent", dependent):
        X = changed(nonnegative_least_squares, zeros, basis, targets)
        yield f"least squares, {name} columns", X @ basis.T
    yield "quadratic problems", changed(nonnegative_quadratic, zeros, gram, linear)
    yield "inverses", passive_inverses(np.maximum(targets, 0.0), gram)
    points, padded, origin = np.zeros((R + 1, R + 1)), np.zeros((N, R + 1)), np.zeros((N, R + 1))
    points[1:, 1:], padded[:, 1:], origin[:, 0] = triangle.T, targets, 1.0
    left, multipliers = np.empty((N, R + 1)), np.empty(N)
    yield "hull", np.hstack([changed(project_on_hull, origin, left, multipliers, points, padded), left])
    yield "sweep", changed(coordinate_sweep, zeros, -linear, gram)
    yield "descent", changed(descend, np.zeros((R, N)), wide, gram, 5, 0.0)
    yield "simplex", changed(project_on_simplex, wide, True)
    yield "descent on the simplex", changed(descend_on_simplex, np.zeros((R, N)), wide, gram, False, 5, 0.0)
    yield "sum to one", simplex_least_squares(triangle, targets)
    yield "exchange", exchange_scores(targets, rng.random((N, 4)), rng.random((4, R)))
    yield "coupled", coupled(np.maximum(targets, 0.0), np.abs(targets), threads=True)
    small = rng.random((N, 2)), rng.random((2, R))
    yield "descent of exchanges", changed(lambda X: descend_rows(X, -linear, *small, gram, threads=True), zeros)
    yield "positive squares", positive_squares(targets)
    matrix = sp.random_array((N, N), density=0.1, format="csr", rng=rng)
    for width in 1, 3, 6, 20:
        yield f"sparse product with {width} columns", sparse_dot(matrix, rng.random((N, width)))
    yield "sparse Gram rows", sparse_gram_rows(matrix[:, :9].tocsc(), matrix)
    yield "sparse sums", sparse_column_sums(matrix.tocsc())
    entries, F, A = (
        Entries(matrix.indptr, matrix.indices, matrix.data, np.empty(0)),
        rng.random((N, R)),
        np.abs(targets),
    )
    yield "ridge", ridge_rows(entries, F, 0.1)
    yield "observed, nonnegative", nonnegative_rows(entries, F)[0]
    yield "observed, sum to one", simplex_rows(entries, F)
    grams, lengths = row_grams(entries, F)
    yield "observed Gram matrices", np.append(grams, lengths)
    yield "observed sweep", changed(sweep_rows, A, targets.copy(), grams)
    yield "observed descent", changed(lambda X: descend_observed(entries, F, X, 2), A)
    yield "residuals", residuals(entries, A, F)
    yield "slopes", row_slopes(entries, A, F, F, with_values=True)
    square, weights, indices = rng.standard_normal((N, N)), rng.random(N), np.arange(N)
    yield "projection", project(square, weights)
    for name, penalty in PENALTIES.items():
        yield f"shrinking, {name}", changed(lambda X, p=penalty: p.shrink(X, np.full(N, 0.5), indices, weights), square)
        yield f"scores, {name}", penalty.scores(square, indices, weights)


def main():
    """Compare; an error names the kernel that differs or the loop whose parts were never shared out."""
    shared, every = set(), [found for found in gc.get_objects() if isinstance(found, Loop)]
    for loop in every:
        loop._part = partial(record, shared, loop, loop._part)
    _parallel.PARALLEL_WORK = math.inf
    alone = list(outcomes())
    assert not shared
    _parallel.PARALLEL_WORK = 0
    for (name, expected), (_, found) in zip(alone, outcomes(), strict=True):
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error <= TOLERANCE, f"{name}: {error}"
    missed = [loop.__name__ for loop in every if loop not in shared]
    assert not missed, f"never shared out: {missed}"
    print(_parallel.n_threads(), len(alone), "as in one thread")


def record(shared, loop, part, *arguments):
    """Run a part, and remember the loop if there are others."""
    if arguments[-1] > 1:
        shared.add(loop)
    part(*arguments)


if __name__ == "__main__":
    main()
