"""Indian Pines: fields, woods and roads, seen in two hundred bands from an aircraft in June 1992.

The scene (145 x 145 pixels, AVIRIS) comes with TensorLy, so that nothing needs a download. It has no true spectra, but
a map of what grew where. Six endmembers are chosen by the default settings, which were not made for this scene, and the
classes of the pixels in which each is strongest are counted: the woods should have an endmember of their own. Values of
the scene are radiances times 500 plus 1000.
"""

from __future__ import annotations

import numpy as np

from _figure import figure_path, new_figure, save
from gsnmf.applications import unmix

N_ENDMEMBERS = 6
CLASSES = {
    1: "alfalfa", 2: "corn, no till", 3: "corn, min till", 4: "corn", 5: "grass, pasture", 6: "grass, trees",
    7: "mown pasture", 8: "hay", 9: "oats", 10: "soybean, no till", 11: "soybean, min till", 12: "soybean, clean",
    13: "wheat", 14: "woods", 15: "buildings, grass", 16: "stone, steel",
}  # fmt: skip


def main() -> None:
    """Unmix the scene, and tell what grows where each endmember is strongest."""
    path = figure_path(__doc__)
    try:
        from tensorly.datasets import load_indian_pines
    except ModuleNotFoundError as error:
        print(f"Skipped: the scene comes with TensorLy, and {error.name} is not installed; pip install tensorly.")
        return
    bunch = load_indian_pines()
    radiance = np.maximum(np.asarray(bunch.tensor, dtype=np.float64) - 1000.0, 0.0) / 500.0
    ground, wavelengths = bunch.ticks
    result = unmix(radiance, N_ENDMEMBERS, wavelengths=wavelengths, max_pixels=5000)  # a quarter of them, to be quick
    print(result.table())
    print("\nWhat grows where each is strongest, in the twentieth of the mapped pixels with the largest abundance:")
    shares = [strongest_classes(result.abundances[..., k], ground) for k in range(N_ENDMEMBERS)]
    for name, found in zip(result.names, shares, strict=True):
        print(f"    {name:<24} {', '.join(f'{CLASSES[c]} {share:.0%}' for c, share in found[:3])}")
    best = max(shares, key=lambda found: dict(found).get(14, 0.0))
    woods = dict(best).get(14, 0.0)
    base = np.mean(ground[ground > 0] == 14)
    print(
        f"\nConclusion: {N_ENDMEMBERS} pixels explain {result.quality:.1%} of the scene in {radiance.shape[2]} bands. "
        f"Where the endmember of the woods is strongest, {woods:.0%} of the mapped pixels are woods, "
        f"of all mapped pixels {base:.0%}."
    )
    if path:
        draw(result, path)


def strongest_classes(abundance, ground) -> list[tuple[int, float]]:
    """Classes of the mapped pixels with the largest abundance, the most frequent first, with their shares."""
    mapped = np.flatnonzero(ground.ravel() > 0)
    order = mapped[np.argsort(-abundance.ravel()[mapped], kind="stable")][: mapped.size // 20]
    classes, counts = np.unique(ground.ravel()[order], return_counts=True)
    return sorted(((int(c), float(n / order.size)) for c, n in zip(classes, counts, strict=True)), key=lambda x: -x[1])


def draw(result, path) -> None:
    """The chosen pixels on the scene, the spectra, and the maps."""
    figure, axes = new_figure(2, 4, size=(15, 7.5))
    result.plot_chosen_pixels(ax=axes[0, 0])
    result.plot_spectra(ax=axes[1, 0])
    axes[1, 0].legend(fontsize=6)
    for k, axis in zip(range(N_ENDMEMBERS), axes[:, 1:].ravel(), strict=True):
        image = axis.imshow(result.abundances[..., k], vmin=0, vmax=1)
        axis.set_title(result.names[k], fontsize=9)
        axis.set_axis_off()
    figure.colorbar(image, ax=list(axes[:, 1:].ravel()), label="abundance", shrink=0.8)
    save(figure, path)


if __name__ == "__main__":
    main()
