"""Endmembers of a scene: which pixels are chosen, and the spectra that are made of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.applications.unmixing.cube import Cube
from gsnmf.applications.unmixing.fcls import abundances_of
from gsnmf.applications.unmixing.methods import EndmemberMethod
from gsnmf.applications.unmixing.number_of_endmembers import estimate_noise
from gsnmf.applications.unmixing.outliers import isolated_pixels
from gsnmf.applications.unmixing.validity import Validity
from gsnmf.functions import factorize
from gsnmf.nmf import minimum_volume
from gsnmf.support.arrays import Doubles, Floats, Indices

Normalize = Literal["none", "sum", "length"]

_MOST_AVERAGED = 20
"""Largest number of pixels that make up an endmember by default."""
_AVERAGED_PART = 500
"""One in this many pixels of the scene is always averaged, up to the largest number."""
_SMOOTHED_PART = 100
"""By default, one in this many pixels makes up an endmember of a smoothed method."""
_WITHIN_NOISE = 1.2
"""Spectra closer than this many times the distance that noise alone causes cannot be told apart."""
_BRIGHTEST = 0.999
"""The abundance of a pure band is one where the band is at this quantile."""


@dataclass(frozen=True)
class Endmembers:
    """Spectra in the usable bands, and where they come from."""

    spectra: Doubles
    """One per row, those of pixels first, then those of bands."""
    positions: Indices
    """Pixels that were chosen, one per spectrum that comes from a pixel."""
    members: tuple[Indices, ...]
    """The pixels whose mean each spectrum is, the chosen one among them."""
    bands: Indices
    """Pure bands, among the usable ones."""
    outliers: Indices
    """Pixels of the sample that could not be chosen, because no other resembles them."""
    notes: tuple[str, ...] = ()


def choose_endmembers(
    cube: Cube,
    validity: Validity,
    sample: Indices,
    pixels: Floats,
    rank: int,
    *,
    method: EndmemberMethod,
    normalize: Normalize,
    averaged: int | None,
    outliers: Literal["ignore", "keep"],
    rng: np.random.Generator,
) -> Endmembers:
    """Choose pixels of the sample and make spectra of them.

    Parameters
    ----------
    cube, validity
        The scene.
    sample : int array
        Positions of the pixels that can be chosen.
    pixels : array, shape (sample, usable bands)
        Their spectra.
    rank : int
    method, normalize, averaged, outliers, rng
        As `gsnmf.applications.unmix` explains them.
    """
    isolated = isolated_pixels(pixels) if outliers == "ignore" else np.zeros(len(pixels), dtype=np.bool_)
    kept = np.flatnonzero(~isolated)
    candidates = normalized(pixels[kept], normalize)
    if method.mix is not None:
        count = min(averaged or max(1, kept.size // _SMOOTHED_PART), kept.size)
        groups = [kept[group] for group in method.mix(candidates, rank, count)]
        chosen = np.array([group[0] for group in groups], dtype=np.intp)
    else:
        groups = []
        chosen = kept[method.choose(candidates, rank, rng)]
    notes = []
    if chosen.size < rank:
        notes.append(f"{chosen.size} endmembers explain every pixel; {rank} were asked for")
    if averaged is None and not method.averaged:
        averaged = 1
    if groups:
        members = tuple(sample[group] for group in groups)
    elif averaged == 1:
        members = tuple(np.array([position]) for position in sample[chosen])
    else:
        members = nearest_in_angle(cube, validity, pixels[chosen], averaged or _MOST_AVERAGED)
        if averaged is None:
            members = _within_noise(cube, validity, members, pixels[chosen], _noise_length(pixels[kept]))
    spectra = np.array([_mean_spectrum(validity.clean(cube.pixels(own))) for own in members])
    if method.name == "minimum-volume":
        spectra, note = _least_volume(pixels[kept], spectra)
        notes.extend(note)
    none = np.empty(0, dtype=np.intp)
    return Endmembers(spectra, sample[chosen], members, none, sample[isolated], tuple(notes))


def choose_pixels_and_bands(sample: Indices, pixels: Floats, rank: int) -> Endmembers:
    """The paper's model: some materials have a pure pixel, others a band in which they are alone.

    The spectrum of a pure band is its row of weights, scaled so that the abundance is one where the band is brightest.
    """
    result = factorize(pixels, rank)
    brightest = np.quantile(pixels[:, result.columns], _BRIGHTEST, axis=0)
    from_bands = np.asarray(result.column_weights, dtype=np.float64) * brightest[:, None]
    from_pixels = np.asarray(pixels[result.rows], dtype=np.float64)
    positions = sample[result.rows]
    return Endmembers(
        np.vstack([from_pixels, from_bands]),
        positions,
        tuple(np.array([position]) for position in positions),
        result.columns,
        np.empty(0, dtype=np.intp),
    )


def normalized(pixels: Floats, kind: Normalize) -> Floats:
    """Pixels as they are, or divided by their sums or lengths."""
    if kind == "none":
        return pixels
    sizes = pixels.sum(axis=1) if kind == "sum" else np.linalg.norm(pixels, axis=1)
    return np.asarray(pixels / sizes[:, None], dtype=pixels.dtype)


def nearest_in_angle(cube: Cube, validity: Validity, spectra: Floats, count: int) -> tuple[Indices, ...]:
    """Positions of the usable pixels nearest in angle to each spectrum, the nearest first, in one pass."""
    unit = spectra / np.linalg.norm(spectra, axis=1, keepdims=True)
    best = np.full((len(unit), 0), -np.inf)
    places = np.empty((len(unit), 0), dtype=np.intp)
    for part, pixels in cube.blocks():
        inside = np.flatnonzero(validity.pixels[part])
        if inside.size == 0:
            continue
        clean = validity.clean(pixels[inside])
        cosines = (unit.astype(clean.dtype) @ clean.T) / np.linalg.norm(clean, axis=1)
        best = np.hstack([best, cosines])
        places = np.hstack([places, np.broadcast_to(inside + part.start, cosines.shape)])
        order = np.argsort(-best, axis=1, kind="stable")[:, :count]
        best, places = np.take_along_axis(best, order, axis=1), np.take_along_axis(places, order, axis=1)
    return tuple(places)


def _noise_length(pixels: Floats) -> float:
    """Root mean squared length of the noise of a pixel; zero if there are too few pixels to estimate it."""
    if len(pixels) <= 2 * pixels.shape[1]:
        return 0.0
    noise = estimate_noise(pixels)
    return float(np.sqrt(np.einsum("ij,ij->", noise, noise) / len(noise)))


def _within_noise(
    cube: Cube, validity: Validity, members: tuple[Indices, ...], spectra: Floats, noise: float
) -> tuple[Indices, ...]:
    """Of the pixels nearest to each spectrum, those that noise may have made of it, and one in 500 of the scene."""
    least = int(np.count_nonzero(validity.pixels)) // _AVERAGED_PART
    kept = []
    for own, spectrum in zip(members, spectra, strict=True):
        others = validity.clean(cube.pixels(own)).astype(np.float64)
        length, lengths = float(np.linalg.norm(spectrum)), np.linalg.norm(others, axis=1)
        distances = np.linalg.norm(others / lengths[:, None] - spectrum / length, axis=1)
        explained = _WITHIN_NOISE * noise * np.sqrt(1.0 / length**2 + 1.0 / lengths**2)
        kept.append(own[: max(1, least, int(np.count_nonzero(distances <= explained)))])
    return tuple(kept)


def _mean_spectrum(pixels: Floats) -> Doubles:
    """The mean direction of spectra, with their median length: one that is far too bright changes neither."""
    spectra = np.asarray(pixels, dtype=np.float64)
    lengths = np.linalg.norm(spectra, axis=1)
    mean = (spectra / lengths[:, None]).mean(axis=0)
    return np.asarray(mean * (np.median(lengths) / np.linalg.norm(mean)))


def _least_volume(pixels: Floats, spectra: Doubles) -> tuple[Doubles, list[str]]:
    """Endmembers of the least volume around the pixels, from given ones on.

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
