#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Load on any server of the Blob protocol, as queue_http.py puts it on queues.

    blob_http.py PORT ACCOUNT CONTAINER SAS PID CONNECTIONS PHASE=N ...

Each phase needs those before it:

    put4k get4k put1m get1m   N blobs of that size
    putbig getbig             one blob of N MiB
    pages sectors             N writes of 4 KiB, or of 512 bytes, all over a page blob of 500 GB
    ranges windows            the list of its page ranges, N times: whole; of 10 GiB each
    segments                  N parts of that list, 10,000 ranges each
    fill list                 N empty blobs; their names, 5,000 in an answer

Prints a line for each phase: its name, steps a second (of big blobs and lists: MiB, names), CPU milliseconds
of PID for one."""

import itertools
import random
import re
import sys
import time
from urllib.parse import quote

from queue_http import Connection, cpu_ticks, run, tell

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
DISK = 500 * GIB
NEXT = re.compile(rb"<NextMarker>([^<]+)</NextMarker>")


class Load:
    def __init__(self, port, account, container, sas, pid, connections):
        self.at, self.port, self.sas, self.pid = f"/{account}/{container}", port, sas, int(pid)
        self.connections = [Connection(int(port)) for _ in range(int(connections))]
        self.one(self.request("PUT", "", "restype=container&"), 201)

    def request(self, method, name, query="", body=b"", length=None, **headers):
        lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
        if method == "PUT":
            lines += f"Content-Length: {len(body) if length is None else length}\r\n"
        path = f"{self.at}/{name}" if name else self.at
        return (f"{method} {path}?{query}{self.sas} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                f"x-ms-version: 2021-12-02\r\n{lines}\r\n").encode() + body

    def one(self, request, status):
        c = self.connections[0]
        c.socket.sendall(request)
        while (answer := c.answer()) is None:
            pass
        assert answer[0] == status, answer
        return answer[1]

    def many(self, phase, requests, status):
        run(phase, self.connections, requests, status, self.pid)

    # ---- phases ----

    def put(self, phase, n, size):
        body = random.Random(size).randbytes(size)
        self.many(phase, (self.request("PUT", f"{size}-{i}", body=body, x_ms_blob_type="BlockBlob")
                          for i in range(n)), 201)

    def get(self, phase, n, size):
        self.many(phase, (self.request("GET", f"{size}-{i}") for i in range(n)), 200)

    def put_big(self, phase, n):
        part, c = random.Random(n).randbytes(MIB), self.connections[0]
        before, start = cpu_ticks(self.pid), time.monotonic()
        c.socket.sendall(self.request("PUT", "big", length=n * MIB, x_ms_blob_type="BlockBlob"))
        for _ in range(n):
            c.socket.sendall(part)
        while (answer := c.answer()) is None:
            pass
        assert answer[0] == 201, answer
        tell(phase, n, self.pid, before, start)

    def get_big(self, phase, n):
        c, buffer = self.connections[0], bytearray(MIB)
        before, start = cpu_ticks(self.pid), time.monotonic()
        c.socket.sendall(self.request("GET", "big"))
        head = b""
        while b"\r\n\r\n" not in head:
            head += c.socket.recv(4096)
        assert head[9:12] == b"200", head
        left = n * MIB - len(head.partition(b"\r\n\r\n")[2])
        while left > 0:
            got = c.socket.recv_into(buffer)
            assert got > 0
            left -= got
        tell(phase, n, self.pid, before, start)

    def pages(self, phase, n, size):
        self.one(self.request("PUT", "disk", x_ms_blob_type="PageBlob", x_ms_blob_content_length=DISK), 201)
        chosen, body = random.Random(19), bytes([1]) * size
        places = [chosen.randrange(DISK // len(body)) * len(body) for _ in range(n)]
        self.many(phase, (self.request("PUT", "disk", "comp=page&", body, x_ms_page_write="update",
                                       x_ms_range=f"bytes={at}-{at + len(body) - 1}")
                          for at in places), 201)

    def ranges(self, phase, n):
        self.many(phase, itertools.repeat(self.request("GET", "disk", "comp=pagelist&"), n), 200)

    def segments(self, phase, n):
        before, start = cpu_ticks(self.pid), time.monotonic()
        marker = ""
        for _ in range(n):
            answer = self.one(self.request(
                "GET", "disk", f"comp=pagelist&maxresults=10000&{marker}"), 200)
            following = NEXT.search(answer)
            marker = f"marker={quote(following[1])}&" if following else ""
        tell(phase, n, self.pid, before, start)

    def windows(self, phase, n):
        starts = [i * 10 * GIB % DISK for i in range(n)]
        self.many(phase, (self.request("GET", "disk", "comp=pagelist&",
                                       x_ms_range=f"bytes={at}-{at + 10 * GIB - 1}") for at in starts), 200)

    def fill(self, phase, n):
        self.many(phase, (self.request("PUT", f"list/{i:06}", x_ms_blob_type="BlockBlob")
                          for i in range(n)), 201)

    def list(self, phase, n):
        before, start = cpu_ticks(self.pid), time.monotonic()
        names, marker = 0, ""
        while marker is not None:
            query = f"restype=container&comp=list&prefix=list/&{marker}"
            answer = self.one(self.request("GET", "", query), 200)
            names += answer.count(b"<Name>")
            following = NEXT.search(answer)
            marker = f"marker={quote(following[1])}&" if following else None
        assert names == n, names
        tell(phase, n, self.pid, before, start)


def main():
    load = Load(*sys.argv[1:7])
    phases = {"put4k": lambda p, n: load.put(p, n, 4 * KIB), "get4k": lambda p, n: load.get(p, n, 4 * KIB),
              "put1m": lambda p, n: load.put(p, n, MIB), "get1m": lambda p, n: load.get(p, n, MIB),
              "putbig": load.put_big, "getbig": load.get_big, "pages": lambda p, n: load.pages(p, n, 4 * KIB),
              "sectors": lambda p, n: load.pages(p, n, 512), "segments": load.segments, "ranges": load.ranges,
              "windows": load.windows, "fill": load.fill, "list": load.list}
    for word in sys.argv[7:]:
        phase, _, n = word.partition("=")
        phases[phase](phase, int(n))


if __name__ == "__main__":
    main()
