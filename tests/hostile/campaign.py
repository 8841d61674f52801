"""A long draw of the properties: ``python tests/hostile/campaign.py MINUTES [SEED]``.

Prints what was tried and what failed. Each failure is added to ``failures.txt`` beside this file as a line "property
seed", which `test_properties` then checks for good.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.properties import PROPERTIES

FAILURES = Path(__file__).with_name("failures.txt")


def main(minutes: float, seed: int) -> int:
    """Draw until the time is over; the number of failures."""
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    end = time.monotonic() + 60.0 * minutes
    while time.monotonic() < end:
        for check in PROPERTIES:
            name = check.__name__
            tried[name] += 1
            try:
                check(np.random.default_rng(seed))
            except Exception as error:
                failed[name] += 1
                where = traceback.extract_tb(error.__traceback__)[-1]
                said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                print(f"{name} {seed}: {said} ({Path(where.filename).name}:{where.lineno})", flush=True)
                with FAILURES.open("a", encoding="utf-8") as file:
                    file.write(f"{name} {seed}\n")
        seed += 1
    for check in PROPERTIES:
        print(f"{check.__name__:<42} {tried[check.__name__]:>8} tried {failed[check.__name__]:>6} failed")
    return failed.total()


if __name__ == "__main__":
    sys.exit(min(1, main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)))
