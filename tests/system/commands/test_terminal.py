# SPDX-License-Identifier: MIT
"""Colour on terminals: none for NO_COLOR, TERM=dumb, files and pipes (AD13 in docs/operating.md)."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess

import pytest

from conftest import ENV

GREEN, RED, BOLD = "\x1b[32m", "\x1b[31m", "\x1b[1m"
PLAIN = ({"TERM": "dumb"}, {"NO_COLOR": "1"}, {"TERM": ""}, {"NO_COLOR": "1", "TERM": "dumb"})
COLOURED = ({}, {"NO_COLOR": ""})


def environment(changes):
    env = {k: v for k, v in ENV.items() if k not in ("NO_COLOR", "TERM")}
    return {**env, "TERM": "xterm", **changes}


@contextlib.contextmanager
def started_on_terminal(rowfs, *args, env, stream="stdout"):
    """Starts a command with one standard stream on a terminal.  Yields the process and a function that
    returns what it shows until a text comes, or until its end."""
    ours, theirs = os.openpty()
    shown = ""

    def show(until=None):
        nonlocal shown
        with contextlib.suppress(OSError):  # EIO: the command has ended
            while until is None or until not in shown:
                shown += os.read(ours, 65536).decode()
        return shown

    others = {s: subprocess.PIPE for s in ("stdout", "stderr") if s != stream}
    with subprocess.Popen([rowfs.program, *map(str, args)], env=environment(env), **{stream: theirs}, **others) as p:
        os.close(theirs)
        try:
            yield p, show
        finally:
            p.send_signal(signal.SIGTERM)
            p.communicate(timeout=60)
            os.close(ours)


@pytest.fixture(params=("alone", "served"))
def place(request, rest_store):
    """A store that nobody serves, and one whose server has another environment."""
    if request.param == "served":
        request.getfixturevalue("serve")(rest_store)
    return rest_store


@pytest.mark.parametrize("env", COLOURED)
def test_AD13_check_says_in_green_that_a_store_is_clean(rowfs, place, env):
    with started_on_terminal(rowfs, "check", place, env=env) as (_, show):
        assert f"{GREEN}clean\x1b[0m" in show()


@pytest.mark.parametrize("env", PLAIN)
def test_AD13_check_is_plain_if_the_user_or_the_terminal_wants_that(rowfs, place, env):
    with started_on_terminal(rowfs, "check", place, env=env) as (_, show):
        assert "clean" in show() and "\x1b" not in show()


def test_AD13_a_pipe_gets_no_colour(rowfs, place):
    done = subprocess.run([rowfs.program, "check", place], env=environment({}), capture_output=True, text=True)
    assert done.returncode == 0 and "clean" in done.stdout and "\x1b" not in done.stdout + done.stderr


@contextlib.contextmanager
def server_of(store):
    """A socket in place of the process that serves the store."""
    st = os.stat(store)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0rowfs-{st.st_dev:x}-{st.st_ino:x}")
        server.listen()
        server.settimeout(20)
        yield server


def words_sent(server, knows=(1,)):
    """Takes the words of the next command and ends it, as a process of an older build does.  It hangs up on a
    version of the request that it does not know, and then returns None."""
    with server.accept()[0] as caller, caller.makefile("rb") as sent:
        magic, _, size, _ = struct.unpack("IIII", sent.read(16))
        if magic >> 24 not in knows:
            return None
        words = sent.read(size)
        caller.sendall(struct.pack("=Bi", 0, 0))
    return words.decode().split("\0")[:-1]


def test_a_server_of_an_older_build_understands_a_command_without_a_terminal(rowfs, rest_store):
    """It knows no word before the command, and the colour of timers and pipes needs none."""
    with server_of(rest_store) as server, \
            subprocess.Popen([rowfs.program, "check", rest_store], env=environment({"NO_COLOR": "1"}),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        assert words_sent(server) == ["check", str(rest_store)]
        p.communicate(timeout=60)


@pytest.mark.parametrize("stream", ("stdout", "stderr"))
@pytest.mark.parametrize("env", ({"NO_COLOR": "1"}, {"TERM": "dumb"}))
def test_AD13_a_server_of_an_older_build_gets_a_command_of_a_terminal_without_its_description(
        rowfs, rest_store, env, stream):
    with server_of(rest_store) as server, \
            started_on_terminal(rowfs, "check", rest_store, env=env, stream=stream) as (p, _):
        assert words_sent(server) is None
        assert words_sent(server) == ["check", str(rest_store)]
        assert p.wait(60) == 0


@pytest.mark.parametrize("env, word", (({"NO_COLOR": "1"}, "NO_COLOR=1"), ({"TERM": "dumb"}, "TERM=dumb")))
def test_AD13_a_server_of_this_build_gets_the_description_of_a_terminal(rowfs, rest_store, env, word):
    with server_of(rest_store) as server, started_on_terminal(rowfs, "check", rest_store, env=env) as (p, _):
        assert words_sent(server, knows=(1, 2)) == [word, "check", str(rest_store)]
        assert p.wait(60) == 0


@pytest.mark.parametrize("env, coloured, clears", (
    ({}, True, True), ({"NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False)))
def test_AD13_top_has_a_bold_heading_and_clears_the_screen(rowfs, serve, rest_store, env, coloured, clears):
    serve(rest_store)
    with started_on_terminal(rowfs, "top", rest_store, env=env) as (_, show):
        seen = show(until="failed")
    assert (f"{BOLD}front end" in seen, "\x1b[J" in seen) == (coloured, clears)
    assert coloured or "\x1b[1m" not in seen


@pytest.mark.parametrize("env, coloured", (*((e, True) for e in COLOURED), *((e, False) for e in PLAIN)))
def test_AD13_errors_of_a_server_on_a_terminal_are_red(rowfs, rest_store, work, env, coloured):
    log = work / "access"
    with started_on_terminal(rowfs, "serve", rest_store, "--rest=127.0.0.1:0", f"--access-log={log}", env=env,
                     stream="stderr") as (server, show):
        show(until="REST at")
        log.unlink()
        log.mkdir()
        server.send_signal(signal.SIGHUP)
        seen = show(until="old access log")
    assert ("\x1b" in seen) == coloured
    mark = f"{RED}error: \x1b[0m" if coloured else "error: "
    assert re.search(r"Z rowfs: " + re.escape(mark) + "reload", seen), seen
