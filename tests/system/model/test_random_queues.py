# SPDX-License-Identifier: MIT
"""U8: queues and a table against plain dictionaries, through both front ends at once.

Rows and messages change by REST, by files and by `.batch`, which puts messages with rows.  Messages as
files are put, taken by mv and by .get, peeked at, extended, given back and removed.  Time is known as ranges only: a message becomes visible between two moments, so at any moment it must be
visible, may be, or must not.

ROWFS_QUEUE_STEPS=N takes N steps with another seed each time; ROWFS_QUEUE_SEED=S those of a walk that
failed.
"""

import errno
import json
import math
import os
import random
import time

import pytest

from queue_client import Queues, messages
from rest_client import ACCOUNT, NONE, Client, ok
from tools import get, put, raises, sanitized, xattr

STEPS = int(os.environ.get("ROWFS_QUEUE_STEPS", "0"))
SEED = os.environ.get("ROWFS_QUEUE_SEED")
QUEUES = ("jobs", "more")
ROWS = [f"r{i}" for i in range(6)]
WEEK = 7 * 86400
BIT = 0.001  # the clock that is read here and the daemon's tick
# The store reserves the versions of the next second.  So after a kill they, and the times of insertion,
# can be ahead of the clock by this more.
RESERVED = 1.1


class Message:
    def __init__(self, text, before, after, ahead, hidden, ttl):
        self.text, self.count, self.receipt, self.old = text, 0, None, None
        self.named = None  # the take that .taken/ID in the mount is about
        self.hide(before, after, hidden)
        self.expires = (before + ttl - BIT, max(after, ahead) + ttl + BIT)

    def hide(self, before, after, seconds):
        self.visible = (before + seconds - BIT, after + seconds + BIT)

    def renew(self, receipt):
        self.receipt, self.old = receipt, self.receipt

    def lives(self, before, after):
        """(it may be there, it must be there)"""
        return self.expires[1] > before, self.expires[0] > after

    def shows(self, before, after):
        may, must = self.lives(before, after)
        return may and self.visible[0] <= after, must and self.visible[1] <= before


