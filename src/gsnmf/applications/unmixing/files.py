"""Files of spectral images: NumPy, MATLAB, ENVI, GeoTIFF, and what xarray opens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gsnmf.applications.unmixing.cube import Cube, as_cube
from gsnmf.applications.unmixing.envi import Opened, open_envi
from gsnmf.datasets.readers.files import FileError, read_lines, reading
from gsnmf.datasets.readers.matlab import load_mat
from gsnmf.support.arrays import Doubles, Flags
from gsnmf.support.optional import import_optional

_REMEDY = 'pip install "gsnmf[scenes]"'
_ENVI_SUFFIXES = (".hdr",)
_TIFF_SUFFIXES = (".tif", ".tiff")
_XARRAY_SUFFIXES = (".nc", ".nc4", ".zarr")
ENDINGS = (".npy", ".npz", ".mat", *_ENVI_SUFFIXES, *_TIFF_SUFFIXES, *_XARRAY_SUFFIXES)
"""Endings of the files that `read_cube` knows."""
_WAVELENGTH_KEYS = ("wavelengths", "wavelength", "wl")


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
        As `gsnmf.applications.unmixing.cube.as_cube` takes them; by default what the file says.
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(2, "No such file or directory", str(file))
    file = _header_of(file) or file
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"{file}: the ending must be one of {', '.join(ENDINGS)}; got {ending or 'none'}.")
    if key is not None and ending not in (".npz", ".mat", *_XARRAY_SUFFIXES):
        raise FileError(f"{file}: holds one image; key has no meaning here, got {key!r}.")
    opened = _open(file, ending, key)
    return as_cube(
        opened.values,
        wavelengths=opened.wavelengths if wavelengths is None else wavelengths,
        wavelength_unit=wavelength_unit,
        bands_axis=opened.bands_axis if bands_axis is None else bands_axis,
        no_data=opened.no_data if no_data is None else no_data,
        good_bands=opened.good_bands,
        source=str(file),
    )


def _header_of(file: Path) -> Path | None:
    """The header beside the binary file of an ENVI image; None if this is no such file."""
    if file.suffix.lower() in ENDINGS or not file.is_file():
        return None
    names = (file.with_name(file.name + ".hdr"), file.with_suffix(".hdr"))
    return next((header for header in names if header.is_file()), None)


def read_mask(path: str | Path) -> Flags:
    """Which pixels are to be used, from a ``.npy`` file."""
    file = Path(path)
    with file.open("rb") as stream, reading(file, "a NumPy array, as numpy.save writes it"):
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def read_wavelengths(path: str | Path) -> Doubles:
    """Wavelengths from a text file, one per line or separated by spaces or commas."""
    words = " ".join(read_lines(Path(path))).replace(",", " ").split()
    try:
        return np.array(words, dtype=np.float64)
    except ValueError:
        bad = next(word for word in words if not _is_number(word))
        raise FileError(f"{path}: wavelengths must be numbers, one per line; got {bad!r}.") from None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _open(file: Path, ending: str, key: str | None) -> Opened:
    if ending == ".npy":
        with reading(file, "a NumPy array"):
            return Opened(np.lib.format.open_memmap(file, mode="r"))
    if ending == ".npz":
        with reading(file, "an .npz archive"), file.open("rb") as stream, np.load(stream) as archive:
            return _chosen(file, {name: archive[name] for name in archive.files}, key)
    if ending == ".mat":
        with reading(file, "a MATLAB file up to version 7"), file.open("rb") as stream:
            return _chosen(file, load_mat(stream), key)
    if ending in _ENVI_SUFFIXES:
        return open_envi(file)
    if ending in _TIFF_SUFFIXES:
        return _open_tiff(file)
    return Opened(_open_xarray(file, ending, key))


def _chosen(file: Path, values: Mapping[str, Any], key: str | None) -> Opened:
    """The one array with three dimensions among several, and wavelengths that stand beside it."""
    if key is not None and key not in values:
        raise FileError(f"{file}: has no array {key!r}; got {', '.join(values) or 'none'}.")
    cubes = [key] if key is not None else [name for name, value in values.items() if np.ndim(value) == 3]
    if len(cubes) != 1:
        shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in values.items())
        problem = "several images" if cubes else "no array with three dimensions"
        raise FileError(f"{file}: holds {problem}; name one as key: {shapes}.")
    own = next((values[name] for name in _WAVELENGTH_KEYS if name in values and np.ndim(values[name])), None)
    return Opened(values[cubes[0]], wavelengths=None if own is None else np.ravel(own))


def _open_tiff(file: Path) -> Opened:
    tifffile = import_optional("tifffile", "reading TIFF images", _REMEDY)
    with reading(file, "a TIFF image"), tifffile.TiffFile(file) as image:
        series = image.series[0]
        axes, compressed = series.axes, image.pages[0].compression != 1
        no_data = _no_data_of_gdal(image.pages[0].tags.get("GDAL_NODATA"))
        values = series.asarray() if compressed or series.dataoffset is None else tifffile.memmap(file, mode="r")
    if values.ndim != 3 or not axes.endswith(("YX", "YXS")):
        raise FileError(f"{file}: must hold one image with several bands; got axes {axes} and shape {values.shape}.")
    return Opened(values, 2 if axes.endswith("S") else 0, no_data=no_data)


def _no_data_of_gdal(tag: Any) -> float | None:
    """The number for missing values, which GDAL writes as text into a tag of its own."""
    text = "" if tag is None else str(tag.value).strip("\0 ")
    return float(text) if _is_number(text) else None


def _open_xarray(file: Path, ending: str, key: str | None) -> Any:
    xarray = import_optional("xarray", f"reading {ending} files", _REMEDY)
    with reading(file, "a data set of xarray"):
        dataset = xarray.open_zarr(file) if ending == ".zarr" else xarray.open_dataset(file)
    names = [name for name, variable in dataset.data_vars.items() if variable.ndim == 3]
    if key is not None and key not in dataset.data_vars:
        raise FileError(f"{file}: has no variable {key!r}; got {', '.join(map(str, dataset.data_vars)) or 'none'}.")
    if key is None and len(names) != 1:
        shown = ", ".join(map(str, names)) or "none"
        raise FileError(f"{file}: must hold one variable with three dimensions, or key must name it; got {shown}.")
    return dataset[names[0] if key is None else key]
