# SPDX-License-Identifier: MIT
"""How many requests a tool costs on the mount of an account elsewhere: as few as the protocol allows.

Each command runs on a fresh mount.  Names are looked up one by one: the list of the tables, the partition,
the row.
"""

import concurrent.futures
import json
import os
import subprocess
import time

import pytest
from rest_client import ok
from tools import get, put, sh, wait_for

from conftest import ENV
from test_client import PROGRAM
from test_transfer import lines
from there import proxied, second, there_with  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
PARTITIONS, ROWS = 3, 5
TABLES = KEYS = PARTITION = ROW = PAGE = 1
# The second partition that is read shows a walk: the next page has all rows from there on.
WALK = TABLES + KEYS + PARTITION + PAGE
NAME = TABLES + PARTITION + ROW  # a path of a row
CHANGE = 1
COSTS = [
    # what, the command, its requests, the same command's at once again
    ("ls of a table", "ls Posts", TABLES + KEYS, 0),
    ("ls of a partition", "ls Posts/p0", TABLES + PARTITION + KEYS, 0),
    ("ls -l of a partition", "ls -l Posts/p0", TABLES + PARTITION + KEYS, 0),
    ("ls -l of a table", "ls -l Posts", TABLES + KEYS, 0),
    ("cat", "cat Posts/p0/001.json", NAME, 0),
    ("grep -r", "grep -r N Posts", WALK, 0),
    ("find", "find Posts -size +0", WALK, 0),
    ("du", "du -s Posts", WALK, 0),
    ("rsync", "rsync -a Posts/ ../../back/", WALK, 0),
    ("cp -r out", "cp -r Posts ../../copy", WALK, 0),
    ("cp in", "cp ../../row.json Posts/p0/new.json", NAME + CHANGE, CHANGE),
    ("cp over", "cp ../../row.json Posts/p0/001.json", NAME + CHANGE, CHANGE),
    ("sed -i", "sed -i s/1/2/ Posts/p0/001.json", NAME + CHANGE, CHANGE),
    ("mv", "mv Posts/p0/001.json Posts/p0/new.json", NAME + ROW + CHANGE, None),
    ("mv to another partition", "mv Posts/p0/001.json Posts/p1/new.json", NAME + PARTITION + ROW + 2 * CHANGE, None),
    ("rm", "rm Posts/p0/001.json", NAME + CHANGE, None),
    ("rm -r of a partition", "rm -r Posts/p0", TABLES + PARTITION + KEYS + ROWS * CHANGE, None),
]


@pytest.mark.parametrize("command, first, again", [pytest.param(*c[1:], id=c[0]) for c in COSTS])
def test_a_tool_costs_the_least_requests(second, work, command, first, again):  # noqa: F811
    second.account("import", "Posts", input=lines({"PartitionKey": f"p{i}", "RowKey": f"{j:03}", "N": 1}
                                                  for i in range(PARTITIONS) for j in range(ROWS)))
    (work / "row.json").write_text('{"N":1}')
    mnt = second.mounted("cache=3600")
    assert second.cost(lambda: sh(command, cwd=mnt)) == first
    if again is not None:
        assert second.cost(lambda: sh(command, cwd=mnt)) == again


@pytest.mark.parametrize("rows, pages", [(1, 1), (3, 2)])
def test_a_walk_of_many_small_partitions_costs_pages_of_rows(second, rows, pages):  # noqa: F811
    """400 partitions: a request for each would take 20 seconds where an answer takes 50 ms."""
    second.account("import", "Posts", input=lines({"PartitionKey": f"p{i:04}", "RowKey": f"{j}", "N": i}
                                                  for i in range(400) for j in range(rows)))
    mnt = second.mounted("cache=3600")
    found = []
    cost = second.cost(lambda: found.append(sh("grep -r N Posts", cwd=mnt).stdout))
    assert len(found[0].splitlines()) == 400 * rows
    # The last partition of a page may not be whole, and is read again.
    assert TABLES + pages * KEYS < cost <= TABLES + pages * KEYS + PARTITION + pages * PAGE + 1


def elsewhere(mnt):
    """What the mount says that it has sent."""
    return json.loads((mnt.parent / ".rowfs/stats.json").read_text())["requests_elsewhere"]


