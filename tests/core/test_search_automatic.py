"""The automatic search: what it guarantees, what it records, and how it ends."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import gsnmf
from gsnmf.constraints import Constraints
from gsnmf.convex.selection import convex_selection
from gsnmf.datasets import fully_random, planted
from gsnmf.matrix import wrap
from gsnmf.metrics import accuracy
from gsnmf.search.automatic import Search, automatic_search
from gsnmf.search.pursuit import pursuit_choice
from gsnmf.selection.successive_nonnegative import successive_nonnegative_projection
from gsnmf.selection.successive_projection import (
    generalized_successive_projection,
    successive_projection,
    successive_projection_both,
)
from gsnmf.selection.xray import xray

EFFORTS = ("fast", "balanced", "best")
ROUNDING = 1e-5


def random_matrix(seed, shape=(25, 18), density=0.7):
    rng = np.random.default_rng(seed)
    return rng.random(shape) * (rng.random(shape) < density)


def error_of(matrix, selection):
    return gsnmf.fit_weights(matrix, selection.columns, selection.rows, tolerance=1e-5).relative_error


def answers_to_number(held, rank):
    yield generalized_successive_projection(held, rank)
    yield pursuit_choice(held, rank).selection
    yield convex_selection(held, rank, warn=False)
    for axis in ("columns", "rows"):
        if rank <= held.shape[axis == "columns"]:
            yield successive_projection(held, rank, axis=axis)
            yield successive_nonnegative_projection(held, rank, axis=axis)
            yield xray(held, rank, axis=axis)


@pytest.mark.parametrize("seed", [0, 2, 5, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 3, 4))])
@pytest.mark.parametrize("rank", [2, 5])
def test_balanced_is_never_worse_than_any_single_method(seed, rank):
    matrix = random_matrix(seed, (20 + seed, 24 - 2 * seed), 0.4 + 0.1 * seed)
    found = automatic_search(wrap(matrix), rank)
    reached = error_of(matrix, found.selection)
    for answer in answers_to_number(wrap(matrix), rank):
        assert reached <= error_of(matrix, answer) + ROUNDING, answer.method


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
@pytest.mark.parametrize("pair", [(4, 0), (0, 3), (3, 2)])
def test_a_pair_is_searched_for_too(seed, pair):
    matrix = random_matrix(seed)
    held = wrap(matrix)
    found = automatic_search(held, pair)
    assert (found.fit.columns.size, found.fit.rows.size) == pair
    reached = error_of(matrix, found.selection)
    assert reached <= error_of(matrix, successive_projection_both(held, *pair)) + ROUNDING
    assert reached <= error_of(matrix, convex_selection(held, pair, warn=False)) + ROUNDING
    if pair[1] == 0:
        assert reached <= error_of(matrix, successive_nonnegative_projection(held, pair[0], axis="columns")) + ROUNDING


@pytest.mark.parametrize("rank", [3, (2, 3)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_more_effort_is_never_worse(seed, rank):
    matrix = random_matrix(seed, (14, 11))
    errors = [error_of(matrix, automatic_search(wrap(matrix), rank, effort).selection) for effort in EFFORTS]
    assert errors[1] <= errors[0] + ROUNDING
    assert errors[2] <= errors[1] + ROUNDING


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
@pytest.mark.parametrize("rank", [10, (6, 4)])
def test_fast_is_exact_where_the_best_start_is_not_the_closest(seed, rank):
    data = fully_random(0.02, shape=(100, 100), n_columns=6, n_rows=4, random_state=seed)
    found = automatic_search(wrap(data.matrix), rank, "fast").selection
    assert accuracy(found.columns, found.rows, data.columns, data.rows) == 1.0


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_constraints_are_obeyed(data):
    matrix = random_matrix(data.draw(st.integers(0, 1000)), (9, 11), data.draw(st.floats(0.2, 1.0)))
    include = data.draw(st.lists(st.integers(0, 5), max_size=2, unique=True))
    exclude = data.draw(st.lists(st.integers(6, 10), max_size=4, unique=True))
    least_rows = data.draw(st.integers(0, 2))
    constraints = Constraints(include_columns=include, exclude_columns=exclude, at_least=(0, least_rows))
    if not matrix[:, include].any(axis=0).all():
        with pytest.raises(ValueError, match="include_columns must not be zero in the matrix"):
            automatic_search(wrap(matrix), 5, "fast", constraints=constraints)
        return
    found = automatic_search(wrap(matrix), 5, "fast", constraints=constraints)
    assert constraints.resolve((9, 11), 5).obeyed_by(found.fit.columns.indices, found.fit.rows.indices)
    if np.count_nonzero(matrix.any(axis=1)) >= least_rows:
        assert found.fit.rows.size >= least_rows


@pytest.mark.parametrize("effort", ["fast", pytest.param("balanced", marks=pytest.mark.long)])
def test_constrained_answers_are_good(effort):
    """What was planted is found around what must be in and what must be out."""
    data = fully_random(0.001, shape=(40, 50), n_columns=4, n_rows=3, random_state=0)
    other = int(np.setdiff1d(np.arange(50), data.columns)[0])
    constraints = Constraints(include_columns=[other], exclude_rows=np.setdiff1d(np.arange(40), data.rows))
    found = automatic_search(wrap(data.matrix), 8, effort, constraints=constraints).selection
    assert sorted(found.columns) == sorted([other, *data.columns])
    assert sorted(found.rows) == sorted(data.rows)


def test_the_record_tells_what_happened():
    matrix = random_matrix(0, (40, 30))
    found = automatic_search(wrap(matrix), 6)
    record = found.record
    best = math.sqrt(found.fit.squared_error / np.square(matrix).sum())
    assert {"spa on rows", "spa on columns", "gspa", "convex"} <= {start.name for start in record.starts}
    assert all(start.relative_error >= best - 1e-9 for start in record.starts)
    assert all(start.n_columns + start.n_rows == 6 for start in record.starts)
    assert record.n_candidates == (30, 40)
    assert 0 < record.exchanges_kept < record.exchanges_tried
    assert record.perturbations >= record.perturbations_kept
    assert record.end == "nothing better nearby"
    assert record.optimal_under_exchanges
    assert "optimal under single exchanges; ended: nothing better nearby" in str(record)


def test_the_end_of_balanced_is_optimal_under_single_exchanges():
    matrix = random_matrix(3, (8, 9))
    found = automatic_search(wrap(matrix), 3)
    assert found.record.optimal_under_exchanges
    reached = error_of(matrix, found.selection)
    columns, rows = found.fit.columns.indices.tolist(), found.fit.rows.indices.tolist()
    everything = [("columns", j) for j in range(9)] + [("rows", i) for i in range(8)]
    chosen = [("columns", j) for j in columns] + [("rows", i) for i in rows]
    for gone in chosen:
        for new in set(everything) - set(chosen):
            trial = [one for one in chosen if one != gone] + [new]
            trial_columns = [j for axis, j in trial if axis == "columns"]
            trial_rows = [i for axis, i in trial if axis == "rows"]
            assert gsnmf.fit_weights(matrix, trial_columns, trial_rows).relative_error >= reached * (1 - 1e-3)


def test_the_fit_is_that_of_the_selection():
    matrix = random_matrix(1)
    found = automatic_search(wrap(matrix), 4, "fast")
    columns, rows = found.selection.columns, found.selection.rows
    P1, P2 = found.fit.weights(wrap(matrix))
    residual = matrix - matrix[:, columns] @ P1 - P2 @ matrix[rows]
    assert found.fit.squared_error == pytest.approx(np.square(residual).sum())


@pytest.mark.parametrize("effort", ["fast", pytest.param("balanced", marks=pytest.mark.long)])
def test_searches_repeat_and_containers_agree(effort):
    matrix = random_matrix(2, (60, 45), 0.3)
    first, again = (automatic_search(wrap(matrix), 5, effort).selection for _ in range(2))
    sparse = automatic_search(wrap(sp.csr_array(matrix)), 5, effort).selection
    assert first.columns.tolist() == again.columns.tolist()
    assert first.rows.tolist() == again.rows.tolist()
    assert error_of(matrix, sparse) == pytest.approx(error_of(matrix, first), rel=1e-6)


def test_exact_and_empty_matrices_end_early():
    rng = np.random.default_rng(2)
    found = automatic_search(wrap(rng.random((15, 2)) @ rng.random((2, 12))), 6)
    assert found.record.end == "error is zero"
    assert found.selection.stop_reason in ("rank reached", "residual is zero")
    zero = automatic_search(wrap(np.zeros((4, 3))), 2)
    assert zero.selection.n_selected == 0
    assert zero.record.end == "error is zero"


def test_a_time_limit_returns_the_best_so_far():
    found = automatic_search(wrap(random_matrix(5, (80, 90))), 10, "best", time_limit=0.05)
    assert found.record.end == "time limit"
    assert found.selection.n_selected == 10


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, "soon", True])
def test_wrong_time_limits(limit):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0, or None; got"):
        automatic_search(wrap(np.ones((3, 3))), 1, time_limit=limit)


def test_progress_is_told():
    seen = []
    found = automatic_search(wrap(random_matrix(6)), 4, progress=lambda *told: seen.append(told))
    stages, done, total, qualities = zip(*seen, strict=True)
    assert list(dict.fromkeys(stages)) == ["fast", "balanced"]
    assert all(0 <= part <= whole for part, whole in zip(done, total, strict=True))
    assert list(done) == sorted(done)
    assert list(qualities) == sorted(qualities)
    reached = 1 - math.sqrt(found.fit.squared_error / np.square(random_matrix(6)).sum())
    assert qualities[-1] == pytest.approx(reached, abs=1e-4)


def test_an_interrupt_carries_the_best_so_far():
    calls = []

    def interrupt(*told):
        calls.append(told)
        if len(calls) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        automatic_search(wrap(random_matrix(7)), 4, progress=interrupt)
    best = caught.value.best_so_far
    assert best.selection.n_selected == 4
    assert 1 - math.sqrt(best.fit.squared_error / np.square(random_matrix(7)).sum()) == pytest.approx(calls[-1][-1])


def test_a_search_can_be_asked():
    search = Search(wrap(random_matrix(8)), Constraints().resolve(random_matrix(8).shape, 3), "fast")
    assert not search.started
    found = search.run()
    assert search.started
    assert search.result().selection.columns.tolist() == found.selection.columns.tolist()


def test_contradictions_are_errors_before_any_work():
    with pytest.raises(ValueError, match="at most 2 indices can be included"):
        automatic_search(wrap(np.ones((5, 5))), 2, constraints=Constraints(include_rows=[0, 1, 2]))


@pytest.mark.parametrize("effort", EFFORTS[:2])
def test_an_exact_selection_is_found_where_another_one_is_nearly_exact(effort):
    """The columns alone come within 6e-5; one row in place of a column explains everything."""
    rng = np.random.default_rng(1)
    spectra = rng.random((3, 20))
    spectra[:, 9], spectra[2, 9] = 0.0, 1.0
    mixed = rng.dirichlet(np.full(3, 0.5), 400)
    mixed[:, 2] = 0.2 + 0.5 * mixed[:, 2]
    mixed[:2] = np.eye(3)[:2]
    found = automatic_search(wrap((mixed @ spectra).T), 3, effort)
    assert found.record.end == "error is zero"
    assert sorted(found.selection.columns) == [0, 1]
    assert found.selection.rows.tolist() == [9]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_an_exact_scene_of_pure_pixels_and_a_pure_band_is_found(seed, transposed):
    """Three of four materials have a pure pixel; the fourth, never alone, is the only one that reflects in one band."""
    rng = np.random.default_rng(seed)
    spectra, band = rng.random((4, 30)), int(rng.integers(30))
    spectra[:, band] = [0.0, 0.0, 0.0, 1.0]
    abundances, pure = rng.dirichlet(np.full(4, 0.6), 300), rng.choice(300, 3, replace=False)
    abundances[:, 3] = 0.1 + 0.5 * abundances[:, 3]
    abundances[pure] = np.eye(4)[:3]
    scene = abundances @ spectra
    found = automatic_search(wrap(scene.T if transposed else scene), 4, "fast")
    pixels, bands = found.selection.rows, found.selection.columns
    if transposed:
        pixels, bands = bands, pixels
    assert found.record.end == "error is zero"
    assert sorted(pixels) == sorted(pure)
    assert bands.tolist() == [band]


@pytest.mark.parametrize("seed", range(3))
def test_planted_columns_and_rows_are_found_in_the_transpose_too(seed):
    matrix = planted((60, 50), 4, 3, noise_level=0.05, random_state=seed).matrix
    found = gsnmf.factorize(matrix, 7, effort="fast")
    of_transpose = gsnmf.factorize(matrix.T, 7, effort="fast")
    assert sorted(found.columns) == sorted(of_transpose.rows)
    assert sorted(found.rows) == sorted(of_transpose.columns)
    assert of_transpose.relative_error == pytest.approx(found.relative_error, rel=1e-5)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 20))])
def test_constrained_answers_are_never_worse_than_those_of_single_methods(seed):
    """The starts obey the constraints from the beginning, as the single methods do."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((20, 3)) @ rng.random((3, 10)) + 0.05 * rng.random((20, 10))
    wishes = Constraints(
        include_columns=rng.choice(10, 1), exclude_rows=rng.choice(20, 5, replace=False), at_least=(int(seed % 3), 0)
    )
    found = gsnmf.factorize(matrix, 4, constraints=wishes, effort="fast")
    assert wishes.resolve(matrix.shape, 4).obeyed_by(found.columns, found.rows)
    for method in ("gspa", "pursuit", "spa-columns", "snpa-columns", "xray-columns"):
        single = gsnmf.factorize(matrix, 4, constraints=wishes, method=method)
        assert found.relative_error <= (1.0 + ROUNDING) * single.relative_error


def test_a_search_that_has_tried_everything_says_so():
    found = automatic_search(wrap(random_matrix(0)), 3, "fast")
    assert found.record.end == "nothing better nearby"
    assert found.record.work < 1.0
