"""Pictures of a factorization whose matrix holds images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import Explanation
from gsnmf.reports.pictures import grey_picture
from gsnmf.result import Factor
from gsnmf.support.arrays import Axis, Floats, Indices
from gsnmf.support.formatting import joined, shown

_N_PAIRS = 8
_MAX_CHOSEN = 60


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
    height, width = data.image_shape
    by_rows = data.pixels == "columns"
    factors = explanation.result.factors(1)
    images = [k for k, factor in enumerate(factors) if factor.axis != data.pixels]
    pixels = dict.fromkeys(int(p) for factor in factors if factor.axis == data.pixels for p in factor.members)
    held = explanation.matrix
    n_images = held.shape[0 if by_rows else 1]
    mean = (held if by_rows else held.T).column_sums / n_images
    return ImageFindings(
        width=width,
        height=height,
        mean=grey_picture(data.image(mean)),
        pixels=tuple((*data.pixel(p)[::-1], shown(data.name(data.pixels, p))) for p in pixels),
        chosen=tuple((_name(factors[k], data), factor_picture(explanation, data, k)) for k in images[:_MAX_CHOSEN]),
        n_chosen=len(images),
        pairs=_pairs(explanation, data, by_rows),
    )


def _name(factor: Factor, data: LabelledMatrix) -> str:
    return joined([shown(data.name(factor.axis, int(i))) for i in factor.members])


def factor_picture(explanation: Explanation, data: LabelledMatrix, k: int) -> str:
    """Factor k as an image, or nothing if the matrix holds no images."""
    if data.image_shape is None:
        return ""
    values = explanation.H[k] if data.pixels == "columns" else explanation.W[:, k]
    return grey_picture(data.image(values))


def member_pictures(explanation: Explanation, data: LabelledMatrix, axis: Axis, indices: Indices) -> tuple[str, ...]:
    """The images at some rows, or columns; nothing for pixels, nor if the matrix holds no images."""
    if data.image_shape is None or data.pixels == axis:
        return ("",) * indices.size
    return tuple(grey_picture(data.image(i)) for i in _images(explanation, indices, axis == "rows"))


def _pairs(explanation: Explanation, data: LabelledMatrix, by_rows: bool) -> tuple[Pair, ...]:
    errors = explanation.residuals("rows" if by_rows else "columns").relative_errors
    order = np.argsort(errors, kind="stable")
    picked = order[np.unique(np.linspace(0, order.size - 1, _N_PAIRS).round().astype(np.intp))]
    images = _images(explanation, picked, by_rows)
    models = explanation.W[picked] @ explanation.H if by_rows else (explanation.W @ explanation.H[:, picked]).T
    axis: Axis = "rows" if by_rows else "columns"
    pairs = []
    for i, image, model in zip(picked, images, models, strict=True):
        top = max(float(image.max()), 1e-300)
        drawn, rebuilt = (grey_picture(data.image(values), top) for values in (image, model))
        pairs.append(Pair(shown(data.name(axis, int(i))), drawn, rebuilt, float(errors[i])))
    return tuple(pairs)


def _images(explanation: Explanation, indices: Indices, by_rows: bool) -> Floats:
    """Images as rows of an array."""
    held = explanation.matrix.T if by_rows else explanation.matrix
    return held.columns(indices).T
