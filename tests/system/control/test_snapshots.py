# SPDX-License-Identifier: MIT
"""Snapshots (P): .rowfs/snapshots/NAME is the whole store as it was when NAME was made,
read-only, until it is let go or ended; and the backups that are made from one."""

import contextlib
import errno
import json
import mmap
import os
import subprocess
import threading
import time

import pytest

from rest_client import ACCOUNT, NONE, Client, entity_path, ok, parse_batch
from tools import errors, get, need, put, raises, reason, rows, sanitized, sh, tree, xattr, wait_for

MOST = 32  # snapshots at a time


def snap(m, name="one"):
    path = m / ".rowfs/snapshots" / name
    os.mkdir(path)
    return path


def live(m):
    """The same of the mount, without .rowfs."""
    return tree(m.path)


def forced(m):
    return [e for e in errors(m) if e["call"] == "snapshot"]


@pytest.fixture
def full(rest_mount, rest_store):
    """Both front ends, and one of everything: rows of both front ends, long and empty keys, awkward
    names, ordinary files, dot folders."""
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Blogs"), 201)
        long_key = "k" * 400
        for pk, rk in (("p", "r"), ("", ""), (long_key, long_key + "2"), ("p", long_key),
                       ("it's \"q\" ", "100%"), (".dot", ".dot"), ("\U0001f600", "ä b"),
                       ("\ufffd", "\U00010000")):
            ok(client.upsert("Blogs", pk, rk, {
                "Text": "x", "Long@odata.type": "Edm.Int64", "Long": "5", "F": 1.5,
                "When@odata.type": "Edm.DateTime", "When": "2020-01-02T03:04:05.1234567Z",
                "Bin@odata.type": "Edm.Binary", "Bin": "AQID",
                "Id@odata.type": "Edm.Guid", "Id": "c9da6455-213d-42c9-9a79-3e9149a57833",
            }), 204)
        ok(client.create_table("Empty"), 201)
    part = m / ACCOUNT / "Blogs/p"
    put(part / "mine.json", '{ "Spaces": "kept",\n  "N": 1.50 }\n')
    put(part / "notes.txt", "beside the rows")
    put(part / ".hidden", "")
    (part / ".git/objects").mkdir(parents=True)
    put(part / ".git/objects/big", os.urandom(3_000_000))
    os.chmod(part / "mine.json", 0o640)
    os.utime(part / "mine.json", ns=(1, 1_000_000_000_123_456_789))
    os.chmod(part / ".git", 0o700)
    (m / ACCOUNT / "Blogs/made").mkdir()
    return m


def by_rest(m):
    with Client(m.port) as client:
        return {(r["PartitionKey"], r["RowKey"]): {k: v for k, v in r.items() if k not in
                ("Timestamp", "odata.etag")} for r in client.all("Blogs")}


# ---- what it shows


def test_P1_a_snapshot_is_the_tree_of_the_mount(full):
    s = snap(full)
    assert rows(full / ".rowfs/snapshots") == ["one"]
    assert tree(s) == live(full) and len(tree(s)) > 20
    for d, names, files in os.walk(s):
        at = os.path.relpath(d, s)
        there = [n for n in os.listdir(full.path if at == "." else full / at) if n != ".rowfs"]
        assert os.listdir(d) == there
    assert os.lstat(s).st_nlink == 1


def test_P1_by_name_as_by_listing(full):
    s = snap(full)
    part = s / ACCOUNT / "Blogs/p"
    with raises("ENOENT"):
        os.stat(part / "none.json")
    with raises("ENOENT"):
        os.stat(part / "%61.json")
    with raises("ENOENT"):
        os.stat(s / ACCOUNT / "blogs")
    with raises("ENOENT"):
        os.stat(s / ".rowfs")
    with raises("ENAMETOOLONG"):
        os.stat(part / ("n" * 256))
    with raises("ENOENT"):
        os.stat(full / ".rowfs/snapshots/none")
    with raises("ENOTDIR"):
        os.listdir(part / "r.json")
    with raises("EISDIR"):
        os.open(part, os.O_RDONLY | os.O_CREAT, 0o644)


