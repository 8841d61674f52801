"""Dask arrays give what the same matrix gives in memory, whatever their chunks."""

import itertools
from collections import Counter
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import gsnmf
import gsnmf.checkpoint
from gsnmf.datasets import fully_random, planted
from gsnmf.diagnostics import Explanation
from gsnmf.matrix import wrap
from gsnmf.metrics import relative_error
from gsnmf.selection.successive_projection import generalized_successive_projection, successive_projection
from gsnmf.weights.out_of_core import RowSums, curvature_matrix, row_sums

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
passes = pytest.importorskip("gsnmf.matrix.dask.passes")

FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
    "coo_array": sp.coo_array,
}
CHUNKS = {
    "one": (-1, -1),
    "rows": (7, -1),
    "columns": (-1, 5),
    "both": (8, 6),
    "uneven": ((1, 0, 20, 2), (16, 0, 1)),
}


@pytest.fixture(autouse=True)
def _in_one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def to_dask(matrix, chunks, form=np.asarray):
    array = da.from_array(np.asarray(matrix), chunks=chunks)
    return array if form is np.asarray else array.map_blocks(form, dtype=array.dtype, meta=np.empty((0, 0)))


def random_matrix(shape, seed=0, density=0.6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (rng.random(shape) * (rng.random(shape) < density)).astype(dtype)


@st.composite
def chunkings(draw, length):
    """Sizes of chunks, some of them empty, that add up to a length."""
    cuts = sorted(draw(st.lists(st.integers(0, length), max_size=4)))
    return tuple(int(size) for size in np.diff([0, *cuts, length]))


def combinations():
    """All forms, chunks, types and sides; quick are a quarter of them, in which each two of these still meet."""
    kinds = list(itertools.product((np.float32, np.float64), (False, True)))
    for (i, form), (j, chunks), (k, kind) in itertools.product(enumerate(FORMS), enumerate(CHUNKS), enumerate(kinds)):
        yield pytest.param(form, chunks, *kind, marks=[] if k == (i + j) % 4 else pytest.mark.long)


@pytest.mark.parametrize(("form", "chunks", "dtype", "transposed"), list(combinations()))
def test_all_products_agree_with_those_in_memory(form, chunks, dtype, transposed):
    dense = random_matrix((23, 17), dtype=dtype)
    matrix, expected = wrap(to_dask(dense, CHUNKS[chunks], FORMS[form])), wrap(dense.astype(np.float64))
    if transposed:
        matrix, expected = matrix.T, expected.T
    assert matrix.T.T is matrix
    assert matrix.shape == expected.shape
    assert matrix.dtype == dtype
    rng = np.random.default_rng(1)
    m, n = matrix.shape
    indices = np.array([5, 16, 3])
    W, H = rng.random((m, 2)), rng.random((2, n))
    for operand in (rng.random(n), rng.random((n, 3))):
        np.testing.assert_allclose(matrix.dot(operand), expected.dot(operand), rtol=1e-12)
        assert matrix.dot(operand.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(matrix.columns(indices), expected.columns(indices))
    assert matrix.columns(indices).dtype == dtype
    for found, wanted in zip(matrix.with_products(indices), expected.with_products(indices), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(matrix.gram_rows(indices), expected.gram_rows(indices), rtol=1e-12)
    np.testing.assert_allclose(matrix.gram(np.sort(indices)), expected.gram(np.sort(indices)), rtol=1e-12)
    np.testing.assert_allclose(matrix.squared_column_norms, expected.squared_column_norms, rtol=1e-12)
    np.testing.assert_allclose(matrix.column_sums, expected.column_sums, rtol=1e-12)
    assert matrix.squared_residual(W, H) == pytest.approx(expected.squared_residual(W, H), rel=1e-12)
    np.testing.assert_allclose(
        matrix.residual_norms(indices, W, H[:, indices]),
        expected.residual_norms(indices, W, H[:, indices]),
        rtol=1e-12,
    )


@given(st.data())
@settings(max_examples=5)
def test_same_selections_and_weights_for_every_chunking(data):
    assert_same_selections_and_weights(data)


@pytest.mark.long
@given(st.data())
@settings(max_examples=40)
def test_same_selections_and_weights_for_many_chunkings(data):
    assert_same_selections_and_weights(data)


def assert_same_selections_and_weights(data):
    m, n = data.draw(st.integers(1, 15)), data.draw(st.integers(1, 15))
    seed, density = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.sampled_from([0.2, 0.7, 1.0]))
    form = FORMS[data.draw(st.sampled_from(sorted(FORMS)))]
    matrix = random_matrix((m, n), seed, density)
    chunks = data.draw(chunkings(m)), data.draw(chunkings(n))
    rank = data.draw(st.integers(1, max(m, n)))
    array = to_dask(matrix, chunks, form)
    for method in ("gspa", "spa-columns", "spa-rows"):
        found, expected = gsnmf.select(array, rank, method=method), gsnmf.select(matrix, rank, method=method)
        assert found.order == expected.order
        assert found.stop_reason == expected.stop_reason
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_array_equal(found.rows, expected.rows)
        weights = gsnmf.fit_weights(array, expected.columns, expected.rows, tolerance=1e-6)
        in_memory = gsnmf.fit_weights(matrix, expected.columns, expected.rows, tolerance=1e-6)
        assert weights.relative_error == pytest.approx(in_memory.relative_error, rel=1e-5, abs=1e-6)
        if not (expected.columns.size and expected.rows.size):  # with both, the weights are not unique
            np.testing.assert_allclose(weights.column_weights, in_memory.column_weights, atol=1e-8)
            np.testing.assert_allclose(weights.row_weights, in_memory.row_weights, atol=1e-8)


@pytest.mark.parametrize(
    ("method", "form"),
    [
        ("pursuit", "dense"),
        ("auto", "csr_array"),
        ("spa-both", "dense"),
        pytest.param("pursuit", "csr_array", marks=pytest.mark.long),
        pytest.param("auto", "dense", marks=pytest.mark.long),
        pytest.param("spa-both", "csr_array", marks=pytest.mark.long),
    ],
)
def test_methods_on_candidates_choose_the_same(method, form):
    matrix = random_matrix((60, 80), 3, 0.3)
    array = to_dask(matrix, (25, 30), FORMS[form])
    rank = (3, 4) if method == "spa-both" else 7
    found = gsnmf.factorize(array, rank, method=method, effort="fast")
    expected = gsnmf.factorize(matrix, rank, method=method, effort="fast")
    if method != "auto":  # which has more starts in memory
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_allclose(found.W @ found.H, expected.W @ expected.H, atol=1e-2)
    assert found.quality == pytest.approx(expected.quality, abs=2e-2 if method == "auto" else 1e-6)
    assert relative_error(array, found.W, found.H) == pytest.approx(found.relative_error, rel=1e-9)
    assert found.reconstruct(rows=slice(0, 2)).shape == (2, 80)


def test_the_path_of_ranks_is_the_same():
    matrix = random_matrix((30, 20), 2)
    found, expected = gsnmf.rank_path(to_dask(matrix, (8, 20)), 6), gsnmf.rank_path(matrix, 6)
    np.testing.assert_allclose(found.errors, expected.errors, atol=1e-6)


@pytest.mark.parametrize("shape", [(60, 90), pytest.param((90, 60), marks=pytest.mark.long)])
def test_residuals_far_below_the_columns(shape):
    """Matrix by linearity have no digits left there; the true residuals must decide."""
    rng = np.random.default_rng(0)
    matrix = (rng.random((shape[0], 13)) * np.geomspace(1, 1e-8, 13)) @ rng.random((13, shape[1]))
    array = to_dask(matrix, (30, 50))
    for method in ("gspa", "spa-columns", "spa-rows"):
        found, expected = gsnmf.select(array, 12, method=method), gsnmf.select(matrix, 12, method=method)
        assert found.order == expected.order
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_array_equal(found.rows, expected.rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["gspa", "spa-columns", "spa-rows"])
def test_an_exact_matrix_has_no_more_than_its_rank(dtype, method):
    truth = planted((50, 60), 4, 3, random_state=0) if method == "gspa" else planted((50, 60), 7, 0, random_state=0)
    matrix = np.asarray(truth.matrix).astype(dtype)
    found = gsnmf.select(to_dask(matrix, (20, 25)), 20, method=method)
    expected = gsnmf.select(matrix, 20, method=method)
    assert found.stop_reason == expected.stop_reason == "residual is zero"
    assert found.order == expected.order


@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_magnitudes(factor):
    matrix = random_matrix((20, 30))
    for form in (np.asarray, sp.csr_array):
        array = to_dask(matrix * factor, (11, 16), form)
        found, expected = (
            gsnmf.factorize(array, 5, method="spa-columns"),
            gsnmf.factorize(matrix, 5, method="spa-columns"),
        )
        np.testing.assert_array_equal(found.columns, expected.columns)
        assert found.relative_error == pytest.approx(expected.relative_error, rel=1e-9)
        np.testing.assert_allclose(found.W[:, :5], matrix[:, found.columns] * factor)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float16])
