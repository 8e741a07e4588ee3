# SPDX-License-Identifier: MIT
"""A thread that overwrites one row after the other is given a private node at its first look-up of
the next one.  If it does something else with that name, nobody may notice: each test teaches the
thread that habit, does one thing else, and holds it against what a thread without habits sees."""

import ctypes
import errno
import json
import mmap
import os
import pathlib
import subprocess
import threading

import pytest

from tools import FORCE_SYNC, LIBC, closes_are_known, statx

O_PATH = 0o10000000


def doc(version, pad=0):
    return json.dumps({"V": version, "Pad": "x" * pad}).encode() + b"\n"


def overwrite(path, content, flags=os.O_TRUNC):
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        assert os.write(fd, content) == len(content)
    finally:
        os.close(fd)


@pytest.fixture
def rows(part):
    paths = [part / f"r{i}.json" for i in range(8)]
    for i, p in enumerate(paths):
        p.write_bytes(doc(i))
    return paths


def learn(rows):
    """The calling thread gets into the habit.  The kernel is made to ask for all other names anew:
    who opens a row to write leaves a name there that has no lifetime.  The other threads come
    first: one whose number shares a slot with this one's (fs/write/speculation.c) would end the
    habit."""
    for p in rows[0].parent.iterdir():
        if p not in rows[4:]:
            elsewhere(lambda at=p: os.close(os.open(at, os.O_WRONLY)))
    for p in rows[4:]:
        overwrite(p, doc("habit"))


def elsewhere(fn):
    """The same in a thread of its own, which has no habits."""
    result = []
    t = threading.Thread(target=lambda: result.append(fn()))
    t.start()
    t.join()
    return result[0]


def read(path):
    return elsewhere(path.read_bytes)


def test_W2_a_thread_that_overwrites_row_after_row_asks_for_each_once(mnt, rows):
    def requests():
        mount = json.loads((mnt / ".rowfs/stats.json").read_text())["operations"]["mount"]
        return [mount.get(what, {"count": 0})["count"] for what in ("lookup", "open")]
    at = os.open(rows[0].parent, os.O_RDONLY | os.O_DIRECTORY)
    for turn in range(3):
        closes_are_known(mnt, held=1)
        before = requests()
        for i, p in enumerate(rows):
            fd = os.open(p.name, os.O_WRONLY | os.O_TRUNC, dir_fd=at)
            os.write(fd, doc(turn * 10 + i))
            os.close(fd)
        after = requests()
    os.close(at)
    # The statistics themselves are a look-up and an open of their own, twice at most.
    assert after[0] - before[0] <= len(rows) + 6
    assert after[1] - before[1] <= len(rows) + 4
    assert [json.loads(read(p))["V"] for p in rows] == list(range(20, 28))


@pytest.mark.parametrize("flags", (0, FORCE_SYNC))
def test_W2_a_stat_by_a_thread_that_overwrites_tells_what_others_see(rows, flags):
    expected = elsewhere(lambda: statx(rows[0]))
    learn(rows)
    assert statx(rows[0], flags) == expected
    assert statx(rows[0], flags) == expected
    os.chmod(rows[0], 0o640)
    expected = elsewhere(lambda: statx(rows[0], FORCE_SYNC))
    assert expected["mode"] & 0o777 == 0o640
    assert statx(rows[0]) == statx(rows[0], FORCE_SYNC) == expected


def test_W2_a_thread_that_overwrites_stats_and_then_writes(rows):
    learn(rows)
    for turn in range(3):
        for i, p in enumerate(rows):
            before = os.stat(p)
            overwrite(p, doc(turn * 10 + i, turn))
            after = os.stat(p)
            assert after.st_ino == before.st_ino and after.st_mtime_ns > before.st_mtime_ns
            assert after.st_size == len(doc(turn * 10 + i, turn))
            assert read(p) == doc(turn * 10 + i, turn)
            assert p.read_bytes() == doc(turn * 10 + i, turn)


