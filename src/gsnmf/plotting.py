"""Pictures of a factorization, for notebooks and papers: functions that draw on Matplotlib axes and return them.

They need Matplotlib: ``pip install "gsnmf[plots]"``. Every function takes ``ax``, the axes to draw on, and by default
makes new ones. For a matrix of images, pass ``image_shape``. Images are rows of the matrix, unless only the number of
rows equals the number of pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import NO_COMPARISON, Comparison, Explanation, compare
from gsnmf.matrix.validation import check_count, check_indices
from gsnmf.model_selection.rank_path import RankPath
from gsnmf.result import Factorization
from gsnmf.support.arrays import Axis, Floats, Indices
from gsnmf.support.formatting import joined
from gsnmf.support.optional import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _OTHER = "tab:blue", "tab:gray"

_MARK = 36.0
"""Area of the mark of a chosen pixel, in square points."""

_SCENES = ("plot_chosen_pixels", "plot_maps", "plot_spectra")
"""Pictures of an `Unmixing`, defined by the application."""


def __getattr__(name: str) -> Any:
    if name in _SCENES:
        return getattr(import_module("gsnmf.applications.unmixing.scene_plots"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def plot_comparison(result: Factorization, *, comparison: Comparison | None = None, ax: Axes | None = None) -> Axes:
    """Bars of the quality of the result next to NMF and to the truncated SVD bound.

    Parameters
    ----------
    result : Factorization
    comparison : Comparison, optional
        The output of `gsnmf.diagnostics.compare`, computed by default; what it leaves out is not drawn.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> axes = plot_comparison(result, ax=Figure().add_subplot())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['this result', 'NMF', 'truncated SVD']
    """
    axes = _axes(ax)
    others = comparison or compare(result, nmf=True)
    bars = [("this result", result.quality), ("NMF", others.nmf_quality), ("truncated SVD", others.svd_quality)]
    drawn = [(name, quality) for name, quality in bars if quality is not None]
    bar = axes.barh(*zip(*drawn, strict=True), color=[_OURS, *[_OTHER] * (len(drawn) - 1)])
    axes.bar_label(bar, labels=[f"{quality:.1%}" for _, quality in drawn], padding=3)
    axes.invert_yaxis()
    axes.set(xlim=(0.0, 1.15), xlabel="quality")
    return axes


def plot_factor(
    result: Factorization,
    number: int,
    *,
    members: Axis = "columns",
    names: Sequence[str] | None = None,
    n_strongest: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Bars of the columns, or rows, in which a factor is strongest.

    Parameters
    ----------
    result : Factorization
    number : int
        Number of the factor, counted from 0: chosen columns come first, then chosen rows.
    members : {"columns", "rows"}
        What to show of it: its row of H, or its column of W.
    names : sequence of str, optional
        Names of all columns, or of all rows.
    n_strongest : int
        How many to show, besides the factor itself.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> axes = plot_factor(result, 0, names=["tea", "cake", "milk"], ax=Figure().add_subplot())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['milk', 'tea']
    """
    factors = result.factors(check_count(n_strongest, "n_strongest"))
    if not 0 <= number < len(factors):
        raise ValueError(f"number must be in [0, {len(factors) - 1}]; got {number}.")
    factor = factors[number]
    sides = {"columns": (factor.columns, factor.column_strengths), "rows": (factor.rows, factor.row_strengths)}
    indices, strengths = sides[_check_axis(members)]
    axes = _axes(ax)
    axes.barh(np.arange(indices.size), strengths, color=_OURS)
    axes.set_yticks(np.arange(indices.size), _names(names, indices, members), parse_math=False)
    axes.invert_yaxis()
    title = joined(_names(names if factor.axis == members else None, factor.members, factor.axis))
    axes.set_title(f"{title}: {factor.share:.1%}", parse_math=False)
    return axes


def plot_errors(result: Factorization, *, axis: Axis = "rows", bins: int = 30, ax: Axes | None = None) -> Axes:
    """Histogram of the relative errors of all rows, or of all columns.

    Parameters
    ----------
    result : Factorization
    axis : {"rows", "columns"}
        Whose errors to count.
    bins : int
        Number of bars.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> plot_errors(result, ax=Figure().add_subplot()).get_xlabel()
    'relative error of rows'
    """
    axes = _axes(ax)
    errors = Explanation(result).residuals(_check_axis(axis)).relative_errors
    axes.hist(errors[np.isfinite(errors)], bins=check_count(bins, "bins"), color=_OURS)
    axes.set(xlabel=f"relative error of {axis}", ylabel=axis)
    return axes


def plot_rank_path(
    result: Factorization | RankPath, *, comparison: Comparison | None = None, ax: Axes | None = None
) -> Axes:
    """Quality of 1, 2, ... columns and rows: of nested selections, or of a result, with the SVD bound.

    Parameters
    ----------
    result : RankPath or Factorization
        The output of `gsnmf.rank_path`; or a result, whose columns and rows are added most useful first.
    comparison : Comparison, optional
        The output of `gsnmf.diagnostics.compare`; computed by default for a result.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> path = gsnmf.rank_path([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 3)
    >>> plot_rank_path(path, ax=Figure().add_subplot()).get_xlabel()
    'columns and rows'
    """
    axes = _axes(ax)
    path = result if isinstance(result, RankPath) else Explanation(result).rank_path()
    label = "nested selections" if isinstance(result, RankPath) else "this result"
    axes.plot(1.0 - path.errors, "o-", color=_OURS, markersize=4, label=label)
    if comparison is None:
        comparison = NO_COMPARISON if isinstance(result, RankPath) else compare(result)
    if comparison.svd_path.size:
        axes.plot(comparison.svd_path, "--", color=_OTHER, label="bound (SVD)")
    axes.set(xlabel="columns and rows", ylabel="quality")
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    return axes


