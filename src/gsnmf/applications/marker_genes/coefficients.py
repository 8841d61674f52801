"""How much of every factor is in every cell: one pass over the cells, in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf.applications.marker_genes.choice import Choice, weighted_columns
from gsnmf.applications.marker_genes.input import Cells
from gsnmf.matrix import wrap
from gsnmf.metrics import relative_error
from gsnmf.support.arrays import Doubles, Floats, RawMatrix
from gsnmf.weights import coefficients_for


@dataclass(frozen=True)
class Described:
    """All cells in terms of the factors.

    Attributes
    ----------
    coefficients : array, shape (cells, factors)
        Nonnegative: how much of each factor is in each cell. Since every factor has unit length, they are comparable.
    scores : array, shape (factors, genes)
        How reliably and how strongly each gene goes with each factor over the cells: correlation times effect.
    quality : float
        One minus the relative error of the weighted expression of all cells.
    """

    coefficients: Floats
    scores: Doubles
    quality: float


def describe(cells: Cells, choice: Choice) -> Described:
    r"""Coefficients of all cells, the scores of genes, and the quality.

    The coefficients of a cell with weighted expression x solve

    .. math:: \min_{u \ge 0} \; \| x - u H \|_2

    with the loadings H of all factors, exactly. Only one block of cells is held besides the coefficients.
    """
    moments = _Moments(choice.loadings.shape[0], cells.shape[1])
    coefficients = np.empty((cells.shape[0], choice.loadings.shape[0]), dtype=choice.loadings.dtype)
    squared_error = squared_norm = 0.0
    for start, block in cells.blocks():
        weighted = weighted_columns(block, choice.gene_weights)
        found = nonnegative_coefficients(weighted, choice.loadings)
        coefficients[start : start + block.shape[0]] = found
        moments.add(block, found)
        norm = _squared_norm(weighted)
        if norm > 0:
            squared_norm += norm
            squared_error += norm * relative_error(weighted, found, choice.loadings) ** 2
    quality = 1.0 - float(np.sqrt(squared_error / squared_norm)) if squared_norm > 0 else 1.0
    return Described(coefficients, moments.scores(), quality)


def nonnegative_coefficients(matrix: RawMatrix, loadings: Floats) -> Doubles:
    """Exact nonnegative least squares of every row on all loadings."""
    return coefficients_for(wrap(matrix), loadings)


class _Moments:
    """Sums over cells from which the scores of genes follow."""

    def __init__(self, n_factors: int, n_genes: int) -> None:
        self.count = 0
        self.of_genes = np.zeros((2, n_genes))
        self.of_factors = np.zeros((2, n_factors))
        self.products = np.zeros((n_factors, n_genes))

    def add(self, block: RawMatrix, coefficients: Doubles) -> None:
        self.count += block.shape[0]
        squares = block**2 if isinstance(block, np.ndarray) else block.power(2)
        self.of_genes += [np.asarray(part.sum(axis=0, dtype=np.float64)).ravel() for part in (block, squares)]
        self.of_factors += [coefficients.sum(axis=0), (coefficients**2).sum(axis=0)]
        self.products += np.asarray(block.T @ coefficients).T

    def scores(self) -> Doubles:
        r"""How reliably and how strongly each gene goes with each factor, factors x genes.

        .. math:: \rho_{kj}\, |\rho_{kj}|\, s_j

        with the correlation of coefficients and expression and the standard deviation of the expression: the product
        of a correlation and of an effect, :math:`\rho_{kj} s_j`, which is the rise of expression per standard deviation
        of the factor. Correlation alone would favour genes that are hardly expressed, effects alone those that every
        cell expresses. The idea is that of the :math:`\pi`-value for differential expression (Xiao et al., 2014,
        doi:10.1093/bioinformatics/btr671).
        """
        means_of_genes, means_of_factors = self.of_genes[0] / self.count, self.of_factors[0] / self.count
        covariances = self.products / self.count - np.outer(means_of_factors, means_of_genes)
        of_genes, of_factors = _deviations(self.of_genes, self.count), _deviations(self.of_factors, self.count)
        effects = covariances / np.where(of_factors > 0, of_factors, np.inf)[:, None]
        scores: Doubles = effects * np.abs(effects) / np.where(of_genes > 0, of_genes, np.inf)
        return scores


def _deviations(sums: Doubles, count: int) -> Doubles:
    mean_squares = sums[1] / count
    variances = mean_squares - (sums[0] / count) ** 2
    return np.sqrt(np.where(variances > 1e-12 * mean_squares, variances, 0.0))


def _squared_norm(matrix: RawMatrix) -> float:
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    return float(np.sum(np.square(entries, dtype=np.float64)))
