"""
Anchor features in front of a classifier
========================================

Digits are reduced to a few numbers each before a linear classifier sees them. Principal components and NMF mix all
pixels into each number. Anchor features are pixels: whoever applies the model later need not measure the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gsnmf import GSNMFSelector

# %%
# One grid search for each reduction
# ----------------------------------
# ``GSNMFSelector`` is a scikit-learn transformer: it fits into pipelines and grid searches as it is.

ranks = (8, 16, 24)
reductions = {
    "PCA": (PCA(random_state=0), "n_components"),
    "NMF": (NMF(init="nndsvda", max_iter=2000), "n_components"),
    "anchor pixels": (GSNMFSelector(), "n_features_to_select"),
}
X, y = load_digits(return_X_y=True)
accuracies = {}
for name, (reduction, parameter) in reductions.items():
    pipeline = make_pipeline(reduction, StandardScaler(), LogisticRegression(max_iter=500))
    grid = {f"{type(reduction).__name__.lower()}__{parameter}": ranks}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    accuracies[name] = search.cv_results_["mean_test_score"]
    print(f"{name:<14}" + "".join(f"  rank {r}: {a:.1%}" for r, a in zip(ranks, accuracies[name], strict=True)))

# %%
# Mixing all pixels is worth a few percent, and that is its price: every pixel must be measured. The picture on the
# right shows the pixels that the selector kept, on the mean digit.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, values in accuracies.items():
    axes[0].plot(ranks, values, "o-", label=name)
axes[0].set(xlabel="rank", ylabel="accuracy (3-fold cross-validation)", xticks=ranks)
axes[0].legend()
kept = np.flatnonzero(GSNMFSelector(24).fit(X).get_support())
axes[1].imshow(X.mean(axis=0).reshape(8, 8), cmap="gray_r")
axes[1].plot(kept % 8, kept // 8, "s", color="tab:red", markersize=8)
axes[1].set(title="24 anchor pixels", xticks=[], yticks=[])
plt.show()
