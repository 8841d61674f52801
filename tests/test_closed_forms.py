import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from gsnmf.datasets import gspa_failure_example, non_unique_example, three_three_separable, two_one_separable


@pytest.mark.parametrize("n", [4, 5, 12])
def test_lemma_1(n):
    truth = two_one_separable(n)
    M = truth.matrix
    assert M.shape == (3, n)
    assert_allclose(M.sum(axis=0), 1.0)
    x = M[0, 4:]
    assert ((x > 0) & (x < 0.5)).all()
    assert_allclose(np.diff(x), np.full(max(0, n - 5), 0.5 / (n - 3)))
    assert_array_equal(M[:, :2] @ M[:2] + np.outer([0, 0, 1], M[2]), M)
    assert_array_equal(truth.column_weights, M[:2])
    assert_array_equal(truth.row_weights, [[0], [0], [1]])


def test_lemma_1_no_column_is_in_the_cone_of_the_others():
    M = two_one_separable(12).matrix
    for j in range(12):
        assert nnls(np.delete(M, j, axis=1), M[:, j])[1] > 1e-4


def test_property_5_layout():
    truth = three_three_separable(6, 8)
    M = truth.matrix
    assert M.shape == (9, 11)
    assert_array_equal(M[:3, :3], 0.0)
    assert_array_equal(M[3:, 3:], 0.0)
    assert_array_equal(M[:3, 3:], two_one_separable(8).matrix)
    assert_array_equal(M[3:, :3], two_one_separable(6).matrix.T)
    assert np.linalg.matrix_rank(M) == 6


def test_property_5_neither_columns_nor_rows_compress():
    M = three_three_separable(6, 8).matrix
    for matrix in (M, M.T):
        for j in range(matrix.shape[1]):
            assert nnls(np.delete(matrix, j, axis=1), matrix[:, j])[1] > 1e-4


def test_non_unique_example_is_also_one_two_separable():
    M = non_unique_example().matrix
    assert_array_equal(M, [[1, 0, 2], [0, 1, 2], [0, 0, 1]])
    P1, P2 = np.array([[1, 0, 1]]), np.array([[0, 1], [1, 0], [0, 1]])
    assert_array_equal(M[:, [0]] @ P1 + P2 @ M[1:], M)


def test_example_1_is_the_printed_matrix():
    printed = [
        [1, 0.001, 0.002, 0.006, 0.009],
        [1, 2, 0.006, 4.004, 7.005],
        [1, 3, 0.009, 7.005, 12.006],
        [0, 0, 1, 1, 1],
        [0, 0, 0.001, 2, 3],
    ]
    truth = gspa_failure_example()
    assert_array_equal(truth.matrix.round(3), printed)
    assert_array_equal(truth.columns, [0, 1])
    assert_array_equal(truth.rows, [3, 4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two_one_separable(3), "n must be an integer of at least 4; got 3"),
        (lambda: three_three_separable(3, 4), "m must be an integer of at least 4; got 3"),
        (lambda: gspa_failure_example(0.0), "epsilon must be a finite number above 0; got 0.0"),
    ],
)
def test_errors_say_what_is_allowed_and_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()
