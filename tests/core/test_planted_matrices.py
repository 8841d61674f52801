import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from gsnmf.datasets import (
    fully_random,
    gspa_failure_example,
    middle_points,
    non_unique_example,
    planted,
    three_three_separable,
    two_one_separable,
)

GENERATORS = {
    "fully random": lambda seed: fully_random(0.1, random_state=seed),
    "fully random, unscaled": lambda seed: fully_random(0.1, scale=False, permute=False, random_state=seed),
    "fully random, columns only": lambda seed: fully_random(n_rows=0, shape=(20, 30), random_state=seed),
    "fully random, rows only": lambda seed: fully_random(n_columns=0, shape=(30, 20), random_state=seed),
    "middle points": lambda seed: middle_points(0.1, random_state=seed),
    "middle points, small": lambda seed: middle_points(0.1, n_columns=3, n_rows=4, random_state=seed),
    "planted": lambda seed: planted((40, 30), 5, 4, noise_level=0.1, random_state=seed),
    "planted, sparse": lambda seed: planted(
        (80, 70), 5, 4, density=0.2, noise_level=0.1, sparse=True, random_state=seed
    ),
    "planted, sparse columns": lambda seed: planted((50, 60), 4, 0, density=0.1, sparse=True, random_state=seed),
    "planted, all columns": lambda seed: planted((9, 6), 6, 0, random_state=seed),
    "planted, all rows": lambda seed: planted((5, 9), 0, 5, sparse=True, random_state=seed),
    "two one": lambda _: two_one_separable(9),
    "three three": lambda _: three_three_separable(7, 5),
    "non-unique": lambda _: non_unique_example(),
    "gspa failure": lambda _: gspa_failure_example(),
}
every_generator = pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS.keys())
CLOSED_FORMS = ("two one", "three three", "non-unique", "gspa failure")
random_generators = pytest.mark.parametrize("name", [name for name in GENERATORS if name not in CLOSED_FORMS])


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def arrays_of(truth):
    return [dense(getattr(truth, name)) for name in ("matrix", "noiseless", "columns", "rows", "W", "H")]


def assert_planted(truth, tolerance=1e-13):
    """All that Definition 1 and Property 1 say, and the layout that `Planted` promises."""
    matrix, noiseless, columns, rows, W, H = arrays_of(truth)
    r1 = columns.size
    assert matrix.shape == noiseless.shape
    for part in (matrix, noiseless, W, H):
        assert (part >= 0).all()
    assert_array_equal(columns, np.unique(columns))
    assert_array_equal(rows, np.unique(rows))
    assert_allclose(W @ H, noiseless, rtol=tolerance, atol=tolerance * noiseless.max())
    assert_array_equal(W[:, :r1], noiseless[:, columns])
    assert_array_equal(H[r1:], noiseless[rows])
    assert_array_equal(dense(truth.column_weights), H[:r1])
    assert_array_equal(dense(truth.row_weights), W[:, r1:])
    assert_array_equal(H[:r1, columns], np.eye(r1))
    assert_array_equal(W[rows, r1:], np.eye(rows.size))
    assert_array_equal(noiseless[np.ix_(rows, columns)], 0.0)


@every_generator
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_returned_is_planted(generate, seed):
    assert_planted(generate(seed))


@random_generators
def test_a_seed_fixes_everything(name):
    generate = GENERATORS[name]
    for first, second in zip(arrays_of(generate(5)), arrays_of(generate(5)), strict=True):
        assert_array_equal(first, second)
    assert (dense(generate(5).matrix) != dense(generate(6).matrix)).any()


def test_a_generator_goes_on_where_it_was():
    rng = np.random.default_rng(7)
    first, second = middle_points(random_state=rng), middle_points(random_state=rng)
    assert_array_equal(first.matrix, middle_points(random_state=7).matrix)
    assert (first.matrix != second.matrix).any()


@every_generator
def test_noise_is_bounded_by_its_level(generate):
    truth = generate(2)
    matrix, noiseless = dense(truth.matrix), dense(truth.noiseless)
    # setting negative entries to zero moves them towards the noiseless ones, which are nonnegative
    bound = truth.noise_level * np.linalg.norm(noiseless)
    assert np.linalg.norm(matrix - noiseless) <= bound * (1 + 1e-12)
    if truth.noise_level == 0:
        assert_array_equal(matrix, noiseless)


def test_gaussian_noise_has_exactly_its_norm_where_nothing_is_clipped():
    # no zero block, and noise far below the smallest of 2000 uniform entries
    truth = fully_random(1e-7, n_rows=0, density=1.0, random_state=0)
    assert truth.matrix.min() > 0
    assert_allclose(np.linalg.norm(truth.matrix - truth.noiseless), 1e-7 * np.linalg.norm(truth.noiseless))


