import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from gsnmf._kernels import simplex as kernels
from gsnmf._kernels.simplex import descend_on_simplex, project_on_simplex
from gsnmf.nmf import hals, minimum_volume

SEEDS = st.integers(0, 2**32 - 1)


def quietly(matrix, rank, **options):
    """Without the warning that a limit on iterations was reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return minimum_volume(matrix, rank, **options)


def scattered(shape=(20, 300), rank=4, seed=0, purity=0.8, noise=0.0):
    """Mixtures none of which is pure, but spread so widely that the smallest simplex around them is the true one."""
    rng = np.random.default_rng(seed)
    W = rng.random((shape[0], rank))
    drawn = rng.dirichlet(np.full(rank, 0.3), size=20 * shape[1])
    H = drawn[drawn.max(axis=1) <= purity][: shape[1]].T
    assert H.shape == (rank, shape[1])
    matrix = W @ H
    return matrix + noise * matrix.mean() * rng.random(shape), W


def distance(found, true):
    """Largest distance of a column from its true one, both of unit length."""
    found, true = (factor / np.linalg.norm(factor, axis=0) for factor in (found, true))
    distances = np.linalg.norm(found[:, :, None] - true[:, None], axis=0)
    return distances[linear_sum_assignment(distances)].max()


def objective(matrix, result, delta, scale):
    """As the module states it, relative to the squared norm of the matrix."""
    error = 0.5 * np.linalg.norm(matrix - result.W @ result.H) ** 2
    volume = np.linalg.slogdet(result.W.T @ result.W / scale + delta * np.eye(result.W.shape[1]))[1]
    return 2 * (error / np.linalg.norm(matrix) ** 2 + result.weight * volume)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sum_to_one", [False, True])
def test_recovers_what_plain_factorization_does_not(seed, sum_to_one):
    matrix, W = scattered(seed=seed)
    plain = hals(matrix, 4, random_state=seed)
    tight = minimum_volume(matrix, 4, sum_to_one=sum_to_one)
    assert plain.relative_error < 1e-3
    assert distance(plain.W, W) > 0.03
    assert tight.converged
    assert tight.relative_error < 1e-3
    assert distance(tight.W, W) < 0.005


@given(st.integers(2, 10), st.integers(2, 12), st.integers(1, 4), st.booleans(), st.booleans(), SEEDS)
@settings(max_examples=40, deadline=None)
def test_the_objective_never_rises_and_the_constraints_hold(m, n, rank, sparse, sum_to_one, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((m, n)) * (rng.random((m, n)) < 0.7)
    matrix[0, 0] = 1.0
    rank = min(rank, max(m, n))
    options = {"delta": 0.2, "sum_to_one": sum_to_one, "tolerance": 1e-12, "random_state": 0}
    given_matrix = sp.csc_array(matrix) if sparse else matrix
    results = [quietly(given_matrix, rank, max_iterations=limit, **options) for limit in (1, 2, 20)]
    for result in results:
        assert np.all(np.diff(result.objective) <= 0)
        assert_allclose(result.objective, results[-1].objective[: result.n_iterations + 1], rtol=1e-8, atol=1e-12)
        assert result.W.min() >= 0
        assert result.H.min() >= 0
        sums = result.H.sum(axis=0)
        assert sums.max() <= 1 + 1e-12
        assert not sum_to_one or sums.min() >= 1 - 1e-12


@pytest.mark.parametrize("sum_to_one", [False, True])
def test_the_weight_balances_the_terms_at_the_start(sum_to_one):
    matrix, _ = scattered(noise=0.1)
    rng = np.random.default_rng(1)
    W0 = rng.random((20, 4))
    first = quietly(matrix, 4, weight=0.02, delta=0.3, init=(W0, np.ones((4, 300))), sum_to_one=sum_to_one)
    W0 = 4 * W0  # the columns of H that were given sum to four
    scale = np.mean((W0**2).sum(axis=0))
    H = np.full((4, 300), 0.25)
    descend_on_simplex(H, W0.T @ matrix, W0.T @ W0, sum_to_one, 100_000, 1e-12)
    error = 0.5 * np.linalg.norm(matrix - W0 @ H) ** 2 / np.linalg.norm(matrix) ** 2
    volume = np.linalg.slogdet(W0.T @ W0 / scale + 0.3 * np.eye(4))[1]
    assert first.weight == pytest.approx(0.02 * error / max(1, abs(volume)), rel=1e-2)
    assert first.objective[0] == pytest.approx(2 * (error + first.weight * volume), rel=1e-2)
    assert first.objective[-1] == pytest.approx(objective(matrix, first, 0.3, scale), rel=1e-8)


def test_reported_optimality_vanishes_at_a_solution_only():
    matrix, _ = scattered(noise=0.1)
    rough, fine = (quietly(matrix, 4, tolerance=t, max_iterations=20_000) for t in (1e-2, 1e-6))
    assert fine.converged
    assert fine.optimality <= 1e-6 < rough.optimality <= 1e-2
    assert fine.objective[-1] < rough.objective[-1]


def test_more_weight_means_less_volume():
    matrix, _ = scattered(noise=0.2)
    light, heavy = (minimum_volume(matrix, 4, weight=weight) for weight in (0.001, 0.1))
    assert np.linalg.det(heavy.W.T @ heavy.W) < np.linalg.det(light.W.T @ light.W)
    assert heavy.relative_error > light.relative_error


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, np.asfortranarray])
def test_every_container_gives_the_same(container):
    matrix, _ = scattered((20, 100), 3)
    matrix[matrix < np.quantile(matrix, 0.5)] = 0
    dense, other = minimum_volume(matrix, 3), minimum_volume(container(matrix), 3)
    assert other.relative_error == pytest.approx(dense.relative_error, rel=1e-4)
    assert other.weight == pytest.approx(dense.weight, rel=1e-8)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_single_precision_is_kept(container):
    matrix, W = scattered()
    result = quietly(container(matrix.astype(np.float32)), 4)
    assert result.W.dtype == result.H.dtype == np.float32
    assert distance(result.W, W) < 0.01


def test_degenerate_matrices():
    zero = minimum_volume(np.zeros((4, 5)), 2)
    assert zero.converged
    assert zero.relative_error == 0
    assert not zero.W.any()
    matrix, _ = scattered((20, 60), 3)
    matrix[4], matrix[:, 7] = 0, 0
    result = minimum_volume(matrix, 3)
    assert np.abs(result.W[4]).max() < 1e-12
    assert np.abs(result.H[:, 7]).max() < 1e-3  # not zero where sums of H are fixed by nothing but the data
    one = minimum_volume(matrix, 1)
    assert one.H.shape == (1, 60)
    assert one.relative_error < 0.5
    more = quietly(matrix, 6, random_state=0)
    assert more.W.shape == (20, 6)
    assert more.relative_error < 0.02


@pytest.mark.parametrize("exponent", [-900, 900])
def test_the_unit_of_the_matrix_does_not_matter(exponent):
    matrix, _ = scattered((20, 100), 3, noise=0.1)
    plain, scaled = (minimum_volume(np.ldexp(matrix, e), 3) for e in (0, exponent))
    assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-8)
    assert_allclose(np.ldexp(scaled.W, -exponent), plain.W, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("init", ["random", "nndsvd", "selection"])
def test_other_starts(init):
    matrix, _ = scattered(noise=0.1)
    result = quietly(matrix, 4, init=init, random_state=0)
    assert result.relative_error < 0.1


def test_warns_when_the_limit_is_reached():
    with pytest.warns(ConvergenceWarning, match=r"minimum_volume stopped after 2 iterations .* above the tolerance"):
        minimum_volume(scattered()[0], 4, max_iterations=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, r"rank must be in \[1, 6\]"),
        ({"weight": 0}, "weight must be a finite number above 0; got 0"),
        ({"delta": -1}, "delta must be a finite number above 0; got -1"),
        ({"init": "spa"}, "init must be 'spa-columns' or what hals takes; got 'spa'"),
        ({"max_iterations": 0}, "max_iterations must be an integer of at least 1"),
    ],
)
def test_errors_say_what_is_allowed(options, message):
    with pytest.raises(ValueError, match=message):
        minimum_volume(np.random.default_rng(0).random((5, 6)), **{"rank": 2, **options})


def by_sorting(x, exact):
    if not exact and np.maximum(x, 0).sum() <= 1:
        return np.maximum(x, 0)
    ordered = np.sort(x)[::-1]
    shifts = (np.cumsum(ordered) - 1) / np.arange(1, x.size + 1)
    return np.maximum(0, x - shifts[np.flatnonzero(ordered > shifts)[-1]])


@given(st.integers(1, 9), st.integers(1, 200), st.floats(0.01, 100.0), st.booleans(), SEEDS)
@settings(max_examples=50, deadline=None)
def test_projection_on_the_simplex(r, n, scale, exact, seed):
    X = scale * np.random.default_rng(seed).standard_normal((r, n))
    expected = np.array([by_sorting(x, exact) for x in X.T]).T
    project_on_simplex(X, exact)
    assert_allclose(X, expected, atol=1e-12 * scale + 1e-14)


@pytest.mark.parametrize("exact", [False, True])
def test_fast_gradient_on_the_simplex_solves_the_problem(exact):
    rng = np.random.default_rng(0)
    basis = rng.random((9, 4))
    gram, target = basis.T @ basis, basis.T @ rng.random((9, 300))
    serial = np.full((4, 300), 0.25)
    length = 1 / np.linalg.eigvalsh(gram)[-1]
    objective = [np.inf]
    for _ in range(60):
        kernels._descend_blocks(serial, target, gram, length, exact, 25, 0.0, work=0)
        objective.append(0.5 * np.vdot(gram @ serial, serial) - np.vdot(target, serial))
    assert np.all(np.diff(objective) <= 1e-12)
    moved = serial - length * (gram @ serial - target)
    project_on_simplex(moved, exact)
    assert_allclose(moved, serial, atol=1e-8)
    again = serial.copy()
    descend_on_simplex(again, target, gram, exact, 5, 0.0)
    assert_allclose(again, serial, atol=1e-7)


def fast_gradient(X, target, gram, exact, max_steps, tolerance):
    """Nesterov's method as in the textbook, for all columns together: the last X, and how often momentum was lost."""

    def objective(Z):
        return 0.5 * np.vdot(gram @ Z, Z) - np.vdot(target, Z)

    length, previous, speed, first, n_restarts = 1 / np.linalg.eigvalsh(gram)[-1], X, 1.0, 0.0, 0
    for step in range(max_steps):
        next_speed = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        for momentum in ((speed - 1) / next_speed, 0.0):
            ahead = X + momentum * (X - previous)
            new = np.array([by_sorting(x, exact) for x in (ahead - length * (gram @ ahead - target)).T]).T
            if objective(new) < objective(X):
                break
        restarted = momentum == 0.0 and speed > 1.0
        n_restarts += restarted
        X, previous, speed, moved = new, X, 1.0 if restarted else next_speed, np.linalg.norm(new - X)
        if step == 0:
            first = moved
        elif moved <= tolerance * first:
            break
    return X, n_restarts


