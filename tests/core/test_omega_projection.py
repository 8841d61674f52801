import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from gsnmf._parallel import PARALLEL_WORK
from gsnmf.convex.penalties import OPERATIONS_PER_ENTRY, project

SEEDS = st.integers(0, 2**32 - 1)
# Zero or ordinary magnitudes: the references below are written without any care for underflow.
ENTRIES = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 0.5]), st.floats(1e-3, 4.0), st.floats(-4.0, -1e-3))
WEIGHTS = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.01, 100.0))


@st.composite
def rows_with_weights(draw, max_size=8):
    n = draw(st.integers(1, max_size))
    i = draw(st.integers(0, n - 1))
    return draw(arrays(np.float64, n, elements=ENTRIES)), draw(arrays(np.float64, n, elements=WEIGHTS)), i


def by_breakpoints(x, weights, i):
    """The textbook way: the optimal diagonal entry lies on one of the pieces between sorted breakpoints."""
    if weights[i] == 0:
        return np.zeros_like(x)
    ratios = weights / weights[i]
    others = (np.arange(x.size) != i) & (ratios > 0) & (x > 0)
    c, values = ratios[others], x[others]

    def objective(t):
        return 0.5 * (t - x[i]) ** 2 + 0.5 * (np.maximum(values - c * t, 0) ** 2).sum()

    ends = np.unique(np.clip(np.r_[0, 1, values / c], 0, 1))
    candidates = [*ends]
    for left, right in itertools.pairwise(ends):
        active = values > c * (left + right) / 2
        t = (x[i] + c[active] @ values[active]) / (1 + c[active] @ c[active])
        candidates.append(np.clip(t, left, right))
    best = min(candidates, key=objective)
    result = np.clip(x, 0, ratios * best)
    result[i] = best
    return result


def by_quadratic_program(x, weights, i):
    """A generic solver: sequential quadratic programming, which a quadratic program with linear constraints is to."""
    if weights[i] == 0:
        return np.zeros(x.size)
    ratios = np.delete(np.eye(x.size), i, axis=0) * -1.0
    ratios[:, i] = np.delete(weights, i) / weights[i]
    solution = minimize(
        lambda z: 0.5 * ((z - x) ** 2).sum(),
        np.zeros(x.size),
        jac=lambda z: z - x,
        bounds=[(0.0, 1.0 if j == i else None) for j in range(x.size)],
        constraints=[{"type": "ineq", "fun": lambda z: ratios @ z, "jac": lambda _: ratios}] if x.size > 1 else [],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return solution.x


def largest_violation(X, weights, indices):
    """How far rows are outside Omega."""
    ratios = weights / weights[indices][:, None]
    diagonal = X[np.arange(len(indices)), indices]
    return max((-X).max(), (diagonal - 1).max(), (X - ratios * diagonal[:, None]).max())


@settings(deadline=None, max_examples=200)
@given(rows_with_weights())
def test_row_equals_the_minimum_over_all_pieces(problem):
    x, weights, i = problem
    result = project(x[None], weights, [i])[0]
    assert_allclose(result, by_breakpoints(x, weights, i), atol=1e-12)


@settings(deadline=None, max_examples=100)
@given(rows_with_weights(max_size=6))
def test_row_equals_the_quadratic_program(problem):
    x, weights, i = problem
    x, weights = np.clip(x, -3.0, 3.0), np.where(weights > 0, np.clip(weights, 0.1, 10.0), 0.0)  # what it can solve
    result = project(x[None], weights, [i])[0]
    assert_allclose(result, by_quadratic_program(x, weights, i), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_variational_inequality_on_large_rows(seed):
    """A point p is the projection of x on a convex set if and only if <x - p, z - p> <= 0 for every z in the set."""
    rng = np.random.default_rng(seed)
    k, n = 60, 2000
    X = rng.normal(0.0, 0.2, (k, n)) + rng.choice([-0.3, 0.0, 0.01], (k, 1))
    weights = np.exp(rng.normal(size=n))
    indices = rng.choice(n, k, replace=False)
    P = project(X, weights, indices)
    assert largest_violation(P, weights, indices) <= 1e-14 * P.max()
    assert (P[np.arange(k), indices] < 1).any()  # the case that needs the root is there
    ratios = weights / weights[indices][:, None]
    for _ in range(50):
        diagonal = rng.random((k, 1)) * rng.integers(0, 2, (k, 1))
        Z = ratios * diagonal * rng.choice([0.0, 1.0, rng.random()], (k, n))
        Z[np.arange(k), indices] = diagonal[:, 0]
        products = ((X - P) * (Z - P)).sum(axis=1)
        scales = np.linalg.norm(X - P, axis=1) * np.linalg.norm(Z - P, axis=1)
        assert (products <= 1e-12 * scales).all()


def test_optimality_conditions_on_large_rows():
    """The derivative along the diagonal entry is zero inside (0, 1), not positive at 1 and not negative at 0."""
    rng = np.random.default_rng(1)
    k, n = 200, 3000
    X = np.exp(rng.normal(-5.0, 2.0, (k, n))) * rng.choice([-1, 1], (k, n))
    weights = rng.uniform(0.1, 10.0, n)
    indices = rng.choice(n, k, replace=False)
    P = project(X, weights, indices)
    diagonal = P[np.arange(k), indices]
    ratios = weights / weights[indices][:, None]
    ratios[np.arange(k), indices] = 0
    excess = ratios * np.maximum(X - ratios * diagonal[:, None], 0)
    derivative = diagonal - X[np.arange(k), indices] - excess.sum(axis=1)
    size = 1e-12 * (1 + excess.sum(axis=1))
    assert (derivative[diagonal < 1] >= -size[diagonal < 1]).all()
    assert (derivative[diagonal > 0] <= size[diagonal > 0]).all()
    assert ((diagonal > 0) & (diagonal < 1)).any()


@settings(deadline=None, max_examples=100)
@given(rows_with_weights())
def test_projecting_twice_changes_nothing(problem):
    x, weights, i = problem
    once = project(x[None], weights, [i])
    assert_allclose(project(once, weights, [i]), once, rtol=1e-14, atol=1e-15)


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 40), SEEDS)
def test_nonexpansive(n, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(2, n, n))
    weights = np.exp(rng.normal(size=n))
    distance = np.linalg.norm(project(X, weights) - project(Z, weights))
    assert distance <= np.linalg.norm(X - Z) * (1 + 1e-12)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), SEEDS)
