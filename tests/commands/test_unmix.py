"""``gsnmf unmix``: files, output, options and errors."""

import json
from pathlib import Path

import numpy as np
import pytest

from gsnmf.applications import Unmixing
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene
from gsnmf.commands import run


@pytest.fixture(scope="module")
def cube():
    return planted_scene(np.random.default_rng(0), shape=(12, 10), n_bands=16, n_endmembers=3).cube


@pytest.fixture
def here(tmp_path, monkeypatch, cube):
    monkeypatch.chdir(tmp_path)
    np.save("scene.npy", cube)
    Path("w.txt").write_text("\n".join(map(str, np.linspace(400, 1000, 16))), encoding="utf-8")
    return tmp_path


def test_files(here, capsys):
    assert run(["unmix", "scene.npy", "--endmembers", "3", "--wavelengths", "w.txt", "--averaged", "2"]) == 0
    out = capsys.readouterr().out
    assert "3 endmembers of 12 x 10 pixels" in out
    assert "Report: scene-unmix/report.html" in out
    summary = json.loads(Path("scene-unmix/summary.json").read_text(encoding="utf-8"))
    assert summary["shape"] == [12, 10, 16]
    loaded = Unmixing.load("scene-unmix/result.npz")
    assert summary["pixels"] == loaded.pixels.tolist()
    table = np.genfromtxt("scene-unmix/spectra.csv", delimiter=",", names=True)
    np.testing.assert_allclose(table["wavelength_nm"], np.linspace(400, 1000, 16))
    np.testing.assert_allclose(table["endmember_2"], loaded.endmembers[1], rtol=1e-6)
    page = Path("scene-unmix/report.html").read_text(encoding="utf-8")
    assert "wavelength [nm]" in page
    assert "SHA-256" in page


def test_json_and_quiet(here, capsys):
    arguments = ["unmix", "scene.npy", "-r", "2", "--method", "spa", "--out", "o", "--no-sum-to-one"]
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_endmembers"] == 2
    assert run([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().out == "o/report.html\n"


def test_range(here, capsys):
    assert run(["unmix", "scene.npy", "--rank", "2-9999999999", "--method", "spa", "--json"]) == 0
    assert 2 <= json.loads(capsys.readouterr().out)["n_endmembers"] <= 16


def test_mask(here):
    mask = np.ones((12, 10), dtype=bool)
    mask[:6] = False
    np.save("mask.npy", mask)
    assert run(["unmix", "scene.npy", "-r", "2", "--method", "vca", "--seed", "3", "--mask", "mask.npy", "-q"]) == 0
    assert Unmixing.load("scene-unmix/result.npz").pixels[:, 0].min() >= 6


def test_a_number_for_missing_values(here, cube):
    values = cube.copy()
    values[4, 5] = -1
    np.save("scene.npy", values)
    assert run(["unmix", "scene.npy", "-r", "2", "--method", "spa", "--no-data", "-1", "-q"]) == 0
    assert np.isnan(Unmixing.load("scene-unmix/result.npz").residual_map[4, 5])


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-r", "0"], 2, "--rank must be a positive integer"),
        (["-r", "2,1"], 2, "--rank must be a positive integer, a range to choose from such as 5-40, or auto; got"),
        (["-r", "2", "--unit", "nm"], 2, "--unit has no effect without --wavelengths"),
        (["-r", "2", "--seed", "1"], 2, "--seed has no effect with --method auto on 120 pixels"),
        (["-r", "2", "--key", "a"], 1, "key has no meaning here"),
        (["-r", "2", "--bands-axis", "0", "--wavelengths", "w.txt"], 1, "wavelengths must be one per band, 12"),
        (["-r", "2", "--pure-bands", "--method", "vca"], 1, "method has no effect with pure_bands=True"),
        (["-r", "2", "--mask", "w.txt"], 1, "w.txt: cannot be read as a NumPy array, as numpy.save writes it"),
        (["-r", "2", "--mask", "none.npy"], 1, "No such file"),
        (["-r", "99"], 1, "rank must be in [1, 16]"),
    ],
)
def test_errors(here, capsys, options, code, message):
    assert run(["unmix", "scene.npy", *options]) == code
    assert message in capsys.readouterr().err
    assert not Path("scene-unmix").exists()
