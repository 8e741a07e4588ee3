# SPDX-License-Identifier: MIT
"""docs/semantics.md: errors (E), which come where the user looks, with a reason that can be
read and with the refused bytes kept."""

import json
import os
import subprocess
import time

import pytest

from tools import errors, get, put, raises, reason, rejected, rows, sh


def open_write(path):
    return os.open(path, os.O_WRONLY | os.O_TRUNC)


def shell(part, script, shell="bash"):
    return sh(script, cwd=part, check=False, shell=shell)


@pytest.mark.parametrize("which", ["bash", "dash"])
def test_E1_a_shells_echo_fails(part, which):
    put(part / "r.json", '{"v":1}')
    out = shell(part, "echo '{bad' > r.json", which)
    assert out.returncode != 0
    assert get(part / "r.json") == b'{"v":1}'


def test_E1_the_write_with_the_first_impossible_byte(part):
    put(part / "r.json", "{}")
    fd = open_write(part / "r.json")
    assert os.write(fd, b'{"a":1,') == 7
    with raises("EINVAL"):
        os.write(fd, b" x")
    with raises("EINVAL"):
        os.write(fd, b' "b":2}')  # the handle stays spoilt
    with raises("EINVAL"):
        os.close(fd)
    assert get(part / "r.json") == b"{}"


def test_E1_a_spoilt_handle_can_start_again(part):
    put(part / "r.json", "{}")
    fd = open_write(part / "r.json")
    with raises("EINVAL"):
        os.write(fd, b"x")
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b'{"v":1}')
    os.close(fd)
    assert get(part / "r.json") == b'{"v":1}'


BROKEN = [
    '{"a":1,"a":2}', '{"a b":1}', '{"a":"' + "x" * 32769 + '"}', '{"RowKey":"other"}',
    '{"a@odata.type":"Edm.Int32","a":"x"}', '{"a":9223372036854775808}', '{"a":[1]}',
    '{"a":{}}', '[]', '"x"', "1"]


@pytest.mark.parametrize("text", BROKEN, ids=[t[:24] for t in BROKEN])
def test_E2_the_write_that_completes_a_bad_document(mnt, part, text):
    put(part / "r.json", "{}")
    fd = open_write(part / "r.json")
    with raises("EINVAL"):
        os.write(fd, text.encode())
    with raises("EINVAL"):
        os.close(fd)
    assert get(part / "r.json") == b"{}"
    assert text.encode() in rejected(mnt).values()


def test_E2_too_many_properties(part):
    put(part / "r.json", json.dumps({f"p{i}": i for i in range(252)}))
    with raises("E2BIG", "EINVAL"):
        put(part / "r.json", json.dumps({f"p{i}": i for i in range(253)}))
    fd = os.open(part / "r.json", os.O_RDWR)  # in place: the close says it
    text = json.dumps({f"p{i}": i for i in range(253)}).encode()
    os.pwrite(fd, text, 0)
    with raises("E2BIG"):
        os.close(fd)


def test_E3_over_the_size_of_a_document(part):
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"{")
    with raises("EFBIG"):
        for _ in range(5):
            os.write(fd, b" " * (1 << 20))
    with raises("EFBIG", "EINVAL"):
        os.close(fd)


def test_E4_overwriting_in_place_is_checked_at_the_close(part):
    put(part / "r.json", '{"v":1,"w":2}')
    fd = os.open(part / "r.json", os.O_WRONLY)
    os.pwrite(fd, b"xxxx", 3)
    os.pwrite(fd, b'","x', 3)  # not yet what it will be
    os.pwrite(fd, b'v":3', 2)
    os.pwrite(fd, b',"w"', 6)
    os.close(fd)
    assert get(part / "r.json") == b'{"v":3,"w":2}'
    fd = os.open(part / "r.json", os.O_WRONLY)
    os.pwrite(fd, b"!", 5)
    with raises("EINVAL"):
        os.close(fd)
    assert get(part / "r.json") == b'{"v":3,"w":2}'


