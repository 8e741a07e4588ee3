# SPDX-License-Identifier: MIT
"""Keys stay where they belong: in the store, in what the account commands print, and in the
memory of the process; not in logs, errors, listings, lists of processes or core dumps.  And
nobody but its owner can open the store, what is beside it, or a socket, whatever the umask."""

import base64
import contextlib
import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest
import rest_client
from conftest import ENV, OTHER_ACCOUNT, OTHER_KEY
from rest_client import ACCOUNT, KEY, ok

KEYS = (KEY, OTHER_KEY)


def forms(key):
    """How a key could be spelled."""
    raw = base64.b64decode(key)
    return [key.encode(), key.rstrip("=").encode(), raw, raw.hex().encode(),
            raw.hex().upper().encode(), key.replace("+", "%2B").replace("/", "%2F").encode(),
            base64.urlsafe_b64encode(raw).rstrip(b"=")]


def clean(data, where, keys=KEYS):
    for key in keys:
        for form in forms(key):
            assert form not in data, f"a key in {where}"


def tree(top):
    """Every name, attribute and byte below it that is not a control file of a table."""
    out = []
    for path, dirs, files in os.walk(top):
        for name in dirs + files:
            out.append(os.fsencode(name))
            for attr in ("error", "etag"):
                with contextlib.suppress(OSError):
                    out.append(os.getxattr(f"{path}/{name}", f"user.rowfs.{attr}"))
        for name in files:
            with contextlib.suppress(OSError):
                out.append(pathlib.Path(path, name).read_bytes())
    return b"\n".join(out)


def wrong_in_every_way(client):
    """Requests that come close to a credential; what was answered."""
    right = client.headers_for("GET", client.target("Tables"), None, {}, "lite")["authorization"]
    answers = []
    for value in (right[:-3], right + "=", right.replace("Lite", ""), f"SharedKey {KEY}",
                  f"Bearer {KEY}", f"SharedKeyLite {ACCOUNT}:{KEY}", KEY):
        answers.append(client.request("GET", "Tables", headers={"authorization": value}))
    for table, key in (("None", KEY), ("None", OTHER_KEY)):
        sas = rest_client.table_sas(ACCOUNT, key, table)
        for token in (sas, sas[:-4], sas.replace("sig=", "sig=A"), sas + "&sig=A"):
            with client.clone(sas=token) as c:
                answers.append(c.request("GET", f"{table}()"))
    for path in ("/nobody/Tables", "/other/Tables", "?restype=service&comp=properties",
                 "?restype=service&comp=stats", "Tables", "None()"):
        answers.append(client.request("GET", path))
    return b"\n".join(a.body + str(a.headers).encode() for a in answers)


def test_keys_are_told_nowhere(rowfs, rest_store, rest_mount, work):
    m = rest_mount(rest_store)
    with rest_client.Client(m.port) as client:
        said = wrong_in_every_way(client)
        ok(client.create_table("Blogs"), 201)
        ok(client.insert("Blogs", {"PartitionKey": "p", "RowKey": "r"}), 201)
    (m / "made").mkdir()
    for bad in ("{bad", f'{{"A": {KEY}', '{"PartitionKey": "other"}'):
        with contextlib.suppress(OSError):
            (m / ACCOUNT / "Blogs/p/bad.json").write_text(bad[:5])
    (m / ".rowfs/snapshots/now").mkdir()
    clean(said, "an answer")
    clean(tree(m.path) + tree(m / ".rowfs"), "the mount")
    for name in ("errors", "metrics", "stats.json", "version"):
        clean((m / ".rowfs" / name).read_bytes(), name)
    os.rmdir(m / ".rowfs/snapshots/now")
    done = [rowfs(*words, check=False) for words in (
        ("account", "list", rest_store), ("stat", rest_store), ("stat", "--json", rest_store),
        ("check", rest_store), ("export", rest_store, f"{ACCOUNT}/Blogs"),
        ("account", "add", rest_store, ACCOUNT, f"--key={KEY}"),
        ("account", "add", rest_store, "Bad Name", f"--key={KEY}"),
        ("account", "add", rest_store, "fresh", f"--key={KEY}x"))]
    clean("".join(d.stdout + d.stderr for d in done).encode(), "a command's output")
    hidden = ("environ", "maps") if os.geteuid() == 0 else ()  # from all others
    for name in ("cmdline", "stat", "comm", "status", *hidden):
        clean(pathlib.Path(f"/proc/{m.proc.pid}/{name}").read_bytes(), f"/proc/PID/{name}")
    pid = m.proc.pid
    m.umount()
    clean(m.log().encode(), "the log")
    assert not pathlib.Path(f"/proc/{pid}").exists()
    # A made account has keys of its own, and they are as silent.
    keys = [line.split()[1] for line in rowfs("account", "keys", rest_store, "made")
            .stdout.splitlines() if line.startswith("key")]
    assert len(keys) == 2
    clean(m.log().encode() + said, "the log", keys)


