"""The report on cells in a real browser: no complaints, nothing from the network, readable at every width."""

import numpy as np
import pytest

import gsnmf
from benchmarks._simulated_cells import simulated_cells
from gsnmf.applications import markers

pytest.importorskip("anndata", reason="marker genes need anndata")
pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from browsing import assert_fits, assert_plain_text, assert_quiet
from pages import HOSTILE

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of anndata itself


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page in which names of cells and groups try to be something else, and are long."""
    data = simulated_cells(150, 100, n_groups=3, n_batches=2, random_state=2).to_anndata()
    names = [name for name in HOSTILE if name.isprintable()]  # pandas takes no lone surrogates
    data.obs_names = [f"{names[i % len(names)]} {'x' * 60} {i}" for i in range(150)]
    data.obsm["X_umap"] = np.random.default_rng(0).random((150, 2))
    data.obs["cell_type"] = [f"{names[i % 3]} {'long name ' * 6}" for i in range(150)]
    markers(data, 4, genes=None, effort="fast", batch_key="batch")
    path = tmp_path_factory.mktemp("cells") / "report.html"
    gsnmf.report(data, path, title=HOSTILE[0])
    return path


def test_no_complaints_and_no_requests(page, report):
    assert_quiet(page, report)


def test_hostile_names_stay_text(page):
    assert_plain_text(page)
    assert page.execute_script("return document.querySelectorAll('.card').length") == 4


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_themes_and_widths(page, theme, width):
    assert_fits(page, theme, width)
