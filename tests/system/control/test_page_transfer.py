# SPDX-License-Identifier: MIT
"""Import and export in the page, in Debian's Chromium and over HTTP."""

import json

import pytest

from page_client import ask, browser_at, hold, let_go, page_of
from rest_client import ACCOUNT, VERSION, Client, ok
from tools import wait_for

LINES = ('{"PartitionKey":"p","RowKey":"1","N":5,"D":2.0,"Minus":-0.0,"Text":"a,\\"b\\"\\nc","Empty":""}\n'
         '{"PartitionKey":"p","RowKey":"2","Big":9007199254740993,"Yes":true,"__proto__":"own","toString":1,"Nan@odata.type":"Edm.Double","Nan":"NaN"}\n'
         '{"PartitionKey":"ü","RowKey":"","Born@odata.type":"Edm.DateTime","Born":"1999-12-31T23:59:59.1234567Z",'
         '"Bytes@odata.type":"Edm.Binary","Bytes":"AAH/"}\n')


class Tables:
    """The table From with the rows of LINES, and the table Copy, which is empty."""

    def __init__(self, rowfs, server, store, work):
        self.rowfs, self.page, self.store, self.work = rowfs, page_of(server), store, work
        self.client = Client(server.port)
        for name in "From", "Copy":
            ok(self.client.create_table(name))
        rowfs("import", store, f"{ACCOUNT}/From", "-", input=LINES)

    def rows(self, table):
        """The rows as the command exports them, without their times."""
        found = []
        for line in self.rowfs("export", self.store, f"{ACCOUNT}/{table}").stdout.splitlines():
            row = json.loads(line)
            del row["Timestamp"]
            found.append(row)
        return found


@pytest.fixture
def tables(rowfs, serve, rest_store, work):
    made = Tables(rowfs, serve(rest_store, "--page=127.0.0.1:0"), rest_store, work)
    yield made
    made.client.close()


@pytest.fixture
def browser(chromium, tables):
    with browser_at(chromium, tables.page) as browser:
        browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tables.work))
        yield browser


def import_file(browser, table, path):
    browser.click(f"//nav//a[.='{table}']")
    browser.find(f"//caption[starts-with(., '{table}:')]")
    browser.click("//button[.='Import']")
    field = browser.find("//input[@id='import-file']")
    browser.call("POST", f"/element/{field}/value", {"text": str(path)})
    browser.click("//dialog//button[.='Import']")


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["ndjson", "csv"])
def test_PG18_an_export_and_an_import_lose_nothing(tables, browser, kind):
    browser.click("//nav//a[.='From']")
    browser.find("//caption[.='From: 3 rows']")
    browser.click("//button[.='Export']")
    browser.click(f"//option[@value='{kind}']")
    browser.click("//dialog//button[.='Export']")
    browser.find(f"//dialog//p[.='3 rows are in From.{kind}.']")
    file = tables.work / f"From.{kind}"
    wait_for(lambda: file.exists() and file.stat().st_size > 0)
    browser.click("//dialog//button[.='Close']")
    import_file(browser, "Copy", file)
    browser.find("//dialog//p[.='3 rows are in Copy; 0 refused.']")
    browser.find("//caption[.='Copy: 3 rows']")
    assert tables.rows("Copy") == tables.rows("From")
    tables.client.delete_table("Copy")
    ok(tables.client.create_table("Again"))
    tables.rowfs("import", tables.store, f"{ACCOUNT}/Again", file)
    assert tables.rows("Again") == tables.rows("From")


@pytest.mark.browser
def test_PG18_an_export_has_the_rows_of_the_filter(tables, browser):
    browser.click("//nav//a[.='From']")
    browser.type("//input[@id='filter']", "N eq 5\ue007")
    browser.find("//caption[.='From: 1 row']")
    browser.click("//button[.='Export']")
    browser.click("//dialog//button[.='Export']")
    browser.find("//dialog//p[.='1 row is in From.ndjson.']")
    file = tables.work / "From.ndjson"
    wait_for(lambda: file.exists() and file.stat().st_size > 0)
    assert [json.loads(line)["RowKey"] for line in file.read_text().splitlines()] == ["1"]


