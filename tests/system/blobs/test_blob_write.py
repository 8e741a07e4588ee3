# SPDX-License-Identifier: MIT
"""Blobs in the mount, for writing: files that are written, moved, removed and copied are blobs."""

import contextlib
import os
import threading

import pytest
import tools
from blob_mount import put, rest  # noqa: F401  the fixture
from rest_client import ACCOUNT
from tools import get, raises, sh, xattr

MIB = 1 << 20


def body(rest, name):
    answer = rest.get(f"/photos/{name}")
    return answer.body if answer.status == 200 else answer.status


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 3 * MIB + 1])
def test_BL67_a_file_is_a_blob_from_its_close_on(rest, size):
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    with open(rest.dir / "new", "xb") as f:
        f.write(data)
        f.flush()
        assert body(rest, "new") == 404 and os.fstat(f.fileno()).st_size == size
        assert os.stat(rest.dir / "new").st_size == size and os.listdir(rest.dir) == []
        assert get(rest.dir / "new") == data
        assert body(rest, "new") == 404  # a reader commits nothing
    assert body(rest, "new") == data == get(rest.dir / "new")
    assert os.listdir(rest.dir) == ["new"]
    with raises("EEXIST"):
        open(rest.dir / "new", "xb")


def test_BL68_readers_see_the_blob_of_before_until_the_close(rest):
    tools.put(rest.dir / "a", "before")
    with open(rest.dir / "a", "r+b") as f:
        f.write(b"AFTER, and longer")
        f.flush()
        assert os.fstat(f.fileno()).st_size == 17
        assert get(rest.dir / "a") == b"before" == body(rest, "a")
        assert os.stat(rest.dir / "a").st_size == 6
        f.seek(0)
        assert f.read() == b"AFTER, and longer"
    assert get(rest.dir / "a") == b"AFTER, and longer" == body(rest, "a")
    with open(rest.dir / "a", "r+b") as f:
        f.write(b"X")
        f.flush()
        os.fsync(f.fileno())
        assert body(rest, "a") == b"XFTER, and longer"
        f.write(b"Y")
    assert body(rest, "a") == b"XYTER, and longer"


def test_BL69_bytes_are_written_anywhere(rest):
    data = bytearray(os.urandom(300000))
    put(rest, "big", body=bytes(data))
    with open(rest.dir / "big", "r+b") as f:
        for at in (299990, 0, 65530, 150000):
            f.seek(at)
            f.write(b"#" * 20)
            data[at:at + 20] = b"#" * 20
    assert body(rest, "big") == bytes(data)
    with open(rest.dir / "big", "ab") as f:
        f.write(b"end")
    assert body(rest, "big") == bytes(data) + b"end"
    os.truncate(rest.dir / "big", 100000)
    assert body(rest, "big") == bytes(data[:100000])
    os.truncate(rest.dir / "big", 100003)
    assert body(rest, "big") == bytes(data[:100000]) + bytes(3)
    sh("printf x > small; printf yz >> small; truncate -s 2 small;"
       "dd if=/dev/zero of=hole bs=1 count=1 seek=9999 status=none", cwd=rest.dir)
    assert body(rest, "small") == b"xy" and body(rest, "hole") == bytes(10000)


def test_BL69_a_change_is_of_the_version_that_is_there_at_its_first_write(rest):
    put(rest, "a", body=b"0123456789")
    with open(rest.dir / "a", "r+b", buffering=0) as f:
        put(rest, "a", body=b"b" * 5000)
        f.write(b"#")
    assert body(rest, "a") == b"#" + b"b" * 4999
    with open(rest.dir / "a", "ab", buffering=0) as f:
        put(rest, "a", body=b"short")
        f.write(b"#")
    assert body(rest, "a") == b"short#"


def test_BL70_a_directory_stays_when_its_open_file_was_removed(rest):
    os.mkdir(rest.dir / "d")
    with open(rest.dir / "d/f", "wb") as f:
        f.write(b"1")
        f.flush()
        os.unlink(rest.dir / "d/f")
    assert os.listdir(rest.dir / "d") == []


