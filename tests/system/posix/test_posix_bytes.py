# SPDX-License-Identifier: MIT
"""docs/posix.md (O): what POSIX says of bytes and times; as test_posix.py."""

import mmap
import os
import time

from posix_places import DOC, ME, STRANGER, as_user, case, cases, ends, fd_of, grounds, place
from tools import get

__all__ = ["grounds", "place"]
WRITE, READ, BOTH = os.O_WRONLY, os.O_RDONLY, os.O_RDWR
FILES_ONLY = ("tmpfs", "files")


# ---- O4: bytes

def truncates(title, size, want="ok", **elsewhere):
    @case("O4", f"truncate {title}", want, **elsewhere)
    def _(p):
        path = p.new(data=b'{"v":1}   ')
        os.truncate(path, size)
        assert get(path) == b'{"v":1}   '.ljust(size, b"\0")[:size]


truncates("to nothing", 0, rows="EINVAL")
truncates("to less", 4, rows="EINVAL")
truncates("to more", 5000, rows="EINVAL")
truncates("to the same", 10)
truncates("to a negative size", -1, "EINVAL")


@case("O4", "truncate of nothing", "ENOENT")
def _(p):
    os.truncate(p.f("a"), 0)


@case("O4", "truncate of a directory", "EISDIR")
def _(p):
    os.truncate(p.newdir(), 0)


@case("O4", "truncate below a file", "ENOTDIR")
def _(p):
    os.truncate(p.new() / "b", 0)


@case("O4", "ftruncate of what is open for reading only", "EINVAL|EBADF")
def _(p):
    with fd_of(p.new(), READ) as fd:
        os.ftruncate(fd, 0)


@case("O4", "ftruncate and what is written after it")
def _(p):
    path = p.new(data=b'{"long":"' + b"x" * 9000 + b'"}')
    with fd_of(path, BOTH) as fd:
        os.ftruncate(fd, 0)
        assert os.fstat(fd).st_size == 0 and os.read(fd, 10) == b""
        os.pwrite(fd, b'{"v":2}', 0)
        os.ftruncate(fd, 9)
        os.pwrite(fd, b" \n", 7)
    assert get(path) == b'{"v":2} \n'


@case("O4", "what is cut off comes back as zeros", only=FILES_ONLY)
def _(p):
    path = p.new(data=b"x" * 9000)
    os.truncate(path, 5)
    os.truncate(path, 9000)
    assert get(path) == b"x" * 5 + bytes(8995)


@case("O4", "a write far behind the end leaves zeros", only=FILES_ONLY)
def _(p):
    path = p.new(data=b"ab")
    with fd_of(path, BOTH) as fd:
        assert os.pwrite(fd, b"z", 200000) == 1
        assert os.pread(fd, 200002, 0) == b"ab" + bytes(199998) + b"z"
    assert os.stat(path).st_size == 200001


@case("O4", "a write over the largest size", "EFBIG", tmpfs="ok")
def _(p):
    with fd_of(p.new(), WRITE) as fd:
        os.pwrite(fd, b"}", 5 << 30)


@case("O4", "posix_fallocate makes the file longer", only=FILES_ONLY)
def _(p):
    path = p.new(data=b"ab")
    with fd_of(path, BOTH) as fd:
        os.posix_fallocate(fd, 0, 5000)
    assert get(path) == b"ab" + bytes(4998)


@case("O4", "SEEK_DATA and SEEK_HOLE")
def _(p):
    with fd_of(p.new()) as fd:
        assert os.lseek(fd, 2, os.SEEK_DATA) == 2
        assert os.lseek(fd, 0, os.SEEK_HOLE) == len(DOC)
        assert ends(os.lseek, fd, len(DOC), os.SEEK_DATA) == "ENXIO"


