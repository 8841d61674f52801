"""Memory: a matrix is held once, and freed as soon as nothing refers to its result."""

import gc
import pickle
import tracemalloc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.matrix import wrap

DENSE = np.random.default_rng(0).random((30, 20))
SPARSE = sp.csr_array(np.where(DENSE > 0.5, DENSE, 0.0))
HOLED = np.where(DENSE > 0.2, DENSE, np.nan)


@contextmanager
def no_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("method", ["auto", "convex", "gspa", "spa-both", "snpa-rows", "xray", "pursuit", "gs-fgm"])
@pytest.mark.parametrize(
    ("matrix", "options"),
    [
        (DENSE, {}),
        (SPARSE, {}),
        (HOLED, {"missing_values": np.nan}),
        (SPARSE, {"missing_values": "unstored"}),
    ],
    ids=["dense", "sparse", "holes", "sparse holes"],
)
def test_a_result_is_freed_without_the_garbage_collector(method, matrix, options):
    rank = (2, 1) if method == "spa-both" else 3
    with no_garbage_collector():
        result = gsnmf.factorize(matrix, rank, method=method, effort="fast", **options)
        held = [weakref.ref(result.source), weakref.ref(result.source.T), weakref.ref(result.problem.matrix)]
        del result
        assert [one() for one in held] == [None, None, None]


def test_a_transpose_outlives_its_matrix():
    for matrix in (DENSE, SPARSE):
        transpose = wrap(matrix).T
        gc.collect()
        np.testing.assert_array_equal(
            transpose.T.columns(np.arange(3)), DENSE[:, :3] if matrix is DENSE else matrix[:, :3].toarray()
        )
        assert transpose.T.T is transpose
        again = pickle.loads(pickle.dumps(transpose))
        np.testing.assert_array_equal(again.T.squared_column_norms, transpose.T.squared_column_norms)


@pytest.mark.parametrize(
    "fit", [lambda X: gsnmf.factorize(X, 3, method="gspa"), lambda X: gsnmf.GSNMF(3, method="gspa").fit(X)]
)
def test_the_matrix_is_held_once(fit):
    X = np.random.default_rng(0).random((2000, 500))
    fit(X[:50])  # imports
    tracemalloc.start()
    try:
        found = fit(X)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.shares_memory(getattr(found, "result_", found).matrix, X)
    assert kept < 0.2 * X.nbytes
    assert peak < 3.0 * X.nbytes


def peak(call):
    """Bytes that a call holds at most, without the garbage collector."""
    with no_garbage_collector():
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_stability_holds_few_copies():
    X = np.random.default_rng(0).random((2000, 500))
    result = gsnmf.factorize(X, 3, method="gspa")
    assert peak(lambda: gsnmf.stability(result, n_repeats=3)) < 3.0 * X.nbytes


def test_choosing_a_rank_holds_little_more_than_one_search():
    X = np.random.default_rng(0).random((1200, 800))
    gsnmf.choose_rank(X[:50], [2, 3], n_repeats=1, effort="fast")  # imports
    search = peak(lambda: gsnmf.factorize(X, 3, effort="fast"))
    assert peak(lambda: gsnmf.choose_rank(X, [2, 3], n_repeats=4, effort="fast")) < search + X.nbytes
