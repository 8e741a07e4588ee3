# SPDX-License-Identifier: MIT
"""Page blobs as files: made by truncate, written in place, beside REST."""

import os

import pytest
from blob_mount import put, rest  # noqa: F401  the fixture
from tools import get, raises, sh, xattr

DISK = "/photos/disk"
TIB8 = 8 << 40


@pytest.fixture
def make(rest):  # noqa: F811
    """A function that returns a descriptor of a new page blob; it is closed after the test."""
    made = []

    def open_new(size=1 << 20):
        made.append(os.open(rest.dir / "disk", os.O_RDWR | os.O_CREAT | os.O_EXCL))
        os.ftruncate(made[0], size)
        return made[0]
    yield open_new
    for fd in made:
        os.close(fd)


def body(rest):
    return rest.get(DISK).body


@pytest.mark.parametrize("size", [512, 1 << 20, TIB8])
def test_BL90_a_new_file_of_a_size_is_a_page_blob(rest, make, size):
    fd = make(size)
    info = os.fstat(fd)
    assert info.st_size == size and info.st_blocks == 0
    answer = rest.ask("HEAD", DISK)
    assert answer.headers["x-ms-blob-type"] == "PageBlob"
    assert answer.headers["content-length"] == str(size)
    assert os.pwrite(fd, b"end", size - 3) == 3
    assert os.pread(fd, 512, size - 512) == bytes(509) + b"end"
    assert os.fstat(fd).st_blocks == 1 == os.stat(rest.dir / "disk").st_blocks
    assert xattr(rest.dir / "disk", "blob_type") == "page"


@pytest.mark.parametrize("change", ["ftruncate(fd, 513)", "write(fd, b'x'); os.ftruncate(fd, 512)",
                                    "fsync(fd); os.ftruncate(fd, 512)"])
def test_BL90_other_new_files_are_block_blobs(rest, change):
    fd = os.open(rest.dir / "disk", os.O_RDWR | os.O_CREAT)
    exec(f"os.{change}", {"os": os, "fd": fd})
    os.close(fd)
    assert xattr(rest.dir / "disk", "blob_type") == "block"


def test_BL91_bytes_are_written_in_place(rest, make):
    model, fd = bytearray(1 << 20), make()
    for offset, n in (0, 1), (511, 2), (4095, 4098), (513, 1022), (700000, 300001), (1 << 19, 512):
        data = os.urandom(n)
        assert os.pwrite(fd, data, offset) == n
        model[offset:offset + n] = data
        assert body(rest) == model == get(rest.dir / "disk")
    with open(rest.dir / "disk", "r+b", buffering=0) as other:  # keeps the descriptor of before
        other.write(b"again")
        model[:5] = b"again"
    assert rest.ask("PUT", DISK, {"comp": "page"}, b"R" * 512, headers={
        "x-ms-page-write": "update", "x-ms-range": "bytes=512-1023"}).status == 201
    model[512:1024] = b"R" * 512
    os.fsync(fd)
    assert os.pread(fd, 1 << 20, 0) == model == body(rest)


def test_BL92_a_size_is_of_whole_pages(rest, make):
    fd = make(1024)
    os.pwrite(fd, b"x" * 1024, 0)
    for size in 1, 513, 1535:
        with raises("EINVAL"):
            os.ftruncate(fd, size)
    with raises("EINVAL"):
        os.pwrite(fd, b"y" * 513, 1024)
    with raises("EFBIG"):
        os.ftruncate(fd, TIB8 + 512)
    assert body(rest) == b"x" * 1024
    os.pwrite(fd, b"z" * 512, 2048)  # grows
    assert body(rest) == b"x" * 1024 + bytes(1024) + b"z" * 512
    os.truncate(rest.dir / "disk", 512)
    os.ftruncate(fd, 1024)
    assert body(rest) == b"x" * 512 + bytes(512)
    with open(rest.dir / "disk", "ab", buffering=0) as f:
        f.write(b"a" * 512)
    assert body(rest) == b"x" * 512 + bytes(512) + b"a" * 512
    with open(rest.dir / "disk", "wb"):
        pass
    assert body(rest) == b"" and xattr(rest.dir / "disk", "blob_type") == "page"


def test_BL93_a_lease_keeps_writers_away(rest, make):
    fd = make(1024)
    assert rest.ask("PUT", DISK, {"comp": "lease"}, headers={
        "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}).status == 201
    with raises("EBUSY"):
        os.pwrite(fd, b"x", 0)
    with raises("EBUSY"):
        os.ftruncate(fd, 512)
    with raises("EBUSY"):
        open(rest.dir / "disk", "r+b")
    assert body(rest) == bytes(1024)


def test_BL94_a_writer_of_a_replaced_blob_changes_nothing(rest, make):
    fd = make(1024)
    put(rest, "disk", body=b"block")
    with raises("ESTALE"):
        os.pwrite(fd, b"x", 0)
    assert get(rest.dir / "disk") == b"block"


def test_dd_and_truncate_write_page_blobs(rest):
    sh("truncate -s 1M disk && dd if=/dev/urandom of=disk bs=3000 count=100 conv=notrunc,fsync"
       " && dd if=disk of=/dev/null", cwd=rest.dir)
    assert len(body(rest)) == 1 << 20 and os.stat(rest.dir / "disk").st_blocks == 586
