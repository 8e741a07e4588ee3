# SPDX-License-Identifier: MIT
"""REST queries with a filter on a property: beside Azurite, and beside a bare SQLite scan.

A figure is the rows of the table that one CPU looks at in a second, over whole walks: the
generator follows the continuation tokens and checks the number of rows that match.  If every row
matches, the walk ends with the time, since Azurite looks at the whole table for each page.
FILTER_ROWS in the environment sets other sizes, such as FILTER_ROWS=1000000.
"""

import os
import statistics

from bench import Failure
from figures_rest import azurite, rowfs

GROUP = "filter"
SIZES = (4000, 100000)
CALLERS = (1, 8)


def row_of_batch(batch, j):
    """The rows of rest_load's fill, as rest_text.c numbers them."""
    return batch // 100 * 10000 + j * 100 + batch % 100


def values(i):
    """What rest_text.c puts into row i, as far as the filters below look at it."""
    v = i * 2654435761
    return {"Rating": 10 + v % 90, "Visits": 9 * 10**9 + v % 10**9, "Tag": (v >> 16) % 100,
            "Year": (v >> 24) % 100, "Active": (v >> 20) % 100 != 0}


# type; the filter that matches none, about 1 %, all
FILTERS = (
    ("an Int32", (("Rating lt 0", lambda r: False),
                  ("Rating eq 33", lambda r: r["Rating"] == 33),
                  ("Rating ge 0", lambda r: True))),
    ("an Int64", (("Visits lt 0L", lambda r: False),
                  ("Visits lt 9010000000L", lambda r: r["Visits"] < 9010000000),
                  ("Visits ge 0L", lambda r: True))),
    ("a String", (("Tag eq 'none'", lambda r: False),
                  ("Tag eq 'tag-07'", lambda r: r["Tag"] == 7),
                  ("Tag ne 'none'", lambda r: True))),
    ("a DateTime", (("Born gt datetime'2100-01-01T00:00:00Z'", lambda r: False),
                    ("Born lt datetime'2001-01-01T00:00:00Z'", lambda r: r["Year"] == 0),
                    ("Born lt datetime'2100-01-01T00:00:00Z'", lambda r: True))),
    ("a Boolean", (("Active eq true and Active eq false", lambda r: False),
                   ("Active eq false", lambda r: not r["Active"]),
                   ("Active eq true or Active eq false", lambda r: True))),
)
SHARES = ("none match", "1 % match", "all match")


def looked_at(b, server, rows, text, matching, callers):
    """Rows a second, and microseconds of the server's CPU for each."""
    everything, before = matching == rows, b.cpu_seconds(server.pid)
    got = server.load("query", rows=matching, filter=text, connections=callers,
                      milliseconds=b.pick(500, 2000), whole=0 if everything else 1)
    rate = got["rows_per_s"] if everything else got["walks_per_s"] * rows
    return rate, (b.cpu_seconds(server.pid) - before) / (rate * got["seconds"]) * 1e6


def bare_scan(b, server, rows):
    """A store of bare SQLite with the same rows, and its rows a second."""
    text, store = b.tmp() / "rows.ndjson", b.tmp() / "bare.db"
    b.run(f"{b.rowfs} export {server.store} devstoreaccount1/bench > {text}", cpu=None)
    b.run([b.tool("sqlite_bare"), "load", store, text], cpu=None)

    def scan():
        n, seconds = b.run([b.tool("sqlite_bare"), "scan", store]).out.split()
        if int(n) != rows:
            raise Failure(f"the bare scan sees {n} rows of {rows}")
        return rows / float(seconds)
    return scan


def of_size(b, rows):
    table = [values(row_of_batch(batch, j)) for batch in range(rows // 100) for j in range(100)]
    rounds = b.pick(1, 3)
    with rowfs(b) as ours, azurite(b) as theirs:
        for server in (ours, theirs):
            b.progress(f"filter: {rows:,} rows")
            server.fill(rows)
        scan = bare_scan(b, ours, rows)
        for kind, filters in FILTERS:
            for share, (text, matches) in zip(SHARES, filters):
                matching = sum(map(matches, table))
                for callers in CALLERS:
                    yield measured(b, (ours, theirs), f"REST filter on {kind}, {share}",
                                   (rows, text, matching, callers), rounds)
                if share == SHARES[0]:
                    pair = b.alternate(lambda: looked_at(b, ours, rows, text, 0, 1)[0], scan,
                                       rounds)
                    yield pair.result(f"REST filter on {kind}, {share}, {rows:,} rows", "rows/s",
                                      "bare SQLite scan with bodies", (">=", 0.66))


def measured(b, servers, name, query, rounds):
    rows, _, _, callers = query
    cpu = ([], [])

    def rate(which):
        per_second, each = looked_at(b, servers[which], *query)
        cpu[which].append(each)
        return per_second
    pair = b.alternate(lambda: rate(0), lambda: rate(1), rounds)
    mine, other = map(statistics.median, cpu)
    return pair.result(
        f"{name}, {rows:,} rows, {callers} caller{'s' if callers > 1 else ''}", "rows/s",
        "Azurite", (">=", 2), f"{mine:.2f} and {other:.2f} µs of CPU a row")


def measure(b):
    sizes = os.environ.get("FILTER_ROWS")
    for rows in map(int, sizes.split(",")) if sizes else SIZES:
        yield from of_size(b, rows)
