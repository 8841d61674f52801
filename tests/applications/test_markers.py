"""Marker genes and prototype cells: what is written is right, and wrong input gets a clear answer."""

import logging
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.metrics import normalized_mutual_info_score

from benchmarks._simulated_cells import simulated_cells
from gsnmf.applications import markers
from gsnmf.applications.marker_genes.factors import equal_batches, even_sample, variability
from gsnmf.applications.marker_genes.markers import listed_genes
from gsnmf.datasets.readers import FileError, annotated, read_matrix

anndata = pytest.importorskip("anndata", reason="marker genes need anndata")
pandas = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of anndata itself

FAST = {"genes": None, "effort": "fast"}


def planted(n_cells=60, n_genes=40, *, sparse=True, dtype=np.float32):
    """Cells of three kinds with three genes each that only they have, exact: any of these genes stands for its kind."""
    rng = np.random.default_rng(0)
    kinds = np.arange(n_cells) % 3
    levels = np.zeros((n_cells, 3))
    levels[np.arange(n_cells), kinds] = rng.uniform(1.0, 4.0, n_cells)
    loadings = np.zeros((3, n_genes))
    for kind in range(3):
        loadings[kind, 3 * kind : 3 * kind + 3] = rng.uniform(1.0, 3.0, 3)
    loadings[:, 9:] = rng.uniform(0.1, 1.0, (3, n_genes - 9)) * (rng.random((3, n_genes - 9)) < 0.5)
    values = (levels @ loadings).astype(dtype)
    data = anndata.AnnData(sp.csr_matrix(values) if sparse else values)
    data.obs["kind"] = pandas.Categorical([f"kind {kind}" for kind in kinds])
    data.var["highly_variable"] = np.arange(n_genes) < 30
    return data


def state(data):
    """Everything in an object, to see whether it changed."""
    whole = data.X.toarray() if sp.issparse(data.X) else np.array(data.X)
    return whole, data.obs.copy(), data.var.copy(), sorted(data.obsm), sorted(data.varm), sorted(data.uns)


def assert_unchanged(data, before):
    after = state(data)
    np.testing.assert_array_equal(after[0], before[0])
    pandas.testing.assert_frame_equal(after[1], before[1])
    pandas.testing.assert_frame_equal(after[2], before[2])
    assert after[3:] == before[3:]


