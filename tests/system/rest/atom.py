# SPDX-License-Identifier: MIT
"""ATOM as the Table service spoke it, for the tests: entries written in many spellings, and
answers read strictly.

A value is (Edm type, text) with the text that ATOM has for it, or None for null; a row is a
dictionary of these.  typed() makes one value comparable whatever format it came in.
"""

import base64
import json
import re
import struct
import xml.etree.ElementTree as ET
from xml.sax.saxutils import quoteattr

import rest_client

ATOM = "http://www.w3.org/2005/Atom"
D = "http://schemas.microsoft.com/ado/2007/08/dataservices"
M = D + "/metadata"
SCHEME = D + "/scheme"
MEDIA = "application/atom+xml"
ENTRY = 'application/atom+xml;charset="utf-8";type=entry'
STRING = "Edm.String"
HEAD = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>'


def string(text):
    return STRING, text


# ---- values


def no_zeros(text):
    """A time without the zeros that end its fraction."""
    whole, dot, fraction = text[:-1].partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def typed(kind, text):
    """(type, value) that is equal if and only if the value is the same."""
    if kind == STRING:
        return kind, text
    if kind == "Edm.Boolean":
        return kind, {"true": True, "false": False, "1": True, "0": False}[text]
    if kind in ("Edm.Int32", "Edm.Int64"):
        assert re.fullmatch(r"-?\d+", text), text
        return kind, int(text)
    if kind == "Edm.Double":
        number = float({"INF": "inf", "-INF": "-inf", "Infinity": "inf",
                        "-Infinity": "-inf"}.get(text, text))
        return kind, "NaN" if number != number else struct.pack(">d", number)
    if kind == "Edm.DateTime":
        return kind, no_zeros(text)
    if kind == "Edm.Guid":
        return kind, text.lower()
    assert kind == "Edm.Binary", kind
    return kind, base64.b64decode(text, validate=True)


class Number(str):
    """A JSON number as it is spelled."""


def json_rows(text):
    """What json.loads() makes of it, numbers as they are spelled."""
    return json.loads(text, parse_int=Number, parse_float=Number)


def of_json(element):
    """An element of JSON as a row of ATOM values; the annotations of the service and of the
    files of a mount."""
    row = {}
    for name, value in element.items():
        if "@" in name or name.startswith("odata."):
            continue
        kind = element.get(f"{name}@odata.type")
        if value is None:
            row[name] = None
            continue
        if isinstance(value, bool):
            kind, value = kind or "Edm.Boolean", "true" if value else "false"
        elif isinstance(value, Number):
            if kind is None:
                small = re.fullmatch(r"-?\d+", value)
                kind = "Edm.Double" if not small else (
                    "Edm.Int32" if -2**31 <= int(value) < 2**31 else "Edm.Int64")
        elif name == "Timestamp":
            kind = "Edm.DateTime"
        row[name] = typed(kind or STRING, str(value))
    return row


def to_json(row):
    """A row of ATOM values as the JSON that says the same."""
    out = {}
    for name, value in row.items():
        if value is None:
            out[name] = None
        elif value[0] == STRING:
            out[name] = value[1]
        else:
            out[f"{name}@odata.type"] = value[0]
            out[name] = {"INF": "Infinity", "-INF": "-Infinity"}.get(value[1], value[1])
    return out


# ---- writing


def needs_reference(c):
    """Characters that XML cannot hold, and CR, which a reader would make LF of."""
    return c < " " and c not in "\t\n" or c in "\ufffe\uffff"


