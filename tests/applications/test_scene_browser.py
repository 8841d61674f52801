"""The report of a scene in a real browser: no complaints, nothing from the network, readable in both themes."""

import numpy as np
import pytest

from gsnmf.applications import unmix
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from browsing import assert_contrast, assert_fits, assert_quiet, emulate


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    scene = planted_scene(np.random.default_rng(0), shape=(20, 30), n_bands=25)
    path = tmp_path_factory.mktemp("scene") / "report.html"
    found = unmix(scene.cube, 4, method="n-findr", wavelengths=np.linspace(400, 2400, 25), averaged=3)
    found.report(path, title="<script>document.title='owned'</script>")
    return path


def test_no_complaints_and_no_requests(page, report):
    assert_quiet(page, report)
    assert page.title.startswith("<script>")
    assert page.execute_script("return document.querySelectorAll('script').length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_themes_and_widths(page, theme, width):
    assert_fits(page, theme, width)
    assert_contrast(page, "page", [f"c{number}" for number in range(8)])


def test_maps_are_large_and_spectra_are_drawn(page):
    emulate(page, width=1400)
    sizes = page.execute_script(
        "return Array.from(document.querySelectorAll('#maps .field')).map(i => [i.naturalWidth, i.clientWidth])"
    )
    assert len(sizes) == 4
    assert all(natural == 30 and shown >= 300 for natural, shown in sizes)
    lines = page.execute_script(
        "return Array.from(document.querySelectorAll('.spectra polyline')).map(l => "
        "[l.getTotalLength(), getComputedStyle(l).stroke])"
    )
    assert len({stroke for _, stroke in lines}) == 4
    assert all(length > 100 for length, _ in lines)
    rings = page.execute_script(
        "return Array.from(document.querySelectorAll('.ring')).map(r => r.getBoundingClientRect().width)"
    )
    assert len(rings) == 4
    assert min(rings) >= 20
    emulate(page)
