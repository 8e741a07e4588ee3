# SPDX-License-Identifier: MIT
"""docs/posix.md (O): what POSIX says of names, in a plain directory, among ordinary files and
among rows.  Where a place differs its outcome stands beside the case, the reason in
docs/posix.md."""

import os
import shutil
import stat
import subprocess
import time

from posix_places import DOC, ME, as_user, case, cases, ends, fd_of, grounds, place
from tools import EXCHANGE, NOREPLACE, get, renameat2

__all__ = ["grounds", "place"]
WRITE, READ, BOTH = os.O_WRONLY, os.O_RDONLY, os.O_RDWR
NEW = os.O_CREAT | os.O_EXCL
LONGER = b'{"v":22222}'
FILES_ONLY = ("tmpfs", "files")


def shut(path, flags, mode=0o644):
    os.close(os.open(path, flags, mode))


# ---- O1: open

def opens(title, flags, on, want="ok", **elsewhere):
    """A case of one open(2).  on: what stands there: file, dir, nothing, below a file or dir."""
    def act(p):
        path = {"file": lambda: p.new(), "dir": lambda: p.newdir(),
                "nothing": lambda: p.f("a"), "no dir": lambda: p.f("a", p.d("no")),
                "below a file": lambda: p.new() / "b",
                "file/": lambda: f"{p.new()}/", "nothing/": lambda: f"{p.f('a')}/"}[on]()
        shut(path, flags)
    case("O1", title, want, **elsewhere)(act)


opens("open of nothing", READ, "nothing", "ENOENT")
opens("open in a missing directory", WRITE | os.O_CREAT, "no dir", "ENOENT")
opens("open below a file", WRITE | os.O_CREAT, "below a file", "ENOTDIR")
opens("O_EXCL on a file", WRITE | NEW, "file", "EEXIST")
opens("O_EXCL on a directory", WRITE | NEW, "dir", "EEXIST")
opens("O_CREAT on a file", WRITE | os.O_CREAT, "file")
opens("O_CREAT on a directory", READ | os.O_CREAT, "dir", "EISDIR")
opens("O_WRONLY on a directory", WRITE, "dir", "EISDIR")
opens("O_RDWR on a directory", BOTH, "dir", "EISDIR")
opens("O_RDONLY on a directory", READ, "dir")
opens("O_TRUNC on a directory", WRITE | os.O_TRUNC, "dir", "EISDIR")
opens("O_DIRECTORY on a file", READ | os.O_DIRECTORY, "file", "ENOTDIR")
opens("O_DIRECTORY on a directory", READ | os.O_DIRECTORY, "dir")
opens("a slash behind a file", READ, "file/", "ENOTDIR")
opens("a slash behind a new name", WRITE | os.O_CREAT, "nothing/", "EISDIR")
opens("O_PATH", os.O_PATH, "file")
opens("O_NOATIME", READ | os.O_NOATIME, "file")
opens("O_NONBLOCK and O_SYNC", WRITE | os.O_NONBLOCK | os.O_SYNC, "file")
opens("O_TMPFILE", BOTH | os.O_TMPFILE, "dir", files="EOPNOTSUPP", rows="EOPNOTSUPP")


@case("O1", "O_EXCL makes the file once, with its content")
def _(p):
    path = p.new(data=DOC)
    assert ends(shut, path, WRITE | NEW) == "EEXIST" and get(path) == DOC


@case("O1", "reading what is open for writing only", "EBADF")
def _(p):
    with fd_of(p.new(), WRITE) as fd:
        os.read(fd, 1)


@case("O1", "writing to what is open for reading only", "EBADF")
def _(p):
    with fd_of(p.new(), READ) as fd:
        os.write(fd, b"{")


@case("O1", "a new file of mode 0 can be written by who made it")
def _(p):
    def make():
        with fd_of(p.f("a"), WRITE | NEW, 0) as fd:
            assert os.write(fd, DOC) == len(DOC)
            assert stat.S_IMODE(os.fstat(fd).st_mode) == 0
    as_user(ME, make)
    assert get(p.f("a")) == DOC and os.stat(p.f("a")).st_uid == ME


