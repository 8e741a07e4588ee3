# SPDX-License-Identifier: MIT
"""The commands of rowfs, on a store of their own and through the process that serves it."""

import array
import base64
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import termios
import time

import pytest

from conftest import BUILD, ENV, detach, is_mount, need_fuse
from queue_client import Queues
from rest_client import ACCOUNT
from store_pages import seal
from tools import on_terminal

HELPER = BUILD / "mount-helper" / "mount.rowfs"


@pytest.fixture
def acct(rowfs, store):
    """A store with the account 'acct'."""
    rowfs("account", "add", store, "acct")
    return store


@pytest.fixture(params=["alone", "served"])
def place(request, acct):
    """The same store, once opened by the command itself and once served."""
    if request.param == "served":
        request.getfixturevalue("mount")(acct)
    return acct


def fails(rowfs, *args, code=1, **kw):
    done = rowfs(*args, check=False, **kw)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("rowfs")
    return done.stderr


def lines(*rows):
    return "".join(json.dumps(r) + "\n" for r in rows)


def all_read(pipe):
    """Waits until somebody has taken all that was written to it, and waits for more."""
    left = array.array("i", [1])
    while left[0]:
        fcntl.ioctl(pipe, termios.FIONREAD, left)
        time.sleep(0.002)


def exported(rowfs, store, target, *more):
    out = rowfs("export", store, target, *more).stdout
    found = [json.loads(line) for line in out.splitlines()]
    for row in found:
        assert row.pop("Timestamp@odata.type") == "Edm.DateTime"
        assert row.pop("Timestamp").startswith("20")
    return found


ROWS = [
    {"PartitionKey": "", "RowKey": "", "A": ""},
    {"PartitionKey": "p", "RowKey": "1", "A": 1, "B": True, "C": 2.5, "D": -0.0},
    {"PartitionKey": "p", "RowKey": "2", "S": 'é "q", \r\n\t end '},
    {"PartitionKey": "p", "RowKey": "é,\"", "I@odata.type": "Edm.Int64", "I": "9007199254740993"},
    {"PartitionKey": "q", "RowKey": "1", "N@odata.type": "Edm.Double", "N": "NaN",
     "G@odata.type": "Edm.Guid", "G": "c9da6455-213d-42c9-9a79-3e9149a57833",
     "T@odata.type": "Edm.DateTime", "T": "1601-01-01T00:00:00.0000001Z",
     "Y@odata.type": "Edm.Binary", "Y": "AAEC"},
]


# ---- the command line ----

def test_every_command_explains_itself(rowfs):
    names = [line[2:22].strip() for line in rowfs("help").stdout.splitlines()
             if line.startswith("  ")]
    assert len(names) == 33 == len(set(names))
    for name in names:
        by_option = rowfs(*name.split(), "--help").stdout
        assert by_option.startswith(f"usage: rowfs {name}")
        assert rowfs("help", *name.split()).stdout == by_option


def test_the_help_has_parts(rowfs):
    parts = [p.splitlines() for p in rowfs("help").stdout.split("\n\n")]
    found = {p[0]: [line[2:22].strip() for line in p[1:]] for p in parts if p[0].endswith(":")}
    assert list(found) == ["Start and end:", "Rows:", "Accounts:", "Care of a store:", "Help:"]
    assert "query" in found["Rows:"] and "sas" in found["Accounts:"]
    assert all(names == sorted(names) for names in found.values())


def test_what_was_perhaps_meant_is_named(rowfs):
    for args, meant in ((["qery"], "rowfs query"), (["exprot", "s"], "rowfs export"),
                        (["account", "ad"], "rowfs account add"),
                        (["stat", "--jsno", "s"], "did you mean --json"),
                        (["import", "s", "a/T", "--moed=x"], "did you mean --mode"),
                        (["help", "exprot"], "did you mean: rowfs help export"),
                        (["help", "account", "lst"], "did you mean: rowfs help account list")):
        done = rowfs(*args, check=False)
        assert done.returncode == 2 and meant in done.stderr
    for args in (["frobnicate"], ["x"], ["stat", "--nonsense", "s"]):
        assert "did you mean" not in rowfs(*args, check=False).stderr


def test_why_tells_the_last_reason(rowfs, acct, mount, work):
    mnt = mount(acct)
    os.makedirs(mnt / "acct/Tab/p")
    row = mnt / "acct/Tab/p/1.json"
    assert "nothing was refused" in rowfs("why", mnt / "acct/Tab/p", check=False).stderr
    done = subprocess.run(["sh", "-c", f"echo '{{\"A b\":1}}' > {row}"], capture_output=True)
    assert done.returncode != 0
    reason = os.getxattr(row.parent, "user.rowfs.error").decode() + "\n"
    assert reason.startswith("PropertyNameInvalid: ")
    assert rowfs("why", row).stdout == reason
    assert rowfs("why", row.parent).stdout == reason
    assert rowfs("why", cwd=row.parent).stdout == reason
    row.write_text("{}")
    done = rowfs("why", row, check=False)
    assert done.returncode == 1 and "since the last success" in done.stderr
    (work / "x").touch()
    done = rowfs("why", work / "x", check=False)
    assert done.returncode == 1 and "is not in a mount of rowfs" in done.stderr


