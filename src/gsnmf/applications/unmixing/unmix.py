"""A scene in, endmembers and abundances out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gsnmf.applications.unmixing.abundances import fit_abundances
from gsnmf.applications.unmixing.cube import as_cube
from gsnmf.applications.unmixing.endmember_extraction import (
    ENDMEMBER_METHODS,
    Endmembers,
    Normalize,
    choose_endmembers,
    choose_pixels_and_bands,
)
from gsnmf.applications.unmixing.scene import Scene, usable_scene
from gsnmf.applications.unmixing.scene_files import read_cube
from gsnmf.applications.unmixing.signal_subspace import EndmemberCount, count_endmembers
from gsnmf.applications.unmixing.unmixing_result import Unmixing
from gsnmf.matrix.validation import check_count
from gsnmf.support.arrays import Indices
from gsnmf.support.formatting import counted
from gsnmf.support.progress import Progress, log_stage, reported

MAX_PIXELS = 10_000
"""Larger scenes are sampled for the choice: to find outliers takes n^2 products of spectra."""

_NORMALIZED = {
    "none": "Endmembers were chosen on the spectra as they are: dividing pixels by their sums or lengths makes dark "
    "pixels as important as bright ones, and their noise with them",
    "sum": "Endmembers were chosen on pixels divided by their sums, as asked; spectra are in the units of the scene",
    "length": "Endmembers were chosen on pixels of unit length, as asked; spectra are in the units of the scene",
}


def unmix(
    cube: Any,
    rank: int | range | Literal["auto"],
    *,
    wavelengths: Any = None,
    wavelength_unit: str | None = None,
    bands_axis: int | None = None,
    mask: Any = None,
    no_data: float | None = None,
    method: str = "auto",
    normalize: Normalize = "none",
    averaged: int | None = None,
    sum_to_one: bool = True,
    pure_bands: bool = False,
    outliers: Literal["ignore", "keep"] = "ignore",
    max_pixels: int = MAX_PIXELS,
    random_state: int | np.random.Generator | None = 0,
    progress: Progress = None,
) -> Unmixing:
    r"""Find the materials of a spectral image, and how much of each is in every pixel.

    The pixels x of the scene are approximated by mixtures of r endmembers :math:`E_1, \dots, E_r`, spectra of the
    scene itself:

    .. math:: x \approx \sum_k a_k E_k, \qquad a \ge 0, \quad \sum_k a_k = 1.

    Parameters
    ----------
    cube : array-like with three dimensions, height x width x bands, or path of a file
        NumPy array, memory map, Dask or xarray array, image opened by SPy, or an ENVI, MATLAB, NumPy, GeoTIFF, netCDF
        or Zarr file. Read in blocks, so a scene may be larger than memory.
    rank : int, range or "auto"
        Number of endmembers. ``"auto"`` estimates it by HySime, which on real scenes tends to be large; a range limits
        what HySime may choose.
    wavelengths : array-like, optional
        One per band; by default taken from the file or the xarray coordinate.
    wavelength_unit : {"nm", "µm"}, optional
        By default micrometres if all are below 100, else nanometres.
    bands_axis : int, optional
        Which axis holds the bands; by default taken from the file or xarray, else the last.
    mask : bool array, shape (height, width), optional
        True where a pixel is to be used.
    no_data : float, optional
        The number that stands for a missing value, such as -9999; by default taken from the file or xarray. NaN and
        masked entries of a masked array are missing in any case.
    method : str
        ``"auto"`` chooses pixels by the true error. The field's methods are ``"vca"``, ``"n-findr"``, ``"ppi"``,
        ``"spa"``, ``"smooth-spa"``, ``"preconditioned-spa"``, ``"snpa"`` and ``"xray"``. ``"minimum-volume"`` is for
        scenes without pure pixels.
    normalize : {"none", "sum", "length"}
        What pixels are divided by for the choice. On real scenes ``"none"`` was best.
    averaged : int, optional
        Each chosen pixel is replaced by the mean of so many pixels nearest to it in angle. By default ``"auto"`` and
        ``"minimum-volume"`` average up to 20 pixels: those that differ from the chosen one by noise alone, and at least
        one in 500 pixels of the scene. ``"smooth-spa"`` averages one in 100; the other methods keep the pixel itself.
    sum_to_one : bool
        Whether the abundances of a pixel sum to one.
    pure_bands : bool
        Whether a material may also be known by a band in which it is alone: the generalized separable model, which
        chooses pixels and bands by `gsnmf.factorize`.
    outliers : {"ignore", "keep"}
        Whether pixels that no other resembles can be endmembers.
    max_pixels : int
        Larger scenes are sampled for the choice: random pixels, and extreme ones of every part. Abundances are
        computed for the whole scene.
    random_state : int, numpy.random.Generator or None
        For the sample, and for methods that draw random directions.
    progress : True or callable, optional
        True shows a bar on standard error. A function is called with small records: ``stage``, ``message`` and
        ``fraction`` of the stage that is done.

    Returns
    -------
    Unmixing
        Spectra, coordinates, abundances, residuals; it draws itself and writes a report.

    Notes
    -----
    By default pixels are chosen on the scene as it is: the selections of successive projection, successive nonnegative
    projection and XRAY are improved by exchanges of the true error, and each pixel is averaged with similar ones.
    Pixels without values, pixels and bands that are zero, and pixels that no other resembles are left out; the
    ``notes`` of the result say so. Abundances are exact minimisers.

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
    averaged = None if averaged is None else check_count(averaged, "averaged")
    _check_options(method, normalize, averaged, pure_bands, outliers)
    opened = (read_cube if isinstance(cube, str | Path) else as_cube)(
        cube, wavelengths=wavelengths, wavelength_unit=wavelength_unit, bands_axis=bands_axis, no_data=no_data
    )
    max_pixels, rng = check_count(max_pixels, "max_pixels"), np.random.default_rng(random_state)
    with reported(progress):
        log_stage("Reading the scene")
        scene = usable_scene(opened, mask)
        sample = scene.sample(max_pixels, rng)
        number, counted_by = _number_of_endmembers(rank, scene, sample)
        log_stage("Choosing endmembers")
        if pure_bands:
            found = choose_pixels_and_bands(scene, sample, number)
        else:
            found = choose_endmembers(
                scene, sample, number, method=ENDMEMBER_METHODS[method], normalize=normalize, averaged=averaged,
                keep_outliers=outliers == "keep", rng=rng,
            )  # fmt: skip
        log_stage("Fitting abundances")
        abundances, residuals, relative_error = fit_abundances(scene, found.spectra, sum_to_one)
    endmembers = np.full((len(found.spectra), opened.n_bands), np.nan)
    endmembers[:, scene.bands] = scene.in_units_of_cube(found.spectra)
    return Unmixing(
        endmembers=endmembers,
        pixels=opened.coordinates(found.positions),
        members=tuple(opened.coordinates(own) for own in found.members),
        bands=np.flatnonzero(scene.bands)[found.bands],
        abundances=abundances.reshape(opened.height, opened.width, -1),
        residual_map=residuals.reshape(opened.height, opened.width),
        relative_error=relative_error,
        wavelengths=opened.wavelengths,
        wavelength_unit=opened.wavelength_unit,
        outliers=opened.coordinates(found.outliers),
        picture=scene.picture(),
        method="pure pixels and bands" if pure_bands else method,
        normalize=normalize,
        sum_to_one=sum_to_one,
        rank_choice=counted_by,
        notes=_all_notes(scene, found, sample.size, pure_bands, normalize),
        source=opened.source,
    )


