import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.matrix.validation import check_matrix, check_rank, check_rank_pair

FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32, np.float64, np.longdouble, ">f8"])
def test_every_real_type_becomes_a_float_and_float32_stays(dtype):
    checked = check_matrix(np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype))
    assert checked.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert checked.dtype.isnative
    assert checked.tolist() == [[1, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_copy_of_what_is_right_already(order):
    matrix = np.asarray(np.random.default_rng(0).random((4, 5)), order=order)
    matrix.flags.writeable = False
    assert check_matrix(matrix) is matrix
    assert np.shares_memory(check_matrix(matrix[::2, ::-1]), matrix)
    sparse = sp.csr_array(matrix)
    assert np.shares_memory(check_matrix(sparse).data, sparse.data)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("kind", [sp.coo_array, sp.coo_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_every_sparse_format(format_, kind, dtype):
    dense = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype=dtype)
    matrix = kind(dense).asformat(format_)
    checked = check_matrix(matrix)
    assert checked.has_canonical_format
    np.testing.assert_array_equal(checked.toarray(), dense)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_unsorted_with_duplicates_and_stored_zeros(kind):
    data, indices, indptr = np.array([1.0, 0.0, 2.0, 5.0]), np.array([2, 1, 2, 0]), np.array([0, 3, 4, 4])
    matrix = kind((data, indices, indptr), shape=(3, 3))
    before = matrix.copy()
    checked = check_matrix(matrix)
    assert checked.nnz == 2
    np.testing.assert_array_equal(checked.toarray(), before.toarray())
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(matrix, part), getattr(before, part))


def test_dataframes_lists_and_memory_maps(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 0.0]})
    assert check_matrix(frame).tolist() == [[1, 0.5], [2, 0]]
    mixed = pd.DataFrame({"a": [1, 2], "b": [True, False]}).astype(object)
    assert check_matrix(mixed).tolist() == [[1, 1], [2, 0]]
    path = tmp_path / "matrix.npy"
    np.save(path, np.random.default_rng(0).random((30, 20)))
    mapped = np.load(path, mmap_mode="r")
    assert np.shares_memory(check_matrix(mapped), mapped)
    assert gsnmf.factorize(mapped, 3).quality > 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "matrix must be finite; got NaN at row 2, column 1"),
        (np.inf, "matrix must be finite; got inf at row 2, column 1"),
        (-np.inf, "matrix must be finite; got -inf at row 2, column 1"),
        (-3.0, "matrix must be nonnegative; got -3.0 at row 2, column 1"),
    ],
)
def test_bad_entries_are_named_with_their_position(value, message, sparse):
    matrix = np.eye(4)
    matrix[2, 1] = value
    for given in [sp.csr_array(matrix), sp.csc_array(matrix)] if sparse else [matrix, np.asfortranarray(matrix)]:
        with pytest.raises(ValueError, match=message):
            check_matrix(given)


def test_a_bad_entry_far_down_a_large_matrix():
    matrix = np.zeros((3000, 2000), dtype=np.float32)
    matrix[2999, 1999] = np.nan
    with pytest.raises(ValueError, match="row 2999, column 1999"):
        check_matrix(matrix)


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.ones(3), ValueError, r"two-dimensional; got shape \(3,\)"),
        (np.ones((2, 2, 2)), ValueError, "two-dimensional"),
        (5.0, ValueError, "two-dimensional"),
        (np.ones((0, 3)), ValueError, r"at least one row and one column; got shape \(0, 3\)"),
        (sp.csr_array((3, 0)), ValueError, "at least one row and one column"),
        (np.ones((2, 2)) * 1j, TypeError, "real numbers; got dtype complex128"),
        (np.array([["a", "b"]]), TypeError, "real numbers; got dtype <U1"),
        (np.array([[1, "b"]], dtype=object), TypeError, "got 'b' of type str at row 0, column 1"),
        (sp.csr_array(np.ones((2, 2)) * 1j), TypeError, "real numbers"),
        (np.ma.masked_array(np.ones((2, 2)), mask=np.eye(2)), TypeError, "masked"),
        (np.array([["2020-01-01"]], dtype="datetime64"), TypeError, "real numbers"),
    ],
)
def test_what_is_not_a_matrix(matrix, error, message):
    with pytest.raises(error, match=message):
        gsnmf.factorize(matrix, 1)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ma.masked_array(np.ones((4, 3)), mask=np.eye(4, 3)), "masked array"),
        (np.full((4, 3), "2020-01-01", dtype="datetime64[D]"), "real numbers; got dtype datetime64"),
        (np.full((4, 3), "1.5"), "real numbers; got dtype <U3"),
        (np.full((4, 3), "1.5", dtype=object), "got '1.5' of type str"),
    ],
)
def test_the_estimator_takes_nothing_that_factorize_refuses(X, message):
    for refused in (
        lambda: gsnmf.factorize(X, 2),
        lambda: gsnmf.GSNMF(2).fit(X),
        lambda: gsnmf.GSNMF(2).fit(np.ones((4, 3))).transform(X),
        lambda: gsnmf.GSNMFSelector(2).fit(X),
    ):
        with pytest.raises(TypeError, match=message):
            refused()


@pytest.mark.parametrize(
    ("rank", "error", "message"),
    [
        (0, ValueError, r"rank must be in \[1, 40\] for a matrix of shape \(30, 40\); got 0"),
        (55, ValueError, "got 55"),
        (-1, ValueError, "got -1"),
        (2.5, TypeError, "rank must be an integer; got 2.5 of type float"),
        (True, TypeError, "rank must be an integer"),
        ("3", TypeError, "rank must be an integer"),
        ((2, 3), TypeError, "rank must be an integer"),
    ],
)
def test_ranks_out_of_range(rank, error, message):
    with pytest.raises(error, match=message):
        check_rank(rank, (30, 40))


def test_rank_pairs():
    assert check_rank_pair((np.int64(2), 0), (30, 40)) == (2, 0)
    for bad in [(0, 0), (41, 0), (0, 31), (-1, 3)]:
        with pytest.raises(ValueError, match=r"n_columns in \[0, 40\], n_rows in \[0, 30\]"):
            check_rank_pair(bad, (30, 40))
    with pytest.raises(ValueError, match="must be a pair"):
        check_rank_pair(3, (30, 40))


def test_unknown_method_lists_the_known():
    with pytest.raises(ValueError, match=r"method must be one of 'auto', 'convex', .*; got 'spa'"):
        gsnmf.select(np.ones((2, 2)), 1, method="spa")


@pytest.mark.parametrize("index", [-1, 20, 5000])
@pytest.mark.parametrize("missing_values", [None, "unstored"])
def test_indices_outside_a_sparse_matrix_are_refused(index, missing_values):
    matrix = sp.random_array((30, 20), density=0.3, format="csr", rng=np.random.default_rng(0))
    matrix.indices[5] = index
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        gsnmf.factorize(matrix, 3, method="spa-columns", missing_values=missing_values)
