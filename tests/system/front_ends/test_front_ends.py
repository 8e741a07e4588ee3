# SPDX-License-Identifier: MIT
"""The two front ends agree: what one changes, the other sees at once, with the kernel's caches
full of what was before; the same mistakes are refused by both, each in its own language; and
writers through both front ends lose nothing of each other's.

ROWFS_FRONT_ENDS_STEPS=N takes N random steps instead of the same few hundred each time;
ROWFS_FRONT_ENDS_SEED=S those of a walk that failed.
"""

import contextlib
import errno
import json
import os
import random
import threading
import time

import pytest

from rest_client import (ACCOUNT, NONE, Client, entity_path, fails, moment, ok, parse_batch,
                         part_fails, quote_key)
from tools import get, put, raises, rows, xattr

STEPS = int(os.environ.get("ROWFS_FRONT_ENDS_STEPS", "0"))
SYSTEM = ("PartitionKey", "RowKey", "Timestamp")


class FrontEnds:
    """A mount and a client of its socket, and the table T in both."""

    def __init__(self, mount):
        self.mount = mount
        self.account = mount / ACCOUNT
        self.rest = Client(mount.port)

    def path(self, table, pk=None, rk=None):
        at = self.account / table
        if pk is not None:
            at = at / name(pk)
        return at if rk is None else at / f"{name(rk)}.json"

    def own(self, table, pk, rk):
        """The row's own properties over REST; None if there is none."""
        answer = self.rest.get(table, pk, rk, headers={"Accept": NONE})
        if answer.status == 404:
            return None
        return {k: v for k, v in ok(answer, 200).json.items() if k not in SYSTEM}


def name(key):
    """The file name of a key, of those that the tests use."""
    if key == "":
        return "%_"
    text = key.replace("%", "%25")
    return "%2E" + text[1:] if text.startswith(".") else text


@pytest.fixture
def front_ends(rest_mount, rest_store):
    d = FrontEnds(rest_mount(rest_store))
    ok(d.rest.create_table("Blogs"), 201)
    yield d
    d.rest.close()


def heat(*paths):
    """Fills the kernel's caches with all that can be known of these names: attributes,
    contents, listings, and that there is no such name."""
    for p in paths:
        for _ in range(2):
            with contextlib.suppress(OSError):
                os.stat(p)
            with contextlib.suppress(OSError):
                get(p)
            for d in (p, p.parent):
                with contextlib.suppress(OSError):
                    with os.scandir(d) as found:
                        for e in found:
                            e.stat()
                with contextlib.suppress(OSError):
                    os.stat(d / "no such name.json")


def seen(path):
    """What the mount shows of a row; all ways to look must agree.  None if there is none."""
    try:
        s = os.stat(path)
    except FileNotFoundError:
        with raises("ENOENT"):
            os.open(path, os.O_RDONLY)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            assert path.name not in os.listdir(path.parent)
        return None
    data = get(path)
    assert s.st_size == len(data) == os.stat(path).st_size
    assert os.listdir(path.parent).count(path.name) == 1
    return json.loads(data)


# ---- R13: changed over REST, seen through the mount


