# SPDX-License-Identifier: MIT
"""Renames of rows between partitions and tables of an account elsewhere.

They are two requests: the row is put in its new place, then deleted in the old one.  Whatever happens to
either, the row is in one place at least, and a row that somebody else changed is neither lost nor replaced.
"""

import concurrent.futures
import errno
import json
import os
import shutil

import pytest
from rest_client import ok
from tools import NOREPLACE, get, put, raises, reason, renameat2, wait_for

from fault_proxy import FAULTS
from test_client import PROGRAM
from test_mount_changes import row_of
from there import azurite, proxied, second, there, there_with  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
PUT, DELETE = "PUT /devstoreaccount1/Posts(PartitionKey='q'", "DELETE /devstoreaccount1/Posts(PartitionKey='p'"
POST = "POST /devstoreaccount1/Posts"


def fill(t, *options):
    """A mounted table with the row p/a and the partition q."""
    ok(t.client.create_table("Posts"))
    ok(t.client.insert("Posts", {"PartitionKey": "p", "RowKey": "a", "N": 1}))
    t.posts = t.mounted("cache=0", *options) / "Posts"
    t.source, t.target = t.posts / "p/a.json", t.posts / "q/b.json"
    t.target.parent.mkdir()
    return t


@pytest.fixture
def posts(there):  # noqa: F811
    return fill(there)


@pytest.fixture
def cuttable(second, proxied):  # noqa: F811
    """The same, through a proxy."""
    second.proxy = proxied
    return fill(second, "timeout=60")


def both(t):
    """The row under its old and its new name, as the service has it."""
    return row_of(t, "p", "a"), row_of(t, "q", "b")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_rename_to_another_partition(posts, replaced):
    if replaced:
        put(posts.target, '{"Old":1}')
    put(posts.source, '{ "L@odata.type": "Edm.Int64", "L": "5" }')
    os.chmod(posts.source, 0o604)
    os.rename(posts.source, posts.target)
    assert both(posts) == (None, {"L": "5"})
    assert get(posts.target) == b'{ "L@odata.type": "Edm.Int64", "L": "5" }'
    assert os.stat(posts.target).st_mode & 0o777 == 0o604
    assert os.listdir(posts.posts / "p") == [] and os.listdir(posts.posts / "q") == ["b.json"]


def test_a_rename_to_another_table(posts):
    (posts.path / "Table").mkdir()
    (posts.path / "Table/r").mkdir()
    with open(posts.source) as reader:
        os.rename(posts.source, posts.path / "Table/r/c.json")
        assert json.loads(reader.read()) == {"N": 1}
    assert row_of(posts, "p", "a") is None
    assert ok(posts.client.get("Table", "r", "c")).json["N"] == 1


def test_a_rename_that_may_not_replace_replaces_nothing(posts):
    put(posts.target, '{"Old":1}')
    with raises(errno.EEXIST):
        renameat2(posts.source, posts.target, NOREPLACE)
    assert both(posts) == ({"N": 1}, {"Old": 1})
    posts.target.unlink()
    renameat2(posts.source, posts.target, NOREPLACE)
    assert both(posts) == (None, {"N": 1})


def test_a_name_that_waits_is_replaced_and_a_file_is_no_row(posts):
    posts.target.touch()
    os.rename(posts.source, posts.target)
    assert both(posts) == (None, {"N": 1})
    with raises(errno.EXDEV):
        os.rename(posts.target, posts.posts / "p/notes.txt")
    shutil.move(posts.target, posts.posts / "p/notes.txt")
    assert both(posts) == (None, None) and json.loads(get(posts.posts / "p/notes.txt")) == {"N": 1}


def test_a_long_key_is_in_the_document_of_the_renamed_row(posts):
    key = "k" * 300
    ok(posts.client.insert("Posts", {"PartitionKey": "q", "RowKey": key, "N": 0}))
    name, = os.listdir(posts.posts / "q")
    os.rename(posts.posts / "q" / name, posts.posts / "p/short.json")
    assert json.loads(get(posts.posts / "p/short.json")) == {"N": 0}
    assert row_of(posts, "q", key) is None and row_of(posts, "p", "short") == {"N": 0}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", [POST, DELETE])
