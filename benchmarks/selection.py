"""The fast path: choosing rows and columns by successive projection, and their weights, each against its peers.

Every comparison is one of two contestants that take turns in this process, after a warm-up; its target
is printed next to it. Peak memory is that of a fresh process, above what it holds when it starts, input included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from benchmarks import _peers as peers
from benchmarks._measuring import (
    Timing,
    main,
    matrix_bytes,
    megabytes,
    peak_memory,
    print_table,
    seconds,
    take_turns,
    yes,
)
from gsnmf import fit_weights
from gsnmf.datasets import fully_random, planted
from gsnmf.functions import select
from gsnmf.matrix.validation import check_matrix
from gsnmf.records import Selection
from gsnmf.support.arrays import Floats, RawMatrix

_Picks: TypeAlias = list[tuple[str, int]]

_HEADER = ("measured", "gsnmf", "peer", "ratio", "target", "met", "memory", "of peer", "notes")
_SPARSE_HEADER = ("measured", "gsnmf", "memory", "of matrix", "target", "met")
_ROUNDING = 1e-10
"""Relative errors that differ by no more count as equal."""
_LENIENT = 1e-4
_EXACT = 1e-8


@dataclass(frozen=True)
class _Sizes:
    """Sizes, and limits on time."""

    dense: tuple[int, int]
    rank: int
    sparse: tuple[int, int]
    n_nonzeros: int
    sparse_rank: int
    joint: tuple[int, int]
    joint_rank: tuple[int, int]
    repeats: int
    descent_tolerance: float
    alternation_seconds: float
    dense_memory: bool
    """Whether to measure memory even where it is not the point; each measurement takes a new process."""


_FULL = _Sizes(
    dense=(5000, 2000),
    rank=50,
    sparse=(20000, 20000),
    n_nonzeros=2_000_000,
    sparse_rank=30,
    joint=(100, 100),
    joint_rank=(20, 20),
    repeats=7,
    descent_tolerance=1e-4,
    alternation_seconds=10.0,
    dense_memory=True,
)
_QUICK = _Sizes(
    dense=(300, 200),
    rank=10,
    sparse=(2000, 2000),
    n_nonzeros=20_000,
    sparse_rank=5,
    joint=(30, 30),
    joint_rank=(3, 3),
    repeats=1,
    descent_tolerance=1e-2,
    alternation_seconds=0.2,
    dense_memory=False,
)


def run(quick: bool) -> None:
    """Measure and print everything, in a few minutes; ``quick`` takes small matrices, whose figures mean little."""
    sizes = _QUICK if quick else _FULL
    (m, n), rank = sizes.dense, sizes.rank
    print_table(f"Selection, dense {m} x {n}, rank {rank}", _HEADER, _dense_selection(sizes))
    print_table(f"GSPA and its floor, dense {m} x {n}, rank {rank}", _HEADER, _floor(sizes))
    print_table(f"Weights of columns, dense {m} x {n}, rank {rank}", _HEADER, _column_weights(sizes))
    (m, n), rank = sizes.sparse, sizes.sparse_rank
    print_table(f"Selection, sparse {m} x {n}, rank {rank}", _SPARSE_HEADER, _sparse_selection(sizes))
    (m, n), (r1, r2) = sizes.joint, sizes.joint_rank
    print_table(f"Weights of columns and rows, {m} x {n}, rank ({r1}, {r2})", _HEADER, _joint_weights(sizes))


def _dense_selection(sizes: _Sizes) -> list[list[str]]:
    matrix = np.random.default_rng(0).random(sizes.dense)
    pairs: tuple[tuple[str, str, Callable[..., _Picks], float], ...] = (
        ("GSPA / explicit residual", "gspa", peers.explicit_residual, 6.0),
        ("SPA / pivoted QR", "spa-columns", peers.pivoted_qr, 8.0),
    )
    table = []
    for name, method, peer_function, target in pairs:
        work = partial(select, rank=sizes.rank, method=method)
        peer = partial(peer_function, rank=sizes.rank)
        ours, theirs = take_turns(partial(work, matrix), partial(peer, matrix), repeats=sizes.repeats)
        identical = _picks(ours.result) == theirs.result
        table.append(
            [
                *_compared(name, ours, theirs, at_least=target),
                *(_memory(sizes, function, matrix) for function in (work, peer)),
                "same picks" if identical else "different picks",
            ]
        )
    return table


def _floor(sizes: _Sizes) -> list[list[str]]:
    """GSPA next to the passes over the matrix that it cannot do without, and what single precision gains."""
    double = np.random.default_rng(0).random(sizes.dense)
    single = double.astype(np.float32)
    gspa, passes = partial(select, rank=sizes.rank, method="gspa"), partial(peers.passes, rank=sizes.rank)
    table = []
    for precision, matrix in (("float64", double), ("float32", single)):
        ours, floor = take_turns(partial(gspa, matrix), partial(passes, matrix), repeats=sizes.repeats)
        table.append([*_compared(f"GSPA / its passes, {precision}", ours, floor, at_most=1.5), "", "", ""])
    gains: tuple[tuple[str, Callable[[Floats], object], float | None], ...] = (
        ("GSPA", gspa, 1.7),
        ("passes", passes, None),
    )
    for name, work, target in gains:
        fast, slow = take_turns(partial(work, single), partial(work, double), repeats=sizes.repeats)
        table.append([*_compared(f"{name}, float32 / float64", fast, slow, at_least=target), "", "", ""])
    return table


def _column_weights(sizes: _Sizes) -> list[list[str]]:
    """Weights of planted columns under noise, which are checked against those of `scipy.optimize.nnls`."""
    truth = planted(sizes.dense, sizes.rank, 0, noise_level=0.1, random_state=0)
    matrix, columns = np.asarray(truth.matrix), truth.columns
    work = partial(fit_weights, columns=columns, rows=())
    loop = partial(peers.reduced_nnls, columns=columns)
    descent = partial(peers.coordinate_descent, columns=columns, tolerance=sizes.descent_tolerance)
    ours, exact = take_turns(partial(work, matrix), partial(loop, matrix), repeats=sizes.repeats)
    ours_again, by_descent = take_turns(
        partial(work, matrix), partial(descent, matrix), repeats=sizes.repeats, warm_up=False
    )
    difference, descent_difference = (
        _difference(found, exact.result) for found in (ours.result.column_weights, by_descent.result)
    )
    one_sweep = partial(descent, tolerance=1.0)  # takes the memory of any number of sweeps
    memory, loop_memory, descent_memory = (_memory(sizes, function, matrix) for function in (work, loop, one_sweep))
    return [
        [
            *_compared("columns / reduced nnls loop", ours, exact, at_least=2.0),
            memory,
            loop_memory,
            f"differ by {difference:.0e}" + ("" if difference <= _EXACT else f", above {_EXACT:.0e}"),
        ],
        [
            *_compared("columns / scikit-learn", ours_again, by_descent, at_least=20.0),
            memory,
            descent_memory,
            f"scikit-learn is off by {descent_difference:.0e}",
        ],
    ]


def _sparse_selection(sizes: _Sizes) -> list[list[str]]:
    m, n = sizes.sparse
    density = sizes.n_nonzeros / (m * n)
    matrix = check_matrix(sp.random_array((m, n), density=density, format="csr", rng=np.random.default_rng(0)))
    size = matrix_bytes(matrix)
    works = {
        name: partial(select, rank=sizes.sparse_rank, method=method)
        for name, method in (("GSPA", "gspa"), ("SPA", "spa-columns"))
    }
    timings = take_turns(*(partial(work, matrix) for work in works.values()), repeats=sizes.repeats)
    table = [["the matrix itself", "", megabytes(size), "1.0x", "", ""]]
    for (name, work), timing in zip(works.items(), timings, strict=True):
        peak = peak_memory(work, matrix, partial(work, matrix[:100, :100]))
        multiple = peak / size
        table.append([name, seconds(timing.best), megabytes(peak), f"{multiple:.1f}x", "< 4x", yes(multiple < 4)])
    if sizes is _FULL:
        table.append(["SPA, Octave (quoted)", "610 ms", "143 MB", "in all", "", ""])
    return table


def _joint_weights(sizes: _Sizes) -> list[list[str]]:
    """Weights of the planted columns and rows, against alternation between the two sides down to the same error.

    Alternation is at its slowest close to the solution, so that it is also measured down to a slightly larger error.
    """
    m, n = sizes.joint
    r1, r2 = sizes.joint_rank
    cases: tuple[tuple[str, float, float, float | None], ...] = (
        ("no noise, same error", 0.0, _ROUNDING, 10.0),
        ("noise 0.1, same error", 0.1, _ROUNDING, 10.0),
        (f"noise 0.1, error + {_LENIENT:.0e}", 0.1, _LENIENT, None),
    )
    table = []
    for name, noise, slack, target in cases:
        truth = fully_random(noise, shape=(m, n), n_columns=r1, n_rows=r2, random_state=0)
        work = partial(fit_weights, truth.matrix, truth.columns, truth.rows)
        error = work().relative_error
        peer = partial(
            peers.alternating_nnls,
            np.asarray(truth.matrix),
            truth.columns,
            truth.rows,
            relative_error=(1 + slack) * error,
            max_seconds=sizes.alternation_seconds,
        )
        ours, theirs = take_turns(work, peer, repeats=sizes.repeats)
        end = theirs.result
        notes = f"error {error:.3g}; peer {end.relative_error:.3g} after {end.n_rounds} rounds"
        compared = _compared(f"alternation, {name}", ours, theirs, at_least=target, bound=not end.reached)
        table.append([*compared, "", "", notes])
    return table


def _compared(
    name: str,
    ours: Timing[Any],
    theirs: Timing[Any],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    bound: bool = False,
) -> list[str]:
    """Name, both times, their ratio, its target and whether it was met.

    The ratio says how many times faster we are; with ``at_most``, how many times slower. With ``bound`` the other time
    is only a lower bound.
    """
    prefix = "> " if bound else ""
    times = [name, seconds(ours.best), prefix + seconds(theirs.best)]
    if at_most is not None:
        ratio = ours.best / theirs.best
        return [*times, f"{ratio:.2f}x", f"<= {at_most:g}x", yes(ratio <= at_most)]
    ratio = theirs.best / ours.best
    target = ["", ""] if at_least is None else [f">= {at_least:g}x", yes(ratio >= at_least)]
    return [*times, f"{prefix}{ratio:.3g}x", *target]


def _memory(sizes: _Sizes, work: Callable[[RawMatrix], object], matrix: Floats) -> str:
    if not sizes.dense_memory:
        return ""
    return megabytes(peak_memory(work, matrix, partial(fit_weights, np.eye(3), (0, 1), ())))


def _picks(selection: Selection) -> _Picks:
    """Columns and rows in the order of choice."""
    chosen = {"columns": iter(selection.columns.tolist()), "rows": iter(selection.rows.tolist())}
    return [(letter, next(chosen[letter])) for letter in selection.order]


def _difference(weights: Floats, exact: Floats) -> float:
    return float(np.abs(weights - exact).max() / exact.max())


if __name__ == "__main__":
    main(run)
