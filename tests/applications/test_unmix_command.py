"""gsnmf unmix, the report of a scene and its pictures."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from gsnmf.applications import Unmixing, unmix
from gsnmf.applications.unmixing.scene_report import abundance_histogram, spectra_chart, value_map
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene
from gsnmf.cli import main
from gsnmf.commands import run
from gsnmf.reports.pictures import reduced


@pytest.fixture(scope="module")
def cube():
    values = planted_scene(np.random.default_rng(0), shape=(12, 10), n_bands=16, n_endmembers=3).cube
    values[0, 0] = 0.0
    return values


@pytest.fixture(scope="module")
def result(cube):
    return unmix(cube, 3, method="n-findr", wavelengths=np.linspace(0.4, 1.0, 16))


@pytest.fixture
def here(tmp_path, monkeypatch, cube):
    monkeypatch.chdir(tmp_path)
    np.save("scene.npy", cube)
    Path("w.txt").write_text("\n".join(map(str, np.linspace(400, 1000, 16))), encoding="utf-8")
    return tmp_path


class TestCommand:
    def test_files(self, here, capsys):
        assert main is not None
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

    def test_json_and_quiet(self, here, capsys):
        arguments = ["unmix", "scene.npy", "-r", "2", "--method", "spa", "--out", "o", "--no-sum-to-one"]
        assert run([*arguments, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["n_endmembers"] == 2
        assert run([*arguments, "--quiet"]) == 0
        assert capsys.readouterr().out == "o/report.html\n"

    def test_range(self, here, capsys):
        assert run(["unmix", "scene.npy", "--rank", "2-9999999999", "--method", "spa", "--json"]) == 0
        assert 2 <= json.loads(capsys.readouterr().out)["n_endmembers"] <= 16

    def test_mask(self, here):
        mask = np.ones((12, 10), dtype=bool)
        mask[:6] = False
        np.save("mask.npy", mask)
        assert run(["unmix", "scene.npy", "-r", "2", "--method", "vca", "--seed", "3", "--mask", "mask.npy", "-q"]) == 0
        assert Unmixing.load("scene-unmix/result.npz").pixels[:, 0].min() >= 6

    def test_a_number_for_missing_values(self, here, cube):
        values = cube.copy()
        values[4, 5] = -1
        np.save("scene.npy", values)
        assert run(["unmix", "scene.npy", "-r", "2", "--method", "spa", "--no-data", "-1", "-q"]) == 0
        assert np.isnan(Unmixing.load("scene-unmix/result.npz").residual_map[4, 5])

    @pytest.mark.parametrize(
        ("options", "code", "message"),
        [
            (["-r", "0"], 2, "--rank must be a positive integer"),
            (["-r", "2,1"], 2, "--endmembers must be a positive integer, a range such as 2-9, or auto; got '2,1'"),
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
    def test_errors(self, here, capsys, options, code, message):
        assert run(["unmix", "scene.npy", *options]) == code
        assert message in capsys.readouterr().err
        assert not Path("scene-unmix").exists()


class TestReport:
    def test_words_and_parts(self, result, tmp_path):
        result.report(tmp_path / "r.html", title="<b>Scene", parameters={"Flight": "<i>7"})
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        for part in ('id="spectra"', 'id="places"', 'id="maps"', 'id="residual"', 'id="angles"', 'id="made"'):
            assert part in page
        assert "<b>" not in page
        assert "<i>7" not in page
        assert "wavelength [µm]" in page
        assert page.count('class="field pixels"') == 4
        assert len(re.findall('class="ring"', page)) == 3
        assert "http" not in page.replace("http-equiv", "")
        assert "1 pixel left out: zero in every band" in page

    def test_one_endmember_of_one_band(self, tmp_path):
        unmix(np.arange(1.0, 7).reshape(2, 3, 1), 1).report(tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "1 endmember explains" in page
        assert 'id="angles"' not in page

    def test_many_endmembers(self, cube, tmp_path):
        unmix(cube, 11, method="spa").report(tmp_path / "r.html")
        assert "dashed" in (tmp_path / "r.html").read_text(encoding="utf-8")

    def test_gaps_and_order_of_spectra(self):
        chart = spectra_chart(np.array([3.0, 1, 2, 4]), "band", np.array([[3.0, 1, np.nan, 4]]), ["a"])
        assert len(chart.curves[0].stretches) == 2
        first = [float(point.split(",")[0]) for point in chart.curves[0].stretches[1].split()]
        assert first == sorted(first)

    def test_histogram_counts_everything(self):
        values = np.random.default_rng(0).random(500)
        counts = [int(label.split()[0]) for *_, label in abundance_histogram(values, 1.0)]
        assert sum(counts) == 500

    def test_reduced_maps_keep_the_mean_and_the_gaps(self):
        values = np.random.default_rng(0).random((960, 480))
        assert reduced(values, 480).mean() == pytest.approx(values.mean())
        values[:2, :2] = np.nan
        assert np.isnan(reduced(values, 480)[0, 0])
        assert np.isfinite(reduced(values, 480)[0, 1])
        assert value_map(np.full((2, 2), np.nan), 1.0).startswith("data:image/png")


@pytest.mark.usefixtures("figures")
class TestPlots:
    def test_spectra(self, result):
        from gsnmf import plotting

        axes = plotting.plot_spectra(result)
        assert axes.get_xlabel() == "wavelength [µm]"
        for line, spectrum in zip(axes.lines, result.endmembers, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), spectrum)
        assert result.plot_spectra(ax=axes) is axes

    def test_maps_have_one_scale(self, result):
        from gsnmf import plotting

        figure = plotting.plot_maps(result)
        images = [axes.images[0] for axes in figure.axes if axes.images]
        assert len(images) == 3
        assert {image.get_clim() for image in images} == {(0.0, 1.0)}
        assert len(figure.axes) == 4  # and the colour bar
        assert result.plot_maps() is not figure

    def test_chosen_pixels(self, result):
        from gsnmf import plotting

        axes = plotting.plot_chosen_pixels(result)
        marked = {(float(line.get_ydata()[0]), float(line.get_xdata()[0])) for line in axes.lines}
        assert {tuple(map(float, place)) for place in result.pixels} <= marked
        assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]
        assert result.plot_chosen_pixels(ax=axes) is axes

    def test_no_other_names(self):
        from gsnmf import plotting

        with pytest.raises(AttributeError, match="no attribute 'plot_nothing'"):
            _ = plotting.plot_nothing
