"""A new method takes one function and one entry; everything else follows from the entry."""

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf import registry
from gsnmf.records import Choice, Selection
from gsnmf.registry import Method


def longest_columns(matrix, rank):
    """Choose the columns with the largest Euclidean norms; of equal ones, the first."""
    lengths = matrix.squared_column_norms
    columns = np.argsort(-lengths, kind="stable")[:rank]
    columns = columns[lengths[columns] > 0]
    return Selection.of_indices(columns, np.array([], dtype=np.intp), "longest-columns", rank)


ENTRY = Method(
    name="longest-columns",
    title="the columns with the largest norms",
    choose=lambda matrix, task: Choice(longest_columns(matrix, task.rank)),
    guarantee="none: a bad choice, and a short example",
    cost="O(nnz)",
    reference="",
    axes=("columns",),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The entry as if it stood in ``registry.py``."""
    monkeypatch.setattr(registry, "METHODS", (*registry.METHODS, ENTRY))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_it_chooses(kind):
    matrix = kind(np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]))
    result = gsnmf.factorize(matrix, 2, method="longest-columns")
    assert list(result.columns) == [2, 1]
    assert result.quality == pytest.approx(1 - gsnmf.fit_weights(matrix, [2, 1], []).relative_error)


def test_the_library_knows_it():
    assert gsnmf.methods()[-1].name == "longest-columns"
    assert gsnmf.GSNMF(1, method="longest-columns").fit(np.eye(3)).feature_indices_.size == 1
    with pytest.raises(ValueError, match=r"method must be one of .* with constraints; got 'longest-columns'"):
        gsnmf.select(np.eye(3), 1, method="longest-columns", constraints=gsnmf.Constraints(exclude_columns=[0]))
