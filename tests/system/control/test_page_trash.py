# SPDX-License-Identifier: MIT
"""Rows that the page moves into the trash and back, by HTTP."""

import json
import os
import re
import stat
import urllib.parse

import pytest

from conftest import need_fuse
from page_client import Page, ask, page_of
from rest_client import ACCOUNT, Client, ok

HEADER = {"x-ms-version": "2019-02-02"}
KEYS = {"pk": "p", "rk": "1"}
ROW = {"PartitionKey": "p", "RowKey": "1", "Half@odata.type": "Edm.Double", "Half": 2.0, "Text": "ü"}


class Trash:
    """The page of a mount or of a server, with a session and a client."""

    def __init__(self, page, client):
        self.page, self.client = page, client
        self.cookie = page.open()

    def ask(self, method, header=HEADER, table="Tab", cookie=None, **query):
        path = f"/trash/{ACCOUNT}/{table}?" + urllib.parse.urlencode(query)
        status, _, body = ask(self.page.port, path, method, Cookie=cookie or self.cookie, **header)
        return status, body

    def row(self):
        found = self.client.get("Tab", "p", "1")
        return found.json if found.status == 200 else None

    def etag(self):
        return self.client.get("Tab", "p", "1").headers["ETag"]


@pytest.fixture
def server(serve, rest_store):
    return serve(rest_store, "--page=127.0.0.1:0")


@pytest.fixture
def trash(server):
    with Client(server.port) as client:
        ok(client.create_table("Tab"))
        ok(client.insert("Tab", ROW))
        yield Trash(page_of(server), client)


def test_PG13_a_row_goes_to_the_trash_and_comes_back(trash):
    before = trash.row()
    status, body = trash.ask("DELETE", etag=trash.etag(), **KEYS)
    file = json.loads(body)["file"]
    assert status == 200 and re.fullmatch(r"\d{4}-.*-Tab-p-1\.json", file)
    assert trash.row() is None
    assert trash.ask("POST", file=file, **KEYS)[0] == 200
    after = trash.row()
    assert after.pop("Timestamp") > before.pop("Timestamp")
    assert {k: v for k, v in after.items() if k != "odata.etag"} == {k: v for k, v in before.items() if k != "odata.etag"}
    assert trash.ask("POST", file=file, **KEYS)[0] == 404


def test_PG13_a_row_that_changed_meanwhile_is_not_deleted(trash):
    etag = trash.etag()
    ok(trash.client.upsert("Tab", "p", "1", {"Text": "new"}))
    assert trash.ask("DELETE", etag=etag, **KEYS)[0] == 412
    assert trash.row()["Text"] == "new"


def test_PG13_a_row_that_was_made_anew_stays(trash):
    file = json.loads(trash.ask("DELETE", etag=trash.etag(), **KEYS)[1])["file"]
    ok(trash.client.upsert("Tab", "p", "1", {"Text": "anew"}))
    assert trash.ask("POST", file=file, **KEYS)[0] == 409
    assert trash.row()["Text"] == "anew"


@pytest.mark.parametrize("method, query, status", [
    ("DELETE", {"etag": "*"}, 400), ("DELETE", {"etag": "x"}, 400), ("DELETE", {"rk": "2"}, 404),
    ("DELETE", {"pk": "q"}, 404), ("DELETE", {"pk": "p" * 513}, 400), ("DELETE", {"table": "None"}, 404),
    ("POST", {"file": "none"}, 404), ("POST", {"file": "../1"}, 404), ("POST", {"pk": "q", "file": "none"}, 404),
    ("GET", {}, 405), ("DELETE", {"cookie": "x"}, 401), ("DELETE", {"header": {}}, 403)])
def test_PG13_a_wrong_request_changes_nothing(trash, method, query, status):
    before = trash.row()
    assert trash.ask(method, **{"etag": trash.etag(), **KEYS, **query})[0] == status
    assert trash.row() == before


def test_PG13_a_read_only_server_moves_no_row(serve, rest_store):
    server = serve(rest_store, "--page=127.0.0.1:0")
    with Client(server.port) as client:
        ok(client.create_table("Tab"))
        ok(client.insert("Tab", ROW))
        etag = client.get("Tab", "p", "1").headers["ETag"]
    server.stop()
    server = serve(rest_store, "--page=127.0.0.1:0", "--read-only")
    with Client(server.port) as client:
        trash = Trash(page_of(server), client)
        assert trash.ask("DELETE", etag=etag, **KEYS)[0] == 403
        assert trash.row() is not None


def test_PG13_the_trash_of_a_mount_has_the_row_and_gives_its_mode_and_times_back(rowfs, rest_store, work):
    need_fuse()
    at = work / "mnt"
    at.mkdir()
    said = rowfs("mount", rest_store, at, "-o", "page=127.0.0.1:0").stdout
    try:
        trash = Trash(Page(said), None)
        path, folder = at / ACCOUNT / "Tab/p/1.json", at / ".rowfs/trash"
        path.parent.mkdir(parents=True)
        path.write_text('{"Text":"x"}')
        path.chmod(0o640)
        os.utime(path, (1e9, 1e9))
        etag = os.getxattr(path, "user.rowfs.etag").decode()
        file = json.loads(trash.ask("DELETE", etag=etag, **KEYS)[1])["file"]
        assert not path.exists() and os.listdir(folder) == [file]
        assert (folder / file).read_text() == '{"Text":"x"}'
        assert trash.ask("POST", file=file, **KEYS)[0] == 200
        assert os.listdir(folder) == [] and path.read_text() == '{"Text":"x"}'
        assert stat.S_IMODE(path.stat().st_mode) == 0o640 and path.stat().st_mtime == 1e9
    finally:
        rowfs("umount", at)
