"""`markers`: marker genes and prototype cells of an AnnData object in one call, written into the object."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import numpy as np

from gsnmf.applications.marker_genes.expression import HIGHLY_VARIABLE, Cells, read_cells
from gsnmf.applications.marker_genes.factors import (
    Coefficients,
    MarkerFactors,
    Rank,
    Weighting,
    choose_factors,
    fit_cells,
)
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.formatting import joined
from gsnmf.support.optional import import_optional
from gsnmf.support.progress import Progress, log_stage, reported

_log = logging.getLogger(__name__)

KEY = "gsnmf"
"""What everything that is written is called."""

_N_LISTED = 20
"""Genes that are listed with each factor."""

_OWN_BATCH = 0.9
"""A factor with at least this share in one batch may be an effect of the batch, not a kind of cell."""


def markers(
    adata: Any,
    rank: Rank = 10,
    *,
    layer: str | None = None,
    use_raw: bool | None = None,
    genes: Any = HIGHLY_VARIABLE,
    exclude: str | Sequence[str] = ("^MT-", "^RP[LS]"),
    batch_key: str | None = None,
    weighting: Weighting = "variability",
    method: str = "auto",
    effort: Literal["fast", "balanced", "best"] = "balanced",
    members: int = 1,
    max_cells: int | None = 20_000,
    random_state: int = 0,
    copy: bool = False,
    progress: Progress = None,
) -> Any:
    r"""Explain the expression of all genes in all cells by a few marker genes and a few prototype cells.

    With the weighted expression M (cells x genes), genes and cells, ``rank`` in total, are chosen so that nonnegative
    weights bring

    .. math:: \| M - M(:, \mathrm{genes})\, P_1 - P_2\, M(\mathrm{cells}, :) \|_F

    as low as possible. Each chosen gene stands for a factor: the genes that are expressed with it. Each chosen cell
    stands for a factor, too: its own profile. Then every cell is described by nonnegative coefficients of all factors.

    Parameters
    ----------
    adata : AnnData
        Cells x genes, normalised and on a logarithmic scale as usual (``scanpy.pp.normalize_total``,
        ``scanpy.pp.log1p``). Sparse stays sparse; a backed file is read in blocks of cells, twice.
    rank : int, pair (n_genes, n_cells), range, or "auto"
        How many genes and cells to choose in total, or how many of each. From a range, or from 2 to 30 with "auto",
        `gsnmf.choose_rank` chooses.
    layer : str, optional
        The layer to use instead of ``X``.
    use_raw : bool, optional
        Whether to use ``adata.raw``. By default only if ``X`` has negative entries and ``raw`` has none. Genes that
        are in ``raw`` but not in ``adata`` do not take part.
    genes : str, mask, names of genes, or None
        Genes that take part: a column of flags in ``adata.var``, one flag per gene, names, or None for all.
    exclude : regular expressions
        Genes whose names match one, in capitals or not, do not take part: by default mitochondrial and ribosomal ones.
    batch_key : str, optional
        A column of ``adata.obs`` with the batch of each cell. Every batch then has the same weight in the error,
        whatever its size and depth, and factors that are almost only in one batch are named in the log and in ``uns``.
        Expression is not corrected for effects of batches.
    weighting : {"variability", "none"}
        Whether every gene counts by the part of its expression that differs between cells
        (`gsnmf.applications.marker_genes.factors.variability`), or as it is, so that genes with the highest expression
        count most.
    method, effort : str
        How to choose; as for `gsnmf.factorize`.
    members : int
        How many genes, or cells, a factor may mix; all of them are then markers, or prototypes.
    max_cells : int or None
        Genes and cells are chosen from a random sample of at most this many cells, as evenly from the batches as
        possible; None takes all. Coefficients, scores and quality are those of all cells.
    random_state : int
        Of the sample.
    copy : bool
        Whether to leave ``adata`` as it is and annotate a copy.
    progress : True or callable, optional
        As for `gsnmf.applications.topics`.

    Returns
    -------
    AnnData
        ``adata`` itself, or the copy, with

        - ``obsm["X_gsnmf"]``, cells x factors: coefficients, comparable between factors;
        - ``varm["gsnmf"]``, genes x factors: loadings, so that their product with the coefficients is close to the
          expression; zero for genes that did not take part;
        - ``varm["gsnmf_scores"]``, genes x factors: how reliably and how strongly each gene goes with each factor, as
          the product of a correlation and the rise of expression that goes with it;
        - ``var["gsnmf_marker"]``, ``obs["gsnmf_prototype"]``: flags of what was chosen;
        - ``obs["gsnmf_factor"]``: the strongest factor of each cell, missing in cells without expression;
        - ``uns["gsnmf"]``: ``factors``, a table with one row per factor in decreasing order of their shares;
          ``genes`` and ``cells``, the positions of what was chosen; ``quality``, one minus the relative error of M;
          ``of_possible``, the quality in the sample as a part of what any factors of this number can reach;
          ``source``, ``params``, ``versions``, ``notes``; and ``batches``, the part of each factor in each batch.

        Factors are called after their genes. A factor of a cell is called after the gene that goes with it most.

    Raises
    ------
    TypeError, ValueError
        With what to do, before anything is written: ``adata`` is never changed by a call that fails.

    Examples
    --------
    Cells of two kinds, with three genes of their own each:

    >>> import anndata
    >>> import numpy as np
    >>> from gsnmf.applications import markers
    >>> levels = np.repeat([[9.0, 9, 9, 0, 0, 0, 2, 2], [0, 0, 0, 9, 9, 9, 2, 2]], 20, axis=0)
    >>> cells = anndata.AnnData(np.log1p(np.random.default_rng(0).poisson(levels).astype(float)))
    >>> found = markers(cells, 2, genes=None, effort="fast")
    >>> found.obsm["X_gsnmf"].shape
    (40, 2)
    >>> [set(genes.split(", ")[:3]) == {"0", "1", "2"} for genes in found.uns["gsnmf"]["factors"]["genes"]].count(True)
    1

    Blood cells, where scanpy is installed:

    >>> import scanpy  # doctest: +SKIP
    >>> blood = scanpy.datasets.pbmc68k_reduced()  # doctest: +SKIP
    >>> markers(blood, 10).uns["gsnmf"]["factors"]["name"].head(4).tolist()  # doctest: +SKIP
    ['LYZ', 'CD3D', 'FCGR3A', 'MS4A1']
    """
    if copy and getattr(adata, "isbacked", False):
        raise ValueError("copy must be False for a backed object; pass adata.to_memory(), or adata.copy(filename=...).")
    if not copy and getattr(adata, "is_view", False):
        raise ValueError("adata is a view of another object, to which nothing can be written; pass adata.copy().")
    cells = read_cells(adata, layer=layer, use_raw=use_raw, genes=genes, exclude=exclude, batch_key=batch_key)
    _log.info("%d genes of %s take part.", cells.shape[1], cells.expression.place)
    search: dict[str, Any] = {
        "weighting": weighting,
        "method": method,
        "effort": effort,
        "members": members,
        "max_cells": max_cells,
        "random_state": random_state,
    }
    with reported(progress):
        log_stage("Choosing marker genes and prototype cells")
        factors = choose_factors(cells, rank, **search)
        log_stage("Fitting all cells")
        fitted = fit_cells(cells, factors)
    parameters = {
        "rank": rank if isinstance(rank, int) else str(rank),
        "layer": layer,
        "use_raw": cells.expression.place == "raw.X",
        "genes": genes if isinstance(genes, str) else "all" if genes is None else "given",
        "exclude": ", ".join([exclude] if isinstance(exclude, str) else exclude),
        "batch_key": batch_key,
        **search,
        "n_genes": cells.shape[1],
    }
    found = _annotation(adata, cells, factors, fitted, parameters)
    target = adata.copy() if copy else adata
    for place, values in found.items():
        for name, value in values.items():
            getattr(target, place)[name] = value
    return target


def annotated(adata: Any) -> Mapping[str, Any]:
    """The record that `markers` left in an object, or an error that says how to make one."""
    record: Mapping[str, Any] | None = getattr(adata, "uns", {}).get(KEY)
    if record is None or f"X_{KEY}" not in adata.obsm:
        raise ValueError("adata has no factors of gsnmf yet; call gsnmf.applications.markers(adata) first.")
    return record


def listed_genes(adata: Any, n_genes: int = 1) -> list[str]:
    """The first genes of every factor that `markers` found: chosen genes, then those with the highest scores."""
    genes = annotated(adata)["factors"]["genes"]
    return list(dict.fromkeys(gene for line in genes for gene in line.split(", ")[:n_genes]))


def _annotation(
    adata: Any, cells: Cells, factors: MarkerFactors, fitted: Coefficients, parameters: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """What is written to each part of the object, the factors in decreasing order of their share."""
    pandas = import_optional("pandas", "marker genes", 'pip install "gsnmf[cells]"')
    order = np.argsort(-fitted.values.sum(axis=0, dtype=np.float64), kind="stable")
    coefficients, scores = np.ascontiguousarray(fitted.values[:, order]), fitted.scores[order]
    strongest = np.where(coefficients.max(axis=1) > 0, coefficients.argmax(axis=1), -1)
    table = _factor_table(cells, factors, order, coefficients, scores, strongest)
    batches = _batch_table(cells, coefficients, table.index)
    with np.errstate(divide="ignore"):
        unweighting = np.where(factors.gene_weights > 0, 1.0 / factors.gene_weights, 0.0)
    genes, prototypes = cells.genes[_distinct(factors.genes)], _distinct(factors.cells)
    notes = _notes(factors.n_asked, len(table), batches)
    for note in notes:
        _log.warning("%s", note)
    record = {
        "factors": table,
        "genes": genes,
        "cells": prototypes,
        "quality": fitted.quality,
        "source": cells.expression.place,
        "params": {name: value for name, value in parameters.items() if value is not None},
        "versions": _versions(),
        "notes": "\n".join(notes),
        "of_possible": factors.of_possible,
        "batches": batches,
    }
    loadings = (factors.loadings[order] * unweighting).T
    return {
        "obsm": {f"X_{KEY}": coefficients},
        "varm": {
            KEY: _of_all_genes(loadings.astype(coefficients.dtype), cells.genes, adata.n_vars),
            f"{KEY}_scores": _of_all_genes(scores.T.astype(np.float32), cells.genes, adata.n_vars),
        },
        "var": {f"{KEY}_marker": np.isin(np.arange(adata.n_vars), genes)},
        "obs": {
            f"{KEY}_prototype": np.isin(np.arange(adata.n_obs), prototypes),
            f"{KEY}_factor": pandas.Categorical.from_codes(strongest, categories=list(table.index)),
        },
        "uns": {KEY: {name: value for name, value in record.items() if value is not None}},
    }


def _factor_table(
    cells: Cells, factors: MarkerFactors, order: Indices, coefficients: Floats, scores: Doubles, strongest: Indices
) -> Any:
    """One row per factor: what was chosen, its share, and the genes that go with it."""
    pandas = import_optional("pandas", "marker genes", 'pip install "gsnmf[cells]"')
    sums = coefficients.sum(axis=0, dtype=np.float64)
    counts = np.bincount(strongest[strongest >= 0], minlength=sums.size)
    rows, names = [], []
    for number, factor in enumerate(order):
        is_gene = factor < len(factors.genes)
        own = (factors.genes + factors.cells)[factor].tolist()
        chosen = own[:_N_LISTED] if is_gene else []
        others = [int(g) for g in np.argsort(-scores[number], kind="stable") if g not in chosen]
        genes = [cells.gene_name(g) for g in (chosen + others)[:_N_LISTED]]
        name = joined([cells.gene_name(i) if is_gene else cells.cell_names[i] for i in own])
        names.append(name if is_gene else f"{genes[0]} cell")
        rows.append(
            {
                "kind": "gene" if is_gene else "cell",
                "name": name,
                "position": int(cells.genes[own[0]]) if is_gene else own[0],
                "share": float(sums[number] / sums.sum()) if sums.sum() > 0 else 0.0,
                "n_cells": int(counts[number]),
                "leading_gene": genes[0],
                "genes": ", ".join(genes),
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
    """The mean coefficient of every factor in every batch, as a part of the sum over batches; None without batches."""
    if not cells.batch_names:
        return None
    pandas = import_optional("pandas", "marker genes", 'pip install "gsnmf[cells]"')
    means = pandas.DataFrame(coefficients, columns=names, dtype=np.float64).groupby(cells.batches).mean().T
    means.columns = list(cells.batch_names)
    return means.div(means.sum(axis=1), axis=0).fillna(0.0)


def _notes(asked: int, found: int, batches: Any) -> list[str]:
    notes = [f"{found} factors explain everything; {asked} were asked for."] if found < asked else []
    if batches is not None and batches.shape[1] > 1:
        notes += [
            f"Factor {name} is almost only in batch {shares.idxmax()} ({shares.max():.0%}): it may be an effect of "
            "the batch rather than a kind of cell."
            for name, shares in batches.iterrows()
            if shares.max() >= _OWN_BATCH
        ]
    return notes


def _of_all_genes(values: Floats, genes: Indices, n_genes: int) -> Floats:
    """Rows of the genes that took part among rows of zeros for the others."""
    spread = np.zeros((n_genes, values.shape[1]), dtype=values.dtype)
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
