# SPDX-License-Identifier: MIT
"""mv against REST: a rename that renders documents anew (they hold their keys) loses nothing
that the socket acknowledged meanwhile, and what it renders is what REST and a restore need.

ROWFS_RENAME_ROUNDS=N races N times instead of a few hundred.
"""

import errno
import json
import os
import random
import threading
import time

import pytest

from rest_client import ACCOUNT, NONE, Client, ok
from tools import EXCHANGE, get, put, raises, renameat2, rows, xattr

ROUNDS = int(os.environ.get("ROWFS_RENAME_ROUNDS", "300"))
SYSTEM = ("PartitionKey", "RowKey", "Timestamp")
PAD = "y" * 30000  # makes the rendering take its time
LONG, LONG2 = "k" * 400, "l" * 400


class FrontEnds:
    def __init__(self, mount):
        self.account = mount / ACCOUNT
        self.rest = Client(mount.port)
        self.part = self.account / "Blogs" / "p"

    def row(self, pk, rk, table="Blogs"):
        """The row's own properties over REST; None if there is none."""
        answer = self.rest.get(table, pk, rk, headers={"Accept": NONE})
        if answer.status == 404:
            return None
        return {k: v for k, v in ok(answer, 200).json.items() if k not in SYSTEM}


@pytest.fixture
def front_ends(rest_mount, rest_store):
    d = FrontEnds(rest_mount(rest_store))
    for table in ("Blogs", "Other"):
        ok(d.rest.create_table(table), 201)
    os.mkdir(d.part)
    yield d
    d.rest.close()


def keyed(rk, pk="p", **own):
    return json.dumps({"PartitionKey": pk, "RowKey": rk, **own})


class Race:
    """In every round `theirs` runs beside `ours`, a little earlier or later."""

    def __init__(self, front_ends, theirs, delay=0.0006):
        self.theirs, self.delay = theirs, delay
        self.rest = front_ends.rest.clone()
        self.gate = threading.Barrier(2, timeout=60)
        self.answer = self.trouble = None
        self.over = False
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        number = 0
        try:
            while True:
                self.gate.wait()
                if self.over:
                    return
                time.sleep(random.random() * self.delay)
                self.answer = self.theirs(self.rest, number)
                number += 1
                self.gate.wait()
        except BaseException as e:
            self.trouble = e
            self.gate.abort()

    def round(self, ours):
        self.gate.wait()
        time.sleep(random.random() * self.delay)
        ours()
        self.gate.wait()
        return self.answer

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        try:
            self.gate.wait()
        except threading.BrokenBarrierError:
            pass
        self.thread.join()
        self.rest.close()
        assert self.trouble is None or isinstance(self.trouble, threading.BrokenBarrierError), (
            repr(self.trouble))


def patch_a(rest, number):
    return rest.merge("Blogs", "p", "a", {"P": number}).status


@pytest.mark.parametrize("over", [False, True], ids=["to a free name", "over a row"])
def test_R13_a_rename_loses_no_acknowledged_patch(front_ends, over):
    first = 0
    with Race(front_ends, patch_a) as race:
        for i in range(ROUNDS):
            put(front_ends.part / "a.json", keyed("a", V=i, pad=PAD))
            if over:
                put(front_ends.part / "b.json", keyed("b", old=i))
            status = race.round(lambda: os.rename(front_ends.part / "a.json", front_ends.part / "b.json"))
            assert status in (204, 404)
            row = front_ends.row("p", "b")
            assert row.pop("pad") == PAD
            assert row == ({"V": i, "P": i} if status == 204 else {"V": i})
            assert rows(front_ends.part) == ["b.json"]
            shown = json.loads(get(front_ends.part / "b.json"))
            assert shown.pop("pad") == PAD and shown.pop("RowKey", "b") == "b" and shown == row
            os.unlink(front_ends.part / "b.json")
            first += status == 204
    assert first > 0  # else nothing raced