def test_BL70_directories_without_blobs(rest):
    os.makedirs(rest.dir / "a/b")
    os.mkdir(rest.dir / "c")
    assert os.listdir(rest.dir) == ["a", "c"] and os.listdir(rest.dir / "a") == ["b"]
    with raises("EEXIST"):
        os.mkdir(rest.dir / "a")
    with raises("ENOTEMPTY"):
        os.rmdir(rest.dir / "a")
    tools.put(rest.dir / "a/b/x", "1")
    put(rest, "b", "b0")
    assert body(rest, "a/b/x") == b"1" and os.listdir(rest.dir) == ["a", "b", "b0", "c"]
    os.unlink(rest.dir / "a/b/x")
    assert os.listdir(rest.dir / "a/b") == []
    os.rmdir(rest.dir / "a/b")
    os.rmdir(rest.dir / "a")
    assert os.listdir(rest.dir) == ["b", "b0", "c"]
    with raises("ENOENT"):
        os.rmdir(rest.dir / "a")
    with raises("EEXIST"):
        os.mkdir(rest.dir / "b")
    os.makedirs(rest.dir / "d/e/f")
    put(rest, "d/x", "d/e/y")
    sh(f"rm -r {rest.dir}/d {rest.dir}/c")
    assert os.listdir(rest.dir) == ["b", "b0"]
    sh("rm -r *", cwd=rest.mnt.path)
    assert os.listdir(rest.mnt.path) == []


def test_BL70_a_directory_in_which_somebody_is_can_be_removed_and_made_again(rest):
    """The kernel takes no more names in the inode that was removed."""
    os.mkdir(rest.dir / "a")
    fd = os.open(rest.dir / "a", os.O_RDONLY)
    for _ in range(2):
        os.rmdir(rest.dir / "a")
        os.mkdir(rest.dir / "a")
        tools.put(rest.dir / "a/b", "x")
        assert os.listdir(rest.dir / "a") == ["b"] and get(rest.dir / "a/b") == b"x"
        os.unlink(rest.dir / "a/b")
    os.close(fd)
    os.rmdir(rest.dir / "a")
    os.rmdir(rest.dir)
    fd = os.open(rest.root, os.O_RDONLY)
    for _ in range(2):
        os.rmdir(rest.root)
        os.mkdir(rest.root / "more")
        os.rmdir(rest.root / "more")
    os.close(fd)


def test_BL71_a_rename_moves_a_blob_in_one_step(rest):
    os.mkdir(rest.root / "more")
    put(rest, "a", body=b"a" * 100000)
    put(rest, "b", body=b"b" * 5000)
    etag = xattr(rest.dir / "a", "etag")
    os.rename(rest.dir / "a", rest.dir / "x")
    assert body(rest, "a") == 404 and xattr(rest.dir / "x", "etag") == etag
    os.rename(rest.dir / "x", rest.dir / "b")
    assert body(rest, "b") == b"a" * 100000 and os.listdir(rest.dir) == ["b"]
    os.rename(rest.dir / "b", rest.root / "more/y")
    assert os.listdir(rest.dir) == [] and get(rest.root / "more/y") == b"a" * 100000
    with raises("ENOENT"):
        os.rename(rest.dir / "none", rest.dir / "more")
    put(rest, "d/x", "d/y")
    with raises("EXDEV"):
        os.rename(rest.dir / "d", rest.dir / "e")
    sh("mv d e; mv -n e/x e/y; mv e/x ..; touch z; mv ../x z", cwd=rest.dir, check=False)
    assert body(rest, "e/x") == b"x" and body(rest, "e/y") == b"x" and body(rest, "d/x") == 404
    with open(rest.dir / "w", "wb") as f:
        f.write(b"one")
        f.flush()
        os.rename(rest.dir / "w", rest.dir / "w2")
        f.write(b"two")
    assert body(rest, "w2") == b"onetwo" and body(rest, "w") == 404


def test_BL72_attributes_are_set_and_stay(rest):
    tools.put(rest.dir / "a", "1")
    os.setxattr(rest.dir / "a", "user.meta.color", b"red")
    os.setxattr(rest.dir / "a", "user.meta.n", b"1")
    os.setxattr(rest.dir / "a", "user.rowfs.content_type", b"text/plain")
    os.removexattr(rest.dir / "a", "user.meta.n")
    tools.put(rest.dir / "a", "22")
    answer = rest.get("/photos/a")
    assert answer.body == b"22" and answer.headers["Content-Type"] == "text/plain"
    assert answer.headers["x-ms-meta-color"] == "red" and "x-ms-meta-n" not in answer.headers
    for name, error in (("user.meta.no-identifier", "EINVAL"), ("user.other", "EOPNOTSUPP"),
                        ("user.rowfs.content_md5", "EPERM"), ("user.rowfs.etag", "EPERM")):
        with raises(error):
            os.setxattr(rest.dir / "a", name, b"1")
    with raises("ENODATA"):
        os.removexattr(rest.dir / "a", "user.meta.n")
    with open(rest.dir / "b", "wb") as f:
        f.write(b"x")
        f.flush()
        os.setxattr(f.fileno(), "user.meta.k", b"v")
    assert rest.get("/photos/b").headers["x-ms-meta-k"] == "v" and body(rest, "b") == b"x"
    os.setxattr(rest.dir, "user.meta.owner", b"me")
    answer = rest.ask("GET", "/photos", {"restype": "container"})
    assert answer.headers["x-ms-meta-owner"] == "me"


