"""Which pixels and bands of a spectral image can be used: dead ones, missing values, negative values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gsnmf.applications.unmixing.cube import Cube
from gsnmf.support.arrays import Doubles, Flags, Floats

_DEAD_BAND = 0.5
"""A band missing in more than this share of the pixels is dead; otherwise those pixels are masked."""
_MOST_NEGATIVE = 0.05
"""Part of the entries that may be negative, as noise makes some of them."""
_ORDINARY = 20
"""A largest value between 2 to minus this power and 2 to this power is computed with as it is."""


@dataclass(frozen=True)
class Validity:
    """Which pixels and bands can be used, and why the others cannot."""

    pixels: Flags
    """Of all pixels of the scene, row by row."""
    bands: Flags
    notes: tuple[str, ...]
    """What was left out or changed, in words."""
    exponent: int = 0
    """Computations are in units of two to this power, so that squares of very large or small values are finite."""

    def clean(self, pixels: Floats) -> Floats:
        """Usable pixels in the usable bands and in the unit of computations, negative values set to zero."""
        usable = np.maximum(pixels if self.bands.all() else pixels[:, self.bands], 0)
        return usable if self.exponent == 0 else np.ldexp(usable, -self.exponent)

    def in_units_of_the_scene(self, values: Doubles) -> Doubles:
        """Values of computations in the unit of the scene."""
        return values if self.exponent == 0 else np.ldexp(values, self.exponent)


def check_pixels(cube: Cube, mask: Any = None) -> Validity:
    """Find the pixels and bands that can be used, in two passes over the image.

    Parameters
    ----------
    cube : Cube
    mask : bool array, shape (height, width), optional
        True where a pixel is to be used.

    Returns
    -------
    Validity

    Notes
    -----
    A band is left out if the header of its file marks it as bad, if more than half of the pixels miss it (not a number,
    or infinite), or if it is zero in all of them. A pixel is left out if it misses one of the other bands, if it is
    zero in all of them, or if the mask says so. Negative values, which noise produces, count as zero; more than one in
    twenty is an error.
    """
    wanted = _check_mask(mask, cube)
    good = np.ones(cube.n_bands, dtype=np.bool_) if cube.good_bands is None else cube.good_bands
    present = good & _bands_present(cube, wanted)
    if not present.any():
        raise ValueError(f"cube must have at least one pixel with finite values; got none in {cube.n_pixels} pixels.")
    usable = wanted.copy()
    n_missing = n_zero = n_negative = 0
    largest, least = np.zeros(cube.n_bands), 0.0
    for part, pixels in cube.blocks():
        rows = pixels[wanted[part]]
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(rows[:, present]).all(axis=1)
            empty = finite & ~(rows[:, present] > 0).any(axis=1)
            n_negative += int(np.count_nonzero(rows[finite][:, present] < 0))
        n_missing += int(np.count_nonzero(~finite))
        n_zero += int(np.count_nonzero(empty))
        usable[np.arange(part.start, part.stop)[wanted[part]]] = finite & ~empty
        if finite.any():
            largest[present] = np.maximum(largest[present], rows[finite][:, present].max(axis=0))
            least = min(least, float(rows[finite][:, present].min()))
    bands = present & (largest > 0)
    _check_something_left(usable, bands, n_missing, n_zero)
    _check_negative(n_negative, int(np.count_nonzero(usable)) * int(bands.sum()), least)
    notes = _notes(wanted, good, present, bands, n_missing, n_zero, n_negative)
    exponent = int(np.frexp(largest.max())[1])
    return Validity(usable, bands, notes, 0 if abs(exponent) <= _ORDINARY else exponent)


def _check_mask(mask: Any, cube: Cube) -> Flags:
    if mask is None:
        return np.ones(cube.n_pixels, dtype=np.bool_)
    given = np.asarray(mask)
    if given.shape != (cube.height, cube.width):
        raise ValueError(f"mask must have the shape of the picture, {(cube.height, cube.width)}; got {given.shape}.")
    if given.dtype != np.bool_ and not np.isin(given, (0, 1)).all():
        raise ValueError(f"mask must be boolean, True where a pixel is to be used; got dtype {given.dtype}.")
    if not given.any():
        raise ValueError("mask must leave at least one pixel to be used; got none.")
    return given.astype(np.bool_).ravel()


def _bands_present(cube: Cube, wanted: Flags) -> Flags:
    """Bands that most of the pixels with any value have."""
    if cube.complete:
        return np.ones(cube.n_bands, dtype=np.bool_)
    counts, total = np.zeros(cube.n_bands, dtype=np.int64), 0
    for part, pixels in cube.blocks():
        finite = np.isfinite(pixels[wanted[part]])
        counts += finite.sum(axis=0)
        total += int(np.count_nonzero(finite.any(axis=1)))
    present: Flags = counts > _DEAD_BAND * total
    return present


def _check_something_left(usable: Flags, bands: Flags, n_missing: int, n_zero: int) -> None:
    if not usable.any() or not bands.any():
        raise ValueError(
            "cube must have at least one pixel with finite values that are not all zero; "
            f"got {n_missing} pixels with missing values and {n_zero} that are zero."
        )


def _check_negative(n_negative: int, n_entries: int, least: float) -> None:
    if n_negative > _MOST_NEGATIVE * n_entries:
        raise ValueError(
            f"cube must be nonnegative but for noise; got {n_negative / n_entries:.0%} negative values, the smallest "
            f"{least:g}. If that number stands for missing values, pass no_data={least:g}; otherwise undo centring or "
            "other transformations, or pass np.maximum(cube, 0) if negative values mean nothing."
        )


def _notes(
    wanted: Flags, good: Flags, present: Flags, bands: Flags, n_missing: int, n_zero: int, n_negative: int
) -> tuple[str, ...]:
    n_masked = int(np.count_nonzero(~wanted))
    found = (
        (int(np.count_nonzero(~good)), "band", "left out: bad, as the header of the file says"),
        (int(np.count_nonzero(good & ~present)), "band", "left out: most pixels have no value there"),
        (int(np.count_nonzero(present & ~bands)), "band", "left out: zero in every pixel"),
        (n_masked, "pixel", "left out by the mask"),
        (n_missing, "pixel", "left out: not every band has a value"),
        (n_zero, "pixel", "left out: zero in every band"),
        (n_negative, "negative value", "taken as zero"),
    )
    return tuple(f"{count} {kind}{'s' if count > 1 else ''} {reason}" for count, kind, reason in found if count)
