import tracemalloc
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from gsnmf.datasets import fully_random, planted
from gsnmf.matrix import protocol as products
from gsnmf.metrics import accuracy, distance_to_ground_truth, quality, relative_error

KINDS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]
INDICES = st.sets(st.integers(0, 8))


def explicit_error(matrix, W, H):
    """The definition, in extended precision."""
    M, W, H = (np.asarray(part, dtype=np.longdouble) for part in (matrix, W, H))
    return float(np.sqrt(((M - W @ H) ** 2).sum() / (M**2).sum()))


def sparse_problem(noise, seed=0, shape=(120, 90)):
    """A sparse matrix and dense factors with about this relative error."""
    truth = planted(shape, 4, 3, density=0.2, sparse=True, random_state=seed)
    rng = np.random.default_rng(seed)
    W, H = truth.W.toarray(), truth.H.toarray()
    return truth.matrix, W + noise * rng.standard_normal(W.shape), H


@settings(deadline=None)
@given(INDICES, INDICES, INDICES, INDICES.filter(bool))
def test_accuracy_counts_what_was_found(columns, rows, true_columns, true_rows):
    found = len(columns & true_columns) + len(rows & true_rows)
    wanted = len(true_columns) + len(true_rows)
    value = accuracy(list(columns), list(rows), list(true_columns), list(true_rows))
    assert value == found / wanted
    assert accuracy(list(rows), list(columns), list(true_rows), list(true_columns)) == value


def test_accuracy_of_rows_taken_for_columns_is_zero():
    assert accuracy([1, 2], [], [], [1, 2]) == 0.0


def test_accuracy_needs_truth_and_integers():
    with pytest.raises(ValueError, match="at least one index in all; got none"):
        accuracy([1], [2], [], [])
    with pytest.raises(ValueError, match="rows must be a one-dimensional sequence of integers"):
        accuracy([1], [0.5], [1], [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor_kind", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("noise", [1.0, 1e-2, 1e-4, 1e-6, 1e-9])
def test_relative_error_keeps_its_digits(kind, factor_kind, noise):
    matrix, W, H = sparse_problem(noise)
    expected = explicit_error(matrix.toarray(), W, H)
    error = relative_error(kind(matrix.toarray()), factor_kind(W), factor_kind(H))
    # W H itself is only known to 1e-16, which is 1e-7 of an error of 1e-9
    assert_allclose(error, expected, rtol=max(1e-8, 3e-16 / noise))
    assert quality(kind(matrix.toarray()), factor_kind(W), factor_kind(H)) == 1.0 - error


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_gram_products_are_accurate_where_they_are_used(share):
    # an error of about 1e-5, on both sides of the switch
    matrix, W, H = sparse_problem(0.0)
    W = W.copy()
    norm = sp.linalg.norm(matrix)
    W[:, 0] *= 1.0 + share * 1e-5 * norm / np.linalg.norm(np.outer(W[:, 0], H[0]))
    assert_allclose(relative_error(matrix, W, H), explicit_error(matrix.toarray(), W, H), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [0.3, 1e-5])
def test_blocks_do_not_change_the_error(kind, noise, monkeypatch):
    matrix, W, H = sparse_problem(noise)
    whole = relative_error(kind(matrix.toarray()), W, H)
    monkeypatch.setattr(products, "BLOCK_BYTES", 2000)
    assert_allclose(relative_error(kind(matrix.toarray()), W, H), whole, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_products_have_no_error(kind):
    truth = planted((60, 50), 4, 3, density=0.3, random_state=1)
    assert relative_error(kind(truth.matrix), truth.W, truth.H) < 1e-15
    assert quality(kind(truth.matrix), truth.W, truth.H) == 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-150, 1e150, 1e200, 1e290])
def test_relative_error_does_not_depend_on_the_unit(kind, unit):
    matrix, W, H = sparse_problem(0.1)
    expected = relative_error(matrix, W, H)
    assert_allclose(relative_error(kind(matrix.toarray() * unit), W * unit, H), expected, rtol=1e-8)
    assert_allclose(relative_error(kind(matrix.toarray() * unit), W, H * unit), expected, rtol=1e-8)
    # as in a generalized separable factorization: columns of M in W, rows of M in H
    mixed = np.array([unit] * 4 + [1.0] * 3)
    assert_allclose(
        relative_error(kind(matrix.toarray() * unit), W * mixed, H * (unit / mixed)[:, None]), expected, rtol=1e-8
    )


@pytest.mark.parametrize("kind", KINDS)
def test_relative_error_of_float32_is_summed_in_double_precision(kind):
    matrix, W, H = sparse_problem(0.01)
    M, W, H = matrix.toarray().astype(np.float32), W.astype(np.float32), H.astype(np.float32)
    assert_allclose(relative_error(kind(M), W, H), explicit_error(M, W, H), rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_products_and_zero_matrices(kind):
    M = kind(np.array([[1.0, 2.0], [0.0, 3.0]]))
    assert relative_error(M, np.empty((2, 0)), np.empty((0, 2))) == 1.0
    assert relative_error(M, np.zeros((2, 1)), np.ones((1, 2))) == 1.0
    zero = kind(np.zeros((2, 2)))
    assert relative_error(zero, np.zeros((2, 1)), np.ones((1, 2))) == 0.0
    assert relative_error(zero, np.ones((2, 1)), np.ones((1, 2))) == np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_relative_error_of_the_transpose(kind):
    matrix, W, H = sparse_problem(0.01)
    M = kind(matrix.toarray())
    assert_allclose(relative_error(M.T, H.T, W.T), relative_error(M, W, H), rtol=1e-10)


@pytest.mark.parametrize("scale_of_noise", [0.1, 0.0])
def test_a_sparse_matrix_is_never_dense(scale_of_noise):
    shape = (4000, 5000)
    truth = planted(shape, 5, 5, density=0.002, sparse=True, random_state=0)
    W = truth.W.toarray() * (1 + scale_of_noise)
    H = truth.H.toarray()
    tracemalloc.start()
    error = relative_error(truth.matrix, W, H)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(error, scale_of_noise, rtol=1e-8, atol=1e-15)
    assert peak < 0.8 * 8 * shape[0] * shape[1]


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"for a matrix of shape \(2, 3\); got \(2, 1\) and \(2, 3\)"):
        relative_error(np.ones((2, 3)), np.ones((2, 1)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="W must be two-dimensional"):
        relative_error(np.ones((2, 3)), np.ones(2), np.ones((1, 3)))
    with pytest.raises(ValueError, match="H must be finite"):
        relative_error(np.ones((2, 3)), np.ones((2, 1)), np.full((1, 3), np.nan))


def brute_force(W, true_W):
    """The best permutation of columns padded with zeros to the same number."""
    count = max(W.shape[1], true_W.shape[1])
    found, truth = (np.pad(part, ((0, 0), (0, count - part.shape[1]))) for part in (W, true_W))
    best = min(np.linalg.norm(truth - found[:, list(order)]) for order in permutations(range(count)))
    return best / np.linalg.norm(true_W)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4), st.data())
