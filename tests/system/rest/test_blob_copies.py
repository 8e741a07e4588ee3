# SPDX-License-Identifier: MIT
"""Copies of blobs over REST: what is copied, sources, conditions, errors, memory, clients."""

import base64
import contextlib
import hashlib
import os
import re
import threading
import xml.etree.ElementTree as ET

import pytest
from blob_client import Blobs, code
from rest_client import ACCOUNT
from test_blob_leases import A, acquire
from test_blobs import MIB, blobs, listing, memory_of, parts, sas  # noqa: F401  the fixture
from test_page_blobs import DISK, create, parsed, write
from tools import sanitized

X, Y = "/photos/x", "/photos/y"
FROM_URL = {"x-ms-blob-type": "BlockBlob"}


def url(blobs, path=X):
    return f"http://127.0.0.1:{blobs.port}/{ACCOUNT}{path}"


def copy(blobs, source, to=Y, **headers):
    return blobs.ask("PUT", to, headers={
        "x-ms-copy-source": source, **{k.replace("_", "-"): v for k, v in headers.items()}})


@pytest.mark.parametrize("size", [0, 4096, 4097, 65536, MIB + 1, 3 * MIB + 17])
def test_BL26_a_copy_has_the_content_of_its_source(blobs, rowfs, size):
    body = os.urandom(size)
    blobs.put(X, body, content_type="image/jpeg", x_ms_meta_a="1", cache_control="no-store")
    made = copy(blobs, url(blobs))
    assert made.status == 202 and made.headers["x-ms-copy-status"] == "success"
    assert blobs.put(X, b"other").status == 201
    got = blobs.get(Y)
    assert got.body == body and got.headers["ETag"] == made.headers["ETag"]
    assert got.headers["Content-Type"] == "image/jpeg" and got.headers["x-ms-meta-a"] == "1"
    assert got.headers["Cache-Control"] == "no-store"
    assert got.headers["Content-MD5"] == base64.b64encode(hashlib.md5(body).digest()).decode()
    assert got.headers["x-ms-copy-id"] == made.headers["x-ms-copy-id"]
    assert got.headers["x-ms-copy-source"] == url(blobs)
    assert got.headers["x-ms-copy-progress"] == f"{size}/{size}"
    assert "GMT" in got.headers["x-ms-copy-completion-time"]
    shown = [b.findtext("Properties/CopyId") for b in ET.fromstring(
        listing(blobs, include="copy").body).iter("Blob")]
    assert shown == [None, made.headers["x-ms-copy-id"]]
    # Metadata of the request take the place of the source's.
    assert copy(blobs, url(blobs, Y), "/photos/z", x_ms_meta_b="2").status == 202
    got = blobs.get("/photos/z")
    assert got.body == body and got.headers["x-ms-meta-b"] == "2"
    assert "x-ms-meta-a" not in got.headers
    assert blobs.ask("PUT", Y, {"comp": "properties"}).status == 200
    assert "x-ms-copy-id" not in blobs.get(Y).headers
    blobs.server.stop()
    assert "1 container, 3 blobs: clean" in rowfs("check", blobs.store).stdout


def test_BL26_a_page_blob_is_copied_with_its_ranges(blobs, rowfs):
    assert create(blobs, 8 << 40).status == 201
    first, last = os.urandom(4096), os.urandom(512)
    write(blobs, 1024, first)
    write(blobs, (8 << 40) - 512, last)
    assert copy(blobs, url(blobs, DISK)).status == 202
    write(blobs, 1024, bytes(4096))
    ranges = blobs.ask("GET", Y, {"comp": "pagelist"})
    assert parsed(ranges)[0] == [(1024, 5119), ((8 << 40) - 512, (8 << 40) - 1)]
    assert blobs.get(Y, x_ms_range="bytes=1024-5119").body == first
    assert blobs.get(Y, x_ms_range=f"bytes={(8 << 40) - 512}-").body == last
    assert code(copy(blobs, url(blobs, DISK), "/photos/z", **FROM_URL)) == (409, "InvalidBlobType")
    blobs.server.stop()
    assert "2 blobs: clean" in rowfs("check", blobs.store).stdout


