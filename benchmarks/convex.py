"""The convex model: time to a certified gap, against the paper's method and a generic solver, and how it scales.

Each solver starts from the matrix, GSPA and its weights included. The fast gradient method has no certificate of its
own: it is run for more and more iterations, and the longest run whose gap is still too large counts. All its figures
are therefore lower bounds. Its time is limited, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measuring import main, megabytes, peak_memory, print_table, seconds, timed, yes
from gsnmf.convex import solve_convex
from gsnmf.convex.fast_gradient import fast_gradient, memory_needed
from gsnmf.convex.model import ConvexModel, ConvexSolution
from gsnmf.convex.selection import convex_selection
from gsnmf.datasets import fully_random, planted
from gsnmf.matrix import wrap_in_memory
from gsnmf.selection.successive_projection import generalized_successive_projection
from gsnmf.support.arrays import Floats, RawMatrix
from gsnmf.weights import solve_weights
from reproduction.matrices import load
from reproduction.preselection import preselect

_GAP_HEADER = ("lambda~", "gap", "convex", "steps", "gs-fgm", "iterations", "ratio", "target", "met")
_PATH_HEADER = ("matrix", "lambda~ 1", "lambda~ 0.1", "ten", "ratio to 1", "ratio to 0.1", "target", "met")
_GENERIC_HEADER = ("matrix", "convex", "cvxpy with", "took", "ratio", "target", "met", "values differ by")
_SCALE_HEADER = ("planted", "nonzeros", "lambda~", "gap", "why it ended", "size", "steps", "time", "memory", "< 8 GB")

_GAPS = (1e-2, 1e-3)
_STRENGTHS = (4.0, 1.0)
_FIRST_ITERATIONS = 20
_MEMORY = 8_000_000_000


@dataclass(frozen=True)
class _Sizes:
    """Sizes, and limits on time."""

    random: tuple[int, int]
    random_rank: tuple[int, int]
    documents: int
    faces: tuple[str, ...]
    peer_seconds: float
    generic: tuple[tuple[int, str | None], ...]
    """Rows and columns for generic solvers, and their names: cvxpy's own choice takes over half an hour for 100."""
    dense: tuple[int, ...]
    sparse: tuple[int, ...]
    n_nonzeros_per_column: int


_FULL = _Sizes(
    random=(100, 100),
    random_rank=(20, 20),
    documents=500,
    faces=("CBCL", "Yale"),
    peer_seconds=150.0,
    generic=((50, None), (100, "SCS")),
    dense=(1250, 2500, 5000),
    sparse=(5000, 10000, 20000),
    n_nonzeros_per_column=100,
)
_QUICK = _Sizes(
    random=(30, 30),
    random_rank=(3, 3),
    documents=40,
    faces=(),
    peer_seconds=0.5,
    generic=((12, None), (12, "SCS")),
    dense=(60, 120),
    sparse=(100, 200),
    n_nonzeros_per_column=20,
)
_SCALE_RANK = (15, 15)
_SCALE_NOISE = 0.1
_SCALE_STRENGTHS = {False: 4.0, True: 100.0}
"""lambda~ for dense and for sparse matrices: in a sparse one the noise looks like many weak columns."""


def run(quick: bool) -> None:
    """Measure and print everything; ``quick`` takes small matrices, whose figures mean little."""
    sizes = _QUICK if quick else _FULL
    if quick:
        print("\nSmall matrices: the targets are those of the full run.")
    matrices = dict(_matrices(sizes))
    for name, given in matrices.items():
        print_table(f"Time to a relative gap: {name}", _GAP_HEADER, _to_gaps(*given, sizes.peer_seconds))
    faces = [name for name in sizes.faces if name in matrices]
    if faces:
        print_table("Path of ten lambdas", _PATH_HEADER, (_path(name, matrices[name]) for name in faces))
    if importlib.util.find_spec("cvxpy"):
        rows = (_generic(size, sizes.random_rank, solver) for size, solver in sizes.generic)
        print_table("Against generic solvers", _GENERIC_HEADER, rows)
    else:
        print("\ncvxpy is not installed: no comparison with a generic solver.")
    print_table("One certified solution, gap 1e-2", _SCALE_HEADER, _scale(sizes))


