"""What a pass over a matrix costs on a cluster, from measured constants: a model, and a simulation of its chances.

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
"""Bytes that a thread reads or writes in a second, in vectors that are not in its cache."""


@dataclass(frozen=True)
class Cluster:
    """Workers and what they can do, all in bytes and seconds.

    Attributes
    ----------
    n_workers, threads : int
        Workers, and threads of each.
    read : float
        Bytes that a worker reads in a second from where the chunks are.
    compute : float
        Seconds that a product takes for each stored entry in one thread.
    network : float
        Bytes that a worker or the driver sends or receives in a second.
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
    """A matrix in chunks of rows, with as many stored entries a chunk as ``chunk_entries``."""

    n_rows: float
    n_columns: float
    entries: float
    rank: int
    chunk_entries: float
    bytes_an_entry: float = 12.0

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
        Of a chunk: to read it, for its products, and to add them up.
    long_vectors : int
        How many vectors as long as the matrix has rows stay on the workers between passes, besides three of norms: as
        many as columns are chosen for GSPA, none for SPA on columns. They never travel.
    """
    lanes = cluster.n_workers * cluster.threads
    chunk_bytes = problem.chunk_entries * problem.bytes_an_entry
    reading = problem.entries * problem.bytes_an_entry / (cluster.n_workers * cluster.read)
    scheduling = tasks * problem.n_chunks * cluster.overhead
    short, long = 8 * problem.n_columns, 8 * problem.n_rows / cluster.n_workers
    # A chunk's part of the basis is written anew when it grows, while the old one is there
    kept = long * (long_vectors + 6) if long_vectors else 0.0
    basis = problem.n_rows * long_vectors * 16 / (lanes * _MEMORY_BANDWIDTH)
    computing = problem.entries * cluster.compute / lanes + basis
    # A short vector goes from worker to worker to all, and each adds up its own chunks before the tree of workers
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
