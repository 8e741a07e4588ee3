# SPDX-License-Identifier: MIT
"""HTTP itself, with bytes written by hand: framing, limits of size and time, connections.

What a request means is for other files; here it matters that each gets its one answer, that
nothing hangs, and that the socket serves everybody else meanwhile and afterwards.
"""

import contextlib
import ctypes
import http.client
import json
import os
import select
import shutil
import socket
import subprocess
import threading
import time

import conftest
from conftest import descriptors
import pytest
import rest_client
from rest_client import ok
from wire import Wire, raw

BATCH_BYTES = 4 << 20
BODY_LIMIT = BATCH_BYTES + (64 << 10)
# Of MHD's memory for a connection, what a head may take: less than this is served ...
HEAD_SERVED = 56 << 10
# ... and more than this never is.
HEAD_REFUSED = 64 << 10
MHD = ctypes.CDLL("libmicrohttpd.so.12")
MHD.MHD_get_version.restype = ctypes.c_char_p


@pytest.fixture
def row(rest, tab):
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "r", "N": 1}), 201)
    return rest_client.entity_path(tab, "p", "r")


@pytest.fixture
def limited(rest_store, serve, monkeypatch):
    """A factory: limited("head=300,idle=600") -> a client of a server with these limits."""
    def make(limits):
        monkeypatch.setitem(conftest.ENV, "ROWFS_REST_LIMITS", limits)
        server = serve(rest_store)
        client = rest_client.Client(server.port)
        client.pid = server.proc.pid
        return client

    return make


# ---- pieces and order


def test_a_request_split_at_every_byte(rest, row):
    request = raw(rest, "GET", row)
    with Wire(rest) as w:
        for at in range(1, len(request)):
            w.send(request[:at])
            if at % 8 == 0:
                time.sleep(0.001)  # so that it does arrive in two
            w.send(request[at:])
            status, _, body = w.answer()
            assert status == 200 and json.loads(body)["N"] == 1, (at, status, body)


def test_a_body_split_at_every_byte(rest, tab):
    with Wire(rest) as w:
        request = raw(rest, "PUT", rest_client.entity_path(tab, "p", "s"), {"N": 1})
        start = request.index(b"\r\n\r\n") - 2
        for at in range(start, len(request)):
            w.send(request[:at])
            time.sleep(0.001)
            w.send(request[at:])
            assert w.answer("PUT")[0] == 204, at


def test_one_byte_at_a_time(rest, row):
    with Wire(rest) as w:
        for byte in raw(rest, "GET", row):
            w.send(bytes([byte]))
        assert w.answer()[0] == 200


def test_pipelined_requests_are_answered_in_order(rest, tab):
    paths = [rest_client.entity_path(tab, "p", f"r{i}") for i in range(20)]
    with Wire(rest) as w:
        w.send(b"".join(raw(rest, "PUT", p, {"N": i}) for i, p in enumerate(paths)))
        for _ in paths:
            assert w.answer("PUT")[0] == 204
        w.send(b"".join(raw(rest, "GET", p) for p in paths))
        for i, _ in enumerate(paths):
            status, _, body = w.answer()
            assert status == 200 and json.loads(body)["N"] == i


