# SPDX-License-Identifier: MIT
"""The throttle for testing clients: partition-target=N.

The seconds are the server's, and one may end at any moment.  So a test that wants a partition
to refuse tires it out right before, and where that was in vain it tries again; and of how
much is admitted a test knows only the most.
"""

import errno
import json
import os
import time

import pytest

from rest_client import ACCOUNT, KEY, Client, ok
from tools import errors, get, put, reason, rejected, rows, sh

# A second that ends between tiring the partition out and the attempt is rare.
TRIES = 40


@pytest.fixture
def slow(rest_mount, rest_store):
    """A mount with both front ends and a target of 5, and a table."""
    m = rest_mount(rest_store, "partition-target=5")
    (m / ACCOUNT / "Tab").mkdir()
    return m


@pytest.fixture
def tab(slow):
    return slow / ACCOUNT / "Tab"


@pytest.fixture
def client(slow):
    with Client(slow.port) as c:
        yield c


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")


def tire(client, pk="p", table="Tab"):
    """Asks the partition until it refuses."""
    for _ in range(1000):
        if client.get(table, pk, "none").status == 503:
            return
    pytest.fail(f"{table}/{pk} never refuses")


def refuses(client, code, attempt, undo=None):
    """attempt() fails with this errno while the partition p is tired."""
    for _ in range(TRIES):
        tire(client)
        try:
            attempt()
        except OSError as e:
            assert e.errno == code, e
            return
        if undo:
            once_rested(undo)
    pytest.fail("was never refused")


def once_rested(act):
    """What a client does that was told to come again."""
    wait = 0.01
    while True:
        try:
            return act()
        except BlockingIOError:
            time.sleep(wait)
            wait = min(2 * wait, 0.3)


def rest_once_rested(act, *statuses):
    wait = 0.01
    while True:
        r = act()
        if r.status != 503:
            return ok(r, *statuses)
        time.sleep(wait)
        wait = min(2 * wait, 0.3)


def seconds_since(start):
    """How many seconds of the server's clock can have been touched at most."""
    return int(time.monotonic() - start) + 2


# ---- H2: what is refused


def test_H2_a_partition_admits_its_target_each_second(client):
    start, done, refused = time.monotonic(), 0, 0
    for i in range(100):
        r = client.insert("Tab", {"PartitionKey": "p", "RowKey": str(i)})
        if r.status == 503:
            assert r.code == "ServerBusy" and r.message.startswith(
                "The server is currently unable to receive requests. Please retry your request.")
            assert "'p'" in r.message and "5 entities a second" in r.message
            refused += 1
        else:
            ok(r)
            done += 1
    assert 5 <= done <= 5 * seconds_since(start) and refused == 100 - done
    assert len(rest_once_rested(lambda: client.query("Tab"), 200).rows) == done


def test_H2_reads_and_changes_of_both_front_ends_share_the_target(client, tab):
    (tab / "p").mkdir()
    once_rested(lambda: put(tab / "p/r.json", "{}"))
    start, done = time.monotonic(), 0
    for i in range(40):
        done += client.get("Tab", "p", "r").status == 200
        done += client.upsert("Tab", "p", "r", {}).status == 204
        for act in (lambda: get(tab / "p/r.json"), lambda: put(tab / "p/r.json", "{}")):
            try:
                act()
                done += 1
            except BlockingIOError:
                pass
    assert done <= 5 * seconds_since(start)


def test_H2_other_partitions_and_tables_are_not_concerned(client, tab, slow):
    tire(client)
    assert client.get("Tab", "q", "none").status == 404
    ok(client.create_table("Other"))
    assert client.get("Other", "p", "none").status == 404
    (tab / "q").mkdir()
    put(tab / "q/r.json", "{}")


@pytest.mark.parametrize("verb", ["insert", "upsert", "upsert_merge", "replace", "merge", "delete"])
def test_H2_every_change_over_rest_is_refused(client, verb):
    def change():
        if verb == "insert":
            return client.insert("Tab", {"PartitionKey": "p", "RowKey": "new"})
        if verb == "delete":
            return client.delete("Tab", "p", "r")
        return getattr(client, verb)("Tab", "p", "r", {"n": 2})

    for _ in range(TRIES):
        before = rest_once_rested(lambda: client.upsert("Tab", "p", "r", {"n": 1}))
        tire(client)
        r = change()
        if r.status == 503:
            break
        rest_once_rested(lambda: client.delete("Tab", "p", "new"), 204, 404)
    assert r.code == "ServerBusy"
    found, = rest_once_rested(lambda: client.query("Tab"), 200).rows
    assert (found["RowKey"], found["n"]) == ("r", 1)
    assert rest_once_rested(lambda: client.get("Tab", "p", "r")).etag == before.etag


