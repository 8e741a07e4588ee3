# SPDX-License-Identifier: MIT
"""What the mount leaves under the names of rows and partitions while no document is there
yet, an empty file and a directory under a digest name, when the row or the partition comes
and goes through the REST socket or a command."""

import contextlib
import json
import os
import threading

import pytest

from rest_client import ACCOUNT, Client, entity_path, ok
from test_front_ends import heat
from tools import get, long_name, put, raises, rows, sh, xattr

LONG = "k" * 400
LONG_NAME = long_name(LONG, "")


@pytest.fixture
def m(rest_mount, rest_store):
    return rest_mount(rest_store)


@pytest.fixture
def rest(m):
    with Client(m.port) as c:
        ok(c.create_table("Blogs"), 201)
        yield c


@pytest.fixture
def tab(m, rest):
    return m / ACCOUNT / "Blogs"


def gone(path):
    """No way to look finds the name."""
    assert path.name not in os.listdir(path.parent)
    with raises("ENOENT"):
        os.stat(path)
    with raises("ENOENT"):
        os.open(path, os.O_RDONLY)


def there(path, value):
    """Every way to look finds the row, once."""
    assert os.stat(path).st_size == len(get(path))
    assert json.loads(get(path))["v"] == value
    for _ in range(2):  # a listing may link names anew
        assert os.listdir(path.parent).count(path.name) == 1
        assert os.listdir(path.parent.parent).count(path.parent.name) == 1
        assert json.loads(get(path))["v"] == value


DELETES = {
    "delete": lambda r, rk: ok(r.delete("Blogs", "p", rk), 204),
    "if_match": lambda r, rk: ok(
        r.delete("Blogs", "p", rk, if_match=r.get("Blogs", "p", rk).etag), 204),
    "batch": lambda r, rk: ok(r.batch(
        [("PUT", entity_path("Blogs", "p", "z"), {}, {}),
         ("DELETE", entity_path("Blogs", "p", rk), {"If-Match": "*"}, None)]), 202),
}


@pytest.mark.parametrize("how", DELETES)
@pytest.mark.parametrize("rk", ["x", "", "ä%", "l" * 400], ids=["x", "empty", "escaped", "long"])
def test_W13_an_empty_file_does_not_come_back_when_rest_deletes_its_row(rest, tab, how, rk):
    ok(rest.insert("Blogs", {"PartitionKey": "p", "RowKey": "a"}), 201)
    path = tab / "p" / ("%_.json" if rk == "" else long_name(rk))
    for _ in range(3):
        put(path, "")
        heat(path)
        number = os.stat(path).st_ino
        ok(rest.insert("Blogs", {"PartitionKey": "p", "RowKey": rk, "v": 7}), 201)
        there(path, 7)
        assert os.stat(path).st_ino == number
        heat(path)
        DELETES[how](rest, rk)
        gone(path)
        assert rest.get("Blogs", "p", rk).status == 404
    put(path, json.dumps({"v": 8, "RowKey": rk}))
    assert rest.get("Blogs", "p", rk).json["v"] == 8


def test_W13_the_partition_goes_with_its_last_row_and_empty_file(rest, tab):
    ok(rest.insert("Blogs", {"PartitionKey": "p", "RowKey": "a"}), 201)
    put(tab / "p/x.json", "")
    ok(rest.upsert("Blogs", "p", "x", {"v": 1}), 204)
    ok(rest.delete("Blogs", "p", "a"), 204)
    heat(tab / "p/x.json", tab / "p")
    ok(rest.delete("Blogs", "p", "x"), 204)
    gone(tab / "p")


def test_W13_an_empty_file_is_nothing_to_the_other_front_ends(rest, tab, m, rowfs):
    ok(rest.insert("Blogs", {"PartitionKey": "p", "RowKey": "a"}), 201)
    put(tab / "p/x.json", "")
    assert rest.get("Blogs", "p", "x").status == 404
    assert [r["RowKey"] for r in rest.query("Blogs").json["value"]] == ["a"]
    query = "PartitionKey eq 'p' and RowKey ge 'b'"
    assert rest.query("Blogs", filter=query).json["value"] == []
    for how in (rest.replace, rest.merge):
        ok(how("Blogs", "p", "x", {"v": 1}), 404)
    ok(rest.delete("Blogs", "p", "x"), 404)
    assert len(get(tab / ".rows.ndjson").splitlines()) == 1
    assert len(rowfs("export", m.store, f"{ACCOUNT}/Blogs").stdout.splitlines()) == 1
    assert "1 row, " in rowfs("check", m.store).stdout
    with raises("ENODATA"):
        os.getxattr(tab / "p/x.json", "user.rowfs.etag")
    ok(rest.merge("Blogs", "p", "a", {"v": 1}), 204)
    assert os.listdir(tab / "p") == ["a.json", "x.json"]


