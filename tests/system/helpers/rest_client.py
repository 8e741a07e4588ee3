# SPDX-License-Identifier: MIT
"""A small client of the Table service's protocol, made from scratch so that it shares no
mistake with the server: signatures, SAS, multipart.

Nothing is retried or put right on the way: what a test says is what goes over the wire.
A path without a leading slash is relative to the account ("Tables", "Blogs()?$top=1"); one
with it is the whole target.
"""

import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import re
import socket
import time
import urllib.parse
import uuid

ACCOUNT = "devstoreaccount1"
KEY = ("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/"
       "KBHBeksoGMGw==")
VERSION = "2019-02-02"
NONE, MINIMAL, FULL = (f"application/json;odata={level}metadata" for level in
                       ("no", "minimal", "full"))
# What a URL may hold as it is inside a quoted key.
PLAIN = "-_.!~*()"


def sign(key, text):
    mac = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256)
    return base64.b64encode(mac.digest()).decode()


def now(offset=0):
    return email.utils.formatdate(time.time() + offset, usegmt=True)


def quote_key(key):
    """A key as it stands between the quotes of a URL."""
    return urllib.parse.quote(key.replace("'", "''"), safe=PLAIN)


def entity_path(table, pk, rk):
    return f"{table}(PartitionKey='{quote_key(pk)}',RowKey='{quote_key(rk)}')"


def query_string(**options):
    """filter=..., top=... as $filter=...; names that begin with Next stay as they are."""
    return "&".join(
        f"{name if name[0].isupper() else '$' + name}="
        f"{urllib.parse.quote(str(value), safe='')}"
        for name, value in options.items() if value is not None)


def canonical_resource(account, target):
    path, _, query = target.partition("?")
    comp = [p[5:] for p in query.split("&") if p.startswith("comp=")]
    return f"/{account}{path or '/'}" + (f"?comp={comp[0]}" if comp else "")


def string_to_sign(scheme, method, target, headers, account):
    date = headers.get("x-ms-date") or headers.get("date", "")
    resource = canonical_resource(account, target)
    if scheme == "lite":
        return f"{date}\n{resource}"
    return "\n".join([method, headers.get("content-md5", ""), headers.get("content-type", ""),
                      date, resource])


class Response:
    def __init__(self, status, reason, headers, body):
        self.status, self.reason, self.headers, self.body = status, reason, headers, body

    def __repr__(self):
        return f"{self.status} {self.reason}: {self.body[:600]!r}"

    @property
    def json(self):
        return json.loads(self.body.decode("utf-8"))

    @property
    def rows(self):
        return self.json["value"]

    @property
    def etag(self):
        return self.headers["ETag"]

    @property
    def code(self):
        """The error's code, from a body of whatever form; None without one."""
        return self._error()[0]

    @property
    def message(self):
        """The error's text, without the lines of RequestId and Time."""
        text = self._error()[1]
        return text and text.split("\nRequestId:")[0]

    def _error(self):
        if self.body[:1] == b"{":
            error = self.json.get("odata.error")
            return (error["code"], error["message"]["value"]) if error else (None, None)
        text = self.body.decode("utf-8", "replace")
        code = re.search(r"<(?:m:)?[cC]ode>([^<]*)<", text)
        message = re.search(r"<(?:m:)?[mM]essage[^>]*>([^<]*)<", text)
        if not code:
            return None, None
        plain = message and message[1].replace("&lt;", "<").replace("&gt;", ">").replace(
            "&quot;", '"').replace("&apos;", "'").replace("&#39;", "'").replace("&amp;", "&")
        return code[1], plain

    @property
    def token(self):
        """The continuation as parameters of the next request; {} at the end."""
        names = ("NextPartitionKey", "NextRowKey", "NextTableName")
        return {n: self.headers[f"x-ms-continuation-{n}"] for n in names
                if self.headers[f"x-ms-continuation-{n}"] is not None}


def ok(response, *statuses):
    assert response.status in (statuses or (200, 201, 202, 204)), response
    return response


def moment(etag):
    """An ETag as text that can be ordered: its own has no zeros at the end of the fraction."""
    head, dot, fraction = etag.partition(".")
    return head.removesuffix("Z'\"") + "." + fraction.rstrip("Z'\"").ljust(7, "0") if dot \
        else head.split("Z")[0] + ".0000000"


REQUEST_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ERROR_TIME = re.compile(r"\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$")