def test_truncated_requests_are_no_requests(limited):
    client = limited("head=500,progress=500")
    ok(client.create_table("Cut"), 201)
    path = rest_client.entity_path("Cut", "p", "r")
    request = raw(client, "PUT", path, {"N": 1})
    for at in (0, 1, 5, len(request) // 2, len(request) - 1):
        with Wire(client) as w:
            w.send(request[:at])
            w.sock.shutdown(socket.SHUT_WR)
            assert w.is_closed(25), at
    assert client.get("Cut", "p", "r").status == 404


def test_what_is_not_http(limited):
    client = limited("head=500")
    for noise in (b"\0" * 100, b"\x16\x03\x01\x02\x00" + bytes(200), b"GET\r\n\r\n",
                  b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n", b": : :\r\n\r\n",
                  b"GET /x HTTP/1.1\r\nno colon\r\n\r\n", b"\xff" * 3000 + b"\r\n\r\n",
                  b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                  b"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"):
        with Wire(client) as w:
            w.send(noise)
            w.sock.settimeout(10)
            data = b""
            with contextlib.suppress(ConnectionError):
                while piece := w.sock.recv(65536):
                    data += piece
            assert not data or data.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505")), (noise, data)
    ok(client.tables(), 200)


# ---- lengths


@pytest.mark.parametrize("method", ["PUT", "POST", "MERGE", "PATCH"])
def test_a_missing_length_is_411(rest, row, method):
    with Wire(rest) as w:
        w.send(raw(rest, method, row, {}, {"Content-Length": None}).partition(b"{}")[0])
        status, headers, _ = w.answer(method)
        assert status == 411 and headers["x-ms-error-code"] == "MissingContentLengthHeader"
        assert headers["Connection"].lower() == "close"
        assert w.is_closed(25)


def put_in_chunks(wire, rest, path, sizes, extension=b""):
    document = b'{"Text": "0123456789x"}'.ljust(sum(sizes))
    wire.send(raw(rest, "PUT", path, b"", {"Content-Length": None,
                                           "Transfer-Encoding": "chunked"}))
    at = 0
    for n in sizes:
        wire.send(b"%x%s\r\n" % (n, extension) + document[at:at + n] + b"\r\n")
        at += n
    with contextlib.suppress(ConnectionError):  # it may be refused by now
        wire.send(b"0\r\nTrailer: ignored\r\n\r\n")
    return wire.answer("PUT")


@pytest.mark.parametrize("sizes", [(1,) * 30, (7, 3, 20), (30,)])
def test_chunked_bodies(rest, tab, sizes):
    path = rest_client.entity_path(tab, "p", "chunks")
    with Wire(rest) as w:
        assert put_in_chunks(w, rest, path, sizes)[0] == 204
        w.send(raw(rest, "GET", path))  # and the connection goes on
        status, _, body = w.answer()
        assert status == 200 and json.loads(body)["Text"] == "0123456789x"


@pytest.mark.parametrize("extension", [b";x=y", b";", b';x="y"'])
def test_chunks_with_extensions(rest, tab, extension):
    """libmicrohttpd 1.0 takes the end of an extension for the chunk's first byte, and so refuses it."""
    path = rest_client.entity_path(tab, "p", "chunks")
    with Wire(rest) as w:
        status, headers, _ = put_in_chunks(w, rest, path, (30,), extension)
        if MHD.MHD_get_version().startswith(b"1.0") and status == 400:
            assert headers["x-ms-error-code"] == "InvalidHeaderValue"
            assert w.is_closed(25)
            assert rest.get(tab, "p", "chunks").status == 404
        else:
            assert status == 204
            assert json.loads(rest.get(tab, "p", "chunks").body)["Text"] == "0123456789x"


@pytest.mark.parametrize("chunks", [b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}x\r\n0\r\n\r\n",
                                    b"fffffffffffffffff\r\n{}", b"-2\r\n{}\r\n0\r\n\r\n"])
def test_broken_chunks(rest, tab, chunks):
    path = rest_client.entity_path(tab, "p", "broken")
    with Wire(rest) as w:
        w.send(raw(rest, "PUT", path, b"", {"Content-Length": None,
                                            "Transfer-Encoding": "chunked"}) + chunks)
        assert w.answer("PUT")[0] in (400, 413)
        assert w.is_closed(25)
    assert rest.get(tab, "p", "broken").status == 404


@pytest.mark.parametrize("headers", [
    ["Content-Length: 2", "Content-Length: 2"],
    ["Content-Length: 2", "Content-Length: 3"],
    ["Content-Length: 2", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Content-Length: 2"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: gzip, chunked"],
    ["Transfer-Encoding: identity"],
    ["Content-Length: +2"],
    ["Content-Length: 2, 2"],
    ["Content-Length: 0x2"],
    ["Content-Length:"],
])
def test_lengths_that_two_readers_could_take_for_two_things(rest, tab, headers):
    path = rest_client.entity_path(tab, "p", "length")
    head = raw(rest, "PUT", path, b"", {"Content-Length": None})[:-2]
    with Wire(rest) as w:
        w.send(head + "\r\n".join(headers).encode() + b"\r\n\r\n{}")
        status, answered, _ = w.answer("PUT")
        assert status == 400, (status, headers)
        assert answered["Connection"].lower() == "close"
        assert w.is_closed(25)
    assert rest.get(tab, "p", "length").status == 404


