# SPDX-License-Identifier: MIT
"""The Table service as it was spoken in 2009: ATOM bodies, x-ms-version 2009-04-14, requests
signed with SharedKeyLite.  Python's own library is enough for it.

    tables = Tables("AccountName=...;AccountKey=...;TableEndpoint=http://...")
    tables.insert("Blogs", {"PartitionKey": "Channel9", "RowKey": "Oct-29", "Rating": 3})
"""

import base64
import datetime
import email
import email.utils
import hashlib
import hmac
import http.client
import urllib.parse
import uuid
import xml.etree.ElementTree as ET

ATOM = "http://www.w3.org/2005/Atom"
DATA = "http://schemas.microsoft.com/ado/2007/08/dataservices"
META = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
for prefix, namespace in (("", ATOM), ("d", DATA), ("m", META)):
    ET.register_namespace(prefix, namespace)


class Refused(Exception):
    """What the service says no with.  .index is the operation's place in a batch, else None."""

    def __init__(self, status, body):
        error = ET.fromstring(body)
        self.status = status
        self.code = error.findtext(f"{{{META}}}code")
        self.message = error.findtext(f"{{{META}}}message").split("\nRequestId:")[0]
        number, colon, rest = self.message.partition(":")
        self.index = None
        if colon and number.isdigit():
            self.index, self.message = int(number), rest
        super().__init__(f"{status} {self.code}")


# ---- values and entries

NO_NUMBERS = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}


def to_edm(value):
    """(type, text) of a python value; a string has no type."""
    if isinstance(value, bool):
        return "Edm.Boolean", "true" if value else "false"
    if isinstance(value, int):
        return "Edm.Int32" if -2**31 <= value < 2**31 else "Edm.Int64", str(value)
    if isinstance(value, float):
        return "Edm.Double", NO_NUMBERS.get(repr(value)) or repr(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo:  # without a zone it is UTC
            value = value.astimezone(datetime.timezone.utc)
        return "Edm.DateTime", value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, uuid.UUID):
        return "Edm.Guid", str(value)
    if isinstance(value, bytes):
        return "Edm.Binary", base64.b64encode(value).decode()
    return None, value


def from_edm(kind, text):
    if kind == "Edm.Boolean":
        return text == "true"
    if kind in ("Edm.Int32", "Edm.Int64"):
        return int(text)
    if kind == "Edm.Double":
        return float(text)
    if kind == "Edm.DateTime":  # seven digits of a second; python has six
        when, _, fraction = text.rstrip("Z").partition(".")
        return datetime.datetime.fromisoformat(f"{when}.{fraction[:6]:0<6}+00:00")
    if kind == "Edm.Guid":
        return uuid.UUID(text)
    if kind == "Edm.Binary":
        return base64.b64decode(text)
    return text


def write_entry(row):
    entry = ET.Element(f"{{{ATOM}}}entry")
    content = ET.SubElement(entry, f"{{{ATOM}}}content", type="application/xml")
    properties = ET.SubElement(content, f"{{{META}}}properties")
    for name, value in row.items():
        kind, text = to_edm(value)
        attributes = {f"{{{META}}}type": kind} if kind else {}
        ET.SubElement(properties, f"{{{DATA}}}{name}", attributes).text = text
    # A reader of XML makes a line feed of a bare CR, and ElementTree writes it bare.
    return ET.tostring(entry, encoding="utf-8", xml_declaration=True).replace(b"\r", b"&#xD;")


class Row(dict):
    """The properties of an entry.  .etag is the version that was read."""

    etag = None


def read_entry(entry):
    row = Row()
    row.etag = entry.get(f"{{{META}}}etag")
    for p in entry.find(f"{{{ATOM}}}content/{{{META}}}properties"):
        if p.get(f"{{{META}}}null") != "true":
            row[p.tag[len(DATA) + 2:]] = from_edm(p.get(f"{{{META}}}type"), p.text or "")
    return row


# ---- requests


def entity(table, partition, row):
    """Where a row is; a quote in a key stands twice."""
    partition, row = (urllib.parse.quote(key.replace("'", "''"), safe="") for key in
                      (partition, row))
    return f"{table}(PartitionKey='{partition}',RowKey='{row}')"


def query(table, token=None, **options):
    """The path of a query; token is what the page before ended with."""
    pairs = [(f"${name}", value) for name, value in options.items()] + list((token or {}).items())
    return f"{table}()?" + "&".join(f"{n}={urllib.parse.quote(str(v), safe='')}" for n, v in pairs)


