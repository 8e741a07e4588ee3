# SPDX-License-Identifier: MIT
"""Headers of requests and answers over the REST socket: negotiation of the format, ids,
preferences; and how HTTP itself is spoken: keep-alive, chunks, 100-continue, pipelines.  What
differs by version: test_rest_versions.py."""

import base64
import email.utils
import hashlib
import json
import re
import socket
import time

import pytest

from rest_client import (FULL, MINIMAL, NONE, REQUEST_ID, Client, account_sas, entity_path, fails,
                         guid, ok, table_sas)
from conftest import OTHER_ACCOUNT

ROW = {"PartitionKey": "p", "RowKey": "r"}
FORMAT = "The value for one of the HTTP headers is not in the correct format."
ATOM = "Atom format is not supported."
JSON = "JSON format is not supported."
JSON_VERSIONS = ["2013-08-15", "2014-02-14", "2015-02-21", "2015-04-05", "2015-07-08",
                 "2015-12-11", "2016-05-31", "2017-04-17", "2017-07-29", "2018-03-28",
                 "2019-02-02", "2019-07-07", "2020-12-06", "2021-12-02", "2024-11-04",
                 "2026-06-06"]
OLD_VERSIONS = ["2009-04-14", "2009-07-17", "2009-09-19", "2011-08-18", "2012-02-12"]


# ---- versions


@pytest.mark.parametrize("version", JSON_VERSIONS)
def test_R11_every_version_is_echoed(rest, tab, version):
    answer = ok(rest.insert(tab, ROW, {"x-ms-version": version}), 201)
    assert answer.headers["x-ms-version"] == version
    for answer in (rest.get(tab, "p", "none", headers={"x-ms-version": version}),
                   rest.request("GET", "?restype=service&comp=properties",
                                headers={"x-ms-version": version}),
                   rest.delete(tab, "p", "r", headers={"x-ms-version": version})):
        assert answer.headers["x-ms-version"] == version
        assert answer.headers.get_all("x-ms-version") == [version]


@pytest.mark.parametrize("headers", [
    {"DataServiceVersion": "3.0;NetFx", "MaxDataServiceVersion": "3.0;NetFx"},
    {"DataServiceVersion": "3.0;"}, {"DataServiceVersion": "1.0;NetFx"},
    {"DataServiceVersion": "2.0;NetFx", "MaxDataServiceVersion": "2.0;NetFx"},
    {"MaxDataServiceVersion": "3.0"}, {}])
def test_data_service_versions(rest, tab, headers):
    ok(rest.insert(tab, ROW, headers), 201)
    ok(rest.query(tab, headers), 200)


# ---- formats


@pytest.mark.parametrize("accept, level", [
    ("application/json", "minimal"), ("*/*", "minimal"), (None, "minimal"), ("", "minimal"),
    (NONE, "no"), (MINIMAL, "minimal"), (FULL, "full"),
    ("application/json; odata=nometadata", "no"), ("APPLICATION/JSON;ODATA=FULLMETADATA", "full"),
    ("application/json;odata=nometadata;charset=utf-8", "no"),
    ("application/json;charset=utf-8;odata=nometadata", "no"),
    ("application/json;odata=fullmetadata;streaming=true", "full"),
    ("text/html,application/json;odata=nometadata", "no"),
    ("application/xml;q=0.9, application/json;odata=nometadata", None),
    ("application/atom+xml,application/json;odata=nometadata", None),
    ("application/json;odata=nometadata,*/*;q=0.1", "no"),
    ("application/json;q=0.5", "minimal"),
])
def test_R11_accept(rest, tab, accept, level):
    """With a list, the first that can be served."""
    answer = ok(rest.query(tab, headers={"Accept": accept}), 200)
    wanted = ["no", "minimal"] if level is None else [level]
    assert answer.headers["Content-Type"] in [
        f"application/json;odata={w}metadata;streaming=true;charset=utf-8" for w in wanted]


