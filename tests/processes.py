"""What tests need of other processes."""

import signal
import time

import psutil

PATIENCE = 300
"""Seconds to wait for what must happen, however busy the machine is."""


def hear_interrupts():
    """Make a child hear interrupts: a test run in the background ignores them, and its children would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until(holds):
    """Wait until a condition holds; whether it does in the end."""
    deadline = time.monotonic() + PATIENCE
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held


def all_ended(pids):
    """Whether processes end, at once or soon."""
    return wait_until(lambda: not any(map(_alive, pids)))


def _alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # which ended, but nobody asked how
    except psutil.NoSuchProcess:
        return False
