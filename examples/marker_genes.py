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

    print("\ngenes that tell a kind of cell from the others     markers        NMF")
    for n_genes in (1, 5):
        lists = listed_genes(cells, n_genes), nmf_genes(cells, n_genes)
        counts = [f"{len(set(genes) & ranked)} of {len(genes)}" for genes in lists]
        print(f"{n_genes} per factor {counts[0]:>43} {counts[1]:>10}")
    information = mutual_information(cells.obs[LABELS], cells.obs["gsnmf_factor"])
    chosen = [sum(table["kind"] == kind) for kind in ("gene", "cell")]
    print(
        f"\nConclusion: {chosen[0]} marker genes and {chosen[1]} prototype cells describe {cells.n_obs} cells; the "
        f"strongest factor of each cell shares {information:.0%} of the information with labels it never saw."
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


def nmf_genes(cells, n_genes) -> list[str]:
    """The genes with the largest loadings in each component, among the same genes."""
    kept = cells.varm["gsnmf"].any(axis=1)
    model = NMF(N_FACTORS, init="nndsvda", max_iter=500, random_state=0).fit(cells.raw.X[:, kept])
    order = np.argsort(-model.components_, axis=1)[:, :n_genes]
    return list(dict.fromkeys(np.asarray(cells.var_names[kept])[order.ravel()]))


def draw(cells, path) -> None:
    """Marker genes by label, and the strongest factor on the map of cells."""
    figure, (left, right) = new_figure(1, 2, size=(15, 5))
    plot_markers(cells, LABELS, ax=left)
    plot_markers(cells, kind="embedding", ax=right)
    save(figure, path)


if __name__ == "__main__":
    main()
