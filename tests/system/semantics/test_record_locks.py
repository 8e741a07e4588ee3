# SPDX-License-Identifier: MIT
"""fcntl(2) locks: by row, in byte ranges, for real processes."""

import fcntl
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import conftest
from tools import put

PEER = """
import errno, fcntl, os, signal, struct, sys

files = {}

def open_(name, path, flags=os.O_RDWR):
    files[name] = os.open(path, flags)

def call(name, cmd, kind, start, n):
    asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, n, 0)
    return struct.unpack("hhqqi4x", fcntl.fcntl(files[name], cmd, asked))

def lock(name, kind=fcntl.F_WRLCK, start=0, n=0, cmd=fcntl.F_SETLK):
    call(name, cmd, kind, start, n)
    return "got"

def wait(name, *a):
    return lock(name, *a, cmd=fcntl.F_SETLKW)

def unlock(name, start=0, n=0):
    return lock(name, fcntl.F_UNLCK, start, n)

def look(name, kind=fcntl.F_WRLCK, start=0, n=0):
    found = call(name, fcntl.F_GETLK, kind, start, n)
    return "free" if found[0] == fcntl.F_UNLCK else (found[0], found[2], found[3], found[4])

def close(name):
    os.close(files.pop(name))

def give_up(*a):
    raise InterruptedError(errno.EINTR, "given up")

signal.signal(signal.SIGUSR1, give_up)
for line in sys.stdin:
    try:
        said = eval(line)
    except OSError as e:
        said = "EDEADLK" if e.errno == errno.EDEADLK else errno.errorcode[e.errno]
    print(repr(said), flush=True)
"""
R, W = fcntl.F_RDLCK, fcntl.F_WRLCK
OFD_SETLK, OFD_SETLKW = 37, 38


class Peer:
    """A process that opens, locks and closes what it is told to."""

    def __init__(self, **options):
        self.proc = subprocess.Popen([sys.executable, "-c", PEER], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, **options)

    def ask(self, call):
        self.proc.stdin.write(call + "\n")
        self.proc.stdin.flush()

    def answer(self):
        return eval(self.proc.stdout.readline())

    def __call__(self, call):
        self.ask(call)
        return self.answer()

    def waits(self):
        """Blocks until the process sleeps in fcntl(2)."""
        end = time.monotonic() + 60
        while True:
            with open(f"/proc/{self.proc.pid}/syscall") as f:
                if f.read().split()[0] == "72":
                    with open(f"/proc/{self.proc.pid}/stat") as s:
                        if s.read().rsplit(")", 1)[1].split()[0] in "SD":
                            return
            assert time.monotonic() < end
            time.sleep(0.005)

    def end(self):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdin.close()
        self.proc.stdout.close()


def settle(peer, here, there):
    """Waits until a release has come, which nobody waits for."""
    end = time.monotonic() + 60
    for at in range(24):
        while (peer(f"look({here!r}, {W}, {at}, 1)") == "free") != (
                peer(f"look({there!r}, {W}, {at}, 1)") == "free"):
            assert time.monotonic() < end


@pytest.fixture
def peers():
    made = []

    def make(path=None, flags=os.O_RDWR, **options):
        made.append(Peer(**options))
        if path is not None:
            assert made[-1](f"open_('f', {str(path)!r}, {flags})") is None
        return made[-1]

    yield make
    for p in made:
        p.end()


@pytest.fixture(params=["row.json", "plain.lock"])
def path(request, part):
    put(part / request.param, '{"n":0}')
    return part / request.param


def test_K6_ranges_exclude_and_share(path, peers):
    a, b = peers(path), peers(path)
    assert a(f"lock('f', {W}, 10, 10)") == "got"
    assert b(f"lock('f', {W}, 0, 10)") == "got"
    assert b(f"lock('f', {W}, 20)") == "got"
    assert b(f"lock('f', {R}, 19, 1)") == "EAGAIN"
    assert a(f"lock('f', {R}, 15, 5)") == "got"  # half of it is downgraded
    assert b(f"lock('f', {R}, 15, 9)") == "got"
    assert a(f"lock('f', {W}, 15, 1)") == "EAGAIN"  # and not upgraded while it is shared
    assert b(f"look('f', {W}, 0, 0)") == (W, 10, 5, a.proc.pid)
    assert a(f"look('f', {R}, 20, 0)") == (W, 24, 0, b.proc.pid)
    assert b("look('f', 1, 0, 10)") == "free"
    assert b("unlock('f', 16, 2)") == "got"
    assert a(f"lock('f', {W}, 16, 2)") == "got"
    assert b(f"look('f', {R}, 0, 0)") == (W, 10, 5, a.proc.pid)


