# SPDX-License-Identifier: MIT
"""Z10: fifty consumers, by REST and in the mount, compete for the messages that REST, files and `.batch`
put, over kills of the daemon.

ROWFS_QUEUE_KILLS  how many kills (default: 3, 2 with sanitizers)
"""

import errno
import http.client
import json
import os
import random
import threading
import time

import pytest

from queue_client import Queues
from rest_client import ACCOUNT
from tools import get, put, sanitized, xattr

KILLS = int(os.environ.get("ROWFS_QUEUE_KILLS", "2" if sanitized() else "3"))
CONSUMERS, PRODUCERS = 25, 4  # consumers by each front end
HIDDEN = 3  # seconds
LOST = (OSError, http.client.HTTPException)


class Ledger:
    """What was asked for, what was acknowledged and who had which message when."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked, self.put, self.failed = set(), set(), []
        self.takes = {}  # id: [(before, after, dequeue count, text)]
        self.deleting, self.deleted = {}, {}  # id: the time before the request; after its answer

    def took(self, found, before, after):
        with self.lock:
            for m in found:
                take = before, after, int(m["DequeueCount"]), m["MessageText"]
                self.takes.setdefault(m["MessageId"], []).append(take)

    def verify(self):
        by_text = {}
        for name, takes in self.takes.items():
            takes.sort(key=lambda t: t[2])
            assert len({t[2] for t in takes}) == len(takes), f"taken twice at once: {takes}"
            for one, other in zip(takes, takes[1:]):
                assert other[1] >= one[0] + HIDDEN, f"taken while it was invisible: {takes}"
            if name in self.deleted:
                assert all(t[0] <= self.deleted[name] for t in takes), f"came back: {takes}"
            assert name in self.deleting, f"nobody deleted it: {takes}"
            by_text.setdefault(takes[0][3], set()).add(name)
        assert all(len(names) == 1 for names in by_text.values()), "a message is there twice"
        assert self.put <= set(by_text) <= self.asked, "lost, or never put"


class House:
    """A mount with both front ends, which is killed now and then."""

    def __init__(self, mount):
        self.mount, self.ledger = mount, Ledger()
        self.part = mount / ACCOUNT / "Tab/p"
        self.produced, self.stop = 0, threading.Event()
        self.lives = 0  # of the daemon: odd while one is dead
        self.queues = Queues(mount.port, f"{ACCOUNT}.queue.localhost")
        self.jobs = mount / ACCOUNT / ".queue/jobs"
        self.jobs.mkdir()
        self.part.mkdir(parents=True)

    def guarded(self, work, seed):
        """Repeats work(dice) until it returns False.  A daemon that is gone is waited for."""
        dice = random.Random(seed)
        while True:
            lives = self.lives
            try:
                if work(dice) is False:
                    return
            except Exception as e:  # noqa: BLE001
                if isinstance(e, LOST) and (lives % 2 == 1 or self.lives != lives):
                    time.sleep(0.02)
                    continue
                self.ledger.failed.append(repr(e))
                return

    def produce(self, dice):
        if self.stop.is_set():
            return False
        with self.ledger.lock:
            self.produced += 1
            text = f"{dice.choice(('batch', 'batch', 'rest', 'file'))}{self.produced}"
            self.ledger.asked.add(text)
        if text.startswith("batch"):
            put(self.part / ".batch", json.dumps([
                {"put_message": {"queue": "jobs", "text": text}}, {"insert": {"RowKey": text}}]))
        elif text.startswith("file"):
            put(self.jobs / text, text)
        else:
            assert self.queues.put("jobs", text).status == 201
        with self.ledger.lock:
            self.ledger.put.add(text)
        time.sleep(0.01)

    def consume(self, dice):
        before = time.monotonic()
        found = self.queues.get("jobs", numofmessages=dice.randrange(1, 5), visibilitytimeout=HIDDEN)
        self.ledger.took(found, before, time.monotonic())
        for m in found:
            if dice.random() < 0.1 and m["DequeueCount"] == "1":
                continue  # this consumer dies
            self.finish(m, lambda m=m: self.queues.delete("jobs", m).status)
        return self.is_more(found)

    def finish(self, m, delete):
        """delete() answers 204, or 404: its time was over, and another has it or has deleted it."""
        if m["MessageText"].startswith("batch"):  # FileNotFoundError: it has no row
            os.stat(self.part / f"{m['MessageText']}.json")
        with self.ledger.lock:
            self.ledger.deleting[m["MessageId"]] = time.monotonic()
        status = delete()
        assert status in (204, 404)
        if status == 204:
            with self.ledger.lock:
                self.ledger.deleted.setdefault(m["MessageId"], time.monotonic())

    def is_more(self, found):
        if not found:
            time.sleep(0.05)
        return not (self.stop.is_set() and self.left() == 0)

    def consume_files(self, dice):
        names = [n for n in os.listdir(self.jobs) if not n.startswith(".")]
        if not names:
            return self.is_more(False)
        name = dice.choice(names[:CONSUMERS])
        taken = self.jobs / ".taken" / f"{name}.{threading.get_ident()}"
        before = time.monotonic()
        try:
            os.rename(self.jobs / name, taken)
        except FileNotFoundError:
            return None  # another consumer has it
        after = time.monotonic()
        m = {"MessageId": name, "DequeueCount": xattr(taken, "count"),
             "MessageText": get(taken).decode()}
        self.ledger.took([m], before, after)
        if dice.random() < 0.1 and m["DequeueCount"] == "1":
            os.setxattr(taken, "user.rowfs.visibility", str(HIDDEN).encode())
            return None  # this consumer dies

        def delete():
            try:
                os.unlink(taken)
            except OSError as e:
                if e.errno != errno.ESTALE:
                    raise
                return 404
            return 204

        self.finish(m, delete)
        return None

    def left(self):
        answer = self.queues.ask("GET", "/jobs", {"comp": "metadata"})
        return int(answer.headers["x-ms-approximate-messages-count"])

    def kill(self):
        self.lives += 1
        self.mount.kill9()
        self.mount.start()
        self.queues.port = self.mount.port
        self.lives += 1


@pytest.mark.slow
def test_Z10_fifty_consumers_over_kills_lose_nothing_and_share_nothing(rest_mount, rest_store):
    house = House(rest_mount(rest_store))
    threads = [threading.Thread(target=house.guarded, args=(work, f"{work.__name__} {n}"))
               for work, count in ((house.produce, PRODUCERS), (house.consume, CONSUMERS),
                                   (house.consume_files, CONSUMERS))
               for n in range(count)]
    for t in threads:
        t.start()
    try:
        for n in range(KILLS):
            time.sleep(random.Random(n).uniform(1, 2))
            house.kill()
        time.sleep(1)
    finally:
        house.stop.set()
        for t in threads:
            t.join()
    assert house.ledger.failed == []
    house.ledger.verify()
    rows = {p.stem for p in house.part.glob("*.json")}
    taken = {takes[0][3] for takes in house.ledger.takes.values()}
    assert rows == {text for text in taken if text.startswith("batch")}
    assert len(taken) > 50 * KILLS
