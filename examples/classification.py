"""Anchor features in front of a classifier, in a grid search, next to PCA and NMF at the same rank.

The digits are reduced to a few numbers each before a linear classifier sees them. Principal components and NMF mix all
pixels in each number; anchor features are pixels: whoever applies the model later need not measure the others.
"""

from __future__ import annotations

import warnings

from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from _figure import figure_path, new_figure, save
from gsnmf import GSNMF, GSNMFSelector

RANKS = (8, 16, 24)
REDUCTIONS = {
    "PCA": (PCA(random_state=0), "n_components"),
    "NMF": (NMF(init="nndsvda", max_iter=300), "n_components"),
    "GSNMF": (GSNMF(effort="fast"), "n_components"),
    "anchor features": (GSNMFSelector(), "n_features_to_select"),
}


def main() -> None:
    """Print the accuracy of each reduction at each rank, and of the best on pictures it has not seen."""
    path = figure_path(__doc__)
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    accuracies = {}
    print("accuracy       " + "".join(f"{f'rank {rank}':>10}" for rank in RANKS) + f"{'unseen':>10}")
    for name, (reduction, parameter) in REDUCTIONS.items():
        pipeline = Pipeline(
            [("reduce", reduction), ("scale", StandardScaler()), ("classify", LogisticRegression(max_iter=500))]
        )
        search = GridSearchCV(pipeline, {f"reduce__{parameter}": RANKS}, cv=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of NMF
            search.fit(X, y)
        accuracies[name] = search.cv_results_["mean_test_score"]
        unseen = search.score(X_test, y_test)
        print(f"{name:<15}" + "".join(f"{value:>10.1%}" for value in (*accuracies[name], unseen)))

    kept, of_all = accuracies["anchor features"][-1], accuracies["PCA"][-1]
    print(
        f"\nConclusion: {RANKS[-1]} of {X.shape[1]} pixels give {kept:.1%}; as many principal components, "
        f"each of which needs every pixel, give {of_all:.1%}."
    )
    if path:
        draw(accuracies, path)


def draw(accuracies, path) -> None:
    """Accuracy by rank."""
    figure, axis = new_figure(size=(6, 4))
    for name, values in accuracies.items():
        axis.plot(RANKS, values, "o-", label=name)
    axis.set_xlabel("rank")
    axis.set_ylabel("accuracy (3-fold cross-validation)")
    axis.set_xticks(RANKS)
    axis.legend()
    save(figure, path)


if __name__ == "__main__":
    main()
