"""The report in a real browser; `make test-browser` installs what this needs."""

import base64
import json
import os
import shutil
from urllib.parse import urlparse

import pytest

from paper.test_results import written_again

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="NOT TESTED in a browser: selenium"
)
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("NOT TESTED in a browser: no chromium, chromedriver", allow_module_level=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report about the committed run."""
    return written_again(tmp_path_factory.mktemp("report"))[0].as_uri()


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_the_report_is_quiet_alone_and_readable(browser, page, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page)
    assert browser.get_log("browser") == []  # nothing on the console
    events = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    asked = [params["request"]["url"] for params in sent]
    assert page in asked
    assert {urlparse(url).scheme for url in asked} <= {"file", "data"}
    run = browser.execute_script
    assert run("return [...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert run("return document.images.length") == 4
    # The page does not scroll sideways; what is wider than the screen scrolls by itself.
    assert run("return document.documentElement.scrollWidth") <= width
    small = "return Math.min(...[...document.querySelectorAll('p,li,td,th,figcaption')]"
    assert run(small + ".map(e => parseFloat(getComputedStyle(e).fontSize)))") >= 12
    if folder := os.environ.get("TCBOOST_SCREENSHOTS"):
        full = {"captureBeyondViewport": True, "format": "png"}
        image = browser.execute_cdp_cmd("Page.captureScreenshot", full)["data"]
        with open(os.path.join(folder, f"report-{width}.png"), "wb") as file:
            file.write(base64.b64decode(image))
