"""Pictures in the house style: colours for colour-blind readers, and shapes for print without colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from gsnmf.support.arrays import Floats
from reproduction.methods import LABELS

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
"""Okabe and Ito's colours."""

_STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "gsnmf",
    "image.interpolation": "nearest",
}

_LINES: dict[str, dict[str, Any]] = {
    "gs-fgm": {"color": BLUE, "marker": "o", "linewidth": 2.2, "zorder": 5},
    "gspa": {"color": VERMILION, "marker": "s"},
    "spa-both": {"color": GREEN, "marker": "^"},
    "spa-columns": {"color": ORANGE, "marker": "v"},
    "spa-rows": {"color": PURPLE, "marker": ">"},
    "nmf": {"color": GREY, "marker": "x", "linestyle": "--"},
    "minimum-volume": {"color": GREY, "marker": "+", "linestyle": ":", "markersize": 6},
    "convex": {"color": SKY, "marker": "D", "linestyle": "--", "markersize": 3, "zorder": 6},
    "auto": {"color": BLACK, "marker": ".", "linestyle": "-.", "zorder": 7, "linewidth": 1.0},
    "snpa": {"color": BLUE, "marker": "o", "markersize": 7.5},
    "xray": {"color": ORANGE, "marker": "s"},
    "fgnsr": {"color": GREEN, "marker": "^"},
    "spa": {"color": BLACK, "marker": "x", "linewidth": 2.2},
}


def need_matplotlib() -> None:
    """Say what to install if pictures cannot be made."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError('pictures need Matplotlib; pip install "gsnmf[plots]"') from None


@contextmanager
def picture(out: Path, name: str, size: tuple[float, float], **grid: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes (an array of ``nrows`` x ``ncols``), saved as PNG and SVG in ``out / "figures"``."""
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(cast("Any", _STYLE))
        figure = Figure(figsize=size)
        axes = figure.subplots(squeeze=False, **grid)
        yield figure, axes
        folder = out / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{name}.png", metadata={"Software": None})
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def line_style(method: str) -> dict[str, Any]:
    """Colour, marker and dashes of a method's line."""
    return _LINES.get(method) or _LINES[method.partition("-")[0]]


def draw_lines(axes: Any, table: pd.DataFrame) -> None:
    """One line per column, which has the name of a method, over the index."""
    for method, values in table.items():
        axes.plot(values, label=LABELS[str(method)], markerfacecolor="white", **line_style(str(method)))


def show_image(axes: Any, image: Floats, title: str = "", *, cmap: str = "gray", **limits: Any) -> None:
    """An image, grey or in colours, without axes."""
    axes.imshow(image, cmap=cmap, **limits)
    axes.set_axis_off()
    if title:
        axes.set_title(title, fontweight="normal", fontsize=8, loc="center")


def mark_chosen(axes: Any, shape: tuple[int, ...], columns: Iterable[int], rows: Iterable[int]) -> None:
    """Frames around columns (blue) and rows (orange) of a matrix that is shown as an image."""
    from matplotlib.patches import Rectangle

    m, n = shape
    frames = [((j - 0.5, -0.5), 1, m, BLUE) for j in columns] + [((-0.5, i - 0.5), n, 1, VERMILION) for i in rows]
    for corner, width, height, colour in frames:
        axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=colour, linewidth=2.5, clip_on=False))


def montage(images: Sequence[Floats], n_columns: int, *, gap: int = 1) -> Floats:
    """Images side by side with white gaps, each scaled from its smallest to its largest value.

    Examples
    --------
    >>> montage([np.array([[0.0, 2.0]]), np.array([[1.0, 1.0]])], 2)
    array([[0., 1., 1., 0., 0.]])
    """
    height, width = images[0].shape
    n_rows = -(-len(images) // n_columns)
    sheet = np.ones((n_rows * (height + gap) - gap, n_columns * (width + gap) - gap))
    for number, image in enumerate(images):
        row, column = divmod(number, n_columns)
        top, left = row * (height + gap), column * (width + gap)
        sheet[top : top + height, left : left + width] = stretched(image)
    return sheet


def stretched(image: Floats) -> Floats:
    """Values from 0, the smallest, to 1, the largest."""
    low, high = float(image.min()), float(image.max())
    return np.asarray((image - low) / (high - low) if high > low else np.zeros_like(image))
