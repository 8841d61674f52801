"""The tables that a fitted `gsnmf.GSNMF` shows: its components, and what makes up one sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.estimators.coefficients import component_sums, explained
from gsnmf.estimators.learned import Learned
from gsnmf.matrix.validation import check_count
from gsnmf.result import described_factors
from gsnmf.support.formatting import Table


def component_table(
    model: Learned, n_words: int, n_samples: int, features: NDArray[np.object_], samples: Sequence[object]
) -> Table:
    """Kind and name of each component, and the features and training samples in which it is strongest."""
    n_words, n_samples = check_count(n_words, "n_words"), check_count(n_samples, "n_samples")
    factors = described_factors(
        model.selection_,
        model.components_,
        model._strongest(),
        np.zeros(model.n_components_),
        max(n_words, n_samples),
        [(np.array(members), np.array(shares)) for members, shares in model._members],
    )
    rows = tuple(
        (
            *named,
            tuple(str(features[j]) for j in factor.columns[:n_words]),
            tuple(str(samples[i]) for i in factor.rows[:n_samples]),
        )
        for named, factor in zip(model._chosen(features, samples), factors, strict=True)
    )
    return Table(("kind", "name", "features", "samples"), rows, f"quality {model.quality_:.1%}")


def sample_table(model: Learned, sample: Any, chosen: list[tuple[str, str]]) -> Table:
    """The components that make up one sample, the largest part first."""
    row = model._one_sample(sample)
    weights = np.asarray(model._coefficients(row))[0].astype(np.float64)
    parts = weights * component_sums(model.components_)
    shares = parts / (parts.sum() or 1.0)
    rows = tuple(
        (*chosen[k], float(weights[k]), float(shares[k])) for k in np.argsort(-shares, kind="stable") if shares[k] > 0
    )
    quality = explained(row, weights[None], model.components_)
    return Table(("kind", "name", "weight", "share"), rows, f"quality {quality:.1%}")
