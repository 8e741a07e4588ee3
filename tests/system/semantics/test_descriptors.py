# SPDX-License-Identifier: MIT
"""What random walks over descriptors (test_random_descriptors.py) have found, each by itself: what is
asked of a descriptor, or done by a link to it in /proc/self/fd, after the row has changed."""

import json
import mmap
import os

import pytest

from rest_client import ACCOUNT, Client, ok
from test_habits import O_PATH, doc, elsewhere, learn, overwrite, read, rows  # noqa: F401
from tools import FORCE_SYNC, closes_are_known, get, put, raises, statx, xattr

ETAG = "user.rowfs.etag"


def link_of(fd):
    return f"/proc/self/fd/{fd}"


@pytest.fixture
def held(rows):  # noqa: F811
    """(the row's path, a descriptor of it without an open); nobody reads the row."""
    fd = os.open(rows[0], O_PATH)
    yield rows[0], fd
    os.close(fd)


CHANGES = {
    "overwritten": lambda p: overwrite(p, doc("new", 700)),
    "by a change set": lambda p: put(
        p.parent / ".batch", json.dumps({"upsert": {"RowKey": p.name[:-5], "V": "new"}})),
}


@pytest.mark.parametrize("change", CHANGES)
def test_U7_a_descriptor_without_an_open_stands_for_the_row(held, change):
    """Size, ETag, mode: as by its path, with what the kernel knew of the version before."""
    path, fd = held
    assert os.fstat(fd).st_size == len(doc(0))
    elsewhere(lambda: CHANGES[change](path))
    assert os.fstat(fd).st_size == os.stat(path).st_size != len(doc(0))
    assert os.getxattr(link_of(fd), ETAG) == os.getxattr(path, ETAG)
    os.chmod(link_of(fd), 0o604)
    os.utime(link_of(fd), ns=(10**18, 10**18))
    assert os.fstat(fd) == os.stat(path)
    assert (os.stat(path).st_mode & 0o777, os.stat(path).st_mtime_ns) == (0o604, 10**18)
    with raises("EINVAL"):
        os.truncate(link_of(fd), 0)


def test_U7_a_descriptor_without_an_open_over_a_change_through_rest(rest_mount, rest_store):
    mount = rest_mount(rest_store)
    with Client(mount.port) as rest:
        ok(rest.create_table("Rows"), 201)
        ok(rest.insert("Rows", {"PartitionKey": "p", "RowKey": "r", "V": 1}), 201)
        path = mount / ACCOUNT / "Rows/p/r.json"
        fd = os.open(path, O_PATH)
        before = os.fstat(fd).st_size
        ok(rest.merge("Rows", "p", "r", {"W": "x" * 700}), 204)
        assert os.fstat(fd).st_size == os.stat(path).st_size > before
        assert get(link_of(fd)) == get(path)
        os.close(fd)


def test_Z5_mode_and_owner_that_are_set_by_a_reader_of_an_old_version(rows):  # noqa: F811
    """They are the row's; a time may be meant for what is read."""
    with open(rows[0], "rb") as reader:
        elsewhere(lambda: overwrite(rows[0], doc("new", 700)))
        os.chmod(reader.fileno(), 0o604)
        os.chown(reader.fileno(), 12, 34)
        for st in (os.stat(rows[0]), os.fstat(reader.fileno())):
            assert (st.st_mode & 0o777, st.st_uid, st.st_gid) == (0o604, 12, 34)
        before = os.stat(rows[0]).st_mtime_ns
        with raises("ESTALE"):
            os.utime(reader.fileno(), ns=(10**18, 10**18))
        assert os.stat(rows[0]).st_mtime_ns == before
        os.utime(reader.fileno())
        assert os.stat(rows[0]).st_mtime_ns > before
        assert os.fstat(reader.fileno()).st_size == len(doc(0))
        assert reader.read() == doc(0)


def test_Z8_a_reader_by_a_link_goes_on_with_what_it_opened(held):
    """Though the kernel has it under the node of a version before."""
    path, fd = held
    elsewhere(lambda: overwrite(path, doc("second", 700)))
    with open(link_of(fd), "rb") as reader:
        etag = os.getxattr(reader.fileno(), ETAG)
        assert etag == os.getxattr(path, ETAG)
        elsewhere(lambda: overwrite(path, doc("third", 3)))
        assert os.fstat(reader.fileno()).st_size == len(doc("second", 700))
        assert os.getxattr(reader.fileno(), ETAG) == etag != os.getxattr(path, ETAG)
        assert reader.read() == doc("second", 700)


def test_W2_what_is_cut_by_a_link_is_whole_for_others(held):
    """The writer has no node of his own: the kernel would cut what others read and have mapped."""
    path, fd = held
    before = read(path)
    with open(path, "rb") as reader:
        mapped = mmap.mmap(reader.fileno(), len(before), mmap.MAP_PRIVATE, mmap.PROT_READ)
        for removed in (False, True):
            writer = os.open(link_of(fd), os.O_WRONLY)
            if removed:
                os.unlink(path)
            for size in (0, 3, 700):
                os.ftruncate(writer, size)
                a, b = os.pipe()
                assert os.write(b, mapped) == len(before)
                assert os.read(a, 999) == before == os.pread(reader.fileno(), 999, 0)
                os.close(a)
                os.close(b)
            with raises("EINVAL"):
                os.close(writer)
        mapped.close()


