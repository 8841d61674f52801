import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from gsnmf.datasets import fully_random, gspa_failure_example
from gsnmf.matrix import scaling as scaling_module
from gsnmf.matrix.scaling import scale

# Entries within [0.1, 10] have cross ratios of at most 1e4: by Birkhoff's theorem a pass then contracts by at
# least (99 / 101)^2 = 0.96, so that 1000 passes reach 1e-12 and iterates are within 25 tolerances of the limit.
MATRICES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.floats(0.1, 10.0))
EXTREME_ENTRIES = st.one_of(st.just(0.0), st.integers(-320, 308).map(lambda power: 10.0**power))
SEEDS = st.integers(0, 2**32 - 1)


def with_zeros(matrix, seed):
    """The matrix spread over one with zero rows and columns, and where its rows and columns are."""
    rng = np.random.default_rng(seed)
    m, n = matrix.shape
    rows = np.sort(rng.choice(m + 2, m, replace=False))
    columns = np.sort(rng.choice(n + 3, n, replace=False))
    larger = np.zeros((m + 2, n + 3))
    larger[np.ix_(rows, columns)] = matrix
    return larger, rows, columns


@settings(deadline=None, max_examples=50)
@given(MATRICES)
def test_row_sums_are_n_and_column_sums_are_m(matrix):
    m, n = matrix.shape
    result = scale(matrix, tolerance=1e-12)
    assert result.converged
    assert result.stop_reason == "tolerance reached"
    assert result.residual <= 1e-12
    assert_allclose(result.matrix.sum(axis=1), n, rtol=1e-11)
    assert_allclose(result.matrix.sum(axis=0), m, rtol=1e-11)
    assert_allclose(result.row_factors[:, None] * matrix * result.column_factors, result.matrix, rtol=1e-13)


@settings(deadline=None, max_examples=50)
@given(MATRICES)
def test_transposing_commutes_with_scaling(matrix):
    result, transposed = scale(matrix, tolerance=1e-12), scale(matrix.T, tolerance=1e-12)
    assert_allclose(transposed.matrix.T, result.matrix, rtol=1e-9)
    assert_allclose(transposed.row_factors, result.column_factors, rtol=1e-9)
    assert_allclose(transposed.column_factors, result.row_factors, rtol=1e-9)


@settings(deadline=None, max_examples=25)
@given(MATRICES, SEEDS)
def test_permuting_and_prior_scaling_do_not_change_the_scaled_matrix(matrix, seed):
    rng = np.random.default_rng(seed)
    m, n = matrix.shape
    rows, columns = rng.permutation(m), rng.permutation(n)
    # any prior factors: the cross ratios, and with them the convergence, stay the same
    prior = 10.0 ** rng.uniform(-5, 5, (m, 1)) * matrix * 10.0 ** rng.uniform(-5, 5, n)
    expected = scale(matrix, tolerance=1e-12).matrix[np.ix_(rows, columns)]
    assert_allclose(scale(prior[np.ix_(rows, columns)], tolerance=1e-12).matrix, expected, rtol=1e-9)


@settings(deadline=None, max_examples=25)
@given(MATRICES, SEEDS)
def test_zero_rows_and_columns_stay_zero_and_do_not_matter(matrix, seed):
    larger, rows, columns = with_zeros(matrix, seed)
    small, result = scale(matrix), scale(larger)
    assert_allclose(result.matrix[np.ix_(rows, columns)], small.matrix, rtol=1e-13)
    assert_allclose(result.matrix.sum(), matrix.size, rtol=1e-9)
    assert_array_equal(np.delete(result.row_factors, rows), 1.0)
    assert_array_equal(np.delete(result.column_factors, columns), 1.0)
    assert_allclose(result.row_factors[rows], small.row_factors, rtol=1e-12)


@settings(deadline=None, max_examples=25)
@given(MATRICES, SEEDS, st.sampled_from([sp.csr_array, sp.csc_array]))
def test_sparse_is_dense(matrix, seed, kind):
    larger, _, _ = with_zeros(matrix, seed)
    dense, sparse = scale(larger), scale(kind(larger))
    assert isinstance(sparse.matrix, kind)
    assert_allclose(sparse.matrix.toarray(), dense.matrix, rtol=1e-12)
    assert_allclose(sparse.row_factors, dense.row_factors, rtol=1e-12)
    assert_allclose(sparse.column_factors, dense.column_factors, rtol=1e-12)