def test_columns_can_be_permuted_and_weights_scaled(n, seed):
    rng = np.random.default_rng(seed)
    X, weights, order = rng.normal(size=(n, n)), rng.uniform(0.1, 2.0, n), rng.permutation(n)
    result = project(X, weights)
    assert_allclose(project(X[order][:, order], weights[order]), result[order][:, order], atol=1e-13)
    assert_allclose(project(X, 1e30 * weights), result, atol=1e-13)


def test_working_set_is_the_rows_of_the_whole():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(300, 300)), rng.uniform(0.5, 2.0, 300)
    indices = rng.permutation(300)[:7]
    assert_array_equal(project(X[indices], weights, indices), project(X, weights)[indices])


def test_serial_and_parallel_kernels_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(0.0, 0.1, (40, PARALLEL_WORK // OPERATIONS_PER_ENTRY // 20))
    weights, indices = rng.uniform(0.5, 2.0, X.shape[1]), rng.permutation(X.shape[1])[:40]
    by_parts = np.vstack([project(X[[a]], weights, indices[[a]]) for a in range(40)])
    assert_array_equal(project(X, weights, indices), by_parts)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([-1.0, -2.0, -3.0], [0.0, 0.0, 0.0]),
        ([-1.0, 0.3, 0.3], [0.0, 0.0, 0.0]),  # not enough to lift the diagonal from zero
        ([-0.5, 0.8, -1.0], [0.15, 0.15, 0.0]),
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
        ([0.0, 0.9, 0.9], [0.6, 0.6, 0.6]),
        ([1.0, 2.0, -1.0], [1.0, 1.0, 0.0]),
        ([5.0, 0.2, 7.0], [1.0, 0.2, 1.0]),
        ([0.9, 9.0, 0.95], [1.0, 1.0, 0.95]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_hand_made_rows(x, expected):
    assert_allclose(project([x], np.ones(3), [0]), [expected], atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_weights(dtype):
    X = np.array([[0.2, 0.7, 0.3], [0.5, 0.5, 0.5], [-0.1, 4.0, 0.4]], dtype=dtype)
    result = project(X, [1.0, 0.0, 1.0])
    assert_allclose(result, [[0.25, 0.0, 0.25], [0.0, 0.0, 0.0], [0.0, 0.0, 0.4]], atol=1e-7)
    assert_array_equal(project(X, np.zeros(3)), np.zeros((3, 3)))


@pytest.mark.parametrize(("dtype", "ratio"), [(np.float32, 1e-30), (np.float64, 1e-140), (np.float64, 1e-300)])
def test_huge_ratios_of_weights_do_not_overflow(dtype, ratio):
    """The first column weighs next to nothing: as a row its bounds are next to infinite, as an entry next to zero."""
    X = np.array([[0.5, 3.0, -1.0], [0.7, 0.5, 0.6], [0.1, 0.1, 0.2]], dtype=dtype)
    result = project(X, [ratio, 1.0, 2.0])
    first = [0.5, 3.0, 0.0] if ratio > 1e-150 else [0.0, 0.0, 0.0]
    assert_allclose(result, [first, [0.0, 0.5, 0.6], [0.0, 0.1, 0.2]], rtol=1e-6, atol=1e-7)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), SEEDS)
def test_single_precision_is_close(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 0.3, (n, n)).astype(np.float32)
    weights = np.exp(rng.normal(size=n)).astype(np.float32)
    result = project(X, weights)
    assert result.dtype == np.float32
    # the diagonal entry solves an equation whose slope is at least one: errors are of the size of the data's rounding
    size = (weights.max() / weights.min()) * (1 + np.abs(X).max())
    assert_allclose(result, project(X.astype(np.float64), weights), atol=1e-6 * size)


def test_input_is_kept_and_out_is_used():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(5, 5)), rng.random(5)
    before = X.copy()
    expected = project(X, weights)
    assert_array_equal(X, before)
    for out in (np.empty((5, 5)), np.empty((5, 5), order="F"), np.empty((5, 10))[:, ::2]):
        assert project(X, weights, out=out) is out
        assert_array_equal(out, expected)
    assert_array_equal(project(np.asfortranarray(X), weights), expected)
    assert project(X, weights, out=X) is X
    assert_array_equal(X, expected)


def test_out_may_be_a_view_of_the_input_in_another_order():
    X = np.arange(9.0).reshape(3, 3) / 5
    expected = project(X.T, np.ones(3))
    assert_array_equal(project(X.T, np.ones(3), out=X.T), expected)


def test_integers_become_double_precision():
    assert project([[2, 1], [0, -1]], [1, 1]).dtype == np.float64


def test_nan_is_not_hidden():
    X = np.array([[0.5, np.nan], [np.nan, 0.5]])
    assert_array_equal(np.isnan(project(X, np.ones(2))), np.isnan(X))
    assert np.isnan(project([[np.nan]], [1.0])).all()


def test_empty_working_set():
    assert project(np.empty((0, 4)), np.ones(4), indices=[]).shape == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.ones(3), "weights": np.ones(3)}, "X must be two-dimensional"),
        ({"X": np.ones((2, 3)), "weights": np.ones(3)}, "X must be square without indices"),
        ({"X": np.ones((3, 3)), "weights": np.ones(2)}, "weights must have length 3"),
        ({"X": np.ones((3, 3)), "weights": np.ones((3, 1))}, "weights must be one-dimensional"),
        ({"X": np.ones((3, 3)), "weights": [1.0, -1.0, 1.0]}, "weights must be finite and not negative"),
        ({"X": np.ones((3, 3)), "weights": [1.0, np.nan, 1.0]}, "weights must be finite and not negative"),
        ({"X": np.ones((3, 3)), "weights": [1.0, np.inf, 1.0]}, "weights must be finite and not negative"),
        ({"X": np.ones((2, 3)), "weights": np.ones(3), "indices": [0]}, r"indices must have shape \(2,\)"),
        ({"X": np.ones((2, 3)), "weights": np.ones(3), "indices": [0, 3]}, r"indices must be in \[0, 2\]"),
        ({"X": np.ones((2, 3)), "weights": np.ones(3), "indices": [-1, 0]}, r"indices must be in \[0, 2\]"),
        ({"X": np.eye(2), "weights": np.ones(2), "out": np.empty((2, 3))}, "out must have shape"),
        ({"X": np.eye(2), "weights": np.ones(2), "out": np.empty((2, 2), np.float32)}, "out must have shape"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        project(**arguments)
