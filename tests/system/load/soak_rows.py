# SPDX-License-Identifier: MIT
"""Workers of the soak at single rows: editors and their readers, counters.

Z2 whole documents, never an older one than was acknowledged; Z3 no lost update."""

import errno
import fcntl
import json
import mmap
import os

from rest_client import entity_path, ok
from soak import must, once_more, row_path, whole
from test_exact import (
    document, read_exactly, read_mapped, read_to_end, write_again, write_aside, write_in_place,
    write_truncating)

EDIT = "Soak", "edit"  # table and partition


# ---- editors: one for each row, with the version that was acknowledged ----


def by_script(template):
    """A program that makes version n of version n - 1; {r} is the row, {t} a directory of the
    worker's own on another file system."""
    def edit(w, path, doc, n):
        mark = f's/"\\([VW]\\)": *[0-9]*/"\\1": {n}/g'
        aside = w.tmp / "doc.json"
        aside.write_bytes(doc)
        w.tool(template.format(r=path, t=w.tmp, doc=aside, mark=mark, d=path.parent,
                               own=f"{w.name}", n=n))
    edit.__name__ = template
    return edit


JQ = "'.V += 1 | .W += 1'"
SCRIPTS = [by_script(s) for s in (
    "sed -i '{mark}' {r}",
    "perl -pi -e 's/\"([VW])\": *\\d+/\"$1\": {n}/g' {r}",
    "gawk -i inplace '{{ gsub(/\"V\": *[0-9]+/, \"\\\"V\\\": {n}\"); "
    "gsub(/\"W\": *[0-9]+/, \"\\\"W\\\": {n}\"); print }}' {r}",
    f"jq -c {JQ} {{r}} > {{r}}",
    f"jq -c {JQ} {{r}} | sponge {{r}}",
    f"jq -c {JQ} {{r}} > {{d}}/tmp.{{own}} && mv {{d}}/tmp.{{own}} {{r}}",
    "cp {doc} {r}",
    "cp -a {doc} {r}",
    "cp {doc} {d}/.{own}.json && mv -f {d}/.{own}.json {r}",
    "cat {doc} > {r}",
    "tee {r} < {doc} > /dev/null",
    "dd if={doc} of={r} bs=37 status=none",
    "dd if={doc} of={r} conv=fsync status=none",
    "rsync -aI {doc} {r}",
    "rsync -aI --inplace {doc} {r}",
    "vim -es -u NONE -i NONE -c 'set backupcopy=yes' -c '%{mark}' -c wq {r}",
    "printf '%s\\n' ',{mark}' wq | ed -s {r}")]
# These remove the row before they make it.
GAPPED = [by_script(s) for s in (
    "sed -i.{own}.bak '{mark}' {r}",
    "vim -es -u NONE -i NONE -c 'set backupskip= backup' -c '%{mark}' -c wq {r}",
    "cp {doc} {t}/x.json && mv -f {t}/x.json {r}",
    "install -m 644 {doc} {r}",
    "cp --remove-destination {doc} {r}",
    "cp {doc} {t}/{own}.json && tar -C {t} --transform 's/.*/'$(basename {r})'/' -c {own}.json |"
    " tar -C {d} -x")]


def editor(w, rk, board, gaps):
    """board: the version that was acknowledged last."""
    path = row_path(w, *EDIT, rk)
    scripts = SCRIPTS + GAPPED if gaps else SCRIPTS
    quick = [write_truncating, write_in_place, write_aside] + [write_again] * gaps
    n = 0
    while w.go():
        n += 1
        doc = document(n, w.rng)
        if w.rng.random() < 0.5:
            way = w.rng.choice(quick)
            way(path, doc)
        elif w.rng.random() < 0.3:
            way = over_rest
            way(w, rk, doc)
        else:
            way = w.rng.choice(scripts)
            way(w, path, doc, n)
        board.value = n
        seen = whole(read_to_end(path), way.__name__)
        must("Z2", seen == n, f"{way.__name__} made {n}, read back {seen}")
        size = os.stat(path).st_size
        must("Z2", size == len(read_to_end(path)), way.__name__, "size", size)
        there = ok(w.client.get(*EDIT, rk), 200).json
        must("Z2", there["V"] == n == there["W"], f"{way.__name__} made {n}, REST has",
             there["V"])
    must("Z2", n > 1, "it hardly ran")


