# SPDX-License-Identifier: MIT
"""Rows in as streams: writing .rows.ndjson and .rows.csv, and `rowfs import`."""

import errno
import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import ENV
from rest_client import ACCOUNT, NONE, Client, ok
from streams import awkward_rows, from_rest, high_water_kib
from tools import errors, get, put, raises, reason, rejected, rows, sanitized, sh


def line(pk, rk, **more):
    return json.dumps({"PartitionKey": pk, "RowKey": rk, **more}) + "\n"


def numbered(n, pk="p", first=0, **more):
    return "".join(line(pk, f"{i:06}", **more) for i in range(first, first + n))


class Writer:
    """A descriptor whose writes may fail one by one."""

    def __init__(self, path, flags=os.O_WRONLY):
        self.fd = os.open(path, flags)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            try:
                os.close(fd)
            except OSError:
                pass

    def write(self, text):
        data = text.encode() if isinstance(text, str) else text
        assert os.write(self.fd, data) == len(data)

    def close(self):
        fd, self.fd = self.fd, -1
        os.close(fd)


@pytest.fixture
def both(rest_mount, rest_store):
    """A mount, its account's directory, and a client of its socket; with the table Tab."""
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Tab"), 201)
        yield m, m / ACCOUNT, client


# ---- lines act as they come

@pytest.mark.parametrize("caches", ["cold", "hot"])
def test_I1_a_write_that_returned_is_in_the_store(both, caches):
    m, account, client = both
    (account / "Tab/p").mkdir()
    put(account / "Tab/p/old.json", '{"A":1}')
    if caches == "hot":
        for name in ("1", "2", "old"):
            os.path.exists(account / f"Tab/p/{name}.json")
        assert rows(account / "Tab/p") == ["old.json"]
        get(account / "Tab/p/old.json")
    with Writer(account / "Tab/.rows.ndjson") as w:
        w.write(line("p", "1", A=1) + line("p", "old", B=2) + line("q", "1", C=3) + '{"Part')
        assert rows(account / "Tab") == ["p", "q"]
        assert rows(account / "Tab/p") == ["1.json", "old.json"]
        assert get(account / "Tab/p/old.json") == b'{"B":2}\n'
        assert os.stat(account / "Tab/p/old.json").st_size == 8
        assert ok(client.get("Tab", "q", "1", headers={"accept": NONE}), 200).json["C"] == 3
        assert client.get("Tab", "p", "2").status == 404
        w.write('itionKey":"p","RowKey":"2"}\n')
        assert os.path.exists(account / "Tab/p/2.json")
        assert client.get("Tab", "p", "2").status == 200
        w.close()
    assert not errors(m)


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_I2_writes_of_any_size_bring_the_same_rows(table, work, size, form):
    n = {1: 20, 7: 300}.get(size, 20000)
    if form == "csv":
        text = "RowKey,PartitionKey,A,B@Int32\r\n" + "".join(
            f'{i:06},p,"x, ""{i}""\r\n",{i}\r\n' for i in range(n))
    else:
        text = "".join(line("p", f"{i:06}", A=f'x, "{i}"\r\n', B=i) for i in range(n))
    (work / "in").write_text(text, newline="")
    sh(f"dd if='{work}/in' of='{table}/.rows.{form}' bs={size} status=none")
    got = [json.loads(x) for x in get(table / ".rows.ndjson").splitlines()]
    assert [(r["RowKey"], r["A"], r["B"]) for r in got] == [
        (f"{i:06}", f'x, "{i}"\r\n', i) for i in range(n)]


