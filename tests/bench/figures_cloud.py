# SPDX-License-Identifier: MIT
"""The mount of an account elsewhere, beside a script with the SDK that reads the same.

The service is rowfs behind a proxy that delays each request.  Every reading is of a fresh mount, and a fresh
process of node.  Rows have about 100 bytes.
"""

import contextlib
import json
import os
import sys

from bench import HERE, Failure
from figures_rest import ACCOUNT, KEY, free_port, rowfs, wait_for

GROUP = "cloud"
SCRIPT = HERE.parent / "sdk" / "data-tables" / "bench_read.mjs"
PROXY = HERE.parent / "system" / "cloud" / "fault_proxy.py"
PARTITIONS = 500
GETS = 200
MATCHES = 100


@contextlib.contextmanager
def delayed(b, server, ms):
    """The connection string of the service behind a proxy."""
    port = free_port()
    with b.server([sys.executable, PROXY, port, server.port, ms], cpu=b.other_cpu) as proc:
        wait_for(proc, port)
        yield (f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
               f"TableEndpoint=http://127.0.0.1:{port}/{ACCOUNT}")


def by_files(b, connection, command, rows):
    """Seconds that a shell command takes in a fresh mount."""
    secret, os.environ["XDG_CACHE_HOME"] = b.tmp() / "connection", str(b.tmp())
    secret.write_text(connection)
    secret.chmod(0o600)
    url = connection.split("TableEndpoint=")[1]
    with b.mount_rowfs(url, options=(f"connection-string={secret}", "cache=3600")) as mount:
        ran = b.run(command, cwd=mount.path / ACCOUNT / "Posts", cpu=None)
    if int(ran.out) != rows:
        raise Failure(f"{command}: {ran.out}")
    return ran.wall


def by_sdk(b, connection, rows, *what):
    ran = b.run(["node", SCRIPT, *what], cpu=None, env={**os.environ, "AZURE_STORAGE_CONNECTION_STRING": connection})
    if int(ran.out) != rows:
        raise Failure(f"{what}: {ran.out}")
    return ran.wall


def measure(b):
    rows, rounds = b.pick(5000, 20000), b.pick(1, 3)
    if not (SCRIPT.parents[1] / "node_modules").is_dir():
        raise Failure("needs npm ci --prefix tests/sdk")
    with rowfs(b) as server:
        connection = f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://127.0.0.1:{server.port}/{ACCOUNT}"
        secret, text = b.tmp() / "connection", b.tmp() / "rows"
        secret.write_text(connection)
        secret.chmod(0o600)
        text.write_text("".join(json.dumps({
            "PartitionKey": f"p{i // (rows // PARTITIONS):04}", "RowKey": f"{i % (rows // PARTITIONS):04}",
            "Text": "x" * 60, "N": i}) + "\n" for i in range(rows)))
        b.run([b.rowfs, "import", connection.split("TableEndpoint=")[1], f"{ACCOUNT}/Posts", text,
               f"--connection-string={secret}"])
        for ms in (0, 5, 50):
            with delayed(b, server, ms) as near:
                for name, command, n, what, target in (
                        ("stream of all rows", "wc -l < .rows.ndjson", rows, ("list",), ("<=", 1.2)),
                        ("grep -r of all rows", "grep -r Text . | wc -l", rows, ("list",), None),
                        (f"query that {MATCHES} rows match", f"wc -l < '.query/N lt {MATCHES}.ndjson'", MATCHES,
                         ("list", f"N lt {MATCHES}"), ("<=", 1.2)),
                        (f"{GETS} rows by their keys, 16 at once", f"seq -f '%04.0f' 0 {GETS - 1} | "
                         "xargs -P 16 -I% cat p%/0000.json | wc -l", GETS, ("get", GETS), ("<=", 1.0))):
                    b.progress(f"cloud: {name}, {ms} ms")
                    pair = b.alternate(lambda c=command, n=n: by_files(b, near, c, n),
                                       lambda w=what, n=n: by_sdk(b, near, n, *w), rounds)
                    yield pair.result(f"{name}, {ms} ms away", "s", "SDK for JavaScript", target,
                                      "the script asks one after another" if what[0] == "get" else "")
