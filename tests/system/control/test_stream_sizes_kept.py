# SPDX-License-Identifier: MIT
"""Sizes of streams that were asked for once, while rows change: each change moves a size by its row, or
has the stream counted again."""

import json
import os
import random
import time

import pytest

from rest_client import ACCOUNT, Client, ok
from streams import awkward_rows, fill
from tools import get, put, sh

LONG = "k" * 300  # a key that does not fit into a file name: the document has it


@pytest.fixture
def both(rest_store, rest_mount):
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        for table in ("Tab", "Other"):
            ok(client.create_table(table), 201)
            ok(client.upsert(table, "p", "r", {"N": 1}))
            ok(client.upsert(table, "q", "r", {"N": 1}))
        yield m, m / ACCOUNT / "Tab", client


STREAMS = (".rows.ndjson", ".rows.csv", "p/.rows.ndjson", "p/.rows.csv", "q/.rows.ndjson",
           ".query/.csv",
           ".query/N ge 1.ndjson", ".query/N ge 1.json", ".query/select=N.csv", ".query/.json",
           ".query/PartitionKey eq 'p'.ndjson", ".query/top=3.ndjson", ".query/.explain",
           "../Other/.rows.ndjson", "../Other/p/.rows.csv")


def header(ndjson):
    """That of these rows as CSV."""
    names = {name: None for line in ndjson.splitlines() for name in json.loads(line)
             if not name.endswith("@odata.type")}
    keys = ("PartitionKey", "RowKey", "Timestamp")
    return ",".join([*keys, *(f"{n},{n}@type" for n in names if n not in keys)]).encode()


def check(tab, what):
    texts = {}
    for name in STREAMS:
        path = tab / name
        if not path.parent.exists() and ".query" not in name:
            continue
        fd = os.open(path, os.O_RDONLY)  # before anything is read of it
        try:
            size = os.fstat(fd).st_size
            text = b"".join(iter(lambda: os.read(fd, 1 << 17), b""))
        finally:
            os.close(fd)
        assert size == len(text), f"{name} after {what}"
        texts[name] = text
        if name.endswith(".rows.csv") and name[:-4] + ".ndjson" in texts:
            want = header(texts[name[:-4] + ".ndjson"])
            assert text.split(b"\r\n")[0] == want, f"{name} after {what}"


def steps(tab, client):
    """Name and change, each once."""
    def by_rest(name, call):
        return name, lambda: ok(call())
    yield by_rest("an insert", lambda: client.upsert("Tab", "p", "new", {"N": 2, "S": "täxt\n"}))
    yield by_rest("a longer document", lambda: client.upsert("Tab", "p", "new", {"S": "x" * 5000}))
    yield by_rest("no property", lambda: client.upsert("Tab", "p", "new", {}))
    yield by_rest("a merge", lambda: client.merge("Tab", "p", "new", {"M": 1}))
    yield by_rest("a delete", lambda: client.delete("Tab", "p", "new"))
    yield by_rest("a new partition", lambda: client.upsert("Tab", "it's \"new\"", "r", {"N": 1}))
    yield by_rest("its end", lambda: client.delete("Tab", "it's \"new\"", "r"))
    yield by_rest("a long key", lambda: client.upsert("Tab", "p", LONG, {"N": 1}))
    yield by_rest("its change", lambda: client.upsert("Tab", "p", LONG, {"N": 12345}))
    yield by_rest("its delete", lambda: client.delete("Tab", "p", LONG))
    yield "every type", lambda: awkward_rows(client, "Tab")
    for i in range(3):
        client.upsert("Other", "p", f"o{i}", {"N": i})
    yield "a file", lambda: put(tab / "p/f.json", ' { "N" : 1.50,\n "B":true }\n')
    yield "a file with keys", lambda: put(tab / "p/f.json", '{"RowKey":"f","N":7,"PartitionKey":"p"}')
    yield "an append", lambda: sh(f"echo ' ' >> '{tab}/p/f.json'")
    yield "an empty file", lambda: sh(f": > '{tab}/p/empty.json'")
    yield "an empty file's document", lambda: put(tab / "p/empty.json", '{"N":3}')
    yield "mv", lambda: os.rename(tab / "p/f.json", tab / "p/g.json")
    yield "mv over a row", lambda: os.rename(tab / "p/empty.json", tab / "p/g.json")
    yield "mv to another partition", lambda: os.rename(tab / "p/g.json", tab / "q/g.json")
    yield "mv to another table", lambda: os.rename(tab / "q/g.json", tab.parent / "Other/p/g.json")
    yield "an ordinary file", lambda: put(tab / "p/notes.txt", '{"N":44}')
    yield "which becomes a row", lambda: os.rename(tab / "p/notes.txt", tab / "p/n.json")
    yield "and one no more", lambda: os.rename(tab / "p/n.json", tab / "p/n.txt")
    yield "sed -i", lambda: (put(tab / "p/s.json", '{"N":1}'), sh(f"sed -i s/1/1234/ '{tab}/p/s.json'"))
    yield "rm", lambda: os.unlink(tab / "p/s.json")
    yield "an import", lambda: put(tab / "p/.rows.ndjson", "".join(
        f'{{"RowKey":"i{i % 70}","N":{i}}}\n' for i in range(100)))
    yield "a set", lambda: put(tab / "q/.batch", '{"upsert":{"RowKey":"b","N":5}}\n'
                               '{"delete":{"RowKey":"r"}}\n')
    yield "mv of a partition", lambda: os.rename(tab / "q", tab / "q2")
    yield "and back", lambda: os.rename(tab / "q2", tab / "q")
    yield "rm -r of a partition", lambda: sh(f"rm -r '{tab}/q'")
    yield "mv of a table", lambda: (os.rename(tab, tab.parent / "Tab2"),
                                    os.rename(tab.parent / "Tab2", tab))
    yield by_rest("Delete Table", lambda: client.delete_table("Other"))


