# SPDX-License-Identifier: MIT
"""Rows under random operations, against a model of the last committed document, of what each
open handle must see, and of the errno that each step must give (random_walk.py)."""

import contextlib
import itertools
import json
import mmap
import os
import random
import re
import socket

from random_walk import Walk, outcome, wander
from rest_client import ACCOUNT, NONE, Client, ok
from tools import EXCHANGE, NOREPLACE, get, renameat2

ROWS = ["a.json", "b.json"]
SCRATCH = ["tmp", ".a.json.Xy12"]
SYSTEM = ("PartitionKey", "RowKey", "Timestamp")
PIECES = [b" ", b"\n", b"7", b'"', b"}", b"{", b',"w":1', b"\0", b"x", b'{"v":8}', b'{"v":1,"v":2}',
          b'{"a b":1}']
# What may complete the beginning of a document of the kinds that these tests write.
ENDINGS = ["", "}", '"x":0}', '":0}', ':0}', '0}', '"}', 'rue}', 'ull}', "{}"]


def flat(text):
    """A flat JSON object as a list of pairs; None if the text is no such thing."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except ValueError:
        return None
    if not isinstance(pairs, list) or text.lstrip()[:1] != "{":
        return None
    return None if any(isinstance(v, list) for _, v in pairs) else pairs


def may_begin(data):
    """Whether a document can begin with these bytes."""
    return any(flat(data.decode("latin-1") + e) is not None for e in ENDINGS)


def is_entity(data):
    pairs = flat(data.decode("latin-1"))
    return pairs is not None and len({k for k, _ in pairs}) == len(pairs) and all(
        re.fullmatch(r"[A-Za-z_]\w*", k) and (not isinstance(v, int) or -2**63 <= v < 2**63)
        for k, v in pairs)


def document(rng):
    text = json.dumps({"v": rng.randrange(100), "s": "x" * rng.choice([0, 3, 90, 4000, 9000])})
    return (text + rng.choice(["", "\n", "   "])).encode()


def is_row_name(name):
    return name.endswith(".json") and name[0] != "."


class Node:
    """What stands under a name: a row, an ordinary file, or an empty row, which has no document
    yet."""

    def __init__(self, kind, data=b""):
        self.kind, self.data = kind, data
        self.row = None  # what REST made of it, where its bytes were not looked at yet
        self.version = 0
        self.there = True

    def commit(self, data, row=None):
        self.data, self.row = data, row
        self.version += 1


class Handle:
    def __init__(self, fd, node, flags, place):
        self.fd, self.node, self.flags, self.place = fd, node, flags, place
        self.reads = flags & os.O_ACCMODE != os.O_WRONLY
        self.writes = flags & os.O_ACCMODE != os.O_RDONLY
        self.appends = bool(flags & os.O_APPEND)
        self.orphaned = False  # the process that opened it is no more: every close is its own


class Reader(Handle):
    """Sees what was there when it was opened."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = self.node.data


class FileHandle(Handle):
    """Of an ordinary file; seen: what it was when it became a row."""

    seen = None


class Writer(Handle):
    seen = None

    def __init__(self, *args):
        super().__init__(*args)
        self.truncated = bool(self.flags & os.O_TRUNC)
        self.loaded = not self.truncated
        self.base = self.node.version
        self.buf = bytearray(b"" if self.truncated else self.node.data)
        self.in_order = True
        self.dirty = self.emptied = self.refused = False
        self.error = None  # what the last close or fsync said, if nothing was written since


