"""The report on marker genes and prototype cells: what it says, gathered from an annotated AnnData object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gsnmf.applications.marker_genes.markers import KEY, annotated, listed_genes
from gsnmf.applications.marker_genes.plots import find_embedding, group_expression, group_labels, relative
from gsnmf.reports.page import environment
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.formatting import counted, listed, percent, shown
from gsnmf.support.version import __version__

if TYPE_CHECKING:
    import pandas as pd

_USUAL_LABELS = (
    "cell_type", "celltype", "cell_type_ontology", "bulk_labels", "annotation", "labels", "leiden", "louvain",
)  # fmt: skip
_MOST_GROUPS = 40
_N_GENES, _N_GROUPS, _N_ANNOTATIONS = 10, 6, 6
"""Genes and groups listed with a factor, and annotations listed with a prototype cell."""

_STEP, _TOP, _LARGEST = 30.0, 92.0, 12.0
"""Distance of two dots, height of the names above them, and the largest radius."""
_PER_LETTER = 7.8
"""Width of a letter, slightly above average."""
_SIDE = 440.0


@dataclass(frozen=True)
class Strength:
    """A gene or a group that goes with a factor; ``strength`` is between 0 and 1."""

    name: str
    strength: float
    note: str = ""


@dataclass(frozen=True)
class CellFactor:
    """A factor: the gene or cell that stands for it, and what goes with it."""

    number: int
    title: str
    kind: str
    name: str
    share: float
    n_cells: int
    genes: tuple[Strength, ...]
    groups: tuple[Strength, ...]
    """Groups of cells, by the share of their cells in which the factor is strongest."""
    annotations: tuple[tuple[str, str], ...]
    """Categories of a prototype cell in the object."""


@dataclass(frozen=True)
class DotChart:
    """Marker genes by groups of cells."""

    width: float
    height: float
    left: float
    genes: tuple[tuple[float, str], ...]
    groups: tuple[tuple[float, str], ...]
    dots: tuple[tuple[float, float, float, float, str], ...]
    """Centre, radius, strength of the colour from 0 to 1, and label of every dot."""
    top: float = _TOP


@dataclass(frozen=True)
class CellMap:
    """Cells on an embedding, coloured by factor: one SVG path per factor."""

    name: str
    paths: tuple[tuple[int, str, str], ...]
    """Number of the factor from 1, its title, and the path."""
    n_shown: int
    n_cells: int
    side: float = _SIDE


@dataclass(frozen=True)
class CellFindings:
    """What the report says, section by section."""

    title: str
    sentence: str
    about: str
    quality: float
    shape: tuple[int, int]
    factors: tuple[CellFactor, ...]
    group_column: str
    dots: DotChart | None
    by_group: pd.DataFrame | None
    """For every group, the part of its cells in which each factor is strongest."""
    by_batch: pd.DataFrame | None
    """For every factor, its part in each batch."""
    cell_map: CellMap | None
    parameters: Mapping[str, str]
    warnings: tuple[str, ...]


def render_cells(findings: CellFindings) -> str:
    """The page as HTML; all names are escaped."""
    return environment().get_template("cells.html").render(f=findings, version=__version__)


def write_cells(findings: CellFindings, path: Any) -> None:
    """Write the page to a file, completely or not at all."""
    with atomic_write(path) as stream:
        stream.write(render_cells(findings).encode())


def summary(findings: CellFindings) -> dict[str, Any]:
    """A short machine-readable summary of the findings, ready for JSON."""
    return {
        "title": findings.title,
        "sentence": findings.sentence,
        "shape": list(findings.shape),
        "quality": findings.quality,
        "factors": [
            {
                "factor": factor.title,
                "kind": factor.kind,
                "name": factor.name,
                "share": factor.share,
                "n_cells": factor.n_cells,
                "genes": [gene.name for gene in factor.genes],
                "groups": {group.name: group.strength for group in factor.groups},
            }
            for factor in findings.factors
        ],
        "parameters": dict(findings.parameters),
        "warnings": list(findings.warnings),
    }


def gather_cells(
    adata: Any, *, groupby: str | None = None, title: str = "", parameters: Mapping[str, str] | None = None
) -> CellFindings:
    """Gather what the report says.

    Parameters
    ----------
    adata : AnnData
        After `gsnmf.applications.markers`.
    groupby : str, optional
        A column of ``adata.obs`` with groups of cells; by default a column with one of the usual names for cell types
        or clusters, if there is one.
    title : str
        What the data are.
    parameters : mapping of str to str, optional
        How the result was made, besides what the object says.
    """
    record = annotated(adata)
    column = groupby or usual_labels(adata)
    shares = _shares(adata, record, column) if column else None
    n_genes = int(record["params"]["n_genes"])
    sentence, about = _headline(record, adata, n_genes)
    return CellFindings(
        title=shown(title or "Cells"),
        sentence=sentence,
        about=about,
        quality=float(record["quality"]),
        shape=(adata.n_obs, n_genes),
        factors=tuple(_factor(adata, record, number, shares) for number in range(len(record["factors"]))),
        group_column=shown(column or ""),
        dots=_dots(adata, column or f"{KEY}_factor"),
        by_group=None if shares is None else shares.rename(index=_name, columns=_name),
        by_batch=record["batches"].rename(index=_name, columns=_name) if "batches" in record else None,
        cell_map=_map(adata, record),
        parameters=_parameters(record) | dict(parameters or {}),
        warnings=tuple(line for line in str(record["notes"]).split("\n") if line),
    )


def _name(value: object) -> str:
    return shown(str(value))


def usual_labels(adata: Any) -> str | None:
    """A column of ``adata.obs`` with a usual name for cell types or clusters, and not too many of them."""
    for name in _USUAL_LABELS:
        if name in adata.obs and 2 <= adata.obs[name].nunique() <= _MOST_GROUPS:
            return name
    return None


def _headline(record: Mapping[str, Any], adata: Any, n_genes: int) -> tuple[str, str]:
    """What was found in one sentence, and what it was found in."""
    kinds, weighted = list(record["factors"]["kind"]), str(record["params"]["weighting"]) == "variability"
    titles = {"gene": "marker gene", "cell": "prototype cell"}
    chosen = listed([counted(kinds.count(kind), title) for kind, title in titles.items() if kind in kinds])
    whole = f"{counted(adata.n_obs, 'cell')} × {counted(n_genes, 'gene')}"
    explained = f"{percent(float(record['quality']))} of {'what differs between ' if weighted else ''}"
    used = "each gene by how much it differs between cells" if weighted else "as it is"
    left_out = counted(adata.n_vars - n_genes, "gene")
    about = f"Expression from {record['source']}, {used}; {left_out} did not take part."
    if "of_possible" not in record:
        return f"{chosen} {'explains' if len(kinds) == 1 else 'explain'} {explained}{whole}", about
    part = f"{percent(float(record['of_possible']))} of what any {counted(len(kinds), 'factor')} can explain"
    subject = "It explains" if len(kinds) == 1 else "They explain"
    return f"{chosen} in {whole}, with {part}", f"{subject} {explained}the cells. {about}"


def _shares(adata: Any, record: Mapping[str, Any], column: str) -> Any:
    """For every group the part of its cells in which each factor is strongest, groups x factors, as a DataFrame."""
    labels = group_labels(adata, column)
    strongest = adata.obs[f"{KEY}_factor"].astype(object).groupby(labels.astype(object), sort=False)
    table = strongest.value_counts(dropna=True).unstack(fill_value=0)
    table = table.reindex(index=list(labels.cat.categories), columns=list(record["factors"].index), fill_value=0)
    return table.div(labels.value_counts().reindex(table.index).to_numpy(), axis=0)


def _factor(adata: Any, record: Mapping[str, Any], number: int, shares: Any) -> CellFactor:
    row = record["factors"].iloc[number]
    name = str(record["factors"].index[number])
    scores = np.asarray(adata.varm[f"{KEY}_scores"])[:, number]
    relative_scores = np.clip(scores / max(float(scores.max()), np.finfo(np.float32).tiny), 0.0, 1.0)
    genes = str(row["genes"]).split(", ")[:_N_GENES]
    groups = () if shares is None else shares[name].sort_values(ascending=False, kind="stable")[:_N_GROUPS].items()
    annotations: tuple[tuple[str, str], ...] = ()
    if row["kind"] == "cell":
        categories = adata.obs.select_dtypes("category").iloc[int(row["position"])]
        own = [(name, value) for name, value in categories.items() if not str(name).startswith(KEY)]
        annotations = tuple((shown(str(name)), shown(str(value))) for name, value in own[:_N_ANNOTATIONS])
    return CellFactor(
        number=number + 1,
        title=shown(name),
        kind=str(row["kind"]),
        name=shown(str(row["name"])),
        share=float(row["share"]),
        n_cells=int(row["n_cells"]),
        genes=tuple(Strength(shown(gene), float(relative_scores[adata.var_names.get_loc(gene)])) for gene in genes),
        groups=tuple(Strength(shown(str(group)), float(part), percent(part)) for group, part in groups if part > 0),
        annotations=annotations,
    )


def _dots(adata: Any, column: str) -> DotChart:
    """Circles for genes by groups: area by the part of cells with the gene, shade by relative expression."""
    grouped = group_expression(adata, column, listed_genes(adata))
    groups, genes = [shown(name) for name in grouped.groups], [shown(name) for name in grouped.genes]
    left = 18.0 + _PER_LETTER * max((len(name) for name in groups), default=0)
    places = [left + _STEP * (k + 0.5) for k in range(len(genes))]
    heights = [_TOP + _STEP * (k + 0.5) for k in range(len(groups))]
    strengths, radii = relative(grouped.means).round(3), (_LARGEST * np.sqrt(grouped.fractions)).round(1)
    dots = tuple(
        (
            round(places[column], 1), round(heights[row], 1), float(radii[row, column]), float(strengths[row, column]),
            f"{genes[column]} in {groups[row]}: in {grouped.fractions[row, column]:.0%} of cells",
        )
        for row, column in np.argwhere(grouped.fractions > 0)
    )  # fmt: skip
    return DotChart(
        width=left + _STEP * len(genes) + 30.0,
        height=_TOP + _STEP * len(groups) + 6.0,
        left=left,
        genes=tuple(zip(places, genes, strict=True)),
        groups=tuple(zip(heights, groups, strict=True)),
        dots=dots,
    )


def _map(adata: Any, record: Mapping[str, Any]) -> CellMap | None:
    try:
        key = find_embedding(adata)
    except ValueError:
        return None
    places = np.asarray(adata.obsm[key], dtype=np.float64)[:, :2]
    strongest = np.asarray(adata.obs[f"{KEY}_factor"].cat.codes, dtype=np.intp)
    return cell_map(key.removeprefix("X_"), places, strongest, [shown(str(name)) for name in record["factors"].index])


def cell_map(
    name: str, places: Doubles, strongest: Indices, titles: Sequence[str], *, max_cells: int = 4000
) -> CellMap:
    """Cells as dots, at most ``max_cells`` of them, evenly through the object; cells without a factor are left out."""
    usable = np.flatnonzero((strongest >= 0) & np.isfinite(places).all(axis=1))
    drawn = usable[np.linspace(0, usable.size - 1, min(usable.size, max_cells)).astype(np.intp)]
    low = places[drawn].min(axis=0, initial=np.inf)
    span = places[drawn].max(axis=0, initial=-np.inf) - low
    scaled = 8.0 + (_SIDE - 16.0) * (places[drawn] - low) / np.where(span > 0, span, 1.0)
    paths = []
    for number, title in enumerate(titles):
        members = scaled[strongest[drawn] == number]
        if members.size:
            steps = "".join(f"M{x:.1f} {_SIDE - y:.1f}h0" for x, y in members)
            paths.append((number + 1, title, steps))
    return CellMap(name, tuple(paths), int(drawn.size), int(strongest.size))


def _parameters(record: Mapping[str, Any]) -> dict[str, str]:
    titles = {
        "rank": "Factors",
        "genes": "Genes",
        "exclude": "Left out",
        "batch_key": "Batches",
        "weighting": "Weighting",
        "method": "Method",
        "effort": "Effort",
        "members": "Members of a factor",
        "max_cells": "Cells to choose from",
        "random_state": "Random state",
    }
    params = record["params"]
    known = {title: str(params[name]) for name, title in titles.items() if name in params}
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return {"Expression": str(record["source"]), **known, "Versions": versions}