def test_a_length_beyond_the_body_waits_and_one_short_of_it_cuts(rest, tab):
    path = rest_client.entity_path(tab, "p", "wrong")
    with Wire(rest) as w:
        w.send(raw(rest, "PUT", path, b"{}", {"Content-Length": "3"}))
        assert not select.select([w.sock], [], [], 0.3)[0]
        w.send(b" ")
        assert w.answer("PUT")[0] == 204
    with Wire(rest) as w:  # the rest is taken for the next request, and is none
        w.send(raw(rest, "PUT", path, b"{}garbage\r\n\r\n", {"Content-Length": "2"}))
        assert w.answer("PUT")[0] == 204
        assert w.is_closed(25)
    assert ok(rest.get(tab, "p", "wrong"), 200)


def test_expect_100_continue(rest, tab):
    path = rest_client.entity_path(tab, "p", "expect")
    request = raw(rest, "PUT", path, {"N": 5}, {"Expect": "100-continue"})
    head, _, body = request.partition(b"\r\n\r\n")
    with Wire(rest) as w:
        w.send(head + b"\r\n\r\n")
        assert w.file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert w.file.readline() == b"\r\n"
        w.send(body)
        assert w.answer("PUT")[0] == 204
    with Wire(rest) as w:  # refused before it is sent
        w.send(raw(rest, "PUT", path, b"", {"Expect": "100-continue",
                                            "Content-Length": str(BODY_LIMIT + 1)}))
        status, headers, _ = w.answer("PUT")
        assert status == 413 and headers["x-ms-error-code"] == "RequestBodyTooLarge"


def test_http_1_0(rest, row):
    with Wire(rest) as w:
        w.send(raw(rest, "GET", row, version="1.0"))
        status, headers, body = w.answer()
        assert status == 200 and json.loads(body)["N"] == 1
        assert int(headers["Content-Length"]) == len(body)
        assert w.is_closed(25)
    with Wire(rest) as w:
        for _ in range(2):
            w.send(raw(rest, "GET", row, headers={"Connection": "keep-alive"}, version="1.0"))
            assert w.answer()[0] == 200


def test_connection_close_is_kept(rest, row):
    with Wire(rest) as w:
        w.send(raw(rest, "GET", row, headers={"Connection": "close"}))
        status, headers, _ = w.answer()
        assert status == 200 and headers["Connection"].lower() == "close"
        assert w.is_closed(25)


def test_head_has_no_body(rest, row):
    with Wire(rest) as w:
        w.send(raw(rest, "HEAD", row) + raw(rest, "GET", row))
        w.answer("HEAD")
        status, _, body = w.answer("GET")
        assert status == 200 and json.loads(body)["N"] == 1


def test_204_has_a_length_and_no_type(rest, tab):
    done = ok(rest.upsert(tab, "p", "r", {}), 204)
    assert done.headers["Content-Length"] == "0"
    assert done.headers["Content-Type"] is None


# ---- sizes


def padded(client, path, size):
    """A GET whose head has that many bytes."""
    request = raw(client, "GET", path, headers={"X-Padding": "_"})
    return request.replace(b": _\r\n", b": " + b"x" * (size - len(request) + 1) + b"\r\n")


def test_heads_up_to_the_limit(rest, row):
    for size in (10000, 40000, HEAD_SERVED):
        with Wire(rest) as w:
            request = padded(rest, row, size)
            assert len(request) == size
            w.send(request)
            assert w.answer()[0] == 200, size


def test_heads_over_the_limit(rest, row):
    for size in (HEAD_REFUSED, HEAD_REFUSED + 1, 100000, 1 << 20):
        with Wire(rest) as w:
            with contextlib.suppress(ConnectionError):
                w.send(padded(rest, row, size))
                status, headers, _ = w.answer()
                assert status in (431, 414), size
                assert headers["Connection"].lower() == "close"
            assert w.is_closed(25)
    assert rest.request("GET", row).status == 200


