# SPDX-License-Identifier: MIT
"""Changes by the mount of an account elsewhere: a close that succeeded is in the service."""

import errno
import itertools
import json
import os
import shutil
import subprocess
import sys

import pytest
from rest_client import ACCOUNT, Client, moment, ok
from tools import NOREPLACE, get, put, raises, reason, rejected, renameat2, wait_for, xattr

from conftest import add_accounts
from test_client import PROGRAM
from test_transfer import lines, numbered
from there import azurite, clock, second, there, there_with  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")


def row_of(t, pk, rk):
    """The properties that the service has, or None."""
    answer = t.client.get("Posts", pk, rk)
    if answer.status == 404:
        return None
    keys = ("PartitionKey", "RowKey", "Timestamp")
    return {k: v for k, v in ok(answer).json.items() if k not in keys and "." not in k}


@pytest.fixture
def posts(there):  # noqa: F811
    """A mounted account with a table, whose rows are asked for at every look-up."""
    ok(there.client.create_table("Posts"))
    there.posts = there.mounted("cache=0") / "Posts"
    (there.posts / "p").mkdir()
    return there


def test_a_close_that_succeeded_is_in_the_service(posts):
    row = posts.posts / "p/r.json"
    for text, want in (('{"N":1}', {"N": 1}), ('{"S":"x"}\n', {"S": "x"}), ("{}", {})):
        put(row, text)
        assert row_of(posts, "p", "r") == want
        assert get(row).decode() == text
        assert moment(xattr(row, "etag")) == moment(posts.client.get("Posts", "p", "r").etag)
    row.unlink()
    assert row_of(posts, "p", "r") is None and not row.exists()


def test_a_new_name_is_a_row_when_it_has_a_document(posts):
    row = posts.posts / "p/new.json"
    row.touch()
    assert row_of(posts, "p", "new") is None and os.listdir(row.parent) == ["new.json"]
    ok(posts.client.insert("Posts", {"PartitionKey": "p", "RowKey": "new", "N": 7}))
    assert get(row) == b'{"N":7}\n'


def test_files_that_become_rows_and_files_that_stay(posts):
    part = posts.posts / "p"
    put(part / "notes.txt", "mine")
    put(part / ".r.json.swp", '{"N":1}')
    os.rename(part / ".r.json.swp", part / "r.json")
    assert row_of(posts, "p", "r") == {"N": 1}
    subprocess.run(["sed", "-i", "s/1/2/", part / "r.json"], check=True)
    assert row_of(posts, "p", "r") == {"N": 2}
    assert sorted(os.listdir(part)) == ["notes.txt", "r.json"]
    (part / "r.json").unlink()
    assert os.listdir(part) == ["notes.txt"] and os.listdir(posts.posts) == ["p"]


def test_a_clock_ahead_of_the_services_breaks_no_write(second):  # noqa: F811
    """The shadow's own items are then newer than the rows that replace them."""
    ok(second.client.create_table("Posts"))
    part = second.mounted("cache=0", **clock(60)) / "Posts/p"
    part.mkdir()
    for n in range(2):
        put(part / "r.json", f'{{"N":{n}}}')
        assert row_of(second, "p", "r") == {"N": n} and json.loads(get(part / "r.json")) == {"N": n}
    put(part / "temporary", '{"N":5}')
    os.rename(part / "temporary", part / "r.json")
    assert row_of(second, "p", "r") == {"N": 5} and json.loads(get(part / "r.json")) == {"N": 5}
    assert os.listdir(part) == ["r.json"]
    ok(second.client.replace("Posts", "p", "r", {"N": 6}))
    assert json.loads(get(part / "r.json")) == {"N": 6}
    (part / "waits.json").touch()
    ok(second.client.insert("Posts", {"PartitionKey": "p", "RowKey": "waits", "N": 7}))
    assert json.loads(get(part / "waits.json")) == {"N": 7}
    (part / "r.json").unlink()
    assert row_of(second, "p", "r") is None and os.listdir(part) == ["waits.json"]


