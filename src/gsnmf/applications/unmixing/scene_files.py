"""Files of spectral images: NumPy, MATLAB, ENVI, GeoTIFF, and what xarray opens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gsnmf.applications.unmixing.cube import Cube, as_cube
from gsnmf.datasets.readers.arrays import load_mat
from gsnmf.datasets.readers.files import FileError, read_lines, reading
from gsnmf.support.arrays import Doubles, Flags
from gsnmf.support.optional import import_optional

_INSTALL = 'pip install "gsnmf[scenes]"'
_TIFF_SUFFIXES = (".tif", ".tiff")
_XARRAY_SUFFIXES = (".nc", ".nc4", ".zarr")
ENDINGS = (".npy", ".npz", ".mat", ".hdr", *_TIFF_SUFFIXES, *_XARRAY_SUFFIXES)
"""Endings of the files that `read_cube` knows."""
_WAVELENGTH_KEYS = ("wavelengths", "wavelength", "wl")
_BINARY_ENDINGS = ("", ".img", ".dat", ".raw", ".bin", ".bsq", ".bil", ".bip", ".sli", ".hyspex")
"""Endings of the binary file of an ENVI image."""
_HEADER_LINES = 20_000
"""Most lines of an ENVI header. SPy takes time proportional to their square: 20,000 lines take 0.1 s."""


def read_cube(
    path: str | Path,
    *,
    key: str | None = None,
    wavelengths: Any = None,
    wavelength_unit: str | None = None,
    bands_axis: int | None = None,
    no_data: float | None = None,
) -> Cube:
    """Open a file that holds a spectral image; ``.npy``, ENVI and most others are mapped to memory, not read.

    Parameters
    ----------
    path : str or Path
        One of the `ENDINGS`. An ENVI image is named by its header, ``.hdr``, or by the binary file beside it.
    key : str, optional
        Which array of an ``.npz`` or MATLAB file, or which variable of a netCDF or Zarr store; needed if there are
        several with three dimensions.
    wavelengths, wavelength_unit, bands_axis, no_data
        As `gsnmf.applications.unmixing.cube.as_cube` takes them; by default taken from the file.
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(2, "No such file or directory", str(file))
    if file.suffix.lower() not in ENDINGS and file.is_file():
        headers = (file.with_name(file.name + ".hdr"), file.with_suffix(".hdr"))
        file = next((header for header in headers if header.is_file()), file)
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"{file}: the ending must be one of {', '.join(ENDINGS)}; got {ending or 'none'}.")
    if key is not None and ending not in (".npz", ".mat", *_XARRAY_SUFFIXES):
        raise FileError(f"{file}: holds one image; key has no meaning here, got {key!r}.")
    return as_cube(
        _open(file, ending, key),
        wavelengths=wavelengths,
        wavelength_unit=wavelength_unit,
        bands_axis=bands_axis,
        no_data=no_data,
        source=str(file),
    )


def read_mask(path: str | Path) -> Flags:
    """Which pixels are to be used, from a ``.npy`` file."""
    file = Path(path)
    with file.open("rb") as stream, reading(file, "a NumPy array, as numpy.save writes it"):
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def read_wavelengths(path: str | Path) -> Doubles:
    """Wavelengths from a text file, one per line or separated by spaces or commas."""
    words = " ".join(read_lines(Path(path))).replace(",", " ").split()
    numbers = [_number(word) for word in words]
    if None in numbers:
        bad = words[numbers.index(None)]
        raise FileError(f"{path}: wavelengths must be numbers, one per line; got {bad!r}.")
    return np.array(numbers, dtype=np.float64)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _open(file: Path, ending: str, key: str | None) -> Any:
    """What `as_cube` takes."""
    if ending == ".npy":
        with reading(file, "a NumPy array"):
            return np.lib.format.open_memmap(file, mode="r")
    if ending == ".npz":
        with reading(file, "an .npz archive"), file.open("rb") as stream, np.load(stream) as archive:
            return _array_with_bands(file, {name: archive[name] for name in archive.files}, key)
    if ending == ".mat":
        with reading(file, "a MATLAB file up to version 7"), file.open("rb") as stream:
            return _array_with_bands(file, load_mat(stream), key)
    if ending == ".hdr":
        return _open_envi(file)
    return _open_tiff(file) if ending in _TIFF_SUFFIXES else _open_xarray(file, ending, key)


