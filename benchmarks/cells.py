"""Marker genes next to NMF and cNMF at the same rank, by the measures that biologists use.

Every method sees the same genes of the same cells and lists as many genes per factor. NMF lists the genes with the
largest loadings, as its users do, and in a second line those with the best scores by the formula of
`gsnmf.applications.markers`; cNMF lists its own scores. Known markers are those of textbooks for blood cells, and
the planted ones of simulated cells. Blood cells come with scanpy; the output says what is not installed.

The weighting of genes was chosen with the blood cells and simulated cells of eight groups in view, and the formula of
the scores with the blood cells at ranks 8 and 10. An alternative weighting was compared on the other data too, and not
taken. Times are processor times.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.metrics import normalized_mutual_info_score, silhouette_score

from benchmarks._measuring import main, print_table, seconds, timed
from benchmarks._simulated_cells import simulated_cells
from gsnmf.applications.marker_genes.markers import listed_genes, markers
from gsnmf.support.arrays import Floats

_BLOOD: dict[str, tuple[str, ...]] = {
    "B cells": ("CD79A", "CD79B", "MS4A1", "CD19", "CD37", "BANK1", "CD74"),
    "NK cells": ("GNLY", "NKG7", "GZMB", "PRF1", "FGFBP2", "FCGR3A", "KLRD1", "KLRB1"),
    "monocytes": (
        "LYZ", "S100A8", "S100A9", "CD14", "FCN1", "AIF1", "CST3", "FCGR3A", "MS4A7", "LST1", "TYROBP",
    ),
    "dendritic cells": (
        "FCER1A", "CST3", "CLEC10A", "CD1C", "HLA-DRA", "HLA-DPA1", "HLA-DPB1", "HLA-DRB1",
    ),
    "T cells": ("CD3D", "CD3E", "CD3G", "IL7R", "LTB", "IL32", "CD27"),
    "CD8 T cells": ("CD8A", "CD8B", "GZMK", "CCL5", "GZMH"),
    "naive T cells": ("CCR7", "SELL", "LEF1"),
    "regulatory T cells": ("FOXP3", "IL2RA", "TIGIT", "CTLA4"),
    "CD34+ cells": ("SOX4", "STMN1", "SPINK2", "GATA2", "IGLL1", "CD34"),
}  # fmt: skip
"""Markers that textbooks and tutorials name for blood cells, written down before the comparison."""

_PER_FACTOR = 5


@dataclass(frozen=True)
class _Problem:
    """Cells with known groups and markers."""

    title: str
    data: Any
    labels: str
    known: Mapping[str, Sequence[str]]
    rank: int


@dataclass(frozen=True)
class _Answer:
    """Genes listed for all factors, one and several per factor, and the coefficients of cells."""

    first: list[str]
    several: list[str]
    strongest: Any


def run(quick: bool) -> None:
    """Measure and print everything, in a few minutes; ``quick`` takes few cells and little effort."""
    for problem in _problems(quick):
        header = (
            "method", "time", "1 per factor: precision", "groups", f"{_PER_FACTOR} per factor: precision", "recall",
            "groups", "of ranked genes", "mutual information", "silhouette",
        )  # fmt: skip
        print_table(problem.title, header, _compared(problem, quick))


def _problems(quick: bool) -> Iterator[_Problem]:
    blood = _blood()
    if blood is not None:
        known = {group: [gene for gene in genes if gene in blood.var_names] for group, genes in _BLOOD.items()}
        for rank in (10,) if quick else (8, 10, 14):
            yield _Problem(f"700 blood cells x 765 genes, rank {rank}", blood, "bulk_labels", known, rank)
    for n_groups, depth, seed in ((4, 2500.0, 0),) if quick else ((8, 2500.0, 0), (8, 2500.0, 1), (12, 1000.0, 2)):
        n_cells, n_genes = (200, 150) if quick else (1500, 1000)
        truth = simulated_cells(n_cells, n_genes, n_groups, depth=depth, random_state=seed)
        data = truth.to_anndata()
        known = {f"group {group}": [f"gene {gene}" for gene in own] for group, own in enumerate(truth.markers)}
        title = f"{n_cells} simulated cells x {n_genes} genes, {depth:g} counts per cell, rank {n_groups}, seed {seed}"
        yield _Problem(title, data, "group", known, n_groups)


def _blood() -> Any:
    """Blood cells of scanpy: logarithms in ``X``, and what comes closest to counts in a layer."""
    try:
        scanpy = import_module("scanpy")
    except ModuleNotFoundError:
        print("\nBlood cells are left out: they need scanpy, pip install scanpy.")
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = scanpy.datasets.pbmc68k_reduced()
        data = source.raw.to_adata()
    data.X = sp.csr_matrix(data.X)
    data.layers["counts"] = sp.csr_matrix(np.round(np.expm1(data.X.toarray())).astype(np.float32))
    return data


def _compared(problem: _Problem, quick: bool) -> Iterator[list[str]]:
    contestants: dict[str, Callable[[_Problem], _Answer]] = {
        "gsnmf markers": lambda p: _ours(p, "fast" if quick else "balanced"),
        "NMF, largest loadings": _nmf_by_loadings,
        "NMF, our scores": _nmf_by_scores,
    }
    n_runs = 4 if quick else 20
    if _has("cnmf"):
        contestants[f"cNMF, {n_runs} runs"] = lambda p: _cnmf(p, n_runs)
    ranked = _ranked(problem)
    coordinates = _principal(problem.data)
    for name, answer in contestants.items():
        try:
            elapsed, found = timed(partial(answer, problem), processor=True)
        except Exception as error:  # a peer that does not run with these versions must not end the comparison
            if name == "gsnmf markers":
                raise
            yield [name, f"failed: {type(error).__name__}", *["–"] * 8]
            continue
        one, several = known_markers(found.first, problem.known), known_markers(found.several, problem.known)
        shares = np.mean(list(shares_of_ranked(found.several, ranked).values())) if ranked else np.nan
        labels = problem.data.obs[problem.labels]
        yield [
            name, seconds(elapsed), f"{one.precision:.2f}", _groups(one, problem), f"{several.precision:.2f}",
            f"{several.recall:.2f}", _groups(several, problem), "–" if np.isnan(shares) else f"{shares:.2f}",
            f"{mutual_information(labels, found.strongest):.2f}", f"{silhouette(coordinates, found.strongest):.2f}",
        ]  # fmt: skip
    if not _has("cnmf"):
        yield ["cNMF", "not installed: pip install cnmf", *["–"] * 8]


def _groups(found: KnownMarkers, problem: _Problem) -> str:
    n_groups = sum(bool(genes) for genes in problem.known.values())
    return f"{round(found.groups_found * n_groups)} of {n_groups}"


def _ours(problem: _Problem, effort: Any) -> _Answer:
    found = markers(problem.data, problem.rank, genes=None, effort=effort, copy=True)
    return _Answer(listed_genes(found), listed_genes(found, _PER_FACTOR), found.obs["gsnmf_factor"])


def _nmf(problem: _Problem) -> tuple[Floats, Floats, Any, list[str]]:
    """Coefficients and loadings of unit length by scikit-learn, and the expression of the genes that take part."""
    names = [str(name) for name in problem.data.var_names]
    kept = [k for k, name in enumerate(names) if not name.startswith(("MT-", "RPL", "RPS"))]
    expression = problem.data.X[:, kept]
    model = NMF(problem.rank, init="nndsvda", max_iter=500, random_state=0)
    coefficients = model.fit_transform(expression)
    lengths = np.linalg.norm(model.components_, axis=1)
    return coefficients * lengths, model.components_ / lengths[:, None], expression, [names[k] for k in kept]


def _nmf_by_loadings(problem: _Problem) -> _Answer:
    coefficients, loadings, _, names = _nmf(problem)
    return _listed(loadings, coefficients, names)


def _nmf_by_scores(problem: _Problem) -> _Answer:
    coefficients, _, expression, names = _nmf(problem)
    dense = expression.toarray().astype(np.float64)
    centred, usage = dense - dense.mean(axis=0), coefficients - coefficients.mean(axis=0)
    deviations = centred.std(axis=0)
    effects = usage.T @ centred / (len(dense) * np.maximum(usage.std(axis=0), np.finfo(float).tiny)[:, None])
    return _listed(effects * np.abs(effects) / np.where(deviations > 0, deviations, np.inf), coefficients, names)


def _cnmf(problem: _Problem, n_runs: int) -> _Answer:
    """Consensus NMF of counts, with its own normalisation and its own scores of genes."""
    cnmf = import_module("cnmf").cNMF
    counts = problem.data.copy()
    counts.X = counts.layers["counts"].astype(np.float64)
    kept = [name for name in counts.var_names if not str(name).startswith(("MT-", "RPL", "RPS"))]
    counts = counts[:, kept].copy()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = f"{folder}/counts.h5ad"
        counts.write_h5ad(path)
        model = cnmf(output_dir=folder, name="bench")
        rank = problem.rank
        model.prepare(counts_fn=path, components=[rank], n_iter=n_runs, seed=0, num_highvar_genes=counts.n_vars)
        model.factorize()
        model.combine()
        model.consensus(k=rank, density_threshold=0.5, show_clustering=False)
        usage, scores, _, _ = model.load_results(K=rank, density_threshold=0.5)
    strongest = usage.to_numpy()
    full = np.zeros((counts.n_obs, rank))
    full[counts.obs_names.get_indexer(usage.index)] = strongest
    return _listed(scores.to_numpy().T, full, [str(name) for name in scores.index])


def _listed(scores: Floats, coefficients: Floats, names: Sequence[str]) -> _Answer:
    order = np.argsort(-np.nan_to_num(scores), axis=1, kind="stable")
    first, several = (
        list(dict.fromkeys(names[gene] for factor in order for gene in factor[:count])) for count in (1, _PER_FACTOR)
    )
    return _Answer(first, several, coefficients.argmax(axis=1))


def _ranked(problem: _Problem) -> dict[str, list[str]]:
    """Top genes of every group by a t-test, as scanpy ranks them; nothing without scanpy."""
    if not _has("scanpy"):
        return {}
    copy = problem.data.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("scanpy").tl.rank_genes_groups(copy, problem.labels, method="t-test", n_genes=10, use_raw=False)
    names = copy.uns["rank_genes_groups"]["names"]
    return {group: [str(gene) for gene in names[group]] for group in names.dtype.names}


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


def _codes(labels: Any) -> Any:
    """Categories as integers; -1 for missing ones."""
    return pandas.factorize(np.asarray(labels, dtype=object), use_na_sentinel=True)[0]


def _principal(data: Any) -> Floats:
    """The first twenty principal components of the expression."""
    dense = data.X.toarray().astype(np.float64)
    dense -= dense.mean(axis=0)
    U, S, _ = np.linalg.svd(dense, full_matrices=False)
    return np.asarray(U[:, :20] * S[:20])


def _has(library: str) -> bool:
    try:
        import_module(library)
    except Exception:  # also if it is there but does not fit the other libraries
        return False
    return True


if __name__ == "__main__":
    main(run)
