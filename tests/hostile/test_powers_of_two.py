"""Multiplying a matrix by a power of two changes no choice, no weight and no relative error, in any bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import gsnmf
from gsnmf import nmf
from gsnmf.convex import solve_convex
from gsnmf.registry import methods

_EXPONENTS = {np.float64: (-1000, -299, -61, 7, 299, 1000), np.float32: (-100, -37, 22, 90)}
_CASES = [(dtype, exponent) for dtype, exponents in _EXPONENTS.items() for exponent in exponents]


def _matrix(dtype=np.float64):
    rng = np.random.default_rng(3)
    M = rng.random((14, 11)) + 0.05
    M[rng.random(M.shape) < 0.3] = 0.0
    return M.astype(dtype)


def _choices(matrix, rank, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = gsnmf.factorize(matrix, rank, method=method, effort="fast")
    return (
        result.columns.tolist(),
        result.rows.tolist(),
        result.column_weights.tolist(),
        result.row_weights.tolist(),
        result.relative_error,
        result.stop_reason,
    )


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array, pytest.param(sp.csc_array, marks=pytest.mark.long)])
@pytest.mark.parametrize("method", [method.name for method in methods()])
def test_every_method(method, hold):
    M = _matrix()
    if method == "exact":
        M = M[:, :3] @ np.hstack([np.eye(3), M[:3, :5]])
    rank = {"spa-both": (2, 2), "exact": 3}.get(method, 4)
    expected = _choices(hold(M), rank, method)
    for exponent in (-1000, 299):
        assert _choices(hold(np.ldexp(M, exponent)), rank, method) == expected


@pytest.mark.parametrize("method", ["auto", "pursuit", "gspa", "convex", "snpa", "xray", "gs-fgm"])
def test_single_precision(method):
    M = _matrix(np.float32)
    expected = _choices(M, 4, method)
    for exponent in (-100, 90):
        assert _choices(np.ldexp(M, exponent), 4, method) == expected


@pytest.mark.parametrize(("dtype", "exponent"), _CASES)
def test_path_of_ranks(dtype, exponent):
    M = _matrix(dtype)
    expected, found = gsnmf.rank_path(M, 6), gsnmf.rank_path(np.ldexp(M, exponent), 6)
    assert found == expected
    assert expected.errors.size == 7


@pytest.mark.parametrize(
    ("dtype", "exponent"),
    [(np.float64, -1000), pytest.param(np.float64, 299, marks=pytest.mark.long), (np.float32, 90)],
)
def test_estimator_that_chooses_the_rank(dtype, exponent):
    M = _matrix(dtype)
    expected, found = (gsnmf.GSNMF(None, target_error=0.3, effort="fast").fit(X) for X in (M, np.ldexp(M, exponent)))
    assert found.n_components_ == expected.n_components_ > 1
    assert found.quality_ == expected.quality_
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.column_weights_, expected.column_weights_)
    np.testing.assert_array_equal(found.row_weights_, expected.row_weights_)


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(("dtype", "exponent"), _CASES)
def test_scaling(dtype, exponent, hold):
    M = _matrix(dtype)
    expected, found = gsnmf.scale(hold(M)), gsnmf.scale(hold(np.ldexp(M, exponent)))
    as_array = (lambda matrix: matrix) if hold is np.asarray else (lambda matrix: matrix.toarray())
    np.testing.assert_array_equal(as_array(found.matrix), as_array(expected.matrix))
    assert (found.n_iterations, found.residual) == (expected.n_iterations, expected.residual)
    spread = found.row_factors[:, None] * found.column_factors
    np.testing.assert_allclose(
        np.ldexp(spread, exponent), expected.row_factors[:, None] * expected.column_factors, rtol=1e-12
    )


@pytest.mark.parametrize("exponent", [-900, -299, 299, 900])
def test_scaling_of_a_matrix_with_a_wide_range(exponent):
    rng = np.random.default_rng(0)
    M = np.ldexp(rng.random((6, 5)) + 0.1, rng.integers(-60, 60, (6, 1)) + rng.integers(-70, 0, (1, 5)))
    expected, found = gsnmf.scale(M), gsnmf.scale(np.ldexp(M, exponent))
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    np.testing.assert_allclose(found.matrix.sum(axis=0), 6.0)


@pytest.mark.parametrize("init", ["random", "nndsvd", "selection"])
@pytest.mark.parametrize(("dtype", "exponent"), _CASES)
def test_nmf(dtype, exponent, init):
    M = _matrix(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected, found = (
            nmf.hals(X, 3, init=init, max_iterations=30, random_state=0) for X in (M, np.ldexp(M, exponent))
        )
    assert found.relative_error == expected.relative_error
    assert found.n_iterations == expected.n_iterations


@pytest.mark.parametrize("exponent", [-400, -61, 7, 400])
def test_convex_model(exponent):
    M = _matrix()
    expected, found = solve_convex(M, 3), solve_convex(np.ldexp(M, exponent), 3)
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.Y, expected.Y)
    assert found.objective == np.ldexp(expected.objective, 2 * exponent)
    assert found.gap == expected.gap


def test_pursuit_of_tiny_entries():
    """Fourth powers of 1e-90 are zero: scores must not be."""
    M = np.random.default_rng(0).random((12, 14))
    result = gsnmf.factorize(M * 1e-90, 3, method="pursuit")
    assert result.selection.n_selected == 3
    assert result.relative_error == pytest.approx(gsnmf.factorize(M, 3, method="pursuit").relative_error)


def test_dask_array():
    da = pytest.importorskip("dask.array")
    M = _matrix()
    for method in ("gspa", "pursuit"):
        expected = gsnmf.factorize(da.from_array(M, chunks=(5, 6)), 4, method=method)
        for exponent in (-299, 299):
            found = gsnmf.factorize(da.from_array(np.ldexp(M, exponent), chunks=(5, 6)), 4, method=method)
            np.testing.assert_array_equal(found.columns, expected.columns)
            np.testing.assert_array_equal(found.rows, expected.rows)
            assert found.relative_error == expected.relative_error
