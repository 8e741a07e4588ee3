# SPDX-License-Identifier: MIT
"""Snapshots of blobs over REST: reads, lists, deletion, promotion, conditions, kills, clients."""

import base64
import os
import random
import re
import xml.etree.ElementTree as ET

import pytest
from blob_client import Blobs, code
from test_blob_copies import copy, url, writer
from test_blob_leases import A, B, acquire
from test_blobs import MIB, blobs, listing  # noqa: F401  the fixture
from test_page_blobs import DISK, clear, create, parsed, write

X = "/photos/x"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z")


def snapshot(blobs, path=X, **headers):
    return blobs.ask("PUT", path, {"comp": "snapshot"},
                     headers={k.replace("_", "-"): v for k, v in headers.items()})


def take(blobs, path=X, **headers):
    answer = snapshot(blobs, path, **headers)
    assert answer.status == 201 and TIME.fullmatch(answer.headers["x-ms-snapshot"]), answer
    return answer.headers["x-ms-snapshot"]


def read(blobs, time, path=X, method="GET", query=None, **headers):
    return blobs.ask(method, path, {"snapshot": time, **(query or {})},
                     headers={k.replace("_", "-"): v for k, v in headers.items()})


def delete(blobs, path=X, query=None, **headers):
    return blobs.ask("DELETE", path, query,
                     headers={k.replace("_", "-"): v for k, v in headers.items()})


def listed(blobs, **query):
    root = ET.fromstring(listing(blobs, **query).body)
    return [(e.findtext("Name"), e.findtext("Snapshot")) for e in root.find("Blobs")], (
        root.findtext("NextMarker"))


@pytest.mark.parametrize("size", [0, 4096, 4097, 3 * MIB + 17])
def test_BL30_a_snapshot_stays_as_it_was(blobs, rowfs, size):
    body = os.urandom(size)
    etag = blobs.put(X, body, content_type="a/b", x_ms_meta_a="1").headers["ETag"]
    made = snapshot(blobs)
    first = made.headers["x-ms-snapshot"]
    assert made.headers["ETag"] == etag == blobs.get(X).headers["ETag"]
    second = take(blobs, x_ms_meta_b="2")
    assert first < second
    assert blobs.put(X, b"new").status == 201
    got = read(blobs, first)
    assert got.body == body and got.headers["ETag"] == etag
    assert (got.headers["Content-Type"], got.headers["x-ms-meta-a"]) == ("a/b", "1")
    got = read(blobs, second)
    assert got.body == body and got.headers["x-ms-meta-b"] == "2"
    assert "x-ms-meta-a" not in got.headers
    assert int(read(blobs, first, method="HEAD").headers["Content-Length"]) == size
    assert blobs.get(X).body == b"new"
    blobs.server.stop()
    assert "1 container, 1 blob: clean" in rowfs("check", blobs.store).stdout


def test_BL30_snapshots_of_blobs_of_blocks_stay_as_they_were(blobs, rowfs):
    ids = [base64.b64encode(b"%03d" % i).decode() for i in range(3)]
    for i in ids:
        assert blobs.ask("PUT", X, {"comp": "block", "blockid": i},
                         body=i.encode() * 40000).status == 201
    whole = "".join(f"<Latest>{i}</Latest>" for i in ids)
    assert blobs.ask("PUT", X, {"comp": "blocklist"},
                     body=f"<BlockList>{whole}</BlockList>".encode()).status == 201
    log = "/photos/log"
    assert blobs.ask("PUT", log, headers={"x-ms-blob-type": "AppendBlob"}).status == 201
    assert blobs.ask("PUT", log, {"comp": "appendblock"}, body=b"one").status == 201
    blocks, lines = take(blobs), take(blobs, log)
    assert blobs.put(X, b"new").status == 201
    assert blobs.ask("PUT", log, {"comp": "appendblock"}, body=b"two").status == 201
    assert read(blobs, blocks).body == b"".join(i.encode() * 40000 for i in ids)
    assert read(blobs, lines, log).body == b"one" and blobs.get(log).body == b"onetwo"
    assert copy(blobs, f"{url(blobs, log)}?snapshot={lines}", log).status == 202
    assert blobs.ask("PUT", log, {"comp": "appendblock"}, body=b"3").status == 201
    assert blobs.get(log).body == b"one3"
    blobs.server.stop()
    assert "1 container, 2 blobs: clean" in rowfs("check", blobs.store).stdout


