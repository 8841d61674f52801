"""The automatic search: what it guarantees, what it records, and how it ends."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import gsnmf
from gsnmf import Constraints
from gsnmf.datasets import fully_random, planted
from gsnmf.metrics import accuracy

EFFORTS = ("fast", "balanced", "best")
ROUNDING = 1e-5


def random_matrix(seed, shape=(25, 18), density=0.7):
    rng = np.random.default_rng(seed)
    return rng.random(shape) * (rng.random(shape) < density)


def error_of(matrix, selection):
    return gsnmf.fit_weights(matrix, selection.columns, selection.rows, tolerance=1e-5).relative_error


@pytest.mark.parametrize("seed", [0, 2, 5, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 3, 4))])
@pytest.mark.parametrize("rank", [2, 5])
def test_balanced_is_never_worse_than_any_single_method(seed, rank):
    matrix = random_matrix(seed, (20 + seed, 24 - 2 * seed), 0.4 + 0.1 * seed)
    reached = error_of(matrix, gsnmf.select(matrix, rank))
    for method in ("gspa", "pursuit", "convex", "spa-columns", "spa-rows", "snpa", "snpa-rows", "xray", "xray-rows"):
        assert reached <= error_of(matrix, gsnmf.select(matrix, rank, method=method)) + ROUNDING, method


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
@pytest.mark.parametrize("pair", [(4, 0), (0, 3), (3, 2)])
def test_a_pair_is_searched_for_too(seed, pair):
    matrix = random_matrix(seed)
    found = gsnmf.select(matrix, pair)
    assert (found.columns.size, found.rows.size) == pair
    reached = error_of(matrix, found)
    for method in ("spa-both", "convex"):
        assert reached <= error_of(matrix, gsnmf.select(matrix, pair, method=method)) + ROUNDING
    if pair[1] == 0:
        assert reached <= error_of(matrix, gsnmf.select(matrix, pair[0], method="snpa")) + ROUNDING


@pytest.mark.parametrize("rank", [3, (2, 3)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_more_effort_is_never_worse(seed, rank):
    matrix = random_matrix(seed, (14, 11))
    errors = [error_of(matrix, gsnmf.select(matrix, rank, effort=effort)) for effort in EFFORTS]
    assert errors[1] <= errors[0] + ROUNDING
    assert errors[2] <= errors[1] + ROUNDING


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
@pytest.mark.parametrize("rank", [10, (6, 4)])
def test_fast_is_exact_where_the_best_start_is_not_the_closest(seed, rank):
    data = fully_random(0.02, shape=(100, 100), n_columns=6, n_rows=4, random_state=seed)
    found = gsnmf.select(data.matrix, rank, effort="fast")
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
            gsnmf.select(matrix, 5, effort="fast", constraints=constraints)
        return
    found = gsnmf.select(matrix, 5, effort="fast", constraints=constraints)
    assert constraints.resolve((9, 11), 5).obeyed_by(found.columns, found.rows)
    if np.count_nonzero(matrix.any(axis=1)) >= least_rows:
        assert found.rows.size >= least_rows


@pytest.mark.parametrize("effort", ["fast", pytest.param("balanced", marks=pytest.mark.long)])
def test_constrained_answers_are_good(effort):
    """What was planted is found around what must be in and what must be out."""
    data = fully_random(0.001, shape=(40, 50), n_columns=4, n_rows=3, random_state=0)
    other = int(np.setdiff1d(np.arange(50), data.columns)[0])
    constraints = Constraints(include_columns=[other], exclude_rows=np.setdiff1d(np.arange(40), data.rows))
    found = gsnmf.select(data.matrix, 8, effort=effort, constraints=constraints)
    assert sorted(found.columns) == sorted([other, *data.columns])
    assert sorted(found.rows) == sorted(data.rows)


def test_the_record_tells_what_happened():
    matrix = random_matrix(0, (40, 30))
    found = gsnmf.factorize(matrix, 6)
    record = found.search
    assert {"spa on rows", "spa on columns", "gspa", "convex"} <= {start.name for start in record.starts}
    assert all(start.relative_error >= found.relative_error - 1e-5 for start in record.starts)
    assert all(start.n_columns + start.n_rows == 6 for start in record.starts)
    assert record.n_candidates == (30, 40)
    assert 0 < record.exchanges_kept < record.exchanges_tried
    assert record.perturbations >= record.perturbations_kept
    assert record.end == "nothing better nearby"
    assert record.optimal_under_exchanges
    assert "optimal under single exchanges; ended: nothing better nearby" in str(record)


def test_the_end_of_balanced_is_optimal_under_single_exchanges():
    matrix = random_matrix(3, (8, 9))
    found = gsnmf.factorize(matrix, 3)
    assert found.search.optimal_under_exchanges
    reached = error_of(matrix, found)
    columns, rows = found.columns.tolist(), found.rows.tolist()
    everything = [("columns", j) for j in range(9)] + [("rows", i) for i in range(8)]
    chosen = [("columns", j) for j in columns] + [("rows", i) for i in rows]
    for gone in chosen:
        for new in set(everything) - set(chosen):
            trial = [one for one in chosen if one != gone] + [new]
            trial_columns = [j for axis, j in trial if axis == "columns"]
            trial_rows = [i for axis, i in trial if axis == "rows"]
            assert gsnmf.fit_weights(matrix, trial_columns, trial_rows).relative_error >= reached * (1 - 1e-3)


@pytest.mark.parametrize("effort", ["fast", pytest.param("balanced", marks=pytest.mark.long)])
def test_searches_repeat_and_containers_agree(effort):
    matrix = random_matrix(2, (60, 45), 0.3)
    first, again = (gsnmf.select(matrix, 5, effort=effort) for _ in range(2))
    sparse = gsnmf.select(sp.csr_array(matrix), 5, effort=effort)
    assert first.columns.tolist() == again.columns.tolist()
    assert first.rows.tolist() == again.rows.tolist()
    assert error_of(matrix, sparse) == pytest.approx(error_of(matrix, first), rel=1e-6)


def test_exact_and_empty_matrices_end_early():
    rng = np.random.default_rng(2)
    found = gsnmf.factorize(rng.random((15, 2)) @ rng.random((2, 12)), 6)
    assert found.search.end == "error is zero"
    assert found.stop_reason in ("rank reached", "residual is zero")
    zero = gsnmf.factorize(np.zeros((4, 3)), 2)
    assert zero.columns.size == zero.rows.size == 0
    assert zero.search.end == "error is zero"


def test_a_time_limit_returns_the_best_so_far():
    found = gsnmf.factorize(random_matrix(5, (80, 90)), 10, effort="best", time_limit=0.05)
    assert found.search.end == "time limit"
    assert found.columns.size + found.rows.size == 10


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, "soon", True])
def test_wrong_time_limits(limit):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0, or None; got"):
        gsnmf.select(np.ones((3, 3)), 1, time_limit=limit)


def test_progress_is_told():
    seen = []
    found = gsnmf.factorize(random_matrix(6), 4, progress=seen.append)
    steps = [(s.message.split(":")[0], s.fraction, s.quality) for s in seen if s.quality is not None]
    stages, done, qualities = zip(*steps, strict=True)
    assert list(dict.fromkeys(stages)) == ["fast", "balanced"]
    assert all(0 <= fraction <= 1 for fraction in done)
    assert list(done) == sorted(done)
    assert list(qualities) == sorted(qualities)
    assert qualities[-1] == pytest.approx(found.quality, abs=1e-4)


def test_an_interrupt_carries_the_best_so_far():
    calls = []

    def interrupt(status):
        if status.quality is not None:
            calls.append(status.quality)
        if len(calls) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gsnmf.factorize(random_matrix(7), 4, progress=interrupt)
    best = caught.value.best_so_far
    assert best.columns.size + best.rows.size == 4
    assert best.quality >= calls[-1] - 1e-9


def test_contradictions_are_errors_before_any_work():
    with pytest.raises(ValueError, match="at most 2 indices can be included"):
        gsnmf.select(np.ones((5, 5)), 2, constraints=Constraints(include_rows=[0, 1, 2]))


@pytest.mark.parametrize("effort", EFFORTS[:2])
def test_an_exact_selection_is_found_where_another_one_is_nearly_exact(effort):
    """The columns alone come within 6e-5; one row in place of a column explains everything."""
    rng = np.random.default_rng(1)
    spectra = rng.random((3, 20))
    spectra[:, 9], spectra[2, 9] = 0.0, 1.0
    mixed = rng.dirichlet(np.full(3, 0.5), 400)
    mixed[:, 2] = 0.2 + 0.5 * mixed[:, 2]
    mixed[:2] = np.eye(3)[:2]
    found = gsnmf.factorize((mixed @ spectra).T, 3, effort=effort)
    assert found.search.end == "error is zero"
    assert sorted(found.columns) == [0, 1]
    assert found.rows.tolist() == [9]


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
    found = gsnmf.factorize(scene.T if transposed else scene, 4, effort="fast")
    pixels, bands = found.rows, found.columns
    if transposed:
        pixels, bands = bands, pixels
    assert found.search.end == "error is zero"
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
    constraints = Constraints(
        include_columns=rng.choice(10, 1), exclude_rows=rng.choice(20, 5, replace=False), at_least=(int(seed % 3), 0)
    )
    found = gsnmf.factorize(matrix, 4, constraints=constraints, effort="fast")
    assert constraints.resolve(matrix.shape, 4).obeyed_by(found.columns, found.rows)
    for method in ("gspa", "pursuit", "spa-columns", "snpa-columns", "xray-columns"):
        single = gsnmf.factorize(matrix, 4, constraints=constraints, method=method)
        assert found.relative_error <= (1.0 + ROUNDING) * single.relative_error


def test_a_search_that_has_tried_everything_says_so():
    found = gsnmf.factorize(random_matrix(0), 3, effort="fast")
    assert found.search.end == "nothing better nearby"
    assert found.search.work < 1.0
