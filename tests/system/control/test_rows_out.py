# SPDX-License-Identifier: MIT
"""Whole tables and partitions as streams, read: .rows.ndjson and .rows.csv, and
`rowfs export`, which writes the same bytes."""

import csv
import io
import json
import os
import threading
import time

import pytest

from rest_client import ACCOUNT, Client, ok
from streams import awkward_rows, cpu_settles, fill, from_rest, high_water_kib, interrupted, lines
from tools import closes_are_known, get, need, put, raises, reason, sanitized, sh


@pytest.fixture
def both(rest_store, rest_mount):
    """A mount with both front ends, an empty table Tab, a client."""
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Tab"), 201)
        yield m, m / ACCOUNT / "Tab", client


def test_X1_every_row_with_its_keys_and_timestamp(both):
    m, tab, client = both
    awkward_rows(client, "Tab")
    put(tab / "p/as a file.json", '{ "Spaced" : 1.50,\n  "Int64@odata.type":"Edm.Int64",'
        ' "Int64":"5" }\n')
    put(tab / "p/notes.txt", "an ordinary file is no row")
    (tab / "empty partition").mkdir()
    rows = lines(get(tab / ".rows.ndjson"))
    assert rows == from_rest(client.all("Tab")) and len(rows) > 20
    assert all(list(r)[:3] == ["PartitionKey", "RowKey", "Timestamp"] for r in rows)
    for pk in {r["PartitionKey"] for r in rows}:
        here = [r for r in rows if r["PartitionKey"] == pk]
        name = "%_" if pk == "" else pk.replace("%", "%25")
        if len(os.fsencode(name)) <= 240:
            assert lines(get(tab / name / ".rows.ndjson")) == here
    assert get(tab / "empty partition/.rows.ndjson") == b""
    assert get(tab / "empty partition/.rows.csv") == b"PartitionKey,RowKey,Timestamp\r\n"


def test_X1_every_row_once_in_the_order_of_keys(both):
    m, tab, client = both
    for pk in ("b", "a", "\ufffd", "\U00010000"):
        for rk in ("2", "10", "1", "\ufffd", "\U0001F600"):
            ok(client.upsert("Tab", pk, rk, {"N": 1}))
    keys = [(r["PartitionKey"], r["RowKey"]) for r in lines(get(tab / ".rows.ndjson"))]
    assert keys == sorted(keys, key=lambda k: [s.encode("utf-16-be") for s in k])
    assert len(keys) == len(set(keys)) == 20


def test_X1_they_are_found_and_not_listed(both):
    m, tab, client = both
    ok(client.upsert("Tab", "p", "r", {"N": 1}))
    for directory in (tab, tab / "p"):
        for name in (".rows.ndjson", ".rows.csv"):
            st = os.stat(directory / name)
            assert st.st_size == len(get(directory / name)) and st.st_mode & 0o170444 == 0o100444
            assert name not in os.listdir(directory)
    assert sh(f"find '{tab}' -name '.rows*'").stdout == ""
    for elsewhere in (m / ".rows.ndjson", m / ACCOUNT / ".rows.csv"):
        with raises("ENOENT"):
            os.stat(elsewhere)
    assert get(tab / "p/.rows.csv").count(b"\r\n") == 2


def test_X2_csv_holds_what_ndjson_holds(both):
    m, tab, client = both
    awkward_rows(client, "Tab")
    text = get(tab / ".rows.csv").decode()
    table = list(csv.reader(io.StringIO(text, newline="")))
    head, body = table[0], table[1:]
    assert head[:3] == ["PartitionKey", "RowKey", "Timestamp"] and len(set(head)) == len(head)
    rows = lines(get(tab / ".rows.ndjson"))
    assert [(r[0], r[1], r[2]) for r in body] == [
        (r["PartitionKey"], r["RowKey"], r["Timestamp"]) for r in rows]
    for cells, row in zip(body, rows):
        assert len(cells) == len(head)
        names = {n for n in row if "@" not in n} - {"PartitionKey", "RowKey", "Timestamp"}
        typed = {h[:-5] for h, c in zip(head, cells) if h.endswith("@type") and c}
        assert typed == names
        for n in names:
            want = row[n]
            if isinstance(want, bool):
                want = str(want).lower()
            if isinstance(want, float):
                assert float(cells[head.index(n)]) == want
            else:
                assert cells[head.index(n)] == str(want)


