"""Arrays as PNG pictures embedded in the page."""

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
    return _data_uri(_levels(values, top)[..., None], color_type=0)


def ink_picture(values: Floats, colour: tuple[int, int, int], top: float | None = None) -> str:
    """An array as a data URI in one colour, transparent where it is 0: it suits light and dark pages."""
    alpha = _levels(values, top)
    pixels = np.empty((*alpha.shape, 4), dtype=np.uint8)
    pixels[..., :3] = colour
    pixels[..., 3] = alpha
    return _data_uri(pixels, color_type=6)


def _levels(values: Floats, top: float | None) -> NDArray[np.uint8]:
    small = _reduced(np.asarray(values, dtype=np.float64))
    largest = float(small.max(initial=0.0)) if top is None else float(top)
    scaled = small / largest if largest > 0 else np.zeros_like(small)
    return np.round(255.0 * np.clip(scaled, 0.0, 1.0)).astype(np.uint8)


def _reduced(values: Doubles) -> Doubles:
    """Means of square blocks, so that no side is longer than `MAX_SIDE`; an incomplete last block is left out."""
    step = -(-max(values.shape) // MAX_SIDE)
    if step == 1:
        return values
    height, width = (max(1, side // step) for side in values.shape)
    rows, columns = min(step, values.shape[0]), min(step, values.shape[1])
    blocks = values[: height * rows, : width * columns].reshape(height, rows, width, columns)
    return np.asarray(blocks.mean(axis=(1, 3)))


def _data_uri(pixels: NDArray[np.uint8], color_type: int) -> str:
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)), _chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def colour_picture(pixels: NDArray[np.uint8]) -> str:
    """Red, green, blue and opacity of every point, shape (height, width, 4), as a data URI."""
    return _data_uri(np.ascontiguousarray(pixels, dtype=np.uint8), color_type=6)