class Tables:
    def __init__(self, connection, show=None):
        """show: called with each line that is sent ("> ...") and received ("< ...")."""
        fields = dict(f.split("=", 1) for f in connection.strip(";").split(";"))
        self.account = fields["AccountName"]
        self.key = base64.b64decode(fields["AccountKey"])
        self.url = urllib.parse.urlsplit(fields["TableEndpoint"].rstrip("/"))
        self.show = show or (lambda line: None)
        kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        self.connection = kind[self.url.scheme](self.url.netloc)

    def sign(self, date, path):
        """SharedKeyLite signs the date, and the account with the path as it is sent."""
        text = f"{date}\n/{self.account}{path.split('?')[0]}"
        signature = base64.b64encode(hmac.digest(self.key, text.encode(), hashlib.sha256))
        return f"SharedKeyLite {self.account}:{signature.decode()}"

    def request(self, method, path, body=None, **headers):
        """(headers, body) of an answer that is no refusal."""
        path = f"{self.url.path}/{path}"
        date = email.utils.formatdate(usegmt=True)
        send = {"x-ms-version": "2009-04-14", "x-ms-date": date,
                "Authorization": self.sign(date, path), "Accept": "application/atom+xml"}
        if body is not None:
            send["Content-Type"] = "application/atom+xml"
        send.update((name.replace("_", "-"), value) for name, value in headers.items())
        self.show_lines(">", f"{method} {path} HTTP/1.1", send.items(), body)
        self.connection.request(method, path, body, send)
        answer = self.connection.getresponse()
        data = answer.read()
        self.show_lines("<", f"HTTP/1.1 {answer.status} {answer.reason}", answer.getheaders(),
                        data)
        if answer.status >= 400:
            raise Refused(answer.status, data)
        return answer.headers, data

    def show_lines(self, sign, first, headers, body):
        lines = [first, *(f"{n}: {v}" for n, v in headers), ""]
        lines += (body or b"").decode().splitlines()
        for line in lines:
            self.show(f"{sign} {line}".rstrip())

    # -- tables

    def has_table(self, table):
        try:
            self.request("GET", f"Tables('{table}')")
        except Refused as e:
            if e.status != 404:
                raise
            return False
        return True

    def create_table(self, table):
        self.request("POST", "Tables", write_entry({"TableName": table}))

    # -- rows

    def insert(self, table, row):
        return read_entry(ET.fromstring(self.request("POST", table, write_entry(row))[1]))

    def get(self, table, partition, row):
        return read_entry(ET.fromstring(self.request("GET", entity(table, partition, row))[1]))

    def replace(self, table, row, etag):
        """PUT: properties that are not in the row are gone.  The new etag."""
        where = entity(table, row["PartitionKey"], row["RowKey"])
        return self.request("PUT", where, write_entry(row), If_Match=etag)[0]["ETag"]

    def merge(self, table, row, etag):
        """MERGE: properties that are not in the row stay as they are."""
        where = entity(table, row["PartitionKey"], row["RowKey"])
        return self.request("MERGE", where, write_entry(row), If_Match=etag)[0]["ETag"]

    def delete(self, table, row, etag):
        self.request("DELETE", entity(table, row["PartitionKey"], row["RowKey"]), If_Match=etag)

    def page(self, table, token=None, **options):
        """(rows, token): the token is None at the end."""
        headers, body = self.request("GET", query(table, token, **options))
        names = ("NextPartitionKey", "NextRowKey")
        token = {n: headers[f"x-ms-continuation-{n}"] for n in names
                 if headers[f"x-ms-continuation-{n}"] is not None}
        return [read_entry(e) for e in ET.fromstring(body).iter(f"{{{ATOM}}}entry")], token or None

    def query(self, table, **options):
        """All rows of a query, however many pages they come in."""
        token = {}
        while token is not None:
            rows, token = self.page(table, token, **options)
            yield from rows

    # -- entity group transactions

    def batch(self, *operations):
        """Changes of one partition, done whole or not at all.  Each operation is
        (method, table, row) or (method, table, row, etag)."""
        parts = [self.part(*o) for o in operations]
        inside = "".join(f"--changeset_1\r\n{p}\r\n" for p in parts)
        for answer in self.send_batch(
                "Content-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
                f"{inside}--changeset_1--\r\n"):
            if answer[0] >= 400:  # the one answer of a change set that failed
                raise Refused(answer[0], answer[2])

    def part(self, method, table, row, etag=None):
        where = table if method == "POST" else entity(table, row["PartitionKey"], row["RowKey"])
        lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary", "",
                 f"{method} {self.url.geturl()}/{where} HTTP/1.1",
                 "Content-Type: application/atom+xml;type=entry"]
        if etag is not None:
            lines.append(f"If-Match: {etag}")
        body = "" if method == "DELETE" else write_entry(row).decode()
        return "\r\n".join([*lines, f"Content-Length: {len(body.encode())}", "", body])

    def get_in_batch(self, table, partition, row):
        """One query may stand in a batch too: its keys do not lengthen the request's own URL."""
        where = f"{self.url.geturl()}/{entity(table, partition, row)}"
        ((status, _, body),) = self.send_batch(
            "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"GET {where} HTTP/1.1\r\nAccept: application/atom+xml\r\n\r\n")
        if status >= 400:
            raise Refused(status, body)
        return read_entry(ET.fromstring(body))

    def send_batch(self, text):
        """(status, headers, body) of every part of the answer."""
        headers, body = self.request(
            "POST", "$batch", f"--batch_1\r\n{text}--batch_1--\r\n".encode(),
            Content_Type="multipart/mixed; boundary=batch_1")
        whole = email.message_from_bytes(
            f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body)
        for part in whole.walk():
            if part.get_content_type() == "application/http":
                first, _, rest = part.get_payload(decode=True).partition(b"\r\n")
                head, _, content = rest.partition(b"\r\n\r\n")
                yield int(first.split()[1]), email.message_from_bytes(head), content.strip()