def test_noise_is_normalised_before_clipping():
    truth = fully_random(0.3, random_state=0)
    noise = truth.matrix - truth.noiseless
    assert (truth.matrix[truth.noiseless > 0] == 0).any()  # some entries were clipped
    assert 0.2 < np.linalg.norm(noise) / np.linalg.norm(truth.noiseless) < 0.3


def test_noise_is_gaussian_and_independent_of_its_level():
    low, high = (fully_random(level, permute=False, random_state=3) for level in (1e-6, 2e-6))
    positive = low.noiseless > 0.01
    steps = (low.matrix - low.noiseless)[positive] / 1e-6
    assert_allclose((high.matrix - high.noiseless)[positive] / 2e-6, steps, rtol=1e-6, atol=1e-9)
    standard = steps / steps.std()
    # 9000 draws or so: standard errors of mean, skewness and kurtosis are 0.011, 0.026 and 0.052
    assert abs(standard.mean()) < 0.05
    assert abs((standard**3).mean()) < 0.12
    assert abs((standard**4).mean() - 3) < 0.25


@pytest.mark.parametrize("truth", [fully_random(random_state=1), middle_points(random_state=1)])
def test_paper_matrices_are_scaled(truth):
    m, n = truth.noiseless.shape
    assert_allclose(truth.noiseless.sum(axis=0), m, rtol=1e-9)
    assert_allclose(truth.noiseless.sum(axis=1), n, rtol=1e-9)


def test_fully_random_has_the_sizes_of_the_paper():
    truth = fully_random(random_state=0)
    assert truth.matrix.shape == (100, 100)
    assert truth.columns.size == truth.rows.size == 20
    others = np.setdiff1d(np.arange(100), truth.columns)
    share = (truth.column_weights[:, others] > 0).mean()
    assert abs(share - 0.5) < 0.06  # 1600 entries: five standard deviations
    assert (truth.noiseless[np.ix_(np.setdiff1d(np.arange(100), truth.rows), truth.columns)] > 0).all()


def test_without_permutation_planted_columns_come_first_and_rows_last():
    truth = fully_random(permute=False, shape=(12, 10), n_columns=3, n_rows=4, random_state=0)
    assert_array_equal(truth.columns, [0, 1, 2])
    assert_array_equal(truth.rows, [8, 9, 10, 11])


@pytest.mark.parametrize("generate", [fully_random, middle_points])
def test_permutations_move_the_planted_indices(generate):
    truth = generate(random_state=0)
    assert (truth.columns != np.arange(truth.columns.size)).any()
    assert (np.diff(truth.rows) > 1).any()


@pytest.mark.parametrize("level", [1e-3, 0.05])
def test_middle_points_move_away_from_the_averages_as_drawn(level):
    truth = middle_points(level, permute=False, random_state=8)
    r1, r2 = truth.columns.size, truth.rows.size
    m, n = truth.matrix.shape
    assert (m, n, r1, r2) == (78, 55, 10, 12)
    noise = truth.matrix - truth.noiseless
    assert (truth.matrix[: m - r2, r1:] > 0).all()  # nothing was clipped
    assert_allclose(np.linalg.norm(noise), level * np.linalg.norm(truth.noiseless))
    assert_array_equal(noise[:, :r1], 0.0)
    assert_array_equal(noise[m - r2 :], 0.0)
    rng = np.random.default_rng(8)
    W1, H2 = rng.random((m - r2, r1)), rng.random((r2, n - r1))
    direction = truth.noiseless[: m - r2, r1:] - W1.mean(axis=1, keepdims=True) - H2.mean(axis=0)
    expected = direction * level * np.linalg.norm(truth.noiseless) / np.linalg.norm(direction)
    assert_allclose(noise[: m - r2, r1:], expected, rtol=1e-9, atol=1e-12)


