# SPDX-License-Identifier: MIT
"""docs/semantics.md: what a row file holds (C), how it is written (W), lost updates (L)."""

import contextlib
import errno
import fcntl
import json
import mmap
import os
import subprocess
import threading

import pytest

from tools import get, put, raises, reason, rejected, rows, sh


def exported(rowfs, m, target="acct1/Blogs"):
    """The rows as another front end sees them, by RowKey."""
    out = rowfs("export", m.store, target).stdout
    return {r["RowKey"]: r for r in map(json.loads, out.splitlines())}


def types_of(rowfs, m, name="r"):
    row = exported(rowfs, m)[name]
    return {k: (row.get(f"{k}@odata.type"), v) for k, v in row.items()
            if "odata" not in k and k not in ("PartitionKey", "RowKey", "Timestamp")}


def open_write(path, truncate=True):
    return os.open(path, os.O_WRONLY | (os.O_TRUNC if truncate else 0))


# ---- C: content


def test_C1_types(mnt, part, rowfs):
    put(part / "r.json", json.dumps({
        "S": "x", "T": True, "I": 2147483647, "L": 2147483648, "M": -2147483649, "D": 1.5,
        "E": 1e3, "N": None,
        "B@odata.type": "Edm.Binary", "B": "AQID",
        "G@odata.type": "Edm.Guid", "G": "C9DA6455-213D-42C9-9A79-3E9149A57833",
        "W@odata.type": "Edm.DateTime", "W": "2008-07-10T00:00:00.1234567Z",
        "Q@odata.type": "Edm.Int64", "Q": "9223372036854775807",
        "P@odata.type": "Edm.Double", "P": "NaN"}))
    t = types_of(rowfs, mnt)
    assert "N" not in t
    assert t["S"] == (None, "x") and t["T"] == (None, True)
    assert t["I"] == (None, 2147483647)
    assert t["L"] == ("Edm.Int64", "2147483648") and t["M"] == ("Edm.Int64", "-2147483649")
    assert t["D"] == (None, 1.5) and t["E"][1] == 1000.0
    assert t["B"] == ("Edm.Binary", "AQID")
    assert t["G"] == ("Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a57833")
    assert t["W"] == ("Edm.DateTime", "2008-07-10T00:00:00.1234567Z")
    assert t["Q"] == ("Edm.Int64", "9223372036854775807")
    assert t["P"] == ("Edm.Double", "NaN")


@pytest.mark.parametrize("text", [
    '{}', ' {\t"b" : 1.50,\r\n "a":1E+2 }\n\n', '{"a":"\\u0041\\/\\n"}', '{"a":-0,"b":1.0E-7}',
    '{"Ä":"é\\ud83d\\ude00"}', '{"RowKey":"r", "x":1}', '{"a":null}', '{"a":9223372036854775807}'])
def test_C2_what_you_write_is_what_you_read(mnt, part, text):
    put(part / "r.json", text)
    assert get(part / "r.json").decode() == text
    mnt.remount()
    assert get(part / "r.json").decode() == text
    assert os.stat(part / "r.json").st_size == len(text.encode())


def test_C2_a_rename_keeps_the_bytes(part):
    text = b' {"b" : 1.50,\n"a":1E+2 }\n'
    put(part / "r.json", text)
    os.rename(part / "r.json", part / "q.json")
    assert get(part / "q.json") == text


def test_C3_system_properties_are_accepted_and_dropped(mnt, part, rowfs):
    put(part / "r.json", json.dumps({
        "odata.etag": "W/\"x\"", "odata.metadata": "http://x", "PartitionKey": "Channel_19",
        "RowKey": "r", "Timestamp@odata.type": "Edm.DateTime",
        "Timestamp": "2008-07-10T00:00:00Z", "x": 1}))
    assert set(types_of(rowfs, mnt)) == {"x"}
    assert not exported(rowfs, mnt)["r"]["Timestamp"].startswith("2008")


@pytest.mark.parametrize("keys", [{"RowKey": "other"}, {"PartitionKey": "other"}, {"RowKey": ""},
                                  {"RowKey": 1}, {"PartitionKey": "Channel_19", "RowKey": "R"}])
