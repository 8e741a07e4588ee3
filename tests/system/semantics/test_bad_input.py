# SPDX-License-Identifier: MIT
"""Bad input of every kind: a clear message or errno, the reason where it belongs, nothing
lost.  Names that are no keys: test_semantics_tree.py; keys that disagree:
test_semantics_rows.py; what tools say: test_tools.py."""

import contextlib
import errno
import json
import os
import shutil
import sqlite3
import subprocess

import pytest

from tools import errors, get, put, raises, reason, rejected, rows, sh

DOCUMENT = ('{ "S":"a\\u00e9\\"\\ud83d\\ude00é", "I":-12,"D":1.5e-3,\n "T":true,"N":null,'
            '"W@odata.type":"Edm.DateTime","W":"2008-07-10T00:00:00Z" }\n').encode()


def commit_in_place(path, data):
    """A write that only the commit can judge: not sequential."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.ftruncate(fd, len(data))
        os.pwrite(fd, data[1:], 1)
        os.pwrite(fd, data[:1], 0)
    finally:
        os.close(fd)


def is_json(data):
    try:
        return isinstance(json.loads(data.decode("utf-8")), dict)
    except ValueError:
        return False


# ---- broken JSON


def test_a_document_cut_at_each_byte(part):
    put(part / "r.json", "{}")
    for n in range(1, len(DOCUMENT)):
        piece = DOCUMENT[:n]
        if is_json(piece):
            put(part / "r.json", piece)
            put(part / "r.json", "{}")
            continue
        with raises("EINVAL"):
            put(part / "r.json", piece)
        put(part / "t", piece)
        with raises("EBADMSG"):
            os.rename(part / "t", part / "r.json")
        assert get(part / "r.json") == b"{}", n
    put(part / "r.json", DOCUMENT)
    assert get(part / "r.json") == DOCUMENT


def test_a_document_spoilt_at_each_byte(part):
    """Each byte replaced by one that JSON never allows there; told with line and column."""
    put(part / "r.json", "{}")
    for n in range(len(DOCUMENT)):
        data = DOCUMENT[:n] + b"\x01" + DOCUMENT[n + 1:]
        with raises("EINVAL"):
            put(part / "r.json", data)
        with raises("EINVAL"):
            commit_in_place(part / "r.json", data)
        said = reason(part / "r.json")
        assert f"line {2 if n > DOCUMENT.index(10) else 1}" in said, (n, said)
        assert get(part / "r.json") == b"{}", n


def test_a_document_written_byte_by_byte(part):
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_CREAT)
    for n in range(len(DOCUMENT)):
        os.write(fd, DOCUMENT[n:n + 1])
    os.close(fd)
    assert get(part / "r.json") == DOCUMENT


def test_each_byte_spoilt_in_a_document_written_byte_by_byte(part):
    put(part / "r.json", "{}")
    for n in range(len(DOCUMENT)):
        fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
        for m in range(n):
            os.write(fd, DOCUMENT[m:m + 1])
        with raises("EINVAL"):
            os.write(fd, b"\x01")
        with raises("EINVAL"):
            os.close(fd)
        assert get(part / "r.json") == b"{}", n


NO_ENTITY = [
    b'{"a":"\xff"}', b'{"a":"\xc3"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\x80"}',
    b'{"a":"\xf4\x90\x80\x80"}', b'{"\xff":1}', b'\xff\xfe{\x00}\x00', b'{"a":"\\ud800"}',
    b'{"a":"\\udc00\\ud800"}', b'{"a":"\\x41"}', b'{"a":01}', b'{"a":+1}', b'{"a":1.}',
    b'{"a":.5}', b'{"a":1e}', b'{"a":0x10}', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":True}',
    b"{'a':1}", b'{a:1}', b'{"a":1,}', b'{"a" 1}', b'{"a":1 "b":2}', b'{"a":1}{}', b'{"a":1}x',
    b'{"a":"b\nc"}', b'{"a":"b\tc"}', b'\xef\xbb\xbf{}x', b"\0", b"{}\0", b'{"a":1}//x',
    b'{"a":[[[[', b"[" * 100000, b'{"a":{"b":1}}', b"null", b"<a/>"]


@pytest.mark.parametrize("data", NO_ENTITY, ids=[repr(d[:24]) for d in NO_ENTITY])
def test_what_is_no_entity(mnt, part, data):
    put(part / "r.json", '{"v":1}')
    with raises("EINVAL"):
        put(part / "r.json", data)
    assert reason(part / "r.json")
    with raises("EINVAL"):
        commit_in_place(part / "r.json", data)
    put(part / "t", data)
    with raises("EBADMSG"):
        os.rename(part / "t", part / "r.json")
    assert get(part / "r.json") == b'{"v":1}' and get(part / "t") == data
    assert data in rejected(mnt).values()


# ---- each limit, kept and passed by one

BIG = 32768


def sized(n):
    """A row of exactly n bytes by the service's formula, for keys Channel_19 and r:
    4 + 2*(PartitionKey + RowKey) + per property 8 + 2*name + value; a string 2*units + 4."""
    props, left = {}, n - 4 - 2 * len("Channel_19" + "r")
    i = 0
    while left:
        name = f"p{i:03}"
        overhead = 8 + 2 * len(name) + 4
        units = min(BIG, (left - overhead) // 2)
        if 0 < left - overhead - 2 * units < 40:
            units -= 20
        props[name] = "x" * units
        left -= overhead + 2 * units
        i += 1
    return json.dumps(props)


LIMITS = {
    "252 properties": ([f"p{i}" for i in range(252)], [f"p{i}" for i in range(253)], "E2BIG"),
    "string": ('{"a":"%s"}' % ("x" * BIG), '{"a":"%s"}' % ("x" * (BIG + 1)), "EINVAL"),
    "string beyond the BMP": ('{"a":"%s"}' % ("\U0001f600" * (BIG // 2)),
                              '{"a":"%s"}' % ("\U0001f600" * (BIG // 2) + "x"), "EINVAL"),
    "escaped string": ('{"a":"%s"}' % ("\\u0041" * BIG), '{"a":"%s"}' % ("\\u0041" * (BIG + 1)),
                       "EINVAL"),
    "binary": ('{"a@odata.type":"Edm.Binary","a":"%s"}' % ("AAAA" * 21845 + "AA=="),
               '{"a@odata.type":"Edm.Binary","a":"%s"}' % ("AAAA" * 21845 + "AAA="), "EINVAL"),
    "property name": ('{"%s":1}' % ("n" * 255), '{"%s":1}' % ("n" * 256), "EINVAL"),
    "property name beyond ASCII": ('{"%s":1}' % ("é" * 255), '{"%s":1}' % ("é" * 256), "EINVAL"),
    "Int64 max": ('{"a":9223372036854775807}', '{"a":9223372036854775808}', "EINVAL"),
    "Int64 min": ('{"a":-9223372036854775808}', '{"a":-9223372036854775809}', "EINVAL"),
    "Int32 max": ('{"a@odata.type":"Edm.Int32","a":2147483647}',
                  '{"a@odata.type":"Edm.Int32","a":2147483648}', "EINVAL"),
    "Int32 min": ('{"a@odata.type":"Edm.Int32","a":-2147483648}',
                  '{"a@odata.type":"Edm.Int32","a":-2147483649}', "EINVAL"),
    "DateTime min": ('{"a@odata.type":"Edm.DateTime","a":"1601-01-01T00:00:00Z"}',
                     '{"a@odata.type":"Edm.DateTime","a":"1600-12-31T23:59:59.9999999Z"}',
                     "EINVAL"),
    "DateTime max": ('{"a@odata.type":"Edm.DateTime","a":"9999-12-31T23:59:59.9999999Z"}',
                     '{"a@odata.type":"Edm.DateTime","a":"10000-01-01T00:00:00Z"}', "EINVAL"),
    "Double": ('{"a":1.7976931348623157e308}', '{"a":1e309}', "EINVAL"),
    "Guid": ('{"a@odata.type":"Edm.Guid","a":"c9da6455-213d-42c9-9a79-3e9149a57833"}',
             '{"a@odata.type":"Edm.Guid","a":"c9da6455-213d-42c9-9a79-3e9149a5783"}', "EINVAL"),
    "Boolean": ('{"a":true}', '{"a@odata.type":"Edm.Boolean","a":"maybe"}', "EINVAL"),
    "type": ('{"a@odata.type":"Edm.String","a":"x"}', '{"a@odata.type":"Edm.Int16","a":1}',
             "EINVAL"),
    "1 MiB": (sized(1 << 20), sized((1 << 20) + 2), "EFBIG"),
    "4 MiB of text": ("{" + " " * ((4 << 20) - 2) + "}", "{" + " " * ((4 << 20) - 1) + "}",
                      "EFBIG"),
    "duplicate": ('{"a":1,"A":2}', '{"a":1,"a":2}', "EINVAL"),
    "identifier": ('{"_a1é":1}', '{"1a":1}', "EINVAL"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_C5_limit_kept_and_passed_by_one(part, limit):
    good, bad, code = LIMITS[limit]
    if isinstance(good, list):
        good, bad = (json.dumps({n: 1 for n in names}) for names in (good, bad))
    put(part / "r.json", good)
    assert get(part / "r.json").decode() == good
    put(part / "t", good)
    os.rename(part / "t", part / "r.json")
    with raises(code):
        put(part / "r.json", bad)
    with raises(code):
        commit_in_place(part / "r.json", bad.encode())
    assert get(part / "r.json").decode() == good
    put(part / "t", bad)
    with raises("EBADMSG"):
        os.rename(part / "t", part / "r.json")
    assert get(part / "r.json").decode() == good and get(part / "t").decode() == bad


def test_a_key_of_512_units(rowfs, store, work):
    rowfs("account", "add", store, "acct1")

    def imported(key):
        line = json.dumps({"PartitionKey": key, "RowKey": key})
        done = rowfs("import", store, "acct1/Tab", input=line + "\n", check=False)
        return done.returncode, done.stderr

    for c, n in (("k", 512), ("é", 512), ("\U0001f600", 256)):
        assert imported(c * n)[0] == 0
        rc, said = imported(c * (n + 1))
        assert rc == 1 and "1" in said and "512" in said
    assert len(rowfs("export", store, "acct1/Tab").stdout.splitlines()) == 3


# ---- a full disk


def test_S7_a_full_disk_loses_nothing(rowfs, mount, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    m.allow("ENOSPC|No space|NO_SPACE|full")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    stored, text = {}, {}
    for i in range(2000):
        text = json.dumps({"i": i, "pad": "x" * 6000})
        try:
            put(part / f"{i}.json", text)
        except OSError as e:
            assert e.errno == errno.ENOSPC
            break
        stored[f"{i}.json"] = text.encode()
    else:
        pytest.fail("the disk did not fill up")
    assert len(stored) > 50
    with raises("ENOSPC"):
        put(part / "0.json", json.dumps({"pad": "y" * 30000}))
    with raises("ENOSPC"):
        put(part / "file", "z" * 3000000)
    for name, data in stored.items():
        assert get(part / name) == data
    # The kernel may show a new file that never got its bytes; no row may.
    sh(f"cat '{part}'/*.json > /dev/null")
    sh(f"mount -o remount,size=32m '{small_disk}'")
    put(part / "0.json", '{"again":true}')
    m.remount()
    stored["0.json"] = b'{"again":true}'
    for name, data in stored.items():
        assert get(part / name) == data
    m.umount()
    rowfs("check", store)


def test_S7_removing_works_on_a_full_disk(rowfs, mount, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    m.allow("ENOSPC|No space|NO_SPACE|full")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    with raises("ENOSPC"):
        for i in range(2000):
            put(part / f"{i}.json", json.dumps({"pad": "x" * 6000}))
    names = os.listdir(part)
    assert len(names) > 20
    for name in names:
        os.unlink(part / name)
    assert os.listdir(part) == []
    part.rmdir()
    part.mkdir()
    put(part / "again.json", '{"a":1}')
    assert get(part / "again.json") == b'{"a":1}'



def test_S7_writes_do_not_wait_for_a_view_when_space_is_short(rowfs, mount, small_disk):
    """An export that nobody reads keeps the log from beginning anew."""
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    m.allow("ENOSPC|No space|NO_SPACE|full")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    for i in range(40):
        put(part / f"{i}.json", json.dumps({"pad": "x" * 12000}))
    reader, writer = os.pipe()
    export = subprocess.Popen([str(rowfs.program), "export", str(store), "acct1/Tab"],
                              stdout=writer)
    os.close(writer)
    assert os.read(reader, 1)  # it is on its way, and stuck from now on
    try:
        # Less than the log and the reserve.
        sh(f"head -c $(( $(df --output=avail -B1 '{small_disk}' | tail -1) - 1300000 )) /dev/zero "
           f"> '{small_disk}/fill' || true", check=False)
        for i in range(3):
            with contextlib.suppress(OSError):  # there is room for it, or not: at once
                put(part / f"new{i}.json", '{"a":1}')
    finally:
        os.close(reader)
        export.wait(60)


def test_a_store_that_is_replaced_while_it_is_served(rowfs, mount, work):
    """mv backup store, while mounted: nothing is acknowledged into the void, and the new file
    does not get the old one's log."""
    store, backup = work / "s.rowfs", work / "backup.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, "acct1")
    shutil.copy(store, backup)
    m = mount(store)
    m.allow("moved, removed or replaced|could not be kept")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    put(part / "old.json", "{}")
    os.rename(store, work / "aside.rowfs")
    os.rename(backup, store)
    with raises("EIO"):
        put(part / "new.json", "{}")
    with raises("EIO"):
        os.unlink(part / "old.json")
    done = rowfs("import", store, "acct1/Tab", input='{"PartitionKey":"p","RowKey":"r"}\n', check=False)
    assert done.returncode == 1
    m.umount()
    rowfs("check", store)


