"""
Indian Pines: fields and woods from the air
===========================================

An aircraft saw these 145 x 145 pixels of Indiana in 200 bands in June 1992 (AVIRIS). Nothing in gsnmf was tuned to this
scene: the settings are the defaults. The scene has no true spectra, but people walked the fields and noted what grew
where, so we can check whether the materials that were found mean anything. It comes with TensorLy.
"""

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_indian_pines

from gsnmf.applications import unmix

pines = load_indian_pines()
radiance = np.maximum(pines.tensor - 1000.0, 0) / 500  # as the makers of the data set say
ground, wavelengths = pines.ticks
print(radiance.shape, f"{min(wavelengths):.0f} to {max(wavelengths):.0f} nm")

# %%
# Six materials
# -------------
# Each endmember is the mean of a few similar pixels. The numbers on the picture say where they are.

result = unmix(radiance, 6, wavelengths=wavelengths, max_pixels=5000)  # a quarter of the pixels, to be quick
print(result.table())
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
result.plot_chosen_pixels(ax=axes[0])
result.plot_spectra(ax=axes[1])
axes[1].legend(fontsize=7)

# %%
# How much of each is in every pixel.

result.plot_maps()

# %%
# What grows there
# ----------------
# Of the mapped pixels, we take the twentieth in which a material is most abundant, and look up what grew there. If
# materials had nothing to do with plants, we would see the shares of the whole map.

CROPS = (
    "", "alfalfa", "corn, no till", "corn, min till", "corn", "grass, pasture", "grass, trees", "mown pasture", "hay",
    "oats", "soybean, no till", "soybean, min till", "soybean, clean", "wheat", "woods", "buildings, grass",
    "stone, steel",
)  # fmt: skip
mapped = np.flatnonzero(ground > 0)
crops = ground.ravel()[mapped].astype(int)
everywhere = np.bincount(crops, minlength=len(CROPS)) / crops.size
shares = []
for name, abundance in zip(result.names, np.moveaxis(result.abundances, 2, 0), strict=True):
    strongest = np.argsort(-abundance.ravel()[mapped], kind="stable")[: mapped.size // 20]
    shares.append(np.bincount(crops[strongest], minlength=len(CROPS)) / strongest.size)
    most = np.argsort(-shares[-1])[:3]
    print(f"{name:<22}", ", ".join(f"{CROPS[c]} {shares[-1][c]:.0%}" for c in most))

figure, axis = plt.subplots(figsize=(9, 3.8), layout="constrained")
picture = axis.imshow(np.vstack([everywhere, *shares])[:, 1:], vmin=0, vmax=1, cmap="YlGn", aspect="auto")
axis.set_xticks(range(len(CROPS) - 1), CROPS[1:], rotation=40, ha="right")
axis.set_yticks(range(len(shares) + 1), ["the whole map", *result.names])
figure.colorbar(picture, label="share of the pixels")
plt.show()
