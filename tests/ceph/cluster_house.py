# SPDX-License-Identifier: MIT
"""A cluster, the daemons on one store in it, and clients that work while something is broken."""

import collections
import pathlib
import shutil
import tempfile
import threading
import time
import traceback

import history
import rest_client
from cluster import POOL, Cluster
from conftest import ENV, Mount, Rowfs, Serve, add_accounts, find_program
from history_clients import TABLE, MountClient, RestClient

STORE = f"rados:{POOL}/kills"
PAUSE = 0.02  # seconds between a client's operations: a history stays short enough to be searched
LIFE = 1e6  # seconds: no watchdog ends a daemon


class Violation(Exception):
    pass


class House:
    """with House(...) as h: two REST daemons and `mounts` mounts serve an empty store."""

    def __init__(self, at, osds, store, mounts, recovery):
        """recovery: seconds until every client has an answer again."""
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-kills-", dir=at))
        self.cluster = Cluster(3, osds, store, timeout=None, at=at)
        self.rowfs = Rowfs(find_program("src/daemon/rowfs"))
        self.servers, self.mounts, self.wanted, self.recovery = [None, None], [], mounts, recovery

    def __enter__(self):
        self.cluster.__enter__()
        try:
            ENV.update(self.cluster.env)
            self.rowfs("init", STORE)
            add_accounts(self.rowfs, STORE)
            for number in range(len(self.servers)):
                self.serve(number)
            for number in range(self.wanted):
                self.mount(number)
            self.client().create_table(TABLE)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in (*self.mounts, *filter(None, self.servers)):
            daemon.force()
        self.cluster.stop()
        shutil.rmtree(self.work, ignore_errors=True)

    def serve(self, number):
        log = self.work / f"serve{number}.log"
        server = Serve(self.rowfs, STORE, [], log, timeout=LIFE)
        server.allow("")
        self.servers[number] = server.start()

    def mount(self, number):
        at = self.work / f"mnt{number}"
        at.mkdir()
        mount = Mount(self.rowfs, STORE, at, [], self.work / f"mount{number}.log")
        mount.timeout = LIFE
        mount.allow("")
        self.mounts.append(mount)
        mount.start()

    def client(self, number=0):
        return rest_client.Client(self.servers[number].port)

    def end(self):
        """A clean end of the daemons, then what `rowfs check` says."""
        for mount in self.mounts:
            mount.umount()
        for server in self.servers:
            server.stop()
        done = self.rowfs("check", STORE, check=False, timeout=600)
        if done.returncode != 0:
            raise Violation(f"rowfs check: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip().splitlines()[-1]


class Round:
    """Clients of one partition, while one thing is broken and until each has an answer again."""

    def __init__(self, house, number, seed):
        self.house, self.pk = house, f"p{number}"
        self.ended, self.healed, self.failed = threading.Event(), None, []
        self.again = {}  # client: the moment of its first answer after the end of the fault
        servers = house.servers
        rest = [RestClient(f"rest{i}", f"{seed} {number} {i}", lambda i=i: servers[i % 2], self.pk)
                for i in range(4)]
        parts = [m.path / rest_client.ACCOUNT / TABLE / self.pk for m in house.mounts]
        self.clients = rest + [MountClient(f"mount{i}", f"{seed} {number} {i}", part)
                               for i, part in enumerate(parts)]

    def prepare(self):
        """A partition that a mount makes stays when its last row goes."""
        for client in self.clients:
            if isinstance(client, MountClient):
                client.part.mkdir(exist_ok=True)

    def work(self, client):
        try:
            while not self.ended.is_set():
                before = len(client.done)
                client.step()
                new = client.done[before:]
                if self.healed and any(o.begin > self.healed and o.end < float("inf") for o in new):
                    self.again.setdefault(client, time.monotonic())
                time.sleep(PAUSE)
        except BaseException as e:  # an assertion, and a failure that pytest would report
            at = traceback.extract_tb(e.__traceback__)[-1]
            self.failed.append(f"{client.name}: {e!r} at {at.name}, line {at.lineno}")

    def play(self, fault, before, seconds):
        self.prepare()
        threads = [threading.Thread(target=self.work, args=(c,), daemon=True) for c in self.clients]
        for t in threads:
            t.start()
        try:
            time.sleep(before)
            with fault():
                time.sleep(seconds)
            self.healed = time.monotonic()
            self.wait_for_answers()
        finally:
            self.ended.set()
            until = time.monotonic() + self.house.recovery
            for t in threads:
                t.join(max(0, until - time.monotonic()))
        if any(t.is_alive() for t in threads):
            raise Violation(f"{self.pk}: a client got no answer for {self.house.recovery} s")
        if self.failed:
            raise Violation(f"{self.pk}: {'; '.join(self.failed)}")

    def wait_for_answers(self):
        while len(self.again) < len(self.clients) and not self.failed:
            if time.monotonic() > self.healed + self.house.recovery:
                silent = [c.name for c in self.clients if c not in self.again]
                raise Violation(f"{self.pk}: no answer {self.house.recovery} s after the fault: {silent}")
            time.sleep(0.01)

    # ---- what they saw ----

    def operations(self):
        return [o for c in self.clients for o in c.done]

    def look(self):
        """Each daemon lists the partition."""
        for number in range(len(self.house.servers)):
            with self.house.client(number) as client:
                looked = RestClient(f"look{number}", 0, lambda n=number: self.house.servers[n], self.pk)
                looked.http = client
                looked.do("list", None)
                if not looked.done:
                    raise Violation(f"{self.pk}: {looked.told}")
                self.clients.append(looked)

    def check(self):
        done = self.operations()
        wrong = history.first_violation(done)
        if wrong:
            raise Violation(f"{self.pk}: nothing explains {wrong}")
        wrong = history.first_earlier_version(done, rest_client.moment)
        if wrong:
            raise Violation(f"{self.pk}: an earlier version: {wrong} {wrong.etag}")

    def told(self):
        """Of each front end: what it answered in place of a result, and how often."""
        told = {"REST": collections.Counter(), "mount": collections.Counter()}
        for c in self.clients:
            told["mount" if isinstance(c, MountClient) else "REST"].update(c.told)
        return told

    def longest(self):
        return max(c.longest for c in self.clients)

    def recovery(self):
        return max(self.again.values()) - self.healed