def test_a_mount_counts_its_requests_by_kind(rowfs, second):  # noqa: F811
    second.account("import", "Posts", input=lines([{"PartitionKey": "p", "RowKey": "r", "N": 1}]))
    mnt = second.mounted("cache=3600")
    before = second.requests()
    os.listdir(mnt / "Posts/p")
    put(mnt / "Posts/p/r.json", '{"N":2}')
    os.rename(mnt / "Posts/p/r.json", mnt / "Posts/p/s.json")
    (mnt / "Posts/p/s.json").unlink()
    (mnt / "Table").mkdir()
    want = {"tables": 2, "query": 2, "read": 0, "change": 1, "delete": 1, "group": 1, "again": 0}
    assert elsewhere(mnt) == want
    assert second.requests() - before == sum(want.values())
    metrics = (mnt.parent / ".rowfs/metrics").read_text()
    for kind, n in want.items():
        line = "rowfs_elsewhere_requests_again_total" if kind == "again" else \
            f'rowfs_elsewhere_requests_total{{kind="{kind}"}}'
        assert f"\n{line} {n}\n" in metrics
    for store in (second.mount.path, second.account.url, f"{second.account.url}/"):
        found = json.loads(stat(rowfs, second, store, "--json").stdout)
        assert (found["tables"], found["requests_elsewhere"]) == (2, want)
        assert "requests    7 since it was mounted: 0 read, 2 query, 1 change, 1 delete, 1 group, 2 tables\n" in \
            stat(rowfs, second, store).stdout
    assert second.requests() - before == sum(want.values())


def stat(rowfs, there, *words):
    """stat as the user who has mounted the account."""
    return subprocess.run([rowfs.program, "stat", *words], env={**ENV, "XDG_CACHE_HOME": str(there.work / "cache")},
                          capture_output=True, text=True, timeout=60)


def test_stat_of_an_account_that_is_not_mounted_says_so(rowfs, second):  # noqa: F811
    second.mounted()
    second.mount.umount()
    done = stat(rowfs, second, second.account.url)
    assert done.returncode == 1 and "is not mounted by you" in done.stderr


def test_tries_again_are_counted(there_with):  # noqa: F811
    there = there_with("fault=busy op=insert count=2")
    ok(there.client.create_table("Posts"))
    mnt = there.mounted()
    (mnt / "Posts/p").mkdir()
    put(mnt / "Posts/p/r.json", "{}")
    assert {k: n for k, n in elsewhere(mnt).items() if k in ("change", "again")} == {"change": 3, "again": 2}


@pytest.mark.parametrize("rps, least", [(1000000, 0), (20, 0.5)])
def test_requests_of_a_mount_keep_the_rate_that_is_asked_for(second, rps, least):  # noqa: F811
    """All threads share it: 20 rows at once are 19 distances of 50 ms."""
    second.account("import", "Posts", input=lines({"PartitionKey": "p", "RowKey": f"{n}", "N": 1} for n in range(20)))
    part = second.mounted("cache=0", f"max-rps={rps}") / "Posts/p"
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(get, (part / f"{n}.json" for n in range(20))))
    assert time.monotonic() - started > least


def test_a_row_is_read_while_the_service_looks_for_another_partition(second, proxied):  # noqa: F811
    second.account("import", "Posts", input=lines([{"PartitionKey": p, "RowKey": "r", "N": 1} for p in ("near", "far")]))
    table = second.mounted("cache=3600", "timeout=60") / "Posts"
    os.stat(table / "near")
    proxied.held = "far"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        found = pool.submit(os.stat, table / "far")
        wait_for(lambda: not proxied.held or found.done())
        assert get(table / "near/r.json") == b'{"N":1}\n'
        assert not found.done()
        proxied.go_on.set()
        assert found.result()


def test_a_walk_without_a_cache_reads_each_row_once(second, proxied):  # noqa: F811
    """Nothing is kept, so rows of the neighbours would come again with each partition."""
    second.account("import", "Posts", input=lines({"PartitionKey": f"p{i:02}", "RowKey": "r", "S": "x" * 10000}
                                                  for i in range(20)))
    table = second.mounted("cache=0") / "Posts"
    partitions = os.listdir(table)
    before = proxied.bytes
    assert [os.listdir(table / name) for name in partitions] == [["r.json"]] * 20
    assert 20 * 10000 < proxied.bytes - before < 2 * 20 * 10000