@case("O4", "vectors, and what statvfs tells")
def _(p):
    with fd_of(p.new(), BOTH) as fd:
        assert os.pwritev(fd, [b'{"v"', b":2}"], 0) == 7
        parts = [bytearray(3), bytearray(9)]
        assert os.preadv(fd, parts, 0) == 7 and bytes(parts[0] + parts[1][:4]) == b'{"v":2}'
    v = os.statvfs(p.dir)
    assert v.f_namemax == 255 and v.f_blocks >= v.f_bfree >= v.f_bavail > 0 and v.f_favail > 0


@case("O4", "O_APPEND writes at the end wherever the offset is", only=FILES_ONLY)
def _(p):
    path = p.new(data=b"ab")
    with fd_of(path, WRITE | os.O_APPEND) as one, fd_of(path, WRITE | os.O_APPEND) as two:
        for fd, data in ((one, b"c"), (two, b"d"), (one, b"e")):
            os.lseek(fd, 0, os.SEEK_SET)
            os.write(fd, data)
    assert get(path) == b"abcde"


@case("O4", "O_APPEND to a row makes no second document", "EINVAL", only=("rows",))
def _(p):
    with fd_of(p.new(), WRITE | os.O_APPEND) as fd:
        os.write(fd, DOC)


@case("O4", "duplicates share the offset, two opens do not")
def _(p):
    path = p.new()
    with fd_of(path) as fd, fd_of(path) as other:
        again = os.dup(fd)
        assert os.read(fd, 2) == DOC[:2] and os.read(again, 2) == DOC[2:4]
        assert os.read(other, 2) == DOC[:2]
        os.close(again)
        assert os.read(fd, 2) == DOC[4:6]


@case("O4", "reading at and behind the end gives nothing")
def _(p):
    with fd_of(p.new()) as fd:
        assert os.pread(fd, 10, len(DOC)) == os.pread(fd, 10, 10**9) == b""
        assert os.lseek(fd, 0, os.SEEK_END) == len(DOC)


@case("O4", "an offset below zero", "EINVAL")
def _(p):
    with fd_of(p.new()) as fd:
        os.lseek(fd, -1, os.SEEK_SET)


@case("O4", "reading a directory", "EISDIR")
def _(p):
    with fd_of(p.newdir()) as fd:
        os.read(fd, 10)


@case("O4", "fsync and fdatasync of what is open for reading, and of directories")
def _(p):
    for path in (p.new(), p.newdir()):
        with fd_of(path) as fd:
            os.fsync(fd)
            os.fdatasync(fd)


@case("O4", "what fsync let through is read by others before the close")
def _(p):
    path = p.new()
    with fd_of(path, BOTH) as fd:
        os.pwrite(fd, b'{"v":3}', 0)
        os.fsync(fd)
        assert get(path) == b'{"v":3}'


@case("O4", "what is written is read by others at once", only=FILES_ONLY)
def _(p):
    path = p.new()
    with fd_of(path, WRITE) as fd:
        os.write(fd, b"{{{")
        assert get(path)[:3] == b"{{{"


@case("O4", "a private mapping does not change the file")
def _(p):
    with fd_of(p.new(), BOTH) as fd:
        with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE) as m:
            assert m[:] == DOC
            m[0:1] = b"x"
    assert get(p.f("a")) == DOC


@case("O4", "a shared mapping changes the file")
def _(p):
    with fd_of(p.new(), BOTH) as fd:
        with mmap.mmap(fd, 0) as m:
            m[1:4] = b'"w"'
            m.flush()
    assert get(p.f("a")) == b'{"w":1}'


@case("O4", "listings tell the type and go on from where they were")
def _(p):
    for i in range(300):
        p.new(f"n{i:03}", where=p.dir)
    p.newdir()
    with os.scandir(p.outer) as entries:
        assert {e.name for e in entries if e.is_dir(follow_symlinks=False)} >= {"d"}
    names = os.listdir(p.dir)
    assert len([n for n in names if n.startswith("n")]) == len(
        {n for n in names if n.startswith("n")}) == 300


@cases("O4")
def test_O4_bytes(place, case):
    case.run(place)


# ---- O5: times

def settimes(path, atime, mtime, **how):
    os.utime(path, ns=(atime, mtime), **how)


