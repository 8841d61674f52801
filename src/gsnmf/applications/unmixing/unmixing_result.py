"""What unmixing finds: endmembers, abundances, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gsnmf.applications.unmixing.scene_plots import plot_chosen_pixels, plot_maps, plot_spectra
from gsnmf.applications.unmixing.scene_report import render_scene
from gsnmf.applications.unmixing.signal_subspace import EndmemberCount
from gsnmf.applications.unmixing.spectral_distances import spectral_angle
from gsnmf.io import load_record, save_record
from gsnmf.records import Record
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.formatting import Table, counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMAT = "gsnmf unmixing"
_SUM_TOLERANCE = 1e-4
"""How far sums of abundances in single precision may be from one."""


@dataclass(frozen=True, repr=False, eq=False)
class Unmixing(Record):
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
    residual_map : array, shape (height, width)
        Root mean squared difference over the bands between a pixel and its mixture, in the units of the scene.
    relative_error : float
        Norm of all differences over the norm of the scene.
    wavelengths : array or None
    wavelength_unit : str
    outliers : int array, shape (n_outliers, 2)
        Pixels that no other resembles, which could not be chosen.
    picture : uint8 array, shape (height, width, 3)
        The scene for people: red, green and blue bands if the wavelengths are known, else the first principal
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
    >>> result.to_frame().shape
    (3, 4)
    """

    endmembers: Doubles = field(metadata={"nan": True})
    pixels: Indices
    members: tuple[Indices, ...]
    bands: Indices
    abundances: Floats = field(metadata={"nan": True})
    residual_map: Floats = field(metadata={"nan": True})
    relative_error: float
    wavelengths: Doubles | None
    wavelength_unit: str
    outliers: Indices
    picture: NDArray[np.uint8]
    method: str
    normalize: str
    sum_to_one: bool
    rank_choice: EndmemberCount | None
    notes: tuple[str, ...]
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse fields that contradict each other, as those of a damaged or forged file may."""
        height, width, r = (*np.shape(self.abundances), 0, 0, 0)[:3]
        n_bands, n_pixels = np.shape(self.endmembers)[-1], len(self.pixels)
        shapes = {
            "endmembers": (r, n_bands),
            "abundances": (height, width, r),
            "residual_map": (height, width),
            "picture": (height, width, 3),
            "pixels": (n_pixels, 2),
            "bands": (r - n_pixels,),
            "outliers": (len(self.outliers), 2),
        }
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} must have shape {shape}; got {np.shape(getattr(self, name))}.")
        valid, left_out = self.valid, np.isnan(self.endmembers).all(axis=0)
        places = np.concatenate([self.pixels, self.outliers, *self.members])
        sums = self.abundances[valid].sum(axis=1, dtype=np.float64)
        for name, right in (
            ("abundances", bool(valid.any()) and np.isnan(self.abundances[~valid]).all()),
            ("abundances", bool((self.abundances[valid] >= 0).all()) and np.isfinite(sums).all()),
            ("abundances", not self.sum_to_one or np.abs(sums - 1.0).max(initial=0.0) <= _SUM_TOLERANCE),
            ("residual_map", np.all(self.residual_map[valid] >= 0) and np.isnan(self.residual_map[~valid]).all()),
            ("endmembers", not left_out.all() and np.isfinite(self.endmembers[:, ~left_out]).all()),
            ("members", len(self.members) == n_pixels and all(map(len, self.members))),
            ("pixels, outliers or members", np.all((places >= 0) & (places < (height, width)))),
            ("bands", np.all((self.bands >= 0) & (self.bands < n_bands))),
            ("wavelengths", self.wavelengths is None or self.wavelengths.shape == (n_bands,)),
            ("relative_error", 0.0 <= self.relative_error < np.inf),
        ):
            if not right:
                raise ValueError(f"{name} must be possible values for {r} endmembers of {height} x {width} pixels.")

    def __repr__(self) -> str:
        height, width, r = self.abundances.shape
        return (
            f"Unmixing({counted(r, 'endmember')} of {height} x {width} pixels and "
            f"{counted(self.endmembers.shape[1], 'band')}, method={self.method!r}, "
            f"relative_error={self.relative_error:.4f})"
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

    @property
    def band_axis(self) -> tuple[Doubles, str]:
        """Wavelengths or numbers of the bands, and the label of their axis."""
        if self.wavelengths is None:
            return np.arange(self.endmembers.shape[1], dtype=np.float64), "band"
        return self.wavelengths, f"wavelength [{self.wavelength_unit}]"

    def band_name(self, band: int) -> str:
        """A band with its wavelength, if that is known."""
        if self.wavelengths is None:
            return f"band {band}"
        return f"band {band}, {self.wavelengths[band]:.4g} {self.wavelength_unit}"

    def dominant(self) -> Indices:
        """The endmember with the largest abundance in each pixel, shape (height, width); -1 where there is none."""
        filled = np.where(self.valid[..., None], self.abundances, -1.0)
        return np.where(self.valid, filled.argmax(axis=2), -1).astype(np.intp)

    def table(self) -> Table:
        """The endmembers with their places, mean abundances, and the angle to the nearest other one in degrees."""
        angles = self.angles + np.diag(np.full(len(self.endmembers), np.inf))
        means, dominant = self.mean_abundances, self.dominant()
        rows = tuple(
            (
                name,
                float(means[k]),
                int(np.count_nonzero(dominant == k)),
                float(angles[k].min()) if len(angles) > 1 else np.nan,
            )
            for k, name in enumerate(self.names)
        )
        header = ("endmember", "mean abundance", "pixels where it is largest", "degrees to the nearest other")
        return Table(header, rows, repr(self))

    def to_frame(self) -> pd.DataFrame:
        """The `table` as a pandas DataFrame."""
        return self.table().to_frame()

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

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
        page = render_scene(self, title, parameters or {})
        with atomic_write(path) as stream:
            stream.write(page.encode())

    def save(self, path: str | Path) -> None:
        """Write everything to an ``.npz`` file, which `Unmixing.load` and ``numpy.load`` read."""
        save_record(self, path, format=FORMAT)

    @classmethod
    def load(cls, path: str | Path) -> Unmixing:
        """Read what `save` wrote; a file that contradicts itself is an error."""
        return load_record(cls, path, format=FORMAT, kind="a result of unmixing")
