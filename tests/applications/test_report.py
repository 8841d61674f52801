"""What the report says is what was found, and whatever a name contains is text."""

import base64
import io
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.datasets import LabelledMatrix, planted
from gsnmf.diagnostics import NO_COMPARISON, Explanation, compare
from gsnmf.reports.charts import histogram, rank_chart
from gsnmf.reports.findings import gather, summary
from gsnmf.reports.page import render_report, write_report
from gsnmf.reports.pictures import MAX_SIDE, grey_picture, ink_picture
from gsnmf.support.formatting import counted, grouped, listed, percent, shown
from pages import HOSTILE, Structure


@pytest.fixture(scope="module")
def result():
    return gsnmf.factorize(sp.csr_array(planted((30, 24), 3, 2, random_state=0).matrix + 0.02), 5, method="gspa")


@pytest.fixture(scope="module")
def hostile(result):
    names = tuple(HOSTILE[i % len(HOSTILE)] for i in range(30))
    return LabelledMatrix(result.matrix, names, names[:24], source=HOSTILE[0])


@pytest.fixture(scope="module")
def findings(result):
    return gather(result, parameters={"Rank": "5"})


def test_findings_are_those_of_the_result(result, findings):
    assert findings.quality == result.quality
    found = compare(result)
    chosen = f"{counted(result.columns.size, 'column')} and {counted(result.rows.size, 'row')} explain"
    part = percent(result.quality / found.svd_quality)
    assert findings.sentence == f"{chosen} {part} of what any 5 factors can explain of 30 rows × 24 columns"
    assert percent(result.quality) in findings.lead
    unbounded = gather(result, comparison=NO_COMPARISON)
    assert unbounded.sentence == f"{chosen} {percent(result.quality)} of 30 rows × 24 columns"
    assert unbounded.lead == ""
    assert [f.index for f in findings.factors] == [*result.columns, *result.rows]
    assert [bar.quality for bar in findings.bars] == [result.quality, found.svd_quality]
    with_nmf = compare(result, nmf=True)
    assert [bar.quality for bar in gather(result, comparison=with_nmf).bars] == [
        result.quality,
        with_nmf.nmf_quality,
        found.svd_quality,
    ]
    assert [step.rank for step in findings.steps] == [1, 2, 3, 4, 5]
    assert findings.steps[-1].quality == pytest.approx(result.quality)
    for table, axis in zip(findings.tables, ("rows", "columns"), strict=True):
        errors = Explanation(result).residuals(axis)
        assert [row.error for row in table.worst] == [errors.relative_errors[row.index] for row in table.worst]
        assert [row.error_share for row in table.worst] == sorted(errors.error_shares, reverse=True)
    assert all(certificate.good for certificate in findings.certificates)


def test_what_is_not_explained_is_said():
    matrix = np.zeros((6, 5))
    matrix[:3, :2] = 1.0
    matrix[3:, 2:] = 0.01 * np.eye(3)
    findings = gather(gsnmf.factorize(matrix, (1, 0), method="spa-both"))
    assert [table.n_unexplained for table in findings.tables] == [3, 3]
    page = render_report(findings)
    assert page.count("<small>not explained</small>") == 6
    assert "<strong>3 of 6</strong> rows are not explained" in page


def test_the_choice_of_the_rank_and_other_divisions_are_tables():
    matrix = planted((30, 24), 2, 1, noise_level=0.05, random_state=0).matrix
    choice = gsnmf.choose_rank(matrix, range(2, 5), effort="fast", random_state=0)
    result = gsnmf.factorize(matrix, (2, 1), method="spa-both")
    sides = gsnmf.split_profile(result, width=1)
    findings = gather(result, rank_choice=choice, sides=sides)
    assert [one["rank"] for one in summary(findings)["rank_choice"] if one["chosen"]] == [choice.rank]
    page = render_report(findings)
    assert Structure(page).open == []
    tried = page.split('id="rank-choice"')[1].split("</section>")[0]
    for rank, quality, error in zip(choice.ranks, choice.qualities, choice.errors, strict=True):
        cells = f'<td class="number">{rank}</td><td class="number">{percent(quality)}</td>'
        assert f'{cells}<td class="number">{percent(error)}</td>' in tried
    assert tried.count("<td>yes</td>") == 1
    shown_sides = page.split('id="sides"')[1].split("</section>")[0]
    assert re.findall("<b>(.*?)</b>", shown_sides) == [percent(sides.qualities[1, 1])]
    assert shown_sides.count("color-mix") == sides.qualities.size


