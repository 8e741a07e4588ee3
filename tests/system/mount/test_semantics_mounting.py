# SPDX-License-Identifier: MIT
"""docs/semantics.md: mounting (S)."""

import errno
import json
import os
import pathlib
import signal
import threading
import time

import pytest

from conftest import BUILD, detach, is_mount, need_fuse
from tools import get, pid_of, put, raises, rows, sh


@pytest.fixture
def background(rowfs, store, work):
    """`rowfs mount` without -f; whatever happens, nothing of it stays."""
    need_fuse()
    at = work / "bg"
    at.mkdir()

    def start(*options, check=True):
        return rowfs("mount", store, at, *(["-o", ",".join(options)] if options else []),
                     check=check, timeout=60)

    yield at, start
    if is_mount(at):
        pid = pid_of(rowfs, at)
        detach(at)
        if pid:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass


def test_S1_mount_returns_when_the_mount_answers(rowfs, background):
    at, start = background
    start()
    assert get(at / ".rowfs/version")  # at once
    (at / "acct1").mkdir()
    rowfs("umount", at)
    assert not is_mount(at)
    start()
    assert rows(at) == ["acct1"]
    rowfs("umount", at)


def test_S1_mount_holds_none_of_the_callers_files(rowfs, background):
    at, start = background
    # A pipe that the daemon inherited would keep this waiting for ever.
    out = sh(f"'{rowfs.program}' mount '{at.parent}/store.rowfs' '{at}' | cat; cat '{at}/.rowfs/version'",
             timeout=60)
    assert out.stdout
    rowfs("umount", at)


@pytest.mark.parametrize("case", ["no directory", "a file", "no store", "not a store", "option"])
def test_S1_or_with_the_reason(rowfs, store, work, case):
    need_fuse()
    at = work / "here"
    at.mkdir()
    args = [store, at]
    if case == "no directory":
        args[1] = work / "nowhere"
    elif case == "a file":
        args[1] = work / "file"
        args[1].write_text("")
    elif case == "no store":
        args[0] = work / "none.rowfs"
    elif case == "not a store":
        args[0] = work / "text"
        args[0].write_text("hello" * 1000)
    else:
        args += ["-o", "nonsense_option"]
    done = rowfs("mount", *args, check=False, timeout=60)
    assert done.returncode in (1, 2)
    assert done.stderr.strip() and len(done.stderr) < 500
    if case in ("no directory", "a file"):
        assert str(args[1]) in done.stderr
    elif case == "option":
        assert "nonsense_option" in done.stderr
    else:
        assert str(args[0]) in done.stderr
    assert not is_mount(at)
    rowfs("check", store)


def test_S2_a_second_process_is_told_which_has_it(rowfs, mnt, store, work):
    (work / "second").mkdir()
    done = rowfs("mount", store, work / "second", check=False)
    assert done.returncode == 1
    assert str(mnt.proc.pid) in done.stderr
    assert not is_mount(work / "second")


def test_S2_also_by_another_name_of_the_file(rowfs, mnt, store, work):
    (work / "second").mkdir()
    (work / "link.rowfs").symlink_to(store)
    done = rowfs("mount", work / "link.rowfs", work / "second", check=False)
    assert done.returncode == 1 and str(mnt.proc.pid) in done.stderr


def test_S2_commands_work_through_the_process_that_serves(rowfs, mnt, part):
    put(part / "r.json", '{"v":1}')
    assert "acct1" in rowfs("account", "list", mnt.store).stdout
    assert '"v":1' in rowfs("export", mnt.store, "acct1/Blogs").stdout
    rowfs("import", mnt.store, "acct1/Blogs",
          input='{"PartitionKey":"Channel_19","RowKey":"q","v":2}\n')
    assert json.loads(get(part / "q.json")) == {"v": 2}
    assert rows(part) == ["q.json", "r.json"]
    rowfs("stat", mnt.store)
    rowfs("check", mnt.store)


