"""The methods that people compare with, against the public implementations that they would otherwise install.

- NMF: `gsnmf.nmf.hals` against scikit-learn's coordinate descent, and nimfa where it is installed, from the same kind
  of random start: the time to scikit-learn's error, and the error after scikit-learn's time. scikit-learn's defaults
  are shown too.
- SNPA and XRAY against SPA, so that figures from other machines can be compared: the best public code takes 139 and 333
  times the time of SPA on such a matrix (27.8 s and 66.6 s against 0.20 s).
- Quality of HALS and of minimum-volume NMF on the paper's matrices, next to what the paper prints.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import NMF

import gsnmf
from benchmarks._measuring import main, print_table, seconds, timed, yes
from gsnmf.datasets import planted
from gsnmf.matrix import wrap
from gsnmf.nmf import hals, minimum_volume
from gsnmf.support.arrays import RawMatrix
from reproduction.matrices import PAPER_NAMES, load

_NMF_HEADER = ("matrix", "rank", "peer", "its time", "its error", "ours to it", "ratio", "target", "our error", "met")
_SELECTION_HEADER = ("method", "time", "times SPA", "best public code", "allowed", "met")
_QUALITY_HEADER = ("matrix", "HALS", "paper", "difference", "minimum volume", "paper", "difference", "met")

_PUBLIC = {"snpa": 139.0, "xray": 333.0}
"""Time of the best public code, in units of the time of SPA on the same machine."""
_MAX_ITERATIONS = 2000


def run(quick: bool) -> None:
    """Measure and print everything; ``quick`` takes small matrices, whose figures mean little."""
    shape, rank = ((60, 40), 5) if quick else ((5000, 2000), 50)
    dense = np.asarray(planted(shape, rank // 2, rank - rank // 2, noise_level=0.01, random_state=0).matrix)
    names = ["tr23"] if quick else ["CBCL", "Frey", "NG10"]
    matrices = {f"planted {shape[0]} x {shape[1]}": (dense, rank), **_at_hand(names)}
    rows = (row for name, (matrix, size) in matrices.items() for row in _nmf(name, matrix, size))
    print_table("NMF, against scikit-learn", _NMF_HEADER, rows)
    print_table("Selection, against SPA", _SELECTION_HEADER, _selection(dense, rank))
    qualities = _quality(["tr23"] if quick else PAPER_NAMES)
    print_table("Quality on the paper's matrices, percent", _QUALITY_HEADER, qualities)


def _at_hand(names: list[str]) -> dict[str, tuple[RawMatrix, int]]:
    found: dict[str, tuple[RawMatrix, int]] = {}
    for name in names:
        try:
            data = load(name)
        except FileNotFoundError as error:
            print(f"\n{name} is left out: {error}")
        else:
            found[name] = data.matrix, data.rank
    return found


def _nmf(name: str, matrix: RawMatrix, rank: int) -> Iterator[list[str]]:
    _, ours = timed(partial(_factor, matrix, rank, _MAX_ITERATIONS))
    errors = np.sqrt(ours.objective)
    for peer, work in _peers(rank):
        try:
            took, (W, H) = timed(partial(work, matrix))
        except Exception as problem:  # a peer may fail on any matrix, and that is a result
            yield [name, str(rank), peer, f"failed: {type(problem).__name__}", *[""] * 6]
            continue
        held = wrap(matrix)
        error = float(np.sqrt(held.squared_residual(W, H) / held.squared_norm))
        reached = np.flatnonzero(errors <= error)
        n_iterations = int(reached[0]) if reached.size else errors.size - 1
        own, _ = timed(partial(_factor, matrix, rank, max(1, n_iterations)))
        after = errors[min(errors.size - 1, int(max(1, n_iterations) * took / own))]
        default = peer.endswith("defaults")
        met = "" if default else yes(bool(reached.size) and took >= 1.5 * own and after < error)
        target = "" if default else ">= 1.5x, lower error"
        theirs = [name, str(rank), peer, seconds(took), f"{error:.4f}"]
        yield [*theirs, seconds(own) if reached.size else "never", f"{took / own:.2f}x", target, f"{after:.4f}", met]


def _factor(matrix: RawMatrix, rank: int, max_iterations: int) -> Any:
    return hals(matrix, rank, tolerance=1e-6, max_iterations=max_iterations, random_state=0)


def _peers(rank: int) -> Iterator[tuple[str, Callable[[RawMatrix], tuple[Any, Any]]]]:
    def fit(**options: Any) -> Callable[[RawMatrix], tuple[Any, Any]]:
        def work(matrix: RawMatrix) -> tuple[Any, Any]:
            model = NMF(rank, random_state=0, **options)
            return model.fit_transform(matrix), model.components_

        return work

    yield "scikit-learn, random, tol 1e-6", fit(solver="cd", init="random", tol=1e-6)
    yield "scikit-learn, defaults", fit()
    try:
        nimfa: Any = importlib.import_module("nimfa")
    except ImportError:
        return

    def nimfa_work(matrix: RawMatrix) -> tuple[Any, Any]:
        fitted = nimfa.Nmf(matrix, rank=rank, seed="random_vcol", max_iter=200)().fit
        return np.asarray(fitted.basis()), np.asarray(fitted.coef())

    yield "nimfa Nmf", nimfa_work


def _selection(matrix: RawMatrix, rank: int) -> Iterator[list[str]]:
    def took(method: str) -> float:
        return min(timed(partial(gsnmf.select, matrix, rank, method=method))[0] for _ in range(2))

    unit = took("spa-columns")
    yield ["spa-columns", seconds(unit), "1x", "", "", ""]
    for method, public in _PUBLIC.items():
        own = took(method)
        allowed = public / 10
        times = own / unit
        yield [method, seconds(own), f"{times:.1f}x", f"{public:.0f}x", f"{allowed:.1f}x", yes(times <= allowed)]


def _quality(names: list[str] | tuple[str, ...]) -> Iterator[list[str]]:
    for name in names:
        try:
            data = load(name)
        except FileNotFoundError:
            continue
        _, free = timed(partial(hals, data.matrix, data.rank, n_restarts=3, random_state=0))
        _, small = timed(partial(minimum_volume, data.matrix, data.rank, random_state=0))
        first, second = 100 * free.quality, 100 * small.quality
        nmf, volume = data.published.get("nmf", np.nan), data.published.get("minimum-volume", np.nan)
        met = yes(first >= nmf - 0.1 and second >= volume - 0.3) if data.same_matrix else "another matrix"
        yield [name, f"{first:.2f}", f"{nmf:.2f}", f"{first - nmf:+.2f}",
               f"{second:.2f}", f"{volume:.2f}", f"{second - volume:+.2f}", met]  # fmt: skip


if __name__ == "__main__":
    main(run)