@pytest.mark.browser
@pytest.mark.parametrize("head, line", [
    ("", '{{"PartitionKey":"p","RowKey":"{}","N":{},"Pad":"{}"}}\n'),
    ("PartitionKey,RowKey,N@Int32,Pad\r\n", 'p,{},{},"{}\n"\r\n')], ids=["ndjson", "csv"])
def test_PG18_a_large_file_goes_in_parts_and_lines_keep_their_numbers(tables, browser, head, line):
    """Three parts of a MiB; the last row is wrong.  Each record of CSV has two lines."""
    n = 260
    file = tables.work / ("rows.csv" if head else "rows.ndjson")
    pad = "x" * 10000
    file.write_text(head + "".join(line.format(f"{i:04}", "bad" if i == n - 1 else i, pad) for i in range(n)),
                    newline="")
    import_file(browser, "Copy", file)
    browser.find(f"//dialog//p[.='{n - 1} rows are in Copy; 1 refused.']")
    number = 2 * (n - 1) + 2 if head else n
    browser.find(f"//dialog//li[starts-with(., 'Line {number}: ')]")
    assert [row["N"] for row in tables.rows("Copy")] == list(range(n - 1))


@pytest.mark.browser
def test_PG18_an_import_that_fails_tells_how_far_it_came(tables, browser):
    """The server answers the first of two parts.  "Close" stops the next import before its second part."""
    file = tables.work / "rows.ndjson"
    file.write_text("".join('{"PartitionKey":"p","RowKey":"%04d","Pad":"%s"}\n' % (i, "x" * 10000) for i in range(200)))
    browser.run("""const ask = window.fetch;
        window.imports = [];
        window.fetch = (path, options) => path.startsWith("/import/") && window.imports.push(path) === 2
            ? Promise.reject(new TypeError()) : ask(path, options);""")
    import_file(browser, "Copy", file)
    browser.find("//dialog//p[contains(., 'Before that 105 rows were imported, and 0 refused.')]")
    browser.find("//caption[contains(., '100 rows so far')]")
    assert len(tables.rows("Copy")) == 105
    hold(browser, "path.startsWith('/import/')")
    browser.click("//dialog//button[.='Import']")
    browser.click("//dialog//button[.='Close']")
    browser.run("const { fetch } = window; window.fetch = (path, ...rest) => { window.shown = path.includes('Copy()'); return fetch(path, ...rest); }")
    let_go(browser)
    wait_for(lambda: browser.run("return window.shown"))
    assert browser.run("return window.imports.length") == 3


def post(tables, cookie, body, **query):
    query = {"format": "ndjson", "mode": "upsert", **query}
    path = f"/import/{ACCOUNT}/Copy?" + "&".join(f"{k}={v}" for k, v in query.items())
    status, _, answer = ask(tables.page.port, path, "POST", body, **cookie)
    return status, answer.decode()


def test_PG18_the_mode_decides_about_rows_that_are_there(tables):
    own = {"Cookie": tables.page.open(), "x-ms-version": VERSION}
    row = b'{"PartitionKey":"p","RowKey":"1","%s":1}\n'
    for mode, name, done, left in (("insert", b"A", 1, {"A"}), ("insert", b"B", 0, {"A"}), ("merge", b"B", 1, {"A", "B"}),
                                   ("upsert", b"C", 1, {"C"})):
        status, answer = post(tables, own, row % name, mode=mode)
        assert (status, json.loads(answer)["done"], json.loads(answer)["refused"]) == (200, done, 1 - done)
        assert {key for key in tables.rows("Copy")[0] if "Key" not in key and "@" not in key} == left


@pytest.mark.parametrize("query", [{"mode": "delete"}, {"format": "xml"}, {"mode": ""}])
def test_PG18_other_imports_are_refused(tables, query):
    own = {"Cookie": tables.page.open(), "x-ms-version": VERSION}
    assert post(tables, own, LINES.encode(), **query)[0] == 400


def test_PG3_an_import_needs_the_session_and_the_header(tables):
    cookie = {"Cookie": tables.page.open()}
    assert post(tables, {"x-ms-version": VERSION}, LINES.encode())[0] == 401
    assert post(tables, cookie, LINES.encode())[0] == 403
    assert ask(tables.page.port, f"/import/{ACCOUNT}/Copy?format=csv&mode=insert", **cookie)[0] == 405
    assert tables.rows("Copy") == []
