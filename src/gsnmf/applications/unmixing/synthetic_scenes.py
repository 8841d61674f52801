"""Scenes with known endmembers, for tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf.support.arrays import Doubles, Indices

_BUMPS = 5
_DARK = 0.15
"""The first material reflects this part of the others, as water does."""


@dataclass(frozen=True)
class PlantedScene:
    """A scene and what it was made of.

    Attributes
    ----------
    cube : array, shape (height, width, bands)
    endmembers : array, shape (r, bands)
    abundances : array, shape (height, width, r)
        Before the brightness of pixels was varied.
    outliers, dead : int arrays
        Positions of pixels that were damaged, and of those set to zero, counted row by row.
    """

    cube: Doubles
    endmembers: Doubles
    abundances: Doubles
    outliers: Indices
    dead: Indices


def planted_scene(
    rng: np.random.Generator,
    *,
    shape: tuple[int, int] = (50, 50),
    n_bands: int = 120,
    n_endmembers: int = 4,
    concentration: float = 0.4,
    purest: float = 1.0,
    noise: float = 0.03,
    brightness: float = 0.15,
    n_outliers: int = 0,
    n_dead: int = 0,
) -> PlantedScene:
    """Mix smooth random spectra by random abundances.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : pair of int
        Height and width.
    n_bands, n_endmembers : int
    concentration : float
        Of the Dirichlet distribution of the abundances: the smaller, the more pixels are nearly pure.
    purest : float
        No pixel has a larger abundance of any material.
    noise : float
        Standard deviation of the noise over the root mean square of the scene.
    brightness : float
        Standard deviation of the logarithm of the brightness of pixels.
    n_outliers, n_dead : int
        Pixels that become random spectra, spikes or saturated, and pixels that become zero.

    Examples
    --------
    >>> import numpy as np
    >>> scene = planted_scene(np.random.default_rng(0), shape=(8, 9), n_bands=20)
    >>> scene.cube.shape, scene.endmembers.shape, scene.abundances.shape
    ((8, 9, 20), (4, 20), (8, 9, 4))
    """
    spectra = _smooth_spectra(rng, n_endmembers, n_bands)
    n = shape[0] * shape[1]
    abundances = _abundances(rng, n, n_endmembers, concentration, purest)
    pixels = abundances @ spectra * np.exp(brightness * rng.standard_normal((n, 1)))
    scale = float(np.sqrt(np.mean(np.square(pixels))))
    pixels = np.maximum(pixels + noise * scale * rng.standard_normal(pixels.shape), 0.0)
    damaged = rng.choice(n, n_outliers + n_dead, replace=False)
    outliers, dead = damaged[:n_outliers], damaged[n_outliers:]
    top = float(pixels.max())
    for k, i in enumerate(outliers):
        _damage(pixels[i], k % 3, top, rng)
    pixels[dead] = 0.0
    return PlantedScene(
        pixels.reshape(*shape, n_bands), spectra, abundances.reshape(*shape, n_endmembers), outliers, dead
    )


def _smooth_spectra(rng: np.random.Generator, r: int, n_bands: int) -> Doubles:
    places = np.linspace(0.0, 1.0, n_bands)
    spectra = np.full((r, n_bands), 0.05)
    for spectrum in spectra:
        centres, widths, heights = rng.random(_BUMPS), rng.uniform(0.05, 0.25, _BUMPS), rng.uniform(0.1, 0.7, _BUMPS)
        for centre, width, height in zip(centres, widths, heights, strict=True):
            spectrum += height * np.exp(-(((places - centre) / width) ** 2))
    spectra[0] *= _DARK
    return spectra


def _abundances(rng: np.random.Generator, n: int, r: int, concentration: float, purest: float) -> Doubles:
    """Dirichlet abundances; what is above ``purest`` is drawn towards the even mixture until it is not."""
    abundances = rng.dirichlet(np.full(r, concentration), size=n)
    largest = abundances.max(axis=1, keepdims=True)
    equal_share = 1.0 / r
    share = np.where(largest > purest, (purest - equal_share) / np.maximum(largest - equal_share, 1e-12), 1.0)
    return np.asarray(equal_share + share * (abundances - equal_share))


def _damage(pixel: Doubles, kind: int, top: float, rng: np.random.Generator) -> None:
    if kind == 0:
        pixel[:] = rng.random(pixel.size) * top * rng.uniform(0.5, 3.0)
    elif kind == 1:
        pixel[rng.integers(pixel.size)] += top * rng.uniform(2.0, 30.0)
    else:
        pixel *= rng.uniform(5.0, 30.0)
