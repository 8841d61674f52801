"""Missing entries and entry weights: the choice of a rank, alternatives, mixtures, and scaling."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import gsnmf
from gsnmf import GSNMF
from gsnmf.datasets import planted
from gsnmf.matrix.input import observe
from gsnmf.model_selection.held_out_entries import leave_out
from gsnmf.weights.observed import solve_anchored

NAN = float("nan")
QUICK = {"n_repeats": 1, "effort": "fast"}


@pytest.fixture(scope="module")
def data():
    return planted((60, 45), 2, 2, noise_level=0.02, random_state=1)


@pytest.fixture(scope="module")
def holed(data):
    return np.where(np.random.default_rng(0).random(data.matrix.shape) < 0.3, NAN, data.matrix)


@pytest.fixture(scope="module")
def result(holed):
    return gsnmf.factorize(holed, 4, missing_values=NAN, effort="fast")


@pytest.fixture(scope="module")
def unstored(holed):
    rows, columns = np.nonzero(~np.isnan(holed))
    return sp.coo_array((holed[rows, columns], (rows, columns)), shape=holed.shape).tocsr()


class TestRank:
    def test_left_out_entries_are_observed_ones(self, holed):
        weights = 1.0 + np.random.default_rng(1).random(holed.shape)
        seen = observe(holed, missing_values=NAN, entry_weights=weights)
        parts = leave_out(seen, 0.25, 3, np.random.default_rng(0))
        taken = np.zeros(holed.shape, dtype=int)
        for part in parts:
            assert_array_equal(part.values.toarray() + part.rest.values.toarray(), np.nan_to_num(holed))
            taken += part.values.toarray() > 0
            stands_for = part.values.nnz / seen.values.nnz
            weighted = stands_for * part.weights * part.values.data**2
            assert weighted.sum() + part.rest.squared_norm == pytest.approx(seen.squared_norm)
        assert taken.max() == 1

    def test_planted_rank_is_found(self):
        data = planted((80, 60), 3, 3, noise_level=0.05, random_state=0)
        hidden = np.random.default_rng(0).random((80, 60)) < 0.3
        holed = np.where(hidden, NAN, data.matrix)
        choice = gsnmf.choose_rank(holed, range(4, 9), missing_values=NAN, n_repeats=2, effort="fast")
        assert choice.rank == 6

    def test_sparse_is_as_dense(self, holed, unstored):
        dense = gsnmf.choose_rank(holed, [3, 4], missing_values=NAN, **QUICK)
        sparse = gsnmf.choose_rank(unstored, [3, 4], missing_values="unstored", **QUICK)
        assert_allclose(sparse.errors, dense.errors, rtol=0.05)
        assert_allclose(sparse.qualities, dense.qualities, rtol=0.05)

    def test_hidden_entries_do_not_matter(self, data, holed):
        weights = (~np.isnan(holed)).astype(float)
        spoilt = np.where(np.isnan(holed), 100.0, data.matrix)
        by_weights = gsnmf.choose_rank(spoilt, [3, 4], entry_weights=weights, **QUICK)
        by_holes = gsnmf.choose_rank(holed, [3, 4], missing_values=NAN, **QUICK)
        assert_allclose(by_weights.errors, by_holes.errors)
        assert_allclose(by_weights.qualities, by_holes.qualities)

    def test_quality_is_that_of_observed_entries(self, holed, result):
        choice = gsnmf.choose_rank(holed, [4, 5], missing_values=NAN, **QUICK)
        assert choice.qualities[0] == pytest.approx(result.quality, abs=0.005)

    def test_without_holes_nothing_changes(self, data):
        plain, ours = (gsnmf.choose_rank(data.matrix, [3, 4], missing_values=kind, **QUICK) for kind in (None, NAN))
        assert plain == ours

    def test_estimator(self, holed):
        model = GSNMF("auto", missing_values=NAN, effort="fast").fit(holed[:, :6])
        assert model.n_components_ == model.rank_choice_.rank
        with pytest.raises(ValueError, match="weights of samples"):
            GSNMF("auto", missing_values=NAN).fit(holed, sample_weight=np.arange(60.0))


class TestAlternatives:
    def test_errors_are_those_of_observed_entries(self, holed, result):
        seen = observe(holed, missing_values=NAN)
        table = result.alternatives(2)
        assert len(table.rows) == 8
        for factor, axis, chosen, index, error, lost in table.rows[::3]:
            columns, rows = result.columns.copy(), result.rows.copy()
            (columns if axis == "columns" else rows)[factor - (0 if axis == "columns" else columns.size)] = index
            assert chosen in (result.columns if axis == "columns" else result.rows)
            exact = solve_anchored(seen, result.source, columns, rows, tolerance=1e-6).weights
            assert error == pytest.approx(exact.relative_error, rel=0.02)
            assert lost == pytest.approx(100 * (error - result.relative_error))

    def test_planted_ones_have_no_equal(self, result):
        assert min(row[5] for row in result.alternatives(1).rows) > 0.1

    def test_quick(self, result):
        quick = result.alternatives(1, quick=True)
        assert [row[0] for row in quick.rows] == [0, 1, 2, 3]
        assert min(row[5] for row in quick.rows) > 0.1

    def test_of_sparse_and_loaded_results(self, unstored, tmp_path):
        sparse = gsnmf.factorize(unstored, 4, method="gspa", missing_values="unstored")
        gsnmf.save(sparse, tmp_path / "s.npz")
        assert gsnmf.load(tmp_path / "s.npz", unstored).alternatives(1).rows == sparse.alternatives(1).rows


class TestMixtures:
    def test_weights_are_fitted_to_observed_entries(self, holed, result, tmp_path):
        mixed = gsnmf.factorize(holed, 4, missing_values=NAN, effort="fast", members=2)
        seen = ~np.isnan(holed)
        error = np.linalg.norm((mixed.reconstruct() - holed)[seen])
        assert mixed.absolute_error == pytest.approx(error)
        assert mixed.observed_share == result.observed_share
        assert mixed.converged
        gsnmf.save(mixed, tmp_path / "m.npz")
        assert gsnmf.load(tmp_path / "m.npz", holed) == mixed
        with pytest.raises(ValueError, match="one member each if entries are missing"):
            mixed.alternatives()

    def test_sparse(self, unstored):
        mixed = gsnmf.factorize(unstored, 3, missing_values="unstored", method="gspa", effort="fast", members=2)
        assert mixed.W.min() >= 0
        assert mixed.mixtures.most == 2


def test_choice_on_the_scaled_matrix(data, holed):
    scaled = gsnmf.factorize(holed, 4, missing_values=NAN, effort="fast", scale=True)
    assert sorted(scaled.columns) == sorted(data.columns)
    assert sorted(scaled.rows) == sorted(data.rows)
