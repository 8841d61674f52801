"""The page about the topics of documents: what it says, gathered from a topic model, and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gsnmf.applications.topic_modelling.document_charts import TimeChart, TopicMap, hue, time_chart, topic_map
from gsnmf.applications.topic_modelling.topic_words import Passage
from gsnmf.diagnostics import compare
from gsnmf.matrix.protocol import largest_of
from gsnmf.reports.findings import Substitute
from gsnmf.reports.page import environment
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.support.formatting import counted, grouped, mixtures, percent, shown
from gsnmf.support.version import __version__

if TYPE_CHECKING:
    from gsnmf.applications.topic_modelling.model import Topic, TopicModel

MAX_DOCUMENTS = 2000
"""Documents in the table and on the map."""

_MAX_LABELS = 30
_MAX_CHARACTERS = 2_000_000
"""Characters of all texts on the page together."""

_BEGINNING, _LONGEST = 160, 2000
"""Characters of a text that are shown at once, and at most on demand."""

_ALTERNATIVES = 2
"""Substitutes that are named on a card."""

_SIMILAR = 0.2
"""Similarity from which another topic is named on a card."""


@dataclass(frozen=True)
class Word:
    """A word of a topic; ``strength`` is relative to the strongest, ``leading`` marks a chosen word."""

    name: str
    strength: float
    leading: bool


@dataclass(frozen=True)
class Quotation:
    """A passage of a document, in pieces: text, and whether it is a word of the topic."""

    document: str
    pieces: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class TopicCard:
    """A topic as a card shows it; ``leading`` names the words or documents that were chosen for it."""

    number: int
    """From 1, as in the links of the page."""
    name: str
    kind: str
    leading: tuple[str, ...]
    leading_shares: tuple[float, ...]
    share: float
    """Part of the documents that belong to the topic."""
    n_documents: int
    coherence: float | None
    exclusivity: float | None
    words: tuple[Word, ...]
    quotations: tuple[Quotation, ...]
    similar: tuple[tuple[int, str, float], ...]
    """Number, name and similarity of other topics, the most similar first."""
    hue: float
    stability: float | None
    """Similarity of the topics found in changed data, from 0 to 1; None if it was not measured."""
    chosen_again: float | None
    """How often the same words or documents are chosen for changed data; None if it was not measured."""
    alternatives: tuple[Substitute, ...]


@dataclass(frozen=True)
class DocumentRow:
    """A document in the table; ``rest`` is the part of its text that is shown on demand."""

    row: int
    name: str
    topic: int
    topic_name: str
    share: float
    beginning: str
    rest: str
    label: str
    date: str


@dataclass(frozen=True)
class GroupTable:
    """Topics by label: for each topic, the part of every label's documents that belongs to it."""

    names: tuple[str, ...]
    totals: tuple[int, ...]
    parts: tuple[tuple[float, ...], ...]
    n_left_out: int

    @property
    def largest(self) -> float:
        """The largest part, which has the strongest colour."""
        return max((max(row, default=0.0) for row in self.parts), default=0.0) or 1.0


@dataclass(frozen=True)
class DocumentFindings:
    """What the page about documents says, section by section."""

    title: str
    sentence: str
    lead: str
    quality: float
    figures: tuple[tuple[str, str, str], ...]
    """Name, value, and what it means."""
    cards: tuple[TopicCard, ...]
    map: TopicMap
    rows: tuple[DocumentRow, ...]
    n_documents: int
    labels: GroupTable | None
    time: TimeChart | None
    parameters: Mapping[str, str]
    warnings: tuple[str, ...]


def render_documents(findings: DocumentFindings) -> str:
    """The page as HTML; all words, names and texts are escaped."""
    return environment().get_template("documents.html").render(f=findings, version=__version__)


def documents_csv(model: TopicModel) -> str:
    """A table of all documents: name, number and name of the topic, its part, and label and date where known."""
    frame = model.to_frame().filter(items=["document", "topic", "name", "label", "date"])
    topics = model.document_topics
    parts = np.where(topics >= 0, model.shares[np.arange(topics.size), topics], 0.0)
    frame.insert(3, "part", parts)
    return str(frame.to_csv(index=False, float_format="%.4f", lineterminator="\n"))


