# SPDX-License-Identifier: MIT
"""The data of the page that no storage service has: figures, heat, partitions."""

import json
import urllib.parse

import pytest

from page_client import ask, page_of
from rest_client import ACCOUNT, Client, ok


@pytest.fixture
def page(serve, rest_store):
    server = serve(rest_store, "--page=127.0.0.1:0")
    page = page_of(server)
    page.cookie = page.open()
    page.server = server
    with Client(server.port) as client:
        ok(client.create_table("Tab"))
    return page


def fill(page, keys, table="Tab"):
    with Client(page.server.port) as client:
        for key in keys:
            ok(client.insert(table, {"PartitionKey": key, "RowKey": "r"}))


def get(page, path):
    return page.data(path, page.cookie)


def window(page, **query):
    path = f"/partitions/{ACCOUNT}/Tab?" + urllib.parse.urlencode(query)
    found = get(page, path)
    return [p["partition_key"] for p in found["partitions"]], found


@pytest.mark.parametrize("path", ["/live", f"/heat/{ACCOUNT}/Tab", f"/partitions/{ACCOUNT}/Tab"])
def test_PG1_figures_need_the_session(page, path):
    assert ask(page.port, path)[0] == 401
    status, headers, body = ask(page.port, path, Cookie=page.cookie)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    json.loads(body)


@pytest.mark.parametrize("path", ["/heat/nobody/Tab", f"/heat/{ACCOUNT}/None", f"/heat/{ACCOUNT}/",
                                  f"/partitions/{ACCOUNT}/None", f"/partitions/{ACCOUNT}/Tab/x"])
def test_PG5_a_table_that_is_not_there_is_404(page, path):
    assert ask(page.port, path, Cookie=page.cookie)[0] == 404


def explain(page, **query):
    found = get(page, f"/explain/{ACCOUNT}/Tab?" + urllib.parse.urlencode(query))
    return json.loads(found["explain"])


def test_PG19_a_plan_and_the_rows_looked_at_are_those_of_the_command(page, rowfs):
    fill(page, [f"p{i}" for i in range(20)])
    for filter in ("PartitionKey eq 'p3'", "PartitionKey ge 'p5' and RowKey eq 'r'", "Age gt 30"):
        told = json.loads(rowfs("query", page.server.store, f"{ACCOUNT}/Tab", filter, "--explain").stdout)
        assert explain(page, filter=filter) == told
        assert told["looked_at"] <= 20 and told["plan"]
    assert explain(page)["matched"] == 20
    status, _, body = ask(page.port, f"/explain/{ACCOUNT}/Tab?filter=Age+gt", Cookie=page.cookie)
    assert status == 400 and b"Syntax error" in body
    assert ask(page.port, f"/explain/{ACCOUNT}/None", Cookie=page.cookie)[0] == 404
    assert ask(page.port, f"/explain/{ACCOUNT}/Tab")[0] == 401


def test_PG5_figures_are_those_of_the_metrics(page):
    fill(page, [f"p{i}" for i in range(20)])
    live = get(page, "/live")
    insert = next(o for o in live["operations"] if o["operation"] == "InsertEntity")
    assert insert["front_end"] == "rest"
    assert sum(insert["buckets"]) == 20
    assert len(insert["buckets"]) == len(live["bucket_limits_us"]) + 1
    assert live["bucket_limits_us"] == sorted(live["bucket_limits_us"])
    assert (insert["refused"], insert["failed"]) == (0, 0)
    with Client(page.server.port) as client:
        client.insert("Tab", {"PartitionKey": "p0", "RowKey": "r"})
    later = get(page, "/live")
    assert next(o["refused"] for o in later["operations"] if o["operation"] == "InsertEntity") == 1
    assert later["now_us"] > live["now_us"]
    assert 0 < later["store"]["log_bytes"] <= later["store"]["bytes"]
    assert later["memory"]["caches"]["pages"] > 0


def test_PG6_heat_is_that_of_the_table(page):
    with Client(page.server.port) as client:
        ok(client.create_table("Other"))
    fill(page, ["hot", "cold"])
    fill(page, ["elsewhere"], "Other")
    with Client(page.server.port) as client:
        for i in range(9):
            ok(client.insert("Tab", {"PartitionKey": "hot", "RowKey": str(i)}))
        ok(client.get("Tab", "hot", "1"))
    found = get(page, f"/heat/{ACCOUNT}/tab")
    heat = {p["partition_key"]: p for p in found["partitions"]}
    assert set(heat) == {"hot", "cold"}
    assert (heat["hot"]["changed"], heat["hot"]["read"]) == (10, 1)
    assert 1 <= heat["hot"]["peak"] <= 11
    assert (found["heat_seconds"], found["partition_target"], found["total"]) == (60, 0, 2)
    hottest = get(page, "/live")["hottest"]
    assert [(h["table"], h["partition_key"]) for h in hottest][0] == ("Tab", "hot")


