"""NMF by HALS, on whole matrices and on observed entries."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment, nnls
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

import gsnmf
from gsnmf._kernels import coordinate_descent as kernels
from gsnmf._kernels.coordinate_descent import descend
from gsnmf.datasets import fully_random
from gsnmf.nmf import hals, truncated_svd

SEEDS = st.integers(0, 2**32 - 1)
NAN = float("nan")


def quietly(matrix, rank, **options):
    """Without the warning that a limit on iterations was reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return hals(matrix, rank, **options)


def error(matrix, result):
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    return np.linalg.norm(dense - result.W @ result.H) / np.linalg.norm(dense)


def noisy_product(shape, rank, seed=0, noise=0.01, density=0.6):
    rng = np.random.default_rng(seed)
    W, H = (rng.random(size) * (rng.random(size) < density) for size in ((shape[0], rank), (rank, shape[1])))
    matrix = W @ H
    return matrix + noise * matrix.mean() * rng.random(shape)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.floats(0.1, 1.0), st.booleans(), SEEDS)
@settings(max_examples=60, deadline=None)
def test_the_objective_never_rises_and_is_what_it_says(m, n, rank, density, sparse, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((m, n)) * (rng.random((m, n)) < density)
    rank = min(rank, max(m, n))
    given_matrix = sp.csr_array(matrix) if sparse else matrix
    long = quietly(given_matrix, rank, max_iterations=30, tolerance=1e-12, random_state=seed)
    assert np.all(np.diff(long.objective) <= 0)
    assert long.W.min() >= 0
    assert long.H.min() >= 0
    if not matrix.any():
        return
    assert long.relative_error == pytest.approx(error(matrix, long), abs=1e-9)
    assert long.objective[-1] == pytest.approx(long.relative_error**2, abs=1e-12)
    for limit in (1, 2, 7):
        if limit < long.n_iterations:
            short = quietly(given_matrix, rank, max_iterations=limit, tolerance=1e-12, random_state=seed)
            assert_allclose(short.objective, long.objective[: limit + 1], rtol=1e-10)
            assert long.objective[limit] == pytest.approx(error(matrix, short) ** 2, abs=1e-12)


def test_a_unique_factorization_is_found():
    # The identity among the rows of W and among the columns of H leaves no other factorization.
    rng = np.random.default_rng(0)
    W = np.vstack([np.eye(4), rng.random((26, 4))])
    H = np.hstack([np.eye(4), rng.random((4, 36))])
    result = hals(W @ H, 4, tolerance=1e-8, max_iterations=20_000, n_restarts=3, random_state=0)
    assert result.relative_error < 1e-6
    found, true = (factor / np.linalg.norm(factor, axis=0) for factor in (result.W, W))
    _, order = linear_sum_assignment(-true.T @ found)
    assert_allclose(found[:, order], true, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_agrees_with_scikit_learn_from_the_same_start(seed, container):
    matrix = noisy_product((60, 40), 4, seed, noise=0.3)
    rng = np.random.default_rng(seed)
    W, H = rng.random((60, 4)), rng.random((4, 40))
    peer = NMF(4, solver="cd", init="custom", tol=0, max_iter=3000)
    peer.fit_transform(matrix, W=W.copy(), H=H.copy())
    result = hals(container(matrix), 4, init=(W, H), tolerance=1e-6, max_iterations=5000)
    assert result.relative_error == pytest.approx(peer.reconstruction_err_ / np.linalg.norm(matrix), rel=1e-6)


def test_the_solution_is_stationary_by_nnls():
    matrix = noisy_product((30, 25), 3)
    result = hals(matrix, 3, tolerance=1e-9, max_iterations=20_000, random_state=1)
    for j in range(25):
        assert_allclose(result.H[:, j], nnls(result.W, matrix[:, j])[0], atol=1e-6)
    for i in range(30):
        assert_allclose(result.W[i], nnls(result.H.T, matrix[i])[0], atol=1e-6)


def test_reported_optimality_is_the_violation_of_the_conditions():
    matrix = noisy_product((50, 70), 5)
    result = quietly(matrix, 5, max_iterations=20, tolerance=1e-9, random_state=0)
    W, H = result.W, result.H
    residual = W @ H - matrix
    w, h = np.linalg.norm(W, axis=0), np.linalg.norm(H, axis=1)
    violation_W = np.minimum(W * h, residual @ H.T / h)
    violation_H = np.minimum(H * w[:, None], W.T @ residual / w[:, None])
    violation = np.hypot(np.linalg.norm(violation_W), np.linalg.norm(violation_H))
    assert result.optimality == pytest.approx(violation / np.linalg.norm(residual), rel=1e-6)
    assert not result.converged
    assert result.stop_reason == "max_iterations reached"


@pytest.mark.parametrize("init", ["random", "nndsvd", "selection"])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.coo_matrix, np.asfortranarray])
def test_every_container_gives_the_same(container, init):
    matrix = noisy_product((40, 30), 3) * (np.random.default_rng(1).random((40, 30)) < 0.4)
    dense, other = (hals(kind(matrix), 3, init=init, random_state=0) for kind in (np.asarray, container))
    assert other.relative_error == pytest.approx(dense.relative_error, rel=1e-5)
    assert other.converged
    assert dense.converged


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_single_precision_is_kept(container):
    matrix = noisy_product((80, 60), 4)
    double = hals(container(matrix), 4, random_state=0)
    single = hals(container(matrix.astype(np.float32)), 4, random_state=0)
    assert single.W.dtype == single.H.dtype == np.float32
    assert single.converged
    assert np.all(np.diff(single.objective) <= 0)
    assert single.relative_error == pytest.approx(double.relative_error, rel=1e-2)
    assert single.relative_error == pytest.approx(error(matrix, single), rel=1e-3)


