# SPDX-License-Identifier: MIT
"""The live view of the page in Debian's Chromium: charts, and the tables that say the same."""

import itertools
import json

import pytest

from page_client import browser_at, go, nameless_controls, page_of, phone
from rest_client import ACCOUNT, Client, ok
from tools import wait_for

pytestmark = pytest.mark.browser
SERVE_OPTIONS = ["--page=127.0.0.1:0"]
ROWS = itertools.count()
# Two answers of /live: in two seconds 98 quick inserts, a slow one, one that ended above all limits, and
# one that was refused among them.
BEFORE = {"now_us": 5_000_000, "bucket_limits_us": [16, 32, 64], "operations": [
    {"front_end": "rest", "operation": "Get", "refused": 7, "failed": 0, "max_us": 20,
     "buckets": [0, 7, 0, 0]}]}
AFTER = {"now_us": 7_000_000, "bucket_limits_us": [16, 32, 64], "operations": [
    BEFORE["operations"][0],
    {"front_end": "rest", "operation": "Insert", "refused": 1, "failed": 0, "max_us": 900,
     "buckets": [98, 0, 1, 1]}]}


@pytest.fixture(scope="module")
def opened(chromium, module_server):
    with Client(module_server.port) as client:
        ok(client.create_table("People"))
    page = page_of(module_server)
    with browser_at(chromium, page) as browser:
        yield browser, page


@pytest.fixture
def server(module_server):
    return module_server


@pytest.fixture
def live(opened):
    browser, page = opened
    go(browser, page, ACCOUNT, "live")
    browser.find("//section[@aria-label='Store']//td[.='Whole store']")
    return browser


def insert(server, browser):
    """Inserts rows until the view has seen it."""
    with Client(server.port) as client:
        def seen():
            ok(client.insert("People", {"PartitionKey": "p", "RowKey": str(next(ROWS))}))
            return browser.run("""return [...document.querySelectorAll("[aria-label='Requests'] tbody tr")]
                .map((line) => [...line.cells].map((cell) => cell.textContent))
                .find((cells) => cells[1] === "InsertEntity")""")
        found = []
        wait_for(lambda: found.append(seen()) or found[-1])
        return found[-1]


def colours(browser, label):
    """How many pixels of the chart in this part of the view are not empty."""
    return browser.run(f"""const c = document.querySelector("[aria-label='{label}'] canvas");
        return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((n) => n > 0).length""")


def test_PG5_rates_and_percentiles_are_of_the_time_between_two_looks(live):
    between = f"import('/figures.js').then((m) => m.between({json.dumps(BEFORE)}, {json.dumps(AFTER)}))"
    found = live.run("return " + between)
    line = found["operations"][0]
    assert [o["operation"] for o in found["operations"]] == ["Insert"]
    assert (line["rate"], line["refused"], line["failed"]) == (50, 0.5, 0)
    assert (line["p50"], line["p99"]) == (16, 64)
    assert found["all"]["rate"] == 50


def test_PG5_requests_are_drawn_and_listed(server, live):
    before = live.run("return document.querySelectorAll('[aria-label=Requests] canvas').length")
    front_end, _, rate, p50, p99, refused, failed = insert(server, live)
    assert front_end == "rest" and float(rate) > 0
    for latency in p50, p99:
        assert latency.split()[1] in ("µs", "ms", "s")
    assert (refused, failed) == ("0", "0")
    assert before >= 1 and colours(live, "Requests") > 1000
    live.find("//*[@role='img'][contains(@aria-label, 'requests a second')]")
    live.find("//select[@aria-label='Operation of the latency chart']/option[.='rest InsertEntity']")


def test_PG5_the_latency_chart_shows_one_operation(server, live):
    """The one that is chosen rests while another one is asked for."""
    insert(server, live)
    live.click("//select[@aria-label='Operation of the latency chart']/option[.='rest InsertEntity']")
    with Client(server.port) as client:
        def rests():
            client.get("People", "p", "0")
            return live.run("""const requests = document.querySelector("[aria-label='Requests']");
                return [requests.querySelectorAll("[role=img]")[1].ariaLabel, requests.querySelector(".scroll tbody").textContent]""")
        wait_for(lambda: rests()[0] == "p50 –, p99 –" and rests()[1].startswith("restQueryEntity"))
        live.click("//select[@aria-label='Operation of the latency chart']/option[.='all requests']")
        wait_for(lambda: "s, p99 " in rests()[0])


def test_PG5_bytes_of_store_and_log_are_drawn_and_listed(live):
    live.find("//*[@role='img'][contains(@aria-label, 'on disk, of that')]")
    live.find("//td[.='Write-ahead log']/following-sibling::td[contains(., 'B')]")
    wait_for(lambda: colours(live, "Store") > 1000)


