# SPDX-License-Identifier: MIT
"""A daemon whose calls on the store's files fail one by one, and whose allocations do: a script of
mount operations and REST requests goes on meanwhile.  Whatever it is told, each row is as before or
as after, what was acknowledged is there, and when the fault is over all works without a restart.

ROWFS_EVERY_CALL=N takes N points of each kind instead of a few; ROWFS_EVERY_CALL_SEED=S shifts
those that are samples.
"""

import contextlib
import errno
import json
import os
import pathlib
import random
import subprocess
import threading
import time

import pytest

import calls
import conftest
from rest_client import ACCOUNT, NONE, Client, entity_path, ok, parse_batch
from tools import get, put

POINTS = int(os.environ.get("ROWFS_EVERY_CALL", "25"))
SEED = int(os.environ.get("ROWFS_EVERY_CALL_SEED", "1"))
REFUSED = {errno.EIO, errno.ENOSPC, errno.ENOMEM, errno.EAGAIN}
STATUSES = {500, 503, 507}
LARGE = b"x" * 40000
REQUEST_BYTES = 1 << 20  # of a thread of the loop; before those a mount takes as much once
EARLIER = 1
LOOP_THREADS = 10        # as in src/fs/session/loop.c
CALLS = calls.READ | calls.WRITE | calls.TRUNCATE | calls.OPEN | calls.LOOK | calls.MAP


class Watched:
    """A mount with a socket, in whose table Tab each row is known: the states that it may be in."""

    def __init__(self, mount, control):
        self.m, self.control = mount, control
        self.dir = mount / ACCOUNT / "Tab/p"
        self.rest = Client(mount.port, accept=NONE)
        self.may = {}       # RowKey: the values of A that it may have; None: it is not there
        self.refused = 0

    def told(self, key, new, done):
        """done: acknowledged; else nobody knows."""
        self.may[key] = {new} if done else self.may.get(key, {None}) | {new}

    def file(self, key, new, write):
        """A change by the mount."""
        try:
            write()
        except OSError as e:
            assert e.errno in REFUSED, (key, e)
            self.refused += 1
            self.told(key, new, False)
        else:
            self.told(key, new, True)

    def request(self, keys, new, ask):
        """A change by the socket."""
        try:
            answer = ask()
        except (ConnectionError, TimeoutError, OSError, ValueError) as e:
            # Without memory a connection may end; by a fault of the store it may not.
            assert self.without_memory, e
            answer = None
        if answer is not None and answer.status == 202:
            answer = parse_batch(answer)[0]
        done = answer is not None and answer.status < 300
        assert done or answer is None or answer.status in STATUSES, answer
        self.refused += not done
        for key in keys:
            self.told(key, new, done)

    def look(self, read):
        with contextlib.suppress(*([ConnectionError, ValueError] if self.without_memory else [])):
            try:
                read()
            except OSError as e:
                assert e.errno in REFUSED or self.without_memory, e

    def durable(self, path, text):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.write(fd, text)
            os.fsync(fd)
        finally:
            os.close(fd)

    def script(self, n, without_memory=False):
        """Every kind of change once, under names of this round."""
        self.without_memory = without_memory
        d, row = self.dir, lambda key: self.dir / f"{key}.json"
        a, b, c = f"a{n}", f"b{n}", f"c{n}"
        self.file(a, 1, lambda: put(row(a), '{"A":1}'))
        self.file(a, 2, lambda: self.durable(row(a), b'{"A":2}'))
        self.file("same", n, lambda: put(row("same"), f'{{"A":{n}}}'))
        self.look(lambda: os.listdir(d))
        self.look(lambda: get(row("same")))
        self.request([b], 3, lambda: self.rest.upsert("Tab", "p", b, {"A": 3}))
        self.request([b], 4, lambda: self.rest.merge("Tab", "p", b, {"A": 4})
                     if self.may[b] == {3} else self.rest.upsert("Tab", "p", b, {"A": 4}))
        self.look(lambda: self.rest.query("Tab", filter="A eq 4"))
        pair = [f"x{n}", f"y{n}"]
        self.request(pair, 5, lambda: self.rest.batch(
            [("PUT", entity_path("Tab", "p", k), {}, {"A": 5}) for k in pair]))
        self.file(c, 6, lambda: put(d / ".batch", json.dumps([{"upsert": {"RowKey": c, "A": 6}}])))
        self.file(None, None, lambda: put(d / "large", LARGE))
        if self.may[a] == {2} and self.may[c] == {6}:
            self.move(row(a), row(c), a, c)
        if self.may[b] == {4}:
            self.file(b, None, lambda: os.unlink(row(b)))

    def move(self, old, new, a, c):
        try:
            os.rename(old, new)
        except OSError as e:
            assert e.errno in REFUSED, e
            self.refused += 1
            self.may[a], self.may[c] = {2, None}, {6, 2}
        else:
            self.may[a], self.may[c] = {None}, {2}

    def check(self):
        """Faults are off: all is there, through both front ends."""
        self.may.pop(None, None)
        # A client that was cut off begins anew.
        self.rest.close()
        rows = {r["RowKey"]: r["A"] for r in self.rest.all("Tab")}
        for key, states in self.may.items():
            assert rows.get(key) in states, (key, rows.get(key), states)
        for key, value in rows.items():
            assert json.loads(get(self.dir / f"{key}.json")) == {"A": value}
        pairs = {k[1:]: v for k, v in rows.items() if k[0] == "x"}
        assert pairs == {k[1:]: v for k, v in rows.items() if k[0] == "y"}, "half a change set"
        assert self.m.alive()

    def forget(self):
        """The rows of the last rounds."""
        for name in os.listdir(self.dir):
            if name != "same.json":
                os.unlink(self.dir / name)
        self.may = {k: v for k, v in self.may.items() if k == "same"}


