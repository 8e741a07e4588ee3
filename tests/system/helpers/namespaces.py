# SPDX-License-Identifier: MIT
"""Mount namespaces.  A namespace that is made anywhere on the machine begins with copies of all mounts
that its maker sees, and a copy keeps a mount of rowfs alive after it was unmounted."""

import ctypes
import os
import pathlib
import re

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_FS, CLONE_NEWNS = 0x200, 0x20000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2


def call(name, *args):
    args = [os.fsencode(a) if isinstance(a, (str, pathlib.Path)) else a for a in args]
    if getattr(LIBC, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}{args}: {os.strerror(code)}")


def mounts(process="self"):
    """The mounts of rowfs: {directory: (flags, source, the superblock's options)}."""
    found = {}
    with open(f"/proc/{process}/mountinfo") as f:
        for line in f:
            w = line.split()
            dash = w.index("-")
            if w[dash + 1] == "fuse.rowfs":
                at = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), w[4])
                found[at] = (w[5].split(","), w[dash + 2], w[dash + 3].split(","))
    return found


def enter_own():
    """Gives this thread, and what it starts, a mount namespace that nobody else copies from, and that
    has no copies of the mounts of others.  OSError: it may not."""
    call("unshare", CLONE_NEWNS)
    call("mount", None, "/", None, MS_REC | MS_PRIVATE, None)
    while mounts():
        for at in reversed(mounts()):
            call("umount2", at, MNT_DETACH)
