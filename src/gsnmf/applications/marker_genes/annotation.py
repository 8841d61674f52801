"""What is written back to the AnnData object, and how it is read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gsnmf.applications.marker_genes.choice import Choice
from gsnmf.applications.marker_genes.coefficients import Described
from gsnmf.applications.marker_genes.input import Cells
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.formatting import joined
from gsnmf.support.optional import import_optional

KEY = "gsnmf"
N_LISTED = 20
"""Genes that are listed with each factor."""

_OWN_BATCH = 0.9
"""A factor with at least this share in one batch may be an effect of the batch, not a kind of cell."""


@dataclass(frozen=True)
class Annotation:
    """Everything that is written to an AnnData object, in its order of cells and genes."""

    coefficients: Floats
    loadings: Floats
    scores: Floats
    marker_genes: Indices
    prototypes: Indices
    strongest: Indices
    """Number of the strongest factor of each cell; -1 for a cell in which none is."""
    factors: Any
    """One row per factor, as a DataFrame."""
    batches: Any
    """Part of each factor in each batch, as a DataFrame; None without batches."""
    quality: float
    of_possible: float | None
    source: str
    parameters: Mapping[str, Any]
    notes: tuple[str, ...]


def prepare(
    adata: Any, cells: Cells, choice: Choice, described: Described, parameters: Mapping[str, Any]
) -> Annotation:
    """Put together what is to be written, the factors in decreasing order of their share; nothing is written yet."""
    order = np.argsort(-described.coefficients.sum(axis=0, dtype=np.float64), kind="stable")
    coefficients = np.ascontiguousarray(described.coefficients[:, order])
    scores = described.scores[order]
    strongest = np.where(coefficients.max(axis=1) > 0, coefficients.argmax(axis=1), -1)
    factors = _factor_table(cells, choice, order, coefficients, scores, strongest)
    batches = _batch_table(cells, coefficients, factors.index)
    with np.errstate(divide="ignore"):
        unweighting = np.where(choice.gene_weights > 0, 1.0 / choice.gene_weights, 0.0)
    return Annotation(
        coefficients=coefficients,
        loadings=_spread((choice.loadings[order] * unweighting).T, cells.genes, adata.n_vars, coefficients.dtype),
        scores=_spread(scores.T, cells.genes, adata.n_vars, np.dtype(np.float32)),
        marker_genes=cells.genes[_distinct(choice.genes)],
        prototypes=_distinct(choice.cells),
        strongest=strongest,
        factors=factors,
        batches=batches,
        quality=described.quality,
        of_possible=choice.of_possible,
        source=cells.expression.place,
        parameters=parameters,
        notes=_notes(parameters["n_factors"], len(factors), batches),
    )


def write(adata: Any, found: Annotation) -> None:
    """Write the annotation to an object, over what an earlier call wrote."""
    pandas = import_optional("pandas", "marker genes", 'pip install "gsnmf[cells]"')
    names = found.factors.index
    adata.obsm[f"X_{KEY}"] = found.coefficients
    adata.varm[KEY] = found.loadings
    adata.varm[f"{KEY}_scores"] = found.scores
    adata.var[f"{KEY}_marker"] = np.isin(np.arange(adata.n_vars), found.marker_genes)
    adata.obs[f"{KEY}_prototype"] = np.isin(np.arange(adata.n_obs), found.prototypes)
    adata.obs[f"{KEY}_factor"] = pandas.Categorical.from_codes(found.strongest, categories=list(names))
    record = {
        "factors": found.factors,
        "genes": found.marker_genes,
        "cells": found.prototypes,
        "quality": found.quality,
        "source": found.source,
        "params": {name: value for name, value in found.parameters.items() if value is not None},
        "versions": _versions(),
        "notes": "\n".join(found.notes),
    }
    known = {"of_possible": found.of_possible, "batches": found.batches}
    adata.uns[KEY] = record | {name: value for name, value in known.items() if value is not None}


def annotated(adata: Any) -> Mapping[str, Any]:
    """The record that `write` left in an object, or an error that says how to make one."""
    record: Mapping[str, Any] | None = getattr(adata, "uns", {}).get(KEY)
    if record is None or f"X_{KEY}" not in adata.obsm:
        raise ValueError("adata has no factors of gsnmf yet; call gsnmf.applications.markers(adata) first.")
    return record


def _factor_table(
    cells: Cells, choice: Choice, order: Indices, coefficients: Floats, scores: Doubles, strongest: Indices
) -> Any:
    """One row per factor: what was chosen, its share, and the genes that go with it."""
    pandas = import_optional("pandas", "marker genes", 'pip install "gsnmf[cells]"')
    sums = coefficients.sum(axis=0, dtype=np.float64)
    counts = np.bincount(strongest[strongest >= 0], minlength=sums.size)
    rows, names = [], []
    for number, factor in enumerate(order):
        is_gene = factor < len(choice.genes)
        own = (choice.genes[factor] if is_gene else choice.cells[factor - len(choice.genes)]).tolist()
        chosen = own[:N_LISTED] if is_gene else []
        others = [int(g) for g in np.argsort(-scores[number], kind="stable") if g not in chosen]
        listed = chosen + others[: N_LISTED - len(chosen)]
        leading = cells.gene_name(listed[0])
        name = joined([cells.gene_name(g) for g in own] if is_gene else [cells.cell_names[c] for c in own])
        names.append(name if is_gene else f"{leading} cell")
        rows.append(
            {
                "kind": "gene" if is_gene else "cell",
                "name": name,
                "position": int(cells.genes[own[0]]) if is_gene else own[0],
                "share": float(sums[number] / sums.sum()) if sums.sum() > 0 else 0.0,
                "n_cells": int(counts[number]),
                "leading_gene": leading,
                "genes": ", ".join(cells.gene_name(g) for g in listed),
            }
        )
    return pandas.DataFrame(rows, index=pandas.Index(_unique(names), name="factor"))


def _distinct(chosen: tuple[Indices, ...]) -> Indices:
    """What was chosen for all factors, each once, in the order of choice."""
    return np.array(list(dict.fromkeys(int(i) for own in chosen for i in own)), dtype=np.intp)


def _unique(names: list[str]) -> list[str]:
    """Names with a number where one occurs again.

    Examples
    --------
    >>> _unique(["SOX4 cell", "LYZ", "SOX4 cell"])
    ['SOX4 cell', 'LYZ', 'SOX4 cell 2']
    """
    taken: list[str] = []
    for name in names:
        candidates = (name if number == 1 else f"{name} {number}" for number in range(1, len(names) + 2))
        taken.append(next(candidate for candidate in candidates if candidate not in taken))
    return taken


def _batch_table(cells: Cells, coefficients: Floats, names: Any) -> Any:
    """The mean coefficient of every factor in every batch, as a part of the sum over batches."""
    if not cells.batch_names:
        return None
    pandas = import_optional("pandas", "marker genes", 'pip install "gsnmf[cells]"')
    counts = np.bincount(cells.batches)
    means = np.stack([np.bincount(cells.batches, weights=column) for column in coefficients.T]) / counts
    totals = means.sum(axis=1, keepdims=True)
    shares = np.divide(means, totals, out=np.zeros_like(means), where=totals > 0)
    return pandas.DataFrame(shares, index=names, columns=list(cells.batch_names))


def _notes(asked: int, found: int, batches: Any) -> tuple[str, ...]:
    notes = []
    if found < asked:
        notes.append(f"{found} factors explain everything; {asked} were asked for.")
    if batches is not None and batches.shape[1] > 1:
        for name, shares in batches.iterrows():
            if shares.max() >= _OWN_BATCH:
                notes.append(
                    f"Factor {name} is almost only in batch {shares.idxmax()} ({shares.max():.0%}): it may be an "
                    "effect of the batch rather than a kind of cell."
                )
    return tuple(notes)


def _spread(values: Floats, genes: Indices, n_genes: int, dtype: np.dtype[Any]) -> Floats:
    """Rows of the genes that took part among rows of zeros for the others."""
    spread = np.zeros((n_genes, values.shape[1]), dtype=dtype)
    spread[genes] = values
    return spread


def _versions() -> dict[str, str]:
    found = {}
    for library in ("gsnmf", "numpy", "scipy", "scikit-learn", "anndata"):
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
