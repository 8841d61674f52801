"""What tests need of other processes."""

import signal


def hear_interrupts():
    """Make a child hear interrupts: a test run in the background ignores them, and its children would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