@pytest.mark.parametrize("exact", [False, True])
def test_fast_gradient_on_the_simplex_is_that_of_the_textbook(exact):
    rng = np.random.default_rng(1)
    basis = 0.2 * rng.random((9, 4)) * [1.0, 0.8, 0.6, 0.5]
    gram, target = basis.T @ basis, basis.T @ (rng.random((9, 3)) * [0.02, 0.16, 0.3])
    start = rng.dirichlet(np.ones(4), 3).T
    for max_steps, tolerance in ((1, 0.0), (2, 0.0), (5, 0.0), (30, 0.3), (30, 0.03), (30, 0.0)):
        X = start.copy()
        descend_on_simplex(X, target, gram, exact, max_steps, tolerance)
        expected, n_restarts = fast_gradient(start, target, gram, exact, max_steps, tolerance)
        assert_allclose(X, expected, atol=1e-10)
    assert n_restarts > 0


def test_a_zero_problem_on_the_simplex_is_left_as_it_is():
    X = np.array([[0.25, 0.5], [0.25, 0.0]])
    descend_on_simplex(X, np.zeros((2, 2)), np.zeros((2, 2)), False, 5, 0.0)
    assert_allclose(X, [[0.25, 0.5], [0.25, 0.0]], atol=0)


@pytest.mark.parametrize("exact", [False, True])
def test_fast_gradient_on_the_simplex_is_the_same_in_all_threads(monkeypatch, exact):
    monkeypatch.setenv("GSNMF_NUM_THREADS", "3")
    rng = np.random.default_rng(0)
    basis = rng.random((9, 4))
    gram, target = basis.T @ basis, basis.T @ rng.random((9, 300))
    serial = np.full((4, 300), 0.25)
    parallel = serial.copy()
    length = 1 / np.linalg.eigvalsh(gram)[-1]
    for _ in range(20):
        kernels._descend_blocks(serial, target, gram, length, exact, 25, 0.0, work=0)
        kernels._descend_blocks(parallel, target, gram, length, exact, 25, 0.0, work=math.inf)
    assert_array_equal(parallel, serial)


@pytest.mark.parametrize("name", ["tr11", "tr23"])
def test_documents_as_in_the_paper(paper, name):
    data = paper(name)
    result = minimum_volume(data.matrix, data.rank)
    assert 100 * result.quality > data.published["minimum-volume"] - 0.3


def test_faces_as_in_the_paper(paper):
    data = paper("CBCL")
    result = quietly(data.matrix, data.rank, max_iterations=150)
    assert 100 * result.quality > data.published["minimum-volume"] - 0.3
