# SPDX-License-Identifier: MIT
"""Limits and errors of queues over REST, on both sides, and clients that do harm."""

import contextlib
import re
import socket
import time
import urllib.parse
import xml.etree.ElementTree as ET

import conftest
import pytest
import rest_client
from queue_client import Queues, code, messages
from rest_client import ACCOUNT, KEY, account_sas
from test_rest_server import sockets
from wire import Wire

SERVE_OPTIONS = ["--rest=queue=127.0.0.1:0"]
WEEK, BODY = 604800, "<QueueMessage><MessageText>{}</MessageText></QueueMessage>"
NOBODY = "00000000-0000-0001-0000-000000000001"


@pytest.fixture
def queues(module_server):
    client = Queues(module_server.port)
    assert client.ask("PUT", "/jobs").status in (201, 204, 409)
    assert client.ask("DELETE", "/jobs/messages").status == 204
    return client


@pytest.mark.parametrize("name,want", [
    ("abc", 201), ("a" * 63, 201), ("a-1", 201), ("1-a", 201),
    ("ab", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput"),
    ("-ab", "InvalidResourceName"), ("ab-", "InvalidResourceName"),
    ("a--b", "InvalidResourceName"), ("a_b", "InvalidResourceName"), ("Abc", "InvalidResourceName")])
def test_a_name_has_3_to_63_characters(queues, name, want):
    answer = queues.ask("PUT", f"/{name}")
    assert (answer.status if answer.status < 300 else code(answer)[1]) == want
    assert want != 201 or queues.ask("DELETE", f"/{name}").status == 204


def test_metadata_has_8_kib(queues):
    room = 8192 - len("name")
    for size, want in ((room, 204), (room + 1, 400)):
        answer = queues.ask("PUT", "/jobs", {"comp": "metadata"},
                            headers={"x-ms-meta-name": "v" * size})
        assert answer.status == want, size
    assert code(answer) == (400, "MetadataTooLarge")
    assert code(queues.ask("PUT", "/meta", headers={"x-ms-meta-name": "v" * (room + 1)})) == (
        400, "MetadataTooLarge")
    for name in ("1a", "a b", ""):
        bad = queues.ask("PUT", "/meta", headers={f"x-ms-meta-{name}": "x"})
        assert bad.status == 400, name


@pytest.mark.parametrize("version,hidden", [("2009-09-19", 7200), ("2011-08-18", WEEK)])
def test_old_versions_hide_a_message_for_two_hours(queues, version, hidden):
    for seconds, want in ((hidden, 200), (hidden + 1, 400)):
        answer = queues.ask("GET", "/jobs/messages", {"visibilitytimeout": seconds}, version=version)
        assert answer.status == want, (version, seconds)


@pytest.mark.parametrize("version,good,bad", [
    ("2016-05-31", (1, WEEK), (0, -1, WEEK + 1)),
    ("2017-07-29", (1, WEEK + 1, -1, 2**31 - 1), (0, -2, 2**31))])
def test_old_versions_keep_a_message_for_a_week(queues, version, good, bad):
    for seconds in good:
        assert queues.ask("POST", "/jobs/messages", {"messagettl": seconds},
                          BODY.format("x").encode(), version=version).status == 201, seconds
    for seconds in bad:
        assert queues.ask("POST", "/jobs/messages", {"messagettl": seconds},
                          BODY.format("x").encode(), version=version).status == 400, seconds


def test_a_message_must_be_visible_before_it_expires(queues):
    body = BODY.format("x").encode()
    for hidden, want in ((9, 201), (10, 400)):
        answer = queues.ask("POST", "/jobs/messages",
                            {"messagettl": 10, "visibilitytimeout": hidden}, body)
        assert answer.status == want
    root = ET.fromstring(answer.body)
    assert root.findtext("MaximumAllowed") == "9"


def test_an_update_hides_for_a_week_at_most(queues):
    state = messages(queues.put("jobs", "x"))[0]
    at = f"/jobs/messages/{state['MessageId']}"
    receipt = state["PopReceipt"]
    for seconds, want in ((-1, 400), (WEEK + 1, 400), ("", 400), (0, 204), (WEEK, 204)):
        answer = queues.ask("PUT", at, {"popreceipt": receipt, "visibilitytimeout": seconds})
        assert answer.status == want, seconds
        receipt = answer.headers["x-ms-popreceipt"] or receipt
    for text, want in (("x" * 65536, 204), ("x" * 65537, 400), ("é" * 32768, 204)):
        answer = queues.ask("PUT", at, {"popreceipt": receipt, "visibilitytimeout": 1},
                            BODY.format(text).encode())
        assert answer.status == want, len(text)
        receipt = answer.headers["x-ms-popreceipt"] or receipt
    assert queues.ask("PUT", at, {"popreceipt": receipt}).status == 400


def test_a_body_has_1_mib(queues):
    for size, want in ((1 << 20, 201), ((1 << 20) + 1, 413)):
        text = BODY.format("x")
        assert queues.ask("POST", "/jobs/messages", {}, (text + " " * (size - len(text))).encode()
                          ).status == want


MAX = "x" * 65537
ERRORS = [  # method, path, query, body, status, code, the beginning of the text
    ("GET", "/nope/messages", {}, None, 404, "QueueNotFound", "The specified queue does not exist."),
    ("PUT", "/jobs", {"meta": "x"}, None, 409, "QueueAlreadyExists",
     "The specified queue already exists."),
    ("DELETE", f"/jobs/messages/{NOBODY}", {"popreceipt": "0" * 31 + "1"}, None, 404,
     "MessageNotFound", "The specified message does not exist."),
    ("DELETE", "/jobs/messages/x", {"popreceipt": "0" * 32}, None, 404, "MessageNotFound",
     "The specified message does not exist."),
    ("DELETE", f"/jobs/messages/{NOBODY}", {"popreceipt": "x"}, None, 400,
     "InvalidQueryParameterValue",
     "Value for one of the query parameters specified in the request URI is invalid."),
    ("POST", "/jobs/messages", {}, BODY.format(MAX), 400, "MessageTooLarge",
     "The message exceeds the maximum allowed size."),
    ("POST", "/jobs/messages", {}, "<x>", 400, "InvalidXmlDocument",
     "XML specified is not syntactically valid."),
    ("PUT", "/jobs", {"comp": "acl"}, "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy>"
     "<Permission>z</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>", 400,
     "InvalidXmlNodeValue", "The value provided for one of the XML nodes in the request body was not in the correct"),
    ("GET", "/jobs/messages", {"numofmessages": 33}, None, 400, "OutOfRangeQueryParameterValue",
     "One of the query parameters specified in the request URI is outside the permissible range."),
    ("PUT", "/Jobs", {}, None, 400, "InvalidResourceName",
     "The specifed resource name contains invalid characters."),
    ("PUT", "/ab", {}, None, 400, "OutOfRangeInput", "The specified resource name length"),
    ("GET", "/jobs/x/y", {}, None, 400, "InvalidUri",
     "The requested URI does not represent any resource on the server."),
    ("PATCH", "/jobs", {}, None, 405, "MethodNotAllowed",
     "The requested method is not allowed on the specified resource."),
    ("GET", "/jobs", {"comp": "nothing"}, None, 400, "InvalidQueryParameterValue",
     "Value for one of the query parameters specified in the request URI is invalid."),
    ("GET", "/", {"comp": "list", "include": "x"}, None, 400, "InvalidQueryParameterValue",
     "Value for one of the query parameters specified in the request URI is invalid."),
    ("POST", "/jobs/messages", {}, " " * ((1 << 20) + 1), 413, "RequestBodyTooLarge",
     "The request body is too large and exceeds the maximum permissible limit."),
]


@pytest.mark.parametrize("method,path,query,body,status,name,text", ERRORS,
                         ids=[f"{e[5]}-{i}" for i, e in enumerate(ERRORS)])
def test_each_error_has_its_code_and_text(queues, method, path, query, body, status, name, text):
    meta = {"x-ms-meta-a": "other"} if query.pop("meta", None) else {}
    answer = queues.ask(method, path, query, body.encode() if body is not None else None, meta)
    assert code(answer) == (status, name)
    assert ET.fromstring(answer.body).findtext("Message").startswith(text)
    assert answer.headers["Content-Type"] == "application/xml"
    if method in ("GET", "DELETE"):
        head = queues.ask("HEAD" if method == "GET" else method, path, query)
        assert (head.status, head.headers["x-ms-error-code"]) == (status, name)


def test_anothers_receipt_is_a_mismatch(queues):
    mine, other = (messages(queues.put("jobs", i))[0] for i in range(2))
    answer = queues.ask("DELETE", f"/jobs/messages/{mine['MessageId']}",
                        {"popreceipt": other["PopReceipt"]})
    assert code(answer) == (400, "PopReceiptMismatch")
    assert b"The specified pop receipt did not match the pop receipt for a dequeued" in answer.body


# ---- clients that do harm


@pytest.fixture
def limited(rest_store, serve, monkeypatch):
    """A factory: limited("idle=600") -> a client of a server with these limits, and the queue jobs."""
    def make(limits):
        monkeypatch.setitem(conftest.ENV, "ROWFS_REST_LIMITS", limits)
        server = serve(rest_store, "--rest=queue=127.0.0.1:0")
        client = Queues(server.port)
        client.server = server
        assert client.ask("PUT", "/jobs").status == 201
        return client

    return make


@contextlib.contextmanager
def wire(queues):
    with rest_client.Client(queues.port) as client, Wire(client) as w:
        yield w


def request(queues, method, path, length=None, sas=True, query=""):
    """The head of a request, by an account SAS or without a credential."""
    token = account_sas(ACCOUNT, KEY, ss="q", sp="rwdlacup") if sas else ""
    head = [f"{method} /{ACCOUNT}{path}?{query}{token} HTTP/1.1", f"Host: 127.0.0.1:{queues.port}",
            "x-ms-version: 2019-02-02"]
    if length is not None:
        head.append(f"Content-Length: {length}")
    return "\r\n".join([*head, "", ""]).encode()


def test_a_body_that_stops_is_cut_and_puts_nothing(limited):
    queues = limited("head=60000,idle=60000,progress=1000")
    text = BODY.format("half").encode()
    with wire(queues) as half, wire(queues) as promise:
        half.send(request(queues, "POST", "/jobs/messages", len(text)) + text[:-1])
        promise.send(request(queues, "POST", "/jobs/messages", 1 << 20))
        assert queues.put("jobs", "whole").status == 201
        assert half.is_closed(30) and promise.is_closed(30)
    with wire(queues) as gone:
        gone.send(request(queues, "POST", "/jobs/messages", len(text)) + text[:-1])
    assert [m["MessageText"] for m in queues.get("jobs", numofmessages=32)] == ["whole"]


def test_large_bodies_take_no_memory_without_a_credential(limited):
    queues = limited("connections=100")
    assert queues.put("jobs", "x").status == 201
    before = queues.server.rss_kib()
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(wire(queues)) for _ in range(40)]
        for w in wires:
            w.send(request(queues, "POST", "/jobs/messages", 1 << 20, sas=False))
            with contextlib.suppress(ConnectionError):
                w.send(b" " * (1 << 19))
        assert queues.put("jobs", "x").status == 201
        assert queues.server.rss_kib() < before + (20 << 10)
        for w in wires:
            with contextlib.suppress(ConnectionError):
                w.send(b" " * (1 << 19))
            status, headers, _ = w.answer("POST")
            assert status == 401 and headers["x-ms-error-code"] == "NoAuthenticationInformation"


