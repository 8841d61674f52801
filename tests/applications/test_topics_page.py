"""The page about documents and the command that writes it."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import gsnmf
from gsnmf.applications import topics
from gsnmf.applications.topic_modelling import document_report
from gsnmf.applications.topic_modelling.document_report import gather_documents, render_documents
from gsnmf.commands import run
from gsnmf.diagnostics import compare
from gsnmf.reports.findings import Substitute
from gsnmf.support.formatting import percent
from pages import HOSTILE, Structure
from planted_texts import make_texts


@pytest.fixture(scope="module")
def model():
    texts, labels = make_texts(45)
    dates = [f"2024-0{1 + i % 5}-01" for i in range(45)]
    return topics([*texts, "unheard"], 3, labels=[*labels, "none"], dates=[*dates, None])


@pytest.fixture(scope="module")
def findings(model):
    return gather_documents(model, title="Things", parameters={"Rank": "3"})


def test_headline_tells_what_was_found(model, findings):
    part = percent(model.result.quality / compare(model.result).svd_quality)
    assert findings.sentence == f"3 topics in 46 documents, with {part} of what any 3 factors can explain"
    assert gather_documents(model, bound=False).sentence == "3 topics in 46 documents"


def test_cards_are_those_of_the_model(model, findings):
    assert [card.name for card in findings.cards] == [topic.name for topic in model.topics]
    assert [card.n_documents for card in findings.cards] == model.sizes.tolist()
    np.testing.assert_allclose([card.coherence for card in findings.cards], model.coherence())
    for k, card in enumerate(findings.cards):
        quoted = ["".join(text for text, _ in quotation.pieces) for quotation in card.quotations]
        assert quoted == [passage.text for passage in model.passages(k)]
        marked = {text.lower() for quotation in card.quotations for text, mark in quotation.pieces if mark}
        assert marked <= {word.name for word in card.words}


def test_documents_and_their_places(model, findings):
    assert [row.topic for row in findings.rows] == (model.document_topics + 1).tolist()
    assert len(findings.map.documents) == 45  # one has no known word
    for mark in findings.map.documents:
        assert 0 <= mark.x <= findings.map.width
        assert 0 <= mark.y <= findings.map.height
    assert findings.labels.names == ("garden", "kitchen", "music", "none")
    np.testing.assert_allclose(np.sum(findings.labels.parts, axis=0), [1, 1, 1, 0])
    assert (findings.time.first, findings.time.last) == ("2024-01", "2024-05")


def test_page_is_well_formed(findings):
    page = render_documents(findings)
    structure = Structure(page)
    assert structure.open == []
    assert len(structure.ids) == len(set(structure.ids))
    links = {attributes["href"][1:] for tag, attributes in structure.seen if tag == "a"}
    assert links <= set(structure.ids)
    assert "nan" not in re.sub(r"<[^>]*>", "", page.lower().split("<main")[1].split("<script")[0]).split()


def test_what_is_not_known_is_not_shown(findings):
    page = render_documents(findings)
    assert "stability" not in page
    assert page.count("Next best: <bdi>") == 3
    other = (Substitute("other", "chosen", 0.02),)
    cards = tuple(replace(card, stability=0.75, chosen_again=0.2, alternatives=other) for card in findings.cards)
    page = render_documents(replace(findings, cards=cards))
    assert page.count("stability <b>75.0") == 3
    assert page.count("chosen again in 20.0") == 3
    assert page.count("Next best: <bdi>other</bdi> (0.02 points less)</p>") == 3
    bare = replace(findings, cards=tuple(replace(card, alternatives=()) for card in findings.cards))
    assert "Next best" not in render_documents(bare)
    alone = replace(findings, labels=None, time=None)
    assert 'id="labels"' not in render_documents(alone)


def test_large_collections_show_the_strongest_documents_of_each_topic(model, monkeypatch):
    monkeypatch.setattr(document_report, "MAX_DOCUMENTS", 20)
    findings = gather_documents(model)
    assert 15 <= len(findings.rows) <= 20
    assert {row.topic for row in findings.rows} >= {1, 2, 3}
    assert "of 46 documents" in render_documents(findings)


@pytest.mark.parametrize("rank", [1, 2])
def test_small_collections(rank):
    model = topics(["tea cake", "tea", "cars"], rank, min_df=1, effort="fast")
    assert Structure(render_documents(gather_documents(model))).open == []


def test_hostile_texts_stay_text():
    texts, _ = make_texts(30)
    hostile = [f"{text} {HOSTILE[i % len(HOSTILE)]} violin script." for i, text in enumerate(texts)]
    names = [HOSTILE[i % len(HOSTILE)] for i in range(30)]
    model = topics(hostile, 3, ids=names, labels=names, effort="fast")
    page = render_documents(gather_documents(model, title=HOSTILE[0], warnings=HOSTILE[:2]))
    structure = Structure(page)
    assert structure.open == []
    assert sum(tag == "script" for tag, _ in structure.seen) == 1
    assert not any("onerror" in attributes for _, attributes in structure.seen)


class TestCommand:
    @pytest.fixture
    def table(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        texts, labels = make_texts(30)
        with (tmp_path / "reviews.csv").open("w", newline="", encoding="utf-8") as stream:
            rows = csv.writer(stream)
            rows.writerow(["id", "review", "kind", "day"])
            rows.writerows(
                [f"r{i}", text, label, f"200{i % 3}"] for i, (text, label) in enumerate(zip(texts, labels, strict=True))
            )
        return tmp_path

    def test_table_to_page(self, table, capsys):
        options = ["--text-column", "review", "--label-column", "kind", "--id-column", "id", "--date-column", "day"]
        assert run(["topics", "reviews.csv", *options, "--rank", "3"]) == 0
        printed = capsys.readouterr()
        assert "3 topics in 30 documents" in printed.out
        assert printed.out.splitlines()[-1] == "Page: reviews-topics/topics.html"
        assert printed.err == ""
        folder = table / "reviews-topics"
        assert sorted(path.name for path in folder.iterdir()) == [
            "documents.csv",
            "model.npz",
            "topics.html",
            "topics.json",
        ]
        short = json.loads((folder / "topics.json").read_text(encoding="utf-8"))
        assert len(short["topics"]) == 3
        assert short["sentence"] in (folder / "topics.html").read_text(encoding="utf-8")
        with (folder / "documents.csv").open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["document"] for row in rows] == [f"r{i}" for i in range(30)]
        assert {(row["label"], row["topic"]) for row in rows}.__len__() == 3
        assert rows[0]["date"] == "2000-01-01"
        assert gsnmf.load(folder / "model.npz").ids == tuple(row["document"] for row in rows)

    def test_json_and_quiet(self, table, capsys):
        assert run(["topics", "reviews.csv", "--rank", "2", "--json", "--no-compare", "--out", "deep/er"]) == 0
        short = json.loads(capsys.readouterr().out)
        assert short["sentence"] == "2 topics in 30 documents"
        assert run(["topics", "reviews.csv", "--rank", "2,1", "--quiet", "--effort", "fast"]) == 0
        assert capsys.readouterr().out == "reviews-topics/topics.html\n"

    def test_stop_words_and_expressions(self, table, capsys):
        (table / "stop.txt").write_text("violin\nrose\n", encoding="utf-8")
        options = ["--stop-words", "stop.txt", "--ngrams", "2", "--min-df", "3", "--effort", "fast"]
        assert run(["topics", "reviews.csv", *options, "--rank", "3", "--json"]) == 0
        words = {word for topic in json.loads(capsys.readouterr().out)["topics"] for word in topic["words"]}
        assert not {"violin", "rose"} & words

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["missing.csv"], 1, "missing.csv: No such file or directory"),
            (["reviews.csv", "--text-column", "revue"], 1, "it has 'id', 'review', 'kind', 'day'"),
            (["reviews.csv", "--rank", "many"], 2, "--rank must be a positive integer"),
            (["reviews.csv", "--rank", "900"], 1, "rank must be"),
            (["-"], 1, "format must be one of csv"),
        ],
    )
    def test_errors_are_one_line(self, table, capsys, arguments, code, message):
        assert run(["topics", *arguments]) == code
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert message in error

    def test_factorize_points_to_it(self, table, capsys):
        assert run(["factorize", "reviews.csv", "--rank", "3"]) == 1
        error = capsys.readouterr().err
        assert "gsnmf topics" in error
        assert len(error) < 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["topics", "t.csv", "--language", "english", "--stop-words", "s.txt"], "--language has no effect"),
        (["topics", "t.parquet", "--encoding", "latin-1"], "--encoding has no effect"),
        (["topics", "t.bin", "--format", "parquet", "--encoding", "latin-1"], "--encoding has no effect"),
    ],
)
def test_options_without_effect_are_errors(arguments, message, capsys):
    assert run(arguments) == 2
    assert message in capsys.readouterr().err
