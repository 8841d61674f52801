"""Pictures of marker genes: by groups of cells, and on an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gsnmf.applications.marker_genes.expression import read_cells
from gsnmf.applications.marker_genes.markers import KEY, annotated, listed_genes
from gsnmf.matrix.protocol import dense
from gsnmf.support.arrays import Doubles
from gsnmf.support.optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EMBEDDINGS = ("X_umap", "X_tsne", "X_draw_graph_fa", "X_pca")
_LARGEST_DOT = 150.0


@dataclass(frozen=True)
class GroupedExpression:
    """How groups of cells express genes.

    Attributes
    ----------
    groups, genes : tuples of str
    means : array, shape (groups, genes)
        Mean expression.
    fractions : array, shape (groups, genes)
        Part of the cells of the group in which the gene is found at all.
    sizes : tuple of int
        Cells in each group.
    """

    groups: tuple[str, ...]
    genes: tuple[str, ...]
    means: Doubles
    fractions: Doubles
    sizes: tuple[int, ...]


def plot_markers(
    adata: Any,
    groupby: str | None = None,
    *,
    kind: Literal["dots", "heat", "embedding"] = "dots",
    genes: Sequence[str] | None = None,
    n_genes: int = 1,
    factor: str | None = None,
    basis: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what `gsnmf.applications.markers` found.

    Parameters
    ----------
    adata : AnnData
        After `gsnmf.applications.markers`.
    groupby : str, optional
        For dots and heat: a column of ``adata.obs`` with groups of cells; by default the strongest factor.
    kind : {"dots", "heat", "embedding"}
        - ``"dots"``: genes by groups; the larger a dot, the more cells of the group have the gene, the darker, the
          higher its mean expression, on a scale from nothing to the highest group for each gene.
        - ``"heat"``: the mean expression alone, as a heat map.
        - ``"embedding"``: cells on their embedding, coloured by their strongest factor, or by the coefficient of one.
    genes : sequence of str, optional
        Genes to draw; by default the first ``n_genes`` of every factor.
    n_genes : int
        Genes per factor.
    factor : str, optional
        For the embedding: the factor to show.
    basis : str, optional
        For the embedding: its name in ``adata.obsm``, such as ``"umap"``; by default UMAP, t-SNE or PCA, the first that
        is there.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure. Works beside scanpy's plots and needs Matplotlib alone.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from gsnmf.applications import markers, plot_markers
    >>> from matplotlib.figure import Figure
    >>> counts = np.random.default_rng(0).poisson(3.0, (30, 12)).astype(float)
    >>> cells = anndata.AnnData(np.log1p(counts))
    >>> found = markers(cells, 3, genes=None, effort="fast")
    >>> axes = plot_markers(found, kind="heat", ax=Figure().add_subplot())
    >>> axes.images[0].get_array().shape[1]  # one gene per factor
    3
    """
    record = annotated(adata)
    if kind == "embedding":
        return _draw_embedding(adata, record, factor, basis, _axes(ax, (6.4, 5.2)))
    if kind not in ("dots", "heat"):
        raise ValueError(f"kind must be 'dots', 'heat' or 'embedding'; got {kind!r}.")
    names = listed_genes(adata, n_genes) if genes is None else list(genes)
    grouped = group_expression(adata, groupby or f"{KEY}_factor", names)
    size = (2.6 + 0.34 * len(grouped.genes), 1.6 + 0.3 * len(grouped.groups))
    return (_draw_dots if kind == "dots" else _draw_heat)(grouped, _axes(ax, size))


def group_labels(adata: Any, groupby: str) -> Any:
    """A column of ``adata.obs`` that groups cells, as a Series of categories."""
    if groupby not in adata.obs:
        known = ", ".join(map(repr, adata.obs.columns)) or "none: adata.obs is empty"
        raise ValueError(f"groupby must be a column of adata.obs, one of {known}; got {groupby!r}.")
    labels = adata.obs[groupby].astype("category").cat.remove_unused_categories()
    if labels.isna().all():
        raise ValueError(f"adata.obs[{groupby!r}] must name the group of some cell; got missing values only.")
    return labels


def group_expression(adata: Any, groupby: str, genes: Sequence[str]) -> GroupedExpression:
    """Mean expression and frequency of genes in groups of cells, from the matrix that was factorized."""
    parameters = annotated(adata)["params"]
    if not genes:
        raise ValueError("genes must name at least one gene; got none.")
    labels = group_labels(adata, groupby)
    wanted = list(dict.fromkeys(genes))
    cells = read_cells(adata, layer=parameters.get("layer"), use_raw=bool(parameters["use_raw"]), genes=wanted)
    codes = np.asarray(labels.cat.codes)
    n_groups = len(labels.cat.categories)
    sums, counts = np.zeros((2, n_groups, cells.shape[1]))
    for start, block in cells.blocks():
        values = dense(block)
        members = (codes[start : start + len(values)] == np.arange(n_groups)[:, None]).astype(np.float64)
        sums += members @ values
        counts += members @ (values > 0)
    sizes = np.bincount(codes[codes >= 0], minlength=n_groups)
    found = [cells.gene_name(gene) for gene in range(cells.shape[1])]
    order = [found.index(gene) for gene in wanted if gene in found]
    return GroupedExpression(
        groups=tuple(map(str, labels.cat.categories)),
        genes=tuple(found[gene] for gene in order),
        means=(sums / sizes[:, None])[:, order],
        fractions=(counts / sizes[:, None])[:, order],
        sizes=tuple(sizes.tolist()),
    )


