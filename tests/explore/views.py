"""What the browser tests of the explorer share: its views, and how a test opens and reads them."""

import json

import pytest

VIEWS = ("aim", "slr", "rfa", "mha", "smi")
# The first view stands for all in the fast suite.
FIRST_FAST = ["aim", *(pytest.param(view, marks=pytest.mark.slow) for view in VIEWS[1:])]


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
