"""What a topic model leaves in files for other programs: every document with its topic, and the topics in short."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

from gsnmf.applications.topic_modelling.model import TopicModel
from gsnmf.reports.documents import DocumentFindings


def documents_csv(model: TopicModel) -> str:
    """A table of all documents: name, number and name of its topic, its part, label and date where known."""
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    known = [*(["label"] if model.labels else []), *(["date"] if model.dates else [])]
    table.writerow(["document", "topic", "name", "part", *known])
    for i, topic in enumerate(model.document_topics.tolist()):
        name, part = ("", 0.0) if topic < 0 else (model.topics[topic].name, float(model.shares[i, topic]))
        cells = [model.ids[i], topic, name, f"{part:.4f}"]
        cells += [model.labels[i]] if model.labels else []
        cells += [model.dates[i] or ""] if model.dates else []
        table.writerow(cells)
    return stream.getvalue()


def summary(model: TopicModel, findings: DocumentFindings) -> dict[str, Any]:
    """The topics in short: what JSON can hold."""
    return {
        "title": findings.title,
        "sentence": findings.sentence,
        "quality": model.result.quality,
        "figures": {name: value for name, value, _ in findings.figures},
        "topics": [
            {
                "topic": card.number - 1,
                "name": card.name,
                "kind": card.kind,
                "chosen": list(card.leading),
                "chosen_shares": list(card.leading_shares),
                "alternatives": [asdict(substitute) for substitute in card.alternatives],
                "words": [word.name for word in card.words],
                "share": card.share,
                "coherence": card.coherence,
                "exclusivity": card.exclusivity,
                **({} if card.stability is None else {"stability": card.stability, "chosen_again": card.chosen_again}),
                "passages": ["".join(text for text, _ in quotation.pieces) for quotation in card.quotations],
            }
            for card in findings.cards
        ],
        "parameters": dict(findings.parameters),
        "warnings": list(findings.warnings),
    }
