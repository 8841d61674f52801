"""Saves and loads what was observed of a matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gsnmf.matrix import Matrix
from gsnmf.matrix.completion import Completion, filled, with_anchors
from gsnmf.matrix.input import MissingValues
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.validation import check_indices
from gsnmf.problem import Problem
from gsnmf.result import Observation
from gsnmf.support.archives import check_numbers

_FACTORS = ("completion_left", "completion_right")
_ANCHORS = ("chosen_columns", "chosen_rows")


def packed_observation(seen: Observation) -> tuple[dict[str, Any], dict[str, Any]]:
    """The part that JSON can hold, and the arrays."""
    record = {
        "share": seen.share,
        "norm": seen.norm,
        "weighted": seen.weighted,
        "missing_values": seen.missing_values,
    }
    arrays = dict(zip(_FACTORS, seen.completion or (), strict=False))
    return record, {**arrays, **dict(zip(_ANCHORS, seen.anchors or (), strict=False))}


def unpacked_observation(record: Mapping[str, Any], arrays: Mapping[str, Any]) -> Observation | None:
    """Unpack what `packed_observation` packed, or raise an error that says what is wrong with it."""
    if "observation" not in record:
        return None
    packed = record["observation"]
    share, norm = float(packed["share"]), float(packed["norm"])
    if not (0 < share <= 1 and 0 <= norm < math.inf):
        raise ValueError(f"the observed share must be in (0, 1], and its norm finite; got {share} and {norm}")
    if packed["missing_values"] not in ("nan", "unstored", None) or not isinstance(packed["weighted"], bool):
        raise ValueError("missing_values must be 'nan', 'unstored' or null, and weighted true or false")
    completion = None
    if _FACTORS[0] in arrays:
        width = np.asarray(arrays[_FACTORS[0]]).shape[1]
        left, right = (
            check_numbers(arrays[name], name, shape=(int(length), width))
            for name, length in zip(_FACTORS, record["shape"], strict=True)
        )
        completion = left, right
    anchors = None
    if _ANCHORS[0] in arrays:
        m, n = map(int, record["shape"])
        shapes = (m, arrays["columns"].size), (arrays["rows"].size, n)
        C, R = (
            check_numbers(arrays[name], name, shape=shape, nonnegative=True)
            for name, shape in zip(_ANCHORS, shapes, strict=True)
        )
        anchors = C, R
    return Observation(share, norm, packed["weighted"], packed["missing_values"], completion, anchors)


def source_of(
    matrix: Any, seen: Observation | None, arrays: Mapping[str, Any], entry_weights: Any, *, clip: bool
) -> tuple[Matrix, Observed | None]:
    """The matrix of a saved result, with its holes filled as they were, and its observed entries if it has holes."""
    kind = None if seen is None else seen.missing_values
    missing_values: MissingValues = np.nan if kind == "nan" else kind
    held = Problem.of(
        matrix, missing_values=missing_values, entry_weights=entry_weights, negative="clip" if clip else "error"
    ).matrix
    if isinstance(held, Matrix):
        if seen is not None and seen.completion is not None:
            raise ValueError("matrix must be the one that was factorized, with its missing entries or entry_weights.")
        return held, None
    if seen is None or seen.completion is None:
        raise ValueError("matrix must be the one that was factorized, without missing entries and entry_weights.")
    left, right = seen.completion
    if left.shape[0] != held.shape[0] or right.shape[0] != held.shape[1]:
        shape = (left.shape[0], right.shape[0])
        raise ValueError(f"matrix must be the one that was factorized, of shape {shape}; got shape {held.shape}.")
    source = filled(held, Completion(left, right, 0.0, 0.0, 0, True))
    if seen.anchors is None:
        return source, held
    columns = check_indices(arrays["columns"], held.shape[1], "columns")
    rows = check_indices(arrays["rows"], held.shape[0], "rows")
    return with_anchors(source, columns, rows, *seen.anchors), held
