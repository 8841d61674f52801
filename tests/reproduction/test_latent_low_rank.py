"""Latent low-rank representation: closed forms, optimality, units and limits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from reproduction.latent_low_rank import latent_low_rank

SEEDS = st.integers(0, 2**32 - 1)


def product(shape, rank, seed=0, density=0.7):
    rng = np.random.default_rng(seed)
    W, H = (rng.random(size) * (rng.random(size) < density) for size in ((shape[0], rank), (rank, shape[1])))
    return W @ H


def nuclear_norm(matrix):
    return np.linalg.svd(matrix, compute_uv=False).sum()


def relative(matrix, approximation):
    return np.linalg.norm(matrix - approximation) / np.linalg.norm(matrix)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shape", [(12, 15), (15, 12)])
def test_exact_representation(container, shape):
    matrix = product(shape, 4)
    result = latent_low_rank(container(matrix))
    assert_allclose(matrix @ result.X + result.L @ matrix, matrix, atol=1e-12)
    assert_allclose(result.W @ result.H, matrix, atol=1e-12)
    # M = U S V' makes the diagonal of V'XV + U'LU one, and a nuclear norm is at least the trace: 4 is the minimum
    assert result.objective == pytest.approx(4)
    assert nuclear_norm(result.X) + nuclear_norm(result.L) == pytest.approx(4)
    assert result.relative_error == 0
    assert result.stop_reason == "closed form"


@given(st.integers(1, 8), st.integers(1, 8), st.floats(0.01, 100.0), SEEDS)
@settings(max_examples=40, deadline=None)
def test_squared_error_meets_the_optimality_conditions(m, n, weight, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((m, n)) * (rng.random((m, n)) < 0.8)
    result = latent_low_rank(matrix, weight=weight)
    X, L = result.X, result.L
    residual = matrix - matrix @ X - L @ matrix
    if matrix.any():
        assert result.relative_error == pytest.approx(relative(matrix, matrix - residual), abs=1e-10)
    assert_allclose(result.W @ result.H, matrix - residual, atol=1e-10)
    for variable, slope in ((X, weight * matrix.T @ residual), (L, weight * residual @ matrix.T)):
        # the slope is a subgradient of the nuclear norm: spectral norm at most one, and aligned with the variable
        assert np.linalg.norm(slope, 2) <= 1 + 1e-8
        assert np.vdot(slope, variable) == pytest.approx(nuclear_norm(variable), abs=1e-8)
    value = nuclear_norm(X) + nuclear_norm(L) + weight / 2 * (residual**2).sum()
    assert result.objective == pytest.approx(value, abs=1e-8)


def test_squared_error_tends_to_the_exact_representation():
    matrix = product((12, 15), 4)
    exact, almost = latent_low_rank(matrix), latent_low_rank(matrix, weight=1e9)
    assert_allclose(almost.X, exact.X, atol=1e-6)
    assert_allclose(almost.L, exact.L, atol=1e-6)


@pytest.mark.parametrize("shape", [(12, 15), (15, 12)])
def test_absolute_error_tends_to_the_exact_representation(shape):
    matrix = product(shape, 4)
    result = latent_low_rank(matrix, weight=10.0, error="absolute", tolerance=1e-6, max_iterations=5000)
    assert result.converged
    assert result.optimality <= 1e-6
    assert result.relative_error < 1e-5
    assert result.objective == pytest.approx(4, rel=1e-3)
    assert_allclose(result.W @ result.H, matrix @ result.X + result.L @ matrix, atol=1e-10)


@pytest.mark.parametrize("weight", [0.05, pytest.param(0.2, marks=pytest.mark.long)])
def test_absolute_error_is_a_minimum(weight):
    matrix = product((9, 12), 3)
    result = latent_low_rank(matrix, weight=weight, error="absolute", tolerance=1e-6, max_iterations=20_000)

    def value(X, L):
        return nuclear_norm(X) + nuclear_norm(L) + weight * np.abs(matrix - matrix @ X - L @ matrix).sum()

    X, L = result.X, result.L
    assert result.objective == pytest.approx(value(X, L), rel=1e-8)
    assert result.objective < min(value(0 * X, 0 * L), latent_low_rank(matrix).objective)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):  # the problem is convex: a point no direction leads down from is a minimum
        for _ in range(20):
            moved = value(
                X + size * rng.standard_normal(X.shape) / X.size, L + size * rng.standard_normal(L.shape) / L.size
            )
            assert moved >= result.objective - 1e-6
        for factor in (1 - size, 1 + size):
            assert value(factor * X, factor * L) >= result.objective - 1e-5


def test_absolute_error_sets_wrong_entries_aside():
    clean = product((30, 40), 2, density=1.0)
    rng = np.random.default_rng(0)
    wrong = rng.random((30, 40)) < 0.03
    matrix = clean + 5 * wrong
    robust = latent_low_rank(matrix, weight=0.01, error="absolute", tolerance=1e-3)
    left = matrix - robust.W @ robust.H
    assert np.abs(left[wrong]).min() > 2 * np.abs(left[~wrong]).mean()


def test_single_precision_zero_and_units():
    matrix = product((12, 15), 4)
    single = latent_low_rank(matrix.astype(np.float32), weight=0.5)
    assert single.W.dtype == single.X.dtype == np.float32
    plain = latent_low_rank(matrix, weight=0.5)
    assert single.relative_error == pytest.approx(plain.relative_error, rel=1e-4)
    scaled = latent_low_rank(np.ldexp(matrix, 450), weight=np.ldexp(0.5, -900))
    assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-10)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-10)
    absolute = latent_low_rank(matrix.astype(np.float32), weight=0.5, error="absolute", tolerance=1e-3)
    assert absolute.W.dtype == absolute.X.dtype == np.float32
    for error in ("squared", "absolute"):
        zero = latent_low_rank(np.zeros((3, 4)), weight=1.0, error=error)
        assert zero.objective == zero.relative_error == 0
        assert_array_equal(zero.X, np.zeros((4, 4)))


def test_warns_when_the_limit_is_reached():
    with pytest.warns(ConvergenceWarning, match="latent_low_rank stopped after 2 iterations"):
        result = latent_low_rank(product((6, 7), 3), weight=0.1, error="absolute", max_iterations=2)
    assert result.stop_reason == "max_iterations reached"


def test_errors_say_what_is_allowed():
    with pytest.raises(ValueError, match="error must be 'squared' or 'absolute'; got 'robust'"):
        latent_low_rank(np.eye(3), error="robust")
    with pytest.raises(ValueError, match="weight must be a finite number above 0; got 0"):
        latent_low_rank(np.eye(3), weight=0)
    huge = sp.csr_array(([1.0], ([0], [0])), shape=(30_000, 40_000))
    with pytest.raises(ValueError, match=r"shape \(30000, 40000\) needs about .* GiB of dense arrays"):
        latent_low_rank(huge)
