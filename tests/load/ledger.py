# SPDX-License-Identifier: MIT
"""Workers that keep a ledger while everything around them may break: each owns a partition, and
knows of every moment which states it may be in.  A change that was acknowledged leaves one, a
change that was refused leaves the one before, and a change whose outcome was not told leaves
both; then the worker waits until nothing is broken, looks through both front ends, and finds exactly
one of them, whole.  That is Z9.

Between them they do each kind of operation of either front end; how long each took is kept, apart
from those that something broken was in the way of."""

import contextlib
import errno
import http.client
import json
import os
import time

import gauge
from rest_client import entity_path, parse_batch
from soak import fork, must
from test_exact import document, read_to_end
from tools import put

TABLE = "Load"
ROWS = [f"r{i}" for i in range(8)]
LINE = 16  # bytes of a line of the ordinary file
SAVED = 30.0  # seconds: so old are the latencies of a run that was cut off, at most
REFUSALS = errno.ENOSPC, errno.EROFS  # nothing was changed
REFUSED = 403, 507


class Faults:
    """What the workers know of what is being broken."""

    def __init__(self, port):
        self.active = fork.Value("i", 0, lock=False)
        self.ended = fork.Value("d", 0.0, lock=False)
        self.starts = fork.Value("Q", 0, lock=False)  # of the daemon: connections before are dead
        self.port = fork.Value("i", port, lock=False)

    def begin(self):
        self.active.value = 1

    def end(self):
        self.ended.value = time.monotonic()
        self.active.value = 0

    def touched(self, since):
        """Whether anything was broken at any time from then on."""
        return self.active.value or self.ended.value >= since


class Refused(Exception):
    """An answer of the socket that is not the one that was wanted."""

    def __init__(self, answer):
        super().__init__(repr(answer))
        self.status = answer.status


TROUBLE = OSError, http.client.HTTPException, Refused


def nothing_changed(e):
    return getattr(e, "errno", 0) in REFUSALS or getattr(e, "status", 0) in REFUSED


def row_of(n, rng):
    return json.loads(document(n, rng))


