# SPDX-License-Identifier: MIT
"""rowfs dev: a store to develop with, by one word."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

from certificates import make_certificate
from conftest import ENV, is_mount, need_fuse
from tools import emulator_port

SEED = '{"PartitionKey":"p","RowKey":"1","A":1}\n'
KNOWN = "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture
def home(work):
    d = work / "home"
    d.mkdir()
    (d / "Posts.ndjson").write_text(SEED)
    return d


@contextlib.contextmanager
def running(rowfs, home, *args):
    """dev in the foreground, and what it says until it runs."""
    dev = subprocess.Popen([rowfs.program, "dev", *args], cwd=home, env=ENV, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    overdue = threading.Timer(120, dev.kill)
    overdue.start()
    said = ""
    try:
        for line in dev.stdout:
            said += line
            if line.startswith("running; "):
                break
        yield dev, said
    finally:
        dev.send_signal(signal.SIGTERM)
        dev.wait(timeout=120)
        overdue.cancel()
        dev.stdout.close()


def connection(said):
    return dict(re.findall(r"([A-Za-z]+)=([^;]+);", re.search(r"DefaultEndpoints\S+", said)[0]))


def test_a_program_runs_beside_it(rowfs, home):
    done = rowfs("dev", "--free-ports", "--seed=Posts.ndjson", "--seed", "More=Posts.ndjson", "d",
                 "--exec", 'env; rowfs() { "$P" "$@"; }; exit 7', cwd=home, check=False)
    assert done.returncode == 7, done.stderr
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert KNOWN in found["AZURE_STORAGE_CONNECTION_STRING"]
    ports = {re.fullmatch(r"http://127.0.0.1:(\d+)/devstoreaccount1", url)[1]
             for name, url in re.findall("(Blob|Queue|Table)Endpoint=([^;]+);",
                                         found["AZURE_STORAGE_CONNECTION_STRING"])}
    assert len(ports) == 3
    assert found["AZURE_STORAGE_ACCOUNT"] == "devstoreaccount1"
    assert "AccountKey=" + found["AZURE_STORAGE_KEY"] == KNOWN
    assert found["ROWFS_DEV_STORE"] == str(home / "d/store.rowfs")
    assert rowfs("ls", home / "d/store.rowfs", "devstoreaccount1").stdout == "More/\nPosts/\n"
    assert sorted(os.listdir(home / "d")) == ["dev.log", "store.rowfs"]
    for script, code in (("kill -9 $$", 137), ("exit 0", 0)):
        done = rowfs("dev", "--free-ports", "d", "--exec", script, cwd=home, check=False)
        assert done.returncode == code


@pytest.mark.parametrize("fuse", (True, False))
def test_the_admin_socket_is_passed_on(rowfs, home, fuse):
    if fuse:
        need_fuse()
    else:
        (home / "d").mkdir()
        (home / "d/mnt").write_text("no directory")
    admin = home / "s"
    done = rowfs("dev", "--free-ports", f"--admin=unix:{admin}", "d", "--exec",
                 f"curl -sf --unix-socket {admin} http://localhost/health/ready > ready", cwd=home)
    assert ("going on without a mount" in done.stderr) == (not fuse)
    assert json.loads((home / "ready").read_text())["status"] == "ready"


def test_the_space_of_blobs_is_passed_on(rowfs, home):
    need_fuse()
    rowfs("dev", "--free-ports", "--blob-space=12M", "--exec", "cp $ROWFS_DEV_MOUNT/.rowfs/stats.json .", cwd=home)
    assert json.loads((home / "stats.json").read_text())["store"]["blob_space"] == 12 << 20


def test_tls_and_tokens_are_passed_on(rowfs, home):
    issuer = pytest.importorskip("issuer", reason="needs python3-jwt")
    make_certificate(home, "a")
    ask = ('url=$(echo "$AZURE_STORAGE_CONNECTION_STRING" | grep -o "TableEndpoint=[^;]*" | cut -d= -f2); '
           f'curl -sf --cacert a.pem -H "Authorization: Bearer {issuer.unsigned()}" "$url/Tables" > tables')
    rowfs("dev", "--free-ports", "--oauth=basic", "--rest-cert=a.pem", "--rest-key=a.key", "--seed=Posts.ndjson",
          "--exec", ask, cwd=home)
    assert [t["TableName"] for t in json.loads((home / "tables").read_text())["value"]] == ["Posts"]


def test_it_runs_until_ctrl_c(rowfs, home):
    need_fuse()
    with running(rowfs, home, "--free-ports", "--seed=Posts.ndjson", "--account=mine") as (dev, said):
        parts = connection(said)
        assert parts["AccountName"] == "mine" and KNOWN not in said
        mnt = home / "rowfs-dev/mnt"
        assert is_mount(mnt) and os.listdir(mnt / "mine/Posts/p") == ["1.json"]
        typed = [line[2:] for line in said.splitlines() if line.startswith("  ")][1:]
        assert len(typed) == 3
        for line in typed:  # the three lines to try
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60,
                                  env={**ENV, "PATH": f"{rowfs.program.parent}:{ENV['PATH']}"})
            assert done.returncode == 0, done.stderr
        assert done.stdout == '{"Text":"Hi"}\n'
        host, port = re.search("//(.*):([0-9]+)/", parts["TableEndpoint"]).groups()
        socket.create_connection((host, int(port)), timeout=60).close()
        again = rowfs("dev", "--free-ports", cwd=home, check=False)
        assert again.returncode == 1 and "is in use" in again.stderr and "--stop" in again.stderr
        dev.send_signal(signal.SIGINT)
        assert dev.wait(timeout=120) == 0
        assert dev.stdout.read() == f"\nthe data is in {home}/rowfs-dev/store.rowfs\n"
        assert not mnt.exists()
    assert rowfs("get", home / "rowfs-dev/store.rowfs", "mine/Posts/p/1.json").stdout == \
        '{"Text":"Hi"}\n'


def test_it_goes_on_in_the_background(rowfs, home):
    done = rowfs("dev", "--detach", "--free-ports", cwd=home)
    store = home / "rowfs-dev/store.rowfs"
    assert f"rowfs dev --stop {home}/rowfs-dev" in done.stdout
    try:
        rowfs("put", store, "devstoreaccount1/Posts/p/1.json", input="{}")
    finally:
        done = rowfs("dev", "--stop", cwd=home)
    assert done.stdout == f"the data is in {store}\n"
    assert sorted(os.listdir(store.parent)) == ["dev.log", "store.rowfs"]
    assert rowfs("ls", store, "devstoreaccount1/Posts/p").stdout == "1.json\n"
    done = rowfs("dev", "--stop", cwd=home, check=False)
    assert done.returncode == 1 and "nothing runs" in done.stderr
    done = rowfs("dev", "--stop", "nowhere", cwd=home, check=False)
    assert done.returncode == 1 and not (home / "nowhere").exists()


def test_memory_leaves_nothing(rowfs, home):
    done = rowfs("dev", "--memory", "--free-ports", "--seed=Posts.ndjson", "--exec",
                 "echo $ROWFS_DEV_STORE; test -e $ROWFS_DEV_STORE", cwd=home)
    store = done.stdout.split()[-1]
    assert store.endswith("/store.rowfs") and not os.path.exists(os.path.dirname(store))
    assert os.listdir(home) == ["Posts.ndjson"]


def test_ports_that_are_taken_are_told(rowfs, home):
    ports = {"Blob": 10000, "Queue": 10001, "Table": 10002}
    with emulator_port(), contextlib.ExitStack() as others:
        for port in ports.values():
            other = others.enter_context(socket.socket())
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # somebody else has it: just as well
                other.bind(("127.0.0.1", port))
                other.listen()
        done = rowfs("dev", "--memory", "--exec", "echo $AZURE_STORAGE_CONNECTION_STRING", cwd=home)
    for service, port in ports.items():
        assert f"port {port} is taken; another one is used" in done.stderr
        assert f":{port}/" not in connection(done.stdout)[service + "Endpoint"]


def test_without_fuse_it_serves(rowfs, home):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    script = ("mount --make-rprivate / && mount --bind /dev/null /dev/fuse && "
              "exec \"$0\" dev --free-ports d --exec 'echo mount=$ROWFS_DEV_MOUNT'")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, str(rowfs.program)], cwd=home,
                          env=ENV, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "mount=\n" in done.stdout and "going on without a mount" in done.stderr


@pytest.mark.parametrize("args", [("--stop", "--detach"), ("--detach", "--memory"),
                                  ("--detach", "--exec=x"), ("--memory", "d")])
def test_what_does_not_go_together_is_refused(rowfs, home, args):
    done = rowfs("dev", *args, cwd=home, check=False)
    assert done.returncode == 2 and "--stop goes alone" in done.stderr
    assert os.listdir(home) == ["Posts.ndjson"]


def test_a_seed_that_is_refused_ends_it(rowfs, home):
    (home / "Bad.ndjson").write_text("{}\n")
    done = rowfs("dev", "--free-ports", "--seed=Bad.ndjson", "d", "--exec=echo ran", cwd=home,
                 check=False)
    assert done.returncode == 1 and "Bad.ndjson:1" in done.stderr and "ran" not in done.stdout
    assert json.loads(rowfs("stat", "--json", home / "d/store.rowfs").stdout)