@case("O5", "every nanosecond of mtime is kept")
def _(p):
    for path in (p.new(), p.newdir()):
        for ns in (0, 1, 999999999, 1234567890123456789, 2**31 * 10**9, 2**32 * 10**9 + 5):
            settimes(path, ns, ns)
            assert os.stat(path).st_mtime_ns == ns


@case("O5", "times before 1970")
def _(p):
    path = p.new()
    settimes(path, -5 * 10**9, -1_500_000_000)
    assert os.stat(path).st_mtime_ns == -1_500_000_000


@case("O5", "UTIME_NOW and UTIME_OMIT")
def _(p):
    path = p.new()
    settimes(path, 10**18, 10**18)
    os.system(f"touch -a '{path}'")
    assert os.stat(path).st_mtime_ns == 10**18
    os.system(f"touch -m '{path}'")
    assert abs(os.stat(path).st_mtime_ns - time.time_ns()) < 10**11


@case("O5", "setting times moves ctime, of the access time alone too")
def _(p):
    for path in (p.new(), p.newdir()):
        for what in ("-m", "-a"):
            was = os.stat(path).st_ctime_ns
            time.sleep(0.01)
            os.system(f"touch {what} -d @5 '{path}'")
            assert os.stat(path).st_ctime_ns > was


@case("O5", "times of an open file, of one that is read only")
def _(p):
    path = p.new(mode=0o444)
    with fd_of(path) as fd:
        settimes(fd, 5, 7)
    assert os.stat(path).st_mtime_ns == 7


@case("O5", "mtime and ctime move with a write and a commit")
def _(p):
    path = p.new()
    settimes(path, 5, 5)
    was = os.stat(path)
    time.sleep(0.01)
    with fd_of(path, BOTH) as fd:
        os.pwrite(fd, b'{"v":2}', 0)
    now = os.stat(path)
    assert now.st_mtime_ns > was.st_mtime_ns and now.st_ctime_ns > was.st_ctime_ns


@case("O5", "an open for writing that writes nothing moves no time")
def _(p):
    path = p.new()
    was = os.stat(path)
    time.sleep(0.01)
    with fd_of(path, BOTH):
        pass
    assert os.stat(path).st_mtime_ns == was.st_mtime_ns
    assert os.stat(path).st_ctime_ns == was.st_ctime_ns


@case("O5", "times set on a handle hold over its close")
def _(p):
    path = p.new()
    with fd_of(path, WRITE | os.O_TRUNC) as fd:
        os.write(fd, b'{"v":2}')
        settimes(fd, 5, 6 * 10**9)
    assert os.stat(path).st_mtime_ns == 6 * 10**9


@case("O5", "a failed call moves no time")
def _(p):
    path = p.new(uid=ME)
    was = os.stat(path)
    time.sleep(0.01)
    for call, *args in ((os.chmod, path, 0o777), (os.chown, path, STRANGER, STRANGER),
                        (settimes, path, 5, 5), (os.truncate, path, 1)):
        assert ends(as_user, STRANGER, call, *args) in ("EPERM", "EACCES")
    assert os.stat(path).st_ctime_ns == was.st_ctime_ns


TIMES = [  # who, mode, explicit times or now -> outcome
    (ME, 0o400, (5, 5), "ok"), (ME, 0o400, None, "ok"),
    (STRANGER, 0o666, None, "ok"), (STRANGER, 0o666, (5, 5), "EPERM"),
    (STRANGER, 0o644, None, "EACCES"), (STRANGER, 0o644, (5, 5), "EPERM"),
    (0, 0o000, (5, 5), "ok"),
]
for _who, _mode, _ns, _want in TIMES:
    @case("O5", f"user {_who} sets {_ns or 'now'} at mode {_mode:o}", _want)
    def _(p, who=_who, mode=_mode, ns=_ns):
        path = p.new(uid=ME, mode=mode)
        as_user(who, lambda: os.utime(path, ns=ns) if ns else os.utime(path))


@cases("O5")
def test_O5_times(place, case):
    case.run(place)
