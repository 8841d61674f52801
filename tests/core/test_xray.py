import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import gsnmf.selection.xray as module
from gsnmf.matrix import wrap
from gsnmf.selection.xray import xray

RULES = ["max", "dist", "greedy"]


def choose(matrix, rank, rule="max", axis="columns"):
    selection = xray(wrap(matrix), rank, rule=rule, axis=axis)
    return (selection.columns if axis == "columns" else selection.rows).tolist()


def textbook(matrix, rank, rule):
    """XRAY to the letter, with an explicit residual."""
    chosen = []
    residual = matrix
    for _ in range(rank):
        alignment = np.maximum(0.0, residual.T @ matrix)
        if rule == "greedy":
            best = int(np.argmax((alignment**2).sum(axis=0) / (matrix**2).sum(axis=0)))
        else:
            distances = (residual**2).sum(axis=0) if rule == "max" else (alignment**2).sum(axis=1)
            exterior = residual[:, int(np.argmax(distances))]
            best = int(np.argmax(exterior @ matrix / matrix.sum(axis=0)))
        chosen.append(best)
        cone = matrix[:, chosen]
        residual = matrix - cone @ np.array([nnls(cone, column)[0] for column in matrix.T]).T
    return chosen


def separable(W, n_more, rng):
    """W H with the identity among the columns of H, columns of any length, permuted, and where those of W went."""
    r = W.shape[1]
    H = np.hstack([np.eye(r), rng.dirichlet(np.ones(r), n_more).T]) * 10.0 ** rng.uniform(-1, 1, r + n_more)
    order = rng.permutation(r + n_more)
    return (W @ H)[:, order], set(np.flatnonzero(order < r).tolist())


def documents(rng, n_documents=150, n_words=120, n_topics=6):
    """Sparse weighted counts with a few frequent words and many rare ones; the weights leave no ties."""
    topics = rng.dirichlet(30 / np.arange(1, n_words + 1), n_topics)
    rates = rng.dirichlet(np.full(n_topics, 0.1), n_documents) @ topics
    counts = np.array([rng.multinomial(40, rate) for rate in rates])
    return counts[:, counts.sum(axis=0) > 0] * rng.uniform(0.5, 1.5, (n_documents, 1))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(30, 40), (12, 40)])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_same_picks_as_the_textbook(rule, shape, container):
    rng = np.random.default_rng(0)
    matrix = rng.random(shape) * (rng.random(shape) < 0.5)
    before = matrix.copy()
    assert choose(container(matrix), 10, rule) == textbook(matrix, 10, rule)
    assert choose(container(matrix.T), 10, rule, axis="rows") == textbook(matrix, 10, rule)
    assert np.array_equal(matrix, before)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("room", [0, 1 << 15, pytest.param(1 << 28, marks=pytest.mark.long)])
def test_same_picks_whatever_the_memory(rule, room, monkeypatch):
    """On mixtures and on counts, where the bounds on the scores leave most of them uncomputed."""
    monkeypatch.setattr(module, "_GRAM_BYTES", room)
    monkeypatch.setattr(module, "_FIRST_BLOCK", 4)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        mixture, _ = separable(rng.random((25, 10)), 50, rng)
        noisy = np.maximum(0.0, mixture + 0.05 * rng.standard_normal(mixture.shape))
        assert choose(noisy, 10, rule) == textbook(noisy, 10, rule)
        counts = documents(rng)
        assert choose(sp.csr_array(counts), 12, rule) == textbook(counts, 12, rule)


def test_few_scores_are_computed_on_counts(monkeypatch):
    computed = []
    exact = module._Scores._exact

    def counted(self, indices):
        computed.append(indices.size)
        return exact(self, indices)

    monkeypatch.setattr(module._Scores, "_exact", counted)
    counts = documents(np.random.default_rng(0), n_documents=400, n_words=800)
    for rule in ["dist", "greedy"]:
        computed.clear()
        choose(sp.csr_array(counts), 15, rule)
        assert sum(computed) < 0.4 * 15 * counts.shape[1]


