# SPDX-License-Identifier: MIT
"""docs/semantics.md: attributes (A), rename (M), remove and make (D)."""

import json
import os
import socket
import stat
import time

import pytest

from tools import EXCHANGE, NOREPLACE, get, put, raises, renameat2, rows, sh, xattr

# ---- A: attributes


@pytest.mark.parametrize("size", [2, 511, 512, 513, 4096, 100000])
def test_A1_size_and_blocks(part, size):
    put(part / "r.json", "{" + " " * (size - 2) + "}")
    st = os.stat(part / "r.json")
    assert st.st_size == size == len(get(part / "r.json"))
    assert st.st_blocks > 0 and stat.S_ISREG(st.st_mode)


def test_A2_mtime_is_the_timestamp_until_it_is_set(part):
    before = time.time_ns()
    put(part / "r.json", "{}")
    after = time.time_ns()
    mtime = os.stat(part / "r.json").st_mtime_ns
    assert before - 10**9 < mtime < after + 10**9
    stamp = xattr(part / "r.json", "timestamp")
    whole = stamp[:19]
    assert time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(mtime // 10**9)) == whole
    etag = xattr(part / "r.json", "etag")
    os.utime(part / "r.json", ns=(5, 1234567890123456789))
    assert os.stat(part / "r.json").st_mtime_ns == 1234567890123456789
    assert xattr(part / "r.json", "etag") == etag
    assert xattr(part / "r.json", "timestamp") == stamp
    put(part / "r.json", '{"v":1}')
    assert os.stat(part / "r.json").st_mtime_ns >= before - 10**9


def test_A2_mtime_is_kept_through_the_rename_of_a_temporary_file(mnt, part):
    put(part / ".r.json.Ab12Cd", '{"v":1}')
    os.utime(part / ".r.json.Ab12Cd", ns=(1, 1_000_000_000_123_456_789))
    os.rename(part / ".r.json.Ab12Cd", part / "r.json")
    assert os.stat(part / "r.json").st_mtime_ns == 1_000_000_000_123_456_789
    mnt.remount()
    assert os.stat(part / "r.json").st_mtime_ns == 1_000_000_000_123_456_789


def test_A3_ctime_moves_with_every_change(part):
    put(part / "r.json", "{}")
    seen = [os.stat(part / "r.json").st_ctime_ns]
    for change in (lambda p: put(p, '{"v":1}'), lambda p: os.chmod(p, 0o600),
                   lambda p: os.utime(p, (1, 1)), lambda p: os.chown(p, 1, 1)):
        time.sleep(0.002)
        change(part / "r.json")
        seen.append(os.stat(part / "r.json").st_ctime_ns)
    assert seen == sorted(set(seen))
    time.sleep(0.002)
    os.rename(part / "r.json", part / "q.json")
    assert os.stat(part / "q.json").st_ctime_ns > seen[-1]


def test_A4_inode_numbers(mnt, table, part):
    put(part / "r.json", "{}")
    put(part / "q.json", "{}")
    r, q, p = (os.stat(x).st_ino for x in (part / "r.json", part / "q.json", part))
    assert len({r, q, p, os.stat(table).st_ino, os.stat(mnt.path).st_ino}) == 5
    put(part / "r.json", '{"v":1}')
    assert os.stat(part / "r.json").st_ino == r
    assert {e.name: e.inode() for e in os.scandir(part)} == {"r.json": r, "q.json": q}
    mnt.remount()
    assert os.stat(part / "r.json").st_ino == r and os.stat(part).st_ino == p
    os.rename(part / "r.json", part / "s.json")
    assert os.stat(part / "s.json").st_ino == r
    os.rename(part, table / "other")
    assert os.stat(table / "other").st_ino == p
    assert os.stat(table / "other/s.json").st_ino == r
    os.unlink(table / "other/s.json")
    mnt.remount()
    put(table / "other/s.json", "{}")
    assert os.stat(table / "other/s.json").st_ino not in (r, q)


def test_A4_the_temporary_files_number_becomes_the_rows(part):
    put(part / "r.json", "{}")
    put(part / "tmp", '{"v":1}')
    old, new = os.stat(part / "r.json").st_ino, os.stat(part / "tmp").st_ino
    os.rename(part / "tmp", part / "r.json")
    assert os.stat(part / "r.json").st_ino == new != old


def test_A5_what_is_set_on_an_open_handle_holds(part):
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, b'{"v":1}')
    os.utime(fd, ns=(1, 2_000_000_000_000_000_001))
    os.fchown(fd, 12, 34)
    os.fchmod(fd, 0o640)
    os.close(fd)
    st = os.stat(part / "r.json")
    assert (st.st_mtime_ns, st.st_uid, st.st_gid, st.st_mode & 0o7777) == (
        2_000_000_000_000_000_001, 12, 34, 0o640)
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b'{"v":2}')
    os.utime(fd, ns=(1, 3_000_000_000_000_000_001))
    os.close(fd)
    assert os.stat(part / "r.json").st_mtime_ns == 3_000_000_000_000_000_001
    assert os.stat(part / "r.json").st_mode & 0o7777 == 0o640


