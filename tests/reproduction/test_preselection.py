"""Hierarchical clusters and the candidates that they give."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from gsnmf.datasets import fully_random
from gsnmf.matrix import wrap
from gsnmf.selection.successive_projection import generalized_successive_projection
from gsnmf.weights import solve_weights
from reproduction import preselection
from reproduction.preselection import hierarchical_clusters, preselect


def sparse_counts(shape, seed, density=0.1):
    """Like words in documents: few entries, norms over several decades."""
    rng = np.random.default_rng(seed)
    matrix = np.ceil(rng.gamma(0.3, 3.0, shape)) * (rng.random(shape) < density)
    return matrix * np.geomspace(1, 0.01, shape[1])[rng.permutation(shape[1])]


def gspa_among_candidates(matrix, rank, *, n_columns, n_rows):
    """Columns and rows of the whole matrix."""
    candidates = preselect(matrix, n_columns, n_rows)
    found = generalized_successive_projection(wrap(candidates.reduced(matrix)), rank)
    return candidates.columns[found.columns], candidates.rows[found.rows]


def with_copies(base, n_copies, rng):
    """Copies of every column in mixed order, one of them the largest; also which column each is, and the largest."""
    n = base.shape[1]
    factors = np.hstack([np.ones(n), rng.uniform(0.2, 0.9, (n_copies - 1) * n)])
    order = rng.permutation(n * n_copies)
    repeated = (np.tile(base, n_copies) * factors)[:, order]
    original = np.tile(np.arange(n), n_copies)[order]
    largest = np.argsort(order)[:n]
    return repeated, original, largest


def same_partition(labels, others):
    pairs = set(zip(labels.tolist(), others.tolist(), strict=True))
    return len(pairs) == len(set(labels.tolist())) == len(set(others.tolist()))


def assert_partition(clusters, squared_norms, n_clusters):
    nonzero = squared_norms > 0
    assert np.array_equal(clusters.labels >= 0, nonzero)
    assert np.array_equal(np.bincount(clusters.labels[nonzero], minlength=clusters.sizes.size), clusters.sizes)
    assert clusters.sizes.sum() == nonzero.sum()
    assert (clusters.sizes > 0).all()
    assert clusters.representatives.size == clusters.sizes.size <= n_clusters
    assert np.array_equal(clusters.labels[clusters.representatives], np.arange(clusters.sizes.size))
    assert (np.diff(clusters.representatives) > 0).all()


@given(
    st.integers(1, 12),
    st.integers(1, 30),
    st.integers(1, 20),
    st.sampled_from(["columns", "rows"]),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=200, deadline=None)
def test_clusters_are_a_partition(m, n, n_clusters, axis, density, whole_numbers, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((m, n)) * (rng.random((m, n)) < density)
    if whole_numbers:  # parallel columns and ties
        matrix = np.round(2 * matrix)
    clusters = hierarchical_clusters(wrap(matrix), n_clusters, axis=axis)
    assert_partition(clusters, np.sum(matrix**2, axis=0 if axis == "columns" else 1), n_clusters)


@pytest.mark.parametrize("axis", ["columns", "rows"])
@pytest.mark.parametrize("n_clusters", [1, 2, 7, 60])
def test_generic_columns_give_as_many_clusters_as_asked(axis, n_clusters):
    matrix = wrap(np.random.default_rng(0).random((90, 80)))
    clusters = hierarchical_clusters(matrix, n_clusters, axis=axis)
    assert_partition(clusters, (matrix if axis == "columns" else matrix.T).squared_column_norms, n_clusters)
    assert clusters.sizes.size == n_clusters


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("m", "n_directions"), [(5, 12), (100, 30), (120, 90)])
def test_parallel_columns_are_one_cluster_each(m, n_directions, container, dtype):
    rng = np.random.default_rng(0)
    directions = rng.random((m, n_directions)) * (rng.random((m, n_directions)) < 0.5)
    directions[:2] += rng.uniform(0.1, 1.0, (2, n_directions))  # no two are parallel
    matrix, original, largest = with_copies(directions, 4, rng)
    held = wrap(container(matrix.astype(dtype)))
    clusters = hierarchical_clusters(held, n_directions)
    assert same_partition(clusters.labels, original)
    assert (clusters.sizes == 4).all()
    if dtype is np.float64:  # float32 copies are parallel to single precision only, so any of them may be closest
        assert np.array_equal(clusters.representatives, np.sort(largest))
    more = hierarchical_clusters(held, n_directions + 5)  # more than there are directions
    assert same_partition(more.labels, original)


def test_rows_are_the_columns_of_the_transpose():
    matrix = sparse_counts((120, 100), seed=0)
    rows = hierarchical_clusters(wrap(matrix), 15, axis="rows")
    columns = hierarchical_clusters(wrap(np.ascontiguousarray(matrix.T)), 15)
    assert np.array_equal(rows.labels, columns.labels)
    assert np.array_equal(rows.representatives, columns.representatives)


@pytest.mark.parametrize("shape", [(150, 400), (400, 150), (30, 200)])
def test_sparse_equals_dense_and_is_repeatable(shape):
    matrix = sparse_counts(shape, seed=1)
    matrix[:, 3] = 0
    before = matrix.copy()
    expected = hierarchical_clusters(wrap(matrix), 25)
    assert expected.labels[3] == -1
    for container in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array):
        clusters = hierarchical_clusters(wrap(container(matrix)), 25)
        assert np.array_equal(clusters.labels, expected.labels)
        assert np.array_equal(clusters.representatives, expected.representatives)
        assert np.array_equal(clusters.sizes, expected.sizes)
    assert np.array_equal(matrix, before)


@pytest.mark.parametrize("factor", [2.0**-300, 2.0**300])
def test_the_unit_of_the_matrix_does_not_matter(factor):
    matrix = sparse_counts((100, 150), seed=2)
    expected = hierarchical_clusters(wrap(matrix), 20)
    assert np.array_equal(hierarchical_clusters(wrap(matrix * factor), 20).labels, expected.labels)


def test_the_order_of_the_columns_does_not_matter():
    matrix = sparse_counts((100, 150), seed=3)
    order = np.random.default_rng(0).permutation(150)
    expected = hierarchical_clusters(wrap(matrix), 20)
    clusters = hierarchical_clusters(wrap(np.ascontiguousarray(matrix[:, order])), 20)
    assert same_partition(clusters.labels, expected.labels[order])
    assert set(order[clusters.representatives]) == set(expected.representatives)


def test_a_side_with_no_more_columns_than_clusters_is_kept_whole():
    matrix = np.ones((4, 6))
    matrix[:, 2] = 0
    for n_clusters in (5, 6, 100):
        clusters = hierarchical_clusters(wrap(matrix), n_clusters)
        assert clusters.representatives.tolist() == [0, 1, 3, 4, 5]
        assert clusters.sizes.tolist() == [1] * 5
        assert clusters.labels.tolist() == [0, 1, -1, 2, 3, 4]


def test_zero_matrix():
    matrix = wrap(np.zeros((3, 4)))
    clusters = hierarchical_clusters(matrix, 2)
    assert clusters.representatives.size == clusters.sizes.size == 0
    assert clusters.labels.tolist() == [-1] * 4
    assert preselect(matrix, 2, 2).reduced(matrix).shape == (0, 0)


@pytest.mark.parametrize("container", [np.asarray, sp.csc_array])
def test_columns_of_a_noisy_block_matrix_are_represented(container):
    """Every block has rows of its own: each is a cluster, and its representative is a column of it."""
    rng = np.random.default_rng(0)
    n_blocks, height, width = 12, 8, 15
    matrix = np.zeros((n_blocks * height, n_blocks * width))
    for k in range(n_blocks):
        block = np.outer(rng.uniform(1, 2, height), rng.uniform(0.5, 2, width)) * rng.uniform(0.9, 1.1, (height, width))
        matrix[k * height : (k + 1) * height, k * width : (k + 1) * width] = block
    column_order, row_order = rng.permutation(matrix.shape[1]), rng.permutation(matrix.shape[0])
    held = wrap(container(matrix[row_order][:, column_order]))
    columns = hierarchical_clusters(held, n_blocks)
    rows = hierarchical_clusters(held, n_blocks, axis="rows")
    assert same_partition(columns.labels, column_order // width)
    assert same_partition(rows.labels, row_order // height)


def test_equal_orthogonal_blocks_are_told_apart():
    """All leading singular values are equal, so a single starting vector would see one of them."""
    block = np.outer(np.arange(1.0, 11), np.ones(9))
    matrix = sp.block_diag([block] * 10, format="csr")
    clusters = hierarchical_clusters(wrap(sp.csr_array(matrix)), 10)
    assert same_partition(clusters.labels, np.arange(90) // 9)


def test_every_split_lowers_the_error():
    matrix = sparse_counts((80, 120), seed=4)
    held = wrap(matrix)
    errors = []
    for n_clusters in range(1, 30):
        labels = hierarchical_clusters(held, n_clusters).labels
        parts = [matrix[:, labels == label] for label in range(labels.max() + 1)]
        errors.append(sum(np.sum(part**2) - np.linalg.norm(part, 2) ** 2 for part in parts))
    assert (np.diff(errors) < 0).all()


@pytest.mark.parametrize("kind", ["small", "krylov"])
@pytest.mark.parametrize("container", [np.asarray, sp.csc_array])
def test_leading_singular_vectors(kind, container):
    shapes = [(30, 90), (90, 30), (2, 5)] if kind == "small" else [(100, 300), (300, 100)]
    for shape in shapes:
        rng = np.random.default_rng(0)
        matrix = rng.random((shape[0], 4)) ** 3 @ rng.random((4, shape[1])) ** 3 + 0.01 * rng.random(shape)
        norms = np.sum(matrix**2, axis=0)
        squares, left, coordinates = preselection._leading_two(container(matrix), norms)
        U, s, _ = np.linalg.svd(matrix, full_matrices=False)
        assert np.allclose(squares, s[:2] ** 2, rtol=1e-6)
        assert np.allclose(left.T @ left, np.eye(2), atol=1e-8)
        assert np.allclose(np.abs(np.diag(U[:, :2].T @ left)), 1, atol=1e-4)
        assert np.allclose(coordinates, left.T @ matrix, atol=1e-8 * s[0])


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_two_weights_in_closed_form(m, n, n_zero, seed):
    rng = np.random.default_rng(seed)
    factor, matrix = rng.random((m, 2)), rng.random((m, n))
    matrix *= rng.random((m, n)) < 0.5
    factor[: min(n_zero, m), 1] = 0
    if seed % 5 == 0:
        factor[:, 1] = factor[:, 0]
    weights = preselection._best_weights(matrix.T, factor)
    lengths = np.linalg.norm(factor, axis=0)
    unit = np.divide(factor, lengths, out=np.zeros_like(factor), where=lengths > 0)
    assert (weights >= 0).all()
    for column, pair in zip(matrix.T, weights.T, strict=True):
        assert np.linalg.norm(column - unit @ pair) <= nnls(unit, column)[1] + 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_reduced_matrix_is_scaled_by_the_roots_of_the_sizes(container, dtype):
    matrix = sparse_counts((90, 130), seed=6, density=0.3).astype(dtype)
    held = wrap(container(matrix))
    chosen = preselect(held, 20, 10)
    assert chosen.column_sizes.sum() == np.count_nonzero(matrix.any(axis=0))
    assert chosen.row_sizes.sum() == np.count_nonzero(matrix.any(axis=1))
    reduced = chosen.reduced(held)
    assert reduced.shape == (10, 20)
    assert reduced.dtype == dtype
    scale = np.sqrt(np.outer(chosen.row_sizes, chosen.column_sizes))
    assert np.allclose(reduced, matrix[np.ix_(chosen.rows, chosen.columns)] * scale, rtol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_pipeline_finds_planted_indices_of_the_whole_matrix(container):
    """Every column and row of a planted matrix three times and twice: clusters leave one of each, the largest."""
    rng = np.random.default_rng(0)
    data = fully_random(0.0, shape=(40, 50), n_columns=4, n_rows=3, random_state=7)  # GSPA finds these
    wide, _, columns_of = with_copies(data.matrix, 3, rng)
    tall, _, rows_of = with_copies(wide.T, 2, rng)
    held = wrap(container(tall.T))
    columns, rows = gspa_among_candidates(held, 7, n_columns=50, n_rows=40)
    direct = generalized_successive_projection(wrap(data.matrix), 7)
    assert np.array_equal(columns, columns_of[direct.columns])
    assert np.array_equal(rows, rows_of[direct.rows])
    assert set(columns) == set(columns_of[data.columns])
    assert set(rows) == set(rows_of[data.rows])


def test_small_sides_are_kept_whole():
    matrix = sparse_counts((70, 90), seed=7)
    held = wrap(matrix)
    rows, columns = np.flatnonzero(matrix.any(axis=1)), np.flatnonzero(matrix.any(axis=0))
    whole = preselect(held, 500, 500)
    assert np.array_equal(whole.rows, rows)
    assert np.array_equal(whole.columns, columns)
    assert np.array_equal(whole.reduced(held), matrix[np.ix_(rows, columns)])
    assert preselect(held, 10, 500).reduced(held).shape == (rows.size, 10)


@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (-3, ValueError), (2.5, TypeError)])
def test_counts_are_checked(count, error):
    with pytest.raises(error, match="must be an integer"):
        hierarchical_clusters(wrap(np.eye(3)), count)


@pytest.mark.parametrize(("name", "at_least"), [("tr23", 63.66), ("tr11", 73.9), ("hitech", 6.2)])
def test_gspa_on_preselected_documents_is_as_good_as_the_paper(paper, name, at_least):
    """The paper prints 63.66, 74.21 and 6.43 for GSPA on its own 500 words and documents."""
    documents = paper(name)
    matrix = wrap(documents.matrix)
    columns, rows = gspa_among_candidates(matrix, documents.rank, n_columns=500, n_rows=500)
    assert columns.size + rows.size == documents.rank
    weights = solve_weights(matrix, columns, rows)
    assert 100 * (1 - weights.relative_error) > at_least
