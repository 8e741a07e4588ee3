# SPDX-License-Identifier: MIT
"""Helpers for the tests: run a tool, expect an errno, read a reason."""

import base64
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from conftest import BUILD, ENV, TOP


def sh(script, cwd=None, check=True, shell="bash", timeout=120, env=None, **kw):
    """A script as a user would type it; stdout and stderr as text."""
    done = subprocess.run([shell, "-c", script], cwd=cwd, capture_output=True, text=True,
                          errors="surrogateescape", stdin=subprocess.DEVNULL, timeout=timeout,
                          env={**ENV, **(env or {})}, **kw)
    if check and done.returncode != 0:
        pytest.fail(f"{script}\nrc {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def on_terminal(rowfs, *args, env=ENV, stdin=None):
    """What a command shows on standard error where that is a terminal."""
    main, side = os.openpty()
    p = subprocess.Popen([rowfs.program, *map(str, args)], env=env, stdin=stdin, stdout=subprocess.DEVNULL,
                         stderr=side)
    os.close(side)
    seen = b""
    with contextlib.suppress(OSError):  # EIO: nobody has the other side any more
        while part := os.read(main, 65536):
            seen += part
    os.close(main)
    assert p.wait(60) == 0, seen
    return seen.decode()


def need(*programs):
    for p in programs:
        if not shutil.which(p):
            pytest.skip(f"needs {p}, which is not installed")


@contextlib.contextmanager
def emulator_port():
    """Waits until no other test uses the emulator's port."""
    fd = os.open(TOP / "examples", os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield 10002
    finally:
        os.close(fd)


@contextlib.contextmanager
def emulator_ports():
    """Does it for all ports that `rowfs serve` has by default; skips if another program has one."""
    with emulator_port():
        for port in (10000, 10001, 10002):
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    s.bind(("127.0.0.1", port))
                except OSError as e:
                    pytest.skip(f"needs port {port}, the emulator's: {e.strerror}")
        yield


def run_example(work, name, *args):
    """What examples/NAME/run says with the build at hand; nothing of it is left behind."""
    need("meson")
    with emulator_port():
        return run_example_alone(work, name, *args)


def run_example_alone(work, name, *args):
    env = {**ENV, "ROWFS_BUILD": str(BUILD), "TMPDIR": str(work), "NO_PROXY": "*", "no_proxy": "*"}
    running = subprocess.Popen(
        [str(TOP / "examples" / name / "run"), *args, "--no-install"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd="/", start_new_session=True)
    try:
        out = running.communicate(timeout=300)[0].decode("utf-8")
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGTERM)
        pytest.fail(f"still running after 300 s: {running.communicate(timeout=60)[0]!r}")
    assert running.returncode == 0, out
    assert os.listdir(work) == [], "left behind"
    return out


@contextlib.contextmanager
def raises(*codes):
    """The block ends in OSError with one of these errnos, by number or name."""
    codes = [getattr(errno, c) if isinstance(c, str) else c for c in codes]
    names = "/".join(errno.errorcode[c] for c in codes)
    try:
        yield
    except OSError as e:
        assert e.errno in codes, f"{names} expected, got {errno.errorcode.get(e.errno)}: {e}"
    else:
        pytest.fail(f"{names} expected, but the call succeeded")


def put(path, text):
    """open O_TRUNC, one write, close: each may raise OSError."""
    data = text.encode() if isinstance(text, str) else text
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        while data:
            data = data[os.write(fd, data):]
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise
    os.close(fd)


def get(path):
    with open(path, "rb") as f:
        return f.read()


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def tree(top):
    """{path: what can be seen of it} of everything below, but for .rowfs."""
    def refused(error):
        raise error

    found = {}
    for d, dirs, files in os.walk(top, onerror=refused):
        if ".rowfs" in dirs:
            dirs.remove(".rowfs")
        for n in dirs + files:
            p = os.path.join(d, n)
            st = os.lstat(p)
            found[os.path.relpath(p, top)] = (
                st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns,
                (st.st_size, get(p)) if n in files else None)
    return found


def closes_are_known(mnt, held=0):
    """Waits until the daemon knows of as many open files as are held: the kernel tells it of a close a
    moment after that returned, and until then a link in /proc/self/fd may lead to what was read.  The
    file that is asked for this is one more that is closed; a thread of its own asks, for its speculative lookups."""
    def known():
        return json.loads(get(mnt / ".rowfs/stats.json"))["open_handles"]
    found, pause, end = [], 0.001, time.monotonic() + 60
    while not found or found[-1] > held:
        assert time.monotonic() < end, f"{found[-1]} files are open, not {held}"
        asker = threading.Thread(target=lambda: found.append(known()))
        asker.start()
        asker.join()
        time.sleep(pause)
        pause = min(2 * pause, 1)


def reason(path):
    """user.rowfs.error of a file, as text."""
    return os.getxattr(path, "user.rowfs.error").decode()


def errors(mnt):
    """.rowfs/errors as a list of objects."""
    return [json.loads(line) for line in get(mnt / ".rowfs/errors").splitlines()]


def rejected(mnt):
    """The refused bytes, newest names last: {name: bytes} of every file below."""
    found = {}
    for d, _, names in os.walk(mnt / ".rowfs/rejected"):
        for n in names:
            p = os.path.join(d, n)
            found[os.path.relpath(p, mnt / ".rowfs/rejected")] = get(p)
    return found


def traced(strace, pid, seconds=60):
    """Returns when `strace -f -p PID` has all threads: it takes one after the other."""
    end = time.monotonic() + seconds
    while True:
        try:
            tasks = [get(f"/proc/{pid}/task/{t}/status") for t in os.listdir(f"/proc/{pid}/task")]
        except (FileNotFoundError, ProcessLookupError):
            continue  # one has ended
        if not any(b"TracerPid:\t0\n" in t for t in tasks):
            return
        assert strace.poll() is None, "strace has ended"
        assert time.monotonic() < end, f"not traced after {seconds} s"
        time.sleep(0.002)


def rows(directory):
    return sorted(os.listdir(directory))


LIBC = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2


def renameat2(old, new, flags):
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def xattr(path, name):
    return os.getxattr(path, f"user.rowfs.{name}").decode()


def sanitized():
    options = BUILD / "meson-info/intro-buildoptions.json"
    return options.exists() and any(
        o["name"] == "b_sanitize" and o["value"] not in ("none", [])
        for o in json.loads(options.read_text()))


def pid_of(rowfs, path):
    """The daemon that serves a mount: the process whose command line names it."""
    for p in pathlib.Path("/proc").iterdir():
        if p.name.isdigit():
            try:
                line = (p / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if os.fsencode(path) in line and line[0].endswith(b"rowfs"):
                return int(p.name)
    return None


FORCE_SYNC = 0x2000


def statx(path, flags=0):
    """The members that say which file and version it is; None: there is none."""
    buf = ctypes.create_string_buffer(256)
    if LIBC.statx(-100, os.fsencode(path), flags, 0x7FF, buf) != 0:
        code = ctypes.get_errno()
        assert code == errno.ENOENT, (path, errno.errorcode[code])
        return None
    nlink, uid, gid, mode, _, ino, size = struct.unpack_from("IIIHHQQ", buf.raw, 16)
    return {"ino": ino, "size": size, "mode": mode, "nlink": nlink, "owner": (uid, gid),
            "ctime": struct.unpack_from("qI", buf.raw, 96),
            "mtime": struct.unpack_from("qI", buf.raw, 112)}


def long_name(key, suffix=".json"):
    """The name that the contract gives a key: cut, %~, base32 of SHA-256, suffix."""
    escaped = key.replace("%", "%25")
    if len(escaped.encode()) + len(suffix) <= 240:
        return escaped + suffix
    digest = base64.b32encode(hashlib.sha256(key.encode()).digest()).decode().rstrip("=")
    room, cut = 240 - len(suffix) - 2 - 52, ""
    for c in escaped:
        if len((cut + c).encode()) > room:
            break
        cut += c
    return f"{cut}%~{digest}{suffix}"


fork = multiprocessing.get_context("fork")


def busy(part, seed):
    """Writes, replaces, removes, lists, until the mount is gone."""
    rng = random.Random(seed)
    gone = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)
    while True:
        path = os.path.join(part, f"k{rng.randrange(50)}.json")
        how = rng.randrange(4)
        try:
            if how == 0:
                with open(path, "w") as f:
                    f.write('{"N":1}')
            elif how == 1:
                temp = os.path.join(part, f".t{seed}")
                with open(temp, "w") as f:
                    f.write('{"N":2}')
                os.rename(temp, path)
            elif how == 2:
                os.listdir(part)
                with open(path) as f:
                    f.read()
            else:
                os.unlink(path)
        except OSError as e:
            if e.errno in gone:
                return
            assert e.errno in (errno.ENOENT, errno.ESTALE), e
            if not os.path.isdir(part):
                return  # detached: the empty mount point is all that is left