def test_BL72_a_descriptor_sets_any_number_of_attributes(rest):
    """rsync sets them by the descriptor of the written file; its content stays the same blob's."""
    for size in 1, 1 << 20:
        put(rest, "a", body=bytes(size))
        with open(rest.dir / "a", "rb", buffering=0) as f:
            for name in "user.rowfs.content_type", "user.rowfs.content_language", "user.meta.a":
                os.setxattr(f.fileno(), name, b"x")
            assert os.fstat(f.fileno()).st_size == size and len(f.read()) == size
            put(rest, "a", body=b"other")
            with raises("ESTALE"):
                os.setxattr(f.fileno(), "user.meta.a", b"y")
        assert "x-ms-meta-a" not in rest.get("/photos/a").headers


def test_BL73_mknod_makes_an_empty_blob(rest):
    os.mknod(rest.dir / "a")
    assert rest.get("/photos/a").body == b""
    with raises("EEXIST"):
        os.mknod(rest.dir / "a")
    for path in rest.root / "a", rest.root.parent / "Posts":
        with raises("EPERM"):
            os.mknod(path)
    with raises("EPERM"):
        os.mkfifo(rest.dir / "fifo")
    tools.put(rest.dir / "a", "1")
    assert rest.get("/photos/a").body == b"1"


def test_BL73_tools_copy_to_and_fro(rest, work):
    tree = work / "tree"
    sh("mkdir -p t/a/b t/empty && cd t && seq 20000 > a/big && printf hi > a/b/small && : > none"
       "&& setfattr -n user.meta.k -v v a/big && mv ../t " + str(tree), cwd=work)
    rest.dir.joinpath("old").mkdir()
    sh(f"cp -r {tree} cp; cp -a --preserve=xattr {tree} cpa; rsync -aX {tree}/ rs/;"
       f"tar -C {tree} -c . | (mkdir tar && tar -C tar -x)", cwd=rest.dir)
    for name in ("cp", "cpa", "rs", "tar"):
        sh(f"diff -r {tree} {rest.dir}/{name}")
        assert body(rest, f"{name}/a/b/small") == b"hi"
    assert rest.get("/photos/rs/a/big").headers["x-ms-meta-k"] == "v"
    assert rest.get("/photos/cpa/a/big").headers["x-ms-meta-k"] == "v"
    sh(f"rsync -aX {rest.dir}/rs/ {work}/back/ && diff -r {tree} {work}/back")
    assert os.getxattr(work / "back/a/big", "user.meta.k") == b"v"
    sh("sed -i s/hi/ho/ rs/a/b/small; echo line >> rs/none", cwd=rest.dir)
    assert body(rest, "rs/a/b/small") == b"ho" and body(rest, "rs/none") == b"line\n"


