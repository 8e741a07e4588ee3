# SPDX-License-Identifier: MIT
"""Descriptors of every kind held at once, in threads that live long: with and without an open, by
links to them in /proc/self/fd, mapped, over everything that can happen to the names; on top of the
model of test_random_rows.py.  One thing is done at a time, but each by one of several threads, since
the daemon tells them apart (a thread that overwrites row after row, one that was told ESTALE).

The kernel may tell the daemon of a close after close(2) has returned, and until then somebody reads by
it what was there: so each step waits until the daemon has heard of all."""

import contextlib
import json
import mmap
import os
import queue
import threading
import time

from random_walk import outcome, wander
from rest_client import Client, ok
from test_random_rows import (ROWS, SCRATCH, FileHandle, Node, Reader, Rows, Writer, document,
                              is_entity, is_row_name)
from tools import get, put

O_PATH = 0o10000000
ETAG = "user.rowfs.etag"


def opened_below(directory):
    """How many of this process's descriptors were opened there."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{fd}").startswith(f"{directory}/"):
                text = get(f"/proc/self/fdinfo/{fd}").decode()
                flags = next(x for x in text.splitlines() if x.startswith("flags:"))
                count += not int(flags.split()[1], 8) & O_PATH
    return count


class Hand(threading.Thread):
    """A thread that does what it is told."""

    def __init__(self, name):
        super().__init__(name=name, daemon=True)
        self.tasks, self.results = queue.Queue(), queue.Queue()
        self.start()

    def run(self):
        while (task := self.tasks.get()) is not None:
            try:
                self.results.put((task(), None))
            except BaseException as e:  # told by do()
                self.results.put((None, e))

    def do(self, task):
        self.tasks.put(task)
        result, failure = self.results.get()
        if failure is not None:
            raise failure
        return result

    def end(self):
        self.tasks.put(None)
        self.join()


class Link:
    """A descriptor without an open: of the version that was there.  If the thread had a habit of
    overwriting (not fresh), of what that thread was going to write."""

    def __init__(self, fd, node, fresh):
        self.fd, self.node, self.fresh = fd, node, fresh
        self.path = f"/proc/self/fd/{fd}"


class Descriptors(Rows):
    weights = {"open": 6, "link": 4, "overwrite": 6, "learn": 3, "by_link": 4, "reopen": 2,
               "chmod": 3, "close": 3, "unlink": 2, "rename": 4, "rest_change": 3,
               "put_scratch": 2, "map_on": 2, "utime": 2, "batch": 2}

    def __init__(self, mount, rest):
        super().__init__(mount, rest)
        self.hands = [Hand(n) for n in "abc"]
        self.hand = self.hands[0]
        self.looker, self.counter = Hand("looker"), Hand("counter")
        self.links, self.maps = [], []
        self.leaked = opened_below(mount.path)  # by a walk that failed and is being shrunk
        self.roots = {p: os.open(self.table / d, O_PATH) for p, d in self.dirs.items()}
        self.by_root = False
        self.habits = self.table / f"{self.dirs['p']}-habits"
        self.habits.mkdir()
        for n in range(3):
            put(self.habits / f"{n}.json", '{"v":0}')

    def path(self, place):
        if self.by_root:
            return f"/proc/self/fd/{self.roots[place[0]]}/{place[1]}"
        return super().path(place)

    def step(self, kind, rng):
        if rng.randrange(3) == 0:
            self.hand = rng.choice(self.hands)
        self.by_root = rng.randrange(3) == 0
        self.note(f"[{self.hand.name}{' by root' if self.by_root else ''}] {kind}")
        self.wait_for_closes()
        self.hand.do(lambda: super(Descriptors, self).step(kind, rng))
        if rng.randrange(2) == 0:
            hand = rng.choice([self.hand, self.looker])
            self.wait_for_closes()
            hand.do(lambda: self.check(rng))

    def finish(self):
        self.wait_for_closes()
        self.looker.do(lambda: self.check(None))
        self.let_go()
        super().finish()
        self.end()

    def abandon(self):
        self.let_go()
        super().abandon()
        self.end()

    def let_go(self):
        for link in self.links:
            os.close(link.fd)
        for m in self.maps:
            self.unmap(*m)
        self.links, self.maps = [], []

    def end(self):
        for hand in (*self.hands, self.looker, self.counter):
            if hand.is_alive():
                hand.end()
        for fd in self.roots.values():
            os.close(fd)
        self.roots = {}

    def do_remount(self, rng):
        if rng.randrange(6) == 0:
            self.let_go()
            for fd in self.roots.values():
                os.close(fd)
            self.by_root = False
            super().do_remount(rng)
            self.roots = {p: os.open(self.table / d, O_PATH) for p, d in self.dirs.items()}

    def wait_for_closes(self):
        """A mapping's descriptor is a duplicate, of one that may be closed."""
        held = {id(h) for h in self.handles} | {id(want.handle) for _, want in self.maps}
        end = time.monotonic() + 60
        while (n := self.opens_known()) > len(held):
            assert time.monotonic() < end, f"{n} are open, not {len(held)}"
            time.sleep(0.001)
        assert n == len(held), f"{n} are open, not {len(held)}"

    def opens_known(self):
        """To the daemon; that of the question comes after the answer was made."""
        text = self.counter.do(lambda: get(self.mount / ".rowfs/stats.json"))
        return json.loads(text)["open_handles"] - self.leaked

    # -- what is known of a node besides its bytes

    @staticmethod
    def learn_of(node, **known):
        """What was not known is known now; what was must be the same."""
        for name, value in known.items():
            old = getattr(node, name, None)
            if old is None:
                setattr(node, name, value)
            assert old in (None, value), f"{name} is {value}, was {old}"

    def readers(self, node):
        """What is read of it by somebody who opened it."""
        held = [h.seen for h in self.handles
                if h.node is node and not isinstance(h, Writer) and h.seen is not None]
        return held + [bytes(want) for _, want in self.maps if want.node is node]

    # -- more descriptors

    def do_link(self, rng):
        place = self.place(rng)
        if len(self.links) >= 5:
            os.close(self.links.pop(0).fd)
        hand = Hand("fresh") if rng.randrange(2) else None
        task = lambda: outcome(os.open, self.path(place), O_PATH | os.O_NOFOLLOW)  # noqa: E731
        code, fd = hand.do(task) if hand else task()
        if hand:
            hand.end()
        node = self.tree.get(place)
        self.expect(f"link{len(self.links)} to {'/'.join(place)}", code, 0 if node else "ENOENT")
        if code == 0:
            link = Link(fd, node, hand is not None)
            self.links.append(link)
            if link.fresh and node.kind == "row":
                assert get(link.path) == self.node(place).data

    def do_unlink_link(self, rng):
        if self.links:
            os.close(self.links.pop(rng.randrange(len(self.links))).fd)

    def do_reopen(self, rng):
        """A reader by the link of one that is open."""
        h = self.pick(rng, lambda h: isinstance(h, Reader))
        if h is None or len(self.handles) >= 7:
            return
        code, fd = outcome(os.open, f"/proc/self/fd/{h.fd}", os.O_RDONLY)
        self.expect(f"#{len(self.handles)} = open again {self.told(h)}", code, 0)
        again = Reader(fd, h.node, os.O_RDONLY, h.place)
        again.seen = h.seen
        self.handles.append(again)

    def do_by_link(self, rng):
        """What is done by a descriptor without an open is done to its version, or refused."""
        if not self.links:
            return
        link = rng.choice(self.links)
        node = link.node
        place = next((p for p, n in self.tree.items() if n is node), None)
        what = rng.choice(["write", "append", "truncate", "read", "list"])
        name = f"{what} by link{self.links.index(link)}"
        if place is None:
            return
        if what == "list":
            assert os.listdir(self.path((place[0], "."))) is not None
            return
        old = self.node(place).data
        if node.kind == "empty":
            return
        if what == "read":
            self.read_link(link, name, node, old)
        elif what == "truncate":
            code, _ = outcome(os.truncate, link.path, 1)
            if self.expect(name, code, 0 if node.kind == "file" else "EINVAL", "ESTALE") == 0:
                node.data = old[:1] if old else b"\0"
        elif node.kind == "row" and link.fresh:
            code, fd = outcome(os.open, link.path, os.O_WRONLY)
            self.expect(name, code, "ESTALE")
        elif node.kind == "file":
            data = document(rng) if what == "write" else b" "
            flags = os.O_WRONLY | (os.O_TRUNC if what == "write" else os.O_APPEND)
            code, fd = outcome(os.open, link.path, flags)
            if self.expect(f"{name} {data[:20]} +{len(data)}", code, 0, "ESTALE") == 0:
                os.write(fd, data)
                node.data = data if what == "write" else old + data
                os.close(fd)

    def read_link(self, link, name, node, want):
        """The current version, one that somebody reads, or nothing."""
        code, fd = outcome(os.open, link.path, os.O_RDONLY)
        if self.expect(name, code, 0, "ESTALE"):
            return
        with open(fd, "rb") as f:
            data = f.read()
            self.note(f"{name}: {data[:20]} +{len(data)}")
            able = [want, *self.readers(node)]
            if not link.fresh:
                able += [bytes(h.buf) for h in self.handles if isinstance(h, Writer)]
            assert data in able, (data[:60], want[:60])
            assert os.fstat(fd).st_size == len(data)

    def do_map_on(self, rng):
        """A private mapping that stays."""
        h = self.pick(rng, lambda h: isinstance(h, Reader) and h.seen)
        if h is None:
            return
        if len(self.maps) >= 3:
            self.unmap(*self.maps.pop(0))
        self.note(f"map {self.told(h)} for long")
        m = mmap.mmap(h.fd, len(h.seen), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        want = Kept(h.seen)
        want.node, want.fd, want.handle = h.node, os.dup(h.fd), h
        self.maps.append((m, want))

    @staticmethod
    def unmap(m, want):
        m.close()
        os.close(want.fd)

    # -- changes

    def do_learn(self, rng):
        """This thread gets into the habit of overwriting; and the kernel asks for all names anew."""
        for n in range(2):
            put(self.habits / f"{n}.json", json.dumps({"v": rng.randrange(100)}))
        places = [p for p, n in self.tree.items() if n.kind == "row"]
        self.looker.do(lambda: [os.close(os.open(self.path(p), os.O_WRONLY)) for p in places])

    def do_overwrite(self, rng):
        place = self.place(rng, ROWS)
        data = document(rng)
        node = self.tree.get(place)
        self.note(f"overwrite {'/'.join(place)} {data[:20]} +{len(data)}")
        put(self.path(place), data)
        node = self.tree.setdefault(place, node or Node("row"))
        node.kind = "row"
        node.commit(data)

    def who(self, rng):
        """(how it is told, what to call with, node): a path, a descriptor, a link to one."""
        # What is set on a document that is being written comes with its commit.
        able = [(f"{self.told(h)}", h.fd, h.node) for h in self.handles
                if not (isinstance(h, Writer) and (h.dirty or h.refused))]
        able += [(f"link{i}", link.path, link.node) for i, link in enumerate(self.links)]
        able += [("/".join(p), self.path(p), n) for p, n in self.tree.items()]
        able = [a for a in able if a[2] in self.tree.values()]
        return rng.choice(able) if able else None

    def do_chmod(self, rng):
        who, mode = self.who(rng), rng.choice([0o600, 0o640, 0o644, 0o666])
        if who is None:
            return
        may = ["ESTALE"] if who[0].startswith("link") else []
        if not self.expect(f"chmod {who[0]} {mode:o}", outcome(os.chmod, who[1], mode)[0], 0, *may):
            who[2].mode = mode

    def do_utime(self, rng):
        who, ns = self.who(rng), rng.randrange(10**18, 2 * 10**18)
        if who is None:
            return
        code, _ = outcome(lambda: os.utime(who[1], ns=(ns, ns)))
        # By what somebody reads an old version of: the time may be that one's.
        old = isinstance(who[1], int) or who[0].startswith("link") or self.readers(who[2])
        self.expect(f"utime {who[0]}", code, 0, *(["ESTALE"] if old else []))

    def do_batch(self, rng):
        """A change set of two rows, by the control file."""
        p = rng.choice("pq")
        rows = {(p, n): {"v": rng.randrange(100), "b": "z" * rng.choice([0, 70, 6000])}
                for n in ROWS}
        self.note(f"batch {p}")
        for place in rows:
            if place in self.tree and self.tree[place].kind != "row":
                return
        text = "".join(json.dumps({"upsert": {"RowKey": n[:-5], **row}}) + "\n"
                       for (_, n), row in rows.items())
        put(self.path((p, ".batch")), text)
        for place, row in rows.items():
            self.tree.setdefault(place, Node("row")).commit(None, row)

    # -- everything, by everything

    def check(self, rng):
        """All, or (rng) some of it in some order."""
        looks = [lambda h=h: self.check_handle(h) for h in self.handles]
        looks += [lambda link=link: self.check_link(link) for link in self.links]
        looks += [lambda p=p: self.check_name(p) for p in self.tree]
        looks += [lambda m=m: self.check_map(*m) for m in self.maps]
        if rng is not None:
            rng.shuffle(looks)
            looks = looks[:rng.randrange(len(looks) + 1)]
        for look in looks:
            look()

    def check_map(self, m, want):
        assert m[:] == want, "a mapping changed"

    def attributes(self, what, node, st):
        with Told(what):
            self.learn_of(node, ino=st.st_ino)
            assert st.st_nlink == (1 if node.there else 0), f"{st.st_nlink} links"
            if node.there:
                self.learn_of(node, mode=st.st_mode & 0o7777)

    def check_name(self, place):
        node = self.node(place)
        path = self.path(place)
        name = "/".join(place)
        st = os.stat(path)
        data = get(path)
        with Told(name):
            assert data == node.data, (data[:80], node.data[:80])
            assert st.st_size == len(data), (st.st_size, len(data))
        self.attributes(name, node, st)
        etag = os.getxattr(path, ETAG) if node.kind == "row" else None
        return st, etag

    def check_handle(self, h):
        name, node = self.told(h), h.node
        st = os.fstat(h.fd)
        with Told(name):
            if isinstance(h, Writer):
                if not h.refused:
                    assert st.st_size == len(h.buf), (st.st_size, len(h.buf))
                    if h.reads:
                        assert os.pread(h.fd, 1 << 20, 0) == h.buf
                if node.kind == "row" and node.there and h.base:
                    self.attributes(name, node, st)
                return
            if isinstance(h, FileHandle) and h.seen is not None:
                return
            if h.reads and (h.seen or node.kind != "file" or isinstance(h, FileHandle)):
                want = self.seen_by(h)
                data = os.pread(h.fd, 1 << 20, 0)
                assert data == want, (data[:80], want[:80])
                assert st.st_size == len(want), (st.st_size, len(want))
        self.attributes(name, node, st)
        if isinstance(h, Reader) and node.kind == "row" and node.there and h.seen:
            self.check_etag(h)

    def check_etag(self, h):
        place = next(p for p, n in self.tree.items() if n is h.node)
        code, etag = outcome(os.getxattr, h.fd, ETAG)
        now = os.getxattr(self.path(place), ETAG)
        data = self.node(place).data
        if data != h.seen:
            self.expect(f"etag of {self.told(h)}", code, 0, "ESTALE")
            assert etag != now, f"{self.told(h)} has the ETag of what it does not read"

    def check_link(self, link):
        node, name = link.node, f"link{self.links.index(link)}"
        place = next((p for p, n in self.tree.items() if n is node), None)
        code, _ = outcome(os.fstat, link.fd)
        self.expect(f"fstat {name}", code, 0, "ESTALE")
        if place is None or node.kind == "empty":
            with contextlib.suppress(OSError):
                get(link.path)
        else:
            with Told(name):
                self.read_link(link, f"read {name}", node, self.node(place).data)


class Kept(bytes):
    """What a mapping shows, of which node and handle, and a descriptor of that."""

    node = fd = handle = None


class Told(contextlib.AbstractContextManager):
    """Says of whom it was that an expectation failed."""

    def __init__(self, who):
        self.who = who

    def __exit__(self, kind, e, trace):
        if isinstance(e, (AssertionError, OSError)):
            raise AssertionError(f"{self.who}: {e}") from e


def test_U2_descriptors_of_every_kind_over_changes_by_other_threads(rest_mount, rest_store):
    mount = rest_mount(rest_store)
    with Client(mount.port) as rest:
        ok(rest.create_table("Rows"), 201)
        wander(lambda: Descriptors(mount, rest), Descriptors.kinds(), 3_000, 150, 1)
