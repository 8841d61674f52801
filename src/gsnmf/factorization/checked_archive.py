"""Checks of a saved result before it is used: the right matrix, the right shapes, valid numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix import Matrix
from gsnmf.matrix.fingerprint import fingerprint, same_fingerprint
from gsnmf.matrix.validation import check_count, check_indices
from gsnmf.records import Mixtures
from gsnmf.support.archives import check_numbers
from gsnmf.support.arrays import Axis, Indices

_SAME_NORM = 1e-6
"""Two matrices whose norms differ by at most this fraction may be the same matrix in different precision."""

_ROUNDED_SUM = 1e-4
"""By how much the sum of shares in single precision may differ from one."""


def check_same_matrix(matrix: Matrix, record: Mapping[str, Any]) -> None:
    """Raise a `ValueError` unless this is the matrix that was factorized.

    Older files have no fingerprint; for these only the norm is compared.
    """
    if list(matrix.shape) != list(record["shape"]):
        raise ValueError(
            f"matrix must be the one that was factorized, of shape {tuple(record['shape'])}; got shape {matrix.shape}."
        )
    norm = float(record["norm"])
    # If the norm overflowed to infinity, only the fingerprint is compared
    if np.isfinite([matrix.norm, norm]).all() and not abs(matrix.norm - norm) <= _SAME_NORM * norm:
        raise ValueError(
            f"matrix must be the one that was factorized, with norm {norm:.6g}; got one with norm {matrix.norm:.6g}."
        )
    if "fingerprint" in record and not same_fingerprint(np.asarray(record["fingerprint"]), fingerprint(matrix)):
        raise ValueError(
            "matrix must be the one that was factorized; got one with other entries, or with its rows or columns in "
            "another order."
        )


def check_record(record: Mapping[str, Any]) -> None:
    """Raise unless the values of a record have the right kind and range."""
    if np.isnan(float(record["norm"])) or float(record["norm"]) < 0:
        raise ValueError(f"the norm must not be negative or NaN; got {record['norm']}")
    check_numbers(record["shape"], "the shape", shape=(2,), nonnegative=True)
    for name in ("relative_error", "optimality", "n_iterations"):
        check_numbers(record[name], name, shape=(), nonnegative=True)
    if not isinstance(record["converged"], bool) or not isinstance(record["method"], str):
        raise ValueError("converged must be true or false, and the method a name")
    if "fingerprint" in record:
        check_numbers(record["fingerprint"], "the fingerprint")


def checked_choice(
    arrays: Mapping[str, Any], record: Mapping[str, Any], shape: tuple[int, int]
) -> tuple[Indices, Indices, tuple[Axis, ...]]:
    """Columns, rows and the order of choice in an archive, after checking that all fit a matrix of this shape."""
    m, n = shape
    distinct = "members" not in record  # mixtures may share their leading members
    columns = check_indices(arrays["columns"], n, "columns", distinct=distinct)
    rows = check_indices(arrays["rows"], m, "rows", distinct=distinct)
    order: tuple[Axis, ...] = tuple(record["order"])
    if sorted(order) != ["columns"] * columns.size + ["rows"] * rows.size:
        raise ValueError("the order of choice does not fit the columns and rows")
    check_numbers(arrays["column_weights"], "column_weights", shape=(columns.size, n), nonnegative=True)
    if "row_weights" in arrays:
        check_numbers(arrays["row_weights"], "row_weights", shape=(m, rows.size), nonnegative=True)
    return columns, rows, order


def checked_mixtures(arrays: Mapping[str, Any], record: Mapping[str, Any], matrix: Matrix) -> Mixtures:
    """The mixtures in an archive, after checking that members and shares fit the matrix and the leading members."""
    m, n = matrix.shape
    about = record["members"]
    most = check_count(about["most"], "members")
    gain = about["gain"]
    if gain is not None:
        check_numbers(gain, "gain", shape=(), nonnegative=True)
    found = []
    for name, shape in (
        ("column_mixture", (n, arrays["columns"].size)),
        ("row_mixture", (arrays["rows"].size, m)),
    ):
        row, column, share = check_numbers(arrays[name], name, nonnegative=True)
        entries = check_indices(row.astype(np.intp), shape[0], name, distinct=False), column.astype(np.intp)
        check_indices(entries[1], shape[1], name, distinct=False)
        found.append(sp.coo_array((share.astype(matrix.dtype), entries), shape=shape))
    mixtures = Mixtures(found[0].tocsc(), found[1].tocsr(), most, gain)
    for name, sums in (("column", mixtures.column_mixture.sum(axis=0)), ("row", mixtures.row_mixture.sum(axis=1))):
        if np.abs(sums - 1.0).max(initial=0.0) > _ROUNDED_SUM:
            raise ValueError(f"the shares of every {name} mixture must sum to one")
    same = np.array_equal(mixtures.leading_columns, arrays["columns"])
    if not (same and np.array_equal(mixtures.leading_rows, arrays["rows"])):
        raise ValueError("columns and rows must be the leading members of the mixtures")
    return mixtures
