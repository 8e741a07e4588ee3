# SPDX-License-Identifier: MIT
"""import, export and query with the URL of an account elsewhere, which is a second rowfs."""

import json
import time

import pytest
from rest_client import ACCOUNT, KEY

from test_client import PROGRAM, connection, serve_tls

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")

# A value of each type, those at their ends among them, and strings of any characters.
TYPES = {"S": "ü\"\\\n\u0001\U0001f600'%", "E": "", "I": -2147483648, "B": True, "D": 1.5, "Z": -0.0, "W": 1e22,
         **{f"{n}@odata.type": f"Edm.{t}" for n, t in
            (("L", "Int64"), ("M", "Int64"), ("Nan", "Double"), ("Inf", "Double"), ("Neg", "Double"),
             ("T", "DateTime"), ("G", "Guid"), ("X", "Binary"), ("Y", "Binary"))},
         "L": "9223372036854775807", "M": "1", "Nan": "NaN", "Inf": "Infinity", "Neg": "-Infinity",
         "T": "1999-12-31T23:59:59.1234567Z", "G": "c9da6455-213d-42c9-9a79-3e9149a57833", "X": "AAEC/w==", "Y": ""}
KEYS = [("p", "r"), ("it's", "50% + ü&="), ("", ""), ("p", "\U0001f600"), ("p", "\uffee"), ("q", " ")]


def lines(rows):
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)


def numbered(n, partitions=1):
    return lines({"PartitionKey": f"p{i % partitions}", "RowKey": f"{i:06}", "N": i} for i in range(n))


def without_times(text):
    """Rows of NDJSON without their Timestamp."""
    rows = [json.loads(line) for line in text.splitlines()]
    return [{k: v for k, v in r.items() if not k.startswith("Timestamp")} for r in rows]


class Elsewhere:
    """An account elsewhere: elsewhere("export", "Posts", "--format=ndjson")."""

    def __init__(self, rowfs, server, work):
        self.rowfs, self.server = rowfs, server
        self.url, self.secret = server.url(ACCOUNT), work / f"connection-{server.port}"
        self.secret.write_text(connection(server, self.url.split(":")[0]))
        self.secret.chmod(0o600)

    def __call__(self, command, path, *more, **kw):
        return self.rowfs(command, self.url, f"{ACCOUNT}/{path}" if path else ACCOUNT, *more,
                          f"--connection-string={self.secret}", **kw)


@pytest.fixture
def elsewhere(rowfs, serve, rest_store, work):
    """A factory: elsewhere("fault=busy ...") -> Elsewhere whose server has these faults."""
    def make(faults=None):
        return Elsewhere(rowfs, serve(rest_store, "--rest=127.0.0.1:0",
                                      *([f"--faults={faults}"] if faults else [])), work)
    return make


def refused(done, *texts, code=1):
    assert done.returncode == code, done.stderr
    for text in texts:
        assert text in done.stderr
    assert KEY not in done.stdout + done.stderr


def test_every_type_and_key_comes_back_the_same(rowfs, elsewhere, work):
    there, here = elsewhere(), work / "here.rowfs"
    rowfs("init", here)
    rowfs("account", "add", here, "mine")
    rowfs("import", here, "mine/Posts", input=lines({"PartitionKey": p, "RowKey": r, **TYPES} for p, r in KEYS))
    first = rowfs("export", here, "mine/Posts").stdout
    there("import", "Posts", input=first)
    back = there("export", "Posts").stdout
    rowfs("import", here, "mine/Back", input=back)
    last = rowfs("export", here, "mine/Back").stdout
    assert without_times(first) == without_times(back) == without_times(last)
    assert '"Z":-0.0' in back and len(back.splitlines()) == len(KEYS)


def test_an_import_takes_groups_of_100_and_an_export_pages_of_1000(elsewhere):
    there = elsewhere()
    done = there("import", "Posts", input=numbered(2001, partitions=2))
    assert "2,001 rows imported" in done.stderr
    out = there("export", "Posts").stdout
    assert [r["RowKey"] for r in without_times(out)] == \
        [f"{i:06}" for i in (*range(0, 2001, 2), *range(1, 2001, 2))]
    assert without_times(there("export", "Posts", "p1", "--filter=N lt 4").stdout) == \
        [{"PartitionKey": "p1", "RowKey": f"{i:06}", "N": i} for i in (1, 3)]


