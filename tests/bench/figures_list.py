# SPDX-License-Identifier: MIT
"""Listings of a directory of any size: names, attributes, find, and the memory that they take."""

import statistics

from bench import Pair, Result, grown

GROUP = "fuse-list"
# As readdir(3) of glibc has it.
BUFFER = 32768


def names(b, mounted):
    """Of a fresh mount: microseconds for an entry."""
    with mounted as m:
        rows = m.partition()
        return {"names": b.fsops("list", rows, buffer=BUFFER),
                "find": b.run(["find", rows, "-type", "f"]).wall}


def attributes(b, mounted):
    with mounted as m:
        rows = m.partition()
        return {"first": b.fsops("list-stat", rows, buffer=BUFFER),
                "again": b.fsops("list-stat", rows, buffer=BUFFER)}


def compare(b, rows, rounds):
    """As Bench.alternate() does it, but several figures of each mount.  All of names first: after a
    listing with attributes the kernel has as many inodes to free, which it does in its own time."""
    return {**compare_listings(b, names, rows, rounds),
            **compare_listings(b, attributes, rows, rounds)}


def compare_listings(b, listings, rows, rounds):
    store = b.store(rows, copy=False)
    sides = [lambda: listings(b, b.mount_rowfs(store)), lambda: listings(b, b.mount_memfs(rows))]
    found = []
    for i in range(rounds):
        b.progress(f"{listings.__name__} of {rows} rows, round {i + 1} of {rounds}")
        order = (0, 1) if i % 2 == 0 else (1, 0)
        taken = {side: b.sample(sides[side]) for side in order}
        found.append((taken[0], taken[1]))
    result = {}
    for kind in found[0][0]:
        both = [(a[kind], t[kind]) for a, t in found]
        ratios = [a / t for a, t in both]
        result[kind] = Pair(statistics.median(a for a, _ in both),
                            statistics.median(t for _, t in both),
                            statistics.median(ratios), (min(ratios), max(ratios)))
    return result


def memory(b, rows):
    """Bytes by which the daemon grows at most while all rows are listed in both ways."""
    with b.mount_rowfs(b.store(rows, copy=False)) as m:
        b.fsops("list", m.tree, buffer=BUFFER)
        with open(f"/proc/{m.pid}/clear_refs", "w") as f:
            f.write("5")  # the most it ever was, from now on
        before = b.memory(m.pid)["VmRSS"]
        b.fsops("list", m.partition(), buffer=BUFFER)
        b.fsops("list-stat", m.partition(), buffer=BUFFER)
        return b.memory(m.pid)["VmHWM"] - before


def measure(b):
    rows = b.pick(100_000, 1_000_000)
    most = compare(b, rows, b.pick(3, 5))
    yield most["names"].result(f"ls -f of {rows:,} rows", "µs a row", "memfs", ("<=", 3.5))
    yield most["first"].result("ls -l, first", "µs a row", "memfs", ("<=", 1.2))
    yield most["again"].result("ls -l, again", "µs a row", "memfs", ("<=", 1.3))
    yield most["find"].result("find -type f", "s", "memfs", ("<=", 2.5))
    yield Result(f"daemon's memory while {rows:,} rows are listed",
                 round(memory(b, rows) / 2**20, 1), None, "MiB more", "", None, ("<=", 16))
    found = {n: compare(b, n, 3) for n in b.pick((10_000,), (10_000, 100_000))}
    found[rows] = most
    for kind, name in (("names", "ls -f: a row of {n}"), ("first", "ls -l, first: a row of {n}"),
                       ("again", "ls -l, again: a row of {n}")):
        theirs = grown("", "", {n: f[kind].theirs for n, f in found.items()})
        yield grown(name, "µs", {n: f[kind].ours for n, f in found.items()},
                    ("<=", round(1.2 * max(1, theirs.ratio), 2)),
                    f"memfs by {theirs.ratio:.2f}")