def test_A5_fstat_of_the_writer(part):
    put(part / "r.json", "{}")
    fd = os.open(part / "r.json", os.O_RDWR)
    os.pwrite(fd, b'{"v":1}', 0)
    assert os.fstat(fd).st_size == 7
    os.close(fd)


def test_A6_a_directorys_times_move_with_its_entries(account, table, part):
    def moved(directory, change):
        before = os.stat(directory)
        time.sleep(0.002)
        change()
        after = os.stat(directory)
        return after.st_mtime_ns > before.st_mtime_ns and after.st_ctime_ns > before.st_ctime_ns

    assert moved(part, lambda: put(part / "r.json", "{}"))
    assert not moved(part, lambda: put(part / "r.json", '{"v":1}'))
    assert moved(part, lambda: os.rename(part / "r.json", part / "q.json"))
    assert moved(part, lambda: os.unlink(part / "q.json"))
    assert moved(part, lambda: put(part / "tmp", "x"))
    assert moved(table, lambda: (table / "other").mkdir())
    assert moved(table, lambda: (table / "other").rmdir())
    assert moved(account, lambda: (account / "Other").mkdir())


def test_A6_directories_in_which_nothing_changed_have_a_time(mount, store):
    """A store as it is made: no account, nothing removed, nothing refused."""
    before = time.time() - 1
    m = mount(store)
    (m / ".rowfs/snapshots/s").mkdir()
    for path in ("", ".rowfs", ".rowfs/trash", ".rowfs/rejected", ".rowfs/snapshots/s"):
        st = os.stat(m / path)
        assert before < st.st_mtime <= time.time() and before < st.st_ctime, path
    with os.scandir(m / ".rowfs") as entries:
        assert all(e.stat().st_mtime > before for e in entries)
    assert sh(f"stat -c %w '{m.path}'").stdout == "-\n"


def test_A7_mode_owner_and_times_are_kept(mnt, account, table, part):
    put(part / "r.json", "{}")
    put(part / "tmp", "x")
    things = [account, table, part, part / "r.json", part / "tmp"]
    for i, p in enumerate(things):
        os.chmod(p, 0o700 + i)
        os.chown(p, 100 + i, 200 + i)
        os.utime(p, ns=(1, 10**18 + i))
    for again in (False, True):
        if again:
            mnt.remount()
        for i, p in enumerate(things):
            st = os.stat(p)
            assert (st.st_mode & 0o7777, st.st_uid, st.st_gid, st.st_mtime_ns) == (
                0o700 + i, 100 + i, 200 + i, 10**18 + i), p
    put(part / "r.json", '{"v":1}')
    assert os.stat(part / "r.json").st_mode & 0o7777 == 0o703
    assert os.stat(part / "r.json").st_uid == 103


def test_A7_of_a_new_file_before_its_first_document(part):
    put(part / "r.json", "")
    os.chmod(part / "r.json", 0o600)
    os.chown(part / "r.json", 12, 34)
    put(part / "r.json", "{}")
    st = os.stat(part / "r.json")
    assert (st.st_mode & 0o7777, st.st_uid, st.st_gid) == (0o600, 12, 34)


def test_A7_mode_0000(part):
    put(part / "r.json", "{}")
    os.chmod(part / "r.json", 0)
    assert os.stat(part / "r.json").st_mode & 0o7777 == 0


def test_A8_attributes_answer_to_name_and_are_not_listed(part):
    put(part / "r.json", "{}")
    assert xattr(part / "r.json", "partition_key") == "Channel_19"
    assert xattr(part / "r.json", "row_key") == "r"
    stamp = xattr(part / "r.json", "timestamp")
    assert stamp.startswith("20") and stamp.endswith("Z")
    assert xattr(part / "r.json", "etag").startswith("W/\"datetime'")
    assert os.listxattr(part / "r.json") == []
    assert sh("getfattr -d -m - r.json", cwd=part).stdout == ""
    assert os.listxattr(part) == []
    with raises("ENODATA"):
        os.getxattr(part / "r.json", "user.rowfs.error")


