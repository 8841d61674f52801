"""Marker genes and prototype cells of an AnnData object in one call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

from gsnmf.applications.marker_genes.annotation import prepare, write
from gsnmf.applications.marker_genes.choice import Weighting, choose
from gsnmf.applications.marker_genes.coefficients import describe
from gsnmf.applications.marker_genes.input import HIGHLY_VARIABLE, read_cells

_log = logging.getLogger(__name__)


def markers(
    adata: Any,
    n_factors: int = 10,
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
) -> Any:
    r"""Explain the expression of all genes in all cells by a few marker genes and a few prototype cells.

    With the weighted expression M (cells x genes), genes and cells, ``n_factors`` in all, are chosen so that
    nonnegative weights bring

    .. math:: \| M - M(:, \mathrm{genes})\, P_1 - P_2\, M(\mathrm{cells}, :) \|_F

    as low as possible. Each chosen gene stands for a factor: the genes that are expressed with it. Each chosen cell
    stands for a factor, too: its own profile. Then every cell is described by nonnegative coefficients of all factors.

    Parameters
    ----------
    adata : AnnData
        Cells x genes, normalised and on a logarithmic scale as usual (``scanpy.pp.normalize_total``,
        ``scanpy.pp.log1p``). Sparse stays sparse; a backed file is read in blocks of cells, twice.
    n_factors : int
        How many genes and cells to choose in all.
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
        (`gsnmf.applications.marker_genes.choice.variability`), or as it is, so that genes with the highest expression
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
    parameters = {
        "n_factors": n_factors,
        "layer": layer,
        "use_raw": cells.expression.place == "raw.X",
        "genes": genes if isinstance(genes, str) else "all" if genes is None else "given",
        "exclude": ", ".join([exclude] if isinstance(exclude, str) else exclude),
        "batch_key": batch_key,
        "weighting": weighting,
        "method": method,
        "effort": effort,
        "members": members,
        "max_cells": max_cells,
        "random_state": random_state,
        "n_genes": cells.shape[1],
    }
    _log.info("%d genes of %s take part.", cells.shape[1], cells.expression.place)
    choice = choose(
        cells,
        n_factors,
        weighting=weighting,
        method=method,
        effort=effort,
        members=members,
        max_cells=max_cells,
        random_state=random_state,
    )
    found = prepare(adata, cells, choice, describe(cells, choice), parameters)
    for note in found.notes:
        _log.warning("%s", note)
    target = adata.copy() if copy else adata
    write(target, found)
    return target
