# SPDX-License-Identifier: MIT
"""Workers of the soak who look: walkers, queries, snapshots, inotify, attributes."""

import ctypes
import json
import os
import select
import shutil
import struct

from soak import PASSING, must, once_more, row_path, whole
from soak_bank import BANK, audit
from soak_mixed import TOOLS_MAY
from test_exact import document, read_to_end
from tools import LIBC, put, xattr


def walker(w):
    table = w.at / "Soak"
    scripts = [
        "ls -lR {}", "find {} -printf '%p %s %i\\n'", "grep -r zzz {} || [ $? = 1 ]", "du -a {}",
        "tar -C {} -c . | tar -t", "ls -U {}/*", "find {} -name '*.json' | xargs cat",
        "find {} -newer / -exec stat -c %s {{}} +"]
    while w.go():
        script = w.rng.choice(scripts).format(w.rng.choice([table, w.at / "Side", w.at / "Hot"]))
        w.tool(f"{{ {script}; }} > /dev/null", may=TOOLS_MAY)


def query_walker(w):
    """Queries as directories and streams, beside everything."""
    while w.go():
        at = w.at / "Soak" / ".query" / f"V ge {w.rng.randrange(3)}"
        for d, _, names in os.walk(at):
            for name in names:
                text = once_more(lambda d=d, n=name: read_to_end(os.path.join(d, n)), *PASSING)
                w.done()
                if text:
                    whole(text, f"{d}/{name}")
        lines = read_to_end(at.with_name(f"{at.name}.ndjson")).decode().splitlines()
        for r in map(json.loads, lines):
            must("Z2", r["V"] == r["W"], "a stream shows half a document")
        json.loads(read_to_end(w.mnt / ".rowfs/stats.json"))
        read_to_end(w.mnt / ".rowfs/metrics")


def snapshotter(w, boards):
    """What a snapshot shows is of one moment, stays, and is not older than its making."""
    while w.go():
        known = {rk: b.value for rk, b in boards.items()}
        snap = w.mnt / ".rowfs/snapshots" / w.name
        snap.mkdir()
        try:
            at = snap / w.client.account
            first = look_into(w, at, known)
            must("Z4", first == look_into(w, at, known), "a snapshot changed")
            if w.rng.random() < 0.3:
                back_up(w, at)
        finally:
            snap.rmdir()


def look_into(w, at, known):
    """Everything that is checked of a snapshot."""
    w.done()
    found = {p.name: read_to_end(p) for p in (at / BANK[0] / BANK[1]).iterdir()}
    audit([json.loads(t)["N"] for t in found.values()], "snapshot")
    for rk, version in known.items():
        text = found[rk] = read_to_end(at / "Soak" / "edit" / f"{rk}.json")
        seen = whole(text, f"snapshot of {rk}")
        must("Z5", seen >= version, f"snapshot: {rk} {seen} after {version}")
    moved = [os.listdir(p) for p in (at / "Side").glob("move?")]
    must("Z4", sum(map(len, moved)) == 10, "half a partition in a snapshot:", moved)
    return found, sorted(os.listdir(at / "Soak" / "edit"))


def back_up(w, at):
    out = w.tmp / "backup"
    w.tool(f"rsync -a {at}/Bank/ {out}/")
    audit([json.loads(p.read_bytes())["N"] for p in (out / BANK[1]).glob("*.json")], "backup")
    shutil.rmtree(out)


IN_CREATE, IN_MOVED_TO, IN_DELETE, IN_CLOSE_WRITE = 0x100, 0x80, 0x200, 0x8


def watcher(w):
    """inotify of a directory tells each change through the mount, by either path."""
    at = w.soak.mnt / w.client.account / "Side" / w.name
    mine = w.at / "Side" / w.name
    at.mkdir()
    fd = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    mask = IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_CLOSE_WRITE
    must("Z5", LIBC.inotify_add_watch(fd, os.fsencode(at), mask) >= 0,
         os.strerror(ctypes.get_errno()))
    n = 0
    while w.go():
        n += 1
        put(mine / f"r{n}.json", '{"V":1}')
        os.rename(mine / f"r{n}.json", mine / f"s{n}.json")
        os.unlink(mine / f"s{n}.json")
        expected = {(IN_CREATE, f"r{n}.json"), (IN_CLOSE_WRITE, f"r{n}.json"),
                    (IN_MOVED_TO, f"s{n}.json"), (IN_DELETE, f"s{n}.json")}
        while expected:
            if not select.select([fd], [], [], w.soak.limit / 2)[0]:
                must("Z5", False, "no event:", expected)
            expected -= set(events(os.read(fd, 65536)))
    os.close(fd)


def events(data):
    while data:
        _, mask, _, n = struct.unpack_from("iIII", data)
        yield mask, data[16:16 + n].rstrip(b"\0").decode()
        data = data[16 + n:]


def attributes(w):
    """chmod, chown and times hold at once, also while the row is being written."""
    path = row_path(w, "Soak", "edit", w.name)
    put(path, document(0, w.rng))
    while w.go():
        mode, when = w.rng.choice([0o600, 0o640, 0o644]), w.rng.randrange(1 << 31)
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(fd, document(1, w.rng))
            if w.rng.random() < 0.5:
                os.fchmod(fd, mode)
                os.utime(fd, (when, when))
        finally:
            os.close(fd)
        os.chmod(path, mode)
        os.utime(path, (when, when))
        st = os.stat(path)
        must("Z5", (st.st_mode & 0o777, int(st.st_mtime)) == (mode, when), "attributes:", st)
        must("Z5", xattr(path, "row_key") == w.name, "row_key")
