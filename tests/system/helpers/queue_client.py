# SPDX-License-Identifier: MIT
"""A client of the Queue service that signs each request with SharedKey."""

import collections
import http.client
import socket
import urllib.parse
import xml.etree.ElementTree as ET

from rest_client import ACCOUNT, KEY, now, sign

VERSION = "2021-02-12"
Answer = collections.namedtuple("Answer", "status headers body")


def string_to_sign(method, path, query, headers, account, version, lite=False):
    """What the documents say, with the headers' names in lower case."""
    xms = "".join(f"{k}:{v}\n" for k, v in sorted(headers.items())
                  if k.startswith("x-ms-") and (v or version >= "2016-05-31"))
    date = "" if "x-ms-date" in headers else headers.get("date", "")
    if lite:
        comp = f"?comp={query['comp']}" if "comp" in query else ""
        return "\n".join([method, headers.get("content-md5", ""), headers.get("content-type", ""),
                          date, f"{xms}/{account}{path}{comp}"])
    length = headers.get("content-length", "")
    if length == "0" and version >= "2015-02-21":
        length = ""
    names = ("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range")
    return "\n".join(
        [method, headers.get("content-encoding", ""), headers.get("content-language", ""), length,
         headers.get("content-md5", ""), headers.get("content-type", ""), date]
        + [headers.get(n, "") for n in names]
        + [f"{xms}/{account}{path}" + "".join(f"\n{k}:{v}" for k, v in sorted(query.items()))])


class Queues:
    """host: None for path style, which needs the queues' own socket.  unix: in place of the port."""

    def __init__(self, port, host=None, account=ACCOUNT, key=KEY, version=VERSION, unix=None):
        self.port, self.host, self.account, self.key = port, host, account, key
        self.version, self.unix = version, unix

    def ask(self, method, path="/", query=None, body=None, headers=None, version=None, lite=False,
            text=None, auth=True, leave=None):
        """text: what to sign in place of the right string.  leave: a header that is not sent by itself.
        Names of headers become lower case."""
        query = dict(query or {})
        version = self.version if version is None else version
        have = {"x-ms-date": now(), "x-ms-version": version}
        have.pop(leave, None)
        if body is not None:
            have["content-length"] = str(len(body))
            have["content-type"] = "application/xml"
        elif method in ("PUT", "POST"):
            have["content-length"] = "0"
        have.update({k.lower(): v for k, v in (headers or {}).items()})
        path = path if self.host else f"/{self.account}{path}"
        if auth:
            what = text or string_to_sign(method, path, query, have, self.account, version, lite)
            scheme = "SharedKeyLite" if lite else "SharedKey"
            have["authorization"] = f"{scheme} {self.account}:{sign(self.key, what)}"
        have["host"] = f"{self.host or '127.0.0.1'}:{self.port}"
        line = path + ("?" + urllib.parse.urlencode(query) if query else "")
        c = http.client.HTTPConnection("127.0.0.1", self.port or 80, timeout=60)
        try:
            if self.unix:
                c.sock = socket.socket(socket.AF_UNIX)
                c.sock.settimeout(60)
                c.sock.connect(str(self.unix))
            c.request(method, line, body, have)
            answer = c.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            c.close()

    def put(self, queue, text, **query):
        body = f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()
        return self.ask("POST", f"/{queue}/messages", query, body)

    def get(self, queue, **query):
        """[{name of the element: its text}]"""
        answer = self.ask("GET", f"/{queue}/messages", query)
        assert answer.status == 200, answer
        return messages(answer)

    def delete(self, queue, message):
        return self.ask("DELETE", f"/{queue}/messages/{message['MessageId']}",
                        {"popreceipt": message["PopReceipt"]})


def messages(answer):
    return [{e.tag: e.text or "" for e in m} for m in ET.fromstring(answer.body)]


def code(answer):
    """(status, code), the same in the header and the body."""
    root = ET.fromstring(answer.body)
    assert root.tag == "Error" and root.findtext("Code") == answer.headers["x-ms-error-code"]
    assert "RequestId:" in root.findtext("Message") and "Time:" in root.findtext("Message")
    return answer.status, root.findtext("Code")
