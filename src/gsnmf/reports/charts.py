"""Charts as SVG coordinates, which a template draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gsnmf.support.arrays import Floats, Indices
from gsnmf.support.formatting import percent

Tick = tuple[float, str]


@dataclass(frozen=True)
class Frame:
    """The rectangle between the axes of a chart, and the ranges of the data along them.

    Examples
    --------
    >>> frame = Frame((0.0, 10.0), (0.0, 1.0), left=50.0, right=150.0, top=0.0, bottom=100.0)
    >>> frame.at(5.0, 0.25)
    (100.0, 75.0)
    >>> frame.line([0, 10], [0, 1])
    '50.0,100.0 150.0,0.0'
    """

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 52.0
    right: float = 508.0
    top: float = 14.0
    bottom: float = 226.0
    width: float = 640.0
    height: float = 260.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The point of the picture at a pair of values, to a tenth."""
        across, up = ((value - low) / (high - low) for value, (low, high) in ((x, self.x_range), (y, self.y_range)))
        right = self.left + across * (self.right - self.left)
        return round(right, 1), round(self.bottom - up * (self.bottom - self.top), 1)

    def line(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """Points of a polyline."""
        return " ".join("{},{}".format(*self.at(float(x), float(y))) for x, y in zip(xs, ys, strict=True))

    def x_ticks(self, steps: Sequence[float], label: Callable[[float], str] = "{:g}".format) -> tuple[Tick, ...]:
        """Places and labels along the horizontal axis."""
        return tuple((self.at(step, self.y_range[0])[0], label(step)) for step in steps)

    def y_ticks(self, steps: Sequence[float], label: Callable[[float], str] = "{:g}".format) -> tuple[Tick, ...]:
        """Places and labels along the vertical axis."""
        return tuple((self.at(self.x_range[0], step)[1], label(step)) for step in steps)


def round_steps(low: float, high: float, count: int = 5, *, cover: bool = False, whole: bool = False) -> list[float]:
    """About ``count`` round numbers from ``low`` to ``high``, for the ticks of an axis.

    Parameters
    ----------
    low, high : float
    count : int
        Largest number of steps between them.
    cover : bool
        End at or above ``high`` instead of at or below it.
    whole : bool
        Only whole numbers.

    Examples
    --------
    >>> round_steps(0.0, 0.87), round_steps(0.0, 0.87, cover=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    if high <= low:
        return [low, low + 1.0]
    least = max((high - low) / count, 1.0 if whole else 0.0)
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(unit * k for k in ((1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)) if unit * k >= 0.999 * least)
    last = math.ceil(high / step - 1e-3) if cover else math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), last + 1)]


@dataclass(frozen=True)
class Line:
    """One line of a chart: its SVG points, its label, and where the label stands."""

    label: str
    css_class: str
    points: str
    label_x: float
    label_y: float


@dataclass(frozen=True)
class LineChart:
    """Lines over ranks; ``dots`` are x, y and text."""

    frame: Frame
    lines: tuple[Line, ...]
    dots: tuple[tuple[float, float, str], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class Histogram:
    """Counts over relative errors; ``bars`` are x, y, width, height and text."""

    frame: Frame
    bars: tuple[tuple[float, float, float, float, str], ...]
    x_ticks: tuple[Tick, ...]
    largest: int


def rank_chart(series: Sequence[tuple[str, str, Floats]], ranks: Indices | None = None) -> LineChart:
    """Qualities by rank; a series is a label, a CSS class, and qualities of all ranks, by default from rank 0 on."""
    shown = np.arange(max(values.size for _, _, values in series)) if ranks is None else ranks
    first, last = int(shown[0]), max(int(shown[0]) + 1, int(shown[-1]))
    y_steps = round_steps(0.0, max(float(values.max()) for _, _, values in series), 4, cover=True)
    frame = Frame((first, last), (0.0, max(y_steps[-1], 1e-12)))
    lines, dots = [], []
    for label, css_class, values in series:
        qualities = np.maximum(values, 0.0)
        places = shown[: values.size]
        end = frame.at(places[-1], qualities[-1])
        lines.append(Line(label, css_class, frame.line(places, qualities), *end))
        if css_class == "ours" and last <= 60:  # more dots than this would hide the line
            named = zip(places, qualities, values, strict=True)
            dots = [(*frame.at(k, height), f"rank {k}: {percent(float(q))}") for k, height, q in named if k > 0]
    x_steps = [step for step in round_steps(0, last, 8, whole=True) if step >= first]
    return LineChart(frame, _apart(lines), tuple(dots), frame.x_ticks(x_steps), frame.y_ticks(y_steps, _share))


def histogram(errors: Floats, n_bins: int = 24) -> Histogram:
    """How many relative errors there are of each size; infinite ones are left out."""
    finite = errors[np.isfinite(errors)]
    steps = round_steps(0.0, float(finite.max(initial=0.0)) or 1.0, 4, cover=True)
    counts, edges = np.histogram(finite, bins=n_bins, range=(0.0, steps[-1]))
    largest = max(1, int(counts.max()))
    frame = Frame((0.0, steps[-1]), (0.0, largest), right=628.0)
    bars = []
    for count, low, high in zip(counts.tolist(), edges, edges[1:], strict=False):
        (left, top), (right, bottom) = frame.at(low, count), frame.at(high, 0)
        label = f"{count} with an error from {percent(low)} to {percent(high)}"
        if count:  # a gap of two between bars
            bars.append((round(left + 1, 1), top, round(right - left - 2, 1), round(bottom - top, 1), label))
    return Histogram(frame, tuple(bars), frame.x_ticks(steps, _share), largest)


def _share(step: float) -> str:
    return f"{100 * step:g} %"


def _apart(lines: Sequence[Line], least: float = 17.0) -> tuple[Line, ...]:
    """Move labels down until each is at least the height of a line of text below the one above it."""
    heights = [line.label_y for line in lines]
    for above, below in pairwise(sorted(range(len(lines)), key=heights.__getitem__)):
        heights[below] = max(heights[below], heights[above] + least)
    return tuple(replace(line, label_y=height) for line, height in zip(lines, heights, strict=True))
