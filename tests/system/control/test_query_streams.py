# SPDX-License-Identifier: MIT
"""Queries as streams: <Table>/.query/<options>.ndjson, .json, .csv, .count and .explain."""

import csv
import io
import json
import os
import random
import subprocess
import threading

import pytest

import filters
from rest_client import ACCOUNT, Client, ok
from streams import (KEYS, awkward_rows, cpu_settles, fill, from_rest, high_water_kib,
                     interrupted, lines)
from tools import errors, get, put, raises, reason, sanitized, sh


def component(options):
    """Options as one name in a path: what a name cannot hold is spelt out."""
    return options.replace("%", "%25").replace("/", "%2F")


class Tab:
    """The table's two front ends."""

    def __init__(self, mount, client, table="Tab"):
        self.mount, self.client, self.table = mount, client, table
        self.path = mount / ACCOUNT / table

    def file(self, options, form="ndjson"):
        return self.path / ".query" / f"{component(options)}.{form}"

    def rows(self, options):
        return lines(get(self.file(options)))

    def count(self, options):
        return int(get(self.file(options, "count")))

    def explain(self, options):
        return json.loads(get(self.file(options, "explain")))

    def rest(self, **options):
        return from_rest(self.client.all(self.table, **options))


@pytest.fixture
def tab(rest_store, rest_mount):
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Tab"), 201)
        yield Tab(m, client)


@pytest.fixture
def types(tab):
    """The rows of filters.py, one for each type."""
    for rk, row in filters.ROWS.items():
        ok(tab.client.upsert("Tab", "p", rk, row))
    return tab


# ---- the same rows as REST


def test_Q1_filters_of_every_type(types):
    for text, want in filters.FILTERS:
        rows = types.rows(f"filter={text}")
        assert rows == types.rest(filter=text), text
        if want is not None:
            assert [r["RowKey"] for r in rows] == want.split(), text


def test_Q1_random_filters_give_the_rows_that_rest_gives(tab):
    rng = random.Random(4)
    for pk in ("", "a", "b", "b0", "c"):
        for rk in ("", "a", "b", "c", "d'", "p"):
            row = {"I": rng.randrange(6)} if rng.random() < 0.8 else {}
            if rng.random() < 0.5:
                row["S"] = rng.choice("abc")
            ok(tab.client.upsert("Tab", pk, rk, row))
    everything = tab.rest()
    for _ in range(300):
        text, predicate = filters.random_filter(rng)
        want = [r for r in everything if predicate(r)]
        assert tab.rows(text) == want, text
        top = rng.choice([1, 3, 7])
        assert tab.rows(f"{text}&top={top}") == want[:top], text
        assert tab.count(text) == len(want), text


def test_Q1_rows_written_through_the_mount(tab):
    (tab.path / "p").mkdir()
    put(tab.path / "p/a.json", '{ "N" : 1.50, "Text":\n"x" }')
    put(tab.path / "p/b.json", "{}")
    put(tab.path / "p/other.txt", "no row")
    assert tab.rows("N eq 1.5") == tab.rest(filter="N eq 1.5") != []
    assert tab.rows("") == tab.rest() and tab.count("") == 2


# ---- forms


def test_Q2_forms_hold_the_same_rows(tab):
    awkward_rows(tab.client, "Tab")
    for options in ("", "PartitionKey eq 'p'", "N ge 3 and N lt 9", "N eq -1"):
        rows = tab.rows(options)
        text = get(tab.file(options, "json"))
        assert lines(b"".join(json.dumps(r).encode() + b"\n" for r in json.loads(text))) == rows
        table = list(csv.DictReader(io.StringIO(get(tab.file(options, "csv")).decode(),
                                                newline="")))
        assert [(r["PartitionKey"], r["RowKey"], r["Timestamp"]) for r in table] == [
            (r["PartitionKey"], r["RowKey"], r["Timestamp"]) for r in rows]
        assert tab.count(options) == len(rows)
    assert get(tab.file("N eq -1", "json")) == b"[\n]\n"
    assert get(tab.file("N eq -1")) == b""
    assert get(tab.file("", "ndjson")) == get(tab.path / ".rows.ndjson")
    assert get(tab.file("", "csv")) == get(tab.path / ".rows.csv")


