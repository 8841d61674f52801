"""How biologists judge factors: known markers, genes that differ between groups, and groups of cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score, silhouette_score

from gsnmf.applications.marker_genes.annotation import KEY, annotated
from gsnmf.support.arrays import Floats
from gsnmf.support.optional import import_optional


@dataclass(frozen=True)
class KnownMarkers:
    """How a list of genes compares with known markers.

    Attributes
    ----------
    precision : float
        Part of the listed genes that are known markers of some group.
    recall : float
        Part of the known markers that are listed.
    groups_found : float
        Part of the groups of which at least one known marker is listed.
    """

    precision: float
    recall: float
    groups_found: float


def known_markers(listed: Iterable[str], known: Mapping[str, Iterable[str]]) -> KnownMarkers:
    """Compare a list of genes with the known markers of groups of cells.

    Parameters
    ----------
    listed : names of genes
        Those that a method found; each counts once.
    known : mapping from groups to names of genes
        Groups without any known marker are left out.

    Examples
    --------
    >>> known_markers(["LYZ", "CD79A", "FTL"], {"B": ["CD79A", "MS4A1"], "Monocyte": ["LYZ"], "NK": ["GNLY"]})
    KnownMarkers(precision=0.6666666666666666, recall=0.5, groups_found=0.6666666666666666)
    """
    found = set(listed)
    groups = [genes for genes in map(set, known.values()) if genes]
    if not groups:
        raise ValueError("known must have at least one group with at least one gene; got none.")
    all_markers = set().union(*groups)
    return KnownMarkers(
        precision=len(found & all_markers) / len(found) if found else 0.0,
        recall=len(found & all_markers) / len(all_markers),
        groups_found=sum(bool(found & genes) for genes in groups) / len(groups),
    )


def shares_of_ranked(listed: Iterable[str], ranked: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """For every group the part of its top genes, by ``scanpy.tl.rank_genes_groups`` for instance, that are listed.

    Examples
    --------
    >>> shares_of_ranked(["LYZ", "CST3"], {"Monocyte": ["LYZ", "FTL"], "B": ["CD79A", "CD74"]})
    {'Monocyte': 0.5, 'B': 0.0}
    """
    found = set(listed)
    return {group: len(found & set(genes)) / len(genes) if len(genes) else 0.0 for group, genes in ranked.items()}


def ranked_genes(adata: Any, n_genes: int = 10, key: str = "rank_genes_groups") -> dict[str, list[str]]:
    """The first genes of every group from what ``scanpy.tl.rank_genes_groups`` left in ``adata.uns``."""
    if key not in adata.uns:
        raise ValueError(f"adata.uns has no {key!r}; call scanpy.tl.rank_genes_groups(adata, groupby=...) first.")
    names = adata.uns[key]["names"]
    return {group: [str(gene) for gene in names[group][:n_genes]] for group in names.dtype.names}


def listed_genes(adata: Any, n_genes: int = 1) -> list[str]:
    """The first genes of every factor that `gsnmf.applications.markers` found: chosen, or best correlated."""
    genes = annotated(adata)["factors"]["genes"]
    return list(dict.fromkeys(gene for line in genes for gene in line.split(", ")[:n_genes]))


def mutual_information(labels: Any, factors: Any) -> float:
    """Normalised mutual information of two groupings of cells, between 0 and 1; cells without either are left out.

    Examples
    --------
    >>> mutual_information(["a", "a", "b", "b"], ["x", "x", "y", "y"])
    1.0
    """
    first, second = _codes(labels), _codes(factors)
    if first.size != second.size:
        raise ValueError(f"labels and factors must have one entry per cell; got {first.size} and {second.size}.")
    labelled = (first >= 0) & (second >= 0)
    return float(normalized_mutual_info_score(first[labelled], second[labelled])) if labelled.any() else 0.0


def silhouette(coordinates: Floats, factors: Any, *, max_cells: int = 5000, random_state: int = 0) -> float:
    """Mean silhouette of cells, grouped by factor, in an embedding; of a sample if there are many.

    Zero if there are fewer than two groups, or as many as cells.
    """
    codes = _codes(factors)
    used = np.flatnonzero(codes >= 0)
    if used.size > max_cells:
        used = np.sort(np.random.default_rng(random_state).choice(used, max_cells, replace=False))
    if not 2 <= np.unique(codes[used]).size < used.size:
        return 0.0
    return float(silhouette_score(np.asarray(coordinates)[used], codes[used]))


def group_table(adata: Any, groupby: str) -> Any:
    """Mean coefficient of every factor in every group of cells, groups x factors; groups without cells are left out."""
    pandas = import_optional("pandas", "tables of groups", 'pip install "gsnmf[cells]"')
    names = annotated(adata)["factors"].index
    labels = group_labels(adata, groupby)
    table = pandas.DataFrame(np.asarray(adata.obsm[f"X_{KEY}"]), index=adata.obs_names, columns=names)
    return table.groupby(np.asarray(labels.astype(object)), sort=False).mean().reindex(_order(labels))


def group_labels(adata: Any, groupby: str) -> Any:
    """A column of ``adata.obs`` that groups cells, as a Series of categories."""
    if groupby not in adata.obs:
        known = ", ".join(map(repr, adata.obs.columns)) or "none: adata.obs is empty"
        raise ValueError(f"groupby must be a column of adata.obs, one of {known}; got {groupby!r}.")
    labels = adata.obs[groupby].astype("category").cat.remove_unused_categories()
    if labels.isna().all():
        raise ValueError(f"adata.obs[{groupby!r}] must name the group of some cell; got missing values only.")
    return labels


def _order(labels: Any) -> list[Any]:
    return list(labels.cat.categories)


def _codes(labels: Any) -> Any:
    """Categories as integers; -1 for missing ones."""
    pandas = import_optional("pandas", "groups of cells", 'pip install "gsnmf[cells]"')
    return pandas.factorize(np.asarray(labels, dtype=object), use_na_sentinel=True)[0]
