# SPDX-License-Identifier: MIT
"""Blobs of blocks over REST: put, commit and list blocks; limits, errors, kills."""

import base64
import hashlib
import os
import random
import subprocess
import threading
import xml.etree.ElementTree as ET

import pytest
from blob_client import code
from test_blobs import MIB, blobs, blobs_of, listing, memory_of, names  # noqa: F401  the fixture
from test_page_blobs import check, many
from tools import sanitized

BIG = "/photos/big"


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def stage(blobs, name, body, path=BIG, **headers):
    return blobs.ask("PUT", path, {"comp": "block", "blockid": b64(name)}, body=body,
                     headers=headers)


def listed(ids, kind="Latest"):
    """The body of Put Block List; an id may be a pair with its kind."""
    pairs = [i if isinstance(i, tuple) else (kind, i) for i in ids]
    return ("<?xml version='1.0' encoding='utf-8'?><BlockList>" +
            "".join(f"<{k}>{b64(i)}</{k}>" for k, i in pairs) + "</BlockList>").encode()


def commit(blobs, ids, path=BIG, kind="Latest", version=None, **headers):
    return blobs.ask("PUT", path, {"comp": "blocklist"}, body=listed(ids, kind), version=version,
                     headers={k.replace("_", "-"): v for k, v in headers.items()})


def blocks(blobs, kind="all", path=BIG):
    """The committed and the staged blocks, with their sizes."""
    answer = blobs.ask("GET", path, {"comp": "blocklist", "blocklisttype": kind})
    assert answer.status == 200, answer
    root = ET.fromstring(answer.body)
    return [None if part is None else
            [(base64.b64decode(b.findtext("Name")).decode(), int(b.findtext("Size")))
             for b in part]
            for part in (root.find("CommittedBlocks"), root.find("UncommittedBlocks"))]


def test_BL1_blocks_are_staged_and_committed(blobs):  # noqa: F811
    assert code(blobs.ask("GET", BIG, {"comp": "blocklist"})) == (404, "BlobNotFound")
    put = stage(blobs, "b1", b"x" * 100000)
    assert put.status == 201 and put.headers["x-ms-content-crc64"] and "ETag" not in put.headers
    assert stage(blobs, "b2", b"y").status == 201
    assert blocks(blobs) == [[], [("b1", 100000), ("b2", 1)]]
    # Staged blocks are no blob yet.
    assert code(blobs.get(BIG)) == (404, "BlobNotFound")
    assert names(listing(blobs)) == ([], "")
    assert names(listing(blobs, include="uncommittedblobs")) == (["big"], "")
    made = commit(blobs, ["b2", "b1", "b2"], x_ms_blob_content_type="text/x", x_ms_meta_a="1")
    assert made.status == 201 and made.headers["ETag"] and made.headers["Last-Modified"]
    got = blobs.get(BIG)
    assert got.body == b"y" + b"x" * 100000 + b"y"
    assert got.headers["Content-Type"] == "text/x" and got.headers["x-ms-meta-a"] == "1"
    assert got.headers["ETag"] == made.headers["ETag"]
    answer = blobs.ask("GET", BIG, {"comp": "blocklist"})
    assert answer.headers["x-ms-blob-content-length"] == "100002"
    assert answer.headers["ETag"] == made.headers["ETag"]
    assert blocks(blobs) == [[("b2", 1), ("b1", 100000), ("b2", 1)], []]
    for first, n in ((0, 1), (1, 5), (65530, 20), (99999, 3), (0, 100002)):
        part = blobs.get(BIG, x_ms_range=f"bytes={first}-{first + n - 1}")
        assert part.status == 206 and part.body == got.body[first:first + n]
    check(blobs)


def test_BL2_staging_changes_nothing_that_others_see(blobs):  # noqa: F811
    made = blobs.put(BIG, b"old" * 30000)
    assert stage(blobs, "b1", b"new").status == 201
    assert blobs.ask("PUT", BIG, {"comp": "metadata"}, headers={"x-ms-meta-a": "1"}).status == 200
    assert blobs.get(BIG).body == b"old" * 30000 and blocks(blobs) == [[], [("b1", 3)]]
    assert commit(blobs, ["b1"], if_match=made.headers["ETag"]).status == 412
    assert blocks(blobs) == [[], [("b1", 3)]]
    assert commit(blobs, ["b1"]).status == 201 and blobs.get(BIG).body == b"new"


