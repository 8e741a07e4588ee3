# SPDX-License-Identifier: MIT
"""Several daemons on one store in a Ceph cluster (docs/cluster.md, Several daemons)."""

import concurrent.futures
import errno
import fcntl
import itertools
import json
import os
import signal
import threading

import pytest

import rest_client
from clusters import cluster, store  # noqa: F401 (fixtures)
from conftest import add_accounts
from queue_client import Queues
from tools import get, put, raises, xattr

TABLE = "Table"


@pytest.fixture
def two(rowfs, store, mount, work):
    """The partition p of a table, in two mounts of the store."""
    add_accounts(rowfs, store)
    mounts = [mount(store) for _ in range(2)]
    parts = [m / rest_client.ACCOUNT / TABLE / "p" for m in mounts]
    parts[0].mkdir(parents=True)
    return parts


def together(*calls):
    """Runs the calls at once, each (function, arguments ...); their results, or the first error."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [f.result() for f in [pool.submit(*c) for c in calls]]


# ---- what is acknowledged is seen ----

def test_CS1_each_mount_sees_at_once_what_the_other_acknowledged(two):
    a, b = two
    assert os.listdir(b) == [] and not (b / "r.json").exists()
    for i, (one, other) in enumerate([(a, b), (b, a)] * 5):
        put(one / "r.json", json.dumps({"i": i}))
        assert json.loads(get(other / "r.json")) == {"i": i}
        assert (other / "r.json").stat().st_size == (one / "r.json").stat().st_size
        assert xattr(other / "r.json", "etag") == xattr(one / "r.json", "etag")
        (one / "r.json").chmod(0o600 + i % 2 * 4)
        assert (other / "r.json").stat().st_mode & 0o777 == 0o600 + i % 2 * 4
        (one / "r.json").rename(one / "s.json")
        assert os.listdir(other) == ["s.json"] and not (other / "r.json").exists()
        (other / "s.json").unlink()
        assert not (one / "s.json").exists() and os.listdir(one) == []
        (one.parent / "q").mkdir()
        assert (other.parent / "q").stat().st_nlink == (one.parent / "q").stat().st_nlink
        (other.parent / "q").rmdir()
        assert not (one.parent / "q").exists()


def test_CS1_an_open_file_shows_what_another_mount_writes_and_an_open_row_does_not(two):
    a, b = two
    (a / "plain").write_bytes(b"one")
    put(a / "r.json", '{"i":1}')
    with open(b / "plain", "rb", buffering=0) as plain, open(b / "r.json") as row:
        assert plain.read() == b"one"
        for i in range(5):
            text = b"%d" % i * (i + 1)
            (a / "plain").write_bytes(text)
            assert os.fstat(plain.fileno()).st_size == len(text)
            assert os.pread(plain.fileno(), 100, 0) == text
        put(a / "r.json", '{"i":2}')
        assert json.load(row) == {"i": 1}
    assert json.loads(get(b / "r.json")) == {"i": 2}


def test_CS1_streams_and_queries_show_what_another_mount_changed(two):
    a, b = two
    for i in range(4):
        put(a / f"{i}.json", json.dumps({"i": i}))
        assert len(get(b / ".rows.ndjson").splitlines()) == i + 1
        assert (b / ".rows.ndjson").stat().st_size == len(get(b / ".rows.ndjson"))
        assert get(b.parent / ".query" / "i ge 0&top=2&select=i.ndjson").count(b"{") == min(i + 1, 2)


def test_CS5_no_lock_is_granted_that_other_machines_do_not_know(two):
    put(two[0] / "r.json", "{}")
    for part in two:
        with open(part / "r.json") as f:
            with raises(errno.ENOLCK):
                fcntl.flock(f, fcntl.LOCK_SH)
            with raises(errno.ENOLCK):
                fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(f, fcntl.LOCK_UN)


# ---- directory locks ----

def churn(part, who, rounds):
    """Creates, renames and removes names of its own and common ones, under the directory's lock."""
    for i in range(rounds):
        (part / f"{who}{i}").touch()
        put(part / f"{who}{i}.json", "{}")
        (part / f"{who}{i}").rename(part / f"{who}{i}.old")
        (part / f"{who}{i}.old").unlink()
        (part.parent / f"{who}{i}").mkdir()
        (part.parent / f"{who}{i}").rmdir()
        try:
            (part / "common").touch()
            (part / "common").unlink()
        except FileNotFoundError:
            pass  # another one was faster


def test_CS6_two_mounts_that_change_one_directory_do_not_wait_for_each_other(two):
    together(*((churn, part, f"{m}{n}", 12) for m, part in enumerate(two) for n in range(2)))
    names = sorted(f"{m}{n}{i}.json" for m in range(2) for n in range(2) for i in range(12))
    for part in two:
        assert sorted(n for n in os.listdir(part) if n != "common") == names


# ---- updates ----

def add_by_rest(port, times):
    """Adds one to the row so many times, on the condition that nobody else did."""
    done = 0
    with rest_client.Client(port) as client:
        while done < times:
            row = rest_client.ok(client.get(TABLE, "p", "r"), 200)
            answer = client.replace(TABLE, "p", "r", {"n": row.json["n"] + 1}, row.etag)
            assert answer.status in (204, 412, 503), answer
            done += answer.status == 204
    return done