@given(
    st.integers(1, 8),
    st.integers(0, 20),
    st.integers(0, 25),
    st.sampled_from(["max", "dist"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=100, deadline=None)
def test_recovers_separable_matrices(rank, more_rows, more_columns, rule, sparse, seed):
    rng = np.random.default_rng(seed)
    W = rng.random((rank + more_rows, rank)) + 2 * np.eye(rank + more_rows, rank)
    matrix, true = separable(W, more_columns if rank > 1 else 0, rng)
    given_matrix = sp.csr_array(matrix) if sparse else matrix
    assert set(choose(given_matrix, rank, rule)) == true
    assert set(choose(given_matrix.T, rank, rule, axis="rows")) == true


@given(st.integers(3, 12), st.integers(0, 40), st.sampled_from(["max", "dist"]), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_recovers_more_rays_than_the_rank(r, more_columns, rule, seed):
    """Rays of a cone over a polygon: three rows, any number of them."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * (np.arange(r) + 0.4 * rng.random(r)) / r
    W = np.array([1 + 0.9 * np.cos(angles), 1 + 0.9 * np.sin(angles), np.ones(r)])
    matrix, true = separable(W, more_columns, rng)
    selection = xray(wrap(matrix), r + min(more_columns, 3), rule=rule, axis="columns")
    assert set(selection.columns.tolist()) == true
    assert (selection.stop_reason == "residual is zero") == (more_columns > 0)


def test_a_face_at_the_same_height_gives_its_rays():
    """From the lower edge of a square cone the upper edge is equally far out all along; its middle comes first."""
    corners = np.array([[1.0, 3, 3, 1], [1, 1, 2, 2], [4, 4, 3, 5]])
    corners /= corners.sum(axis=0)
    middle = corners[:, 2:].mean(axis=1, keepdims=True)
    matrix = np.hstack([middle, 0.25 * corners[:, [2]] + 0.75 * corners[:, [3]], corners])
    for rule in ["max", "dist"]:
        assert set(choose(matrix, 4, rule)) == {2, 3, 4, 5}


@pytest.mark.parametrize("rule", ["max", "dist"])
def test_lengths_of_columns_do_not_change_the_rays_of_a_separable_matrix(rule):
    rng = np.random.default_rng(1)
    matrix, true = separable(rng.random((20, 6)), 40, rng)
    assert set(choose(matrix * 10.0 ** rng.uniform(-3, 3, matrix.shape[1]), 6, rule)) == true


def test_greedy_reduces_the_error_most():
    """Of a star and its centre, the centre alone explains most; it is no extreme ray."""
    matrix = np.hstack([np.eye(4), np.ones((4, 3))])
    assert choose(matrix, 1, "greedy") == [4]
    assert choose(matrix, 1, "max") == [0]


@pytest.mark.parametrize("rule", RULES)
def test_rank_above_the_true_rank_stops_and_says_so(rule):
    rng = np.random.default_rng(3)
    matrix, true = separable(rng.random((50, 4)), 60, rng)
    selection = xray(wrap(matrix), 40, rule=rule, axis="columns")
    assert selection.stop_reason == "residual is zero"
    assert true <= set(selection.columns.tolist())
    assert rule == "greedy" or selection.n_selected == 4
    assert selection.rows.size == 0
    assert selection.order == ("columns",) * selection.n_selected


@pytest.mark.parametrize("rule", RULES)
def test_zero_and_repeated_columns(rule):
    rng = np.random.default_rng(4)
    matrix = rng.random((20, 15))
    matrix[:, 3] = 0.0
    matrix[:, 7] = 3 * matrix[:, 8]
    columns = choose(matrix, 15, rule)
    assert 3 not in columns
    assert not {7, 8} <= set(columns)
    assert np.unique(columns).size == len(columns)
    assert choose(np.zeros((4, 3)), 2, rule) == []
    assert choose(np.ones((3, 7)), 3, rule) == [0]
    assert choose(np.eye(4), 3, rule) == [0, 1, 2]
    assert choose(np.array([[0.0, 2.0, 5.0]]), 3, rule) == [1]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_extreme_units_change_nothing(rule, factor):
    matrix = np.random.default_rng(5).random((30, 25))
    assert choose(matrix * factor, 12, rule) == choose(matrix, 12, rule)


@pytest.mark.parametrize("rule", RULES)
def test_float32_finds_the_same(rule):
    rng = np.random.default_rng(6)
    matrix, true = separable(rng.random((40, 10)), 60, rng)
    single = matrix.astype(np.float32)
    if rule != "greedy":
        assert set(choose(single, 10, rule)) == set(choose(sp.csr_array(single), 10, rule)) == true
        assert len(choose(single, 30, rule)) == 10
    noisy = np.maximum(0.0, matrix + 0.05 * rng.standard_normal(matrix.shape))
    assert choose(noisy.astype(np.float32), 10, rule) == choose(noisy, 10, rule)


def test_unknown_rule():
    with pytest.raises(ValueError, match=r"rule must be one of 'max', 'dist', 'greedy'; got 'rand'\."):
        choose(np.eye(3), 2, "rand")


@pytest.mark.parametrize("rule", ["max", "dist", "greedy"])
def test_no_index_twice_on_badly_scaled_data(rule):
    M = np.array([[8e4, 0.02, 0.05, 500], [0.05, 0, 0, 9e4], [0.009, 10, 500, 5e4]])
    rng = np.random.default_rng(0)
    drawn = [10.0 ** rng.uniform(-8, 8, (rng.integers(2, 7), rng.integers(2, 7))) for _ in range(200)]
    for matrix in (M, M.T, *drawn):
        chosen = xray(wrap(matrix), matrix.shape[1], rule=rule, axis="columns").columns
        assert np.unique(chosen).size == chosen.size