def test_W13_other_files_stay_when_rest_deletes_a_row(rest, tab):
    ok(rest.insert("Blogs", {"PartitionKey": "p", "RowKey": "x"}), 201)
    put(tab / "p/y.json", "")
    put(tab / "p/x", "")
    put(tab / "p/x.json~", "text")
    ok(rest.delete("Blogs", "p", "x"), 204)
    assert sorted(os.listdir(tab / "p")) == ["x", "x.json~", "y.json"]
    assert get(tab / "p/x.json~") == b"text"


def insert(r, m, rowfs, row):
    ok(r.insert("Blogs", row), 201)


def upsert(r, m, rowfs, row):
    ok(r.upsert("Blogs", row["PartitionKey"], row["RowKey"], row), 204)


def upsert_merge(r, m, rowfs, row):
    ok(r.upsert_merge("Blogs", row["PartitionKey"], row["RowKey"], row), 204)


def batch(r, m, rowfs, row):
    ok(r.batch([("POST", "Blogs", {}, {**row, "RowKey": "first"}),
                ("POST", "Blogs", {}, row)]), 202)


def by_import(r, m, rowfs, row):
    lines = [{"PartitionKey": "other", "RowKey": "r"}, row, {**row, "RowKey": "second"}]
    rowfs("import", m.store, f"{ACCOUNT}/Blogs",
          input="".join(json.dumps(x) + "\n" for x in lines))


@pytest.mark.parametrize("make", [insert, upsert, upsert_merge, batch, by_import])
def test_N6_a_directory_without_a_key_becomes_the_partition_that_another_front_end_makes(
        rest, tab, m, rowfs, make):
    d = tab / LONG_NAME
    d.mkdir()
    put(d / "notes.txt", "kept")
    heat(d / "r.json", d / "first.json", d)
    before = os.stat(d).st_ino
    make(rest, m, rowfs, {"PartitionKey": LONG, "RowKey": "r", "v": 2})
    there(d / "r.json", 2)
    assert os.stat(d).st_ino == before
    assert xattr(d, "partition_key") == LONG
    assert get(d / "notes.txt") == b"kept"
    # Both front ends go on with it.
    put(d / "s.json", json.dumps({"PartitionKey": LONG, "v": 3}))
    assert rest.get("Blogs", LONG, "s").json["v"] == 3
    ok(rest.delete("Blogs", LONG, "r"), 204)
    gone(d / "r.json")
    sh(f"rm -r '{tab}'")
    gone(tab)
    assert rest.get("Blogs", LONG, "s").status == 404


@contextlib.contextmanager
def opened(path, flags, **kw):
    fd = os.open(path, flags, **kw)
    try:
        yield fd
    finally:
        os.close(fd)


def test_N6_what_is_open_in_the_directory_goes_on(rest, tab):
    d = tab / LONG_NAME
    d.mkdir()
    put(d / "e.json", "")
    with opened(d, os.O_RDONLY | os.O_DIRECTORY) as dirfd:
        with opened("w.json", os.O_WRONLY | os.O_CREAT, dir_fd=dirfd) as fd:
            os.write(fd, json.dumps({"PartitionKey": LONG, "v": 5}).encode())
            ok(rest.insert("Blogs", {"PartitionKey": LONG, "RowKey": "r", "v": 4}), 201)
            ok(rest.insert("Blogs", {"PartitionKey": LONG, "RowKey": "e", "v": 6}), 201)
        for rk, v in (("r", 4), ("w", 5), ("e", 6)):
            there(d / f"{rk}.json", v)
            assert rest.get("Blogs", LONG, rk).json["v"] == v
            os.stat(f"{rk}.json", dir_fd=dirfd)
        assert sorted(os.listdir(dirfd)) == ["e.json", "r.json", "w.json"]
        there(d / "e.json", 6)
    assert rows(d) == ["e.json", "r.json", "w.json"]
    for rk in "rwe":
        ok(rest.delete("Blogs", LONG, rk), 204)
    # It was made by hand: it stays.
    assert os.listdir(tab) == [LONG_NAME] and os.listdir(d) == []
    d.rmdir()
    ok(rest.insert("Blogs", {"PartitionKey": LONG, "RowKey": "r", "v": 7}), 201)
    there(d / "r.json", 7)


def test_N6_directories_and_partitions_of_one_name_made_at_the_same_time(m, rest, tab):
    """mkdir and insert race for the name; in both orders the row is at its path."""
    key = LONG[:-4] + "{:04}"
    stop = threading.Event()

    def make_dirs():
        n = 0
        while not stop.is_set():
            with contextlib.suppress(FileExistsError):
                (tab / long_name(key.format(n), "")).mkdir()
            n = turn[0] + 1

    turn = [0]
    t = threading.Thread(target=make_dirs)
    t.start()
    try:
        for n in range(200):
            turn[0] = n
            ok(rest.insert("Blogs", {"PartitionKey": key.format(n), "RowKey": "r", "v": n}), 201)
    finally:
        stop.set()
        t.join()
    names = os.listdir(tab)
    assert len(names) == len(set(names))
    for n in range(200):
        there(tab / long_name(key.format(n), "") / "r.json", n)
