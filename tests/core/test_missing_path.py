"""Factorization of matrices with holes, from the data to the prediction of what is missing."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

import gsnmf
from gsnmf.datasets import planted


@pytest.fixture(scope="module")
def data():
    return planted((70, 60), 3, 2, noise_level=0.02, random_state=1)


@pytest.fixture(scope="module")
def holes(data):
    return np.random.default_rng(0).random(data.matrix.shape) < 0.5


@pytest.fixture(scope="module")
def result(data, holes):
    return gsnmf.factorize(np.where(holes, np.nan, data.matrix), 5, effort="fast", missing_values=np.nan)


def found(result):
    return sorted(result.columns), sorted(result.rows)


def test_finds_what_was_planted_and_predicts_the_holes(data, holes, result):
    assert found(result) == (list(data.columns), list(data.rows))
    assert result.converged
    assert result.observed_share == 1.0 - holes.mean()
    hidden = data.matrix[holes]
    assert np.linalg.norm(result.reconstruct()[holes] - hidden) < 0.03 * np.linalg.norm(hidden)
    assert "% observed" in repr(result)


def test_error_is_that_of_observed_entries(data, holes, result):
    seen = data.matrix[~holes]
    error = np.linalg.norm(result.reconstruct()[~holes] - seen) / np.linalg.norm(seen)
    assert result.relative_error == pytest.approx(error)
    assert_allclose(result.W @ result.H, result.reconstruct())
    assert len(result.factors(3)) == 5
    assert result.shares.sum() == pytest.approx(1.0)


def test_unstored_and_zero_weights_mean_the_same(data, holes, result):
    rows, columns = np.nonzero(~holes)
    sparse = sp.coo_array((data.matrix[rows, columns], (rows, columns)), shape=holes.shape)
    unstored = gsnmf.factorize(sparse, 5, missing_values="unstored", effort="fast")
    weighted = gsnmf.factorize(data.matrix, 5, missing_values=None, entry_weights=2.0 * ~holes, effort="fast")
    for other in (unstored, weighted):
        assert found(other) == found(result)
        assert other.relative_error == pytest.approx(result.relative_error, rel=1e-4)
        assert other.observed_share == result.observed_share


@pytest.mark.parametrize("method", ["gspa", "spa-columns", "snpa-rows"])
def test_other_methods(data, holes, method):
    result = gsnmf.factorize(np.where(holes, np.nan, data.matrix), 5, method=method, missing_values=np.nan)
    assert result.method == method
    assert result.columns.size + result.rows.size == 5
    assert result.converged


@pytest.mark.parametrize("options", [{}, {"missing_values": None}, {"entry_weights": np.full((70, 60), 3.0)}])
def test_without_holes_the_answer_is_the_same_bit_for_bit(data, options):
    plain = gsnmf.factorize(data.matrix, (3, 2), effort="fast")
    ours = gsnmf.factorize(data.matrix, (3, 2), effort="fast", **options)
    assert isinstance(ours, gsnmf.Factorization)
    assert ours.observed_share == 1.0
    assert ours.selection == plain.selection
    assert ours.weights == plain.weights


def test_sparse_data_without_holes_is_the_same_too(data):
    sparse = sp.csr_array(np.where(data.matrix > np.median(data.matrix), data.matrix, 0.0))
    ours, plain = gsnmf.factorize(sparse, 3, method="gspa"), gsnmf.factorize(sparse, 3, method="gspa")
    assert ours.weights == plain.weights


def test_transposition_turns_columns_to_rows(data, holes, result):
    turned = gsnmf.factorize(np.where(holes, np.nan, data.matrix).T, 5, effort="fast", missing_values=np.nan)
    assert found(turned) == found(result)[::-1]
    # the completion starts from the other side and is settled to five digits of its error, the holes to fewer
    assert turned.relative_error == pytest.approx(result.relative_error, rel=3e-3)


def test_scale_changes_nothing_but_the_unit(data, holes, result):
    scaled = gsnmf.factorize(np.where(holes, np.nan, data.matrix) * 1e6, 5, effort="fast", missing_values=np.nan)
    assert found(scaled) == found(result)
    assert scaled.relative_error == pytest.approx(result.relative_error, rel=1e-4)  # the tolerance of the weights
    assert_allclose(scaled.reconstruct(), 1e6 * result.reconstruct(), rtol=1e-2, atol=1e4)


@pytest.mark.long  # the kernels of holes in single precision are compiled for it alone
def test_single_precision(data, holes, result):
    matrix = np.where(holes, np.nan, data.matrix).astype(np.float32)
    single = gsnmf.factorize(matrix, 5, effort="fast", missing_values=np.nan)
    assert found(single) == found(result)
    assert single.column_weights.dtype == np.float32
    assert single.relative_error == pytest.approx(result.relative_error, rel=1e-4)


def test_rows_and_columns_without_an_entry_are_told_of(data, holes):
    matrix = np.where(holes, np.nan, data.matrix)
    empty = next(index for index in range(70) if index not in data.rows)
    matrix[empty] = np.nan
    with pytest.warns(UserWarning, match="No entry is observed in 1 row of the matrix") as told:
        result = gsnmf.factorize(matrix, 5, effort="fast", missing_values=np.nan)
    assert told[0].filename == __file__
    assert found(result) == (list(data.columns), list(data.rows))
    assert_array_equal(result.reconstruct()[empty], 0.0)


def test_weights_say_whom_to_trust(data):
    rng = np.random.default_rng(3)
    wrong = rng.random(data.matrix.shape) < 0.2
    matrix = np.where(wrong, rng.random(data.matrix.shape) * data.matrix.max(), data.matrix)
    result = gsnmf.factorize(matrix, 5, missing_values=None, entry_weights=np.where(wrong, 1e-6, 1.0), effort="fast")
    assert found(result) == (list(data.columns), list(data.rows))
    assert result.observed_share == 1.0
    residual = result.reconstruct() - data.matrix
    assert np.linalg.norm(residual) < 0.03 * np.linalg.norm(data.matrix)


def test_input_is_not_changed(data, holes):
    matrix = np.where(holes, np.nan, data.matrix)
    before = matrix.copy()
    gsnmf.factorize(matrix, 2, method="gspa", missing_values=np.nan)
    assert_array_equal(matrix, before)


def test_a_matrix_of_observed_zeros():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = gsnmf.factorize([[0.0, np.nan], [0.0, 0.0]], 1, method="spa-columns", missing_values=np.nan)
    assert result.relative_error == 0.0
    assert_array_equal(result.reconstruct(), 0.0)


def test_wrong_ranks_are_refused(data, holes):
    with pytest.raises(ValueError, match=r"rank must be in \[1, 70\]"):
        gsnmf.factorize(np.where(holes, np.nan, data.matrix), 71, missing_values=np.nan)


def test_holes_of_what_is_chosen_stay_near_the_completion():
    """On data that no few columns and rows explain, hidden entries are predicted about as well as by the completion."""
    digits = load_digits().data[:300]
    hidden = np.random.default_rng(0).random(digits.shape) < 0.5
    result = gsnmf.factorize(np.where(hidden, np.nan, digits), 12, effort="fast", missing_values=np.nan)
    completion = np.maximum(np.dot(result.filling.left, result.filling.right.T), 0.0)
    errors = [np.linalg.norm((guess - digits)[hidden]) for guess in (result.reconstruct(), completion)]
    assert errors[0] < 1.2 * errors[1]
