# SPDX-License-Identifier: MIT
"""Clients of one partition that keep what they did as a history (history.py)."""

import collections
import contextlib
import errno
import http.client
import itertools
import json
import os
import random
import time

import rest_client
from history import ABSENT, PRESENT, UNKNOWN, Operation
from tools import get, put

ROWS = ["r0", "r1"]
TABLE = "Table"
NOTHING_DONE = {errno.ESTALE, errno.EAGAIN, errno.EBUSY, errno.ENOSPC}
REFUSED = (503, 507)  # before anything happened


class Client:
    """Does operations on the rows of one partition and keeps what it did, how often it was told what
    in place of a result, and its longest wait for an answer."""

    numbers = itertools.count(1)
    large = 0.1  # the share of rows that are too large for the object of their directory

    def __init__(self, name, seed):
        self.name, self.random = name, random.Random(seed)
        self.done, self.etags = [], {}
        self.told, self.longest = collections.Counter(), 0

    def value(self):
        return next(Client.numbers)

    def document(self, value):
        more = {"w": "x" * 20000, "x": "y" * 20000}
        return {"v": value, **(more if self.random.random() < self.large else {})}

    def step(self):
        kind = self.random.choices(*zip(*self.KINDS))[0]
        self.do(kind, self.random.choice(ROWS))

    def do(self, kind, row):
        begin = time.monotonic()
        operation = Operation(kind, self.name, row=row, begin=begin)
        try:
            kept = getattr(self, kind)(operation, row)
        finally:
            self.longest = max(self.longest, time.monotonic() - begin)
        if kept is not False:
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
            self.told["connection refused"] += 1
            raise
        except (OSError, http.client.HTTPException) as e:
            self.told["no answer" if isinstance(e, TimeoutError) else "connection lost"] += 1
            self.http = None
            return None
        self.tell(response)
        return None if response.status == 500 else response

    def tell(self, response):
        if response.status >= 500:
            self.told[f"{response.status} {response.code}"] += 1

    def settle(self, operation, response, yes, no=()):
        """Of a write; False: it was refused before anything happened."""
        if response is None:
            return True
        if response.status in REFUSED:
            return False
        assert response.status in (*yes, *no), (str(operation), response)
        operation.answer = response.status in yes
        return True

    def read(self, operation, row):
        response = self.ask("get", TABLE, self.pk, row)
        if response is None or response.status in REFUSED:
            return False
        assert response.status in (200, 404), response
        operation.answer = response.json["v"] if response.status == 200 else None
        operation.etag = response.etag
        self.etags[row] = (operation.answer, response.etag)
        return True

    def list(self, operation, _):
        response = self.ask("query", TABLE, filter=f"PartitionKey eq '{self.pk}'")
        if response is None or response.status in REFUSED:
            return False
        operation.row, operation.answer = None, {r["RowKey"]: r["v"] for r in response.rows}
        return True

    def put(self, operation, row):
        self.writes(operation, {row: self.value()})
        response = self.ask("upsert", TABLE, self.pk, row, self.document(operation.rows[row]))
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
        response = self.ask("replace", TABLE, self.pk, row, self.document(operation.rows[row]), etag)
        return self.settle(operation, response, (204,), (404, 412))

    def insert(self, operation, row):
        self.writes(operation, {row: self.value()}, {row: ABSENT})
        response = self.ask("insert", TABLE, {"PartitionKey": self.pk, "RowKey": row,
                                              **self.document(operation.rows[row])})
        return self.settle(operation, response, (201, 204), (409,))

    def remove(self, operation, row):
        self.writes(operation, {row: None}, {row: PRESENT})
        return self.settle(operation, self.ask("delete", TABLE, self.pk, row), (204,), (404,))

    def batch(self, operation, row):
        """All rows; one of them on a condition, where this client has read it."""
        old, etag = self.etags.get(row, (None, None))
        self.writes(operation, {r: self.value() for r in ROWS}, {row: old} if old else {})
        ops = [("PUT", rest_client.entity_path(TABLE, self.pk, r),
                {"if-match": etag} if old and r == row else {}, self.document(v))
               for r, v in operation.rows.items()]
        response = self.ask("batch", ops)
        if response is None or response.status in REFUSED:
            return response is None
        parts = [p for p in rest_client.parse_batch(response) if p.status >= 300]
        failed = {p.status for p in parts}
        for part in parts:
            self.tell(part)
        if failed & {500, *REFUSED}:
            return 500 in failed
        assert failed <= {404, 412}, response
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
            self.allow(e, *NOTHING_DONE)

    def allow(self, error, *codes):
        """Fails for another error than these."""
        if error.errno not in codes:
            raise error
        self.told[errno.errorcode[error.errno]] += 1

    def read(self, operation, row):
        try:
            with open(self.part / f"{row}.json", "rb") as f:
                operation.answer = value_in(f.read())
                with contextlib.suppress(OSError):  # the row was replaced since
                    operation.etag = os.getxattr(f.fileno(), "user.rowfs.etag").decode() or None
        except FileNotFoundError:
            operation.answer = None
        except OSError as e:
            self.allow(e, *NOTHING_DONE, errno.EIO)
            return False
        return True

    def list(self, operation, _):
        try:
            lines = get(self.part / ".rows.ndjson").splitlines()
        except OSError as e:
            self.allow(e, *NOTHING_DONE, errno.EIO)
            return False
        rows = [json.loads(line) for line in lines]
        operation.row, operation.answer = None, {r["RowKey"]: r["v"] for r in rows}
        return True

    def unknown(self, error):
        """EIO leaves the outcome open; others say that nothing happened."""
        if error.errno != errno.EIO:
            raise error
        self.allow(error, errno.EIO)

    def put(self, operation, row):
        self.writes(operation, {row: self.value()})
        try:
            put(self.part / f"{row}.json", json.dumps(self.document(operation.rows[row])))
            operation.answer = True
        except OSError as e:
            self.unknown(e)

    def opened(self, row):
        """A descriptor and the value that it loaded; None without a value."""
        with contextlib.ExitStack() as unless_loaded:
            try:
                fd = os.open(self.part / f"{row}.json", os.O_RDWR)
                unless_loaded.callback(os.close, fd)
                old = value_in(os.read(fd, 1 << 17))
            except OSError as e:
                if e.errno != errno.ENOENT:
                    self.allow(e, *NOTHING_DONE, errno.EIO)
                return None
            if old is None:
                return None
            unless_loaded.pop_all()
            return fd, old

    def compare(self, operation, row):
        """Reads the row and writes it by one descriptor."""
        loaded = self.opened(row)
        if loaded is None:
            return False
        fd, old = loaded
        operation.begin = time.monotonic()
        self.writes(operation, {row: self.value()}, {row: old})
        os.truncate(fd, 0)
        os.pwrite(fd, json.dumps(self.document(operation.rows[row])).encode(), 0)
        try:
            os.close(fd)
            operation.answer = True
        except OSError as e:
            operation.answer = False if e.errno == errno.ESTALE else UNKNOWN
            self.allow(e, errno.ESTALE, errno.EIO)
        return True

    def remove(self, operation, row):
        self.writes(operation, {row: None})
        try:
            (self.part / f"{row}.json").unlink()
            operation.answer = True
        except FileNotFoundError:
            operation.kind, operation.answer = "read", None
        except OSError as e:
            self.unknown(e)
