# SPDX-License-Identifier: MIT
"""fsync(2): of many at once, with few syncs of the store; and where the disk refuses."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tools import get, need, put, traced, xattr

WRITERS = 40  # more than the request loop has threads
ROUNDS = 10


def store_stats(mnt):
    return json.loads(get(mnt / ".rowfs/stats.json"))["store"]


def test_W5_fsync_of_many_at_once_is_answered_to_each_and_shared(mnt, part):
    before, failed = store_stats(mnt), []
    ready = threading.Barrier(WRITERS)

    def write(i):
        try:
            fd = os.open(part / f"r{i}.json", os.O_RDWR | os.O_CREAT)
            ready.wait(60)
            for k in range(ROUNDS):
                os.pwrite(fd, b'{"N":%d}' % (100 + k), 0)
                os.fsync(fd)
                assert get(part / f"r{i}.json") == b'{"N":%d}' % (100 + k)
            where = os.open(part, os.O_RDONLY)
            os.fsync(where)
            os.close(where)
            os.close(fd)
        except (OSError, AssertionError, threading.BrokenBarrierError) as e:
            failed.append(e)
    threads = [threading.Thread(target=write, args=(i,)) for i in range(WRITERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not failed and not any(t.is_alive() for t in threads)
    after = store_stats(mnt)
    assert after["change_sets"] - before["change_sets"] >= WRITERS * ROUNDS
    assert 0 < after["syncs"] - before["syncs"] < WRITERS * ROUNDS
    mnt.kill9()
    mnt.start()
    for i in range(WRITERS):
        assert get(part / f"r{i}.json") == b'{"N":%d}' % (99 + ROUNDS)


def test_W5_what_fsync_committed_is_seen_by_its_name_while_the_version_before_is_open(part):
    """The name leads to what is new at once, and not only to who opens it."""
    row, stop, wrong = part / "r.json", threading.Event(), []
    put(row, '{"A":0}')

    def look():
        while not stop.is_set():
            for name in os.listdir(part):
                os.stat(part / name)
    others = [threading.Thread(target=look) for _ in range(2)]
    for t in others:
        t.start()
    for n in range(300):
        text = b'{"A":%d,"P":"%s"}' % (n, b"p" * (n % 7))
        fd = os.open(row, os.O_WRONLY | os.O_TRUNC)
        with open(row, "rb") as old:
            before = old.read(), os.stat(row).st_size, xattr(row, "etag")
            os.write(fd, text)
            os.fsync(fd)
            size, etag = os.stat(row).st_size, xattr(row, "etag")
            if size != len(text) or etag == before[2] or get(row) != text:
                wrong.append((before, size, etag, text))
        os.close(fd)
    stop.set()
    for t in others:
        t.join(60)
    assert not wrong, (len(wrong), wrong[0])


# Of one process: its descriptor is synced, its name looked at, its descriptor linked into the
# directory (which is refused, after the kernel has waited for the file with the directory held).
LINKS = """
import ctypes, os, sys, threading
row = sys.argv[1]
fd = os.open(row, os.O_RDWR | os.O_CREAT)
libc, ended = ctypes.CDLL(None, use_errno=True), threading.Event()
def look():
    while not ended.is_set():
        os.stat(row)
def link():
    source, name = b"/proc/self/fd/%d" % fd, os.fsencode(row + ".other.json")
    while not ended.is_set():
        if libc.linkat(-100, source, -100, name, 0x400) == 0:
            os._exit(1)
threads = [threading.Thread(target=f) for f in (look, link)]
for t in threads:
    t.start()
for n in range(3):
    os.pwrite(fd, b'{"N":%d}' % n, 0)
    os.fsync(fd)
ended.set()
for t in threads:
    t.join()
"""


def test_W5_fsync_ends_while_its_descriptor_is_linked_into_the_directory(part):
    """Who links waits for the file and has the directory, which the name needs to be dropped."""
    done = subprocess.run([sys.executable, "-c", LINKS, str(part / "r.json")], timeout=120)
    assert done.returncode == 0
    assert get(part / "r.json") == b'{"N":2}'


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: nobody else may trace a server")
def test_W5_where_the_disk_refuses_fsync_says_so(mnt, part):
    need("strace")
    put(part / "r.json", '{"N":1}')
    fd = os.open(part / "r.json", os.O_RDWR | os.O_TRUNC)
    trace = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync",
                              "-e", "inject=fdatasync:error=EIO", "-p", str(mnt.proc.pid)])
    try:
        traced(trace, mnt.proc.pid)
        os.write(fd, b'{"N":2}')
        with pytest.raises(OSError) as e:
            os.fsync(fd)
    finally:
        trace.send_signal(signal.SIGINT)
        trace.wait(60)
    assert e.value.errno == errno.EIO
    assert b"refused to sync" in os.getxattr(part / "r.json", "user.rowfs.error")
    assert get(part / "r.json") == b'{"N":2}'  # committed, and not taken back
    with pytest.raises(OSError) as e:  # the system forgets what it failed to write: EIO stays
        os.fsync(fd)
    assert e.value.errno == errno.EIO
    os.close(fd)
    put(part / "q.json", "{}")
