# SPDX-License-Identifier: MIT
"""The mount of an account whose service does not answer: what it still shows, soft, hard and interruptions."""

import concurrent.futures
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys

import pytest
from rest_client import ok
from tools import get, put, raises, sh, wait_for

from test_client import PROGRAM
from test_transfer import numbered
from there import proxied, second, there_with  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
TRIES = 3  # of one request, with soft and hard


@pytest.fixture
def away(second, proxied):  # noqa: F811
    """A service with rows behind a proxy; away.proxy.leave() makes it go."""
    second.account("import", "Posts", input=numbered(4, partitions=2))
    second.proxy = proxied
    return second


def there(path, command):
    """Runs it in a directory of the mount.  subprocess changes there with Python's lock held, which the proxy needs."""
    return sh(f"cd {path} && {command}")


def fails(act):
    try:
        act()
    except OSError as e:
        return e.errno == errno.EIO
    return False


def test_what_was_read_lately_is_shown_while_the_service_is_away(away):
    posts = away.mounted("cache=3600") / "Posts"
    seen = there(posts, "grep -r . p0").stdout
    away.proxy.leave()
    assert there(posts, "grep -r . p0").stdout == seen and len(seen.splitlines()) == 2
    with raises(errno.EIO):
        get(posts / "p1/000001.json")
    assert json.loads(get(posts / "p0/000000.json")) == {"N": 0}
    with raises(errno.EIO):
        put(posts / "p0/000000.json", "{}")


def test_an_old_row_is_not_shown_as_if_it_were_new(away):
    row = away.mounted("cache=1") / "Posts/p0/000000.json"
    assert json.loads(get(row)) == {"N": 0}
    away.proxy.leave()
    wait_for(lambda: fails(lambda: get(row)))
    ok(away.client.replace("Posts", "p0", "000000", {"N": 7}))
    for act in (lambda: get(row), lambda: os.stat(row), lambda: os.listdir(row.parent)):
        assert fails(act)
    away.proxy.come_back()
    assert json.loads(get(row)) == {"N": 7}


@pytest.mark.parametrize("options", [(), ("soft",)])
def test_soft_fails_after_a_number_of_tries(away, options):
    row = away.mounted("cache=0", *options) / "Posts/p0/000000.json"
    os.stat(row)
    away.proxy.leave()
    before = away.proxy.requests
    with raises(errno.EIO):
        os.stat(row)
    # The kernel looks a name up a second time where it knew it.
    assert away.proxy.requests - before in (TRIES, 2 * TRIES)


CHANGES = {
    "over": ("printf '{\"N\":9}' > p0/000000.json", ("p0", "000000"), {"N": 9}),
    "new": ("printf '{\"N\":9}' > p0/new.json", ("p0", "new"), {"N": 9}),
    "sed": ("sed -i s/0/9/ p0/000000.json", ("p0", "000000"), {"N": 9}),
    "mv": ("mv p0/000000.json p0/moved.json", ("p0", "moved"), {"N": 0}),
    "rm": ("rm p0/000000.json", ("p0", "000000"), None),
}


def is_patient(proxy, before):
    """Whether more requests came than soft would send."""
    return proxy.requests - before > TRIES


def waits_until_it_is_back(proxy, before, act):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(act)
        try:
            wait_for(lambda: is_patient(proxy, before) or done.done())
            assert not done.done()
        finally:
            proxy.come_back()
        return done.result()


@pytest.mark.parametrize("how", ["cut", "busy", "lost"])
@pytest.mark.parametrize("change", CHANGES)
def test_hard_makes_a_change_once_when_the_service_is_back(away, change, how):
    command, keys, want = CHANGES[change]
    posts = away.mounted("cache=3600", "hard") / "Posts"
    there(posts, "grep -r . p0")
    before = away.proxy.requests
    away.proxy.leave(how)
    waits_until_it_is_back(away.proxy, before, lambda: there(posts, command))
    answer = away.client.get("Posts", *keys)
    assert answer.status == 404 if want is None else ok(answer).json["N"] == want["N"]


@pytest.mark.parametrize("command, lost, rows", [
    ("mv p0/000000.json p0/moved.json", 2 * TRIES, ["000002", "moved"]),
    ("sh -c \"set -C; printf '{}' > p0/new.json\"", 2 * TRIES, ["000000", "000002", "new"]),
    ("rm p0/000000.json", 2 * TRIES, ["000002"]),
    ("mkdir ../Table", TRIES, ["000000", "000002"]),
])
def test_hard_knows_its_own_change_after_all_answers_of_a_try_were_lost(away, command, lost, rows):
    """Those of the change, and those of the read that looks whether it was made."""
    posts = away.mounted("cache=3600", "hard") / "Posts"
    there(posts, "grep -r . p0")
    away.proxy.leave("lost")
    away.proxy.cuts = lost
    there(posts, command)
    assert away.proxy.cuts == 0
    found = ok(away.client.query("Posts", filter="PartitionKey eq 'p0'")).rows
    assert [row["RowKey"] for row in found] == rows


