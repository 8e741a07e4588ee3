# SPDX-License-Identifier: MIT
"""What the kernel keeps of the mount is dropped with every change of another front end, however
little it knows: the attributes of a directory that was only looked at, never into; and a
node's size is never that of another version, also while others set attributes or write.

The cached answer to statx(2) is held against the one that is forced to ask the daemon."""

import contextlib
import errno
import json
import os
import random
import stat
import threading
import time

import pytest

from rest_client import ACCOUNT, Client, entity_path, ok, parse_batch
from tools import FORCE_SYNC, get, put, statx


class Place:
    """A table with two partitions, and every path that a change below could touch."""

    def __init__(self, mount, rest, rowfs, table):
        self.mount, self.rest, self.rowfs, self.table = mount, rest, rowfs, table
        self.account = mount / ACCOUNT
        self.at = self.account / table
        ok(rest.create_table(table), 201)
        for pk, rk in (("P", "a"), ("P", "b"), ("Q", "only")):
            ok(rest.insert(table, {"PartitionKey": pk, "RowKey": rk, "V": 1}), 201)
        self.dirs = [mount.path, self.account, self.at, self.at / "P", self.at / "Q"]
        self.paths = [*self.dirs, self.at / "N", self.account / f"New{table}",
                      *(self.at / name for name in (
                          "P/a.json", "P/b.json", "P/new.json", "Q/only.json", "N/x.json"))]

    def file(self, text):
        self.rowfs("import", self.mount.store, f"{ACCOUNT}/{self.table}", input=text)


def long_listing(*paths):
    """As `ls -l`: names, then the attributes of each; the kernel may take both at once."""
    for p in paths:
        with os.scandir(p) as found:
            for e in found:
                e.stat(follow_symlinks=False)


def all_the_way(p):
    for d in p.dirs[1:]:
        long_listing(d)


# What the kernel was made to know before the change.
WARM = {
    "every name": lambda p: [statx(x) for x in p.paths],
    "the table's own": lambda p: [statx(x) for x in p.dirs[:3]],
    "directories": lambda p: [statx(x) for x in p.dirs],
    "a long listing of all": all_the_way,
    "a long listing of the table": lambda p: long_listing(p.at),
    "a long listing of the account": lambda p: long_listing(p.account),
}

POLICY = ("<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy>"
          "<Expiry>2030-01-01</Expiry><Permission>r</Permission></AccessPolicy>"
          "</SignedIdentifier></SignedIdentifiers>")


def entity_batch(p):
    done = parse_batch(p.rest.batch([
        ("DELETE", entity_path(p.table, "P", "a"), {"If-Match": "*"}, None),
        ("DELETE", entity_path(p.table, "P", "b"), {"If-Match": "*"}, None),
        ("PUT", entity_path(p.table, "P", "new"), {}, {"K": 1})]))
    assert [part.status for part in done] == [204, 204, 204], done


def lines(*rows):
    return "".join(json.dumps({"PartitionKey": pk, "RowKey": rk, "V": 3}) + "\n"
                   for pk, rk in rows)


def row(pk, rk):
    return {"PartitionKey": pk, "RowKey": rk, "Z": 3}


# What is done, and whose mtime moves with it.
CHANGES = {
    "create table": (lambda p: ok(p.rest.create_table(f"New{p.table}"), 201), [""]),
    "delete table": (lambda p: ok(p.rest.delete_table(p.table), 204), [""]),
    "insert": (lambda p: ok(p.rest.insert(p.table, row("P", "new")), 201), ["T/P"]),
    "insert, a new partition": (lambda p: ok(p.rest.insert(p.table, row("N", "x")), 201), ["T"]),
    "replace": (lambda p: ok(p.rest.replace(p.table, "P", "a", {"V": 22222}), 204),
                ["T/P/a.json"]),
    "merge": (lambda p: ok(p.rest.merge(p.table, "P", "a", {"W": 22222}), 204), ["T/P/a.json"]),
    "upsert of a new row": (lambda p: ok(p.rest.upsert(p.table, "P", "new", {"V": 2}), 204),
                            ["T/P"]),
    "delete": (lambda p: ok(p.rest.delete(p.table, "P", "a"), 204), ["T/P"]),
    "delete of the last row": (lambda p: ok(p.rest.delete(p.table, "Q", "only"), 204), ["T"]),
    "policies": (lambda p: ok(p.rest.request("PUT", f"{p.table}?comp=acl", POLICY), 204), []),
    "batch": (entity_batch, ["T/P"]),
    "import": (lambda p: p.file(lines(("P", "new"), ("Q", "z"), ("P", "newer"))),
               ["T/P", "T/Q"]),
    "import, a new partition": (lambda p: p.file(lines(("N", "x"), ("N", "y"))), ["T"]),
    # More directories in one commit than are remembered as told.
    "import, many partitions": (lambda p: p.file(lines(
        *((f"n{i}", f"r{j}") for j in range(2) for i in range(60)), ("P", "new"))), ["T", "T/P"]),
}


