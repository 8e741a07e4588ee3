# SPDX-License-Identifier: MIT
"""Where the assertions of test_posix.py are made, and how.

A case is a function of a place; what it ends with, "ok" or an errno, is the same for every
place unless the case says otherwise for one of them:

    tmpfs   a plain directory: the control, it shows that the assertion is right
    files   ordinary files in a dot-directory of a partition
    rows    rows; the directories are partitions of a table
"""

import contextlib
import errno
import itertools
import os
import pathlib
import pickle
import shutil
import tempfile

import pytest

from conftest import Mount, need_fuse

DOC = b'{"v":1}'
ME, FRIEND, STRANGER = 61001, 61002, 61003  # users; each is in the group of the same number
NUMBERS = itertools.count(1)


class Place:
    """A fresh directory, open to everybody, with what is needed to name things in it."""

    def __init__(self, kind, top, outside):
        self.kind, self.outside = kind, outside
        self.number = next(NUMBERS)
        self.outer = top / f"Tab{self.number}"  # where directories are made
        self.outer.mkdir()
        self.dir = self.outer / "p" if kind == "rows" else self.outer
        if kind == "files":
            self.outer = self.dir = self.outer / "p/.files"
        self.dir.mkdir(parents=True, exist_ok=True)
        for d in {self.dir, self.outer}:
            d.chmod(0o777)

    @property
    def suffix(self):
        return ".json" if self.kind == "rows" else ""

    def f(self, name, where=None):
        return (where or self.dir) / (name + self.suffix)

    def d(self, name):
        return self.outer / name

    def new(self, name="a", data=DOC, mode=0o644, uid=0, where=None):
        path = self.f(name, where)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, data)
        os.close(fd)
        os.chown(path, uid, uid)
        os.chmod(path, mode)
        return path

    def newdir(self, name="d", mode=0o755, uid=0, gid=None):
        path = self.d(name)
        path.mkdir()
        os.chown(path, uid, uid if gid is None else gid)
        path.chmod(mode)
        return path


def name_of(e):
    return "EOPNOTSUPP" if e.errno == errno.EOPNOTSUPP else errno.errorcode[e.errno]


class Case:
    def __init__(self, group, title, act, want, elsewhere, only):
        self.group, self.title, self.act, self.want = group, title, act, want
        self.elsewhere, self.only = elsewhere, only

    def run(self, place):
        want = self.elsewhere.get(place.kind, self.want)
        got = "ok"
        try:
            self.act(place)
        except OSError as e:
            got = name_of(e)
        assert got in want.split("|"), f"{self.title}: {want} expected, got {got}"


CASES = []


def case(group, title, want="ok", only=("tmpfs", "files", "rows"), **elsewhere):
    """Makes a case of the function; its OSError is the outcome."""
    def add(act):
        CASES.append(Case(group, title, act, want, elsewhere, only))
        return act
    return add


def cases(group):
    """Parametrizes a test with the cases of a group, each in its places."""
    pairs = [(kind, c) for c in CASES if c.group == group for kind in c.only]
    return pytest.mark.parametrize(
        ("place", "case"), pairs, indirect=["place"],
        ids=[f"{c.title}-{kind}".replace(" ", "_") for kind, c in pairs])


@contextlib.contextmanager
def fd_of(path, flags=os.O_RDONLY, mode=0o644):
    fd = os.open(path, flags, mode)
    try:
        yield fd
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise
    os.close(fd)


def outcome_as(uid, groups, act, args):
    try:
        os.setgroups(groups)
        os.setegid(uid)
        os.seteuid(uid)
        return True, act(*args)
    except BaseException as e:
        return False, e


def as_user(uid, act, *args, groups=()):
    """act(*args) with the effective user and group `uid`, in a child; its value or OSError."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(r)
            os.write(w, pickle.dumps(outcome_as(uid, groups, act, args)))
        finally:
            os._exit(0)
    os.close(w)
    with open(r, "rb") as f:
        answer = f.read()
    os.waitpid(pid, 0)
    fine, value = pickle.loads(answer)
    if not fine:
        raise value
    return value


def ends(act, *args):
    """How a call ends: "ok" or an errno."""
    try:
        act(*args)
    except OSError as e:
        return name_of(e)
    return "ok"


@pytest.fixture(scope="module")
def grounds(rowfs):
    """One mount that other users may enter, and a directory on tmpfs, for all cases."""
    need_fuse()
    work = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-"))
    plain = pathlib.Path(tempfile.mkdtemp(
        prefix="rowfs-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    work.chmod(0o755)
    plain.chmod(0o755)
    rowfs("init", work / "store.rowfs")
    at = work / "mnt"
    at.mkdir()
    options = ["allow_other"] if os.geteuid() == 0 else []
    m = Mount(rowfs, work / "store.rowfs", at, options, work / "daemon.log").start()
    umask = os.umask(0o022)
    try:
        for account in ("files", "rows"):
            (m / account).mkdir()
        yield {"tmpfs": plain, "files": m / "files", "rows": m / "rows"}, work
    finally:
        os.umask(umask)
        os.chdir("/")
        shutil.rmtree(plain, ignore_errors=True)
        try:
            m.umount()
        finally:
            m.force()
    rowfs("check", work / "store.rowfs")
    shutil.rmtree(work, ignore_errors=True)


@pytest.fixture
def place(request, grounds):
    """A place of one kind."""
    tops, work = grounds
    return Place(request.param, tops[request.param], work)
