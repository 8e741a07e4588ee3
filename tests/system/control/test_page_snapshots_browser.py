# SPDX-License-Identifier: MIT
"""The view of snapshots in Debian's Chromium: made, and compared with what is there now."""

import json

import pytest

from page_client import browser_at, go, nameless_controls, page_of, phone
from rest_client import ACCOUNT, Client, ok
from tools import wait_for

pytestmark = pytest.mark.browser
SERVE_OPTIONS = ["--page=127.0.0.1:0"]
ENTER = "\ue007"
COMPARE = "//section[@aria-label='Compare Days']"


def put(client, row, **properties):
    ok(client.request("PUT", f"Days(PartitionKey='p',RowKey='{row}')", json.dumps(properties)))


@pytest.fixture(scope="module")
def opened(chromium, module_server):
    page = page_of(module_server)
    with Client(module_server.port) as client, browser_at(chromium, page) as browser:
        ok(client.create_table("Days"))
        for row in "same", "changed", "gone", "again":
            put(client, row, Name="old", Half=2.0)
        go(browser, page, ACCOUNT, "snapshots", "Days")
        browser.type("//input[@id='snapshot-name']", "monday" + ENTER)
        browser.find("//button[@aria-label='Remove snapshot monday']")
        put(client, "changed", Name="new", Half=2.5)
        put(client, "again", Name="old", Half=2.0)
        ok(client.delete("Days", "p", "gone"))
        for i in range(150):
            put(client, f"zzz{i:03}", N=i)
        yield browser, page


@pytest.fixture
def view(opened):
    browser, page = opened
    go(browser, page, ACCOUNT, "snapshots", "Days")
    browser.find("//button[@aria-label='Remove snapshot monday']")
    return browser


def test_PG9_the_latest_snapshot_is_compared_with_now(view):
    view.click(f"{COMPARE}//button[.='Compare']")
    view.find(f"{COMPARE}//p[starts-with(., '100 differences so far')]")
    for kind, row in ("changed", "changed"), ("removed", "gone"), ("added", "zzz000"), \
            ("written again, with the same content", "again"):
        view.find(f"{COMPARE}//summary[strong[.='{kind}'] and contains(., ' p / {row}')]")
    assert view.run("return [...document.querySelectorAll('summary')].filter((one) => one.textContent.endsWith('/ same')).length") == 0
    view.click(f"{COMPARE}//button[.='More differences']")
    view.find(f"{COMPARE}//p[starts-with(., '153 differences;')]")


def test_PG9_a_changed_row_shows_both_values_with_their_types(view):
    view.click(f"{COMPARE}//button[.='Compare']")
    line = f"{COMPARE}//details[@open][summary[contains(., ' p / changed')]]//tr[th[.='Half']]"
    view.find(f"{line}[td[1][.='2 Double'] and td[2]/mark[.='2.5 Double']]")


def test_PG9_what_is_compared_is_chosen(view):
    view.click("//select[@id='compare-before']/option[.='now']")
    view.click("//select[@id='compare-after']/option[.='monday']")
    view.click(f"{COMPARE}//button[.='Compare']")
    view.find(f"{COMPARE}//summary[strong[.='added'] and contains(., ' p / gone')]")
    view.find(f"{COMPARE}//summary[strong[.='removed'] and contains(., ' p / zzz000')]")


def test_PG9_a_snapshot_is_removed_and_a_name_that_is_taken_is_told(view):
    view.type("//input[@id='snapshot-name']", "monday" + ENTER)
    view.find("//*[@id='status'][string-length(.) > 0]")
    view.complained("status of 409")
    view.type("//input[@id='snapshot-name']", "tuesday" + ENTER)
    for answer, count in ("Cancel", "2 snapshots"), ("Remove", "1 snapshot"):
        view.click("//button[@aria-label='Remove snapshot tuesday']")
        view.click(f"//dialog//button[.='{answer}']")
        view.find(f"//caption[.='{count}']")


def test_the_view_fits_a_phone_and_a_screen_reader(view):
    view.click(f"{COMPARE}//button[.='Compare']")
    view.find(f"{COMPARE}//summary")
    with phone(view):
        wait_for(lambda: view.run("return innerWidth") == 360)
        assert view.run("return document.documentElement.scrollWidth") <= 360
        assert nameless_controls(view) == []