def test_BL3_a_commit_takes_old_and_new_blocks_and_drops_the_others(blobs):  # noqa: F811
    for name in ("b1", "b2", "b3"):
        assert stage(blobs, name, name.encode() * 40000).status == 201
    assert commit(blobs, ["b1", "b2"]).status == 201
    assert blocks(blobs) == [[("b1", 80000), ("b2", 80000)], []]
    # The id of a committed block can be staged again; the list says which one it means.
    assert stage(blobs, "b2", b"first").status == 201
    assert stage(blobs, "b2", b"second").status == 201
    assert blocks(blobs) == [[("b1", 80000), ("b2", 80000)], [("b2", 6)]]
    both = [("Committed", "b2"), ("Uncommitted", "b2"), ("Latest", "b2"), ("Latest", "b1")]
    assert commit(blobs, both).status == 201
    assert blobs.get(BIG).body == b"b2" * 40000 + b"secondsecond" + b"b1" * 40000
    for kind, name in (("Uncommitted", "b1"), ("Committed", "b3"), ("Latest", "b4")):
        assert code(commit(blobs, [name], kind=kind)) == (400, "InvalidBlockList")
    assert stage(blobs, "b9", b"9").status == 201
    assert blobs.put(BIG, b"whole").status == 201
    assert blocks(blobs) == [[], []]
    assert code(commit(blobs, ["b9"])) == (400, "InvalidBlockList")
    assert commit(blobs, []).status == 201 and blobs.get(BIG).body == b""
    check(blobs)


def copied(blobs, source, to):  # noqa: F811
    answer = blobs.ask("PUT", to, headers={
        "x-ms-copy-source": f"http://127.0.0.1:{blobs.port}/{blobs.account}{source}"})
    assert answer.status == 202, answer
    return blobs.get(to)


def test_a_copy_has_content_of_its_own(blobs):  # noqa: F811
    for name in ("b1", "b2"):
        stage(blobs, name, name.encode() * 40000)
    commit(blobs, ["b2", "b1"])
    assert copied(blobs, BIG, "/photos/copy").body == b"b2" * 40000 + b"b1" * 40000
    assert copied(blobs, "/photos/copy", BIG).body == b"b2" * 40000 + b"b1" * 40000
    assert blobs.ask("DELETE", "/photos/copy").status == 202
    assert blobs.get(BIG).body == b"b2" * 40000 + b"b1" * 40000
    check(blobs)


def test_a_snapshot_keeps_the_content_of_its_time(blobs):  # noqa: F811
    log = "/photos/log"
    blobs.ask("PUT", log, headers={"x-ms-blob-type": "AppendBlob"})
    blobs.ask("PUT", log, {"comp": "appendblock"}, body=b"one" * 30000)
    stage(blobs, "b1", b"one" * 30000)
    commit(blobs, ["b1"])
    times = [blobs.ask("PUT", path, {"comp": "snapshot"}).headers["x-ms-snapshot"]
             for path in (BIG, log)]
    stage(blobs, "b2", b"two")
    commit(blobs, ["b2"])
    blobs.ask("PUT", log, {"comp": "appendblock"}, body=b"two")
    for path, time, now in zip((BIG, log), times, (b"two", b"one" * 30000 + b"two")):
        assert blobs.ask("GET", path, {"snapshot": time}).body == b"one" * 30000
        assert blobs.get(path).body == now
    check(blobs)


def test_get_block_list_has_three_kinds(blobs):  # noqa: F811
    stage(blobs, "b1", b"1")
    commit(blobs, ["b1"])
    stage(blobs, "b2", b"22")
    assert blocks(blobs, "committed") == [[("b1", 1)], None]
    assert blocks(blobs, "uncommitted") == [None, [("b2", 2)]]
    assert blocks(blobs, "all") == [[("b1", 1)], [("b2", 2)]]
    for kind in ("Both", "x"):
        answer = blobs.ask("GET", BIG, {"comp": "blocklist", "blocklisttype": kind})
        assert code(answer) == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize("blockid,want", [
    (b64("x"), 201), (b64("x" * 64), 201), (b64(bytes(range(192, 256))), 201),
    (b64("x" * 65), "InvalidBlockId"), ("", "InvalidBlockId"), ("a", "InvalidBlockId"),
    ("%%%%", "InvalidBlockId"), ("x" * 4000, "InvalidBlockId")])
