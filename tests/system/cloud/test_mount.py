# SPDX-License-Identifier: MIT
"""An account elsewhere as a mount.  The service is a second rowfs or Azurite."""

import errno
import json
import os
import subprocess

import pytest
from issuer import unsigned
from rest_client import ACCOUNT, KEY, Client, ok
from tools import get, raises

from test_client import PROGRAM, serve_tls
from test_transfer import KEYS, TYPES, Elsewhere, lines, numbered, refused, without_times
from there import There, azurite, clock, second, there, there_with  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
def test_an_account_is_shown_as_directories_and_files(there):  # noqa: F811
    there.account("import", "Posts", input=lines({"PartitionKey": p, "RowKey": r, **TYPES} for p, r in KEYS))
    ok(there.client.create_table("Empty"))
    mnt = there.mounted()
    assert os.listdir(mnt.parent) == [ACCOUNT]
    assert sorted(os.listdir(mnt)) == ["Empty", "Posts"]
    assert os.listdir(mnt / "Empty") == []
    assert os.listdir(mnt / "Posts") == there.account("ls", "Posts").stdout.replace("/\n", "\n").splitlines()
    for partition in os.listdir(mnt / "Posts"):
        for name in os.listdir(mnt / "Posts" / partition):
            path = f"Posts/{partition}/{name}"
            assert get(mnt / path).decode() == there.account("get", path).stdout
    assert sum(len(files) for _, _, files in os.walk(mnt)) == len(KEYS)


def test_changes_elsewhere_are_seen_at_once_without_a_cache(there):  # noqa: F811
    there.account("import", "Posts", input=numbered(4, partitions=2))
    mnt = there.mounted("cache=0")
    row = mnt / "Posts/p0/000000.json"
    subprocess.run(["ls", "-lR", mnt], check=True, capture_output=True)
    assert json.loads(get(row)) == {"N": 0}
    ok(there.client.replace("Posts", "p0", "000000", {"N": 77}))
    assert json.loads(get(row)) == {"N": 77}
    ok(there.client.insert("Posts", {"PartitionKey": "p0", "RowKey": "new"}))
    assert sorted(os.listdir(row.parent)) == ["000000.json", "000002.json", "new.json"]
    for key in ("000000", "000002", "new"):
        ok(there.client.delete("Posts", "p0", key))
    with raises(errno.ENOENT):
        get(row)
    assert os.listdir(mnt / "Posts") == ["p1"]
    ok(there.client.insert("Posts", {"PartitionKey": "p2", "RowKey": "r"}))
    assert get(mnt / "Posts/p2/r.json") == b"{}\n"
    ok(there.client.delete_table("Posts"))
    assert not (mnt / "Posts").exists() and os.listdir(mnt) == []


def test_a_removed_row_that_is_made_again_is_another_one(there):  # noqa: F811
    there.account("import", "Posts", input=numbered(1))
    row = there.mounted("cache=0") / "Posts/p0/000000.json"
    with open(row) as held:
        ok(there.client.delete("Posts", "p0", "000000"))
        ok(there.client.insert("Posts", {"PartitionKey": "p0", "RowKey": "000000", "N": 5}))
        assert json.loads(get(row)) == {"N": 5}
        assert json.loads(held.read()) == {"N": 0}


def test_listings_of_any_size_come_in_the_order_of_their_keys(there):  # noqa: F811
    there.account("import", "Posts", input=numbered(2501))
    there.account("import", "Many", input=numbered(1300, partitions=1300))
    mnt = there.mounted()
    assert os.listdir(mnt / "Posts/p0") == [f"{i:06}.json" for i in range(2501)]
    assert os.listdir(mnt / "Many") == sorted(f"p{i}" for i in range(1300))


def test_each_tool_costs_few_requests(second):  # noqa: F811
    second.account("import", "Posts", input=numbered(1500) + lines([{"PartitionKey": "p1", "RowKey": "r"}]))
    mnt = second.mounted("cache=3600")
    assert second.cost(lambda: os.listdir(mnt)) == 1
    # A page of keys, and one behind each partition that fills it.
    assert second.cost(lambda: os.listdir(mnt / "Posts")) == 2
    assert second.cost(lambda: os.listdir(mnt / "Posts/p0")) == 2
    assert second.cost(lambda: get(mnt / "Posts/p1/r.json")) == 1
    assert second.cost(lambda: get(mnt / "Posts/p1/r.json")) == 0
    assert second.cost(lambda: subprocess.run(["grep", "-rc", "x", mnt], capture_output=True)) == 1
    assert second.cost(lambda: subprocess.run(["du", "-s", mnt], check=True, capture_output=True)) == 0