def test_Q2_they_are_files_that_cannot_be_changed(types):
    name = types.file("I eq 5")
    st = os.stat(name)
    assert st.st_size == len(get(name)) > 0 and st.st_mode & 0o170777 == 0o100444
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
        with raises("EROFS"):
            os.close(os.open(name, flags))
    for change in (lambda: os.unlink(name), lambda: os.truncate(name, 0),
                   lambda: os.rename(name, types.path / "p/x.json"),
                   lambda: os.rename(types.path / "p/i1.json", name)):
        with raises("EROFS"):
            change()
    assert types.count("I eq 5") == 2
    assert os.listdir(types.path / ".query") == [] and ".query" not in os.listdir(types.path)


# ---- options


def test_Q3_select_gives_the_keys_and_what_was_selected(types):
    assert types.rows("RowKey eq 'm1'&select=B,Missing,I") == [
        {"PartitionKey": "p", "RowKey": "m1", "B": True, "I": 5}]
    (row,) = types.rows("RowKey eq 'm1'&select=Timestamp,RowKey")
    assert sorted(row) == ["PartitionKey", "RowKey", "Timestamp"]
    assert types.rows("RowKey eq 'm1'&select=*") == types.rows("RowKey eq 'm1'")
    assert types.rows("RowKey eq 'l1'&select=L") == [
        {"PartitionKey": "p", "RowKey": "l1", "L@odata.type": "Edm.Int64", "L": "7"}]
    text = get(types.file("I eq 5&select=I,Missing,S", "csv")).decode()
    assert text == ("PartitionKey,RowKey,I,I@type,Missing,Missing@type,S,S@type\r\n"
                    "p,i1,5,Edm.Int32,,,,\r\np,m1,5,Edm.Int32,,,abc,Edm.String\r\n")
    assert len(types.rows("select=Missing")) == len(types.rows(""))


def test_Q4_top_takes_the_first_rows_in_key_order(tab):
    fill(tab.mount.rowfs, tab.mount.store, 3000, "p")
    keys = [f"{i:07}" for i in range(3000)]
    for top in (1, 2, 999, 1000, 1001, 2999, 3000, 3001, 10**18):
        assert [r["RowKey"] for r in tab.rows(f"top={top}")] == keys[:top]
    assert tab.count("n ge 10&top=2500") == 2500 and tab.count("n ge 2000&top=2500") == 1000


def test_Q4_spellings_of_options(types):
    want = types.rows("filter=I eq 5&top=1&select=I")
    assert len(want) == 1
    for options in ("$filter=I eq 5&$top=1&$select=I", "top=1&select=I&filter=I eq 5",
                    "I eq 5&top=1&select=I", "&&I eq 5&top=1&&select=I&"):
        assert types.rows(options) == want, options
    encoded = types.path / ".query/%24filter=I%20eq%205&top=%31&select=%49.ndjson"
    assert lines(get(encoded)) == want
    # as one types it
    assert sh(f"cat '{types.path}/.query/I eq 5.count'").stdout == "2\n"
    assert sh(f"cat {types.path}/.query/.count").stdout == f"{len(types.rest())}\n"