def fails(response, status, code, text=None):
    """The answer is this error, in the shape that every error has.  A tuple of codes where
    the protocol is known to vary."""
    codes = code if isinstance(code, tuple) else (code,)
    statuses = status if isinstance(status, tuple) else (status,)
    assert response.status in statuses and response.code in codes, (
        f"{status} {code} expected, got {response}")
    assert response.headers["x-ms-error-code"] == response.code, response
    whole = response._error()[1]
    request_id = response.headers["x-ms-request-id"]
    assert REQUEST_ID.fullmatch(request_id), request_id
    assert f"\nRequestId:{request_id}" in whole, whole
    assert ERROR_TIME.search(whole), whole
    if text is not None:
        assert says(response.message, text), response
    return response


def says(message, text):
    """The service's text, and behind it maybe what was wrong here in particular."""
    return message == text or message.startswith((f"{text} ", f"{text}: ", f"{text}."))


class Client:
    """One connection, kept alive.  sign: "lite", "full", or None (anonymous)."""

    def __init__(self, port, account=ACCOUNT, key=KEY, host="127.0.0.1", version=VERSION,
                 sign="lite", accept=MINIMAL, timeout=60, path_style=True, sas=None,
                 unix=None, context=None):
        self.port, self.account, self.key, self.host = port, account, key, host
        self.version, self.sign, self.accept = version, sign, accept
        self.timeout, self.path_style, self.sas = timeout, path_style, sas
        self.unix, self.context = unix, context
        self.connection = None

    def clone(self, **changes):
        """Another client of the same server, with a connection of its own."""
        names = ("port", "account", "key", "host", "version", "sign", "accept", "timeout",
                 "path_style", "sas", "unix", "context")
        return Client(**{**{n: getattr(self, n) for n in names}, **changes})

    def connect(self):
        """A bare socket, for tests that write their own bytes."""
        if self.unix:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(self.timeout)
            s.connect(str(self.unix))
            return s
        s = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(s, server_hostname="localhost") if self.context else s

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def target(self, path):
        """The request target of a path, with the SAS if there is one."""
        if not path.startswith("/"):
            path = f"/{self.account}/{path}" if self.path_style else f"/{path}"
        if self.sas:
            path += ("&" if "?" in path else "?") + self.sas
        return path

    @property
    def host_header(self):
        return f"{self.host}:{self.port}" if self.port else "localhost"

    def base(self):
        """The service root as answers must spell it."""
        scheme = "https" if self.context else "http"
        return f"{scheme}://{self.host_header}/" + (f"{self.account}/" if self.path_style else "")

    def headers_for(self, method, target, body, headers, sign_with):
        """What is sent, signature included: defaults, then what the test says; a value of
        None takes a header away."""
        have = {"host": self.host_header, "accept": self.accept, "x-ms-date": now(),
                "x-ms-version": self.version}
        if body is not None:
            have["content-type"] = "application/json"
            have["content-length"] = str(len(body))
        elif method in ("POST", "PUT", "MERGE", "PATCH"):
            have["content-length"] = "0"
        have.update({k.lower(): v for k, v in (headers or {}).items()})
        have = {k: v for k, v in have.items() if v is not None}
        scheme = self.sign if sign_with == "" else sign_with
        if self.sas and sign_with == "":
            scheme = None
        if scheme and "authorization" not in have:
            text = string_to_sign(scheme, method, target, have, self.account)
            name = "SharedKeyLite" if scheme == "lite" else "SharedKey"
            have["authorization"] = f"{name} {self.account}:{sign(self.key, text)}"
        return have

    def request(self, method, path, body=None, headers=None, sign=""):
        """body: bytes, str, or an object that becomes JSON."""
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        target = self.target(path)
        send = self.headers_for(method, target, body, headers, sign)
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port or 80,
                                                         timeout=self.timeout)
        if self.connection.sock is None:
            self.connection.sock = self.connect()
        c = self.connection
        try:
            c.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in send.items():
                for one in value if isinstance(value, list) else [value]:
                    c.putheader(name, one)
            c.endheaders(body)
            answer = c.getresponse()
            data = answer.read()
        except BaseException:
            self.close()
            raise
        if answer.will_close:
            self.close()
        return Response(answer.status, answer.reason, answer.headers, data)

    # -- operations, each as the SDKs send it

    def create_table(self, table, **kw):
        return self.request("POST", "Tables", {"TableName": table}, **kw)

    def delete_table(self, table, **kw):
        return self.request("DELETE", f"Tables('{table}')", **kw)

    def tables(self, **options):
        return self.request("GET", "Tables" + ("?" + query_string(**options) if options else ""))

    def insert(self, table, row, headers=None, **kw):
        return self.request("POST", table, row, headers, **kw)

    def change(self, method, table, pk, rk, row=None, if_match=None, headers=None, **kw):
        headers = dict(headers or {})
        if if_match is not None:
            headers["If-Match"] = if_match
        return self.request(method, entity_path(table, pk, rk), row, headers, **kw)

    def upsert(self, table, pk, rk, row, **kw):
        return self.change("PUT", table, pk, rk, row, **kw)

    def replace(self, table, pk, rk, row, if_match="*", **kw):
        return self.change("PUT", table, pk, rk, row, if_match, **kw)

    def merge(self, table, pk, rk, row, if_match="*", **kw):
        return self.change("PATCH", table, pk, rk, row, if_match, **kw)

    def upsert_merge(self, table, pk, rk, row, **kw):
        return self.change("MERGE", table, pk, rk, row, **kw)

    def delete(self, table, pk, rk, if_match="*", **kw):
        return self.change("DELETE", table, pk, rk, None, if_match, **kw)

    def get(self, table, pk, rk, select=None, **kw):
        path = entity_path(table, pk, rk)
        return self.request("GET", path + ("?" + query_string(select=select) if select else ""),
                            **kw)

    def query(self, table, headers=None, **options):
        path = f"{table}()" + ("?" + query_string(**options) if options else "")
        return self.request("GET", path, headers=headers)

    def pages(self, table, **options):
        """Every page of a query, following the tokens."""
        token = {}
        while True:
            page = ok(self.query(table, **{**options, **token}), 200)
            yield page
            token = page.token
            if not token:
                return

    def all(self, table, **options):
        return [row for page in self.pages(table, **options) for row in page.rows]

    def batch(self, ops, headers=None, **how):
        """ops: (method, path, headers, body) each; see batch_body()."""
        body, content_type = batch_body(self, ops, **how)
        return self.request("POST", "$batch", body,
                            {"content-type": content_type, **(headers or {})})


