# SPDX-License-Identifier: MIT
"""Whole trees that the usual tools read, copy and remove through the mount."""

import contextlib
import resource
import statistics

from bench import Failure, Pair, Result

GROUP = "tools"


def grep(b, rows):
    # Nothing is found: 1.
    return b.run(["grep", "-r", "no row has this", rows], check=False).wall


def tar(b, rows):
    # To /dev/null itself tar writes nothing and reads nothing.
    return b.run(f"tar -C {rows} -cf - . | cat >/dev/null").wall


def rsync(b, rows, to):
    return b.run(["rsync", "-a", f"{rows}/", to]).wall


def opens(m):
    """OPEN requests until now; to ask is one itself."""
    return m.counts().get("open", 0)


def tools(b, mount):
    """Seconds of each tool, each on a fresh mount, and the opens of the second rsync."""
    found = {}
    for name, fn in (("grep -r", grep), ("tar", tar)):
        with mount() as m:
            found[name] = fn(b, m.partition())
    copy = b.tmp() / "copy"
    with mount() as m:
        found["rsync -a, first"] = rsync(b, m.partition(), copy)
    with mount() as m:
        found["rsync -a, unchanged"] = rsync(b, m.partition(), copy)
    return found


def unchanged_opens(b, mount):
    """Of a copy that is up to date; on neither side there may be any, else it was none."""
    copy = b.tmp() / "copy"
    with mount() as m:
        rsync(b, m.partition(), copy)
    with mount() as m:
        first, second = opens(m), opens(m)
        rsync(b, m.partition(), copy)
        third = opens(m)
    # rowfs counts from its start, and each look at its counters; memfs since the last look.
    return third - second - (second - first) if m.counts_path is None else third


def remove(b, mount):
    with mount() as m:
        return b.run(["rm", "-r", m.partition()]).wall


def compare(b, ours, theirs, rounds):
    found = []
    for i in range(rounds):
        b.progress(f"tools, round {i + 1} of {rounds}")
        order = (0, 1) if i % 2 == 0 else (1, 0)
        taken = {side: b.sample((ours, theirs)[side]) for side in order}
        found.append((taken[0], taken[1]))
    for kind in found[0][0]:
        both = [(a[kind], t[kind]) for a, t in found]
        ratios = [a / t for a, t in both]
        yield kind, Pair(statistics.median(a for a, _ in both),
                         statistics.median(t for _, t in both),
                         statistics.median(ratios), (min(ratios), max(ratios)))


@contextlib.contextmanager
def plain(tree):
    """tmpfs itself, in the place of a mount."""
    class Plain:
        @staticmethod
        def partition():
            return tree
    yield Plain


def for_scale(b, rows):
    """tmpfs, and libfuse's example over it: one round of each tool, in seconds for all rows.  The
    example holds a descriptor for each file that the kernel knows, so it may be given fewer."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted, rows = rows, min(rows, hard // 2)

    def scaled(found):
        return {kind: seconds * wanted / rows for kind, seconds in found.items()}
    source = b.tmp() / "rows"
    source.mkdir()
    with b.mount_memfs(rows) as m:
        b.run(["cp", "-r", "--preserve=timestamps", m.partition(), source])
    tree = source / "p0000"
    yield "tmpfs", scaled(tools(b, lambda: plain(tree)))

    @contextlib.contextmanager
    def passthrough():
        with b.mount_passthrough(source) as m:
            m.tree = m.path
            yield m
    try:
        yield "passthrough_ll", scaled(tools(b, passthrough))
    except Failure as e:  # for scale only: the figures stand without it
        b.progress(f"passthrough_ll: {e}")


def measure(b):
    rows, rounds = b.pick(20_000, 100_000), 3
    store = b.store(rows, copy=False)
    targets = {"grep -r": 1.3, "tar": 1.3, "rsync -a, first": 1.3, "rsync -a, unchanged": 1.2}
    ours = {}
    for kind, pair in compare(b, lambda: tools(b, lambda: b.mount_rowfs(store)),
                              lambda: tools(b, lambda: b.mount_memfs(rows)), rounds):
        ours[kind] = pair.ours
        yield pair.result(f"{kind} of {rows:,} rows", "s", "memfs", ("<=", targets[kind]))
    yield Result("rsync -a, unchanged: opens", unchanged_opens(b, lambda: b.mount_rowfs(store)),
                 unchanged_opens(b, lambda: b.mount_memfs(rows)), "", "memfs", None, ("<=", 0))
    yield b.alternate(lambda: remove(b, lambda: b.mount_rowfs(b.store(rows))),
                      lambda: remove(b, lambda: b.mount_memfs(rows)),
                      rounds).result(f"rm -r of {rows:,} rows", "s", "memfs", ("<=", 2))
    yield b.alternate(lambda: remove(b, lambda: b.mount_rowfs(b.store(rows), options=["trash=0"])),
                      lambda: remove(b, lambda: b.mount_memfs(rows)),
                      rounds).result(f"rm -r of {rows:,} rows, nothing kept in the trash", "s",
                                     "memfs")
    for name, found in for_scale(b, rows):
        for kind, seconds in found.items():
            yield Result(f"{kind} of {rows:,} rows", ours[kind], seconds, "s", name,
                         ours[kind] / seconds, note="for scale")
