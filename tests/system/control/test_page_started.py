# SPDX-License-Identifier: MIT
"""The page of a mount and of rowfs dev: who starts it prints the link."""

import re
import socket

import pytest

from conftest import need_fuse
from page_client import Page, ask
from tools import emulator_port

PAGE_PORT = 10003


@pytest.fixture
def at(work):
    d = work / "mnt"
    d.mkdir()
    return d


def test_PG4_a_mount_prints_the_link_and_serves_the_page(rowfs, rest_store, at, work):
    need_fuse()
    log = work / "mount.log"
    done = rowfs("mount", rest_store, at, "-o", f"page=127.0.0.1:0,log={log}")
    try:
        page = Page(done.stdout)
        cookie = page.open()
        assert page.data("/accounts", cookie)["accounts"]
        assert ask(page.port, page.link)[0] == 403
    finally:
        rowfs("umount", at)
    assert f"127.0.0.1:{page.port}" in log.read_text()
    assert "link=" not in log.read_text()


def test_PG4_the_page_of_a_mount_needs_a_loopback_address(rowfs, rest_store, at):
    done = rowfs("mount", rest_store, at, "-o", "page=0.0.0.0:0", check=False)
    assert done.returncode == 1
    assert "the page is for this machine's browsers" in done.stderr


def test_PG4_dev_prints_the_link(rowfs, work):
    done = rowfs("dev", "--detach", "--free-ports", cwd=work)
    try:
        page = Page(done.stdout)
        assert page.data("/accounts", page.open()) == {"accounts": ["devstoreaccount1"]}
    finally:
        rowfs("dev", "--stop", cwd=work)
    assert "link=" not in (work / "rowfs-dev/dev.log").read_text()


def test_PG4_dev_takes_another_port_for_the_page_if_its_own_is_taken(rowfs, work):
    with emulator_port(), socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", PAGE_PORT))
            other.listen()
        except OSError as e:
            pytest.skip(f"needs port {PAGE_PORT}: {e.strerror}")
        done = rowfs("dev", "--detach", cwd=work)
    try:
        assert Page(done.stdout).port != PAGE_PORT
        assert f"port {PAGE_PORT} is taken; another one is used" in done.stderr
    finally:
        rowfs("dev", "--stop", cwd=work)


def test_PG4_a_program_of_dev_gets_no_page(rowfs, work):
    done = rowfs("dev", "--memory", "--free-ports", "--exec", "true", cwd=work)
    assert not re.search("page|link=", done.stdout + done.stderr)
