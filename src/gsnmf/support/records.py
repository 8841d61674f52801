"""Frozen records that can be compared although they hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp


class Record:
    """Base of frozen dataclasses, declared with ``eq=False``: equal if all fields are, arrays by their entries.

    Arrays that are not in memory count as equal if their shapes are equal: they follow from the other fields.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Point(Record):
    ...     x: np.ndarray
    >>> Point(np.arange(3)) == Point(np.arange(3)), Point(np.arange(3)) == Point(np.ones(3))
    (True, False)
    """

    __hash__ = None  # type: ignore[assignment]  # arrays have none either

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (field.name for field in fields(self) if field.compare)  # type: ignore[arg-type]
        return all(same_value(getattr(self, name), getattr(other, name)) for name in names)


def same_value(a: Any, b: Any) -> bool:
    """Whether two values are equal; NaN equals NaN."""
    if sp.issparse(a) or sp.issparse(b):
        return sp.issparse(a) and sp.issparse(b) and _same_sparse(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if np.shape(a) != np.shape(b) or not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            return False
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    if hasattr(a, "shape") and hasattr(b, "shape"):
        return bool(a.shape == b.shape)
    return bool(a == b) or (a != a and b != b)


def _same_sparse(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and (a != b).nnz == 0)
