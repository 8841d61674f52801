"""Missing entries, weights and negative entries: functions, the estimator, readers, files, and the command."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

import gsnmf
from gsnmf import GSNMF
from gsnmf.commands import run
from gsnmf.datasets import planted, read_matrix

NAN = float("nan")
QUICK = {"effort": "fast"}


@pytest.fixture(scope="module")
def data():
    return planted((50, 40), 2, 2, noise_level=0.02, random_state=1)


@pytest.fixture(scope="module")
def holed(data):
    return np.where(np.random.default_rng(0).random(data.matrix.shape) < 0.4, NAN, data.matrix)


@pytest.fixture(scope="module")
def result(holed):
    return gsnmf.factorize(holed, 4, missing_values=NAN, **QUICK)


@pytest.fixture(scope="module")
def model(holed):
    return GSNMF(4, missing_values=NAN, **QUICK).fit(holed)


def unstored(holed):
    rows, columns = np.nonzero(~np.isnan(holed))
    return sp.coo_array((holed[rows, columns], (rows, columns)), shape=holed.shape).tocsr()


class TestFunctions:
    def test_select_chooses_what_factorize_does(self, holed, result):
        assert gsnmf.select(holed, 4, missing_values=NAN, **QUICK) == result.selection

    def test_fit_weights(self, holed, result):
        weights = gsnmf.fit_weights(holed, result.columns, result.rows, missing_values=NAN)
        assert weights.relative_error == pytest.approx(result.relative_error, rel=1e-3)
        sparse = gsnmf.fit_weights(unstored(holed), result.columns, result.rows, missing_values="unstored")
        assert sparse.relative_error == pytest.approx(weights.relative_error, rel=1e-3)

    def test_rank_path(self, holed, result):
        path = gsnmf.rank_path(holed, 6, missing_values=NAN)
        assert np.all(np.diff(path.errors) <= 1e-12)
        columns, rows = path.selection(4)
        weights = gsnmf.fit_weights(holed, columns, rows, missing_values=NAN)
        # the completion has another rank there, and the holes of what is chosen are filled once more
        assert path.errors[4] == pytest.approx(weights.relative_error, rel=0.3)
        assert path.errors[4] >= 0.9 * result.relative_error

    def test_error_in_the_unit_of_the_data(self, holed, result):
        seen = ~np.isnan(holed)
        residual = (result.reconstruct() - holed)[seen]
        assert result.absolute_error == pytest.approx(np.linalg.norm(residual))
        assert f"on the {100 * seen.mean():.3g} % observed" in repr(result)

    def test_negative_entries_are_clipped_everywhere(self, data):
        matrix = data.matrix.copy()
        matrix[0, 0] = -1e-4
        clipped = np.maximum(matrix, 0.0)
        assert gsnmf.factorize(matrix, 3, method="gspa", negative="clip").clipped_share > 0
        assert gsnmf.select(matrix, 3, method="gspa", negative="clip") == gsnmf.select(clipped, 3, method="gspa")
        assert gsnmf.fit_weights(matrix, [1], [], negative="clip") == gsnmf.fit_weights(clipped, [1], [])
        assert gsnmf.rank_path(matrix, 2, negative="clip") == gsnmf.rank_path(clipped, 2)
        assert_array_equal(
            GSNMF(3, method="gspa", negative="clip").fit_transform(matrix),
            GSNMF(3, method="gspa").fit_transform(clipped),
        )

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda M: gsnmf.factorize(M, 2), r"got NaN .* gsnmf\.factorize\(\.\.\., missing_values=numpy\.nan\)"),
            (lambda M: GSNMF(2).fit(M), r"GSNMF\(missing_values=numpy\.nan\)"),
            (
                lambda M: gsnmf.factorize(-M, 2, missing_values=NAN),
                r'negative="clip"\) sets the \d+ .*100 % of the norm',
            ),
            (lambda M: GSNMF(2).fit(np.nan_to_num(-M)), r'GSNMF\(negative="clip"\) sets the \d+ .*100 % of the norm'),
            (
                lambda M: gsnmf.factorize(sp.csr_array(np.nan_to_num(M)), 2, missing_values="unstored", scale=True),
                "scale must be False for a sparse array",
            ),
            (
                lambda M: gsnmf.factorize(M, 2, missing_values=NAN, method="gspa", checkpoint="c"),
                "checkpoint must be None",
            ),
            (lambda M: gsnmf.factorize(M, 2, missing_values="zero"), "numpy.nan, 'unstored' or None"),
            (lambda M: gsnmf.factorize(M, 2, negative="drop"), "negative must be 'error' or 'clip'"),
            (lambda M: GSNMF(2, missing_values=NAN, coefficients="model").fit(M), "must be 'refit'"),
            (lambda M: GSNMF(None, missing_values=NAN).fit(M), "n_components must be a number"),
            (lambda M: gsnmf.select(np.ma.masked_invalid(M), 2, missing_values=NAN), None),
        ],
    )
    def test_what_does_not_work_is_said(self, holed, call, message):
        kind = ValueError if message else TypeError
        with pytest.raises(kind, match=message or "masked array.*missing_values"):
            call(holed)

    def test_dask_is_refused(self, holed):
        array = pytest.importorskip("dask.array").from_array(holed, chunks=(25, 40))
        with pytest.raises(ValueError, match="in memory; matrix is a Dask array"):
            gsnmf.factorize(array, 2, missing_values=NAN)


class TestEstimator:
    def test_is_factorize(self, result, model, holed):
        assert model.result_ == result
        assert model.observed_share_ == result.observed_share
        seen = ~np.isnan(holed)
        assert model.reconstruction_err_ == pytest.approx(np.linalg.norm((result.reconstruct() - holed)[seen]))

    def test_new_samples_with_holes(self, model, holed):
        W = model.transform(holed[:5])
        for i in range(5):
            seen = ~np.isnan(holed[i])
            expected = nnls(model.components_[:, seen].T, holed[i, seen])[0]
            assert_allclose(W[i], expected, atol=1e-6 * expected.max())
        assert_array_equal(model.fit_transform(holed)[:5], W)
        assert_array_equal(model.predict(holed), model.labels_)
        assert model.score(holed) > 0.95

    def test_sparse_samples(self, holed, model):
        sparse = GSNMF(4, missing_values="unstored", **QUICK).fit(unstored(holed))
        assert sorted(sparse.feature_indices_) == sorted(model.feature_indices_)
        found = sparse.inverse_transform(sparse.transform(unstored(holed)[:3]))  # the weights are not unique, this is
        assert_allclose(found, model.inverse_transform(model.transform(holed[:3])), rtol=1e-3)

    def test_frames_and_explanations(self, holed):
        frame = pd.DataFrame(holed, columns=[f"band {j}" for j in range(40)])
        model = GSNMF(4, missing_values=NAN, **QUICK).fit(frame)
        assert len(model.topics().rows) == 4
        assert model.explain(3).rows
        assert model.explain(frame.iloc[3]).rows

    def test_without_holes_nothing_changes(self, data):
        plain, ours = GSNMF(3, method="gspa"), GSNMF(3, method="gspa", missing_values=NAN)
        assert_array_equal(plain.fit_transform(data.matrix), ours.fit_transform(data.matrix))
        assert plain.result_ == ours.result_

    def test_tags(self):
        assert GSNMF(missing_values=NAN).__sklearn_tags__().input_tags.allow_nan
        assert not GSNMF().__sklearn_tags__().input_tags.allow_nan

    def test_saved(self, model, holed, tmp_path):
        model.save(tmp_path / "model.npz")
        loaded = GSNMF.load(tmp_path / "model.npz")
        assert np.isnan(loaded.missing_values)
        assert_array_equal(loaded.transform(holed), model.transform(holed))
        assert loaded.observed_share_ == model.observed_share_


class TestImportance:
    """Weights of samples and features."""

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
    def test_error_is_the_weighted_one(self, data, form):
        rng = np.random.default_rng(2)
        samples, features = rng.random(50), rng.random(40)
        model = GSNMF((2, 2), tol=1e-8, **QUICK).fit(form(data.matrix), sample_weight=samples, feature_weight=features)
        result = model.result_
        weights = np.outer(samples / samples.max(), features / features.max())
        error = float((weights * (data.matrix - result.reconstruct()) ** 2).sum())
        assert result.absolute_error == pytest.approx(np.sqrt(error))
        by_entries = gsnmf.fit_weights(
            data.matrix, result.columns, result.rows, entry_weights=np.outer(samples, features), tolerance=1e-8
        )
        # chosen rows and columns are those of the data here, and weighted averages with a completion there
        assert result.relative_error == pytest.approx(by_entries.relative_error, rel=0.1)
        roots = np.sqrt(features)
        expected = nnls((model.components_ * roots).T, data.matrix[7] * roots)[0]
        assert_allclose(model.transform(form(data.matrix))[7], expected, atol=1e-6 * expected.max())

    def test_repeated_samples_have_the_weight_of_their_number(self, data):
        counts = np.random.default_rng(0).integers(0, 4, 50)
        model = GSNMF((2, 0), method="auto", **QUICK).fit(data.matrix, sample_weight=counts)
        repeated = GSNMF((2, 0), method="auto", **QUICK).fit(np.repeat(data.matrix, counts, axis=0))
        assert model.quality_ == pytest.approx(repeated.quality_, rel=1e-6)
        assert_array_equal(model.predict(data.matrix), repeated.predict(data.matrix))

    def test_equal_weights_change_nothing(self, data):
        plain = GSNMF(3, method="gspa").fit(data.matrix)
        assert GSNMF(3, method="gspa").fit(data.matrix, sample_weight=np.full(50, 2.0)).result_ == plain.result_

    def test_with_holes(self, holed, model):
        weights = np.ones(50)
        weights[[1, 2]] = 0.0
        with pytest.warns(UserWarning, match="No entry is observed") as _:
            GSNMF(2, missing_values=NAN, method="gspa").fit(np.vstack([holed, np.full((1, 40), NAN)]))
        weighted = GSNMF(4, missing_values=NAN, **QUICK).fit(holed, sample_weight=weights)
        assert sorted(weighted.feature_indices_) == sorted(model.feature_indices_)
        assert weighted.observed_share_ < model.observed_share_

    @pytest.mark.parametrize(
        "weight", [np.ones(3), np.zeros(50), np.full(50, -1.0), np.full(50, NAN), np.full(50, np.inf), ["a"] * 50]
    )
    def test_wrong_weights(self, data, weight):
        with pytest.raises(ValueError, match="sample_weight must be"):
            GSNMF(2, method="gspa").fit(data.matrix, sample_weight=weight)


class TestFiles:
    def test_results_are_saved_with_what_fills_their_holes(self, holed, result, tmp_path):
        gsnmf.save(result, tmp_path / "r.npz")
        loaded = gsnmf.load(tmp_path / "r.npz", holed)
        assert loaded == result
        assert_allclose(loaded.reconstruct(), result.reconstruct())
        other = holed.copy()
        other[~np.isnan(other)] *= 1.01
        with pytest.raises(ValueError, match="the one that was factorized"):
            gsnmf.load(tmp_path / "r.npz", other)
        with pytest.raises(ValueError, match="missing entries"):
            gsnmf.load(tmp_path / "r.npz", np.nan_to_num(holed))

    def test_weights_and_sparse_data(self, holed, data, tmp_path):
        weights = np.random.default_rng(0).random(holed.shape) + 0.5
        weighted = gsnmf.factorize(data.matrix, 3, method="gspa", entry_weights=weights)
        gsnmf.save(weighted, tmp_path / "w.npz")
        assert gsnmf.load(tmp_path / "w.npz", data.matrix, entry_weights=weights) == weighted
        sparse = gsnmf.factorize(unstored(holed), 3, method="gspa", missing_values="unstored")
        gsnmf.save(sparse, tmp_path / "s.npz")
        assert gsnmf.load(tmp_path / "s.npz", unstored(holed)) == sparse

    def test_clipped(self, data, tmp_path):
        matrix = data.matrix - 1e-4
        result = gsnmf.factorize(matrix, 3, method="gspa", negative="clip")
        gsnmf.save(result, tmp_path / "c.npz")
        assert gsnmf.load(tmp_path / "c.npz", matrix) == result

    def test_empty_cells_are_missing(self, tmp_path):
        table = tmp_path / "table.csv"
        table.write_text(",a,b\nx,1,\ny,NA,4\nz,nan,5\n", encoding="utf-8")
        found = read_matrix(table, missing_values=NAN)
        assert_array_equal(found.matrix, [[1, NAN], [NAN, 4], [NAN, 5]])
        assert found.row_names == ("x", "y", "z")
        with pytest.raises(ValueError, match=r"the cell is empty at row 0, column 1.*missing_values=numpy.nan"):
            read_matrix(table)
        table.write_text("1,-2\n3,4\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r'negative="clip" .* the one negative entry, 36.5 % of the norm'):
            read_matrix(table)


class TestCommand:
    def test_missing_cells_and_negative_entries(self, holed, tmp_path, capsys):
        matrix = holed.copy()
        matrix[0, 0] = -1e-6
        file = tmp_path / "table.csv"
        pd.DataFrame(matrix).to_csv(file, index=False, header=False)
        options = ["--rank", "2", "--method", "gspa", "--out", str(tmp_path / "out")]
        assert run(["factorize", str(file), "--no-header", *options]) == 1
        assert "--missing nan" in capsys.readouterr().err
        assert run(["factorize", str(file), "--no-header", *options, "--missing", "nan", "--negative", "clip"]) == 0
        told = capsys.readouterr()
        assert "that are observed" in told.out.replace("\n", " ")
        assert "were set to zero" in told.err
        summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
        assert summary["observed_share"] < 0.7
        assert "are observed" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert gsnmf.load(tmp_path / "out" / "result.npz", matrix).observed_share == summary["observed_share"]

    def test_unstored_and_weights(self, holed, tmp_path):
        file, weights = tmp_path / "ratings.mtx", tmp_path / "weights.npy"
        scipy.io.mmwrite(file, unstored(holed))
        options = ["--rank", "2", "--method", "gspa", "--quiet", "--out", str(tmp_path / "out")]
        assert run(["factorize", str(file), *options, "--missing", "unstored"]) == 0
        np.save(weights, np.isfinite(holed) + 0.5)
        assert run(["factorize", str(file), *options, "--entry-weights", str(weights)]) == 0
        assert run(["factorize", str(file), *options, "--missing", "unstored", "--normalize"]) == 2
