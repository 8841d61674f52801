"""A hyperspectral scene with two kinds of materials: those with a pure pixel, and those with a pure band.

Unmixing by pure pixels needs one for every material. Here two of five materials are nowhere alone, but each of them is
alone in one band, where nothing else reflects. Rows of the matrix are pixels and columns are bands, so that these bands
are anchor features and the pure pixels pure samples: the generalized model takes what there is of each.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from _figure import figure_path, new_figure, save
from gsnmf import GSNMF

SIDE, N_BANDS = 24, 80
NAMES = ("water", "soil", "roof", "grass", "tree")  # the last two have no pure pixel
N_MIXED = 2
NOISE = 0.01


def main() -> None:
    """Unmix the scene by both kinds and by pure pixels alone, and compare the spectra with the true ones."""
    path = figure_path(__doc__)
    scene, abundances, spectra, bands = make_scene()
    models = {
        "pure pixels and pure bands": GSNMF(len(NAMES)).fit(scene),
        "pure pixels alone": GSNMF(len(NAMES), method="snpa-rows").fit(scene),
    }
    for name, model in models.items():
        order, angles = match(model.components_, spectra)
        print(
            f"{name}: quality {model.quality_:.2%}, "
            f"{model.sample_indices_.size} pixels and {model.feature_indices_.size} bands"
        )
        for material, k in enumerate(order):
            kind = model.get_feature_names_out([f"band {j}" for j in range(N_BANDS)])[k]
            print(f"    {NAMES[material]:<8} {kind:<16} spectrum off by {angles[material]:5.1f} degrees")
    both, alone = (match(model.components_, spectra)[1].max() for model in models.values())
    found = sorted(models["pure pixels and pure bands"].feature_indices_.tolist())
    print(
        f"\nConclusion: the bands that grass and tree have to themselves are {bands}, those found are {found}. "
        f"The worst spectrum is off by {both:.1f} degrees, with pure pixels alone by {alone:.1f}."
    )
    if path:
        draw(models, abundances, spectra, path)


def make_scene():
    """Pixels x bands, the true abundances and spectra, and the bands in which one material is alone."""
    rng = np.random.default_rng(0)
    wavelengths = np.linspace(0, 1, N_BANDS)
    spectra = np.full((len(NAMES), N_BANDS), 0.05)
    for spectrum in spectra:
        for centre, width, height in zip(
            rng.random(4), rng.uniform(0.04, 0.15, 4), rng.uniform(0.3, 1.0, 4), strict=True
        ):
            spectrum += height * np.exp(-(((wavelengths - centre) / width) ** 2))
    bands = [30, 61]
    for material, band in zip(range(len(NAMES) - N_MIXED, len(NAMES)), bands, strict=True):
        spectra[:, band] = 0.0
        spectra[material, band] = 0.8

    maps = np.stack([gaussian_filter(rng.random((SIDE, SIDE)), 2.5).ravel() for _ in NAMES])
    maps = np.exp(25 * (maps - maps.mean(axis=1, keepdims=True)))
    maps[-N_MIXED:] = 0.2 + maps[-N_MIXED:] / maps[-N_MIXED:].max(axis=1, keepdims=True)  # everywhere, never alone
    abundances = (maps / maps.sum(axis=0)).T
    n_pure = len(NAMES) - N_MIXED
    pure = rng.choice(SIDE * SIDE, n_pure, replace=False)
    abundances[pure] = np.eye(len(NAMES))[:n_pure]
    scene = abundances @ spectra
    scene = np.maximum(scene + NOISE * scene.mean() * rng.standard_normal(scene.shape), 0.0)
    return scene, abundances, spectra, bands


def match(found, spectra):
    """For each true spectrum the component that is its own, and the angle between them in degrees."""
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (spectra, found)]
    angles = np.degrees(np.arccos(np.clip(unit[0] @ unit[1].T, -1, 1)))
    materials, order = linear_sum_assignment(angles)
    return order, angles[materials, order]


def draw(models, abundances, spectra, path) -> None:
    """True and found spectra, and the abundances that the mixed model finds."""
    figure, axes = new_figure(3, len(NAMES), size=(14, 7.5))
    both = models["pure pixels and pure bands"]
    coefficients = both.fit_transform(both.result_.matrix)
    for material, name in enumerate(NAMES):
        top = axes[0, material]
        for (label, model), style in zip(models.items(), ("r-", "b:"), strict=True):
            k = match(model.components_, spectra)[0][material]
            found = model.components_[k]
            top.plot(found * (spectra[material] @ found) / (found @ found), style, label=label)
        top.plot(spectra[material], "k--", linewidth=0.8, label="true")
        top.set_title(name)
        k = match(both.components_, spectra)[0][material]
        axes[1, material].imshow(abundances[:, material].reshape(SIDE, SIDE), vmin=0)
        axes[2, material].imshow(coefficients[:, k].reshape(SIDE, SIDE), vmin=0)
        axes[2, material].set_xlabel(both.get_feature_names_out([f"band {j}" for j in range(N_BANDS)])[k])
        for axis in axes[1:, material]:
            axis.set_xticks([])
            axis.set_yticks([])
    axes[0, 0].set_ylabel("spectra")
    axes[1, 0].set_ylabel("true abundances")
    axes[2, 0].set_ylabel("found")
    axes[0, 0].legend(fontsize=7)
    save(figure, path)


if __name__ == "__main__":
    main()
