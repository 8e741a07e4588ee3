# SPDX-License-Identifier: MIT
"""What clients of several daemons saw of one store could have happened one after another (CS1 to CS4).

The short form is a few hundred operations, a kill and a pause of the cluster.  The long form, by hand:
ROWFS_OPS=100000 ROWFS_TEST_TIMEOUT=7200 pytest cluster/test_history.py
"""

import concurrent.futures
import itertools
import os
import signal
import threading

import pytest

import history
import rest_client
from clusters import cluster, store  # noqa: F401 (fixtures)
from conftest import add_accounts
from history import ABSENT, PRESENT, UNKNOWN, Operation
from history_clients import TABLE, MountClient, RestClient

OPS = int(os.environ.get("ROWFS_OPS", "0")) or 900
ROUND = 300  # operations on one partition
CLIENTS = 8


# ---- the checker ----

def op(kind, begin, end, answer=True, **more):
    return Operation(kind, "c", begin=begin, end=end, answer=answer, **more)


def write(begin, end, answer=True, conditions=None, **rows):
    return op("write", begin, end, answer, rows=rows, conditions=conditions or {})


BAD = {
    "a read of an old value": [write(0, 1, x=1), write(2, 3, x=2), op("read", 4, 5, 1, row="x")],
    "a value that goes back": [write(0, 9, x=1), op("read", 1, 2, 1, row="x"),
                               op("read", 3, 4, None, row="x")],
    "a lost update": [write(0, 1, x=1), write(2, 5, conditions={"x": 1}, x=2),
                      write(2, 5, conditions={"x": 1}, x=3)],
    "half a change set": [write(0, 1, x=1, y=1), write(2, 9, x=2, y=2),
                          op("list", 3, 4, {"x": 2, "y": 1})],
    "two inserts of one row": [write(0, 5, conditions={"x": ABSENT}, x=1),
                               write(0, 5, conditions={"x": ABSENT}, x=2)],
    "a change that is applied twice": [write(0, float("inf"), UNKNOWN, x=1),
                                       op("read", 1, 2, 1, row="x"), write(3, 4, x=2),
                                       op("read", 5, 6, 1, row="x")],
    "a refusal without a reason": [write(0, 1, x=1), write(2, 3, False, {"x": 1}, x=2)],
}
GOOD = {
    "a write that is seen before its answer": [write(0, 9, x=1), op("read", 1, 2, 1, row="x"),
                                               op("read", 3, 4, 1, row="x")],
    "writes at once in either order": [write(0, 9, x=1), write(0, 9, x=2),
                                       op("read", 10, 11, 1, row="x")],
    "one of two that compete": [write(0, 1, x=1), write(2, 5, conditions={"x": 1}, x=2),
                                write(2, 5, False, {"x": 1}, x=3)],
    "a lost answer that happened late": [write(0, float("inf"), UNKNOWN, x=1),
                                         op("read", 1, 2, None, row="x"),
                                         op("read", 3, 4, 1, row="x")],
    "a lost answer that never happened": [write(0, float("inf"), UNKNOWN, x=1),
                                          op("read", 1, 2, None, row="x"),
                                          write(3, 4, conditions={"x": ABSENT}, x=2)],
    "a row that goes and comes": [write(0, 1, x=1), write(2, 3, conditions={"x": PRESENT}, x=None),
                                  op("list", 4, 5, {}), write(6, 7, conditions={"x": ABSENT}, x=2)],
}


@pytest.mark.parametrize("name", BAD)
def test_the_checker_finds(name):
    assert history.first_violation(BAD[name]) is not None


@pytest.mark.parametrize("name", GOOD)
def test_the_checker_accepts(name):
    assert history.first_violation(GOOD[name]) is None


def test_the_checker_finds_a_version_that_goes_back():
    told = [op("read", 0, 1, row="x", etag="b"), op("read", 2, 3, row="x", etag="a")]
    assert history.first_earlier_version(told, str) is told[1]
    told[1].begin = 0.5
    assert history.first_earlier_version(told, str) is None


# ---- the store under all of them ----

def play(clients, disturb):
    """Has them do ROUND operations at once, and disturbs them meanwhile."""
    failed = threading.Event()

    def work(client):
        try:
            while not failed.is_set() and sum(len(c.done) for c in clients) < ROUND:
                client.step()
        except BaseException:
            failed.set()
            raise

    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        running = [pool.submit(work, c) for c in clients]
        disturb()
        for r in running:
            r.result()
    return [o for c in clients for o in c.done]


def pause_osd(env):
    """For longer than a request waits."""
    osd = int(env["ROWFS_OSD"])
    os.kill(osd, signal.SIGSTOP)
    threading.Timer(2.5, os.kill, (osd, signal.SIGCONT)).start()


def test_what_clients_of_four_daemons_see_could_have_happened_in_order(
        cluster, rowfs, store, mount, serve):
    add_accounts(rowfs, store)
    mounts, servers = [mount(store) for _ in range(2)], [serve(store) for _ in range(2)]
    table = mounts[0] / rest_client.ACCOUNT / TABLE
    table.mkdir()
    for one in (*mounts, *servers):
        one.allow("(?i)error|timed out")

    def kill():
        servers[0].kill9()
        servers[0] = serve(store)
        servers[0].allow("(?i)error|timed out")

    disturbances = itertools.cycle([lambda: None, kill, lambda: pause_osd(cluster.env)])
    for number in range(OPS // ROUND):
        (table / f"p{number}").mkdir()
        parts = [m / rest_client.ACCOUNT / TABLE / f"p{number}" for m in mounts]
        clients = [RestClient(f"rest{i}", number * 8 + i, lambda i=i: servers[i % 2], f"p{number}")
                   for i in range(CLIENTS // 2)]
        clients += [MountClient(f"mount{i}", number * 8 + i, parts[i % 2])
                    for i in range(CLIENTS // 2)]
        done = play(clients, next(disturbances))
        wrong = history.first_violation(done)
        assert wrong is None, f"p{number}: {wrong}"
        wrong = history.first_earlier_version(done, rest_client.moment)
        assert wrong is None, f"p{number}: {wrong} {wrong.etag}"
