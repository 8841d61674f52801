"""ENVI images: a header in text, ``.hdr``, and a binary file beside it that is mapped to memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.datasets.readers.files import FileError
from gsnmf.support.arrays import Doubles

_TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 12: "u2", 13: "u4", 14: "i8", 15: "u8"}
"""NumPy's names of ENVI's data types that are real numbers."""
_BANDS_AXIS = {"bsq": 0, "bil": 1, "bip": 2}
_BINARY_ENDINGS = ("", ".img", ".dat", ".raw", ".bin", ".bsq", ".bil", ".bip", ".sli")


def open_envi(header: Path) -> tuple[NDArray[Any], int, Doubles | None]:
    """Map an ENVI image to memory.

    Returns
    -------
    values : memory map with three dimensions
        As the file interleaves them.
    bands_axis : int
        Which of the dimensions are the bands.
    wavelengths : array or None
        If the header has them.
    """
    fields = _fields(header)
    interleave = fields.get("interleave", "bsq").lower()
    if interleave not in _BANDS_AXIS:
        raise FileError(f"{header}: interleave must be bsq, bil or bip; got {interleave!r}.")
    kind = _integer(header, fields, "data type")
    if kind not in _TYPES:
        raise FileError(f"{header}: data type must be one of {sorted(_TYPES)}; got {kind}.")
    lines, samples, bands = (_integer(header, fields, name) for name in ("lines", "samples", "bands"))
    shape = {"bsq": (bands, lines, samples), "bil": (lines, bands, samples), "bip": (lines, samples, bands)}[interleave]
    order = ">" if _integer(header, fields, "byte order", 0) else "<"
    binary, offset = _binary(header), _integer(header, fields, "header offset", 0)
    dtype = np.dtype(order + _TYPES[kind])
    needed, size = offset + lines * samples * bands * dtype.itemsize, binary.stat().st_size
    if size < needed:
        raise FileError(f"{binary}: must have {needed} bytes, as {header.name} says; got {size}.")
    values = np.memmap(binary, dtype=dtype, mode="r", offset=offset, shape=shape)
    return values, _BANDS_AXIS[interleave], _wavelengths(header, fields)


def _fields(header: Path) -> dict[str, str]:
    """The fields of a header by their names in lower case, braces removed."""
    text = header.read_text(encoding="utf-8", errors="replace")
    if not text.lstrip("\ufeff").startswith("ENVI"):
        raise FileError(f"{header}: an ENVI header opens with the word ENVI.")
    found = re.findall(r"^\s*([^=\n;]+?)\s*=\s*(\{[^}]*\}|[^\n]*)", text, flags=re.MULTILINE)
    return {name.lower(): value.strip().strip("{}").strip() for name, value in found}


def _integer(header: Path, fields: dict[str, str], name: str, default: int | None = None) -> int:
    if name not in fields and default is not None:
        return default
    try:
        value = int(fields[name])
    except KeyError:
        raise FileError(f"{header}: has no field {name!r}.") from None
    except ValueError:
        raise FileError(f"{header}: {name} must be an integer; got {fields[name]!r}.") from None
    if value < 0:
        raise FileError(f"{header}: {name} must not be negative; got {value}.")
    return value


def _binary(header: Path) -> Path:
    stem = header.with_suffix("")
    for ending in _BINARY_ENDINGS:
        for spelled in {ending, ending.upper()}:
            candidate = stem.with_name(stem.name + spelled)
            if candidate.is_file():
                return candidate
    raise FileError(
        f"{header}: the binary file must lie beside it, called {stem.name} without ending or with one of "
        f"{', '.join(_BINARY_ENDINGS[1:])}."
    )


def _wavelengths(header: Path, fields: dict[str, str]) -> Doubles | None:
    if "wavelength" not in fields:
        return None
    try:
        return np.array(fields["wavelength"].replace(",", " ").split(), dtype=np.float64)
    except ValueError:
        raise FileError(f"{header}: wavelength must be numbers, one per band.") from None
