# SPDX-License-Identifier: MIT
"""Control files as such, whatever they hold: who may use them, what a file descriptor of
one can do, what many users of them do to each other, and how all of it ends."""

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import random
import signal
import stat
import subprocess
import sys
import time

import pytest

from tools import busy, fork, get, put, raises

NOBODY = 65534
FILES = (".batch", ".batch-check", ".rows.csv", ".rows.ndjson")


def fill(rowfs, store, rows):
    lines = "".join(f'{{"PartitionKey":"p","RowKey":"{i:06}","n":{i},"text":"row {i}"}}\n'
                    for i in range(rows))
    rowfs("import", store, "acct1/Blogs", input=lines)


def as_nobody(action):
    """The errno with which another user's action ends; 0: none."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            action()
            code = 0
        except OSError as e:
            code = e.errno
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def shared(mount, store, work):
    """A table with a row, on a mount that other users may enter."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    work.chmod(0o755)
    m = mount(store, "allow_other")
    part = m / "acct1/Blogs/p"
    part.mkdir(parents=True)
    put(part / "r.json", '{"A":1}')
    return m


# ---- who may ----

def test_T1_control_files_have_the_mode_and_the_owner_of_their_directory(shared):
    table = shared / "acct1/Blogs"
    for mode in (0o755, 0o777, 0o750, 0o700, 0o711, 0o733, 0o1777):
        table.chmod(mode)
        os.chown(table, NOBODY, 7)
        wanted = mode & 0o666 & (~0o022 if mode & stat.S_ISVTX else 0o666)
        for name in FILES:
            st = os.stat(table / name)
            assert (stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid) == (wanted, NOBODY, 7)
        assert stat.S_IMODE(os.stat(table / ".query").st_mode) & 0o555 == mode & 0o555
        assert stat.S_IMODE(os.stat(table / ".query/A eq 1.count").st_mode) == mode & 0o444
        os.chown(table, 0, 0)


def test_T1_control_files_give_nobody_more_than_their_directory_does(shared):
    table = shared / "acct1/Blogs"
    part = table / "p"
    change = '[{"upsert":{"PartitionKey":"p","RowKey":"x","A":2}}]'
    write = {d: lambda d=d: put(d / ".batch", change) for d in (table, part)}
    feed = lambda: put(part / ".rows.ndjson", '{"RowKey":"y"}\n')
    read = {d: lambda d=d: get(d / ".rows.ndjson") for d in (table, part)}
    query = lambda: get(table / ".query/A eq 1.ndjson")
    browse = lambda: os.listdir(table / ".query/A eq 1")
    for d in (table, part):
        assert as_nobody(read[d]) == 0
        assert as_nobody(write[d]) == errno.EACCES
    assert as_nobody(feed) == errno.EACCES
    assert as_nobody(query) == as_nobody(browse) == 0
    for mode in (0o700, 0o711):  # at once, whatever the kernel had kept
        table.chmod(mode)
        for action in (read[table], write[table], query, browse):
            assert as_nobody(action) == errno.EACCES
    table.chmod(0o755)
    part.chmod(0o711)
    assert as_nobody(read[part]) == errno.EACCES
    part.chmod(0o777)
    assert as_nobody(read[part]) == as_nobody(write[part]) == as_nobody(feed) == 0
    assert as_nobody(write[table]) == errno.EACCES
    assert sorted(os.listdir(part)) == ["r.json", "x.json", "y.json"]


def test_T1_a_users_own_table_has_control_files_of_its_own(shared):
    (shared / "acct1").chmod(0o777)
    own = shared / "acct1/Own"
    assert as_nobody(own.mkdir) == 0
    change = '[{"insert":{"PartitionKey":"p","RowKey":"x","A":2}}]'
    assert as_nobody(lambda: put(own / ".batch", change)) == 0
    assert as_nobody(lambda: get(own / "p/x.json")) == 0


def test_V3_what_was_refused_or_removed_is_its_owners_business(shared):
    part = shared / "acct1/Blogs/p"
    part.chmod(0o700)
    with raises("EINVAL"):
        put(part / "r.json", "{bad")
    os.unlink(part / "r.json")
    room = shared / ".rowfs"
    for name in ("rejected", "trash"):
        assert os.listdir(room / name)
        assert as_nobody(lambda: os.listdir(room / name)) == errno.EACCES
    assert as_nobody(lambda: get(room / "errors")) == errno.EACCES
    assert as_nobody(lambda: get(room / "version")) == 0
    assert as_nobody((room / "snapshots/s").mkdir) == errno.EACCES


# ---- what a descriptor can do ----

