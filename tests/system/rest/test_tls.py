# SPDX-License-Identifier: MIT
"""TLS of the REST socket: its ciphers, and SIGHUP, which takes a new certificate and a new log file
and ends neither a connection nor the process."""

import os
import shutil
import signal
import ssl
import subprocess

import conftest
import pytest
import rest_client
from rest_client import ok
from tools import pid_of, wait_for


def make_certificate(work, name, *kind):
    subprocess.run(["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", work / f"{name}.key", "-out", work / f"{name}.pem"],
                   check=True, capture_output=True)


@pytest.fixture
def certificates(work):
    """old.pem and new.pem; tls.pem and tls.key are what is served: the old pair."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    for name in ("old", "new"):
        make_certificate(work, name, "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    put_in_place(work, "old")
    return work


def put_in_place(work, name):
    for kind in ("pem", "key"):
        shutil.copy(work / f"{name}.{kind}", work / f"tls.{kind}.part")
        os.replace(work / f"tls.{kind}.part", work / f"tls.{kind}")


def shown(port):
    """The certificate that a new connection gets, in PEM."""
    return ssl.get_server_certificate(("127.0.0.1", port))


def pem(work, name):
    text = (work / f"{name}.pem").read_text()
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(text))


def any_certificate():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def handshake(port, *options):
    """The cipher that both agree on, or None."""
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *options],
                          input=b"", capture_output=True, timeout=60)
    lines = [line for line in done.stdout.decode().splitlines() if "Cipher is" in line]
    cipher = lines[0].rsplit(" ", 1)[1] if lines else "(NONE)"
    return None if cipher in ("(NONE)", "0000") else cipher


# ---- ciphers

FORWARD = ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256",
           "ECDHE-RSA-CHACHA20-POLY1305")
# Static RSA, and CBC with and without it.
OLD = ("AES128-GCM-SHA256", "AES256-SHA", "ECDHE-RSA-AES128-SHA")


def tls12(port, cipher):
    return handshake(port, "-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0")


def test_only_ciphers_with_forward_secrecy_unless_asked(rest_store, serve, work):
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    make_certificate(work, "rsa", "rsa:2048")
    files = f"--rest-cert={work}/rsa.pem", f"--rest-key={work}/rsa.key"
    strong = serve(rest_store, *files)
    assert [tls12(strong.port, c) for c in FORWARD] == list(FORWARD)
    assert [tls12(strong.port, c) for c in (*OLD, "DHE-RSA-AES256-GCM-SHA384")] == [None] * 4
    assert handshake(strong.port, "-tls1_3").startswith("TLS_")
    for version in ("-tls1", "-tls1_1"):
        assert handshake(strong.port, version, "-cipher", "ALL:@SECLEVEL=0") is None
    strong.stop()
    legacy = serve(rest_store, *files, "--rest-tls=legacy")
    assert [tls12(legacy.port, c) for c in (*FORWARD, *OLD)] == [*FORWARD, *OLD]
    assert handshake(legacy.port, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0") is None


def test_the_option_is_for_tls(rowfs, store):
    for option, says in (("--rest-tls=legacy", "rest-cert="), ("--rest-tls=x", "strong or legacy")):
        done = rowfs("serve", store, option, check=False)
        assert done.returncode == 2 and says in done.stderr, done


# ---- SIGHUP

def take_turns(work, pid, port, log):
    """New certificates come and go by SIGHUP; one connection is there through all of it."""
    with rest_client.Client(port, context=any_certificate()) as client:
        ok(client.tables(), 200)
        kept = client.connection
        assert shown(port) == pem(work, "old")
        put_in_place(work, "new")
        assert shown(port) == pem(work, "old")
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: shown(port) == pem(work, "new"))
        # A half of another pair, then nothing: what is served stays as it is.
        shutil.copy(work / "old.key", work / "tls.key")
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: "are they a pair?" in log() and "old certificate" in log())
        os.unlink(work / "tls.pem")
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: "cannot read" in log())
        assert shown(port) == pem(work, "new")
        put_in_place(work, "old")
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: shown(port) == pem(work, "old"))
        ok(client.tables(), 200)
        assert client.connection is kept


def options_of(work, prefix=""):
    return (f"{prefix}rest=127.0.0.1:0", f"{prefix}rest-cert={work}/tls.pem",
            f"{prefix}rest-key={work}/tls.key")


@pytest.fixture(autouse=True)
def no_leaks_of_gnutls(monkeypatch):
    """GnuTLS itself leaks what it has read of a certificate that it refuses."""
    monkeypatch.setitem(conftest.ENV, "ASAN_OPTIONS", "detect_leaks=0:exitcode=99")


def test_reload_of_a_server_alone(rest_store, serve, certificates):
    server = serve(rest_store, *options_of(certificates, "--"))
    server.allow("reload: going on")
    take_turns(certificates, server.proc.pid, server.port, server.log)
    assert server.alive()


def port_in(log):
    text = log()
    return int(text.split("REST at https://127.0.0.1:")[1].split()[0]) if "REST at" in text else 0


def test_reload_of_a_mount_in_the_foreground(rest_store, mount, certificates):
    m = mount(rest_store, *options_of(certificates))
    m.allow("reload: going on")
    wait_for(lambda: port_in(m.log))
    take_turns(certificates, m.proc.pid, port_in(m.log), m.log)
    assert (m.path / ".rowfs/version").exists() and m.alive()


def test_reload_in_the_background_and_its_log(rowfs, rest_store, certificates):
    conftest.need_fuse()
    work, at, path = certificates, certificates / "back", certificates / "log"
    at.mkdir()
    rowfs("mount", rest_store, at, "-o", ",".join((*options_of(work), f"log={path}")))
    try:
        pid = pid_of(rowfs, at)
        take_turns(work, pid, port_in(path.read_text), path.read_text)
        os.rename(path, work / "log.1")
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: path.exists() and "reloaded" in path.read_text())
        assert path.stat().st_mode & 0o777 & ~0o640 == 0
        # A directory in its place: the log goes on where it was.
        os.rename(path, work / "log.2")
        path.mkdir()
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: "old log file" in (work / "log.2").read_text())
        assert (at / ".rowfs/version").exists()
    finally:
        rowfs("umount", at)
    assert "is closed" in (work / "log.2").read_text()


@pytest.mark.parametrize("start", [[], ["nohup"]])
def test_without_tls_too_sighup_ends_nothing(rowfs, rest_store, work, start):
    log = work / "log"
    server = subprocess.Popen([*start, str(rowfs.program), "serve", str(rest_store),
                               "--rest=127.0.0.1:0", f"--log={log}"], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=conftest.ENV, text=True)
    try:
        with rest_client.Client(int(server.stdout.readline().rsplit(":", 1)[1])) as client:
            for i in range(3):
                os.rename(log, work / f"log.{i}")
                server.send_signal(signal.SIGHUP)
                wait_for(lambda: log.exists() and "reloaded" in log.read_text())
                ok(client.tables(), 200)
    finally:
        server.terminate()
        assert server.wait(60) == 0
    assert "is closed" in log.read_text()
