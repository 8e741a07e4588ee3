# SPDX-License-Identifier: MIT
"""What clients of several daemons saw of one store could have happened one after another (CS1 to CS4).

The short form is a few hundred operations, a kill and a pause of the cluster.  The long form, by hand:
ROWFS_OPS=100000 ROWFS_TEST_TIMEOUT=7200 pytest cluster/test_history.py
"""

import concurrent.futures
import contextlib
import errno
import http.client
import itertools
import json
import os
import random
import signal
import threading
import time

import pytest

import history
import rest_client
from clusters import cluster, store  # noqa: F401 (fixtures)
from conftest import add_accounts
from history import ABSENT, PRESENT, UNKNOWN, Operation
from tools import get, put

OPS = int(os.environ.get("ROWFS_OPS", "0")) or 900
ROUND = 300  # operations on one partition
CLIENTS = 8
ROWS = ["r0", "r1"]
TABLE = "Table"
NOTHING_DONE = {errno.ESTALE, errno.EAGAIN, errno.EBUSY}


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


# ---- clients ----

class Client:
    """Does operations on the rows of one partition and keeps what it did."""

    numbers = itertools.count(1)

    def __init__(self, name, seed):
        self.name, self.random = name, random.Random(seed)
        self.done, self.etags = [], {}

    def value(self):
        return next(Client.numbers)

    def step(self):
        kind = self.random.choices(*zip(*self.KINDS))[0]
        self.do(kind, self.random.choice(ROWS))

    def do(self, kind, row):
        operation = Operation(kind, self.name, row=row, begin=time.monotonic())
        if getattr(self, kind)(operation, row) is not False:
            if operation.answer is not UNKNOWN:
                operation.end = time.monotonic()
            if operation.answer is not UNKNOWN or operation.rows:
                self.done.append(operation)

    def writes(self, operation, rows, conditions=None):
        operation.kind, operation.rows, operation.conditions = "write", rows, conditions or {}


class RestClient(Client):
    KINDS = [("read", 2), ("list", 2), ("put", 1), ("compare", 8), ("insert", 2), ("remove", 1),
             ("batch", 3)]

    def __init__(self, name, seed, server, pk):
        super().__init__(name, seed)
        self.server, self.pk, self.http = server, pk, None

    def step(self):
        try:
            super().step()
        except ConnectionRefusedError:
            self.http = None  # nothing happened
            time.sleep(0.02)

    def ask(self, call, *args, **kw):
        """The response; None: there was none, so it is not known what happened."""
        try:
            if self.http is None:
                self.http = rest_client.Client(self.server().port)
            response = getattr(self.http, call)(*args, **kw)
        except ConnectionRefusedError:
            raise
        except (OSError, http.client.HTTPException):
            self.http = None
            return None
        return None if response.status == 500 else response

    def settle(self, operation, response, yes, no=()):
        """Of a write; False: it was refused before anything happened."""
        if response is None:
            return True
        if response.status == 503:
            return False
        assert response.status in (*yes, *no), (str(operation), response)
        operation.answer = response.status in yes
        return True

    def read(self, operation, row):
        response = self.ask("get", TABLE, self.pk, row)
        if response is None or response.status == 503:
            return False
        assert response.status in (200, 404), response
        operation.answer = response.json["v"] if response.status == 200 else None
        operation.etag = response.etag
        self.etags[row] = (operation.answer, response.etag)
        return True

    def list(self, operation, _):
        response = self.ask("query", TABLE, filter=f"PartitionKey eq '{self.pk}'")
        if response is None or response.status == 503:
            return False
        operation.row, operation.answer = None, {r["RowKey"]: r["v"] for r in response.rows}
        return True

    def put(self, operation, row):
        self.writes(operation, {row: self.value()})
        response = self.ask("upsert", TABLE, self.pk, row, {"v": operation.rows[row]})
        operation.etag = response and response.etag
        return self.settle(operation, response, (204,))

    def compare(self, operation, row):
        """Reads it, then replaces what it read."""
        self.do("read", row)
        old, etag = self.etags.get(row, (None, None))
        if old is None:
            return False
        operation.begin = time.monotonic()
        self.writes(operation, {row: self.value()}, {row: old})
        response = self.ask("replace", TABLE, self.pk, row, {"v": operation.rows[row]}, etag)
        return self.settle(operation, response, (204,), (404, 412))

    def insert(self, operation, row):
        self.writes(operation, {row: self.value()}, {row: ABSENT})
        response = self.ask("insert", TABLE, {"PartitionKey": self.pk, "RowKey": row,
                                              "v": operation.rows[row]})
        return self.settle(operation, response, (201, 204), (409,))

    def remove(self, operation, row):
        self.writes(operation, {row: None}, {row: PRESENT})
        return self.settle(operation, self.ask("delete", TABLE, self.pk, row), (204,), (404,))

    def batch(self, operation, row):
        """All rows; one of them on a condition, where this client has read it."""
        old, etag = self.etags.get(row, (None, None))
        self.writes(operation, {r: self.value() for r in ROWS}, {row: old} if old else {})
        ops = [("PUT", rest_client.entity_path(TABLE, self.pk, r),
                {"if-match": etag} if old and r == row else {}, {"v": v})
               for r, v in operation.rows.items()]
        response = self.ask("batch", ops)
        if response is None or response.status == 503:
            return response is None
        failed = [p.status for p in rest_client.parse_batch(response) if p.status >= 300]
        if 503 in failed or 500 in failed:
            return 500 in failed
        assert set(failed) <= {404, 412}, response
        operation.answer = not failed
        return True


