# SPDX-License-Identifier: MIT
"""Everybody at once: editors, rsync, tar, git, change sets, REST writers, `rm -r`, renames of
whole partitions, snapshots, streams, watchers, on one mount and by two paths, for a while.

ROWFS_SOAK_SECONDS  how long
ROWFS_SOAK_SEED     another one: other dice, and other workers in other numbers
"""

import errno
import itertools
import json
import os
import signal
import sys
import threading
import time

import pytest

import calls
import soak_bank as bank
from conftest import TOP, descriptors, need_fuse, need_to_cut
from rest_client import ACCOUNT, Client, ok
from soak import fork
from soak_cast import Ended
from tools import get, put, raises, sanitized, xattr

sys.path.insert(0, str(TOP / "tests/load"))
from house import Calm, Rough  # noqa: E402  (its directory has to be known first)

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("ROWFS_SOAK_SECONDS", "20" if sanitized() else "30"))
SEED = int(os.environ.get("ROWFS_SOAK_SEED", "0"))


@pytest.fixture(scope="module")
def soak(rowfs):
    """The whole run, of which each test looks at one promise."""
    need_fuse()
    house = Calm(rowfs, SEED, SECONDS / 8)
    house.bound = 60.0
    try:
        house.run(SECONDS)
        s = house.soak
        print(json.dumps({w.name: s.steps[w.number] for w in s.workers}))
        s.end = None if s.cut else Ended(s)
        yield s
        house.close()
        assert house.problems == []
    finally:
        house.clean()
        if house.problems:
            print(f"kept: {house.work}")


def none_of(soak, promise):
    assert not soak.problems[promise], "\n".join(soak.problems[promise])


def ended(soak):
    if soak.end is None:
        pytest.skip("it ended early; see the other tests")
    return soak.end


def test_Z1_everybody_gets_on_and_meets_only_errors_that_others_explain(soak):
    none_of(soak, "Z1")
    assert [w.name for w in soak.workers if soak.steps[w.number] < 2] == []


def test_Z2_every_read_is_a_whole_document_and_none_goes_back(soak):
    none_of(soak, "Z2")
    end = ended(soak)
    for rk, board in soak.cast.boards.items():
        assert end.by_rest["Soak", "edit", rk]["V"] >= board.value


def test_Z3_counters_lose_no_update_and_count_none_twice(soak):
    none_of(soak, "Z3")
    end = ended(soak)
    for c in soak.cast.counters:
        assert end.by_rest["Soak", "count", c.rk] == {"N": c.done.value} == end.by_mount[
            "Soak", "count", c.rk]


def test_Z4_change_sets_and_renamed_partitions_are_seen_whole(soak):
    none_of(soak, "Z4")
    end = ended(soak)
    left = [row["N"] for (table, _, _), row in end.by_mount.items() if table == bank.BANK[0]]
    assert len(left) == bank.ACCOUNTS and sum(left) == bank.ACCOUNTS * bank.FUNDS


def test_Z5_what_was_acknowledged_is_seen_by_everybody(soak):
    none_of(soak, "Z5")
    assert list(ended(soak).stale()) == []


@pytest.mark.parametrize("etag, later", [
    (".398Z", ".3983855Z"), ("Z", ".0000001Z"), (".61Z", ".6189879Z"), (".9Z", ".99Z")])
def test_the_bank_knows_a_later_version_whatever_zeros_an_ETag_leaves_out(etag, later):
    """As texts the later one comes first: a digit is less than Z."""
    head = "W/\"datetime'2026-11-23T02%3A20%3A13"
    etag, later = f"{head}{etag}'\"", f"{head}{later}'\""
    assert bank.is_later(later, etag) and not bank.is_later(etag, later)
    assert not bank.is_later(etag, etag)


def test_Z6_both_front_ends_and_an_export_show_the_same_at_the_end(soak):
    none_of(soak, "Z6")
    end = ended(soak)
    assert end.by_mount == end.by_rest == end.by_export
    assert len(end.by_rest) > 100