def test_I2_tools_that_write_files(table, work):
    """Each brings two rows, in a way of its own."""
    at = table / ".rows.ndjson"
    ways = {
        "cat": "cat in > OUT", "append": "cat in >> OUT", "cp": "cp in OUT",
        "tee": "tee OUT < in > /dev/null", "teea": "tee -a OUT < in > /dev/null",
        "dd": "dd if=in of=OUT bs=5 seek=100 conv=notrunc status=none",
        "python": "python3 -c \"open('OUT','w').write(open('in').read())\"",
        "pythona": "python3 -c \"open('OUT','ab').write(open('in','rb').read())\"",
        "echo": "while IFS= read -r l; do echo \"$l\" >> OUT; done < in",
        "group": "while IFS= read -r l; do echo \"$l\"; done < in > OUT",
        "rdwr": "cat in 1<> OUT", "awk": "awk '{print > \"OUT\"}' in",
        "fd": "exec 3>OUT; cat in >&3; exec 3>&-"}
    for way, script in ways.items():
        (work / "in").write_text(line(way, "1", A=way) + line(way, "2", A="é\n"))
        sh(f"cd '{work}'; set -e; {script.replace('OUT', str(at))}")
        assert rows(table / way) == ["1.json", "2.json"], way
        assert json.loads(get(table / way / "2.json")) == {"A": "é\n"}, way
    assert sorted(ways) == rows(table)


def test_I2_the_last_of_rows_with_the_same_keys_counts(table):
    put(table / ".rows.ndjson", line("p", "1", A=1) + line("p", "2") + line("p", "1", B=2))
    assert get(table / "p/1.json") == b'{"B":2}\n'
    put(table / ".rows.ndjson", line("p", "1", C=3))
    assert get(table / "p/1.json") == b'{"C":3}\n'


def test_I2_two_writers_at_once(table):
    with Writer(table / ".rows.ndjson") as a, Writer(table / ".rows.ndjson") as b:
        a.write('{"PartitionKey":"a",')
        b.write('{"PartitionKey":"b",')
        a.write('"RowKey":"1"}\n')
        b.write('"RowKey":"1"}\n')
        a.close()
        b.close()
    assert rows(table) == ["a", "b"]


# ---- the first bad line

def test_I3_the_first_bad_line_ends_it(mnt, table):
    at = table / ".rows.ndjson"
    before, behind = line("p", "1") + "\n" + line("p", "2"), line("p", "4")
    with Writer(at) as w:
        w.write(before)
        with raises("EINVAL"):
            w.write(line("p", "3") + '{"PartitionKey":"p","RowKey":5}\n' + behind)
        with raises("EINVAL"):
            w.write(line("p", "6"))
        with raises("EIO"):
            os.fsync(w.fd)
        with raises("EINVAL"):
            w.close()
    assert rows(table / "p") == ["1.json", "2.json", "3.json"]
    assert "line 5, column 30" in reason(at) and "RowKey" in reason(at)
    (told,) = errors(mnt)
    assert told["path"] == "acct1/Blogs/.rows.ndjson" and told["call"] == "write"
    assert told["line"] == 5 and told["errno"] == errno.EINVAL
    ((name, data),) = rejected(mnt).items()
    assert name == told["rejected"] and name in reason(at)
    # All that was refused, also what was written on.
    assert data.decode() == '{"PartitionKey":"p","RowKey":5}\n' + behind + line("p", "6")
    # Repaired, it goes in, and the reason goes.
    put(at, data.decode().replace(":5", ':"5"'))
    assert rows(table / "p") == [f"{i}.json" for i in range(1, 7)]
    with raises("ENODATA"):
        reason(at)


def test_I3_a_bad_line_over_several_writes_is_kept_whole(mnt, table):
    with Writer(table / ".rows.csv") as w:
        w.write("PartitionKey,RowKey,A@Int32\np,1,1\np,2,")
        w.write('"tw')
        with raises("EINVAL"):
            w.write('o"\np,3,3\n')
    assert rows(table / "p") == ["1.json"]
    assert list(rejected(mnt).values()) == [b'p,2,"two"\np,3,3\n']
    assert "line 3)" in reason(table / ".rows.csv") and "'A'" in reason(table / ".rows.csv")
    with raises("ENODATA"):
        reason(table / ".rows.ndjson")


