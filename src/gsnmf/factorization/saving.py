"""Writing results: whole files or none, in a form that any NumPy can read.

A result is an ``.npz`` archive of plain arrays and loads without pickle:

| array | |
|---|---|
| ``columns``, ``rows`` | chosen indices, from 0, in the order of choice |
| ``column_weights``, ``row_weights`` | P1, r1 x n, and P2, m x r2, which is left out for a Dask array |
| ``record`` | JSON: how the result was found, how good it is, and what else its maker wanted to keep |
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gsnmf.matrices.checks import check_matrix, is_dask
from gsnmf.matrices.protocol import dense_columns, wrap
from gsnmf.results.records import Factorization, Selection
from gsnmf.support.arrays import Floats, Indices, RawMatrix
from gsnmf.weights import remaining_weights

_VERSION = 1
_SAME_NORM = 1e-6
"""Relative difference of norms up to which two matrices may be the same one in another precision."""


def save(result: Factorization, path: str | Path, *, provenance: Mapping[str, Any] | None = None) -> None:
    """Write a result to an ``.npz`` file, which is complete or not there at all.

    Parameters
    ----------
    result : Factorization
    path : str or Path
        An existing file is replaced once the new one is complete.
    provenance : mapping, optional
        Anything that JSON can hold, to be kept with the result: `load_provenance` reads it.

    Notes
    -----
    The matrix is not saved; `load` asks for it again, and knows its shape and norm. For a Dask array the row weights
    are not saved either: `load` finds them from the column weights, as a Dask array again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import gsnmf
    >>> matrix = [[1, 0, 2], [0, 1, 2], [0, 0, 1]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "result.npz")
    ...     gsnmf.save(gsnmf.factorize(matrix, 2, method="spa-rows"), file)
    ...     gsnmf.load(file, matrix).rows
    array([0, 1])
    """
    with whole_file(path) as stream:
        write(result, stream, provenance=provenance)


def write(result: Factorization, stream: BinaryIO, *, provenance: Mapping[str, Any] | None = None) -> None:
    """`save` to an open file."""
    selection = result.selection
    record = {
        "version": _VERSION,
        "shape": list(result.matrix.shape),
        "norm": _norm(result.matrix),
        "relative_error": result.relative_error,
        "optimality": result.optimality,
        "n_iterations": result.n_iterations,
        "converged": result.converged,
        "method": selection.method,
        "order": selection.order,
        "stop_reason": selection.stop_reason,
        "provenance": dict(provenance or {}),
    }
    arrays: dict[str, Any] = {
        "columns": result.columns,
        "rows": result.rows,
        "column_weights": result.column_weights,
        "record": np.array(json.dumps(record)),
    }
    if not is_dask(result.row_weights):
        arrays["row_weights"] = result.row_weights
    np.savez_compressed(stream, **arrays)


def load(path: str | Path, matrix: Any) -> Factorization:
    """Read a result that `save` wrote.

    Parameters
    ----------
    path : str or Path
    matrix : array-like, DataFrame, sparse or Dask array, shape (m, n)
        The matrix that was factorized; another one is an error. It may be in memory now and a Dask array then, and the
        other way round.

    Returns
    -------
    Factorization
    """
    checked = check_matrix(matrix, lazy=True)
    arrays, record = _read(path)
    if list(checked.shape) != record["shape"]:
        raise ValueError(
            f"matrix must be the one that was factorized, of shape {tuple(record['shape'])}; got shape {checked.shape}."
        )
    norm = _norm(checked)
    if abs(norm - record["norm"]) > _SAME_NORM * record["norm"]:
        raise ValueError(
            f"matrix must be the one that was factorized, with norm {record['norm']:.6g}; got one with norm {norm:.6g}."
        )
    columns, rows = (arrays[name].astype(np.intp) for name in ("columns", "rows"))
    return Factorization(
        columns=columns,
        rows=rows,
        column_weights=arrays["column_weights"],
        row_weights=_row_weights(checked, columns, rows, arrays),
        relative_error=record["relative_error"],
        optimality=record["optimality"],
        n_iterations=record["n_iterations"],
        converged=record["converged"],
        selection=Selection(columns, rows, record["order"], record["method"], record["stop_reason"]),
        matrix=checked,
    )


def _row_weights(matrix: RawMatrix, columns: Indices, rows: Indices, arrays: dict[str, Any]) -> Floats:
    """The row weights in the file, or, where there are none or they must be lazy, those of the column weights."""
    if not is_dask(matrix) and "row_weights" in arrays:
        saved: Floats = arrays["row_weights"]
        return saved
    basis = dense_columns(matrix, rows, across=True).T
    if is_dask(matrix):
        from gsnmf.weights.by_rows import lazy_row_weights

        return lazy_row_weights(matrix, columns, arrays["column_weights"], basis)
    weights = remaining_weights(wrap(matrix), columns, arrays["column_weights"], basis)
    return weights.astype(matrix.dtype, copy=False)


def load_provenance(path: str | Path) -> dict[str, Any]:
    """What was saved with a result besides the result."""
    provenance: dict[str, Any] = _read(path)[1]["provenance"]
    return provenance


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when all is written, and leaves nothing behind if not."""
    with whole_files([path]) as (stream,):
        yield stream


@contextmanager
def whole_files(paths: Sequence[str | Path]) -> Iterator[list[BinaryIO]]:
    """`whole_file` for several that belong together: all take their places, or none does."""
    targets = [Path(path) for path in paths]
    drafts = [target.with_name(f".{target.name}.{os.getpid()}.draft") for target in targets]
    try:
        with ExitStack() as opened:
            streams: list[BinaryIO] = [opened.enter_context(draft.open("xb")) for draft in drafts]
            yield streams
            for stream in streams:
                stream.flush()
                os.fsync(stream.fileno())  # a full disk says so here, while the old files are still in place
        for draft, target in zip(drafts, targets, strict=True):
            draft.replace(target)
    except OSError as error:
        if error.filename is None:  # as when a disk is full
            error.filename = str(targets[0].parent)
        raise
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = dict(archive)
            record: dict[str, Any] = json.loads(str(arrays.pop("record")))
            version = record["version"]
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a result that gsnmf saved: {error}") from error
    if version > _VERSION:
        raise ValueError(f"{path} was saved by a newer gsnmf, in version {version} of the format; got {_VERSION} here.")
    return arrays, record


def _norm(matrix: RawMatrix) -> float:
    held = wrap(matrix)
    return float(np.ldexp(np.sqrt(held.squared_norm), held.exponent))
