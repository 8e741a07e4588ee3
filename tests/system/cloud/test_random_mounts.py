# SPDX-License-Identifier: MIT
"""Two mounts of one account, Azure's library for Python and a client of the service, against a dictionary.

A proxy breaks requests of the mounts and of the library, and the service is killed and started.  Mount 0 and
the library ask the service for everything, mount 1 shows what may be a second old.  After each acknowledged
change every reader has to show it, or what was there within the last second; a change whose outcome is
unknown was made whole or not at all.

ROWFS_CLOUD_STEPS=N takes N steps with another seed; ROWFS_CLOUD_SEED=S those of a walk that failed.
"""

import errno
import http.client
import json
import multiprocessing
import os
import random
import time

import pytest
from rest_client import Client, ok
from tools import put, sanitized

from fault_proxy import FaultProxy
from sdk_client import SdkTable, library
from test_client import PROGRAM
from test_transfer import Elsewhere
from there import There

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
STEPS = int(os.environ.get("ROWFS_CLOUD_STEPS", "0"))
SEED = os.environ.get("ROWFS_CLOUD_SEED")
FORKS = multiprocessing.get_context("fork")
CACHES = (0, 1)
KEYS = [f"r{i}" for i in range(5)]
SHARE = 0.06
PROPERTIES = ("N", "Twin", "Log")
# The change may have been made, or not.
UNKNOWN = (errno.EIO, errno.EAGAIN, errno.ETIMEDOUT, errno.ENETDOWN)


class Front:
    """What Elsewhere wants of a server: the proxy before it."""

    def __init__(self, server, proxy):
        self.server, self.port = server, proxy.server_port

    def url(self, account):
        return f"http://127.0.0.1:{self.port}/{account}"


class World:
    """posts[n] is the table's partition in mount n."""

    def __init__(self, rowfs, mount, server, work, seed):
        self.server, self.port = server, server.port
        self.proxy = FaultProxy(lambda: self.port, seed)
        account = Elsewhere(rowfs, Front(server, self.proxy), work)
        with self.client() as client:
            ok(client.create_table("Posts"))
        self.parts = []
        for n, cache in enumerate(CACHES):
            there = There(mount, account, work)
            self.parts.append(there.mounted(f"cache={cache}", "timeout=20", cache=f"cache{n}") / "Posts/p")
            self.parts[n].mkdir()
        self.connection = account.secret.read_text().strip()
        self.sdk = SdkTable(self.connection, PROPERTIES)
        self.proxy.share = SHARE

    def client(self):
        return Client(self.port)

    def row(self, key):
        """What the service has: the properties without keys and time, or None."""
        with self.client() as client:
            answer = client.get("Posts", "p", key)
            if answer.status == 404:
                return None
            return {k: v for k, v in ok(answer).json.items() if k in PROPERTIES}

    def kill(self):
        self.server.kill9()
        self.port = self.server.start().port

    def read(self, n, key):
        """The row as mount n shows it."""
        try:
            return json.loads((self.parts[n] / f"{key}.json").read_bytes())
        except FileNotFoundError:
            return None


@pytest.fixture
def world_of(rowfs, mount, serve, rest_store, work):
    library()
    worlds = []

    def make(seed):
        worlds.append(World(rowfs, mount, serve(rest_store, "--rest=127.0.0.1:0"), work, seed))
        return worlds[-1]

    yield make
    for world in worlds:
        world.proxy.stop()


# ---- one step after another ----


