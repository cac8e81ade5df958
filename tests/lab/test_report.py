"""The report page: right in its parts, and looked at in a real browser."""

import dataclasses
import json
import re
import tomllib

import numpy as np
import pytest
from browser import LAPTOP, PHONE, chromium, complaints, resize, screenshot
from matplotlib.lines import Line2D
from toy_figures import FIGURE

from attnlab import lab
from attnlab.common.claim import STATUSES
from attnlab.common.drawing import panels, points
from attnlab.common.records import Curve
from attnlab.common.statistics import mean, of
from attnlab.lab import drawn, pictures, registry
from attnlab.lab.errors import StoreUnwritable
from attnlab.lab.formulas.plain import sentence


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return lab.report([lab.run(FIGURE)], folder)


def test_the_page_needs_nothing_beside_it(report):
    page = report.read_text()
    assert "data:image/png;base64," in page
    assert not re.search(r'(src|href)="https?://', page)
    assert "<script src" not in page


def test_verdicts_come_first_and_every_link_leads_somewhere(report):
    page = report.read_text()
    assert page.index('id="claims"') < page.index('id="toy.mean"')
    for target in re.findall(r'href="([^"]+)"', page):
        assert f'id="{target[1:]}"' in page if target.startswith("#") else (report.parent / target).exists()


def test_claims_are_written_as_json(report):
    (claim,) = json.loads((report.parent / "claims.json").read_text())
    assert claim["id"] == "toy.1"
    assert claim["status"] == "holds"
    assert claim["low"] <= claim["value"] <= claim["high"]


def run_unfinished(params, seed):
    return {"error": 1.0, "converged": params["n"] < 1000}


def test_rows_that_did_not_converge_are_counted_below_the_picture_in_the_caption_and_on_the_page(tmp_path):
    result = lab.run(dataclasses.replace(FIGURE, run=run_unfinished))
    counted = "4 of 12 rows did not converge"
    canvas = result.draw()
    assert [text.get_text() for text in canvas.texts] == [counted]
    assert [(m.x, m.y) for m in drawn.marks(canvas) if m.source == "unconverged"] == [(1000.0, 1.0)]
    assert counted in lab.report([result], tmp_path).read_text()
    assert f" {counted}.\n" in (tmp_path / "toy.mean.tex").read_text()
    assert lab.run(FIGURE).draw().texts == []


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
    claims = browser.find_elements("css selector", "section .claim")
    assert len(claims) == 1
    assert claims[0].find_element("css selector", ".status.holds").text == "holds"
    # the small copy at the top and the picture itself
    assert browser.execute_script("return Array.from(document.images, (i) => i.naturalWidth > 100)") == [True, True]
    assert complaints(browser) == []


def test_the_filter_hides_what_does_not_match_and_a_link_shows_it_again(report, browser):
    browser.get(report.as_uri())
    section = browser.find_element("id", "toy.mean")
    words = browser.find_element("id", "by-words")
    words.send_keys("nowhere")
    assert not section.is_displayed()
    words.clear()
    words.send_keys("toy.1")
    assert section.is_displayed()
    browser.find_element("css selector", '#by-state option[value="fails"]').click()
    assert not section.is_displayed()
    browser.execute_script("location.hash = '#toy.mean'")
    assert section.is_displayed()


def test_a_page_of_a_run_that_goes_on_renews_itself_and_says_what_is_left(tmp_path):
    page = lab.report([lab.run(FIGURE)], tmp_path, waiting=["toy.other"]).read_text()
    assert '<meta http-equiv="refresh"' in page
    assert "Still to compute: toy.other." in page
    assert '<meta http-equiv="refresh"' not in lab.report([lab.run(FIGURE)], tmp_path).read_text()


def test_a_claim_without_data_and_what_is_drawn_are_told_in_words(tmp_path):
    claim = dataclasses.replace(FIGURE.claims[0], id="toy.2", statistic=mean(of("error", n=-1)))
    page = lab.report([lab.run(dataclasses.replace(FIGURE, claims=[claim]))], tmp_path).read_text()
    assert "no data: no finished cell with n = -1" in page
    assert "Theory: lines. Simulation: points with error bars." in page


