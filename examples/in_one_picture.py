"""
The model in one picture
========================

A table is explained by a few of its own columns and rows. Here we plant two columns and two rows, hide them by
shuffling the table, and let the library find them again.
"""

import matplotlib.pyplot as plt
import numpy as np

import gsnmf
from gsnmf.datasets import planted

# %%
# A table with a hidden order
# ---------------------------
# Each row of the table is a sample, each column a feature. Two parts of the data have a *feature* of their own, which
# nothing else touches; two have a *sample* of their own, which consists of nothing else. Nobody tells us which.

truth = planted((24, 32), n_columns=2, n_rows=2, noise_level=0.02, random_state=3)
matrix = truth.matrix
result = gsnmf.factorize(matrix, rank=4)
print(result)
print("planted columns", sorted(truth.columns.tolist()), "found", sorted(result.columns.tolist()))
print("planted rows   ", sorted(truth.rows.tolist()), "found", sorted(result.rows.tolist()))

# %%
# The chosen columns (red) and rows (blue), with nonnegative weights, rebuild all other entries: the table on the right
# is made from the coloured lines and from nothing else.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for axis, title, image in zip(axes, ("the table", "rebuilt"), (matrix, result.reconstruct()), strict=True):
    axis.imshow(image, cmap="Greys", vmin=0, vmax=matrix.max())
    for column in result.columns:
        axis.add_patch(plt.Rectangle((column - 0.5, -0.5), 1, matrix.shape[0], fill=False, edgecolor="tab:red", lw=2))
    for row in result.rows:
        axis.add_patch(plt.Rectangle((-0.5, row - 0.5), matrix.shape[1], 1, fill=False, edgecolor="tab:blue", lw=2))
    axis.set(title=title, xticks=[], yticks=[])
figure.suptitle(f"{result.columns.size} columns and {result.rows.size} rows explain {result.quality:.1%}")

# %%
# Why it works
# ------------
# Put the chosen columns first and the chosen rows last. They meet in zeros: a sample that consists of one part alone
# has nothing of the features that belong to other parts. This corner of zeros is what makes the choice identifiable.

row_order = np.r_[np.setdiff1d(np.arange(matrix.shape[0]), result.rows), result.rows]
column_order = np.r_[result.columns, np.setdiff1d(np.arange(matrix.shape[1]), result.columns)]
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.imshow(matrix[np.ix_(row_order, column_order)], cmap="Greys")
axis.axvline(result.columns.size - 0.5, color="tab:red")
axis.axhline(matrix.shape[0] - result.rows.size - 0.5, color="tab:blue")
axis.set(title="sorted: chosen columns first, chosen rows last", xticks=[], yticks=[])
plt.show()
