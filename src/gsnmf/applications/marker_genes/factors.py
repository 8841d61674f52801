"""Factors of cells: the genes and cells that stand for them, and how much of every factor is in every cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.applications.marker_genes.expression import Cells
from gsnmf.diagnostics import compare
from gsnmf.functions import factorize
from gsnmf.matrix import wrap
from gsnmf.matrix.validation import check_count, check_rank
from gsnmf.metrics import relative_error
from gsnmf.model_selection.rank_choice import USUAL_RANKS, choose_rank
from gsnmf.support.arrays import Doubles, Floats, Indices, RawMatrix
from gsnmf.weights import coefficients_for

Rank = int | tuple[int, int] | range | Literal["auto"]
Weighting = Literal["variability", "none"]

_ROUNDING = 1e-12
"""Variance below this fraction of the mean square is rounding, and counts as zero."""


@dataclass(frozen=True)
class MarkerFactors:
    """The genes and cells that stand for the factors, and the loadings of genes.

    Attributes
    ----------
    genes, cells : tuples of int arrays
        Chosen genes of every factor of genes, as positions among those that take part, and chosen cells of every factor
        of cells, the largest share first. Factors are in this order, genes first.
    n_asked : int
        How many factors were asked for; everything may be explained by fewer.
    loadings : array, shape (factors, genes)
        Weighted expression of each gene in each factor; every factor has unit length.
    gene_weights : array, one per gene
    of_possible : float or None
        What the factors explain of the sample, as a part of what any factors of this number can explain, by truncated
        SVD; None if that was too much work.
    """

    genes: tuple[Indices, ...]
    cells: tuple[Indices, ...]
    n_asked: int
    loadings: Floats
    gene_weights: Floats
    of_possible: float | None = None


def choose_factors(
    cells: Cells,
    rank: Rank,
    *,
    weighting: Weighting,
    method: str,
    effort: Any,
    members: int,
    max_cells: int | None,
    random_state: int,
) -> MarkerFactors:
    """Choose genes and cells that explain the others, from a sample of cells if there are many."""
    if weighting not in ("variability", "none"):
        raise ValueError(f"weighting must be 'variability' or 'none'; got {weighting!r}.")
    if isinstance(rank, str) and rank != "auto":
        raise ValueError(f"rank must be a number, a pair, a range or 'auto'; got {rank!r}.")
    limit = cells.shape[0] if max_cells is None else check_count(max_cells, "max_cells")
    sampled = even_sample(cells.batches, limit, np.random.default_rng(random_state))
    if isinstance(rank, int):
        check_rank(rank, (sampled.size, cells.shape[1]))
    matrix = _gather(cells, sampled)
    gene_weights = variability(matrix) if weighting == "variability" else np.ones(matrix.shape[1])
    gene_weights = gene_weights.astype(matrix.dtype)
    if not (np.any(gene_weights) and (matrix.max() > 0)):
        raise ValueError(
            f"{cells.expression.place} must tell cells apart; got the same expression of every gene in every cell."
        )
    weighted = _weighted_columns(matrix, gene_weights)
    if cells.batch_names:
        weighted = _weighted_columns(weighted.T, equal_batches(weighted, cells.batches[sampled])).T
    held = wrap(weighted)
    if isinstance(rank, (str, range)):
        rank = choose_rank(held, rank if isinstance(rank, range) else USUAL_RANKS, effort=effort).rank
    result = factorize(held, rank, method=method, effort=effort, members=members)
    lengths = np.linalg.norm(result.H, axis=1)
    best = compare(result).svd_quality
    return MarkerFactors(
        genes=tuple(own for own, _ in result.members[: result.columns.size]),
        cells=tuple(sampled[own] for own, _ in result.members[result.columns.size :]),
        n_asked=int(np.sum(rank)),
        loadings=result.H / np.where(lengths > 0, lengths, 1.0)[:, None],
        gene_weights=gene_weights,
        of_possible=min(result.quality / best, 1.0) if best else None,
    )


def even_sample(batches: Indices, limit: int, rng: np.random.Generator) -> Indices:
    """At most ``limit`` cells, in increasing order, as evenly from all batches as their sizes allow.

    Examples
    --------
    >>> import numpy as np
    >>> batches = np.array([0] * 90 + [1] * 6 + [2] * 4)
    >>> np.bincount(batches[even_sample(batches, 20, np.random.default_rng(0))])
    array([10,  6,  4])
    """
    if batches.size <= limit:
        return np.arange(batches.size)
    sizes = np.bincount(batches)
    quotas = np.zeros_like(sizes)
    order = np.argsort(sizes, kind="stable")
    left = limit
    for position, batch in enumerate(order):  # small batches first: the others share the cells that these lack
        quotas[batch] = min(sizes[batch], left // (order.size - position))
        left -= quotas[batch]
    drawn = [rng.choice(np.flatnonzero(batches == batch), quota, replace=False) for batch, quota in enumerate(quotas)]
    return np.sort(np.concatenate(drawn))


def variability(matrix: RawMatrix) -> Doubles:
    r"""Weights that make each gene count by the part of its expression that differs between cells.

    .. math:: w_j = \frac{s_j}{q_j}, \qquad s_j^2 = q_j - \bar{x}_j^2, \qquad q_j = \frac{1}{m} \sum_i x_{ij}^2

    The mean square of a weighted gene is then :math:`s_j^2 / q_j`, between 0 for a gene with the same expression in all
    cells and almost 1 for a gene in few of them. Without weights the error would be dominated by the genes with the
    highest expression, which every cell needs and which mark no kind of cell.

    Examples
    --------
    A gene in all cells, and two that are in one of four cells, at very different levels:

    >>> import numpy as np
    >>> matrix = np.array([[5.0, 0, 0.1], [5.0, 0, 0], [5.0, 0, 0], [5.0, 100, 0]])
    >>> np.sqrt(np.mean((matrix * variability(matrix)) ** 2, axis=0)).round(3)
    array([0.   , 0.866, 0.866])
    """
    sums = _sums_over_cells(matrix)
    mean_squares = sums[1] / matrix.shape[0]
    return _deviations(sums, matrix.shape[0]) / np.where(mean_squares > 0, mean_squares, 1.0)


def equal_batches(matrix: RawMatrix, batches: Indices) -> Floats:
    """Weights of cells with which every batch has the same norm, so that none dominates the error; one per cell."""
    norms = np.bincount(batches, weights=_sums_over_cells(matrix.T)[1])
    used = norms > 0
    shares = np.zeros(norms.size)
    shares[used] = np.sqrt(norms.sum() / (used.sum() * norms[used]))
    return shares[batches].astype(matrix.dtype)


@dataclass(frozen=True)
class Coefficients:
    """All cells in terms of the factors.

    Attributes
    ----------
    values : array, shape (cells, factors)
        Nonnegative: how much of each factor is in each cell. Since every factor has unit length, they are comparable.
    scores : array, shape (factors, genes)
        How reliably and how strongly each gene goes with each factor over the cells: correlation times effect.
    quality : float
        One minus the relative error of the weighted expression of all cells.
    """

    values: Floats
    scores: Doubles
    quality: float


def fit_cells(cells: Cells, factors: MarkerFactors) -> Coefficients:
    r"""Coefficients of all cells, the scores of genes, and the quality, in one pass over blocks of cells.

    The coefficients u of a cell with weighted expression x solve

    .. math:: \min_{u \ge 0} \; \| x - u H \|_2

    with the loadings H of all factors, exactly. Only one block of cells is held besides the coefficients.

    The score of a gene j for a factor k is

    .. math:: \rho_{kj}\, |\rho_{kj}|\, s_j

    with the correlation of coefficients and expression and the standard deviation of the expression: the product of a
    correlation and of an effect, :math:`\rho_{kj} s_j`, which is the rise of expression per standard deviation of the
    factor. Correlation alone would favour genes that are hardly expressed, effects alone those that every cell
    expresses. The idea is that of the :math:`\pi`-value for differential expression (Xiao et al., 2014,
    doi:10.1093/bioinformatics/btr671).
    """
    n_cells, n_factors = cells.shape[0], len(factors.loadings)
    values = np.empty((n_cells, n_factors), dtype=factors.loadings.dtype)
    gene_sums, products = np.zeros((2, cells.shape[1])), np.zeros((n_factors, cells.shape[1]))
    squared_error = squared_norm = 0.0
    for start, block in cells.blocks():
        weighted = _weighted_columns(block, factors.gene_weights)
        found = coefficients_for(wrap(weighted), factors.loadings)
        values[start : start + block.shape[0]] = found
        gene_sums += _sums_over_cells(block)
        products += np.asarray(block.T @ found).T
        norm = float(_sums_over_cells(weighted)[1].sum())
        if norm > 0:
            squared_norm += norm
            squared_error += norm * relative_error(weighted, found, factors.loadings) ** 2
    factor_sums = _sums_over_cells(values)
    covariances = products / n_cells - np.outer(factor_sums[0], gene_sums[0]) / n_cells**2
    of_genes, of_factors = _deviations(gene_sums, n_cells), _deviations(factor_sums, n_cells)
    effects = covariances / np.where(of_factors > 0, of_factors, np.inf)[:, None]
    return Coefficients(
        values=values,
        scores=effects * np.abs(effects) / np.where(of_genes > 0, of_genes, np.inf),
        quality=1.0 - float(np.sqrt(squared_error / squared_norm)) if squared_norm > 0 else 1.0,
    )


def _gather(cells: Cells, sampled: Indices) -> RawMatrix:
    """The sampled cells as one matrix; every entry of all cells is checked on the way."""
    parts = []
    for start, block in cells.blocks():
        first, last = np.searchsorted(sampled, [start, start + block.shape[0]])
        chosen = sampled[first:last] - start
        parts.append(block if chosen.size == block.shape[0] else block[chosen])
    if len(parts) == 1:
        return parts[0]
    stacked: Any = parts
    return np.vstack(stacked) if isinstance(parts[0], np.ndarray) else sp.csr_array(sp.vstack(stacked, format="csr"))


def _weighted_columns(matrix: RawMatrix, weights: Floats) -> Any:
    """A matrix with its columns times weights; the positions of a sparse one are shared, not copied."""
    if isinstance(matrix, np.ndarray):
        return matrix * weights
    if matrix.format == "csr":
        return sp.csr_array((matrix.data * weights[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape)
    repeated = np.repeat(weights, np.diff(matrix.indptr))
    return sp.csc_array((matrix.data * repeated, matrix.indices, matrix.indptr), shape=matrix.shape)


def _sums_over_cells(matrix: RawMatrix) -> Doubles:
    """Sums of all columns and of their squares, in double precision, shape (2, n_columns)."""
    doubles = matrix.astype(np.float64)
    squares = doubles**2 if isinstance(doubles, np.ndarray) else doubles.power(2)
    return np.array([np.asarray(part.sum(axis=0)).ravel() for part in (doubles, squares)])


def _deviations(sums: Doubles, count: int) -> Doubles:
    """Standard deviations from sums of values and of their squares."""
    mean_squares = sums[1] / count
    variances = mean_squares - (sums[0] / count) ** 2
    return np.sqrt(np.where(variances > _ROUNDING * mean_squares, variances, 0.0))
