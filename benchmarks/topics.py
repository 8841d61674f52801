"""Topics of labelled documents, next to those of scikit-learn.

Every labelled collection of the paper that is at hand (``GSNMF_DATA``), weighted by tf-idf, with as many topics as it
has classes. For each contestant: normalised mutual information and adjusted Rand index of its grouping of the documents
with the classes, the mean coherence (normalised pointwise mutual information over documents) of the ten strongest words
of its topics, and processor time. Latent Dirichlet allocation counts words; the others see tf-idf.

Our groups of documents are ``GSNMF.labels_``, which are the same as those of `gsnmf.applications.topics`
(`gsnmf.estimators.grouping`). "Strongest" means that each document is with its strongest topic, where that grouping
starts. "Regrouped" shows the same grouping for scikit-learn's NMF, to tell what the factors and what the grouping
contribute.

Then the same groups of samples that are not documents, in four tables that come with scikit-learn, each feature divided
by its maximum. At the end, `gsnmf.GSNMF` and scikit-learn's NMF on many simulated documents, whose classes are the
topics that have most of their words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import gsnmf
from benchmarks._measuring import main, print_table, timed
from gsnmf.applications.topic_modelling.topic_words import document_coherence, strongest_words
from gsnmf.estimators.grouping import learn_groups, mean_coefficients, strongest_component
from gsnmf.matrix import wrap
from gsnmf.search.effort import Effort
from gsnmf.support.arrays import Doubles, Indices
from reproduction.matrices import PaperMatrix, data_folder, load, missing_data
from reproduction.published import DOCUMENT_NAMES

_QUICK = ("tr23", "tr11")
_LEFT_OUT = ("la12",)
"""It is la1 and la2 together."""

_TABLES = ("iris", "wine", "breast_cancer", "digits")

_NOTHING = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Outcome:
    """What one contestant found in one collection."""

    information: float
    rand: float
    coherence: float
    seconds: float
    n_without: int


@dataclass(frozen=True)
class _Found:
    groups: Indices
    components: Doubles
    leading: Sequence[Indices]


def run(quick: bool = False) -> None:
    """Measure and print; ``quick`` for two small collections."""
    data_folder()  # says at once if there is no data
    names = [name for name in (_QUICK if quick else DOCUMENT_NAMES) if name not in _LEFT_OUT and not missing_data(name)]
    outcomes: dict[str, dict[str, Outcome]] = {}
    for name in names:
        print(f"{name}: {len(outcomes) + 1} of {len(names)}", file=sys.stderr, flush=True)
        outcomes[name] = measure(load(name))
        for contestant, found in outcomes[name].items():  # so that an interrupted run is not lost
            figures = f"{found.information:.3f} {found.rand:.3f} {found.coherence:.3f} {found.seconds:.1f} s"
            print(f"  {contestant}: {figures}", file=sys.stderr, flush=True)
    titles = {
        "information": "normalised mutual information of groups and classes",
        "rand": "adjusted Rand index of groups and classes",
        "coherence": "coherence (NPMI) of the ten strongest words",
        "seconds": "seconds of processor time",
        "n_without": "documents without a topic",
    }
    for quantity, title in titles.items():
        digits = {"seconds": 1, "n_without": 0}.get(quantity, 3)
        values = {name: {c: getattr(o, quantity) for c, o in found.items()} for name, found in outcomes.items()}
        _print(title, values, digits)
    compare_on_tables(_TABLES[:1] if quick else _TABLES)
    compare_on_many(*((300, 200, 3) if quick else (200_000, 100_000, 20)))


def compare_on_tables(names: Sequence[str]) -> None:
    """Group the samples of tables of scikit-learn, and print how well the groups agree with the classes."""
    rows = []
    for name in names:
        samples, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
        largest = samples.max(axis=0)
        X, rank = samples / np.where(largest > 0, largest, 1.0), np.unique(classes).size
        model, peer = gsnmf.GSNMF(rank, members=3), NMF(rank, init="nndsvda", max_iter=1000)
        W = model.fit_transform(X)
        groupings = (
            model.labels_,
            strongest_component(W, mean_coefficients(W)),
            _strengths(peer.fit_transform(X), peer).argmax(axis=1),
            KMeans(rank, n_init=5, random_state=0).fit_predict(X),
        )
        figures = [
            f"{normalized_mutual_info_score(classes, groups):.2f} {adjusted_rand_score(classes, groups):.2f}"
            for groups in groupings
        ]
        rows.append([name, *figures])
    header = ["table", "GSNMF members=3", "GSNMF members=3, strongest", "NMF", "k-means"]
    print_table("mutual information and adjusted Rand index on other tables", header, rows)


def compare_on_many(n_documents: int, n_words: int, n_topics: int) -> None:
    """Fit simulated documents by `gsnmf.GSNMF` and by scikit-learn's NMF, and print how long each takes."""
    counts, classes = simulated_documents(n_documents, n_words, n_topics)
    matrix = sp.csr_array(TfidfTransformer().fit_transform(counts))
    contestants: dict[str, Any] = {
        "GSNMF": gsnmf.GSNMF(n_topics),
        "GSNMF fast": gsnmf.GSNMF(n_topics, effort="fast"),
        "GSNMF members=3": gsnmf.GSNMF(n_topics, members=3),
        "GSNMF members=3 fast": gsnmf.GSNMF(n_topics, members=3, effort="fast"),
        "NMF": NMF(n_topics, init="nndsvda", max_iter=400),
    }
    rows = []
    for name, model in contestants.items():
        print(f"{name} on {n_documents} documents", file=sys.stderr, flush=True)
        spent, W = timed(partial(model.fit_transform, matrix), processor=True)
        groups = model.labels_ if hasattr(model, "labels_") else _strengths(W, model).argmax(axis=1)
        figures = normalized_mutual_info_score(classes, groups), adjusted_rand_score(classes, groups)
        quality = gsnmf.metrics.quality(matrix, W, model.components_)
        rows.append([name, f"{spent:.1f}", f"{100 * quality:.2f}", *(f"{figure:.3f}" for figure in figures)])
    title = f"{n_documents} simulated documents, {n_words} words, {matrix.nnz} entries, {n_topics} topics"
    header = ["", "seconds of processor time", "quality in percent", "mutual information", "adjusted Rand index"]
    print_table(title, header, rows)