def test_I3_shells_and_tools_say_so(table, work):
    (work / "in").write_text(line("p", "1") + "bad\n" + line("p", "3"))
    for script in ("cat in > OUT", "cp in OUT", "tee OUT < in", "dd if=in of=OUT status=none",
                   "python3 -c \"with open('OUT','w') as f: f.write(open('in').read())\"",
                   "echo bad > OUT", "printf bad > OUT", "printf '{\"RowKey\":\"1\"}' > OUT"):
        done = sh(f"cd '{work}'; {script.replace('OUT', str(table / '.rows.ndjson'))}",
                  check=False)
        assert done.returncode != 0 and "Invalid argument" in done.stderr, script
        if "in" in script.split():
            assert rows(table / "p") == ["1.json"]


BAD = [
    ("EINVAL", "nonsense\n"),
    ("EINVAL", '{"PartitionKey":"p"}\n'),
    ("EINVAL", '{"RowKey":"1"}\n'),
    ("EINVAL", line("p", "a/b")),
    ("EINVAL", line("p", "1", **{"a b": 1})),
    ("EINVAL", line("p", "x" * 513)),
    ("EINVAL", line("p", "1", A=[1])),
    ("EINVAL", line("p", "1", A="x" * 32769)),
    ("EINVAL", '{"PartitionKey":"p","RowKey":"1","A":1,"A":2}\n'),
    ("E2BIG", line("p", "1", **{f"p{i}": i for i in range(253)})),
    ("EFBIG", line("p", "1", **{f"p{i}": "x" * 32000 for i in range(17)})),
    ("EFBIG", " " * (8 << 20) + line("p", "1")),
]


@pytest.mark.parametrize("code,text", BAD, ids=range(len(BAD)))
def test_I4_each_error_has_its_errno(mnt, table, code, text):
    with Writer(table / ".rows.ndjson") as w:
        with raises(code):
            for at in range(0, len(text), 1 << 20):
                w.write(text[at:at + (1 << 20)])
    assert not os.path.exists(table / "p/1.json")
    assert "line 1" in reason(table / ".rows.ndjson")
    (kept,) = rejected(mnt).values()
    assert text.encode().startswith(kept) and len(kept) > len(text) - (1 << 20)


def test_I4_the_largest_of_each_is_taken(table):
    put(table / ".rows.ndjson", line("p", "x" * 512))
    put(table / ".rows.ndjson", line("p", "2", A="x" * 32768))
    put(table / ".rows.ndjson", line("p", "3", **{f"p{i}": i for i in range(252)}))
    put(table / ".rows.ndjson", line("p", "4", **{f"p{i}": "x" * 32000 for i in range(16)}))
    last = line("p", "5")
    put(table / ".rows.ndjson", " " * ((8 << 20) + 1 - len(last)) + last)
    assert len(rows(table / "p")) == 5


def test_I4_a_table_that_goes_meanwhile(mnt, account):
    table = account / "Gone"
    table.mkdir()
    with Writer(table / ".rows.ndjson") as w:
        w.write(line("p", "1") + '{"Partition')
        shutil.rmtree(table)
        with raises("ESTALE"):
            w.write('Key":"p","RowKey":"2"}\n')
    assert list(rejected(mnt).values()) == [b'{"PartitionKey":"p","RowKey":"2"}\n']
    assert "removed" in errors(mnt)[-1]["message"]
    assert not os.path.exists(table)


# ---- closes

def test_I5_a_close_ends_the_last_line(mnt, table):
    put(table / ".rows.ndjson", line("p", "1") + line("p", "2").rstrip("\n"))
    put(table / ".rows.csv", "PartitionKey,RowKey,A\np,3,x\np,4,y")
    assert rows(table / "p") == ["1.json", "2.json", "3.json", "4.json"]
    assert get(table / "p/4.json") == b'{"A":"y"}\n' and not errors(mnt)


@pytest.mark.parametrize("form,text", [("ndjson", '{"PartitionKey":"p","RowKey":'),
                                       ("csv", 'PartitionKey,RowKey\np,"2')])
