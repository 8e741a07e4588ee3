# SPDX-License-Identifier: MIT
"""The page for browsers, by HTTP: its link, its session, and what it refuses."""

import json
import pathlib
import re

import pytest

from page_client import Page, ask
from rest_client import ACCOUNT, VERSION, Client, ok

FOLDER = pathlib.Path(__file__).parents[3] / "src/rest/page/files"
FILES = sorted(str(p.relative_to(FOLDER)) for p in FOLDER.rglob("*.*") if p.suffix != ".md")

JSON = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}


class ServedPage(Page):
    def __init__(self, server):
        super().__init__("\n".join(server.endpoints))
        self.server = server


@pytest.fixture
def page(serve, rest_store):
    return ServedPage(serve(rest_store, "--page=127.0.0.1:0"))


def test_PG1_the_link_hands_out_one_session(page):
    status, headers, _ = ask(page.port, page.link, method="HEAD")
    assert (status, headers["Set-Cookie"]) == (403, None)
    status, headers, _ = ask(page.port, page.link)
    assert status == 303
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Strict"]
    status, headers, _ = ask(page.port, page.link)
    assert (status, headers["Set-Cookie"]) == (403, None)
    assert ask(page.port, page.link, Cookie=cookie)[0] == 303
    assert page.link not in page.server.log()


@pytest.mark.parametrize("link", ["/?link=", "/?link=" + "0" * 32, "/?link=" + "0" * 33])
def test_PG1_a_wrong_link_opens_nothing_and_uses_nothing_up(page, link):
    status, headers, _ = ask(page.port, link)
    assert (status, headers["Set-Cookie"]) == (403, None)
    page.open()


def test_PG1_data_needs_the_session(page):
    cookie = page.open()
    for path in "/accounts", f"/table/{ACCOUNT}/Tables":
        assert ask(page.port, path)[0] == 401
        assert ask(page.port, path, Cookie=cookie[:-1])[0] == 401
        assert ask(page.port, path, Cookie=cookie + "0")[0] == 401
        assert ask(page.port, path, Cookie=f"a=b; {cookie}; c=d")[0] == 200


def test_PG1_the_session_ends_with_the_server(page, serve, rest_store):
    cookie = page.open()
    page.server.stop()
    assert ask(ServedPage(serve(rest_store, "--page=127.0.0.1:0")).port, "/accounts", Cookie=cookie)[0] == 401


def test_PG2_the_session_reads_tables_and_rows(page):
    with Client(page.server.port) as client:
        ok(client.create_table("Tab"))
        for i in range(3):
            ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": str(i), "N": i}))
    cookie = page.open()
    names = json.loads(ask(page.port, "/accounts", Cookie=cookie)[2])["accounts"]
    assert ACCOUNT in names
    status, headers, body = ask(page.port, f"/table/{ACCOUNT}/Tab()?$top=2&$filter=N%20gt%200",
                                Cookie=cookie, Accept="application/json;odata=nometadata")
    assert status == 200
    assert [row["N"] for row in json.loads(body)["value"]] == [1, 2]
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; sandbox;")


def test_PG2_the_session_changes_rows_queues_and_blobs(page):
    cookie = {"Cookie": page.open(), "x-ms-version": VERSION}
    for method, path, body, headers in (
            ("POST", f"/table/{ACCOUNT}/Tables", b'{"TableName": "Made"}', JSON),
            ("PUT", f"/queue/{ACCOUNT}/tasks", b"", {}),
            ("PUT", f"/blob/{ACCOUNT}/boxes?restype=container", b"", {})):
        assert ask(page.port, path, method, body, **cookie, **headers)[0] == 201
    with Client(page.server.port) as client:
        assert client.insert("Made", {"PartitionKey": "p", "RowKey": "r"}).status == 201


