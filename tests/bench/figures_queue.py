# SPDX-License-Identifier: MIT
"""Queues: messages put, looked at, taken and deleted, each by an operation of its own.

The yardstick is bare SQLite with one table as one would write a queue there (queue_load.c): a
transaction for each operation, one connection, and a lock around it where there are threads.  The
front ends are left out on both sides.
"""

GROUP = "queue"
PHASES = ("put", "peek", "take", "delete")


def rates(b, side, messages, depth, threads):
    """Operations a second by phase, in a fresh store in memory."""
    d = b.tmp()
    out = b.run([b.tool("queue_load"), side, d / "queue", messages, depth, threads],
                cpu=None if threads > 1 else b.cpu).out
    for f in d.iterdir():
        f.unlink()
    return {name: float(rate) for name, rate in (line.split() for line in out.splitlines())}


def measure(b):
    messages, rounds = b.pick(20000, 100000), b.pick(3, 5)
    for depth, threads in ((100, 1), (100000, 1), (100, 16)):
        b.progress(f"a queue of {depth}, {threads} threads")
        pairs = {name: [] for name in PHASES}
        for _ in range(rounds):
            both = [b.sample(lambda s=s: rates(b, s, messages, depth, threads))
                    for s in ("ours", "bare")]
            for name in PHASES:
                pairs[name].append(tuple(side[name] for side in both))
        for name in PHASES:
            target = None if name == "peek" else (">=", 0.4)
            yield b.pair(pairs[name]).result(
                f"{name} of a message", "messages/s", "bare SQLite, one table", target,
                f"{depth} others in the queue; {threads} thread{'s' * (threads > 1)}")
