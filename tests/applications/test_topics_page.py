"""The page about the topics of documents."""

import re
from dataclasses import replace

import numpy as np
import pytest

from gsnmf.applications import topics
from gsnmf.applications.topic_modelling import document_report
from gsnmf.applications.topic_modelling.document_report import gather_documents, render_documents
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
