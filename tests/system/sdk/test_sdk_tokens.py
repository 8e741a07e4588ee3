# SPDX-License-Identifier: MIT
"""TokenCredential in the SDKs of JavaScript and Python, against a server that knows the issuer's keys."""

import contextlib
import datetime
import http.server
import json
import pathlib
import shutil
import ssl
import tempfile
import threading
import time
import urllib.parse

import certificates
import conftest
import pytest
import sdk
from issuer import CONTRIBUTOR, READER, Issuer

ALL = ("Table", "Queue", "Blob")


def make_tokens(issuer):
    readers, contributors = ([form.format(s) for s in ALL] for form in (READER, CONTRIBUTOR))
    past = int(time.time()) - 3600
    return {
        "reader": issuer.token(*readers), "contributor": issuer.token(*contributors, curve=True),
        "sender": issuer.token("Storage Queue Data Message Sender"),
        "processor": issuer.token("Storage Queue Data Message Processor"),
        "owner": issuer.token("Storage Blob Data Owner"),
        "elsewhere": issuer.token(*[f"{role}@elsewhere" for role in contributors]),
        "expired": issuer.token(*contributors, exp=past), "forged": Issuer().token(*contributors)}


@pytest.fixture(scope="module")
def secure(rowfs):
    """A server with TLS and keys; .pem is its certificate, .tokens are what the issuer signed."""
    work, issuer = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-")), Issuer()
    certificates.make_certificate(work, "a")
    rowfs("init", work / "store.rowfs")
    options = [f"--rest={service}127.0.0.1:0" for service in ("", "queue=", "blob=")]
    server = conftest.Serve(rowfs, work / "store.rowfs", [
        *options, f"--rest-cert={work}/a.pem", f"--rest-key={work}/a.key",
        f"--oauth=jwks:{issuer.write(work / 'keys.json')}"], work / "serve.log")
    server.pem, server.tokens = work / "a.pem", make_tokens(issuer)
    server.keys, server.issuer = work / "keys.json", issuer
    try:
        yield server.start()
    finally:
        assert not conftest.end_servers(rowfs, [server], [server.store])
        shutil.rmtree(work)


@pytest.fixture(scope="module")
def results(rowfs, secure):
    node = sdk.need_node("@azure/storage-blob")
    environment = sdk.node_environment(rowfs, secure)
    return sdk.Results(node, lambda script: {
        **environment(script), "ROWFS_TOKENS": json.dumps(secure.tokens), "NODE_EXTRA_CA_CERTS": str(secure.pem)})


@pytest.mark.parametrize("script, name", sdk.checks("tokens.mjs"))
def test_javascript(results, script, name):
    results.want(script, name)


class Credential:
    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **_):
        from azure.core.credentials import AccessToken
        assert scopes == ("https://storage.azure.com/.default",)
        return AccessToken(self.token, int(time.time()) + 3600)


@pytest.fixture
def client(rowfs, secure, monkeypatch):
    """A factory: client("Queue", "reader") -> a client of the whole service."""
    pytest.importorskip("azure.storage.queue", reason="needs Debian's python3-azure")
    import azure.data.tables
    import azure.storage.blob
    import azure.storage.queue
    monkeypatch.setenv("NO_PROXY", "*")
    parts = sdk.parts(sdk.new_account(rowfs, secure))
    kinds = {"Table": azure.data.tables.TableServiceClient, "Queue": azure.storage.queue.QueueServiceClient,
             "Blob": azure.storage.blob.BlobServiceClient}

    def make(service, token):
        url = "endpoint" if service == "Table" else "account_url"
        return kinds[service](**{url: parts[f"{service}Endpoint"]}, credential=Credential(secure.tokens[token]),
                              retry_total=0, connection_verify=str(secure.pem))

    return make


def refused(status, call, *args, **kw):
    from azure.core.exceptions import HttpResponseError
    with pytest.raises(HttpResponseError) as e:
        call(*args, **kw)
    assert e.value.status_code == status, e.value


