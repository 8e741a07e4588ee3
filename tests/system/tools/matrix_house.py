# SPDX-License-Identifier: MIT
"""The mounts of the tool matrix, and the running of one tool in them.

Conditions that do not hurt each other share a mount, and each cell has a partition of its own:
  rw      valid, invalid, cut, meanwhile       ro    readonly
  full    full: a tmpfs that is filled         kill  killed, acked: mounted anew for each cell
"""

import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

import rest_client
from conftest import ENV, Mount, add_accounts, detach, need_fuse
from matrix import CONDITIONS, NONE, OLD, OTHER, Found, cell_of, files_below, holds, new_text
from tools import put

HOUSE_OF = {"valid": "rw", "invalid": "rw", "cut": "rw", "meanwhile": "rw", "readonly": "ro",
            "full": "full", "killed": "kill", "acked": "kill"}
HOUSES = ("rw", "ro", "full", "kill")
TABLE = "Matrix"
TOOL_SECONDS = 300
GAVE_UP = 99  # the exit status of typist.py
HOUSE_SECONDS = 1500
DISK_MIB, LEFT_BYTES = 24, 400 << 10
MOVED = (978307200, 978307200)  # what a tool writes now is younger than the row


class Outcome:
    """What one run gave."""

    def __init__(self, exit_code, out, err, moment):
        self.exit_code, self.out, self.err, self.moment = exit_code, out, err, moment


