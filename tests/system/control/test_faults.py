# SPDX-License-Identifier: MIT
"""Faults on order: requests of the REST socket that fail because a rule says so."""

import http.client
import json
import os
import signal
import subprocess
import time

import pytest

from blob_client import Blobs
from queue_client import Queues, code
from rest_client import ACCOUNT, KEY, Client, entity_path, fails, ok
from tools import get, put, raises, reason, sh

JSON = {"Content-Type": "application/json"}
HUNG_UP = (http.client.RemoteDisconnected, ConnectionResetError)


@pytest.fixture
def m(rest_mount, rest_store):
    m = rest_mount(rest_store)
    (m / ACCOUNT / "Tab").mkdir()
    (m / ACCOUNT / "Other").mkdir()
    return m


@pytest.fixture
def client(m):
    with Client(m.port) as c:
        yield c


@pytest.fixture
def queues(m):
    q = Queues(m.port, host=f"{ACCOUNT}.queue.localhost")
    assert q.ask("PUT", "/jobs").status == 201
    return q


def order(m, *rules):
    put(m / ".rowfs/faults", "".join(rule + "\n" for rule in rules))


def rules(m):
    """The rules that hold, without what is said behind them."""
    return [line.split(" #")[0] for line in get(m / ".rowfs/faults").decode().splitlines()]


def insert(client, rk, table="Tab"):
    return client.insert(table, {"PartitionKey": "p", "RowKey": rk})


def names(m, table="Tab"):
    return sorted(p.name for p in (m / ACCOUNT / table).rglob("*.json"))


# ---- what a client gets


def test_H7_busy_refuses_and_does_nothing(m, client):
    order(m, "fault=busy table=Tab op=insert count=2")
    fails(insert(client, "1"), 503, "ServerBusy")
    ok(insert(client, "1", "Other"), 201)
    ok(client.get("Tab", "p", "none"), 404)
    fails(insert(client, "1"), 503, "ServerBusy")
    assert names(m) == [] and rules(m) == []
    ok(insert(client, "1"), 201)


def test_H7_lost_is_done(m, client):
    order(m, "fault=lost table=Tab count=1")
    fails(insert(client, "1"), 500, "InternalError")
    assert names(m) == ["1.json"]
    fails(insert(client, "1"), 409, "EntityAlreadyExists")


def test_H7_closed_is_done_and_has_no_answer(m, client):
    order(m, "fault=closed table=Tab op=insert count=1")
    with pytest.raises(HUNG_UP):
        insert(client, "1")
    assert names(m) == ["1.json"]
    fails(insert(client, "1"), 409, "EntityAlreadyExists")


def test_H7_timeout_waits_and_does_nothing(m, client):
    order(m, "fault=timeout wait=0.7 table=Tab op=insert count=1")
    began = time.monotonic()
    fails(insert(client, "1"), 500, "OperationTimedOut")
    assert time.monotonic() - began >= 0.7
    assert names(m) == []
    ok(insert(client, "1"), 201)


def test_H7_any_fault_can_come_late(m, client):
    order(m, "fault=lost wait=0.5 op=insert count=1", "fault=busy wait=0.5 op=query count=1")
    began = time.monotonic()
    fails(insert(client, "1"), 500, "InternalError")
    fails(client.get("Tab", "p", "1"), 503, "ServerBusy")
    assert time.monotonic() - began >= 1
    assert names(m) == ["1.json"]


def test_H7_a_table_is_being_deleted_for_a_while(m, client):
    order(m, "fault=deleting table=New for=1")
    began = time.monotonic()
    fails(client.create_table("New"), 409, "TableBeingDeleted")
    ok(client.create_table("New2"), 201)
    while client.create_table("New").status == 409:
        time.sleep(0.05)
    assert 1 <= time.monotonic() - began
    ok(insert(client, "1", "New"), 201)


def test_H7_a_change_set_is_one_operation_of_its_table(m, client):
    def batch(rk, table="Tab"):
        return client.batch([("POST", table, JSON, {"PartitionKey": "p", "RowKey": rk})])

    order(m, "fault=busy table=Tab op=EntityGroup count=1", "fault=lost table=Tab op=entity count=1")
    ok(batch("1", "Other"), 202)
    fails(batch("1"), 503, "ServerBusy")
    assert names(m) == []
    fails(batch("1"), 500, "InternalError")
    assert names(m) == ["1.json"]
    ok(batch("2"), 202)


