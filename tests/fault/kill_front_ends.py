# SPDX-License-Identifier: MIT
"""Writers by the other front ends: change sets as files, REST, streams and imports, commands."""

import json
import os
import time

import kill_state as state
from kill_house import WAIT, Wrong
from kill_writers import Writer, write_file
from queue_client import messages
from rest_client import entity_path

CHUNK = 1000  # rows that an import commits at a time, at most


def in_order(etag):
    """The time that it is made of, without zeros at its end."""
    second, _, fraction = etag.partition("Z")[0].partition(".")
    return second, fraction.ljust(7, "0")


class Sets(Writer):
    """Change sets by .batch."""

    def rows_now(self, at=None):
        at = at or self.at
        return {k[len(at):-5]: v for k, v in self.known.items()
                if k.startswith(at) and k.endswith(".json")}

    def plan(self, n=8):
        """(operations, the step): of each row one that can be done."""
        now, ops, step = self.rows_now(), [], {}
        for i in self.rng.sample(range(12), n):
            key = f"r{i}"
            self.n += 1
            row = {"V": self.n, "X": "x" * self.rng.choice((0, 50, 3000))}
            kind = self.rng.choice(("merge", "replace", "delete", "upsert", "upsert_merge")
                                   if key in now else ("insert", "upsert", "upsert_merge"))
            ops.append((kind, key, row if kind != "delete" else {}))
            old = now.get(key, {}) if "merge" in kind else {}
            step[f"{self.at}{key}.json"] = None if kind == "delete" else state.Doc(old | row)
        return ops, step

    def op_put(self):
        ops, step = self.plan()
        text = json.dumps([{kind: {"RowKey": key, **row}} for kind, key, row in ops]).encode()
        self.do([step], write_file, self.top / self.at / ".batch", text, 0,
                sync=self.rng.random() < 0.3)

    def observe(self, found):
        with self.house.client(self.name) as c:
            state.observe_rest(c, self.table, self.name, found)
        for key in [k for k in found if k.startswith(f"etag:{self.name}/")]:
            del found[key]


class Jobs(Sets):
    """Change sets by .batch with messages, which are taken and deleted by REST."""

    MOST = 20  # messages: a peek shows 32

    def prepare(self):
        super().prepare()
        if self.queues().ask("PUT", "/jobs").status != 201:
            raise Wrong("no queue was made")

    def queues(self):
        return self.house.queues(self.name)

    def message(self, text):
        return f"message:{self.name}/{text}"

    def op_put(self):
        planned, step = self.plan(3)
        ops = [{kind: {"RowKey": key, **row}} for kind, key, row in planned]
        if sum(k.startswith("message:") for k in self.known) < self.MOST:
            for text in (f"{self.n}a", f"{self.n}b" + "x" * self.rng.choice((0, 5000, 60000))):
                ops.insert(self.rng.randrange(len(ops) + 1),
                           {"put_message": {"queue": "jobs", "text": text}})
                step[self.message(text)] = True
        self.do([step], write_file, self.top / self.at / ".batch", json.dumps(ops).encode(), 0,
                sync=self.rng.random() < 0.3)

    def op_take(self):
        """Not every taker deletes what it has."""
        for m in self.do([{}], self.queues().get, "jobs", numofmessages="2", visibilitytimeout="1"):
            if self.rng.random() < 0.7:
                step = {self.message(m["MessageText"]): None}
                answer = self.do([step], self.queues().delete, "jobs", m)
                if answer.status != 204:
                    raise Wrong(f"refused: {answer}")

    def observe(self, found):
        """Those that were taken come back within a second."""
        super().observe(found)
        queues, end = self.queues(), time.monotonic() + WAIT
        while True:
            answer = queues.ask("GET", "/jobs", {"comp": "metadata"})
            count = int(answer.headers["x-ms-approximate-messages-count"])
            seen = messages(queues.ask("GET", "/jobs/messages",
                                       {"peekonly": "true", "numofmessages": "32"}))
            if len(seen) == count:
                break
            if time.monotonic() > end:
                raise Wrong(f"{len(seen)} of {count} messages came back")
            time.sleep(0.05)
        for m in seen:
            key = self.message(m["MessageText"])
            if key in found:
                raise Wrong(f"a message is there twice: {key}")
            found[key] = True