def test_middle_points_are_middle_points_up_to_scaling():
    truth = middle_points(permute=False, n_columns=5, n_rows=6, random_state=0)
    weights = truth.column_weights[:, 5:]
    assert_array_equal((weights > 0).sum(axis=0), 2)
    assert len({tuple(np.flatnonzero(column)) for column in weights.T}) == 10
    assert_array_equal((truth.row_weights[:15] > 0).sum(axis=1), 2)
    assert len({tuple(np.flatnonzero(row)) for row in truth.row_weights[:15]}) == 15


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.data(),
    st.floats(0.01, 1.0),
    st.sampled_from([None, 0.0, 0.3, 1.0]),
    st.sampled_from([None, 0.3]),
    st.booleans(),
)
def test_planted_holds_for_all_sizes(m, n, data, density, weight_density, weight_sum, sparse):
    allowed = [
        (r1, r2)
        for r1 in range(n + 1)
        for r2 in range(m + 1)
        if (r1 or r2) and not (r1 and r2 == m) and not (r2 and r1 == n)
    ]
    r1, r2 = data.draw(st.sampled_from(allowed))
    densities = {"density": density, "weight_density": weight_density}
    truth = planted((m, n), r1, r2, **densities, weight_sum=weight_sum, sparse=sparse, random_state=0)
    assert truth.matrix.shape == (m, n)
    assert (truth.columns.size, truth.rows.size) == (r1, r2)
    assert_planted(truth)
    assert (dense(truth.noiseless)[:, truth.columns].sum(axis=0) > 0).all()
    assert (dense(truth.noiseless)[truth.rows].sum(axis=1) > 0).all()
    weights = [
        np.delete(dense(truth.column_weights), truth.columns, axis=1),
        np.delete(dense(truth.row_weights), truth.rows, axis=0).T,
    ]
    weights = [part for part in weights if part.size]
    for part in weights:
        assert_allclose(part.sum(axis=0), weight_sum or weights[0][:, 0].sum())
        assert ((part > 0).sum(axis=0) >= min(2, part.shape[0])).all()


def test_default_weight_sum():
    one_sided = planted((30, 20), 4, 0, random_state=0)
    assert_allclose(one_sided.column_weights.sum(axis=0), 1.0)
    both = planted((30, 20), 4, 5, random_state=0)
    assert_allclose(np.delete(both.column_weights, both.columns, axis=1).sum(axis=0), 0.5)
    sparse = planted((300, 200), 4, 5, density=0.05, sparse=True, random_state=0)
    assert np.delete(sparse.column_weights.toarray(), sparse.columns, axis=1).sum(axis=0).max() < 0.5


@pytest.mark.parametrize("density", [0.005, 0.2])
def test_planted_columns_and_rows_of_a_sparse_matrix_are_the_longest(density):
    truth = planted((2000, 3000), 10, 8, density=density, sparse=True, random_state=0)
    for norms, indices in [
        (sp.linalg.norm(truth.matrix, axis=0), truth.columns),
        (sp.linalg.norm(truth.matrix, axis=1), truth.rows),
    ]:
        assert norms[indices].max() == norms.max()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ranks", [(8, 6), (10, 0), (0, 10)])
@pytest.mark.parametrize("density", [0.02, 0.2])
def test_planted_has_about_the_density_asked_for(sparse, ranks, density):
    shares = []
    for seed in range(5):
        truth = planted((400, 500), *ranks, density=density, weight_density=0.2, sparse=sparse, random_state=seed)
        shares.append(np.count_nonzero(dense(truth.matrix)) / 200_000)
    assert_allclose(np.mean(shares), density, rtol=0.15)


