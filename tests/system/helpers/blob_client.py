# SPDX-License-Identifier: MIT
"""A client of the Blob service that signs each request with SharedKey."""

import http.client
import re
import socket
import subprocess
import urllib.parse

from queue_client import Answer, Queues, code, string_to_sign
from rest_client import ACCOUNT, now, sign

VERSION = "2021-12-02"
__all__ = ["Answer", "Blobs", "blobs_of", "code"]


class Blobs(Queues):
    """The signature is that of the queues; bodies are bytes, or parts that come one by one."""

    def __init__(self, port, **options):
        super().__init__(port, **{"version": VERSION, **options})

    def signed(self, method, path, query=None, headers=None, version=None, auth=True, length=None):
        """The target and the headers of a request."""
        query, version = dict(query or {}), version or self.version
        have = {"x-ms-date": now(), "x-ms-version": version}
        if length is not None:
            have["content-length"] = str(length)
        have.update({k.lower(): v for k, v in (headers or {}).items()})
        path = urllib.parse.quote(path if self.host else f"/{self.account}{path}", safe="/$~")
        if auth:
            what = string_to_sign(method, path, query, have, self.account, version)
            have["authorization"] = f"SharedKey {self.account}:{sign(self.key, what)}"
        have["host"] = f"{self.host or '127.0.0.1'}:{self.port}"
        return path + ("?" + urllib.parse.urlencode(query) if query else ""), have

    def open(self, method, path, **request):
        """A socket with the head of a request whose body is to follow."""
        line, have = self.signed(method, path, **request)
        s = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        s.sendall((f"{method} {line} HTTP/1.1\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in have.items()) + "\r\n").encode())
        return s

    def ask(self, method, path="/", query=None, body=None, headers=None, version=None, auth=True,
            length=None, sink=None, **_):
        """sink: gets the parts of the body as they come; the answer's body is empty then."""
        if length is None and (body is not None or method == "PUT"):
            length = len(body or b"")
        line, have = self.signed(method, path, query, headers, version, auth, length)
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            c.request(method, line, body, have)
            answer = c.getresponse()
            while sink and (part := answer.read(1 << 20)):
                sink(part)
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            c.close()

    def put(self, path, body, **headers):
        """Put Blob; headers: content_type="text/plain"."""
        return self.ask("PUT", path, body=body, headers={
            "x-ms-blob-type": "BlockBlob",
            **{k.replace("_", "-"): v for k, v in headers.items()}})

    def get(self, path, **headers):
        return self.ask("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})


def blobs_of(server, store):
    """A client in path style, at the blobs' own socket."""
    text = subprocess.run([str(server.rowfs.program), "account", "keys", str(store), ACCOUNT],
                          capture_output=True, text=True, check=True).stdout
    found = re.search(r"BlobEndpoint=http://127\.0\.0\.1:(\d+)/" + ACCOUNT + ";", text)
    assert found, text
    client = Blobs(int(found[1]))
    client.table_port, client.connection = server.port, text.splitlines()[-1].split(None, 1)[1]
    client.server, client.store = server, store
    return client