def simulated_documents(n_documents: int, n_words: int, n_topics: int) -> tuple[sp.csr_array, Indices]:
    """Counts of words drawn from mixtures of topics, and the topic that has most words of each document.

    A few words are frequent everywhere, as in texts, and each topic prefers some words. A document has about 110 words.
    """
    rng = np.random.default_rng(0)
    lengths = np.ceil(rng.lognormal(4.6, 0.5, size=n_documents)).astype(np.intp)
    drawn = rng.multinomial(lengths, rng.dirichlet(np.full(n_topics, 0.1), size=n_documents))
    frequencies = 1.0 / (10.0 + rng.permutation(n_words))
    documents, words = [], []
    for of_topic in drawn.T:
        preferred = frequencies * rng.gamma(0.1, size=n_words)
        documents.append(np.repeat(np.arange(n_documents), of_topic))
        words.append(rng.choice(n_words, size=int(of_topic.sum()), p=preferred / preferred.sum()))
    at = np.concatenate(documents), np.concatenate(words)
    counts = sp.coo_array((np.ones(at[0].size), at), shape=(n_documents, n_words)).tocsr()
    return sp.csr_array(counts), drawn.argmax(axis=1)


def measure(data: PaperMatrix) -> dict[str, Outcome]:
    """What every contestant finds in a collection, by its name."""
    counts = sp.csr_array(data.matrix)
    weighted = sp.csr_array(TfidfTransformer().fit_transform(counts))
    classes = np.asarray(data.labels)
    rank = np.unique(classes).size
    outcomes: dict[str, Outcome] = {}
    for work in _CONTESTANTS:
        seconds, found = timed(partial(work, counts, weighted, rank), processor=True)
        outcomes |= {name: _outcome(one, counts, classes, seconds) for name, one in found.items()}
    return outcomes


