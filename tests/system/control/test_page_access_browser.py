# SPDX-License-Identifier: MIT
"""The page by keyboard, for screen readers, on a phone and in dark mode: every view and dialog of data."""

import pytest

from blob_client import Blobs
from page_client import browser_at, page_of, phone
from queue_client import Queues
from rest_client import ACCOUNT, Client, ok

pytestmark = pytest.mark.browser
CONTROLS = ":is(input, select, textarea, button, a, summary, [role=region], [role=img])"
DARK = "rgb(20, 24, 29)"
# The view, and the control that opens a dialog in it.
PLACES = [("Tables", "//button[.='New row']"), ("Tables", "//td//button[.='row']"), ("Tables", "//button[.='Import']"),
          ("Tables", "//button[.='Export']"), ("Tables", "(//button[.='Share'])[1]"),
          ("Queues", "//button[.='Delete this queue']"), ("Blobs", "//button[@aria-label='Delete disk']")]


@pytest.fixture
def browser(chromium, serve, rest_store):
    """Something with the name things in each view."""
    server = serve(rest_store, "--page=127.0.0.1:0")
    with Client(server.port) as client:
        ok(client.create_table("things"))
        ok(client.insert("things", {"PartitionKey": "p", "RowKey": "row", "Text": "long " * 100, "N": 1, "Yes": True}))
    queues = Queues(server.port, f"{ACCOUNT}.queue.localhost")
    queues.ask("PUT", "/things")
    queues.put("things", "long " * 100)
    blobs = Blobs(server.port, host=f"{ACCOUNT}.blob.localhost")
    blobs.ask("PUT", "/things", {"restype": "container"})
    blobs.ask("PUT", "/things/disk", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "4096"})
    with browser_at(chromium, page_of(server)) as browser:
        yield browser


def show(browser, view):
    browser.click(f"//nav//a[.='{view}']")
    browser.click("//nav//a[.='things']")
    browser.find("//caption[starts-with(., 'things')]")


def nameless(browser, within):
    """The visible controls without an accessible name."""
    found = []
    for element in browser.call("POST", "/elements", {"using": "css selector", "value": f"{within} {CONTROLS}"}):
        key = next(iter(element.values()))
        if browser.call("GET", f"/element/{key}/displayed") and not browser.call("GET", f"/element/{key}/computedlabel"):
            found.append(browser.call("GET", f"/element/{key}/property/outerHTML"))
    return found


def focused(browser):
    return browser.run("return document.activeElement.textContent")


def press(browser, *keys):
    browser.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
        {"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]}]})


@pytest.mark.parametrize("view, opener", PLACES, ids=[f"{v} {o}" for v, o in PLACES])
def test_every_control_has_a_name_and_escape_leaves_a_dialog(browser, view, opener):
    show(browser, view)
    assert nameless(browser, "body") == []
    browser.click(opener)
    browser.find("//dialog[@open]")
    assert nameless(browser, "dialog[open]") == []
    assert browser.run("return document.querySelector('dialog[open]').contains(document.activeElement)")
    press(browser, "\ue00c")
    browser.find("//body[not(.//dialog[@open])]")
    assert focused(browser) == browser.run(
        f"return document.evaluate({opener!r}, document, null, 9).singleNodeValue.textContent")


def test_a_row_is_edited_by_keyboard_alone(browser):
    show(browser, "Tables")
    browser.find("//*[contains(@class, 'row-key')]")
    browser.run("document.querySelector('.row-key').focus()")
    press(browser, "\ue007")
    browser.find("//dialog[@open]")
    browser.run("document.querySelectorAll('.value')[1].focus()")
    press(browser, "\ue010", "\ue003", "7", "\ue007")
    browser.find("//dialog[not(@open)]")
    browser.find("//td[.='7']")
    assert focused(browser) == "row"


@pytest.mark.parametrize("view, opener", PLACES, ids=[f"{v} {o}" for v, o in PLACES])
def test_each_view_and_dialog_fits_a_dark_phone(browser, view, opener):
    with phone(browser):
        show(browser, view)
        assert browser.run("return document.documentElement.scrollWidth") <= 360
        browser.find(opener)
        browser.run(f"document.evaluate({opener!r}, document, null, 9).singleNodeValue.click()")
        browser.find("//dialog[@open]")
        width, inner, colour = browser.run("""const dialog = document.querySelector("dialog[open]");
            return [dialog.getBoundingClientRect().right, dialog.scrollWidth - dialog.clientWidth,
                getComputedStyle(dialog).backgroundColor]""")
    assert width <= 360 and inner <= 0
    assert colour == DARK
