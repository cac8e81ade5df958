"""The report page: right in its parts, and looked at in a real browser."""

import json
import re
import shutil
import subprocess

import pytest
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


def browse(report, tmp_path, *options):
    """What headless Chromium makes of the page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine: install the package 'chromium' to run the browser tests")
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
    ]
    command += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", *options]
    return subprocess.run([*command, report.as_uri()], capture_output=True, text=True, timeout=120)


def test_chromium_shows_the_table_and_the_picture(report, tmp_path):
    shown = browse(report, tmp_path, "--dump-dom").stdout
    assert shown.count("<tr") >= 2
    assert 'class="status holds">holds<' in shown


@pytest.mark.parametrize("width", [1280, 390])
def test_chromium_paints_the_page_on_a_laptop_and_on_a_phone(report, tmp_path, width):
    from matplotlib.image import imread

    target = tmp_path / "page.png"
    browse(report, tmp_path, f"--window-size={width},1000", f"--screenshot={target}")
    pixels = imread(target)[:, :, :3]
    assert pixels.shape[1] >= width
    # a blank page would be one colour
    assert pixels.std() > 0.02
