"""The explorer in use: real clicks, keys and drags in a headless browser."""

import pytest
from browser import complaints, requests
from explore.views import FIRST_FAST, VIEWS, facts, find, settle, show, state

from attnlab.lab import registry

pytest.importorskip("selenium")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys


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
    heads = registry.figures()["rfa.keys"].knobs("quick")["heads"]
    assert drawn.count(f"RFA, M = {heads}") == 2  # theory and simulation
