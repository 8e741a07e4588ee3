# SPDX-License-Identifier: MIT
"""What the tests of streams share: many rows, awkward rows, the daemon's memory and work."""

import json
import signal
import subprocess
import sys
import time

import pytest

from rest_client import ACCOUNT, ok

# Every type, and strings and keys that some format could trip over.
VALUES = {
    "String": "Hi", "Empty": "", "Quotes": 'a "b" \'c\'', "Comma": "a,b", "Lines": "a\nb\r\nc",
    "Blank": " a ", "Wide": "\U0001F600 \u00fc \ufffd", "Control": "\x01\t", "Null": "null",
    "Bool": True, "Int32": -5, "Double": 1.5, "Whole": 3.0, "Tiny": 5e-324,
    "NaN@odata.type": "Edm.Double", "NaN": "NaN",
    "Int64@odata.type": "Edm.Int64", "Int64": "9007199254740993",
    "When@odata.type": "Edm.DateTime", "When": "1999-12-31T23:59:59.9999999Z",
    "Guid@odata.type": "Edm.Guid", "Guid": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "Bytes@odata.type": "Edm.Binary", "Bytes": "AAEC/w==", "No@odata.type": "Edm.Binary", "No": "",
}
KEYS = ["p", "", " ", "a b", "it's", "a&b", "a%b", "100%", "a+b", "a=b", "a,b", 'a"b', "-", "ü",
        "\U0001F600", "k" * 512]


def awkward_rows(client, table):
    """A row with every type, and one for each awkward key as either key."""
    ok(client.upsert(table, "p", "types", VALUES))
    for i, key in enumerate(KEYS):
        ok(client.upsert(table, key, "r", {"N": i}))
        ok(client.upsert(table, "p", key, {"N": i, f"Only{i}": key}))


def fill(rowfs, store, n, partition, account=ACCOUNT, table="Tab"):
    """n rows with n counted up, through `rowfs import`, streamed."""
    script = (f"for i in range({n}): print('{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"%07d\","
              "\"n\":%d,\"text\":\"some text of a row\"}' % (i, i))")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as source:
        done = subprocess.run([str(rowfs.program), "import", str(store), f"{account}/{table}"],
                              stdin=source.stdout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def plain(row):
    """A row without what only one of the front ends writes."""
    return {k: v for k, v in row.items()
            if not k.startswith("odata.") and k != "Timestamp@odata.type"}


def lines(text):
    """The rows of an NDJSON stream."""
    return [plain(json.loads(line)) for line in text.decode().split("\n")[:-1]]


def from_rest(rows):
    return [plain(r) for r in rows]


def status_kib(m, field):
    with open(f"/proc/{m.proc.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field + ":"))


def high_water_kib(m):
    return status_kib(m, "VmHWM")


def cpu_ticks(m):
    """What the daemon has worked so far."""
    with open(f"/proc/{m.proc.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def cpu_settles(m):
    """Waits until the daemon does nothing."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        before = cpu_ticks(m)
        time.sleep(0.2)
        if cpu_ticks(m) - before <= 1:
            return
    pytest.fail("the daemon goes on working")


def interrupted(m, command):
    """Starts a command whose read takes long, and ends it with SIGINT while the daemon works
    for it; it has written nothing."""
    for _ in range(20):
        before = cpu_ticks(m)
        with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE) as p:
            while cpu_ticks(m) - before < 3 and p.poll() is None:
                time.sleep(0.001)
            p.send_signal(signal.SIGINT)
            rc, written = p.wait(60), p.stdout.read()
        if rc == -signal.SIGINT:
            assert written == b""
            return
    pytest.fail("it always ended before it could be interrupted")
