"""
Digits: key pixels and key pictures
===================================

A key pixel is a place where ink says a lot about the rest of a picture. A key picture is one of which others are made.
Handwritten digits are explained by sixteen of either kind.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gsnmf import GSNMF
from gsnmf.nmf import truncated_svd

# %%
# Pixels explain digits better than digits do
# -------------------------------------------
# Free to mix both kinds, the library takes pixels alone. Truncated SVD is the best that any sixteen factors can do, and
# shows what it costs to have factors that one can point at.

X, labels = load_digits(return_X_y=True)
free = GSNMF(16, effort="fast").fit(X)
pictures = GSNMF(16, method="snpa-rows").fit(X)
print(f"free to mix     {free.feature_indices_.size} pixels, {free.sample_indices_.size} pictures: {free.quality_:.1%}")
print(f"pictures alone  {pictures.quality_:.1%}")
print(f"truncated SVD   {truncated_svd(X, 16).quality:.1%}")

# %%
# The key pixels on the mean of all pictures, and the first of the key pictures:

figure, axes = plt.subplots(2, 5, figsize=(9, 4), layout="constrained")
row, column = np.divmod(free.feature_indices_, 8)
axes[0, 0].imshow(X.mean(axis=0).reshape(8, 8), cmap="gray_r")
axes[0, 0].plot(column, row, "s", color="tab:red", markersize=6)
axes[0, 0].set_title("key pixels", color="tab:red")
for axis, index in zip(axes.flat[1:], pictures.sample_indices_, strict=False):
    axis.imshow(X[index].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"key {labels[index]}", color="tab:blue")
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])

# %%
# Five pictures, and what each choice makes of them. The middle row was drawn from the ink at sixteen pixels.

shown = [np.flatnonzero(labels == label)[3] for label in (0, 3, 4, 7, 8)]
figure, axes = plt.subplots(3, 5, figsize=(7, 4.3), layout="constrained")
rebuilt = [model.inverse_transform(model.transform(X[shown])) for model in (free, pictures)]
for line, (title, images) in enumerate(zip(("pictures", "by pixels", "by digits"), (X[shown], *rebuilt), strict=True)):
    for axis, image in zip(axes[line], images, strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
    axes[line, 0].set_ylabel(title)
plt.show()
