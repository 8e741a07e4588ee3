# SPDX-License-Identifier: MIT
"""What is measured of a process that works for a long time: what it holds, and how long each
operation took."""

import json
import math
import pathlib
import re
import statistics
import time

STEP = 8  # buckets for each doubling: within 9 %


class Clock:
    """How long operations took: of each kind a histogram, apart for those that something broken
    was in the way of."""

    def __init__(self):
        self.kinds = {}

    def add(self, kind, seconds, broken=False):
        found = self.kinds.setdefault(kind, {"calm": {}, "longest": 0.0, "broken": 0, "worst": 0.0})
        if broken:
            found["broken"] += 1
            found["worst"] = max(found["worst"], seconds)
            return
        bucket = int(STEP * math.log2(seconds * 1e6 + 1))
        found["calm"][bucket] = found["calm"].get(bucket, 0) + 1
        found["longest"] = max(found["longest"], seconds)

    def save(self, path):
        """Whole, whenever somebody looks."""
        aside = pathlib.Path(f"{path}.new")
        aside.write_text(json.dumps(self.kinds))
        aside.rename(path)

    def merge(self, path):
        for kind, other in json.loads(pathlib.Path(path).read_text()).items():
            mine = self.kinds.setdefault(kind, {"calm": {}, "longest": 0.0, "broken": 0,
                                                "worst": 0.0})
            for bucket, n in other["calm"].items():
                mine["calm"][int(bucket)] = mine["calm"].get(int(bucket), 0) + n
            mine["broken"] += other["broken"]
            for longest in "longest", "worst":
                mine[longest] = max(mine[longest], other[longest])


def count(found):
    return sum(found["calm"].values())


def quantile(found, q):
    """Seconds."""
    left = q * count(found)
    for bucket in sorted(found["calm"]):
        left -= found["calm"][bucket]
        if left <= 0:
            return min((2 ** ((bucket + 1) / STEP) - 1) / 1e6, found["longest"])
    return 0.0


def held(pid, store):
    """What a process and its store hold now: KiB, numbers, and bytes."""
    proc = pathlib.Path(f"/proc/{pid}")
    memory = dict(re.findall(r"^(Rss|Pss):\s*(\d+)", (proc / "smaps_rollup").read_text(), re.M))
    threads = re.search(r"^Threads:\s*(\d+)", (proc / "status").read_text(), re.M)[1]
    sizes = {}
    for name, path in ("store", store), ("log", f"{store}-wal"):
        try:
            sizes[name] = pathlib.Path(path).stat().st_size
        except FileNotFoundError:
            sizes[name] = 0
    return {"at": time.monotonic(), "rss": int(memory["Rss"]), "pss": int(memory["Pss"]),
            "threads": int(threads), "fds": len(list((proc / "fd").iterdir())), **sizes}


# How much may be more in the last quarter of a run than in the second one: the share, and what is
# nothing in any case.  Memory and files first fill up to what they are bounded by.
ALLOWED = {"rss": (0.1, 4096), "pss": (0.1, 4096), "fds": (0.0, 8), "threads": (0.0, 4),
           "store": (0.1, 8 << 20), "log": (0.5, 64 << 20)}
SOON = "fds", "threads"
MINUTES = 15


def growth(plateaus):
    """(what, before, after, by the hour, flat) of each figure; plateaus: at times when all was
    quiet.  flat is None where the run was too short to tell."""
    quarter = len(plateaus) // 4
    if quarter < 1:
        return []
    found, half = [], plateaus[len(plateaus) // 2:]
    long = plateaus[-1]["at"] - plateaus[0]["at"] >= MINUTES * 60
    for what, (share, least) in ALLOWED.items():
        before = statistics.median(p[what] for p in plateaus[quarter:2 * quarter])
        after = statistics.median(p[what] for p in plateaus[-quarter:])
        slope = 3600 * statistics.linear_regression(
            [p["at"] for p in half], [p[what] for p in half]).slope if len(half) > 1 else 0.0
        flat = after - before <= max(share * before, least)
        found.append((what, before, after, slope, flat if long or what in SOON else None))
    return found


def milliseconds(seconds):
    ms = seconds * 1000
    return f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


COLUMNS = ("operation", "count", "p50", "p99", "p99.9", "longest", "while broken", "longest then")


def table(clock):
    """Rows of the table of latencies, the head first; times in milliseconds."""
    rows = [COLUMNS]
    for kind, found in sorted(clock.kinds.items()):
        rows.append((kind, str(count(found)), *(milliseconds(quantile(found, q))
                                                for q in (0.5, 0.99, 0.999)),
                     milliseconds(found["longest"]), str(found["broken"]),
                     milliseconds(found["worst"])))
    return rows


def as_text(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(
        c.ljust(n) if i == 0 else c.rjust(n) for i, (c, n) in enumerate(zip(r, widths))).rstrip()
        for r in rows)


def as_markdown(rows):
    lines = ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join([lines[0], "| --- |" + " ---: |" * (len(rows[0]) - 1), *lines[1:]])
