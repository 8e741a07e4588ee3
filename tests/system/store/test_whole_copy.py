# SPDX-License-Identifier: MIT
"""`rowfs copy SOURCE DESTINATION`: a whole store into a new or empty one."""

import json
import os
import re

import pytest
from everything import fill, seen
from rest_client import ACCOUNT
from tools import on_terminal, raises

SOCKETS = ("rest=127.0.0.1:0", "rest=blob=127.0.0.1:0")


@pytest.fixture
def filled(mount, rest_store):
    """A store with some of everything, and what was seen of it."""
    m = mount(rest_store, *SOCKETS)
    fill(m, rest_store)
    found = seen(m, rest_store)
    m.umount()
    return rest_store, found


def test_BK9_a_copy_of_a_store_shows_what_the_store_showed(rowfs, filled, mount, work):
    store, before = filled
    copy = work / "copy.rowfs"
    told = rowfs("copy", store, copy).stderr
    assert "is a copy of" in told and "items" in told
    assert os.stat(copy).st_mode & 0o777 == 0o600
    assert os.listdir(work).count("copy.rowfs") == 1 and not list(work.glob("*.part*"))
    assert rowfs("account", "keys", copy, ACCOUNT).stdout == rowfs(
        "account", "keys", store, ACCOUNT).stdout
    for of_copy, of_store in zip(*(json.loads(rowfs("check", s, "--json").stdout).items()
                                   for s in (copy, store))):
        assert of_copy == of_store
    m = mount(copy, *SOCKETS)
    after = seen(m, copy)
    for part in before:
        assert after[part] == before[part], part


def test_AD15_a_copy_shows_items_a_second_and_the_time_left(rowfs, filled, work):
    seen = on_terminal(rowfs, "copy", filled[0], work / "copy.rowfs")
    share = re.search(r"(\d+)%  ([\d,]+) items  [\d,]+ items/s  \d+:\d\d left", seen)
    assert share and int(share[1]) <= 100, seen


def test_BK9_a_copy_goes_into_an_empty_store(rowfs, rest_store, work):
    empty = work / "empty.rowfs"
    rowfs("init", empty)
    assert json.loads(rowfs("copy", rest_store, empty, "--json").stdout)["items"] == 2
    assert rowfs("account", "list", empty).stdout == rowfs("account", "list", rest_store).stdout
    done = rowfs("copy", rest_store, empty, check=False)
    assert done.returncode == 1 and "needs an empty store" in done.stderr
    assert "clean" in rowfs("check", empty).stdout


def test_BK9_nothing_is_left_of_a_copy_that_fails(rowfs, filled, small_disk):
    """The small disk has no room for the store."""
    store, _ = filled
    empty = small_disk / "empty.rowfs"
    rowfs("init", empty)
    for to in (empty, small_disk / "new.rowfs"):
        done = rowfs("copy", store, to, check=False)
        assert done.returncode == 1 and "cannot copy" in done.stderr, done
    assert os.listdir(small_disk) == ["empty.rowfs"]
    assert rowfs("account", "list", empty).stdout == ""
    assert "0 ordinary files: clean" in rowfs("check", empty).stdout


def test_BK9_what_cannot_be_copied_is_said(rowfs, rest_store, serve, work):
    def refused(code, text, *args):
        done = rowfs("copy", *args, check=False)
        assert done.returncode == code and text in done.stderr, done
    refused(1, "none.rowfs", work / "none.rowfs", work / "new")
    refused(1, "no such directory", rest_store, work / "none/new")
    refused(2, "two stores", rest_store, "acct1/T", work / "new")
    refused(2, "--delete", rest_store, work / "new", "--delete")
    refused(2, "one by one", rest_store, "https://127.0.0.1/acct1")
    serve(rest_store)
    refused(1, "rowfs backup", rest_store, work / "new")
    with raises("ENOENT"):
        os.stat(work / "new")
