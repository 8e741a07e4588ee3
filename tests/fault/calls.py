# SPDX-License-Identifier: MIT
"""calls.h for Python: a program whose calls on the files of one store are counted, failed, cut
short, recorded, or the last thing that it does.

    with calls.Control(work / "control") as c:
        env = c.env(build, store, record=work / "record")
        ... start the program with env ...
        c.strike("kill after", calls.WRITE, 3)
"""

import errno
import mmap
import os
import pathlib
import struct
import subprocess

OPEN, READ, WRITE, TRUNCATE, SYNC, NAME, LOOK, LOCK, MAP, CLOSE, MEMORY = (1 << i for i in range(11))
THREAD = 1 << 12
CHANGES = WRITE | TRUNCATE | SYNC | NAME | OPEN
FILES = 0x1ff
WHATS = ("count", "fail", "short", "kill before", "kill torn", "kill after", "stall")
HEAD = struct.Struct("<9I100s")
ALL = 0xffffffff


def _asan(program):
    """The library of the sanitizer that a program was built with, None: without."""
    out = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return any(name in out for name in ("libasan", "libtsan"))


class Control:
    """A file that a program maps: what shall happen to its calls, and what did."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.write_bytes(bytes(HEAD.size))
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), HEAD.size)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.map.close()

    def env(self, build, store, record=None, base=None):
        """The environment for a program of this build.  Only it, not what it starts, should
        get it."""
        env = dict(os.environ if base is None else base)
        env["LD_PRELOAD"] = str(pathlib.Path(build) / "tests/fault/calls.so")
        env["CALLS_CONTROL"] = str(self.path)
        env["CALLS_STORE"] = str(store)
        if record:
            env["CALLS_RECORD"] = str(record)
        if _asan(pathlib.Path(build) / "src/daemon/rowfs"):
            env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return env

    def strike(self, what, mask, n, last=0, error=errno.EIO, least=0):
        """The n-th call of these kinds from now on; last: up to this one (ALL).  least: of
        allocations only those of so many bytes and more."""
        self.map[0:4] = bytes(4)
        self.map[4:HEAD.size] = HEAD.pack(0, mask, n, last, error, 0, 0, 0, least, b"")[4:]
        self.map[0:4] = struct.pack("<I", WHATS.index(what))

    def count(self, mask):
        """Only counts from now on."""
        self.strike("count", mask, 0)

    def stop(self):
        """Nothing happens any more; returns the calls that there were."""
        self.map[0:4] = bytes(4)
        self.map[4:8] = bytes(4)
        return self.calls

    @property
    def calls(self):
        return HEAD.unpack(self.map[:])[6]

    @property
    def struck(self):
        return HEAD.unpack(self.map[:])[7]

    @property
    def call(self):
        """The last one that was struck: its name and its file's."""
        return HEAD.unpack(self.map[:])[9].split(b"\0")[0].decode()


def _append(record, *entries):
    """Of one write: other processes append, too."""
    data = b"".join(
        struct.pack("<IHBBIiQQ", 32 + len(name) + len(data), kind, flags, len(name), 0, -1, 0,
                    len(data)) + name + data for kind, flags, name, data in entries)
    fd = os.open(record, os.O_WRONLY | os.O_APPEND)
    try:
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, "the record is cut short")
    finally:
        os.close(fd)


def mark(record, text):
    """Says something in a record that another process writes."""
    _append(record, (0, 0, b"", text.encode()))


def made_before(record, name, data):
    """A record that begins with a file that is on the disk already."""
    created, begin, folder, rename = 0x01, 0x04, 0x08, 0x40
    name, new = name.encode(), name.encode() + b".new"
    _append(record, (OPEN, created, new, b""), (WRITE, 0, new, data),
            (SYNC, begin, new, b""), (SYNC, 0, new, b""), (NAME, rename, new, name),
            (SYNC, folder | begin, b".", b""), (SYNC, folder, b".", b""))
