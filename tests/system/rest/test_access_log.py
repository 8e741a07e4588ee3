# SPDX-License-Identifier: MIT
"""The access log: a line for each answered request (AD8 to AD11 in docs/operating.md)."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from blob_client import blobs_of
from rest_client import ACCOUNT, KEY, Client, account_sas, ok, table_sas
from tools import get, wait_for

COMBINED = re.compile(
    r'(?P<client>\S+) - (?P<account>\S+) \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\] '
    r'"(?P<method>\S+) (?P<target>\S+) HTTP/1\.[01]" (?P<status>\d{3}) (?P<sent>\d+) '
    r'"(?P<referer>[^"]*)" "(?P<agent>[^"]*)" (?P<id>\S+) (?P<service>\S+) (?P<operation>\S+) '
    r'(?P<auth>\S+) (?P<received>\d+) (?P<ms>\d+\.\d{3})')


def lines(path, n):
    """The first n lines; the server writes a line after it has sent the response."""
    wait_for(lambda: path.exists() and get(path).count(b"\n") >= n)
    return get(path).decode().splitlines()


def objects(path, n):
    """The first n lines in order of their requests: connections end in any order."""
    return sorted((json.loads(line) for line in lines(path, n)), key=lambda line: line["time"])


@pytest.fixture
def path(work):
    return work / "access"


@pytest.fixture
def logged(serve, rest_store, path):
    """A factory: logged("--access-log-slow=5") -> the server, which writes JSON to path."""
    return lambda *options: serve(
        rest_store, f"--access-log={path}", "--access-log-format=json", *options)


def test_AD8_json_has_the_facts_of_each_request(logged, path):
    with Client(logged().port) as client:
        ok(client.create_table("Tab"))
        r = client.insert("Tab", {"PartitionKey": "p", "RowKey": "r"},
                          {"User-Agent": "me", "x-ms-client-request-id": "mine"})
        assert client.get("Tab", "p", "none").status == 404
    made, inserted, missing = objects(path, 3)
    assert (made["operation"], made["status"]) == ("CreateTable", 201)
    assert inserted["request_id"] == ok(r).headers["x-ms-request-id"]
    assert (inserted["client_request_id"], inserted["user_agent"]) == ("mine", "me")
    assert inserted["received"] > 0 and inserted["sent"] == len(r.body)
    assert (missing["status"], missing["method"]) == (404, "GET")
    assert missing["target"] == f"/{ACCOUNT}/Tab(PartitionKey='p',RowKey='none')"
    for line in made, inserted, missing:
        assert (line["service"], line["account"], line["auth"]) == ("table", ACCOUNT, "key")
        assert (line["client"], line["protocol"], line["complete"]) == ("127.0.0.1", "HTTP/1.1", True)
        assert 0 < line["server_ms"] <= line["ms"] < 60000
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", line["time"])


def test_AD8_combined_is_the_default(serve, rest_store, path):
    with Client(serve(rest_store, f"--access-log={path}").port) as client:
        r = client.request("GET", "Tables", headers={"User-Agent": 'me "1"', "Referer": "http://x/"})
    m = COMBINED.fullmatch(lines(path, 1)[0])
    assert (m["target"], m["agent"], m["referer"]) == (f"/{ACCOUNT}/Tables", "me%20%221%22", "http://x/")
    assert (m["account"], m["service"], m["auth"]) == (ACCOUNT, "table", "key")
    assert (m["status"], int(m["sent"]), m["id"]) == ("200", len(r.body), r.headers["x-ms-request-id"])
    assert path.stat().st_mode & 0o777 == 0o640


def test_AD8_a_blob_of_several_parts_is_counted_as_it_is_sent(serve, rest_store, path):
    s = serve(rest_store, f"--access-log={path}", "--access-log-format=json", "--rest=blob=127.0.0.1:0")
    blobs = blobs_of(s, rest_store)
    blobs.ask("PUT", "/box", {"restype": "container"})
    assert blobs.put("/box/big", bytes(3 << 20)).status == 201
    assert len(blobs.get("/box/big").body) == 3 << 20
    assert blobs.ask("HEAD", "/box/big").status == 200
    _, put, read, head = objects(path, 4)
    assert (put["service"], put["received"], put["sent"]) == ("blob", 3 << 20, 0)
    assert (read["operation"], read["sent"], head["sent"]) == ("GetBlob", 3 << 20, 0)


def test_AD8_a_client_that_leaves_is_marked(serve, rest_store, path):
    s = serve(rest_store, f"--access-log={path}", "--access-log-format=json", "--rest=blob=127.0.0.1:0")
    blobs = blobs_of(s, rest_store)
    blobs.ask("PUT", "/box", {"restype": "container"})
    blobs.put("/box/big", bytes(32 << 20))

    class Left(Exception):
        pass

    def leave(_):
        raise Left
    with pytest.raises(Left):
        blobs.ask("GET", "/box/big", sink=leave)
    line = objects(path, 3)[2]
    assert not line["complete"] and line["sent"] < 32 << 20


def test_AD8_each_kind_of_credential_is_named(serve, rest_store, work, path):
    s = serve(rest_store, f"--access-log={path}", "--access-log-format=json", f"--rest=unix:{work}/s",
              "--rest=127.0.0.1:0", "--page=127.0.0.1:0", "--admin=127.0.0.1:0")
    with Client(None, unix=work / "s", sign=None) as client:
        ok(client.create_table("Tab"))
    with Client(s.port) as client:
        client.clone(sign=None).query("Tab")
        client.clone(sign=None, sas=table_sas(ACCOUNT, KEY, "Tab")).query("Tab")
        client.clone(key="AAAA").query("Tab")
        client.query("Tab", headers={"authorization": "Bearer a.b.c"})
        client.clone(account="nobody").query("Tab")
    at = next(e for e in s.endpoints if "/?link=" in e)
    port, link = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?link=\w+)", at).groups()
    c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    c.request("GET", link)
    r = c.getresponse()
    r.read()
    c.request("GET", f"/table/{ACCOUNT}/Tables",
              headers={"Cookie": r.headers["Set-Cookie"].split(";")[0]})
    assert c.getresponse().status == 200
    c.close()
    seen = objects(path, 8)
    assert [line["auth"] for line in seen] == [
        "trusted", "anonymous", "sas", "key", "token", "-", "-", "session"]
    assert [line["status"] for line in seen] == [201, 401, 200, 403, 401, 403, 303, 200]
    assert [line["service"] for line in seen] == ["table"] * 6 + ["page"] * 2
    assert seen[0]["client"] == "unix" and seen[7]["operation"] == "QueryTables"


def test_AD8_odd_heads_do_not_break_a_line(logged, path):
    s = logged()
    heads = (b'GET /"x\\y HTTP/1.1\r\nHost: a"b.table.localhost\r\nUser-Agent: \xff"\\\r\n\r\n',
             b'GET / HTTP/1.1"x\\\r\nHost: a\r\n\r\n', b'G"T\\ / HTTP/1.1\r\nHost: a\r\n\r\n',
             b"GET /\xc3\xa9\xff HTTP/1.0\r\n\r\n")
    for head in heads:
        with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", s.port), 60) as sock:
            sock.sendall(head)
            sock.recv(4096)
    with Client(s.port) as client:
        client.tables()
    wait_for(lambda: b"QueryTables" in get(path))
    seen = [json.loads(line) for line in get(path).splitlines()]
    assert {"/%22x%5Cy", "/%C3%A9%FF"} <= {line["target"] for line in seen}


@pytest.mark.parametrize("form", ("json", "combined"))
def test_AD9_no_credential_is_in_the_log(serve, rest_store, path, form):
    s = serve(rest_store, f"--access-log={path}", f"--access-log-format={form}", "--page=127.0.0.1:0")
    sas = account_sas(ACCOUNT, KEY)
    signature = re.search(r"sig=([^&]+)", sas)[1]
    link = re.search(r"link=(\w+)", "".join(s.endpoints))[1]
    with Client(s.port) as client:
        ok(client.tables())
        ok(client.clone(sign=None, sas=sas).tables(), 200)
        hidden = sas.replace("sig=", "s%69g%3D")
        for target in f"/{ACCOUNT}/Tables?{hidden}", f"/{ACCOUNT}/Tables&sig={signature}":
            client.request("GET", target, headers={"Referer": f"http://x{target}"}, sign=None)
        client.request("GET", f"/{ACCOUNT}/Tables?link={link}", sign=None)
    text = "\n".join(lines(path, 5))
    assert text.count("sig=***") == 3 and "link=***" in text and "s%69g%3D***" in text
    for secret in signature, signature[:20], link, KEY, KEY[:20], "SharedKey":
        assert secret not in text, secret


def test_AD10_one_of_n_requests(logged, path):
    with Client(logged("--access-log-sample=3").port) as client:
        for i in range(7):
            client.get("Tab", "p", str(i))
    assert [line["target"][-3] for line in objects(path, 3)] == ["0", "3", "6"]


@pytest.mark.parametrize("options, share", (((), 0), (("--access-log-sample=4",), 4)))
def test_AD10_slow_requests_and_a_sample_of_the_others(logged, path, options, share):
    """A busy machine makes more requests slow than those that must be: they count by their time."""
    s = logged("--access-log-slow=250", "--faults=fault=busy op=QueryTables wait=0.3", *options)
    with Client(s.port) as client:
        for i in range(5):
            client.get("Tab", "p", str(i))
            assert client.tables().status == 503
    s.proc.terminate()
    assert s.proc.wait(60) == 0
    seen = objects(path, 5)
    slow = [line["operation"] for line in seen if line["ms"] >= 250]
    assert slow.count("QueryTables") == 5
    assert len(seen) - len(slow) == (-(-(10 - len(slow)) // share) if share else 0)


def test_AD11_sighup_opens_the_file_again(logged, path, work):
    s = logged()
    with Client(s.port) as client:
        client.tables()
        lines(path, 1)
        os.rename(path, work / "old")
        s.proc.send_signal(signal.SIGHUP)
        wait_for(path.exists)
        client.tables()
        lines(path, 1)
        assert get(work / "old").count(b"\n") == 1
        os.rename(path, work / "older")
        path.mkdir()
        s.allow("going on with the old access log")
        s.proc.send_signal(signal.SIGHUP)
        wait_for(lambda: "old access log" in s.log())
        client.tables()
        lines(work / "older", 2)


def test_AD11_a_reader_that_stops_delays_no_request(serve, rest_store, path):
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        s = serve(rest_store, f"--access-log={path}")
        long = "x" * 900
        with Client(s.port) as client:
            for i in range(1400):
                assert client.request("GET", f"Tab?{long}{i}").status == 404
        s.proc.terminate()
        assert s.proc.wait(60) == 0
        assert re.search(r"access log: \d+ lines were left out of '.*access': it was too slow", s.log())
    finally:
        os.close(reader)


def test_AD8_a_mount_has_it_too(rest_mount, rest_store, path):
    with Client(rest_mount(rest_store, f"access-log={path}", "access-log-format=json").port) as client:
        ok(client.tables(), 200)
    assert objects(path, 1)[0]["operation"] == "QueryTables"


def test_AD8_the_standard_output_is_a_file_too(rowfs, rest_store):
    server = subprocess.Popen([str(rowfs.program), "serve", str(rest_store), "--rest=127.0.0.1:0", "--access-log=-"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        with Client(int(server.stdout.readline().rsplit(":", 1)[1])) as client:
            client.tables()
        assert COMBINED.fullmatch(server.stdout.readline().rstrip("\n"))
    finally:
        server.terminate()
        assert server.wait(60) == 0
        server.stdout.close()


@pytest.mark.parametrize("options, what", (
    (("--access-log=",), "names no file"),
    (("--access-log-format=json",), "there is no access-log="),
    (("--access-log=a", "--access-log-format=xml"), "is combined or json"),
    (("--access-log=a", "--access-log-sample=0"), "a number from 1 on"),
    (("--access-log=a", "--access-log-slow=4294967296"), "a number from 1 on")))
def test_AD8_options_that_are_wrong(rowfs, rest_store, options, what):
    done = rowfs("serve", rest_store, *options, check=False)
    assert done.returncode == 2 and what in done.stderr


def test_AD8_a_file_that_cannot_be_opened_is_refused(rowfs, rest_store, work):
    done = rowfs("serve", rest_store, "--rest=127.0.0.1:0", f"--access-log={work}", check=False)
    assert done.returncode == 1 and "cannot open '" in done.stderr


def test_AD8_a_mount_in_the_background_has_no_standard_output(rowfs, rest_store, work):
    (work / "at").mkdir()
    done = rowfs("mount", rest_store, work / "at", "-o", "rest=127.0.0.1:0,access-log=-", check=False)
    assert done.returncode == 1 and "needs -f" in done.stderr
    done = rowfs("mount", rest_store, work / "at", "-o", f"access-log={work}/a", check=False)
    assert done.returncode == 2 and "there is no rest=" in done.stderr
