"""Fitted models in files: plain arrays and JSON, without the training data and without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gsnmf.estimators.grouping import Groups
from gsnmf.factorization.saving import packed
from gsnmf.matrix.input import check_missing_values
from gsnmf.matrix.validation import check_indices
from gsnmf.model_selection.rank_choice import RankChoice
from gsnmf.records import Selection
from gsnmf.support.archives import check_numbers, one_error, packed_fields, part_of, read_saved
from gsnmf.support.arrays import Indices
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.reasons import StopReason

FORMAT = "gsnmf model"
_VERSION = 2
_KIND = "a model"
_ARRAYS = ("components_", "column_weights_", "feature_indices_", "sample_indices_")
_OF_RESULT = {"columns": "feature_indices_", "rows": "sample_indices_", "column_weights": "column_weights_"}
"""Arrays of the result that the model has under another name."""
_NUMBERS = ("n_components_", "n_features_in_", "n_samples_fit_", "quality_", "reconstruction_err_", "n_iter_")

_ROUNDING = 1e-4
"""By how much the sum of shares in single precision may differ from one."""

Model = TypeVar("Model")


def save_model(model: Any, path: str | Path) -> None:
    """Write a fitted `gsnmf.GSNMF`; the file is complete or not there at all."""
    selection: Selection = model.selection_
    record = {
        "format": FORMAT,
        "version": _VERSION,
        "parameters": _parameters(model),
        "numbers": {name: getattr(model, name) for name in _NUMBERS},
        "order": list(selection.order),
        "method": selection.method,
        "stop_reason": selection.stop_reason,
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", ())],
        "sample_names": model.sample_names_in_,
        "members": model._members,
        "observed_share": model.observed_share_,
    }
    arrays: dict[str, Any] = {name: np.asarray(getattr(model, name)) for name in _ARRAYS}
    if (groups := model._known_groups()) is None:  # from a file of version 1
        arrays["_means"] = model._means
    else:
        record["largest_group"], arrays["group_means"] = groups.largest, groups.means
    if hasattr(model, "labels_"):
        arrays["labels_"] = model.labels_
    if hasattr(model, "rank_choice_"):
        record["rank_choice"], own = packed_fields(model.rank_choice_, "rank_choice")
        arrays |= own
    if (result := packed_result(model)) is not None:
        record["result"] = result[0]
        arrays |= {f"result.{name}": value for name, value in result[1].items() if name not in _OF_RESULT}
    if model._feature_weight is not None:
        arrays["feature_weight"] = model._feature_weight
    for k, (positions, values) in enumerate(model._strongest()):
        arrays[f"strongest.{k}.positions"], arrays[f"strongest.{k}.values"] = positions, values
    with atomic_write(path) as stream:
        np.savez_compressed(stream, record=np.array(json.dumps(record)), **arrays)


def packed_result(model: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The result of a fitted model without the training data; None if the model was pickled, which does not keep it."""
    if "result_" in model.__dict__:
        return packed(model.result_)
    return getattr(model, "_packed_result", None)


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters in a form that JSON can hold: NaN as a word, without the constraints."""
    parameters = {name: value for name, value in model.get_params().items() if name != "constraints"}
    parameters["missing_values"] = check_missing_values(model.missing_values)
    return parameters


def load_model(kind: type[Model], path: str | Path) -> Model:
    """Read a model that `save_model` wrote."""
    arrays, record = read_saved(path, _KIND, _VERSION, format=FORMAT, otherwise="gsnmf.load reads saved results")
    with one_error(path, _KIND):
        return _model(kind, arrays, record)


def _model(kind: type[Model], arrays: dict[str, Any], record: dict[str, Any]) -> Model:
    _check(arrays, record)
    parameters = dict(record["parameters"])
    if isinstance(parameters["n_components"], list):
        parameters["n_components"] = tuple(parameters["n_components"])
    if parameters.get("missing_values") == "nan":
        parameters["missing_values"] = np.nan
    model: Any = kind(**parameters)
    for name in (*_ARRAYS, *({"labels_", "_means"} & arrays.keys())):
        setattr(model, name, arrays[name])
    model._groups = Groups(arrays["group_means"], record["largest_group"]) if "group_means" in arrays else None
    if "rank_choice" in record:
        model.rank_choice_ = RankChoice(**record["rank_choice"], **part_of(arrays, "rank_choice"))
    for name in _NUMBERS:
        setattr(model, name, record["numbers"][name])
    model.selection_ = Selection(
        model.feature_indices_.astype(np.intp),
        model.sample_indices_.astype(np.intp),
        tuple(record["order"]),
        record["method"],
        StopReason(record["stop_reason"]),
    )
    if record["feature_names"]:
        model.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    model.sample_names_in_ = tuple(record["sample_names"]) if record["sample_names"] else None
    if "result" in record:
        own = part_of(arrays, "result")
        model._packed_result = record["result"], own | {name: arrays[known] for name, known in _OF_RESULT.items()}
        if "row_weights" in own:
            model.row_weights_ = own["row_weights"]
    model._members = [(list(own), list(shares)) for own, shares in record["members"]]
    model.observed_share_ = float(record.get("observed_share", 1.0))
    model._feature_weight = arrays.get("feature_weight")
    model._strongest_samples = [
        (arrays[f"strongest.{k}.positions"], arrays[f"strongest.{k}.values"]) for k in range(model.n_components_)
    ]
    return model  # type: ignore[no-any-return]


def _check(arrays: dict[str, Any], record: dict[str, Any]) -> None:
    """Raise unless indices, weights and numbers fit each other."""
    numbers = record["numbers"]
    for name in _NUMBERS:
        if np.isnan(float(numbers[name])):
            raise ValueError(f"{name} must be a number")
    m, n = int(numbers["n_samples_fit_"]), int(numbers["n_features_in_"])
    distinct = all(len(own) == 1 for own, _ in record["members"])  # mixtures may share their leading members
    features = check_indices(arrays["feature_indices_"], n, "feature_indices_", distinct=distinct)
    samples = check_indices(arrays["sample_indices_"], m, "sample_indices_", distinct=distinct)
    size = features.size + samples.size
    _check_members(record["members"], features, samples, (m, n))
    if size != numbers["n_components_"] or len(record["order"]) != size:
        raise ValueError("the number of components does not fit the indices")
    check_numbers(arrays["components_"], "components_", shape=(size, n), nonnegative=True)
    check_numbers(arrays["column_weights_"], "column_weights_", shape=(features.size, n), nonnegative=True)
    if "feature_weight" in arrays:
        check_numbers(arrays["feature_weight"], "the weights of features", shape=(n,), nonnegative=True)
    if not 0 <= float(record.get("observed_share", 1.0)) <= 1:
        raise ValueError("the observed share must be in [0, 1]")
    if "group_means" in arrays:
        check_numbers(arrays["group_means"], "the means of groups", shape=(size, n), nonnegative=True)
        if not -1 <= int(record["largest_group"]) < max(size, 1):
            raise ValueError("the largest group must be the number of a component")
    else:  # version 1: samples belonged to their strongest component
        check_numbers(arrays["_means"], "the mean coefficients", shape=(size,), nonnegative=True)
    labels = check_numbers(arrays["labels_"], "labels_", shape=(m,)) if "labels_" in arrays else np.empty(0)
    if labels.size and not -1 <= labels.min() <= labels.max() < max(size, 1):
        raise ValueError("labels_ must be numbers of components")
    names = record["feature_names"]
    if names and len(names) != n:
        raise ValueError(f"there must be {n} names of features; got {len(names)}")


def _check_members(members: list[Any], features: Indices, samples: Indices, shape: tuple[int, int]) -> None:
    """Raise unless every component has members, the leading one first, whose shares sum to one."""
    leading = np.concatenate([features, samples])
    if len(members) != leading.size:
        raise ValueError(f"there must be members of {leading.size} components; got {len(members)}")
    for k, (own, shares) in enumerate(members):
        limit = shape[1] if k < features.size else shape[0]
        if check_indices(own, limit, "members")[0] != leading[k]:
            raise ValueError("the first member must be the leading one")
        parts = check_numbers(shares, "the shares of members", shape=(len(own),), nonnegative=True)
        if abs(float(np.sum(parts)) - 1.0) > _ROUNDING:
            raise ValueError("the shares of members must sum to one")
