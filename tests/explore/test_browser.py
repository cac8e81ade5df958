"""The explorer in use: real clicks, keys and drags in a headless browser, at the width of a laptop and of a phone."""

import csv
import json
import re
import time

import pytest
from browser import LAPTOP, PHONE, complaints, requests, resize, screenshot

from attnlab.cli.jobs import parse_knob
from attnlab.lab import registry

VIEWS = ("aim", "slr", "rfa", "mha", "smi")
# The first view stands for all in the fast suite.
FIRST_FAST = ["aim", *(pytest.param(view, marks=pytest.mark.slow) for view in VIEWS[1:])]
pytest.importorskip("selenium")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402


def show(browser, page, fragment=""):
    """Open the page afresh at a state."""
    browser.get("about:blank")
    browser.get(page.as_uri() + fragment)
    settle(browser)


def settle(browser):
    """Wait until what was asked for is drawn and the address says so."""
    browser.execute_async_script("const done = arguments[0]; setTimeout(done, 160)")


def find(browser, selector):
    return browser.find_element("css selector", selector)


def state(browser, view):
    return json.loads(browser.execute_script("return JSON.stringify(attnlab.page.states[arguments[0]])", view))


def facts(browser, view):
    return find(browser, f"#panel-{view} .facts").text


def test_no_complaint_and_no_request_while_all_views_are_opened(browser, page):
    show(browser, page)
    requests(browser), complaints(browser)
    for view in VIEWS:
        find(browser, f"#tab-{view}").click()
        settle(browser)
        shown = [v for v in VIEWS if find(browser, f"#panel-{v}").is_displayed()]
        assert shown == [view]
        assert all(f.text for f in browser.find_elements("css selector", f"#panel-{view} h3"))
    assert complaints(browser) == []
    assert requests(browser) == []


def test_a_view_opened_by_its_name_leaves_the_tabs_in_sight(browser, page):
    show(browser, page, "#mha")
    assert find(browser, "#panel-mha").is_displayed()
    assert browser.execute_script("return scrollY") == 0


def test_tabs_answer_to_arrow_keys(browser, page):
    tabs = [tab.get_attribute("id") for tab in browser.find_elements("css selector", "[role=tab]")]
    show(browser, page, tabs[0].replace("tab-", "#"))
    find(browser, f"#{tabs[0]}").send_keys(Keys.ARROW_LEFT)
    assert find(browser, f"#{tabs[-1].replace('tab', 'panel')}").is_displayed()
    assert browser.switch_to.active_element.get_attribute("id") == tabs[-1]


def test_the_address_keeps_a_value_between_two_stops_of_a_slider(browser, page):
    show(browser, page, "#aim?channel=hardmax&alpha=0.15")
    assert state(browser, "aim")["alpha"] == 0.15
    assert "alpha=0.15" in browser.execute_script("return location.hash")


def test_a_trajectory_that_leaves_the_planted_pair_is_not_counted(browser, page):
    show(browser, page, "#slr?lam=1&off=0.1&time=1000&d=400&L=10")
    assert "0 of 3 trajectories are near" in facts(browser, "slr")
    assert "unstable off M" in find(browser, "#panel-slr").text
    show(browser, page, "#slr?lam=0.05&off=0&time=1000&d=400&L=10")
    assert "3 of 3 trajectories are near" in facts(browser, "slr")


@pytest.mark.parametrize("view", FIRST_FAST)
def test_every_control_has_a_name_and_moves_with_the_keyboard(browser, page, view):
    show(browser, page, f"#{view}")
    for control in browser.find_elements(
        "css selector", f"#panel-{view} .controls input, #panel-{view} .controls select"
    ):
        name = control.get_attribute("id")
        assert find(browser, f'label[for="{name}"]').text
        before = control.get_attribute("value")
        control.send_keys(Keys.ARROW_RIGHT if control.tag_name == "input" else Keys.ARROW_DOWN)
        settle(browser)
        assert control.get_attribute("value") != before, name
        if control.tag_name == "input":
            assert control.get_attribute("aria-valuetext") == find(browser, f'output[for="{name}"]').text


def test_a_slider_moves_theory_and_address_and_the_address_restores_both(browser, page):
    show(browser, page, "#aim?rho=0.5&alpha=0.1")
    assert "0.3922" in facts(browser, "aim")
    slider = find(browser, "#aim-rho")
    slider.send_keys(Keys.ARROW_RIGHT)
    settle(browser)
    assert state(browser, "aim")["rho"] == 0.6
    said = facts(browser, "aim")
    assert "0.3922" not in said
    address = browser.current_url
    assert "rho=0.6" in address
    browser.get("about:blank")
    browser.get(address)
    settle(browser)
    assert facts(browser, "aim") == said