class ByRest:
    """With one connection for all of a run."""

    def run(self, ops):
        with self.house.client(self.name) as self.client:
            super().run(ops)


class Batches(ByRest, Sets):
    """Change sets by REST."""

    METHODS = {"merge": "PATCH", "replace": "PUT", "upsert": "PUT", "upsert_merge": "PATCH",
               "insert": "POST", "delete": "DELETE"}

    def op_put(self):
        ops, step = self.plan()
        parts = []
        for kind, key, row in ops:
            must = {"If-Match": "*"} if kind in ("merge", "replace", "delete") else {}
            path = self.table if kind == "insert" else entity_path(self.table, "p", key)
            body = None if kind == "delete" else {"PartitionKey": "p", "RowKey": key, **row}
            parts.append((self.METHODS[kind], path, must, body))

        def send():
            answer = self.client.batch(parts)
            if answer.status != 202 or answer.body.count(b"HTTP/1.1 20") != len(parts):
                raise Wrong(f"a change set was refused: {answer}")
        self.do([step], send)


class Rest(ByRest, Sets):
    """One row or table at a time.  A partition that REST made goes with its last row."""

    def prepare(self):
        path = f"{self.name}/{self.table}/"
        self.do([{path: True}], os.mkdir, self.top / path)
        self.high = ""

    def send(self, call, *args, step=None, path=None, **kw):
        """One request, and the ETag that it gave."""
        if path:
            rows = {**self.rows_now(), path: step[path]}
            step = {**step, self.at: True if any(v is not None for v in rows.values()) else None}
            step[f"etag:{path}"] = None if step[path] is None else lambda found: bool(found)

        def answered():
            answer = call(*args, **kw)
            if answer.status not in (201, 204):
                raise Wrong(f"refused: {answer}")
            etag = answer.headers.get("ETag")
            if path and step[path] is not None:
                if in_order(etag) <= in_order(self.high):
                    raise Wrong(f"an ETag that does not grow: {etag} after {self.high}")
                self.high = step[f"etag:{path}"] = etag
        self.do([dict(step), step], answered)

    def rows_now(self, at=None):
        return {k: v for k, v in self.known.items() if k.startswith(self.at)
                and k.endswith(".json")}

    def op_put(self):
        self.n += 1
        key, row = f"r{self.rng.randrange(8)}", {"V": self.n, "X": "x" * (self.n * 37 % 3000)}
        path = f"{self.at}{key}.json"
        here, how = path in self.known, self.rng.randrange(4)
        if not here and how == 0:
            row = {"PartitionKey": "p", "RowKey": key, **row}
            doc = state.Doc(V=row["V"], X=row["X"])
            self.send(self.client.insert, self.table, row, step={path: doc}, path=path)
        elif here and how == 1:
            doc = state.Doc(self.known[path] | row)
            self.send(self.client.merge, self.table, "p", key, row, step={path: doc}, path=path)
        elif here and how == 2:
            self.send(self.client.delete, self.table, "p", key, step={path: None}, path=path)
        else:
            self.send(self.client.upsert, self.table, "p", key, row,
                      step={path: state.Doc(row)}, path=path)

    def op_put_again(self):
        self.op_put()

    def op_table(self):
        """With rows in it."""
        table, other = f"{self.name}/RestOther/", f"{self.name}/RestOther/o/"
        if table not in self.known:
            self.send(self.client.create_table, "RestOther", step={table: True})
            for i in range(3):
                row = state.Doc(V=i)
                step = {other: True, f"{other}r{i}.json": row}
                self.send(self.client.upsert, "RestOther", "o", f"r{i}", row, step=step)
            return
        step = {k: None for k in self.known if k.startswith(table)}
        self.send(self.client.delete_table, "RestOther", step=step)

    def observe(self, found):
        with self.house.client(self.name) as c:
            state.observe_rest(c, self.table, self.name, found)
        self.high = max([self.high, *(v for k, v in found.items()
                                      if k.startswith(f"etag:{self.name}/"))], key=in_order)


