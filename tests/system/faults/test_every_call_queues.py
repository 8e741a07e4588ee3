# SPDX-License-Identifier: MIT
"""Queues while the daemon's calls on the store's files fail one by one, and its allocations: messages are
put, taken, changed and deleted through the mount and REST, queues are made, described, cleared
and removed.  Whatever the caller is told, each message is there once or gone as it was told."""

import contextlib
import errno
import itertools
import os

import pytest

import calls
from queue_client import Queues, messages
from rest_client import ACCOUNT
from test_every_call import CALLS, REFUSED, STATUSES, control, points, watched  # noqa: F401
from tools import get, put, wait_for

POLICY = ("<SignedIdentifiers><SignedIdentifier><Id>{}</Id></SignedIdentifier>"
          "</SignedIdentifiers>")
HERE, GONE = {True}, {False}


def lost_requests(mount):
    """How many requests libfuse had no memory for: it answers them itself, and rowfs never sees them."""
    return mount.log().count("fuse: failed to allocate request")


class Told:
    """What a caller knows: the values that each name may have."""

    def __init__(self):
        self.may, self.refused, self.lost_connections = {}, 0, False

    def change(self, name, new, call, wrong=()):
        """Makes a change.  Returns its result; None if it was refused.  wrong: statuses that an earlier
        refusal explains."""
        try:
            answer = call()
        except (OSError, ValueError) as e:
            assert self.lost_connections or getattr(e, "errno", None) in REFUSED, (name, e)
            answer = False
        status = getattr(answer, "status", 200)
        done = answer is not False and status < 300
        assert done or answer is False or status in STATUSES or status in wrong, (name, answer)
        self.refused += not done
        self.may[name] = {new} if done else self.may.get(name, {None}) | {new}
        return answer if done else None


class Messages:
    """The queue jobs, and one queue a round."""

    def __init__(self, watched):
        self.w, self.m = watched, watched.m
        self.root = self.m / ACCOUNT / ".queue"
        self.dir = self.root / "jobs"
        self.rest = Queues(self.m.port, f"{ACCOUNT}.queue.localhost")
        self.told = Told()
        os.mkdir(self.dir)

    # ---- one change each

    def put_file(self, text):
        """After a write that rowfs never saw, the close puts an empty message."""
        lost = lost_requests(self.m)
        self.told.change(text, True, lambda: put(self.dir / "new", text))
        if lost_requests(self.m) > lost:
            self.told.may[""] = {True, None}

    def put_request(self, text):
        self.told.change(text, True, lambda: self.rest.put("jobs", text))

    def work_by_rest(self, text):
        """Takes the message, changes its text, deletes it."""
        taken = self.told.change("take", None, lambda: self.rest.ask(
            "GET", "/jobs/messages", {"visibilitytimeout": "600"}))
        if taken is None or messages(taken) == []:
            return
        m, = messages(taken)
        old, at = m["MessageText"], f"/jobs/messages/{m['MessageId']}"
        new = self.told.change(text, True, lambda: self.rest.ask(
            "PUT", at, {"popreceipt": m["PopReceipt"], "visibilitytimeout": "600"},
            f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()))
        if new is None:
            self.told.may[old], self.told.may[text] = {True, None}, {True, None}
            return
        self.told.may[old] = {None}
        self.told.change(text, None, lambda: self.rest.ask(
            "DELETE", at, {"popreceipt": new.headers["x-ms-popreceipt"]}))

    def work_by_files(self):
        """Takes the first visible message, asks for more time, removes it."""
        found = self.told.change("ls", None, lambda: [
            n for n in os.listdir(self.dir) if not n.startswith(".")])
        if not found:
            return
        name, text = found[0], self.told.change("cat", None, lambda: get(self.dir / found[0]))
        if text is None:
            return
        taken = self.dir / ".taken" / name
        change = self.told.change
        if change("mv", None, lambda: os.rename(self.dir / name, taken) or True) and \
           change("setfattr", None,
                  lambda: os.setxattr(taken, "user.rowfs.visibility", b"600") or True):
            change(text.decode(), None, lambda: os.unlink(taken) or True)

    def whole_queue(self, name):
        """Made, described, filled, cleared and removed."""
        ask = self.rest.ask
        change = self.told.change
        if change(name, True, lambda: ask("PUT", f"/{name}")) is None:
            return
        with contextlib.suppress(OSError):
            self.rest.put(name, "text")
        change(f"clear {name}", None, lambda: ask("DELETE", f"/{name}/messages"))
        change(name, None, lambda: ask("DELETE", f"/{name}"))

    def describe(self, n):
        ask = self.rest.ask
        self.told.change("metadata", str(n), lambda: ask(
            "PUT", "/jobs", {"comp": "metadata"}, headers={"x-ms-meta-n": str(n)}))
        self.told.change("policy", str(n), lambda: ask(
            "PUT", "/jobs", {"comp": "acl"}, POLICY.format(n).encode()))

    def script(self, n, lost_connections=False):
        self.told.lost_connections = lost_connections
        self.put_file(f"a{n}")
        self.put_request(f"b{n}")
        self.put_file(f"c{n}")
        self.describe(n)
        self.work_by_rest(f"d{n}")
        self.work_by_files()
        self.told.change("peek", None, lambda: get(self.dir / ".peek"))
        self.whole_queue(f"queue-{n}")

    # ---- what is there

    def texts(self):
        places = [self.dir, self.dir / ".taken", self.dir / ".hidden"]
        return [get(p / n).decode() for p in places for n in os.listdir(p) if n[0] != "."]

    def check(self):
        """Faults are off."""
        may = self.told.may
        there = self.texts()
        texts = [t for t in there if t]
        assert len(texts) == len(set(texts)), "a message is there twice"
        queues = os.listdir(self.root)
        for name, states in may.items():
            if name[:1] in "abcd" and name[1:].isdigit() or name.startswith("queue-"):
                is_there = name in (queues if name.startswith("queue-") else there)
                assert (is_there or None) in states, (name, states)
        assert set(there) <= set(may) and set(queues) <= {"jobs", *may}
        about = self.rest.ask("GET", "/jobs", {"comp": "metadata"})
        assert int(about.headers["x-ms-approximate-messages-count"]) == len(there)
        assert about.headers["x-ms-meta-n"] in may["metadata"]
        policy = self.rest.ask("GET", "/jobs", {"comp": "acl"}).body.decode()
        assert any(f"<Id>{n}</Id>" in policy for n in may["policy"]), policy
        assert self.m.alive()

    def forget(self):
        """The messages and queues of the last rounds."""
        assert self.rest.ask("DELETE", "/jobs/messages").status == 204
        for name in os.listdir(self.root):
            if name != "jobs":
                assert self.rest.ask("DELETE", f"/{name}").status == 204
        self.told.may = {k: v for k, v in self.told.may.items() if k in ("metadata", "policy")}


