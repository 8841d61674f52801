"""Scores of exchanges, short fits of trials, the alternating start and alternatives, against plain NumPy."""

import math

import numpy as np
import pytest

import gsnmf
from gsnmf._kernels.exchange import cross_product, descend_trial, exchange_scores
from gsnmf.constraints import Constraints
from gsnmf.matrix import wrap
from gsnmf.problem import Problem
from gsnmf.search.alternating import _closest_to_ideal, alternate, distinct_closest, matched_factors, short_nmf
from gsnmf.search.alternatives import substitutes
from gsnmf.search.candidates import Candidates
from gsnmf.search.effort import Work
from gsnmf.search.exchange import improve, improve_thoroughly, try_every_exchange
from gsnmf.search.state import descend_jointly
from gsnmf.search.trials import Trials


def random_matrix(seed, shape=(25, 18), density=0.7):
    rng = np.random.default_rng(seed)
    return rng.random(shape) * (rng.random(shape) < density) + 0.01


def trials_of(matrix, rank, **constraints):
    held = wrap(matrix)
    pool = Candidates(held, np.arange(held.shape[1]), np.arange(held.shape[0]))
    limits = Constraints(**constraints).resolve(held.shape, rank)
    return Trials(pool, limits, Work(math.inf))


def state_of(trials, columns, rows):
    state = trials.candidates.state(np.array(columns, dtype=int), np.array(rows, dtype=int))
    return state.solved(tolerance=1e-8)[0]


@pytest.mark.parametrize("threads", [False, True])
def test_descent_of_rows_is_coordinate_descent(threads):
    rng = np.random.default_rng(0)
    n, r, q = 70, 5, 3
    basis = rng.random((9, r))
    gram, X = basis.T @ basis, rng.random((n, r)) * (rng.random((n, r)) < 0.5)
    linear, left, right = -rng.random((n, r)), rng.random((n, q)), rng.random((q, r))
    expected, total = X.copy(), linear + left @ right
    for j in range(n):
        for _ in range(2):
            for i in range(r):
                slope = total[j, i] + gram[i] @ expected[j]
                expected[j, i] = max(0.0, expected[j, i] - slope / gram[i, i])
    plain, whole, slopes, operations = descend_trial(X, linear, left, right, gram, threads=threads)
    np.testing.assert_allclose(X, expected, atol=1e-12)
    assert plain == pytest.approx(np.vdot(X, linear))
    assert whole == pytest.approx(np.vdot(X, total))
    assert slopes == pytest.approx(np.vdot(X, total + X @ gram))
    assert operations > 0


def test_rows_after_the_first_round_of_chunks_descend_too():
    rng = np.random.default_rng(1)
    gram = np.array([[2.0, 0.5], [0.5, 1.0]])
    X, linear, left, right = rng.random((2100, 2)), -rng.random((2100, 2)), rng.random((2100, 1)), rng.random((1, 2))
    expected, total = X.copy(), linear + left @ right
    for i in (0, 1, 0, 1):
        slopes = total[:, i] + expected @ gram[i]
        expected[:, i] = np.maximum(0.0, expected[:, i] - slopes / gram[i, i])
    plain, whole, slopes, _ = descend_trial(X, linear, left, right, gram, threads=False)
    np.testing.assert_allclose(X, expected, atol=1e-12)
    np.testing.assert_allclose(
        [plain, whole, slopes], [np.vdot(X, part) for part in (linear, total, total + X @ gram)], rtol=1e-10
    )


def test_threads_do_not_change_results():
    rng = np.random.default_rng(1)
    A, B = rng.random((500, 4)), rng.random((500, 3))
    one, many = (cross_product(A, B, threads=threads) for threads in (False, True))
    np.testing.assert_array_equal(one, many)
    np.testing.assert_allclose(one, A.T @ B)


def test_scores_are_those_of_plain_numpy():
    rng = np.random.default_rng(2)
    slopes, coefficients, vectors = rng.normal(size=(7, 30)), rng.random((7, 4)), rng.random((4, 30))
    expected = (np.maximum(slopes[:, None] + coefficients[..., None] * vectors, 0.0) ** 2).sum(axis=2)
    np.testing.assert_allclose(exchange_scores(slopes, coefficients, vectors), expected)


@pytest.mark.parametrize("seed", range(3))
def test_gains_are_those_of_the_explicit_residual(seed):
    matrix = random_matrix(seed, (9, 8))
    trials = trials_of(matrix, 4)
    state = state_of(trials, [1, 5], [0, 7])
    gains = trials.gains(state)
    W, H = state.left, state.right
    residual = matrix - W @ H
    for position in range(4):
        without = residual + np.outer(W[:, position], H[position])
        for place in range(17):
            if not np.isfinite(gains[place, position]):
                continue
            if place < 8:
                vector = matrix[:, place]
                weights = np.maximum(vector @ without, 0.0) / (vector @ vector)
                after = without - np.outer(vector, weights)
            else:
                vector = matrix[place - 8]
                weights = np.maximum(without @ vector, 0.0) / (vector @ vector)
                after = without - np.outer(weights, vector)
            expected = (residual**2).sum() - (after**2).sum()
            assert gains[place, position] == pytest.approx(expected, abs=1e-9)
            exchanged = trials.exchange(state, place, position, gains[place, position])
            assert ((matrix - exchanged.left @ exchanged.right) ** 2).sum() == pytest.approx((after**2).sum())
            assert exchanged.squared_error == pytest.approx((after**2).sum(), abs=1e-9)


