# SPDX-License-Identifier: MIT
""".changes of tables and partitions: what cat(1) shows, how a read waits for the next change, and how
reading goes on behind a position."""

import json
import os
import subprocess
import threading

import pytest

from test_virtual import as_nobody
from tools import get, put, raises, sh


def told(text):
    return [(c["kind"], c["PartitionKey"], c.get("RowKey"))
            for c in map(json.loads, text.splitlines())]


@pytest.fixture
def begun(part):
    """A partition whose feed has begun."""
    assert get(part / ".changes") == b""
    return part


def test_CF5_a_read_gives_the_changes_that_are_kept_and_ends(begun):
    put(begun / "1.json", '{"n":1}')
    os.mkdir(begun.parent / "other")
    put(begun.parent / "other/2.json", '{"n":2}')
    os.unlink(begun / "1.json")
    pk = begun.name
    text = get(begun.parent / ".changes")
    assert told(text) == [("put", pk, "1"), ("put", "other", "2"), ("delete", pk, "1")]
    assert told(get(begun / ".changes")) == [("put", pk, "1"), ("delete", pk, "1")]
    assert json.loads(text.splitlines()[1])["row"]["n"] == 2
    assert ".changes" not in os.listdir(begun)


def test_CF5_small_reads_give_the_same_bytes(begun):
    for i in range(300):
        put(begun / f"{i}.json", f'{{"n":{i}}}')
    fd = os.open(begun / ".changes", os.O_RDONLY)
    text = b""
    while more := os.read(fd, 97):
        text += more
    os.close(fd)
    assert text == get(begun / ".changes") and len(told(text)) == 300


def test_CF5_a_read_after_the_end_waits_for_a_change(begun):
    put(begun / "1.json", "{}")
    fd = os.open(begun / ".changes", os.O_RDONLY)
    try:
        assert told(os.read(fd, 65536)) == [("put", begun.name, "1")]
        assert os.read(fd, 65536) == b"", "the end, once"
        got = []
        reader = threading.Thread(target=lambda: got.append(os.read(fd, 65536)))
        reader.start()
        # A change elsewhere wakes nobody for good.
        os.mkdir(begun.parent / "other")
        put(begun.parent / "other/x.json", "{}")
        assert got == []
        put(begun / "2.json", "{}")
        reader.join(60)
        assert told(got[0]) == [("put", begun.name, "2")]
    finally:
        os.close(fd)


def test_CF5_a_loop_in_the_shell_sees_each_change_once(begun):
    with subprocess.Popen(
            ["bash", "-c", f"exec 3<'{begun}/.changes'; cat <&3; echo ready; "
             "for i in 1 2; do cat <&3 | jq -r .RowKey; done"],
            stdout=subprocess.PIPE) as loop:
        assert loop.stdout.readline() == b"ready\n"
        for name in ("a", "b"):
            put(begun / f"{name}.json", "{}")
            assert loop.stdout.readline() == f"{name}\n".encode()


def test_CF5_a_position_that_is_written_is_where_reading_goes_on(begun):
    for name in ("1", "2", "3"):
        put(begun / f"{name}.json", "{}")
    first = json.loads(get(begun / ".changes").splitlines()[0])["position"]
    shown = sh(f"exec 3<>.changes; echo {first} >&3; cat <&3", cwd=begun).stdout
    assert told(shown) == [("put", begun.name, "2"), ("put", begun.name, "3")]
    with raises("EINVAL"):
        put(begun / ".changes", "yesterday")


def test_CF3_a_position_that_is_gone_is_refused_in_the_mount(begun):
    fd = os.open(begun / ".changes", os.O_RDWR)
    os.write(fd, b"1000-1")
    with raises("ESTALE"):
        os.read(fd, 100)
    os.close(fd)


def test_a_reader_of_changes_goes_back_no_further_than_its_lines(begun):
    put(begun / "1.json", "{}")
    fd = os.open(begun / ".changes", os.O_RDONLY)
    assert os.read(fd, 10) == os.pread(fd, 10, 0)
    with raises("EINVAL"):
        os.pread(fd, 10, 1 << 20)
    os.close(fd)


def test_a_reader_of_changes_is_interrupted_and_a_removed_directory_ends_it(begun):
    reader = subprocess.Popen(
        ["bash", "-c", "exec 3<.changes; cat <&3; echo ready; cat <&3"], cwd=begun,
        stdout=subprocess.PIPE, start_new_session=True)
    assert reader.stdout.readline() == b"ready\n"
    os.killpg(reader.pid, 15)
    assert reader.wait(60) == -15
    fd = os.open(begun.parent / ".changes", os.O_RDONLY)
    assert os.read(fd, 100) == b""
    os.rmdir(begun)
    os.rmdir(begun.parent)
    with raises("ESTALE"):
        os.read(fd, 100)
    os.close(fd)


def test_other_users_see_no_changes(mount, store, work):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    work.chmod(0o755)
    part = mount(store, "allow_other").path / "acct1/Blogs/p"
    part.mkdir(parents=True)
    assert as_nobody(lambda: os.open(part / ".changes", os.O_RDONLY)) == 1
