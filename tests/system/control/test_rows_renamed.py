# SPDX-License-Identifier: MIT
"""An ordinary file that is renamed onto .rows.ndjson or .rows.csv: its rows are imported."""

import json
import os
import time

import pytest

from rest_client import ACCOUNT, Client, ok
from tools import get, put, raises, reason, rejected, rows, sh

NDJSON = '{"PartitionKey":"p","RowKey":"a","n":1}\n{"PartitionKey":"p","RowKey":"b","n":2}'
CSV = "PartitionKey,RowKey,n\np,a,1\np,b,2\n"
TEXTS = {"ndjson": NDJSON, "csv": CSV}


@pytest.fixture
def both(rest_mount, rest_store):
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Tab"), 201)
        (m / ACCOUNT / "Tab/p").mkdir()
        yield m, m / ACCOUNT / "Tab", client


def copy_to(directory, name, text):
    """DuckDB's COPY TO, as strace shows it."""
    assert os.access(directory / name, os.F_OK) and os.stat(directory / name)
    put(directory / f"tmp_{name}", text)
    os.rename(directory / f"tmp_{name}", directory / name)


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("where", ["", "p"])
def test_I12_a_file_renamed_onto_the_name_is_imported(both, rowfs, rest_store, form, where):
    m, tab, client = both
    for name in ("a.json", "b.json", "c.json"):  # the kernel knows that they are not there
        assert not os.path.exists(tab / "p" / name)
    put(tab / "p/b.json", '{"n":0}')
    start = time.monotonic()
    copy_to(tab / where, f".rows.{form}", TEXTS[form])
    assert time.monotonic() - start < 0.8  # it does not wait for the directory that it holds
    assert os.listdir(tab) == ["p"] and rows(tab / "p") == ["a.json", "b.json"]
    assert {r["RowKey"] for r in client.all("Tab")} == {"a", "b"}
    for _ in range(600):
        if os.path.exists(tab / "p/a.json"):
            break
        time.sleep(0.1)
    assert json.loads(get(tab / "p/b.json"))["n"] in (2, "2") and get(tab / "p/a.json")
    at = tab / where / f".rows.{form}"  # the name is the stream's again
    assert os.stat(at).st_size == len(get(at)) and b'b' in get(at)
    copy_to(tab / where, f".rows.{form}", TEXTS[form].replace("2", "22"))
    assert json.loads(get(tab / "p/b.json"))["n"] in (22, "22")
    assert "clean" in rowfs("check", rest_store).stdout


def test_I12_many_rows(both):
    m, tab, client = both
    text = "".join(json.dumps({"PartitionKey": f"p{i % 3}", "RowKey": f"{i}", "s": "x" * 100}) + "\n"
                   for i in range(5000))
    copy_to(tab, ".rows.ndjson", text)
    assert len(get(tab / ".rows.ndjson").splitlines()) == 5000
    assert sorted(os.listdir(tab)) == ["p", "p0", "p1", "p2"]


def test_I12_a_bad_line_fails_the_rename_and_the_file_stays(both, rowfs, rest_store):
    m, tab, client = both
    bad = NDJSON + "\n{\n" + NDJSON
    for directory in (tab, tab / "p"):
        with raises("EBADMSG"):
            copy_to(directory, ".rows.ndjson", bad)
        assert get(directory / "tmp_.rows.ndjson").decode() == bad
        assert rows(tab / "p")[:2] == ["a.json", "b.json"]  # the lines before it stand
        assert "line 3" in reason(directory / ".rows.ndjson") or \
            ":3" in reason(directory / ".rows.ndjson")
        assert list(rejected(m).values())[-1].startswith(b"{\n")
    assert "clean" in rowfs("check", rest_store).stdout
    put(tab / "tmp_.rows.ndjson", NDJSON)
    os.rename(tab / "tmp_.rows.ndjson", tab / ".rows.ndjson")
    with raises("ENODATA"):
        reason(tab / ".rows.ndjson")
    os.unlink(tab / "p/tmp_.rows.ndjson")


def test_I12_any_ordinary_file_will_do_and_nothing_else(both):
    m, tab, client = both
    put(tab / "p/some.txt", NDJSON)
    os.rename(tab / "p/some.txt", tab / ".rows.ndjson")
    assert rows(tab / "p") == ["a.json", "b.json"]
    put(tab / ".x", CSV.replace("b,", "c,"))
    sh(f"mv '{tab}/.x' '{tab}/p/.rows.csv'")
    assert rows(tab / "p") == ["a.json", "b.json", "c.json"]
    for name in ("p/a.json", "p"):
        with raises("EPERM", "ENOTDIR"):
            os.rename(tab / name, tab / ".rows.ndjson")
    put(tab / "p/some.txt", NDJSON)
    for other in (".batch", ".query"):
        with raises("EPERM", "EISDIR"):
            os.rename(tab / "p/some.txt", tab / other)
    with raises("EPERM"):
        os.rename(tab / ".rows.ndjson", tab / ".rows.csv")
    with raises("ENOENT"):
        os.rename(tab / "p/none.txt", tab / ".rows.csv")


def test_I12_the_temporary_name_is_no_partition(both):
    """One of that key has another name; and a directory is not made under the file's."""
    m, tab, client = both
    ok(client.upsert("Tab", "tmp_.rows.csv", "r", {"N": 1}))
    assert sorted(os.listdir(tab)) == ["%74mp_.rows.csv", "p"]
    assert json.loads(get(tab / "%74mp_.rows.csv/r.json")) == {"N": 1}
    with raises("EPERM"):
        os.mkdir(tab / "tmp_.rows.ndjson")
    assert not os.path.exists(tab / "tmp_.rows.csv")
    with raises("EPERM"):
        put(tab / "tmp_.rows.json", "")
    copy_to(tab, ".rows.csv", CSV)
    assert sorted(os.listdir(tab)) == ["%74mp_.rows.csv", "p"]
