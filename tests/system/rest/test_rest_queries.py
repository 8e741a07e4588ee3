# SPDX-License-Identifier: MIT
"""Queries over the REST socket: the grammar of $filter and its type rules, $select, the
order, pages and their tokens."""

import json
import random
import urllib.parse

import pytest

from filters import FILTERS, GUID, ROWS, random_filter
from rest_client import FULL, MINIMAL, NONE, entity_path, fails, ok, query_string, says

INVALID = "One of the request inputs is not valid."
NOT_IMPLEMENTED = "The requested operation is not implemented on the specified resource."

# One row for each type; the rows are told by their RowKey.


@pytest.fixture(scope="module")
def types_server(module_server):
    """The table Types of the file's server, filled once."""
    from rest_client import Client
    with Client(module_server.port) as client:
        ok(client.create_table("Types"), 201)
        for rk, row in ROWS.items():
            ok(client.insert("Types", {"PartitionKey": "p", "RowKey": rk, **row}), 201)
    return module_server


@pytest.fixture
def types(types_server, rest):
    def select(text, **options):
        answer = ok(rest.query("Types", filter=text, **options), 200)
        assert answer.token == {}
        return [r["RowKey"] for r in answer.rows]
    return select


def matching(letter=""):
    return sorted(k for k in ROWS if k.startswith(letter))


@pytest.mark.parametrize("text, want", FILTERS, ids=lambda v: v if v and " " in v else "")
def test_R7_filters(types, text, want):
    found = types(text)
    if want is None:  # whether a row without a B is one that has "not B"
        assert "b2" in found and "b1" not in found and "m1" not in found
    else:
        assert found == want.split()


def test_not_of_what_is_missing(types):
    assert types("not (Missing eq 1)") == matching()
    assert types("not (I eq 5)") == [k for k in matching() if k not in ("i1", "m1")]
    assert types("Timestamp gt datetime'2020-01-01T00:00:00Z'") == matching()
    assert types("Timestamp lt datetime'2020-01-01T00:00:00Z'") == []
    assert types("") == matching() and types("   ") == matching()


@pytest.mark.parametrize("text", ["I eq 5L", "I eq 5.0", "S eq 5", "I eq '5'", "B eq 'true'",
                                  "T eq '2008-07-10T00:00:00Z'", f"G eq '{GUID}'", "L eq '7'",
                                  "D eq '1.5'", "B eq 1", "X eq 'AAEC'", "S gt 5", "I ge '9'",
                                  "D gt ''", "T ge ''"])
def test_what_is_of_another_type_is_less_than_the_literal(types, text):
    """eq, gt, ge do not match; ne, lt, le do, as the service was seen to answer."""
    assert types(text) == []
    name, _, value = text.split(" ", 2)
    every = [k for k in matching() if name in ROWS[k]]
    for less in (f"{name} ne {value}", f"{name} lt {value}", f"{name} le {value}",
                 f"{value} gt {name}", f"{value} ge {name}"):
        assert types(less) == every


def test_nan_is_not_equal(types):
    assert "d3" not in types("D eq 1.5") and "d3" not in types("D gt 0")
    assert types("D ne 1.5") == ["d2", "d3", "d4"]


def test_timestamps_are_found_by_their_text(types, rest):
    row = rest.get("Types", "p", "i1").json
    assert types(f"Timestamp eq datetime'{row['Timestamp']}'") == ["i1"]
    assert types(f"Timestamp eq datetime'{row['Timestamp']}' and RowKey eq 'i1'") == ["i1"]


# ---- what is no filter


@pytest.mark.parametrize("text, position", [
    ("aaa bbb ccc", 7), ("I eq", None), ("eq 5", None), ("I eq 5 and", None),
    ("I eq 5 or or or", None),
    ("(I eq 5", None), ("I eq 5)", None), ("I eq 'a", None), ("I EQ 5", None), ("I = 5", None),
    ("I eq 5 AND I eq 5", None), ("I eq 5 I eq 5", None), ("()", None), ("not", None),
    ("I eq datetime'nonsense'", None), ("I eq guid'12'", None), ("I eq X'0'", None),
    ("I eq X'gg'", None), ("I eq 5x", None), ("I eq 1.2.3", None), ("I eq --5", None),
    ("I eq 5;", None), ("1I eq 5", None), ("I eq\x01 5", None), ("\"I\" eq 5", None),
    ("S eq \"abc\"", None), ("I eq datetime'2008-13-01T00:00:00Z'", None), ("5", None),
    ("'a'", None), ("I eq datetime'", None), ("I eq e5", "501"),
    ("I eq 5 and ()", None), ("$filter", None), ("I eq TRUE", "501")])
