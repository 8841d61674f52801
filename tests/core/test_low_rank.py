"""Truncated SVD, CUR and pseudo-skeletons against NumPy, and what the results of `gsnmf.nmf` have in common."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gsnmf
from gsnmf.nmf import cur, hals, minimum_volume, skeleton, truncated_svd

SEEDS = st.integers(0, 2**32 - 1)


def product(shape, rank, seed=0, density=0.7):
    rng = np.random.default_rng(seed)
    W, H = (rng.random(size) * (rng.random(size) < density) for size in ((shape[0], rank), (rank, shape[1])))
    return W @ H


def relative(matrix, approximation):
    return np.linalg.norm(matrix - approximation) / np.linalg.norm(matrix)


@pytest.mark.parametrize("function", [cur, hals, minimum_volume, skeleton, truncated_svd])
def test_results_compare_and_are_shown_and_saved(function, tmp_path):
    matrix = np.random.default_rng(0).random((12, 10))
    options = {} if function in (skeleton, truncated_svd) else {"random_state": 0}
    result = function(matrix, 3, **options)
    assert result == function(matrix, 3, **options)
    assert result != function(matrix, 2, **options)
    assert f"{type(result).__name__}: 12 x 10 by 3 factors, quality" in repr(result)
    assert "\n" not in repr(result)
    frame = result.to_frame()
    assert frame["share"].sum() == pytest.approx(1)
    largest = [tuple(np.argsort(-np.abs(row), kind="stable")[:8]) for row in result.H]
    assert frame["columns"].tolist() == largest
    gsnmf.save(result, tmp_path / "result.npz")
    assert gsnmf.load(tmp_path / "result.npz") == type(result).load(tmp_path / "result.npz") == result
    forged = dataclasses.replace(result, W=result.W[:, :2])
    forged.save(tmp_path / "forged.npz")
    with pytest.raises(ValueError, match=r"forged.npz is not .* W and H must be \(m, r\) and \(r, n\)"):
        gsnmf.load(tmp_path / "forged.npz")


@pytest.mark.parametrize("function", [hals, minimum_volume])
def test_progress_is_reported(function, capsys):
    matrix = np.random.default_rng(0).random((12, 10))
    seen = []
    result = function(matrix, 3, random_state=0, progress=seen.append)
    assert len(seen) == result.n_iterations
    assert seen[-1].message == f"iteration {result.n_iterations}: violation {result.optimality:.1e}"
    assert seen[-1].fraction == 1.0
    assert result == function(matrix, 3, random_state=0, progress=True)
    assert "iteration" in capsys.readouterr().err


class TestTruncatedSVD:
    @pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
    @pytest.mark.parametrize(
        ("shape", "rank"), [((40, 30), 5), ((30, 40), 30), ((400, 350), 8), ((320, 700), 40), ((310, 400), 200)]
    )
    def test_agrees_with_numpy(self, container, shape, rank):
        rng = np.random.default_rng(0)
        matrix = rng.random(shape) * (rng.random(shape) < 0.3)
        result = truncated_svd(container(matrix), rank)
        expected = np.linalg.svd(matrix, compute_uv=False)
        assert_allclose(result.singular_values, expected[:rank], rtol=1e-10)
        error = np.sqrt((expected[rank:] ** 2).sum() / (expected**2).sum())
        assert result.relative_error == pytest.approx(error, abs=1e-10)
        assert result.quality == 1 - result.relative_error
        assert relative(matrix, result.W @ result.H) == pytest.approx(error, abs=1e-10)
        assert_allclose(result.H @ result.H.T, np.eye(rank), atol=1e-10)
        assert result.converged

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("rank", [3, 7, 50])
    def test_rank_at_and_above_the_true_rank(self, container, rank):
        matrix = product((500, 400), 3)
        result = truncated_svd(container(matrix), rank)
        assert result.relative_error < 1e-13
        assert_allclose(result.singular_values[3:], 0, atol=1e-12 * result.singular_values[0])

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("shape", [(40, 30), (400, 350)])
    def test_single_precision_is_kept(self, container, shape):
        matrix = product(shape, 6).astype(np.float32)
        result = truncated_svd(container(matrix), 4)
        assert result.W.dtype == result.H.dtype == result.singular_values.dtype == np.float32
        expected = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
        assert result.relative_error == pytest.approx(np.linalg.norm(expected[4:]) / np.linalg.norm(expected), rel=1e-3)

    @pytest.mark.parametrize("shape", [(4, 5), (400, 500)])
    def test_zero_matrix(self, shape):
        result = truncated_svd(np.zeros(shape), 2)
        assert result.relative_error == 0
        assert_array_equal(result.singular_values, [0, 0])
        assert_array_equal(result.W @ result.H, np.zeros(shape))

    @pytest.mark.parametrize("exponent", [-900, 900])
    def test_the_unit_of_the_matrix_does_not_matter(self, exponent):
        matrix = product((40, 30), 6)
        plain, scaled = truncated_svd(matrix, 4), truncated_svd(np.ldexp(matrix, exponent), 4)
        assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-10)
        assert_allclose(np.ldexp(scaled.singular_values, -exponent), plain.singular_values, rtol=1e-10)
        assert_allclose(np.ldexp(scaled.W, -exponent) @ scaled.H, plain.W @ plain.H, rtol=1e-8, atol=1e-10)

    def test_errors_say_what_is_allowed(self):
        with pytest.raises(ValueError, match=r"rank must be in \[1, 5\] for the SVD of a matrix of shape \(5, 6\)"):
            truncated_svd(np.ones((5, 6)), 6)
        huge = sp.csr_array(([1.0], ([0], [0])), shape=(40_000, 40_000))
        with pytest.raises(ValueError, match=r"needs a dense copy of 11.9 GiB, above the limit of 2.0 GiB"):
            truncated_svd(huge, 20_000)

    @pytest.mark.parametrize("name", ["tr11", "tr23", "CBCL"])
    def test_quality_as_in_the_paper(self, paper, name):
        data = paper(name)
        assert 100 * truncated_svd(data.matrix, data.rank).quality == pytest.approx(data.published["svd"], abs=0.0051)


class TestCUR:
    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
    def test_exact_when_columns_and_rows_span_the_matrix(self, container):
        matrix = product((30, 40), 4)
        chosen = gsnmf.select(matrix, (4, 4), method="spa-both")
        result = cur(container(matrix), columns=chosen.columns, rows=chosen.rows)
        assert result.relative_error < 1e-10
        assert_allclose(result.W @ result.H, matrix, atol=1e-10)
        assert_allclose(matrix[:, chosen.columns] @ result.U @ matrix[chosen.rows], matrix, atol=1e-10)
        assert_array_equal(result.H, matrix[chosen.rows])

    @given(st.integers(1, 9), st.integers(1, 9), st.booleans(), SEEDS)
    @settings(max_examples=40, deadline=None)
    def test_the_matrix_between_is_the_best_one(self, m, n, sparse, seed):
        rng = np.random.default_rng(seed)
        matrix = rng.random((m, n)) * (rng.random((m, n)) < 0.7)
        columns = rng.permutation(n)[: rng.integers(0, n + 1)]
        rows = rng.permutation(m)[: rng.integers(0, m + 1)]
        result = cur(sp.csr_array(matrix) if sparse else matrix, columns=columns, rows=rows)
        C, R = matrix[:, columns], matrix[rows]
        U = np.linalg.pinv(C, rcond=1e-12) @ matrix @ np.linalg.pinv(R, rcond=1e-12)
        assert result.U.shape == U.shape
        assert_allclose(C @ result.U @ R, C @ U @ R, atol=1e-8)
        if matrix.any():
            assert result.relative_error == pytest.approx(relative(matrix, C @ U @ R), abs=1e-8)
        else:
            assert result.relative_error == 0

    def test_repeated_columns_do_no_harm(self):
        matrix = product((20, 15), 4)
        matrix[:, 3] = matrix[:, 4]
        matrix[7] = 0
        once, twice = cur(matrix, columns=[3, 1], rows=[2, 5]), cur(matrix, columns=[3, 4, 1], rows=[2, 5, 7])
        assert twice.relative_error == pytest.approx(once.relative_error, rel=1e-10)
        assert np.abs(twice.U).max() < 1e3

    def test_draws_by_leverage(self):
        matrix = product((60, 50), 5)
        result = cur(matrix, rank=5, random_state=0)
        assert np.unique(result.columns).size == np.unique(result.rows).size == 5
        assert result.relative_error < 1e-8
        again = cur(matrix, rank=5, random_state=0)
        assert_array_equal(again.columns, result.columns)
        only_rows = cur(matrix, columns=[1, 2], rank=5, random_state=0)
        assert_array_equal(only_rows.columns, [1, 2])
        assert only_rows.rows.size == 5

    def test_never_draws_what_has_no_leverage(self):
        matrix = np.zeros((20, 10))
        matrix[3:6, 2:5] = np.random.default_rng(0).random((3, 3))
        result = cur(sp.csr_array(matrix), rank=3, random_state=0)
        assert set(result.columns) == {2, 3, 4}
        assert set(result.rows) == {3, 4, 5}
        assert result.relative_error < 1e-10

    def test_single_precision_and_units(self):
        matrix = product((30, 20), 4)
        single = cur(matrix.astype(np.float32), columns=[0, 1, 2], rows=[3, 4, 5])
        assert single.W.dtype == single.H.dtype == single.U.dtype == np.float32
        plain, scaled = (
            cur(matrix, columns=[0, 1], rows=[3, 4]),
            cur(np.ldexp(matrix, 900), columns=[0, 1], rows=[3, 4]),
        )
        assert single.relative_error == pytest.approx(
            cur(matrix, columns=[0, 1, 2], rows=[3, 4, 5]).relative_error, rel=1e-3
        )
        assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-12)
        assert_allclose(np.ldexp(scaled.U, 900), plain.U, rtol=1e-10)

    def test_errors_say_what_is_allowed(self):
        matrix = product((5, 6), 2)
        with pytest.raises(ValueError, match="rank must be given if columns or rows are left out"):
            cur(matrix, columns=[0])
        with pytest.raises(
            ValueError, match=r"rank must be in \[1, 5\] to choose from a matrix of shape \(5, 6\); got 6"
        ):
            cur(matrix, rank=6)
        with pytest.raises(ValueError, match=r"columns must be in \[0, 5\]"):
            cur(matrix, columns=[6], rows=[0])


class TestSkeleton:
    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    def test_exact_on_a_matrix_of_its_rank(self, container):
        matrix = product((30, 40), 4, density=1.0)
        result = skeleton(container(matrix), columns=[0, 5, 9, 20], rows=[1, 2, 3, 25])
        assert result.relative_error < 1e-10
        assert_allclose(result.U, np.linalg.inv(matrix[np.ix_([1, 2, 3, 25], [0, 5, 9, 20])]), rtol=1e-6)
        assert_allclose(result.W @ result.H, matrix, atol=1e-10)

    def test_singular_and_rectangular_blocks(self):
        matrix = product((30, 40), 4, density=1.0)
        more_columns = skeleton(matrix, columns=[0, 5, 9, 20, 21, 22], rows=[1, 2, 3, 25])
        assert more_columns.U.shape == (6, 4)
        assert more_columns.relative_error < 1e-10
        singular = skeleton(matrix, columns=[0, 5, 9, 20, 21], rows=[1, 2, 3, 25, 26])
        assert singular.relative_error < 1e-10
        zero = skeleton(np.eye(3), columns=[0], rows=[1])
        assert zero.relative_error == 1
        assert_array_equal(zero.U, [[0]])

    def test_interpolates_the_chosen_columns_and_rows(self):
        matrix = np.random.default_rng(0).random((20, 25))
        result = skeleton(matrix, columns=[3, 4, 11], rows=[0, 7, 8])
        approximation = result.W @ result.H
        assert_allclose(approximation[:, [3, 4, 11]], matrix[:, [3, 4, 11]])
        assert_allclose(approximation[[0, 7, 8]], matrix[[0, 7, 8]])
        assert result.relative_error == pytest.approx(relative(matrix, approximation))
        assert result.relative_error >= cur(matrix, columns=[3, 4, 11], rows=[0, 7, 8]).relative_error

    def test_single_precision_and_units(self):
        matrix = product((30, 20), 3, density=1.0)
        single = skeleton(matrix.astype(np.float32), columns=[0, 1], rows=[3, 4])
        assert single.W.dtype == single.H.dtype == single.U.dtype == np.float32
        plain, scaled = (
            skeleton(matrix, columns=[0, 1], rows=[3, 4]),
            skeleton(np.ldexp(matrix, -900), columns=[0, 1], rows=[3, 4]),
        )
        assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-12)
        assert_allclose(np.ldexp(scaled.U, -900), plain.U, rtol=1e-10)

    def test_errors_say_what_is_allowed(self):
        with pytest.raises(ValueError, match="columns and rows must have at least one index each; got 1 and 0"):
            skeleton(np.eye(3), columns=[0], rows=[])