def test_between_the_limits_there_is_an_answer_or_an_end(rest, row):
    statuses = set()
    for size in range(HEAD_SERVED, HEAD_REFUSED, 256):
        with Wire(rest) as w:
            w.send(padded(rest, row, size))
            with contextlib.suppress(http.client.HTTPException, ConnectionError):
                statuses.add(w.answer()[0])
    assert statuses == {200, 431}, statuses


def test_a_long_target(rest, tab):
    long = rest.request("GET", f"{tab}()?$filter=N%20eq%201" + "%20" * 10000)
    assert long.status in (200, 400), long
    with Wire(rest) as w:
        with contextlib.suppress(ConnectionError):
            w.send(b"GET /" + b"a" * HEAD_REFUSED + b" HTTP/1.1\r\n\r\n")
            assert w.answer()[0] == 414
        assert w.is_closed(25)


def test_many_headers(rest, row):
    with Wire(rest) as w:
        w.send(raw(rest, "GET", row, headers={f"X-{i}": "1" for i in range(150)}))
        assert w.answer()[0] == 200
    for n in (300, 3000):
        with Wire(rest) as w:
            with contextlib.suppress(ConnectionError):
                w.send(raw(rest, "GET", row, headers={f"X-{i}": "1" for i in range(n)}))
                assert w.answer()[0] == 431


def test_bodies_up_to_the_limit_reach_the_service(rest, tab):
    path = rest_client.entity_path(tab, "p", "large")
    for size in (BATCH_BYTES, BODY_LIMIT):
        with Wire(rest) as w:
            w.send(raw(rest, "PUT", path, b"{}".ljust(size)))
            status, headers, body = w.answer("PUT")
            # Whatever it says of it, it has seen it, and goes on.
            assert status != 500 and status < 501, (status, body)
            if status != 413:
                w.send(raw(rest, "GET", path))
                assert w.answer()[0] in (200, 404)


@pytest.mark.parametrize("extra", [1, 1 << 20, 8 << 20])
@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_over_the_limit_are_refused_and_told_so(rest, tab, extra, chunked):
    path = rest_client.entity_path(tab, "p", "huge")
    size = BODY_LIMIT + extra
    with Wire(rest) as w:
        if chunked:
            w.send(raw(rest, "PUT", path, b"", {"Content-Length": None,
                                                "Transfer-Encoding": "chunked"}))
            w.send(b"%x\r\n" % size + b" " * size + b"\r\n0\r\n\r\n")
        else:
            w.send(raw(rest, "PUT", path, b" " * size))
        status, headers, _ = w.answer("PUT")
        assert status == 413 and headers["x-ms-error-code"] == "RequestBodyTooLarge"
        assert w.is_closed(25)
    assert rest.get(tab, "p", "huge").status == 404


def test_bodies_without_end_are_cut(rest, tab, module_server):
    path = rest_client.entity_path(tab, "p", "endless")
    before = module_server.rss_kib()
    with Wire(rest) as w:
        w.send(raw(rest, "PUT", path, b"", {"Content-Length": None,
                                            "Transfer-Encoding": "chunked"}))
        sent, chunk = 0, b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with pytest.raises(ConnectionError):
            while sent < 1 << 30:
                w.send(chunk)
                sent += len(chunk)
    with Wire(rest) as w:  # a promise alone takes no memory
        w.send(raw(rest, "PUT", path, b"", {"Content-Length": str(1 << 40)}))
        assert w.answer("PUT")[0] == 413
    assert module_server.rss_kib() < before + (64 << 10)


def test_memory_grows_with_what_came_not_with_what_was_promised(rest, tab, module_server):
    path = rest_client.entity_path(tab, "p", "promise")
    before = module_server.rss_kib()
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            w = stack.enter_context(Wire(rest))
            w.send(raw(rest, "PUT", path, b"", {"Content-Length": str(BATCH_BYTES)}) + b"{")
        ok(rest.tables(), 200)
        assert module_server.rss_kib() < before + (100 << 10)


# ---- time


