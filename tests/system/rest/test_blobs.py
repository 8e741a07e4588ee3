# SPDX-License-Identifier: MIT
"""The Blob service over REST: containers, block blobs, limits, errors, signatures, clients."""

import base64
import hashlib
import os
import re
import resource
import socket
import subprocess
import urllib.request
import xml.etree.ElementTree as ET

import pytest
from blob_client import Blobs, blobs_of, code
from rest_client import ACCOUNT, KEY
from tools import sanitized

MIB = 1 << 20


@pytest.fixture
def blobs(serve, rest_store):
    client = blobs_of(serve(rest_store, "--rest=127.0.0.1:0", "--rest=blob=127.0.0.1:0"), rest_store)
    assert client.ask("PUT", "/photos", {"restype": "container"}).status == 201
    return client


def names(answer, tag="Blob"):
    root = ET.fromstring(answer.body)
    return [b.findtext("Name") for b in root.iter(tag)], root.findtext("NextMarker")


def listing(blobs, **query):
    return blobs.ask("GET", "/photos", {"restype": "container", "comp": "list", **query})


def test_containers_are_created_listed_and_deleted(blobs):
    made = blobs.ask("PUT", "/more", {"restype": "container"},
                     headers={"x-ms-meta-Color": "red & blue"})
    assert made.status == 201 and re.fullmatch(r'"0x[0-9A-F]+"', made.headers["ETag"])
    again = blobs.ask("PUT", "/more", {"restype": "container"})
    assert code(again) == (409, "ContainerAlreadyExists")
    found, _ = names(blobs.ask("GET", "/", {"comp": "list", "include": "metadata"}), "Container")
    assert found == ["more", "photos"]
    both = blobs.ask("GET", "/", {"comp": "list", "include": "metadata,deleted"})
    assert names(both, "Container")[0] == ["more", "photos"]
    other = blobs.ask("GET", "/", {"comp": "list", "include": "metadata,nothing"})
    assert code(other) == (400, "InvalidQueryParameterValue")
    first = blobs.ask("GET", "/", {"comp": "list", "maxresults": "1"})
    found, marker = names(first, "Container")
    assert found == ["more"]
    rest = blobs.ask("GET", "/", {"comp": "list", "marker": marker})
    assert names(rest, "Container") == (["photos"], "")
    props = blobs.ask("HEAD", "/more", {"restype": "container"})
    assert props.status == 200 and props.headers["x-ms-meta-color"] == "red & blue"
    assert props.headers["ETag"] == made.headers["ETag"]
    changed = blobs.ask("PUT", "/more", {"restype": "container", "comp": "metadata"},
                        headers={"x-ms-meta-a": "1"})
    assert changed.status == 200 and changed.headers["ETag"] > made.headers["ETag"]
    assert blobs.put("/more/x", b"1").status == 201
    props = blobs.ask("GET", "/more", {"restype": "container", "comp": "metadata"})
    assert props.headers["x-ms-meta-a"] == "1" and "x-ms-meta-color" not in props.headers
    assert props.headers["ETag"] == changed.headers["ETag"]  # blobs do not change it
    assert blobs.ask("DELETE", "/more", {"restype": "container"}).status == 202
    gone = blobs.ask("DELETE", "/more", {"restype": "container"})
    assert code(gone) == (404, "ContainerNotFound")
    assert code(blobs.put("/more/x", b"1")) == (404, "ContainerNotFound")
    for name, want in (("Bad", "InvalidResourceName"), ("a", "OutOfRangeInput")):
        answer = blobs.ask("PUT", f"/{name}", {"restype": "container"})
        assert code(answer) == (400, want)


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 65536, 65537, MIB, MIB + 1, 3 * MIB + 17])
def test_a_blob_comes_back_as_it_was_put(blobs, size):
    body = os.urandom(size)
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    put = blobs.put("/photos/a/b.jpg", body, content_type="image/jpeg", x_ms_meta_Who="me")
    assert put.status == 201 and put.headers["Content-MD5"] == md5
    got = blobs.get("/photos/a/b.jpg")
    assert got.status == 200 and got.body == body
    assert got.headers["Content-Type"] == "image/jpeg" and got.headers["Content-MD5"] == md5
    assert got.headers["x-ms-meta-who"] == "me" and got.headers["ETag"] == put.headers["ETag"]
    assert got.headers["x-ms-blob-type"] == "BlockBlob"
    head = blobs.ask("HEAD", "/photos/a/b.jpg")
    assert head.status == 200 and int(head.headers["Content-Length"]) == size
    if size:
        for first, last in ((0, 0), (size // 2, size - 1), (size - 1, size + 100)):
            part = blobs.get("/photos/a/b.jpg", x_ms_range=f"bytes={first}-{last}",
                             range="bytes=0-0")
            assert part.status == 206 and part.body == body[first:last + 1]
            assert part.headers["Content-Range"] == (
                f"bytes {first}-{min(last, size - 1)}/{size}")
            assert part.headers["x-ms-blob-content-md5"] == md5
    beyond = blobs.get("/photos/a/b.jpg", range=f"bytes={size}-")
    assert code(beyond) == (416, "InvalidRange")
    replaced = blobs.put("/photos/a/b.jpg", b"other")
    assert replaced.status == 201 and blobs.get("/photos/a/b.jpg").body == b"other"
    assert "x-ms-meta-who" not in blobs.get("/photos/a/b.jpg").headers
    assert blobs.ask("DELETE", "/photos/a/b.jpg").status == 202
    assert code(blobs.get("/photos/a/b.jpg")) == (404, "BlobNotFound")
    assert code(blobs.ask("DELETE", "/photos/a/b.jpg")) == (404, "BlobNotFound")


def test_sums_of_content_are_checked_and_answered(blobs):
    body = b"a" * 512
    put = blobs.put("/photos/x", body, x_ms_content_crc64="u661BimQ84c=")
    assert put.status == 201 and put.headers["x-ms-content-crc64"] == "u661BimQ84c="
    bad = base64.b64encode(bytes(16)).decode()
    for size in (512, 2 * MIB):
        body = b"a" * size
        assert code(blobs.put("/photos/y", body, content_md5=bad)) == (400, "Md5Mismatch")
        assert code(blobs.put("/photos/y", body, x_ms_content_crc64="u661BimQ84d=")) == (
            400, "InvalidHeaderValue")
        assert code(blobs.put("/photos/y", body, x_ms_content_crc64=base64.b64encode(
            bytes(8)).decode())) == (400, "Crc64Mismatch")
        assert code(blobs.put("/photos/y", body, content_md5="no")) == (400, "InvalidMd5")
    assert blobs.ask("HEAD", "/photos/y").status == 404
    part = blobs.get("/photos/x", x_ms_range="bytes=0-99", x_ms_range_get_content_md5="true")
    assert part.headers["Content-MD5"] == base64.b64encode(
        hashlib.md5(b"a" * 100).digest()).decode()
    whole = blobs.get("/photos/x", x_ms_range_get_content_md5="true")
    assert code(whole) == (400, "InvalidHeaderValue")


def test_conditions_by_etag_and_time(blobs):
    first = blobs.put("/photos/x", b"1").headers["ETag"]
    assert code(blobs.put("/photos/x", b"2", if_none_match="*")) == (409, "BlobAlreadyExists")
    second = blobs.put("/photos/x", b"2", if_match=first).headers["ETag"]
    assert second > first
    assert code(blobs.put("/photos/x", b"3", if_match=first)) == (412, "ConditionNotMet")
    assert code(blobs.put("/photos/new", b"3", if_match=first)) == (412, "ConditionNotMet")
    assert blobs.get("/photos/x", if_none_match=second).status == 304
    assert blobs.get("/photos/x", if_none_match=first).body == b"2"
    assert code(blobs.get("/photos/x", if_match=first)) == (412, "ConditionNotMet")
    past, future = "Fri, 20 Nov 2020 12:29:19 GMT", "Thu, 20 Nov 2036 12:29:19 GMT"
    assert blobs.get("/photos/x", if_modified_since=past).status == 200
    assert blobs.get("/photos/x", if_modified_since=future).status == 304
    assert blobs.get("/photos/x", if_unmodified_since=future).status == 200
    assert blobs.get("/photos/x", if_unmodified_since=past).status == 412
    assert code(blobs.get("/photos/x", if_unmodified_since="now")) == (400, "InvalidHeaderValue")
    assert blobs.ask("DELETE", "/photos/x", headers={"If-Match": first}).status == 412
    assert blobs.ask("DELETE", "/photos/x", headers={"If-Match": second}).status == 202


def test_BL25_a_read_may_have_several_conditions_and_a_change_one(blobs):
    first = blobs.put("/photos/x", b"1").headers["ETag"]
    second = blobs.put("/photos/x", b"2").headers["ETag"]
    past, future = "Fri, 20 Nov 2020 12:29:19 GMT", "Thu, 20 Nov 2036 12:29:19 GMT"

    def read(**headers):
        return blobs.get("/photos/x", **headers).status
    # Both of the first pair must hold, and one of the second.
    assert read(if_match=second, if_unmodified_since=future) == 200
    assert read(if_match=second, if_unmodified_since=past) == 412
    assert read(if_match=first, if_unmodified_since=future) == 412
    assert read(if_none_match=second, if_modified_since=past) == 200
    assert read(if_none_match=first, if_modified_since=future) == 200
    assert read(if_none_match=second, if_modified_since=future) == 304
    assert read(if_match=second, if_none_match=first) == 200
    two = {"If-Match": second, "If-Unmodified-Since": future}
    want = (400, "MultipleConditionHeadersNotSupported")
    for method, query, more in (
            ("PUT", {}, {"x-ms-blob-type": "BlockBlob"}), ("DELETE", {}, {}),
            ("PUT", {"comp": "metadata"}, {}), ("PUT", {"comp": "properties"}, {}),
            ("PUT", {"comp": "lease"}, {"x-ms-lease-action": "break"})):
        assert code(blobs.ask(method, "/photos/x", query, headers={**two, **more})) == want
    for method, query in (("DELETE", {}), ("PUT", {"comp": "metadata"})):
        answer = blobs.ask(method, "/photos", {"restype": "container", **query}, headers=two)
        assert code(answer) == want
    tags = {"x-ms-if-tags": "a = 'b'"}
    assert code(blobs.ask("GET", "/photos/x", headers=tags)) == (501, "NotImplemented")
    assert code(blobs.ask("DELETE", "/photos/x", headers=tags)) == (501, "NotImplemented")
    assert blobs.ask("DELETE", "/photos/x", headers={"If-Match": second}).status == 202


def test_metadata_and_properties(blobs):
    etag = blobs.put("/photos/x", b"1", content_type="text/plain", cache_control="no-store",
                     x_ms_meta_a="1").headers["ETag"]
    answer = blobs.ask("PUT", "/photos/x", {"comp": "metadata"}, headers={"x-ms-meta-b": "2"})
    assert answer.status == 200 and answer.headers["ETag"] > etag
    got = blobs.ask("GET", "/photos/x", {"comp": "metadata"})
    assert got.headers["x-ms-meta-b"] == "2" and "x-ms-meta-a" not in got.headers
    assert blobs.ask("PUT", "/photos/x", {"comp": "properties"}, headers={
        "x-ms-blob-content-type": "text/html", "x-ms-blob-content-language": "de"}).status == 200
    got = blobs.get("/photos/x")
    assert got.headers["Content-Type"] == "text/html" and got.headers["Content-Language"] == "de"
    assert "Cache-Control" not in got.headers and got.headers["x-ms-meta-b"] == "2"
    assert got.body == b"1"
    bad = blobs.ask("PUT", "/photos/x", {"comp": "metadata"}, headers={"x-ms-meta-a-b": "x"})
    assert code(bad) == (400, "InvalidMetadata")
    large = blobs.ask("PUT", "/photos/x", {"comp": "metadata"}, headers={
        "x-ms-meta-a": "x" * 8192})
    assert code(large) == (400, "MetadataTooLarge")
    missing = blobs.ask("PUT", "/photos/none", {"comp": "metadata"})
    assert code(missing) == (404, "BlobNotFound")


def test_blobs_are_listed_by_prefix_delimiter_and_marker(blobs):
    all_names = ["B", "a", "a/", "a/1", "a/2/x", "a/2/y", "a/3", "a0", "b", "é", "\uffff"]
    for name in all_names:
        assert blobs.put(f"/photos/{name}", b"x", x_ms_meta_n="1").status == 201
    assert names(listing(blobs)) == (all_names[:-1] + ["%EF%BF%BF"], "")
    found, after = [], ""
    for _ in range(20):
        page, after = names(listing(blobs, maxresults="2", **({"marker": after} if after else {})))
        found += page
        assert len(page) <= 2
        if not after:
            break
    assert found == all_names[:-1] + ["%EF%BF%BF"]
    root = ET.fromstring(listing(blobs, delimiter="/", include="metadata").body)
    top = [(e.tag, e.findtext("Name")) for e in root.find("Blobs")]
    assert top == [("Blob", "B"), ("Blob", "a"), ("BlobPrefix", "a/"), ("Blob", "a0"),
                   ("Blob", "b"), ("Blob", "é"), ("Blob", "%EF%BF%BF")]
    assert root.find(".//Metadata/n").text == "1" and root.find(".//Etag").text.startswith("0x")
    root = ET.fromstring(listing(blobs, delimiter="/", prefix="a/", maxresults="3").body)
    assert [(e.tag, e.findtext("Name")) for e in root.find("Blobs")] == [
        ("Blob", "a/"), ("Blob", "a/1"), ("BlobPrefix", "a/2/")]
    root = ET.fromstring(listing(blobs, delimiter="/", prefix="a/",
                                 marker=root.findtext("NextMarker")).body)
    assert [(e.tag, e.findtext("Name")) for e in root.find("Blobs")] == [("Blob", "a/3")]
    assert names(listing(blobs, prefix="zz")) == ([], "")
    assert code(listing(blobs, include="nothing")) == (400, "InvalidQueryParameterValue")
    assert code(listing(blobs, maxresults="0")) == (400, "OutOfRangeQueryParameterValue")
    assert code(listing(blobs, marker="?")) == (400, "InvalidQueryParameterValue")


def test_names_of_blobs_have_limits(blobs):
    longest = "n" * 1024
    assert blobs.put(f"/photos/{longest}", b"x").status == 201
    assert blobs.get(f"/photos/{longest}").body == b"x"
    assert code(blobs.put(f"/photos/{longest}n", b"x")) == (400, "OutOfRangeInput")
    assert blobs.put("/photos/" + "/".join("s" * 254), b"x").status == 201
    assert code(blobs.put("/photos/" + "/".join("s" * 255), b"x")) == (400, "OutOfRangeInput")
    assert code(blobs.put("/photos/a\x01", b"x")) == (400, "InvalidResourceName")
    assert blobs.ask("PUT", "/$root", {"restype": "container"}).status == 201
    assert blobs.put("/logo", b"root").status == 201 and blobs.get("/$root/logo").body == b"root"


def test_a_large_body_is_refused_before_it_is_sent(blobs):
    def head(key, length=4000 * MIB):
        with Blobs(blobs.port, key=key).open("PUT", "/photos/big", length=length, headers={
                "x-ms-blob-type": "BlockBlob", "expect": "100-continue"}) as s:
            return s.recv(4096).split(b"\r\n")[0]
    assert b"100" in head(KEY)
    wrong = base64.b64encode(bytes(64)).decode()
    assert b"403" in head(wrong)
    assert b"413" in head(KEY, length=5001 * MIB)


def parts(n, size=MIB):
    block = os.urandom(size)
    for i in range(n):
        yield i.to_bytes(8, "little") + block[8:]


def memory_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) << 10


def test_a_large_blob_takes_constant_memory(blobs):
    n, sums = 200, hashlib.md5()
    assert blobs.put("/photos/big", b"x" * 3 * MIB).status == 201
    before = memory_of(blobs.server.proc.pid)

    def source():
        for part in parts(n):
            sums.update(part)
            yield part
    put = blobs.ask("PUT", "/photos/big", body=source(), length=n * MIB,
                    headers={"x-ms-blob-type": "BlockBlob"})
    assert put.status == 201
    assert put.headers["Content-MD5"] == base64.b64encode(sums.digest()).decode()
    got = blobs.get("/photos/big")
    assert hashlib.md5(got.body).digest() == sums.digest()
    # A sanitizer keeps freed memory for a while.
    assert sanitized() or memory_of(blobs.server.proc.pid) - before < 40 * MIB


def test_public_access_needs_no_credential(blobs):
    blobs.put("/photos/x", b"1")
    assert blobs.ask("GET", "/photos/x", auth=False).status == 401
    acl = blobs.ask("PUT", "/photos", {"restype": "container", "comp": "acl"},
                    headers={"x-ms-blob-public-access": "blob"})
    assert acl.status == 200
    assert blobs.ask("GET", "/photos/x", auth=False).body == b"1"
    assert blobs.ask("GET", "/photos", {"restype": "container", "comp": "list"},
                     auth=False).status == 401
    assert blobs.ask("PUT", "/photos/x", body=b"2", auth=False,
                     headers={"x-ms-blob-type": "BlockBlob"}).status == 401
    blobs.ask("PUT", "/photos", {"restype": "container", "comp": "acl"},
              headers={"x-ms-blob-public-access": "container"})
    assert blobs.ask("GET", "/photos", {"restype": "container", "comp": "list"},
                     auth=False).status == 200
    got = blobs.ask("GET", "/photos", {"restype": "container", "comp": "acl"})
    assert got.headers["x-ms-blob-public-access"] == "container"
    assert code(blobs.ask("GET", "/photos", {"restype": "container", "comp": "acl"}, auth=False))[
        0] == 403


def sas(blobs, rowfs, name, *options):
    return rowfs("sas", blobs.store, f"{ACCOUNT}/{name}" if name else ACCOUNT, "--service=blob",
                 *options).stdout.strip()


def fetch(url, method="GET", body=None, **headers):
    request = urllib.request.Request(url, body, {k.replace("_", "-"): v
                                                 for k, v in headers.items()}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def test_a_sas_of_a_blob_or_a_container(blobs, rowfs):
    blobs.put("/photos/a/ü b", b"1")
    read = sas(blobs, rowfs, "photos/a/ü b", "--permissions=r", "--expiry=+1h")
    assert "sr=b" in read and fetch(read) == (200, b"1")
    assert fetch(read.replace("/photos/a/", "/photos/x/"))[0] == 403
    assert fetch(read, "PUT", b"2", x_ms_blob_type="BlockBlob")[0] == 403
    assert fetch(read + "&rsct=text/html")[0] == 403  # it is not what was signed
    create = sas(blobs, rowfs, "photos/new", "--permissions=c", "--expiry=+1h")
    assert fetch(create, "PUT", b"2", x_ms_blob_type="BlockBlob")[0] == 201
    assert fetch(create, "PUT", b"3", x_ms_blob_type="BlockBlob")[0] == 403
    assert blobs.get("/photos/new").body == b"2"
    whole = sas(blobs, rowfs, "photos", "--permissions=rwdl", "--expiry=+1h")
    base, query = whole.split("?")
    assert "sr=c" in query
    assert fetch(f"{base}/new?{query}") == (200, b"2")
    assert fetch(f"{base}/new?{query}", "PUT", b"4", x_ms_blob_type="BlockBlob")[0] == 201
    status, text = fetch(f"{base}?restype=container&comp=list&{query}")
    assert status == 200 and b"<Name>new</Name>" in text
    assert fetch(f"{base}?restype=container&{query}", "DELETE")[0] == 403
    assert fetch(f"{base}/new?{query}", "DELETE")[0] == 202
    account = sas(blobs, rowfs, "", "--permissions=rl", "--resource-types=so", "--expiry=+1h")
    base, query = account.split("?")
    assert fetch(f"{base.rstrip('/')}/photos/a/%C3%BC%20b?{query}") == (200, b"1")
    assert fetch(f"{base.rstrip('/')}/?comp=list&{query}")[0] == 200
    assert fetch(f"{base.rstrip('/')}/photos?restype=container&comp=list&{query}")[0] == 403


def test_a_stored_policy_of_a_container(blobs, rowfs):
    blobs.put("/photos/x", b"1")
    policy = ("<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>"
              "<Expiry>2036-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy>"
              "</SignedIdentifier></SignedIdentifiers>").encode()
    where = {"restype": "container", "comp": "acl"}
    assert blobs.ask("PUT", "/photos", where, policy).status == 200
    assert b"<Id>one</Id>" in blobs.ask("GET", "/photos", where).body
    url = sas(blobs, rowfs, "photos/x", "--policy=one")
    assert fetch(url) == (200, b"1")
    assert blobs.ask("PUT", "/photos", where).status == 200
    assert fetch(url)[0] == 403


def test_a_host_of_the_blobs_at_the_tables_socket(blobs):
    blobs.put("/photos/x", b"1")
    other = Blobs(blobs.table_port, host=f"{ACCOUNT}.blob.localhost")
    assert other.get("/photos/x").body == b"1"


def test_properties_of_the_service_and_of_the_account(blobs):
    where = {"restype": "service", "comp": "properties"}
    xml = blobs.ask("GET", "/", where).body
    assert blobs.ask("PUT", "/", where, xml).status == 202
    answer = blobs.ask("GET", "/", {"restype": "account", "comp": "properties"})
    assert answer.headers["x-ms-account-kind"] == "StorageV2"


def test_what_a_crash_left_of_an_upload_goes(blobs, rowfs, serve):
    blobs.put("/photos/x", b"old")
    with socket.create_connection(("127.0.0.1", blobs.port), timeout=60):
        pass

    def source():
        yield from parts(5)
        blobs.server.proc.kill()
        blobs.server.proc.wait()
        yield b"x" * MIB
    with pytest.raises(OSError):
        blobs.ask("PUT", "/photos/x", body=source(), length=20 * MIB,
                  headers={"x-ms-blob-type": "BlockBlob"})
    server = serve(blobs.store, "--rest=blob=127.0.0.1:0")
    again = Blobs(server.port)
    assert again.get("/photos/x").body == b"old"
    server.stop()
    text = rowfs("check", blobs.store).stdout
    assert "1 container, 1 blob: clean" in text


def test_check_and_salvage_know_blobs(blobs, rowfs, serve, work):
    body = os.urandom(3 * MIB)
    blobs.put("/photos/big", body)
    blobs.put("/photos/small", b"1")
    blobs.server.stop()
    assert "1 container, 2 blobs: clean" in rowfs("check", blobs.store).stdout
    copy = work / "salvaged.rowfs"
    assert "1 containers, 2 blobs" in rowfs("salvage", blobs.store, copy).stdout
    server = serve(copy, "--rest=blob=127.0.0.1:0")
    again = Blobs(server.port)
    assert again.get("/photos/big").body == body and again.get("/photos/small").body == b"1"


def test_debians_client(blobs):
    storage = pytest.importorskip("azure.storage.blob")
    client = storage.BlobServiceClient.from_connection_string(blobs.connection)
    container = client.create_container("pyt")
    body = os.urandom(10 * MIB)
    blob = container.upload_blob("a/big", body, metadata={"k": "v"},
                                 content_settings=storage.ContentSettings("text/plain"))
    assert blob.download_blob().readall() == body
    props = blob.get_blob_properties()
    assert props.size == len(body) and props.metadata == {"k": "v"}
    assert props.content_settings.content_type == "text/plain"
    container.upload_blob("empty", b"")
    assert container.get_blob_client("empty").download_blob().readall() == b""
    assert [b.name for b in container.list_blobs()] == ["a/big", "empty"]
    assert [b.name for b in container.walk_blobs()] == ["a/", "empty"]
    with pytest.raises(Exception, match="BlobAlreadyExists"):
        container.upload_blob("empty", b"x")
    blob.delete_blob()
    assert not blob.exists()
    disk = container.get_blob_client("disk")
    disk.create_page_blob(8 * MIB)
    disk.upload_page(body[:4096], 1024, 4096)
    disk.clear_page(2048, 512)
    assert disk.get_page_ranges()[0] == [{"start": 1024, "end": 2047}, {"start": 2560, "end": 5119}]
    assert disk.download_blob(1024, 1024).readall() == body[:1024]
    disk.resize_blob(2048)
    assert disk.get_blob_properties().size == 2048
    parts = storage.BlobServiceClient.from_connection_string(
        blobs.connection, max_single_put_size=MIB, max_block_size=MIB).get_container_client("pyt")
    for _ in range(2):
        big = parts.upload_blob("blocks", body, overwrite=True, max_concurrency=4)
        assert big.download_blob(max_concurrency=4).readall() == body
        assert [b.size for b in big.get_block_list()[0]] == [MIB] * 10
    log = parts.upload_blob("log", b"one\n", blob_type="AppendBlob")
    log.append_block(b"two\n", appendpos_condition=4)
    assert log.download_blob().readall() == b"one\ntwo\n"
    container.delete_container()