@case("O1", "umask takes bits away")
def _(p):
    for mask, asked in ((0o077, 0o666), (0o022, 0o777), (0o501, 0o345)):
        old = os.umask(mask)
        try:
            shut(p.f(f"f{mask}"), WRITE | NEW, asked)
            os.mkdir(p.d(f"d{mask}"), asked)
        finally:
            os.umask(old)
        for path in (p.f(f"f{mask}"), p.d(f"d{mask}")):
            assert stat.S_IMODE(os.stat(path).st_mode) == asked & ~mask


@case("O1", "O_NOFOLLOW at a symbolic link from elsewhere", "ELOOP")
def _(p):
    link = p.outside / f"{p.number}.link"
    os.symlink(p.new(), link)
    assert get(link) == DOC
    shut(link, READ | os.O_NOFOLLOW)


@case("O1", "writing to a program that runs", "ETXTBSY", only=FILES_ONLY)
def _(p):
    program = p.new("prog", b"", 0o755)
    shutil.copyfile(shutil.which("sleep"), program)
    runs = subprocess.Popen([program, "100"])
    try:
        shut(program, WRITE)
    finally:
        runs.kill()
        runs.wait()


@case("O1", "running a program that is open for writing", "ETXTBSY", only=FILES_ONLY)
def _(p):
    program = p.new("prog", b"#!/bin/sh\n", 0o755)
    with fd_of(program, WRITE):
        subprocess.run([program], check=True)


@case("O1", "a program without x cannot be run", "EACCES")
def _(p):
    subprocess.run([p.new("prog", DOC, 0o644)], check=True)


@cases("O1")
def test_O1_open(place, case):
    case.run(place)


# ---- O2: rename

MOVES = {  # what moves: what stands there -> outcome
    "file": {"nothing": "ok", "file": "ok", "dir": "EISDIR", "full": "EISDIR"},
    "dir": {"nothing": "ok", "file": "ENOTDIR", "dir": "ok", "full": "ENOTEMPTY|EEXIST"},
    "full": {"nothing": "ok", "file": "ENOTDIR", "dir": "ok", "full": "ENOTEMPTY|EEXIST"},
    "nothing": {"nothing": "ENOENT", "file": "ENOENT", "dir": "ENOENT", "full": "ENOENT"},
}


def stand(p, name, what, other):
    """Makes `what` under the name; nothing: the name is of the kind of `other`."""
    if what == "file":
        return p.new(name, DOC if name == "from" else LONGER)
    if what == "nothing":
        return p.f(name) if other in ("file", "nothing") else p.d(name)
    path = p.newdir(name)
    if what == "full":
        p.new("in", where=path)
    return path


def shape(path):
    """What is seen of a file or directory, all but its ctime."""
    try:
        st = os.lstat(path)
    except FileNotFoundError:
        return None
    content = sorted(os.listdir(path)) if stat.S_ISDIR(st.st_mode) else get(path)
    return st.st_ino, st.st_mode, st.st_mtime_ns, content


def moves(what, onto, want):
    @case("O2", f"{what} onto {onto}", want)
    def _(p):
        source, target = stand(p, "from", what, onto), stand(p, "to", onto, what)
        before = shape(source), shape(target)
        try:
            os.rename(source, target)
        except OSError:
            assert (shape(source), shape(target)) == before
            raise
        assert (shape(source), shape(target)) == (None, before[0])


for _what, _row in MOVES.items():
    for _onto, _want in _row.items():
        moves(_what, _onto, _want)


@case("O2", "onto itself")
def _(p):
    for path in (p.new(), p.newdir()):
        before = shape(path)
        os.rename(path, path)
        assert shape(path) == before


@case("O2", "a directory into itself", "EINVAL")
def _(p):
    d = p.newdir()
    os.rename(d, d / "below")


@case("O2", "a directory into its own file", "ENOTDIR")
def _(p):
    d = p.newdir()
    os.rename(d, p.new("a", where=d) / "b")


@case("O2", "over the directory that it is in", "ENOTEMPTY|EISDIR")
def _(p):
    d = p.newdir()
    os.rename(p.new("a", where=d), d)


@case("O2", "RENAME_NOREPLACE onto a file", "EEXIST")
def _(p):
    renameat2(p.new("a"), p.new("b"), NOREPLACE)