def test_a_client_that_does_not_read_loses_no_message(limited):
    """Its messages come back when their time is over; its memory counts, and is given back."""
    queues = limited("memory=6000,progress=3000,idle=60000")
    for i in range(32):
        assert queues.put("jobs", f"{i:02}" + "x" * 65000).status == 201
    before, end = sockets(queues.server.proc.pid), time.monotonic() + 60
    with wire(queues) as w:
        w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peek = request(queues, "GET", "/jobs/messages", query="peekonly=true&numofmessages=32&")
        w.send(peek * 3 + request(queues, "GET", "/jobs/messages",
                                  query="numofmessages=32&visibilitytimeout=1&"))
        seen = [queues.ask("GET", "/jobs", {"comp": "metadata"}).status for _ in range(20)]
        assert seen == [200] * 20
        while sockets(queues.server.proc.pid) > before:
            assert time.monotonic() < end
            time.sleep(0.05)
    found, end = set(), time.monotonic() + 60
    while len(found) < 32:
        assert time.monotonic() < end, sorted(found)
        answer = queues.ask("GET", "/jobs/messages", {"numofmessages": 8, "visibilitytimeout": 60})
        assert answer.status in (200, 503)
        if answer.status == 200:
            found |= {m["MessageText"][:2] for m in messages(answer)}
    assert queues.server.rss_kib() < 200 << 10