def test_U7_a_descriptor_without_an_open_of_a_row_that_became_an_ordinary_file(held):
    path, fd = held
    os.rename(path, path.with_name("tmp"))
    put(path.with_name("tmp"), "no document")
    assert get(link_of(fd)) == b"no document"
    with open(link_of(fd), "rb") as reader:
        assert os.fstat(reader.fileno()).st_size == 11
    for flags in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC):
        with raises("ESTALE"):
            os.open(link_of(fd), flags)
    assert get(path.with_name("tmp")) == b"no document"


def test_W2_a_link_to_what_another_thread_was_going_to_overwrite(mnt, rows):  # noqa: F811
    """Its node was given by a guess; that somebody read by it is no reason to show what he read."""
    learn(rows)
    fd = os.open(rows[0], O_PATH)
    for n in range(3):
        assert elsewhere(lambda: get(link_of(fd))) == read(rows[0])
        assert elsewhere(lambda: os.getxattr(link_of(fd), ETAG)) == elsewhere(
            lambda: os.getxattr(rows[0], ETAG))
        closes_are_known(mnt)
        elsewhere(lambda at=n: overwrite(rows[0], doc("other", at)))
    os.close(fd)


def test_U7_a_descriptor_that_was_made_by_a_second_guess(rows):  # noqa: F811
    """The row was changed after the first one."""
    learn(rows)
    with raises("EEXIST"):
        os.open(rows[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    elsewhere(lambda: overwrite(rows[0], doc("other", 300)))
    fd = os.open(rows[0], O_PATH)
    learn(rows)
    assert elsewhere(lambda: statx(link_of(fd), FORCE_SYNC)["size"]) == len(doc("other", 300))
    assert elsewhere(lambda: get(link_of(fd))) == doc("other", 300)
    os.close(fd)


def test_W9_a_row_is_not_emptied_by_name_by_who_has_it_open(rows):  # noqa: F811
    """Nor by a thread whose look-up is answered by a guess, though the one before is open."""
    learn(rows)
    fd = os.open(rows[0], os.O_RDWR)
    for size in (0, 3):
        with raises("EINVAL"):
            os.truncate(rows[0], size)
    for p in (rows[1], rows[2]):
        overwrite(p, doc("habit"))
    with raises("EINVAL"):
        os.truncate(rows[0], 3)
    os.close(fd)
    assert read(rows[0]) == doc(0)


def test_A5_a_mode_that_is_set_by_name_holds_for_who_has_the_row_open(part):
    """He is shown it, and does not set back what he had set before."""
    for make in (lambda p: put(p, doc(0)), lambda p: None):
        path = part / "r.json"
        make(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        os.fchmod(fd, 0o600)
        os.chmod(path, 0o640)
        assert os.fstat(fd).st_mode & 0o777 == 0o640
        os.ftruncate(fd, 0)
        os.write(fd, doc(1))
        os.close(os.dup(fd))
        assert os.stat(path).st_mode & 0o777 == os.fstat(fd).st_mode & 0o777 == 0o640
        os.fchmod(fd, 0o600)
        os.pwrite(fd, doc(2), 0)
        os.chmod(path, 0o604)
        os.close(fd)
        assert os.stat(path).st_mode & 0o777 == 0o604
        os.unlink(path)


@pytest.mark.parametrize("by", ("name", "writer"))
def test_A7_a_mode_is_shown_by_every_descriptor(rows, by):  # noqa: F811
    readers = [os.open(rows[0], os.O_RDONLY) for _ in range(2)]
    elsewhere(lambda: overwrite(rows[0], doc("new")))
    readers.append(os.open(rows[0], os.O_RDONLY))
    readers.append(os.open(rows[0], O_PATH))
    writer = os.open(rows[0], os.O_RDWR)
    for fd in (*readers, writer):
        os.fstat(fd)
    os.chmod(writer if by == "writer" else rows[0], 0o604)
    for fd in (*readers, writer):
        assert os.fstat(fd).st_mode & 0o777 == 0o604
        os.close(fd)


def test_W13_who_reads_an_empty_file_that_became_a_row_has_no_link(part):
    path = part / "r.json"
    put(path, "")
    fd = os.open(path, os.O_RDONLY)
    assert os.fstat(fd).st_nlink == 1
    put(path, doc(1))
    assert os.fstat(fd).st_nlink == 0 and xattr(path, "row_key") == "r"
    os.close(fd)


def test_U7_a_descriptor_without_an_open_of_a_row_that_was_an_ordinary_file(held, mnt):
    """In between; who has the file open is no reader of the version before it."""
    path, fd = held
    other = path.with_name("tmp")
    assert get(path) == doc(0)
    closes_are_known(mnt)
    os.rename(path, other)
    put(other, doc("new", 700))
    with open(other, "rb"):
        os.rename(other, path)
        assert os.fstat(fd).st_size == os.stat(path).st_size == len(doc("new", 700))
        assert get(link_of(fd)) == doc("new", 700)
