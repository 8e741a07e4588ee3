# SPDX-License-Identifier: MIT
"""The client of src/cloud against rowfs's own socket, with and without faults on order."""

import json
import os
import shutil
import subprocess

import pytest
from issuer import unsigned
from rest_client import ACCOUNT, KEY

from conftest import BUILD, ENV
from fault_proxy import FaultProxy

PROGRAM = BUILD / "tests/system/cloud/cloud_client"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")


class Client:
    """The program, one command at a time."""

    def __init__(self, connection, *options, **env):
        have = {"AZURE_STORAGE_CONNECTION_STRING": connection} if connection else {}
        self.proc = subprocess.Popen([str(PROGRAM), *options], env={**ENV, **have, **env}, text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.communicate(timeout=60)

    def __call__(self, *words):
        """Returns the error's code or OK, the number of requests, the answer, the message."""
        self.proc.stdin.write("\t".join(words) + "\n")
        self.proc.stdin.flush()
        code, requests, answer, why = self.proc.stdout.readline().rstrip("\n").split("\t")
        return code, int(requests), answer, why

    def ok(self, *words, requests=1):
        code, sent, answer, why = self(*words)
        assert (code, sent) == ("OK", requests), (words, code, sent, why)
        return answer


def connection(server, scheme="http", key=KEY):
    return (f"DefaultEndpointsProtocol={scheme};AccountName={ACCOUNT};AccountKey={key};"
            f"TableEndpoint={scheme}://127.0.0.1:{server.port}/{ACCOUNT}")


@pytest.fixture
def client(serve, rest_store):
    """A factory: client("fault=busy ...") -> Client of a server with these faults."""
    clients = []

    def make(faults=None, *options):
        server = serve(rest_store, "--rest=127.0.0.1:0", *([f"--faults={faults}"] if faults else []))
        clients.append(Client(connection(server), *options))
        clients[-1].server = server
        return clients[-1]

    yield make
    for c in clients:
        c.__exit__()


@pytest.fixture
def proxied(serve, rest_store):
    """A client of a server behind a proxy, and the proxy."""
    server = serve(rest_store, "--rest=127.0.0.1:0")
    proxy = FaultProxy(lambda: server.port)
    with Client(connection(server).replace(f":{server.port}/", f":{proxy.server_port}/")) as c:
        yield c, proxy
    proxy.stop()


def properties(answer):
    """The row of a get, without its ETag."""
    return json.loads(answer[:answer.rindex("}") + 1])


def test_rows_and_tables_are_made_read_changed_and_removed(client):
    c = client()
    c.ok("create", "Posts")
    assert c("create", "Posts")[0] == "TableAlreadyExists"
    row = {"N": 1, "B": True, "L@odata.type": "Edm.Int64", "L": "9007199254740993",
           "D@odata.type": "Edm.Double", "D": "NaN", "S": "ü\"\\n"}
    for pk, rk in (("p", "r"), ("it's", "50% + ü&="), ("", "")):
        etag = c.ok("insert", "Posts", pk, rk, json.dumps(row, ensure_ascii=False))
        got = c.ok("get", "Posts", pk, rk)
        assert got.endswith(" " + etag)
        assert properties(got) == {"PartitionKey": pk, "RowKey": rk, **row}
        assert c("insert", "Posts", pk, rk, "{}")[0] == "EntityAlreadyExists"
    second = c.ok("merge", "Posts", "p", "r", '{"N":2}')
    assert c("replace", "Posts", "p", "r", "{}", etag)[0] == "UpdateConditionNotSatisfied"
    third = c.ok("replace", "Posts", "p", "r", '{"N":3}', second)
    assert properties(c.ok("get", "Posts", "p", "r"))["N"] == 3
    assert c("delete", "Posts", "p", "r", "{}", second)[0] == "UpdateConditionNotSatisfied"
    c.ok("delete", "Posts", "p", "r", "{}", third)
    assert c("delete", "Posts", "p", "r")[0] == "ResourceNotFound"
    assert c("get", "Posts", "p", "r")[0] == "ResourceNotFound"
    c.ok("upsert", "Posts", "p", "r", '{"A":1}')
    c.ok("upsert-merge", "Posts", "p", "r", '{"B":2}')
    got = properties(c.ok("get", "Posts", "p", "r"))
    assert (got["A"], got["B"]) == (1, 2)
    c.ok("drop", "Posts")
    assert c("drop", "Posts")[0] == "TableNotFound"
    assert c("count", "Posts", "")[0] == "TableNotFound"


def test_a_scan_follows_continuation_tokens_and_a_filter(client):
    c = client()
    c.ok("create", "Posts")
    for p in range(25):
        c.ok("group", "Posts", f"p{p:02}", "100")
    assert c.ok("count", "Posts", "", requests=3) == "2500"
    assert c.ok("count", "Posts", "PartitionKey ge 'p20' and RowKey lt '000010'") == "50"
    code, _, answer, why = c("group", "Posts", "p00", "3")
    assert (code, answer) == ("EntityAlreadyExists", "0") and "exists" in why


CALLS = [
    ("create Other", "createtable", lambda c: c("create", "Other")[0] == "TableAlreadyExists"),
    ("drop Gone", "deletetable", lambda c: c("drop", "Gone")[0] == "TableNotFound"),
    ("insert Posts p new {\"N\":1}", "insertentity", lambda c: has(c, "new", N=1)),
    ("upsert Posts p a {\"N\":2}", "insertorreplace", lambda c: has(c, "a", N=2)),
    ("merge Posts p a {\"M\":2}", "mergeentity", lambda c: has(c, "a", N=1, M=2)),
    ("replace Posts p a {\"M\":2}", "updateentity", lambda c: has(c, "a", M=2)),
    ("delete Posts p a", "deleteentity", lambda c: c("get", "Posts", "p", "a")[0] != "OK"),
    ("group Posts q 7", "entitygroup", lambda c: c.ok("count", "Posts", "PartitionKey eq 'q'") == "7"),
    ("get Posts p a", "queryentit", lambda c: True),
]


def has(c, rk, **want):
    got = properties(c.ok("get", "Posts", "p", rk))
    return got == {"PartitionKey": "p", "RowKey": rk, **want}


@pytest.mark.parametrize("fault", ["busy", "lost", "closed", "timeout wait=30"])
def test_faults_are_survived_and_nothing_is_done_twice(serve, rest_store, fault):
    """Each call meets the fault once; `lost` and `closed` have done it by then."""
    prepared = serve(rest_store, "--rest=127.0.0.1:0")
    with Client(connection(prepared)) as c:
        for table in ("Posts", "Gone"):
            c.ok("create", table)
    prepared.stop()
    for call, op, is_done in CALLS:
        server = serve(rest_store, "--rest=127.0.0.1:0", f"--faults=fault={fault} op={op} count=1")
        with Client(connection(server), "", "500") as c:
            if op != "insertorreplace":
                c("upsert", "Posts", "p", "a", '{"N":1}')
            code, requests, _, why = c(*call.split(" "))
            assert code == "OK", (call, code, why)
            assert requests >= 2, (call, "met no fault")
            assert is_done(c), call
        server.stop()


def test_a_change_of_somebody_else_is_not_taken_for_the_lost_one(client, rest_store):
    """The second try of an insert is refused.  The row that is there is another one, which may have replaced it."""
    c = client("fault=lost op=insertentity count=1")
    c.ok("create", "Posts")
    c.ok("upsert", "Posts", "p", "a", '{"N":1}')
    code, requests, _, why = c("insert", "Posts", "p", "a", '{"N":2}')
    assert (code, requests) == ("OperationTimedOut", 3)  # the third reads the row
    assert "is not as it was written" in why


def test_a_change_whose_other_tries_are_throttled_is_read_back(client):
    c = client("fault=lost op=insertentity count=1; fault=busy op=insertentity")
    c.ok("create", "Posts")
    c.ok("insert", "Posts", "p", "a", '{"N":2}', requests=6)  # the last one reads the row


@pytest.mark.parametrize("cuts", [pytest.param(1, id="refused"), pytest.param(5, id="unknown")])
def test_a_group_is_done_only_if_each_change_is(proxied, cuts):
    """No try arrives, or the second one is refused.  The first row is already as the group would leave it."""
    c, proxy = proxied
    c.ok("create", "Posts")
    c.ok("upsert", "Posts", "p", "000000", "{}")
    if cuts == 1:
        c.ok("upsert", "Posts", "p", "000001", '{"N":1}')
    proxy.cut, proxy.cuts = "$batch", cuts
    code, _, _, why = c("group", "Posts", "p", "3", "upsert")
    assert (code, proxy.cuts) == ("OperationTimedOut", 0) and why
    assert c("get", "Posts", "p", "000002")[0] == "ResourceNotFound"


def test_an_error_that_stays_is_told(client):
    c = client("fault=busy op=createtable")
    code, requests, _, why = c("create", "Posts")
    assert (code, requests) == ("ServerBusy", 5) and why


def test_a_server_that_has_gone_is_named(client):
    c = client()
    c.server.stop()
    code, requests, _, why = c("create", "Posts")
    assert code != "OK" and requests == 5 and f"127.0.0.1:{c.server.port}" in why


def test_credentials_come_from_a_file_the_environment_or_systemd(serve, rest_store, work):
    text = connection(serve(rest_store, "--rest=127.0.0.1:0"))
    file = work / "connection"
    file.write_text(f"# staging\n{text}\n")
    file.chmod(0o600)
    with Client(None, CREDENTIAL_FILE=str(file)) as c:
        c.ok("create", "Posts")
    file.chmod(0o640)
    with Client(None, CREDENTIAL_FILE=str(file)) as c:
        out, err = c.proc.communicate(timeout=60)
        assert c.proc.returncode == 1 and out == "" and str(file) in err and KEY not in err
    directory = work / "credentials"
    directory.mkdir()
    (directory / "connection-string").write_text(text)
    (directory / "connection-string").chmod(0o400)
    with Client(None, CREDENTIALS_DIRECTORY=str(directory)) as c:
        c.ok("drop", "Posts")


def test_a_wrong_key_and_a_sas_of_one_table(serve, rest_store):
    server = serve(rest_store, "--rest=127.0.0.1:0")
    with Client(connection(server)) as c:
        c.ok("create", "Posts")
        c.ok("create", "Other")
    with Client(connection(server, key="a2V5")) as c:
        code, requests, _, why = c("get", "Posts", "p", "r")
        assert (code, requests) == ("AuthenticationFailed", 1) and why
    made = subprocess.run([str(server.rowfs.program), "sas", str(rest_store), f"{ACCOUNT}/Posts",
                           "--permissions=ra", "--expiry=2999-01-01"], capture_output=True, text=True, check=True)
    sas = made.stdout.split("?", 1)[1].split()[0]
    with Client(f"TableEndpoint=http://127.0.0.1:{server.port}/{ACCOUNT};SharedAccessSignature={sas}") as c:
        c.ok("insert", "Posts", "p", "r", '{"N":1}')
        assert c.ok("count", "Posts", "") == "1"
        assert c("delete", "Posts", "p", "r")[0] == "AuthorizationPermissionMismatch"
        assert c("get", "Other", "p", "r")[0] != "OK"


def serve_tls(serve, store, work, *options):
    """A server with a certificate of its own, which is work/cert."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", work / "key", "-out",
                    work / "cert"], check=True, capture_output=True)
    os.chmod(work / "key", 0o600)
    return serve(store, "--rest=127.0.0.1:0", f"--rest-cert={work}/cert", f"--rest-key={work}/key", *options)


def test_tls_asks_for_a_certificate_that_is_known(serve, rest_store, work):
    server = serve_tls(serve, rest_store, work)
    with Client(connection(server, "https"), str(work / "cert")) as c:
        c.ok("create", "Posts")
    with Client(connection(server, "https")) as c:
        code, requests, _, why = c("drop", "Posts")
        assert code != "OK" and requests == 1 and "certificate" in why


def test_a_bearer_token_is_read_from_its_file_for_each_request(serve, rest_store, work):
    server = serve_tls(serve, rest_store, work, "--oauth=basic")
    token = work / "token"
    token.write_text(unsigned() + "\n")
    token.chmod(0o600)
    text = f"TableEndpoint=https://127.0.0.1:{server.port}/{ACCOUNT};BearerTokenFile={token}"
    with Client(text, str(work / "cert")) as c:
        c.ok("create", "Posts")
        c.ok("insert", "Posts", "p", "r", '{"N":1}')
        for content, mode, code, why in (("not.a.token", 0o600, "InvalidAuthenticationInfo", ""),
                                         ("two words", 0o600, "InvalidInput", "holds no bearer token"),
                                         (" \n", 0o600, "InvalidInput", "holds no bearer token"),
                                         (unsigned(), 0o640, "InternalError", "chmod 600")):
            token.write_text(content)
            token.chmod(mode)
            found, _, _, said = c("get", "Posts", "p", "r")
            assert found == code and why in said and content not in said.split(), (found, said)
        token.chmod(0o600)
        assert properties(c.ok("get", "Posts", "p", "r"))["N"] == 1
    with Client(text.replace("https:", "http:")) as c:
        assert "over https only" in c.proc.stderr.readline()
