# SPDX-License-Identifier: MIT
"""The REST socket: beside Azurite, beside bare libmicrohttpd, and as the table grows.

Every server is on one CPU, the generator (rest_load.c) on the other, over TCP with kept
connections and signed requests.  Rows have 12 properties in about 300 bytes, in 100 partitions.
Azurite keeps its tables in memory, which is its faster mode; nothing of it is durable, while
rowfs answers a change after fdatasync(2).
"""

import base64
import contextlib
import hashlib
import hmac
import http.client
import itertools
import json
import shutil
import socket
import subprocess
import time
from email.utils import formatdate

from bench import HERE, Failure, Result

GROUP = "rest"
ACCOUNT = "devstoreaccount1"
KEY = ("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
       "K1SZFPTOtr/KBHBeksoGMGw==")
AZURITE = HERE.parent / "azurite"
MIB = 1 << 20
WAITED_SHARE = 0.10


class Server:
    """A Table server that answers, and where rows are put that nobody has put before."""

    def __init__(self, b, proc, port, store=None, unix=None):
        self.b, self.pid, self.port, self.store = b, proc.pid, port, store
        self.tcp, self.unix = f"127.0.0.1:{port}", f"unix:{unix}"
        self.free = itertools.count(10)

    def load(self, kind, address=None, **options):
        """What rest_load measured; it ends with an error where an answer is wrong."""
        cmd = [self.b.tool("rest_load"), address or self.tcp, kind,
               *(f"{k}={v}" for k, v in options.items())]
        return json.loads(self.b.run(cmd, cpu=self.b.other_cpu).out)

    def fill(self, rows):
        self.load("table")
        self.load("fill", rows=rows)

    def rate(self, kind, rows, milliseconds, unit="requests_per_s", **options):
        """Taken again, a few times, where the generator had to wait for its CPU: it would be
        the one that was measured."""
        best = None
        for _ in range(self.b.pick(2, 4)):
            if kind in ("insert", "batch"):
                options["first"] = next(self.free) * 1000000
            got = self.load(kind, rows=rows, milliseconds=milliseconds, **options)
            if best is None or got["waited"] < best["waited"]:
                best = got
            if best["waited"] <= WAITED_SHARE:
                break
        return best[unit]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(proc, port):
    end = time.monotonic() + 60
    while time.monotonic() < end and proc.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise Failure("the server does not answer")


@contextlib.contextmanager
def rowfs(b, cpu=-1):
    store = b.tmp(tmpfs=False) / "store.db"
    for args in (["init", store], ["account", "add", store, ACCOUNT, "--key", KEY]):
        b.run([b.rowfs, *args])
    port, path = free_port(), store.parent / "rest"
    with b.server([b.rowfs, "serve", store, f"--rest=unix:{path}", f"--rest=127.0.0.1:{port}"],
                  cpu=cpu) as proc:
        wait_for(proc, port)
        yield Server(b, proc, port, store, unix=path)


def install_azurite(b):
    if (AZURITE / "node_modules" / "azurite").is_dir():
        return
    if shutil.which("npm") is None:
        raise Failure("no npm here, so no Azurite")
    b.progress("npm ci of Azurite")
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=AZURITE, check=False,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure(f"npm ci: {done.stderr.strip()[-500:]}")


@contextlib.contextmanager
def azurite(b, cpu=-1, service="table"):
    install_azurite(b)
    port = free_port()
    main = AZURITE / "node_modules" / "azurite" / "dist" / "src" / service / "main.js"
    with b.server(["node", main, "--silent", "--disableTelemetry", "--inMemoryPersistence",
                   f"--{service}Port", port], cpu=cpu) as proc:
        wait_for(proc, port)
        yield Server(b, proc, port)


def recorded_answer(b, server):
    """What rowfs answers to a point get of the first row, byte for byte, in a file."""
    path = f"/{ACCOUNT}/bench(PartitionKey='part-0000',RowKey='row-0000000000')"
    date = formatdate(usegmt=True)
    text = f"{date}\n/{ACCOUNT}{path}".encode()
    signature = hmac.new(base64.b64decode(KEY), text, hashlib.sha256).digest()
    c = http.client.HTTPConnection("127.0.0.1", server.port)
    c.request("GET", path, headers={
        "x-ms-date": date, "x-ms-version": "2019-02-02",
        "Accept": "application/json;odata=minimalmetadata",
        "Authorization": f"SharedKeyLite {ACCOUNT}:{base64.b64encode(signature).decode()}"})
    r = c.getresponse()
    body = r.read()
    if r.status != 200:
        raise Failure(f"rowfs answers {r.status}")
    head = f"HTTP/1.1 {r.status} {r.reason}\r\n" + "".join(
        f"{k}: {v}\r\n" for k, v in r.getheaders()) + "\r\n"
    c.close()
    path = b.tmp() / "answer"
    path.write_bytes(head.encode() + body)
    return path


@contextlib.contextmanager
def bare(b, ours):
    port = free_port()
    with b.server([b.tool("http_bare"), port, recorded_answer(b, ours)]) as proc:
        wait_for(proc, port)
        yield Server(b, proc, port)


