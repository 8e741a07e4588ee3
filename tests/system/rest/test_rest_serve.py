# SPDX-License-Identifier: MIT
"""`rowfs serve` and the mount option rest=: options, TLS, Unix sockets, start and stop."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time

import conftest
import pytest
import rest_client
import sdk
from certificates import make_certificate
from queue_client import Queues, code
from rest_client import ok
from test_rest_server import wait_until_read
from tools import emulator_ports, wait_for


def refused(rowfs, *args, code=1):
    """A call that must fail; its message."""
    done = rowfs(*args, check=False, timeout=60)
    assert done.returncode == code, done
    assert done.stdout == "", done
    return done.stderr


@pytest.fixture
def short():
    """A directory with a short name: the path of a Unix socket has 107 bytes at most."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="rs-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def certificate():
    path = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-cert-"))
    for name in ("a", "b"):
        make_certificate(path, name)
    yield path
    shutil.rmtree(path, ignore_errors=True)


# ---- what is said


def test_it_says_where_and_ends_with_0(rowfs, rest_store):
    for number in (signal.SIGINT, signal.SIGTERM):
        proc = subprocess.Popen(
            [str(rowfs.program), "serve", str(rest_store), "--rest=127.0.0.1:0",
             "--rest=[::1]:0" if socket.has_ipv6 and has_ipv6() else "--rest=127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=conftest.ENV, text=True)
        lines = [proc.stdout.readline() for _ in range(2)]
        assert all(line.startswith(f"serving {rest_store} at http://") for line in lines)
        port = int(lines[0].rsplit(":", 1)[1])
        with rest_client.Client(port) as client:
            ok(client.tables(), 200)
        proc.send_signal(number)
        out, err = proc.communicate(timeout=60)
        assert proc.returncode == 0 and out == "", (out, err)
        assert "is closed" in err


def has_ipv6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as s:
        s.bind(("::1", 0))
        return True
    return False


def test_the_default_endpoints_are_the_emulators(rowfs, rest_store):
    with emulator_ports():
        proc = subprocess.Popen([str(rowfs.program), "serve", str(rest_store)],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=conftest.ENV)
        try:
            assert proc.stdout.readline().endswith(b" at http://127.0.0.1:10002\n")
            assert proc.stdout.readline().endswith(b" at queue=http://127.0.0.1:10001\n")
            assert proc.stdout.readline().endswith(b" at blob=http://127.0.0.1:10000\n")
        finally:
            proc.terminate()
            assert proc.wait(60) == 0


def test_each_default_endpoint_must_be_free(rowfs, rest_store):
    with emulator_ports():
        for port in (10000, 10001, 10002):
            with socket.create_server(("127.0.0.1", port)):
                said = refused(rowfs, "serve", rest_store)
            assert f"'127.0.0.1:{port}' is in use by another process" in said
            assert "choose other endpoints with rest=" in said


# ---- services


def test_an_endpoint_may_name_its_service(rowfs, rest_store, serve, short):
    server = serve(rest_store, "--rest=table=127.0.0.1:0", f"--rest=table=unix:{short}/a=b")
    with rest_client.Client(server.port) as client:
        ok(client.tables(), 200)
        # the label of a host names a service on every socket
        for label in ("table", "TABLE", "nothing"):
            answer = client.request("GET", "/Tables", headers={
                "Host": f"{rest_client.ACCOUNT}.{label}.localhost:{server.port}"})
            ok(answer, 200)
    assert (short / "a=b").is_socket()


def test_a_host_of_a_service_that_rowfs_lacks_is_refused(serve, rest_store):
    server = serve(rest_store, "--rest=127.0.0.1:0")
    for label in ("file", "DFS"):
        for method in ("GET", "POST", "OPTIONS"):
            with rest_client.Client(server.port) as client:
                answer = client.request(method, "/Tables", headers={
                    "Host": f"{rest_client.ACCOUNT}.{label}.localhost:{server.port}"})
            assert answer.status == 400 and answer.headers["x-ms-error-code"] == "InvalidUri"


def test_an_endpoint_of_an_unknown_service_is_refused(rowfs, rest_store):
    for endpoint in ("nix=127.0.0.1:0", "nix=unix:/tmp/nix", "tables=127.0.0.1:0"):
        name = endpoint.split("=")[0]
        assert f"no service has the name '{name}'" in refused(
            rowfs, "serve", rest_store, f"--rest={endpoint}", code=2)


# ---- connection strings


def connection(text):
    """The last line, as a dictionary; the line before it is a socket or a key."""
    line = text.splitlines()[-1]
    assert line.startswith("connect  "), text
    return sdk.parts(line.removeprefix("connect  "))


def works(found):
    """A request with nothing but the connection string."""
    protocol, _, rest = found["TableEndpoint"].partition("://")
    host, port = rest.split("/")[0].rsplit(":", 1)
    assert protocol == found["DefaultEndpointsProtocol"] and rest.endswith(f"/{found['AccountName']}")
    context = ssl._create_unverified_context() if protocol == "https" else None
    with rest_client.Client(int(port), found["AccountName"], found["AccountKey"],
                            context=context) as client:
        ok(client.tables(), 200)
    return host


@pytest.mark.parametrize("endpoint,host", [
    ("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "[::1]")])
def test_a_connection_string_names_the_serving_process(rowfs, rest_store, serve, endpoint, host):
    if host == "[::1]" and not has_ipv6():
        pytest.skip("needs IPv6")
    server = serve(rest_store, f"--rest={endpoint}")
    for command in ("keys", "regenerate"):
        found = connection(rowfs("account", command, rest_store, rest_client.ACCOUNT).stdout)
        assert works(found) == host and f":{server.port}/" in found["TableEndpoint"]
    assert works(connection(rowfs("account", "add", rest_store, "fresh").stdout)) == host
    url = rowfs("sas", rest_store, "fresh", "--permissions=l", "--resource-types=s",
                "--expiry=+1h").stdout
    assert url.startswith(f"http://{host}:{server.port}/fresh/?")


def test_a_connection_string_of_a_mount_with_tls(rowfs, rest_store, mount, certificate, short):
    """TCP comes before a Unix socket."""
    m = mount(rest_store, f"rest=unix:{short}/s", "rest=127.0.0.1:0",
              f"rest-cert={certificate}/a.pem", f"rest-key={certificate}/a.key")
    said = rowfs("account", "keys", rest_store, rest_client.ACCOUNT).stdout
    found = connection(said)
    assert found["TableEndpoint"] == f"https://127.0.0.1:{m.port}/{rest_client.ACCOUNT}"
    assert works(found) == "127.0.0.1" and "socket" not in said


def test_a_connection_string_of_a_unix_socket(rowfs, rest_store, serve, short):
    serve(rest_store, f"--rest=unix:{short}/s")
    said = rowfs("account", "keys", rest_store, rest_client.ACCOUNT).stdout
    assert said.splitlines()[-2] == f"socket   {short}/s"
    assert connection(said)["TableEndpoint"] == f"http://localhost/{rest_client.ACCOUNT}"
    host = f"{rest_client.ACCOUNT}.queue.localhost"
    assert connection(said)["QueueEndpoint"] == f"http://{host}"
    with rest_client.Client(0, unix=short / "s", sign=None, path_style=False) as client:
        head = {"Host": host, "Content-Length": "0"}
        assert client.request("PUT", "/jobs", headers=head).status == 201
        assert client.request("GET", "/jobs?comp=metadata", headers={"Host": host}).status == 200
    with rest_client.Client(0, unix=short / "s", host="localhost", sign=None) as client:
        ok(client.tables(), 200)


def test_a_host_names_the_queues_on_a_unix_socket(serve, rest_store, short):
    serve(rest_store, f"--rest=unix:{short}/s")
    queues = Queues(0, f"{rest_client.ACCOUNT}.queue.localhost", unix=short / "s")
    assert queues.ask("PUT", "/jobs").status == 201
    assert queues.put("jobs", "by the socket").status == 201
    (taken,) = queues.get("jobs")
    assert taken["MessageText"] == "by the socket" and queues.delete("jobs", taken).status == 204
    wrong = Queues(0, queues.host, key="d3Jvbmc=", unix=short / "s").ask("GET", "/jobs/messages")
    assert code(wrong) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("way", ["serve", "mount"])
def test_a_connection_string_names_each_service_that_is_served(
        rowfs, rest_store, serve, mount, way):
    def endpoints():
        found = connection(rowfs("account", "keys", rest_store, rest_client.ACCOUNT).stdout)
        return {k: v for k, v in found.items() if k.endswith("Endpoint")}
    assert set(endpoints()) == {"BlobEndpoint", "QueueEndpoint", "TableEndpoint"}
    for served in (("table", "queue", "blob"), ("queue",), ("blob",), ("table",)):
        rest = [f"rest={name}=127.0.0.1:0" for name in served]
        if way == "serve":
            process = serve(rest_store, *(f"--{r}" for r in rest))
        else:
            process = mount(rest_store, *rest)
        found = endpoints()
        assert set(found) == {f"{name.title()}Endpoint" for name in served}
        assert len(set(found.values())) == len(served) and "127.0.0.1:1000" not in str(found)
        process.stop() if way == "serve" else process.umount()


@pytest.mark.parametrize("served", [False, True])
def test_a_connection_string_with_a_url_of_the_users(rowfs, rest_store, serve, served):
    if served:
        serve(rest_store)
    for command, name in (("add", "fresh"), ("keys", "fresh"), ("regenerate", "fresh")):
        found = connection(rowfs("account", command, rest_store, name,
                                 "--url=https://fresh.tables.example/").stdout)
        assert found["TableEndpoint"] == "https://fresh.tables.example"
        assert found["DefaultEndpointsProtocol"] == "https"
        for bad in ("ftp://x", "http://x?y", "http://x;y", ""):
            assert "--url begins with" in refused(
                rowfs, "account", command, rest_store, name, f"--url={bad}", code=2)


def test_connection_strings_are_printed_on_request(rowfs, rest_store):
    wanted = [rest_client.ACCOUNT, conftest.OTHER_ACCOUNT]
    proc = subprocess.Popen(
        [str(rowfs.program), "serve", str(rest_store), "--rest=127.0.0.1:0",
         *(f"--print-connection={name}" for name in wanted)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=conftest.ENV, text=True)
    try:
        assert proc.stdout.readline().startswith("serving ")
        found = [connection(proc.stdout.readline()) for _ in wanted]
        assert [f["AccountName"] for f in found] == wanted
        assert {works(f) for f in found} == {"127.0.0.1"}
        for f in found:
            assert f == connection(rowfs("account", "keys", rest_store, f["AccountName"]).stdout)
    finally:
        proc.terminate()
        out, err = proc.communicate(timeout=60)
    assert proc.returncode == 0 and out == "" and "AccountKey" not in err


def test_a_connection_string_of_no_account_is_refused(rowfs, rest_store, short):
    said = refused(rowfs, "serve", rest_store, f"--rest=unix:{short}/s",
                   f"--print-connection={rest_client.ACCOUNT}", "--print-connection=nobody")
    assert f"there is no account 'nobody'; make it with: rowfs account add {rest_store} nobody" in said
    assert not (short / "s").exists()


def test_ready_is_told_to_systemd(rowfs, rest_store, short):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(short / "notify"))
        s.settimeout(30)
        proc = subprocess.Popen([str(rowfs.program), "serve", rest_store, "--rest=127.0.0.1:0"],
                                env={**conftest.ENV, "NOTIFY_SOCKET": str(short / "notify")},
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert s.recv(100) == b"READY=1"
        proc.terminate()
        assert s.recv(100) == b"STOPPING=1"
        assert proc.wait(60) == 0


def test_names_of_endpoints(rowfs, store):
    for value, what in (("", "neither"), ("10002", "neither"), ("unix:", "no file"),
                        ("127.0.0.1:", "port"), ("127.0.0.1:65536", "port"),
                        ("127.0.0.1:x", "port"), ("127.0.0.1:-1", "port"),
                        ("::1:10002", "brackets"), (":10002", "neither"),
                        ("http://127.0.0.1:10002", "neither"),
                        ("unix:/" + "a" * 200, "107 bytes"),
                        ("unix:no-such-directory/x", "No such file")):
        text = refused(rowfs, "serve", store, f"--rest={value}", code=2)
        assert text.startswith("rowfs serve: --rest ") and what in text, text
    assert "too many" in refused(rowfs, "serve", store, *["--rest=127.0.0.1:0"] * 9, code=2)
    text = refused(rowfs, "serve", store, "--rest=no.such.host.invalid:0")
    assert "no.such.host.invalid" in text
    text = refused(rowfs, "serve", store, "--rest=192.0.2.1:0")
    assert "not an address of this machine" in text


def test_options_that_do_not_go_together(rowfs, store, certificate, short):
    cert, key = f"--rest-cert={certificate}/a.pem", f"--rest-key={certificate}/a.key"
    sock = f"--rest=unix:{short}/s"
    assert "both" in refused(rowfs, "serve", store, cert, code=2)
    assert "both" in refused(rowfs, "serve", store, key, code=2)
    assert "TCP" in refused(rowfs, "serve", store, cert, key, sock, code=2)
    assert "Unix socket" in refused(rowfs, "serve", store, "--rest-trust=1", code=2)
    for bad in ("", "x", "1:", "-1", "4294967295", "1,2", "none:1"):
        assert "numbers of users" in refused(
            rowfs, "serve", store, sock, f"--rest-trust={bad}", code=2)
    for bad in ("", "common", TENANT + "0", TENANT.replace("-", "")):
        assert "wants a UUID" in refused(
            rowfs, "serve", store, sock, f"--rest-tenant={bad}", code=2)
    assert not (short / "s").exists()


def test_a_store_that_is_not_there(rowfs, work):
    text = refused(rowfs, "serve", work / "none", "--rest=127.0.0.1:0")
    assert "there is no store" in text and "rowfs init" in text


def test_an_address_in_use(rowfs, rest_store, serve, work):
    server = serve(rest_store)
    other = work / "other.rowfs"
    rowfs("init", other)
    text = refused(rowfs, "serve", other, f"--rest=127.0.0.1:{server.port}")
    assert f"127.0.0.1:{server.port}" in text and "in use" in text and "other endpoints" in text
    with rest_client.Client(server.port) as client:
        ok(client.tables(), 200)
    rowfs("check", other)


def test_one_failing_endpoint_leaves_nothing(rowfs, store, short):
    text = refused(rowfs, "serve", store, f"--rest=unix:{short}/s", "--rest=192.0.2.1:1")
    assert "192.0.2.1:1" in text
    assert list(short.iterdir()) == []


def test_limits_that_are_not_understood(rowfs, store, monkeypatch):
    for value in ("x", "head", "head=", "head=x", "head=0", "idle=-1", "head=1,"):
        monkeypatch.setitem(conftest.ENV, "ROWFS_REST_LIMITS", value)
        assert "ROWFS_REST_LIMITS" in refused(rowfs, "serve", store, code=2)


def test_commands_work_through_it(rowfs, rest_store, serve):
    server = serve(rest_store)
    rowfs("account", "add", rest_store, "late1", f"--key={conftest.OTHER_KEY}")
    with rest_client.Client(server.port, account="late1", key=conftest.OTHER_KEY) as client:
        ok(client.create_table("Late"), 201)
    assert json.loads(rowfs("stat", rest_store, "--json").stdout)["tables"] == 1


def test_read_only(rowfs, rest_store, serve):
    server = serve(rest_store)
    with rest_client.Client(server.port) as client:
        ok(client.create_table("Blogs"), 201)
        ok(client.upsert("Blogs", "p", "r", {"N": 1}), 204)
    server.stop()
    server = serve(rest_store, "--read-only")
    with rest_client.Client(server.port) as client:
        assert ok(client.get("Blogs", "p", "r"), 200).json["N"] == 1
        for refusal in (client.upsert("Blogs", "p", "r", {"N": 2}), client.create_table("Other"),
                        client.delete("Blogs", "p", "r")):
            assert refusal.status == 403, refusal
        assert ok(client.get("Blogs", "p", "r"), 200).json["N"] == 1


def test_AD14_a_log_file(rowfs, rest_store, work):
    log = work / "serve.log"
    proc = subprocess.Popen([str(rowfs.program), "serve", rest_store, "--rest=127.0.0.1:0",
                             f"--log={log}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=conftest.ENV)
    assert proc.stdout.readline()
    proc.terminate()
    _, err = proc.communicate(timeout=60)
    assert proc.returncode == 0 and err == b""
    assert "REST at http://127.0.0.1:" in log.read_text() and "is closed" in log.read_text()
    for line in log.read_text().splitlines():
        assert re.match(TIMED, line), line


TIMED = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z rowfs: "


@pytest.mark.parametrize("is_journal", (True, False))
def test_AD14_lines_in_the_journal_begin_with_their_priority(rowfs, rest_store, work, is_journal):
    with open(work / "journal", "w") as err:
        st = os.fstat(err.fileno())
        named = f"{st.st_dev}:{st.st_ino + (0 if is_journal else 1)}"
        proc = subprocess.Popen([str(rowfs.program), "serve", rest_store, "--rest=127.0.0.1:0"],
                                stdout=subprocess.PIPE, stderr=err,
                                env={**conftest.ENV, "JOURNAL_STREAM": named})
        try:
            assert proc.stdout.readline()
            proc.terminate()
            assert proc.wait(60) == 0
        finally:
            proc.kill()
            proc.communicate()
    lines = (work / "journal").read_text().splitlines()
    begins = "<6>rowfs: " if is_journal else TIMED
    assert lines and all(re.match(begins, x) for x in lines), lines


def levels_at(rowfs, rest_store, work, level):
    """The levels of the lines of a server: it has rules of faults, MHD refuses a request, and a reload fails."""
    log, access = work / "log", work / "access"
    with open(log, "wb") as err:
        proc = subprocess.Popen(
            [str(rowfs.program), "serve", rest_store, "--rest=127.0.0.1:0", f"--log-level={level}",
             f"--access-log={access}", "--faults=fault=busy op=insert"],
            stdout=subprocess.PIPE, stderr=err, env=conftest.ENV)
    try:
        port = int(proc.stdout.readline().rsplit(b":", 1)[1])
        access.unlink()
        access.mkdir()
        with socket.create_connection(("127.0.0.1", port), 60) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x: y\r\n" * 20000)
            with contextlib.suppress(ConnectionError):
                s.recv(4096)
        proc.send_signal(signal.SIGHUP)
        wait_for(lambda: "old access log" in log.read_text())
        proc.terminate()
        assert proc.wait(60) == 0
    finally:
        proc.kill()
        proc.communicate()
    return {re.match(TIMED + r"(?:(error|warning|debug): )?", line)[1] or "info"
            for line in log.read_text().splitlines()}


@pytest.mark.parametrize("level, seen", (
    ("error", {"error"}), ("warning", {"error", "warning"}), ("info", {"error", "warning", "info"}),
    ("debug", {"error", "warning", "info", "debug"})))
def test_AD14_the_log_has_the_levels_that_the_user_wants(rowfs, rest_store, work, level, seen):
    assert levels_at(rowfs, rest_store, work, level) == seen


@pytest.mark.parametrize("value", ("", "Info", "verbose"))
def test_AD14_a_level_that_is_none(rowfs, rest_store, value):
    done = rowfs("serve", rest_store, f"--log-level={value}", check=False)
    assert done.returncode == 2 and "is error, warning, info or debug" in done.stderr


# ---- TLS


def test_tls(rest_store, serve, certificate):
    server = serve(rest_store, "--rest=localhost:0", f"--rest-cert={certificate}/a.pem",
                   f"--rest-key={certificate}/a.key")
    assert server.endpoints[0].startswith("https://")
    context = ssl.create_default_context(cafile=certificate / "a.pem")
    with rest_client.Client(server.port, context=context) as client:
        made = ok(client.create_table("Blogs"), 201)
        assert "https://" in made.body.decode()
        for i in range(50):  # kept alive
            ok(client.upsert("Blogs", "p", str(i), {"A": "x" * 20000}), 204)
        assert len(client.all("Blogs")) == 50
    with pytest.raises(ssl.SSLError):
        with rest_client.Client(server.port,
                                context=ssl.create_default_context()) as client:
            client.tables()
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        with rest_client.Client(server.port) as client:  # without TLS
            client.tables()
    if shutil.which("curl"):
        done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}",
                               "--cacert", certificate / "a.pem",
                               f"https://localhost:{server.port}/{rest_client.ACCOUNT}/Tables"],
                              capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.startswith("4"), done


TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
DISCOVER = """
import { TableServiceClient } from "@azure/data-tables";
const asked = [];
const credential = { getToken: async (scopes, options) => {
	asked.push(options.tenantId ?? "none");
	return { token: "a.b.c", expiresOnTimestamp: Date.now() + 3600000 };
} };
const client = new TableServiceClient(process.argv[1], credential);
try {
	await client.createTable("Blogs");
} catch (e) {
	console.log(JSON.stringify({ asked, status: e.statusCode, code: e.code }));
}
"""


def test_an_sdk_discovers_the_tenant(rest_store, serve, certificate):
    """@azure/data-tables asks again for a token, of the tenant that the answer names."""
    node = sdk.need_node("@azure/data-tables")
    server = serve(rest_store, f"--rest-cert={certificate}/a.pem", f"--rest-tenant={TENANT.upper()}",
                   f"--rest-key={certificate}/a.key")
    done = subprocess.run(
        [*node, "--input-type=module", "-e", DISCOVER,
         f"https://localhost:{server.port}/{rest_client.ACCOUNT}"],
        capture_output=True, text=True, cwd=sdk.SDK, timeout=60,
        env={**conftest.ENV, "NODE_EXTRA_CA_CERTS": f"{certificate}/a.pem"})
    said = json.loads(done.stdout)
    assert said["asked"] == ["none", TENANT] and said["status"] == 401, (said, done.stderr)


def test_tls_handshakes_that_never_end_are_cut(rest_store, serve, certificate, monkeypatch):
    monkeypatch.setitem(conftest.ENV, "ROWFS_REST_LIMITS", "head=500")
    server = serve(rest_store, f"--rest-cert={certificate}/a.pem",
                   f"--rest-key={certificate}/a.key")
    with socket.create_connection(("127.0.0.1", server.port), 20) as s:
        s.sendall(b"\x16\x03\x01")
        with contextlib.suppress(ConnectionError):
            assert s.recv(100) == b""


def test_certificates_that_will_not_do(rowfs, store, certificate, work, monkeypatch):
    # GnuTLS itself leaks what it has read of a certificate that it refuses.
    monkeypatch.setitem(conftest.ENV, "ASAN_OPTIONS", "detect_leaks=0:exitcode=99")

    def attempt(cert, key):
        return refused(rowfs, "serve", store, "--rest=127.0.0.1:0", f"--rest-cert={cert}",
                       f"--rest-key={key}")

    a, b = certificate / "a.pem", certificate / "b.key"
    text = attempt(a, b)
    assert "pair" in text and f"'{a}'" in text and f"'{b}'" in text
    assert f"'{work}/none'" in attempt(work / "none", b) and "No such" in attempt(work / "none", b)
    assert f"'{a}' contains no private key" in attempt(a, a)
    assert f"'{b}' contains no certificate" in attempt(b, b)
    junk = work / "junk.pem"
    junk.write_text("-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n")
    assert "certificate" in attempt(junk, certificate / "a.key")
    locked = work / "locked.key"
    subprocess.run(["openssl", "pkey", "-in", certificate / "a.key", "-aes128", "-passout",
                    "pass:secret", "-out", locked], check=True, capture_output=True)
    assert "passphrase" in attempt(a, locked)


# ---- Unix sockets


def curl(sock, path, *args):
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    done = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", "--unix-socket", sock,
                           f"http://localhost/{rest_client.ACCOUNT}/{path}", *args],
                          capture_output=True, text=True, check=True)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def test_a_trusted_peer_needs_no_signature(rest_store, serve, short):
    sock = short / "s"
    server = serve(rest_store, f"--rest=unix:{sock}")
    assert server.endpoints == [f"unix:{sock}"]
    assert stat.S_IMODE(sock.stat().st_mode) == 0o600
    status, body = curl(sock, "Tables", "-H", "Accept: application/json;odata=nometadata")
    assert (status, json.loads(body)) == (200, {"value": []})
    status, _ = curl(sock, "Tables", "-H", "Content-Type: application/json", "-d",
                     '{"TableName": "Made"}')
    assert status == 201
    with rest_client.Client(None, unix=sock) as client:  # a signature is fine too
        assert [t["TableName"] for t in ok(client.tables(), 200).rows] == ["Made"]
    server.stop()
    assert not sock.exists()


def test_without_trust_a_signature_is_wanted(rest_store, serve, short):
    sock = short / "s"
    serve(rest_store, f"--rest=unix:{sock}", "--rest-trust=none")
    assert curl(sock, "Tables")[0] in (401, 403, 404)
    with rest_client.Client(None, unix=sock) as client:
        ok(client.tables(), 200)


def test_others_only_where_they_are_listed(rest_store, serve, short):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    sock = short / "s"
    short.chmod(0o755)
    program = """
import http.client, os, socket, sys
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
except PermissionError:
    print("refused"); sys.exit()
s.sendall(b"GET /devstoreaccount1/Tables HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
r = http.client.HTTPResponse(s); r.begin(); print(r.status)
"""

    def status_of(uid):
        return subprocess.run(["python3", "-c", program, sock, str(uid)], check=True,
                              capture_output=True, text=True).stdout.strip()

    server = serve(rest_store, f"--rest=unix:{sock}")
    assert status_of(0) == "200"
    assert status_of(1234) == "refused"
    server.stop()
    serve(rest_store, f"--rest=unix:{sock}", "--rest-trust=1234:1235")
    assert stat.S_IMODE(sock.stat().st_mode) == 0o666
    assert status_of(0) == status_of(1234) == status_of(1235) == "200"
    assert status_of(1236) in ("401", "403", "404")


def test_a_stale_socket_is_replaced(rest_store, serve, short):
    sock = short / "s"
    server = serve(rest_store, f"--rest=unix:{sock}")
    server.kill9()
    assert sock.exists()
    server = serve(rest_store, f"--rest=unix:{sock}")
    assert curl(sock, "Tables")[0] == 200


def test_what_answers_or_is_no_socket_stays(rowfs, rest_store, serve, short, work):
    sock = short / "s"
    serve(rest_store, f"--rest=unix:{sock}")
    other = work / "other.rowfs"
    rowfs("init", other)
    text = refused(rowfs, "serve", other, f"--rest=unix:{sock}")
    assert "in use" in text and str(sock) in text
    assert curl(sock, "Tables")[0] == 200
    plain = short / "plain"
    plain.write_text("mine")
    assert "not a socket" in refused(rowfs, "serve", other, f"--rest=unix:{plain}")
    assert plain.read_text() == "mine"
    (short / "dir").mkdir()
    assert "not a socket" in refused(rowfs, "serve", other, f"--rest=unix:{short}/dir")


def test_another_s_socket_is_not_removed_at_the_end(rest_store, serve, short):
    sock = short / "s"
    server = serve(rest_store, f"--rest=unix:{sock}")
    sock.unlink()
    with socket.socket(socket.AF_UNIX) as mine:
        mine.bind(str(sock))
        server.stop()
        assert sock.exists()


def test_a_relative_path(rowfs, rest_store, short):
    proc = subprocess.Popen([str(rowfs.program), "serve", rest_store, "--rest=unix:s"],
                            cwd=short, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            env=conftest.ENV, text=True)
    assert proc.stdout.readline() == f"serving {rest_store} at unix:{short}/s\n"
    proc.terminate()
    assert proc.wait(60) == 0


# ---- the end


@pytest.mark.parametrize("how", ["serve", "mount"])
def test_a_stop_under_load_loses_nothing_and_nobody_hangs(how, rest_store, serve, mount):
    server = serve(rest_store) if how == "serve" else mount(rest_store, "rest=127.0.0.1:0")
    port = server.port
    with rest_client.Client(port) as client:
        ok(client.create_table("Load"), 201)
    acknowledged, problems = [], []

    def write(worker):
        client = rest_client.Client(port)
        for n in range(1000000):
            try:
                done = client.upsert("Load", f"p{worker % 3}", f"{worker}-{n}", {"N": n})
            except TimeoutError as e:
                problems.append(e)
                return
            except (OSError, http.client.HTTPException):
                return
            if done.status == 503:
                return
            if done.status != 204:
                problems.append(done)
                return
            acknowledged.append((f"p{worker % 3}", f"{worker}-{n}"))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(24)]
    for t in threads:
        t.start()
    while len(acknowledged) < 500 and not problems:
        time.sleep(0.01)
    if how == "serve":
        server.stop()
    else:
        server.sigterm()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    assert not problems, problems
    with rest_client.Client(serve(rest_store).port) as client:
        there = {(r["PartitionKey"], r["RowKey"]) for r in client.all("Load")}
    assert not set(acknowledged) - there


def test_a_stop_does_not_wait_for_those_who_dawdle(rest_store, serve, monkeypatch):
    """Who had ten minutes has seconds then."""
    monkeypatch.setitem(conftest.ENV, "ROWFS_REST_LIMITS", "head=600000,progress=600000")
    server = serve(rest_store)
    with contextlib.ExitStack() as stack:
        for data in (b"", b"GET / HT", b"GET / HTTP/1.1\r\n",
                     b"PUT /x HTTP/1.1\r\nContent-Length: 1000\r\n\r\nx"):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            s.sendall(data)
            wait_until_read(s)
        server.stop(100)


def test_a_request_that_was_begun_is_finished(rest_store, serve):
    """SIGTERM comes while the body is on its way."""
    server = serve(rest_store)
    client = rest_client.Client(server.port)
    ok(client.create_table("Begun"), 201)
    target = client.target(rest_client.entity_path("Begun", "p", "r"))
    head = client.headers_for("PUT", target, b'{"N": 1}', {}, "")
    text = f"PUT {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in head.items())
    with client.connect() as s:
        s.sendall(text.encode() + b'\r\n{"N"')
        wait_until_read(s)
        server.proc.send_signal(signal.SIGTERM)
        time.sleep(0.3)  # a server that does not wait for the request ends meanwhile
        s.sendall(b": 1}")
        r = http.client.HTTPResponse(s)
        r.begin()
        assert r.status == 204 and r.headers["Connection"].lower() == "close"
    server.proc.wait(60)
    assert server.proc.returncode == 0
    with rest_client.Client(serve(rest_store).port) as again:
        assert ok(again.get("Begun", "p", "r"), 200).json["N"] == 1


def test_new_connections_are_not_taken_any_more(rest_store, serve):
    server = serve(rest_store)
    with socket.create_connection(("127.0.0.1", server.port)) as begun:
        begun.sendall(b"PUT /x HTTP/1.1\r\nContent-Length: 10\r\n\r\nx")
        wait_until_read(begun)
        server.proc.send_signal(signal.SIGTERM)
        end, answer = time.monotonic() + 60, b"HTTP"
        while answer:  # it may not have heard of its end yet
            assert time.monotonic() < end
            with contextlib.suppress(OSError):
                with socket.create_connection(("127.0.0.1", server.port), 5) as s:
                    answer = b""
                    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    answer = s.recv(100)
                continue
            break
    assert server.proc.wait(60) == 0


# ---- the mount


def test_a_mount_serves_both_front_ends(mount, rest_store, short):
    m = mount(rest_store, "rest=127.0.0.1:0", f"rest=unix:{short}/a\\,b", "rest-trust=none")
    with rest_client.Client(m.port) as client:
        ok(client.create_table("Blogs"), 201)
        ok(client.upsert("Blogs", "p", "r", {"N": 1}), 204)
        assert json.loads((m / rest_client.ACCOUNT / "Blogs" / "p" / "r.json").read_text()) == {
            "N": 1}
        (m / rest_client.ACCOUNT / "Blogs" / "p" / "r.json").write_text('{"N": 2}')
        assert ok(client.get("Blogs", "p", "r"), 200).json["N"] == 2
    with rest_client.Client(None, unix=short / "a,b") as client:
        ok(client.tables(), 200)
    m.umount()
    assert list(short.iterdir()) == []


def test_a_mount_answers_rest_before_it_is_ready(rowfs, rest_store, work, short):
    conftest.need_fuse()
    at = work / "mnt"
    at.mkdir()
    try:
        for _ in range(3):  # in the background, from wherever
            rowfs("mount", rest_store, at, "-o", f"rest=unix:s,log={work}/log", cwd=short)
            assert curl(short / "s", "Tables")[0] == 200
            assert f"REST at unix:{short}/s" in (work / "log").read_text()
            rowfs("umount", at)
            assert not (short / "s").exists()
    finally:
        conftest.detach(at)


def test_a_failed_bind_fails_the_mount(rowfs, rest_store, serve, work):
    conftest.need_fuse()
    server = serve(rest_store)
    other = work / "other.rowfs"
    rowfs("init", other)
    at = work / "mnt"
    at.mkdir()
    for extra in ([], ["-f"]):
        text = refused(rowfs, "mount", other, at, *extra, "-o", f"rest=127.0.0.1:{server.port}")
        assert "in use" in text and text.startswith("rowfs mount: cannot open the REST socket")
        assert not conftest.is_mount(at)
    rowfs("check", other)


def test_mount_options_that_are_wrong(rowfs, store, work):
    at = work / "mnt"
    at.mkdir()
    for options, what in (("rest=x", "'rest='"), ("rest-cert=/x", "both"), ("rest-trust=1", "Unix"),
                          ("rest=unix:/tmp/x,rest-trust=me", "'rest-trust='"),
                          ("rest=,ro", "'rest='")):
        assert what in refused(rowfs, "mount", store, at, "-o", options, code=2), options
    assert not conftest.is_mount(at)


def test_a_read_only_mount_has_a_read_only_socket(mount, rest_store, serve):
    server = serve(rest_store)
    with rest_client.Client(server.port) as client:
        ok(client.create_table("Blogs"), 201)
    server.stop()
    m = mount(rest_store, "ro", "rest=127.0.0.1:0")
    with rest_client.Client(m.port) as client:
        assert client.upsert("Blogs", "p", "r", {}).status == 403
        ok(client.tables(), 200)


def test_an_unmount_finishes_what_rest_has_begun(mount, rest_store):
    m = mount(rest_store, "rest=127.0.0.1:0")
    port, done = m.port, []
    with rest_client.Client(port) as client:
        ok(client.create_table("Load"), 201)

    def write(worker):
        client = rest_client.Client(port)
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            for n in range(1000000):
                if client.upsert("Load", "p", f"{worker}-{n}", {}).status != 204:
                    return
                done.append(f"{worker}-{n}")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(write, i) for i in range(8)]
        while len(done) < 100:
            time.sleep(0.01)
        m.umount()
        for f in futures:
            f.result(60)
    m.start()
    with rest_client.Client(m.port) as client:
        assert not set(done) - {r["RowKey"] for r in client.all("Load")}
