"""What the report says of an annotated AnnData object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gsnmf.applications.marker_genes.annotation import KEY, annotated
from gsnmf.applications.marker_genes.measures import group_labels, listed_genes
from gsnmf.applications.marker_genes.plots import find_embedding, group_expression, relative
from gsnmf.reports.cells import (
    CellFactor,
    CellFindings,
    CellMap,
    DotChart,
    HeatTable,
    Strength,
    cell_map,
    dot_chart,
)
from gsnmf.support.formatting import counted, listed, percent, shown

_USUAL_LABELS = (
    "cell_type",
    "celltype",
    "cell_type_ontology",
    "bulk_labels",
    "annotation",
    "labels",
    "leiden",
    "louvain",
)
_MOST_GROUPS = 40
_N_GENES = 10
_N_GROUPS = 6


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
    factors = tuple(_factor(adata, record, number, shares) for number in range(len(record["factors"])))
    n_genes = int(record["params"]["n_genes"])
    return CellFindings(
        title=shown(title or "Cells"),
        sentence=_sentence(record, adata.n_obs, n_genes),
        about=_about(record, adata.n_vars - n_genes),
        quality=float(record["quality"]),
        shape=(adata.n_obs, n_genes),
        factors=factors,
        group_column=shown(column or ""),
        dots=_dots(adata, column or f"{KEY}_factor"),
        by_group=_heat("Group", shares) if shares is not None else None,
        by_batch=_heat("Factor", record["batches"]) if "batches" in record else None,
        cell_map=_map(adata, record),
        parameters=_parameters(record) | dict(parameters or {}),
        warnings=tuple(line for line in str(record["notes"]).split("\n") if line),
    )


def usual_labels(adata: Any) -> str | None:
    """A column of ``adata.obs`` with a usual name for cell types or clusters, and not too many of them."""
    for name in _USUAL_LABELS:
        if name in adata.obs and 2 <= adata.obs[name].nunique() <= _MOST_GROUPS:
            return name
    return None


def _sentence(record: Mapping[str, Any], n_cells: int, n_genes: int) -> str:
    kinds = list(record["factors"]["kind"])
    chosen = [
        counted(kinds.count(kind), title) for kind, title in (("gene", "marker gene"), ("cell", "prototype cell"))
        if kind in kinds
    ]  # fmt: skip
    whole = f"{counted(n_cells, 'cell')} × {counted(n_genes, 'gene')}"
    if "of_possible" in record:
        part = percent(float(record["of_possible"]))
        return f"{listed(chosen)} in {whole}, with {part} of what any {counted(len(kinds), 'factor')} can explain"
    verb = "explains" if len(kinds) == 1 else "explain"
    return f"{listed(chosen)} {verb} {percent(float(record['quality']))} {_preposition(record)} {whole}"


def _about(record: Mapping[str, Any], n_left_out: int) -> str:
    used = "each gene by how much it differs between cells" if _is_weighted(record) else "as it is"
    left_out = f"Expression from {record['source']}, {used}; {counted(n_left_out, 'gene')} did not take part."
    if "of_possible" not in record:
        return left_out
    subject = "It explains" if len(record["factors"]) == 1 else "They explain"
    return f"{subject} {percent(float(record['quality']))} {_preposition(record)} the cells. {left_out}"


def _preposition(record: Mapping[str, Any]) -> str:
    return "of what differs between" if _is_weighted(record) else "of"


def _is_weighted(record: Mapping[str, Any]) -> bool:
    return str(record["params"]["weighting"]) == "variability"


def _shares(adata: Any, record: Mapping[str, Any], column: str) -> Any:
    """For every group the part of its cells in which each factor is strongest, groups x factors, as a DataFrame."""
    labels = group_labels(adata, column)
    names = list(record["factors"].index)
    strongest = adata.obs[f"{KEY}_factor"]
    counts = strongest.astype(object).groupby(labels.astype(object), sort=False).value_counts(dropna=True)
    table = counts.unstack(fill_value=0).reindex(index=list(labels.cat.categories), columns=names, fill_value=0)
    sizes = labels.value_counts().reindex(table.index)
    return table.div(sizes.to_numpy(), axis=0)


def _factor(adata: Any, record: Mapping[str, Any], number: int, shares: Any) -> CellFactor:
    row = record["factors"].iloc[number]
    name = str(record["factors"].index[number])
    scores = np.asarray(adata.varm[f"{KEY}_scores"])[:, number]
    top = max(float(scores.max()), np.finfo(np.float32).tiny)
    genes = tuple(
        Strength(shown(gene), float(np.clip(scores[adata.var_names.get_loc(gene)] / top, 0.0, 1.0)))
        for gene in str(row["genes"]).split(", ")[:_N_GENES]
    )
    strongest = () if shares is None else shares[name].sort_values(ascending=False, kind="stable")[:_N_GROUPS].items()
    is_cell = row["kind"] == "cell"
    return CellFactor(
        number=number + 1,
        title=shown(name),
        kind=str(row["kind"]),
        name=shown(str(row["name"])),
        share=float(row["share"]),
        n_cells=int(row["n_cells"]),
        genes=genes,
        groups=tuple(Strength(shown(str(group)), float(part), percent(part)) for group, part in strongest if part > 0),
        annotations=_annotations(adata, int(row["position"])) if is_cell else (),
    )


def _annotations(adata: Any, cell: int) -> tuple[tuple[str, str], ...]:
    """What the object says of one cell: its categories."""
    known = adata.obs.iloc[cell]
    kept = [
        name for name in adata.obs.columns if not str(name).startswith(KEY) and str(adata.obs[name].dtype) == "category"
    ]
    return tuple((shown(str(name)), shown(str(known[name]))) for name in kept[:6])


def _dots(adata: Any, column: str) -> DotChart:
    grouped = group_expression(adata, column, listed_genes(adata))
    groups, genes = [shown(name) for name in grouped.groups], [shown(name) for name in grouped.genes]
    return dot_chart(groups, genes, relative(grouped.means), grouped.fractions)


def _heat(corner: str, table: Any) -> HeatTable:
    rows = tuple(
        (shown(str(name)), tuple(map(float, values)))
        for name, values in zip(table.index, table.to_numpy(), strict=True)
    )
    return HeatTable(corner, tuple(shown(str(name)) for name in table.columns), rows)


def _map(adata: Any, record: Mapping[str, Any]) -> CellMap | None:
    try:
        key = find_embedding(adata)
    except ValueError:
        return None
    places = np.asarray(adata.obsm[key], dtype=np.float64)[:, :2]
    titles = [shown(str(name)) for name in record["factors"].index]
    return cell_map(
        key.removeprefix("X_"), places, np.asarray(adata.obs[f"{KEY}_factor"].cat.codes, dtype=np.intp), titles
    )


def _parameters(record: Mapping[str, Any]) -> dict[str, str]:
    titles = {
        "n_factors": "Factors",
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