def beside_bare(b, ours, rows):
    ms, rounds = b.pick(1000, 2000), b.pick(2, 5)
    with bare(b, ours) as floor:
        pair = b.alternate(lambda: ours.rate("get", rows, ms, requests=50000),
                           lambda: floor.rate("get", 1, ms, requests=50000), rounds)
        yield pair.result(f"REST point get, 32 connections, {rows:,} rows", "requests/s",
                          "bare libmicrohttpd", (">=", 0.5))


def over_unix(b, ours, rows):
    ms, rounds = b.pick(1000, 2000), b.pick(2, 5)
    for connections in (1, 32):
        options = {"requests": 20000, "connections": connections}
        pair = b.alternate(lambda o=options: ours.rate("get", rows, ms, address=ours.unix, **o),
                           lambda o=options: ours.rate("get", rows, ms, **o), rounds)
        yield pair.result(f"REST point get over a Unix socket, {connections} "
                          f"connection{'s' if connections > 1 else ''}, {rows:,} rows",
                          "requests/s", "over TCP")


# kind, what it is called, target, unit, options
KINDS = (
    ("get", "REST point get, 32 connections", 15, "requests_per_s", {"requests": 50000}),
    ("insert", "REST insert, 32 connections", 5, "requests_per_s", {"requests": 80000}),
    ("upsert", "REST upsert, 32 connections", 12, "requests_per_s", {"requests": 80000}),
    ("batch", "REST batch of 100, 32 connections", 12, "rows_per_s", {"requests": 2000}),
    ("query", "REST query, pages of 1000", 12, "rows_per_s", {"connections": 1}),
    ("get", "REST point get, 1 connection", None, "requests_per_s",
     {"requests": 20000, "connections": 1}),
    ("insert", "REST insert, 1 connection", None, "requests_per_s",
     {"requests": 20000, "connections": 1}),
)


def beside_azurite(b, ours, rows):
    ms, rounds = b.pick(1000, 2000), b.pick(1, 3)
    with azurite(b) as theirs:
        b.progress(f"Azurite takes {rows} rows")
        theirs.fill(rows)
        kinds = [k for k in KINDS if k[2] is not None or not b.quick]
        # Queries first: they must find what was put there, and no more.
        for kind, name, target, unit, options in sorted(kinds, key=lambda k: k[0] != "query"):
            b.progress(f"rest: {name}")
            pair = b.alternate(
                lambda: ours.rate(kind, rows, ms, unit, **options),
                lambda: theirs.rate(kind, rows, ms, unit, **options), rounds)
            durable = kind in ("insert", "upsert", "batch")
            yield pair.result(f"{name}, {rows:,} rows", unit.replace("_per_", "/"), "Azurite",
                              (">=", target) if target else None,
                              "rowfs durable, Azurite not" if durable else "")


def memory(b):
    """Not pinned: to fill Azurite takes long, and the CPU does not matter here."""
    rows = b.pick(20000, 300000)
    with rowfs(b, cpu=None) as ours:
        ours.fill(rows)
        mine = b.rss(ours.pid) / MIB
    b.progress(f"Azurite takes {rows} rows")
    with azurite(b, cpu=None) as theirs:
        theirs.fill(rows)
        other = b.rss(theirs.pid) / MIB
    return Result(f"memory with {rows:,} rows loaded over REST", mine, other, "MiB", "Azurite",
                  mine / other, b.pick(None, ("<=", 0.2)),
                  b.pick("what both need without rows counts much here", ""))


def atom(b, ours, rows):
    """A page in the format of old clients, in bytes about four times the other."""
    ms, rounds = b.pick(1000, 2000), b.pick(2, 5)

    def cost(kind):
        return 1e6 / ours.rate(kind, rows, ms, connections=1)

    pair = b.alternate(lambda: cost("query-atom"), lambda: cost("query"), rounds)
    yield pair.result("REST: a page (1000) in ATOM", "us", "in JSON", ("<=", 3))


def growth(b):
    """The same requests of small and large tables."""
    ms, rounds = b.pick(1000, 2000), b.pick(2, 5)
    sizes = b.pick((10000, 100000), (10000, 100000, 1000000))
    with contextlib.ExitStack() as stack:
        servers = []
        for rows in sizes:
            b.progress(f"rest: a table of {rows} rows")
            servers.append((rows, stack.enter_context(rowfs(b))))
            servers[-1][1].fill(rows)
        (few, small), (many, large) = servers[0], servers[-1]

        def cost(server, rows, kind, **options):
            return 1e6 / server.rate(kind, rows, ms, **options)

        for kind, name, target, options in (
                ("query", "REST: a page (1000)", ("<=", 1.1), {"connections": 1}),
                ("get", "REST: a point get", None, {"requests": 50000}),
                ("insert", "REST: an insert", None, {"requests": 80000})):
            pair = b.alternate(lambda: cost(large, many, kind, **options),
                               lambda: cost(small, few, kind, **options), rounds)
            note = "".join(f"{rows:,} rows: {cost(s, rows, kind, **options):.1f} us "
                           for rows, s in servers[1:-1]).strip()
            yield pair.result(f"{name} at {many:,} rows", "us", f"at {few:,} rows", target, note)


def measure(b):
    rows = b.pick(20000, 100000)
    with rowfs(b) as ours:
        ours.fill(rows)
        yield from beside_bare(b, ours, rows)
        yield from over_unix(b, ours, rows)
        yield from atom(b, ours, rows)
        yield from beside_azurite(b, ours, rows)
    yield memory(b)
    yield from growth(b)
