"""A short draw of the properties in `properties`, and every case on which one of them has ever failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from hostile.cases import Case, cases
from hostile.properties import QUICK, SLOW, holds

_FAILURES = Path(__file__).with_name("failures.txt")
_KNOWN = _FAILURES.read_text(encoding="utf-8").splitlines() if _FAILURES.exists() else []
_SETTINGS = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("check", QUICK + SLOW, ids=lambda check: check.__name__)
def test_property(check):
    count = 6 if check in QUICK else 2
    for chunked in (False, True):
        _draw(check, cases(chunked=chunked), 1 if chunked else count)


def _draw(check, strategy, count):
    settings(_SETTINGS, max_examples=count)(given(strategy)(lambda case: holds(check, case)))()


def test_what_has_failed_before():
    properties = {check.__name__: check for check in QUICK + SLOW}
    for line in _KNOWN:
        name, case = line.split(" ", 1)
        holds(properties[name], Case.from_json(case))
