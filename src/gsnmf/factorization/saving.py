"""Saves results as complete files, or not at all, in a form that any NumPy can read.

A result is an ``.npz`` archive of plain arrays and loads without pickle:

| array | |
|---|---|
| ``columns``, ``rows`` | chosen indices, from 0, in the order of choice |
| ``column_weights``, ``row_weights`` | P1, r1 x n, and P2, m x r2, which is left out for a Dask array |
| ``column_mixture``, ``row_mixture`` | n x r1 and r2 x m, for factors of several members: triplets row, column, share |
| ``completion_left``, ``completion_right`` | factors of what fills the holes, m x k and n x k, if entries are missing |
| ``chosen_columns``, ``chosen_rows`` | m x r1 and r2 x n, what was chosen, without holes, if entries are missing |
| ``record`` | JSON: how the result was found, how good it is, and anything else that was saved with it |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gsnmf.factorization.checked_archive import check_record, check_same_matrix, checked_choice, checked_mixtures
from gsnmf.factorization.saved_observation import packed_observation, source_of, unpacked_observation
from gsnmf.matrix import Matrix
from gsnmf.matrix.fingerprint import fingerprint
from gsnmf.matrix.observed import Observed
from gsnmf.records import Mixtures, Selection, Weights
from gsnmf.result import Factorization, Substitutes
from gsnmf.search.alternatives import substitutes
from gsnmf.support.archives import one_error, read_saved
from gsnmf.support.arrays import Doubles, Floats, Sparse
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.reasons import StopReason
from gsnmf.weights import row_weights_for

_VERSION = 4
_VERSION_WITHOUT_OBSERVATION = 3
_VERSION_WITHOUT_MIXTURES = 2
"""The oldest version of the format that can read this."""
_KIND = "a result"


def save_result(result: Factorization, path: str | Path, *, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a result to an ``.npz`` file, completely or not at all.

    Parameters
    ----------
    result : Factorization
    path : str or Path
        An existing file is replaced once the new one is complete.
    provenance : mapping, optional
        Anything JSON can hold, saved with the result; `load_provenance` reads it.

    Notes
    -----
    The matrix is not saved. `load_result` needs it again, and checks its shape, its norm and a fingerprint of its
    entries (`gsnmf.matrix.fingerprint`), which costs one product. The values that fill the holes of a matrix are
    saved. For a Dask array the row weights are not saved either: `load_result` computes them from the column weights,
    again as a Dask array.
    """
    with atomic_write(path) as stream:
        write(result, stream, provenance=provenance)


def write(result: Factorization, stream: BinaryIO, *, provenance: Mapping[str, Any] | None = None) -> None:
    """`save_result` to an open file."""
    record, arrays = packed(result, provenance=provenance)
    np.savez_compressed(stream, record=np.array(json.dumps(record)), **arrays)


def packed(
    result: Factorization, *, provenance: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A result without its matrix as what JSON can hold and arrays; `unpacked` makes a result of them again."""
    selection = result.selection
    record: dict[str, Any] = {
        "version": _VERSION_WITHOUT_MIXTURES if result.mixtures is None else _VERSION_WITHOUT_OBSERVATION,
        "shape": list(result.source.shape),
        "norm": result.source.norm,
        "fingerprint": fingerprint(result.source).tolist(),
        "relative_error": result.relative_error,
        "optimality": result.optimality,
        "n_iterations": result.n_iterations,
        "converged": result.converged,
        "method": selection.method,
        "order": list(selection.order),
        "stop_reason": selection.stop_reason,
        "provenance": dict(provenance or {}),
    }
    arrays: dict[str, Any] = {
        "columns": result.columns,
        "rows": result.rows,
        "column_weights": result.column_weights,
    }
    if result.source.in_memory:
        arrays["row_weights"] = result.row_weights
    if result.mixtures is not None:
        record["members"] = {"most": result.mixtures.most, "gain": result.mixtures.gain}
        arrays["column_mixture"] = _triplets(result.column_mixture)
        arrays["row_mixture"] = _triplets(result.row_mixture)
    if result.clipped_share:
        record["clipped_share"] = result.clipped_share
    if result.observation is not None:
        record["version"] = _VERSION
        record["observation"], factors = packed_observation(result.observation)
        arrays.update(factors)
    return record, arrays


def load_result(path: str | Path, matrix: Any, *, entry_weights: Any = None) -> Factorization:
    """Read a result that `save_result` wrote.

    Parameters
    ----------
    path : str or Path
    matrix : array-like, DataFrame, sparse or Dask array, shape (m, n)
        The matrix that was factorized; any other is an error. It may be in memory now if it was a Dask array then, and
        vice versa. The file knows which entries are missing and whether negative entries are set to zero.
    entry_weights : array or sparse array, shape (m, n), optional
        The weights of entries with which it was factorized.

    Returns
    -------
    Factorization
    """
    arrays, record = read_saved(path, _KIND, _VERSION)
    return unpacked(path, record, arrays, matrix, entry_weights=entry_weights)


def unpacked(
    path: str | PathLike[str],
    record: Mapping[str, Any],
    arrays: Mapping[str, Any],
    matrix: Any,
    *,
    entry_weights: Any = None,
) -> Factorization:
    """The result that `packed` has packed, with its matrix; errors name the file that it comes from."""
    with one_error(path, _KIND):
        check_record(record)
        seen = unpacked_observation(record, arrays)
    held, observed = source_of(matrix, seen, arrays, entry_weights, clip=bool(record.get("clipped_share", 0.0)))
    check_same_matrix(held, record)
    with one_error(path, _KIND):
        columns, rows, order = checked_choice(arrays, record, held.shape)
        selection = Selection(columns, rows, order, record["method"], StopReason(record["stop_reason"]))
        mixtures = checked_mixtures(arrays, record, held) if "members" in record else None
    if mixtures is not None and not held.in_memory:
        raise ValueError("matrix must be in memory for a result whose factors have several members; got a Dask array.")
    weights = Weights(
        column_weights=arrays["column_weights"],
        row_weights=_row_weights(held, selection, arrays),
        relative_error=record["relative_error"],
        optimality=record["optimality"],
        n_iterations=record["n_iterations"],
        converged=record["converged"],
    )
    return Factorization(
        selection,
        weights,
        held,
        None,
        _substitutes(observed, mixtures),
        mixtures,
        seen,
        float(record.get("clipped_share", 0.0)),
    )


def _substitutes(observed: Observed | None, mixtures: Mixtures | None) -> Substitutes | None:
    """How a loaded result finds alternatives."""
    if observed is None:
        return substitutes
    return partial(substitutes, observed=observed) if mixtures is None else None


def _row_weights(matrix: Matrix, selection: Selection, arrays: Mapping[str, Any]) -> Floats:
    """The row weights in the file. If there are none, or they must stay with the data, solve for them.

    They follow from the column weights.
    """
    if matrix.in_memory and "row_weights" in arrays:
        saved: Floats = arrays["row_weights"]
        return saved
    basis = matrix.T.raw_columns(selection.rows).T
    found: Floats = row_weights_for(matrix, selection.columns, arrays["column_weights"], basis)
    return found


def _triplets(mixture: Sparse) -> Doubles:
    """Row, column and share of every member, shape (3, number of members)."""
    entries = mixture.tocoo()
    return np.array([entries.row, entries.col, entries.data], dtype=np.float64)


def load_provenance(path: str | Path) -> dict[str, Any]:
    """The provenance that was saved with a result."""
    with one_error(path, _KIND):
        provenance: dict[str, Any] = read_saved(path, _KIND, _VERSION)[1]["provenance"]
    return provenance
