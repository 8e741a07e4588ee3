# SPDX-License-Identifier: MIT
"""W1: a version of a row is never taken for another one, however many there were.

The numbers of versions begin a little before each place where a node's field for them ends, so
that no test needs millions of commits.

ROWFS_VERSIONS  how many versions of a row lie between two that must not be taken for each other
                (default: 20000); 4194303 in the long form, which takes minutes
"""

import os

import pytest

import damage
from tools import get, need, put, sh

LIMITS = (21, 22, 32, 40)
VERSIONS = int(os.environ.get("ROWFS_VERSIONS", "20000"))


@pytest.fixture
def row_at(mount, store):
    """Sets the number of the row's version behind the server's back; the mount and the row."""
    m = mount(store)
    (m / "acct1/Tab/p").mkdir(parents=True)
    put(m / "acct1/Tab/p/r.json", '{"v":0}')

    def set_to(edition):
        m.umount()
        damage.by_sql(store, f"UPDATE item SET edition={edition} WHERE kind=4")
        m.rowfs("check", store)
        m.start()
        return m, m / "acct1/Tab/p/r.json"
    return set_to


@pytest.mark.parametrize("bits", LIMITS)
def test_W1_versions_around_a_limit(row_at, bits):
    """Each with a reader that holds it."""
    m, row = row_at((1 << bits) - 5)
    held = []
    for v in range(1, 12):
        held.append((v - 1, open(row, "rb")))
        put(row, '{"v":%d}' % v)
        assert get(row) == b'{"v":%d}' % v
    inode = os.stat(row).st_ino
    for v, f in held:
        assert os.fstat(f.fileno()).st_ino == inode
        assert f.read() == b'{"v":%d}' % v
        f.seek(0)
        assert f.read() == b'{"v":%d}' % v
        f.close()
    m.remount()
    assert get(row) == b'{"v":11}' and os.stat(row).st_ino == inode


def test_W1_a_version_so_many_later_is_another_one(mount, store):
    """What the kernel keeps of the first one is not shown for it, also not to a program that
    reads and writes the row in place."""
    need("jq")
    m = mount(store)
    row = m / "acct1/Tab/p/r.json"
    row.parent.mkdir(parents=True)
    put(row, '{"v":"first"}')
    with open(row, "rb") as first:
        assert first.read() == b'{"v":"first"}'
        with open(m / "acct1/Tab/.rows.ndjson", "w") as rows:
            for v in range(VERSIONS):
                rows.write('{"PartitionKey":"p","RowKey":"r","v":%d}\n' % v)
        put(row, '{"v":0}')
        assert get(row) == b'{"v":0}'
        first.seek(0)
        assert first.read() == b'{"v":"first"}'
    assert get(row) == b'{"v":0}'
    sh(f"jq -c '.v += 1' '{row}' > '{row}'")
    assert get(row) == b'{"v":1}\n'