@pytest.mark.parametrize("kind", [sp.coo_matrix, sp.csr_matrix, sp.lil_array])
def test_other_sparse_formats_become_csr(kind):
    result = scale(kind(np.array([[1.0, 2.0], [3.0, 4.0]])))
    assert isinstance(result.matrix, sp.csr_array)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_float32_stays_and_is_close_to_float64(kind):
    matrix = fully_random(scale=False, random_state=1).matrix
    single, double = scale(kind(matrix.astype(np.float32))), scale(kind(matrix))
    assert single.matrix.dtype == np.float32
    assert single.converged
    assert abs(single.matrix - double.matrix).max() <= 1e-5
    assert single.row_factors.dtype == np.float64


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("unit", [1.0, 1e-200])
def test_input_is_unchanged_and_shares_no_memory(kind, unit):
    matrix = kind(np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 1.0]]) * unit)
    before = matrix.copy()
    result = scale(matrix)
    assert abs(matrix - before).max() == 0
    if sp.issparse(matrix):
        for name in ("data", "indices", "indptr"):
            assert not np.shares_memory(getattr(matrix, name), getattr(result.matrix, name))
    else:
        assert not np.shares_memory(matrix, result.matrix)


def test_example_1_scales_to_the_printed_matrix():
    printed = [
        [4.654, 0.028, 0.251, 0.034, 0.033],
        [0.212, 2.551, 0.034, 1.045, 1.157],
        [0.134, 2.421, 0.033, 1.157, 1.255],
        [0, 0, 4.654, 0.212, 0.134],
        [0, 0, 0.028, 2.551, 2.421],
    ]
    assert_array_equal(scale(gspa_failure_example().matrix).matrix.round(3), printed)


def test_zero_matrix_is_scaled_already():
    result = scale(np.zeros((3, 2)))
    assert result.converged
    assert_array_equal(result.matrix, 0.0)
    assert_array_equal(result.row_factors, 1.0)
    assert_array_equal(result.column_factors, 1.0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1)])
def test_vectors(shape):
    result = scale(np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape))
    assert result.converged
    assert_allclose(result.matrix, 1.0)


def assert_finite(result):
    """Everything finite, and the scaled matrix what the factors make of the original."""
    entries = result.matrix.data if sp.issparse(result.matrix) else result.matrix
    assert np.isfinite(entries).all()
    assert (entries >= 0).all()
    assert np.isfinite(result.residual)
    for factors in (result.row_factors, result.column_factors):
        assert np.isfinite(factors).all()
        assert (factors >= np.finfo(float).tiny).all()


def test_no_total_support_converges_like_one_over_the_number_of_passes():
    with pytest.warns(ConvergenceWarning, match=r"tolerance 1\.00e-10\. Raise max_iterations or tolerance"):
        result = scale([[1.0, 1.0], [0.0, 1.0]])
    assert not result.converged
    assert result.stop_reason == "max_iterations reached"
    assert result.n_iterations == 1000
    assert_allclose(result.residual, 0.5 / 1000, rtol=1e-2)
    assert_allclose(result.matrix, 2 * np.eye(2), atol=2e-3)
    assert_finite(result)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_no_support_stops_when_the_factors_diverge(kind):
    with pytest.warns(ConvergenceWarning, match="factors grow without bound"):
        result = scale(kind(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])), max_iterations=10**6)
    assert not result.converged
    assert result.stop_reason == "factors out of range"
    assert result.n_iterations < 1000
    assert result.residual > 0.1
    assert_finite(result)


def test_row_sums_are_right_up_to_the_residual_if_not_converged():
    with pytest.warns(ConvergenceWarning):
        result = scale([[1.0, 1.0], [0.0, 1.0]], max_iterations=7)
    assert result.n_iterations == 7
    assert_allclose(result.matrix.sum(axis=0), 2.0)
    assert_allclose(np.abs(result.matrix.sum(axis=1) / 2.0 - 1.0).max(), result.residual)