def test_init_on_a_full_disk(rowfs, small_disk):
    sh(f"head -c 5m /dev/zero > '{small_disk}/fill' || true", check=False)
    done = rowfs("init", small_disk / "s.rowfs", check=False)
    assert done.returncode == 1 and "space" in done.stderr.lower()
    assert not (small_disk / "s.rowfs").exists()


# ---- a store that cannot be served

COMMANDS = [("check",), ("stat",), ("account", "list"), ("mount",)]


def run(rowfs, work, command, store):
    at = work / "at"
    at.mkdir(exist_ok=True)
    return rowfs(*command, store, *([at] if command == ("mount",) else []), check=False,
                 timeout=60)


def refused(rowfs, work, store, *words):
    for command in COMMANDS:
        done = run(rowfs, work, command, store)
        assert done.returncode == 1, (command, done)
        said = done.stderr.lower()
        assert str(store).lower() in said, (command, said)
        assert any(w in said for w in words), (command, said)
        assert len(said.splitlines()) <= 3, said


def test_a_store_that_is_missing(rowfs, work):
    refused(rowfs, work, work / "none.rowfs", "there is no store")
    assert not (work / "none.rowfs").exists()


@pytest.mark.parametrize("content", [b"", b"hello\n" * 1000, b"SQLite format 3\0" + b"\0" * 5000,
                                     os.urandom(8192)], ids=["empty", "text", "head", "random"])
