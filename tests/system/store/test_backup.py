# SPDX-License-Identifier: MIT
"""`rowfs backup`, and the copy that is kept of a store of an older schema."""

import contextlib
import errno
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import threading
import time

import pytest

import calls
import rest_client
from conftest import BUILD, ENV, add_accounts
from old_schema import as_version_1


# Of the calls at which an upgrade or a backup is struck every so many-th in an ordinary run, all
# with ROWFS_EVERY_CALL=1.
def every(step):
    return 1 if os.environ.get("ROWFS_EVERY_CALL") else step


def lines(*rows):
    return "".join(json.dumps(r) + "\n" for r in rows)


def user_version(path):
    with open(path, "rb") as f:
        return int.from_bytes(f.read(64)[60:], "big")


@pytest.fixture
def acct(rowfs, store):
    rowfs("account", "add", store, "abc")
    rowfs("import", store, "abc/Tab", input=lines(
        *({"PartitionKey": p, "RowKey": f"{i:03}", "N": i} for p in "pq" for i in range(200))))
    return store


@pytest.fixture(params=["alone", "served"])
def place(request, acct):
    if request.param == "served":
        request.getfixturevalue("serve")(acct)
    return acct


def same(rowfs, a, b):
    for before, behind in ((["account", "keys"], ["abc", "--url=http://here"]),
                           (["export"], ["abc/Tab"])):
        one = [rowfs(*before, s, *behind).stdout for s in (a, b)]
        assert one[0] == one[1]


def refused(rowfs, *args, say, **kw):
    done = rowfs("backup", *args, check=False, **kw)
    assert done.returncode == 1 and say in done.stderr, done.stderr
    return done.stderr


# ---- the copy


def test_a_backup_is_a_store_of_its_own(rowfs, place, work, mount):
    copy = work / "copy.rowfs"
    done = rowfs("backup", place, copy)
    assert done.stdout == "" and done.stderr == ""
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    rowfs("check", copy)
    same(rowfs, place, copy)
    assert not list(work.glob("copy.rowfs?*"))
    (mount(copy, at=work / "at") / "abc/Tab/p/000.json").write_text('{"N": 9}')
    # They have nothing in common.
    assert json.loads(rowfs("export", place, "abc/Tab", "p").stdout.split("\n")[0])["N"] == 0


def test_BK4_a_backup_put_in_the_place_of_a_store_restores_it(rowfs, acct, work, serve):
    before = rowfs("export", acct, "abc/Tab").stdout
    rowfs("backup", acct, work / "copy.rowfs")
    rowfs("import", acct, "abc/Tab", input=lines({"PartitionKey": "p", "RowKey": "later"}))
    os.rename(work / "copy.rowfs", acct)
    serve(acct)
    assert rowfs("export", acct, "abc/Tab").stdout == before
    rowfs("import", acct, "abc/Tab", input=lines({"PartitionKey": "p", "RowKey": "new"}))


