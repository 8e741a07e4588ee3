# SPDX-License-Identifier: MIT
"""Bad input of every kind over the REST socket.  After all of it the socket still serves,
and the store is what it was, to the byte of an export.  Multipart with missing pieces:
test_rest_batch.py; signatures and SAS wrong in each field: test_rest_auth.py; what is no
HTTP: test_rest_headers.py."""

import random
import urllib.parse

import pytest

from rest_client import (ACCOUNT, KEY, MINIMAL, Client, account_sas, batch_body, entity_path, ok,
                         table_sas)

DOCUMENT = ('{"PartitionKey":"p","RowKey":"new","S":"a\\u00e9\\"\\ud83d\\ude00é","I":-12,'
            '"D":1.5e-3,"T":true,"N":null,"W@odata.type":"Edm.DateTime",'
            '"W":"2008-07-10T00:00:00Z"}').encode()
CODES = {400, 401, 403, 404, 405, 409, 411, 412, 413, 414, 415, 431, 501}


@pytest.fixture
def kept(rowfs, module_server, rest, tab):
    """A table with a few rows that nothing in the test may change."""
    for n in range(5):
        ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": f"r{n}", "N": n, "S": "é"}), 201)
    ok(rest.request("PUT", f"{tab}?comp=acl", "<SignedIdentifiers><SignedIdentifier><Id>kept</Id>"
                    "</SignedIdentifier></SignedIdentifiers>"), 204)

    def state():
        return (rowfs("export", module_server.store, f"{ACCOUNT}/{tab}").stdout,
                rest.tables().body, rest.request("GET", f"{tab}?comp=acl").body,
                rest.request("GET", "?restype=service&comp=properties").body)

    before = state()
    yield tab
    assert state() == before
    ok(rest.get(tab, "p", "r0"), 200)


def refused(answer):
    """An error of the client's, never one of the server's."""
    assert answer.status in CODES, answer
    if answer.body and answer.status not in (414, 431):  # those may be from before any protocol
        assert answer.code and answer.headers["x-ms-error-code"] == answer.code, answer
    return answer


def test_R12_a_document_cut_at_each_byte(rest, kept):
    for n in range(len(DOCUMENT)):
        refused(rest.request("POST", kept, DOCUMENT[:n]))
        refused(rest.request("PUT", entity_path(kept, "p", "r1"), DOCUMENT[:n]))
        refused(rest.request("PATCH", entity_path(kept, "p", "r1"), DOCUMENT[:n],
                             {"If-Match": "*"}))


def test_R12_a_document_spoilt_at_each_byte(rest, kept):
    """Each byte replaced by one that JSON never allows there."""
    for bad in (b"\x00", b"\x01", b"\xff", b"\xc3"):
        for n in range(len(DOCUMENT)):
            if DOCUMENT[n:n + 1] == bad:
                continue
            refused(rest.request("POST", kept, DOCUMENT[:n] + bad + DOCUMENT[n + 1:]))


@pytest.mark.parametrize("body", [
    b"", b" ", b"null", b"true", b"5", b'"x"', b"[]", b"[{}]", b"{}{}", b"{,}", b'{"a"}', b"{a:1}",
    b"{'PartitionKey':'p'}", b'{"PartitionKey":"p","RowKey":"n",}', b'\xef\xbb\xbf{"a":1',
    b'{"PartitionKey":"p","RowKey":"n"} x', b'{"PartitionKey":"p","RowKey":"n","A":01}',
    b'{"PartitionKey":"p","RowKey":"n","A":+1}', b'{"PartitionKey":"p","RowKey":"n","A":.5}',
    b'{"PartitionKey":"p","RowKey":"n","A":1.}', b'{"PartitionKey":"p","RowKey":"n","A":NaN}',
    b'{"PartitionKey":"p","RowKey":"n","A":1e999}', b'{"PartitionKey":"p","RowKey":"n","A":"\\x"}',
    b'{"PartitionKey":"p","RowKey":"n","A":"\\ud800"}',
    b'{"PartitionKey":"p","RowKey":"n","A":"\xff"}',
    b'{"PartitionKey":"p","RowKey":"n","A":"\xed\xa0\x80"}',
    b'{"PartitionKey":"p","RowKey":"n","A":"\xc0\x80"}',
    b'{"PartitionKey":"p","RowKey":"n","A":"\x00"}',
    b'{"PartitionKey":"p","RowKey":"n","A":"\n"}', b"[" * 100000, b'{"a":' * 100000,
    b'{"PartitionKey":"p","RowKey":"n","A":' + b"9" * 100000 + b"e}",
    b'{"PartitionKey":"p\\u0000","RowKey":"n"}', b'{"PartitionKey":"\xff","RowKey":"n"}',
    b"<entry/>", b"PK", bytes(range(256))], ids=lambda b: repr(b[:30]))
def test_R12_bodies_that_are_no_entity(rest, kept, body):
    refused(rest.request("POST", kept, body))
    refused(rest.request("PUT", entity_path(kept, "p", "r1"), body, {"If-Match": "*"}))


