# SPDX-License-Identifier: MIT
"""Snapshots of blobs as files: read-only, in the hidden directory .%snapshots of each directory."""

import errno
import os

import pytest
from blob_mount import put, rest  # noqa: F401 - a fixture
from rest_client import ACCOUNT
from tools import get, raises, sh
from tools import put as put_file

SNAPSHOTS = ".%snapshots"


def snapshot(rest, name, **metadata):  # noqa: F811
    made = rest.ask("PUT", f"/photos/{name}", {"comp": "snapshot"},
                    headers={f"x-ms-meta-{k}": v for k, v in metadata.items()})
    assert made.status == 201
    return made.headers["x-ms-snapshot"]


def test_BL85_a_snapshot_is_a_file(rest):  # noqa: F811
    put(rest, "a", "d/b", "d/e/c", body=b"before")
    times = {name: snapshot(rest, name) for name in ("a", "d/b", "d/e/c")}
    second = snapshot(rest, "a", note="kept")
    put(rest, "a", "d/b", "d/e/c", body=b"and after")
    top = rest.dir / SNAPSHOTS
    assert os.listdir(top) == [f"a@{times['a']}", f"a@{second}"]
    assert os.listdir(rest.dir / "d" / SNAPSHOTS) == [f"b@{times['d/b']}"]
    assert get(rest.dir / "d" / "e" / SNAPSHOTS / f"c@{times['d/e/c']}") == b"before"
    assert get(top / f"a@{times['a']}") == b"before"
    assert get(rest.dir / "a") == b"and after"
    assert os.getxattr(top / f"a@{second}", "user.meta.note") == b"kept"
    assert (top / f"a@{second}").stat().st_mode & 0o777 == 0o444
    raises(errno.ENOENT, get, top / "a@2019-08-14T03:43:53.2866199Z")
    raises(errno.ENOENT, get, top / "a")


def test_BL85_no_listing_shows_the_directory(rest):  # noqa: F811
    put(rest, "a", "d/b")
    snapshot(rest, "a")
    assert sorted(os.listdir(rest.dir)) == ["a", "d"]
    assert sh(f"cd '{rest.dir}' && find . | sort").stdout.split() == [".", "./a", "./d", "./d/b"]
    assert os.listdir(rest.dir / "d" / SNAPSHOTS) == []
    raises(errno.ENOENT, os.listdir, rest.mnt / ACCOUNT / ".blob" / SNAPSHOTS)


def test_BL85_a_listing_of_many(rest):  # noqa: F811
    names = [f"{i:03}" for i in range(150)]
    put(rest, *names, *(f"{n}/x" for n in names[::10]))
    want = [f"{name}@{snapshot(rest, name)}" for name in names for _ in range(2)]
    assert os.listdir(rest.dir / SNAPSHOTS) == want


def test_BL85_a_page_blob_keeps_its_pages(rest):  # noqa: F811
    made = rest.ask("PUT", "/photos/disk", headers={
        "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(1 << 20)})
    assert made.status == 201

    def write(byte):
        assert rest.ask("PUT", "/photos/disk", {"comp": "page"}, byte * 4096, {
            "x-ms-page-write": "update", "x-ms-range": "bytes=8192-12287"}).status == 201
    write(b"1")
    file = rest.dir / SNAPSHOTS / f"disk@{snapshot(rest, 'disk')}"
    write(b"2")
    with open(file, "rb") as f:
        assert (os.pread(f.fileno(), 4, 8190), os.fstat(f.fileno()).st_blocks) == (b"\0\0" + b"11", 8)
    raises(errno.EROFS, os.open, file, os.O_RDWR)
    raises(errno.EROFS, os.truncate, file, 512)
    assert get(file)[8192:8194] == b"11"


def test_BL86_nothing_there_can_be_changed(rest):  # noqa: F811
    put(rest, "a", body=b"kept")
    top = rest.dir / SNAPSHOTS
    file = top / f"a@{snapshot(rest, 'a')}"
    for call in ((put_file, file, "x"), (os.truncate, file, 1), (os.unlink, file),
                 (os.rename, file, rest.dir / "b"), (os.rename, rest.dir / "a", top / "b"),
                 (put_file, top / "new", "x"), (os.mkdir, top / "new"),
                 (os.setxattr, file, "user.meta.x", b"1"),
                 (os.setxattr, file, "user.rowfs.content_type", b"text/plain")):
        raises(errno.EROFS, *call)
    for call in ((os.rmdir, top), (os.rename, top, rest.dir / "b"), (os.mkdir, top)):
        with pytest.raises(OSError):
            call[0](*call[1:])
    assert get(file) == b"kept" and os.listdir(rest.dir) == ["a"]


def test_BL86_a_copy_over_the_blob_brings_it_back(rest):  # noqa: F811
    put(rest, "a", body=b"before")
    file = rest.dir / SNAPSHOTS / f"a@{snapshot(rest, 'a')}"
    put(rest, "a", body=b"after")
    sh(f"cp '{file}' '{rest.dir}/a'")
    assert rest.get("/photos/a").body == b"before"


def test_BL85_names_that_no_file_can_have(rest):  # noqa: F811
    names = [SNAPSHOTS, "x%blob", "long" * 100, ".%snapshots/y"]
    put(rest, *names)
    for name in names:
        snapshot(rest, name)
    files = os.listdir(rest.dir / SNAPSHOTS)
    assert len(files) == 3
    assert all(get(rest.dir / SNAPSHOTS / f) == b"x" for f in files)
    assert sorted(os.listdir(rest.dir))[:2] == [".%%snapshots", ".%%snapshots.%blob"]
    assert len(os.listdir(rest.dir / ".%%snapshots" / SNAPSHOTS)) == 1