def test_BL26_a_copy_takes_constant_memory(blobs):
    n, sums = 100, hashlib.md5()

    def source():
        for part in parts(n):
            sums.update(part)
            yield part
    assert blobs.ask("PUT", X, body=source(), length=n * MIB, headers=FROM_URL).status == 201
    before = memory_of(blobs.server.proc.pid)
    assert copy(blobs, url(blobs)).status == 202
    assert hashlib.md5(blobs.get(Y).body).digest() == sums.digest()
    assert sanitized() or memory_of(blobs.server.proc.pid) - before < 20 * MIB


@contextlib.contextmanager
def writer(*writes):
    """Makes the writes again and again, each with the next number; all must be answered with 201."""
    ended, failed = threading.Event(), []

    def run():
        n = 0
        while not ended.is_set():
            n += 1
            failed.extend(a for a in (w(n) for w in writes) if a.status != 201)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not failed


def copied(blobs):
    """A copy beside a writer; None if the writer was faster every time."""
    answer = copy(blobs, url(blobs, DISK))
    assert answer.status == 202 or code(answer) == (503, "ServerBusy")
    return blobs.get(Y).body if answer.status == 202 else None


def test_BL26_a_copy_beside_a_writer_is_one_version(blobs):
    def put(n):
        return blobs.put(DISK, bytes([n % 251]) * (4 * MIB))
    assert put(0).status == 201
    with writer(put):
        for _ in range(12):
            body = copied(blobs)
            assert body is None or (len(body) == 4 * MIB and len(set(body)) == 1)


def test_BL26_a_copy_of_pages_beside_a_writer_is_one_version(blobs):
    size = 4 * MIB

    def mark(at):
        return lambda n: write(blobs, at, n.to_bytes(512, "little"))
    assert create(blobs, size).status == write(blobs, 0, bytes(size)).status == 201
    # The last page is written first, so it is at most one number ahead of the first page.
    with writer(mark(size - 512), mark(0)):
        for _ in range(12):
            body = copied(blobs)
            if body is not None:
                first, last = (int.from_bytes(p, "little") for p in (body[:512], body[-512:]))
                assert 0 <= last - first <= 1
    assert copied(blobs) is not None


def test_BL27_a_blob_is_put_from_a_url(blobs):
    blobs.put(X, b"one", content_type="text/plain", x_ms_meta_a="1")
    made = copy(blobs, url(blobs), **FROM_URL)
    assert made.status == 201 and "x-ms-copy-id" not in made.headers
    got = blobs.get(Y)
    assert (got.body, got.headers["Content-Type"]) == (b"one", "text/plain")
    assert "x-ms-copy-id" not in got.headers
    assert copy(blobs, url(blobs), **FROM_URL, x_ms_copy_source_blob_properties="false",
                x_ms_blob_content_type="a/b").status == 201
    assert blobs.get(Y).headers["Content-Type"] == "a/b"
    md5 = base64.b64encode(hashlib.md5(b"one").digest()).decode()
    assert copy(blobs, url(blobs), x_ms_requires_sync="true",
                x_ms_source_content_md5=md5).status == 202
    bad = base64.b64encode(bytes(16)).decode()
    assert code(copy(blobs, url(blobs), x_ms_source_content_md5=bad)) == (400, "Md5Mismatch")
    assert code(copy(blobs, url(blobs), x_ms_source_content_md5="no")) == (400, "InvalidMd5")
    assert code(copy(blobs, url(blobs), x_ms_blob_type="PageBlob")) == (400, "InvalidHeaderValue")