def over_rest(w, rk, doc):
    row = json.loads(doc)
    pick = w.rng.randrange(3)
    if pick == 0:
        ok(w.client.upsert(*EDIT, rk, row), 204)
    elif pick == 1:
        ok(w.client.upsert_merge(*EDIT, rk, row), 204)
        # Merging keeps the pads that the row had; they are part of no check.
    else:
        path = entity_path(*EDIT, rk)
        ok(w.client.batch([("PUT", path, {}, row)]), 202)


def mapped(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        with mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as m:
            return bytes(m)
    finally:
        os.close(fd)


def read_over_rest(w, rk):
    found = w.client.get(*EDIT, rk)
    if found.status == 404:
        raise FileNotFoundError(f"REST: {rk}")
    row = ok(found, 200).json
    must("Z2", row["V"] == row["W"], "REST shows half of", row["V"], row["W"])
    return row["V"]


def read_row(w, rk, way):
    return whole(way(row_path(w, *EDIT, rk)), f"{way.__name__} of {rk}")


def editor_reader(w, boards, gapped):
    """boards: of each row.  What one front end shows it never takes back; before it is acknowledged
    the other may still show what was before."""
    ways = [read_to_end, read_mapped, read_exactly, mapped]
    last = {}
    while w.go():
        rk, rest = w.rng.choice(list(boards)), w.rng.random() < 0.3
        known = max(boards[rk].value, last.get((rk, rest), 0))
        way = read_over_rest if rest else w.rng.choice(ways)
        try:
            version = way(w, rk) if rest else read_row(w, rk, way)
        except (OSError, ValueError) as e:
            # A row that is being made again has no bytes for a moment: nothing to map.
            gap = rk in gapped and isinstance(e, (ValueError, FileNotFoundError))
            refused = way is read_mapped and getattr(e, "errno", 0) == errno.ENODEV
            must("Z2", gap or refused, way.__name__, "of", rk, repr(e))
            continue
        must("Z2", version >= known,
             f"{rk}: {version} after {known} was acknowledged or shown, by {way.__name__}")
        last[rk, rest] = version


# ---- counters ----


class Counter:
    """A row with a number; begun and done count what all together tried and finished."""

    def __init__(self, soak, rk):
        self.rk, self.begun, self.done = rk, soak.counter(), soak.counter()

    def begin(self):
        with self.begun.get_lock():
            self.begun.value += 1

    def end(self):
        with self.done.get_lock():
            self.done.value += 1


def counter_flock(w, counter):
    """Reads and writes under the row's lock, without any condition.  A rename onto the row
    would bring another inode, as everywhere, and that is not locked."""
    path = row_path(w, "Soak", "count", counter.rk)
    while w.go():
        fd = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            w.done()
            n = json.loads(read_to_end(path))["N"]
            counter.begin()
            write = w.rng.choice([write_truncating, write_in_place])
            write(path, json.dumps({"N": n + 1}).encode())
            counter.end()
        finally:
            os.close(fd)


def counter_handle(w, counter):
    """A handle that loaded the row commits over that version only."""
    path = row_path(w, "Soak", "count", counter.rk)
    while w.go():
        fd = os.open(path, os.O_RDWR)
        n = json.loads(os.read(fd, 1000))["N"]
        doc = json.dumps({"N": n + 1}).encode()
        counter.begin()
        try:
            os.pwrite(fd, doc, 0)
            os.ftruncate(fd, len(doc))
            if w.rng.random() < 0.3:
                once_more(lambda: os.fsync(fd), errno.ESTALE)
        finally:
            try:
                os.close(fd)
                counter.end()
            except OSError as e:
                must("Z3", e.errno == errno.ESTALE, e)


def counter_rest(w, counter):
    """GET, then a change with If-Match."""
    where = "Soak", "count", counter.rk
    while w.go():
        found = ok(w.client.get(*where), 200)
        change = w.rng.choice([w.client.replace, w.client.merge])
        counter.begin()
        done = change(*where, {"N": found.json["N"] + 1}, if_match=found.etag)
        must("Z3", done.status in (204, 412), done)
        if done.status == 204:
            counter.end()


def counter_reader(w, counters):
    last = {}
    while w.go():
        c, rest = w.rng.choice(counters), w.rng.random() < 0.5
        known = max(c.done.value, last.get((c, rest), 0))
        if rest:
            n = ok(w.client.get("Soak", "count", c.rk), 200).json["N"]
        else:
            n = json.loads(read_to_end(row_path(w, "Soak", "count", c.rk)))["N"]
        must("Z3", known <= n <= c.begun.value, f"{c.rk} by {'REST' if rest else 'file'}:",
             f"{n} where {known} were done or shown, {c.begun.value} begun")
        last[c, rest] = n
