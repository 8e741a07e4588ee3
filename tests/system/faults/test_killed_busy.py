# SPDX-License-Identifier: MIT
"""S15: a server that is killed while clients change one directory has ended for its parent, which
starts it again and needs no other command.

ROWFS_KILLS  how many kills (default: 12, 6 with sanitizers); 1000 in its long form
"""

import http.client
import json
import multiprocessing
import os
import random
import signal
import subprocess
import time

import pytest

from conftest import ENV, connection_at, detach, need_fuse, need_to_cut
from rest_client import Client
from tools import sanitized

KILLS = int(os.environ.get("ROWFS_KILLS", "6" if sanitized() else "12"))
CLIENTS = 7
KEYS = 6
# The promise is a second.  More is what a busy machine may need to let the parent run again.
FINAL = 10
ROW = '{"v":1}'


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def change(directory, rng):
    """One change of a kind that makes the server tell the kernel about a name."""
    row, kind = f"{directory}/r{rng.randrange(KEYS)}.json", rng.randrange(5)
    if kind == 0:
        write(row, ROW)
    elif kind == 1:
        os.unlink(row)
    elif kind == 2:
        os.rename(row, f"{directory}/r{rng.randrange(KEYS)}.json")
    elif kind == 3:
        write(f"{directory}/new-{os.getpid()}", ROW)
        os.rename(f"{directory}/new-{os.getpid()}", row)
    else:
        write(f"{directory}/.batch",
              json.dumps([{"upsert": {"RowKey": f"r{k}", "v": 1}} for k in range(KEYS)]))


def on_the_mount(directory, seed, done):
    """Changes rows until the server has gone."""
    rng = random.Random(seed)
    while True:
        try:
            change(directory, rng)
            done.value += 1
        except OSError:
            # Another client took the row away; or the server has gone, which statfs tells: the
            # kernel goes on answering stat and open of a missing name by itself.
            try:
                os.statvfs(directory)
            except OSError:
                return


def by_rest(socket, seed, done):
    rng = random.Random(seed)
    with Client(None, "acct", unix=socket) as rest:
        try:
            while True:
                rest.upsert("Tab", "p", f"r{rng.randrange(KEYS)}", {"v": 1}, sign=None)
                done.value += 1
        except (OSError, http.client.HTTPException):
            return


def start(rowfs, store, at, socket):
    """As a supervisor does: the program, again and again, with nothing in between."""
    p = subprocess.Popen([rowfs.program, "mount", store, at, "-f", "-o", f"rest=unix:{socket}"],
                         env=ENV, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = []
    for line in p.stderr:
        said.append(line)
        if "REST at" in line:
            return p
    return pytest.fail(f"not mounted: {p.wait(60)}: {said}")


def kill_busy(p, directory, socket, seed):
    """Kills the server while clients change rows, and waits for it and for them."""
    context = multiprocessing.get_context("fork")
    done = [context.Value("L", 0) for _ in range(CLIENTS + 1)]
    clients = [context.Process(target=on_the_mount, args=(directory, f"{seed} {n}", done[n]))
               for n in range(CLIENTS)]
    clients.append(context.Process(target=by_rest, args=(socket, seed, done[CLIENTS])))
    for c in clients:
        c.start()
    try:
        enough = random.Random(seed).randrange(50, 300)
        while sum(d.value for d in done) < enough or not done[CLIENTS].value:
            time.sleep(0.001)
        p.send_signal(signal.SIGKILL)
        try:
            p.wait(FINAL)
        except subprocess.TimeoutExpired:
            pytest.fail("its parent does not see its end")
        for c in clients:
            c.join(60)
            assert c.exitcode == 0, f"a client hangs or failed: {c.exitcode}"
    finally:
        for c in clients:
            c.kill()


@pytest.mark.slow
def test_S15_the_parent_of_a_killed_server_starts_it_again(rowfs, store, work):
    need_fuse()
    need_to_cut()
    at, socket = work / "mnt", work / "sock"
    directory = f"{at}/acct/Tab/p"
    at.mkdir()
    p = None
    try:
        for n in range(KILLS):
            p = start(rowfs, store, at, socket)
            os.makedirs(directory, exist_ok=True)
            kill_busy(p, directory, socket, n)
            p.stderr.close()
        rowfs("mount", store, at)
        assert os.path.isdir(directory)
        rowfs("umount", at)
    finally:
        if p and p.poll() is None:
            p.kill()
        detach(at)
        if p:
            p.wait(60)
    rowfs("check", store)


def watcher_of(pid):
    return int(subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True,
                              check=True).stdout)


def test_S15_the_watcher_holds_nothing_and_ends_with_its_server(mount, store, work):
    m = mount(store)
    watcher = watcher_of(m.proc.pid)
    assert open(f"/proc/{watcher}/comm").read() == "fuse-watch\n"
    held, = (os.readlink(fd.path) for fd in os.scandir(f"/proc/{watcher}/fd"))
    assert held.endswith(f"/{connection_at(m.path).name}/abort")  # of fusectl, mounted or not
    assert os.readlink(f"/proc/{watcher}/cwd") == "/"
    os.kill(watcher, signal.SIGTERM)  # as a shutdown sends to all: it stays
    os.kill(watcher, signal.SIGUSR1)  # its signal, but not from the kernel
    (m / "acct1").mkdir()
    assert watcher_of(m.proc.pid) == watcher
    m.umount()
    assert not os.path.exists(f"/proc/{watcher}")


def test_S15_without_its_watcher_a_server_serves_and_ends(mount, store):
    m = mount(store)
    os.kill(watcher_of(m.proc.pid), signal.SIGKILL)
    (m / "acct1").mkdir()
    m.umount()


def test_S13_what_a_dead_mount_answers(mount, store):
    """stat and a missing name are answered from what the kernel remembers; statfs never is."""
    m = mount(store)
    (m / "acct1").mkdir()
    here = os.open(m / "acct1", os.O_PATH)
    try:
        os.stat(m / "acct1")
        assert subprocess.run(["stat", "-f", m.path], capture_output=True).returncode == 0
        m.proc.kill()
        m.proc.wait()
        os.fstat(here)
        for words in (["stat", "-f", str(m.path)], ["ls", str(m.path)]):
            done = subprocess.run(words, capture_output=True, text=True)
            assert done.returncode != 0 and "endpoint is not connected" in done.stderr
    finally:
        os.close(here)
        m.kill9()
