"""The built site: its links lead somewhere, and a real browser shows it on desktops and phones without a complaint.

``make docs`` builds it in build/site; ``GSNMF_SITE`` names another folder.
"""

import json
import os
import threading
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from browsing import emulate
from processes import PATIENCE

SITE = Path(os.environ.get("GSNMF_SITE", Path(__file__).parents[2] / "build" / "site"))
PAGES = {
    "start": "index.html",
    "guide": "guide/methods.html",
    "gallery": "gallery/key_pixels_and_digits.html",
    "coming from": "coming_from/nmf.html",
    "reproduction": "reproduction.html",
    "reference": "api/names/gsnmf.factorize.html",
}
WIDTHS = (390, 1400)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason=f"there is no site in {SITE}: make docs"),
]


class _Reader(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self):
        super().__init__()
        self.links, self.places = set(), {"", "top"}

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.places |= {values[name] for name in ("id", "name") if values.get(name)}
        for name in ("href", "src"):
            if values.get(name) is not None:
                self.links.add(values[name])


@cache
def read(path):
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def pages():
    return sorted(path for path in SITE.rglob("*.html") if "_static" not in path.relative_to(SITE).parts)


def test_internal_links_lead_somewhere():
    broken = []
    for page in pages():
        for link in read(page).links:
            address, place = urldefrag(urljoin(page.as_uri(), link))
            if urlsplit(address).scheme != "file":
                continue
            target = Path(unquote(urlsplit(address).path))
            if target.is_dir():
                target /= "index.html"
            if not target.exists() or (target.suffix == ".html" and unquote(place) not in read(target).places):
                broken.append(f"{page.relative_to(SITE)}: {link}")
    assert not broken, "\n".join(broken)


def test_external_links_are_encrypted(record_property):
    """They are listed, not opened: a test needs no network."""
    links = {link for page in pages() for link in read(page).links if "://" in link and not link.startswith("data:")}
    record_property("external links", "\n".join(sorted(links)))
    assert {urlsplit(link).scheme for link in links} <= {"https"}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def host():
    """The site on a server of its own: a browser does not let pages from files read other files, as search does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def shown(browser, host):
    """Open a page of the site; the browser must have nothing to complain about, and must ask no other host."""
    browser.get_log("browser")
    browser.get_log("performance")

    def show(page, **how):
        emulate(browser, **how)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        browser.get(host + page)
        return browser

    yield show
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith((host, "data:", "blob:"))] == []
    emulate(browser)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_page(shown, page, width):
    opened = shown(PAGES[page], width=width)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    assert opened.find_element(By.TAG_NAME, "h1").is_displayed()
    pictures = "return [...document.querySelectorAll('article img')].filter(i => i.complete && !i.naturalWidth).length"
    assert opened.execute_script(pictures) == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes(shown, theme):
    opened = shown("index.html", theme=theme)
    ground = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
    bright = sum(map(float, ground[ground.index("(") + 1 : -1].split(",")[:3])) > 3 * 127
    assert bright == (theme == "light")


def test_mathematics_is_drawn(shown):
    opened = shown("theory/model.html")
    WebDriverWait(opened, PATIENCE).until(lambda page: page.find_elements(By.CSS_SELECTOR, "mjx-container"))


@pytest.mark.parametrize("width", WIDTHS)
def test_search_finds_anchor(shown, width):
    opened = shown("search.html?q=anchor", width=width)
    found = WebDriverWait(opened, PATIENCE).until(
        lambda page: [link for link in page.find_elements(By.CSS_SELECTOR, "#search-results li a") if link.text]
    )
    assert len(found) >= 3
    WebDriverWait(opened, PATIENCE).until(
        lambda page: "anchor" in page.find_element(By.ID, "search-results").text.lower()
    )
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
