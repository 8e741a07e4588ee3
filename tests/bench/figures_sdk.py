# SPDX-License-Identifier: MIT
"""Programs with the official SDK (@azure/data-tables), 8 calls at once, beside Azurite.

The client is one process of Node.js on the other CPU, as programs with the SDK are, so most of a
call is the SDK's own work.  The note has the server's CPU time for a call.
"""

import json
import os
import shutil

from bench import HERE, Failure
from figures_rest import ACCOUNT, KEY, azurite, rowfs

GROUP = "sdk"
SCRIPT = HERE.parent / "sdk" / "data-tables" / "bench_callers.mjs"
CALLERS = 8
# Queries first: what the others insert would be found, too.
OPERATIONS = (("partition", "query by partition, 100 rows"),
              ("property", "query by property, 10 of 10,000 rows"),
              ("get", "get"), ("upsert", "upsert"), ("insert", "insert"),
              ("batch", "batch of 100 inserts"))
DURABLE = ("upsert", "insert", "batch")


def sdk(b, server, operation, milliseconds=0):
    connection = (f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
                  f"TableEndpoint=http://127.0.0.1:{server.port}/{ACCOUNT}")
    env = {**os.environ, "AZURE_STORAGE_CONNECTION_STRING": connection}
    return b.run(["node", SCRIPT, operation, CALLERS, milliseconds], cpu=b.other_cpu, env=env).out


def calls(b, server, operation, cpu):
    before = b.cpu_seconds(server.pid)
    got = json.loads(sdk(b, server, operation, b.pick(2000, 4000)))
    cpu.append((b.cpu_seconds(server.pid) - before) / (got["calls"] + CALLERS) * 1e6)
    return got["calls"] / got["seconds"]


def measure(b):
    if shutil.which("node") is None or not (HERE.parent / "sdk" / "node_modules").is_dir():
        raise Failure("needs node and npm ci --prefix tests/sdk")
    with rowfs(b) as ours, azurite(b) as theirs:
        for server in (ours, theirs):
            sdk(b, server, "fill")
        for operation, name in OPERATIONS:
            b.progress(f"sdk: {name}")
            cpu = ([], [])
            pair = b.alternate(lambda: calls(b, ours, operation, cpu[0]),
                               lambda: calls(b, theirs, operation, cpu[1]), b.pick(3, 5))
            note = f"server's CPU {min(cpu[0]):.0f} and {min(cpu[1]):.0f} µs a call"
            if operation in DURABLE:
                note += "; rowfs durable, Azurite not"
            yield pair.result(f"SDK: {name}, {CALLERS} callers", "calls/s", "Azurite", None, note)
