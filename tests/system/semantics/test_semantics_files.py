# SPDX-License-Identifier: MIT
"""docs/semantics.md: ordinary files beside the rows (F), and the mount's own room (V)."""

import json
import mmap
import os
import random

import pytest

from tools import EXCHANGE, errors, get, put, raises, reason, rejected, renameat2, rows, sh


# ---- F: ordinary files


def test_F1_any_bytes_anywhere(mnt, part):
    rng, model = random.Random(1), bytearray()
    fd = os.open(part / "data.bin", os.O_RDWR | os.O_CREAT)
    for _ in range(200):
        kind, at = rng.randrange(4), rng.randrange(200000)
        if kind == 0:
            os.ftruncate(fd, at)
            del model[at:]
            model.extend(bytes(at - len(model)))
        elif kind == 1:
            piece = rng.randbytes(rng.randrange(1, 9000))
            os.pwrite(fd, piece, at)
            model.extend(bytes(max(0, at + len(piece) - len(model))))
            model[at:at + len(piece)] = piece
        else:
            n = rng.randrange(9000)
            assert os.pread(fd, n, at) == model[at:at + n]
    os.close(fd)
    assert get(part / "data.bin") == model
    assert os.stat(part / "data.bin").st_size == len(model)
    mnt.remount()
    assert get(part / "data.bin") == model