def test_Q5_awkward_values(tab):
    awkward_rows(tab.client, "Tab")
    for key in KEYS + ["a/b%2F"]:
        ok(tab.client.upsert("Tab", "values", str(KEYS.index(key) if key in KEYS else 99),
                             {"V": key}))
    for key in KEYS:
        literal = "'" + key.replace("'", "''") + "'"
        want = tab.rest(filter=f"PartitionKey eq {literal}")
        assert tab.rows(f"PartitionKey eq {literal}") == want != []
        spelt = "".join(f"%{b:02x}" for b in f"PartitionKey eq {literal}".encode())
        if len(spelt) < 900:
            assert lines(get(tab.path / f".query/{spelt}.ndjson")) == want
        assert [r["V"] for r in tab.rows(f"V eq {literal}&select=V")] == [key]
    assert [r["V"] for r in tab.rows("V eq 'a/b%2F'")] == ["a/b%2F"]
    assert sh(f"cat \"{tab.path}/.query/V eq 'a&b'&top=1.count\"").stdout == "1\n"


def test_Q5_long_options_up_to_what_a_name_may_be(tab):
    ok(tab.client.upsert("Tab", "p", "r", {"N": 1}))
    for n in (255, 256, 1000):
        options = "N eq 1 or S eq '" + "x" * n
        options = options[:n - len("'.count")] + "'"
        assert tab.count(options) == 1
    with raises("ENAMETOOLONG"):
        get(tab.file("S eq '" + "x" * 5000 + "'"))


# ---- plans


def test_Q6_explain_tells_the_plan_and_its_cost(tab):
    for pk in ("a", "b", "c", "d"):
        fill(tab.mount.rowfs, tab.mount.store, 250, pk)
    for options, plan, looked_at, matched in [
        ("PartitionKey eq 'b' and RowKey eq '0000007'", "point", 1, 1),
        ("PartitionKey eq 'b' and RowKey eq 'none'", "point", 0, 0),
        ("PartitionKey eq 'b' and (RowKey eq '0000007' or RowKey eq '0000009')", "points", 2, 2),
        ("PartitionKey eq 'b' and RowKey ge '0000100' and RowKey lt '0000120'", "row range", 20,
         20),
        ("PartitionKey eq 'b'", "row range", 250, 250),
        ("PartitionKey eq 'b' and n lt 5", "row range", 250, 5),
        ("PartitionKey ge 'b' and PartitionKey lt 'd'", "partition range", 500, 500),
        ("RowKey eq '0000007'", "partition range", 4, 4),
        ("n eq 7", "table scan", 1000, 4),
        ("", "table scan", 1000, 1000),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", "nothing", 0, 0),
        ("n ge 3&top=2", "table scan", 5, 2),
    ]:
        told = tab.explain(options)
        assert (told["plan"], told["looked_at"], told["matched"]) == (plan, looked_at, matched), (
            options, told)
        assert tab.count(options) == matched
    assert tab.explain("(  N  gt 4 )&top=3&select=A,B") == {
        "plan": "table scan", "filter": "N gt 4", "top": 3, "select": ["A", "B"], "looked_at": 1000,
        "matched": 0}
    assert tab.explain("")["filter"] is None and tab.explain("")["top"] is None


MADE = "2020-01-01T00:00:00Z"


