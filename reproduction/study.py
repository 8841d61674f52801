"""An experiment: trials that are measured one by one, a file for each finished trial, and what all of them show.

Trials run in several processes, each with one thread, so that results do not depend on how many processes there are.
A trial is on disk as soon as it is finished. A run that was killed goes on with the trials that have no file yet.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from threadpoolctl import threadpool_limits

from gsnmf._parallel import in_one_thread
from gsnmf.support.atomic_files import atomic_write
from reproduction import find_study
from reproduction.matrices import missing_data
from reproduction.report import Section

Record = dict[str, Any]
Key = tuple[Any, ...]
"""Texts and integers that name a trial; the data set comes first if there is one."""
Report = Callable[[int, int], None]
"""Called after every trial with the number of finished trials and the number of all."""


@dataclass(frozen=True)
class Settings:
    """How much to run, and on what.

    Attributes
    ----------
    quick : bool
        A few trials in place of all.
    data : path, optional
        Folder of the data files; by default the one that ``GSNMF_DATA`` names.
    levels : tuple of int, optional
        Which of the twenty noise levels, counted from zero; by default all, or some if ``quick``.
    n_matrices : int, optional
        Matrices per noise level.
    """

    quick: bool = False
    data: Path | None = None
    levels: tuple[int, ...] | None = None
    n_matrices: int | None = None


@dataclass(frozen=True)
class Measurement:
    """What one trial gave: rows of the table of results, and arrays that pictures are made of."""

    records: Sequence[Record]
    arrays: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """All that is known about a study when it is presented.

    Attributes
    ----------
    table : DataFrame
        The records of all finished trials, sorted by trial; empty if there are none.
    arrays : dict
        The arrays of each trial, by its key.
    missing : dict
        Data sets that are not at hand, and why.
    out : path
        Folder of the output; pictures go to its ``figures``.
    other : callable
        The table of another study in the same folder.
    """

    table: pd.DataFrame
    arrays: Mapping[Key, Mapping[str, Any]]
    missing: Mapping[str, str]
    out: Path
    other: Callable[[str], pd.DataFrame]


@dataclass(frozen=True)
class Study:
    """An experiment: one run that serves one or several figures and tables.

    Attributes
    ----------
    name : str
        Name of its results on disk.
    parts : dict
        Name of each figure or table on the command line, and what it is.
    trials : callable
        Keys of the trials of given settings.
    measure : callable
        Run one trial. It depends on its key and settings alone, never on what ran before.
    present : callable
        The section of a part.
    datasets : callable
        Data sets that given settings need. Trials of those that are not at hand are left out.
    """

    name: str
    parts: Mapping[str, str]
    trials: Callable[[Settings], list[Key]]
    measure: Callable[[Key, Settings], Measurement]
    present: Callable[[str, Results], Section]
    datasets: Callable[[Settings], Sequence[str]] = lambda settings: ()

    def missing(self, settings: Settings) -> dict[str, str]:
        """Data sets that the settings need and that are not at hand, and why."""
        reasons = {name: missing_data(name, settings.data) for name in self.datasets(settings)}
        return {name: reason for name, reason in reasons.items() if reason}

    def sections(self, parts: Sequence[str], out: Path, settings: Settings) -> list[Section]:
        """Present all results in the output folder, and write them as ``NAME.csv``; empty if there are none."""
        table, arrays = load_trials(self.name, out)
        missing = self.missing(settings)
        if not table.empty:
            table.to_csv(out / "results" / f"{self.name}.csv", index=False)
        elif not missing:
            return []
        results = Results(table, arrays, missing, out, lambda name: load_trials(name, out)[0])
        return [self.present(part, results) for part in parts]


def save_trial(name: str, key: Key, measurement: Measurement, out: Path) -> None:
    """Write a finished trial of a study; it is on disk when this returns."""
    path = _file(name, key, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        joblib.dump((key, measurement), stream)


def load_trials(name: str, out: Path) -> tuple[pd.DataFrame, dict[Key, Mapping[str, Any]]]:
    """All records of a study as one table, sorted by trial, and the arrays of each trial."""
    trials = [joblib.load(path) for path in sorted((out / "results" / name).glob("*.joblib"))]
    records = [record for _, measurement in trials for record in measurement.records]
    return pd.DataFrame(records), {key: measurement.arrays for key, measurement in trials}


def forget_trials(name: str, out: Path) -> None:
    """Remove all results of a study."""
    shutil.rmtree(out / "results" / name, ignore_errors=True)


def _file(name: str, key: Key, out: Path) -> Path:
    """Numbers are padded, so that files sort as keys do."""
    trial = "-".join(f"{part:03d}" if isinstance(part, int) else part for part in key)
    return out / "results" / name / f"{trial}.joblib"


def note_environment(out: Path, facts: Mapping[str, Any]) -> None:
    """Add what a run used to ``environment.jsonl``, after what earlier runs used."""
    with (out / "results" / "environment.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


def environments(out: Path) -> list[dict[str, Any]]:
    """What the runs that made the results in a folder used."""
    path = out / "results" / "environment.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def run_trials(study: Study, settings: Settings, out: Path, *, workers: int, report: Report) -> int:
    """Run the trials that have no file in the output folder yet; return how many were run.

    Parameters
    ----------
    study : Study
        One that `reproduction.find_study` knows.
    settings : Settings
    out : path
    workers : int
        Processes; with one, the trials run in this process.
    report : callable
    """
    missing = study.missing(settings)
    keys = [key for key in study.trials(settings) if key[0] not in missing]
    left = [key for key in keys if not _file(study.name, key, out).exists()]
    report(len(keys) - len(left), len(keys))
    measured: Iterator[tuple[Key, Measurement]]
    if workers == 1 or len(left) <= 1:
        measured = ((key, _measure(study.name, key, settings)) for key in left)
    else:
        measured = _in_processes(study.name, left, settings, workers)
    for count, (key, measurement) in enumerate(measured, start=1):
        save_trial(study.name, key, measurement, out)
        report(len(keys) - len(left) + count, len(keys))
    return len(left)


def _measure(name: str, key: Key, settings: Settings) -> Measurement:
    with in_one_thread(), threadpool_limits(limits=1):
        return find_study(name).measure(key, settings)


def _in_processes(name: str, keys: list[Key], settings: Settings, workers: int) -> Iterator[tuple[Key, Measurement]]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(workers, len(keys)), mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    )
    try:
        asked = {pool.submit(_measure, name, key, settings): key for key in keys}
        for future in as_completed(asked):
            yield asked[future], future.result()
        pool.shutdown()
    except BaseException:  # also an interrupt: do not wait for trials whose results nobody will read
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one handles interrupts
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker as soon as the process that started it is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
