# SPDX-License-Identifier: MIT
"""Workers of the soak that all work in one partition, which is removed and made again and
again: editors, rsync, tar, REST, renames, `rm -r`.  What one of them is refused must be
somebody else's doing; what is read is whole."""

import errno
import json
import os
import re

from rest_client import entity_path, ok
from soak import GONE, PASSING, must, once_more, whole
from test_exact import (
    document, read_to_end, write_again, write_aside, write_in_place, write_truncating)

MIXED = "Soak", "mixed"
MIXED_ROWS = [f"r{i}" for i in range(12)]


def mixed_files(w):
    """Any way of writing, renaming, removing; refused only because of somebody else."""
    at = w.at / MIXED[0] / MIXED[1]
    ways = [write_truncating, write_in_place, write_aside, write_again]
    while w.go():
        a, b = (str(at / f"{rk}.json") for rk in w.rng.sample(MIXED_ROWS, 2))
        pick = w.rng.randrange(8)
        if pick < 4:
            try:
                ways[pick](a, document(w.rng.randrange(1 << 30), w.rng))
            except OSError as e:
                must("Z1", e.errno in PASSING, ways[pick].__name__, e)
        elif pick == 4:  # a name that waits for its document has none to bring
            once_more(lambda: os.rename(a, b), *PASSING, errno.EBADMSG)
        elif pick == 5:
            once_more(lambda: os.rename(a, f"{a}~{w.name}"), *PASSING)
            once_more(lambda: os.rename(f"{a}~{w.name}", b), *PASSING, errno.EBADMSG)
        elif pick == 6:
            once_more(lambda: os.unlink(a), *PASSING)
        else:
            once_more(lambda: os.chmod(a, w.rng.choice([0o600, 0o644])), *PASSING)
            once_more(lambda: os.utime(a), *PASSING)


def mixed_tools(w):
    at = w.at / MIXED[0] / MIXED[1]
    w.tool(f"mkdir {w.tmp}/in")
    while w.go():
        a, b = w.rng.sample(MIXED_ROWS, 2)
        for rk in a, b:
            (w.tmp / "in" / f"{rk}.json").write_bytes(document(w.rng.randrange(1 << 30), w.rng))
        w.tool(w.rng.choice([
            f"sed -i 's/x/y/' {at}/{a}.json", f"cp {w.tmp}/in/{a}.json {at}/{a}.json",
            f"rsync -a {w.tmp}/in/ {at}/", f"rsync -a --delete {w.tmp}/in/ {at}/",
            f"tar -C {w.tmp}/in -c . | tar -C {at} -x", f"mv {at}/{a}.json {at}/{b}.json",
            f"install -m 600 {w.tmp}/in/{a}.json {at}/{a}.json"]), may=TOOLS_MAY)
        for rk in a, b:
            os.unlink(w.tmp / "in" / f"{rk}.json")


# Also a summary line after such a complaint; and mv of a name that waits for its document.
# Where the target is there at mv's first look and gone at its second, mv (coreutils 9.1) goes on
# with what it has not read, and may take it for a directory.
TOOLS_MAY = re.compile(
    GONE.pattern + "|cannot overwrite directory .* with non-directory|Exiting with failure status|Error is not recoverable|Bad message|"
    "rsync error|failed verification -- update (discarded|put into)|"
    "IO error encountered -- skipping file deletion|not a regular file|Child returned status")


# rm looks first: if that finds nothing it takes the name for a file's, and by then the directory
# may have been moved back or made anew.  So on every file system.
REMOVER_MAY = re.compile(TOOLS_MAY.pattern + "|Is a directory")


def mixed_remover(w):
    """Removes it, or moves it away and back, and makes it again."""
    at = w.at / MIXED[0] / MIXED[1]
    away = at.with_name(f"{MIXED[1]}-{w.name}")
    while w.go():
        if w.rng.random() < 0.4:
            once_more(lambda: os.rename(at, away), *PASSING)
            once_more(lambda: os.rename(away, at), *PASSING)  # it may have been made anew
            w.tool(f"rm -rf {away}", may=REMOVER_MAY)
        else:
            how = w.rng.choice([f"rm -r {at}", f"rm -rf {at}", f"find {at} -delete"])
            w.tool(how, may=REMOVER_MAY)
        w.tool(f"mkdir -p {at}", may=TOOLS_MAY)
        for _ in range(40):  # the others shall get something done
            w.done()
            once_more(lambda: os.listdir(at), *PASSING)


def mixed_rest(w):
    while w.go():
        a, b = w.rng.sample(MIXED_ROWS, 2)
        row = json.loads(document(w.rng.randrange(1 << 30), w.rng))
        pick = w.rng.randrange(6)
        if pick == 0:
            ok(w.client.upsert(*MIXED, a, row), 204)
        elif pick == 1:
            done = w.client.insert(MIXED[0], {"PartitionKey": MIXED[1], "RowKey": a, **row})
            must("Z1", done.status in (201, 409), done)
        elif pick == 2:
            done = w.client.delete(*MIXED, a)
            must("Z1", done.status in (204, 404), done)
        elif pick == 3:
            ok(w.client.batch([("PUT", entity_path(*MIXED, rk), {}, row) for rk in (a, b)]), 202)
        elif pick == 4:
            found = w.client.get(*MIXED, a)
            if found.status == 200:
                done = w.client.replace(*MIXED, a, row, if_match=found.etag)
                must("Z1", done.status in (204, 404, 412), done)
        else:
            for r in w.client.all(MIXED[0], filter=f"PartitionKey eq '{MIXED[1]}'"):
                must("Z2", r["V"] == r["W"], "REST shows half a document", r["RowKey"])


def mixed_reader(w):
    at = w.at / MIXED[0] / MIXED[1]
    while w.go():
        names = once_more(lambda: os.listdir(at), *PASSING) or []
        for name in names:
            text = once_more(lambda n=name: read_to_end(at / n), *PASSING)
            if text and name.endswith(".json") and not name.startswith("."):
                whole(text, f"mixed/{name}")
