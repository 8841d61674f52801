"""Pursuit, exchange, the automatic choice and the path of ranks."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import gsnmf
from gsnmf.datasets import fully_random, middle_points
from gsnmf.matrix import wrap
from gsnmf.metrics import accuracy
from gsnmf.search.candidate_vectors import candidate_vectors
from gsnmf.search.candidates import Candidates, candidate_pool
from gsnmf.search.effort import Work
from gsnmf.search.exchange import improve_thoroughly
from gsnmf.search.pursuit import pursue
from gsnmf.search.trials import Trials


def random_matrix(seed, shape=(25, 18), density=0.7):
    rng = np.random.default_rng(seed)
    return rng.random(shape) * (rng.random(shape) < density)


def everything(matrix):
    held = wrap(matrix)
    return Candidates(held, np.arange(held.shape[1]), np.arange(held.shape[0]))


def solved(pool, columns, rows, **options):
    return pool.state(np.array(columns), np.array(rows)).solved(**options)[0]


def refined_by_exchange(pool, state, work=math.inf):
    limits = gsnmf.Constraints().resolve(pool.matrix.shape, state.size)
    return improve_thoroughly(Trials(pool, limits, Work(work)), state)[0]


def relative_error(matrix, state):
    columns, rows = state.columns.indices, state.rows.indices
    return gsnmf.fit_weights(matrix, columns, rows, tolerance=1e-6).relative_error


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_decreases_are_those_of_the_explicit_residual(container):
    matrix = random_matrix(0)
    pool = everything(container(matrix))
    columns, rows = np.array([3, 7]), np.array([1, 4, 9])
    state = solved(pool, columns, rows, tolerance=1e-8, max_iterations=500)
    weights = gsnmf.fit_weights(matrix, columns, rows, tolerance=1e-8)
    assert state.squared_error == pytest.approx((weights.relative_error * np.linalg.norm(matrix)) ** 2, rel=1e-6)
    P1, P2 = state.plain_weights
    residual = matrix - matrix[:, columns] @ P1 - P2 @ matrix[rows]
    by_column = (np.maximum(matrix.T @ residual, 0) ** 2).sum(axis=1) / (matrix**2).sum(axis=0)
    by_row = (np.maximum(matrix @ residual.T, 0) ** 2).sum(axis=1) / (matrix**2).sum(axis=1)
    by_column[columns] = by_row[rows] = -np.inf
    np.testing.assert_allclose(pool.decreases(state, "columns"), by_column, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(pool.decreases(state, "rows"), by_row, rtol=1e-6, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(0.2, 1.0))
@settings(max_examples=25, deadline=None)
def test_every_choice_of_pursuit_lowers_the_error_by_what_it_guarantees(seed, density):
    matrix = random_matrix(seed, (12, 9), density)
    pool = everything(matrix)
    state = pool.empty()
    for following in pursue(pool.matrix, 5):
        axis, index = pool.best(state)[0]
        assert index in following.on(axis).indices
        decrease = pool.decreases(state, axis)[pool.on(axis).positions(np.array([index]))][0]
        assert following.squared_error <= state.squared_error - decrease + 1e-9
        state = following


def test_pursuit_is_nested():
    matrix = random_matrix(1)
    small, large = (gsnmf.select(matrix, rank, method="pursuit") for rank in (4, 7))
    assert large.order[: len(small.order)] == small.order
    assert large.columns[: small.columns.size].tolist() == small.columns.tolist()
    assert large.rows[: small.rows.size].tolist() == small.rows.tolist()


@pytest.mark.parametrize("method", ["pursuit", "auto"])
def test_exact_matrices_end_early(method):
    rng = np.random.default_rng(2)
    matrix = rng.random((15, 2)) @ rng.random((2, 12))  # a nonnegative matrix of rank two is separable
    result = gsnmf.factorize(matrix, 6, method=method)
    assert result.relative_error < 1e-6
    zero = gsnmf.factorize(np.zeros((4, 3)), 2, method=method)
    assert zero.columns.size == zero.rows.size == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["gspa", "spa-rows", "spa-columns"])
def test_exchange_never_makes_worse(seed, method):
    matrix = random_matrix(seed, (30, 25))
    pool = everything(matrix)
    start = gsnmf.select(matrix, 5, method=method)
    state = solved(pool, start.columns, start.rows)
    refined = refined_by_exchange(pool, state)
    assert refined.squared_error <= state.squared_error
    assert refined.size == len(set(refined.factors())) == 5
    assert relative_error(matrix, refined) <= relative_error(matrix, state) + 1e-9
    assert refined_by_exchange(pool, state, work=0.0) is state


def test_exchange_ends_where_no_single_exchange_helps():
    """Checked by brute force over every exchange of one index."""
    matrix = random_matrix(5, (9, 8))
    pool = everything(matrix)
    refined = refined_by_exchange(pool, solved(pool, [0], [0, 1]))
    reached = relative_error(matrix, refined)
    best = math.inf
    for position in range(3):
        rest = pool.without(refined, [position])
        columns, rows = rest.columns.indices, rest.rows.indices
        for j in set(range(8)) - set(columns.tolist()):
            best = min(best, gsnmf.fit_weights(matrix, [*columns, j], rows).relative_error)
        for i in set(range(9)) - set(rows.tolist()):
            best = min(best, gsnmf.fit_weights(matrix, columns, [*rows, i]).relative_error)
    assert reached <= best * 1.02  # exchanges are tried in the order of a bound, three at a time


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
@pytest.mark.parametrize("noise", [0.001, 0.1])
@pytest.mark.parametrize(
    ("shape", "effort"), [((30, 35), "fast"), pytest.param((40, 50), "balanced", marks=pytest.mark.long)]
)
def test_auto_finds_what_was_planted(seed, noise, shape, effort):
    data = fully_random(noise, shape=shape, n_columns=4, n_rows=3, random_state=seed)
    selection = gsnmf.select(data.matrix, 7)
    assert accuracy(selection.columns, selection.rows, data.columns, data.rows) == 1.0
    pair = gsnmf.select(data.matrix, (4, 3), effort=effort)
    assert accuracy(pair.columns, pair.rows, data.columns, data.rows) == 1.0
    assert (pair.columns.size, pair.rows.size) == (4, 3)


def test_auto_finds_middle_points():
    data = middle_points(0.05, n_columns=5, n_rows=6, random_state=0)
    selection = gsnmf.select(data.matrix, 11)
    assert accuracy(selection.columns, selection.rows, data.columns, data.rows) == 1.0


@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_auto_is_at_least_as_good_as_its_starts(effort):
    matrix = random_matrix(7, (60, 40))
    error = gsnmf.factorize(matrix, 6, effort=effort).relative_error
    for method in ("gspa", "spa-rows", "spa-columns"):
        assert error <= gsnmf.factorize(matrix, 6, method=method).relative_error + 1e-4


def test_unknown_effort():
    with pytest.raises(ValueError, match="effort must be one of 'fast', 'balanced', 'best'; got 'huge'"):
        gsnmf.select(np.ones((3, 3)), 1, effort="huge")


def test_candidates_of_large_matrices_are_the_longest_and_the_farthest():
    rng = np.random.default_rng(0)
    matrix = rng.random((80, 300)) * rng.lognormal(0, 1, 300)
    pool = candidate_pool(wrap(matrix), 60)
    assert pool.columns.indices.size <= 60
    assert set(np.argsort(-np.linalg.norm(matrix, axis=0))[:25]) <= set(pool.columns.indices.tolist())
    spa = gsnmf.select(matrix, 10, method="spa-columns").columns
    assert set(spa.tolist()) <= set(pool.columns.indices.tolist())


@pytest.mark.parametrize("name", ["tr23", "tr11", "hitech", "CBCL"])
@pytest.mark.long
def test_balanced_reaches_the_best_of_the_paper(paper, name):
    data = paper(name)
    assert 100 * gsnmf.factorize(data.matrix, data.rank).quality > data.best_published - 0.005


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("long", [10, 1000])
def test_candidates_are_the_same_vectors_in_every_form(dtype, long, monkeypatch):
    monkeypatch.setattr("gsnmf.search.candidate_vectors.LONG", long)
    rng = np.random.default_rng(0)
    held = wrap(sp.random_array((60, 50), density=0.08, rng=rng, dtype=dtype))
    for side in (held, held.T):
        thin, dense = candidate_vectors(side), candidate_vectors(wrap(side.data.toarray()))
        assert type(thin) is not type(dense)
        for indices in (np.array([3, 1]), np.array([7, 20, 33])):
            np.testing.assert_allclose(thin.extend(indices), dense.extend(indices), rtol=1e-6)
        positions = np.array([4, 0])
        for block in (rng.random((side.shape[0], 4)), np.empty((side.shape[0], 0))):
            np.testing.assert_allclose(thin.dot(block), dense.dot(block), rtol=1e-6)
            np.testing.assert_allclose(thin.dot(block, 2), dense.dot(block, 2), rtol=1e-6)
        for chosen in (positions, positions[:0]):
            np.testing.assert_allclose(thin.as_columns(chosen), dense.as_columns(chosen), rtol=1e-6)
            assert thin.as_columns(chosen).flags.c_contiguous
            lengths = 1.0 + np.arange(chosen.size)
            unit = thin.of_unit_length(chosen, lengths)
            assert sp.issparse(unit) == (long == 10)
            expected = dense.of_unit_length(chosen, lengths)
            np.testing.assert_allclose(unit.toarray() if sp.issparse(unit) else unit, expected, rtol=1e-6)


@pytest.mark.parametrize("rank", [5, (0, 5), (5, 0), (2, 3)])
def test_candidates_that_stay_in_a_large_matrix_lead_to_the_same_selection(rank, monkeypatch):
    rng = np.random.default_rng(1)
    matrix = sp.random_array((90, 70), density=0.1, rng=rng, format="csr")
    expected = gsnmf.factorize(matrix, rank, effort="fast")
    monkeypatch.setattr("gsnmf.search.candidate_vectors.LONG", 10)
    monkeypatch.setattr("gsnmf.search.state._LARGE", 10)
    found = gsnmf.factorize(matrix, rank, effort="fast")
    assert set(found.columns) == set(expected.columns)
    assert set(found.rows) == set(expected.rows)
    assert found.relative_error == pytest.approx(expected.relative_error, rel=1e-6)
