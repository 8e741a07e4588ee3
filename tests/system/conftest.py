# SPDX-License-Identifier: MIT
"""Fixtures of the system tests: the program, a store, a live mount.

Everything goes through subprocess and system calls, as a user would.  Each test has a
directory of its own, which stays behind (with the daemon's log) only if the test failed.
A daemon runs in the foreground in its own process group; the end of a test unmounts it,
waits for it, wants exit status 0, reads its stderr for signs of trouble and lets
`rowfs check` verify the store, so that every test is also a test of these.

ROWFS_BUILD  the build directory (default: build in the top of the source tree)
ROWFS_TEST_TIMEOUT  seconds after which a test's mounts are torn down by force
"""

import collections
import contextlib
import errno
import itertools
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import namespaces
import rest_client

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/fault"))
import calls  # noqa: E402

BUILD = pathlib.Path(os.environ.get("ROWFS_BUILD", TOP / "build")).resolve()
CONNECTIONS = pathlib.Path("/sys/fs/fuse/connections")
TIMEOUT = float(os.environ.get("ROWFS_TEST_TIMEOUT", "240"))
# A server that has nothing more to do closes its store, and syncs it to a disk that may have much
# to do from the tests before.
END = 200
# What a healthy daemon never prints.  A refused write is news for the user, not an error
# of the daemon, and is logged below this level.
TROUBLE = re.compile(
    r"ERROR|\berror:|AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error|"
    r"detected memory leaks|SUMMARY:|BUG|assert|Segmentation|double free|corrupt",
)

ENV = dict(os.environ)
ENV.setdefault("ASAN_OPTIONS", "detect_leaks=1:exitcode=99:strict_string_checks=1:"
               "detect_stack_use_after_return=1")
ENV.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
ENV["LC_ALL"] = "C.UTF-8"
ENV["TZ"] = "UTC"
os.environ["LC_ALL"] = "C.UTF-8"
# A shell that runs the tests in the background has them ignore Ctrl-C and Ctrl-\, nohup the hang-up, and
# what they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

OTHER_ACCOUNT, OTHER_KEY = "other", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
TABLE_NUMBERS = itertools.count(1)


def find_program(*candidates):
    for c in candidates:
        p = BUILD / c
        if p.is_file() and os.access(p, os.X_OK):
            return p
    pytest.exit(f"no {candidates[0]} in {BUILD}; build first, or set ROWFS_BUILD", returncode=3)


def connection_at(path):
    """Of what is mounted exactly here, be it dead; None: nothing is."""
    want = os.fsencode(str(path))
    with open("/proc/self/mountinfo", "rb") as f:
        for line in f:
            words = line.split()
            at = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), words[4])
            if at == want:
                return CONNECTIONS / words[2].decode().split(":")[1]
    return None


def is_mount(path):
    return connection_at(path) is not None


def detach(path):
    """Takes a mount away whatever state its daemon is in.  -f first: it wakes clients that
    hang on a dead daemon, which -l alone would make incurable.  For others than root aborting
    the connection does it, where fusectl is mounted."""
    tool = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
    if os.geteuid() != 0 and is_mount(path):
        with contextlib.suppress(OSError):
            (connection_at(path) / "abort").write_text("1")
    for extra in (["-f"] if os.geteuid() == 0 else [], ["-l"] if os.geteuid() == 0 else ["-z"]):
        if not is_mount(path):
            return
        subprocess.run(tool + extra + [str(path)], capture_output=True)


def read_text(path):
    try:
        return path.read_text(errors="replace").strip()
    except OSError as e:
        return e.strerror


def who_holds(path):
    """For the message of a mount that does not end: processes that are in it or have a copy of it
    in a mount namespace of their own."""
    found, here = [], os.readlink("/proc/self/ns/mnt")
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            links = [proc / "cwd", proc / "root", *(proc / "fd").iterdir()]
            for link in links:
                with contextlib.suppress(OSError):
                    if f"{os.readlink(link)}/".startswith(f"{path}/"):
                        found.append(f"{proc.name} ({read_text(proc / 'comm')}): {link.name}")
            if os.readlink(proc / "ns/mnt") != here and f" {path} " in read_text(
                    proc / "mountinfo"):
                found.append(f"{proc.name} ({read_text(proc / 'comm')}): another namespace")
    return "; ".join(found) or "nobody"


def what_threads_do(pid):
    return "; ".join(
        f"{read_text(t / 'comm')}: {read_text(t / 'wchan')}, call {read_text(t / 'syscall')}"
        for t in pathlib.Path(f"/proc/{pid}/task").glob("*"))


