# SPDX-License-Identifier: MIT
"""Pairs of workers of the soak: one changes a row by any front end; when that is acknowledged it
tells the other, who comes by the other path and looks at the row in every way: Z5, what was
acknowledged is seen by everybody, whatever the kernel had cached."""

import errno
import json
import os

from rest_client import entity_path, ok, parse_batch
from soak import must, once_more, row_path
from test_exact import document, read_to_end, write_again, write_aside, write_truncating
from tools import put, xattr

HOT = "Hot", "hot"


def change_file(w, path, name):
    doc = document(w.rng.randrange(1 << 30), w.rng)
    w.rng.choice([write_truncating, write_aside, write_again])(path, doc)
    return {name: doc}


def change_fsync(w, path, name):
    """It is acknowledged before the file is closed."""
    doc = document(w.rng.randrange(1 << 30), w.rng)
    w.open = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(w.open, doc)
    os.fsync(w.open)
    size = os.stat(path).st_size
    must("Z5", size == len(doc), "after fsync of", name, size, len(doc))
    return {name: doc}


def change_unlink(w, path, name):
    once_more(lambda: os.unlink(path), errno.ENOENT)
    return {name: None}


def change_rename(w, path, name, to):
    doc = document(w.rng.randrange(1 << 30), w.rng)
    write_truncating(path, doc)
    os.rename(path, path.with_name(f"{to}.json"))
    return {name: None, to: doc}


def change_rest(w, path, name):
    row = {"V": w.rng.randrange(1000), "S": "x" * w.rng.randrange(300)}
    ok(w.rng.choice([w.client.upsert, w.client.upsert_merge])(*HOT, name, {**row, "Q": "q"}), 204)
    return {name: {**row, "Q": "q"}}


def change_delete(w, path, name):
    must("Z5", w.client.delete(*HOT, name).status in (204, 404), "delete")
    return {name: None}


def change_set(w, path, name, to):
    row = {"V": w.rng.randrange(1000)}
    once_more(lambda: os.unlink(path.with_name(f"{to}.json")), errno.ENOENT)
    ops = [{"upsert": {"RowKey": name, **row}}, {"insert": {"RowKey": to, **row}}]
    put(path.parent / ".batch", json.dumps(ops))
    return {name: row, to: row}


def change_batch(w, path, name, to):
    row = {"V": w.rng.randrange(1000)}
    ok(w.client.upsert(*HOT, to, row), 204)
    parts = parse_batch(ok(w.client.batch([("PUT", entity_path(*HOT, name), {}, row),
                                           ("DELETE", entity_path(*HOT, to),
                                            {"If-Match": "*"}, None)]), 202))
    must("Z5", {p.status for p in parts} == {204}, parts)
    return {name: row, to: None}


def change_import(w, path, name, to):
    row = {"V": w.rng.randrange(1000)}
    text = "".join(json.dumps({"PartitionKey": HOT[1], "RowKey": k, **row}) + "\n"
                   for k in (name, to))
    if w.rng.random() < 0.9:
        put(w.rng.choice([path.parent, path.parents[1]]) / ".rows.ndjson", text)
    else:
        (w.tmp / "in").write_text(text)
        w.tool(w.soak.rowfs.program, "import", w.soak.mount.store,
               f"{w.client.account}/{HOT[0]}", w.tmp / "in")
    return {name: row, to: row}


def teller(w, names, pipe):
    """Changes a row by any front end; when it is acknowledged the looker hears of it."""
    one = [change_file, change_file, change_fsync, change_unlink, change_rest, change_delete]
    two = [change_rename, change_set, change_batch, change_import]
    while w.go():
        name, to = w.rng.sample(names, 2)
        path = row_path(w, *HOT, name)
        way, w.open = w.rng.choice(one + two), None
        changed = way(w, path, name, *([to] if way in two else []))
        w.done()
        pipe.send((way.__name__, {**changed}))
        while not pipe.poll(0.2):
            if not w.go():
                return
        pipe.recv()
        if w.open is not None:
            os.close(w.open)


def looker(w, names, pipe):
    at, held = w.at / HOT[0] / HOT[1], []
    while w.go():
        if not pipe.poll(0.2):
            continue
        way, changed = pipe.recv()
        for name, want in changed.items():
            look(w, f"after {way} of {name}", name, want)
        for fd in held:
            os.close(fd)
        # Everything is in the caches, and held open, when the next change comes.
        for name in names:
            once_more(lambda n=name: os.stat(at / f"{n}.json"), errno.ENOENT)
        held = [once_more(lambda n=name: os.open(at / f"{n}.json", os.O_RDONLY), errno.ENOENT)
                for name in names]
        held = [fd for fd in held if fd is not None]
        pipe.send(True)


def look(w, where, name, want):
    path = row_path(w, *HOT, name)
    order = [look_by_stat, look_by_listing, look_by_content, look_by_etag, look_by_rest]
    w.rng.shuffle(order)
    for one in order:
        one(w, f"{one.__name__} {where}", path, name, want)


def look_by_stat(w, where, path, name, want):
    st = once_more(lambda: os.stat(path), errno.ENOENT)
    must("Z5", (st is None) == (want is None), where, st, want)
    if isinstance(want, bytes):
        must("Z5", st.st_size == len(want), where, st.st_size, len(want))


def look_by_listing(w, where, path, name, want):
    if w.rng.random() < 0.3:
        there = path.name in os.listdir(path.parent)
        must("Z5", there == (want is not None), where, there)


def look_by_content(w, where, path, name, want):
    text = once_more(lambda: read_to_end(path), errno.ENOENT)
    must("Z5", (text is None) == (want is None), where, text, want)
    if isinstance(want, bytes):
        must("Z5", text == want, where, text[:100], want[:100])
    elif want is not None:
        row = json.loads(text)
        must("Z5", {**row, **want} == row, where, text[:200], want)


def look_by_etag(w, where, path, name, want):
    """The same by the row's name, by its name in a query, and over REST."""
    query = path.parents[1] / f".query/RowKey eq '{name}'" / HOT[1] / path.name
    found = w.client.get(*HOT, name)
    etags = {once_more(lambda p=p: xattr(p, "etag"), errno.ENOENT) for p in (path, query)}
    must("Z5", etags == {found.etag if found.status == 200 else None}, where, etags, found)
    must("Z5", (want is None) == (found.status == 404), where, found, want)


def look_by_rest(w, where, path, name, want):
    if w.rng.random() < 0.5:
        found = w.client.get(*HOT, name)
        rows = [found.json] if found.status == 200 else []
    else:
        rows = w.client.all(HOT[0], filter=f"PartitionKey eq '{HOT[1]}' and RowKey eq '{name}'")
    must("Z5", len(rows) == (want is not None), where, rows)
    if want is not None:
        want = json.loads(want) if isinstance(want, bytes) else want
        must("Z5", {**rows[0], **want} == rows[0], where, rows[0], want)
