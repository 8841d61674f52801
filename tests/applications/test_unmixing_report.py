"""The report of a scene, and its plots."""

import re

import numpy as np
import pytest

from gsnmf import plotting
from gsnmf.applications import unmix
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene
from gsnmf.reports.pictures import reduced


@pytest.fixture(scope="module")
def cube():
    values = planted_scene(np.random.default_rng(0), shape=(12, 10), n_bands=16, n_endmembers=3).cube
    values[0, 0] = 0.0
    return values


@pytest.fixture(scope="module")
def result(cube):
    return unmix(cube, 3, method="n-findr", wavelengths=np.linspace(0.4, 1.0, 16))


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

    def test_gaps_and_order_of_spectra(self, cube, tmp_path):
        values = cube.copy()
        values[..., 4] = np.nan
        unmix(values, 2, method="spa", wavelengths=np.linspace(900, 400, 16)).report(tmp_path / "r.html")
        lines = re.findall('<polyline class="spectrum[^>]* points="([^"]*)"', (tmp_path / "r.html").read_text("utf-8"))
        assert len(lines) == 2 * 4  # two stretches of each spectrum, together and by itself
        for line in lines:
            places = [float(point.split(",")[0]) for point in line.split()]
            assert places == sorted(places)

    def test_histograms_count_every_pixel(self, result, tmp_path):
        result.report(tmp_path / "r.html")
        counts = re.findall(r"<title>(\d+) pixels from", (tmp_path / "r.html").read_text(encoding="utf-8"))
        assert sum(map(int, counts)) == 3 * np.count_nonzero(result.valid)

    def test_reduced_maps_keep_the_mean_and_the_gaps(self):
        values = np.random.default_rng(0).random((960, 480))
        assert reduced(values, 480).mean() == pytest.approx(values.mean())
        values[:2, :2] = np.nan
        assert np.isnan(reduced(values, 480)[0, 0])
        assert np.isfinite(reduced(values, 480)[0, 1])


@pytest.mark.usefixtures("figures")
class TestPlots:
    def test_spectra(self, result):
        axes = plotting.plot_spectra(result)
        assert axes.get_xlabel() == "wavelength [µm]"
        for line, spectrum in zip(axes.lines, result.endmembers, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), spectrum)
        assert result.plot_spectra(ax=axes) is axes

    def test_maps_have_one_scale(self, result):
        figure = plotting.plot_maps(result)
        images = [axes.images[0] for axes in figure.axes if axes.images]
        assert len(images) == 3
        assert {image.get_clim() for image in images} == {(0.0, 1.0)}
        assert len(figure.axes) == 4  # and the colour bar
        assert result.plot_maps() is not figure

    def test_chosen_pixels(self, result):
        axes = plotting.plot_chosen_pixels(result)
        marked = {(float(line.get_ydata()[0]), float(line.get_xdata()[0])) for line in axes.lines}
        assert {tuple(map(float, place)) for place in result.pixels} <= marked
        assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]
        assert result.plot_chosen_pixels(ax=axes) is axes

    def test_no_other_names(self):
        with pytest.raises(AttributeError, match="no attribute 'plot_nothing'"):
            _ = plotting.plot_nothing
