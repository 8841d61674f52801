"""Fitted models in files, without the training data and without pickle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gsnmf.constraints import Constraints
from gsnmf.estimators.grouping import Groups
from gsnmf.io import SavedResult, check_numbers, load_record, one_error, save_record
from gsnmf.matrix.input import check_missing_values
from gsnmf.matrix.validation import check_indices
from gsnmf.model_selection.rank_choice import RankChoice
from gsnmf.records import Selection
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices
from gsnmf.support.reasons import StopReason

FORMAT = "gsnmf model"
_KIND = "a model"

_ROUNDING = 1e-4
"""By how much the sum of shares in single precision may differ from one."""

Model = TypeVar("Model")


@dataclass(frozen=True)
class SavedModel:
    """A fitted `gsnmf.GSNMF` as its file holds it."""

    parameters: dict[str, Any]
    constraints: Constraints | None
    components_: Floats
    column_weights_: Floats
    feature_indices_: Indices
    sample_indices_: Indices
    n_features_in_: int
    n_samples_fit_: int
    quality_: float
    reconstruction_err_: float | None
    """None if it exceeds the largest float."""
    n_iter_: int
    observed_share_: float
    order: tuple[Axis, ...]
    method: str
    stop_reason: StopReason
    members: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...]
    feature_names: tuple[str, ...]
    sample_names: tuple[str, ...] | None
    feature_weight: Doubles | None
    group_means: Floats
    largest_group: int
    labels_: Indices | None
    strongest: tuple[tuple[Indices, Floats], ...]
    rank_choice: RankChoice | None
    result: SavedResult | None
    """None if the model was pickled, which does not keep the result."""

    def check(self) -> None:
        """Raise unless indices, weights and numbers fit each other."""
        m, n = self.n_samples_fit_, self.n_features_in_
        distinct = all(len(own) == 1 for own, _ in self.members)  # mixtures may share their leading members
        r1 = check_indices(self.feature_indices_, n, "feature_indices_", distinct=distinct).size
        r2 = check_indices(self.sample_indices_, m, "sample_indices_", distinct=distinct).size
        size = r1 + r2
        if not len(self.order) == len(self.members) == len(self.strongest) == size:
            raise ValueError("the number of components does not fit the indices")
        self._check_members(r1)
        check_numbers(self.components_, "components_", shape=(size, n), nonnegative=True)
        check_numbers(self.column_weights_, "column_weights_", shape=(r1, n), nonnegative=True)
        check_numbers(self.group_means, "the means of groups", shape=(size, n), nonnegative=True)
        if self.feature_weight is not None:
            check_numbers(self.feature_weight, "the weights of features", shape=(n,), nonnegative=True)
        if not 0 <= self.observed_share_ <= 1:
            raise ValueError("the observed share must be in [0, 1]")
        if not -1 <= self.largest_group < max(size, 1):
            raise ValueError("the largest group must be the number of a component")
        if self.labels_ is not None:
            labels = check_numbers(self.labels_, "labels_", shape=(m,))
            if not -1 <= labels.min() <= labels.max() < max(size, 1):
                raise ValueError("labels_ must be numbers of components")
        if self.feature_names and len(self.feature_names) != n:
            raise ValueError(f"there must be {n} names of features; got {len(self.feature_names)}")

    def _check_members(self, r1: int) -> None:
        """Raise unless every component has members, the leading one first, whose shares sum to one."""
        leading = np.concatenate([self.feature_indices_, self.sample_indices_])
        for k, (own, shares) in enumerate(self.members):
            limit = self.n_features_in_ if k < r1 else self.n_samples_fit_
            if check_indices(own, limit, "members")[0] != leading[k]:
                raise ValueError("the first member must be the leading one")
            parts = check_numbers(shares, "the shares of members", shape=(len(own),), nonnegative=True)
            if abs(float(np.sum(parts)) - 1.0) > _ROUNDING:
                raise ValueError("the shares of members must sum to one")


def save_model(model: Any, path: str | Path) -> None:
    """Write a fitted `gsnmf.GSNMF`; the file is complete or not there at all."""
    selection: Selection = model.selection_
    parameters = {name: value for name, value in model.get_params().items() if name != "constraints"}
    parameters["missing_values"] = check_missing_values(model.missing_values)
    if isinstance(model.n_components, range):
        ranks = model.n_components
        parameters["n_components"] = {"range": [ranks.start, ranks.stop, ranks.step]}
    groups: Groups = model._known_groups()
    error = float(model.reconstruction_err_)
    saved = SavedModel(
        parameters=parameters,
        constraints=None if model.constraints is None else model.constraints.plain,
        components_=model.components_,
        column_weights_=model.column_weights_,
        feature_indices_=model.feature_indices_,
        sample_indices_=model.sample_indices_,
        n_features_in_=model.n_features_in_,
        n_samples_fit_=model.n_samples_fit_,
        quality_=model.quality_,
        reconstruction_err_=error if math.isfinite(error) else None,
        n_iter_=model.n_iter_,
        observed_share_=model.observed_share_,
        order=selection.order,
        method=selection.method,
        stop_reason=selection.stop_reason,
        members=tuple((tuple(own), tuple(shares)) for own, shares in model._members),
        feature_names=tuple(str(name) for name in getattr(model, "feature_names_in_", ())),
        sample_names=model.sample_names_in_,
        feature_weight=model._feature_weight,
        group_means=groups.means,
        largest_group=groups.largest,
        labels_=getattr(model, "labels_", None),
        strongest=tuple(model._strongest()),
        rank_choice=getattr(model, "rank_choice_", None),
        result=saved_result(model),
    )
    save_record(saved, path, format=FORMAT)


def saved_result(model: Any) -> SavedResult | None:
    """The result of a fitted model without the training data; None if the model was pickled, which does not keep it."""
    if "result_" in model.__dict__:
        return SavedResult.of(model.result_)
    return getattr(model, "_saved_result", None)


def load_model(kind: type[Model], path: str | Path) -> Model:
    """Read a model that `save_model` wrote."""
    saved = load_record(SavedModel, path, format=FORMAT, kind=_KIND)
    parameters = dict(saved.parameters)
    if isinstance(parameters["n_components"], dict):
        parameters["n_components"] = range(*parameters["n_components"]["range"])
    if isinstance(parameters["n_components"], list):
        parameters["n_components"] = tuple(parameters["n_components"])
    if parameters["missing_values"] == "nan":
        parameters["missing_values"] = np.nan
    with one_error(path, _KIND):
        model: Any = kind(**parameters | {"constraints": saved.constraints})
    for name in ("components_", "column_weights_", "n_features_in_", "n_samples_fit_", "quality_", "n_iter_"):
        setattr(model, name, getattr(saved, name))
    model.feature_indices_ = saved.feature_indices_.astype(np.intp, copy=False)
    model.sample_indices_ = saved.sample_indices_.astype(np.intp, copy=False)
    model.n_components_ = len(saved.members)
    model.observed_share_ = saved.observed_share_
    model.reconstruction_err_ = math.inf if saved.reconstruction_err_ is None else saved.reconstruction_err_
    model.selection_ = Selection(
        model.feature_indices_, model.sample_indices_, saved.order, saved.method, saved.stop_reason
    )
    if saved.feature_names:
        model.feature_names_in_ = np.array(saved.feature_names, dtype=object)
    model.sample_names_in_ = saved.sample_names
    model._members = [(list(own), list(shares)) for own, shares in saved.members]
    model._feature_weight = saved.feature_weight
    model._groups = Groups(saved.group_means, saved.largest_group)
    model._strongest_samples = list(saved.strongest)
    if saved.labels_ is not None:
        model.labels_ = saved.labels_
    if saved.rank_choice is not None:
        model.rank_choice_ = saved.rank_choice
    if saved.result is not None:
        model._saved_result = saved.result
        if saved.result.row_weights is not None:
            model.row_weights_ = saved.result.row_weights
    return model  # type: ignore[no-any-return]
