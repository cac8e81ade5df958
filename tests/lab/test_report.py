"""The report page: right in its parts, and looked at in a real browser."""

import json
import re

import pytest
from browser import LAPTOP, PHONE, chromium, complaints, resize, screenshot
from toy_figures import FIGURE

from attnlab import lab
from attnlab.lab.errors import StoreUnwritable


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return lab.report([lab.run(FIGURE)], folder)


def test_the_page_needs_nothing_beside_it(report):
    page = report.read_text()
    assert "data:image/png;base64," in page
    assert not re.search(r'(src|href)="https?://', page)
    assert "<script" not in page


def test_verdicts_come_first_and_every_link_leads_somewhere(report):
    page = report.read_text()
    assert page.index('id="claims"') < page.index('<section id="toy.mean"')
    for target in re.findall(r'href="([^"]+)"', page):
        assert f'id="{target[1:]}"' in page if target.startswith("#") else (report.parent / target).exists()


def test_claims_are_written_as_json(report):
    (claim,) = json.loads((report.parent / "claims.json").read_text())
    assert claim["id"] == "toy.1"
    assert claim["status"] == "holds"
    assert claim["low"] <= claim["value"] <= claim["high"]


def test_an_unwritable_folder_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write the report"):
        lab.report([lab.run(FIGURE)], tmp_path / "file" / "report")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_the_browser_shows_the_table_and_the_picture(report, browser):
    browser.get(report.as_uri())
    rows = browser.find_elements("css selector", "tbody tr")
    assert len(rows) == 1
    assert rows[0].find_element("css selector", ".status.holds").text == "holds"
    assert browser.execute_script("return document.images[0].naturalWidth") > 100
    assert complaints(browser) == []


def test_a_click_on_a_claim_leads_to_its_row_and_the_settings_open(report, browser):
    browser.get(report.as_uri())
    browser.find_element("css selector", 'section a[href="#toy.1"]').click()
    assert browser.current_url.endswith("#toy.1")
    browser.find_element("css selector", "details summary").click()
    assert browser.find_element("css selector", "details dl").is_displayed()


@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_nothing_sticks_out_on_a_laptop_and_on_a_phone(report, browser, tmp_path, width):
    from matplotlib.image import imread

    resize(browser, width)
    browser.get(report.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    pixels = imread(screenshot(browser, tmp_path / "page.png"))[:, :, :3]
    # a blank page would be one colour
    assert pixels.std() > 0.02
