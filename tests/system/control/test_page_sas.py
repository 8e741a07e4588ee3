# SPDX-License-Identifier: MIT
"""Shared access signatures of the page, over HTTP and in Debian's Chromium."""

import calendar
import http.client
import json
import re
import time
import urllib.parse

import pytest

from blob_client import Blobs
from page_client import ask, browser_at, page_of
from queue_client import Queues
from rest_client import ACCOUNT, KEY, Client, ok


@pytest.fixture
def server(serve, rest_store):
    """Every service has a socket; each holds something with the name things."""
    server = serve(rest_store, "--rest=127.0.0.1:0", "--rest=queue=127.0.0.1:0", "--rest=blob=127.0.0.1:0",
                   "--page=127.0.0.1:0")
    with Client(server.port) as client:
        ok(client.create_table("things"))
    queues = Queues(server.port, f"{ACCOUNT}.queue.localhost")
    assert queues.ask("PUT", "/things").status == 201
    assert queues.put("things", "first").status == 201
    blobs = Blobs(server.port, host=f"{ACCOUNT}.blob.localhost")
    assert blobs.ask("PUT", "/things", {"restype": "container"}).status == 201
    assert blobs.put("/things/d/../a b.txt", b"content").status == 201
    return server


def follow(url, method="GET", more="", **headers):
    """The status of a request by somebody who has only the URL."""
    at = urllib.parse.urlsplit(url)
    path, _, token = url.partition("?")
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    try:
        c.request(method, urllib.parse.urlsplit(path).path + more + ("&" if "?" in more else "?") + token,
                  headers={"x-ms-version": "2019-02-02", **headers})
        return c.getresponse().status
    finally:
        c.close()


CHOICES = [
    ("Tables", [], "(//button[.='Share'])[1]", ("GET", "()"), ("POST", "")),
    ("Queues", [], "(//button[.='Share'])[1]", ("GET", "/messages?peekonly=true"),
     ("POST", "/messages")),
    ("Blobs", ["d/", "d/../"], "//button[@aria-label='Share d/../a b.txt']", ("GET", ""), ("DELETE", "")),
]


@pytest.mark.browser
@pytest.mark.parametrize("view, folders, share, may, may_not", CHOICES, ids=[c[0] for c in CHOICES])
def test_PG17_two_clicks_make_a_link_that_others_can_use(chromium, server, view, folders, share, may, may_not):
    with browser_at(chromium, page_of(server)) as browser:
        browser.click(f"//nav//a[.='{view}']")
        browser.click("//nav//a[.='things']")
        for folder in folders:
            browser.click(f"//button[.='{folder}']")
        browser.click(share)
        browser.click("//button[.='Make a link']")
        browser.find("//textarea[@aria-label='Link']")
        url = browser.run("return document.querySelector('.token').value")
    assert "/.." not in url  # browsers would shorten it
    assert follow(url, *may) == 200
    assert follow(url, *may_not, **{"Content-Length": "0"}) == 403


def sas(page, cookie, **query):
    status, _, body = ask(page.port, f"/sas/{ACCOUNT}?" + urllib.parse.urlencode(
        {"service": "table", "name": "things", "permissions": "r", "hours": 1, **query}), Cookie=cookie)
    return status, body.decode()


def test_PG17_the_answer_has_no_key_and_the_right_end(server):
    page = page_of(server)
    cookie, before = page.open(), int(time.time())
    status, text = sas(page, cookie)
    assert status == 200 and KEY not in text
    found = json.loads(text)
    assert found["endpoint"] == f"http://127.0.0.1:{server.port}"
    assert "sp=r" in found["token"].split("&")
    end = calendar.timegm(time.strptime(found["expiry"], "%Y-%m-%dT%H:%M:%SZ"))
    assert before + 3600 <= end <= time.time() + 3600


def test_PG17_a_signature_needs_the_session(server):
    page = page_of(server)
    page.open()
    assert sas(page, "")[0] == 401


@pytest.mark.parametrize("query, status", [
    ({"hours": 8784}, 200), ({"hours": 8785}, 400), ({"hours": 0}, 400), ({"hours": ""}, 400),
    ({"permissions": "raud"}, 200), ({"permissions": ""}, 400), ({"permissions": "rx"}, 400),
    ({"service": "file"}, 400), ({"name": ""}, 400), ({"name": "a\nb"}, 400)])
def test_PG17_a_wrong_wish_is_refused(server, query, status):
    page = page_of(server)
    assert sas(page, page.open(), **query)[0] == status


def test_PG17_a_process_without_the_socket_gives_the_token_alone(serve, rest_store):
    page = page_of(serve(rest_store, "--page=127.0.0.1:0"))
    status, text = sas(page, page.open(), service="queue", permissions="p")
    assert status == 200
    assert json.loads(text)["endpoint"] == ""
    assert re.search(r"\bsig=", json.loads(text)["token"])