class Ledger:
    """self.may: the states that are possible.  A state is what each row says, how many lines the
    file has, and under which of its two names the partition is."""

    def __init__(self, w):
        self.w, self.faults, self.rng = w, w.soak.faults, w.rng
        self.home = w.at / TABLE
        self.may, self.n = [{"at": "a", "file": 0}], 0
        self.unclear, self.starts, self.left = True, 0, None
        self.last = None  # what failed

    # ---- where things are ----

    def pk(self, at=None):
        return f"{self.w.name}-{at or self.may[0]['at']}"

    def path(self, rk):
        return self.home / self.pk() / f"{rk}.json"

    def there(self):
        """Rows that exist."""
        return [rk for rk in ROWS if rk in self.may[0]]

    def next(self):
        self.n += 1
        return self.n

    # ---- one operation ----

    def attempt(self, kind, call, after=None, partly=()):
        """What the call returns; None: it failed.  after: the state that it makes; partly: those
        that it may leave when it does not say that it has."""
        start = time.monotonic()
        try:
            result = call()
        except TROUBLE as e:
            result, failure = None, e
        else:
            failure = None
        self.w.clock.add(kind, time.monotonic() - start, self.faults.touched(start))
        self.w.done()
        if failure is None:
            self.may = self.may if after is None else [after]
            return result
        must("Z1", self.faults.touched(start), kind, repr(failure))
        self.unclear, self.last = True, (kind, repr(failure))
        self.may += partly
        if after is not None and not nothing_changed(failure):
            self.may.append(after)
        return None

    def rest(self, call, *statuses):
        """call(client), on a connection to the daemon that is there now."""
        if self.starts != self.faults.starts.value:
            self.starts = self.faults.starts.value
            self.w.client.close()
            self.w.client.port = self.faults.port.value
        answer = call(self.w.client)
        if answer.status not in statuses:
            raise Refused(answer)
        return answer

    # ---- which state it is ----

    def look(self):
        """The state that both front ends show."""
        found = [at for at in "ab" if os.path.isdir(self.home / self.pk(at))]
        if len(found) != 1:
            return {"partitions": found}
        at = self.home / self.pk(found[0])
        state = {"at": found[0], "file": 0}
        for name in os.listdir(at):
            text = read_to_end(at / name)
            if name == "notes":
                state["file"] = len(text) // LINE
                must("Z9", text == lines(0, state["file"]), "a file that nobody wrote:", text[-99:])
            elif name.startswith(".new"):
                os.unlink(at / name)  # of a write that did not come to its rename
            elif text:
                state[name[:-5]] = self.value(json.loads(text), name)
        where = f"PartitionKey eq '{self.pk(found[0])}'"
        answer = self.rest(lambda c: c.query(TABLE, filter=where), 200)
        rows = {r["RowKey"]: self.value(r, "REST") for r in answer.rows}
        shown = {rk: v for rk, v in state.items() if rk in ROWS}
        return state if rows == shown else {"files": shown, "REST": rows}

    def let_go(self):
        """Of a snapshot that may be there."""
        if self.left:
            with contextlib.suppress(FileNotFoundError):
                self.left.rmdir()
        self.left = None

    @staticmethod
    def value(row, where):
        must("Z9", row["V"] == row["W"], "half a row:", where, row["V"], row["W"])
        return row["V"]

    def settle(self):
        """Waits until nothing is broken; then there is one state."""
        while self.unclear:
            self.w.done()
            start = time.monotonic()
            if self.faults.active.value:
                time.sleep(0.02)
                continue
            try:
                self.let_go()
                seen = self.look()
            except TROUBLE as e:
                must("Z1", self.faults.touched(start), "looking again:", repr(e))
                continue
            if not self.faults.touched(start):
                must("Z9", seen in self.may, "after", self.last, "it finds", seen,
                     "where it may be", self.may)
                self.may, self.unclear = [seen], False

    # ---- changes ----

    def write(self):
        rk, n = self.rng.choice(ROWS), self.next()
        path, doc = self.path(rk), document(n, self.rng)
        kind, how = self.rng.choice([
            ("write a row", lambda: put(path, doc)),
            ("write a row, fsync", lambda: synced(path, doc)),
            ("rename onto a row", lambda: beside(path, doc))])
        self.attempt(kind, how, {**self.may[0], rk: n})

    def write_rest(self):
        rk, n = self.rng.choice(ROWS), self.next()
        row, where = row_of(n, self.rng), (TABLE, self.pk(), rk)
        if rk not in self.may[0]:
            keyed = {"PartitionKey": where[1], "RowKey": rk, **row}
            kind, how = "REST insert", lambda c: c.insert(TABLE, keyed)
        else:
            kind, how = self.rng.choice([
                ("REST upsert", lambda c: c.upsert(*where, row)),
                ("REST replace", lambda c: c.replace(*where, row)),
                ("REST merge", lambda c: c.merge(*where, row))])
        self.attempt(kind, lambda: self.rest(how, 201, 204), {**self.may[0], rk: n})

    def remove(self):
        rks = [rk for rk in self.there() if rk != ROWS[0]]  # so that the partition stays
        if not rks:
            return
        rk = self.rng.choice(rks)
        after = {k: v for k, v in self.may[0].items() if k != rk}
        if self.rng.random() < 0.5:
            path = self.path(rk)
            self.attempt("unlink a row", lambda: os.unlink(path), after)
        else:
            where = TABLE, self.pk(), rk
            self.attempt("REST delete", lambda: self.rest(lambda c: c.delete(*where), 204), after)

    def rename(self):
        rks = [rk for rk in self.there() if rk != ROWS[0]]
        if not rks:
            return
        rk, to = self.rng.choice(rks), self.rng.choice(ROWS)
        if rk == to:
            return
        after = {k: v for k, v in self.may[0].items() if k != rk}
        was, now = self.path(rk), self.path(to)
        self.attempt("rename a row", lambda: os.rename(was, now),
                     {**after, to: self.may[0][rk]})

    def rename_partition(self):
        to = {"a": "b", "b": "a"}[self.may[0]["at"]]
        was, now = self.home / self.pk(), self.home / self.pk(to)
        self.attempt("rename a partition", lambda: os.rename(was, now), {**self.may[0], "at": to})

    def change_set(self):
        rks, n = self.rng.sample(ROWS, self.rng.randint(2, len(ROWS))), self.next()
        row, after = row_of(n, self.rng), {**self.may[0], **dict.fromkeys(rks, n)}
        if self.rng.random() < 0.5:
            text = json.dumps([{"upsert": {"RowKey": rk, **row}} for rk in rks])
            path = self.home / self.pk() / ".batch"
            self.attempt(".batch", lambda: put(path, text), after)
        else:
            parts = [("PUT", entity_path(TABLE, self.pk(), rk), {}, row) for rk in rks]
            self.attempt("REST batch", lambda: self.batch(parts), after)

    def batch(self, parts):
        answer = self.rest(lambda c: c.batch(parts), 202)
        for part in parse_batch(answer):
            if part.status != 204:
                raise Refused(part)
        return answer

    def import_rows(self):
        """Line by line: if it fails, those before some line are there."""
        n = self.next()
        row, before = row_of(n, self.rng), self.may[0]
        text = "".join(json.dumps({"PartitionKey": self.pk(), "RowKey": rk, **row}) + "\n"
                       for rk in ROWS)
        states = [{**before, **dict.fromkeys(ROWS[:k], n)} for k in range(1, len(ROWS) + 1)]
        path = self.home / ".rows.ndjson"
        self.attempt("import by .rows.ndjson", lambda: put(path, text), states[-1], states[:-1])

    def note(self):
        """A line at the end of an ordinary file."""
        k, path = self.may[0]["file"], self.home / self.pk() / "notes"
        self.attempt("append to a file, fsync", lambda: append(path, k * LINE, lines(k, k + 1)),
                     {**self.may[0], "file": k + 1})
        if k > 2000:
            self.attempt("unlink a file", lambda: os.unlink(path), {**self.may[0], "file": 0})

    # ---- looks ----

    def read(self):
        rk = self.rng.choice(ROWS)
        path, want = self.path(rk), self.may[0].get(rk)
        if want is None:
            return
        text = self.attempt("read a row", lambda: read_to_end(path))
        must("Z2", text is None or self.value(json.loads(text), rk) == want, rk, want, text)

    def read_rest(self):
        rk = self.rng.choice(ROWS)
        where, want = (TABLE, self.pk(), rk), self.may[0].get(rk)
        got = self.attempt("REST get", lambda: self.rest(lambda c: c.get(*where), 200, 404))
        seen = got and (None if got.status == 404 else self.value(got.json, rk))
        must("Z2", got is None or seen == want, "REST", rk, want, seen)

    def rows_seen(self, rows, where):
        want = {rk: self.may[0][rk] for rk in self.there()}
        must("Z4", rows is None or rows == want, where, rows, want)

    def list(self):
        start, at = time.monotonic(), self.home / self.pk()
        names = self.attempt("list a partition", lambda: [
            n[:-5] for n in os.listdir(at) if n.endswith(".json") and n[0] != "."])
        if names is None or self.faults.touched(start):
            return
        # An empty file is left of a row that there was no room for.
        must("Z4", set(self.there()) <= set(names), "listing", names, self.may)

    def query(self):
        where, pk = f"PartitionKey eq '{self.pk()}'", self.pk()
        if self.rng.random() < 0.5:
            got = self.attempt("REST query", lambda: self.rest(
                lambda c: c.query(TABLE, filter=where), 200))
            rows = got and got.rows
        else:
            path = self.rng.choice([self.home / ".query" / f"{where}.ndjson",
                                    self.home / pk / ".rows.ndjson"])
            text = self.attempt("read a stream", lambda: read_to_end(path))
            rows = text if text is None else list(map(json.loads, text.splitlines()))
        self.rows_seen(rows if rows is None else {
            r["RowKey"]: self.value(r, "query") for r in rows}, "query")

    def snapshot(self):
        """It goes with the daemon."""
        at, rk = self.w.mnt / ".rowfs/snapshots" / self.w.name, self.rng.choice(ROWS)
        path = at / self.w.client.account / TABLE / self.pk() / f"{rk}.json"
        start, want = time.monotonic(), self.may[0].get(rk)
        if self.attempt("make a snapshot", lambda: at.mkdir() or True):
            self.change_set()
            if want is not None and not self.faults.touched(start):
                text = self.attempt("read in a snapshot", lambda: read_to_end(path))
                must("Z4", text is None or self.value(json.loads(text), rk) == want, "snapshot",
                     rk, want, text and text[:50])
        if not self.faults.touched(start):
            self.attempt("remove a snapshot", at.rmdir)
            return
        self.unclear = True
        self.left = at  # maybe

    def bad(self):
        """Is refused, leaves the row, and its bytes are kept."""
        rk, mark = self.rng.choice(ROWS), f"{self.w.name}/{self.next()}"
        path, start = self.path(rk), time.monotonic()
        try:
            put(path, f'{{"V":1,"W":2,"mark":"{mark}"}} no document')
        except OSError as e:
            broken = self.faults.touched(start)
            self.unclear = self.unclear or bool(broken)
            must("Z1", e.errno == errno.EINVAL or broken, "a bad document", e)
        else:
            must("Z1", False, "a bad document was taken")
        self.w.clock.add("refuse a bad document", time.monotonic() - start,
                         self.faults.touched(start))
        if not self.unclear:
            self.kept(rk, mark, start)

    def kept(self, rk, mark, start):
        at = self.w.mnt / ".rowfs/rejected"
        try:
            names = sorted((n for n in os.listdir(at) if n.endswith(f"{rk}.json")), reverse=True)
            found = any(mark.encode() in read_to_end(at / n) for n in names[:50])
        except TROUBLE as e:  # the oldest go while new ones come
            found = getattr(e, "errno", 0) == errno.ENOENT
        broken = self.faults.touched(start)
        must("Z9", found or broken, "refused bytes are not kept:", mark)
        self.unclear = self.unclear or bool(broken)


