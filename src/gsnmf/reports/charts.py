"""Charts as coordinates, for a template to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gsnmf.support.arrays import Floats, Indices
from gsnmf.support.formatting import percent

WIDTH, HEIGHT = 640.0, 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 132.0, 14.0, 34.0

Tick = tuple[float, str]


@dataclass(frozen=True)
class Line:
    """One line of a chart: its SVG points, its label, and where the label stands."""

    label: str
    css_class: str
    points: str
    end: tuple[float, float]
    label_y: float


@dataclass(frozen=True)
class LineChart:
    """Lines over the ranks from 0 on."""

    lines: tuple[Line, ...]
    dots: tuple[tuple[float, float, str], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    right: float = WIDTH - _RIGHT
    bottom: float = HEIGHT - _BOTTOM
    left: float = _LEFT


@dataclass(frozen=True)
class Histogram:
    """Bars of counts over relative errors."""

    bars: tuple[tuple[float, float, float, float, str], ...]
    """x, y, width, height, and what the bar says."""
    x_ticks: tuple[Tick, ...]
    largest: int
    bottom: float = HEIGHT - _BOTTOM
    left: float = _LEFT


def rank_chart(series: Sequence[tuple[str, str, Floats]], ranks: Indices | None = None) -> LineChart:
    """Qualities by rank; a series is a label, a CSS class, and qualities of all ranks, by default from rank 0 on."""
    shown = np.arange(max(values.size for _, _, values in series)) if ranks is None else ranks
    first, last = int(shown[0]), max(int(shown[0]) + 1, int(shown[-1]))
    steps = _steps(0.0, max(float(values.max()) for _, _, values in series))
    top = max(steps[-1], 1e-12)

    def place(k: float, quality: float) -> tuple[float, float]:
        x = _LEFT + (k - first) / (last - first) * (WIDTH - _LEFT - _RIGHT)
        return round(x, 1), round(HEIGHT - _BOTTOM - quality / top * (HEIGHT - _TOP - _BOTTOM), 1)

    lines, dots, heights = [], [], []
    for label, css_class, values in series:
        points = [place(int(k), max(0.0, float(quality))) for k, quality in zip(shown, values, strict=False)]
        heights.append(points[-1][1])
        lines.append((label, css_class, " ".join(f"{x},{y}" for x, y in points), points[-1]))
        if css_class == "ours":
            named = zip(shown, points, values, strict=False)
            dots = [(x, y, f"rank {k}: {percent(float(q))}") for k, (x, y), q in named if k > 0]
    return LineChart(
        lines=tuple(Line(*line, label_y=y) for line, y in zip(lines, _apart(heights), strict=True)),
        dots=tuple(dots) if last <= 60 else (),
        x_ticks=tuple((place(k, 0)[0], str(k)) for k in _whole_steps(last) if k >= first),
        y_ticks=tuple((place(first, step)[1], f"{100 * step:g} %") for step in steps),
    )


def histogram(errors: Floats, n_bins: int = 24) -> Histogram:
    """How many relative errors there are of each size; infinite ones are left out."""
    finite = errors[np.isfinite(errors)]
    steps = _steps(0.0, float(finite.max(initial=0.0)) or 1.0)
    counts, edges = np.histogram(finite, bins=n_bins, range=(0.0, steps[-1]))
    largest = max(1, int(counts.max()))
    width, height = WIDTH - _LEFT - 12.0, HEIGHT - _TOP - _BOTTOM
    bars = tuple(
        (
            round(_LEFT + width * k / n_bins + 1, 1),
            round(HEIGHT - _BOTTOM - height * count / largest, 1),
            round(width / n_bins - 2, 1),
            round(height * count / largest, 1),
            f"{count} with an error from {percent(edges[k])} to {percent(edges[k + 1])}",
        )
        for k, count in enumerate(counts)
        if count
    )
    ticks = tuple((round(_LEFT + width * step / steps[-1], 1), f"{100 * step:g} %") for step in steps)
    return Histogram(bars, ticks, largest)


def _steps(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to at least ``high``, about five of them."""
    if high <= low:
        return [low, low + 1.0]
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    count = math.ceil((high - low) / step * 0.999)
    return [round(low + k * step, 12) for k in range(count + 1)]


def _whole_steps(high: int) -> list[int]:
    """Whole numbers from 0 to at most ``high``, about eight of them."""
    unit = 10 ** max(0, math.floor(math.log10(max(1, high / 8))))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= high / 8)
    return list(range(0, high + 1, step))


def _apart(heights: Sequence[float], least: float = 17.0) -> list[float]:
    """Heights of labels, moved so that none is on another."""
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    placed = list(heights)
    for before, after in pairwise(order):
        placed[after] = max(placed[after], placed[before] + least)
    return placed
