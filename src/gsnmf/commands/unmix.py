"""``gsnmf unmix``: a spectral image in, endmembers, maps and a report out."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from gsnmf.applications import Unmixing
from gsnmf.applications.unmixing.endmember_extraction import ENDMEMBER_METHODS
from gsnmf.applications.unmixing.scene_files import ENDINGS, read_cube, read_mask, read_wavelengths
from gsnmf.applications.unmixing.scene_report import render_scene
from gsnmf.applications.unmixing.unmix import MAX_PIXELS
from gsnmf.applications.unmixing.unmix import unmix as unmix_scene
from gsnmf.commands.options import AsJson, Quiet, parse_rank
from gsnmf.commands.output import check_folder, json_text, print_found, print_table, provenance, stages, write_files

_FILES = ("result.npz", "spectra.csv", "summary.json", "report.html")

Method = StrEnum("Method", {name.replace("-", "_"): name for name in ENDMEMBER_METHODS})  # type: ignore[misc]
_AUTO = Method("auto")
_RANDOM = ("vca", "ppi")
"""Methods that draw random numbers on every scene."""


class Normalize(StrEnum):
    """What pixels are divided by for the choice."""

    none = "none"
    sum = "sum"
    length = "length"


HELP = f"""Find the materials of a spectral image, how much of each is in every pixel, and write a report.

FILE is an image with height x width x bands:

\b
  {" ".join(ENDINGS)}

An ENVI image is named by its header, .hdr, or by the binary file beside it. The output folder gets report.html (open
it in a browser), spectra.csv, summary.json and result.npz (gsnmf.applications.Unmixing.load reads it).

Examples:

\b
  gsnmf unmix scene.npy --endmembers 4 --wavelengths nanometres.txt
  gsnmf unmix flight.hdr --endmembers 6 --method vca --seed 1
  gsnmf unmix scene.mat --key cube --endmembers 2-12 --no-sum-to-one
"""

EPILOG = "\n".join(
    ("\b", "Methods:", *(f"  {method.name:<19} {method.title}" for method in ENDMEMBER_METHODS.values()))
)


def unmix(
    file: Annotated[Path, typer.Argument(help="Spectral image.", readable=False)],
    rank: Annotated[
        str,
        typer.Option(
            "--rank", "--endmembers", "-r", metavar="R|A-B|auto", help="Number of materials; or estimate it: auto."
        ),
    ],
    wavelengths: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Wavelengths of the bands, one per line.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Of the wavelengths: nm or um; guessed by default.")] = None,
    mask: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .npy file, height x width, true where pixels are used.")
    ] = None,
    no_data: Annotated[
        float | None, typer.Option(help="Number that stands for a missing value; by default what the file says.")
    ] = None,
    bands_axis: Annotated[
        int | None, typer.Option(min=0, max=2, help="Which dimension are the bands, from 0; by default the last.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Array of an .npz or .mat file, or variable of .nc.")] = None,
    method: Annotated[Method, typer.Option(help="How to choose; see below.", metavar="NAME")] = _AUTO,
    normalize: Annotated[Normalize, typer.Option(help="What pixels are divided by for the choice.")] = Normalize.none,
    averaged: Annotated[
        int | None, typer.Option(min=1, help="Similar pixels whose mean is an endmember; by default up to 20.")
    ] = None,
    sum_to_one: Annotated[
        bool, typer.Option("--sum-to-one/--no-sum-to-one", help="Whether the abundances of a pixel sum to one.")
    ] = True,
    pure_bands: Annotated[
        bool, typer.Option("--pure-bands", help="Choose bands in which a material is alone, too.")
    ] = False,
    keep_outliers: Annotated[
        bool, typer.Option("--keep-outliers", help="Pixels that no other resembles can be endmembers.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of random numbers, for samples, vca and ppi; 0 by default.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where to write; by default NAME-unmix.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read, unmix, write and print; `HELP` says the rest."""
    if unit is not None and wavelengths is None and file.suffix.lower() not in (".hdr", ".npz", ".mat", ".nc", ".zarr"):
        raise typer.BadParameter("--unit has no effect without --wavelengths on a file that brings none.")
    number = parse_rank(rank, pairs=False)
    folder = out or Path(f"{file.resolve().stem}-unmix")
    check_folder(folder, _FILES)
    started = time.perf_counter()
    with stages(quiet) as stage:
        stage("Opening the scene")
        cube = read_cube(
            file,
            key=key,
            wavelengths=None if wavelengths is None else read_wavelengths(wavelengths),
            wavelength_unit=unit,
            bands_axis=bands_axis,
            no_data=no_data,
        )
        if seed is not None and method.value not in _RANDOM and cube.n_pixels <= MAX_PIXELS:
            raise typer.BadParameter(f"--seed has no effect with --method {method.value} on {cube.n_pixels} pixels.")
        stage("Choosing endmembers and fitting abundances")
        result = unmix_scene(
            cube,
            number,
            mask=None if mask is None else read_mask(mask),
            method=method.value,
            normalize=normalize.value,
            averaged=averaged,
            sum_to_one=sum_to_one,
            pure_bands=pure_bands,
            outliers="keep" if keep_outliers else "ignore",
            random_state=0 if seed is None else seed,
        )
        stage("Writing the report")
        short = summary(result)
        write_files(
            folder,
            {
                "result.npz": result.save,
                "spectra.csv": _spectra_table(result),
                "summary.json": json_text(short),
                "report.html": render_scene(result, "", provenance(file, started)),
            },
        )
    print_found(
        folder / "report.html", short, lambda console: _print_scene(console, result), as_json=as_json, quiet=quiet
    )


def summary(result: Unmixing) -> dict[str, Any]:
    """The result in short, for machines: what JSON can hold."""
    height, width, r = result.abundances.shape
    return {
        "source": result.source,
        "shape": [height, width, result.endmembers.shape[1]],
        "n_endmembers": r,
        "names": list(result.names),
        "pixels": result.pixels.tolist(),
        "bands": result.bands.tolist(),
        "mean_abundances": result.mean_abundances.tolist(),
        "angles": result.angles.tolist(),
        "relative_error": result.relative_error,
        "quality": result.quality,
        "method": result.method,
        "sum_to_one": result.sum_to_one,
        "notes": list(result.notes),
    }


def _spectra_table(result: Unmixing) -> str:
    """Bands down and endmembers across, as comma-separated values; empty cells in bands that were left out."""
    first = "band" if result.wavelengths is None else f"wavelength_{result.wavelength_unit}"
    names = [f"endmember_{k}" for k in range(1, len(result.endmembers) + 1)]
    lines = [",".join([first, *names])]
    positions = np.arange(result.endmembers.shape[1]) if result.wavelengths is None else result.wavelengths
    for position, values in zip(positions, result.endmembers.T, strict=True):
        cells = (f"{value:.9g}" if np.isfinite(value) else "" for value in values)
        lines.append(",".join([f"{position:.9g}", *cells]))
    return "\n".join(lines) + "\n"


def _print_scene(console: Console, result: Unmixing) -> None:
    found = result.table()
    rows = [[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in found.rows]
    print_table(console, found.header, rows, found.caption)
    for note in result.notes:
        console.print(f"{escape(note)}.")
