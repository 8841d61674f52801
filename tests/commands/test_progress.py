"""What a long command shows on a terminal."""

import io
import logging
import re

import numpy as np
import pytest

import gsnmf
from gsnmf.commands.output import stages
from gsnmf.support.progress import Bar, log_progress


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


def test_the_bar_moves_within_a_stage(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with stages(False) as stage:
        stage("Choosing")
        log_progress("balanced", 1.0, 2.0, 0.8631)
    assert "balanced: quality 86.31 %" in terminal.getvalue()


def test_an_estimator_that_is_verbose_draws_a_bar(capsys):
    gsnmf.GSNMF(3, verbose=1).fit(np.random.default_rng(0).random((20, 15)))
    shown = capsys.readouterr().out
    assert re.search(r"\[gsnmf\] [#.]{24} +\d+ %  fast: quality \d+\.\d\d %", shown)


def test_a_bar_is_redrawn_in_place_and_messages_stand_alone():
    terminal = Terminal()
    bar = Bar(terminal)
    bar.emit(logging.makeLogRecord({"msg": "fast: quality 50.00 %", "fraction": 0.25}))
    bar.emit(logging.makeLogRecord({"msg": "compiling"}))
    bar.emit(logging.makeLogRecord({"msg": "fast: quality 51.00 %", "fraction": 0.5}))
    bar.close()
    first, rest = terminal.getvalue().split("\r", 1)
    assert first.startswith("[gsnmf] ######...")
    assert rest.startswith("[gsnmf] compiling ")
    assert terminal.getvalue().endswith("\n")


def test_nobody_listens_and_nothing_is_said(caplog):
    log_progress("balanced", 1.0, 2.0, 0.5)
    assert not caplog.records