def test_a_clock_ahead_breaks_no_change_of_a_name_that_waits(second):  # noqa: F811
    """The mount gave the name a time that is later than that of the row which takes its place."""
    ok(second.client.create_table("Posts"))
    part = second.mounted("cache=3600", **clock(60)) / "Posts/p"
    part.mkdir()
    for name in ("batch", "rename"):
        (part / f"{name}.json").touch()
    put(part / ".batch", lines([{"upsert": {"RowKey": "other", "N": 1}}, {"upsert": {"RowKey": "batch", "N": 2}}]))
    put(part / "temporary", '{"N":3}')
    os.rename(part / "temporary", part / "rename.json")
    os.rename(part / "other.json", part / "moved.json")
    (part / "target.json").touch()
    os.rename(part / "moved.json", part / "target.json")
    for key, n in (("batch", 2), ("rename", 3), ("target", 1)):
        assert row_of(second, "p", key) == {"N": n} == json.loads(get(part / f"{key}.json"))
    assert sorted(os.listdir(part)) == ["batch.json", "rename.json", "target.json"]


def test_a_row_with_an_empty_key_tells_nothing_of_the_others(there):  # noqa: F811
    ok(there.client.create_table("Posts"))
    for n in range(3):
        ok(there.client.insert("Posts", {"PartitionKey": "p", "RowKey": f"r{n}", "N": n}))
    part = there.mounted("cache=3600") / "Posts/p"
    put(part / "%_.json", '{"N":9}')
    assert row_of(there, "p", "") == {"N": 9}
    assert sorted(os.listdir(part)) == ["%_.json", "r0.json", "r1.json", "r2.json"]
    assert json.loads(get(part / "r1.json")) == {"N": 1}


def test_a_key_that_its_name_does_not_hold_is_in_the_document(posts):
    key = "k" * 300
    ok(posts.client.insert("Posts", {"PartitionKey": "p", "RowKey": key, "N": 1}))
    name, = os.listdir(posts.posts / "p")
    assert key not in name
    assert json.loads(get(posts.posts / "p" / name)) == {"PartitionKey": "p", "RowKey": key, "N": 1}
    put(posts.posts / "p" / name, json.dumps({"PartitionKey": "p", "RowKey": key, "N": 2}))
    assert row_of(posts, "p", key) == {"N": 2}


def test_ordinary_files_stay_when_their_table_is_deleted_elsewhere(posts):
    put(posts.posts / "p/notes.txt", "mine")
    ok(posts.client.delete_table("Posts"), 204)
    os.listdir(posts.path)
    assert get(posts.posts / "p/notes.txt") == b"mine"


def test_a_rename_within_a_partition_is_one_step(posts):
    part = posts.posts / "p"
    ok(posts.client.insert("Posts", {"PartitionKey": "p", "RowKey": "a", "L@odata.type": "Edm.Int64", "L": "5"}))
    put(part / "there.json", '{"Old":1}')
    number = os.stat(part / "a.json").st_ino
    os.rename(part / "a.json", part / "b.json")
    assert (row_of(posts, "p", "a"), row_of(posts, "p", "b")) == (None, {"L": "5"})
    assert os.stat(part / "b.json").st_ino == number
    with raises(errno.EEXIST):
        renameat2(part / "b.json", part / "there.json", NOREPLACE)
    assert row_of(posts, "p", "there") == {"Old": 1}
    os.rename(part / "b.json", part / "there.json")
    assert (row_of(posts, "p", "b"), row_of(posts, "p", "there")) == (None, {"L": "5"})
    assert os.listdir(part) == ["there.json"] and "Edm.Int64" in get(part / "there.json").decode()
    put(part / "there.json", '{"N":6}')
    assert row_of(posts, "p", "there") == {"N": 6}


def test_a_renamed_key_that_its_name_does_not_hold_is_rewritten(posts):
    part, key = posts.posts / "p", "k" * 300
    ok(posts.client.insert("Posts", {"PartitionKey": "p", "RowKey": key, "N": 1}))
    name, = os.listdir(part)
    os.rename(part / name, part / "short.json")
    assert (row_of(posts, "p", key), row_of(posts, "p", "short")) == (None, {"N": 1})
    assert json.loads(get(part / "short.json")) == {"N": 1}


