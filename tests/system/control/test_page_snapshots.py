# SPDX-License-Identifier: MIT
"""Snapshots by the page: made, removed, and a table compared in two of them."""

import json
import os
import urllib.parse

import pytest

from conftest import need_fuse
from page_client import Page, ask, page_of
from rest_client import ACCOUNT, Client, ok

CHANGE = {"x-ms-version": "2019-02-02"}


@pytest.fixture
def page(serve, rest_store):
    page = page_of(serve(rest_store, "--page=127.0.0.1:0"))
    page.cookie = page.open()
    return page


@pytest.fixture
def client(page, serve, rest_store):
    page.store = rest_store
    with Client(page.server.port) as client:
        ok(client.create_table("Tab"))
        yield client


def change(page, method, name, **headers):
    path = "/snapshots?" + urllib.parse.urlencode({"name": name})
    return ask(page.port, path, method=method, Cookie=page.cookie, **(headers or CHANGE))[0]


def snapshots(page):
    return page.data("/snapshots", page.cookie)["snapshots"]


def make(page, name):
    assert change(page, "POST", name) == 200
    return next(s["number"] for s in snapshots(page) if s["name"] == name)


def compare(page, before, after, table="Tab"):
    """All differences, as (partition, row, before, after), and how many requests they took."""
    found, query, requests = [], {}, 0
    while requests == 0 or query:
        path = f"/compare/{ACCOUNT}/{table}?" + urllib.parse.urlencode(
            {"before": before, "after": after, **query})
        part = page.data(path, page.cookie)
        requests += 1
        found += [(d["partition_key"], d["row_key"], d.get("before"), d.get("after"))
                  for d in part["differences"]]
        query = {k: part[k] for k in ("from", "row", "behind") if k in part}
    return found, requests


def put(client, partition, row, n):
    ok(client.request("PUT", f"Tab(PartitionKey='{partition}',RowKey='{row}')",
                      json.dumps({"N": n})))


def test_PG9_snapshots_are_made_listed_and_removed(page, client):
    assert snapshots(page) == []
    first = make(page, "one")
    assert make(page, "two") != first
    assert [s["name"] for s in snapshots(page)] == ["one", "two"]
    assert change(page, "POST", "one") == 409
    assert change(page, "POST", ".one") == 400
    assert change(page, "DELETE", "one") == 200
    assert change(page, "DELETE", "one") == 404
    assert [s["name"] for s in snapshots(page)] == ["two"]


@pytest.mark.parametrize("method, headers, status", [
    ("POST", {}, 403), ("DELETE", {}, 403), ("PUT", CHANGE, 405), ("OPTIONS", CHANGE, 405)])
def test_PG3_a_snapshot_needs_the_header_of_a_change(page, method, headers, status):
    assert ask(page.port, "/snapshots?name=a", method=method, Cookie=page.cookie, **headers)[0] == status
    assert snapshots(page) == []


def test_PG1_snapshots_need_the_session(page):
    for method in "GET", "POST", "DELETE":
        assert ask(page.port, "/snapshots?name=a", method=method, **CHANGE)[0] == 401
    assert ask(page.port, f"/compare/{ACCOUNT}/Tab")[0] == 401


def test_PG3_other_data_is_not_changed(page):
    assert ask(page.port, "/live", method="POST", Cookie=page.cookie, **CHANGE)[0] == 405


def test_PG9_a_read_only_server_makes_none(serve, rest_store):
    page = page_of(serve(rest_store, "--page=127.0.0.1:0", "--read-only"))
    page.cookie = page.open()
    assert change(page, "POST", "a") == 403


def test_PG9_snapshots_of_the_mount_are_the_same(rowfs, rest_store, work):
    need_fuse()
    at = work / "mnt"
    at.mkdir()
    page = Page(rowfs("mount", rest_store, at, "-o", "page=127.0.0.1:0").stdout)
    try:
        page.cookie = page.open()
        folder = at / ".rowfs/snapshots"
        assert not (folder / "page").exists()
        (folder / "mount").mkdir()
        assert [s["name"] for s in snapshots(page)] == ["mount"]
        assert change(page, "POST", "page") == 200
        assert sorted(os.listdir(folder)) == ["mount", "page"]
        assert (folder / "page" / ACCOUNT).is_dir()
        (folder / "mount").rmdir()
        assert change(page, "DELETE", "page") == 200
        assert os.listdir(folder) == [] and snapshots(page) == []
    finally:
        rowfs("umount", at)