def test_PG2_a_large_body_counts_once(page):
    cookie = {"Cookie": page.open(), "x-ms-version": VERSION}
    ask(page.port, f"/blob/{ACCOUNT}/boxes?restype=container", "PUT", b"", **cookie)
    path, content = f"/blob/{ACCOUNT}/boxes/large", b"x" * 200_000
    once = {"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}
    assert ask(page.port, path, "PUT", content, **cookie, **once)[0] == 201
    assert ask(page.port, path, Cookie=cookie["Cookie"])[2] == content
    assert ask(page.port, path, "PUT", content, **once)[0] == 401


@pytest.mark.parametrize("path", ["/accounts", "/", "/page.js"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_PG2_what_is_no_service_is_only_read(page, path, method):
    assert ask(page.port, path, method, b"", Cookie=page.open(), **{"x-ms-version": VERSION})[0] == 405


@pytest.mark.parametrize("method, path, body", [
    ("POST", f"/table/{ACCOUNT}/Tables", b'{"TableName": "Made"}'),
    ("PUT", f"/queue/{ACCOUNT}/made", b""),
    ("GET", f"/queue/{ACCOUNT}/tasks/messages", None)])
def test_PG3_another_origin_changes_nothing(page, method, path, body):
    """What a browser lets a page of another port send: no header of its own before an OPTIONS."""
    cookie = {"Cookie": page.open()}
    own = {**cookie, **JSON, "x-ms-version": VERSION}
    ask(page.port, f"/queue/{ACCOUNT}/tasks", "PUT", b"", **own)
    assert ask(page.port, path, method, body, **cookie)[0] == 403
    other = {"Origin": f"http://127.0.0.1:{page.server.port}"}
    assert ask(page.port, path, method, body, **own, **other)[0] == 403
    status, headers, _ = ask(page.port, path, "OPTIONS", **cookie, Origin=f"http://127.0.0.1:{page.port}",
                             **{"Access-Control-Request-Method": method})
    assert (status, headers["Access-Control-Allow-Origin"]) == (405, None)
    assert ask(page.port, path, method, body, **own)[0] in (200, 201)


def test_PG3_a_blob_runs_no_script(page):
    cookie = {"Cookie": page.open(), "x-ms-version": VERSION}
    ask(page.port, f"/blob/{ACCOUNT}/boxes?restype=container", "PUT", b"", **cookie)
    path = f"/blob/{ACCOUNT}/boxes/evil.html"
    ask(page.port, path, "PUT", b"<script src='/page.js'></script>", **cookie,
        **{"x-ms-blob-type": "BlockBlob", "Content-Type": "text/html"})
    status, headers, _ = ask(page.port, path, **cookie)
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; sandbox;")
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", FILES)
def test_PG3_files_forbid_external_and_inline_code(page, name):
    status, headers, body = ask(page.port, "/" + name.removesuffix("index.html"))
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    code = b"\n".join(line for line in body.splitlines() if not line.lstrip().startswith((b"//", b"*")))
    assert not re.search(rb"<script(?![^>]*\bsrc=)|\bstyle=|\son\w+=|https?://(?!www\.w3\.org/2000/svg)", code)


def test_PG3_an_unknown_file_is_not_found(page):
    assert ask(page.port, "/../page.js")[0] == 404
    assert ask(page.port, "/index.html")[0] == 404


@pytest.mark.parametrize("host, status", [
    ("127.0.0.1:1", 200), ("localhost", 200), ("LOCALHOST:80", 200), ("[::1]:1", 200),
    ("example.org", 403), ("localhost.example.org", 403), ("127.0.0.1.example.org:80", 403),
    ("x.localhost", 403)])
def test_PG3_the_host_must_be_this_machine(page, host, status):
    assert ask(page.port, "/accounts", Host=host, Cookie=page.open())[0] == status


def test_PG3_another_origin_reads_nothing(page):
    cookie = page.open()

    def status(origin):
        return ask(page.port, "/accounts", Cookie=cookie, Origin=origin)[0]

    assert status(f"http://127.0.0.1:{page.port}") == 200
    assert status(f"http://127.0.0.1:{page.server.port}") == 403
    assert status(f"https://127.0.0.1:{page.port}") == 403
    assert status("null") == 403


@pytest.mark.parametrize("endpoint", ["0.0.0.0:0", "unix:page.sock"])
def test_PG3_the_socket_is_a_loopback_address(rowfs, rest_store, endpoint):
    done = rowfs("serve", rest_store, f"--page={endpoint}", "--rest=127.0.0.1:0", check=False)
    assert done.returncode == 1
    assert "the page is for this machine's browsers" in done.stderr
