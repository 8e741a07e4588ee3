# SPDX-License-Identifier: MIT
"""U8: blobs, queues and a table against plain dictionaries, through both front ends at once.

Rows and messages change as in test_random_queues.py.  Blobs of all three types change by REST and by
files, have metadata, leases, copies and snapshots, and are read whole and in part through both.

ROWFS_BLOB_STEPS=N takes N steps with another seed each time; ROWFS_BLOB_SEED=S those of a walk that
failed.
"""

import base64
import os
import random
import re
import time

import pytest

from blob_client import Blobs
from rest_client import ACCOUNT
from test_random_queues import World as QueuesAndRows, walk
from tools import get, put, raises

STEPS = int(os.environ.get("ROWFS_BLOB_STEPS", "0"))
SEED = os.environ.get("ROWFS_BLOB_SEED")
NAMES = ("a", "b", "dir/x", "dir/y", "100%", "x.%blob")
# A blob beside a directory of its name: only REST makes it.
BESIDE = ("both", "both/z")
PAGE, PAGES = 512, 40
LEASE = "00000000-0000-4000-8000-000000000001"
FILE_OF = {"x.%blob": "x.%%blob"}


class Blob:
    def __init__(self, kind, content=b"", meta=None):
        self.kind, self.content, self.meta, self.pages = kind, bytearray(content), meta, set()

    def same(self):
        other = Blob(self.kind, self.content, self.meta)
        other.pages = set(self.pages)
        return other