@pytest.mark.parametrize("format", ["ndjson", "csv"])
def test_X3_export_writes_the_same_bytes(rowfs, both, format):
    m, tab, client = both
    awkward_rows(client, "Tab")
    target = f"{ACCOUNT}/Tab"
    out = m.path.parent / "out"
    rowfs("export", m.store, target, f"--format={format}", f"--output={out}")
    assert get(out) == get(tab / f".rows.{format}") != b""
    rowfs("export", m.store, target, "p", f"--format={format}", f"--output={out}")
    assert get(out) == get(tab / f"p/.rows.{format}") != b""
    while_served = get(tab / f".rows.{format}")
    m.umount()
    rowfs("export", m.store, target, f"--format={format}", f"--output={out}")
    assert get(out) == while_served
    m.start()


@pytest.mark.parametrize("format", ["ndjson", "csv"])
def test_X4_one_moment_while_writers_go_on(both, format):
    """a and b change together, in one change set; x changes before y, in another partition."""
    m, tab, client = both
    fill(m.rowfs, m.store, 8000, "p1")
    for rk in ("\x20a", "zb"):
        ok(client.upsert("Tab", "p1", rk, {"Pair": 0}))
    for pk in ("a-x", "z-y"):
        ok(client.upsert("Tab", pk, "r", {"Step": 0}))
    stop, problems = threading.Event(), []

    def write():
        try:
            with Client(m.port) as c:
                n = 0
                while not stop.is_set():
                    n += 1
                    ok(c.batch([("PUT", f"Tab(PartitionKey='p1',RowKey='{rk}')", {},
                                 {"Pair": n}) for rk in ("%20a", "zb")]), 202)
                    for pk in ("a-x", "z-y"):
                        ok(c.upsert("Tab", pk, "r", {"Step": n}))
        except BaseException as e:
            problems.append(e)

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    try:
        for _ in range(12):
            text = get(tab / f".rows.{format}").decode()
            if format == "ndjson":
                rows = [json.loads(x) for x in text.splitlines()]
            else:
                rows = list(csv.DictReader(io.StringIO(text, newline="")))
            assert len(rows) == 8004
            pairs = [int(r["Pair"]) for r in rows if r.get("Pair") not in (None, "")]
            x, y = [int(r["Step"]) for r in rows if r.get("Step") not in (None, "")]
            assert len(pairs) == 2 and pairs[0] == pairs[1] and y <= x <= y + 1
            seen.add(pairs[0])
    finally:
        stop.set()
        thread.join()
    assert not problems and len(seen) > 1


def test_X4_what_was_acknowledged_before_the_open_is_in_it(both):
    m, tab, client = both
    for n in range(50):
        ok(client.upsert("Tab", "p", "rest", {"N": n}))
        assert json.loads(get(tab / ".rows.ndjson"))["N"] == n
    (tab / "p/mount.json").write_text('{"N":"by file"}')
    assert len(lines(get(tab / "p/.rows.ndjson"))) == 2


def test_X5_offsets_are_those_of_one_text(both):
    m, tab, client = both
    fill(m.rowfs, m.store, 5000, "p")
    whole = get(tab / ".rows.ndjson")
    fd = os.open(tab / ".rows.ndjson", os.O_RDONLY)
    try:
        first = os.read(fd, 1000)
        ok(client.delete("Tab", "p", "0000000"))
        ok(client.upsert("Tab", "p", "0004999", {"n": -1}))
        assert first == whole[:len(first)] != b""
        for at in (400_000, 3, 131_072, 131_071, 0, 262_145, len(whole) - 5):
            piece = os.pread(fd, 100, at)
            assert piece == whole[at:at + len(piece)] != b""
        assert os.pread(fd, 100, len(whole)) == os.pread(fd, 100, 10 * len(whole)) == b""
        for _ in range(2):  # two passes by the same handle
            os.lseek(fd, 0, os.SEEK_SET)
            with os.fdopen(os.dup(fd), "rb") as f:
                assert f.read() == whole
    finally:
        os.close(fd)
    assert len(lines(get(tab / ".rows.ndjson"))) == 4999