def test_C6_an_import_is_seen_at_once_whatever_the_kernel_knew(rowfs, mnt, table, part):
    put(part / "r.json", '{"v":1}')
    for i in range(5):
        with raises("ENOENT"):
            os.stat(part / f"new{i}.json")
        with raises("ENOENT"):
            os.stat(table / f"p{i}")
        names = rows(part)
        get(part / "r.json")
        rowfs("import", mnt.store, "acct1/Blogs", input=(
            '{"PartitionKey":"Channel_19","RowKey":"r","v":%d}\n'
            '{"PartitionKey":"Channel_19","RowKey":"new%d","v":1}\n'
            '{"PartitionKey":"p%d","RowKey":"new%d","v":1}\n') % (i + 10, i, i, i))
        assert json.loads(get(part / "r.json")) == {"v": i + 10}
        assert os.stat(part / "r.json").st_size == len(get(part / "r.json"))
        assert get(part / f"new{i}.json") == b'{"v":1}\n'
        assert rows(part) == sorted(names + [f"new{i}.json"])
        assert rows(table / f"p{i}") == [f"new{i}.json"]


def clean(store):
    """No write-ahead log is left to replay."""
    wal = pathlib.Path(f"{store}-wal")
    return not wal.exists() or wal.stat().st_size == 0


def test_S3_umount_leaves_a_clean_store(rowfs, mnt, part, store):
    for i in range(300):
        put(part / f"{i}.json", "{}")
    mnt.umount()
    assert clean(store)
    assert len(rowfs("export", store, "acct1/Blogs").stdout.splitlines()) == 300


def test_S3_sigterm_leaves_a_clean_store(rowfs, mnt, part, store):
    for i in range(300):
        put(part / f"{i}.json", "{}")
    mnt.sigterm()
    assert clean(store) and not is_mount(mnt.path)
    assert len(rowfs("export", store, "acct1/Blogs").stdout.splitlines()) == 300


def test_S3_sigterm_while_it_is_in_use(rowfs, mnt, part, store):
    done, stop = [], threading.Event()

    def write():
        i = 0
        while not stop.is_set():
            try:
                put(part / f"{i}.json", "{}")
            except OSError:
                return
            done.append(i)
            i += 1

    t = threading.Thread(target=write)
    t.start()
    while len(done) < 100:
        time.sleep(0.01)
    mnt.sigterm()
    stop.set()
    t.join(60)
    assert not t.is_alive()
    have = {json.loads(x)["RowKey"] for x in
            rowfs("export", store, "acct1/Blogs").stdout.splitlines()}
    assert {str(i) for i in done} <= have


def test_S3_umount_of_a_busy_mount_is_refused(rowfs, mnt, part):
    put(part / "r.json", "{}")
    with open(part / "r.json"):
        done = rowfs("umount", mnt.path, check=False)
        assert done.returncode == 1 and "in use" in done.stderr
        assert get(part / "r.json") == b"{}"
    rowfs("umount", mnt.path)
    mnt.proc.wait(60)
    mnt._watchdog.cancel()


def test_S3_mount_directly_after_umount(rowfs, background):
    """umount(8) returns before the daemon has closed the store; the next mount waits for it."""
    at, start = background
    start()
    (at / "acct1/Tab/p").mkdir(parents=True)
    for i in range(15):
        put(at / f"acct1/Tab/p/{i}.json", "{}")
        sh(f"umount '{at}'" if os.geteuid() == 0 else f"fusermount3 -u '{at}'")
        start()
    assert len(rows(at / "acct1/Tab/p")) == 15
    rowfs("umount", at)


def test_S3_umount_of_what_is_no_mount(rowfs, work):
    done = rowfs("umount", work, check=False)
    assert done.returncode == 1 and str(work) in done.stderr


