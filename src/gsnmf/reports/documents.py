"""The page about topics of documents: what it shows, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gsnmf.reports.findings import Substitute
from gsnmf.reports.page import environment
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.version import __version__


@dataclass(frozen=True)
class Word:
    """A word of a topic; ``strength`` is relative to the strongest, ``leading`` marks a chosen word."""

    name: str
    strength: float
    leading: bool = False


@dataclass(frozen=True)
class Quotation:
    """A passage of a document, in pieces: text, and whether it is a word of the topic."""

    document: str
    pieces: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class TopicCard:
    """A topic as a card shows it.

    Attributes
    ----------
    number : int
        From 1, as in the links of the page.
    name : str
    kind : str
        What was chosen, "word" or "document".
    leading : tuple of str
        The names of what was chosen.
    leading_shares : tuple of float
        Their shares, which sum to one.
    share : float
        Part of the documents.
    n_documents : int
    coherence, exclusivity : float or None
    words : tuple of Word
    quotations : tuple of Quotation
    similar : tuple of triples (number, name, similarity)
        Other topics, the most similar first.
    hue : float
        Its colour, in degrees.
    stability : float or None
        How similar the topics found in changed data are to it, from 0 to 1; None if it was not measured.
    chosen_again : float or None
        How often the same words or documents are chosen for changed data; None if it was not measured.
    alternatives : tuple of Substitute
        What could have been chosen instead, if known.
    """

    number: int
    name: str
    kind: str
    leading: tuple[str, ...]
    leading_shares: tuple[float, ...]
    share: float
    n_documents: int
    coherence: float | None
    exclusivity: float | None
    words: tuple[Word, ...]
    quotations: tuple[Quotation, ...]
    similar: tuple[tuple[int, str, float], ...]
    hue: float
    stability: float | None = None
    chosen_again: float | None = None
    alternatives: tuple[Substitute, ...] = ()


@dataclass(frozen=True)
class TopicMark:
    """A topic on the map: centre, radius, and where its name stands."""

    number: int
    name: str
    hue: float
    x: float
    y: float
    radius: float
    label_x: float
    label_y: float
    anchor: str


@dataclass(frozen=True)
class DocumentMark:
    """A document on the map; ``row`` is its row in the table of documents."""

    row: int
    x: float
    y: float
    hue: float


@dataclass(frozen=True)
class TopicMap:
    """Topics and documents in the plane."""

    width: float
    height: float
    topics: tuple[TopicMark, ...]
    documents: tuple[DocumentMark, ...]


@dataclass(frozen=True)
class DocumentRow:
    """A document in the table; ``rest`` is the part of its text that is shown on demand."""

    row: int
    name: str
    topic: int
    topic_name: str
    share: float
    beginning: str
    rest: str = ""
    label: str = ""
    date: str = ""


@dataclass(frozen=True)
class GroupTable:
    """Topics by label: for each topic, the part of every label's documents that belongs to it."""

    names: tuple[str, ...]
    totals: tuple[int, ...]
    parts: tuple[tuple[float, ...], ...]
    n_left_out: int = 0

    @property
    def largest(self) -> float:
        """The largest part, which has the strongest colour."""
        return max((max(row, default=0.0) for row in self.parts), default=0.0) or 1.0


@dataclass(frozen=True)
class TimeLine:
    """A topic over time: the points of its line, and its largest part of a period's documents."""

    number: int
    name: str
    hue: float
    points: str
    largest: float
    largest_period: str
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class TimeChart:
    """All topics over time, each in a picture of its own on the same scale."""

    lines: tuple[TimeLine, ...]
    first: str
    last: str
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class DocumentFindings:
    """What the page about documents says, section by section."""

    title: str
    sentence: str
    lead: str
    figures: tuple[tuple[str, str, str], ...]
    """Name, value, and what it means."""
    cards: tuple[TopicCard, ...]
    map: TopicMap
    rows: tuple[DocumentRow, ...]
    n_documents: int
    labels: GroupTable | None = None
    time: TimeChart | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def render_documents(findings: DocumentFindings) -> str:
    """The whole page; all words, names and texts are escaped."""
    return environment().get_template("documents.html").render(f=findings, version=__version__)


def write_documents(findings: DocumentFindings, path: Any) -> None:
    """Write the page to a file, completely or not at all."""
    with atomic_write(Path(path)) as stream:
        stream.write(render_documents(findings).encode())