def escape(text):
    return "".join(
        {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(c) or
        (f"&#x{ord(c):X};" if needs_reference(c) else c) for c in text)


NO_XML_NAME = "\u00aa\u00b5\u00ba"


def element_name(name):
    """A property's name as an element's: a few letters are none of XML's."""
    name = re.sub(f"_(?=x00(?:5F|AA|B5|BA)[_{NO_XML_NAME}])", "_x005F_", name)
    return re.sub(f"[{NO_XML_NAME}]", lambda m: f"_x{ord(m[0]):04X}_", name)


def property_name(name):
    return re.sub("_x(00(?:5F|AA|B5|BA))_", lambda m: chr(int(m[1], 16)), name)


def in_cdata(text):
    """As CDATA where it can be; what cannot stands between the sections."""
    out = ""
    for piece in re.split(r"([\0-\x08\x0b-\x1f\ufffe\uffff]|\]\]>)", text):
        if piece == "]]>":
            out += "<![CDATA[]]]]><![CDATA[>]]>"
        elif len(piece) == 1 and needs_reference(piece):
            out += escape(piece)
        elif piece:
            out += f"<![CDATA[{piece}]]>"
    return out


def in_references(text):
    return "".join(f"&#{ord(c)};" for c in text)


def among_comments(text):
    half = len(text) // 2
    return f"<!-- a -->{escape(text[:half])}<!--]]>-->{escape(text[half:])}<?p i?>"


def entry(row, prefixes=("", "d", "m"), text=escape, rest="", blank="", head=HEAD, kind=True):
    """An entry as a client sends it.  prefixes: of Atom, data and metadata ("" is the default
    namespace); text: how values are spelled; rest: what stands before the content; blank:
    between elements; kind: whether strings have their type said too."""
    spaces = " ".join(f'xmlns{":" * bool(p)}{p}="{n}"' for p, n in zip(prefixes, (ATOM, D, M)))
    a, d, m = (p and f"{p}:" for p in prefixes)
    out = f'{head}<{a}entry {spaces}>{blank}{rest}<{a}content type="application/xml">{blank}'
    out += f"<{m}properties>"
    for name, value in row.items():
        name = element_name(name)
        if value is None:
            out += f'{blank}<{d}{name} {m or "m:"}null="true" />'
        else:
            said = f' {m}type={quoteattr(value[0])}' if value[0] != STRING or not kind else ""
            out += f"{blank}<{d}{name}{said}>{text(value[1])}</{d}{name}>"
    return f"{out}{blank}</{m}properties>{blank}</{a}content>{blank}</{a}entry>"


def ado_net_children(a=""):
    """What ADO.NET Data Services sends beside the content."""
    return (f"<{a}title /><{a}updated>2009-03-18T11:48:34.9840639-07:00</{a}updated>"
            f"<{a}author><{a}name /></{a}author><{a}id />")


SPELLINGS = {
    "ADO.NET": {"rest": ado_net_children()},
    "other prefixes": {"prefixes": ("a", "dd", "mm"), "rest": ado_net_children("a:")},
    "data by default": {"prefixes": ("x", "", "y")},
    "CDATA": {"text": in_cdata},
    "references": {"text": in_references},
    "comments": {"text": among_comments},
    "indented": {"blank": "\r\n\t  "},
    "no declaration": {"head": ""},
    "byte order mark": {"head": "\ufeff" + HEAD},
    "stylesheet": {"head": '<?xml version="1.0"?><?xml-stylesheet href="x.xsl"?><!-- c -->'},
    "types of strings": {"kind": False},
}


# ---- reading

ESCAPE = "\uf8ff"


def hide_references(text):
    """References to what XML has no place for, which expat refuses, as text that it takes."""
    def hide(found):
        code = int(found[1], 16) if found[1] else int(found[2])
        return f"{ESCAPE}{code:X};" if needs_reference(chr(code)) and code != 13 else found[0]

    assert "<![CDATA[" not in text and "<!--" not in text and "<!DOCTYPE" not in text
    text = text.replace(ESCAPE, f"{ESCAPE}{ord(ESCAPE):X};")
    return re.sub(r"&#(?:x([0-9A-Fa-f]+)|(\d+));", hide, text)


def shown(text):
    return re.sub(ESCAPE + "([0-9A-F]+);", lambda m: chr(int(m[1], 16)), text or "")


def parse(body):
    """The root of a document that rowfs wrote: well-formed, with the prefixes that clients of
    that time look for, and text that stands alone in its element."""
    text = body.decode("utf-8")
    assert text.startswith(HEAD), text[:200]
    for name in re.findall(r"</?([^\s/>?]+)", text):
        prefix, colon, _ = name.rpartition(":")
        assert name == "?xml" or prefix in ("", "d", "m"), name
    return ET.fromstring(hide_references(text[len(HEAD):]).encode("utf-8"))


def child(element, name, space=ATOM):
    found = element.findall(f"{{{space}}}{name}")
    assert len(found) == 1, (name, [c.tag for c in element])
    return found[0]


class Entry:
    """An entry that was read: the parts of its envelope, and .row."""

    def __init__(self, element):
        assert element.tag == f"{{{ATOM}}}entry", element.tag
        self.etag = element.get(f"{{{M}}}etag")
        self.id, self.updated = (shown(child(element, n).text) for n in ("id", "updated"))
        title = child(element, "title")
        assert title.get("type") == "text" and not title.text
        assert not child(child(element, "author"), "name").text
        link, category = child(element, "link"), child(element, "category")
        assert link.get("rel") == "edit" and category.get("scheme") == SCHEME
        self.title, self.href, self.term = link.get("title"), link.get("href"), category.get("term")
        content = child(element, "content")
        assert content.get("type") == "application/xml"
        assert len(element) == 7 and len(content) == 1
        self.row = {}
        for p in child(content, "properties", M):
            assert p.tag.startswith(f"{{{D}}}") and len(p) == 0, p.tag
            name = property_name(p.tag[len(D) + 2:])
            assert name not in self.row
            if p.get(f"{{{M}}}null") is not None:
                assert p.get(f"{{{M}}}null") == "true" and not p.text
                self.row[name] = None
            else:
                text = shown(p.text)
                if text != text.strip(" \t\r\n"):
                    assert p.get("{http://www.w3.org/XML/1998/namespace}space") == "preserve", text
                kind = p.get(f"{{{M}}}type", STRING)
                assert (kind != STRING) == (f"{{{M}}}type" in p.attrib)
                self.row[name] = typed(kind, text)

    @property
    def own(self):
        return {n: v for n, v in self.row.items()
                if n not in ("PartitionKey", "RowKey", "Timestamp")}


def is_atom(response):
    assert response.headers["Content-Type"].replace(" ", "").startswith(
        "application/atom+xml;"), response.headers["Content-Type"]
    assert "charset=utf-8" in response.headers["Content-Type"]


def read_entry(response):
    """The entry that is the whole body; its base is checked by who knows it."""
    is_atom(response)
    root = parse(response.body)
    found = Entry(root)
    found.base = root.get("{http://www.w3.org/XML/1998/namespace}base")
    return found


class Feed:
    def __init__(self, response):
        is_atom(response)
        root = parse(response.body)
        assert root.tag == f"{{{ATOM}}}feed"
        self.base = root.get("{http://www.w3.org/XML/1998/namespace}base")
        self.title, self.id, self.updated = (
            shown(child(root, n).text) for n in ("title", "id", "updated"))
        link = child(root, "link")
        assert link.get("rel") == "self" and link.get("title") == link.get("href") == self.title
        self.entries = [Entry(e) for e in root.findall(f"{{{ATOM}}}entry")]
        assert len(root) == 4 + len(self.entries)

    @property
    def rows(self):
        return [e.own for e in self.entries]


def is_error(body, code, xml=True):
    """The error's body, in its namespace; its text."""
    root = ET.fromstring(body)
    assert root.tag == f"{{{M}}}error", root.tag
    assert child(root, "code", M).text == code
    message = child(root, "message", M)
    assert message.get("{http://www.w3.org/XML/1998/namespace}lang") == "en-US"
    return message.text


def fails(response, status, code, text=None):
    rest_client.fails(response, status, code, text)
    assert response.headers["Content-Type"].startswith("application/xml"), response.headers.items()
    is_error(response.body, response.code)
    return response


# ---- the client


class Client(rest_client.Client):
    """rest_client.Client with entries for bodies: what is a dictionary is a row of values."""

    def __init__(self, port, version="2011-08-18", accept=MEDIA, **more):
        super().__init__(port, version=version, accept=accept, **more)

    def request(self, method, path, body=None, headers=None, sign=""):
        if isinstance(body, dict):
            body = entry(body)
        if body is not None:
            headers = {"Content-Type": ENTRY, **(headers or {})}
        return super().request(method, path, body, headers, sign)

    def create_table(self, table, **kw):
        return self.request("POST", "Tables", {"TableName": string(table)}, **kw)

    def batch_of(self, ops, **how):
        """A batch of (method, path, headers, row or None) in ATOM."""
        return self.batch([(method, path, {"Content-Type": MEDIA, **headers} if row is not None
                            else headers, row if row is None else entry(row))
                           for method, path, headers, row in ops], **how)