def test_H7_queues_have_them_too(m, client, queues):
    order(m, "fault=lost queue=jobs op=put count=1", "fault=deleting queue=jobs op=get count=1",
          "fault=busy queue=* op=create count=1", "fault=closed queue=jobs op=delete count=1")
    assert code(queues.put("jobs", "one")) == (500, "InternalError")
    assert code(queues.ask("GET", "/jobs/messages")) == (409, "QueueBeingDeleted")
    assert code(queues.ask("PUT", "/more")) == (503, "ServerBusy")
    ok(client.create_table("More"), 201)
    (message,) = queues.get("jobs")
    assert message["MessageText"] == "one"
    with pytest.raises(HUNG_UP):
        queues.delete("jobs", message)
    assert queues.get("jobs", visibilitytimeout=1) == [] and rules(m) == []


def test_H7_blobs_have_them_too(m):
    blobs = Blobs(m.port, host=f"{ACCOUNT}.blob.localhost")
    assert blobs.ask("PUT", "/photos", {"restype": "container"}).status == 201
    order(m, "fault=lost blob=photos op=PutBlob count=1", "fault=deleting blob=photos op=get count=1",
          "fault=busy blob=photos op=list count=1")
    large = b"x" * (3 << 20)
    assert code(blobs.put("/photos/x", large)) == (500, "InternalError")
    assert code(blobs.get("/photos/x")) == (409, "ContainerBeingDeleted")
    listed = {"restype": "container", "comp": "list"}
    assert code(blobs.ask("GET", "/photos", listed)) == (503, "ServerBusy")
    assert blobs.get("/photos/x").body == large and rules(m) == []
    order(m, "fault=deleting for=60")
    assert code(blobs.get("/photos/x")) == (409, "ContainerBeingDeleted")


def test_H7_a_rule_of_an_account_leaves_the_others_alone(m, client, rowfs):
    rowfs("account", "add", m.store, "another", f"--key={KEY}")
    (m / "another/Tab").mkdir()
    order(m, "fault=busy account=another")
    ok(insert(client, "1"), 201)
    with Client(m.port, account="another") as other:
        fails(insert(other, "1"), 503, "ServerBusy")


def test_H7_a_refused_request_uses_no_rule_up(m, client):
    order(m, "fault=busy count=1")
    ok(client.request("GET", "Tab", sign=None), 401, 403, 404)
    ok(client.request("POST", "Tab('x')"), 400, 404, 405, 411)
    assert rules(m) == ["fault=busy count=1"]


def test_H7_by_chance_but_the_same_with_a_seed(m, client):
    seen = []
    for _ in range(2):
        order(m, "fault=busy op=query probability=0.3 seed=11")
        seen.append([client.get("Tab", "p", "x").status for _ in range(60)])
    assert seen[0] == seen[1] and set(seen[0]) == {404, 503}


def test_H7_the_mount_has_none(m):
    order(m, "fault=busy")
    (m / ACCOUNT / "Tab/p").mkdir()
    put(m / ACCOUNT / "Tab/p/1.json", "{}")
    assert names(m) == ["1.json"] and json.loads(get(m / ACCOUNT / "Tab/p/1.json")) == {}


# ---- the file


def test_H8_a_wrong_text_is_refused_whole_and_its_line_named(m, client):
    order(m, "fault=busy op=insert")
    with raises("EINVAL"):
        order(m, "fault=lost", "", "fault=lots")
    assert reason(m / ".rowfs/faults").splitlines()[0].endswith(
        "line 3: 'fault=lots' is no fault: there are busy, lost, closed, timeout and deleting")
    with raises("EINVAL"):
        put(m / ".rowfs/faults", "fault=lost\nfault=busy op=frobnicate")
    assert "line 2: no operation begins with 'frobnicate'" in reason(m / ".rowfs/faults")
    with raises("EINVAL"):
        order(m, *["fault=busy"] * 65)
    with raises("EINVAL"):
        put(m / ".rowfs/faults", "#" * 40000)
    assert rules(m) == ["fault=busy op=insert"]
    fails(insert(client, "1"), 503, "ServerBusy")