def test_I5_an_incomplete_last_line_fails_the_close(mnt, table, form, text):
    with raises("EINVAL"):
        put(table / f".rows.{form}", text)
    assert rows(table) == []
    assert list(rejected(mnt).values()) == [text.split("\n")[-1].encode()]
    (told,) = errors(mnt)
    assert told["call"] == "close" and told["line"] == text.count("\n") + 1


def test_I5_a_line_can_be_completed_behind_a_close(mnt, table):
    """Shells close duplicates all the time."""
    with Writer(table / ".rows.ndjson") as w:
        w.write(line("p", "1") + '{"PartitionKey":"p",')
        with raises("EINVAL"):
            os.close(os.dup(w.fd))
        assert len(rejected(mnt)) == 1 and reason(table / ".rows.ndjson")
        w.write('"RowKey":"2"}')
        os.close(os.dup(w.fd))
        assert rows(table / "p") == ["1.json", "2.json"]
        w.write("\n" + line("p", "4"))
        w.close()
    assert rows(table / "p") == ["1.json", "2.json", "4.json"]
    assert rejected(mnt) == {}
    with raises("ENODATA"):
        reason(table / ".rows.ndjson")
    sh(f"exec 3>'{table}/.rows.ndjson'; printf '{{\"PartitionKey\":' >&3; "
       "printf '\"q\",\"RowKey\":\"1\"}\\n' >&3; exec 3>&-")
    assert rows(table / "q") == ["1.json"]


def test_I5_a_child_ends_no_line_of_its_parents(table):
    with Writer(table / ".rows.ndjson") as w:
        w.write('{"PartitionKey":"p"')
        subprocess.run(["true"], pass_fds=[w.fd], check=True)
        subprocess.run(["bash", "-c", f"printf ',\"RowKey\":\"1\"}}\\n' >&{w.fd}"],
                       pass_fds=[w.fd], check=True)
        assert rows(table / "p") == ["1.json"]
        w.close()


def test_I5_who_is_killed_has_brought_the_complete_lines(mnt, table):
    p = subprocess.Popen(["sh", "-c", f"exec 3>'{table}/.rows.ndjson'; "
                          f"printf '%s\\n' '{line('p', '1').strip()}' >&3; "
                          "printf '{\"Part' >&3; echo; exec sleep 60"], stdout=subprocess.PIPE)
    p.stdout.readline()
    p.send_signal(signal.SIGKILL)
    p.wait(60)
    mnt.umount()
    mnt.start()
    assert rows(table / "p") == ["1.json"]
    assert list(rejected(mnt).values()) == [b'{"Part']


def test_I5_a_csv_writer_that_is_killed_in_a_record_makes_no_row_of_it(mnt, table):
    """Half of a record would be the row of another key."""
    put(table / ".rows.csv", "PartitionKey,RowKey,A,A@type\np,1,1,Edm.Int32\n")
    p = subprocess.Popen(["sh", "-c", f"exec 3>'{table}/.rows.csv'; "
                          "printf 'PartitionKey,RowKey,A,A@type\np,2,2,Edm.Int32\np,1' >&3; "
                          "echo; exec sleep 60"], stdout=subprocess.PIPE)
    p.stdout.readline()
    p.send_signal(signal.SIGKILL)
    p.wait(60)
    assert sh(f"cat '{table}/.query/select=A.ndjson'").stdout == (
        '{"PartitionKey":"p","RowKey":"1","A":1}\n{"PartitionKey":"p","RowKey":"2","A":2}\n')
    assert list(rejected(mnt).values()) == [b"p,1"]
    assert "cut off" in reason(table / ".rows.csv")


# ---- partitions

def test_I6_rows_of_a_partition_may_leave_its_key_out(mnt, part):
    put(part / ".rows.ndjson", '{"RowKey":"1"}\n' + line("Channel_19", "2"))
    put(part / ".rows.csv", "RowKey,A\n3,x\n")
    put(part / ".rows.csv", "PartitionKey,RowKey\nChannel_19,4\n")
    assert rows(part) == [f"{i}.json" for i in range(1, 5)]
    for form, text in (("ndjson", '{"RowKey":"5"}\n' + line("other", "6")),
                       ("csv", "RowKey,PartitionKey\n5,Channel_19\n6,\n")):
        with raises("EINVAL"):
            put(part / f".rows.{form}", text)
        assert "PartitionKey" in reason(part / f".rows.{form}")
        os.unlink(part / "5.json")
    assert rows(part.parent) == ["Channel_19"]
    assert errors(mnt)[0]["path"] == "acct1/Blogs/Channel_19/.rows.ndjson"