def test_a_trial_has_the_products_of_its_selection():
    matrix = random_matrix(3, (9, 8))
    trials = trials_of(matrix, 4)
    state = state_of(trials, [1, 5], [0, 7])
    gains = trials.gains(state)
    for place, position in ((3, 0), (8 + 4, 3), (2, 2), (8 + 5, 1)):
        trial = trials.exchange(state, place, position, gains[place, position])
        anew = trials.candidates.state(trial.columns.indices, trial.rows.indices)
        for found, expected in ((trial.columns.side, anew.columns.side), (trial.rows.side, anew.rows.side)):
            for name in ("vectors", "gram", "linear", "lengths"):
                np.testing.assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize(("columns", "rows"), [([0, 4, 6], []), ([], [3, 5, 8]), ([1, 2], [0, 4])])
def test_rounds_of_descent_reach_the_optimum(columns, rows):
    matrix = random_matrix(4)
    trials = trials_of(matrix, max(1, len(columns) + len(rows)))
    state = state_of(trials, columns, rows)
    P, Q = np.zeros_like(state.columns.weights), np.zeros_like(state.rows.weights)
    error, _ = descend_jointly(state.problem, P, Q, max_rounds=2000, tolerance=1e-13)
    best = gsnmf.fit_weights(matrix, columns, rows, tolerance=1e-8).relative_error
    assert math.sqrt(error) / np.linalg.norm(matrix) == pytest.approx(best, rel=1e-4)
    approximation = np.hstack([state.columns.side.vectors, Q]) @ np.vstack([P.T, state.rows.side.vectors.T])
    assert error == pytest.approx(((matrix - approximation) ** 2).sum())


def test_a_trial_ends_where_its_goal_is_out_of_reach():
    trials = trials_of(random_matrix(5), 4)
    state = state_of(trials, [1, 2], [0, 4])
    zeros = trials.candidates.state(state.columns.indices, state.rows.indices)
    hopeless = trials.descend(zeros, 50, goal=0.1 * state.squared_error)
    spent = trials.work.spent
    trials.descend(zeros, 50)
    assert hopeless.squared_error > 0.1 * state.squared_error
    assert spent < 0.5 * (trials.work.spent - spent)


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_end_at_an_optimum_by_brute_force(seed):
    """After every exchange has been tried, none of all that fit_weights can try is better."""
    matrix = random_matrix(seed, (8, 7))
    trials = trials_of(matrix, 3)
    with trials.running():
        state, optimal = state_of(trials, [0], [0, 1]), False
        while not optimal:
            state, _ = improve_thoroughly(trials, state)
            state, optimal = try_every_exchange(trials, state, math.inf)
    reached = gsnmf.fit_weights(matrix, state.columns.indices, state.rows.indices).relative_error
    for position in range(3):
        rest = trials.candidates.without(state, [position])
        columns, rows = rest.columns.indices, rest.rows.indices
        for j in set(range(7)) - set(columns.tolist()):
            assert gsnmf.fit_weights(matrix, [*columns, j], rows).relative_error > reached * (1 - 1e-3)
        for i in set(range(8)) - set(rows.tolist()):
            assert gsnmf.fit_weights(matrix, columns, [*rows, i]).relative_error > reached * (1 - 1e-3)


def test_exchanges_stay_within_the_constraints():
    matrix = random_matrix(6)
    constraints = {"include_columns": [2], "exclude_rows": [0, 1, 2], "at_least": (2, 1), "at_most": (3, 4)}
    trials = trials_of(matrix, 5, **constraints)
    trials.candidates = Candidates(wrap(matrix), np.arange(18), np.arange(3, 25))
    with trials.running():
        found, done = improve(trials, state_of(trials, [2, 3], [4, 5, 6]))
    assert done
    assert trials.kept > 0
    assert trials.limits.obeyed_by(found.columns.indices, found.rows.indices)
    assert found.columns.size in (2, 3)


def test_exchanges_can_keep_the_numbers_of_columns_and_rows():
    trials = trials_of(random_matrix(6), 4)
    with trials.running(), trials.within(trials.limits.with_columns(4)):
        found, done = improve(trials, state_of(trials, [0, 1, 2, 3], []))
    assert done
    assert trials.kept > 0
    assert found.columns.size == 4
    assert (trials.limits.least_columns, trials.limits.most_columns) == (0, 4)


