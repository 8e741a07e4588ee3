# SPDX-License-Identifier: MIT
"""Corners where one kind of thing becomes another: rows, ordinary files, empty files that
wait for a document, directories without a key; each once went wrong."""

import ctypes
import json
import os
import subprocess

import pytest

from tools import EXCHANGE, get, put, raises, renameat2, xattr

LONG = "k" * 300


def drop_caches():
    subprocess.run(["sh", "-c", "echo 3 > /proc/sys/vm/drop_caches"], check=False)


def digest_name(rowfs, store, mnt, work):
    """The directory name of a partition whose key is too long for a name."""
    rowfs("import", store, "acct1/Other",
          input=json.dumps({"PartitionKey": LONG, "RowKey": "r"}) + "\n")
    (name,) = os.listdir(mnt / "acct1/Other")
    return name


def test_F1_a_row_that_became_a_file_shows_what_is_written_to_it(part):
    put(part / "r.json", '{"a":1}\n')
    assert get(part / "r.json") == b'{"a":1}\n'
    os.rename(part / "r.json", part / "n.txt")
    with open(part / "n.txt", "a") as f:
        f.write("more\n")
    drop_caches()
    assert get(part / "n.txt") == b'{"a":1}\nmore\n'
    put(part / "n.txt", "short")
    drop_caches()
    assert get(part / "n.txt") == b"short"


def test_F1_a_file_can_be_read_on_after_it_became_a_row(part):
    fd = os.open(part / "tmp", os.O_RDWR | os.O_CREAT)
    os.write(fd, b'{"a":1}')
    os.rename(part / "tmp", part / "r.json")
    drop_caches()
    assert os.pread(fd, 100, 0) == b'{"a":1}'
    put(part / "r.json", '{"a":2}')
    drop_caches()
    assert os.pread(fd, 100, 0) == b'{"a":1}'
    with raises("ESTALE"):
        os.write(fd, b"x")
    os.close(fd)
    assert get(part / "r.json") == b'{"a":2}'


def test_F1_an_old_handle_of_what_became_a_row_gets_no_other_size(part):
    """Also when there was much else since."""
    put(part / "tmp", '{"a":1}')
    fd = os.open(part / "tmp", os.O_RDONLY)
    assert os.pread(fd, 100, 0) == b'{"a":1}'
    os.rename(part / "tmp", part / "r.json")
    put(part / "r.json", '{"a":22222}')
    for n in range(40):  # more than is remembered
        put(part / f"large{n}.json", json.dumps({f"P{i}": "x" * 32000 for i in range(15)}))
        get(part / f"large{n}.json")
    drop_caches()
    assert os.fstat(fd).st_size == 7
    assert os.pread(fd, 100, 0) == b'{"a":1}'
    os.close(fd)
    assert get(part / "r.json") == b'{"a":22222}'


def test_M1_a_row_cannot_move_into_a_directory_without_a_key(rowfs, store, mnt, table, part, work):
    put(part / "a.json", '{"v":1}')
    name = digest_name(rowfs, store, mnt, work)
    (table / name).mkdir()
    with raises("EINVAL"):
        os.rename(part / "a.json", table / name / "b.json")
    assert get(part / "a.json") == b'{"v":1}' and os.listdir(table / name) == []


def test_N6_a_directory_without_a_key_learns_it_from_the_first_document(
        rowfs, store, mnt, table, work):
    name = digest_name(rowfs, store, mnt, work)
    (table / name).mkdir()
    with raises("EINVAL"):
        put(table / name / "x.json", "{}")
    put(table / name / ".x.json.Ab12Cd", json.dumps({"PartitionKey": LONG, "v": 1}))
    os.rename(table / name / ".x.json.Ab12Cd", table / name / "x.json")
    assert xattr(table / name / "x.json", "partition_key") == LONG
    assert xattr(table / name, "partition_key") == LONG


def test_W14_the_last_close_wins_also_on_a_new_name(part):
    put(part / "x.json", "")
    first = os.open(part / "x.json", os.O_WRONLY | os.O_TRUNC)
    second = os.open(part / "x.json", os.O_WRONLY | os.O_TRUNC)
    os.write(first, b'{"n":1}')
    os.write(second, b'{"n":2}')
    os.close(first)
    assert get(part / "x.json") == b'{"n":1}'
    os.close(second)
    assert get(part / "x.json") == b'{"n":2}'


def test_T5_a_directorys_time_moves_with_the_first_commit(part):
    fd = os.open(part / "new.json", os.O_WRONLY | os.O_CREAT)
    before = os.stat(part).st_mtime_ns
    os.write(fd, b"{}")
    os.close(fd)
    assert os.stat(part).st_mtime_ns > before


def test_M3_an_empty_file_changes_places_only_with_another(part):
    put(part / "e.json", "")
    put(part / "f.json", "")
    put(part / "tmp", '{"x":1}')
    for a, b in (("e.json", "tmp"), ("tmp", "e.json")):
        with raises("EBADMSG"):
            renameat2(part / a, part / b, EXCHANGE)
    renameat2(part / "e.json", part / "f.json", EXCHANGE)
    assert sorted(os.listdir(part)) == ["e.json", "f.json", "tmp"]
    assert get(part / "tmp") == b'{"x":1}'