class House:
    """A store and its mount, for the cells of some conditions."""

    def __init__(self, rowfs, name, shim, cells):
        need_fuse()
        if name == "full" and os.geteuid() != 0:
            pytest.skip("needs root to mount a tmpfs")
        self.name, self.shim, self.rowfs = name, shim, rowfs
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-"))
        disk = self.work / "disk"
        disk.mkdir()
        if name == "full":
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(disk)],
                           check=True)
        self.disk, self.store, self.ready = disk, disk / "store.rowfs", set()
        rowfs("init", self.store)
        add_accounts(rowfs, self.store)
        self.at = self.work / "mnt"
        self.at.mkdir()
        self.mount = self.client = None
        self.unprepared = {}
        self.fillers = 0  # rows of fill(), and the RowKey of the next
        try:
            self.furnish(cells)
        except BaseException:
            self.end()
            raise

    def furnish(self, cells):
        self.start()
        self.table().mkdir()
        if self.name in ("ro", "full"):
            for tool, condition in cells:
                self.prepare(tool, condition)
        if self.name == "ro":
            self.mount.sigterm()
            self.start("ro")

    def start(self, *options):
        if self.mount is None or options:
            self.mount = Mount(self.rowfs, self.store, self.at,
                               ["rest=127.0.0.1:0", *options], self.work / "daemon.log")
            self.mount.allow("ENOSPC|No space|NO_SPACE|full" if self.name == "full" else "(?!)")
        self.mount.timeout = HOUSE_SECONDS
        self.mount.start()
        if self.client:
            self.client.close()
        self.client = rest_client.Client(self.mount.port)

    def end(self):
        """Ends the daemon cleanly and checks the store; the problems."""
        bad = []
        try:
            if self.mount and self.mount.alive():
                self.mount.sigterm()  # umount(8) alone waits for other mount namespaces
        except BaseException as e:  # pytest.fail too: the rest must be ended first
            bad.append(str(e))
        finally:
            if self.mount:
                self.mount._watchdog.cancel()
                self.mount.force()
            if self.client:
                self.client.close()
        done = self.rowfs("check", self.store, check=False)
        if done.returncode != 0:
            bad.append(f"rowfs check: {done.returncode}: {done.stdout}{done.stderr}")
        if self.name == "full":
            subprocess.run(["umount", "-l", str(self.disk)], capture_output=True)
        if not bad and not os.environ.get("ROWFS_KEEP"):
            shutil.rmtree(self.work, ignore_errors=True)
        return bad

    # ---- places

    def table(self):
        return self.at / rest_client.ACCOUNT / TABLE

    def key(self, tool, condition):
        return f"{tool.slug}-{condition}"

    def scratch(self, tool, condition):
        return self.work / "scratch" / self.key(tool, condition)

    def environment(self, tool, condition):
        scratch = str(self.scratch(tool, condition))
        return {**ENV, "V": CONDITIONS[condition], "S": scratch, "P": sys.executable,
                "M": str(self.at), "TMPDIR": scratch, "HOME": scratch, "TERM": "vt100"}

    # ---- one cell

    def prepare(self, tool, condition):
        """The partition with its row, and what the tool finds outside."""
        if self.key(tool, condition) in self.ready:
            return
        self.ready.add(self.key(tool, condition))
        part, scratch = self.table() / self.key(tool, condition), self.scratch(tool, condition)
        part.mkdir()
        put(part / "r.json", OLD)
        os.utime(part / "r.json", MOVED)
        scratch.mkdir(parents=True)
        (scratch / "new.json").write_text(new_text(condition))
        if tool.prepare:
            done = subprocess.run(["bash", "-ec", tool.prepare], cwd=scratch, capture_output=True,
                                  env={**self.environment(tool, condition), "D": str(part)},
                                  stdin=subprocess.DEVNULL, timeout=TOOL_SECONDS)
            if done.returncode != 0:
                self.unprepared[self.key(tool, condition)] = (
                    f"{tool.prepare}: {done.stderr.decode('utf-8', 'replace')}")

    def fill(self):
        """Leaves so much of the disk as is kept free for removing, and no more."""
        ballast = self.disk / "ballast"
        size = ballast.stat().st_size if ballast.exists() else 0
        st = os.statvfs(self.disk)
        size = max(size + st.f_bfree * st.f_frsize - LEFT_BYTES, 0)
        with open(ballast, "ab") as f:
            f.truncate(size)
            os.posix_fallocate(f.fileno(), 0, size)
        # What earlier cells removed left free pages in the store, which rows may use.
        for chars in (30000, 3000, 30):
            while self.client.upsert(TABLE, "filler", str(self.fillers),
                                     {"Text": "x" * chars}).status == 204:
                self.fillers += 1

    def at_moment(self, tool, condition):
        if condition == "killed":
            os.killpg(self.mount.proc.pid, signal.SIGKILL)
            self.mount.proc.wait(60)
        else:
            key = self.key(tool, condition)
            rest_client.ok(self.client.upsert(TABLE, key, "r", json.loads(OTHER)), 204)

    def run(self, tool, condition):
        """The Cell that this tool gives, what was Found, and the Outcome."""
        self.prepare(tool, condition)
        if self.key(tool, condition) in self.unprepared:
            pytest.fail(self.unprepared[self.key(tool, condition)])
        if condition == "full":
            self.fill()
        before = self.rooms(tool, condition)
        outcome = self.observed(tool, condition) if condition in ("meanwhile", "killed") else \
            self.plain(tool, condition)
        if condition in ("killed", "acked"):
            if self.mount.alive():
                self.mount.kill9()
            detach(self.at)
            self.start()
        found = self.look(tool, condition, before)
        state = self.state(tool, condition) if tool.state else None
        return cell_of(tool, condition, outcome.exit_code, outcome.out, outcome.err, found,
                       state), found, outcome

    def plain(self, tool, condition):
        return self.spawn(tool, condition, [])

    def observed(self, tool, condition):
        """With something happening right before the first change."""
        scratch = self.work / "scratch"
        to_us, to_hook = scratch / "moment", scratch / "go"
        for fifo in (to_us, to_hook):
            fifo.unlink(missing_ok=True)
            os.mkfifo(fifo)
        with contextlib.ExitStack() as stack:
            fds = [os.open(p, os.O_RDWR | os.O_CLOEXEC) for p in (to_us, to_hook)]
            for fd in fds:
                stack.callback(os.close, fd)
            hook = f"echo > '{to_us}'; read x < '{to_hook}'"
            flags = ["-r"] if tool.kind == "read" else []
            shim = [str(self.shim), *flags, "-P", tool.moment, hook, "--"]
            return self.spawn(tool, condition, shim, fds)

    def spawn(self, tool, condition, prefix, fifos=None):
        part = self.table() / self.key(tool, condition)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen([*prefix, *tool.shell, tool.script], cwd=part, stdout=out,
                                     stderr=err, stdin=subprocess.DEVNULL,
                                     env=self.environment(tool, condition),
                                     start_new_session=True)
            ended = os.pidfd_open(child.pid)
            try:
                moment = fifos is not None and \
                    self.wait_for_moment(ended, tool, condition, fifos)
                if not select.select([ended], [], [], TOOL_SECONDS)[0]:
                    pytest.fail(f"{tool.name}: goes on for more than {TOOL_SECONDS} s")
            except BaseException:
                if not self.mount.alive():
                    detach(self.at)
                raise
            finally:
                os.killpg(child.pid, signal.SIGKILL)  # what it left running too
                child.wait(60)
                os.close(ended)
            texts = []
            for f in (out, err):
                f.seek(0)
                texts.append(f.read().decode("utf-8", "replace"))
        code = child.returncode
        return Outcome(code if code >= 0 else 128 - code, *texts, moment)

    def wait_for_moment(self, ended, tool, condition, fifos):
        ready = select.select([fifos[0], ended], [], [], TOOL_SECONDS)[0]
        if fifos[0] not in ready:
            return False
        self.at_moment(tool, condition)
        os.write(fifos[1], b"\n")
        return True

    # ---- looking

    def rooms(self, tool, condition):
        top = self.at / ".rowfs"
        return {"outside": files_below(self.scratch(tool, condition)),
                **{name: files_below(top / name) for name in ("rejected", "trash")}}

    def look(self, tool, condition, before):
        part = self.table() / self.key(tool, condition)
        beside = files_below(part)
        self.both_front_ends(self.key(tool, condition), beside)
        row = beside.pop("r.json", None)
        now = self.rooms(tool, condition)
        made = {room: {n: d for n, d in now[room].items() if before[room].get(n) != d}
                for room in now}
        sources = now["outside"]
        if "new.json" not in tool.script and any(
                holds(data, new_text(condition)) for name, data in before["outside"].items()
                if name != "new.json"):  # it was only what that was made of
            sources = {n: d for n, d in sources.items() if n != "new.json"}
        return Found(row, beside, made["rejected"], made["trash"], sources, made["outside"])

    def both_front_ends(self, key, files):
        """The partition's rows are the same through REST, and no others are there."""
        rows = {name.removesuffix(".json"): json.loads(data) for name, data in files.items()
                if data and re.fullmatch(r"[^./][^/]*\.json", name)}
        entities = {}
        for entity in self.client.all(TABLE, filter=f"PartitionKey eq '{key}'"):
            entities[entity["RowKey"]] = {
                name: value for name, value in entity.items() if "odata" not in name and
                name not in ("PartitionKey", "RowKey", "Timestamp")}
        assert entities == rows, "the front ends disagree"

    def state(self, tool, condition):
        done = subprocess.run(["bash", "-c", tool.state], capture_output=True, text=True,
                              cwd=self.table() / self.key(tool, condition),
                              env=self.environment(tool, condition), stdin=subprocess.DEVNULL,
                              timeout=TOOL_SECONDS)
        return (done.stdout.strip().splitlines() or [NONE])[-1]
