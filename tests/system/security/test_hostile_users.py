# SPDX-License-Identifier: MIT
"""Another user of the machine, on a mount with allow_other: what they can reach, and what they
can make the daemon keep.

Each bound of docs/security.md is tested from both sides: what is one below is taken, what is
over is refused with the errno of the table, nobody else is harmed, and it is given back.
ROWFS_MOUNT_LIMITS makes the bounds small.
"""

import contextlib
import errno
import fcntl
import json
import os
import pickle
import resource
import select
import socket
import stat
import subprocess
import threading
import time

import conftest
import pytest
import rest_client
from queue_client import Queues
from streams import cpu_ticks
from tools import closes_are_known, sanitized

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
UID = 1234
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
# As many as are wanted by a test that wants many; the limit of this process stays as it is.
FILES = 4096


def as_user(work, uid=UID, gid=None, groups=()):
    """What work() gives in a process of that user's; an OSError comes back as its name."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            soft = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.setgroups(groups)
            os.setgid(uid if gid is None else gid)
            os.setuid(uid)
            try:
                said = work()
            except OSError as e:
                said = errno.errorcode[e.errno]
            with open(writer, "wb") as f:
                pickle.dump(said, f)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as f:
        data = f.read()
    os.waitpid(child, 0)
    return pickle.loads(data)


def errno_of(call, *args):
    try:
        call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "0"


def write(path, text, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
    fd = os.open(path, flags, 0o644)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def read(path):
    with open(path, "rb") as f:
        return f.read()


@pytest.fixture
def shared(mount, store, work, monkeypatch):
    """A factory: shared("handles=100") -> a mount for everybody, with a directory of the other
    user's at .part."""
    os.chmod(work, 0o755)

    def make(limits="", *options):
        monkeypatch.setitem(conftest.ENV, "ROWFS_MOUNT_LIMITS", limits)
        m = mount(store, "allow_other", *options)
        m.part = m / "acct1/Tab/p"
        m.part.mkdir(parents=True)
        os.chown(m.part, UID, UID)
        return m
    return make


def stats(m):
    return json.loads(read(m / ".rowfs/stats.json"))


def wait_for_release(m, mine=1):
    """A close is answered before the daemon has heard of it."""
    end = time.monotonic() + 60
    while True:
        try:
            os.close(os.open(m / ".rowfs/version", os.O_RDONLY))
            return
        except OSError as e:
            assert e.errno == errno.EMFILE and time.monotonic() < end


# ---- what users can have open

HANDLES = 80
SHARE = HANDLES - HANDLES // 4


def openers(part):
    """What can be open, in every way that makes the daemon keep something."""
    write(part / "r.json", "{}")
    write(part / "plain", "x")
    (part / ".dir").mkdir()
    table = part.parent
    return {
        "a row, reading": lambda i: os.open(part / "r.json", os.O_RDONLY),
        "a row, writing": lambda i: os.open(part / "r.json", os.O_WRONLY),
        "a row, replacing": lambda i: os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC),
        "new rows": lambda i: os.open(part / f"n{i}.json", os.O_WRONLY | os.O_CREAT),
        "an ordinary file": lambda i: os.open(part / "plain", os.O_RDWR),
        "new files": lambda i: os.open(part / f"n{i}", os.O_RDWR | os.O_CREAT),
        "directories": lambda i: os.open(part, os.O_RDONLY | os.O_DIRECTORY),
        ".batch": lambda i: os.open(part / ".batch", os.O_RDWR),
        ".batch-check": lambda i: os.open(part / ".batch-check", os.O_RDWR),
        ".rows.ndjson, writing": lambda i: os.open(part / ".rows.ndjson", os.O_WRONLY),
        "a query": lambda i: os.open(table / ".query/top=1/p", os.O_RDONLY | os.O_DIRECTORY),
        "queries": lambda i: os.open(table / f".query/top={i + 1}",
                                     os.O_RDONLY | os.O_DIRECTORY),
        "version": lambda i: os.open(part.parents[2] / ".rowfs/version", os.O_RDONLY),
        "snapshots": lambda i: os.open(part.parents[2] / ".rowfs/snapshots",
                                       os.O_RDONLY | os.O_DIRECTORY),
    }