def test_a_slow_head_is_cut_while_another_client_is_served(limited):
    client = limited("head=2000,idle=60000,progress=60000")
    ok(client.tables(), 200)  # its head comes at once, on a connection that stays
    with Wire(client) as slow, Wire(client) as partial:
        slow.send(b"GET / HT")
        partial.send(b"GET / HTTP/1.1\r\nX: ")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            ok(client.tables(), 200)
            with contextlib.suppress(ConnectionError):
                partial.send(b"x")
                slow.send(b"x")
            if partial.is_closed(0.02) and slow.is_closed(0.02):
                break
        else:
            pytest.fail("a head that never ends is not cut")
    ok(client.tables(), 200)


def test_an_idle_connection_is_cut(limited):
    client = limited("head=600000,idle=2500,progress=600000")
    with Wire(client) as w:
        since = time.monotonic()  # its time begins later, with the answer
        w.send(raw(client, "GET", "Tables"))
        assert w.answer()[0] == 200
        assert not w.is_closed(0.5)
        assert w.is_closed(60)
        assert time.monotonic() - since > 2.4


def test_a_connection_that_never_says_anything_has_the_time_of_a_head(limited):
    client = limited("head=400,idle=600000,progress=600000")
    since = time.monotonic()
    with Wire(client) as w:
        assert w.is_closed(60)
        assert time.monotonic() - since > 0.3


def test_a_slow_body_is_cut_and_a_steady_one_is_not(limited):
    client = limited("head=60000,idle=60000,progress=2000")
    ok(client.create_table("Slow"), 201)
    path = rest_client.entity_path("Slow", "p", "slow")
    with Wire(client) as slow, Wire(client) as steady:
        slow.send(raw(client, "PUT", path, b"", {"Content-Length": "100000"}))
        size = 30 * 0x10000
        steady.send(raw(client, "PUT", path, b"", {"Content-Length": str(size)}))
        for i in range(30):  # three seconds: longer than what a slow one gets
            steady.send(b" " * 0x10000)
            with contextlib.suppress(ConnectionError):
                slow.send(b" ")
            time.sleep(0.1)
            ok(client.tables(), 200)
        assert steady.answer("PUT")[0] in (204, 400)
        assert slow.is_closed(25)
    ok(client.tables(), 200)


def sockets(pid):
    """How many the process has open."""
    n = 0
    for fd in descriptors(pid):
        with contextlib.suppress(FileNotFoundError):
            n += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    return n


def test_a_client_that_does_not_read_is_cut(limited):
    client = limited("head=60000,idle=60000,progress=2500")
    ok(client.create_table("Large"), 201)
    for i in range(60):
        ok(client.upsert("Large", "p", f"{i:04}", {"A": "x" * 30000}), 204)
    before = sockets(client.pid)
    with Wire(client) as w:
        w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(8):
            w.send(raw(client, "GET", "Large()"))
        time.sleep(0.2)  # a server that hangs up too early does so meanwhile
        assert sockets(client.pid) == before + 1
        end = time.monotonic() + 60
        while sockets(client.pid) > before and time.monotonic() < end:
            ok(client.tables(), 200)
            time.sleep(0.05)
        assert sockets(client.pid) == before
    with Wire(client) as w:  # who reads slowly, but reads, gets all of it
        w.send(raw(client, "GET", "Large()"))
        body, end = b"", None
        while end is None or len(body) < end:
            piece = w.sock.recv(100000)
            assert piece, len(body)
            body += piece
            time.sleep(0.15)  # slow is what it is
            if end is None and b"\r\n\r\n" in body:
                head = body.partition(b"\r\n\r\n")[0]
                length = [line for line in head.split(b"\r\n")
                          if line.lower().startswith(b"content-length:")]
                end = len(head) + 4 + int(length[0].split(b":")[1])


# ---- connections


def test_500_idle_connections_beside_a_working_one(rest, row):
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(Wire(rest)) for _ in range(500)]
        for w in idle[::7]:
            w.send(b"GET /")
        for _ in range(50):
            assert rest.request("GET", row).status == 200
        for w in (idle[1], idle[498]):
            w.send(raw(rest, "GET", row))
            assert w.answer()[0] == 200