def test_H8_shells_write_read_add_and_clear(m, client, work):
    where = m / ".rowfs"
    said = sh("echo fault=nonsense > faults", cwd=where, check=False)
    assert said.returncode == 1 and "Invalid argument" in said.stderr
    sh("echo 'fault=busy table=Tab op=insert count=3' > faults", cwd=where)
    fails(insert(client, "1"), 503, "ServerBusy")
    sh("echo 'fault=closed queue=*' >> faults; { echo '# more'; echo fault=lost op=merge; } >> faults",
       cwd=where)
    assert sh("cat faults", cwd=where).stdout == (
        "fault=busy table=Tab op=insert count=2 # had by 1\n"
        "fault=closed queue=* # had by 0\nfault=lost op=merge # had by 0\n")
    assert (where / "faults").stat().st_size == len(get(where / "faults"))
    sh(f"cp faults {work}/kept; cp {work}/kept faults", cwd=where)
    assert len(rules(m)) == 3
    sh(": > faults", cwd=where)
    assert rules(m) == []
    order(m, "fault=busy")
    sh("truncate -s 0 faults", cwd=where)
    assert rules(m) == []
    ok(insert(client, "1"), 201)


def test_H8_the_end_of_a_time(m, client):
    order(m, "fault=busy for=0.5")
    while rules(m):
        time.sleep(0.05)
    ok(insert(client, "1"), 201)


def test_H8_only_its_content_can_change(m):
    with raises("EPERM"):
        os.chmod(m / ".rowfs/faults", 0o666)
    with raises("EPERM", "EBUSY"):
        os.unlink(m / ".rowfs/faults")
    with raises("EPERM"), open(m / ".rowfs/faults", "r+b", buffering=0) as f:
        f.read(1)


def test_H8_without_a_socket_there_is_nothing_to_fail(mnt):
    with raises("EINVAL"):
        put(mnt / ".rowfs/faults", "fault=busy\n")
    assert "no REST socket is open" in reason(mnt / ".rowfs/faults")
    put(mnt / ".rowfs/faults", "")


def test_H9_nobody_can_forget_them(m, client, rowfs):
    assert "faults on order" not in rowfs("stat", m.store).stdout
    order(m, "fault=busy op=insert", "fault=lost op=merge")
    insert(client, "1")
    insert(client, "1")
    stats = json.loads(get(m / ".rowfs/stats.json"))
    assert (stats["fault_rules"], stats["faults"]) == (2, 2)
    metrics = get(m / ".rowfs/metrics").decode()
    assert "\nrowfs_fault_rules 2\n" in metrics
    assert '\nrowfs_faults_total{fault="busy"} 2\n' in metrics
    assert '\nrowfs_faults_total{fault="lost"} 0\n' in metrics
    said = rowfs("stat", m.store).stdout
    assert "faults on order" in said and "fault=busy op=insert # had by 2\n" in said
    assert json.loads(rowfs("stat", "--json", m.store).stdout)["fault_rules"] == 2
    assert "faults on order" in m.log()


def test_H9_each_fault_is_counted(m, client):
    kinds = ("busy", "lost", "closed", "timeout wait=0.1", "deleting")
    for n, kind in enumerate(kinds):
        for _ in range(n + 1):
            order(m, f"fault={kind} op=insert count=1")
            try:
                assert insert(client, "1").status in (409, 500, 503)
            except HUNG_UP:
                assert kind == "closed"
    metrics = get(m / ".rowfs/metrics").decode()
    for n, kind in enumerate(kinds):
        assert f'\nrowfs_faults_total{{fault="{kind.split()[0]}"}} {n + 1}\n' in metrics
    stats = json.loads(get(m / ".rowfs/stats.json"))
    assert (stats["fault_rules"], stats["faults"]) == (0, 15)