def test_P1_no_control_names_inside(mount, store):
    m = mount(store, "control=list")
    (m / "acct1/Blogs/p").mkdir(parents=True)
    s = snap(m)
    assert ".rowfs" in os.listdir(m.path) and os.listdir(s) == ["acct1"]
    assert os.listdir(s / "acct1/Blogs") == ["p"] and os.listdir(s / "acct1/Blogs/p") == []
    for name in (".batch", ".batch-check", ".query", ".rows.ndjson", ".rows.csv"):
        with raises("ENOENT"):
            os.stat(s / "acct1/Blogs" / name)


def test_P1_a_listing_of_many_rows(mnt, part, rowfs):
    lines = "".join(json.dumps({"PartitionKey": "many", "RowKey": f"{i:05}", "N": i}) + "\n"
                    for i in range(5000))
    rowfs("import", mnt.store, "acct1/Blogs", input=lines)
    s = snap(mnt) / "acct1/Blogs/many"
    with os.scandir(s) as found:
        first = [next(found).name for _ in range(100)]
        sh(f"rm -r '{part.parent}/many'")
        names = first + [e.name for e in found]
    assert names == [f"{i:05}.json" for i in range(5000)]
    assert not (part.parent / "many").exists()
    assert get(s / "04321.json") == b'{"N":4321}\n'


def test_P1_ordinary_files_of_any_size(mnt, part):
    data = os.urandom(1 << 20) * 48
    put(part / "big", data)
    s = snap(mnt) / "acct1/Blogs/Channel_19/big"
    put(part / "big", "small now")
    before = mnt.rss_kib()
    with open(s, "rb") as f:
        assert all(f.read(1 << 20) == data[:1 << 20] for _ in range(48)) and not f.read(1)
        f.seek(5_000_001)
        assert f.read(10) == data[5_000_001:5_000_011]
        with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            assert mapped[-100:] == data[-100:]
    assert mnt.rss_kib() - before < 16 << 10 or sanitized()


