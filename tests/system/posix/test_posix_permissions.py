# SPDX-License-Identifier: MIT
"""docs/posix.md (O): what POSIX says of permissions and long names, and what rowfs refuses or
does otherwise; as test_posix.py."""

import os
import socket
import stat

from posix_places import (
    DOC, FRIEND, ME, STRANGER, as_user, case, cases, ends, fd_of, grounds, place)
from tools import get

__all__ = ["grounds", "place"]
WRITE, READ, BOTH = os.O_WRONLY, os.O_RDONLY, os.O_RDWR
NEW = os.O_CREAT | os.O_EXCL
FILES_ONLY = ("tmpfs", "files")


def bits(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def ids(path):
    st = os.stat(path)
    return st.st_uid, st.st_gid


# ---- O6: permissions

def opened(path, flags):
    os.close(os.open(path, flags))


ACCESS = [  # flags, mode, who may: owner, group, others
    (READ, 0o400, "o"), (READ, 0o040, "g"), (READ, 0o004, "s"), (READ, 0o444, "ogs"),
    (WRITE, 0o200, "o"), (WRITE, 0o020, "g"), (WRITE, 0o002, "s"), (BOTH, 0o600, "o"),
    (BOTH, 0o400, ""), (BOTH, 0o200, ""), (READ, 0o077, "gs"), (WRITE | os.O_TRUNC, 0o444, ""),
]
for _flags, _mode, _may in ACCESS:
    @case("O6", f"open {_flags:o} at mode {_mode:o}")
    def _(p, flags=_flags, mode=_mode, may=_may):
        path = p.new(uid=ME, mode=mode)
        for letter, who, groups in (("o", ME, ()), ("g", FRIEND, (ME,)), ("s", STRANGER, ())):
            got = ends(lambda: as_user(who, opened, path, flags, groups=groups))
            assert got == ("ok" if letter in may else "EACCES"), letter
        opened(path, flags)


@case("O6", "what a directory's mode allows")
def _(p):
    d = p.newdir(uid=ME)
    p.new("a", where=d)
    for mode, can_list, can_enter, can_make in ((0o755, 1, 1, 0), (0o757, 1, 1, 1),
                                                (0o754, 1, 0, 0), (0o751, 0, 1, 0),
                                                (0o756, 1, 0, 0), (0o753, 0, 1, 1)):
        d.chmod(mode)
        got = [ends(as_user, STRANGER, act) for act in (
            lambda: os.listdir(d), lambda: os.stat(p.f("a", d)) and None,
            lambda: (opened_new(p.f("b", d)), os.unlink(p.f("b", d))) and None)]
        assert got == [
            "ok" if may else "EACCES" for may in (can_list, can_enter, can_make)], oct(mode)


def opened_new(path):
    with fd_of(path, WRITE | NEW) as fd:
        os.write(fd, DOC)


NEED_DIRECTORY = {
    "create": lambda p, d: opened_new(p.f("new", d)),
    "unlink": lambda p, d: os.unlink(p.f("a", d)),
    "rename away": lambda p, d: os.rename(p.f("a", d), p.f("new", p.dir)),
    "rename within": lambda p, d: os.rename(p.f("a", d), p.f("new", d)),
    "rename into": lambda p, d: os.rename(p.f("mine", p.dir), p.f("a", d)),
    "mkdir": lambda p, d: os.mkdir(d / ".sub"),
}
for _name, _call in NEED_DIRECTORY.items():
    for _mode, _want in ((0o777, "ok"), (0o755, "EACCES"), (0o776, "EACCES")):
        @case("O6", f"{_name} at a directory of mode {_mode:o}", _want)
        def _(p, mode=_mode, call=_call):
            d = p.newdir()
            p.new("a", where=d, uid=ME)
            p.new("mine", uid=ME)
            d.chmod(mode)
            as_user(ME, call, p, d)


@case("O6", "in a sticky directory owners alone remove and rename")
def _(p):
    d = p.newdir(mode=0o1777, uid=FRIEND)
    for name in "abcdef":
        p.new(name, where=d, uid=ME, mode=0o666)
    p.new("theirs", where=d, uid=STRANGER)
    a = p.f("a", d)
    assert ends(as_user, STRANGER, os.unlink, a) == "EPERM"
    assert ends(as_user, STRANGER, os.rename, a, p.f("z", d)) == "EPERM"
    assert ends(as_user, STRANGER, os.rename, p.f("theirs", d), a) == "EPERM"
    assert ends(as_user, STRANGER, os.rename, a, p.f("z", p.dir)) == "EPERM"
    assert ends(as_user, ME, os.unlink, a) == "ok"
    assert ends(as_user, FRIEND, os.unlink, p.f("b", d)) == "ok"
    assert ends(os.unlink, p.f("c", d)) == "ok"
    assert ends(as_user, ME, os.rename, p.f("d", d), p.f("e", d)) == "ok"


CHMOD = [  # who, asked, outcome, bits afterwards (files; of group ME)
    (ME, 0o4755, "ok", 0o4755), (ME, 0o2755, "ok", 0o2755), (ME, 0o000, "ok", 0o000),
    (STRANGER, 0o777, "EPERM", 0o644), (FRIEND, 0o777, "EPERM", 0o644), (0, 0o6777, "ok", 0o6777),
]
for _who, _asked, _want, _after in CHMOD:
    @case("O6", f"chmod {_asked:o} by {_who}")
    def _(p, who=_who, asked=_asked, want=_want, after=_after):
        path = p.new(uid=ME)
        assert ends(lambda: as_user(who, os.chmod, path, asked, groups=(ME,))) == want
        assert bits(path) == after


@case("O6", "chmod by an owner outside the group drops set-group-ID")
def _(p):
    path = p.new(uid=ME)
    os.chown(path, ME, STRANGER)
    as_user(ME, os.chmod, path, 0o2755)
    assert bits(path) == 0o755


CHOWN = [  # who, uid, gid, outcome; of a file of ME:ME
    (ME, -1, FRIEND, "ok"), (ME, ME, FRIEND, "ok"), (ME, -1, STRANGER, "EPERM"),
    (ME, FRIEND, -1, "EPERM"), (ME, -1, -1, "ok"), (STRANGER, STRANGER, -1, "EPERM"),
    (STRANGER, -1, STRANGER, "EPERM"), (0, STRANGER, FRIEND, "ok"),
]
for _who, _uid, _gid, _want in CHOWN:
    @case("O6", f"chown {_uid} {_gid} by {_who}")
    def _(p, who=_who, uid=_uid, gid=_gid, want=_want):
        path = p.new(uid=ME, mode=0o6755)
        assert ends(lambda: as_user(who, os.chown, path, uid, gid, groups=(FRIEND,))) == want
        assert ids(path) == ((ME, ME) if want != "ok" else (
            ME if uid == -1 else uid, ME if gid == -1 else gid))


@case("O6", "chown takes set-user-ID and set-group-ID from files, not from directories")
def _(p):
    path, d = p.new(uid=ME, mode=0o6755), p.newdir(uid=ME, mode=0o6755)
    as_user(ME, os.chown, path, -1, FRIEND, groups=(FRIEND,))
    as_user(ME, os.chown, d, -1, FRIEND, groups=(FRIEND,))
    assert bits(path) == 0o755 and bits(d) == 0o6755


@case("O6", "a write by another user takes set-user-ID away")
def _(p):
    path = p.new(uid=ME, mode=0o4777)

    def write():
        with fd_of(path, WRITE | os.O_TRUNC) as fd:
            os.write(fd, b'{"v":2}')
    as_user(STRANGER, write)
    assert bits(path) == 0o777 and get(path) == b'{"v":2}'


@case("O6", "what is made has its maker's user and group")
def _(p):
    as_user(ME, lambda: (opened_new(p.f("b")), os.mkdir(p.d("e"))) and None)
    assert ids(p.f("b")) == ids(p.d("e")) == (ME, ME)


@case("O6", "in a set-group-ID directory the group is the directory's")
def _(p):
    d = p.newdir(mode=0o2777, gid=FRIEND)
    as_user(ME, lambda: (opened_new(p.f("b", d)), os.mkdir(d / ".e")) and None)
    assert ids(p.f("b", d)) == ids(d / ".e") == (ME, FRIEND)
    assert bits(p.f("b", d)) == 0o644 and bits(d / ".e") == 0o2755


@case("O6", "mode and owner stay with a file that is written or moved")
def _(p):
    path = p.new(uid=ME, mode=0o640)
    with fd_of(path, WRITE | os.O_TRUNC) as fd:
        os.write(fd, DOC)
    os.rename(path, p.f("b"))
    assert ids(p.f("b")) == (ME, ME) and bits(p.f("b")) == 0o640


@case("O6", "an open handle goes on after the mode forbids it")
def _(p):
    path = p.new(uid=ME, mode=0o600)

    def use():
        with fd_of(path, BOTH) as fd:
            os.chmod(path, 0)
            os.pwrite(fd, b'{"v":9}', 0)
            return os.pread(fd, 100, 0)
    assert as_user(ME, use) == b'{"v":9}' == get(path)


@cases("O6")
def test_O6_permissions(place, case):
    case.run(place)


# ---- O7: long names and loops

LONGEST = {"tmpfs": (255, 255), "files": (255, 255), "rows": (240, 240)}  # file, directory


def named(p, n, directory=False):
    suffix = "" if directory else p.suffix
    return (p.outer if directory else p.dir) / ("x" * (n - len(suffix)) + suffix)


for _directory in (False, True):
    @case("O7", f"the longest name of a {'directory' if _directory else 'file'}")
    def _(p, directory=_directory):
        path = named(p, LONGEST[p.kind][directory], directory)
        (os.mkdir if directory else opened_new)(path)
        assert path.name in os.listdir(path.parent)
        other = path.with_name("y" + path.name[1:])
        os.rename(path, other)
        os.chmod(other, 0o700)
        assert bits(other) == 0o700
        (os.rmdir if directory else os.unlink)(other)

    @case("O7", f"a longer name of a {'directory' if _directory else 'file'}", "ENAMETOOLONG")
    def _(p, directory=_directory):
        (os.mkdir if directory else opened_new)(named(p, LONGEST[p.kind][directory] + 1, directory))


LOOKS = {"stat": os.stat, "chmod": lambda x: os.chmod(x, 0o600), "unlink": os.unlink,
         "rmdir": os.rmdir, "utime": lambda x: os.utime(x), "open": lambda x: opened(x, READ),
         "truncate": lambda x: os.truncate(x, 0), "mkdir": os.mkdir,
         "chown": lambda x: os.chown(x, 0, 0)}
for _name, _call in LOOKS.items():
    @case("O7", f"{_name} of a name of 256 bytes", "ENAMETOOLONG")
    def _(p, call=_call):
        call(named(p, 256))


@case("O7", "rename to a name of 256 bytes", "ENAMETOOLONG")
def _(p):
    os.rename(p.new(), named(p, 256))


@case("O7", "a path of 4095 bytes")
def _(p):
    path = str(p.new())
    os.stat(os.path.dirname(path) + "/" * (4096 - len(path)) + os.path.basename(path))


@case("O7", "a path of 4096 bytes", "ENAMETOOLONG")
def _(p):
    path = str(p.new())
    os.stat(os.path.dirname(path) + "/" * (4097 - len(path)) + os.path.basename(path))


@case("O7", "symbolic links from elsewhere that go in a circle", "ELOOP")
def _(p):
    a, b = p.outside / f"{p.number}.a", p.outside / f"{p.number}.b"
    os.symlink(b, a)
    os.symlink(a, b)
    os.rename(p.new(), a / "x")


@cases("O7")
def test_O7_names(place, case):
    case.run(place)


# ---- O8: what rowfs refuses or does otherwise

def bind(path):
    with socket.socket(socket.AF_UNIX) as s:
        with fd_of(path.parent, os.O_PATH) as fd:
            s.bind(f"/proc/self/fd/{fd}/{path.name}")


MAKES = {"symlink": lambda p: os.symlink("x", p.f("l")), "socket": lambda p: bind(p.f("l")),
         "link": lambda p: os.link(p.new(), p.f("l")), "fifo": lambda p: os.mkfifo(p.f("l")),
         "device": lambda p: os.mknod(p.f("l"), stat.S_IFCHR | 0o600, os.makedev(1, 3))}
for _name, _call in MAKES.items():
    case("O8", _name, files="EPERM", rows="EPERM")(_call)


@case("O8", "a directory that is no key and has no leading dot", rows="EPERM")
def _(p):
    (p.dir / "plain").mkdir()


@case("O8", "a directory has no links but its name")
def _(p):
    d = p.newdir()
    (d / ".sub").mkdir()
    assert os.stat(d).st_nlink == (3 if p.kind == "tmpfs" else 1)


@case("O8", "the access time is the mtime")
def _(p):
    path = p.new()
    os.utime(path, ns=(5, 7))
    assert os.stat(path).st_atime_ns == (5 if p.kind == "tmpfs" else 7)


@case("O8", "a file of a size over a gibibyte", files="EFBIG", only=FILES_ONLY)
def _(p):
    os.truncate(p.new(), (1 << 30) + 1)


@case("O8", "attributes and names of a directory that is open and was removed",
      files="ESTALE", rows="ESTALE")
def _(p):
    d = p.newdir()
    with fd_of(d) as fd:
        os.rmdir(d)
        assert os.listdir(fd) == [] and os.fstat(fd).st_nlink == 0


@cases("O8")
def test_O8_refused(place, case):
    case.run(place)