@pytest.mark.parametrize("options, name, words", [
    (f"Made ge datetime'{MADE}'", "Made", '"Made@odata.type":"Edm.DateTime"'),
    (f"not (Made lt datetime'{MADE}')", "Made", "2 of these rows"),
    ("Id eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "Id", "Edm.Guid"),
    ("Age gt 30 or Age eq 7", "Age", "without quotes"),
    ("Big eq 5000000000L", "Big", "Edm.Int64"),
    ("Active", "Active", "without quotes"),
    ("RowKey eq 5", "RowKey", "with a string, in quotes"),
])
def test_Q6_explain_says_which_strings_were_missed(tab, options, name, words):
    part = tab.path / "p"
    part.mkdir(parents=True)
    text = {"Made": MADE, "Id": "c9da6455-213d-42c9-9a79-3e9149a57833", "Age": "31",
            "Big": "5000000000", "Active": "true"}
    put(part / "5.json", json.dumps(text))
    put(part / "6.json", json.dumps(text, indent=1))
    put(part / "7.json", json.dumps({n: "neither" for n in text}))
    (note,) = tab.explain(options)["notes"]
    assert note.startswith(f"{name} is a String") and words in note
    assert tab.count(options) == 0 or options.startswith("not")


def test_Q6_explain_has_no_notes_where_types_agree(tab):
    part = tab.path / "p"
    part.mkdir(parents=True)
    put(part / "r.json", json.dumps({"Made": MADE, "Made@odata.type": "Edm.DateTime", "Age": 31}))
    for options in (f"Made ge datetime'{MADE}'", "Age gt 30", "Age gt 30.5", "Made eq 'x'", "No eq 1"):
        assert "notes" not in tab.explain(options), options


# ---- mistakes


@pytest.mark.parametrize("options, text", [
    ("I eq", "Syntax error at position 4 in 'I eq'."),
    ("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'."),
    ("filter=(I eq 5&top=1", "Syntax error at position 7 in '(I eq 5'."),
    ("I eq 'a&top=1", "Syntax error at position"),
    ("startswith(S,'a')", "neither functions"), ("I eq I", "only with a literal"),
    ("orderby=I", "There is no option 'orderby'"), ("I eq 5&skip=1", "no option 'skip'"),
    ("I eq 5&I eq 6", "'I eq 6' is not an option"), ("top=1&top=2", "'top' is given twice"),
    ("top=0", "at least 1, not '0'"), ("top=x", "not 'x'"), ("top=-1", "not '-1'"),
    ("select=a b", "property name"), ("select=a,,b", "empty"),
    ("I eq 5.txt", "Syntax error at position 10 in 'I eq 5.txt'."),
])
def test_Q7_options_that_do_not_parse(types, options, text):
    for name in (types.file(options), types.path / ".query" / component(options)):
        if options.endswith(".txt") and name.name.endswith(".ndjson"):
            continue
        with raises("EINVAL"):
            os.stat(name)
        assert text in reason(types.path / ".query"), reason(types.path / ".query")
        assert text in errors(types.mount)[-1]["message"]
        assert errors(types.mount)[-1]["path"] == f"{ACCOUNT}/Tab/.query"
    assert "Invalid argument" in sh(f"cat \"{types.file('I eq')}\"", check=False).stderr


@pytest.mark.parametrize("name", [b"S eq 'a%.ndjson", b"S eq '%2'.ndjson", b"S eq '%GG'.count",
                                  b"S eq '%00'.ndjson", b"S eq '\xff'.ndjson", b"%.json"])
def test_Q7_bytes_that_are_no_text(types, name):
    with raises("EINVAL", "EILSEQ"):
        os.stat(os.fsencode(types.path / ".query") + b"/" + name)
    assert types.count("I eq 5") == 2


def test_Q7_hostile_filters_are_refused_or_answered(types):
    for text in ("(" * 450 + "I eq 5" + ")" * 450, "not " * 240 + "I eq 5",
                 " or ".join(f"I eq {i}" for i in range(70)), "'" * 900, "&" * 900, "%25" * 300):
        try:
            get(types.path / ".query" / (text + ".count"))
        except OSError as e:
            assert e.errno in (22, 36), text[:50]
    assert types.count(" or ".join(f"I eq {i}" for i in range(50))) == 2


# ---- work, memory, moments


def test_Q8_a_reader_that_has_had_enough_ends_the_work(tab):
    fill(tab.mount.rowfs, tab.mount.store, 200_000, "p")
    before = high_water_kib(tab.mount)
    assert json.loads(sh(f"head -n 1 '{tab.file('n ge 5')}'").stdout)["n"] == 5
    assert sh(f"cat '{tab.file('n ge 7')}' | head -n 1").stdout.count("\n") == 1
    assert sh(f"head -n 1 '{tab.file('n ge 5&select=n', 'csv')}'").stdout == (
        "PartitionKey,RowKey,n,n@type\n")
    cpu_settles(tab.mount)
    assert sh(f"wc -l < '{tab.file('n ge 5')}'").stdout.strip() == "199995"
    assert sh(f"grep -c n '{tab.file('n ge 5', 'json')}'").stdout.strip() == "199995"
    if not sanitized():
        assert high_water_kib(tab.mount) - before < 16 * 1024


def test_Q8_ctrl_c_ends_a_scan_that_finds_nothing(tab):
    fill(tab.mount.rowfs, tab.mount.store, 150_000, "p")
    for form in ("ndjson", "count"):
        interrupted(tab.mount, ["cat", tab.file("text eq 'none'", form)])
        cpu_settles(tab.mount)
    assert tab.count("n eq 7") == 1


def test_Q8_long_scans_do_not_stop_the_mount(tab):
    """More of them than there are threads for; everybody else goes on, and a clean end too."""
    fill(tab.mount.rowfs, tab.mount.store, 30_000, "p")
    scans = [subprocess.Popen(["cat", str(tab.file(f"text eq 'none{i}'", "count"))],
                              stdout=subprocess.PIPE) for i in range(24)]
    for i in range(20):
        put(tab.path / "p/new.json", f'{{"N":{i}}}')
        assert json.loads(get(tab.path / "p/new.json")) == {"N": i}
    assert [p.communicate(timeout=120)[0] for p in scans] == [b"0\n"] * 24


def test_Q9_all_of_a_stream_is_of_one_moment(tab):
    """Two rows far apart change together; one that matches moves out of the way of the scan."""
    fill(tab.mount.rowfs, tab.mount.store, 6000, "p")
    for rk in ("00", "zz"):
        ok(tab.client.upsert("Tab", "p", rk, {"Pair": 0}))
    stop, problems = threading.Event(), []

    def write():
        try:
            with Client(tab.mount.port) as c:
                n = 0
                while not stop.is_set():
                    n += 1
                    ok(c.batch([("PUT", f"Tab(PartitionKey='p',RowKey='{rk}')", {}, {"Pair": n})
                                for rk in ("00", "zz")]), 202)
        except BaseException as e:
            problems.append(e)

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    try:
        for _ in range(15):
            a, b = tab.rows("Pair ge 0&select=Pair")
            assert a["Pair"] == b["Pair"]
            seen.add(a["Pair"])
    finally:
        stop.set()
        thread.join()
    assert not problems and len(seen) > 1


def test_Q9_two_passes_by_one_handle_are_the_same(tab):
    fill(tab.mount.rowfs, tab.mount.store, 3000, "p")
    for form in ("ndjson", "json", "csv", "count", "explain"):
        with open(tab.file("n ge 100", form), "rb") as f:
            first = f.read()
            ok(tab.client.upsert("Tab", "p", "0000500", {"n": -1}))
            f.seek(0)
            assert f.read() == first != b""
            f.seek(0)
        assert get(tab.file("n ge 100", form)) != first
        ok(tab.client.upsert("Tab", "p", "0000500", {"n": 500, "text": "some text of a row"}))


def test_Q9_what_was_acknowledged_before_is_in_it(tab):
    for n in range(30):
        ok(tab.client.upsert("Tab", "p", "r", {"N": n}))
        assert tab.count(f"N eq {n}") == 1 and tab.count(f"RowKey eq 'r' and N ne {n}") == 0
        (tab.path / "p/m.json").write_text(f'{{"N":{-n}}}')
        assert [r["N"] for r in tab.rows("RowKey eq 'm'")] == [-n]


def test_Q10_a_table_that_goes(tab):
    fill(tab.mount.rowfs, tab.mount.store, 3000, "p")
    name = tab.file("n ge 0")
    with open(name, "rb", buffering=0) as f:
        f.read(1)
        ok(tab.client.delete_table("Tab"))
        assert len(b"".join(iter(lambda: f.read(1 << 20), b""))) > 300_000
    with raises("ENOENT"):
        get(name)