class World(QueuesAndRows):
    def __init__(self, mount, dice):
        super().__init__(mount, dice)
        self.model, self.snapshots = {}, {}  # of a name: {time: Blob}
        assert self.ask("PUT", "", {"restype": "container"}).status == 201
        self.dir = mount / ACCOUNT / ".blob/photos"

    def connect(self):
        super().connect()
        self.host = f"{ACCOUNT}.blob.localhost"
        self.blobs = Blobs(self.mount.port, host=self.host)

    def ask(self, method, name, query=None, body=None, **headers):
        path = f"/photos/{name}" if name else "/photos"
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        return self.blobs.ask(method, path, query, body, headers)

    def done(self, status, *request, **headers):
        answer = self.ask(*request, **headers)
        assert answer.status == status, (request[:3], answer)
        return answer

    # -- small words

    def bytes_(self):
        self.n += 1
        size = self.dice.choice((0, 1, 300, 4096, 4097, 70000, 200000))
        return (f"{self.n} " * (size // 2 + 1)).encode()[:size]

    def is_dir(self, name):
        return any(n.startswith(f"{name}/") for n in self.model)

    def file(self, name):
        tail = ".%blob" if self.is_dir(name) else ""
        return self.dir / (FILE_OF.get(name, name) + tail)

    def a_name(self):
        return self.dice.choice(NAMES + BESIDE)

    def a_blob(self, *kinds, names=NAMES + BESIDE):
        found = [n for n, b in self.model.items() if n in names and (not kinds or b.kind in kinds)]
        return self.dice.choice(found) if found else None

    def metadata(self):
        """(headers, what the blob has then)"""
        if self.dice.random() < 0.5:
            return {}, None
        self.n += 1
        return {"x_ms_meta_n": str(self.n)}, str(self.n)

    # -- block blobs

    def do_put_blob(self):
        name, content, (headers, meta) = self.a_name(), self.bytes_(), self.metadata()
        self.done(201, "PUT", name, None, content, x_ms_blob_type="BlockBlob", **headers)
        self.model[name] = Blob("BlockBlob", content, meta)

    def do_put_blob_file(self):
        name, content = self.dice.choice(NAMES), self.bytes_()
        old = self.model.get(name)
        if old and old.kind != "BlockBlob":
            return
        self.file(name).parent.mkdir(exist_ok=True)
        put(self.file(name), content)
        self.model[name] = Blob("BlockBlob", content, old.meta if old else None)

    def do_change_file(self):
        """A part is written, or added at the end."""
        name, part = self.a_blob("BlockBlob", names=NAMES), self.bytes_()
        if name:
            content = self.model[name].content
            at = self.dice.choice((len(content), self.dice.randrange(len(content) + 1)))
            fd = os.open(self.file(name), os.O_WRONLY)
            try:
                os.pwrite(fd, part, at)
            finally:
                os.close(fd)
            content[at:at + len(part)] = part

    def do_blocks(self):
        """Blocks that nobody sees, then their list, which leaves one out."""
        name, (headers, meta) = self.a_name(), self.metadata()
        if name in self.model and self.model[name].kind != "BlockBlob":
            return
        parts = [(base64.b64encode(b"%03d" % i).decode(), self.bytes_() or b"x") for i in range(3)]
        for key, part in parts:
            self.done(201, "PUT", name, {"comp": "block", "blockid": key}, part)
        self.do_compare_blob(name)
        chosen = self.dice.sample(parts, 2)
        text = "".join(f"<Latest>{key}</Latest>" for key, _ in chosen)
        self.done(201, "PUT", name, {"comp": "blocklist"},
                  f"<BlockList>{text}</BlockList>".encode(), **headers)
        self.model[name] = Blob("BlockBlob", b"".join(p for _, p in chosen), meta)

    # -- append blobs and page blobs

    def do_append(self):
        name, part = self.a_blob("AppendBlob"), self.bytes_() or b"x"
        if not name or self.dice.random() < 0.2:
            name, (headers, meta) = self.a_name(), self.metadata()
            self.done(201, "PUT", name, None, b"", x_ms_blob_type="AppendBlob", **headers)
            self.model[name] = Blob("AppendBlob", b"", meta)
        answer = self.done(201, "PUT", name, {"comp": "appendblock"}, part)
        content = self.model[name].content
        assert answer.headers["x-ms-blob-append-offset"] == str(len(content))
        content += part

    def do_page(self):
        name = self.a_blob("PageBlob")
        if not name or self.dice.random() < 0.2:
            name, (headers, meta) = self.a_name(), self.metadata()
            self.done(201, "PUT", name, None, b"", x_ms_blob_type="PageBlob",
                      x_ms_blob_content_length=str(PAGES * PAGE), **headers)
            self.model[name] = Blob("PageBlob", bytes(PAGES * PAGE), meta)
        blob, first = self.model[name], self.dice.randrange(PAGES)
        last = self.dice.randrange(first, PAGES)
        clear = self.dice.random() < 0.3
        self.n += 1
        part = bytes((last + 1 - first) * PAGE) if clear else (
            b"%7d " % self.n * (PAGE // 8)) * (last + 1 - first)
        self.done(201, "PUT", name, {"comp": "page"}, b"" if clear else part,
                  x_ms_page_write="clear" if clear else "update",
                  x_ms_range=f"bytes={first * PAGE}-{(last + 1) * PAGE - 1}")
        blob.content[first * PAGE:(last + 1) * PAGE] = part
        (blob.pages.difference_update if clear else blob.pages.update)(range(first, last + 1))

    def do_page_file(self):
        """Made by its size; written at any offset, in place."""
        name = self.a_blob("PageBlob", names=NAMES)
        if not name:
            name = self.dice.choice(NAMES)
            if name in self.model:
                return
            self.file(name).parent.mkdir(exist_ok=True)
            with open(self.file(name), "wb") as f:
                f.truncate(PAGES * PAGE)
            self.model[name] = Blob("PageBlob", bytes(PAGES * PAGE))
        blob, at = self.model[name], self.dice.randrange(PAGES * PAGE)
        part = self.bytes_()[:PAGES * PAGE - at]
        fd = os.open(self.file(name), os.O_RDWR)
        try:
            assert os.pwrite(fd, part, at) == len(part)
            if self.dice.random() < 0.5:
                os.fsync(fd)
        finally:
            os.close(fd)
        blob.content[at:at + len(part)] = part
        if part:
            blob.pages.update(range(at // PAGE, (at + len(part) - 1) // PAGE + 1))

    # -- what all blobs have

    def do_metadata(self):
        if name := self.a_blob(names=NAMES):
            self.n += 1
            if self.dice.random() < 0.5:
                self.done(200, "PUT", name, {"comp": "metadata"}, x_ms_meta_n=str(self.n))
            elif self.model[name].kind == "BlockBlob":
                os.setxattr(self.file(name), "user.meta.n", str(self.n).encode())
            else:
                return
            self.model[name].meta = str(self.n)

    def do_remove(self):
        if name := self.a_blob():
            if self.dice.random() < 0.5:
                how = {"x_ms_delete_snapshots": "include"} if self.snapshots.get(name) else {}
                self.done(202, "DELETE", name, **how)
                self.snapshots.pop(name, None)
            elif self.snapshots.get(name) or name in BESIDE:
                return
            else:
                self.file(name).unlink()
            del self.model[name]

    def do_rename(self):
        old, new = self.a_blob(names=NAMES), self.dice.choice(NAMES)
        if old and old != new and not self.snapshots.get(old) and not self.snapshots.get(new):
            self.file(new).parent.mkdir(exist_ok=True)
            os.rename(self.file(old), self.file(new))
            self.model[new] = self.model.pop(old)

    def do_copy(self):
        if old := self.a_blob():
            new, (headers, meta) = self.a_name(), self.metadata()
            if old != new:
                source = f"http://{self.host}:{self.mount.port}/photos/{old.replace('%', '%25')}"
                self.done(202, "PUT", new, x_ms_copy_source=source, **headers)
                self.model[new] = self.model[old].same()
                self.model[new].meta = meta or self.model[old].meta

    def do_snapshot(self):
        if name := self.a_blob():
            answer = self.done(201, "PUT", name, {"comp": "snapshot"})
            self.snapshots.setdefault(name, {})[answer.headers["x-ms-snapshot"]] = \
                self.model[name].same()

    def do_look_at_a_snapshot(self):
        found = [(n, t) for n, all_ in self.snapshots.items() for t in all_]
        if found:
            name, when = self.dice.choice(found)
            answer = self.done(200, "GET", name, {"snapshot": when})
            assert answer.body == self.snapshots[name][when].content
            assert answer.headers.get("x-ms-meta-n") == self.snapshots[name][when].meta

    def do_lease_blob(self):
        """Nobody changes it meanwhile, through either front end."""
        if name := self.a_blob("BlockBlob", names=NAMES):
            self.done(201, "PUT", name, {"comp": "lease"}, x_ms_lease_action="acquire",
                      x_ms_lease_duration="-1", x_ms_proposed_lease_id=LEASE)
            self.done(412, "PUT", name, None, b"other", x_ms_blob_type="BlockBlob")
            self.done(412, "DELETE", name)
            with raises("EBUSY"):
                self.file(name).unlink()
            self.done(200, "PUT", name, {"comp": "lease"}, x_ms_lease_action="release",
                      x_ms_lease_id=LEASE)

    # -- what is there

    def do_read_a_part(self):
        if (name := self.a_blob()) and (content := self.model[name].content):
            first = self.dice.randrange(len(content))
            last = self.dice.randrange(first, len(content))
            answer = self.done(206, "GET", name, Range=f"bytes={first}-{last}")
            assert answer.body == content[first:last + 1]
            with open(self.file(name), "rb", buffering=0) as f:
                assert os.pread(f.fileno(), last + 1 - first, first) == content[first:last + 1]

    def do_compare_blob(self, name=None):
        name = name or self.a_name()
        blob = self.model.get(name)
        if blob is None:
            self.done(404, "GET", name)
            assert self.is_dir(name) or not self.file(name).exists()
            return
        answer = self.done(200, "GET", name)
        assert answer.body == blob.content and get(self.file(name)) == blob.content
        assert answer.headers["x-ms-blob-type"] == blob.kind
        assert answer.headers.get("x-ms-meta-n") == blob.meta
        if blob.meta:
            assert os.getxattr(self.file(name), "user.meta.n") == blob.meta.encode()
        if blob.kind == "PageBlob":
            text = self.done(200, "GET", name, {"comp": "pagelist"}).body.decode()
            ranges = re.findall(r"<Start>(\d+)</Start><End>(\d+)</End>", text)
            assert blob.pages == {page for first, last in ranges
                                  for page in range(int(first) // PAGE, int(last) // PAGE + 1)}

    def do_compare_names(self):
        text = self.done(200, "GET", "", {"restype": "container", "comp": "list"}).body.decode()
        assert re.findall(r"<Name>([^<]*)</Name>", text) == sorted(self.model)
        there = {os.path.relpath(os.path.join(at, f), self.dir)
                 for at, _, files in os.walk(self.dir) for f in files}
        assert there == {os.path.relpath(self.file(n), self.dir) for n in self.model}

    def verify(self, rowfs):
        super().verify(rowfs)
        self.do_compare_names()
        for name in NAMES + BESIDE:
            self.do_compare_blob(name)

    WEIGHTS = {**{do: n / 3 for do, n in QueuesAndRows.WEIGHTS.items()},
               QueuesAndRows.do_begin_anew: 0.6,
               do_put_blob: 6, do_put_blob_file: 6, do_change_file: 4, do_blocks: 4, do_append: 6,
               do_page: 8, do_page_file: 5, do_metadata: 4, do_remove: 5, do_rename: 4,
               do_copy: 4, do_snapshot: 3,
               do_look_at_a_snapshot: 3, do_lease_blob: 2, do_read_a_part: 6, do_compare_blob: 8,
               do_compare_names: 2}


@pytest.mark.parametrize("seed", [SEED or time.time_ns()] if STEPS or SEED else [1, 2])
def test_U8_all_three_services_agree_with_plain_dictionaries(rowfs, rest_mount, rest_store, seed):
    walk(World(rest_mount(rest_store), random.Random(f"{seed}")), rowfs, seed, STEPS)
