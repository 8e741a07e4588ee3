# SPDX-License-Identifier: MIT
"""Commands whose store another process serves that does not answer (it is stopped), or that takes no
commands of this user: one signal ends them, they say for whom they wait, and they leave nothing."""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import time

import pytest

from conftest import ENV, need_fuse
from test_commands import all_read

SETPRIV = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.fixture
def acct(rowfs, store):
    rowfs("account", "add", store, "acct")
    rowfs("import", store, "acct/Tab", input='{"PartitionKey":"p","RowKey":"1"}\n')
    return store


@contextlib.contextmanager
def stopped(server):
    """It does not answer in here."""
    pid = server.proc.pid
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture
def start(rowfs):
    """A factory: start("stat", store) -> the process of the command."""
    begun = []

    def make(*args, **kw):
        begun.append(subprocess.Popen(
            [str(a) for a in (rowfs.program, *args)], env=ENV, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **{"stdin": subprocess.DEVNULL, **kw}))
        return begun[-1]

    yield make
    for p in begun:
        p.kill()
        p.communicate()


def says(p, wanted, limit=60):
    """Reads from its standard error until that is there."""
    said, end = b"", time.monotonic() + limit
    while wanted.encode() not in said:
        left = end - time.monotonic()
        assert left > 0 and select.select([p.stderr], [], [], left)[0], (p.args, said)
        piece = os.read(p.stderr.fileno(), 4096)
        assert piece, (p.args, said)
        said += piece


def one_signal_ends(p, number=signal.SIGTERM):
    """And leaves its exit code and its last words.  The server may have its pipes, too."""
    p.send_signal(number)
    try:
        p.wait(60)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{p.args} lives on after signal {number}")
    ready = select.select([p.stderr], [], [], 0)[0]
    return p.returncode, os.read(p.stderr.fileno(), 4096).decode() if ready else ""


COMMANDS = [
    ("account", "add", "STORE", "more"), ("account", "keys", "STORE", "acct"),
    ("account", "list", "STORE"), ("account", "regenerate", "STORE", "acct"),
    ("account", "remove", "STORE", "acct"), ("backup", "STORE", "NEW"), ("check", "STORE"),
    ("export", "STORE", "acct/Tab"), ("export", "STORE", "acct/Tab", "-o", "NEW"),
    ("import", "STORE", "acct/Tab", "FILE"), ("stat", "STORE"),
    ("sas", "STORE", "acct/Tab", "--permissions=r", "--expiry=+1h"),
]


def test_one_signal_ends_commands_that_wait_for_a_stopped_server(acct, serve, start, work):
    server = serve(acct)
    (work / "file").write_text("")
    words = {"STORE": acct, "FILE": work / "file"}
    before = sorted(os.listdir(work))
    with stopped(server) as pid:
        begun = [start(*(words.get(a, work / f"new{i}" if a == "NEW" else a) for a in args))
                 for i, args in enumerate(COMMANDS)]
        for args, p in zip(COMMANDS, begun):
            name = " ".join(args[:args.index("STORE")])
            says(p, f"rowfs {name}: waiting for process {pid}, which serves '{acct}', to answer ...")
        for i, p in enumerate(begun):
            code, said = one_signal_ends(
                p, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[i % 3])
            assert code == 1 and f"cancelled; process {pid}, which serves" in said
        assert sorted(os.listdir(work)) == before


def test_one_signal_ends_a_command_that_nobody_lets_in(rowfs, acct, serve, start):
    """So many wait that not even a connection can be made."""
    server = serve(acct)
    st = os.stat(acct)
    with stopped(server), contextlib.ExitStack() as waiting:
        for _ in range(1000):
            s = waiting.enter_context(socket.socket(socket.AF_UNIX))
            s.setblocking(False)
            try:
                s.connect(f"\0rowfs-{st.st_dev:x}-{st.st_ino:x}")
            except BlockingIOError:
                break
        else:
            pytest.fail("the queue has no end")
        p = start("stat", acct)
        says(p, f"waiting for the process that serves '{acct}' to answer ...")
        assert one_signal_ends(p) == (1, f"rowfs stat: cancelled; the process that serves '{acct}' "
                                         "does not answer\n")
    assert rowfs("account", "list", acct).stdout == "acct\n"


