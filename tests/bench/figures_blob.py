# SPDX-License-Identifier: MIT
"""Blobs: put and get, page writes, page ranges and listings over HTTP, and files of a mount.

The first yardstick is Azurite over HTTP (blob_http.py), with its blobs in memory, where nothing is
durable; rowfs answers a change after fdatasync(2).  The second is a program that writes the same bytes to
a file on the disk of the store, and syncs them too; for it rowfs is asked over HTTP and in a mount.
"""

import contextlib
import itertools
import os
import random
import time

from bench import HERE, Failure, Result
from figures_queue import rowfs, token
from figures_rest import ACCOUNT, KEY, azurite

GROUP = "blob"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# What a phase is called, its unit, and the target beside Azurite and beside a file.
PHASES = {
    "put4k": ("put of 4 KiB", "blobs/s", None), "get4k": ("get of 4 KiB", "blobs/s", None),
    "put1m": ("put of 1 MiB", "blobs/s", None), "get1m": ("get of 1 MiB", "blobs/s", None),
    "putbig": ("put of a large blob", "MiB/s", None), "getbig": ("get of a large blob", "MiB/s", None),
    "pages": ("page writes of 4 KiB", "writes/s", (">=", 10)),
    "ranges": ("page ranges, the whole list", "lists/s", (">=", 10)),
    "windows": ("page ranges, 10 GiB of 500", "lists/s", (">=", 10)),
    "list": ("listing of blobs", "names/s", None),
}


def load(b, server, sas, names, connections, phases):
    """{phase: (steps a second, CPU milliseconds of the server for one)}, in a fresh container."""
    for left in (4, 3, 2, 1, 0):
        try:
            out = b.run(["/usr/bin/python3", HERE / "blob_http.py", server.port, ACCOUNT,
                         f"c{next(names)}", sas, server.pid, connections,
                         *(f"{k}={v}" for k, v in phases.items())], cpu=b.other_cpu).out
        except Failure as e:
            if left == 0 or "ConnectionResetError" not in str(e):
                raise
            continue
        return {name: (float(rate), float(cpu))
                for name, rate, cpu in (line.split() for line in out.splitlines())}


def beside_azurite(b, ours, sas, names):
    small, disk = b.pick(300, 1000), b.pick(5000, 20000)
    plans = [(16, {"put4k": small, "get4k": small}, b.pick(3, 5)),
             (1, {"put4k": small, "get4k": small, "put1m": 50, "get1m": 50}, b.pick(3, 5)),
             (1, {"putbig": 1024, "getbig": 1024}, b.pick(1, 3)),
             (16, {"pages": disk, "ranges": 5, "windows": 50}, b.pick(1, 3)),
             (16, {"fill": 3000, "list": 3000}, 1)]  # more of them take Azurite many minutes
    with azurite(b, service="blob") as theirs:
        for connections, phases, rounds in plans:
            b.progress(f"blobs: {', '.join(phases)} beside Azurite, {connections} connections")
            samples = {name: [] for name in phases if name in PHASES}
            for i in range(rounds):
                sides = (ours, theirs) if i % 2 == 0 else (theirs, ours)
                both = {s: b.sample(lambda s=s: load(b, s, sas, names, connections, phases))
                        for s in sides}
                for name, kept in samples.items():
                    kept.append((both[ours][name], both[theirs][name]))
            for name, kept in samples.items():
                title, unit, target = PHASES[name]
                cpu = b.pair([(max(o[1], 0.001), max(t[1], 0.001)) for o, t in kept])
                yield b.pair([(o[0], t[0]) for o, t in kept]).result(
                    f"{title}, {connections} connection{'s' * (connections > 1)}", unit, "Azurite", target,
                    f"CPU of the server: {1000 * cpu.ours:.0f} against {1000 * cpu.theirs:.0f} us")


def long_list(b, ours, sas, names):
    n = b.pick(20000, 100000)
    b.progress(f"a listing of {n} blobs")
    got = b.sample(lambda: load(b, ours, sas, names, 16, {"fill": n, "list": n}))
    yield Result(f"listing of {n} blobs", got["list"][0], None, "names/s", "", None)