# ---- multipart


def part_text(client, op, eol="\r\n", blank=1, length=False, content_id=None, target=None,
              defaults=True):
    """The HTTP request of one operation, as it stands in a part."""
    method, path, headers, body = op
    if body is not None and not isinstance(body, str):
        body = json.dumps(body, ensure_ascii=False)
    have = {}
    if defaults:
        have["Accept"] = client.accept
        have["DataServiceVersion"] = "3.0"
        if body is not None:
            have["Content-Type"] = "application/json;odata=nometadata"
    have.update(headers or {})
    if length and body is not None:
        have["Content-Length"] = str(len(body.encode()))
    if content_id is not None:
        have["Content-ID"] = str(content_id)
    url = (target or (lambda p: client.base() + p))(path)
    lines = [f"{method} {url} HTTP/1.1"] + [f"{k}: {v}" for k, v in have.items()]
    return eol.join(lines) + eol * (1 + blank) + (body or "") + eol


def batch_body(client, ops, eol="\r\n", blank=1, boundary="batch_0e1f", change_set=True,
               inner="changeset_77aa", final=True, preamble="", mime_ids=False,
               content_ids=False, length=False, target=None, content_type=None,
               defaults=True):
    """(body, Content-Type) of a $batch.  change_set=False puts the parts in the batch
    itself, as a GET must be."""
    out = [preamble]
    if change_set:
        out += [f"--{boundary}", eol, f"Content-Type: multipart/mixed; boundary={inner}",
                eol, eol]
    here = inner if change_set else boundary
    for i, op in enumerate(ops):
        out += [f"--{here}", eol, "Content-Type: application/http", eol,
                "Content-Transfer-Encoding: binary", eol]
        if mime_ids:
            out += [f"Content-ID: {i}", eol]
        out += [eol, part_text(client, op, eol, blank, length, i if content_ids else None,
                               target, defaults)]
    if change_set:
        out += [f"--{inner}--", eol]
    if final or change_set:
        out += [f"--{boundary}--" if final else f"--{boundary}", eol]
    return "".join(out).encode(), content_type or f"multipart/mixed; boundary={boundary}"


class Part(Response):
    def __init__(self, status, reason, headers, body, content_id, change_set):
        super().__init__(status, reason, headers, body)
        self.content_id, self.change_set = content_id, change_set