def test_block_ids(blobs, blockid, want):  # noqa: F811
    answer = blobs.ask("PUT", BIG, {"comp": "block", "blockid": blockid}, body=b"1")
    body = f"<BlockList><Latest> {blockid}\n</Latest></BlockList>"
    listed_one = blobs.ask("PUT", BIG, {"comp": "blocklist"}, body=body.encode())
    if want == 201:
        assert answer.status == 201 and listed_one.status == 201
        assert blobs.get(BIG).body == b"1"
    else:
        assert code(answer) == (400, want) and code(listed_one) == (400, want)


def test_ids_of_a_blob_have_one_length(blobs):  # noqa: F811
    assert stage(blobs, "b1", b"1").status == 201
    for name in ("b", "b10"):
        assert code(stage(blobs, name, b"1")) == (400, "InvalidBlobOrBlock")
    commit(blobs, ["b1"])
    assert code(stage(blobs, "b10", b"1")) == (400, "InvalidBlobOrBlock")
    assert stage(blobs, "b10", b"1", path="/photos/other").status == 201


@pytest.mark.parametrize("body", [
    b"", b"<BlockList>", b"<List/>", b"<BlockList><Block>YQ==</Block></BlockList>",
    b"<BlockList><Latest><x/></Latest></BlockList>", b"<BlockList>YQ==</BlockList>"])
def test_a_body_that_is_no_block_list(blobs, body):  # noqa: F811
    answer = blobs.ask("PUT", BIG, {"comp": "blocklist"}, body=body)
    assert code(answer) == (400, "InvalidXmlDocument")


def test_sums_of_blocks_are_checked(blobs):  # noqa: F811
    body = b"a" * 512
    md5 = b64(hashlib.md5(body).digest())
    put = stage(blobs, "b1", body, **{"Content-MD5": md5})
    assert put.status == 201 and put.headers["Content-MD5"] == md5
    assert stage(blobs, "b1", body, **{"x-ms-content-crc64": "u661BimQ84c="}).status == 201
    bad = stage(blobs, "b2", body, **{"Content-MD5": b64(hashlib.md5(b"").digest())})
    assert code(bad) == (400, "Md5Mismatch")
    bad = stage(blobs, "b2", body, **{"x-ms-content-crc64": "u661BimQ84w="})
    assert code(bad) == (400, "Crc64Mismatch")
    bad = commit(blobs, ["b1"], content_md5=md5)
    assert code(bad) == (400, "Md5Mismatch") and blocks(blobs) == [[], [("b1", 512)]]
    right = b64(hashlib.md5(listed(["b1"])).digest())
    assert commit(blobs, ["b1"], content_md5=right).headers["Content-MD5"] == right


@pytest.mark.parametrize("version", ["2018-11-09", "2019-02-02"])
def test_sums_of_a_block_that_comes_in_parts(blobs, version):  # noqa: F811
    body = random.Random(7).randbytes(3 * MIB + 1)
    md5, wrong = b64(hashlib.md5(body).digest()), b64(hashlib.md5(b"").digest())
    ask = {"query": {"comp": "block", "blockid": b64("b1")}, "body": body, "version": version}
    told = blobs.ask("PUT", BIG, **ask).headers
    if version < "2019-02-02":
        assert told["Content-MD5"] == md5 and "x-ms-content-crc64" not in told
    else:
        crc64 = told["x-ms-content-crc64"]
        whole = blobs.ask("PUT", "/photos/whole", body=body,
                          headers={"x-ms-blob-type": "BlockBlob"}).headers
        assert (whole["x-ms-content-crc64"], whole["Content-MD5"]) == (crc64, md5)
        assert blobs.ask("PUT", BIG, headers={"x-ms-content-crc64": crc64}, **ask).status == 201
    assert blobs.ask("PUT", BIG, headers={"Content-MD5": md5}, **ask).headers["Content-MD5"] == md5
    assert code(blobs.ask("PUT", BIG, headers={"Content-MD5": wrong}, **ask)) == (400, "Md5Mismatch")