@pytest.mark.parametrize("mode, done, refusals", [("insert", 199, 1), ("upsert", 200, 0), ("merge", 1, 199),
                                                  ("replace", 1, 199)])
def test_a_row_that_is_refused_costs_the_others_of_its_group_nothing(elsewhere, mode, done, refusals):
    there = elsewhere()
    there("import", "Posts", input=lines([{"PartitionKey": "p0", "RowKey": "000150", "Old": 1}]))
    result = there("import", "Posts", f"--mode={mode}", input=numbered(200), check=False)
    assert result.returncode == (1 if refusals else 0)
    assert f"{done} row{'s' if done != 1 else ''} imported" in result.stderr
    assert (f", {refusals} refused" in result.stderr) == (refusals > 0)
    row = without_times(there("export", "Posts", "--filter=RowKey eq '000150'").stdout)[0]
    assert ("Old" in row, row.get("N")) == {"insert": (True, None), "upsert": (False, 150),
                                            "merge": (True, 150), "replace": (False, 150)}[mode]


def test_an_import_survives_faults_and_does_all_when_it_is_repeated(elsewhere):
    """Each kind of fault comes in the middle; the last one stays, and ends the import."""
    for fault in ("busy", "lost", "closed"):
        there = elsewhere(f"fault={fault} op=entitygroup count=1")
        there("import", f"T{fault}", "--mode=insert", input=numbered(300))
        assert there("query", f"T{fault}", "--count").stdout == "300\n"
        there.server.stop()
    there = elsewhere("fault=timeout wait=5 op=entitygroup count=1")
    there("import", "Ttime", "--mode=insert", "--timeout=1", input=numbered(300))
    assert there("query", "Ttime", "--count").stdout == "300\n"


def test_an_error_that_stays_names_the_line_and_a_second_run_does_the_rest(elsewhere):
    rows = numbered(200) + lines([{"PartitionKey": "alone", "RowKey": "r"}])
    there = elsewhere("fault=busy op=insertorreplace")
    refused(there("import", "Posts", input=rows, check=False), "standard input:201: ServerBusy",
            "from this line on nothing was imported", "200 rows imported")
    there.server.stop()
    there = elsewhere()
    there("import", "Posts", input=rows)
    assert there("query", "Posts", "--count").stdout == "201\n"


def test_a_credential_that_may_not_write_ends_the_import_at_once(rowfs, elsewhere, rest_store):
    there = elsewhere()
    there("import", "Posts", input=numbered(1))
    sas = rowfs("sas", rest_store, f"{ACCOUNT}/Posts", "--permissions=r", "--expiry=2999-01-01").stdout
    there.secret.write_text(f"TableEndpoint={there.url};SharedAccessSignature={sas.split('?', 1)[1].split()[0]}")
    done = there("import", "Posts", input=numbered(300), check=False)
    refused(done, "AuthorizationPermissionMismatch", "0 rows imported")
    assert done.stderr.count("\n") == 2, done.stderr
    assert there("query", "Posts", "--count").stdout == "1\n"


def test_queries_are_evaluated_by_the_service(elsewhere):
    there = elsewhere()
    there("import", "Posts", input=numbered(1100))
    assert there("query", "Posts", "N ge 1098", "--select=N", "--format=csv").stdout.splitlines() == \
        ["PartitionKey,RowKey,N,N@type", "p0,001098,1098,Edm.Int32", "p0,001099,1099,Edm.Int32"]
    for top in (999, 1000, 1001):
        assert len(there("query", "Posts", f"--top={top}").stdout.splitlines()) == top
    assert there("query", "Posts/p0", "N lt 0", "--count").stdout == "0\n"
    assert len(json.loads(there("query", "Posts", "--top=2", "--format=json").stdout)) == 2
    refused(there("query", "Posts", "--format=csv", check=False), "--select")
    refused(there("query", "Posts", "--explain", check=False), "how it runs")
    refused(there("query", "Nothing", check=False), "TableNotFound")
    refused(there("query", "Posts/p0/r.json", check=False), "not ACCOUNT/TABLE")


