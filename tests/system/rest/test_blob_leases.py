# SPDX-License-Identifier: MIT
"""Leases of blobs and containers over REST: operations, what they guard, headers, lists, kills."""

import signal
import time
import xml.etree.ElementTree as ET

import pytest
from blob_client import Blobs, code
from test_blobs import blobs, listing  # noqa: F401  the fixture
from test_page_blobs import create

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
X, PHOTOS = "/photos/x", {"restype": "container"}


def lease(blobs, action, path=X, query=None, **headers):
    return blobs.ask("PUT", path, {"comp": "lease", **(query or {})}, headers={
        "x-ms-lease-action": action,
        **{f"x-ms-{k.replace('_', '-')}": str(v) for k, v in headers.items()}})


def acquire(blobs, path=X, query=None, duration=-1, name=A):
    answer = lease(blobs, "acquire", path, query, lease_duration=duration, proposed_lease_id=name)
    assert answer.status == 201 and answer.headers["x-ms-lease-id"] == name, answer
    return answer


def state(blobs, path=X, query=None):
    head = blobs.ask("HEAD", path, query).headers
    return (head["x-ms-lease-state"], head["x-ms-lease-status"], head.get("x-ms-lease-duration"))


def wait_for(blobs, want, path=X):
    until = time.monotonic() + 60
    while state(blobs, path)[0] != want:
        assert time.monotonic() < until
    return state(blobs, path)


def test_BL20_a_lease_is_acquired_renewed_changed_and_released(blobs):
    etag = blobs.put(X, b"1").headers["ETag"]
    assert state(blobs) == ("available", "unlocked", None)
    made = lease(blobs, "acquire", lease_duration=60)
    assert made.status == 201 and made.headers["ETag"] == etag
    first = made.headers["x-ms-lease-id"]
    assert state(blobs) == ("leased", "locked", "fixed")
    assert code(lease(blobs, "acquire", lease_duration=15)) == (409, "LeaseAlreadyPresent")
    again = lease(blobs, "acquire", lease_duration=-1, proposed_lease_id=first)
    assert again.status == 201 and state(blobs) == ("leased", "locked", "infinite")
    renewed = lease(blobs, "renew", lease_id=first)
    assert renewed.status == 200 and renewed.headers["x-ms-lease-id"] == first
    assert code(lease(blobs, "renew", lease_id=B)) == (409, "LeaseIdMismatchWithLeaseOperation")
    changed = lease(blobs, "change", lease_id=first, proposed_lease_id=A.upper())
    assert changed.status == 200 and changed.headers["x-ms-lease-id"] == A
    # The id is compared in any form of a GUID.
    assert lease(blobs, "renew", lease_id="{" + A.upper() + "}").status == 200
    assert code(lease(blobs, "release", lease_id=first))[0] == 409
    assert lease(blobs, "release", lease_id=A).status == 200
    assert state(blobs) == ("available", "unlocked", None)
    assert code(lease(blobs, "change", lease_id=A, proposed_lease_id=B)) == (
        409, "LeaseNotPresentWithLeaseOperation")
    assert blobs.get(X).headers["ETag"] == etag


def test_BL20_a_break_ends_a_lease_after_its_period(blobs):
    blobs.put(X, b"1")
    acquire(blobs)
    broken = lease(blobs, "break", lease_break_period=60)
    assert broken.status == 202 and 58 <= int(broken.headers["x-ms-lease-time"]) <= 60
    assert state(blobs) == ("breaking", "locked", None)
    assert code(lease(blobs, "acquire", lease_duration=15)) == (409, "LeaseAlreadyPresent")
    assert code(lease(blobs, "acquire", lease_duration=15, proposed_lease_id=A)) == (
        409, "LeaseIsBreakingAndCannotBeAcquired")
    assert code(lease(blobs, "change", lease_id=A, proposed_lease_id=B)) == (
        409, "LeaseIsBreakingAndCannotBeChanged")
    assert code(lease(blobs, "renew", lease_id=A)) == (409, "LeaseIsBrokenAndCannotBeRenewed")
    assert blobs.put(X, b"2", x_ms_lease_id=A).status == 201
    assert lease(blobs, "break", lease_break_period=1).status == 202
    assert wait_for(blobs, "broken") == ("broken", "unlocked", None)
    assert code(blobs.put(X, b"3", x_ms_lease_id=A)) == (412, "LeaseLost")
    assert lease(blobs, "break").headers["x-ms-lease-time"] == "0"
    assert blobs.put(X, b"3").status == 201 and state(blobs)[0] == "available"
    assert code(lease(blobs, "break")) == (409, "LeaseNotPresentWithLeaseOperation")
    acquire(blobs, duration=15)
    assert int(lease(blobs, "break").headers["x-ms-lease-time"]) in (14, 15)


