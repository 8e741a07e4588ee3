# SPDX-License-Identifier: MIT
"""Workers of a queue in the mount: .get, .peek and .wait."""

import json
import os
import select
import signal
import subprocess
import threading
import time

import pytest
from queue_client import Queues
from rest_client import ACCOUNT
from tools import get, put, raises, xattr

# As in docs/queues.md.
WORKER = """while read -r id < .wait; do
    mv $id .taken/ 2> /dev/null || continue
    [ "$(cat .taken/$id)" = end ] && { rm .taken/$id; break; }
    cat .taken/$id && rm .taken/$id
done"""


@pytest.fixture
def jobs(mount, store):
    """An empty queue."""
    m = mount(store)
    os.mkdir(m / "acct")
    os.mkdir(m / "acct/.queue/jobs")
    return m / "acct/.queue/jobs"


def visible(queue):
    return [n for n in os.listdir(queue) if not n.startswith(".")]


def reads(path):
    """A process that reads the file, and blocks."""
    return subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def is_blocked(process):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with open(f"/proc/{process.pid}/syscall", encoding="ascii") as f:
            if f.read().startswith("0 0x3 "):  # it reads the file
                return True
        assert process.poll() is None, "it did not wait"
        time.sleep(0.02)
    return False


def test_MQ10_get_takes_the_next_message(jobs):
    assert get(jobs / ".get") == b"" and get(jobs / ".peek") == b""
    put(jobs / "new", 'a "text"')
    put(jobs / "new", b"\xff")
    first, second = visible(jobs)
    peeked = json.loads(get(jobs / ".peek"))
    assert peeked["id"] == first and peeked["text"] == 'a "text"' and "receipt" not in peeked
    taken = json.loads(get(jobs / ".get"))
    assert taken["id"] == first and taken["count"] == 1
    assert xattr(jobs / ".taken" / first, "receipt") == taken["receipt"]
    assert visible(jobs) == [second]
    os.unlink(jobs / ".taken" / first)
    assert json.loads(get(jobs / ".get"))["text"] == "?"
    assert get(jobs / ".get") == b""
    for name in (".get", ".peek", ".wait"):
        assert name not in os.listdir(jobs)
        with raises("EPERM"):
            (jobs / name).write_text("x")
        with raises("EPERM"):
            os.unlink(jobs / name)


def test_MQ11_a_reader_of_wait_sleeps_until_a_message_is_put(jobs):
    waits = reads(jobs / ".wait")
    assert is_blocked(waits)
    put(jobs / "new", "text")
    assert waits.communicate(timeout=60)[0].split() == visible(jobs)


def test_MQ11_rest_wakes_a_waiter(rest_mount, rest_store):
    m = rest_mount(rest_store)
    client = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    jobs = m / ACCOUNT / ".queue/jobs"
    os.mkdir(jobs)
    waits = reads(jobs / ".wait")
    assert is_blocked(waits)
    assert client.put("jobs", "text").status == 201
    assert waits.communicate(timeout=60)[0].split() == visible(jobs)
    client.get("jobs")
    waits = reads(jobs / ".wait")
    assert is_blocked(waits)
    assert client.ask("DELETE", "/jobs").status == 204
    assert "Stale" in waits.communicate(timeout=60)[1]


def test_MQ11_time_wakes_a_waiter(jobs):
    put(jobs / "new", "text")
    name, = visible(jobs)
    os.rename(jobs / name, jobs / ".taken" / name)
    os.setxattr(jobs / ".taken" / name, "user.rowfs.visibility", b"3")
    began = time.monotonic()
    assert get(jobs / ".wait").decode().split() == [name]
    assert time.monotonic() - began > 1


def test_MQ11_a_waiter_can_be_interrupted_and_polled(jobs):
    waits = reads(jobs / ".wait")
    assert is_blocked(waits)
    waits.send_signal(signal.SIGINT)
    assert waits.wait(timeout=60) == -signal.SIGINT
    fd = os.open(jobs / ".wait", os.O_RDONLY)
    p = select.poll()
    p.register(fd, select.POLLIN)
    assert p.poll(200) == []
    threading.Timer(0.2, lambda: put(jobs / "new", "text")).start()
    assert p.poll(60000) == [(fd, select.POLLIN)]
    assert os.read(fd, 100).decode().split() == visible(jobs)
    os.close(fd)


def test_MQ11_many_waiters_hold_up_nobody(jobs):
    waits = [reads(jobs / ".wait") for _ in range(60)]
    for w in waits:
        assert is_blocked(w)
    began = time.monotonic()
    assert os.listdir(jobs) == [] and b"rowfs" in get(jobs.parent.parent.parent / ".rowfs/version")
    os.mkdir(jobs.parent / "other")
    assert time.monotonic() - began < 30
    put(jobs / "new", "text")
    name, = visible(jobs)
    assert [w.communicate(timeout=60)[0].split() for w in waits] == [[name]] * 60


def test_MQ11_a_waiter_ends_with_the_mount(mount, store):
    m = mount(store)
    os.mkdir(m / "acct")
    os.mkdir(m / "acct/.queue/jobs")
    waits = reads(m / "acct/.queue/jobs/.wait")
    assert is_blocked(waits)
    m.sigterm()
    assert waits.wait(timeout=60) != 0


@pytest.mark.parametrize("workers", [2, 8])
def test_MQ12_workers_of_three_lines_share_the_work(jobs, workers):
    run = [subprocess.Popen(["bash", "-c", WORKER], cwd=jobs, stdout=subprocess.PIPE, text=True)
           for _ in range(workers)]
    for i in range(60):
        put(jobs / "new", f"m{i}\n")
    for _ in range(workers):
        put(jobs / "new", "end")
    took = [line for w in run for line in w.communicate(timeout=240)[0].split()]
    assert sorted(took) == sorted(f"m{i}" for i in range(60))
    assert os.listdir(jobs) == []


def test_MQ10_only_who_may_write_the_queue_may_read_get(jobs):
    os.chmod(jobs.parent.parent, 0o755)
    modes = [os.stat(jobs / n).st_mode & 0o777 for n in (".get", ".peek", ".wait")]
    assert modes == [0o400, 0o444, 0o444]
    os.chmod(jobs.parent.parent, 0o770)
    modes = [os.stat(jobs / n).st_mode & 0o777 for n in (".get", ".peek", ".wait")]
    assert modes == [0o440, 0o440, 0o440]
