"""Where topics and documents are drawn on the page: the map, and the lines over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gsnmf.applications.topic_modelling.measures import layout
from gsnmf.reports.documents import DocumentMark, TimeChart, TimeLine, TopicMap, TopicMark
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.support.formatting import percent, shown

if TYPE_CHECKING:
    from gsnmf.applications.topic_modelling.model import TopicModel

_WIDTH, _HEIGHT, _MARGIN = 960.0, 560.0, 90.0
_LINE_WIDTH, _LINE_HEIGHT = 260.0, 80.0
_GOLDEN_ANGLE = 137.508
_LABEL_HEIGHT = 22.0


def hue(topic: int) -> float:
    """The colour of a topic in degrees; any two of a dozen differ."""
    return round((210.0 + _GOLDEN_ANGLE * topic) % 360.0, 1)


def topic_map(model: TopicModel, documents: Indices) -> TopicMap:
    """Topics where `measures.layout` puts them, and documents among the topics that they resemble.

    A document stands at the mean of the topics' points, weighted by the squares of its mean similarities to their
    documents.
    """
    points = _spread(layout(model.means))
    similarities = np.asarray(model.matrix[documents] @ model.means.T)
    squares = similarities**2
    sums = squares.sum(axis=1)
    known = np.flatnonzero(sums > 0)
    places = np.full((documents.size, 2), np.nan)
    places[known] = squares[known] @ points / sums[known, None]
    marks = []
    for row in known.tolist():
        topic = int(model.document_topics[documents[row]])
        x, y = places[row].tolist()
        marks.append(DocumentMark(row, round(x, 1), round(y, 1), hue(topic)))
    return TopicMap(_WIDTH, _HEIGHT, _topic_marks(model, points), tuple(marks))


def _spread(points: Doubles) -> Doubles:
    """Points of the unit square, moved into the picture: each axis takes all the room there is."""
    low, high = points.min(axis=0, initial=np.inf), points.max(axis=0, initial=-np.inf)
    extent = np.where(high > low, high - low, 1.0)
    relative = np.where(high > low, (points - low) / extent, 0.5)
    room = np.array([_WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN])
    return np.asarray(_MARGIN + relative * room)


def _topic_marks(model: TopicModel, points: Doubles) -> tuple[TopicMark, ...]:
    largest = max(float(model.sizes.max(initial=0)), 1.0)
    marks: list[TopicMark] = []
    taken: list[tuple[float, float]] = []
    for k, topic in enumerate(model.topics):
        x, y = (round(float(value), 1) for value in points[k])
        left = x < _WIDTH - 200.0
        label_x, label_y = x + (12.0 if left else -12.0), y + 5.0
        while any(abs(label_x - a) < 150.0 and abs(label_y - b) < _LABEL_HEIGHT for a, b in taken):
            label_y += 4.0
        taken.append((label_x, label_y))
        radius = round(12.0 + 58.0 * float(np.sqrt(model.sizes[k] / largest)), 1)
        anchor = "start" if left else "end"
        marks.append(TopicMark(k + 1, shown(topic.name), hue(k), x, y, radius, label_x, label_y, anchor))
    return tuple(marks)


def time_chart(names: Sequence[str], totals: Indices, parts: Doubles, topics: Sequence[str]) -> TimeChart:
    """Parts of every period's documents as one line per topic, all on one scale; empty periods are left out.

    Parameters
    ----------
    names : sequence of str
        Of the periods.
    totals : int array
        Documents of each period.
    parts : array, shape (n_periods, n_topics)
    topics : sequence of str
        Names of the topics.
    """
    used = np.flatnonzero(totals > 0)
    top = float(parts[used].max(initial=0.0)) or 1.0
    xs = np.round(4.0 + (_LINE_WIDTH - 8.0) * used / max(len(names) - 1, 1), 1)
    lines = []
    for k, topic in enumerate(topics):
        values = parts[used, k]
        ys = np.round(_LINE_HEIGHT - 2.0 - (_LINE_HEIGHT - 8.0) * values / top, 1)
        best = int(values.argmax())
        dots = tuple(
            (float(x), float(y), f"{names[period]}: {percent(float(value))} of {totals[period]}")
            for x, y, period, value in zip(xs, ys, used.tolist(), values, strict=True)
        )
        points = " ".join(f"{x},{y}" for x, y in zip(xs, ys, strict=True))
        lines.append(TimeLine(k + 1, topic, hue(k), points, float(values[best]), names[int(used[best])], dots))
    return TimeChart(tuple(lines), names[0], names[-1], top, _LINE_WIDTH, _LINE_HEIGHT)
