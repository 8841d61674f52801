r"""Groups of samples, one per component: which samples belong together, and to which group a new sample belongs.

The coefficients of a sample say how much of each component it holds. Often several are of about the same size, and the
largest then says little about which other samples are like it. So the strongest component is only where grouping
starts. In each round, with every sample x scaled to unit length,

.. math:: c_k = \frac{1}{|G_k|} \sum_{x \in G_k} x, \qquad G_k \leftarrow \{ x : k = \arg\max_l \; x \cdot c_l \} ,

the mean of every group is computed, and each sample moves to the group with the largest :math:`x \cdot c_k`, which is
the mean of the cosines of x with the samples of that group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gsnmf._kernels.observed_entries import residuals
from gsnmf.matrix import Matrix
from gsnmf.matrix.in_memory import scaled_matrix
from gsnmf.matrix.low_rank_sum import LowRankSum, filled_sum
from gsnmf.matrix.observed import Observed
from gsnmf.support.arrays import Doubles, Floats

MAX_ROUNDS = 10
"""Limit on the rounds in which samples move to the group that they resemble most."""

NO_GROUP = -1
"""Label of a sample that is zero everywhere."""


@dataclass(frozen=True)
class Groups:
    """What it takes to find the group of a sample.

    Attributes
    ----------
    means : array, shape (k, n_features)
        Mean of the samples of each group, each scaled to unit length; zero for a component that has no samples.
    largest : int
        The group with most samples, which takes those that resemble no group at all.
    """

    means: Floats
    largest: int


def learn_groups(samples: Matrix, W: Any, sample_weight: Doubles | None = None) -> tuple[Any, Groups]:
    """Group samples by their mean similarity to the samples of each group, starting from the strongest components.

    Parameters
    ----------
    samples : Matrix, shape (n_samples, n_features)
    W : array, shape (n_samples, k)
        Their coefficients, as `Matrix.map_rows` gives them.
    sample_weight : array of length n_samples, optional
        Weight of each sample in the means.

    Returns
    -------
    labels : int array of length n_samples
        What `nearest_group` gives for these samples and the groups; lazy if ``W`` is.
    groups : Groups

    Notes
    -----
    A round costs two products of the samples with k vectors, or one pass over a Dask array. Rounds end when no sample
    moves, or after `MAX_ROUNDS`.

    Examples
    --------
    >>> from gsnmf.matrix import wrap
    >>> samples = wrap(np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]))
    >>> labels, groups = learn_groups(samples, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]))
    >>> labels
    array([ 0,  1,  1, -1])
    """
    labels = strongest_component(W, mean_coefficients(W, sample_weight))
    groups = Groups(np.zeros((W.shape[1], samples.shape[1]), dtype=samples.dtype), NO_GROUP)
    if W.shape[1] == 0:
        return labels, groups
    scales = samples.map_rows(partial(_inverse_lengths, exponent=samples.exponent), 1)[:, 0]
    importance = scales > 0
    if sample_weight is not None:
        scales, importance = scales * sample_weight, importance * sample_weight
    for _ in range(MAX_ROUNDS):
        found = _groups_of(samples, labels, scales, importance, groups.means)
        if np.array_equal(found.means, groups.means):
            break
        groups = found
        labels = nearest_group(samples, groups)
    return labels, groups


def nearest_group(samples: Matrix, groups: Groups) -> Any:
    """The group whose samples each sample resembles most on average; `NO_GROUP` for a sample that is zero.

    A sample that shares no feature with any group goes to the largest one.

    Examples
    --------
    >>> from gsnmf.matrix import wrap
    >>> groups = Groups(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]]), largest=0)
    >>> nearest_group(wrap(np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])), groups)
    array([ 1,  0, -1])
    """
    found = samples.map_rows(partial(_nearest, largest=groups.largest), 1, shared=(groups.means,))
    return found[:, 0].astype(np.intp)


def comparable(samples: Matrix | Observed, W: Any, components: Floats, feature_weight: Doubles | None = None) -> Matrix:
    """Samples as they are compared: holes filled by what the components say, features scaled by their weights.

    Parameters
    ----------
    samples : Matrix or Observed, shape (n_samples, n_features)
    W : array, shape (n_samples, k)
        Coefficients of samples with holes; not used for others.
    components : array, shape (k, n_features)
    feature_weight : array of length n_features, optional
        Weight of each feature in the error.
    """
    roots = None if feature_weight is None else np.sqrt(feature_weight)
    if isinstance(samples, Observed):
        return _filled(samples, W, components, roots)
    return samples if roots is None else scaled_matrix(samples, None, roots)


def strongest_component(W: Any, means: Doubles) -> Any:
    """The component that is strongest in each sample, compared with its mean; -1 for a sample without coefficients.

    Coefficients are divided by their means over the training samples, so the scale of a component does not matter. On
    labelled documents this agrees better with the classes than raw coefficients, or coefficients times the sum or
    length of their component.

    Examples
    --------
    >>> strongest_component(np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([0.1, 1.0]))
    array([ 0, -1])
    """
    if means.size == 0:
        return np.full(W.shape[0], NO_GROUP)
    relative = W / np.where(means > 0, means, 1.0)
    return np.where(relative.max(axis=1) > 0, relative.argmax(axis=1), NO_GROUP)


def mean_coefficients(W: Any, sample_weight: Doubles | None = None) -> Doubles:
    """Mean coefficient of each component, computed at once even if the coefficients are lazy."""
    if sample_weight is not None:
        return np.average(W, axis=0, weights=sample_weight).astype(np.float64)
    return np.asarray(W.mean(axis=0), dtype=np.float64)


def _groups_of(samples: Matrix, labels: Any, scales: Any, importance: Any, before: Floats) -> Groups:
    """Means of the samples of each group; a group that has lost its samples keeps the mean from before."""
    belongs = labels[:, None] == np.arange(before.shape[0])
    sums, sizes = samples.products_and_sums(
        (belongs * scales[:, None]).astype(samples.dtype), belongs * importance[:, None]
    )
    means = np.divide(sums.T, sizes[:, None], out=before.astype(np.float64), where=sizes[:, None] > 0)
    nonnegative = np.maximum(means, 0.0)  # filled holes may be below zero by rounding
    return Groups(np.ascontiguousarray(nonnegative, dtype=before.dtype), int(sizes.argmax()))


def _nearest(rows: Matrix, means: Floats, *, largest: int) -> Floats:
    products = rows.dot(np.ascontiguousarray(means.T))
    if means.shape[0] == 0:
        return np.full((rows.shape[0], 1), NO_GROUP, dtype=rows.dtype)
    found = np.where(products.max(axis=1) > 0, products.argmax(axis=1), largest)
    return np.where(rows.T.column_sums > 0, found, NO_GROUP)[:, None].astype(rows.dtype)


def _inverse_lengths(rows: Matrix, *, exponent: int) -> Floats:
    """One over the length of each row in units of two to the ``exponent``; zero for a row without a length."""
    lengths = np.ldexp(np.sqrt(rows.T.squared_column_norms), rows.exponent - exponent)
    long_enough = lengths > np.finfo(rows.dtype).tiny
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=long_enough)[:, None].astype(rows.dtype)


def _filled(samples: Observed, W: Floats, components: Floats, roots: Doubles | None) -> LowRankSum:
    left, right = W.astype(np.float64), np.ascontiguousarray(components.T, dtype=np.float64)
    corrections = residuals(samples.entries, left, right)
    if roots is not None:
        corrections, right = corrections * roots[samples.values.indices], right * roots[:, None]
    return filled_sum(samples.values, corrections, left, right)