def test_long_names_are_cut_in_tables(result):
    names = tuple(f"{i} " + "word " * 40 for i in range(30))
    page = render_report(gather(result, LabelledMatrix(result.matrix, names, names[:24])))
    table = page.split('id="chosen-table"')[1].split("</table>")[0]
    assert all(len(cell) <= 160 for cell in re.findall(r"<bdi[^>]*>([^<]*)</bdi>", table))
    cells = re.findall(r"<td>(.*?)</td>", table, flags=re.DOTALL)
    assert all(len(re.sub(r"<[^>]*>", "", cell)) < 220 for cell in cells)


def test_page_is_well_formed_and_alone(findings):
    page = render_report(findings)
    structure = Structure(page)
    assert structure.open == []
    assert len(structure.ids) == len(set(structure.ids))
    for tag, attributes in structure.seen:
        for name in ("src", "href"):
            address = attributes.get(name)
            assert address is None or address.startswith(("data:", "#")), (tag, address)
            if address and address.startswith("#"):
                assert address[1:] in structure.ids
        assert not any(name.startswith("on") for name in attributes)
    assert "default-src 'none'" in page
    assert "http://" not in page
    assert "https://" not in page


def test_every_picture_is_described(findings):
    for tag, attributes in Structure(render_report(findings)).seen:
        assert tag != "img" or "alt" in attributes


def test_hostile_names_are_text(result, hostile):
    page = render_report(
        gather(
            result,
            hostile,
            title=HOSTILE[1],
            about=HOSTILE[0],
            warnings=HOSTILE[:3],
            parameters={HOSTILE[0]: HOSTILE[1]},
        )
    )
    structure = Structure(page)
    assert structure.open == []
    assert sum(tag == "script" for tag, _ in structure.seen) == 1
    assert not any("onerror" in attributes or "onmouseover" in attributes for _, attributes in structure.seen)
    assert "&lt;script&gt;" in page
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", page)
    assert "x" * 200 not in page
    page.encode()


def test_summary_is_json(result, hostile):
    again = json.loads(json.dumps(summary(gather(result, hostile))))
    assert again["quality"] == result.quality
    assert again["factors"][0]["index"] == result.columns[0]