def test_C3_a_key_that_disagrees_is_refused(part, keys):
    put(part / "r.json", '{"x":1}')
    with raises("EINVAL"):
        put(part / "r.json", json.dumps({**keys, "x": 2}))
    assert get(part / "r.json") == b'{"x":1}'


def test_C4_an_imported_row_reads_as_compact_json(rowfs, store, mount, work):
    (work / "in").write_text('{"PartitionKey":"p","RowKey":"r", "a" : 1, "b@odata.type":'
                             '"Edm.Int64", "b":"5", "c" : "x"}\n')
    rowfs("account", "add", store, "acct1")
    rowfs("import", store, "acct1/Tab", work / "in")
    m = mount(store)
    assert get(m / "acct1/Tab/p/r.json") == (
        b'{"a":1,"b@odata.type":"Edm.Int64","b":"5","c":"x"}\n')


# ---- W: writing


def test_W1_a_reader_keeps_its_version(part):
    first, second = '{"v":"' + "1" * 9000 + '"}', '{"v":"' + "2" * 5000 + '"}'
    for change in ("write", "replace", "unlink", "rename"):
        put(part / "r.json", first)
        with open(part / "r.json", "rb") as f:
            head = os.pread(f.fileno(), 100, 0)
            if change == "write":
                put(part / "r.json", second)
            elif change == "replace":
                put(part / "tmp", second)
                os.rename(part / "tmp", part / "r.json")
            elif change == "unlink":
                os.unlink(part / "r.json")
            else:
                os.rename(part / "r.json", part / "q.json")
            assert head + os.pread(f.fileno(), 99999, 100) == first.encode(), change
            assert os.fstat(f.fileno()).st_size == len(first), change


def test_W1_readers_never_see_a_mix(part):
    texts = [json.dumps({"v": c * n}) for c, n in (("a", 10), ("b", 300), ("c", 20000))]
    put(part / "r.json", texts[0])
    legal, stop, bad = {t.encode() for t in texts}, threading.Event(), []

    def read():
        while not stop.is_set():
            data = get(part / "r.json")
            if data not in legal:
                bad.append(data[:60])

    readers = [threading.Thread(target=read) for _ in range(2)]
    for t in readers:
        t.start()
    for i in range(400):
        fd = open_write(part / "r.json")
        text = texts[i % 3].encode()
        os.write(fd, text[:7])
        os.write(fd, text[7:])
        os.close(fd)
        if i % 10 == 0:
            put(part / "tmp", texts[(i + 1) % 3])
            os.rename(part / "tmp", part / "r.json")
    stop.set()
    for t in readers:
        t.join()
    assert bad == []


def test_W2_others_read_the_committed_row_meanwhile(part):
    put(part / "r.json", '{"v":1}')
    fd = open_write(part / "r.json")
    assert get(part / "r.json") == b'{"v":1}'
    os.write(fd, b'{"v":22')
    assert get(part / "r.json") == b'{"v":1}'
    assert os.stat(part / "r.json").st_size == 7
    os.write(fd, b"2}")
    assert get(part / "r.json") == b'{"v":1}'
    os.close(fd)
    assert get(part / "r.json") == b'{"v":222}'
    assert os.stat(part / "r.json").st_size == 9


def test_W3_a_filter_may_write_to_its_own_input(part):
    put(part / "r.json", '{"Rating":4}')
    sh("jq '.Rating += 1' r.json > r.json", cwd=part)
    assert json.loads(get(part / "r.json")) == {"Rating": 5}


def test_W4_any_close_in_the_opening_process_commits(part):
    put(part / "r.json", "{}")
    fd = open_write(part / "r.json")
    os.close(os.dup(fd))  # nothing written: nothing happens
    os.write(fd, b'{"v":1')
    with raises("EINVAL"):
        os.close(os.dup(fd))
    os.write(fd, b"}")
    os.close(os.dup(fd))
    assert get(part / "r.json") == b'{"v":1}'
    os.close(fd)
    assert get(part / "r.json") == b'{"v":1}'


def test_W4_a_shell_that_keeps_the_file_open(part):
    out = sh("exec 3> r.json; echo '{\"v\":1}' >&3; cat r.json; exec 3>&-; cat r.json", cwd=part)
    assert out.stdout == '{"v":1}\n' * 2