def test_messages_say_what_to_do(rowfs, elsewhere, store):
    there = elsewhere()
    refused(rowfs("query", there.url, "wrong/Posts", f"--connection-string={there.secret}", check=False),
            f"the URL is of the account '{ACCOUNT}', not of 'wrong'")
    refused(rowfs("query", there.url, f"{ACCOUNT}/Posts", check=False), "--connection-string=FILE")
    refused(rowfs("check", there.url, check=False), "a store of this machine")
    refused(rowfs("export", store, "a/Posts", "--rps=1", check=False), "--rps is for the URL", code=2)
    for n in ("0", "1000001", "x"):
        refused(there("query", "Posts", f"--rps={n}", check=False), "--rps is a number from 1 to 1000000")
    refused(there("query", "Posts", "--timeout=86401", check=False), "--timeout is a number from 1 to 86400")
    refused(there("export", ".queue/jobs", check=False), "for a store of this machine", code=2)
    there.secret.chmod(0o640)
    refused(there("query", "Posts", check=False), "chmod 600")
    there.secret.chmod(0o600)
    there.server.stop()
    refused(there("query", "Posts", "--timeout=1", check=False), f"127.0.0.1:{there.server.port}")


def test_the_connection_string_may_come_on_standard_input(rowfs, elsewhere, work):
    there = elsewhere()
    text = there.secret.read_text()
    rows = work / "rows.ndjson"
    rows.write_text(numbered(3))
    rowfs("import", there.url, f"{ACCOUNT}/Posts", rows, "--connection-string=-", input=text)
    assert rowfs("query", there.url, f"{ACCOUNT}/Posts", "--count", "--connection-string=-",
                 input=text).stdout == "3\n"
    refused(rowfs("import", there.url, f"{ACCOUNT}/Posts", "--connection-string=-", input=text, check=False),
            "the rows come from a FILE")


def test_requests_keep_the_rate_that_is_asked_for(elsewhere):
    there = elsewhere()
    there("import", "Posts", "--rps=1000000", input=numbered(1))
    started = time.monotonic()
    there("import", "Posts", "--rps=20", input=numbered(1000))
    # The table and 10 groups: 10 distances of 50 ms.
    assert time.monotonic() - started > 0.5


def test_a_certificate_of_its_own_is_named(rowfs, serve, rest_store, work):
    there = Elsewhere(rowfs, serve_tls(serve, rest_store, work), work)
    assert there.url.startswith("https:")
    there("import", "Posts", f"--ca-file={work}/cert", input=numbered(3))
    refused(there("query", "Posts", check=False), "certificate")


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_an_import_deletes_the_rows_with_these_keys(rowfs, elsewhere, work, where):
    if where == "elsewhere":
        there = elsewhere()
        base, more = (there.url, f"{ACCOUNT}/Posts"), [f"--connection-string={there.secret}"]
    else:
        rowfs("init", work / "here.rowfs")
        rowfs("account", "add", work / "here.rowfs", "mine")
        base, more = (work / "here.rowfs", "mine/Posts"), []
    assert rowfs("import", *base, *more, "--quiet", input=numbered(250, partitions=2)).stderr == ""
    keys = lines({"PartitionKey": f"p{i % 2}", "RowKey": f"{i:06}"} for i in (*range(1, 250), 300))
    done = rowfs("import", *base, *more, "--mode=delete", "--quiet", input=keys, check=False)
    refused(done, "standard input:250: ResourceNotFound")
    assert done.stderr.count("\n") == 1
    assert without_times(rowfs("export", *base, *more).stdout) == \
        [{"PartitionKey": "p0", "RowKey": "000000", "N": 0}]


@pytest.mark.parametrize("form, none", [("json", "[\n]\n"), ("ndjson", "")])
def test_a_table_that_may_be_missing_has_no_rows(elsewhere, form, none):
    there = elsewhere()
    assert there("query", "Posts", "--if-exists", "--quiet", f"--format={form}").stdout == none
    assert there("query", "Posts", "--if-exists", "--count").stdout == "0\n"
    refused(there("query", "Posts", f"--format={form}", check=False), "TableNotFound")