def test_E5_the_row_stays_as_it_was(part):
    put(part / "r.json", '{"v":1}')
    before = os.stat(part / "r.json")
    etag = os.getxattr(part / "r.json", "user.rowfs.etag")
    with raises("EINVAL"):
        put(part / "r.json", "nonsense")
    after = os.stat(part / "r.json")
    assert get(part / "r.json") == b'{"v":1}'
    assert (before.st_ino, before.st_size, before.st_mtime_ns) == (
        after.st_ino, after.st_size, after.st_mtime_ns)
    assert os.getxattr(part / "r.json", "user.rowfs.etag") == etag


def test_E6_renaming_what_is_no_entity_onto_a_row(part):
    put(part / "r.json", '{"v":1}')
    for text in ("nonsense", "", '{"v":', '{"a":[1]}', '{"RowKey":"q"}', "\xff"):
        put(part / "tmp", text.encode("latin-1"))
        with raises("EBADMSG"):
            os.rename(part / "tmp", part / "r.json")
        assert get(part / "tmp") == text.encode("latin-1")
        if text == "":
            continue  # where no row stands it may wait for its document: W13
        with raises("EBADMSG"):
            os.rename(part / "tmp", part / "new.json")
    assert get(part / "r.json") == b'{"v":1}'
    assert rows(part) == ["r.json", "tmp"]
    out = shell(part, "mv tmp r.json")
    assert out.returncode != 0 and "Bad message" in out.stderr


def test_E7_fsync_says_eio(part):
    put(part / "r.json", '{"v":1}')
    fd = open_write(part / "r.json")
    os.write(fd, b'{"v":')
    with raises("EIO"):
        os.fsync(fd)
    os.write(fd, b"2}")
    os.fsync(fd)
    os.close(fd)
    assert get(part / "r.json") == b'{"v":2}'


def test_E8_the_reason_can_be_read(mnt, part):
    put(part / "r.json", "{}")
    with raises("EINVAL"):
        put(part / "r.json", '{"a":1,\n  "b": [2]}')
    said = reason(part / "r.json")
    assert "InvalidInput" in said and "line 2" in said
    assert reason(part) == said or "r.json" in reason(part)
    (last,) = errors(mnt)[-1:]
    text = json.dumps(last)
    assert "InvalidInput" in text and "r.json" in text
    assert 2 in last.values()  # the line
    out = sh("getfattr --only-values -n user.rowfs.error r.json", cwd=part)
    assert out.stdout.strip() == said.strip()


def test_E8_a_success_clears_the_reason_of_the_file(part):
    put(part / "r.json", "{}")
    with raises("EINVAL"):
        put(part / "r.json", "x")
    assert reason(part / "r.json")
    put(part / "r.json", '{"v":1}')
    with raises("ENODATA"):
        os.getxattr(part / "r.json", "user.rowfs.error")


def test_E8_a_rename_leaves_its_reason_at_the_source(part):
    put(part / "tmp", '{"a":1,,}')
    with raises("EBADMSG"):
        os.rename(part / "tmp", part / "r.json")
    assert "InvalidInput" in reason(part / "tmp")
    assert "InvalidInput" in reason(part)


def test_E9_the_refused_bytes_are_kept(mnt, part):
    put(part / "r.json", "{}")
    texts = [b'{"a":[1]}', b"nonsense", b'{"half":']
    for text in texts:
        with raises("EINVAL"):
            put(part / "r.json", text)
    kept = list(rejected(mnt).values())
    for text in texts:
        assert text in kept
    mnt.remount()
    assert all(text in rejected(mnt).values() for text in texts)


def test_E9_a_writer_that_dies_half_way(mnt, part):
    put(part / "r.json", '{"v":1}')
    script = ("import os,signal; fd=os.open('r.json',os.O_WRONLY|os.O_TRUNC);"
              "os.write(fd,b'{\"v\":2'); os.kill(os.getpid(),signal.SIGKILL)")
    subprocess.run(["/usr/bin/python3", "-c", script], cwd=part)
    assert get(part / "r.json") == b'{"v":1}'
    for _ in range(200):  # RELEASE comes after the process has gone
        if b'{"v":2' in rejected(mnt).values():
            break
        time.sleep(0.01)
    assert b'{"v":2' in rejected(mnt).values()