def test_a_signal_ends_a_command_whose_server_stops_at_its_work(rowfs, acct, serve, start):
    server = serve(acct)
    p = start("import", acct, "acct/Tab", stdin=subprocess.PIPE)
    p.stdin.write(b'{"PartitionKey":"p","RowKey":"2"}\n')
    p.stdin.flush()
    all_read(p.stdin)
    with stopped(server) as pid:
        assert one_signal_ends(p) == (1, f"rowfs import: cancelled; process {pid}, which serves "
                                         f"'{acct}', does not answer\n")
    assert rowfs("account", "list", acct).stdout == "acct\n"


def test_one_signal_ends_commands_that_wait_for_a_mount(acct, mount, start, rowfs, work):
    """Files of the command, or its directory, are in a mount whose server is stopped."""
    need_fuse()
    # Each of them looks up a name in another directory: in one the kernel lets them wait in turn.
    for i in range(5):
        rowfs("account", "add", acct, f"name{i}")
    m = mount(acct)
    for i in range(5):
        os.stat(m / f"name{i}")
    other = work / "other"
    rowfs("init", other)
    rowfs("account", "add", other, "acct")
    (work / "rows").write_text("")
    rowfs("import", other, "acct/Tab", work / "rows")
    with stopped(m):
        begun = [(start(*args), what) for args, what in (
            (("export", other, "acct/Tab", "-o", m / "name0/x"), f"'{m.path}/name0/x'"),
            (("import", other, "acct/Tab", m / "name1/x"), f"'{m.path}/name1/x'"),
            (("stat", m / "name2/x"), f"'{m.path}/name2/x'"),
            (("mount", other, m / "name3/x"), f"'{m.path}/name3/x'"),
            (("umount", m / "name4/x"), f"'{m.path}/name4/x'"),
            (("umount", m.path), f"the server of '{m.path}'"),
            (("mount", acct, m.path, "-o", "remount,ro"), f"the server of '{m.path}'"))]
        for p, what in begun:
            says(p, f"waiting for {what} to answer ...")
        for p, _ in begun:
            assert one_signal_ends(p)[0] in (1, -signal.SIGTERM)
    assert sorted(os.listdir(m.path)) == ["acct", *(f"name{i}" for i in range(5))]


def test_one_signal_ends_a_server_that_waits_for_the_store(acct, serve, start):
    serve(acct)
    p = start("serve", acct, "--rest=127.0.0.1:0")
    while True:  # its signals are its own by now
        with open(f"/proc/{p.pid}/status") as f:
            blocked = int(re.search(r"SigBlk:\t(\w+)", f.read())[1], 16)
        if blocked & 1 << (signal.SIGTERM - 1):
            break
    code, said = one_signal_ends(p)
    assert code == 1 and "cancelled while another process has it" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_is_told_whose_the_server_is(rowfs, acct, serve, work):
    """At once: each command asks once, and the log has one line of it."""
    os.chmod(work, 0o777)
    os.chmod(acct, 0o644)
    server = serve(acct)
    for n, args in enumerate((("stat", acct), ("export", acct, "acct/Tab", "-o", work / "out"),
                              ("account", "keys", acct, "acct"), ("backup", acct, work / "copy"),
                              ("account", "add", acct, "more"), ("check", acct))):
        done = subprocess.run([*SETPRIV, rowfs.program, *args], env=ENV, capture_output=True,
                              text=True)
        assert done.returncode == 1 and done.stdout == ""
        name = " ".join(args[:args.index(acct)])
        assert done.stderr == (
            f"rowfs {name}: '{acct}' is served by process {server.proc.pid} of user root (0), which "
            "takes commands of that user and of root only: Operation not permitted\n")
        assert server.log().count("a command of another user, 65534, was refused") == n + 1
    assert not {"out", "copy"} & set(os.listdir(work))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("options", [(), ("allow_other",)], ids=["alone", "allow_other"])
def test_another_user_is_told_whose_the_mount_is(rowfs, acct, mount, work, options):
    need_fuse()
    os.chmod(work, 0o755)
    m = mount(acct, *options)
    done = subprocess.run([*SETPRIV, rowfs.program, "umount", m.path], env=ENV,
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (f"rowfs umount: '{m.path}' was mounted by user root (0); that user and "
                           "root alone can unmount it: Operation not permitted\n")
    assert m.alive() and (m / "acct").is_dir()
