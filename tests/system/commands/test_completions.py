# SPDX-License-Identifier: MIT
"""Completions: what `rowfs complete` offers, and what bash, zsh and fish make of it."""

import os
import pty
import select
import signal
import subprocess
import time

import pytest

from conftest import ENV, TOP
from tools import need

SCRIPTS = TOP / "examples/completions"


@pytest.fixture
def home(rowfs, work):
    d = work / "home"
    d.mkdir()
    for account in ("myblogs", "shop"):
        rowfs("init", "a.rowfs", cwd=d, check=False)
        rowfs("account", "add", "a.rowfs", account, cwd=d)
    for path in ("Posts/Football/1", "Posts/two words/2", "People/a/1"):
        rowfs("put", "a.rowfs", f"myblogs/{path}.json", input="{}", cwd=d)
    return d


@pytest.mark.parametrize("words, offered", [
    (["q"], ["query"]), (["acc"], ["account"]), (["ba"], ["backup", "batch"]),
    (["account", "re"], ["regenerate", "remove"]), (["help", "que"], ["query"]),
    (["query", "--s"], ["--select="]), (["query", "a.rowfs", "--e"], ["--explain"]),
    (["query", ""], []), (["stat", "a.rowfs", ""], []), (["nonsense", "x", ""], []),
    (["query", "a.rowfs", ""], ["myblogs/", "shop/"]),
    (["account", "keys", "a.rowfs", "s"], ["shop"]),
    (["query", "a.rowfs", "myblogs/P"], ["myblogs/People/", "myblogs/Posts/"]),
    (["query", "--top=1", "a.rowfs", "myblogs/Posts/t"], ["myblogs/Posts/two words/"]),
    (["get", "a.rowfs", "x", "myblogs/Posts/Football/"], ["myblogs/Posts/Football/1.json"]),
    (["mv", "a.rowfs", "x", "sh"], ["shop/"]), (["import", "a.rowfs", "myblogs/Pe"],
                                                 ["myblogs/People/"]),
    (["put", "a.rowfs", "myblogs/Posts/Football/1.json", ""], []),
    (["query", "none.rowfs", ""], []), (["query", "a.rowfs", "nobody/"], []),
])
def test_complete_offers_what_can_follow(rowfs, home, words, offered):
    done = rowfs("complete", "--", *words, cwd=home)
    assert done.stdout.splitlines() == offered and done.stderr == ""


def typed(rowfs, home, shell, keys, shown):
    """Types into the shell until it shows the text."""
    env = {**ENV, "PATH": f"{rowfs.program.parent}:{ENV['PATH']}", "HOME": str(home), "PS1": "$ ",
           "TERM": "dumb", "XDG_CONFIG_HOME": str(home / ".config"), "COLUMNS": "200"}
    person, terminal = pty.openpty()
    running = subprocess.Popen(shell, stdin=terminal, stdout=terminal, stderr=terminal, cwd=home,
                               env=env, start_new_session=True)
    os.close(terminal)
    said, end = b"", time.monotonic() + 60
    os.write(person, keys)
    try:
        while shown not in said:
            assert time.monotonic() < end, said
            if select.select([person], [], [], 0.1)[0]:
                said += os.read(person, 65536)
    finally:
        running.kill()
        running.wait()
        os.close(person)


LINES = [(b"rowfs que\t", b"rowfs query "), (b"rowfs query a.rowfs myb\tPo\tFo\t",
                                            b"otball/"),
         (b"rowfs stat a.r\t", b"rowfs stat a.rowfs"), (b"rowfs query --exp\t", b"--explain ")]


@pytest.mark.parametrize("keys, shown", LINES)
def test_bash_completes(rowfs, home, keys, shown):
    need("bash")
    (home / ".rc").write_text(f". {SCRIPTS}/rowfs.bash\nbind 'set enable-bracketed-paste off'\n")
    typed(rowfs, home, ["bash", "--noprofile", "--rcfile", ".rc", "-i"], keys, shown)


