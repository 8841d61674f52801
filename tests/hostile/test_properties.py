"""A short draw of the properties in `properties`, and every case on which one of them has ever failed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hostile.properties import PROPERTIES

_SEEDS = range(12)
_FAILURES = Path(__file__).with_name("failures.txt")
_KNOWN = _FAILURES.read_text(encoding="utf-8").split("\n") if _FAILURES.exists() else []


@pytest.mark.parametrize("check", PROPERTIES, ids=lambda check: check.__name__)
def test_property(check):
    for seed in _SEEDS:
        check(np.random.default_rng(seed))


@pytest.mark.parametrize("case", [line for line in _KNOWN if line])
def test_what_has_failed_before(case):
    name, seed = case.split()
    next(check for check in PROPERTIES if check.__name__ == name)(np.random.default_rng(int(seed)))
