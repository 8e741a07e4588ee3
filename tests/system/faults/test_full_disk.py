# SPDX-License-Identifier: MIT
"""What a writer hears and what is kept when the disk of the store is full to its last MiB."""

import json
import os

import pytest

from tools import get, put, raises, rows, sh

LEFT = 400 << 10


@pytest.fixture
def full(rowfs, mount, small_disk):
    """A partition with two rows and a file beside them; then the disk is filled."""
    sh(f"mount -o remount,size=16m '{small_disk}'")
    rowfs("init", small_disk / "s.rowfs")
    m = mount(small_disk / "s.rowfs")
    m.allow("ENOSPC|No space|NO_SPACE|full")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    put(part / "r.json", '{"a":1}')
    put(part / "large.json", json.dumps({f"p{i}": "x" * 20000 for i in range(5)}))
    put(part / "new", '{"a":2}')
    st = os.statvfs(small_disk)
    with open(small_disk / "ballast", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, st.f_bfree * st.f_frsize - LEFT)
    return m, part


@pytest.mark.parametrize("mib, least", [(4, 0.75), (16, 0.9), (64, 0.95)])
def test_S7_a_small_disk_is_used_but_for_what_is_kept(rowfs, mount, small_disk, work, mib, least):
    """An import fills it; the refusal says what is kept, and rows can be removed by that."""
    sh(f"mount -o remount,size={mib}m '{small_disk}'")
    rowfs("init", small_disk / "s.rowfs")
    m = mount(small_disk / "s.rowfs")
    m.allow("ENOSPC|No space|NO_SPACE|full")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    with open(work / "in.ndjson", "w") as f:
        for i in range(mib * 200):
            f.write(json.dumps({"PartitionKey": "p", "RowKey": f"{i:06}", "pad": "x" * 6000}) + "\n")
    done = rowfs("import", m.store, "acct1/Tab", work / "in.ndjson", check=False)
    kept = min(1 << 20, mib << 17)
    assert done.returncode == 1
    assert f" of {mib << 20} bytes of its disk are free; {kept} are kept so that" in done.stderr
    assert os.path.getsize(m.store) > least * (mib << 20)
    with raises("ENOSPC"):
        put(part / "more.json", json.dumps({"pad": "y" * 20000}))
    names = rows(part)
    for name in names[:400]:
        os.unlink(part / name)
    assert rows(part) == names[400:] and names[:400][-1] in trash(m)[-1]
    put(part / "more.json", json.dumps({"pad": "y" * 20000}))


def trash(m):
    return sorted(os.listdir(m / ".rowfs/trash"))


@pytest.mark.parametrize("flags", [os.O_WRONLY | os.O_TRUNC, os.O_WRONLY])
def test_S7_the_write_says_that_the_disk_is_full(full, flags):
    """Not the close only, which shells do not look at."""
    m, part = full
    fd = os.open(part / "r.json", flags)
    with raises("ENOSPC"):
        os.write(fd, b'{"a":3}')
    with raises("ENOSPC"):
        os.close(fd)
    assert get(part / "r.json") == b'{"a":1}'
    done = sh("echo '{\"a\":3}' > r.json", cwd=part, check=False)
    assert done.returncode == 1 and "No space left on device" in done.stderr
    sh(f"truncate -s 0 '{m.store.parent}/ballast'")
    put(part / "r.json", '{"a":4}')
    assert get(part / "r.json") == b'{"a":4}'


def test_S7_renaming_goes_on_on_a_full_disk(full):
    _, part = full
    os.rename(part / "r.json", part / "r.json~")
    os.rename(part / "r.json~", part / "r.json")
    os.rename(part / "new", part / "r.json")
    os.rename(part / "r.json", part / "s.json")
    assert get(part / "s.json") == b'{"a":2}' and rows(part) == ["large.json", "s.json"]


def test_Y4_a_small_row_is_kept_on_a_full_disk(full):
    """Who removes a row to write a new one, and then cannot, has the one from before."""
    m, part = full
    os.unlink(part / "r.json")
    with raises("ENOSPC"):
        put(part / "r.json", '{"a":3}')
    [kept] = trash(m)
    assert get(m / ".rowfs/trash" / kept) == b'{"a":1}'
    os.rename(m / ".rowfs/trash" / kept, part / "back.json")
    assert get(part / "back.json") == b'{"a":1}'


