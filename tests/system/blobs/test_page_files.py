# SPDX-License-Identifier: MIT
"""Page blobs as files: made by truncate, written in place, beside REST."""

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import random
import re
import shutil
import subprocess
import threading

import pytest
import tools
from blob_mount import put, rest  # noqa: F401  the fixture
from rest_client import ACCOUNT
from tools import get, raises, sh, xattr

DISK = "/photos/disk"
TIB8 = 8 << 40
LIBC = ctypes.CDLL(None, use_errno=True)
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO_RANGE = 1, 2, 8, 16


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


def fallocate(fd, mode, offset, n):
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(n)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def ranges(fd):
    """The data of a file, as SEEK_DATA and SEEK_HOLE tell it."""
    found, at = [], 0
    with contextlib.suppress(OSError):
        while True:
            at = os.lseek(fd, at, os.SEEK_DATA)
            found.append((at, at := os.lseek(fd, at, os.SEEK_HOLE)))
    with raises("ENXIO"):
        os.lseek(fd, at, os.SEEK_DATA)
    return found


def listed(rest, start=0, end=TIB8):
    """The page ranges of the blob in [start, end), as REST tells them."""
    text = rest.ask("GET", DISK, {"comp": "pagelist"}, headers={
        "x-ms-range": f"bytes={start}-{end - 1}"}).body.decode()
    return [(int(a), int(b) + 1) for a, b in re.findall(
        r"<PageRange><Start>(\d+)</Start><End>(\d+)</End>", text)]


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


def commits(rest):
    return json.loads(get(rest.mnt / ".rowfs" / "stats.json"))["store"]["commits"]


@pytest.mark.parametrize("offset, n", [(1024, 512), (2048, 1 << 19), (1500, 36), (100, 1436)])
def test_BL91_a_write_behind_the_end_is_one_step(rest, make, offset, n):
    fd = make(1024)
    os.pwrite(fd, b"x" * 1024, 0)
    before = commits(rest)
    assert os.pwrite(fd, b"y" * n, offset) == n
    assert commits(rest) == before + 1
    assert body(rest) == (b"x" * min(offset, 1024)).ljust(offset, b"\0") + b"y" * n


def test_BL91_writers_who_append_lose_nothing(rest, make):
    make(512)

    def append(mark):
        with open(rest.dir / "disk", "ab", buffering=0) as f:
            for _ in range(20):
                f.write(mark * 512)
    workers = [threading.Thread(target=append, args=(m,)) for m in (b"a", b"b", b"c")]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    pages = [body(rest)[i:i + 512] for i in range(512, 61 * 512, 512)]
    assert sorted(pages) == sorted([b"a" * 512, b"b" * 512, b"c" * 512] * 20)
    assert len(body(rest)) == 61 * 512


def test_BL92_a_size_is_of_whole_pages(rest, make):
    fd = make(1024)
    os.pwrite(fd, b"x" * 1024, 0)
    for size in 1, 513, 1535:
        with raises("EINVAL"):
            os.ftruncate(fd, size)
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


def unaligned(n):
    """Bytes behind a page's boundary, where no end of a page of memory ends a page of a blob."""
    data, memory = os.urandom(n), mmap.mmap(-1, n + 4096)
    memory[100:100 + n] = data
    return data, memoryview(memory)[100:100 + n]


@pytest.mark.parametrize("append", [0, os.O_APPEND])
@pytest.mark.parametrize("n", [(1 << 20) - 4096, 1 << 20, (1 << 20) + 512, (3 << 20) + 512])
@pytest.mark.parametrize("old", [True, False])
def test_BL92_a_write_of_any_length_and_buffer_goes_on_behind_the_end(rest, make, append, n, old):
    """The kernel cuts a write of more than 1 MiB where a page of its buffer ends."""
    make(512)
    if old:
        fd = os.open(rest.dir / "disk", os.O_WRONLY | append)
    else:
        fd = os.open(rest.dir / "new", os.O_WRONLY | os.O_CREAT | append)
        os.ftruncate(fd, 512)
    data, memory = unaligned(n)
    assert os.pwrite(fd, memory, 512) == n
    os.close(fd)
    assert rest.get(DISK if old else "/photos/new").body == bytes(512) + data


@pytest.mark.parametrize("append", [0, os.O_APPEND])
def test_BL92_pieces_of_any_length_fill_pages(rest, make, append):
    make(512)
    data = os.urandom(5 * 300 + 36)
    with open(rest.dir / "disk", "r+b" if not append else "ab", buffering=0) as f:
        f.seek(512)
        for at in range(0, len(data), 300):
            f.write(data[at:at + 300])
    assert body(rest) == bytes(512) + data


