# SPDX-License-Identifier: MIT
"""GET /Table?comp=changes: the feed of changes in pages, each with the position of the next one."""

import json

from rest_client import ACCOUNT, KEY, fails, ok, table_sas

HEADER = "x-ms-continuation-position"


def page(rest, tab, query="", **kw):
    answer = ok(rest.request("GET", f"{tab}?comp=changes{query}", **kw), 200)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.splitlines()], answer.headers[HEADER]


def now(rest, tab):
    lines, position = page(rest, tab, "&from=now")
    assert lines == []
    return position


def keys(lines):
    return [(c["kind"], c["RowKey"]) for c in lines]


def test_CF6_pages_lead_through_all_changes_each_once(rest, tab):
    at = now(rest, tab)
    wanted = []
    for i in range(3):
        for k in range(100):
            row = {"PartitionKey": f"p{i}", "RowKey": f"{k:02}", "n": k}
            ok(rest.insert(tab, row), 201)
            wanted.append(("put", row["RowKey"]))
    ok(rest.delete(tab, "p0", "00"), 204)
    got = []
    while True:
        lines, at = page(rest, tab, f"&from={at}")
        if not lines:
            break
        assert len(lines) < len(wanted), "a page is a part"
        assert lines[-1]["position"] == at
        got += lines
    assert keys(got) == [*wanted, ("delete", "00")]
    assert got[1]["row"]["n"] == 1 and got[0]["row"] is None
    assert page(rest, tab, f"&from={at}") == ([], at)
    # Without a position, from the earliest change that is kept.
    first, _ = page(rest, tab)
    assert first[:1] == got[:1]


def test_CF6_the_rows_are_left_out_on_wish(rest, tab):
    at = now(rest, tab)
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "r"}), 201)
    for wish, has in (("&rows=false", False), ("&rows=true", True), ("", True)):
        lines, _ = page(rest, tab, f"&from={at}{wish}")
        assert ("row" in lines[0]) == has
    fails(rest.request("GET", f"{tab}?comp=changes&rows=no"), 400, "InvalidQueryParameterValue")


def test_CF6_one_partition_alone(rest, tab):
    at = now(rest, tab)
    for pk in ("a b", "c"):
        ok(rest.insert(tab, {"PartitionKey": pk, "RowKey": "r"}), 201)
    lines, after = page(rest, tab, f"&from={at}&partition=a%20b")
    assert [c["PartitionKey"] for c in lines] == ["a b"]
    assert page(rest, tab, f"&from={after}&partition=a%20b")[0] == []
    fails(rest.request("GET", f"{tab}?comp=changes&partition=a%2Fb"), 400, "OutOfRangeInput")


def test_CF3_a_position_that_is_gone_is_refused_over_rest(rest, tab):
    fails(rest.request("GET", f"{tab}?comp=changes&from=0-1"), 410, "PositionGone")
    fails(rest.request("GET", f"{tab}?comp=changes&from=yesterday"), 400, "InvalidInput")
    fails(rest.request("GET", "NoTable?comp=changes"), 404, "TableNotFound")


def test_CF6_who_may_read_the_rows_may_read_their_changes(rest, tab):
    def with_sas(**fields):
        return rest.request(
            "GET", f"{tab}?comp=changes&{table_sas(ACCOUNT, KEY, tab, **fields)}", sign=None)
    ok(with_sas(sp="r"), 200)
    fails(with_sas(sp="aud"), 403, "AuthorizationPermissionMismatch")
    fails(with_sas(sp="r", spk="a", epk="b"), 403, "AuthorizationFailure")
    assert rest.request("GET", f"{tab}?comp=changes", sign=None).status in (401, 403)