def test_R7_a_filter_that_does_not_parse(rest, types, text, position):
    answer = rest.query("Types", filter=text)
    if position == "501" and answer.status == 501:
        return  # it can be read as a property against a property
    fails(answer, 400, "InvalidInput")
    if position:
        assert says(answer.message, f"Syntax error at position {position} in '{text}'.")


@pytest.mark.parametrize("text", [
    "I eq I", "S eq S", "1 eq 1", "'a' eq 'a'", "startswith(S,'a')", "substringof('a',S)",
    "I add 1 eq 5", "I mod 2 eq 1", "length(S) eq 3", "tolower(S) eq 'abc'", "endswith(S,'c')",
    "year(T) eq 2008", "startswith(S,'a') eq true"])
def test_what_is_not_implemented(rest, types, text):
    fails(rest.query("Types", filter=text), 501, "NotImplemented", NOT_IMPLEMENTED)


def test_null_is_no_literal(rest, types):
    for text in ["I eq null", "null ne I", "true and I ne null"]:
        fails(rest.query("Types", filter=text), 400, "InvalidInput")


@pytest.mark.parametrize("text, same_as", [
    ("true", ""), ("(true)", ""), ("not false", ""), ("True", ""), ("true or I eq 5", ""),
    ("false", None), ("not true", None), ("False", None), ("I eq 5 and false", None),
    ("(true and I eq 5)", "I eq 5"), ("false or I eq 5", "I eq 5"),
    ("(false or PartitionKey eq 'p') and I eq 5", "I eq 5"),
    ("PartitionKey eq 'none' or not true", None)])
def test_true_and_false_are_predicates(types, text, same_as):
    assert types(text) == ([] if same_as is None else types(same_as))


@pytest.mark.parametrize("option", ["$orderby=S", "$skip=1", "$expand=S", "$inlinecount=allpages",
                                    "$count=true"])
def test_options_that_are_not_implemented(rest, types, option):
    fails(rest.request("GET", f"Types()?{option}"), (501, 400),
          ("NotImplemented", "InvalidInput", "UnsupportedQueryParameter"))


@pytest.mark.parametrize("top", ["-1", "x", "1001", "1.5", "0x5", "99999999999999999999999", "%20"])
def test_tops_that_are_none(rest, types, top):
    fails(rest.request("GET", f"Types()?$top={top}"), 400, "InvalidInput", INVALID)


def test_hostile_filters_are_refused_or_answered(rest, types):
    """Deep, long, wide: bounded work, and never a 5xx but 501."""
    deep = "(" * 5000 + "I eq 5" + ")" * 5000
    nots = "not " * 5000 + "I eq 5"
    wide = " or ".join(f"I eq {i}" for i in range(3000))
    long_literal = "S eq '" + "x" * 20000 + "'"
    for text in (deep, nots, wide, long_literal):
        answer = rest.query("Types", filter=text)
        assert answer.status in (200, 400, 413, 414, 431), answer.status
        rest.close()
    ok(rest.query("Types", filter=" or ".join(f"I eq {i}" for i in range(15))), 200)
    assert rest.query("Types", filter="(" * 20 + "I eq 5" + ")" * 20).status == 200


# ---- how options are written


@pytest.mark.parametrize("written", [
    "$filter=I%20eq%205", "%24filter=I%20eq%205", "$filter=I+eq+5", "%24filter=I+eq+5",
    "$filter=I%20eq%205&timeout=30", "$filter=%49%20eq%205", "$filter=I%20eq%205&$select=",
    "timeout=5&$filter=I%20eq%205", "$filter=I%20eq%205&", "&$filter=I%20eq%205"])
