"""Pictures and the report of marker genes."""

import numpy as np
import pytest

from benchmarks._simulated_cells import simulated_cells
from gsnmf.applications import markers, plot_markers
from gsnmf.applications.marker_genes.cell_report import cell_map, gather_cells, render_cells

anndata = pytest.importorskip("anndata", reason="marker genes need anndata")
pandas = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of anndata itself


@pytest.fixture(scope="module")
def data():
    """Cells of three groups in two batches, with factors and an embedding."""
    found = simulated_cells(150, 100, n_groups=3, n_batches=2, random_state=2).to_anndata()
    found.obs_names = [f"<b>cell</b> {i}" for i in range(150)]
    found.obsm["X_umap"] = np.random.default_rng(0).random((150, 2))
    return markers(found, 4, genes=None, effort="fast", batch_key="batch")


@pytest.mark.usefixtures("figures")
class TestPictures:
    def test_colour_is_mean_expression_and_size_is_frequency(self, data):
        groups = [data.X[np.asarray(data.obs["group"] == f"group {k}")].toarray()[:, [5, 2]] for k in range(3)]
        means = np.array([members.mean(axis=0) for members in groups])
        heat = plot_markers(data, "group", kind="heat", genes=["gene 5", "gene 2"])
        assert [label.get_text() for label in heat.get_xticklabels()] == ["gene 5", "gene 2"]
        np.testing.assert_allclose(heat.images[0].get_array(), means / means.max(axis=0), rtol=1e-5)
        sizes = plot_markers(data, "group", genes=["gene 5", "gene 2"]).collections[0].get_sizes()
        fractions = np.array([(members > 0).mean(axis=0) for members in groups]).ravel()
        np.testing.assert_allclose(sizes / sizes.max(), fractions / fractions.max())

    @pytest.mark.parametrize("kind", ["dots", "heat"])
    @pytest.mark.parametrize("groupby", ["group", None])
    def test_genes_by_group(self, data, kind, groupby):
        axes = plot_markers(data, groupby, kind=kind, n_genes=2)
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert set(labels) <= set(data.var_names)
        assert len(labels) > 4
        axes.figure.canvas.draw()

    def test_embedding(self, data):
        axes = plot_markers(data, kind="embedding")
        assert axes.get_xlabel() == "umap 1"
        names = data.uns["gsnmf"]["factors"].index
        assert {text.get_text() for text in axes.get_legend().get_texts()} <= set(names)
        one = plot_markers(data, kind="embedding", factor=names[0], ax=axes)
        assert one is axes
        assert axes.get_title() == names[0]

    def test_wrong_arguments(self, data):
        with pytest.raises(ValueError, match="kind must be 'dots', 'heat' or 'embedding'"):
            plot_markers(data, kind="violin")
        with pytest.raises(ValueError, match="factor must be one of"):
            plot_markers(data, kind="embedding", factor="nothing")
        with pytest.raises(ValueError, match=r"must have basis 'tsne' with two coordinates; got 'X_umap'"):
            plot_markers(data, kind="embedding", basis="tsne")
        with pytest.raises(ValueError, match=r"call gsnmf\.applications\.markers\(adata\) first"):
            plot_markers(anndata.AnnData(np.ones((2, 2), dtype=np.float32)))


class TestReport:
    def test_speaks_of_genes_and_cells(self, data):
        findings = gather_cells(data, groupby="group", title="<i>mine</i>")
        page = render_cells(findings)
        assert "prototype cell" in findings.sentence or "marker gene" in findings.sentence
        assert "150 cells × 100 genes" in findings.sentence
        for section in ("markers", "expression", "map", "factors", "groups", "batches", "made"):
            assert f'<section id="{section}"' in page
        assert "<i>mine" not in page
        assert "<b>cell" not in page
        assert " column" not in page.split("<main")[1].split("<script>")[0].replace('class="', "")

    def test_shares_of_groups_sum_to_one(self, data):
        np.testing.assert_allclose(gather_cells(data, groupby="group").by_group.sum(axis=1), 1.0)

    def test_without_labels_embedding_and_batches(self):
        plain = simulated_cells(60, 100, n_groups=2, random_state=0).to_anndata()
        del plain.obs["group"]
        findings = gather_cells(markers(plain, 2, genes=None, effort="fast"))
        assert (findings.by_group, findings.by_batch, findings.cell_map) == (None, None, None)
        assert 'id="groups"' not in render_cells(findings)

    def test_usual_labels(self, data):
        assert gather_cells(data).group_column == ""
        named = data.copy()
        named.obs["cell_type"] = named.obs["group"]
        assert gather_cells(named).group_column == "cell_type"

    def test_map_draws_no_more_than_asked(self):
        places, strongest = np.random.default_rng(0).random((500, 2)), np.arange(500) % 3 - 1
        drawn = cell_map("umap", places, strongest, ["a", "b"], max_cells=50)
        assert drawn.n_shown == 50
        assert sum(path.count("M") for _, _, path in drawn.paths) == 50