def add_by_mount(path, times):
    """The same by a descriptor: its close fails with ESTALE if the row was changed meanwhile."""
    done = 0
    while done < times:
        try:
            fd = os.open(path, os.O_RDWR)
        except OSError as e:
            assert e.errno in (errno.ESTALE, errno.EAGAIN), e
            continue
        text = json.dumps({"n": json.loads(os.read(fd, 100))["n"] + 1}).encode()
        os.truncate(fd, 0)
        os.pwrite(fd, text, 0)
        try:
            os.close(fd)
            done += 1
        except OSError as e:
            assert e.errno in (errno.ESTALE, errno.EAGAIN), e
    return done


def test_CS2_no_update_is_lost_between_two_sockets_and_two_mounts(two, store, serve):
    ports = [serve(store).port for _ in range(2)]
    put(two[0] / "r.json", '{"n":0}')
    together(*((add_by_rest, port, 200) for port in ports),
             *((add_by_mount, part / "r.json", 200) for part in two))
    assert [json.loads(get(part / "r.json")) for part in two] == [{"n": 800}] * 2


def number_in(found, rows):
    """That of a batch, which writes one number into so many rows."""
    assert len({r["n"] for r in found}) <= 1 and len(found) in (0, rows), [r["n"] for r in found]
    return found[0]["n"] if found else 0


@pytest.mark.parametrize("rows, more", [(10, {}), (3, {"w": "x" * 20000, "x": "y" * 20000})],
                         ids=["small", "bodies_of_their_own"])
def test_CS3_a_batch_is_seen_whole_by_every_daemon(two, store, serve, rows, more):
    """Until each of the readers has seen six batches."""
    ports = [serve(store).port for _ in range(2)]
    ended = threading.Event()
    seen = [set() for _ in range(3)]

    def write():
        with rest_client.Client(ports[0]) as client:
            for i in itertools.takewhile(lambda _: not ended.is_set(), itertools.count()):
                ops = [("PUT", rest_client.entity_path(TABLE, "p", f"{k}"), {}, {"n": i, **more})
                       for k in range(rows)]
                rest_client.ok(client.batch(ops), 202)

    def read_all(read, numbers):
        try:
            while not ended.is_set():
                numbers.add(number_in(read(), rows))
                if min(map(len, seen)) > 6:
                    break
        finally:
            ended.set()

    def by_rest(port):
        client = rest_client.Client(port)
        return lambda: rest_client.ok(client.query(TABLE), 200).rows

    def by_stream():
        return [json.loads(line) for line in get(two[1] / ".rows.ndjson").splitlines()]

    readers = [by_rest(ports[0]), by_rest(ports[1]), by_stream]
    together((write,), *((read_all, r, numbers) for r, numbers in zip(readers, seen)))
    assert min(map(len, seen)) > 6


def test_CS8_a_message_is_taken_by_one_client_of_two_daemons(rowfs, store, serve):
    """And is gone for the other daemon as soon as it is deleted."""
    add_accounts(rowfs, store)
    ports = [serve(store, "--rest=queue=127.0.0.1:0").port for _ in range(2)]
    queues = [Queues(port) for port in ports]
    assert queues[0].ask("PUT", "/jobs").status == 201
    for i in range(40):
        assert queues[i % 2].put("jobs", i).status == 201

    def take(queue):
        mine = []
        while found := queue.get("jobs", numofmessages=3):
            mine += [m["MessageText"] for m in found]
            assert all(queue.delete("jobs", m).status == 204 for m in found)
        return mine

    taken = together(*((take, q) for q in queues * 2))
    assert sorted(int(n) for mine in taken for n in mine) == list(range(40))
    assert all(q.get("jobs") == [] for q in queues)


def test_CS7_a_daemon_that_is_killed_leaves_nothing_half_done(two, rowfs, store, serve):
    """The other one goes on; acknowledged rows are there, and the store is clean."""
    first, second = serve(store), serve(store)
    acknowledged = []

    def insert(server, who):
        with rest_client.Client(server.port) as client:
            for i in range(100):
                row = {"PartitionKey": f"{who}{i % 7}", "RowKey": f"{who}{i}"}
                try:
                    answer = client.insert(TABLE, row)
                    gone = i % 3 == 0 and client.delete(TABLE, row["PartitionKey"], row["RowKey"])
                except OSError:
                    return i
                if answer.status in (201, 204) and not gone:
                    acknowledged.append((row["PartitionKey"], row["RowKey"]))
                if server is first and i == 40:
                    os.killpg(first.proc.pid, signal.SIGKILL)
        return 100

    done = together((insert, first, "a"), (insert, second, "b"), (insert, first, "c"))
    assert done[1] == 100 and max(done[0], done[2]) < 100
    with rest_client.Client(second.port) as client:
        found = {(r["PartitionKey"], r["RowKey"]) for r in client.all(TABLE)}
    assert found >= set(acknowledged) and len(acknowledged) > 80
    assert "clean" in rowfs("check", store).stdout
