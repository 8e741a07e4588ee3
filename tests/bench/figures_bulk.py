# SPDX-License-Identifier: MIT
"""Bulk: import, export, a filter over a whole table, bytes on disk, and what grows with the rows.

The yardstick is bare SQLite with the tables, pragmas and statements of the store
(sqlite_bare.c): it loads the same rows in the same order, as many a transaction, and scans them
in key order.  Both are whole processes: opening, reading the input, closing are in.  The input
lies in memory, output goes to /dev/null.
"""

import os
import random
import signal
import time

from bench import ACCOUNT, TABLE, TOP, Failure, Result, grown

GROUP = "bulk"
PARTITIONS = 100
PACKAGES = "apt-cache dumpavail"  # of what `apt-get update` has fetched
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split()


def rows(path, n, partitions=PARTITIONS):
    """n rows of 12 members and about 300 bytes, most types in them, in key order."""
    dice, per = random.Random(1), max(1, n // partitions)
    with open(path, "w") as f:
        for i in range(n):
            w, day = WORDS[i % 12], f"20{i % 25:02d}-0{1 + i % 9}-1{i % 10}"
            f.write(
                f'{{"PartitionKey":"part-{i // per:05d}","RowKey":"row-{i % per:08d}",'
                f'"Name":"{w} {WORDS[i // 12 % 12]} {i}","Age":{dice.randrange(100)},'
                f'"Active":{"true" if i % 3 else "false"},"Score":{dice.randrange(40000) / 4},'
                f'"Count@odata.type":"Edm.Int64","Count":"{dice.randrange(1 << 40)}",'
                f'"Born@odata.type":"Edm.DateTime","Born":"{day}T1{i % 10}:2{i % 10}:00Z",'
                f'"City":"{WORDS[i * 7 % 12]}","Street":"{WORDS[i * 5 % 12]} street {i % 200}",'
                f'"Note":"{"lorem ipsum " * (3 + i % 3)}","Zip":{10000 + i % 80000}}}\n')
    return path


class Side:
    """Stores of rowfs or of bare SQLite, filled from the same input."""

    def __init__(self, b, n, text, tmpfs=True):
        self.b, self.n, self.text, self.tmpfs = b, n, text, tmpfs
        self.bare = b.tool("sqlite_bare")
        self.ours = self.theirs = None  # the last ones that were loaded

    def _empty(self, last):
        for f in last.parent.glob(last.name + "*") if last else ():
            f.unlink()

    def drop_bare(self):
        self._empty(self.theirs)
        self.theirs = None

    def rate(self, ran):
        return self.n / ran.wall

    def load(self):
        self._empty(self.ours)
        self.ours = self.b.new_store(self.tmpfs)
        return self.rate(self.b.run([self.b.rowfs, "import", self.ours, f"{ACCOUNT}/{TABLE}",
                                     self.text]))

    def load_bare(self):
        self._empty(self.theirs)
        self.theirs = self.b.tmp(self.tmpfs) / "bare.db"
        return self.rate(self.b.run([self.bare, "load", self.theirs, self.text]))

    def export(self):
        return self.rate(self.b.run(f"{self.b.rowfs} export {self.ours} {ACCOUNT}/{TABLE} "
                                    "> /dev/null"))

    def scan_bare(self):
        return self.rate(self.b.run([self.bare, "scan", self.theirs]))


def count(b, m, query):
    """The seconds that reading .count takes, which looks at every row and hands out none."""
    path = m.tree / ".query" / f"{query}.count"
    return b.run(["cat", path]).wall


def throughput(b, disk, memory):
    rounds = b.pick(3, 5)
    for side, where in ((disk, "on a disk"), (memory, "in memory")):
        b.progress(f"import, {where}")
        yield b.alternate(side.load, side.load_bare, rounds).result(
            "import", "rows/s", "bare SQLite load", (">=", 0.6), f"same order; store {where}")
    b.progress("export and filter")
    yield b.alternate(memory.export, memory.scan_bare, rounds).result(
        "export", "rows/s", "bare SQLite scan", (">=", 0.4), "NDJSON; the scan writes nothing")
    with b.mount_rowfs(memory.ours) as m:
        for query, note in (("Zip lt 0", "an Int32"), ("Born gt datetime'2100-01-01T00:00:00Z'",
                                                       "a DateTime")):
            yield b.alternate(lambda q=query: memory.n / count(b, m, q), memory.scan_bare,
                              rounds).result(
                "full-table filter on a property", "rows/s", "bare SQLite scan with bodies",
                (">=", 0.3), f"{note}; .query/….count through a mount")
    for what, args in (("a document by id", ("get", b.pick(20000, 100000))),
                       ("a row replaced, one a commit", ("put", b.pick(2000, 20000)))):
        n, seconds = b.run([memory.bare, args[0], memory.theirs, args[1]]).out.split()
        us = float(seconds) / int(n) * 1e6
        yield Result(f"for scale: {what}", None, None, "", f"{us:.1f} µs bare SQLite", None)


def bytes_on_disk(b):
    text = b.tmp() / "packages.ndjson"
    b.progress("Debian's package index")
    b.run(f"{PACKAGES} | {TOP / 'examples' / 'debian-packages'} > {text}", cpu=b.other_cpu)
    n = text.stat().st_size
    if n < 1 << 20:
        raise Failure("no package index: apt-get update")
    store = b.new_store(tmpfs=True)
    b.run([b.rowfs, "import", store, f"{ACCOUNT}/Packages", text])
    there = sum(f.stat().st_size for f in store.parent.glob("store.db*"))
    yield Result("bytes on disk per byte of JSON, Debian's package index", there / 1e6, n / 1e6,
                 "MB", "MB of NDJSON as imported", there / n, ("<=", 1.15))


# ---- growth ----

# A process has a cost of its own, which few rows do not hide: the best of the fewer counts.
GROWING = ("import", "export", "full-table filter", "rowfs check")
FLAT = ("open of the store, as a command", "mount", "start after kill -9 with a full log")
TIMES = 3  # of what takes milliseconds the least of a few


def started(b, store):
    start = time.monotonic()
    with b.mount_rowfs(store) as m:
        os.stat(m.tree)
        return (time.monotonic() - start) * 1e3


def killed(b, store, text, table):
    """Milliseconds of a start after a server was killed with all of its log still to be read,
    and the bytes of that."""
    with b.mount_rowfs(store) as m:
        b.run([b.rowfs, "import", store, f"{ACCOUNT}/{table}", text], cpu=None)
        log = os.stat(f"{store}-wal").st_size
        os.kill(m.pid, signal.SIGKILL)
        m.proc.wait()
    return started(b, store), log


def per_row(b, side):
    """Microseconds that each row takes, by what is done."""
    def us(seconds):
        return seconds / side.n * 1e6
    took = [1e6 / b.sample(side.load), 1e6 / b.sample(side.export)]
    with b.mount_rowfs(side.ours) as m:
        took.append(us(b.sample(lambda: count(b, m, "Zip lt 0"))))
    took.append(us(b.sample(lambda: b.run([b.rowfs, "check", side.ours]).wall)))
    return dict(zip(GROWING, took))


def per_start(b, side, more, table):
    """Milliseconds until the store can be used, by how it comes to that, and bytes of log."""
    opens = [b.run([b.rowfs, "account", "list", side.ours]).wall * 1e3 for _ in range(TIMES * 2)]
    mounts = [started(b, side.ours) for _ in range(TIMES)]
    kills = [killed(b, side.ours, more, f"{table}{i}") for i in range(TIMES)]
    return dict(zip(FLAT, (min(opens), min(mounts), min(k[0] for k in kills)))), kills[0][1]


def listed(b, sizes):
    """Microseconds for each name of a table with so many partitions, by their number."""
    stores = {}
    for n in sizes:
        b.progress(f"growth: {n} partitions")
        stores[n] = b.new_store(tmpfs=True)
        text = rows(b.tmp() / "partitions.ndjson", n, n)
        b.run([b.rowfs, "import", stores[n], f"{ACCOUNT}/{TABLE}", text], cpu=None)
        text.unlink()

    def once(n):
        with b.mount_rowfs(stores[n]) as m:
            return b.fsops("list", m.tree)
    return b.in_turn({n: lambda n=n: once(n) for n in sizes}, 3)


def growth(b, sides):
    """sides: by their number of rows."""
    each, starts, log = {}, {n: [] for n in sides}, 0
    for n, side in sides.items():
        b.progress(f"growth: {n} rows")
        each[n] = per_row(b, side)
    more = rows(b.tmp() / "more.ndjson", 45000, 10)
    for i in range(b.pick(2, 3)):
        b.progress(f"growth: starts, round {i + 1}")
        for n, side in sides.items():
            took, log = b.sample(lambda s=side, i=i: per_start(b, s, more, f"More{i}x"))
            starts[n].append(took)
    for name in GROWING:
        yield grown(f"{name}: a row of {{n}}", "µs", {n: took[name] for n, took in each.items()})
    for name in FLAT:
        least = {n: min(t[name] for t in took) for n, took in starts.items()}
        yield grown(f"{name}: {{n}} rows", "ms", least,
                    note=f"{log / 1e6:.0f} MB of log" if "log" in name else "")
    yield grown("listing of {n} partitions: each", "µs", listed(b, sides))


def measure(b):
    sizes = b.pick((10000, 100000), (10000, 100000, 1000000))
    b.progress(f"{sizes[-1]} rows of text")
    texts = {n: rows(b.tmp() / f"{n}.ndjson", n) for n in sizes}
    n, text = sizes[-1], texts[sizes[-1]]
    memory = Side(b, n, text)
    yield from throughput(b, Side(b, n, text, tmpfs=False), memory)
    yield from bytes_on_disk(b)
    memory.drop_bare()
    sides = {n: Side(b, n, texts[n]) for n in sizes[:-1]}
    yield from growth(b, {**sides, n: memory})