CHANGES = {
    "overwrite": lambda p, c: put(p / "r.json", '{"A":2}'),
    "rename over": lambda p, c: (put(p / "t", '{"A":3}'), os.rename(p / "t", p / "r.json")),
    "remove": lambda p, c: os.unlink(p / "r.json"),
    "move away": lambda p, c: os.rename(p / "r.json", p / "other.json"),
    "to a file": lambda p, c: os.rename(p / "r.json", p / "r.txt"),
    "attributes": lambda p, c: (os.chmod(p / "r.json", 0o600), os.utime(p / "r.json", (1, 1))),
    "partition": lambda p, c: os.rename(p, p.parent / "moved"),
    "table": lambda p, c: os.rename(p.parent, p.parent.parent / "Moved"),
    "account": lambda p, c: sh(f"rm -r '{p.parent.parent}'"),
    "file": lambda p, c: put(p / "f.txt", "changed"),
    "file in place": lambda p, c: sh("printf X | dd of=f.txt conv=notrunc status=none", p),
    "file cut": lambda p, c: os.truncate(p / "f.txt", 1),
    "new": lambda p, c: (put(p / "new.json", "{}"), (p.parent / "q").mkdir()),
    "by REST": lambda p, c: ok(c.replace("Blogs", "p", "r", {"A": 9}), 204),
    "removed by REST": lambda p, c: ok(c.delete("Blogs", "p", "r"), 204),
    "table by REST": lambda p, c: ok(c.delete_table("Blogs"), 204),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("hot", [True, False], ids=["hot", "cold"])
def test_P2_what_comes_later_does_not_show(rest_mount, rest_store, change, hot):
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Blogs"), 201)
        part = m / ACCOUNT / "Blogs/p"
        part.mkdir()
        put(part / "r.json", '{"A":1}')
        put(part / "f.txt", "as it was")
        before = live(m)
        s = snap(m)
        if hot:
            assert set(tree(s)) == set(before)
        CHANGES[change](part, client)
        assert live(m) != before
        assert tree(s) == before
        assert get(s / ACCOUNT / "Blogs/p/r.json") == b'{"A":1}'


def test_P2_one_moment(rest_mount, rest_store):
    """Change sets are in it whole; of what one writer does in a row, a beginning; and all that
    was acknowledged before the mkdir."""
    m = rest_mount(rest_store)
    stop, done, failed = threading.Event(), [0, 0], []
    with Client(m.port) as client:
        ok(client.create_table("Pairs"), 201)
    part = m / ACCOUNT / "Pairs/files"
    part.mkdir()
    for name in ("a", "b"):
        put(part / f"{name}.json", '{"N":0}')

    def batches():
        with Client(m.port) as client:
            n = 0
            while not stop.is_set():
                n += 1
                ops = [("PUT", entity_path("Pairs", "sets", f"{i}"), {}, {"N": n})
                       for i in range(5)]
                assert all(p.status == 204 for p in parse_batch(client.batch(ops)))
                done[0] = n

    def files():
        n = 0
        while not stop.is_set():
            n += 1
            put(part / "a.json", json.dumps({"N": n}))
            put(part / "t", json.dumps({"N": n}))
            os.rename(part / "t", part / "b.json")
            done[1] = n

    def run(f):
        try:
            f()
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=[f]) for f in (batches, files)]
    for t in threads:
        t.start()
    try:
        wait_for(lambda: failed or all(done))
        for i in range(60):
            acknowledged = list(done)
            s = snap(m, f"s{i}") / ACCOUNT / "Pairs"
            sets = [json.loads(get(s / f"sets/{k}.json"))["N"] for k in range(5)]
            a, b = (json.loads(get(s / f"files/{k}.json"))["N"] for k in "ab")
            assert len(set(sets)) == 1 and sets[0] >= acknowledged[0]
            assert b <= a <= b + 1 and b >= acknowledged[1]
            assert sets == [json.loads(get(s / f"sets/{k}.json"))["N"] for k in range(5)]
            os.rmdir(m / f".rowfs/snapshots/s{i}")
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not failed


def test_P3_nothing_in_it_can_be_changed(full):
    s = snap(full)
    part = s / ACCOUNT / "Blogs/p"
    row = part / "mine.json"
    outside = full / ACCOUNT / "Blogs/p/outside"
    put(outside, "{}")
    before = tree(s)
    for f in (
        lambda: os.open(row, os.O_WRONLY), lambda: os.open(row, os.O_RDWR),
        lambda: os.open(row, os.O_WRONLY | os.O_TRUNC), lambda: os.truncate(row, 0),
        lambda: put(part / "new", "x"), lambda: os.unlink(row), lambda: os.rmdir(part),
        lambda: os.mkdir(part / "new"), lambda: os.mkdir(s / "newacct"),
        lambda: os.rmdir(s / ACCOUNT), lambda: os.rename(row, part / "other.json"),
        lambda: os.rename(row, outside), lambda: os.rename(outside, row),
        lambda: os.rename(outside, part / "new"), lambda: os.chmod(row, 0o600),
        lambda: os.utime(row), lambda: os.chown(row, 1, 1),
        lambda: os.setxattr(row, "user.rowfs.if_match", b"*"),
        lambda: os.setxattr(row, "user.rowfs.lifetime", b"5"),
        lambda: os.removexattr(s, "user.rowfs.lifetime"),
        lambda: put(full / ".rowfs/snapshots/file", "x"),
        lambda: os.rename(s, full / ".rowfs/snapshots/two"),
        lambda: os.rename(s, full / ACCOUNT / "two"), lambda: os.chmod(s, 0o700),
    ):
        with raises("EROFS"):
            f()
    done = sh(f"rm -r '{s}'", check=False)
    assert done.returncode == 1 and "Read-only file system" in done.stderr
    assert tree(s) == before and get(outside) == b"{}"


