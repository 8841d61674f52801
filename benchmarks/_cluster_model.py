"""What a pass over a matrix costs on a cluster, from measured constants: a model, and a simulation with random task
times.

A pass sends vectors to the workers, does one task per chunk, and adds the results in a tree. The model counts bytes and
messages; the simulation hands the chunks out one by one to the worker that is free first, with times that vary, as a
Dask scheduler does.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

_MEMORY_BANDWIDTH = 2e9
"""Bytes per second that a thread reads or writes in vectors that are not in its cache."""


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
