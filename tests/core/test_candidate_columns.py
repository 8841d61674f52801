"""The columns among which a search chooses: the largest, and those farthest from each other."""

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks._peers import pivoted_qr
from gsnmf.matrix import wrap
from gsnmf.selection.successive_projection import largest_and_farthest


def test_largest_and_farthest():
    rng = np.random.default_rng(0)
    matrix = np.ceil(rng.gamma(0.3, 3.0, (60, 400))) * (rng.random((60, 400)) < 0.1)
    matrix *= rng.permutation(np.geomspace(1, 0.01, 400))
    matrix[:, rng.choice(400, 50, replace=False)] = 0
    nonzero = np.flatnonzero(matrix.any(axis=0))
    norms = np.linalg.norm(matrix, axis=0)
    expected = largest_and_farthest(wrap(matrix), 40)
    assert expected.size == np.unique(expected).size == 40
    assert np.isin(expected, nonzero).all()
    assert {p for _, p in pivoted_qr(matrix, 20)} <= set(expected.tolist())
    assert set(np.argsort(-norms)[:20].tolist()) <= set(expected.tolist())
    for container in (sp.csr_array, sp.csc_array, np.asfortranarray):
        assert np.array_equal(largest_and_farthest(wrap(container(matrix)), 40), expected)
    assert np.array_equal(largest_and_farthest(wrap(matrix.T), 40, axis="rows"), expected)
    assert np.array_equal(largest_and_farthest(wrap(matrix), 1000), nonzero)
    assert largest_and_farthest(wrap(matrix), 1).tolist() == [np.argmax(norms)]


@pytest.mark.parametrize("n", [5, 20, 39])
def test_largest_and_farthest_among_few_columns(n):
    rng = np.random.default_rng(0)
    matrix = rng.random((60, 40)) * rng.uniform(0.1, 1.0, 40)
    expected = {p for _, p in pivoted_qr(matrix, n // 2)}
    by_norm = np.argsort(-np.linalg.norm(matrix, axis=0)).tolist()
    expected.update([j for j in by_norm if j not in expected][: n - len(expected)])
    assert largest_and_farthest(wrap(matrix), n).tolist() == sorted(expected)


def test_largest_and_farthest_where_the_rank_is_low():
    rng = np.random.default_rng(0)
    matrix = rng.random((50, 3)) @ rng.random((3, 100))
    chosen = largest_and_farthest(wrap(matrix), 30)
    assert chosen.size == np.unique(chosen).size == 30


def test_zero_matrix_and_counts():
    assert largest_and_farthest(wrap(np.zeros((3, 4))), 2).size == 0
    for count, error in ((0, ValueError), (-3, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match="must be an integer"):
            largest_and_farthest(wrap(np.eye(3)), count)