@pytest.mark.parametrize("patched_first", [True, False], ids=["source", "target"])
def test_R13_an_exchange_loses_no_acknowledged_patch(front_ends, patched_first):
    """The PATCH meets whichever row has the name at that moment; it must not vanish."""
    a, b = front_ends.part / "a.json", front_ends.part / "b.json"
    with Race(front_ends, patch_a) as race:
        for i in range(ROUNDS):
            put(a, keyed("a", V=i, pad=PAD))
            put(b, keyed("b", W=i, pad=PAD))
            pair = (a, b) if patched_first else (b, a)
            assert race.round(lambda: renameat2(*pair, EXCHANGE)) == 204
            was_a, was_b = front_ends.row("p", "b"), front_ends.row("p", "a")
            assert was_a["V"] == was_b["W"] == i
            assert (was_a.get("P"), was_b.get("P")) in ((i, None), (None, i))


def test_R13_an_exchange_of_rendered_rows_is_seen_at_once(front_ends):
    a, b = front_ends.part / "a.json", front_ends.part / "b.json"
    for i in range(20):
        put(a, keyed("a", V=i))
        put(b, keyed("b", W=i))
        for path in (a, b):
            get(path), os.stat(path)
        renameat2(a, b, EXCHANGE)
        for path, want in ((a, {"W": i}), (b, {"V": i})):
            data = get(path)
            assert json.loads(data) == want
            assert os.stat(path).st_size == len(data)