@pytest.mark.parametrize("accept, code, text", [
    ("application/atom+xml", "AtomFormatNotSupported", ATOM),
    ("application/atom+xml,application/xml", "AtomFormatNotSupported", ATOM),
    ("application/xml", "AtomFormatNotSupported", ATOM),
    ("application/json;odata=verbose", ("JsonVerboseFormatNotSupported", "MediaTypeNotSupported"),
     None),
    ("text/html", "MediaTypeNotSupported", "None of the provided media types are supported"),
    ("image/png, text/*", "MediaTypeNotSupported", None),
])
def test_R11_formats_that_are_not_spoken(rest, tab, accept, code, text):
    for version in ("2015-12-11", "2019-02-02"):
        headers = {"Accept": accept, "x-ms-version": version}
        fails(rest.query(tab, headers), 415, code, text)
    fails(rest.insert(tab, ROW, {"Accept": accept}), 415, code)
    assert rest.all(tab) == []


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_json_is_newer_than_the_version(rest, tab, version):
    for method, path, body in (("GET", f"{tab}()", None), ("POST", tab, ROW),
                               ("GET", "Tables", None)):
        fails(rest.request(method, path, body, {"x-ms-version": version}), 415,
              "JsonFormatNotSupported", JSON)
    assert rest.all(tab) == []
    # What has no body either way needs no format.
    ok(rest.insert(tab, ROW), 201)
    ok(rest.delete(tab, "p", "r", headers={"x-ms-version": version}), 204)


@pytest.mark.parametrize("written, level", [
    ("application/json;odata=nometadata", "no"), ("application/json;odata=fullmetadata", "full"),
    ("application%2Fjson%3Bodata%3Dnometadata", "no"), ("json", "minimal"),
    ("application/json", "minimal")])
def test_R11_format_overrides_accept(rest, tab, written, level):
    for accept in ("application/atom+xml", FULL, "text/html", None):
        for name in ("$format", "%24format"):
            answer = ok(rest.request("GET", f"{tab}()?{name}={written}",
                                     headers={"Accept": accept}), 200)
            assert f"odata={level}metadata" in answer.headers["Content-Type"]
    fails(rest.request("GET", f"{tab}()?$format=atom"), 415, "AtomFormatNotSupported")
    fails(rest.request("GET", f"{tab}()?$format=nonsense"), 415,
          ("MediaTypeNotSupported", "AtomFormatNotSupported"))


@pytest.mark.parametrize("kind, status", [
    ("application/json", 201), ("application/json;odata=nometadata", 201),
    ("application/json; charset=utf-8", 201), ("APPLICATION/JSON", 201), (None, 201),
    ("application/json;odata=fullmetadata", 201),
    ("application/atom+xml", 415), ('application/atom+xml;charset="utf-8";type=entry', 415),
    ("text/plain", 415), ("application/xml", 415), ("multipart/mixed; boundary=x", 415)])
def test_content_types_of_bodies(rest, tab, kind, status):
    answer = rest.insert(tab, ROW, {"Content-Type": kind})
    if status == 201:
        ok(answer, 201)
    elif answer.status == 400:
        fails(answer, 400, "InvalidInput")
    else:
        fails(answer, 415, ("AtomFormatNotSupported", "MediaTypeNotSupported"))


def test_an_empty_content_type_on_a_get(rest, tab):
    for scheme in ("lite", "full"):
        ok(rest.request("GET", f"{tab}()", headers={"Content-Type": ""}, sign=scheme), 200)
        ok(rest.request("GET", f"{tab}()", headers={"Content-Type": "application/json"},
                        sign=scheme), 200)


# ---- what every answer has


def test_R11_what_every_answer_has(rest, tab):
    seen = set()
    for answer in (rest.tables(), rest.create_table(tab), rest.insert(tab, ROW),
                   rest.get(tab, "p", "r"), rest.get(tab, "p", "none"),
                   rest.merge(tab, "p", "r", {}),
                   rest.delete(tab, "p", "r"), rest.query("nosuch"),
                   rest.request("GET", f"{tab}?comp=acl"), rest.request("GET", "nosuch?comp=acl"),
                   rest.request("GET", "Tables", sign=None), rest.batch([("POST", tab, {}, ROW)]),
                   rest.request("OPTIONS", "Tables", sign=None)):
        have = answer.headers
        assert REQUEST_ID.fullmatch(have["x-ms-request-id"])
        assert have["x-ms-request-id"] not in seen
        seen.add(have["x-ms-request-id"])
        assert abs(email.utils.parsedate_to_datetime(have["Date"]).timestamp() - time.time()) < 300
        assert have["Server"] and len(have.get_all("Date")) == 1 == len(have.get_all("Server"))
        assert have["x-ms-version"] == rest.version or answer.status in (400, 403)
        if answer.status == 204:
            assert have["Content-Length"] == "0" and have["Content-Type"] is None
        assert have["Content-Length"] is not None or "chunked" in have["Transfer-Encoding"]
        assert len(have.get_all("Content-Type") or [""]) == 1
        assert (have["x-ms-error-code"] is None) == (answer.status < 400)
        assert have["DataServiceVersion"] is None or have["DataServiceVersion"] in ("3.0;", "1.0;")


