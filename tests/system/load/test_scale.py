# SPDX-License-Identifier: MIT
"""Many rows: a large partition, and removing beside listing.

ROWFS_SCALE divides the sizes: 1 is a million rows."""

import os
import subprocess
import sys
import threading

import pytest

from streams import cpu_ticks
from tools import get, rows, sanitized, sh

pytestmark = pytest.mark.slow
SCALE = int(os.environ.get("ROWFS_SCALE", "20" if sanitized() else "4"))
ROWS = 1_000_000 // SCALE
MIB = 1024


def fill(rowfs, store, n, partition="p"):
    """n rows through `rowfs import`, streamed."""
    script = (f"for i in range({n}): print('{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"%07d\","
              "\"n\":%d,\"text\":\"some text of a row\"}' % (i, i))")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as source:
        done = subprocess.run([str(rowfs.program), "import", str(store), "acct1/Tab"],
                              stdin=source.stdout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_T5_a_large_partition(rowfs, store, mount):
    rowfs("account", "add", store, "acct1")
    fill(rowfs, store, ROWS)
    m = mount(store)
    part = m / "acct1/Tab/p"
    os.stat(part / "0000000.json")
    before = m.rss_kib()

    start = cpu_ticks(m)
    with os.scandir(part) as entries:
        next(entries)
        begun = cpu_ticks(m) - start
    start = cpu_ticks(m)
    assert sh(f"ls -f '{part}' | wc -l", timeout=300).stdout.strip() == str(ROWS + 2)
    assert begun <= 2 + (cpu_ticks(m) - start) // 4, "a listing starts at once"
    listed = m.rss_kib() - before
    assert sh(f"ls '{part}' | tail -n 1", timeout=300).stdout == f"{ROWS - 1:07}.json\n"

    n = 0
    with os.scandir(part) as entries:
        for entry in entries:
            st = entry.stat()
            assert st.st_size > 30 and st.st_ino == entry.inode()
            n += 1
            if n == 100_000:
                break
    grown = m.rss_kib() - before
    print(f"RSS {before} KiB, {listed} more after ls -f, {grown} more after stat of {n}")
    if not sanitized():
        assert listed <= 16 * MIB // SCALE and grown <= 16 * MIB // SCALE
    with open(part / f"{ROWS // 2:07}.json") as f:
        assert f'"n":{ROWS // 2}' in f.read()


def test_Q8_queries_and_streams_of_a_large_partition(rowfs, store, mount):
    rowfs("account", "add", store, "acct1")
    fill(rowfs, store, ROWS)
    m = mount(store)
    table = m / "acct1/Tab"
    before, after = m.rss_kib(), []
    for name in (".query/n ge 0.ndjson", ".rows.ndjson") * 2:
        after.append(m.rss_kib())
        with open(table / name, "rb", buffering=0) as f:
            first = f.read(1 << 20)
            # What it has is given, and not all is read first.
            assert first.startswith(b'{"PartitionKey":"p","RowKey":"0000000"')
            assert 0 < len(first) <= 1 << 20 < ROWS * 80
            read_bytes, lines = len(first), first.count(b"\n")
            while piece := f.read(1 << 20):
                read_bytes += len(piece)
                lines += piece.count(b"\n")
        assert lines == ROWS and read_bytes > ROWS * 80
    again = m.rss_kib()
    assert sh("head -n 1 '.query/n ge 0.ndjson' | jq .n", cwd=table).stdout == "0\n"
    assert get(table / f".query/n eq {ROWS - 1}.count") == b"1\n"
    assert os.listdir(table / f".query/n eq {ROWS - 1}/p") == [f"{ROWS - 1:07}.json"]
    print(f"RSS {before} KiB, {after[2]} after two streams, {again} after four")
    if not sanitized():
        # The caches of the connections and threads that took part; what was read is far more.
        assert again - before <= 16 * MIB
        assert min(again - after[3], after[3] - after[2]) <= 4 * MIB


def test_rm_r_while_another_process_lists(rowfs, store, mount):
    rowfs("account", "add", store, "acct1")
    n = 100_000 // SCALE
    fill(rowfs, store, n, "gone")
    fill(rowfs, store, 500, "stays")
    m = mount(store)
    table, stop, counts = m / "acct1/Tab", threading.Event(), []

    def listen():
        while not stop.is_set():
            out = subprocess.run(["ls", "-f", str(table / "gone")], capture_output=True, text=True)
            names = [x for x in out.stdout.split("\n") if x.endswith(".json")]
            assert len(names) == len(set(names)), "a name twice in one listing"
            counts.append(len(names))
            if len(counts) > 2:
                subprocess.run(["find", str(table), "-size", "+9k"], capture_output=True)

    failures = []
    thread = threading.Thread(target=lambda: _try(listen, failures))
    thread.start()
    done = sh(f"rm -r '{table}/gone'", check=False, timeout=240)
    stop.set()
    thread.join()
    assert done.returncode == 0, done.stderr[:500]
    assert rows(table) == ["stays"] and len(rows(table / "stays")) == 500
    assert not failures and len(counts) > 1, failures
    assert counts[0] > counts[-1]


def _try(function, failures):
    try:
        function()
    except BaseException as e:
        failures.append(e)
