# SPDX-License-Identifier: MIT
"""HTTP with bytes written by hand."""

import http.client
import json
import select
import time


def raw(client, method, path, body=None, headers=None, version="1.1"):
    """A signed request as bytes."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    target = client.target(path)
    send = client.headers_for(method, target, body, headers, "")
    lines = [f"{method} {target} HTTP/{version}"] + [f"{k}: {v}" for k, v in send.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


class Wire:
    """A connection whose answers are read one after the other."""

    def __init__(self, client, timeout=60):
        self.sock = client.connect()
        self.sock.settimeout(timeout)
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.sock.close()

    def makefile(self, *_args, **_kw):  # for HTTPResponse: one buffer for all answers
        return Unclosed(self.file)

    def send(self, data):
        self.sock.sendall(data)

    def answer(self, method="GET"):
        r = http.client.HTTPResponse(self, method=method)
        r.begin()
        body = r.read()
        return r.status, r.headers, body

    def is_closed(self, seconds):
        """Whether the other side hangs up within that time; what came before is dropped."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                return False
            try:
                if not self.sock.recv(1 << 20):
                    return True
            except ConnectionError:
                return True


class Unclosed:
    """HTTPResponse closes its file at the end of an answer."""

    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def close(self):
        pass
