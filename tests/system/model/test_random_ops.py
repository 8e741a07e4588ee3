# SPDX-License-Identifier: MIT
"""Ordinary files under random operations, against a model in memory (random_walk.py)."""

import ctypes
import itertools
import mmap
import os
import random

from random_walk import Walk, outcome, wander
from tools import EXCHANGE, LIBC, NOREPLACE, renameat2

NAMES = ["f", "g", "h.json~", ".d/f", ".d/sub/g"]
SIZE_MAX = 300_000
PAGE = mmap.PAGESIZE
# KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE, INSERT_RANGE, UNSHARE_RANGE
FALLOCATE = [0, 1, 3, 8, 0x10, 0x11, 0x20, 0x40]


class File:
    def __init__(self, data=b""):
        self.data = bytearray(data)
        self.mapped = 0  # how many mappings there are


class Handle:
    def __init__(self, fd, file, flags):
        self.fd, self.file, self.flags = fd, file, flags

    @property
    def reads(self):
        return self.flags & os.O_ACCMODE != os.O_WRONLY

    @property
    def writes(self):
        return self.flags & os.O_ACCMODE != os.O_RDONLY


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def place(rng):
    """An offset, near the start or on the edges of pages more often than elsewhere."""
    edge = max(0, PAGE * rng.randrange(SIZE_MAX // PAGE) + rng.choice([0, 0, -1, 1]))
    return rng.choice([rng.randrange(64), rng.randrange(9000), rng.randrange(SIZE_MAX), edge])


def length(rng):
    return rng.choice([rng.randrange(1, 40), PAGE, rng.randrange(1, 5000),
                       rng.randrange(1, 70_000)])


def some_bytes(rng):
    return rng.randbytes(16) * (length(rng) // 16 + 1)


class Files(Walk):
    weights = {"open": 4, "write": 8, "read": 6, "ftruncate": 2, "truncate": 2, "compare": 3,
               "poke": 5, "peek": 3, "map": 2, "copy": 2, "fsync": 2, "close": 2}
    numbers = itertools.count(1)

    def __init__(self, mount, table):
        super().__init__()
        self.mount = mount
        self.dir = table / f"p{next(Files.numbers)}"
        (self.dir / ".d/sub").mkdir(parents=True)
        self.files = {}  # name -> File
        self.handles = []
        self.maps = []  # (mmap, File)

    def pick(self, rng, able=lambda h: True):
        found = [h for h in self.handles if able(h)]
        return rng.choice(found) if found else None

    def told(self, h):
        return f"#{self.handles.index(h)}"

    @staticmethod
    def put(file, at, data):
        if at > len(file.data):
            file.data.extend(bytes(at - len(file.data)))
        file.data[at:at + len(data)] = data

    @staticmethod
    def resize(file, size):
        del file.data[size:]
        file.data.extend(bytes(size - len(file.data)))

    # -- open files

    def do_open(self, rng):
        name = rng.choice(NAMES)
        flags = rng.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR, os.O_RDWR])
        for extra, one_in in ((os.O_APPEND, 5), (os.O_TRUNC, 6), (os.O_EXCL | os.O_CREAT, 6),
                              (os.O_CREAT, 2), (os.O_DIRECT, 6), (os.O_SYNC, 9)):
            flags |= extra if rng.randrange(one_in) == 0 else 0
        if flags & os.O_ACCMODE == os.O_RDONLY:
            flags &= ~os.O_TRUNC
        there = self.files.get(name)
        if len(self.handles) >= 6:
            return
        code, fd = outcome(os.open, self.dir / name, flags, 0o644)
        what = f"#{len(self.handles)} = open {name} {flags:#o}"
        if there and flags & os.O_EXCL:
            self.expect(what, code, "EEXIST")
        elif not there and not flags & os.O_CREAT:
            self.expect(what, code, "ENOENT")
        else:
            self.expect(what, code, 0)
            if there is None:
                self.files[name] = there = File()
            if flags & os.O_TRUNC:
                self.resize(there, 0)
            self.handles.append(Handle(fd, there, flags))

    def do_close(self, rng):
        if (h := self.pick(rng)) is None:
            return
        what = f"close {self.told(h)}"
        self.handles.remove(h)
        self.expect(what, outcome(os.close, h.fd)[0], 0)

    def do_fsync(self, rng):
        if (h := self.pick(rng)) is not None:
            call = rng.choice([os.fsync, os.fdatasync])
            self.expect(f"{call.__name__} {self.told(h)}", outcome(call, h.fd)[0], 0)

    # -- bytes

    def do_write(self, rng):
        at, data = place(rng), some_bytes(rng)
        if (h := self.pick(rng, lambda h: h.writes)) is None:
            return
        if h.flags & os.O_APPEND:
            at = len(h.file.data)
            if at > SIZE_MAX:
                return
            os.lseek(h.fd, rng.randrange(1 + at), os.SEEK_SET)
            code, n = outcome(os.write, h.fd, data)
        elif rng.randrange(4) == 0:
            code, n = outcome(os.pwritev, h.fd, [data[:7], data[7:]], at)
        else:
            code, n = outcome(os.pwrite, h.fd, data, at)
        self.expect(f"write {self.told(h)} {at} +{len(data)}", code, 0)
        assert n == len(data)
        self.put(h.file, at, data)
        assert os.fstat(h.fd).st_size == len(h.file.data)

    def do_read(self, rng):
        at, n = place(rng), length(rng)
        if (h := self.pick(rng, lambda h: h.reads)) is None:
            return
        if rng.randrange(3) == 0:
            at = max(0, len(h.file.data) - rng.randrange(n))
        if rng.randrange(4) == 0:  # what the kernel has of it is not asked
            os.posix_fadvise(h.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        code, data = outcome(os.pread, h.fd, n, at)
        self.expect(f"read {self.told(h)} {at} +{n}", code, 0)
        self.same(data, h.file.data[at:at + n], at)

    @staticmethod
    def same(have, want, at=0):
        if have == want:
            return
        first = next((i for i, (a, b) in enumerate(zip(have, want)) if a != b),
                     min(len(have), len(want)))
        raise AssertionError(f"{len(have)} bytes, expected {len(want)}; the first that differs is "
                             f"at {at + first}: {have[first:first + 8].hex()}, expected "
                             f"{bytes(want[first:first + 8]).hex()}")

    def do_ftruncate(self, rng):
        size = rng.choice([place(rng), rng.randrange(20), 0])
        if (h := self.pick(rng, lambda h: h.writes)) is None:
            return
        self.expect(f"ftruncate {self.told(h)} {size}", outcome(os.ftruncate, h.fd, size)[0], 0)
        self.resize(h.file, size)
        assert os.fstat(h.fd).st_size == size

    def do_truncate(self, rng):
        name, size = rng.choice(NAMES), place(rng)
        code, _ = outcome(os.truncate, self.dir / name, size)
        self.expect(f"truncate {name} {size}", code, 0 if name in self.files else "ENOENT")
        if name in self.files:
            self.resize(self.files[name], size)

    def do_fallocate(self, rng):
        mode, at, n = rng.choice(FALLOCATE), place(rng), length(rng)
        if (h := self.pick(rng, lambda h: h.writes)) is not None:
            code, _ = outcome(fallocate, h.fd, mode, at, n)
            # Ranges that are moved have to be of whole blocks, which may be looked at first.
            moves = mode in (0x8, 0x20)
            self.expect(f"fallocate {self.told(h)} {mode:#x} {at} +{n}", code,
                        *["ENOTSUP", "EINVAL"][:1 + moves])

    def do_posix_fallocate(self, rng):
        """The C library does it by hand."""
        at, n = place(rng), length(rng)
        if (h := self.pick(rng, lambda h: h.writes and h.reads)) is None:
            return
        if h.flags & os.O_APPEND:  # it would append
            return
        code, _ = outcome(os.posix_fallocate, h.fd, at, n)
        self.expect(f"posix_fallocate {self.told(h)} {at} +{n}", code, 0)
        self.resize(h.file, max(len(h.file.data), at + n))

    def do_copy(self, rng):
        """copy_file_range(2), between two files or within one."""
        source = self.pick(rng, lambda h: h.reads)
        target = self.pick(rng, lambda h: h.writes and not h.flags & os.O_APPEND)
        if source is None or target is None:
            return
        at, to = rng.randrange(len(source.file.data) + 1), place(rng)
        n = min(length(rng), len(source.file.data) - at)
        if n == 0 or (source.file is target.file and abs(at - to) < n):
            return
        data, done = bytes(source.file.data[at:at + n]), 0
        what = f"copy_file_range {self.told(source)} {at} {self.told(target)} {to} +{n}"
        while done < n:
            code, some = outcome(os.copy_file_range, source.fd, target.fd, n - done, at + done,
                                 to + done)
            self.expect(what, code, 0)
            assert some > 0
            done += some
        self.put(target.file, to, data)

    def do_seek(self, rng):
        at = place(rng)
        if (h := self.pick(rng)) is None:
            return
        size = len(h.file.data)
        code, have = outcome(os.lseek, h.fd, at, os.SEEK_DATA)
        if at >= size:
            self.expect(f"SEEK_DATA {at}", code, "ENXIO")
        else:
            assert code == 0 and at <= have and not any(h.file.data[at:have])
            assert at <= os.lseek(h.fd, at, os.SEEK_HOLE) <= size
        assert os.lseek(h.fd, 0, os.SEEK_END) == size

    # -- mappings

    def do_map(self, rng):
        h = self.pick(rng, lambda h: h.reads and h.writes and h.file.data)
        if h is not None and len(self.maps) < 3:
            self.maps.append((mmap.mmap(h.fd, len(h.file.data)), h.file))
            self.note(f"map {self.told(h)} +{len(h.file.data)}")

    def do_unmap(self, rng):
        if self.maps:
            self.maps.pop(rng.randrange(len(self.maps)))[0].close()
            self.note("unmap")

    def mapped(self, rng):
        """A mapping, and a range in it that the file still has."""
        if not self.maps:
            return None, None, 0, 0
        m, file = rng.choice(self.maps)
        end = min(len(m), len(file.data))
        if end == 0:
            return None, None, 0, 0
        at = rng.choice([rng.randrange(end), place(rng) % end])
        return m, file, at, min(length(rng), end - at)

    def do_poke(self, rng):
        m, file, at, n = self.mapped(rng)
        if m is None:
            return
        data = (rng.randbytes(8) * (n // 8 + 1))[:n]
        self.note(f"poke {at} +{n}")
        m[at:at + n] = data
        file.data[at:at + n] = data
        if rng.randrange(3) == 0:
            m.flush()

    def do_peek(self, rng):
        m, file, at, n = self.mapped(rng)
        if m is not None:
            self.note(f"peek {at} +{n}")
            self.same(m[at:at + n], file.data[at:at + n], at)

    def do_private_map(self, rng):
        """What is written to a private mapping is nobody else's."""
        h = self.pick(rng, lambda h: h.reads and h.file.data)
        if h is None:
            return
        self.note(f"private map {self.told(h)}")
        with mmap.mmap(h.fd, len(h.file.data), flags=mmap.MAP_PRIVATE) as m:
            self.same(m[:], h.file.data)
            m[rng.randrange(len(m))] = 1

    # -- names

    def do_rename(self, rng):
        a, b, flags = rng.choice(NAMES), rng.choice(NAMES), rng.choice([0, 0, NOREPLACE, EXCHANGE])
        code, _ = outcome(renameat2, self.dir / a, self.dir / b, flags)
        what = f"rename {a} {b} {flags}"
        if a not in self.files or flags == EXCHANGE and b not in self.files:
            self.expect(what, code, "ENOENT")
        elif flags == NOREPLACE and b in self.files:
            self.expect(what, code, "EEXIST")
        else:
            self.expect(what, code, 0)
            if a != b:
                old = self.files.pop(a)
                if flags == EXCHANGE:
                    self.files[a] = self.files[b]
                self.files[b] = old

    def do_unlink(self, rng):
        name = rng.choice(NAMES)
        code, _ = outcome(os.unlink, self.dir / name)
        self.expect(f"unlink {name}", code, 0 if name in self.files else "ENOENT")
        self.files.pop(name, None)

    # -- everything

    def do_compare(self, rng):
        self.note("compare")
        have = [os.path.relpath(os.path.join(d, n), self.dir)
                for d, _, names in os.walk(self.dir) for n in names]
        assert sorted(have) == sorted(self.files)
        for name, file in self.files.items():
            with open(self.dir / name, "rb") as f:
                if rng.randrange(2):
                    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                assert os.fstat(f.fileno()).st_size == len(file.data), name
                self.same(f.read(), file.data)
        for h in self.handles:
            s = os.fstat(h.fd)
            assert s.st_size == len(h.file.data)
            assert s.st_nlink == (1 if h.file in self.files.values() else 0)

    def do_remount(self, rng):
        """By umount, or by a kill of the daemon with everything on disk."""
        if rng.randrange(12):
            return
        kill = rng.randrange(2)
        self.note("kill" if kill else "remount")
        if kill:
            for m, _ in self.maps:
                m.flush()
            for h in self.handles:
                os.fsync(h.fd)
            self.mount.kill9()
        self.abandon()
        if kill:
            self.mount.start()
        else:
            self.mount.remount()
        self.do_compare(rng)

    def finish(self):
        self.abandon()
        self.do_compare(random.Random(0))

    def abandon(self):
        for m, _ in self.maps:
            m.close()
        for h in self.handles:
            outcome(os.close, h.fd)
        self.maps, self.handles = [], []


def test_U1_ordinary_files_are_what_was_written(mnt, table):
    wander(lambda: Files(mnt, table), Files.kinds(), 12_000, 400, 1)


def test_U1_a_removed_file_has_no_links(part):
    """Whatever is done to it while it is open."""
    fd = os.open(part / "f", os.O_RDWR | os.O_CREAT)
    os.unlink(part / "f")
    for change in (lambda: os.ftruncate(fd, 7), lambda: os.fchmod(fd, 0o600),
                   lambda: os.utime(fd, (1, 1)), lambda: os.write(fd, b"x")):
        change()
        assert os.fstat(fd).st_nlink == 0
    os.close(fd)


def test_U1_what_a_mapping_wrote_does_not_come_behind_a_truncation(part):
    """O_TRUNC while the kernel writes back: the file stays empty."""
    for _ in range(1000):
        fd = os.open(part / "f", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 5)
        with mmap.mmap(fd, 5) as m:
            m[:] = b"bytes"
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # begins to, and does not wait
            os.close(os.open(part / "f", os.O_WRONLY | os.O_TRUNC))
        os.close(fd)
        with open(part / "f", "rb") as f:
            assert f.read() == b""
            assert os.fstat(f.fileno()).st_size == 0