def test_BL30_a_snapshot_of_pages_stays_as_it_was(blobs):
    assert create(blobs, 1 << 40).status == 201
    first, second = os.urandom(4096), os.urandom(512)
    write(blobs, 512, first)
    time = take(blobs, DISK)
    write(blobs, 512, second)
    write(blobs, 1 << 39, second)
    assert read(blobs, time, DISK, x_ms_range="bytes=512-4607").body == first
    ranges = read(blobs, time, DISK, query={"comp": "pagelist"})
    assert parsed(ranges)[0] == [(512, 4607)]
    assert blobs.get(DISK, x_ms_range="bytes=512-1023").body == second


def test_BL30_a_snapshot_beside_a_writer_is_one_version(blobs):
    size = 4 * MIB

    def mark(at):
        return lambda n: write(blobs, at, n.to_bytes(512, "little"))
    assert create(blobs, size).status == write(blobs, 0, bytes(size)).status == 201
    # The last page is written first, so it is at most one number ahead of the first page.
    with writer(mark(size - 512), mark(0)):
        for _ in range(8):
            made = snapshot(blobs, DISK)
            if made.status == 201:
                body = read(blobs, made.headers["x-ms-snapshot"], DISK).body
                first, last = (int.from_bytes(p, "little") for p in (body[:512], body[-512:]))
                assert 0 <= last - first <= 1
            else:
                assert code(made) == (503, "ServerBusy")
    take(blobs, DISK)


def diff(blobs, before, first=None, end=None, **query):
    headers = {} if first is None else {"x-ms-range": f"bytes={first}-{end - 1}"}
    answer = blobs.ask("GET", DISK, {"comp": "pagelist", "prevsnapshot": before, **query},
                       headers=headers)
    assert answer.status == 200, answer
    root = ET.fromstring(answer.body)
    return [(e.tag[:-5], int(e.findtext("Start")), int(e.findtext("End")))
            for e in root if e.tag.endswith("Range")], root.findtext("NextMarker")


def test_BL37_page_ranges_are_compared_with_a_snapshot(blobs):
    assert create(blobs, 8 << 40).status == 201
    write(blobs, 0, b"a" * 8192)
    write(blobs, 1 << 40, b"a" * 4096)
    first = take(blobs, DISK)
    assert diff(blobs, first) == ([], None)
    write(blobs, 0, b"b" * 512)
    clear(blobs, 512, 512)
    write(blobs, 1024, b"b" * 512)
    write(blobs, 8192, b"b" * 512)
    clear(blobs, 1 << 40, 4096)
    changed = [("Page", 0, 511), ("Clear", 512, 1023), ("Page", 1024, 1535),
               ("Page", 8192, 8703), ("Clear", 1 << 40, (1 << 40) + 4095)]
    assert diff(blobs, first) == (changed, None)
    second = take(blobs, DISK)
    write(blobs, 0, b"c" * 512)
    assert diff(blobs, first, snapshot=second) == (changed, None)
    assert diff(blobs, second) == ([("Page", 0, 511)], None)
    assert diff(blobs, first, 256 + 256, 1536, snapshot=second)[0] == changed[1:3]
    found, after = [], ""
    for _ in changed:
        page, after = diff(blobs, first, snapshot=second, maxresults="2",
                           **({"marker": after} if after else {}))
        assert len(page) <= 2
        found += page
        if not after:
            break
    assert found == changed

    def refused(before, **query):
        return code(blobs.ask("GET", DISK, {"comp": "pagelist", "prevsnapshot": before, **query}))
    assert refused(second, snapshot=first) == (400, "PreviousSnapshotCannotBeNewer")
    assert refused("2019-08-14T03:43:53.2866199Z") == (409, "PreviousSnapshotNotFound")
    assert refused("yesterday") == (400, "InvalidQueryParameterValue")
    assert create(blobs, 8 << 40).status == 201
    assert refused(second) == (409, "BlobGenerationMismatch")


