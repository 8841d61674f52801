"""A scene in, endmembers and abundances out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gsnmf.applications.unmixing.cube import Cube, as_cube
from gsnmf.applications.unmixing.endmembers import (
    Endmembers,
    choose_endmembers,
    choose_pixels_and_bands,
)
from gsnmf.applications.unmixing.fcls import abundances_of
from gsnmf.applications.unmixing.files import read_cube
from gsnmf.applications.unmixing.methods import check_method
from gsnmf.applications.unmixing.number_of_endmembers import EndmemberCount, count_endmembers
from gsnmf.applications.unmixing.picture import scene_picture
from gsnmf.applications.unmixing.result import Unmixing
from gsnmf.applications.unmixing.sampling import sample_pixels
from gsnmf.applications.unmixing.validity import Validity, check_pixels
from gsnmf.matrix.validation import check_count
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.progress import logger

MAX_PIXELS = 10_000
"""Larger scenes are sampled for the choice."""

_WHY = {
    "none": "Endmembers were chosen on the spectra as they are: dividing pixels by their sums or lengths makes dark "
    "pixels as important as bright ones, and their noise with them",
    "sum": "Endmembers were chosen on pixels divided by their sums, as asked; spectra are in the units of the scene",
    "length": "Endmembers were chosen on pixels of unit length, as asked; spectra are in the units of the scene",
}


def unmix(
    cube: Any,
    n_endmembers: int | Literal["auto"],
    *,
    wavelengths: Any = None,
    wavelength_unit: str | None = None,
    bands_axis: int | None = None,
    mask: Any = None,
    no_data: float | None = None,
    method: str = "auto",
    normalize: Literal["none", "sum", "length"] = "none",
    averaged: int | None = None,
    sum_to_one: bool = True,
    pure_bands: bool = False,
    outliers: Literal["ignore", "keep"] = "ignore",
    max_pixels: int = MAX_PIXELS,
    random_state: int | np.random.Generator | None = 0,
) -> Unmixing:
    r"""Find the materials of a spectral image, and how much of each is in every pixel.

    The pixels x of the scene are approximated by mixtures of r endmembers :math:`E_1, \dots, E_r`, spectra of the
    scene itself:

    .. math:: x \approx \sum_k a_k E_k, \qquad a \ge 0, \quad \sum_k a_k = 1.

    Parameters
    ----------
    cube : array-like with three dimensions, height x width x bands, or path of a file
        NumPy array, memory map, Dask or xarray array, or what `gsnmf.applications.unmixing.files.read_cube` opens:
        ENVI, MATLAB, NumPy, GeoTIFF, netCDF and Zarr files. Read in blocks, so that a scene may be larger than memory.
    n_endmembers : int or "auto"
        How many; ``"auto"`` estimates the number by HySime, which on real scenes tends to be large.
    wavelengths : array-like, optional
        One per band; by default what the file or the xarray coordinate says.
    wavelength_unit : {"nm", "µm"}, optional
        By default micrometres if all are below 100, else nanometres.
    bands_axis : int, optional
        Which axis are the bands; by default the last, or what the file or xarray says.
    mask : bool array, shape (height, width), optional
        True where a pixel is to be used.
    no_data : float, optional
        The number that stands for a missing value, such as -9999; by default what the file or xarray says. NaN and
        entries that a masked array masks are missing in any case.
    method : str
        ``"auto"`` chooses pixels by the true error; the others of
        `gsnmf.applications.unmixing.methods.ENDMEMBER_METHODS` are those of the field.
    normalize : {"none", "sum", "length"}
        What pixels are divided by for the choice. On real scenes ``"none"`` was best.
    averaged : int, optional
        Each chosen pixel is replaced by the mean of so many pixels nearest to it in angle. By default, for ``"auto"``
        and ``"minimum-volume"``, of those that noise may have made of it, and of one in 500 of the scene in any case,
        at most 20; for ``"smooth-spa"``, which finds them itself, of one in 100; for the other methods 1, the pixel
        itself.
    sum_to_one : bool
        Whether the abundances of a pixel sum to one.
    pure_bands : bool
        Whether a material may also be known by a band in which it is alone: the generalized separable model, which
        chooses pixels and bands by `gsnmf.factorize`.
    outliers : {"ignore", "keep"}
        Whether pixels that no other resembles can be endmembers.
    max_pixels : int
        Larger scenes are sampled for the choice: random pixels, and extreme ones of every part. Abundances are
        always those of the whole scene.
    random_state : int, numpy.random.Generator or None
        For the sample, and for methods that draw random directions.

    Returns
    -------
    Unmixing
        Spectra, coordinates, abundances, residuals; it draws itself and writes a report.

    Notes
    -----
    By default pixels are chosen on the scene as it is: the selections of successive projection, successive nonnegative
    projection and XRAY are improved by exchanges of the true error, and each pixel is averaged with similar ones.
    Pixels without values, pixels and bands that are zero, and pixels that no other resembles are left out; the
    ``notes`` of the result say so. Abundances are exact (`gsnmf.applications.unmixing.fcls`).

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.applications import unmix
    >>> rng = np.random.default_rng(0)
    >>> spectra = rng.random((3, 40))
    >>> scene = (rng.dirichlet([0.3] * 3, size=100) @ spectra).reshape(10, 10, 40)
    >>> found = unmix(scene, 3)
    >>> found.endmembers.shape, found.abundances.shape, bool(found.relative_error < 0.02)
    ((3, 40), (10, 10, 3), True)
    """
    chosen_method = check_method(method)
    averaged = None if averaged is None else check_count(averaged, "averaged")
    _check_options(normalize, outliers, pure_bands, method, averaged)
    opened = read_cube if isinstance(cube, str | Path) else as_cube
    scene: Cube = opened(
        cube, wavelengths=wavelengths, wavelength_unit=wavelength_unit, bands_axis=bands_axis, no_data=no_data
    )
    validity = check_pixels(scene, mask)
    rng = np.random.default_rng(random_state)
    sample = sample_pixels(scene, validity, check_count(max_pixels, "max_pixels"), rng)
    pixels = validity.clean(scene.pixels(sample))
    counted = count_endmembers(pixels) if n_endmembers == "auto" else None
    rank = _check_number(n_endmembers, counted, validity)
    if pure_bands:
        found = choose_pixels_and_bands(sample, pixels, rank)
    else:
        found = choose_endmembers(
            scene, validity, sample, pixels, rank,
            method=chosen_method, normalize=normalize, averaged=averaged, outliers=outliers, rng=rng,
        )  # fmt: skip
    abundances, residuals, relative_error = _fit(scene, validity, found.spectra, sum_to_one)
    return Unmixing(
        endmembers=_all_bands(found.spectra, validity),
        pixels=scene.coordinates(found.positions),
        members=tuple(scene.coordinates(own) for own in found.members),
        bands=np.flatnonzero(validity.bands)[found.bands],
        abundances=abundances.reshape(scene.height, scene.width, -1),
        residual_map=residuals.reshape(scene.height, scene.width),
        relative_error=relative_error,
        wavelengths=scene.wavelengths,
        wavelength_unit=scene.wavelength_unit,
        outliers=scene.coordinates(found.outliers),
        picture=scene_picture(scene, validity),
        method="pure pixels and bands" if pure_bands else method,
        normalize=normalize,
        sum_to_one=sum_to_one,
        rank_choice=_in_units(counted, validity),
        notes=_all_notes(validity, found, scene, sample.size, pure_bands, normalize),
        source=scene.source,
    )


def _check_options(normalize: str, outliers: str, pure_bands: bool, method: str, averaged: int | None) -> None:
    if normalize not in _WHY:
        raise ValueError(f"normalize must be one of {', '.join(map(repr, _WHY))}; got {normalize!r}.")
    if outliers not in ("ignore", "keep"):
        raise ValueError(f"outliers must be 'ignore' or 'keep'; got {outliers!r}.")
    if pure_bands:
        changed = {"method": method != "auto", "normalize": normalize != "none", "averaged": averaged is not None}
        changed["outliers"] = outliers != "ignore"
        for name, given in changed.items():
            if given:
                raise ValueError(f"{name} has no effect with pure_bands=True, which chooses by gsnmf.factorize.")


def _check_number(n_endmembers: Any, counted: EndmemberCount | None, validity: Validity) -> int:
    if counted is not None:
        return counted.number
    if isinstance(n_endmembers, str):
        raise ValueError(f"n_endmembers must be a positive integer or 'auto'; got {n_endmembers!r}.")
    rank = check_count(n_endmembers, "n_endmembers")
    n_pixels, n_bands = int(np.count_nonzero(validity.pixels)), int(np.count_nonzero(validity.bands))
    limit = min(n_pixels, n_bands)
    if rank > limit:
        raise ValueError(
            f"n_endmembers must be in [1, {limit}] for a scene with {n_pixels} usable pixels and {n_bands} usable "
            f"bands; got {rank}."
        )
    return rank


def _all_notes(
    validity: Validity, found: Endmembers, scene: Cube, n_sampled: int, pure_bands: bool, normalize: str
) -> tuple[str, ...]:
    notes = [*validity.notes, *found.notes]
    n_usable = int(np.count_nonzero(validity.pixels))
    if n_sampled < n_usable:
        notes.append(f"Endmembers were chosen from a sample of {n_sampled} of {n_usable} pixels")
    if found.outliers.size:
        places = ", ".join(f"({row}, {column})" for row, column in scene.coordinates(found.outliers[:5]))
        ellipsis = ", ..." if found.outliers.size > 5 else ""
        kind = "pixel" if found.outliers.size == 1 else "pixels"
        notes.append(f"{found.outliers.size} {kind} that no other resembles could not be chosen: {places}{ellipsis}")
    notes.append("Pixels and bands were chosen on the spectra as they are" if pure_bands else _WHY[normalize])
    return tuple(notes)


def _all_bands(spectra: Doubles, validity: Validity) -> Doubles:
    """Spectra over all bands, NaN in those that were left out."""
    complete = np.full((len(spectra), validity.bands.size), np.nan)
    complete[:, validity.bands] = validity.in_units_of_the_scene(spectra)
    return complete


def _in_units(counted: EndmemberCount | None, validity: Validity) -> EndmemberCount | None:
    """The estimated number of endmembers with noise in the unit of the scene."""
    if counted is None or validity.exponent == 0:
        return counted
    noise, changes = counted.noise, validity.in_units_of_the_scene(counted.changes)
    return replace(
        counted, noise=validity.in_units_of_the_scene(noise), changes=validity.in_units_of_the_scene(changes)
    )


def _fit(scene: Cube, validity: Validity, spectra: Doubles, sum_to_one: bool) -> tuple[Floats, Floats, float]:
    """Abundances and root mean squared residuals of all pixels, NaN where there are none; the relative error."""
    abundances = np.full((scene.n_pixels, len(spectra)), np.nan, dtype=np.float32)
    residuals = np.full(scene.n_pixels, np.nan, dtype=np.float32)
    error = energy = 0.0
    for part, block in scene.blocks():
        inside = np.flatnonzero(validity.pixels[part])
        if inside.size == 0:
            continue
        pixels = validity.clean(block[inside])
        weights = abundances_of(pixels, spectra, sum_to_one)
        rest = pixels - (weights @ spectra).astype(pixels.dtype)
        squares = np.einsum("ij,ij->i", rest, rest, dtype=np.float64)
        abundances[inside + part.start] = weights
        residuals[inside + part.start] = np.sqrt(squares / pixels.shape[1])
        error += float(squares.sum())
        energy += float(np.einsum("ij,ij->", pixels, pixels, dtype=np.float64))
        logger.debug("abundances of %d of %d pixels", part.stop, scene.n_pixels)
    in_units = residuals if validity.exponent == 0 else validity.in_units_of_the_scene(residuals.astype(np.float64))
    return abundances, in_units, float(np.sqrt(error / energy))
