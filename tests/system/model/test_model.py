# SPDX-License-Identifier: MIT
"""A stateful random test: the mount against a plain dictionary.

Hypothesis makes up sequences of operations (whole and partial writes, appends, renames of
every kind, removals, directories, several handles on one row, remounts and kills) and does
each to both; whatever can be observed must be the same: contents, order of listings, sizes,
modes, times, inode numbers, errnos, and the rows that `rowfs export` sees.

ROWFS_MODEL_EXAMPLES=N looks at N random sequences instead of the same few each time.
"""

import ctypes
import errno
import json
import os
import re

import pytest

pytest.importorskip("hypothesis", reason="needs python3-hypothesis")
from hypothesis import HealthCheck, Phase, settings, strategies as st  # noqa: E402
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule  # noqa: E402
from hypothesis.stateful import run_state_machine_as_test  # noqa: E402
from tools import sanitized  # noqa: E402

EXAMPLES = int(os.environ.get("ROWFS_MODEL_EXAMPLES", "0"))
LIBC = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2

ROWS = ["a.json", "b.json", "%25é.json"]
FILES = ["tmp", ".r.json.Ab12Cd", "a.json~"]
PARTS = ["p", "q", "%_"]
TABLES = ["One", "Two"]

names = st.sampled_from(ROWS + FILES)
row_names = st.sampled_from(ROWS)
parts = st.tuples(st.sampled_from(TABLES), st.sampled_from(PARTS))
documents = st.builds(
    lambda v, pad, tail: (json.dumps({"v": v, "s": "x" * pad}) + tail).encode(),
    st.integers(0, 9), st.sampled_from([0, 3, 600, 5000]), st.sampled_from(["", "\n", "  "]))
broken = st.sampled_from([b"{bad", b'{"v":', b"[]", b'{"v":[1]}', b'{"a":1,"a":2}', b"x"])
pieces = st.sampled_from([b"7", b" ", b'"', b"}", b"\n", b'{"v":8', b',"w":1}', b"\0"])
offsets = st.integers(0, 12)


def is_entity(data):
    """Whether the bytes are a row; knows just what the strategies above can produce."""
    def pairs(found):
        if len({k for k, _ in found}) != len(found):
            raise ValueError("twice")
        return dict(found)

    def refuse(_):
        raise ValueError("no number")

    try:
        row = json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=refuse)
    except ValueError:
        return False
    return isinstance(row, dict) and all(
        re.fullmatch(r"[A-Za-z_]\w*", k) and not isinstance(v, (dict, list))
        and (not isinstance(v, int) or -2**63 <= v < 2**63) for k, v in row.items())


def is_row_name(name):
    return name.endswith(".json") and not name.startswith(".")


class Entry:
    """A row, an ordinary file, or an empty row: an x.json without a document."""

    def __init__(self, data, ino):
        self.data, self.ino = data, ino
        self.version = 0  # moves with every commit
        self.mode = self.mtime = None  # where a test has set them
        self.gone = False

    def commit(self, data):
        self.data, self.mtime = data, None
        self.version += 1


class Handle:
    def __init__(self, fd, entry, row, mode):
        self.fd, self.entry, self.row, self.mode = fd, entry, row, mode
        self.seen = entry.data  # what a reader sees until it closes
        self.staged = bytearray(b"" if mode == "w" else entry.data)
        self.loaded = None if mode == "w" else entry.version
        self.dirty = self.spoilt = False


def renameat2(old, new, flags):
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def outcome(function, *args):
    """(0, result) or (errno, None)."""
    try:
        return 0, function(*args)
    except OSError as e:
        return e.errno, None


def name_of(code):
    return errno.errorcode.get(code, "success")


def expect(have, *want):
    wanted = [getattr(errno, w) if isinstance(w, str) else w for w in want]
    assert have in wanted, f"{name_of(have)}, expected {'/'.join(map(name_of, wanted))}"