def test_zero_rows_and_columns_get_zero_factors():
    matrix = noisy_product((20, 15), 3)
    matrix[4] = 0
    matrix[:, [0, 7]] = 0
    result = hals(matrix, 3, random_state=0)
    assert result.converged
    assert not result.W[4].any()
    assert not result.H[:, [0, 7]].any()


def test_rank_one_is_the_leading_singular_pair():
    matrix = np.random.default_rng(0).random((30, 20))
    result = hals(matrix, 1, random_state=0)
    assert result.relative_error == pytest.approx(truncated_svd(matrix, 1).relative_error, abs=1e-8)


@pytest.mark.parametrize("rank", [6, 20, 30])
def test_rank_above_the_true_rank(rank):
    matrix = noisy_product((20, 30), 3, noise=0.0)
    result = hals(matrix, rank, tolerance=1e-2, max_iterations=5000, random_state=0)
    assert result.W.shape == (20, rank)
    assert result.relative_error < 1e-3


@pytest.mark.parametrize("init", ["random", "nndsvd", "selection"])
def test_zero_matrix(init):
    result = hals(np.zeros((4, 5)), 2, init=init)
    assert result.converged
    assert result.relative_error == 0
    assert result.n_iterations == 0
    assert_array_equal(result.W, np.zeros((4, 2)))
    assert_array_equal(result.H, np.zeros((2, 5)))


def test_a_given_start_is_never_left_for_worse():
    matrix = noisy_product((30, 20), 3)
    rng = np.random.default_rng(0)
    W, H = rng.random((30, 3)), rng.random((3, 20))
    copies = W.copy(), H.copy(), matrix.copy()
    start = np.linalg.norm(matrix - W @ H) ** 2 / np.linalg.norm(matrix) ** 2
    result = hals(matrix, 3, init=(W, H))
    assert result.objective[0] == pytest.approx(start)
    again = hals(matrix, 3, init=(result.W, result.H))
    assert again.n_iterations == 0
    for array, copy in zip((W, H, matrix), copies, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_starts_from_chosen_columns_and_rows(container):
    planted = fully_random(0.05, shape=(40, 50), n_columns=3, n_rows=2, random_state=0)
    matrix = container(planted.matrix)
    factorization = gsnmf.factorize(matrix, 5, effort="fast")
    selection = gsnmf.select(matrix, 5, effort="fast")
    start = quietly(matrix, 5, init=factorization, max_iterations=1).objective[0]
    assert start == pytest.approx(factorization.relative_error**2, rel=1e-6)
    for init in (factorization, selection, "selection"):
        assert hals(matrix, 5, init=init).relative_error < factorization.relative_error
    more = hals(matrix, 7, init=selection, random_state=0)
    assert more.W.shape == (40, 7)
    assert more.relative_error < factorization.relative_error


def test_singular_vectors_start_ahead_of_random_numbers():
    matrix = noisy_product((60, 50), 5)
    first = {init: quietly(matrix, 5, init=init, max_iterations=1, random_state=0) for init in ("nndsvd", "random")}
    assert first["nndsvd"].objective[0] < first["random"].objective[0]


def test_the_random_start_has_the_best_scale():
    matrix = 1000 * noisy_product((30, 20), 3)
    start = quietly(matrix, 3, max_iterations=1, random_state=0).objective[0]
    assert start < 1  # better than zero


def test_restarts_return_the_best():
    matrix = np.random.default_rng(0).random((30, 25))
    rng = np.random.default_rng(3)
    single = [hals(matrix, 6, random_state=rng).relative_error for _ in range(4)]
    best = hals(matrix, 6, n_restarts=4, random_state=np.random.default_rng(3))
    assert best.relative_error == min(single)
    assert len(set(single)) > 1
    repeated = hals(matrix, 6, n_restarts=4, random_state=3)
    assert_array_equal(repeated.W, best.W)


@pytest.mark.parametrize("exponent", [-900, -30, 40, 900])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_the_unit_of_the_matrix_does_not_matter(container, exponent):
    matrix = noisy_product((25, 20), 3)
    plain, scaled = (hals(container(np.ldexp(matrix, e)), 3, random_state=0) for e in (0, exponent))
    assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-8)
    assert_allclose(np.ldexp(scaled.W @ np.ldexp(scaled.H, -exponent), 0), plain.W @ plain.H, rtol=1e-8)


