# SPDX-License-Identifier: MIT
"""docs/semantics.md, A10: the time at which a row or file was made, as statx(2) tells it."""

import os
import platform
import shutil

import pytest

from old_schema import as_version_1
from rest_client import ACCOUNT, Client, ok
from tools import EXCHANGE, get, put, renameat2, sh

UNKNOWN = "-"

pytestmark = pytest.mark.skipif(
    tuple(int(n) for n in platform.release().split(".")[:2]) < (6, 6),
    reason="the kernel asks no file system in FUSE before 6.6")


def born(path):
    return sh(f"stat -Lc %w '{path}'").stdout.strip()


def changed(path):
    return sh(f"stat -c %y '{path}'").stdout.strip()


@pytest.fixture
def row(mnt):
    path = mnt / "acct1/Tab/p/r.json"
    path.parent.mkdir(parents=True)
    put(path, '{"a":1}')
    return path


def test_A10_a_new_row_was_made_when_it_was_written(row):
    assert born(row) == changed(row)
    assert sh(f"stat -c %W '{row}'").stdout.strip() == sh(f"stat -c %Y '{row}'").stdout.strip()
    assert sh(f"stat '{row}'").stdout.splitlines()[-1].split("Birth: ")[1] == born(row)


def test_A10_no_change_moves_it(row, mnt):
    first = born(row)
    put(row, '{"a":2}')
    os.chmod(row, 0o600)
    os.utime(row, (1, 1))
    assert born(row) == first
    moved = row.with_name("s.json")
    os.rename(row, moved)
    put(moved, '{"a":3}')
    other = mnt / "acct1/Tab/q/t.json"
    other.parent.mkdir()
    put(other, "{}")
    renameat2(moved, other, EXCHANGE)
    assert born(other) == first != born(moved)
    with open(other, "rb") as f:
        put(other, '{"a":4}')
        assert born(f"/proc/{os.getpid()}/fd/{f.fileno()}") == first
    mnt.remount()
    assert born(other) == first


def test_A10_the_trash_keeps_it_and_a_new_row_has_its_own(row, mnt):
    first = born(row)
    os.unlink(row)
    put(row, '{"a":2}')
    assert born(row) == changed(row) > first
    os.unlink(row)
    oldest = sorted(os.listdir(mnt / ".rowfs/trash"))[0]
    os.rename(mnt / ".rowfs/trash" / oldest, row)
    assert born(row) == first


def test_A10_ordinary_files_have_one_and_directories_none(row):
    note = row.with_name("note")
    put(note, "a")
    first = born(note)
    with open(note, "a") as f:
        f.write("b" * 100000)
    os.truncate(note, 0)
    assert born(note) == first and changed(note) > first
    assert born(row.parent) == born(row.parent.parent / ".rows.ndjson") == UNKNOWN


def test_A10_an_editors_new_file_under_the_name_is_made_anew(row):
    first = born(row)
    put(row.with_name("new"), '{"a":2}')
    os.rename(row.with_name("new"), row)
    assert born(row) > first


def test_A10_through_rest(rest_store, rest_mount):
    m = rest_mount(rest_store)
    client = Client(m.port)
    ok(client.create_table("Tab"))
    ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": "r", "a": 1}))
    row = m / ACCOUNT / "Tab/p/r.json"
    first = born(row)
    ok(client.replace("Tab", "p", "r", {"a": 2}))
    assert born(row) == first < changed(row)


def test_A10_a_backup_has_it(row, mnt, rowfs, work, mount):
    first = born(row)
    put(row, '{"a":2}')
    rowfs("backup", mnt.store, work / "copy.rowfs")
    m = mount(work / "copy.rowfs", at=work / "copy")
    assert born(m / "acct1/Tab/p/r.json") == first


def test_A10_an_older_store_knows_it_of_what_was_not_changed(row, mnt, mount, rowfs):
    put(row.with_name("s.json"), '{"a":1}')
    put(row, '{"a":2}')
    first = born(row.with_name("s.json"))
    mnt.umount()
    as_version_1(mnt.store)
    mnt.start()
    assert born(row) == UNKNOWN and born(row.with_name("s.json")) == first
    put(row, '{"a":3}')
    put(row.with_name("s.json"), '{"a":2}')
    assert born(row) == UNKNOWN and born(row.with_name("s.json")) == first
    assert get(row) == b'{"a":3}'
