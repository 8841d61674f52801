"""Larger than memory: passes over matrices that are read chunk by chunk, in threads and on worker processes.

The matrices are sparse with word-like columns (a few are frequent), stored on disk in chunks of rows. A pass is
compared with reading all chunks once, by the same threads. Needs the extra ``gsnmf[scale]``.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import gsnmf
from benchmarks._large_matrices import Cluster, PassCost, Problem, StoredMatrix, pass_cost
from benchmarks._measuring import main, megabytes, print_table, resident_bytes, seconds, take_turns, timed
from gsnmf.matrix import wrap
from gsnmf.records import Selection, Weights
from gsnmf.search.effort import Effort
from gsnmf.support.arrays import Sparse
from gsnmf.weights import solve_weights

_HEADER = ("measured", "entries", "rank", "time", "passes", "one pass", "of reading", "peak memory", "notes")


@dataclass(frozen=True)
class _Sizes:
    """Sizes."""

    shape: tuple[int, int]
    """Shape of the matrices that grow."""
    row_entries: tuple[int, ...]
    ranks: tuple[int, ...]
    rank: int
    rows_per_chunk: int
    memory_limit: int
    """Memory of a worker; the matrix takes eight times as much."""
    large: tuple[int, int]
    large_row_entries: int
    large_rank: int
    searched: tuple[int, int]
    searched_row_entries: tuple[int, ...]
    searched_rank: int


_FULL = _Sizes(
    shape=(400_000, 50_000),
    row_entries=(25, 50, 100, 200),
    ranks=(5, 10, 20, 40),
    rank=10,
    rows_per_chunk=20_000,
    memory_limit=500 * 10**6,
    large=(1_000_000, 100_000),
    large_row_entries=103,  # a hundred million in all, without entries drawn twice
    large_rank=50,
    searched=(800_000, 47_000),
    searched_row_entries=(18, 36, 72),  # up to 56 million in all, without entries drawn twice
    searched_rank=20,
)
_QUICK = _Sizes(
    shape=(2000, 300),
    row_entries=(5, 10, 20, 40),
    ranks=(2, 3, 4, 5),
    rank=2,
    rows_per_chunk=500,
    memory_limit=300 * 10**6,
    large=(4000, 500),
    large_row_entries=20,
    large_rank=5,
    searched=(3000, 400),
    searched_row_entries=(5, 10),
    searched_rank=4,
)


def run(quick: bool) -> None:
    """Measure and print everything, in about a quarter of an hour; ``quick`` takes matrices too small to mean much."""
    sizes = _QUICK if quick else _FULL
    if find_spec("distributed") is None:
        raise ModuleNotFoundError("this benchmark needs Dask: pip install 'gsnmf[scale]'")
    growth(sizes)
    workers(sizes)
    if not quick:
        memory(sizes)
    large(sizes)
    search(sizes)
    plan()


def growth(sizes: _Sizes) -> None:
    """How the time of GSPA grows with the stored entries, and with the rank, with slopes of the logarithms."""
    m, n = sizes.shape
    by_entries: list[_Found] = []
    by_rank: list[_Found] = []
    with tempfile.TemporaryDirectory() as folder:
        for row_entries in sizes.row_entries:
            store = StoredMatrix.written(Path(folder, f"{row_entries}"), sizes.shape, row_entries, sizes.rows_per_chunk)
            by_entries.append(_measured(store, "gspa", sizes.rank))
        store = StoredMatrix.written(Path(folder, "ranks"), sizes.shape, sizes.row_entries[1], sizes.rows_per_chunk)
        by_rank.extend(_measured(store, "gspa", rank) for rank in sizes.ranks)
    slopes = [
        _slope([found.entries for found in by_entries], [found.seconds for found in by_entries]),
        _slope([found.rank for found in by_rank], [found.seconds for found in by_rank]),
    ]
    print_table(
        f"GSPA, sparse {m} x {n}, growing entries", _HEADER, [found.row("gspa, threads") for found in by_entries]
    )
    print(f"time grows with the entries to the power of {slopes[0]:.2f}")
    print_table(f"GSPA, sparse {m} x {n}, growing rank", _HEADER, [found.row("gspa, threads") for found in by_rank])
    print(f"time grows with the rank to the power of {slopes[1]:.2f}")


def workers(sizes: _Sizes) -> None:
    """The same on one worker process and on two, in wall-clock time and, for busy machines, in processor time."""
    table, runs, busy = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        store = StoredMatrix.written(Path(folder, "matrix"), sizes.shape, sizes.row_entries[-1], sizes.rows_per_chunk)
        for n_workers in (1, 2):
            with _cluster(n_workers) as client:
                _measured(store, "gspa", 1)  # imports and first reads
                before = _processor_seconds(client)
                runs.append(_measured(store, "gspa", sizes.rank))
                busy.append(_processor_seconds(client) - before)
            name = f"{n_workers} worker{'s' * (n_workers > 1)} of one thread"
            table.append(runs[-1].row(name, f"{busy[-1]:.1f} s of processors"))
        one_process, two_processes = _product_seconds(store, 1), _product_seconds(store, 2)
    one, two = runs
    efficiency, ceiling = one.seconds / (2 * two.seconds), one_process / two_processes
    print_table("Worker processes", _HEADER, table)
    print(f"efficiency of two workers: {efficiency:.0%}")
    print(f"efficiency of plain SciPy products in two processes, the most that the machine allows: {ceiling:.0%}")
    print(f"two workers relative to that: {efficiency / ceiling:.0%}")
    print(f"in processor time: {busy[0] / busy[1]:.0%}")


def _product_seconds(store: StoredMatrix, n_processes: int) -> float:
    """Time of products with a chunk in memory and its transpose, in several processes at once, each with its own."""
    with ProcessPoolExecutor(max_workers=n_processes, mp_context=get_context("spawn")) as processes:
        list(processes.map(_timed_products, [store] * n_processes, [1] * n_processes))  # they start and import
        return max(processes.map(_timed_products, [store] * n_processes, [20] * n_processes))


def _timed_products(store: StoredMatrix, repeats: int) -> float:
    chunk = store.chunk(0)
    vector = np.ones(chunk.shape[1])
    return timed(lambda: [chunk.T @ (chunk @ vector) for _ in range(repeats)])[0]


def _processor_seconds(client: Any) -> float:
    """Processor time of the workers and of this process, which schedules for them."""
    return float(sum(client.run(time.process_time).values())) + time.process_time()


def memory(sizes: _Sizes) -> None:
    """Peak memory of workers with a limit, on a dense matrix of eight times the limit made on the fly."""
    import dask.array as da

    n, height = 1000, 2000
    m = 8 * sizes.memory_limit // (8 * n)
    # Not da.random, whose chunks are tasks of their own that Dask makes before they are needed
    chunks = ((height,) * (m // height), (n,))
    matrix = da.map_blocks(partial(_random_chunk, height, n), chunks=chunks, dtype=float, meta=np.empty((0, 0)))
    with _cluster(2, memory_limit=sizes.memory_limit) as client:
        before = sorted(client.run(os.getpid).values())
        start = time.perf_counter()
        held = wrap(matrix)
        gsnmf.select(held, 3, method="gspa")
        elapsed = time.perf_counter() - start
        peaks = client.run(resident_bytes, "VmHWM").values()
        restarted = sorted(client.run(os.getpid).values()) != before
    row = [
        "gspa, 2 workers",
        f"{m * n:.1e}",
        "3",
        seconds(elapsed),
        f"{_n_passes(held):.3g}",
        seconds(elapsed / _n_passes(held)),
        "",
        megabytes(max(peaks)),
    ]
    limit = megabytes(sizes.memory_limit)
    print_table(
        f"Dense {m} x {n}, {megabytes(8 * m * n)}",
        _HEADER,
        [[*row, f"limit {limit}, {'some' if restarted else 'none'} restarted"]],
    )


def _random_chunk(height: int, n: int, block_id: tuple[int, int]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(block_id[0]).random((height, n))


def large(sizes: _Sizes, methods: tuple[str, ...] = ("gspa", "spa-columns")) -> None:
    """The large sparse matrix, each part in a fresh process, through Dask in two threads and in memory."""
    (m, n), rank = sizes.large, sizes.large_rank
    with tempfile.TemporaryDirectory() as folder:
        store = StoredMatrix.written(Path(folder, "matrix"), sizes.large, sizes.large_row_entries, sizes.rows_per_chunk)
        table = []
        picks: dict[str, Any] = {}
        for method in methods:
            found = _in_fresh_process(partial(_measured, store, method, rank))
            picks[method] = found.picks
            table.append(found.row(f"{method}, Dask"))
        found = _in_fresh_process(partial(_measured_in_memory, store, methods[0], rank))
        agreement = "same picks" if found.picks == picks[methods[0]] else "different picks"
        table.append(found.row(f"{methods[0]}, in memory", agreement))
        half = rank // 2
        chosen = dict(picks[methods[1]])["columns"][:half], dict(picks[methods[0]])["rows"][:half]
        table.append(_in_fresh_process(partial(_measured_weights, store, *chosen)).row("joint weights, Dask"))
        in_memory = _in_fresh_process(partial(_measured_weights_in_memory, store, *chosen))
        table.append(in_memory.row("joint weights, in memory"))
    print_table(f"Sparse {m} x {n}, {store.entries:.2e} entries, {megabytes(store.n_bytes)}", _HEADER, table)


def search(sizes: _Sizes, effort: Effort = "balanced") -> None:
    """The automatic search in memory and single precision, each size in a fresh process, after reading the matrix."""
    m, n = sizes.searched
    found: list[_Found] = []
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for row_entries in sizes.searched_row_entries:
            place = Path(folder, f"{row_entries}")
            store = StoredMatrix.written(place, sizes.searched, row_entries, sizes.rows_per_chunk, np.float32)
            one = _in_fresh_process(partial(_measured_search, store, sizes.searched_rank, effort))
            found.append(one)
            of_matrix = f"{one.peak / store.n_bytes:.1f}x"
            cells = [f"{one.entries:.2e}", f"{one.rank}", seconds(one.seconds), one.notes]
            table.append([*cells, megabytes(store.n_bytes), megabytes(one.peak), of_matrix])
    header = ("entries", "rank", "time", "notes", "matrix", "peak memory", "of the matrix")
    print_table(f"Automatic search ({effort}), sparse {m} x {n}, float32", header, table)
    slope = _slope([one.entries for one in found], [one.seconds for one in found])
    print(f"time grows with the entries to the power of {slope:.2f}")


def plan() -> None:
    """The cost model for a billion rows and a million columns on a hundred workers; see docs/guide/large_data.md."""
    cluster = Cluster(n_workers=100, threads=4, read=500e6, compute=4e-9, network=1e9)
    problem = Problem(n_rows=1e9, n_columns=1e6, entries=1e11, rank=50, chunk_entries=2e7)
    costs = {
        "spa-columns": (pass_cost(problem, cluster), 1),
        "gspa": (pass_cost(problem, cluster, tasks=10, long_vectors=problem.rank), 2),
    }
    table = [_plan_row(name, cost, problem.rank, passes) for name, (cost, passes) in costs.items()]
    header = ("method", "one pass", "all picks", "bottleneck", "moved per pass", "messages", "worker", "driver")
    print_table("Model: 1e9 x 1e6, 1e11 entries, rank 50, 100 workers of 4 threads", header, table)


def _plan_row(name: str, cost: PassCost, rank: int, passes: int) -> list[str]:
    return [
        name,
        seconds(cost.seconds),
        f"{cost.seconds * (1 + rank * passes) / 3600:.1f} h",
        cost.bottleneck,
        f"{cost.bytes_moved / 1e9:.2g} GB",
        f"{cost.n_messages}",
        f"{cost.worker_memory / 1e9:.2g} GB",
        f"{cost.driver_memory / 1e9:.3g} GB",
    ]


@dataclass(frozen=True)
class _Found:
    """What one run took."""

    entries: int
    rank: int
    seconds: float
    passes: float
    reading: float
    peak: int
    picks: list[tuple[str, list[int]]]
    notes: str = ""

    def row(self, name: str, notes: str = "") -> list[str]:
        seconds_per_pass = self.seconds / self.passes
        of_reading = f"{seconds_per_pass / self.reading:.2f}x" if self.reading else ""
        cells = [name, f"{self.entries:.2e}", f"{self.rank}", seconds(self.seconds), f"{self.passes:.4g}"]
        return [*cells, seconds(seconds_per_pass), of_reading, megabytes(self.peak), notes or self.notes]


def _n_passes(matrix: Any) -> float:
    """How often the data behind a matrix in chunks were read."""
    return float(matrix.passes.n_passes)


def _measured(store: StoredMatrix, method: str, rank: int) -> _Found:
    """Select, and for columns alone also the weights, through Dask; the time to read all chunks once."""
    array = store.array()
    touched = array.map_blocks(_touched, chunks=((1,) * len(store.chunks), (1,)), dtype=float, meta=np.empty((0, 0)))
    first, second = take_turns(touched.compute, touched.compute, repeats=1, warm_up=False)
    reading = min(first.best, second.best)  # the first also imports
    start = time.perf_counter()
    held = wrap(array)
    selection, notes = gsnmf.select(held, rank, method=method), ""
    if method != "gspa":
        notes = f"with weights, error {solve_weights(held, selection.columns, selection.rows).relative_error:.1%}"
    elapsed = time.perf_counter() - start
    return _Found(
        store.entries, rank, elapsed, _n_passes(held), reading, resident_bytes("VmHWM"), _picks(selection), notes
    )


def _measured_in_memory(store: StoredMatrix, method: str, rank: int) -> _Found:
    matrix = store.whole()
    elapsed, selection = timed(partial(gsnmf.select, matrix, rank, method=method))
    return _Found(store.entries, rank, elapsed, 2 * rank, 0.0, resident_bytes("VmHWM"), _picks(selection))


def _measured_search(store: StoredMatrix, rank: int, effort: Effort) -> _Found:
    matrix = store.whole()
    start, busy = time.perf_counter(), time.process_time()
    result = gsnmf.factorize(matrix, rank, effort=effort)
    elapsed, busy = time.perf_counter() - start, time.process_time() - busy
    notes = f"quality {result.quality:.2%}, {busy:.1f} s of processors"
    return _Found(store.entries, rank, elapsed, 1, 0.0, resident_bytes("VmHWM"), _picks(result.selection), notes)


def _measured_weights(store: StoredMatrix, columns: list[int], rows: list[int]) -> _Found:
    """Weights of columns and rows together, through Dask."""
    held = wrap(store.array())
    before = _n_passes(held) if held.squared_norm else 0.0  # without the first pass, which finds the norm
    start = time.perf_counter()
    weights = solve_weights(held, np.array(columns), np.array(rows))
    return _found_weights(store, weights, start, _n_passes(held) - before)


def _measured_weights_in_memory(store: StoredMatrix, columns: list[int], rows: list[int]) -> _Found:
    held = wrap(store.whole())
    start = time.perf_counter()
    return _found_weights(store, solve_weights(held, np.array(columns), np.array(rows)), start, 2)


def _found_weights(store: StoredMatrix, weights: Weights, start: float, passes: float) -> _Found:
    elapsed = time.perf_counter() - start
    (r1, _), (_, r2) = weights.column_weights.shape, weights.row_weights.shape
    notes = (
        f"{r1} columns, {r2} rows: {weights.n_iterations} iterations, violation {weights.optimality:.0e}, "
        f"error {weights.relative_error:.3%}"
    )
    return _Found(store.entries, r1 + r2, elapsed, passes, 0.0, resident_bytes("VmHWM"), [], notes)


def _picks(selection: Selection) -> list[tuple[str, list[int]]]:
    return [("columns", selection.columns.tolist()), ("rows", selection.rows.tolist())]


def _touched(chunk: Sparse) -> np.ndarray[Any, Any]:
    return np.array([[chunk.data.sum() + chunk.indices.max(initial=0)]], dtype=np.float64)


def _cluster(n_workers: int, memory_limit: int | str = "auto") -> Any:
    from distributed import Client

    return Client(
        n_workers=n_workers, threads_per_worker=1, memory_limit=memory_limit, dashboard_address=":0", processes=True
    )


def _in_fresh_process(work: Callable[[], _Found]) -> _Found:
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(work).result()


def _slope(sizes: list[int], times: list[float]) -> float:
    """Power with which times grow, by least squares on the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


if __name__ == "__main__":
    main(run)