@pytest.fixture
def queue(watched):  # noqa: F811
    return Messages(watched)


def strike_each(queue, mask, strike, **how):
    c = queue.w.control
    queue.script(0)
    c.count(mask)
    queue.script(1)
    rounds = itertools.count(2)
    for n in points(c.stop()):
        round_ = next(rounds)
        strike(c, n)
        queue.script(round_, **how)
        c.stop()
        queue.check()
        if round_ % 8 == 0:
            queue.forget()
    queue.forget()
    queue.told.refused, before = 0, queue.told.refused
    queue.script(next(rounds))
    queue.check()
    assert queue.told.refused == 0, "the fault is over"
    return before


@pytest.mark.parametrize("what, error", [("fail", errno.EIO), ("fail", errno.ENOSPC), ("short", 0)])
@pytest.mark.parametrize("last", [0, calls.ALL], ids=["once", "from then on"])
def test_every_call_of_queues_on_the_store_fails(queue, what, error, last):
    mask = calls.WRITE | calls.TRUNCATE if error == errno.ENOSPC else CALLS
    refused = strike_each(queue, mask, lambda c, n: c.strike(what, mask, n, last, error))
    # Where one call finds the disk full, the store makes room and tries again.
    if what == "short":
        assert refused == 0
    elif last:
        assert refused > 0


def test_every_allocation_of_queues_fails(queue):
    strike_each(queue, calls.MEMORY,
                lambda c, n: c.strike("fail", calls.MEMORY, n, n, errno.ENOMEM),
                lost_connections=True)


def fail_opens(things, path_of, names):
    """Opens a file without memory for the n-th allocation. names: what an open that succeeds puts."""
    control, refused = things.w.control, 0
    for n in range(1, 60):
        path = path_of(n)
        control.strike("fail", calls.MEMORY, n, n, errno.ENOMEM)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        except OSError as e:
            assert e.errno == errno.ENOMEM
            fd = None
        control.stop()
        if fd is None:
            refused += 1
            assert names() == []
        else:
            os.close(fd)
            wait_for(lambda: len(names()) == 1)  # rowfs is told of the last close a moment later
        things.forget()
    assert refused > 5


def test_an_open_without_memory_puts_no_message(queue):
    fail_opens(queue, lambda n: queue.dir / "new", queue.texts)