def mapping_error(fd, flags):
    """Of mmap(2): Python's own refuses what seems empty."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, flags, fd, ctypes.c_long(0))
    return ctypes.get_errno() if at == ctypes.c_void_p(-1).value else 0


def test_T1_what_a_stream_is_to_other_system_calls(table, rowfs, store):
    fill(rowfs, store, 3000)
    path = table / ".rows.ndjson"
    whole = get(path)
    fd = os.open(path, os.O_RDONLY)
    assert os.fstat(fd).st_size == len(whole) and whole.count(b"\n") == 3000
    assert mapping_error(fd, mmap.MAP_SHARED) == errno.ENODEV
    direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 1 << 20)
    n = os.readv(direct, [page])
    assert 0 < n and page[:n] == whole[:n]
    os.close(fd)
    os.close(direct)


def test_T1_control_files_take_locks(part):
    for name in FILES[:3]:
        a, b = (os.open(part / name, os.O_RDONLY) for _ in range(2))
        fcntl.flock(a, fcntl.LOCK_EX)
        with raises("EWOULDBLOCK"):
            fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(a)
        fcntl.flock(b, fcntl.LOCK_EX)  # waits: the kernel tells of a last close afterwards
        os.close(b)


def test_T1_a_read_only_mount_changes_nothing_by_control_files(mnt, mount, part, store):
    put(part / "r.json", "{}")
    mnt.umount()
    m = mount(store, "ro", at=mnt.path)
    for d in (m / "acct1/Blogs", m / "acct1/Blogs/Channel_19"):
        for name in FILES:
            with raises("EROFS"):
                os.open(d / name, os.O_WRONLY)
        assert get(d / ".rows.ndjson").count(b"\n") == 1
    with raises("EROFS"):
        os.mkdir(m / ".rowfs/snapshots/s")


# ---- many at once ----

def readers_of_one_handle(path, n):
    """Processes that all wait for bytes of one open file."""
    fd = os.open(path, os.O_RDONLY)
    all_of_them = [subprocess.Popen(["cat"], stdin=fd, stdout=subprocess.PIPE) for _ in range(n)]
    os.close(fd)
    return all_of_them


@pytest.mark.parametrize("one_handle", [True, False])
def test_Q8_slow_readers_keep_no_thread_from_others(table, rowfs, store, one_handle):
    """More than there are threads; later requests are served before they are through."""
    fill(rowfs, store, 60_000)
    none = [table / f".query/text eq 'none{i}'.count" for i in range(1 if one_handle else 40)]
    slow = (readers_of_one_handle(none[0], 40) if one_handle else
            [subprocess.Popen(["cat", str(p)], stdout=subprocess.PIPE) for p in none])
    assert get(table / ".query/PartitionKey eq 'p' and RowKey eq '000007'.count") == b"1\n"
    if not one_handle:
        assert sum(p.poll() is None for p in slow) > 10
    answers = [p.communicate(timeout=100)[0] for p in slow]
    assert b"".join(answers) == b"0\n" * len(none)


def test_Q8_ctrl_c_ends_who_waits_for_a_turn(table, rowfs, store):
    fill(rowfs, store, 60_000)
    slow = readers_of_one_handle(table / ".query/text eq 'none'.count", 20)
    get(table / "p/000001.json")
    for p in slow:
        p.send_signal(signal.SIGINT)
    assert {p.wait(60) for p in slow} <= {-signal.SIGINT, 0}
    assert json.loads(get(table / "p/000001.json"))["n"] == 1
    for p in slow:
        p.stdout.close()


# ---- the end ----

def change_sets(part, seed):
    """Until the mount is gone."""
    rng = random.Random(seed)
    while True:
        rows = [{"upsert": {"RowKey": f"k{k}", "N": seed}} for k in rng.sample(range(1000), 50)]
        try:
            put(f"{part}/.batch", json.dumps(rows))
        except OSError as e:
            assert e.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.EPERM), e
            return


def looking(part):
    """Takes the directory's lock, for reading, all the time."""
    with contextlib.suppress(OSError):
        while True:
            with contextlib.suppress(FileNotFoundError):
                os.stat(f"{part}/k{random.randrange(1000)}.json")
            os.mkdir(f"{part}/.d{os.getpid()}")
            os.rmdir(f"{part}/.d{os.getpid()}")


