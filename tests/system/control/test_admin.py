# SPDX-License-Identifier: MIT
"""The admin socket: figures for Prometheus and health, without credentials."""

import http.client
import json
import os
import re
import signal
import socket
import threading

import calls
import pytest

import prometheus_text
from rest_client import Client, ok
from tools import get, wait_for


def ask(port, path, method="GET", host=None, body=None):
    """The status, the headers and the body of one request."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        c.request(method, path, body=body, headers={"Host": host} if host else {})
        r = c.getresponse()
        return r.status, r.headers, r.read()
    finally:
        c.close()


def fails(rowfs, *args, code=1):
    done = rowfs(*args, check=False)
    assert (done.returncode, done.stdout) == (code, ""), done
    return done.stderr


def families(port):
    status, headers, body = ask(port, "/metrics")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return prometheus_text.parse(body)


def port_of(endpoint):
    return int(endpoint.rsplit(":", 1)[1])


@pytest.fixture
def server(serve, rest_store):
    s = serve(rest_store, "--admin=127.0.0.1:0")
    s.admin = port_of(s.endpoints[1])
    return s


def test_AD1_a_server_without_a_mount_shows_its_figures(server):
    with Client(server.port) as client:
        ok(client.create_table("Tab"))
        for i in range(3):
            ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": str(i)}))
    seen = families(server.admin)["rowfs_operation_duration_seconds"]
    assert seen.get("_count", front_end="rest", operation="InsertEntity") == 3
    assert families(server.admin)["rowfs_store_bytes"].get() > 0


def test_AD1_a_mount_shows_the_same_families_in_its_file(mount, rest_store):
    m = mount(rest_store, "admin=127.0.0.1:0")
    (m / "acct1").mkdir()
    shown = families(m.port)
    own = prometheus_text.parse(get(m / ".rowfs/metrics"))
    assert set(shown) < set(own)
    for name in set(own) - set(shown):
        assert re.match("rowfs_(build|start|cache|kernel|overdue|open|rejected|trash)_", name), name
    assert shown["rowfs_operation_duration_seconds"].get(
        "_count", front_end="mount", operation="mkdir") == 1


@pytest.mark.parametrize("path, told", (
    ("/health/live", {"status": "live"}), ("/health/ready", {"status": "ready", "reasons": []}),
    ("/health/ready?verbose", {"status": "ready", "reasons": []})))
def test_AD2_a_healthy_server_says_so(server, path, told):
    status, headers, body = ask(server.admin, path)
    assert (status, headers["Content-Type"], json.loads(body)) == (200, "application/json", told)
    status, headers, body = ask(server.admin, path, "HEAD")
    assert (status, body) == (200, b"") and int(headers["Content-Length"]) > 0


def test_AD2_a_server_that_only_reads_is_ready(serve, rest_store):
    s = serve(rest_store, "--admin=127.0.0.1:0", "--read-only")
    assert ask(port_of(s.endpoints[1]), "/health/ready")[0] == 200


def test_AD2_a_full_disk_is_not_ready_until_it_has_room(rowfs, serve, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    s = serve(store, "--admin=127.0.0.1:0")
    port, big = port_of(s.endpoints[1]), small_disk / "big"
    assert ask(port, "/health/ready")[0] == 200
    with pytest.raises(OSError), open(big, "wb", buffering=0) as f:
        while True:
            f.write(bytes(4096))
    status, _, body = ask(port, "/health/ready")
    told = json.loads(body)
    assert (status, told["status"]) == (503, "not ready") and len(told["reasons"]) == 1, told
    assert ask(port, "/health/live")[0] == 200
    big.unlink()
    assert ask(port, "/health/ready")[0] == 200


def test_AD12_a_server_that_stops_is_live_and_not_ready(struck, rest_store):
    m, control = struck("rest=127.0.0.1:0", "admin=127.0.0.1:0")
    rest, admin = (int(port) for port in re.findall(r"REST at \S+:(\d+)\n", m.log()))
    with Client(rest) as client:
        ok(client.create_table("Tab"))
        control.strike("stall", calls.WRITE, 1)
        answers = []
        insert = threading.Thread(target=lambda: answers.append(
            client.insert("Tab", {"PartitionKey": "p", "RowKey": "r"}).status))
        insert.start()
        wait_for(lambda: control.struck)
        m.proc.send_signal(signal.SIGTERM)
        wait_for(lambda: ask(admin, "/health/ready")[0] == 503)
        assert json.loads(ask(admin, "/health/ready")[2])["reasons"] == ["The server is stopping."]
        assert ask(admin, "/health/live")[0] == 200
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(rest, "/")
        control.stop()
        insert.join(60)
        assert answers == [201] and m.proc.wait(60) == 0
    with pytest.raises(OSError):
        ask(admin, "/health/live")


@pytest.mark.parametrize("method", ("POST", "PUT", "DELETE", "OPTIONS", "MERGE"))
def test_AD3_only_reading_is_allowed(server, method):
    status, headers, body = ask(server.admin, "/metrics", method, body=b"")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert "not allowed" in json.loads(body)["error"]


@pytest.mark.parametrize("host", (None, "acct.table.localhost", "devstoreaccount1.queue.localhost"))
def test_AD3_no_other_path_exists_whatever_the_host(server, host):
    for path in ("/", "/metrics/", "/health", "/acct/Tables", "/?comp=list", "/METRICS"):
        status, _, body = ask(server.admin, path, host=host)
        assert status == 404 and json.loads(body)["error"], path


def test_AD3_storage_sockets_do_not_show_the_figures(server):
    for host in (None, "acct.admin.localhost"):
        status, _, body = ask(server.port, "/metrics", host=host)
        assert status >= 400 and b"rowfs_store_bytes" not in body


def test_AD3_a_body_beyond_the_limit_is_refused(server):
    assert ask(server.admin, "/metrics", "POST", body=b"x" * (64 << 10))[0] == 405
    assert ask(server.admin, "/metrics", "POST", body=b"x" * ((64 << 10) + 1))[0] == 413


def test_AD3_what_is_no_http_is_refused(server):
    with socket.create_connection(("127.0.0.1", server.admin), 60) as s:
        s.sendall(b"GET /metrics HTTP/1.1\nHost: x\n\n")
        assert s.recv(100).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("host", ("evil.example", "localhost.evil.example:9464", "127.0.0.1.evil.example"))
def test_AD6_another_name_of_this_machine_reads_nothing(server, host):
    for path in ("/metrics", "/health/live", "/health/ready"):
        status, _, body = ask(server.admin, path, host=host)
        assert status == 403 and b"Host header" in body, (path, status, body[:100])


@pytest.mark.parametrize("host", ("localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:80", "[::1]:9464"))
def test_AD6_names_of_this_machine_read(server, host):
    assert ask(server.admin, "/health/live", host=host)[0] == 200


def test_AD4_other_machines_are_refused_unless_allowed(rowfs, serve, rest_store):
    said = fails(rowfs, "serve", rest_store, "--rest=127.0.0.1:0", "--admin=0.0.0.0:0")
    assert "admin-public" in said
    s = serve(rest_store, "--admin=0.0.0.0:0", "--admin-public")
    assert s.endpoints[1].startswith("http://0.0.0.0:")
    assert ask(port_of(s.endpoints[1]), "/health/live")[0] == 200
    said = fails(rowfs, "serve", rest_store, "--admin-public", code=2)
    assert "there is no admin=" in said


def test_AD4_a_unix_socket(serve, rest_store, work):
    serve(rest_store, f"--admin=unix:{work}/a", f"--rest=unix:{work}/r", f"--rest-trust={os.getuid()}")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(str(work / "a"))
        s.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert s.makefile("rb").read().endswith(b'{"status":"live"}\n')
    assert (work / "a").stat().st_mode & 0o777 == 0o600


def test_AD4_an_endpoint_that_is_none(rowfs, store):
    for value, what in (("", "neither"), ("queue=127.0.0.1:0", "no word"), ("9464", "neither")):
        assert what in fails(rowfs, "serve", store, f"--admin={value}", code=2)
