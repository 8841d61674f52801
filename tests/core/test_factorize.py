import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.datasets import fully_random, planted


@pytest.fixture
def noisy():
    return fully_random(0.1, random_state=0)


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix, np.ndarray.tolist])
def test_result_is_what_its_documentation_says(noisy, container):
    matrix = noisy.matrix
    result = gsnmf.factorize(container(matrix), 12, method="gspa")
    assert result.columns.size + result.rows.size == 12
    assert result.column_weights.shape == (result.columns.size, 100)
    assert result.row_weights.shape == (100, result.rows.size)
    np.testing.assert_allclose(result.W, np.hstack([matrix[:, result.columns], result.row_weights]))
    np.testing.assert_allclose(result.H, np.vstack([result.column_weights, matrix[result.rows]]))
    full = result.reconstruct()
    np.testing.assert_allclose(full, result.W @ result.H)
    np.testing.assert_allclose(result.reconstruct(rows=slice(3, 9), columns=[1, 2]), full[3:9][:, [1, 2]])
    assert result.relative_error == pytest.approx(np.linalg.norm(matrix - full) / np.linalg.norm(matrix), rel=1e-8)
    assert result.quality == 1 - result.relative_error
    assert result.stop_reason == "rank reached"
    assert result.converged
    assert result.optimality <= 1e-4


def test_input_is_never_changed(noisy):
    matrix = noisy.matrix.copy()
    matrix.flags.writeable = False
    sparse = sp.csr_array(noisy.matrix)
    for method, rank in [("gspa", 5), ("spa-rows", 5), ("spa-both", (2, 3))]:
        for scale in (False, True):
            gsnmf.factorize(matrix, rank, method=method, scale=scale)
            gsnmf.factorize(sparse, rank, method=method, scale=scale)
    np.testing.assert_array_equal(matrix, noisy.matrix)
    np.testing.assert_array_equal(sparse.toarray(), noisy.matrix)


def test_select_gives_the_indices_of_factorize(noisy):
    selection = gsnmf.select(noisy.matrix, 9, effort="fast")
    result = gsnmf.factorize(noisy.matrix, 9, effort="fast")
    assert result.columns.tolist() == selection.columns.tolist()
    assert result.rows.tolist() == selection.rows.tolist()


def test_scaling_changes_the_choice_but_not_what_is_explained():
    noisy = fully_random(0.01, random_state=1)
    rng = np.random.default_rng(0)
    distorted = noisy.matrix * rng.lognormal(0, 2, 100) * rng.lognormal(0, 2, (100, 1))
    plain = gsnmf.select(noisy.matrix, 40, method="gspa", scale=True)
    scaled = gsnmf.select(distorted, 40, method="gspa", scale=True)
    assert sorted(plain.columns) == sorted(scaled.columns)
    assert sorted(plain.rows) == sorted(scaled.rows)
    result = gsnmf.factorize(distorted, 40, method="gspa", scale=True)
    error = np.linalg.norm(distorted - result.reconstruct()) / np.linalg.norm(distorted)
    assert result.relative_error == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_float32_stays_float32(sparse):
    data = planted((60, 50), 4, 3, sparse=sparse, dtype=np.float32, random_state=0)
    result = gsnmf.factorize(data.matrix, 7, method="gspa")
    for part in (result.W, result.H, result.column_weights, result.row_weights, result.reconstruct()):
        assert part.dtype == np.float32


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2)])
def test_tiny_matrices(shape):
    matrix = np.random.default_rng(0).random(shape) + 0.1
    result = gsnmf.factorize(matrix, 1, method="gspa")
    assert result.columns.size + result.rows.size == 1
    if min(shape) == 1:
        assert result.relative_error < 1e-7


def test_results_can_be_pickled(noisy):
    result = gsnmf.factorize(noisy.matrix, 4, effort="fast")
    again = pickle.loads(pickle.dumps(result))
    assert again.quality == result.quality
    assert "matrix" not in repr(result)