def test_A8_every_change_has_an_etag_of_its_own(part):
    seen = set()
    for i in range(200):
        put(part / "r.json", json.dumps({"v": i % 2}))
        seen.add(xattr(part / "r.json", "etag"))
    assert len(seen) == 200
    os.unlink(part / "r.json")
    put(part / "r.json", "{}")
    assert xattr(part / "r.json", "etag") not in seen


def test_A9_other_attributes(part):
    put(part / "r.json", "{}")
    for name in ("user.other", "user.rowfs.nothing", "security.selinux"):
        with raises("ENODATA", "EOPNOTSUPP"):
            os.getxattr(part / "r.json", name)
    with raises("EOPNOTSUPP"):
        os.setxattr(part / "r.json", "user.other", b"x")
    for name in ("etag", "timestamp", "row_key", "partition_key", "error"):
        with raises("EOPNOTSUPP", "EPERM"):
            os.setxattr(part / "r.json", f"user.rowfs.{name}", b"x")
    with raises("EOPNOTSUPP"):
        os.setxattr(part / "r.json", "system.posix_acl_access",
                    bytes.fromhex("0200000001000600ffffffff04000400ffffffff20000400ffffffff"))
    with raises("EOPNOTSUPP", "ENODATA"):
        os.getxattr(part / "r.json", "system.posix_acl_access")


# ---- M: rename


def test_M1_rename_over_a_row_everywhere_in_the_mount(mnt, table, part):
    for path in ("acct1/Blogs/p2", "acct1/Other/p", "acct2/Tab/p"):
        target = mnt / path
        target.mkdir(parents=True)
        put(part / "r.json", json.dumps({"to": path}))
        ino = os.stat(part / "r.json").st_ino
        put(target / "x.json", '{"old":1}')
        os.rename(part / "r.json", target / "x.json")
        assert json.loads(get(target / "x.json")) == {"to": path}
        assert os.stat(target / "x.json").st_ino == ino
        assert rows(part) == [] and rows(target) == ["x.json"]
        assert xattr(target / "x.json", "partition_key") == path.rsplit("/", 1)[1]
        assert xattr(target / "x.json", "row_key") == "x"


def test_M1_rename_onto_itself_and_of_what_is_not_there(part):
    put(part / "r.json", '{"v":1}')
    os.rename(part / "r.json", part / "r.json")
    assert get(part / "r.json") == b'{"v":1}'
    with raises("ENOENT"):
        os.rename(part / "no.json", part / "r.json")
    assert get(part / "r.json") == b'{"v":1}'


def test_M1_out_of_the_mount_is_another_device(part, work):
    put(part / "r.json", "{}")
    with raises("EXDEV"):
        os.rename(part / "r.json", work / "r.json")


def test_M1_a_row_and_a_directory_do_not_replace_each_other(table, part):
    put(part / "r.json", "{}")
    (part / ".d").mkdir()
    with raises("EISDIR", "EINVAL", "EPERM"):
        os.rename(part / "r.json", part / ".d")
    with raises("ENOTDIR", "EINVAL", "EPERM"):
        os.rename(part / ".d", part / "r.json")
    with raises("EPERM", "EINVAL"):
        os.rename(part / "r.json", table / "r.json")  # rows live in partitions
    with raises("EINVAL"):
        os.rename(part / ".d", part / ".d/sub")
    assert rows(part) == [".d", "r.json"]


def test_M2_noreplace(part):
    put(part / "a.json", '{"v":1}')
    put(part / "b.json", '{"v":2}')
    with raises("EEXIST"):
        renameat2(part / "a.json", part / "b.json", NOREPLACE)
    assert get(part / "a.json") == b'{"v":1}' and get(part / "b.json") == b'{"v":2}'
    renameat2(part / "a.json", part / "c.json", NOREPLACE)
    assert rows(part) == ["b.json", "c.json"]
    put(part / "t", '{"v":3}')
    with raises("EEXIST"):
        renameat2(part / "t", part / "b.json", NOREPLACE)
    renameat2(part / "t", part / "d.json", NOREPLACE)
    assert get(part / "d.json") == b'{"v":3}'


def test_M3_exchange(table, part):
    (table / "p2").mkdir()
    put(part / "a.json", '{"v":1}')
    put(table / "p2/b.json", '{"v":2}')
    a, b = os.stat(part / "a.json").st_ino, os.stat(table / "p2/b.json").st_ino
    renameat2(part / "a.json", table / "p2/b.json", EXCHANGE)
    assert get(part / "a.json") == b'{"v":2}' and get(table / "p2/b.json") == b'{"v":1}'
    assert (os.stat(part / "a.json").st_ino, os.stat(table / "p2/b.json").st_ino) == (b, a)
    with raises("ENOENT"):
        renameat2(part / "a.json", part / "no.json", EXCHANGE)


