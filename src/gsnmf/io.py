"""Saved records: one codec for results, models and whatever else the package saves.

A file is a NumPy ``.npz`` archive: arrays under the names of their fields, such as ``columns`` or ``filling.left``, and
everything else as JSON in the array ``record``. Any NumPy reads it, nothing in it is ever executed, and it is written
completely or not at all.

To save a record of your own, declare a frozen dataclass whose fields are annotated with what they hold: numbers, text,
tuples, `numpy.typing` arrays, sparse arrays, other dataclasses, or None. Then

- ``save_record(record, path, format="gsnmf scene")`` writes it;
- ``load_record(Scene, path, format="gsnmf scene", kind="a scene")`` reads it and checks every field against its
  annotation: the type of numbers and of entries of arrays, and that all are finite unless the field is declared with
  ``field(metadata={"nan": True})``. If the dataclass has a method ``check``, it is called last: let it raise a
  ValueError if shapes or signs contradict each other, with the help of `check_numbers`.

Whatever is wrong with a file is one ValueError that names the file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, BinaryIO, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf.constraints import Constraints
from gsnmf.matrix.completion import Completion, filled, with_anchors
from gsnmf.matrix.fingerprint import fingerprint, same_fingerprint
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_count, check_indices
from gsnmf.objectives import Filling
from gsnmf.problem import Problem
from gsnmf.records import Mixtures, SearchRecord, Selection, Weights
from gsnmf.registry import Plan
from gsnmf.result import Factorization
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.reasons import StopReason
from gsnmf.weights import row_weights_for

Arrays = dict[str, NDArray[Any]]
Kind = TypeVar("Kind")

_VERSION = 5
_RESULT = "gsnmf result"
_SAME_NORM = 1e-6
"""Two matrices whose norms differ by at most this fraction may be the same matrix in different precision."""
_ROUNDED_SUM = 1e-4
"""By how much the sum of shares in single precision may differ from one."""


def save_record(record: Any, path: str | os.PathLike[str], *, format: str) -> None:
    """Write a record, completely or not at all; the file says that it holds ``format``."""
    with atomic_write(path) as stream:
        write_record(record, stream, format=format)


def write_record(record: Any, stream: BinaryIO, *, format: str) -> None:
    """`save_record` to an open file."""
    tree, arrays = encoded(record)
    text = json.dumps({"format": format, "version": _VERSION, **tree})
    np.savez_compressed(stream, record=np.array(text), **arrays)


def load_record(cls: type[Kind], path: str | os.PathLike[str], *, format: str, kind: str) -> Kind:
    """Read a record that `save_record` wrote, or raise one error that says that the file is not ``kind``."""
    tree, arrays = read_archive(path, kind)
    with one_error(path, kind):
        if tree.get("format") != format:
            raise ValueError(f"it says that it holds {tree.get('format')!r}")
        return decoded(cls, tree, arrays)


def read_archive(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON object and the arrays of a file, or one error that says that it is not ``kind``."""
    with one_error(path, kind):
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        tree = json.loads(str(arrays.pop("record")))
        if not isinstance(tree, dict):
            raise TypeError(f"the record must be an object; got {type(tree).__name__}")
        version = int(tree["version"])
    if version > _VERSION:
        raise ValueError(f"{path} was saved by a newer gsnmf, in version {version} of the format; got {_VERSION} here.")
    return tree, arrays


def read_format(path: str | os.PathLike[str]) -> str:
    """What a file says that it holds; empty if it does not say."""
    with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return str(json.loads(str(archive["record"])).get("format", ""))


