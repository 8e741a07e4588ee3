# SPDX-License-Identifier: MIT
"""Many processes at work on one mount for a while, and a watchdog that proves that each of
them gets on.

A worker is a function that is called with a Worker: how it reaches the mount and the socket,
its dice, and how it tells that it did something.  Every other one comes through a bind mount
in a mount namespace of its own (root only).  A worker whose last step was too long ago is a
deadlock: everybody's kernel stacks are kept then, and the mount's connection is cut, so that
nothing hangs behind the test.
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import subprocess
import time
import traceback

from conftest import ENV
from test_exact import version_of
from tools import LIBC, sanitized

fork = multiprocessing.get_context("fork")

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 4096, 16384, 1 << 18, 2
# Of programs that meet a name which somebody else has just removed or replaced.
GONE = re.compile(
    r"No such file or directory|[Ss]tale file handle|Directory not empty|[Ff]ile exists|"
    r"[Ff]ile removed before we read it|file changed as we read it|has vanished|"
    r"some files/attrs were not transferred|some files vanished")


PASSING = errno.ENOENT, errno.ESTALE, errno.ENOTEMPTY, errno.EEXIST


def libc(name, *args):
    if getattr(LIBC, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def mounts_of_rowfs():
    with open("/proc/self/mountinfo", "rb") as f:
        at = [line.split()[4] for line in f if b" - fuse.rowfs " in line]
    return [re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), a) for a in at]


def second_path(mnt, at):
    """From here on this process and its children have the mount at another place too."""
    libc("unshare", CLONE_NEWNS)
    libc("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    for other in reversed(mounts_of_rowfs()):  # copies would keep them alive
        if other != os.fsencode(mnt):
            LIBC.umount2(other, MNT_DETACH)
    libc("mount", os.fsencode(mnt), os.fsencode(at), None, ctypes.c_ulong(MS_BIND), None)


class Wrong(Exception):
    """A promise was not kept; its id is in front."""


def must(promise, condition, *text):
    if not condition:
        raise Wrong(promise, " ".join(map(str, text)))


def row_path(w, table, pk, rk):
    return w.at / table / pk / f"{rk}.json"


def whole(text, where):
    """The version of a document; ValueError: it is empty, the row is being made again."""
    if not text:
        raise ValueError(f"{where}: empty")
    try:
        return version_of(text, where)
    except AssertionError as e:
        must("Z2", False, e)


def once_more(call, *codes):
    """A call that somebody else's change may refuse; None then."""
    try:
        return call()
    except OSError as e:
        if e.errno not in codes:
            raise
        return None


class Worker:
    def __init__(self, soak, number, body, args):
        self.soak, self.number, self.body, self.args = soak, number, body, args
        self.name = f"{body.__name__}{number}"
        self.rng = random.Random(f"{soak.seed}/{self.name}")
        self.client = soak.client.clone()
        self.mnt = soak.mnt
        self.tmp = soak.work / "tmp" / self.name
        self.second = soak.two_paths and number % 2 == 1 and os.geteuid() == 0
        self.process = fork.Process(target=self._run, name=self.name)

    @property
    def at(self):
        """The account's directory, by this worker's path."""
        return self.mnt / self.client.account

    def go(self):
        """Whether to go on; a step was done."""
        self.done()
        while self.soak.pause.value and not self.soak.stop.is_set():
            self.soak.parked[self.number] = 1
            time.sleep(0.02)
            self.done()
        self.soak.parked[self.number] = 0
        return not self.soak.stop.is_set()

    def done(self):
        self.soak.beats[self.number] = time.monotonic()
        self.soak.steps[self.number] += 1

    def tool(self, *argv, may=None, cwd=None):
        """Runs a program.  It succeeds, or each line of its complaint matches may."""
        self.done()
        self.client.close()  # the server would, if it takes long
        argv = ["bash", "-c", argv[0]] if len(argv) == 1 else [str(a) for a in argv]
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, env=ENV)
        self.done()
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            must("Z1", may and lines and all(may.search(line) for line in lines),
                 argv, "ends with", done.returncode, done.stdout[-500:], done.stderr[-1500:])
        return done

    def _run(self):
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.tmp.mkdir(parents=True)
            if self.second:
                at = self.soak.work / "second"
                second_path(self.soak.mnt, at)
                self.mnt = at
            os.chdir(self.tmp)
            self.body(self, *self.args)
        except Wrong as e:
            self.soak.problem(e.args[0], f"{self.name}: {e.args[1]}\n{traceback.format_exc(-3)}")
        except BaseException:
            self.soak.problem("Z1", f"{self.name}: {traceback.format_exc()}")
        finally:
            self.client.close()
            self.soak.ended[self.number] = 1


