"""A matrix that is sparse plus low rank, and holes filled by one of low rank."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import gsnmf
from gsnmf.matrix import wrap
from gsnmf.matrix.completion import complete, filled
from gsnmf.matrix.input import observe
from gsnmf.matrix.low_rank_sum import LowRankSum


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    sparse = sp.random_array((30, 24), density=0.2, rng=rng, format="csr")
    left, right = rng.random((30, 2)), rng.random((24, 2))
    return LowRankSum(sparse, left, right), sparse.toarray() + left @ right.T


@pytest.mark.parametrize("side", ["columns", "rows"])
def test_products_are_those_of_the_dense_matrix(pair, side):
    held, dense = pair[0].along(side), pair[1] if side == "columns" else pair[1].T
    expected = wrap(dense)
    chosen, block = np.array([1, 5, 7]), np.random.default_rng(1).random((dense.shape[1], 3))
    assert_allclose(held.dot(block), dense @ block)
    assert_allclose(held.dot(block[:, 0]), dense @ block[:, 0])
    assert_allclose(held.columns(chosen), dense[:, chosen])
    assert_allclose(held.gram_rows(chosen), expected.gram_rows(chosen))
    assert_allclose(held.gram(chosen), expected.gram(chosen))
    assert_allclose(held.squared_column_norms, expected.squared_column_norms)
    assert_allclose(held.column_sums, expected.column_sums)
    assert_allclose(held.sketch(), expected.sketch())
    assert held.dot(block.astype(np.float32)).dtype == np.float32


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["auto", "gspa", "spa-columns", "snpa-rows", "pursuit"])
def test_methods_take_it(pair, method):
    ours, expected = (gsnmf.factorize(matrix, 5, method=method, effort="fast") for matrix in pair)
    assert sorted(ours.columns) == sorted(expected.columns)
    assert sorted(ours.rows) == sorted(expected.rows)
    assert ours.relative_error == pytest.approx(expected.relative_error, rel=1e-6)


def test_what_people_see_is_nonnegative():
    held = LowRankSum(sp.csr_array((2, 2)), np.array([[1.0], [-0.1]]), np.array([[1.0], [1.0]]))
    assert_allclose(held.raw_columns(np.array([0])).ravel(), [1.0, 0.0])
    assert held.columns(np.array([0]))[1, 0] < 0


def test_a_zero_column_has_norm_zero():
    rng = np.random.default_rng(0)
    left, right = rng.random((50, 3)), rng.random((20, 3))
    sparse = sp.csr_array(np.where(np.arange(20) == 4, -(left @ right.T), 0.0))
    assert LowRankSum(sparse, left, right).squared_column_norms[4] == 0.0


@pytest.fixture(scope="module")
def low_rank():
    rng = np.random.default_rng(3)
    matrix = rng.random((80, 3)) @ rng.random((3, 60))
    return matrix, rng.random(matrix.shape) < 0.6


@pytest.mark.parametrize("weighted", [False, True])
def test_completion_finds_what_is_missing(low_rank, weighted):
    matrix, missing = low_rank
    weights = np.random.default_rng(0).uniform(0.5, 2.0, matrix.shape) if weighted else None
    seen = observe(np.where(missing, np.nan, matrix), missing_values=np.nan, entry_weights=weights)
    fitted = complete(seen, 3)
    assert fitted.converged
    error = np.linalg.norm((fitted.left @ fitted.right.T - matrix)[missing]) / np.linalg.norm(matrix[missing])
    assert error < 0.03
    assert_allclose(fitted.left.T @ fitted.left, fitted.right.T @ fitted.right, atol=1e-8 * matrix.max() * 80)


def test_completion_reaches_what_truncated_decompositions_reach():
    rng = np.random.default_rng(5)
    matrix = rng.random((60, 4)) @ rng.random((4, 50)) * (1 + 0.05 * rng.standard_normal((60, 50)))
    missing = rng.random(matrix.shape) < 0.4
    steps = np.where(missing, matrix[~missing].mean(), matrix)
    for rank in (1, 2, 3, 4):
        for _ in range(200):
            U, values, Vt = np.linalg.svd(steps, full_matrices=False)
            steps = np.where(missing, (U[:, :rank] * values[:rank]) @ Vt[:rank], matrix)
    seen = observe(np.where(missing, np.nan, matrix), missing_values=np.nan)
    ours = filled(seen, complete(seen, 4)).data
    errors = [np.linalg.norm((fill - matrix)[missing]) for fill in (ours, steps)]
    assert errors[0] < 1.03 * errors[1]


def test_dense_and_sparse_data_are_filled_alike(low_rank):
    matrix, missing = low_rank
    rows, columns = np.nonzero(~missing)
    sparse = sp.coo_array((matrix[rows, columns], (rows, columns)), shape=matrix.shape)
    seen = observe(np.where(missing, np.nan, matrix), missing_values=np.nan), observe(sparse, missing_values="unstored")
    dense, held = (filled(part, complete(part, 3)) for part in seen)
    assert isinstance(held, LowRankSum)
    assert_allclose(held.raw_columns(np.arange(60)), dense.data, atol=1e-10)
    assert_allclose(dense.data[~missing], matrix[~missing])
    assert dense.data.min() >= 0


def test_transposition_changes_little(low_rank):
    matrix, missing = low_rank
    seen = observe(np.where(missing, np.nan, matrix), missing_values=np.nan)
    one, other = complete(seen, 3), complete(seen.T, 3)
    assert one.relative_error == pytest.approx(other.relative_error, abs=2e-3)


def test_rank_above_what_there_is():
    seen = observe([[1.0, 2.0], [2.0, np.nan]], missing_values=np.nan)
    fitted = complete(seen, 9)
    assert fitted.left.shape[1] <= 2
    nothing = complete(observe([[0.0, np.nan]], missing_values=np.nan), 2)
    assert nothing.left.shape == (1, 0)
    assert nothing.relative_error == 0.0


def test_low_weights_count_little(low_rank):
    matrix, missing = low_rank
    wrong = np.where(missing, 5.0, matrix)
    fits = [
        complete(observe(wrong, entry_weights=np.where(missing, low, 1.0)), 3).relative_error for low in (1e-9, 1e-3)
    ]
    assert fits[0] < 0.02 < fits[1]