def _split(data, boundary):
    """The parts between the delimiters of strictly written multipart."""
    delimiter = b"--" + boundary
    assert data.startswith(delimiter + b"\r\n"), data[:200]
    assert data.rstrip(b"\r\n").endswith(delimiter + b"--"), data[-200:]
    pieces = (b"\r\n" + data).split(b"\r\n" + delimiter)
    assert pieces[0] == b""
    assert pieces[-1].rstrip(b"\r\n") == b"--", pieces[-1]
    for p in pieces[1:-1]:
        assert p.startswith(b"\r\n")
        yield p[2:]


def _head(data):
    head, _, body = data.partition(b"\r\n\r\n")
    message = http.client.HTTPMessage()
    for line in head.split(b"\r\n"):
        name, colon, value = line.decode("latin-1").partition(":")
        assert colon, line
        message[name] = value.strip()
    return message, body


def parse_batch(response):
    """The parts of a batch's answer, in order; strict about its form."""
    ok(response, 202)
    found = re.fullmatch(r"multipart/mixed; boundary=(batchresponse_[0-9a-f-]{16,36})",
                         response.headers["Content-Type"])
    assert found, response.headers["Content-Type"]
    parts = []
    for number, piece in enumerate(_split(response.body, found[1].encode())):
        head, body = _head(piece)
        kind = re.fullmatch(r"multipart/mixed; boundary=(changesetresponse_[0-9a-f-]{16,36})",
                            head["Content-Type"] or "")
        pieces = _split(body.strip(b"\r\n"), kind[1].encode()) if kind else [piece]
        for one in pieces:
            mime, text = _head(one)
            assert mime["Content-Type"] == "application/http", mime.items()
            assert mime["Content-Transfer-Encoding"] == "binary", mime.items()
            line, _, rest = text.partition(b"\r\n")
            status = re.fullmatch(rb"HTTP/1\.1 (\d{3}) (.+)", line)
            assert status, text
            headers, content = _head(rest)
            parts.append(Part(int(status[1]), status[2].decode(), headers, content.rstrip(b"\r\n"),
                              headers["Content-ID"], number if kind else None))
    return parts


def part_fails(part, status, code, text=None):
    """One error part of a batch, as SDKs read it: JSON on one line, or XML."""
    codes = code if isinstance(code, tuple) else (code,)
    assert part.status == status and part.code in codes, f"{status} {code} expected, got {part}"
    assert b"\n" not in part.body or part.body.startswith(b"<?xml")
    if text is not None:
        texts = text if isinstance(text, tuple) else (text,)
        assert any(says(part.message, t) for t in texts), part
    return part


# ---- shared access signatures


def encode_fields(fields):
    return "&".join(f"{k}={urllib.parse.quote(str(v), safe='')}" for k, v in fields.items()
                    if v is not None)


def iso(offset=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + offset))


def table_sas_fields(account, key, table, sv=VERSION, **fields):
    """The fields of a table SAS, signed: sp, st, se, si, sip, spr, spk, srk, epk, erk."""
    f = {"sv": sv, "tn": table, **{k: v for k, v in fields.items() if v is not None}}
    prefix = "/table" if sv >= "2015-02-21" else ""
    lines = [f.get("sp", ""), f.get("st", ""), f.get("se", ""),
             f"{prefix}/{account}/{table.lower()}", f.get("si", "")]
    if sv >= "2015-04-05":
        lines += [f.get("sip", ""), f.get("spr", "")]
    lines += [sv, f.get("spk", ""), f.get("srk", ""), f.get("epk", ""), f.get("erk", "")]
    f["sig"] = sign(key, "\n".join(lines))
    return f


def account_sas_fields(account, key, sv=VERSION, sp="rwdlau", ss="t", srt="sco", **fields):
    f = {"sv": sv, "ss": ss, "srt": srt, "sp": sp,
         **{k: v for k, v in fields.items() if v is not None}}
    f.setdefault("se", iso(3600))
    lines = [account, sp, ss, srt, f.get("st", ""), f["se"], f.get("sip", ""),
             f.get("spr", ""), sv]
    if sv >= "2020-12-06":
        lines.append(f.get("ses", ""))
    f["sig"] = sign(key, "\n".join(lines) + "\n")
    return f


def table_sas(account, key, table, sp="raud", **fields):
    if "se" not in fields:
        fields["se"] = iso(3600)
    return encode_fields(table_sas_fields(account, key, table, sp=sp, **fields))


def account_sas(account, key, **fields):
    return encode_fields(account_sas_fields(account, key, **fields))


def guid():
    return str(uuid.uuid4())