def test_warns_when_the_limit_is_reached():
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 iterations .* above the tolerance 1.0e-08; raise"):
        hals(noisy_product((20, 20), 3), 3, max_iterations=2, tolerance=1e-8, random_state=0)


def test_stops_when_rounding_is_all_that_is_left():
    matrix = noisy_product((20, 15), 2).astype(np.float32)
    result = quietly(matrix, 2, tolerance=1e-30, max_iterations=10_000, random_state=0)
    assert result.stop_reason == "no further decrease"
    assert result.optimality < 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, r"rank must be in \[1, 6\] for a matrix of shape \(5, 6\); got 0"),
        ({"rank": 7}, r"rank must be in \[1, 6\]"),
        ({"rank": 6, "init": "nndsvd"}, r"rank must be in \[1, 5\] for init='nndsvd'"),
        ({"init": "best"}, r"init must be 'random', 'nndsvd', 'selection', a pair .* got 'best'"),
        ({"init": (np.ones((5, 2)), np.ones((3, 6)))}, r"H of init must have shape \(2, 6\); got \(3, 6\)"),
        ({"init": (-np.ones((5, 2)), np.ones((2, 6)))}, "W of init must be nonnegative; got -1"),
        ({"tolerance": 0}, "tolerance must be a finite number above 0; got 0"),
        ({"max_iterations": 0}, "max_iterations must be an integer of at least 1; got 0"),
        ({"n_restarts": 2, "init": "nndsvd"}, "n_restarts must be 1 unless init is 'random'"),
    ],
)
def test_errors_say_what_is_allowed(options, message):
    with pytest.raises(ValueError, match=message):
        hals(np.random.default_rng(0).random((5, 6)), **{"rank": 2, **options})


def test_results_to_start_from_must_fit():
    matrix = np.random.default_rng(0).random((5, 6))
    with pytest.raises(ValueError, match="init must have at most 2 columns and rows, the rank; got 3"):
        hals(matrix, 2, init=gsnmf.select(np.eye(5, 6), 3, method="gspa"))
    with pytest.raises(ValueError, match=r"Factorization of a matrix of shape \(5, 6\)"):
        hals(matrix, 2, init=gsnmf.factorize(np.eye(4, 6), 2, method="gspa"))


