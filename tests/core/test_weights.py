import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, nnls
from sklearn.exceptions import ConvergenceWarning

import gsnmf
from gsnmf import _parallel
from gsnmf._kernels.coordinate_descent import coordinate_sweep
from gsnmf._kernels.least_squares import nonnegative_quadratic
from gsnmf.datasets import fully_random, middle_points
from gsnmf.matrix import wrap
from gsnmf.weights import cone_weights
from gsnmf.weights.joint import JointProblem, solve_joint
from gsnmf.weights.one_sided import remaining_weights


def residual(matrix, columns, rows, weights):
    return matrix - matrix[:, columns] @ weights.column_weights - weights.row_weights @ matrix[rows]


def optimal_error(matrix, columns, rows):
    """Relative error of the joint problem by a generic solver on the whole system.

    It is singular, where `scipy.optimize.nnls` can be wrong and the other method of `lsq_linear` can hang.
    """
    m, n = matrix.shape
    system = np.hstack([np.kron(matrix[:, columns], np.eye(n)), np.kron(np.eye(m), matrix[rows].T)])
    solution = lsq_linear(system, matrix.ravel(), bounds=(0, np.inf), method="bvls")
    return np.sqrt(2 * solution.cost) / np.linalg.norm(matrix)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("m", "n", "rank"), [(50, 40, 6), (30, 80, 25), (7, 60, 7), (5, 60, 9)])
def test_one_sided_weights_are_nnls(m, n, rank, sparse):
    rng = np.random.default_rng(0)
    matrix = rng.random((m, n)) * (rng.random((m, n)) < 0.7)
    columns = rng.permutation(n)[:rank]
    given_matrix = sp.csr_array(matrix) if sparse else matrix
    on_columns = gsnmf.fit_weights(given_matrix, columns, [])
    on_rows = gsnmf.fit_weights(given_matrix.T, [], columns)
    for j in range(n):
        expected, _ = nnls(matrix[:, columns], matrix[:, j])
        if rank <= m:  # otherwise there are several
            np.testing.assert_allclose(on_columns.column_weights[:, j], expected, atol=1e-8)
        fit = matrix[:, columns] @ on_columns.column_weights[:, j] - matrix[:, j]
        assert np.linalg.norm(fit) <= np.linalg.norm(matrix[:, columns] @ expected - matrix[:, j]) + 1e-8
    np.testing.assert_array_equal(on_rows.row_weights, on_columns.column_weights.T)
    assert on_columns.converged
    assert on_columns.optimality < 1e-10
    assert on_columns.row_weights.shape == (m, 0)


@pytest.mark.parametrize("condition", [1e3, 1e6])
def test_one_sided_weights_of_ill_conditioned_columns(condition):
    rng = np.random.default_rng(1)
    base = rng.random((200, 1))
    matrix = base + np.abs(rng.standard_normal((200, 60))) / condition
    weights = gsnmf.fit_weights(matrix, np.arange(12), [])
    for j in range(60):
        expected, _ = nnls(matrix[:, :12], matrix[:, j])
        np.testing.assert_allclose(weights.column_weights[:, j], expected, atol=1e-8)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shared", [0.0, 0.9, 0.999, 1.0])  # part of all rows; 1: they are the same
