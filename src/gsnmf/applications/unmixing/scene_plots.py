"""Plots of an unmixed scene: spectra, maps of abundances, and chosen pixels. Public in `gsnmf.plotting`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gsnmf.support.optional import axes_or_new, import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gsnmf.applications.unmixing.unmixing_result import Unmixing

_MOST_ACROSS = 4
"""Maps side by side."""


def plot_spectra(result: Unmixing, *, ax: Axes | None = None) -> Axes:
    """The spectra of all endmembers over the wavelengths, or over the bands where those are unknown.

    Parameters
    ----------
    result : Unmixing
    ax : Axes, optional
        The axes to draw on; new ones by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.applications import unmix
    >>> from matplotlib.figure import Figure
    >>> result = unmix(np.random.default_rng(0).random((10, 10, 12)), 3, method="spa")
    >>> len(plot_spectra(result, ax=Figure().add_subplot()).lines)
    3
    """
    axes = axes_or_new(ax, "drawing spectra")
    bands, label = result.band_axis
    order = np.argsort(bands, kind="stable")
    for spectrum, name in zip(result.endmembers, result.names, strict=True):
        axes.plot(bands[order], spectrum[order], label=name)
    axes.set_xlabel(label)
    axes.set_ylabel("value in the units of the scene")
    axes.set_xlim(float(bands.min()), float(bands.max()) if bands.size > 1 else float(bands.min()) + 1.0)
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    return axes


def plot_maps(result: Unmixing) -> Figure:
    """The abundances of every endmember as maps on one scale, with a colour bar.

    Parameters
    ----------
    result : Unmixing

    Returns
    -------
    Figure
        With one axes per endmember.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from gsnmf.applications import unmix
    >>> figure = plot_maps(unmix(np.random.default_rng(0).random((10, 10, 12)), 3, method="spa"))
    >>> matplotlib.pyplot.close(figure)
    """
    r = len(result.endmembers)
    n_across = min(r, _MOST_ACROSS)
    n_down = -(-r // n_across)
    pyplot = import_optional("matplotlib.pyplot", "drawing maps", 'pip install "gsnmf[plots]"')
    figure: Figure = pyplot.figure(figsize=(3.2 * n_across, 3.2 * n_down), layout="constrained")
    grid = figure.subplots(n_down, n_across, squeeze=False).ravel()
    top = 1.0 if result.sum_to_one else float(np.nanmax(result.abundances))
    for axes, k in zip(grid, range(r), strict=False):
        image = axes.imshow(result.abundances[..., k], cmap="viridis", vmin=0.0, vmax=top)
        axes.set_title(result.names[k], fontsize="medium")
    for axes in grid:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(grid), label="abundance", shrink=0.8)
    return figure


def plot_chosen_pixels(result: Unmixing, *, ax: Axes | None = None) -> Axes:
    """The chosen pixels with their numbers, and the pixels averaged with them, on a picture of the scene.

    Parameters
    ----------
    result : Unmixing
    ax : Axes, optional
        The axes to draw on; new ones by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.applications import unmix
    >>> from matplotlib.figure import Figure
    >>> result = unmix(np.random.default_rng(0).random((10, 10, 12)), 3, method="spa")
    >>> len(plot_chosen_pixels(result, ax=Figure().add_subplot()).images)
    1
    """
    axes = axes_or_new(ax, "drawing chosen pixels")
    axes.imshow(result.picture)
    for k, ((row, column), own) in enumerate(zip(result.pixels, result.members, strict=True)):
        colour = f"C{k % 10}"
        axes.plot(own[:, 1], own[:, 0], "o", markersize=4, color=colour, markeredgecolor="white", markeredgewidth=0.5)
        for edge, width in (("white", 4), (colour, 2)):
            axes.plot(column, row, "o", markersize=14, mfc="none", markeredgecolor=edge, markeredgewidth=width)
        axes.annotate(
            str(k + 1), (column, row), xytext=(9, 9), textcoords="offset points", color="white", fontweight="bold",
            bbox={"boxstyle": "round,pad=0.2", "facecolor": colour, "edgecolor": "white"},
        )  # fmt: skip
    axes.set_axis_off()
    return axes
