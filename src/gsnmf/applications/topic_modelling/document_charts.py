"""Charts on the page about documents, as coordinates: a map of topics and documents, and topics over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import rel_entr

from gsnmf.applications.topic_modelling.topic_words import distributions
from gsnmf.reports.charts import Frame
from gsnmf.support.arrays import Doubles, Floats, Indices, Sparse
from gsnmf.support.formatting import percent

_WIDTH, _HEIGHT, _MARGIN = 960.0, 560.0, 90.0
_LINE_WIDTH, _LINE_HEIGHT = 260.0, 80.0
_GOLDEN_ANGLE = 137.508
"""Degrees between the hues of two consecutive topics: a dozen multiples of it lie far apart on the circle."""

_LABEL_WIDTH, _LABEL_HEIGHT = 150.0, 22.0
"""Labels closer than this overlap."""


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

    topics: tuple[TopicMark, ...]
    documents: tuple[DocumentMark, ...]
    width: float = _WIDTH
    height: float = _HEIGHT


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
    width: float = _LINE_WIDTH
    height: float = _LINE_HEIGHT


def hue(topic: int) -> float:
    """The colour of a topic in degrees; any two of a dozen differ."""
    return round((210.0 + _GOLDEN_ANGLE * topic) % 360.0, 1)


def topic_map(
    names: Sequence[str], sizes: Indices, means: Floats, documents: Sparse, document_topics: Indices
) -> TopicMap:
    """Topics where `layout` puts them, and documents among the topics that they resemble.

    A document stands at the mean of the topics' points, weighted by the squares of its mean similarities to their
    documents; a document that resembles no topic is left out.

    Parameters
    ----------
    names, sizes, means
        Name, number of documents and mean document of each topic.
    documents : sparse array, shape (n_shown, n_words)
    document_topics : int array of length n_shown
    """
    points = _stretched(layout(means))
    squares = np.asarray(documents @ means.T, dtype=np.float64) ** 2
    known = np.flatnonzero(squares.sum(axis=1) > 0)
    places = (distributions(squares[known]) @ points).round(1).tolist()
    marks = (
        DocumentMark(row, x, y, hue(int(document_topics[row])))
        for row, (x, y) in zip(known.tolist(), places, strict=True)
    )
    return TopicMap(_topic_marks(names, sizes, points), tuple(marks))


def layout(components: Floats) -> Doubles:
    r"""Topics as points of the plane, similar topics close to each other, shape (n_topics, 2).

    The distance of two topics is the square root of the Jensen-Shannon divergence of their distributions over words.
    Classical scaling finds the points, whose largest coordinate is then scaled to 1.

    References
    ----------
    C. Sievert, K. Shirley, LDAvis: A method for visualizing and interpreting topics, ACL Workshop on Interactive
    Language Learning, Visualization, and Interfaces (2014), doi:10.3115/v1/W14-3110.
    """
    shares = distributions(components)
    count = len(shares)
    divergences = np.zeros((count, count))
    for k, other in combinations(range(count), 2):
        middle = (shares[k] + shares[other]) / 2.0
        divergence = 0.5 * (rel_entr(shares[k], middle) + rel_entr(shares[other], middle)).sum()
        divergences[k, other] = divergences[other, k] = max(divergence, 0.0)
    centring = np.eye(count) - 1.0 / max(count, 1)
    values, vectors = np.linalg.eigh(-0.5 * centring @ divergences @ centring)
    points = np.zeros((count, 2))
    for axis in range(min(2, count)):
        vector = vectors[:, -1 - axis]
        sign = np.sign(vector[np.argmax(np.abs(vector))])  # eigenvectors come with either sign
        points[:, axis] = sign * vector * np.sqrt(max(values[-1 - axis], 0.0))
    largest = float(np.abs(points).max(initial=0.0))
    return points / largest if largest > 0 else points


def _stretched(points: Doubles) -> Doubles:
    """Points moved into the picture: both axes use its whole width and height."""
    low = points.min(axis=0, initial=np.inf)
    extent = points.max(axis=0, initial=-np.inf) - low
    relative = np.where(extent > 0, (points - low) / np.where(extent > 0, extent, 1.0), 0.5)
    return np.asarray(_MARGIN + relative * [_WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN])


def _topic_marks(names: Sequence[str], sizes: Indices, points: Doubles) -> tuple[TopicMark, ...]:
    radii = 12.0 + 58.0 * np.sqrt(sizes / max(sizes.max(initial=0), 1))
    marks: list[TopicMark] = []
    for k, (name, radius) in enumerate(zip(names, radii.round(1).tolist(), strict=True)):
        x, y = points[k].round(1).tolist()
        left = x < _WIDTH - 200.0
        label_x, label_y = x + (12.0 if left else -12.0), y + 5.0
        while any(
            abs(label_x - mark.label_x) < _LABEL_WIDTH and abs(label_y - mark.label_y) < _LABEL_HEIGHT for mark in marks
        ):
            label_y += 4.0
        marks.append(TopicMark(k + 1, name, hue(k), x, y, radius, label_x, label_y, "start" if left else "end"))
    return tuple(marks)


def time_chart(periods: Sequence[str], totals: Indices, parts: Doubles, names: Sequence[str]) -> TimeChart:
    """Parts of every period's documents as one line per topic, all on one scale; empty periods are left out.

    Parameters
    ----------
    periods : sequence of str
    totals : int array
        Number of documents of each period.
    parts : array, shape (n_periods, n_topics)
    names : sequence of str
        Names of the topics.
    """
    used = np.flatnonzero(totals > 0).tolist()
    top = float(parts.max(initial=0.0)) or 1.0
    frame = Frame((0.0, max(len(periods) - 1.0, 1.0)), (0.0, top), 4.0, _LINE_WIDTH - 4.0, 6.0, _LINE_HEIGHT - 2.0)
    lines = []
    for k, name in enumerate(names):
        best = used[int(parts[used, k].argmax())]
        dots = tuple(
            (*frame.at(period, parts[period, k]), f"{periods[period]}: {percent(parts[period, k])} of {totals[period]}")
            for period in used
        )
        points = frame.line(used, parts[used, k])
        lines.append(TimeLine(k + 1, name, hue(k), points, float(parts[best, k]), periods[best], dots))
    return TimeChart(tuple(lines), periods[0], periods[-1], top)