def test_the_first_trials_can_be_made_whatever_they_take():
    trials = trials_of(random_matrix(6), 4)
    state = state_of(trials, [0, 1], [2, 3])
    assert improve(trials, state, 0.0) == (state, False)
    assert (trials.tried, trials.work.spent) == (0, 0.0)
    improve(trials, state, 0.0, once=True)
    assert 0 < trials.tried <= 4


def test_good_weights_are_made_where_they_are_cheap():
    """Rounds of descent are far from the weights of columns and rows together, which a little more work finds."""
    rng = np.random.default_rng(0)
    exact = rng.random((20, 3)) @ rng.random((3, 10))
    trials = trials_of(exact, 3)
    nothing = trials.candidates.state(np.array([0]), np.array([1, 2]))
    by_rounds = trials.descend(nothing, 15).squared_error
    trials.work = Work(0.0)
    assert trials.polish_or_descend(nothing, 15).squared_error == by_rounds
    trials.work = Work(1.0)
    assert trials.polish_or_descend(nothing, 15).squared_error < by_rounds


@pytest.mark.parametrize("seed", range(4))
def test_the_alternating_start_is_never_worse_and_keeps_the_sizes(seed):
    matrix = random_matrix(seed, (40, 30))
    trials = trials_of(matrix, 6, include_columns=[3], exclude_rows=[9])
    state = state_of(trials, [3, 4], [0, 1, 2, 5])
    found = alternate(trials, state, matrix.size)
    assert found.squared_error <= state.squared_error
    assert (found.columns.size, found.rows.size) == (2, 4)
    assert trials.limits.obeyed_by(found.columns.indices, found.rows.indices)


@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_the_closest_to_ideal_vectors_are_those_of_the_explicit_residual(axis):
    matrix = random_matrix(3, (20, 30))
    trials = trials_of(matrix, 4)
    state = state_of(trials, [0, 4], [3, 5])
    found = _closest_to_ideal(wrap(matrix), state, trials.limits, axis)
    side = matrix if axis == "columns" else matrix.T
    W, H = (state.left, state.right) if axis == "columns" else (state.right.T, state.left.T)
    units = side / np.linalg.norm(side, axis=0)
    for place, factor in enumerate((0, 1) if axis == "columns" else (2, 3)):
        without = side - W @ H + np.outer(W[:, factor], H[factor])
        ideal = np.linalg.lstsq(H[factor][:, None], without.T, rcond=None)[0][0]
        assert found[place] == np.argmax(units.T @ ideal)


def test_short_nmf_lowers_the_error_and_its_factors_are_matched():
    rng = np.random.default_rng(1)
    W, H = rng.random((30, 3)), rng.random((3, 20))
    H[:, :3] = np.eye(3)
    matrix = W @ H
    start = rng.random((30, 3)), rng.random((3, 20))
    left, right = short_nmf(wrap(matrix), *start, 50)
    assert np.linalg.norm(matrix - left @ right) < 0.2 * np.linalg.norm(matrix - start[0] @ start[1])
    assert left.min() >= 0
    assert right.min() >= 0
    limits = Constraints().resolve((30, 20), (3, 0))
    columns, rows = matched_factors(wrap(matrix), W, H, limits)
    assert sorted(columns) == [0, 1, 2]
    assert rows.size == 0


def test_the_closest_are_distinct():
    assert distinct_closest(np.array([[0.9, 0.8], [0.1, 0.7]])).tolist() == [0, 1]


def alternatives(matrix, columns, rows, count=5, constraints=None):
    selection = gsnmf.Selection.of_indices(np.array(columns), np.array(rows), "auto", len(columns) + len(rows))
    result = gsnmf.Factorization(Problem.of(matrix), selection, gsnmf.fit_weights(matrix, columns, rows))
    return substitutes(result, count=count, quick=False, constraints=constraints)


@pytest.mark.parametrize("shape", [(12, 9), (9, 12)])
def test_alternatives_are_the_best_of_brute_force(shape):
    matrix = random_matrix(8, shape)
    found = alternatives(matrix, [1, 4], [2], count=2)
    assert [one.chosen for one in found] == [1, 1, 4, 4, 2, 2]
    for one in found:
        chosen = [[1, 4], [2]]
        side = chosen[one.axis == "rows"]
        side[side.index(one.chosen)] = one.index
        assert one.relative_error == pytest.approx(gsnmf.fit_weights(matrix, *chosen).relative_error, rel=1e-4)
    best = min((gsnmf.fit_weights(matrix, [j, 4], [2]).relative_error, j) for j in range(shape[1]) if j not in (1, 4))
    assert found[0].index == best[1]


def test_alternatives_obey_and_refuse_zero_columns():
    matrix = random_matrix(9, (12, 9))
    constraints = Constraints(include_columns=[1], exclude_columns=[0, 2])
    found = alternatives(matrix, [1, 4], [2], constraints=constraints)
    assert {one.chosen for one in found} == {4, 2}
    assert not {one.index for one in found if one.axis == "columns"} & {0, 1, 2, 4}
    matrix[:, 3] = 0.0
    with pytest.raises(ValueError, match="must not be zero"):
        alternatives(matrix, [3], [2])