@pytest.mark.parametrize("cmd", [fcntl.F_SETLK, OFD_SETLK])
def test_K6_as_on_a_local_filesystem(path, peers, work, cmd):
    """The same calls of four processes there and here, and the same answers."""
    rng = random.Random(cmd)
    (work / "plain").write_text("{}")
    ps = [peers(path) for _ in range(4)]
    for p in ps:
        assert p(f"open_('there', {str(work / 'plain')!r})") is None
    done = set()
    for _ in range(500):
        p, what = rng.choice(ps), rng.choice(["lock"] * 6 + ["unlock"] * 2 + ["look"] * 2 + ["close"])
        start, n = rng.randrange(12), rng.choice([0, 1, 2, 3, 5, 9])
        kind = rng.choice([R, W])
        if what == "close":
            rest = ""
        elif what == "look":
            rest = f", {kind}, {start}, {n}"
        else:
            what, rest = "lock", f", {kind if what == 'lock' else fcntl.F_UNLCK}, {start}, {n}, {cmd}"
        answers = []
        for name, at in ("f", path), ("there", work / "plain"):
            answers.append(p(f"{what}({name!r}{rest})"))
            if what == "close":
                assert p(f"open_({name!r}, {str(at)!r})") is None
        if what == "look" and answers[1] != "free":  # there may be several, in any order
            assert answers[0] != "free"
            answers = ["taken"] * 2
        if what == "close" and cmd == OFD_SETLK:
            settle(ps[0], "f", "there")
        done.add((what, answers[1]))
        assert answers[0] == answers[1], (what, rest)
    assert len(done) == 5


def test_K6_a_lock_of_the_row_holds_over_commits_and_renames(part, peers):
    put(part / "r.json", '{"n":0}')
    a = peers(part / "r.json")
    assert a("lock('f')") == "got"
    put(part / "r.json", '{"n":1}')
    os.rename(part / "r.json", part / "s.json")
    b = peers(part / "s.json")
    assert b("lock('f')") == "EAGAIN"
    assert b("look('f')") == (W, 0, 0, a.proc.pid)
    assert a("unlock('f')") == "got"
    assert b("lock('f')") == "got"


def test_K6_a_new_name_keeps_its_locks_when_it_becomes_the_row(part, peers):
    new = part / "new.json"
    a = peers(new, os.O_RDWR | os.O_CREAT)
    assert a(f"lock('f', {W}, 0, 5)") == "got"
    b = peers(new, os.O_RDWR | os.O_CREAT)
    assert b("lock('f')") == "EAGAIN"
    assert a("(os.write(files['f'], b'{}'), os.fsync(files['f']))") == (2, None)
    c = peers(new)
    assert b("lock('f')") == c("lock('f')") == "EAGAIN"
    assert a("close('f')") is None
    assert c("lock('f')") == "got"
    assert b("lock('f')") == "EAGAIN"


def test_K6_flock_and_record_locks_do_not_see_each_other(path, peers):
    with open(path) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        a = peers(path)
        assert a("lock('f')") == "got"


def test_K6_files_of_the_mounts_own_are_locked_too(table, part, peers):
    put(part / "r.json", "{}")
    a, b = (peers(table / ".batch", os.O_WRONLY) for _ in "ab")
    assert a("lock('f')") == "got"
    assert b("lock('f')") == "EAGAIN"
    assert a("close('f')") is None
    assert b("lock('f')") == "got"
    a, b = (peers(part / ".rows.ndjson", os.O_RDONLY) for _ in "ab")
    assert a(f"lock('f', {R})") == b(f"lock('f', {R})") == "got"
    assert b(f"lock('f', {W})") == "EBADF"


def test_K6_a_read_only_mount_gives_shared_locks(mount, store, peers):
    m = mount(store)
    (m / "acct1" / "Tab" / "p").mkdir(parents=True)
    put(m / "acct1" / "Tab" / "p" / "r.json", "{}")
    m.umount()
    path = mount(store, "ro") / "acct1" / "Tab" / "p" / "r.json"
    a, b = peers(path, os.O_RDONLY), peers(path, os.O_RDONLY)
    assert a(f"lock('f', {R})") == b(f"lock('f', {R})") == "got"
    assert a(f"lock('f', {W})") == "EBADF"
    with pytest.raises(OSError):
        os.open(path, os.O_RDWR)