CHANGES = {
    "insert": (None, lambda r: r.insert("Blogs", {"PartitionKey": "p", "RowKey": "r", "A": 2}),
               {"A": 2}),
    "insert, quietly": (None, lambda r: r.insert(
        "Blogs", {"PartitionKey": "p", "RowKey": "r", "A": 2},
        {"Prefer": "return-no-content"}), {"A": 2}),
    "upsert of a new row": (None, lambda r: r.upsert("Blogs", "p", "r", {"A": 2}), {"A": 2}),
    "upsert": ({"A": 1, "B": 1}, lambda r: r.upsert("Blogs", "p", "r", {"A": 2}), {"A": 2}),
    "upsert merge": ({"A": 1, "B": 1}, lambda r: r.upsert_merge("Blogs", "p", "r", {"A": 2}),
                     {"A": 2, "B": 1}),
    "upsert merge of a new row": (None, lambda r: r.upsert_merge("Blogs", "p", "r", {"A": 2}),
                                  {"A": 2}),
    "replace": ({"A": 1, "B": 1}, lambda r: r.replace("Blogs", "p", "r", {"A": 2}), {"A": 2}),
    "replace, longer": ({"A": 1}, lambda r: r.replace("Blogs", "p", "r", {"A": "x" * 9000}),
                        {"A": "x" * 9000}),
    "replace, shorter": ({"A": "x" * 9000}, lambda r: r.replace("Blogs", "p", "r", {}), {}),
    "replace, same length": ({"A": 1}, lambda r: r.replace("Blogs", "p", "r", {"A": 2}),
                             {"A": 2}),
    "merge": ({"A": 1, "B": 1}, lambda r: r.merge("Blogs", "p", "r", {"A": 2}),
              {"A": 2, "B": 1}),
    "delete": ({"A": 1}, lambda r: r.delete("Blogs", "p", "r"), None),
    "insert in a batch": (None, lambda r: r.batch([
        ("POST", "Blogs", {}, {"PartitionKey": "p", "RowKey": "r", "A": 2})]), {"A": 2}),
    "change in a batch": ({"A": 1}, lambda r: r.batch([
        ("PUT", entity_path("Blogs", "p", "s"), {}, {}),
        ("PUT", entity_path("Blogs", "p", "r"), {"If-Match": "*"}, {"A": 2})]), {"A": 2}),
    "delete in a batch": ({"A": 1}, lambda r: r.batch([
        ("DELETE", entity_path("Blogs", "p", "r"), {"If-Match": "*"}, None)]), None),
    "a batch that fails": ({"A": 1}, lambda r: r.batch([
        ("PUT", entity_path("Blogs", "p", "r"), {}, {"A": 2}),
        ("PUT", entity_path("Blogs", "p", "none"), {"If-Match": "*"}, {})]), {"A": 1}),
    "an insert that fails": ({"A": 1}, lambda r: r.insert(
        "Blogs", {"PartitionKey": "p", "RowKey": "r"}), {"A": 1}),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_R13_a_change_over_rest_is_seen_at_once(front_ends, kind):
    before, change, after = CHANGES[kind]
    path = front_ends.path("Blogs", "p", "r")
    for neighbour in (False, True):  # in a partition that this row alone makes, and in one not
        for round_ in range(6):
            front_ends.rest.delete("Blogs", "p", "r")
            front_ends.rest.delete("Blogs", "p", "s")
            if neighbour:
                ok(front_ends.rest.upsert("Blogs", "p", "n", {}), 204)
            if before is not None:
                ok(front_ends.rest.upsert("Blogs", "p", "r", before), 204)
            heat(path, front_ends.path("Blogs", "p", "s"), front_ends.path("Blogs", "p"))
            assert seen(path) == before
            table_mtime = os.stat(front_ends.path("Blogs")).st_mtime_ns
            old = os.stat(path) if before is not None else None
            reader = open(path, "rb") if before is not None and round_ % 2 else None
            answer = change(front_ends.rest)
            # The very first look decides; each round begins with another one.
            first = round_ % 5
            if first == 0:
                assert os.path.exists(path) == (after is not None)
            elif first == 1 and after is not None:
                assert json.loads(get(path)) == after
            elif first == 2 and path.parent.exists():
                assert ("r.json" in os.listdir(path.parent)) == (after is not None)
            elif first == 3 and after is not None:
                assert os.stat(path).st_size == len(get(path))
            elif first == 4:
                with contextlib.suppress(FileNotFoundError):
                    assert os.stat(path) and after is not None
            assert seen(path) == after
            assert front_ends.own("Blogs", "p", "r") == after
            if reader:  # who had it open reads on what was there
                assert json.loads(reader.read()) == before
                reader.close()
            if after is not None:
                s, etag = os.stat(path), front_ends.rest.get("Blogs", "p", "r").etag
                assert xattr(path, "etag") == etag
                if old and after != before:
                    assert s.st_ino == old.st_ino and s.st_mtime_ns > old.st_mtime_ns
                if answer.etag and answer.status in (201, 204):
                    assert answer.etag == etag
            if before is None and not neighbour:
                assert os.stat(front_ends.path("Blogs")).st_mtime_ns > table_mtime
                assert rows(front_ends.path("Blogs")) == ["p"]
            if after is None and not neighbour:
                # A partition that only REST knew goes with its last row.
                assert rows(front_ends.path("Blogs")) == []
                assert not path.parent.exists()
        front_ends.rest.delete("Blogs", "p", "n")


def test_R13_tables_made_and_removed_over_rest(front_ends):
    there = front_ends.account / "Fresh"
    for round_ in range(6):
        heat(there, there / "p", front_ends.account)
        assert not there.exists() and "Fresh" not in rows(front_ends.account)
        ok(front_ends.rest.create_table("Fresh"), 201)
        if round_ % 2:
            assert rows(front_ends.account) == ["Blogs", "Fresh"]
        assert os.stat(there).st_nlink == 1 and rows(there) == []
        ok(front_ends.rest.insert("Fresh", {"PartitionKey": "p", "RowKey": "r", "N": round_}), 201)
        assert get(there / "p" / "r.json") == b'{"N":%d}\n' % round_
        heat(there, there / "p", there / "p" / "r.json")
        ok(front_ends.rest.delete_table("Fresh"), 204)
        if round_ % 2:
            with raises("ENOENT"):
                get(there / "p" / "r.json")
        assert not there.exists() and rows(front_ends.account) == ["Blogs"]
        assert not (there / "p").exists()


def test_R13_what_a_rest_row_reads_as(front_ends):
    """Compact JSON on one line, own properties only: and it can be changed by a file tool."""
    sent = {"PartitionKey": "p", "RowKey": "r", "S": "x é", "N@odata.type": "Edm.Int64",
            "N": "5", "D": 1.5, "T": True, "G@odata.type": "Edm.Guid",
            "G": "c9da6455-213d-42c9-9a79-3e9149a57833"}
    ok(front_ends.rest.insert("Blogs", sent), 201)
    path = front_ends.path("Blogs", "p", "r")
    text = get(path)
    assert text.endswith(b"}\n") and text.count(b"\n") == 1 and b": " not in text
    own = {k: v for k, v in sent.items() if k not in SYSTEM}
    assert json.loads(text) == own
    put(path, text)  # what was read can be written, and is the same row
    have = front_ends.rest.get("Blogs", "p", "r").json
    assert {k: v for k, v in have.items() if k in own} == own
    # The bytes of a file stay until another front end changes the row.
    put(path, '{ "A" : 1.50 }')
    assert front_ends.own("Blogs", "p", "r") == {"A": 1.5}
    assert get(path) == b'{ "A" : 1.50 }'
    ok(front_ends.rest.merge("Blogs", "p", "r", {"B": 2}), 204)
    assert get(path) == b'{"A":1.5,"B":2}\n'


# ---- R14: changed through the mount, seen over REST


def rest_rows(front_ends, table="Blogs"):
    return {(r["PartitionKey"], r["RowKey"]): {k: v for k, v in r.items() if k not in SYSTEM}
            for r in front_ends.rest.query(table, headers={"Accept": NONE}).rows}


def test_R14_a_change_through_the_mount_is_seen_at_once(front_ends):
    table = front_ends.account / "Blogs"
    (table / "p").mkdir()
    assert rest_rows(front_ends) == {}
    etags = []

    def expect(want):
        assert rest_rows(front_ends) == want
        for key in {("p", "a"), ("p", "b"), ("q", "a"), *want}:
            assert front_ends.own("Blogs", *key) == want.get(key), key
            found = front_ends.rest.query("Blogs", headers={"Accept": NONE}, filter=(
                f"PartitionKey eq '{key[0]}' and RowKey eq '{key[1]}'")).rows
            assert len(found) == (key in want)

    put(table / "p/a.json", '{"A":1}')
    expect({("p", "a"): {"A": 1}})
    etags.append(front_ends.rest.get("Blogs", "p", "a").etag)
    put(table / "p/a.json", '{"A":2,"B":"x"}')
    expect({("p", "a"): {"A": 2, "B": "x"}})
    etags.append(front_ends.rest.get("Blogs", "p", "a").etag)
    put(table / "p/tmp", '{"A":3}')
    put(table / "p/.hidden", "bytes")
    expect({("p", "a"): {"A": 2, "B": "x"}})  # ordinary files are no rows
    os.rename(table / "p/tmp", table / "p/a.json")
    expect({("p", "a"): {"A": 3}})
    etags.append(front_ends.rest.get("Blogs", "p", "a").etag)
    os.rename(table / "p/a.json", table / "p/b.json")
    expect({("p", "b"): {"A": 3}})
    (table / "q").mkdir()
    expect({("p", "b"): {"A": 3}})
    os.rename(table / "p/b.json", table / "q/a.json")
    expect({("q", "a"): {"A": 3}})
    put(table / "q/b.json", '{"B":1}')
    put(table / "q/empty.json", "")  # no row yet
    expect({("q", "a"): {"A": 3}, ("q", "b"): {"B": 1}})
    os.unlink(table / "q/empty.json")
    os.rmdir(table / "p") if not os.listdir(table / "p") else os.unlink(table / "p/.hidden")
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(table / "p")
    os.rename(table / "q", table / "z")
    expect({("z", "a"): {"A": 3}, ("z", "b"): {"B": 1}})
    os.rename(table, front_ends.account / "Renamed")
    fails(front_ends.rest.query("Blogs"), 404, "TableNotFound")
    assert rest_rows(front_ends, "Renamed") == {("z", "a"): {"A": 3}, ("z", "b"): {"B": 1}}
    assert [r["TableName"] for r in front_ends.rest.tables().rows] == ["Renamed"]
    os.rename(front_ends.account / "Renamed", table)
    os.unlink(table / "z/a.json")
    expect({("z", "b"): {"B": 1}})
    os.rename(table / "z/b.json", table / "z/plain")  # a row that becomes a file is no row
    expect({})
    os.unlink(table / "z/plain")
    os.rmdir(table / "z")
    (front_ends.account / "Second").mkdir()
    assert [r["TableName"] for r in front_ends.rest.tables().rows] == ["Blogs", "Second"]
    fails(front_ends.rest.create_table("Second"), 409, "TableAlreadyExists")
    os.rmdir(front_ends.account / "Second")
    fails(front_ends.rest.request("GET", "Tables('Second')"), 404, "ResourceNotFound")
    assert len(set(etags)) == 3 and etags == sorted(etags, key=moment)


def test_R14_an_account_made_by_mkdir_is_served(front_ends, rowfs):
    (front_ends.mount / "fresh1").mkdir()
    keys = [w for w in rowfs("account", "keys", front_ends.mount.store, "fresh1").stdout.split()
            if len(w) == 44 and w.endswith("=")]
    with Client(front_ends.mount.port, "fresh1", keys[0]) as c:
        ok(c.create_table("Tab"), 201)
        assert rows(front_ends.mount / "fresh1") == ["Tab"]
        os.rmdir(front_ends.mount / "fresh1/Tab")
        os.rmdir(front_ends.mount / "fresh1")
        fails(c.tables(), (403, 404), ("AuthenticationFailed", "ResourceNotFound"))


def test_R14_a_write_is_seen_when_close_returned_and_not_before(front_ends):
    path = front_ends.path("Blogs", "p", "r")
    ok(front_ends.rest.insert("Blogs", {"PartitionKey": "p", "RowKey": "r", "A": 1}), 201)
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b'{"A":')
    assert front_ends.own("Blogs", "p", "r") == {"A": 1}
    os.write(fd, b"2}")
    assert front_ends.own("Blogs", "p", "r") == {"A": 1}
    os.close(fd)
    assert front_ends.own("Blogs", "p", "r") == {"A": 2}