def test_distance_is_that_of_the_best_permutations(w_rank, h_rank, true_rank, data):
    entries = st.floats(0, 10)
    W = data.draw(arrays(np.float64, (5, w_rank), elements=entries))
    H = data.draw(arrays(np.float64, (h_rank, 3), elements=entries))
    true_W = data.draw(arrays(np.float64, (5, true_rank), elements=st.floats(0.1, 10)))
    true_H = data.draw(arrays(np.float64, (true_rank, 3), elements=st.floats(0.1, 10)))
    expected = (brute_force(W, true_W) + brute_force(H.T, true_H.T)) / 2
    assert_allclose(distance_to_ground_truth(W, H, true_W, true_H), expected, rtol=1e-9, atol=1e-12)


def test_distance_ignores_order_and_only_order():
    truth = fully_random(random_state=0)
    rng = np.random.default_rng(0)
    W, H = truth.W[:, rng.permutation(40)], truth.H[rng.permutation(40)]
    assert distance_to_ground_truth(W, H, truth.W, truth.H) == 0.0
    assert_allclose(distance_to_ground_truth(W, 0 * H, truth.W, truth.H), 0.5)


def test_distance_does_not_rescale_the_factors():
    true_W, true_H = np.eye(2), np.diag([3.0, 4.0])
    assert_allclose(distance_to_ground_truth(2 * true_W, true_H / 2, true_W, true_H), 0.5 + 0.25)


def test_distance_is_accurate_when_tiny():
    truth = fully_random(random_state=0)
    W = truth.W[:, ::-1] * (1 + 1e-12)
    assert_allclose(distance_to_ground_truth(W, truth.H, truth.W, truth.H), 0.5e-12, rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_distance_does_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(0)
    W, H, true_W, true_H = (rng.random(shape) for shape in [(6, 3), (3, 5), (6, 3), (3, 5)])
    expected = distance_to_ground_truth(W, H, true_W, true_H)
    assert_allclose(distance_to_ground_truth(unit * W, H, unit * true_W, true_H), expected)
    assert_allclose(distance_to_ground_truth(W, unit * H, true_W, unit * true_H), expected)


def test_distance_of_sparse_factors():
    truth = planted((40, 30), 3, 2, density=0.3, sparse=True, random_state=0)
    other = planted((40, 30), 3, 2, density=0.3, sparse=True, random_state=1)
    assert_allclose(
        distance_to_ground_truth(other.W, other.H, truth.W, truth.H),
        distance_to_ground_truth(other.W.toarray(), other.H.toarray(), truth.W.toarray(), truth.H.toarray()),
    )


def test_distance_checks_its_input():
    with pytest.raises(ValueError, match="W and true_W must have the same number of rows; got 2 and 3"):
        distance_to_ground_truth(np.ones((2, 1)), np.ones((1, 2)), np.ones((3, 1)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="H and true_H must have the same number of columns; got 3 and 2"):
        distance_to_ground_truth(np.ones((2, 1)), np.ones((1, 3)), np.ones((2, 1)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="true_H must have a nonzero entry"):
        distance_to_ground_truth(np.ones((2, 1)), np.ones((1, 3)), np.ones((2, 1)), np.zeros((1, 3)))
