"""Groups of samples: a sample is with those that it resembles, however the samples are held."""

import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from gsnmf import GSNMF
from gsnmf.datasets import planted
from gsnmf.estimators.grouping import (
    MAX_ROUNDS,
    Groups,
    learn_groups,
    mean_coefficients,
    nearest_group,
    strongest_component,
)
from gsnmf.matrix import wrap


@pytest.fixture(scope="module")
def blocks():
    """Three kinds of samples, each with features of its own and a few of the others, of very different lengths."""
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 20)
    X = 0.1 * rng.random((60, 30))
    for kind in range(3):
        X[np.ix_(kinds == kind, np.arange(10 * kind, 10 * kind + 10))] += rng.random((20, 10))
    return X * rng.lognormal(size=(60, 1)), kinds


@pytest.fixture(scope="module")
def model(blocks):
    return GSNMF(3).fit(blocks[0])


@pytest.fixture(scope="module")
def thin(blocks):
    """The samples with zeros in half of their entries, and a model of them."""
    X = np.where(blocks[0] > np.median(blocks[0]), blocks[0], 0)
    return X, GSNMF(3, effort="fast").fit(X)


def _by_definition(X, W, weight=None):
    """The rounds written out, with one similarity for every two samples."""
    weight = np.ones(len(X)) if weight is None else weight
    unit = X / np.maximum(np.linalg.norm(X, axis=1), 1e-300)[:, None]
    labels = np.where(X.any(axis=1), strongest_component(W, np.average(W, axis=0, weights=weight)), -1)
    for _ in range(MAX_ROUNDS):
        groups = [labels == k for k in range(W.shape[1])]
        similar = np.array([(unit @ unit[own].T) @ weight[own] / weight[own].sum() for own in groups])
        labels = np.where(X.any(axis=1), similar.argmax(axis=0), -1)
    return labels


def test_the_rounds_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    X, W = rng.random((50, 12)) ** 3, rng.random((50, 4))
    X[7] = 0
    np.testing.assert_array_equal(learn_groups(wrap(X), W)[0], _by_definition(X, W))
    weight = rng.random(50)
    np.testing.assert_array_equal(learn_groups(wrap(X), W, weight)[0], _by_definition(X, W, weight))


def test_weights_of_samples_count_as_repetitions():
    rng = np.random.default_rng(2)
    X, W, times = rng.random((30, 8)), rng.random((30, 3)), rng.integers(1, 4, 30)
    labels, groups = learn_groups(wrap(X), W, times / 3)
    repeated, expected = learn_groups(wrap(X.repeat(times, axis=0)), W.repeat(times, axis=0))
    np.testing.assert_array_equal(labels.repeat(times), repeated)
    np.testing.assert_allclose(groups.means, expected.means)


def test_kinds_are_found(blocks, model):
    assert adjusted_rand_score(blocks[1], model.labels_) == 1.0
    W = model.transform(blocks[0])
    relative = W / W.mean(axis=0)
    for k in range(3):  # the group of a component holds more of it than the other groups do
        assert relative[model.labels_ == k, k].mean() > relative[model.labels_ != k, k].mean()


def test_means_are_those_of_the_samples_at_unit_length(blocks, model):
    unit = blocks[0] / np.linalg.norm(blocks[0], axis=1)[:, None]
    for k in range(3):
        np.testing.assert_allclose(model._groups.means[k], unit[model.labels_ == k].mean(axis=0))


def test_neither_the_lengths_of_samples_nor_the_scales_of_components_matter():
    rng = np.random.default_rng(3)
    X, W = rng.random((40, 9)), rng.random((40, 4))
    labels, groups = learn_groups(wrap(X), W)
    np.testing.assert_array_equal(labels, learn_groups(wrap(X), W * [1, 10, 100, 0.1])[0])
    np.testing.assert_array_equal(nearest_group(wrap(X * 8.0 ** rng.integers(-9, 9, (40, 1))), groups), labels)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, np.asfortranarray])
def test_other_forms_of_the_same_samples(thin, form):
    X, dense = thin
    other = GSNMF(3, effort="fast").fit(form(X))
    np.testing.assert_array_equal(dense.labels_, other.labels_)
    np.testing.assert_array_equal(other.predict(form(X)), other.labels_)
    np.testing.assert_array_equal(other.predict(X), other.labels_)


