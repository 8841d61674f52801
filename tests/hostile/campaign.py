"""A long draw of the properties: ``python tests/hostile/campaign.py MINUTES [SEED]``.

Draws cases of every property, damaged files of every format, and kills. Prints what was tried and what failed. Each
failure, shrunk by hypothesis, is added to ``failures.txt`` beside this file, whose cases `test_properties` then checks
for good.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

import gsnmf
from hostile.cases import Case, cases
from hostile.damage import read_damaged
from hostile.properties import QUICK, SLOW, Property

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
            check(case)

        often = settings(max_examples=_AT_A_TIME, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        try:
            seed(number)(often(given(cases(every_method=number % 4 == 0))(counted)))()
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
    return read_damaged(folder, rng, 40)


def kills(folder: Path, rng: np.random.Generator) -> int:
    """Two processes that select and save to the same files are killed; both files are whole, and a run goes on."""
    number = int(rng.integers(1000))
    command = [sys.executable, "-c", _SELECT_AND_SAVE, str(folder), str(number)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in children:
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
            time.sleep(rng.uniform(0.0, 2.0))
            os.kill(child.pid, signal.SIGKILL)
    M = np.random.default_rng(number).random((60, 50))
    expected = gsnmf.select(M, 40, method="gspa")
    assert gsnmf.select(M, 40, method="gspa", checkpoint=folder / "checkpoint.npz") == expected
    if (folder / "result.npz").exists():
        assert gsnmf.load(folder / "result.npz", M).selection == expected
    return len(children)


def main(minutes: float, number: int) -> int:
    """Draw until the time is over; the number of different failures."""
    campaign = Campaign()
    end = time.monotonic() + 60.0 * minutes
    while time.monotonic() < end:
        for check in QUICK + SLOW:
            if time.monotonic() < end:
                campaign.draw(check, number)
        for attack in (damaged_files, kills):
            if time.monotonic() < end:
                campaign.attempt(attack, number)
        number += 1
    for name, tried in campaign.tried.items():
        print(f"{name:<42} {tried:>8} tried {campaign.failed[name]:>6} failed")
    return campaign.failed.total()


if __name__ == "__main__":
    sys.exit(min(1, main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)))
