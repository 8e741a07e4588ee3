# SPDX-License-Identifier: MIT
"""What breaks in a cluster and its daemons: each fault begins, lasts for a while, and is healed."""

import contextlib
import signal
import time

FULL, EMPTY = "0.000001", "0.95"  # of the space


class Faults:
    """house: the cluster and the daemons; rng decides which of them a fault hits."""

    def __init__(self, house, rng):
        self.house, self.cluster, self.rng = house, house.cluster, rng
        self.kills = self.stops = 0

    def kinds(self):
        """Name: (context that breaks something, the shortest and longest time until it is healed)."""
        monitors = {
            "a monitor killed": (self.monitors_killed(1), 0, 6),
            "a monitor stopped": (self.stopped(self.cluster.monitors), 0.5, 6),
            "two of three monitors killed": (self.monitors_killed(2), 0, 4),
        }
        osds = {
            "an OSD killed": (self.osds_killed(1), 0, 8),
            "two of three OSDs killed": (self.osds_killed(2), 0, 4),
            "an OSD killed while another one recovers": (self.osds_in_turn, 0, 2),
            "a daemon and an OSD killed": (self.daemon_and_osd, 0, 3),
        }
        return {
            "a daemon killed": (self.daemon_killed, 0, 1),
            "a daemon stopped": (self.daemon_stopped, 0.2, 5),
            "an OSD stopped": (self.stopped(self.cluster.osds), 0.5, 15),
            "the pool full": (self.full, 1, 4),
            **monitors,
            **(osds if self.cluster.store == "bluestore" else {}),
        }

    def some(self, names, n=1):
        return self.rng.sample(names, n)

    def kill(self, names):
        for name in names:
            self.cluster.kill(name)
        self.kills += len(names)

    def revive(self, names):
        for name in names:
            self.cluster.daemon(name)

    # ---- faults ----

    @contextlib.contextmanager
    def daemon_killed(self):
        number = self.rng.randrange(len(self.house.servers))
        self.house.servers[number].kill9()
        self.kills += 1
        yield
        self.house.serve(number)

    @contextlib.contextmanager
    def daemon_stopped(self):
        process = self.rng.choice([*self.house.servers, *self.house.mounts]).proc
        process.send_signal(signal.SIGSTOP)
        self.stops += 1
        yield
        process.send_signal(signal.SIGCONT)

    def stopped(self, names):
        @contextlib.contextmanager
        def fault():
            [name] = self.some(names)
            self.cluster.signal(name, signal.SIGSTOP)
            self.stops += 1
            yield
            self.cluster.signal(name, signal.SIGCONT)
        return fault

    def killed(self, names, n):
        @contextlib.contextmanager
        def fault():
            chosen = self.some(names, n)
            self.kill(chosen)
            yield
            self.revive(chosen)
        return fault

    def monitors_killed(self, n):
        return self.killed(self.cluster.monitors, n)

    def osds_killed(self, n):
        return self.killed(self.cluster.osds, n)

    @contextlib.contextmanager
    def osds_in_turn(self):
        """The second one is killed right after the first one is back."""
        first, second = self.some(self.cluster.osds, 2)
        self.kill([first])
        time.sleep(self.rng.uniform(0.5, 2))
        self.revive([first])
        time.sleep(self.rng.uniform(0, 2))
        self.kill([second])
        yield
        self.revive([second])

    @contextlib.contextmanager
    def daemon_and_osd(self):
        with self.osds_killed(1)(), self.daemon_killed():
            yield

    def set_full(self, full):
        """The OSDs tell the monitors whether they are full, and these tell the clients."""
        for kind in ("nearfull", "backfillfull", "full"):  # a later one is at least the one before
            self.cluster.ask("osd", f"set-{kind}-ratio", FULL if full else EMPTY)
        until = time.monotonic() + 60
        while self.cluster.is_full() != full:
            if time.monotonic() > until:
                raise TimeoutError(f"the cluster does not say within 60 s that the pool is{'' if full else ' not'} full")
            time.sleep(0.1)

    @contextlib.contextmanager
    def full(self):
        self.set_full(True)
        yield
        self.set_full(False)