def test_single_precision(blocks, model):
    X = blocks[0].astype(np.float32)
    single = GSNMF(3).fit(X)
    assert single._groups.means.dtype == np.float32
    np.testing.assert_array_equal(single.predict(X), single.labels_)
    np.testing.assert_array_equal(single.labels_, model.labels_)


@pytest.mark.parametrize("exponent", [-1000, 900])
def test_extreme_units(blocks, model, exponent):
    X = np.ldexp(blocks[0], exponent)
    np.testing.assert_array_equal(GSNMF(3, effort="fast").fit(X).labels_, model.labels_)
    lazy = GSNMF(3, method="gspa").fit(da.from_array(X, chunks=(20, 30)))
    assert adjusted_rand_score(blocks[1], lazy.predict(X)) == 1.0


@pytest.mark.parametrize(
    ("chunks", "dtype"),
    [
        ((60, 30), np.float64),
        ((17, 30), np.float32),
        ((20, 11), np.float64),
        *(
            pytest.param(*other, marks=pytest.mark.long)
            for other in (((60, 30), np.float32), ((17, 30), np.float64), ((20, 11), np.float32))
        ),
    ],
)
def test_dask(blocks, chunks, dtype):
    X = blocks[0].astype(dtype)
    lazy_X = da.from_array(X, chunks=chunks)
    memory, lazy = GSNMF(3, method="gspa").fit(X), GSNMF(3, method="gspa").fit(lazy_X)
    assert not hasattr(lazy, "labels_")
    before = lazy.result_.source.passes.n_passes
    np.testing.assert_array_equal(lazy.predict(X), memory.labels_)
    assert lazy.result_.source.passes.n_passes - before <= MAX_ROUNDS
    found = lazy.predict(lazy_X)
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(), memory.labels_)
    np.testing.assert_allclose(lazy._groups.means, memory._groups.means, rtol=1e-5)
    np.testing.assert_array_equal(clone(lazy).fit_predict(lazy_X).compute(), memory.labels_)


def test_sparse_chunks(blocks):
    X = np.where(blocks[0] > np.median(blocks[0]), blocks[0], 0)
    lazy_X = da.from_array(X, chunks=(20, 30)).map_blocks(sp.csr_array)
    lazy = GSNMF(3, method="gspa").fit(lazy_X)
    np.testing.assert_array_equal(lazy.predict(lazy_X).compute(), GSNMF(3, method="gspa").fit(X).labels_)


def test_labels_of_an_earlier_fit_are_forgotten(blocks):
    model = GSNMF(3, method="gspa").fit(blocks[0])
    model.fit(da.from_array(blocks[0], chunks=(20, 30)))
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize(
    "options",
    [
        {"coefficients": "model", "effort": "fast"},
        {"sum_to_one": True, "effort": "fast"},
        {"members": 3, "effort": "fast"},
        {"n_components": (0, 3), "effort": "fast"},
        {"method": "spa-rows"},
    ],
)
def test_every_kind_of_model(blocks, options):
    X, kinds = blocks
    X = np.vstack([X, np.zeros((1, 30))])
    model = GSNMF(**{"n_components": 3, **options}).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert adjusted_rand_score(kinds, model.labels_[:60]) == 1.0
    assert model.labels_[60] == -1


@pytest.mark.parametrize("unstored", [False, True])
def test_holes(blocks, unstored):
    X, kinds = blocks
    holes = np.random.default_rng(4).random(X.shape) < 0.3
    holed = np.where(holes, np.nan, X)
    data = sp.csr_array(np.where(holes, 0, X)) if unstored else holed
    model = GSNMF(3, effort="fast", missing_values="unstored" if unstored else np.nan).fit(data)
    np.testing.assert_array_equal(model.predict(data), model.labels_)
    assert adjusted_rand_score(kinds, model.labels_) == 1.0
    if not unstored:
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_sample_without_an_observed_entry_has_no_group(blocks):
    model = GSNMF(3, missing_values=np.nan, effort="fast").fit(blocks[0])
    holed = np.vstack([blocks[0][0], np.full(30, np.nan)])
    assert model.predict(holed).tolist() == [model.labels_[0], -1]


