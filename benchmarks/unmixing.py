"""Unmixing: spectral angles and abundance errors next to the field's methods; speed of FCLS; a million pixels.

Scenes are Jasper Ridge with its ground truth, if ``GSNMF_DATA`` names a folder that has it, and planted ones: with pure
pixels, without, with much noise, and with outliers and dead pixels. The default settings of `gsnmf.applications.unmix`
are used on all of them unchanged. Times are processor time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks._measuring import main, megabytes, print_table, resident_bytes, seconds, timed, yes
from gsnmf.applications.unmixing.abundances import fcls
from gsnmf.applications.unmixing.spectral_distances import match_spectra
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene
from gsnmf.applications.unmixing.unmix import unmix
from gsnmf.nmf import minimum_volume
from gsnmf.support.arrays import Doubles
from reproduction.matrices import load, missing_data

_SEEDS = 10
"""Seeds with which VCA is run; the mean of its results counts."""


@dataclass(frozen=True)
class _Scene:
    name: str
    cube: Doubles
    endmembers: Doubles
    abundances: Doubles

    @property
    def pixels(self) -> Doubles:
        """Nonzero pixels, one per row."""
        flat = self.cube.reshape(-1, self.cube.shape[2])
        return flat[flat.any(axis=1)]


_Contestant = Callable[[_Scene, int], Doubles]
"""From a scene and a seed to endmembers, one per row."""


def run(quick: bool) -> None:
    """Measure and print everything; ``quick`` takes small planted scenes, two seeds, and no million pixels."""
    scenes = _scenes(quick)
    header = ("method", *(scene.name for scene in scenes), "mean", f"abundance error, {scenes[0].name}", "time")
    title = "Mean spectral angle to the true endmembers in degrees"
    print_table(title, header, _qualities(scenes, 2 if quick else _SEEDS))
    n_pixels = 2_000 if quick else 100_000
    title = f"Abundances of {n_pixels} pixels, 198 bands, exact on the simplex"
    header = ("endmembers", "fcls", "loop over scipy.optimize.nnls", "ratio", "target", "met", "largest difference")
    print_table(title, header, _abundance_times(n_pixels))
    if not quick:
        print_table(
            "1 000 000 pixels x 200 bands, float32, memory-mapped",
            ("endmembers", "processor time", "peak memory", "mean angle", "target", "met"),
            [_million()],
        )


def _scenes(quick: bool) -> list[_Scene]:
    shape = (20, 20) if quick else (60, 60)
    settings: dict[str, dict[str, Any]] = {
        "pure pixels": {"concentration": 0.3},
        "no pure pixel": {"concentration": 0.5, "purest": 0.85},
        "noisy": {"noise": 0.15},
        "damaged": {"n_outliers": 12, "n_dead": 12},
    }
    scenes = []
    if not (quick or missing_data("jasper")):
        scenes.append(_jasper())
    for seed, (name, setting) in enumerate(settings.items()):
        planted = planted_scene(np.random.default_rng(seed), shape=shape, **setting)
        scenes.append(_Scene(name, planted.cube, planted.endmembers, planted.abundances))
    return scenes


def _jasper() -> _Scene:
    jasper = load("jasper")
    matrix = np.asarray(jasper.matrix)
    cube = np.moveaxis(matrix.reshape(len(matrix), 100, 100, order="F"), 0, 2)
    maps = np.moveaxis(jasper.extra["H_true"].reshape(-1, 100, 100, order="F"), 0, 2)
    return _Scene("Jasper", np.ascontiguousarray(cube), jasper.extra["W_true"].T, maps)


def _qualities(scenes: list[_Scene], n_seeds: int) -> Iterator[list[str]]:
    for name, (contestant, random) in _contestants().items():
        angles, errors, spent = [], [], 0.0
        failure = ""
        for scene in scenes:
            runs = []
            for seed in range(n_seeds if random else 1):
                try:
                    took, found = timed(partial(contestant, scene, seed), processor=True)
                except ModuleNotFoundError as error:
                    failure = f"{error.name} is not installed"
                    break
                spent += took / (n_seeds if random else 1)
                runs.append(_measure(scene, found))
            if failure:
                break
            angles.append(float(np.mean([angle for angle, _ in runs])))
            errors.append(float(np.mean([error for _, error in runs])))
        if failure:
            yield [name, failure, *[""] * (len(scenes) + 2)]
            continue
        shown = [f"{angle:.1f}" for angle in angles]
        yield [name, *shown, f"{np.mean(angles):.1f}", f"{errors[0]:.3f}", seconds(spent)]


def _measure(scene: _Scene, found: Doubles) -> tuple[float, float]:
    """Mean angle, and root mean squared error of the abundances that FCLS finds with the endmembers."""
    order, degrees = match_spectra(found, scene.endmembers)
    flat = scene.cube.reshape(-1, scene.cube.shape[2])
    true = scene.abundances.reshape(len(flat), -1)
    used = flat.any(axis=1)
    difference = fcls(flat[used], found)[:, order] - true[used]
    return float(degrees.mean()), float(np.sqrt(np.mean(np.square(difference))))


def _contestants() -> dict[str, tuple[_Contestant, bool]]:
    """By name: a contestant, and whether it depends on random numbers."""
    found: dict[str, tuple[_Contestant, bool]] = {"gsnmf unmix": (_by_unmix("auto"), False)}
    found |= {"VCA": (_by_unmix("vca"), True), "PPI": (_by_unmix("ppi"), True)}
    for name in ("n-findr", "spa", "smooth-spa", "preconditioned-spa", "snpa", "xray"):
        found[name.upper()] = _by_unmix(name), False
    found["NMF (scikit-learn)"] = _nmf, False
    found["minimum-volume NMF"] = _minimum_volume, False
    found["scikit-matter FPS"] = _skmatter, False
    found["archetypes"] = _archetypes, False
    return found


def _by_unmix(method: str) -> _Contestant:
    """The field's methods see all pixels, as in their papers, which do not treat outliers."""
    outliers = "ignore" if method == "auto" else "keep"

    def contestant(scene: _Scene, seed: int) -> Doubles:
        result = unmix(scene.cube, len(scene.endmembers), method=method, outliers=outliers, random_state=seed)  # type: ignore[arg-type]
        return result.endmembers

    return contestant


