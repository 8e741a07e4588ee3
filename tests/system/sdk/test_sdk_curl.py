# SPDX-License-Identifier: MIT
"""curl with a signature that openssl alone makes (examples/curl/table-request) against the REST
socket."""

import json
import re
import subprocess

import pytest

import sdk
from conftest import ENV, TOP
from tools import need

REQUEST = TOP / "examples" / "curl" / "table-request"


class Answer:
    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        while re.match(r"HTTP/\S+ 1\d\d ", head):  # 100 Continue
            head, _, self.body = self.body.partition("\r\n\r\n")
        first, *lines = head.split("\r\n")
        self.status = int(first.split()[1])
        pairs = (line.split(": ", 1) for line in lines if ": " in line)
        self.headers = {k.lower(): v for k, v in pairs}

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        assert self.headers["x-ms-error-code"] == self.json["odata.error"]["code"]
        return self.headers["x-ms-error-code"]


@pytest.fixture
def connection(rowfs, module_server):
    need("curl", "openssl")
    return sdk.new_account(rowfs, module_server)


@pytest.fixture
def request_(connection):
    def ask(method, resource, body="", *options, connection=connection):
        done = subprocess.run(
            [str(REQUEST), method, resource, body, "-i", "--noproxy", "*", *options],
            capture_output=True, timeout=60,
            env={**ENV, "AZURE_STORAGE_CONNECTION_STRING": connection})
        assert done.returncode == 0, done.stderr
        return Answer(done.stdout.decode("utf-8"))
    return ask


def header(name, value):
    return ["-H", f"{name}: {value}"]


def test_curl(request_, connection):
    base = sdk.parts(connection)["TableEndpoint"]
    made = request_("POST", "Tables", '{"TableName":"Curl"}')
    assert (made.status, made.json) == (201, {"TableName": "Curl"})
    assert made.headers["location"] == f"{base}/Tables('Curl')"
    again = request_("POST", "Tables", '{"TableName":"Curl"}')
    assert (again.status, again.code) == (409, "TableAlreadyExists")
    assert request_("GET", "Tables").json == {"value": [{"TableName": "Curl"}]}

    row = request_("POST", "Curl", json.dumps(
        {"PartitionKey": "p", "RowKey": "it's", "N@odata.type": "Edm.Int64", "N": "5"}))
    assert row.status == 201
    assert row.headers["location"] == f"{base}/Curl(PartitionKey='p',RowKey='it''s')"
    etag = row.headers["etag"]
    assert re.fullmatch(r"W/\"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'\"", etag)
    quiet = request_("POST", "Curl", '{"PartitionKey":"p","RowKey":"2","N":7}',
                     *header("Prefer", "return-no-content"))
    assert (quiet.status, quiet.body) == (204, "")
    assert quiet.headers["preference-applied"] == "return-no-content"
    assert quiet.headers["dataserviceid"] == quiet.headers["location"]

    one = request_("GET", "Curl(PartitionKey='p',RowKey='it''s')")
    assert one.status == 200
    assert one.headers["etag"] == etag
    assert one.headers["content-type"].startswith("application/json;odata=nometadata")
    assert {k: v for k, v in one.json.items() if k != "Timestamp"} == {
        "PartitionKey": "p", "RowKey": "it's", "N": "5"}
    found = request_("GET", "Curl()?$filter=N%20eq%207&$select=RowKey,N")
    assert found.json == {"value": [{"RowKey": "2", "N": 7}]}
    page = request_("GET", "Curl?$top=1")
    pk, rk = (page.headers[f"x-ms-continuation-next{k}"] for k in ("partitionkey", "rowkey"))
    rest = request_("GET", f"Curl?$top=1&NextPartitionKey={pk}&NextRowKey={rk}")
    assert [e["RowKey"] for e in page.json["value"] + rest.json["value"]] == ["2", "it's"]
    assert "x-ms-continuation-nextpartitionkey" not in rest.headers

    entity = "Curl(PartitionKey='p',RowKey='2')"
    for verb, options in (("MERGE", []), ("PATCH", []), ("POST", header("X-HTTP-Method", "MERGE"))):
        merged = request_(verb, entity, json.dumps({verb: 1}), *header("If-Match", "*"), *options)
        assert merged.status == 204, merged.body
    assert {k: v for k, v in request_("GET", entity).json.items() if k != "Timestamp"} == {
        "PartitionKey": "p", "RowKey": "2", "N": 7, "MERGE": 1, "PATCH": 1, "POST": 1}
    stale = request_("PUT", entity, "{}", *header("If-Match", etag))
    assert (stale.status, stale.code) == (412, "UpdateConditionNotSatisfied")
    assert request_("PUT", entity, '{"Only":true}').status == 204  # no If-Match: insert or replace
    assert request_("DELETE", entity, "", *header("If-Match", "*")).status == 204
    gone = request_("GET", entity)
    assert (gone.status, gone.code) == (404, "ResourceNotFound")
    assert request_("DELETE", "Tables('Curl')").status == 204
    missing = request_("GET", "Curl()")
    assert (missing.status, missing.code) == (404, "TableNotFound")


