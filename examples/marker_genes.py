"""
Cells: marker genes and prototype cells
=======================================

Single cells of six kinds, drawn from a stated model. One call explains them by marker genes, which one kind alone
expresses, and by prototype cells, which are typical of one kind, and tells which genes go with each.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.manifold import TSNE

from gsnmf.applications import markers, plot_markers

# %%
# The cells
# ---------
# Every gene has a level, drawn from a log-normal distribution. Eight genes of each kind are high there, and nearly
# silent elsewhere; a third of the cells are between two kinds. Counts are Poisson, 3000 per cell on average.

rng = np.random.default_rng(0)
kinds = ("T", "B", "NK", "monocyte", "dendritic", "platelet")
n_cells, n_genes, n_own = 800, 500, 8
genes = [f"{kind} {k + 1}" for kind in kinds for k in range(n_own)]
genes += [f"gene {k + 1}" for k in range(n_genes - len(genes))]
profiles = np.tile(rng.lognormal(0, 1, n_genes), (len(kinds), 1))
own = np.arange(n_genes) // n_own == np.arange(len(kinds))[:, None]
profiles *= np.where(own, 6.0, np.where(own.any(axis=0), 0.03, 1.0))
profiles /= profiles.sum(axis=1, keepdims=True)
kind = rng.choice(len(kinds), n_cells, p=(0.35, 0.2, 0.15, 0.15, 0.1, 0.05))
mixture = np.eye(len(kinds))[kind]
between = rng.random(n_cells) < 0.33
mixture[between] = 0.6 * mixture[between] + 0.4 * np.eye(len(kinds))[rng.integers(0, len(kinds), between.sum())]
counts = rng.poisson(3000 * rng.lognormal(0, 0.3, (n_cells, 1)) * (mixture @ profiles))
expression = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
cells = anndata.AnnData(
    sp.csr_matrix(expression.astype(np.float32)),
    obs=pd.DataFrame({"kind": pd.Categorical([kinds[k] for k in kind])}, index=[f"cell {i}" for i in range(n_cells)]),
    var=pd.DataFrame(index=genes),
)
cells.obsm["X_tsne"] = TSNE(random_state=0).fit_transform(expression)

# %%
# The factors
# -----------
# A factor is a chosen gene, or a chosen cell. A factor of a cell is called after the gene that goes with it most.
# Nothing but the expression was used: the kinds are only shown next to the result.

variable = expression.std(axis=0) > 1.0  # the usual first step: genes that differ between cells
markers(cells, len(kinds), genes=variable, effort="fast")
table = cells.uns["gsnmf"]["factors"]
for name, factor in table.iterrows():
    print(f"{name:<16} {factor['kind']:<5} {factor['share']:>6.1%}  {', '.join(factor['genes'].split(', ')[:5])}")

# %%
# On the left, each column is a marker: large and dark dots show the kinds of cells that express it. On the right, every
# cell has the colour of its strongest factor.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.3), layout="constrained")
plot_markers(cells, "kind", ax=axes[0])
plot_markers(cells, kind="embedding", ax=axes[1])
plt.show()
