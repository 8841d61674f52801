"""What two cores give against one, for selection, search, the convex model and weights.

Every piece of work runs in a child process whose libraries keep to one thread, and in one whose libraries have two. The
ceiling is what the machine gives at best: two processes that compute plain products at the same time, against one that
computes as many one after the other. Times are wall clock, the best of several runs, the children taking turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import gsnmf
from benchmarks._measuring import main, print_table, seconds, timed
from gsnmf.datasets import fully_random
from gsnmf.support.arrays import Doubles

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GSNMF_NUM_THREADS")
_ROOT = Path(__file__).parents[1]
_CHILD = "import sys; from benchmarks.cores import serve; serve(sys.argv[1])"
_N_PRODUCTS = 20

Work = Callable[[], object]


@dataclass(frozen=True)
class _Sizes:
    dense: tuple[int, int]
    sparse: tuple[int, int]
    n_entries: int
    rank: int
    small: tuple[int, int]
    repeats: int


_FULL = _Sizes((3000, 2000), (100_000, 20_000), 4_000_000, 20, (200, 150), repeats=5)
_QUICK = _Sizes((60, 50), (200, 100), 2000, 4, (20, 15), repeats=1)


def run(quick: bool) -> None:
    """Measure and print everything, in a few minutes; ``quick`` takes small matrices, whose figures mean little."""
    sizes = _QUICK if quick else _FULL
    print_table("Two cores against one", ("work", "one core", "two cores", "ratio"), _compared(sizes))


def _compared(sizes: _Sizes) -> Iterator[list[str]]:
    children = [_Child(sizes, n_threads) for n_threads in (1, 2, 1)]
    one, two, other = children
    try:
        for name in _WORKS:
            for child in (one, two):
                child.do(name)
            times = [(one.do("again"), two.do("again")) for _ in range(sizes.repeats)]
            yield [name, *_cells(times)]
        for child in (one, other):
            child.do(_PRODUCTS)
        times = [(2 * one.do("again"), _together(one, other)) for _ in range(sizes.repeats)]
        yield [f"ceiling: {_PRODUCTS}, two processes", *_cells(times)]
    finally:
        for child in children:
            child.close()


def _cells(times: list[tuple[float, float]]) -> list[str]:
    one, two = (min(kind) for kind in zip(*times, strict=True))
    return [seconds(one), seconds(two), f"{one / two:.2f}x"]


def _together(*children: _Child) -> float:
    for child in children:
        child.begin("again")
    return max(child.end() for child in children)


class _Child:
    """A process whose libraries have a given number of threads, and which works on command."""

    def __init__(self, sizes: _Sizes, n_threads: int) -> None:
        environment = os.environ | dict.fromkeys(_VARIABLES, str(n_threads))
        command = [sys.executable, "-c", _CHILD, "quick" if sizes is _QUICK else "full"]
        self._process = subprocess.Popen(
            command, env=environment, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, name: str) -> None:
        """Let it prepare and do the named work, or do the last one "again"."""
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)

    def end(self) -> float:
        """Seconds that the work took, once it is done."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the benchmark ended with exit code {self._process.wait()}.")
        return float(line)

    def do(self, name: str) -> float:
        """Seconds that the work takes."""
        self.begin(name)
        return self.end()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve(size: str) -> None:
    """Do, in a child process, the work that each line of standard input names, and print the seconds it took."""
    sizes = _QUICK if size == "quick" else _FULL
    works = _WORKS | {_PRODUCTS: _products}
    work: Work | None = None
    for line in sys.stdin:
        name = line.strip()
        if work is None or name != "again":
            work = works[name](sizes)
        print(timed(work)[0], flush=True)


def _dense(sizes: _Sizes) -> Doubles:
    return np.random.default_rng(0).random(sizes.dense)


def _sparse(sizes: _Sizes) -> sp.csr_array:
    m, n = sizes.sparse
    return sp.csr_array(sp.random_array((m, n), density=sizes.n_entries / (m * n), rng=np.random.default_rng(0)))


def _selection(sizes: _Sizes, *, method: str, sparse: bool = False) -> Work:
    return partial(gsnmf.select, _sparse(sizes) if sparse else _dense(sizes), sizes.rank, method=method)


def _automatic(sizes: _Sizes, *, sparse: bool) -> Work:
    matrix = _sparse(sizes)[: sizes.dense[0], : sizes.dense[1]] if sparse else _dense(sizes)
    return partial(gsnmf.factorize, matrix, sizes.rank, method="auto", effort="fast")


def _convex(sizes: _Sizes) -> Work:
    truth = fully_random(0.1, shape=sizes.small, n_columns=3, n_rows=2, random_state=0)
    return partial(gsnmf.select, np.asarray(truth.matrix), 5, method="convex")


def _weights(sizes: _Sizes, *, n_rows: int) -> Work:
    chosen = np.arange(sizes.rank)
    return partial(gsnmf.fit_weights, _dense(sizes), chosen, chosen[:n_rows])


def _products(sizes: _Sizes) -> Work:
    matrix = _dense(sizes)
    vector = np.ones(matrix.shape[1])
    return lambda: [matrix @ vector for _ in range(_N_PRODUCTS)]


_PRODUCTS = "products"
_WORKS: dict[str, Callable[[_Sizes], Work]] = {
    "GSPA, dense": partial(_selection, method="gspa"),
    "GSPA, sparse": partial(_selection, method="gspa", sparse=True),
    "SNPA": partial(_selection, method="snpa"),
    "auto, dense": partial(_automatic, sparse=False),
    "auto, sparse": partial(_automatic, sparse=True),
    "convex": _convex,
    "weights of columns": partial(_weights, n_rows=0),
    "weights of columns and rows": partial(_weights, n_rows=3),
}


if __name__ == "__main__":
    main(run)
