"""PNG pictures embedded in a page: of arrays, and of a factorization whose matrix holds images."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import Explanation
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices
from gsnmf.support.formatting import joined, shown

MAX_SIDE = 200
"""Longest side of a picture in pixels; larger pictures are averaged down."""
_N_PAIRS = 8
"""Images that are shown next to their reconstructions."""
_MAX_CHOSEN = 60
"""Chosen images that are shown."""


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


@dataclass(frozen=True)
class Pair:
    """An image, its reconstruction, and the relative error."""

    name: str
    image: str
    model: str
    error: float


@dataclass(frozen=True)
class ImageFindings:
    """The pixels and images that were chosen, and some images next to their reconstructions."""

    width: int
    height: int
    """Of one image, in pixels."""
    mean: str
    """The mean image."""
    pixels: tuple[tuple[int, int, str], ...]
    """x, y and name of the chosen pixels, each member of a mixture by itself."""
    chosen: tuple[tuple[str, str], ...]
    """Name and picture of the chosen images, and of mixtures of images."""
    n_chosen: int
    """How many were chosen, even if not all are shown."""
    pairs: tuple[Pair, ...]
    """From the best explained to the worst."""


def image_findings(explanation: Explanation, data: LabelledMatrix) -> ImageFindings | None:
    """The pictures to show, or None if the matrix holds no images."""
    if data.image_shape is None:
        return None
    by_rows = data.pixels == "columns"
    factors = explanation.result.factors(1)
    images = [k for k, factor in enumerate(factors) if factor.axis != data.pixels]
    names = [joined([shown(data.name(factor.axis, int(i))) for i in factor.members]) for factor in factors]
    pixels = dict.fromkeys(int(p) for factor in factors if factor.axis == data.pixels for p in factor.members)
    sums = (explanation.matrix if by_rows else explanation.matrix.T).column_sums
    return ImageFindings(
        width=data.image_shape[1],
        height=data.image_shape[0],
        mean=grey_picture(data.image(sums / explanation.matrix.shape[0 if by_rows else 1])),
        pixels=tuple((*data.pixel(p)[::-1], shown(data.name(data.pixels, p))) for p in pixels),
        chosen=tuple((names[k], factor_picture(explanation, data, k)) for k in images[:_MAX_CHOSEN]),
        n_chosen=len(images),
        pairs=_pairs(explanation, data, "rows" if by_rows else "columns"),
    )


def factor_picture(explanation: Explanation, data: LabelledMatrix, k: int) -> str:
    """Factor k as an image, or nothing if the matrix holds no images."""
    if data.image_shape is None:
        return ""
    return grey_picture(data.image(explanation.H[k] if data.pixels == "columns" else explanation.W[:, k]))


def member_pictures(explanation: Explanation, data: LabelledMatrix, axis: Axis, indices: Indices) -> tuple[str, ...]:
    """The images at some rows, or columns; nothing for pixels, nor if the matrix holds no images."""
    if data.image_shape is None or data.pixels == axis:
        return ("",) * indices.size
    return tuple(grey_picture(data.image(image)) for image in _images(explanation, indices, axis))


def _pairs(explanation: Explanation, data: LabelledMatrix, axis: Axis) -> tuple[Pair, ...]:
    errors = explanation.residuals(axis).relative_errors
    order = np.argsort(errors, kind="stable")
    picked = order[np.unique(np.linspace(0, order.size - 1, _N_PAIRS).round().astype(np.intp))]
    W, H = (explanation.W, explanation.H) if axis == "rows" else (explanation.H.T, explanation.W.T)
    pairs = []
    for i, image, model in zip(picked, _images(explanation, picked, axis), W[picked] @ H, strict=True):
        top = max(float(image.max()), 1e-300)
        drawn, rebuilt = (grey_picture(data.image(values), top) for values in (image, model))
        pairs.append(Pair(shown(data.name(axis, int(i))), drawn, rebuilt, float(errors[i])))
    return tuple(pairs)


def _images(explanation: Explanation, indices: Indices, axis: Axis) -> Floats:
    """Images as rows of an array."""
    matrix = explanation.matrix.T if axis == "rows" else explanation.matrix
    return matrix.columns(indices).T
