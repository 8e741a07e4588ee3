# SPDX-License-Identifier: MIT
"""The option blob-space: how much content all blobs of a store may have."""

import errno
import filecmp
import json
import os

import pytest
from blob_client import blobs_of, code
from rest_client import ACCOUNT
from tools import put, raises, sh

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def rest(mount, rest_store):
    """A client of a mounted store with a container, whose blobs may have 1 MiB."""
    return mounted(mount, rest_store)


def mounted(mount, store, *options):
    m = mount(store, "rest=127.0.0.1:0", "rest=blob=127.0.0.1:0", "blob-space=1M", *options)
    client = blobs_of(m, store)
    client.mnt, client.dir = m, m / ACCOUNT / ".blob" / "photos"
    client.ask("PUT", "/photos", {"restype": "container"})
    return client


def stats(rest):
    return json.loads((rest.mnt / ".rowfs" / "stats.json").read_text())["store"]


def refused(answer):
    assert code(answer) == (507, "InsufficientStorage"), answer.body
    assert b"blob-space" in answer.body


def test_BL80_content_is_put_up_to_the_limit(rest):
    assert rest.put("/photos/a", b"x" * (512 * KIB)).status == 201
    refused(rest.put("/photos/b", b"x" * (512 * KIB + 1)))
    assert rest.get("/photos/b").status == 404
    assert rest.put("/photos/b", b"x" * (512 * KIB)).status == 201
    refused(rest.put("/photos/c", b"x" * (8 * KIB)))
    assert rest.put("/photos/c", b"x" * (4 * KIB)).status == 201
    assert rest.ask("DELETE", "/photos/a").status == 202
    assert rest.put("/photos/d", b"x" * (512 * KIB)).status == 201


def test_BL80_pages_and_staged_blocks_count(rest):
    made = rest.ask("PUT", "/photos/disk", headers={
        "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(8 * MIB)})
    assert made.status == 201

    def write(at, n, what="update"):
        return rest.ask("PUT", "/photos/disk", {"comp": "page"}, b"x" * (n if what == "update" else 0), {
            "x-ms-page-write": what, "x-ms-range": f"bytes={at}-{at + n - 1}"})
    assert write(4 * MIB, MIB).status == 201
    refused(write(0, 4 * KIB))
    assert write(4 * MIB, MIB).status == 201
    refused(rest.ask("PUT", "/photos/b", {"comp": "block", "blockid": "MQ=="}, b"x" * (8 * KIB)))
    assert write(4 * MIB, 64 * KIB, "clear").status == 201
    assert write(0, 4 * KIB).status == 201
    assert rest.ask("PUT", "/photos/b", {"comp": "block", "blockid": "MQ=="}, b"x" * (8 * KIB)).status == 201


def test_BL80_the_close_of_a_file_that_is_too_large_fails(rest):
    put(rest.dir / "a", b"x" * (MIB - 8 * KIB))
    raises(errno.ENOSPC, put, rest.dir / "b", b"x" * (9 * KIB))
    assert not (rest.dir / "b").exists()
    put(rest.dir / "b", b"x" * (8 * KIB))
    raises(errno.ENOSPC, put, rest.dir / "b", b"x" * (16 * KIB))
    assert (rest.dir / "b").stat().st_size == 8 * KIB


def test_BL80_a_write_of_pages_that_are_too_many_fails(rest):
    fd = os.open(rest.dir / "disk", os.O_RDWR | os.O_CREAT)
    try:
        os.ftruncate(fd, 8 * MIB)
        assert os.pwrite(fd, b"x" * MIB, 4 * MIB) == MIB
        raises(errno.ENOSPC, os.pwrite, fd, b"x" * 4 * KIB, 0)
        assert os.pread(fd, 1, 0) == b"\0"
        assert os.pwrite(fd, b"y" * MIB, 4 * MIB) == MIB
    finally:
        os.close(fd)


def test_BL81_stats_and_df_show_it(rest, mount):
    put(rest.dir / "a", b"x" * (256 * KIB))
    assert (stats(rest)["blob_bytes"], stats(rest)["blob_space"]) == (256 * KIB, MIB)
    df = os.statvfs(rest.dir)
    assert df.f_blocks * df.f_frsize == MIB
    assert df.f_bavail * df.f_frsize == MIB - 256 * KIB
    assert os.statvfs(rest.mnt.path).f_blocks > df.f_blocks
    rest.mnt.umount()
    again = mounted(mount, rest.store)
    assert stats(again)["blob_bytes"] == 256 * KIB
    refused(again.put("/photos/b", b"x" * MIB))


def test_BL80_without_the_option_the_disk_is_the_limit(mount, rest_store):
    m = mount(rest_store)
    (m / ACCOUNT / ".blob" / "photos").mkdir()
    put(m / ACCOUNT / ".blob" / "photos" / "a", b"x" * (2 * MIB))
    store = json.loads((m / ".rowfs" / "stats.json").read_text())["store"]
    assert store["blob_bytes"] == 2 * MIB and "blob_space" not in store


@pytest.mark.parametrize("size", ["x", "1X", "", "-1"])
def test_a_size_that_is_none_is_refused(rowfs, rest_store, size):
    done = rowfs("serve", rest_store, f"--blob-space={size}", check=False)
    assert done.returncode == 2 and "wants a size" in done.stderr


@pytest.mark.parametrize("tool", ["cp --sparse=always {from_} {to}", "dd if={from_} of={to} bs=64k conv=sparse",
                                  "rsync -S {from_} {to}", "cat {from_} > {to}"])
def test_BL103_zeros_take_no_space(rest, work, tool):
    image, there = work / "image", rest.dir / "image"
    with open(image, "wb") as f:
        f.truncate(64 * MIB)
        os.pwrite(f.fileno(), b"x" * 4 * KIB, 30 * MIB - KIB)  # in two pieces
    sh(tool.format(from_=image, to=there))
    assert stats(rest)["blob_bytes"] == 128 * KIB and filecmp.cmp(image, there, shallow=False)
    answer = rest.ask("GET", "/photos/image", headers={
        "x-ms-range": f"bytes={30 * MIB - 2 * KIB}-{30 * MIB - 1}"})
    assert answer.body == bytes(KIB) + b"x" * KIB
    copied = rest.ask("PUT", "/photos/copy", headers={
        "x-ms-copy-source": f"http://127.0.0.1:{rest.port}/{ACCOUNT}/photos/image"})
    assert copied.status == 202, copied.body
    assert stats(rest)["blob_bytes"] == 256 * KIB
    assert filecmp.cmp(image, rest.dir / "copy", shallow=False)