@case("O2", "RENAME_NOREPLACE onto nothing")
def _(p):
    renameat2(p.new("a"), p.f("b"), NOREPLACE)
    assert get(p.f("b")) == DOC


@case("O2", "RENAME_EXCHANGE with nothing", "ENOENT")
def _(p):
    renameat2(p.new("a"), p.f("b"), EXCHANGE)


@case("O2", "RENAME_EXCHANGE of files")
def _(p):
    a, b = p.new("a", DOC), p.new("b", LONGER)
    was = shape(a), shape(b)
    renameat2(a, b, EXCHANGE)
    assert (shape(b), shape(a)) == was


@case("O2", "RENAME_EXCHANGE of directories")
def _(p):
    a, b = p.newdir("a"), p.newdir("b")
    p.new("in", where=a)
    was = shape(a), shape(b)
    renameat2(a, b, EXCHANGE)
    assert (shape(b)[::3], shape(a)[::3]) == (was[0][::3], was[1][::3])


@case("O2", "flags that contradict", "EINVAL")
def _(p):
    renameat2(p.new("a"), p.new("b"), NOREPLACE | EXCHANGE)


@case("O2", "a slash behind a file", "ENOTDIR")
def _(p):
    os.rename(p.new(), f"{p.f('b')}/")


@case("O2", "a slash behind a directory")
def _(p):
    os.rename(f"{p.newdir()}/", f"{p.d('e')}/")
    assert p.d("e").is_dir()


@case("O2", "dot", "EBUSY|EINVAL")
def _(p):
    os.rename(f"{p.newdir()}/.", p.d("e"))


@case("O2", "to another filesystem", "EXDEV")
def _(p):
    os.rename(p.new(), "/proc/version")


@case("O2", "ctime of what moves and times of both directories move")
def _(p):
    d, e = p.newdir("d"), p.newdir("e")
    path = p.new("a", where=d)
    old = [os.stat(x) for x in (path, d, e)]
    time.sleep(0.01)
    os.rename(path, p.f("b", e))
    new = [os.stat(x) for x in (p.f("b", e), d, e)]
    for o, n in zip(old, new):
        assert n.st_ctime_ns > o.st_ctime_ns
    assert new[0].st_mtime_ns == old[0].st_mtime_ns
    assert new[1].st_mtime_ns > old[1].st_mtime_ns and new[2].st_mtime_ns > old[2].st_mtime_ns


@case("O2", "who has the replaced file open reads on")
def _(p):
    a, b = p.new("a", LONGER), p.new("b", DOC)
    with fd_of(b) as fd:
        os.rename(a, b)
        assert os.read(fd, 100) == DOC and os.fstat(fd).st_nlink == 0 and get(b) == LONGER


@case("O2", "who has the moved file open goes on")
def _(p):
    with fd_of(p.new("a"), BOTH) as fd:
        os.rename(p.f("a"), p.f("b"))
        assert os.pread(fd, 100, 0) == DOC
        os.pwrite(fd, LONGER, 0)
    assert get(p.f("b")) == LONGER and not p.f("a").exists()


@case("O2", "who has a file of the moved directory open goes on")
def _(p):
    with fd_of(p.new("a", where=p.newdir("d")), BOTH) as fd:
        os.rename(p.d("d"), p.d("e"))
        os.pwrite(fd, LONGER, 0)
    assert get(p.f("a", p.d("e"))) == LONGER


@case("O2", "who has a row open that was changed and moved", "ESTALE", only=("rows",))
def _(p):
    with fd_of(p.new("a"), BOTH) as fd:
        with fd_of(p.f("a"), WRITE | os.O_TRUNC) as other:
            os.write(other, LONGER)
        os.rename(p.f("a"), p.f("b"))
        os.pwrite(fd, DOC, 0)


@cases("O2")
def test_O2_rename(place, case):
    case.run(place)


# ---- O3: mkdir, rmdir, unlink