@pytest.mark.parametrize("end", ["sigterm", "kill9"])
def test_S3_a_mount_ends_with_change_sets_and_streams_in_flight(rowfs, store, mnt, part, end):
    """kill -9 can leave a server half dead: a thread of it waits, in the kernel, for the lock
    of a directory, whose holder waits for the server."""
    fill(rowfs, store, 20_000)
    for i in range(0, 1000, 10):
        put(part / f"k{i}.json", "{}")
    clients = [fork.Process(target=change_sets, args=(str(part), s)) for s in range(4)]
    clients += [fork.Process(target=busy, args=(str(part), s)) for s in range(3)]
    clients += [fork.Process(target=looking, args=(str(part),)) for _ in range(3)]
    scans = [subprocess.Popen(["cat", str(part / f"../.query/text eq 'none{i}'.count")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(10)]
    stream = os.open(part / "../.rows.ndjson", os.O_RDONLY)
    assert os.read(stream, 10)
    for c in clients:
        c.start()
    time.sleep(0.5)  # the clients are in the middle of every kind of work
    try:
        if end == "sigterm":
            mnt.sigterm()
        else:
            mnt.proc.kill()
            assert rowfs("umount", mnt.path, timeout=60).returncode == 0
            assert mnt.proc.wait(60) == -signal.SIGKILL
        for c in clients:
            c.join(60)
            assert not c.is_alive(), "a client hangs"
        for s in scans:
            s.communicate(timeout=60)
    finally:
        os.close(stream)
        for c in clients:
            c.kill()
    mnt._watchdog.cancel()
    mnt.start()
    rows = [json.loads(line) for line in get(part / ".rows.ndjson").splitlines()]
    assert len(rows) == len({r["RowKey"] for r in rows})


# Many writes of one process, while others of it look at everything in the directory and try to take
# the control file away.
WRITES_BESIDE = r"""
import contextlib, os, sys, threading
part, name, how = sys.argv[1:]
path, ended = f"{part}/{name}", threading.Event()
ways = {"unlink": lambda: os.unlink(path), "rename": lambda: os.rename(path, f"{part}/z.json"),
        "look": lambda: [os.stat(e) for e in os.scandir(part)]}

def again_and_again(way):
    while not ended.is_set():
        with contextlib.suppress(OSError):
            ways[way]()

threads = [threading.Thread(target=again_and_again, args=(w,)) for w in ("look", how, how)]
for t in threads:
    t.start()
for k in range(3):
    fd = os.open(path, os.O_RDWR)
    if name == ".batch":
        os.write(fd, b'[{"upsert": {"RowKey": "r0", "N": %d}}]' % k)
        os.fsync(fd)
    else:
        os.write(fd, b"".join(b'{"RowKey":"r%d","N":%d}\n' % (i, k) for i in range(5)))
    os.close(fd)
ended.set()
for t in threads:
    t.join()
"""


@pytest.mark.parametrize("name", [".batch", ".rows.ndjson"])
@pytest.mark.parametrize("how", ["unlink", "rename"])
def test_a_control_file_is_written_while_others_try_to_take_it_away(part, name, how):
    """The kernel holds the file while it is written and fsynced, and the directory while it waits for
    the file to remove it: who has written must not wait for the directory."""
    os.listdir(part)
    subprocess.run([sys.executable, "-c", WRITES_BESIDE, part, name, how], check=True, timeout=200)
    assert (part / "r0.json").read_bytes() == b'{"N":2}\n'


# One thread closes a duplicate, which decides the change set, while another goes on writing.
CLOSE_BESIDE = r"""
import contextlib, os, sys, threading
part, ended = sys.argv[1], threading.Event()
path = f"{part}/.batch"
ways = (lambda: os.unlink(path), lambda: [os.stat(e) for e in os.scandir(part)])

def again_and_again(way):
    while not ended.is_set():
        with contextlib.suppress(OSError):
            way()

threads = [threading.Thread(target=again_and_again, args=(w,)) for w in (*ways, ways[0])]
for t in threads:
    t.start()
for k in range(5):
    fd = os.open(path, os.O_RDWR)
    os.write(fd, b'[{"upsert": {"RowKey": "r0", "N": %d}}]' % k)
    closing = threading.Thread(target=os.close, args=(os.dup(fd),))
    closing.start()
    while closing.is_alive():
        os.write(fd, b" ")  # behind the change set, or the next one
    with contextlib.suppress(OSError):
        os.close(fd)
ended.set()
for t in threads:
    t.join()
"""


def test_a_change_set_is_decided_by_a_close_while_others_try_to_take_its_file_away(part):
    """The kernel holds the file for a write that waits for its turn behind the close."""
    os.listdir(part)
    subprocess.run([sys.executable, "-c", CLOSE_BESIDE, part], check=True, timeout=200)
    assert (part / "r0.json").read_bytes() == b'{"N":4}\n'
