#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A Ceph cluster for tests: one monitor, one OSD that keeps all in memory, on the loopback interface.

usage: cluster.py PROGRAM [ARGUMENT...]

Starts the cluster in a directory of its own (some 3 s, 100 MiB), runs the program with CEPH_CONF set
to it, ROWFS_POOL to the name of a pool and ROWFS_OSD to the OSD's process, and ends it.  Its daemons die with this process, however
it ends.  Without Ceph's packages it prints a skipped TAP test and why.  Keys are off, so nothing but
the loopback interface may reach it.
"""

import ctypes
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

POOL = "rowfs"
PROGRAMS = ("ceph-mon", "ceph-osd", "ceph", "monmaptool")
CONF = """\
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{port}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = false
run dir = {dir}
admin socket = {dir}/$name.$pid.asok
log file = {dir}/$name.log
log to stderr = false
pid file =
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon warn on pool no redundancy = false
mon data avail crit = 0
ms initial backoff = 0.1
ms max backoff = 1
[mon]
mon data = {dir}/mon.a
paxos propose interval = 0.1
[osd]
osd data = {dir}/osd.0
osd objectstore = memstore
memstore device bytes = 1073741824
osd memory target = 939524096
osd op num shards = 2
osd op num threads per shard = 1
osd max pg log entries = 500
osd fast shutdown = true
[client]
admin socket =
log file =
rados osd op timeout = 2
"""


def why_not():
    """Why no cluster can be started here; None if one can."""
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    return f"Ceph is not installed: no {', '.join(missing)}" if missing else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    """with Cluster() as c: its programs get c.env."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="rowfs-ceph-", dir="/tmp")
        self.conf = os.path.join(self.dir, "ceph.conf")
        self.env = {"CEPH_CONF": self.conf, "ROWFS_POOL": POOL}
        self.daemons = []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, *command):
        with open(os.path.join(self.dir, "setup.log"), "ab") as log:
            subprocess.run(
                command,
                env={**os.environ, **self.env},
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=60,
            )

    def daemon(self, *command):
        with open(os.path.join(self.dir, "daemons.log"), "ab") as log:
            self.daemons.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=die_with_parent,
                )
            )

    def start(self):
        fsid, osd, port = str(uuid.uuid4()), str(uuid.uuid4()), free_port()
        with open(self.conf, "w") as f:
            f.write(CONF.format(fsid=fsid, port=port, dir=self.dir))
        for name in ("mon.a", "osd.0"):
            os.mkdir(os.path.join(self.dir, name))
        monmap = os.path.join(self.dir, "monmap")
        address = f"[v2:127.0.0.1:{port}]"
        self.run(
            "monmaptool", "--create", "--fsid", fsid, "--addv", "a", address,
            "--set-min-mon-release", "16", monmap,
        )  # fmt: skip
        self.run("ceph-mon", "-c", self.conf, "--mkfs", "-i", "a", "--monmap", monmap)
        self.daemon("ceph-mon", "-c", self.conf, "-f", "-i", "a")
        self.run(
            "ceph-osd", "-c", self.conf, "-i", "0", "--mkfs", "--no-mon-config",
            "--monmap", monmap, "--osd-uuid", osd,
        )  # fmt: skip
        ask = ("ceph", "--connect-timeout", "30")
        self.run(*ask, "osd", "new", osd, "0")
        self.run(*ask, "osd", "crush", "add", "0", "1.0", "root=default", "host=h0")
        self.daemon("ceph-osd", "-c", self.conf, "-f", "-i", "0")
        self.env["ROWFS_OSD"] = str(self.daemons[-1].pid)
        self.run(*ask, "osd", "pool", "create", POOL, "8", "8")
        self.run(*ask, "osd", "pool", "application", "enable", POOL, "rowfs")
        self.wait_until_it_works()

    def wait_until_it_works(self):
        until = time.monotonic() + 60
        while True:
            try:
                self.run("timeout", "5", "rados", "-p", POOL, "put", "ready", "/dev/null")
                return
            except subprocess.CalledProcessError:
                if time.monotonic() > until:
                    raise

    def reads(self):
        """Requests for data that the OSD has had."""
        [socket_path] = glob.glob(os.path.join(self.dir, "osd.0.*.asok"))
        told = subprocess.run(("ceph", "--admin-daemon", socket_path, "perf", "dump", "osd"),
                              env={**os.environ, **self.env}, check=True, capture_output=True)
        return json.loads(told.stdout)["osd"]["op_r"]

    def stop(self):
        for d in reversed(self.daemons):
            d.kill()
            d.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def main():
    reason = why_not()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Cluster() as c:
        return subprocess.run(
            sys.argv[1:], env={**os.environ, **c.env}, check=False, preexec_fn=die_with_parent
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
