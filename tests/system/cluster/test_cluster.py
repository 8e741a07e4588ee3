# SPDX-License-Identifier: MIT
"""A store in a Ceph cluster (docs/cluster.md): commands, the mount, the socket, fail-over."""

import errno
import json
import os
import signal
import time

import pytest

import everything
import rest_client
from clusters import Place, cluster, store  # noqa: F401 (fixtures)
from conftest import ENV, add_accounts
from tools import get, put, raises, sh


def test_a_mount_of_a_cluster_takes_files_and_keeps_them(mount, store, account, mnt):
    part, other = account / "Table" / "p", account / "Table" / "q"
    part.mkdir(parents=True)
    other.mkdir()
    for i in range(5):
        put(part / f"{i}.json", json.dumps({"i": i}))
    assert sh("ls", cwd=part).stdout.split() == [f"{i}.json" for i in range(5)]
    source = sh(f"findmnt -no SOURCE {mnt.path}").stdout.strip()
    assert source == f"{store}?conf={ENV['CEPH_CONF']}"
    assert json.loads(get(part / "3.json")) == {"i": 3}
    sh("cp 3.json c.json; mv c.json d.json; mv d.json ../q/; rm 0.json", cwd=part)
    assert sorted(os.listdir(part)) == ["1.json", "2.json", "3.json", "4.json"]
    assert json.loads(get(other / "d.json")) == {"i": 3}
    sh("mv q r && mv ../Table ../Other && rm -r ../Other/p", cwd=account / "Table")
    assert json.loads(get(account / "Other" / "r" / "d.json")) == {"i": 3}
    table = account / "Other"
    large = os.urandom(3 << 20)
    (table / "r" / "large").write_bytes(large)
    with open(table / "r" / "large", "r+b") as f:
        f.seek(700000)
        f.write(b"middle")
        f.truncate(2000001)
    large = (large[:700000] + b"middle" + large[700006:])[:2000001]
    keys = {"PartitionKey": "r", "RowKey": "x"}
    put(table / "r" / ".batch", json.dumps([{"insert": {**keys, "a": 1}},
                                            {"delete": {**keys, "RowKey": "d"}}]))
    assert json.loads(get(table / "r" / ".batch"))["committed"], get(table / "r" / ".batch")
    mnt.remount()
    assert sorted(os.listdir(table / "r")) == ["large", "x.json"]
    assert (table / "r" / "large").read_bytes() == large
    assert json.loads(get(table / "r" / ".rows.ndjson"))["a"] == 1


def test_a_cluster_says_what_it_cannot(rowfs, store, part, mnt):
    put(part / "a.json", "{}")
    (part.parent / "q").mkdir()
    with raises(errno.EXDEV):
        os.rename(part / "a.json", part.parent / "q" / "a.json")
    with raises(errno.EXDEV):
        os.rename(part, part.parent / "r")
    with raises(errno.EOPNOTSUPP):
        (mnt / ".rowfs" / "snapshots" / "s").mkdir()
    assert json.loads(get(part / "a.json")) == {}
    for command, says in (
        (("salvage", store, mnt.path.parent / "copy"), "Ceph repairs"),
        (("init", store), "exists already"),
        (("stat", store + "-none"), "rowfs init"),
        (("stat", "rados:none/store"), "pool none"),
        (("stat", "rados:none"), "rados:POOL/NAME"),
    ):
        done = rowfs(*command, check=False)
        assert done.returncode == 1 and says in done.stderr, (command, done.stderr)


def test_a_command_reaches_no_store_of_the_same_name_elsewhere(rowfs, store, serve, work, monkeypatch):
    """A daemon of another cluster on the same machine takes no command that is not for its store."""
    serve(store)
    other = work / "other.conf"
    other.write_text("[global]\nmon host = [v2:127.0.0.1:1]\n[client]\nrados mon op timeout = 1\n")
    for environment, place in ((str(other), store), (ENV["CEPH_CONF"], f"{store}?conf={other}")):
        monkeypatch.setitem(ENV, "CEPH_CONF", environment)
        done = rowfs("account", "add", place, "acct1", check=False)
        assert done.returncode == 1 and "cannot reach the Ceph cluster" in done.stderr, done
    monkeypatch.undo()
    assert rowfs("account", "list", store).stdout == ""
    rowfs("account", "add", f"{store}?id=admin", "acct1")
    assert rowfs("account", "list", store + "?conf=" + ENV["CEPH_CONF"]).stdout == "acct1\n"