# ---- R15: the same mistakes


def file_error(call, *args):
    try:
        call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
    return None


def test_R15_error_pairs(front_ends):
    """One list of errors: each as an errno here and as a status and code there."""
    r, table = front_ends.rest, front_ends.account / "Blogs"
    ok(r.insert("Blogs", {"PartitionKey": "p", "RowKey": "r", "A": 1}), 201)
    path = table / "p/r.json"

    # 404 and ENOENT
    fails(r.get("Blogs", "p", "none"), 404, "ResourceNotFound")
    assert file_error(get, table / "p/none.json") == "ENOENT"
    fails(r.delete("Blogs", "p", "none"), 404, "ResourceNotFound")
    assert file_error(os.unlink, table / "p/none.json") == "ENOENT"
    fails(r.query("Nosuch"), 404, "TableNotFound")
    assert file_error(os.listdir, front_ends.account / "Nosuch") == "ENOENT"
    fails(r.delete_table("Nosuch"), 404, "ResourceNotFound")
    assert file_error(os.rmdir, front_ends.account / "Nosuch") == "ENOENT"

    # 409 and EEXIST
    fails(r.insert("Blogs", {"PartitionKey": "p", "RowKey": "r"}), 409, "EntityAlreadyExists")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    assert file_error(os.open, path, flags) == "EEXIST"
    fails(r.create_table("Blogs"), 409, "TableAlreadyExists")
    fails(r.create_table("BLOGS"), 409, "TableAlreadyExists")
    assert file_error(os.mkdir, table) == "EEXIST"
    assert file_error(os.mkdir, front_ends.account / "BLOGS") == "EEXIST"

    # 412 and ESTALE
    etag = r.get("Blogs", "p", "r").etag
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b'{"A":5}\n', 0)
    ok(r.replace("Blogs", "p", "r", {"A": 2}), 204)
    assert file_error(os.close, fd) == "ESTALE"
    fails(r.replace("Blogs", "p", "r", {"A": 9}, etag), 412, "UpdateConditionNotSatisfied")
    tmp = path.with_name("tmp")
    put(tmp, '{"A":3}')
    os.setxattr(tmp, "user.rowfs.if_match", etag.encode())
    assert file_error(os.rename, tmp, path) == "ESTALE"
    fails(r.delete("Blogs", "p", "r", etag), 412, "UpdateConditionNotSatisfied")
    os.setxattr(tmp, "user.rowfs.if_match", r.get("Blogs", "p", "r").etag.encode())
    os.rename(tmp, path)

    # 400 and EINVAL, E2BIG, EFBIG: what a document may not be.  The code of the service is
    # in the file's reason too.
    for row, code, number in (
            ({"a-b": 1}, "PropertyNameInvalid", "EINVAL"),
            ({"a" * 256: 1}, "PropertyNameTooLong", "EINVAL"),
            ({"A": "x" * 32769}, "PropertyValueTooLarge", "EINVAL"),
            ({f"p{i}": i for i in range(253)}, "TooManyProperties", "E2BIG"),
            ({f"p{i:02}": "x" * 32000 for i in range(17)}, "EntityTooLarge", "EFBIG"),
            ({"A@odata.type": "Edm.Int32", "A": "x"}, "InvalidInput", "EINVAL"),
            ({"A@odata.type": "Edm.Nothing", "A": "x"}, "InvalidInput", "EINVAL"),
            ({"A": [1]}, "InvalidInput", "EINVAL"),
            ({"A": {"B": 1}}, "InvalidInput", "EINVAL"),
            ({"RowKey": "other"}, "InvalidInput", "EINVAL")):
        fails(r.replace("Blogs", "p", "r", row), 400, code)
        assert file_error(put, path, json.dumps(row)) == number, code
        assert code in xattr(path, "error"), code
    for text, code in (('{"A":1,"A":2}', "DuplicatePropertiesSpecified"), ("{bad", "InvalidInput"),
                       ("[]", "InvalidInput"), ('{"A":', "InvalidInput")):
        fails(r.request("PUT", entity_path("Blogs", "p", "r"), text), 400, code)
        assert file_error(put, path, text) == "EINVAL"
        assert code in xattr(path, "error")
    assert front_ends.own("Blogs", "p", "r") == {"A": 3} == seen(path)

    # 413 and EFBIG
    with Client(front_ends.mount.port) as big, contextlib.suppress(ConnectionError):
        fails(big.request("PUT", entity_path("Blogs", "p", "r"), b"{" + b" " * (5 << 20) + b"}"),
              413, "RequestBodyTooLarge")
    assert file_error(put, path, "{" + " " * (5 << 20) + "}") == "EFBIG"

    # Keys and names that may not be: 400, and EINVAL or a length
    for key in ("a\\b", "a#b", "a?b", "a\tb"):
        fails(r.insert("Blogs", {"PartitionKey": "p", "RowKey": key}), 400, "OutOfRangeInput")
        assert file_error(put, table / f"p/{key}.json", "{}") == "EINVAL", key
    for table_name, code, number in (("a-b", "InvalidResourceName", "EINVAL"),
                                     ("ab", "OutOfRangeInput", "EINVAL"),
                                     ("a" * 64, "OutOfRangeInput", "ENAMETOOLONG"),
                                     ("1abc", "InvalidResourceName", "EINVAL")):
        fails(r.create_table(table_name), 400, code)
        assert file_error(os.mkdir, front_ends.account / table_name) == number
    assert rest_rows(front_ends) == {("p", "r"): {"A": 3}}
    assert rows(table / "p") == ["r.json"]