def test_an_address_pasted_into_the_open_page_is_followed(browser, page):
    show(browser, page, "#aim")
    browser.execute_script('location.hash = "#slr?lam=0.9&d=100"')
    settle(browser)
    assert find(browser, "#panel-slr").is_displayed()
    assert (state(browser, "slr")["lam"], state(browser, "slr")["d"]) == (0.9, 100)


@pytest.mark.parametrize(
    "fragment", ["#nothing", "#aim?rho=abc&tokens=99", "#slr?starts=7,8;x", "#rfa?target=none", "#%"]
)
def test_a_wrong_address_falls_back_to_what_is_allowed(browser, page, fragment):
    complaints(browser)
    show(browser, page, fragment)
    assert complaints(browser) == []
    assert any(find(browser, f"#panel-{view}").is_displayed() for view in VIEWS)


def test_more_tokens_keep_the_scaled_number_of_samples(browser, page):
    show(browser, page, "#aim?tokens=2&alpha=0.1")
    find(browser, "#aim-tokens").send_keys(Keys.ARROW_RIGHT)
    settle(browser)
    assert state(browser, "aim")["alpha"] == pytest.approx(0.04)
    assert "0.3922" in facts(browser, "aim")


def test_the_movable_point_answers_to_keys_and_keeps_the_focus(browser, page):
    show(browser, page, "#aim?rho=0.5&alpha=0.1")
    point = find(browser, "#panel-aim .handle")
    browser.execute_script("arguments[0].focus()", point)
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ARROW_UP):
        browser.switch_to.active_element.send_keys(key)
        settle(browser)
    assert state(browser, "aim")["alpha"] == pytest.approx(0.1025)
    assert state(browser, "aim")["rho"] == 0.7
    assert "handle" in browser.switch_to.active_element.get_attribute("class")


def test_the_movable_point_can_be_dragged_across_the_threshold(browser, page):
    show(browser, page, "#aim?rho=0.5&alpha=0.1")
    ActionChains(browser).drag_and_drop_by_offset(find(browser, "#panel-aim .handle"), 150, 0).perform()
    settle(browser)
    assert state(browser, "aim")["alpha"] > 0.1875
    assert state(browser, "aim")["rho"] == 0.5
    assert "Bayes error at this setting: 0." in facts(browser, "aim")


def test_a_click_starts_a_trajectory_and_a_drag_does_not(browser, page):
    show(browser, page, "#slr?starts=0.5,0.5")
    portrait = find(browser, '[data-name="slr-portrait"] svg')
    ActionChains(browser).move_to_element_with_offset(portrait, -40, 60).click().perform()
    settle(browser)
    assert len(state(browser, "slr")["starts"].split(";")) == 2
    assert "of 2 trajectories" in facts(browser, "slr")
    ActionChains(browser).drag_and_drop_by_offset(find(browser, "#panel-slr .handle"), 30, 0).perform()
    settle(browser)
    assert len(state(browser, "slr")["starts"].split(";")) == 2
    find(browser, "#slr-clear").click()
    settle(browser)
    assert len(state(browser, "slr")["starts"].split(";")) == 1


def test_the_planted_pair_loses_stability_at_the_slider(browser, page):
    show(browser, page, "#slr?lam=0.8")
    assert "the planted pair is stable" in facts(browser, "slr")
    show(browser, page, "#slr?lam=1")
    assert "the planted pair is unstable" in facts(browser, "slr")


def test_stored_points_show_where_they_were_run_and_a_button_leads_there(browser, page):
    show(browser, page, "#rfa?target=f1_p2&d=64")
    assert "no stored run at this target" in find(browser, '[data-name="rfa-curves"] svg').get_attribute("textContent")
    browser.find_element("xpath", "//section[@id='panel-rfa']//button[contains(., 'learning curve')]").click()
    settle(browser)
    assert state(browser, "rfa")["d"] == 16
    drawn = find(browser, '[data-name="rfa-curves"] svg').get_attribute("textContent")
    assert "no stored run" not in drawn
    assert "RFA, M = 1000" in drawn


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


def test_the_commands_are_valid_requests(browser, page):
    for command, line in commands(browser, page):
        words = command.split()
        assert words[:2] == ["attnlab", "run"]
        figure = registry.select([words[2]])[0]
        assert figure.changed("quick", dict(parse_knob(word) for word in words[4::2]))
        compile(line, "the page", "exec")


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
