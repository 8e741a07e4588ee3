# SPDX-License-Identifier: MIT
"""Many slow queries at once: everybody else is served as if they were not there, and each of
them gets its answer in the end."""

import json
import threading
import time

import pytest
import rest_client
from rest_client import entity_path, ok

ROWS = 60000
SLOW = 40  # more than there are threads for anything
# A thousand comparisons for each row, which all have to be made.
FILTER = "N eq 4711 or " + " or ".join(f"N eq {ROWS + i}" for i in range(990))
ROUNDS = 20


@pytest.fixture
def load(rest_store, rowfs, serve):
    """A server with a table Big of one partition, and how to make a client of it."""
    lines = "".join(json.dumps({"PartitionKey": "p", "RowKey": f"r{i:06}", "N": i}) + "\n"
                    for i in range(ROWS))
    rowfs("import", rest_store, "devstoreaccount1/Big", input=lines)
    return serve(rest_store)


class Slow(threading.Thread):
    """Asks for one row by what only a look at all rows tells, again and again."""

    def __init__(self, client, stop):
        super().__init__()
        self.client, self.stop = client, stop
        self.rounds, self.pages, self.problem = 0, 0, None

    def run(self):
        try:
            while not self.stop.is_set():
                found = []
                for page in self.client.pages("Big", filter=FILTER):
                    found += [row["N"] for row in page.rows]
                    self.pages += 1
                    if self.stop.is_set():
                        return
                assert found == [4711], found
                self.rounds += 1
        except Exception as e:
            self.problem = e
        finally:
            self.client.close()


def measure(client, slow, *actions):
    """How many slow pages were answered during each action, sorted; they take turns."""
    counts = [[] for _ in actions]
    for _ in range(ROUNDS):
        for action, into in zip(actions, counts):
            before = sum(s.pages for s in slow)
            action(client)
            into.append(sum(s.pages for s in slow) - before)
        time.sleep(0.005)
    return [sorted(c) for c in counts]


def by_filter(client):
    r = ok(client.query("Big", filter="PartitionKey eq 'p' and RowKey eq 'r000007'"), 200)
    assert [row["N"] for row in r.rows] == [7]


def by_keys(client):
    assert ok(client.request("GET", entity_path("Big", "p", "r000007")), 200).json["N"] == 7


def by_range(client):
    r = ok(client.query("Big", filter="PartitionKey eq 'p' and RowKey ge 'r000007'", top=3), 200)
    assert [row["N"] for row in r.rows] == [7, 8, 9]


def first_rows(client):
    assert len(ok(client.query("Big", top=10), 200).rows) == 10


def write(client):
    ok(client.request("PUT", entity_path("Big", "q", "w"), {"N": -1}), 204)


def test_slow_queries_hold_nobody_else_up(load):
    stop = threading.Event()
    slow = [Slow(rest_client.Client(load.port), stop) for _ in range(SLOW)]
    for s in slow:
        s.start()
    try:
        while not sum(s.pages for s in slow):  # all have asked, and those in front were answered
            time.sleep(0.01)
        with rest_client.Client(load.port) as client:
            counts = measure(client, slow, by_filter, by_range, by_keys, first_rows, write)
    finally:
        stop.set()
        for s in slow:
            s.join()
    assert [s.problem for s in slow if s.problem] == []
    assert sum(s.pages for s in slow) > 0
    for c in counts:
        # The CPUs are busy, and the machine may be: but no queue of slow pages was in front.
        assert c[len(c) // 2] <= 3 and c[-1] < SLOW, c


def test_each_slow_query_ends_with_its_row(load):
    """Whatever the pages are, and however many ask at once."""
    found, problems = [], []

    def run():
        try:
            with rest_client.Client(load.port) as client:
                found.append([row["N"] for row in client.all("Big", filter=FILTER)])
        except Exception as e:
            problems.append(e)

    threads = [threading.Thread(target=run) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert problems == [] and found == [[4711]] * 12