def test_the_error_code_header(rest, tab):
    for version in JSON_VERSIONS:
        answer = rest.get(tab, "p", "none", headers={"x-ms-version": version})
        assert answer.headers["x-ms-error-code"] == "ResourceNotFound"
    head = rest.request("HEAD", entity_path(tab, "p", "none"))
    assert head.status in (404, 405) and head.body == b""
    assert head.headers["x-ms-error-code"] in ("ResourceNotFound", "MethodNotAllowed",
                                               "UnsupportedHttpVerb")


def test_R11_the_clients_own_id(rest, tab):
    for value in (guid(), "x", "a b", "x" * 1024):
        for answer in (rest.query(tab, {"x-ms-client-request-id": value}),
                       rest.query("nosuch", {"x-ms-client-request-id": value}),
                       rest.request("GET", "Tables", headers={"x-ms-client-request-id": value},
                                    sign=None)):
            assert answer.headers["x-ms-client-request-id"] == value
    answer = rest.query(tab, {"x-ms-client-request-id": "x" * 1025})
    assert answer.status in (200, 400), answer
    assert rest.query(tab).headers["x-ms-client-request-id"] is None


def test_the_id_of_an_error_is_the_header_and_in_the_body(rest):
    answer = fails(rest.query("nosuch"), 404, "TableNotFound")
    request_id = answer.headers["x-ms-request-id"]
    value = answer.json["odata.error"]["message"]["value"]
    assert value.startswith("The table specified does not exist.\nRequestId:" + request_id)
    assert answer.json["odata.error"]["message"]["lang"] == "en-US"
    assert list(answer.json) == ["odata.error"]
    assert list(answer.json["odata.error"]) == ["code", "message"]


@pytest.mark.parametrize("level", [NONE, MINIMAL, FULL])
def test_errors_have_the_level_that_was_asked_for(rest, level):
    answer = fails(rest.query("nosuch", {"Accept": level}), 404, "TableNotFound")
    assert answer.headers["Content-Type"] == f"{level};streaming=true;charset=utf-8"


def test_content_md5(rest, tab):
    body = json.dumps(ROW).encode()
    right = base64.b64encode(hashlib.md5(body).digest()).decode()
    wrong = base64.b64encode(hashlib.md5(b"x").digest()).decode()
    for scheme in ("lite", "full"):
        fails(rest.request("POST", tab, body, {"Content-MD5": wrong}, sign=scheme), 400,
              ("Md5Mismatch", "InvalidMd5"))
        for bad in ("nonsense", "AAAA", ""):
            answer = rest.request("POST", tab, body, {"Content-MD5": bad}, sign=scheme)
            if bad or answer.status != 201:
                fails(answer, 400, ("InvalidMd5", "Md5Mismatch"))
            else:
                ok(rest.delete(tab, "p", "r"), 204)
        ok(rest.request("POST", tab, body, {"Content-MD5": right}, sign=scheme), 201)
        ok(rest.delete(tab, "p", "r"), 204)


def test_timeouts_that_are_none(rest, tab):
    for value in ("5", "30", "31", "3600"):
        ok(rest.request("GET", f"{tab}()?timeout={value}"), 200)
    for value in ("x", "-1", "0", ""):
        answer = rest.request("GET", f"{tab}()?timeout={value}")
        assert answer.status in (200, 400), answer
        if answer.status == 400:
            fails(answer, 400, ("InvalidQueryParameterValue", "InvalidInput",
                                "OutOfRangeQueryParameterValue"))


def test_the_version_of_a_sas_request(rest, tab):
    """The header, else api-version, else sv."""
    with rest.clone(sas=table_sas(rest.account, rest.key, tab, sv="2019-02-02")) as c:
        for headers in ({"x-ms-version": "2020-12-06"}, {"x-ms-version": None}):
            ok(c.query(tab, headers), 200)
        fails(c.query(tab, {"x-ms-version": "2012-02-12"}), 415, "JsonFormatNotSupported")
    with rest.clone(sas=account_sas(rest.account, rest.key)) as c:
        ok(c.request("GET", "Tables?api-version=2019-02-02", headers={"x-ms-version": None}), 200)


def test_the_service_document(rest):
    answer = rest.request("GET", "")
    assert answer.status in (200, 400, 404, 405, 501), answer
    if answer.status == 200:
        assert {"name": "Tables", "url": "Tables"} in answer.json["value"]
    assert rest.request("GET", "$metadata").status in (400, 404, 501)