def test_BL28_conditions_and_leases_of_both_blobs(blobs):
    source = blobs.put(X, b"1").headers["ETag"]
    target = blobs.put(Y, b"2").headers["ETag"]
    past = "Fri, 20 Nov 2020 12:29:19 GMT"
    for headers in ({"x_ms_source_if_match": '"0x1"'}, {"x_ms_source_if_none_match": source},
                    {"x_ms_source_if_unmodified_since": past}, {"x_ms_source_lease_id": A}):
        assert code(copy(blobs, url(blobs), **headers)) == (412, "SourceConditionNotMet")
    assert code(copy(blobs, url(blobs), if_match=source)) == (412, "ConditionNotMet")
    assert code(copy(blobs, url(blobs), if_none_match="*")) == (409, "BlobAlreadyExists")
    assert code(copy(blobs, url(blobs), x_ms_source_if_tags="a = 'b'")) == (501, "NotImplemented")
    acquire(blobs, Y)
    assert code(copy(blobs, url(blobs))) == (412, "LeaseIdMissing")
    assert blobs.get(Y).body == b"2"
    assert copy(blobs, url(blobs), if_match=target, x_ms_source_if_match=source,
                x_ms_lease_id=A).status == 202
    assert blobs.get(Y).body == b"1"
    # A leased source can be copied; the copy has no lease.
    assert copy(blobs, url(blobs, Y), "/photos/z", x_ms_source_lease_id=A).status == 202
    assert blobs.get("/photos/z").headers["x-ms-lease-state"] == "available"


def test_BL29_a_source_must_be_readable(blobs, rowfs):
    blobs.put(X, b"1")
    for wrong in ("http://example.com/acct/photos/x", f"http://127.0.0.1:1/{ACCOUNT}/photos/x",
                  f"http://127.0.0.1:{blobs.port}/nobody/photos/x", url(blobs, "")):
        assert code(copy(blobs, wrong)) == (404, "CannotVerifyCopySource")
    assert code(copy(blobs, "/photos/x")) == (400, "InvalidHeaderValue")
    assert code(copy(blobs, url(blobs, "/photos/none"))) == (404, "BlobNotFound")
    assert code(copy(blobs, url(blobs, "/none/x"))) == (404, "ContainerNotFound")
    # Another account of the store needs a SAS for the source, or a public container.
    other = "otheraccount"
    added = rowfs("account", "add", blobs.store, other).stdout
    key = re.search(r"AccountKey=([^;\s]+)", added)[1]
    there = Blobs(blobs.port, account=other, key=key)
    assert there.ask("PUT", "/mine", {"restype": "container"}).status == 201
    assert code(copy(there, url(blobs), "/mine/x")) == (403, "CannotVerifyCopySource")
    read = sas(blobs, rowfs, "photos/x", "--permissions=r", "--expiry=+1h")
    assert copy(there, read, "/mine/x").status == 202
    got = there.get("/mine/x")
    assert got.body == b"1" and "sig" not in got.headers["x-ms-copy-source"]
    list_only = sas(blobs, rowfs, "photos", "--permissions=l", "--expiry=+1h")
    assert code(copy(there, list_only.replace("/photos?", "/photos/x?"), "/mine/y")) == (
        403, "CannotVerifyCopySource")
    assert blobs.ask("PUT", "/photos", {"restype": "container", "comp": "acl"},
                     headers={"x-ms-blob-public-access": "blob"}).status == 200
    assert copy(there, url(blobs), "/mine/y").status == 202


def test_BL29_no_copy_is_ever_pending(blobs):
    blobs.put(X, b"1")
    name = copy(blobs, url(blobs)).headers["x-ms-copy-id"]

    def abort(path, **headers):
        return blobs.ask("PUT", path, {"comp": "copy", "copyid": name}, headers=headers)
    assert code(abort(Y, **{"x-ms-copy-action": "abort"})) == (409, "NoPendingCopyOperation")
    assert code(abort("/photos/z", **{"x-ms-copy-action": "abort"})) == (404, "BlobNotFound")
    assert code(abort(Y)) == (400, "InvalidHeaderValue")


def test_debians_client_copies(blobs):
    storage = pytest.importorskip("azure.storage.blob")
    client = storage.BlobServiceClient.from_connection_string(blobs.connection)
    container = client.get_container_client("photos")
    body = os.urandom(MIB)
    source = container.upload_blob("x", body, metadata={"k": "v"})
    target = container.get_blob_client("y")
    started = target.start_copy_from_url(source.url)
    assert started["copy_status"] == "success"
    props = target.get_blob_properties()
    assert props.copy.status == "success" and props.metadata == {"k": "v"}
    assert target.download_blob().readall() == body
    with pytest.raises(Exception, match="NoPendingCopyOperation"):
        target.abort_copy(started["copy_id"])
