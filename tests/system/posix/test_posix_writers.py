# SPDX-License-Identifier: MIT
"""docs/posix.md (O): descriptors that can only write, as shells and copiers open them.  The mount writes
through those of rows without the kernel's cache, and no program can tell; as test_posix.py."""

import mmap
import os

from posix_places import ME, STRANGER, as_user, case, cases, fd_of, grounds, place
from tools import get, sh

__all__ = ["grounds", "place"]
WRITE, BOTH = os.O_WRONLY, os.O_RDWR
OLD = b'{"old":"' + b"o" * 20000 + b'"}\n'
NEW = b'{"new":"' + b"n" * 20000 + b'"}\n'


def in_pieces(fd, data, size):
    for at in range(0, len(data), size):
        assert os.write(fd, data[at:at + size]) == len(data[at:at + size])


# ---- O4: one writer

@case("O4", "pieces that shells append")
def _(p):
    path = p.new(data=OLD)
    sh("for i in 1 2 3; do printf '  \\n' >> \"$F\"; done", env={**os.environ, "F": str(path)})
    assert get(path) == OLD + b"  \n" * 3


COPIERS = {
    "cp": 'cp "$S" "$F"',
    "cat": 'cat "$S" > "$F"',
    "tee": 'tee "$F" < "$S" > /dev/null',
    "dd in small pieces": 'dd if="$S" of="$F" bs=997 status=none',
    "dd that seeks": 'dd if="$S" of="$F" bs=4097 status=none; '
                     'dd if="$S" of="$F" bs=1000 skip=3 seek=3 count=9 conv=notrunc status=none',
    "dd that appends": 'rm -f "$F"; dd if="$S" of="$F" bs=5000 oflag=append conv=notrunc status=none',
    "dd that syncs": 'dd if="$S" of="$F" bs=4096 conv=fsync status=none',
}
for _name, _script in COPIERS.items():
    for _before in (None, OLD):
        @case("O4", f"{_name} {'makes' if _before is None else 'overwrites'} a file")
        def _(p, script=_script, before=_before):
            path = p.f("a") if before is None else p.new(data=before)
            source = p.outside / "source"
            source.write_bytes(NEW)
            sh(script, env={**os.environ, "S": str(source), "F": str(path)})
            assert get(path) == NEW


def spliced(source, to):
    r, w = os.pipe()
    try:
        while (n := os.splice(source, w, 5000)) > 0:
            while n > 0:
                n -= os.splice(r, to, n)
    finally:
        os.close(r)
        os.close(w)


def sent(source, to):
    at = 0
    while (n := os.sendfile(to, source, at, 5000)) > 0:
        at += n


for _name, _copy in (("splice", spliced), ("sendfile", sent)):
    @case("O4", f"{_name} into a descriptor that can only write")
    def _(p, copy=_copy):
        path, source = p.new(data=OLD), p.outside / "source"
        source.write_bytes(NEW)
        with fd_of(source) as r, fd_of(path, WRITE | os.O_TRUNC) as w:
            copy(r, w)
        assert get(path) == NEW


@case("O4", "truncations between the writes of a descriptor that can only write")
def _(p):
    path = p.new(data=OLD)
    with fd_of(path, WRITE) as fd:
        os.ftruncate(fd, 0)
        in_pieces(fd, OLD, 1000)
        os.ftruncate(fd, 0)
        assert os.fstat(fd).st_size == 0
        os.ftruncate(fd, len(NEW))
        assert os.fstat(fd).st_size == len(NEW)
        os.pwrite(fd, NEW[10:], 10)
        os.pwrite(fd, NEW[:10], 0)
    assert get(path) == NEW


@case("O4", "what was written is there after fsync of a descriptor that can only write")
def _(p):
    path = p.new(data=OLD)
    with fd_of(path, WRITE | os.O_TRUNC) as fd:
        in_pieces(fd, NEW, 3000)
        os.fsync(fd)
        assert get(path) == NEW
        os.write(fd, b"  ")
    assert get(path) == NEW + b"  "


# ---- O4: others meanwhile

@case("O4", "a mapping of a reader while another descriptor writes")
def _(p):
    path = p.new(data=OLD)
    with fd_of(path) as r:
        with mmap.mmap(r, 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as seen:
            assert seen[:5000] == OLD[:5000]
            with fd_of(path, WRITE) as w:
                in_pieces(w, NEW, 4500)
            # A row's reader keeps its version (W1).
            assert seen[:] == (OLD if p.kind == "rows" else NEW)
    assert get(path) == NEW


@case("O4", "a shared mapping of a file beside a descriptor that can only write")
def _(p):
    path = p.f("a")
    with fd_of(path, WRITE | os.O_CREAT | os.O_EXCL) as w:
        in_pieces(w, OLD, 4500)
        with fd_of(f"/proc/self/fd/{w}", BOTH) as both, mmap.mmap(both, len(OLD)) as seen:
            assert seen[:] == OLD
            os.pwrite(w, NEW, 0)
            assert seen[:] == os.pread(both, len(NEW) + 1, 0) == NEW
            seen[9000:9003] = b"map"
            os.pwrite(w, b"one", 9010)
            os.pwrite(w, b"two", 100)
            changed = bytearray(NEW)
            changed[9000:9003], changed[9010:9013], changed[100:103] = b"map", b"one", b"two"
            assert seen[:] == os.pread(both, len(NEW) + 1, 0) == changed
            seen.flush()
    assert get(path) == changed


@case("O4", "two descriptors that can only write", rows="ESTALE")
def _(p):
    path = p.new(data=OLD)
    try:
        with fd_of(path, WRITE | os.O_APPEND) as a, fd_of(path, WRITE | os.O_APPEND) as b:
            for _i in range(5):
                os.write(a, b" ")
                os.write(b, b"\n")
    finally:
        # Writers of a row do not mix (W14), and the second one had loaded the row (L1).
        assert get(path) == OLD + (b"\n" if p.kind == "rows" else b" \n") * 5


# ---- O6: a write takes set-user-ID and set-group-ID

SET_IDS = [  # the mode, the writer, the mode after a write
    (0o4777, STRANGER, 0o777), (0o6777, STRANGER, 0o777), (0o2777, STRANGER, 0o777),
    (0o4766, ME, 0o766), (0o6766, ME, 0o2766), (0o6777, ME, 0o777),
    (0o6777, 0, 0o6777), (0o1777, STRANGER, 0o1777),
]


def mode_after_write(p, who, mode, flags):
    """Of a file of ME, written without a truncation."""
    path = p.new(uid=ME, mode=mode)

    def write():
        with fd_of(path, flags) as fd:
            os.pwrite(fd, b'{"v":2}', 0)
    as_user(who, write)
    assert get(path) == b'{"v":2}'
    return os.stat(path).st_mode & 0o7777


for _flags in (WRITE, BOTH):
    for _mode, _who, _after in SET_IDS:
        @case("O6", f"a write by {_who} at mode {_mode:o}, flags {_flags}")
        def _(p, mode=_mode, who=_who, after=_after, flags=_flags):
            assert mode_after_write(p, who, mode, flags) == after

    @case("O6", f"a write by another user where the group may not execute, flags {_flags}")
    def _(p, flags=_flags):
        # The kernel does not take set-group-ID from files of FUSE there.
        assert mode_after_write(p, STRANGER, 0o2766, flags) == (
            0o766 if p.kind == "tmpfs" else 0o2766)


@cases("O4")
def test_O4_writers(place, case):
    case.run(place)


@cases("O6")
def test_O6_set_ids(place, case):
    case.run(place)