def test_remaining_weights_are_nnls_however_alike_the_rows_are(shared, container):
    rng = np.random.default_rng(3)
    basis = (1 - shared) * rng.random((8, 30)) * (rng.random((8, 30)) < 0.2) + shared * rng.random(30)
    column_weights = rng.random((2, 30)) / 10
    matrix = (rng.random((40, 8)) - 0.5) @ basis + rng.random((40, 30))
    matrix = np.where(matrix > 0.3, matrix, 0.0)
    weights = remaining_weights(wrap(container(matrix)), np.array([3, 5]), column_weights, basis)
    targets = matrix - matrix[:, [3, 5]] @ column_weights
    assert weights.min() >= 0
    for found, target in zip(weights, targets, strict=True):
        expected, distance = nnls(basis.T, target)
        assert np.linalg.norm(found @ basis - target) <= distance * (1 + 1e-10)
        if shared < 1:
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(st.integers(1, 9), st.floats(0.05, 1.0), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_quadratic_kernel_meets_the_optimality_conditions(r, density, seed):
    rng = np.random.default_rng(seed)
    basis = rng.random((12, r)) * (rng.random((12, r)) < density) + np.eye(12, r)
    basis /= np.linalg.norm(basis, axis=0)
    gram, linear = basis.T @ basis, rng.standard_normal((20, r)) * (rng.random((20, r)) < density)
    X = np.zeros((20, r))
    nonnegative_quadratic(X, gram, linear)
    assert X.min() >= 0
    np.testing.assert_allclose(np.minimum(X, X @ gram - linear), 0.0, atol=1e-11)


def test_repeated_and_zero_columns_get_weights_all_the_same():
    rng = np.random.default_rng(2)
    matrix = rng.random((20, 10))
    matrix[:, 3] = matrix[:, 4]
    matrix[:, 5] = 0.0
    plain = gsnmf.fit_weights(matrix, [0, 3], [])
    doubled = gsnmf.fit_weights(matrix, [0, 3, 4, 5], [])
    assert doubled.relative_error == pytest.approx(plain.relative_error, rel=1e-10)
    assert not doubled.column_weights[3].any()
    joint = gsnmf.fit_weights(matrix, [0, 3, 4, 5], [1, 2])
    assert joint.converged
    assert joint.relative_error == pytest.approx(gsnmf.fit_weights(matrix, [0, 3], [1, 2]).relative_error, rel=1e-4)


@given(
    st.integers(2, 7), st.integers(2, 7), st.integers(1, 3), st.integers(1, 3), st.floats(0.2, 1.0),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
@example(3, 5, 2, 3, 0.5, 109423)  # conjugate gradients start from a residual of rounding, along the valley
@example(3, 5, 2, 2, 0.5, 109423)
@example(6, 3, 2, 3, 0.75, 705080)  # setting all negative weights to zero at once leads uphill
@settings(max_examples=60, deadline=None)
def test_joint_weights_reach_the_optimum(m, n, r1, r2, density, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((m, n)) * (rng.random((m, n)) < density)
    columns, rows = rng.permutation(n)[:r1], rng.permutation(m)[:r2]
    weights = gsnmf.fit_weights(matrix, columns, rows, tolerance=1e-8)
    norm = np.linalg.norm(matrix)
    if norm == 0:
        assert weights.relative_error == 0
        return
    assert weights.column_weights.min() >= 0
    assert weights.row_weights.min() >= 0
    actual = np.linalg.norm(residual(matrix, columns, rows, weights)) / norm
    assert weights.relative_error == pytest.approx(actual, abs=1e-9)
    assert weights.relative_error <= optimal_error(matrix, columns, rows) + 1e-6


def test_weights_of_dependent_generators():
    """Systems like these, two columns and two rows of a small matrix, are where `scipy.optimize.nnls` fails."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        matrix = rng.random((7, 5)) * (rng.random((7, 5)) < 0.5)
        generators = np.hstack([np.kron(matrix[:, :3], np.eye(5)), np.kron(np.eye(7), matrix[:3].T)])
        weights = cone_weights(generators, matrix.ravel())
        slopes = generators.T @ (generators @ weights - matrix.ravel())
        assert weights.min() >= 0
        assert slopes.min() >= -1e-10
        assert np.abs(slopes[weights > 0]).max(initial=0.0) <= 1e-10


def test_reported_optimality_is_the_violation_of_the_conditions():
    planted = fully_random(0.1, random_state=0)
    matrix, columns, rows = planted.matrix, planted.columns, planted.rows
    weights = gsnmf.fit_weights(matrix, columns, rows)
    error = residual(matrix, columns, rows, weights)
    lengths = np.linalg.norm(matrix[:, columns], axis=0), np.linalg.norm(matrix[rows], axis=1)
    P = weights.column_weights * lengths[0][:, None]
    Q = weights.row_weights * lengths[1]
    slope_P = -(matrix[:, columns] / lengths[0]).T @ error
    slope_Q = -error @ (matrix[rows] / lengths[1][:, None]).T
    violation = np.hypot(np.linalg.norm(np.minimum(P, slope_P)), np.linalg.norm(np.minimum(Q, slope_Q)))
    assert weights.optimality == pytest.approx(violation / np.linalg.norm(error), rel=1e-3)
    assert weights.converged
    assert weights.optimality <= 1e-4


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 5))])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_true_indices_of_planted_matrices_leave_no_error(seed, container):
    for planted in (
        fully_random(random_state=seed),
        middle_points(random_state=seed),
        fully_random(shape=(150, 300), n_columns=35, n_rows=12, random_state=seed),
    ):
        weights = gsnmf.fit_weights(container(planted.matrix), planted.columns, planted.rows)
        assert weights.converged
        assert weights.relative_error < 1e-6


def test_objective_never_rises():
    planted = fully_random(0.2, random_state=1)
    problem = JointProblem.of(wrap(planted.matrix), planted.columns, planted.rows)
    P, Q = (np.zeros_like(linear) for linear in problem.linear)
    errors = [problem.squared_norm]
    for _ in range(15):
        squared_error, _, _ = solve_joint(problem, P, Q, tolerance=1e-12, max_iterations=1)
        errors.append(squared_error)
    assert np.all(np.diff(errors) <= 1e-12 * problem.squared_norm)


def test_warm_start_is_kept_and_never_made_worse():
    planted = fully_random(0.1, random_state=2)
    args = planted.matrix, planted.columns, planted.rows
    cold = gsnmf.fit_weights(*args, tolerance=1e-6)
    warm = gsnmf.fit_weights(*args, tolerance=1e-6, start=(cold.column_weights, cold.row_weights))
    assert warm.n_iterations <= 1
    assert warm.relative_error <= cold.relative_error * (1 + 1e-12)


def test_scale_and_transposition_do_not_matter():
    planted = fully_random(0.1, random_state=3)
    plain = gsnmf.fit_weights(planted.matrix, planted.columns, planted.rows)
    for factor in (1e-160, 1e160):
        scaled = gsnmf.fit_weights(planted.matrix * factor, planted.columns, planted.rows)
        assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-6)
    transposed = gsnmf.fit_weights(planted.matrix.T, planted.rows, planted.columns)
    assert transposed.relative_error == pytest.approx(plain.relative_error, rel=1e-6)


def test_float32_stays_float32_and_is_close():
    planted = fully_random(0.1, random_state=4)
    double = gsnmf.fit_weights(planted.matrix, planted.columns, planted.rows)
    single = gsnmf.fit_weights(planted.matrix.astype(np.float32), planted.columns, planted.rows)
    assert single.column_weights.dtype == single.row_weights.dtype == np.float32
    assert single.relative_error == pytest.approx(double.relative_error, rel=1e-5)
    exact = fully_random(random_state=4)
    noiseless = gsnmf.fit_weights(exact.matrix.astype(np.float32), exact.columns, exact.rows)
    assert noiseless.relative_error < 1e-5


def test_sparse_equals_dense():
    rng = np.random.default_rng(5)
    matrix = rng.random((80, 60)) * (rng.random((80, 60)) < 0.2)
    dense, sparse = (gsnmf.fit_weights(M, [1, 2, 3], [4, 5], tolerance=1e-8) for M in (matrix, sp.csc_array(matrix)))
    assert sparse.relative_error == pytest.approx(dense.relative_error, rel=1e-10)


def test_too_few_iterations_warn_and_say_so():
    planted = fully_random(0.1, random_state=6)
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations .* above the tolerance 1\.0e-04"):
        weights = gsnmf.fit_weights(planted.matrix, planted.columns, planted.rows, max_iterations=1)
    assert not weights.converged
    assert weights.optimality > 1e-4


def test_kernel_equals_plain_numpy(monkeypatch):
    rng = np.random.default_rng(7)
    basis = rng.random((20, 6))
    gram, linear, X = basis.T @ basis, -rng.random((11, 6)), rng.random((11, 6))
    expected = X.copy()
    for i in range(6):
        expected[:, i] = np.maximum(0, expected[:, i] - (expected @ gram[:, i] + linear[:, i]) / gram[i, i])
    again = X.copy()
    coordinate_sweep(X, linear, gram)
    np.testing.assert_allclose(X, expected, rtol=1e-12)
    monkeypatch.setattr(_parallel, "PARALLEL_WORK", 0)
    monkeypatch.setenv("GSNMF_NUM_THREADS", "3")
    coordinate_sweep(again, linear, gram)
    np.testing.assert_array_equal(again, X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": [0, 0]}, "columns must be distinct"),
        ({"columns": [9]}, r"columns must be in \[0, 4\]; got 9 to 9"),
        ({"rows": [-1]}, r"rows must be in \[0, 5\]"),
        ({"rows": [0.5]}, "sequence of integers"),
        ({"tolerance": 0}, "tolerance must be a finite number above 0; got 0"),
        ({"max_iterations": 0}, "max_iterations must be an integer of at least 1; got 0"),
        ({"start": (np.ones((1, 5)), np.ones((6, 3)))}, r"row weights of start must have shape \(6, 1\); got \(6, 3\)"),
        ({"start": (-np.ones((1, 5)), np.ones((6, 1)))}, "must be nonnegative; got -1.0"),
    ],
)
def test_errors_say_what_is_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        gsnmf.fit_weights(np.ones((6, 5)), **({"columns": [0], "rows": [0]} | arguments))