def test_pipelined_and_split_requests_are_answered_in_order(limited):
    queues = limited("head=60000")
    text = BODY.format("one").encode()
    whole = request(queues, "POST", "/jobs/messages", len(text)) + text
    with wire(queues) as w:
        w.send(whole * 3 + request(queues, "GET", "/jobs/messages", query="peekonly=true&"))
        assert [w.answer("POST")[0] for _ in range(3)] == [201] * 3
        status, _, body = w.answer()
        assert status == 200 and body.count(b"<MessageText>one</MessageText>") == 1
        for i in range(0, len(whole), 7):
            w.send(whole[i:i + 7])
        assert w.answer("POST")[0] == 201


def test_what_is_no_request_for_queues_gets_an_error_of_the_clients(queues):
    for path in ("/jobs/messages/../..", "/%00", "/jobs%2Fmessages", "//", "/jobs//x",
                 "/jobs/messages/" + "a" * 4000, "/" + "%ff" * 40, "/jobs/messages/a/b/c"):
        for method in ("GET", "PUT", "POST", "DELETE", "HEAD", "MERGE"):
            with wire(queues) as w:
                w.send(request(queues, method, path, 0 if method in ("PUT", "POST", "MERGE") else None))
                assert 400 <= w.answer(method)[0] < 500 or w.left is None, (method, path)
    quoted = urllib.parse.quote(NOBODY.upper())
    assert queues.ask("DELETE", f"/jobs/messages/{quoted}", {"popreceipt": "0" * 32}).status == 404
    assert re.match(r"[0-9a-f-]{36}$", messages(queues.put("jobs", "x"))[0]["MessageId"])