class TestWhatIsWritten:
    @pytest.mark.parametrize("sparse", [True, False])
    def test_planted_kinds_are_found(self, sparse):
        data = planted(sparse=sparse)
        assert markers(data, 3, **FAST) is data
        assert normalized_mutual_info_score(data.obs["kind"], data.obs["gsnmf_factor"]) == pytest.approx(1.0)
        assert data.uns["gsnmf"]["quality"] > 0.999
        chosen = data.uns["gsnmf"]
        assert len(chosen["genes"]) + len(chosen["cells"]) == 3
        np.testing.assert_array_equal(np.flatnonzero(data.var["gsnmf_marker"]), np.sort(chosen["genes"]))
        np.testing.assert_array_equal(np.flatnonzero(data.obs["gsnmf_prototype"]), np.sort(chosen["cells"]))

    def test_factors_of_several_members(self):
        data = planted()
        noise = np.random.default_rng(1).random(data.X.shape).astype(np.float32)
        data.X = sp.csr_matrix(data.X.toarray() + 0.5 * noise)
        mixed = markers(data, 3, members=3, copy=True, **FAST)
        factors = mixed.uns["gsnmf"]["factors"]
        assert mixed.uns["gsnmf"]["params"]["members"] == 3
        sizes = [name.count(" + ") + 1 for name in factors["name"]]
        assert max(sizes) > 1
        chosen = set()
        for kind, name, genes in zip(factors["kind"], factors["name"], factors["genes"], strict=True):
            members = name.split(" + ")
            chosen |= {(kind, member) for member in members}
            assert kind == "cell" or genes.split(", ")[: len(members)] == members
        flagged = {("gene", str(name)) for name in mixed.var_names[mixed.var["gsnmf_marker"]]}
        flagged |= {("cell", str(name)) for name in mixed.obs_names[mixed.obs["gsnmf_prototype"]]}
        assert flagged == chosen
        with pytest.raises(ValueError, match="members must be in"):
            markers(data, 3, members=99, copy=True, **FAST)

    def test_product_of_coefficients_and_loadings_is_the_expression(self):
        data = markers(planted(), 3, **FAST)
        model = data.obsm["X_gsnmf"] @ data.varm["gsnmf"].T
        np.testing.assert_allclose(model, data.X.toarray(), atol=1e-3)
        assert data.obsm["X_gsnmf"].dtype == np.float32

    def test_coefficients_are_nonnegative_least_squares(self):
        data = simulated_cells(80, 120, n_groups=3, random_state=1).to_anndata()
        markers(data, 4, **FAST)
        values = data.X.toarray().astype(np.float64)
        weights = variability(values)
        basis = data.varm["gsnmf"].astype(np.float64) * weights[:, None]
        np.testing.assert_allclose(np.linalg.norm(basis, axis=0), 1.0, rtol=1e-5)
        for cell in (0, 7, 33):
            expected = nnls(basis, values[cell] * weights)[0]
            np.testing.assert_allclose(data.obsm["X_gsnmf"][cell], expected, atol=1e-4)

    def test_scores_and_quality_is_of_the_weighted_expression(self):
        data = simulated_cells(80, 120, n_groups=3, random_state=1).to_anndata()
        markers(data, 4, **FAST)
        values, coefficients = data.X.toarray().astype(np.float64), data.obsm["X_gsnmf"].astype(np.float64)
        varying = np.flatnonzero(values.std(axis=0) > 0)[:10]
        correlations = np.corrcoef(values[:, varying].T, coefficients.T)[:10, 10:]
        expected = correlations * np.abs(correlations) * values[:, varying].std(axis=0)[:, None]
        np.testing.assert_allclose(data.varm["gsnmf_scores"][varying], expected, atol=1e-5)
        weights = variability(values)
        residual = (values - coefficients @ data.varm["gsnmf"].T) * weights
        quality = 1 - np.linalg.norm(residual) / np.linalg.norm(values * weights)
        assert data.uns["gsnmf"]["quality"] == pytest.approx(quality, abs=1e-5)
        singular = np.linalg.svd(values * weights, compute_uv=False)
        possible = 1 - np.linalg.norm(singular[4:]) / np.linalg.norm(singular)
        assert 0.8 * quality / possible < data.uns["gsnmf"]["of_possible"] <= quality / possible + 1e-5

    def test_strongest_factor_is_the_largest_coefficient(self):
        data = markers(planted(), 3, **FAST)
        names = data.uns["gsnmf"]["factors"].index
        assert list(data.obs["gsnmf_factor"]) == list(names[data.obsm["X_gsnmf"].argmax(axis=1)])
        assert list(data.uns["gsnmf"]["factors"]["n_cells"]) == list(data.obs["gsnmf_factor"].value_counts()[names])

    def test_factors_are_in_order_of_share_and_called_after_their_genes(self):
        data = markers(planted(), 3, **FAST)
        factors = data.uns["gsnmf"]["factors"]
        assert (np.diff(factors["share"]) <= 0).all()
        assert factors["share"].sum() == pytest.approx(1.0)
        for name, factor in factors.iterrows():
            names = data.var_names if factor["kind"] == "gene" else data.obs_names
            assert names[factor["position"]] == factor["name"]
            assert name.startswith(factor["leading_gene"])
            assert factor["genes"].split(", ")[0] == factor["leading_gene"]

    def test_empty_cells_have_no_factor(self):
        data = planted()
        data.X = sp.csr_matrix(data.X.toarray() * (np.arange(60) != 5)[:, None])
        markers(data, 3, **FAST)
        assert data.obs["gsnmf_factor"].isna().tolist() == [i == 5 for i in range(60)]
        assert not data.obsm["X_gsnmf"][5].any()

    def test_fewer_factors_if_they_explain_everything(self, caplog):
        data = markers(planted(), 5, **FAST)
        assert data.obsm["X_gsnmf"].shape[1] == len(data.uns["gsnmf"]["factors"]) <= 5

    def test_numbers_of_genes_and_cells(self):
        data = markers(planted(), (2, 1), **FAST)
        assert sorted(data.uns["gsnmf"]["factors"]["kind"]) == ["cell", "gene", "gene"]
        assert data.uns["gsnmf"]["params"]["rank"] == "(2, 1)"

    @pytest.mark.parametrize("rank", [range(2, 6), "auto"])
    def test_the_number_of_factors_is_chosen(self, rank):
        data = markers(simulated_cells(120, 60, n_groups=3, random_state=1).to_anndata(), rank, **FAST)
        assert 2 <= len(data.uns["gsnmf"]["factors"]) <= 5
        assert data.uns["gsnmf"]["params"]["rank"] == str(rank)

    def test_progress_is_told(self):
        told = []
        markers(planted(), 3, progress=told.append, **FAST)
        stages = dict.fromkeys(status.stage for status in told)
        assert [stage.split()[0] for stage in stages] == ["Choosing", "Fitting"]

    def test_calling_twice_replaces(self):
        data = markers(planted(), 3, **FAST)
        markers(data, 2, **FAST)
        assert data.obsm["X_gsnmf"].shape == (60, 2)
        assert data.varm["gsnmf"].shape == (40, 2)

    def test_a_written_file_reads_the_same(self, tmp_path):
        data = markers(planted(), 3, batch_key="kind", **FAST)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anndata.settings.allow_write_nullable_strings = True
            data.write_h5ad(tmp_path / "cells.h5ad")
            again = anndata.read_h5ad(tmp_path / "cells.h5ad")
        np.testing.assert_array_equal(again.obsm["X_gsnmf"], data.obsm["X_gsnmf"])
        assert list(again.uns["gsnmf"]["factors"]["genes"]) == list(data.uns["gsnmf"]["factors"]["genes"])
        assert listed_genes(again) == listed_genes(data)
        assert again.uns["gsnmf"]["params"]["rank"] == 3


