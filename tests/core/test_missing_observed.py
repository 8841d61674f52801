"""What is observed of a matrix: masks, weights, and clear answers to what cannot be meant."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import gsnmf
from gsnmf.matrix.input import clip_negative, observe

NAN = float("nan")


@pytest.fixture
def holes():
    rng = np.random.default_rng(0)
    matrix = rng.random((7, 5))
    matrix[2, 3] = 0.0
    matrix[rng.random((7, 5)) < 0.4] = NAN
    matrix[2, 3] = 0.0
    return matrix


def test_nan_is_missing_and_zero_is_not(holes):
    seen = observe(holes, missing_values=NAN)
    assert seen.values.nnz == np.isfinite(holes).sum()
    assert seen.share == np.isfinite(holes).mean()
    assert_allclose(seen.values.toarray(), np.nan_to_num(holes))
    assert seen.squared_norm == pytest.approx(np.nansum(holes**2))
    assert not seen.complete
    assert np.isnan(holes).any()  # not changed


def test_transpose_has_the_same_entries(holes):
    weights = np.random.default_rng(1).random(holes.shape)
    seen = observe(holes, missing_values=NAN, entry_weights=weights)
    assert_allclose(seen.T.values.toarray(), np.nan_to_num(holes).T)
    held = sp.csr_array((seen.T.weights, seen.T.values.indices, seen.T.values.indptr), shape=holes.shape[::-1])
    assert_allclose(held.toarray(), np.where(np.isnan(holes), 0.0, weights).T)
    assert seen.T.T is seen


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_unstored_is_missing_and_stored_zero_is_not(holes, kind):
    rows, columns = np.nonzero(np.isfinite(holes))
    sparse = kind(sp.coo_array((holes[rows, columns], (rows, columns)), shape=holes.shape))
    seen, expected = observe(sparse, missing_values="unstored"), observe(holes, missing_values=NAN)
    assert_array_equal(seen.values.indptr, expected.values.indptr)
    assert_array_equal(seen.values.indices, expected.values.indices)
    assert_allclose(seen.values.data, expected.values.data)


def test_weights_of_zero_are_missing(holes):
    full = np.nan_to_num(holes, nan=9.0)
    mask = np.isfinite(holes).astype(float)
    expected = observe(holes, missing_values=NAN)
    for weights in (mask, 3.0 * mask, sp.csr_array(mask)):
        seen = observe(full, entry_weights=weights)
        assert seen.weights is None
        assert_array_equal(seen.values.indices, expected.values.indices)
        assert_allclose(seen.values.data, expected.values.data)


def test_weights_on_sparse_data():
    data = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    weights = np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 1.0]])
    zeros_are_data = observe(data, entry_weights=weights)
    assert zeros_are_data.values.nnz == 5
    assert_allclose(zeros_are_data.values.toarray(), [[1, 0, 0], [0, 3, 0]])
    only_stored = observe(data, missing_values="unstored", entry_weights=weights)
    assert only_stored.values.nnz == 2


def test_nothing_missing_is_complete():
    assert observe(np.ones((2, 3)), missing_values=NAN).complete
    assert observe(np.ones((2, 3)), entry_weights=np.full((2, 3), 0.5)).complete
    assert observe([[1, 0], [2, 3]], missing_values=NAN).complete


def test_single_precision_stays(holes):
    assert observe(holes.astype(np.float32), missing_values=NAN).dtype == np.float32


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        ([[NAN, NAN]], {"missing_values": NAN}, "No entry"),
        ([[1.0, 2.0]], {"entry_weights": [[0.0, 0.0]]}, "No entry"),
        ([[1.0, 2.0]], {"entry_weights": [[1.0, np.inf]]}, "entry_weights must be finite; got inf at row 0, column 1"),
        ([[1.0, 2.0]], {"entry_weights": [[1.0, NAN]]}, "entry_weights must be finite"),
        ([[1.0, 2.0]], {"entry_weights": [[1.0, -1.0]]}, "entry_weights must be nonnegative; got -1.0"),
        ([[1.0, 2.0]], {"entry_weights": [[1.0], [1.0]]}, "shape of the matrix"),
        ([[1.0, NAN]], {}, "must be finite"),
        ([[1.0, np.inf]], {"missing_values": NAN}, "must be finite; got inf at row 0, column 1"),
        ([[NAN, -1.0]], {"missing_values": NAN}, "must be nonnegative; got -1.0 at row 0, column 1"),
        ([[1.0, 2.0]], {"missing_values": "unstored"}, "dense"),
        ([[1.0, 2.0]], {"missing_values": 0}, "numpy.nan, 'unstored' or None"),
        (sp.csr_array([[1.0, NAN]]), {"missing_values": NAN}, "stores NaN"),
        (sp.csr_array([[1.0, NAN]]), {"missing_values": "unstored"}, "stores NaN"),
        (sp.csr_array([[1.0, 0.0]]), {}, "Nothing is missing"),
        (sp.csr_array((2, 3)), {"missing_values": "unstored"}, "No entry"),
        ([[1e300, NAN]], {"missing_values": NAN}, "too extreme"),
    ],
)
def test_wrong_input_gets_a_clear_answer(matrix, options, message):
    with pytest.raises(ValueError, match=message):
        observe(matrix, **options)


def test_clipping_counts_what_it_cuts_off():
    matrix = np.array([[3.0, -0.03], [4.0, np.nan]])
    clipped = clip_negative(matrix)
    assert_array_equal(clipped.matrix, [[3.0, 0.0], [4.0, np.nan]])
    assert clipped.n_clipped == 1
    assert clipped.clipped_share == pytest.approx(0.03 / np.sqrt(25 + 0.03**2))
    assert matrix[0, 1] == -0.03
    same = clip_negative(sp.csr_array(np.array([[3.0, -0.03], [4.0, 0.0]])))
    assert (same.n_clipped, same.clipped_share) == (1, clipped.clipped_share)
    assert same.matrix.nnz == 3


def test_clipping_warns_of_more_than_noise():
    with pytest.warns(UserWarning, match=r"1 in number, 24.3 % of its norm") as told:
        gsnmf.factorize([[4.0, -1.0]], 1, negative="clip")
    assert told[0].filename == __file__
    assert clip_negative([[1.0, 0.0]]).n_clipped == 0
    with pytest.raises(ValueError, match="finite"):
        clip_negative([[1.0, -np.inf]])
    with pytest.raises(TypeError, match="real numbers"):
        clip_negative([["a", "b"]])