def test_X5_tools_read_them_right(both):
    m, tab, client = both
    fill(m.rowfs, m.store, 3000, "p")
    name, out = tab / ".rows.ndjson", m.path.parent
    whole = get(name)
    sh(f"cat '{name}' > {out}/a; cp '{name}' {out}/b; dd if='{name}' of={out}/c bs=64k status=none"
       f"; sort '{name}' > {out}/d; tail -n +1 '{name}' > {out}/e; grep n '{name}' > {out}/f"
       f"; awk 1 '{name}' > {out}/g; head -n 3000 < '{name}' > {out}/h")
    for one in "abcdefgh":
        assert get(out / one) == whole, one
    assert sh(f"wc -l < '{name}'").stdout.strip() == "3000"
    assert sh(f"cat '{name}' | head -n 1").stdout == whole.decode().split("\n")[0] + "\n"
    assert sh(f"tail -n 1 '{name}'").stdout.endswith('"n":2999,"text":"some text of a row"}\n')
    assert sh(f"cmp '{name}' {out}/a; sha1sum < '{name}'").stdout == sh(f"sha1sum < {out}/a").stdout
    assert sum(1 for _ in open(name)) == 3000


def test_X5_jq_and_node_read_them(both):
    need("jq", "node")
    m, tab, client = both
    fill(m.rowfs, m.store, 3000, "p")
    name = tab / ".rows.ndjson"
    assert sh(f"jq -s 'map(.n)|add' '{name}'").stdout.strip() == str(2999 * 1500)
    script = f"console.log(require('fs').readFileSync('{name}').length)"
    assert sh(f"node -e \"{script}\"").stdout.strip() == str(len(get(name)))


def test_X6_memory_is_constant_and_the_first_row_comes_at_once(both):
    m, tab, client = both
    fill(m.rowfs, m.store, 200_000, "p")
    before = high_water_kib(m)
    assert sh(f"head -n 1 '{tab}/.rows.ndjson'").stdout.endswith('"n":0,"text":"some text of a row"}\n')
    cpu_settles(m)
    assert sh(f"wc -l < '{tab}/.rows.ndjson'").stdout.strip() == "200000"
    assert sh(f"wc -l < '{tab}/.rows.csv'").stdout.strip() == "200001"
    assert sh(f"cat '{tab}/.rows.ndjson' | head -n 1 | wc -l").stdout.strip() == "1"
    if not sanitized():
        assert high_water_kib(m) - before < 16 * 1024


def test_X7_ctrl_c_ends_the_first_look_of_a_csv_file(both):
    """Nothing is written before every row was looked at."""
    m, tab, client = both
    fill(m.rowfs, m.store, 200_000, "p")
    interrupted(m, ["cat", tab / ".rows.csv"])
    cpu_settles(m)
    assert sh(f"head -n 1 '{tab}/.rows.csv'").stdout == "PartitionKey,RowKey,Timestamp,n,n@type,text,text@type\n"


def test_X8_an_open_stream_outlives_its_rows(both):
    m, tab, client = both
    fill(m.rowfs, m.store, 5000, "p")
    whole = get(tab / ".rows.ndjson")
    with open(tab / ".rows.ndjson", "rb", buffering=0) as table, \
            open(tab / "p/.rows.ndjson", "rb", buffering=0) as part:
        first = table.read(10)
        ok(client.delete_table("Tab"))
        with raises("ENOENT"):
            os.stat(tab / ".rows.ndjson")
        assert first + b"".join(iter(lambda: table.read(1 << 20), b"")) == whole
        assert b"".join(iter(lambda: part.read(1 << 20), b"")) == whole


