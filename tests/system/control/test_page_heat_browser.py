# SPDX-License-Identifier: MIT
"""The heat strip of the page in Debian's Chromium: where in the key space a table is hot."""

import itertools
import json

import pytest

from page_client import browser_at, go, nameless_controls, page_of, phone
from rest_client import ACCOUNT, Client
from tools import wait_for

pytestmark = pytest.mark.browser
SERVE_OPTIONS = ["--page=127.0.0.1:0", "--partition-target=50"]
PARTITIONS = 640
ROWS = itertools.count()
HOT = "day 00639"
TABLES = "//div[not(@hidden)]/figure//select[@aria-label='Table of the heat strip']"
# How many pixels of the strip have the colour of what is over the target, in its left and right half.
RED = """
const c = document.querySelector("[aria-label='Heat'] canvas"), n = c.width;
const { data } = c.getContext("2d").getImageData(0, 0, n, c.height);
const found = [0, 0];
for (let i = 0; i < data.length; i += 4)
    if (data[i] === 196 && data[i + 1] === 50 && data[i + 2] === 31)
        found[(i / 4) % n < n / 2 ? 0 : 1]++;
return found;
"""
# A table of 6,400 keys, in place of the server's.
MAP = """
const { HeatMap } = await import('/heat_map.js');
const keyOf = (i) => 'k' + String(i).padStart(4, '0');
const space = { total: 6400, at: async (i) => [{ partition_key: keyOf(i) }] };
const map = new HeatMap(space);
const stale = [map.isStale(6400)];
await map.cut();
stale.push(map.isStale(6400), map.isStale(6500), map.isStale(6501), map.isStale(6299));
"""


def fill(port, table, hot):
    """Changes a hundred entities of one partition in one request, which is admitted as a whole."""
    with Client(port) as client:
        def admitted():
            done = client.batch([
                ("POST", table, {}, json.dumps({"PartitionKey": hot, "RowKey": f"r{next(ROWS)}"}))
                for _ in range(100)])
            return b" 201 " in done.body or b" 204 " in done.body
        wait_for(admitted)


@pytest.fixture(scope="module")
def opened(chromium, module_server, rowfs):
    for table, n in ("Log", PARTITIONS), ("Few", 3):
        lines = "".join(json.dumps({"PartitionKey": f"day {i:05}", "RowKey": "r"}) + "\n"
                        for i in range(n))
        rowfs("import", module_server.store, f"{ACCOUNT}/{table}", input=lines)
    page = page_of(module_server)
    with browser_at(chromium, page) as browser:
        yield browser, page


@pytest.fixture
def heat(opened, module_server):
    browser, page = opened
    go(browser, page, ACCOUNT, "live")
    fill(module_server.port, "Log", HOT)
    browser.click(f"{TABLES}/option[.='{ACCOUNT}/Log']")
    return browser


def line(browser, key):
    return browser.run("""return [...document.querySelectorAll("[aria-label='Heat'] tbody tr")]
        .map((line) => [...line.cells].map((cell) => cell.textContent))
        .find((cells) => cells[0] === arguments[0])""".replace("arguments[0]", json.dumps(key)))


def test_PG6_a_hot_partition_is_listed_with_its_place(heat):
    wait_for(lambda: line(heat, HOT))
    _, peak, mean, share, place = line(heat, HOT)
    assert int(peak) >= 100 and float(mean) > 0
    assert share == f"{int(peak) * 2} %"  # of 50
    assert place == "64 of 64"
    heat.find(f"//*[@role='img'][contains(@aria-label, 'hottest: {HOT}') and contains(@aria-label, 'target is 50')]")


def test_PG6_the_strip_is_red_where_it_is_hot_and_has_the_target_as_a_line(heat):
    def drawn():
        left, right = heat.run(RED)
        return left > 100 and right > 3 * left
    wait_for(drawn)


def test_PG6_another_table_has_its_own_strip(heat, module_server):
    wait_for(lambda: line(heat, HOT))
    fill(module_server.port, "Few", "day 00001")
    heat.click(f"{TABLES}/option[.='{ACCOUNT}/Few']")
    wait_for(lambda: (line(heat, "day 00001") or [""])[-1] == "2 of 3")
    assert line(heat, HOT) is None


def test_PG6_slices_have_as_many_partitions_each(heat):
    found = heat.run("return (async () => {" + MAP + """
        const heat = map.heat([{ partition_key: 'k0199', peak: 7, changed: 60, read: 60 },
            { partition_key: 'k0150', peak: 9, changed: 0, read: 60 }], 60);
        return { stale, n: map.firsts.length, peak: heat.peak[1], mean: heat.mean[1], none: heat.peak[0],
                 places: ['k0099', 'k0100', 'k6400', 'a'].map((key) => map.sliceOf(key)) };
    })()""")
    assert found["n"] == 64 and found["places"] == [0, 1, 63, 0]
    assert (found["peak"], found["mean"], found["none"]) == (9, 2, None)
    assert found["stale"] == [True, False, False, True, True]


def test_PG6_a_table_that_was_deleted_leaves_the_menu(heat):
    found = heat.run("""return (async () => {
        const { Heat } = await import('/live_heat.js'), ask = window.fetch;
        window.fetch = (path, options) => path === "/heat/a/gone"
            ? Promise.resolve(new Response("no such table", { status: 404 })) : ask(path, options);
        const heat = new Heat(new AbortController().signal);
        await heat.read({ hottest: [{ account: "a", table: "gone" }] });
        heat.end();
        return heat.tables.options.length;
    })()""")
    assert found == 0


def test_PG6_without_a_target_of_its_own_the_line_is_at_500(heat):
    found = heat.run("""return import('/live_heat.js').then(({ Heat }) => {
        const heat = new Heat(new AbortController().signal);
        document.body.append(heat.place);
        heat.map = { firsts: ["a"], heat: () => ({ peak: [1], mean: [1] }), sliceOf: () => 0 };
        heat.found = { heat_seconds: 60, partition_target: 0,
            partitions: [{ partition_key: "a", peak: 1, changed: 1, read: 0 }] };
        heat.draw();
        const text = heat.place.querySelector("[role=img]").ariaLabel;
        heat.end();
        heat.place.remove();
        return text;
    })""")
    assert found.endswith("the target is 500")


def test_the_strip_fits_a_phone_and_a_screen_reader(heat):
    wait_for(lambda: line(heat, HOT))
    with phone(heat):
        wait_for(lambda: heat.run("return innerWidth") == 360)
        assert heat.run("return document.documentElement.scrollWidth") <= 360
        assert nameless_controls(heat) == []
