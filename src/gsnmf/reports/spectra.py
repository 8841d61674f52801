"""Spectra as coordinates, for a template to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gsnmf.reports.charts import Tick
from gsnmf.support.arrays import Doubles, Floats

WIDTH, HEIGHT = 640.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 16.0, 14.0, 56.0
_N_BINS = 20
N_COLOURS = 8
"""Number of colours in the style sheet; further spectra reuse them, dashed."""


@dataclass(frozen=True)
class Curve:
    """One spectrum: the SVG points of each stretch without a gap, and its colour."""

    name: str
    stretches: tuple[str, ...]
    css_class: str


@dataclass(frozen=True)
class SpectraChart:
    """Spectra over wavelengths or bands."""

    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_label: str
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM
    width: float = WIDTH
    height: float = HEIGHT


def colour_class(number: int) -> str:
    """The class of the colour of a spectrum, counted from 0."""
    return f"c{number % N_COLOURS}{' dashed' if number >= N_COLOURS else ''}"


def spectra_chart(bands: Floats, spectra: Floats, names: Sequence[str], x_label: str, first: int = 0) -> SpectraChart:
    """Lines of spectra; ``first`` is the number of the first one, which sets its colour."""
    order = np.argsort(bands, kind="stable")
    x, values = np.asarray(bands, dtype=np.float64)[order], np.asarray(spectra, dtype=np.float64)[:, order]
    low, high = float(x[0]), float(x[-1])
    if high <= low:
        low, high = low - 1.0, high + 1.0
    top = float(np.nanmax(values, initial=0.0)) or 1.0
    y_values = _round_steps(0.0, top)
    top = max(top, y_values[-1])

    def across(value: float) -> float:
        return round(_LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT), 1)

    def down(value: float) -> float:
        return round(HEIGHT - _BOTTOM - value / top * (HEIGHT - _TOP - _BOTTOM), 1)

    curves = []
    for k, (name, row) in enumerate(zip(names, values, strict=True), first):
        points = [(across(float(u)), down(float(v))) if np.isfinite(v) else None for u, v in zip(x, row, strict=True)]
        curves.append(Curve(name, _stretches(points), colour_class(k)))
    return SpectraChart(
        curves=tuple(curves),
        x_ticks=tuple((across(v), f"{v:g}") for v in _round_steps(low, high)),
        y_ticks=tuple((down(v), f"{v:g}") for v in y_values),
        x_label=x_label,
    )


def abundance_histogram(
    abundances: Doubles, top: float, n_bins: int = 20
) -> tuple[tuple[float, float, float, str], ...]:
    """Bars of a small histogram over [0, top] in a box of 100 x 40: x, y, height, and what the bar says.

    Heights follow the square root of the counts: most pixels hold none of most materials, and one bar would dwarf all
    others.
    """
    counts, edges = np.histogram(abundances, bins=_N_BINS, range=(0.0, top))
    largest = math.sqrt(max(1, int(counts.max())))
    width = 100.0 / _N_BINS
    return tuple(
        (
            round(k * width, 2),
            round(40.0 - 40.0 * math.sqrt(count) / largest, 2),
            round(40.0 * math.sqrt(count) / largest, 2),
            f"{count} pixels from {edges[k]:.2g} to {edges[k + 1]:.2g}",
        )
        for k, count in enumerate(counts.tolist())
        if count
    )


def _stretches(points: list[tuple[float, float] | None]) -> tuple[str, ...]:
    found: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            found.append([])
        else:
            found[-1].append(point)
    return tuple(" ".join(f"{x},{y}" for x, y in _drawable(part)) for part in found if part)


def _drawable(part: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A single point becomes a short line, which can be seen."""
    if len(part) > 1:
        return part
    x, y = part[0]
    return [(round(x - 3.0, 1), y), (round(x + 3.0, 1), y)]


def _round_steps(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to ``high``, about five of them."""
    rough = (high - low) / 5.0
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]
