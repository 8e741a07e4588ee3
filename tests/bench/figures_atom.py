# SPDX-License-Identifier: MIT
"""Pages of 1,000 rows of several shapes in ATOM and in JSON: the server's CPU time for each.

All formats are asked for in turns over one kept connection; what is counted is the time that
the server's threads had the CPU, so that the client (http.client) and others cost nothing.
"""

import base64
import contextlib
import hashlib
import hmac
import http.client
import os
import random
from email.utils import formatdate

from bench import Failure
from figures_rest import ACCOUNT, KEY, free_port, wait_for

GROUP = "atom"
ROWS = 1000
TEXT = "The quick brown fox jumps over the lazy dog. " * 25
ESCAPED = ("&", "<", ">", '\\"', "\\\\", "\\n")


def bench_like(i, any_):
    v = any_.randrange(1 << 30)
    return f'"Title":"An entry with the number {i:010d}","Author":"author-{v % 100000:05d}",' \
        f'"Rating":{10 + v % 90},"Score":{100 + v % 900}.25,"Active":true,' \
        f'"Visits@odata.type":"Edm.Int64","Visits":"9{v % 1000000000:09d}",' \
        f'"Place":"{v % 10000:04d} Long Street, Somewhere","Tag":"tag-{v % 100:02d}",' \
        f'"Note":"n-{v:010d}","Language":"en-GB"'


def some_lack(_, any_):
    return ",".join(f'"N{j}":{any_.randrange(100000)}' for j in range(50) if any_.random() < 0.9)


def escaped(_, any_):
    def char():
        return any_.choice(ESCAPED if any_.random() < 0.4 else "abcdefghijklmnop ")
    return ",".join(f'"Text{j}":"{"".join(char() for _ in range(500))}"' for j in range(3))


# What it is called, and the properties of row i.
SHAPES = {
    "texts": ("3 strings of 1,000 characters", lambda i, _: ",".join(
        f'"Text{j}":"{TEXT[j + i % 40:][:1000]}"' for j in range(3))),
    "none": ("no properties but the keys", lambda i, _: ""),
    "int64": ("50 Int64", lambda _, any_: ",".join(
        f'"N{j}@odata.type":"Edm.Int64","N{j}":"{any_.randrange(1 << 62)}"' for j in range(50))),
    "bench": ("12 properties", bench_like),
    "few": ("10 Int32", lambda _, any_: ",".join(
        f'"N{j}":{any_.randrange(1000)}' for j in range(10))),
    "strings": ("50 short strings", lambda _, any_: ",".join(
        f'"N{j}":"value {any_.randrange(100000)}"' for j in range(50))),
    "int32": ("50 Int32", lambda _, any_: ",".join(
        f'"N{j}":{any_.randrange(100000)}' for j in range(50))),
    "lack": ("50 Int32, a tenth missing", some_lack),
    "escaped": ("strings of which two of five characters are escaped", escaped),
}
FORMATS = {
    "atom": {"x-ms-version": "2015-07-08", "Accept": "application/atom+xml",
             "DataServiceVersion": "1.0;NetFx", "MaxDataServiceVersion": "2.0;NetFx"},
    "json": {"x-ms-version": "2019-02-02", "Accept": "application/json;odata=minimalmetadata"},
    "full": {"x-ms-version": "2019-02-02", "Accept": "application/json;odata=fullmetadata"},
}


def write_rows(path, properties):
    any_ = random.Random(1)
    with open(path, "w", encoding="utf-8") as f:
        for i in range(ROWS):
            more = properties(i, any_)
            f.write(f'{{"PartitionKey":"part-0000","RowKey":"row-{i:010d}"'
                    f'{"," if more else ""}{more}}}\n')


def on_cpu(pid):
    """Nanoseconds that its threads ran."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


class Pages:
    def __init__(self, pid, port):
        self.pid, self.bytes = pid, {}
        self.client = http.client.HTTPConnection("127.0.0.1", port)

    def get(self, table, form):
        path, date = f"/{ACCOUNT}/{table}()", formatdate(usegmt=True)
        signed = hmac.new(base64.b64decode(KEY), f"{date}\n/{ACCOUNT}{path}".encode(),
                          hashlib.sha256).digest()
        self.client.request("GET", path, headers={
            **FORMATS[form], "x-ms-date": date,
            "Authorization": f"SharedKeyLite {ACCOUNT}:{base64.b64encode(signed).decode()}"})
        answer = self.client.getresponse()
        body = answer.read()
        found = body.count(b"<d:RowKey>" if form == "atom" else b'"RowKey"')
        if answer.status != 200 or found != ROWS:
            raise Failure(f"{table} in {form}: {answer.status}, {found} rows")
        self.bytes[form] = len(body)

    def cost(self, table, form, n):
        """Microseconds of the server's CPU a page."""
        before = on_cpu(self.pid)
        for _ in range(n):
            self.get(table, form)
        return (on_cpu(self.pid) - before) / n / 1000


@contextlib.contextmanager
def pages(b):
    store = b.tmp(tmpfs=False) / "store.db"
    for args in (["init", store], ["account", "add", store, ACCOUNT, "--key", KEY]):
        b.run([b.rowfs, *args])
    for table, (_, properties) in SHAPES.items():
        text = b.tmp() / "rows.ndjson"
        write_rows(text, properties)
        b.run([b.rowfs, "import", store, f"{ACCOUNT}/{table}", text])
    port = free_port()
    with b.server([b.rowfs, "serve", store, f"--rest=127.0.0.1:{port}"]) as proc:
        wait_for(proc, port)
        yield Pages(proc.pid, port)


def measure(b):
    n, rounds = b.pick(10, 20), b.pick(5, 15)
    with pages(b) as p:
        for table, (name, _) in SHAPES.items():
            forms, found = list(FORMATS), []
            for i in range(rounds):
                turn = forms if i % 2 == 0 else forms[::-1]
                found.append({f: b.sample(lambda f=f: p.cost(table, f, n)) for f in turn})
            pair = b.pair([(x["atom"], x["json"]) for x in found])
            full = b.pair([(x["atom"], x["full"]) for x in found])
            note = f"{p.bytes['atom'] / p.bytes['json']:.1f} times the bytes; " \
                f"{full.ratio:.2f} of full metadata"
            yield pair.result(f"ATOM, CPU of a page: {name}", "us", "in JSON", ("<=", 3), note)