def test_R15_a_read_only_store_refuses_both(rest_mount, rest_store):
    m = rest_mount(rest_store)
    with Client(m.port) as c:
        ok(c.create_table("Blogs"), 201)
        ok(c.insert("Blogs", {"PartitionKey": "p", "RowKey": "r", "A": 1}), 201)
    m.umount()
    m.options.append("ro")
    m.start()
    with Client(m.port) as c:
        assert ok(c.get("Blogs", "p", "r"), 200).json["A"] == 1
        for answer in (c.insert("Blogs", {"PartitionKey": "p", "RowKey": "s"}),
                       c.replace("Blogs", "p", "r", {}), c.delete("Blogs", "p", "r"),
                       c.create_table("Other"), c.delete_table("Blogs")):
            fails(answer, 403, "AuthorizationFailure")
        (part,) = parse_batch(c.batch([("POST", "Blogs", {}, {"PartitionKey": "p",
                                                              "RowKey": "s"})]))
        part_fails(part, 403, "AuthorizationFailure")
        assert file_error(put, m / ACCOUNT / "Blogs/p/r.json", "{}") == "EROFS"
        assert rows(m / ACCOUNT / "Blogs/p") == ["r.json"]


# ---- a random walk through both front ends


KEYS = ["", "a", "b", "é", "a%b", ".x", "a b'c"]
TABLES = ["Alpha", "Beta"]