@pytest.mark.parametrize("args", [
    [], ["frobnicate"], ["account"], ["init"], ["init", "a", "b"], ["stat", "--nonsense", "s"],
    ["import", "s", "acct"], ["import", "s", "/t"], ["import", "s", "a/b/c"],
    ["import", "s", "acct/Tab", "--mode", "x"], ["import", "s", "acct/Tab", "--mode"],
    ["export", "s", "acct/Tab", "--format=xml"], ["account", "regenerate", "s", "a", "--which=3"],
    ["mount", "s", "d", "-o", "nonsense"], ["mount", "s", "d", "-o", "uid=-1"],
    ["mount", "s", "d", "-o", "umask=8"], ["help", "nonsense"], ["stat", "--json=1", "s"],
])
def test_wrong_usage_is_exit_2_and_touches_nothing(rowfs, work, args):
    done = rowfs(*args, check=False, cwd=work)
    assert done.returncode == 2 and done.stderr and not done.stdout
    assert not os.listdir(work)


@pytest.mark.parametrize("args,text", [
    (["init"], "STORE is missing"), (["account", "add", "s"], "NAME is missing"),
    (["import", "s"], "ACCOUNT/TABLE is missing"), (["mount", "s"], "DIR is missing"),
    (["init", "a", "b"], "'b' is one word too many"),
    (["account", "ad", "s"], "there is no command 'account ad'"),
    (["mount", "s", "d", "--rest=unix:x"], "mount options go behind -o"),
    (["mount", "s", "d", "-o", "rest"], "option 'rest' wants a value"),
    (["mount", "s", "d", "-o", "ro=1"], "option 'ro=1' takes no value"),
    (["mount", "s", "d", "-o", "nonsense"], "is not known; see: rowfs help mount"),
])
def test_wrong_usage_is_named(rowfs, work, args, text):
    assert text in fails(rowfs, *args, code=2, cwd=work)


def test_two_dashes_end_the_options(rowfs, work):
    rowfs("init", "--", "-x", cwd=work)
    assert (work / "-x").exists()
    assert rowfs("stat", "--json", "--", "-x", cwd=work).stdout.startswith("{")


# ---- init, account ----

def test_init_makes_a_private_file_and_touches_no_other(rowfs, work):
    rowfs("init", work / "s")
    assert (work / "s").stat().st_mode & 0o7777 == 0o600
    for make in (lambda p: p.write_text("mine"), lambda p: p.mkdir(), lambda p: p.symlink_to("x")):
        path = work / f"there{len(os.listdir(work))}"
        make(path)
        before = os.lstat(path)
        assert str(path) in fails(rowfs, "init", path)
        assert os.lstat(path) == before


def test_init_says_why_it_cannot(rowfs, work):
    (work / "file").write_text("")
    for path, why in ((work / "none" / "s", "there is no such directory"),
                      (work / "file" / "s", "Not a directory"),
                      (work / ("x" * 300), "File name too long")):
        assert fails(rowfs, "init", path) == f"rowfs init: cannot make '{path}': {why}\n"
    (work / "left-wal").write_text("")
    text = fails(rowfs, "init", work / "left")
    assert "left-wal exists: it belongs to a store that is not there any more" in text


def test_account_add_prints_keys_and_a_connection_string(rowfs, place):
    out = rowfs("account", "add", place, "other1").stdout
    got = dict(line.split(None, 1) for line in out.splitlines())
    assert got["account"] == "other1" and got["key1"] != got["key2"]
    assert all(len(base64.b64decode(got[k], validate=True)) == 32 for k in ("key1", "key2"))
    assert got["connect"] == (
        f"DefaultEndpointsProtocol=http;AccountName=other1;AccountKey={got['key1']};"
        "BlobEndpoint=http://127.0.0.1:10000/other1;"
        "QueueEndpoint=http://127.0.0.1:10001/other1;"
        "TableEndpoint=http://127.0.0.1:10002/other1;")
    assert rowfs("account", "keys", place, "other1").stdout == out
    assert rowfs("account", "list", place).stdout == "acct\nother1\n"
    assert "account keys" in fails(rowfs, "account", "add", place, "other1")


@pytest.mark.parametrize("size,code", [(15, 1), (16, 0), (64, 0), (65, 1)])
def test_a_given_key_is_16_to_64_bytes(rowfs, store, size, code):
    key = base64.b64encode(bytes(range(size))).decode()
    done = rowfs("account", "add", store, "given", "--key", key, check=False)
    assert done.returncode == code
    assert (f"key1     {key}\n" in done.stdout) == (code == 0)


def test_a_key_that_is_no_base64_is_refused(rowfs, store):
    assert "base64" in fails(rowfs, "account", "add", store, "given", "--key=AAA!")
    assert rowfs("account", "list", store).stdout == ""


@pytest.mark.parametrize("name", ["ab", "a" * 25, "Abc", "a-b", "äbc"])
def test_account_names_that_break_the_rule(rowfs, store, name):
    assert name in fails(rowfs, "account", "add", store, name)


def test_regenerate_changes_one_key(rowfs, place):
    def keys():
        return rowfs("account", "keys", place, "acct").stdout.splitlines()[1:3]
    before = keys()
    rowfs("account", "regenerate", place, "acct", "--which=2")
    middle = keys()
    assert middle[0] == before[0] and middle[1] != before[1]
    rowfs("account", "regenerate", place, "acct")
    after = keys()
    assert after[0] != middle[0] and after[1] == middle[1]
    assert "account list" in fails(rowfs, "account", "regenerate", place, "nobody")


def test_remove_wants_recursive_for_an_account_with_tables(rowfs, place):
    rowfs("import", place, "acct/Tab", input=lines(*ROWS))
    assert "--recursive" in fails(rowfs, "account", "remove", place, "acct")
    assert len(exported(rowfs, place, "acct/Tab")) == len(ROWS)
    rowfs("account", "remove", place, "acct", "-r")
    assert rowfs("account", "list", place).stdout == ""
    assert "account add" in fails(rowfs, "account", "keys", place, "acct")


