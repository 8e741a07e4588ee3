# SPDX-License-Identifier: MIT
"""docs/semantics.md R20: the removal of a large table or account."""

import json
import os
import time

import pytest

from rest_client import ACCOUNT, Client, fails, ok
from tools import get, put, rows

ROWS = 60_000
# Of 4,000 pages, and what is on its way.
LOG = 32 << 20


def fill(rowfs, store, table, count=ROWS):
    """Rows of a few bytes in partitions of 5,000."""
    lines = (f'{{"PartitionKey":"p{i // 5000}","RowKey":"{i:08}","v":{i}}}\n'
             for i in range(count))
    rowfs("import", store, table, "-", input="".join(lines))


def figures(mnt):
    return json.loads(get(mnt / ".rowfs/stats.json"))["store"]


def wait_until_reclaimed(mnt):
    end = time.monotonic() + 120
    while figures(mnt)["reclaiming"]:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_R20_a_large_table_is_gone_at_once(rowfs, rest_mount, rest_store):
    fill(rowfs, rest_store, f"{ACCOUNT}/Big")
    m = rest_mount(rest_store)
    inside = os.open(m / ACCOUNT / "Big/p3", os.O_RDONLY | os.O_DIRECTORY)
    reader = open(m / ACCOUNT / "Big/p0/00000007.json", encoding="utf-8")
    before = figures(m)["reclaimed_slices"]
    with Client(m.port) as rest:
        ok(rest.delete_table("Big"), 204)
        fails(rest.get("Big", "p0", "00000007"), 404, "TableNotFound")
        fails(rest.delete_table("Big"), 404, "ResourceNotFound")
        assert not (m / ACCOUNT / "Big").exists() and rows(m / ACCOUNT) == []
        assert os.listdir(inside) == []
        with pytest.raises(OSError):
            os.stat("00015001.json", dir_fd=inside)
        assert json.load(reader)["v"] == 7  # an open row can be read on
        ok(rest.create_table("Big"), 201)
        ok(rest.insert("Big", {"PartitionKey": "p0", "RowKey": "00000007", "v": 1}), 201)
    os.close(inside)
    reader.close()
    wait_until_reclaimed(m)
    assert figures(m)["reclaimed_slices"] - before >= ROWS // 1024 - 2
    assert json.loads(rowfs("stat", rest_store, "--json").stdout)["rows"] == 1


# Reclaiming a table takes about a second.  On a busy machine this process may not run in that second.
# Then it looks at the removal of another table.
REMOVALS = 10


def test_R20_other_writers_commit_between_the_slices(rowfs, rest_mount, rest_store):
    m = rest_mount(rest_store)
    part = m / "other/Table/p"
    os.makedirs(part)
    between = removals = 0
    with Client(m.port) as rest:
        while between < 3:
            removals += 1
            assert removals <= REMOVALS
            fill(rowfs, rest_store, f"{ACCOUNT}/Big{removals}")
            last = figures(m)
            ok(rest.delete_table(f"Big{removals}"), 204)
            reclaiming = True
            while reclaiming:
                put(part / "r.json", "{}")
                now = figures(m)
                assert now["wal_bytes"] < LOG
                reclaiming = now["reclaiming"]
                between += reclaiming and now["reclaimed_slices"] > last["reclaimed_slices"]
                last = now


def test_R20_the_space_is_used_again(rowfs, mount, store):
    rowfs("account", "add", store, "acct")
    fill(rowfs, store, "acct/One")
    size = os.stat(store).st_size
    m = mount(store)
    for name in ("Two", "Three"):
        rowfs("account", "remove", "--recursive", store, "acct")
        rowfs("account", "add", store, "acct")
        wait_until_reclaimed(m)
        fill(rowfs, store, f"acct/{name}")
    m.umount()
    assert os.stat(store).st_size < 1.2 * size


def test_R20_a_kill_in_the_middle_loses_nothing_and_reclaiming_goes_on(
        rowfs, rest_mount, rest_store):
    m = rest_mount(rest_store)
    part = m / ACCOUNT / "Big/p0"
    removals, middle = 0, False
    while not middle:
        removals += 1
        assert removals <= REMOVALS
        fill(rowfs, rest_store, f"{ACCOUNT}/Big")
        before = figures(m)["reclaimed_slices"]
        with Client(m.port) as rest:
            ok(rest.delete_table("Big"), 204)
            ok(rest.create_table("Big"), 201)
        part.mkdir()
        put(part / "r.json", "{}")
        while figures(m)["reclaimed_slices"] < before + 5:
            pass
        m.kill9()
        done = rowfs("check", rest_store)
        assert "clean" in done.stdout
        middle = "still being reclaimed" in done.stderr
        m.start()
    wait_until_reclaimed(m)
    assert os.listdir(part.parent) == ["p0"] and (part / "r.json").read_text() == "{}"
    m.umount()
    done = rowfs("check", rest_store)
    assert "1 row," in done.stdout and done.stderr == ""


def test_R20_an_account_removed_while_nobody_serves_is_reclaimed_by_the_next(rowfs, mount, store):
    rowfs("account", "add", store, "acct")
    fill(rowfs, store, "acct/One")
    rowfs("account", "remove", "--recursive", store, "acct")
    assert "still being reclaimed" in rowfs("check", store).stderr
    assert json.loads(rowfs("stat", store, "--json").stdout)["rows"] == 0
    new = store.with_name("new.rowfs")
    assert "lost" not in rowfs("salvage", store, new).stdout
    assert "0 rows" in rowfs("check", new).stdout
    m = mount(store, "ro")
    assert rows(m.path) == [] and figures(m)["reclaiming"]
    m.umount()
    m = mount(store)
    wait_until_reclaimed(m)
    m.umount()
    assert rowfs("check", store).stderr == ""