def test_K7_a_wait_ends_with_the_lock_or_with_a_signal(path, peers):
    a, b, c = peers(path), peers(path), peers(path)
    assert a(f"lock('f', {W}, 0, 10)") == "got"
    b.ask(f"wait('f', {R}, 5, 1)")
    c.ask(f"wait('f', {W}, 9, 9)")
    b.waits()
    c.waits()
    c.proc.send_signal(signal.SIGUSR1)
    assert c.answer() == "EINTR"
    assert a("unlock('f', 6, 4)") == "got"
    assert c(f"lock('f', {W}, 6)") == "got"  # what was interrupted is nobody's
    assert a("unlock('f')") == "got"
    assert b.answer() == "got"
    assert a(f"look('f', {W}, 0, 6)") == (R, 5, 1, b.proc.pid)


def test_K7_a_killed_waiter_gets_nothing(path, peers):
    a, b, c = peers(path), peers(path), peers(path)
    assert a("lock('f')") == "got"
    b.ask("wait('f')")
    b.waits()
    b.proc.kill()
    b.proc.wait()
    assert a("unlock('f')") == "got"
    assert c("lock('f')") == "got"


@pytest.mark.parametrize("how", ["close", "kill", "exit", "dup"])
def test_K8_what_a_process_locked_is_free_when_it_closes_or_ends(path, peers, how):
    a, b = peers(path), peers(path)
    assert a("lock('f')") == "got"
    b.ask("wait('f')")
    b.waits()
    if how == "close":
        assert a("close('f')") is None
    elif how == "dup":  # any descriptor of the file
        assert a(f"open_('g', {str(path)!r}, os.O_RDONLY)") is None
        assert a("close('g')") is None
    elif how == "kill":
        a.proc.kill()
    else:
        a.proc.stdin.close()
    assert b.answer() == "got"
    if how == "exit":
        a.proc.stdin = open(os.devnull, "w")


@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_RDONLY])
def test_K8_a_child_that_ends_lets_go_while_its_parent_has_the_file_open(path, peers, flags):
    with open(path) as f:
        fcntl.lockf(f, fcntl.LOCK_SH)  # from now on the mount hears of each close
    fd = os.open(path, flags)
    script = f"import fcntl; fcntl.lockf({fd}, fcntl.LOCK_SH); print('got', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", script], pass_fds=[fd], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"got\n"
    other = peers(path)
    assert other("lock('f')") == "EAGAIN"
    child.communicate(b"\n")
    assert other("lock('f')") == "got"
    os.close(fd)


def test_K8_what_was_opened_to_read_before_the_first_lock_holds_it_till_its_last_close(path, peers):
    """docs/posix.md says so: the mount hears of no earlier close."""
    other = peers(path)  # is there all the time: it must not get the number of who has gone
    fd = os.open(path, os.O_RDONLY)
    subprocess.run([sys.executable, "-c", f"import fcntl; fcntl.lockf({fd}, fcntl.LOCK_SH)"],
                   pass_fds=[fd], check=True)
    assert other("lock('f')") == "EAGAIN"
    other.ask("wait('f')")
    os.close(fd)
    assert other.answer() == "got"


def test_K8_a_close_by_a_child_keeps_the_parents_lock(path, peers):
    other = peers(path)
    with open(path, "r+") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
        subprocess.run(["true"], pass_fds=[f.fileno()], check=True)
        assert other("lock('f')") == "EAGAIN"
    assert other("lock('f')") == "got"


def test_K8_the_next_holder_finds_what_a_close_wrote(part, peers):
    put(part / "r.json", '{"n":0}')
    a, b = peers(part / "r.json"), peers(part / "r.json")
    assert a("lock('f')") == "got"
    assert a("os.pwrite(files['f'], b'{\"n\":1}', 0)") == 7
    b.ask(f"wait('f') and open({str(part / 'r.json')!r}).read()")
    b.waits()
    assert a("close('f')") is None
    assert b.answer() == '{"n":1}'


def test_K8_no_update_is_lost_among_those_who_lock(part):
    """Four processes count up one row."""
    put(part / "r.json", '{"n":0}')
    script = """
import fcntl, json, sys
for _ in range(50):
    with open(sys.argv[2], "r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        with open(sys.argv[1]) as f:
            n = json.load(f)["n"]
        with open(sys.argv[1], "w") as f:
            f.write('{"n":%d}' % (n + 1))
"""
    put(part / "lock.json", "{}")
    workers = [subprocess.Popen([sys.executable, "-c", script, part / "r.json", part / "lock.json"])
               for _ in range(4)]
    assert [w.wait(60) for w in workers] == [0] * 4
    assert (part / "r.json").read_bytes() == b'{"n":200}'