REMOVALS = [  # call, what stands there, outcome
    (os.unlink, "nothing", "ENOENT"), (os.unlink, "dir", "EISDIR"),
    (os.unlink, "file/", "ENOTDIR"), (os.unlink, "below a file", "ENOTDIR"),
    (os.rmdir, "nothing", "ENOENT"), (os.rmdir, "file", "ENOTDIR"),
    (os.rmdir, "full", "ENOTEMPTY|EEXIST"), (os.rmdir, "dir/.", "EINVAL"),
    (os.rmdir, "dir/..", "ENOTEMPTY|EEXIST"), (os.rmdir, "dir/", "ok"),
    (os.rmdir, "below a file", "ENOTDIR"),
    (os.mkdir, "file", "EEXIST"), (os.mkdir, "dir", "EEXIST"), (os.mkdir, "dir/", "EEXIST"),
    (os.mkdir, "dir/.", "EEXIST"), (os.mkdir, "no dir", "ENOENT"),
    (os.mkdir, "below a file", "ENOTDIR"), (os.mkdir, "nothing", "ok"),
]


def calls(call, on, want):
    @case("O3", f"{call.__name__} {on}", want)
    def _(p):
        path = {"nothing": lambda: p.d("d"), "file": p.new, "dir": p.newdir,
                "full": lambda: stand(p, "d", "full", None), "file/": lambda: f"{p.new()}/",
                "dir/": lambda: f"{p.newdir()}/", "dir/.": lambda: f"{p.newdir()}/.",
                "dir/..": lambda: f"{p.newdir()}/..", "no dir": lambda: p.d("no") / ".d",
                "below a file": lambda: p.new() / "b"}[on]()
        call(path)


for _call, _on, _want in REMOVALS:
    calls(_call, _on, _want)


@case("O3", "a name in the directory moves its times, and only them")
def _(p):
    d = p.newdir()
    outer = os.stat(p.outer).st_mtime_ns
    steps = [lambda: p.new("a", where=d), lambda: os.rename(p.f("a", d), p.f("b", d)),
             lambda: os.unlink(p.f("b", d)), lambda: os.mkdir(d / ".e"),
             lambda: os.rmdir(d / ".e")]
    for step in steps:
        was = os.stat(d)
        time.sleep(0.01)
        step()
        now = os.stat(d)
        assert now.st_mtime_ns > was.st_mtime_ns and now.st_ctime_ns > was.st_ctime_ns
    assert os.stat(p.outer).st_mtime_ns == outer


@case("O3", "what is removed while it is open reads on, with no link")
def _(p):
    path = p.new()
    with fd_of(path) as fd:
        os.unlink(path)
        assert os.read(fd, 100) == DOC and os.fstat(fd).st_nlink == 0


@case("O3", "what is removed while it is open can be written on", only=FILES_ONLY)
def _(p):
    path = p.new()
    with fd_of(path, BOTH) as fd:
        os.unlink(path)
        assert os.pwrite(fd, LONGER, 0) == len(LONGER)
        assert os.pread(fd, 100, 0) == LONGER and not path.exists()


@case("O3", "a row that is removed while it is written", "ESTALE", only=("rows",))
def _(p):
    path = p.new()
    with fd_of(path, BOTH) as fd:
        os.unlink(path)
        os.pwrite(fd, LONGER, 0)


@case("O3", "nothing can be made in a directory that was removed", "ENOENT")
def _(p):
    d = p.newdir()
    with fd_of(d) as fd:
        os.rmdir(d)
        os.open(f"a{p.suffix}", WRITE | os.O_CREAT, 0o644, dir_fd=fd)


@case("O3", "a directory that was moved is the same one")
def _(p):
    d = p.newdir()
    with fd_of(d) as fd:
        os.rename(d, p.d("e"))
        os.close(os.open(f"a{p.suffix}", WRITE | os.O_CREAT, 0o644, dir_fd=fd))
        assert os.listdir(fd) == os.listdir(p.d("e")) == [f"a{p.suffix}"]
        assert os.fstat(fd).st_ino == os.stat(p.d("e")).st_ino


@case("O3", "a name made anew is another file")
def _(p):
    path = p.new()
    first = os.stat(path).st_ino
    with fd_of(path):
        os.unlink(path)
        assert os.stat(p.new()).st_ino != first


@cases("O3")
def test_O3_make_and_remove(place, case):
    case.run(place)
