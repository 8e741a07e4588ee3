# SPDX-License-Identifier: MIT
"""rowfs compact: the space of removed rows goes back to the disk, of a store that is closed, or served
while others read and write it."""

import json
import os
import re
import subprocess
import termios
import threading

import pytest

from conftest import ENV
from tools import get, on_terminal, put

ROWS = 3000


def fill(rowfs, store):
    text = "x" * 1000
    lines = "".join(f'{{"PartitionKey":"{"gone" if i % 4 else "kept"}","RowKey":"{i}","t":"{text}"}}\n'
                    for i in range(ROWS))
    rowfs("account", "add", store, "acct")
    rowfs("import", store, "acct/Tab", input=lines)


def rows_of(rowfs, store):
    return rowfs("export", store, "acct/Tab").stdout


@pytest.fixture
def roomy(rowfs, store):
    """A store of which most is free inside."""
    fill(rowfs, store)
    rowfs("rm", "-ry", store, "acct/Tab/gone")
    return store


def test_BK8_a_closed_store_gives_freed_space_back(rowfs, roomy):
    before, rows = roomy.stat().st_size, rows_of(rowfs, roomy)
    told = json.loads(rowfs("compact", "--json", roomy).stdout)
    assert told["before"] >= before and told["after"] < before / 2
    assert roomy.stat().st_size < before / 2
    assert rows_of(rowfs, roomy) == rows
    assert rowfs("check", roomy).returncode == 0
    assert os.listdir(roomy.parent) == [roomy.name]
    assert oct(roomy.stat().st_mode & 0o777) == "0o600"
    again = json.loads(rowfs("compact", "--json", roomy).stdout)
    assert again["before"] == again["after"]


def test_AD15_compact_shows_bytes_a_second_and_the_time_left(rowfs, roomy):
    seen = on_terminal(rowfs, "compact", roomy)
    assert re.search(r"%  [\d.]+ [KM]iB  ([\d.]+ [KMG]iB|0 bytes)/s  \d+:\d\d left", seen), seen


def test_BK8_a_served_store_is_read_and_written_meanwhile(rowfs, roomy, mount):
    mnt = mount(roomy)
    part = mnt / "acct/Tab/kept"
    before = roomy.stat().st_size
    position = rowfs("watch", roomy, "acct/Tab", "--now").stdout.strip()
    held = open(part / "0.json", "rb")
    written, wrong = [], []
    stop = threading.Event()

    def write():
        while not stop.is_set() or not written:
            put(part / f"new{len(written)}.json", f'{{"n":{len(written)}}}')
            written.append(len(written))

    def read():
        while not stop.is_set():
            if len(get(part / "4.json")) < 1000:
                wrong.append("a row was not whole")

    threads = [threading.Thread(target=f) for f in (write, read)]
    for t in threads:
        t.start()
    told = rowfs("compact", roomy).stdout
    stop.set()
    for t in threads:
        t.join()
    assert "before" in told and not wrong
    assert len(held.read()) > 1000
    held.close()
    assert roomy.stat().st_size < before / 2
    assert [get(part / f"new{n}.json") for n in written] == [b'{"n":%d}' % n for n in written]
    changes = rowfs("watch", roomy, "acct/Tab", f"--from={position}", "--no-rows").stdout
    assert len(changes.splitlines()) == len(written), "the feed goes on"
    mnt.kill9()
    mnt.start()
    assert get(part / f"new{written[-1]}.json") == b'{"n":%d}' % written[-1]


def test_BK8_without_room_for_it_the_store_stays_as_it_is(rowfs, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, "acct")
    lines = "".join(f'{{"PartitionKey":"{"pq"[i % 2]}","RowKey":"{i}","t":"{"x" * 1000}"}}\n'
                    for i in range(2000))
    rowfs("import", store, "acct/Tab", input=lines)
    rowfs("rm", "-ry", store, "acct/Tab/p")
    rows = rows_of(rowfs, store)
    done = rowfs("compact", store, check=False)
    assert done.returncode == 1 and "No space is left" in done.stderr
    assert rows_of(rowfs, store) == rows
    assert rowfs("check", store).returncode == 0
    assert os.listdir(small_disk) == ["s.rowfs"]


def test_a_store_that_is_served_read_only_is_not_compacted(rowfs, roomy, mount):
    mount(roomy, "ro")
    done = rowfs("compact", "--quiet", roomy, check=False)
    assert done.returncode == 1 and "read-only" in done.stderr


def test_BK8_a_stopped_terminal_stops_no_writer(rowfs, roomy, mount):
    """Ctrl-S at the terminal that shows the progress."""
    part = mount(roomy) / "acct/Tab/kept"
    ours, theirs = os.openpty()
    termios.tcflow(theirs, termios.TCOOFF)
    with subprocess.Popen([rowfs.program, "compact", roomy], stdout=subprocess.PIPE, stderr=theirs, env=ENV) as p:
        writer = threading.Thread(target=put, args=(part / "meanwhile.json", '{"n":1}'))
        writer.start()
        writer.join(60)
        waits = writer.is_alive()
        termios.tcflow(theirs, termios.TCOON)
        writer.join()
        out = p.stdout.read()
        assert not waits and p.wait(60) == 0 and b"before" in out
    os.close(theirs)
    os.close(ours)
    assert get(part / "meanwhile.json") == b'{"n":1}'
