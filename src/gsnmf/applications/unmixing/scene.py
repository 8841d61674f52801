"""What of a spectral image is used: pixels and bands that have values, a sample of a large scene, and outliers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.applications.unmixing.cube import Cube
from gsnmf.applications.unmixing.signal_subspace import leading_directions
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
from gsnmf.support.formatting import counted

_DEAD_BAND = 0.5
"""A band missing in more than this fraction of the pixels is left out; otherwise those pixels are."""
_MOST_NEGATIVE = 0.05
"""Fraction of the entries that may be negative, as noise makes some of them."""
_ORDINARY = 20
"""A largest value between 2**-20 and 2**20 is computed with as it is: its squares are far from overflow."""
_EXTREME = 0.2
"""Fraction of a sample that extreme pixels may take."""
_COMPONENTS, _DIRECTIONS = 10, 16
"""Extreme pixels are the two ends of each block along so many random directions in so many leading components."""
_NEIGHBOUR = 3
_PERCENTILE, _TIMES = 0.95, 5.0
_BRIGHT = 3.0
"""Pixels longer than this times the 95th percentile of the lengths are shortened to it."""
_NEVER_BELOW = 0.01
"""A distance below this fraction of the median length does not indicate an outlier."""
_COSINES = 1 << 22
"""Cosines that are formed at a time, 16 MB of them."""
_COLOURS = np.array([650.0, 550.0, 460.0])
"""Wavelengths of red, green and blue in nanometres."""
_FARTHEST = 40.0
"""How far a band may be from them to stand for a colour."""
_DARK, _BRIGHTEST = 0.02, 0.98
"""Quantiles that become black and full colour."""
_NO_PIXEL = 128
_PICTURE_SAMPLE = 20_000
"""Pixels from which principal component and quantiles of a picture are found."""


@dataclass(frozen=True)
class Scene:
    """The usable pixels and bands of a cube.

    Attributes
    ----------
    cube : Cube
    usable : bool array
        Which pixels can be used, row by row.
    bands : bool array
        Which bands can be used.
    notes : tuple of str
        What was left out or changed, in words.
    exponent : int
        Pixels are given in units of two to this power, so that squares of very large or small values are finite.
    """

    cube: Cube
    usable: Flags
    bands: Flags
    notes: tuple[str, ...]
    exponent: int = 0

    def blocks(self) -> Iterator[tuple[Indices, Floats]]:
        """All usable pixels in blocks: their positions and their spectra."""
        for part, pixels in self.cube.blocks():
            inside = np.flatnonzero(self.usable[part])
            if inside.size:
                yield inside + part.start, self._cleaned(pixels[inside])

    def pixels(self, positions: Indices) -> Floats:
        """The usable pixels at some positions, in the usable bands; negative values are set to zero."""
        return self._cleaned(self.cube.pixels(positions))

    def _cleaned(self, pixels: Floats) -> Floats:
        usable = np.maximum(pixels if self.bands.all() else pixels[:, self.bands], 0)
        return usable if self.exponent == 0 else np.ldexp(usable, -self.exponent)

    def in_units_of_cube(self, values: Doubles) -> Doubles:
        """Computed values in the unit of the cube."""
        return values if self.exponent == 0 else np.ldexp(values, self.exponent)

    def sample(self, limit: int, rng: np.random.Generator) -> Indices:
        """Positions of at most ``limit`` usable pixels in increasing order; all of them if they are no more.

        A material may cover a handful of a million pixels. Random pixels would miss it, but its pure pixels are extreme
        along some direction in their part of the scene, so one fifth of the sample are extreme pixels of every block.
        """
        positions = np.flatnonzero(self.usable)
        if positions.size <= limit:
            return positions
        n_extreme = int(_EXTREME * limit)
        random = rng.choice(positions, limit - n_extreme, replace=False)
        extreme = self._extreme_pixels(random, rng)
        if extreme.size > n_extreme:
            extreme = rng.choice(extreme, n_extreme, replace=False)
        return np.union1d(random, extreme)

    def _extreme_pixels(self, random: Indices, rng: np.random.Generator) -> Indices:
        """Ends of every block along random directions in the leading components of unit spectra."""
        pixels = self.pixels(np.sort(random[: 20 * _COMPONENTS * _DIRECTIONS])).astype(np.float64)
        n_components = min(_COMPONENTS, pixels.shape[1])
        components, _ = leading_directions(pixels / _lengths(pixels)[:, None], n_components, centred=True)
        directions = components @ rng.standard_normal((n_components, _DIRECTIONS))
        found = [np.empty(0, dtype=np.intp)]
        for positions, spectra in self.blocks():
            projections = spectra @ directions.astype(spectra.dtype) / _lengths(spectra)[:, None]
            found.append(positions[np.concatenate([projections.argmax(axis=0), projections.argmin(axis=0)])])
        return np.unique(np.concatenate(found))

    def picture(self) -> NDArray[np.uint8]:
        """The scene in colours, shape (height, width, 3): bands nearest to red, green and blue, or brightness in grey.

        Brightness is the first principal component. Pixels that are not used are grey.
        """
        positions = np.flatnonzero(self.usable)
        sampled = self.pixels(positions[:: -(-positions.size // _PICTURE_SAMPLE)]).astype(np.float64)
        bands = self._colour_bands()
        if bands is None:
            directions, mean = leading_directions(sampled, 1, centred=True)
            directions = directions if float(mean @ directions[:, 0]) >= 0 else -directions
        else:
            directions = np.eye(self.bands.size)[self.bands][:, bands]
        low, high = np.quantile(sampled @ directions, [_DARK, _BRIGHTEST], axis=0)
        span = np.where(high > low, high - low, 1.0)
        picture = np.full((self.cube.n_pixels, 3), _NO_PIXEL, dtype=np.uint8)
        for positions, pixels in self.blocks():
            values = pixels @ directions.astype(pixels.dtype)
            picture[positions] = np.round(255.0 * np.clip((values - low) / span, 0.0, 1.0))
        return picture.reshape(self.cube.height, self.cube.width, 3)

    def _colour_bands(self) -> Indices | None:
        """The usable bands nearest to red, green and blue; None if they are unknown or too far."""
        if self.cube.wavelengths is None:
            return None
        nanometres = self.cube.wavelengths * (1000.0 if self.cube.wavelength_unit == "µm" else 1.0)
        distances = np.where(self.bands[:, None], np.abs(nanometres[:, None] - _COLOURS), np.inf)
        return distances.argmin(axis=0) if distances.min(axis=0).max() <= _FARTHEST else None


def usable_scene(cube: Cube, mask: Any = None) -> Scene:
    """Find the pixels and bands that can be used, in two passes over the image.

    Parameters
    ----------
    cube : Cube
    mask : bool array, shape (height, width), optional
        True where a pixel is to be used.

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
        rows = pixels[wanted[part]][:, present]
        finite = np.asarray(np.isfinite(rows).all(axis=1))
        rows = rows[finite]
        nonzero = (rows > 0).any(axis=1)
        n_missing += int(np.count_nonzero(~finite))
        n_zero += int(np.count_nonzero(~nonzero))
        n_negative += int(np.count_nonzero(rows < 0))
        finite[finite] = nonzero
        usable[np.flatnonzero(wanted[part]) + part.start] = finite
        largest[present] = np.maximum(largest[present], rows.max(axis=0, initial=0.0))
        least = min(least, float(rows.min(initial=0.0)))
    bands = present & (largest > 0)
    if not usable.any() or not bands.any():
        raise ValueError(
            "cube must have at least one pixel with finite values that are not all zero; "
            f"got {n_missing} pixels with missing values and {n_zero} that are zero."
        )
    n_entries = int(np.count_nonzero(usable)) * int(bands.sum())
    if n_negative > _MOST_NEGATIVE * n_entries:
        raise ValueError(
            f"cube must be nonnegative but for noise; got {n_negative / n_entries:.0%} negative values, the smallest "
            f"{least:g}. If that number stands for missing values, pass no_data={least:g}; otherwise undo centring or "
            "other transformations, or pass np.maximum(cube, 0) if negative values mean nothing."
        )
    left_out = (
        (np.count_nonzero(~good), "band", "left out: bad, as the header of the file says"),
        (np.count_nonzero(good & ~present), "band", "left out: most pixels have no value there"),
        (np.count_nonzero(present & ~bands), "band", "left out: zero in every pixel"),
        (np.count_nonzero(~wanted), "pixel", "left out by the mask"),
        (n_missing, "pixel", "left out: not every band has a value"),
        (n_zero, "pixel", "left out: zero in every band"),
        (n_negative, "negative value", "taken as zero"),
    )
    notes = tuple(f"{counted(int(count), kind)} {reason}" for count, kind, reason in left_out if count)
    exponent = int(np.frexp(largest.max())[1])
    return Scene(cube, usable, bands, notes, 0 if abs(exponent) <= _ORDINARY else exponent)


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


