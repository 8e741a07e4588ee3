# SPDX-License-Identifier: MIT
"""Reading files through the mount: cat, stat, the requests that they take, and that none of it
grows with the store.

cat is open, fstat, read to the end, close; one process does it with many rows.  Cold: of a fresh
mount, in no order (so nothing that was read ahead helps), each row once.  Warm: the same again;
memfs' second time has a getattr more, which the kernel makes after a read.
"""

import functools
import time

from bench import Result, grown

GROUP = "fuse-read"
ROWS = 100000
# Near the golden ratio of any power of ten: rows far apart, hardly three in ascending order.
STRIDE = 61803


def cat(b, m, rows, count):
    return b.fsops("cat", m.partition(), count=count, step=STRIDE, modulo=rows)


def three_times(b, mount, rows, count):
    with mount() as m:
        return [cat(b, m, rows, count) for _ in range(3)]


def cats(b, store, rows, count, rounds):
    """As pairs with memfs: cold, the same again, and once more."""
    samples = []
    for _ in range(rounds):
        ours = b.sample(lambda: three_times(b, lambda: b.mount_rowfs(store), rows, count))
        theirs = b.sample(lambda: three_times(b, lambda: b.mount_memfs(rows), rows, count))
        samples.append(list(zip(ours, theirs)))
    return [b.pair([s[i] for s in samples]) for i in range(3)]


def warm(b, op, store, count, rounds):
    """Both mounted, all rows known to the kernel, in turn."""
    with b.mount_rowfs(store) as ours, b.mount_memfs(ROWS) as theirs:
        for m in (ours, theirs):
            b.fsops(op, m.partition(), count=count, step=STRIDE, modulo=ROWS)
            b.fsops(op, m.partition(), count=count, step=STRIDE, modulo=ROWS)
        return b.alternate(
            *(functools.partial(b.fsops, op, m.partition(), count=count, step=STRIDE, modulo=ROWS)
              for m in (ours, theirs)), rounds)


def requests(b, m, fn, n):
    """Kernel requests for one of n, exactly: what the counting itself takes is taken off, and
    so are the directories on the way."""
    def look(what):
        before = sum(m.counts().values())
        what()
        time.sleep(0.1)  # a release is not waited for
        return sum(m.counts().values()) - before
    look(lambda: None)
    own = look(lambda: None)
    total = look(fn) - own
    return int(total / n) if total % n == 0 else total / n


def count_requests(b):
    n = 100
    with b.mount_rowfs(b.store(1000, copy=False)) as m:
        # The directory is looked up and listed once, before anything is counted.
        b.fsops("stat", m.partition(), count=1)

        def cats(first):
            return lambda: b.run(["cat", *(m.partition() / f"row{i:07d}.json"
                                           for i in range(first, first + n))])
        for state, first, most in (("cold", 100, 5), ("warm", 100, 3)):
            yield state, requests(b, m, cats(first), n), most
        b.run(["ls", "-l", m.partition()])
        yield "after ls -l", requests(b, m, cats(500), n), 4


def growth(b, count, rounds):
    """cat, cold, by the number of rows in the store."""
    stores = {n: b.store(n, copy=False)
              for n in b.pick((10000, 100000), (10000, 100000, 1000000))}

    def once(n):
        with b.mount_rowfs(stores[n]) as m:
            cat(b, m, n, count)  # the pages of the store, not the rows, come into memory
        with b.mount_rowfs(stores[n]) as m:
            return cat(b, m, n, count)
    return grown("cat of a row, cold: {n} rows", "µs", b.in_turn(
        {n: lambda n=n: once(n) for n in stores}, rounds))


def measure(b):
    count, rounds = b.pick(4000, 10000), b.pick(5, 9)
    store = b.store(ROWS, copy=False)
    for state, n, most in count_requests(b):
        yield Result(f"kernel requests per cat, {state}", n, None, "", "counted", None,
                     ("<=", most))
    cold, again, once_more = cats(b, store, ROWS, count, rounds)
    yield cold.result("cat of a row, cold", "µs", "memfs", ("<=", 1.2))
    yield again.result("cat of a row, warm", "µs", "memfs", ("<=", 1.05), "the second time")
    yield once_more.result("cat of a row, warm", "µs", "memfs", ("<=", 1.05), "from then on")
    yield warm(b, "stat", store, count, rounds).result(
        "stat of a row, warm", "µs", "memfs", ("<=", 1.05))
    yield growth(b, b.pick(4000, 8000), b.pick(5, 7))