def write_all(path, data, flags):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        os.write(fd, data)
    except OSError:
        outcome(os.close, fd)
        raise
    os.close(fd)


def listing_order(item):
    """Rows by key in UTF-16 units, empty rows too, then ordinary files by bytes."""
    name, _ = item
    if is_row_name(name):
        key = name[:-5].replace("%25", "%")
        return 0, key.encode("utf-16-be")
    return 1, name.encode()


def machine(mount):
    class Model(RuleBasedStateMachine):
        counter = 0

        def __init__(self):
            super().__init__()
            Model.counter += 1
            self.account = mount.path / f"acct{Model.counter}"
            self.account.mkdir()
            self.tree = {}  # (table, partition) -> {name: Entry}
            self.handles = []
            for t in TABLES:
                (self.account / t).mkdir()
            for t, p in ((TABLES[0], "p"), (TABLES[0], "q"), (TABLES[1], "p")):
                (self.account / t / p).mkdir()
                self.tree[t, p] = {}

        # -- helpers

        def path(self, part, name=None):
            p = self.account / part[0] / part[1]
            return p / name if name else p

        def find(self, part, name):
            return self.tree.get(part, {}).get(name)

        def writers(self, *entries):
            return any(h.entry in entries and h.mode != "r" for h in self.handles)

        def ino(self, part, name):
            return os.stat(self.path(part, name)).st_ino

        def missing(self, part):
            return part not in self.tree

        # -- whole and partial writes

        @rule(part=parts, name=names, data=st.one_of(documents, documents, broken))
        def write(self, part, name, data):
            """open(O_CREAT | O_TRUNC), write, close."""
            code, _ = outcome(write_all, self.path(part, name), data, os.O_CREAT | os.O_TRUNC)
            if self.missing(part):
                return expect(code, "ENOENT")
            entry = self.find(part, name)
            if entry is None:
                entry = self.tree[part][name] = Entry(b"", self.ino(part, name))
            if is_row_name(name) and not is_entity(data):
                return expect(code, "EINVAL")
            expect(code, 0)
            entry.commit(data)

        @rule(part=parts, name=row_names, at=offsets, piece=pieces, length=st.one_of(
            st.none(), st.integers(0, 20)))
        def overwrite(self, part, name, at, piece, length):
            """open(O_RDWR), pwrite, maybe ftruncate, close: checked at the close."""
            entry = self.find(part, name)
            code, fd = outcome(os.open, self.path(part, name), os.O_RDWR)
            if entry is None:
                return expect(code, "ENOENT")
            expect(code, 0)
            data = bytearray(entry.data)
            if at > len(data):
                data.extend(bytes(at - len(data)))
            data[at:at + len(piece)] = piece
            wrote, _ = outcome(os.pwrite, fd, piece, at)
            if length is not None and wrote == 0:
                expect(outcome(os.ftruncate, fd, length)[0], 0)
                del data[length:]
                data.extend(bytes(length - len(data)))
            code, _ = outcome(os.close, fd)
            if wrote != 0:  # only where the write began a document
                expect(wrote, "EINVAL")
                assert entry.data == b"" and at == 0
                return expect(code, "EINVAL")
            if not is_entity(bytes(data)):
                return expect(code, "EINVAL")
            expect(code, 0)
            entry.commit(bytes(data))

        @rule(part=parts, name=names, piece=pieces)
        def append(self, part, name, piece):
            entry = self.find(part, name)
            code, _ = outcome(write_all, self.path(part, name), piece, os.O_APPEND)
            if entry is None:
                return expect(code, "ENOENT")
            data = entry.data + piece
            if is_row_name(name) and not is_entity(data):
                return expect(code, "EINVAL")
            expect(code, 0)
            entry.commit(data)

        @rule(part=parts, name=names, length=st.integers(0, 30))
        def truncate(self, part, name, length):
            entry = self.find(part, name)
            code, _ = outcome(os.truncate, self.path(part, name), length)
            if entry is None:
                return expect(code, "ENOENT")
            data = entry.data[:length] + bytes(max(0, length - len(entry.data)))
            if is_row_name(name) and entry.data:
                return expect(code, *(["EINVAL", 0] if data == entry.data else ["EINVAL"]))
            if is_row_name(name):  # an empty row
                return expect(code, "EINVAL") if length else expect(code, 0, "EINVAL")
            expect(code, 0)
            if data != entry.data:
                entry.data, entry.mtime = data, None
                entry.version += 1
            else:
                entry.mtime = None

        @rule(part=parts, name=names)
        def create(self, part, name):
            """touch, and O_EXCL on what is there."""
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            code, fd = outcome(os.open, self.path(part, name), flags, 0o644)
            if self.missing(part):
                return expect(code, "ENOENT")
            if self.find(part, name):
                return expect(code, "EEXIST")
            expect(code, 0)
            expect(outcome(os.close, fd)[0], 0)
            self.tree[part][name] = Entry(b"", self.ino(part, name))

        # -- names

        @rule(part=parts, name=names)
        def unlink(self, part, name):
            code, _ = outcome(os.unlink, self.path(part, name))
            entry = self.find(part, name)
            if entry is None:
                return expect(code, "ENOENT")
            expect(code, 0)
            del self.tree[part][name]
            entry.gone = True

        @rule(old=parts, a=names, new=parts, b=names,
              flags=st.sampled_from([0, 0, 0, NOREPLACE, EXCHANGE]))
        def rename(self, old, a, new, b, flags):
            source, target = self.find(old, a), self.find(new, b)
            same = (old, a) == (new, b)
            # Writers of a row that is replaced, or of a row that becomes a file, are
            # looked at by test_semantics_rows.py.
            if self.writers(target) or is_row_name(a) != is_row_name(b) and self.writers(source):
                return
            if flags == EXCHANGE and self.writers(source):
                return
            if is_row_name(b) and any(h.entry is source and not h.row for h in self.handles):
                return
            if flags == EXCHANGE and is_row_name(a) and any(
                    h.entry is target and not h.row for h in self.handles):
                return
            code, _ = outcome(renameat2, self.path(old, a), self.path(new, b), flags)
            if source is None or self.missing(new):
                return expect(code, "ENOENT")
            if target is None and flags == EXCHANGE:
                return expect(code, "ENOENT")
            if flags == NOREPLACE and (target or same):
                return expect(code, "EEXIST")
            if same:
                return expect(code, 0)
            back = flags == EXCHANGE
            bad = is_row_name(b) and not is_entity(source.data) or (
                back and is_row_name(a) and not is_entity(target.data))
            empty = source.data == b"" or back and target.data == b""
            if bad and empty and code == 0:
                # An empty row may go to a name where no document is lost by it.
                assert target is None or target.data == b"" or back
            elif bad:
                return expect(code, "EBADMSG")
            else:
                expect(code, 0)
            del self.tree[old][a]
            if back:
                self.tree[old][a] = target
            elif target:
                target.gone = True
            self.tree[new][b] = source

        @rule(part=parts)
        def mkdir(self, part):
            code, _ = outcome(os.mkdir, self.path(part))
            if self.missing(part):
                expect(code, 0)
                self.tree[part] = {}
            else:
                expect(code, "EEXIST")

        @rule(part=parts)
        def rmdir(self, part):
            code, _ = outcome(os.rmdir, self.path(part))
            if self.missing(part):
                return expect(code, "ENOENT")
            if self.tree[part]:
                return expect(code, "ENOTEMPTY")
            expect(code, 0)
            del self.tree[part]

        @rule(old=parts, new=parts, flags=st.sampled_from([0, 0, NOREPLACE]))
        def rename_partition(self, old, new, flags):
            code, _ = outcome(renameat2, self.path(old), self.path(new), flags)
            if self.missing(old):
                return expect(code, "ENOENT")
            if flags == NOREPLACE and not self.missing(new):
                return expect(code, "EEXIST")
            if old == new:
                return expect(code, 0)
            if self.tree.get(new):
                return expect(code, "ENOTEMPTY", "EEXIST")
            expect(code, 0)
            self.tree[new] = self.tree.pop(old)

        @rule()
        def swap_tables(self):
            """A table is renamed away and back, with everything in it."""
            here, there = self.account / TABLES[0], self.account / "Elsewhere"
            os.rename(here, there)
            assert sorted(os.listdir(self.account)) == sorted(["Elsewhere", TABLES[1]])
            os.rename(there, here)

        # -- attributes

        @rule(part=parts, name=names, mode=st.sampled_from([0o600, 0o640, 0o666]))
        def chmod(self, part, name, mode):
            code, _ = outcome(os.chmod, self.path(part, name), mode)
            entry = self.find(part, name)
            expect(code, 0 if entry else "ENOENT")
            if entry:
                entry.mode = mode

        @rule(part=parts, name=names, ns=st.integers(0, 4 * 10**18))
        def utime(self, part, name, ns):
            code, _ = outcome(lambda: os.utime(self.path(part, name), ns=(ns, ns)))
            entry = self.find(part, name)
            expect(code, 0 if entry else "ENOENT")
            if entry:
                entry.mtime = ns

        # -- handles that stay open

        @precondition(lambda self: len(self.handles) < 4)
        @rule(part=parts, name=names, mode=st.sampled_from("rr+aw"))
        def open(self, part, name, mode):
            flags = {"r": os.O_RDONLY, "+": os.O_RDWR, "a": os.O_RDWR | os.O_APPEND,
                     "w": os.O_RDWR | os.O_TRUNC}[mode]
            entry = self.find(part, name)
            code, fd = outcome(os.open, self.path(part, name), flags)
            if entry is None:
                return expect(code, "ENOENT")
            expect(code, 0)
            if not is_row_name(name) and mode == "w":
                entry.data, entry.mtime = b"", None
            self.handles.append(Handle(fd, entry, is_row_name(name), mode))

        @precondition(lambda self: self.handles)
        @rule(pick=st.integers(0, 3))
        def read_handle(self, pick):
            h = self.handles[pick % len(self.handles)]
            want = h.entry.data if not h.row else h.seen if h.mode == "r" else bytes(h.staged)
            if not h.spoilt:
                assert os.pread(h.fd, 1 << 20, 0) == want
                assert os.fstat(h.fd).st_size == len(want)

        @precondition(lambda self: any(h.mode != "r" for h in self.handles))
        @rule(pick=st.integers(0, 3), at=offsets, data=st.one_of(documents, pieces))
        def write_handle(self, pick, at, data):
            able = [h for h in self.handles if h.mode != "r"]
            h = able[pick % len(able)]
            if h.spoilt:
                return
            current = h.staged if h.row else bytearray(h.entry.data)
            if h.mode == "a":
                at = len(current)
            elif h.row and len(current) < at:
                at = len(current)
            code, _ = outcome(os.pwrite, h.fd, data, at)
            if code != 0:  # a document from the start may be refused as it is written
                assert h.row
                expect(code, "EINVAL")
                h.spoilt = True
                return
            current.extend(bytes(max(0, at - len(current))))
            current[at:at + len(data)] = data
            h.dirty = True
            if not h.row:
                h.entry.data, h.entry.mtime = bytes(current), None

        def commit(self, h, code, invalid):
            """What a close or fsync of a writer must have answered, and what it did."""
            if not h.row or h.mode == "r":
                h.dirty = False
                return expect(code, 0)
            if h.spoilt:
                return expect(code, invalid)
            if not h.dirty:
                return expect(code, 0)
            data = bytes(h.staged)
            if not is_entity(data):
                return expect(code, invalid, "ESTALE") if self.stale(h) else expect(code, invalid)
            if self.stale(h):
                return expect(code, "ESTALE")
            expect(code, 0)
            h.entry.commit(data)
            h.dirty = False
            if h.loaded is not None:
                h.loaded = h.entry.version

        @staticmethod
        def stale(h):
            return h.entry.gone or h.loaded is not None and h.loaded != h.entry.version

        @precondition(lambda self: self.handles)
        @rule(pick=st.integers(0, 3))
        def fsync_handle(self, pick):
            h = self.handles[pick % len(self.handles)]
            code, _ = outcome(os.fsync, h.fd)
            self.commit(h, code, "EIO")

        @precondition(lambda self: self.handles)
        @rule(pick=st.integers(0, 3))
        def dup_close_handle(self, pick):
            h = self.handles[pick % len(self.handles)]
            code, _ = outcome(os.close, os.dup(h.fd))
            self.commit(h, code, "EINVAL")

        @precondition(lambda self: self.handles)
        @rule(pick=st.integers(0, 3))
        def close_handle(self, pick):
            h = self.handles.pop(pick % len(self.handles))
            code, _ = outcome(os.close, h.fd)
            self.commit(h, code, "EINVAL")

        # -- the end of the daemon, and its return

        @rule()
        def remount(self):
            while self.handles:
                self.close_handle(0)
            mount.remount()

        @rule()
        def kill_and_remount(self):
            mount.kill9()
            in_doubt = {h.entry for h in self.handles if not h.row and h.dirty}
            for h in self.handles:
                outcome(os.close, h.fd)
            self.handles = []
            mount.start()
            # What was written to an ordinary file and not yet closed may be there or not.
            for part, entries in self.tree.items():
                for name, entry in entries.items():
                    if entry in in_doubt:
                        with open(self.path(part, name), "rb") as f:
                            entry.data, entry.mtime = f.read(), None

        # -- everything that can be seen

        @invariant()
        def same(self):
            for table in TABLES:
                have = os.listdir(self.account / table)
                want = [p for p in ("%_", "p", "q") if (table, p) in self.tree]
                assert have == want
            for part, entries in self.tree.items():
                with os.scandir(self.path(part)) as found:
                    listed = [(e.name, e.inode()) for e in found]
                assert [n for n, _ in listed] == [
                    n for n, _ in sorted(entries.items(), key=listing_order)]
                for name, ino in listed:
                    self.same_entry(part, name, entries[name], ino)

        def same_entry(self, part, name, entry, ino):
            path = self.path(part, name)
            with open(path, "rb") as f:
                assert f.read() == entry.data, name
            s = os.stat(path)
            assert s.st_size == len(entry.data), name
            entry.ino = entry.ino or ino
            assert s.st_ino == ino == entry.ino, f"{name}: inode {s.st_ino} {ino} {entry.ino}"
            assert s.st_nlink == 1
            if entry.mode is not None:
                assert s.st_mode & 0o7777 == entry.mode, name
            if entry.mtime is not None:
                assert s.st_mtime_ns == entry.mtime, name

        def teardown(self):
            for h in self.handles:
                outcome(os.close, h.fd)
            for table in TABLES:
                out = mount.rowfs("export", mount.store, f"{self.account.name}/{table}").stdout
                have = {(r["PartitionKey"], r["RowKey"]) for r in map(json.loads, out.splitlines())}
                want = {(p if p != "%_" else "", n[:-5].replace("%25", "%"))
                        for (t, p), entries in self.tree.items() if t == table
                        for n, e in entries.items() if is_row_name(n) and e.data}
                # A handle that was open just now may have changed one.
                assert have == want or self.handles

    return Model


@pytest.mark.slow
def test_model(mnt):
    if EXAMPLES:
        how = settings(max_examples=EXAMPLES, stateful_step_count=60)
    else:
        # The examples are the same in each run, so a slow build repeats a third of them.
        how = settings(max_examples=50 if sanitized() else 150, stateful_step_count=50,
                       derandomize=True)
    run_state_machine_as_test(machine(mnt), settings=settings(
        how, deadline=None, database=None, print_blob=True,
        phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck)))