def test_W4_a_clean_close_is_no_second_commit(part):
    put(part / "r.json", "{}")
    etag = os.getxattr(part / "r.json", "user.rowfs.etag")
    os.close(os.open(part / "r.json", os.O_WRONLY))
    os.close(os.open(part / "r.json", os.O_RDWR))
    assert os.getxattr(part / "r.json", "user.rowfs.etag") == etag


def test_W4_a_thread_may_close_what_another_opened(part):
    fds = []
    t = threading.Thread(target=lambda: fds.append(os.open(part / "r.json",
                                                           os.O_WRONLY | os.O_CREAT)))
    t.start()
    t.join()
    os.write(fds[0], b'{"v":1}')
    t = threading.Thread(target=lambda: os.close(fds[0]))
    t.start()
    t.join()
    assert get(part / "r.json") == b'{"v":1}'


def test_W5_what_was_acknowledged_survives_a_kill(mnt, part):
    fd = os.open(part / "a.json", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b'{"v":1}')
    os.fsync(fd)
    put(part / "b.json", '{"v":2}')
    os.write(fd, b" ")  # never acknowledged
    mnt.kill9()
    with contextlib.suppress(OSError):
        os.close(fd)
    mnt.start()
    assert get(part / "a.json") == b'{"v":1}' and get(part / "b.json") == b'{"v":2}'


def test_W5_fsync_commits_while_the_file_stays_open(part):
    fd = os.open(part / "r.json", os.O_RDWR | os.O_CREAT)
    os.write(fd, b'{"v":1}')
    os.fsync(fd)
    assert get(part / "r.json") == b'{"v":1}'
    os.pwrite(fd, b"2", 5)
    assert get(part / "r.json") == b'{"v":1}'
    os.fdatasync(fd)
    assert get(part / "r.json") == b'{"v":2}'
    os.close(fd)
    for path in (part, part / "r.json"):  # sync(1) does this
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


def test_W6_children_may_write_parts_of_a_document(part):
    out = sh("( /bin/echo '{'; /bin/echo '\"a\":1}' ) > r.json && { /bin/echo '{'; echo '\"b\":2}';"
             " } > q.json", cwd=part)
    assert out.stderr == ""
    assert json.loads(get(part / "r.json")) == {"a": 1}
    assert json.loads(get(part / "q.json")) == {"b": 2}


def test_W6_a_child_that_ends_does_not_commit_for_its_parent(part):
    put(part / "r.json", "{}")
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":')
    subprocess.run(["true"], pass_fds=[fd], check=True)
    assert get(part / "r.json") == b"{}"
    os.write(fd, b"1}")
    os.close(fd)
    assert get(part / "r.json") == b'{"v":1}'


def test_W7_nothing_written_is_nothing_committed(part):
    put(part / "r.json", '{"v":1}')
    etag = os.getxattr(part / "r.json", "user.rowfs.etag")
    sh(": > r.json; true > r.json; touch r.json; : >> r.json", cwd=part)
    assert get(part / "r.json") == b'{"v":1}'
    assert os.getxattr(part / "r.json", "user.rowfs.etag") == etag


def test_W8_incomplete_is_an_error_and_can_be_completed(part):
    put(part / "r.json", '{"v":0}')
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":')
    with raises("EINVAL"):
        os.close(os.dup(fd))
    assert "InvalidInput" in reason(part / "r.json")
    assert get(part / "r.json") == b'{"v":0}'
    os.write(fd, b"1}")
    os.close(fd)
    assert get(part / "r.json") == b'{"v":1}'
    with raises("ENODATA"):
        os.getxattr(part / "r.json", "user.rowfs.error")


def test_W8_incomplete_at_the_last_close(mnt, part):
    put(part / "r.json", '{"v":0}')
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":')
    with raises("EINVAL"):
        os.close(fd)
    assert get(part / "r.json") == b'{"v":0}'
    assert b'{"v":' in rejected(mnt).values()


def test_W9_no_truncation_is_a_commit(part):
    put(part / "r.json", '{"v":1}')
    with raises("EINVAL"):
        os.truncate(part / "r.json", 0)
    fd = os.open(part / "r.json", os.O_WRONLY)
    os.ftruncate(fd, 0)
    with raises("EINVAL"):
        os.close(fd)
    assert get(part / "r.json") == b'{"v":1}'
    out = sh("truncate -s 0 r.json", cwd=part, check=False)
    assert out.returncode != 0 and "Invalid argument" in out.stderr
    assert get(part / "r.json") == b'{"v":1}'
    put(part / "r.json", "{}")
    assert get(part / "r.json") == b"{}"