def _matrices(sizes: _Sizes) -> Iterator[tuple[str, tuple[Floats, int]]]:
    """Names, matrices and ranks of the comparison; those of the paper only where its data are at hand."""
    (m, n), (r1, r2) = sizes.random, sizes.random_rank
    truth = fully_random(0.113, shape=sizes.random, n_columns=r1, n_rows=r2, random_state=0)
    yield f"fully random {m} x {n}", (np.asarray(truth.matrix), r1 + r2)
    try:
        documents = load("reviews")
    except FileNotFoundError:
        print("\nThe paper's data are not at hand: neither documents nor faces.")
        return
    size, held = sizes.documents, wrap_in_memory(documents.matrix)
    reduced = preselect(held, size, size).reduced(held)
    yield f"reviews, reduced to {size} x {size}", (reduced, min(documents.rank, size))
    for name in sizes.faces:
        faces = load(name)
        yield name, (np.asarray(faces.matrix), faces.rank)


def _to_gaps(matrix: Floats, rank: int, peer_seconds: float) -> Iterator[list[str]]:
    for strength in _STRENGTHS:
        times = [timed(partial(_solve, matrix, rank, strength, gap)) for gap in _GAPS]
        peers = _gradient_times(matrix, rank, times[0][1].strength, peer_seconds)
        for gap, (took, solution), (peer, iterations) in zip(_GAPS, times, peers, strict=True):
            ratio = peer / took
            certified = "" if solution.converged else f" (gap {solution.gap:.0e})"
            targeted = gap == _GAPS[0] and min(matrix.shape) > 100
            yield [
                f"{strength:g}",
                f"{gap:g}",
                seconds(took) + certified,
                str(solution.n_iterations),
                f"> {seconds(peer)}",
                f"> {iterations}",
                f"> {ratio:.3g}x",
                ">= 10x" if targeted else "",
                yes(ratio >= 10) if targeted else "",
            ]


def _gradient_times(matrix: Floats, rank: int, strength: float, max_seconds: float) -> list[tuple[float, int]]:
    """For each gap, seconds and iterations of the longest run of the fast gradient method that does not reach it.

    Runs double in length, so that the method needs more than this and, unless the time was up, less than twice as much.
    """
    if memory_needed((matrix.shape[0], matrix.shape[1])) > _MEMORY:
        return [(np.inf, 0) for _ in _GAPS]
    found: list[tuple[float, int]] = []
    before, iterations = (0.0, 0), _FIRST_ITERATIONS
    while len(found) < len(_GAPS):
        took, solution = timed(partial(_gradient, matrix, rank, strength, iterations))
        while len(found) < len(_GAPS) and solution.gap <= _GAPS[len(found)]:
            found.append(before)
        before = took, iterations
        if 2 * took > max_seconds:
            break
        iterations *= 2
    return found + [before] * (len(_GAPS) - len(found))


def _gradient(matrix: Floats, rank: int, strength: float, iterations: int) -> ConvexSolution:
    held = wrap_in_memory(matrix)
    start = generalized_successive_projection(held, rank)
    weights = solve_weights(held, start.columns, start.rows)
    return fast_gradient(
        ConvexModel(held, strength),
        start.columns,
        start.rows,
        weights.column_weights,
        weights.row_weights,
        tolerance=1e-300,  # never: the gap decides
        max_iterations=iterations,
    )


def _solve(matrix: RawMatrix, rank: int, strength: float, gap: float) -> ConvexSolution:
    return solve_convex(matrix, rank, relative_strength=strength, tolerance=gap)