def test_Y4_a_large_row_is_not_kept_on_a_full_disk(full):
    m, part = full
    os.unlink(part / "large.json")
    assert trash(m) == [] and rows(part) == ["new", "r.json"]


def test_Y4_removing_many_makes_room_on_a_full_disk(full):
    m, part = full
    sh(f"truncate -s -2M '{m.store.parent}/ballast'")
    with raises("ENOSPC"):
        for i in range(2000):
            put(part / f"n{i:04}.json", json.dumps({"pad": "x" * 20000}))
    names = [n for n in rows(part) if n.startswith("n0") and os.path.getsize(part / n) > 0]
    assert len(names) > 10
    for name in names:
        os.unlink(part / name)
    assert names[-1] in trash(m)[-1]
    put(part / "again.json", json.dumps({"pad": "y" * 20000}))


def accepted(path, text):
    """Whether a write is, and its close with it."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(fd, text)
    except OSError:
        with raises("ENOSPC"):
            os.close(fd)
        return False
    os.close(fd)
    return True


def document(n, mark=0):
    """Of n bytes."""
    text = f'{{"a":{mark}'
    for name in "bcde":
        text += f',"{name}":"{"x" * min(20000, n - len(text) - 8)}"' if len(text) < n - 8 else ""
    return f"{text:{n - 1}}}}".encode()


@pytest.fixture
def fuller(full):
    """With twice as much left: what is refused takes some of it."""
    m, part = full
    sh(f"truncate -s -{LEFT} '{m.store.parent}/ballast'")
    return m, part


def rejected(m):
    folder = m / ".rowfs/rejected"
    return [get(folder / name) for name in sorted(os.listdir(folder))]


def test_E9_refused_bytes_are_kept_on_a_full_disk(fuller):
    """Up to 64 KiB: python at its end and unzip -p look neither at the write nor at the close."""
    m, part = fuller
    assert not accepted(part / "r.json", b'{"a":3}')
    assert rejected(m) == [b'{"a":3}']
    assert not accepted(part / "r.json", document(64 << 10))
    assert not accepted(part / "r.json", document((64 << 10) + 1))
    assert rejected(m) == [b'{"a":3}', document(64 << 10)]
    assert get(part / "r.json") == b'{"a":1}'
    [kept, _] = sorted(os.listdir(m / ".rowfs/rejected"))
    os.rename(m / ".rowfs/rejected" / kept, part / "r.json")
    assert get(part / "r.json") == b'{"a":3}'


def test_E9_what_is_written_after_a_refusal_is_kept_behind_it(full):
    """A shell goes on with its next line; the system has not moved it on."""
    m, part = full
    sh("{ printf '{\"Author\":'; printf '\"Ann\",'; printf '\"a\":3}'; } > r.json", cwd=part,
       check=False)
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    for text in (b'{"a"', b'{"a":4', b'{"a":4}'):
        with raises("ENOSPC"):
            os.write(fd, text)
    with raises("ENOSPC"):
        os.close(fd)
    assert rejected(m) == [b'{"Author":"Ann","a":3}', b'{"a":4}']


@pytest.mark.parametrize("size", [100, 32000, 64 << 10])
def test_E9_what_is_refused_leaves_room_for_removing(fuller, size):
    """The oldest go first, and the last eighth of the reserve is for what removes alone."""
    m, part = fuller
    refused = [i for i in range(300) if not accepted(part / "r.json", document(size, i))]
    assert len(refused) > 10
    texts = rejected(m)
    assert texts == [document(size, i) for i in refused[-len(texts):]]
    row = get(part / "r.json")
    os.rename(part / "r.json", part / "s.json")
    sh("rm s.json large.json new", cwd=part)
    assert rows(part) == []
    [kept] = trash(m)
    assert get(m / ".rowfs/trash" / kept) == row
    for name in os.listdir(m / ".rowfs/rejected"):
        os.unlink(m / ".rowfs/rejected" / name)
