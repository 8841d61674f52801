"""Figures of the paper that its own matrices must give."""

import numpy as np
import pytest
from scipy.sparse.linalg import svds

import gsnmf
from reproduction.matrices import PAPER_NAMES, data_folder, load


def svd_quality(matrix, rank):
    singular = svds(matrix, k=rank, return_singular_vectors=False, rng=np.random.default_rng(0))
    return 100 * (1 - np.sqrt(1 - (singular**2).sum() / (matrix * matrix).sum()))


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_truncated_svd_identifies_the_matrix(paper, name):
    data = paper(name)
    quality = svd_quality(data.matrix, data.rank)
    if data.same_matrix:
        assert quality == pytest.approx(data.published["svd"], abs=0.0051)
    else:
        assert quality == pytest.approx(data.published["svd"], abs=1.0)


@pytest.mark.parametrize(("name", "n_rows", "n_columns", "quality"), [("CBCL", 1, 48, 80.73), ("Frey", 24, 26, 83.01)])
def test_gspa_on_faces(paper, name, n_rows, n_columns, quality):
    """The paper prints 82.46 for Frey, with weights that had not converged."""
    data = paper(name)
    result = gsnmf.factorize(data.matrix, data.rank, method="gspa")
    assert result.converged
    assert (result.rows.size, result.columns.size) == (n_rows, n_columns)
    assert round(100 * result.quality, 2) == quality


def test_gspa_on_documents(paper):
    """Four words, as in the paper, and better ones, since the paper chose among 500 preselected words."""
    data = paper("classic")
    result = gsnmf.factorize(data.matrix, data.rank, method="gspa")
    assert (result.rows.size, result.columns.size) == (0, 4)
    assert 100 * result.quality > data.published["gspa"]


def test_missing_data_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("GSNMF_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="set GSNMF_DATA to the folder"):
        data_folder()
    with pytest.raises(FileNotFoundError, match=r"cbcl\.npz is not in"):
        load("CBCL", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load("CBCL", folder=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="name must be one of NG10"):
        load("moon", folder=tmp_path)
