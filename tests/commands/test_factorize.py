"""`gsnmf factorize` end to end: every format, what it writes and prints, its exit codes, and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import gsnmf
from gsnmf.commands import app, run
from gsnmf.datasets import planted
from gsnmf.io import load_provenance
from processes import PATIENCE, hear_interrupts

MATRIX = planted((12, 9), 2, 1, random_state=0).matrix.round(6)
TEXTS = ["cats and dogs", "dogs chase cats", "stars and planets", "planets orbit stars", "cats watch stars"]


def save_csv(path: Path, delimiter=","):
    header = delimiter.join(["", *(f"c{j}" for j in range(9))])
    lines = [delimiter.join([f"r{i}", *map(str, row)]) for i, row in enumerate(MATRIX.tolist())]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


def save_cluto(path: Path):
    lines = [" ".join(f"{j + 1} {row[j]}" for j in np.flatnonzero(row)) for row in MATRIX]
    path.write_text("\n".join([f"12 9 {np.count_nonzero(MATRIX)}", *lines]) + "\n", encoding="utf-8")


def save_parquet(path: Path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(MATRIX, columns=[f"c{j}" for j in range(9)]).to_parquet(path)


def save_h5ad(path: Path):
    anndata = pytest.importorskip("anndata")
    anndata.settings.allow_write_nullable_strings = True  # what names are in a recent pandas
    anndata.AnnData(MATRIX).write_h5ad(path)


def save_images(path: Path):
    pillow = pytest.importorskip("PIL.Image")
    path.mkdir()
    for i, row in enumerate(MATRIX / MATRIX.max()):
        pillow.fromarray((255 * row).astype(np.uint8).reshape(3, 3)).save(path / f"{i:02}.png")


def save_texts(path: Path):
    path.mkdir()
    for i, text in enumerate(TEXTS):
        (path / f"{i}.txt").write_text(text, encoding="utf-8")


WRITERS = {
    "dense.npz": lambda path: np.savez(path, matrix=MATRIX),
    "sparse.npz": lambda path: sp.save_npz(path, sp.csr_array(MATRIX)),
    "m.npy": lambda path: np.save(path, MATRIX),
    "m.mtx": lambda path: scipy.io.mmwrite(path, sp.coo_array(MATRIX)),
    "m.mat": lambda path: scipy.io.savemat(path, {"m": MATRIX}),
    "m.cluto": save_cluto,
    "m.csv": save_csv,
    "m.tsv": lambda path: save_csv(path, "\t"),
    "m.parquet": save_parquet,
    "m.h5ad": save_h5ad,
    "images": save_images,
    "texts": save_texts,
    "lines.txt": lambda path: path.write_text("\n".join(TEXTS), encoding="utf-8"),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gsnmf_process(*arguments, **options):
    command = [sys.executable, "-m", "gsnmf", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


FACTORIZE = ("--rank", "2", "--method", "gspa", "--out", "out")


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(name, here, capsys):
    WRITERS[name](here / name)
    assert run(["factorize", name, *FACTORIZE]) == 0
    assert_written(here, *capsys.readouterr())


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.long
def test_every_format_in_a_process_of_its_own(name, tmp_path):
    WRITERS[name](tmp_path / name)
    outcome = gsnmf_process("factorize", name, *FACTORIZE, cwd=tmp_path)
    assert outcome.returncode == 0
    assert_written(tmp_path, outcome.stdout, outcome.stderr)


def assert_written(folder, printed, complaints):
    assert complaints == ""
    assert printed.splitlines()[-1] == f"Report: {Path('out', 'report.html')}"
    assert sorted(os.listdir(folder / "out")) == ["report.html", "result.npz", "summary.json"]
    summary = json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))
    assert "".join(summary["sentence"].split()) in "".join(printed.split())
    with np.load(folder / "out" / "result.npz", allow_pickle=False) as archive:
        assert archive["columns"].size + archive["rows"].size == 2
        assert archive["column_weights"].shape == (archive["columns"].size, summary["shape"][1])
    assert summary["sentence"] in (folder / "out" / "report.html").read_text(encoding="utf-8")


PIPED = {"csv": "m.csv", "mtx": "m.mtx", "text": "lines.txt"}


def from_standard_input(format):
    return ["factorize", "-", "--format", format, "--rank", "2", "--method", "gspa", "--quiet"]


@pytest.mark.parametrize("format", PIPED)
def test_standard_input(format, here, capsys, monkeypatch):
    WRITERS[PIPED[format]](here / PIPED[format])
    with (here / PIPED[format]).open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert run(from_standard_input(format)) == 0
    assert capsys.readouterr() == (f"{Path('stdin-gsnmf', 'report.html')}\n", "")


@pytest.mark.parametrize("format", PIPED)
@pytest.mark.long
def test_standard_input_of_a_process_of_its_own(format, tmp_path):
    WRITERS[PIPED[format]](tmp_path / PIPED[format])
    with (tmp_path / PIPED[format]).open("rb") as stream:
        outcome = gsnmf_process(*from_standard_input(format), cwd=tmp_path, stdin=stream)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout == f"{Path('stdin-gsnmf', 'report.html')}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_interrupted_while_reading(tmp_path):
    command = [sys.executable, "-m", "gsnmf", "factorize", "-", "--format", "csv", "--rank", "2"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    process.stdin.write(b"1,2\n" * 100_000)  # far more than a pipe holds: when it is written, the command reads
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)  # before the end of its input, which communicate would give it
    _, errors = process.communicate()
    assert (process.returncode, errors) == (130, b"gsnmf: stopped\n")
    assert os.listdir(tmp_path) == []


class TestResult:
    def test_it_is_that_of_the_library(self, here):
        np.save("m.npy", MATRIX)
        assert run(["factorize", "m.npy", "--rank", "3", "--effort", "fast"]) == 0
        expected = gsnmf.factorize(MATRIX, 3, effort="fast")
        again = gsnmf.load("m-gsnmf/result.npz", MATRIX)
        assert again.columns.tolist() == expected.columns.tolist()
        assert again.rows.tolist() == expected.rows.tolist()
        np.testing.assert_array_equal(again.column_weights, expected.column_weights)
        assert load_provenance("m-gsnmf/result.npz") == json.loads(
            Path("m-gsnmf/summary.json").read_text(encoding="utf-8")
        )

    @pytest.mark.parametrize(
        ("option", "qualities"), [("--compare", [True, True, True]), ("--no-compare", [True, False])]
    )
    def test_comparison_more_or_nothing(self, here, capsys, option, qualities):
        save_csv(Path("m.csv"))
        assert run(["factorize", "m.csv", "-r", "2,1", "--method", "spa-both", "--json", option]) == 0
        bars = json.loads(capsys.readouterr().out)["comparison"]
        assert [bar["quality"] is not None for bar in bars] == qualities

    def test_summary_as_json(self, here, capsys):
        save_csv(Path("m.csv"))
        assert run(["factorize", "m.csv", "-r", "2,1", "--method", "spa-both", "--json", "--out", "deep/er"]) == 0
        captured = capsys.readouterr()
        summary = json.loads(captured.out)
        assert captured.err == ""
        assert summary == json.loads(Path("deep/er/summary.json").read_text(encoding="utf-8"))
        assert [factor["kind"] for factor in summary["factors"]] == ["column", "column", "row"]
        assert summary["factors"][0]["name"] == f"c{summary['factors'][0]['index']}"
        assert [bar["name"] for bar in summary["comparison"]] == ["This result", "Truncated SVD"]
        assert summary["quality"] <= summary["comparison"][1]["quality"]
        assert len(summary["quality_by_rank"]) == 3
        assert summary["parameters"]["Method"] == "spa-both"
        assert len(summary["parameters"]["SHA-256 of the file"]) == 64

    def test_weighting(self, here):
        counts = np.round(10 * MATRIX)
        np.save("m.npy", counts)
        assert run(["factorize", "m.npy", "--rank", "2", "--tfidf", "--normalize", "--method", "gspa", "--json"]) == 0
        from sklearn.feature_extraction.text import TfidfTransformer

        weighted = TfidfTransformer().fit_transform(counts).toarray()
        weighted /= weighted.sum(axis=1, keepdims=True)
        assert gsnmf.load("m-gsnmf/result.npz", weighted).selection.n_selected == 2
        assert "documents × " in json.loads(Path("m-gsnmf/summary.json").read_text(encoding="utf-8"))["sentence"]

    def test_names_and_images(self, here, capsys):
        np.savez("m.npz", first=MATRIX, second=MATRIX)
        Path("names").write_text("\n".join(f"<b>{i}" for i in range(12)), encoding="utf-8")
        arguments = ["factorize", "m.npz", "--key", "second", "--rows", "names", "--image-shape", "3x3", "--rank", "2"]
        assert run([*arguments, "--method", "spa-rows", "--column-major"]) == 0
        assert "2 images explain" in capsys.readouterr().out
        page = Path("m-gsnmf/report.html").read_text(encoding="utf-8")
        assert "&lt;b&gt;" in page
        assert "<b>1" not in page
        assert 'id="images"' in page

    @pytest.mark.parametrize(
        ("file", "options", "message"),
        [
            ("m.npy", ["--key", "M"], "--key has no effect on npy input; it is for h5ad, mat, npz"),
            ("m.npy", ["--stop-words", "none"], "--stop-words has no effect on npy input; it is for text"),
            ("m.npy", ["--min-documents", "3"], "--min-documents has no effect on npy input"),
            ("m.npy", ["--encoding", "latin-1"], "--encoding has no effect on npy input"),
            ("m.npy", ["--no-header"], "--header has no effect on npy input; it is for csv, tsv"),
            ("m.npy", ["--column-major"], "--column-major has no effect on a matrix without images"),
            ("m.npy", ["--method", "gspa", "--effort", "fast"], "--effort has no effect with --method gspa"),
            (
                "m.npy",
                ["--method", "gspa", "--keep-on-interrupt"],
                "--keep-on-interrupt has no effect with --method gspa",
            ),
            ("m.csv", ["--cube"], "--cube has no effect on csv input; it is for mat, npy, npz"),
            ("lines.txt", ["--image-shape", "3x3"], "--image-shape has no effect on text input"),
        ],
    )
    def test_options_without_effect_are_errors(self, here, capsys, file, options, message):
        WRITERS[file](Path(file))
        assert run(["factorize", file, "--rank", "2", *options]) == 2
        assert message in capsys.readouterr().err
        assert not Path(f"{Path(file).stem}-gsnmf").exists()

    def test_three_dimensions(self, here, capsys):
        values = np.random.default_rng(0).random((6, 5, 4))
        np.save("m.npy", values)
        assert run(["factorize", "m.npy", "--rank", "2", "--quiet"]) == 1
        error = capsys.readouterr().err
        assert "gsnmf unmix" in error
        assert "--cube" in error
        assert run(["factorize", "m.npy", "--rank", "2", "--cube", "--method", "spa-rows"]) == 0
        assert "2 pixels explain" in capsys.readouterr().out
        assert run(["factorize", "m.npy", "--rank", "2", "--image-shape", "5x4", "--method", "spa-rows"]) == 0
        assert "2 images explain" in capsys.readouterr().out

    def test_zero_matrix(self, here, capsys):
        np.save("m.npy", np.zeros((3, 4)))
        assert run(["factorize", "m.npy", "--rank", "2"]) == 0
        assert "nothing to explain" in capsys.readouterr().out

    def test_hostile_names_on_the_terminal(self, here, capsys):
        Path("m.csv").write_text('[red]a,"\x1b[31mb"\n1,2\n3,5\n', encoding="utf-8")
        assert run(["factorize", "m.csv", "--rank", "1", "--method", "spa-columns"]) == 0
        assert "\x1b[31m" not in capsys.readouterr().out

    def test_weights_that_do_not_converge(self, here, capsys, monkeypatch):
        factorize = gsnmf.factorize

        def unfinished(*arguments, **options):
            result = factorize(*arguments, **options)
            warnings.warn("The weights stopped after 7 iterations.", ConvergenceWarning, stacklevel=2)
            return replace(result, weights=replace(result.weights, converged=False))

        monkeypatch.setattr(gsnmf, "factorize", unfinished)
        np.save("m.npy", MATRIX)
        assert run(["factorize", "m.npy", "--rank", "2", "--method", "gspa", "--quiet"]) == 3
        captured = capsys.readouterr()
        assert captured.err.startswith("gsnmf: warning: The weights stopped after ")
        page = Path("m-gsnmf/report.html").read_text(encoding="utf-8")
        assert "The weights stopped after " in page
        assert "Weights not optimal to the tolerance" in page


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["none.csv", "--rank", "2"], 1, "none.csv: No such file or directory"),
            (["m.npy"], 2, "--rank"),
            (["m.npy", "--rank", "x"], 2, "--rank must be a positive integer, a pair such as 6,4, a range"),
            (["m.npy", "--rank", "0"], 2, "got '0'."),
            (["m.npy", "--rank", "1,2,3"], 2, "got '1,2,3'."),
            (["m.npy", "--rank", "99"], 1, "rank must be in [1, 12] for a matrix of shape (12, 9); got 99."),
            (["m.npy", "--rank", "2", "--method", "spa-both"], 1, "rank must be a pair"),
            (["m.npy", "--rank", "2", "--method", "magic"], 2, "magic"),
            (["m.npy", "--rank", "2", "--format", "magic"], 2, "magic"),
            (["m.npy", "--rank", "2", "--image-shape", "3"], 2, "height x width, such as 28x20; got '3'."),
            (["m.npy", "--rank", "2", "--image-shape", "5x5"], 1, "got 5 x 5"),
            (["m.npy", "--rank", "2", "--rows", "names"], 1, "names: must have one name per line for 12 rows; got 1."),
            (["m.npy", "--rank", "2", "--out", "m.npy"], 1, "m.npy: Not a directory"),
            (["m.npy", "--rank", "2", "--out", "m.npy/out"], 1, "m.npy: Not a directory"),
            (["-", "--rank", "2"], 2, "standard input needs --format, one of mtx, cluto, csv, tsv, text."),
            (["-", "--rank", "2", "--format", "npz"], 2, "standard input needs --format"),
            (["nan.npy", "--rank", "2"], 1, "nan.npy must be finite; got NaN at row 0, column 0."),
            (["negative.npy", "--rank", "2"], 1, "nonnegative"),
            (["empty.csv", "--rank", "2"], 1, "empty.csv: is empty."),
            (["truncated.npz", "--rank", "2"], 1, "truncated.npz: cannot be read as an .npz archive"),
            (["m.unknown", "--rank", "2"], 1, "m.unknown: the ending must be one of"),
            (["gap.csv", "--rank", "1"], 1, "the cell is empty at row 0, column 1. --missing nan takes it as missing."),
            (["doubt.csv", "--rank", "1"], 1, "the names of the columns: --header or --no-header."),
            (["corner.csv", "--rank", "1"], 1, "the names of the rows, --row-names or --no-row-names, or"),
            (["below.csv", "--rank", "1"], 1, "--negative clip sets the one negative entry"),
            (["texts.csv", "--rank", "1"], 1, "It looks like a table of texts; for those there is gsnmf topics."),
            (
                ["cube.npy", "--rank", "1"],
                1,
                "with --cube (see also gsnmf unmix), a stack of images with --image-shape 3x2.",
            ),
        ],
    )
    def test_one_line_and_nothing_written(self, here, capsys, arguments, code, message):
        np.save("m.npy", MATRIX)
        np.save("nan.npy", np.full((3, 3), np.nan))
        np.save("negative.npy", -MATRIX)
        np.savez("truncated.npz", matrix=MATRIX)
        Path("truncated.npz").write_bytes(Path("truncated.npz").read_bytes()[:100])
        for name in ("empty.csv", "m.unknown"):
            Path(name).touch()
        np.save("cube.npy", np.ones((4, 3, 2)))
        for name, text in {
            "names": "one\n",
            "gap.csv": "a,b\n1,\n",
            "doubt.csv": "1,2,n/a\n3,4,5\n",
            "corner.csv": "a,b\nx1,2\n3,4\n",
            "below.csv": "a,b\n1,-2\n",
            "texts.csv": f"a,b\n1,{'long text ' * 9}\n",
        }.items():
            Path(name).write_text(text, encoding="utf-8")
        before = sorted(os.listdir())
        assert run(["factorize", *arguments]) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert captured.err.startswith("gsnmf: ")
        assert message in captured.err
        assert sorted(os.listdir()) == before

    def test_debug_shows_the_traceback(self, here):
        with pytest.raises(FileNotFoundError):
            run(["factorize", "none.csv", "--rank", "2", "--debug"])

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_old_files_survive_a_failure(self, here, capsys, monkeypatch, error):
        np.save("m.npy", MATRIX)
        arguments = ["factorize", "m.npy", "--rank", "2", "--method", "gspa"]
        assert run(arguments) == 0
        old = {name: Path("m-gsnmf", name).read_bytes() for name in os.listdir("m-gsnmf")}

        def fail(findings):
            raise error

        monkeypatch.setattr("gsnmf.commands.factorize.render_report", fail)
        assert run(["factorize", "m.npy", "--rank", "3"]) == (130 if isinstance(error, KeyboardInterrupt) else 1)
        assert {name: Path("m-gsnmf", name).read_bytes() for name in os.listdir("m-gsnmf")} == old

    def test_folder_that_may_not_be_written(self, here, capsys, monkeypatch):
        np.save("m.npy", MATRIX)
        monkeypatch.setattr(os, "access", lambda path, mode: False)  # who runs the tests may write everywhere
        assert run(["factorize", "m.npy", "--rank", "2"]) == 1
        assert "Permission denied" in capsys.readouterr().err


class TestHelp:
    def test_it_teaches(self, capsys):
        assert run(["factorize", "--help"]) == 0
        text = capsys.readouterr().out
        for method in gsnmf.methods():
            assert f"  {method.name} " in text
        for expected in ("Examples:", "Exit codes:", ".parquet", "report.html", "--tfidf", "130"):
            assert expected in text

    @staticmethod
    def asking(words):
        """What a shell sets to ask for completions of its last word."""
        return {
            "_GSNMF_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }

    @pytest.mark.parametrize(
        ("words", "expected"),
        [("gsnmf factorize --method spa-", "spa-both"), ("gsnmf factorize --eff", "--effort")],
    )
    def test_completion(self, words, expected):
        outcome = CliRunner().invoke(app, [], env=self.asking(words), prog_name="gsnmf")
        assert expected in outcome.stdout.split()

    @pytest.mark.long
    def test_completion_in_a_process_of_its_own(self):
        outcome = gsnmf_process(env={**os.environ, **self.asking("gsnmf fac")})
        assert "factorize" in outcome.stdout.split()


@pytest.mark.long
def test_progress_is_for_terminals(here, monkeypatch):
    """On a pseudo-terminal there is something to see, and with --quiet there is not."""
    pty = pytest.importorskip("pty")
    np.save("m.npy", MATRIX)
    seen = {}
    for quiet in (False, True):
        controller, terminal = pty.openpty()
        command = [sys.executable, "-m", "gsnmf", "factorize", "m.npy", "--rank", "2", "--method", "gspa"]
        process = subprocess.Popen(
            [*command, *(["--quiet"] if quiet else [])], stderr=terminal, stdout=subprocess.DEVNULL
        )
        os.close(terminal)
        seen[quiet] = b""
        try:
            while part := os.read(controller, 4096):
                seen[quiet] += part
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(controller)
        assert process.wait(timeout=PATIENCE) == 0
    assert b"Choosing columns and rows" in seen[False]
    assert seen[True] == b""
