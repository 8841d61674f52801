"""``gsnmf markers``: an AnnData file in, the annotated file and a report out."""

import json
from pathlib import Path

import pytest

from benchmarks._simulated_cells import simulated_cells
from gsnmf.commands import run

anndata = pytest.importorskip("anndata", reason="marker genes need anndata")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of anndata itself


@pytest.fixture
def file(tmp_path):
    anndata.settings.allow_write_nullable_strings = True
    path = tmp_path / "cells.h5ad"
    simulated_cells(80, 100, n_groups=3, random_state=1).to_anndata().write_h5ad(path)
    return path


@pytest.mark.parametrize("options", [[], ["--backed"]])
def test_writes_file_and_report(file, capsys, options):
    out = file.with_name("annotated.h5ad")
    arguments = [str(file), "--factors", "3", "--genes", "all", "--effort", "fast", "--out", str(out)]
    assert run(["markers", *arguments, "--groupby", "group", "--json", *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["factors"]) == 3
    written = anndata.read_h5ad(out)
    assert written.obsm["X_gsnmf"].shape == (80, 3)
    assert written.X.shape == (80, 100)
    assert "prototype" in out.with_suffix(".html").read_text(encoding="utf-8")
    assert sorted(path.name for path in file.parent.iterdir()) == ["annotated.h5ad", "annotated.html", "cells.h5ad"]


def test_prints_a_table(file, capsys):
    assert run(["markers", str(file), "--rank", "1,1", "--genes", "all", "--effort", "fast"]) == 0
    printed = capsys.readouterr().out
    assert "cells-markers.html" in printed.replace("\n", "")
    assert "marker" in printed


def test_errors_are_one_line_and_leave_nothing(file, capsys):
    assert run(["markers", str(file), "--factors", "3"]) == 1
    error = capsys.readouterr().err
    assert "has no column 'highly_variable'" in error
    assert "--genes all" in error
    assert run(["markers", str(file), "--rank", "many"]) == 2
    assert run(["markers", str(file), "--out", str(file)]) == 2
    assert run(["markers", str(file), "--report", str(file)]) == 2
    assert run(["markers", str(file), "--genes", "all", "--groupby", "nothing"]) == 1
    assert "one of 'group', 'batch'; got 'nothing'" in capsys.readouterr().err  # no factors yet: nothing was chosen
    assert run(["markers", "nothing.h5ad"]) == 1
    file.with_name("broken.h5ad").write_bytes(b"no")
    assert run(["markers", str(file.with_name("broken.h5ad"))]) == 1
    assert "cannot be read as an AnnData file" in capsys.readouterr().err
    assert sorted(path.name for path in file.parent.iterdir()) == ["broken.h5ad", "cells.h5ad"]


def test_a_failure_while_writing_leaves_nothing(file, monkeypatch):
    def full(data, path):
        Path(path).write_bytes(b"a part of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(anndata.AnnData, "write_h5ad", full)
    assert run(["markers", str(file), "--factors", "2", "--genes", "all", "--effort", "fast"]) == 1
    assert [path.name for path in file.parent.iterdir()] == ["cells.h5ad"]
