"""A spectral image, height x width x bands, read in blocks whatever holds it.

NumPy arrays, memory maps, Dask and xarray arrays, and images opened by Spectral Python (SPy, the package `spectral`)
are all read in slices of picture rows, so a scene may be larger than memory.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gsnmf.matrix.validation import refuse_foreign
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices

_BLOCK_BYTES = 1 << 25
"""Memory that one block of pixels takes."""
_BAND_NAMES = ("band", "bands", "wavelength", "wavelengths", "wl", "lambda", "spectral", "channel", "channels", "z")
"""Names of the band dimension of an xarray array, and of the coordinate that holds wavelengths."""
_ROW_NAMES = ("y", "row", "rows", "line", "lines", "height", "lat", "latitude", "northing")
_COLUMN_NAMES = ("x", "column", "columns", "col", "cols", "sample", "samples", "width", "lon", "longitude", "easting")
_MICROMETRES_BELOW = 100.0
"""No optical instrument has wavelengths below this in nanometres or above it in micrometres."""
_UNITS = dict.fromkeys(("nm", "nanometers", "nanometres"), "nm")
_UNITS |= dict.fromkeys(("um", "µm", "μm", "micrometers", "micrometres", "microns"), "µm")


@dataclass(frozen=True)
class Cube:
    """A spectral image that has not been read yet.

    Attributes
    ----------
    values : array-like with three dimensions
        Axis ``bands_axis`` holds the bands; the other two are rows and columns of the picture, in this order.
    bands_axis : int
        0, 1 or 2.
    wavelengths : array or None
        One per band.
    wavelength_unit : str
        ``"nm"`` or ``"µm"``; empty without wavelengths.
    source : str
        Where the image came from.
    no_data : float or None
        The number that stands for a missing value; it is read as NaN.
    good_bands : bool array or None
        False for bands that a header marks as bad.
    """

    values: Any
    bands_axis: int = 2
    wavelengths: Doubles | None = None
    wavelength_unit: str = ""
    source: str = ""
    no_data: float | None = None
    good_bands: Flags | None = None

    @property
    def height(self) -> int:
        """Number of rows of the picture."""
        return int(self.values.shape[0 if self.bands_axis != 0 else 1])

    @property
    def width(self) -> int:
        """Number of columns of the picture."""
        return int(self.values.shape[2 if self.bands_axis != 2 else 1])

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return int(self.values.shape[self.bands_axis])

    @property
    def n_pixels(self) -> int:
        """Number of pixels."""
        return self.height * self.width

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """The type that pixels are computed in: single precision holds 16-bit integers exactly."""
        kind = np.dtype(self.values.dtype)
        return np.float32 if kind == np.float32 or kind.itemsize <= 2 else np.float64

    @property
    def complete(self) -> bool:
        """Whether no value can be missing: integers, without a mask and without a number for missing values."""
        integers = np.dtype(self.values.dtype).kind != "f"
        # chunks of a Dask array may be masked, which is known only when they are computed
        plain = isinstance(self.values, np.ndarray) and not isinstance(self.values, np.ma.MaskedArray)
        return integers and self.no_data is None and plain

    def picture_rows(self, first: int, last: int) -> Floats:
        """Pixels of some rows of the picture, shape ((last - first) * width, bands)."""
        at: list[Any] = [slice(None)] * 3
        at[1 if self.bands_axis == 0 else 0] = slice(first, last)
        part = self.values[tuple(at)]
        part = np.moveaxis(part.compute() if hasattr(part, "compute") else np.asanyarray(part), self.bands_axis, 2)
        pixels = np.ascontiguousarray(np.ma.getdata(part).reshape(-1, self.n_bands), dtype=self.dtype)
        missing = np.ma.getmaskarray(part) if isinstance(part, np.ma.MaskedArray) else None
        if self.no_data is not None:
            equal = np.ma.getdata(part) == self.no_data
            missing = equal if missing is None else missing | equal
        return pixels if missing is None else np.where(missing.reshape(pixels.shape), np.nan, pixels)

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """All pixels in blocks of picture rows: the positions of a block, and its pixels."""
        row_bytes = self.width * self.n_bands * np.dtype(self.dtype).itemsize
        step = max(1, _BLOCK_BYTES // row_bytes)
        for first in range(0, self.height, step):
            last = min(self.height, first + step)
            yield slice(first * self.width, last * self.width), self.picture_rows(first, last)

    def pixels(self, positions: Indices) -> Floats:
        """The pixels at some positions, counted row by row; only picture rows that hold one of them are read."""
        positions = np.asarray(positions, dtype=np.intp)
        found = np.empty((positions.size, self.n_bands), dtype=self.dtype)
        if positions.size * 4 > self.n_pixels:
            for part, pixels in self.blocks():
                inside = np.flatnonzero((positions >= part.start) & (positions < part.stop))
                found[inside] = pixels[positions[inside] - part.start]
            return found
        rows = positions // self.width
        for row in np.unique(rows):
            inside = np.flatnonzero(rows == row)
            found[inside] = self.picture_rows(int(row), int(row) + 1)[positions[inside] % self.width]
        return found

    def coordinates(self, positions: Indices) -> Indices:
        """Row and column in the picture of some positions, shape (n, 2)."""
        return np.stack(np.divmod(np.asarray(positions, dtype=np.intp), self.width), axis=-1)


def as_cube(
    cube: Any,
    *,
    wavelengths: Any = None,
    wavelength_unit: str | None = None,
    bands_axis: int | None = None,
    no_data: float | None = None,
    good_bands: Any = None,
    source: str = "",
) -> Cube:
    """Describe any spectral image as a `Cube`, without reading it.

    Parameters
    ----------
    cube : array-like with three dimensions, or Cube
        NumPy array, memory map, Dask array, xarray DataArray, or an image opened by SPy.
    wavelengths : array-like, optional
        One per band; by default taken from an xarray coordinate or from the header of an image of SPy.
    wavelength_unit : {"nm", "µm"}, optional
        By default micrometres if the wavelengths are below 100, else nanometres.
    bands_axis : int, optional
        Which axis holds the bands; by default the one that an xarray dimension names, else the last.
    no_data : float, optional
        The number that stands for a missing value; by default taken from the xarray attribute ``_FillValue`` or from
        the header of an image of SPy.
    good_bands : bool array, optional
        False for bands that are not to be used; by default taken from the header of an image of SPy.
    source : str
        Where the image came from.

    Examples
    --------
    >>> import numpy as np
    >>> cube = as_cube(np.ones((5, 4, 3)), wavelengths=[450, 550, 650])
    >>> cube.height, cube.width, cube.n_bands, cube.wavelength_unit
    (5, 4, 3, 'nm')
    """
    if isinstance(cube, Cube):
        found = cube
    elif hasattr(cube, "dims") and hasattr(cube, "coords"):
        found = _from_xarray(cube)
    elif hasattr(cube, "open_memmap") and hasattr(cube, "metadata"):
        found = _from_spy(cube)
    else:
        if not (hasattr(cube, "shape") and hasattr(cube, "dtype")):
            refuse_foreign(cube, name="cube")
            cube = np.asarray(cube)
        found = Cube(cube)
    shape, kind = tuple(found.values.shape), np.dtype(found.values.dtype)
    if len(shape) != 3:
        hint = "; reshape a list of pixels to (pixels, 1, bands)" if len(shape) == 2 else ""
        raise ValueError(f"cube must have three dimensions, height x width x bands; got shape {shape}{hint}.")
    if min(shape) == 0:
        raise ValueError(f"cube must have at least one pixel and one band; got shape {shape}.")
    if kind.kind not in "fiub":
        raise TypeError(f"cube must hold real numbers; got dtype {kind}.")
    if bands_axis not in (None, -3, -2, -1, 0, 1, 2):
        raise ValueError(f"bands_axis must be 0, 1 or 2; got {bands_axis!r}.")
    axis = found.bands_axis if bands_axis is None else bands_axis % 3
    checked = _check_wavelengths(found.wavelengths if wavelengths is None else wavelengths, shape, axis)
    return replace(
        found,
        bands_axis=axis,
        wavelengths=checked,
        wavelength_unit=_unit(checked, wavelength_unit or found.wavelength_unit or None),
        no_data=_check_no_data(found.no_data if no_data is None else no_data),
        good_bands=_check_good_bands(found.good_bands if good_bands is None else good_bands, shape[axis]),
        source=source or found.source,
    )


def _from_xarray(array: Any) -> Cube:
    """The values with rows before columns, and the wavelengths of a coordinate."""
    if not hasattr(array, "dtype"):
        names = ", ".join(map(repr, array.data_vars))
        raise TypeError(f"cube is an xarray Dataset; pass one of its variables, cube[name]: {names}.")
    if len(array.dims) != 3:
        raise ValueError(f"cube must have three dimensions, two of the picture and the bands; got {array.dims}.")
    lower = [str(name).lower() for name in array.dims]
    bands = [axis for axis, name in enumerate(lower) if name in _BAND_NAMES]
    if len(bands) != 1:
        raise ValueError(
            f"one dimension of cube must be called one of {', '.join(_BAND_NAMES)}, so that the bands are known; got "
            f"{array.dims}. Rename it, cube.rename(...), or pass cube.data and bands_axis."
        )
    rows, columns = (axis for axis in range(3) if axis != bands[0])
    if lower[rows] in _COLUMN_NAMES or lower[columns] in _ROW_NAMES:
        array, bands = array.transpose(*(array.dims[axis] for axis in (columns, rows, bands[0]))), [2]
    coordinates = (
        np.asarray(coordinate)
        for name, coordinate in array.coords.items()
        if str(name).lower() in _BAND_NAMES[1:] and coordinate.dims == (array.dims[bands[0]],)
    )
    wavelengths = next(coordinates, None)
    numeric = wavelengths is not None and wavelengths.dtype.kind in "fiu"
    return Cube(array.data, bands[0], wavelengths if numeric else None, no_data=array.attrs.get("_FillValue"))


def _from_spy(image: Any) -> Cube:
    """The memory map of an image that SPy opened, and what its header says."""
    header = image.metadata
    return Cube(
        image.open_memmap(interleave="bip") if image.using_memmap else image.load(),
        wavelengths=header.get("wavelength", image.bands.centers),
        no_data=header.get("data ignore value"),
        good_bands=header.get("bbl"),
    )


def _check_wavelengths(wavelengths: Any, shape: tuple[int, ...], axis: int) -> Doubles | None:
    if wavelengths is None:
        return None
    try:
        checked = np.asarray(wavelengths, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"wavelengths must be numbers, one per band; got {reprlib.repr(wavelengths)}.") from None
    if checked.ndim != 1 or checked.size != shape[axis]:
        others = [other for other in range(3) if other != axis and shape[other] == checked.size]
        hint = f" If axis {others[0]} holds the bands, pass bands_axis={others[0]}." if others else ""
        raise ValueError(
            f"wavelengths must be one per band, {shape[axis]} for a cube of shape {shape} with the bands on axis "
            f"{axis}; got shape {checked.shape}.{hint}"
        )
    if not np.all(np.isfinite(checked)) or checked.min() <= 0:
        bad = int(np.argmin(np.where(np.isfinite(checked), checked, -np.inf)))
        raise ValueError(f"wavelengths must be finite and above 0; got {checked[bad]} at band {bad}.")
    return checked


def _unit(wavelengths: Doubles | None, unit: str | None) -> str:
    if wavelengths is None:
        return ""
    if unit is None:
        return "µm" if wavelengths.max() < _MICROMETRES_BELOW else "nm"
    if unit.lower() not in _UNITS:
        raise ValueError(f"wavelength_unit must be 'nm' or 'µm'; got {unit!r}.")
    return _UNITS[unit.lower()]


def _check_no_data(no_data: Any) -> float | None:
    """The number for missing values; None also for NaN, which is missing anyway."""
    if no_data is None:
        return None
    try:
        number = float(no_data)
    except (TypeError, ValueError):
        raise TypeError(f"no_data must be a number; got {no_data!r}.") from None
    return None if np.isnan(number) else number


def _check_good_bands(good_bands: Any, n_bands: int) -> Flags | None:
    if good_bands is None:
        return None
    try:
        flags = np.asarray(good_bands, dtype=np.float64)
    except (TypeError, ValueError):
        flags = np.empty(0)
    if flags.shape != (n_bands,) or not np.isin(flags, (0, 1)).all():
        raise ValueError(
            f"good_bands must be true or false for each of the {n_bands} bands; got {reprlib.repr(good_bands)}."
        )
    return flags.astype(np.bool_)
