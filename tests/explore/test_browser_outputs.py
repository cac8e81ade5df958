"""What the explorer gives to a reader: commands, files, and charts that fit a laptop and a phone, light and dark."""

import csv
import json
import re
import shlex
import time
import warnings

import pytest
from browser import LAPTOP, PHONE, complaints, resize, screenshot
from explore.views import FIRST_FAST, VIEWS, facts, find, settle, show, state
from small_figures import small

from attnlab import lab
from attnlab.cli.jobs import parse_knobs
from attnlab.lab import registry

pytest.importorskip("selenium")


def commands(browser, page):
    """The command and the line of Python of each view at an unusual setting."""
    settings = {
        "aim": "rho=0.8&tokens=3",
        "slr": "lam=0.3&L=5",
        "rfa": "target=f2_q1&scale=2",
        "mha": "m=3&n=24",
        "smi": "alpha=0.7",
    }
    for view, setting in [*settings.items(), ("aim", "channel=hardmax&tokens=2"), ("rfa", "target=softmax_g4")]:
        show(browser, page, f"#{view}?{setting}")
        yield find(browser, f"#panel-{view} .command code").text, find(browser, f"#panel-{view} .python code").text


def requested(command):
    """The figure that a command of the page asks for, with its knobs."""
    _, _, name, *options = shlex.split(command)
    return registry.select([name])[0].changed("quick", parse_knobs(options[1::2]))


def test_the_commands_are_valid_requests(browser, page):
    for command, line in commands(browser, page):
        assert command.split()[:2] == ["attnlab", "run"]
        assert requested(command)
        compile(line, "the page", "exec")


@pytest.mark.slow
def test_the_commands_compute_and_draw(browser, page):
    for command, _ in commands(browser, page):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tiny samples are not fitted
            result = lab.run(small(requested(command)))
            assert result.records, command
            assert not result.failed, result.failed[0].error
            assert result.draw(), command


def test_the_line_of_python_prints_what_the_page_says(browser, page, capsys):
    show(browser, page, "#aim?rho=0.8&tokens=3&alpha=0.05")
    exec(find(browser, "#panel-aim .python code").text)
    printed = float(capsys.readouterr().out.split()[0])
    said = float(re.search(r"Bayes error at this setting: ([0-9.]+)\.", facts(browser, "aim")).group(1))
    assert said == pytest.approx(printed, rel=1e-3)


def test_copy_says_that_it_has_copied(browser, page):
    show(browser, page, "#mha")
    button = find(browser, "#panel-mha .command .copy")
    button.click()
    settle(browser)
    assert button.text == "copied"


@pytest.mark.parametrize("view", FIRST_FAST)
def test_charts_are_saved_as_png_and_csv(browser, page, tmp_path, view):
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    show(browser, page, f"#{view}")
    for figure in browser.find_elements("css selector", f"#panel-{view} .chart"):
        for button in figure.find_elements("css selector", ".exports button"):
            button.click()
            target = tmp_path / f"attnlab-{figure.get_attribute('data-name')}.{button.text.lower()}"
            wait_for(target)
            if button.text == "PNG":
                assert target.read_bytes().startswith(b"\x89PNG")
            else:
                header, *rows = csv.reader(target.read_text().splitlines())
                assert rows
                assert {len(row) for row in rows} == {len(header)}


def wait_for(path, seconds=10):
    end = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert path.exists(), path


SLOW_STATES = [pytest.param(state, marks=pytest.mark.slow) for state in ("mha?m=3", "aim?channel=hardmax")]
OUTSIDE = """return [...document.querySelectorAll(`#panel-${arguments[0]} .drawing svg`)].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
  }).map((text) => text.textContent);
})"""
OVERLAPPING = """return [...document.querySelectorAll(`#panel-${arguments[0]} .drawing svg`)].flatMap((svg) => {
  const texts = [...svg.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]), found = [];
  texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
    const across = p.left < q.right - 1 && q.left < p.right - 1, along = p.top < q.bottom - 3 && q.top < p.bottom - 3;
    if (across && along) found.push(`${a} / ${b}`);
  }));
  return found;
})"""