def test_M3_exchange_of_a_row_and_an_ordinary_file(part):
    put(part / "r.json", '{"v":1}')
    put(part / "tmp", '{"v":2}')
    renameat2(part / "r.json", part / "tmp", EXCHANGE)
    assert get(part / "r.json") == b'{"v":2}' and get(part / "tmp") == b'{"v":1}'
    put(part / "tmp", "nonsense")
    with raises("EBADMSG"):
        renameat2(part / "r.json", part / "tmp", EXCHANGE)
    assert get(part / "r.json") == b'{"v":2}' and get(part / "tmp") == b"nonsense"


def test_M4_renaming_a_partition(mnt, table, part):
    for i in range(50):
        put(part / f"{i:02}.json", json.dumps({"v": i}))
    put(part / "tmp", "x")
    get(part / "07.json")
    os.rename(part, table / "other")
    assert rows(table) == ["other"]
    assert len(rows(table / "other")) == 51
    assert xattr(table / "other/07.json", "partition_key") == "other"
    assert json.loads(get(table / "other/07.json")) == {"v": 7}
    with raises("ENOENT"):
        os.stat(part / "07.json")
    mnt.remount()
    assert len(rows(table / "other")) == 51
    (table / "third").mkdir()
    os.rename(table / "other", table / "third")  # an empty one is replaced
    (table / "full").mkdir()
    put(table / "full/r.json", "{}")
    with raises("ENOTEMPTY", "EEXIST"):
        os.rename(table / "third", table / "full")
    assert rows(table) == ["full", "third"]


def test_M4_a_partition_moves_to_another_table(mnt, account, part):
    put(part / "r.json", '{"v":1}')
    (account / "Other").mkdir()
    os.rename(part, account / "Other/p")
    assert get(account / "Other/p/r.json") == b'{"v":1}'
    (mnt / "acct2").mkdir()
    (mnt / "acct2/Tab").mkdir()
    os.rename(account / "Other/p", mnt / "acct2/Tab/p")
    assert get(mnt / "acct2/Tab/p/r.json") == b'{"v":1}'


def test_M5_renaming_a_table(mnt, account, table, part, rowfs):
    put(part / "r.json", '{"v":1}')
    os.rename(table, account / "Journal")
    assert rows(account) == ["Journal"]
    assert get(account / "Journal/Channel_19/r.json") == b'{"v":1}'
    assert '"v":1' in rowfs("export", mnt.store, "acct1/Journal").stdout
    with raises("EINVAL", "ENAMETOOLONG"):
        os.rename(account / "Journal", account / "no")
    (mnt / "acct2").mkdir()
    os.rename(account / "Journal", mnt / "acct2/Journal")
    assert get(mnt / "acct2/Journal/Channel_19/r.json") == b'{"v":1}'


def test_M5_directories_stay_on_their_floor(mnt, account, table, part):
    for old, new in ((part, account / "Part1"), (table, mnt / "tab"), (part, mnt / "part"),
                     (table, table / "sub"), (account, table / "acct")):
        with raises("EPERM", "EINVAL", "EXDEV", "ENOTEMPTY", "EEXIST"):
            os.rename(old, new)
    assert rows(mnt.path) == ["acct1"] and rows(table) == ["Channel_19"]


def test_M6_keys_in_the_document_follow_a_rename(table, part):
    put(part / "r.json", '{"RowKey":"r","PartitionKey":"Channel_19","v":1}')
    os.rename(part / "r.json", part / "q.json")
    row = json.loads(get(part / "q.json"))
    assert row.get("RowKey", "q") == "q" and row["v"] == 1
    os.rename(part, table / "other")
    row = json.loads(get(table / "other/q.json"))
    assert row.get("PartitionKey", "other") == "other" and row["v"] == 1
    os.rename(table / "other/q.json", table / "other/q2.json")
    put(table / "other/q2.json", get(table / "other/q2.json"))  # it may be written back


