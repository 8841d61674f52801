import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from gsnmf._kernels.simplex import project_on_hull
from gsnmf.matrix import wrap
from gsnmf.selection.successive_nonnegative import successive_nonnegative_projection
from gsnmf.selection.successive_projection import successive_projection


def choose(matrix, rank, axis="columns"):
    selection = successive_nonnegative_projection(wrap(matrix), rank, axis=axis)
    return (selection.columns if axis == "columns" else selection.rows).tolist()


def nearest_in_hull(points, target):
    """Weights of the point of the convex hull nearest to the target.

    The scale t of weights t x, sum x = 1, that minimise t^2 |points x - target|^2 + (t - 1)^2 does not matter for x.
    """
    shifted = points - target[:, None]
    scale = np.abs(shifted).max() or 1.0
    weights, _ = nnls(np.vstack([shifted / scale, np.ones(points.shape[1])]), np.r_[np.zeros(target.size), 1.0])
    return weights / weights.sum()


def textbook(matrix, rank):
    """SNPA to the letter, with an explicit residual."""
    chosen = []
    for _ in range(rank):
        hull = np.hstack([np.zeros((matrix.shape[0], 1)), matrix[:, chosen]])
        fitted = np.array([hull @ nearest_in_hull(hull, column) for column in matrix.T]).T
        chosen.append(int(np.argmax(np.linalg.norm(matrix - fitted, axis=0))))
    return chosen


def separable(W, n_more, rng, *, full_sums):
    """W H with the identity among the columns of H, permuted, and where the columns of W went."""
    r = W.shape[1]
    mixed = rng.dirichlet(np.ones(r), n_more).T
    H = np.hstack([np.eye(r), mixed if full_sums and r > 1 else mixed * rng.random(n_more)])
    order = rng.permutation(r + n_more)
    return (W @ H)[:, order], set(np.flatnonzero(order < r).tolist())


def on_a_circle(r, rng):
    """Points in convex position in a plane that does not contain the origin: three rows, any number of columns."""
    angles = 2 * np.pi * (np.arange(r) + 0.4 * rng.random(r)) / r
    return np.array([1 + 0.9 * np.cos(angles), 1 + 0.9 * np.sin(angles), np.ones(r)])


@pytest.mark.parametrize("shape", [(30, 40), (8, 40)])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("scaled", [False, True])
def test_same_picks_as_the_textbook(shape, container, scaled):
    rng = np.random.default_rng(0)
    matrix = rng.random(shape) * (rng.random(shape) < 0.5)
    if scaled:
        matrix /= matrix.sum(axis=0)
    before = matrix.copy()
    assert choose(container(matrix), 15) == textbook(matrix, 15)
    assert choose(container(matrix.T), 15, axis="rows") == textbook(matrix, 15)
    assert np.array_equal(matrix, before)


def test_same_picks_as_the_textbook_on_noisy_mixtures():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix, _ = separable(rng.random((25, 12)), 40, rng, full_sums=seed % 2 == 0)
        matrix = np.maximum(0.0, matrix + 0.05 * rng.standard_normal(matrix.shape))
        assert choose(matrix, 12) == textbook(matrix, 12)


@given(
    st.integers(1, 8), st.integers(0, 20), st.integers(0, 25), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1)
)
@settings(max_examples=100, deadline=None)
def test_recovers_separable_matrices(rank, more_rows, more_columns, full_sums, sparse, seed):
    rng = np.random.default_rng(seed)
    W = rng.random((rank + more_rows, rank)) + 2 * np.eye(rank + more_rows, rank)
    matrix, true = separable(W, more_columns, rng, full_sums=full_sums)
    given_matrix = sp.csr_array(matrix) if sparse else matrix
    assert set(choose(given_matrix, rank)) == true
    assert set(choose(given_matrix.T, rank, axis="rows")) == true


