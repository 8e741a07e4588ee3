# SPDX-License-Identifier: MIT
"""rowfs top: what a serving process is doing (AD7 in docs/operating.md)."""

import json
import os
import re
import signal
import subprocess
import threading

import pytest

from conftest import ENV
from rest_client import Client, ok


@pytest.fixture
def busy(serve, rest_store):
    """A server, and a client that reads and misses a row until the test ends."""
    server = serve(rest_store, "--rest=127.0.0.1:0")
    stop = threading.Event()
    with Client(server.port) as c:
        ok(c.create_table("Posts"), 201)
        ok(c.upsert("Posts", "p", "r", {"N": 1}), 204)

        def work():
            while not stop.is_set():
                ok(c.get("Posts", "p", "r"), 200)
                ok(c.get("Posts", "p", "missing"), 404)

        thread = threading.Thread(target=work)
        thread.start()
        yield rest_store
        stop.set()
        thread.join()


def test_AD7_a_second_as_json(rowfs, busy):
    told = json.loads(rowfs("top", busy, "--once", "--json").stdout)
    gets = next(o for o in told["operations"] if o["operation"] == "QueryEntity")
    assert gets["front_end"] == "rest" and gets["per_second"] > 2
    assert gets["refused_per_second"] == pytest.approx(gets["per_second"] / 2, abs=2)
    assert gets["failed_per_second"] == 0 and 0 < gets["p50_us"] <= gets["p99_us"]
    assert [p["partition_key"] for p in told["hottest_partitions"]] == ["p"]
    assert told["bytes"] > told["log_bytes"] > 0
    caches = told["memory"]["caches"]
    assert caches["pages"] > 0 and caches["names"] > 0 and caches["rows"] == 0, "no mount has rows"
    assert told["memory"]["bytes"] > sum(caches.values())


def test_AD7_a_second_as_text(rowfs, busy):
    shown = rowfs("top", busy, "--once").stdout
    assert "\033" not in shown
    words = next(line.split() for line in shown.splitlines() if "QueryEntity" in line)
    assert words[:2] == ["rest", "QueryEntity"] and int(words[2]) > 2 and int(words[-2]) > 0
    assert "hottest partitions" in shown and "/Posts/p" in shown
    size = r"[\d.]+ (bytes|[KMG]iB)"
    assert re.search(rf"^memory {size}; caches: pages {size}, rows 0 bytes, names {size}, partition_keys {size}$", shown, re.M)


def test_AD7_each_second_until_a_signal(rowfs, busy):
    with subprocess.Popen([rowfs.program, "top", busy, "--json"], stdout=subprocess.PIPE, env=ENV,
                          text=True) as p:
        for _ in range(2):
            assert json.loads(p.stdout.readline())["operations"]
        p.send_signal(signal.SIGINT)
        p.stdout.read()
        assert p.wait(60) == 0


@pytest.mark.parametrize("option, clears", (("--json", False), ("--no-clear", False), (None, True)))
def test_AD7_only_a_terminal_is_cleared(rowfs, busy, option, clears):
    ours, theirs = os.openpty()
    shown = b""
    with subprocess.Popen([rowfs.program, "top", busy, *filter(None, [option])], stdout=theirs,
                          env=ENV) as p:
        os.close(theirs)
        while shown.count(b"QueryEntity") < 2:
            shown += os.read(ours, 65536)
        p.send_signal(signal.SIGTERM)
        p.wait(60)
    os.close(ours)
    assert (b"\033[H" in shown) == clears


def test_AD7_an_idle_server(rowfs, serve, rest_store):
    serve(rest_store, "--rest=127.0.0.1:0")
    assert "nobody asked for anything in this second" in rowfs("top", rest_store, "--once").stdout


def test_AD7_a_store_that_nobody_serves(rowfs, store):
    done = rowfs("top", store, check=False)
    assert done.returncode == 1 and "nobody serves" in done.stderr and "rowfs serve" in done.stderr