def value_in(document):
    """A name that waits for its document is no row (W13)."""
    return json.loads(document)["v"] if document else None


class MountClient(Client):
    KINDS = [("read", 2), ("list", 2), ("put", 2), ("compare", 8), ("remove", 1)]

    def __init__(self, name, seed, part):
        super().__init__(name, seed)
        self.part = part

    def step(self):
        try:
            super().step()
        except OSError as e:
            assert e.errno in NOTHING_DONE, e

    def read(self, operation, row):
        try:
            with open(self.part / f"{row}.json", "rb") as f:
                operation.answer = value_in(f.read())
                with contextlib.suppress(OSError):  # the row was replaced since
                    operation.etag = os.getxattr(f.fileno(), "user.rowfs.etag").decode() or None
        except FileNotFoundError:
            operation.answer = None
        except OSError as e:
            assert e.errno in (*NOTHING_DONE, errno.EIO), e
            return False
        return True

    def list(self, operation, _):
        try:
            lines = get(self.part / ".rows.ndjson").splitlines()
        except OSError as e:
            assert e.errno in (*NOTHING_DONE, errno.EIO), e
            return False
        rows = [json.loads(line) for line in lines]
        operation.row, operation.answer = None, {r["RowKey"]: r["v"] for r in rows}
        return True

    def known(self, error):
        if error.errno != errno.EIO:
            raise error

    def put(self, operation, row):
        self.writes(operation, {row: self.value()})
        try:
            put(self.part / f"{row}.json", json.dumps({"v": operation.rows[row]}))
            operation.answer = True
        except OSError as e:
            self.known(e)

    def compare(self, operation, row):
        """Reads the row and writes it by one descriptor."""
        try:
            fd = os.open(self.part / f"{row}.json", os.O_RDWR)
        except OSError as e:
            assert e.errno in (*NOTHING_DONE, errno.ENOENT, errno.EIO), e
            return False
        old = value_in(os.read(fd, 100))
        if old is None:
            os.close(fd)
            return False
        operation.begin = time.monotonic()
        self.writes(operation, {row: self.value()}, {row: old})
        os.truncate(fd, 0)
        os.pwrite(fd, json.dumps({"v": operation.rows[row]}).encode(), 0)
        try:
            os.close(fd)
            operation.answer = True
        except OSError as e:
            operation.answer = False if e.errno == errno.ESTALE else UNKNOWN
            if e.errno not in (errno.ESTALE, errno.EIO):
                raise
        return True

    def remove(self, operation, row):
        self.writes(operation, {row: None})
        try:
            (self.part / f"{row}.json").unlink()
            operation.answer = True
        except FileNotFoundError:
            operation.kind, operation.answer = "read", None
        except OSError as e:
            self.known(e)


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
