#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A Ceph cluster for tests on the loopback interface.  By default it has one monitor, and one OSD that
keeps all in memory; others have several monitors, and three OSDs that keep three copies on disk.

usage: cluster.py PROGRAM [ARGUMENT...]

Starts the cluster in a directory of its own (some 3 s, 100 MiB), runs the program with CEPH_CONF set
to it, ROWFS_POOL to the name of a pool and ROWFS_OSD to the OSD's process, and ends it.  Its daemons die with this process, however
it ends.  Without Ceph's packages it prints a skipped TAP test and why.  Keys are off, so nothing but
the loopback interface may reach it.
"""

import contextlib
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
mon host = {hosts}
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
osd pool default size = {copies}
osd pool default min size = {least}
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon warn on pool no redundancy = false
mon data avail crit = 0
{several}ms initial backoff = 0.1
ms max backoff = 1
[mon]
mon data = {dir}/mon.$id
paxos propose interval = 0.1
[osd]
osd data = {dir}/osd.$id
osd objectstore = {store}
memstore device bytes = 1073741824
bluestore block size = 2147483648
bluestore block create = true
bluestore cache autotune = false
bluestore cache size = 67108864
osd memory target = 939524096
osd op num shards = 2
osd op num threads per shard = 1
osd max pg log entries = 500
osd fast shutdown = true
[client]
admin socket =
log file =
{client}"""
# Of several monitors or OSDs: the others notice soon that one is gone.
SEVERAL = """\
mon osd adjust heartbeat grace = false
mon osd min down reporters = 1
mon osd down out interval = 3600
mon lease = 2
mon election timeout = 2
osd heartbeat grace = 6
osd heartbeat interval = 1
"""


def why_not():
    """Why no cluster can be started here; None if one can."""
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    return f"Ceph is not installed: no {', '.join(missing)}" if missing else None


def free_ports(n):
    with contextlib.ExitStack() as open_ones:
        sockets = [open_ones.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    """with Cluster() as c: its programs get c.env.  Its daemons have names: mon.a, osd.0.

    store: memstore, whose OSDs forget all when they are killed, or bluestore.  timeout: seconds that
    a client waits for a request; None: as long as the client chooses.  at: where its files are."""

    def __init__(self, monitors=1, osds=1, store="memstore", timeout=2, at="/tmp"):
        self.monitors = [f"mon.{'abcde'[i]}" for i in range(monitors)]
        self.osds = [f"osd.{i}" for i in range(osds)]
        self.store, self.timeout = store, timeout
        self.dir = tempfile.mkdtemp(prefix="rowfs-ceph-", dir=at)
        self.conf = os.path.join(self.dir, "ceph.conf")
        self.env = {"CEPH_CONF": self.conf, "ROWFS_POOL": POOL}
        self.daemons = {}

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

    def daemon(self, name):
        """Starts it."""
        kind, number = name.split(".")
        with open(os.path.join(self.dir, "daemons.log"), "ab") as log:
            self.daemons[name] = subprocess.Popen(
                (f"ceph-{kind}", "-c", self.conf, "-f", "-i", number),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )

    def kill(self, name):
        self.daemons[name].kill()
        self.daemons[name].wait()

    def signal(self, name, number):
        self.daemons[name].send_signal(number)

    def ask(self, *command):
        """Of the monitors."""
        self.run("ceph", "--connect-timeout", "30", *command)

    def is_full(self):
        """Whether the pool is, in the map that clients get."""
        told = subprocess.run(("ceph", "osd", "pool", "ls", "detail"), env={**os.environ, **self.env},
                              check=True, capture_output=True, text=True, timeout=60)
        return ",full" in told.stdout

    def start(self):
        fsid, ports = str(uuid.uuid4()), free_ports(len(self.monitors))
        addresses = [f"[v2:127.0.0.1:{port}]" for port in ports]
        with open(self.conf, "w") as f:
            f.write(CONF.format(
                fsid=fsid, hosts=",".join(addresses), dir=self.dir, store=self.store,
                copies=min(3, len(self.osds)), least=2 if len(self.osds) > 2 else 1,
                several=SEVERAL if len(self.monitors) + len(self.osds) > 2 else "",
                client=f"rados osd op timeout = {self.timeout}\n" if self.timeout else "",
            ))  # fmt: skip
        for name in (*self.monitors, *self.osds):
            os.mkdir(os.path.join(self.dir, name))
        self.start_monitors(fsid, addresses)
        for name in self.osds:
            self.start_osd(name)
        self.env["ROWFS_OSD"] = str(self.daemons["osd.0"].pid)
        self.ask("osd", "pool", "create", POOL, "8", "8")
        self.ask("osd", "pool", "application", "enable", POOL, "rowfs")
        self.wait_until_it_works()

    def monmap(self):
        return os.path.join(self.dir, "monmap")

    def start_monitors(self, fsid, addresses):
        ids = [name.split(".")[1] for name in self.monitors]
        self.run(
            "monmaptool", "--create", "--fsid", fsid, "--set-min-mon-release", "16",
            *(a for pair in zip(ids, addresses) for a in ("--addv", *pair)), self.monmap(),
        )  # fmt: skip
        for name, i in zip(self.monitors, ids):
            self.run("ceph-mon", "-c", self.conf, "--mkfs", "-i", i, "--monmap", self.monmap())
            self.daemon(name)

    def start_osd(self, name):
        number, osd = name.split(".")[1], str(uuid.uuid4())
        self.run(
            "ceph-osd", "-c", self.conf, "-i", number, "--mkfs", "--no-mon-config",
            "--monmap", self.monmap(), "--osd-uuid", osd,
        )  # fmt: skip
        self.ask("osd", "new", osd, number)
        self.ask("osd", "crush", "add", number, "1.0", "root=default", f"host=h{number}")
        self.daemon(name)

    def wait_until_it_works(self):
        """With several OSDs each placement group must: it takes many objects to write to all."""
        one, all_groups = ("put", "ready", "/dev/null"), ("bench", "1", "write", "-b", "4096")
        until = time.monotonic() + 60
        while True:
            try:
                self.run("timeout", "20", "rados", "-p", POOL, *(all_groups if self.osds[1:] else one))
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
        for d in reversed(self.daemons.values()):
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