@pytest.fixture
def control(work):
    conftest.need_fuse()
    if not (conftest.BUILD / "tests/fault/calls.so").exists():
        pytest.skip("tests/fault/calls.so is not built")
    with calls.Control(work / "control") as c:
        yield c


@pytest.fixture
def watched(rowfs, store, work, control):
    conftest.add_accounts(rowfs, store)
    at = work / "mnt"
    at.mkdir()
    m = conftest.Mount(rowfs, store, at, ["rest=127.0.0.1:0"], work / "daemon.log")
    m.env = control.env(conftest.BUILD, store, base=conftest.ENV)
    m.allow("input/output|Input/output|No space|Out of memory|out of memory|memory|ERROR")
    m.start()
    try:
        (m / ACCOUNT / "Tab/p").mkdir(parents=True)
        w = Watched(m, control)
        yield w
        control.stop()
        w.rest.close()
        m.umount()
    finally:
        m.force()
    assert "BUG" not in m.log()
    assert rowfs("check", store, check=False).returncode == 0


def until(what):
    """Waits for it, patiently."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.002)


def points(count):
    """The first third of them, the others spread over all."""
    if count <= POINTS:
        return list(range(1, count + 1))
    first = POINTS // 3
    rest = random.Random(SEED).sample(range(first + 1, count + 1), POINTS - first)
    return list(range(1, first + 1)) + sorted(rest)


@pytest.mark.parametrize("what, error", [("fail", errno.EIO), ("fail", errno.ENOSPC),
                                         ("short", 0)])
@pytest.mark.parametrize("last", [0, calls.ALL], ids=["once", "from then on"])
def test_every_call_on_the_store_fails(watched, what, error, last):
    w, c = watched, watched.control
    mask = calls.WRITE | calls.TRUNCATE if error == errno.ENOSPC else CALLS
    w.script(0)
    c.count(mask)
    w.script(1)
    for round_, n in enumerate(points(c.stop()), 2):
        c.strike(what, mask, n, last, error)
        w.script(round_)
        c.stop()
        w.check()
        if round_ % 8 == 0:
            w.forget()
    if what == "short":
        assert w.refused == 0
    w.script(10 ** 6)
    w.check()


@pytest.mark.parametrize("span", [1, 20])
def test_every_allocation_fails(watched, span):
    """Of the whole process, the libraries too: once, and for a while."""
    w, c = watched, watched.control
    w.script(0)
    c.count(calls.MEMORY)
    w.script(1)
    for round_, n in enumerate(points(c.stop()), 2):
        c.strike("fail", calls.MEMORY, n, n + span - 1, errno.ENOMEM)
        w.script(round_, without_memory=True)
        c.stop()
        w.check()
        if round_ % 8 == 0:
            w.forget()
    w.script(10 ** 6)
    w.check()


def test_requests_without_memory_end_no_mount(watched):
    """There is none at all from the moment on when many write at once for the first time: nobody
    hangs, and afterwards all is as told."""
    w, c = watched, watched.control
    w.without_memory = False
    failed, begin = [], threading.Barrier(20)

    def run(i):
        try:
            begin.wait()
            for n in range(20):
                w.file(f"k{i}", n, lambda: put(w.dir / f"k{i}.json", f'{{"A":{n}}}'))
        except BaseException as e:  # noqa: BLE001
            failed.append(e)

    c.strike("fail", calls.MEMORY, 1, calls.ALL, errno.ENOMEM)
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert c.stop() > 0
    assert not failed and not any(t.is_alive() for t in threads), failed
    w.check()


def test_a_sync_that_failed_is_told_until_the_next_mount(watched):
    """What was committed stays; nothing is said to survive a power cut that may not."""
    w, c = watched, watched.control
    w.without_memory = False
    put(w.dir / "a.json", '{"A":1}')
    c.strike("fail", calls.SYNC, 1)
    with pytest.raises(OSError) as told:
        w.durable(w.dir / "b.json", b'{"A":2}')
    assert told.value.errno == errno.EIO
    c.stop()
    assert w.rest.upsert("Tab", "p", "c", {"A": 3}).status == 500
    put(w.dir / "d.json", '{"A":4}')
    w.may = {"a": {1}, "b": {2, None}, "c": {3, None}, "d": {4}}
    w.check()
    w.m.remount()
    w.rest = Client(w.m.port, accept=NONE)
    w.check()
    ok(w.rest.upsert("Tab", "p", "c", {"A": 5}))
    w.durable(w.dir / "b.json", b'{"A":6}')


def test_a_store_that_cannot_be_read_is_not_told_as_a_row_that_went(watched):
    """EIO, not ESTALE, from fsync and close of a row that is new and of one that was there."""
    w, c = watched, watched.control
    put(w.dir / "there.json", '{"A":1}')
    for n in range(8):
        name = f"new{n}.json" if n % 2 else "there.json"
        fd = os.open(w.dir / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, b'{"A":2}')
        c.strike("fail", CALLS, 1, calls.ALL, errno.EIO)
        try:
            with pytest.raises(OSError) as synced:
                os.fsync(fd)
        finally:
            with pytest.raises(OSError) as closed:
                os.close(fd)
            c.stop()
        assert (synced.value.errno, closed.value.errno) == (errno.EIO, errno.EIO), n
        put(w.dir / name, '{"A":3}')
        assert json.loads(get(w.dir / name)) == {"A": 3}


def test_a_full_disk_for_a_while_stops_nobody_for_good(watched):
    """Writers of both front ends keep trying while every write finds the disk full, and go on."""
    w, c = watched, watched.control
    kept, stop, said = {}, threading.Event(), {"ENOSPC": 0, 507: 0}

    def by_mount(who):
        i = 0
        while not stop.is_set():
            i += 1
            try:
                put(w.dir / f"{who}.json", f'{{"A":{i}}}')
                kept[who] = i
            except OSError as e:
                assert e.errno == errno.ENOSPC, e
                said["ENOSPC"] += 1

    def by_rest(who):
        i = 0
        with Client(w.m.port, accept=NONE) as client:
            while not stop.is_set():
                i += 1
                status = client.upsert("Tab", "p", who, {"A": i}).status
                assert status in (204, 507), status
                if status == 204:
                    kept[who] = i
                else:
                    said[507] += 1

    failed = []

    def run(how, who):
        try:
            how(who)
        except BaseException as e:  # noqa: BLE001
            failed.append(e)

    threads = [threading.Thread(target=run, args=(how, f"{how.__name__}{i}"))
               for how in (by_mount, by_rest) for i in range(2)]
    for t in threads:
        t.start()

    def get_on(was):
        until(lambda: failed or (len(kept) == 4 and all(kept[k] > was.get(k, 0) for k in kept)))

    for _ in range(3):
        get_on(dict(kept))
        was = dict(said)
        c.strike("fail", calls.WRITE | calls.TRUNCATE, 1, calls.ALL, errno.ENOSPC)
        until(lambda: failed or all(said[k] > was[k] for k in said))
        c.stop()
    get_on(dict(kept))
    stop.set()
    for t in threads:
        t.join(60)
    assert not failed, failed
    rows = {r["RowKey"]: r["A"] for r in w.rest.all("Tab")}
    assert rows == kept


# ---- the threads of a mount ----

def mount_background(rowfs, store, at, control, log):
    """As users do it; its outcome."""
    env = control.env(conftest.BUILD, store, base=conftest.ENV)
    return subprocess.run([str(rowfs.program), "mount", str(store), str(at), "-o", f"log={log}"],
                          env=env, capture_output=True, text=True, timeout=120)


def processes_of(store):
    """That have this store in their command line."""
    found = []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(store) in (proc / "cmdline").read_bytes().split(b"\0"):
                found.append(proc.name)
    return found


def test_a_mount_with_a_thread_too_few_is_refused(rowfs, store, work, control, request):
    """Each of them in turn: the command says so, and nothing of it is left.  Only that of commands
    is not missed."""
    at, log = work / "mnt", work / "log"
    at.mkdir()
    request.addfinalizer(lambda: conftest.detach(at))
    control.count(calls.THREAD)
    assert mount_background(rowfs, store, at, control, log).returncode == 0
    threads = control.stop()
    rowfs("umount", at)
    assert threads > 20
    mounted = {}
    for n in range(1, threads + 2):
        control.strike("fail", calls.THREAD, n, 0, errno.EAGAIN)
        done = mount_background(rowfs, store, at, control, log)
        assert control.stop() >= n or n > threads
        assert control.struck == (n <= threads)
        if done.returncode == 0:
            mounted[n] = done.stderr
            assert os.path.ismount(at) and os.listdir(at) == []
            rowfs("umount", at)
        else:
            assert done.returncode == 1, (n, done)
            assert done.stderr == (f"rowfs mount: cannot mount at '{at}': there is no room for its "
                                   "threads\n"), (n, done.stderr)
            assert not os.path.ismount(at) and os.listdir(at) == []
        os.rmdir(at)  # EBUSY while anybody has it
        at.mkdir()
        assert not processes_of(store), n
    # What takes commands is started right before those of the loop.
    assert set(mounted) == {threads - LOOP_THREADS, threads + 1}, mounted
    assert "commands will not reach this store" in mounted[threads - LOOP_THREADS]
    assert mounted[threads + 1] == ""


@pytest.mark.parametrize("have", [0, 3])
def test_a_mount_whose_threads_get_no_memory_is_served_by_those_that_do(watched, have):
    """Those that do not try again when it is their turn to read."""
    w, c = watched, watched.control
    w.m.umount()
    first = EARLIER + have + 1
    tries = 50 if have == 0 else calls.ALL
    c.strike("fail", calls.MEMORY, first, min(first + tries, calls.ALL), errno.ENOMEM,
             least=REQUEST_BYTES)
    w.m.start()
    w.rest = Client(w.m.port, accept=NONE)
    w.script(0)
    w.check()
    if have == 0:
        until(lambda: c.struck >= 20)
    c.strike("count", calls.MEMORY, 0, least=REQUEST_BYTES)
    w.script(1)
    w.check()
