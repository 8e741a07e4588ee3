# SPDX-License-Identifier: MIT
"""copy: between stores that are closed or served, and an account elsewhere, which is a second rowfs."""

import json
import subprocess

import pytest
from rest_client import ACCOUNT

from conftest import ENV
from test_client import PROGRAM
from test_transfer import (KEYS, TYPES, Elsewhere, elsewhere, lines, numbered,  # noqa: F401
                           refused, without_times)

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")


@pytest.fixture
def here(rowfs, work):
    """A closed store with the account 'mine'."""
    path = work / "here.rowfs"
    rowfs("init", path)
    rowfs("account", "add", path, "mine")
    return path


def copy(rowfs, source, target, *options, secret=None, check=True):
    """Returns the counts of a copy of ("STORE", "ACCOUNT/TABLE") to another."""
    more = [f"--connection-string={secret}"] if secret else []
    done = rowfs("copy", *source, *target, "--json", *options, *more, check=check)
    return json.loads(done.stdout) if check else done


def counts(inserted=0, replaced=0, deleted=0, same=0, extra=0, **more):
    return {"inserted": inserted, "replaced": replaced, "deleted": deleted, "same": same, "extra": extra, **more}


def export(rowfs, store, path):
    return without_times(rowfs("export", store, path).stdout)


def test_a_copy_there_and_back_is_equal(rowfs, here, elsewhere):  # noqa: F811
    there = elsewhere()
    rows = [{"PartitionKey": p, "RowKey": r, **TYPES} for p, r in KEYS]
    rowfs("import", here, "mine/Posts", input=lines(rows) + numbered(1500, partitions=7))
    n, cloud = len(KEYS) + 1500, (there.url, f"{ACCOUNT}/Posts")
    assert copy(rowfs, (here, "mine/Posts"), cloud, "--verify", secret=there.secret) == \
        counts(inserted=n, verified=True)
    assert copy(rowfs, cloud, (here, "mine/Back"), "--verify", secret=there.secret) == \
        counts(inserted=n, verified=True)
    assert export(rowfs, here, "mine/Back") == export(rowfs, here, "mine/Posts")
    assert copy(rowfs, cloud, (here, "mine/Back"), secret=there.secret) == counts(same=n)


@pytest.mark.parametrize("change", [{"Z": 0.0}, {"D": 1}, {"L@odata.type": "Edm.Int32", "L": 1}, {"E": None},
                                    {"New": 1}, {"Nan": "Infinity"}, {"T": "1999-12-31T23:59:59.1234568Z"},
                                    {"X": "AAEC/A=="}, {"S": "u"}])
def test_the_least_difference_is_copied(rowfs, here, change):
    row = {"PartitionKey": "p", "RowKey": "r", **TYPES}
    if "L@odata.type" in change:
        row = {**row, "L@odata.type": "Edm.Int64", "L": "1"}
        change = {"L": 1, "L@odata.type": "Edm.Int32"}
    other = {**row, **change}
    rowfs("import", here, "mine/Tab", input=lines([row]))
    rowfs("import", here, "mine/Copy", input=lines([{k: v for k, v in other.items() if v is not None}]))
    assert copy(rowfs, (here, "mine/Tab"), (here, "mine/Copy")) == counts(replaced=1)
    assert export(rowfs, here, "mine/Tab") == export(rowfs, here, "mine/Copy")


@pytest.mark.parametrize("kind", ["closed", "served", "elsewhere"])
def test_differences_are_inserted_replaced_and_deleted(rowfs, here, serve, elsewhere, work, kind):  # noqa: F811
    """Odd rows are missing, every tenth is another, and 300 rows are too many."""
    target, secret = (here, "mine/Copy"), None
    rowfs("import", here, "mine/Posts", input=numbered(1000, partitions=3))
    if kind == "served":
        serve(here)
    if kind == "elsewhere":
        there = elsewhere()
        target, secret = (there.url, f"{ACCOUNT}/Copy"), there.secret
    old = [{"PartitionKey": f"p{i % 3}", "RowKey": f"{i:06}", "N": -1 if i % 10 == 0 else i}
           for i in range(0, 1000, 2)]
    old += [{"PartitionKey": f"p{i % 3}", "RowKey": f"x{i}"} for i in range(300)]
    more = [f"--connection-string={secret}"] if secret else []
    rowfs("import", *target, *more, input=lines(old))
    dry = rowfs("copy", here, "mine/Posts", *target, *more, "--dry-run", "--delete").stdout.splitlines()
    assert {c: sum(line[0] == c for line in dry) for c in "+~-"} == {"+": 500, "~": 100, "-": 300}
    assert {"+ p1/000001.json", "~ p0/000000.json", "- p2/x2.json"} <= set(dry)
    assert copy(rowfs, (here, "mine/Posts"), target, "--dry-run", secret=secret) == \
        counts(inserted=500, replaced=100, same=400, extra=300)
    assert copy(rowfs, (here, "mine/Posts"), target, secret=secret) == \
        counts(inserted=500, replaced=100, same=400, extra=300)
    assert copy(rowfs, (here, "mine/Posts"), target, "--delete", "--verify", secret=secret) == \
        counts(deleted=300, same=1000, verified=True)
    assert without_times(rowfs("export", *target, *more).stdout) == export(rowfs, here, "mine/Posts")


