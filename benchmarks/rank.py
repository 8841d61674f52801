"""How often `gsnmf.choose_rank` finds a planted rank, how sure planted indices are, and what both cost.

Planted matrices of every kind and noise, pure noise, and the paper's matrices where they are at hand (``GSNMF_DATA``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import gsnmf
from benchmarks._measuring import main, print_table, timed
from gsnmf.datasets import fully_random, planted
from gsnmf.search.effort import Effort
from gsnmf.support.arrays import RawMatrix
from reproduction.matrices import PAPER_NAMES, PaperMatrix, load, missing_data

RANK = 10
"""Rank of all planted matrices."""
RANKS = range(2, 17)
NOISES = (0.02, 0.1, 0.3)
DRAWS = 50
"""Matrices of each kind and noise."""

_KINDS: dict[str, Callable[[float, int], RawMatrix]] = {
    "200 x 150, 6 columns and 4 rows": lambda noise, seed: _planted(6, 4, noise, seed),
    "200 x 150, 10 columns": lambda noise, seed: _planted(10, 0, noise, seed),
    "200 x 150, 10 rows": lambda noise, seed: _planted(0, 10, noise, seed),
    "fully random 100 x 100, 6 columns and 4 rows": lambda noise, seed: _random(6, 4, noise, seed),
    "fully random 100 x 100, 10 columns": lambda noise, seed: _random(10, 0, noise, seed),
    "fully random 100 x 100, 10 rows": lambda noise, seed: _random(0, 10, noise, seed),
}

_QUICK_MATRICES = ("tr23", "tr11")
_MOST_ENTRIES = 1_000_000
"""Stored entries of the paper's matrices that are tried."""


def run(quick: bool = False) -> None:
    """Measure and print; ``quick`` for two draws and two of the paper's matrices."""
    measure(2 if quick else DRAWS, quick=quick)


def measure(draws: int, *, quick: bool = False) -> None:
    """Measure and print, with a given number of matrices of each kind and noise level."""
    heading = ["matrices", *(f"{noise:.0%} noise" for noise in NOISES), "processor seconds each"]
    print_table(f"rank {RANK} recommended, of {draws}", heading, _recovered(draws))
    print_table("pure noise, 100 x 100", ["rank", "how often"], _ranks_of_noise(draws))
    print_table("stability, 200 x 150 and pure noise", ["matrix", "came back", "agreement"], _stabilities(quick))
    print_table("cost, processor seconds", ["matrix", "fit of rank 30", "ranks 2 to 30", "times"], _costs(quick))
    names = _QUICK_MATRICES if quick else PAPER_NAMES
    heading = ["matrix", "paper's rank", "recommended", "left-out error", "largest tried", "stability", "seconds"]
    rows = (_row(load(name)) for name in names if not missing_data(name))
    print_table("the paper's matrices", heading, (row for row in rows if row))


def _recovered(draws: int) -> Iterator[list[str]]:
    for name, make in _KINDS.items():
        began, right = time.process_time(), []
        for noise in NOISES:
            ranks = [gsnmf.choose_rank(make(noise, seed), RANKS).rank for seed in range(draws)]
            others = sorted({rank for rank in ranks if rank != RANK})
            right.append(f"{ranks.count(RANK)}" + (f" (others {', '.join(map(str, others))})" if others else ""))
        seconds = (time.process_time() - began) / (draws * len(NOISES))
        yield [name, *right, f"{seconds:.1f}"]


def _ranks_of_noise(draws: int) -> Iterator[list[str]]:
    ranks = [gsnmf.choose_rank(np.random.default_rng(seed).random((100, 100)), RANKS).rank for seed in range(draws)]
    for rank in sorted(set(ranks)):
        yield [str(rank), f"{ranks.count(rank)} of {draws}"]


def _stabilities(quick: bool) -> Iterator[list[str]]:
    matrices = {
        "planted, 2 % noise": _planted(6, 4, 0.02, 0),
        "fully random, 2 % noise": _random(6, 4, 0.02, 0),
        "noise": np.random.default_rng(0).random((100, 100)),
    }
    for name, matrix in matrices.items():
        stability = gsnmf.stability(gsnmf.factorize(matrix, RANK), n_repeats=3 if quick else 20)
        yield [name, f"{stability.overall.mean():.1%}", f"{stability.agreements.mean():.1%}"]


def _costs(quick: bool) -> Iterator[list[str]]:
    matrices = {"200 x 150": _planted(6, 4, 0.1, 0), "fully random 100 x 100": _random(6, 4, 0.1, 0)}
    documents = _QUICK_MATRICES[0]
    if not (quick or missing_data(documents)):
        matrices[documents] = load(documents).matrix
    for name, matrix in matrices.items():
        effort: Effort = "fast" if quick else "balanced"
        fit, _ = timed(partial(gsnmf.factorize, matrix, 30, effort=effort), processor=True)
        chosen, _ = timed(partial(gsnmf.choose_rank, matrix, effort=effort), processor=True)
        yield [name, f"{fit:.1f}", f"{chosen:.1f}", f"{chosen / fit:.2g}"]


def _row(data: PaperMatrix) -> list[str]:
    stored = getattr(data.matrix, "nnz", data.matrix.size)
    if stored > _MOST_ENTRIES:
        return []
    spent, choice = timed(partial(gsnmf.choose_rank, data.matrix, effort="fast"), processor=True)
    at = int(np.flatnonzero(choice.ranks == choice.rank)[0])
    return [
        data.name,
        str(data.rank),
        str(choice.rank),
        f"{choice.errors[at]:.1%}",
        "yes" if at == choice.ranks.size - 1 else "",
        f"{choice.stabilities[at]:.1%}",
        f"{spent:.1f}",
    ]


def _planted(n_columns: int, n_rows: int, noise: float, seed: int) -> RawMatrix:
    return planted((200, 150), n_columns, n_rows, noise_level=noise, random_state=seed).matrix


def _random(n_columns: int, n_rows: int, noise: float, seed: int) -> RawMatrix:
    return fully_random(noise, n_columns=n_columns, n_rows=n_rows, random_state=seed).matrix


if __name__ == "__main__":
    main(run)