def test_over_the_limit_of_connections_others_wait(limited):
    client = limited("connections=16,idle=2000,head=2000")
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(client)) for _ in range(40)]
        served = 0
        for w in wires:
            with contextlib.suppress(ConnectionError):
                w.send(raw(client, "GET", "Tables"))
                assert w.answer()[0] == 200
                served += 1
            w.sock.close()
        assert served > 16
    ok(client.tables(), 200)


def test_when_it_is_crowded_idle_ones_make_room(limited):
    client = limited("connections=16,idle=600000,head=600000")
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(Wire(client))
        other = client.clone(timeout=60)
        ok(other.tables(), 200)  # long before the ten minutes


# ---- memory

# Above this a body or an answer counts, and wants a good credential.
SMALL = 64 << 10


def rss_kib(client):
    with open(f"/proc/{client.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def queues(sock):
    """What the kernel holds of a connection: what the server has not read yet, and what it
    has sent and nobody has received."""
    ours, theirs = (f":{name[1]:04X}" for name in (sock.getsockname(), sock.getpeername()))
    with open("/proc/net/tcp", encoding="ascii") as f:
        lines = [line.split()[1:5] for line in f.readlines()[1:]]
    by_ports = {(a[-5:], b[-5:]): q.split(":") for a, b, _, q in lines}
    to_server, (from_server, unread) = by_ports[ours, theirs][0], by_ports[theirs, ours]
    return int(to_server, 16) + int(unread, 16), int(from_server, 16)


def wait_until_read(sock):
    end = time.monotonic() + 60
    while queues(sock)[0] > 0:
        assert time.monotonic() < end, "the server does not read"
        time.sleep(0.005)


def wait_until_stuck(sock):
    """Until the server can send no more to a client that does not read."""
    end, last = time.monotonic() + 60, -1
    while (now := queues(sock)[1]) != last or now == 0:
        assert time.monotonic() < end, "the kernel takes all of it"
        last = now
        time.sleep(0.5)  # nothing goes for so long


@contextlib.contextmanager
def almost_sent(client, size, *, chunked=False):
    """A connection on which a body of that size came but for its last byte; at the end that
    byte, and the answer in .left."""
    length = {"Transfer-Encoding": "chunked", "Content-Length": None} if chunked else {
        "Content-Length": str(size)}
    with Wire(client) as w:
        w.send(raw(client, "PUT", rest_client.entity_path("None", "p", "r"), b"",
                   length))
        if chunked:
            w.send(b"%x\r\n" % size)
        w.send(b" " * (size - 1))
        wait_until_read(w.sock)
        yield w
        w.send(b" " + (b"\r\n0\r\n\r\n" if chunked else b""))
        w.left = w.answer("PUT")
        if w.left[1]["Connection"] is not None:
            assert w.is_closed(25)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_without_a_credential_takes_no_memory(limited, chunked):
    client = limited("connections=100")
    before = rss_kib(client)
    with contextlib.ExitStack() as stack:
        wires = []
        for _ in range(30):
            wires.append(stack.enter_context(almost_sent(client.clone(sign=None), BATCH_BYTES,
                                                         chunked=chunked)))
        ok(client.tables(), 200)
        assert rss_kib(client) < before + (30 << 10)
    for w in wires:
        status, headers, body = w.left
        assert status == 401 and headers["x-ms-error-code"] == "NoAuthenticationInformation", body


def message_of(body):
    return json.loads(body)["odata.error"]["message"]["value"].split("\nRequestId:")[0]


def test_a_refused_large_body_gets_the_answer_of_a_small_one(rest, tab):
    """Before the body and behind it, whatever is wrong with the head."""
    path = rest_client.entity_path(tab, "p", "r")
    wrong = [({}, None), ({"Authorization": "Nonsense"}, ""),
             ({"Authorization": f"SharedKey {rest.account}:{'A' * 43}="}, ""),
             ({"x-ms-date": rest_client.now(-3600)}, ""), ({"Host": "no host"}, "")]
    for headers, sign in wrong:
        client = rest if sign is not None else rest.clone(sign=None)
        answers = []
        for size in (10, SMALL + 1, BATCH_BYTES):
            for expect in ({}, {"Expect": "100-continue"}):
                with Wire(rest) as w:
                    body = b"" if expect else b" " * size
                    w.send(raw(client, "PUT", path, body, {
                        **headers, **expect, "Content-Length": str(size)}))
                    status, answered, text = w.answer("PUT")
                    assert not expect or answered["Connection"].lower() == "close"
                    answers.append((status, answered["x-ms-error-code"],
                                    answered["Content-Type"], message_of(text)))
        assert answers[0][0] in (400, 401, 403), answers
        assert len(set(answers)) == 1, answers
    assert rest.get(tab, "p", "r").status == 404


def test_large_bodies_of_every_credential_are_taken(rest, tab):
    text = "x" * 30000
    document = {f"P{i}": text for i in range(12)}
    sas = (rest_client.table_sas(rest.account, rest.key, tab),
           rest_client.account_sas(rest.account, rest.key))
    for client in (rest, rest.clone(sign="full"), *(rest.clone(sas=s) for s in sas)):
        for expect in ({}, {"Expect": "100-continue"}):
            with Wire(client) as w:
                path = rest_client.entity_path(tab, "p", "large")
                head, _, body = raw(client, "PUT", path, document, expect).partition(
                    b"\r\n\r\n")
                w.send(head + b"\r\n\r\n")
                if expect:
                    assert w.file.readline() == b"HTTP/1.1 100 Continue\r\n"
                    assert w.file.readline() == b"\r\n"
                w.send(body)
                assert w.answer("PUT")[0] == 204
                w.send(raw(client, "GET", path))
                assert w.answer()[0] == 200  # the same connection goes on
        ok(rest.delete(tab, "p", "large"), 204)


def test_over_the_memory_for_bodies_large_ones_are_told_to_wait(limited):
    client = limited("memory=5120,progress=10000,idle=60000")
    ok(client.create_table("None"), 201)
    document = {"A": "x" * 30000, "B": "x" * 30000, "C": "x" * 30000}
    with almost_sent(client, 3 << 20) as first:
        for chunked in (False, True):
            with almost_sent(client, 3 << 20, chunked=chunked) as second:
                # Who has little to say is served all the same.
                for _ in range(20):
                    ok(client.upsert("None", "p", "small", {"N": 1}), 204)
            status, headers, _ = second.left
            assert status == 503 and headers["x-ms-error-code"] == "ServerBusy"
            assert headers["Connection"].lower() == "close"
    assert first.left[0] == 400  # blanks are no document
    # What was held has been given back, whichever way each request ended.
    for _ in range(60):
        ok(client.upsert("None", "p", "large", document), 204)
        ok(client.get("None", "p", "large"), 200)
    for _ in range(10):
        with Wire(client) as w:
            w.send(raw(client, "PUT", rest_client.entity_path("None", "p", "r"), b"",
                       {"Content-Length": str(3 << 20)}) + b" " * (2 << 20))
            wait_until_read(w.sock)  # an end that comes with data may not be noticed
    end, served = time.monotonic() + 60, 0
    while served < 10:
        with almost_sent(client, 3 << 20) as w:
            pass
        # That the last of those have gone may not have been noticed yet: at the latest when
        # their bodies make no progress.
        assert w.left[0] == 400 or (served == 0 and time.monotonic() < end), w.left
        served += w.left[0] == 400


def test_answers_that_are_not_read_count_too(limited):
    client = limited("memory=4200,progress=60000,idle=60000")
    ok(client.create_table("Large"), 201)
    for i in range(90):
        ok(client.insert("Large", {"PartitionKey": "p", "RowKey": f"{i:04}",
                                   "A": "x" * 30000}), 201)
    with Wire(client) as w:
        w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        w.send(raw(client, "GET", "Large()") * 8)  # more than the kernel takes
        wait_until_stuck(w.sock)
        assert w.sock.recv(13, socket.MSG_PEEK) == b"HTTP/1.1 200 "
        while (busy := client.query("Large")).status == 200:
            pass  # it may be between two of them
        assert busy.status == 503 and busy.code == "ServerBusy"
        query = client.batch([("GET", "Large()", {}, None)], change_set=False)
        assert query.status == 503 and query.code == "ServerBusy"
        ok(client.get("Large", "p", "0000"), 200)
        # What was done is not denied, however much there is to tell of it.
        full = {"Prefer": "return-content", "Accept": rest_client.FULL}
        done = ok(client.batch([("POST", "Large", full, {
            "PartitionKey": "q", "RowKey": f"{i:02}"}) for i in range(100)]), 202)
        assert done.body.count(b"201 Created") == 100 and len(done.body) > SMALL
    end = time.monotonic() + 60
    while client.query("Large").status == 503:
        assert time.monotonic() < end  # what nobody will read is given back
    for _ in range(5):
        assert len(ok(client.query("Large", filter="PartitionKey eq 'q'"), 200).rows) == 100


def test_preflights_with_bodies_are_answered(limited):
    client = limited("connections=100")
    ok(client.tables(), 200)
    before = rss_kib(client)
    with Wire(client) as w:
        for size in (10, BATCH_BYTES, 10):
            w.send(raw(client.clone(sign=None), "OPTIONS", "Tables", b"x" * size, {
                "Origin": "http://o", "Access-Control-Request-Method": "GET"}))
            status, headers, _ = w.answer("OPTIONS")
            assert status == 403 and headers["x-ms-error-code"] == "CorsPreflightFailure"
    assert rss_kib(client) < before + (4 << 10)


# ---- headers that two readers could take for two things


@pytest.mark.parametrize("line", [
    "Content-Length : 2", "X-Y : 1", "X Y: 1", "X\tY: 1", "X(: 1", "X\x7f: 1", "X\x01: 1",
    "X\xff: 1", "Host: other.example", "host: localhost",
])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_headers_that_two_readers_could_take_for_two_things(rest, row, line, method):
    request = raw(rest, method, row, b"{}" if method == "PUT" else None)
    head, _, body = request.partition(b"\r\n\r\n")
    with Wire(rest) as w:
        w.send(head + b"\r\n" + line.encode("latin-1") + b"\r\n\r\n" + body)
        status, headers, _ = w.answer(method)
        assert status == 400 and headers["x-ms-error-code"] == "InvalidHeaderValue"
        assert headers["Connection"].lower() == "close"
        assert w.is_closed(25)
    assert rest.request("GET", row).json["N"] == 1


def test_every_character_of_a_token_is_one(rest, row):
    name = "X!#$%&'*+-.^_`|~09azAZ"
    assert rest.request("GET", row, headers={name: "1"}).status == 200


# ---- versions of TLS


@pytest.fixture
def tls_port(rest_store, serve, work):
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", work / "key.pem", "-out", work / "cert.pem"],
                   check=True, capture_output=True)
    return serve(rest_store, f"--rest-cert={work}/cert.pem", f"--rest-key={work}/key.pem").port


