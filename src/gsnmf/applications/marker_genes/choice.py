"""The choice of genes and cells: a sample of cells, weights of genes and batches, and a factorization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.applications.marker_genes.input import Cells
from gsnmf.diagnostics import compare
from gsnmf.functions import factorize
from gsnmf.matrix.validation import check_count, check_rank
from gsnmf.support.arrays import Doubles, Floats, Indices, RawMatrix

Weighting = Literal["variability", "none"]


@dataclass(frozen=True)
class Choice:
    """Chosen genes and cells, and what the factors say about genes.

    Attributes
    ----------
    genes, cells : tuples of int arrays
        Chosen genes of every factor of genes, as positions among those that take part, and chosen cells of every factor
        of cells, the largest share first. Factors are in this order, genes first.
    loadings : array, shape (factors, genes)
        Weighted expression of each gene in each factor; every factor has unit length.
    gene_weights : array, one per gene
    of_possible : float or None
        What the factors explain of the sample, as a part of what any factors of this number can explain, by truncated
        SVD; None if that was too much work.
    """

    genes: tuple[Indices, ...]
    cells: tuple[Indices, ...]
    loadings: Floats
    gene_weights: Floats
    of_possible: float | None = None


def choose(
    cells: Cells,
    n_factors: int,
    *,
    weighting: Weighting,
    method: str,
    effort: Any,
    members: int,
    max_cells: int | None,
    random_state: int,
) -> Choice:
    """Choose genes and cells that explain the others, from a sample of cells if there are many."""
    if weighting not in ("variability", "none"):
        raise ValueError(f"weighting must be 'variability' or 'none'; got {weighting!r}.")
    limit = cells.shape[0] if max_cells is None else check_count(max_cells, "max_cells")
    sampled = even_sample(cells.batches, limit, np.random.default_rng(random_state))
    check_rank(n_factors, (sampled.size, cells.shape[1]), name="n_factors")
    matrix = gather(cells, sampled)
    gene_weights = variability(matrix) if weighting == "variability" else np.ones(matrix.shape[1])
    gene_weights = gene_weights.astype(matrix.dtype)
    if not (np.any(gene_weights) and (matrix.max() > 0)):
        raise ValueError(
            f"{cells.expression.place} must tell cells apart; got the same expression of every gene in every cell."
        )
    weighted = weighted_columns(matrix, gene_weights)
    if cells.batch_names:
        weighted = weighted_columns(weighted.T, equal_batches(weighted, cells.batches[sampled])).T
    result = factorize(weighted, n_factors, method=method, effort=effort, members=members)
    lengths = np.linalg.norm(result.H, axis=1)
    best = compare(result).svd_quality
    return Choice(
        genes=tuple(own for own, _ in result.members[: result.columns.size]),
        cells=tuple(sampled[own] for own, _ in result.members[result.columns.size :]),
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
    for position, batch in enumerate(order):  # small batches first: what they cannot use is for the others
        quotas[batch] = min(sizes[batch], left // (order.size - position))
        left -= quotas[batch]
    drawn = [rng.choice(np.flatnonzero(batches == batch), quota, replace=False) for batch, quota in enumerate(quotas)]
    return np.sort(np.concatenate(drawn))


def gather(cells: Cells, sampled: Indices) -> RawMatrix:
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
    m = matrix.shape[0]
    doubles = matrix.astype(np.float64)
    squares = doubles**2 if isinstance(doubles, np.ndarray) else doubles.power(2)
    mean_squares = np.asarray(squares.sum(axis=0)).ravel() / m
    means = np.asarray(doubles.sum(axis=0)).ravel() / m
    variances = np.maximum(mean_squares - means**2, 0.0)
    variances[variances <= 1e-12 * mean_squares] = 0.0  # rounding
    weights: Doubles = np.sqrt(variances) / np.where(mean_squares > 0, mean_squares, 1.0)
    return weights


def equal_batches(matrix: RawMatrix, batches: Indices) -> Floats:
    """Weights of cells with which every batch has the same norm, so that none dominates the error; one per cell."""
    entries = matrix.power(2).sum(axis=1) if not isinstance(matrix, np.ndarray) else (matrix**2).sum(axis=1)
    norms = np.bincount(batches, weights=np.asarray(entries, dtype=np.float64).ravel())
    used = norms > 0
    shares = np.zeros(norms.size)
    shares[used] = np.sqrt(norms.sum() / (used.sum() * norms[used]))
    return shares[batches].astype(matrix.dtype)


def weighted_columns(matrix: RawMatrix, weights: Floats) -> Any:
    """A matrix with its columns times weights; the positions of a sparse one are shared, not copied."""
    if isinstance(matrix, np.ndarray):
        return matrix * weights
    if matrix.format == "csr":
        return sp.csr_array((matrix.data * weights[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape)
    repeated = np.repeat(weights, np.diff(matrix.indptr))
    return sp.csc_array((matrix.data * repeated, matrix.indices, matrix.indptr), shape=matrix.shape)