def test_rows_go_in_and_out_of_a_cluster(rowfs, store, work):
    rows = [{"PartitionKey": f"p{i % 3}", "RowKey": f"{i:04}", "v": "x" * i, "w": "y" * (i * 32)}
            for i in range(1000)]
    file = work / "rows.ndjson"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    rowfs("account", "add", store, "acct1")
    rowfs("import", store, "acct1/Table", file)
    out = [json.loads(line) for line in rowfs("export", store, "acct1/Table").stdout.splitlines()]
    wanted = sorted(rows, key=lambda r: (r["PartitionKey"], r["RowKey"]))
    assert [[r[k] for k in wanted[0]] for r in out] == [list(r.values()) for r in wanted]
    assert "1,000" in rowfs("stat", store).stdout
    assert "clean" in rowfs("check", store).stdout


def test_an_import_asks_for_all_rows_of_a_set_at_once(rowfs, cluster, store, work):
    def some(value):
        return [{"PartitionKey": "p", "RowKey": f"{i}", "v": value, "w": "y" * (i % 50 * 600),
                 "x": "z" * (i % 50 * 600)} for i in range(1000)]
    rowfs("account", "add", store, "acct1")
    for value in ("new", "replaced"):
        before = cluster.reads()
        rows = some(value)
        rowfs("import", store, "acct1/Table", input="".join(json.dumps(r) + "\n" for r in rows))
        big = 0 if value == "new" else sum(len(json.dumps(r)) > 32 << 10 for r in rows)
        assert cluster.reads() - before < 100 + big  # a large body is an object of its own
    out = [json.loads(line) for line in rowfs("export", store, "acct1/Table").stdout.splitlines()]
    wanted = sorted(some("replaced"), key=lambda r: r["RowKey"])
    assert [[r[k] for k in wanted[0]] for r in out] == [list(r.values()) for r in wanted]
    assert "clean" in rowfs("check", store).stdout


def test_BK9_a_store_moves_into_a_cluster_and_out_of_it(rowfs, cluster, mount, serve, work):
    sockets = ("rest=127.0.0.1:0", "rest=blob=127.0.0.1:0")
    local, back, away = work / "local.rowfs", work / "back.rowfs", Place("rados:rowfs/moved")
    rowfs("init", local)
    add_accounts(rowfs, local)
    m = mount(local, *sockets)
    everything.fill(m, local)
    before = everything.seen(m, local)
    m.umount()
    assert "is a copy of" in rowfs("copy", local, away).stderr
    assert "clean" in rowfs("check", away).stdout
    serve(away)
    rowfs("backup", away, back)
    assert os.stat(back).st_mode & 0o777 == 0o600
    after = everything.seen(mount(back, *sockets), back)
    for part in before:
        assert after[part] == before[part], part
    done = rowfs("copy", local, away, check=False)
    assert done.returncode == 1 and "needs an empty store" in done.stderr