def _path(name: str, given: tuple[Floats, int]) -> list[str]:
    """Selection from ten lambdas, as `gsnmf.select` does it, against one cold solution."""
    matrix, rank = given
    cold = [timed(partial(_solve, matrix, rank, strength, _GAPS[0]))[0] for strength in (1.0, 0.1)]
    path, _ = timed(partial(convex_selection, wrap_in_memory(matrix), rank))
    one, small = cold
    cells = [name, seconds(one), seconds(small), seconds(path), f"{path / one:.2f}x", f"{path / small:.2f}x"]
    return [*cells, "< 4x", yes(path < 4 * one)]


def _generic(size: int, rank: tuple[int, int], solver: str | None) -> list[str]:
    """The same model given to a solver that knows nothing about it."""
    cvxpy: Any = importlib.import_module("cvxpy")
    r1, r2 = min(rank[0], size // 3), min(rank[1], size // 3)
    matrix = np.asarray(fully_random(0.113, shape=(size, size), n_columns=r1, n_rows=r2, random_state=0).matrix)
    took, solution = timed(partial(_solve, matrix, r1 + r2, _STRENGTHS[0], 1e-4))
    X, Y = cvxpy.Variable((size, size), nonneg=True), cvxpy.Variable((size, size), nonneg=True)
    constraints = []
    for Z, weights in ((X, matrix.sum(axis=0)), (Y.T, matrix.sum(axis=1))):
        spread = cvxpy.reshape(cvxpy.diag(Z), (size, 1), order="C") @ np.ones((1, size))
        constraints += [cvxpy.multiply(weights[:, None] / weights, Z) <= spread, cvxpy.diag(Z) <= 1]
    penalty = solution.strength * (cvxpy.trace(X) + cvxpy.trace(Y))
    problem = cvxpy.Problem(
        cvxpy.Minimize(0.5 * cvxpy.sum_squares(matrix - matrix @ X - Y @ matrix) + penalty), constraints
    )
    peer, value = timed(partial(problem.solve, solver=solver))
    difference = abs(value - solution.objective) / solution.objective
    name = str(problem.solver_stats.solver_name)
    cells = [f"fully random {size} x {size}", seconds(took), name, seconds(peer), f"{peer / took:.3g}x", ">= 100x"]
    return [*cells, yes(peer >= 100 * took), f"{difference:.0e}"]


def _scale(sizes: _Sizes) -> Iterator[list[str]]:
    """Planted matrices of growing size, each solved in a process of its own that records its time."""
    r1, r2 = _SCALE_RANK
    for sparse, sides in ((False, sizes.dense), (True, sizes.sparse)):
        strength = _SCALE_STRENGTHS[sparse]
        for side in sides:
            density = sizes.n_nonzeros_per_column / side if sparse else 1.0
            truth = planted(
                (side, side), r1, r2, density=density, noise_level=_SCALE_NOISE, sparse=sparse, random_state=0
            )
            with tempfile.TemporaryDirectory() as folder:
                record = Path(folder, "record.json")
                work = partial(_recorded, record=record, rank=r1 + r2, strength=strength)
                peak = peak_memory(work, truth.matrix, partial(_solve, np.eye(3), 1, 1.0, 0.1))
                result = json.loads(record.read_text(encoding="utf-8"))
            yield [
                f"{'sparse' if sparse else 'dense'} {side} x {side}",
                f"{density * side * side:.1e}",
                f"{strength:g}",
                f"{result['gap']:.1e}",
                result["stop_reason"],
                "{} + {}".format(*result["size"]),
                str(result["steps"]),
                seconds(result["seconds"]),
                megabytes(peak),
                yes(peak <= _MEMORY),
            ]


def _recorded(matrix: RawMatrix, record: Path, rank: int, strength: float) -> None:
    took, solution = timed(partial(_solve, matrix, rank, strength, _GAPS[0]))
    facts = {
        "seconds": took,
        "gap": solution.gap,
        "stop_reason": solution.stop_reason,
        "size": [solution.columns.size, solution.rows.size],
        "steps": solution.n_iterations,
    }
    record.write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main(run)