def test_open_files_have_a_bound_and_root_gets_in(shared):
    m = shared(f"handles={HANDLES}")
    for name, opener in openers(m.part).items():
        os.system(f"chown -R {UID} '{m.part}'")
        go, done = os.pipe(), os.pipe()

        def fill(opener=opener, go=go, done=done):
            fds, why = [], "none"
            try:
                for i in range(2 * HANDLES):
                    fds.append(opener(i))
            except OSError as e:
                why = errno.errorcode[e.errno]
            os.write(done[1], b"x")
            os.read(go[0], 1)
            return len(fds), why

        found = []
        t = threading.Thread(target=lambda: found.append(as_user(fill)))
        t.start()
        os.read(done[0], 1)
        # Others are refused as well, root is not; and who has something open goes on.
        refused = as_user(lambda: errno_of(os.open, m.part, os.O_RDONLY), uid=99)
        mine = [os.open(m.part, os.O_RDONLY) for _ in range(HANDLES // 8)]
        for fd in mine:
            os.close(fd)
        os.write(go[1], b"x")
        t.join()
        for fd in (*go, *done):
            os.close(fd)
        assert refused == "EMFILE", name
        count, why = found[0]
        assert why == "EMFILE" and SHARE - 2 <= count <= SHARE, (name, found)
        closes_are_known(m)
        assert as_user(lambda: errno_of(os.listdir, m.part)) == "0", name
    write(m.part / "after.json", '{"A":1}')
    assert read(m.part / "after.json") == b'{"A":1}'


def test_open_files_roots_have_a_bound_too(shared):
    m = shared(f"handles={HANDLES}")
    fds = []
    with pytest.raises(OSError) as e:
        for _ in range(2 * HANDLES):
            fds.append(os.open(m.part, os.O_RDONLY))
    assert e.value.errno == errno.EMFILE and HANDLES - 2 <= len(fds) <= HANDLES
    for fd in fds:
        os.close(fd)
    wait_for_release(m)
    assert "files are open in the mount" in m.log()


def document(size):
    return '{"A":"' + "x" * 30000 + '"' + " " * (size - 30008) + "}"


def test_documents_that_are_written_have_a_bound(shared):
    """A megabyte for all; each writer has sent 128 KiB of a document and stands still."""
    m = shared("bytes=1000000")
    write(m.part / "kept.json", '{"v":1}')
    os.system(f"chown -R {UID} '{m.part}'")

    def fill():
        fds, whys = [], []
        for i in range(20):
            try:
                fds.append(os.open(m.part / f"w{i}.json", os.O_WRONLY | os.O_CREAT))
                os.write(fds[-1], document(131072)[:-1].encode())
            except OSError as e:
                whys.append(errno.errorcode[e.errno])
        taken = len(fds) - whys.count("ENOMEM")
        # What is small enough goes on where it was, and is complete in the end.
        os.write(fds[0], b"}")
        ended = [errno_of(os.close, fd) for fd in fds]
        return taken, whys, ended

    taken, whys, ended = as_user(fill)
    assert 3 <= taken <= 8 and set(whys) <= {"ENOMEM", "EMFILE"} and whys, (taken, whys)
    assert ended[0] == "0" and read(m.part / "w0.json") == document(131072).encode()
    assert set(ended[1:]) <= {"EINVAL", "ENOMEM"}
    assert read(m.part / "kept.json") == b'{"v":1}'
    # What was refused is where refused bytes are.
    assert len(os.listdir(m / ".rowfs/rejected")) >= taken - 1
    end = time.monotonic() + 60
    while as_user(lambda: errno_of(write, m.part / "again.json", document(131072))) != "0":
        assert time.monotonic() < end
    assert read(m.part / "again.json") == document(131072).encode()


def test_documents_grown_by_truncation_count(shared):
    m = shared("bytes=1000000")

    def fill():
        fds = [os.open(m.part / f"w{i}.json", os.O_WRONLY | os.O_CREAT) for i in range(20)]
        return [errno_of(os.ftruncate, fd, 200000) for fd in fds]

    got = as_user(fill)
    assert got[0] == "0" and got[-1] == "ENOMEM" and 3 <= got.count("0") <= 5, got
    end = time.monotonic() + 60
    while as_user(lambda: errno_of(write, m.part / "again.json", document(100000))) != "0":
        assert time.monotonic() < end


@pytest.mark.parametrize("name", [".batch", ".batch-check", ".rows.ndjson", ".rows.csv"])
def test_control_files_that_are_written_have_a_bound(shared, name):
    m = shared("bytes=1000000")
    text = {".rows.csv": 'RowKey,A\n"1","'}.get(name, '{"RowKey":"1","A":"')
    text = (text + "x" * 131072).encode()

    def fill():
        fds, whys = [], []
        for _ in range(20):
            try:
                fds.append(os.open(m.part / name, os.O_WRONLY))
                os.write(fds[-1], text)
            except OSError as e:
                whys.append(errno.errorcode[e.errno])
        return len(fds) - whys.count("ENOMEM"), whys

    taken, whys = as_user(fill)
    assert 1 <= taken <= 8 and set(whys) <= {"ENOMEM", "EMFILE"} and whys, (taken, whys)
    line = 'RowKey,A\n"2","b"\n' if name == ".rows.csv" else '{"upsert":{"RowKey":"2"}}\n'
    if name == ".rows.ndjson":
        line = '{"RowKey":"2"}\n'
    end = time.monotonic() + 60
    while as_user(lambda: errno_of(write, m.part / name, line, os.O_WRONLY)) != "0":
        assert time.monotonic() < end
    assert (m.part / "2.json").exists() == (name != ".batch-check")


def test_a_change_set_of_which_bytes_were_refused_is_not_applied(shared):
    """The writer goes on after ENOMEM: what arrives is whole lines, but not all of them."""
    m = shared("bytes=300000")

    def work():
        hog = os.open(m.part / "hog.json", os.O_WRONLY | os.O_CREAT)
        batch = os.open(m.part / ".batch", os.O_WRONLY)
        os.write(batch, b'{"upsert":{"RowKey":"1"}}\n')
        os.write(hog, document(300000)[:-1].encode())
        got = [errno_of(os.write, batch, b'{"upsert":{"RowKey":"2"}}\n' + b" " * 9000)]
        errno_of(os.close, hog)
        time.sleep(0.2)  # the daemon is told of the close a moment later
        got.append(errno_of(os.write, batch, b'{"upsert":{"RowKey":"3"}}\n'))
        got.append(errno_of(os.close, batch))
        return got

    assert as_user(work) == ["ENOMEM", "ENOMEM", "ENOMEM"]
    assert not [n for n in os.listdir(m.part) if n in ("1.json", "2.json", "3.json")]


def long_names(i):
    """240 names of 240 bytes each that nobody had before."""
    return [f"n{i}_{k}_".ljust(240, "x") for k in range(240)]


def learned(i):
    cells = ",".join(f'"{name}":1' for name in long_names(i))
    return f'{{"RowKey":"{i % 7}",{cells}}}\n'.encode()


def header(i):
    return ("RowKey," + ",".join(long_names(i)) + "\n").encode()


@pytest.mark.parametrize("name, text", [(".rows.ndjson", learned), (".rows.csv", header)])
@pytest.mark.parametrize("first", ["open all", "open and write"])
def test_what_importers_know_of_names_has_a_bound(shared, name, text, first):
    """Nothing is begun and not ended: names alone are kept, each writer's own."""
    m = shared("bytes=4000000")
    before = m.rss_kib()

    def fill():
        fds, whys = [], []
        for i in range(1000):
            try:
                fds.append(os.open(m.part / name, os.O_WRONLY))
                if first != "open all":
                    os.write(fds[-1], text(i))
            except OSError as e:
                whys.append(errno.errorcode[e.errno])
                if whys[-1] == "EMFILE":
                    break
        for i, fd in enumerate(fds if first == "open all" else []):
            if len(whys) < 20 and (got := errno_of(os.write, fd, text(i))) != "0":
                whys.append(got)
        return set(whys), m.rss_kib()

    whys, rss = as_user(fill)
    assert whys and whys <= {"EMFILE", "ENOMEM"}, whys
    if not sanitized():
        assert rss - before < 24 << 10
    end = time.monotonic() + 60
    while as_user(lambda: errno_of(write, m.part / name, text(0).decode(), os.O_WRONLY)) != "0":
        assert time.monotonic() < end


@pytest.mark.parametrize("at", ["p", ".query/top=500/p"])
def test_where_listings_are_has_a_bound(shared, at):
    """Who opened a directory before the bound was reached gets all of it all the same."""
    m = shared("bytes=2000000")
    names = [f"{i:04}".ljust(220, "x") for i in range(400)]
    write(m.part / ".rows.ndjson", "".join(f'{{"RowKey":"{n}"}}\n' for n in names), os.O_WRONLY)
    path = m.part.parent / at
    before = m.rss_kib()

    def fill():
        fds = [os.open(path, os.O_RDONLY) for _ in range(1500)]
        begun = []
        for fd in fds:
            begun.append(os.scandir(fd))
            next(begun[-1])
        refused = errno_of(os.open, path, os.O_RDONLY)
        os.lseek(fds[-1], 0, os.SEEK_SET)
        return refused, m.rss_kib(), sorted(os.listdir(fds[-1]))

    refused, rss, listed = as_user(fill)
    assert refused == "EMFILE"
    assert listed == [f"{n}.json" for n in names]
    if not sanitized():
        assert rss - before < 24 << 10
    end = time.monotonic() + 60
    while as_user(lambda: errno_of(os.listdir, path)) != "0":
        assert time.monotonic() < end


def rejected(m, of):
    top = m / ".rowfs/rejected"
    return [read(top / n).decode() for n in sorted(os.listdir(top)) if n.endswith(of)]


def test_E9_bytes_that_are_refused_for_the_bound_are_kept(shared):
    """Whether anything was written before, or refused; what is written behind it, too; the
    same write again once.  Until it is truncated, a handle that lacks bytes takes no more."""
    m = shared("bytes=600000")

    def work():
        def new(name):
            return os.open(m.part / name, os.O_WRONLY | os.O_CREAT)

        row, begun, bad, batch = new("row.json"), new("begun.json"), new("bad.json"), os.open(
            m.part / ".batch", os.O_WRONLY)
        os.write(begun, b'{"A":')
        got = [errno_of(os.write, bad, b"{bad\n")]
        hogs = []
        with contextlib.suppress(OSError):
            for i in range(20):
                hogs.append(new(f"hog{i}.json"))
                os.write(hogs[-1], document(100000)[:-1].encode())
        lines = [f'{{"n":{n},"A":"{"y" * 1500}"}}\n'.encode() for n in range(2)]
        for fd in (row, begun, bad, batch):
            for line in (lines[0], lines[0], lines[1]):
                got.append(errno_of(os.write, fd, line))
        for fd in hogs:
            errno_of(os.close, fd)
        time.sleep(0.3)  # the daemon is told of the closes a moment later
        got += [errno_of(os.write, row, lines[1]), errno_of(os.fsync, row)]
        got += [errno_of(os.close, fd) for fd in (begun, bad, batch)]
        kept = b"".join(lines).decode()
        os.ftruncate(row, 0)
        return got, kept, errno_of(os.pwrite, row, lines[0], 0), errno_of(os.close, row)

    got, kept, mended, closed = as_user(work)
    assert got == ["EINVAL", *["ENOMEM"] * 6, *["EINVAL"] * 3, *["ENOMEM"] * 5,
                   "ENOMEM", "EINVAL", "ENOMEM"]
    assert rejected(m, "begun.json") == ['{"A":' + kept]
    assert rejected(m, "bad.json") == ["{bad\n" + kept]
    assert rejected(m, "-.batch") == [kept]
    # Accepted in the end: nothing of it needs to be kept.
    assert (mended, closed) == ("0", "0") and rejected(m, "row.json") == []
    assert read(m.part / "row.json").startswith(b'{"n":0,')


def test_E9_bytes_over_the_size_limit_are_kept(shared):
    m = shared()
    fd = os.open(m.part / "big.json", os.O_WRONLY | os.O_CREAT)
    text = document(4 << 20).encode() + b" " * 99
    sent = 0
    with pytest.raises(OSError) as e:
        while sent < len(text):
            sent += os.write(fd, text[sent:sent + 100000])
    assert e.value.errno == errno.EFBIG
    with pytest.raises(OSError):
        os.close(fd)
    assert rejected(m, "big.json") == [text[:sent + 100000].decode()]


def test_the_last_quarter_is_not_lent(shared):
    """Root has a look at what a user is writing: that is the user's share as before."""
    m = shared("bytes=1000000")
    go, done = os.pipe(), os.pipe()

    def fill():
        shown = os.open(m.part / "shown.json", os.O_WRONLY | os.O_CREAT)
        os.write(shown, b'{"A":1')
        os.write(done[1], b"%d %d\n" % (os.getpid(), shown))
        os.read(go[0], 1)
        with contextlib.suppress(OSError):
            for i in range(20):
                fd = os.open(m.part / f"hog{i}.json", os.O_WRONLY | os.O_CREAT)
                os.write(fd, document(100000)[:-1].encode())
        return errno_of(os.write, shown, b" " * 50000)

    found = []
    t = threading.Thread(target=lambda: found.append(as_user(fill)))
    t.start()
    pid, fd = os.read(done[0], 100).split()
    looking = os.open(f"/proc/{int(pid)}/fd/{int(fd)}", os.O_RDWR)
    os.write(go[1], b"x")
    t.join()
    assert errno_of(os.close, looking) == "ENOMEM"
    for fd in (*go, *done):
        os.close(fd)
    assert found == ["ENOMEM"]


def test_rows_that_are_read_have_a_bound(shared):
    """What open readers pin: each of another row, since many of one row hold one document."""
    m = shared("bytes=1000000")
    for i in range(20):
        write(m.part / f"{i}.json", document(100000))

    def fill(same):
        fds = []
        try:
            for i in range(20):
                fds.append(os.open(m.part / f"{0 if same else i}.json", os.O_RDONLY))
        except OSError as e:
            return len(fds), errno.errorcode[e.errno], os.read(fds[-1], 10)
        return len(fds), "none", os.read(fds[-1], 10)

    taken, why, text = as_user(lambda: fill(False))
    assert 6 <= taken <= 9 and why == "EMFILE" and text == document(100000)[:10].encode()
    closes_are_known(m)
    assert as_user(lambda: errno_of(read, m.part / "19.json")) == "0"
    closes_are_known(m)
    assert as_user(lambda: fill(True))[:2] == (20, "none")


def test_thousands_of_open_writers_take_little(shared):
    """With the bounds as they are: 2,000 empty rows and 1,000 writers of one row."""
    m = shared()
    write(m.part / "r.json", "{}")
    os.chmod(m.part / "r.json", 0o666)
    before = m.rss_kib()

    def fill():
        fds = [os.open(m.part / f"{i}.json", os.O_WRONLY | os.O_CREAT) for i in range(2000)]
        fds += [os.open(m.part / "r.json", os.O_WRONLY | os.O_TRUNC) for _ in range(1000)]
        for fd in fds:
            os.write(fd, b'{"A":')
        return m.rss_kib()

    rss = as_user(fill)
    if not sanitized():
        assert rss - before < 64 << 10
    assert len(os.listdir(f"/proc/{m.proc.pid}/fd")) < 100
    # All were closed incomplete: the last thousand are kept, the log is not a line for each.
    end = time.monotonic() + 60
    while stats(m)["open_stages"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert len(os.listdir(m / ".rowfs/rejected")) <= 1000
    assert m.log().count("\n") < 1200
    assert read(m.part / "r.json") == b"{}"


def test_refusals_are_logged_up_to_a_bound_and_kept_up_to_another(shared):
    m = shared()

    def work():
        for i in range(1500):
            fd = os.open(m.part / "r.json", os.O_WRONLY | os.O_CREAT)
            assert errno_of(os.write, fd, b"{bad") == "EINVAL"
            errno_of(os.close, fd)

    as_user(work)
    lines = m.log().splitlines()
    warnings = [x for x in lines if "warning: " in x]
    assert 1000 <= len(warnings) < 1100, len(warnings)
    # Later there is room again, and the log tells what is missing.
    time.sleep(2.2)  # the log takes one line a second again
    as_user(lambda: errno_of(write, m.part / "r.json", "{bad"))
    assert any("lines like these were left out" in x for x in m.log().splitlines())
    assert len(read(m / ".rowfs/errors").splitlines()) <= 1000
    assert len(os.listdir(m / ".rowfs/rejected")) <= 1000


def test_locks_by_the_thousand(shared):
    """flock: 3,000 held, and everybody else's stay quick and right."""
    m = shared()
    write(m.part / "r.json", "{}")
    os.chmod(m.part / "r.json", 0o666)

    def fill():
        fds = []
        for i in range(3000):
            fds.append(os.open(m.part / "r.json", os.O_RDONLY))
            fcntl.flock(fds[-1], fcntl.LOCK_SH)
        with open(m.part / "r.json", "rb") as f:
            got = [errno_of(fcntl.flock, f, fcntl.LOCK_EX | fcntl.LOCK_NB)]
        for fd in fds:
            os.close(fd)
        return got

    assert as_user(fill) == ["EAGAIN"]
    with open(m.part / "r.json", "rb") as f:
        end = time.monotonic() + 60
        while errno_of(fcntl.flock, f, fcntl.LOCK_EX | fcntl.LOCK_NB) != "0":
            assert time.monotonic() < end
            time.sleep(0.05)


def test_names_of_queries_take_a_bounded_memory(shared):
    m = shared()
    write(m.part / "r.json", "{}")
    before = m.rss_kib()

    def work():
        wrong = 0
        for i in range(6000):
            name = f"RowKey eq '{i}' and Name eq '{'x' * 200}'"
            wrong += errno_of(os.stat, m / "acct1/Tab/.query" / name) != "0"
        return wrong

    assert as_user(work) == 0
    if not sanitized():
        assert m.rss_kib() - before < 48 << 10
    assert len(os.listdir(f"/proc/{m.proc.pid}/fd")) < 100


def test_streams_of_others_are_so_many_and_no_more(shared):
    """64 at a time for all; who finds none is told EAGAIN, and what is no stream goes on."""
    m = shared()
    write(m.part / ".rows.ndjson", "".join(
        f'{{"RowKey":"{i}","A":"{"x" * 1000}"}}\n' for i in range(1000)), os.O_WRONLY)

    def fill():
        fds = []
        try:
            for _ in range(100):
                fds.append(os.open(m.part / ".rows.ndjson", os.O_RDONLY))
                os.read(fds[-1], 10)
        except OSError as e:
            read(m.part / "5.json")
            os.listdir(m.part)
            return len(fds), errno.errorcode[e.errno]
        return len(fds), "none"

    assert as_user(fill) in ((64, "EAGAIN"), (65, "EAGAIN"))
    end = time.monotonic() + 60
    while as_user(lambda: errno_of(read, m.part / ".rows.ndjson")) != "0":
        assert time.monotonic() < end


# ---- the control channel


def channel(store):
    st = os.stat(store)
    return f"\0rowfs-{st.st_dev:x}-{st.st_ino:x}"


def test_strangers_at_the_control_channel(shared, rowfs, store):
    """They are told that they are refused, however many, and neither fill the log, nor silence it
    for others, nor keep commands out."""
    m = shared()
    (m / "acct1/Tab/q").mkdir()

    def knock():
        for _ in range(3000):
            s = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                s.connect(channel(store))
                s.send(b"\0" * 64)
            s.close()
        s = socket.socket(socket.AF_UNIX)
        s.connect(channel(store))  # waits while the queue is full: with a time limit it would not
        s.settimeout(60)
        return s.recv(2)

    assert as_user(knock) == b"\1"
    assert rowfs("account", "list", store).stdout.split() == ["acct1"]
    assert 1000 <= m.log().count(f"of another user, {UID},") <= 1010
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           rowfs.program, "stat", store], capture_output=True, text=True,
                          env=conftest.ENV)
    assert "Operation not permitted" in done.stderr
    assert m.log().count("of another user, 65534,") == 1
    assert errno_of(write, m.part / "new.json", "{bad") == "EINVAL"
    assert sum("new.json" in line and "warning: " in line for line in m.log().splitlines()) == 1
    assert len(os.listdir(f"/proc/{m.proc.pid}/fd")) < 100
    assert as_user(lambda: subprocess.run(
        ["cat", str(store)], capture_output=True).returncode) == 1


def test_an_impostor_at_the_control_channel(rowfs, store, work, mount):
    """Another user took the name first: he is told nothing, and commands work by themselves,
    or say that they do not reach the store."""
    os.chmod(work, 0o755)
    reader, writer = os.pipe()
    go, stop = os.pipe()

    def listen():
        s = socket.socket(socket.AF_UNIX)
        s.bind(channel(store))
        s.listen(64)
        os.write(writer, b"x")
        s.settimeout(0.05)
        heard = b""
        while not select.select([go], [], [], 0)[0]:
            with contextlib.suppress(OSError):
                one = s.accept()[0]
                one.settimeout(0.2)
                heard += one.recv(1 << 16)
                one.close()
        return heard

    found = []
    t = threading.Thread(target=lambda: found.append(as_user(listen)))
    t.start()
    try:
        os.read(reader, 1)
        said = rowfs("account", "add", store, "mine1", "--key=-", input=KEY + "\n").stdout
        assert KEY in said
        m = mount(store)
        assert "commands will not reach this store" in m.log()
        done = rowfs("account", "list", store, check=False)
        assert done.returncode == 1 and "being served by" in done.stderr, done
        (m / "mine1/Tab/p").mkdir(parents=True)
        write(m / "mine1/Tab/p/r.json", "{}")
    finally:
        os.write(stop, b"x")
        t.join()
    assert found == [b""]
    for fd in (reader, writer, go, stop):
        os.close(fd)


def test_nonsense_at_the_control_channel_of_ones_own(shared, rowfs, store):
    """Heads that promise too much, nothing, or descriptors that never come."""
    shared()
    for data in (b"", b"x", b"\xff" * 16, b"\0" * 16, os.urandom(4096)):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(channel(store))
            with contextlib.suppress(OSError):
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                assert s.recv(1) == b""
    assert rowfs("account", "list", store).stdout.split() == ["acct1"]


# ---- what another user can see


def private_tree(m):
    """Two accounts: what root shut at each level, and beside it what is open to all."""
    for account, table, part in (("shut1", "Tab", "p"), ("open1", "Shut", "p"),
                                 ("open1", "Tab", "shut"), ("open1", "Tab", "p")):
        at = m / account / table / part
        at.mkdir(parents=True, exist_ok=True)
        write(at / "r.json", f'{{"A":"of {account} {table} {part}"}}')
        write(at / "plain", "of plain")
    os.chmod(m / "shut1", 0o700)
    os.chmod(m / "open1/Shut", 0o700)


SHUT = ["shut1/Tab/p", "open1/Shut/p"]
WAYS_IN = ["r.json", "plain", ".rows.ndjson", ".rows.csv", ".batch", "../.rows.ndjson",
           "../.batch", "../.query/top=1.ndjson", "../.query/top=1/p/r.json",
           "../.query/.explain", "../.query/RowKey eq 'r'/.count"]


def test_what_is_shut_above_is_shut_by_every_path(shared):
    m = shared()
    private_tree(m)
    (m / ".rowfs/snapshots/s").mkdir()
    calls = (lambda p: os.close(os.open(p, os.O_RDONLY)), os.stat,
             lambda p: os.close(os.open(p, os.O_WRONLY)),
             lambda p: os.getxattr(p, "user.rowfs.error"),
             lambda p: os.setxattr(p, "user.rowfs.if_match", b"*"),
             os.unlink, lambda p: os.rename(p, p + "x"), os.listdir,
             lambda p: os.truncate(p, 0), lambda p: os.chmod(p, 0o777))

    def go_in():
        return {(path, i): got for top in (m.path, m / ".rowfs/snapshots/s") for at in SHUT
                for path in (f"{top}/{at}/{way}" for way in WAYS_IN)
                for i, call in enumerate(calls) if (got := errno_of(call, path)) != "EACCES"}

    for top in (m.path, m / ".rowfs/snapshots/s"):
        assert as_user(lambda t=top: read(t / "open1/Tab/p/r.json")) == b'{"A":"of open1 Tab p"}'
    assert as_user(go_in) == {}
    for target in SHUT:  # nor by moving something of one's own there, or out of there
        assert as_user(lambda t=target: errno_of(
            os.rename, f"{m.path}/{t}/r.json", m.part / "stolen.json")) == "EACCES"
    os.rmdir(m / ".rowfs/snapshots/s")


def test_a_snapshot_has_the_modes_of_its_moment(shared):
    m = shared()
    private_tree(m)
    top = m / ".rowfs/snapshots"
    (top / "before").mkdir()
    os.chmod(m / "open1/Tab/shut", 0o700)
    (top / "after").mkdir()

    def see(name):
        return errno_of(os.stat, top / name / "open1/Tab/shut/r.json")

    assert as_user(lambda: see("before")) == "0"
    assert as_user(lambda: see("after")) == "EACCES"
    for name in ("mine", "before/x"):
        assert as_user(lambda n=name: errno_of(os.mkdir, top / n)) in ("EACCES", "EROFS")
    assert as_user(lambda: errno_of(os.rmdir, top / "before")) == "EACCES"
    for name in ("before", "after"):
        os.rmdir(top / name)


@pytest.fixture
def mixed(shared):
    """A table that everybody may write, with a partition of theirs, one that root has shut,
    one that can be read only, a sticky one, and a row that is shut."""
    m = shared()
    table = m / "open1/Tab"
    for part, mode in (("a-shut", 0o700), ("b-read", 0o755), ("c-group", 0o750),
                       ("d-theirs", 0o777), ("e-sticky", 0o1777), ("f-passage", 0o711)):
        (table / part).mkdir(parents=True)
        for row in ("r", "shut"):
            write(table / part / f"{row}.json", f'{{"A":"{part} {row}"}}')
        os.chmod(table / part / "shut.json", 0o600)
        os.chown(table / part, 0, 77)
        os.chmod(table / part, mode)
    os.chmod(table, 0o777)
    m.table = table
    return m


def whole(text):
    return sorted(r["PartitionKey"] for r in map(json.loads, text.splitlines()))


SEEN = ["b-read", "d-theirs", "e-sticky"]
STREAMS = [".rows.ndjson", ".query/top=100.ndjson", ".query/A ge 'a'.ndjson",
           ".query/PartitionKey ge 'a'.ndjson"]


def test_T1_streams_and_queries_show_what_modes_let_one_read(mixed):
    """Each stream and each query gives another user the rows that they could read one by one;
    what they may not read can neither be seen nor guessed by asking."""
    def see(name):
        return whole(read(mixed.table / name))

    for name in STREAMS:
        assert as_user(lambda n=name: see(n)) == SEEN, name
        assert as_user(lambda n=name: see(n), groups=(5, 77)) == sorted([*SEEN, "c-group"]), name
        assert as_user(lambda n=name: see(n), gid=77) == sorted([*SEEN, "c-group"]), name
        assert len(see(name)) == 12, name
    counted = as_user(lambda: read(mixed.table / ".query/top=100.count"))
    assert counted.strip() == b"3" and read(mixed.table / ".query/top=100.count").strip() == b"12"
    assert as_user(lambda: read(mixed.table / ".rows.csv")).count(b"shut") == 0
    assert as_user(lambda: see("b-read/.rows.ndjson")) == ["b-read"]
    assert as_user(lambda: sorted(os.listdir(mixed.table / ".query/A ge 'a'"))) == SEEN
    # An answer to "is there one with this value" would tell the value.
    for query in ("A eq 'a-shut r'", "A ge 'a-shut'&top=1", "PartitionKey eq 'a-shut'"):
        for what in ("a-shut", "a-shut/r.json"):
            path = mixed.table / ".query" / query / what
            assert as_user(lambda p=path: errno_of(os.stat, p)) == "ENOENT", path
    assert as_user(lambda: read(mixed.table / ".query/A eq 'a-shut r'.count")).strip() == b"0"
    # `top` is of what one user sees, also if another asked before.
    first = mixed.table / ".query/A ge 'a'&top=1"
    for _ in range(2):
        assert os.listdir(first) == ["a-shut"]
        assert as_user(lambda: os.listdir(first)) == ["b-read"]
    explained = json.loads(as_user(lambda: read(mixed.table / ".query/A ge 'a'.explain")))
    assert explained["matched"] == 3 and explained["looked_at"] == 3, explained


@pytest.mark.parametrize("groups", [(6000,), range(5921, 6001), range(1000, 6001)],
                         ids=["one", "behind many", "thousands"])
def test_T1_a_group_that_may_less_than_others_keeps_its_members_out(mixed, groups):
    """Also one who is in more groups than the daemon keeps, or in so many that it cannot read
    them all (the kernel sorts them): then what a mode gives to others counts only where it gives it to the group."""
    part = mixed.table / "d-theirs"
    os.chown(part / "r.json", 0, 6000)
    os.chmod(part / "r.json", 0o604)
    os.chown(mixed.table / "e-sticky", 0, 6000)
    os.chmod(mixed.table / "e-sticky", 0o705)
    assert as_user(lambda: errno_of(read, part / "r.json"), groups=groups) == "EACCES"
    for name in STREAMS:
        assert as_user(lambda n=name: whole(read(mixed.table / n))) == SEEN, name
        got = as_user(lambda n=name: whole(read(mixed.table / n)), groups=groups)
        assert got == ["b-read"], name
    os.chmod(part, 0o707)
    os.chown(part, 0, 6000)
    for name, text in WRITES.items():
        assert as_user(lambda n=name, t=text: errno_of(
            write, mixed.table / n, t("d-theirs"), os.O_WRONLY), groups=groups) == "EACCES", name
    assert read(part / "r.json") == b'{"A":"d-theirs r"}'


def test_T1_the_bound_of_top_is_of_who_asks_and_found_once(shared):
    """Each name below it is looked up by itself: none of them may cost the whole query again,
    also if others ask in between."""
    m = shared()
    count = 1500
    write(m.part / ".rows.ndjson", "".join(
        f'{{"RowKey":"{i:05}"}}\n' for i in range(2 * count)), os.O_WRONLY)
    at = m.part.parent / f".query/top={count}/p"

    def walk():
        begin = cpu_ticks(m)
        names = os.listdir(at)
        for name in names:
            os.stat(at / name)
        return sorted(names), cpu_ticks(m) - begin

    names, alone = walk()
    assert len(names) == count
    got, took = as_user(walk)
    assert got == names and took < 10 * alone + 50, (alone, took)

    # Of two that ask in turns, each gets their own, also when a mode has changed.
    first = m.part / "00000.json"
    last = at / f"{count:05}.json"
    for mode, want in ((0o600, "0"), (0o644, "ENOENT"), (0o600, "0")):
        os.chmod(first, mode)
        for _ in range(2):
            assert as_user(lambda: errno_of(os.stat, last)) == want, oct(mode)
            assert as_user(lambda: errno_of(os.stat, last), uid=0) == "ENOENT"
            assert as_user(lambda: errno_of(os.stat, last), uid=99) == want, oct(mode)


WRITES = {
    ".batch": lambda pk: f'[{{"upsert":{{"PartitionKey":"{pk}","RowKey":"r","A":"stolen"}}}}]',
    ".rows.ndjson": lambda pk: f'{{"PartitionKey":"{pk}","RowKey":"r","A":"stolen"}}\n',
    ".rows.csv": lambda pk: f'PartitionKey,RowKey,A\n{pk},r,stolen\n',
}


@pytest.mark.parametrize("name", WRITES)
def test_T1_control_files_change_what_modes_let_one_change(mixed, name):
    for part, want in (("a-shut", "EACCES"), ("b-read", "EACCES"), ("c-group", "EACCES"),
                       ("e-sticky", "EACCES"), ("f-passage", "EACCES"), ("d-theirs", "0"),
                       ("g-new", "0")):
        text = WRITES[name](part)
        got = as_user(lambda t=text: errno_of(write, mixed.table / name, t, os.O_WRONLY))
        assert got == want, part
        if want == "0":
            assert b"stolen" in read(mixed.table / part / "r.json")
        else:
            assert read(mixed.table / part / "r.json") == f'{{"A":"{part} r"}}'.encode()
    if name != ".rows.csv":  # nor behind a partition that one may change
        line = '{"upsert":{"PartitionKey":"%s","RowKey":"s"}}\n'
        if name == ".rows.ndjson":
            line = '{"PartitionKey":"%s","RowKey":"s"}\n'
        text = "".join(line % part for part in ("d-theirs", "d-theirs", "a-shut"))
        got = as_user(lambda: errno_of(write, mixed.table / name, text, os.O_WRONLY))
        assert got == ("EINVAL" if name == ".batch" else "EACCES")
        assert not (mixed.table / "a-shut/s.json").exists()
    # Not by leaving it to the end of the process either.
    def leave_it():
        fd = os.open(mixed.table / name, os.O_WRONLY)
        errno_of(os.write, fd, WRITES[name]("a-shut").encode())  # and no close

    as_user(leave_it, gid=77)
    time.sleep(0.2)  # an import that goes on without its writer does so meanwhile
    assert read(mixed.table / "a-shut/r.json") == b'{"A":"a-shut r"}'
    write(mixed.table / name, WRITES[name]("a-shut"), os.O_WRONLY)  # root
    assert b"stolen" in read(mixed.table / "a-shut/r.json")


def test_T1_a_table_that_may_not_be_read_has_no_control_files(mixed):
    os.chmod(mixed.table, 0o711)
    for name in (".rows.ndjson", ".rows.csv", ".query/top=1.ndjson"):
        assert as_user(lambda n=name: errno_of(read, mixed.table / n)) == "EACCES", name
    assert as_user(lambda: read(mixed.table / "d-theirs/r.json")) == b'{"A":"d-theirs r"}'


ROOM = {"version": 0o444, "errors": 0o400, "metrics": 0o440, "stats.json": 0o440,
        "rejected": 0o700, "trash": 0o700, "snapshots": 0o755}


def test_the_mounts_own_room_tells_others_no_names(shared):
    """What is told of directories of any mode is told to their owner alone."""
    m = shared("", "gid=77")
    private_tree(m)
    with contextlib.suppress(OSError):
        write(m / "shut1/Tab/p/bad.json", "{bad")
    os.unlink(m / "shut1/Tab/p/plain")
    read(m / "shut1/Tab/p/r.json")
    os.unlink(m / "shut1/Tab/p/r.json")
    assert b"shut1" in read(m / ".rowfs/stats.json") and b"shut1" in read(m / ".rowfs/metrics")
    for name, mode in ROOM.items():
        path = m / ".rowfs" / name
        assert stat.S_IMODE(path.stat().st_mode) == mode, name
        look = os.listdir if path.is_dir() else read
        assert as_user(lambda p=path, c=look: errno_of(c, p)) == (
            "0" if mode & 4 else "EACCES"), name
        if mode & 0o040:
            assert as_user(lambda p=path, c=look: errno_of(c, p), gid=77) == "0"
        for call in (os.unlink, os.rmdir, lambda p: os.chmod(p, 0o777),
                     lambda p: os.chown(p, UID, UID), lambda p: os.truncate(p, 0),
                     lambda p: os.rename(p, m.part / "x")):
            assert as_user(lambda p=path, c=call: errno_of(c, p)) != "0", name
    for kept in ("trash", "rejected"):
        for name in os.listdir(m / ".rowfs" / kept):
            path = m / ".rowfs" / kept / name
            assert as_user(lambda p=path: errno_of(read, p)) == "EACCES"
            assert as_user(lambda p=path: errno_of(os.rename, p, m.part / "x")) == "EACCES"


def test_both_front_ends_keep_strangers_out(shared, rowfs, work):
    """The mount without a credential, the socket with another user's eyes on it."""
    m = shared("", f"rest=unix:{work}/sock")
    os.chmod(work, 0o755)
    private_tree(m)
    client = rest_client.Client(None, account="shut1", sign=None, unix=work / "sock")
    rest_client.ok(client.request("GET", "Tables"), 200)
    assert as_user(lambda: errno_of(
        socket.socket(socket.AF_UNIX).connect, str(work / "sock"))) == "EACCES"
    client.close()


def test_B9_another_user_puts_messages_where_the_queues_mode_lets_them(
        rest_mount, rest_store, work):
    """The partition is everybody's, the queue is root's."""
    os.chmod(work, 0o755)
    m = rest_mount(rest_store, "allow_other")
    queues = Queues(m.port, host=f"{rest_client.ACCOUNT}.queue.localhost")
    assert queues.ask("PUT", "/jobs").status == 201
    part = m / rest_client.ACCOUNT / "Tab/p"
    part.mkdir(parents=True)
    os.chmod(part, 0o777)
    row, message = '{"upsert":{"RowKey":"s"}}', '{"put_message":{"queue":"jobs","text":"x"}}'
    for text in (message, row + message):
        assert as_user(lambda t=text: errno_of(write, part / ".batch", t, os.O_WRONLY)) == "EACCES"
        assert not (part / "s.json").exists() and queues.get("jobs") == []
    assert as_user(lambda: errno_of(write, part / ".batch", row, os.O_WRONLY)) == "0"
    assert errno_of(write, part / ".batch", message, os.O_WRONLY) == "0"
    assert len(queues.get("jobs")) == 1