def test_W9_by_path_to_another_length(part):
    put(part / "r.json", '{"v":1}   ')
    for length in (6, 7, 12, 5 << 20):
        with raises("EINVAL", "EFBIG"):
            os.truncate(part / "r.json", length)
    assert get(part / "r.json") == b'{"v":1}   '


def test_W9_ftruncate_is_a_change_like_others(part):
    put(part / "r.json", '{"v":1}   ')
    sh("truncate -s 7 r.json", cwd=part)
    assert get(part / "r.json") == b'{"v":1}'
    for length in (6, 8):  # a prefix; a NUL behind it
        out = sh(f"truncate -s {length} r.json", cwd=part, check=False)
        assert out.returncode == 1 and "Invalid argument" in out.stderr
        assert get(part / "r.json") == b'{"v":1}'


def test_W10_removed_while_it_is_written(mnt, part):
    put(part / "r.json", '{"v":1}')
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":2}')
    os.unlink(part / "r.json")
    with raises("ESTALE"):
        os.close(fd)
    assert rows(part) == []
    assert b'{"v":2}' in rejected(mnt).values()


def test_W10_a_new_file_removed_while_it_is_written_is_just_gone(part):
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.unlink(part / "r.json")
    os.write(fd, b'{"v":2}')
    with raises("ESTALE"):
        os.close(fd)
    assert rows(part) == []


def test_W11_renamed_while_it_is_written(part):
    put(part / "r.json", '{"v":1}')
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":')
    os.rename(part / "r.json", part / "q.json")
    os.write(fd, b"2}")
    os.close(fd)
    assert rows(part) == ["q.json"] and get(part / "q.json") == b'{"v":2}'


def test_W11_its_partition_renamed_while_it_is_written(table, part):
    put(part / "r.json", '{"v":1}')
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":2}')
    os.rename(part, table / "other")
    os.close(fd)
    assert get(table / "other/r.json") == b'{"v":2}'


def test_W12_private_mappings(part):
    put(part / "r.json", '{"v":1}')
    with open(part / "r.json", "rb") as f:
        with mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as m:
            assert m[:] == b'{"v":1}'
            put(part / "r.json", '{"v":2}')
            assert m[:] == b'{"v":1}'


def test_W12_shared_mappings_are_exact_or_refused(part):
    put(part / "r.json", '{"v":1}')
    with open(part / "r.json", "rb") as f:
        try:
            m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        except OSError as e:
            assert e.errno == errno.ENODEV
            return
        put(part / "r.json", '{"v":2}')
        assert m[:] == b'{"v":1}'  # its handle's version
        m.close()


def test_W12_writing_through_a_shared_mapping(part):
    put(part / "r.json", '{"v":1}')
    with open(part / "r.json", "r+b") as f:
        try:
            m = mmap.mmap(f.fileno(), 0)
        except OSError as e:
            assert e.errno == errno.ENODEV
            return
        m[5:6] = b"2"
        m.flush()
        m.close()
    assert get(part / "r.json") == b'{"v":2}'


def test_W13_an_empty_new_file_is_no_row(mnt, part, rowfs):
    sh("touch x.json; mktemp -q ./XXXXXX.json", cwd=part)
    assert "x.json" in rows(part) and len(rows(part)) == 2
    assert os.stat(part / "x.json").st_size == 0
    assert exported(rowfs, mnt) == {}
    mnt.remount()
    assert "x.json" in rows(part) and get(part / "x.json") == b""
    put(part / "x.json", '{"v":1}')
    assert set(exported(rowfs, mnt)) == {"x"}
    assert get(part / "x.json") == b'{"v":1}'


def test_W13_the_number_and_the_lock_stay_with_the_first_document(mnt, part):
    put(part / "x.json", "")
    number, born = os.stat(part / "x.json").st_ino, sh("stat -c %W x.json", cwd=part).stdout
    fd = os.open(part / "x.json", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    for text in ('{"v":1}', '{"v":2}'):
        put(part / "x.json", text)
        assert os.stat(part / "x.json").st_ino == number
        with open(part / "x.json") as f, raises("EAGAIN"):
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)
    mnt.remount()
    assert os.stat(part / "x.json").st_ino == number
    assert sh("stat -c %W x.json", cwd=part).stdout == born