def test_a_file_that_is_no_store(rowfs, work, content):
    path = work / "file"
    path.write_bytes(content)
    refused(rowfs, work, path, "not a rowfs store", "no rowfs store")
    assert path.read_bytes() == content
    done = rowfs("init", path, check=False)
    assert done.returncode == 1 and path.read_bytes() == content


def test_a_sqlite_database_of_another_program(rowfs, work):
    path = work / "db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t(x)")
    db.close()
    before = path.read_bytes()
    refused(rowfs, work, path, "not a rowfs store", "no rowfs store")
    assert path.read_bytes() == before


def test_a_directory_as_store(rowfs, work):
    (work / "dir").mkdir()
    refused(rowfs, work, work / "dir", "not a rowfs store", "no rowfs store", "directory")


def test_a_store_of_a_newer_version(rowfs, store, work):
    with sqlite3.connect(store) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        db.execute(f"PRAGMA user_version = {version + 1}")
    db.close()
    refused(rowfs, work, store, f"version {version + 1}", "newer")


def test_init_never_touches_what_is_there(rowfs, store, work):
    before = store.read_bytes()
    done = rowfs("init", store, check=False)
    assert done.returncode == 1 and "exist" in done.stderr
    assert store.read_bytes() == before
    assert os.stat(store).st_mode & 0o777 == 0o600
    done = rowfs("init", work / "no/dir/s", check=False)
    assert done.returncode == 1 and done.stderr


