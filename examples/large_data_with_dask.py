"""
Larger than memory, with Dask
=============================

A large image arrives in strips, as it would from Zarr or Parquet, on one machine or on a cluster. It is read a few
times, strip by strip, and never held as a whole.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import gsnmf

# %%
# An image in strips
# ------------------
# 400 x 400 pixels with 40 bands each, as a matrix of pixels x bands in eight chunks. Each chunk is made when it is
# needed.

side, n_bands, n_strips = 400, 40, 8
bands = np.arange(n_bands)
spectra = np.array([0.1 + np.exp(-(((bands - centre) / 7) ** 2)) for centre in (4, 14, 25, 36)])


def strip(block_info):
    """The pixels of one strip: mixtures of four spectra, with noise."""
    k = block_info[None]["chunk-location"][0]
    i, j = np.mgrid[k * side // n_strips : (k + 1) * side // n_strips, :side] / side * 2 * np.pi
    heights = (np.sin(2 * i + j), np.cos(3 * j - i), np.sin(i * j), np.cos(2 * i) + np.sin(3 * j))
    maps = np.exp(6 * np.stack([height.ravel() for height in heights], axis=1))
    noise = 0.01 * np.random.default_rng(k).standard_normal((maps.shape[0], n_bands))
    return np.maximum(maps / maps.sum(axis=1, keepdims=True) @ spectra + noise, 0).astype(np.float32)


chunks = ((side * side // n_strips,) * n_strips, (n_bands,))
image = da.map_blocks(strip, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))
print(image)

# %%
# Four pixels that explain the image
# ----------------------------------
# Successive projection reads the data once per pixel, and once or twice more for the weights.

result = gsnmf.factorize(image, 4, method="spa-rows")
print(result)
print([tuple(map(int, divmod(pixel, side))) for pixel in result.rows])

# %%
# Whatever has one entry per row stays with the data. The weights are a Dask array and computed when they are asked for;
# on a cluster they could be written without ever passing through this machine.

print(result.row_weights)
weights = np.asarray(result.row_weights).reshape(side, side, 4)
figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained")
for k, axis in enumerate(axes):
    axis.imshow(weights[..., k], vmin=0, vmax=1, cmap="magma")
    axis.hlines(np.arange(1, n_strips) * side / n_strips - 0.5, 0, side - 1, color="white", linewidth=0.5)
    row, column = divmod(result.rows[k], side)
    axis.plot(column, row, "o", markersize=9, markerfacecolor="none", markeredgecolor="tab:blue", markeredgewidth=2)
    axis.set(title=f"like pixel ({row}, {column})", xticks=[], yticks=[])
plt.show()
