import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import OptimizeResult, linprog
from sklearn.exceptions import ConvergenceWarning

from gsnmf.convex import exact as exact_module
from gsnmf.convex import integer_program
from gsnmf.convex.exact import MAX_VARIABLES, is_separable, solve_exact
from gsnmf.datasets import gspa_failure_example, non_unique_example, three_three_separable, two_one_separable

SEEDS = st.integers(0, 2**32 - 1)


def decomposes(matrix, columns, rows):
    """Definition 1 for given indices, by linear programming: whether there are such weights at all."""
    columns, rows = list(columns), list(rows)
    if matrix[np.ix_(rows, columns)].any():
        return False
    other_rows = np.setdiff1d(np.arange(matrix.shape[0]), rows)
    other_columns = np.setdiff1d(np.arange(matrix.shape[1]), columns)
    target = matrix[np.ix_(other_rows, other_columns)]
    by_columns = np.kron(matrix[np.ix_(other_rows, columns)], np.eye(other_columns.size))
    by_rows = np.kron(np.eye(other_rows.size), matrix[np.ix_(rows, other_columns)].T)
    system = np.hstack([by_columns, by_rows])
    if not system.size:
        return not target.any()
    return linprog(np.zeros(system.shape[1]), A_eq=system, b_eq=target.ravel()).status == 0


def all_decompositions(matrix, size):
    """Every choice of that many columns and rows, by trying them all."""
    m, n = matrix.shape
    return [
        (columns, rows)
        for r1 in range(max(0, size - m), min(size, n) + 1)
        for columns in itertools.combinations(range(n), r1)
        for rows in itertools.combinations(range(m), size - r1)
        if decomposes(matrix, columns, rows)
    ]


