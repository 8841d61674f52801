"""The command line of a benchmark, times, peak memory, facts about the machine, and tables.

Times are wall clock. The contestants of a comparison take turns, so that all meet the same load of the machine, and the
best of several runs counts: other work on the machine only ever adds to a time.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import joblib
import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from gsnmf.support.arrays import RawMatrix
from gsnmf.support.formatting import text_table

_LIBRARIES = ("numpy", "scipy", "scikit-learn")

_MAX_SECONDS = 10.0
"""No comparison begins another turn after this time."""

_T = TypeVar("_T")
_S = TypeVar("_S")


def main(run: Callable[[bool], None]) -> None:
    """Run a benchmark from the command line, between facts about the machine and its load afterwards."""
    parser = argparse.ArgumentParser(description=sys.modules[run.__module__].__doc__)
    parser.add_argument("--quick", action="store_true", help="a short version with small matrices")
    quick: bool = parser.parse_args().quick
    print("\n".join(f"{name:<10} {fact}" for name, fact in machine_facts().items()), flush=True)
    if quick:
        print("\nSmall matrices: targets are those of the full run, and figures mean little.")
    try:
        run(quick)
    except (FileNotFoundError, ModuleNotFoundError) as error:  # data or peers that are not installed
        sys.exit(str(error))
    print(f"\nload at the end: {_load()}")


@dataclass(frozen=True)
class Timing(Generic[_T]):
    """Seconds that a piece of work took in each of its runs, and what the shortest one returned."""

    seconds: tuple[float, ...]
    result: _T

    @property
    def best(self) -> float:
        """The shortest run: the one that was disturbed least."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The run in the middle."""
        return statistics.median(self.seconds)


def take_turns(
    work: Callable[[], _T],
    peer: Callable[[], _S],
    *,
    repeats: int,
    warm_up: bool = True,
    max_seconds: float = _MAX_SECONDS,
) -> tuple[Timing[_T], Timing[_S]]:
    """Time two pieces of work in turn: each once, then each again.

    Parameters
    ----------
    work, peer : callables without arguments
        The contestants.
    repeats : int
        Runs of each that are timed, at most.
    warm_up : bool
        Run each once before, untimed, so that first touches of memory are not counted.
    max_seconds : float
        No further turn begins after this time, but the first always does.

    Examples
    --------
    >>> ours, theirs = take_turns(lambda: 1, lambda: 2, repeats=3)
    >>> ours.result, theirs.result, len(theirs.seconds)
    (1, 2, 3)
    """
    if warm_up:
        work(), peer()
    deadline = time.perf_counter() + max_seconds
    of_work, of_peer = _once_more(work), _once_more(peer)
    while len(of_work.seconds) < repeats and time.perf_counter() < deadline:
        of_work, of_peer = _once_more(work, of_work), _once_more(peer, of_peer)
    return of_work, of_peer


def _once_more(work: Callable[[], _T], before: Timing[_T] | None = None) -> Timing[_T]:
    elapsed, result = timed(work)
    if before is None:
        return Timing((elapsed,), result)
    return Timing((*before.seconds, elapsed), result if elapsed < before.best else before.result)


def timed(work: Callable[[], _T], *, processor: bool = False) -> tuple[float, _T]:
    """Seconds that one call takes, of wall clock or ``processor`` time, and what it returns.

    Warnings are left out, because the tables say what converged.
    """
    clock = time.process_time if processor else time.perf_counter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = clock()
        result = work()
        return clock() - start, result


def peak_memory(
    work: Callable[[RawMatrix], object], matrix: RawMatrix, warm_up: Callable[[], object] | None = None
) -> int:
    """Bytes by which ``work(matrix)`` raises the resident memory of a fresh process at its peak, the matrix included.

    The process imports what ``work`` needs and calls ``warm_up``; what it holds then is the start from which the bytes
    are counted. Then it reads the matrix from a file, which takes no more memory than the matrix, and works on it.

    Parameters
    ----------
    work, warm_up : callables that can be pickled
        Functions of a module, or a `functools.partial` of one.
    matrix : ndarray, csr_array or csc_array
        The input.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matrix")
        _write(matrix, path)
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
            return process.submit(_peak_of, work, path, warm_up).result()


def _peak_of(work: Callable[[RawMatrix], object], path: Path, warm_up: Callable[[], object] | None) -> int:
    if warm_up is not None:
        warm_up()
    start = resident_bytes("VmRSS")
    work(_read(path))
    return resident_bytes("VmHWM") - start


def resident_bytes(field: str) -> int:
    """Resident memory of this process: now (VmRSS) or at its peak (VmHWM); the peak where nothing else is known.

    On Linux, ``ru_maxrss`` includes the process that started this one, so the kernel's own account is read instead.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith(f"{field}:"))
        return int(line.split()[1]) * 1024
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _write(matrix: RawMatrix, path: Path) -> None:
    if isinstance(matrix, np.ndarray):
        np.save(path.with_suffix(".npy"), matrix)
    else:
        sp.save_npz(path.with_suffix(".npz"), matrix, compressed=False)


def _read(path: Path) -> RawMatrix:
    dense = path.with_suffix(".npy")
    return cast("RawMatrix", np.load(dense) if dense.exists() else sp.load_npz(path.with_suffix(".npz")))


def matrix_bytes(matrix: RawMatrix) -> int:
    """Bytes of the arrays that make up a matrix."""
    if isinstance(matrix, np.ndarray):
        return matrix.nbytes
    return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)


def machine_facts() -> dict[str, str]:
    """What the figures depend on: processor, cores, load, libraries."""
    return {
        "processor": f"{_processor()}, {joblib.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        "BLAS": ", ".join(sorted({_blas(pool) for pool in threadpool_info() if pool["user_api"] == "blas"}))
        or "unknown",
        "load": _load(),
    }


def _load() -> str:
    """Load averages of the machine: with other work on it, times mean little."""
    if not hasattr(os, "getloadavg"):
        return "unknown"
    return "{:.1f}, {:.1f}, {:.1f} (1, 5, 15 minutes)".format(*os.getloadavg())


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        for line in cpus.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _blas(pool: dict[str, Any]) -> str:
    name = " ".join(str(pool[key]) for key in ("internal_api", "version", "architecture") if pool.get(key))
    return f"{name} ({pool['num_threads']} threads)"


def seconds(value: float) -> str:
    """A time for people."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{1000 * value:.0f} ms" if value >= 0.1 else f"{1000 * value:.3g} ms"


def megabytes(value: int) -> str:
    """An amount of memory for people."""
    return f"{value / 1e6:.0f} MB"


def yes(met: bool) -> str:
    """Whether a target was met, for people."""
    return "yes" if met else "no"


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows of cells under a header.

    On a terminal, rows appear as they are measured. Elsewhere the table is printed at the end, or as far as it got if
    the measurement is interrupted.
    """
    if sys.stdout.isatty():
        _print_rich(title, header, rows)
        return
    measured: list[Sequence[str]] = []
    try:
        measured.extend(rows)
    finally:
        if measured:
            print("\n".join(["", title, *text_table(header, measured)]), flush=True)


def _print_rich(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.markup import escape
    from rich.table import Table

    table = Table(*header, title=title, title_justify="left")
    # refreshed by hand: a thread that did it would run beside what is measured
    with Live(table, console=Console(highlight=False), auto_refresh=False, vertical_overflow="visible") as live:
        for cells in rows:
            table.add_row(*map(escape, cells))
            live.refresh()
