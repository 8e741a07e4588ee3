# SPDX-License-Identifier: MIT
"""Blobs in the page, in Debian's Chromium."""

import os
import shutil

import pytest

from blob_client import Blobs
from page_client import browser_at, page_of
from rest_client import ACCOUNT
from tools import wait_for

pytestmark = pytest.mark.skipif(shutil.which("chromedriver") is None,
                                reason="needs chromium-driver")
PART = 4 << 20  # of an upload


@pytest.fixture
def server(serve, rest_store):
    return serve(rest_store, "--page=127.0.0.1:0")


@pytest.fixture
def blobs(server):
    client = Blobs(server.port, host=f"{ACCOUNT}.blob.localhost")
    assert client.ask("PUT", "/boxes", {"restype": "container"}).status == 201
    for name in "a.txt", "dir/b.txt", "dir/c d.txt":
        assert client.put(f"/boxes/{name}", name.encode(), content_type="text/plain").status == 201
    return client


@pytest.fixture
def page(server, blobs, work):
    """A browser that shows the container boxes."""
    with browser_at(page_of(server), work) as browser:
        browser.call("POST", "/goog/cdp/execute", {"cmd": "Browser.setDownloadBehavior", "params": {
            "behavior": "allow", "downloadPath": str(work / "downloads")}})
        browser.click("//nav//a[.='Blobs']")
        browser.click("//nav//a[.='boxes']")
        browser.find("//caption[.='boxes/: 2 entries']")
        yield browser


def upload(page, *paths):
    element = page.find("//input[@id='files']")
    page.call("POST", f"/element/{element}/value", {"text": "\n".join(map(str, paths))})


def test_PG16_a_container_is_made_and_removed(page, blobs):
    page.click("//nav//a[.='Blobs']")
    page.type("//input[@id='new-name']", "made\ue007")
    page.find("//caption[.='made/: 0 entries']")
    page.click("//button[.='Delete this container']")
    page.click("//dialog//button[.='Delete']")
    page.find("//nav[not(.//a[.='made'])]")
    assert blobs.ask("GET", "/made", {"restype": "container"}).status == 404


def test_PG16_blobs_are_listed_by_prefix(page):
    page.click("//button[.='dir/']")
    page.find("//caption[.='boxes/dir/: 2 entries']")
    page.type("//input[@id='prefix']", "dir/c\ue007")
    page.find("//caption[.='boxes/dir/c: 1 entry']")
    page.find("//tr[td/a[.='dir/c d.txt']][td[.='11 B']][td[.='Block']][td[.='text/plain']]")


def test_PG16_a_blob_is_downloaded(page, work):
    page.type("//input[@id='prefix']", "dir/c\ue007")
    page.click("//a[.='dir/c d.txt']")
    there = work / "downloads" / "c d.txt"
    wait_for(there.exists)
    wait_for(lambda: there.read_bytes() == b"dir/c d.txt")


@pytest.mark.parametrize("size", [0, PART, PART + 1], ids=["empty", "one part", "two parts"])
def test_PG16_a_file_is_uploaded_in_parts(page, blobs, work, size):
    content = os.urandom(size)
    (work / "50% #1.bin").write_bytes(content)
    page.click("//button[.='dir/']")
    page.find("//caption[.='boxes/dir/: 2 entries']")
    upload(page, work / "50% #1.bin")
    page.find("//p[@id='status'][.='1 file was uploaded.']")
    found = blobs.get("/boxes/dir/50% #1.bin")
    assert found.body == content
    assert found.headers["x-ms-blob-type"] == "BlockBlob"


@pytest.mark.parametrize("answer, content", [("Cancel", b"a.txt"), ("Replace", b"new")])
def test_PG16_a_blob_is_replaced_only_if_the_user_agrees(page, blobs, work, answer, content):
    """The file before it is there and listed either way, and the same files can be chosen again."""
    for name in "0.txt", "a.txt":
        (work / name).write_bytes(b"new")
    upload(page, work / "0.txt", work / "a.txt")
    page.find("//dialog//p[.='There is a blob a.txt. Replace it?']")
    page.click(f"//dialog//button[.='{answer}']")
    page.find("//p[@id='status'][string-length(.) > 0]")
    page.complained("status of 409")
    page.find("//caption[.='boxes/: 3 entries']")
    assert page.run("return document.getElementById('files').files.length") == 0
    assert blobs.get("/boxes/a.txt").body == content


def test_PG16_a_blob_is_deleted(page, blobs):
    page.click("//button[@aria-label='Delete a.txt']")
    page.click("//dialog//button[.='Delete']")
    page.find("//caption[.='boxes/: 1 entry']")
    assert blobs.get("/boxes/a.txt").status == 404


def test_PG16_a_name_with_two_dots_is_no_other_blob(page, blobs, work):
    """A browser would shorten the path of up/../a.txt to that of a.txt."""
    assert blobs.put("/boxes/up/../a.txt", b"other").status == 201
    page.type("//input[@id='prefix']", "up/../\ue007")
    page.find("//caption[.='boxes/up/../: 1 entry']")
    page.click("//a[.='up/../a.txt']")
    there = work / "downloads" / "a.txt"
    wait_for(lambda: there.exists() and there.read_bytes() == b"other")
    (work / "a.txt").write_bytes(b"new")
    upload(page, work / "a.txt")
    page.click("//dialog//button[.='Replace']")
    page.find("//p[@id='status'][.='1 file was uploaded.']")
    page.complained("status of 409")
    assert blobs.get("/boxes/up/../a.txt").body == b"new"
    page.click("//button[@aria-label='Delete up/../a.txt']")
    page.click("//dialog//button[.='Delete']")
    page.find("//caption[.='boxes/up/../: 0 entries']")
    assert blobs.get("/boxes/a.txt").body == b"a.txt"


def test_PG16_a_name_that_a_browser_follows_is_refused(page, blobs):
    assert blobs.put("/boxes/..", b"content").status == 201
    page.click("//button[.='Show']")
    page.find("//caption[.='boxes/: 3 entries']")
    page.click("//button[@aria-label='Delete ..']")
    page.click("//dialog//button[.='Delete']")
    page.find("//p[@id='status'][contains(., 'A browser cannot ask for a blob with the name ..')]")
    assert blobs.get("/boxes/..").body == b"content"
    assert blobs.ask("GET", "/boxes", {"restype": "container"}).status == 200


def test_PG16_page_ranges_are_drawn(page, blobs):
    size = 1 << 20
    assert blobs.ask("PUT", "/boxes/disk", headers={
        "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size)}).status == 201
    for start, end in (0, 512), (size // 2, size * 3 // 4):
        assert blobs.ask("PUT", "/boxes/disk", {"comp": "page"}, b"x" * (end - start), {
            "x-ms-page-write": "update", "x-ms-range": f"bytes={start}-{end - 1}"}).status == 201
    page.click("//button[.='Show']")
    page.click("//button[@aria-label='Page ranges of disk']")
    page.find("//p[.='disk: 2 ranges with 256.5 KiB of 1.0 MiB']")
    drawn = page.run("""return [...document.querySelectorAll(".ranges rect")]
        .map((rect) => [Number(rect.getAttribute("x")), Number(rect.getAttribute("width"))])""")
    assert drawn == [[0, 1], [500, 250]]
    assert page.run("""return document.querySelector("[aria-label='Page ranges'] tbody").textContent""") == \
        "0512512" + f"{size // 2}{size * 3 // 4}{size // 4}"