def test_H2_a_query_is_refused_where_it_begins_and_ends_where_it_comes_to(client):
    rest_once_rested(lambda: client.upsert("Tab", "a", "r", {}))
    rest_once_rested(lambda: client.upsert("Tab", "p", "r", {}))
    for _ in range(TRIES):
        tire(client)
        if client.query("Tab", filter="PartitionKey eq 'p'").status == 503:
            break
    else:
        pytest.fail("was never refused")
    for _ in range(TRIES):
        tire(client)
        r = client.query("Tab")
        if r.status == 503:
            continue  # a is tired of it too
        if r.token:
            break
    else:
        pytest.fail("was never ended")
    assert [row["PartitionKey"] for row in r.rows] == ["a"]
    # The token leads on, once the partition is rested.
    rest = rest_once_rested(lambda: client.request(
        "GET", "Tab()?" + "&".join(f"{k}={v}" for k, v in r.token.items())))
    assert [row["PartitionKey"] for row in rest.rows] == ["p"] and not rest.token


def test_H2_the_mount_says_EAGAIN(client, tab):
    (tab / "p").mkdir()
    (tab / "q").mkdir()
    row, file = tab / "p/r.json", tab / "p/file"

    def make():
        put(row, '{"n": 1}')

    def make_both():
        make()
        file.write_text('{"a": 1}')

    once_rested(make)
    again = errno.EAGAIN
    refuses(client, again, lambda: get(row))
    refuses(client, again, lambda: put(row, '{"n": 2}'), make)
    refuses(client, again, lambda: put(tab / "p/new.json", "{}"),
            lambda: (tab / "p/new.json").unlink())
    refuses(client, again, lambda: row.unlink(), make)
    refuses(client, again, lambda: os.rename(row, tab / "p/other.json"),
            lambda: os.rename(tab / "p/other.json", row))
    refuses(client, again, lambda: os.rename(row, tab / "q/r.json"),
            lambda: os.rename(tab / "q/r.json", row))
    once_rested(make_both)
    refuses(client, again, lambda: os.rename(file, row), make_both)
    assert file.read_text() == '{"a": 1}'
    assert once_rested(lambda: get(row)) == b'{"n": 1}'
    assert rows(tab / "p") == ["file", "r.json"] and rows(tab / "q") == []


def test_H2_a_refused_rename_counts_in_neither_partition(client, tab, slow):
    for pk in "pq":
        (tab / pk).mkdir()
    row = tab / "p/r.json"
    once_rested(lambda: put(row, "{}"))
    refused = moved = 0
    for _ in range(TRIES):
        tire(client)
        try:
            os.rename(row, tab / "q/r.json")
        except BlockingIOError:
            refused += 1
            if refused == 5:
                break
        else:
            once_rested(lambda: os.rename(tab / "q/r.json", row))
            moved += 2
    assert refused == 5
    hot = json.loads(get(slow / ".rowfs/stats.json"))["hottest_partitions"]
    # A move back that was refused because of p counts nowhere either.
    changed = {p["partition_key"]: p["changed_per_second"] for p in hot}
    assert changed.get("q", 0) == moved * 100 // 60 / 100


def test_H2_a_query_in_a_batch_is_refused_as_a_whole(client):
    """As a change set is: clients come again for the status of the answer."""
    rest_once_rested(lambda: client.upsert("Tab", "p", "r", {}))
    for path in ("Tab(PartitionKey='p',RowKey='r')", "Tab()?$filter=PartitionKey%20eq%20'p'"):
        for _ in range(TRIES):
            tire(client)
            r = client.batch([("GET", path, {}, None)], change_set=False)
            if r.status == 503:
                break
        assert r.code == "ServerBusy"