@pytest.mark.parametrize("text", [
    "%", "%2", "%zz", "%2g", "%00", "%FF", "%C3", "%C3%28", "%ED%A0%80", "%C0%AF", "%F5%80%80%80",
    "%u0041", "%E2%82"])
def test_R12_percent_escapes_that_are_none(rest, kept, text):
    for path in (f"{kept}(PartitionKey='{text}',RowKey='r')", f"Tables('{text}')", text,
                 f"{kept}()?$filter=S%20eq%20'{text}'", f"{kept}()?$select={text}",
                 f"{kept}()?NextPartitionKey={text}", f"{kept}()?{text}=1", f"{kept}{text}()",
                 f"/{text}/Tables"):
        for method in ("GET", "PUT", "DELETE"):
            answer = rest.request(method, path, b"{}" if method == "PUT" else None)
            # What is not looked at, such as a parameter that is none, may be anything.
            if not (answer.status == 200 and method == "GET"):
                refused(answer)


def test_R12_raw_bytes_in_the_target(rest, kept):
    for bad in (b"\x80", b"\xff", b"\xc3\xa9", b"\x01", b"\x7f", b'"', b"<", b"\\", b"^", b"`"):
        for path in (kept.encode() + b"(PartitionKey='" + bad + b"',RowKey='r')",
                     kept.encode() + b"()?$filter=S eq '" + bad + b"'", bad):
            target = f"/{ACCOUNT}/".encode() + path.replace(b" ", b"%20")
            s = rest.connect()
            s.settimeout(10)
            s.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                      b"x-ms-version: 2019-02-02\r\n\r\n")
            data = b""
            try:
                while got := s.recv(65536):
                    data += got
            except ConnectionError:
                pass
            s.close()
            assert not data or data.split()[1] in (b"400", b"401", b"403", b"404"), data


def test_targets_of_every_length(rest, kept):
    rest.timeout = 10  # an answer or a close comes at once
    for n in (200, 1000, 4000, 8000, 16000, 64000, 300000):
        for path in (f"{kept}(PartitionKey='{'a' * n}',RowKey='r')",
                     f"{kept}()?$filter=S%20eq%20'{'a' * n}'", "a" * n, f"{kept}()?{'a' * n}=1",
                     f"{kept}()?{'&' * n}", f"{kept}()?{'a=1&' * (n // 4)}"):
            try:
                answer = rest.request("GET", path)
            except ConnectionError:  # refused by closing, as what is no HTTP
                rest.close()
                continue
            assert answer.status in CODES | {200}, (n, answer.status)
    long_key = "\U0001f600" * 256  # 512 units, 9 characters each in the URL: must work
    ok(rest.upsert(kept, long_key, long_key, {}), 204)
    ok(rest.delete(kept, long_key, long_key), 204)


def test_headers_of_every_length(rest, kept):
    for name in ("x-ms-client-request-id", "If-Match", "Accept", "Authorization", "x-ms-version",
                 "Prefer", "Content-Type", "X-Other", "x-ms-date", "Origin"):
        for n in (100, 1024, 8000, 30000, 70000, 300000):
            try:
                answer = rest.request("PUT", entity_path(kept, "p", "r1"), b"{bad",
                                      {name: "x" * n})
            except ConnectionError:
                rest.close()
                continue
            refused(answer)


@pytest.mark.parametrize("value", ["\x01", "\x7f", "é", "\xff", "a\tb"])
def test_characters_in_headers(rest, kept, value):
    for name in ("x-ms-client-request-id", "If-Match", "Accept", "Authorization", "x-ms-version",
                 "Prefer", "X-Other", "Origin", "DataServiceVersion", "X-HTTP-Method"):
        try:
            answer = rest.request("PUT", entity_path(kept, "p", "r1"), b"{bad", {name: value})
        except ConnectionError:
            rest.close()
            continue
        refused(answer)
        assert "\n" not in (answer.headers["x-ms-client-request-id"] or "")


XML = ('<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers><SignedIdentifier><Id>new</Id>'
       "<AccessPolicy><Start>2013-11-26T08:49:37Z</Start><Expiry>2035-01-01</Expiry>"
       "<Permission>raud</Permission></AccessPolicy></SignedIdentifier>"
       "</SignedIdentifiers>").encode()


def test_R12_xml_cut_at_each_byte(rest, kept):
    for n in range(1, len(XML)):
        refused(rest.request("PUT", f"{kept}?comp=acl", XML[:n]))
    for n in range(0, len(XML), 3):
        answer = rest.request("PUT", f"{kept}?comp=acl", XML[:n] + b"\x00" + XML[n + 1:])
        refused(answer)
    properties = (b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>"
                  b"<AllowedMethods>GET</AllowedMethods></CorsRule></Cors>"
                  b"</StorageServiceProperties>")
    for n in range(len(properties)):
        refused(rest.request("PUT", "?restype=service&comp=properties", properties[:n]))


