"""The demo: sensible numbers on its own data, and what its reports say of them."""

import numpy as np
import pytest
from typer.testing import CliRunner

from gsnmf.commands import app, demo
from gsnmf.reports.page import render_report

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def examples():
    told = []
    found = demo.run_examples(told.append)
    assert len(told) == 2
    return found


@pytest.fixture(params=["documentation", "digits"])
def example(request, examples):
    return next(example for example in examples if example.name == request.param)


def test_quality_is_positive_and_below_svd(example):
    ours, *others, nmf, svd = example.findings.bars
    assert ours.quality == example.result.quality
    assert len(others) == 4
    for bar in (ours, *others, nmf):
        assert 0 < bar.quality < svd.quality < 1
    assert all(bar.quality < nmf.quality for bar in (ours, *others))


def test_weights_are_certified(example):
    assert example.result.converged
    assert all(certificate.good for certificate in example.findings.certificates)


def test_every_factor_is_described(example):
    chosen = example.result
    assert len(example.findings.factors) == chosen.columns.size + chosen.rows.size
    for factor in example.findings.factors:
        assert factor.name not in {member.name for member in factor.columns + factor.rows} or factor.kind == "word"
        assert factor.columns
        assert factor.rows


def test_names_are_those_of_the_chosen_indices(examples):
    from pydoc_data.topics import topics

    documentation = examples[0]
    factors = documentation.findings.factors
    documents = [factor.name for factor in factors if factor.kind == "document"]
    assert documents == [list(topics)[i] for i in documentation.result.rows]
    words = [factor.name for factor in factors if factor.kind == "word"]
    assert all(any(word in text.lower() for text in topics.values()) for word in words)


def test_matrices(examples):
    documentation, digits = examples
    assert documentation.result.matrix.shape[0] > 70
    assert digits.result.matrix.shape == (1797, 64)
    assert digits.findings.images.height == digits.findings.images.width == 8


def test_pixel_map():
    lines = demo.pixel_map(np.array([0, 63])).splitlines()
    assert [line.count("#") for line in lines] == [1, 0, 0, 0, 0, 0, 0, 1]
    assert {len(line.split()) for line in lines} == {8}


def test_reports_are_whole_and_repeatable(example):
    page = render_report(example.findings)
    assert page == render_report(example.findings)
    assert example.findings.sentence in page
    for factor in example.findings.factors:
        assert f"<bdi>{factor.name}</bdi>" in page


def test_demo_prints_what_it_found_and_where_the_report_is(tmp_path, examples, monkeypatch):
    monkeypatch.setattr("gsnmf.commands.demo.run_examples", lambda stage: examples)
    outcome = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new" / "directory")])
    assert outcome.exit_code == 0, outcome.output
    for expected in ("documentation", "digits", "Truncated SVD", "auto", "Chosen pixels", "%"):
        assert expected in outcome.output
    folder = tmp_path / "new" / "directory"
    paths = [folder / "documentation.html", folder / "digits.html"]
    assert outcome.output.splitlines()[-2:] == [f"Report: {path}" for path in paths]
    assert sorted(folder.iterdir()) == sorted(paths)
