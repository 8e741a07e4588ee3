# SPDX-License-Identifier: MIT
"""Blobs while the daemon's calls on the store's files fail one by one, and its allocations: blobs of all
types are put, changed, copied, renamed and deleted through REST and the mount.  Whatever the caller is
told, each blob is there whole or not at all."""

import errno
import os
import re

import pytest

import calls
from blob_client import Blobs
from rest_client import ACCOUNT
from test_every_call import CALLS, control, watched  # noqa: F401
from test_every_call_queues import Told, fail_opens, lost_requests, strike_each
from tools import get, put

PAGE = b"p" * 512


class BlobScript:
    """The container photos, and some blobs a round."""

    def __init__(self, watched):
        self.w, self.m = watched, watched.m
        self.dir = self.m / ACCOUNT / ".blob/photos"
        self.rest = Blobs(self.m.port, host=f"{ACCOUNT}.blob.localhost")
        self.told = Told()
        assert self.ask("PUT", "", {"restype": "container"}).status == 201
        assert self.ask("PUT", "base", None, b"base", x_ms_blob_type="BlockBlob").status == 201

    def ask(self, method, name, query=None, body=None, **headers):
        return self.rest.ask(method, f"/photos/{name}" if name else "/photos", query, body,
                             {k.replace("_", "-"): v for k, v in headers.items()})

    def change(self, name, new, *request, wrong=(), **headers):
        self.told.change(name, new, lambda: self.ask(*request, **headers), wrong)

    def move_file(self, old, new, content):
        """Puts a blob as a file, and renames it."""
        change, may = self.told.change, self.told.may
        lost = lost_requests(self.m)
        if change(old, content, lambda: put(self.dir / old, content) or True):
            may[new] = {None, content}
            if change(old, None, lambda: os.rename(self.dir / old, self.dir / new) or True):
                may[new] = {content}
        elif lost_requests(self.m) > lost:  # rowfs never saw the write, and the close puts an empty blob
            may[old].add(b"")

    def script(self, n, lost_connections=False):
        """What a refusal before leaves out is 404, or 400 for a list of blocks."""
        self.told.lost_connections = lost_connections
        small, large = f"small {n}".encode(), f"large {n} ".encode() * 10000
        self.change(f"a{n}", large, "PUT", f"a{n}", None, large, x_ms_blob_type="BlockBlob")
        self.move_file(f"file{n}", f"moved{n}", small)
        self.change("block", None, "PUT", f"list{n}", {"comp": "block", "blockid": "QUFB"}, large)
        self.change(f"list{n}", large, "PUT", f"list{n}", {"comp": "blocklist"},
                    b"<BlockList><Latest>QUFB</Latest></BlockList>", wrong=(400,))
        self.change(f"log{n}", b"", "PUT", f"log{n}", None, b"", x_ms_blob_type="AppendBlob")
        self.change(f"log{n}", small, "PUT", f"log{n}", {"comp": "appendblock"}, small, wrong=(404,))
        self.change(f"disk{n}", bytes(512), "PUT", f"disk{n}", None, b"",
                    x_ms_blob_type="PageBlob", x_ms_blob_content_length="512")
        self.change(f"disk{n}", PAGE, "PUT", f"disk{n}", {"comp": "page"}, PAGE, wrong=(404,),
                    x_ms_page_write="update", x_ms_range="bytes=0-511")
        self.change(f"copy{n}", b"base", "PUT", f"copy{n}",
                    x_ms_copy_source=f"http://{self.rest.host}:{self.m.port}/photos/base")
        self.change("snapshot", None, "PUT", "base", {"comp": "snapshot"})
        self.change(f"a{n}", None, "DELETE", f"a{n}", wrong=(404,))

    # ---- what is there

    def names(self):
        answer = self.ask("GET", "", {"restype": "container", "comp": "list"})
        return re.findall(r"<Name>([^<]*)</Name>", answer.body.decode())

    def check(self):
        """Faults are off."""
        there = self.names()
        assert sorted(there) == sorted(os.listdir(self.dir)) and "base" in there
        for name, states in self.told.may.items():
            if name in ("block", "snapshot"):
                continue
            content = self.ask("GET", name).body if name in there else None
            assert content in states, (name, content and content[:40])
            assert content is None or get(self.dir / name) == content
        assert set(there) <= {"base", *self.told.may}
        assert self.m.alive()

    def forget(self):
        """The blobs of the last rounds."""
        for name in self.names():
            if name != "base":
                assert self.ask("DELETE", name).status == 202
        assert self.ask("DELETE", "base", x_ms_delete_snapshots="only").status in (202, 404)
        self.told.may = {}


@pytest.fixture
def blobs(watched):  # noqa: F811
    return BlobScript(watched)


@pytest.mark.parametrize("last", [0, calls.ALL], ids=["once", "from then on"])
def test_every_call_of_blobs_on_the_store_fails(blobs, last):
    refused = strike_each(
        blobs, CALLS, lambda c, n: c.strike("fail", CALLS, n, last, errno.EIO))
    assert refused > 0


def test_every_allocation_of_blobs_fails(blobs):
    strike_each(blobs, calls.MEMORY,
                lambda c, n: c.strike("fail", calls.MEMORY, n, n, errno.ENOMEM),
                lost_connections=True)


def test_an_open_without_memory_puts_no_blob(blobs):
    fail_opens(blobs, lambda n: blobs.dir / f"file{n}",
               lambda: [n for n in blobs.names() if n != "base"])


def test_an_open_without_memory_leaves_the_blob_as_it_was(blobs):
    def file(_):
        put(blobs.dir / "old", b"old")
        return blobs.dir / "old"

    fail_opens(blobs, file, lambda: [
        n for n in blobs.names() if blobs.ask("GET", n).body == b""])