def test_a_rename_takes_the_row_as_it_is_now(there):  # noqa: F811
    """What the mount shows is old, and the service refuses to delete that."""
    there.account("import", "Posts", input=numbered(1))
    part = there.mounted("cache=3600") / "Posts/p0"
    assert get(part / "000000.json") == b'{"N":0}\n'
    ok(there.client.replace("Posts", "p0", "000000", {"N": 77}))
    os.rename(part / "000000.json", part / "new.json")
    assert (row_of(there, "p0", "000000"), row_of(there, "p0", "new")) == (None, {"N": 77})


@pytest.mark.parametrize("fault", ["lost", "busy", "closed"])
def test_a_rename_whose_answer_was_lost_is_no_error(there_with, fault):  # noqa: F811
    t = there_with(f"fault={fault} op=entitygroup count=1")
    t.account("import", "Posts", input=numbered(1))
    part = t.mounted() / "Posts/p0"
    os.rename(part / "000000.json", part / "new.json")
    assert os.listdir(part) == ["new.json"] and json.loads(get(part / "new.json")) == {"N": 0}
    assert (row_of(t, "p0", "000000"), row_of(t, "p0", "new")) == (None, {"N": 0})


def test_mv_and_cp_move_rows_within_and_between_partitions(posts):
    part = posts.posts / "p"
    put(part / "a.json", '{"N":1}')
    (posts.posts / "q").mkdir()
    for source, target in (("p/a.json", "p/b.json"), ("p/b.json", "q/b.json")):
        subprocess.run(["mv", posts.posts / source, posts.posts / target], check=True)
    assert (row_of(posts, "p", "a"), row_of(posts, "p", "b"), row_of(posts, "q", "b")) == (None, None, {"N": 1})
    with raises(errno.EXDEV):
        os.rename(part, posts.posts / "r")
    shutil.copytree(posts.posts, posts.path / "Copy")
    assert ok(posts.client.get("Copy", "q", "b")).json["N"] == 1


def test_tables_are_made_and_removed(posts):
    table = posts.path / "Table"
    table.mkdir()
    ok(posts.client.insert("Table", {"PartitionKey": "p", "RowKey": "r"}))
    with raises(errno.ENOTEMPTY):
        table.rmdir()
    with raises(errno.EEXIST):
        table.mkdir()
    subprocess.run(["rm", "-r", table], check=True)
    assert [t["TableName"] for t in ok(posts.client.tables()).rows] == ["Posts"]
    with raises(errno.EPERM):
        (posts.path.parent / "other").mkdir()


@pytest.mark.parametrize("change", ["replace", "delete"])
def test_a_lost_update_is_ESTALE(there, change):  # noqa: F811
    """The mount's own answer is old: only the service's condition can tell."""
    there.account("import", "Posts", input=numbered(1))
    row = there.mounted("cache=3600") / "Posts/p0/000000.json"
    with raises(errno.ESTALE):
        with open(row, "r+") as f:
            f.read()
            if change == "replace":
                ok(there.client.replace("Posts", "p0", "000000", {"N": 77}))
            else:
                ok(there.client.delete("Posts", "p0", "000000"))
            f.seek(0)
            f.write('{"N":1}')
            f.truncate()
    assert row_of(there, "p0", "000000") == ({"N": 77} if change == "replace" else None)
    # The refusal made the mount ask anew.
    assert (get(row) == b'{"N":77}\n') if change == "replace" else not row.exists()


def test_the_last_close_of_a_new_name_wins_as_in_a_store(rowfs, mount, work, second):  # noqa: F811
    """Another client makes the row between the open and the close."""
    local = work / "local.rowfs"
    rowfs("init", local)
    add_accounts(rowfs, local)
    here = mount(local, "rest=127.0.0.1:0")
    for client, account in ((Client(here.port), here.path / ACCOUNT), (second.client, second.mounted("cache=3600"))):
        ok(client.create_table("Posts"))
        (account / "Posts/p").mkdir()
        with open(account / "Posts/p/new.json", "x") as f:
            ok(client.insert("Posts", {"PartitionKey": "p", "RowKey": "new", "N": 7}))
            f.write('{"N":1}')
        assert ok(client.get("Posts", "p", "new")).json["N"] == 1


@pytest.mark.parametrize("fault", ["lost", "busy", "closed"])
def test_a_fault_that_passes_is_no_error(there_with, fault):  # noqa: F811
    t = there_with(f"fault={fault} op=insert count=1")
    ok(t.client.create_table("Posts"))
    part = t.mounted() / "Posts/p"
    part.mkdir()
    put(part / "r.json", '{"N":1}')
    assert row_of(t, "p", "r") == {"N": 1} and get(part / "r.json") == b'{"N":1}'


