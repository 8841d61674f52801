"""The report of an unmixing: one page of HTML with spectra, maps and residuals, which opens offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.applications.unmixing.endmember_extraction import ENDMEMBER_METHODS
from gsnmf.reports.charts import Frame, round_steps
from gsnmf.reports.page import environment
from gsnmf.reports.pictures import colour_picture, reduced
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.formatting import counted, percent, shown
from gsnmf.support.version import __version__

if TYPE_CHECKING:
    from gsnmf.applications.unmixing.unmixing_result import Unmixing

_N_COLOURS = 8
"""Number of colours in the style sheet; further spectra reuse them, dashed."""
_N_BINS = 20
_MAX_SIDE = 480
"""Longest side of a map in points; larger maps are averaged down."""
_COLOUR_RAMP = np.array([(26, 20, 62), (34, 76, 138), (24, 142, 140), (112, 196, 92), (252, 231, 60)], dtype=np.float64)
"""Colours from the smallest to the largest value, of increasing lightness."""


def render_scene(result: Unmixing, title: str, parameters: Mapping[str, str]) -> str:
    """The whole page; all names are escaped. ``parameters`` say how the result was made, beyond what it records."""
    page = environment().get_template("scene.html")
    return page.render(f=_findings(result, title, parameters), version=__version__)


def _findings(result: Unmixing, title: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """What the template shows, by the names that it uses."""
    height, width, r = result.abundances.shape
    names = [shown(name) for name in result.names]
    top = 1.0 if result.sum_to_one else float(np.nanmax(result.abundances)) or 1.0
    residuals = result.residual_map[result.valid]
    residual_top = float(np.quantile(residuals, 0.99)) or float(residuals.max()) or 1.0
    quantiles = (("smallest", 0.0), ("median", 0.5), ("95 %", 0.95), ("largest", 1.0))
    quality = percent(max(0.0, result.quality))
    return {
        "title": shown(title or PurePath(result.source).name or "A scene"),
        "source": shown(result.source),
        "sentence": f"{counted(r, 'endmember')} explain{'s' * (r == 1)} {quality} of a scene of "
        f"{height} × {width} pixels",
        "height": height,
        "width": width,
        "n_bands": result.endmembers.shape[1],
        "chart": _spectra_chart(*result.band_axis, result.endmembers, names),
        "endmembers": _endmembers(result, names, top),
        "picture": _rgb_map(result.picture),
        "marks": _chosen_pixels(result, names),
        "mark_size": max(height, width) / 34.0,
        "scale": _colour_scale(top),
        "residual_map": _value_map(result.residual_map, residual_top),
        "residual_scale": _colour_scale(residual_top),
        "residual_quantiles": [(name, _rounded(float(np.quantile(residuals, q)))) for name, q in quantiles],
        "angles": [[f"{angle:.1f}" for angle in row] for row in result.angles],
        "parameters": _how_made(result) | dict(parameters),
        "notes": result.notes,
    }


def _how_made(result: Unmixing) -> dict[str, str]:
    method = ENDMEMBER_METHODS.get(result.method)
    counts = [len(own) for own in result.members] or [0]
    averaged = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return {
        "Method": f"{result.method}: {method.title}" if method else result.method,
        "Normalisation of pixels for the choice": result.normalize,
        "Pixels averaged per endmember": averaged,
        "Abundances": "nonnegative, sum to one" if result.sum_to_one else "nonnegative",
        **({"Number of endmembers": f"{result.rank_choice.number}, by HySime"} if result.rank_choice else {}),
        "gsnmf": __version__,
    }


def _endmembers(result: Unmixing, names: Sequence[str], top: float) -> list[dict[str, Any]]:
    """Spectrum, map and histogram of each endmember."""
    bands, label = result.band_axis
    means, dominant, angles = result.mean_abundances, result.dominant(), result.angles
    cards = []
    for k, name in enumerate(names):
        others = sorted((float(angles[k, i]), i) for i in range(len(names)) if i != k)
        abundances = result.abundances[..., k]
        card = {
            "number": k + 1,
            "name": name,
            "css_class": _colour_class(k),
            "chart": _spectra_chart(bands, label, result.endmembers[k : k + 1], [name], first=k),
            "map": _value_map(abundances, top),
            "bars": _histogram(abundances[result.valid], top),
            "mean": float(means[k]),
            "n_largest": int(np.count_nonzero(dominant == k)),
            "n_members": len(result.members[k]) if k < len(result.members) else 0,
            "nearest": f"{others[0][0]:.1f}° from {names[others[0][1]]}" if others else "",
        }
        cards.append(card)
    return cards


def _chosen_pixels(result: Unmixing, names: Sequence[str]) -> list[dict[str, Any]]:
    """Places on the picture of each chosen pixel and of those that are averaged with it."""
    marks = []
    for k, (pixel, members) in enumerate(zip(result.pixels, result.members, strict=True)):
        (y, x), others = (pixel + 0.5).tolist(), (members[:, ::-1] + 0.5).tolist()  # centres of pixels
        mark = {"x": x, "y": y, "number": k + 1, "css_class": _colour_class(k), "name": names[k], "others": others}
        marks.append(mark)
    return marks


def _colour_class(number: int) -> str:
    """The CSS class of the colour of a spectrum, counted from 0."""
    return f"c{number % _N_COLOURS}{' dashed' if number >= _N_COLOURS else ''}"


def _spectra_chart(
    bands: Floats, x_label: str, spectra: Floats, names: Sequence[str], first: int = 0
) -> dict[str, Any]:
    """Lines of spectra; ``first`` is the number of the first one, which sets its colour."""
    order = np.argsort(bands, kind="stable")
    x, values = np.asarray(bands, dtype=np.float64)[order], np.asarray(spectra, dtype=np.float64)[:, order]
    low, high = float(x[0]), float(x[-1])
    if high <= low:
        low, high = low - 1.0, high + 1.0
    top = float(np.nanmax(values, initial=0.0)) or 1.0
    steps = round_steps(0.0, top)
    frame = Frame((low, high), (0.0, max(top, steps[-1])), left=66.0, right=624.0, top=14.0, bottom=264.0, height=320.0)

    def stretches(row: Doubles) -> Iterator[str]:
        """Points of each stretch of finite values; a single one becomes a short line, which can be seen."""
        between: Any = np.ma.clump_unmasked
        for part in between(np.ma.masked_invalid(row)):
            if part.stop - part.start > 1:
                yield frame.line(x[part], row[part])
            else:
                u, v = frame.at(x[part.start], row[part.start])
                yield f"{u - 3.0:.1f},{v} {u + 3.0:.1f},{v}"

    numbered = enumerate(zip(names, values, strict=True), first)
    return {
        "frame": frame,
        "curves": [
            {"name": name, "stretches": list(stretches(row)), "css_class": _colour_class(k)}
            for k, (name, row) in numbered
        ],
        "x_ticks": frame.x_ticks(round_steps(low, high)),
        "y_ticks": frame.y_ticks(steps),
        "x_label": x_label,
    }


def _histogram(abundances: Floats, top: float) -> tuple[tuple[float, float, float, str], ...]:
    """Bars of a small histogram over [0, top] in a box of 100 x 40: x, y, height, and the title of the bar.

    Heights follow the square root of the counts: most pixels hold none of most materials, and one bar would dwarf all
    others.
    """
    counts, edges = np.histogram(abundances.astype(np.float64), bins=_N_BINS, range=(0.0, top))
    heights = 40.0 * np.sqrt(counts / max(1, int(counts.max())))
    return tuple(
        (
            round(k * 100.0 / _N_BINS, 2),
            round(40.0 - float(heights[k]), 2),
            round(float(heights[k]), 2),
            f"{count} pixels from {edges[k]:.2g} to {edges[k + 1]:.2g}",
        )
        for k, count in enumerate(counts.tolist())
        if count
    )


def _value_map(values: Floats, top: float) -> str:
    """Values from 0 to ``top`` as a picture, transparent where they are not finite."""
    return colour_picture(_colours(reduced(values, _MAX_SIDE) / top))


def _rgb_map(picture: NDArray[np.uint8]) -> str:
    channels = [reduced(picture[..., k].astype(np.float64), _MAX_SIDE) for k in range(3)]
    return colour_picture(np.round(np.dstack([*channels, np.full_like(channels[0], 255.0)])).astype(np.uint8))


def _colour_scale(high: float) -> dict[str, str]:
    """What the colours of a map mean: the values at its ends, and a strip of all colours."""
    return {"low": "0", "high": _rounded(high), "strip": colour_picture(_colours(np.linspace(0.0, 1.0, 128)[None]))}


def _colours(fractions: Doubles) -> NDArray[np.uint8]:
    """Red, green, blue and opacity of values between 0 and 1, shape (height, width, 4)."""
    finite = np.isfinite(fractions)
    at = np.clip(np.where(finite, fractions, 0.0), 0.0, 1.0)
    places = np.linspace(0.0, 1.0, len(_COLOUR_RAMP))
    channels = [np.interp(at, places, _COLOUR_RAMP[:, k]) for k in range(3)]
    return np.round(np.dstack([*channels, np.where(finite, 255.0, 0.0)])).astype(np.uint8)


def _rounded(value: float) -> str:
    """A number with three digits, without an exponent if it is readable without: 1840, 0.0123, 1.5e-09."""
    return f"{float(f'{value:.3g}'):g}"