def test_bash_quotes_what_needs_it(rowfs, home):
    need("bash")
    script = (f". {SCRIPTS}/rowfs.bash; compopt() {{ :; }}; COMP_WORDS=(rowfs query a.rowfs "
              "myblogs/Posts/t); COMP_CWORD=3; _rowfs; printf '%s' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-c", script], cwd=home, capture_output=True, text=True,
                          env={**ENV, "PATH": f"{rowfs.program.parent}:{ENV['PATH']}"})
    assert done.stdout == r"myblogs/Posts/two\ words/"


@pytest.mark.parametrize("keys, shown", LINES)
def test_zsh_completes(rowfs, home, keys, shown):
    need("zsh")
    (home / ".zshrc").write_text(f"fpath=({SCRIPTS} $fpath)\nautoload -Uz compinit\n"
                                 "compinit -u\nPS1='$ '\n")
    typed(rowfs, home, ["zsh", "-i"], keys, shown)


@pytest.mark.parametrize("words, offered", [("que", "query"),
                                            ("query a.rowfs myblogs/Po", "myblogs/Posts/"),
                                            ("stat a.r", "a.rowfs"),
                                            ("query --exp", "--explain")])
def test_fish_completes(rowfs, home, words, offered):
    assert fish_offers(rowfs, home, words) == [offered]


def fish_offers(rowfs, home, words):
    need("fish")
    done = subprocess.run(["fish", "--no-config", "-c",
                           f"source {SCRIPTS}/rowfs.fish; complete -C 'rowfs {words}'"], cwd=home,
                          capture_output=True, text=True, timeout=60,
                          env={**ENV, "PATH": f"{rowfs.program.parent}:{ENV['PATH']}",
                               "HOME": str(home)})
    assert done.stderr == ""
    return done.stdout.split()


# ---- URLs of running endpoints ----


@pytest.fixture
def served(rowfs, home, serve):
    """A store with two accounts, and the URL that both begin with."""
    return serve(home / "a.rowfs", "--rest=127.0.0.1:0")


def test_urls_of_running_endpoints_are_offered_in_place_of_a_store(rowfs, home, served):
    begin = f"http://127.0.0.1:{served.port}/"
    for command in ("ls", "query", "import"):
        done = rowfs("complete", "--", command, begin, cwd=home)
        assert done.stdout.splitlines() == [f"{begin}myblogs", f"{begin}shop"], command
    assert f"{begin}shop" in rowfs("complete", "--", "ls", "http", cwd=home).stdout.splitlines()
    assert rowfs("complete", "--", "ls", f"{begin}s", cwd=home).stdout == f"{begin}shop\n"
    # A command on files takes no URL, and nobody wants the names of running stores among his files.
    assert rowfs("complete", "--", "stat", begin, cwd=home).stdout == ""
    assert rowfs("complete", "--", "ls", "", cwd=home).stdout == ""
    served.stop()
    assert rowfs("complete", "--", "ls", begin, cwd=home).stdout == ""


def test_a_server_that_does_not_answer_holds_up_no_completion(rowfs, home, served):
    begin = f"http://127.0.0.1:{served.port}/"
    os.kill(served.proc.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, served.proc.pid, os.WSTOPPED)
    try:
        assert rowfs("complete", "--", "ls", begin, cwd=home).stdout == ""
    finally:
        os.kill(served.proc.pid, signal.SIGCONT)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_complete_the_url_of_a_running_endpoint(rowfs, home, served, shell):
    need(shell)
    (home / ".rc").write_text(f". {SCRIPTS}/rowfs.bash\nbind 'set enable-bracketed-paste off'\n")
    (home / ".zshrc").write_text(f"fpath=({SCRIPTS} $fpath)\nautoload -Uz compinit\n"
                                 "compinit -u\nPS1='$ '\n")
    start = {"bash": ["bash", "--noprofile", "--rcfile", ".rc", "-i"], "zsh": ["zsh", "-i"]}
    keys = f"rowfs ls http://127.0.0.1:{served.port}/sh\t"
    typed(rowfs, home, start[shell], keys.encode(), b"/shop ")


def test_fish_completes_the_url_of_a_running_endpoint(rowfs, home, served):
    begin = f"http://127.0.0.1:{served.port}/"
    assert fish_offers(rowfs, home, f"ls {begin}my") == [f"{begin}myblogs"]