def test_a_fault_that_passes_is_no_error(cuttable, step, fault):
    cuttable.proxy.cut, cuttable.proxy.cuts, cuttable.proxy.fault = step, 1, fault
    os.rename(cuttable.source, cuttable.target)
    assert cuttable.proxy.cuts == 0 and both(cuttable) == (None, {"N": 1})


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", [POST, DELETE])
def test_a_fault_that_stays_leaves_the_row_in_one_place_at_least(cuttable, step, fault):
    cuttable.proxy.cut, cuttable.proxy.cuts, cuttable.proxy.fault = step, 1000, fault
    # A lost answer is read back, and then known.
    if fault in ("half", "lost"):
        os.rename(cuttable.source, cuttable.target)
        want = None, {"N": 1}
    else:
        with raises(errno.EIO, errno.EAGAIN):
            os.rename(cuttable.source, cuttable.target)
        want = {"N": 1}, None if step == POST else {"N": 1}
    assert both(cuttable) == want
    cuttable.proxy.cuts = 0
    assert [p.exists() for p in (cuttable.source, cuttable.target)] == [row is not None for row in want]


def test_a_mount_that_is_killed_in_between_leaves_both(cuttable):
    cuttable.proxy.held = DELETE
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        renamed = pool.submit(os.rename, cuttable.source, cuttable.target)
        wait_for(lambda: not cuttable.proxy.held)
        assert both(cuttable) == ({"N": 1}, {"N": 1})
        cuttable.mount.kill9()
        with raises(errno.ENOTCONN, errno.ECONNABORTED):
            renamed.result()


def meanwhile(t, act):
    """Renames the row; somebody else acts between the two requests."""
    t.proxy.held = DELETE
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        renamed = pool.submit(os.rename, t.source, t.target)
        wait_for(lambda: not t.proxy.held)
        act()
        t.proxy.go_on.set()
        renamed.result()


@pytest.mark.parametrize("replaced", [None, {"Old": 1}])
def test_a_row_that_is_changed_in_between_is_renamed_as_it_is_then(cuttable, replaced):
    if replaced:
        ok(cuttable.client.insert("Posts", {"PartitionKey": "q", "RowKey": "b", **replaced}))
    meanwhile(cuttable, lambda: ok(cuttable.client.replace("Posts", "p", "a", {"N": 77})))
    assert both(cuttable) == (None, {"N": 77}) and json.loads(get(cuttable.target)) == {"N": 77}


@pytest.mark.parametrize("replaced", [None, {"Old": 1}])
def test_a_row_that_is_removed_in_between_is_not_renamed(cuttable, replaced):
    if replaced:
        ok(cuttable.client.insert("Posts", {"PartitionKey": "q", "RowKey": "b", **replaced}))
    with raises(errno.ENOENT):
        meanwhile(cuttable, lambda: ok(cuttable.client.delete("Posts", "p", "a")))
    assert both(cuttable) == (None, replaced)
    assert (json.loads(get(cuttable.target)) == replaced) if replaced else not cuttable.target.exists()


def test_what_somebody_wrote_over_the_copy_stays(cuttable):
    """The undoing deletes only what it wrote itself."""
    def act():
        ok(cuttable.client.replace("Posts", "q", "b", {"N": 5}))
        ok(cuttable.client.delete("Posts", "p", "a"))
    with raises(errno.EIO):
        meanwhile(cuttable, act)
    assert both(cuttable) == (None, {"N": 5})
    assert "may still have the old one" in reason(cuttable.target)


def test_a_row_that_another_client_renames_meanwhile_has_one_name(cuttable):
    other = cuttable.posts / "q/c.json"
    def act():
        ok(cuttable.client.delete("Posts", "p", "a"))
        ok(cuttable.client.insert("Posts", {"PartitionKey": "q", "RowKey": "c", "N": 1}))
    with raises(errno.ENOENT):
        meanwhile(cuttable, act)
    assert both(cuttable) == (None, None) and json.loads(get(other)) == {"N": 1}


@pytest.mark.parametrize("replaced", [False, True])
def test_a_credential_that_may_not_delete_leaves_the_row(rowfs, second, rest_store, replaced):  # noqa: F811
    """It may put back what was replaced, and cannot delete what was put."""
    fill(second)
    if replaced:
        put(second.target, '{"Old":1}')
    second.mount.umount()
    sas = rowfs("sas", rest_store, "devstoreaccount1", "--permissions=rlau", "--resource-types=sco",
                "--expiry=2999-01-01").stdout
    second.account.secret.write_text(
        f"TableEndpoint={second.account.url};SharedAccessSignature={sas.split('?', 1)[1].split()[0]}")
    second.mount.start()
    with raises(errno.EACCES):
        os.rename(second.source, second.target)
    assert both(second) == ({"N": 1}, {"Old": 1} if replaced else {"N": 1})