@pytest.mark.parametrize("text", [
    '<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x.dtd"><SignedIdentifiers/>',
    '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><SignedIdentifiers/>',
    '<!DOCTYPE a [<!ENTITY e "x">]><SignedIdentifiers><SignedIdentifier><Id>&e;</Id>'
    "</SignedIdentifier></SignedIdentifiers>",
    '<SignedIdentifiers xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include parse="text" '
    'href="file:///etc/passwd"/></SignedIdentifiers>',
    '<?xml version="1.0" encoding="utf-16"?><SignedIdentifiers/>',
    '<?xml version="1.0" encoding="nonsense"?><SignedIdentifiers/>',
    "<SignedIdentifiers><SignedIdentifier><Id>&#0;</Id></SignedIdentifier></SignedIdentifiers>",
    "<SignedIdentifiers><SignedIdentifier><Id>&#x110000;</Id></SignedIdentifier>"
    "</SignedIdentifiers>",
    "<SignedIdentifiers><SignedIdentifier><Id>\x01</Id></SignedIdentifier></SignedIdentifiers>",
    "<a " + " ".join(f'a{i}="x"' for i in range(20000)) + "/>",
    "<SignedIdentifiers>" + "<SignedIdentifier>" * 5000, "<" * 100000, "&" * 100000],
    ids=lambda t: t[:40].replace("\x01", "?"))
def test_R12_xml_that_is_hostile(rest, kept, text):
    for path in (f"{kept}?comp=acl", "?restype=service&comp=properties"):
        answer = refused(rest.request("PUT", path, text))
        assert answer.status in (400, 413) and b"root:" not in answer.body


def test_R12_sas_with_nonsense_in_each_field(rest, kept):
    """Values that a parser could trip over."""
    values = ["", "%", "%00", "%FF", "a" * 5000, "-1", "9" * 30, "%F0%9F%98%80", "2020-01-02",
              "%0A", "=", "'", "127.0.0.1-", "-127.0.0.1", "999.1.1.1", "1.2.3", "::1",
              "9999-99-99T99:99:99Z", "https,https,https", "raudraud", "rrrr"]
    for sas in (table_sas(ACCOUNT, KEY, kept, st="2020-01-01", spk="a", srk="a", epk="z", erk="z",
                          sip="127.0.0.1", spr="https,http"),
                account_sas(ACCOUNT, KEY, st="2020-01-01", sip="127.0.0.1", spr="https,http")):
        fields = [f.split("=", 1) for f in sas.split("&")]
        for i, (name, _) in enumerate(fields):
            for value in values:
                bad = "&".join(f"{n}={value if k == i else v}" for k, (n, v) in enumerate(fields))
                answer = rest.request("DELETE", f"{entity_path(kept, 'p', 'r1')}?{bad}",
                                      headers={"If-Match": "*"}, sign=None)
                assert answer.status in CODES, (name, value, answer)


def test_R12_random_bytes_everywhere(rest, kept):
    """Single bytes of good requests replaced at random: any answer but a 5xx, and nothing is
    changed by what was not signed."""
    rng = random.Random(5)
    target = rest.target(entity_path(kept, "p", "r1"))
    send = rest.headers_for("GET", target, None, {"connection": "close"}, "lite")
    head = (f"GET {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in send.items())
            + "\r\n").encode()
    for _ in range(150):
        data = bytearray(head)
        for _ in range(rng.choice([1, 1, 2, 5])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        s = rest.connect()
        s.settimeout(0.1)
        got = b""
        try:
            s.sendall(bytes(data))
            while piece := s.recv(65536):
                got += piece
        except OSError:
            pass
        s.close()
        status = int(got.split()[1]) if got.startswith(b"HTTP/1.") else 0
        assert status < 500 or status in (501, 505), (bytes(data), got)
    batch, kind = batch_body(rest, [("PUT", entity_path(kept, "p", "x"), {}, "{bad")])
    for _ in range(300):
        data = bytearray(batch)
        data[rng.randrange(len(data))] = rng.randrange(256)
        answer = rest.request("POST", "$batch", bytes(data), {"content-type": kind})
        assert answer.status in CODES | {202}, answer
        assert answer.status != 202 or b"HTTP/1.1 2" not in answer.body


def test_filters_with_random_bytes(rest, kept):
    rng = random.Random(6)
    good = "PartitionKey eq 'p' and (N ge 1 or S eq 'é') and T lt datetime'2020-01-01T00:00:00Z'"
    for _ in range(400):
        data = bytearray(good.encode())
        for _ in range(rng.choice([1, 2, 4])):
            what = rng.randrange(3)
            at = rng.randrange(len(data))
            if what == 0:
                data[at] = rng.randrange(256)
            elif what == 1:
                del data[at]
            else:
                data[at:at] = bytes([rng.randrange(256)])
        answer = rest.request("GET", f"{kept}()?$filter={urllib.parse.quote_from_bytes(data)}")
        assert answer.status in (200, 400, 501), (bytes(data), answer)


def test_the_server_is_as_it_was(rest, module_server, kept):
    """After everything above: it answers, its memory is bounded, nothing is in its log that
    it would not say on a good day."""
    for _ in range(50):
        with Client(module_server.port, accept=MINIMAL) as c:
            ok(c.get(kept, "p", "r0"), 200)
    assert module_server.rss_kib() < 600 * 1024
    module_server._scan()