def test_H2_what_was_let_in_at_its_open_is_committed(client, tab, slow):
    (tab / "p").mkdir()
    for name in ("r.json", "new.json"):
        row = tab / "p" / name
        if name == "r.json":
            once_rested(lambda: put(row, '{"n": 1}'))
        for i in range(2):
            fd = once_rested(lambda: os.open(row, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            os.write(fd, b'{"n": %d}' % i)
            tire(client)
            os.close(fd)
            assert once_rested(lambda: get(row)) == b'{"n": %d}' % i
    assert not rejected(slow)


def test_H2_a_later_close_is_refused_and_keeps_the_bytes(client, tab, slow):
    (tab / "p").mkdir()
    row = tab / "p/r.json"
    for _ in range(TRIES):
        fd = once_rested(lambda: os.open(row, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        os.write(fd, b'{"n": 1}')
        os.fsync(fd)
        os.pwrite(fd, b'{"n": 2}', 0)
        tire(client)
        try:
            os.close(fd)
        except BlockingIOError:
            break
    else:
        pytest.fail("was never refused")
    assert "ServerBusy" in reason(row)
    assert once_rested(lambda: get(row)) == b'{"n": 1}'
    assert b'{"n": 2}' in rejected(slow).values()


def test_H2_the_reason_can_be_read(client, tab, slow):
    (tab / "p").mkdir()
    once_rested(lambda: put(tab / "p/r.json", "{}"))
    refuses(client, errno.EAGAIN, lambda: get(tab / "p/r.json"))
    assert reason(tab / "p/r.json").startswith("ServerBusy: The partition 'p' is at its target")
    assert errors(slow)[-1]["code"] == "ServerBusy"


def test_H2_refusals_are_counted_and_fill_no_log(client, slow, tab):
    (tab / "p").mkdir()
    once_rested(lambda: put(tab / "p/r.json", "{}"))
    refused = 0
    for _ in range(200):
        refused += client.get("Tab", "p", "r").status == 503
        try:
            get(tab / "p/r.json")
        except BlockingIOError:
            refused += 1
    stats = json.loads(get(slow / ".rowfs/stats.json"))
    assert stats["partition_target"] == 5 and stats["throttled"] >= refused > 0
    assert stats["operations"]["rest"]["QueryEntity"]["failed"] > 0
    assert stats["operations"]["mount"]["open"]["failed"] > 0
    assert "ServerBusy" not in slow.log()


def test_H2_the_server_without_a_mount(serve, rest_store):
    server = serve(rest_store, "--partition-target=2")
    with Client(server.port) as client:
        ok(client.create_table("Tab"))
        start = time.monotonic()
        done = sum(client.get("Tab", "p", "r").status == 404 for _ in range(50))
        assert 2 <= done <= 2 * seconds_since(start)


# ---- H3: change sets


@pytest.mark.parametrize("target", [1, 50, 99])
def test_H3_a_change_set_gets_through_whole_whatever_the_target(rest_mount, rest_store, target):
    m = rest_mount(rest_store, f"partition-target={target}")
    with Client(m.port) as client:
        ok(client.create_table("Tab"))
        start, sets = time.monotonic(), 0
        for k in range(12):
            r = client.batch([("POST", "Tab", {}, {"PartitionKey": "p", "RowKey": f"{k}-{i}"})
                              for i in range(100)])
            if r.status == 503:
                assert r.code == "ServerBusy", r
            else:
                ok(r, 202)
                sets += 1
        assert 1 <= sets <= seconds_since(start)
        found = rest_once_rested(lambda: client.query("Tab", top=1), 200)
        assert len(found.rows) == 1
        hot = json.loads(get(m / ".rowfs/stats.json"))["hottest_partitions"][0]
        assert hot["changed_per_second"] == sets * 100 * 100 // 60 / 100


def test_H3_a_change_set_through_the_mount(client, tab):
    (tab / "p").mkdir()
    set_ = json.dumps([{"upsert": {"RowKey": str(i)}} for i in range(100)])
    once_rested(lambda: put(tab / "p/.batch", set_))
    refuses(client, errno.EAGAIN, lambda: put(tab / "p/.batch", set_))
    refuses(client, errno.EAGAIN,
            lambda: put(tab / "p/.batch", '[{"delete": {"RowKey": "1"}}]'),
            lambda: put(tab / "p/.batch", set_))
    assert len(rows(tab / "p")) == 100


# ---- H4: what is not refused


def test_H4_listings_and_attributes_are_not_refused(client, tab):
    (tab / "p").mkdir()
    once_rested(lambda: put(tab / "p/r.json", "{}"))
    for _ in range(5):
        tire(client)
        assert rows(tab / "p")
        os.stat(tab / "p/r.json")
        os.utime(tab / "p/r.json")
        os.getxattr(tab / "p/r.json", "user.rowfs.etag")
        (tab / "p/note.txt").write_text("x")
        (tab / "p/note.txt").read_text()
        assert "p" in os.listdir(tab)


def test_H4_import_export_and_checks_are_not_refused(client, tab, slow, rowfs):
    (tab / "p").mkdir()
    lines = "".join(json.dumps({"PartitionKey": "p", "RowKey": str(i)}) + "\n"
                    for i in range(2000))
    tire(client)
    rowfs("import", slow.store, f"{ACCOUNT}/Tab", input=lines)
    tire(client)
    assert rowfs("export", slow.store, f"{ACCOUNT}/Tab").stdout.count("\n") == 2000
    tire(client)
    rowfs("check", slow.store)
    rowfs("stat", slow.store)


def test_H4_streams_are_not_refused(client, tab):
    (tab / "p").mkdir()
    lines = "".join(json.dumps({"RowKey": str(i)}) + "\n" for i in range(500))
    tire(client)
    put(tab / "p/.rows.ndjson", lines)
    tire(client)
    assert get(tab / "p/.rows.ndjson").count(b"\n") == 500


def test_H4_a_check_of_a_change_set_is_not_refused(client, tab):
    (tab / "p").mkdir()
    for _ in range(5):
        tire(client)
        put(tab / "p/.batch-check", '[{"insert": {"RowKey": "1"}}]')
    assert not rows(tab / "p")


def test_H4_renaming_a_partition_is_not_refused(client, tab):
    (tab / "p").mkdir()
    once_rested(lambda: put(tab / "p/r.json", "{}"))
    tire(client)
    os.rename(tab / "p", tab / "q")
    assert get(tab / "q/r.json") == b"{}"
    # It is refused under its new key then.
    for _ in range(TRIES):
        tire(client, "q")
        try:
            get(tab / "q/r.json")
        except BlockingIOError:
            return
    pytest.fail("was never refused")


# ---- H5: clients that come again


def test_H5_the_sdk_gets_through(serve, rest_store):
    tables = pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    from azure.core.credentials import AzureNamedKeyCredential
    server = serve(rest_store, "--partition-target=8")
    with tables.TableServiceClient(
            server.url(ACCOUNT), credential=AzureNamedKeyCredential(ACCOUNT, KEY),
            retry_backoff_factor=0.2) as service:
        table = service.create_table("Tab")
        for i in range(18):
            table.create_entity({"PartitionKey": "p", "RowKey": str(i), "n": i})
        for kind in ("upsert", "delete"):
            table.submit_transaction([(kind, {"PartitionKey": "p", "RowKey": f"s{i}"})
                                      for i in range(10)])
        assert table.get_entity("p", "7")["n"] == 7
        assert len(list(table.query_entities("PartitionKey eq 'p'"))) == 18


def test_H5_the_sdk_that_does_not_come_again_is_told(serve, rest_store):
    tables = pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    from azure.core.credentials import AzureNamedKeyCredential
    from azure.core.exceptions import HttpResponseError
    server = serve(rest_store, "--partition-target=1")
    with tables.TableServiceClient(
            server.url(ACCOUNT), credential=AzureNamedKeyCredential(ACCOUNT, KEY),
            retry_total=0) as service:
        table = service.create_table("Tab")
        with pytest.raises(HttpResponseError) as told:
            for i in range(100):
                table.upsert_entity({"PartitionKey": "p", "RowKey": "r"})
        assert told.value.status_code == 503 and told.value.error_code == "ServerBusy"
        with pytest.raises(HttpResponseError) as told:
            for i in range(100):
                table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": "r"})])
        assert told.value.status_code == 503


def test_H5_a_shell_with_backoff_gets_through(tab):
    (tab / "p").mkdir()
    sh(r"""
        for i in $(seq 8); do
            wait=1
            until echo "{\"n\": $i}" > "p/$i.json"; do
                sleep "0.$(printf %02d $wait)"
                wait=$((wait < 32 ? wait * 2 : wait))
            done 2> /dev/null
        done
        test "$(ls p | wc -l)" = 8
    """, cwd=tab)


def test_H5_shells_with_backoff_at_once_get_through(tab):
    """They are told at the open, since they do not look at what close says."""
    (tab / "p").mkdir()
    sh(r"""
        for k in 1 2 3 4; do
            for i in $(seq 5); do
                until echo "{\"n\": $i}" > "p/$k-$i.json"; do
                    sleep "0.0$((RANDOM % 9 + 1))"
                done 2> /dev/null
            done &
        done
        wait
    """, cwd=tab)
    for k in range(1, 5):
        for i in range(1, 6):
            assert once_rested(lambda: get(tab / f"p/{k}-{i}.json")) == b'{"n": %d}\n' % i


# ---- H6: the option


@pytest.mark.parametrize("options", [(), ("partition-target=0",)])
def test_H6_off_unless_asked_for(rest_mount, rest_store, options):
    m = rest_mount(rest_store, *options)
    with Client(m.port) as client:
        ok(client.create_table("Tab"))
        for i in range(300):
            assert client.get("Tab", "p", "r").status == 404


@pytest.mark.parametrize("value", ["", "x", "-1", "5x", "4294967296", " 1"])
def test_H6_what_is_no_number_is_refused(rowfs, store, work, value):
    (work / "mnt").mkdir()
    done = rowfs("mount", store, work / "mnt", "-o", f"partition-target={value}", check=False)
    assert done.returncode == 2 and "partition-target" in done.stderr
    done = rowfs("serve", store, "--rest=127.0.0.1:0", f"--partition-target={value}", check=False)
    assert done.returncode != 0 and "partition-target" in done.stderr


def test_H6_the_largest_number(mount, store):
    m = mount(store, "partition-target=4294967295")
    assert json.loads(get(m / ".rowfs/stats.json"))["partition_target"] == 4294967295
