# SPDX-License-Identifier: MIT
"""Append blobs over REST: create, append, conditions, limits, kills."""

import threading

import pytest
from blob_client import code
from test_blobs import MIB, blobs, listing  # noqa: F401  the fixture
from test_block_blobs import commit, copied, stage
from test_page_blobs import check, killed_under_writers

LOG = "/photos/log"


def create(blobs, **headers):
    return blobs.ask("PUT", LOG, headers={"x-ms-blob-type": "AppendBlob", **headers})


def append(blobs, body, version=None, **headers):
    return blobs.ask("PUT", LOG, {"comp": "appendblock"}, body=body, version=version,
                     headers={f"x-ms-blob-condition-{k}": str(v) for k, v in headers.items()})


def test_BL10_blocks_are_appended_in_order(blobs):  # noqa: F811
    made = create(blobs, **{"x-ms-blob-content-type": "text/x", "x-ms-meta-a": "1"})
    assert made.status == 201
    head = blobs.ask("HEAD", LOG).headers
    assert head["x-ms-blob-type"] == "AppendBlob" and head["Content-Length"] == "0"
    assert head["x-ms-blob-committed-block-count"] == "0" and head["x-ms-meta-a"] == "1"
    content = b""
    for n in range(130):
        body = f"{n}\n".encode() * (1 if n % 10 else 9000)
        put = append(blobs, body)
        assert put.status == 201 and put.headers["x-ms-content-crc64"]
        assert put.headers["x-ms-blob-append-offset"] == str(len(content))
        assert put.headers["x-ms-blob-committed-block-count"] == str(n + 1)
        assert put.headers["ETag"] > made.headers["ETag"]
        content += body
    got = blobs.get(LOG)
    assert got.body == content and got.headers["Content-Type"] == "text/x"
    assert got.headers["x-ms-blob-committed-block-count"] == "130"
    assert got.headers["ETag"] == put.headers["ETag"]
    assert blobs.get(LOG, x_ms_range="bytes=70000-").body == content[70000:]
    assert b"<BlobType>AppendBlob</BlobType>" in listing(blobs).body
    assert blobs.ask("PUT", LOG, {"comp": "metadata"}, headers={"x-ms-meta-b": "2"}).status == 200
    assert append(blobs, b"end").status == 201 and blobs.get(LOG).body == content + b"end"
    assert create(blobs).status == 201 and blobs.get(LOG).body == b""
    check(blobs)


def test_BL11_appends_have_conditions(blobs):  # noqa: F811
    create(blobs)
    assert append(blobs, b"12345", appendpos=0, maxsize=5).status == 201
    for at in (4, 6):
        assert code(append(blobs, b"6", appendpos=at)) == (412, "AppendPositionConditionNotMet")
    assert code(append(blobs, b"6", maxsize=5)) == (412, "MaxBlobSizeConditionNotMet")
    assert append(blobs, b"6", appendpos=5, maxsize=6).status == 201
    for bad in (-1, "x"):
        assert code(append(blobs, b"7", appendpos=bad)) == (400, "InvalidHeaderValue")
        assert code(append(blobs, b"7", maxsize=bad)) == (400, "InvalidHeaderValue")
    assert blobs.get(LOG).body == b"123456"


@pytest.mark.parametrize("version,limit", [("2021-12-02", 4 * MIB), ("2022-11-02", 100 * MIB)])
def test_sizes_of_appended_blocks(blobs, version, limit):  # noqa: F811
    create(blobs)
    assert append(blobs, bytes(limit), version).status == 201
    assert code(append(blobs, bytes(limit + 1), version)) == (413, "RequestBodyTooLarge")
    assert code(append(blobs, b"")) == (400, "InvalidHeaderValue")
    assert blobs.ask("HEAD", LOG).headers["Content-Length"] == str(limit)


def test_a_copy_can_be_appended_to(blobs):  # noqa: F811
    create(blobs)
    for to in ("/photos/empty", "/photos/copy", "/photos/copy"):
        got = copied(blobs, LOG, to)
        assert got.headers["x-ms-blob-type"] == "AppendBlob"
        assert append(blobs, b"12345" * 20000).status == 201
    assert copied(blobs, "/photos/empty", LOG).body == b""
    assert append(blobs, b"6").status == 201
    assert copied(blobs, "/photos/copy", LOG).body == b"12345" * 40000
    assert append(blobs, b"6").status == 201
    assert blobs.get(LOG).body == b"12345" * 40000 + b"6"
    check(blobs)


def test_append_blobs_are_a_type_of_their_own(blobs):  # noqa: F811
    assert code(append(blobs, b"1")) == (404, "BlobNotFound")
    blobs.put(LOG, b"block")
    assert code(append(blobs, b"1")) == (409, "InvalidBlobType")
    assert stage(blobs, "b1", b"1", LOG).status == 201
    assert create(blobs).status == 201
    assert code(stage(blobs, "b1", b"1", LOG)) == (409, "InvalidBlobType")
    assert code(commit(blobs, [], LOG)) == (409, "InvalidBlobType")
    assert code(create(blobs, **{"If-None-Match": "*"})) == (409, "BlobAlreadyExists")
    full = blobs.ask("PUT", LOG, body=b"x", headers={"x-ms-blob-type": "AppendBlob"})
    assert code(full) == (400, "InvalidHeaderValue")
    assert append(blobs, b"1").status == 201 and blobs.put(LOG, b"now").status == 201
    check(blobs)


def test_BL12_all_appends_of_several_clients_are_kept_over_a_kill(blobs):  # noqa: F811
    create(blobs)
    kept, enough = [], threading.Event()

    def work(i):
        for n in range(100000):
            line = f"{i} {n}\n".encode()
            try:
                put = append(blobs, line)
            except OSError:
                return  # the server has been killed
            if put.status == 503:
                continue  # others were faster
            kept.append((int(put.headers["x-ms-blob-append-offset"]), line))
            if len(kept) > 150:
                enough.set()

    content = killed_under_writers(blobs, work, enough).get(LOG).body
    assert all(content[at:at + len(line)] == line for at, line in kept)
    lines = content.splitlines()
    assert len(lines) == len(set(lines)) <= len(kept) + 4  # four were under way
