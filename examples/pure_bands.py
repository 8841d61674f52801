"""
Pure bands: materials without a pure pixel
==========================================

Unmixing by pure pixels needs one for every material. Here two of five materials are nowhere alone, but each of them is
alone in one band, where nothing else reflects. The generalized model takes what there is of each.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from gsnmf import GSNMF

# %%
# The scene
# ---------
# Water, soil and roof each have a pure pixel somewhere. Grass and tree are everywhere, mixed with the others, but each
# has a band of its own: 30 and 61.

rng = np.random.default_rng(0)
side, n_bands = 24, 80
materials = ("water", "soil", "roof", "grass", "tree")
bands = np.linspace(0, 1, n_bands)
spectra = np.full((5, n_bands), 0.05)
for spectrum in spectra:
    for centre, width, height in zip(rng.random(4), rng.uniform(0.04, 0.15, 4), rng.uniform(0.3, 1.0, 4), strict=True):
        spectrum += height * np.exp(-(((bands - centre) / width) ** 2))
for material, band in ((3, 30), (4, 61)):
    spectra[:, band] = 0.0
    spectra[material, band] = 0.8

maps = np.stack([gaussian_filter(rng.random((side, side)), 2.5).ravel() for _ in materials])
maps = np.exp(25 * (maps - maps.mean(axis=1, keepdims=True)))
maps[3:] = 0.2 + maps[3:] / maps[3:].max(axis=1, keepdims=True)  # everywhere, never alone
abundances = (maps / maps.sum(axis=0)).T
abundances[rng.choice(side * side, 3, replace=False)] = np.eye(5)[:3]
scene = abundances @ spectra
scene = np.maximum(scene + 0.01 * scene.mean() * rng.standard_normal(scene.shape), 0.0)

# %%
# Two models
# ----------
# Both choose five factors. The first may choose pixels and bands, the second pixels alone.


def match(found):
    """For each true spectrum the component that is closest, one to one, and the angle in degrees."""
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (spectra, found)]
    angles = np.degrees(np.arccos(np.clip(unit[0] @ unit[1].T, -1, 1)))
    _, order = linear_sum_assignment(angles)
    return order, angles[np.arange(5), order]


models = {
    "pixels and bands": GSNMF(5, effort="fast").fit(scene),
    "pixels alone": GSNMF(5, method="snpa-rows").fit(scene),
}
for name, model in models.items():
    order, angles = match(model.components_)
    print(f"{name}: bands {sorted(model.feature_indices_.tolist())}")
    print("    " + ", ".join(f"{m} {angle:.1f}°" for m, angle in zip(materials, angles, strict=True)))

# %%
# Both models find water, soil and roof. Without bands, grass and tree are missed: no pixel shows them.

figure, axes = plt.subplots(3, 5, figsize=(12, 6.5), layout="constrained")
both = models["pixels and bands"]
order, _ = match(both.components_)
coefficients = both.transform(scene)
for material, name in enumerate(materials):
    top = axes[0, material]
    for (label, model), style in zip(models.items(), ("r-", "b:"), strict=True):
        found = model.components_[match(model.components_)[0][material]]
        top.plot(found * (spectra[material] @ found) / (found @ found), style, label=label)
    top.plot(spectra[material], "k--", linewidth=0.8, label="true")
    top.set_title(name)
    axes[1, material].imshow(abundances[:, material].reshape(side, side), vmin=0)
    axes[2, material].imshow(coefficients[:, order[material]].reshape(side, side), vmin=0)
    for axis in axes[1:, material]:
        axis.set(xticks=[], yticks=[])
for axis, title in zip(axes[:, 0], ("spectra", "true abundances", "found"), strict=True):
    axis.set_ylabel(title)
axes[0, 0].legend(fontsize=7)
plt.show()
