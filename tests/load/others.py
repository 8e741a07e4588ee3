# SPDX-License-Identifier: MIT
"""Workers beside those of the ledger: keys that are changed, connections that are cut, an umount
that is refused.  They get on with a daemon that comes and goes."""

import contextlib
import json
import os
import re
import subprocess
import time

from conftest import ENV
from ledger import ROWS, TABLE, TROUBLE
from rest_client import entity_path
from soak import must

ROTATED = "rotated"


def command(w, *argv):
    """A command that goes through the serving process, or opens the store itself."""
    w.done()
    return subprocess.run([str(w.soak.rowfs.program), *map(str, argv)], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, env=ENV)


def status(w, key):
    client = w.client.clone(account=ROTATED, key=key, port=w.soak.faults.port.value)
    with client:
        return client.tables().status


def rotator(w):
    """Once a key was replaced it opens nothing any more, and the new one does."""
    faults, old, start = w.soak.faults, None, time.monotonic()
    while w.go():
        if faults.active.value:
            time.sleep(0.02)
            continue
        asked = time.monotonic()
        done = command(w, "account", "regenerate", w.soak.mount.store, ROTATED)
        key = re.search(r"^key1\s+(\S+)", done.stdout, re.M)
        must("Z1", key or faults.touched(asked), "account regenerate:", done.stderr)
        if not key:
            old = None
            continue
        try:
            seen = status(w, key[1]), status(w, old) if old else 403
            must("Z5", seen == (200, 403) or faults.touched(start), "a new key, the old one:", seen)
        except TROUBLE as e:
            must("Z1", faults.touched(asked), "with a new key:", repr(e))
        old, start = key[1], time.monotonic()
        time.sleep(w.rng.random() / 5)


def cutter(w):
    """Connections that are cut within a request, or before its answer was read."""
    requests = [("GET", f"{TABLE}()", None), ("PUT", entity_path(TABLE, "cut", w.name), {"V": 1}),
                ("GET", f"{TABLE}()?$top=3", None)]
    while w.go():
        w.client.port = w.soak.faults.port.value
        method, path, row = w.rng.choice(requests)
        body = row and json.dumps(row).encode()
        target = w.client.target(path)
        head = w.client.headers_for(method, target, body, {}, "")
        text = "\r\n".join([f"{method} {target} HTTP/1.1",
                            *(f"{k}: {v}" for k, v in head.items()), "", ""]).encode()
        text += body or b""
        with contextlib.suppress(*TROUBLE), w.client.connect() as s:
            s.sendall(text[:w.rng.randint(1, len(text))])
            time.sleep(w.rng.choice((0, 0, 0.01)))


def leaver(w):
    """umount is refused while somebody is there, and nobody notices."""
    path = w.soak.mnt / w.client.account / TABLE
    while w.go():
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            w.done()
            done = subprocess.run(["umount", str(w.soak.mnt)], capture_output=True, text=True)
            must("Z1", done.returncode != 0 and "busy" in done.stderr, "umount:", done)
            must("Z1", os.listdir(fd) is not None, "a listing")
        finally:
            os.close(fd)
        time.sleep(0.2)


def trasher(w):
    """Removes more than the trash holds; what was removed last can be brought back."""
    at, trash = w.soak.mnt / w.client.account / TABLE / w.name, w.soak.mnt / ".rowfs/trash"
    at.mkdir()
    n = 0
    while w.go():
        n += 1
        text = json.dumps({"V": n, "Pad": "x" * w.rng.choice((10, 1000, 30000)), "W": n}).encode()
        path = at / f"{ROWS[n % len(ROWS)]}.json"
        path.write_bytes(text)
        os.unlink(path)
        if w.rng.random() < 0.02:
            kept = [p for p in trash.iterdir() if p.name.endswith(path.name)]
            found = [p for p in kept if content(p) == text]
            must("Z9", found, "not in the trash:", path.name, n)
            os.rename(found[0], path)
            must("Z9", path.read_bytes() == text, "brought back from the trash")


def content(path):
    """None: it has just gone."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
