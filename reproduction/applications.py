"""Two applications that the paper names: a hyperspectral image and a piano recording.

Hyperspectral unmixing: pure pixels and pure bands of Jasper Ridge, compared with its known materials. The matrix is
bands x pixels. A chosen column is the spectrum of a pixel that shows one material alone; a chosen row is a band in
which one material alone is bright, an image by itself. Materials are matched with factors so that the sum of the
spectral angles is smallest.

Audio source separation: the three notes of a piano recording, "Mary had a little lamb" (E, D, C, D, E, E, E). The
matrix is the magnitude of the spectrogram, frequencies x moments. A chosen column is a moment at which one note sounds
alone, a chosen row a frequency that belongs to one note alone. To make a source audible, every entry of the spectrogram
is multiplied by the share of its factor in the approximation; its pitch is measured from that sound.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import signal
from scipy.io import wavfile
from scipy.optimize import linear_sum_assignment

from gsnmf.support.arrays import Floats
from reproduction.matrices import load
from reproduction.methods import LABELS, Outcome, run_method
from reproduction.pictures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, picture, show_image
from reproduction.report import Figure, Section, Table
from reproduction.study import Key, Measurement, Record, Results, Settings, Study
from reproduction.tables import missing_text

_UNMIXING = ("auto", "gspa", "spa-columns", "spa-rows", "snpa-columns", "nmf", "minimum-volume")
_SHOWN = ("auto", "spa-columns", "snpa-columns", "nmf")
_SPECTRUM_COLOURS = (BLUE, ORANGE, GREEN, VERMILION)

_SEPARATING = ("auto", "gspa", "spa-columns", "spa-rows", "nmf", "minimum-volume")
_RATE = 16000
_WINDOW, _HOP = 256, 128
_PITCHES = (200.0, 600.0)
"""Lowest and highest pitch searched for."""
_NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_PLAYED = ("C4", "D4", "E4")
_IN_TUNE = 35.0
"""Cents by which a pitch may miss its note; half a semitone is 50."""
_NOTE_COLOURS = {"C4": ORANGE, "D4": BLUE, "E4": VERMILION}


def spectral_angles(found: Floats, truth: Floats) -> Floats:
    """Angles in degrees between all columns of two matrices, true ones in rows."""
    unit = [part / np.maximum(np.linalg.norm(part, axis=0), 1e-300) for part in (truth, found)]
    return np.asarray(np.degrees(np.arccos(np.clip(unit[0].T @ unit[1], -1.0, 1.0))))


def _measure_scene(key: Key, settings: Settings) -> Measurement:
    name, method = key
    data = load(name, folder=settings.data)
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
            "chosen": _chosen_in_scene(outcome, int(factor), data.image_shape or (1, 1), data.extra["bands"]),
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


def _chosen_in_scene(outcome: Outcome, factor: int, shape: tuple[int, int], bands: Floats) -> str:
    if factor < outcome.columns.size:
        column, row = divmod(int(outcome.columns[factor]), shape[0])
        return f"pixel ({row}, {column})"
    if factor < outcome.columns.size + outcome.rows.size:
        return f"band {int(bands[int(outcome.rows[factor - outcome.columns.size])])}"
    return ""


def _present_scene(part: str, results: Results) -> Section:
    title = "Application: hyperspectral unmixing (Jasper Ridge)"
    if results.table.empty:
        return Section(title=title, text=missing_text(results.missing))
    methods = [method for method in _UNMIXING if method in set(results.table["method"])]
    materials = list(results.table["material"].unique())
    rows = []
    for method in methods:
        own = _of(results, method).set_index("material").loc[materials]
        cells = [f"{angle:.1f} {chosen}".strip() for angle, chosen in zip(own["angle"], own["chosen"], strict=True)]
        summary = [f"{own['angle'].mean():.2f}", f"{own['abundance_error'].mean():.3f}"]
        summary += [f"{own[name].iloc[0]:.2f}" for name in ("quality", "seconds")]
        rows.append([LABELS[method], *cells, *summary])
    shown = [method for method in _SHOWN if method in methods]
    _draw_maps(shown, materials, results)
    _draw_spectra(shown, materials, results)
    header = ("method", *materials, "mean angle", "abundance error", "quality %", "seconds")
    caption = (
        "Spectral angle to the true spectrum in degrees, with the pixel or band that was chosen; root mean square "
        "error of the abundances, in the scale of the true spectra."
    )
    maps = "Abundance of each material, from 0 (dark) to 1: true and found."
    spectra = "Spectra found (colour) and true (black), each scaled to length one."
    return Section(
        title=title,
        figures=[
            Figure("hyperspectral-maps", maps, of_data=True),
            Figure("hyperspectral-spectra", spectra, of_data=True),
        ],
        tables=[Table(header, rows, caption)],
    )


def _of(results: Results, method: str) -> pd.DataFrame:
    return results.table[results.table["method"] == method]


def _draw_maps(methods: list[str], materials: list[str], results: Results) -> None:
    size = (6.0, 1.5 * (len(methods) + 1))
    with picture(results.out, "hyperspectral-maps", size, nrows=len(methods) + 1, ncols=4) as (_, grid):
        truth = results.arrays["jasper", methods[0]]["H_true"]
        maps = {"truth": truth} | {LABELS[method]: results.arrays["jasper", method]["shares"] for method in methods}
        for row, (label, images) in zip(grid, maps.items(), strict=True):
            for axes, image, material in zip(row, images, materials, strict=True):
                show_image(axes, image.reshape(100, 100, order="F"), cmap="cividis", vmin=0, vmax=1)
                if label == "truth":
                    axes.set_title(material, loc="center")
            row[0].text(-0.08, 0.5, label, transform=row[0].transAxes, rotation=90, ha="right", va="center")


def _draw_spectra(methods: list[str], materials: list[str], results: Results) -> None:
    name, size = "hyperspectral-spectra", (7.0, 2.4)
    with picture(results.out, name, size, ncols=len(materials), sharex=True) as (figure, grid):
        for k, (axes, material) in enumerate(zip(grid[0], materials, strict=True)):
            for method, colour in zip(methods, _SPECTRUM_COLOURS, strict=False):
                arrays = results.arrays["jasper", method]
                spectrum = arrays["W"][:, k]
                length = np.linalg.norm(spectrum) or 1.0
                axes.plot(arrays["bands"], spectrum / length, color=colour, label=LABELS[method], linewidth=1.0)
            arrays = results.arrays["jasper", methods[0]]
            truth = arrays["W_true"][:, k]
            axes.plot(arrays["bands"], truth / np.linalg.norm(truth), color=BLACK, label="truth", linestyle="--")
            axes.set(title=material, xlabel="band", yticks=[])
            axes.spines["bottom"].set_color(GREY)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


def spectrogram() -> signal.ShortTimeFFT:
    """The transform whose magnitude is factorized."""
    return signal.ShortTimeFFT(signal.windows.hamming(_WINDOW), _HOP, _RATE)


def pitch(waveform: Floats) -> float:
    """The pitch of a sound in hertz, from the largest value of its autocorrelation.

    Examples
    --------
    >>> time = np.arange(8000) / 16000
    >>> round(pitch(np.sin(2 * np.pi * 330.0 * time) + 0.5 * np.sin(2 * np.pi * 660.0 * time)))
    330
    """
    correlation = signal.correlate(waveform, waveform, method="fft")[waveform.size - 1 :]
    low, high = (int(_RATE / frequency) for frequency in reversed(_PITCHES))
    lag = low + int(np.argmax(correlation[low:high]))
    before, at, after = correlation[lag - 1 : lag + 2]
    curvature = before - 2 * at + after
    return float(_RATE / (lag + (0.5 * (before - after) / curvature if curvature else 0.0)))


def nearest_note(frequency: float) -> tuple[str, float]:
    """Name of the nearest note of the tempered scale (A4 = 440 Hz), and by how many cents it is missed.

    Examples
    --------
    >>> nearest_note(440.0)
    ('A4', 0.0)
    """
    number = 69 + 12 * math.log2(frequency / 440.0)
    nearest = round(number)
    return f"{_NOTES[nearest % 12]}{nearest // 12 - 1}", 100 * (number - nearest)


def _measure_recording(key: Key, settings: Settings) -> Measurement:
    name, method = key
    data = load(name, folder=settings.data)
    waveform = np.asarray(data.extra["waveform"], dtype=float) / 32768
    transform = spectrogram()
    whole = transform.stft(waveform)
    magnitude = np.abs(whole)
    outcome = run_method(magnitude, method, data.rank)
    approximation = np.maximum(outcome.W @ outcome.H, 1e-12)
    sources = np.stack(
        [
            transform.istft(whole * (np.outer(outcome.W[:, k], outcome.H[k]) / approximation), k1=waveform.size)
            for k in range(outcome.W.shape[1])
        ]
    )
    energy = np.sum(sources**2, axis=1)
    records: list[Record] = []
    for k, source in enumerate(sources):
        frequency = pitch(source)
        note, cents = nearest_note(frequency)
        records.append(
            {
                "method": method,
                "factor": k,
                "chosen": _chosen_in_recording(outcome, k),
                "pitch": frequency,
                "note": note,
                "cents": cents,
                "energy": float(energy[k] / energy.sum()),
                "quality": 100 * (1 - outcome.relative_error),
                "seconds": outcome.seconds,
            }
        )
    arrays = {
        "sources": sources.astype(np.float32),
        "activations": outcome.H * np.linalg.norm(outcome.W, axis=0)[:, np.newaxis],
        "magnitude": magnitude.astype(np.float32),
        "columns": outcome.columns,
        "rows": outcome.rows,
    }
    return Measurement(records, arrays)


def _chosen_in_recording(outcome: Outcome, factor: int) -> str:
    if factor < outcome.columns.size:
        return f"moment {_seconds(int(outcome.columns[factor])):.2f} s"
    if factor < outcome.columns.size + outcome.rows.size:
        return f"frequency {_hertz(int(outcome.rows[factor - outcome.columns.size])):.0f} Hz"
    return ""


def _seconds(column: int) -> float:
    return (column - 1) * _HOP / _RATE  # the first window is centred half a hop before the start


def _hertz(row: int) -> float:
    return row * _RATE / _WINDOW


def _present_recording(part: str, results: Results) -> Section:
    title = "Application: audio source separation (a piano recording)"
    if results.table.empty:
        return Section(title=title, text=missing_text(results.missing))
    known = [method for method in _SEPARATING if method in set(results.table["method"])]
    rows = []
    for method in known:
        own = _of(results, method)
        found = sorted(set(own.loc[own["cents"].abs() <= _IN_TUNE, "note"]) & set(_PLAYED))
        factors = "; ".join(
            f"{r['chosen']} {r['pitch']:.1f} Hz = {r['note']} {r['cents']:+.0f}".strip() for r in own.to_dict("records")
        )
        notes = f"{len(found)} of 3" + (f": {', '.join(found)}" if found else "")
        summary = [f"{own[name].iloc[0]:.2f}" for name in ("quality", "seconds")]
        rows.append([LABELS[method], factors, notes, *summary])
    caption = (
        "The chosen moment or frequency of each source, the pitch of the separated source, and the nearest note with"
        f" the difference in cents. A note counts as found within {_IN_TUNE:.0f} cents; C4, D4 and E4 were played."
    )
    shown = "The spectrogram with the chosen moments and frequencies, and how loud each source is."
    figures, files = [], []
    if "auto" in known:
        _draw_recording("auto", results)
        figures, files = [Figure("audio", shown, of_data=True)], _write_sources("auto", results)
    table = Table(("method", "sources", "notes found", "quality %", "seconds"), rows, caption)
    return Section(title=title, figures=figures, tables=[table], files=files)


def _write_sources(method: str, results: Results) -> list[str]:
    folder = Path("audio")
    (results.out / folder).mkdir(parents=True, exist_ok=True)
    sources = results.arrays["piano", method]["sources"]
    loudest = float(np.abs(sources).max()) or 1.0
    files = []
    for k, (source, note) in enumerate(zip(sources, _of(results, method)["note"], strict=True), start=1):
        path = folder / f"{method}-{k}-{note.replace('#', 'sharp')}.wav"
        wavfile.write(results.out / path, _RATE, np.round(32767 * source / loudest).astype(np.int16))
        files.append(path.as_posix())
    return files


def _draw_recording(method: str, results: Results) -> None:
    arrays = results.arrays["piano", method]
    notes = _of(results, method)["note"]
    magnitude = np.asarray(arrays["magnitude"])
    times = np.array([_seconds(column) for column in range(magnitude.shape[1])])
    colours = [_NOTE_COLOURS.get(note, PURPLE) for note in notes]
    with picture(results.out, "audio", (7.0, 4.6), nrows=2, sharex=True, height_ratios=[1.3, 1]) as (_, grid):
        top, bottom = grid[:, 0]
        decibels = 20 * np.log10(np.maximum(magnitude / magnitude.max(), 1e-4))
        frequencies = [_hertz(row) / 1000 for row in range(magnitude.shape[0])]
        top.pcolormesh(times, frequencies, decibels, cmap="Greys", vmin=-70, vmax=0, rasterized=True)
        for k, column in enumerate(arrays["columns"]):
            top.axvline(_seconds(int(column)), color=colours[k], linewidth=2)
        for k, row in enumerate(arrays["rows"]):
            top.axhline(_hertz(int(row)) / 1000, color=colours[len(arrays["columns"]) + k], linewidth=2)
        top.set(ylim=(0, 3), ylabel="frequency (kHz)", title="chosen moments (vertical) and frequencies (horizontal)")
        top.grid(False)
        for activation, colour, note in zip(arrays["activations"], colours, notes, strict=True):
            bottom.plot(times, activation / arrays["activations"].max(), color=colour, label=note)
        bottom.set(xlabel="seconds", ylabel="loudness", xlim=(0, times[-1]), title="sources")
        bottom.spines["bottom"].set_color(GREY)
        bottom.legend(ncols=3, loc="upper right")


STUDIES = (
    Study(
        name="hyperspectral",
        parts={"hyperspectral": "application: pure pixels and bands of Jasper Ridge against its ground truth"},
        trials=lambda settings: [("jasper", method) for method in (_SHOWN if settings.quick else _UNMIXING)],
        measure=_measure_scene,
        present=_present_scene,
        datasets=lambda settings: ["jasper"],
    ),
    Study(
        name="audio",
        parts={"audio": "application: the notes of a piano recording, and its sources as WAV files"},
        trials=lambda settings: [("piano", method) for method in _SEPARATING[: 3 if settings.quick else None]],
        measure=_measure_recording,
        present=_present_recording,
        datasets=lambda settings: ["piano"],
    ),
)
