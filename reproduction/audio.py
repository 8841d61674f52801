"""Audio source separation: the three notes of a piano recording, "Mary had a little lamb" (E, D, C, D, E, E, E).

The matrix is the magnitude of the spectrogram, frequencies x moments. A chosen column is a moment at which one note
sounds alone, a chosen row a frequency that belongs to one note alone. To make a source audible, every entry of the
spectrogram is multiplied by the share of its factor in the approximation; its pitch is measured from that sound.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy import signal
from scipy.io import wavfile

from gsnmf.support.arrays import Floats
from reproduction._figures import BLUE, GREY, ORANGE, PURPLE, VERMILION, picture
from reproduction._methods import LABELS, Outcome, run_method
from reproduction._study import Figure, Key, Measurement, Record, Results, Section, Settings, Study, Table
from reproduction._tables import missing_text, not_at_hand
from reproduction.matrices import load, missing_data

_METHODS = ("auto", "gspa", "spa-columns", "spa-rows", "nmf", "minimum-volume")
_COLUMNS = ("method", "factor", "chosen", "pitch", "note", "cents", "energy", "quality", "seconds")

_RATE = 16000
_WINDOW, _HOP = 256, 128
_PITCHES = (200.0, 600.0)
"""Lowest and highest pitch searched for."""
_NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_PLAYED = ("C4", "D4", "E4")
_IN_TUNE = 35.0
"""Cents by which a pitch may miss its note; half a semitone is 50."""
_COLOURS = {"C4": ORANGE, "D4": BLUE, "E4": VERMILION}


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


def _trials(settings: Settings) -> list[Key]:
    if missing_data("piano", settings.data):
        return []
    return [(method,) for method in (_METHODS[:3] if settings.quick else _METHODS)]


def _measure(key: Key, settings: Settings) -> Measurement:
    method = str(key[0])
    data = load("piano", folder=settings.data)
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
        values = (method, k, _chosen(outcome, k), frequency, note, cents, float(energy[k] / energy.sum()))
        quality = 100 * (1 - outcome.relative_error), outcome.seconds
        records.append(dict(zip(_COLUMNS, values + quality, strict=True)))
    arrays = {
        "sources": sources.astype(np.float32),
        "activations": outcome.H * np.linalg.norm(outcome.W, axis=0)[:, np.newaxis],
        "magnitude": magnitude.astype(np.float32),
        "columns": outcome.columns,
        "rows": outcome.rows,
    }
    return Measurement(records, arrays)


def _chosen(outcome: Outcome, factor: int) -> str:
    if factor < outcome.columns.size:
        return f"moment {_seconds(int(outcome.columns[factor])):.2f} s"
    if factor < outcome.columns.size + outcome.rows.size:
        return f"frequency {_hertz(int(outcome.rows[factor - outcome.columns.size])):.0f} Hz"
    return ""


def _seconds(column: int) -> float:
    return (column - 1) * _HOP / _RATE  # the first window is centred half a hop before the start


def _hertz(row: int) -> float:
    return row * _RATE / _WINDOW


def _present(part: str, results: Results) -> Section:
    title = "Application: audio source separation (a piano recording)"
    if not results.records:
        return Section(title=title, text=missing_text(results.missing))
    known = {str(record["method"]) for record in results.records}
    rows = []
    for method in [m for m in _METHODS if m in known]:
        own = [record for record in results.records if record["method"] == method]
        found = {str(r["note"]) for r in own if abs(float(r["cents"] or 0.0)) <= _IN_TUNE} & set(_PLAYED)
        factors = "; ".join(
            f"{r['chosen']} {float(r['pitch'] or 0.0):.1f} Hz = {r['note']} {float(r['cents'] or 0.0):+.0f}".strip()
            for r in own
        )
        first = own[0]
        notes = f"{len(found)} of 3" + (f": {', '.join(sorted(found))}" if found else "")
        quality, seconds = float(first["quality"] or 0.0), float(first["seconds"] or 0.0)
        rows.append([LABELS[method], factors, notes, f"{quality:.2f}", f"{seconds:.2f}"])
    files = _write_sources("auto", results) if "auto" in known else []
    if "auto" in known:
        _draw("auto", results)
    caption = (
        "The chosen moment or frequency of each source, the pitch of the separated source, and the nearest note with"
        f" the difference in cents. A note counts as found within {_IN_TUNE:.0f} cents; C4, D4 and E4 were played."
    )
    return Section(
        title=title,
        figures=[
            Figure(
                "audio",
                "The spectrogram with the chosen moments and frequencies, and how loud each source is.",
                of_data=True,
            )
        ]
        if "auto" in known
        else [],
        tables=[Table(("method", "sources", "notes found", "quality %", "seconds"), rows, caption)],
        files=files,
    )


def _write_sources(method: str, results: Results) -> list[str]:
    folder = Path("audio")
    (results.out / folder).mkdir(parents=True, exist_ok=True)
    sources = results.arrays((method,))["sources"]
    loudest = float(np.abs(sources).max()) or 1.0
    own = [record for record in results.records if record["method"] == method]
    files = []
    for source, record in zip(sources, own, strict=True):
        path = folder / f"{method}-{int(record['factor'] or 0) + 1}-{str(record['note']).replace('#', 'sharp')}.wav"
        wavfile.write(results.out / path, _RATE, np.round(32767 * source / loudest).astype(np.int16))
        files.append(path.as_posix())
    return files


def _draw(method: str, results: Results) -> None:
    arrays = results.arrays((method,))
    own = [record for record in results.records if record["method"] == method]
    magnitude = np.asarray(arrays["magnitude"])
    times = np.array([_seconds(column) for column in range(magnitude.shape[1])])
    colours = [_COLOURS.get(str(record["note"]), PURPLE) for record in own]
    with picture(results.out / "figures", "audio", (7.0, 4.6), nrows=2, sharex=True, height_ratios=[1.3, 1]) as (
        _,
        grid,
    ):
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
        for activation, colour, record in zip(arrays["activations"], colours, own, strict=True):
            bottom.plot(times, activation / arrays["activations"].max(), color=colour, label=str(record["note"]))
        bottom.set(xlabel="seconds", ylabel="loudness", xlim=(0, times[-1]), title="sources")
        bottom.spines["bottom"].set_color(GREY)
        bottom.legend(ncols=3, loc="upper right")


STUDIES = (
    Study(
        name="audio",
        parts={"audio": "application: the notes of a piano recording, and its sources as WAV files"},
        columns=_COLUMNS,
        text=("method", "chosen", "note"),
        trials=_trials,
        measure=_measure,
        present=_present,
        missing=lambda settings: not_at_hand(["piano"], settings),
    ),
)
