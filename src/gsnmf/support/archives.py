"""Reading archives of plain arrays that may be damaged or forged.

Nothing in a file is ever executed: pickled objects are refused. Whatever else is wrong with a file, the reader raises
one kind of error, with one sentence that names the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


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


def read_arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` archive, without pickled objects."""
    with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_format(path: str | os.PathLike[str]) -> str:
    """What an archive says that it holds; empty if it does not say."""
    with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return str(read_record({"record": archive["record"]}).get("format", ""))


def read_record(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Take the JSON object out of the arrays of an archive."""
    record = json.loads(str(arrays.pop("record")))
    if not isinstance(record, dict):
        raise TypeError(f"the record must be an object; got {type(record).__name__}")
    return record


def read_saved(
    path: str | os.PathLike[str], kind: str, version: int, *, format: str = "", otherwise: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays and the record of a file, or one error that says what is wrong with it.

    Parameters
    ----------
    path : path
    kind : str
        What the file should hold, such as "a result".
    version : int
        The latest version of the format that is known here.
    format : str
        The format that the record must name, if any.
    otherwise : str
        What to do with a file of another format.
    """
    with one_error(path, kind):
        arrays: dict[str, Any] = dict(read_arrays(path))
        record = read_record(arrays)
        found, saved = record["format"] if format else "", int(record["version"])
    if found != format:
        raise ValueError(f"{path} is not {kind} that gsnmf saved; {otherwise}.")
    if saved > version:
        raise ValueError(f"{path} was saved by a newer gsnmf, in version {saved} of the format; got {version} here.")
    return arrays, record


def packed_fields(value: Any, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The fields of a dataclass: those that JSON can hold, and arrays, under the name and a dot."""
    fields = {key: own for key, own in vars(value).items() if not key.startswith("_")}
    plain = {key: own for key, own in fields.items() if not isinstance(own, np.ndarray)}
    return plain, {f"{name}.{key}": own for key, own in fields.items() if key not in plain}


def part_of(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """The arrays under a name and a dot, by what follows.

    Examples
    --------
    >>> part_of({"a.x": np.ones(1), "b.x": np.zeros(1)}, "a")
    {'x': array([1.])}
    """
    return {key.removeprefix(f"{name}."): value for key, value in arrays.items() if key.startswith(f"{name}.")}


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
