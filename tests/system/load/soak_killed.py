# SPDX-License-Identifier: MIT
"""Workers of the soak who leave in the middle: programs that are killed, clients that hang up;
and the commands that ask the serving process.  What they held is let go; Z7 looks at the end
whether all of it was."""

import json
import re
import time

from rest_client import entity_path
from soak import Group, must

NONE_YET = re.compile("No such attribute")
# Each works for longer than it may live, or waits for what it never gets.
ENDLESS = (
    "while :; do cat {edit}/*.json > /dev/null; done",
    "exec 3> {own}; printf '{{\"V\":1' >&3; sleep 60",
    "exec 3<> {own}; printf '{{\"V\":1,\"W\":1}}' >&3; sleep 60",
    "while :; do printf '{{\"V\":1,\"W\":1}}' > {own}; done",
    "while :; do cp {edit}/e0.json {own}; mv {own} {own}.away; mv {own}.away {own}; done",
    "exec 3< {own}; flock 3; sleep 60",
    "while :; do flock {own} true; done",
    "while :; do cat {table}/.rows.ndjson {table}/.rows.csv > /dev/null; done",
    "cat {table}/.rows.ndjson | sleep 60",
    "while :; do find '{table}/.query/V ge 1' -name '*.json' | xargs cat > /dev/null; done",
    "exec 3> {edit}/.batch; printf '[{{\"upsert\":{{\"RowKey\":' >&3; sleep 60",
    "exec 3> {table}/.rows.ndjson; printf '{{\"PartitionKey\":\"edit\"' >&3; sleep 60",
    "while :; do ls -lR {table} > /dev/null; done",
    "while :; do dd if=/dev/zero of={own}.big bs=64k count=40 conv=fsync 2> /dev/null; done",
    "tail -f {own}",
    "inotifywait -qm {edit}")


def killed(w):
    """Programs that end by SIGKILL, whatever they were doing."""
    table = w.at / "Soak"
    own = table / "killed" / f"{w.name}.json"
    while w.go():
        own.write_text('{"V":1,"W":1}')
        script = w.rng.choice(ENDLESS).format(table=table, edit=table / "edit", own=own)
        group = Group(script)
        end = time.monotonic() + w.rng.choice((0.005, 0.05, 0.3))
        while time.monotonic() < end and group.running():
            w.done()
            time.sleep(0.005)
        group.kill()
        w.done()
        # The lock is free, and the row is a whole one.
        w.tool("flock", own, "true")
        row = json.loads(own.read_bytes() or b'{"V":0,"W":0}')
        must("Z2", row["V"] == row["W"], "half a row of a writer that was killed:", row)


def hangs_up(w):
    """Clients that go away in the middle of a request or do not wait for the answer."""
    requests = [("GET", "Soak()", None), ("GET", "Side()?$top=1000", None),
                ("PUT", entity_path("Hot", "gone", w.name), {"V": 1}),
                ("DELETE", entity_path("Hot", "gone", w.name), None)]
    while w.go():
        method, path, row = w.rng.choice(requests)
        body = None if row is None else json.dumps(row).encode()
        target = w.client.target(path)
        head = w.client.headers_for(method, target, body, {"If-Match": "*"}, "")
        lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in head.items()), "", ""]
        data = "\r\n".join(lines).encode() + (body or b"")
        whole = w.rng.random() < 0.7
        with w.client.connect() as s:
            s.sendall(data if whole else data[:w.rng.randrange(len(data))])
            if whole and w.rng.random() < 0.5:
                s.recv(w.rng.choice((1, 100)))


def commander(w):
    """Commands that go through the serving process: each is answered."""
    program, store = w.soak.rowfs.program, w.soak.mount.store
    while w.go():
        pick = w.rng.choice(["stat", "check", "list", "keys"])
        if pick in ("stat", "check"):
            w.tool(program, pick, store)
        elif pick == "list":
            must("Z1", w.client.account in w.tool(program, "account", "list", store).stdout, pick)
        else:
            w.tool(program, "account", "keys", store, w.client.account)
        w.tool("df", w.mnt)
        w.tool("getfattr", "-n", "user.rowfs.error", w.at / "Soak" / "edit", may=NONE_YET)
