# SPDX-License-Identifier: MIT
"""Workers of the soak at directories: partitions and tables that are renamed, made and
removed, listings while names come and go."""

import errno
import json
import os

from rest_client import entity_path, ok
from soak import PASSING, must, once_more, row_path, whole
from test_exact import document, read_to_end
from tools import put


def fill_place(client, place):
    for i in range(10):
        ok(client.upsert("Side", f"{place}0", f"r{i}", {"V": 0, "W": 0}), 204)


def mover(w, place):
    """A partition with ten rows that is renamed there and back; a handle that is open
    meanwhile follows.  place: of the pair of names."""
    names = [w.at / "Side" / f"{place}{i}" for i in range(2)]
    n = 0
    while w.go():
        n += 1
        was, now = names[(n - 1) % 2], names[n % 2]
        doc, rk = document(n, w.rng), f"r{w.rng.randrange(10)}.json"
        fd = os.open(was / rk, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(fd, doc[:5])
            os.rename(was, now)
            os.write(fd, doc[5:])
        finally:
            os.close(fd)
        must("Z5", once_more(lambda: os.stat(was), errno.ENOENT) is None, was, "still there")
        must("Z5", sorted(os.listdir(now)) == [f"r{i}.json" for i in range(10)], os.listdir(now))
        must("Z5", read_to_end(now / rk) == doc, "the handle did not follow", rk)
        w.done()
        for path, want in (was, 0), (now, 10):
            rows = w.client.all("Side", filter=f"PartitionKey eq '{path.name}'")
            must("Z5", len(rows) == want, "REST:", path.name, len(rows))


def moved_reader(w, place):
    """The ten rows are in one of the two partitions at each moment, and whole by any path."""
    names = [f"{place}{i}" for i in range(2)]
    options = f"PartitionKey ge '{place}0' and PartitionKey le '{place}1'"
    while w.go():
        path = row_path(w, "Side", w.rng.choice(names), f"r{w.rng.randrange(10)}")
        text = once_more(lambda: read_to_end(path), *PASSING)
        if text is not None:
            whole(text, path)
        if w.rng.random() < 0.3:
            text = read_to_end(w.at / "Side" / ".query" / f"{options}.ndjson").decode()
            found = map(json.loads, text.splitlines())
            keys = {(r["PartitionKey"], r["RowKey"]) for r in found}
            must("Z4", len(keys) == 10 and len({p for p, _ in keys}) < 2, sorted(keys))
        elif w.rng.random() < 0.3:
            found = once_more(lambda: os.listdir(path.parent), *PASSING) or []
            must("Z4", len(found) in (0, 10), "listing of", path.parent, found)


def tables(w):
    """Tables made, filled, renamed and removed, each step through either front end."""
    names = [f"T{w.number}a", f"T{w.number}b"]
    paths = [w.at / n for n in names]

    def seen(*want):
        there = [n in os.listdir(w.at) for n in names]
        must("Z5", there == list(want), names, "listed:", there, want)
        must("Z5", [p.exists() for p in paths] == list(want), names, "there:", want)
        rest = {t["TableName"] for t in w.client.tables().rows}
        must("Z5", [n in rest for n in names] == list(want), names, "REST:", rest, want)
        w.done()

    while w.go():
        if w.rng.random() < 0.5:
            paths[0].mkdir()
        else:
            ok(w.client.create_table(names[0]), 201)
        seen(True, False)
        if w.rng.random() < 0.5:
            (paths[0] / "p").mkdir()
            put(paths[0] / "p" / "r.json", '{"V":1}')
        else:
            ok(w.client.insert(names[0], {"PartitionKey": "p", "RowKey": "r", "V": 1}), 201)
        fd = os.open(paths[0] / "p" / "r.json", os.O_RDONLY)
        paths[0].rename(paths[1])
        seen(False, True)
        must("Z5", json.loads(read_to_end(paths[1] / "p" / "r.json")) == {"V": 1}, "renamed table")
        must("Z5", ok(w.client.get(names[1], "p", "r"), 200).json["V"] == 1, "renamed table")
        if w.rng.random() < 0.5:
            w.tool("rm", "-r", paths[1])
        else:
            ok(w.client.delete_table(names[1]), 204)
        seen(False, False)
        must("Z2", os.read(fd, 100).strip() == b'{"V":1}', "a handle outlives its table")
        os.close(fd)


# ---- listing while deleting ----

STABLE = [f"k{i:03}" for i in range(120)]


def fill_list(client):
    for i in range(0, len(STABLE), 60):
        ok(client.batch([("PUT", entity_path("Side", "list", rk), {}, {"V": 1})
                         for rk in STABLE[i:i + 60]]), 202)


def list_churn(w):
    """Makes and removes names between those that stay."""
    at = w.at / "Side" / "list"
    while w.go():
        some = w.rng.sample([f"{rk}-{w.number}" for rk in STABLE], 30)
        for rk in some:
            if w.rng.random() < 0.5:
                put(at / f"{rk}.json", '{"V":1}')
            else:
                ok(w.client.upsert("Side", "list", rk, {"V": 1}), 204)
            w.done()
        for rk in some:
            if w.rng.random() < 0.5:
                os.unlink(at / f"{rk}.json")
            else:
                ok(w.client.delete("Side", "list", rk), 204)
            w.done()


def list_reader(w):
    at = w.at / "Side" / "list"
    want = [f"{rk}.json" for rk in STABLE]
    while w.go():
        if w.rng.random() < 0.7:
            with os.scandir(at) as entries:
                found = []
                for e in entries:
                    found.append(e.name)
                    if w.rng.random() < 0.3:
                        once_more(lambda e=e: os.stat(e.path), errno.ENOENT)
        else:
            found = [f"{r['RowKey']}.json" for r in
                     w.client.all("Side", filter="PartitionKey eq 'list'", top=50)]
        stayed = [n for n in found if "-" not in n]
        must("Z6", stayed == want, "missing or twice in a listing:", set(want) - set(stayed),
             [n for n in stayed if stayed.count(n) > 1])
