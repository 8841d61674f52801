"""Mixtures of a few members each, wherever a result is shown, saved, explained or applied."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf import GSNMF, Constraints, plotting
from gsnmf.applications import topics
from gsnmf.applications.topic_modelling.document_report import gather_documents, render_documents
from gsnmf.commands import run
from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import NO_COMPARISON, Explanation
from gsnmf.records import Mixtures
from gsnmf.reports.findings import gather, summary
from gsnmf.reports.page import render_report

WORDS = tuple(f"word{j}" for j in range(16))
TEXTS = [
    *["tea cake sugar cup"] * 3, *["cake sugar oven", "tea cup spoon", "oven cake flour"] * 3,
    *["engine wheel road", "road wheel car", "car engine fuel", "fuel road car wheel"] * 3,
    *["violin piano song", "song drum piano", "drum violin song piano"] * 3,
]  # fmt: skip


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(3)
    return rng.random((24, 16)) * (rng.random((24, 16)) < 0.6) + 0.01


@pytest.fixture(scope="module")
def result(matrix):
    return gsnmf.factorize(matrix, (2, 2), members=3, effort="fast")


@pytest.fixture(scope="module")
def findings(result, matrix):
    return gather(result, LabelledMatrix(matrix, column_names=WORDS, column_kind="word", row_kind="document"))


@pytest.fixture(scope="module", params=["refit", "model"])
def estimator(request, matrix):
    return GSNMF((2, 2), members=3, effort="fast", coefficients=request.param).fit(matrix)


@pytest.fixture(scope="module")
def model():
    return topics(TEXTS, 3, members=3, min_df=1, effort="fast")


def test_members_of_a_result(result):
    for k, (members, shares) in enumerate(result.members):
        mixture = result.column_mixture[:, [k]] if k < 2 else result.row_mixture[[k - 2]].T
        np.testing.assert_array_equal(np.sort(members), mixture.tocoo().row)
        assert np.all(np.diff(shares) <= 0)
        assert shares.sum() == pytest.approx(1.0)


class TestAlternatives:
    @pytest.mark.parametrize("quick", [False, True])
    def test_errors_are_reached(self, result, matrix, quick):
        """Every error is that of a mixture with the substitute, and not below the best for these members."""
        table = result.alternatives(2, quick=quick)
        assert table.to_frame().columns.tolist()[:4] == ["factor", "axis", "chosen", "substitute"]
        assert len(table) == 2 * 4
        taken = {axis: set() for axis in ("columns", "rows")}
        for k, (members, _) in enumerate(result.members):
            taken["columns" if k < 2 else "rows"] |= set(members.tolist())
        for factor, axis, chosen, substitute, error, lost in table.rows:
            assert axis == ("columns" if factor < 2 else "rows")
            assert chosen in result.members[factor][0]
            assert substitute not in taken[axis]
            assert lost == pytest.approx(100 * (error - result.relative_error))
            assert result.relative_error - 1e-6 < error < 1

    def test_quick_is_close_and_never_better(self, result):
        slow = {row[:4]: row[4] for row in result.alternatives(8).rows}
        quick = [row for row in result.alternatives(2, quick=True).rows if row[:4] in slow]
        assert quick
        for row in quick:
            assert slow[row[:4]] - 1e-6 <= row[4] <= slow[row[:4]] + 0.02

    def test_exchange_of_a_single_one_is_fitted_weights(self, matrix):
        single = gsnmf.factorize(matrix, (2, 2), effort="fast")
        for _, axis, chosen, substitute, error, _ in single.alternatives(2, quick=True).rows:
            columns, rows = single.columns.tolist(), single.rows.tolist()
            side = columns if axis == "columns" else rows
            side[side.index(chosen)] = substitute
            exact = gsnmf.fit_weights(matrix, columns, rows).relative_error
            assert exact - 1e-6 <= error <= exact + 0.02

    def test_constraints_are_obeyed(self, matrix):
        wish = Constraints(include_columns=[4], exclude_columns=[0, 1, 2], exclude_rows=[5])
        obedient = gsnmf.factorize(matrix, (2, 1), members=3, effort="fast", constraints=wish)
        for quick in (False, True):
            rows = obedient.alternatives(9, quick=quick).rows
            assert not {row[3] for row in rows if row[1] == "columns"} & {0, 1, 2, 4}
            assert not {row[3] for row in rows if row[1] == "rows"} & {5}
            assert 4 not in {row[2] for row in rows if row[1] == "columns" and len(obedient.members[row[0]][0]) == 1}

    def test_after_loading(self, result, matrix, tmp_path):
        gsnmf.save(result, tmp_path / "mixed.npz")
        assert gsnmf.load(tmp_path / "mixed.npz", matrix).alternatives(1) == result.alternatives(1)

    def test_wrong_count(self, result):
        with pytest.raises(ValueError, match="count must be an integer of at least 1"):
            result.alternatives(0)


def test_constraints_hold_for_members(matrix):
    wish = Constraints(include_columns=[4], include_rows=[7], exclude_columns=[0, 1, 2, 3], exclude_rows=range(6))
    found = gsnmf.factorize(matrix, 5, members=4, effort="fast", constraints=wish)
    columns = [members for members, _ in found.members[: found.columns.size]]
    rows = [members for members, _ in found.members[found.columns.size :]]
    assert not {0, 1, 2, 3} & {int(j) for members in columns for j in members}
    assert not set(range(6)) & {int(i) for members in rows for i in members}
    assert [4] in [members.tolist() for members in columns]
    assert [7] in [members.tolist() for members in rows]


class TestExplanation:
    def test_factors_and_residuals(self, result, matrix):
        explanation = Explanation(result)
        np.testing.assert_allclose(explanation.W @ explanation.H, result.reconstruct())
        errors = np.linalg.norm(matrix - result.reconstruct(), axis=1) / np.linalg.norm(matrix, axis=1)
        np.testing.assert_allclose(explanation.residuals("rows").relative_errors, errors, atol=1e-6)

    def test_rank_path_is_that_of_the_mixtures(self, result, matrix):
        explanation = Explanation(result)
        path, order = explanation.rank_path(), explanation.factor_order
        assert sorted(order) == [0, 1, 2, 3]
        assert path.errors[0] == 1
        assert path.errors[-1] == result.relative_error
        assert np.all(np.diff(path.errors) < 0)
        vector = result.W[:, order[0]] if order[0] < 2 else result.H[order[0]]
        along = vector @ matrix if order[0] < 2 else matrix @ vector
        exact = 1 - (along @ along) / (vector @ vector) / np.sum(matrix**2)
        assert path.errors[1] ** 2 == pytest.approx(exact, rel=1e-6)


class TestReport:
    def test_names_shares_and_alternatives(self, findings, result):
        factor = findings.factors[0]
        members, shares = result.members[0]
        assert factor.name == " + ".join(WORDS[j] for j in members)
        assert [member.share for member in factor.members] == pytest.approx(shares.tolist())
        assert len(factor.alternatives) == 2
        assert "2 mixtures of up to 3 words" in findings.sentence
        assert {step.name for step in findings.steps} == {factor.name for factor in findings.factors}

    def test_page_and_summary(self, findings):
        page = render_report(findings)
        assert f"<bdi>{findings.factors[0].name}</bdi>" in page
        assert page.count("Next best: <bdi>") == 4
        assert "No other member helps" in page
        short = json.loads(json.dumps(summary(findings)))
        assert short["factors"][0]["members"][0]["name"] in WORDS
        assert set(short["factors"][0]["alternatives"][0]) == {"name", "chosen", "points_lost"}

    def test_certificate_says_when_another_member_would_help(self, result):
        early = replace(result, mixtures=replace(result.mixtures, gain=0.01))
        bad = [c for c in gather(early, comparison=NO_COMPARISON).certificates if not c.good]
        assert [c.title for c in bad] == ["Another member would help"]
        assert "by 1.0" in bad[0].text

    def test_images_are_mixtures(self, result, matrix):
        data = LabelledMatrix(matrix).with_image_shape((4, 4))
        images = gather(result, data).images
        assert len(images.chosen) == 2
        assert " + " in images.chosen[0][0]
        pixels = {int(p) for members, _ in result.members[:2] for p in members}
        assert len(images.pixels) == len(pixels)


@pytest.mark.usefixtures("figures")
class TestPlots:
    def test_name_of_a_factor(self, result):
        title = plotting.plot_factor(result, 0, names=WORDS).get_title()
        assert title.startswith(" + ".join(WORDS[j] for j in result.members[0][0]) + ":")

    def test_pixels_and_images(self, result):
        marks = plotting.plot_pixels(result, (4, 4)).collections[0]
        shares = np.concatenate([shares for _, shares in result.members[:2]])
        np.testing.assert_allclose(marks.get_sizes() / marks.get_sizes().sum(), shares / shares.sum())
        picture = plotting.plot_images(result, (4, 4)).get_images()[0].get_array()
        expected = result.H[2].reshape(4, 4) / result.H[2].max()
        np.testing.assert_allclose(picture[1:5, 1:5], expected)

    def test_rank_path(self, result):
        line = plotting.plot_rank_path(result).get_lines()[0]
        np.testing.assert_allclose(line.get_ydata()[-1], result.quality)


class TestEstimator:
    def test_names_and_topics(self, estimator):
        names = estimator.get_feature_names_out()
        assert all(" + " in name for name in names)
        for (_, name, features, _), (members, _) in zip(estimator.topics().rows, estimator._members, strict=True):
            assert name.count(" + ") == len(members) - 1
            assert not {f"x{j}" for j in members} & set(features) or name[0] != "x"

    def test_coefficients_of_the_model_are_means_of_the_members(self, estimator, matrix):
        W = estimator.transform(matrix)
        if estimator.coefficients == "model":
            np.testing.assert_allclose(W[:, :2], matrix @ estimator.result_.column_mixture.toarray())
            error = np.linalg.norm(matrix - W @ estimator.components_) / np.linalg.norm(matrix)
            assert error == pytest.approx(estimator.result_.relative_error, rel=1e-4)
        else:
            assert estimator.score(matrix) >= estimator.quality_ - 1e-9
        sparse = estimator.transform(sp.csr_array(matrix.astype(np.float32)))
        assert sparse.dtype == np.float32
        np.testing.assert_allclose(sparse, W, rtol=1e-3, atol=1e-4)

    def test_saving(self, estimator, matrix, tmp_path):
        estimator.save(tmp_path / "model.npz")
        again = GSNMF.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.transform(matrix), estimator.transform(matrix))
        assert again.topics() == estimator.topics()


class TestSaving:
    def test_shared_leading_members(self, matrix, tmp_path):
        """Two mixtures may have the same leading member."""
        given = gsnmf.factorize(matrix, (2, 1), effort="fast")
        pairs = [([0, 1], [0.7, 0.3]), ([0, 2], [0.6, 0.4])], [([3], [1.0])]
        mixtures = Mixtures.of(*pairs, matrix.shape, 2)
        selection = replace(given.selection, columns=mixtures.leading_columns, rows=mixtures.leading_rows)
        shared = replace(given, selection=selection, mixtures=mixtures)
        gsnmf.save(shared, tmp_path / "shared.npz")
        loaded = gsnmf.load(tmp_path / "shared.npz", matrix)
        assert loaded.mixtures == mixtures
        assert loaded.columns.tolist() == [0, 0]

    @pytest.mark.parametrize("damage", ["share", "index", "leading"])
    def test_damaged_mixtures(self, result, matrix, tmp_path, damage):
        file = tmp_path / "mixed.npz"
        gsnmf.save(result, file)
        arrays = dict(np.load(file))
        if damage == "share":
            arrays["mixtures.column_mixture.data"] *= 2
        elif damage == "index":
            arrays["mixtures.column_mixture.indices"][0] = 99
        else:
            arrays["columns"] = arrays["columns"][::-1].copy()
        np.savez(file, **arrays)
        with pytest.raises(ValueError, match="is not a result"):
            gsnmf.load(file, matrix)


class TestTopics:
    def test_topics_have_several_words_or_documents(self, model):
        assert max(len(topic.leading) for topic in model.topics) > 1
        for topic in model.topics:
            assert sum(topic.leading_shares) == pytest.approx(1.0)
            if topic.kind == "word":
                assert topic.words[: len(topic.leading)] == topic.leading

    def test_alternatives(self, model):
        table = model.alternatives(2)
        assert table.header == ("topic", "kind", "chosen", "substitute", "points lost")
        for topic, kind, chosen, substitute, lost in table.rows:
            assert kind == model.topics[topic].kind
            assert chosen in model.topics[topic].leading
            assert substitute not in model.topics[topic].leading
            assert lost >= 0
        assert [row[0] for row in table.rows] == sorted(row[0] for row in table.rows)

    def test_page(self, model):
        page = render_documents(gather_documents(model))
        assert "of up to 3" in page
        assert "Next best: <bdi>" in page
        assert 'class="kind">' in page


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        (0, ValueError, "members must be an integer of at least 1; got 0"),
        (17, ValueError, r"members must be in \[1, 16\] for a matrix of shape \(24, 16\); got 17"),
        (2.0, TypeError, "members must be an integer; got 2.0"),
        (True, TypeError, "members must be an integer; got True"),
        ("3", TypeError, "members must be an integer; got '3'"),
    ],
)
def test_wrong_members_are_told_everywhere(matrix, members, error, message):
    with pytest.raises(error, match=message):
        gsnmf.factorize(matrix, 3, members=members)
    with pytest.raises(error, match=message):
        GSNMF(3, members=members).fit(matrix)


def test_a_dask_array_needs_single_members(matrix):
    dask = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="members must be 1 for a Dask array; got 2"):
        gsnmf.factorize(dask.from_array(matrix, chunks=(12, 16)), 2, method="gspa", members=2)


class TestCommands:
    def test_factorize(self, matrix, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        np.save("matrix.npy", matrix)
        command = ["factorize", "matrix.npy", "--rank", "4", "--members", "3", "--no-compare"]
        assert run([*command, "--method", "gspa", "--effort", "fast"]) == 0
        assert " + " in capsys.readouterr().out
        short = json.loads((tmp_path / "matrix-gsnmf" / "summary.json").read_text(encoding="utf-8"))
        assert max(len(factor["members"]) for factor in short["factors"]) > 1
        assert short["parameters"]["Members of a factor"] == "3"
        assert gsnmf.load("matrix-gsnmf/result.npz", matrix).mixtures.most == 3
        assert run([*command, "--method", "smooth-spa-rows", "--quiet"]) == 0

    @pytest.mark.parametrize(
        ("members", "code", "message"),
        [("0", 2, "--members"), ("2.5", 2, "--members"), ("17", 1, "members must be in [1, 16]")],
    )
    def test_wrong_members(self, matrix, tmp_path, monkeypatch, capsys, members, code, message):
        monkeypatch.chdir(tmp_path)
        np.save("matrix.npy", matrix)
        assert run(["factorize", "matrix.npy", "--rank", "2", "--members", members]) == code
        assert message in capsys.readouterr().err

    def test_topics(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
        command = ["topics", "texts.txt", "--rank", "3", "--members", "2", "--min-df", "1", "--effort", "fast"]
        assert run(command) == 0
        assert "next best" in capsys.readouterr().out
        short = json.loads((tmp_path / "texts-topics" / "topics.json").read_text(encoding="utf-8"))
        assert max(len(topic["chosen"]) for topic in short["topics"]) == 2
        assert all(sum(topic["chosen_shares"]) == pytest.approx(1.0) for topic in short["topics"])
        assert short["topics"][0]["alternatives"]


def test_progress_tells_every_number_of_members(matrix):
    told = []
    gsnmf.factorize(matrix, 3, members=3, effort="fast", progress=told.append)
    two, three = (status for status in told if "members" in status.message)
    assert (two.message.split(":")[0], two.fraction) == ("2 members", 0.5)
    assert (three.message.split(":")[0], three.fraction) == ("3 members", 1.0)
    assert two.quality <= three.quality


def test_an_interrupt_leaves_the_single_members(matrix):
    def interrupt(status):
        if "members" in status.message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gsnmf.factorize(matrix, 3, members=3, effort="fast", progress=interrupt)
    assert caught.value.best_so_far == gsnmf.factorize(matrix, 3, effort="fast")
