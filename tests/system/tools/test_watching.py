# SPDX-License-Identifier: MIT
"""What watchers see: inotify on a partition, tail -f and tail -F on a row."""

import contextlib
import os
import selectors
import signal
import subprocess

import pytest

import rest_client
from conftest import ENV
from tools import get, need, put, raises

OLD = '{"Author":"Ann","Rating":4}\n'
NEW = '{"Author":"Ann","Rating":5}\n'
SECONDS = 30


class Lines:
    """A program's output, line by line as it comes."""

    def __init__(self, *command, cwd):
        self.proc = subprocess.Popen(command, cwd=cwd, env=ENV, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.select = selectors.DefaultSelector()
        self.select.register(self.proc.stdout, selectors.EVENT_READ)
        self.text = b""

    def until(self, end):
        """The lines up to the one that has `end` in it, with it."""
        seen = []
        while True:
            line, found, rest = self.text.partition(b"\n")
            if found:
                self.text = rest
                seen.append(line.decode())
                if end in seen[-1]:
                    return seen
                continue
            if not self.select.select(SECONDS):
                pytest.fail(f"nothing with {end!r} after {seen}")
            piece = os.read(self.proc.stdout.fileno(), 4096)
            if not piece:
                pytest.fail(f"it has ended: {seen}")
            self.text += piece

    def end(self):
        self.proc.send_signal(signal.SIGTERM)
        self.proc.wait(SECONDS)
        self.proc.stdout.close()


@contextlib.contextmanager
def lines(*command, cwd):
    program = Lines(*command, cwd=cwd)
    try:
        yield program
    finally:
        program.end()


@pytest.fixture
def r(rest_mount, rest_store):
    """A partition with a row, and a REST client."""
    m = rest_mount(rest_store)
    part = m / rest_client.ACCOUNT / "Tab" / "p"
    part.mkdir(parents=True)
    put(part / "r.json", OLD)
    with rest_client.Client(m.port) as client:
        yield part, client


def test_inotify_sees_what_is_done_through_the_mount(r):
    """And nothing of what comes through REST; a refused write looks like another."""
    need("inotifywait")
    part, client = r

    def change(name, **properties):
        rest_client.ok(client.upsert("Tab", "p", name, properties), 204)

    with lines("inotifywait", "-m", "-e", "create,close_write,moved_to,moved_from,delete",
               "--format", "%e %f", ".", cwd=part) as watch:
        watch.until("Watches established")

        def events(done):
            """What was seen since the last call."""
            put(part / done, "")
            seen = watch.until(f"CLOSE_WRITE,CLOSE {done}")
            assert seen.pop(-2) == f"CREATE {done}"
            return seen[:-1]

        put(part / "r.json", NEW)
        assert events("1") == ["CLOSE_WRITE,CLOSE r.json"]
        with raises("EINVAL"):
            put(part / "r.json", "{bad")
        assert events("2") == ["CLOSE_WRITE,CLOSE r.json"]
        assert get(part / "r.json").decode() == NEW
        put(part / "tmp", OLD)
        os.rename(part / "tmp", part / "r.json")
        assert events("3") == ["CREATE tmp", "CLOSE_WRITE,CLOSE tmp", "MOVED_FROM tmp",
                               "MOVED_TO r.json"]
        put(part / "tmp", "{bad")
        with raises("EBADMSG"):
            os.rename(part / "tmp", part / "r.json")
        assert events("4") == ["CREATE tmp", "CLOSE_WRITE,CLOSE tmp"]
        put(part / "n.json", NEW)
        assert events("5") == ["CREATE n.json", "CLOSE_WRITE,CLOSE n.json"]
        os.unlink(part / "n.json")
        assert events("6") == ["DELETE n.json"]
        change("r", Rating=7)
        change("q", Rating=8)
        rest_client.ok(client.delete("Tab", "p", "q"), 204)
        assert events("7") == []


def test_the_event_comes_after_the_commit(r):
    """Who reads the row on the event reads the new one."""
    need("inotifywait")
    part, _ = r
    with lines("inotifywait", "-m", "-e", "close_write,moved_to", "--format", "%f", ".",
               cwd=part) as watch:
        watch.until("Watches established")
        for i in range(200):
            text = f'{{"n":{i}}}\n'
            if i % 2:
                put(part / "r.json", text)
                watch.until("r.json")
            else:
                put(part / "tmp", text)
                os.rename(part / "tmp", part / "r.json")
                watch.until("r.json")
            assert get(part / "r.json").decode() == text


def test_tail_F_goes_on_with_the_row_that_took_the_place(r):
    part, _ = r
    with lines("tail", "-F", "-s", "0.02", "-n", "+1", "r.json", cwd=part) as tail:
        assert tail.until("Rating") == [OLD[:-1]]
        put(part / "tmp", NEW)
        os.rename(part / "tmp", part / "r.json")
        assert tail.until("Rating")[-1] == NEW[:-1]
        os.unlink(part / "r.json")
        tail.until("become inaccessible")
        put(part / "r.json", '{"Rating":6}\n')
        assert tail.until("Rating")[-1] == '{"Rating":6}'


def test_tail_f_shows_the_version_that_it_has_opened(r):
    """W1: a row that is rewritten under the same name is another version, not a longer file."""
    part, client = r
    put(part / "log", "one\n")
    with lines("tail", "-f", "-s", "0.02", "-n", "+1", "r.json", "log", cwd=part) as tail:
        tail.until("one")
        put(part / "r.json", NEW)
        rest_client.ok(client.upsert("Tab", "p", "r", {"Rating": 7}), 204)
        with open(part / "log", "a", encoding="ascii") as log:
            log.write("two\n")
        assert tail.until("two") == ["two"]