def test_I6_awkward_partitions(table):
    for key in ("", "a b", ".x", "100%", "é", "k" * 512):
        put(table / ".rows.ndjson", line(key, "first"))
    for name in os.listdir(table):
        put(table / name / ".rows.ndjson", '{"RowKey":"second"}\n')
        assert len(rows(table / name)) == 2
    keys = {json.loads(x)["PartitionKey"] for x in get(table / ".rows.ndjson").splitlines()}
    assert keys == {"", "a b", ".x", "100%", "é", "k" * 512}


def test_I6_a_partition_that_is_renamed_is_followed(account, table, part):
    (account / "Other").mkdir()
    with Writer(part / ".rows.ndjson") as w:
        w.write('{"RowKey":"1"}\n{"Row')
        part.rename(table / "new")
        w.write('Key":"2"}\n')
        (table / "new").rename(account / "Other/far")
        w.write('{"RowKey":"3"}\n')
        w.close()
    assert rows(table) == []
    assert rows(account / "Other/far") == ["1.json", "2.json", "3.json"]


# ---- csv

def test_I7_csv_with_its_corners(mnt, table):
    put(table / ".rows.csv", b'\xef\xbb\xbf"PartitionKey",RowKey,S,N,N@type,B@Boolean,Timestamp\r\n'
        b'p,1,"a ""b"",\r\nc",9007199254740993,Edm.Int64,true,x\r\n'
        b"\r\n"
        b'p,2,"",,,,\n'
        b"p,3,,NaN,Double,,\n"
        b'"",""\n')
    got = [json.loads(x) for x in get(table / ".rows.ndjson").splitlines()]
    for row in got:
        del row["Timestamp"], row["Timestamp@odata.type"]
    assert got == [
        {"PartitionKey": "", "RowKey": ""},
        {"PartitionKey": "p", "RowKey": "1", "S": 'a "b",\r\nc', "N@odata.type": "Edm.Int64",
         "N": "9007199254740993", "B": True},
        {"PartitionKey": "p", "RowKey": "2", "S": ""},
        {"PartitionKey": "p", "RowKey": "3", "N@odata.type": "Edm.Double", "N": "NaN"}]


@pytest.mark.parametrize("header,word", [
    ("RowKey,A", "PartitionKey"), ("PartitionKey", "RowKey"), ("PartitionKey,RowKey,", "name"),
    ("PartitionKey,RowKey,RowKey", "twice"), ("PartitionKey,RowKey,A@type", "A@type"),
    ("PartitionKey,RowKey,A@Edm.Odd", "Edm.Odd")])
def test_I7_a_header_that_means_nothing_is_refused(table, header, word):
    with Writer(table / ".rows.csv") as w:
        with raises("EINVAL"):
            w.write(header + "\np,1\n")
    assert word in reason(table / ".rows.csv") and "line 1" in reason(table / ".rows.csv")
    assert rows(table) == []


# ---- a full disk

def fill_up(at, n=4):
    """Leaves about n MiB less than nothing."""
    sh(f"head -c {n}m /dev/zero > '{at}/fill' || true", check=False)