class Walk:
    """Both front ends against {table: {(pk, rk): row}}."""

    def __init__(self, front_ends, seed):
        self.front_ends, self.seed, self.rng = front_ends, seed, random.Random(seed)
        self.trace = []
        self.model = {}
        self.made = {}  # directories that stay while they are empty: {table: {pk}}
        self.etags = {}
        self.used = set()
        self.counter = 0
        ok(front_ends.rest.delete_table("Blogs"), 204)

    def row(self):
        self.counter += 1
        return {"N": self.counter, **({"S": "x" * self.rng.choice([1, 5, 3000])}
                                      if self.rng.random() < 0.5 else {})}

    def pick(self):
        return (self.rng.choice(TABLES), self.rng.choice(KEYS[:5]), self.rng.choice(KEYS))

    def find(self, t, pk, rk):
        return self.model.get(t, {}).get((pk, rk))

    def has_partition(self, t, pk):
        return pk in self.made.get(t, ()) or any(k[0] == pk for k in self.model.get(t, ()))

    def gone(self, t, pk, rk, by_mount):
        """A row went: where it was the last one, its directory stays if it was the mount's
        doing, or if somebody had made it."""
        del self.model[t][pk, rk]
        if by_mount and not any(k[0] == pk for k in self.model[t]):
            self.made[t].add(pk)
        self.etags.pop((t, pk, rk), None)

    # REST

    def rest_insert(self, t, pk, rk):
        row = self.row()
        answer = self.front_ends.rest.insert(t, {"PartitionKey": pk, "RowKey": rk, **row})
        if t not in self.model:
            fails(answer, 404, "TableNotFound")
        elif self.find(t, pk, rk) is not None:
            fails(answer, 409, "EntityAlreadyExists")
        else:
            ok(answer, 201)
            self.model[t][pk, rk] = row

    def rest_change(self, t, pk, rk):
        r, row = self.front_ends.rest, self.row()
        kind = self.rng.choice(["PUT", "PATCH", "MERGE"])
        have = self.find(t, pk, rk)
        stale = self.etags.get((t, pk, rk))
        condition = self.rng.choice([None, "*", stale or "*", 'W/"old"'])
        fresh = r.get(t, pk, rk).etag if have is not None else None
        answer = r.change(kind, t, pk, rk, row, condition)
        if t not in self.model:
            return fails(answer, 404, "TableNotFound")
        if have is None and condition is not None:
            return fails(answer, 404, "ResourceNotFound")
        if condition not in (None, "*", fresh):
            return fails(answer, 412, "UpdateConditionNotSatisfied")
        ok(answer, 204)
        if fresh is not None:
            assert moment(answer.etag) > moment(fresh) and answer.etag not in self.used
        self.used.add(answer.etag)
        self.etags[t, pk, rk] = answer.etag
        self.model[t][pk, rk] = row if kind == "PUT" else {**(have or {}), **row}

    def rest_delete(self, t, pk, rk):
        answer = self.front_ends.rest.delete(t, pk, rk)
        if t not in self.model:
            fails(answer, 404, "TableNotFound")
        elif self.find(t, pk, rk) is None:
            fails(answer, 404, "ResourceNotFound")
        else:
            ok(answer, 204)
            self.gone(t, pk, rk, by_mount=False)

    def rest_batch(self, t, pk, _):
        ops, after, bad = [], dict(self.model.get(t, {})), None
        for i, rk in enumerate(self.rng.sample(KEYS, 4)):
            row, path = self.row(), entity_path(t, pk, rk)
            kind = self.rng.choice(["insert", "upsert", "upsert", "merge", "delete"])
            there = (pk, rk) in after
            if kind == "insert":
                ops.append(("POST", t, {}, {"PartitionKey": pk, "RowKey": rk, **row}))
                bad = (i, 409) if there and bad is None else bad
            elif kind == "upsert":
                ops.append(("PUT", path, {}, row))
            else:
                ops.append((kind.upper(), path, {"If-Match": "*"},
                            row if kind == "merge" else None))
                bad = (i, 404) if not there and bad is None else bad
            if kind == "delete":
                after.pop((pk, rk), None)
            else:
                after[pk, rk] = {**(after.get((pk, rk), {}) if kind == "merge" else {}), **row}
        parts = parse_batch(self.front_ends.rest.batch(ops))
        if t not in self.model:
            assert len(parts) == 1
            return part_fails(parts[0], 404, "TableNotFound")
        if bad:
            assert len(parts) == 1 and parts[0].status == bad[1], (parts, bad)
            assert parts[0].message.startswith(f"{bad[0]}:")
            return None
        assert len(parts) == 4 and all(p.status in (201, 204) for p in parts)
        self.model[t] = after
        return None

    def rest_create_table(self, t, *_):
        answer = self.front_ends.rest.create_table(t)
        if t in self.model:
            fails(answer, 409, "TableAlreadyExists")
        else:
            ok(answer, 201)
            self.model[t], self.made[t] = {}, set()

    def rest_delete_table(self, t, *_):
        if self.rng.random() < 0.7:
            return
        answer = self.front_ends.rest.delete_table(t)
        if t not in self.model:
            fails(answer, 404, "ResourceNotFound")
        else:
            ok(answer, 204)
            self.drop_table(t)

    def drop_table(self, t):
        del self.model[t], self.made[t]
        self.etags = {k: v for k, v in self.etags.items() if k[0] != t}

    # the mount

    def file_write(self, t, pk, rk):
        row, path = self.row(), self.front_ends.path(t, pk, rk)
        number = file_error(put, path, json.dumps(row))
        if not self.has_partition(t, pk):
            assert number == "ENOENT"
        else:
            assert number is None
            self.model[t][pk, rk] = row

    def file_move_over(self, t, pk, rk):
        row, path = self.row(), self.front_ends.path(t, pk, rk)
        if not self.has_partition(t, pk):
            return
        put(path.parent / "tmp", json.dumps(row))
        os.rename(path.parent / "tmp", path)
        self.model[t][pk, rk] = row

    def file_unlink(self, t, pk, rk):
        number = file_error(os.unlink, self.front_ends.path(t, pk, rk))
        if self.find(t, pk, rk) is None:
            assert number == "ENOENT"
        else:
            assert number is None
            self.gone(t, pk, rk, by_mount=True)

    def file_rename(self, t, pk, rk):
        t2, pk2, rk2 = self.pick()
        number = file_error(os.rename, self.front_ends.path(t, pk, rk), self.front_ends.path(t2, pk2, rk2))
        row = self.find(t, pk, rk)
        if row is None or not self.has_partition(t2, pk2):
            assert number == "ENOENT"
        else:
            assert number is None
            if (t, pk, rk) != (t2, pk2, rk2):
                self.gone(t, pk, rk, by_mount=True)
                self.model[t2][pk2, rk2] = row

    def mkdir_partition(self, t, pk, _):
        number = file_error(os.mkdir, self.front_ends.path(t, pk))
        if t not in self.model:
            assert number == "ENOENT"
        elif self.has_partition(t, pk):
            assert number == "EEXIST"
        else:
            assert number is None
            self.made[t].add(pk)

    def rmdir_partition(self, t, pk, _):
        number = file_error(os.rmdir, self.front_ends.path(t, pk))
        if not self.has_partition(t, pk):
            assert number == "ENOENT"
        elif any(k[0] == pk for k in self.model[t]):
            assert number == "ENOTEMPTY"
        else:
            assert number is None
            self.made[t].discard(pk)

    def rename_partition(self, t, pk, _):
        other = self.rng.choice(KEYS[:5])
        number = file_error(os.rename, self.front_ends.path(t, pk), self.front_ends.path(t, other))
        if not self.has_partition(t, pk):
            assert number == "ENOENT"
        elif other == pk:
            assert number is None
        elif any(k[0] == other for k in self.model[t]):
            assert number in ("ENOTEMPTY", "EEXIST")
        else:
            assert number is None
            for key in [k for k in self.model[t] if k[0] == pk]:
                self.model[t][other, key[1]] = self.model[t].pop(key)
                self.etags.pop((t, *key), None)
            made = pk in self.made[t]
            self.made[t] -= {pk, other}
            if made:
                self.made[t].add(other)

    def mkdir_table(self, t, *_):
        number = file_error(os.mkdir, self.front_ends.path(t))
        assert number == ("EEXIST" if t in self.model else None)
        if number is None:
            self.model[t], self.made[t] = {}, set()

    def rmdir_table(self, t, *_):
        number = file_error(os.rmdir, self.front_ends.path(t))
        if t not in self.model:
            assert number == "ENOENT"
        elif self.model[t] or self.made[t]:
            assert number == "ENOTEMPTY"
        else:
            assert number is None
            self.drop_table(t)

    # both views

    def compare(self):
        d = self.front_ends
        assert [r["TableName"] for r in d.rest.tables().rows] == sorted(self.model)
        assert os.listdir(d.account) == sorted(self.model)
        for t in TABLES:
            if t not in self.model:
                fails(d.rest.query(t), 404, "TableNotFound")
                assert not d.path(t).exists()
                continue
            want = sorted(self.model[t].items(), key=lambda i: [
                k.encode("utf-16-be") for k in i[0]])
            answer = ok(d.rest.query(t), 200)
            have = [((r["PartitionKey"], r["RowKey"]), {
                k: v for k, v in r.items() if not k.startswith("odata.") and k not in SYSTEM})
                for r in answer.rows]
            assert have == want
            etags = {(r["PartitionKey"], r["RowKey"]): r["odata.etag"] for r in answer.rows}
            partitions = sorted({k[0] for k in self.model[t]} | self.made[t],
                                key=lambda k: k.encode("utf-16-be"))
            assert os.listdir(d.path(t)) == [name(p) for p in partitions]
            for pk in partitions:
                listed = os.listdir(d.path(t, pk))
                assert listed == [f"{name(rk)}.json" for (p, rk), _ in want if p == pk]
            for (pk, rk), row in want:
                path = d.path(t, pk, rk)
                data = get(path)
                assert json.loads(data) == row and os.stat(path).st_size == len(data)
                assert xattr(path, "etag") == etags[pk, rk]
        t, pk, rk = self.pick()
        assert d.own(t, pk, rk) == self.find(t, pk, rk)
        assert d.path(t, pk, rk).exists() == (self.find(t, pk, rk) is not None)

    def step(self):
        kinds = [self.rest_insert, self.rest_insert, self.rest_change, self.rest_change,
                 self.rest_delete, self.rest_batch, self.rest_create_table,
                 self.rest_delete_table, self.file_write, self.file_write, self.file_move_over,
                 self.file_unlink, self.file_rename, self.mkdir_partition, self.mkdir_partition,
                 self.rmdir_partition, self.rename_partition, self.mkdir_table,
                 self.rmdir_table]
        kind, where = self.rng.choice(kinds), self.pick()
        self.trace.append(f"{kind.__name__}{where}")
        try:
            kind(*where)
            self.compare()
        except BaseException as e:
            raise AssertionError(f"seed {self.seed}, step {len(self.trace)}: {type(e).__name__}: "
                                 f"{e}; the last steps: {'; '.join(self.trace[-12:])}") from e