def test_H9_they_are_the_owners(mount, rest_store, work):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    work.chmod(0o755)
    m = mount(rest_store, "rest=127.0.0.1:0", "allow_other")
    path = m / ".rowfs/faults"
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_uid == os.geteuid()
    for what in (f"cat {path}", f"echo fault=busy > {path}", f"truncate -s 0 {path}"):
        said = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh",
                               "-c", what], capture_output=True, text=True)
        assert said.returncode != 0 and "ermission denied" in said.stderr, said


# ---- the option


def test_H7_the_option_of_a_mount(rest_mount, rest_store):
    m = rest_mount(rest_store, "faults=fault=busy op=insert count=1;fault=lost op=delete")
    assert rules(m) == ["fault=busy op=insert count=1", "fault=lost op=delete"]
    (m / ACCOUNT / "Tab").mkdir()
    with Client(m.port) as client:
        fails(insert(client, "1"), 503, "ServerBusy")


def test_H7_the_option_of_serve(serve, rest_store, rowfs):
    server = serve(rest_store, "--faults=fault=busy op=create count=1", "--faults=fault=lost op=insert")
    with Client(server.port) as client:
        fails(client.create_table("Tab"), 503, "ServerBusy")
        ok(client.create_table("Tab"), 201)
        fails(insert(client, "1"), 500, "InternalError")
        ok(client.get("Tab", "p", "1"), 200)
    assert "fault=lost op=insert # had by 1" in rowfs("stat", rest_store).stdout


@pytest.mark.parametrize("options, why", [
    ("rest=127.0.0.1:0,faults=fault=busy;op=x", "line 2: a rule names its fault"),
    ("rest=127.0.0.1:0,faults=fault=busy op=xyz", "line 1: no operation begins with 'xyz'"),
    ("faults=fault=busy", "there is no rest="),
    ("rest=127.0.0.1:0,faults=" + "fault=busy;" * 65, "line 65"),
], ids=["fault", "operation", "socket", "many"])
def test_H8_a_wrong_option_mounts_nothing(rowfs, store, work, options, why):
    (work / "m").mkdir()
    said = rowfs("mount", store, work / "m", "-o", options, check=False)
    assert said.returncode != 0 and why in said.stderr, said.stderr


def test_H7_a_server_that_ends_answers_those_that_wait(serve, rest_store):
    server = serve(rest_store, "--faults=fault=timeout wait=3600")
    waiting = Client(server.port)
    process = os.fork()
    if process == 0:
        try:
            os._exit(0 if waiting.create_table("Tab").status == 500 else 1)
        except BaseException:
            os._exit(2)
    time.sleep(0.5)
    began = time.monotonic()
    server.proc.send_signal(signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert server.proc.wait(60) == 0 and time.monotonic() - began < 30


def test_H7_many_that_wait_keep_nobody_up(m, client):
    """They occupy no thread: there are 40."""
    order(m, "fault=timeout wait=2 table=Other")
    waiting = [Client(m.port) for _ in range(60)]
    try:
        for c in waiting:
            c.connection = http.client.HTTPConnection("127.0.0.1", m.port, timeout=60)
            target = c.target(entity_path("Other", "p", "1"))
            c.connection.request("GET", target, headers=c.headers_for("GET", target, None, None, ""))
        began = time.monotonic()
        ok(insert(client, "1"), 201)
        assert time.monotonic() - began < 2
        assert {c.connection.getresponse().status for c in waiting} == {500}
    finally:
        for c in waiting:
            c.close()


# ---- SDKs


def test_H10_an_sdk_that_retries_gets_through(m, rowfs):
    tables = pytest.importorskip("azure.data.tables")
    connection = rowfs("account", "keys", m.store, ACCOUNT).stdout.splitlines()[-1].split(None, 1)[1]
    table = tables.TableClient.from_connection_string(connection, "Tab", retry_backoff_factor=0.01,
                                                      retry_total=10, retry_status=10)
    order(m, "fault=busy op=insert count=1", "fault=lost op=insert count=1",
          "fault=closed op=insert count=1", "fault=timeout wait=0.2 op=insert count=1")
    with table:
        for n in range(5):  # it sends a PUT again whose answer never came, but no POST or PATCH
            table.upsert_entity({"PartitionKey": "p", "RowKey": f"{n}", "n": n}, mode="replace")
        assert rules(m) == []
        assert [e["n"] for e in table.list_entities()] == list(range(5))