def test_what_is_read_ahead_is_what_the_service_has(there):  # noqa: F811
    """Partitions of all sizes.  After they were listed, rows and whole partitions come and go elsewhere."""
    sizes = {"a": 3, "b": 1, "c": 1, "d": 1200, "e": 2, "f": 1, "g": 1, "h": 4, "i": 1}
    there.account("import", "Posts", input=lines({"PartitionKey": p, "RowKey": f"{i:04}", "N": 1}
                                                 for p, n in sizes.items() for i in range(n)))
    mnt = there.mounted("cache=3600") / "Posts"
    assert os.listdir(mnt) == list(sizes)
    for p in sizes:  # so that the mount has old rows
        os.listdir(mnt / p)
    there.mount.umount()
    there.mount.start()
    assert os.listdir(mnt) == list(sizes)
    ok(there.client.delete("Posts", "c", "0000"))
    ok(there.client.delete("Posts", "h", "0002"))
    ok(there.client.replace("Posts", "d", "1100", {"N": 2}))
    for p in ("cc", "f"):
        ok(there.client.insert("Posts", {"PartitionKey": p, "RowKey": "new", "N": 1}))
    for p, n in sizes.items():
        names = [f"{i:04}.json" for i in range(n) if (p, i) not in (("c", 0), ("h", 2))]
        assert os.listdir(mnt / p) == [*names, *(["new.json"] if p == "f" else [])]
    assert json.loads(get(mnt / "d/1100.json")) == {"N": 2} and json.loads(get(mnt / "f/new.json")) == {"N": 1}


def test_queries_and_streams_read_the_account(there):  # noqa: F811
    there.account("import", "Posts", input=numbered(1200, partitions=3))
    mnt = there.mounted()
    assert len((mnt / "Posts/.rows.ndjson").read_text().splitlines()) == 1200
    assert sorted(os.listdir(mnt / "Posts/.query/N lt 3")) == ["p0", "p1", "p2"]
    assert get(mnt / "Posts/.query/N lt 5/p1/000004.json") == b'{"N":4}\n'


def test_a_mount_that_starts_again_shows_what_is_there_then(there):  # noqa: F811
    there.account("import", "Posts", input=numbered(2))
    mnt = there.mounted()
    assert os.listdir(mnt / "Posts/p0") == ["000000.json", "000001.json"]
    number = os.stat(mnt / "Posts/p0/000001.json").st_ino
    there.mount.umount()
    ok(there.client.delete("Posts", "p0", "000000"))
    there.mount.start()
    assert os.listdir(mnt / "Posts/p0") == ["000001.json"]
    assert os.stat(mnt / "Posts/p0/000001.json").st_ino == number


def test_a_local_file_without_its_account_is_finished(rowfs, second):  # noqa: F811
    """The mount that made it was killed before it added the account."""
    second.account("import", "Posts", input=numbered(1))
    second.mounted()
    second.mount.umount()
    local, = (second.work / "cache/rowfs").glob("*.rowfs")
    local.unlink()
    rowfs("init", local)
    second.mount.start()
    assert os.listdir(second.path / "Posts/p0") == ["000000.json"]


def test_a_read_only_mount_changes_nothing(there):  # noqa: F811
    there.account("import", "Posts", input=numbered(1))
    mnt = there.mounted("ro")
    row = mnt / "Posts/p0/000000.json"
    for change in (lambda: row.write_text("{}"), row.unlink, lambda: os.mkdir(mnt / "Table"),
                   lambda: os.chmod(row, 0o600)):
        with raises(errno.EROFS):
            change()
    assert without_times(there.account("export", "Posts").stdout) == without_times(numbered(1))


def test_a_service_that_is_away_is_an_error_and_its_return_is_noticed(second):  # noqa: F811
    second.account("import", "Posts", input=numbered(1))
    mnt = second.mounted("cache=0", "timeout=1")
    row = mnt / "Posts/p0/000000.json"
    assert json.loads(get(row)) == {"N": 0}
    second.account.server.stop()
    with raises(errno.EIO):
        get(row)
    assert "127.0.0.1" in second.mount.log() and KEY not in second.mount.log()


