"""The estimator: `transform` of sparse samples against scikit-learn's NMF, and what the first import and fit take.

Transforming is compared at the default tolerance of NMF, with the violation of the optimality conditions that each ends
with. Import, first and second fit are processor times of new processes that keep to one thread, with Python's bytecode
on disk as an installation leaves it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks._measuring import Timing, main, print_table, seconds, take_turns, yes
from gsnmf import GSNMF
from gsnmf.support.arrays import Floats

_N_COMPONENTS = 50
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GSNMF_NUM_THREADS"), "1")
_FIRST_FIT = """
import time
start = time.process_time()
import sklearn
base = time.process_time()
from gsnmf import GSNMF
imported = time.process_time()
import numpy as np
X = np.random.default_rng(0).random((500, 500))
model = GSNMF(20, effort="fast")
begin = time.process_time()
model.fit(X)
first = time.process_time()
model.fit(X)
print(base - start, imported - base, first - begin, time.process_time() - first)
"""


def run(quick: bool) -> None:
    """Measure and print everything, in about a minute; ``quick`` takes few samples, whose figures mean little."""
    n_samples = 500 if quick else 10_000
    header = ("components", "gsnmf", "NMF", "ratio", "target", "met", "violation", "of NMF")
    title = f"transform of {n_samples} sparse samples, {_N_COMPONENTS} components"
    repeats = 1 if quick else 5
    print_table(title, header, _transform(n_samples, repeats))
    print_table(
        "Processor time of new processes, one thread", ("measured", "time", "target", "met"), _first_fit(repeats)
    )


def _transform(n_samples: int, repeats: int) -> list[list[str]]:
    samples = _documents(2000 + n_samples, 5000)
    training, new = samples[:2000], samples[2000:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer = NMF(_N_COMPONENTS, init="nndsvda", max_iter=50).fit(training)
    peer.set_params(max_iter=200)
    half = _N_COMPONENTS // 2
    models = {
        f"{half} anchors, {half} samples": GSNMF((half, half), method="spa-both").fit(training),
        f"{_N_COMPONENTS} samples": GSNMF((0, _N_COMPONENTS), method="spa-both").fit(training),
    }
    table = []
    for name, model in models.items():
        ours, theirs = take_turns(partial(model.transform, new), partial(peer.transform, new), repeats=repeats)
        violation = _violation(new, ours.result, model.components_, model.feature_indices_.size)
        table.append(_compared(name, ours, theirs, violation, _violation(new, theirs.result, peer.components_, 0)))
    return table


def _compared(name: str, ours: Timing[Floats], theirs: Timing[Floats], violation: float, other: float) -> list[str]:
    ratio = theirs.best / ours.best
    met = ratio >= 1 and violation <= other
    times = [seconds(ours.best), seconds(theirs.best), f"{ratio:.3g}x"]
    return [name, *times, ">= 1x, no less exact", yes(met), f"{violation:.0e}", f"{other:.0e}"]


def _violation(samples: sp.csr_array, W: Floats, H: Floats, n_read: int) -> float:
    """Relative violation of the optimality conditions of all coefficients but the first, which are read off."""
    lengths = np.linalg.norm(H[n_read:], axis=1)
    free, basis = W[:, n_read:] * lengths, H[n_read:] / lengths[:, None]
    gradient = free @ (basis @ basis.T) + W[:, :n_read] @ (H[:n_read] @ basis.T) - samples @ basis.T
    return float(np.linalg.norm(np.minimum(free, gradient)) / np.linalg.norm(samples.data))


def _documents(n_documents: int, n_words: int, n_topics: int = 50, length: int = 80) -> sp.csr_array:
    """Counts of words drawn from mixtures of topics."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(length, rng.dirichlet(np.full(n_topics, 0.1), size=n_documents))
    documents, words = [], []
    for of_topic in counts.T:
        distribution = rng.dirichlet(np.full(n_words, 0.02))
        documents.append(np.repeat(np.arange(n_documents), of_topic))
        words.append(rng.choice(n_words, size=int(of_topic.sum()), p=distribution))
    at = np.concatenate(documents), np.concatenate(words)
    return sp.csr_array((np.ones(at[0].size), at), shape=(n_documents, n_words))


def _first_fit(repeats: int) -> list[list[str]]:
    """The best of several processes, after one that writes the bytecode."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | _ONE_THREAD | {"PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        _processor_times(environment)
        times = [min(times) for times in zip(*(_processor_times(environment) for _ in range(repeats)), strict=True)]
    imported, package, first, second = times
    measured = (
        ("import scikit-learn", imported, None),
        ("import gsnmf after it", package, 0.2),
        ("first fit of 500 x 500", first, second + 0.1),
        ("second fit of 500 x 500", second, None),
    )
    return [
        [name, seconds(value), *(("", "") if goal is None else (f"< {goal:g} s", yes(value < goal)))]
        for name, value, goal in measured
    ]


def _processor_times(environment: dict[str, str]) -> list[float]:
    command = [sys.executable, "-c", _FIRST_FIT]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(value) for value in outcome.stdout.split()]


if __name__ == "__main__":
    main(run)
