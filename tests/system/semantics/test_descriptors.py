# SPDX-License-Identifier: MIT
"""What random walks over descriptors (test_random_descriptors.py) have found, each by itself: what is
asked of a descriptor, or done by a link to it in /proc/self/fd, after the row has changed."""

import json
import os

import pytest

from rest_client import ACCOUNT, Client, ok
from test_speculation import O_PATH, doc, elsewhere, learn, overwrite, read, rows  # noqa: F401
from tools import FORCE_SYNC, closes_are_known, get, put, raises, sh, statx, xattr

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


def is_stale(fd):
    """Nothing is done by the descriptor or its link."""
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_TRUNC):
        with raises("ESTALE"):
            os.open(link_of(fd), flags)
    with pytest.raises(AssertionError, match="ESTALE"):
        statx(link_of(fd), FORCE_SYNC)
    with raises("ESTALE"):
        os.chmod(link_of(fd), 0o604)
    for size in (0, 3):
        with raises("ESTALE"):
            os.truncate(link_of(fd), size)
    return True


def test_U7_a_descriptor_without_an_open_of_the_current_version(held):
    path, fd = held
    assert get(link_of(fd)) == doc(0)
    os.chmod(link_of(fd), 0o604)
    os.utime(link_of(fd), ns=(10**18, 10**18))
    assert os.fstat(fd) == os.stat(path)
    assert (os.stat(path).st_mode & 0o777, os.stat(path).st_mtime_ns) == (0o604, 10**18)
    assert os.getxattr(link_of(fd), ETAG) == os.getxattr(path, ETAG)
    with raises("EINVAL"):
        os.truncate(link_of(fd), 0)
    for flags in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
        with raises("ESTALE"):
            os.open(link_of(fd), flags)
    assert get(path) == doc(0)


@pytest.mark.parametrize("change", CHANGES)
def test_U7_a_descriptor_without_an_open_does_not_follow_the_row(held, change):
    path, fd = held
    elsewhere(lambda: CHANGES[change](path))
    before, now = os.stat(path), get(path)
    assert now != doc(0) and is_stale(fd)
    assert os.stat(path) == before and get(path) == now


def test_U7_a_descriptor_without_an_open_over_a_change_through_rest(rest_mount, rest_store):
    mount = rest_mount(rest_store)
    with Client(mount.port) as rest:
        ok(rest.create_table("Rows"), 201)
        ok(rest.insert("Rows", {"PartitionKey": "p", "RowKey": "r", "V": 1}), 201)
        path = mount / ACCOUNT / "Rows/p/r.json"
        fd = os.open(path, O_PATH)
        ok(rest.merge("Rows", "p", "r", {"W": "x" * 700}), 204)
        assert is_stale(fd) and b"xxx" in get(path)
        os.close(fd)


def test_U7_a_descriptor_without_an_open_of_what_somebody_reads(held):
    """The version that is read by the node."""
    path, fd = held
    with open(path, "rb") as reader:
        elsewhere(lambda: overwrite(path, doc("new", 700)))
        assert get(link_of(fd)) == get(link_of(reader.fileno())) == doc(0)
        assert os.fstat(fd).st_size == len(doc(0))
        assert get(path) == doc("new", 700)


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


def test_U7_a_descriptor_without_an_open_of_a_row_that_became_an_ordinary_file(held):
    path, fd = held
    os.rename(path, path.with_name("tmp"))
    put(path.with_name("tmp"), "no document")
    assert is_stale(fd)
    assert get(path.with_name("tmp")) == b"no document"


def test_U7_a_descriptor_without_an_open_of_an_ordinary_file(part):
    path = part / "tmp"
    put(path, "one")
    fd = os.open(path, O_PATH)
    put(path, "two and more")
    assert get(link_of(fd)) == b"two and more" and os.fstat(fd).st_size == 12
    put(link_of(fd), "three")
    assert get(path) == b"three"
    os.close(fd)


def test_W2_a_link_to_what_another_thread_was_going_to_overwrite(mnt, rows):  # noqa: F811
    """Its node was given speculatively, and is nobody else's."""
    learn(rows)
    fd = os.open(rows[0], O_PATH)
    try:
        for n in range(3):
            assert elsewhere(lambda: is_stale(fd))
            closes_are_known(mnt)
            elsewhere(lambda at=n: overwrite(rows[0], doc("other", at)))
    finally:
        os.close(fd)


# -- what shells open by number: /dev/stdin and /dev/fd/N are links to /proc/self/fd

READS = ("cat /dev/stdin < r.json", "cat /dev/fd/3 3< r.json", "exec 3< r.json; cat /dev/fd/3",
         "jq -c . /dev/stdin < r.json", "exec 3<> r.json; cat /dev/fd/3",
         "exec 3< r.json; cat <&3", "{ while read -r l; do echo \"$l\"; done < /dev/stdin; } < r.json")


@pytest.mark.parametrize("script", READS)
def test_U7_a_shell_reads_a_row_by_number(part, script):
    put(part / "r.json", '{"v":1}\n')
    assert sh(script, part).stdout == '{"v":1}\n'


WRITES = ("{ echo '{\"v\":2}' > /dev/stdout; } > r.json", "echo '{\"v\":2}' | tee /dev/fd/3 3> r.json",
          "exec 3> r.json; echo '{\"v\":2}' > /dev/fd/3", "echo '{\"v\":2}' 1<> r.json",
          "exec 3<> r.json; echo '{\"v\":2}' >&3; exec 3>&-",
          "exec 3<> r.json; echo '{\"v\":2}' > /dev/fd/3; cat /dev/fd/3; exec 3>&-",
          "cp /dev/stdin /dev/fd/3 3> r.json <<< '{\"v\":2}'", "cat > r.json <<END\n{\"v\":2}\nEND")


@pytest.mark.parametrize("script", WRITES)
@pytest.mark.parametrize("old", ('{"v":1}\n', None))
def test_U7_a_shell_writes_a_row_by_number(part, script, old):
    if old:
        put(part / "r.json", old)
    sh(script, part)
    assert get(part / "r.json") == b'{"v":2}\n'


def test_U7_here_documents_of_a_shell_whose_temporary_files_are_here(part):
    """Long ones are files, that are opened, removed and read by number."""
    for cat in ("cat", "cat /dev/stdin"):
        out = sh(f"export TMPDIR=$PWD; {cat} <<END\n$(seq 30000)\nEND", part).stdout
        assert out == "".join(f"{n}\n" for n in range(1, 30_001))
    assert os.listdir(part) == []


def test_U7_a_shell_reads_by_number_what_it_opened_before_a_change(part):
    put(part / "r.json", '{"v":1}\n')
    out = sh("exec 3< r.json; echo '{\"v\":2}' > r.json; cat /dev/fd/3; exec 3<&-; cat r.json", part)
    assert out.stdout == '{"v":1}\n{"v":2}\n'


def test_W9_a_row_is_not_emptied_by_name_by_who_has_it_open(rows):  # noqa: F811
    """Nor by a thread whose look-up is speculative, though the one before is open."""
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


def test_W13_who_reads_an_empty_file_that_became_a_row_reads_it_still(part):
    path = part / "r.json"
    put(path, "")
    fd = os.open(path, os.O_RDONLY)
    put(path, doc(1))
    st, now = os.fstat(fd), os.stat(path)
    assert (st.st_nlink, st.st_size, st.st_ino) == (1, 0, now.st_ino)
    assert os.read(fd, 99) == b"" and get(path) == doc(1) and xattr(path, "row_key") == "r"
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
        assert is_stale(fd) and get(path) == doc("new", 700)
