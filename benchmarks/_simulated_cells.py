"""Simulated counts of genes in cells, with known groups of cells and the known marker genes of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.validation import check_count
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.support.optional import import_optional

_NOISE_SHAPE = 2.0
"""Shape of the gamma distribution of expected counts: the dispersion of the negative binomial is its inverse."""


@dataclass(frozen=True)
class SimulatedCells:
    """Counts with the truth behind them.

    Attributes
    ----------
    counts : csr_array of float32, shape (cells, genes)
    groups : int array, one per cell
    markers : tuple of int arrays
        For every group the genes that only its cells express strongly.
    batches : int array, one per cell
    """

    counts: sp.csr_array = field(repr=False)
    groups: Indices = field(repr=False)
    markers: tuple[Indices, ...] = field(repr=False)
    batches: Indices = field(repr=False)

    def log_normalized(self) -> sp.csr_array:
        """log(1 + counts), with counts scaled so that every cell has the median sum."""
        sums = np.asarray(self.counts.sum(axis=1)).ravel()
        scales = np.divide(np.median(sums), sums, out=np.zeros(sums.size), where=sums > 0)
        data = self.counts.data * np.repeat(scales, np.diff(self.counts.indptr))
        parts = np.log1p(data).astype(np.float32), self.counts.indices, self.counts.indptr
        return sp.csr_array(parts, shape=self.counts.shape)

    def to_anndata(self) -> Any:
        """The same as an AnnData object: ``X`` in logarithms, a layer ``"counts"``, groups and batches in ``obs``."""
        anndata = import_optional("anndata", "AnnData objects", 'pip install "gsnmf[cells]"')
        data = anndata.AnnData(sp.csr_matrix(self.log_normalized()))
        data.layers["counts"] = sp.csr_matrix(self.counts)
        data.obs_names = [f"cell {number}" for number in range(data.n_obs)]
        data.var_names = [f"gene {number}" for number in range(data.n_vars)]
        data.obs["group"] = np.array([f"group {group}" for group in self.groups])
        data.obs["batch"] = np.array([f"batch {batch}" for batch in self.batches])
        for column in ("group", "batch"):
            data.obs[column] = data.obs[column].astype("category")
        return data


def simulated_cells(
    n_cells: int = 1500,
    n_genes: int = 1000,
    n_groups: int = 8,
    *,
    n_markers: int = 10,
    depth: float = 2500.0,
    mixed: float = 0.3,
    n_batches: int = 1,
    random_state: int = 0,
) -> SimulatedCells:
    r"""Counts of genes in cells of several groups, as sequencing gives them.

    Every gene has a level of its own, spread over orders of magnitude. The markers of a group are strong in its cells
    and almost silent elsewhere. Besides, groups come in pairs, which share genes that are raised in both: those look
    like markers and belong to no single group. A part of the cells is a mixture of two groups. Counts are negative
    binomial around the expected profile, with a random depth for each cell.

    Parameters
    ----------
    n_cells, n_genes, n_groups : int
    n_markers : int
        Per group; twice as many genes are shared by each pair of groups.
    depth : float
        Median of the sum of counts of a cell.
    mixed : float
        Part of the cells that are mixtures; they belong to the group that they have more of.
    n_batches : int
        The first has half of the cells, the second half of the rest, and so on. The levels of genes differ by a random
        factor between batches.
    random_state : int

    Examples
    --------
    >>> data = simulated_cells(100, 200, n_groups=4)
    >>> data.counts.shape, len(data.markers), data.markers[0].size
    ((100, 200), 4, 10)
    """
    for name, value in (("n_cells", n_cells), ("n_groups", n_groups), ("n_batches", n_batches)):
        check_count(value, name)
    if n_genes < 2 * n_groups * n_markers:
        raise ValueError(f"n_genes must be at least 2 n_groups n_markers = {2 * n_groups * n_markers}; got {n_genes}.")
    rng = np.random.default_rng(random_state)
    profiles, markers = _profiles(rng, n_genes, n_groups, n_markers)
    groups = rng.choice(n_groups, n_cells, p=rng.dirichlet(np.full(n_groups, 3.0)))
    shares = _shares(rng, groups, n_groups, mixed)
    batches = np.minimum(rng.geometric(0.5, n_cells) - 1, n_batches - 1)
    effects = rng.lognormal(0.0, 0.2, (n_batches, n_genes)) if n_batches > 1 else np.ones((1, n_genes))
    expected = shares @ (profiles / profiles.sum(axis=1, keepdims=True)) * effects[batches]
    expected *= depth * rng.lognormal(0.0, 0.35, n_cells)[:, None]
    counts = rng.poisson(rng.gamma(_NOISE_SHAPE, expected / _NOISE_SHAPE))
    return SimulatedCells(sp.csr_array(counts.astype(np.float32)), groups, markers, batches)


def _profiles(
    rng: np.random.Generator, n_genes: int, n_groups: int, n_markers: int
) -> tuple[Doubles, tuple[Indices, ...]]:
    """Expected expression of every gene in every group, and the markers of each."""
    levels = rng.lognormal(0.0, 1.6, n_genes)
    profiles = np.tile(levels, (n_groups, 1))
    shuffled = rng.permutation(n_genes)
    markers = tuple(np.sort(shuffled[k * n_markers : (k + 1) * n_markers]) for k in range(n_groups))
    for group, own in enumerate(markers):
        profiles[:, own] *= rng.uniform(0.02, 0.2, n_markers)
        profiles[group, own] = np.maximum(levels[own], np.median(levels)) * rng.uniform(2.0, 6.0, n_markers)
    for pair in range(n_groups // 2):
        start = n_groups * n_markers + 2 * n_markers * pair
        shared = shuffled[start : start + 2 * n_markers]
        profiles[np.ix_(np.array([2 * pair, 2 * pair + 1]), shared)] *= rng.uniform(2.0, 6.0, shared.size)
    return profiles * rng.lognormal(0.0, 0.15, profiles.shape), markers


def _shares(rng: np.random.Generator, groups: Indices, n_groups: int, mixed: float) -> Doubles:
    """How much of every group is in every cell."""
    m = groups.size
    shares = np.zeros((m, n_groups))
    second = np.where(rng.random(m) < mixed, rng.uniform(0.1, 0.4, m), 0.0)
    shares[np.arange(m), groups] = 1.0 - second
    shares[np.arange(m), rng.integers(n_groups, size=m)] += second
    return shares
