# SPDX-License-Identifier: MIT
"""What random walks over rows (test_random_rows.py) have found, each by itself."""

import contextlib
import ctypes
import json
import mmap
import os
import time

from random_walk import outcome
from rest_client import ACCOUNT, Client, ok
from tools import EXCHANGE, LIBC, get, put, raises, reason, rejected, renameat2


def test_U3_a_reader_of_a_row_that_becomes_an_ordinary_file(part):
    """It keeps its version (W1), and the file is what is written to it, for everybody."""
    for cold in (False, True):
        put(part / "r.json", '{"v":1}')
        with open(part / "r.json", "rb") as reader:
            if not cold:
                assert os.pread(reader.fileno(), 99, 0) == b'{"v":1}'
            os.rename(part / "r.json", part / "tmp")
            put(part / "tmp", "something else that is longer")
            for _ in range(2):
                assert os.pread(reader.fileno(), 99, 0) == b'{"v":1}'
                assert os.fstat(reader.fileno()).st_size == 7
                assert get(part / "tmp") == b"something else that is longer"
                assert os.stat(part / "tmp").st_size == 29
                os.posix_fadvise(reader.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.unlink(part / "tmp")


def test_U3_rows_and_files_that_change_places_under_readers(part):
    put(part / "r.json", '{"v":1}')
    put(part / "tmp", '{"v":22}')
    with open(part / "r.json", "rb") as reader:
        renameat2(part / "r.json", part / "tmp", EXCHANGE)
        put(part / "tmp", "no document")
        assert os.pread(reader.fileno(), 99, 0) == b'{"v":1}'
        assert get(part / "tmp") == b"no document" and get(part / "r.json") == b'{"v":22}'
    renameat2(part / "r.json", part / "tmp2", 0)
    put(part / "tmp2", '{"v":3}')
    os.rename(part / "tmp2", part / "r.json")
    assert get(part / "r.json") == b'{"v":3}'


def test_U3_a_mapping_of_a_file_that_becomes_a_row(part):
    """What it changes from then on is refused, and nobody goes on seeing it."""
    put(part / "tmp", '{"v":1}')
    fd = os.open(part / "tmp", os.O_RDWR)
    with mmap.mmap(fd, 7) as m:
        os.rename(part / "tmp", part / "r.json")
        m[5:6] = b"2"
        with raises("ESTALE"):
            m.flush()
        end = time.monotonic() + 60
        while get(part / "r.json") != b'{"v":1}':  # the kernel is told behind the answer
            assert time.monotonic() < end
    os.close(fd)


def test_U3_an_empty_new_file_that_becomes_an_ordinary_one(part):
    for _ in range(3):
        put(part / "x.json", "")
        with open(part / "x.json", "rb") as reader:
            assert get(part / "x.json") == b"" == reader.read()
            os.rename(part / "x.json", part / "tmp")
            put(part / "tmp", "bytes")
            assert reader.read() in (b"", b"bytes")
            assert get(part / "tmp") == b"bytes" and os.stat(part / "tmp").st_size == 5
        os.unlink(part / "tmp")


def test_U4_who_loaded_an_empty_file_does_not_overwrite_a_row(rest_mount, rest_store):
    """L1, where the other front end made the row meanwhile; with O_TRUNC the last one wins."""
    mount = rest_mount(rest_store)
    with Client(mount.port) as rest:
        ok(rest.create_table("Rows"), 201)
        path = mount / ACCOUNT / "Rows/p/r.json"
        path.parent.mkdir()
        for flags, code in ((os.O_APPEND, "ESTALE"), (0, "ESTALE"), (os.O_TRUNC, None)):
            put(path, "")
            fd = os.open(path, os.O_WRONLY | flags)
            ok(rest.insert("Rows", {"PartitionKey": "p", "RowKey": "r", "v": 1}), 201)
            os.write(fd, b'{"v":2}')
            with raises(code) if code else contextlib.nullcontext():
                os.close(fd)
            assert json.loads(get(path))["v"] == (1 if code else 2)
            if code:
                assert b'{"v":2}' in rejected(mount).values()
                assert "UpdateConditionNotSatisfied" in reason(path)
            os.unlink(path)


def test_U5_refused_bytes_can_be_read_at_once(mnt, part):
    """Also those of a second refusal, where somebody has read those of the first."""
    put(part / "r.json", "{}")
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    text = b'{"v":"'
    os.write(fd, text)
    for n in range(30):
        with raises("EINVAL"):
            os.close(os.dup(fd))
        kept = reason(part / "r.json").rpartition("/")[2]
        assert get(mnt / ".rowfs/rejected" / kept) == text
        assert os.listdir(mnt / ".rowfs/rejected") == [kept]
        text += b"x" * (n + 1)
        os.write(fd, b"x" * (n + 1))
    os.write(fd, b'"}')
    os.close(fd)
    assert os.listdir(mnt / ".rowfs/rejected") == []


def test_U6_a_mapping_that_outlives_its_descriptor(part):
    """What it changes is committed by msync, or when it goes."""
    put(part / "r.json", '{"v":1}')
    LIBC.mmap.restype = ctypes.c_void_p
    fd = os.open(part / "r.json", os.O_RDWR)
    at = LIBC.mmap(None, ctypes.c_size_t(7), 3, mmap.MAP_SHARED, fd, ctypes.c_long(0))
    os.close(fd)
    ctypes.memmove(at + 5, b"2", 1)
    assert get(part / "r.json") == b'{"v":1}'
    assert LIBC.msync(ctypes.c_void_p(at), ctypes.c_size_t(7), 4) == 0  # MS_SYNC
    assert get(part / "r.json") == b'{"v":2}'
    ctypes.memmove(at + 5, b"3", 1)
    assert LIBC.munmap(ctypes.c_void_p(at), ctypes.c_size_t(7)) == 0
    end = time.monotonic() + 60
    while get(part / "r.json") != b'{"v":3}':  # nobody can be told when
        assert time.monotonic() < end


def test_U2_an_empty_file_that_came_to_a_row_name_can_be_opened_at_once(part):
    """Also to write it, before the kernel was told that it is another file."""
    for n in range(12):
        put(part / "tmp", "")
        os.rename(part / "tmp", part / f"r{n}.json")
        os.close(os.open(part / f"r{n}.json", os.O_WRONLY))


def test_U2_a_new_name_outlives_a_kill(mnt, part):
    """Once a close has said what is wrong, or an fsync has returned."""
    refused = os.open(part / "a.json", os.O_WRONLY | os.O_CREAT)
    synced = os.open(part / "b.json", os.O_WRONLY | os.O_CREAT)
    os.write(refused, b'{"v":')
    with raises("EINVAL"):
        os.close(os.dup(refused))
    os.fsync(synced)
    mnt.kill9()
    for fd in (refused, synced):
        outcome(os.close, fd)
    mnt.start()
    assert os.listdir(part) == ["a.json", "b.json"]