def test_F1_append_and_truncate(part):
    a = os.open(part / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    b = os.open(part / "log", os.O_WRONLY | os.O_APPEND)
    for i in range(50):
        os.write(a, b"a%d\n" % i)
        os.write(b, b"b%d\n" % i)
    os.close(a)
    os.close(b)
    assert get(part / "log") == b"".join(b"a%d\nb%d\n" % (i, i) for i in range(50))
    os.truncate(part / "log", 0)
    assert get(part / "log") == b""
    put(part / "log", "new")
    assert get(part / "log") == b"new"


def test_F1_written_bytes_are_seen_at_once(part):
    fd = os.open(part / "tmp", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"half a document {")
    assert get(part / "tmp") == b"half a document {"
    os.close(fd)


def test_F1_an_open_file_outlives_its_name(part):
    fd = os.open(part / "tmp", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"abc")
    os.unlink(part / "tmp")
    assert os.pread(fd, 9, 0) == b"abc" and rows(part) == []
    os.close(fd)


def test_F2_dot_directories(mnt, part):
    deep = part / ".rsync-partial/a/b.json/c"
    deep.mkdir(parents=True)
    put(deep / "x.json", "any bytes")
    os.rename(part / ".rsync-partial/a", part / ".rsync-partial/z")
    mnt.remount()
    assert get(part / ".rsync-partial/z/b.json/c/x.json") == b"any bytes"
    put(part / ".rsync-partial/new", '{"v":1}')
    os.rename(part / ".rsync-partial/new", part / "r.json")
    assert get(part / "r.json") == b'{"v":1}'
    with raises("ENOTEMPTY"):
        os.rmdir(part / ".rsync-partial")
    sh("rm -r .rsync-partial", cwd=part)
    assert rows(part) == ["r.json"]


@pytest.mark.parametrize("name", ["sub", "r.json", "a.d"])
def test_F2_other_directories_cannot_be_made(part, name):
    with raises("EPERM", "EINVAL"):
        os.mkdir(part / name)
    assert rows(part) == []


def test_F2_a_directory_of_files_does_not_become_a_partition(rowfs, store, mnt, part):
    """A table, an account and the root hold other directories than it is."""
    inner = part / ".d/inner"
    inner.mkdir(parents=True)
    put(inner / "x.json", '{"v":1}')
    put(part / "r.json", '{"v":2}')
    for to in (part.parent / "q", part.parent.parent / "Other", mnt / "acct2"):
        with raises("EPERM"):
            os.rename(inner, to)
        assert not to.exists()
    for one, other in ((inner, part), (part, inner)):
        with raises("EPERM", "EINVAL"):  # one of them is in the other
            renameat2(one, other, EXCHANGE)
    (part.parent / "p2").mkdir()
    for one, other in ((inner, part.parent / "p2"), (part.parent / "p2", inner)):
        with raises("EPERM", "EINVAL", "EXDEV"):
            renameat2(one, other, EXCHANGE)
    assert get(inner / "x.json") == b'{"v":1}' and rows(part) == [".d", "r.json"]
    mnt.umount()
    assert ": clean" in rowfs("check", store).stdout


def test_F3_shared_mappings(mnt, part):
    put(part / "map", b"\0" * 8192)
    with open(part / "map", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        m[4090:4100] = b"0123456789"
        m.flush()
        with open(part / "map", "rb") as g, mmap.mmap(g.fileno(), 0, prot=mmap.PROT_READ) as n:
            assert n[4090:4100] == b"0123456789"
    assert get(part / "map")[4090:4100] == b"0123456789"
    mnt.remount()
    assert get(part / "map")[4090:4100] == b"0123456789"


def test_F4_kept_over_a_kill(mnt, part):
    (part / ".d").mkdir()
    fd = os.open(part / ".d/f", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"x" * 100000)
    os.fsync(fd)
    mnt.kill9()
    mnt.start()
    assert get(part / ".d/f") == b"x" * 100000


def test_F5_no_rows(mnt, part, rowfs):
    put(part / "r.json", '{"v":1}')
    put(part / "tmp", '{"PartitionKey":"Channel_19","RowKey":"tmp","v":2}')
    (part / ".d").mkdir()
    put(part / ".d/s.json", '{"v":3}')
    out = rowfs("export", mnt.store, "acct1/Blogs").stdout
    assert [json.loads(line)["RowKey"] for line in out.splitlines()] == ["r"]


def test_F5_a_file_says_that_it_is_no_row(part):
    put(part / "bob", "{}")
    put(part / "new.json", "")
    put(part / ".dot", "{}")
    put(part / "r.json", "{}")
    (part / ".d").mkdir()
    put(part / ".d/any", "{}")
    assert "no row: the name of a row ends in .json" in reason(part / "bob")
    assert "no row yet" in reason(part / "new.json")
    for name in (".dot", ".d/any", "r.json", "."):
        with raises("ENODATA"):
            os.getxattr(part / name, "user.rowfs.error")
    os.rename(part / "bob", part / "bob.json")
    with raises("ENODATA"):
        os.getxattr(part / "bob.json", "user.rowfs.error")


def test_F6_onto_a_rows_name(part):
    put(part / "t", ' {"v": 1}\n')
    os.rename(part / "t", part / "new.json")
    put(part / "t", '{"v":2}')
    os.rename(part / "t", part / "new.json")
    assert rows(part) == ["new.json"] and get(part / "new.json") == b'{"v":2}'


def test_F6_while_it_is_open(part):
    fd = os.open(part / "t", os.O_RDWR | os.O_CREAT)
    os.write(fd, b'{"v":1}')
    os.rename(part / "t", part / "r.json")
    assert get(part / "r.json") == b'{"v":1}'
    os.lseek(fd, 0, 0)
    assert os.read(fd, 99) == b'{"v":1}'
    os.close(fd)
    assert get(part / "r.json") == b'{"v":1}'


def test_F7_a_row_onto_an_ordinary_name(mnt, part, rowfs):
    put(part / "r.json", ' {"v":1}')
    put(part / "q.json", "{}")
    os.rename(part / "r.json", part / "r.json~")
    assert get(part / "r.json~") == b' {"v":1}'
    out = rowfs("export", mnt.store, "acct1/Blogs").stdout
    assert [json.loads(line)["RowKey"] for line in out.splitlines()] == ["q"]
    put(part / "r.json~", b"anything now")
    mnt.remount()
    assert rows(part) == ["q.json", "r.json~"]


def test_F8_size_of_one_file(part):
    put(part / "big", "x")
    fd = os.open(part / "big", os.O_WRONLY)
    os.pwrite(fd, b"y", (1 << 30) - 1)
    assert os.fstat(fd).st_size == 1 << 30
    with raises("EFBIG"):
        os.pwrite(fd, b"z", 1 << 30)
        os.fsync(fd)
    with raises("EFBIG"):
        os.truncate(part / "big", (1 << 30) + 1)
    os.close(fd)
    assert os.stat(part / "big").st_size == 1 << 30


def test_F8_quota_of_a_store(mnt, part):
    for i in range(8):
        put(part / f"big{i}", "")
        os.truncate(part / f"big{i}", 1 << 30)
    put(part / "one-more", "")
    with raises("ENOSPC"):
        os.truncate(part / "one-more", 1)
    os.truncate(part / "big0", (1 << 30) - 100)
    put(part / "one-more", "x" * 100)
    put(part / "r.json", '{"v":1}')  # rows are not under the quota
    assert get(part / "r.json") == b'{"v":1}'


# ---- V: the mount's own room


def test_V1_version_and_stats(mnt, part, rowfs):
    version = get(mnt / ".rowfs/version").decode()
    assert version.strip().split()[-1] in rowfs("--version").stdout
    put(part / "r.json", "{}")
    stats = json.loads(get(mnt / ".rowfs/stats.json"))
    assert isinstance(stats, dict) and stats
    sh("cat .rowfs/version .rowfs/stats.json && jq . .rowfs/stats.json && ls -la .rowfs"
       " && cp .rowfs/stats.json /dev/null && grep -q . .rowfs/version", cwd=mnt.path)


def test_V2_errors_are_json_lines_and_bounded(mnt, part):
    assert errors(mnt) == []
    for i in range(3000):
        with raises("EINVAL"):
            put(part / f"row{i}.json", '{"a":[' + "1," * 50)
    lines = errors(mnt)
    assert 0 < len(lines) < 3000
    assert "row2999.json" in json.dumps(lines[-1])
    assert os.stat(mnt / ".rowfs/errors").st_size < 4 << 20
    names = os.listdir(mnt / ".rowfs/rejected")
    assert 0 < len(names) < 3000


def test_V3_rejected_bytes_can_be_taken_out(mnt, part, work):
    put(part / "r.json", "{}")
    with raises("EINVAL"):
        put(part / "r.json", '{"v":1,}')
    (name,) = rejected(mnt)
    sh(f"mv '{mnt.path}/.rowfs/rejected/{name}' {work}/copy")
    assert get(work / "copy") == b'{"v":1,}'
    assert rejected(mnt) == {}
    with raises("EINVAL"):
        put(part / "r.json", '{"v":2,}')
    (name,) = rejected(mnt)
    os.rename(mnt / ".rowfs/rejected" / name, part / "mend")  # within the mount too
    sh("sed -i s/,}/}/ mend && mv mend r.json", cwd=part)
    assert get(part / "r.json") == b'{"v":2}'


def test_V4_nothing_else_can_be_changed(mnt, part):
    put(part / "r.json", "{}")
    room = mnt / ".rowfs"
    for change in (lambda: put(room / "new", "x"), lambda: (room / "d").mkdir(),
                   lambda: os.unlink(room / "version"), lambda: os.rmdir(room / "rejected"),
                   lambda: os.rmdir(room), lambda: os.rename(room, mnt / "acct9"),
                   lambda: os.rename(room / "version", part / "v"),
                   lambda: os.rename(part / "r.json", room / "r.json"),
                   lambda: put(room / "version", "x"), lambda: put(room / "stats.json", "{}")):
        with raises("EPERM", "EACCES", "EROFS"):
            change()
    assert get(part / "r.json") == b"{}" and get(room / "version")
