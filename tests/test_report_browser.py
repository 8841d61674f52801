"""The report in a real browser: it asks nothing of the network, there are no complaints, and it can be worked with."""

import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.datasets import LabelledMatrix, planted
from gsnmf.reports.findings import gather
from gsnmf.reports.page import write_report
from test_report import HOSTILE

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

WIDTHS = {"desktop": 1200, "phone": 390}


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no Chromium or no chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--force-prefers-reduced-motion"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's sandbox does not work for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


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


def opened(browser, report):
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(report.as_uri())
    return browser


@pytest.fixture
def page(browser, report):
    return opened(browser, report)


def assert_quiet(page, report):
    """The browser complains about nothing, and the page asks for nothing but itself."""
    assert page.get_log("browser") == []
    messages = [entry["message"] for entry in page.get_log("performance")]
    asked = [message for message in messages if "Network.requestWillBeSent" in message]
    assert asked
    assert all(report.as_uri() in message or '"url":"data:' in message for message in asked)


def emulate(browser, *, theme="light", width=1200, media=""):
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def cells(page, table, position):
    script = (
        "return Array.from(document.querySelectorAll(`#${arguments[0]} tbody tr`)).filter(r => !r.hidden)"
        ".map(r => r.cells[arguments[1]].textContent.trim())"
    )
    return page.execute_script(script, table, position)


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
    browser.get(image_report.as_uri())
    sizes = browser.execute_script("return Array.from(document.images).map(i => i.naturalWidth)")
    assert len(sizes) > 10
    assert all(size > 0 for size in sizes)


def test_hostile_names_stay_text(page):
    assert page.title.startswith("<script>document.title='owned'</script>")
    assert page.execute_script("return document.querySelectorAll('script').length") == 1
    assert page.execute_script("return document.querySelectorAll('[onerror], [onmouseover], img[src=x]').length") == 0
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
    emulate(page, theme=theme, width=width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    colours = page.execute_script(
        "const s = getComputedStyle(document.documentElement); const of = n => s.getPropertyValue('--' + n).trim();"
        "return ['page', 'soft', 'text', 'muted', 'accent', 'bad', 'good'].map(of)"
    )
    background, soft, *inks = map(luminance, colours)
    assert (background > 0.5) == (theme == "light")
    for ink in inks:
        for ground in (background, soft):
            assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.5
    emulate(page)


def test_print_is_light_and_shows_all_sections(page):
    emulate(page, theme="dark", media="print")
    assert (
        luminance(page.execute_script("return getComputedStyle(document.documentElement).getPropertyValue('--page')"))
        == 1
    )
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
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def luminance(colour: str) -> float:
    """Relative luminance of a colour #rrggbb, as the Web Content Accessibility Guidelines define it."""
    channels = np.array([int(colour.strip()[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
