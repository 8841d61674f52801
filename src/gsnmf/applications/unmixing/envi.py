"""ENVI images: a header in text, ``.hdr``, and a binary file beside it that is mapped to memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gsnmf.datasets.readers.files import FileError
from gsnmf.support.arrays import Doubles, Flags

_TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 12: "u2", 13: "u4", 14: "i8", 15: "u8"}
"""NumPy's names of ENVI's data types that are real numbers."""
_BANDS_AXIS = {"bsq": 0, "bil": 1, "bip": 2}
_BINARY_ENDINGS = ("", ".img", ".dat", ".raw", ".bin", ".bsq", ".bil", ".bip", ".sli")


class Opened(NamedTuple):
    """What a file of an image says about it; None where it says nothing."""

    values: Any
    """What holds the numbers, with three dimensions."""
    bands_axis: int | None = None
    wavelengths: Any = None
    no_data: float | None = None
    good_bands: Flags | None = None


def open_envi(header: Path) -> Opened:
    """Map an ENVI image to memory; the bands have the axis that its interleaving gives them."""
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
    return Opened(
        values,
        _BANDS_AXIS[interleave],
        _numbers(header, fields, "wavelength"),
        _no_data(header, fields),
        _good_bands(header, fields),
    )


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


def _numbers(header: Path, fields: dict[str, str], name: str) -> Doubles | None:
    """A field with one number per band; None if the header does not have it."""
    if name not in fields:
        return None
    try:
        return np.array(fields[name].replace(",", " ").split(), dtype=np.float64)
    except ValueError:
        raise FileError(f"{header}: {name} must be numbers, one per band.") from None


def _no_data(header: Path, fields: dict[str, str]) -> float | None:
    found = _numbers(header, fields, "data ignore value")
    return None if found is None or found.size != 1 else float(found[0])


def _good_bands(header: Path, fields: dict[str, str]) -> Flags | None:
    """The list of bad bands, ``bbl``, in which 1 is good."""
    found = _numbers(header, fields, "bbl")
    return None if found is None else found != 0
