"""What unmixing finds: endmembers, abundances, and where they come from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.applications.unmixing.number_of_endmembers import EndmemberCount
from gsnmf.applications.unmixing.page import render
from gsnmf.applications.unmixing.plots import plot_chosen_pixels, plot_maps, plot_spectra
from gsnmf.applications.unmixing.spectral_distances import spectral_angle
from gsnmf.support.archives import one_error, read_saved
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.formatting import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMAT = "gsnmf unmixing"
_VERSION = 1
_KIND = "a result of unmixing"
_ARRAYS = ("endmembers", "pixels", "bands", "abundances", "residual_map", "outliers", "picture")
_WORDS = ("relative_error", "wavelength_unit", "method", "normalize", "sum_to_one", "notes", "source")


@dataclass(frozen=True, repr=False)
class Unmixing:
    """The endmembers of a scene and their abundances in every pixel.

    Attributes
    ----------
    endmembers : array, shape (r, bands)
        Spectra in the units of the scene; NaN in bands that were left out. Those of pixels come first, then those of
        pure bands.
    pixels : int array, shape (n, 2)
        Row and column of the pixels that were chosen, one per endmember that comes from a pixel.
    members : tuple of int arrays, shape (n_members, 2)
        Rows and columns of the pixels whose mean each endmember is, the nearest in angle first.
    bands : int array
        Pure bands, if they were asked for.
    abundances : float32 array, shape (height, width, r)
        NaN where a pixel was left out.
    residual_map : float32 array, shape (height, width)
        Root mean squared difference over the bands between a pixel and its mixture, in the units of the scene.
    relative_error : float
        Norm of all differences over the norm of the scene.
    wavelengths : array or None
    wavelength_unit : str
    outliers : int array, shape (n_outliers, 2)
        Pixels that no other resembles, which could not be chosen.
    picture : uint8 array, shape (height, width, 3)
        The scene for people: red, green and blue bands if the wavelengths tell them, else the first principal
        component.
    method, normalize, sum_to_one
        How it was made; see `gsnmf.applications.unmix`.
    rank_choice : EndmemberCount or None
        How the number of endmembers was estimated, if it was not given.
    notes : tuple of str
        What was left out and what was decided, in words.
    source : str
        The file, if there was one.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.applications import unmix
    >>> spectra = np.random.default_rng(0).random((3, 12))
    >>> shares = np.random.default_rng(1).dirichlet([0.3] * 3, (10, 10))
    >>> result = unmix(shares @ spectra, 3, method="spa")
    >>> result.endmembers.shape, result.abundances.shape
    ((3, 12), (10, 10, 3))
    """

    endmembers: Doubles
    pixels: Indices
    members: tuple[Indices, ...]
    bands: Indices
    abundances: Floats
    residual_map: Floats
    relative_error: float
    wavelengths: Doubles | None
    wavelength_unit: str
    outliers: Indices
    picture: NDArray[np.uint8] = field(repr=False)
    method: str
    normalize: str
    sum_to_one: bool
    rank_choice: EndmemberCount | None
    notes: tuple[str, ...]
    source: str = ""

    def __repr__(self) -> str:
        height, width, r = self.abundances.shape
        n_bands = self.endmembers.shape[1]
        return (
            f"Unmixing({r} endmember{'s' * (r > 1)} of {height} x {width} pixels and {n_bands} "
            f"band{'s' * (n_bands > 1)}, "
            f"method={self.method!r}, relative_error={self.relative_error:.4f})"
        )

    @property
    def quality(self) -> float:
        """One minus the relative error."""
        return 1.0 - self.relative_error

    @property
    def valid(self) -> Flags:
        """Whether each pixel was used, shape (height, width)."""
        valid: Flags = np.isfinite(self.residual_map)
        return valid

    @property
    def angles(self) -> Doubles:
        """Spectral angles between the endmembers in degrees, shape (r, r)."""
        return spectral_angle(self.endmembers)

    @property
    def mean_abundances(self) -> Doubles:
        """The mean abundance of each endmember over all pixels that were used."""
        return np.asarray(self.abundances[self.valid].mean(axis=0, dtype=np.float64))

    @property
    def names(self) -> tuple[str, ...]:
        """What each endmember comes from, in words."""
        of_pixels = [f"{k} · pixel ({row}, {column})" for k, (row, column) in enumerate(self.pixels, 1)]
        of_bands = [f"{k} · {self.band_name(int(b))}" for k, b in enumerate(self.bands, 1 + len(self.pixels))]
        return (*of_pixels, *of_bands)

    def band_name(self, band: int) -> str:
        """A band with its wavelength, if that is known."""
        if self.wavelengths is None:
            return f"band {band}"
        return f"band {band}, {self.wavelengths[band]:.4g} {self.wavelength_unit}"

    def table(self) -> Table:
        """The endmembers with their places, mean abundances, and the angle to the nearest other one."""
        angles = self.angles + np.diag(np.full(len(self.endmembers), np.inf))
        means = self.mean_abundances
        dominant = self.dominant()
        rows = tuple(
            (
                name,
                f"{means[k]:.1%}",
                int(np.count_nonzero(dominant == k)),
                f"{angles[k].min():.1f}" if len(angles) > 1 else "–",
            )
            for k, name in enumerate(self.names)
        )
        header = ("endmember", "mean abundance", "pixels where it is largest", "degrees to the nearest other")
        return Table(header, rows, repr(self))

    def dominant(self) -> Indices:
        """The endmember with the largest abundance in each pixel, shape (height, width); -1 where there is none."""
        filled = np.where(self.valid[..., None], self.abundances, -1.0)
        return np.where(self.valid, filled.argmax(axis=2), -1).astype(np.intp)

    def plot_spectra(self, *, ax: Axes | None = None) -> Axes:
        """Draw the spectra over the wavelengths; see `gsnmf.plotting.plot_spectra`."""
        return plot_spectra(self, ax=ax)

    def plot_maps(self) -> Figure:
        """Draw the abundances as maps on one scale; see `gsnmf.plotting.plot_maps`."""
        return plot_maps(self)

    def plot_chosen_pixels(self, *, ax: Axes | None = None) -> Axes:
        """Mark the chosen pixels on a picture of the scene; see `gsnmf.plotting.plot_chosen_pixels`."""
        return plot_chosen_pixels(self, ax=ax)

    def report(self, path: str | Path, *, title: str = "", parameters: dict[str, str] | None = None) -> None:
        """Write a page of HTML with spectra, maps and residuals, which opens offline.

        Parameters
        ----------
        path : str or Path
        title : str
            What the scene is; by default the name of its file.
        parameters : dict of str to str, optional
            What else to say about how the result was made.
        """
        page = render(self, title, parameters or {})
        with atomic_write(path) as stream:
            stream.write(page.encode())

    def save(self, path: str | Path) -> None:
        """Write everything to an ``.npz`` file, which `Unmixing.load` and ``numpy.load`` read."""
        with atomic_write(path) as stream:
            self.write(stream)

    def write(self, stream: Any) -> None:
        """Write everything to an open file in the format of ``.npz``."""
        record = {name: getattr(self, name) for name in _WORDS} | {"format": FORMAT, "version": _VERSION}
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"members_{k}": own for k, own in enumerate(self.members)}
        if self.wavelengths is not None:
            arrays["wavelengths"] = self.wavelengths
        if self.rank_choice is not None:
            arrays |= {"rank_changes": self.rank_choice.changes, "rank_noise": self.rank_choice.noise}
            record |= {"rank": self.rank_choice.number, "signal_to_noise": self.rank_choice.signal_to_noise}
        np.savez_compressed(stream, **arrays, record=np.array(json.dumps(record)))

    @classmethod
    def load(cls, path: str | Path) -> Unmixing:
        """Read what `save` wrote."""
        arrays, record = read_saved(path, _KIND, _VERSION)
        with one_error(path, _KIND):
            n_members = sum(name.startswith("members_") for name in arrays)
            counted = (
                EndmemberCount(record["rank"], arrays["rank_changes"], arrays["rank_noise"], record["signal_to_noise"])
                if "rank" in record
                else None
            )
            return cls(
                **{name: arrays[name] for name in _ARRAYS},
                **{name: record[name] for name in _WORDS} | {"notes": tuple(record["notes"])},
                members=tuple(arrays[f"members_{k}"] for k in range(n_members)),
                wavelengths=arrays.get("wavelengths"),
                rank_choice=counted,
            )