class Walk:
    """history[key]: (since, value) of each version; own[n, key]: the index of the last one that mount n made."""

    WEIGHTS = {"put": 6, "edit": 6, "remove": 3, "elsewhere": 4, "batch": 4, "race": 3, "rename": 3, "move": 4, "read": 10,
               "list": 4, "kill": 0.4, "sdk_change": 4, "sdk_race": 3, "sdk_read": 4}

    def __init__(self, world, seed):
        self.world, self.dice = world, random.Random(f"walk {seed}")
        self.history = {key: [(0, None)] for key in KEYS}
        self.own, self.said, self.count = {}, [], 0

    def value(self):
        self.count += 1
        return {"N": self.count, "Twin": self.count}

    def now(self, key):
        return self.history[key][-1][1]

    def made(self, key, value, n=None):
        self.history[key].append((time.monotonic(), value))
        if n is not None:
            self.own[n, key] = len(self.history[key]) - 1

    def possible(self, n, key, begun):
        """The versions that mount n may show to a reader that began then."""
        versions, oldest = self.history[key], begun - CACHES[n]
        first = max(i for i, (since, _) in enumerate(versions) if i == 0 or since <= oldest)
        return [value for _, value in versions[max(first, self.own.get((n, key), 0)):]]

    def change(self, n, wanted, act):
        """Takes a change of mount n (None: of another client), and what the rows have to be after it.  Returns
        its errno or 0."""
        before = {key: self.now(key) for key in wanted}
        code = 0
        try:
            act()
        except OSError as e:
            code = e.errno
        self.said.append(f"  mount {n}: {errno.errorcode.get(code, 'ok')}")
        found = {key: self.world.row(key) for key in wanted}
        if code == 0:
            assert found == wanted, f"acknowledged {wanted}, but the service has {found}"
        elif code in UNKNOWN:
            assert found in (before, wanted), f"{before} or {wanted}, but the service has {found}"
        else:
            assert found == before, f"refused with {code}, but the service has {found}"
        for key in wanted:
            if found[key] != before[key] or code == 0:
                self.made(key, found[key], n if code == 0 else None)
        return code

    def may_be_stale(self, n, key, begun, code):
        """A mount that shows an old row may refuse to change the new one."""
        assert code in (0, *UNKNOWN) or (
            code in (errno.ESTALE, errno.ENOENT) and len(self.possible(n, key, begun)) > 1), errno.errorcode[code]

    def choose(self):
        return self.dice.randrange(len(CACHES)), self.dice.choice(KEYS)

    def do_put(self):
        n, key = self.choose()
        value, begun = self.value(), time.monotonic()
        code = self.change(n, {key: value}, lambda: put(self.world.parts[n] / f"{key}.json", json.dumps(value)))
        self.may_be_stale(n, key, begun, code)

    def edit(self, n, key, value, between=None):
        with open(self.world.parts[n] / f"{key}.json", "r+") as f:
            f.read()
            if between:
                between()
            f.seek(0)
            f.truncate()
            f.write(json.dumps(value))

    def do_edit(self):
        n, key = self.choose()
        value, begun = self.value(), time.monotonic()
        if self.now(key) is not None:
            code = self.change(n, {key: value}, lambda: self.edit(n, key, value))
            self.may_be_stale(n, key, begun, code)

    def do_race(self):
        """Another client is faster than the program that read the row."""
        n, key = self.choose()
        value = self.value()

        def other():
            with self.world.client() as client:
                ok(client.replace("Posts", "p", key, value))
            self.made(key, value)

        if self.now(key) is None or None in self.possible(n, key, time.monotonic()):
            return
        try:
            self.edit(n, key, self.value(), other)
            code = 0
        except OSError as e:
            code = e.errno
        self.said.append(f"  {errno.errorcode.get(code, 'ok')}")
        assert code in (errno.ESTALE, *UNKNOWN), f"a lost update: {code}"
        assert self.world.row(key) == self.now(key)

    def do_remove(self):
        n, key = self.choose()
        begun = time.monotonic()
        code = self.change(n, {key: None}, (self.world.parts[n] / f"{key}.json").unlink)
        if self.now(key) is None and code == errno.ENOENT:
            return
        self.may_be_stale(n, key, begun, code)

    def do_elsewhere(self):
        _, key = self.choose()
        value = self.dice.choice([None, self.value()])
        with self.world.client() as client:
            if value is not None:
                ok(client.upsert("Posts", "p", key, value))
            elif self.now(key) is not None:
                ok(client.delete("Posts", "p", key))
        self.made(key, value)

    def do_sdk_change(self):
        _, key = self.choose()
        value = self.dice.choice([None, self.value(), self.value()])
        act = (lambda: self.world.sdk.remove(key)) if value is None else (lambda: self.world.sdk.put(key, value))
        code = self.change(None, {key: value}, act)
        assert code in (0, errno.EIO), errno.errorcode[code]

    def do_sdk_race(self):
        """A mount is faster than the program that read the row."""
        n, key = self.choose()
        try:
            _, etag = self.world.sdk.row(key)
        except OSError:
            return
        value, begun = self.value(), time.monotonic()
        if etag is None:
            return
        code = self.change(n, {key: value}, lambda: put(self.world.parts[n] / f"{key}.json", json.dumps(value)))
        self.may_be_stale(n, key, begun, code)
        late = self.value()
        if code == 0:
            code = self.change(None, {key: late}, lambda: self.world.sdk.replace(key, late, etag))
            assert code in (errno.ESTALE, errno.EIO) and self.now(key) == value, f"a lost update: {code}"

    def do_sdk_read(self):
        try:
            found = self.world.sdk.rows()
        except OSError:
            return
        assert found == {key: self.now(key) for key in KEYS if self.now(key) is not None}

    def do_batch(self):
        n, _ = self.choose()
        wanted = {key: self.value() for key in self.dice.sample(KEYS, 3)}
        ops = "".join(json.dumps({"upsert": {"RowKey": key, **value}}) + "\n" for key, value in wanted.items())
        code = self.change(n, wanted, lambda: put(self.world.parts[n] / ".batch", ops))
        assert code in (0, *UNKNOWN), errno.errorcode[code]

    def do_rename(self):
        """As an editor does: a new file takes the place of the row."""
        n, key = self.choose()
        value = self.value()
        temporary = self.world.parts[n] / ".new"
        put(temporary, json.dumps(value))
        begun = time.monotonic()
        code = self.change(n, {key: value}, lambda: os.rename(temporary, self.world.parts[n] / f"{key}.json"))
        self.may_be_stale(n, key, begun, code)

    def do_move(self):
        """From one key to another, in one step."""
        n, key = self.choose()
        to = self.dice.choice([k for k in KEYS if k != key])
        begun = time.monotonic()
        if self.now(key) is None:
            return
        code = self.change(n, {key: None, to: self.now(key)},
                           lambda: os.rename(self.world.parts[n] / f"{key}.json", self.world.parts[n] / f"{to}.json"))
        self.may_be_stale(n, key, begun, code)

    def do_read(self):
        n, key = self.choose()
        begun = time.monotonic()
        try:
            found = self.world.read(n, key)
        except OSError as e:
            assert e.errno in UNKNOWN, e
            return
        assert found in self.possible(n, key, begun), f"{found}, not one of {self.possible(n, key, begun)}"

    def do_list(self):
        n, _ = self.choose()
        begun = time.monotonic()
        try:
            names = {name[:-5] for name in os.listdir(self.world.parts[n]) if name.endswith(".json")}
        except OSError as e:
            assert e.errno in UNKNOWN, e
            return
        for key in KEYS:
            may = {value is not None for value in self.possible(n, key, begun)}
            assert (key in names) in may, f"{key} is {'not ' * (key not in names)}listed"

    def do_kill(self):
        self.world.kill()

    def step(self):
        [kind] = self.dice.choices([*self.WEIGHTS], [*self.WEIGHTS.values()])
        self.said.append(kind)
        getattr(self, f"do_{kind}")()


