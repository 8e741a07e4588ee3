# SPDX-License-Identifier: MIT
"""A queue is removed and made again while REST and the mount put and take messages."""

import errno
import itertools
import os
import threading
import time

import pytest

from queue_client import Queues, code, messages
from rest_client import ACCOUNT
from tools import get, put

REMOVED, PUT = 20, 40  # as often at least: the queue; messages, by each front end
GONE = (errno.ENOENT, errno.ESTALE)


class Race:
    """rmdir keeps every message; Delete Queue (keeps=False) may remove a message with its queue."""

    def __init__(self, mount, keeps):
        self.keeps = keeps
        self.path = mount / ACCOUNT / ".queue/jobs"
        self.rest = Queues(mount.port, host=f"{ACCOUNT}.queue.localhost")
        self.stop = threading.Event()
        self.failed, self.taken = [], []
        self.put = {"rest": set(), "file": set()}
        self.removed = self.kept = 0

    def answered(self, answer, *good):
        """False if the queue, or the message, is gone."""
        if answer.status in good:
            return True
        assert code(answer) in ((404, "QueueNotFound"), (404, "MessageNotFound")), answer
        return False

    def done(self, call, *args):
        """Its result, or True; False if the queue, or the message, is gone."""
        try:
            result = call(*args)
        except OSError as e:
            if e.errno not in GONE:
                raise
            return False
        return True if result is None else result

    def count_put(self):
        return sum(map(len, self.put.values()))

    def puts(self, name, send):
        for n in itertools.count():
            # An empty queue now and then, so that rmdir has a chance.
            while self.keeps and self.count_put() - len(self.taken) > 1 and not self.stop.is_set():
                time.sleep(0.001)
            if self.stop.is_set():
                break
            if send(f"{name}{n}"):
                self.put[name].add(f"{name}{n}")

    def put_by_rest(self):
        self.puts("rest", lambda text: self.answered(self.rest.put("jobs", text), 201))

    def put_files(self):
        self.puts("file", lambda text: self.done(put, self.path / "new", text))

    def take_by_rest(self):
        while not self.stop.is_set():
            answer = self.rest.ask("GET", "/jobs/messages", {"numofmessages": 4})
            for m in messages(answer) if self.answered(answer, 200) else ():
                deleted = self.answered(self.rest.delete("jobs", m), 204)
                assert deleted or not self.keeps, m
                self.taken.append(m["MessageText"])

    def take_files(self):
        while not self.stop.is_set():
            for name in self.done(os.listdir, self.path) or []:
                mine = self.path / ".taken" / name
                if name.startswith(".") or not self.done(os.rename, self.path / name, mine):
                    continue
                text = self.done(get, mine)
                deleted = self.done(os.unlink, mine)
                assert text and deleted or not self.keeps, name
                if text:
                    self.taken.append(text.decode())

    def remove(self):
        end = time.monotonic() + 60
        while self.removed < REMOVED or self.kept < self.keeps or \
                min(len(texts) for texts in self.put.values()) < PUT:
            before = self.count_put()
            assert time.monotonic() < end and not self.stop.is_set(), "the race never happens"
            try:
                if self.keeps:
                    os.rmdir(self.path)
                else:
                    assert self.rest.ask("DELETE", "/jobs").status == 204
                self.removed += 1
                os.mkdir(self.path)
            except OSError as e:
                assert e.errno == errno.ENOTEMPTY
                self.kept += 1
            while not self.keeps and self.count_put() == before and not self.stop.is_set():
                time.sleep(0.001)
        self.stop.set()

    def guarded(self, work):
        try:
            work()
        except BaseException as e:
            self.failed.append(f"{work.__name__}: {e!r}")
            self.stop.set()


@pytest.mark.parametrize("keeps", [True, False], ids=["rmdir", "DeleteQueue"])
def test_MQ1_a_queue_is_removed_while_messages_come_and_go(rest_mount, rest_store, rowfs, keeps):
    m = rest_mount(rest_store)
    race = Race(m, keeps)
    race.path.mkdir()
    threads = [threading.Thread(target=race.guarded, args=(work,)) for work in (
        race.put_by_rest, race.put_files, race.take_by_rest, race.take_files, race.remove)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert race.failed == []
    left = [get(race.path / name).decode() for name in os.listdir(race.path)]
    found, was_put = race.taken + left, set.union(*race.put.values())
    assert len(found) == len(set(found)) and set(found) <= was_put
    assert not keeps or set(found) == was_put
    assert "clean" in rowfs("check", m.store).stdout