def test_BK3_a_backup_under_writers_is_a_moment(rowfs, store, work, mount):
    """Each file is closed before the next is written, and of a change set both rows or none."""
    rowfs("account", "add", store, "abc")
    m = mount(store)
    part = m / "abc/Tab/p"
    part.mkdir(parents=True)
    done, asked, stop = [0, 0], [0, 0], threading.Event()

    def rows():
        for i in itertools.count(1):
            if stop.is_set():
                return
            asked[0] = i
            (part / f"{i:06}.json").write_text(json.dumps({"N": i, "pad": "x" * 500}))
            done[0] = i

    def sets():
        for i in itertools.count(1):
            if stop.is_set():
                return
            asked[1] = i
            (m / "abc/Tab/.batch").write_text(json.dumps(
                [{"upsert": {"PartitionKey": "q", "RowKey": k, "N": i}} for k in "ab"]))
            done[1] = i

    threads = [threading.Thread(target=t) for t in (rows, sets)]
    for t in threads:
        t.start()
    try:
        while not all(done):
            time.sleep(0.01)
        for i in range(8):
            copy = work / f"copy{i}"
            least = list(done)
            rowfs("backup", store, copy)
            most = list(asked)
            rowfs("check", copy)
            found = [json.loads(x) for x in rowfs("export", copy, "abc/Tab", "p").stdout.splitlines()]
            assert [r["RowKey"] for r in found] == [f"{n:06}" for n in range(1, len(found) + 1)]
            assert all(r["N"] == int(r["RowKey"]) for r in found)
            assert least[0] <= len(found) <= most[0]
            a, b = [json.loads(x)["N"] for x in rowfs("export", copy, "abc/Tab", "q").stdout.splitlines()]
            assert a == b and least[1] <= a <= most[1]
            time.sleep(0.05)  # the writers get on between two copies
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_a_backup_has_what_rest_has_acknowledged(rowfs, store, work, serve):
    add_accounts(rowfs, store)
    server = serve(store)
    with rest_client.Client(server.port) as client:
        assert client.request("POST", "/Tables", {"TableName": "Tab"}).status == 201
        for i in range(20):
            done = client.request("POST", "/Tab", {"PartitionKey": "p", "RowKey": f"{i:02}"})
            assert done.status == 201
            copy = work / f"copy{i}"
            rowfs("backup", store, copy)
            out = rowfs("export", copy, f"{rest_client.ACCOUNT}/Tab").stdout
            assert len(out.splitlines()) == i + 1


def test_a_backup_of_a_store_that_cannot_be_written(rowfs, acct, work, small_disk):
    store = shutil.copy(acct, small_disk / "store.rowfs")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    rowfs("backup", store, work / "copy")
    rowfs("check", work / "copy")


# ---- what is refused, and what is left then


def test_a_file_that_exists_is_left_as_it_is(rowfs, place, work):
    copy = work / "copy"
    copy.write_text("mine")
    refused(rowfs, place, copy, say="--force")
    assert copy.read_text() == "mine"
    rowfs("backup", place, copy, "--force")
    rowfs("check", copy)
    same(rowfs, place, copy)
    rowfs("backup", place, copy, "-f")
    assert not list(work.glob("copy?*"))


def test_what_is_no_place_for_a_backup(rowfs, place, work):
    (work / "dir").mkdir()
    (work / "link").symlink_to("nowhere")
    (work / "in-use-wal").write_text("a log")
    names = set(os.listdir(work))
    for force in ([], ["--force"]):
        refused(rowfs, place, place, *force, say="is the store itself")
        refused(rowfs, place, work / "dir", *force, say="plain file" if force else "exists already")
        refused(rowfs, place, work / "link", *force, say="plain file" if force else "exists already")
        refused(rowfs, place, work / "in-use", *force, say="in-use-wal")
        refused(rowfs, place, work / "no/dir/x", *force, say="No such file or directory")
        for part in ("-wal", "-shm"):  # of a store: what is acknowledged may be in them alone
            refused(rowfs, place, f"{place}{part}", *force, say="part of a store")
    os.link(place, work / "hard")
    refused(rowfs, place, work / "hard", "--force", say="is the store itself")
    assert set(os.listdir(work)) - {"hard"} <= names | {place.name + "-wal"}
    rowfs("check", place)


def test_a_backup_where_one_may_not_write(rowfs, acct, work):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root to become somebody else")
    os.chmod(work, 0o755)
    os.chown(acct, 65534, 65534)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           str(rowfs.program), "backup", str(acct), str(work / "copy")],
                          capture_output=True, text=True, env=ENV)
    assert done.returncode == 1 and "ermission denied" in done.stderr
    assert not (work / "copy").exists()


def test_a_disk_that_is_too_small_leaves_nothing(rowfs, store, work, small_disk, serve):
    rowfs("account", "add", store, "abc")
    rowfs("import", store, "abc/Tab", input=lines(
        *({"PartitionKey": "p", "RowKey": str(i), "S": "x" * 30000} for i in range(200))))
    for served in (False, True):
        if served:
            serve(store)
        refused(rowfs, store, small_disk / "copy", say="no space")
        assert os.listdir(small_disk) == []
    rowfs("import", store, "abc/Tab", input=lines({"PartitionKey": "p", "RowKey": "on"}))