@contextmanager
def one_error(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn any error from a damaged file into a `ValueError` saying that it is not ``kind``, such as "a result"."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # it cannot be opened
            raise
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
        raise ValueError(f"{path} is not {kind} that gsnmf saved, or is damaged: {reason}") from error


def check_numbers(values: Any, name: str, *, shape: tuple[int, ...] | None = None, nonnegative: bool = False) -> Any:
    """Return real, finite numbers as they are, or say what is wrong with them.

    Examples
    --------
    >>> check_numbers(np.array([1.0, np.nan]), "weights")
    Traceback (most recent call last):
    ...
    ValueError: weights must be finite numbers
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}")
    if nonnegative and array.size and array.min() < 0:
        raise ValueError(f"{name} must not be negative; got {array.min()}")
    return values


def encoded(record: Any, name: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """A dataclass as what JSON can hold, and its arrays by name.

    Examples
    --------
    >>> encoded(Weights(np.eye(2), np.ones((2, 0)), 0.5, 0.0, 1, True))[0]["relative_error"]
    0.5
    """
    arrays: Arrays = {}
    tree: dict[str, Any] = _encoded(record, name, arrays)
    return tree, arrays


def decoded(cls: type[Kind], tree: Any, arrays: Mapping[str, NDArray[Any]], name: str = "") -> Kind:
    """The record that `encoded` gave, checked against the annotations of the dataclass.

    Examples
    --------
    >>> weights = Weights(np.eye(2), np.ones((2, 0)), 0.5, 0.0, 1, True)
    >>> decoded(Weights, *encoded(weights)) == weights
    True
    """
    record: Kind = _decoded(cls, tree, name, arrays)
    return record


def _encoded(value: Any, name: str, arrays: Arrays) -> Any:
    is_sparse = bool(sp.issparse(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _encoded(getattr(value, field.name), _below(name, field.name), arrays)
            for field in fields(value)
            if field.init
        }
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return "array"
    if is_sparse:
        arrays |= {_below(name, part): getattr(value, part) for part in ("data", "indices", "indptr")}
        return list(value.shape)
    if isinstance(value, (tuple, list)):
        return [_encoded(item, _below(name, str(k)), arrays) for k, item in enumerate(value)]
    if isinstance(value, dict):
        return {str(key): _encoded(item, _below(name, str(key)), arrays) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _decoded(kind: Any, node: Any, name: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any or (origin or kind) is dict:
        return node
    if origin in (Union, UnionType):
        return _one_of(args, node, name, arrays)
    if origin is Literal:
        if node not in args:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, args))}; got {node!r}")
        return node
    if origin is tuple:
        items = _checked_type(node, list, name)
        kinds = [args[0]] * len(items) if args[-1] is Ellipsis else list(args)
        if len(kinds) != len(items):
            raise ValueError(f"{name} must have {len(kinds)} entries; got {len(items)}")
        return tuple(
            _decoded(own, item, _below(name, str(k)), arrays)
            for k, (own, item) in enumerate(zip(kinds, items, strict=True))
        )
    if origin is np.ndarray:
        return _checked_array(arrays[name], args[1], name)
    if kind in (sp.csr_array, sp.csc_array):
        parts = tuple(arrays[_below(name, part)] for part in ("data", "indices", "indptr"))
        found = kind(parts, shape=tuple(_checked_type(node, list, name)))
        found.check_format()
        check_numbers(found.data, name)
        return found
    if is_dataclass(kind):
        return _decoded_record(kind, node, name, arrays)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(node)
    if kind is float:
        number = isinstance(node, (int, float)) and not isinstance(node, bool)
        if not number or not math.isfinite(node):
            raise ValueError(f"{name} must be a finite number; got {node!r}")
        return float(node)
    return _checked_type(node, kind, name)


def _one_of(kinds: tuple[Any, ...], node: Any, name: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if node is None and NoneType in kinds:
        return None
    reason: Exception = ValueError(f"{name} must not be {node!r}")
    for kind in kinds:
        try:
            if kind is not NoneType:
                return _decoded(kind, node, name, arrays)
        except (TypeError, ValueError) as error:
            reason = error
    raise reason


def _decoded_record(kind: Any, node: Any, name: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    tree, hints = _checked_type(node, dict, name), get_type_hints(kind)
    values = {}
    for field in (field for field in fields(kind) if field.init):
        own = _below(name, field.name)
        values[field.name] = _decoded(hints[field.name], tree[field.name], own, arrays)
        if not field.metadata.get("nan"):
            _check_finite(values[field.name], own)
    record = kind(**values)
    if hasattr(record, "check"):
        record.check()
    return record


def _checked_type(node: Any, kind: type[Any], name: str) -> Any:
    if type(node) is not kind:
        raise TypeError(f"{name} must be of type {kind.__name__}; got {type(node).__name__}")
    return node


def _checked_array(array: NDArray[Any], dtype: Any, name: str) -> NDArray[Any]:
    """An array whose entries are of the annotated kind."""
    scalar = get_args(dtype)[0] if get_args(dtype) else np.generic
    scalar = get_origin(scalar) or scalar
    allowed = np.integer if issubclass(scalar, np.integer) else scalar  # machines have integers of different lengths
    if not issubclass(array.dtype.type, allowed):
        raise TypeError(f"{name} must be an array of {scalar.__name__}; got {array.dtype}")
    return np.asarray(array)


def _check_finite(value: Any, name: str) -> None:
    if isinstance(value, tuple):
        for item in value:
            _check_finite(item, name)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        check_numbers(value, name)


def _below(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part


@dataclass(frozen=True)
class SavedResult:
    """A `Factorization` as its file holds it: without the matrix, with everything that was asked."""

    shape: tuple[int, int]
    norm: float | None
    """None if it exceeds the largest float."""
    fingerprint: tuple[float, ...]
    columns: Indices
    rows: Indices
    order: tuple[Axis, ...]
    method: str
    stop_reason: StopReason
    column_weights: Floats
    row_weights: Floats | None
    """None for a Dask array, where they follow from the column weights."""
    relative_error: float
    optimality: float
    n_iterations: int
    converged: bool
    plan: Plan
    rank: int | tuple[int, int] | None
    constraints: Constraints | None
    members: int
    sum_to_one: bool
    sample_weight: Doubles | None
    feature_weight: Doubles | None
    missing_values: Literal["nan", "unstored"] | None
    clipped_share: float
    search: SearchRecord | None
    mixtures: Mixtures | None
    filling: Filling | None
    provenance: dict[str, Any]

    @classmethod
    def of(cls, result: Factorization, provenance: Mapping[str, Any] | None = None) -> SavedResult:
        """What a file keeps of a result."""
        problem, source = result.problem, result.source
        constraints = problem.constraints
        return cls(
            shape=source.shape,
            norm=source.norm if math.isfinite(source.norm) else None,
            fingerprint=tuple(fingerprint(source).tolist()),
            columns=result.columns,
            rows=result.rows,
            order=result.selection.order,
            method=result.method,
            stop_reason=result.stop_reason,
            column_weights=result.column_weights,
            row_weights=result.row_weights if source.in_memory else None,
            relative_error=result.relative_error,
            optimality=result.optimality,
            n_iterations=result.n_iterations,
            converged=result.converged,
            plan=result.plan,
            rank=problem.rank,
            constraints=None if constraints is None else constraints.plain,
            members=problem.members,
            sum_to_one=problem.sum_to_one,
            sample_weight=problem.sample_weight,
            feature_weight=problem.feature_weight,
            missing_values=problem.matrix.missing_values if isinstance(problem.matrix, Observed) else None,
            clipped_share=problem.clipped_share,
            search=result.search,
            mixtures=result.mixtures,
            filling=result.filling,
            provenance=dict(provenance or {}),
        )

    def check(self) -> None:
        """Raise unless indices, weights and mixtures fit each other."""
        m, n = self.shape
        check_numbers(self.shape, "the shape", nonnegative=True)
        for name in ("relative_error", "optimality", "n_iterations", "clipped_share"):
            check_numbers(getattr(self, name), name, nonnegative=True)
        distinct = self.mixtures is None  # mixtures may share their leading members
        r1 = check_indices(self.columns, n, "columns", distinct=distinct).size
        r2 = check_indices(self.rows, m, "rows", distinct=distinct).size
        if sorted(self.order) != ["columns"] * r1 + ["rows"] * r2:
            raise ValueError("the order of choice does not fit the columns and rows")
        check_numbers(self.column_weights, "column_weights", shape=(r1, n), nonnegative=True)
        if self.row_weights is not None:
            check_numbers(self.row_weights, "row_weights", shape=(m, r2), nonnegative=True)
        if self.filling is not None:
            self._check_filling(self.filling, r1, r2)
        if self.mixtures is not None:
            self._check_mixtures(self.mixtures, r1, r2)

    def _check_filling(self, filling: Filling, r1: int, r2: int) -> None:
        m, n = self.shape
        width = filling.left.shape[1]
        check_numbers(filling.left, "filling.left", shape=(m, width))
        check_numbers(filling.right, "filling.right", shape=(n, width))
        if filling.columns is not None:
            check_numbers(filling.columns, "filling.columns", shape=(m, r1), nonnegative=True)
            check_numbers(filling.rows, "filling.rows", shape=(r2, n), nonnegative=True)

    def _check_mixtures(self, mixtures: Mixtures, r1: int, r2: int) -> None:
        check_count(mixtures.most, "members")
        if mixtures.column_mixture.shape != (self.shape[1], r1) or mixtures.row_mixture.shape != (r2, self.shape[0]):
            raise ValueError("the mixtures do not fit the columns and rows")
        for name, sums in (("column", mixtures.column_mixture.sum(axis=0)), ("row", mixtures.row_mixture.sum(axis=1))):
            if np.abs(sums - 1.0).max(initial=0.0) > _ROUNDED_SUM:
                raise ValueError(f"the shares of every {name} mixture must sum to one")
        same = np.array_equal(mixtures.leading_columns, self.columns)
        if not (same and np.array_equal(mixtures.leading_rows, self.rows)):
            raise ValueError("columns and rows must be the leading members of the mixtures")

    def with_matrix(self, matrix: Any, *, entry_weights: Any = None) -> Factorization:
        """The result, with the matrix that was factorized; any other is an error."""
        problem = Problem.of(
            matrix,
            self.rank,
            missing_values=np.nan if self.missing_values == "nan" else self.missing_values,
            entry_weights=entry_weights,
            negative="clip" if self.clipped_share else "error",
            constraints=self.constraints,
            members=self.members,
            sum_to_one=self.sum_to_one,
            sample_weight=self.sample_weight,
            feature_weight=self.feature_weight,
        )
        if problem.matrix.shape != self.shape:
            raise ValueError(
                f"matrix must be the one that was factorized, of shape {self.shape}; got shape {problem.matrix.shape}."
            )
        source = self._source(problem)
        self._check_same(source)
        if self.mixtures is not None and not source.in_memory:
            raise ValueError(
                "matrix must be in memory for a result whose factors have several members; got a Dask array."
            )
        row_weights = self.row_weights
        if row_weights is None or not source.in_memory:
            basis = source.T.raw_columns(self.rows).T
            row_weights = row_weights_for(source, self.columns, self.column_weights, basis)
        weights = Weights(
            self.column_weights, row_weights, self.relative_error, self.optimality, self.n_iterations, self.converged
        )
        selection = Selection(self.columns, self.rows, self.order, self.method, self.stop_reason)
        return Factorization(problem, selection, weights, self.plan, self.search, self.mixtures, self.filling, source)

    def _source(self, problem: Problem) -> Matrix:
        """The matrix with its holes filled as they were."""
        observed, filling = problem.counted, self.filling
        if isinstance(observed, Matrix):
            if filling is not None:
                raise ValueError(
                    "matrix must be the one that was factorized, with its missing entries or entry_weights."
                )
            return observed
        if filling is None:
            raise ValueError("matrix must be the one that was factorized, without missing entries and entry_weights.")
        source = filled(observed, Completion(filling.left, filling.right, 0.0, 0.0, 0, True))
        if filling.columns is None or filling.rows is None:
            return source
        return with_anchors(source, self.columns, self.rows, filling.columns, filling.rows)

    def _check_same(self, matrix: Matrix) -> None:
        """Raise unless this is the matrix that was factorized."""
        if self.norm is not None and not abs(matrix.norm - self.norm) <= _SAME_NORM * self.norm:
            raise ValueError(
                f"matrix must be the one that was factorized, with norm {self.norm:.6g}; got one with norm "
                f"{matrix.norm:.6g}."
            )
        if not same_fingerprint(np.asarray(self.fingerprint), fingerprint(matrix)):
            raise ValueError(
                "matrix must be the one that was factorized; got one with other entries, or with its rows or columns "
                "in another order."
            )


def save_result(
    result: Factorization, path: str | os.PathLike[str], *, provenance: Mapping[str, Any] | None = None
) -> None:
    """Write a result to an ``.npz`` file, completely or not at all.

    Parameters
    ----------
    result : Factorization
    path : path
        An existing file is replaced once the new one is complete.
    provenance : mapping, optional
        Anything JSON can hold, saved with the result; `load_provenance` reads it.

    Notes
    -----
    The matrix and its entry weights are not saved. `load_result` needs them again, and checks the shape, the norm and a
    fingerprint of the entries (`gsnmf.matrix.fingerprint`), which costs one product. The values that fill the holes of
    a matrix are saved. For a Dask array the row weights are not saved either: `load_result` computes them from the
    column weights, again as a Dask array.
    """
    save_record(SavedResult.of(result, provenance), path, format=_RESULT)


def load_result(path: str | os.PathLike[str], matrix: Any, *, entry_weights: Any = None) -> Factorization:
    """Read a result that `save_result` wrote.

    Parameters
    ----------
    path : path
    matrix : array-like, DataFrame, sparse or Dask array, shape (m, n)
        The matrix that was factorized; any other is an error. It may be in memory now if it was a Dask array then, and
        vice versa. The file records which entries were missing and whether negative entries were clipped.
    entry_weights : array or sparse array, shape (m, n), optional
        The weights of entries with which it was factorized.

    Returns
    -------
    Factorization
    """
    saved = load_record(SavedResult, path, format=_RESULT, kind="a result")
    return saved.with_matrix(matrix, entry_weights=entry_weights)


def load_provenance(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The provenance that was saved with a result."""
    return load_record(SavedResult, path, format=_RESULT, kind="a result").provenance