def test_PG7_a_window_begins_at_or_after_a_key(page):
    fill(page, ["", "a", "b", "c", "d"])
    assert window(page)[0] == ["", "a", "b", "c", "d"]
    assert window(page, after="")[0] == ["a", "b", "c", "d"]
    assert window(page, after="b")[0] == ["c", "d"]
    assert window(page, **{"from": "b"})[0] == ["b", "c", "d"]
    assert window(page, **{"from": "bb"})[0] == ["c", "d"]
    assert window(page, after="d")[0] == []
    keys, found = window(page, top=2)
    assert (keys, found["total"], found["last"]) == (["", "a"], 5, "a")
    assert found["partitions"][0]["items"] == 1


def test_PG7_a_window_passes_over_partitions(page):
    fill(page, ["", "a", "b", "c", "d"])
    assert window(page, skip=0)[0] == ["", "a", "b", "c", "d"]
    assert window(page, skip=1)[0] == ["a", "b", "c", "d"]
    assert window(page, skip=4)[0] == ["d"]
    keys, found = window(page, skip=5)
    assert (keys, found["skipped"], found["last"]) == ([], 5, "d")
    assert window(page, skip=9)[1]["skipped"] == 5
    assert window(page, skip=1, after="a")[0] == ["c", "d"]
    assert window(page, skip=1, **{"from": "a"})[0] == ["b", "c", "d"]
    keys, found = window(page, skip=3, top=0)
    assert (keys, found["last"]) == ([], "b")


def test_PG7_a_window_tells_the_position_of_a_key(page):
    fill(page, ["", "a", "b", "d"])
    for until, position in ("", 0), ("a", 1), ("c", 3), ("d", 3), ("e", 4):
        found = window(page, skip=100, until=until, top=0)[1]
        assert found["skipped"] == position
    keys, found = window(page, skip=100, until="b", after="")
    assert (keys, found["skipped"]) == (["b", "d"], 1)
    assert window(page, skip=1, until="d")[1]["skipped"] == 1


def test_PG7_keys_have_the_order_of_the_service(page):
    keys = ["a\ufffd", "a\U0001f600", "å"]  # by UTF-16 unit
    fill(page, keys)
    order = sorted(keys, key=lambda k: k.encode("utf-16-be"))
    assert window(page)[0] == order
    assert window(page, after=order[0])[0] == order[1:]


@pytest.mark.parametrize("query, status", [
    ("skip=200000", 200), ("skip=200001", 400), ("skip=x", 400), ("top=1000", 200),
    ("top=1001", 400), ("after=" + "k" * 512, 200), ("after=" + "k" * 513, 400), ("after=%2F", 400),
    ("after=%ff", 400), ("from=%ff", 400), ("until=%ff", 400)])
def test_PG7_limits_of_a_window(page, query, status):
    assert ask(page.port, f"/partitions/{ACCOUNT}/Tab?{query}", Cookie=page.cookie)[0] == status


def test_PG8_the_parts_of_a_table_add_up(page, rowfs):
    """A part is 50,000 partitions and rows; it may end within a partition."""
    def rows(partition, n):
        return "".join(json.dumps({"PartitionKey": partition, "RowKey": f"{i:06}", "A": 1}) + "\n"
                       for i in range(n))
    rowfs("import", page.server.store, f"{ACCOUNT}/Tab", input=rows("a", 49_999) + rows("b", 60_000)
          + "".join(rows(f"c{i:05}", 1) for i in range(100)))
    parts, query = [], ""
    while True:
        part = get(page, f"/sizes/{ACCOUNT}/Tab?{query}")
        parts.append(part)
        query = urllib.parse.urlencode({k: part[k] for k in ("from", "row", "after") if k in part})
        if not query:
            break
    assert [p["rows"] for p in parts] == [49_999, 50_000, 10_100]
    assert parts[0]["after"] == "a"
    assert (parts[1]["from"], parts[1]["row"]) == ("b", "049999")
    assert sum(p["partitions"] for p in parts) == 102
    assert sum(p["bytes"] for p in parts) == (49_999 + 60_000 + 100) * len('{"A":1}\n')


def test_PG8_a_row_with_an_empty_key_counts(page):
    with Client(page.server.port) as client:
        for partition in "a", "b":
            for row in "", "1":
                ok(client.insert("Tab", {"PartitionKey": partition, "RowKey": row}))
    found = get(page, f"/sizes/{ACCOUNT}/Tab")
    assert (found["partitions"], found["rows"]) == (2, 4)


def test_PG8_a_row_of_a_removed_partition_hides_none_of_the_next(page):
    fill(page, ["b"])
    assert get(page, f"/sizes/{ACCOUNT}/Tab?from=a&row=z")["rows"] == 1
    assert get(page, f"/sizes/{ACCOUNT}/Tab?from=b&row=z")["rows"] == 0
    assert get(page, f"/sizes/{ACCOUNT}/Tab?after=b")["rows"] == 0


def test_PG8_memory_is_that_of_the_server(page):
    with open(f"/proc/{page.server.proc.pid}/statm") as f:
        pages = int(f.read().split()[1])
    assert get(page, "/live")["memory"]["bytes"] == pytest.approx(pages * 4096, rel=0.5)
