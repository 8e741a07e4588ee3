# SPDX-License-Identifier: MIT
"""A store that was moved or removed, or whose disk went read-only, while it is mounted: writers are
told as early as a shell listens, and what they wrote is kept (E9, E11)."""

import errno
import json
import os
import shutil
import subprocess

import pytest

import calls
from conftest import ENV

TEXT = '{"A": "what somebody wrote"}\n'


@pytest.fixture
def served(rowfs, work, mount, request):
    """A mount of a store in a directory of its own, with a row."""
    request.node.no_store_check = True
    home = work / "home"
    home.mkdir()
    store = home / "s.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, "abc")
    m = mount(store)
    m.allow("moved, removed or replaced|read-only|I/O error|refused bytes")
    (m / "abc/Tab/p").mkdir(parents=True)
    (m / "abc/Tab/p/old.json").write_text('{"A": 1}\n')
    return m


def shell(script, cwd):
    return subprocess.run(["sh", "-c", script], cwd=cwd, capture_output=True, text=True)


def waiting(m):
    path = m / ".rowfs/rejected.ndjson"
    return [json.loads(line) for line in path.read_text().splitlines()]


def must_be_refused(m, name, row="new"):
    """By echo, which hears of writes only."""
    part = m / "abc/Tab/p"
    done = shell(f"echo '{TEXT.strip()}' > {row}.json", part)
    assert done.returncode != 0 and "rror" in done.stderr
    last = json.loads((m / ".rowfs/errors").read_text().splitlines()[-1])
    assert last["call"] == "write" and last["errno"] == name
    return last


@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_E11_a_store_that_is_gone_is_told_at_the_write_and_the_bytes_wait(served, rowfs, work, how):
    m = served
    assert waiting(m) == []
    if how == "removed":
        m.store.unlink()
    else:
        m.store.rename(work / "aside.rowfs")
    if how == "replaced":
        rowfs("init", work / "another.rowfs")
        (work / "another.rowfs").rename(m.store)
    last = must_be_refused(m, errno.EIO)
    assert "moved, removed or replaced" in last["message"] and last["in_memory"] is True
    assert "in memory" in os.getxattr(m / "abc/Tab/p", "user.rowfs.error").decode()
    for row in "old", "other":
        must_be_refused(m, errno.EIO, row)
    kept = waiting(m)
    assert [k["content"] for k in kept] == [TEXT] * 3
    assert [k["name"].rpartition("Z-")[2] for k in kept] == ["new.json", "old.json", "other.json"]
    assert kept[0]["name"] == last["rejected"]
    assert (m / ".rowfs/rejected.ndjson").stat().st_mode & 0o777 == 0o400
    assert (m / "abc/Tab/p/old.json").read_text() == '{"A": 1}\n'
    assert os.listdir(m / ".rowfs/rejected") == []
    if how == "moved":
        # It comes back: so do the bytes, where refused ones are.
        (work / "aside.rowfs").rename(m.store)
        assert sorted(os.listdir(m / ".rowfs/rejected")) == sorted(k["name"] for k in kept)
        assert (m / ".rowfs/rejected" / kept[0]["name"]).read_text() == TEXT
        assert waiting(m) == []
        (m / "abc/Tab/p/new.json").write_text(TEXT)
        m.umount()
        rowfs("check", m.store)


def test_E11_other_ways_to_write_are_refused_too(served, work):
    m = served
    m.store.rename(work / "aside.rowfs")
    part = m / "abc/Tab/p"
    for script in ("echo '{\"RowKey\":\"x\"}' > .rows.ndjson", "echo hello > plain", "mkdir ../q",
                   "printf '[{\"op\":\"insert\",\"RowKey\":\"x\",\"entity\":{}}]' > .batch",
                   "rm old.json", "mv old.json new.json"):
        assert shell(script, part).returncode != 0, script
    (work / "aside.rowfs").rename(m.store)
    assert sorted(os.listdir(part)) == ["old.json"]


def test_E11_after_a_commit_that_the_disk_refused_writes_are_refused(rowfs, work, store, mount, request):
    """The first one only a close can tell: the disk is asked by nothing less.  Each later write asks
    it anew, and when it is well again service goes on, and the bytes get their place."""
    rowfs("account", "add", store, "abc")
    with calls.Control(work / "control") as control:
        m = mount(store, env=control.env(rowfs.program.parents[2], store, base=ENV))
        m.allow("read-only|refused bytes|EROFS|/output")
        part = m / "abc/Tab/p"
        part.mkdir(parents=True)
        (part / "old.json").write_text('{"A": 1}\n')
        control.strike("fail", calls.WRITE | calls.SYNC | calls.TRUNCATE, 1, calls.ALL, 30)
        with pytest.raises(OSError):
            (part / "first.json").write_text(TEXT)
        done = shell(f"echo '{TEXT.strip()}' > second.json", part)
        assert done.returncode != 0
        assert [k["content"] for k in waiting(m)] == [TEXT] * 2
        control.stop()
        (part / "third.json").write_text(TEXT)
        assert len(os.listdir(m / ".rowfs/rejected")) == 2 and waiting(m) == []
        m.umount()


def test_E11_a_disk_that_went_read_only_is_told_at_the_write(rowfs, work, mount, request):
    """As a file system does that found errors, with files open for writing."""
    request.node.no_store_check = True
    image, disk = work / "image", work / "disk"
    disk.mkdir()
    with open(image, "wb") as f:
        f.truncate(32 << 20)
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("needs root and mkfs.ext4")
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    if subprocess.run(["mount", "-o", "loop,errors=remount-ro", image, disk],
                      capture_output=True).returncode != 0:
        pytest.skip("needs a loop device")
    try:
        store = disk / "s.rowfs"
        rowfs("init", store)
        rowfs("account", "add", store, "abc")
        m = mount(store)
        m.allow("read-only|refused bytes|I/O error|/output error")
        (m / "abc/Tab/p").mkdir(parents=True)
        subprocess.run(["mount", "-o", "remount,abort", disk], check=True)
        last = must_be_refused(m, errno.EROFS)
        assert "read-only" in last["message"] and waiting(m)[0]["content"] == TEXT
        m.umount()
        assert f"{len(TEXT)} refused bytes" in m.log() and "are lost" in m.log()
    finally:
        m.force()
        subprocess.run(["umount", disk], check=True)