def shortened(pixels: Floats) -> Floats:
    """Pixels whose length does not exceed three times the 95th percentile of all, in their own directions.

    A saturated pixel may be a hundred times as long as others and would count ten thousand times in a squared error.
    """
    lengths = _lengths(pixels)
    limit = _BRIGHT * float(np.quantile(lengths, _PERCENTILE))
    if lengths.max() <= limit:
        return pixels
    return np.asarray(pixels * np.minimum(1.0, limit / lengths)[:, None], dtype=pixels.dtype)


def isolated_pixels(pixels: Floats) -> Flags:
    r"""Whether each pixel is an outlier that no other pixel resembles: dead detectors, cosmic rays, glints.

    Parameters
    ----------
    pixels : array, shape (n, bands)
        Nonzero.

    Notes
    -----
    How far a pixel x is from its third-nearest other pixel y in angle is measured by :math:`\|x\| \sin\angle(x, y)`,
    the part of x that no multiple of y explains: noise makes it as large for dark pixels as for bright ones. In real
    scenes the largest such distance is a few times the median; a pixel is an outlier if it is more than five times the
    95th percentile. A material that is pure in three pixels is not an outlier. Costs n^2 products of spectra.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pixels = rng.dirichlet(np.ones(3), 200) @ rng.random((3, 20))
    >>> pixels[7, 4] += 5.0
    >>> np.flatnonzero(isolated_pixels(pixels))
    array([7])
    """
    if len(pixels) <= 2 * _NEIGHBOUR:
        return np.zeros(len(pixels), dtype=np.bool_)
    bounded = shortened(pixels)
    distances, lengths = _distances(bounded), _lengths(bounded)
    threshold = max(_TIMES * float(np.quantile(distances, _PERCENTILE)), _NEVER_BELOW * float(np.median(lengths)))
    found: Flags = distances > threshold
    return found


def _distances(pixels: Floats) -> Doubles:
    """Distance of each pixel from its third-nearest other pixel in angle."""
    lengths = _lengths(pixels)
    unit = np.asarray(pixels / lengths[:, None], dtype=np.float32)
    distances = np.empty(len(pixels))
    step = max(1, _COSINES // len(pixels))
    place = len(pixels) - 1 - _NEIGHBOUR  # the largest cosine is that of the pixel with itself
    for start in range(0, len(pixels), step):
        nearest = np.partition(unit[start : start + step] @ unit.T, place, axis=1)[:, place]
        distances[start : start + step] = np.sqrt(np.maximum(0.0, 1.0 - np.square(nearest, dtype=np.float64)))
    return np.asarray(distances * lengths)


def _lengths(pixels: Floats) -> Floats:
    return np.asarray(np.linalg.norm(pixels, axis=1))
