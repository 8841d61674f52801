"""Hyperspectral unmixing: pure pixels and pure bands of Jasper Ridge, compared with its known materials.

The matrix is bands x pixels. A chosen column is the spectrum of a pixel that shows one material alone; a chosen row is
a band in which one material alone is bright, an image by itself. Materials are matched with factors so that the sum of
the spectral angles is smallest.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from gsnmf.support.arrays import Floats
from reproduction._figures import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, picture, show_image
from reproduction._methods import LABELS, Outcome, run_method
from reproduction._study import Figure, Key, Measurement, Record, Results, Section, Settings, Study, Table
from reproduction._tables import missing_text, not_at_hand
from reproduction.matrices import load, missing_data

_METHODS = ("auto", "gspa", "spa-columns", "spa-rows", "snpa-columns", "nmf", "minimum-volume")
_SHOWN = ("auto", "spa-columns", "snpa-columns", "nmf")
_COLUMNS = ("method", "material", "angle", "abundance_error", "chosen", "quality", "seconds")
_COLOURS = (BLUE, ORANGE, GREEN, VERMILION)


def spectral_angles(found: Floats, truth: Floats) -> Floats:
    """Angles in degrees between all columns of two matrices, true ones in rows."""
    unit = [part / np.maximum(np.linalg.norm(part, axis=0), 1e-300) for part in (truth, found)]
    return np.asarray(np.degrees(np.arccos(np.clip(unit[0].T @ unit[1], -1.0, 1.0))))


def _trials(settings: Settings) -> list[Key]:
    if missing_data("jasper", settings.data):
        return []
    return [(method,) for method in (_SHOWN if settings.quick else _METHODS)]


def _measure(key: Key, settings: Settings) -> Measurement:
    method = str(key[0])
    data = load("jasper", folder=settings.data)
    truth_W, truth_H = (np.asarray(data.extra[name], dtype=float) for name in ("W_true", "H_true"))
    outcome = run_method(np.asarray(data.matrix), method, data.rank)
    angles = spectral_angles(outcome.W, truth_W)
    materials, factors = linear_sum_assignment(angles)
    W, H = outcome.W[:, factors], outcome.H[factors]
    shares = H * _lengths(W, truth_W[:, materials])[:, np.newaxis] / _unit(np.asarray(data.matrix), truth_W, truth_H)
    names = [str(name).partition("-")[2] for name in data.extra["names"]]
    records: list[Record] = [
        {
            "method": method,
            "material": names[material],
            "angle": float(angles[material, factor]),
            "abundance_error": float(np.sqrt(np.mean((shares[k] - truth_H[material]) ** 2))),
            "chosen": _chosen(outcome, int(factor), data.image_shape or (1, 1), data.extra["bands"]),
            "quality": 100 * (1 - outcome.relative_error),
            "seconds": outcome.seconds,
        }
        for k, (material, factor) in enumerate(zip(materials, factors, strict=True))
    ]
    return Measurement(
        records,
        {"W": W, "shares": shares, "W_true": truth_W, "H_true": truth_H, "bands": data.extra["bands"]},
    )


def _lengths(found: Floats, truth: Floats) -> Floats:
    """Least-squares factors that scale the true spectra to the spectra found."""
    return np.asarray(np.sum(found * truth, axis=0) / np.sum(truth**2, axis=0))


def _unit(matrix: Floats, truth_W: Floats, truth_H: Floats) -> float:
    """The number by which the true factors have to be multiplied to give the matrix."""
    product = truth_W @ truth_H
    return float(np.vdot(product, matrix) / np.vdot(product, product))


def _chosen(outcome: Outcome, factor: int, shape: tuple[int, int], bands: Floats) -> str:
    if factor < outcome.columns.size:
        column, row = divmod(int(outcome.columns[factor]), shape[0])
        return f"pixel ({row}, {column})"
    if factor < outcome.columns.size + outcome.rows.size:
        return f"band {int(bands[int(outcome.rows[factor - outcome.columns.size])])}"
    return ""


def _present(part: str, results: Results) -> Section:
    title = "Application: hyperspectral unmixing (Jasper Ridge)"
    if not results.records:
        return Section(title=title, text=missing_text(results.missing))
    known = {str(record["method"]) for record in results.records}
    methods = [method for method in _METHODS if method in known]
    materials = list(dict.fromkeys(str(record["material"]) for record in results.records))
    table = []
    for method in methods:
        own = {str(r["material"]): r for r in results.records if r["method"] == method}
        angles = [float(own[material]["angle"] or 0.0) for material in materials]
        errors = [float(own[material]["abundance_error"] or 0.0) for material in materials]
        first = own[materials[0]]
        cells = [f"{angle:.1f} {own[m]['chosen']}".strip() for m, angle in zip(materials, angles, strict=True)]
        quality, seconds = float(first["quality"] or 0.0), float(first["seconds"] or 0.0)
        summary = [f"{np.mean(angles):.2f}", f"{np.mean(errors):.3f}", f"{quality:.2f}", f"{seconds:.2f}"]
        table.append([LABELS[method], *cells, *summary])
    shown = [method for method in _SHOWN if method in known]
    _draw_maps(shown, materials, results)
    _draw_spectra(shown, materials, results)
    header = ("method", *materials, "mean angle", "abundance error", "quality %", "seconds")
    caption = (
        "Spectral angle to the true spectrum in degrees, with the pixel or band that was chosen; root mean square "
        "error of the abundances, in the scale of the true spectra."
    )
    return Section(
        title=title,
        figures=[
            Figure(
                "hyperspectral-maps",
                "Abundance of each material, from 0 (dark) to 1: true and found.",
                of_data=True,
            ),
            Figure(
                "hyperspectral-spectra",
                "Spectra found (colour) and true (black), each scaled to length one.",
                of_data=True,
            ),
        ],
        tables=[Table(header, table, caption)],
    )


def _draw_maps(methods: list[str], materials: list[str], results: Results) -> None:
    size = (6.0, 1.5 * (len(methods) + 1))
    with picture(results.out / "figures", "hyperspectral-maps", size, nrows=len(methods) + 1, ncols=4) as (_, grid):
        truth = results.arrays((methods[0],))["H_true"]
        maps = {"truth": truth} | {LABELS[method]: results.arrays((method,))["shares"] for method in methods}
        for row, (label, images) in zip(grid, maps.items(), strict=True):
            for axes, image, material in zip(row, images, materials, strict=True):
                show_image(axes, image.reshape(100, 100, order="F"), cmap="cividis", vmin=0, vmax=1)
                if label == "truth":
                    axes.set_title(material, loc="center")
            row[0].text(-0.08, 0.5, label, transform=row[0].transAxes, rotation=90, ha="right", va="center")


def _draw_spectra(methods: list[str], materials: list[str], results: Results) -> None:
    with picture(results.out / "figures", "hyperspectral-spectra", (7.0, 2.4), ncols=len(materials), sharex=True) as (
        figure,
        grid,
    ):
        for k, (axes, material) in enumerate(zip(grid[0], materials, strict=True)):
            for method, colour in zip(methods, _COLOURS, strict=False):
                arrays = results.arrays((method,))
                spectrum = arrays["W"][:, k]
                length = np.linalg.norm(spectrum) or 1.0
                axes.plot(arrays["bands"], spectrum / length, color=colour, label=LABELS[method], linewidth=1.0)
            arrays = results.arrays((methods[0],))
            truth = arrays["W_true"][:, k]
            axes.plot(arrays["bands"], truth / np.linalg.norm(truth), color=BLACK, label="truth", linestyle="--")
            axes.set(title=material, xlabel="band", yticks=[])
            axes.spines["bottom"].set_color(GREY)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


STUDIES = (
    Study(
        name="hyperspectral",
        parts={"hyperspectral": "application: pure pixels and bands of Jasper Ridge against its ground truth"},
        columns=_COLUMNS,
        text=("method", "material", "chosen"),
        trials=_trials,
        measure=_measure,
        present=_present,
        missing=lambda settings: not_at_hand(["jasper"], settings),
    ),
)
