import numpy as np
import pytest
import scipy.sparse as sp

from gsnmf.matrix import wrap

RNG = np.random.default_rng(0)
DENSE = RNG.random((23, 17)) * (RNG.random((23, 17)) < 0.6)
CONTAINERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda M: np.repeat(np.repeat(M, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda M: np.ascontiguousarray(M[::-1, ::-1])[::-1, ::-1],
    "part": lambda M: np.hstack([M, M])[:, : M.shape[1]],
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


@pytest.fixture(params=CONTAINERS)
def container(request):
    return CONTAINERS[request.param]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_products_agree_with_numpy(container, transposed, dtype):
    matrix = wrap(container(DENSE.astype(dtype)))
    expected = DENSE.astype(dtype)
    if transposed:
        matrix, expected = matrix.T, expected.T
    m, n = expected.shape
    tolerance = {"rtol": 1e-12 if dtype == np.float64 else 1e-5, "atol": 1e-12 if dtype == np.float64 else 1e-5}
    vector, block = RNG.random(n).astype(dtype), RNG.random((n, 4)).astype(dtype)
    W, H = RNG.random((m, 3)).astype(dtype), RNG.random((3, n)).astype(dtype)
    assert matrix.shape == (m, n)
    assert matrix.T.T is matrix
    for operand in (vector, block):
        assert matrix.dot(operand).dtype == dtype
        np.testing.assert_allclose(matrix.dot(operand), expected @ operand, **tolerance)
        np.testing.assert_allclose(matrix.dot(operand.astype(np.float64)), expected @ operand, **tolerance)
    few = np.zeros((n, 4))
    few[2, 1], few[5, 3] = 2.0, 3.0
    np.testing.assert_allclose(matrix.dot(few), expected @ few, **tolerance)
    np.testing.assert_array_equal(matrix.columns(np.array([3, 1])), expected[:, [3, 1]])
    np.testing.assert_array_equal(matrix.raw_columns(np.array([2])), expected[:, [2]])
    np.testing.assert_allclose(matrix.squared_column_norms, (expected**2).sum(axis=0), **tolerance)
    np.testing.assert_allclose(matrix.column_sums, expected.sum(axis=0), **tolerance)
    assert matrix.squared_norm == pytest.approx((expected**2).sum(), rel=1e-5)
    assert matrix.inner(W, H) == pytest.approx((expected * (W @ H)).sum(), rel=1e-5)
    assert matrix.squared_residual(W, H) == pytest.approx(((expected - W @ H) ** 2).sum(), rel=1e-5)


@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_magnitudes_have_finite_squares(container, factor):
    extreme, plain = wrap(container(DENSE * factor)), wrap(container(DENSE))
    ratio = extreme.squared_norm / plain.squared_norm
    assert 1e-20 < ratio < 1e20
    np.testing.assert_allclose(extreme.squared_column_norms, ratio * plain.squared_column_norms, rtol=1e-12)


def test_ordinary_matrices_are_not_copied():
    for matrix in (DENSE, np.asfortranarray(DENSE), DENSE[:, :5], np.ones((1, 4)), np.ones((4, 1))):
        assert np.shares_memory(wrap(matrix)._held, matrix)


def test_empty_sparse_matrix():
    matrix = wrap(sp.csr_array((4, 3)))
    assert matrix.squared_norm == 0.0
    assert matrix.dot(np.ones(3)).tolist() == [0, 0, 0, 0]
