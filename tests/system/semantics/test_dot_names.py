# SPDX-License-Identifier: MIT
"""F2, D3: a name with a leading dot is no key, so it can be an ordinary file or directory at every
level: in the mount's top, an account, a table, a partition."""

import errno
import os
import pathlib

import pytest

import rest_client
from conftest import add_accounts
from tools import get, need, put, raises, rows, sh

LEVELS = ("", "acct1", "acct1/Tab", "acct1/Tab/p")


@pytest.fixture
def m(mount, store):
    m = mount(store)
    (m / "acct1/Tab/p").mkdir(parents=True)
    put(m / "acct1/Tab/p/r.json", '{"v":1}')
    return m


@pytest.mark.parametrize("level", LEVELS)
def test_F2_files_and_directories_at_every_level(m, level):
    top = m / level
    others = rows(top)
    put(top / ".file", "one")
    with open(top / ".file", "ab") as f:
        f.write(b" two")
    (top / ".dir/a/b").mkdir(parents=True)
    put(top / ".dir/a/b/any name", "x")
    os.rename(top / ".file", top / ".other")
    with raises(errno.EEXIST):
        (top / ".dir").mkdir()
    with raises(errno.ENOTEMPTY):
        os.rmdir(top / ".dir")
    m.remount()
    assert get(top / ".other") == b"one two" and get(top / ".dir/a/b/any name") == b"x"
    assert rows(top) == sorted([*others, ".dir", ".other"])
    listed = os.listdir(top)
    assert set(listed[-2:]) == {".dir", ".other"}, "they come last"
    assert sh("echo *", cwd=top).stdout.split() == others
    sh("rm -r .dir .other", cwd=top)
    assert rows(top) == others


def test_F2_they_move_between_all_levels(m):
    put(m / ".f", "kept")
    (m / ".d/in").mkdir(parents=True)
    places = [m / level for level in (*LEVELS[1:], "")]
    at = m.path
    for to in places:
        os.rename(at / ".f", to / ".f")
        os.rename(at / ".d", to / ".d")
        at = to
        assert get(at / ".f") == b"kept" and rows(at / ".d") == ["in"]
    put(m / "acct1/Tab/.new", '{"v":2}')
    os.rename(m / "acct1/Tab/.new", m / "acct1/Tab/p/s.json")  # becomes a row
    os.rename(m / "acct1/Tab/p/s.json", m / "acct1/.kept")     # and a file again
    assert get(m / "acct1/.kept") == b'{"v":2}'
    assert rows(m / "acct1/Tab/p") == ["r.json"]


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_D3_only_with_a_leading_dot(m, level):
    top = m / level
    with raises(errno.EPERM, errno.EINVAL):
        put(top / "file.txt", "x")
    put(top / ".file", "x")
    with raises(errno.EPERM, errno.EINVAL):
        os.rename(top / ".file", top / "file.txt")
    (top / ".dir").mkdir()
    with raises(errno.EPERM, errno.EINVAL):
        os.rename(top / ".dir", top / "other1")
    for control in (".rowfs", ".rows.ndjson", ".query"):
        if os.path.lexists(top / control):
            with raises(errno.EPERM, errno.EEXIST, errno.ENOENT, errno.ENOTEMPTY, errno.ENOTDIR):
                os.rename(top / ".dir", top / control)


def test_F2_a_file_keeps_its_table_and_account(m):
    put(m / "acct1/Tab/.f", "x")
    put(m / "acct1/.f", "x")
    sh("rm -r p", cwd=m / "acct1/Tab")
    for level in ("acct1/Tab", "acct1"):
        with raises(errno.ENOTEMPTY):
            os.rmdir(m / level)
        os.unlink(m / level / ".f")
        os.rmdir(m / level)
    assert rows(m.path) == []


def test_F2_a_table_goes_with_its_files(rowfs, mount, store):
    add_accounts(rowfs, store)
    m = mount(store, "rest=127.0.0.1:0")
    with rest_client.Client(m.port) as rest:
        table = m / rest.account / "Tab"
        rest_client.ok(rest.create_table("Tab"), 201, 204)
        (table / ".git").mkdir()
        put(table / ".git/config", "x" * 100_000)
        put(table / ".gitignore", "x")
        assert [t["TableName"] for t in rest.tables().rows] == ["Tab"]
        assert rest_client.ok(rest.query("Tab"), 200).rows == []
        rest_client.ok(rest.delete_table("Tab"), 204)
    assert rows(m / rest.account) == []


def test_F2_a_snapshot_has_them(m):
    for level in LEVELS:
        put(m / level / ".f", level)
    (m / ".rowfs/snapshots/s").mkdir()
    for level in LEVELS:
        os.unlink(m / level / ".f")
        assert get(m / ".rowfs/snapshots/s" / level / ".f").decode() == level
    os.rmdir(m / ".rowfs/snapshots/s")


def test_F2_a_copy_of_a_tree_with_them_and_back(m, work):
    for level in LEVELS:
        put(m / level / ".f", level)
        (m / level / ".d/x").mkdir(parents=True)
    copy = work / "copy"
    sh(f"cp -a '{m.path}' '{copy}'")
    rows_of = sh("find . | sort", cwd=copy).stdout
    sh(f"rm -r acct1 .d .f", cwd=m.path)
    sh(f"cp -a '{copy}/.' '{m.path}'")
    assert sh("find . | sort", cwd=m.path).stdout == rows_of
    sh(f"diff -r '{copy}' '{m.path}'")


def test_F2_rows_under_version_control(m):
    need("git")
    table = m / "acct1/Tab"
    git = "git -c user.name=a -c user.email=a@b"
    put(table / ".gitignore", ".rows.*\n")
    sh(f"git -c init.defaultBranch=main init -q . && {git} add -A && {git} commit -qm one", cwd=table)
    assert sh("git ls-files", cwd=table).stdout.split() == [".gitignore", "p/r.json"]
    put(table / "p/r.json", '{"v":2}')
    assert sh("git status --short", cwd=table).stdout == " M p/r.json\n"
    sh(f"{git} commit -qam two && git checkout -q HEAD~1", cwd=table)
    assert get(table / "p/r.json") == b'{"v":1}'
    sh("git fsck --strict && git checkout -q main", cwd=table)
    assert get(table / "p/r.json") == b'{"v":2}'
    assert pathlib.Path(table / ".git").is_dir()


def test_F5_they_are_no_rows_tables_or_accounts(rowfs, m):
    for level in LEVELS:
        (m / level / ".d").mkdir()
    assert rowfs("account", "list", m.store).stdout == "acct1\n"
    assert [line.split() for line in rowfs("stat", m.store).stdout.splitlines()[:4]] == [
        ["accounts", "1"], ["tables", "1"], ["partitions", "1"], ["rows", "1"]]
    assert rowfs("export", m.store, "acct1/Tab").stdout.count("\n") == 1