def test_a_fault_that_stays_fails_the_close_and_nothing_is_shown(there_with):  # noqa: F811
    t = there_with("fault=busy op=insert")
    ok(t.client.create_table("Posts"))
    part = t.mounted("cache=0") / "Posts/p"
    part.mkdir()
    with raises(errno.EAGAIN):
        put(part / "r.json", '{"N":1}')
    assert "ServerBusy" in reason(part / "r.json")
    assert row_of(t, "p", "r") is None


def test_a_credential_that_may_only_read_refuses_changes(rowfs, second, rest_store):  # noqa: F811
    second.account("import", "Posts", input=numbered(1))
    sas = rowfs("sas", rest_store, "devstoreaccount1", "--permissions=rl", "--resource-types=sco", "--expiry=2999-01-01").stdout
    second.account.secret.write_text(
        f"TableEndpoint={second.account.url};SharedAccessSignature={sas.split('?', 1)[1].split()[0]}")
    row = second.mounted() / "Posts/p0/000000.json"
    assert get(row) == b'{"N":0}\n'
    with raises(errno.EACCES):
        row.unlink()
    assert row_of(second, "p0", "000000") == {"N": 0}


def test_a_batch_is_one_transaction(second):  # noqa: F811
    ok(second.client.create_table("Posts"))
    part = second.mounted("cache=3600") / "Posts/p"
    part.mkdir()
    put(part / "old.json", "{}")
    ops = [*({"insert": {"RowKey": str(i), "N": i}} for i in range(50)), {"delete": {"RowKey": "old"}}]
    assert second.cost(lambda: put(part / ".batch", lines(ops))) == 1
    assert [row_of(second, "p", str(i)) for i in range(50)] == [{"N": i} for i in range(50)]
    assert row_of(second, "p", "old") is None
    assert second.cost(lambda: get(part / "7.json")) == 0
    assert xattr(part / "7.json", "etag") == second.client.get("Posts", "p", "7").etag


def test_a_batch_that_is_refused_names_the_operation_and_changes_nothing(posts):
    ok(posts.client.insert("Posts", {"PartitionKey": "p", "RowKey": "1"}))
    with raises(errno.EEXIST):
        put(posts.posts / "p/.batch", lines([{"upsert": {"RowKey": "0"}}, {"insert": {"RowKey": "1"}}]))
    assert '"line":2' in posts.mount.log()
    assert row_of(posts, "p", "0") is None and os.listdir(posts.posts / "p") == ["1.json"]


MISSING = [{"merge": {"RowKey": "2", "N": 1}}, {"replace": {"RowKey": "2"}, "if_match": "*"}, {"delete": {"RowKey": "2"}}]


@pytest.mark.parametrize("op", MISSING, ids=lambda op: next(iter(op)))
def test_B2_a_missing_row_behind_another_operation_is_named(posts, op):
    part = posts.posts / "p"
    with raises(errno.ENOENT):
        put(part / ".batch", lines([{"upsert": {"RowKey": "0"}}, op]))
    told = json.loads(get(part / ".batch"))
    assert {k: told[k] for k in ("committed", "index", "line", "code", "status")} == {
        "committed": False, "index": 1, "line": 2, "code": "ResourceNotFound", "status": 404}
    assert row_of(posts, "p", "0") is None and os.listdir(part) == []


def test_a_batch_deletes_rows_that_the_mount_has_not_read(second):  # noqa: F811
    second.account("import", "Posts", input=numbered(3))
    part = second.mounted("cache=3600") / "Posts/p0"
    part.stat()
    ops = [{"delete": {"RowKey": f"{n:06}"}} for n in (0, 1)]
    assert second.cost(lambda: put(part / ".batch", lines([{"insert": {"RowKey": "new"}}, *ops]))) == 1
    assert sorted(os.listdir(part)) == ["000002.json", "new.json"]
    assert [row_of(second, "p0", f"{n:06}") for n in range(3)] == [None, None, {"N": 2}]