def test_BL74_a_lease_keeps_writers_away(rest):
    put(rest, "a")
    lease = rest.ask("PUT", "/photos/a", {"comp": "lease"}, headers={
        "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}).headers["x-ms-lease-id"]
    with raises("EBUSY"):
        tools.put(rest.dir / "a", "2")
    with raises("EBUSY"):
        os.unlink(rest.dir / "a")
    with raises("EBUSY"):
        os.rename(rest.dir / "a", rest.dir / "b")
    tools.put(rest.dir / "c", "3")
    with raises("EBUSY"):
        os.rename(rest.dir / "c", rest.dir / "a")
    assert body(rest, "a") == b"x" and body(rest, "c") == b"3"
    rest.ask("PUT", "/photos/a", {"comp": "lease"}, headers={
        "x-ms-lease-action": "release", "x-ms-lease-id": lease})
    tools.put(rest.dir / "a", "2")
    assert body(rest, "a") == b"2"


def test_BL74_a_leased_container_is_not_removed(rest):
    lease = {"restype": "container", "comp": "lease"}
    assert rest.ask("PUT", "/photos", lease, headers={
        "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}).status == 201
    with raises("EBUSY"):
        os.rmdir(rest.dir)
    rest.ask("PUT", "/photos", lease, headers={"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"})
    os.rmdir(rest.dir)


def test_BL75_what_fsync_or_close_acknowledged_survives_a_kill(rest, mount):
    fd = os.open(rest.dir / "synced", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"s" * 100000)
    os.fsync(fd)
    tools.put(rest.dir / "closed", "c")
    os.write(fd, b"more")
    rest.mnt.kill9()
    with contextlib.suppress(OSError):
        os.close(fd)
    m = mount(rest.store)
    again = m / ACCOUNT / ".blob/photos"
    assert get(again / "synced") == b"s" * 100000 and get(again / "closed") == b"c"


def test_BL76_a_removed_or_read_only_blob_is_not_written(rest, mount):
    with open(rest.dir / "new", "wb") as f, open(rest.dir / "old", "wb") as g:
        g.write(b"1")
        g.flush()
        os.fsync(g.fileno())
        f.write(b"1")
        f.flush()
        os.unlink(rest.dir / "new")
        os.unlink(rest.dir / "old")
        g.write(b"2")
    assert os.listdir(rest.dir) == []
    put(rest, "a")
    rest.mnt.umount()
    m = mount(rest.store, "ro")
    with raises("EROFS"):
        tools.put(m / ACCOUNT / ".blob/photos/a", "2")
    assert get(m / ACCOUNT / ".blob/photos/a") == b"x"


def test_BL76_a_blob_that_is_removed_during_its_close_stays_removed(rest):
    for i in range(10):
        f = open(rest.dir / "big", "wb", buffering=0)
        for _ in range(4):
            f.write(bytes(MIB))
        closing = threading.Thread(target=f.close)
        closing.start()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(rest.dir / "big")
        closing.join()
        assert body(rest, "big") == 404, i


def test_BL71_a_rename_during_a_close_moves_the_new_content(rest):
    for i in range(10):
        put(rest, "old", body=b"of before")
        f = open(rest.dir / "old", "wb", buffering=0)
        for _ in range(4):
            f.write(b"n" * MIB)
        closing = threading.Thread(target=f.close)
        closing.start()
        os.rename(rest.dir / "old", rest.dir / "new")
        closing.join()
        assert body(rest, "old") == 404 and body(rest, "new") == b"n" * (4 * MIB), i


def test_BL71_a_blob_with_snapshots_is_neither_moved_nor_removed(rest):
    put(rest, "a", "a0", body=b"a" * 5000)
    time = rest.ask("PUT", "/photos/a", {"comp": "snapshot"}).headers["x-ms-snapshot"]
    with raises("EBUSY"):
        os.rename(rest.dir / "a", rest.dir / "b")
    with raises("EBUSY"):
        os.unlink(rest.dir / "a")
    with raises("ENOENT"):
        os.unlink(rest.dir / f"a\x01{time}")
    assert rest.ask("PUT", f"/photos/a\x01{time}", {"comp": "metadata"}).status == 400
    assert os.listdir(rest.dir) == ["a", "a0"]
    os.rename(rest.dir / "a0", rest.dir / "a")
    tools.put(rest.dir / "a", "new")
    assert body(rest, "a") == b"new"
    assert rest.ask("GET", "/photos/a", {"snapshot": time}).body == b"a" * 5000


def test_BL101_after_a_refused_write_nothing_is_put(rowfs, mount, small_disk):
    """The staged file is on a disk of 4 MiB, too."""
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, ACCOUNT)
    m = mount(store)
    photos = m / ACCOUNT / ".blob/photos"
    photos.mkdir()
    tools.put(photos / "old", b"as it was")
    for name in ("old", "new"):
        fd = os.open(photos / name, os.O_WRONLY | os.O_CREAT)
        with raises("ENOSPC"), os.fdopen(fd, "wb", buffering=0) as f:
            assert f.write(b"begun") == 5
            with raises("ENOSPC"):
                for n in range(16):
                    os.pwrite(fd, bytes(MIB), n * MIB)
            with raises("ENOSPC"):
                os.fsync(fd)
        tools.closes_are_known(m)  # the disk has its room again
    assert os.listdir(photos) == ["old"] and get(photos / "old") == b"as it was"
    with open(photos / "new", "wb", buffering=0) as f:
        with raises("ENOSPC"):
            for _ in range(16):
                f.write(bytes(MIB))
        f.seek(0)
        f.truncate(0)
        f.write(b"small")
    assert get(photos / "new") == b"small"
