"""Names of features and samples, from wherever they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.constraints import Constraints, indices_of_names
from gsnmf.support.formatting import joined


def index_names(X: Any) -> tuple[str, ...] | None:
    """Names of the samples of a DataFrame, from its index; None without one, or if it only counts."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return tuple(map(str, index))


def index_of(X: Any) -> Sequence[Any] | None:
    """Labels of the samples of a DataFrame; None for anything else."""
    index = getattr(X, "index", None)
    return None if index is None or callable(index) else list(index)


def named_constraints(
    constraints: Constraints | None, features: Sequence[Any] | None, samples: Sequence[Any] | None
) -> Constraints | None:
    """Constraints whose names of features and labels of samples are replaced by their positions."""
    if not isinstance(constraints, Constraints):
        return constraints
    resolved: dict[str, Any] = {}
    for axis, names in (("columns", features), ("rows", samples)):
        for verb in ("include", "exclude"):
            field = f"{verb}_{axis}"
            given = getattr(constraints, field)
            if len(given) and any(isinstance(name, str) for name in np.asarray(given).tolist()):
                if names is None:
                    raise ValueError(f"{field} must be integers or a mask, as the data has no names; got {given!r}.")
                resolved[field] = indices_of_names(list(given), list(names), field)
    return replace(constraints, **resolved)


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
    features: NDArray[np.object_],
    samples: Sequence[object],
    members: Sequence[Sequence[int]],
    n_anchors: int,
) -> list[tuple[str, str]]:
    """Kind and name of each component: anchor features, then pure samples; members of a mixture are joined by +."""
    anchors = [("anchor", joined([str(features[j]) for j in own])) for own in members[:n_anchors]]
    return anchors + [("sample", joined([str(samples[i]) for i in own])) for own in members[n_anchors:]]