@pytest.mark.parametrize("seed", [SEED or time.time_ns()] if STEPS or SEED else [1, 2])
def test_two_mounts_and_a_client_agree_with_a_dictionary(world_of, seed):
    world = world_of(seed)
    walk = Walk(world, seed)
    try:
        for _ in range(STEPS or (60 if sanitized() else 120)):
            walk.step()
    except BaseException:
        print(f"ROWFS_CLOUD_SEED={seed}, step {len(walk.said)}: {walk.said[-20:]}")
        raise
    assert world.proxy.broken > 0
    world.proxy.share = 0
    for n in range(len(CACHES)):
        for key in KEYS:
            begun = time.monotonic()
            assert world.read(n, key) in walk.possible(n, key, begun)
    assert [world.row(key) for key in KEYS] == [walk.now(key) for key in KEYS]


# ---- all at once ----


class Appender:
    """Appends its words to rows, each after it read the row.  It is a process: a server that is started while
    a thread has a file open would close the file once more."""

    def __init__(self, name, appends):
        self.name, self.appends, self.dice = name, appends, random.Random(name)
        self.acknowledged, self.unknown, self.refused = [], [], 0
        self.found, self.far = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=self.work, daemon=True)

    def start(self):
        self.process.start()
        self.far.close()

    def work(self):
        while len(self.acknowledged) < self.appends:
            self.append(self.dice.choice(KEYS[:2]), f"{self.name}.{len(self.unknown) + len(self.acknowledged)}")
        self.far.send((self.acknowledged, self.unknown, self.refused))

    def append(self, key, word):
        try:
            self.try_append(key, word)
            self.acknowledged.append((key, word))
        except OSError as e:
            if e.errno in UNKNOWN:
                self.unknown.append(word)
            elif e.errno == errno.ESTALE:
                self.refused += 1
            else:
                raise

    @staticmethod
    def appended(row, word):
        assert row["N"] == row["Twin"] == len(row["Log"].split()), f"a mixture: {row}"
        return {"N": row["N"] + 1, "Twin": row["Twin"] + 1, "Log": f"{row['Log']} {word}"}