# ---- import, export ----

@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_export_then_import_is_lossless(rowfs, place, work, form):
    rowfs("import", place, "acct/Tab", input=lines(*ROWS))
    assert exported(rowfs, place, "acct/Tab") == ROWS
    out = work / f"rows.{form}"
    rowfs("export", place, "acct/Tab", "-o", out)
    assert (out.read_text()[0] == "{") == (form == "ndjson")
    rowfs("import", place, "acct/Copy", out)
    copy = exported(rowfs, place, "acct/Copy")
    # CSV gives the properties the order of the header.
    assert [sorted(r.items()) for r in copy] == [sorted(r.items()) for r in ROWS]
    assert json.dumps(copy).count("-0.0") == 1


def test_export_of_one_partition(rowfs, place):
    rowfs("import", place, "acct/Tab", input=lines(*ROWS))
    assert exported(rowfs, place, "acct/Tab", "p") == ROWS[1:4]
    assert exported(rowfs, place, "acct/TAB", "") == ROWS[:1]
    assert "'nope'" in fails(rowfs, "export", place, "acct/Tab", "nope")
    assert "'Nope'" in fails(rowfs, "export", place, "acct/Nope")


def test_bad_records_are_reported_and_the_others_imported(rowfs, place, work):
    text = (b'\xef\xbb\xbf{"PartitionKey":"p","RowKey":"1"}\r\n'
            b'\n'
            b'{"PartitionKey":"p","RowKey":"2",}\n'
            b'{"PartitionKey":"p"}\n'
            b'{"PartitionKey":"p","RowKey":"a/b"}\n'
            b'{"PartitionKey":"p","RowKey":"\xff"}\n'
            b'{"PartitionKey":"p","RowKey":"3"}')
    (work / "in.ndjson").write_bytes(text)
    done = rowfs("import", place, "acct/Tab", work / "in.ndjson", check=False)
    assert done.returncode == 1
    told = done.stderr.splitlines()
    for n, line in zip((3, 4, 5, 6), told):
        assert line.startswith(f"{work}/in.ndjson:{n}:"), done.stderr
    assert told[0].startswith(f"{work}/in.ndjson:3:34: InvalidInput: ")
    assert "RowKey" in told[1]
    assert told[-1].startswith("2 rows imported, 4 refused")
    assert [r["RowKey"] for r in exported(rowfs, place, "acct/Tab")] == ["1", "3"]


def test_at_most_20_bad_records_are_told(rowfs, place):
    done = rowfs("import", place, "acct/Tab", input="nonsense\n" * 25, check=False)
    assert done.returncode == 1
    assert done.stderr.count("standard input:") == 20
    assert "... and 5 more refused" in done.stderr


def test_stop_ends_at_the_first_bad_record(rowfs, place):
    text = lines(ROWS[1]) + "{bad\n" + lines(ROWS[2])
    done = rowfs("import", place, "acct/Tab", "--stop", input=text, check=False)
    assert done.returncode == 1 and "standard input:2:" in done.stderr
    assert exported(rowfs, place, "acct/Tab") == [ROWS[1]]


def test_modes(rowfs, place):
    def load(mode, *rows):
        return rowfs("import", place, "acct/Tab", "--mode", mode, input=lines(*rows),
                     check=False)

    def row(n, **props):
        return {"PartitionKey": "p", "RowKey": n, **props}

    assert load("insert", row("1", A=1, B=1)).returncode == 0
    # The row that exists is refused, its neighbours are not.
    done = load("insert", row("0"), row("1", A=9), row("2", A=2))
    assert done.returncode == 1 and "standard input:2: EntityAlreadyExists" in done.stderr
    assert load("merge", row("1", A=3), row("9", A=9), row("2", C=3)).returncode == 1
    assert load("replace", row("8"), row("2", D=4)).returncode == 1
    assert load("upsert", row("3", E=5), row("0", F=6)).returncode == 0
    assert exported(rowfs, place, "acct/Tab") == [
        row("0", F=6), row("1", A=3, B=1), row("2", D=4), row("3", E=5)]


def test_the_same_row_twice_acts_in_order(rowfs, place):
    def row(**props):
        return {"PartitionKey": "p", "RowKey": "1", **props}
    rowfs("import", place, "acct/Tab", input=lines(row(A=1), row(A=2), row(B=3)))
    assert exported(rowfs, place, "acct/Tab") == [row(B=3)]
    rowfs("import", place, "acct/Tab", "--mode=merge", input=lines(row(A=1), row(C=2), row(A=5)))
    assert exported(rowfs, place, "acct/Tab") == [row(B=3, A=5, C=2)]
    done = rowfs("import", place, "acct/New", "--mode=insert", input=lines(row(A=1), row(A=2)),
                 check=False)
    assert "standard input:2: EntityAlreadyExists" in done.stderr
    assert exported(rowfs, place, "acct/New") == [row(A=1)]


@pytest.mark.parametrize("refused_every", [1, 2, 7])
def test_many_refusals_cost_the_others_nothing(rowfs, place, refused_every):
    rows = [{"PartitionKey": "p", "RowKey": f"{i:05}", "A": i} for i in range(3000)]
    rowfs("import", place, "acct/Tab", input=lines(*rows[::refused_every]))
    done = rowfs("import", place, "acct/Tab", "--mode=insert",
                 input=lines(*({**r, "B": 1} for r in rows)), check=False)
    there = len(rows[::refused_every])
    assert f"{there:,} refused" in done.stderr
    want = [r if i % refused_every == 0 else {**r, "B": 1} for i, r in enumerate(rows)]
    assert exported(rowfs, place, "acct/Tab") == want


