# SPDX-License-Identifier: MIT
"""An account elsewhere as a mount.  The service is a second rowfs, which counts the requests."""

import errno
import json
import os
import re
import subprocess
import urllib.request

import pytest
from rest_client import ACCOUNT, KEY, Client, ok
from tools import get, raises

from conftest import ENV
from test_client import PROGRAM
from test_transfer import KEYS, TYPES, Elsewhere, lines, numbered, without_times

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
COUNT = re.compile(r'^rowfs_operation_duration_seconds_count\{[^}]*front_end="rest"[^}]*\} (\d+)$', re.M)


class Url(str):
    """The source of such a mount: no store to check at the end."""

    def exists(self):
        return False


class There:
    """A service elsewhere, and its account as a mount: there.path is the account's directory."""

    def __init__(self, mount, account, work):
        self.make, self.account, self.work = mount, account, work
        self.client = Client(account.server.port)

    def mounted(self, *options, **env):
        cache = self.work / "cache"
        cache.mkdir(exist_ok=True)
        self.mount = self.make(Url(self.account.url), f"connection-string={self.account.secret}", *options,
                               env={**ENV, "XDG_CACHE_HOME": str(cache), **env})
        self.path = self.mount.path / ACCOUNT
        return self.path

    def requests(self):
        """How many requests the service has answered."""
        admin = self.account.server.endpoints[1]
        with urllib.request.urlopen(f"{admin}/metrics", timeout=60) as answer:
            return sum(int(n) for n in COUNT.findall(answer.read().decode()))

    def cost(self, act):
        """How many requests this costs."""
        before = self.requests()
        act()
        return self.requests() - before


@pytest.fixture
def there_with(rowfs, serve, mount, rest_store, work):
    """A factory: there_with("fault=busy ...") -> There."""
    def make(faults=None):
        server = serve(rest_store, "--rest=127.0.0.1:0", "--admin=127.0.0.1:0",
                       *([f"--faults={faults}"] if faults else []))
        return There(mount, Elsewhere(rowfs, server, work), work)
    return make


@pytest.fixture
def there(there_with):
    return there_with()


def test_an_account_is_shown_as_directories_and_files(there):
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


def test_changes_elsewhere_are_seen_at_once_without_a_cache(there):
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


def test_a_removed_row_that_is_made_again_is_another_one(there):
    there.account("import", "Posts", input=numbered(1))
    row = there.mounted("cache=0") / "Posts/p0/000000.json"
    with open(row) as held:
        ok(there.client.delete("Posts", "p0", "000000"))
        ok(there.client.insert("Posts", {"PartitionKey": "p0", "RowKey": "000000", "N": 5}))
        assert json.loads(get(row)) == {"N": 5}
        assert json.loads(held.read()) == {"N": 0}


def test_listings_of_any_size_come_in_the_order_of_their_keys(there):
    there.account("import", "Posts", input=numbered(2501))
    there.account("import", "Many", input=numbered(1300, partitions=1300))
    mnt = there.mounted()
    assert os.listdir(mnt / "Posts/p0") == [f"{i:06}.json" for i in range(2501)]
    assert os.listdir(mnt / "Many") == sorted(f"p{i}" for i in range(1300))


def test_each_tool_costs_few_requests(there):
    there.account("import", "Posts", input=numbered(1500) + lines([{"PartitionKey": "p1", "RowKey": "r"}]))
    mnt = there.mounted("cache=3600")
    assert there.cost(lambda: os.listdir(mnt)) == 1
    # A page of keys, and one behind each partition that fills it.
    assert there.cost(lambda: os.listdir(mnt / "Posts")) == 2
    assert there.cost(lambda: os.listdir(mnt / "Posts/p0")) == 2
    assert there.cost(lambda: get(mnt / "Posts/p1/r.json")) == 1
    assert there.cost(lambda: get(mnt / "Posts/p1/r.json")) == 0
    assert there.cost(lambda: subprocess.run(["grep", "-rc", "x", mnt], capture_output=True)) == 1
    assert there.cost(lambda: subprocess.run(["du", "-s", mnt], check=True, capture_output=True)) == 0


