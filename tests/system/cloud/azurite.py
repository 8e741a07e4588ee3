# SPDX-License-Identifier: MIT
"""Azurite, Microsoft's emulator, as a second service: its ETags, errors and empty pages are not rowfs's."""

import pathlib
import shutil
import subprocess

import pytest
from rest_client import ACCOUNT, Client, ok

from conftest import ENV, TOP

MAIN = TOP / "tests/azurite/node_modules/azurite/dist/src/table/main.js"


def listening_port(pid):
    """The TCP port that this process listens on; Azurite does not tell which one it got."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(fd.readlink()))
        except OSError:
            continue
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        if state == "0A" and f"socket:[{inode}]" in inodes:
            return int(local.split(":")[1], 16)
    raise AssertionError("Azurite listens on no port")


class Azurite:
    """The Table service in memory.  Implements the server interface of test_transfer.Elsewhere."""

    def __init__(self):
        node = shutil.which("node") or shutil.which("nodejs")
        if not node or not MAIN.is_file():
            pytest.skip("needs Azurite: npm ci --prefix tests/azurite")
        self.proc = subprocess.Popen([node, MAIN, "--silent", "--disableTelemetry", "--inMemoryPersistence",
                                      "--tablePort", "0", "--tableKeepAliveTimeout", "600"],
                                     env=ENV, text=True, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            said = []
            while not said or "successfully started" not in said[-1]:
                said.append(self.proc.stdout.readline())
                assert said[-1], f"Azurite ended: {said}"
            self.port = listening_port(self.proc.pid)
        except BaseException:
            self.stop()
            raise

    def url(self, account):
        return f"http://127.0.0.1:{self.port}/{account}"

    def clear(self):
        """Removes every table."""
        with Client(self.port, account=ACCOUNT) as client:
            for table in ok(client.tables()).rows:
                ok(client.delete_table(table["TableName"]))

    def stop(self):
        self.proc.kill()
        self.proc.wait()