@pytest.mark.parametrize("path", ["/", "//", "/a", "/a/b/c/d/e", "Tables/x", "Tables('a')/x",
                                  "Tables('a'", "Tables(a)", "Tables('')", "%00", "%", "%zz",
                                  "Tables%2f", "../Tables", "x'y", "(", ")", "$nonsense", "a-b",
                                  "Tables('a')('b')", "Tables(PartitionKey='a',RowKey='b')",
                                  ".", "%C3", "abcd(PartitionKey='a',RowKey='b')/Prop"])
def test_paths_that_are_none(rest, path):
    for method, body in (("GET", None), ("POST", b"{}"), ("DELETE", None)):
        answer = rest.request(method, path, body)
        assert answer.status in (400, 403, 404, 405, 501) or (
            answer.status == 200 and method == "GET"), (method, answer)
        assert answer.status == 200 or REQUEST_ID.fullmatch(answer.headers["x-ms-request-id"])


# ---- HTTP


def raw(client, *pieces, wait=0.0):
    """Sends the pieces as they are, and reads to the end of the stream."""
    s = client.connect()
    for piece in pieces:
        s.sendall(piece)
        if wait:
            time.sleep(wait)
    data = b""
    while True:
        got = s.recv(65536)
        if not got:
            s.close()
            return data
        data += got


def listen(client, data, seconds=0.5):
    """What comes until the server closes, or says nothing more for that long."""
    s = client.connect()
    s.settimeout(seconds)
    answer = b""
    try:
        s.sendall(data)
        while got := s.recv(65536):
            answer += got
    except OSError:  # a reset, or the time is up
        pass
    s.close()
    return answer


def text_of(client, method, path, body=b"", headers=None, close=True):
    """A whole signed request as bytes."""
    target = client.target(path)
    send = client.headers_for(method, target, body or None, headers, "lite")
    if close:
        send["connection"] = "close"
    return (f"{method} {target} HTTP/1.1\r\n"
            + "".join(f"{k}: {v}\r\n" for k, v in send.items()) + "\r\n").encode() + body