def test_spellings_of_options(rest, types, written):
    rows = ok(rest.request("GET", f"Types()?{written}"), 200).rows
    assert len(rows) == 2


def test_a_plus_in_an_offset(rest, types):
    text = "T eq datetime'2008-07-10T02:00:00+02:00'"
    for written in (urllib.parse.quote(text, safe=""), urllib.parse.quote(text, safe="+")):
        rows = ok(rest.request("GET", f"Types()?$filter={written}"), 200).rows
        assert [r["RowKey"] for r in rows] == ["t1"]


@pytest.mark.parametrize("path", ["Types", "Types()", "%54ypes()", "types"])
def test_spellings_of_the_table(rest, types, path):
    assert len(ok(rest.request("GET", path), 200).rows) == len(ROWS)


# ---- $select


def test_R7_select(rest, types):
    answer = ok(rest.query("Types", select="RowKey,I,Missing", filter="I eq 5"), 200)
    assert answer.json["odata.metadata"] == (
        f"{rest.base()}$metadata#Types&$select=RowKey,I,Missing")
    for row in answer.rows:
        assert {k: v for k, v in row.items() if not k.startswith("odata.")} == {
            "RowKey": row["RowKey"], "I": 5, "Missing": None}
        assert list(row)[0] == "odata.etag"
    answer = ok(rest.query("Types", select="I", filter="RowKey eq 's1'",
                           headers={"Accept": NONE}), 200)
    assert answer.json == {"value": [{"I": None}]}
    answer = ok(rest.query("Types", select="L, B ,L", filter="RowKey eq 'l1'",
                           headers={"Accept": FULL}), 200)
    (row,) = answer.rows
    assert row["L"] == "7" and row["L@odata.type"] == "Edm.Int64" and row["B"] is None
    assert "odata.id" in row and "odata.etag" in row and "PartitionKey" not in row
    (row,) = rest.query("Types", select="*", filter="RowKey eq 'm1'").rows
    assert row["S"] == "abc" and row["PartitionKey"] == "p" and "Timestamp" in row
    (row,) = rest.query("Types", select="Timestamp,PartitionKey", filter="RowKey eq 'm1'").rows
    assert row["Timestamp"] and row["PartitionKey"] == "p" and "RowKey" not in row
    # Names are case-sensitive.
    (row,) = rest.query("Types", select="s", filter="RowKey eq 'm1'").rows
    assert row["s"] is None


@pytest.mark.parametrize("select, status", [
    (",".join(f"p{i}" for i in range(255)), 200), (",".join(f"p{i}" for i in range(256)), 400),
    ("a-b", 400), ("a b", 400)])
def test_limits_of_select(rest, types, select, status):
    answer = rest.query("Types", select=select, filter="I eq 5")
    if status == 200:
        ok(answer, 200)
    elif "," in select:
        fails(answer, 400, "InvalidInput")
    else:  # what a wrong name does is told nowhere: a null member, or refused
        assert answer.status in (200, 400), answer


# ---- order


def test_R7_the_order_is_that_of_utf16_units(rest, tab):
    keys = ["", " ", "A", "Z", "a", "aa", "b", "é", "\u0fff", "\ud7ff", "\U00010000",
            "\U0001f600", "\U0010ffff", "\ue000", "\uffee"]
    assert keys == sorted(keys, key=lambda k: k.encode("utf-16-be"))
    pairs = [(a, b) for a in keys for b in keys]
    random.Random(3).shuffle(pairs)
    for n in range(0, len(pairs), 1):
        pk, rk = pairs[n]
        ok(rest.upsert(tab, pk, rk, {"N": n}), 204)
    want = [(a, b) for a in keys for b in keys]
    assert [(r["PartitionKey"], r["RowKey"]) for r in rest.all(tab)] == want
    paged = [(r["PartitionKey"], r["RowKey"]) for r in rest.all(tab, top=7)]
    assert paged == want
    found = rest.all(tab, filter="PartitionKey gt '\U00010000' and PartitionKey le '\ue000'")
    assert [r["PartitionKey"] for r in found] == [
        k for k in ("\U0001f600", "\U0010ffff", "\ue000") for _ in keys]