@pytest.mark.parametrize(
    "matrix",
    [
        np.full((3, 4), 1e-150),
        np.full((3, 4), 1e150),
        np.full((3, 4), 1e-310),
        np.full((3, 4), 1e308),
        np.array([[1e-150, 1e150], [1e150, 1e-150]]),
        np.array([[1e300, 1e300], [1e-300, 1e-300]]),
        np.array([[1e300, 2e-300], [1e300, 1e-300]]),
        np.diag([1e308, 1e-308]),
        np.outer([1e-150, 1.0, 1e150], [1e-140, 1e-3, 1e100, 1e149]),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_extreme_but_scalable_magnitudes_converge(matrix, kind):
    result = scale(kind(matrix))
    m, n = matrix.shape
    assert result.converged
    assert_finite(result)
    assert_allclose(result.matrix.sum(axis=0), m)
    assert_allclose(result.matrix.sum(axis=1), n)


def test_extreme_float32():
    matrix = np.array([[1e-38, 1e38], [3e38, 1e-40]], dtype=np.float32)
    result = scale(matrix)
    assert result.converged
    assert_allclose(result.matrix, [[0, 2], [2, 0]], atol=1e-6)


@settings(deadline=None, max_examples=150)
@given(
    arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=EXTREME_ENTRIES),
    st.sampled_from([np.asarray, sp.csr_array, sp.csc_array]),
)
def test_nothing_overflows_for_any_magnitudes_and_zeros(matrix, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = scale(kind(matrix), max_iterations=300)
    assert_finite(result)
    assert result.converged == (result.stop_reason == "tolerance reached")


def test_equilibration_that_would_leave_the_range_is_given_up(monkeypatch):
    monkeypatch.setattr(scaling_module, "_LARGEST_EQUILIBRATION", 600)
    matrix = np.array([[1e300, 1e300], [1e-300, 1e-300]])  # its factors must differ by 1e600
    with pytest.warns(ConvergenceWarning, match="factors grow without bound"):
        result = scale(matrix)
    assert result.n_iterations == 0
    assert_finite(result)
    assert result.matrix.max() <= 2.0


def test_unscale_weights_inverts_property_6():
    truth = fully_random(shape=(30, 25), n_columns=4, n_rows=3, scale=False, random_state=3)
    result = scale(truth.matrix)
    D_r, D_c = np.diag(result.row_factors), np.diag(result.column_factors)
    columns, rows = truth.columns, truth.rows
    scaled_P1 = np.linalg.inv(D_c[np.ix_(columns, columns)]) @ truth.column_weights @ D_c
    scaled_P2 = D_r @ truth.row_weights @ np.linalg.inv(D_r[np.ix_(rows, rows)])
    S = result.matrix
    assert_allclose(S[:, columns] @ scaled_P1 + scaled_P2 @ S[rows], S, atol=1e-12)
    P1, P2 = result.unscale_weights(columns, rows, scaled_P1, scaled_P2)
    assert_allclose(P1, truth.column_weights, rtol=1e-12, atol=1e-14)
    assert_allclose(P2, truth.row_weights, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("unit", [1.0, 1e-200])
def test_weights_fitted_on_the_scaled_matrix_fit_the_original(unit):
    truth = fully_random(shape=(20, 15), n_columns=4, n_rows=0, scale=False, random_state=4)
    row_units = np.logspace(-100, 100, 20) if unit != 1.0 else np.ones(20)
    matrix = truth.matrix * row_units[:, None] * unit
    result = scale(matrix)
    fitted = np.array([nnls(result.matrix[:, truth.columns], column)[0] for column in result.matrix.T]).T
    P1, P2 = result.unscale_weights(truth.columns, [], fitted, np.empty((20, 0)))
    assert P2.shape == (20, 0)
    assert (P1 >= 0).all()
    # relative to each row's own size: rows differ by 200 orders of magnitude
    error = np.abs(matrix - matrix[:, truth.columns] @ P1).max(axis=1)
    assert (error <= 1e-9 * matrix.max(axis=1)).all()


def test_unscale_weights_keeps_float32_and_checks_shapes():
    result = scale(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 4.0]]))
    P1, P2 = result.unscale_weights([0], [1], np.ones((1, 3), np.float32), np.ones((2, 1), np.float32))
    assert P1.dtype == P2.dtype == np.float32
    with pytest.raises(ValueError, match=r"column_weights must have shape \(1, 3\); got \(3, 1\)"):
        result.unscale_weights([0], [], np.ones((3, 1)), np.empty((2, 0)))
    with pytest.raises(ValueError, match=r"rows must be in \[0, 1\]"):
        result.unscale_weights([], [2], np.empty((0, 3)), np.ones((2, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tolerance": 0.0}, "tolerance must be"), ({"max_iterations": 0}, "max_iterations must be")],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        scale([[1.0]], **options)


def test_negative_entries_are_refused():
    with pytest.raises(ValueError, match="nonnegative"):
        scale([[1.0, -1.0]])