def many_pages(b, sas, names):
    """Random writes of 512 bytes all over 500 GB: what the store takes, and how the costs grow."""
    for n in b.pick((5000, 50000), (50000, 500000)):
        b.progress(f"{n} page writes")
        plan = {"sectors": n, "ranges": 3, "segments": 5, "windows": 50}
        with rowfs(b, "blob") as ours:
            got = load(b, ours, sas, names, 16, plan)
        size = ours.store.stat().st_size / MIB  # closed, so nothing is in the log alone

        def row(name, value, unit, phase=None):
            note = f"CPU of the server: {1000 * got[phase][1]:.0f} us each" if phase else ""
            return Result(f"{name}, {n} pages over 500 GB", value, None, unit, "", None, note=note)

        yield row("page writes of 512 bytes", got["sectors"][0], "writes/s", "sectors")
        yield row("the store", size, "MiB")
        yield row("all page ranges", 1000 / got["ranges"][0], "ms", "ranges")
        yield row("up to 10,000 page ranges", 1000 / got["segments"][0], "ms", "segments")
        yield row("page ranges of 10 GiB", 1000 / got["windows"][0], "ms", "windows")


# ---- beside files ----

def write_files(directory, size, n):
    """MiB a second of n files that are written, synced and closed."""
    part = random.Random(size).randbytes(min(size, MIB))
    start = time.monotonic()
    for i in range(n):
        fd = os.open(directory / f"{size}-{i}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for _ in range(size // len(part)):
            os.write(fd, part)
        os.fsync(fd)
        os.close(fd)
    return size * n / MIB / (time.monotonic() - start)


def write_pages(directory, n):
    """Writes a second of 4 KiB each all over a sparse file of 500 GB, each synced."""
    chosen, part = random.Random(19), bytes([1]) * 4 * KIB
    fd = os.open(directory / "disk", os.O_WRONLY | os.O_CREAT, 0o600)
    os.ftruncate(fd, 500 * GIB)
    start = time.monotonic()
    for _ in range(n):
        os.pwrite(fd, part, chosen.randrange(500 * GIB // len(part)) * len(part))
        os.fdatasync(fd)
    rate = n / (time.monotonic() - start)
    os.close(fd)
    return rate


def beside_files(b, ours, sas, names):
    directory = b.tmp(tmpfs=False)
    big = b.pick(256, 1024)
    plans = [("put4k", b.pick(200, 1000), 4 * KIB), ("put1m", b.pick(30, 100), MIB), ("putbig", big, big * MIB)]
    for phase, n, size in plans:
        title, _, _ = PHASES[phase]
        b.progress(f"blobs: {title} beside a file")
        scale = 1 if phase == "putbig" else size / MIB
        yield b.alternate(
            lambda p=phase, n=n, s=scale: s * load(b, ours, sas, names, 1, {p: n})[p][0],
            lambda p=phase, n=n, s=size: write_files(directory, s, 1 if p == "putbig" else n),
            b.pick(3, 5)).result(f"{title}, over HTTP", "MiB/s", "a file, synced", (">=", 0.5))
    n = b.pick(300, 1000)
    b.progress("blobs: page writes beside a file")
    yield b.alternate(lambda: load(b, ours, sas, names, 1, {"pages": n})["pages"][0],
                      lambda: write_pages(directory, n), b.pick(3, 5)).result(
        "page writes of 4 KiB, over HTTP", "writes/s", "a sparse file, each synced", (">=", 0.5))


@contextlib.contextmanager
def container(b):
    """The directory of a container in a mount, on the disk."""
    store = b.tmp(tmpfs=False) / "store.db"
    for args in (["init", store], ["account", "add", store, ACCOUNT, "--key", KEY]):
        b.run([b.rowfs, *args])
    with b.mount_rowfs(store) as m:
        directory = m.path / ACCOUNT / ".blob" / "bench"
        directory.mkdir()
        yield directory


def mounted(b):
    directory, big = b.tmp(tmpfs=False), b.pick(256, 1024)
    with container(b) as blobs:
        for size, n in ((4 * KIB, b.pick(200, 1000)), (MIB, b.pick(30, 100)), (big * MIB, 1)):
            b.progress(f"blobs: files of {size // KIB} KiB in the mount")
            yield b.alternate(lambda s=size, n=n: write_files(blobs, s, n),
                              lambda s=size, n=n: write_files(directory, s, n), b.pick(3, 5)).result(
                f"a blob of {size // KIB} KiB, written in the mount", "MiB/s", "a file, synced", (">=", 0.5))


def measure(b):
    sas, names = token(b, "blob", "rwdlac"), itertools.count(100)
    yield from many_pages(b, sas, names)
    with rowfs(b, "blob") as ours:
        yield from beside_files(b, ours, sas, names)
        yield from long_list(b, ours, sas, names)
        yield from beside_azurite(b, ours, sas, names)
    yield from mounted(b)