@pytest.mark.parametrize("seed", range(4) if not STEPS else [None])
def test_R13_R14_a_random_walk_through_both_front_ends(front_ends, seed):
    if seed is None:
        seed = int(os.environ.get("ROWFS_FRONT_ENDS_SEED") or random.randrange(1 << 32))
    walk = Walk(front_ends, seed)
    for _ in range(STEPS or 250):
        walk.step()


# ---- R16: at the same time


def run_all(*workers):
    """Each in a thread of its own; their failures."""
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(w,)) for w in workers]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a worker hangs"
    assert not failures, failures


def test_R16_no_update_is_lost_between_the_front_ends(front_ends):
    """Counters, counted up through both front ends: each only if nobody was faster."""
    ok(front_ends.rest.insert("Blogs", {"PartitionKey": "p", "RowKey": "r", "N": 0}), 201)
    path = front_ends.path("Blogs", "p", "r")
    etags = []

    def by_rest():
        with Client(front_ends.mount.port) as c:
            done = 0
            while done < 30:
                row = ok(c.get("Blogs", "p", "r"), 200)
                answer = c.replace("Blogs", "p", "r", {"N": row.json["N"] + 1}, row.etag)
                if answer.status != 412:
                    etags.append(ok(answer, 204).etag)
                    done += 1

    def by_file():
        """Loaded by the handle that writes: it commits only over what it has loaded."""
        done = 0
        while done < 30:
            fd = os.open(path, os.O_RDWR)
            row = json.loads(os.read(fd, 4096))
            text = json.dumps({"N": row["N"] + 1}).encode()
            os.pwrite(fd, text, 0)
            os.ftruncate(fd, len(text))
            try:
                os.close(fd)
                done += 1
            except OSError as e:
                assert e.errno == errno.ESTALE, e

    run_all(by_rest, by_rest, by_file, by_file)
    assert front_ends.own("Blogs", "p", "r") == {"N": 120} == seen(path)
    assert len(set(etags)) == 60


