"""Pictures of an unmixing, on Matplotlib axes: spectra, maps, and where the endmembers come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gsnmf.support.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gsnmf.applications.unmixing.result import Unmixing

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
    >>> from matplotlib.figure import Figure
    >>> import numpy as np
    >>> from gsnmf.applications import unmix
    >>> spectra = np.random.default_rng(0).random((3, 12))
    >>> shares = np.random.default_rng(1).dirichlet([0.3] * 3, (10, 10))
    >>> result = unmix(shares @ spectra, 3, method="spa")
    >>> len(plot_spectra(result, ax=Figure().add_subplot()).lines)
    3
    """
    axes = ax or _axes()
    bands, label = abscissa(result)
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
    >>> spectra = np.random.default_rng(0).random((3, 12))
    >>> shares = np.random.default_rng(1).dirichlet([0.3] * 3, (10, 10))
    >>> result = unmix(shares @ spectra, 3, method="spa")
    >>> figure = plot_maps(result)
    >>> matplotlib.pyplot.close(figure)
    """
    r = len(result.endmembers)
    n_across = min(r, _MOST_ACROSS)
    figure: Figure = _pyplot().figure(figsize=(3.2 * n_across, 3.2 * -(-r // n_across)), layout="constrained")
    grid = np.atleast_1d(figure.subplots(-(-r // n_across), n_across, squeeze=False)).ravel()
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
    >>> from matplotlib.figure import Figure
    >>> import numpy as np
    >>> from gsnmf.applications import unmix
    >>> spectra = np.random.default_rng(0).random((3, 12))
    >>> shares = np.random.default_rng(1).dirichlet([0.3] * 3, (10, 10))
    >>> result = unmix(shares @ spectra, 3, method="spa")
    >>> axes = plot_chosen_pixels(result, ax=Figure().add_subplot())
    >>> len(axes.images)
    1
    """
    axes = ax or _axes()
    axes.imshow(result.picture)
    for k, ((row, column), own) in enumerate(zip(result.pixels, result.members, strict=True)):
        colour = f"C{k % 10}"
        axes.plot(own[:, 1], own[:, 0], "o", markersize=4, color=colour, markeredgecolor="white", markeredgewidth=0.5)
        axes.plot(column, row, "o", markersize=14, markerfacecolor="none", markeredgecolor="white", markeredgewidth=4)
        axes.plot(column, row, "o", markersize=14, markerfacecolor="none", markeredgecolor=colour, markeredgewidth=2)
        axes.annotate(
            str(k + 1), (column, row), xytext=(9, 9), textcoords="offset points", color="white", fontweight="bold",
            bbox={"boxstyle": "round,pad=0.2", "facecolor": colour, "edgecolor": "white"},
        )  # fmt: skip
    axes.set_axis_off()
    return axes


def abscissa(result: Unmixing) -> tuple[Any, str]:
    """Wavelengths or numbers of the bands, and what to write below them."""
    if result.wavelengths is None:
        return np.arange(result.endmembers.shape[1], dtype=np.float64), "band"
    return result.wavelengths, f"wavelength [{result.wavelength_unit}]"


def _pyplot() -> Any:
    return import_optional("matplotlib.pyplot", "drawing an unmixing", 'pip install "gsnmf[plots]"')


def _axes() -> Axes:
    axes: Axes = _pyplot().subplots(layout="constrained")[1]
    return axes