def test_csv_types(rowfs, place):
    text = ('PartitionKey,RowKey,A,B,B@type,C@Edm.Int32,Timestamp\r\n'
            'p,1,text,7,Edm.Int64,8,ignored\n'
            'p,2,"a ""b""\n, c",,,,\r\n'
            'p,3,"",1.5,Double\n'
            'p,4,x,x,Edm.Int32,\n'
            'p,5,x,1,Edm.Nonsense,\n'
            'p,6,x,,,notanumber,\n'
            'p,7,1,2,3,4,5,6\n'
            'p,8,"open')
    done = rowfs("import", place, "acct/Tab", "--format=csv", input=text, check=False)
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert [int(line.split(":")[1]) for line in told[:5]] == [6, 7, 8, 9, 10]
    assert "'B'" in told[0] and "Nonsense" in told[1] and "'C'" in told[2] and "8 fields" in told[3]
    assert exported(rowfs, place, "acct/Tab") == [
        {"PartitionKey": "p", "RowKey": "1", "A": "text", "B@odata.type": "Edm.Int64", "B": "7",
         "C": 8},
        {"PartitionKey": "p", "RowKey": "2", "A": 'a "b"\n, c'},
        {"PartitionKey": "p", "RowKey": "3", "A": "", "B": 1.5}]


@pytest.mark.parametrize("header,word", [
    ("RowKey,A", "PartitionKey"), ("PartitionKey,A", "RowKey"), ("PartitionKey,RowKey,", "name"),
    ("PartitionKey,RowKey,A@type", "A@type"), ("PartitionKey,RowKey,A@Edm.Odd", "Edm.Odd")])
def test_csv_headers_that_mean_nothing(rowfs, acct, header, word):
    assert word in fails(rowfs, "import", acct, "acct/Tab", "--format=csv", input=header + "\np,1\n")


def test_files_are_named_in_what_is_told(rowfs, place, work):
    (work / "a.ndjson").write_text(lines(ROWS[0]) + "{bad\n")
    (work / "b.csv").write_text("PartitionKey,RowKey\np,b\n")
    done = rowfs("import", place, "acct/Tab", "a.ndjson", "-", "b.csv", cwd=work,
                 input=lines(ROWS[1]) + "bad\n", check=False)
    assert done.stderr.startswith("a.ndjson:2:2: ")
    assert "\nstandard input:2:1: " in done.stderr
    assert "\n3 rows imported, 2 refused" in done.stderr
    assert len(exported(rowfs, place, "acct/Tab")) == 3
    # Names are checked before anything is imported.
    assert "'none'" in fails(rowfs, "import", place, "acct/New", "b.csv", "none", cwd=work)
    assert "'New'" in fails(rowfs, "export", place, "acct/New")


def test_what_is_not_there_says_what_to_do(rowfs, place, work):
    assert f"rowfs account add {place} nobody" in fails(
        rowfs, "import", place, "nobody/Tab", input="")
    assert f"rowfs init {work}/none" in fails(rowfs, "stat", work / "none")
    (work / "text").write_text("hello" * 1000)
    assert str(work / "text") in fails(rowfs, "stat", work / "text")
    assert "no-table" in fails(rowfs, "import", place, "acct/no-table", input="")
    for command in ("remove", "regenerate"):
        assert f"rowfs account list {place}" in fails(rowfs, "account", command, place, "nobody")