def test_sizes_of_blocks(blobs):  # noqa: F811
    assert code(stage(blobs, "b1", b"")) == (400, "InvalidHeaderValue")
    for version, limit in (("2015-12-11", 4 * MIB), ("2019-07-07", 100 * MIB)):
        for size, want in ((limit, 201), (limit + 1, 413)):
            answer = blobs.ask("PUT", BIG, {"comp": "block", "blockid": b64("b1")},
                               body=bytes(size), version=version)
            assert answer.status == want, (version, size)
    assert blocks(blobs)[1] == [("b1", 100 * MIB)]


@pytest.mark.parametrize("version, limit", [("2015-12-11", 4 * MIB), ("2019-07-07", 100 * MIB),
                                            ("2021-12-02", 4000 * MIB)])
def test_a_block_that_is_too_large_is_refused_before_it_is_sent(blobs, version, limit):  # noqa: F811
    for length, want in (limit, b"100"), (limit + 1, b"413"):
        with blobs.open("PUT", BIG, query={"comp": "block", "blockid": b64("b1")}, length=length,
                        version=version, headers={"expect": "100-continue"}) as s:
            assert s.recv(4096).split()[1] == want


def send_chunks(blobs, mib, **request):  # noqa: F811
    """Sends a body of unknown length; returns the answer's status, or None if the server hung up."""
    part = b"100000\r\n" + bytes(MIB) + b"\r\n"
    with blobs.open("PUT", BIG, headers={"transfer-encoding": "chunked"}, **request) as s:
        try:
            for _ in range(mib):
                s.sendall(part)
            s.sendall(b"0\r\n\r\n")
            return int(s.recv(4096).split()[1])
        except (OSError, IndexError):
            return None


@pytest.mark.parametrize("query, version, limit", [
    ({"comp": "block", "blockid": b64("b1")}, "2015-12-11", 4), ({"comp": "appendblock"}, "2021-12-02", 4),
    ({"comp": "block", "blockid": b64("b1")}, "2019-07-07", 100)])
def test_a_block_is_refused_while_it_is_sent(blobs, query, version, limit):  # noqa: F811
    """After the limit the server reads some more, to answer, and then hangs up."""
    if query["comp"] == "appendblock":
        blobs.ask("PUT", BIG, headers={"x-ms-blob-type": "AppendBlob"})
    ask = {"query": query, "version": version}
    assert send_chunks(blobs, limit, **ask) == 201
    assert send_chunks(blobs, limit + 1, **ask) == 413
    assert send_chunks(blobs, limit + 64, **ask) is None


