# SPDX-License-Identifier: MIT
"""Queues: messages put, looked at, taken and deleted, each by an operation of its own.

One yardstick is bare SQLite with one table as one would write a queue there (queue_load.c): a
transaction for each operation, one connection, and a lock around it where there are threads.  The
front ends are left out on both sides.  With one thread the rates are by CPU time, so that other
programs on the machine matter little.

The other is Azurite over HTTP (queue_http.py), with its queues in memory, where nothing is durable;
rowfs answers a change after fdatasync(2).  CPU time of the server is shown beside the requests a
second.
"""

import contextlib
import itertools

from bench import HERE, Failure
from figures_rest import ACCOUNT, KEY, Server, azurite, free_port, wait_for

GROUP = "queue"
PHASES = ("put", "peek", "take", "delete")
NAMES = {"put": "put", "peek": "peek", "take": "get", "delete": "delete"}


def rates(b, side, messages, depth, threads, beside=0):
    """Operations a second by phase, in a fresh store in memory, with so many messages in another
    queue."""
    d = b.tmp()
    out = b.run([b.tool("queue_load"), side, d / "queue", messages, depth, threads, beside],
                cpu=None if threads > 1 else b.cpu).out
    for f in d.iterdir():
        f.unlink()
    return {name: float(rate) for name, rate in (line.split() for line in out.splitlines())}


def beside_sqlite(b, messages, rounds):
    for depth, threads in ((100, 1), (100000, 1), (100, 16)):
        b.progress(f"a queue of {depth}, {threads} threads")
        pairs = {name: [] for name in PHASES}
        for i in range(rounds):
            sides = ("ours", "bare") if i % 2 == 0 else ("bare", "ours")
            both = {s: b.sample(lambda s=s: rates(b, s, messages, depth, threads)) for s in sides}
            for name in PHASES:
                pairs[name].append((both["ours"][name], both["bare"][name]))
        for name in PHASES:
            yield b.pair(pairs[name]).result(
                f"{NAMES[name]} of a message", "messages/s", "bare SQLite, one table", (">=", 0.4),
                f"{depth} others in the queue; {threads} thread{'s' * (threads > 1)}")


def depth(b, messages, rounds):
    """The same in a long queue and in a short one: in a store that has as many messages elsewhere, and
    in one that has no others.  A larger store has deeper trees, whatever queue its messages are in."""
    b.progress("a message in a long queue and in a short one")
    long, shorts = (100000, 0), {"100 others, and 100,000 in another queue": (100, 100000),
                                 "100 others, and no other queue": (100, 0)}
    pairs = {(name, short): [] for short in shorts for name in PHASES}
    for i in range(rounds):
        sides = [long, *shorts.values()]
        both = {s: b.sample(lambda s=s: rates(b, "ours", messages, s[0], 1, s[1]))
                for s in (sides if i % 2 == 0 else sides[::-1])}
        for name, short in pairs:
            pairs[name, short].append((1e6 / both[long][name], 1e6 / both[shorts[short]][name]))
    for name, short in pairs:
        yield b.pair(pairs[name, short]).result(
            f"{NAMES[name]} of a message, 100,000 others", "us", short, ("<=", 1.1))


@contextlib.contextmanager
def rowfs(b, service="queue"):
    store = b.tmp(tmpfs=False) / "store.db"
    for args in (["init", store], ["account", "add", store, ACCOUNT, "--key", KEY]):
        b.run([b.rowfs, *args])
    port = free_port()
    with b.server([b.rowfs, "serve", store, f"--rest={service}=127.0.0.1:{port}"]) as proc:
        wait_for(proc, port)
        ours = Server(b, proc, port)
        ours.store = store
        yield ours


def token(b, service="queue", permissions="rwdlacup"):
    """An account SAS for all of a service; both servers have the same key."""
    store = b.tmp() / "store.db"
    for args in (["init", store], ["account", "add", store, ACCOUNT, "--key", KEY]):
        b.run([b.rowfs, *args])
    url = b.run([b.rowfs, "sas", store, ACCOUNT, f"--service={service}", f"--permissions={permissions}",
                 "--resource-types=sco", "--expiry=+1d"]).out
    return url.strip().partition("?")[2]


def load(b, server, sas, queues, messages, connections):
    """{phase: (requests a second, CPU milliseconds of the server for one)}, in a fresh queue.  Azurite
    ends a connection now and then; then all is done once more."""
    for left in (4, 3, 2, 1, 0):
        try:
            out = b.run(["/usr/bin/python3", HERE / "queue_http.py", server.port, ACCOUNT,
                         f"q{next(queues)}", sas, server.pid, messages, connections],
                        cpu=b.other_cpu).out
        except Failure as e:
            if left == 0 or "ConnectionResetError" not in str(e):
                raise
            continue
        return {name: (float(rate), float(cpu))
                for name, rate, cpu in (line.split() for line in out.splitlines())}


def beside_azurite(b, rounds):
    sas, queues = token(b), itertools.count(100)
    with rowfs(b) as ours, azurite(b, service="queue") as theirs:
        for connections, messages in ((32, 1000), (1, 200)):
            b.progress(f"queues: beside Azurite, {connections} connections")
            rows = {(name, what): [] for name in PHASES for what in (0, 1)}
            for i in range(rounds):
                sides = (ours, theirs) if i % 2 == 0 else (theirs, ours)
                both = {s: b.sample(lambda s=s: load(b, s, sas, queues, messages, connections))
                        for s in sides}
                for name, what in rows:
                    rows[name, what].append((both[ours][name][what], both[theirs][name][what]))
            for name in PHASES:
                target = (">=", 10) if connections > 1 else None
                pair = b.pair(rows[name, 0])
                cpu = b.pair([(max(o, 0.001), t) for o, t in rows[name, 1]])
                yield pair.result(
                    f"queue: {NAMES[name]}, {connections} connection{'s' * (connections > 1)}",
                    "messages/s", "Azurite", target,
                    f"CPU of the server: {1000 * cpu.ours:.0f} against {1000 * cpu.theirs:.0f} us"
                    f"{'' if name == 'peek' else '; rowfs durable, Azurite not'}")


def measure(b):
    messages, rounds = b.pick(20000, 100000), b.pick(3, 7)
    yield from beside_sqlite(b, messages, rounds)
    yield from depth(b, messages, rounds)
    yield from beside_azurite(b, b.pick(3, 7))