def test_other_types_are_computed_in_double_precision(dtype):
    matrix = (random_matrix((20, 30)) * 9).astype(dtype)
    found, expected = (
        gsnmf.factorize(da.from_array(matrix, chunks=16), 5, method="gspa"),
        gsnmf.factorize(matrix, 5, method="gspa"),
    )
    assert found.column_weights.dtype == np.float64
    np.testing.assert_array_equal(found.columns, expected.columns)


class TestPasses:
    """How often the data are read, counted where they are read."""

    def counted(self, matrix, chunks):
        reads = Counter()

        def read(chunk, block_id):
            reads[block_id] += 1
            return chunk

        array = da.from_array(matrix, chunks=chunks).map_blocks(read, dtype=matrix.dtype, meta=np.empty((0, 0)))
        return array, reads

    @pytest.mark.parametrize("chunks", [(10, -1), (-1, 9), (13, 17)])
    @pytest.mark.parametrize(("method", "passes"), [("gspa", 2), ("spa-columns", 1), ("spa-rows", 1)])
    def test_two_for_each_index_of_gspa_and_one_for_spa(self, chunks, method, passes):
        array, reads = self.counted(random_matrix((50, 40)), chunks)
        rank = 6
        gsnmf.select(array, rank, method=method)
        assert len(reads) == array.npartitions
        assert max(reads.values()) <= 1 + passes * rank

    def test_gspa_takes_two_for_a_column_and_one_and_its_chunk_for_a_row(self):
        array, reads = self.counted(random_matrix((50, 40)), (10, -1))
        found = gsnmf.select(array, 12, method="gspa")
        assert found.columns.size
        assert found.rows.size
        of_rows = np.bincount(found.rows // 10, minlength=5)
        expected = 1 + 2 * found.columns.size + found.rows.size + of_rows
        assert [reads[i, 0] for i in range(5)] == expected.tolist()

    def test_spa_takes_fewer_than_one_where_the_longest_are_chosen(self):
        """And none of its choices changes."""
        matrix = random_matrix((50, 40)) * np.geomspace(1, 100, 40)
        array, reads = self.counted(matrix, (10, -1))
        found = gsnmf.select(array, 12, method="spa-columns")
        np.testing.assert_array_equal(found.columns, gsnmf.select(matrix, 12, method="spa-columns").columns)
        assert max(reads.values()) <= 1 + 12 // 2

    def test_spa_takes_one_where_those_that_look_likely_are_copies(self):
        matrix = np.repeat(np.eye(12), 30, axis=1) * 1.01 ** -np.arange(360)
        array, reads = self.counted(matrix, (5, -1))
        assert gsnmf.select(array, 12, method="spa-columns").n_selected == 12
        assert max(reads.values()) <= 1 + 12

    def test_weights_take_one_pass_for_columns_and_two_with_rows(self):
        array, reads = self.counted(random_matrix((50, 40)), (13, -1))
        gsnmf.fit_weights(array, [1, 2], [])
        assert set(reads.values()) == {1 + 1}
        gsnmf.fit_weights(array, [1, 2], [3])
        assert max(reads.values()) == 2 + 1 + 2

    def test_the_count_of_the_products_is_that_of_the_reads(self):
        array, reads = self.counted(random_matrix((50, 40)), (13, -1))
        held = wrap(array)
        generalized_successive_projection(held, 5)
        successive_projection(held, 5, axis="rows")
        assert held.passes.n_passes == held.T.passes.n_passes == pytest.approx(sum(reads.values()) / array.npartitions)
        assert held.passes.n_passes <= 1 + 10 + 5

    def test_totals_of_a_very_long_axis_wait_until_they_are_asked_for(self, monkeypatch):
        monkeypatch.setattr(passes, "_LONG", 45)
        array, reads = self.counted(random_matrix((50, 40)), (13, -1))
        gsnmf.select(array, 6, method="spa-columns")
        assert max(reads.values()) <= 1 + 6
        held = wrap(array)
        np.testing.assert_allclose(held.T.squared_column_norms, (random_matrix((50, 40)) ** 2).sum(axis=1))
        assert held.passes.n_passes == 2

    def test_a_memory_map_is_not_copied(self, tmp_path):
        matrix = random_matrix((300, 200))
        np.save(tmp_path / "matrix.npy", matrix)
        mapped = np.load(tmp_path / "matrix.npy", mmap_mode="r")
        assert np.shares_memory(wrap(mapped)._held, mapped)
        found, expected = gsnmf.select(mapped, 9, method="gspa"), gsnmf.select(matrix, 9, method="gspa")
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_array_equal(found.rows, expected.rows)


class TestLongSide:
    """What is as long as the matrix has rows stays with its chunks."""

    tall = random_matrix((400, 12), 7)

    @pytest.fixture
    def fetched(self, monkeypatch):
        """Sizes of what came to the driver."""
        sizes = []
        original = passes.Passes.run

        def run(passes, **options):
            kept, fetched = original(passes, **options)
            sizes.extend(np.size(array) for array in fetched)
            return kept, fetched

        monkeypatch.setattr(passes.Passes, "run", run)
        return sizes

    @pytest.mark.parametrize(
        ("method", "form"),
        [
            ("gspa", "dense"),
            ("gspa", "csr_array"),
            ("spa-columns", "dense"),
            ("spa-rows", "csr_array"),
            pytest.param("spa-columns", "csr_array", marks=pytest.mark.long),
            pytest.param("spa-rows", "dense", marks=pytest.mark.long),
        ],
    )
    def test_the_driver_never_sees_it(self, form, method, fetched, monkeypatch):
        monkeypatch.setattr("gsnmf.matrix.dask.matrix._IN_DRIVER", 0)
        expected = gsnmf.factorize(self.tall, 6, method=method)
        found = gsnmf.factorize(to_dask(self.tall, (50, -1), FORMS[form]), 6, method=method)
        assert fetched
        assert max(fetched) < 400
        assert found.selection.order == expected.selection.order
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_array_equal(found.rows, expected.rows)
        assert found.relative_error == pytest.approx(expected.relative_error, rel=1e-6)
        assert found.converged

    @pytest.mark.parametrize("chunks", CHUNKS)
    def test_rows_alone_are_chosen_without_their_products(self, chunks, monkeypatch):
        matrix = random_matrix((23, 17), 3)
        expected = gsnmf.select(matrix, 15, method="spa-rows")
        monkeypatch.setattr("gsnmf.matrix.dask.matrix._IN_DRIVER", 0)
        found = gsnmf.select(to_dask(matrix, CHUNKS[chunks]), 15, method="spa-rows")
        np.testing.assert_array_equal(found.rows, expected.rows)

    def test_the_first_of_equal_rows_whatever_chunk_it_is_in(self, monkeypatch):
        monkeypatch.setattr("gsnmf.matrix.dask.matrix._IN_DRIVER", 0)
        steps = np.array([100, 40, 0, 0, 90, 10]) * np.finfo(float).eps
        for order in range(6):
            matrix = np.diag(np.sqrt(1.0 - np.roll(steps, order)))
            found = gsnmf.select(to_dask(matrix, (2, -1)), 3, method="spa-rows")
            np.testing.assert_array_equal(found.rows, gsnmf.select(matrix, 3, method="spa-rows").rows)

    def test_residuals_of_rows_far_below_them(self, monkeypatch):
        monkeypatch.setattr("gsnmf.matrix.dask.matrix._IN_DRIVER", 0)
        rng = np.random.default_rng(0)
        matrix = (rng.random((60, 25)) * np.geomspace(1, 1e-8, 25)) @ rng.random((25, 90))
        found = gsnmf.select(to_dask(matrix, (20, 30)), 24, method="spa-rows")
        np.testing.assert_array_equal(found.rows, gsnmf.select(matrix, 24, method="spa-rows").rows)

    @pytest.mark.parametrize("method", ["gspa", "spa-rows"])
    def test_a_checkpoint_holds_only_what_is_short(self, method, tmp_path, monkeypatch):
        monkeypatch.setattr("gsnmf.matrix.dask.matrix._IN_DRIVER", 0)
        monkeypatch.setattr("gsnmf.checkpoint._SHARE", 0.0)
        path, array = tmp_path / "selection.npz", to_dask(self.tall, (50, -1))
        expected = gsnmf.select(self.tall, 9, method=method)
        saved = gsnmf.checkpoint.Checkpoint.save

        def interrupted(checkpoint, picks, state, *, last=False):
            saved(checkpoint, picks, state, last=last)
            if len(picks) == 5:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(gsnmf.checkpoint.Checkpoint, "save", interrupted)
            with pytest.raises(KeyboardInterrupt):
                gsnmf.select(array, 9, method=method, checkpoint=path)
        with np.load(path) as file:
            assert max(file[name].size for name in file.files) <= 12 * 9
        found = gsnmf.select(array, 9, method=method, checkpoint=path)
        assert found.order == expected.order
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_array_equal(found.rows, expected.rows)

    def test_checkpoints_tell_rows_in_another_order_apart(self, tmp_path):
        path = tmp_path / "selection.npz"
        gsnmf.select(to_dask(self.tall, (50, -1)), 3, method="gspa", checkpoint=path)
        with pytest.raises(ValueError, match="another matrix"):
            gsnmf.select(to_dask(self.tall[::-1], (50, -1)), 3, method="gspa", checkpoint=path)


class TestLazyResults:
    """Row weights of a Dask array are one, and so is all that has as many rows."""

    matrix = random_matrix((60, 24), 9)

    @classmethod
    @cache
    def result(cls, form="dense", method="gspa"):
        return gsnmf.factorize(to_dask(cls.matrix, (17, 10), FORMS[form]), 6, method=method)

    @pytest.mark.parametrize(
        ("form", "method"),
        [
            *((form, method) for form in ("dense", "csr_array") for method in ("gspa", "spa-columns", "spa-rows")),
            *(
                pytest.param(form, "gspa", marks=pytest.mark.long)
                for form in FORMS
                if form not in ("dense", "csr_array")
            ),
        ],
    )
    def test_what_is_lazy(self, form, method):
        found = self.result(form, method=method)
        for lazy, width in ((found.row_weights, found.rows.size), (found.W, 6), (found.reconstruct(), 24)):
            assert isinstance(lazy, da.Array)
            assert lazy.shape == (60, width)
            assert lazy.chunks[0] == (17, 17, 17, 9)
        for short in (found.column_weights, found.H):
            assert isinstance(short, np.ndarray)
        error = np.linalg.norm(self.matrix - found.reconstruct().compute()) / np.linalg.norm(self.matrix)
        assert error == pytest.approx(found.relative_error, rel=1e-9)
        assert repr(found).startswith("Factorization: ")
        # BLAS may round differently for two rows and for all
        np.testing.assert_allclose(found.reconstruct(rows=[3, 40]), found.reconstruct().compute()[[3, 40]], atol=1e-15)
        np.testing.assert_array_equal(found.W[:, : found.columns.size], self.matrix[:, found.columns])

    def test_dense_and_sparse_chunks_side_by_side(self):
        def mixed(chunk, block_id):
            return sp.csr_array(chunk) if sum(block_id) % 2 else chunk

        array = da.from_array(self.matrix, chunks=(17, 10)).map_blocks(mixed, dtype=float, meta=np.empty((0, 0)))
        found, expected = gsnmf.factorize(array, 6, method="gspa"), self.result()
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_allclose(found.reconstruct(), expected.reconstruct(), atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_their_types(self, dtype):
        found = gsnmf.factorize(da.from_array(self.matrix.astype(dtype), chunks=20), 5, method="gspa")
        assert found.row_weights.dtype == found.row_weights.compute().dtype == dtype
        assert found.W.dtype == found.W.compute().dtype == dtype

    def test_a_start_is_never_made_worse(self):
        array, columns, rows = to_dask(self.matrix, (17, 10)), [3, 5, 8], [1, 30]
        first = gsnmf.fit_weights(array, columns, rows)
        again = gsnmf.fit_weights(array, columns, rows, start=(first.column_weights, first.row_weights))
        assert again.n_iterations == 0
        assert again.relative_error <= first.relative_error * (1 + 1e-12)

    def test_zero_and_repeated_columns_and_rows(self):
        matrix = self.matrix.copy()
        matrix[:, 3] = matrix[7] = 0.0
        matrix[:, 5], matrix[9] = matrix[:, 4], 2.0 * matrix[8]
        array = to_dask(matrix, (17, 10))
        for columns, rows in (([3, 4, 5], [7, 8, 9]), ([3], [7]), ([], [7]), ([3], []), ([4, 5], [7]), ([3], [8, 9])):
            found = gsnmf.fit_weights(array, columns, rows, tolerance=1e-7)
            expected = gsnmf.fit_weights(matrix, columns, rows, tolerance=1e-7)
            assert found.relative_error == pytest.approx(expected.relative_error, rel=1e-6)
            assert not found.column_weights[[j == 3 for j in columns]].any()
            assert not found.row_weights.compute()[:, [i == 7 for i in rows]].any()

    def test_columns_that_depend_on_each_other_to_working_precision(self):
        matrix = self.matrix.copy()
        matrix[:, 5] = matrix[:, 4] + 1e-7 * matrix[:, 6]
        for chunks in ((17, 10), (2, -1), (60, 24)):
            found = gsnmf.fit_weights(to_dask(matrix, chunks), [4, 5, 6], [])
            assert found.relative_error == pytest.approx(gsnmf.fit_weights(matrix, [4, 5, 6], []).relative_error)
            assert found.optimality < 1e-6

    def test_a_few_steps_cross_the_valley(self):
        """Where alternating between columns and rows is still at an error of a percent after sixty rounds."""
        truth = fully_random(0.0, shape=(100, 100), n_columns=20, n_rows=20, random_state=0)
        found = gsnmf.fit_weights(da.from_array(truth.matrix, chunks=(30, -1)), truth.columns, truth.rows)
        assert found.converged
        assert found.n_iterations <= 15
        assert found.relative_error < 1e-6

    def test_the_sums_of_rows_are_those_of_their_problems(self):
        rng = np.random.default_rng(0)
        triangle = np.linalg.qr(rng.random((9, 3)))[1]
        triangle /= np.linalg.norm(triangle, axis=0)
        targets, C = rng.standard_normal((50, 3)), rng.random((50, 2))
        sums = RowSums.unpacked(row_sums(targets, C, triangle, with_curvature=True), 2, 3)
        Q = np.array([nnls(triangle, target)[0] for target in targets])
        residual = targets - Q @ triangle.T
        assert sums.squared_change == pytest.approx(np.sum(residual**2) - np.sum(targets**2))
        assert sums.squared_violation < 1e-20
        np.testing.assert_allclose(sums.coupling, Q.T @ C, atol=1e-12)
        curvature = np.zeros((3, 2, 3, 2))
        for q, c in zip(Q, C, strict=True):
            at = np.ix_(q > 0, q > 0)
            inverse = np.zeros((3, 3))
            inverse[at] = np.linalg.inv((triangle.T @ triangle)[at])
            curvature += np.einsum("ac,b,d->abcd", inverse, c, c)
        np.testing.assert_allclose(curvature_matrix(sums.curvature, 2, 3), curvature.reshape(6, 6), atol=1e-9)

    def test_without_curvature_it_is_still_right(self, monkeypatch):
        monkeypatch.setattr("gsnmf.weights.out_of_core._CURVATURE_BYTES", 0)
        found = gsnmf.fit_weights(to_dask(self.matrix, (17, 10)), [3, 5], [1, 30])
        expected = gsnmf.fit_weights(self.matrix, [3, 5], [1, 30])
        assert found.relative_error == pytest.approx(expected.relative_error, rel=1e-4)

    @pytest.mark.parametrize("saved", ["dask", "memory"])
    @pytest.mark.parametrize("loaded", ["dask", "memory"])
    def test_saving_and_loading(self, saved, loaded, tmp_path):
        array = to_dask(self.matrix, (17, 10))
        result = gsnmf.factorize(array if saved == "dask" else self.matrix, 6, method="gspa")
        gsnmf.save(result, tmp_path / "result.npz")
        again = gsnmf.load(tmp_path / "result.npz", array if loaded == "dask" else self.matrix)
        assert isinstance(again.row_weights, da.Array) == (loaded == "dask")
        assert again.relative_error == result.relative_error
        tolerance = 1e-9 if saved == "dask" or loaded == "memory" else 1e-2
        np.testing.assert_allclose(again.row_weights, result.row_weights, atol=tolerance)

    def test_explanations_are_the_same(self):
        found = self.result("csr_array")
        weights = replace(found.weights, row_weights=found.row_weights.compute())
        in_memory = replace(found, source=wrap(self.matrix), weights=weights)
        ours, theirs = Explanation(found), Explanation(in_memory)
        for a, b in zip(ours.result.factors(4), theirs.result.factors(4), strict=True):
            assert (a.axis, a.index) == (b.axis, b.index)
            assert a.share == pytest.approx(b.share)
            np.testing.assert_array_equal(a.rows, b.rows)
            np.testing.assert_allclose(a.row_strengths, b.row_strengths)
            np.testing.assert_array_equal(a.columns, b.columns)
        for axis in ("rows", "columns"):
            np.testing.assert_allclose(
                ours.residuals(axis).relative_errors, theirs.residuals(axis).relative_errors, atol=1e-9
            )
        for a, b in zip(ours.pictures(8), theirs.pictures(8), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        np.testing.assert_allclose(ours.rank_path().errors, theirs.rank_path().errors, atol=1e-6)
        assert "strongest rows" in found._repr_html_()

    def test_too_long_a_left_factor_is_not_held(self, monkeypatch):
        monkeypatch.setattr("gsnmf.diagnostics._MOST_BYTES", 8 * 100)
        with pytest.raises(ValueError, match=r"at most 100 entries; got 60 x 6\. Factorize some of the rows"):
            Explanation(self.result()).residuals("rows")
        assert len(self.result().factors()) == 6

    @pytest.mark.parametrize(
        ("form", "image_shape"),
        [
            ("dense", (4, 6)),
            ("csr_array", (6, 10)),
            pytest.param("dense", (6, 10), marks=pytest.mark.long),
            pytest.param("csr_array", (4, 6), marks=pytest.mark.long),
        ],
    )
    def test_plots(self, form, image_shape, figures):
        from gsnmf import plotting

        found = self.result(form)
        for plot in (
            plotting.plot_comparison, plotting.plot_errors, plotting.plot_rank_path, plotting.plot_residual,
            partial(plotting.plot_factor, number=1), partial(plotting.plot_factor, number=1, members="rows"),
            partial(plotting.plot_pixels, image_shape=image_shape),
            partial(plotting.plot_images, image_shape=image_shape),
            partial(plotting.plot_reconstructions, image_shape=image_shape, images=[2, 5]),
        ):  # fmt: skip
            assert plot(found) is not None

    def test_a_report(self):
        pytest.importorskip("jinja2")
        from gsnmf.reports.findings import gather
        from gsnmf.reports.page import render_report

        assert "No bound computed" in render_report(gather(self.result()))

    def test_metrics_read_a_lazy_factor_chunk_by_chunk(self):
        for scale in (1.0, 1e-200, 1e200):
            array = to_dask(self.matrix * scale, (17, 10))
            found = self.result() if scale == 1.0 else gsnmf.factorize(array, 6, method="gspa")
            assert relative_error(array, found.W, found.H) == pytest.approx(found.relative_error, rel=1e-9)
        with pytest.raises(ValueError, match="W and H must have shapes"):
            relative_error(array, found.W[:, 1:], found.H)
        with pytest.raises(ValueError, match="W must be finite"):
            relative_error(array, da.full_like(found.W, np.nan), found.H)


class TestErrors:
    def test_unknown_chunks_name_the_fix(self):
        array = da.from_array(np.eye(6), chunks=2)
        unknown = array[da.from_array(np.arange(6) > 1, chunks=2)]
        with pytest.raises(ValueError, match=r"chunks of known sizes.*matrix\.compute_chunk_sizes\(\)"):
            gsnmf.select(unknown, 2, method="gspa")
        unknown.compute_chunk_sizes()
        assert gsnmf.select(unknown, 2, method="gspa").n_selected == 2

    @pytest.mark.parametrize("form", ["dense", "csr_array"])
    @pytest.mark.parametrize(
        ("value", "wanted"), [(np.nan, "finite"), (-2.0, "nonnegative"), (np.inf, "finite"), (-np.inf, "finite")]
    )
    def test_bad_entries_are_found_where_they_are(self, form, value, wanted):
        matrix = random_matrix((20, 30), density=1.0)
        matrix[13, 22] = value
        array = to_dask(matrix, (6, 10), FORMS[form])
        shown = "NaN" if np.isnan(value) else value
        message = (
            rf"chunk \(2, 2\) of matrix must be {wanted}; got {shown} at row 13, column 22\. To take such .* zero: "
        )
        for work in (gsnmf.select, gsnmf.factorize):
            with pytest.raises(ValueError, match=message):
                work(array, 3, method="gspa")

    def test_the_fix_for_bad_entries_works(self):
        matrix = random_matrix((20, 30), density=1.0)
        matrix[13, 22], matrix[0, 0], matrix[1, 1] = np.nan, -1.0, np.inf
        array = da.from_array(matrix, chunks=7)
        fixed = da.where((array > 0) & (array < np.inf), array, 0)

        def zeroed(chunk):
            chunk.data[~((chunk.data > 0) & (chunk.data < np.inf))] = 0
            return chunk

        sparse = to_dask(matrix, 7, sp.csr_array).map_blocks(zeroed, dtype=float, meta=np.empty((0, 0)))
        for good in (fixed, sparse):
            assert gsnmf.select(good, 3, method="gspa").n_selected == 3

    def test_wrong_chunks_are_found(self):
        array = da.from_array(np.ones((8, 8)), chunks=4).map_blocks(lambda c: c[:2], dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(ValueError, match=r"chunk \(\d, \d\) of matrix must have shape \(4, 4\).*got \(2, 4\)"):
            gsnmf.select(array, 2, method="gspa")

    def test_other_chunks_are_refused(self):
        array = da.from_array(np.ones((8, 8)), chunks=4).map_blocks(
            lambda c: np.ma.masked_equal(c, 1), dtype=float, meta=np.empty((0, 0))
        )
        with pytest.raises(TypeError, match="masked array"):
            gsnmf.select(array, 2, method="gspa")

    def test_objects_and_shapes(self):
        with pytest.raises(TypeError, match=r"dtype object\. Use matrix\.astype\(float\)"):
            gsnmf.select(da.from_array(np.ones((4, 4), dtype=object), chunks=2), 2, method="gspa")
        with pytest.raises(TypeError, match="real numbers; got dtype complex128"):
            gsnmf.select(da.ones((4, 4), dtype=complex), 2, method="gspa")
        with pytest.raises(ValueError, match="two-dimensional"):
            gsnmf.select(da.ones(4), 2, method="gspa")
        with pytest.raises(ValueError, match="at least one row"):
            gsnmf.select(da.ones((0, 4)), 2, method="gspa")

    def test_methods_that_need_the_matrix_say_so_before_reading_it(self):
        def fail(chunk):
            raise AssertionError

        array = da.ones((6, 6)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(ValueError, match=r"one of 'auto', .*'gspa'.* for a Dask array; got 'convex'"):
            gsnmf.select(array, 2, method="convex")
        with pytest.raises(ValueError, match=r"scale must be False for a Dask array"):
            gsnmf.factorize(array, 2, method="gspa", scale=True)
        with pytest.raises(ValueError, match=r"rank must be in \[1, 6\]"):
            gsnmf.select(array, 7, method="gspa")

    @pytest.mark.parametrize("method", ["auto", "pursuit"])
    def test_methods_with_candidates_say_where_they_end(self, method, monkeypatch):
        monkeypatch.setattr("gsnmf.search.candidates._MOST_MEMORY", 1000)
        with pytest.raises(ValueError, match=r"method must be one of 'gspa', .* of shape \(6, 6\): .* would take 0 GB"):
            gsnmf.select(da.ones((6, 6)), 2, method=method)

    def test_functions_that_need_the_matrix_say_so(self):
        with pytest.raises(TypeError, match=r"pass matrix\.compute\(\) if it fits"):
            gsnmf.scale(da.ones((6, 6)))

    def test_dataframes_name_the_fix(self):
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        frame = dd.from_pandas(pd.DataFrame(random_matrix((20, 5))), npartitions=3)
        with pytest.raises(TypeError, match=r"to_dask_array\(lengths=True\)"):
            gsnmf.select(frame, 2)

    def test_absurdly_small_chunks_are_warned_of(self):
        with pytest.warns(UserWarning, match=r"has 3600 chunks of about 1 entries.*rechunk"):
            wrap(da.ones((60, 60), chunks=1))


class TestStores:
    """Zarr, Parquet and NumPy files that are read chunk by chunk."""

    matrix = random_matrix((120, 40), 5)

    def assert_same_result(self, array):
        found, expected = gsnmf.factorize(array, 6, method="gspa"), gsnmf.factorize(self.matrix, 6, method="gspa")
        np.testing.assert_array_equal(found.columns, expected.columns)
        np.testing.assert_array_equal(found.rows, expected.rows)
        assert found.quality == pytest.approx(expected.quality, abs=1e-6)

    def test_zarr(self, tmp_path):
        pytest.importorskip("zarr")
        store = str(tmp_path / "matrix.zarr")
        da.from_array(self.matrix, chunks=(50, 40)).to_zarr(store)
        stored = da.from_zarr(store)
        assert stored.chunks == ((50, 50, 20), (40,))
        self.assert_same_result(stored)

    def test_parquet(self, tmp_path):
        pytest.importorskip("pyarrow")
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        frame = pd.DataFrame(self.matrix, columns=[f"x{j}" for j in range(40)])
        for part in range(3):
            frame[part * 40 : (part + 1) * 40].to_parquet(tmp_path / f"part{part}.parquet")
        stored = dd.read_parquet(tmp_path).to_dask_array(lengths=True)
        assert stored.chunks == ((40, 40, 40), (40,))
        self.assert_same_result(stored)

    def test_memory_map(self, tmp_path):
        np.save(tmp_path / "matrix.npy", self.matrix)
        mapped = np.load(tmp_path / "matrix.npy", mmap_mode="r")
        assert not mapped.flags.writeable
        self.assert_same_result(da.from_array(mapped, chunks=(50, -1)))
        self.assert_same_result(mapped)


class TestEstimator:
    @pytest.mark.parametrize(
        ("form", "chunks"),
        [
            pytest.param(form, chunks, marks=[] if (i + j) % 2 == 0 else pytest.mark.long)
            for i, form in enumerate(["dense", "csr_array"])
            for j, chunks in enumerate(CHUNKS)
        ],
    )
    def test_the_same_components_and_coefficients(self, form, chunks):
        X = random_matrix((23, 17), 4)
        new = random_matrix((23, 17), 5)
        found = gsnmf.GSNMF(5, method="spa-rows").fit(to_dask(X, CHUNKS[chunks], FORMS[form]))
        expected = gsnmf.GSNMF(5, method="spa-rows").fit(X)
        np.testing.assert_allclose(found.components_, expected.components_)
        assert found.n_features_in_ == 17
        assert found.quality_ == pytest.approx(expected.quality_)
        assert found.reconstruction_err_ == pytest.approx(expected.reconstruction_err_)
        lazy = found.transform(to_dask(new, CHUNKS[chunks], FORMS[form]))
        assert isinstance(lazy, da.Array)
        assert isinstance(found.row_weights_, da.Array)
        assert lazy.chunks[0] == da.core.normalize_chunks(CHUNKS[chunks], X.shape)[0]
        np.testing.assert_allclose(lazy.compute(), expected.transform(new), atol=1e-8)
        again = found.inverse_transform(lazy)
        assert isinstance(again, da.Array)
        np.testing.assert_allclose(again, expected.inverse_transform(expected.transform(new)), atol=1e-8)
        np.testing.assert_allclose(found.row_weights_.compute(), expected.row_weights_, atol=1e-8)
        assert found.score(to_dask(new, CHUNKS[chunks])) == pytest.approx(expected.score(new))

    def test_columns_and_rows_and_their_description(self):
        X = random_matrix((30, 20), 4, dtype=np.float32)
        array = to_dask(X, (8, 20))
        found, expected = gsnmf.GSNMF(6, method="gspa"), gsnmf.GSNMF(6, method="gspa").fit(X)
        W = found.fit_transform(array)
        assert W.dtype == np.float32
        np.testing.assert_allclose(W.compute(), found.transform(array).compute())
        np.testing.assert_allclose(
            W.compute() @ found.components_, expected.inverse_transform(expected.transform(X)), atol=1e-2
        )
        assert [row[1] for row in found.topics(3).rows] == [row[1] for row in expected.topics(3).rows]
        assert found.explain(2).rows[0][:2] == expected.explain(2).rows[0][:2]

    @pytest.mark.parametrize("form", ["dense", "csr_array"])
    def test_features_alone(self, form):
        X = random_matrix((23, 17), 4)
        array = to_dask(X, (8, 6), FORMS[form])
        found, expected = gsnmf.GSNMFSelector(5).fit(array), gsnmf.GSNMFSelector(5).fit(X)
        np.testing.assert_array_equal(found.feature_indices_, expected.feature_indices_)
        lazy = found.transform(array)
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(lazy, expected.transform(X))
        with pytest.raises(ValueError, match="9 features"):
            found.transform(da.ones((4, 9)))

    def test_other_features_are_refused(self):
        model = gsnmf.GSNMF(3, method="gspa").fit(da.from_array(random_matrix((20, 10)), chunks=5))
        with pytest.raises(ValueError, match="9 features"):
            model.transform(da.ones((4, 9)))

    def test_bad_entries_of_new_samples_are_found(self):
        model = gsnmf.GSNMF(3, method="gspa").fit(da.from_array(random_matrix((20, 10)), chunks=5))
        X = random_matrix((20, 10), density=1.0)
        X[13, 7] = -1.0
        for form in (np.asarray, sp.csr_array):
            with pytest.raises(ValueError, match=r"X must be nonnegative; got -1\.0 at row 13, column 7"):
                model.transform(to_dask(X, (6, 4), form)).compute()