def plot_residual(result: Factorization, *, side: int = 160, ax: Axes | None = None) -> Axes:
    """The residual as a picture, rows and columns grouped by their strongest factor.

    Parameters
    ----------
    result : Factorization
    side : int
        Largest height and width of the picture; larger matrices are shown in blocks, by root mean square.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> plot_residual(result, ax=Figure().add_subplot()).get_title()
    'residual'
    """
    axes = _axes(ax)
    matrix, residual = Explanation(result).pictures(check_count(side, "side"))
    image = axes.imshow(residual, cmap="Blues", vmin=0.0, vmax=matrix.max() or 1.0, aspect="auto")
    axes.set(xticks=[], yticks=[], xlabel="columns, by factor", ylabel="rows, by factor", title="residual")
    axes.figure.colorbar(image, ax=axes, label="in units of the matrix's root mean square")
    return axes


def plot_pixels(result: Factorization, image_shape: tuple[int, int], *, ax: Axes | None = None) -> Axes:
    """The chosen pixels, marked on the mean image; marks of mixture members are sized by their shares.

    Parameters
    ----------
    result : Factorization
    image_shape : pair of int
        Height and width.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> result = gsnmf.factorize(load_digits().data[:200], (2, 3), method="spa-both")
    >>> axes = plot_pixels(result, (8, 8), ax=Figure().add_subplot())
    >>> len(axes.collections[0].get_offsets())
    2
    """
    axes = _axes(ax)
    data = _images_of(result, image_shape)
    by_rows = data.pixels == "columns"
    axes.imshow(data.image((result.source if by_rows else result.source.T).column_sums), cmap="gray")
    n_columns = result.columns.size
    members = result.members[:n_columns] if by_rows else result.members[n_columns:]
    marks = [
        (*data.pixel(int(p)), _MARK * share) for own, shares in members for p, share in zip(own, shares, strict=True)
    ]
    y, x, areas = np.array(marks).reshape(-1, 3).T
    axes.scatter(x, y, areas, marker="s", color="tab:orange", edgecolors="white")
    axes.set_axis_off()
    return axes


def plot_images(result: Factorization, image_shape: tuple[int, int], *, ax: Axes | None = None) -> Axes:
    """The chosen images, or the mixtures of images, side by side.

    Parameters
    ----------
    result : Factorization
    image_shape : pair of int
        Height and width.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> result = gsnmf.factorize(load_digits().data[:200], (2, 3), method="spa-both")
    >>> plot_images(result, (8, 8), ax=Figure().add_subplot()).images[0].get_array().shape  # gaps of two
    (10, 30)
    """
    data = _images_of(result, image_shape)
    if data.pixels == "columns":
        chosen = np.asarray(result.H)[result.columns.size :]
    else:
        chosen = np.asarray(result.W[:, : result.columns.size]).T
    return _draw_strip(_axes(ax), [chosen], data)


def plot_reconstructions(
    result: Factorization, image_shape: tuple[int, int], images: Any, *, ax: Axes | None = None
) -> Axes:
    """Some images, each above its reconstruction.

    Parameters
    ----------
    result : Factorization
    image_shape : pair of int
        Height and width.
    images : sequence of int
        Which ones.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gsnmf
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> result = gsnmf.factorize(load_digits().data[:200], (2, 3), method="spa-both")
    >>> axes = plot_reconstructions(result, (8, 8), [0, 1, 2, 3], ax=Figure().add_subplot())
    >>> axes.images[0].get_array().shape
    (20, 40)
    """
    data = _images_of(result, image_shape)
    by_rows = data.pixels == "columns"
    chosen = check_indices(images, result.matrix.shape[0 if by_rows else 1], "images")
    models = np.asarray(result.reconstruct(rows=chosen) if by_rows else result.reconstruct(columns=chosen).T)
    originals = (result.source.T if by_rows else result.source).raw_columns(chosen).T
    return _draw_strip(_axes(ax), [originals, models], data)


def _axes(ax: Axes | None) -> Axes:
    return axes_or_new(ax, "gsnmf.plotting")


def _check_axis(axis: Axis) -> Axis:
    if axis not in ("rows", "columns"):
        raise ValueError(f"axis must be 'rows' or 'columns'; got {axis!r}.")
    return axis


def _names(names: Sequence[str] | None, indices: Indices, axis: Axis) -> list[str]:
    return [f"{axis.removesuffix('s')} {i}" if names is None else str(names[i]) for i in indices]


def _images_of(result: Factorization, image_shape: tuple[int, int]) -> LabelledMatrix:
    height, width = image_shape
    return LabelledMatrix(result.matrix).with_image_shape((int(height), int(width)))


def _draw_strip(axes: Axes, rows: list[Floats], data: LabelledMatrix) -> Axes:
    """Rows of images in one picture, with gaps between them; each column has its own scale."""
    axes.set_axis_off()
    if not len(rows[0]):
        axes.set_title("no image chosen")
        return axes
    tops = np.maximum(rows[0].max(axis=1, keepdims=True), np.finfo(float).tiny)
    blocks = [
        [np.pad(data.image(image), 1, constant_values=1.0) for image in np.minimum(row / tops, 1)] for row in rows
    ]
    axes.imshow(np.block(blocks), cmap="gray", vmin=0.0, vmax=1.0)
    return axes
