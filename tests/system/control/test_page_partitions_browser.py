# SPDX-License-Identifier: MIT
"""The list of a table's partitions in Debian's Chromium: only those in the window are read."""

import json
import re

import pytest

from page_client import browser_at, go, nameless_controls, page_of, phone
from rest_client import ACCOUNT
from tools import wait_for

pytestmark = pytest.mark.browser
SERVE_OPTIONS = ["--page=127.0.0.1:0"]
PARTITIONS = 5000
AREA = "//div[@aria-label='Partitions of Posts']"
END = "\ue010"
# A server of a million keys in place of the real one, which counts what is asked.
MILLION = """
const { KeySpace } = await import('/key_space.js');
const asked = [], n = 1000000, keyOf = (i) => 'k' + String(i).padStart(7, '0');
class Fake extends KeySpace {
    ask({ after, skip = 0, until, top }) {
        asked.push(top);
        let at = after === undefined ? 0 : Number(after.slice(1)) + 1, skipped = 0;
        for (; skipped < Math.min(skip, 200000) && at < n && !(keyOf(at) >= until); skipped++)
            at++;
        const partitions = [];
        for (; partitions.length < top && at < n; at++)
            partitions.push({ partition_key: keyOf(at) });
        return { total: n, skipped, partitions, last: keyOf(at - 1) };
    }
}
const space = new Fake('a', 't');
"""


@pytest.fixture(scope="module")
def opened(chromium, module_server, rowfs):
    lines = "".join(json.dumps({"PartitionKey": f"it's {i:05}", "RowKey": "r"}) + "\n"
                    for i in range(PARTITIONS))
    rowfs("import", module_server.store, f"{ACCOUNT}/Posts", input=lines)
    page = page_of(module_server)
    with browser_at(chromium, page) as browser:
        yield browser, page


@pytest.fixture
def list_(opened):
    browser, page = opened
    go(browser, page, ACCOUNT, "partitions", "Posts")
    browser.find(key(0))
    return browser


def key(i):
    return f"{AREA}//a[.=\"it's {i:05}\"]"


def asked(browser):
    """How many partitions each request asked for."""
    urls = browser.run("""return performance.getEntriesByType("resource")
        .map((entry) => entry.name).filter((name) => name.includes("/partitions/"))""")
    return [int(re.search(r"top=(\d+)", url)[1]) for url in urls]


def test_PG7_only_what_is_visible_is_asked_for(list_):
    list_.find(f"//p[.='{PARTITIONS:,} partitions']")
    shown = list_.run("return document.querySelectorAll('.virtual tbody tr').length")
    assert 10 < shown < 40
    list_.run("document.querySelector('.virtual').scrollTop = 75000")
    list_.find(key(2500))
    assert max(asked(list_)) <= shown and sum(asked(list_)) <= 10 * shown


def test_PG7_the_keyboard_reaches_the_last_partition(list_):
    element = list_.find(AREA)
    list_.call("POST", f"/element/{element}/value", {"text": END})
    list_.find(key(PARTITIONS - 1))
    index = list_.run("return document.querySelector('.virtual tbody tr:last-child').ariaRowIndex")
    assert int(index) == PARTITIONS + 1
    assert list_.run("return document.querySelector('.virtual table').ariaRowCount") == str(PARTITIONS + 1)


@pytest.mark.parametrize("typed, first", [("it's 03000", 3000), ("it's 03000x", 3001), ("", 0)])
def test_PG7_a_key_is_gone_to(list_, typed, first):
    list_.run("document.querySelector('.virtual').scrollTop = 9000")
    list_.find(key(300))
    list_.type("//input[@id='partition-key']", typed + "\ue007")
    list_.find(key(first))
    assert list_.run("return document.querySelector('.virtual tbody tr').textContent") \
        .startswith(f"it's {first:05}")


def test_PG7_the_focus_stays_in_the_list(list_):
    list_.find(key(0))
    list_.run("document.querySelector('.virtual tbody a').focus(); document.querySelector('.virtual').scrollTop = 9000")
    list_.find(key(300))
    assert list_.run("return document.activeElement.className") == "virtual"


def test_PG7_a_partition_leads_to_its_rows(list_):
    list_.click(key(7))
    list_.find("//caption[.='Posts: 1 row']")
    assert list_.run("return document.getElementById('filter').value") == "PartitionKey eq 'it''s 00007'"


def test_PG7_a_million_partitions_need_few_requests(list_):
    found = list_.run("return (async () => {" + MILLION + """
        const last = (await space.at(999990, 20)).map((one) => one.partition_key);
        const first = asked.length;
        const near = await space.at(999970, 10);
        const position = await space.positionOf('k0412345x');
        const far = await new Fake('a', 't').positionOf('k0999999');
        return { last, first, far, then: asked.length, near: near[0].partition_key, position,
                 read: asked.reduce((sum, n) => sum + n, 0) };
    })()""")
    assert found["last"] == [f"k{i:07}" for i in range(999990, 1000000)]
    assert found["first"] == 5  # of 200,000 each
    assert found["then"] <= 14
    assert (found["near"], found["position"], found["far"]) == ("k0999970", 412346, 999999)
    assert found["read"] == 30


def test_the_list_fits_a_phone_and_a_screen_reader(list_):
    with phone(list_):
        wait_for(lambda: list_.run("return innerWidth") == 360)
        assert list_.run("return document.documentElement.scrollWidth") <= 360
        assert nameless_controls(list_) == []