def test_P4_names(mnt):
    top = mnt / ".rowfs/snapshots"
    for name in ("a b", "it's", "100%", "ä\U0001f600", "n" * 255, "2026-11-22T02:06"):
        os.mkdir(top / name)
        assert name in os.listdir(top)
        with raises("EEXIST"):
            os.mkdir(top / name)
        os.rmdir(top / name)
    with raises("EINVAL"):
        os.mkdir(top / ".hidden")
    assert "must not begin with a dot" in reason(top)
    with raises("EILSEQ"):
        os.mkdir(os.fsencode(top) + b"/\xff")
    with raises("ENAMETOOLONG"):
        os.mkdir(top / ("n" * 256))
    assert os.listdir(top) == []


def test_P4_so_many_at_a_time(mnt):
    top = mnt / ".rowfs/snapshots"
    for i in range(MOST):
        os.mkdir(top / f"s{i}")
    with raises("ENOSPC"):
        os.mkdir(top / "more")
    assert f"{MOST} snapshots are held" in reason(top)
    assert os.listdir(top) == [f"s{i}" for i in range(MOST)]
    os.rmdir(top / "s7")
    os.mkdir(top / "more")
    assert len(os.listdir(top)) == MOST
    sh(f"rmdir '{top}'/*")
    assert os.listdir(top) == []


