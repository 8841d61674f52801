"""Maps: values over a picture in colours on a stated scale, for the page of a scene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gsnmf.reports.pictures import colour_picture
from gsnmf.support.arrays import Doubles, Floats

MOST_POINTS = 480
"""Longest side of a map in points; larger maps are averaged down."""

_RAMP = np.array([(26, 20, 62), (34, 76, 138), (24, 142, 140), (112, 196, 92), (252, 231, 60)], dtype=np.float64)
"""Colours from the smallest to the largest value, of increasing lightness."""


@dataclass(frozen=True)
class Scale:
    """What the colours of a map mean: the values at its ends, and a strip of all colours."""

    low: str
    high: str
    strip: str


def colour_scale(low: float, high: float) -> Scale:
    """The scale from ``low`` to ``high``."""
    strip = _colours(np.linspace(0.0, 1.0, 128)[None])
    return Scale(rounded(low), rounded(high), colour_picture(strip))


def rounded(value: float) -> str:
    """A number with three digits, without an exponent if it is readable without.

    Examples
    --------
    >>> rounded(1843.7), rounded(0.01234), rounded(1.5e-9)
    ('1840', '0.0123', '1.5e-09')
    """
    return f"{float(f'{value:.3g}'):g}"


def value_map(values: Floats, top: float) -> str:
    """Values from 0 to ``top`` as a picture, transparent where they are not finite."""
    small = reduced(np.asarray(values, dtype=np.float64))
    return colour_picture(_colours(small / top if top > 0 else small))


def rgb_map(picture: NDArray[np.uint8]) -> str:
    """A picture in red, green and blue, shape (height, width, 3)."""
    channels = [reduced(picture[..., k].astype(np.float64)) for k in range(3)]
    opaque = np.full_like(channels[0], 255.0)
    return colour_picture(np.round(np.stack([*channels, opaque], axis=-1)).astype(np.uint8))


def reduced(values: Doubles) -> Doubles:
    """Means of the finite values in square blocks, so that no side is longer than `MOST_POINTS`.

    Examples
    --------
    >>> import numpy as np
    >>> reduced(np.ones((1000, 500))).shape
    (334, 167)
    """
    step = -(-max(values.shape) // MOST_POINTS)
    if step == 1:
        return values
    height, width = (-(-side // step) for side in values.shape)
    padded = np.full((height * step, width * step), np.nan)
    padded[: values.shape[0], : values.shape[1]] = values
    blocks = padded.reshape(height, step, width, step)
    counts = np.isfinite(blocks).sum(axis=(1, 3))
    sums = np.nansum(blocks, axis=(1, 3))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _colours(shares: Doubles) -> NDArray[np.uint8]:
    """Red, green, blue and opacity of values between 0 and 1, shape (height, width, 4)."""
    finite = np.isfinite(shares)
    at = np.clip(np.where(finite, shares, 0.0), 0.0, 1.0)
    places = np.linspace(0.0, 1.0, len(_RAMP))
    channels = [np.interp(at, places, _RAMP[:, k]) for k in range(3)]
    return np.round(np.stack([*channels, np.where(finite, 255.0, 0.0)], axis=-1)).astype(np.uint8)