def test_Z7_nothing_stays_open(soak):
    """Releases follow the closes.  The stage of a writer that was killed between the two steps
    of its open goes when a row is looked up some seconds later."""
    end, limit = ended(soak), time.monotonic() + 60
    for n in itertools.count():
        assert not (end.at / "Soak" / "edit" / f"none{n}.json").exists()
        stats = end.stats()
        left = stats["open_stages"], stats["cache"]["pinned"], stats["held_views"]
        if left == (0, 0, 0) or time.monotonic() > limit:
            break
        time.sleep(0.05)
    assert left == (0, 0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to see what the daemon holds")
def test_Z7_what_is_held_while_all_stand_still_is_bounded(soak):
    """By what there was before anybody came, a connection of each worker, and what is kept to be
    used again: connections to the store, threads of the request loop."""
    ended(soak)
    idle, seen = soak.house.idle, soak.house.plateaus
    assert seen and max(p["fds"] for p in seen) <= idle["fds"] + len(soak.workers) + 64
    assert max(p["threads"] for p in seen) <= idle["threads"] + 24


def test_Z9_nothing_acknowledged_is_lost_and_nothing_refused_is_thrown_away(soak):
    none_of(soak, "Z9")


def test_Z9_nor_while_the_daemon_is_killed_its_disk_full_and_its_calls_fail(rowfs):
    need_fuse()
    need_to_cut()
    house = Rough(rowfs, SEED, every=1)
    house.bound = house.recovery = 60.0
    try:
        house.run(20)
        house.close()
        assert house.problems == []
        assert len(house.conductor.recovered) > 2 and house.clock.kinds["write a row"]["broken"]
    finally:
        house.clean()
        if house.problems:
            print(f"kept: {house.work}")


def test_Z9_an_fsync_that_finds_no_room_is_no_refusal(struck):
    """The row is committed, so what is told is not ENOSPC: that says that nothing was changed."""
    m, control = struck()
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b'{"V":1}')
    control.strike("fail", calls.SYNC, 1, error=errno.ENOSPC)
    with raises("EIO"):
        os.fsync(fd)
    assert control.struck == 1
    control.stop()
    os.close(fd)
    assert get(part / "r.json") == b'{"V":1}'
    assert "No space" in xattr(part / "r.json", "error")


def test_Z7_clients_that_hang_up_within_a_request_leave_no_connection(rest_mount, rest_store):
    """Their last bytes and the end come together."""
    m = rest_mount(rest_store)
    pid = m.proc.pid
    with Client(m.port) as client:
        head = b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
        before = len(descriptors(pid))
        for n in range(300):
            with client.connect() as s:
                s.sendall(head[:n % len(head) + 1])
    end = time.monotonic() + 25  # less than a request may take
    while len(descriptors(pid)) > before + 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert len(descriptors(pid)) <= before + 2


def test_Z8_a_handle_tells_the_etag_of_what_it_reads(rest_mount, rest_store):
    """So that a condition made of both is never one for a version that was not read."""
    m = rest_mount(rest_store)
    part = m / ACCOUNT / "Tab" / "p"
    with Client(m.port) as client:
        ok(client.create_table("Tab"), 201)
        ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": "r", "V": 1}), 201)
        for change in (lambda n: ok(client.replace("Tab", "p", "r", {"V": n}), 204),
                       lambda n: put(part / "r.json", json.dumps({"V": n}))):
            row = ok(client.get("Tab", "p", "r"), 200)
            reader, writer = (os.open(part / "r.json", how) for how in (os.O_RDONLY, os.O_RDWR))
            try:
                change(row.json["V"] + 1)
                for fd in reader, writer:
                    assert json.loads(os.read(fd, 100))["V"] == row.json["V"]
                    assert os.getxattr(fd, "user.rowfs.etag").decode() == row.etag
                now = ok(client.get("Tab", "p", "r"), 200)
                assert xattr(part / "r.json", "etag") == now.etag != row.etag
            finally:
                os.close(reader)
                os.close(writer)


def rewrite(path, stop, failures, count):
    """Opens and closes; nothing of that is refused."""
    try:
        while not stop.is_set():
            put(path, '{"V":1}')
            count.value += 1
    except OSError as e:
        failures.put(repr(e))


def test_Z1_a_server_that_stood_still_for_a_while_refuses_no_open(mnt, part):
    """Opening a row to write it takes two steps; between them the machine may be asleep."""
    stop, failures = fork.Event(), fork.Queue()
    counts = [fork.Value("Q", 0) for _ in range(6)]
    workers = [fork.Process(target=rewrite, args=(
        part / f"r{i % 3}.json", stop, failures, count)) for i, count in enumerate(counts)]
    for w in workers:
        w.start()
    try:
        for _ in range(3):
            before = [c.value for c in counts]
            while failures.empty() and any(c.value < b + 20 for c, b in zip(counts, before)):
                time.sleep(0.01)
            mnt.proc.send_signal(signal.SIGSTOP)
            time.sleep(1.2)  # so long the machine is asleep
            mnt.proc.send_signal(signal.SIGCONT)
    finally:
        stop.set()
        for w in workers:
            w.join(60)
    assert failures.empty(), failures.get()


def test_Z1_hundreds_of_threads_that_open_at_once_are_refused_nothing(mnt, part):
    """All of them are between the two steps of their open, before the first one comes back."""
    threads, failures, begun = [], [], []
    names = [part / f"r{n}.json" for n in range(200 if sanitized() else 600)]
    for name in names:
        put(name, '{"V":1}')
        name.stat()

    def open_it(name):
        begun.append(name)
        try:
            os.close(os.open(name, os.O_WRONLY))
        except OSError as e:
            failures.append(repr(e))

    mnt.proc.send_signal(signal.SIGSTOP)
    try:
        for name in names:
            threads.append(threading.Thread(target=open_it, args=(name,), daemon=True))
            threads[-1].start()
        while len(begun) < len(names):
            time.sleep(0.01)
    finally:
        mnt.proc.send_signal(signal.SIGCONT)
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)
    assert (len(failures), failures[:1]) == (0, [])
