# SPDX-License-Identifier: MIT
"""Small words that the tests share: run a tool, expect an errno, read a reason."""

import contextlib
import ctypes
import errno
import json
import os
import shutil
import subprocess

import pytest

from conftest import ENV


def sh(script, cwd=None, check=True, shell="bash", timeout=120, env=None, **kw):
    """A script as a user would type it; stdout and stderr as text."""
    done = subprocess.run([shell, "-c", script], cwd=cwd, capture_output=True, text=True,
                          errors="surrogateescape", stdin=subprocess.DEVNULL, timeout=timeout,
                          env={**ENV, **(env or {})}, **kw)
    if check and done.returncode != 0:
        pytest.fail(f"{script}\nrc {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def need(*programs):
    for p in programs:
        if not shutil.which(p):
            pytest.skip(f"needs {p}, which is not installed")


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
