"""The report on a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import NO_COMPARISON
from gsnmf.estimators.saving import saved_result
from gsnmf.reports.findings import Findings, gather
from gsnmf.result import Factorization


def gather_model(model: Any, X: Any, names: Sequence[Any], *, title: str, compare: bool) -> Findings:
    """What a report on a fitted `gsnmf.GSNMF` says.

    Parameters
    ----------
    model : GSNMF
    X : array-like or None
        The training data, if the model does not hold them.
    names : pair of sequences
        Names of all features and of all training samples.
    title : str
    compare : bool
        Compute the bound that tells how much any factors of this number could explain.
    """
    features, samples = names
    result = _result(model, X)
    data = LabelledMatrix(
        result.matrix,
        row_names=() if isinstance(samples, range) else tuple(map(str, samples)),
        column_names=tuple(map(str, features)),
        row_kind="sample",
        column_kind="feature",
    )
    return gather(
        result,
        data,
        title=title or "A model of samples",
        comparison=None if compare else NO_COMPARISON,
        parameters={name: str(value) for name, value in model.get_params().items()},
        tolerance=model.tol,
        rank_choice=getattr(model, "rank_choice_", None),
    )


def _result(model: Any, X: Any) -> Factorization:
    """The result with the training data: those that the model holds, or those given."""
    if "result_" in model.__dict__:
        held: Factorization = model.result_
        if X is not None and np.shape(X) != held.source.shape:
            raise ValueError(f"X must be the training data, of shape {held.source.shape}; got shape {np.shape(X)}.")
        return held
    saved = saved_result(model)
    if saved is None:
        raise ValueError("a report needs the result, which this model was saved without; fit it again.")
    if X is None:
        raise ValueError("a report needs the training data, which are not saved with a model; give them as X.")
    return saved.with_matrix(X)
