# SPDX-License-Identifier: MIT
"""fsync(2): of many at once, with few syncs of the store; and where the disk refuses."""

import errno
import json
import os
import signal
import subprocess
import threading

import pytest

from tools import get, need, put, traced

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