def test_S4_kills_under_load(mnt, part):
    """Every acknowledged row is there, and none that is half."""
    acknowledged = {}
    for life in range(5):
        stop, threads = threading.Event(), []

        def write(worker):
            i = 0
            while not stop.is_set():
                name, text = f"{worker}-{i % 50}.json", json.dumps(
                    {"life": life, "i": i, "pad": "x" * (i % 3000)})
                try:
                    if i % 3 == 0:
                        put(part / f"tmp{worker}", text)
                        os.rename(part / f"tmp{worker}", part / name)
                    else:
                        fd = os.open(part / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                        os.write(fd, text.encode())
                        os.close(fd)
                except OSError as e:
                    assert e.errno not in (errno.EINVAL, errno.EBADMSG), e
                    return
                acknowledged[name] = text
                i += 1

        for w in range(3):
            threads.append(threading.Thread(target=write, args=(w,)))
            threads[-1].start()
        time.sleep(0.25)  # the writers are in the middle of their work
        mnt.kill9()
        stop.set()
        for t in threads:
            t.join(60)
            assert not t.is_alive()
        mnt.start()
        for name, text in acknowledged.items():
            have, told = json.loads(get(part / name)), json.loads(text)
            # It, or the one after it whose acknowledgement was cut off.
            assert (have["life"], have["i"]) >= (told["life"], told["i"]), name
            assert have["pad"] == "x" * (have["i"] % 3000)


def test_S5_a_read_only_mount(mount, store, mnt, part):
    put(part / "r.json", '{"v":1}')
    put(part / "tmp", "{}")
    mnt.umount()
    m = mount(store, "ro")
    p = m / "acct1/Blogs/Channel_19"
    for change in (lambda: put(p / "r.json", "{}"), lambda: put(p / "new.json", "{}"),
                   lambda: os.unlink(p / "r.json"), lambda: os.rename(p / "tmp", p / "r.json"),
                   lambda: os.mkdir(m / "acct2"), lambda: os.rmdir(p), lambda: os.utime(p / "tmp"),
                   lambda: os.chmod(p / "r.json", 0), lambda: os.truncate(p / "tmp", 0),
                   lambda: os.open(p / "r.json", os.O_RDWR)):
        with raises("EROFS"):
            change()
    assert get(p / "r.json") == b'{"v":1}'


@pytest.fixture
def helper():
    """mount.rowfs where mount(8) looks for it; put there for the test if it is not installed."""
    need_fuse()
    if os.geteuid() != 0:
        pytest.skip("needs root: mount(8) looks for /sbin/mount.rowfs")
    built = next((p for p in (BUILD / "mount-helper/mount.rowfs", BUILD / "mount.rowfs")
                  if p.exists()), None)
    if not built:
        pytest.fail(f"no mount.rowfs in {BUILD}")
    target = pathlib.Path("/sbin/mount.rowfs")
    if target.exists() or target.is_symlink():
        pytest.skip("/sbin/mount.rowfs is there already, and is not the one under test")
    target.symlink_to(built)
    yield target
    target.unlink()


def test_S6_mount_8(rowfs, helper, store, work):
    at = work / "mnt"
    at.mkdir()
    env = {"PATH": f"{rowfs.program.parent}:{os.environ['PATH']}"}
    try:
        sh(f"mount -t rowfs -o rw,noatime,_netdev,nofail,x-foo=1,user '{store}' '{at}'", env=env)
        (at / "acct1").mkdir()
        kind, options = next((w[w.index("-") + 1], w[5]) for w in map(
            str.split, open("/proc/self/mountinfo")) if w[4] == str(at))
        assert kind == "fuse.rowfs"
        assert {"noexec", "nosuid", "nodev"} <= set(options.split(","))  # `user` implies them
        sh(f"umount '{at}'", env=env)
        sh(f"mount -t rowfs -o ro '{store}' '{at}'", env=env)
        with raises("EROFS"):
            (at / "acct2").mkdir()
        sh(f"umount '{at}'", env=env)
        done = sh(f"mount -t rowfs '{work}/none' '{at}'", env=env, check=False)
        assert done.returncode == 32 and "none" in done.stderr
    finally:
        detach(at)


def test_S6_fstab_with_the_helpers_fake_and_verbose_flags(helper, store, work, rowfs):
    at = work / "mnt"
    at.mkdir()
    fstab = work / "fstab"
    fstab.write_text(f"{store} {at} rowfs noauto,user,nofail,noatime 0 0\n")
    env = {"PATH": f"{rowfs.program.parent}:{os.environ['PATH']}"}
    try:
        sh(f"mount -f -T '{fstab}' '{at}'", env=env)
        assert not is_mount(at)
        sh(f"mount -v -T '{fstab}' '{at}'", env=env)
        assert is_mount(at)
        sh(f"umount '{at}'", env=env)
    finally:
        detach(at)
