#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Load on any server of the Queue protocol, over kept connections: one process, one request under way
on each.  An account SAS stands in the URL, so that a request is not signed and the generator costs
little.  Every answer's status is checked.

    queue_http.py PORT ACCOUNT QUEUE SAS PID MESSAGES CONNECTIONS

Prints a line for each phase: its name, requests a second, CPU seconds of PID for 1,000 of them."""

import itertools
import os
import re
import selectors
import socket
import sys
import time

TEXT = "x" * 100
BODY = f"<QueueMessage><MessageText>{TEXT}</MessageText></QueueMessage>"
TAKEN = re.compile(rb"<MessageId>([^<]+)</MessageId>.*<PopReceipt>([^<]+)</PopReceipt>")


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got, self.head = bytearray(), None

    def answer(self):
        """The answer, once all of it has come."""
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionResetError("the server closed the connection")
        self.got += piece
        if self.head is None:
            end = self.got.find(b"\r\n\r\n")
            if end < 0:
                return None
            self.head = bytes(self.got[:end])
            del self.got[:end + 4]
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", self.head)
        chunked = length is None and b"chunked" in self.head.lower()
        if len(self.got) < (int(length[1]) if length else 0) or chunked and not self.got.endswith(b"0\r\n\r\n"):
            return None
        status, body = int(self.head[9:12]), bytes(self.got)
        self.got, self.head = bytearray(), None
        return status, body


def run(name, connections, requests, status, pid, keep=None):
    count = 0
    before, start = cpu_ticks(pid), time.monotonic()
    with selectors.DefaultSelector() as poll:
        for c in connections:
            request = next(requests, None)
            if request is not None:
                c.socket.sendall(request)
                poll.register(c.socket, selectors.EVENT_READ, c)
        while poll.get_map():
            for key, _ in poll.select():
                answer = key.data.answer()
                if answer is None:
                    continue
                assert answer[0] == status, answer
                count += 1
                if keep is not None:
                    keep.append(TAKEN.search(answer[1]).groups())
                request = next(requests, None)
                if request is None:
                    poll.unregister(key.data.socket)
                else:
                    key.data.socket.sendall(request)
    tell(name, count, pid, before, start)


def tell(name, count, pid, before, start):
    """Prints the line of a phase that began at `start`, when the server had used so many ticks."""
    wall, ticks = time.monotonic() - start, cpu_ticks(pid) - before
    print(name, count / wall, ticks / os.sysconf("SC_CLK_TCK") / count * 1000)


def main():
    port, account, queue, sas, pid, messages, many = sys.argv[1:]
    port, pid, messages = int(port), int(pid), int(messages)
    connections = [Connection(port) for _ in range(int(many))]
    at = f"/{account}/{queue}/messages"

    def request(method, path, query="", body=""):
        length = f"Content-Length: {len(body)}\r\n" if body or method == "POST" else ""
        return (f"{method} {path}?{query}{sas} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                f"x-ms-version: 2019-02-02\r\nContent-Type: application/xml\r\n{length}\r\n"
                f"{body}").encode()

    def times(text):
        return itertools.repeat(text, messages)

    made = connections[0]
    made.socket.sendall(
        request("PUT", f"/{account}/{queue}").replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n"))
    while (answer := made.answer()) is None:
        pass
    assert answer[0] == 201, answer
    taken = []
    run("put", connections, times(request("POST", at, "", BODY)), 201, pid)
    run("peek", connections, times(request("GET", at, "peekonly=true&")), 200, pid)
    run("take", connections, times(request("GET", at, "visibilitytimeout=3600&")), 200, pid, taken)
    run("delete", connections, iter(
        [request("DELETE", f"{at}/{i.decode()}", f"popreceipt={quoted(r)}&") for i, r in taken]),
        204, pid)


def quoted(receipt):
    return receipt.decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")


if __name__ == "__main__":
    main()
