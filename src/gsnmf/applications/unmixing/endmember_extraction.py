"""Choosing endmembers: the methods by their names, and the spectra that are made of the chosen pixels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.applications.unmixing.abundances import abundances_of
from gsnmf.applications.unmixing.pure_pixel_methods import (
    n_findr,
    pixel_purity_index,
    preconditioned_projection,
    vertex_component_analysis,
)
from gsnmf.applications.unmixing.scene import Scene, isolated_pixels, shortened
from gsnmf.applications.unmixing.signal_subspace import estimate_noise
from gsnmf.functions import factorize, select
from gsnmf.matrix import wrap
from gsnmf.nmf import minimum_volume
from gsnmf.search.automatic import automatic_search
from gsnmf.selection.successive_projection import smoothed_groups
from gsnmf.support.arrays import Doubles, Floats, Indices

Normalize = Literal["none", "sum", "length"]
Choose = Callable[[Floats, int, np.random.Generator], Indices]
"""Pixels (n x bands), how many to choose, random numbers; returns positions among the pixels."""

_MOST_AVERAGED = 20
"""Largest number of pixels that make up an endmember by default."""
_AVERAGED_PART = 500
"""One in this many pixels of the scene is always averaged, up to the largest number."""
_SMOOTHED_PART = 100
"""By default, one in this many pixels makes up an endmember of smooth-spa."""
_WITHIN_NOISE = 1.2
"""Spectra closer than this many times the distance that noise alone causes cannot be told apart."""
_BRIGHTEST = 0.999
"""The abundance of a pure band is one where the band is at this quantile."""


@dataclass(frozen=True)
class EndmemberMethod:
    """A way to choose pixels as endmembers.

    Attributes
    ----------
    name : str
        The ``method=`` of `gsnmf.applications.unmix`.
    title : str
        In words, with the reference.
    choose : callable
    averaged : bool
        Whether each chosen pixel is replaced by the mean of similar pixels by default.
    groups : callable or None
        Chooses all pixels of each mean itself, instead of ``choose``: takes pixels, the number of endmembers and the
        number of pixels per endmember, and returns positions among the pixels.
    """

    name: str
    title: str
    choose: Choose
    averaged: bool = False
    groups: Callable[[Floats, int, int], list[Indices]] | None = None


def search_pixels(pixels: Floats, rank: int) -> Indices:
    """Choose the pixels that explain all others best by nonnegative combinations.

    Deterministic. The error is at most that of successive projection, successive nonnegative projection and XRAY. Fewer
    than ``rank`` pixels are returned only if fewer explain everything.
    """
    matrix = wrap(np.ascontiguousarray(pixels.T))
    return automatic_search(matrix, (min(rank, len(pixels)), 0)).selection.columns


def _searched(pixels: Floats, rank: int, rng: np.random.Generator) -> Indices:
    return search_pixels(shortened(pixels), rank)


def _selected(method: str) -> Choose:
    return lambda pixels, rank, rng: select(pixels.T, rank, method=method).columns


_METHODS = (
    EndmemberMethod(
        "auto",
        "several starts, improved by exchanges of the true error; each pixel then averaged with similar ones",
        _searched,
        averaged=True,
    ),
    EndmemberMethod(
        "minimum-volume",
        "what auto chooses, moved outwards to the least volume around the pixels; where no pixel is pure",
        _searched,
        averaged=True,
    ),
    EndmemberMethod("vca", "vertex component analysis (Nascimento and Bioucas-Dias 2005)", vertex_component_analysis),
    EndmemberMethod(
        "n-findr", "the simplex of the largest volume (Winter 1999)", lambda pixels, rank, rng: n_findr(pixels, rank)
    ),
    EndmemberMethod("ppi", "pixel purity index (Boardman et al. 1995)", pixel_purity_index),
    EndmemberMethod("spa", "successive projection (Araújo et al. 2001)", _selected("spa-columns")),
    EndmemberMethod(
        "smooth-spa",
        "successive projection, each endmember the mean of several pixels (Nadisic et al. 2021)",
        _selected("spa-columns"),
        averaged=True,
        groups=lambda pixels, rank, count: smoothed_groups(wrap(np.ascontiguousarray(pixels.T)), rank, count),
    ),
    EndmemberMethod(
        "preconditioned-spa",
        "successive projection after the enclosing ellipsoid (Gillis and Vavasis 2015)",
        lambda pixels, rank, rng: preconditioned_projection(pixels, rank),
    ),
    EndmemberMethod("snpa", "successive nonnegative projection (Gillis 2014)", _selected("snpa")),
    EndmemberMethod("xray", "extreme rays of the conical hull (Kumar et al. 2013)", _selected("xray")),
)

ENDMEMBER_METHODS: dict[str, EndmemberMethod] = {method.name: method for method in _METHODS}
"""All methods by their names, the default first."""


@dataclass(frozen=True)
class Endmembers:
    """Spectra in the usable bands, and where they come from.

    Attributes
    ----------
    spectra : array, shape (r, usable bands)
        Those of pixels first, then those of bands.
    members : tuple of int arrays
        For each spectrum that comes from pixels: the positions of the pixels whose mean it is.
    positions : int array
        The chosen pixel among each of them.
    bands : int array
        Pure bands, among the usable ones.
    outliers : int array
        Pixels of the sample that could not be chosen, because no other resembles them.
    notes : tuple of str
    """

    spectra: Doubles
    members: tuple[Indices, ...]
    positions: Indices
    bands: Indices
    outliers: Indices
    notes: tuple[str, ...] = ()


def choose_endmembers(
    scene: Scene,
    sample: Indices,
    rank: int,
    *,
    method: EndmemberMethod,
    normalize: Normalize,
    averaged: int | None,
    keep_outliers: bool,
    rng: np.random.Generator,
) -> Endmembers:
    """Choose pixels of a sample and make spectra of them; the options are those of `gsnmf.applications.unmix`."""
    pixels = scene.pixels(sample)
    isolated = np.zeros(len(pixels), dtype=np.bool_) if keep_outliers else isolated_pixels(pixels)
    kept = np.flatnonzero(~isolated)
    candidates = _normalized(pixels[kept], normalize)
    if method.groups is not None:
        count = min(averaged or max(1, kept.size // _SMOOTHED_PART), kept.size)
        members = tuple(sample[kept[group]] for group in method.groups(candidates, rank, count))
        positions = np.array([group[0] for group in members], dtype=np.intp)
    else:
        chosen = kept[method.choose(candidates, rank, rng)]
        positions = sample[chosen]
        members = tuple(np.array([position]) for position in positions)
        if averaged is None and method.averaged:
            members = _within_noise(scene, pixels[chosen], _noise_length(pixels[kept]))
        elif averaged is not None and averaged > 1:
            members = _nearest_in_angle(scene, pixels[chosen], averaged)
    notes = []
    if positions.size < rank:
        notes.append(f"{positions.size} endmembers explain every pixel; {rank} were asked for")
    spectra = np.array([_mean_spectrum(scene.pixels(own)) for own in members])
    if method.name == "minimum-volume":
        spectra, warned = _least_volume(pixels[kept], spectra)
        notes += warned
    return Endmembers(spectra, members, positions, np.empty(0, dtype=np.intp), sample[isolated], tuple(notes))


def choose_pixels_and_bands(scene: Scene, sample: Indices, rank: int) -> Endmembers:
    """The generalized separable model: some materials have a pure pixel, others a band in which they are alone.

    The spectrum of a pure band is its row of weights, scaled so that the abundance is one where the band is brightest.
    """
    pixels = scene.pixels(sample)
    result = factorize(pixels, rank)
    brightest = np.quantile(pixels[:, result.columns], _BRIGHTEST, axis=0)
    spectra = np.vstack([pixels[result.rows], result.column_weights * brightest[:, None]]).astype(np.float64)
    positions = sample[result.rows]
    members = tuple(np.array([position]) for position in positions)
    return Endmembers(spectra, members, positions, result.columns, np.empty(0, dtype=np.intp))


def _normalized(pixels: Floats, kind: Normalize) -> Floats:
    if kind == "none":
        return pixels
    sizes = pixels.sum(axis=1) if kind == "sum" else np.linalg.norm(pixels, axis=1)
    return np.asarray(pixels / sizes[:, None], dtype=pixels.dtype)


def _nearest_in_angle(scene: Scene, spectra: Floats, count: int) -> tuple[Indices, ...]:
    """Positions of the pixels nearest in angle to each spectrum, the nearest first, in one pass over the scene."""
    unit = spectra / np.linalg.norm(spectra, axis=1, keepdims=True)
    best = np.full((len(unit), 0), -np.inf)
    places = np.empty((len(unit), 0), dtype=np.intp)
    for positions, pixels in scene.blocks():
        cosines = (unit.astype(pixels.dtype) @ pixels.T) / np.linalg.norm(pixels, axis=1)
        best = np.hstack([best, cosines])
        places = np.hstack([places, np.broadcast_to(positions, cosines.shape)])
        order = np.argsort(-best, axis=1, kind="stable")[:, :count]
        best, places = np.take_along_axis(best, order, axis=1), np.take_along_axis(places, order, axis=1)
    return tuple(places)


def _within_noise(scene: Scene, spectra: Floats, noise: float) -> tuple[Indices, ...]:
    """Of the pixels nearest to each spectrum, those that noise may have made of it, and one in 500 of the scene."""
    least = int(np.count_nonzero(scene.usable)) // _AVERAGED_PART
    members = []
    for own, spectrum in zip(_nearest_in_angle(scene, spectra, _MOST_AVERAGED), spectra, strict=True):
        others = scene.pixels(own).astype(np.float64)
        length, lengths = float(np.linalg.norm(spectrum)), np.linalg.norm(others, axis=1)
        distances = np.linalg.norm(others / lengths[:, None] - spectrum / length, axis=1)
        explained = _WITHIN_NOISE * noise * np.sqrt(1.0 / length**2 + 1.0 / lengths**2)
        members.append(own[: max(1, least, int(np.count_nonzero(distances <= explained)))])
    return tuple(members)


def _noise_length(pixels: Floats) -> float:
    """Root mean squared length of the noise of a pixel; zero if there are too few pixels to estimate it."""
    if len(pixels) <= 2 * pixels.shape[1]:
        return 0.0
    noise = estimate_noise(pixels)
    return float(np.sqrt(np.einsum("ij,ij->", noise, noise) / len(noise)))


def _mean_spectrum(pixels: Floats) -> Doubles:
    """The mean direction of spectra, with their median length: one that is far too bright changes neither."""
    spectra = np.asarray(pixels, dtype=np.float64)
    lengths = np.linalg.norm(spectra, axis=1)
    mean = (spectra / lengths[:, None]).mean(axis=0)
    return np.asarray(mean * (np.median(lengths) / np.linalg.norm(mean)))


def _least_volume(pixels: Floats, spectra: Doubles) -> tuple[Doubles, list[str]]:
    """Endmembers of the least volume around the pixels, starting from given ones, and warnings of the solver.

    Weights sum to at most one: pixels in the shade are darker mixtures, which a simplex without the origin would have
    to explain by other materials.
    """
    matrix = np.asarray(pixels.T, dtype=np.float64)
    start = spectra.T.copy(), abundances_of(matrix.T, spectra, True).T.copy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        result = minimum_volume(matrix, len(spectra), init=start)
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, ConvergenceWarning)]
    return np.ascontiguousarray(np.asarray(result.W).T, dtype=np.float64), notes
