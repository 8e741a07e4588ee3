# SPDX-License-Identifier: MIT
"""--json of commands: what a script needs, as an object or as one object a line."""

import base64
import json
import os
import subprocess

import pytest

from conftest import ENV
from tools import put


def connection(text):
    return dict(part.split("=", 1) for part in text.strip(";").split(";"))


@pytest.fixture
def db(rowfs, store):
    rowfs("account", "add", store, "acct")
    return store


def test_accounts_and_their_keys(rowfs, store):
    added = json.loads(rowfs("account", "add", store, "acct", "--json").stdout)
    assert set(added) == {"account", "key1", "key2", "connection_string"} and added["account"] == "acct"
    parts = connection(added["connection_string"])
    assert (parts["AccountName"], parts["AccountKey"]) == ("acct", added["key1"])
    assert all(len(base64.b64decode(added[k])) == 32 for k in ("key1", "key2"))
    assert json.loads(rowfs("account", "keys", store, "acct", "--json").stdout) == added
    fresh = json.loads(rowfs("account", "regenerate", store, "acct", "--which=2", "--json").stdout)
    assert fresh["key1"] == added["key1"] and fresh["key2"] != added["key2"]
    rowfs("account", "add", store, "other")
    listed = rowfs("account", "list", store, "--json").stdout.splitlines()
    assert [json.loads(line) for line in listed] == [{"account": "acct"}, {"account": "other"}]
    url = json.loads(rowfs("account", "keys", store, "acct", "--json", '--url=http://h:1/a"b').stdout)
    assert connection(url["connection_string"])["TableEndpoint"] == 'http://h:1/a"b'


def test_the_endpoints_of_a_served_store(rowfs, db, serve, work):
    server = serve(db, "--rest=127.0.0.1:0")
    told = json.loads(rowfs("account", "keys", db, "acct", "--json").stdout)
    assert connection(told["connection_string"])["TableEndpoint"] == f"http://127.0.0.1:{server.port}/acct"
    server.stop()
    path = work / "sock"
    serve(db, f"--rest=unix:{path}")
    assert json.loads(rowfs("account", "keys", db, "acct", "--json").stdout)["socket"] == str(path)


def test_an_import_tells_counts_and_errors(rowfs, db, work):
    (work / "rows").write_text('{"PartitionKey":"p","RowKey":"1"}\n{"PartitionKey":"p"}\n{"x\n')
    done = rowfs("import", db, "acct/Tab", "--json", work / "rows", check=False)
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert {k: told[k] for k in ("imported", "refused", "complete")} == {"imported": 1, "refused": 2, "complete": True}
    first = told["errors"][0]
    assert first["file"].endswith("rows") and first["line"] == 2 and first["code"] == "PropertiesNeedValue"
    assert first["message"] in done.stderr and len(done.stderr.splitlines()) == 2
    done = rowfs("import", db, "acct/Tab", "--json", input='{"PartitionKey":"p","RowKey":"1"}\n')
    assert json.loads(done.stdout) == {"errors": [], "imported": 1, "refused": 0, "complete": True} and not done.stderr
    many = json.loads(rowfs("import", db, "acct/Tab", "--json", input="{}\n" * 30, check=False).stdout)
    assert (len(many["errors"]), many["refused"]) == (20, 30)
    stopped = rowfs("import", db, "acct/Tab", "--json", "--stop", input="{}\n" * 30, check=False)
    assert json.loads(stopped.stdout)["complete"] is False
    missing = rowfs("import", db, "none/Tab", "--json", input="{}", check=False)
    assert (missing.returncode, missing.stdout) == (1, "")


def test_a_backup_tells_its_file(rowfs, db, work):
    told = json.loads(rowfs("backup", db, work / "copy", "--json").stdout)
    assert told == {"file": str(work / "copy"), "bytes": os.stat(work / "copy").st_size}
    again = rowfs("backup", db, work / "copy", "--json", check=False)
    assert again.returncode == 1 and not again.stdout


def test_rows_of_a_query(rowfs, db):
    put_row = rowfs("put", db, "acct/Tab/p/1.json", "--json", input='{"N":1}')
    assert json.loads(put_row.stdout)["etag"]
    assert rowfs("query", db, "acct/Tab", "--json").stdout == rowfs("query", db, "acct/Tab", "--format=ndjson").stdout
    for more in ("--format=csv", "--count"):
        assert rowfs("query", db, "acct/Tab", "--json", more, check=False).returncode == 2


def test_why(rowfs, part):
    with pytest.raises(OSError):
        put(part / "1.json", '{"N":')
    told = json.loads(rowfs("why", part, "--json").stdout)
    assert told["path"] == str(part) and told["code"]
    assert rowfs("why", part).stdout == f"{told['code']}: {told['message']}\n"
    put(part / "2.json", "{}")
    nothing = rowfs("why", part / "2.json", "--json", check=False)
    assert (nothing.returncode, nothing.stdout) == (1, "") and "nothing was refused" in nothing.stderr


def test_dev(rowfs, work):
    words = [rowfs.program, "dev", work / "d", "--detach", "--free-ports", "--json"]
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, env=ENV, timeout=60).stdout)
    try:
        assert told["store"] == f"{work}/d/store.rowfs" and told["account"] == "devstoreaccount1"
        assert connection(told["connection_string"])["AccountName"] == told["account"]
        assert told["page"].startswith("http://127.0.0.1:")
        assert "mount" not in told or os.path.isdir(f"{told['mount']}/devstoreaccount1")
    finally:
        rowfs("dev", work / "d", "--stop")
    assert rowfs("dev", work / "d", "--json", "--exec=true", check=False).returncode == 2
