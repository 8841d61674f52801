"""Key pixels and key digits: handwritten digits explained by sixteen pixels, or by sixteen pictures of the collection.

A key pixel is a place where ink says a lot about the rest of the picture; a key digit is a picture of which others are
made. Free to mix both, the library takes pixels here. Truncated SVD, the best that any sixteen factors can do, shows
what being able to read them costs.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from _figure import figure_path, new_figure, save
from gsnmf import GSNMF
from gsnmf.commands.examples import pixel_map
from gsnmf.nmf import truncated_svd

RANK = 16


def main() -> None:
    """Print the key pixels as a map and the key digits by their labels."""
    path = figure_path(__doc__)
    X, labels = load_digits(return_X_y=True)
    free = GSNMF(RANK).fit(X)
    pictures = GSNMF(RANK, method="snpa-rows").fit(X)

    n_pixels, n_pictures = free.feature_indices_.size, free.sample_indices_.size
    print(f"Free to mix: {n_pixels} pixels and {n_pictures} pictures, quality {free.quality_:.1%}\n")
    print(f"{pixel_map(free.feature_indices_)}\n")
    key = ", ".join(str(labels[i]) for i in pictures.sample_indices_)
    print(f"Pictures alone: {key}, quality {pictures.quality_:.1%}\n")
    best = truncated_svd(X, RANK).quality
    print(f"Conclusion: pixels explain digits better than digits do, {free.quality_:.1%} of at most {best:.1%} (SVD).")
    if path:
        draw(free, pictures, X, labels, path)


def draw(free, pictures, X, labels, path) -> None:
    """The two choices, and five pictures as they are and as each of them rebuilds them."""
    figure, axes = new_figure(4, 5, size=(8.5, 7.5))
    shown = [np.flatnonzero(labels == label)[3] for label in (0, 3, 4, 7, 8)]
    rebuilt = [model.inverse_transform(model.transform(X[shown])) for model in (free, pictures)]
    rows, columns = np.divmod(free.feature_indices_, 8)
    axes[0, 0].imshow(X.mean(axis=0).reshape(8, 8), cmap="gray_r")
    axes[0, 0].plot(columns, rows, "rs", markersize=6)
    axes[0, 0].set_title("key pixels on the mean")
    for axis, index in zip(axes[0, 1:], pictures.sample_indices_, strict=False):
        axis.imshow(X[index].reshape(8, 8), cmap="gray_r")
        axis.set_title(f"key digit: {labels[index]}")
    for line, images in enumerate((X[shown], *rebuilt), start=1):
        for axis, image in zip(axes[line], images, strict=True):
            axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    for line, title in enumerate(("choice", "pictures", "by pixels", "by digits")):
        axes[line, 0].set_ylabel(title)
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
    save(figure, path)


if __name__ == "__main__":
    main()
