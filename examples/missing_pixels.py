"""
Missing pixels
==============

Half of all pixels of handwritten digits are lost. The library fills the holes by low rank, chooses pixels and pictures,
and fits their weights to what can be seen. What it says about the lost pixels is compared with the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer, SimpleImputer

import gsnmf

# %%
# Three ways to fill holes
# ------------------------
# The error is relative, on the lost pixels alone. Nearest neighbours win here: similar pictures say more about a lost
# pixel than sixteen pixels can. They need all pictures at hand, though, and the other two do not.

X = load_digits().data
lost = np.random.default_rng(0).random(X.shape) < 0.5
seen = np.where(lost, np.nan, X)
result = gsnmf.factorize(seen, 16, effort="fast", missing_values=np.nan)
print(result, "\n")

rebuilt = {
    "16 pixels and pictures": result.reconstruct(),
    "mean of the pixel": SimpleImputer(keep_empty_features=True).fit_transform(seen),
    "10 nearest pictures": KNNImputer(n_neighbors=10, keep_empty_features=True).fit_transform(seen),
}
for name, filled in rebuilt.items():
    print(f"{name:<24} error {np.linalg.norm((filled - X)[lost]) / np.linalg.norm(X[lost]):.1%}")

# %%
# Eight pictures: as they are, what can be seen of them (lost pixels are blue), and rebuilt in the three ways.

figure, axes = plt.subplots(5, 8, figsize=(9, 6), layout="constrained")
for line, (title, images) in enumerate({"truth": X, "seen": seen, **rebuilt}.items()):
    for axis, image in zip(axes[line], images[:8], strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axis.set_facecolor("lightsteelblue")
        axis.set(xticks=[], yticks=[])
    axes[line, 0].set_ylabel("\n".join(title.split(maxsplit=1)), fontsize=8)
plt.show()