def test_a_dry_run_makes_no_table(rowfs, here):
    rowfs("import", here, "mine/Posts", input=numbered(3))
    assert copy(rowfs, (here, "mine/Posts"), (here, "mine/Copy"), "--dry-run") == counts(inserted=3)
    refused(rowfs("export", here, "mine/Copy", check=False), "no table 'Copy'")
    refused(rowfs("copy", here, "mine/Nothing", here, "mine/Copy", check=False), "TableNotFound")


def test_two_closed_stores_and_two_accounts_elsewhere(rowfs, here, serve, work, elsewhere, store):  # noqa: F811
    rowfs("import", here, "mine/Posts", input=numbered(250, partitions=2))
    second = work / "second.rowfs"
    rowfs("init", second)
    rowfs("account", "add", second, "yours")
    assert copy(rowfs, (here, "mine/Posts"), (second, "yours/Posts")) == counts(inserted=250)
    assert export(rowfs, here, "mine/Posts") == export(rowfs, second, "yours/Posts")
    there = elsewhere()
    a, b = (there.url, f"{ACCOUNT}/Tab"), (there.url, f"{ACCOUNT}/Copy")
    copy(rowfs, (second, "yours/Posts"), a, secret=there.secret)
    assert copy(rowfs, a, b, "--verify", secret=there.secret) == counts(inserted=250, verified=True)


def test_rows_of_a_source_that_ends_early_are_not_taken_for_deleted_ones(rowfs, here, elsewhere):  # noqa: F811
    """The first page of the source comes, the second never does."""
    there = elsewhere("fault=busy table=Posts op=queryentit")
    rowfs("import", here, "mine/Copy", input=numbered(50))
    rowfs("import", there.url, f"{ACCOUNT}/Posts", f"--connection-string={there.secret}", input=numbered(10))
    done = copy(rowfs, (there.url, f"{ACCOUNT}/Posts"), (here, "mine/Copy"), "--delete",
                secret=there.secret, check=False)
    refused(done, "ServerBusy", "could not be read to their end")
    assert len(export(rowfs, here, "mine/Copy")) == 50


def test_a_copy_that_was_killed_goes_on(rowfs, here, elsewhere):  # noqa: F811
    there = elsewhere()
    rowfs("import", here, "mine/Posts", input=numbered(3000, partitions=5))
    words = [rowfs.program, "copy", here, "mine/Posts", there.url, f"{ACCOUNT}/Posts",
             f"--connection-string={there.secret}", "--rps=30"]
    running = subprocess.Popen(list(map(str, words)), env=ENV, stderr=subprocess.DEVNULL)
    while there("query", "Posts", "--if-exists", "--count").stdout == "0\n":
        assert running.poll() is None
    running.kill()
    running.wait()
    done = copy(rowfs, (here, "mine/Posts"), (there.url, f"{ACCOUNT}/Posts"), "--verify", secret=there.secret)
    assert done["same"] > 0 and done["inserted"] + done["same"] == 3000 and done["verified"]


@pytest.mark.parametrize("words, message", [
    (["--dry-run", "--verify"], "--verify follows a copy"), (["--connection-string=-"], "they are in a file")])
def test_options_that_do_not_fit_are_refused(rowfs, here, words, message):
    refused(rowfs("copy", here, "mine/Tab", here, "mine/Copy", *words, check=False), message, code=2)
    refused(rowfs("copy", here, "mine/Tab", here, "mine/Tab", check=False), "the same table", code=2)


@pytest.mark.parametrize("source, target, wrong", [
    ("mine/Po_sts", "mine/Copy", "mine/Po_sts"), ("mine/Posts", "mine/Co_py", "mine/Co_py"),
    ("mine/Posts", "yours/Copy", "'yours'")])
def test_a_copy_that_cannot_begin_says_once_why(rowfs, here, source, target, wrong):
    rowfs("import", here, "mine/Posts", input=numbered(3))
    done = rowfs("copy", here, source, here, target, check=False)
    first, last = done.stderr.splitlines()
    assert first.startswith("rowfs query: ") and wrong in first and last.startswith("rowfs copy: ")
    assert done.returncode == 1
