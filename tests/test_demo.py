"""The demo: sensible numbers on its own data, and a report that is safe to open."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from gsnmf import demo
from gsnmf.report.demo import render_demo, write_demo
from gsnmf.report.html import picture, table


@pytest.fixture(scope="module")
def result():
    return demo.run()


@pytest.fixture(params=["documents", "digits"])
def example(request, result):
    return getattr(result, request.param)


def test_quality_is_positive_and_below_svd(example):
    for trial in example.trials:
        assert 0 < trial.quality < example.svd_quality < 1
    assert example.trials[0].quality == example.result.quality


def test_weights_are_certified(example):
    assert example.result.converged
    assert example.result.stop_reason == "rank reached"


def test_every_factor_is_described(example):
    chosen = example.result
    assert len(example.factors) == chosen.columns.size + chosen.rows.size
    for factor in example.factors:
        assert factor.name not in factor.columns + factor.rows
        assert factor.columns
        assert factor.rows


def test_names_are_those_of_the_chosen_indices(result):
    from pydoc_data.topics import topics

    documents = [f.name for f in result.documents.factors if f.kind == "document"]
    assert documents == [list(topics)[i] for i in result.documents.result.rows]
    words = [f.name for f in result.documents.factors if f.kind == "word"]
    assert all(any(word in text.lower() for text in topics.values()) for word in words)


def test_matrices(result):
    assert result.documents.result.matrix.shape[0] > 70
    assert result.digits.result.matrix.shape == (1797, 64)
    assert result.digit_labels.shape == (1797,)


def test_svd_quality_is_the_best_of_its_rank():
    matrix = np.random.default_rng(0).random((12, 9))
    singular_values = np.linalg.svd(matrix, compute_uv=False)
    best = 1 - np.linalg.norm(singular_values[3:]) / np.linalg.norm(singular_values)
    assert demo.svd_quality(matrix, 3) == pytest.approx(best)


def test_pixel_map():
    lines = demo.pixel_map(np.array([0, 63])).splitlines()
    assert [line.count("#") for line in lines] == [1, 0, 0, 0, 0, 0, 0, 1]
    assert {len(line.split()) for line in lines} == {8}


def test_report_is_written_and_whole(result, tmp_path):
    path = write_demo(result, tmp_path / "deep" / "report")
    assert path == tmp_path / "deep" / "report" / "demo.html"
    page = path.read_text(encoding="utf-8")
    for factor in result.documents.factors:
        assert factor.name in page
    assert page.count("<svg") == 1 + result.digits.result.rows.size + 20
    assert "<script" not in page
    assert not re.search(r'(src|href)="', page), "the page must need nothing but itself"
    for drawing in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        ElementTree.fromstring(drawing)


def test_report_can_be_written_twice(result, tmp_path):
    first = write_demo(result, tmp_path).read_bytes()
    assert write_demo(result, tmp_path).read_bytes() == first


def test_names_are_escaped(result):
    nasty = "<script>alert('&')</script>"
    factor = demo.Factor(kind=nasty, name=nasty, columns=(nasty,), rows=(nasty,))
    trial = demo.Trial(nasty, 1, 1, 0.5, nasty)
    changes = {"title": nasty, "about": nasty, "factors": (factor,), "trials": (trial,)}
    page = render_demo(
        demo.Demo(
            documents=dataclasses.replace(result.documents, **changes),
            digits=dataclasses.replace(result.digits, **changes),
            digit_labels=result.digit_labels,
        )
    )
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in page


def test_captions_and_cells_are_escaped():
    assert "<b>" not in picture(np.ones((2, 2)), "<b>")
    assert "<i>" not in table(("<i>",), [("<i>",)])


def test_picture_of_nothing():
    assert picture(np.zeros((2, 2)), "empty").count("rgb(255,255,255)") == 4