def test_X11_sizes_follow_every_change(both):
    m, tab, client = both
    check(tab, "the begin")
    for what, change in steps(tab, client):
        change()
        if (tab.parent / "Other").exists():
            check(tab, what)


def test_X11_sizes_after_random_changes(both):
    m, tab, client = both
    r = random.Random(5)
    check(tab, "the begin")
    for i in range(150):
        pk, rk = r.choice(("p", "q", "ü")), f"r{r.randrange(12)}"
        if r.random() < 0.35:
            client.delete("Tab", pk, rk)
        elif r.random() < 0.5:
            client.upsert("Tab", pk, rk, {f"N{r.randrange(4)}": r.randrange(10 ** r.randrange(9))})
        else:
            (tab / pk).mkdir(exist_ok=True)
            put(tab / pk / f"{rk}.json", '{"A":"%s"}%s' % ("é" * r.randrange(30), "\n" * r.randrange(2)))
        if i % 5 == 0:
            check(tab, f"change {i}")


def ask(path):
    """The size that fstat(2) tells, and how long that took."""
    start = time.monotonic()
    with open(path, "rb", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        return size, time.monotonic() - start


def test_X11_a_commit_has_no_stream_counted_again(rowfs, store, mount):
    """Neither for fstat(2) nor for stat(2); and the first byte that cat reads does not wait."""
    m = mount(store)
    (m / ACCOUNT / "Tab").mkdir(parents=True)
    fill(rowfs, store, 200_000, "p")
    path = m / ACCOUNT / "Tab/.rows.ndjson"
    first, counted = ask(path)
    query = m / ACCOUNT / "Tab/.query/n lt 150000.ndjson"
    spent = []
    for _ in range(4):  # while its table does not change
        start = time.monotonic()
        assert os.stat(query).st_size > 10_000_000
        spent.append(time.monotonic() - start)
        with open(query, "rb") as f:  # another node each time
            f.read(10)
    assert min(spent[1:]) < spent[0] / 5
    again = []
    for i in range(30):
        put(m / ACCOUNT / f"Tab/p/x{i}.json", '{"n":1}')
        size, spent = ask(path)
        again.append(spent)
        assert size > first and os.stat(path).st_size == size
        first = size
    assert sorted(again)[15] < counted / 5
    assert len(get(path)) == first


def test_X11_a_csv_file_looks_for_its_columns_once(rowfs, store, mount):
    """Until rows change: then the header has the new columns."""
    m = mount(store)
    tab = m / ACCOUNT / "Tab"
    tab.mkdir(parents=True)
    fill(rowfs, store, 100_000, "p")

    def first_line():
        start = time.monotonic()
        with open(tab / ".rows.csv", "rb", buffering=0) as f:
            return f.read(200).split(b"\r\n")[0], time.monotonic() - start
    line, looked = first_line()
    again = [first_line() for _ in range(5)]
    assert {line} == {said for said, _ in again} and min(spent for _, spent in again) < looked / 5
    put(tab / "p/x.json", '{"Other":1}')
    assert first_line()[0] == line + b",Other,Other@type"
    os.unlink(tab / "p/x.json")
    assert first_line()[0] == line


def test_X11_a_clean_end_keeps_the_sizes(rowfs, store, mount):
    """The next mount counts nothing."""
    m = mount(store)
    tab = m / ACCOUNT / "Tab"
    tab.mkdir(parents=True)
    fill(rowfs, store, 200_000, "p")
    paths = tab / ".rows.ndjson", tab / "p/.rows.ndjson"
    counted = [ask(path)[1] for path in paths]
    for end in (m.umount, m.sigterm):
        put(tab / f"p/{end.__name__}.json", '{"n":1}')
        end()
        m.start()
        asked = [ask(path) for path in paths]
        assert all(spent < first / 5 for (_, spent), first in zip(asked, counted))
        assert [size for size, _ in asked] == [len(get(path)) for path in paths]


def test_X11_sizes_are_right_after_changes_without_the_mount(rowfs, rest_store, rest_mount, serve):
    """An import, a server, a kill: what the last mount kept is not used."""
    m = rest_mount(rest_store)
    tab = m / ACCOUNT / "Tab"
    tab.mkdir(parents=True)
    put(tab / ".rows.ndjson", "".join(
        f'{{"PartitionKey":"{pk}","RowKey":"{i}","N":{i}}}\n' for pk in "pq" for i in range(50)))
    check(tab, "the begin")
    m.umount()
    rowfs("import", rest_store, f"{ACCOUNT}/Tab", input='{"PartitionKey":"p","RowKey":"1","N":12345}\n')
    m.start()
    check(tab, "an import")
    m.umount()
    s = serve(rest_store)
    with Client(s.port) as client:
        ok(client.delete("Tab", "q", "7"))
    s.stop()
    m.start()
    check(tab, "a server's delete")
    put(tab / "p/7.json", '{"S":"longer"}')
    m.kill9()
    m.start()
    check(tab, "a kill")
    os.rename(tab / "q", tab / "q2")
    m.umount()
    assert "clean" in rowfs("check", rest_store).stdout
    m.start()
    check(tab, "a rename")