def test_R16_writers_through_both_front_ends(front_ends):
    """Each writer has numbers of its own; readers through the other front end never see one go
    back that was acknowledged, and ETags only grow."""
    keys = [("p", f"r{i}") for i in range(4)]
    for pk, rk in keys:
        ok(front_ends.rest.upsert("Blogs", pk, rk, {"V": 0, "W": 0}), 204)
    acknowledged = {k: 0 for k in keys}
    stop = time.monotonic() + 4

    def rest_writer(key):
        with Client(front_ends.mount.port) as c:
            n, etag = 0, ""
            while time.monotonic() < stop:
                n += 2
                answer = ok(c.upsert("Blogs", *key, {"V": n, "W": n}), 204)
                assert moment(answer.etag) > moment(etag)
                etag, acknowledged[key] = answer.etag, n

    def file_writer(key):
        n, path = 0, front_ends.path("Blogs", *key)
        while time.monotonic() < stop:
            n += 2
            text = json.dumps({"V": n, "W": n})
            if n % 4:
                put(path, text)
            else:
                put(path.parent / f"tmp{key[1]}", text)
                os.rename(path.parent / f"tmp{key[1]}", path)
            acknowledged[key] = n

    def file_reader():
        rng = random.Random(1)
        while time.monotonic() < stop:
            key = rng.choice(keys)
            least = acknowledged[key]
            row = json.loads(get(front_ends.path("Blogs", *key)))
            assert row["V"] == row["W"] >= least, (key, row, least)
            assert rows(front_ends.path("Blogs", "p"))[0:1] == ["r0.json"]

    def rest_reader():
        with Client(front_ends.mount.port) as c:
            rng, etags = random.Random(2), {}
            while time.monotonic() < stop:
                key = rng.choice(keys)
                least = acknowledged[key]
                answer = ok(c.get("Blogs", *key), 200)
                assert answer.json["V"] == answer.json["W"] >= least, (key, answer, least)
                assert moment(answer.etag) >= moment(etags.get(key, "")), key
                etags[key] = answer.etag
                least = dict(acknowledged)
                for row in c.query("Blogs", filter="PartitionKey eq 'p'").rows:
                    assert row["V"] == row["W"] >= least[row["PartitionKey"], row["RowKey"]]

    run_all(*(lambda k=k: rest_writer(k) for k in keys[:2]),
            *(lambda k=k: file_writer(k) for k in keys[2:]), file_reader, file_reader,
            rest_reader, rest_reader)
    for key in keys:
        row = {"V": acknowledged[key], "W": acknowledged[key]}
        assert acknowledged[key] > 10
        assert front_ends.own("Blogs", *key) == row == seen(front_ends.path("Blogs", *key))