def lines(start, end):
    return b"".join(b"%015d\n" % i for i in range(start, end))


def synced(path, doc):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(fd, doc)
        os.fsync(fd)
    except OSError as refused:
        try:
            os.close(fd)
        except OSError:
            raise refused
        # What fsync(2) had no room for close(2) may have committed a moment later.
        raise OSError(errno.EIO, "refused by fsync, not by close") from refused
    os.close(fd)


def beside(path, doc):
    temp = path.with_name(f".new.{path.name}")
    synced(temp, doc)
    os.rename(temp, path)


def append(path, size, text):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(fd, text, size)
        os.fsync(fd)
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


STEPS = {
    Ledger.write: 20, Ledger.write_rest: 20, Ledger.remove: 12, Ledger.rename: 6,
    Ledger.rename_partition: 1, Ledger.change_set: 6, Ledger.import_rows: 3, Ledger.note: 3,
    Ledger.read: 20, Ledger.read_rest: 20, Ledger.list: 5, Ledger.query: 6, Ledger.snapshot: 1,
    Ledger.bad: 1}


def ledger(w):
    w.clock = gauge.Clock()
    try:
        keep(w, Ledger(w))
    finally:
        w.clock.save(w.tmp / "latency")


def keep(w, book):
    start = time.monotonic()
    while True:  # something may be broken already
        try:
            (book.home / book.pk("a")).mkdir()
        except FileExistsError:
            break
        except OSError as e:
            must("Z1", book.faults.touched(start), "mkdir", e)
            w.done()
    book.settle()
    saved = time.monotonic()
    while w.go():
        if time.monotonic() - saved >= SAVED:
            saved = time.monotonic()
            w.clock.save(w.tmp / "latency")
        if book.unclear:
            book.settle()
        else:
            w.rng.choices(list(STEPS), STEPS.values())[0](book)
    book.unclear = True
    book.settle()