@pytest.fixture
def large(rowfs, store):
    """Takes a while to copy."""
    rowfs("account", "add", store, "abc")
    rowfs("import", store, "abc/Tab", input=lines(
        *({"PartitionKey": "p", "RowKey": f"{i:05}", "S": "x" * 30000} for i in range(2500))))
    return store


@pytest.mark.parametrize("served", [False, True], ids=["alone", "served"])
def test_a_backup_that_is_stopped_leaves_nothing(rowfs, large, work, serve, served):
    if served:
        serve(large)
    rng, stopped = random.Random(5), 0
    for i in range(12):
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[i % 3]
        copy = work / f"copy{i}"
        proc = subprocess.Popen([str(rowfs.program), "backup", str(large), str(copy)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENV)
        time.sleep(rng.random() * 0.06)
        proc.send_signal(number)
        said = proc.communicate()[1].decode()
        stopped += proc.returncode != 0
        if copy.exists():
            rowfs("check", copy)
            copy.unlink()
        else:
            assert proc.returncode != 0
        left = [p.name for p in work.glob(f"copy{i}*")]
        # A process that is killed cannot clear away what it was at: it has another name.
        assert left == [] or number == signal.SIGKILL and left[0] == f"copy{i}.part-{proc.pid}", said
    assert stopped > 0
    rowfs("backup", large, work / "copy")
    rowfs("check", work / "copy")


# ---- an older schema


@pytest.fixture
def older(rowfs, acct, mount):
    m = mount(acct)
    (m / "abc/Tab/p/small").write_bytes(b"x" * 100)
    (m / "abc/Tab/p/large").write_bytes(b"x" * 70000)
    (m / "abc/Tab/p/waits.json").touch(0o640)
    m.umount()
    as_version_1(acct)
    assert user_version(acct) == 1
    assert acct.read_bytes()[20] == 0  # no room for checksums at the end of pages
    return acct


def kept(store):
    return sorted(p.name for p in store.parent.glob(store.name + "?*") if not p.name.endswith("-wal"))


def test_reading_leaves_an_older_schema_alone(rowfs, older, mount):
    before = older.read_bytes()
    rowfs("check", older)
    m = mount(older, "ro")
    assert (m / "abc/Tab/p/large").read_bytes() == b"x" * 70000
    assert (m / "abc/Tab/p/waits.json").read_bytes() == b""
    m.umount()
    assert older.read_bytes() == before and kept(older) == []


def test_W13_what_waits_in_an_older_store_keeps_its_number(rowfs, older, mount):
    m = mount(older, "ro")
    old = os.stat(m / "abc/Tab/p/waits.json")
    m.umount()
    m = mount(older)
    path = m / "abc/Tab/p/waits.json"
    for text in ("", '{"N": 8}'):
        if text:
            path.write_text(text)
        now = os.stat(path)
        assert (now.st_ino, now.st_mode, now.st_size) == (old.st_ino, old.st_mode, len(text))
    assert os.getxattr(path, "user.rowfs.row_key") == b"waits"
    m.umount()
    rowfs("check", older)


def test_BK5_an_upgrade_keeps_a_copy(rowfs, older, mount):
    before = rowfs("export", older, "abc/Tab", check=False)  # the first opening for writing
    assert before.returncode == 0 and f"{older}.v1" in before.stderr
    copy = older.with_name(older.name + ".v1")
    assert (user_version(older), user_version(copy)) == (6, 1)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600 and kept(older) == [copy.name]
    age = copy.stat().st_mtime_ns
    m = mount(older)
    assert (m / "abc/Tab/p/small").read_bytes() == b"x" * 100
    (m / "abc/Tab/p/000.json").write_text('{"N": 7}')
    m.remount()
    m.umount()
    assert copy.stat().st_mtime_ns == age and kept(older) == [copy.name]  # once
    rowfs("check", older)
    rowfs("check", copy)
    assert rowfs("export", copy, "abc/Tab").stdout == before.stdout


def test_BK5_a_store_from_before_queues_is_upgraded(rowfs, older, mount):
    rowfs("stat", older)
    with contextlib.closing(sqlite3.connect(older)) as db:
        db.execute("PRAGMA user_version=4")
    rows = rowfs("export", older, "abc/Tab").stdout
    assert (user_version(older), kept(older)) == (6, [f"{older.name}.v1", f"{older.name}.v4"])
    m = mount(older)
    (m / "abc/.queue/jobs").mkdir()
    (m / "abc/.queue/jobs/new").write_text("text")
    m.umount()
    copy = older.with_name(older.name + ".v4")
    assert user_version(copy) == 4
    for store in (older, copy):
        rowfs("check", store)
        assert rowfs("export", store, "abc/Tab").stdout == rows


def test_a_mount_says_in_its_log_that_it_kept_a_copy(rowfs, older, mount):
    m = mount(older)
    m.umount()
    assert f"schema version 1, and is upgraded; a copy as it was is {older}.v1" in m.log()


def test_another_file_of_the_copys_name_is_left_alone(rowfs, older, work):
    (work / (older.name + ".v1")).write_text("mine")
    rowfs("stat", older)
    assert (work / (older.name + ".v1")).read_text() == "mine"
    assert user_version(work / (older.name + ".v1.2")) == 1


def test_no_upgrade_without_room_for_the_copy(rowfs, older, small_disk, mount):
    store = pathlib.Path(shutil.copy(older, small_disk / "s.rowfs"))
    fill = small_disk / "fill"
    with contextlib.suppress(OSError), open(fill, "wb", buffering=0) as f:
        while True:
            f.write(bytes(4096))
    at = small_disk.parent / "at"
    at.mkdir()
    done = rowfs("mount", store, at, check=False)
    assert done.returncode == 1 and f"{store}.v1" in done.stderr and "space" in done.stderr
    assert "empty file to go without" in done.stderr
    assert user_version(store) == 1 and sorted(os.listdir(small_disk)) == ["fill", "s.rowfs"]
    rowfs("export", store, "abc/Tab")  # what only reads goes on
    os.truncate(fill, fill.stat().st_size - (300 << 10))
    (small_disk / "s.rowfs.v1").touch()
    rowfs("stat", store)
    assert user_version(store) == 6 and (small_disk / "s.rowfs.v1").stat().st_size == 0


def strikes(rowfs, work, older, what, error=errno.EIO, step=1):
    """Opens copies of the store for writing with the n-th call that changes its files struck, for
    each n; gives each store after that, until no call is left."""
    whole = older.read_bytes()
    for n in itertools.count(1, step):
        here = work / f"{what.replace(' ', '')}{n}"
        here.mkdir()
        store = here / "s.rowfs"
        store.write_bytes(whole)
        store.chmod(0o600)
        with calls.Control(here / "control") as c:
            c.strike(what, calls.CHANGES, n, error=error)
            done = subprocess.run([str(rowfs.program), "account", "list", str(store)], timeout=60,
                                  capture_output=True, text=True, env=c.env(BUILD, store, base=ENV))
            struck = c.struck
        yield store, done, struck
        shutil.rmtree(here)
        if not struck:
            return


def is_old_or_new(rowfs, store, wanted):
    version = user_version(store)
    copy = store.with_name(store.name + ".v1")
    if copy.exists():
        rowfs("check", copy)
        assert user_version(copy) == 1
    assert rowfs("export", store, "abc/Tab").stdout == wanted  # the next start goes on
    rowfs("check", store)
    assert kept(store) == [copy.name] and user_version(store) == 6
    return version


def test_an_upgrade_that_is_killed_at_any_call_goes_on(rowfs, older, work):
    older_copy = shutil.copy(older, work / "for-export")
    wanted = rowfs("export", older_copy, "abc/Tab").stdout
    seen, points = set(), 0
    for what, step in (("kill before", 4), ("kill torn", 16)):
        for store, _, struck in strikes(rowfs, work, older, what, step=every(step)):
            points += 1
            seen.add(is_old_or_new(rowfs, store, wanted))
    assert seen == {1, 6}
    print(f"{points} points")


def test_an_upgrade_whose_calls_fail_is_refused_or_whole(rowfs, older, work):
    older_copy = shutil.copy(older, work / "for-export")
    wanted = rowfs("export", older_copy, "abc/Tab").stdout
    points = 0
    for error in (errno.EIO, errno.ENOSPC):
        for store, done, struck in strikes(rowfs, work, older, "fail", error, step=every(9)):
            points += 1
            assert done.returncode in (0, 1)
            if done.returncode == 1:
                assert str(store) in done.stderr
            is_old_or_new(rowfs, store, wanted)
    print(f"{points} points")


def test_a_backup_that_is_killed_or_fails_at_any_call(rowfs, acct, work):
    for what, step in (("kill before", 4), ("fail", 4), ("kill torn", 16)):
        for n in itertools.count(1, every(step)):
            copy = work / f"copy{n}"
            with calls.Control(work / "control") as c:
                c.strike(what, calls.CHANGES, n)
                done = subprocess.run([str(rowfs.program), "backup", str(acct), str(copy)], timeout=60,
                                      capture_output=True, text=True, env=c.env(BUILD, copy, base=ENV))
                struck = c.struck
            if copy.exists():
                rowfs("check", copy)
                same(rowfs, acct, copy)
            else:
                assert done.returncode != 0
            if what == "fail":
                assert done.returncode in (0, 1) and not list(work.glob(f"copy{n}.*"))
            for p in work.glob(f"copy{n}*"):
                p.unlink()
            if not struck:
                break
        assert n > 5
        print(f"{what}: {n} points")


def test_writers_do_not_wait_for_a_backup(rowfs, acct, work):
    """It is held up at its first write; who changes the store meanwhile does not notice."""
    copy = work / "copy"
    before = rowfs("export", acct, "abc/Tab").stdout
    with calls.Control(work / "control") as c:
        c.strike("stall", calls.WRITE, 1)
        backup = subprocess.Popen([str(rowfs.program), "backup", str(acct), str(copy)],
                                  env=c.env(BUILD, copy, base=ENV), stderr=subprocess.PIPE, text=True)
        try:
            end = time.monotonic() + 60
            while not c.struck:
                assert time.monotonic() < end and backup.poll() is None
                time.sleep(0.01)
            for i in range(20):  # through the process that makes the backup
                rowfs("import", acct, "abc/Tab", input=lines({"PartitionKey": "p", "RowKey": f"w{i}"}))
            assert backup.poll() is None and not copy.exists()
        finally:
            c.stop()
            said = backup.communicate(timeout=60)[1]
    assert backup.returncode == 0, said
    assert rowfs("export", copy, "abc/Tab").stdout == before
    assert len(rowfs("export", acct, "abc/Tab").stdout.splitlines()) == len(before.splitlines()) + 20
    rowfs("check", copy)


def test_a_backup_gives_way_where_the_disk_of_its_store_is_full(rowfs, acct, work, small_disk):
    """As any other reader of a moment: the log is what fills it."""
    rowfs("import", acct, "abc/Tab", input=lines(  # more than is copied in one step
        *({"PartitionKey": "q", "RowKey": f"w{i}", "S": "x" * 30000} for i in range(70))))
    store, copy = pathlib.Path(shutil.copy(acct, small_disk / "s.rowfs")), work / "copy"

    def rows(n):
        return lines(*({"PartitionKey": "p", "RowKey": f"w{i}", "S": f"{n}" * 10000} for i in range(5)))

    with calls.Control(work / "control") as c:
        c.strike("stall", calls.WRITE, 1)
        backup = subprocess.Popen([str(rowfs.program), "backup", str(store), str(copy)],
                                  env=c.env(BUILD, copy, base=ENV), stderr=subprocess.PIPE, text=True)
        try:
            end = time.monotonic() + 60
            while not c.struck:
                assert time.monotonic() < end and backup.poll() is None
                time.sleep(0.01)
            for n in range(100, 200):
                done = rowfs("import", store, "abc/Tab", input=rows(n), check=False)
                if done.returncode != 0:
                    break
            assert "space" in done.stderr
        finally:
            c.stop()
            said = backup.communicate(timeout=60)[1]
    assert backup.returncode == 1 and "its disk is full" in said
    assert not list(work.glob("copy*"))
    rowfs("import", store, "abc/Tab", input=rows(999))
    rowfs("check", store)