def test_large_sparse_planted_is_never_dense():
    tracemalloc.start()
    truth = planted((20_000, 20_000), 15, 15, density=2e6 / 4e8, noise_level=0.01, sparse=True, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(truth.noiseless.nnz, 2e6, rtol=0.15)
    assert peak < 20 * truth.noiseless.data.nbytes  # a dense matrix is 200 times the nonzeros
    assert abs(truth.noiseless - truth.W @ truth.H).max() < 1e-14
    assert truth.noiseless[truth.rows][:, truth.columns].nnz == 0
    for matrix in (truth.matrix, truth.noiseless, truth.W, truth.H):
        assert isinstance(matrix, sp.csr_array)
        assert matrix.indices.dtype == np.int32
        assert matrix.has_canonical_format


@pytest.mark.parametrize("density", [1e-300, 1e-18, 1e-6])
def test_tiny_densities_leave_one_nonzero_in_each_planted_column_and_row(density):
    truth = planted((50, 40), 3, 2, density=density, sparse=True, random_state=0)
    assert_array_equal(np.diff(truth.noiseless[:, truth.columns].tocsc().indptr), 1)
    assert_array_equal(np.diff(truth.noiseless[truth.rows].indptr), 1)
    assert_planted(truth)


def test_sparse_noise_keeps_the_zeros():
    truth = planted((200, 150), 5, 5, density=0.05, noise_level=0.01, sparse=True, random_state=0)
    assert (truth.matrix.data > 0).all()
    assert (truth.noiseless.toarray()[truth.matrix.toarray() > 0] > 0).all()
    distance = sp.linalg.norm(truth.matrix - truth.noiseless) / sp.linalg.norm(truth.noiseless)
    assert 0.009 < distance <= 0.01 * (1 + 1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_planted_in_single_precision(sparse):
    single = planted((30, 40), 3, 2, sparse=sparse, dtype=np.float32, random_state=0)
    double = planted((30, 40), 3, 2, sparse=sparse, random_state=0)
    for name in ("matrix", "noiseless", "W", "H"):
        assert getattr(single, name).dtype == np.float32
        assert_allclose(dense(getattr(single, name)), dense(getattr(double, name)), rtol=1e-6)
    assert_planted(single, tolerance=1e-6)


@pytest.mark.parametrize("n", [4, 5, 12])
def test_lemma_1(n):
    truth = two_one_separable(n)
    M = truth.matrix
    assert M.shape == (3, n)
    assert_allclose(M.sum(axis=0), 1.0)
    x = M[0, 4:]
    assert ((x > 0) & (x < 0.5)).all()
    assert_allclose(np.diff(x), np.full(max(0, n - 5), 0.5 / (n - 3)))
    assert_array_equal(M[:, :2] @ M[:2] + np.outer([0, 0, 1], M[2]), M)
    assert_array_equal(truth.column_weights, M[:2])
    assert_array_equal(truth.row_weights, [[0], [0], [1]])


def test_lemma_1_no_column_is_in_the_cone_of_the_others():
    M = two_one_separable(12).matrix
    for j in range(12):
        assert nnls(np.delete(M, j, axis=1), M[:, j])[1] > 1e-4


def test_property_5_layout():
    truth = three_three_separable(6, 8)
    M = truth.matrix
    assert M.shape == (9, 11)
    assert_array_equal(M[:3, :3], 0.0)
    assert_array_equal(M[3:, 3:], 0.0)
    assert_array_equal(M[:3, 3:], two_one_separable(8).matrix)
    assert_array_equal(M[3:, :3], two_one_separable(6).matrix.T)
    assert np.linalg.matrix_rank(M) == 6


def test_property_5_neither_columns_nor_rows_compress():
    M = three_three_separable(6, 8).matrix
    for matrix in (M, M.T):
        for j in range(matrix.shape[1]):
            assert nnls(np.delete(matrix, j, axis=1), matrix[:, j])[1] > 1e-4


def test_non_unique_example_is_also_one_two_separable():
    M = non_unique_example().matrix
    assert_array_equal(M, [[1, 0, 2], [0, 1, 2], [0, 0, 1]])
    P1, P2 = np.array([[1, 0, 1]]), np.array([[0, 1], [1, 0], [0, 1]])
    assert_array_equal(M[:, [0]] @ P1 + P2 @ M[1:], M)


def test_example_1_is_the_printed_matrix():
    printed = [
        [1, 0.001, 0.002, 0.006, 0.009],
        [1, 2, 0.006, 4.004, 7.005],
        [1, 3, 0.009, 7.005, 12.006],
        [0, 0, 1, 1, 1],
        [0, 0, 0.001, 2, 3],
    ]
    truth = gspa_failure_example()
    assert_array_equal(truth.matrix.round(3), printed)
    assert_array_equal(truth.columns, [0, 1])
    assert_array_equal(truth.rows, [3, 4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fully_random(-0.1), r"noise_level must be a finite number of at least 0; got -0\.1"),
        (lambda: fully_random(np.nan), "noise_level must be a finite number of at least 0; got nan"),
        (lambda: fully_random(density=1.5), r"density must be in \[0, 1\]; got 1\.5"),
        (lambda: fully_random(shape=(3, 4, 5)), r"shape must be a pair \(rows, columns\); got \(3, 4, 5\)"),
        (lambda: fully_random(n_columns=101), r"n_columns in \[0, 100\]"),
        (lambda: fully_random(n_columns=100), "n_columns must be below 100 and n_rows below 100"),
        (lambda: fully_random(n_columns=50, n_rows=50), "n_columns / 100 \\+ n_rows / 100 must be below 1"),
        (lambda: middle_points(n_columns=3, n_rows=3), "must be below 1 .*; got n_columns=3 and n_rows=3"),
        (lambda: middle_points(n_columns=0), "n_columns must be an integer of at least 1; got 0"),
        (lambda: planted((10, 10), 2, 2, density=0.0), r"density must be in \(0, 1\]; got 0\.0"),
        (lambda: planted((10, 10), 2, 2, weight_density=-1), r"weight_density must be in \[0, 1\]; got -1"),
        (lambda: planted((10, 10), 2, 2, dtype=int), "dtype must be float32 or float64; got int64"),
        (lambda: planted((10, 10), 2, 2, weight_sum=0), "weight_sum must be a finite number above 0; got 0"),
        (lambda: planted((10, 10), 0, 0), "at least one of them positive"),
        (lambda: two_one_separable(3), "n must be an integer of at least 4; got 3"),
        (lambda: three_three_separable(3, 4), "m must be an integer of at least 4; got 3"),
        (lambda: gspa_failure_example(0.0), "epsilon must be a finite number above 0; got 0.0"),
    ],
)
def test_errors_say_what_is_allowed_and_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()
