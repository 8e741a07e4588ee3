# SPDX-License-Identifier: MIT
"""What is broken in a house, one thing at a time: each fault begins, lasts, ends; then both front ends
answer again, by themselves, within a bound."""

import contextlib
import errno
import os
import random
import signal
import subprocess
import time

import calls
from conftest import detach
from ledger import TABLE, TROUBLE
from rest_client import ok
from tools import put


def ended(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


class Conductor:
    """house: see there.  every: seconds from the end of a fault to the next one."""

    def __init__(self, house, seed, every):
        self.house, self.every = house, every
        self.rng = random.Random(f"{seed}/faults")
        self.kinds = [self.kill, self.kill, self.restart, self.stop, self.read_only,
                      self.store_calls, self.store_calls, self.memory]
        if house.disk:
            self.kinds += [self.full, self.full]
        self.next = time.monotonic() + every
        self.struck = 0  # calls
        self.recovered = {}  # kind: seconds, of each

    def tick(self):
        if time.monotonic() >= self.next:
            self.one(self.rng.choice(self.kinds))
            self.next = time.monotonic() + self.every * self.rng.uniform(0.5, 1.5)

    def one(self, fault):
        faults = self.house.soak.faults
        faults.begin()
        try:
            name, healing = fault()
            self._answers(name, healing)
        finally:
            faults.end()

    def _answers(self, name, healing):
        """Until then the fault lasts for the workers."""
        house, limit = self.house, self.house.recovery
        while True:
            try:
                put(house.home / "probe" / "row.json", '{"V":1}')
                with house.client.clone(port=house.mount.port) as c:
                    ok(c.upsert(TABLE, "probe", "rest", {"V": 1}), 204)
                break
            except (*TROUBLE, AssertionError) as e:
                if time.monotonic() - healing > limit:
                    house.soak.problem("Z1", f"{name}: not well after {limit} s: {e!r}")
                    break
                time.sleep(0.005)
        self.recovered.setdefault(name, []).append(time.monotonic() - healing)

    # ---- the daemon ----

    def kill(self):
        """-9; the next one finds a dead mount, or none."""
        m, start, name = self.house.mount, time.monotonic(), "killed and started"
        m.proc.send_signal(signal.SIGKILL)
        if not ended(m.proc, 1):
            # A client that it tells something holds what it waits for: both stay until somebody
            # unmounts, or mounts again.
            name = "killed, cut off by rowfs umount, and started"
            done = self.house.rowfs("umount", m.path, check=False)
            if done.returncode != 0 or not ended(m.proc, 30):
                self.house.soak.problem("Z1", f"what was killed is not cut off: {done}")
                m.force()
            start = time.monotonic()
        if self.rng.random() < 0.3:
            done = self.house.rowfs("check", m.store, check=False)
            if done.returncode != 0:
                self.house.soak.problem("Z9", f"check after a kill: {done.stdout}{done.stderr}")
            start = time.monotonic()
        if self.rng.random() < 0.5:
            detach(m.path)
        self.house.start()
        return name, start

    def restart(self):
        m, start = self.house.mount, time.monotonic()
        m.sigterm()
        self.house.start()
        return "ended by SIGTERM and started", start

    def stop(self):
        proc = self.house.mount.proc
        proc.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.1, 2))
        proc.send_signal(signal.SIGCONT)
        return "stood still", time.monotonic()

    def read_only(self):
        """Where somebody writes it is refused."""
        self._remount("ro")
        time.sleep(self.rng.uniform(0.1, 1))
        start = time.monotonic()
        while not self._remount("rw") and time.monotonic() - start < self.house.recovery:
            time.sleep(0.01)
        return "read-only", start

    def _remount(self, option):
        m = self.house.mount
        return self.house.rowfs("mount", m.store, m.path, "-o", f"remount,{option}",
                                check=False).returncode == 0

    # ---- what is below it ----

    def full(self):
        left = self.rng.choice((0, 100 << 10, 600 << 10))
        ballast = self.house.disk / "ballast"
        with open(ballast, "wb") as f, contextlib.suppress(OSError):
            st = os.fstatvfs(f.fileno())
            os.posix_fallocate(f.fileno(), 0, max(1, st.f_bfree * st.f_frsize - left))
        time.sleep(self.rng.uniform(0.2, 2))
        ballast.unlink()
        return "disk full", time.monotonic()

    def store_calls(self):
        """Some calls on the store's files fail, or all of some kinds for a while."""
        control, rng = self.house.control, self.rng
        mask = rng.choice((calls.WRITE, calls.SYNC, calls.WRITE | calls.SYNC, calls.READ,
                           calls.FILES & ~calls.LOOK & ~calls.LOCK))
        what = rng.choice(("fail", "fail", "fail", "short"))
        # No read fails for lack of room; who is told so takes it that nothing was changed.
        error = rng.choice((errno.EIO, errno.EINTR, *[errno.ENOSPC][:not mask & calls.READ]))
        first = rng.randint(1, 200)
        last = first + rng.choice((0, 0, 5, 100))
        if what == "short":
            mask = rng.choice((calls.READ, calls.WRITE))
        control.strike(what, mask, first, last, error)
        time.sleep(rng.uniform(0.1, 0.5))
        struck = control.struck
        self.struck += struck
        control.stop()
        if struck and mask & calls.SYNC:
            # A sync that failed is not asked for again (the system forgets what it could not
            # write): what is to be durable is refused until the store is opened anew.
            return "syncs failed, then restarted", self.restart()[1]
        return "store calls failed", time.monotonic()

    def memory(self):
        """Some allocations of the daemon fail."""
        first = self.rng.randint(1, 20000)
        self.house.control.strike("fail", calls.MEMORY, first,
                                  first + self.rng.choice((0, 0, 5, 50)), errno.ENOMEM)
        time.sleep(self.rng.uniform(0.1, 0.5))
        self.struck += self.house.control.struck
        self.house.control.stop()
        return "allocations failed", time.monotonic()
