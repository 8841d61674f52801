"""Missing entries: what is found and predicted next to usual ways to fill holes, and what it costs.

Planted matrices have six columns and four rows that make up everything, and noise. The error of a prediction is that of
hidden entries, divided by the norm of their noise, which no method can predict: 1 would be perfect. The oracle knows
which columns and rows were planted and sees all of their entries, hidden ones too; it only has to fit their weights.
Times are processor times of one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.impute import KNNImputer, SimpleImputer

from benchmarks._measuring import main, megabytes, print_table, resident_bytes, seconds, timed
from gsnmf import factorize, fit_weights
from gsnmf._parallel import single_threaded_blas
from gsnmf.datasets import Planted, planted
from gsnmf.matrix.input import observe
from gsnmf.nmf import hals
from gsnmf.support.arrays import Doubles, Flags, Indices
from gsnmf.weights.observed import solve_observed_weights

_SHAPE, _PLANTED, _NOISE = (200, 150), (6, 4), 0.05
_MATRICES = 25
_BLOCK = (20, 15)

_Hide = Callable[[Doubles, np.random.Generator], Flags]


def run(quick: bool) -> None:
    """Measure and print everything, in about ten minutes; ``quick`` takes few matrices."""
    header = ("hidden", "indices found", "ours", "oracle", "NMF", "10 nearest rows", "column mean")
    title = f"error on hidden entries / noise, {_SHAPE[0]} x {_SHAPE[1]}, noise {_NOISE:.0%}"
    print_table(title, header, _predictions(2 if quick else _MATRICES))
    print_table("cost", ("what", "with", "without", "ratio", "target"), _costs(quick))
    of_ratings = ("ratings", "matrix", "indices found", "error on hidden / noise", "processor time", "peak")
    print_table(f"ratings, six columns and four rows, noise {_NOISE:.0%}", of_ratings, [_of_ratings(quick)])


def _at_random(share: float) -> _Hide:
    return lambda matrix, rng: rng.random(matrix.shape) < share


def _blocks(matrix: Doubles, rng: np.random.Generator) -> Flags:
    """Blocks, until half of the entries are hidden."""
    hidden = np.zeros(matrix.shape, dtype=bool)
    while hidden.mean() < 0.5:
        i, j = (int(rng.integers(1 - size, length)) for size, length in zip(_BLOCK, matrix.shape, strict=True))
        hidden[max(0, i) : i + _BLOCK[0], max(0, j) : j + _BLOCK[1]] = True
    return hidden


def _large_ones(matrix: Doubles, rng: np.random.Generator) -> Flags:
    """Half of the entries, each with its rank among all as the probability."""
    ranks = matrix.ravel().argsort().argsort().reshape(matrix.shape)
    return np.asarray(rng.random(matrix.shape) < ranks / matrix.size)


_PATTERNS: dict[str, _Hide] = {
    "30 %": _at_random(0.3),
    "50 %": _at_random(0.5),
    "70 %": _at_random(0.7),
    "50 %, in blocks": _blocks,
    "50 %, large ones more often": _large_ones,
}


def _predictions(n_matrices: int) -> Iterator[tuple[str, ...]]:
    for name, hide in _PATTERNS.items():
        errors = np.array([_errors(seed, hide) for seed in range(n_matrices)])
        found, *others = errors.mean(axis=0)
        yield name, f"{found:.1%}", *(f"{error:.2f}" for error in others)


def _errors(seed: int, hide: _Hide) -> tuple[float, ...]:
    truth = planted(_SHAPE, *_PLANTED, noise_level=_NOISE, random_state=seed)
    matrix = np.asarray(truth.matrix)
    hidden = hide(matrix, np.random.default_rng(1000 + seed))
    seen = np.where(hidden, np.nan, matrix)

    def error(filled: Any) -> float:
        noise = np.linalg.norm((np.asarray(truth.noiseless) - matrix)[hidden])
        return float(np.linalg.norm((filled - matrix)[hidden]) / noise)

    _, result = timed(lambda: factorize(seen, sum(_PLANTED), effort="fast", missing_values=np.nan))
    _, free = timed(lambda: hals(seen, sum(_PLANTED), missing_values=np.nan, random_state=0))
    right = np.isin(result.columns, truth.columns).sum() + np.isin(result.rows, truth.rows).sum()
    return (
        float(right) / sum(_PLANTED),
        error(result.reconstruct()),
        error(_oracle(truth, matrix, seen)),
        error(free.W @ free.H),
        error(KNNImputer(n_neighbors=10, keep_empty_features=True).fit_transform(seen)),
        error(SimpleImputer(keep_empty_features=True).fit_transform(seen)),
    )


def _oracle(truth: Planted, matrix: Doubles, seen: Doubles) -> Doubles:
    C, R = matrix[:, truth.columns], matrix[truth.rows]
    weights = solve_observed_weights(observe(seen, missing_values=np.nan), C, R)
    return np.asarray(C @ weights.column_weights + weights.row_weights @ R)


def _costs(quick: bool) -> Iterator[tuple[str, ...]]:
    shape = (300, 200) if quick else (1000, 800)
    matrix = np.asarray(planted(shape, *_PLANTED, noise_level=_NOISE, random_state=0).matrix)
    seen = np.where(np.random.default_rng(0).random(shape) < 0.3, np.nan, matrix)
    for effort in ("fast",) if quick else ("fast", "balanced"):
        yield _ratio(
            f"factorize, 30 % missing, {shape[0]} x {shape[1]}, {effort}",
            lambda effort=effort: factorize(seen, 10, effort=effort, missing_values=np.nan),  # type: ignore[misc]
            lambda effort=effort: factorize(matrix, 10, effort=effort),  # type: ignore[misc]
            "<= 3x",
        )
    rng = np.random.default_rng(1)
    samples = rng.dirichlet(np.full(8, 0.5), 2_000 if quick else 50_000) @ rng.random((8, 100))
    yield _ratio(
        f"weights of 8 rows that sum to one, {len(samples)} samples",
        lambda: fit_weights(samples, [], range(8), sum_to_one="rows"),
        lambda: fit_weights(samples, [], range(8)),
        "<= 2x",
    )


def _of_ratings(quick: bool) -> tuple[str, ...]:
    shape, n_ratings = ((300, 200), 6_000) if quick else ((100_000, 20_000), 10_000_000)
    rng = np.random.default_rng(0)
    ratings, truth = _ratings(shape, n_ratings, rng)
    spent, result = timed(
        lambda: factorize(ratings, sum(_PLANTED), effort="fast", missing_values="unstored"), processor=True
    )
    found = np.isin(result.columns, truth.columns).sum() + np.isin(result.rows, truth.rows).sum()
    i, j = (rng.integers(0, length, 100_000) for length in shape)
    expected = truth.at(i, j)
    predicted = np.einsum("ek,ke->e", result.W[i], result.H[:, j])
    error = np.sqrt(np.mean((predicted - expected) ** 2) + truth.noise**2) / truth.noise
    sizes = f"{ratings.nnz:,}", f"{shape[0]:,} x {shape[1]:,}"
    peak = megabytes(resident_bytes("VmHWM"))
    return *sizes, f"{found} of {sum(_PLANTED)}", f"{error:.2f}", seconds(spent), peak


@dataclass(frozen=True)
class _Ratings:
    """Where the planted columns and rows are, and the factors that make up everything."""

    columns: Indices
    rows: Indices
    left: Doubles
    right: Doubles
    noise: float

    def at(self, i: Indices, j: Indices) -> Doubles:
        """Entries without noise."""
        return np.asarray(np.einsum("ek,ke->e", self.left[i], self.right[:, j]))


def _ratings(shape: tuple[int, int], n_ratings: int, rng: np.random.Generator) -> tuple[sp.csr_array, _Ratings]:
    """Entries at random places of a matrix that some of its columns and rows make up; they cross in zeros."""
    (m, n), (r1, r2) = shape, _PLANTED
    columns, rows = rng.choice(n, r1, replace=False), rng.choice(m, r2, replace=False)
    left = np.hstack([rng.random((m, r1)), 0.4 * rng.dirichlet(np.full(r2, 0.3), m)])
    right = np.vstack([0.6 * rng.dirichlet(np.full(r1, 0.3), n).T, rng.random((r2, n))])
    left[rows], right[:, columns] = np.eye(r1 + r2)[r1:], np.eye(r1 + r2)[:, :r1]
    places = np.unique(rng.integers(0, m * n, n_ratings))
    truth = _Ratings(columns, rows, left, right, 0.0)
    entries = truth.at(places // n, places % n)
    noise = _NOISE * float(np.sqrt(np.mean(entries**2)))
    entries = np.maximum(entries + noise * rng.normal(size=entries.size), 0.0)
    indptr = np.searchsorted(places, n * np.arange(m + 1))
    return sp.csr_array((entries, places % n, indptr), shape=shape), replace(truth, noise=noise)


def _ratio(name: str, work: Callable[[], Any], peer: Callable[[], Any], target: str) -> tuple[str, ...]:
    with single_threaded_blas():
        ours, theirs = (min(timed(one, processor=True)[0] for _ in range(3)) for one in (work, peer))
    return name, seconds(ours), seconds(theirs), f"{ours / theirs:.2f}x", target


if __name__ == "__main__":
    main(run)