@pytest.mark.parametrize("name", ["fol", "q.json"])
def test_F2_a_folder_keeps_its_dot(part, name):
    (part / ".d").mkdir()
    put(part / "other", "x")
    with raises("EPERM"):
        os.rename(part / ".d", part / name)
    with raises("EPERM"):
        renameat2(part / ".d", part / "other", EXCHANGE)
    with raises("EPERM"):
        renameat2(part / "other", part / ".d", EXCHANGE)
    os.rename(part / ".d", part / ".e")


def test_M4_a_table_is_not_renamed_onto_another_one_in_other_case(account):
    (account / "Emp").mkdir()
    (account / "Oth").mkdir()
    with raises("EEXIST"):
        os.rename(account / "Oth", account / "emp")
    os.rename(account / "Emp", account / "EMP")
    assert sorted(os.listdir(account)) == ["EMP", "Oth"]


def test_W4_a_reader_of_a_stage_does_not_end_it(part):
    put(part / "r.json", '{"v":0}')
    fd = os.open(part / "r.json", os.O_RDWR | os.O_TRUNC)
    os.write(fd, b'{"a":')
    peek = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    assert os.read(peek, 100) == b'{"a":'
    os.close(peek)
    os.write(fd, b"1}")
    os.close(fd)
    assert get(part / "r.json") == b'{"a":1}'


def test_V4_nothing_is_made_in_rejected(mnt, part):
    put(part / "r.json", "{}")
    rejected = mnt / ".rowfs/rejected"
    with raises("EPERM"):
        put(rejected / "new", "x")
    with raises("EPERM"):
        (rejected / ".d").mkdir()
    with raises("EPERM"):
        os.rename(part / "r.json", rejected / "r.json")
    assert get(part / "r.json") == b"{}"


def test_E9_a_refused_document_can_be_mended_and_moved_back(mnt, part):
    with raises("EINVAL"):
        put(part / "r.json", '{"a":1')
    (name,) = os.listdir(mnt / ".rowfs/rejected")
    with open(mnt / ".rowfs/rejected" / name, "a") as f:
        f.write("}")
    os.rename(mnt / ".rowfs/rejected" / name, part / "r.json")
    assert get(part / "r.json") == b'{"a":1}' and os.listdir(mnt / ".rowfs/rejected") == []


def test_D2_nothing_waits_behind_a_row(rowfs, store, mnt, part):
    """An import makes the row while somebody has its new name open."""
    fd = os.open(part / "g.json", os.O_WRONLY | os.O_CREAT)
    rowfs("import", store, "acct1/Blogs",
          input=json.dumps({"PartitionKey": part.name, "RowKey": "g", "v": 1}) + "\n")
    os.close(fd)
    assert json.loads(get(part / "g.json")) == {"v": 1}
    put(part / "h.json", "")
    rowfs("import", store, "acct1/Blogs",
          input=json.dumps({"PartitionKey": part.name, "RowKey": "h", "v": 1}) + "\n")
    os.unlink(part / "g.json")
    os.rename(part / "h.json", part / "i.json")
    assert os.listdir(part) == ["i.json"]
    os.unlink(part / "i.json")
    os.rmdir(part)


def test_N5_names_too_short_or_too_long_name_nothing(mnt, account):
    for path in (mnt / "ab", account / "ab", account / ("t" * 64), account / "Tab" / "x"):
        with raises("ENOENT"):
            os.stat(path)
    with raises("ENAMETOOLONG"):
        os.stat(account / ("t" * 256))
    with raises("EINVAL"):
        (account / "ab").mkdir()


def test_E8_the_list_of_errors_tells_the_whole_path(mnt, part):
    with raises("EINVAL"):
        put(part / "r.json", "nonsense")
    line = json.loads(get(mnt / ".rowfs/errors").splitlines()[-1])
    assert line["path"] == "acct1/Blogs/Channel_19/r.json"
    assert (line["line"], line["column"]) == (1, 1)


def test_A9_space_is_told_whatever_the_mount_is_called(mount, store):
    mnt = mount(store, "fsname=something")
    assert os.statvfs(mnt.path).f_blocks > 0


def test_M5_a_renamed_row_whose_document_holds_its_key_is_seen_anew_at_once(part):
    for i in range(50):
        put(part / "s.json", '{"RowKey":"s","pad":"%s"}' % ("x" * i))
        assert b"RowKey" in get(part / "s.json")
        os.stat(part / "s.json")
        os.rename(part / "s.json", part / "sb.json")
        text = get(part / "sb.json")
        assert json.loads(text) == {"pad": "x" * i}
        assert os.stat(part / "sb.json").st_size == len(text)


def test_L2_an_open_that_was_given_up_changes_no_other_row(part):
    """openat2(RESOLVE_CACHED) is refused after the daemon asked for a second try; what the
    same thread opens next must be what it names."""
    for n in "ABC":
        put(part / f"{n}.json", '{"n":"%s"}' % n)
        get(part / f"{n}.json")
    libc = ctypes.CDLL(None, use_errno=True)
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0x20)
    libc.syscall(437, -100, str(part / "A.json").encode(), how, 24)
    os.stat(part / "C.json")
    put(part / "B.json", '{"n":"B","new":1}')
    assert get(part / "B.json") == b'{"n":"B","new":1}'
    assert get(part / "C.json") == b'{"n":"C"}' and get(part / "A.json") == b'{"n":"A"}'
