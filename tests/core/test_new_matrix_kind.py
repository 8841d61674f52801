"""A kind of matrix that the library has never seen takes one small class, and every method takes it."""

from functools import cached_property

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import gsnmf
from gsnmf.matrix import InMemoryMatrix, wrap


class SparsePlusLowRank(InMemoryMatrix):
    """S + L R, held as the sparse S and the two thin factors, and never formed."""

    def __init__(self, sparse, left, right):
        self.shape, self.dtype = sparse.shape, np.dtype(np.float64)
        self._sparse, self._left, self._right = sparse, left, right

    @property
    def data(self):
        return self._sparse, self._left, self._right

    @cached_property
    def T(self):
        transpose = SparsePlusLowRank(self._sparse.T.tocsr(), self._right.T, self._left.T)
        transpose.__dict__["T"] = self
        return transpose

    def dot(self, block):
        return self._sparse @ block + self._left @ (self._right @ block)

    def columns(self, indices):
        return np.asfortranarray(self._sparse[:, indices].toarray() + self._left @ self._right[:, indices])

    @cached_property
    def squared_column_norms(self):
        cross = np.asarray(self._sparse.multiply(self._left @ self._right).sum(axis=0)).ravel()
        squares = np.asarray(self._sparse.multiply(self._sparse).sum(axis=0)).ravel()
        return squares + 2 * cross + np.einsum("kj,kl,lj->j", self._right, self._left.T @ self._left, self._right)

    @cached_property
    def column_sums(self):
        return np.asarray(self._sparse.sum(axis=0)).ravel() + self._left.sum(axis=0) @ self._right


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    sparse = sp.random_array((30, 24), density=0.2, rng=rng, format="csr")
    left, right = rng.random((30, 2)), rng.random((2, 24))
    return SparsePlusLowRank(sparse, left, right), sparse.toarray() + left @ right


METHODS = [method for method in gsnmf.methods() if method.name != "exact"]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_takes_it(pair, method):
    held, dense = pair
    rank = (3, 2) if method.ranks == "pair" else 5
    ours, expected = (gsnmf.factorize(matrix, rank, method=method.name, effort="fast") for matrix in (held, dense))
    assert sorted(ours.columns) == sorted(expected.columns)
    assert sorted(ours.rows) == sorted(expected.rows)
    assert ours.relative_error == pytest.approx(expected.relative_error, rel=1e-6)
    assert_allclose(ours.reconstruct(), expected.reconstruct(), atol=1e-3)


def test_estimators_take_it(pair):
    held, dense = pair
    result = gsnmf.factorize(held, 4, method="gspa")
    assert "2 columns" in repr(result) or "rows" in repr(result)
    assert_allclose(result.shares.sum(), 1.0)
    assert len(result.factors(3)) == 4
    weights = gsnmf.fit_weights(held, result.columns, result.rows)
    assert weights.relative_error == pytest.approx(gsnmf.fit_weights(dense, result.columns, result.rows).relative_error)


def test_what_it_inherits_is_right(pair):
    held, dense = pair
    chosen = np.array([1, 5, 7])
    assert_allclose(held.gram_rows(chosen), dense[:, chosen].T @ dense)
    assert_allclose(held.gram(chosen), dense[:, chosen].T @ dense[:, chosen])
    triangle, targets = held.reduced(chosen)
    lengths = np.linalg.norm(dense[:, chosen], axis=0)
    assert_allclose(triangle.T @ triangle, (dense[:, chosen] / lengths).T @ (dense[:, chosen] / lengths), atol=1e-12)
    assert_allclose(targets @ triangle, dense.T @ dense[:, chosen] / lengths)
    W, H = np.ones((30, 2)), np.full((2, 24), 0.25)
    assert held.squared_residual(W, H) == pytest.approx(((dense - W @ H) ** 2).sum())
    assert_allclose(held.residual(W, H).cross(chosen), dense[:, chosen].T @ (dense - W @ H))
    assert_array_equal(held.sketch().shape, wrap(dense).sketch().shape)
    assert_allclose(held.sketch(), wrap(dense).sketch())
