r"""Coefficients of samples for learned components.

Given the components H, the coefficients W of samples X are either *refitted*, all of them,

.. math:: \min_{W \ge 0} \; \| X - W H \|_F ,

or those of the *model*, in which the coefficient of an anchor feature is the sample's value there,
:math:`W = [X(:, A),\; P_2]`, and only the weights :math:`P_2` of the pure samples are fitted. The coefficient of a
mixture of features is the mean of the sample's values there, weighted by their shares. Both are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from gsnmf.matrices import Matrix
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.weights import coefficients_for, remaining_weights

Coefficients = Literal["refit", "model"]
COEFFICIENTS: tuple[Coefficients, ...] = ("refit", "model")


@dataclass(frozen=True)
class Anchors:
    """Which features the first components are, or are mixtures of.

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


def coefficients(samples: Matrix, components: Floats, anchors: Anchors, kind: Coefficients) -> Any:
    """W of samples, one row per sample, in their precision; the components of ``anchors`` come first."""
    work = _refitted if kind == "refit" else partial(_by_model, anchors=anchors)
    return samples.map_rows(work, components.shape[0], shared=(components,))


def strongest_component(W: Any, means: Doubles) -> Any:
    """The component that is strongest in each sample, compared with its mean; -1 for a sample without coefficients.

    Coefficients are divided by their means over the training samples, so that the scale of a component does not
    matter. On labelled documents this agrees better with the classes than coefficients as they are, or times the sum or
    length of their component.

    Examples
    --------
    >>> strongest_component(np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([0.1, 1.0]))
    array([ 0, -1])
    """
    if means.size == 0:
        return np.full(W.shape[0], -1)
    relative = W / np.where(means > 0, means, 1.0)
    return np.where(relative.max(axis=1) > 0, relative.argmax(axis=1), -1)


def mean_coefficients(W: Any) -> Doubles:
    """Mean coefficient of each component; computed now, also if the coefficients are lazy."""
    return np.asarray(W.mean(axis=0), dtype=np.float64)


def component_sums(components: Floats) -> Doubles:
    """Sum of the entries of each component."""
    return np.asarray(components.sum(axis=1, dtype=np.float64))


def _refitted(samples: Matrix, components: Floats) -> Floats:
    return coefficients_for(samples, components).astype(samples.dtype, copy=False)


def _by_model(samples: Matrix, components: Floats, *, anchors: Anchors) -> Floats:
    r1 = anchors.shares.shape[1]
    shares = anchors.shares.astype(samples.dtype)
    weights = remaining_weights(samples, anchors.features, shares @ components[:r1], components[r1:])
    return np.hstack([samples.raw_columns(anchors.features) @ shares, weights.astype(samples.dtype, copy=False)])
