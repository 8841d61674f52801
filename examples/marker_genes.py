"""Blood cells: from a file to marker genes, prototype cells and a figure.

700 blood cells that come with scanpy are written to a file, read again as anybody would read their own, and explained
by a few marker genes and prototype cells. The genes that go with each factor are compared with those of NMF at the same
rank, by how many of them scanpy finds among the ten genes that tell a labelled kind of cell from all others.
"""

from __future__ import annotations

import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.decomposition import NMF

from _figure import figure_path, new_figure, save
from gsnmf.applications import markers, plot_markers
from gsnmf.applications.marker_genes.measures import listed_genes, mutual_information, ranked_genes

N_FACTORS = 10
LABELS = "bulk_labels"


def main() -> None:
    """Print the factors, and how they compare with the labels and with NMF."""
    path = figure_path(__doc__)
    missing = [library for library in ("anndata", "scanpy") if find_spec(library) is None]
    if missing:
        print(f"Skipped: this example needs {' and '.join(missing)}; pip install {' '.join(missing)}.")
        print("\nConclusion: none without the data, which come with scanpy.")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about each other
        cells = read()
        markers(cells, N_FACTORS)
        ranked = tops(cells)
    table = cells.uns["gsnmf"]["factors"]
    print(f"{'factor':<15} {'share':>6} {'cells':>6}  genes that go with it")
    for name, factor in table.iterrows():
        print(
            f"{name:<15} {factor['share']:>6.1%} {factor['n_cells']:>6}  {', '.join(factor['genes'].split(', ')[:6])}"
        )

    ours, theirs = listed_genes(cells), nmf_genes(cells)
    information = mutual_information(cells.obs[LABELS], cells.obs["gsnmf_factor"])
    print(
        f"\nConclusion: {len(set(ours) & ranked)} of the {len(ours)} first genes tell a kind of cell from the others "
        f"(NMF at the same rank: {len(set(theirs) & ranked)} of {len(theirs)}), and the strongest factor of each cell "
        f"shares {information:.0%} of the information with labels that the method never saw."
    )
    if path:
        draw(cells, path)


def read():
    """The cells, through a file: scaled expression in X, which is negative, and expression in raw."""
    import anndata
    import scanpy

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cells.h5ad")
        scanpy.datasets.pbmc68k_reduced().write_h5ad(file)
        return anndata.read_h5ad(file)


def tops(cells) -> set[str]:
    """The ten genes that tell each labelled kind of cell best from all others."""
    import scanpy

    scanpy.tl.rank_genes_groups(cells, LABELS, method="t-test", n_genes=10, use_raw=True)
    return {gene for genes in ranked_genes(cells).values() for gene in genes}


def nmf_genes(cells) -> list[str]:
    """The gene with the largest loading in each component, among the same genes."""
    kept = cells.varm["gsnmf"].any(axis=1)
    model = NMF(N_FACTORS, init="nndsvda", max_iter=500, random_state=0).fit(cells.raw.X[:, kept])
    return list(dict.fromkeys(np.asarray(cells.var_names[kept])[model.components_.argmax(axis=1)]))


def draw(cells, path) -> None:
    """Marker genes by label, and the strongest factor on the map of cells."""
    figure, (left, right) = new_figure(1, 2, size=(15, 5))
    plot_markers(cells, LABELS, ax=left)
    plot_markers(cells, kind="embedding", ax=right)
    save(figure, path)


if __name__ == "__main__":
    main()