def test_a_store_on_a_read_only_disk(rowfs, mount, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    put(part / "r.json", '{"v":1}')
    m.umount()
    sh(f"mount -o remount,ro '{small_disk}'")
    done = rowfs("mount", store, m.path, check=False)
    assert done.returncode == 1 and "read-only" in done.stderr.lower()
    m.options = ["ro"]
    m.start()
    assert get(part / "r.json") == b'{"v":1}'
    with raises("EROFS"):
        put(part / "r.json", "{}")
    m.umount()
    sh(f"mount -o remount,rw '{small_disk}'")


def test_a_store_without_permission(rowfs, store, work):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root to become somebody else")
    os.chmod(work, 0o755)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           str(rowfs.program), "check", str(store)], capture_output=True, text=True)
    assert done.returncode == 1 and "ermission" in done.stderr


def test_a_damaged_store_is_found(rowfs, store, mount):
    m = mount(store)
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    for i in range(300):
        put(part / f"{i}.json", json.dumps({"pad": "x" * 1000}))
    m.umount()
    data = bytearray(store.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle:middle + 4096] = os.urandom(4096)
    copy = store.with_name("copy.rowfs")
    copy.write_bytes(data)
    done = rowfs("check", copy, check=False)
    assert done.returncode == 1 and (done.stdout + done.stderr).strip()