@pytest.mark.parametrize("width", [pytest.param(LAPTOP, marks=pytest.mark.slow), PHONE])
@pytest.mark.parametrize("fragment", [*VIEWS, *SLOW_STATES])
def test_no_text_is_clipped_or_overlaps(browser, page, tmp_path, fragment, width):
    from matplotlib.image import imread

    resize(browser, width)
    view = fragment.partition("?")[0]
    try:
        show(browser, page, f"#{fragment}")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(OUTSIDE, view) == []
        assert browser.execute_script(OVERLAPPING, view) == []
        # a blank page would be one colour
        assert imread(screenshot(browser, tmp_path / "page.png"))[:, :, :3].std() > 0.02
    finally:
        resize(browser, LAPTOP)


def test_on_a_phone_the_controls_stay_in_sight(browser, page):
    resize(browser, PHONE)
    try:
        show(browser, page, "#aim")
        browser.execute_script("scrollTo(0, document.body.scrollHeight / 2)")
        top = browser.execute_script(
            "return document.querySelector('#panel-aim .controls').getBoundingClientRect().top"
        )
        assert top == 0
    finally:
        resize(browser, LAPTOP)


def test_without_a_store_each_view_says_what_to_run(browser, empty_page):
    for view in VIEWS:
        show(browser, empty_page, f"#{view}")
        note = find(browser, f"#panel-{view} .nothing")
        assert note.is_displayed()
        words = note.find_element("css selector", "code").text.split()
        assert words[:2] == ["attnlab", "reproduce"]
        assert len(registry.select(words[2:])) == len(words[2:])
    assert complaints(browser) == []


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_every_preset_leads_to_its_setting(browser, page, view):
    show(browser, page, f"#{view}")
    complaints(browser)
    buttons = f"#panel-{view} .presets button"
    count = len(browser.find_elements("css selector", buttons))
    assert count >= 4
    seen = set()
    for i in range(count):
        browser.find_elements("css selector", buttons)[i].click()
        settle(browser)
        seen.add(json.dumps(state(browser, view)))
    assert len(seen) == count
    assert complaints(browser) == []


def colours(browser):
    return browser.execute_script(
        "const paper = getComputedStyle(document.body).backgroundColor;"
        "const ink = getComputedStyle(document.querySelector('#panel-aim .drawing svg text')).fill;"
        "return [paper, ink].map((c) => Number(c.match(/\\d+/)[0]))"
    )


@pytest.mark.slow
def test_the_page_follows_dark_mode(browser, page):
    for scheme, dark in (("light", False), ("dark", True)):
        feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
        show(browser, page, "#aim")
        paper, ink = colours(browser)
        assert (paper < ink) == dark
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def until(browser, condition, seconds=60):
    end = time.monotonic() + seconds
    while not browser.execute_script(f"return {condition}"):
        assert time.monotonic() < end, condition
        time.sleep(0.2)


@pytest.mark.slow
def test_training_is_played_to_the_time_of_the_slider(browser, page):
    show(browser, page, "#slr?time=20")
    find(browser, "#slr-play").click()
    until(browser, "attnlab.page.states.slr.time < 5")
    until(browser, "attnlab.page.states.slr.time === 20")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("#slr?lam=0.1&d=400&time=1&starts=0.1,0.2", "SGD in d = 40, live"),
        ("#aim?rho=0.5&alpha=0.1", "AMP live, mean of"),
    ],
)
def test_a_live_simulation_is_drawn_while_it_runs(browser, page, fragment, words):
    show(browser, page, fragment)
    view = fragment[1:4]
    find(browser, f"#{view}-live").click()
    until(browser, f"document.querySelector('#panel-{view}').textContent.includes('{words}')")
    assert complaints(browser) == []