def test_M7_a_rename_rewrites_4096_documents_and_no_more(table, part):
    for i in range(4096):
        put(part / f"{i}.json", '{"PartitionKey":"Channel_19","v":1}')
    put(part / "without.json", "{}")
    os.rename(part, table / "other")
    assert json.loads(get(table / "other/4095.json"))["v"] == 1
    os.rename(table / "other/without.json", table / "other/with.json")
    put(table / "other/with.json", '{"PartitionKey":"other"}')
    for i in range(4096):
        put(table / f"other/{i}.json", '{"PartitionKey":"other"}')
    with raises("E2BIG"):
        os.rename(table / "other", part)
    assert "4,096" in xattr(table, "error")
    assert len(rows(table / "other")) == 4097 and rows(table) == ["other"]
    part.mkdir()
    for name in rows(table / "other"):
        os.rename(table / "other" / name, part / name)
    assert len(rows(part)) == 4097
    (table / "other").rmdir()


def test_M7_a_rename_rewrites_4_MiB_and_no_more(table, part):
    text = '{"PartitionKey":"Channel_19"}'
    for i in range(2):
        put(part / f"{i}.json", text + " " * ((2 << 20) - len(text)))
    os.rename(part, table / "other")
    text = '{"PartitionKey":"other"}'
    for i in range(2):
        put(table / f"other/{i}.json", text + " " * ((2 << 20) - len(text)))
    put(table / "other/more.json", text)
    with raises("E2BIG"):
        os.rename(table / "other", part)


# ---- D: remove and make


def test_D1_remove(mnt, account, table, part):
    put(part / "r.json", "{}")
    put(part / "tmp", "x")
    for d in (part, table, account):
        with raises("ENOTEMPTY"):
            d.rmdir()
    with raises("EISDIR", "EPERM"):
        os.unlink(part)
    with raises("ENOTDIR"):
        os.rmdir(part / "r.json")
    os.unlink(part / "r.json")
    with raises("ENOENT"):
        os.unlink(part / "r.json")
    with raises("ENOTEMPTY"):
        part.rmdir()
    os.unlink(part / "tmp")
    for d in (part, table, account):
        d.rmdir()
    assert rows(mnt.path) == []


def test_D1_rm_r_removes_all_of_it(mnt, account, table):
    for p in range(5):
        (table / f"p{p}").mkdir()
        (table / f"p{p}/.d/e").mkdir(parents=True)
        put(table / f"p{p}/.d/e/f", "x")
        for r in range(40):
            put(table / f"p{p}/{r}.json", "{}")
    sh(f"rm -r {account}")
    assert rows(mnt.path) == []


def test_D2_directories_stay_while_they_are_empty(mnt, account, table, part):
    put(part / "r.json", "{}")
    os.unlink(part / "r.json")
    (table / "second").mkdir()
    mnt.remount()
    assert rows(table) == ["Channel_19", "second"]


def test_D2_an_imported_partition_stays_too(rowfs, store, mount, work):
    (work / "in").write_text('{"PartitionKey":"p","RowKey":"r"}\n')
    rowfs("account", "add", store, "acct1")
    rowfs("import", store, "acct1/Tab", work / "in")
    m = mount(store)
    os.unlink(m / "acct1/Tab/p/r.json")
    assert rows(m / "acct1/Tab") == ["p"]
    os.rmdir(m / "acct1/Tab/p")
    assert rows(m / "acct1/Tab") == []


def test_D3_mkdir_makes_accounts_tables_and_partitions(mnt, account, table, part, rowfs):
    listed = rowfs("account", "list", mnt.store).stdout
    assert "acct1" in listed
    for d in (mnt.path, account, table, part):
        with raises("EEXIST"):
            os.mkdir(d)
    with raises("ENOENT"):
        os.mkdir(mnt / "none/Tab")


def test_D3_files_without_a_leading_dot_can_be_made_in_partitions_only(mnt, account, table):
    for d in (mnt.path, account, table):
        for name in ("file", "r.json"):
            with raises("EPERM", "EINVAL"):
                put(d / name, "{}")
    assert rows(mnt.path) == ["acct1"] and rows(account) == ["Blogs"] and rows(table) == []


def test_D4_no_links_devices_sockets_or_pipes(part):
    put(part / "r.json", "{}")
    with raises("EPERM"):
        os.symlink("r.json", part / "s")
    with raises("EPERM"):
        os.link(part / "r.json", part / "l.json")
    with raises("EPERM"):
        os.mkfifo(part / "f")
    if os.geteuid() == 0:
        with raises("EPERM"):
            os.mknod(part / "n", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    with raises("EPERM"), socket.socket(socket.AF_UNIX) as s:
        os.chdir(part)
        s.bind("sock")
    out = sh("ln -s a b; ln -sf r.json r.json; ln r.json x.json", cwd=part, check=False)
    assert "Operation not permitted" in out.stderr
    assert rows(part) == ["r.json"]
