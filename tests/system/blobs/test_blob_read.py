# SPDX-License-Identifier: MIT
"""Blobs in the mount, for reading: what REST puts is listed, read and described as files."""

import hashlib
import mmap
import os
import stat
import time

import pytest
from blob_mount import put, rest  # noqa: F401  the fixture
from rest_client import ACCOUNT
from tools import get, raises, reason, sh, xattr

MIB = 1 << 20
LONG = "é" * 400  # 800 bytes


def walk(top):
    """All files below, by their paths, and all directories with a slash."""
    found = []
    for at, dirs, files in os.walk(top):
        at = os.path.relpath(at, top)
        found += [os.path.normpath(f"{at}/{n}") for n in files]
        found += [os.path.normpath(f"{at}/{n}") + "/" for n in dirs]
    return sorted(found)


def test_BL60_containers_and_blobs_are_listed(rest):
    assert os.listdir(rest.mnt / ACCOUNT) == [".blob"] and os.listdir(rest.root) == ["photos"]
    put(rest, "a.txt", "b/c.txt", "b/d/e", "z")
    assert os.listdir(rest.dir) == ["a.txt", "b", "z"]
    assert walk(rest.dir) == ["a.txt", "b/", "b/c.txt", "b/d/", "b/d/e", "z"]
    assert get(rest.dir / "b/d/e") == b"x"
    info = os.stat(rest.dir / "a.txt")
    assert info.st_size == 1 and info.st_blocks == 1 and abs(info.st_mtime - time.time()) < 60
    assert stat.S_ISREG(info.st_mode) and stat.S_ISDIR(os.stat(rest.dir / "b").st_mode)
    with raises("ENOENT"):
        os.stat(rest.dir / "b/none")
    with raises("ENOTDIR"):
        os.listdir(rest.dir / "a.txt")
    assert rest.ask("DELETE", "/photos/b/d/e").status == 202
    assert os.listdir(rest.dir / "b") == ["c.txt"]
    assert rest.ask("DELETE", "/photos", {"restype": "container"}).status == 202
    assert os.listdir(rest.root) == [] and os.listdir(rest.mnt / ACCOUNT) == []


def test_BL60_mkdir_makes_a_container_and_rmdir_removes_an_empty_one(rest):
    os.mkdir(rest.root / "more")
    assert rest.put("/more/x", b"1").status == 201
    with raises("EEXIST"):
        os.mkdir(rest.root / "more")
    with raises("EINVAL"):
        os.mkdir(rest.root / "No")
    assert "container" in reason(rest.root)
    for full in (rest.root / "more", rest.root):
        with raises("ENOTEMPTY"):
            os.rmdir(full)
    assert rest.ask("DELETE", "/more/x").status == 202
    os.rmdir(rest.root / "more")
    os.rmdir(rest.dir)
    os.rmdir(rest.root)
    assert rest.ask("GET", "/photos", {"restype": "container"}).status == 404
    with raises("ENOENT"):
        os.stat(rest.root / "more")


def test_BL61_a_listing_of_many_blobs(rest):
    names = [f"n{i}" for i in range(600)] + [f"d{i}/x" for i in range(300)]
    put(rest, *names)
    shown = os.listdir(rest.dir)
    assert sorted(shown) == sorted([f"n{i}" for i in range(600)] + [f"d{i}" for i in range(300)])
    assert len(shown) == len(set(shown)) == 900
    with os.scandir(rest.dir) as entries:  # others are deleted meanwhile
        first = [next(entries).name for _ in range(3)]
        for name in ("n300", "n301", "n599"):
            assert rest.ask("DELETE", f"/photos/{name}").status == 202
        rest_of = [e.name for e in entries]
    assert len(first + rest_of) == len(set(first + rest_of)) >= 897


ODD = {
    "/lead": "%empty/lead",
    "twice//x": "twice/%empty/x",
    "trail/": "trail/%empty",
    "up/../x": "up/..%dot/x",
    "here/.": "here/.%dot",
    "both": "both.%blob",
    "both/in": "both/in",
    "both.txt": "both.txt",
    "both!": "both!",
    "100%": "100%",
    "a%blob": "a%%blob",
    "a%%dot": "a%%%dot",
    "%empty": "%%empty",
    "blob": "blob",
    "%25": "%25",
    "e\u00e9 \U0001F600": "e\u00e9 \U0001F600",
}


def test_BL62_each_name_has_one_path(rest):
    for name in ODD:
        put(rest, name, body=name.encode())
    files = [f for f in walk(rest.dir) if not f.endswith("/")]
    assert files == sorted(ODD.values())
    assert {get(rest.dir / shown).decode(): shown for shown in files} == ODD
    digest = hashlib.sha256(b"both").hexdigest()[:16]
    for none in ("both%dot", "x%empty", ".%blob", "a%blob", "twice.%blob", "up/...%blob",
                 f"both%~{digest}", f"both%~{digest}.%blob"):
        with raises("ENOENT"):
            os.stat(rest.dir / none)
    assert stat.S_ISDIR(os.stat(rest.dir / "both").st_mode)
    assert rest.ask("DELETE", "/photos/both/in").status == 202
    assert get(rest.dir / "both") == b"both" and "both" in os.listdir(rest.dir)