# ---- bad command lines


@pytest.mark.parametrize("args", [
    [], ["nonsense"], ["init"], ["mount"], ["mount", "x"], ["import", "s"], ["account"],
    ["account", "nonsense"], ["export"], ["init", "a", "b"], ["--nonsense"],
    ["import", "s", "a/T", "--mode", "nonsense"], ["export", "s", "a/T", "--format", "nonsense"]])
def test_wrong_usage_is_exit_status_2(rowfs, args, work):
    done = rowfs(*args, check=False, cwd=work)
    assert done.returncode == 2, done
    assert done.stderr and len(done.stderr.splitlines()) < 60
    assert os.listdir(work) == []


def test_bad_lines_of_an_import_are_told_with_their_numbers(rowfs, store, work):
    rowfs("account", "add", store, "acct1")
    lines = ['{"PartitionKey":"p","RowKey":"1"}', "", '{"PartitionKey":"p"}', "nonsense",
             '{"PartitionKey":"p","RowKey":"a/b"}', '{"PartitionKey":"p","RowKey":"6","x":[1]}',
             '{"PartitionKey":"p","RowKey":"7"}']
    done = rowfs("import", store, "acct1/Tab", input="\n".join(lines) + "\n", check=False)
    assert done.returncode == 1
    for n in (3, 4, 5, 6):
        assert any(str(n) in line for line in done.stderr.splitlines()), (n, done.stderr)
    out = rowfs("export", store, "acct1/Tab").stdout.splitlines()
    assert [json.loads(x)["RowKey"] for x in out] == ["1", "7"]


@pytest.mark.parametrize("target,word", [("nobody/Tab", "account"), ("acct1/no", "name"),
                                         ("acct1", "table"), ("acct1/Tab/x/y", "")])
def test_bad_targets_of_an_import(rowfs, store, target, word):
    rowfs("account", "add", store, "acct1")
    done = rowfs("import", store, target, input='{"PartitionKey":"p","RowKey":"r"}\n', check=False)
    assert done.returncode in (1, 2) and word in done.stderr.lower()


def test_errors_in_the_log_are_quoted(mnt, part):
    """A name cannot forge a line of .rowfs/errors."""
    name = 'x","code":"forged\u2028{}.json'
    put(part / name, "{}")
    with raises("EINVAL"):
        put(part / name, "nonsense")
    (entry,) = errors(mnt)
    assert "forged" not in entry.get("code", "")