@pytest.mark.parametrize("change", [lambda other: os.ftruncate(other, 0),
                                    lambda other: os.pwrite(other, b"z" * 512, 512)], ids=["cut", "write"])
def test_BL92_an_append_behind_a_change_of_others_begins_a_page(rest, make, change):
    other = make(512)
    with open(rest.dir / "disk", "ab", buffering=0) as f:
        f.write(b"a" * 100)
        change(other)
        before = body(rest)
        f.write(b"b" * 100)
        f.write(b"c" * 412)
        assert body(rest) == before + b"b" * 100 + b"c" * 412


@pytest.mark.parametrize("n, whole", [(511, False), (512, True), (513, False), (1024, True)])
def test_BL92_close_tells_of_a_page_that_zeros_fill(rest, make, n, whole):
    make(512)
    fd = os.open(rest.dir / "disk", os.O_WRONLY)
    assert os.pwrite(fd, b"y" * n, 512) == n
    if whole:
        os.close(fd)
    else:
        with raises("EINVAL"):
            os.close(fd)
        assert "zeros fill its last page" in tools.reason(rest.dir / "disk")
    assert body(rest) == bytes(512) + (b"y" * n).ljust((n + 511) // 512 * 512, b"\0")


@pytest.mark.parametrize("change, n", [
    (lambda fd, other: os.ftruncate(fd, 1024), 1024), (lambda fd, other: os.ftruncate(fd, 0), 0),
    (lambda fd, other: os.pwrite(other, b"z" * 24, 1000), 1024)], ids=["as large", "cut", "write"])
def test_BL92_a_size_that_somebody_sets_is_no_error_of_close(rest, make, change, n):
    other = make(512)
    fd = os.open(rest.dir / "disk", os.O_WRONLY)
    os.pwrite(fd, b"y" * 488, 512)
    change(fd, other)
    os.close(fd)
    assert len(body(rest)) == n


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


def test_BL95_data_and_holes_are_the_page_ranges(rest, make):
    fd = make(TIB8)
    assert ranges(fd) == [] and os.lseek(fd, 0, os.SEEK_HOLE) == 0
    for at, n in (0, 1), (1024, 512), (4096, 4096), (8192, 513), (1 << 40, 1), (TIB8 - 1, 1):
        os.pwrite(fd, b"x" * n, at)
    expected = [(0, 512), (1024, 1536), (4096, 9216), (1 << 40, (1 << 40) + 512), (TIB8 - 512, TIB8)]
    assert ranges(fd) == expected == listed(rest)
    with open(rest.dir / "disk", "rb", buffering=0) as other:
        assert ranges(other.fileno()) == expected
        assert os.lseek(other.fileno(), 4100, os.SEEK_DATA) == 4100
        assert os.lseek(other.fileno(), 300, os.SEEK_HOLE) == 512
        assert os.lseek(other.fileno(), 600, os.SEEK_HOLE) == 600
        assert os.lseek(other.fileno(), 600, os.SEEK_DATA) == 1024
        assert os.fstat(other.fileno()).st_blocks == 1 + 1 + 10 + 1 + 1
        for whence in os.SEEK_DATA, os.SEEK_HOLE:
            with raises("ENXIO"):
                os.lseek(other.fileno(), TIB8, whence)


def test_BL95_segments_of_a_large_blob_are_its_data(rest, make):
    size, segment, rng = 500 * 10 ** 9, 10 ** 10, random.Random(19)
    fd = make(size)
    for _ in range(300):
        n = 512 * rng.randrange(1, 20)
        os.pwrite(fd, b"x" * n, 512 * rng.randrange((size - n) // 512))
    os.pwrite(fd, b"x" * 4096, segment - 2048)  # in two segments
    joined = []
    for start in range(0, size, segment):
        for first, end in listed(rest, start, start + segment):
            if joined and joined[-1][1] == first:
                first, _ = joined.pop()
            joined.append((first, end))
    assert joined == listed(rest) == ranges(fd) and len(joined) > 250


def test_BL95_other_files_are_data_to_their_end(rest):
    tools.put(rest.dir / "block", "12345")
    with open(rest.dir / "block", "rb") as f:
        assert ranges(f.fileno()) == [(0, 5)]
    with open(rest.dir / "block", "r+b", buffering=0) as f:
        f.write(b"0123456789")
        assert ranges(f.fileno()) == [(0, 10)]
        with raises("EOPNOTSUPP"):
            fallocate(f.fileno(), KEEP_SIZE, 0, 10)
    for text in '{"A":1}', "ordinary":
        path = rest.mnt / ACCOUNT / ("Posts/p/r.json" if "A" in text else "Posts/p/file")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
            f.flush()
            assert ranges(f.fileno()) == [(0, len(text))]
        with open(path, "rb") as f:
            assert ranges(f.fileno()) == [(0, os.fstat(f.fileno()).st_size)]
    with open(rest.mnt / ".rowfs" / "stats.json", "rb") as f:
        assert os.lseek(f.fileno(), 0, os.SEEK_DATA) == 0


@pytest.mark.parametrize("mode", [PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE | KEEP_SIZE, ZERO_RANGE])
@pytest.mark.parametrize("offset, n", [(0, 512), (100, 50), (100, 512), (511, 1026), (512, 8192),
                                       (4096, 300000), (20000, 1 << 20)])
def test_BL96_fallocate_makes_holes(rest, make, mode, offset, n):
    fd, size = make(65536), 65536
    os.pwrite(fd, b"x" * 32768, 0)
    model, end = bytearray(b"x" * 32768 + bytes(32768)), offset + n
    grows = mode == ZERO_RANGE and end > size
    if grows and end % 512 != 0:
        with raises("EINVAL"):
            fallocate(fd, mode, offset, n)
        return
    fallocate(fd, mode, offset, n)
    size = max(size, end) if grows else size
    model = model.ljust(size, b"\0")
    model[offset:min(end, size)] = bytes(max(0, min(end, size) - offset))
    assert body(rest) == model and os.fstat(fd).st_size == size
    whole = max(0, min(end, 32768) // 512 - (offset + 511) // 512)
    assert os.fstat(fd).st_blocks == 64 - whole


def test_BL97_fallocate_reserves_nothing(rest, make):
    fd = make(1024)
    fallocate(fd, KEEP_SIZE, 0, 1 << 30)
    assert os.fstat(fd).st_size == 1024
    os.posix_fallocate(fd, 0, 4096)
    info = os.fstat(fd)
    assert (info.st_size, info.st_blocks) == (4096, 0) and body(rest) == bytes(4096)
    for mode, n in (COLLAPSE, 512), (0, 4097):
        with raises("EOPNOTSUPP" if mode else "EINVAL"):
            fallocate(fd, mode, 0, n)


def test_BL98_tools_keep_a_page_blob_sparse(rest, make, work):
    fd = make(64 << 20)
    os.pwrite(fd, os.urandom(4096), 1 << 20)
    os.pwrite(fd, os.urandom(512), (64 << 20) - 512)
    sh(f"cp --sparse=always disk {work}/a; truncate -s 64M b c d"
       f"; dd if={work}/a of=b bs=64k conv=sparse,notrunc status=none; cmp b disk"
       f"; cp --sparse=always {work}/a c; cmp c disk"
       f"; rsync --inplace --sparse {work}/a d; cmp d disk"
       f"; mkdir {work}/t; tar -cSf - disk | tar -xSf - -C {work}/t; cmp {work}/t/disk disk"
       f"; tar -cSf {work}/tar disk", cwd=rest.dir)
    assert os.stat(work / "a").st_blocks < 1000 and os.stat(work / "tar").st_size < 1 << 20
    assert os.stat(work / "t" / "disk").st_blocks < 1000
    for name in "bcd":
        assert xattr(rest.dir / name, "blob_type") == "page"
        assert os.stat(rest.dir / name).st_blocks < 1000, name


def test_BL98_qemu_img_writes_and_reads_page_blobs(rest, work):
    if shutil.which("qemu-img") is None:
        pytest.skip("there is no qemu-img")
    image, disk = work / "image", rest.dir / "disk"
    with open(image, "wb") as f:
        f.truncate(64 << 20)
        for at in 0, 30 << 20, (64 << 20) - 65536:
            os.pwrite(f.fileno(), b"x" * 65536, at)
    sh(f"qemu-img convert -f raw -O raw {image} {disk}")
    assert xattr(disk, "blob_type") == "page" and get(disk) == get(image)
    assert sum(end - first for first, end in listed(rest)) == 3 * 65536
    sh(f"qemu-img convert -f raw -O qcow2 {disk} {work}/q && qemu-img compare {disk} {work}/q")
    sh(f"qemu-img create -f raw {rest.dir}/empty 1T && qemu-img resize -f raw {rest.dir}/empty 2T")
    info = os.stat(rest.dir / "empty")
    assert info.st_size == 2 << 40 and info.st_blocks <= 8


def test_BL99_an_attribute_makes_an_empty_file_a_page_blob(rest):
    path, name = rest.dir / "disk", "user.rowfs.blob_type"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.setxattr(fd, name, b"page")
    os.pwrite(fd, b"x" * 512, 1024)
    os.close(fd)
    assert xattr(path, "blob_type") == "page" and os.stat(path).st_blocks == 1
    os.setxattr(path, name, b"page")
    tools.put(rest.dir / "empty", "")
    os.setxattr(rest.dir / "empty", "user.meta.a", b"b")
    os.setxattr(rest.dir / "empty", name, b"page")
    assert xattr(rest.dir / "empty", "blob_type") == "page"
    assert os.getxattr(rest.dir / "empty", "user.meta.a") == b"b"
    tools.put(rest.dir / "full", "x")
    os.setxattr(rest.dir / "full", name, b"block")
    for file, value in ("full", b"page"), ("disk", b"block"), ("empty", b"append"):
        with raises("EINVAL"):
            os.setxattr(rest.dir / file, name, value)
    assert get(rest.dir / "full") == b"x"


def test_BL99_a_file_with_a_size_stays_a_blob_of_blocks(rest):
    fd = os.open(rest.dir / "new", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1000)
    with raises("EINVAL"):
        os.setxattr(fd, "user.rowfs.blob_type", b"page")
    os.close(fd)
    assert get(rest.dir / "new") == bytes(1000) and xattr(rest.dir / "new", "blob_type") == "block"


@pytest.mark.parametrize("way", ["attribute", "client"])
def test_BL99_a_program_that_opened_a_blob_of_blocks_puts_none_over_a_page_blob(rest, way):
    path = rest.dir / "new"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.fsync(fd)
    os.write(fd, b"text")
    if way == "attribute":
        os.setxattr(path, "user.rowfs.blob_type", b"page")
    else:
        assert rest.ask("PUT", "/photos/new", headers={
            "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}).status == 201
    with raises("ESTALE"):
        os.fsync(fd)
    with raises("ESTALE"):
        os.close(fd)
    assert xattr(path, "blob_type") == "page"
    assert get(path) == bytes(0 if way == "attribute" else 512)


def test_BL100_a_file_system_in_a_page_blob_survives_a_kill(rest, mount, work):
    (work / "a").write_bytes(os.urandom(1 << 20))
    sh(f"truncate -s 1G disk && /sbin/mkfs.ext4 -qF disk"
       f" && /sbin/debugfs -w -R 'write {work}/a a' disk", cwd=rest.dir)
    assert 0 < os.stat(rest.dir / "disk").st_blocks < 20000
    rest.mnt.kill9()
    again = mount(rest.store) / ACCOUNT / ".blob/photos"
    sh(f"/sbin/e2fsck -fn disk && /sbin/debugfs -R 'dump a {work}/b' disk && cmp {work}/a {work}/b",
       cwd=again)


def loop_device(path):
    """Attaches the file to a loop device, or skips the test."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("a loop mount needs root and losetup")
    got = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True)
    if got.returncode != 0:
        pytest.skip(f"there are no loop devices here: {got.stderr.strip()}")
    return got.stdout.strip()


def test_BL100_a_loop_mount_of_a_page_blob_survives_a_kill(rest, mount, work):
    sh("truncate -s 64M disk && /sbin/mkfs.ext4 -qF disk", cwd=rest.dir)
    device, point = loop_device(rest.dir / "disk"), work / "point"
    point.mkdir()
    try:
        sh(f"mount -t ext4 {device} {point}")
        kept = os.urandom(1 << 20)
        tools.put(point / "kept", kept)
        sh(f"sync -f {point}")
        tools.put(point / "unsynced", kept)
        rest.mnt.kill9()
    finally:
        subprocess.run(["umount", "-l", point], check=False)
        subprocess.run(["losetup", "-d", device], check=False)
    again = mount(rest.store) / ACCOUNT / ".blob/photos"
    # The journal is replayed; nothing else is wrong.
    sh("/sbin/e2fsck -p disk; /sbin/e2fsck -fn disk", cwd=again)
    sh(f"/sbin/debugfs -R 'dump kept {work}/kept' disk", cwd=again)
    assert (work / "kept").read_bytes() == kept


def test_dd_and_truncate_write_page_blobs(rest):
    sh("truncate -s 1M disk && dd if=/dev/urandom of=disk bs=3000 count=100 conv=notrunc,fsync"
       " && dd if=disk of=/dev/null", cwd=rest.dir)
    assert len(body(rest)) == 1 << 20 and os.stat(rest.dir / "disk").st_blocks == 586


@pytest.mark.parametrize("kind", ["page", "block"])
def test_BL102_locks_belong_to_the_blob(rest, make, kind):
    if kind == "page":
        fd = make(1024)
    else:
        make(0)
        fd = os.open(rest.dir / "block", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"x")
        os.fsync(fd)
    path = rest.dir / ("disk" if kind == "page" else "block")
    fcntl.flock(fd, fcntl.LOCK_EX)
    others = [open(path, mode) for mode in ("rb", "r+b")]
    try:
        for other in others:
            with raises("EAGAIN"):
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
        fcntl.flock(others[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        with raises("EAGAIN"):
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finally:
        for other in others:
            other.close()
        if kind == "block":
            os.close(fd)