def test_a_reader_that_leaves_is_no_news(rowfs, place):
    rowfs("import", place, "acct/Tab", input=lines(
        *({"PartitionKey": "p", "RowKey": f"{i:05}", "A": "x" * 100} for i in range(5000))))
    p = subprocess.Popen([rowfs.program, "export", place, "acct/Tab"], env=ENV,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(10)
    p.stdout.close()
    assert p.stderr.read() == b"" and p.wait(60) == 1


def test_a_full_disk_is_told(rowfs, place):
    rowfs("import", place, "acct/Tab", input=lines(*ROWS))
    with open("/dev/full", "w") as full:
        done = subprocess.run([rowfs.program, "export", place, "acct/Tab"], env=ENV, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr


def test_ctrl_c_keeps_what_was_committed(rowfs, place):
    p = subprocess.Popen([rowfs.program, "import", place, "acct/Tab"], env=ENV, text=True,
                         stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(lines(*({"PartitionKey": "p", "RowKey": f"{i:05}"} for i in range(2500))))
    p.stdin.flush()
    all_read(p.stdin)
    p.send_signal(signal.SIGINT)
    err = p.stderr.read()
    assert p.wait(60) == 1 and "cancelled" in err and "2,500 rows imported" in err
    assert len(exported(rowfs, place, "acct/Tab")) == 2500


def test_AD15_progress_is_drawn_on_a_terminal_only(rowfs, place, work):
    (work / "in.ndjson").write_text(lines(
        *({"PartitionKey": "p", "RowKey": f"{i:06}"} for i in range(40000))))
    seen = on_terminal(rowfs, "import", place, "acct/Tab", work / "in.ndjson")
    assert "\r" in seen and "left" in seen and "rows" in seen
    done = rowfs("import", place, "acct/Tab", work / "in.ndjson")
    assert "\r" not in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("args,shown", [
    (("import", "STORE", "acct/Tab", "FILE"), r"  [\d,]+ rows  [\d,]+ rows/s  \d+:\d\d left"),
    (("export", "STORE", "acct/Tab"), r"%  [\d,]+ rows  [\d,]+ rows/s  \d+:\d\d left"),
    (("export", "STORE", "acct/Tab", "p"), r"%  [\d,]+ rows  [\d,]+ rows/s  \d+:\d\d left"),
    (("export", "STORE", "acct/Tab", "--filter=PartitionKey ge 'p'"), r"\r[\d,]+ rows  [\d,]+ rows/s"),
    (("backup", "STORE", "COPY"), r"  [\d.]+ [KM]iB  ([\d.]+ [KMG]iB|0 bytes)/s  \d+:\d\d left"),
    (("check", "STORE"), "(?s)" + ".*".join(rf"%  [\d,]+ {unit}  [\d,]+ {unit}/s  \d+:\d\d left"
                                            for unit in ("pages", "checks", "items"))),
], ids=lambda x: x[0] if isinstance(x, tuple) else "")
def test_AD15_progress_has_units_and_no_escapes(rowfs, place, work, args, shown):
    """Whatever the terminal is; the line is wiped at the end."""
    (work / "in.ndjson").write_text(lines(
        *({"PartitionKey": "p", "RowKey": f"{i:06}", "A": "a" * 800} for i in range(4000))))
    rowfs("import", place, "acct/Tab", work / "in.ndjson")
    words = {"STORE": place, "FILE": work / "in.ndjson", "COPY": work / "copy"}
    seen = on_terminal(rowfs, *(words.get(a, a) for a in args), env={**ENV, "TERM": "dumb"})
    assert re.search(shown, seen), seen
    assert "\x1b" not in seen
    drawn = seen.rpartition("\n")[2] if args[0] != "import" else seen.rpartition("\r")[0]
    assert re.search(r"\r +(\r|$)", drawn), seen


@pytest.mark.parametrize("redirected", (True, False))
def test_AD15_an_import_of_standard_input_shows_the_time_left_if_that_is_a_file(rowfs, place, work, redirected):
    (work / "in.ndjson").write_text(lines(
        *({"PartitionKey": "p", "RowKey": f"{i:06}"} for i in range(4000))))
    with open(work / "in.ndjson", "rb") as file, \
            subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as pipe:
        if redirected:
            pipe.communicate()
            file.seek(0)
        seen = on_terminal(rowfs, "import", place, "acct/Tab", stdin=file if redirected else pipe.stdout)
    assert re.search(r"[\d,]+ rows  [\d,]+ rows/s", seen), seen
    assert ("left" in seen) == redirected


# ---- stat, check ----

def test_stat_counts_rows_and_not_ordinary_files(rowfs, acct, mount):
    rowfs("import", acct, "acct/Tab", input=lines(*ROWS))
    m = mount(acct)
    (m / "acct/Tab/p/note.txt").write_text("12345")
    (m / "acct/Tab/p/.hidden").touch()
    (m / "acct/Tab/p/empty.json").touch()
    for _ in ("served", "alone"):
        got = json.loads(rowfs("stat", "--json", acct).stdout)
        assert (got["accounts"], got["tables"], got["partitions"], got["rows"]) == (1, 1, 3, 5)
        assert got["file_bytes"] == 5 and got["bytes"] > 0 and got["files"] == 1
        assert got["largest_partitions"][0] == {
            "account": "acct", "table": "Tab", "partition_key": "p", "rows": 3}
        text = rowfs("stat", acct).stdout
        assert "rows        5\n" in text and "acct/Tab/p\n" in text
        assert "1 in partitions are no rows: a row's name ends in .json" in text
        if m.alive():
            m.umount()


def test_stat_counts_messages(rowfs, rest_store, rest_mount):
    def stat():
        got = json.loads(rowfs("stat", "--json", rest_store).stdout)
        return [got.get(n) for n in ("queues", "messages", "visible_messages")]

    assert stat() == [0, 0, 0] and "messages" not in rowfs("stat", rest_store).stdout
    m = rest_mount(rest_store)
    queues = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    for name in ("jobs", "more"):
        assert queues.ask("PUT", f"/{name}").status == 201
    assert stat() == [2, 0, 0]
    assert "messages    0, of that 0 visible\n" in rowfs("stat", rest_store).stdout
    assert queues.put("jobs", "soon over", messagettl=1).status == 201
    expired = time.monotonic() + 1.1
    for i in range(3):
        assert queues.put("more", i).status == 201
    assert queues.put("more", "later", visibilitytimeout=3600).status == 201
    assert len(queues.get("more", visibilitytimeout=3600)) == 1
    while time.monotonic() < expired:
        time.sleep(0.1)
    for _ in ("served", "alone"):
        assert stat() == [2, 4, 2]
        assert 1 <= json.loads(rowfs("stat", "--json", rest_store).stdout)[
            "oldest_message_seconds"] <= 60
        assert re.search(r"queues      2\nmessages    4, of that 2 visible; the oldest was put "
                         r"\d+ s ago\n", rowfs("stat", rest_store).stdout)
        if m.alive():
            m.umount()


def test_stat_of_more_partitions_than_fit_on_a_page(rowfs, place):
    rowfs("import", place, "acct/Tab", input=lines(
        *({"PartitionKey": f"{i:05}", "RowKey": ""} for i in range(2100))))
    got = json.loads(rowfs("stat", "--json", place).stdout)
    assert got["partitions"] == got["rows"] == 2100 and len(got["largest_partitions"]) == 10


def test_check_of_a_clean_store(rowfs, place):
    rowfs("import", place, "acct/Tab", input=lines(*ROWS))
    out = rowfs("check", place).stdout
    assert out == (f"{place}: 1 account, 1 table, 3 partitions, 5 rows, 0 ordinary files: clean\n")


def test_check_counts_ordinary_files_wherever_they_are(rowfs, acct, mount):
    m = mount(acct)
    part = m / "acct/Tab/p"
    deep = part / ".a/b" / "/".join("d" * 40)
    deep.mkdir(parents=True)
    (m / "acct/Tab/%_").mkdir()
    files = (part / "plain", part / ".dot", part / ".a/one", part / ".a/b/two", deep / "three",
             m / "acct/Tab/%_/other")
    for path in files:
        path.write_text("x")
    (part / "1.json").write_text('{"A": 1}')
    (part / "2.json").write_text('{"A": 1}')
    (part / "2.json").unlink()  # to .rowfs/trash
    with pytest.raises(OSError):
        (part / "1.json").write_text('{"A": [1]}')  # to .rowfs/rejected
    wanted = f"{acct}: 1 account, 1 table, 2 partitions, 1 row, 8 ordinary files: clean\n"
    assert rowfs("check", acct).stdout == wanted
    m.umount()
    assert rowfs("check", acct).stdout == wanted


def test_check_verifies_files_in_dot_directories_and_in_the_trash(rowfs, acct, mount, request):
    m = mount(acct)
    part = m / "acct/Tab/p"
    (part / ".a/b").mkdir(parents=True)
    (part / ".a/b/good").write_text("x" * 40000)
    for name, n in (("small", 10), ("large", 4000)):
        (part / f"{name}.json").write_text(json.dumps({"A": "x" * n}))
        (part / f"{name}.json").unlink()
    m.umount()
    rowfs("check", acct)
    request.node.no_store_check = True
    trash = "(SELECT id FROM item WHERE parent=3)"
    with contextlib.closing(sqlite3.connect(acct)) as db, db:
        db.execute("UPDATE item SET key=CAST('a/b' AS BLOB) WHERE key=CAST('good' AS BLOB)")
        db.execute("UPDATE obj SET key=CAST('a/b' AS BLOB) WHERE key=CAST('good' AS BLOB)")
        db.execute(f"UPDATE chunk SET data=CAST(data||'more' AS BLOB) WHERE id IN {trash}")
        db.execute("UPDATE obj SET body=CAST(body||'more' AS BLOB) WHERE parent=3"
                   " AND body IS NOT NULL")
    seal(acct)
    done = rowfs("check", acct, check=False)
    assert done.returncode == 1 and done.stdout.endswith(": 3 findings\n")
    assert "acct/Tab/p/a/b: the name of an ordinary file is not allowed\n" in done.stdout
    assert "has content behind its end\n" in done.stdout
    assert re.search(r"-small.json: the small file has 19 bytes, its document row 23\n", done.stdout)


def test_check_ends_where_a_folder_holds_itself(rowfs, acct, mount, request):
    m = mount(acct)
    (m / "acct/Tab/p/.a/b").mkdir(parents=True)
    m.umount()
    request.node.no_store_check = True
    with contextlib.closing(sqlite3.connect(acct)) as db, db:
        db.execute("INSERT INTO item(parent,class,key,id,kind,version,flags) SELECT id,class,"
                   "CAST('again' AS BLOB),id,kind,version,flags FROM item"
                   " WHERE key=CAST('b' AS BLOB)")
    seal(acct)
    done = rowfs("check", acct, check=False)
    assert done.returncode == 1 and "is kept under two places\n" in done.stdout


def test_reading_commands_work_on_a_store_that_cannot_be_written(rowfs, acct, work):
    rowfs("import", acct, "acct/Tab", input=lines(*ROWS))
    os.chmod(acct, 0o400)
    assert exported(rowfs, acct, "acct/Tab") == ROWS
    rowfs("check", acct)
    rowfs("stat", acct)


# ---- the control channel ----

def test_commands_and_mount_see_each_other_at_once(rowfs, acct, mount):
    m = mount(acct)
    rowfs("import", acct, "acct/Tab", input=lines(*ROWS))
    assert json.loads((m / "acct/Tab/p/1.json").read_text())["A"] == 1
    (m / "acct/Tab/p/1.json").write_text('{"A": 2}\n')
    assert exported(rowfs, acct, "acct/Tab", "p")[0] == {
        "PartitionKey": "p", "RowKey": "1", "A": 2}
    rowfs("import", acct, "acct/Tab", "--mode=merge", input=lines({**ROWS[1], "A": 3}))
    assert json.loads((m / "acct/Tab/p/1.json").read_text())["A"] == 3
    rowfs("account", "remove", "-r", acct, "acct")
    assert os.listdir(m.path) == []


def test_a_store_is_found_by_any_of_its_names(rowfs, acct, mount, work):
    mount(acct)
    (work / "link").symlink_to(acct)
    assert rowfs("account", "list", "link", cwd=work).stdout == "acct\n"


def test_a_stranger_on_the_socket_is_not_believed(rowfs, acct):
    if os.geteuid() != 0:
        pytest.skip("needs root to become a stranger")
    st = os.stat(acct)
    name = f"\0rowfs-{st.st_dev:x}-{st.st_ino:x}"
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        s = socket.socket(socket.AF_UNIX)
        s.bind(name)
        s.listen()
        os.write(told, b"x")
        s.accept()
        time.sleep(30)
        os._exit(0)
    try:
        os.read(ready, 1)
        assert rowfs("account", "list", acct, timeout=20).stdout == "acct\n"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_nonsense_on_the_socket_harms_nobody(rowfs, acct, mount):
    mount(acct)
    st = os.stat(acct)
    for junk in (b"", b"x", b"\0" * 16, os.urandom(5000), b"\x72\x66\x73\x01" + b"\xff" * 12):
        s = socket.socket(socket.AF_UNIX)
        s.connect(f"\0rowfs-{st.st_dev:x}-{st.st_ino:x}")
        try:
            s.sendall(junk)
            s.shutdown(socket.SHUT_WR)
            assert s.recv(100) == b""
        except (ConnectionResetError, BrokenPipeError):
            pass
        s.close()
    assert rowfs("account", "list", acct).stdout == "acct\n"


def test_an_import_that_waits_for_input_does_not_hold_up_umount(rowfs, acct, mount):
    m = mount(acct)
    p = subprocess.Popen([rowfs.program, "import", acct, "acct/Tab"], env=ENV,
                         stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(lines(ROWS[0]).encode())
    p.stdin.flush()
    all_read(p.stdin)
    m.umount()
    assert b"cancelled" in p.stderr.read() and p.wait(60) == 1


def test_fifty_commands_at_once(rowfs, acct, mount):
    mount(acct)
    ps = []
    for i in range(50):
        p = subprocess.Popen([rowfs.program, "import", acct, f"acct/T{i % 5}aa"], env=ENV,
                             stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        p.stdin.write(lines({"PartitionKey": "p", "RowKey": str(i)}).encode())
        p.stdin.close()
        ps.append(p)
    assert [p.wait(60) for p in ps] == [0] * 50
    assert json.loads(rowfs("stat", "--json", acct).stdout)["rows"] == 50


# ---- mount, umount, and mount(8)'s helpers ----

def helper(*args, name="mount.rowfs"):
    path = HELPER
    return subprocess.run([name, *map(str, args)], executable=path, env=ENV, capture_output=True,
                          text=True, timeout=60)


@pytest.fixture
def at(work):
    path = work / "at"
    path.mkdir()
    yield path
    detach(path)


def test_mount_over_a_mount_of_ours_is_refused(rowfs, store, mount, work):
    m = mount(store)
    text = fails(rowfs, "mount", store, m.path)
    assert "already" in text and f"rowfs umount {m.path}" in text
    (work / "other").mkdir()
    for args in (("mount", store, work / "other"), ("serve", store, "--rest=127.0.0.1:0")):
        assert f"; unmount it with: rowfs umount '{m.path}'\n" in fails(rowfs, *args)


def test_mount_over_the_folder_of_the_store_is_refused(rowfs, store, work):
    need_fuse()
    assert "hide" in fails(rowfs, "mount", store, store.parent)
    assert not is_mount(store.parent)


def test_a_dead_mount_is_cleared_by_the_next_one(rowfs, acct, mount, at):
    m = mount(acct, at=at)
    m._watchdog.cancel()
    m.proc.kill()
    m.proc.wait()
    with pytest.raises(OSError):
        os.statvfs(at)
    rowfs("mount", acct, at)
    assert os.listdir(at) == ["acct"]
    rowfs("umount", at)
    assert not is_mount(at)


def test_umount_clears_a_dead_mount(rowfs, acct, mount, at):
    m = mount(acct, at=at)
    m._watchdog.cancel()
    m.proc.kill()
    m.proc.wait()
    rowfs("umount", at)
    assert not is_mount(at)


def test_umount_says_what_is_wrong(rowfs, store, mount, work):
    assert "nothing is mounted" in fails(rowfs, "umount", work)
    assert "No such file" in fails(rowfs, "umount", work / "none")
    assert "not a mount of rowfs" in fails(rowfs, "umount", "/proc")
    m = mount(store)
    fd = os.open(m.path, os.O_RDONLY)
    assert "fuser -vm" in fails(rowfs, "umount", m.path)
    os.close(fd)


def test_umount_returns_when_the_store_is_closed(rowfs, acct, at):
    need_fuse()
    for _ in range(10):
        rowfs("mount", acct, at)
        rowfs("import", acct, "acct/Tab", input=lines(*ROWS))
        rowfs("umount", at)
        assert sorted(os.listdir(acct.parent)) == ["at", acct.name]


def test_names_with_blanks(rowfs, acct, work):
    need_fuse()
    at = work / "a b\tc\\d"
    at.mkdir()
    rowfs("mount", acct, at)
    try:
        assert os.listdir(at) == ["acct"]
        rowfs("umount", at)
        assert not is_mount(at)
    finally:
        detach(at)


def test_log_goes_to_the_file_named(rowfs, acct, at, work):
    need_fuse()
    rowfs("mount", acct, at, "-o", f"log={work}/log")
    rowfs("umount", at)
    text = (work / "log").read_text()
    assert "serving" in text and "closed" in text


def test_systemd_is_told(rowfs, store, mount, work):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(str(work / "notify"))
    s.settimeout(20)
    ENV["NOTIFY_SOCKET"] = str(work / "notify")
    try:
        m = mount(store)
        assert s.recv(100) == b"READY=1"
        m.umount()
        assert s.recv(100) == b"STOPPING=1"
    finally:
        del ENV["NOTIFY_SOCKET"]
        s.close()


def test_the_helper_mounts_as_mount_8_calls_it(rowfs, acct, at):
    need_fuse()
    done = helper(acct, at, "-s", "-n", "-v", "-o",
                  "ro,noatime,noexec,nosuid,nodev,user,_netdev,nofail")
    assert done.returncode == 0, done.stderr
    with open("/proc/self/mountinfo") as f:
        line = next(line for line in f if f" {at} " in line)
    for word in ("ro", "noatime", "noexec", "nosuid", "nodev"):
        assert word in line.split()[5].split(",")
    assert f" fuse.rowfs {acct} " in line
    assert helper(at, "-v", name="/sbin/umount.fuse.rowfs").returncode == 0
    assert not is_mount(at)


def test_the_helpers_exit_codes_are_those_of_mount_8(rowfs, acct, at, work):
    need_fuse()
    assert helper(acct, at, "-f", "-o", "ro").returncode == 0 and not is_mount(at)
    for args in ((acct,), (acct, at, "x"), (acct, at, "-q"), (acct, at, "-o"),
                 (acct, at, "-o", "nonsense")):
        done = helper(*args)
        assert done.returncode == 1 and done.stderr, args
    for args in ((work / "none", at), (acct, work / "none")):
        done = helper(*args)
        assert done.returncode == 32 and done.stderr, args
    assert helper(at, name="umount.fuse.rowfs").returncode == 32
    assert not is_mount(at)


def test_an_export_that_fails_leaves_the_old_file(rowfs, store, work):
    rowfs("account", "add", store, "acct1")
    rowfs("import", store, "acct1/Tab", input='{"PartitionKey":"p","RowKey":"r","A":1}\n')
    out = work / "out.ndjson"
    out.write_text("old")
    out.chmod(0o640)
    assert rowfs("export", store, "acct1/None", "-o", out, check=False).returncode == 1
    assert out.read_text() == "old"
    # Nor does it leave a new one.
    new = work / "new.ndjson"
    assert rowfs("export", store, "acct1/None", "-o", new, check=False).returncode == 1
    assert not new.exists()
    rowfs("export", store, "acct1/Tab", "-o", new, umask=0o027)
    assert '"A":1' in new.read_text() and new.stat().st_mode & 0o777 == 0o640
    rowfs("export", store, "acct1/Tab", "-o", out)
    assert '"A":1' in out.read_text() and out.stat().st_mode & 0o777 == 0o640
    rowfs("export", store, "acct1/Tab", "-o", "/dev/null")
    link = work / "link.ndjson"
    link.symlink_to(out)
    out.write_text("old")
    rowfs("export", store, "acct1/Tab", "-o", link)
    assert link.is_symlink() and '"A":1' in out.read_text()
    done = rowfs("export", store, "acct1/Tab", "-o", store, check=False)
    assert done.returncode == 1 and "the store itself" in done.stderr
    assert rowfs("check", store).returncode == 0
    assert sorted(p.name for p in work.iterdir() if p.name.startswith("out")) == ["out.ndjson"]


def test_a_store_can_be_given_by_a_symbolic_link(rowfs, store, work, mount):
    link = work / "link.rowfs"
    link.symlink_to(store)
    rowfs("account", "add", link, "acct1")
    rowfs("import", link, "acct1/Tab", input='{"PartitionKey":"p","RowKey":"r","A":1}\n')
    assert '"A":1' in rowfs("export", store, "acct1/Tab").stdout
    m = mount(store)
    assert "acct1" in rowfs("account", "list", link).stdout  # through the process that serves it
    m.umount()
    m = mount(link)
    assert "acct1" in rowfs("account", "list", store).stdout


def test_closed_standard_streams_do_not_become_the_store(rowfs, store, work):
    before = store.read_bytes()[:100]
    mnt = work / "m"
    mnt.mkdir()
    program = str(rowfs.program)
    for closed in ("2>&-", "<&- >&- 2>&-"):
        subprocess.run(["sh", "-c", f"'{program}' mount '{store}' '{mnt}' {closed}"], check=True)
        busy = subprocess.run(["flock", "-n", str(store), "true"])
        assert busy.returncode == 1, "the store is not held while it is served"
        rowfs("umount", mnt)
        assert store.read_bytes()[:16] == before[:16]
        rowfs("check", store)
    holder = subprocess.Popen(["flock", str(store), "sleep", "30"])
    try:
        while subprocess.run(["flock", "-n", str(store), "true"]).returncode == 0:
            time.sleep(0.01)
        done = subprocess.run(["sh", "-c", f"'{program}' mount '{store}' '{mnt}' <&- >&- 2>&-"])
        assert done.returncode == 1
    finally:
        holder.kill()
        holder.wait()
        subprocess.run(["pkill", "-P", str(holder.pid)])


def test_commands_at_the_same_time_all_do_their_work(rowfs, store, work):
    rowfs("account", "add", store, "acct1")
    program = str(rowfs.program)
    for i in range(60):
        (work / f"r{i}.ndjson").write_text('{"PartitionKey":"p","RowKey":"%d"}\n' % i)
    done = subprocess.run(
        f"seq 0 59 | xargs -P6 -I{{}} '{program}' import '{store}' acct1/Tab '{work}'/r{{}}.ndjson",
        shell=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(rowfs("export", store, "acct1/Tab").stdout.splitlines()) == 60


def test_the_log_of_a_background_mount_is_where_its_name_says(rowfs, store, work):
    mnt = work / "m"
    mnt.mkdir()
    rowfs("mount", store, mnt, "-o", "log=my.log", cwd=work)
    rowfs("umount", mnt)
    assert "is closed" in (work / "my.log").read_text()


def test_a_csv_header_with_a_key_twice_is_refused(rowfs, store):
    rowfs("account", "add", store, "acct1")
    done = rowfs("import", store, "acct1/Tab", "--format", "csv", check=False,
                 input="PartitionKey,RowKey,a,PartitionKey\nP,r,1,2\n")
    assert done.returncode == 1 and "twice" in done.stderr


def test_stat_takes_the_directory_of_a_mount(rowfs, mount, store):
    rowfs("account", "add", store, "mine")
    assert json.loads(rowfs("stat", "--json", mount(store).path).stdout)["accounts"] == 1
    assert "is a directory" in fails(rowfs, "stat", store.parent)
