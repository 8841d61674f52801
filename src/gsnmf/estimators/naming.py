"""Names of features and samples, from wherever they are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def index_names(X: Any) -> tuple[str, ...] | None:
    """Names of the samples of a DataFrame, from its index; None without one, or if it only counts."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return tuple(map(str, index))


def names_out(names: Any) -> Any:
    """Names as they are given, or those of an object that makes features, such as a vectorizer or a pipeline."""
    return names.get_feature_names_out() if hasattr(names, "get_feature_names_out") else names


def sample_names(given: Sequence[object] | None, known: Sequence[str] | None, n_samples: int) -> Sequence[object]:
    """Names of all training samples: those given now, those known since the fit, or their numbers."""
    names: Sequence[object] = (known or range(n_samples)) if given is None else list(given)
    if len(names) != n_samples:
        raise ValueError(f"sample_names must have {n_samples} entries, one per training sample; got {len(names)}.")
    return names


def component_names(
    features: NDArray[np.object_], samples: Sequence[object], columns: Any, rows: Any
) -> list[tuple[str, str]]:
    """Kind and name of each component: anchor features, then pure samples."""
    anchors = [("anchor", str(features[j])) for j in columns]
    return anchors + [("sample", str(samples[i])) for i in rows]
