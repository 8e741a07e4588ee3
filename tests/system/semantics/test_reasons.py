# SPDX-License-Identifier: MIT
"""Every refusal of every call has a line in .rowfs/errors and a reason in user.rowfs.error, in words
that say what to do.  REFUSALS provokes them one by one; with ANSWERS and the tables of docs/errors.md
it has to name every error of the list, so that a new error without a reason fails here."""

import errno
import fcntl
import json
import os
import re
import shutil

import pytest

import conftest
from conftest import TOP
from tools import EXCHANGE, errors, put, raises, reason, renameat2

ACCOUNT, TABLE = "acct1", "acct1/Tab"
PART = "acct1/Tab/p"


def tables():
    """The tables of docs/errors.md: {heading: {symbol: (errno, code)}}, or the symbols alone."""
    found, heading = {}, ""
    for line in (TOP / "docs/errors.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("## "):
            heading = line[3:]
        elif heading == "The list" and re.match(r"\| E\w+ \|", line):
            found.setdefault(heading, {})[cells[1]] = (cells[0], cells[3])
        elif re.match(r"\| [A-Z0-9_, ]+ \|", line):
            found.setdefault(heading, {}).update((s, None) for s in cells[0].split(", "))
    return found


LIST = tables()["The list"]


class At:
    """The mount of one test, with a partition and a row."""

    def __init__(self, mnt):
        self.mnt = mnt
        self.part = mnt / PART
        self.row = self.part / "r.json"
        self.kept = None

    def begin(self):
        if self.kept is not None:
            os.pwrite(self.kept, b'{"a":1}', 0)
            os.close(self.kept)
            self.kept = None
        for name in os.listdir(self / ".rowfs/snapshots"):
            os.rmdir(self / ".rowfs/snapshots" / name)
        if self.part.exists():
            shutil.rmtree(self.part)
        for name in os.listdir(self / ".rowfs/trash"):
            os.unlink(self / ".rowfs/trash" / name)
        self.part.mkdir()
        put(self.row, '{"a":1}')

    def __truediv__(self, path):
        return self.mnt / path


def batch(at, *changes):
    lines = json.dumps(list(changes))
    put(at.part / ".batch", lines)


def insert(key, **more):
    return {"insert": {"RowKey": key, **more}}


def fsync(at, text):
    """The file stays open: what its close says is another refusal."""
    at.kept = os.open(at.row, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(at.kept, text)
    os.fsync(at.kept)


def moved(at, name, text=b"{}"):
    put(at.part / "plain", text)
    os.rename(at.part / "plain", at / name)


def position_gone(at):
    fd = os.open(at.part / ".changes", os.O_RDWR)
    try:
        os.write(fd, b"1000-1")
        os.read(fd, 100)
    finally:
        os.close(fd)


def removed_meanwhile(at):
    fd = os.open(at.row, os.O_WRONLY)
    os.write(fd, b'{"A":2}')
    os.unlink(at.row)
    os.close(fd)


NO_ROWS_ETAG = b'W/"datetime\'2001-01-01T00%3A00%3A00Z\'"'


def conditioned_rename(at):
    put(at.part / "plain", "{}")
    os.setxattr(at.part / "plain", "user.rowfs.if_match", NO_ROWS_ETAG)
    os.rename(at.part / "plain", at.row)


def conditioned_close(at):
    fd = os.open(at.row, os.O_WRONLY | os.O_TRUNC)
    os.setxattr(fd, "user.rowfs.if_match", NO_ROWS_ETAG)
    os.write(fd, b"{}")
    os.close(fd)


def renamed_with_much_to_write(at):
    text = '{"PartitionKey":"p"}'
    for i in range(3):
        put(at.part / f"{i}.json", text + " " * ((2 << 20) - len(text)))
    os.rename(at.part, at / TABLE / "q")


def exchanged_with_nothing(at):
    put(at.part / "plain", "x")
    put(at.part / "new.json", "")
    renameat2(at.part / "plain", at.part / "new.json", EXCHANGE)


def trashed(at):
    os.unlink(at.row)
    (name,) = os.listdir(at / ".rowfs/trash")
    return at / ".rowfs/trash" / name


def read_and_write(path):
    fd = os.open(path, os.O_RDWR)
    try:
        os.read(fd, 1)
    finally:
        os.close(fd)


def streams(at):
    fds = []
    try:
        for _ in range(65):
            fds.append(os.open(at.part / ".rows.ndjson", os.O_RDONLY))
    finally:
        for fd in fds:
            os.close(fd)


def snapshots(at):
    for i in range(33):
        (at / f".rowfs/snapshots/s{i}").mkdir()


def in_snapshot(at, call):
    (at / ".rowfs/snapshots/s").mkdir()
    call(at / ".rowfs/snapshots/s" / PART)


def handles(at):
    fds = []
    try:
        for _ in range(110):
            fds.append(os.open(at.row, os.O_RDONLY))
    finally:
        for fd in fds:
            os.close(fd)


def locks(at):
    with open(at.row, "r+b") as f:
        for i in range(30):
            fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * i)


def quota(at):
    for i in range(9):
        put(at.part / f"f{i}", "")
        os.truncate(at.part / f"f{i}", 1 << 30)


LONG = "x" * 300  # of a property's name
WIDE = {f"P{i}": i for i in range(253)}
HEAVY = {f"P{i:02}": "x" * 32000 for i in range(20)}

# symbol, call as told, path as told, words, what is done
REFUSALS = [
    ("NOT_PERMITTED", "create", "bob.json", "partition.*mkdir -p /.*ACCOUNT/TABLE/PARTITION",
     lambda at: put(at / "bob.json", "{}")),
    ("NOT_PERMITTED", "create", "acct1/bob.json", "partition.*mkdir -p /.*/acct1/TABLE/PARTITION",
     lambda at: put(at / ACCOUNT / "bob.json", "{}")),
    ("NOT_PERMITTED", "create", "acct1/bob", "partition.*mkdir -p /.*/acct1/TABLE/PARTITION",
     lambda at: put(at / ACCOUNT / "bob", "{}")),
    ("NOT_PERMITTED", "create", f"{TABLE}/bob.json",
     r"Rows live in a partition; make one first: mkdir /.*/acct1/Tab/PARTITION$",
     lambda at: put(at / TABLE / "bob.json", "{}")),
    ("NOT_PERMITTED", "mkdir", f"{PART}/b", "leading dot.*mkdir /.*/acct1/Tab/b$",
     lambda at: (at.part / "b").mkdir()),
    ("NOT_PERMITTED", "mkdir", f"{PART}/b.json", "leading dot",
     lambda at: (at.part / "b.json").mkdir()),
    ("NOT_PERMITTED", "symlink", f"{PART}/l", "no symbolic links.*cp",
     lambda at: os.symlink("r.json", at.part / "l")),
    ("NOT_PERMITTED", "link", f"{PART}/l.json", "no hard links.*cp",
     lambda at: os.link(at.row, at.part / "l.json")),
    ("NOT_PERMITTED", "mknod", f"{PART}/fifo", "no devices, sockets and pipes",
     lambda at: os.mkfifo(at.part / "fifo")),
    ("NOT_PERMITTED", "unlink", f"{PART}/.batch", "rowfs's own",
     lambda at: os.unlink(at.part / ".batch")),
    ("NOT_PERMITTED", "rmdir", ".rowfs", "rowfs's own", lambda at: os.rmdir(at / ".rowfs")),
    ("NOT_PERMITTED", "rename", f"{PART}/x.json", "rowfs's own",
     lambda at: os.rename(at.part / ".batch", at.part / "x.json")),
    ("NOT_PERMITTED", "rename", f"{PART}/.batch", "rowfs's own",
     lambda at: moved(at, f"{PART}/.batch")),
    ("NOT_PERMITTED", "rename", f"{TABLE}/bob", "Rows live in a partition.*mkdir",
     lambda at: moved(at, f"{TABLE}/bob")),
    ("NOT_PERMITTED", "rename", f"{TABLE}/d", "leading dot",
     lambda at: ((at.part / ".d").mkdir(), os.rename(at.part / ".d", at / TABLE / "d"))),
    ("NOT_PERMITTED", "setxattr", f"{PART}/r.json", "if_match alone",
     lambda at: os.setxattr(at.row, "user.rowfs.etag", b"x")),
    ("NOT_PERMITTED", "removexattr", f"{PART}/r.json", "if_match alone",
     lambda at: os.removexattr(at.row, "user.rowfs.etag")),
    ("NOT_PERMITTED", "open", ".rowfs/trash/*", "moved out", lambda at: put(trashed(at), "x")),
    ("NOT_PERMITTED", "truncate", ".rowfs/trash/*", "moved out",
     lambda at: os.truncate(trashed(at), 0)),
    ("NOT_PERMITTED", "create", ".rowfs/trash/x", "move its files out",
     lambda at: put(at / ".rowfs/trash/x", "x")),
    ("NOT_PERMITTED", "mkdir", ".rowfs/rejected/x", "move its files out",
     lambda at: (at / ".rowfs/rejected/x").mkdir()),
    ("NOT_PERMITTED", "create", ".rowfs/x", r"in \.rowfs", lambda at: put(at / ".rowfs/x", "x")),
    ("NOT_PERMITTED", "open", ".rowfs/version", r"in \.rowfs",
     lambda at: put(at / ".rowfs/version", "x")),
    ("NOT_PERMITTED", "setattr", ".rowfs/version", r"in \.rowfs",
     lambda at: os.chmod(at / ".rowfs/version", 0)),
    ("NOT_PERMITTED", "setxattr", f"{PART}/.batch", "in place",
     lambda at: os.setxattr(at.part / ".batch", "user.rowfs.error", b"x")),
    ("NOT_PERMITTED", "read", f"{PART}/.rows.ndjson", "reading alone",
     lambda at: read_and_write(at.part / ".rows.ndjson")),
    ("READ_ONLY", "open", f"{TABLE}/.query", "change a row where it is",
     lambda at: put(at / TABLE / ".query/top=1/p/r.json", "{}")),
    ("READ_ONLY", "create", f"{TABLE}/.query", "change a row where it is",
     lambda at: put(at / TABLE / ".query/top=1/p/new.json", "{}")),
    ("READ_ONLY", "unlink", ".rowfs/snapshots/s", "copy out",
     lambda at: in_snapshot(at, lambda p: os.unlink(p / "r.json"))),
    ("READ_ONLY", "mkdir", ".rowfs/snapshots/s", "copy out",
     lambda at: in_snapshot(at, lambda p: os.mkdir(p / ".d"))),
    ("NAME_INVALID", "mkdir", "Users", "lower-case letters and digits",
     lambda at: (at / "Users").mkdir()),
    ("NAME_INVALID", "mkdir", "acct1/my-table", "letters and digits",
     lambda at: (at / "acct1/my-table").mkdir()),
    ("INVALID_INPUT", "lookup", "acct1/tables", "reserved", lambda at: (at / "acct1/tables").mkdir()),
    ("NAME_TOO_SHORT", "mkdir", "ab", "3 to 24", lambda at: (at / "ab").mkdir()),
    ("NAME_TOO_LONG", "mkdir", "a" * 25, "3 to 24", lambda at: (at / ("a" * 25)).mkdir()),
    ("TABLE_EXISTS", "mkdir", "acct1/tab", "another case", lambda at: (at / "acct1/tab").mkdir()),
    ("NAME_NOT_UTF8", "lookup", f"{PART}/?.json", "UTF-8",
     lambda at: put(os.fsencode(at.part) + b"/\xff.json", "{}")),
    ("NAME_INVALID", "create", f"{PART}/%61.json", "", lambda at: put(at.part / "%61.json", "{}")),
    ("NAME_INVALID", "create", f"{PART}/a%5Cb.json", "",
     lambda at: put(at.part / "a%5Cb.json", "{}")),
    ("KEY_INVALID", "close", f"{PART}/.batch", "", lambda at: batch(at, insert("a/b"))),
    ("KEY_TOO_LARGE", "close", f"{PART}/.batch", "512", lambda at: batch(at, insert("k" * 513))),
    ("KEY_MISMATCH", "write", f"{PART}/r.json", "RowKey",
     lambda at: put(at.row, '{"RowKey":"other"}')),
    ("KEY_MISSING", "rename", f"{PART}/{'k' * 180}%~{'A' * 52}.json", "",
     lambda at: os.rename(at.row, at.part / f"{'k' * 180}%~{'A' * 52}.json")),
    ("INVALID_INPUT", "write", f"{PART}/r.json", "", lambda at: put(at.row, '{bad')),
    ("INVALID_INPUT", "lookup", f"{TABLE}/.query", "gt",
     lambda at: os.listdir(at / TABLE / ".query/a > 1")),
    ("INVALID_INPUT", "close", f"{PART}/.batch", "", lambda at: put(at.part / ".batch", "[1]")),
    ("INCOMPLETE", "close", f"{PART}/r.json", "not complete", lambda at: put(at.row, '{"a":')),
    ("INCOMPLETE", "fsync", f"{PART}/r.json", "not complete", lambda at: fsync(at, b'{"a":')),
    ("INCOMPLETE", "truncate", f"{PART}/r.json", "not complete",
     lambda at: os.truncate(at.row, 1)),
    ("EMPTY", "truncate", f"{PART}/r.json", "write {} instead", lambda at: os.truncate(at.row, 0)),
    ("NOT_AN_ENTITY", "rename", f"{PART}/new.json", "no entity", exchanged_with_nothing),
    ("INVALID_INPUT", "rename", f"{PART}/x.json", "rejected/",
     lambda at: moved(at, f"{PART}/x.json", b"x")),
    ("VALUE_INVALID", "write", f"{PART}/r.json", "",
     lambda at: put(at.row, '{"a":"x","a@odata.type":"Edm.Int64"}')),
    ("OUT_OF_RANGE", "write", f"{PART}/r.json", "",
     lambda at: put(at.row, '{"a":"1500-01-01T00:00:00Z","a@odata.type":"Edm.DateTime"}')),
    ("PROPERTY_NAME_INVALID", "write", f"{PART}/r.json", "letter",
     lambda at: put(at.row, '{"a-b":1}')),
    ("PROPERTY_NAME_LONG", "write", f"{PART}/r.json", "255",
     lambda at: put(at.row, json.dumps({LONG: 1}))),
    ("PROPERTY_DUPLICATE", "write", f"{PART}/r.json", "", lambda at: put(at.row, '{"a":1,"a":2}')),
    ("PROPERTY_TOO_LARGE", "write", f"{PART}/r.json", "64",
     lambda at: put(at.row, json.dumps({"a": "x" * 40000}))),
    ("TOO_MANY_PROPERTIES", "write", f"{PART}/r.json", "252",
     lambda at: put(at.row, json.dumps(WIDE))),
    ("ENTITY_TOO_LARGE", "write", f"{PART}/r.json", "1MB",
     lambda at: put(at.row, json.dumps(HEAVY))),
    ("BODY_TOO_LARGE", "write", f"{PART}/r.json", "bytes at most",
     lambda at: put(at.row, b" " * (5 << 20))),
    ("FILE_TOO_LARGE", "truncate", f"{PART}/f", "limit",
     lambda at: (put(at.part / "f", "x"), os.truncate(at.part / "f", (1 << 30) + 1))),
    ("QUOTA", "truncate", f"{PART}/f*", "quota", quota),
    ("BLOB_SPACE", "close", "acct1/.blob/photos/b", "blob-space",
     lambda at: ((at / "acct1/.blob/photos").mkdir(), put(at / "acct1/.blob/photos/b", b"x" * 99999))),
    ("BATCH_TOO_LARGE", "close", f"{PART}/.batch", "100",
     lambda at: batch(at, *(insert(str(i)) for i in range(101)))),
    ("BATCH_DUPLICATE", "close", f"{PART}/.batch", "", lambda at: batch(at, insert("1"), insert("1"))),
    ("BATCH_PARTITIONS", "close", f"{TABLE}/.batch", "",
     lambda at: put(at / TABLE / ".batch", json.dumps(
         [insert("1", PartitionKey="p"), insert("1", PartitionKey="q")]))),
    ("ENTITY_EXISTS", "close", f"{PART}/.batch", "", lambda at: batch(at, insert("r"))),
    ("NOT_FOUND", "close", f"{PART}/.batch", "",
     lambda at: batch(at, {"delete": {"RowKey": "none"}})),
    ("CONDITION_NOT_MET", "rename", f"{PART}/r.json", "set its new ETag", conditioned_rename),
    ("CONDITION_NOT_MET", "close", f"{PART}/r.json", "set its new ETag", conditioned_close),
    ("RENAME_TOO_LARGE", "rename", f"{TABLE}/q", "4,096", renamed_with_much_to_write),
    ("FEED_GONE", "read", f"{PART}/.changes", "read the rows anew", position_gone),
    ("GONE", "close", f"{PART}/r.json", "", removed_meanwhile),
    ("THROTTLED", "open", f"{PART}/.rows.ndjson", "64 streams", streams),
    ("NO_SPACE", "mkdir", ".rowfs/snapshots/s32", "32", snapshots),
    ("TOO_MANY_OPEN", "open", f"{PART}/r.json", "close some", handles),
    ("TOO_MANY_LOCKS", "lock", f"{PART}/r.json", "unlock some", locks),
]

# Ordinary answers: errno, what is asked.
ANSWERS = [
    ("ENOENT", lambda at: os.stat(at.part / "none.json")),
    ("ENOENT", lambda at: os.stat(at.part / "%61.json")),
    ("ENOENT", lambda at: os.unlink(at.part / "none.json")),
    ("ENOENT", lambda at: os.stat(at / "Users")),
    ("ENOENT", lambda at: renameat2(at.row, at.part / "none.json", EXCHANGE)),
    ("EEXIST", lambda at: os.open(at.row, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
    ("EEXIST", lambda at: at.part.mkdir()),
    ("ENOTEMPTY", lambda at: os.rmdir(at.part)),
    ("ENOTDIR", lambda at: os.listdir(at.row)),
    ("EISDIR", lambda at: os.open(at.part, os.O_WRONLY)),
    ("EISDIR", lambda at: os.unlink(at.part)),
    ("EACCES", lambda at: os.access(at.row, os.X_OK) or no_access()),
    ("ENODATA", lambda at: os.getxattr(at.row, "user.rowfs.error")),
    ("ENODATA", lambda at: os.getxattr(at.row, "user.other")),
    ("ENODATA", lambda at: os.removexattr(at.row, "user.other")),
    ("EOPNOTSUPP", lambda at: os.setxattr(at.row, "user.other", b"x")),
    ("EOPNOTSUPP", lambda at: os.getxattr(at.row, "system.posix_acl_access")),
    ("EAGAIN", lambda at: locked_twice(at)),
]


def no_access():
    raise PermissionError(errno.EACCES, "access(2) says no")


def locked_twice(at):
    with open(at.row, "r+b") as a, open(at.row, "r+b") as b:
        fcntl.flock(a, fcntl.LOCK_EX)
        fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.fixture
def at(mount, store, monkeypatch):
    monkeypatch.setitem(conftest.ENV, "ROWFS_MOUNT_LIMITS", "handles=100,ranges=20")
    m = mount(store, "blob-space=64K")
    (m / TABLE).mkdir(parents=True)
    return At(m)


def in_pattern(path, pattern):
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path) is not None


def told_at(at, path):
    """Where the attribute answers: the directory, and the name, where there is one."""
    places = [at / os.path.dirname(path)]
    if "?" not in path and "*" not in path and os.path.lexists(at / path):
        places.append(at / path)
    return places


def is_told(at, symbol, call, path, words, do):
    number, code = LIST[symbol]
    before = len(errors(at.mnt))
    answered = "EIO" if call == "fsync" else number
    if call == "rename" and symbol == "INVALID_INPUT":
        answered = "EBADMSG"
    with raises(answered):
        do(at)
    lines = errors(at.mnt)[before:]
    assert lines, "nothing is told"
    last = lines[-1]
    assert (last["call"], last["errno"], last["code"]) == (call, getattr(errno, number), code)
    assert in_pattern(last["path"], path), last["path"]
    said = reason(told_at(at, path)[-1])
    assert re.search(words, said), (words, said)
    assert "This request is not authorized" not in said
    for place in told_at(at, path):
        assert last["message"] in reason(place), place
    # The kernel asks unlink(2) and its like twice after ESTALE.
    assert len(lines) <= (2 if number == "ESTALE" else 1), lines


def walk(at, cases, check):
    """All of them in one mount, each in a partition of its own; what fails is told together."""
    wrong = []
    for case in cases:
        at.begin()
        try:
            check(at, *case)
        except (Exception, pytest.fail.Exception) as e:  # noqa: BLE001
            wrong.append(f"{case[:-1]}: {e!r}")
    assert not wrong, "\n".join(wrong)


def test_E12_every_refusal_has_its_reason(at):
    walk(at, REFUSALS, is_told)


def is_answered(at, number, ask):
    before = errors(at.mnt)
    with raises(number):
        ask(at)
    assert errors(at.mnt) == before


def test_E12_ordinary_answers_are_no_refusals(at):
    walk(at, ANSWERS, is_answered)


def test_E12_every_error_of_the_list_is_shown_or_accounted_for():
    found = tables()
    shown = {r[0] for r in REFUSALS}
    answers, elsewhere = found["Answers without a reason"], found["Errors of other front ends"]
    faults = found["Faults"]
    for s in (*answers, *elsewhere, *faults):
        assert s in LIST, f"docs/errors.md: {s} is no error"
    for s in LIST:
        places = [s in shown, s in elsewhere, s in faults]
        assert any(places) or s in answers, f"{s}: no test of its reason, and not in docs/errors.md"
        assert sum(places) <= 1, f"{s}: in more than one of the tables"
