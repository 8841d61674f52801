"""A sample of a large scene to choose endmembers from: random pixels, and extreme ones of every part.

A material may cover a handful of a million pixels. Random pixels would miss it, but its pure pixels are extreme along
some direction in their part of the scene, so that extreme pixels of every block are taken too.
"""

from __future__ import annotations

import numpy as np

from gsnmf.applications.unmixing.cube import Cube
from gsnmf.applications.unmixing.subspace import leading_directions
from gsnmf.applications.unmixing.validity import Validity
from gsnmf.support.arrays import Doubles, Indices

_EXTREME = 0.2
"""Part of the sample that extreme pixels may take."""
_COMPONENTS = 10
_DIRECTIONS = 16
"""Random directions along which the two ends of a block are taken, in so many leading components."""


def sample_pixels(cube: Cube, validity: Validity, limit: int, rng: np.random.Generator) -> Indices:
    """Positions of at most ``limit`` usable pixels in increasing order: all of them if they are no more."""
    usable = np.flatnonzero(validity.pixels)
    if usable.size <= limit:
        return usable
    n_extreme = int(_EXTREME * limit)
    random = rng.choice(usable, limit - n_extreme, replace=False)
    extreme = _extreme_pixels(cube, validity, _directions(cube, validity, random, rng))
    if extreme.size > n_extreme:
        extreme = rng.choice(extreme, n_extreme, replace=False)
    return np.union1d(random, extreme)


def _directions(cube: Cube, validity: Validity, positions: Indices, rng: np.random.Generator) -> Doubles:
    """Random directions in the leading components of unit spectra, shape (bands, directions)."""
    sampled = positions[: 20 * _COMPONENTS * _DIRECTIONS]
    pixels = validity.clean(cube.pixels(np.sort(sampled))).astype(np.float64)
    pixels /= np.linalg.norm(pixels, axis=1, keepdims=True)
    n_components = min(_COMPONENTS, pixels.shape[1])
    components, _ = leading_directions(pixels, n_components, centred=True)
    return components @ rng.standard_normal((n_components, _DIRECTIONS))


def _extreme_pixels(cube: Cube, validity: Validity, directions: Doubles) -> Indices:
    found = [np.empty(0, dtype=np.intp)]
    for part, pixels in cube.blocks():
        inside = np.flatnonzero(validity.pixels[part])
        if inside.size == 0:
            continue
        spectra = validity.clean(pixels[inside])
        projections = spectra @ directions.astype(spectra.dtype) / np.linalg.norm(spectra, axis=1, keepdims=True)
        ends = np.concatenate([projections.argmax(axis=0), projections.argmin(axis=0)])
        found.append(inside[np.unique(ends)] + part.start)
    return np.unique(np.concatenate(found))
