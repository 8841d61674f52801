"""A picture of the scene for people: three bands as red, green and blue, or the first principal component in grey."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gsnmf.applications.unmixing.cube import Cube
from gsnmf.applications.unmixing.subspace import leading_directions
from gsnmf.applications.unmixing.validity import Validity
from gsnmf.support.arrays import Doubles, Indices

_COLOURS = {"red": 650.0, "green": 550.0, "blue": 460.0}
"""Wavelengths in nanometres that stand for the colours."""
_FARTHEST = 40.0
"""How far a band may be from them to stand for a colour."""
_DARK, _BRIGHT = 0.02, 0.98
"""Quantiles that become black and full colour."""
_MISSING = 128
_SOME = 20_000
"""Pixels from which the component and the quantiles are found."""


def scene_picture(cube: Cube, validity: Validity) -> NDArray[np.uint8]:
    """Colours of every pixel, shape (height, width, 3); grey where there is no pixel."""
    bands = colour_bands(cube, validity)
    positions = np.flatnonzero(validity.pixels)
    positions = positions[:: -(-positions.size // _SOME)]
    sampled = validity.clean(cube.pixels(positions)).astype(np.float64)
    directions = _component(sampled) if bands is None else np.eye(validity.bands.size)[validity.bands][:, bands]
    low, high = np.quantile(sampled @ directions, [_DARK, _BRIGHT], axis=0)
    span = np.where(high > low, high - low, 1.0)
    picture = np.full((cube.n_pixels, 3), _MISSING, dtype=np.uint8)
    for part, pixels in cube.blocks():
        inside = np.flatnonzero(validity.pixels[part])
        values = validity.clean(pixels[inside]) @ directions.astype(pixels.dtype)
        picture[inside + part.start] = np.round(255.0 * np.clip((values - low) / span, 0.0, 1.0))
    return picture.reshape(cube.height, cube.width, 3)


def colour_bands(cube: Cube, validity: Validity) -> Indices | None:
    """The usable bands nearest to red, green and blue; None if they are unknown or too far."""
    if cube.wavelengths is None:
        return None
    nanometres = cube.wavelengths * (1000.0 if cube.wavelength_unit == "µm" else 1.0)
    distances = np.abs(nanometres[:, None] - np.array(list(_COLOURS.values())))
    distances[~validity.bands] = np.inf
    nearest = distances.argmin(axis=0)
    return nearest if distances.min(axis=0).max() <= _FARTHEST else None


def _component(pixels: Doubles) -> Doubles:
    """The first principal component, brighter where the scene is brighter."""
    direction, mean = leading_directions(pixels, 1, centred=True)
    return direction if float(mean @ direction[:, 0]) >= 0 else -direction