def descriptors(pid):
    """Numbers of what a server has open."""
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        pytest.skip("needs root: a server lets nobody else look at its descriptors")


def need_to_cut():
    """A mount whose server is killed while many are at work there."""
    if os.geteuid() != 0 and not os.path.ismount(CONNECTIONS):
        pytest.skip(f"needs root, or fusectl at {CONNECTIONS}")


class Rowfs:
    """rowfs("init", store) runs the program; wants exit status 0 unless check=False."""

    def __init__(self, program):
        self.program = program

    def __call__(self, *args, check=True, input=None, timeout=120, **kw):
        if isinstance(input, str):
            input = input.encode()
        done = subprocess.run(
            [str(self.program), *map(str, args)], input=input, capture_output=True,
            timeout=timeout, env=ENV, stdin=subprocess.DEVNULL if input is None else None, **kw)
        done.stdout = done.stdout.decode("utf-8", "surrogateescape")
        done.stderr = done.stderr.decode("utf-8", "surrogateescape")
        if "Sanitizer" in done.stderr or "runtime error" in done.stderr:
            pytest.fail(f"rowfs {args}: {done.stderr}")
        if check and done.returncode != 0:
            pytest.fail(f"rowfs {' '.join(map(str, args))}: {done.returncode}: {done.stderr}")
        return done


class Mount:
    """A live mount.  .path is where; the rest is for tests that end it in some way."""

    def __init__(self, rowfs, store, path, options, log):
        self.rowfs, self.store, self.path, self.options = rowfs, store, path, options
        self.log_path = log
        self.env = ENV
        self.proc = None
        self.allowed = []
        self.timeout = TIMEOUT
        self.expect_rc = 0
        self._log_seen = 0
        self._forced = False

    def start(self):
        args = [str(self.rowfs.program), "mount", str(self.store), str(self.path), "-f"]
        if self.options:
            args += ["-o", ",".join(self.options)]
        before = os.stat(self.path.parent).st_dev
        with open(self.log_path, "ab") as log:
            self._log_seen = log.tell()
            self.proc = subprocess.Popen(
                args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                start_new_session=True)
        self._watchdog = threading.Timer(self.timeout, self._overdue)
        self._watchdog.daemon = True
        self._watchdog.start()
        end = time.monotonic() + 120
        while True:
            if self.proc.poll() is not None:
                self._watchdog.cancel()
                pytest.fail(f"mount ended with {self.proc.returncode}: {self.log()}")
            try:
                if os.stat(self.path).st_dev != before:
                    os.stat(self.path / ".rowfs" / "version")
                    return self
            except OSError as e:
                if e.errno not in (errno.ENOENT, errno.ENOTCONN, errno.EINTR):
                    raise
            if time.monotonic() > end:
                self.force()
                pytest.fail(f"not mounted after 120 s: {self.log()}")
            time.sleep(0.002)

    def log(self):
        with open(self.log_path, "rb") as f:
            f.seek(self._log_seen)
            return f.read().decode("utf-8", "replace")

    def _overdue(self):
        self._forced = True
        self.force()

    def force(self):
        """SIGKILL and detach; nothing of the mount is left afterwards."""
        if self.proc and self.proc.poll() is None:
            try:
                os.killpg(self.proc.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        detach(self.path)
        if self.proc:
            self.proc.wait(60)

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def kill9(self):
        """The daemon dies like in a power cut of the process; the mount point is freed."""
        self._watchdog.cancel()
        self.force()
        self._scan()

    def umount(self):
        """A clean end by umount(8); the daemon has gone when this returns."""
        self._watchdog.cancel()
        tool = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
        end = time.monotonic() + 60
        while True:
            done = subprocess.run(tool + [str(self.path)], capture_output=True, text=True)
            # A process that was killed and waited for may have threads that still end.
            if "busy" not in done.stderr or time.monotonic() > end:
                break
            time.sleep(0.05)
        if done.returncode != 0:
            done.stderr += f" (held by: {who_holds(self.path)})"
            self.proc.send_signal(signal.SIGTERM)
        try:
            rc = self.proc.wait(END)
        except subprocess.TimeoutExpired:
            why = f"held by {who_holds(self.path)}; {what_threads_do(self.proc.pid)}"
            self.force()
            pytest.fail(f"daemon lives on {END} s after umount ({done.stderr.strip()}): {why}\n"
                        f"{self.log()}")
        detach(self.path)
        self._scan()
        if done.returncode != 0:
            pytest.fail(f"umount: {done.stderr.strip()}")
        if self._forced:
            pytest.fail(f"the test took more than {TIMEOUT:.0f} s and was ended by force")
        if rc != self.expect_rc:
            pytest.fail(f"daemon ended with {rc}: {self.log()}")

    def sigterm(self):
        """A clean end by signal."""
        self._watchdog.cancel()
        self.proc.send_signal(signal.SIGTERM)
        rc = self.proc.wait(END)
        detach(self.path)
        self._scan()
        assert rc == 0, self.log()

    def remount(self):
        if self.alive():
            self.umount()
        return self.start()

    def allow(self, pattern):
        """Lines of the daemon's stderr that this test expects."""
        self.allowed.append(re.compile(pattern))

    def _scan(self):
        for line in self.log().splitlines():
            if TROUBLE.search(line) and not any(a.search(line) for a in self.allowed):
                pytest.fail(f"the daemon's stderr: {line}\n{self.log()[-4000:]}")

    def rss_kib(self):
        with open(f"/proc/{self.proc.pid}/status") as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1])
        raise RuntimeError("no VmRSS")

    def __truediv__(self, name):
        return self.path / name

    @property
    def port(self):
        """Of the first REST or admin socket: from the log of this start."""
        end = time.monotonic() + 120
        while True:
            found = re.search(r"REST at (?:admin=)?https?://[^\s/]*:(\d+)", self.log())
            if found:
                return int(found[1])
            if time.monotonic() > end or not self.alive():
                pytest.fail(f"no REST socket in the log: {self.log()}")
            time.sleep(0.002)

    def url(self, account):
        return f"http://127.0.0.1:{self.port}/{account}"


