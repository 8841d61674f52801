"""
Spectral image: what is where
=============================

A river, fields, woods and a few roofs, seen from above in a hundred bands. One call finds the materials and maps how
much of each is in every pixel.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from gsnmf.applications import unmix

# %%
# A landscape
# -----------
# Spectra are smooth curves that resemble those of textbooks: water is dark, plants reflect beyond 700 nm, soil rises
# slowly, roofs are bright. Pixels at borders are mixtures. Sunlight varies by a tenth, and a few pixels are damaged.

rng = np.random.default_rng(1)
wavelengths = np.linspace(400, 2400, 100)


def step(at, width):
    """A smooth rise at a wavelength."""
    return 1 / (1 + np.exp(-(wavelengths - at) / width))


def bump(at, width):
    """A smooth peak at a wavelength."""
    return np.exp(-(((wavelengths - at) / width) ** 2))


water_vapour = 1 - 0.5 * bump(1450, 60) - 0.6 * bump(1930, 70)
spectra = {
    "water": 0.02 + 0.1 * bump(500, 150),
    "wood": 0.03 + 0.04 * bump(550, 40) + 0.35 * step(710, 15) * np.exp(-(wavelengths - 700) / 1200) * water_vapour,
    "crop": 0.04 + 0.12 * bump(560, 50) + 0.6 * step(720, 20) * np.exp(-(wavelengths - 700) / 800) * water_vapour,
    "soil": (0.08 + 0.35 * step(1000, 350)) * (1 - 0.2 * bump(1930, 80)),
    "roof": 0.45 - 0.15 * step(1200, 300) + 0.1 * bump(620, 90),
}
true = np.array(list(spectra.values()))

side = 60
i, j = np.mgrid[:side, :side]
ground = np.where(gaussian_filter(rng.standard_normal((side, side)), 6) > 0, 1, 2)  # woods and crops
ground[(i // 15 + j // 20) % 3 == 0] = 3  # ploughed fields
ground[abs(j - 30 - 10 * np.sin(i / 11)) < 4] = 0  # the river
for top, left in ((8, 6), (10, 11), (44, 48), (48, 50), (40, 8)):
    ground[top : top + 3, left : left + 3] = 4
maps = np.stack([gaussian_filter((ground == k).astype(float), 0.9) for k in range(5)], axis=2)
maps /= maps.sum(axis=2, keepdims=True)
scene = maps @ true * rng.uniform(0.95, 1.05, (side, side, 1)) + 0.004 * rng.standard_normal((side, side, 100))
scene = np.maximum(scene, 0)
scene[rng.integers(0, side, 5), rng.integers(0, side, 5)] *= rng.uniform(0, 4, (5, 100))

# %%
# Unmixing
# --------
# The chosen pixels are marked on a picture made from the red, green and blue bands. Damaged pixels resemble no other
# pixel and are left out, and the notes say so.

result = unmix(scene, 5, wavelengths=wavelengths)
print(result.table())
print(*result.notes, sep="\n")
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
result.plot_chosen_pixels(ax=axes[0])
result.plot_spectra(ax=axes[1])
axes[1].plot(wavelengths, true.T, "k--", linewidth=0.7)
axes[1].set_title("found (colours) and true spectra (dashed)")

# %%
# How much of each material is where: the true maps above, the found ones below.

angle = np.degrees(
    np.arccos(
        np.clip(
            (true / np.linalg.norm(true, axis=1, keepdims=True))
            @ (result.endmembers / np.linalg.norm(result.endmembers, axis=1, keepdims=True)).T,
            -1,
            1,
        )
    )
)
figure, axes = plt.subplots(2, 5, figsize=(11, 4.6), layout="constrained")
for k, name in enumerate(spectra):
    best = angle[k].argmin()
    axes[0, k].imshow(maps[..., k], vmin=0, vmax=1)
    axes[0, k].set_title(name)
    axes[1, k].imshow(result.abundances[..., best], vmin=0, vmax=1)
    axes[1, k].set_title(f"{angle[k, best]:.1f} degrees off")
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("true")
axes[1, 0].set_ylabel("found")
plt.show()
