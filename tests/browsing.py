"""A real browser for the fixtures ``browser`` and ``page``, and what every page must satisfy."""

import os
import shutil
from contextlib import suppress

import numpy as np
import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException

from processes import PATIENCE

WIDTHS = {"desktop": 1200, "phone": 390}


def start():
    """Chromium without a window; skips the test where it or its driver is missing."""
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
    for _ in range(4):  # on a busy machine it may take longer than its driver waits
        with suppress(WebDriverException):
            return _started(options, driver)
    return _started(options, driver)


def _started(options, driver):
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.set_script_timeout(PATIENCE)
    return browser


def opened(browser, report):
    """The browser with a report open, and nothing in its logs from before."""
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(report.as_uri())
    return browser


def assert_quiet(page, report):
    """The browser complains about nothing, and the page asks for nothing but itself."""
    assert page.get_log("browser") == []
    messages = [entry["message"] for entry in page.get_log("performance")]
    asked = [message for message in messages if "Network.requestWillBeSent" in message]
    assert asked
    assert all(report.as_uri() in message or '"url":"data:' in message for message in asked)


def emulate(browser, *, theme="light", width=1200, media=""):
    """Show pages in this theme, at this width, on screen or in print."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def assert_fits(page, theme, width):
    """The page has the ground of its theme, and neither it nor a card is wider than its place; it stays so shown."""
    emulate(page, theme=theme, width=width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    (ground,) = luminances(page, ["page"])
    assert (ground > 0.5) == (theme == "light")
    cards = page.execute_script(
        "return Array.from(document.querySelectorAll('.card')).map(card => [card.scrollWidth, card.clientWidth])"
    )
    assert all(needed <= given for needed, given in cards)


def assert_plain_text(page, pictures="img"):
    """Names that look like HTML are shown as text; ``pictures`` says which images such a name could have made."""
    assert page.title.startswith("<script>document.title='owned'</script>")
    made = f"return document.querySelectorAll('[onerror], [onmouseover], {pictures}').length"
    assert page.execute_script(made) == 0


def assert_contrast(page, ground, inks):
    """Colours can be read on a ground, by the 4.5 : 1 of the Web Content Accessibility Guidelines."""
    behind, *shown = luminances(page, [ground, *inks])
    for luminance in shown:
        assert (max(luminance, behind) + 0.05) / (min(luminance, behind) + 0.05) >= 4.5


def luminances(page, names):
    """Relative luminance of colours of the style sheet, as the Web Content Accessibility Guidelines define it."""
    script = (
        "const style = getComputedStyle(document.documentElement);"
        "return arguments[0].map(name => style.getPropertyValue('--' + name).trim())"
    )
    return [_luminance(colour) for colour in page.execute_script(script, names)]


def _luminance(colour):
    channels = np.array([int(colour.strip()[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def cells(page, table, position):
    """Text of one column of a table, in the rows that are shown."""
    script = (
        "return Array.from(document.querySelectorAll(`#${arguments[0]} tbody tr`)).filter(r => !r.hidden)"
        ".map(r => r.cells[arguments[1]].textContent.trim())"
    )
    return page.execute_script(script, table, position)
