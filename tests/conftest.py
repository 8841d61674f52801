import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# The process that hands out the tests reads this file and runs none of them: what takes long to import comes later

# The same examples every time, however busy the machine is
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("steady")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What needs a browser is long: starting one takes seconds, and few machines have it."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish():
    """Spare the garbage collector the modules and the thousands of collected tests, which live to the end.

    What tests leave behind is little, so that looking for it less often is enough.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture
def figures():
    """Matplotlib without a display; closes what a test has drawn. Tests are skipped where Matplotlib is missing."""
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="session")
def running_browser():
    """A browser without a window; tests are skipped where it, its driver or Selenium is missing."""
    pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from browsing import start

    running = start()
    yield running
    running.quit()


@pytest.fixture
def browser(running_browser):
    """The one browser of all tests; afterwards it shows pages as usual again."""
    from browsing import emulate

    yield running_browser
    running_browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    emulate(running_browser)


@pytest.fixture
def page(browser, report):
    """The browser with the ``report`` of a test module open."""
    from browsing import opened

    return opened(browser, report)


@pytest.fixture(scope="session")
def planted_data():
    """A noisy matrix with three planted columns and two planted rows."""
    from gsnmf.datasets import planted

    return planted((60, 50), 3, 2, noise_level=0.02, random_state=0)


@pytest.fixture(scope="session")
def planted_result(planted_data):
    """What a quick search finds in ``planted_data``."""
    import gsnmf

    return gsnmf.factorize(planted_data.matrix, 5, effort="fast")


@pytest.fixture(scope="session")
def jasper():
    """The Jasper Ridge scene, height x width x bands, and its true spectra; skipped where the file is missing."""
    import numpy as np

    from reproduction.matrices import load

    try:
        data = load("jasper")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return np.moveaxis(np.asarray(data.matrix).reshape(-1, 100, 100, order="F"), 0, 2), data.extra["W_true"].T


@pytest.fixture(scope="session")
def paper():
    """Reader of the paper's matrices; tests that use it are skipped where the files are not at hand."""
    from reproduction.matrices import DATA_VARIABLE, load, missing_data

    if not os.environ.get(DATA_VARIABLE):
        pytest.skip(f"the paper's data: {DATA_VARIABLE} names no folder")
    known = {}

    def read(name):
        if reason := missing_data(name):
            pytest.skip(reason)
        if name not in known:
            known[name] = load(name)
        return known[name]

    return read