def test_W13_a_refused_first_document_leaves_the_empty_file(part):
    with raises("EINVAL"):
        put(part / "x.json", "no json")
    assert get(part / "x.json") == b""


def test_W13_empty_files_are_removed_and_renamed_like_others(part):
    sh("touch a.json && mv a.json b.json && rm b.json && touch c.json && mv c.json tmp && rm tmp",
       cwd=part)
    assert rows(part) == []


def test_W14_two_writers_do_not_mix(part):
    put(part / "r.json", "{}")
    a, b = open_write(part / "r.json"), open_write(part / "r.json")
    for i in range(5):
        os.write(a, b'{"a":1111'[i * 2:i * 2 + 2])
        os.write(b, b'{"b":222,'[i * 2:i * 2 + 2])
    os.write(a, b"}")
    os.write(b, b'"c":3}')
    os.close(a)
    assert get(part / "r.json") == b'{"a":1111}'
    os.close(b)
    assert get(part / "r.json") == b'{"b":222,"c":3}'


def test_W14_the_writer_reads_its_own_bytes(part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_RDWR)
    os.pwrite(fd, b"2", 5)
    assert os.pread(fd, 99, 0) == b'{"v":2}'
    assert os.lseek(fd, 0, os.SEEK_END) == 7
    assert get(part / "r.json") == b'{"v":1}'
    os.close(fd)
    assert get(part / "r.json") == b'{"v":2}'


def test_W14_appending_to_a_row(part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"  \n")  # still a document
    os.close(fd)
    assert get(part / "r.json") == b'{"v":1}  \n'
    out = sh("echo '{\"v\":2}' >> r.json", cwd=part, check=False)
    assert out.returncode != 0 and "Invalid argument" in out.stderr
    assert get(part / "r.json") == b'{"v":1}  \n'


# ---- L: lost updates


def test_L1_a_loaded_handle_does_not_overwrite_another_change(mnt, part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_RDWR)
    os.pwrite(fd, b"2", 5)
    put(part / "r.json", '{"w":9}')
    with raises("ESTALE"):
        os.close(fd)
    assert get(part / "r.json") == b'{"w":9}'
    assert b'{"v":2}' in rejected(mnt).values()
    assert "UpdateConditionNotSatisfied" in reason(part / "r.json")


def test_L1_two_appenders(part):
    put(part / "r.json", '{"v":1}')
    a = os.open(part / "r.json", os.O_WRONLY | os.O_APPEND)
    b = os.open(part / "r.json", os.O_WRONLY | os.O_APPEND)
    os.write(a, b"\n")
    os.write(b, b" ")
    os.close(a)
    with raises("ESTALE"):
        os.close(b)
    assert get(part / "r.json") == b'{"v":1}\n'


def test_L1_changes_of_its_own_are_no_conflict(part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_RDWR)
    for c in b"2345":
        os.pwrite(fd, bytes([c]), 5)
        os.fsync(fd)
    os.pwrite(fd, b"6", 5)
    os.close(fd)
    assert get(part / "r.json") == b'{"v":6}'


def test_L1_attributes_are_no_conflict(part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_RDWR)
    os.pwrite(fd, b"2", 5)
    os.chmod(part / "r.json", 0o600)
    os.utime(part / "r.json", (1, 1))
    os.close(fd)
    assert get(part / "r.json") == b'{"v":2}'


def test_L2_truncating_writers_and_renames_win(part):
    put(part / "r.json", '{"v":1}')
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":2}')
    put(part / "tmp", '{"w":9}')
    os.rename(part / "tmp", part / "r.json")
    assert get(part / "r.json") == b'{"w":9}'
    put(part / "s.json", "{}")
    a = open_write(part / "s.json")
    put(part / "s.json", '{"v":3}')
    os.write(a, b'{"v":4}')
    os.close(a)
    assert get(part / "s.json") == b'{"v":4}'
    # The row that fd wrote to was replaced as a whole, under the same name.
    try:
        os.close(fd)
    except OSError as e:
        assert e.errno == errno.ESTALE
        assert get(part / "r.json") == b'{"w":9}'
    else:
        assert get(part / "r.json") == b'{"v":2}'