def summary(findings: DocumentFindings) -> dict[str, Any]:
    """A short machine-readable summary of the findings, ready for JSON."""
    return {
        "title": findings.title,
        "sentence": findings.sentence,
        "quality": findings.quality,
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
    names = [shown(topic.name) for topic in model.topics]
    best = compare(model.result).svd_quality if bound else None
    documents = _shown_documents(model)
    sentence = f"{counted(len(names), 'topic')} in {counted(len(model.texts), 'document')}"
    if best:
        sentence += f", with {_part_of(model, best)} of what any {counted(len(names), 'factor')} can explain"
    return DocumentFindings(
        title=shown(title or "Documents"),
        sentence=sentence,
        lead=_lead(model),
        quality=model.result.quality,
        figures=_figures(model, best, coherences),
        cards=_cards(model, names, coherences),
        map=topic_map(names, model.sizes, model.means, model.matrix[documents], model.document_topics[documents]),
        rows=_rows(model, names, documents),
        n_documents=len(model.texts),
        labels=_labels(model),
        time=_time(model, names),
        parameters={
            "Documents": grouped(len(model.texts)),
            "Words in the vocabulary": grouped(len(model.words)),
            "Choice of words and documents": model.result.selection.method,
            "Parts of topics in documents": "nonnegative least squares on the topics, exact",
            "Topic of a document": "the one whose documents it resembles most on average (cosine)",
            **(parameters or {}),
        },
        warnings=tuple(warnings),
    )


def _part_of(model: TopicModel, best: float) -> str:
    return percent(min(model.result.quality / best, 1.0))


def _lead(model: TopicModel) -> str:
    most = 1 if model.result.mixtures is None else model.result.mixtures.most
    numbers = {"word": model.result.columns.size, "document": model.result.rows.size}
    made = [mixtures(number, kind, most) for kind, number in numbers.items() if number]
    return f"Each topic is made from the collection itself: {' and '.join(made)} were chosen."


def _figures(model: TopicModel, best: float | None, coherences: Doubles) -> tuple[tuple[str, str, str], ...]:
    lost = int(np.count_nonzero(model.document_topics < 0))
    figures = [
        ("Diversity", f"{model.diversity():.2f}", "Share of different words among the 25 strongest of every topic."),
        (
            "Documents without a topic",
            str(lost),
            "None of their words is in the vocabulary." if lost else "Every document has a topic.",
        ),
    ]
    if np.isfinite(coherences).any():
        text = (
            "Mean of normalised pointwise mutual information of the ten strongest words, over documents: from −1 to 1."
        )
        figures.insert(0, ("Coherence", f"{np.nanmean(coherences):.2f}", text))
    if best:
        text = (
            f"The topics explain {percent(model.result.quality)} of the matrix of documents and words; truncated "
            f"SVD, which no {len(model.order)} factors can beat, explains {percent(best)}."
        )
        figures.insert(0, ("Explained, of what is possible", _part_of(model, best), text))
    if model.stability is not None:
        text = (
            f"Mean similarity (cosine) of each topic to its counterpart in {3 * model.stability.n_repeats} fits to "
            "changed data: documents resampled, words resampled, or noise added. Below 50 % a topic is doubtful. The "
            "choice comes back less often than the topic, as another document or word may stand for it."
        )
        figures.append(("Stability", percent(float(model.stability.similarity.mean())), text))
    if model.labels:
        information, rand = model.agreement()
        text = (
            "Normalised mutual information: 1 if topics and labels are the same groups. Adjusted Rand index: "
            f"{rand:.2f}."
        )
        figures.append(("Agreement with the labels", f"{information:.2f}", text))
    return tuple(figures)


def _cards(model: TopicModel, names: Sequence[str], coherences: Doubles) -> tuple[TopicCard, ...]:
    exclusivities, similarities = model.exclusivity(), model.similarity()
    stable = model.stability
    alternatives: list[list[Substitute]] = [[] for _ in names]
    for row in model.alternatives(_ALTERNATIVES).rows if model.result.knows_alternatives else ():
        k, _, chosen, substitute, lost = cast("tuple[int, str, str, str, float]", row)
        alternatives[k].append(Substitute(shown(substitute), shown(chosen), lost))
    cards = []
    for k, topic in enumerate(model.topics):
        similar = [int(j) for j in largest_of(similarities[k], 4) if j != k and similarities[k, j] >= _SIMILAR]
        cards.append(
            TopicCard(
                number=k + 1,
                name=names[k],
                kind=topic.kind,
                leading=tuple(map(shown, topic.leading)),
                leading_shares=topic.leading_shares,
                share=topic.share,
                n_documents=int(model.sizes[k]),
                coherence=float(coherences[k]) if np.isfinite(coherences[k]) else None,
                exclusivity=float(exclusivities[k]) if np.isfinite(exclusivities[k]) else None,
                words=_words(model, k, topic),
                quotations=tuple(_quotation(model, passage) for passage in model.passages(k)),
                similar=tuple((j + 1, names[j], float(similarities[k, j])) for j in similar[:3]),
                hue=hue(k),
                stability=None if stable is None else float(stable.similarity[model.order[k]]),
                chosen_again=None if stable is None else float(stable.overall[model.order[k]]),
                alternatives=tuple(alternatives[k]),
            )
        )
    return tuple(cards)


def _words(model: TopicModel, k: int, topic: Topic) -> tuple[Word, ...]:
    """The words of a topic; a chosen word, which is often many times as strong as all others, has a full bar."""
    values = model.components[k, model.top_words(len(topic.words))[k]]
    leading = np.array([topic.kind == "word" and word in topic.leading for word in topic.words], dtype=bool)
    largest = values[~leading].max(initial=0.0) or values.max(initial=0.0) or 1.0
    strengths = np.minimum(values / largest, 1.0).tolist()
    return tuple(
        Word(shown(word), *drawn) for word, *drawn in zip(topic.words, strengths, leading.tolist(), strict=True)
    )


def _quotation(model: TopicModel, passage: Passage) -> Quotation:
    pieces, at = [], 0
    for start, end in passage.spans:
        pieces += [(passage.text[at:start], False), (passage.text[start:end], True)]
        at = end
    pieces.append((passage.text[at:], False))
    cleaned = tuple((shown(text, longest=None), marked) for text, marked in pieces if text)
    return Quotation(shown(model.ids[passage.document]), cleaned)


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


def _rows(model: TopicModel, names: Sequence[str], documents: Indices) -> tuple[DocumentRow, ...]:
    longest = max(_BEGINNING, min(_LONGEST, _MAX_CHARACTERS // max(documents.size, 1)))
    rows = []
    for row, i in enumerate(documents.tolist()):
        topic = int(model.document_topics[i])
        text = shown(" ".join(model.texts[i].split()), longest=longest)
        cut = len(text) if len(text) <= _BEGINNING + 40 else text.rfind(" ", _BEGINNING // 2, _BEGINNING)
        cut = cut if cut > 0 else _BEGINNING
        date = model.dates[i] if model.dates else None
        rows.append(
            DocumentRow(
                row=row,
                name=shown(model.ids[i]),
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
    """The most frequent labels, in alphabetical order."""
    if not model.labels:
        return None
    table = model.by_label().to_frame()
    totals = table.iloc[:, 1].to_numpy()
    kept = np.sort(largest_of(totals, _MAX_LABELS))
    return GroupTable(
        names=tuple(shown(table.iloc[g, 0]) for g in kept),
        totals=tuple(totals[kept].tolist()),
        parts=tuple(map(tuple, table.iloc[kept, 2:].to_numpy().T.tolist())),
        n_left_out=len(table) - kept.size,
    )


def _time(model: TopicModel, names: Sequence[str]) -> TimeChart | None:
    if not model.dates or len(table := model.over_time().to_frame()) < 2:
        return None
    return time_chart(table.iloc[:, 0].tolist(), table.iloc[:, 1].to_numpy(), table.iloc[:, 2:].to_numpy(), names)