def relative(means: Doubles) -> Doubles:
    """Every column over its largest entry, so that genes of all levels can be compared."""
    top = means.max(axis=0, initial=0.0)
    return means / np.where(top > 0, top, 1.0)


def _draw_dots(grouped: GroupedExpression, axes: Axes) -> Axes:
    columns, rows = np.meshgrid(np.arange(len(grouped.genes)), np.arange(len(grouped.groups)))
    dots = axes.scatter(
        columns.ravel(), rows.ravel(), s=_LARGEST_DOT * grouped.fractions.ravel(), c=relative(grouped.means).ravel(),
        cmap="Reds", vmin=0.0, vmax=1.0, edgecolors="0.6", linewidths=0.4,
    )  # fmt: skip
    _label(grouped, axes)
    axes.set_xlim(-0.7, len(grouped.genes) - 0.3)
    axes.set_ylim(len(grouped.groups) - 0.3, -0.7)
    axes.figure.colorbar(dots, ax=axes, label="mean expression, of the highest group", shrink=0.9)
    sizes = [axes.scatter([], [], s=_LARGEST_DOT * part, color="0.6") for part in (0.2, 0.6, 1.0)]
    axes.legend(
        sizes, ["20 %", "60 %", "100 % of cells"], loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False,
        fontsize="small", handletextpad=0.2, columnspacing=0.9, borderaxespad=0.2,
    )  # fmt: skip
    return axes


def _draw_heat(grouped: GroupedExpression, axes: Axes) -> Axes:
    image = axes.imshow(relative(grouped.means), cmap="Reds", vmin=0.0, vmax=1.0, aspect="auto")
    _label(grouped, axes)
    axes.figure.colorbar(image, ax=axes, label="mean expression, of the highest group", shrink=0.9)
    return axes


def _label(grouped: GroupedExpression, axes: Axes) -> None:
    axes.set_xticks(np.arange(len(grouped.genes)), grouped.genes, rotation=90, parse_math=False)
    names = [f"{name} ({size})" for name, size in zip(grouped.groups, grouped.sizes, strict=True)]
    axes.set_yticks(np.arange(len(grouped.groups)), names, parse_math=False)


def _draw_embedding(adata: Any, record: Any, factor: str | None, basis: str | None, axes: Axes) -> Axes:
    key = find_embedding(adata, basis)
    places = np.asarray(adata.obsm[key])[:, :2]
    names = [str(name) for name in record["factors"].index]
    coefficients = np.asarray(adata.obsm[f"X_{KEY}"])
    size = float(np.clip(60_000 / max(1, places.shape[0]), 1.0, 20.0))
    if factor is not None:
        if factor not in names:
            raise ValueError(f"factor must be one of {', '.join(map(repr, names))}; got {factor!r}.")
        values = coefficients[:, names.index(factor)]
        order = np.argsort(values, kind="stable")  # the strongest on top
        dots = axes.scatter(places[order, 0], places[order, 1], c=values[order], s=size, cmap="viridis", linewidths=0)
        axes.figure.colorbar(dots, ax=axes, label="coefficient", shrink=0.9)
        axes.set_title(factor, parse_math=False)
    else:
        _draw_strongest(axes, places, np.asarray(adata.obs[f"{KEY}_factor"].cat.codes), names, size)
    title = key.removeprefix("X_")
    axes.set(xticks=[], yticks=[], xlabel=f"{title} 1", ylabel=f"{title} 2")
    return axes


def _draw_strongest(axes: Axes, places: Doubles, codes: Any, names: Sequence[str], size: float) -> None:
    colours = import_optional("matplotlib", "plot_markers", 'pip install "gsnmf[plots]"').colormaps["tab20"]
    axes.scatter(places[codes < 0, 0], places[codes < 0, 1], s=size, color="0.85", linewidths=0)
    for number, name in enumerate(names):
        members = places[codes == number]
        if members.size:
            axes.scatter(members[:, 0], members[:, 1], s=size, color=colours(number % 20), label=name, linewidths=0)
    axes.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, markerscale=np.sqrt(30.0 / size),
        ncols=1 if len(names) <= 20 else 2,
    )  # fmt: skip


def find_embedding(adata: Any, basis: str | None = None) -> str:
    """The name of an embedding in ``adata.obsm``, or an error with the names of those that are there."""
    embeddings = [key for key in adata.obsm if key != f"X_{KEY}" and np.ndim(adata.obsm[key]) == 2]
    wanted = _EMBEDDINGS if basis is None else (basis, f"X_{basis}")
    for key in wanted:
        if key in embeddings and adata.obsm[key].shape[1] >= 2:
            return key
    known = ", ".join(map(repr, embeddings)) or "none; call scanpy.tl.umap(adata) or scanpy.tl.pca(adata) first"
    asked = "an embedding" if basis is None else f"basis {basis!r}"
    raise ValueError(f"adata.obsm must have {asked} with two coordinates; got {known}.")


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    plt = import_optional("matplotlib.pyplot", "plot_markers", 'pip install "gsnmf[plots]"')
    axes: Axes = plt.subplots(layout="constrained", figsize=size)[1]
    return axes