def test_BL37_a_difference_over_many_pieces(blobs):
    size, chance = 8 * MIB, random.Random(7)
    assert create(blobs, size).status == write(blobs, 0, b"a" * (4 * MIB)).status == 201
    before = take(blobs, DISK)
    want = set()
    for _ in range(200):
        page = chance.randrange(size // 512)
        if chance.random() < 0.5:
            write(blobs, page * 512, b"b" * 512)
            want.add((page, "Page"))
            want.discard((page, "Clear"))
        else:
            clear(blobs, page * 512, 512)
            want.discard((page, "Page"))
            if page * 512 < 4 * MIB:
                want.add((page, "Clear"))
    found = {(at // 512, tag) for tag, first, last in diff(blobs, before)[0]
             for at in range(first, last, 512)}
    assert found == want


def test_BL31_a_snapshot_cannot_be_changed(blobs):
    blobs.put(X, b"1")
    time = take(blobs)
    for query, headers in (({}, {"x-ms-blob-type": "BlockBlob"}), ({"comp": "metadata"}, {}),
                           ({"comp": "properties"}, {}), ({"comp": "snapshot"}, {}),
                           ({"comp": "lease"}, {"x-ms-lease-action": "break"}),
                           ({}, {"x-ms-copy-source": url(blobs)})):
        answer = blobs.ask("PUT", X, {"snapshot": time, **query}, headers=headers)
        assert code(answer) == (400, "InvalidQueryParameterValue"), query
    assert code(read(blobs, "yesterday")) == (400, "InvalidQueryParameterValue")
    assert code(read(blobs, time[:-2] + "Z")) == (400, "InvalidQueryParameterValue")
    assert code(read(blobs, "2019-08-14T03:43:53.2866199Z")) == (404, "BlobNotFound")
    assert read(blobs, time).body == blobs.get(X).body == b"1"


def test_BL32_lists_show_snapshots_on_demand(blobs):
    for name in ("a", "x", "x y", "x/y"):
        blobs.put(f"/photos/{name}", b"1")
    times = [take(blobs), take(blobs)]
    inside = take(blobs, "/photos/x/y")
    plain = [("a", None), ("x", None), ("x y", None), ("x/y", None)]
    whole = plain[:2] + [("x", t) for t in times] + plain[2:] + [("x/y", inside)]
    assert listed(blobs) == (plain, "")
    assert listed(blobs, include="snapshots") == (whole, "")
    found, after = [], ""
    for _ in whole:
        page, after = listed(blobs, include="snapshots", maxresults="2",
                             **({"marker": after} if after else {}))
        found += page
        if not after:
            break
    assert found == whole
    assert listed(blobs, delimiter="/")[0] == [("a", None), ("x", None), ("x y", None),
                                               ("x/", None)]


def test_BL33_a_blob_goes_with_its_snapshots_or_not_at_all(blobs, rowfs):
    blobs.put(X, b"1")
    blobs.put(X + "y", b"1")
    times = [take(blobs) for _ in range(20)]
    other = take(blobs, X + "y")
    assert code(delete(blobs)) == (409, "SnapshotsPresent")
    assert code(delete(blobs, x_ms_delete_snapshots="all")) == (400, "InvalidHeaderValue")
    one = {"snapshot": times[0]}
    assert code(delete(blobs, query=one, x_ms_delete_snapshots="only")) == (
        400, "InvalidHeaderValue")
    assert delete(blobs, query=one).status == 202
    assert code(delete(blobs, query=one)) == (404, "BlobNotFound")
    assert delete(blobs, x_ms_delete_snapshots="only").status == 202
    assert code(read(blobs, times[1])) == (404, "BlobNotFound")
    assert blobs.get(X).body == b"1"
    time = take(blobs)
    assert delete(blobs, x_ms_delete_snapshots="include").status == 202
    assert code(read(blobs, time)) == code(blobs.get(X)) == (404, "BlobNotFound")
    assert read(blobs, other, X + "y").body == b"1"
    # A new blob of the name has none of the old snapshots.
    blobs.put(X, b"2")
    assert listed(blobs, include="snapshots", prefix="x")[0] == [
        ("x", None), ("xy", None), ("xy", other)]
    assert delete(blobs).status == 202
    blobs.server.stop()
    assert "1 container, 1 blob: clean" in rowfs("check", blobs.store).stdout


def test_BL34_a_snapshot_is_copied_over_its_blob(blobs):
    body = os.urandom(2 * MIB)
    blobs.put(X, body)
    time = take(blobs)
    blobs.put(X, b"new")
    promoted = copy(blobs, f"{url(blobs)}?snapshot={time}", X)
    assert promoted.status == 202
    assert blobs.get(X).body == read(blobs, time).body == body
    assert copy(blobs, f"{url(blobs)}?snapshot={time}", "/photos/y").status == 202
    assert blobs.get("/photos/y").body == body


def test_BL35_conditions_and_leases_of_a_snapshot(blobs):
    etag = blobs.put(X, b"1").headers["ETag"]
    assert code(snapshot(blobs, if_match='"0x1"')) == (412, "ConditionNotMet")
    assert code(snapshot(blobs, if_none_match=etag)) == (412, "ConditionNotMet")
    assert code(snapshot(blobs, "/photos/none")) == (404, "BlobNotFound")
    take(blobs, if_match=etag)
    acquire(blobs)
    # Everybody may take a snapshot of a leased blob, but not with another id.
    time = take(blobs)
    take(blobs, x_ms_lease_id=A)
    assert code(snapshot(blobs, x_ms_lease_id=B)) == (412, "LeaseIdMismatchWithBlobOperation")
    assert read(blobs, time).headers["x-ms-lease-state"] == "available"
    assert blobs.get(X).headers["x-ms-lease-state"] == "leased"
    assert code(delete(blobs, x_ms_delete_snapshots="include")) == (412, "LeaseIdMissing")
    assert delete(blobs, query={"snapshot": time}).status == 202


def test_BL30_snapshots_survive_a_kill(blobs, serve, rowfs):
    assert create(blobs, MIB).status == 201
    write(blobs, 0, b"a" * 4096)
    time = take(blobs, DISK)
    blobs.server.proc.kill()
    blobs.server.proc.wait()
    server = serve(blobs.store, "--rest=blob=127.0.0.1:0")
    again = Blobs(server.port)
    write(again, 0, b"b" * 4096)
    assert read(again, time, DISK).body[:4096] == b"a" * 4096
    server.stop()
    assert "1 container, 1 blob: clean" in rowfs("check", blobs.store).stdout


def test_debians_client_takes_snapshots(blobs):
    storage = pytest.importorskip("azure.storage.blob")
    client = storage.BlobServiceClient.from_connection_string(blobs.connection)
    container = client.get_container_client("photos")
    blob = container.upload_blob("x", b"1")
    time = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"2", overwrite=True)
    old = container.get_blob_client("x", snapshot=time)
    assert old.download_blob().readall() == b"1" and blob.download_blob().readall() == b"2"
    assert {b.snapshot for b in container.list_blobs(include=["snapshots"])} == {None, time}
    with pytest.raises(Exception, match="SnapshotsPresent"):
        blob.delete_blob()
    blob.delete_blob(delete_snapshots="include")
    assert not old.exists()