def test_PG9_each_kind_of_difference_is_shown(page, client):
    for partition in "a", "b", "c":
        for row in "1", "2":
            put(client, partition, row, 1)
    before = make(page, "before")
    put(client, "a", "2", 2)             # changed
    put(client, "a", "3", 1)             # added at the end of a partition
    put(client, "b", "", 1)              # added ahead of the others
    ok(client.delete("Tab", "b", "2"))   # removed
    ok(client.delete("Tab", "c", "1"))   # a partition that goes
    ok(client.delete("Tab", "c", "2"))
    put(client, "d", "1", 1)             # and one that comes
    after = make(page, "after")
    put(client, "z", "1", 1)             # later than both
    one, two = '{"N":1}\n', '{"N":2}\n'
    wanted = [("a", "2", one, two), ("a", "3", None, one), ("b", "", None, one), ("b", "2", one, None),
              ("c", "1", one, None), ("c", "2", one, None), ("d", "1", None, one)]
    assert compare(page, before, after) == (wanted, 1)
    assert compare(page, before, 0)[0] == [*wanted, ("z", "1", None, one)]
    assert compare(page, after, before)[0] == [(p, r, b, a) for p, r, a, b in wanted]
    assert compare(page, after, after) == ([], 1)


def test_PG9_a_table_that_one_version_lacks_is_added_or_removed(page, client):
    put(client, "a", "1", 1)
    before = make(page, "before")
    ok(client.delete_table("Tab"))
    assert compare(page, before, 0)[0] == [("a", "1", '{"N":1}\n', None)]
    after = make(page, "after")
    path = f"/compare/{ACCOUNT}/Tab?before={after}&after=0"
    assert ask(page.port, path, Cookie=page.cookie)[0] == 404


def test_PG9_a_removed_snapshot_is_gone(page, client):
    number = make(page, "a")
    assert change(page, "DELETE", "a") == 200
    assert ask(page.port, f"/compare/{ACCOUNT}/Tab?before={number}", Cookie=page.cookie)[0] == 404


def test_PG9_a_part_has_a_hundred_differences(page, client, rowfs):
    """The parts end within partitions, at their ends, and within chunks of 500 rows."""
    def rows(partition, numbers, n):
        return "".join(json.dumps({"PartitionKey": partition, "RowKey": f"{i:05}", "N": n}) + "\n"
                       for i in numbers)
    rowfs("import", page.store, f"{ACCOUNT}/Tab",
          input=rows("a", range(1200), 1) + rows("b", range(500), 1))
    before = make(page, "before")
    rowfs("import", page.store, f"{ACCOUNT}/Tab",
          input=rows("a", range(1100, 1300), 2) + rows("b", range(450, 600), 2))
    found, requests = compare(page, before, 0)
    assert [(p, int(r)) for p, r, _, _ in found] == \
        [("a", i) for i in range(1100, 1300)] + [("b", i) for i in range(450, 600)]
    assert [b is None for _, _, b, _ in found] == [False] * 100 + [True] * 100 + [False] * 50 + [True] * 100
    assert requests in (4, 5)


def test_PG9_rows_that_agree_are_passed_in_parts_of_50000(page, client, rowfs):
    def rows(n):
        return "".join(json.dumps({"PartitionKey": "p", "RowKey": f"{i:06}"}) + "\n" for i in range(n))
    rowfs("import", page.store, f"{ACCOUNT}/Tab", input=rows(120_000))
    before = make(page, "before")
    put(client, "p", "119999", 1)
    found, requests = compare(page, before, 0)
    assert [(p, r) for p, r, _, _ in found] == [("p", "119999")]
    assert requests == 3
