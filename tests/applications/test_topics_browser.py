"""The page about documents in a real browser."""

import pytest

from gsnmf.applications import topics
from pages import HOSTILE
from planted_texts import make_texts

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By

from browsing import WIDTHS, assert_fits, assert_plain_text, assert_quiet, cells


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page in which names and texts try to be something else."""
    texts, labels = make_texts(40)
    texts = [f"{text} {HOSTILE[i % len(HOSTILE)]}" for i, text in enumerate(texts)]
    names = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(40)]
    dates = [f"202{i % 5}-03-01" for i in range(40)]
    labels = [f"{label} {'x' * 60}" for label in labels]
    path = tmp_path_factory.mktemp("report") / "topics.html"
    topics(texts, 3, ids=names, labels=labels, dates=dates).report(path, title=HOSTILE[0])
    return path


def test_no_complaints_and_no_requests(page, report):
    assert_quiet(page, report)


def test_hostile_names_stay_text(page):
    assert_plain_text(page)
    assert page.execute_script("return document.querySelectorAll('script').length") == 1


def test_click_on_a_document_shows_it(page):
    reader = page.find_element(By.CSS_SELECTOR, ".reader")
    assert not reader.is_displayed()
    click = "document.querySelector('[data-row=\"7\"]').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    page.execute_script(click)
    assert reader.is_displayed()
    name, topic = (cells(page, "documents-table", at)[7] for at in (0, 1))
    assert reader.find_element(By.TAG_NAME, "h3").get_attribute("textContent") == " ".join(name.split())
    assert topic in reader.text
    assert page.execute_script("return document.querySelectorAll('.selected').length") == 2
    page.execute_script("document.querySelector('.reader button').click()")
    shown = cells(page, "documents-table", 1)
    assert 0 < len(shown) < 40
    assert set(shown) == {topic}


def test_topics_of_the_map_lead_to_their_cards(page):
    page.execute_script(
        "document.querySelector('.topic-map a').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert page.current_url.endswith("#topic-1")
    assert page.execute_script("return document.querySelectorAll('.topic-map a').length") == 3


def test_search_over_texts(page):
    search = page.find_element(By.ID, "documents-table-search")
    search.send_keys("VIOLIN")
    found = page.execute_script(
        "const rows = document.querySelectorAll('#documents-table tbody tr:not([hidden])');"
        "return Array.from(rows).map(row => row.textContent)"
    )
    assert 0 < len(found) < 40
    assert all("violin" in text.lower() for text in found)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [*WIDTHS.values(), 1400])
def test_themes_and_widths(page, theme, width):
    assert_fits(page, theme, width)


def test_it_can_be_read_without_script(browser, report):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(report.as_uri())
    assert len(browser.find_elements(By.CSS_SELECTOR, ".card")) == 3
    assert len(browser.find_elements(By.CSS_SELECTOR, "#documents-table tbody tr")) == 40
