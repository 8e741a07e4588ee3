# SPDX-License-Identifier: MIT
"""Blobs in the page, in Debian's Chromium."""

import os

import pytest

from blob_client import Blobs
from page_client import browser_at, hold, let_go, page_of
from rest_client import ACCOUNT
from tools import wait_for

pytestmark = pytest.mark.browser
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
def page(chromium, server, blobs, work):
    """A browser that shows the container boxes."""
    with browser_at(chromium, page_of(server)) as browser:
        browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(work / "downloads"))
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


@pytest.mark.parametrize("answer", ["Cancel", "Replace"])
def test_PG16_a_blob_is_replaced_only_if_the_user_agrees(page, blobs, work, answer):
    """The page asks before it sends anything.  The other file is uploaded either way, and the same files can be
    chosen again."""
    (work / "0.txt").write_bytes(b"new")
    large = b"n" * (PART + 1)
    (work / "a.txt").write_bytes(large)
    upload(page, work / "0.txt", work / "a.txt")
    page.find("//dialog//p[.='There is a blob a.txt. Replace it?']")
    assert page.run("return performance.getEntriesByType('resource').some((e) => /comp=block|boxes.0[.]txt/.test(e.name))") is False
    page.click(f"//dialog//button[.='{answer}']")
    page.find(f"//p[@id='status'][.='{'2 files were' if answer == 'Replace' else '1 file was'} uploaded.']")
    page.find("//caption[.='boxes/: 3 entries']")
    assert page.run("return document.getElementById('files').files.length") == 0
    replaced = blobs.get("/boxes/a.txt").body == large
    assert replaced == (answer == "Replace") and blobs.get("/boxes/0.txt").body == b"new"


def test_PG16_a_blob_that_comes_during_an_upload_stays(page, blobs, work):
    (work / "late.txt").write_bytes(b"n" * (PART + 1))
    hold(page, "path.includes('comp=blocklist')")
    upload(page, work / "late.txt")
    page.find("//progress[@value='1']")
    assert blobs.put("/boxes/late.txt", b"first").status == 201
    let_go(page)
    page.find("//p[@id='status'][contains(., 'already exists')]")
    page.complained("status of 409")
    assert blobs.get("/boxes/late.txt").body == b"first"


def test_PG16_an_upload_shows_how_far_it_is(page, work):
    """The second of three parts is held."""
    (work / "large.bin").write_bytes(b"n" * (2 * PART + 1024))
    hold(page, "path.includes(btoa('000001'))")
    upload(page, work / "large.bin")
    page.find("//p[@class='task'][not(@hidden)]/span[starts-with(., 'large.bin 4.0 MiB of 8.0 MiB, ') and contains(., 'B/s, ') "
              "and substring(., string-length(.) - 4)=' left']")
    assert page.run("return document.querySelector('progress[aria-label=Upload]').value") == pytest.approx(0.5, abs=0.001)
    let_go(page)
    page.find("//p[@id='status'][.='1 file was uploaded.']")
    page.find("//p[@class='task'][@hidden]")


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