@pytest.mark.parametrize(("option", "spoken"), [
    ("-tls1", None), ("-tls1_1", None), ("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
def test_tls_from_1_2_on(tls_port, option, spoken):
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{tls_port}", option,
                           "-cipher", "ALL:@SECLEVEL=0"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if spoken:
        assert f"New, {spoken}, Cipher is " in done.stdout, done
    else:
        assert "Cipher is (NONE)" in done.stdout, done


# ---- last, as it leaves many dead connections to the file's server


def test_clients_that_come_and_go_in_every_state(rest, row):
    """Closed at once, in the head, in the body, while waiting for the answer, in the answer;
    from several threads."""
    request = raw(rest, "PUT", row, {"N": 1})
    stop = time.monotonic() + 2
    problems = []

    def come_and_go(seed):
        n = seed
        try:
            while time.monotonic() < stop:
                n = (n * 1103515245 + 12345) & 0x7FFFFFFF
                with Wire(rest) as w:
                    w.send(request[:n % (len(request) + 1)])
                    if n & 0x10000:
                        w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                          b"\1\0\0\0\0\0\0\0")
        except ConnectionError:
            pass
        except Exception as e:
            problems.append(e)

    threads = [threading.Thread(target=come_and_go, args=(i + 1,)) for i in range(6)]
    for t in threads:
        t.start()
    while time.monotonic() < stop:
        assert rest.request("GET", row).status == 200
    for t in threads:
        t.join(60)
    assert not problems
    assert rest.request("GET", row).status == 200