def _nmf(scene: _Scene, seed: int) -> Doubles:
    from sklearn.decomposition import NMF

    model = NMF(len(scene.endmembers), init="nndsvda", max_iter=500, random_state=seed).fit(scene.pixels)
    return _in_units(scene, np.asarray(model.components_))


def _minimum_volume(scene: _Scene, seed: int) -> Doubles:
    result = minimum_volume(scene.pixels.T, len(scene.endmembers), sum_to_one=True, random_state=seed)
    return np.asarray(result.W.T, dtype=np.float64)


def _skmatter(scene: _Scene, seed: int) -> Doubles:
    FPS = import_module("skmatter.sample_selection").FPS
    pixels = scene.pixels
    start = int(np.argmax(np.linalg.norm(pixels, axis=1)))
    chosen = FPS(n_to_select=len(scene.endmembers), initialize=start).fit(pixels).selected_idx_
    return np.asarray(pixels[chosen])


def _archetypes(scene: _Scene, seed: int) -> Doubles:
    AA = import_module("archetypes").AA
    model = AA(n_archetypes=len(scene.endmembers), max_iter=100, random_state=seed).fit(scene.pixels)
    return np.asarray(np.maximum(model.archetypes_, 0.0), dtype=np.float64)


def _in_units(scene: _Scene, spectra: Doubles) -> Doubles:
    """Factors of NMF can have any scale; each is scaled to the length of the pixels most like it."""
    pixels = scene.pixels
    unit = spectra / np.maximum(np.linalg.norm(spectra, axis=1, keepdims=True), 1e-300)
    lengths = np.linalg.norm(pixels, axis=1)
    nearest = np.argsort(-(pixels / lengths[:, None]) @ unit.T, axis=0)[:20]
    return np.asarray(unit * np.median(lengths[nearest], axis=0)[:, None])


def _abundance_times(n_pixels: int) -> Iterator[list[str]]:
    for r in (4, 8, 16):
        rng = np.random.default_rng(r)
        endmembers = rng.random((r, 198))
        pixels = rng.dirichlet(np.full(r, 0.5), n_pixels) @ endmembers + 0.02 * rng.standard_normal((n_pixels, 198))
        ours, found = _best(fcls, pixels, endmembers)
        theirs, expected = _best(_nnls_loop, pixels, endmembers)
        ratio = theirs / ours
        difference = float(np.abs(found - expected).max())
        yield [
            str(r), seconds(ours), seconds(theirs), f"{ratio:.1f}x", "10x", yes(ratio >= 10),
            f"{difference:.1e}",
        ]  # fmt: skip


def _best(solve: Callable[..., Doubles], pixels: Doubles, endmembers: Doubles) -> tuple[float, Doubles]:
    """The faster of two runs in processor time, and what it finds."""
    runs = [timed(partial(solve, pixels, endmembers), processor=True) for _ in range(2)]
    return min(runs, key=itemgetter(0))


def _nnls_loop(pixels: Doubles, endmembers: Doubles) -> Doubles:
    """The usual way: a heavy row of ones below the spectra, and one call per pixel."""
    heavy = 1e3 * float(np.abs(endmembers).max())
    matrix = np.vstack([endmembers.T, np.full((1, len(endmembers)), heavy)])
    targets = np.hstack([pixels, np.full((len(pixels), 1), heavy)])
    return np.array([nnls(matrix, target)[0] for target in targets])


def _million() -> list[str]:
    """A scene of a million pixels on disk, by default settings."""
    rng = np.random.default_rng(0)
    small = planted_scene(rng, shape=(1, 1), n_bands=200, n_endmembers=6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scene.npy")
        cube = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1000, 1000, 200))
        for row in range(1000):
            mixed = rng.dirichlet(np.full(6, 0.3), 1000) @ small.endmembers
            cube[row] = np.maximum(mixed + 0.01 * rng.standard_normal(mixed.shape), 0.0)
        cube.flush()
        del cube
        before = resident_bytes("VmRSS")
        elapsed, result = timed(partial(unmix, path, 6), processor=True)
        peak = resident_bytes("VmHWM") - before
    angle = float(match_spectra(result.endmembers, small.endmembers)[1].mean())
    met = elapsed < 300 and peak < 4e9
    return ["6", seconds(elapsed), megabytes(peak), f"{angle:.2f}", "5 minutes, 4 GB", yes(met)]


if __name__ == "__main__":
    main(run)