class TestGenes:
    def test_only_marked_genes_take_part(self):
        data = markers(planted(), 3, effort="fast")
        assert not data.varm["gsnmf"][30:].any()
        assert data.varm["gsnmf"][:30].any()
        assert data.uns["gsnmf"]["params"]["n_genes"] == 30

    def test_excluded_genes_are_mapped_back(self):
        data = planted()
        data.var_names = ["MT-CO1", "mt-Nd1", "Rps3", *map(str, range(37))]
        markers(data, 3, genes=None, effort="fast")
        assert not data.varm["gsnmf"][:3].any()
        assert not data.var["gsnmf_marker"][:3].any()
        alone = markers(data[:, 3:].copy(), 3, genes=None, effort="fast")
        np.testing.assert_array_equal(alone.uns["gsnmf"]["genes"] + 3, data.uns["gsnmf"]["genes"])
        np.testing.assert_allclose(alone.obsm["X_gsnmf"], data.obsm["X_gsnmf"], rtol=1e-5)

    def test_names_and_masks(self):
        by_mask = markers(planted(), 3, genes=np.arange(40) < 12, effort="fast")
        by_name = markers(planted(), 3, genes=[str(i) for i in range(12)], effort="fast")
        np.testing.assert_array_equal(by_mask.varm["gsnmf"], by_name.varm["gsnmf"])
        assert not by_mask.varm["gsnmf"][12:].any()

    @pytest.mark.parametrize("step", [-1, -2])
    def test_raw_with_other_genes(self, step):
        whole = planted()
        data = whole[:, ::step].copy()  # in another order, or fewer genes
        data.raw = whole
        expected = markers(data.copy(), 3, use_raw=False, **FAST)
        data.X = data.X.toarray() - 1.0
        markers(data, 3, **FAST)
        assert data.uns["gsnmf"]["source"] == "raw.X"
        np.testing.assert_array_equal(data.uns["gsnmf"]["genes"], expected.uns["gsnmf"]["genes"])
        np.testing.assert_allclose(data.varm["gsnmf"], expected.varm["gsnmf"], rtol=1e-5)