@pytest.mark.parametrize("flags", (0, os.O_NOFOLLOW, os.O_DIRECT, os.O_CREAT))
def test_W1_a_read_by_a_thread_that_overwrites_is_of_the_committed_row(rows, flags):
    learn(rows)
    fd = os.open(rows[0], os.O_RDONLY | flags)
    buf = mmap.mmap(-1, 4096)
    assert os.readv(fd, [buf]) == len(doc(0)) and buf[:len(doc(0))] == doc(0)
    elsewhere(lambda: overwrite(rows[0], doc("other", 900)))
    assert os.fstat(fd).st_size == len(doc(0))
    assert os.pread(fd, 4096, 0) == doc(0)
    os.close(fd)
    assert rows[0].read_bytes() == doc("other", 900)


def test_W12_a_mapping_by_a_thread_that_overwrites(rows):
    learn(rows)
    with open(rows[0], "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        elsewhere(lambda: overwrite(rows[0], doc("other")))
        assert m[:] == doc(0)


def test_L1_a_handle_of_a_thread_that_overwrites_loads_the_row(rows):
    learn(rows)
    fd = os.open(rows[0], os.O_RDWR)
    assert os.read(fd, 100) == doc(0)
    os.pwrite(fd, doc(7), 0)
    os.close(fd)
    assert read(rows[0]) == doc(7)

    overwrite(rows[1], doc(1, 500))
    fd = os.open(rows[1], os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"\n")
    os.close(fd)
    assert read(rows[1]) == doc(1, 500) + b"\n"

    overwrite(rows[2], doc(8))
    fd = os.open(rows[2], os.O_RDWR)
    elsewhere(lambda: overwrite(rows[2], doc("other")))
    os.pwrite(fd, doc(9), 0)
    with pytest.raises(OSError) as e:
        os.close(fd)
    assert e.value.errno == errno.ESTALE and read(rows[2]) == doc("other")


@pytest.mark.parametrize("flags", (os.O_TRUNC, 0))
def test_L1_a_row_that_changes_between_the_look_and_the_open(rows, flags):
    learn(rows)
    os.stat(rows[0])
    elsewhere(lambda: overwrite(rows[0], doc("other", 300)))
    fd = os.open(rows[0], os.O_RDWR | flags)
    assert os.read(fd, 1000) == (b"" if flags else doc("other", 300))
    os.ftruncate(fd, 0)
    os.pwrite(fd, doc("mine"), 0)
    os.close(fd)
    assert read(rows[0]) == doc("mine")


def test_W2_names_that_are_made_by_a_thread_that_overwrites(rows):
    learn(rows)
    with pytest.raises(FileExistsError):
        os.open(rows[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    learn(rows)
    fresh = rows[0].parent / "fresh.json"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, doc(1))
    os.close(fd)
    overwrite(fresh, doc(2), os.O_CREAT | os.O_TRUNC)
    assert read(fresh) == doc(2)
    overwrite(rows[0], doc(3), os.O_CREAT | os.O_TRUNC)
    assert read(rows[0]) == doc(3)


def test_W2_a_row_that_is_emptied_by_a_thread_that_overwrites_stays(rows):
    learn(rows)
    with pytest.raises(OSError) as e:
        os.truncate(rows[0], 0)
    assert e.value.errno == errno.EINVAL and read(rows[0]) == doc(0)
    learn(rows)
    with pytest.raises(OSError) as e:
        os.truncate(rows[0], 3)
    assert e.value.errno == errno.EINVAL and read(rows[0]) == doc(0)
    learn(rows)
    os.truncate(rows[0], len(doc(0)))
    overwrite(rows[0], b"")
    assert read(rows[0]) == doc(0)


def test_A6_attributes_that_are_set_by_a_thread_that_overwrites(rows):
    reader = os.open(rows[0], os.O_RDONLY)
    etag = os.getxattr(rows[0], "user.rowfs.etag")
    for change in (lambda: os.chmod(rows[0], 0o600), lambda: os.chown(rows[0], 12, 34),
                   lambda: os.utime(rows[0], ns=(10**18, 10**18))):
        learn(rows)
        change()
        seen = os.stat(rows[0])
        assert elsewhere(lambda: os.stat(rows[0])) == seen == os.fstat(reader)
    assert (seen.st_mode & 0o777, seen.st_uid, seen.st_gid, seen.st_mtime_ns) == (
        0o600, 12, 34, 10**18)
    learn(rows)
    assert os.getxattr(rows[0], "user.rowfs.etag") == etag
    assert os.read(reader, 100) == doc(0)
    os.close(reader)
    overwrite(rows[0], doc(1))
    assert os.stat(rows[0]).st_mode & 0o777 == 0o600


def test_L3_a_condition_that_is_set_by_a_thread_that_overwrites(rows):
    learn(rows)
    old = os.getxattr(rows[0], "user.rowfs.etag")
    learn(rows)
    for text, refused in ((doc(1), False), (doc(2), True)):
        fd = os.open(rows[0], os.O_WRONLY | os.O_TRUNC)
        os.setxattr(fd, "user.rowfs.if_match", old)
        os.write(fd, text)
        try:
            os.close(fd)
        except OSError as e:
            assert e.errno == errno.ESTALE and refused
        assert read(rows[0]) == doc(1)
        learn(rows)


def test_L5_by_its_path_a_thread_that_overwrites_sets_no_condition(rows):
    learn(rows)
    with pytest.raises(OSError) as e:
        os.setxattr(rows[0], "user.rowfs.if_match", b"*")
    assert e.value.errno == errno.EPERM
    overwrite(rows[0], doc(1))
    assert read(rows[0]) == doc(1)


@pytest.mark.parametrize("look", (False, True))
def test_A4_names_that_are_removed_by_a_thread_that_overwrites(rows, look):
    for i, remove in enumerate((os.unlink, lambda p: os.rename(p, p.with_name("moved.json")),
                                lambda p: os.rename(rows[3], p))):
        reader = elsewhere(lambda at=rows[i]: os.open(at, os.O_RDONLY))
        ino = os.fstat(reader).st_ino
        learn(rows)
        if look:
            os.stat(rows[i])
        remove(rows[i])
        assert os.fstat(reader).st_ino == ino
        assert os.fstat(reader).st_nlink == (1 if i == 1 else 0)
        assert os.read(reader, 100) == doc(i)
        os.close(reader)
    moved = rows[0].with_name("moved.json")
    assert not rows[0].exists() and not rows[1].exists() and not rows[3].exists()
    assert moved.read_bytes() == read(moved) == doc(1)
    assert rows[2].read_bytes() == read(rows[2]) == doc(3)
    learn(rows)
    overwrite(moved, doc("moved"))
    assert read(moved) == moved.read_bytes() == doc("moved")


def test_W10_a_row_that_goes_between_the_look_and_the_open(rows):
    learn(rows)
    os.stat(rows[0])
    elsewhere(lambda: os.unlink(rows[0]))
    with pytest.raises(FileNotFoundError):
        os.open(rows[0], os.O_WRONLY | os.O_TRUNC)
    learn(rows)
    os.stat(rows[1])
    elsewhere(lambda: os.rename(rows[1], rows[0]))
    overwrite(rows[0], doc("anew"))
    assert read(rows[0]) == doc("anew") and not rows[1].exists()
    learn(rows)
    fd = os.open(rows[0], os.O_WRONLY | os.O_TRUNC)
    os.write(fd, doc("follows"))
    elsewhere(lambda: os.rename(rows[0], rows[1]))
    os.close(fd)
    assert read(rows[1]) == doc("follows") and not rows[0].exists()


def test_W2_a_descriptor_without_an_open_by_a_thread_that_overwrites(rows):
    """O_PATH: no request tells of it, and what is done by it comes without a look-up.  What was given
    for it by a guess has gone when the thread is guessed about again."""
    learn(rows)
    fd = os.open(rows[0], O_PATH | os.O_NOFOLLOW)
    learn(rows)
    assert os.fstat(fd).st_ino == elsewhere(lambda: os.stat(rows[0])).st_ino
    link = f"/proc/self/fd/{fd}"
    for what in (lambda: pathlib.Path(link).read_bytes(), lambda: overwrite(link, doc("by the link")),
                 lambda: os.chmod(link, 0o604), lambda: os.truncate(link, 0)):
        with pytest.raises(OSError) as e:
            what()
        assert e.value.errno == errno.ESTALE
    assert read(rows[0]) == doc(0)
    os.close(fd)


def test_W1_a_link_to_an_open_file_leads_to_what_it_reads(rows):
    with open(rows[0], "rb") as f:
        overwrite(rows[0], doc("other", 700))
        link = pathlib.Path(f"/proc/self/fd/{f.fileno()}")
        assert link.read_bytes() == f.read() == doc(0)
        assert link.stat().st_size == len(doc(0))
    assert rows[0].read_bytes() == doc("other", 700)


def test_W14_two_threads_that_overwrite_the_same_rows(rows):
    failed, stop = [], threading.Event()

    def worker(name):
        try:
            for n in range(300):
                for p in rows[:2]:
                    overwrite(p, doc(f"{name} {n}", 10 * (n % 7)))
        except BaseException as e:
            failed.append(e)

    def reader():
        try:
            while not stop.is_set():
                for p in rows[:2]:
                    text = p.read_bytes()
                    assert text == doc(json.loads(text)["V"], len(json.loads(text)["Pad"]))
                    assert json.loads(text)["V"] != "habit"
        except BaseException as e:
            failed.append(e)
    threads = [threading.Thread(target=worker, args=(n,)) for n in "ab"]
    looker = threading.Thread(target=reader)
    for t in (looker, *threads):
        t.start()
    for t in threads:
        t.join()
    stop.set()
    looker.join()
    assert not failed, failed
    for p in rows[:2]:
        assert json.loads(p.read_bytes())["V"] in ("a 299", "b 299")


def test_W2_a_listing_by_a_thread_that_overwrites(rows):
    at = rows[0].parent
    for turn in range(5):
        learn(rows)
        with os.scandir(at) as listing:
            for i, entry in enumerate(listing):
                assert entry.stat().st_size == os.stat(at / entry.name).st_size
                overwrite(at / entry.name, doc(turn * 100 + i, turn))
                assert os.stat(at / entry.name).st_size == len(doc(turn * 100 + i, turn))
                assert read(at / entry.name) == doc(turn * 100 + i, turn)


def test_W2_a_program_is_run_and_a_copy_made_by_who_overwrites(rows, work):
    learn(rows)
    source = work / "copies"
    source.mkdir()
    for p in rows:
        (source / p.name).write_bytes(doc("copied " + p.name))
    for _ in range(2):
        subprocess.run(["cp", "-r", f"{source}/.", rows[0].parent], check=True)
        assert [read(p) for p in rows] == [doc("copied " + p.name) for p in rows]
    learn(rows)
    os.chmod(rows[0], 0o755)
    learn(rows)
    with pytest.raises(OSError) as e:
        subprocess.run([rows[0]], check=True)
    assert e.value.errno == errno.ENOEXEC
    learn(rows)
    assert LIBC.fchmodat(-100, os.fsencode(rows[1]), 0o611, 0x100) == 0, ctypes.get_errno()
    assert elsewhere(lambda: os.stat(rows[1])).st_mode & 0o777 == 0o611


def test_W1_a_descriptor_kept_by_path_is_not_another_thread_s_writer(rows):
    learn(rows)
    path, committed = rows[0], rows[0].read_bytes()
    learn(rows)
    held = os.open(path, O_PATH)  # looked up to be overwritten, then left
    for other in rows[1:3]:
        os.stat(other)
    writer = elsewhere(lambda: os.open(path, os.O_RDWR))
    os.write(writer, b'{"V": "written but not commi')
    assert os.fstat(held).st_size == len(committed)
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_TRUNC):
        with pytest.raises(OSError) as refused:
            os.open(f"/proc/self/fd/{held}", flags)
        assert refused.value.errno == errno.ESTALE
    os.write(writer, b'tted"}\n')
    assert os.pread(writer, 100, 0).startswith(b'{"V": "written')
    os.ftruncate(writer, len(b'{"V": "written but not committed"}\n'))
    os.close(writer)
    assert read(path) == b'{"V": "written but not committed"}\n'
    os.close(held)


def test_A4_a_stat_after_a_speculative_lookup_tells_attributes_set_meanwhile(rows):
    path = rows[0]
    fd = elsewhere(lambda: os.open(path, os.O_RDWR))
    learn(rows)
    os.stat(path)
    elsewhere(lambda: (os.fchmod(fd, 0o640), os.utime(fd, (5, 5))))
    st = os.stat(path)
    assert (st.st_mode & 0o777, st.st_mtime) == (0o640, 5)
    os.close(fd)