@pytest.fixture
def both(rest_mount, rest_store):
    m = rest_mount(rest_store)
    with Client(m.port) as rest:
        yield m, rest


@pytest.mark.parametrize("kind", CHANGES)
def test_A6_no_attribute_outlives_a_change_of_another_front_end(both, rowfs, kind):
    change, moved = CHANGES[kind]
    for number, warm in enumerate(WARM):
        p = Place(*both, rowfs, f"Tab{number}")
        WARM[warm](p)
        movers = [p.account / m.replace("T", p.table, 1) for m in moved]
        before = [statx(m, FORCE_SYNC) for m in movers]
        WARM[warm](p)
        change(p)
        # The cached answers first, all of them: asking for one by force may repair another.
        cached = [statx(x) for x in p.paths]
        for path, have in zip(p.paths, cached):
            assert have == statx(path, FORCE_SYNC), (warm, path)
        for path, old in zip(movers, before):
            assert statx(path)["mtime"] > old["mtime"], (warm, path)


# ---- a node's size is its own version's


def run_for(seconds, *workers):
    """Each again and again in a thread of its own, at least once; the first failure ends all."""
    stop, failures = time.monotonic() + seconds, []

    def again(work):
        try:
            while True:
                work()
                if failures or time.monotonic() > stop:
                    return
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=again, args=(w,)) for w in workers]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a worker hangs"
    if failures:
        raise failures[0]


def read_whole(path):
    """open, fstat, read: of one version, a whole document."""
    with open(path, "rb") as f:
        size, data = os.fstat(f.fileno()).st_size, f.read()
    assert len(data) == size, f"{len(data)} bytes of a file of {size}"
    return json.loads(data)


def retried(call, *args):
    """Twice between two steps of one call is no failure of it: the user is told."""
    try:
        call(*args)
        return True
    except OSError as e:
        assert e.errno == errno.ESTALE, e
        return False


def test_W1_setting_attributes_beside_writers(both):
    mount, _ = both
    d = mount / ACCOUNT / "Blogs" / "p"
    os.makedirs(d)
    paths = [d / f"r{i}.json" for i in range(4)]
    rng, done, failed = random.Random(1), [0], [0]
    for p in paths:
        put(p, "{}")

    def document():
        return json.dumps({"P": "x" * rng.choice((1, 2, 3000, 5000))})

    def write(p):
        if rng.random() < .75:
            put(p, document())
        else:
            temp = d / f".{p.name}.tmp"
            put(temp, document())
            os.rename(temp, p)

    def look():
        p = rng.choice(paths)
        x = rng.randrange(7)
        if x < 3:
            read_whole(p)
        elif x == 3:
            os.close(os.open(p, os.O_RDWR))
        elif x == 4:
            os.listdir(d)
        else:
            good = retried(os.utime, p) if x == 5 else retried(
                os.chmod, p, rng.choice((0o600, 0o640)))
            (done if good else failed)[0] += 1

    run_for(4, *(lambda p=p: write(p) for p in paths), *[look] * 8)
    assert done[0] > 100 and failed[0] * 10 < done[0], (done, failed)
    for p in paths:  # and what is set is the file's, over later versions too
        os.chmod(p, 0o600)
        put(p, "{}")
        assert stat.S_IMODE(os.stat(p).st_mode) == 0o600


def test_W1_readers_beside_rest_writers(both):
    mount, rest = both
    ok(rest.create_table("Blogs"), 201)
    ok(rest.upsert("Blogs", "p", "r", {"N": 0}), 204)
    path, reads = mount / ACCOUNT / "Blogs" / "p" / "r.json", [0]
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(mount.port)) for _ in range(3)]

        def write(c, i):
            ok(c.upsert("Blogs", "p", "r", {"P": "x" * (3000 * i + 1)}), 204)

        def read():
            reads[0] += 1
            read_whole(path)

        run_for(4, *(lambda c=c, i=i: write(c, i) for i, c in enumerate(clients)), read, read)
    assert reads[0] > 100


def test_W1_a_held_version_keeps_its_size_while_its_row_is_changed(both):
    """By name the attributes are the new version's; by the old handle its own."""
    mount, rest = both
    ok(rest.create_table("Blogs"), 201)
    ok(rest.upsert("Blogs", "p", "r", {"P": "x" * 3000}), 204)
    path = mount / ACCOUNT / "Blogs" / "p" / "r.json"
    with open(path, "rb") as f:
        old = os.fstat(f.fileno())
        ok(rest.upsert("Blogs", "p", "r", {"P": "y"}), 204)
        os.chmod(path, 0o600)
        os.utime(path, ns=(10**18, 10**18))
        now, held = os.stat(path), os.fstat(f.fileno())
        assert (now.st_size, now.st_mtime_ns) == (len(get(path)), 10**18)
        assert (held.st_size, held.st_mtime_ns) == (old.st_size, old.st_mtime_ns)
        assert held.st_ino == now.st_ino == old.st_ino
        assert stat.S_IMODE(now.st_mode) == 0o600
        assert len(f.read()) == old.st_size