def test_R16_both_front_ends_on_the_same_rows(front_ends):
    """Nobody knows who wins; but both front ends name the same winner, whole, and what was
    acknowledged last by all is one of the last writes."""
    stop = time.monotonic() + 3
    last = {}

    def rest_writer(who):
        with Client(front_ends.mount.port) as c:
            n = 0
            while time.monotonic() < stop:
                n += 1
                for rk in ("a", "b"):
                    ok(c.upsert("Blogs", "p", rk, {"Who": who, "N": n, "M": n}), 204)
            last[who] = n

    def file_writer(who):
        n = 0
        while time.monotonic() < stop:
            n += 1
            for rk in ("a", "b"):
                put(front_ends.path("Blogs", "p", rk), json.dumps({"Who": who, "N": n, "M": n}))
        last[who] = n

    def batcher():
        with Client(front_ends.mount.port) as c:
            n = 0
            while time.monotonic() < stop:
                n += 1
                ok(c.batch([("PUT", entity_path("Blogs", "p", rk), {},
                             {"Who": "batch", "N": n, "M": n}) for rk in ("a", "b")]), 202)
            last["batch"] = n

    ok(front_ends.rest.upsert("Blogs", "p", "a", {}), 204)
    run_all(lambda: rest_writer("r1"), lambda: rest_writer("r2"), lambda: file_writer("f1"),
            lambda: file_writer("f2"), batcher)
    for rk in ("a", "b"):
        row = front_ends.own("Blogs", "p", rk)
        assert row == seen(front_ends.path("Blogs", "p", rk))
        assert row["N"] == row["M"] == last[row["Who"]]


def test_R16_making_and_removing_at_once(front_ends):
    """Inserts and deletes of one row by both front ends: never two, never half, and in the end both
    front ends agree."""
    stop = time.monotonic() + 3
    path = front_ends.path("Blogs", "p", "x")
    ok(front_ends.rest.upsert("Blogs", "p", "stays", {}), 204)

    def by_rest():
        with Client(front_ends.mount.port) as c:
            while time.monotonic() < stop:
                assert c.insert("Blogs", {"PartitionKey": "p", "RowKey": "x", "A": 1}
                                ).status in (201, 409)
                assert c.delete("Blogs", "p", "x").status in (204, 404)

    def by_file():
        while time.monotonic() < stop:
            assert file_error(put, path, '{"A":2}') in (None, "ESTALE", "ENOENT")
            assert file_error(os.unlink, path) in (None, "ENOENT")
            # Removed and made while the listing runs, x may be in it once for each.
            assert set(rows(path.parent)) in ({"stays.json"}, {"stays.json", "x.json"})

    def looker():
        while time.monotonic() < stop:
            number = file_error(get, path)
            assert number in (None, "ENOENT"), number

    run_all(by_rest, by_rest, by_file, by_file, looker)
    assert front_ends.own("Blogs", "p", "x") == seen(path)
    front_ends.rest.delete("Blogs", "p", "x")
    assert seen(path) is None and rows(path.parent) == ["stays.json"]


def test_quoted_keys_reach_the_same_row(front_ends):
    for key in KEYS[1:]:
        ok(front_ends.rest.insert("Blogs", {"PartitionKey": key, "RowKey": key, "K": key}), 201)
        assert seen(front_ends.path("Blogs", key, key)) == {"K": key}
        put(front_ends.path("Blogs", key, key), json.dumps({"K": key, "F": 1}))
        assert front_ends.own("Blogs", key, key) == {"K": key, "F": 1}
        assert quote_key(key) in entity_path("Blogs", key, key)