def test_an_sdk_works_on_a_cluster(rowfs, store, serve, monkeypatch):
    tables = pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    exceptions = pytest.importorskip("azure.core.exceptions")
    core = pytest.importorskip("azure.core")
    monkeypatch.setenv("NO_PROXY", "*")
    add_accounts(rowfs, store)
    server = serve(store)
    connection = (f"DefaultEndpointsProtocol=http;AccountName={rest_client.ACCOUNT};"
                  f"AccountKey={rest_client.KEY};"
                  f"TableEndpoint={server.url(rest_client.ACCOUNT)};")
    with tables.TableServiceClient.from_connection_string(connection, retry_total=0) as service:
        table = service.create_table("Table")
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
        row = table.get_entity("p", "r")
        etag = row.metadata["etag"]
        row["n"] = 2
        table.update_entity(row, mode="replace", etag=etag,
                            match_condition=core.MatchConditions.IfNotModified)
        with pytest.raises(exceptions.ResourceModifiedError):
            table.update_entity(row, mode="replace", etag=etag,
                                match_condition=core.MatchConditions.IfNotModified)
        table.submit_transaction(
            [("create", {"PartitionKey": "p", "RowKey": f"b{i:02}", "n": i}) for i in range(100)])
        with pytest.raises(tables.TableTransactionError):
            table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": k, "n": 0})
                                      for k in ("new", "r")])
        assert len(list(table.query_entities("n ge 50"))) == 50
        assert [r["RowKey"] for r in table.query_entities("RowKey ge 'c'")] == ["r"]
        table.delete_entity("p", "r")
        service.delete_table("Table")
        assert list(service.list_tables()) == []


def test_CS4_two_daemons_serve_one_store(rowfs, store, serve):
    """Each sees at once what the other acknowledged: rows, conditions, tables, keys."""
    add_accounts(rowfs, store)
    first, second = serve(store), serve(store)
    with rest_client.Client(first.port) as a, rest_client.Client(second.port) as b:
        rest_client.ok(a.create_table("Table"), 201)
        row = {"PartitionKey": "p", "RowKey": "a", "n": -1}
        rest_client.ok(b.insert("Table", row), 201, 204)
        etag = rest_client.ok(a.get("Table", "p", "a"), 200).etag
        for i in range(20):
            one, other = (a, b) if i % 2 else (b, a)
            rest_client.ok(one.replace("Table", "p", "a", {**row, "n": i}, etag), 204)
            assert other.replace("Table", "p", "a", {**row, "n": -2}, etag).status == 412
            found = rest_client.ok(other.get("Table", "p", "a"), 200)
            assert found.json["n"] == i and rest_client.moment(found.etag) > rest_client.moment(etag)
            etag = found.etag
        rest_client.ok(a.delete("Table", "p", "a"), 204)
        assert b.get("Table", "p", "a").status == 404
        rest_client.ok(b.insert("Table", row), 201, 204)
        assert rest_client.ok(a.get("Table", "p", "a"), 200).etag != etag
        rest_client.ok(b.delete_table("Table"), 204)
        assert a.insert("Table", row).status == 404
        assert [client.tables().status for client in (a, b)] == [200, 200]
        rowfs("account", "regenerate", store, rest_client.ACCOUNT, "--which=1")
        assert [client.tables().status for client in (a, b)] == [403, 403]
    assert "clean" in rowfs("check", store).stdout


@pytest.mark.slow
def test_the_next_daemon_takes_over_from_one_that_hangs(rowfs, store, serve, work):
    add_accounts(rowfs, store)
    store = Place(store + "?mode=exclusive")
    first = serve(store)
    with rest_client.Client(first.port) as client:
        rest_client.ok(client.create_table("Table"), 201)
        rest_client.ok(client.insert("Table", {"PartitionKey": "p", "RowKey": "a"}), 201, 204)
    first.proc.send_signal(signal.SIGSTOP)
    start = time.monotonic()
    second = serve(store)
    assert time.monotonic() - start < 20
    assert "standing by: the store is being served by" in second.log()
    with rest_client.Client(second.port) as client:
        rest_client.ok(client.insert("Table", {"PartitionKey": "p", "RowKey": "b"}), 201, 204)
        first.proc.send_signal(signal.SIGCONT)
        with rest_client.Client(first.port) as old:
            answer = old.insert("Table", {"PartitionKey": "p", "RowKey": "c"})
            assert answer.status == 500, answer
        first.allow("ERROR|error")
        first.force()
        found = rest_client.ok(client.query("Table"), 200)
    assert b'"a"' in found.body and b'"b"' in found.body and b'"c"' not in found.body