class TestWhichMatrix:
    def scaled(self):
        data = planted(sparse=False)
        data.layers["lognorm"] = data.X.copy()
        data.X = data.X - 1.0
        return data

    def test_raw_is_taken_if_x_is_negative_and_the_log_says_so(self, caplog):
        data = self.scaled()
        data.raw = planted()
        with caplog.at_level(logging.INFO):
            markers(data, 3, **FAST)
        assert "raw.X, which has none, is used" in caplog.text
        assert data.uns["gsnmf"]["params"]["use_raw"]

    def test_layer(self):
        data = markers(self.scaled(), 3, layer="lognorm", **FAST)
        assert data.uns["gsnmf"]["source"] == "layers['lognorm']"

    def test_negative_x_names_usable_layers(self):
        with pytest.raises(ValueError, match=r"X has negative entries.*layer='lognorm'"):
            markers(self.scaled(), 3, **FAST)

    def test_negative_x_alone(self):
        data = self.scaled()
        del data.layers["lognorm"]
        with pytest.raises(ValueError, match=r"X must be nonnegative; got -.* in cell '0', gene '.*use_raw=True"):
            markers(data, 3, **FAST)

    def test_unknown_layer_lists_those_that_exist(self):
        with pytest.raises(ValueError, match=r"layer must be one of 'lognorm'; got 'counts'"):
            markers(self.scaled(), 3, layer="counts", **FAST)
        with pytest.raises(ValueError, match=r"layer must be None for an object without layers; got 'counts'"):
            markers(planted(), 3, layer="counts", **FAST)

    def test_reader_takes_raw_and_says_so(self, tmp_path, caplog):
        data = self.scaled()
        data.raw = planted()
        anndata.settings.allow_write_nullable_strings = True
        data.write_h5ad(tmp_path / "cells.h5ad")
        with caplog.at_level(logging.INFO):
            read = read_matrix(tmp_path / "cells.h5ad")
        assert "raw.X, which has none, is used" in caplog.text
        assert (read.row_kind, read.column_kind) == ("cell", "gene")
        assert read.column_names == tuple(map(str, range(40)))
        assert read_matrix(tmp_path / "cells.h5ad", key="raw").matrix.shape == (60, 40)
        with pytest.raises(ValueError, match="must be nonnegative"):
            read_matrix(tmp_path / "cells.h5ad", key="X")

    def test_reader_names_usable_layers(self, tmp_path):
        anndata.settings.allow_write_nullable_strings = True
        self.scaled().write_h5ad(tmp_path / "cells.h5ad")
        with pytest.raises(FileError, match=r"cells\.h5ad: X has negative entries.*layer='lognorm'"):
            read_matrix(tmp_path / "cells.h5ad")