def test_PG5_bytes_of_memory_and_of_each_cache_are_drawn_and_listed(live):
    live.find("//*[@role='img'][contains(@aria-label, 'in memory, of that')]")
    for part in "Memory of rowfs, with its caches", "Cache of the store's pages", "Cache of names of tables":
        live.find(f'//td[.="{part}"]/following-sibling::td[contains(., "B") and .!="0 B"]')
    for part in "Cache of the mount's rows", "Cache of partition keys":
        live.find(f'//td[.="{part}"]/following-sibling::td[contains(., "B")]')
    wait_for(lambda: live.run("""return [...document.querySelectorAll("[aria-label=Store] canvas")].map((c) =>
        c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((n) => n > 0).length > 1000)""") == [True, True])


def test_PG8_tables_are_measured_when_somebody_asks(server, live):
    with Client(server.port) as client:
        client.create_table("Small")
    insert(server, live)
    assert live.run("return performance.getEntriesByType('resource').filter((e) => e.name.includes('/sizes/')).length") == 0
    live.click("//button[.='Measure the tables']")
    live.find("//caption[contains(., 'measured at')]")
    live.find("//tr[td[1]='People' and td[2]='1' and contains(td[4], 'B')]//meter[@aria-label='Share of People']")
    live.find("//tr[td[1]='Small' and td[2]='0' and td[3]='0' and td[4]='0 B']")
    live.find("//td[.='Memory of rowfs, with its caches']/following-sibling::td[contains(., 'MiB')]")


def looks(browser):
    return browser.run("""return performance.getEntriesByType("resource")
        .filter((entry) => entry.name.endsWith("/live")).length""")


def hide(browser, hidden):
    browser.run(f"""Object.defineProperty(document, "hidden", {{ value: {json.dumps(hidden)}, configurable: true }});
        document.dispatchEvent(new Event("visibilitychange"))""")


# Counts the timers that wait, and the requests that are under way; one counts until the page has dealt with its answer.
WATCH = """const { setTimeout: set, clearTimeout: clear, fetch: ask } = window;
    Object.assign(window, { asking: 0, waiting: new Set() });
    window.setTimeout = (action, ms) => {
        const id = set(() => { waiting.delete(id); action(); }, ms);
        waiting.add(id);
        return id;
    };
    window.clearTimeout = (id) => { waiting.delete(id); clear(id); };
    window.fetch = (...request) => {
        asking++;
        const answer = ask(...request), end = () => set(() => { asking--; }, 100);
        answer.then((one) => one.clone().text()).then(end, end);
        return answer;
    };"""


@pytest.fixture
def watched(live):
    live.run(WATCH)
    wait_for(lambda: live.run("return waiting.size > 0"))
    return live


def rests(browser):
    """Waits until no request is under way and none will come."""
    wait_for(lambda: browser.run("return asking === 0 && waiting.size === 0"))


@pytest.mark.parametrize("rest, go_on", [
    (lambda live: live.click("//button[.='Pause']"),) * 2,
    (lambda live: hide(live, True), lambda live: hide(live, False))], ids=["paused", "hidden"])
def test_PG5_a_paused_or_hidden_view_asks_for_nothing_and_goes_on(watched, rest, go_on):
    rest(watched)
    rests(watched)
    before = looks(watched)
    go_on(watched)
    wait_for(lambda: looks(watched) >= before + 2)


def test_PG5_a_paused_view_stays_paused_when_its_tab_is_shown(watched):
    watched.click("//button[.='Pause']")
    hide(watched, True)
    hide(watched, False)
    rests(watched)
    assert watched.run("return document.querySelector('.live > button').ariaPressed") == "true"


def test_PG5_another_view_ends_it_and_a_hidden_page_starts_none(watched):
    watched.click("//nav//a[.='Tables']")
    watched.find("//nav//a[.='People']")
    rests(watched)
    hide(watched, True)
    watched.click("//nav//a[.='Live']")
    watched.find("//section[@aria-label='Store']")
    rests(watched)


def status(browser):
    return browser.run("return document.getElementById('status').textContent")


def test_PG5_its_error_does_not_come_into_another_view(live):
    live.run("""const ask = window.fetch, held = new Promise((go) => { window.letGo = go; });
        window.fetch = async (path, options) => {
            if (path !== "/live")
                return ask(path, options);
            window.isHeld = true;
            await held;
            throw new TypeError();
        };""")
    wait_for(lambda: live.run("return window.isHeld"))
    live.click("//nav//a[.='Tables']")
    live.find("//label[.='New table']")
    live.run("letGo(); return new Promise((done) => setTimeout(done))")
    assert status(live) == ""


def test_PG5_it_takes_back_no_message_of_another_part(live):
    live.run("return import('/dom.js').then(({ say }) => say('not measured'))")
    before = looks(live)
    wait_for(lambda: looks(live) >= before + 2)
    assert status(live) == "not measured"


def test_the_live_view_fits_a_phone_and_a_screen_reader(server, live):
    insert(server, live)
    read = "return getComputedStyle(document.documentElement).getPropertyValue('--line-1')"
    light = live.run(read)
    with phone(live):
        wait_for(lambda: live.run(
            "return document.querySelector('canvas').getBoundingClientRect().width") < 340)
        assert live.run("return document.documentElement.scrollWidth") <= 360
        assert live.run(read) != light
        assert nameless_controls(live) == []
