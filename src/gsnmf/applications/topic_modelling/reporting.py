"""What the page about documents shows, gathered from a topic model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from gsnmf.applications.topic_modelling.dates import periods
from gsnmf.applications.topic_modelling.drawing import hue, time_chart, topic_map
from gsnmf.applications.topic_modelling.passages import Passage
from gsnmf.diagnostics import compare
from gsnmf.matrix.protocol import largest_of
from gsnmf.reports.documents import DocumentFindings, DocumentRow, GroupTable, Quotation, TimeChart, TopicCard, Word
from gsnmf.reports.findings import Substitute
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.support.formatting import counted, grouped, mixtures, percent, shown

if TYPE_CHECKING:
    from gsnmf.applications.topic_modelling.model import Topic, TopicModel

MAX_DOCUMENTS = 2000
"""Documents in the table and on the map."""

MAX_LABELS = 30
_MAX_CHARACTERS = 2_000_000
"""Of all texts on the page."""

_ALTERNATIVES = 2
"""Substitutes that are named on a card."""

_BEGINNING = 160
_LONGEST = 2000
_SIMILAR = 0.2
"""Similarity from which another topic is named on a card."""


def gather_documents(
    model: TopicModel,
    *,
    title: str = "",
    bound: bool = True,
    parameters: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> DocumentFindings:
    """Gather what the page shows.

    Parameters
    ----------
    model : TopicModel
    title : str
        What the collection is.
    bound : bool
        Compute how much any factors of this number could explain, by truncated SVD.
    parameters : mapping of str to str, optional
        How the model was made.
    warnings : sequence of str
        What the reader should know.
    """
    coherences = model.coherence()
    best = compare(model.result).svd_quality if bound else None
    rows = _shown_documents(model)
    sentence, lead = _headline(model, best)
    return DocumentFindings(
        title=shown(title or "Documents"),
        sentence=sentence,
        lead=lead,
        figures=_figures(model, best, coherences),
        cards=_cards(model, coherences),
        map=topic_map(model, rows),
        rows=_rows(model, rows),
        n_documents=len(model.texts),
        labels=_labels(model),
        time=_time(model),
        parameters=_made(model) | dict(parameters or {}),
        warnings=tuple(warnings),
    )


def _made(model: TopicModel) -> dict[str, str]:
    m, n = model.result.matrix.shape
    return {
        "Documents": grouped(m),
        "Words in the vocabulary": grouped(n),
        "Choice of words and documents": model.result.selection.method,
        "Parts of topics in documents": "nonnegative least squares on the topics, exact",
        "Topic of a document": "the one whose documents it resembles most on average (cosine)",
    }


def _headline(model: TopicModel, best: float | None) -> tuple[str, str]:
    count, rank = len(model.texts), len(model.order)
    sentence = f"{counted(rank, 'topic')} in {counted(count, 'document')}"
    most = 1 if model.result.mixtures is None else model.result.mixtures.most
    made = [
        mixtures(indices.size, kind, most)
        for indices, kind in ((model.result.columns, "word"), (model.result.rows, "document"))
        if indices.size
    ]
    chosen = f"Each topic is made from the collection itself: {' and '.join(made)} were chosen."
    if not best:
        return sentence, chosen
    part = percent(min(model.result.quality / best, 1.0))
    return f"{sentence}, with {part} of what any {counted(rank, 'factor')} can explain", chosen


def _figures(model: TopicModel, best: float | None, coherences: Doubles) -> tuple[tuple[str, str, str], ...]:
    figures = []
    if best:
        part = percent(min(model.result.quality / best, 1.0))
        figures.append(
            (
                "Explained, of what is possible",
                part,
                f"The topics explain {percent(model.result.quality)} of the matrix of documents and words; truncated "
                f"SVD, which no {len(model.order)} factors can beat, explains {percent(best)}.",
            )
        )
    if np.isfinite(coherences).any():
        text = (
            "Mean of normalised pointwise mutual information of the ten strongest words, over documents: from −1 to 1."
        )
        figures.append(("Coherence", f"{np.nanmean(coherences):.2f}", text))
    figures.append(
        ("Diversity", f"{model.diversity():.2f}", "Share of different words among the 25 strongest of every topic.")
    )
    lost = int(np.count_nonzero(model.document_topics < 0))
    text = "None of their words is in the vocabulary." if lost else "Every document has a topic."
    figures.append(("Documents without a topic", str(lost), text))
    if model.stability is not None:
        text = (
            f"Mean similarity (cosine) of each topic to its counterpart in {3 * model.stability.n_repeats} fits to "
            "changed data: documents resampled, words resampled, or noise added. Below 50 % a topic is doubtful. The "
            "choice comes back less often than the topic, as another document or word may stand for it."
        )
        figures.append(("Stability", percent(float(model.stability.similarity.mean())), text))
    if model.labels:
        information, rand = model.agreement()
        figures.append(
            (
                "Agreement with the labels",
                f"{information:.2f}",
                f"Normalised mutual information: 1 if topics and labels are the same groups. Adjusted Rand index: "
                f"{rand:.2f}.",
            )
        )
    return tuple(figures)


def _cards(model: TopicModel, coherences: Doubles) -> tuple[TopicCard, ...]:
    exclusivities, similarities = model.exclusivity(), model.similarity()
    alternatives = _alternatives(model)
    return tuple(
        TopicCard(
            number=k + 1,
            name=shown(topic.name),
            kind=topic.kind,
            leading=tuple(map(shown, topic.leading)),
            leading_shares=topic.leading_shares,
            share=topic.share,
            n_documents=int(model.sizes[k]),
            coherence=float(coherences[k]) if np.isfinite(coherences[k]) else None,
            exclusivity=float(exclusivities[k]) if np.isfinite(exclusivities[k]) else None,
            words=_words(model, k, topic),
            quotations=tuple(_quotation(model, passage) for passage in model.passages(k)),
            similar=_similar(model, similarities[k], k),
            hue=hue(k),
            stability=None if model.stability is None else float(model.stability.similarity[model.order[k]]),
            chosen_again=None if model.stability is None else float(model.stability.overall[model.order[k]]),
            alternatives=alternatives[k],
        )
        for k, topic in enumerate(model.topics)
    )


def _alternatives(model: TopicModel) -> list[tuple[Substitute, ...]]:
    """What could have been chosen for each topic instead."""
    found: list[list[Substitute]] = [[] for _ in model.order]
    for row in model.alternatives(_ALTERNATIVES).rows if model.result.knows_alternatives else ():
        topic, _, chosen, substitute, lost = cast("tuple[int, str, str, str, float]", row)
        found[topic].append(Substitute(shown(substitute), shown(chosen), lost))
    return [tuple(own) for own in found]


def _words(model: TopicModel, k: int, topic: Topic) -> tuple[Word, ...]:
    """The words of a topic; a chosen word, which is often many times as strong as all others, has a full bar."""
    values = model.components[k, model.top_words(len(topic.words))[k]]
    leading = [topic.kind == "word" and word in topic.leading for word in topic.words]
    largest = float(values[~np.array(leading, dtype=bool)].max(initial=0.0)) or float(values.max(initial=0.0)) or 1.0
    return tuple(
        Word(shown(word), min(float(value) / largest, 1.0), chosen)
        for word, value, chosen in zip(topic.words, values, leading, strict=True)
    )


def _quotation(model: TopicModel, passage: Passage) -> Quotation:
    pieces, at = [], 0
    for start, end in passage.spans:
        pieces += [(passage.text[at:start], False), (passage.text[start:end], True)]
        at = end
    pieces.append((passage.text[at:], False))
    cleaned = tuple((shown(text, longest=None), marked) for text, marked in pieces if text)
    return Quotation(_document_name(model, passage.document), cleaned)


def _similar(model: TopicModel, similarities: Doubles, k: int) -> tuple[tuple[int, str, float], ...]:
    others = [int(j) for j in largest_of(similarities, 4) if j != k and similarities[j] >= _SIMILAR]
    return tuple((j + 1, shown(model.topics[j].name), float(similarities[j])) for j in others[:3])


def _shown_documents(model: TopicModel) -> Indices:
    """Documents to show, in their order: all, or the strongest of each topic in proportion to its size."""
    count = len(model.texts)
    if count <= MAX_DOCUMENTS:
        return np.arange(count)
    kept = [np.flatnonzero(model.document_topics < 0)[: MAX_DOCUMENTS // 100]]
    room = MAX_DOCUMENTS - kept[0].size
    for k, size in enumerate(model.sizes):
        members = np.flatnonzero(model.document_topics == k)
        order = np.argsort(-model.weights[members, k], kind="stable")
        kept.append(members[order[: int(room * size / count)]])
    return np.sort(np.concatenate(kept))


def _rows(model: TopicModel, documents: Indices) -> tuple[DocumentRow, ...]:
    names = [shown(topic.name) for topic in model.topics]
    longest = max(_BEGINNING, min(_LONGEST, _MAX_CHARACTERS // max(documents.size, 1)))
    rows = []
    for row, i in enumerate(documents.tolist()):
        topic = int(model.document_topics[i])
        text = shown(" ".join(model.texts[i].split()), longest=longest)
        date = model.dates[i] if model.dates else None
        cut = len(text) if len(text) <= _BEGINNING + 40 else text.rfind(" ", _BEGINNING // 2, _BEGINNING)
        cut = cut if cut > 0 else _BEGINNING
        rows.append(
            DocumentRow(
                row=row,
                name=_document_name(model, i),
                topic=topic + 1,
                topic_name=names[topic] if topic >= 0 else "",
                share=float(model.shares[i, topic]) if topic >= 0 else 0.0,
                beginning=text[:cut],
                rest=text[cut:].lstrip(),
                label=shown(model.labels[i]) if model.labels else "",
                date=date.isoformat() if date is not None else "",
            )
        )
    return tuple(rows)


def _labels(model: TopicModel) -> GroupTable | None:
    if not model.labels:
        return None
    table = model.by_label().rows
    largest = sorted(range(len(table)), key=lambda g: -int(str(table[g][1])))[:MAX_LABELS]
    kept = [table[g] for g in sorted(largest)]
    return GroupTable(
        names=tuple(shown(str(row[0])) for row in kept),
        totals=tuple(int(str(row[1])) for row in kept),
        parts=tuple(tuple(float(str(row[2 + k])) for row in kept) for k in range(len(model.order))),
        n_left_out=len(table) - len(kept),
    )


def _time(model: TopicModel) -> TimeChart | None:
    names, _ = periods(model.dates)
    if len(names) < 2:
        return None
    rows = model.over_time().rows
    totals = np.array([int(str(row[1])) for row in rows])
    parts = np.array([[float(str(value)) for value in row[2:]] for row in rows])
    return time_chart(names, totals, parts, [shown(topic.name) for topic in model.topics])


def _document_name(model: TopicModel, document: int) -> str:
    return shown(model.ids[document])