def _outcome(found: _Found, counts: sp.csr_array, classes: Any, seconds: float) -> Outcome:
    words = strongest_words(found.components, found.leading, 10)
    return Outcome(
        information=float(normalized_mutual_info_score(classes, found.groups)),
        rand=float(adjusted_rand_score(classes, found.groups)),
        coherence=float(np.nanmean(document_coherence(words, counts))),
        seconds=seconds,
        n_without=int(np.count_nonzero(found.groups < 0)),
    )


def _ours(matrix: sp.csr_array, rank: int, title: str, effort: Effort, members: int = 1) -> dict[str, _Found]:
    """`gsnmf.GSNMF` and its ``labels_``, which are the groups of `gsnmf.applications.topics` as well."""
    model = gsnmf.GSNMF(rank, effort=effort, members=members)
    weights = model.fit_transform(matrix)
    components = np.asarray(model.components_, dtype=np.float64)
    words = [np.array(own) for own, _ in model.result_.members[: model.feature_indices_.size]]
    leading = words + [_NOTHING] * model.sample_indices_.size
    return {
        title: _Found(model.labels_, components, leading),
        f"{title}, strongest": _Found(strongest_component(weights, mean_coefficients(weights)), components, leading),
    }


def _nmf(counts: sp.csr_array, matrix: sp.csr_array, rank: int) -> dict[str, _Found]:
    model = NMF(rank, init="nndsvda", max_iter=400)
    weights = model.fit_transform(matrix)
    strengths = _strengths(weights, model)
    return {
        "NMF": _free(strengths.argmax(axis=1), model.components_),
        "NMF, regrouped": _free(learn_groups(wrap(matrix), strengths)[0], model.components_),
    }


def _strengths(weights: Doubles, model: NMF) -> Doubles:
    """Coefficients times the lengths of the components, which have no common scale."""
    return np.asarray(weights * np.linalg.norm(model.components_, axis=1))


def _allocation(counts: sp.csr_array, matrix: sp.csr_array, rank: int) -> dict[str, _Found]:
    model = LatentDirichletAllocation(rank, random_state=0)
    return {"LDA": _free(model.fit_transform(counts).argmax(axis=1), model.components_)}


def _clusters(counts: sp.csr_array, matrix: sp.csr_array, rank: int) -> dict[str, _Found]:
    model = KMeans(rank, n_init=5, random_state=0)
    return {"k-means": _free(model.fit_predict(matrix), np.maximum(model.cluster_centers_, 0.0))}


def _free(groups: Any, components: Any) -> _Found:
    return _Found(np.asarray(groups, dtype=np.intp), np.asarray(components), [_NOTHING] * len(components))


_CONTESTANTS: tuple[Callable[[sp.csr_array, sp.csr_array, int], dict[str, _Found]], ...] = (
    lambda counts, matrix, rank: _ours(matrix, rank, "gsnmf", "balanced"),
    lambda counts, matrix, rank: _ours(matrix, rank, "gsnmf fast", "fast"),
    lambda counts, matrix, rank: _ours(matrix, rank, "gsnmf members=3", "balanced", 3),
    lambda counts, matrix, rank: _ours(matrix, rank, "gsnmf members=3 fast", "fast", 3),
    _nmf,
    _allocation,
    _clusters,
)


def _print(title: str, values: dict[str, dict[str, float]], digits: int) -> None:
    names = list(next(iter(values.values())))
    rows = [[name, *(f"{value:.{digits}f}" for value in found.values())] for name, found in values.items()]
    means = [np.mean([found[name] for found in values.values()]) for name in names]
    print_table(title, ["collection", *names], [*rows, ["mean", *(f"{mean:.{digits}f}" for mean in means)]])


if __name__ == "__main__":
    main(run)
