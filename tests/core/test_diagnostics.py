"""What is said of a factorization, against the residual formed in full."""

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.datasets import fully_random, planted
from gsnmf.diagnostics import Explanation, compare
from gsnmf.matrix import wrap


@pytest.fixture(params=["dense", "sparse", "float32", "tiny unit"])
def result(request):
    data = planted((40, 50), 4, 3, random_state=0, sparse=request.param == "sparse")
    matrix = data.matrix
    matrix = matrix + 0.05 * abs(np.sin(np.arange(2000)).reshape(40, 50)) if request.param != "sparse" else matrix
    if request.param == "float32":
        matrix = matrix.astype(np.float32)
    if request.param == "tiny unit":
        matrix = matrix * 1e-250
    return gsnmf.factorize(matrix, 5, method="gspa")


def whole(result):
    matrix = result.matrix.toarray() if sp.issparse(result.matrix) else result.matrix
    unit = matrix.max()
    return matrix / unit, (matrix - result.reconstruct()) / unit


def test_residuals_are_those_of_the_whole_matrix(result):
    matrix, residual = whole(result)
    for axis, other in (("rows", 1), ("columns", 0)):
        found = Explanation(result).residuals(axis)
        norms = np.linalg.norm(matrix, axis=other)
        expected = np.divide(np.linalg.norm(residual, axis=other), norms, out=np.zeros_like(norms), where=norms > 0)
        np.testing.assert_allclose(found.relative_errors, expected, atol=1e-5)
        squares = (residual**2).sum(axis=other)
        np.testing.assert_allclose(found.error_shares, squares / squares.sum(), atol=1e-6)


def test_strongest_factor_has_the_largest_part(result):
    W, H = result.W, result.H
    parts = np.array([np.outer(W[:, k], H[k]).sum(axis=1) for k in range(5)])
    np.testing.assert_array_equal(Explanation(result).residuals("rows").strongest, parts.argmax(axis=0))


def test_factors(result):
    factors = result.factors(6)
    assert [f.index for f in factors if f.axis == "columns"] == result.columns.tolist()
    assert [f.index for f in factors if f.axis == "rows"] == result.rows.tolist()
    assert sum(f.share for f in factors) == pytest.approx(1)
    for k, factor in enumerate(factors):
        strengths = result.H[k].copy()
        if factor.axis == "columns":
            strengths[factor.index] = 0
        assert factor.columns.tolist() == [j for j in np.argsort(-strengths, kind="stable")[:6] if strengths[j] > 0]
        np.testing.assert_array_equal(factor.column_strengths, result.H[k, factor.columns])
        np.testing.assert_array_equal(factor.row_strengths, result.W[factor.rows, k])
        assert factor.axis == "columns" or factor.index not in factor.rows


def test_rank_path_orders_the_chosen(result):
    path = Explanation(result).rank_path()
    assert sorted(path.columns) == sorted(result.columns)
    assert sorted(path.rows) == sorted(result.rows)
    assert path.errors[0] == 1
    assert path.errors[-1] == result.relative_error
    assert np.all(np.diff(path.errors) < 0)
    columns, rows = path.selection(3)
    assert gsnmf.fit_weights(result.matrix, columns, rows).relative_error == pytest.approx(path.errors[3], abs=1e-3)


@pytest.mark.parametrize("side", [1, 7, 40, 200])
def test_pictures_hold_all_of_matrix_and_residual(result, side):
    matrix, residual = whole(result)
    pictures = Explanation(result).pictures(side)
    assert pictures[0].shape == pictures[1].shape
    assert max(pictures[0].shape) <= side
    if side == 1:
        assert pictures[0] == pytest.approx(1)
        assert pictures[1] == pytest.approx(result.relative_error, rel=1e-4)
    if side == 200:  # every entry by itself, rows and columns grouped
        unit = np.sqrt(np.mean(matrix**2))
        for picture, array in zip(pictures, (matrix, residual), strict=True):
            np.testing.assert_allclose(np.sort(picture.ravel()), np.sort(abs(array).ravel() / unit), atol=2e-3)


def test_block_residuals_are_the_same_dense_and_sparse():
    rng = np.random.default_rng(0)
    matrix = rng.random((30, 20)) * (rng.random((30, 20)) < 0.3)
    W, H = rng.random((30, 4)), rng.random((4, 20))
    rows, columns = rng.permutation(np.arange(30) % 5), rng.permutation(np.arange(20) % 3)
    residual = (matrix - W @ H) ** 2
    expected = [[residual[np.ix_(rows == b, columns == c)].sum() for c in range(3)] for b in range(5)]
    for kind in (np.asarray, sp.csr_array, sp.csc_array):
        np.testing.assert_allclose(wrap(kind(matrix)).block_residuals(W, H, rows, columns), expected)
        np.testing.assert_allclose(
            wrap(kind(matrix)).T.block_residuals(H.T, W.T, columns, rows), np.transpose(expected)
        )


@pytest.mark.parametrize("sparse", [False, True])
def test_zero_matrix(sparse):
    matrix = sp.csr_array((4, 3)) if sparse else np.zeros((4, 3))
    explanation = Explanation(gsnmf.factorize(matrix, 2))
    assert explanation.result.factors() == ()
    assert explanation.residuals("rows").relative_errors.tolist() == [0] * 4
    assert explanation.residuals("columns").strongest.tolist() == [-1] * 3
    assert explanation.rank_path().errors.tolist() == [0]
    assert [picture.max() for picture in explanation.pictures()] == [0, 0]
    assert compare(explanation.result).svd_quality == explanation.result.quality


def test_zero_row_that_is_explained_as_something():
    result = gsnmf.factorize(np.eye(3)[:, :2], (1, 0), method="spa-both")
    assert Explanation(result).residuals("rows").relative_errors[2] == 0


class TestComparison:
    def test_bound_of_every_rank(self):
        result = gsnmf.factorize(fully_random(0.1, random_state=0).matrix, 6, method="gspa")
        values = np.linalg.svd(result.matrix, compute_uv=False)
        tails = np.sqrt([np.sum(values[k:] ** 2) for k in range(7)]) / np.linalg.norm(values)
        found = compare(result, nmf=True)
        np.testing.assert_allclose(found.svd_path, 1 - tails, atol=1e-12)
        assert result.quality < found.nmf_quality < found.svd_quality == found.svd_path[-1]

    def test_more_factors_than_the_smaller_dimension(self):
        matrix = np.random.default_rng(0).random((3, 9))
        found = compare(gsnmf.factorize(matrix, 5, method="snpa"))
        assert found.svd_quality == pytest.approx(1)
        assert found.svd_path.size >= 4

    def test_too_much_work_is_left_out(self):
        result = gsnmf.factorize(fully_random(0.1, random_state=0).matrix, 6, method="gspa")
        found = compare(result, nmf=True, max_operations=1e3)
        assert (found.svd_quality, found.nmf_quality, found.svd_path.size) == (None, None, 0)
        assert found.svd_note == found.nmf_note == "not computed: too much work at this size"

    def test_nmf_only_when_asked_for(self, monkeypatch):
        monkeypatch.setattr("gsnmf.diagnostics.hals", None)
        found = compare(gsnmf.factorize(fully_random(0.1, random_state=0).matrix, 6, method="gspa"))
        assert (found.nmf_quality, found.nmf_note) == (None, "")
        assert found.svd_quality > 0

    def test_limited_iterations_are_told(self):
        result = gsnmf.factorize(fully_random(0.1, random_state=0).matrix, 6, method="gspa")
        assert compare(result, nmf=True, max_operations=1e7).nmf_note == "stopped after 25 iterations"
