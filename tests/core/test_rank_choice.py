"""How many columns and rows: entries left out, their completion, nested searches, and the recommended rank."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.commands import run
from gsnmf.datasets import planted
from gsnmf.matrix import wrap
from gsnmf.model_selection.held_out_entries import denoised, leave_out
from gsnmf.model_selection.rank_search import nested_fits
from gsnmf.model_selection.stability import agreement

RANKS = range(2, 10)


@pytest.fixture(scope="module")
def dense():
    return planted((60, 50), 3, 2, noise_level=0.05, random_state=0).matrix


@pytest.fixture(scope="module")
def sparse():
    return planted((150, 200), 3, 2, density=0.3, sparse=True, noise_level=0.02, random_state=0).matrix


@pytest.fixture(scope="module")
def choice(dense):
    return gsnmf.choose_rank(dense, RANKS)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_entries_left_out_are_those_of_the_matrix_and_never_the_same_twice(kind, request):
    matrix = request.getfixturevalue(kind)
    array = matrix.toarray() if sp.issparse(matrix) else matrix
    parts = leave_out(wrap(matrix), 0.1, 3, np.random.default_rng(0))
    taken = np.zeros(array.shape, dtype=int)
    for part in parts:
        entries = part.values.tocoo()
        np.testing.assert_array_equal(entries.data, array[entries.row, entries.col])
        rest = part.filled.toarray() if sp.issparse(part.filled) else part.filled
        assert (rest[entries.row, entries.col] == 0).all()
        seen = np.ones(array.shape, dtype=bool)
        seen[entries.row, entries.col] = False
        np.testing.assert_array_equal(rest[seen], array[seen])
        taken[entries.row, entries.col] += array[entries.row, entries.col] > 0
    assert taken.max() == 1


def test_left_out_zeros_stand_for_all_zeros(sparse):
    """Weighted sums of anything, here of a smooth matrix squared, estimate the sum over all entries without bias."""
    m, n = sparse.shape
    left, right = np.linspace(1.0, 2.0, m)[:, None], np.linspace(0.5, 1.5, n)[:, None]
    errors = (sparse.toarray() - left @ right.T) ** 2
    of_zeros = errors[sparse.toarray() == 0].sum()
    found = []
    for part in leave_out(wrap(sparse), 0.05, 20, np.random.default_rng(1)):
        zero = part.values.data == 0
        found.append(np.sum((part.weights * part.errors(left, right) ** 2)[zero]))
        by_row, by_column = part.sums(part.errors(left, right))
        assert by_row.sum() == pytest.approx(part.weighted_squares(part.errors(left, right)))
        assert by_column.sum() == pytest.approx(by_row.sum())
    spread = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - of_zeros) < 4 * spread < 0.2 * of_zeros


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_low_rank_matrix_predicts_what_was_left_out(kind, request):
    matrix = request.getfixturevalue(kind)
    part = next(leave_out(wrap(matrix), 0.1, 1, np.random.default_rng(0)))
    found = denoised(part, 8)
    assert found.rank <= 8
    entries = part.values.tocoo()
    predictions = found.matrix().columns(np.arange(matrix.shape[1]))[entries.row, entries.col]
    stored = entries.data > 0
    assert np.linalg.norm((entries.data - predictions)[stored]) < 0.25 * np.linalg.norm(entries.data[stored])


def test_low_rank_matrix_has_less_noise_than_the_data():
    data = planted((80, 70), 6, 0, noise_level=0.3, random_state=0)
    part = next(leave_out(wrap(data.matrix), 0.1, 1, np.random.default_rng(0)))
    low_rank = denoised(part, 10).matrix().data
    noise = [np.linalg.norm((one - data.noiseless)[:, data.columns]) for one in (low_rank, data.matrix)]
    assert noise[0] < 0.6 * noise[1]


def test_nested_searches_find_planted_indices_and_never_rise_with_the_rank(dense):
    data = planted((60, 50), 3, 2, noise_level=0.05, random_state=0)
    fits = nested_fits(wrap(dense), RANKS, work=1.0, n_candidates=60)
    assert sorted(fits[5].state.columns.indices) == sorted(data.columns)
    assert sorted(fits[5].state.rows.indices) == sorted(data.rows)
    errors = [fits[rank].state.squared_error for rank in RANKS]
    assert errors == sorted(errors, reverse=True)
    for rank in RANKS:
        state = fits[rank].state
        assert np.linalg.norm(dense - state.left @ state.right) ** 2 == pytest.approx(state.squared_error, rel=1e-6)


def test_planted_rank_is_recommended(choice):
    assert choice.rank == 5
    assert choice.errors.argmin() >= 3
    assert choice.standard_errors[3] == 0
    assert (choice.standard_errors[:3] > 0).all()
    assert choice.stabilities[3] > 0.98 > choice.stabilities[-1]
    assert np.all(np.diff(choice.qualities) >= 0)
    assert "rank 5" in choice.reason
    assert "rank 5 of 2 to 9" in repr(choice)
    frame = choice.to_frame()
    assert frame["rank"].tolist() == list(RANKS)
    assert "left-out error" in choice._repr_html_()


def test_sparse_float32_and_extreme_units_give_the_same_rank(dense, sparse):
    quick = {"ranks": range(3, 8), "n_repeats": 2, "effort": "fast"}
    assert gsnmf.choose_rank(sparse, **quick).rank == 5
    ours, single = (gsnmf.choose_rank(dense.astype(dtype), **quick) for dtype in (np.float64, np.float32))
    assert ours.rank == single.rank == 5
    np.testing.assert_allclose(gsnmf.choose_rank(dense * 2.0**-600, **quick).errors, ours.errors)


def test_choice_is_reproducible_and_leaves_the_matrix_alone(dense):
    before = dense.copy()
    one, two = (gsnmf.choose_rank(dense, [3, 5], n_repeats=2, effort="fast") for _ in range(2))
    assert one == two
    np.testing.assert_array_equal(dense, before)


def test_noise_is_given_the_smallest_rank():
    assert gsnmf.choose_rank(np.random.default_rng(0).random((50, 40)), range(2, 7), n_repeats=3).rank == 2


def test_without_noise_the_rank_is_exact():
    data = planted((60, 50), 3, 2, random_state=1)
    assert gsnmf.choose_rank(data.matrix, range(3, 8), n_repeats=2, effort="fast").rank == 5


@pytest.mark.parametrize("sides", [(6, 0), (0, 6)])
def test_one_index_of_the_other_side_that_averages_noise_is_not_recommended(sides):
    """With much noise, one row beside six columns fits better than the columns alone, and explains nothing."""
    matrix = planted((80, 70), *sides, noise_level=0.3, random_state=0).matrix
    choice = gsnmf.choose_rank(matrix, range(4, 9), n_repeats=3, effort="fast")
    assert choice.rank == 6
    last_gain, later_gain = choice.errors[1] - choice.errors[2], choice.errors[2] - choice.errors[3:].min()
    assert later_gain < last_gain / 5


def test_largest_rank_says_that_more_might_help(dense):
    assert "try larger ranks" in gsnmf.choose_rank(dense, [2, 3], n_repeats=1, effort="fast").reason


@pytest.mark.parametrize(("sides", "seed"), [((2, 1), 700), ((5, 1), 708)])
def test_a_row_that_nested_selections_miss_is_found_around_the_bend(sides, seed):
    matrix = planted((150, 120), *sides, noise_level=0.02, random_state=seed).matrix
    assert gsnmf.choose_rank(matrix, range(1, sum(sides) + 3), n_repeats=2, effort="fast").rank == sum(sides)


@pytest.mark.parametrize("function", [gsnmf.choose_rank, gsnmf.rank_path])
def test_constraints_that_cannot_be_met_are_refused(dense, function):
    holed = np.array(dense)
    holed[:, 4] = 0.0
    arguments = ([3, 4],) if function is gsnmf.choose_rank else (4,)
    with pytest.raises(ValueError, match=r"include_columns must not be zero in the matrix; got \[4\]"):
        function(holed, *arguments, constraints=gsnmf.Constraints(include_columns=[4]))
    with pytest.raises(TypeError, match=r"constraints must be a gsnmf\.Constraints; got \{"):
        function(dense, *arguments, constraints={"include_columns": [1]})


def test_constraints_are_obeyed(dense):
    columns_alone = gsnmf.choose_rank(dense, [2, 4], n_repeats=1, constraints=gsnmf.Constraints(at_most=(50, 0)))
    assert columns_alone.n_columns.tolist() == [2, 4]


def test_progress_is_told(dense):
    told = []
    gsnmf.choose_rank(dense, [2, 3], n_repeats=1, progress=told.append)
    shares = [status.fraction for status in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert {status.message.split(":")[0] for status in told} == {"whole matrix", "entries left out, 1 of 1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": [51, 60]}, r"one in \[1, 50\]"),
        ({"ranks": []}, r"one in \[1, 50\]"),
        ({"ranks": [0, 3]}, "at least 1"),
        ({"n_repeats": 20}, "left_out must be at most 0.05"),
        ({"least_gain": 0.0}, "least_gain"),
        ({"effort": "huge"}, "effort must be"),
        ({"effort": "huge", "n_repeats": 1}, "effort must be"),
        ({"ranks": range(10**12)}, "at least 1; got 0"),
        ({"ranks": range(60, 10**12)}, r"one in \[1, 50\]"),
    ],
)
def test_wrong_arguments(dense, arguments, message):
    with pytest.raises(ValueError, match=message):
        gsnmf.choose_rank(dense, **{"ranks": [2, 3], **arguments})


@pytest.mark.parametrize("ranks", [range(2, 10**12, 24), range(26, 1, -24), (26, 2, 99, 2)])
def test_ranks_that_fit_are_tried_in_increasing_order(dense, ranks):
    choice = gsnmf.choose_rank(dense, ranks, n_repeats=1, effort="fast")
    assert choice.ranks.tolist() == [rank for rank in range(1, 51) if rank in ranks]


def test_wrong_kinds(dense):
    with pytest.raises(TypeError, match="ranks must be integers"):
        gsnmf.choose_rank(dense, 5)
    with pytest.raises(ValueError, match="above zero"):
        gsnmf.choose_rank(np.zeros((5, 5)))
    with pytest.raises(ValueError, match="at least n_repeats=5 entries"):
        gsnmf.choose_rank(np.ones((2, 2)), [1])
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="in memory"):
        gsnmf.choose_rank(da.from_array(dense))


def test_agreement():
    rng = np.random.default_rng(0)
    left, right = rng.random((20, 4)), rng.random((15, 4))
    order = [2, 0, 3, 1]
    assert agreement(left, right, 3 * left[:, order], right[:, order]) == pytest.approx(1)
    assert agreement(left, right, left[:, :2], right[:, :2]) == pytest.approx(0.5)
    assert agreement(left[:, :0], right[:, :0], left[:, :0], right[:, :0]) == 1.0


def test_plot(choice, figures):
    axes = choice.plot()
    assert axes.get_xlabel().startswith("rank")
    assert choice.plot(ax=axes) is axes


def test_estimator():
    matrix = planted((40, 9), 2, 1, noise_level=0.02, random_state=0).matrix
    model = gsnmf.GSNMF(n_components="auto", effort="fast").fit(matrix)
    assert model.n_components_ == model.rank_choice_.rank == 3
    model.set_params(n_components=2).fit(matrix)
    assert not hasattr(model, "rank_choice_")
    alone = gsnmf.GSNMF(n_components="auto", method="spa-columns", effort="fast").fit(matrix)
    assert alone.sample_indices_.size == 0
    for wrong, method in (("many", "auto"), ("auto", "spa-both")):
        with pytest.raises(ValueError, match="n_components"):
            gsnmf.GSNMF(n_components=wrong, method=method).fit(matrix)


def test_topics():
    texts = ["tea and cake", "green tea", "tea with cake", "cars on roads", "cars", "fast cars on roads"] * 3
    model = gsnmf.applications.topics(texts, range(1, 5), min_df=1, effort="fast")
    assert len(model.topics) == model.rank_choice.rank
    with pytest.raises(ValueError, match="'auto'"):
        gsnmf.applications.topics(texts, "many")


@pytest.mark.parametrize("rank", ["auto", "2-3"])
def test_command(rank, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("m.npy", planted((40, 9), 2, 1, noise_level=0.02, random_state=0).matrix)
    assert run(["factorize", "m.npy", "--rank", rank, "--effort", "fast", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["factors"]) == 3
    assert printed["parameters"]["Rank"].startswith("3, chosen from 2 to ")


@pytest.mark.parametrize("rank", ["4-2", "0-3", "0", "some", "1,2,3", "-3"])
def test_command_with_a_wrong_rank(rank, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("m.npy", np.eye(4))
    assert run(["factorize", "m.npy", f"--rank={rank}"]) == 2
    assert "--rank must be" in capsys.readouterr().err