class Stream(Writer):
    """Rows written to .rows.ndjson: what a write completed is there when it returns."""

    def prepare(self):
        super().prepare()
        self.key = f"{self.name}/{self.table}/*"
        self.known[self.key] = {}

    def lines(self, n):
        """(text, the steps): upserts, of which whole change sets may be done."""
        keys = self.rng.sample(range(3000), n)
        rows, steps, text = dict(self.known[self.key]), [], []
        for i, key in enumerate(keys, 1):
            self.n += 1
            rows[f"{key:05}"] = self.n
            text.append(f'{{"PartitionKey":"p","RowKey":"{key:05}","V":{self.n}}}\n')
            if i % CHUNK == 0 or i == n:
                steps.append({self.key: dict(rows)})
        return "".join(text).encode(), steps

    def op_put(self):
        fd = os.open(self.top / f"{self.name}/{self.table}/.rows.ndjson", os.O_WRONLY)
        try:
            for n in (3, 300, 1200):
                text, steps = self.lines(n)
                self.do(steps, os.write, fd, text)
        finally:
            os.close(fd)


class Import(Stream):
    """The command, which works through the daemon."""

    def op_put(self):
        text, steps = self.lines(2500)
        (self.house.dir / "rows").write_bytes(text)

        def command():
            code, _, err = self.house.rowfs("import", self.house.store, f"{self.name}/{self.table}",
                                            self.house.dir / "rows", check=False)
            if code != 0:
                raise ConnectionError(err)
        self.do(steps, command)


# The endpoint that is printed with the keys is that of the server, whose socket may not be open yet.
SAME_URL = ["--url=http://here"]


class Admin(ByRest, Writer):
    """Keys and policies.  Both are asked for after each kill."""

    def prepare(self):
        super().prepare()
        self.known[f"keys:{self.name}"] = self.keys()
        self.known[f"acl:{self.name}"] = ""

    def keys(self):
        return self.house.rowfs("account", "keys", self.house.store, self.name, *SAME_URL)[1]

    def observe(self, found):
        found[f"keys:{self.name}"] = self.keys()
        with self.house.client(self.name) as c:
            text = c.request("GET", f"{self.table}?comp=acl").body.decode()
        found[f"acl:{self.name}"] = text.partition("<Id>")[2].partition("</Id>")[0]

    def op_put(self):
        self.n += 1
        policy = (f"<SignedIdentifiers><SignedIdentifier><Id>p{self.n}</Id><AccessPolicy>"
                  "<Permission>r</Permission></AccessPolicy></SignedIdentifier>"
                  "</SignedIdentifiers>")

        def send():
            answer = self.client.request("PUT", f"{self.table}?comp=acl", policy.encode(),
                                         {"content-type": "application/xml"})
            if answer.status != 204:
                raise Wrong(f"refused: {answer}")
        self.do([{f"acl:{self.name}": f"p{self.n}"}], send)

    def op_regenerate(self):
        key, old = f"keys:{self.name}", self.known[f"keys:{self.name}"]

        def command():
            code, self.new, err = self.house.rowfs(
                "account", "regenerate", self.house.store, self.name, "--which=2", *SAME_URL,
                check=False)
            if code != 0:
                raise ConnectionError(err)
        self.do([{key: lambda found: found != old}], command)
        self.known[key] = self.new  # what it printed