class Serve:
    """`rowfs serve` in the foreground.  .endpoints is what it said that it serves at."""

    def __init__(self, rowfs, store, options, log, timeout=TIMEOUT):
        self.rowfs, self.store, self.log_path, self.timeout = rowfs, store, log, timeout
        self.options = [str(o) for o in options]
        if not any(o.startswith("--rest=") for o in self.options):
            self.options.insert(0, "--rest=127.0.0.1:0")
        self.proc = self._watchdog = None
        self.endpoints, self.allowed = [], []
        self._log_seen, self._forced = 0, False

    def start(self):
        with open(self.log_path, "ab") as log:
            self._log_seen = log.tell()
            self.proc = subprocess.Popen(
                [str(self.rowfs.program), "serve", str(self.store), *self.options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=ENV,
                start_new_session=True)
        self._watchdog = threading.Timer(self.timeout, self._overdue)
        self._watchdog.daemon = True
        self._watchdog.start()
        wanted = sum(o.startswith("--rest=") for o in self.options)
        end, said = time.monotonic() + 120, b""
        while True:
            lines = said.decode("utf-8", "replace").split("\n")[:-1]
            self.endpoints = [e for line in lines for e in
                              re.findall(r"(?:https?://|unix:)[^\s,]+", line)]
            if len(self.endpoints) >= wanted:
                return self
            left = end - time.monotonic()
            if left > 0 and select.select([self.proc.stdout], [], [], left)[0]:
                piece = os.read(self.proc.stdout.fileno(), 4096)
                said += piece
                if piece:
                    continue
                self.proc.wait(60)
            rc = self.proc.poll()
            self.force()
            pytest.fail(f"serve: {'nothing for 120 s' if rc is None else rc}: "
                        f"{said!r} {self.log()}")

    @property
    def port(self):
        """Of the first TCP endpoint."""
        for e in self.endpoints:
            found = re.search(r"https?://.*:(\d+)", e)
            if found:
                return int(found[1])
        raise RuntimeError(f"no TCP endpoint in {self.endpoints}")

    def url(self, account):
        scheme = next(e for e in self.endpoints if e.startswith("http")).split(":")[0]
        return f"{scheme}://127.0.0.1:{self.port}/{account}"

    def log(self):
        with open(self.log_path, "rb") as f:
            f.seek(self._log_seen)
            return f.read().decode("utf-8", "replace")

    rss_kib = Mount.rss_kib
    allow = Mount.allow
    alive = Mount.alive
    _scan = Mount._scan

    def _overdue(self):
        self._forced = True
        self.force()

    def force(self):
        if self._watchdog:
            self._watchdog.cancel()
        if self.alive():
            try:
                os.killpg(self.proc.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.proc:
            self.proc.wait(60)
            self.proc.stdout.close()

    def kill9(self):
        """The server dies as it would in a power cut of the process."""
        self.force()
        self._scan()

    def stop(self, wait=END):
        """A clean end by SIGTERM; the server has gone when this returns."""
        self.proc.send_signal(signal.SIGTERM)
        try:
            rc = self.proc.wait(wait)
        except subprocess.TimeoutExpired:
            self.force()
            pytest.fail(f"the server lives on {wait} s after SIGTERM: {self.log()}")
        self.force()
        self._scan()
        if self._forced:
            pytest.fail(f"the test took more than {self.timeout:.0f} s and was ended by force")
        assert rc == 0, f"the server ended with {rc}: {self.log()}"

    def restart(self):
        if self.alive():
            self.stop()
        return self.start()


def sampled(items, n):
    """Of the cases of each test the first and each n-th after it."""
    cases = collections.Counter()
    for item in items:
        test = (item.path, getattr(item, "originalname", None) or item.name)
        if cases[test] % n == 0:
            yield item
        cases[test] += 1


def pytest_collection_modifyitems(config, items):
    """The files that take longest come first: processes that share them end at about the same time.
    A slow test counts as much as a few hundred others."""
    chosen = list(sampled(items, int(os.environ.get("ROWFS_EACH_CASE", "1"))))
    config.hook.pytest_deselected(items=[i for i in items if i not in set(chosen)])
    items[:] = chosen
    weight = collections.Counter()
    for item in items:
        weight[item.path] += 300 if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weight[item.path])


def pytest_configure(config):
    """Each process of pytest mounts where nobody else copies mounts from, if it may: root may."""
    config._rowfs_failed = set()
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            namespaces.enter_own()


def pytest_runtest_setup(item):
    if item.get_closest_marker("browser") and shutil.which("chromedriver") is None:
        pytest.skip("needs chromium-driver")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        item.config._rowfs_failed.add(item.nodeid)


@pytest.fixture(scope="session")
def chromium():
    from webdriver import Chromium
    with contextlib.closing(Chromium()) as browser:
        yield browser


@pytest.fixture(scope="session")
def rowfs():
    return Rowfs(find_program("src/daemon/rowfs", "rowfs", "src/rowfs"))


@pytest.fixture
def work(request):
    """A directory of this test's own.  Stays if the test failed or ROWFS_KEEP is set."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-"))
    yield path
    if request.node.nodeid in request.config._rowfs_failed or os.environ.get("ROWFS_KEEP"):
        print(f"\nkept: {path}")
    else:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def store(rowfs, work):
    """An empty store."""
    path = work / "store.rowfs"
    rowfs("init", path)
    return path


def need_fuse():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        pytest.skip(f"needs /dev/fuse to mount: {e.strerror}")


class Url(str):
    """The source of a mount of an account elsewhere: no store to check at the end."""

    def exists(self):
        return False


@pytest.fixture
def mount(rowfs, work, request):
    """A factory: mount(store, "ro", at=DIR) -> Mount.  All are ended with the test."""
    need_fuse()
    mounts, stores = [], []

    def make(store, *options, at=None, env=ENV):
        at = at or work / f"mnt{len(mounts) or ''}"
        at.mkdir(exist_ok=True)
        m = Mount(rowfs, store, at, list(options), work / f"daemon{len(mounts)}.log")
        m.env = env
        mounts.append(m)
        if store not in stores:
            stores.append(store)
        return m.start()

    yield make
    os.chdir("/")
    problems = []
    for m in reversed(mounts):
        try:
            if m.alive():
                m.umount()
        except BaseException as e:  # pytest.fail too: the others must be ended first
            problems.append(str(e))
        finally:
            m._watchdog.cancel()
            m.force()
    for s in stores:
        if s.exists() and not getattr(request.node, "no_store_check", False):
            done = rowfs("check", s, check=False)
            if done.returncode != 0:
                problems.append(f"rowfs check: {done.returncode}: {done.stdout}{done.stderr}")
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


@pytest.fixture
def struck(mount, store, work):
    """A factory: struck("ro") -> (Mount, calls.Control).  What the server calls on its store can be
    made to fail or to wait."""
    with calls.Control(work / "control") as control:
        yield lambda *options: (
            mount(store, *options, env=control.env(BUILD, store, base=ENV)), control)
        control.stop()


@pytest.fixture
def small_disk(work):
    """A directory on a disk of 4 MiB."""
    need_fuse()
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    at = work / "small"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(at)], check=True)
    yield at
    subprocess.run(["umount", "-l", str(at)], capture_output=True)


def add_accounts(rowfs, store):
    """What rest_client.py signs with, and a second account, whose key is made up."""
    rowfs("account", "add", store, rest_client.ACCOUNT, f"--key={rest_client.KEY}")
    rowfs("account", "add", store, OTHER_ACCOUNT, f"--key={OTHER_KEY}")


def end_servers(rowfs, servers, stores):
    """Stops what still runs and checks the stores; the problems."""
    problems = []
    for s in reversed(servers):
        try:
            if s.alive():
                s.stop()
            elif s.proc and s.proc.returncode not in (0, -signal.SIGKILL):
                problems.append(f"the server ended with {s.proc.returncode}: {s.log()[-4000:]}")
        except BaseException as e:  # pytest.fail too: the others must be ended first
            problems.append(str(e))
        finally:
            s.force()
    for path in stores:
        if path.exists():
            done = rowfs("check", path, check=False)
            if done.returncode != 0:
                problems.append(f"rowfs check: {done.returncode}: {done.stdout}{done.stderr}")
    return problems


@pytest.fixture
def serve(rowfs, work, request):
    """A factory: serve(store, "--rest-trust=none", ...) -> Serve.  All are ended with the
    test; without a --rest= among the options there is one TCP socket of any port."""
    servers, stores = [], []

    def make(store, *options):
        s = Serve(rowfs, store, options, work / f"serve{len(servers)}.log")
        servers.append(s)
        if store not in stores:
            stores.append(store)
        return s.start()

    yield make
    problems = end_servers(rowfs, servers,
                           [] if getattr(request.node, "no_store_check", False) else stores)
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


@pytest.fixture(scope="module")
def module_server(request, rowfs):
    """One server for the tests of a file that need none of their own.  SERVE_OPTIONS of the
    file are its options."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-"))
    store = work / "store.rowfs"
    rowfs("init", store)
    add_accounts(rowfs, store)
    options = getattr(request.module, "SERVE_OPTIONS", [])
    server = Serve(rowfs, store, options, work / "serve.log", timeout=4 * TIMEOUT)
    try:
        yield server.start()
    finally:
        problems = end_servers(rowfs, [server], [store])
        if not problems:
            shutil.rmtree(work, ignore_errors=True)
    if problems:
        pytest.fail("\n".join([*problems, f"kept: {work}"]), pytrace=False)