def test_a_refused_signature_is_EACCES(there):  # noqa: F811
    there.account("import", "Posts", input=numbered(1))
    there.account.secret.write_text(there.account.secret.read_text().replace(KEY, "A" * 8 + KEY[8:]))
    with raises(errno.EACCES):
        os.listdir(there.mounted())
    assert "AuthenticationFailed" in there.mount.log()


@pytest.mark.parametrize("minutes, text", [(20, "20 minutes ahead of"), (-20, "20 minutes behind")])
def test_a_clock_that_is_wrong_is_told_as_such(second, minutes, text):  # noqa: F811
    with raises(errno.EACCES):
        os.listdir(second.mounted(**clock(minutes * 60)))
    assert f"this machine's clock is {text} that of the service" in second.mount.log()


def test_a_mount_trusts_the_certificates_that_it_is_given(rowfs, serve, rest_store, mount, work):
    there = There(mount, Elsewhere(rowfs, serve_tls(serve, rest_store, work), work), work)  # noqa: F811
    with raises(errno.EACCES):
        os.listdir(there.mounted())
    assert "certificate" in there.mount.log()
    there.mount.umount()
    there.account("import", "Posts", f"--ca-file={work}/cert", input=numbered(1))
    assert os.listdir(there.mounted(f"ca-file={work}/cert")) == ["Posts"]


def test_a_token_file_that_is_away_refuses_and_hides_no_row(rowfs, serve, rest_store, mount, work):
    server = serve_tls(serve, rest_store, work, "--oauth=basic")
    there, token, trust = There(mount, Elsewhere(rowfs, server, work), work), work / "token", f"ca-file={work}/cert"  # noqa: F811
    there.account("import", "Posts", f"--{trust}", input=numbered(1))
    there.account.secret.write_text(f"TableEndpoint={there.account.url};BearerTokenFile={token}")
    token.touch(0o600)
    token.write_text(unsigned())
    table = there.mounted("cache=0", trust) / "Posts"
    row = table / "p0/000000.json"
    assert get(row) == b'{"N":0}\n'
    token.rename(work / "away")
    for act in (lambda: os.listdir(table), lambda: get(row), row.unlink):
        with raises(errno.EACCES):
            act()
    refused(there.account("query", "Posts", "--if-exists", f"--{trust}", check=False), "cannot read", str(token))
    (work / "away").rename(token)
    assert os.listdir(table) == ["p0"] and get(row) == b'{"N":0}\n'


def test_the_key_is_in_no_argument_and_no_file_that_others_read(second):  # noqa: F811
    second.mounted()
    with open(f"/proc/{second.mount.proc.pid}/cmdline") as f:
        assert KEY not in f.read()
    shadows = list((second.work / "cache/rowfs").iterdir())
    assert shadows and all(s.stat().st_mode & 0o77 == 0 for s in shadows)
    assert all(KEY.encode() not in s.read_bytes() for s in shadows if s.is_file())


@pytest.mark.parametrize("options, text", [
    ("rest=127.0.0.1:0", "rest= is for a store of this machine"),
    ("remount", "cannot be changed"),
    ("timeout=0", "is at least 1"),
    ("timeout=86401", "wants a number"),
    ("cache=86401", "wants a number"),
    ("max-rps=0", "is at least 1"),
    ("max-rps=1000001", "wants a number"),
    ("connection-string=/nowhere", "/nowhere"),
])
def test_a_mount_that_cannot_be_says_why(rowfs, second, options, text):  # noqa: F811
    target = second.work / "target"
    target.mkdir()
    done = rowfs("mount", second.account.url, target, "-o", options, check=False)
    assert done.returncode != 0 and text in done.stderr


def test_a_file_that_others_can_read_is_no_credential(rowfs, second):  # noqa: F811
    second.account.secret.chmod(0o640)
    done = rowfs("mount", second.account.url, second.work, "-o", f"connection-string={second.account.secret}",
                 check=False)
    assert done.returncode == 1 and "chmod 600" in done.stderr and KEY not in done.stderr


def test_options_of_a_url_are_refused_for_a_store(rowfs, store, work):
    done = rowfs("mount", store, work, "-o", "cache=5", check=False)
    assert done.returncode == 1 and "is for the URL of an account elsewhere" in done.stderr