def test_blocks_belong_to_block_blobs(blobs):  # noqa: F811
    blobs.ask("PUT", BIG, headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"})
    assert code(stage(blobs, "b1", b"1")) == (409, "InvalidBlobType")
    assert code(commit(blobs, [])) == (409, "InvalidBlobType")
    assert code(blobs.ask("GET", BIG, {"comp": "blocklist"})) == (409, "InvalidBlobType")
    assert code(stage(blobs, "b1", b"1", "/none/x")) == (404, "ContainerNotFound")


def test_a_lease_guards_blocks_too(blobs):  # noqa: F811
    stage(blobs, "b1", b"1")
    commit(blobs, ["b1"])
    lease = blobs.ask("PUT", BIG, {"comp": "lease"}, headers={
        "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}).headers["x-ms-lease-id"]
    assert code(stage(blobs, "b2", b"2")) == (412, "LeaseIdMissing")
    assert code(commit(blobs, ["b1"])) == (412, "LeaseIdMissing")
    assert stage(blobs, "b2", b"2", **{"x-ms-lease-id": lease}).status == 201
    assert commit(blobs, ["b2"], x_ms_lease_id=lease).status == 201


def test_BL4_a_blob_has_up_to_50000_blocks(blobs):  # noqa: F811
    assert stage(blobs, "b1", b"1").status == 201
    assert stage(blobs, "b2", b"23").status == 201
    ids = ["b1", "b2"] * 25000
    assert code(commit(blobs, ids + ["b1"])) == (409, "BlockCountExceedsLimit")
    assert commit(blobs, ids).status == 201
    assert blobs.get(BIG).body == b"123" * 25000
    assert len(blocks(blobs)[0]) == 50000
    for first in (0, 37, 74998):
        assert blobs.get(BIG, x_ms_range=f"bytes={first}-{first + 1}").body == (
            b"123" * 25000)[first:first + 2]
    check(blobs)


@pytest.mark.parametrize("seed", range(2))
def test_random_lists_agree_with_bytes(blobs, seed):  # noqa: F811
    rng = random.Random(seed)
    committed, staged, content = {}, {}, None
    for _ in range(80):
        what = rng.choice("sssscpd")
        if what == "s":
            name, body = f"b{rng.randrange(8)}", rng.randbytes(rng.choice((1, 500, 70000)))
            assert stage(blobs, name, body).status == 201
            staged[name] = body
        elif what == "c":
            have = {**committed, **staged}
            ids = [rng.choice(sorted(have)) for _ in range(rng.randrange(6))] if have else []
            assert commit(blobs, ids).status == 201
            content = b"".join(have[i] for i in ids)
            committed, staged = {i: have[i] for i in ids}, {}
        elif what == "p" and rng.random() < 0.3:
            content, committed, staged = rng.randbytes(9000), {}, {}
            assert blobs.put(BIG, content).status == 201
        elif what == "d" and rng.random() < 0.2 and content is not None:
            assert blobs.ask("DELETE", BIG).status == 202
            content, committed, staged = None, {}, {}
        got = blobs.get(BIG)
        assert got.status == 404 if content is None else got.body == content
        if content is not None or staged:
            assert dict(blocks(blobs)[0]) == {k: len(v) for k, v in committed.items()}
            assert dict(blocks(blobs)[1]) == {k: len(v) for k, v in staged.items()}
    check(blobs)


def test_BL5_a_blob_of_many_blocks_takes_constant_memory(blobs):  # noqa: F811
    size, count, sums = 4 * MIB, 60, hashlib.md5()
    for i in range(2):
        stage(blobs, f"b{i:02}", bytes(size))
    before = memory_of(blobs.server.proc.pid)
    for i in range(count):
        body = os.urandom(1 << 12) * (size >> 12)
        sums.update(body)
        assert stage(blobs, f"b{i:02}", body).status == 201
    assert commit(blobs, [f"b{i:02}" for i in range(count)]).status == 201
    assert hashlib.md5(blobs.get(BIG).body).digest() == sums.digest()
    # A sanitizer keeps freed memory for a while.
    assert sanitized() or memory_of(blobs.server.proc.pid) - before < 40 * MIB


def test_BL6_blocks_that_were_acknowledged_outlive_a_kill(blobs, rowfs):  # noqa: F811
    kept, commits, enough = {}, [], threading.Event()

    def work(i):
        path = f"/photos/{i}"
        for n in range(10000):
            body = f"{n:05}".encode() * 2000
            try:
                if stage(blobs, f"{n:05}", body, path).status != 201:
                    return
                kept[i, n] = body
                if n % 5 == 4:
                    commits.append((i, n))
                    if commit(blobs, [f"{k:05}" for k in range(n + 1)], path).status != 201:
                        return
            except OSError:
                return  # the server has been killed
            if n == 20:
                enough.set()

    def end(_):
        assert enough.wait(60)
        blobs.server.kill9()

    many(4, lambda i: work(i) if i < 3 else end(i))
    found = subprocess.run([str(rowfs.program), "check", str(blobs.store)], capture_output=True,
                           text=True, check=False)
    assert found.returncode == 0 and "clean" in found.stdout, found.stdout + found.stderr
    blobs.server.restart()
    again = blobs_of(blobs.server, blobs.store)
    for i in range(3):
        committed, staged = blocks(again, path=f"/photos/{i}")
        mine = [n for k, n in kept if k == i]
        assert {int(name) for name, _ in committed + staged} >= set(mine)
        # The list is a whole one: the last that was answered, or the one under way.
        asked = [n for k, n in commits if k == i]
        assert len(committed) - 1 in asked[-2:] or not asked
        if committed:
            got = again.get(f"/photos/{i}").body
            assert got == b"".join(f"{n:05}".encode() * 2000 for n in range(len(committed)))
