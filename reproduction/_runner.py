"""Trials over several processes.

Every worker uses one thread: workers share the cores, and results must not depend on how many there are. Only the
process that asked for the trials writes results.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import connection

from threadpoolctl import threadpool_limits

from gsnmf._parallel import in_one_thread
from reproduction import find_study
from reproduction._store import Store
from reproduction._study import Key, Measurement, Settings, Study, trial_id

Report = Callable[[int, int, str], None]
"""Called after every trial with how many are finished, how many there are, and which one it was."""


def run_trials(study: Study, settings: Settings, store: Store, *, workers: int, report: Report) -> int:
    """Run the trials that are not in the store yet, and add each to it; return how many were run.

    Parameters
    ----------
    study : Study
        One that `reproduction.find_study` knows.
    settings : Settings
    store : Store
        Where finished trials are stored.
    workers : int
        Processes; with one, the trials run in this process.
    report : callable
    """
    keys = study.trials(settings)
    finished = store.begin()
    left = [key for key in keys if trial_id(key) not in finished]
    report(len(keys) - len(left), len(keys), "")
    measured = _in_this_process if workers == 1 or len(left) <= 1 else _in_processes
    for count, (key, measurement) in enumerate(measured(study, left, settings, workers), start=1):
        store.append(key, measurement)
        report(len(keys) - len(left) + count, len(keys), trial_id(key))
    return len(left)


def _in_this_process(
    study: Study, keys: list[Key], settings: Settings, workers: int
) -> Iterator[tuple[Key, Measurement]]:
    for key in keys:
        with _one_thread():
            measurement = study.measure(key, settings)
        yield key, measurement


def _in_processes(study: Study, keys: list[Key], settings: Settings, workers: int) -> Iterator[tuple[Key, Measurement]]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(workers, len(keys)), mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    )
    try:
        asked = {pool.submit(_measure, study.name, key, settings): key for key in keys}
        for future in as_completed(asked):
            yield asked[future], future.result()
        pool.shutdown()
    except BaseException:  # also an interrupt: do not wait for trials that nobody will read
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _measure(name: str, key: Key, settings: Settings) -> Measurement:
    with _one_thread():
        return find_study(name).measure(key, settings)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides what an interrupt means
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker as soon as the process that started it is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    with in_one_thread(), threadpool_limits(limits=1):
        yield
