# SPDX-License-Identifier: MIT
"""Access tiers of blobs over REST: set, shown, archived blobs, errors, a client."""

import xml.etree.ElementTree as ET

import pytest
from blob_client import code
from test_blob_copies import copy, url
from test_blob_leases import A, B, acquire
from test_blobs import blobs, listing  # noqa: F401  the fixture
from test_page_blobs import DISK, create

X = "/photos/x"


def set_tier(blobs, tier, path=X, **headers):
    return blobs.ask("PUT", path, {"comp": "tier"}, headers={
        "x-ms-access-tier": tier, **{k.replace("_", "-"): v for k, v in headers.items()}})


def shown(blobs, path=X):
    head = blobs.ask("HEAD", path)
    assert head.status == 200
    return head.headers["x-ms-access-tier"], head.headers.get("x-ms-access-tier-inferred")


def test_BL36_a_tier_is_set_and_shown(blobs):
    etag = blobs.put(X, b"1").headers["ETag"]
    assert shown(blobs) == ("Hot", "true")
    for tier in ("Cool", "cold", "Hot"):
        assert set_tier(blobs, tier).status == 200
        assert shown(blobs) == (tier.capitalize(), None)
    assert "GMT" in blobs.ask("HEAD", X).headers["x-ms-access-tier-change-time"]
    assert blobs.get(X).headers["ETag"] == etag
    assert blobs.put("/photos/y", b"1", x_ms_access_tier="Cool").status == 201
    assert copy(blobs, url(blobs), "/photos/z", x_ms_access_tier="Cold").status == 202
    assert blobs.ask("PUT", "/photos/zz", {"comp": "blocklist"}, body=b"<BlockList/>",
                     headers={"x-ms-access-tier": "Archive"}).status == 201
    tiers = [b.findtext("Properties/AccessTier") for b in ET.fromstring(
        listing(blobs).body).iter("Blob")]
    assert tiers == ["Hot", "Cool", "Cold", "Archive"]
    assert code(set_tier(blobs, "Warm")) == (400, "InvalidHeaderValue")
    assert code(set_tier(blobs, "")) == (400, "MissingRequiredHeader")
    assert code(blobs.put(X, b"2", x_ms_access_tier="Warm")) == (400, "InvalidHeaderValue")
    assert code(set_tier(blobs, "Hot", "/photos/none")) == (404, "BlobNotFound")
    assert create(blobs, 512).status == 201
    assert code(set_tier(blobs, "Hot", DISK)) == (409, "InvalidBlobType")
    acquire(blobs)
    assert code(set_tier(blobs, "Cool", x_ms_lease_id=B))[0] == 412
    assert set_tier(blobs, "Cool", x_ms_lease_id=A).status == 200
    assert blobs.ask("HEAD", X).headers["x-ms-lease-state"] == "leased"


def test_BL36_an_archived_blob_is_not_read(blobs):
    blobs.put(X, b"1")
    assert set_tier(blobs, "Archive").status == 200
    archived = (409, "BlobArchived")
    assert code(blobs.get(X)) == archived
    assert code(blobs.get(X, x_ms_range="bytes=0-0")) == archived
    assert code(copy(blobs, url(blobs))) == archived
    assert code(blobs.ask("PUT", X, {"comp": "snapshot"})) == archived
    assert shown(blobs) == ("Archive", None)
    assert blobs.ask("GET", X, {"comp": "metadata"}).status == 200
    assert set_tier(blobs, "Hot").status == 202
    assert blobs.get(X).body == b"1"
    assert set_tier(blobs, "Archive").status == 200
    assert blobs.put(X, b"2").status == 201 and blobs.get(X).body == b"2"
    assert set_tier(blobs, "Archive").status == 200
    assert blobs.ask("DELETE", X).status == 202


def test_debians_client_sets_tiers(blobs):
    storage = pytest.importorskip("azure.storage.blob")
    client = storage.BlobServiceClient.from_connection_string(blobs.connection)
    blob = client.get_container_client("photos").upload_blob("x", b"1")
    blob.set_standard_blob_tier("Archive")
    assert blob.get_blob_properties().blob_tier == "Archive"
    with pytest.raises(Exception, match="BlobArchived"):
        blob.download_blob()
    blob.set_standard_blob_tier("Cool")
    assert blob.download_blob().readall() == b"1"
