"""Sparse matrices on disk in chunks of rows, and a model of what a pass over one costs on a cluster.

Columns are word-like: a few are frequent. A pass sends vectors to the workers, does one task per chunk, and adds the
results in a tree. The model counts bytes and messages; a simulation hands the chunks out one by one to the worker that
is free first, with times that vary, as a Dask scheduler does.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Sparse

_MEMORY_BANDWIDTH = 2e9
"""Bytes per second that a thread reads or writes in vectors that are not in its cache."""


@dataclass(frozen=True)
class StoredMatrix:
    """A sparse matrix in chunks of rows on disk."""

    folder: Path
    shape: tuple[int, int]
    chunks: tuple[int, ...]
    entries: int
    n_bytes: int

    @classmethod
    def written(
        cls,
        folder: Path,
        shape: tuple[int, int],
        row_entries: int,
        rows_per_chunk: int,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> StoredMatrix:
        """Draw a matrix chunk by chunk and write it."""
        folder.mkdir()
        m, n = shape
        sizes = tuple(min(rows_per_chunk, m - start) for start in range(0, m, rows_per_chunk))
        entries = n_bytes = 0
        for number, size in enumerate(sizes):
            chunk = _drawn((size, n), row_entries, number).astype(dtype, copy=False)
            entries += chunk.nnz
            for part in ("data", "indices", "indptr"):
                array = getattr(chunk, part)
                n_bytes += array.nbytes
                np.save(folder / f"{number}.{part}.npy", array)
        return cls(folder, shape, sizes, entries, n_bytes)

    def array(self) -> Any:
        """The matrix as a Dask array that reads a chunk when it needs it."""
        import dask.array as da

        return da.map_blocks(
            partial(_read_chunk, folder=self.folder, n_columns=self.shape[1]),
            chunks=(self.chunks, (self.shape[1],)),
            dtype=np.float64,
            meta=np.empty((0, 0)),
        )

    def whole(self) -> Sparse:
        """The matrix in memory, which is never held twice."""
        data = np.empty(self.entries, dtype=self.chunk(0).dtype)
        indices, indptr = np.empty(self.entries, dtype=np.int32), np.zeros(self.shape[0] + 1, dtype=np.int32)
        entry = row = 0
        for number, height in enumerate(self.chunks):
            chunk = self.chunk(number)
            data[entry : entry + chunk.nnz], indices[entry : entry + chunk.nnz] = chunk.data, chunk.indices
            indptr[row + 1 : row + 1 + height] = entry + chunk.indptr[1:]
            entry, row = entry + chunk.nnz, row + height
        return sp.csr_array((data, indices, indptr), shape=self.shape)

    def chunk(self, number: int) -> Sparse:
        """One chunk of rows."""
        parts = tuple(np.load(self.folder / f"{number}.{part}.npy") for part in ("data", "indices", "indptr"))
        return sp.csr_array(parts, shape=(parts[2].size - 1, self.shape[1]))


def _read_chunk(*, folder: Path, n_columns: int, block_id: tuple[int, int]) -> Sparse:
    return StoredMatrix(folder, (0, n_columns), (), 0, 0).chunk(block_id[0])


def _drawn(shape: tuple[int, int], row_entries: int, seed: int) -> Sparse:
    """Rows of a few entries each; the first columns are the most frequent, and topics change along the rows."""
    rng = np.random.default_rng(seed)
    m, n = shape
    topics = rng.integers(0, 64, size=(m, 1))
    columns = (n * rng.random((m, row_entries)) ** 3).astype(np.int64)
    columns = (columns + topics * (n // 128)) % n
    values = rng.exponential(size=columns.size) * np.repeat(rng.lognormal(size=m), row_entries)
    chunk = sp.csr_array((values, columns.ravel(), np.arange(0, columns.size + 1, row_entries)), shape=shape)
    chunk.sum_duplicates()
    chunk.indices, chunk.indptr = chunk.indices.astype(np.int32), chunk.indptr.astype(np.int32)
    return chunk


@dataclass(frozen=True)
class Cluster:
    """Workers and what they can do, all in bytes and seconds.

    Attributes
    ----------
    n_workers, threads : int
        Workers, and threads of each.
    read : float
        Bytes per second that a worker reads from where the chunks are stored.
    compute : float
        Seconds that a product takes for each stored entry in one thread.
    network : float
        Bytes per second that a worker or the driver sends or receives.
    overhead : float
        Seconds that the scheduler spends on a task.
    spread : float
        Standard deviation of the logarithm of the time that a task takes.
    """

    n_workers: int
    threads: int
    read: float
    compute: float
    network: float
    overhead: float = 3e-4
    spread: float = 0.3


@dataclass(frozen=True)
class Problem:
    """A matrix in chunks of rows, with ``chunk_entries`` stored entries per chunk."""

    n_rows: float
    n_columns: float
    entries: float
    rank: int
    chunk_entries: float
    bytes_per_entry: float = 12.0

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return max(1, math.ceil(self.entries / self.chunk_entries))


@dataclass(frozen=True)
class PassCost:
    """Seconds of the parts of a pass, which overlap; bytes and messages; memory of a worker and of the driver."""

    seconds: float
    reading: float
    computing: float
    scheduling: float
    sending: float
    bytes_moved: float
    n_messages: int
    worker_memory: float
    driver_memory: float

    @property
    def bottleneck(self) -> str:
        """The part that takes longest."""
        parts = {name: getattr(self, name) for name in ("reading", "computing", "scheduling", "sending")}
        return max(parts, key=lambda name: parts[name])


def pass_cost(problem: Problem, cluster: Cluster, *, tasks: int = 3, long_vectors: int = 0, seed: int = 0) -> PassCost:
    """Cost of one pass.

    Parameters
    ----------
    problem, cluster : Problem, Cluster
    tasks : int
        Tasks per chunk: to read it, to compute its products, and to add them up.
    long_vectors : int
        Number of vectors with one entry per row that stay on the workers between passes, besides three of norms: one
        per chosen column for GSPA, none for SPA on columns. They are never sent.
    """
    lanes = cluster.n_workers * cluster.threads
    chunk_bytes = problem.chunk_entries * problem.bytes_per_entry
    reading = problem.entries * problem.bytes_per_entry / (cluster.n_workers * cluster.read)
    scheduling = tasks * problem.n_chunks * cluster.overhead
    short, long = 8 * problem.n_columns, 8 * problem.n_rows / cluster.n_workers
    # A growing basis is copied chunk by chunk while the old one is still there
    kept = long * (long_vectors + 6) if long_vectors else 0.0
    basis = problem.n_rows * long_vectors * 16 / (lanes * _MEMORY_BANDWIDTH)
    computing = problem.entries * cluster.compute / lanes + basis
    # A short vector is passed on from worker to worker; each adds up its own chunks before the tree of workers
    steps = math.ceil(math.log2(max(2, cluster.n_workers)))
    sending = 2 * steps * short / cluster.network
    task = chunk_bytes * cluster.threads / cluster.read + problem.chunk_entries * cluster.compute
    busy = _simulated(problem.n_chunks, lanes, task, cluster.spread, seed)
    return PassCost(
        seconds=max(busy + basis, scheduling) + sending,
        reading=reading,
        computing=computing,
        scheduling=scheduling,
        sending=sending,
        bytes_moved=2 * cluster.n_workers * short,
        n_messages=tasks * problem.n_chunks + 2 * cluster.n_workers,
        worker_memory=cluster.threads * 3 * chunk_bytes + 10 * short + kept,
        driver_memory=2 * problem.rank * short,
    )


def _simulated(n_tasks: int, lanes: int, seconds: float, spread: float, seed: int) -> float:
    """Time until all tasks are done, each by whoever is free first."""
    times = np.random.default_rng(seed).lognormal(-(spread**2) / 2, spread, n_tasks) * seconds
    free = [0.0] * lanes
    for duration in times:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)
