# SPDX-License-Identifier: MIT
"""The sizes of streams, and the programs that go by them: a stream is whole for each, though its
size is counted only when somebody asks."""

import contextlib
import mmap
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

from conftest import ENV
from rest_client import ACCOUNT, Client, ok
from streams import fill
from tools import get, need, put, raises, sh

ROWS = 9000  # more than a stream keeps of its text


@pytest.fixture(scope="module")
def streams():
    """Names below a table, by what they are."""
    return {"table": ".rows.ndjson", "partition": "p/.rows.ndjson", "csv": ".rows.csv",
            "ndjson": ".query/n lt 6000.ndjson", "json": ".query/n lt 6000.json",
            "query csv": ".query/select=n.csv", "count": ".query/.count",
            "few": ".query/n eq 7.ndjson", "none": ".query/n eq -1.ndjson"}


NAMES = ("table", "partition", "csv", "ndjson", "json", "query csv", "count", "few", "none")


@pytest.fixture
def tab(rowfs, store, mount):
    m = mount(store, *(["allow_other"] if os.geteuid() == 0 else []))
    (m / ACCOUNT / "Tab").mkdir(parents=True)
    fill(rowfs, store, ROWS, "p")
    return m / ACCOUNT / "Tab"


def by_read(path):
    """Without asking for the size."""
    with open(path, "rb", buffering=0) as f:
        return b"".join(iter(lambda: os.read(f.fileno(), 1 << 17), b""))


@pytest.mark.parametrize("name", NAMES)
def test_X11_stat_and_fstat_and_seek_tell_the_size(tab, streams, name):
    path = tab / streams[name]
    want = len(by_read(path))
    assert want or name == "none"
    st = os.stat(path)
    assert st.st_size == want and st.st_blocks == (want + 511) // 512
    fd = os.open(path, os.O_RDONLY)
    try:
        assert os.read(fd, 100) == by_read(path)[:100]
        assert os.fstat(fd).st_size == want == os.lseek(fd, 0, os.SEEK_END)
        assert os.pread(fd, 10, want) == b"" and len(os.pread(fd, 10, max(want - 1, 0))) == (want > 0)
        assert os.fstat(fd).st_ino == st.st_ino
    finally:
        os.close(fd)


def test_X11_an_open_stream_has_the_size_of_its_moment(tab):
    path = tab / ".rows.ndjson"
    fds, texts = [], []
    try:
        for i in range(4):
            texts.append(by_read(path))
            fds.append(os.open(path, os.O_RDONLY))
            put(tab / f"p/new{i}.json", '{"n":%d,"text":"%s"}' % (i, "x" * i * 100))
        assert [os.fstat(fd).st_size for fd in fds] == [len(t) for t in texts]
        assert os.stat(path).st_size == len(by_read(path)) > len(texts[-1])
        for fd, text in reversed(list(zip(fds, texts))):  # each is whole, by sendfile too
            assert sent(fd) == text and os.fstat(fd).st_size == len(text)
    finally:
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize("name", ["table", "csv", "ndjson"])
@pytest.mark.parametrize("others", ["", "allow_other"])
def test_X11_an_open_shows_what_its_thread_was_told(rowfs, store, mount, streams, name, others):
    """Programs that take the size by the name, and read so much of what they open then."""
    if others and os.geteuid() != 0:
        pytest.skip("needs root")
    m = mount(store, *others.split())
    tab = m / ACCOUNT / "Tab"
    tab.mkdir(parents=True)
    fill(rowfs, store, 5000, "p")
    path = tab / streams[name]
    before = by_read(path)
    size = os.stat(path).st_size
    sh(f"echo '{{\"n\":1}}' > '{tab}/p/0.json'")  # another thread's
    with open(path, "rb", buffering=0) as f:
        assert os.fstat(f.fileno()).st_size == size
        with open(path, "rb", buffering=0) as g:  # once only
            after = g.read()
        assert f.read() == before and size == len(before) < len(after)
    assert os.stat(path).st_size == len(after)
    put(tab / "p/1.json", '{"n":1}')  # its own: it must see that
    assert len(by_read(path)) > len(after)
    size = os.stat(path).st_size
    sh(f"echo '{{\"n\":1}}' > '{tab}/p/2.json'")
    assert int(sh(f"wc -c < '{path}'").stdout) > size  # nobody else is shown it
    time.sleep(2.2)
    assert len(by_read(path)) > size


