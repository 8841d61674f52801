"""Arrays as PNG pictures embedded in a page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from gsnmf.support.arrays import Doubles, Floats

MAX_SIDE = 200
"""Longest side of a picture in pixels; larger pictures are averaged down."""


def grey_picture(values: Floats, top: float | None = None) -> str:
    """An array as a data URI, black where it is 0 and white from ``top`` on, by default its largest entry.

    Examples
    --------
    >>> import numpy as np
    >>> grey_picture(np.eye(2))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    return _data_uri(_levels(values, top)[..., None])


def ink_picture(values: Floats, colour: tuple[int, int, int], top: float | None = None) -> str:
    """An array as a data URI in one colour, transparent where it is 0: it suits light and dark pages."""
    alpha = _levels(values, top)
    ink = np.broadcast_to(np.array(colour, dtype=np.uint8), (*alpha.shape, 3))
    return colour_picture(np.dstack([ink, alpha]))


def colour_picture(pixels: NDArray[np.uint8]) -> str:
    """Red, green, blue and opacity of every point, shape (height, width, 4), as a data URI."""
    return _data_uri(np.ascontiguousarray(pixels, dtype=np.uint8))


def reduced(values: Floats, most: int = MAX_SIDE) -> Doubles:
    """Means of the finite values in square blocks, so that no side is longer than ``most``; NaN where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> reduced(np.ones((1000, 500)), 480).shape
    (334, 167)
    """
    step = -(-max(values.shape) // most)
    if step == 1:
        return np.asarray(values, dtype=np.float64)
    height, width = (-(-side // step) for side in values.shape)
    padded = np.full((height * step, width * step), np.nan)
    padded[: values.shape[0], : values.shape[1]] = values
    blocks = padded.reshape(height, step, width, step)
    finite = np.isfinite(blocks)
    counts, sums = finite.sum(axis=(1, 3)), np.where(finite, blocks, 0.0).sum(axis=(1, 3))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _levels(values: Floats, top: float | None) -> NDArray[np.uint8]:
    small = reduced(values)
    largest = float(small.max(initial=0.0)) if top is None else float(top)
    scaled = small / largest if largest > 0 else np.zeros_like(small)
    return np.round(255.0 * np.clip(scaled, 0.0, 1.0)).astype(np.uint8)


def _data_uri(pixels: NDArray[np.uint8]) -> str:
    """Grey levels (one channel), or red, green, blue and opacity (four), as PNG."""
    height, width, n_channels = pixels.shape
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # each line begins with its filter, 0 for none
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if n_channels == 1 else 6, 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)), _chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