def test_I8_on_a_full_disk_what_was_acknowledged_stands(rowfs, mount, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    m.allow("ENOSPC|No space|NO_SPACE|full|could not be kept")
    table = m / "acct1/Tab"
    table.mkdir(parents=True)
    written = 0
    with Writer(table / ".rows.ndjson") as w:
        with raises("ENOSPC"):
            while written < 20000:
                w.write(numbered(100, first=written, pad="x" * 1000))
                written += 100
        with raises("ENOSPC"):
            w.write(line("p", "later"))
    assert written > 500
    there = rows(table / "p")
    assert there[:written] == [f"{i:06}.json" for i in range(written)]
    assert len(there) < written + 100
    assert f"line {len(there) + 1}" in reason(table / ".rows.ndjson")
    m.kill9()
    sh(f"mount -o remount,size=32m '{small_disk}'")
    m.start()
    assert rows(table / "p")[:written] == there[:written]
    put(table / ".rows.ndjson", numbered(100, first=written, pad="x" * 1000))
    assert len(rows(table / "p")) == written + 100


@pytest.mark.parametrize("served", [False, True])
def test_I8_an_import_on_a_full_disk_says_from_where_on(rowfs, mount, small_disk, work, served):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, "acct1")
    m = None
    if served:
        m = mount(store)
        m.allow("ENOSPC|No space|NO_SPACE|full")
    (work / "in.ndjson").write_text(numbered(20000, pad="x" * 500))
    done = rowfs("import", store, "acct1/Tab", work / "in.ndjson", check=False)
    assert done.returncode == 1 and "space" in done.stderr
    told, summary = done.stderr.splitlines()
    count = int(summary.split()[0].replace(",", ""))
    assert 1000 <= count < 20000 and "rows imported" in summary
    assert f"in.ndjson:{count + 1}: " in told
    if m:
        m.umount()
    sh(f"mount -o remount,size=64m '{small_disk}'")
    assert len(rowfs("export", store, "acct1/Tab").stdout.splitlines()) == count
    sh(f"tail -n +{count + 1} '{work}/in.ndjson' > '{work}/rest.ndjson'")
    rowfs("import", store, "acct1/Tab", "--mode=insert", work / "rest.ndjson")
    assert len(rowfs("export", store, "acct1/Tab").stdout.splitlines()) == 20000
    rowfs("check", store)


# ---- round trips

def same(client, a, b):
    def values(table):
        return [{k: v for k, v in r.items() if k != "Timestamp"} for r in
                from_rest(client.all(table))]
    assert values(a) == values(b) and values(a)


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_I9_out_and_in_is_lossless(rowfs, both, rest_store, form, work):
    m, account, client = both
    awkward_rows(client, "Tab")
    for copy in ("Cat", "Export", "Import", "Parts"):
        ok(client.create_table(copy), 201)
    sh(f"cat Tab/.rows.{form} > Cat/.rows.{form}", cwd=account)
    same(client, "Tab", "Cat")
    with open(account / f"Tab/.rows.{form}", "rb") as source:
        done = subprocess.run([rowfs.program, "import", rest_store, f"{ACCOUNT}/Import",
                               f"--format={form}"], stdin=source, env=ENV, capture_output=True)
    assert done.returncode == 0, done.stderr
    same(client, "Tab", "Import")
    sh(f"'{rowfs.program}' export '{rest_store}' {ACCOUNT}/Tab --format={form} "
       f"> Export/.rows.{form}", cwd=account)
    same(client, "Tab", "Export")
    for name in os.listdir(account / "Tab"):
        rows_of = get(account / "Tab" / name / f".rows.{form}")
        if "%~" in name:  # whose key is not known before the first row tells it
            put(account / f"Parts/.rows.{form}", rows_of)
        else:
            (account / "Parts" / name).mkdir()
            put(account / "Parts" / name / f".rows.{form}", rows_of)
    same(client, "Tab", "Parts")
    assert not errors(m)


# ---- what such a handle cannot do

def test_I10_a_handle_for_writing_does_not_read(table):
    at = table / ".rows.ndjson"
    with Writer(at, os.O_RDWR | os.O_CREAT | os.O_TRUNC) as w:
        w.write(line("p", "1"))
        with raises("EPERM"):
            os.pread(w.fd, 10, 0)
        os.fsync(w.fd)
        w.close()
    assert rows(table / "p") == ["1.json"]
    assert os.stat(at).st_size == len(get(at)) > 0
    for change in (lambda: os.unlink(at), lambda: os.rename(at, table / "x"),
                   lambda: os.link(at, table / "x")):
        with raises("EPERM"):
            change()