def test_python_tables(client):
    writes = client("Table", "contributor").create_table("Blogs")
    writes.create_entity({"PartitionKey": "p", "RowKey": "1", "Text": "hi"})
    reads = client("Table", "reader").get_table_client("Blogs")
    assert [e["Text"] for e in reads.list_entities()] == ["hi"]
    refused(403, reads.delete_entity, "p", "1")
    refused(401, client("Table", "forged").create_table, "More")


def test_python_queues(client):
    client("Queue", "contributor").create_queue("jobs")
    client("Queue", "sender").get_queue_client("jobs").send_message("one")
    reads = client("Queue", "reader").get_queue_client("jobs")
    assert [m.content for m in reads.peek_messages()] == ["one"]
    refused(403, reads.send_message, "two")
    refused(401, client("Queue", "expired").create_queue, "more")


def test_python_blobs(client):
    box = client("Blob", "contributor").create_container("box")
    box.upload_blob("one", b"hello")
    reads = client("Blob", "reader").get_container_client("box")
    assert reads.download_blob("one").readall() == b"hello"
    refused(403, reads.delete_blob, "one")
    refused(401, client("Blob", "forged").create_container, "more")


def test_python_user_delegation_sas(client, secure):
    from azure.storage.blob import BlobClient, generate_blob_sas
    box = client("Blob", "contributor").create_container("box")
    box.upload_blob("one", b"hello")
    start, end = (datetime.datetime.utcnow() + datetime.timedelta(minutes=m) for m in (-1, 10))
    key = client("Blob", "reader").get_user_delegation_key(start, end)
    sas = generate_blob_sas(box.account_name, "box", "one", user_delegation_key=key, permission="rd", expiry=end)
    blob = BlobClient.from_blob_url(f"{box.url}/one?{sas}", retry_total=0, connection_verify=str(secure.pem))
    assert blob.download_blob().readall() == b"hello"
    refused(403, blob.delete_blob)


# Of another name the library would ask Microsoft whether the authority is known.
TENANT = "adfs"


@contextlib.contextmanager
def authority(pem, issuer):
    """A token endpoint as that of Microsoft Entra ID, on localhost.  Gives its port."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def say(self, what):
            body = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            base = f"https://localhost:{self.server.server_port}/{TENANT}"
            self.say({"token_endpoint": f"{base}/oauth2/v2.0/token", "issuer": f"{base}/v2.0",
                      "authorization_endpoint": f"{base}/oauth2/v2.0/authorize"})

        def do_POST(self):
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            assert form["scope"] == ["https://storage.azure.com/.default"] and form["client_secret"] == ["secret"]
            token = issuer.token(oid=form["client_id"][0], iss=f"https://sts.windows.net/{TENANT}/")
            self.say({"token_type": "Bearer", "expires_in": 600, "access_token": token})

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, pem.with_suffix(".key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_python_azure_identity(rowfs, secure, monkeypatch):
    """A client secret gets a token from an issuer, whose keys the server knows, and the file assigns a role to the client."""
    identity = pytest.importorskip("azure.identity", reason="needs Debian's python3-azure")
    from azure.storage.blob import BlobServiceClient
    monkeypatch.setenv("NO_PROXY", "*")
    issuer = Issuer()
    issuer.write(secure.keys, issuer=f"https://sts.windows.net/{TENANT}/", assignments=[
        {"oid": "writer", "role": "Storage Blob Data Contributor"}, {"oid": "reader", "role": ["StorageBlobDataReader"]}])
    url = sdk.parts(sdk.new_account(rowfs, secure))["BlobEndpoint"]
    options = {"retry_total": 0, "connection_verify": str(secure.pem)}
    try:
        with authority(secure.pem, issuer) as port:
            def service(client_id):
                credential = identity.ClientSecretCredential(
                    TENANT, client_id, "secret", authority=f"https://localhost:{port}", **options)
                return BlobServiceClient(url, credential=credential, **options)
            service("writer").create_container("box").upload_blob("one", b"hello")
            reads = service("reader").get_container_client("box")
            assert reads.download_blob("one").readall() == b"hello"
            refused(403, reads.delete_blob, "one")
            refused(403, service("nobody").create_container, "more")
    finally:
        secure.issuer.write(secure.keys)