def test_X9_a_mount_that_is_read_only_has_them(rowfs, rest_store, mount):
    fill(rowfs, rest_store, 100, "p")
    m = mount(rest_store, "ro")
    assert len(lines(get(m / ACCOUNT / "Tab/.rows.ndjson"))) == 100
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
        with raises("EROFS"):
            os.close(os.open(m / ACCOUNT / "Tab/.rows.ndjson", flags))


def test_X10_a_stream_is_ended_when_the_log_has_grown_by_its_bound(rest_store, rest_mount):
    m = rest_mount(rest_store, "snapshot-log=1M")
    m.allow("was ended|ended")
    fill(m.rowfs, m.store, 20_000, "p")
    tab = m / ACCOUNT / "Tab"
    fd = os.open(tab / ".rows.ndjson", os.O_RDONLY)
    try:
        assert len(os.read(fd, 100)) == 100
        fill(m.rowfs, m.store, 20_000, "q")
        with raises("ESTALE"):
            for _ in range(10_000):  # its end is not at once
                os.pread(fd, 100, 2_000_000)
                os.pread(fd, 100, 0)
                time.sleep(0.01)
    finally:
        os.close(fd)
    assert "open for too long" in reason(tab / ".rows.ndjson")
    assert get(tab / ".rows.ndjson").count(b"\n") == 40_000  # the next one is not


def test_X10_64_streams_at_a_time(both):
    m, tab, client = both
    ok(client.upsert("Tab", "p", "r", {"N": 1}))
    fds = []
    try:
        for _ in range(64):
            fds.append(os.open(tab / ".rows.ndjson", os.O_RDONLY))
        for name in (".rows.ndjson", ".rows.csv", "p/.rows.csv", ".query/.count"):
            start = time.monotonic()
            with raises("EAGAIN"):
                os.open(tab / name, os.O_RDONLY)
            assert time.monotonic() - start >= 0.2
        assert "64 streams" in reason(tab / ".rows.ndjson")
        assert "64 streams" in reason(tab / ".query")
        done = m.rowfs("export", m.store, f"{ACCOUNT}/Tab", check=False)
        assert done.returncode == 1 and "64 streams" in done.stderr
        os.close(fds.pop())
        assert get(tab / ".query/.count") == b"1\n"
        assert all(os.read(fd, 1000).endswith(b'"N":1}\n') for fd in fds)
    finally:
        for fd in fds:
            os.close(fd)
    assert get(tab / ".rows.ndjson") != b""


def test_X10_who_opens_right_behind_a_close_gets_its_place(both):
    """A close is told to the daemon behind the caller's back."""
    m, tab, client = both
    ok(client.upsert("Tab", "p", "r", {"N": 1}))
    for _ in range(10):
        fds = [os.open(tab / ".rows.ndjson", os.O_RDONLY) for _ in range(64)]
        for i in range(64):
            os.close(fds[i])
            fds[i] = os.open(tab / ".rows.csv", os.O_RDONLY)
        for fd in fds:
            os.close(fd)
    head = f"head -n 1 '{tab}/.rows.ndjson'"
    for _ in range(3):
        closes_are_known(m)  # else more wait than may
        assert sh("&".join([head] * 64) + "; wait").stdout.count("\n") == 64


def test_X10_who_waits_for_a_place_keeps_nobody_from_reading(both):
    m, tab, client = both
    for i in range(100):
        ok(client.upsert("Tab", "p", f"r{i}", {"N": i}))
    fds = [os.open(tab / ".rows.ndjson", os.O_RDONLY) for _ in range(64)]
    stop, refused = threading.Event(), []

    def knock():
        while not stop.is_set():
            with raises("EAGAIN"):
                os.open(tab / ".rows.ndjson", os.O_RDONLY)
            refused.append(1)
    threads = [threading.Thread(target=knock) for _ in range(8)]
    for t in threads:
        t.start()
    try:
        took = []
        for _ in range(20):
            for fd in fds:
                start = time.monotonic()
                os.pread(fd, 1000, 0)
                took.append(time.monotonic() - start)
        assert sorted(took)[len(took) // 2] < 0.2  # what one waits who finds no place
    finally:
        stop.set()
        for t in threads:
            t.join()
        for fd in fds:
            os.close(fd)
    assert refused
