# SPDX-License-Identifier: MIT
"""Writing: commits through the mount and REST, what is synced, what is invalidated, and that
none of it grows with the store.

A document has 300 bytes, and other ones each time: SQLite does not write what is the same.  The
store is on a disk, not in memory.  Times through the mount have both sides on one CPU; of REST the
server has one and the generator the other.
"""

import contextlib
import itertools
import json

from bench import Result, grown

GROUP = "fuse-write"
EMULATOR = "devstoreaccount1"
EMULATOR_KEY = ("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/"
                "KBHBeksoGMGw==")
WRITERS = 32


def stats(m):
    with open(m.path / ".rowfs" / "stats.json") as f:
        return json.load(f)["store"]


@contextlib.contextmanager
def both(b):
    """rowfs on a disk and memfs, each with an empty partition."""
    with b.mount_rowfs(b.new_store()) as ours, b.mount_memfs() as theirs:
        for m in (ours, theirs):
            m.partition().mkdir(parents=True, exist_ok=True)
        yield ours.partition(), theirs.partition()


def through_the_mount(b):
    count, rounds = b.pick(2000, 10000), b.pick(3, 7)
    salt = itertools.count(1)
    with both(b) as dirs:
        first = dict.fromkeys(dirs, 0)

        def create(d):
            at = first[d]
            first[d] += count
            return b.fsops("create", d, first=at, count=count, salt=next(salt))

        def change(d, op):
            return b.fsops(op, d, count=count, salt=next(salt))

        def pair(fn, *args):
            return b.alternate(lambda: fn(dirs[0], *args), lambda: fn(dirs[1], *args), rounds)
        yield pair(create).result("new row through the mount (commit at close)", "µs", "memfs",
                                  ("<=", 1.8))
        yield pair(change, "overwrite").result("overwrite through the mount", "µs", "memfs",
                                               ("<=", 2.1))
        yield pair(change, "replace").result("temporary file, renamed over a row", "µs", "memfs")


def at_once(b, m, op, writers, count, salt):
    """Rows per second of so many processes, each with a partition of its own."""
    return writers * count / b.run_together(
        [[b.tool("fsops"), op, m.partition(i), f"--count={count}", f"--salt={salt}"]
         for i in range(writers)])


def syncs_per_commit(m, write):
    """With the number of commits that it was counted over."""
    before = stats(m)
    write()
    after = stats(m)
    made = after["commits"] - before["commits"]
    return (after["syncs"] - before["syncs"]) / made, f"{made} commits"


def writers_at_once(b):
    rounds, count = b.pick(3, 5), b.pick(600, 1500)
    salt = itertools.count(1)
    with b.mount_rowfs(b.new_store(), cpu=None) as m:
        for i in range(WRITERS):
            m.partition(i).mkdir(parents=True)
            b.fsops("create", m.partition(i), count=count // 4)
        b.fsops("create", m.partition(), first=count // 4, count=count - count // 4)

        def one(op):
            return at_once(b, m, op, 1, count, next(salt))
        syncs, note = syncs_per_commit(m, lambda: one("sync"))
        yield Result("fdatasyncs per commit, fsync of 1 writer", syncs, None, "", "", None,
                     ("<=", 1), note)
        pair = b.alternate(lambda: at_once(b, m, "sync", WRITERS, count // 4, next(salt)),
                           lambda: one("sync"), rounds)
        yield pair.result("durable rows, fsync of 32 writers", "/s", "1 writer", (">=", 4))
        for n in (2, 8):
            pair = b.alternate(lambda n=n: at_once(b, m, "overwrite", n, count // 4, next(salt)),
                               lambda: one("overwrite"), rounds)
            yield pair.result(f"rows overwritten by {n} writers", "/s", "1 writer")


# ---- REST ----

@contextlib.contextmanager
def rest(b, rows):
    """A mount that serves REST on a socket, with rows in 100 partitions."""
    store = b.new_store()
    b.run([b.rowfs, "account", "add", store, EMULATOR, "--key", EMULATOR_KEY], b.other_cpu)
    where = f"unix:{b.tmp() / 'rest'}"
    with b.mount_rowfs(store, options=(f"rest={where}",)) as m:
        load(b, where, "table")
        load(b, where, "fill", rows=rows)
        yield m, where


def load(b, where, kind, **options):
    args = [f"{k}={v}" for k, v in options.items()]
    return json.loads(b.run([b.tool("rest_load"), where, kind, *args], b.other_cpu).out)


def upserts(b, where, rows, connections, seconds):
    return load(b, where, "upsert", rows=rows, connections=connections,
                milliseconds=int(seconds * 1000))["rows_per_s"]


def warm(b, m):
    """Every row looked up, opened and read: the kernel has names, attributes and pages."""
    b.run(["sh", "-c", 'cat "$1"/*/*.json | wc -c', "sh", m.path / EMULATOR / "bench"])


def through_rest(b):
    rows, rounds, seconds = b.pick(5000, 20000), b.pick(3, 5), b.pick(0.4, 1.0)
    with rest(b, rows) as (m, where):
        syncs, note = syncs_per_commit(m, lambda: upserts(b, where, rows, 1, seconds))
        yield Result("fdatasyncs per commit, REST, 1 connection", syncs, None, "", "", None,
                     ("<=", 1), note)
        pair = b.alternate(lambda: upserts(b, where, rows, WRITERS, seconds),
                           lambda: upserts(b, where, rows, 1, seconds), rounds)
        yield pair.result("durable rows, REST, 32 connections", "/s", "1 connection", (">=", 4))

        def cached():
            warm(b, m)
            return upserts(b, where, rows, WRITERS, seconds / 2)
        with rest(b, rows) as (_, cold):
            pair = b.alternate(cached, lambda: upserts(b, cold, rows, WRITERS, seconds / 2), rounds)
        yield pair.result("REST writes with every row cached by the kernel", "/s",
                          "nothing cached", (">=", 0.8))


# ---- growth ----

def growth(b):
    """Of rows all over the store, by its size: overwritten, and new ones between them."""
    count, rounds = b.pick(1000, 4000), b.pick(3, 5)
    salt = itertools.count(1)
    sizes = b.pick((10000, 100000), (10000, 100000, 1000000))
    with contextlib.ExitStack() as stack:
        mounts = {n: stack.enter_context(b.mount_rowfs(b.store(n))) for n in sizes}

        def touch(op, n, **options):
            return b.fsops(op, mounts[n].partition(), count=count, step=n // count,
                           salt=next(salt), **options)
        for n in sizes:
            touch("overwrite", n)
        yield grown("overwrite of one of {n} rows", "µs", b.in_turn(
            {n: lambda n=n: touch("overwrite", n) for n in sizes}, rounds))
        yield grown("new row between {n} others", "µs", b.in_turn(
            {n: lambda n=n: touch("create", n, behind=next(salt)) for n in sizes}, rounds))


def measure(b):
    for part in (through_the_mount, writers_at_once, through_rest, growth):
        yield from part(b)