CHANGES = [
    ("PUT", {}, {"x-ms-blob-type": "BlockBlob"}, 201),
    ("PUT", {}, {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, 201),
    ("PUT", {"comp": "metadata"}, {"x-ms-meta-a": "1"}, 200),
    ("PUT", {"comp": "properties"}, {"x-ms-blob-content-type": "a/b"}, 200),
    ("PUT", {"comp": "properties"}, {"x-ms-blob-content-length": "512"}, 200),
    ("PUT", {"comp": "page"}, {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}, 201),
    ("DELETE", {}, {}, 202),
]


@pytest.mark.parametrize("method, query, headers, status", CHANGES)
def test_BL21_a_lease_guards_every_change_of_its_blob(blobs, method, query, headers, status):
    def ask(**more):
        return blobs.ask(method, X, query, headers={**headers, **more})
    assert create(blobs, 1024, X).status == 201
    assert code(ask(**{"x-ms-lease-id": A})) == (412, "LeaseNotPresentWithBlobOperation")
    acquire(blobs)
    assert code(ask()) == (412, "LeaseIdMissing")
    assert code(ask(**{"x-ms-lease-id": B})) == (412, "LeaseIdMismatchWithBlobOperation")
    assert code(ask(**{"x-ms-lease-id": "me"})) == (400, "InvalidHeaderValue")
    assert blobs.ask("HEAD", X).headers["Content-Length"] == "1024"
    assert ask(**{"x-ms-lease-id": A}).status == status
    if method != "DELETE":
        assert state(blobs)[0] == "leased"
    else:
        assert blobs.put(X, b"1").status == 201 and state(blobs)[0] == "available"


def test_BL21_a_long_clear_keeps_its_lease(blobs):
    path, page = X, {"comp": "page"}
    assert create(blobs, 16 << 20, path).status == 201
    for first in range(0, 16 << 20, 4 << 20):
        assert blobs.ask("PUT", path, page, body=b"x" * (4 << 20), headers={
            "x-ms-page-write": "update",
            "x-ms-range": f"bytes={first}-{first + (4 << 20) - 1}"}).status == 201
    acquire(blobs)
    for headers in ({"x-ms-page-write": "clear", "x-ms-range": f"bytes=0-{(12 << 20) - 1}"},):
        assert blobs.ask("PUT", path, page, headers={**headers, "x-ms-lease-id": A}).status == 201
    shrunk = blobs.ask("PUT", path, {"comp": "properties"}, headers={
        "x-ms-blob-content-length": "512", "x-ms-lease-id": A})
    assert shrunk.status == 200 and state(blobs)[0] == "leased"


def test_BL21_a_read_needs_no_lease_but_the_right_one(blobs):
    blobs.put(X, b"1")
    assert code(blobs.get(X, x_ms_lease_id=A)) == (412, "LeaseNotPresentWithBlobOperation")
    acquire(blobs)
    assert blobs.get(X).body == blobs.get(X, x_ms_lease_id=A).body == b"1"
    assert code(blobs.get(X, x_ms_lease_id=B)) == (412, "LeaseIdMismatchWithBlobOperation")
    assert blobs.ask("GET", X, {"comp": "metadata"}, headers={"x-ms-lease-id": B}).status == 412


def test_BL22_a_lease_of_a_container_guards_its_deletion(blobs):
    path = "/photos"
    etag = blobs.ask("HEAD", path, PHOTOS).headers["ETag"]
    assert code(blobs.ask("DELETE", path, PHOTOS, headers={"x-ms-lease-id": A})) == (
        412, "LeaseNotPresentWithContainerOperation")
    acquire(blobs, path, PHOTOS, duration=60)
    assert state(blobs, path, PHOTOS) == ("leased", "locked", "fixed")
    assert blobs.ask("HEAD", path, PHOTOS).headers["ETag"] == etag
    assert code(blobs.ask("DELETE", path, PHOTOS)) == (412, "LeaseIdMissing")
    for method, query in (("DELETE", {}), ("GET", {}), ("PUT", {"comp": "metadata"}),
                          ("GET", {"comp": "acl"}), ("PUT", {"comp": "acl"})):
        answer = blobs.ask(method, path, {**PHOTOS, **query}, headers={"x-ms-lease-id": B})
        assert code(answer) == (412, "LeaseIdMismatchWithContainerOperation")
    # Blobs and metadata need no lease.
    assert blobs.put(X, b"1").status == 201
    assert blobs.ask("PUT", path, {**PHOTOS, "comp": "metadata"}).status == 200
    assert state(blobs, path, PHOTOS)[0] == "leased"
    assert lease(blobs, "break", path, PHOTOS, lease_break_period=0).status == 202
    assert state(blobs, path, PHOTOS) == ("broken", "unlocked", None)
    acquire(blobs, path, PHOTOS)
    assert blobs.ask("DELETE", path, PHOTOS, headers={"x-ms-lease-id": A}).status == 202
    assert code(lease(blobs, "break", path, PHOTOS)) == (404, "ContainerNotFound")


def test_BL23_lists_show_leases(blobs):
    blobs.put(X, b"1")
    blobs.put("/photos/y", b"1")
    acquire(blobs)
    acquire(blobs, "/photos", PHOTOS, duration=60)

    def shown(answer, tag):
        return [tuple(e.findtext(f"Properties/{t}") for t in
                      ("LeaseState", "LeaseStatus", "LeaseDuration"))
                for e in ET.fromstring(answer.body).iter(tag)]
    assert shown(listing(blobs), "Blob") == [("leased", "locked", "infinite"),
                                             ("available", "unlocked", None)]
    found = shown(blobs.ask("GET", "/", {"comp": "list"}), "Container")
    assert found == [("leased", "locked", "fixed")]


def test_BL24_a_lease_survives_a_kill(blobs, serve, rowfs):
    blobs.put(X, b"1")
    acquire(blobs)
    acquire(blobs, "/photos", PHOTOS, duration=60)
    blobs.server.proc.send_signal(signal.SIGKILL)
    blobs.server.proc.wait()
    server = serve(blobs.store, "--rest=blob=127.0.0.1:0")
    again = Blobs(server.port)
    assert state(again) == ("leased", "locked", "infinite")
    assert code(again.put(X, b"2")) == (412, "LeaseIdMissing")
    assert code(again.ask("DELETE", "/photos", PHOTOS)) == (412, "LeaseIdMissing")
    assert again.put(X, b"2", x_ms_lease_id=A).status == 201
    server.stop()
    assert "1 container, 1 blob: clean" in rowfs("check", blobs.store).stdout


@pytest.mark.parametrize("action, headers, want", [
    ("", {}, "MissingRequiredHeader"), ("take", {}, "InvalidHeaderValue"),
    ("acquire", {}, "MissingRequiredHeader"),
    ("acquire", {"lease_duration": 14}, "InvalidHeaderValue"),
    ("acquire", {"lease_duration": 61}, "InvalidHeaderValue"),
    ("acquire", {"lease_duration": -2}, "InvalidHeaderValue"),
    ("acquire", {"lease_duration": 15, "proposed_lease_id": "me"}, "InvalidHeaderValue"),
    ("renew", {}, "MissingRequiredHeader"), ("release", {}, "MissingRequiredHeader"),
    ("change", {"lease_id": A}, "MissingRequiredHeader"),
    ("change", {"proposed_lease_id": A}, "MissingRequiredHeader"),
    ("break", {"lease_break_period": -1}, "InvalidHeaderValue"),
    ("break", {"lease_break_period": 61}, "InvalidHeaderValue"),
])
def test_a_lease_operation_needs_its_headers(blobs, action, headers, want):
    blobs.put(X, b"1")
    assert code(lease(blobs, action, **headers)) == (400, want)


def test_debians_client_leases(blobs):
    storage = pytest.importorskip("azure.storage.blob")
    client = storage.BlobServiceClient.from_connection_string(blobs.connection)
    container = client.get_container_client("photos")
    blob = container.upload_blob("x", b"1")
    held = blob.acquire_lease(15)
    assert blob.get_blob_properties().lease.state == "leased"
    with pytest.raises(Exception, match="LeaseIdMissing"):
        blob.upload_blob(b"2", overwrite=True)
    blob.upload_blob(b"2", overwrite=True, lease=held)
    held.renew()
    held.change(B)
    held.release()
    whole = container.acquire_lease()
    with pytest.raises(Exception, match="LeaseIdMissing"):
        container.delete_container()
    assert whole.break_lease(0) == 0
    container.delete_container()


def test_conditions_and_errors_of_a_lease_operation(blobs):
    etag = blobs.put(X, b"1").headers["ETag"]
    one = blobs.ask("PUT", X, {"comp": "lease"}, headers={
        "x-ms-lease-action": "acquire", "x-ms-lease-duration": "60", "If-Match": '"0x1"'})
    assert code(one) == (412, "ConditionNotMet")
    one = blobs.ask("PUT", X, {"comp": "lease"}, headers={
        "x-ms-lease-action": "acquire", "x-ms-lease-duration": "60", "If-Match": etag})
    assert one.status == 201
    assert code(lease(blobs, "break", "/photos/none")) == (404, "BlobNotFound")
    assert code(lease(blobs, "break", "/none/x")) == (404, "ContainerNotFound")