@pytest.fixture
def rest(module_server):
    """A client of the file's server."""
    if not module_server.alive():  # an earlier test has killed it, and has failed
        module_server.start()
    with rest_client.Client(module_server.port) as client:
        yield client
    assert module_server.alive(), f"the server is gone: {module_server.log()[-4000:]}"


@pytest.fixture
def tab(rest):
    """A fresh table of the file's server."""
    name = f"Tab{next(TABLE_NUMBERS)}"
    rest_client.ok(rest.create_table(name), 201)
    return name


@pytest.fixture
def rest_store(rowfs, store):
    """A store with the accounts that rest_client.py knows."""
    add_accounts(rowfs, store)
    return store


@pytest.fixture
def rest_mount(mount):
    """A factory: rest_mount(store, ...) -> Mount with both front ends; .port is the socket's."""
    def make(store, *options, at=None):
        m = mount(store, "rest=127.0.0.1:0", *options, at=at)
        assert m.port > 0
        return m

    return make


@pytest.fixture
def mnt(mount, request):
    """An empty store, mounted; with ROWFS_MOUNT_URL an account of the Table service elsewhere."""
    url = os.environ.get("ROWFS_MOUNT_URL")
    if url is None:
        return mount(request.getfixturevalue("store"))
    cache = request.getfixturevalue("work") / "cache"
    cache.mkdir()
    mnt = mount(Url(url), "cache=0", env={**ENV, "XDG_CACHE_HOME": str(cache)})
    request.addfinalizer(lambda: remove_tables(mnt))
    return mnt


def remove_tables(mnt):
    """The service outlives the test."""
    for account in mnt.path.iterdir():
        for table in account.iterdir():
            shutil.rmtree(table, ignore_errors=True)


@pytest.fixture
def account(mnt):
    """An account's directory, made by mkdir."""
    path = mnt / "acct1"
    path.mkdir(exist_ok="ROWFS_MOUNT_URL" in os.environ)
    return path


@pytest.fixture
def table(account):
    path = account / "Blogs"
    path.mkdir()
    return path


@pytest.fixture
def part(table):
    """A partition's directory: what most tests work in."""
    path = table / "Channel_19"
    path.mkdir()
    return path
