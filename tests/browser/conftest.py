"""A real Chromium, and the page in it. Screenshots go to build/screenshots, to be looked at."""

import contextlib
import pathlib
import tempfile

import pytest
import stand_in as stand_in_module
import support
from page import Page
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENSHOTS = pathlib.Path(__file__).resolve().parents[2] / "build" / "screenshots"


@contextlib.contextmanager
def chromium_of_tests():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in [*FLAGS, f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        try:
            yield driver
        finally:
            driver.quit()


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests: it takes a second to start, a fresh page takes none."""
    with chromium_of_tests() as driver:
        yield driver


@pytest.fixture
def page(chromium):
    """A page that fails its test if the browser blocked something or a script failed."""
    shown = Page(chromium, SCREENSHOTS)
    shown.size(1360, 860)
    chromium.get_log("browser")
    yield shown
    complaints = [
        entry["message"]
        for entry in chromium.get_log("browser")
        if entry["level"] == "SEVERE"
        and "Failed to load resource" not in entry["message"]
        and "net::ERR" not in entry["message"]
    ]
    chromium.get("about:blank")
    assert complaints == []


@pytest.fixture
def stand_in():
    server = stand_in_module.StandIn()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def server(tmp_path):
    """The real program with an empty state. A replica that died waits long enough to be seen."""
    environment = {
        "REPLICA_STABLE_S": "3600",
        "REPLICA_BACKOFF_MIN_S": "5",
        "REPLICA_BACKOFF_MAX_S": "5",
    }
    running = support.Server(tmp_path, environment=environment)
    try:
        yield running
    finally:
        running.stop()
