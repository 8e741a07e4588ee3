# SPDX-License-Identifier: MIT
"""The page for browsers in Debian's Chromium."""

import pytest

from page_client import browser_at, hold, let_go, page_of
from rest_client import ACCOUNT, Client, ok
from tools import wait_for

pytestmark = pytest.mark.browser
ROWS = 120


def fill(port):
    with Client(port) as client:
        ok(client.create_table("People"))
        for i in range(ROWS):
            ok(client.insert("People", {
                "PartitionKey": "o'neil" if i < 3 else "rest", "RowKey": f"{i:03}", "Age": i,
                "Half": 2.0,
                "Name": f"<b>{i}</b>", "Big": str(1 << 60), "Big@odata.type": "Edm.Int64"}))


@pytest.fixture
def opened(chromium, serve, rest_store):
    """A browser that opened the link, and saw the table People."""
    server = serve(rest_store, "--page=127.0.0.1:0")
    fill(server.port)
    with browser_at(chromium, page_of(server)) as browser:
        browser.find("//nav//a[text()='People']")
        yield browser


def rows(browser):
    return browser.run("return document.querySelectorAll('#rows tr').length")


def show_table(browser):
    browser.click("//nav//a[text()='People']")
    browser.find("//caption[contains(., 'People: 100 rows so far')]")


def test_PG2_rows_are_shown_in_parts_with_their_types(opened):
    assert opened.run("return document.getElementById('account').value") == ACCOUNT
    show_table(opened)
    assert rows(opened) == 100
    assert opened.run("return document.title").startswith("People – Tables")
    assert opened.run("return document.activeElement.id") == "main"
    for name, kind in ("Age", "Int32"), ("Half", "Double"), ("Big", "Int64"), ("Name", "String"):
        opened.find(f"//th[starts-with(., '{name}')]/small[.='{kind}']")
    opened.find("//td[.='1152921504606846976']")
    opened.find("//td[.='<b>1</b>']")
    opened.type("//input[@id='filter']", "Age eq 0")  # and not sent
    opened.click("//button[.='More rows']")
    opened.find(f"//caption[.='People: {ROWS} rows']")
    assert rows(opened) == ROWS


def test_PG2_a_row_that_was_inserted_is_shown_once(opened):
    show_table(opened)
    opened.click("//button[.='New row']")
    opened.type("//input[@id='edit-pk']", "rest")
    opened.type("//input[@id='edit-rk']", "110a\ue007")
    opened.find("//caption[.='People: 101 rows so far']")
    opened.click("//button[.='More rows']")
    opened.find(f"//caption[.='People: {ROWS + 1} rows']")
    assert opened.run("""return [...document.querySelectorAll("#rows tr")].slice(-10, -8)
        .map((line) => line.cells[1].textContent)""") == ["110a", "111"]


def test_another_account_leaves_the_focus_in_the_list_of_accounts(opened):
    opened.run("""document.getElementById("account").focus();
        location.hash = document.getElementById("account").value + "/queues";""")
    opened.find("//label[.='New queue']")
    assert opened.run("return document.activeElement.id") == "account"


def test_names_are_listed_once(opened):
    """The view is left and shown again before the names are there."""
    hold(opened, "path.includes('/Tables?') || path.includes('/queue/')")
    opened.run("""return (async () => {
        for (const view of ["queues", "tables", "queues", "tables"]) {
            location.hash = document.getElementById("account").value + "/" + view;
            await new Promise((done) => window.addEventListener("hashchange", done, { once: true }));
        }
    })()""")
    let_go(opened)
    opened.find("//nav//a[.='People']")
    wait_for(lambda: opened.run("""return performance.getEntriesByType("resource")
        .filter((entry) => entry.name.includes("/Tables?")).length""") == 3)
    assert opened.run("return document.querySelectorAll('#names a').length") == 1


def test_PG2_a_filter_and_a_partition_choose_rows(opened):
    show_table(opened)
    opened.type("//input[@id='filter']", "Age ge 118\ue007")
    opened.find("//caption[.='People: 2 rows']")
    opened.type("//input[@id='filter']", "Age ge\ue007")
    opened.find("//*[@role='status'][string-length(.) > 0]")
    opened.complained("status of 400")
    opened.type("//input[@id='filter']", "Age eq 0\ue007")
    opened.find("//caption[.='People: 1 row']")
    opened.click("//button[.=\"o'neil\"]")
    opened.find("//caption[.='People: 3 rows']")


def test_PG19_the_plan_of_a_filter_is_told(opened):
    show_table(opened)
    opened.type("//input[@id='filter']", "PartitionKey eq 'rest' and Age gt 100")
    opened.click("//button[.='Explain']")
    text = opened.find("//p[@id='plan'][contains(., 'Plan: ')]")
    assert text
    opened.find("//p[@id='plan'][contains(., 'It looked at') and contains(., 'matched.')]")


def test_PG1_without_a_session_the_page_asks_for_the_link(opened):
    opened.call("DELETE", "/cookie")
    opened.call("POST", "/refresh", {})
    opened.find("//*[@role='status'][contains(., 'Open the link')]")
    assert opened.run("return document.querySelectorAll('#account option').length") == 0
    opened.complained("status of 401")


def test_the_page_fits_a_phone_and_a_dark_mode(opened):
    opened.call("POST", "/goog/cdp/execute", {
        "cmd": "Emulation.setDeviceMetricsOverride",
        "params": {"width": 360, "height": 640, "deviceScaleFactor": 1, "mobile": True}})
    opened.call("POST", "/goog/cdp/execute", {
        "cmd": "Emulation.setEmulatedMedia",
        "params": {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}})
    show_table(opened)
    assert opened.run("return document.documentElement.scrollWidth") <= 360
    assert opened.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"


def test_every_control_has_an_accessible_name(opened):
    show_table(opened)
    elements = opened.call("POST", "/elements", {
        "using": "css selector", "value": "input, select, nav a, #ask button, .scroll"})
    assert len(elements) >= 5
    for element in elements:
        key = next(iter(element.values()))
        if opened.call("GET", f"/element/{key}/displayed"):
            assert opened.call("GET", f"/element/{key}/computedlabel") != ""
