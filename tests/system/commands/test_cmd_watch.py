# SPDX-License-Identifier: MIT
"""rowfs watch: the changes of rows as lines, in the order of their commits, with positions to go on from.
A reader that applies the lines to a copy of the rows has the rows."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import pytest

from conftest import ENV
from rest_client import ACCOUNT, KEY, Client, ok
from tools import need, on_terminal, put, renameat2

RENAME_EXCHANGE = 2
TABLE = f"{ACCOUNT}/Posts"


def lines(rowfs, store, *options, path=TABLE):
    done = rowfs("watch", store, path, *options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def position_now(rowfs, store, path=TABLE):
    return rowfs("watch", store, path, "--now").stdout.strip()


def told(changes):
    return [(c["kind"], c["PartitionKey"], c.get("RowKey")) for c in changes]


def refused(rowfs, store, position, text):
    done = rowfs("watch", store, TABLE, f"--from={position}", check=False)
    assert done.returncode == 1 and done.stdout == "" and text in done.stderr
    return done.stderr


@pytest.fixture
def posts(rowfs, rest_store):
    """A store with a table, whose feed has begun."""
    rowfs("put", rest_store, f"{TABLE}/p/1.json", input='{"n":0}')
    position_now(rowfs, rest_store)
    return rest_store


class Follower:
    """`rowfs watch --follow` as a worker has it."""

    def __init__(self, rowfs, store, *options, before=()):
        self.proc = subprocess.Popen(
            [*before, str(rowfs.program), "watch", str(store), TABLE, "--follow", *options], env=ENV,
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def line(self):
        return json.loads(self.proc.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.terminate()
        self.proc.communicate()


def test_CF1_every_change_of_a_row_is_a_line_in_the_order_of_the_commits(
        rowfs, posts, rest_mount, work):
    mnt = rest_mount(posts)
    rest = Client(mnt.port)
    table = mnt / TABLE
    put(table / "p/1.json", '{"n":1}')
    ok(rest.insert("Posts", {"PartitionKey": "p", "RowKey": "2", "n": 2}), 201)
    ok(rest.merge("Posts", "p", "2", {"m": 2}), 204)
    os.rename(table / "p/2.json", table / "p/3.json")
    put(table / "p/.batch", '[{"upsert":{"RowKey":"a","n":1}},{"delete":{"RowKey":"3"}}]')
    rowfs("import", posts, TABLE, input='{"PartitionKey":"q","RowKey":"x","n":9}\n')
    put(table / "p/b.tmp", '{"n":4}')
    os.rename(table / "p/b.tmp", table / "p/b.json")
    os.rename(table / "p/b.json", table / "p/beside.txt")
    os.unlink(table / "p/a.json")
    ok(rest.delete("Posts", "q", "x"), 204)
    changes = lines(rowfs, posts)
    assert told(changes) == [
        ("put", "p", "1"), ("put", "p", "2"), ("put", "p", "2"),
        ("delete", "p", "2"), ("put", "p", "3"), ("put", "p", "a"), ("delete", "p", "3"),
        ("put", "q", "x"), ("put", "p", "b"), ("delete", "p", "b"), ("delete", "p", "a"),
        ("delete", "q", "x")]
    assert changes[0]["row"]["n"] == 1, "the row is as it is"
    assert changes[1]["row"] is None, "a later line tells of it"
    assert changes[0]["etag"] == rest.get("Posts", "p", "1").etag
    assert "row" not in changes[-1] and "etag" not in changes[-1]
    times = [c["time"].rstrip("Z") for c in changes]  # without zeros at their ends
    assert times == sorted(times)
    assert told(lines(rowfs, posts, path=f"{TABLE}/q")) == [("put", "q", "x"), ("delete", "q", "x")]


def test_CF1_two_rows_that_exchange_names_are_told_so_that_a_copy_is_right(rowfs, posts, mount):
    table = mount(posts) / TABLE
    put(table / "p/2.json", '{"n":2}')
    renameat2(table / "p/1.json", table / "p/2.json", RENAME_EXCHANGE)
    assert told(lines(rowfs, posts))[-4:] == [
        ("delete", "p", "1"), ("delete", "p", "2"), ("put", "p", "2"), ("put", "p", "1")]


def test_CF1_what_changes_no_row_is_no_line(rowfs, posts, mount):
    table = mount(posts) / TABLE
    put(table / "p/notes.txt", "x")
    put(table / "p/empty.json", "")
    os.chmod(table / "p/1.json", 0o600)
    os.unlink(table / "p/empty.json")
    os.unlink(table / "p/notes.txt")
    os.mkdir(table / "q")
    os.rmdir(table / "q")
    with pytest.raises(OSError):
        put(table / "p/1.json", "{bad")
    assert lines(rowfs, posts) == []


def test_CF1_a_line_has_the_row_of_its_own_change_or_none(rowfs, posts, mount):
    table = mount(posts) / TABLE
    put(table / "p/1.json", '{"n":1}')
    put(table / "p/1.json", '{ "n": 2 }')
    first, second = lines(rowfs, posts)
    assert first["row"] is None and first["etag"] != second["etag"]
    assert second["row"].pop("Timestamp") == second["time"]
    assert second["row"] == {"PartitionKey": "p", "RowKey": "1", "n": 2,
                             "Timestamp@odata.type": "Edm.DateTime"}


def test_CF2_reading_goes_on_behind_a_position_over_a_restart_and_a_kill(rowfs, posts, mount):
    mnt = mount(posts)
    for i in range(3):
        put(mnt / TABLE / f"p/{i}.json", f'{{"n":{i}}}')
    first = lines(rowfs, posts, "--no-rows")
    assert told(first) == [("put", "p", str(i)) for i in range(3)]
    assert "row" not in first[0]
    assert told(lines(rowfs, posts, f"--from={first[0]['position']}")) == told(first[1:])
    mnt.kill9()
    mnt.start()
    put(mnt / TABLE / "p/9.json", "{}")
    mnt.remount()
    after = lines(rowfs, posts, f"--from={first[1]['position']}", "--no-rows")
    assert told(after) == [("put", "p", "2"), ("put", "p", "9")]
    assert after[0] == first[2]
    assert lines(rowfs, posts, f"--from={after[-1]['position']}") == []


def test_CF2_a_reader_sees_each_change_of_many_writers_once(rowfs, posts, rest_mount):
    mnt = rest_mount(posts)
    seen = {}

    def write(worker):
        with Client(mnt.port) as rest:
            for i in range(40):
                ok(rest.upsert("Posts", f"w{worker}", str(i % 5), {"n": i}), 204)

    writers = [threading.Thread(target=write, args=(w,)) for w in range(4)]
    with Follower(rowfs, posts, "--no-rows") as follower:
        for w in writers:
            w.start()
        for _ in range(160):
            change = follower.line()
            assert change["position"] not in seen
            seen[change["position"]] = change
        for w in writers:
            w.join()
    rest = Client(mnt.port)
    for worker in range(4):
        mine = [c for c in seen.values() if c["PartitionKey"] == f"w{worker}"]
        assert [c["RowKey"] for c in mine] == [str(i % 5) for i in range(40)]
        assert mine[-1]["etag"] == rest.get("Posts", f"w{worker}", "4").etag
    assert list(seen.values()) == lines(rowfs, posts, "--no-rows")


def test_CF3_a_position_that_is_not_of_this_store_is_refused(rowfs, posts, work):
    rowfs("backup", posts, work / "copy.rowfs")
    rowfs("put", posts, f"{TABLE}/p/lost.json", input="{}")
    lost = lines(rowfs, posts)[-1]["position"]
    shutil.copyfile(work / "copy.rowfs", posts)
    refused(rowfs, posts, lost, "PositionGone")
    # The number is used again, for another change.
    rowfs("put", posts, f"{TABLE}/p/other.json", input="{}")
    assert lines(rowfs, posts)[-1]["position"].split("-")[0] == lost.split("-")[0]
    refused(rowfs, posts, lost, "read the rows anew")


def test_CF3_a_position_from_before_the_feed_began_is_refused(rowfs, posts):
    refused(rowfs, posts, "0-1", "PositionGone")
    for bad in ("", "17", "-5", "x-1", "99999999999999999999-1"):
        refused(rowfs, posts, bad, "A position is a text such as")


def test_CF4_a_partition_that_is_renamed_or_removed_is_one_line(rowfs, posts, mount):
    table = mount(posts) / TABLE
    os.rename(table / "p", table / "new")
    assert told(lines(rowfs, posts)) == [("delete", "p", None), ("put", "new", None)]
    assert told(lines(rowfs, posts, path=f"{TABLE}/new")) == [("put", "new", None)]
    rowfs("rm", "-r", posts, f"{TABLE}/new")
    assert told(lines(rowfs, posts))[2:] == [("delete", "new", None)]


def test_a_table_that_is_gone_ends_the_reader(rowfs, posts, rest_mount):
    mnt = rest_mount(posts)
    with Follower(rowfs, posts) as follower:
        put(mnt / TABLE / "p/1.json", "{}")
        assert follower.line()["kind"] == "put"
        ok(Client(mnt.port).delete_table("Posts"), 204)
        out, err = follower.proc.communicate(timeout=60)
        assert follower.proc.returncode == 1 and b"TableNotFound" in err


def test_a_shell_loop_reacts_to_rows(rowfs, posts, mount):
    mnt = mount(posts)
    with subprocess.Popen(
            ["bash", "-c", f"{rowfs.program} watch {posts} {TABLE} --now --follow | "
             "while read -r line; do jq -r .kind <<< $line; done"],
            env=ENV, stdout=subprocess.PIPE, start_new_session=True) as loop:
        assert loop.stdout.readline() == b"position\n", "it is ready"
        put(mnt / TABLE / "p/1.json", '{"n":5}')
        assert loop.stdout.readline() == b"put\n"
        os.unlink(mnt / TABLE / "p/1.json")
        assert loop.stdout.readline() == b"delete\n"
        os.killpg(loop.pid, 15)


def test_a_follower_of_a_quiet_table_is_told_positions(rowfs, posts, mount):
    mount(posts)
    with Follower(rowfs, posts, "--now") as follower:
        assert follower.line()["kind"] == "position"
        many = "".join(f'{{"PartitionKey":"p","RowKey":"{i}"}}\n' for i in range(1000))
        rowfs("import", posts, f"{ACCOUNT}/Others", input=many)
        line = follower.line()
        assert line["kind"] == "position"
    assert lines(rowfs, posts, f"--from={line['position']}") == []


def test_a_person_is_told_that_the_stream_begins(rowfs, rest_store):
    rowfs("put", rest_store, f"{TABLE}/p/1.json", input='{"n":0}')
    assert "--follow waits" in on_terminal(rowfs, "watch", rest_store, TABLE)
    rowfs("put", rest_store, f"{TABLE}/p/2.json", input='{"n":0}')
    assert on_terminal(rowfs, "watch", rest_store, TABLE) == ""
    rowfs("import", rest_store, f"{ACCOUNT}/Others", "--quiet", input="")
    assert rowfs("watch", rest_store, f"{ACCOUNT}/Others").stderr == ""


def test_a_signal_ends_a_follower_well(rowfs, posts, mount):
    mount(posts)
    with Follower(rowfs, posts, "--now") as follower:
        follower.line()
        follower.proc.send_signal(signal.SIGINT)
        assert follower.proc.wait(60) == 0 and follower.proc.stderr.read() == b""


def test_a_signal_ends_a_follower_well_that_has_not_read_the_answer_yet(rowfs, posts, mount, monkeypatch):
    """The first line is there before the follower reads that its request was taken."""
    need("strace")
    mount(posts)
    # LeakSanitizer does not work in a program that is traced.
    monkeypatch.setitem(ENV, "ASAN_OPTIONS", "detect_leaks=0:exitcode=99")
    slow = ["strace", "-qq", "-o/dev/null", "-etrace=recvfrom",
            "-einject=recvfrom:delay_enter=2000000:when=1"]
    with Follower(rowfs, posts, "--now", before=slow) as follower:
        follower.line()
        pid = follower.proc.pid
        child = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text())
        os.kill(child, signal.SIGINT)
        assert follower.proc.wait(60) == 0 and follower.proc.stderr.read() == b""


def test_only_a_served_store_is_followed(rowfs, posts):
    done = rowfs("watch", posts, TABLE, "--follow", check=False)
    assert done.returncode == 1 and "nobody serves" in done.stderr
    assert rowfs("watch", posts, TABLE, "--now", "--from=1-1", check=False).returncode == 2
    assert "TableNotFound" in rowfs("watch", posts, f"{ACCOUNT}/None", check=False).stderr


# ---- of a rowfs elsewhere ----


@pytest.fixture
def remote(rowfs, posts, serve, work):
    """watch(path, ...) by a URL, as from another machine."""
    port = serve(posts, "--rest=127.0.0.1:0").port
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    file = work / "connection"
    file.write_text(f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={url}")
    file.chmod(0o600)

    def watch(*options, path=TABLE, **kw):
        return rowfs("watch", url, path, f"--connection-string={file}", *options, **kw)

    watch.command = [str(rowfs.program), "watch", url, TABLE, f"--connection-string={file}"]
    watch.rest = Client(port)
    return watch


def test_CF2_a_rowfs_elsewhere_gives_the_same_lines(rowfs, posts, remote):
    at = remote("--now").stdout.strip()
    assert at == position_now(rowfs, posts)
    for i in range(200):
        ok(remote.rest.upsert("Posts", f"p {i % 2}", str(i), {"n": i}), 204)
    ok(remote.rest.delete("Posts", "p 1", "7"), 204)
    for options in ([], ["--no-rows"], [f"--from={at}"]):
        assert remote(*options).stdout == rowfs("watch", posts, TABLE, *options).stdout != ""
    one = remote(path=f"{TABLE}/p 1").stdout
    assert one == rowfs("watch", posts, f"{TABLE}/p 1").stdout and len(one.splitlines()) == 101
    done = remote("--from=0-1", check=False)
    assert done.returncode == 1 and "PositionGone" in done.stderr
    assert "TableNotFound" in remote(path=f"{ACCOUNT}/None", check=False).stderr


def test_a_rowfs_elsewhere_is_followed(remote):
    follower = subprocess.Popen([*remote.command, "--now", "--follow"], env=ENV,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert json.loads(follower.stdout.readline())["kind"] == "position"
        for name in ("a", "b"):
            ok(remote.rest.upsert("Posts", "p", name, {}), 204)
            assert json.loads(follower.stdout.readline())["RowKey"] == name
    finally:
        follower.terminate()
        follower.communicate()
