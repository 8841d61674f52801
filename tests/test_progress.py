"""What a long command shows on a terminal."""

import io
import logging

import pytest

from gsnmf.commands.progress import stages


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_stages_are_counted_and_messages_stand_beside_them(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    logger = logging.getLogger("gsnmf")
    before = logger.level, list(logger.handlers)
    with stages(False, 2) as stage:
        stage("Reading")
        stage("Choosing [bold]")
        logger.info("gap %.1f", 0.5)
    shown = terminal.getvalue()
    for expected in ("Choosing [bold]", "1 of 2", "gap 0.5"):
        assert expected in shown
    assert (logger.level, logger.handlers) == before
    assert "compiling" not in shown


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_shown_where_nobody_looks(quiet, monkeypatch):
    stream = io.StringIO() if not quiet else Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with stages(quiet, 3) as stage:
        stage("Reading")
    assert stream.getvalue() == ""