# ---- pages


@pytest.fixture(scope="module")
def big_server(rowfs, tmp_path_factory, module_server):
    """The table Big: 2,500 rows in 5 partitions, made by an import through the server."""
    from rest_client import ACCOUNT, Client
    rows = [{"PartitionKey": f"p{i // 500}", "RowKey": f"{i % 500:04}", "N": i}
            for i in range(2500)]
    with Client(module_server.port) as client:
        ok(client.create_table("Big"), 201)
    rowfs("import", module_server.store, f"{ACCOUNT}/Big",
          input="".join(json.dumps(r) + "\n" for r in rows))
    return [r["N"] for r in rows]


def test_R7_pages_of_1000(rest, big_server):
    pages = list(rest.pages("Big"))
    assert [len(p.rows) for p in pages] == [1000, 1000, 500]
    assert [r["N"] for p in pages for r in p.rows] == big_server
    for p in pages[:-1]:
        assert set(p.token) == {"NextPartitionKey", "NextRowKey"}
        for value in p.token.values():
            assert value and all(c.isalnum() and c.isascii() or c in "!_-." for c in value), value
    assert pages[-1].token == {}


@pytest.mark.parametrize("top", [1000, 999, 500, 250, 333])
def test_pages_of_top(rest, big_server, top):
    pages = list(rest.pages("Big", top=top))
    assert [r["N"] for p in pages for r in p.rows] == big_server
    assert all(len(p.rows) <= top for p in pages)
    assert all(p.rows for p in pages) and len(pages) == -(-2500 // top)


@pytest.mark.parametrize("top, more", [(500, False), (499, True), (501, False)])
def test_a_page_of_exactly_top(rest, big_server, top, more):
    """No token where nothing is left in what the keys allow."""
    page = ok(rest.query("Big", top=top, filter="PartitionKey eq 'p4'"), 200)
    assert len(page.rows) == min(top, 500) and bool(page.token) == more


def test_pages_of_a_filter(rest, big_server):
    text = "N ge 100 and N lt 2400 and PartitionKey ne 'p2'"
    found = [r["N"] for r in rest.all("Big", filter=text, top=70)]
    assert found == [n for n in big_server if 100 <= n < 2400 and n // 500 != 2]
    one = rest.all("Big", filter="N eq 2499", top=1)
    assert [r["N"] for r in one] == [2499]


def test_tokens_are_of_the_next_row(rest, big_server):
    """The token names the first row of the next page: one that was removed is skipped."""
    page = ok(rest.query("Big", top=10), 200)
    again = ok(rest.query("Big", top=10, **page.token), 200)
    assert again.rows[0]["N"] == 10
    written = query_string(**page.token)
    assert ok(rest.request("GET", f"Big()?{written.replace('!', '%21')}&$top=1"), 200).rows[0][
        "N"] == 10
    only = {"NextPartitionKey": page.token["NextPartitionKey"]}
    assert ok(rest.query("Big", top=1, **only), 200).rows[0]["N"] == 0
    # A token from another filter is only a place to start.
    rows = ok(rest.query("Big", top=1, filter="PartitionKey ge 'p1'", **page.token), 200).rows
    assert rows[0]["N"] == 500
    assert ok(rest.request("GET", f"Big()?{written}&$filter=PartitionKey%20eq%20'p'"), 200
              ).rows == []


def test_pages_while_rows_change(rest, tab):
    for n in range(60):
        ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": f"{n:03}"}), 201)
    page = ok(rest.query(tab, top=20), 200)
    for n in (5, 20, 21):
        ok(rest.delete(tab, "p", f"{n:03}"), 204)
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "0205"}), 201)
    rows = rest.all(tab, top=20, **page.token)
    assert [r["RowKey"] for r in rows] == ["0205", *(f"{n:03}" for n in range(22, 60))]