def test_a_batch_of_a_killed_writer_is_in_the_service_or_kept(posts):
    part, text = posts.posts / "p", lines([{"insert": {"RowKey": "1", "N": 1}}])
    script = ("import os, sys\nfd = os.open(sys.argv[1], os.O_WRONLY)\n"
              "os.write(fd, sys.argv[2].encode())\nos.kill(os.getpid(), 9)\n")
    subprocess.run([sys.executable, "-c", script, str(part / ".batch"), text])
    # The mount hears of the close after the writer has ended.
    wait_for(lambda: row_of(posts, "p", "1") or rejected(posts.mount.path))
    assert row_of(posts, "p", "1") == {"N": 1} or list(rejected(posts.mount.path).values()) == [text.encode()]


def test_a_check_of_a_batch_is_refused_and_changes_nothing(posts):
    with raises(errno.EOPNOTSUPP):
        put(posts.posts / "p/.batch-check", lines([{"upsert": {"RowKey": "0"}}, {"upsert": {"RowKey": "1"}}]))
    assert row_of(posts, "p", "0") is None and row_of(posts, "p", "1") is None


def test_a_batch_that_fits_no_request_blames_its_first_operation(second):  # noqa: F811
    """The mount merges, and sends whole rows of 1.4 MB."""
    ok(second.client.create_table("Posts"))
    for n in range(4):
        ok(second.client.insert("Posts", {"PartitionKey": "p", "RowKey": str(n),
                                          **{f"S{i}": "€" * 32000 for i in range(15)}}))
    part = second.mounted("cache=0") / "Posts/p"
    with raises(errno.EFBIG):
        put(part / ".batch", lines({"merge": {"RowKey": str(n), "N": 1}} for n in range(4)))
    assert '"line":1,' in second.mount.log()
    assert ok(second.client.get("Posts", "p", "0")).json.get("N") is None


def test_a_batch_whose_answer_was_lost_is_no_error(there_with):  # noqa: F811
    t = there_with("fault=lost op=entitygroup count=1")
    ok(t.client.create_table("Posts"))
    part = t.mounted() / "Posts/p"
    part.mkdir()
    put(part / ".batch", lines([{"insert": {"RowKey": str(i), "N": i}} for i in range(3)]))
    assert [row_of(t, "p", str(i)) for i in range(3)] == [{"N": i} for i in range(3)]
    assert xattr(part / "2.json", "etag") == t.client.get("Posts", "p", "2").etag


def test_a_change_costs_one_request_and_its_look_up_one(second):  # noqa: F811
    second.account("import", "Posts", input=numbered(1))
    part = second.mounted("cache=3600") / "Posts/p0"
    os.listdir(part)
    assert second.cost(lambda: put(part / "000000.json", '{"N":5}')) == 1
    assert second.cost(lambda: put(part / "new.json", '{"N":5}')) == 1
    assert second.cost(lambda: get(part / "new.json")) == 0
    assert second.cost((part / "new.json").unlink) == 1


def test_rows_written_to_a_stream_are_in_the_service(posts):
    put(posts.posts / ".rows.ndjson", numbered(250, partitions=2))
    assert len((posts.posts / ".rows.ndjson").read_text().splitlines()) == 250
    assert row_of(posts, "p1", "000249") == {"N": 249}


@pytest.mark.parametrize("change", ["rm", "edit", "batch"])
def test_a_row_of_this_mount_is_changed_before_any_row_was_read(there, change):  # noqa: F811
    """A fresh mount learns from its own answers whether the service's ETags have zeros at the end."""
    ok(there.client.create_table("Posts"))
    part = there.mounted("cache=3600") / "Posts/p"
    part.mkdir()
    for n in itertools.count():
        row = part / f"{n}.json"
        put(row, '{"N":1}')
        time = ok(there.client.get("Posts", "p", str(n))).json["Timestamp"]
        if time.endswith("0Z") or len(time) < len("2026-11-27T21:28:57.7733569Z"):
            break
    if change == "edit":
        with open(row, "r+") as f:
            f.read()
            f.seek(0)
            f.write('{"N":2}')
    elif change == "batch":  # nothing tries it again
        put(part / ".batch", lines([{"replace": {"RowKey": str(n), "N": 2}, "if_match": xattr(row, "etag")}]))
    else:
        row.unlink()
    assert row_of(there, "p", str(n)) == (None if change == "rm" else {"N": 2})