def _check_options(method: str, normalize: str, averaged: int | None, pure_bands: bool, outliers: str) -> None:
    for name, value, allowed in (("method", method, ENDMEMBER_METHODS), ("normalize", normalize, _NORMALIZED)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
    if outliers not in ("ignore", "keep"):
        raise ValueError(f"outliers must be 'ignore' or 'keep'; got {outliers!r}.")
    if pure_bands:
        changed = {"method": method != "auto", "normalize": normalize != "none", "averaged": averaged is not None}
        for name, given in (changed | {"outliers": outliers != "ignore"}).items():
            if given:
                raise ValueError(f"{name} has no effect with pure_bands=True, which chooses by gsnmf.factorize.")


def _number_of_endmembers(rank: Any, scene: Scene, sample: Indices) -> tuple[int, EndmemberCount | None]:
    """How many endmembers, and how the number was estimated if it was not given."""
    n_pixels, n_bands = int(np.count_nonzero(scene.usable)), int(np.count_nonzero(scene.bands))
    limit = min(n_pixels, n_bands)
    if isinstance(rank, str) and rank != "auto":
        raise ValueError(f"rank must be a positive integer, a range or 'auto'; got {rank!r}.")
    if isinstance(rank, str | range):
        numbers = range(1, limit + 1) if isinstance(rank, str) else [r for r in range(1, limit + 1) if r in rank]
        if not numbers:
            raise ValueError(f"rank must include a number in [1, {limit}], the limit for this scene; got {rank}.")
        estimated = count_endmembers(scene.pixels(sample), numbers)
        with np.errstate(over="ignore"):  # squares of huge values
            changes = np.nan_to_num(np.ldexp(estimated.changes, 2 * scene.exponent))
        return estimated.number, replace(estimated, noise=scene.in_units_of_cube(estimated.noise), changes=changes)
    number = check_count(rank, "rank")
    if number > limit:
        raise ValueError(
            f"rank must be in [1, {limit}] for a scene with {n_pixels} usable pixels and {n_bands} usable bands; got "
            f"{number}."
        )
    return number, None


def _all_notes(scene: Scene, found: Endmembers, n_sampled: int, pure_bands: bool, normalize: str) -> tuple[str, ...]:
    notes = [*scene.notes, *found.notes]
    n_usable = int(np.count_nonzero(scene.usable))
    if n_sampled < n_usable:
        notes.append(f"Endmembers were chosen from a sample of {n_sampled} of {n_usable} pixels")
    if found.outliers.size:
        places = ", ".join(f"({row}, {column})" for row, column in scene.cube.coordinates(found.outliers[:5]))
        ellipsis = ", ..." if found.outliers.size > 5 else ""
        number = counted(found.outliers.size, "pixel")
        notes.append(f"{number} that no other resembles could not be chosen: {places}{ellipsis}")
    notes.append("Pixels and bands were chosen on the spectra as they are" if pure_bands else _NORMALIZED[normalize])
    return tuple(notes)
