"""Topics of labelled documents, next to those of scikit-learn.

Every labelled collection of the paper that is at hand (``GSNMF_DATA``), weighted by tf-idf, with as many topics as it
has classes. For each contestant: normalised mutual information and adjusted Rand index of its grouping of the documents
with the classes, the mean coherence (normalised pointwise mutual information over documents) of the ten strongest words
of its topics, and processor time. Latent Dirichlet allocation counts words; the others see tf-idf.

Documents are grouped by `gsnmf.estimators.grouping.learn_groups`, as `gsnmf.applications.topics` and ``GSNMF.labels_``
do. "Strongest" means that each document is with its strongest topic, where that grouping starts; "regrouped" shows the
same grouping for scikit-learn's NMF, to tell what the factors and what the grouping contribute.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import gsnmf
from gsnmf.applications.topic_modelling.assignment import coefficients
from gsnmf.applications.topic_modelling.coherence import document_coherence
from gsnmf.applications.topic_modelling.measures import strongest_words
from gsnmf.benchmarks._measuring import load, machine_facts, print_table
from gsnmf.datasets.paper import PaperMatrix, data_folder, missing_data, paper_matrix
from gsnmf.datasets.published import DOCUMENT_NAMES
from gsnmf.estimators.grouping import learn_groups, mean_coefficients, strongest_component
from gsnmf.matrices import wrap
from gsnmf.search.effort import Effort
from gsnmf.support.arrays import Doubles, Indices

_QUICK = ("tr23", "tr11")
_LEFT_OUT = ("la12",)
"""It is la1 and la2 together."""

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
    gsnmf.factorize([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]], 2)  # compile
    print(", ".join(f"{name} {value}" for name, value in machine_facts().items()))
    outcomes: dict[str, dict[str, Outcome]] = {}
    for name in names:
        print(f"{name}: {len(outcomes) + 1} of {len(names)}", file=sys.stderr, flush=True)
        outcomes[name] = measure(paper_matrix(name))
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
    print(f"\nload at the end: {load()}")


def measure(data: PaperMatrix) -> dict[str, Outcome]:
    """What every contestant finds in a collection, by its name."""
    counts = sp.csr_array(data.matrix)
    weighted = sp.csr_array(TfidfTransformer().fit_transform(counts))
    classes = np.asarray(data.labels)
    rank = np.unique(classes).size
    outcomes: dict[str, Outcome] = {}
    for work in _CONTESTANTS:
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = work(counts, weighted, rank)
        seconds = time.process_time() - begin
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
    result = gsnmf.factorize(matrix, rank, effort=effort, members=members)
    components = np.asarray(result.H, dtype=np.float64)
    weights = coefficients(matrix, components)
    words = [members for members, _ in result.members[: result.columns.size]]
    leading = words + [_NOTHING] * result.rows.size
    return {
        title: _Found(learn_groups(wrap(matrix), weights)[0], components, leading),
        f"{title}, strongest": _Found(strongest_component(weights, mean_coefficients(weights)), components, leading),
    }


def _estimator(counts: sp.csr_array, matrix: sp.csr_array, rank: int) -> dict[str, _Found]:
    """`gsnmf.GSNMF` by itself: its ``labels_``."""
    model = gsnmf.GSNMF(rank, members=3).fit(matrix)
    leading = [np.array(own) for own, _ in model.result_.members[: model.feature_indices_.size]]
    leading += [_NOTHING] * model.sample_indices_.size
    return {"GSNMF members=3, labels_": _Found(model.labels_, np.asarray(model.components_), leading)}


def _nmf(counts: sp.csr_array, matrix: sp.csr_array, rank: int) -> dict[str, _Found]:
    model = NMF(rank, init="nndsvda", max_iter=400)
    weights = model.fit_transform(matrix)
    strengths = weights * np.linalg.norm(model.components_, axis=1)
    return {
        "NMF": _free(strengths.argmax(axis=1), model.components_),
        "NMF, regrouped": _free(learn_groups(wrap(matrix), strengths)[0], model.components_),
    }


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
    _estimator,
    _nmf,
    _allocation,
    _clusters,
)


def _print(title: str, values: dict[str, dict[str, float]], digits: int) -> None:
    names = list(next(iter(values.values())))
    rows = [[name, *(f"{value:.{digits}f}" for value in found.values())] for name, found in values.items()]
    means = [np.mean([found[name] for found in values.values()]) for name in names]
    print_table(title, ["collection", *names], [*rows, ["mean", *(f"{mean:.{digits}f}" for mean in means)]])