class MountAppender(Appender):
    def __init__(self, part, name, appends):
        super().__init__(name, appends)
        self.part = part

    def try_append(self, key, word):
        with open(self.part / f"{key}.json", "r+") as f:
            text = json.dumps(self.appended(json.loads(f.read()), word))
            f.seek(0)
            f.truncate()
            f.write(text)


class SdkAppender(Appender):
    def __init__(self, connection, name, appends):
        super().__init__(name, appends)
        self.connection = connection

    def work(self):
        self.sdk = SdkTable(self.connection, PROPERTIES)
        super().work()

    def try_append(self, key, word):
        row, etag = self.sdk.row(key)
        try:
            self.sdk.replace(key, self.appended(row, word), etag)
        except OSError as e:
            # The library tries again after a lost answer, and may then meet its own change.
            raise OSError(errno.EIO, "unknown") from e


class ClientAppender(Appender):
    def __init__(self, port, name, appends):
        super().__init__(name, appends)
        self.port = port

    def try_append(self, key, word):
        try:
            with Client(self.port) as client:
                answer = client.get("Posts", "p", key)
                if answer.status == 200:
                    row = {k: answer.json[k] for k in PROPERTIES}
                    answer = client.replace("Posts", "p", key, self.appended(row, word), answer.etag)
        except http.client.HTTPException as e:
            raise OSError(errno.EIO, "no answer") from e
        except ConnectionError as e:
            raise OSError(errno.EIO, "no connection") from e
        assert answer.status in (204, 412, 503), answer
        if answer.status != 204:
            raise OSError(errno.ESTALE, "not done")


def test_no_append_is_lost_and_none_is_made_twice(world_of):
    """Each reads a row, appends a word and writes it back, until enough was acknowledged."""
    world = world_of(SEED or 1)
    for key in KEYS[:2]:
        with world.client() as client:
            ok(client.insert("Posts", {"PartitionKey": "p", "RowKey": key, "N": 0, "Twin": 0, "Log": ""}))
    appends = STEPS or 15
    # Clients are several times as fast.
    workers = [*(MountAppender(part, f"mount{n}", appends) for n, part in enumerate(world.parts)),
               SdkAppender(world.connection, "sdk", appends * 5),
               ClientAppender(world.proxy.server_port, "client", appends * 10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        while worker.process.is_alive() and not worker.found.poll(1):
            world.kill()
        worker.acknowledged, worker.unknown, worker.refused = worker.found.recv()
        worker.process.join()
    log = {key: world.row(key)["Log"].split() for key in KEYS[:2]}
    words = [word for key in log for word in log[key]]
    assert len(set(words)) == len(words), "an append was made twice"
    for worker in workers:
        assert len(worker.acknowledged) >= worker.appends
        assert [w for k, w in worker.acknowledged if w not in log[k]] == [], "acknowledged, and not there"
    assert set(words) <= {w for worker in workers for w in (*worker.unknown, *(w for _, w in worker.acknowledged))}
