# SPDX-License-Identifier: MIT
"""A proxy between a client and the service that breaks some requests, and may delay all of them.

Each fault is one that a client meets in production: the service is busy, the connection ends before the
request arrives, while the answer comes, or after the change was done.
"""

import http.client
import http.server
import random
import socketserver
import sys
import threading
import time

FAULTS = ("busy", "cut", "half", "lost")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    upstream = None

    def log_message(self, *_):
        pass

    def forward(self, body):
        """The answer of the service, on a connection that is kept as long as that of the client."""
        if self.upstream is None or self.upstream.port != self.server.port():
            self.upstream = http.client.HTTPConnection("127.0.0.1", self.server.port(), timeout=60)
        self.upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            self.upstream.putheader(name, value)
        self.upstream.endheaders(body)
        answer = self.upstream.getresponse()
        return answer, answer.read()

    def handle_one(self):
        what = f"{self.command} {self.path}"
        fault = self.server.next_fault(what)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(self.server.delay)
        self.server.hold(what)
        self.close_connection = fault is not None
        if fault == "busy":
            self.wfile.write(b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        if fault == "refuse":
            text = b'{"odata.error":{"code":"%s","message":{"lang":"en-US","value":"too complex"}}}' % self.server.code.encode()
            self.wfile.write(b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                             b"Connection: close\r\n\r\n%s" % (len(text), text))
        if fault in ("busy", "cut", "refuse"):
            return
        self.path = self.server.rewrite(self.path)
        try:
            answer, text = self.forward(body)
        except (OSError, http.client.HTTPException):
            self.close_connection, self.upstream = True, None
            return
        if fault == "lost":
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.server.count(len(text))
        self.wfile.write(text[:len(text) // 2] if fault == "half" else text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one


class FaultProxy(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """proxy.server_port is where it listens; port(): where the service does at the moment."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port, seed=0, share=0.0, delay=0.0, own=0):
        super().__init__(("127.0.0.1", own), Handler)
        self.port, self.share, self.delay = port, share, delay
        self.dice, self.lock = random.Random(f"proxy {seed}"), threading.Lock()
        self.requests, self.broken, self.bytes = 0, 0, 0
        self.cut, self.cuts, self.fault = None, 0, "cut"
        self.code = "InvalidInput"  # of the fault "refuse"
        self.held, self.go_on = None, threading.Event()
        self.rewrite = lambda path: path  # the path and query that the service gets
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def next_fault(self, what):
        """The next `cuts` requests whose method and path have the text `cut` have the fault `fault`; others fail
        by chance."""
        with self.lock:
            self.requests += 1
            if self.cuts and self.cut in what:
                self.cuts -= 1
                return self.fault
            if self.dice.random() >= self.share:
                return None
            self.broken += 1
            return self.dice.choice(FAULTS)

    def leave(self, fault="cut"):
        """From now on every request fails."""
        self.cut, self.cuts, self.fault = "", sys.maxsize, fault

    def come_back(self):
        self.cuts = 0

    def count(self, n):
        with self.lock:
            self.bytes += n

    def hold(self, what):
        """A request whose method and path have the text `held` waits for go_on."""
        if self.held and self.held in what:
            self.held = None
            self.go_on.wait(60)

    def handle_error(self, *_):
        """A client that has gone."""

    def stop(self):
        self.shutdown()
        self.server_close()


if __name__ == "__main__":  # PORT SERVICE-PORT DELAY-MS: for tests/bench
    OWN, SERVICE, DELAY = map(int, sys.argv[1:])
    FaultProxy(lambda: SERVICE, delay=DELAY / 1000, own=OWN)
    threading.Event().wait()