def plain_sweep(X, target, gram):
    for j in range(X.shape[1]):
        for i in range(X.shape[0]):
            if gram[i, i] > 0:
                X[i, j] = max(0.0, X[i, j] + (target[i, j] - gram[i] @ X[:, j]) / gram[i, i])


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.long)])
@pytest.mark.parametrize(("r", "n"), [(1, 1), (4, 300), (7, 128)])
def test_compiled_sweeps_are_plain_coordinate_descent(monkeypatch, r, n, dtype):
    monkeypatch.setenv("GSNMF_NUM_THREADS", "3")
    rng = np.random.default_rng(0)
    basis = rng.random((9, r))
    basis[:, 0] *= r > 1  # a zero component is left alone
    gram, target = (basis.T @ basis).astype(dtype), (basis.T @ rng.random((9, n))).astype(dtype)
    expected = rng.random((r, n)).astype(dtype)
    serial, parallel = expected.copy(), expected.copy()
    for _ in range(3):
        plain_sweep(expected, target, gram)
    kernels._descend_blocks(serial, target, gram, 3, 0.0, work=0)
    kernels._descend_blocks(parallel, target, gram, 3, 0.0, work=math.inf)
    assert_allclose(serial, expected, atol=1e-12 if dtype == np.float64 else 1e-4)
    assert_array_equal(parallel, serial)


def test_sweeps_end_when_they_move_little():
    rng = np.random.default_rng(0)
    basis = rng.random((9, 4))
    gram, target = basis.T @ basis, basis.T @ rng.random((9, 10))
    one, many, all_of_them = (rng.random((4, 10)) for _ in range(3))
    many[:], all_of_them[:] = one, one
    descend(one, target, gram, 1, 0.0)
    descend(many, target, gram, 1000, 1.0)  # the second sweep moves less than the first
    descend(all_of_them, target, gram, 1000, 0.0)
    plain_sweep(one, target, gram)
    assert_allclose(many, one)
    for j in range(10):
        assert np.abs(np.minimum(all_of_them[:, j], gram @ all_of_them[:, j] - target[:, j])).max() < 1e-9


@pytest.mark.parametrize("name", ["tr11", "tr23"])
def test_documents_as_in_the_paper(paper, name):
    data = paper(name)
    result = hals(data.matrix, data.rank, n_restarts=4, random_state=0)
    assert 100 * result.quality == pytest.approx(data.published["nmf"], abs=0.1)


def test_faces_as_in_the_paper(paper):
    data = paper("CBCL")
    result = quietly(data.matrix, data.rank, max_iterations=150, random_state=0)
    assert 100 * result.quality > data.published["nmf"] - 0.1


class TestObservedEntries:
    @pytest.fixture
    def matrix(self):
        rng = np.random.default_rng(0)
        return rng.random((40, 3)) @ rng.random((3, 30)) * (1 + 0.01 * rng.standard_normal((40, 30)))

    @pytest.fixture
    def holed(self, matrix):
        return np.where(np.random.default_rng(1).random(matrix.shape) < 0.4, NAN, matrix)

    @pytest.fixture
    def result(self, holed):
        return hals(holed, 3, missing_values=NAN, random_state=0)

    def test_holes_are_predicted(self, matrix, holed, result):
        holes = np.isnan(holed)
        assert result.converged
        assert np.all(np.diff(result.objective) <= 0)
        assert min(result.W.min(), result.H.min()) >= 0
        residual = (result.W @ result.H - matrix)[holes]
        assert np.linalg.norm(residual) < 0.02 * np.linalg.norm(matrix[holes])
        seen = (result.W @ result.H - matrix)[~holes]
        assert result.relative_error == pytest.approx(np.linalg.norm(seen) / np.linalg.norm(matrix[~holes]))
        assert result.objective[-1] == pytest.approx(result.relative_error**2)

    def test_each_factor_is_optimal_for_the_other(self, holed, result):
        fine = hals(holed, 3, missing_values=NAN, init=(result.W, result.H), tolerance=1e-7, max_iterations=5000)
        for i in range(5):
            seen = ~np.isnan(holed[i])
            assert_allclose(fine.W[i], nnls(fine.H[:, seen].T, holed[i, seen])[0], atol=1e-5 * fine.W.max())

    def test_every_way_to_say_it(self, matrix, holed, result):
        rows, columns = np.nonzero(~np.isnan(holed))
        sparse = sp.coo_array((matrix[rows, columns], (rows, columns)), shape=matrix.shape)
        for other in (
            hals(sparse, 3, missing_values="unstored", random_state=0),
            hals(matrix, 3, entry_weights=2.0 * ~np.isnan(holed), random_state=0),
        ):
            assert other.relative_error == pytest.approx(result.relative_error, rel=1e-2)

    def test_without_holes_nothing_changes(self, matrix):
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
    def test_wrong_input(self, holed, options, message):
        with pytest.raises(ValueError, match=message):
            hals(holed, 3, **{"missing_values": NAN, **options})