class Group:
    """A shell script whose processes are all killed together."""

    def __init__(self, script):
        self.gone, held = os.pipe()
        far = fcntl.fcntl(held, fcntl.F_DUPFD_CLOEXEC, 100)  # the script has numbers of its own
        os.close(held)
        self.process = subprocess.Popen(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=ENV, start_new_session=True, pass_fds=[far])
        os.close(far)

    def running(self):
        return self.process.poll() is None

    def kill(self):
        """Returns when none of them is in the kernel any more.  The leader's end does not tell
        that: mv may still be in the middle of its rename.  The end of the pipe, which each of
        them holds, does."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.read(self.gone, 1)
        os.close(self.gone)


class Soak:
    """mnt, client: the two front ends.  program: the daemon's process."""

    def __init__(self, rowfs, mount, client, work, seed):
        self.rowfs, self.mount, self.client, self.work = rowfs, mount, client, work
        self.mnt, self.seed = mount.path, seed
        self.stop = fork.Event()
        self.pause = fork.Value("b", 0, lock=False)
        self.cut = False  # nothing of the mount answers any more
        self.workers = []
        self.problems = collections.defaultdict(list)
        self.two_paths = True  # not where the mount comes and goes
        self.limit = 60 if sanitized() else 20
        self.mounted()
        for name in ("tmp", "second", "fusectl"):
            (work / name).mkdir()

    def mounted(self):
        """Once more, maybe."""
        self.connection = os.stat(self.mnt).st_dev & 0xff

    def add(self, body, *args):
        self.workers.append(Worker(self, len(self.workers), body, args))

    def counter(self):
        """A number that all workers see."""
        return fork.Value("Q", 0)

    def problem(self, promise, text):
        line = json.dumps([promise, text]) + "\n"
        with open(self.work / "problems", "ab") as f:
            f.write(line.encode())

    def _collect(self):
        try:
            with open(self.work / "problems", encoding="utf-8") as f:
                found = [json.loads(line) for line in f]
        except FileNotFoundError:
            return False
        self.problems = collections.defaultdict(list)
        for promise, text in found:
            self.problems[promise].append(text)
        return bool(found)

    def told(self):
        """All problems so far."""
        self._collect()
        return [text for found in self.problems.values() for text in found]

    # ---- the run ----

    def run(self, seconds, meanwhile=lambda: None):
        """meanwhile: is called again and again while all are at work."""
        n = len(self.workers)
        self.beats = fork.Array("d", [time.monotonic()] * n, lock=False)
        self.steps = fork.Array("Q", n, lock=False)
        self.ended = fork.Array("b", n, lock=False)
        self.parked = fork.Array("b", n, lock=False)
        control = self._control()
        try:
            for w in self.workers:
                w.process.start()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not self._overdue():
                meanwhile()
                time.sleep(0.1)
            self.stop.set()
            while any(w.process.is_alive() for w in self.workers) and not self._overdue():
                time.sleep(0.02)
            if self._overdue():
                self._cut(control)
            for w in self.workers:
                w.process.join(60)
            self.client.close()
        finally:
            for w in self.workers:
                if w.process.is_alive():
                    self._end_tree(w.process.pid)
            subprocess.run(["umount", str(control)], capture_output=True)
            self._collect()

    @contextlib.contextmanager
    def quiet(self, seconds):
        """All wait between two steps, or it took too long."""
        self.pause.value = 1
        end = time.monotonic() + seconds
        while not all(p or e for p, e in zip(self.parked, self.ended)) and time.monotonic() < end:
            time.sleep(0.02)
        try:
            yield
        finally:
            self.pause.value = 0

    def _control(self):
        at = self.work / "fusectl"
        subprocess.run(["mount", "-t", "fusectl", "none", str(at)], capture_output=True)
        return at

    def _overdue(self):
        now = time.monotonic()
        return [w for i, w in enumerate(self.workers)
                if not self.ended[i] and now - self.beats[i] > self.limit]

    # ---- the dead ----

    def _cut(self, control):
        """Nobody waits any longer: what was seen is kept, then the connection is aborted."""
        self.cut = True
        late = self._overdue()
        names = ", ".join(f"{w.name} (pid {w.process.pid})" for w in late)
        dump = self.work / "stacks"
        with open(dump, "w", encoding="utf-8") as f:
            f.write(f"overdue: {names}\nwaiting requests: {self._waiting(control)}\n")
            for w in self.workers:
                if w.process.is_alive():
                    f.write(f"\n==== {w.name}\n" + "".join(map(stacks, tree(w.process.pid))))
            f.write("\n==== the daemon\n" + stacks(self.mount.proc.pid))
            f.write(backtraces(self.mount.proc.pid))
        self.problem("Z1", f"no step for {self.limit} s: {names}; stacks in {dump}\n" +
                     dump.read_text()[:6000])
        try:
            (control / str(self.connection) / "abort").write_text("1")
        except OSError:
            subprocess.run(["umount", "-f", str(self.mnt)], capture_output=True)

    def _waiting(self, control):
        try:
            return (control / str(self.connection) / "waiting").read_text().strip()
        except OSError as e:
            return e

    def _end_tree(self, pid):
        for p in reversed(tree(pid)):
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass


def tree(pid):
    """A process and all below it."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid] + [p for c in children for p in tree(int(c))]


def stacks(pid):
    """Where each thread is in the kernel, as text."""
    out = []
    try:
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        out.append(f"-- {pid} {command[:200].decode('utf-8', 'replace')}\n")
        for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            at = pathlib.Path(f"/proc/{pid}/task/{tid}")
            out.append(f"{tid} {(at / 'comm').read_text().strip()} "
                       f"{(at / 'wchan').read_text()} {(at / 'syscall').read_text().split()[:1]}\n")
            out.append("".join(f"    {line}\n" for line in
                               (at / "stack").read_text().splitlines()[:12]))
    except OSError as e:
        out.append(f"{e}\n")
    return "".join(out)


def backtraces(pid):
    try:
        return subprocess.run(
            ["gdb", "-batch", "-p", str(pid), "-ex", "thread apply all bt 16"],
            capture_output=True, text=True, errors="replace", timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"{e}\n"