def test_written_whole(findings, tmp_path):
    write_report(findings, tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == render_report(findings)


def test_what_was_not_computed_is_said(result):
    page = render_report(gather(result, comparison=compare(result, nmf=True, max_operations=1.0)))
    assert page.count('<dd class="missing">not computed: too much work at this size') == 2
    left_out = render_report(gather(result, comparison=NO_COMPARISON))
    assert left_out.count("not computed: no comparison was asked for") == 2
    assert "NMF" not in left_out.split("<main")[1].split("<footer")[0]
    assert "No bound computed" in page
    assert "bound (SVD)" not in page


@pytest.mark.parametrize("matrix", [np.zeros((3, 4)), np.ones((1, 1)), np.eye(4), np.ones((2, 50))])
def test_degenerate_matrices(matrix):
    page = render_report(gather(gsnmf.factorize(matrix, 1)))
    assert Structure(page).open == []
    assert "nan" not in re.sub(r"data:image[^\"]*", "", page).lower()


def test_nothing_left_to_explain():
    titles = [c.title for c in gather(gsnmf.factorize(np.outer([1, 2, 3], [1, 2]), 2)).certificates]
    assert "Nothing left to explain" in titles


def test_large_tables_are_cut():
    matrix = np.random.default_rng(0).random((4, 900))
    findings = gather(gsnmf.factorize(matrix, 2, method="spa-rows"))
    assert (len(findings.tables[1].worst), findings.tables[1].total) == (500, 900)
    assert "The 500 with the largest part of the error, of 900" in render_report(findings)


def test_data_of_another_shape(result):
    with pytest.raises(ValueError, match=r"shape of the matrix of the result, \(30, 24\); got \(24, 30\)"):
        gather(result, LabelledMatrix(result.matrix.T))


class TestImages:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("pixels", ["rows", "columns"])
    def test_images_either_way_round(self, pixels, order):
        rng = np.random.default_rng(0)
        images = rng.random((9, 4, 3))
        flat = np.array([image.ravel(order=order) for image in images])
        result = gsnmf.factorize(flat.T if pixels == "rows" else flat, (2, 2), method="spa-both")
        data = LabelledMatrix(
            result.matrix, row_kind="a", column_kind="b", image_shape=(4, 3), pixels=pixels, image_order=order
        )
        found = gather(result, data).images
        chosen = result.columns if pixels == "rows" else result.rows
        assert [picture for _, picture in found.chosen] == [grey_picture(images[i]) for i in chosen]
        of_pixels = result.rows if pixels == "rows" else result.columns
        expected = [np.unravel_index(p, (4, 3), order=order) for p in of_pixels]
        assert [(y, x) for x, y, _ in found.pixels] == expected
        assert found.mean == grey_picture(images.mean(axis=0))
        errors = [pair.error for pair in found.pairs]
        assert errors == sorted(errors)

    def test_page_with_images(self):
        images = np.random.default_rng(0).random((9, 12))
        result = gsnmf.factorize(images, 3, method="spa-rows")
        page = render_report(gather(result, LabelledMatrix(result.matrix).with_image_shape((4, 3))))
        assert Structure(page).open == []
        assert "3 chosen images" in page


class TestPictures:
    def decode(self, uri):
        pillow = pytest.importorskip("PIL.Image")
        with pillow.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/png;base64,")))) as image:
            return np.asarray(image)

    def test_grey(self):
        values = np.array([[0.0, 1.0, 2.0], [4.0, 3.0, 8.0]])
        np.testing.assert_array_equal(self.decode(grey_picture(values, 4.0)), [[0, 64, 128], [255, 191, 255]])
        np.testing.assert_array_equal(self.decode(grey_picture(np.zeros((2, 2)))), np.zeros((2, 2)))

    def test_ink(self):
        pixels = self.decode(ink_picture(np.array([[0.0, 1.0]]), (1, 2, 3)))
        np.testing.assert_array_equal(pixels, [[[1, 2, 3, 0], [1, 2, 3, 255]]])

    @pytest.mark.parametrize("shape", [(1000, 300), (1, 1001), (401, 401)])
    def test_large_pictures_are_reduced(self, shape):
        pixels = self.decode(grey_picture(np.ones(shape)))
        assert max(pixels.shape) <= MAX_SIDE
        assert pixels.min() == 255


class TestWords:
    def test_percent(self):
        for share, expected in ((0.5, "50.0 %"), (0.9996, "99.96 %"), (float("inf"), "∞"), (-0.25, "-25.0 %")):
            assert percent(share).replace("\u00a0", " ") == expected

    def test_counts_and_lists(self):
        assert counted(1, "word") == "1 word"
        assert counted(0, "word") == "0 words"
        assert grouped(1234567) == "1\u2009234\u2009567"
        assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")

    def test_shown(self):
        assert shown("ä <b> \u05d0") == "ä <b> \u05d0"
        assert shown("\ud800\x07") == "\ufffd\ufffd"
        assert len(shown("y" * 999)) == 160


class TestCharts:
    def test_points_lie_between_the_axes(self):
        chart = rank_chart([("ours", "ours", np.array([0.0, 0.3, 0.5])), ("bound", "svd", np.array([0.0, 0.4, 0.5]))])
        for line in chart.lines:
            x, y = np.array([point.split(",") for point in line.points.split()], dtype=float).T
            assert np.all(np.diff(x) > 0)
            assert np.all(np.diff(y) < 0)
            assert chart.frame.left <= x.min() <= x.max() <= chart.frame.right
            assert y.max() == chart.frame.bottom
        assert abs(chart.lines[0].label_y - chart.lines[1].label_y) >= 17
        assert [label for _, label in chart.x_ticks] == ["0", "1", "2"]

    @pytest.mark.parametrize(("rank", "last"), [(10, "10"), (16, "16"), (49, "40"), (100, "100"), (1000, "1000")])
    def test_ticks_are_round(self, rank, last):
        labels = [label for _, label in rank_chart([("", "ours", np.linspace(0, 1, rank + 1))]).x_ticks]
        assert labels[-1] == last
        assert 5 <= len(labels) <= 12

    def test_histogram_counts_all(self):
        errors = np.array([0.0, 0.1, 0.1, 0.9, np.inf])
        bars = histogram(errors).bars
        assert sum(int(label.split()[0]) for *_, label in bars) == 4
        assert histogram(np.zeros(3)).largest == 3
