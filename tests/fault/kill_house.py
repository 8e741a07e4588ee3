# SPDX-License-Identifier: MIT
"""A store in a directory of its own, the daemon that serves it, and its next one."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import tempfile
import threading
import time

import calls
import rest_client
from kill_spawn import Process
from queue_client import Queues

TROUBLE = re.compile(r"ERROR|\berror:|Sanitizer|runtime error|assert|corrupt|Segmentation")
KEY = rest_client.KEY
WAIT = 60  # seconds for anything; then it hangs
KNOWN = {"store", "store-wal", "store-shm", "mnt", "rest", "control", "log", "rows"}

FRESH = {}  # accounts -> the bytes of a store that has them


class Wrong(Exception):
    """A promise that was not kept."""


def quiet_port():
    """One that the kernel gives nobody who connects: a client that tries a dead daemon's own would
    be connected to itself, and the next daemon not get it.  0: there is no such port."""
    least = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(1024, least), min(100, max(0, least - 1024))):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    return 0


class House:
    """chosen: the daemon's calls can be struck."""

    def __init__(self, spawner, build, base, accounts, chosen, tcp=False):
        self.spawner = spawner
        self.build, self.tcp = pathlib.Path(build), tcp
        self.program = self.build / "src/daemon/rowfs"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-kill-", dir=base))
        self.store, self.mnt = self.dir / "store", self.dir / "mnt"
        self.mnt.mkdir()
        self.proc, self.log_seen, self.killed = None, 0, set()
        self.port = quiet_port() if tcp else 0
        self.control = calls.Control(self.dir / "control") if chosen else None
        self.ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ready.bind(f"\0rowfs-kill-{os.getpid()}-{self.dir.name}")
        self.ready.settimeout(0.2)
        (self.dir / "log").touch()
        self.env = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC",
                    "NOTIFY_SOCKET": self.ready.getsockname().decode().replace("\0", "@")}
        self.env.setdefault("ASAN_OPTIONS", "detect_leaks=0:exitcode=99")
        new = FRESH.get(accounts)
        if new:
            self.store.write_bytes(new)
            return
        self.rowfs("init", self.store)
        for name in accounts:
            self.rowfs("account", "add", self.store, name, f"--key={KEY}")
        FRESH[accounts] = self.store.read_bytes()

    def rowfs(self, *args, check=True):
        args = [str(a) for a in (self.program, *args)]
        code, out, err = self.spawner.run(args, self.env, WAIT)
        if code is None:
            raise Wrong(f"{' '.join(args)}: nothing for {WAIT} s")
        if check and code != 0:
            raise Wrong(f"{' '.join(args)}: {code}: {out}{err}")
        return code, out, err

    def start(self, strike=None):
        """Mounts, over whatever was left.  strike: what shall happen to a call of this start.
        False: it was killed before it was ready."""
        env = self.env
        if self.control:
            env = self.control.env(self.build, self.store, base=env)
            self.control.strike(*(strike or ("count", 0, 0)))
        rest = f"unix:{self.dir}/rest"
        if self.tcp:  # the same port again: what the dead one left there is in nobody's way
            rest = f"127.0.0.1:{self.port}"
        self.log_seen = os.path.getsize(self.dir / "log")
        args = [self.program, "mount", "-f", "-o", f"rest={rest}", self.store, self.mnt]
        self.proc = Process(self.spawner, [str(a) for a in args], env, str(self.dir / "log"))
        for _ in range(int(WAIT / 0.2)):
            try:
                if self.ready.recv(100).startswith(b"READY"):
                    break
            except TimeoutError:
                pass
            if self.proc.poll() is not None:
                if strike and self.proc.returncode == -signal.SIGKILL:
                    self.drain()
                    return False
                raise Wrong(f"the next daemon ended with {self.proc.returncode}: {self.said()}")
        else:
            raise Wrong(f"the next daemon is not ready after {WAIT} s: {self.said()}")
        end = time.monotonic() + WAIT
        while self.tcp and not self.port and time.monotonic() < end:  # told a moment later
            told = re.search(r"REST at http://[^\s/]*:(\d+)", self.said())
            self.port = int(told[1]) if told else 0
            time.sleep(0.005)
        if self.mounts() != 1:
            raise Wrong(f"{self.mounts()} mounts at {self.mnt}")
        extra = set(os.listdir(self.dir)) - KNOWN
        if extra:
            raise Wrong(f"files that were left: {extra}")
        return True

    def drain(self):
        """What a daemon said that was killed right then."""
        self.ready.setblocking(False)
        try:
            while True:
                self.ready.recv(100)
        except BlockingIOError:
            pass
        self.ready.settimeout(0.2)

    def client(self, account):
        if self.tcp:
            return rest_client.Client(self.port, account, KEY, timeout=WAIT,
                                      accept=rest_client.FULL)
        return rest_client.Client(0, account, KEY, timeout=WAIT, unix=self.dir / "rest",
                                  accept=rest_client.FULL)

    def queues(self, account):
        host = f"{account}.queue.localhost"
        if self.tcp:
            return Queues(self.port, host, account, KEY)
        return Queues(0, host, account, KEY, unix=self.dir / "rest")

    def mounts(self):
        want = f" {self.mnt} "
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return sum(want in line for line in f)

    def said(self):
        with open(self.dir / "log", "rb") as f:
            f.seek(self.log_seen)
            return f.read().decode("utf-8", "replace")[-3000:]

    def kill(self):
        self.killed.add(self.proc.pid)
        self.proc.kill()

    def was_killed(self, pid):
        """Asked by who lost it.  A chosen end comes from inside."""
        return pid in self.killed or bool(self.control and self.proc.wait(5))

    def hangs(self):
        """A thread that tells the kernel something may wait for a lock whose holder waits for
        an answer: then the dead one, and its clients, stay until the next one cuts them off."""
        return self.proc.wait(0.5) is None

    def is_dead(self, proc=None):
        """Waits for the end, which must be by SIGKILL and nothing else."""
        code = (proc or self.proc).wait(WAIT)
        if code != -signal.SIGKILL or TROUBLE.search(self.said()):
            raise Wrong(f"the daemon ended with {code}: {self.said()}")
        if not proc:
            self.drain()

    def check(self):
        self.rowfs("check", self.store)

    def stop(self):
        """A clean end: nothing is left but the store."""
        self.proc.terminate()
        code = self.proc.wait(WAIT)
        if code != 0 or TROUBLE.search(self.said()):
            raise Wrong(f"the daemon ended with {code} after SIGTERM: {self.said()}")
        left = set(os.listdir(self.dir)) - {"store", "mnt", "control", "log", "rows"}
        if left or self.mounts():
            raise Wrong(f"left behind by a clean end: {left or self.mnt}")
        self.check()

    def cut(self):
        """The daemon's end, and that of every wait for it."""
        if self.proc:
            self.proc.kill()
        ways = (["umount", "-f"], ["umount", "-l"])
        for _ in range(9):
            for how in ways if os.geteuid() == 0 else [["fusermount3", "-u", "-z"]]:
                if self.mounts():
                    self.spawner.run([*how, str(self.mnt)], self.env, WAIT)

    def remove(self, keep=False):
        """No process and no mount is left, whatever happened; the files only if kept."""
        self.cut()
        if self.proc:
            self.proc.wait(WAIT)
        if self.control:
            self.control.map.close()
        self.ready.close()
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)


def together(jobs):
    """Runs each in a thread of its own; who is still at it after the wait hangs."""
    threads = [threading.Thread(target=job, daemon=True) for job in jobs]
    for t in threads:
        t.start()

    def join(seconds=None):
        """seconds: no longer, and false if they are at it still."""
        end = time.monotonic() + (seconds or WAIT)
        for t in threads:
            t.join(max(0, end - time.monotonic()))
        if any(t.is_alive() for t in threads):
            if seconds:
                return False
            raise Wrong("a program hangs after its daemon was killed")
        return True
    return join
