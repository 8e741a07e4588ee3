# SPDX-License-Identifier: MIT
"""flock(2) on rows holds for the row, not for one version of it."""

import errno
import fcntl
import os
import signal
import subprocess
import time

import pytest

from tools import put


def wants(fd, how):
    """Whether the lock can be had now."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
        return True
    except OSError as e:
        assert e.errno == errno.EWOULDBLOCK
        return False


@pytest.mark.parametrize("name", ["r.json", "plain.lock"])
def test_K1_exclusive_and_shared_locks(part, name):
    put(part / name, "{}")
    a, b = (os.open(part / name, os.O_RDONLY) for _ in "ab")
    assert wants(a, fcntl.LOCK_SH) and wants(b, fcntl.LOCK_SH)
    assert not wants(a, fcntl.LOCK_EX)
    fcntl.flock(b, fcntl.LOCK_UN)
    assert wants(a, fcntl.LOCK_EX) and not wants(b, fcntl.LOCK_SH)
    os.close(a)
    end = time.monotonic() + 60
    while not wants(b, fcntl.LOCK_EX):  # the release follows the close
        assert time.monotonic() < end
    os.close(b)


@pytest.mark.parametrize("access", [os.O_RDONLY, os.O_RDWR])
def test_K1_a_name_that_is_new(part, access):
    """As flock(1) makes it: who comes next finds the file that the first one locked."""
    a = os.open(part / "new.json", access | os.O_CREAT)
    fcntl.flock(a, fcntl.LOCK_EX)
    b = os.open(part / "new.json", access | os.O_CREAT)
    had = wants(b, fcntl.LOCK_EX)
    fcntl.flock(a, fcntl.LOCK_UN)
    has = wants(b, fcntl.LOCK_EX)
    os.close(a)
    os.close(b)
    assert (had, has) == (False, True)


@pytest.mark.parametrize("access", [os.O_RDONLY, os.O_RDWR])
def test_K2_a_lock_holds_over_the_first_commit(part, access):
    """As a script does that locks the row which it makes."""
    path = part / "first.json"
    old, again = (os.open(path, access | os.O_CREAT) for _ in "ab")
    fcntl.flock(old, fcntl.LOCK_EX)
    put(path, '{"a":1}')
    new = os.open(path, os.O_RDONLY)
    held = wants(new, fcntl.LOCK_SH), wants(again, fcntl.LOCK_SH)
    fcntl.flock(old, fcntl.LOCK_UN)
    free = wants(new, fcntl.LOCK_EX), wants(again, fcntl.LOCK_SH), wants(old, fcntl.LOCK_SH)
    for fd in (old, again, new):
        os.close(fd)
    assert (held, free) == ((False, False), (True, False, False))


def test_K2_a_lock_holds_over_commits_and_renames(part):
    put(part / "r.json", '{"a":1}')
    old = os.open(part / "r.json", os.O_RDONLY)
    fcntl.flock(old, fcntl.LOCK_EX)
    put(part / "r.json", '{"a":2}')
    os.rename(part / "r.json", part / "s.json")
    new = os.open(part / "s.json", os.O_RDONLY)
    assert os.read(new, 100) == b'{"a":2}'
    assert not wants(new, fcntl.LOCK_SH)
    fcntl.flock(old, fcntl.LOCK_UN)
    assert wants(new, fcntl.LOCK_EX)
    os.close(old)
    os.close(new)


def test_K3_waiting_for_a_lock_ends_with_it_or_with_a_signal(part):
    put(part / "r.json", "{}")
    held = os.open(part / "r.json", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    command = ["flock", str(part / "r.json"), "echo", "mine"]
    waiter = subprocess.Popen(command, stdout=subprocess.PIPE)
    stopped = subprocess.Popen(command, stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        waiter.wait(0.3)
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(60) == -signal.SIGTERM and stopped.stdout.read() == b""
    fcntl.flock(held, fcntl.LOCK_UN)
    assert waiter.communicate(timeout=60)[0] == b"mine\n"
    os.close(held)


def test_K4_a_killed_holder_lets_go(part):
    put(part / "r.json", "{}")
    # -o: the command does not inherit the lock
    holder = subprocess.Popen(["flock", "-o", str(part / "r.json"), "cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdin.write(b"x")
    holder.stdin.flush()
    assert holder.stdout.read(1) == b"x"
    fd = os.open(part / "r.json", os.O_RDONLY)
    assert not wants(fd, fcntl.LOCK_EX)
    holder.kill()
    holder.wait()
    end = time.monotonic() + 60
    while not wants(fd, fcntl.LOCK_EX):
        assert time.monotonic() < end
    os.close(fd)
    holder.stdin.close()


def test_K5_a_thousand_turns(part):
    """Four processes count up one row under its lock: no update is lost."""
    put(part / "r.json", '{"n":0}')
    script = """
import fcntl, json, os, sys
path = sys.argv[1]
for _ in range(50):
    lock = os.open(path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    n = json.load(open(path))["n"]
    with open(path, "w") as f:
        f.write('{"n":%d}' % (n + 1))
    os.close(lock)
"""
    workers = [subprocess.Popen(["python3", "-c", script, str(part / "r.json")]) for _ in range(4)]
    assert [w.wait(60) for w in workers] == [0] * 4
    assert (part / "r.json").read_bytes() == b'{"n":200}'