def test_hard_waits_for_reads(away):
    posts = away.mounted("cache=0", "hard") / "Posts"
    away.proxy.leave()
    before = away.proxy.requests
    done = waits_until_it_is_back(away.proxy, before, lambda: there(posts, "grep -rc N p0 p1"))
    assert done.stdout.count(":1") == 4


@contextlib.contextmanager
def reader(away, *program):
    """A program that waits for a row on a hard mount."""
    row = away.mounted("cache=0", "hard") / "Posts/p0/000000.json"
    away.proxy.leave()
    before = away.proxy.requests
    child = subprocess.Popen([*program, row], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: is_patient(away.proxy, before) or child.poll() is not None)
        assert child.poll() is None
        yield child
    finally:
        away.proxy.come_back()
        child.kill()
        child.communicate()


def test_eight_calls_of_hard_wait_and_the_ninth_fails(away):
    away.account("import", "Many", input=numbered(9, partitions=9))
    table = away.mounted("cache=0", "hard") / "Many"
    folders = [os.open(table / name, os.O_RDONLY) for name in sorted(os.listdir(table))]
    away.proxy.leave()
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        # A directory each: look-ups in one directory come one after the other.
        calls = [pool.submit(os.stat, f"{i:06}.json", dir_fd=fd) for i, fd in enumerate(folders)]
        try:
            [first], others = concurrent.futures.wait(calls, 60, concurrent.futures.FIRST_COMPLETED)
            assert first.exception().errno == errno.EIO and len(others) == 8
        finally:
            away.proxy.come_back()
        assert all(call.result().st_size == 8 for call in others)
    for fd in folders:
        os.close(fd)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL])
def test_a_signal_ends_the_wait_of_hard(away, number):
    with reader(away, "stat") as child:
        child.send_signal(number)
        assert child.wait(timeout=60) == -number
    assert json.loads(get(away.path / "Posts/p0/000000.json")) == {"N": 0}


def test_a_signal_with_a_handler_ends_the_wait_with_EINTR(away):
    program = ("import os, signal, sys\n"
               "signal.signal(signal.SIGTERM, lambda *_: None)\n"
               "try: os.stat(sys.argv[1])\n"
               "except InterruptedError: print('EINTR')\n")
    with reader(away, sys.executable, "-c", program) as child:
        child.send_signal(signal.SIGTERM)
        assert child.communicate(timeout=60)[0] == "EINTR\n"


def test_an_interrupted_change_whose_answer_was_lost_is_EIO(away):
    """It may have been made: EINTR would say that it was not."""
    posts = away.mounted("cache=3600", "hard") / "Posts"
    there(posts, "grep -r . p0")
    program = ("import os, signal, sys\n"
               "signal.signal(signal.SIGTERM, lambda *_: None)\n"
               "try: os.unlink(sys.argv[1])\n"
               "except OSError as e: print(e.errno)\n")
    away.proxy.leave("lost")
    before = away.proxy.requests
    child = subprocess.Popen([sys.executable, "-c", program, posts / "p0/000000.json"], text=True, stdout=subprocess.PIPE)
    try:
        wait_for(lambda: is_patient(away.proxy, before) or child.poll() is not None)
        child.send_signal(signal.SIGTERM)
        assert child.communicate(timeout=60)[0] == f"{errno.EIO}\n"
    finally:
        away.proxy.come_back()
        child.kill()
        child.communicate()
    assert away.client.get("Posts", "p0", "000000").status == 404


def test_a_signal_of_normal_work_does_not_end_the_wait(away):
    program = ("import os, signal, sys\n"
               "signal.signal(signal.SIGCHLD, lambda *_: None)\n"
               "print(os.stat(sys.argv[1]).st_size)\n")
    with reader(away, sys.executable, "-c", program) as child:
        child.send_signal(signal.SIGCHLD)
        before = away.proxy.requests
        wait_for(lambda: is_patient(away.proxy, before) or child.poll() is not None)
        assert child.poll() is None
        away.proxy.come_back()
        assert child.communicate(timeout=60)[0] == "8\n"


def test_a_daemon_that_is_told_to_end_does_not_wait_for_the_service(away):
    with reader(away, "stat") as child:
        away.mount.proc.terminate()
        assert away.mount.proc.wait(timeout=60) == 0
        child.wait(timeout=60)