def test_X11_a_stat_holds_no_place(tab, streams):
    """What is kept for an open that may come gives way to the streams that are opened."""
    paths = [tab / streams[name] for name in NAMES]
    for path in paths:
        os.stat(path)
    fds = [os.open(paths[i % len(paths)], os.O_RDONLY) for i in range(64)]
    for fd in fds:
        os.close(fd)


def test_X11_a_descriptor_opened_again_by_its_link_shows_the_same_moment(tab):
    path = tab / ".rows.ndjson"
    before = by_read(path)
    with open(path, "rb") as f:
        put(tab / "p/new.json", '{"n":1}')
        again = f"/proc/self/fd/{f.fileno()}"
        assert os.stat(again).st_size == len(before)
        for _ in range(2):
            with open(again, "rb", buffering=0) as g:
                assert by_read(again) == before == g.read() and sent(g.fileno()) == b""
        assert f.read() == before
    for command in ("cat /dev/stdin", "busybox cat /dev/stdin", "wc -c /dev/stdin"):
        out = subprocess.run(command.split(), stdin=open(path, "rb"), capture_output=True).stdout
        assert out == by_read(path) or int(out.split()[0]) == len(by_read(path))


def test_X11_control_files_of_the_mount_have_sizes(tab):
    need("busybox")
    room = tab.parent.parent / ".rowfs"
    with raises("EINVAL"):
        put(tab / "p/bad.json", "{")
    for name in ("errors", "version", "rejected.ndjson"):
        assert os.stat(room / name).st_size == len(by_read(room / name))
    for name in ("errors", "version", "metrics", "stats.json"):
        with open(room / name, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            assert size == len(f.read()) > 0
        assert len(sh(f"busybox cat '{room / name}'").stdout) > 10


def test_X11_sizes_under_writers(tab):
    """Size and bytes of one descriptor agree, whatever is committed meanwhile."""
    stop, wrote = threading.Event(), []

    def write():
        while not stop.is_set():
            put(tab / f"p/w{len(wrote) % 50}.json", '{"text":"%s"}' % ("x" * (len(wrote) * 7 % 300)))
            wrote.append(1)
    writer = threading.Thread(target=write)
    writer.start()
    sizes = set()
    try:
        for i in range(60):
            path = tab / (".rows.ndjson", ".query/n lt 100.csv", "p/.rows.csv")[i % 3]
            with open(path, "rb", buffering=0) as f:
                if i % 2:
                    assert os.fstat(f.fileno()).st_size == len(sent(f.fileno()))
                text = by_read(f"/proc/self/fd/{f.fileno()}")
                assert os.fstat(f.fileno()).st_size == len(text)
                sizes.add(len(text))
    finally:
        stop.set()
        writer.join()
    assert len(wrote) > 10 and len(sizes) > 3


def test_X11_64_streams_leave_no_place_to_count_another(tab):
    path = tab / ".rows.ndjson"
    fds = [os.open(path, os.O_RDONLY) for _ in range(64)]
    try:
        assert {os.fstat(fd).st_size for fd in fds[:3]} == {len(by_read(f"/proc/self/fd/{fds[0]}"))}
        with raises("EAGAIN"):
            os.stat(path)
    finally:
        for fd in fds:
            os.close(fd)


def test_X11_the_first_byte_waits_for_no_size(rowfs, store, mount):
    """A size takes a walk over all rows; open and read take none."""
    m = mount(store)
    (m / ACCOUNT / "Tab").mkdir(parents=True)
    fill(rowfs, store, 200_000, "q")
    path = m / ACCOUNT / "Tab/.rows.ndjson"
    start = time.monotonic()
    fd = os.open(path, os.O_RDONLY)
    try:
        assert len(os.read(fd, 100)) == 100
        first = time.monotonic() - start
        size = os.fstat(fd).st_size
        counted = time.monotonic() - start
        assert first < counted / 2 and size > 20_000_000
        start = time.monotonic()
        assert os.fstat(fd).st_size == os.stat(path).st_size  # known by now
        assert time.monotonic() - start < 0.1
    finally:
        os.close(fd)


# ---- system calls ----

def sent(fd):
    """All that sendfile(2) gives."""
    out = os.memfd_create("out")
    try:
        os.lseek(fd, 0, os.SEEK_CUR)
        while os.sendfile(out, fd, None, 1 << 20):
            pass
        return os.pread(out, os.fstat(out).st_size, 0)
    finally:
        os.close(out)


@pytest.mark.parametrize("name", NAMES)
def test_X11_sendfile_and_splice_without_a_size(tab, streams, name):
    path = tab / streams[name]
    whole = by_read(path)
    for _ in range(5):
        with open(path, "rb", buffering=0) as f:
            assert sent(f.fileno()) == whole
            assert f.seek(0) == 0 and sent(f.fileno()) == whole
    ours, theirs = os.pipe()
    got = b""
    with open(path, "rb", buffering=0) as f:
        while n := os.splice(f.fileno(), theirs, 1 << 16):
            got += os.read(ours, n)
    os.close(ours), os.close(theirs)
    assert got == whole


def test_X11_copy_file_range_into_the_mount(tab):
    whole = by_read(tab / ".rows.ndjson")
    with open(tab / ".rows.ndjson", "rb") as a, open(tab / "p/.copy", "wb") as b:
        while os.copy_file_range(a.fileno(), b.fileno(), 1 << 30):
            pass
    assert get(tab / "p/.copy") == whole


def test_X11_a_private_mapping(tab):
    whole = by_read(tab / ".rows.ndjson")
    with open(tab / ".rows.ndjson", "rb") as f:
        with raises("ENODEV"):
            mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as m:
            assert m[:] == whole and m[100:200] == whole[100:200]


# ---- programs ----

@pytest.mark.parametrize("piece", [None, 32 << 20], ids=["read_csv_auto", "read_json_auto"])
def test_X11_duckdb_gets_the_whole(tab, streams, piece):
    """Its calls, as strace shows them: sizes by path and by descriptor in turn, then read(2) of the whole
    (CSV) or of 32 MiB (JSON) until the end."""
    for name in NAMES:
        path = tab / streams[name]
        assert os.access(path, os.F_OK) and os.stat(path)
        fd = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            assert os.lseek(fd, 0, os.SEEK_SET) == 0 and os.fstat(fd).st_size == size
            assert os.access(path, os.F_OK) and os.stat(path).st_size == size
            text = b"".join(iter(lambda: os.read(fd, piece or size + 1), b""))
            assert os.lseek(fd, 0, os.SEEK_CUR) == len(text) == size == os.fstat(fd).st_size
        finally:
            os.close(fd)
        assert text == by_read(path), name


def test_X11_pandas_reads_the_whole_and_shows_that_it_cannot_map(tab):
    pandas = pytest.importorskip("pandas")
    path = tab / ".rows.csv"
    assert len(pandas.read_csv(path)) == ROWS
    with raises("ENODEV"):
        pandas.read_csv(path, memory_map=True)
    assert len(pandas.read_json(tab / ".rows.ndjson", lines=True)) == ROWS



PROGRAMS = {
    "busybox cat": "busybox cat '{0}' > '{1}'",
    "busybox cp": "busybox cp '{0}' '{1}'",
    "cat": "cat '{0}' > '{1}'",
    "cp": "cp '{0}' '{1}'",
    "dd": "dd if='{0}' of='{1}' bs=1M status=none",
    "tail": "tail -c +1 '{0}' > '{1}'",
    "rsync": "rsync '{0}' '{1}'",
    "curl -T": "curl -sS -T '{0}' 'file://{1}'",
    "sqlite3 readfile": "sqlite3 :memory: \"select writefile('{1}', readfile('{0}'))\"",
    "tar": "tar cf '{1}.tar' -C '{2}' '{3}' && tar xOf '{1}.tar' > '{1}'",
    "python shutil.copyfile": "/usr/bin/python3 -c 'import shutil,sys; shutil.copyfile(*sys.argv[1:])'"
                              " '{0}' '{1}'",
    "node copyFileSync": "node -e 'fs.copyFileSync(...process.argv.slice(1))' '{0}' '{1}'",
    "node cpSync": "node -e 'fs.cpSync(...process.argv.slice(1))' '{0}' '{1}'",
    "node readFileSync": "node -e 'const [a,b]=process.argv.slice(1);"
                         "fs.writeFileSync(b,fs.readFileSync(a))' '{0}' '{1}'",
    "node openAsBlob": "node -e 'const [a,b]=process.argv.slice(1);fs.openAsBlob(a)"
                       ".then(x=>x.arrayBuffer()).then(x=>fs.writeFileSync(b,Buffer.from(x)))'"
                       " '{0}' '{1}'",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_X11_programs_get_the_whole(tab, streams, work, program):
    words = PROGRAMS[program].split()
    need(words[0])
    if "openAsBlob" in program and sh("node -p 'typeof fs.openAsBlob'").stdout.strip() != "function":
        pytest.skip("this node has no openAsBlob")
    if "cpSync" in program and sh("node -p 'typeof fs.cpSync'").stdout.strip() != "function":
        pytest.skip("this node has no cpSync")
    for name in NAMES:
        path, out = tab / streams[name], work / "out"
        out.unlink(missing_ok=True)
        sh(PROGRAMS[program].format(path, out, tab, streams[name]))
        got = out.read_bytes() if out.exists() else b""
        assert got == by_read(path), name


def test_X11_curl_uploads_the_whole(tab, streams, work):
    """To a server: curl says the length first."""
    need("curl")
    for name in NAMES:
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
            sending = subprocess.Popen(["curl", "-sS", "--noproxy", "*", "-H", "Expect:", "-T",
                                        str(tab / streams[name]), url], env=ENV)
            peer, _ = server.accept()
            with peer, peer.makefile("rb") as f:
                head = dict(line.decode().strip().lower().split(": ", 1)
                            for line in list(iter(f.readline, b"\r\n"))[1:])
                body = f.read(int(head["content-length"]))
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            assert sending.wait() == 0
        assert body == by_read(tab / streams[name]), name


@contextlib.contextmanager
def serving(words, port, work):
    """A server in the foreground, until it answers."""
    need(words[0])
    with open(work / "server.out", "wb") as out:
        server = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, env=ENV,
                                  stdout=out, stderr=out, start_new_session=True)
    try:
        for _ in range(1200):
            if server.poll() is not None:
                pytest.fail(f"{words[0]} ended: {get(work / 'server.out').decode()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def downloads_are_whole(tab, streams, port):
    for name in NAMES:
        if streams[name].startswith(".query"):
            continue  # their names are no good URLs; one is below
        url = f"http://127.0.0.1:{port}/{streams[name]}"
        done = subprocess.run(["curl", "-sSf", "--noproxy", "*", url], capture_output=True, env=ENV)
        assert done.returncode == 0, done.stderr
        assert done.stdout == by_read(tab / streams[name]), name
    url = f"http://127.0.0.1:{port}/.query/n%20lt%206000.json"
    done = subprocess.run(["curl", "-sSf", "--noproxy", "*", url], capture_output=True, env=ENV)
    assert done.returncode == 0, done.stderr
    assert done.stdout == by_read(tab / streams["json"])


@pytest.mark.parametrize("sendfile", ["on", "off"])
def test_X11_nginx_sends_the_whole(tab, streams, work, sendfile):
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    (work / "nginx.conf").write_text(f"""
        {user} daemon off; master_process off; pid {work}/pid; error_log {work}/error.log;
        events {{}}
        http {{
            access_log off; sendfile {sendfile}; root {tab};
            client_body_temp_path {work}/b; proxy_temp_path {work}/p; fastcgi_temp_path {work}/f;
            uwsgi_temp_path {work}/u; scgi_temp_path {work}/s;
            server {{ listen 127.0.0.1:{port}; }}
        }}""")
    with serving(["nginx", "-c", work / "nginx.conf", "-p", work, "-e", work / "error.log"], port, work):
        downloads_are_whole(tab, streams, port)


@pytest.mark.parametrize("sendfile", ["On", "Off"])
def test_X11_apache_sends_the_whole(tab, streams, work, sendfile):
    modules = "/usr/lib/apache2/modules"
    port = free_port()
    user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
    (work / "apache.conf").write_text(f"""
        ServerRoot {work}
        ServerName localhost
        Listen 127.0.0.1:{port}
        PidFile {work}/pid
        ErrorLog {work}/error.log
        LoadModule mpm_event_module {modules}/mod_mpm_event.so
        LoadModule authz_core_module {modules}/mod_authz_core.so
        {user}
        DocumentRoot "{tab}"
        EnableSendfile {sendfile}
        EnableMMAP {sendfile}
        <Directory "{tab}">
            AllowOverride None
            Require all granted
        </Directory>
        """)
    for d in (work, *work.parents):
        if d == work or str(d).startswith("/tmp/"):
            os.chmod(d, 0o755)
    with serving(["apache2", "-X", "-d", work, "-f", work / "apache.conf"], port, work):
        downloads_are_whole(tab, streams, port)


def test_X11_sshfs_reads_the_whole(tab, streams, work):
    need("sshfs", "/usr/lib/openssh/sftp-server", "fusermount3")
    (work / "ssh").write_text("#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n")
    (work / "ssh").chmod(0o755)
    far = work / "far"
    far.mkdir()
    sh(f"sshfs -o ssh_command='{work}/ssh' 'host:{tab}' '{far}'")
    try:
        for name in NAMES:
            if "/p/" not in str(tab / streams[name]):
                assert get(far / streams[name]) == by_read(tab / streams[name]), name
    finally:
        sh(f"fusermount3 -u '{far}'")


def test_X11_smbclient_gets_the_whole(tab, streams, work):
    need("smbd", "smbclient")
    if os.geteuid() != 0:
        pytest.skip("smbd needs root")
    port = free_port()
    for d in ("private", "lock", "state", "cache", "pid", "ncalrpc"):
        (work / d).mkdir()
    (work / "smb.conf").write_text(f"""[global]
        interfaces = lo
        bind interfaces only = yes
        smb ports = {port}
        disable netbios = yes
        map to guest = bad user
        guest account = root
        load printers = no
        log file = {work}/smb.log
        private dir = {work}/private
        lock directory = {work}/lock
        state directory = {work}/state
        cache directory = {work}/cache
        pid directory = {work}/pid
        ncalrpc dir = {work}/ncalrpc
        [tab]
        path = {tab}
        guest ok = yes
        force user = root
        hide dot files = no
        """)
    with serving(["smbd", "-F", "--no-process-group", "-s", work / "smb.conf"], port, work):
        for name in NAMES:
            if streams[name].startswith(".query"):
                continue
            out = work / "got"
            sh(f"smbclient -s '{work}/smb.conf' -N -p {port} //127.0.0.1/tab -c "
               f"'get \"{streams[name]}\" \"{out}\"'")
            assert out.read_bytes() == by_read(tab / streams[name]), name
