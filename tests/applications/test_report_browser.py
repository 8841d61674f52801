"""The report in a real browser: it asks nothing of the network, there are no complaints, and it can be worked with."""

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.datasets import LabelledMatrix, planted
from gsnmf.reports.findings import gather
from gsnmf.reports.page import write_report
from pages import HOSTILE

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browsing import (
    WIDTHS,
    assert_contrast,
    assert_fits,
    assert_plain_text,
    assert_quiet,
    cells,
    emulate,
    luminances,
    opened,
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report in which every name tries to be something else."""
    matrix = sp.csr_array(planted((40, 30), 3, 3, random_state=0).matrix + 0.02)
    result = gsnmf.factorize(matrix, 8, method="gspa")
    names = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(40)]
    names[result.rows[0]] = "Señor Größe"
    data = LabelledMatrix(result.matrix, tuple(names), tuple(names[:30]), source=HOSTILE[0])
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(gather(result, data, title=HOSTILE[0], about=HOSTILE[1], warnings=HOSTILE[:2]), path)
    return path


@pytest.fixture(scope="module")
def image_report(tmp_path_factory):
    result = gsnmf.factorize(np.random.default_rng(0).random((20, 12)), 4, method="spa-rows")
    path = tmp_path_factory.mktemp("report") / "images.html"
    write_report(gather(result, LabelledMatrix(result.matrix).with_image_shape((4, 3))), path)
    return path


def visible_rows(page, table):
    rows = page.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr:not([hidden])")
    return [row.get_attribute("textContent") for row in rows]


def header(page, table, position):
    return page.find_element(By.CSS_SELECTOR, f"#{table} thead th:nth-child({position + 1})")


@pytest.mark.parametrize("kind", ["report", "image_report"])
def test_no_complaints_and_no_requests(browser, kind, request):
    path = request.getfixturevalue(kind)
    assert_quiet(opened(browser, path), path)
    assert (
        browser.execute_script(
            "return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length"
        )
        == 0
    )


def test_pictures_can_be_seen(browser, image_report):
    opened(browser, image_report)
    sizes = browser.execute_script("return Array.from(document.images).map(i => i.naturalWidth)")
    assert len(sizes) > 10
    assert all(size > 0 for size in sizes)


def test_hostile_names_stay_text(page):
    assert_plain_text(page, "img[src=x]")
    assert page.execute_script("return document.querySelectorAll('script').length") == 1
    assert page.execute_script("return getComputedStyle(document.body).display") == "block"
    names = cells(page, "rows-table", 0)
    assert any("<script>" in name for name in names)
    assert any("onerror=alert(1)" in name for name in names)


def test_numbers_are_sorted_as_numbers(page):
    button = header(page, "rows-table", 1).find_element(By.TAG_NAME, "button")
    button.click()
    assert header(page, "rows-table", 1).get_attribute("aria-sort") == "descending"
    assert cells(page, "rows-table", 1) == [str(i) for i in reversed(range(40))]
    button.click()
    assert header(page, "rows-table", 1).get_attribute("aria-sort") == "ascending"
    assert cells(page, "rows-table", 1) == [str(i) for i in range(40)]
    assert page.execute_script("return document.querySelectorAll('#rows-table [aria-sort]').length") == 1


def test_texts_are_sorted_by_keyboard(page):
    button = header(page, "chosen-table", 2).find_element(By.TAG_NAME, "button")
    page.execute_script("arguments[0].focus()", button)
    button.send_keys(Keys.ENTER)
    assert header(page, "chosen-table", 2).get_attribute("aria-sort") == "ascending"
    ordered = cells(page, "chosen-table", 2)
    compare = (
        "return arguments[0].toSorted((a, b) => a.localeCompare(b, undefined, {numeric: true, sensitivity: 'base'}))"
    )
    assert ordered == page.execute_script(compare, ordered)
    outline = page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", button)
    assert outline == "solid"


def test_search(page):
    search = page.find_element(By.ID, "rows-table-search")
    output = page.find_element(By.CSS_SELECTOR, "output[for='rows-table-search']")
    assert output.text == "40"
    search.send_keys("große SENOR")
    found = visible_rows(page, "rows-table")
    assert 0 < len(found) < 40
    assert all("Señor Größe" in text for text in found)
    assert "Señor Größe" in cells(page, "rows-table", 0)
    assert output.text == f"{len(found)} of 40"
    header(page, "rows-table", 1).find_element(By.TAG_NAME, "button").click()
    assert sorted(visible_rows(page, "rows-table")) == sorted(found)
    search.send_keys(Keys.ESCAPE)
    assert len(cells(page, "rows-table", 0)) == 40
    search.send_keys("<script>")
    assert all("<script>" in text for text in visible_rows(page, "rows-table"))
    search.send_keys(" no such name")
    assert cells(page, "rows-table", 0) == []
    assert output.text == "0 of 40"


def test_everything_is_reached_by_keyboard(page):
    page.execute_script("document.activeElement.blur()")
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert page.switch_to.active_element.get_attribute("class") == "skip"
    wanted = {"chosen-table-search", "rows-table-search", "columns-table-search", "button", "summary", "a"}
    for _ in range(150):
        active = page.switch_to.active_element
        wanted -= {active.get_attribute("id"), active.tag_name}
        if not wanted:
            break
        active.send_keys(Keys.TAB)
    assert not wanted


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_themes_widths_and_contrast(page, theme, width):
    assert_fits(page, theme, width)
    for ground in ("page", "soft"):
        assert_contrast(page, ground, ["text", "muted", "accent", "bad", "good"])


def test_print_is_light_and_shows_all_sections(page):
    emulate(page, theme="dark", media="print")
    assert luminances(page, ["page"]) == [1]
    assert not page.find_element(By.ID, "rows-table-search").is_displayed()
    assert page.find_element(By.ID, "made").is_displayed()
    emulate(page)
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    assert len(printed["data"]) > 10_000


def test_it_can_be_read_without_script(browser, report):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(report.as_uri())
    assert not browser.find_element(By.ID, "rows-table-search").is_displayed()
    assert len(browser.find_elements(By.CSS_SELECTOR, "#rows-table tbody tr")) == 40