def test_L4_a_file_and_another_front_end_lose_nothing(front_ends):
    """Either the change of the other front end is under the file, or the file was not renamed."""
    a, b, tmp = front_ends.part / "a.json", front_ends.part / "b.json", front_ends.part / "tmp"
    with Race(front_ends, patch_a) as race:
        for i in range(ROUNDS // 2):
            put(a, keyed("a", V=i))
            put(tmp, keyed("a", W=i, pad=PAD))
            os.setxattr(tmp, "user.rowfs.if_match", xattr(a, "etag").encode())
            refused = []

            def replace():
                try:
                    os.rename(tmp, a)
                except OSError as e:
                    assert e.errno == errno.ESTALE
                    refused.append(e)

            assert race.round(replace) == 204
            row = front_ends.row("p", "a")
            assert row["P"] == i  # it came first, or over the file
            assert ("V" in row) == (refused != []) and ("W" in row) == (refused == [])
    put(b, keyed("b"))
    put(tmp, "{}")
    os.setxattr(tmp, "user.rowfs.if_match", xattr(b, "etag").encode())
    ok(front_ends.rest.merge("Blogs", "p", "b", {"P": 1}), 204)
    for flags in (0, EXCHANGE):
        with raises("ESTALE"):
            renameat2(tmp, b, flags)
    assert front_ends.row("p", "b") == {"P": 1} and get(tmp) == b"{}"


@pytest.mark.parametrize("document", ['{"N":0}', keyed("a", N=0)], ids=["plain", "with keys"])
def test_R13_renames_of_a_row_that_never_rests_get_through(front_ends, document):
    """Eight clients patch it under both of its names; all that they were told stays."""
    put(front_ends.part / "a.json", document)
    over = threading.Event()
    last, trouble = [None] * 8, []

    def patch(n):
        with front_ends.rest.clone() as rest:
            i = 0
            while not over.is_set():
                for rk in ("a", "b"):
                    i += 1
                    status = rest.merge("Blogs", "p", rk, {f"P{n}": i}).status
                    if status == 204:
                        last[n] = i
                    elif status != 404:
                        trouble.append(status)

    threads = [threading.Thread(target=patch, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    try:
        end, names, moves = time.monotonic() + 3, ["a", "b"], 0
        while time.monotonic() < end:
            os.rename(front_ends.part / f"{names[0]}.json", front_ends.part / f"{names[1]}.json")
            names.reverse()
            moves += 1
    finally:
        over.set()
        for t in threads:
            t.join()
    assert not trouble and moves > 20
    row = front_ends.row("p", names[0])
    assert row == {"N": 0, **{f"P{n}": last[n] for n in range(8) if last[n] is not None}}
    assert all(last)


# ---- partitions


def long_directory(front_ends, pk, table="Blogs"):
    """The empty directory of a partition with a long key, whose name is a digest."""
    ok(front_ends.rest.upsert(table, pk, "x", {}), 204)
    name = next(n for n in os.listdir(front_ends.account / table) if n.startswith(pk[:5]))
    os.unlink(front_ends.account / table / name / "x.json")
    return front_ends.account / table / name


def fill(front_ends, directory):
    ok(front_ends.rest.upsert("Blogs", "p", "rest", {"V": 1}), 204)
    put(directory / "file.json", '{ "V":  2 }')
    put(directory / "keyed.json", keyed("keyed", V=3))
    put(directory / "notes", "no row")


VALUES = {"file": 2, "keyed": 3, "rest": 1}


def holds(front_ends, table, pk, directory):
    """All rows through both front ends; documents hold the key exactly where the name does not
    tell it; each can be written back as it is."""
    assert {rk: front_ends.row(pk, rk, table)["V"] for rk in VALUES} == VALUES
    assert rows(directory) == ["file.json", "keyed.json", "notes", "rest.json"]
    for rk, value in VALUES.items():
        text = get(directory / f"{rk}.json")
        assert os.stat(directory / f"{rk}.json").st_size == len(text)
        document = json.loads(text)
        assert document.pop("V") == value
        if len(pk) > 240:
            assert document == {"PartitionKey": pk, "RowKey": rk}
        put(directory / f"{rk}.json", text)
    assert get(directory / "notes") == b"no row"
    assert len(front_ends.rest.all(table, filter=f"PartitionKey eq '{pk}'")) == len(VALUES)


def test_M6_a_partition_moved_onto_a_long_key_and_back(front_ends):
    blogs = front_ends.account / "Blogs"
    fill(front_ends, front_ends.part)
    long = long_directory(front_ends, LONG)
    holds(front_ends, "Blogs", "p", front_ends.part)
    os.rename(front_ends.part, long)
    holds(front_ends, "Blogs", LONG, long)
    other = long_directory(front_ends, LONG2, "Other")  # between tables, to another long key
    os.rename(long, other)
    holds(front_ends, "Other", LONG2, other)
    assert rows(blogs) == []
    os.rename(other, blogs / "q")
    holds(front_ends, "Blogs", "q", blogs / "q")


def test_M6_partitions_with_short_and_long_keys_are_exchanged(front_ends):
    long = long_directory(front_ends, LONG)
    fill(front_ends, front_ends.part)
    for _ in range(2):
        renameat2(front_ends.part, long, EXCHANGE)
        assert rows(front_ends.part) == []
        holds(front_ends, "Blogs", LONG, long)
        renameat2(long, front_ends.part, EXCHANGE)
        assert rows(long) == []
        holds(front_ends, "Blogs", "p", front_ends.part)
    other = long_directory(front_ends, LONG2, "Other")
    renameat2(other, front_ends.part, EXCHANGE)
    holds(front_ends, "Other", LONG2, other)
    # Both of them full.
    fill(front_ends, front_ends.part)
    renameat2(front_ends.part, other, EXCHANGE)
    holds(front_ends, "Other", LONG2, other)
    holds(front_ends, "Blogs", "p", front_ends.part)


def test_M6_a_partition_that_gets_a_long_key_while_rows_come_and_change(front_ends):
    """Every acknowledged row is there, under the one key or the other, each document right
    (the store is checked when the mount has ended)."""
    long = long_directory(front_ends, LONG)
    made = set()

    def theirs(rest, number):
        """A new row under the short key, maybe just after the move: then it makes the
        partition again; and a change of one that moves."""
        ok(rest.upsert("Blogs", "p", f"n{number}", {"V": number}), 204)
        return rest.merge("Blogs", "p", "r", {"P": number}).status

    with Race(front_ends, theirs, 0.002) as race:
        for i in range(ROUNDS // 3):
            put(front_ends.part / "r.json", '{"V":0}')
            for n in range(30):
                put(front_ends.part / f"s{n}.json", '{ "S":0 }')
            status = race.round(lambda: os.rename(front_ends.part, long))
            made = {row["RowKey"] for row in front_ends.rest.all("Blogs")}
            assert made == {"r", f"n{i}"} | {f"s{n}" for n in range(30)}
            assert front_ends.row(LONG, "r") == ({"V": 0, "P": i} if status == 204 else {"V": 0})
            for name in os.listdir(long):
                assert json.loads(get(long / name))["PartitionKey"] == LONG
                os.unlink(long / name)
            if front_ends.part.exists():
                for name in os.listdir(front_ends.part):
                    os.unlink(front_ends.part / name)
            else:
                os.mkdir(front_ends.part)
