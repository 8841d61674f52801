"""NMF on observed entries."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from gsnmf.nmf import hals

NAN = float("nan")


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(0)
    return rng.random((40, 3)) @ rng.random((3, 30)) * (1 + 0.01 * rng.standard_normal((40, 30)))


@pytest.fixture(scope="module")
def holed(matrix):
    return np.where(np.random.default_rng(1).random(matrix.shape) < 0.4, NAN, matrix)


@pytest.fixture(scope="module")
def result(holed):
    return hals(holed, 3, missing_values=NAN, random_state=0)


def test_holes_are_predicted(matrix, holed, result):
    holes = np.isnan(holed)
    assert result.converged
    assert np.all(np.diff(result.objective) <= 0)
    assert min(result.W.min(), result.H.min()) >= 0
    residual = (result.W @ result.H - matrix)[holes]
    assert np.linalg.norm(residual) < 0.02 * np.linalg.norm(matrix[holes])
    seen = (result.W @ result.H - matrix)[~holes]
    assert result.relative_error == pytest.approx(np.linalg.norm(seen) / np.linalg.norm(matrix[~holes]))
    assert result.objective[-1] == pytest.approx(result.relative_error**2)


def test_each_factor_is_optimal_for_the_other(holed, result):
    fine = hals(holed, 3, missing_values=NAN, init=(result.W, result.H), tolerance=1e-7, max_iterations=5000)
    for i in range(5):
        seen = ~np.isnan(holed[i])
        assert_allclose(fine.W[i], nnls(fine.H[:, seen].T, holed[i, seen])[0], atol=1e-5 * fine.W.max())


def test_every_way_to_say_it(matrix, holed, result):
    rows, columns = np.nonzero(~np.isnan(holed))
    sparse = sp.coo_array((matrix[rows, columns], (rows, columns)), shape=matrix.shape)
    for other in (
        hals(sparse, 3, missing_values="unstored", random_state=0),
        hals(matrix, 3, entry_weights=2.0 * ~np.isnan(holed), random_state=0),
    ):
        assert other.relative_error == pytest.approx(result.relative_error, rel=1e-2)


def test_without_holes_nothing_changes(matrix):
    plain, ours = (hals(matrix, 3, random_state=0, **options) for options in ({}, {"missing_values": NAN}))
    assert_array_equal(plain.W, ours.W)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init": "nndsvd"}, "init must be 'random' or a pair"),
        ({"init": (np.ones((2, 2)), np.ones((3, 30)))}, "W of init must have shape"),
        ({"missing_values": "unstored"}, "dense"),
    ],
)
def test_wrong_input(holed, options, message):
    with pytest.raises(ValueError, match=message):
        hals(holed, 3, **{"missing_values": NAN, **options})