def test_curl_batch(request_):
    assert request_("POST", "Tables", '{"TableName":"Curl"}').status == 201

    def batch(*operations):
        part = ("--changeset_1\nContent-Type: application/http\n"
                "Content-Transfer-Encoding: binary\n\n")
        body = "--batch_1\nContent-Type: multipart/mixed; boundary=changeset_1\n\n" + "".join(
            f"{part}POST http://localhost/Curl HTTP/1.1\nContent-Type: application/json\n\n"
            f'{{"PartitionKey":"p","RowKey":"{rk}"}}\n' for rk in operations)
        body += "--changeset_1--\n--batch_1--\n"
        return request_(
            "POST", "$batch", "", *header("Content-Type", "multipart/mixed; boundary=batch_1"),
            "--data-binary", body)

    done = batch("a", "b")
    assert done.status == 202
    assert re.findall(r"^HTTP/1\.1 (\d+)", done.body, re.M) == ["201", "201"]
    failed = batch("c", "a", "d")
    assert failed.status == 202
    assert re.findall(r"^HTTP/1\.1 (\d+)", failed.body, re.M) == ["409"]
    assert '"code":"EntityAlreadyExists"' in failed.body and '"value":"1:' in failed.body
    assert [e["RowKey"] for e in request_("GET", "Curl").json["value"]] == ["a", "b"]


def test_curl_xml(request_):
    """What is signed with its comp parameter."""
    assert request_("POST", "Tables", '{"TableName":"Curl"}').status == 201
    policy = ("<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy>"
              "<Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>")
    assert request_("PUT", "Curl?comp=acl", policy).status == 204
    acl = request_("GET", "Curl?comp=acl")
    assert acl.status == 200
    assert acl.headers["content-type"].startswith("application/xml")
    assert policy in acl.body
    properties = request_("GET", "?restype=service&comp=properties")
    assert properties.status == 200 and "<StorageServiceProperties>" in properties.body


def test_curl_wrong_signature(request_, connection):
    wrong = re.sub(r"AccountKey=[^;]*", "AccountKey=AAAA", connection)
    refused = request_("GET", "Tables", connection=wrong)
    assert refused.status == 403
    assert refused.headers["x-ms-error-code"] == "AuthenticationFailed"


def test_curl_host_style(request_, connection, module_server):
    """The account in the host's name, as the service has it."""
    account = sdk.parts(connection)["AccountName"]
    host = f"{account}.table.core.windows.net:{module_server.port}"
    by_host = re.sub(r"TableEndpoint=[^;]*", f"TableEndpoint=http://{host}", connection)
    resolve = ["--resolve", f"{host}:127.0.0.1"]
    made = request_("POST", "Tables", '{"TableName":"Curl"}', *resolve, connection=by_host)
    assert (made.status, made.headers.get("location")) == (201, f"http://{host}/Tables('Curl')")
    assert request_("POST", "Curl", '{"PartitionKey":"p","RowKey":"r"}', *resolve,
                    connection=by_host).status == 201
    assert request_("GET", "Curl(PartitionKey='p',RowKey='r')").status == 200  # path style


def test_curl_tls(rowfs, serve, store, work):
    need("curl", "openssl")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", work / "key.pem", "-out", work / "cert.pem"], check=True, capture_output=True)
    server = serve(store, f"--rest-cert={work / 'cert.pem'}", f"--rest-key={work / 'key.pem'}")
    connection = sdk.new_account(rowfs, server)
    assert "TableEndpoint=https://" in connection

    def ask(*args):
        return subprocess.run(
            [str(REQUEST), *args, "-i", "--noproxy", "*"], capture_output=True, timeout=60,
            env={**ENV, "AZURE_STORAGE_CONNECTION_STRING": connection})

    trusted = ask("POST", "Tables", '{"TableName":"Curl"}', "--cacert", str(work / "cert.pem"))
    assert trusted.returncode == 0, trusted.stderr
    answer = Answer(trusted.stdout.decode("utf-8"))
    assert answer.status == 201
    assert answer.headers["location"].startswith("https://")
    assert ask("GET", "Tables", "").returncode == 60  # a certificate that nobody vouches for