@pytest.mark.parametrize("holed", [False, True])
def test_features_without_weight_do_not_count(blocks, holed):
    X, kinds = blocks
    noise = 100 * np.random.default_rng(5).random((60, 5))
    both = np.hstack([X, noise])
    weight = np.r_[np.ones(30), np.zeros(5)]
    sample_weight = np.random.default_rng(6).integers(1, 4, 60)
    if holed:
        both[3, 4] = np.nan
    model = GSNMF(3, missing_values=np.nan if holed else None, effort="fast")
    model.fit(both, sample_weight=sample_weight, feature_weight=weight)
    assert adjusted_rand_score(kinds, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(both), model.labels_)
    both[:, 30:] = noise[::-1]
    np.testing.assert_array_equal(model.predict(both), model.labels_)


def test_a_sample_that_resembles_none_goes_to_the_largest_group():
    X = np.array(
        [[1.0, 1, 0, 0, 0], [1, 2, 0, 0, 0], [2, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 2, 1, 0], [0, 0, 0, 0, 0.01]]
    )
    model = GSNMF(2).fit(X)
    assert model.labels_.tolist()[:5] in ([0, 0, 0, 1, 1], [1, 1, 1, 0, 0])
    assert model.labels_[5] == model.labels_[0] == model.predict([[0, 0, 0, 0, 1]])[0]


def test_nothing_to_group():
    model = GSNMF(2).fit(np.zeros((4, 3)))
    assert model.labels_.tolist() == [-1] * 4
    assert model.predict(np.ones((2, 3))).tolist() == [-1, -1]


def test_one_component():
    assert GSNMF(1).fit_predict(np.random.default_rng(0).random((5, 4))).tolist() == [0] * 5


def test_a_component_that_is_nowhere_strongest_has_no_samples():
    X, W = np.random.default_rng(7).random((20, 5)), np.zeros((20, 3))
    W[:, :2] = 1 + np.eye(2)[np.arange(20) % 2]
    labels, groups = learn_groups(wrap(X), W)
    assert set(labels) <= {0, 1}
    assert not groups.means[2].any()


def test_strongest_component_does_not_depend_on_scale():
    W = np.random.default_rng(0).random((40, 4))
    other = W * [1, 10, 100, 0.1]
    found, scaled = (strongest_component(V, mean_coefficients(V)) for V in (W, other))
    np.testing.assert_array_equal(found, scaled)


def test_pickled_and_saved_models_predict(blocks, model, tmp_path):
    model.save(tmp_path / "model.npz")
    lazy = GSNMF(3, method="gspa").fit(da.from_array(blocks[0], chunks=(20, 30)))
    lazy.save(tmp_path / "lazy.npz")
    new = np.random.default_rng(8).random((40, 30))
    for own, name in ((model, "model"), (lazy, "lazy")):
        for other in (GSNMF.load(tmp_path / f"{name}.npz"), pickle.loads(pickle.dumps(own))):
            np.testing.assert_array_equal(other.predict(new), own.predict(new))
            other.save(tmp_path / "again.npz")
            np.testing.assert_array_equal(GSNMF.load(tmp_path / "again.npz").predict(new), own.predict(new))


def test_groups_of_a_planted_matrix_keep_their_factors():
    X = planted((60, 40), n_columns=3, n_rows=3, random_state=0).matrix
    model = GSNMF(6).fit(X)
    W = model.transform(X)
    held = np.array([(W / W.mean(axis=0))[model.labels_ == k].mean(axis=0) for k in range(6)])
    np.testing.assert_array_equal(held.argmax(axis=1), np.arange(6))


def test_species_of_iris():
    X, species = load_iris(return_X_y=True)
    X = X / X.max(axis=0)
    assert adjusted_rand_score(species, GSNMF(3, members=3).fit_predict(X)) > 0.8


def test_nearest_group_of_no_samples():
    assert nearest_group(wrap(sp.csr_array((2, 3))), Groups(np.ones((2, 3)), 0)).tolist() == [-1, -1]