def test_tokens_of_every_key(rest, tab):
    keys = ["", " ", "!", "=", "%", "a'b", "a+b", "ü", "\U0001f600", "\ue000", "x" * 512]
    for pk in keys:
        for rk in ("", "ß=", "z"):
            ok(rest.upsert(tab, pk, rk, {}), 204)
    rows = [(r["PartitionKey"], r["RowKey"]) for r in rest.all(tab, top=1)]
    assert rows == sorted(((p, r) for p in keys for r in ("", "ß=", "z")),
                          key=lambda k: [part.encode("utf-16-be") for part in k])


@pytest.mark.parametrize("token", [
    "NextPartitionKey=x", "NextPartitionKey=1!4!abc", "NextPartitionKey=1!8!YWJj&NextRowKey=1!4!*",
    "NextPartitionKey=%FF", "NextPartitionKey=%00", "NextPartitionKey=1!",
    "NextPartitionKey=2!4!YWJj&NextRowKey=1!4!YWJj", "NextPartitionKey=1!4!YW%3D%3D",
    "NextPartitionKey=1!4!gICA", "NextPartitionKey=1!-1!YWJj",
    "NextPartitionKey=1!99999999999999!a",
    "NextPartitionKey=1!4!YWJj&NextRowKey=nonsense"])
def test_R7_tokens_that_are_not_ours(rest, tab, token):
    fails(rest.request("GET", f"{tab}()?{token}"), 400, "InvalidInput")


def test_an_empty_row_token_is_refused_or_the_start(rest, big_server):
    page = ok(rest.query("Big", top=500), 200)
    answer = rest.request(
        "GET", f"Big()?{query_string(NextPartitionKey=page.token['NextPartitionKey'])}&NextRowKey=")
    if answer.status == 200:
        assert answer.rows[0]["N"] == 500
    else:
        fails(answer, 400, "InvalidInput")


def test_R7_a_page_ends_at_4_mib(rest, tab):
    for n in range(12):
        ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": f"{n:02}",
                             **{f"v{k:02}": "x" * 32768 for k in range(15)}}), 201)
    pages = list(rest.pages(tab))
    assert [r["RowKey"] for p in pages for r in p.rows] == [f"{n:02}" for n in range(12)]
    assert len(pages) > 1 and all(len(p.body) < 5.5 * 2**20 for p in pages)
    assert len(pages[0].body) > 3 * 2**20


def test_top_0_is_empty(rest, big_server):
    page = ok(rest.query("Big", top=0), 200)
    assert page.rows == []


def test_empty_tables_and_ranges(rest, tab):
    for accept in (NONE, MINIMAL, FULL):
        answer = ok(rest.query(tab, headers={"Accept": accept}), 200)
        assert answer.rows == [] and answer.token == {}
    assert answer.json == {"odata.metadata": f"{rest.base()}$metadata#{tab}", "value": []}


# ---- the filter against a model


def test_random_filters_against_a_model(rest, tab):
    """The planner's seeks must leave out nothing and add nothing."""
    rng = random.Random(11)
    rows = []
    for pk in ("", "a", "b", "b0", "c"):
        for rk in ("", "a", "b", "c", "d'", "p"):
            row = {"PartitionKey": pk, "RowKey": rk}
            if rng.random() < 0.8:
                row["I"] = rng.randrange(6)
            if rng.random() < 0.5:
                row["S"] = rng.choice("abc")
            rows.append(row)
            ok(rest.upsert(tab, pk, rk, {k: v for k, v in row.items() if len(k) == 1}), 204)
    rows.sort(key=lambda r: (r["PartitionKey"], r["RowKey"]))
    for _ in range(600):
        text, predicate = random_filter(rng)
        want = [(r["PartitionKey"], r["RowKey"]) for r in rows if predicate(r)]
        top = rng.choice([None, None, 1, 3, 7])
        have = [(r["PartitionKey"], r["RowKey"]) for r in rest.all(tab, filter=text, top=top)]
        assert have == want, text


def test_a_filter_of_one_row_by_path_and_by_keys_agree(rest, types):
    by_path = ok(rest.request("GET", entity_path("Types", "p", "i1")), 200).json
    by_path.pop("odata.metadata")
    (row,) = rest.query("Types", filter="PartitionKey eq 'p' and RowKey eq 'i1'").rows
    assert row == by_path
