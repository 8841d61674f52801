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

# %%
# As an equation
# --------------
# Two columns of the table with their weights, plus two rows with theirs. Every entry is a square of the same size.

# sphinx_gallery_thumbnail_number = 3
m, n = matrix.shape
WIDTH, HEIGHT, GAP, BOTTOM = 3 * n + 24, m + 6, 7, 1
figure = plt.figure(figsize=(12, 12 * HEIGHT / WIDTH))


def draw(left, bottom, image):
    """An image at a place that is given in entries."""
    height, width = image.shape[:2]
    axis = figure.add_axes((left / WIDTH, bottom / HEIGHT, width / WIDTH, height / HEIGHT), xticks=[], yticks=[])
    axis.imshow(image, aspect="auto")
    plt.setp(axis.spines.values(), color="0.7")


def write(left, bottom, text, **style):
    """A text around a place that is given in entries."""
    style = {"fontsize": 14, **style}
    figure.text(left / WIDTH, bottom / HEIGHT, text, ha="center", va="center", **style)


grey, red, blue = (
    lambda values, name=name: plt.get_cmap(name)(values / values.max()) for name in ("Greys", "Reds", "Blues")
)
table = grey(matrix)
table[:, result.columns] = red(matrix)[:, result.columns]
table[result.rows] = blue(matrix)[result.rows]
middle, top = BOTTOM + m / 2, BOTTOM + m + 2
draw(1, BOTTOM, table)
write(1 + n / 2, top, "a table")
write(1 + n + GAP / 2, middle, "≈", fontsize=24)
left = 1 + n + GAP
draw(left, BOTTOM, red(matrix)[:, result.columns])
write(left + 1, top, "two of its columns", color="tab:red")
draw(left + 3, middle - 1, grey(result.column_weights))
write(left + 3 + n / 2, middle + 2.5, "nonnegative weights")
write(left + 3 + n + GAP / 2, middle, "+", fontsize=24)
left += 3 + n + GAP
draw(left, BOTTOM, grey(result.row_weights))
write(left + 1, top, "nonnegative weights")
draw(left + 3, middle - 1, blue(matrix)[result.rows])
write(left + 3 + n / 2, middle + 2.5, "two of its rows", color="tab:blue")
plt.show()