def test_K9_a_circle_of_waits_is_refused(part, peers):
    for i in range(3):
        put(part / f"{i}.json", "{}")
    ps = [peers(part / f"{i}.json") for i in range(3)]
    for i, p in enumerate(ps):
        assert p("lock('f')") == "got"
        assert p(f"open_('next', {str(part / f'{(i + 1) % 3}.json')!r})") is None
    for p in ps[:2]:
        p.ask("wait('next')")
        p.waits()
    assert ps[2]("wait('next')") == "EDEADLK"
    assert ps[2]("close('f')") is None
    assert ps[1].answer() == "got"
    assert ps[1]("close('f')") is None
    assert ps[0].answer() == "got"


def test_K9_who_upgrades_together_is_told(path, peers):
    a, b = peers(path), peers(path)
    assert a(f"lock('f', {R})") == b(f"lock('f', {R})") == "got"
    a.ask("wait('f')")
    a.waits()
    assert b("wait('f')") == "EDEADLK"
    assert b("unlock('f')") == "got"
    assert a.answer() == "got"


def test_K10_locks_of_an_open_file_description(path, peers):
    """They are the description's, so two of one process exclude each other, and the last close releases."""
    a = peers(path)
    assert a(f"open_('g', {str(path)!r})") is None
    assert a(f"lock('f', {W}, 0, 0, {OFD_SETLK})") == "got"
    assert a(f"lock('g', {W}, 0, 0, {OFD_SETLK})") == "EAGAIN"
    assert a("lock('g')") == "EAGAIN"
    assert a(f"open_('h', {str(path)!r})") is None
    assert a("close('h')") is None
    b = peers(path)
    b.ask(f"lock('f', {W}, 0, 0, {OFD_SETLKW})")
    b.waits()
    assert a("close('f')") is None
    assert b.answer() == "got"


def test_K11_a_user_holds_so_many_ranges_and_no_more(mount, store, work, peers, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("needs root to be another user")
    ranges = 16
    work.chmod(0o755)
    monkeypatch.setitem(conftest.ENV, "ROWFS_MOUNT_LIMITS", f"ranges={ranges}")
    m = mount(store, "allow_other")
    part = m / "acct1" / "Tab" / "p"
    part.mkdir(parents=True)
    put(part / "r.json", "{}")
    (part / "r.json").chmod(0o666)
    path = str(part / "r.json")
    a, b, owner = peers(path, user=12345), peers(path, user=12346), peers(path)
    mine = ranges // 4
    for i in range(mine):
        assert a(f"lock('f', {R}, {2 * i}, 1)") == "got"
    assert a(f"lock('f', {R}, 1000, 1)") == "ENOLCK"
    assert a(f"lock('f', {R}, 1, 1)") == "got"  # it makes one of two
    assert a(f"lock('f', {R}, 1000, 2)") == a(f"lock('f', {R}, 1002, 2)") == "got"
    assert a(f"lock('f', {R}, 1010, 1)") == "ENOLCK"
    assert a("unlock('f', 1001, 1)") == "ENOLCK"  # it would make two of one
    assert a("unlock('f', 1000, 1)") == "got"
    assert a("unlock('f')") == "got"
    assert a(f"lock('f', {R}, 1020, 1)") == "got"
    for i in range(mine):
        assert b(f"lock('f', {R}, {2 * i}, 1)") == "got"
    assert b(f"lock('f', {R}, 1000, 1)") == "ENOLCK"
    for i in range(ranges - mine - 1):
        assert owner(f"lock('f', {R}, {2 * i}, 1)") == "got"
    assert owner(f"lock('f', {R}, 1000, 1)") == "ENOLCK"
    assert a("close('f')") is None
    assert owner(f"lock('f', {R}, 1000, 1)") == "got"


def test_K12_sqlite_counts_in_an_ordinary_file(part):
    """sqlite3's own locks are fcntl's."""
    script = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
db.execute("CREATE TABLE IF NOT EXISTS t (n)")
for _ in range(25):
    db.execute("BEGIN IMMEDIATE")
    n = db.execute("SELECT coalesce(max(n), 0) FROM t").fetchone()[0]
    db.execute("INSERT INTO t VALUES (?)", (n + 1,))
    db.execute("COMMIT")
"""
    workers = [subprocess.Popen([sys.executable, "-c", script, part / "count.db"])
               for _ in range(3)]
    assert [w.wait(100) for w in workers] == [0] * 3
    said = subprocess.run(["sqlite3", part / "count.db",
                           "SELECT count(*), max(n) FROM t; PRAGMA integrity_check"],
                          capture_output=True, text=True, check=True).stdout
    assert said == "75|75\nok\n"