def statuses(data):
    return [int(n) for n in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


def test_R11_one_connection_serves_many_requests(rest, tab):
    ok(rest.query(tab), 200)
    here = rest.connection.sock.getsockname()
    for n in range(50):
        ok(rest.upsert(tab, "p", str(n), {"N": n}), 204)
        fails(rest.get(tab, "p", "none"), 404, "ResourceNotFound")
        ok(rest.query(tab, top=1), 200)
        fails(rest.request("GET", "Tables", sign=None), 401, "NoAuthenticationInformation")
        assert rest.connection.sock.getsockname() == here


def test_a_request_in_pieces(rest, tab):
    """Split at each byte of its head, and in single bytes."""
    body = json.dumps(ROW).encode()
    whole = text_of(rest, "POST", tab, body)
    for at in range(1, len(whole), 23):
        assert statuses(raw(rest, whole[:at], whole[at:], wait=0.002)) in ([201], [409])
    assert statuses(raw(rest, *(whole[i:i + 1] for i in range(len(whole))))) == [409]


def test_a_pipeline(rest, tab):
    requests = [text_of(rest, "POST", tab, json.dumps({**ROW, "RowKey": str(n)}).encode(),
                        close=n == 19) for n in range(20)]
    assert statuses(raw(rest, b"".join(requests))) == [201] * 20
    assert len(rest.all(tab)) == 20


def test_chunked_bodies(rest, tab):
    import http.client
    target = rest.target(tab)
    body = json.dumps({**ROW, "S": "x" * 30000}).encode()
    for size in (1000, 29999, 100000):
        send = rest.headers_for("POST", target, b"", {"transfer-encoding": "chunked",
                                                      "content-length": None}, "lite")
        c = http.client.HTTPConnection("127.0.0.1", rest.port, timeout=60)
        c.putrequest("POST", target, skip_host=True, skip_accept_encoding=True)
        for k, v in send.items():
            c.putheader(k, v)
        c.endheaders((body[i:i + size] for i in range(0, len(body), size)), encode_chunked=True)
        answer = c.getresponse()
        text = answer.read()
        assert answer.status == 201, text
        c.close()
        assert rest.get(tab, "p", "r").json["S"] == "x" * 30000
        ok(rest.delete(tab, "p", "r"), 204)


def test_expect_100_continue(rest, tab):
    body = json.dumps(ROW).encode()
    whole = text_of(rest, "POST", tab, body, {"Expect": "100-continue"})
    head, body = whole.split(b"\r\n\r\n", 1)
    s = rest.connect()
    s.sendall(head + b"\r\n\r\n")
    first = s.recv(4096)
    assert first.startswith(b"HTTP/1.1 100 Continue\r\n"), first
    s.sendall(body)
    data = b""
    while got := s.recv(65536):
        data += got
    s.close()
    assert statuses(data) == [201]


def test_no_length_at_all(rest, tab):
    for method, path in (("POST", tab), ("PUT", entity_path(tab, "p", "r"))):
        target = rest.target(path)
        send = rest.headers_for(method, target, b"", {"content-length": None}, "lite")
        text = (f"{method} {target} HTTP/1.1\r\nConnection: close\r\n"
                + "".join(f"{k}: {v}\r\n" for k, v in send.items()) + "\r\n").encode()
        data = raw(rest, text)
        assert statuses(data) in ([411], [400]), data
        if statuses(data) == [411]:
            assert b"MissingContentLengthHeader" in data
    assert rest.all(tab) == []


@pytest.mark.parametrize("length", ["x", "-1", "99999999999999999999999", "5 5", "0x10", "+5"])
def test_lengths_that_are_none(rest, tab, length):
    body = json.dumps(ROW).encode()
    whole = text_of(rest, "POST", tab, body).replace(
        f"content-length: {len(body)}".encode(), f"content-length: {length}".encode())
    data = listen(rest, whole)
    assert all(400 <= n < 500 for n in statuses(data)), data
    assert rest.all(tab) == []


def test_a_body_shorter_than_its_length(rest, tab):
    """The client goes away in the middle: nothing is made of it."""
    body = json.dumps(ROW).encode()
    whole = text_of(rest, "POST", tab, body)
    for cut in (1, 10, len(body), len(body) + 20, len(whole) // 2, len(whole) - 3):
        s = rest.connect()
        s.sendall(whole[:-cut])
        s.close()
    assert rest.all(tab) == []


def test_a_body_longer_than_its_length(rest, tab):
    body = json.dumps(ROW).encode()
    whole = text_of(rest, "POST", tab, body, close=False)
    found = statuses(listen(rest, whole + b"GARBAGE\r\n\r\n"))
    assert found[0] == 201 and all(400 <= n < 500 for n in found[1:]), found


def test_http_1_0_and_names_of_headers_in_any_case(rest, tab):
    whole = text_of(rest, "GET", f"{tab}()").replace(b" HTTP/1.1", b" HTTP/1.0")
    assert b" 200 " in raw(rest, whole).split(b"\r\n")[0]
    target = rest.target(f"{tab}()")
    send = rest.headers_for("GET", target, None, {"connection": "close"}, "lite")
    for change in (str.upper, str.title, lambda n: n[0] + n[1:].upper()):
        text = (f"GET {target} HTTP/1.1\r\n" + "".join(f"{change(k)}:   {v}  \r\n"
                                                      for k, v in send.items()) + "\r\n")
        assert statuses(raw(rest, text.encode())) == [200]


@pytest.mark.parametrize("text", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"nonsense\r\n\r\n", b"\0\0\0\0\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET " + b"/" * 70000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
    b"0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
], ids=lambda t: repr(t[:24]))
def test_what_is_no_http(rest, text):
    data = listen(rest, text)
    assert all(400 <= n < 500 or n in (501, 505) for n in statuses(data)), data[:500]
    ok(rest.tables(), 200)


def test_many_connections_that_say_nothing(rest):
    idle = [rest.connect() for _ in range(100)]
    for s in idle[::2]:
        s.sendall(b"GET /x HTTP/1.1\r\nHost: ")
    with Client(rest.port) as c:
        ok(c.tables(), 200)
    for s in idle:
        s.close()
    ok(rest.tables(), 200)


def test_a_client_that_reads_slowly(rest, tab):
    """A large answer to one does not hold up the others."""
    for n in range(30):
        ok(rest.upsert(tab, "p", f"{n:02}", {f"v{k}": "x" * 30000 for k in range(3)}), 204)
    slow = rest.connect()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    slow.sendall(text_of(rest, "GET", f"{tab}()"))
    for _ in range(20):
        ok(rest.get(tab, "p", "00"), 200)
    data = b""
    while got := slow.recv(65536):
        data += got
    slow.close()
    assert statuses(data[:20]) == [200] and data.count(b'"RowKey"') == 30


def test_an_unknown_account(rest):
    with rest.clone(account="nosuch") as c:
        fails(c.tables(), (403, 404), ("AuthenticationFailed", "ResourceNotFound"))
    with rest.clone(account=OTHER_ACCOUNT) as c:  # with the key of another one
        fails(c.tables(), 403, "AuthenticationFailed")