def test_P4_two_who_make_the_same(mnt):
    won, top = [], mnt / ".rowfs/snapshots"

    def make(k):
        for i in range(20):
            with contextlib.suppress(FileExistsError):
                os.mkdir(top / f"s{i}")
                won.append(i)

    threads = [threading.Thread(target=make, args=[k]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(won) == list(range(20)) and len(os.listdir(top)) == 20


# ---- its end


def test_P5_rmdir_lets_it_go(mnt, part):
    put(part / "a.json", '{"A":1}')
    put(part / "b.json", '{"B":1}')
    put(part / "file", "x" * 300000)
    s = snap(mnt)
    inside = s / "acct1/Blogs/Channel_19"
    fd = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    row, file = os.open(inside / "a.json", os.O_RDONLY), os.open(inside / "file", os.O_RDONLY)
    assert os.stat(inside / "b.json").st_size == 7
    os.rmdir(s)
    assert not s.exists() and os.listdir(mnt / ".rowfs/snapshots") == []
    for f in (lambda: os.stat("b.json", dir_fd=fd), lambda: os.listdir(fd),
              lambda: os.open("a.json", os.O_RDONLY, dir_fd=fd),
              lambda: os.pread(file, 1000, 200000)):
        with raises("ESTALE"):
            f()
    assert os.pread(row, 100, 0) == b'{"A":1}'  # an open row stays what it was
    for f in (fd, row, file):
        os.close(f)
    with raises("ENOENT"):
        os.rmdir(s)


def test_P5_the_same_name_is_another_snapshot(mnt, part):
    put(part / "a.json", '{"A":1}')
    numbers = set()
    for i in range(20):
        s = snap(mnt)
        row = s / "acct1/Blogs/Channel_19/a.json"
        assert get(row) == b'{"A":%d}' % (i + 1)
        numbers.add(os.stat(row).st_ino)
        put(part / "a.json", '{"A":%d}' % (i + 2))
        assert get(row) == b'{"A":%d}' % (i + 1)
        os.rmdir(s)
    assert len(numbers) == 20


def test_P5_readers_beside_the_end(mnt, part):
    for i in range(50):
        put(part / f"{i}.json", '{"A":1}')
    stop, problems, top = threading.Event(), [], mnt / ".rowfs/snapshots"

    def read():
        while not stop.is_set():
            try:
                for d, _, names in os.walk(top):
                    for n in names:
                        with open(os.path.join(d, n), "rb") as f:
                            if f.read() != b'{"A":1}':
                                problems.append(n)
            except OSError as e:
                if e.errno not in (errno.ESTALE, errno.ENOENT):
                    problems.append(e)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(60):
        os.rmdir(snap(mnt))
    stop.set()
    for t in threads:
        t.join()
    assert not problems


def test_P6_a_lifetime(mnt, part):
    put(part / "a.json", "{}")
    s, other = snap(mnt), snap(mnt, "other")
    assert xattr(s, "lifetime") == "0"
    os.setxattr(s, "user.rowfs.lifetime", b"3600")
    assert 3500 < int(xattr(s, "lifetime")) <= 3600
    for bad in (b"", b"-1", b"soon", b"1.5", b"99999999999999999999"):
        with raises("EINVAL"):
            os.setxattr(s, "user.rowfs.lifetime", bad)
    os.setxattr(s, "user.rowfs.lifetime", b"0")
    assert xattr(s, "lifetime") == "0"
    fd = os.open(s / "acct1", os.O_RDONLY | os.O_DIRECTORY)
    os.setxattr(s, "user.rowfs.lifetime", b"1")
    wait_for(lambda: os.listdir(mnt / ".rowfs/snapshots") == ["other"])
    with raises("ENOENT"):
        os.stat(s)
    wait_for(lambda: forced(mnt))
    with raises("ESTALE"):
        os.listdir(fd)
    os.close(fd)
    assert [e["path"] for e in forced(mnt)] == [".rowfs/snapshots/one"]
    assert "lifetime is over" in forced(mnt)[0]["message"] and "lifetime" in mnt.log()
    assert "lifetime is over" in reason(mnt / ".rowfs/snapshots")
    assert tree(other)


def test_P6_a_lifetime_of_all(mount, store):
    m = mount(store, "snapshot-lifetime=1")
    s = snap(m)
    keep = snap(m, "keep")
    os.setxattr(keep, "user.rowfs.lifetime", b"0")
    wait_for(lambda: os.listdir(m / ".rowfs/snapshots") == ["keep"])
    assert not s.exists()
    os.mkdir(s)


def test_P7_the_log_on_disk_is_bounded(mount, store):
    m = mount(store, "snapshot-log=12M")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    old = snap(m, "old")
    put(part / "file", os.urandom(4 << 20))
    assert 4 << 20 <= int(xattr(old, "log_bytes")) < 12 << 20
    young = snap(m, "young")
    assert int(xattr(young, "log_bytes")) < 1 << 20
    assert os.listdir(m / ".rowfs/snapshots") == ["old", "young"]
    while int(xattr(young, "log_bytes")) < 9 << 20:
        put(part / "file", os.urandom(1 << 20))
    wait_for(lambda: os.listdir(m / ".rowfs/snapshots") == ["young"])
    assert tree(young)
    wait_for(lambda: forced(m))
    assert "the log on disk grew by" in forced(m)[0]["message"]


def test_P7_a_log_that_rests_ends_nothing(mount, store):
    m = mount(store, "snapshot-log=1M")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    os.rmdir(snap(m, "over an empty log"))
    put(part / "file", os.urandom(12 << 20))
    assert os.stat(f"{m.store}-wal").st_size > 8 << 20
    s = snap(m)
    time.sleep(0.3)  # it is watched
    put(part / "r.json", "{}")
    time.sleep(0.3)  # a watcher that counted what was there before ends it meanwhile
    assert tree(s) and not forced(m)


@pytest.mark.parametrize("bad", ["snapshot-log=x", "snapshot-log=", "snapshot-log=-1",
                                 "snapshot-lifetime=1h", "snapshot-lifetime="])
def test_P7_options(rowfs, store, work, bad):
    (work / "at").mkdir()
    done = rowfs("mount", store, work / "at", "-o", bad, check=False)
    assert done.returncode == 2 and bad.split("=")[0] in done.stderr


def test_P8_where_the_disk_is_full_a_snapshot_gives_way(rowfs, mount, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    put(part / "r.json", "{}")
    s = snap(m)
    for i in range(300):  # would fill the disk twice over
        put(part / "r.json", json.dumps({"A": os.urandom(15000).hex()}))
    assert not s.exists()
    wait_for(lambda: forced(m))
    assert "disk is full" in forced(m)[0]["message"]


def small(rowfs, mount, small_disk):
    """A mount on the small disk, and a partition with a row."""
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    put(part / "r.json", "{}")
    return m, part


def test_P8_new_rows_fill_the_disk_and_can_be_removed(rowfs, mount, small_disk):
    """What the log holds must still fit into the store when the snapshot gives way."""
    m, part = small(rowfs, mount, small_disk)
    m.allow("No space|NO_SPACE")
    s, written, held = snap(m), [0] * 4, []

    def write(k):
        try:
            for i in range(300):
                put(part / f"{k}-{i}.json", json.dumps({"A": os.urandom(7000).hex()}))
                written[k] += 1
        except OSError:
            held.append(s.exists())

    threads = [threading.Thread(target=write, args=[k]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not s.exists() and sum(written) * 14000 > 1 << 20
    # All come to the end of the disk, and none of them to that of the snapshot.
    assert held == [False] * 4
    assert len(rows(part)) >= sum(written)
    for name in os.listdir(part):
        os.unlink(part / name)
    put(part / "r.json", '{"A":1}')


def test_P8_removing_under_a_snapshot(rowfs, mount, small_disk):
    m, part = small(rowfs, mount, small_disk)
    m.allow("No space|NO_SPACE")
    with raises("ENOSPC"):
        for i in range(300):
            put(part / f"{i}.json", json.dumps({"A": os.urandom(7000).hex()}))
    snap(m)
    names = os.listdir(part)
    assert len(names) > 50
    for name in names:
        os.unlink(part / name)
    put(part / "r.json", '{"A":1}')


def test_P8_a_young_one_that_holds_what_an_old_one_gathered(rowfs, mount, small_disk):
    m, part = small(rowfs, mount, small_disk)
    old = snap(m, "old")
    while int(xattr(old, "log_bytes")) < 2 << 20:
        put(part / "r.json", json.dumps({"A": os.urandom(15000).hex()}))
    snap(m, "young")
    for _ in range(100):
        put(part / "r.json", json.dumps({"A": os.urandom(15000).hex()}))
    assert os.listdir(m / ".rowfs/snapshots") == []
    assert os.stat(f"{m.store}-wal").st_size < 3 << 20


def test_P9_a_remount_has_none(mnt, part):
    put(part / "a.json", "{}")
    tree(snap(mnt))
    mnt.remount()
    assert os.listdir(mnt / ".rowfs/snapshots") == []
    s = snap(mnt)
    fd = os.open(s / "acct1/Blogs/Channel_19/a.json", os.O_RDONLY)
    put(part / "a.json", '{"A":1}')
    mnt.sigterm()
    os.close(fd)
    assert not os.path.exists(f"{mnt.store}-wal")
    mnt.start()
    assert get(part / "a.json") == b'{"A":1}'


def test_P9_a_killed_daemon_leaves_nothing_of_it(mnt, part, rowfs):
    put(part / "a.json", "{}")
    snap(mnt)
    put(part / "a.json", '{"A":1}')
    for _ in range(4):  # more than the log rests at
        put(part / "file", os.urandom(32 << 20))
    log = f"{mnt.store}-wal"
    assert os.stat(log).st_size > 100 << 20
    mnt.kill9()
    mnt.start()
    assert os.stat(log).st_size < 1 << 20
    assert os.listdir(mnt / ".rowfs/snapshots") == [] and get(part / "a.json") == b'{"A":1}'


def test_P9_a_read_only_mount_makes_none(mount, store):
    m = mount(store, "ro")
    assert os.listdir(m / ".rowfs/snapshots") == []
    with raises("EROFS"):
        snap(m)


# ---- numbers, attributes


def test_P10_inode_numbers_of_their_own(full, work):
    s, other = snap(full), snap(full, "other")
    of = {}
    for top in (full.path, s, other):
        for d, dirs, files in os.walk(top):
            dirs[:] = [n for n in dirs if n != ".rowfs"]
            for n in dirs + files:
                st = os.lstat(os.path.join(d, n))
                of.setdefault((st.st_dev, st.st_ino), []).append(os.path.join(d, n))
    assert all(len(v) == 1 for v in of.values())
    with os.scandir(s / ACCOUNT) as found:
        assert all(e.inode() == os.stat(e.path).st_ino for e in found)
    row = full / ACCOUNT / "Blogs/p/mine.json"
    ino = os.stat(row).st_ino
    put(row, '{"other":1}')
    assert os.stat(row).st_ino == ino
    assert sh(f"cmp '{row}' '{s}/{ACCOUNT}/Blogs/p/mine.json'", check=False).returncode == 1
    diff = sh(f"diff -rq '{full.path}/{ACCOUNT}' '{s}/{ACCOUNT}'", check=False)
    assert diff.stdout.splitlines() == [
        f"Files {row} and {s}/{ACCOUNT}/Blogs/p/mine.json differ"]
    sh(f"tar cf '{work}/t.tar' -C '{full.path}' {ACCOUNT} .rowfs/snapshots/one")
    listing = sh(f"tar tvf '{work}/t.tar'").stdout
    assert not [x for x in listing.splitlines() if x.startswith("h")]


def test_P11_extended_attributes(mnt, part):
    put(part / "a b.json", '{"A":1}')
    s = snap(mnt)
    row = s / "acct1/Blogs/Channel_19/a b.json"
    then = {n: xattr(part / "a b.json", n) for n in ("etag", "timestamp", "row_key",
                                                      "partition_key")}
    put(part / "a b.json", '{"A":2}')
    assert {n: xattr(row, n) for n in then} == then
    assert then["etag"] != xattr(part / "a b.json", "etag") and then["row_key"] == "a b"
    assert xattr(row.parent, "partition_key") == "Channel_19"
    for name in ("error", "if_match", "nothing", "lifetime", "created"):
        with raises("ENODATA"):
            xattr(row, name)
    with raises("ENODATA"):
        xattr(s, "etag")
    assert os.listxattr(s) == [] and os.listxattr(row) == []
    created = xattr(s, "created")
    assert created.endswith("Z") and created.startswith(time.strftime("%Y-", time.gmtime()))
    assert int(xattr(s, "log_bytes")) >= 0


# ---- backups


# Without -@-1 rsync takes times of the same second for the same.
RSYNC = "rsync -a -@-1"


def exactly(a, b):
    """Two trees hold the same, to the nanosecond."""
    left, right = tree(a), tree(b)
    assert set(left) == set(right)
    for k in left:
        assert left[k] == right[k], k


def test_P12_backup_and_restore(full, rest_mount, rest_store, rowfs, work):
    need("rsync")
    keys = by_rest(full)
    nightly, backup = snap(full, "nightly"), work / "backup"
    put(full / ACCOUNT / "Blogs/p/mine.json", '{"changed":"later"}')
    sh(f"{RSYNC} '{nightly}/' '{backup}/'")
    exactly(nightly, backup)
    again = sh(f"{RSYNC} -i '{nightly}/' '{backup}/'").stdout
    assert again == ""
    assert sh(f"{RSYNC} -in --checksum '{nightly}/' '{backup}/'").stdout == ""
    empty = work / "restored.rowfs"
    rowfs("init", empty)
    m2 = rest_mount(empty)
    sh(f"{RSYNC} '{backup}/' '{m2.path}/'")
    exactly(backup, m2.path)
    for d, _, names in os.walk(backup):
        for n in names:
            at = os.path.join(d, n)
            assert subprocess.run(["cmp", at, m2 / os.path.relpath(at, backup)]).returncode == 0
    lines = rowfs("export", m2.store, f"{ACCOUNT}/Blogs").stdout
    restored = {(r["PartitionKey"], r["RowKey"]): r for r in map(json.loads, lines.splitlines())}
    assert set(restored) == set(keys)
    assert restored["", ""]["Long"] == "5" and restored["", ""]["F"] == 1.5
    assert sh(f"{RSYNC} -i '{backup}/' '{m2.path}/'").stdout == ""
    second = snap(m2)
    exactly(nightly, second)


def test_P12_tar(full, mount, rowfs, work):
    nightly = snap(full, "nightly")
    sh(f"tar cf '{work}/b.tar' --format=posix -C '{nightly}' .")
    os.rmdir(nightly)
    empty = work / "restored.rowfs"
    rowfs("init", empty)
    m2 = mount(empty)
    sh(f"tar xf '{work}/b.tar' -C '{m2.path}'")
    exactly(full / ACCOUNT, m2 / ACCOUNT)


def test_P12_consistent_while_writers_go_on(rest_mount, rest_store, work):
    """Money moves between two rows in change sets: every copy has all of it."""
    need("rsync")
    m = rest_mount(rest_store)
    stop, failed = threading.Event(), []
    with Client(m.port) as client:
        ok(client.create_table("Bank"), 201)
        for i in range(20):
            for side in "ab":
                ok(client.upsert("Bank", f"p{i}", side, {"N": 100}), 204)

    def move(seed):
        try:
            with Client(m.port) as client:
                n = seed
                while not stop.is_set():
                    n = (n * 1103515245 + 12345) % (1 << 31)
                    p, x = f"p{n % 10 + seed * 10}", n // 64 % 100
                    ops = [("PUT", entity_path("Bank", p, side), {}, {"N": amount})
                           for side, amount in (("a", 100 + x), ("b", 100 - x))]
                    assert all(r.status == 204 for r in parse_batch(client.batch(ops)))
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=move, args=[k]) for k in (0, 1)]
    for t in threads:
        t.start()
    try:
        for i in range(8):
            s, backup = snap(m, "nightly"), work / f"backup{i % 2}"
            sh(f"{RSYNC} '{s}/' '{backup}/'")
            os.rmdir(s)
            for d in (backup / ACCOUNT / "Bank").iterdir():
                a, b = (json.loads(get(d / f"{side}.json"))["N"] for side in "ab")
                assert a + b == 200, (d, a, b)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not failed


def test_P13_commands_meanwhile(full, rowfs):
    s = snap(full)
    before = tree(s)
    lines = "".join(json.dumps({"PartitionKey": "imp", "RowKey": f"{i}"}) + "\n"
                    for i in range(3000))
    rowfs("import", full.store, f"{ACCOUNT}/Blogs", input=lines)
    assert len(rowfs("export", full.store, f"{ACCOUNT}/Blogs", "imp").stdout.splitlines()) == 3000
    rowfs("check", full.store)
    rowfs("stat", full.store)
    rowfs("account", "remove", full.store, ACCOUNT, "--yes", check=False)
    assert tree(s) == before


def test_P13_the_log_is_given_back(mnt, part):
    """At once, and not at the next change."""
    s = snap(mnt)
    with open(part / "file", "wb", buffering=0) as f:
        for _ in range(20):
            f.seek(0)
            f.write(os.urandom(1 << 20))
    log = os.stat(f"{mnt.store}-wal").st_size
    assert log > 20 << 20 and int(xattr(s, "log_bytes")) > 20 << 20
    os.rmdir(s)
    assert os.stat(f"{mnt.store}-wal").st_size == 0
