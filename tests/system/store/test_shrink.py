# SPDX-License-Identifier: MIT
"""A served store gives freed space back by itself: docs/semantics.md BK10."""

import concurrent.futures
import json
import os
import threading

import pytest

from old_schema import without_maps
from test_compact import fill, rows_of
from tools import get, put, wait_for


def wait_until_smaller(store, size):
    wait_for(lambda: store.stat().st_size < size)


@pytest.fixture
def large(rowfs, store):
    fill(rowfs, store)
    return store


def test_BK10_a_served_store_shrinks_after_a_removal(rowfs, large, mount):
    mnt = mount(large)
    before = large.stat().st_size
    rowfs("rm", "-ry", large, "acct/Tab/gone")
    rows = rows_of(rowfs, large)
    wait_until_smaller(large, before / 2)
    assert rows_of(rowfs, large) == rows
    mnt.kill9()
    assert rowfs("check", large).returncode == 0
    mnt.start()
    assert rows_of(rowfs, large) == rows


def test_BK10_it_shrinks_beside_a_writer_who_never_rests(rowfs, large, mount):
    part = mount(large) / "acct/Tab/kept"
    before = large.stat().st_size
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            n += 1
            put(part / "busy.json", f'{{"n":{n}}}')
        return n

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            rowfs("rm", "-ry", large, "acct/Tab/gone")
            wait_until_smaller(large, before / 2)
            assert not writer.done()
        finally:
            stop.set()
        n = writer.result()
    assert n > 0 and get(part / "busy.json") == b'{"n":%d}' % n


def test_BK10_a_snapshot_keeps_what_it_shows(rowfs, large, mount):
    mnt = mount(large)
    snapshot = mnt / ".rowfs/snapshots/before"
    snapshot.mkdir()
    before = large.stat().st_size
    rowfs("rm", "-ry", large, "acct/Tab/gone")
    assert len(get(snapshot / "acct/Tab/gone/1.json")) > 1000
    assert len(os.listdir(snapshot / "acct/Tab/gone")) > 2000
    wait_for(lambda: not json.loads(get(mnt / ".rowfs/stats.json"))["store"]["reclaiming"])
    assert large.stat().st_size >= before
    snapshot.rmdir()
    wait_until_smaller(large, before / 2)


def test_BK10_a_store_of_an_older_rowfs_shrinks_after_its_first_compaction(rowfs, large, mount):
    without_maps(large)
    rows = rows_of(rowfs, large)
    assert rowfs("check", large).returncode == 0
    rowfs("compact", large)
    assert rows_of(rowfs, large) == rows
    before = large.stat().st_size
    mount(large)
    rowfs("rm", "-ry", large, "acct/Tab/gone")
    wait_until_smaller(large, before / 2)
