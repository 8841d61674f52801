"""The page of a scene: endmembers as spectra, abundances as maps, and how far to trust them.

`gather_scene` collects what there is to say from plain arrays, and `render_scene` makes one file of HTML that opens
offline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gsnmf.reports.maps import Scale, colour_scale, rgb_map, rounded, value_map
from gsnmf.reports.page import environment
from gsnmf.reports.spectra import SpectraChart, abundance_histogram, colour_class, spectra_chart
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.formatting import counted, percent, shown
from gsnmf.support.version import __version__


@dataclass(frozen=True)
class SceneArrays:
    """What was found in a scene.

    Attributes
    ----------
    endmembers : array, shape (r, bands)
        NaN in bands that were left out.
    names : sequence of str
        One per endmember.
    band_positions : array, shape (bands,)
        Wavelengths, or numbers of bands.
    band_label : str
        What these are, with their unit.
    pixels : int array, shape (n, 2)
        Row and column of chosen pixels.
    members : sequence of int arrays, shape (n_members, 2)
        Pixels that are averaged with each.
    abundances : array, shape (height, width, r)
    residuals : array, shape (height, width)
    picture : uint8 array, shape (height, width, 3)
    angles : array, shape (r, r)
        In degrees.
    relative_error : float
    sum_to_one : bool
    """

    endmembers: Doubles
    names: Sequence[str]
    band_positions: Floats
    band_label: str
    pixels: Indices
    members: Sequence[Indices]
    abundances: Floats
    residuals: Floats
    picture: NDArray[np.uint8]
    angles: Doubles
    relative_error: float
    sum_to_one: bool


@dataclass(frozen=True)
class EndmemberView:
    """One endmember: its spectrum, its map, its histogram."""

    number: int
    name: str
    css_class: str
    chart: SpectraChart
    map: str
    bars: tuple[tuple[float, float, float, str], ...]
    mean: float
    n_largest: int
    n_members: int
    nearest: str


@dataclass(frozen=True)
class Mark:
    """A chosen pixel on the picture, in points of the picture."""

    x: float
    y: float
    number: int
    css_class: str
    name: str
    others: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class SceneFindings:
    """What the page says, section by section."""

    title: str
    source: str
    sentence: str
    height: int
    width: int
    n_bands: int
    chart: SpectraChart
    endmembers: tuple[EndmemberView, ...]
    picture: str
    marks: tuple[Mark, ...]
    mark_size: float
    scale: Scale
    residual_map: str
    residual_scale: Scale
    residual_quantiles: tuple[tuple[str, str], ...]
    angles: tuple[tuple[str, ...], ...]
    parameters: Mapping[str, str]
    notes: tuple[str, ...]


def gather_scene(
    scene: SceneArrays, *, title: str = "", source: str = "", parameters: Mapping[str, str], notes: Sequence[str] = ()
) -> SceneFindings:
    """Gather what the page of a scene says.

    Parameters
    ----------
    scene : SceneArrays
    title, source : str
        What the scene is, and where it came from.
    parameters : mapping of str to str
        How the result was made.
    notes : sequence of str
        What was left out and what was decided.
    """
    height, width, r = scene.abundances.shape
    top = 1.0 if scene.sum_to_one else float(np.nanmax(scene.abundances)) or 1.0
    finite = scene.residuals[np.isfinite(scene.residuals)]
    residual_top = float(np.quantile(finite, 0.99)) or float(finite.max()) or 1.0
    names = [shown(name) for name in scene.names]
    quality = percent(max(0.0, 1.0 - scene.relative_error))
    return SceneFindings(
        title=shown(title or "A scene"),
        source=shown(source),
        sentence=f"{counted(r, 'endmember')} explain{'s' if r == 1 else ''} {quality} of a scene of "
        f"{height} × {width} pixels",
        height=height,
        width=width,
        n_bands=scene.endmembers.shape[1],
        chart=spectra_chart(scene.band_positions, scene.endmembers, names, scene.band_label),
        endmembers=tuple(_view(scene, k, names, top) for k in range(r)),
        picture=rgb_map(scene.picture),
        marks=tuple(_mark(k, names[k], scene.pixels[k], scene.members[k]) for k in range(len(scene.pixels))),
        mark_size=max(height, width) / 34.0,
        scale=colour_scale(0.0, top),
        residual_map=value_map(scene.residuals, residual_top),
        residual_scale=colour_scale(0.0, residual_top),
        residual_quantiles=tuple(
            (name, rounded(float(np.quantile(finite, q))))
            for name, q in (("smallest", 0.0), ("median", 0.5), ("95 %", 0.95), ("largest", 1.0))
        ),
        angles=tuple(tuple(f"{angle:.1f}" for angle in row) for row in scene.angles),
        parameters=dict(parameters),
        notes=tuple(notes),
    )


def render_scene(findings: SceneFindings) -> str:
    """The whole page; all names are escaped."""
    return environment().get_template("scene.html").render(f=findings, version=__version__)


def _view(scene: SceneArrays, k: int, names: Sequence[str], top: float) -> EndmemberView:
    abundances = scene.abundances[..., k]
    valid = np.isfinite(abundances)
    filled = np.where(np.isfinite(scene.abundances), scene.abundances, -1.0)
    others = [(float(scene.angles[k, i]), i) for i in range(len(names)) if i != k]
    nearest = f"{min(others)[0]:.1f}° from {names[min(others)[1]]}" if others else ""
    return EndmemberView(
        number=k + 1,
        name=names[k],
        css_class=colour_class(k),
        chart=spectra_chart(scene.band_positions, scene.endmembers[k : k + 1], names[k : k + 1], scene.band_label, k),
        map=value_map(abundances, top),
        bars=abundance_histogram(np.asarray(abundances[valid], dtype=np.float64), top),
        mean=float(abundances[valid].mean(dtype=np.float64)),
        n_largest=int(np.count_nonzero((filled.argmax(axis=2) == k) & valid)),
        n_members=len(scene.members[k]) if k < len(scene.members) else 0,
        nearest=nearest,
    )


def _mark(k: int, name: str, pixel: Indices, members: Indices) -> Mark:
    others = tuple((float(column) + 0.5, float(row) + 0.5) for row, column in members)
    return Mark(float(pixel[1]) + 0.5, float(pixel[0]) + 0.5, k + 1, colour_class(k), name, others)
