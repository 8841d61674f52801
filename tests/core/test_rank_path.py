"""The errors of nested selections, one more column or row at a time."""

import numpy as np
import pytest

import gsnmf
from gsnmf.datasets import fully_random, planted


def test_errors_fall_and_selections_are_nested():
    data = fully_random(0.01, shape=(40, 50), n_columns=4, n_rows=3, random_state=0)
    path = gsnmf.rank_path(data.matrix, 12)
    assert path.errors[0] == 1.0
    assert np.all(np.diff(path.errors) < 0)
    rank = path.smallest(0.3)
    assert path.errors[rank] <= 0.3 < path.errors[rank - 1]
    columns, rows = path.selection(rank)
    assert columns.size + rows.size == rank
    stopped = gsnmf.rank_path(data.matrix, 12, target_error=0.3)
    assert stopped.errors.size == rank + 1
    with pytest.raises(ValueError, match="no rank up to 12 reaches an error of 1e-09"):
        path.smallest(1e-9)
    with pytest.raises(ValueError, match=r"rank must be in \[0, 12\] on this path; got 13"):
        path.selection(13)


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_errors_are_those_of_a_refit(noise, seed):
    matrix = planted((40, 30), 3, 2, noise_level=noise, random_state=seed).matrix
    path = gsnmf.rank_path(matrix, 7)
    for rank in range(1, path.errors.size):
        refit = gsnmf.fit_weights(matrix, *path.selection(rank))
        assert path.errors[rank] <= refit.relative_error * (1 + 1e-4) + 2e-6
        assert refit.relative_error <= path.errors[rank] * (1 + 1e-4) + 2e-6


@pytest.mark.parametrize("kind", ["dense", "sparse", "wide"])
def test_selections_are_those_of_pursuit(kind):
    shape = (40, 150) if kind == "wide" else (120, 90)
    matrix = planted(shape, 5, 4, noise_level=0.3, density=0.3, sparse=kind == "sparse", random_state=2).matrix
    path = gsnmf.rank_path(matrix, 14)
    for rank in (1, 5, 14):
        result = gsnmf.factorize(matrix, rank, method="pursuit")
        np.testing.assert_array_equal(path.selection(rank)[0], result.columns)
        np.testing.assert_array_equal(path.selection(rank)[1], result.rows)
        assert path.errors[rank] == pytest.approx(result.relative_error, rel=1e-3)


def test_constraints_are_obeyed():
    matrix = planted((40, 30), 3, 2, noise_level=0.1, random_state=0).matrix
    wanted = gsnmf.Constraints(include_columns=[4, 7], exclude_rows=[0, 1, 2], at_most=(3, 4))
    path = gsnmf.rank_path(matrix, 6, constraints=wanted)
    assert path.columns[:2].tolist() == [4, 7]
    assert path.selection(2)[1].size == 0
    assert path.columns.size <= 3
    assert not set(path.rows) & {0, 1, 2}
    assert np.all(np.diff(path.errors) <= 1e-9)