def test_I10_nothing_written_is_nothing_done(mnt, table):
    put(table / ".rows.ndjson", "")
    put(table / ".rows.csv", "")
    sh(f": > '{table}/.rows.ndjson'; : >> '{table}/.rows.csv'")
    assert rows(table) == [] and not errors(mnt)


def test_I10_a_read_only_mount_takes_none(mount, rowfs, store):
    rowfs("account", "add", store, "acct1")
    rowfs("import", store, "acct1/Tab", input=line("p", "1"))
    m = mount(store, "ro")
    with raises("EROFS"):
        Writer(m / "acct1/Tab/.rows.ndjson")
    assert b'"RowKey":"1"' in get(m / "acct1/Tab/.rows.ndjson")


# ---- rowfs import

@pytest.mark.parametrize("mode", ["insert", "upsert", "merge", "replace"])
@pytest.mark.parametrize("stop", [False, True])
def test_I11_modes_and_bad_lines_in_the_middle(rowfs, store, work, mode, stop):
    """The rows 0000 to 1499 are there; 1000 to 2499 come, with bad lines between them."""
    rowfs("account", "add", store, "acct1")
    rowfs("import", store, "acct1/Tab", input=numbered(1500, old=1))
    text = numbered(1500, first=1000, new=2).splitlines(keepends=True)
    for at in (700, 300):
        text.insert(at, "bad\n")
    (work / "in").write_text("".join(text))
    done = rowfs("import", store, "acct1/Tab", f"--mode={mode}", *["--stop"] * stop,
                 work / "in", check=False)
    assert done.returncode == 1
    told = [int(x.split(":")[1]) for x in done.stderr.splitlines() if x.startswith(str(work))]
    where = [301, 702]  # of the bad lines
    known = [n for n in range(1, 1503) if n not in where]  # of the others, in order
    taken = {"insert": range(500, 1500), "upsert": range(1500)}.get(mode, range(500))
    refused = sorted(where + [known[i] for i in range(1500) if i not in taken])
    if stop:
        assert told == refused[:1]
        taken = [i for i in taken if known[i] < refused[0]]
    else:
        assert told == refused[:20]
        assert f"{len(refused):,} refused" in done.stderr
    want = {f"{i:06}": {"old": 1} for i in range(1500)}
    for i in taken:
        key = f"{i + 1000:06}"
        want[key] = {**(want.get(key, {}) if mode == "merge" else {}), "new": 2}
    got = {}
    for x in rowfs("export", store, "acct1/Tab").stdout.splitlines():
        row = json.loads(x)
        got[row["RowKey"]] = {k: v for k, v in row.items() if k in ("old", "new")}
    assert got == want


@pytest.mark.parametrize("served", [False, True])
def test_I11_ctrl_c_ends_an_import_without_a_good_line(rowfs, rest_store, rest_mount, served):
    if served:
        rest_mount(rest_store)
    source = subprocess.Popen(["yes", "bad"], stdout=subprocess.PIPE)
    p = subprocess.Popen([str(rowfs.program), "import", str(rest_store), f"{ACCOUNT}/Tab"],
                         stdin=source.stdout, stderr=subprocess.PIPE, env=ENV)
    source.stdout.close()
    assert b"standard input:1:1: InvalidInput" in p.stderr.readline()
    p.send_signal(signal.SIGINT)
    try:
        told = p.communicate(timeout=60)[1]
    finally:
        source.kill()
        source.wait(60)
    assert p.returncode == 1 and b"cancelled" in told


def test_I11_refused_lines_take_no_memory(rowfs, both, work):
    m, _, _ = both
    with open(work / "in", "w") as f:
        f.writelines(["{" + 1000 * " " + "\n"] * 64000)
    before = high_water_kib(m)
    done = rowfs("import", m.store, f"{ACCOUNT}/Tab", work / "in", check=False)
    assert done.returncode == 1 and "64,000 refused" in done.stderr
    assert high_water_kib(m) - before < 16 * 1024 or sanitized()
