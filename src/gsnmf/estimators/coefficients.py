r"""Coefficients of samples for learned components.

Given the components H, the coefficients W of samples X are either *refitted*, all of them,

.. math:: \min_{W \ge 0} \; \| X - W H \|_F ,

or those of the *model*, in which the coefficient of an anchor feature is the sample's value there,
:math:`W = [X(:, A),\; P_2]`, and only the weights :math:`P_2` of the pure samples are fitted. The coefficient of a
mixture of features is the mean of the sample's values there, weighted by their shares. Both are exact.
Refitted coefficients may be required to sum to one, and features may have weights; for a sample with holes, only
observed entries count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from gsnmf._kernels.observed_entries import residuals
from gsnmf.matrix import Matrix
from gsnmf.matrix.in_memory import scaled_matrix
from gsnmf.matrix.observed import Observed
from gsnmf.metrics import quality
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.weights import coefficients_for, remaining_weights
from gsnmf.weights.observed import observed_coefficients
from gsnmf.weights.optimality import ratio
from gsnmf.weights.sum_to_one import simplex_weights

Coefficients = Literal["refit", "model"]
COEFFICIENTS: tuple[Coefficients, ...] = ("refit", "model")


@dataclass(frozen=True)
class Anchors:
    """The features that the first components are, or that they mix.

    Attributes
    ----------
    features : int array of length q
        All features that are a component or a member of one.
    shares : array, shape (q, r1)
        Their shares in each component; the identity if each component is one feature.
    """

    features: Indices
    shares: Doubles

    @classmethod
    def of(cls, members: Sequence[tuple[Sequence[int], Sequence[float]]]) -> Anchors:
        """From the members and shares of every component."""
        features = list(dict.fromkeys(int(j) for own, _ in members for j in own))
        shares = np.zeros((len(features), len(members)))
        for k, (own, parts) in enumerate(members):
            shares[[features.index(int(j)) for j in own], k] = parts
        return cls(np.array(features, dtype=np.intp), shares)


@dataclass(frozen=True)
class CoefficientRule:
    """How the coefficients of samples are found.

    Attributes
    ----------
    kind : {"refit", "model"}
    anchors : Anchors
        The features of the first components.
    sum_to_one : bool
        Whether the coefficients of a sample sum to one.
    feature_weight : array or None
        Nonnegative weight of each feature in the error; None if all are equal.
    """

    kind: Coefficients
    anchors: Anchors
    sum_to_one: bool = False
    feature_weight: Doubles | None = None


def coefficients(samples: Matrix | Observed, components: Floats, rule: CoefficientRule) -> Any:
    """W of samples, one row per sample, in their precision."""
    if isinstance(samples, Observed):
        return _of_observed(samples, components, rule)
    work = partial(_refitted, rule=rule) if rule.kind == "refit" else partial(_by_model, anchors=rule.anchors)
    return samples.map_rows(work, components.shape[0], shared=(components,))


def explained(samples: Matrix | Observed, W: Any, components: Floats) -> float:
    """Quality with which coefficients explain samples, on their observed entries."""
    if isinstance(samples, Matrix):
        return quality(samples, W, components)
    left = residuals(samples.entries, W.astype(np.float64), np.ascontiguousarray(components.T, dtype=np.float64))
    return 1.0 - math.sqrt(ratio(samples.weighted_squares(left), samples.squared_norm))


def component_sums(components: Floats) -> Doubles:
    """Sum of the entries of each component."""
    return np.asarray(components.sum(axis=1, dtype=np.float64))


def _of_observed(samples: Observed, components: Floats, rule: CoefficientRule) -> Floats:
    if rule.feature_weight is not None:
        samples = samples.weighted(np.ones(samples.shape[0]), rule.feature_weight)
    solve = simplex_weights if rule.sum_to_one else observed_coefficients
    return solve(samples, components).astype(samples.dtype, copy=False)


def _refitted(samples: Matrix, components: Floats, *, rule: CoefficientRule) -> Floats:
    if rule.feature_weight is not None:
        roots = np.sqrt(rule.feature_weight)
        samples, components = scaled_matrix(samples, None, roots), components * roots
    solve = simplex_weights if rule.sum_to_one else coefficients_for
    return solve(samples, components).astype(samples.dtype, copy=False)


def _by_model(samples: Matrix, components: Floats, *, anchors: Anchors) -> Floats:
    r1 = anchors.shares.shape[1]
    shares = anchors.shares.astype(samples.dtype)
    weights = remaining_weights(samples, anchors.features, shares @ components[:r1], components[r1:])
    return np.hstack([samples.raw_columns(anchors.features) @ shares, weights.astype(samples.dtype, copy=False)])
