# SPDX-License-Identifier: MIT
"""A store with some of everything, and all that can be seen of a store, to compare two of them."""

import base64
import os

from blob_client import blobs_of
from rest_client import ACCOUNT, Client, ok
from tools import get, put, raises, rows, tree

MIB = 1 << 20


def add_rows(m):
    with Client(m.port) as client:
        ok(client.create_table("Blogs"), 201)
        ok(client.create_table("Empty"), 201)
        for pk, rk in (("p", "r"), ("", ""), ("k" * 400, "2"), ("it's \"q\" ", "100%"),
                       (".dot", ".dot"), ("\U0001f600", "ä b")):
            ok(client.upsert("Blogs", pk, rk, {
                "Text": "x", "Long@odata.type": "Edm.Int64", "Long": "5", "F": 1.5,
                "Bin@odata.type": "Edm.Binary", "Bin": "AQID"}), 204)
        for i in range(1200):
            ok(client.upsert("Blogs", f"many{i % 2}", f"{i:04}", {"N": i}), 204)
    part = m / ACCOUNT / "Blogs/p"
    put(part / "mine.json", '{ "Spaces": "kept",\n  "N": 1.50 }\n')
    put(part / "large.json", '{"A":"' + 30000 * "a" + '","B":"' + 30000 * "b" + '"}')
    os.chmod(part / "mine.json", 0o640)
    os.utime(part / "mine.json", ns=(1, 1_000_000_000_123_456_789))
    (m / ACCOUNT / "Blogs/made").mkdir()


def add_files(m):
    part = m / ACCOUNT / "Blogs/p"
    put(part / "notes.txt", "beside the rows")
    put(part / ".hidden", "")
    (part / ".git/objects").mkdir(parents=True)
    put(part / ".git/objects/big", os.urandom(3_000_000))
    os.chmod(part / ".git", 0o700)
    put(part / "removed.json", '{"A":1}')
    os.unlink(part / "removed.json")  # it is in the trash
    with raises("EINVAL"):
        put(part / "refused.json", "no JSON")


def add_messages(m):
    jobs = m / ACCOUNT / ".queue/jobs"
    jobs.mkdir(parents=True)
    for i in range(5):
        put(jobs / f"job {i}", f"do {i}")


def block_id(name):
    return base64.b64encode(name.encode()).decode()


def add_blobs(m, store):
    """Block, append and page blobs, one with a snapshot, one with a block that is not committed."""
    rest = blobs_of(m, store)

    def ask(want, *args, **kw):
        answer = rest.ask(*args, **kw)
        assert answer.status == want, (args, answer.status, answer.body)
        return answer

    ask(201, "PUT", "/photos", {"restype": "container"}, headers={"x-ms-meta-kind": "all"})
    for name, body in (("small", b"small"), ("a/b/large", os.urandom(3 * MIB + 5))):
        assert rest.put(f"/photos/{name}", body, x_ms_meta_of=name.replace("/", "")).status == 201
    names = [f"{i:04}" for i in range(70)]
    for name in [*names, "rest"]:
        ask(201, "PUT", "/photos/blocks", {"comp": "block", "blockid": block_id(name)},
            name.encode() * 2000)
    latest = "".join(f"<Latest>{block_id(n)}</Latest>" for n in reversed(names))
    ask(201, "PUT", "/photos/blocks", {"comp": "blocklist"},
        f"<BlockList>{latest}</BlockList>".encode())
    ask(201, "PUT", "/photos/blocks", {"comp": "block", "blockid": block_id("late")}, b"not yet")
    ask(201, "PUT", "/photos/log", headers={"x-ms-blob-type": "AppendBlob"})
    for i in range(3):
        ask(201, "PUT", "/photos/log", {"comp": "appendblock"}, b"line %d\n" % i)
    ask(201, "PUT", "/photos/disk", headers={"x-ms-blob-type": "PageBlob",
                                             "x-ms-blob-content-length": str(64 * MIB)})
    for at in (0, 4096, 33 * MIB):
        ask(201, "PUT", "/photos/disk", {"comp": "page"}, os.urandom(1536), headers={
            "x-ms-page-write": "update", "x-ms-range": f"bytes={at}-{at + 1535}"})
    ask(201, "PUT", "/photos/disk", {"comp": "snapshot"})
    ask(201, "PUT", "/photos/disk", {"comp": "page"}, headers={
        "x-ms-page-write": "clear", "x-ms-range": "bytes=4096-4607"})


def fill(m, store):
    """m: a mount with sockets of tables and of blobs."""
    add_rows(m)
    add_files(m)
    add_messages(m)
    add_blobs(m, store)


def seen_by_rest(rest):
    """Of blobs: properties, metadata, blocks, ranges."""
    found = {}
    for name in ("small", "a/b/large", "blocks", "log", "disk"):
        path = f"/photos/{name}"
        head = rest.ask("HEAD", path).headers
        found[name] = {k: v for k, v in head.items() if k.lower().startswith(
            ("x-ms-meta-", "x-ms-blob", "etag", "last-modified", "content-"))}
    found["list"] = rest.ask("GET", "/photos/blocks", {
        "comp": "blocklist", "blocklisttype": "all"}).body
    found["ranges"] = rest.ask("GET", "/photos/disk", {"comp": "pagelist"}).body
    text = rest.ask("GET", "/photos", {
        "restype": "container", "comp": "list", "include": "snapshots"}).body.decode()
    time = text.split("<Snapshot>")[1].split("<")[0]
    found["snapshot"] = rest.ask("GET", "/photos/disk", {"snapshot": time}).body
    found["since"] = rest.ask("GET", "/photos/disk", {
        "comp": "pagelist", "prevsnapshot": time}).body
    return found


def seen(m, store):
    """Of a mount with sockets: the tree, refused bytes and the trash, rows and blobs over REST."""
    with Client(m.port) as client:
        entities = client.all("Blogs")
    return {
        # The directories of queues and of blobs have the time of the mount, messages an id of the store.
        "tree": {p: v for p, v in tree(m.path).items()
                 if not p.endswith((".queue", ".blob")) and "/.queue/jobs/" not in p},
        "queue": [get(m / ACCOUNT / ".queue/jobs" / n)
                  for n in rows(m / ACCOUNT / ".queue/jobs")],
        "rejected": sorted(tree(m / ".rowfs/rejected")),
        "trash": sorted(tree(m / ".rowfs/trash")),
        "rows": [{k: v for k, v in e.items() if k != "odata.metadata"} for e in entities],
        "blobs": seen_by_rest(blobs_of(m, store)),
    }
