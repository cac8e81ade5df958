"""A headless Chromium for the tests that look at pages; they are skipped where there is none."""

import base64
import contextlib
import json
import shutil

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
LAPTOP, PHONE = 1250, 390


@contextlib.contextmanager
def chromium(folder, width=LAPTOP, height=1000):
    """A browser with its profile and its downloads in ``folder``; quits at the end."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install 'attnlab[dev]'")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium on this machine: install 'chromium' and 'chromium-driver' to run the browser tests")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        resize(browser, width, height)
        yield browser
    finally:
        browser.quit()


def resize(browser, width, height=1000):
    """Give the page this many CSS pixels, as on a phone where they are few."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def screenshot(browser, path):
    """The whole page, also what is below the window's end."""
    size = browser.execute_script("const page = document.documentElement; return [page.clientWidth, page.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
    request = {"captureBeyondViewport": True, "clip": clip}
    path.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", request)["data"]))
    return path


def complaints(browser):
    """What the console says since it was last asked."""
    return [entry["message"] for entry in browser.get_log("browser")]


def requests(browser):
    """Addresses that the page asked the network for since last asked; files and data are none."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:", "chrome:"))]