class TestLargeAndBacked:
    @pytest.mark.parametrize("form", ["csr", "csc", "dense"])
    def test_backed_files_are_read_in_blocks(self, tmp_path, monkeypatch, form):
        data = planted(sparse=form != "dense")
        if form == "csc":
            data.X = data.X.tocsc()
        anndata.settings.allow_write_nullable_strings = True
        data.write_h5ad(tmp_path / "cells.h5ad")
        monkeypatch.setattr(annotated, "BLOCK_ENTRIES", 40 * 7)
        backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
        try:
            markers(backed, 3, **FAST)
            expected = markers(data, 3, **FAST)
            np.testing.assert_array_equal(backed.uns["gsnmf"]["genes"], expected.uns["gsnmf"]["genes"])
            np.testing.assert_allclose(backed.obsm["X_gsnmf"], expected.obsm["X_gsnmf"], rtol=1e-5, atol=1e-6)
            with pytest.raises(ValueError, match=r"copy must be False for a backed object; pass adata\.to_memory"):
                markers(backed, 3, copy=True, **FAST)
        finally:
            backed.file.close()

    def test_blocks_change_nothing(self, monkeypatch):
        whole = markers(planted(), 3, **FAST)
        monkeypatch.setattr(annotated, "BLOCK_ENTRIES", 40 * 11)
        blocks = markers(planted(), 3, **FAST)
        np.testing.assert_allclose(blocks.obsm["X_gsnmf"], whole.obsm["X_gsnmf"], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(blocks.varm["gsnmf_scores"], whole.varm["gsnmf_scores"], atol=1e-6)

    def test_dask(self):
        dask_array = pytest.importorskip("dask.array")
        data = planted(sparse=False)
        expected = markers(data.copy(), 3, **FAST)
        data.X = dask_array.from_array(data.X, chunks=(20, 40))
        markers(data, 3, **FAST)
        np.testing.assert_allclose(data.obsm["X_gsnmf"], expected.obsm["X_gsnmf"], rtol=1e-5, atol=1e-6)

    def test_a_sample_of_cells_finds_the_same_kinds(self):
        data = markers(planted(), 3, max_cells=20, **FAST)
        assert normalized_mutual_info_score(data.obs["kind"], data.obs["gsnmf_factor"]) == pytest.approx(1.0)
        again = markers(planted(), 3, max_cells=20, **FAST)
        np.testing.assert_array_equal(data.obsm["X_gsnmf"], again.obsm["X_gsnmf"])


class TestBatches:
    def test_a_small_batch_is_heard(self):
        """Two kinds of cells: one only in the small batch. One factor goes to it if batches count the same."""
        data = planted(n_cells=300)
        keep = np.flatnonzero(data.obs["kind"] != "kind 2")
        keep = np.concatenate([keep, np.flatnonzero(data.obs["kind"] == "kind 2")[:4]])
        data = data[keep].copy()
        data.obs["batch"] = np.where(data.obs["kind"] == "kind 2", "small", "large")
        markers(data, 2, batch_key="batch", weighting="none", **FAST)
        table = data.uns["gsnmf"]["batches"]
        assert table.columns.tolist() == ["large", "small"]
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert table["small"].max() > 0.9
        assert "is almost only in batch small" in data.uns["gsnmf"]["notes"]

    def test_weights_give_batches_equal_norms(self):
        rng = np.random.default_rng(0)
        matrix = rng.random((30, 5))
        matrix[:20] *= 10
        batches = np.repeat([0, 1], [20, 10])
        weighted = matrix * equal_batches(matrix, batches)[:, None]
        assert np.linalg.norm(weighted[:20]) == pytest.approx(np.linalg.norm(weighted[20:]))
        assert np.linalg.norm(weighted) == pytest.approx(np.linalg.norm(matrix))

    def test_sample_is_even(self):
        batches = np.repeat([0, 1, 2], [1000, 10, 100])
        drawn = even_sample(batches, 90, np.random.default_rng(0))
        assert np.bincount(batches[drawn]).tolist() == [40, 10, 40]
        assert np.unique(drawn).size == 90

    def test_categories_without_cells_do_not_count(self):
        data = planted()
        data.obs["batch"] = pandas.Categorical(["a"] * 60, categories=["a", "b"])
        markers(data, 3, batch_key="batch", **FAST)
        assert data.uns["gsnmf"]["batches"].columns.tolist() == ["a"]
        assert data.uns["gsnmf"]["notes"] == ""

    def test_wrong_keys(self):
        data = planted()
        with pytest.raises(ValueError, match=r"batch_key must be a column of adata\.obs, one of 'kind'; got 'batch'"):
            markers(data, 3, batch_key="batch", **FAST)
        data.obs["batch"] = ["a", None] * 30
        with pytest.raises(ValueError, match="got 30 missing"):
            markers(data, 3, batch_key="batch", **FAST)


class TestInputIsSafe:
    def test_copy_leaves_the_object_as_it_is(self):
        data = planted()
        before = state(data)
        annotated_copy = markers(data, 3, copy=True, **FAST)
        assert_unchanged(data, before)
        assert "X_gsnmf" in annotated_copy.obsm

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"genes": "no_such"}, r"adata\.var has no column 'no_such'; name a column"),
            ({"genes": np.ones(3, dtype=bool)}, r"one flag for each of the 40 genes; got shape \(3,\)"),
            ({"genes": ["0", "nothing"]}, r"names in adata\.var_names; got 'nothing'"),
            ({"genes": 3}, "genes must be a column"),
            ({"exclude": "."}, "no gene is left"),
            ({"exclude": ["("]}, r"exclude must be regular expressions; got '\('"),
            ({"weighting": "tfidf"}, "weighting must be 'variability' or 'none'"),
            ({"rank": 61}, r"rank must be in \[1, 60\]"),
            ({"rank": (41, 0)}, r"n_columns in \[0, 40\]"),
            ({"rank": "many"}, "rank must be a number, a pair, a range or 'auto'; got 'many'"),
            ({"max_cells": 0}, "max_cells must be an integer of at least 1"),
            ({"use_raw": True}, r"use_raw must be False or None for an object without \.raw"),
            ({"method": "magic"}, "method must be one of"),
        ],
    )
    def test_errors_change_nothing(self, options, message):
        data = planted()
        before = state(data)
        with pytest.raises(ValueError, match=message):
            markers(data, **{"rank": 3, "genes": None, **options})
        assert_unchanged(data, before)

    def test_no_highly_variable_genes(self):
        data = planted()
        data.var["highly_variable"] = False
        with pytest.raises(ValueError, match="marks no gene; pass genes=None"):
            markers(data, 3)
        del data.var["highly_variable"]
        with pytest.raises(
            ValueError, match=r"run scanpy\.pp\.highly_variable_genes\(adata\) first, or pass genes=None"
        ):
            markers(data, 3)

    def test_missing_values_name_cell_and_gene(self):
        data = planted(sparse=False)
        data.X[4, 7] = np.nan
        with pytest.raises(ValueError, match=r"X must be finite; got nan in cell '4', gene '7'; replace missing"):
            markers(data, 3, **FAST)
        sparse = planted()
        sparse.X.data[3] = np.inf
        with pytest.raises(ValueError, match="X must be finite; got inf in cell"):
            markers(sparse, 3, **FAST)

    def test_duplicate_names(self):
        data = planted()
        data.obs_names = ["a", *data.obs_names[1:-1], "a"]
        with pytest.raises(
            ValueError, match=r"names of cells must be unique; got 'a' twice; call adata\.obs_names_make"
        ):
            markers(data, 3, **FAST)

    def test_views(self):
        data = planted()
        with pytest.raises(ValueError, match=r"adata is a view.*pass adata\.copy\(\)"):
            markers(data[:30], 3, **FAST)
        assert markers(data[:30], 3, copy=True, **FAST).n_obs == 30

    def test_other_objects(self):
        with pytest.raises(TypeError, match=r"adata must be an AnnData object; got one of type ndarray"):
            markers(np.eye(3), 2)

    def test_nothing_to_tell_apart(self):
        with pytest.raises(ValueError, match="got the same expression of every gene in every cell"):
            markers(anndata.AnnData(np.ones((5, 4), dtype=np.float32)), 2, **FAST)
        with pytest.raises(ValueError, match="at least one cell and one gene"):
            markers(anndata.AnnData(np.ones((0, 4), dtype=np.float32)), 2, **FAST)


def test_simulated_markers_are_found():
    """On counts with noise, housekeeping genes and shared genes, the first gene of every factor is a true marker."""
    truth = simulated_cells(400, 300, n_groups=4, random_state=3)
    data = markers(truth.to_anndata(), 4, genes=None)
    true = {f"gene {gene}" for own in truth.markers for gene in own}
    assert set(listed_genes(data)) <= true
    assert normalized_mutual_info_score(truth.groups, data.obs["gsnmf_factor"]) > 0.8