class World:
    def __init__(self, mount, dice):
        self.mount, self.dice, self.n = mount, dice, 0
        self.part = mount / ACCOUNT / "Tab/p"
        self.part.mkdir(parents=True)
        self.rows = {}
        self.queues = {name: {} for name in QUEUES}  # name: {id: Message}
        self.connect()
        for name in QUEUES:
            self.at(name).mkdir()
        self.said, self.ahead = [], 0

    def connect(self):
        self.rest = Queues(self.mount.port, f"{ACCOUNT}.queue.localhost")
        self.tables = Client(self.mount.port)

    # -- small words

    def new_text(self):
        self.n += 1
        return f"{self.n}" + "x" * self.dice.choice((0, 0, 5, 3000, 40000))

    def times(self):
        """Mostly none; now and then a message that expires soon."""
        times = self.dice.choice([{}] * 6 + [
            {"visibilitytimeout": 1}, {"visibilitytimeout": 3600}, {"messagettl": 1},
            {"messagettl": -1}, {"visibilitytimeout": 1, "messagettl": 2}])
        ttl = times.get("messagettl", WEEK)
        return times, {"hidden": times.get("visibilitytimeout", 0),
                       "ttl": math.inf if ttl == -1 else ttl}

    def a_queue(self):
        return self.dice.choice(QUEUES)

    def a_message(self, queue, which):
        """(id, message), or None."""
        found = [(i, m) for i, m in self.queues[queue].items() if getattr(m, which)]
        return self.dice.choice(found) if found else None

    def timed(self, call, *args, **kw):
        before = time.time()
        answer = call(*args, **kw)
        return answer, before, time.time()

    def at(self, queue):
        return self.mount / ACCOUNT / ".queue" / queue

    # -- messages by REST

    def do_put(self):
        queue, text = self.a_queue(), self.new_text()
        times, known = self.times()
        answer, before, after = self.timed(self.rest.put, queue, text, **times)
        assert answer.status == 201
        [m] = messages(answer)
        message = Message(text, before, after, self.ahead, **known)
        message.renew(m["PopReceipt"])
        self.queues[queue][m["MessageId"]] = message

    def look(self, queue, found, n, before, after, takes):
        """Whether these may be the first n of the queue."""
        model = self.queues[queue]
        # A take that meets more than 8 expired messages removes them, and may give fewer than n.
        over = sum(not m.lives(before, after)[1] for m in model.values())
        fewer = takes and over > 8 and found
        ids = [m["MessageId"] for m in found]
        assert len(set(ids)) == len(ids) <= n
        for m in found:
            assert m["MessageId"] in model, f"nobody put it, or it came back: {m}"
            mine = model[m["MessageId"]]
            assert mine.shows(before, after)[0], (
                f"it must not be visible: {m}, {mine.visible}, {mine.expires} at {before} to {after}")
            assert m["MessageText"] == mine.text
        for one, other in zip(ids, ids[1:]):
            assert model[one].visible[0] <= model[other].visible[1], "in another order"
        for i, m in model.items():
            if i not in ids and m.shows(before, after)[1]:
                assert len(ids) == n or fewer, f"a visible message is missing: {m.text[:20]}"
                assert all(model[k].visible[0] <= m.visible[1] for k in ids), "not the first"

    def do_get(self):
        queue, n = self.a_queue(), self.dice.choice((1, 1, 2, 5, 32))
        hidden = self.dice.choice((1, 1, 2, 3600))
        found, before, after = self.timed(
            self.rest.get, queue, numofmessages=n, visibilitytimeout=hidden)
        self.look(queue, found, n, before, after, takes=True)
        for m in found:
            mine = self.queues[queue][m["MessageId"]]
            mine.count += 1
            assert int(m["DequeueCount"]) == mine.count
            mine.renew(m["PopReceipt"])
            mine.hide(before, after, hidden)

    def do_peek(self):
        queue, n = self.a_queue(), self.dice.choice((1, 32))
        answer, before, after = self.timed(
            self.rest.ask, "GET", f"/{queue}/messages", {"peekonly": "true", "numofmessages": n})
        found = messages(answer)
        self.look(queue, found, n, before, after, takes=False)
        for m in found:
            assert int(m["DequeueCount"]) == self.queues[queue][m["MessageId"]].count

    def settle(self, queue, name, status, good, before, after):
        """What a request by receipt said: true if it was done."""
        may, must = self.queues[queue][name].lives(before, after)
        assert status in ((good,) if must else (good, 404) if may else (404,)), status
        if status == 404:
            del self.queues[queue][name]
        return status == good

    def do_delete(self):
        queue = self.a_queue()
        if found := self.a_message(queue, "receipt"):
            name, m = found
            answer, before, after = self.timed(
                self.rest.delete, queue, {"MessageId": name, "PopReceipt": m.receipt})
            if self.settle(queue, name, answer.status, 204, before, after):
                del self.queues[queue][name]

    def do_update(self):
        queue = self.a_queue()
        if found := self.a_message(queue, "receipt"):
            name, m = found
            text, hidden = self.dice.choice((None, self.new_text())), self.dice.choice((0, 1, 3600))
            body = f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()
            answer, before, after = self.timed(
                self.rest.ask, "PUT", f"/{queue}/messages/{name}",
                {"popreceipt": m.receipt, "visibilitytimeout": hidden}, body if text else None)
            if self.settle(queue, name, answer.status, 204, before, after):
                m.text = text or m.text
                m.renew(answer.headers["x-ms-popreceipt"])
                m.hide(before, after, hidden)

    def do_use_an_old_receipt(self):
        queue = self.a_queue()
        if found := self.a_message(queue, "old"):
            name, m = found
            stale = {"MessageId": name, "PopReceipt": m.old}
            assert self.rest.delete(queue, stale).status == 404

    def do_clear(self):
        queue = self.a_queue()
        assert self.rest.ask("DELETE", f"/{queue}/messages").status == 204
        self.queues[queue].clear()

    def do_count(self):
        queue = self.a_queue()
        answer, before, after = self.timed(
            self.rest.ask, "GET", f"/{queue}", {"comp": "metadata"})
        count = int(answer.headers["x-ms-approximate-messages-count"])
        assert count >= sum(m.lives(before, after)[1] for m in self.queues[queue].values())

    # -- messages as files

    def do_put_file(self):
        queue, text = self.a_queue(), self.new_text()
        path = self.at(queue) / f"new{self.n}"
        _, before, after = self.timed(put, path, text)
        name = xattr(path, "id")
        self.queues[queue][name] = Message(text, before, after, self.ahead, 0, math.inf)

    def do_read(self, file=".peek"):
        queue = self.a_queue()
        line, before, after = self.timed(get, self.at(queue) / file)
        found = [json.loads(line)] if line else []
        self.look(queue, [{"MessageId": m["id"], "MessageText": m["text"]} for m in found], 1,
                  before, after, takes=file == ".get")
        for m in found:
            mine = self.queues[queue][m["id"]]
            if file == ".get":
                mine.count += 1
                mine.named = mine.count
                mine.renew(m["receipt"])
                mine.hide(before, after, 30)
            assert m["count"] == mine.count

    def do_get_file(self):
        self.do_read(".get")

    def a_file(self):
        """A message that is surely there."""
        queue, now = self.a_queue(), time.time()
        found = [(i, m) for i, m in self.queues[queue].items() if m.lives(now, now + 5)[1]]
        return (self.at(queue), queue, *self.dice.choice(found)) if found else None

    def try_(self, may, must, error, call, *args):
        """(whether the call succeeded, which it may or must; else it has this error, before, after)"""
        before = time.time()
        try:
            call(*args)
        except OSError as e:
            after = time.time()
            assert e.errno == error and not must(before, after), e
            return False, before, after
        after = time.time()
        assert may(before, after), f"{call.__name__} {args} succeeds"
        return True, before, after

    def try_visible(self, m, call, *args):
        return self.try_(lambda *t: m.shows(*t)[0], lambda *t: m.shows(*t)[1], errno.ENOENT, call, *args)

    def try_taken(self, m, call, *args):
        """By the name of a take in the mount, or by the id of a message that is invisible."""
        if m.named is not None:
            mine = m.named == m.count
            return self.try_(lambda *_: mine, lambda *_: mine, errno.ESTALE, call, *args)
        return self.try_(
            lambda b, a: m.count > 0 and not m.shows(b, a)[1],
            lambda b, a: m.count > 0 and not m.shows(b, a)[0], errno.ENOENT, call, *args)

    def do_take_file(self):
        if found := self.a_file():
            at, _, name, m = found
            taken = at / ".taken" / name
            done, before, after = self.try_visible(m, os.rename, at / name, taken)
            if done:
                m.count += 1
                m.named = m.count
                m.hide(before, after, 30)
                assert get(taken).decode() == m.text and xattr(taken, "count") == str(m.count)
                m.renew(xattr(taken, "receipt"))

    def do_remove_file(self):
        if found := self.a_file():
            at, queue, name, m = found
            if self.dice.random() < 0.3:
                done, _, _ = self.try_visible(m, os.unlink, at / name)
            else:
                done, _, _ = self.try_taken(m, os.unlink, at / ".taken" / name)
            if done:
                del self.queues[queue][name]

    def do_extend_file(self):
        if found := self.a_file():
            at, _, name, m = found
            seconds, path = self.dice.choice((1, 3600)), at / ".taken" / name
            done, before, after = self.try_taken(
                m, os.setxattr, path, "user.rowfs.visibility", str(seconds).encode())
            if done:
                m.hide(before, after, seconds)
                m.renew(xattr(path, "receipt"))

    def do_give_back(self):
        if found := self.a_file():
            at, _, name, m = found
            done, before, after = self.try_taken(m, os.rename, at / ".taken" / name, at / name)
            if done:
                m.named = None
                m.hide(before, after, 0)
                m.renew(None)

    # -- sets of rows and messages

    def do_batch(self):
        ops, rows, put_ = [], dict(self.rows), []
        for rk in self.dice.sample(ROWS, self.dice.randrange(0, 4)):
            if rk in rows and self.dice.random() < 0.4:
                ops.append({"delete": {"RowKey": rk}})
                del rows[rk]
            else:
                self.n += 1
                ops.append({"upsert": {"RowKey": rk, "N": self.n}})
                rows[rk] = self.n
        for _ in range(self.dice.randrange(0 if ops else 1, 4)):
            (times, known), queue, text = self.times(), self.a_queue(), self.new_text()
            op = {"put_message": {"queue": queue, "text": text, **times}}
            put_.append((op, queue, text, known))
            ops.insert(self.dice.randrange(len(ops) + 1), op)
        bad = self.dice.random() < 0.2
        if bad:
            ops.insert(self.dice.randrange(len(ops) + 1), self.dice.choice([
                {"put_message": {"queue": "none", "text": "x"}}, {"delete": {"RowKey": "none"}}]))
            with raises("ENOENT"):
                put(self.part / ".batch", json.dumps(ops))
            return
        _, before, after = self.timed(put, self.part / ".batch", json.dumps(ops))
        self.rows = rows
        told = json.loads(get(self.part / ".batch"))["operations"]
        for op, queue, text, known in put_:
            name = told[ops.index(op)]["id"]
            self.queues[queue][name] = Message(text, before, after, self.ahead, **known)

    # -- rows

    def do_row(self):
        rk, way = self.dice.choice(ROWS), self.dice.randrange(4)
        path = self.part / f"{rk}.json"
        self.n += 1
        if way == 0:
            put(path, f'{{"N":{self.n}}}')
            self.rows[rk] = self.n
        elif way == 1:
            ok(self.tables.upsert("Tab", "p", rk, {"N": self.n}), 204)
            self.rows[rk] = self.n
        elif rk in self.rows:
            if way == 2:
                path.unlink()
            else:
                ok(self.tables.delete("Tab", "p", rk), 204)
            del self.rows[rk]

    def do_compare_rows(self):
        assert {p.stem: json.loads(get(p))["N"] for p in self.part.glob("*.json")} == self.rows
        answer = ok(self.tables.query("Tab", headers={"Accept": NONE}))
        assert {r["RowKey"]: r["N"] for r in answer.rows} == self.rows

    # -- the daemon

    def do_begin_anew(self):
        if self.dice.random() < 0.5:
            self.mount.kill9()
            self.ahead = max(self.ahead, time.time()) + RESERVED
            self.mount.start()
        else:
            self.mount.remount()
        for m in (m for model in self.queues.values() for m in model.values()):
            m.named = None
        self.tables.close()
        self.connect()
        self.part.mkdir(exist_ok=True)  # REST removed its last row

    def do_wait(self):
        time.sleep(self.dice.random())

    WEIGHTS = {do_put: 8, do_get: 12, do_peek: 6, do_delete: 10, do_update: 5, do_put_file: 6,
               do_read: 3, do_get_file: 4, do_take_file: 8, do_remove_file: 6, do_extend_file: 3,
               do_give_back: 3,
               do_use_an_old_receipt: 3, do_clear: 0.3, do_count: 2, do_batch: 12, do_row: 6,
               do_compare_rows: 2, do_begin_anew: 0.4, do_wait: 1}

    def step(self):
        [do] = self.dice.choices([*self.WEIGHTS], [*self.WEIGHTS.values()])
        self.said.append(do.__name__)
        self.part.mkdir(exist_ok=True)
        do(self)

    def verify(self, rowfs):
        """All that is left, visible or not."""
        self.do_compare_rows()
        for queue, model in self.queues.items():
            done, before, after = self.timed(
                rowfs, "export", self.mount.store, f"{ACCOUNT}/.queue/{queue}")
            found = {m["MessageId"]: m for m in map(json.loads, done.stdout.splitlines())}
            for i, m in model.items():
                may, must = m.lives(before, after)
                assert i in found or not must, f"lost: {m.text[:20]}"
                if i in found:
                    assert may and found[i]["MessageText"] == m.text
                    assert found[i]["DequeueCount"] == m.count
            assert set(found) <= set(model)


def walk(world, rowfs, seed, steps):
    """So many random steps, 0: as many as a run of all tests can take, and a look at all that is left."""
    try:
        for _ in range(steps or (150 if sanitized() else 300)):
            world.step()
        world.verify(rowfs)
    except BaseException:
        print(f"seed {seed}, step {len(world.said)}: {world.said[-12:]}")
        raise
    finally:
        world.tables.close()


@pytest.mark.parametrize("seed", [SEED or time.time_ns()] if STEPS or SEED else [1, 2, 3])
def test_U8_queues_and_rows_agree_with_plain_dictionaries(rowfs, rest_mount, rest_store, seed):
    walk(World(rest_mount(rest_store), random.Random(f"{seed}")), rowfs, seed, STEPS)
