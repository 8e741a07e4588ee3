# SPDX-License-Identifier: MIT
"""Programs are started by a process apart. The one with the writers cannot: what it has open in
the mount would be closed in each child, which waits for the daemon, and the next daemon would be
such a child."""

import multiprocessing.managers
import os
import signal
import subprocess


class Spawner:
    """Lives in the process apart."""

    def __init__(self):
        self.started = {}

    def run(self, args, env, timeout):
        try:
            done = subprocess.run(args, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return None, "", ""
        return done.returncode, done.stdout, done.stderr

    def start(self, args, env, log):
        with open(log, "ab") as f:
            p = subprocess.Popen(args, env=env, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                 start_new_session=True)
        self.started[p.pid] = p
        return p.pid

    def wait(self, pid, timeout):
        """None: it is alive."""
        try:
            return self.started[pid].wait(timeout)
        except subprocess.TimeoutExpired:
            return None


class Manager(multiprocessing.managers.BaseManager):
    def __enter__(self):
        # A signal to all of us is for the other one, which then cleans up with our help.
        self.start(signal.signal, (signal.SIGTERM, lambda *_: None))
        return super().__enter__()


Manager.register("Spawner", Spawner)


class Process:
    """As far as subprocess.Popen is needed."""

    def __init__(self, spawner, args, env, log):
        self.spawner, self.returncode = spawner, None
        self.pid = spawner.start(args, env, log)

    def poll(self):
        return self.wait(0)

    def wait(self, timeout):
        if self.returncode is None:
            self.returncode = self.spawner.wait(self.pid, timeout)
        return self.returncode

    def send(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send(signal.SIGKILL)

    def terminate(self):
        self.send(signal.SIGTERM)
