# SPDX-License-Identifier: MIT
"""A store, its daemon, and those who work with it for a while: in a calm house everybody of the
soak, whose daemon lives as long as the run and must not grow; in a rough one those who keep a
ledger, while things are broken."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import calls
import gauge
import ledger
import others
import soak_cast
from conftest import BUILD, ENV, Mount, add_accounts
from faults import Conductor
from rest_client import ACCOUNT, Client, ok
from soak import Soak
from tools import sanitized

# What the daemon says of what is done to it; not what a sanitizer or an assertion says.
EXPECTED = r"^rowfs: error: (?!internal error)"


class House:
    rough = False
    # Seconds: of an operation that nothing broken is in the way of; and from the end of a fault to
    # the first change through both front ends.
    bound = recovery = 30.0 if sanitized() else 10.0

    def __init__(self, rowfs, seed, work=None):
        self.rowfs, self.seed = rowfs, seed
        self.work = pathlib.Path(work or tempfile.mkdtemp(prefix="rowfs-load-"))
        self.disk = self.control = self.soak = self.mount = None
        self.plateaus, self.problems = [], []
        self.clock = gauge.Clock()

    # ---- the daemon ----

    def open(self, *options):
        store = (self.disk or self.work) / "store.rowfs"
        self.rowfs("init", store)
        add_accounts(self.rowfs, store)
        self.rowfs("account", "add", store, others.ROTATED)
        (self.work / "mnt").mkdir()
        self.mount = Mount(self.rowfs, store, self.work / "mnt",
                           ["rest=127.0.0.1:0", "trash=4M", *options], self.work / "daemon.log")
        self.mount.start()
        self.mount._watchdog.cancel()
        self.client = Client(self.mount.port)
        self.home = self.mount.path / ACCOUNT / ledger.TABLE
        self.soak = Soak(self.rowfs, self.mount, self.client, self.work, self.seed)
        self.soak.limit = max(self.soak.limit, 60)
        self.soak.faults = ledger.Faults(self.mount.port)
        ok(self.client.create_table(ledger.TABLE), 201)
        (self.home / "probe").mkdir()

    def close(self):
        """Everything is as it was before; the problems are all known."""
        try:
            self.client.close()
            self.mount.umount()
            done = self.rowfs("check", self.mount.store, check=False)
            if done.returncode != 0:
                self.problems.append(f"check: {done.stdout}{done.stderr}")
        except BaseException as e:  # pytest.fail too
            self.problems.append(f"at the end: {e}")
        finally:
            self.clean()

    def clean(self):
        try:
            if self.mount:
                self.mount.force()
        except subprocess.TimeoutExpired as e:
            self.problems.append(f"the daemon does not end, unmounted though it is: {e}")
        if self.disk:
            if self.problems:
                shutil.copytree(self.disk, self.work / "kept")
            subprocess.run(["umount", "-l", str(self.disk)], capture_output=True)
            self.disk = None
        if not self.problems:
            shutil.rmtree(self.work, ignore_errors=True)

    # ---- the run ----

    def run(self, seconds):
        try:
            self.soak.run(seconds, self.tick)
        finally:
            self.problems += self.soak.told()
            self.clock = self.latencies()
            for kind, found in self.clock.kinds.items():
                if found["longest"] > self.bound:
                    self.problems.append(f"{kind} took {found['longest']:.1f} s")

    def latencies(self):
        """As far as they are known."""
        clock = gauge.Clock()
        for path in (self.work / "tmp").glob("*/latency"):
            clock.merge(path)
        return clock

    def steps(self):
        return sum(self.soak.steps)


class Calm(House):
    """Nothing is broken but clients; each minute all stand still for a moment, and what the daemon
    holds then is compared."""

    def __init__(self, rowfs, seed, every=60.0):
        super().__init__(rowfs, seed)
        self.every = every
        self.open()
        s = self.soak
        s.house = self
        soak_cast.prepare(s)
        s.cast = soak_cast.Cast(s)
        s.cast.all()
        for _ in range(4):
            s.add(ledger.ledger)
        s.add(others.rotator)
        s.add(others.trasher)
        if os.geteuid() == 0:
            s.add(others.leaver)
        self.idle = self.held()  # nobody is there
        self.next = time.monotonic() + every

    def held(self):
        """None: only root can see that."""
        with contextlib.suppress(PermissionError):
            return gauge.held(self.mount.proc.pid, self.mount.store)

    def tick(self):
        if time.monotonic() < self.next:
            return
        with self.soak.quiet(8):
            time.sleep(0.5)
            self.plateaus += filter(None, [self.held()])
        self.next = time.monotonic() + self.every


class Rough(House):
    """The daemon is killed and started, its disk is full, its calls fail …"""

    rough = True

    def __init__(self, rowfs, seed, workers=10, every=3.0):
        super().__init__(rowfs, seed)
        if os.geteuid() == 0:
            self.disk = self.work / "disk"
            self.disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", str(self.disk)],
                           check=True)
        self.open()
        self.mount.umount()
        self.control = calls.Control(self.work / "control")
        self.mount.env = self.control.env(BUILD, self.mount.store, base=ENV)
        self.mount.allow(EXPECTED)
        self.start()
        self.soak.two_paths = False
        for _ in range(workers):
            self.soak.add(ledger.ledger)
        self.soak.add(others.rotator)
        self.soak.add(others.cutter)
        self.conductor = Conductor(self, seed, every)
        self.tick = self.conductor.tick

    def start(self):
        self.mount.start()
        self.mount._watchdog.cancel()
        self.soak.mounted()
        self.soak.faults.port.value = self.mount.port
        self.soak.faults.starts.value += 1