@pytest.mark.parametrize("words", [[f"--key={OTHER_KEY}"], ["--key", OTHER_KEY]])
def test_a_key_leaves_the_list_of_processes(rowfs, mount, store, words):
    """A server that stands still holds the command up, so that there is time to look."""
    m = mount(store)
    m.proc.send_signal(signal.SIGSTOP)
    try:
        p = subprocess.Popen([str(rowfs.program), "account", "add", str(store), "late", *words],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
        end = time.monotonic() + 60
        while b"*" * len(OTHER_KEY) not in (
                seen := pathlib.Path(f"/proc/{p.pid}/cmdline").read_bytes()):
            assert time.monotonic() < end and p.poll() is None, seen
            time.sleep(0.01)
        assert b"late" in seen
        clean(seen, "the list of processes")
    finally:
        m.proc.send_signal(signal.SIGCONT)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and OTHER_KEY.encode() in out, err


@pytest.mark.parametrize("served", [False, True])
def test_a_key_can_come_by_standard_input(rowfs, serve, store, served):
    if served:
        serve(store)
    for name, words, given in (("aaa", ["--key=-"], OTHER_KEY + "\n"),
                               ("bbb", ["--key", "-"], OTHER_KEY),
                               ("ccc", ["--key=-"], OTHER_KEY + "\r\nmore\n")):
        said = rowfs("account", "add", store, name, *words, input=given).stdout
        assert f"key1     {OTHER_KEY}\n" in said
    for given in ("", "\n", "not base64!\n", "x" * 10000):
        done = rowfs("account", "add", store, "ddd", "--key=-", input=given, check=False)
        assert done.returncode == 1 and done.stderr, done
    assert rowfs("account", "list", store).stdout.split() == ["aaa", "bbb", "ccc"]


def dumps_core(words, cwd, ready):
    """Whether SIGABRT makes it leave a core dump."""
    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)

    p = subprocess.Popen([str(w) for w in words], cwd=cwd, preexec_fn=prepare, env=ENV,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    try:
        assert p.stdout.readline()
        ready(p.pid)
        p.send_signal(signal.SIGABRT)
        _, status = os.waitpid(p.pid, 0)
        p.returncode = 0
    finally:
        p.stdout.close()
        if p.returncode is None:
            p.kill()
            p.wait()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT
    return os.WCOREDUMP(status) or any(f.name.startswith("core") for f in cwd.iterdir())


def test_no_core_dump_holds_a_key(rowfs, rest_store, work, request):
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard != resource.RLIM_INFINITY:
        pytest.skip("core dumps are limited here")
    place = work / "cores"
    place.mkdir()
    if not dumps_core(["python3", "-c", "import time; print(1, flush=True); time.sleep(60)"],
                      place, lambda _: None):
        pytest.skip("nothing leaves a core dump here")
    for left in place.iterdir():
        left.unlink()
    request.node.no_store_check = True

    def look(pid):
        assert os.stat(f"/proc/{pid}/environ").st_uid == 0
        if os.geteuid() == 0:  # a debugger of root's gets in
            with open(f"/proc/{pid}/mem", "rb") as f:
                start = next(line.split("-")[0] for line in open(f"/proc/{pid}/maps")
                             if line.rstrip().endswith(str(rowfs.program)))
                f.seek(int(start, 16))
                assert f.read(4) == b"\x7fELF"

    assert not dumps_core([rowfs.program, "serve", rest_store, "--rest=127.0.0.1:0"], place, look)


def test_others_of_the_same_user_cannot_look_into_it(rowfs, work):
    """Not a boundary, as the store is theirs, but no debugger's accident either."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    home = work / "home"
    home.mkdir()
    for path, mode in ((home, 0o700), (work, 0o755)):
        os.chmod(path, mode)
    os.chown(home, 1234, 1234)
    who = {"user": 1234, "group": 1234, "extra_groups": []}
    program = shutil.copy(rowfs.program, home / "rowfs")  # the build may be where others cannot go
    os.chmod(program, 0o755)
    subprocess.run([program, "init", home / "s"], check=True, env=ENV, **who)
    p = subprocess.Popen([program, "serve", home / "s", f"--rest=unix:{home}/sock"],
                         stdout=subprocess.PIPE, env=ENV, **who)
    try:
        assert p.stdout.readline()
        for name in ("mem", "environ", "maps"):
            done = subprocess.run(["head", "-c1", f"/proc/{p.pid}/{name}"], capture_output=True,
                                  **who)
            assert done.returncode == 1 and b"ermission denied" in done.stderr, done
    finally:
        p.terminate()
        p.stdout.close()
        assert p.wait(60) == 0


# ---- modes


class Modes:
    """Watches a directory: every mode that each name ever had there."""

    def __init__(self, at):
        self.at, self.seen, self.stop = at, {}, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.stop.is_set():
            for entry in os.scandir(self.at):
                with contextlib.suppress(FileNotFoundError):
                    st = entry.stat(follow_symlinks=False)
                    self.seen.setdefault(entry.name, set()).add(stat.S_IMODE(st.st_mode))
            time.sleep(0.0005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_modes_whatever_the_umask(rowfs, serve, work, umask):
    place = work / "place"
    place.mkdir()
    store, old = place / "s", os.umask(umask)
    try:
        with Modes(place) as modes:
            rowfs("init", store)
            rowfs("account", "add", store, ACCOUNT, f"--key={KEY}")
            server = serve(store, "--rest=127.0.0.1:0", f"--rest=unix:{place}/sock")
            with rest_client.Client(server.port) as client:
                ok(client.create_table("Tab"), 201)
                for i in range(20):
                    ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": f"{i}"}), 201)
                time.sleep(0.02)
            rowfs("check", store)
            server.stop()
            rowfs("import", store, f"{ACCOUNT}/Tab",
                  input='{"PartitionKey":"q","RowKey":"1"}\n')
    finally:
        os.umask(old)
    assert {"s", "s-wal", "sock"} <= set(modes.seen)
    # Between its making and its use the umask may take away, never add.
    loose = {name: [oct(m) for m in seen] for name, seen in modes.seen.items()
             if any(m & ~0o600 for m in seen)}
    assert not loose, loose
    assert stat.S_IMODE(store.stat().st_mode) == 0o600


def test_a_log_is_for_its_owner_and_group(rowfs, mount, store, work):
    old = os.umask(0)
    try:
        m = mount(store, f"log={work}/log")
    finally:
        os.umask(old)
    m.umount()
    for path in work.glob("log*"):
        assert stat.S_IMODE(path.stat().st_mode) & ~0o640 == 0


def test_the_unix_socket_is_its_owners(rowfs, serve, rest_store, work):
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    sock = work / "sock"
    os.chmod(work, 0o755)
    serve(rest_store, f"--rest=unix:{sock}")
    with rest_client.Client(None, unix=sock, sign=None) as client:
        ok(client.request("GET", "Tables"), 200)
        ok(client.request("GET", f"/{OTHER_ACCOUNT}/Tables"), 200)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(1234)
            os.setuid(1234)
            socket.socket(socket.AF_UNIX).connect(str(sock))
        except PermissionError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
