"""What importing the package gives, and what it leaves for later."""

import subprocess
import sys

import pytest

import gsnmf


def test_every_public_name_is_there():
    for name in gsnmf.__all__:
        assert getattr(gsnmf, name) is not None
        assert name in dir(gsnmf)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gsnmf.nothing  # noqa: B018


def test_import_leaves_out_what_a_first_fit_can_do_without():
    later = "gsnmf.datasets gsnmf.nmf gsnmf.plotting gsnmf.reports gsnmf.estimators.selector dask matplotlib rich typer"
    modules = later.split()
    code = f"import sys, gsnmf; print([name for name in {modules} if name in sys.modules]); gsnmf.datasets.planted"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"