def small_matrix(seed, sides=(3, 6)):
    """A random matrix with many zeros, most often generalized separable, sometimes with zero rows and columns."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(*sides, 2)
    r1, r2 = rng.integers(1, 3, 2)

    def factor(*shape):
        return rng.integers(1, 4, shape) * (rng.random(shape) < 0.6)

    W1, H1, W2, H2 = factor(m - r2, r1), factor(r1, n - r1), factor(m - r2, r2), factor(r2, n - r1)
    matrix = np.block([[W1, W1 @ H1 + W2 @ H2], [np.zeros((r2, r1)), H2]]).astype(float)
    if rng.random() < 0.3:
        matrix *= rng.uniform(0.5, 1.5, matrix.shape)
    return rng.permutation(rng.permutation(matrix, axis=0), axis=1)


def planted(rng, m, n, r1, r2):
    """A matrix with one block of zeros and no other entry that is small."""
    W1, H1 = rng.uniform(0.5, 1.5, (m - r2, r1)), rng.uniform(0.5, 1.5, (r1, n - r1))
    W2, H2 = rng.uniform(0.5, 1.5, (m - r2, r2)), rng.uniform(0.5, 1.5, (r2, n - r1))
    return np.block([[W1, W1 @ H1 + W2 @ H2], [np.zeros((r2, r1)), H2]])


def check_decomposition(matrix, solution):
    """Definition 1, equation by equation."""
    columns, rows = solution.columns, solution.rows
    P1, P2 = solution.column_weights, solution.row_weights
    assert P1.shape == (columns.size, matrix.shape[1])
    assert P2.shape == (matrix.shape[0], rows.size)
    assert min(P1.min(initial=0), P2.min(initial=0)) >= 0
    assert_array_equal(P1[:, columns], np.eye(columns.size))
    assert_array_equal(P2[rows], np.eye(rows.size))
    residual = matrix - matrix[:, columns] @ P1 - P2 @ matrix[rows]
    assert np.linalg.norm(residual) <= 1e-12 * np.linalg.norm(matrix)
    assert solution.relative_error <= 1e-12


@settings(deadline=None, max_examples=40)
@given(SEEDS)
def test_smallest_is_what_trying_all_finds(seed):
    matrix = small_matrix(seed)
    solution = solve_exact(matrix)
    assert solution.found
    assert solution.proved
    assert solution.stop_reason == "solved"
    assert solution.lower_bound == solution.n_selected
    check_decomposition(matrix, solution)
    smaller = range(1 if matrix.any() else 0, solution.n_selected)
    assert not any(all_decompositions(matrix, size) for size in smaller)


@settings(deadline=None, max_examples=6)
@given(SEEDS)
def test_pairs_are_what_trying_all_finds(seed):
    assert_pairs_are_what_trying_all_finds(seed)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(SEEDS)
def test_pairs_of_many_matrices_are_what_trying_all_finds(seed):
    assert_pairs_are_what_trying_all_finds(seed)


def assert_pairs_are_what_trying_all_finds(seed):
    matrix = small_matrix(seed, sides=(3, 5))
    m, n = matrix.shape
    for size in range(1, m + n + 1):
        sizes = {(len(columns), len(rows)) for columns, rows in all_decompositions(matrix, size)}
        for r1 in range(max(0, size - m), min(size, n) + 1):
            solution = solve_exact(matrix, pair=(r1, size - r1))
            assert solution.proved
            assert solution.found == ((r1, size - r1) in sizes)
            assert is_separable(matrix, r1, size - r1) == solution.found
            if solution.found:
                assert (solution.columns.size, solution.rows.size) == (r1, size - r1)
                check_decomposition(matrix, solution)


def test_smallest_non_unique_matrix():
    matrix = non_unique_example().matrix
    assert solve_exact(matrix).n_selected == 3
    for pair in ((2, 1), (1, 2), (3, 0), (0, 3)):
        assert is_separable(matrix, *pair)
    for pair in ((2, 0), (1, 1), (0, 2)):
        assert not is_separable(matrix, *pair)


@pytest.mark.parametrize("n", range(5, 11))
def test_lemma_1(n):
    truth = two_one_separable(n)
    solution = solve_exact(truth.matrix)
    assert (solution.n_selected, solution.lower_bound, solution.proved) == (3, 3, True)
    check_decomposition(truth.matrix, solve_exact(truth.matrix, pair=(2, 1)))
    assert not is_separable(truth.matrix, n - 1, 0)


@pytest.mark.parametrize(("m", "n"), [(5, 5), (6, 9)])
def test_property_5(m, n):
    truth = three_three_separable(m, n)
    solution = solve_exact(truth.matrix)
    assert (solution.n_selected, solution.lower_bound, solution.proved) == (6, 6, True)
    check_decomposition(truth.matrix, solve_exact(truth.matrix, pair=(3, 3)))
    assert not is_separable(truth.matrix, n + 2, 0)
    assert not is_separable(truth.matrix, 0, m + 2)


def test_example_1_has_one_smallest_decomposition():
    """It is (3, 1)-separable to 0.024 %: tolerances must tell that from zero."""
    truth = gspa_failure_example()
    solution = solve_exact(truth.matrix)
    assert (solution.n_selected, solution.lower_bound, solution.proved) == (4, 4, True)
    assert_array_equal(solution.columns, truth.columns)
    assert_array_equal(solution.rows, truth.rows)
    check_decomposition(truth.matrix, solution)
    assert all_decompositions(truth.matrix, 4) == [((0, 1), (3, 4))]
    for pair in ((4, 0), (0, 4), (1, 3), (3, 1)):
        assert not is_separable(truth.matrix, *pair)


def test_tolerance_decides_what_is_zero():
    """Noise hides the decomposition, and a tolerance above it finds it again.

    Scaling makes at most 2e-4 of the noise; from a tolerance of about 1e-2 on, other decompositions are as good.
    """
    rng = np.random.default_rng(0)
    matrix = planted(rng, 8, 9, 2, 2)
    noisy = matrix + 1e-5 * rng.random(matrix.shape)
    assert solve_exact(noisy).n_selected > 4
    solution = solve_exact(noisy, tolerance=1e-3)
    assert_array_equal(solution.columns, [0, 1])
    assert_array_equal(solution.rows, [6, 7])
    assert 0 < solution.relative_error < 1e-4


def test_a_planted_decomposition_is_found_in_a_larger_matrix():
    matrix = planted(np.random.default_rng(1), 30, 25, 3, 4)
    solution = solve_exact(matrix)
    assert_array_equal(solution.columns, np.arange(3))
    assert_array_equal(solution.rows, np.arange(26, 30))
    assert solution.proved
    check_decomposition(matrix, solution)


@settings(deadline=None, max_examples=20)
@given(SEEDS)
def test_transposition_scaling_and_permutation(seed):
    rng = np.random.default_rng(seed)
    matrix = small_matrix(seed)
    m, n = matrix.shape
    size = solve_exact(matrix).n_selected
    rows, columns = rng.permutation(m), rng.permutation(n)
    factors = 10.0 ** rng.uniform(-3, 3, m)[:, None], 10.0 ** rng.uniform(-3, 3, n)
    for other in (matrix.T, matrix[rows][:, columns], factors[0] * matrix * factors[1]):
        solution = solve_exact(other)
        assert (solution.n_selected, solution.proved) == (size, True)
        assert solution.relative_error <= 1e-12


def test_entries_of_any_magnitude():
    matrix = non_unique_example().matrix
    for factor in (1e-200, 1e200):
        solution = solve_exact(factor * matrix, pair=(2, 1))
        assert solution.found
        assert solution.relative_error <= 1e-12


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csc_matrix, lambda matrix: matrix.astype(np.float32)])
def test_sparse_and_single_precision(convert):
    truth = gspa_failure_example()
    solution = solve_exact(convert(truth.matrix))
    assert_array_equal(solution.columns, truth.columns)
    assert_array_equal(solution.rows, truth.rows)


def test_input_is_kept():
    matrix = gspa_failure_example().matrix
    before = matrix.copy()
    solve_exact(matrix)
    assert_array_equal(matrix, before)


def test_zero_matrix_needs_nothing():
    solution = solve_exact(np.zeros((3, 4)))
    assert (solution.n_selected, solution.lower_bound, solution.proved) == (0, 0, True)
    assert solution.relative_error == 0
    solution = solve_exact(np.zeros((3, 4)), pair=(2, 1))
    assert solution.found
    assert (solution.columns.size, solution.rows.size) == (2, 1)


def test_zero_rows_and_columns_fill_up_a_pair():
    matrix = np.zeros((5, 5))
    matrix[np.ix_([0, 2, 3], [1, 2, 4])] = non_unique_example().matrix
    solution = solve_exact(matrix, pair=(4, 2))
    assert solution.found
    assert (solution.columns.size, solution.rows.size) == (4, 2)
    check_decomposition(matrix, solution)
    assert solve_exact(matrix).n_selected == 3


def test_repeated_columns_are_chosen_once():
    matrix = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 0.0, 3.0, 1.0]])
    solution = solve_exact(matrix)
    assert_array_equal(solution.columns, [0, 2])
    assert_allclose(solution.column_weights, [[1, 2, 0, 1], [0, 0, 1, 1 / 3]])


def test_max_rank():
    matrix = three_three_separable(5, 5).matrix
    assert solve_exact(matrix, max_rank=6).n_selected == 6
    solution = solve_exact(matrix, max_rank=5)
    assert not solution.found
    assert solution.proved
    assert solution.stop_reason == "infeasible"
    assert solution.lower_bound == 6
    assert solution.relative_error == 1
    assert solution.column_weights.shape == (0, 8)
    assert solution.row_weights.shape == (8, 0)


def hard_matrix():
    """Rank 4, (4, 1)-separable and no less, and by columns or rows alone more: the program has to be solved."""
    rng = np.random.default_rng(24)
    left = rng.random((12, 4)) * (rng.random((12, 4)) < 0.4)
    matrix = left @ (rng.random((4, 12)) * (rng.random((4, 12)) < 0.4))
    return matrix[matrix.any(axis=1)][:, matrix.any(axis=0)]


def test_program_is_solved_where_bounds_do_not_meet():
    matrix = hard_matrix()
    assert np.linalg.matrix_rank(matrix) == 4
    solution = solve_exact(matrix)
    assert (solution.columns.size, solution.rows.size) == (4, 1)
    assert (solution.lower_bound, solution.proved) == (5, True)
    check_decomposition(matrix, solution)
    for pair in ((4, 0), (3, 1), (2, 2), (1, 3), (0, 4), (5, 0), (0, 5)):
        assert not is_separable(matrix, *pair)


def test_time_limit():
    matrix = hard_matrix()
    with pytest.warns(ConvergenceWarning, match="Raise time_limit"):
        solution = solve_exact(matrix, time_limit=1e-9)
    assert solution.stop_reason == "time_limit reached"
    assert solution.found
    assert not solution.proved
    assert 1 <= solution.lower_bound < solution.n_selected
    assert solution.relative_error <= 1e-12
    with pytest.raises(TimeoutError, match="raise time_limit"):
        is_separable(matrix, 4, 1, time_limit=1e-9)
    assert solve_exact(matrix).proved


def test_solver_stopped_with_a_bound(monkeypatch):
    """What HiGHS has proved when its time is up is kept."""
    matrix = hard_matrix()
    rank = np.linalg.matrix_rank(matrix)
    stopped = OptimizeResult(status=1, x=None, mip_dual_bound=rank + 0.5, message="time limit")
    monkeypatch.setattr(integer_program, "milp", lambda *_, **__: stopped)
    with pytest.warns(ConvergenceWarning):
        solution = solve_exact(matrix)
    assert solution.lower_bound == rank + 1
    monkeypatch.setattr(integer_program, "milp", lambda *_, **__: OptimizeResult(status=4, message="no basis"))
    with pytest.raises(RuntimeError, match="no basis"):
        solve_exact(matrix)


def test_choices_that_do_not_fit_are_excluded(monkeypatch):
    """The program is looser than the tolerance: what it proposes is checked, and what does not fit is left out."""
    matrix = hard_matrix()
    expected = solve_exact(matrix)
    fit, refused = exact_module.fit_chosen, []

    def refuse_one(equations, chosen):
        result = fit(equations, chosen)
        if result.largest_error < 1e-6 and not refused:
            refused.append(chosen)
            return result._replace(largest_error=1.0)
        return result

    monkeypatch.setattr(exact_module, "fit_chosen", refuse_one)
    solution = solve_exact(matrix)
    assert_array_equal(refused[0][0], expected.columns)
    assert_array_equal(refused[0][1], expected.rows)
    assert solution.proved
    assert solution.n_selected >= expected.n_selected
    assert (tuple(solution.columns), tuple(solution.rows)) != (tuple(expected.columns), tuple(expected.rows))


def test_too_large():
    side = int(np.sqrt(MAX_VARIABLES / 2)) + 1
    with pytest.raises(ValueError, match='method="convex"'):
        solve_exact(sp.eye_array(side))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair": (1, 1), "max_rank": 2}, "not both"),
        ({"pair": (4, 0)}, "rank must be a pair"),
        ({"pair": (0, 0)}, "rank must be a pair"),
        ({"max_rank": 0}, "max_rank must be"),
        ({"time_limit": 0}, "time_limit must be"),
        ({"tolerance": -1}, "tolerance must be"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        solve_exact(np.eye(3), **options)


def test_no_warning_when_settled():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve_exact(non_unique_example().matrix)
    assert found.proved
