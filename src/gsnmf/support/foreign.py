"""Objects of other libraries: recognised without importing them, and refused at once where NumPy would take minutes.

`numpy.asarray` treats every object with a length and items as a nested sequence. An AnnData object of a few hundred
cells then keeps it busy for minutes, before it fails with a message about dimensions.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any

_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")
_SEQUENCES = (list, tuple, range, deque, array, memoryview, bytes, bytearray)
_SCALARS = (int, float, complex, str, bool, type(None))

_REMEDIES: dict[tuple[str, str], str] = {
    ("anndata", "AnnData"): (
        "call gsnmf.applications.markers, which chooses marker genes and prototype cells, or pass one of its matrices: "
        "{name}.X, {name}.layers[...] or {name}.raw.X"
    ),
    ("anndata", "Raw"): "pass {name}.X",
    ("mudata", "MuData"): "pass one of its matrices: {name}.mod[...].X",
    ("spatialdata", "SpatialData"): "pass one of its matrices: {name}.tables[...].X",
    ("xarray", "Dataset"): "pass one of its variables: {name}[...].values",
    ("xarray", "DataTree"): "pass one of its variables: {name}[...].values",
    ("h5py", "File"): "pass one of its data sets: {name}[...][:]",
    ("h5py", "Group"): "pass one of its data sets: {name}[...][:]",
    ("zarr", "Group"): "pass one of its arrays: {name}[...][:]",
    ("pyarrow", "Table"): "pass {name}.to_pandas()",
}
"""What to do with types of other libraries, by the first part of the module and the name of the type."""


def is_anndata(value: Any) -> bool:
    """Whether this is an AnnData object or a subclass; anndata is not imported to find out.

    Examples
    --------
    >>> is_anndata([[1.0, 2.0]])
    False
    """
    return ("anndata", "AnnData") in _kinds(value)


def is_foreign(value: Any) -> bool:
    """Whether `refuse_foreign` refuses an object.

    Examples
    --------
    >>> is_foreign({1, 2}), is_foreign([[1, 2]])
    (True, False)
    """
    try:
        refuse_foreign(value)
    except TypeError:
        return True
    return False


def refuse_foreign(value: Any, *, name: str = "matrix") -> None:
    """Raise unless NumPy converts an object to an array at once; known types of other libraries get a remedy.

    Allowed are arrays, everything that offers the array protocol (DataFrames, xarray's DataArray, tensors in main
    memory), and Python's own sequences, whose items are looked at one level deep. Sparse matrices and Dask arrays must
    be recognised beforehand.

    Raises
    ------
    TypeError
        In microseconds, whatever the size of the object.

    Examples
    --------
    >>> refuse_foreign([[1, 2], [3, 4]])
    >>> refuse_foreign({1, 2})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    TypeError: matrix must be an array, a DataFrame, ... or nested lists of numbers; got an object of type set.
    """
    remedy = _remedy(value, name)
    if remedy:
        raise TypeError(f"{name} is of type {_title(value)}; {remedy}.")
    if not _is_array_like(value):
        raise TypeError(
            f"{name} must be an array, a DataFrame, a sparse or Dask array, or nested lists of numbers; got an "
            f"object of type {_title(value)}."
        )
    if isinstance(value, (list, tuple, deque)):
        for item in value:
            if _remedy(item, name) or not (isinstance(item, _SCALARS) or _is_array_like(item)):
                raise TypeError(f"{name} must be made of numbers; got an item of type {_title(item)}.")


def _is_array_like(value: Any) -> bool:
    """Whether NumPy converts an object by a protocol or by walking one of Python's own sequences."""
    kind = type(value)
    return isinstance(value, (*_SEQUENCES, *_SCALARS)) or any(hasattr(kind, protocol) for protocol in _ARRAY_PROTOCOLS)


def _remedy(value: Any, name: str) -> str:
    found = (_REMEDIES[kind] for kind in _kinds(value) if kind in _REMEDIES)
    return next(found, "").format(name=name)


def _kinds(value: Any) -> list[tuple[str, str]]:
    """The library and the name of the type of an object and of the types it derives from."""
    return [(kind.__module__.split(".")[0], kind.__name__) for kind in type(value).__mro__]


def _title(value: Any) -> str:
    return next((name for library, name in _kinds(value) if (library, name) in _REMEDIES), type(value).__name__)