@given(st.integers(3, 12), st.integers(0, 40), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_recovers_more_columns_than_the_rank(r, more_columns, full_sums, sparse, seed):
    rng = np.random.default_rng(seed)
    matrix, true = separable(on_a_circle(r, rng), more_columns, rng, full_sums=full_sums)
    selection = successive_nonnegative_projection(
        wrap(sp.csc_array(matrix) if sparse else matrix), r + min(more_columns, 3), axis="columns"
    )
    assert set(selection.columns.tolist()) == true
    assert (selection.stop_reason == "residual is zero") == (more_columns > 0)


def test_an_edge_at_the_same_distance_gives_its_ends():
    """The upper edge of a rectangle is equally far from the lower one all along; its middle comes first here."""
    corners = np.array([[1.0, 3, 3, 1], [1, 1, 2, 2], [4, 4, 4, 4]])
    middle = corners[:, 2:].mean(axis=1, keepdims=True)
    matrix = np.hstack([middle, 0.25 * corners[:, [2]] + 0.75 * corners[:, [3]], corners])
    assert set(choose(matrix, 4)) == {2, 3, 4, 5}


@pytest.mark.parametrize(("m", "r", "push"), [(10, 20, 0.01), (15, 10, 0.1), (15, 10, 0.2)])
def test_middle_points_pushed_outwards(m, r, push):
    """The experiment of the publication: SNPA stands more noise than SPA, which ends at the rank of W."""
    found = {"spa": 0, "snpa": 0}
    for seed in range(20):
        W = np.random.default_rng(seed).random((m, r))
        W /= W.sum(axis=0)
        first, second = np.triu_indices(r, 1)
        middle = (W[:, first] + W[:, second]) / 2
        pushed = np.maximum(0.0, middle + push * (middle - W.mean(axis=1, keepdims=True)))
        matrix = np.hstack([pushed, W])
        spa = successive_projection(wrap(matrix), r, axis="columns").columns
        found["spa"] += np.count_nonzero(spa >= first.size)
        found["snpa"] += np.count_nonzero(np.array(choose(matrix, r)) >= first.size)
    assert found["snpa"] > found["spa"]
    assert found["snpa"] >= 20 * r * (0.98 if push < 0.2 else 0.9)
    assert found["spa"] <= 20 * m


def test_rank_above_the_true_rank_stops_and_says_so():
    rng = np.random.default_rng(3)
    matrix, true = separable(rng.random((50, 4)), 60, rng, full_sums=True)
    selection = successive_nonnegative_projection(wrap(matrix), 20, axis="columns")
    assert selection.stop_reason == "residual is zero"
    assert set(selection.columns.tolist()) == true
    assert selection.rows.size == 0
    assert selection.order == ("columns",) * 4


def test_zero_and_repeated_columns():
    rng = np.random.default_rng(4)
    matrix = rng.random((20, 15))
    matrix[:, 3] = 0.0
    matrix[:, 7] = matrix[:, 8]
    columns = choose(matrix, 15)
    assert 3 not in columns
    assert not {7, 8} <= set(columns)
    assert np.unique(columns).size == len(columns)
    assert choose(np.zeros((4, 3)), 2) == []
    assert choose(np.ones((3, 7)), 3) == [0]
    assert choose(np.eye(4), 3) == [0, 1, 2]


def test_one_row_has_one_extreme_column():
    assert choose(np.array([[1.0, 5.0, 2.0, 0.0]]), 3) == [1]
    assert choose(np.array([[1.0, 5.0, 2.0, 0.0]]).T, 3, axis="columns") == [0]


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_extreme_units_change_nothing(factor):
    matrix = np.random.default_rng(5).random((30, 25))
    assert choose(matrix * factor, 12) == choose(matrix, 12)


def test_float32_finds_the_same():
    rng = np.random.default_rng(6)
    matrix, true = separable(rng.random((40, 10)), 60, rng, full_sums=True)
    single = matrix.astype(np.float32)
    assert set(choose(single, 10)) == set(choose(sp.csr_array(single), 10)) == true
    assert len(choose(single, 30)) == 10
    noisy = np.maximum(0.0, matrix + 0.05 * rng.standard_normal(matrix.shape))
    assert choose(noisy.astype(np.float32), 10) == choose(noisy, 10)


@given(st.integers(2, 12), st.integers(1, 30), st.floats(0, 3), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_kernel_finds_the_nearest_point(size, n, spread, dependent, seed):
    rng = np.random.default_rng(seed)
    points = np.zeros((size + 1, size + 1))
    points[1:, 1:] = np.tril(rng.standard_normal((size, size))) * 10.0 ** -rng.uniform(0, spread, (size, 1))
    if dependent:
        points[:, 1 + (size + 1) // 2 :] = 0.0
    targets = np.zeros((n, size + 1))
    targets[:, 1:] = rng.standard_normal((n, size)) * 10.0 ** -rng.uniform(0, spread, (n, 1))
    X = np.zeros((n, size + 1))
    X[:, 0] = 1.0
    residuals, multipliers = np.empty((n, size + 1)), np.empty(n)
    for used in (size // 2 + 2, size + 1):  # the second time from the solution for some of the points
        some = np.ascontiguousarray(X[:, :used])
        residuals = np.empty((n, used))
        project_on_hull(some, residuals, multipliers, points[:used, :used].copy(), targets[:, :used].copy())
        X[:, :used] = some
    assert X.min() >= 0
    assert np.allclose(X.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    assert np.allclose(targets - X @ points, residuals, rtol=0, atol=1e-12 * np.abs(targets).max())
    slopes = residuals @ points.T
    scale = np.linalg.norm(targets, axis=1) * np.linalg.norm(points, axis=1).max()
    assert np.all(slopes.max(axis=1) - multipliers <= 1e-10 * scale)
    assert np.all(np.abs(np.einsum("ij,ij->i", X, slopes) - multipliers) <= 1e-10 * scale)