def test_BL62_a_component_of_more_than_255_bytes(rest):
    exact = "n" * 255
    names = [LONG, LONG + "x", f"{LONG}/in", exact, exact + "n"]
    for name in names:
        put(rest, name, body=name.encode())
    files = [f for f in walk(rest.dir) if not f.endswith("/")]
    assert len(files) == 5 and exact in files
    assert {get(rest.dir / f).decode() for f in files} == set(names)
    assert all(len(part.encode()) <= 255 for f in files for part in f.split("/"))
    assert sum(f.endswith(".%blob") for f in files) == 1
    with raises("ENOENT"):
        os.stat(rest.dir / ("n" * 200 + "%~0123456789abcdef"))


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 64 << 10, (64 << 10) + 1, 5 * MIB + 3])
def test_BL63_a_blob_is_read_at_any_offset_and_mapped(rest, size):
    body = bytes(i * 7 % 251 for i in range(1000)) * (size // 1000 + 1)
    body = body[:size]
    put(rest, "big", body=body)
    assert get(rest.dir / "big") == body and os.stat(rest.dir / "big").st_size == size
    with open(rest.dir / "big", "rb") as f:
        for at in {0, 1, size // 2, max(size - 5, 0), size}:
            assert os.pread(f.fileno(), 70000, at) == body[at:at + 70000]
        assert os.pread(f.fileno(), 10, size + 10) == b""
        if size > 0:
            with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                assert m[:] == body
    assert sh(f"cat {rest.dir}/big | sha256sum; sha256sum < {rest.dir}/big").stdout.split()[0::2] \
        == [sh(f"sha256sum {rest.dir}/big").stdout.split()[0]] * 2


def test_BL64_a_reader_keeps_the_version_that_it_opened_or_gets_an_error(rest):
    put(rest, "small", body=b"one")
    put(rest, "large", body=b"1" * 5 * MIB)
    with open(rest.dir / "small", "rb") as small, open(rest.dir / "large", "rb") as large:
        assert large.read(10) == b"1" * 10
        put(rest, "small", body=b"two, which is longer")
        put(rest, "large", body=b"2" * 6 * MIB)
        assert small.read() == b"one" and os.fstat(small.fileno()).st_size == 3
        assert os.fstat(large.fileno()).st_size == 5 * MIB
        with raises("ESTALE"):
            assert set(os.pread(large.fileno(), 100, 4 * MIB)) == {ord("1")}
            os.pread(large.fileno(), 100, 3 * MIB)
            os.pread(large.fileno(), 100, 5 * MIB - 100)
    assert get(rest.dir / "small") == b"two, which is longer"
    assert get(rest.dir / "large") == b"2" * 6 * MIB


def test_BL65_attributes(rest):
    answer = rest.ask("PUT", "/photos/a", body=b"x", headers={
        "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": "text/plain",
        "x-ms-blob-cache-control": "no-cache", "x-ms-meta-color": "red", "x-ms-meta-n": "1"})
    path = rest.dir / "a"
    assert os.listxattr(path) == ["user.meta.color", "user.meta.n", "user.rowfs.cache_control",
                                  "user.rowfs.content_type"]
    assert os.getxattr(path, "user.meta.color") == b"red"
    assert xattr(path, "content_type") == "text/plain" and xattr(path, "blob_type") == "block"
    assert xattr(path, "etag") == answer.headers["ETag"]
    assert xattr(path, "cache_control") == "no-cache"
    for none in ("user.meta.Color", "user.rowfs.content_language", "user.rowfs.none"):
        with raises("ENODATA"):
            os.getxattr(path, none)
    put(rest, "plain")
    assert os.listxattr(rest.dir / "plain") == []
    assert xattr(rest.dir / "plain", "content_type") == "application/octet-stream"
    assert rest.ask("PUT", "/photos", {"restype": "container", "comp": "metadata"},
                    headers={"x-ms-meta-owner": "me"}).status == 200
    assert os.getxattr(rest.dir, "user.meta.owner") == b"me"
    assert os.listxattr(rest.dir) == ["user.meta.owner"] and os.listxattr(rest.root) == []


def test_BL66_a_page_blob_is_read_as_it_is(rest):
    assert rest.ask("PUT", "/photos/disk", headers={
        "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(8 << 40)}).status == 201
    info = os.stat(rest.dir / "disk")
    assert info.st_size == 8 << 40 and info.st_blocks == 0
    assert xattr(rest.dir / "disk", "blob_type") == "page"
    page = {"x-ms-page-write": "update", "x-ms-range": f"bytes={1 << 30}-{(1 << 30) + 511}"}
    with open(rest.dir / "disk", "rb") as f:
        assert os.pread(f.fileno(), 1024, 1 << 30) == bytes(1024)
        for byte in (b"a", b"b"):
            assert rest.ask("PUT", "/photos/disk", {"comp": "page"}, byte * 512,
                            headers=page).status == 201
            assert os.pread(f.fileno(), 1024, 1 << 30) == byte * 512 + bytes(512)
        assert os.fstat(f.fileno()).st_blocks == 1
        put(rest, "disk", body=b"block")
        with raises("ESTALE"):
            os.pread(f.fileno(), 512, 0)
    assert get(rest.dir / "disk") == b"block"