class Rows(Walk):
    weights = {"open": 5, "write": 8, "document": 6, "look": 3, "dup_close": 3, "close": 4,
               "rename": 4, "rest_change": 2, "put_scratch": 2, "read": 4, "child_write": 2}
    numbers = itertools.count(1)

    def __init__(self, mount, rest):
        super().__init__()
        self.mount, self.rest = mount, rest
        n = next(Rows.numbers)
        self.table = mount / ACCOUNT / "Rows"
        self.dirs = {"p": f"p{n}", "q": f"q{n}"}
        for d in self.dirs.values():
            (self.table / d).mkdir()
        self.tree = {}    # (partition, name) -> Node
        self.handles = []
        self.moves = 0

    # -- helpers

    def path(self, place):
        return self.table / self.dirs[place[0]] / place[1]

    def key(self, place):
        return "Rows", self.dirs[place[0]], place[1][:-5]

    def place(self, rng, names=None):
        return rng.choice("ppq"), rng.choice(names or ROWS * 2 + SCRATCH)

    def pick(self, rng, able=lambda h: True):
        found = [h for h in self.handles if able(h)]
        return rng.choice(found) if found else None

    def told(self, h):
        return f"#{self.handles.index(h)}"

    def node(self, place):
        """With its bytes looked up, where REST made them."""
        node = self.tree.get(place)
        if node and node.row is not None:
            data = get(self.path(place))
            assert json.loads(data) == node.row and data.endswith(b"}\n"), (data, node.row)
            node.data, node.row = data, None
        return node

    def gone(self, place):
        if place in self.tree:
            self.tree.pop(place).there = False

    def becomes(self, node, kind):
        """A row a file, or a file a row."""
        if node.kind == kind:
            return
        for h in self.handles:
            if isinstance(h, FileHandle) and h.node is node and h.seen is None:
                h.seen = bytes(node.data)
        node.kind = kind
        node.version += 1

    # -- open

    def do_open(self, rng):
        place = self.place(rng)
        flags = rng.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR])
        for extra, one_in in ((os.O_APPEND, 4), (os.O_TRUNC, 2), (os.O_EXCL | os.O_CREAT, 8),
                              (os.O_CREAT, 2)):
            flags |= extra if rng.randrange(one_in) == 0 else 0
        if flags & os.O_ACCMODE == os.O_RDONLY:
            flags &= ~(os.O_TRUNC | os.O_APPEND | os.O_CREAT)
            if flags & os.O_EXCL:
                return
        if len(self.handles) >= 7:
            return
        orphaned = rng.randrange(8) == 0
        self.open(place, flags, self.open_in_child if orphaned else os.open)
        if orphaned:
            self.children_close()

    def open(self, place, flags, by):
        node = self.node(place)
        code, fd = outcome(by, self.path(place), flags, 0o644)
        what = f"#{len(self.handles)} = {by.__name__} {'/'.join(place)} {flags:#o}"
        if node is None and not flags & os.O_CREAT:
            return self.expect(what, code, "ENOENT")
        if node and flags & os.O_EXCL:
            return self.expect(what, code, "EEXIST")
        self.expect(what, code, 0)
        if node is None:
            node = self.tree[place] = Node("empty" if is_row_name(place[1]) else "file")
            flags |= os.O_TRUNC  # it has loaded nothing
        kind = FileHandle if node.kind == "file" else (
            Reader if flags & os.O_ACCMODE == os.O_RDONLY else Writer)
        if kind is FileHandle and flags & os.O_TRUNC:
            node.data = b""
        self.handles.append(kind(fd, node, flags, place))
        self.handles[-1].orphaned = by is not os.open
        return None

    @staticmethod
    def open_in_child(path, flags, mode):
        """The opener is no more when this is written and closed."""
        here, there = socket.socketpair()
        with here, there:
            child = os.fork()
            if child == 0:
                try:
                    fd = os.open(path, flags, mode)
                    socket.send_fds(there, [b"0"], [fd])
                except OSError as e:
                    there.send(str(e.errno).encode())
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            text, fds, _, _ = socket.recv_fds(here, 16, 1)
        if not fds:
            raise OSError(int(text), os.strerror(int(text)))
        return fds[0]

    # -- bytes

    def do_read(self, rng):
        h = self.pick(rng, lambda h: h.reads and not (isinstance(h, Writer) and h.refused))
        if h is None:
            return None
        want = self.seen_by(h)
        at = rng.choice([0, 0, rng.randrange(len(want) + 3)])
        n = rng.choice([1 << 20, rng.randrange(1, 100)])
        code, have = outcome(os.pread, h.fd, n, at)
        if code and isinstance(h, FileHandle) and h.seen is not None:
            return self.expect("read of what became a row", code, "ESTALE")
        self.expect(f"read {self.told(h)} {at} +{n}", code, 0)
        assert have == want[at:at + n], (have[:80], bytes(want[at:at + n])[:80])
        if h.seen is None or not isinstance(h, FileHandle) and (h.seen or h.node.kind != "file"):
            assert os.fstat(h.fd).st_size == len(want)
        return None

    @staticmethod
    def seen_by(h):
        if isinstance(h, Writer):
            return bytes(h.buf)
        return h.seen if h.seen is not None else h.node.data

    def write(self, h, at, data, by=os.pwrite):
        """pwrite(2), and what it must do."""
        if isinstance(h, FileHandle):
            code, _ = outcome(by, h.fd, data, at)
            what = f"{by.__name__} {self.told(h)} {at} {data[:20]} +{len(data)}"
            if self.expect(what, code, "ESTALE" if h.seen is not None else 0) == 0:
                old = h.node.data
                at = len(old) if h.appends else at
                old = old + bytes(max(0, at - len(old)))
                h.node.data = old[:at] + data + old[at + len(data):]
            return
        if h.appends:
            at = len(h.buf)
        if at != len(h.buf):
            h.in_order = False
        h.buf.extend(bytes(max(0, at - len(h.buf))))
        h.buf[at:at + len(data)] = data
        h.dirty, h.emptied, h.error = True, False, None
        before = h.refused
        if h.in_order and not h.refused:
            whole = flat(h.buf.decode("latin-1")) is not None
            h.refused = not is_entity(h.buf) if whole else not may_begin(h.buf)
        code, _ = outcome(by, h.fd, data, at)
        have = self.expect(f"{by.__name__} {self.told(h)} {at} {data[:20]} +{len(data)}", code,
                           "EINVAL" if h.refused else 0)
        if not before:
            self.kept(h, have)

    def writer(self, rng):
        return self.pick(rng, lambda h: h.writes)

    def size(self, h):
        return len(self.seen_by(h))

    def do_write(self, rng):
        data, at = rng.choice(PIECES), rng.randrange(12)
        if (h := self.writer(rng)) is not None:
            if rng.randrange(3) == 0:
                at = self.size(h)
            self.write(h, at, data)

    def do_document(self, rng):
        """A document from the start: in one piece, in pieces, or cut short."""
        data, cut = document(rng), rng.choice([0, 0, 0, 1, 3])
        if (h := self.pick(rng, lambda h: h.writes and not h.appends)) is None:
            return
        data = data[:len(data) - cut]
        if self.size(h) > len(data) or rng.randrange(3) == 0:
            self.truncate(h, rng.choice([0, len(data)]))
        middle = rng.randrange(1, len(data))
        if rng.randrange(2):
            self.write(h, 0, data[:middle])
            self.write(h, middle, data[middle:])
        else:
            self.write(h, 0, data)

    def do_go_on(self, rng):
        """The next bytes of a document that grows."""
        h = self.pick(rng, lambda h: isinstance(h, Writer) and h.writes and not h.refused)
        if h is None:
            return
        end = b"" if not h.buf else bytes(h.buf[-1:])
        self.write(h, len(h.buf), b'{"v":1' if not h.buf else (
            b" " if end in b" \n}\0" else b',"w":"' if end in b"0123456789" else b'"}'))

    def child(self, work):
        """Does it in a child that exits; the errno of what it did."""
        pid = os.fork()
        if pid == 0:
            code = 255
            try:
                code = outcome(work)[0]
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            raise OSError(code, os.strerror(code))

    def pwrite_in_child(self, fd, data, at):
        self.child(lambda: os.pwrite(fd, data, at))

    def do_child_write(self, rng):
        if (h := self.pick(rng, lambda h: h.writes and h.node)) is not None:
            self.write(h, self.size(h), rng.choice([b'{"v":', b"5", b"}", b'{"v":6}', b" "]),
                       by=self.pwrite_in_child)
            self.children_close()

    def do_child_close(self, rng):
        """What a child closes commits nothing, and succeeds."""
        if (h := self.pick(rng, lambda h: isinstance(h, Writer))) is None:
            return
        code, _ = outcome(self.child, lambda: os.close(h.fd))
        self.expect(f"close {self.told(h)} in a child", code,
                    *(self.committed(h) if h.orphaned else [0]))
        self.children_close(h)

    def children_close(self, but=None):
        """A child that ended has closed all, in order."""
        for h in sorted(self.handles, key=lambda h: h.fd):
            if h.orphaned and h is not but:
                self.committed(h)

    def truncate(self, h, size):
        if isinstance(h, Writer) and h.refused:
            size = 0  # what a refused write left is nobody's business
        code, _ = outcome(os.ftruncate, h.fd, size)
        what = f"ftruncate {self.told(h)} {size}"
        if isinstance(h, FileHandle):
            if h.seen is not None:  # a row by now: refused as by its path
                same = [0] if size == len(h.seen) else []
                self.expect(what, code, "EINVAL", "ESTALE", *same)
            else:
                self.expect(what, code, 0)
                h.node.data = h.node.data[:size] + bytes(max(0, size - len(h.node.data)))
            return
        self.expect(what, code, 0)
        if size == len(h.buf) and not h.refused:
            return
        del h.buf[size:]
        h.buf.extend(bytes(size - len(h.buf)))
        h.refused, h.error = False, None
        h.emptied, h.dirty, h.in_order = size == 0, size != 0, size == 0

    def do_ftruncate(self, rng):
        size = rng.choice([0, rng.randrange(12), rng.randrange(5000)])
        if (h := self.writer(rng)) is not None:
            self.truncate(h, rng.choice([size, self.size(h)]))

    def do_truncate(self, rng):
        place, size = self.place(rng), rng.choice([0, 1, 9])
        node = self.node(place)
        code, _ = outcome(os.truncate, self.path(place), size)
        what = f"truncate {'/'.join(place)} {size}"
        if node is None:
            self.expect(what, code, "ENOENT")
        elif node.kind == "file":
            self.expect(what, code, 0)
            node.data = node.data[:size] + bytes(max(0, size - len(node.data)))
        else:
            self.expect(what, code, 0 if size == len(node.data) else "EINVAL")

    # -- commits

    def committed(self, h):
        """What the opener's close must say, and what it does."""
        if not isinstance(h, Writer) or not h.writes:
            return [0]
        if h.emptied and not h.dirty:
            return ["EINVAL"]
        if not h.dirty:
            return [0]
        if h.refused:
            return ["EINVAL"]
        if h.error == "ESTALE":
            return ["ESTALE"]
        if not is_entity(h.buf):
            h.error = "EINVAL"
            return ["EINVAL"]
        target = self.target(h)
        if target is None:
            h.error = "ESTALE"
            return ["ESTALE"]
        self.upsert(h, target)
        return [0]

    def target(self, h):
        """The place where the document goes; None if what it was opened as is no more."""
        node = h.node
        if not node.there or node.kind == "file" or h.loaded and node.version != h.base:
            return None
        return next(p for p, n in self.tree.items() if n is node)

    def upsert(self, h, place):
        row = self.tree[place]
        row.kind = "row"
        row.commit(bytes(h.buf))
        h.base, h.dirty, h.emptied = row.version, False, False
        h.error = None

    def kept(self, h, have):
        """The bytes that were refused are in .rowfs/rejected, and .rowfs/errors tells where."""
        if have in (0, None) or not h.buf:
            return
        for line in reversed(get(self.mount / ".rowfs/errors").splitlines()[-20:]):
            refusal = json.loads(line)
            if refusal.get("rejected"):
                with contextlib.suppress(FileNotFoundError):  # it may be an older one
                    if get(self.mount / ".rowfs/rejected" / refusal["rejected"]) == h.buf:
                        return
        raise AssertionError(f"refused bytes are not kept: {bytes(h.buf[:80])}")

    def do_dup_close(self, rng):
        if (h := self.pick(rng)) is not None:
            told_before = isinstance(h, Writer) and (h.error or h.refused)
            want = self.committed(h)
            have = self.expect(f"close a duplicate of {self.told(h)}",
                               outcome(os.close, os.dup(h.fd))[0], *want)
            if isinstance(h, Writer) and not told_before:
                self.kept(h, have)

    def do_close(self, rng):
        if (h := self.pick(rng)) is not None:
            self.close(h)

    def close(self, h):
        told_before = isinstance(h, Writer) and (h.error or h.refused)
        want = self.committed(h)
        what = f"close {self.told(h)}"
        self.handles.remove(h)
        have = self.expect(what, outcome(os.close, h.fd)[0], *want)
        if isinstance(h, Writer) and not told_before:
            self.kept(h, have)

    def do_fsync(self, rng):
        if (h := self.pick(rng)) is None:
            return
        want = [0] if isinstance(h, Writer) and not h.dirty else self.committed(h)
        self.expect(f"fsync {self.told(h)}", outcome(os.fsync, h.fd)[0],
                    *("EIO" if w == "EINVAL" else w for w in want))

    # -- mappings

    def do_map(self, rng):
        """A mapping shows what the handle sees; a shared one of a writer is its document."""
        h = self.pick(rng, lambda h: h.reads)
        if h is None or isinstance(h, Writer) and h.refused:
            return
        if isinstance(h, FileHandle) and h.seen is not None:
            return
        want = self.seen_by(h)
        if not want:
            return
        shared = rng.randrange(2)
        writes = h.writes and shared
        how = {"flags": mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE,
               "prot": mmap.PROT_READ | (mmap.PROT_WRITE if writes else 0)}
        self.note(f"map {self.told(h)} {'shared' if shared else ''}")
        with mmap.mmap(h.fd, len(want), **how) as m:
            assert m[:] == want
            if writes and rng.randrange(2):
                at = rng.randrange(len(want))
                self.note(f"poke {at}")
                m[at:at + 1] = b"9"
                if isinstance(h, Writer):
                    h.buf[at:at + 1] = b"9"
                    h.dirty, h.emptied, h.error, h.in_order = True, False, None, False
                else:
                    h.node.data = want[:at] + b"9" + want[at + 1:]
        self.committed(h)  # the object closes a duplicate of its own

    # -- names

    def do_put_scratch(self, rng):
        """What editors and sync tools write first."""
        place = self.place(rng, SCRATCH)
        data = rng.choice([document(rng), document(rng), b"", b"no document", b'{"v":'])
        self.note(f"put {'/'.join(place)} {data[:20]} +{len(data)}")
        with open(self.path(place), "wb") as f:
            f.write(data)
        node = self.tree.setdefault(place, Node("file"))
        node.data = data

    def do_unlink(self, rng):
        place = self.place(rng)
        code, _ = outcome(os.unlink, self.path(place))
        self.expect(f"unlink {'/'.join(place)}", code, 0 if place in self.tree else "ENOENT")
        self.gone(place)

    def do_rename(self, rng):
        a, b, flags = self.place(rng), self.place(rng), rng.choice([0, 0, 0, NOREPLACE, EXCHANGE])
        source, target = self.node(a), self.node(b)
        code, _ = outcome(renameat2, self.path(a), self.path(b), flags)
        what = f"rename {'/'.join(a)} {'/'.join(b)} {flags}"
        if source is None or flags == EXCHANGE and target is None:
            return self.expect(what, code, "ENOENT")
        if flags == NOREPLACE and target:
            return self.expect(what, code, "EEXIST")
        if a == b:
            return self.expect(what, code, 0)
        swap = target if flags == EXCHANGE else None
        if not self.fits(source, b, target, swap) or swap and not self.fits(swap, a, source, swap):
            return self.expect(what, code, "EBADMSG")
        self.expect(what, code, 0)
        self.moved(a, b, source, swap)
        return None

    @staticmethod
    def fits(node, place, replaced, swap):
        """Whether it can go to the name: documents to rows' names, empty rows where no row is."""
        if swap and (node.kind == "empty") != (replaced.kind == "empty"):
            return False
        if not is_row_name(place[1]) or node.kind == "row":
            return True
        if not node.data:
            return replaced is None or replaced.kind != "row"
        return is_entity(node.data)

    def moved(self, a, b, source, swap):
        del self.tree[a]
        if swap:
            self.tree[a] = swap
        else:
            self.gone(b)
        self.tree[b] = source
        for node, place in ((source, b), (swap, a)):
            if node is None:
                continue
            if not is_row_name(place[1]):
                self.becomes(node, "file")
            else:
                self.becomes(node, "row" if node.data else "empty")

    def do_rename_partition(self, rng):
        which = rng.choice("pq")
        self.moves += 1
        old = self.dirs[which]
        new = f"{old.split('-')[0]}-{self.moves}"
        self.note(f"rename {old} {new}")
        os.rename(self.table / old, self.table / new)
        self.dirs[which] = new

    # -- the other front end

    def do_rest_change(self, rng):
        place = self.place(rng, ROWS)
        node = self.node(place)
        is_row = node and node.kind == "row"
        if node and not is_row:
            os.stat(self.path(place))  # one that nobody has seen is nowhere but in the daemon
        row = {"v": rng.randrange(100), "r": "y" * rng.choice([0, 5, 5000])}
        how = rng.choice(["upsert", "upsert_merge", "replace", "insert", "merge"])
        self.note(f"REST {how} {'/'.join(place)}")
        if how == "insert":
            table, pk, rk = self.key(place)
            answer = self.rest.insert(table, {"PartitionKey": pk, "RowKey": rk, **row})
            ok(answer, 409 if is_row else 201)
        else:
            answer = getattr(self.rest, how)(*self.key(place), row)
            ok(answer, 404 if not is_row and how in ("replace", "merge") else 204)
        if answer.status >= 400:
            return
        if "merge" in how and is_row:
            row = {**json.loads(node.data), **row}
        node = self.tree.setdefault(place, node or Node("row"))
        node.kind = "row"
        node.commit(None, row)

    def do_rest_delete(self, rng):
        place = self.place(rng, ROWS)
        node = self.tree.get(place)
        is_row = node and node.kind == "row"
        self.note(f"REST delete {'/'.join(place)}")
        ok(self.rest.delete(*self.key(place)), 204 if is_row else 404)
        if is_row:
            self.gone(place)

    # -- everything

    def do_look(self, rng):
        self.note("look")
        for p, d in self.dirs.items():
            have = os.listdir(self.table / d)
            assert sorted(have) == sorted(n for q, n in self.tree if q == p), have
        for place, node in self.tree.items():
            self.node(place)
            data = get(self.path(place))
            assert data == node.data, (place, data[:80], node.data[:80])
            assert os.stat(self.path(place)).st_size == len(data)
            if not is_row_name(place[1]):
                continue
            answer = self.rest.get(*self.key(place), headers={"Accept": NONE})
            if node.kind == "row":
                row = {k: v for k, v in ok(answer, 200).json.items() if k not in SYSTEM}
                assert row == json.loads(data.decode("latin-1")), place
            else:
                ok(answer, 404)

    def do_remount(self, rng):
        if rng.randrange(15):
            return
        while self.handles:
            self.close(self.handles[0])
        kill = rng.randrange(2)
        self.note("kill" if kill else "remount")
        self.rest.close()
        if kill:
            self.mount.kill9()
            self.mount.start()
        else:
            self.mount.remount()
        self.rest.port = self.mount.port
        self.do_look(rng)

    def finish(self):
        while self.handles:
            self.close(self.handles[0])
        self.do_look(random.Random(0))

    def abandon(self):
        for h in self.handles:
            outcome(os.close, h.fd)
        self.handles = []


def test_U2_rows_are_the_last_committed_document(rest_mount, rest_store):
    mount = rest_mount(rest_store)
    with Client(mount.port) as rest:
        ok(rest.create_table("Rows"), 201)
        wander(lambda: Rows(mount, rest), Rows.kinds(), 10_000, 250, 1)