def _array_with_bands(file: Path, values: Mapping[str, Any], key: str | None) -> Cube:
    """The one array with three dimensions among several, and wavelengths that are stored beside it."""
    if key is not None and key not in values:
        raise FileError(f"{file}: has no array {key!r}; got {', '.join(values) or 'none'}.")
    cubes = [key] if key is not None else [name for name, value in values.items() if np.ndim(value) == 3]
    if len(cubes) != 1:
        shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in values.items())
        problem = "several images" if cubes else "no array with three dimensions"
        raise FileError(f"{file}: holds {problem}; name one as key: {shapes}.")
    own = next((values[name] for name in _WAVELENGTH_KEYS if name in values and np.ndim(values[name])), None)
    return Cube(values[cubes[0]], wavelengths=None if own is None else np.ravel(own))


def _open_envi(header: Path) -> Cube:
    """An ENVI image: a header in text, and a binary file beside it that is mapped to memory."""
    envi = import_optional("spectral.io.envi", "reading ENVI images", _INSTALL)
    stem = header.with_suffix("")
    names = (stem.name + spelled for ending in _BINARY_ENDINGS for spelled in (ending, ending.upper()))
    binary = next((file for file in map(stem.with_name, names) if file.is_file()), None)
    if binary is None:
        raise FileError(
            f"{header}: the binary file must lie beside it, called {stem.name} without ending or with one of "
            f"{', '.join(_BINARY_ENDINGS[1:])}."
        )
    with reading(header, "an ENVI image"), TemporaryDirectory() as folder:
        copy = Path(folder, "image.hdr")
        copy.write_text(_plain_header(header), encoding="ascii")
        try:
            image = envi.open(str(copy), str(binary))
        except KeyError as error:
            raise FileError(
                f"{header}: data type must be one of {', '.join(envi.envi_to_dtype)}; got {error}."
            ) from None
        interleave = image.metadata["interleave"]
        if interleave not in ("bsq", "bil", "bip"):
            raise FileError(f"{header}: interleave must be bsq, bil or bip; got {interleave!r}.")
        if not image.using_memmap:
            needed = image.offset + np.prod(image.shape, dtype=object) * image.sample_size
            size = binary.stat().st_size
            raise FileError(f"{binary}: must have {needed} bytes, as {header.name} says; got {size}.")
        return as_cube(image)


def _plain_header(header: Path) -> str:
    """The text of an ENVI header as SPy reads it in every locale: ASCII, in lower case, with defaults.

    SPy decodes by the locale, warns of upper case in names of fields, and takes an interleave of "Bil" for "bsq".
    """
    lines = header.read_text(encoding="utf-8-sig", errors="replace").encode("ascii", "replace").decode().splitlines()
    if len(lines) > _HEADER_LINES:
        raise FileError(f"{header}: an ENVI header has at most {_HEADER_LINES} lines; got {len(lines)}.")
    if not lines or not lines[0].startswith("ENVI"):
        raise FileError(f"{header}: an ENVI header opens with the word ENVI.")
    defaults = ["byte order = 0", "interleave = bsq"]  # of images in bytes, whose headers may lack them
    return "\n".join(["ENVI", *defaults, *(line.strip().lower() for line in lines[1:] if line.strip()), ""])


def _open_tiff(file: Path) -> Cube:
    tifffile = import_optional("tifffile", "reading TIFF images", _INSTALL)
    with reading(file, "a TIFF image"), tifffile.TiffFile(file) as image:
        series = image.series[0]
        axes, compressed = series.axes, image.pages[0].compression != 1
        tag = image.pages[0].tags.get("GDAL_NODATA")  # a number as text
        values = series.asarray() if compressed or series.dataoffset is None else tifffile.memmap(file, mode="r")
    if values.ndim != 3 or not axes.endswith(("YX", "YXS")):
        raise FileError(f"{file}: must hold one image with several bands; got axes {axes} and shape {values.shape}.")
    return Cube(
        values, 2 if axes.endswith("S") else 0, no_data=None if tag is None else _number(str(tag.value).strip("\0 "))
    )


def _open_xarray(file: Path, ending: str, key: str | None) -> Any:
    xarray = import_optional("xarray", f"reading {ending} files", _INSTALL)
    with reading(file, "a data set of xarray"):
        dataset = xarray.open_zarr(file) if ending == ".zarr" else xarray.open_dataset(file)
    names = [name for name, variable in dataset.data_vars.items() if variable.ndim == 3]
    if key is not None and key not in dataset.data_vars:
        raise FileError(f"{file}: has no variable {key!r}; got {', '.join(map(str, dataset.data_vars)) or 'none'}.")
    if key is None and len(names) != 1:
        shown = ", ".join(map(str, names)) or "none"
        raise FileError(f"{file}: must hold one variable with three dimensions, or key must name it; got {shown}.")
    return dataset[names[0] if key is None else key]
