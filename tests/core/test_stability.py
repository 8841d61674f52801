"""How sure the chosen columns and rows are."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.commands import run
from gsnmf.datasets import planted
from gsnmf.model_selection.stability import CHANGES
from gsnmf.solve import solve


@pytest.fixture(scope="module")
def sure(planted_data, planted_result):
    return gsnmf.stability(planted_result, n_repeats=4)


def test_planted_indices_come_back(sure, planted_result):
    assert (sure.frequencies >= 0.75).all()
    assert sure.overall.mean() > 0.95
    assert not sure.doubtful.any()
    assert (sure.agreements > 0.95).all()
    np.testing.assert_allclose(sure.similarities.mean(axis=1), sure.agreements)
    np.testing.assert_array_equal(sure.columns, planted_result.columns)


def test_it_shows_itself(sure):
    frame = sure.to_frame()
    assert list(frame.columns) == ["kind", "index", *CHANGES, "overall", "mark"]
    assert len(frame) == 5
    assert "0 doubtful" in repr(sure)
    assert "noise added" in sure._repr_html_()


def test_what_noise_chooses_does_not_come_back():
    noise = np.random.default_rng(0).random((50, 50))
    sure = gsnmf.stability(gsnmf.factorize(noise, 5, effort="fast"), n_repeats=2)
    assert sure.overall.mean() < 0.3
    assert sure.doubtful.sum() >= 4


def test_a_factor_comes_back_without_the_column_that_stood_for_it():
    """Columns of one source with much noise: a different one is chosen every time, for nearly the same factor."""
    rng = np.random.default_rng(0)
    sources = np.kron(np.eye(2), np.ones((30, 1)))
    matrix = sources @ np.kron(np.eye(2), np.ones((1, 20))) * rng.uniform(0.3, 1.7, (60, 40))
    sure = gsnmf.stability(gsnmf.factorize(matrix, (2, 0), effort="fast"), n_repeats=4)
    assert sure.overall.mean() < 0.75
    assert (sure.similarity > 0.8).all()


def test_a_parallel_column_stands_in():
    """Of two equal columns either may be chosen, and both are the same answer."""
    matrix = planted((40, 30), 3, 0, noise_level=0.01, random_state=1).matrix
    twice = np.hstack([matrix, matrix])
    sure = gsnmf.stability(gsnmf.factorize(twice, 3, effort="fast"), n_repeats=2)
    assert sure.overall.min() > 0.85


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.asarray])
def test_kinds_and_units(kind):
    matrix = kind(planted((60, 50), 2, 2, density=0.4, sparse=True, random_state=0).matrix.toarray().astype(np.float32))
    before = matrix.copy()
    sure = gsnmf.stability(gsnmf.factorize(matrix, 4, effort="fast"), n_repeats=2)
    assert sure.overall.mean() > 0.8
    assert abs(matrix - before).sum() == 0
    large = matrix * np.float32(2.0**40)
    assert gsnmf.stability(gsnmf.factorize(large, 4, effort="fast"), n_repeats=2) == sure


def test_refits_use_the_method_of_the_result(planted_data):
    for method, rank in (("spa-columns", 4), ("spa-both", (2, 1)), ("gspa", 4)):
        result = gsnmf.factorize(planted_data.matrix, rank, method=method)
        again = gsnmf.stability(result, n_repeats=2)
        assert again.frequencies.shape == (3, result.selection.n_selected)
        assert again == gsnmf.stability(result, n_repeats=2)


def test_progress(planted_data, planted_result):
    told = []
    gsnmf.stability(planted_result, n_repeats=1, progress=told.append)
    assert [status.message.split(":")[0] for status in told] == list(CHANGES)
    assert [status.fraction for status in told] == pytest.approx([1 / 3, 2 / 3, 1])


def test_wrong_arguments(planted_data, planted_result):
    with pytest.raises(ValueError, match="n_repeats"):
        gsnmf.stability(planted_result, n_repeats=0)
    with pytest.raises(TypeError, match="returns; got str"):
        gsnmf.stability("result")
    with pytest.raises(ValueError, match="members=1"):
        gsnmf.stability(gsnmf.factorize(planted_data.matrix, 2, members=2, effort="fast"))


class TestRefitsAnswerWhatWasAsked:
    """Everything that was asked is asked again: the pair, constraints, sums to one, weights, holes."""

    def test_a_pair(self):
        matrix = planted((60, 50), 2, 2, noise_level=0.02, random_state=0).matrix
        sure = gsnmf.stability(gsnmf.factorize(matrix, (4, 0), effort="fast"), n_repeats=3)
        np.testing.assert_array_equal(sure.overall, np.ones(4))

    def test_constraints(self, planted_data):
        included = int(np.setdiff1d(np.arange(50), planted_data.columns)[0])
        wanted = gsnmf.Constraints(include_columns=[included], exclude_rows=range(10))
        result = gsnmf.factorize(planted_data.matrix, 5, constraints=wanted, effort="fast")
        sure = gsnmf.stability(result, n_repeats=2)
        assert sure.overall[result.columns.tolist().index(included)] == 1.0

    @pytest.mark.parametrize("wanted", ["sum_to_one", "sample_weight"])
    def test_sums_to_one_and_weights_of_samples(self, wanted, monkeypatch):
        asked = []

        def recorded(problem, plan):
            asked.append(problem)
            return solve(problem, plan)

        monkeypatch.setattr("gsnmf.model_selection.stability.solve", recorded)
        rng = np.random.default_rng(0)
        mixed = rng.dirichlet(np.full(3, 0.3), 40) @ (rng.random((3, 20)) + 2 * np.eye(3, 20))
        matrix = np.vstack([mixed, mixed[:3] * 0.01])
        weights = np.r_[np.ones(40), np.zeros(3)] if wanted == "sample_weight" else None
        model = gsnmf.GSNMF((0, 3), sum_to_one=wanted == "sum_to_one", effort="fast").fit(matrix, sample_weight=weights)
        sure = gsnmf.stability(model.result_, n_repeats=1)
        assert sure.rows.size == 3
        assert sure.columns.size == 0
        assert sure.frequencies.shape == (3, 3)
        assert len(asked) == 3
        for problem in asked:
            assert problem.rank == (0, 3)
            assert problem.sum_to_one == (wanted == "sum_to_one")
            if weights is not None:
                assert (problem.sample_weight[40:] == 0).all()

    @pytest.mark.parametrize("kind", ["nan", "weights", "unstored"])
    def test_holes_and_weights_of_entries(self, kind):
        data = planted((60, 50), 2, 2, noise_level=0.02, random_state=0)
        hidden = np.random.default_rng(0).random(data.matrix.shape) < 0.3
        options = {
            "nan": {"matrix": np.where(hidden, np.nan, data.matrix), "missing_values": np.nan},
            "weights": {"matrix": np.where(hidden, 9.0, data.matrix), "entry_weights": 1.0 - hidden},
            "unstored": {"matrix": sp.csr_array(np.where(hidden, 0.0, data.matrix)), "missing_values": "unstored"},
        }[kind]
        sure = gsnmf.stability(gsnmf.factorize(rank=4, effort="fast", **options), n_repeats=2)
        assert sure.overall.mean() > 0.8
        assert (sure.agreements > 0.8).all()


def test_report_and_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("m.npy", planted((24, 16), 2, 1, noise_level=0.02, random_state=0).matrix)
    arguments = ["factorize", "m.npy", "--rank", "2-3", "--method", "gspa", "--stability", "--map"]
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert "The error on left-out entries" in printed
    assert "stability" in printed
    saved = json.loads(Path("m-gsnmf/summary.json").read_text(encoding="utf-8"))
    assert all(0.0 <= factor["stability"] <= 1.0 for factor in saved["factors"])
    assert [one["rank"] for one in saved["rank_choice"]] == [2, 3]
    page = Path("m-gsnmf/report.html").read_text(encoding="utf-8")
    for part in ("How many", "left-out entries", "Stability", "More columns, or more rows", "Agreement of all factors"):
        assert part in page
    assert run(["factorize", "m.npy", "--rank", "2", "--stability", "--members", "2"]) == 2


def test_topics_show_it(tmp_path):
    texts = ["tea and cake", "green tea", "tea with cake", "cars on roads", "cars", "fast cars on roads"] * 2
    model = gsnmf.applications.topics(texts, 2, min_df=1, method="gspa", stability=True)
    assert model.stability.overall.shape == model.stability.similarity.shape == (2,)
    gsnmf.report(model, tmp_path / "page.html")
    assert "stability <b>" in (tmp_path / "page.html").read_text(encoding="utf-8")