def test_queries_and_streams_read_the_account(there):
    there.account("import", "Posts", input=numbered(1200, partitions=3))
    mnt = there.mounted()
    assert len((mnt / "Posts/.rows.ndjson").read_text().splitlines()) == 1200
    assert sorted(os.listdir(mnt / "Posts/.query/N lt 3")) == ["p0", "p1", "p2"]
    assert get(mnt / "Posts/.query/N lt 5/p1/000004.json") == b'{"N":4}\n'


def test_a_mount_that_starts_again_shows_what_is_there_then(there):
    there.account("import", "Posts", input=numbered(2))
    mnt = there.mounted()
    assert os.listdir(mnt / "Posts/p0") == ["000000.json", "000001.json"]
    number = os.stat(mnt / "Posts/p0/000001.json").st_ino
    there.mount.umount()
    ok(there.client.delete("Posts", "p0", "000000"))
    there.mount.start()
    assert os.listdir(mnt / "Posts/p0") == ["000001.json"]
    assert os.stat(mnt / "Posts/p0/000001.json").st_ino == number


def test_a_read_only_mount_changes_nothing(there):
    there.account("import", "Posts", input=numbered(1))
    mnt = there.mounted("ro")
    row = mnt / "Posts/p0/000000.json"
    for change in (lambda: row.write_text("{}"), row.unlink, lambda: os.mkdir(mnt / "Table"),
                   lambda: os.chmod(row, 0o600)):
        with raises(errno.EROFS):
            change()
    assert without_times(there.account("export", "Posts").stdout) == without_times(numbered(1))


def test_a_service_that_is_away_is_an_error_and_its_return_is_noticed(there):
    there.account("import", "Posts", input=numbered(1))
    mnt = there.mounted("cache=0", "timeout=1")
    row = mnt / "Posts/p0/000000.json"
    assert json.loads(get(row)) == {"N": 0}
    there.account.server.stop()
    with raises(errno.EIO):
        get(row)
    assert "127.0.0.1" in there.mount.log() and KEY not in there.mount.log()


def test_a_refused_signature_is_EACCES(there):
    there.account("import", "Posts", input=numbered(1))
    there.account.secret.write_text(there.account.secret.read_text().replace(KEY, "A" * 8 + KEY[8:]))
    with raises(errno.EACCES):
        os.listdir(there.mounted())
    assert "AuthenticationFailed" in there.mount.log()


def test_the_key_is_in_no_argument_and_no_file_that_others_read(there):
    there.mounted()
    with open(f"/proc/{there.mount.proc.pid}/cmdline") as f:
        assert KEY not in f.read()
    shadows = list((there.work / "cache/rowfs").iterdir())
    assert shadows and all(s.stat().st_mode & 0o77 == 0 for s in shadows)
    assert all(KEY.encode() not in s.read_bytes() for s in shadows if s.is_file())


@pytest.mark.parametrize("options, text", [
    ("rest=127.0.0.1:0", "rest= is for a store of this machine"),
    ("remount", "cannot be changed"),
    ("timeout=0", "is at least 1"),
    ("timeout=86401", "wants a number"),
    ("cache=86401", "wants a number"),
    ("connection-string=/nowhere", "/nowhere"),
])
def test_a_mount_that_cannot_be_says_why(rowfs, there, options, text):
    target = there.work / "target"
    target.mkdir()
    done = rowfs("mount", there.account.url, target, "-o", options, check=False)
    assert done.returncode != 0 and text in done.stderr


def test_a_file_that_others_can_read_is_no_credential(rowfs, there):
    there.account.secret.chmod(0o640)
    done = rowfs("mount", there.account.url, there.work, "-o", f"connection-string={there.account.secret}",
                 check=False)
    assert done.returncode == 1 and "chmod 600" in done.stderr and KEY not in done.stderr


def test_options_of_a_url_are_refused_for_a_store(rowfs, store, work):
    done = rowfs("mount", store, work, "-o", "cache=5", check=False)
    assert done.returncode == 1 and "is for the URL of an account elsewhere" in done.stderr
