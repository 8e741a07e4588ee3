# SPDX-License-Identifier: MIT
"""Put Block, Append Block and Put Page From URL: the bytes come from another blob of the server."""

import base64
import hashlib
import random

import pytest
from blob_client import code
from test_blob_copies import X, url
from test_blob_leases import A, acquire
from test_blobs import MIB, blobs  # noqa: F401  the fixture
from test_block_blobs import BIG, b64, blocks, commit, stage
from test_page_blobs import DISK, create

SOURCE = random.Random(3).randbytes(3 * MIB + 512)


@pytest.fixture
def source(blobs):  # noqa: F811
    assert blobs.put(X, SOURCE).status == 201
    return blobs


def from_url(client, kind, **headers):
    """Takes bytes of X into a block, an append blob or a page blob."""
    path, query, more = {
        "block": (BIG, {"comp": "block", "blockid": b64("b1")}, {}),
        "append": ("/photos/log", {"comp": "appendblock"}, {}),
        "page": (DISK, {"comp": "page"}, {"x-ms-page-write": "update"})}[kind]
    return client.ask("PUT", path, query, headers={
        "x-ms-copy-source": url(client), **more,
        **{k.replace("_", "-"): v for k, v in headers.items()}})


def test_BL104_blocks_come_from_another_blob(source):
    stage(source, "b0", b"first")
    assert from_url(source, "block").status == 201
    assert blocks(source) == [[], [("b0", 5), ("b1", len(SOURCE))]]
    assert commit(source, ["b0", "b1"]).status == 201
    assert source.get(BIG).body == b"first" + SOURCE
    assert from_url(source, "block", x_ms_source_range="bytes=10-2097161").status == 201
    assert commit(source, ["b1"]).status == 201 and source.get(BIG).body == SOURCE[10:2097162]


def test_BL104_an_append_comes_from_another_blob(source):
    assert source.put("/photos/log", b"", x_ms_blob_type="AppendBlob").status == 201
    for first, last in (0, 99), (1000, 1099):
        assert from_url(source, "append", x_ms_source_range=f"bytes={first}-{last}").status == 201
    assert source.get("/photos/log").body == SOURCE[:100] + SOURCE[1000:1100]


@pytest.mark.parametrize("size, want", [(4 * MIB, (400, "Md5Mismatch")), (4 * MIB + 1, (413, "RequestBodyTooLarge"))])
def test_BL104_a_source_beyond_the_limit_is_not_read(blobs, size, want):  # noqa: F811
    """The wrong sum shows that the bytes were read."""
    assert blobs.put(X, bytes(size)).status == 201
    assert blobs.put("/photos/log", b"", x_ms_blob_type="AppendBlob").status == 201
    blobs.version = "2021-12-02"
    assert code(from_url(blobs, "append", x_ms_source_content_md5=b64("x" * 16))) == want
    assert from_url(blobs, "append").status == (201 if size == 4 * MIB else 413)


def test_BL104_pages_come_from_another_blob(source):
    create(source, 8 * MIB)
    assert from_url(source, "page", x_ms_range="bytes=1024-2047",
                    x_ms_source_range="bytes=7-1030").status == 201
    assert from_url(source, "page", x_ms_range=f"bytes={MIB}-{MIB + len(SOURCE) - 1}").status == 201
    disk = source.get(DISK).body
    assert disk[1024:2048] == SOURCE[7:1031] and disk[MIB:MIB + len(SOURCE)] == SOURCE
    wrong = from_url(source, "page", x_ms_range="bytes=0-511", x_ms_source_range="bytes=0-1023")
    assert code(wrong) == (416, "InvalidPageRange")


@pytest.mark.parametrize("headers, answer", [
    ({"x_ms_source_range": "bytes=9999999-"}, (416, "InvalidRange")),
    ({"x_ms_source_range": "10-20"}, (400, "InvalidHeaderValue")),
    ({"x_ms_source_if_match": '"0x1"'}, (412, "SourceConditionNotMet")),
    ({"x_ms_source_content_md5": base64.b64encode(bytes(16)).decode()}, (400, "Md5Mismatch")),
    ({"x_ms_source_content_crc64": base64.b64encode(bytes(8)).decode()}, (400, "Crc64Mismatch")),
    ({"x_ms_copy_source": "http://127.0.0.1:1/a/b/c"}, (404, "CannotVerifyCopySource")),
    ({"x_ms_copy_source": "photos/x"}, (400, "InvalidHeaderValue"))])
def test_BL104_a_wrong_source_is_refused(source, headers, answer):
    assert code(from_url(source, "block", **headers)) == answer
    assert code(source.ask("GET", BIG, {"comp": "blocklist"})) == (404, "BlobNotFound")


def test_BL104_sums_and_leases_of_the_source(source):
    md5 = base64.b64encode(hashlib.md5(SOURCE).digest()).decode()
    assert from_url(source, "block", x_ms_source_content_md5=md5).status == 201
    acquire(source, X)
    assert from_url(source, "block").status == 201
    assert from_url(source, "block", x_ms_source_lease_id=A).status == 201
    wrong = from_url(source, "block", x_ms_source_lease_id="00000000-0000-0000-0000-000000000009")
    assert code(wrong) == (412, "SourceConditionNotMet")
    assert source.ask("PUT", X, {"comp": "tier"}, headers={
        "x-ms-access-tier": "Archive", "x-ms-lease-id": A}).status == 200
    assert code(from_url(source, "block")) == (409, "BlobArchived")
