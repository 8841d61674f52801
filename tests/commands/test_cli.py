"""The command line: what it prints, its exit codes, and errors in one line."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import gsnmf
from gsnmf.commands import COMMANDS, app, run


def test_version():
    outcome = CliRunner().invoke(app, ["--version"])
    assert (outcome.exit_code, outcome.output) == (0, f"gsnmf {gsnmf.__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_the_commands(arguments):
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0
    for command in ("factorize", "topics", "demo"):
        assert command in outcome.output


def test_help_imports_no_command_and_says_what_the_commands_say():
    code = (
        "import sys; from gsnmf.commands import run; run(['--help']); print([m for m in sys.modules if m in ('numpy', "
        "'sklearn', 'rich.progress') or m.startswith('gsnmf.commands.')])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.splitlines()[-1] == "[]"
    for name, sentence in COMMANDS.items():
        words = " ".join(CliRunner().invoke(app, [name, "--help"]).output.split())
        assert sentence in words


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("factorize", ["--rank", "-r"]),
        ("topics", ["--rank", "--topics", "-r"]),
        ("unmix", ["--rank", "--endmembers", "-r"]),
        ("markers", ["--rank", "--factors", "-r"]),
    ],
)
def test_the_rank_has_one_name_everywhere_beside_that_of_the_field(command, names, tmp_path, capsys):
    for name in names:
        (tmp_path / "file").touch()
        assert run([command, str(tmp_path / "file"), name, "none"]) == 2
        assert_one_line(capsys, "--rank must be a positive integer, ")


def test_quiet_demo_prints_the_paths_alone(tmp_path, monkeypatch):
    example = SimpleNamespace(name="digits", findings=None)
    monkeypatch.setattr("gsnmf.commands.demo.run_examples", lambda stage: [example])
    monkeypatch.setattr("gsnmf.commands.demo.write_report", lambda findings, path: None)
    outcome = CliRunner().invoke(app, ["demo", "--quiet", "--out", str(tmp_path)])
    assert Path(outcome.output.strip()) == tmp_path / "digits.html"


def test_output_directory_that_is_a_file(tmp_path, capsys):
    in_the_way = tmp_path / "report"
    in_the_way.write_text("not a directory", encoding="utf-8")
    assert run(["demo", "--out", str(in_the_way)]) == 1
    assert_one_line(capsys, str(in_the_way))


def test_read_only_output_directory(tmp_path, capsys):
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("this user may write everywhere")
    assert run(["demo", "--out", str(tmp_path / "report")]) == 1
    assert_one_line(capsys, "Permission denied")


def test_disk_error_while_writing(tmp_path, capsys, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(30, "Read-only file system", "digits.html")

    example = SimpleNamespace(name="digits", findings=None)
    monkeypatch.setattr("gsnmf.commands.demo.run_examples", lambda stage: [example])
    monkeypatch.setattr("gsnmf.commands.demo.write_report", refuse)
    assert run(["demo", "--out", str(tmp_path)]) == 1
    assert_one_line(capsys, "digits.html: Read-only file system")


@pytest.mark.parametrize("arguments", [["unknown"], ["demo", "--unknown"], ["bench"], ["demo", "--out"]])
def test_wrong_arguments(arguments, capsys):
    assert run(arguments) == 2
    assert_one_line(capsys, "")


@pytest.mark.parametrize("arguments", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_the_traceback(arguments, boom):
    with pytest.raises(RuntimeError, match="first line"):
        run(arguments)


def test_error_of_several_lines_becomes_one(boom, capsys):
    assert run(["demo"]) == 1
    assert_one_line(capsys, "first line second line")


def test_interrupt(capsys, monkeypatch):
    def interrupt(stage):
        raise KeyboardInterrupt

    monkeypatch.setattr("gsnmf.commands.demo.run_examples", interrupt)
    assert run(["demo"]) == 130
    assert len(capsys.readouterr().err.splitlines()) <= 1


def test_missing_library_is_named():
    """Hide typer from a fresh interpreter, as in an installation without the extra."""
    program = "import sys; sys.modules['typer'] = None; from gsnmf.cli import main; main()"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert outcome.returncode == 1
    assert outcome.stderr.splitlines() == ['gsnmf: the command line needs typer; pip install "gsnmf[cli]"']


def test_entry_point():
    command = [sys.executable, "-m", "gsnmf", "--version"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stdout == f"gsnmf {gsnmf.__version__}\n"


@pytest.fixture
def boom(monkeypatch):
    """A command that fails."""

    def fail(stage):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("gsnmf.commands.demo.run_examples", fail)


def assert_one_line(capsys, expected):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith("gsnmf: ")
    assert expected in captured.err


def test_methods_are_listed():
    outcome = CliRunner().invoke(app, ["methods", "--markdown"])
    assert outcome.exit_code == 0
    assert all(f'`"{method.name}"`' in outcome.output for method in gsnmf.methods())
    assert "convex" in CliRunner().invoke(app, ["methods"]).output
