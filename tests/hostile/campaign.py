"""A long draw of the properties: ``python tests/hostile/campaign.py MINUTES [SEED]``.

Draws cases of every property, damaged files of every format, and kills. Prints what was tried and what failed. Each
failure, shrunk by hypothesis, is added to ``failures.txt`` beside this file, whose cases `test_properties` then checks
for good.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

import gsnmf
from gsnmf.support.atomic_files import atomic_files
from hostile.cases import Case, cases
from hostile.damage import read_damaged, read_damaged_scenes
from hostile.properties import QUICK, SLOW, Property, holds

FAILURES = Path(__file__).with_name("failures.txt")
_AT_A_TIME = 25
_SELECT_AND_SAVE = """
import sys
import numpy as np
import gsnmf
M = np.random.default_rng(int(sys.argv[2])).random((60, 50))
print("begun", flush=True)
while True:
    result = gsnmf.factorize(M, 40, method="gspa", checkpoint=sys.argv[1] + "/checkpoint.npz")
    gsnmf.save(result, sys.argv[1] + "/result.npz")
"""
_WRITE_SETS = """
import os, sys
from gsnmf.support.atomic_files import atomic_files
print("begun", flush=True)
number = 0
while True:
    with atomic_files(sys.argv[1], "abc") as draft:
        for name in "abc":
            (draft / name).write_bytes(b"%d of %d" % (number, os.getpid()))
    number += 1
"""


class Campaign:
    """What was tried and what failed."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._seen: set[tuple[str, str, str]] = set()

    def draw(self, check: Property, number: int) -> None:
        """Draw some cases of a property; print and keep the smallest that fails, if it fails in a new way."""
        name, last = check.__name__, None

        def counted(case: Case) -> None:
            nonlocal last
            self.tried[name] += 1
            last = case
            holds(check, case)

        often = settings(max_examples=_AT_A_TIME, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        try:
            strategy = cases(every_method=number % 4 == 0, chunked=number % 2 == 1)
            seed(number)(often(given(strategy)(counted)))()
        except Exception as error:
            if isinstance(error, ExceptionGroup):
                error = error.exceptions[-1]
            if self._is_new(name, error) and last is not None:
                self._tell(name, error, last.to_json())
                with FAILURES.open("a", encoding="utf-8") as file:
                    file.write(f"{name} {last.to_json()}\n")

    def attempt(self, attack: Callable[[Path, np.random.Generator], int], number: int) -> None:
        """Try an attack that works on files in a folder."""
        name = attack.__name__
        with tempfile.TemporaryDirectory() as folder:
            try:
                self.tried[name] += attack(Path(folder), np.random.default_rng(number))
            except Exception as error:
                self._tell(name, error, f"seed {number}")

    def _is_new(self, name: str, error: Exception) -> bool:
        where = traceback.extract_tb(error.__traceback__)[-1]
        kind = name, type(error).__name__, f"{where.filename}:{where.lineno}"
        new = kind not in self._seen
        self._seen.add(kind)
        return new

    def _tell(self, name: str, error: Exception, case: str) -> None:
        self.failed[name] += 1
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print(f"{name}: {said} ({Path(where.filename).name}:{where.lineno})\n  {case}", flush=True)


def damaged_files(folder: Path, rng: np.random.Generator) -> int:
    """Damaged files of every format end no process."""
    return read_damaged(folder, rng, 30)


def damaged_scenes(folder: Path, rng: np.random.Generator) -> int:
    """Damaged spectral images of every format end no process."""
    return read_damaged_scenes(folder, rng, 30)


def kills(folder: Path, rng: np.random.Generator) -> int:
    """Two processes that select and save to the same files are killed; both files are whole, and a run goes on."""
    number = int(rng.integers(1000))
    killed = _kill([_SELECT_AND_SAVE, str(folder), str(number)], rng)
    M = np.random.default_rng(number).random((60, 50))
    expected = gsnmf.select(M, 40, method="gspa")
    assert gsnmf.select(M, 40, method="gspa", checkpoint=folder / "checkpoint.npz") == expected
    if (folder / "result.npz").exists():
        assert gsnmf.load(folder / "result.npz", M).selection == expected
    return killed


def kills_of_sets(folder: Path, rng: np.random.Generator) -> int:
    """Two processes that replace the same three files are killed; old and new are never mixed, and a run goes on."""
    killed = _kill([_WRITE_SETS, str(folder)], rng)
    paths = [folder / name for name in "abc"]
    seen = {path.read_bytes() for path in paths if path.exists()}
    assert len(seen) <= 1, seen
    with suppress(KeyboardInterrupt), atomic_files(folder, "abc"):
        raise KeyboardInterrupt  # the next writer first completes what was begun
    there = [path.read_bytes() for path in paths if path.exists()]
    assert len(there) in (0, 3), there
    assert len(set(there)) <= 1, there
    return killed


def _kill(arguments: list[str], rng: np.random.Generator) -> int:
    """Start a script twice, and kill both at random moments after they say that they have begun."""
    children = [subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE) for _ in range(2)]
    for child in children:
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"begun\n"
            time.sleep(rng.uniform(0.0, 2.0))
            child.kill()
    return len(children)


def main(minutes: float, number: int) -> int:
    """Draw until the time is over; the number of different failures."""
    campaign = Campaign()
    end = time.monotonic() + 60.0 * minutes
    while time.monotonic() < end:
        for check in QUICK + SLOW:
            if time.monotonic() < end:
                campaign.draw(check, number)
        for attack in (damaged_files, damaged_scenes, kills, kills_of_sets):
            if time.monotonic() < end:
                campaign.attempt(attack, number)
        number += 1
    for name, tried in campaign.tried.items():
        print(f"{name:<42} {tried:>8} tried {campaign.failed[name]:>6} failed")
    return campaign.failed.total()


if __name__ == "__main__":
    sys.exit(min(1, main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)))