def test_no_caption_and_no_claim_shows_latex():
    figures = registry.figures().values()
    texts = [text for figure in figures for text in (figure.shows, *(claim.says for claim in figure.claims))]
    assert [text for text in texts if re.search(r"[$\\^]\d|[$\\]", sentence(text))] == []


def test_the_states_add_up_to_all_claims_of_the_systems_on_the_page(tmp_path):
    figures = [figure for name, figure in lab.figures().items() if name.startswith("rfa.")]
    page = lab.report([lab.run("rfa.complexity")], tmp_path).read_text()
    head = re.search(r'<p class="counts".*?</p>', page)[0]
    counts = dict(zip(STATUSES, map(int, re.findall(r"<b>(\d+)</b>", head)), strict=True))
    shown = len(lab.figures()["rfa.complexity"].claims)
    assert sum(counts.values()) == sum(len(figure.claims) for figure in figures) > shown
    assert counts["not measured"] == sum(counts.values()) - shown
    assert "<code>rfa.keys</code>" in page


def test_changed_settings_are_not_judged(tmp_path):
    result = lab.run(FIGURE, set={"n": [10, 20]})
    assert result.verdicts == []
    page = lab.report([result], tmp_path).read_text()
    assert "No claim is judged here: n changed" in page
    assert 'class="claim' not in page


def test_a_long_axis_is_shortened_on_the_page_and_whole_in_the_file(tmp_path):
    axis = list(range(100_000))
    result = dataclasses.replace(lab.run(FIGURE), figure=FIGURE.changed("quick", {"n": axis}))
    page = lab.report([result], tmp_path).read_text()
    assert "[0, 1, 2," in page
    assert "9999, 10000" not in page
    assert tomllib.loads((tmp_path / "toy.mean.toml").read_text())["set"]["n"] == axis


def test_the_settings_open(report, browser):
    browser.get(report.as_uri())
    browser.find_element("css selector", ".figure > div > details summary").click()
    assert browser.find_element("css selector", ".figure > div > details dl").is_displayed()


@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_nothing_sticks_out_on_a_laptop_and_on_a_phone(report, browser, tmp_path, width):
    from matplotlib.image import imread

    resize(browser, width)
    browser.get(report.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    pixels = imread(screenshot(browser, tmp_path / "page.png"))[:, :, :3]
    # a blank page would be one colour
    assert pixels.std() > 0.02


def test_on_a_narrow_screen_panels_stand_in_one_column_with_their_labels():
    canvas, axes = panels(2, 2, sharey="row")
    for ax in axes.flat:
        points(ax, Curve(np.arange(3.0), np.ones(3), np.ones(3)), label="measured")
    axes[0, 0].set_ylabel("first")
    axes[1, 0].set_ylabel("second")
    axes[1, 1].set_xlabel("below")
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    assert pictures.stack(canvas)
    width, height = pictures.size(pictures.screen_picture(canvas))
    assert width < 0.5 * height
    assert [ax.get_ylabel() for ax in axes.flat] == ["first", "first", "second", "second"]
    assert axes[0, 1].get_xlabel() == "below"
    assert len({round(ax.get_position().x0, 2) for ax in axes.flat}) == 1
    assert any(mark.get_marker() == "o" for mark in canvas.legends[0].findobj(Line2D))
    assert not pictures.stack(canvas)


def test_a_dense_layer_of_colour_stays_below_a_megabyte(tmp_path):
    def draw(records):
        canvas, axes = panels(1, 3)
        for ax in axes[0]:
            value = np.random.default_rng(0).random((60, 60))
            ax.pcolormesh(np.arange(60.0), np.arange(60.0), value, shading="gouraud", cmap="Blues", alpha=0.8)
        return canvas

    lab.report([lab.run(dataclasses.replace(FIGURE, draw=draw))], tmp_path)
    assert (tmp_path / "toy.mean.svg").stat().st_size < 1_000_000


def test_a_figure_that_cannot_be_drawn_from_cells_of_other_code_says_what_to_run(tmp_path):
    def draw(records):
        raise KeyError("pieces")

    result = dataclasses.replace(lab.run(dataclasses.replace(FIGURE, draw=draw)), old=1)
    page = lab.report([result], tmp_path).read_text()
    assert "attnlab reproduce toy.mean computes them again" in page
    assert "KeyError" not in page
