# SPDX-License-Identifier: MIT
"""Types at a shell as a reader of the documentation would, who starts with nothing.

The shell is bash at a terminal of its own.  What it changes in ROOM is thrown away with it, and
every port is free: it has a mount namespace and a network of its own.  Its home directory is empty
but for `source`, which stands for the source tree with what was built.
"""

import contextlib
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl

import pytest

from conftest import BUILD, ENV, TOP, need_fuse
from namespaces import mounts
from tools import need

PATIENCE = 180  # seconds for one command
ROWS, COLUMNS = 500, 80
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ROOM = [pathlib.Path(p) for p in ("/etc", "/home", "/srv", "/usr/local", "/usr/sbin", "/var/lib")]
for place in (TOP, BUILD):
    if not set(ROOM) & set(place.parents):
        ROOM.append(place)
PROMPT = re.compile(r"\x02(\d+)\x03\Z")
# The reader is root; nothing is installed but rowfs: what a page names must be there; and there is no
# systemd: units are checked and enabled, not started.
STAND_INS = {"sudo": 'exec "$@"', "apt-get": """
[ "$1" = install ] && shift && exec dpkg -s "$@" > /dev/null
""", "systemctl": """
[ "$1 $2" = "enable --now" ] || exit 64
! systemd-analyze verify --man=no "${3/%@blogs/@blogs.service}" 2>&1 | grep rowfs || exit 1
SYSTEMD_OFFLINE=1 exec /bin/systemctl -q enable "$3"
"""}
BEGIN = """
set -e
busybox ip link set lo up
mount -t tmpfs none "$UPPER"
for d in $ROOM; do
    mkdir -p "$UPPER$d/up" "$UPPER$d/work"
    mount -t overlay -o "lowerdir=$d,upperdir=$UPPER$d/up,workdir=$UPPER$d/work" none $d
done
for name in mount.rowfs mount.fuse.rowfs umount.fuse.rowfs; do
    ln -sf "$BUILD/mount-helper/mount.rowfs" /sbin/$name
done
[ -z "$INSTALLED" ] || meson install --no-rebuild -C "$BUILD" > /dev/null
cd
exec env -u UPPER -u ROOM -u BUILD -u INSTALLED PS1=$'\\2$?\\3' PS2= HISTFILE= \
    bash --norc --noprofile --noediting -i
"""


def seen(text):
    """What stays on the screen: without colours, of a line that was overwritten the last."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


class Reader:
    """A person at a shell.  installed: rowfs is, in /usr/local."""

    def __init__(self, work, installed=True):
        need_fuse()
        need("bash", "busybox", "meson", "setsid", "unshare")
        if os.geteuid() != 0 or subprocess.run(["unshare", "-mn", "true"]).returncode != 0:
            pytest.skip("needs root, and a mount namespace and a network of its own")
        self.work, self.home, self.notes = work, work / "home", work / "notes"
        self.installed, self.said = installed, b""

    def furnish(self):
        source, stand_ins = self.home / "source", self.work / "bin"
        for place in (source, stand_ins, self.notes, self.work / "upper"):
            place.mkdir(parents=True)
        for name in os.listdir(TOP):
            if not name.startswith(("build", ".")):
                (source / name).symlink_to(TOP / name)
        (source / "build").symlink_to(BUILD)
        for name, script in STAND_INS.items():
            (stand_ins / name).write_text(f"#!/bin/bash\n{script}\n")
            (stand_ins / name).chmod(0o755)
        return {"HOME": str(self.home), "PATH": f"{stand_ins}:{PATH}", "TERM": "xterm",
                "LC_ALL": "C.UTF-8", "TZ": "UTC", "BUILD": str(BUILD),
                "ROOM": " ".join(map(str, ROOM)), "UPPER": str(self.work / "upper"),
                "INSTALLED": "yes" if self.installed else "",
                **{name: f"{ENV[name]}:log_path={self.notes}/sanitizer"
                   for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}}

    def __enter__(self):
        env = self.furnish()
        self.fd, terminal = pty.openpty()
        mode = termios.tcgetattr(terminal)
        mode[1] &= ~termios.ONLCR
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, mode)
        ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.shell = subprocess.Popen(
            ["setsid", "--ctty", "unshare", "-mn", "--propagation=private", "bash", "-c", BEGIN],
            stdin=terminal, stdout=terminal, stderr=terminal, env=env)
        os.close(terminal)
        try:
            self.answer("the shell")
        except BaseException:
            self.__exit__("no shell")
            raise
        return self

    def __exit__(self, kind, *_):
        """The reader goes away; without an error before, nothing must be left or amiss."""
        still = [] if kind else list(mounts(self.shell.pid))
        for process in (*self.others(), self.shell.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.shell.wait(60)
        os.close(self.fd)
        if not kind:
            assert not still, f"the page leaves this mounted: {still}"
            for note in self.notes.iterdir():
                pytest.fail(note.read_text(errors="replace"))

    def others(self):
        """Processes in the shell's mount namespace: its own, and servers that it has started."""
        found = []
        with contextlib.suppress(OSError):
            here = os.readlink(f"/proc/{self.shell.pid}/ns/mnt")
            for proc in pathlib.Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if os.readlink(proc / "ns/mnt") == here:
                        found.append(int(proc.name))
        return [] if os.getpid() in found else found

    def look(self, end, what):
        """What is new on the terminal."""
        if select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
            with contextlib.suppress(OSError):  # the shell has ended
                return os.read(self.fd, 65536)
        pytest.fail(f"{what}: no prompt; so far:\n{seen(self.said.decode('utf-8', 'replace'))}")

    def answer(self, what, until=None):
        """(exit status, what it printed).  Once `until` is there, the reader presses Ctrl-C."""
        self.said, end = b"", time.monotonic() + PATIENCE
        while True:
            text = self.said.decode("utf-8", "replace")
            found = PROMPT.search(text)
            if found:
                return int(found[1]), seen(text[:found.start()])
            if until and re.search(until, text):
                os.write(self.fd, b"\x03")
                until = None
            self.said += self.look(end, what)

    def type(self, text, until=None):
        os.write(self.fd, f"{text}\n".encode())
        return self.answer(text, until)
