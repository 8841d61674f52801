"""Missing entries: handwritten digits of which half of the pixels were lost, rebuilt from pixels and pictures.

Half of all pixels are hidden at random. The library fills the holes by low rank, chooses pixels and pictures on the
filled matrix, and fits their weights to what can be seen. What it says about the hidden pixels is compared with the
truth, and with filling them by the mean of the pixel or by the most similar pictures.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer, SimpleImputer

import gsnmf
from _figure import figure_path, new_figure, save

RANK = 16
HIDDEN = 0.5


def main() -> None:
    """Print how far each way of filling is from the hidden pixels."""
    path = figure_path(__doc__)
    X = load_digits().data
    hidden = np.random.default_rng(0).random(X.shape) < HIDDEN
    seen = np.where(hidden, np.nan, X)
    result = gsnmf.factorize(seen, RANK, effort="fast", missing_values=np.nan)
    n_pixels, n_pictures = result.columns.size, result.rows.size
    print(f"{n_pixels} pixels and {n_pictures} pictures, quality {result.quality:.1%} on the visible pixels\n")

    rebuilt = {
        "by pixels and pictures": result.reconstruct(),
        "by the mean of the pixel": SimpleImputer(keep_empty_features=True).fit_transform(seen),
        "by the 10 nearest pictures": KNNImputer(n_neighbors=10, keep_empty_features=True).fit_transform(seen),
    }
    errors = {name: error_on(hidden, filled, X) for name, filled in rebuilt.items()}
    for name, error in errors.items():
        print(f"Hidden pixels {name:<28} error {error:.1%}")
    ours, *others = errors.values()
    print(
        f"\nConclusion: {RANK} pixels and pictures predict the hidden half with an error of {ours:.1%}, the mean of "
        f"the pixel with {others[0]:.1%}. The 10 nearest pictures, which no few pixels explain, reach {others[1]:.1%}."
    )
    if path:
        draw(X, seen, rebuilt["by pixels and pictures"], path)


def error_on(hidden: np.ndarray, filled: np.ndarray, truth: np.ndarray) -> float:
    """Relative error on the hidden pixels."""
    return float(np.linalg.norm((filled - truth)[hidden]) / np.linalg.norm(truth[hidden]))


def draw(X: np.ndarray, seen: np.ndarray, rebuilt: np.ndarray, path) -> None:
    """Eight pictures: as they are, what can be seen of them, and rebuilt."""
    figure, axes = new_figure(3, 8, size=(9.0, 3.8))
    for line, (title, images) in enumerate((("truth", X), ("seen", seen), ("rebuilt", rebuilt))):
        for axis, image in zip(axes[line], images[:8], strict=True):
            axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
            axis.set_facecolor("lightsteelblue")
            axis.set_xticks([])
            axis.set_yticks([])
        axes[line, 0].set_ylabel(title)
    save(figure, path)


if __name__ == "__main__":
    main()
