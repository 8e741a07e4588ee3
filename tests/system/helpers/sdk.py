# SPDX-License-Identifier: MIT
"""What the tests with the real client libraries share.

A script in tests/sdk runs as one process (node takes its time to start) and says on a line
of its own, as JSON, how each of its named checks went.  The names are read from the source
when the tests are collected, so that each check is a test of its own here.
"""

import itertools
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import ENV, TOP

SDK = TOP / "tests" / "sdk"
MODULES = SDK / "node_modules"
_numbers = itertools.count(1)


def need_node(package):
    """node's command line, able to load this package, or the test is skipped."""
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        pytest.skip("needs node, which is not installed")
    if not (MODULES / package / "package.json").is_file():
        pytest.skip(f"needs the npm package {package}: npm ci --prefix tests/sdk")
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    # What node 18, Debian 12's, has only under this flag the library takes for granted.
    return [node, "--experimental-global-webcrypto"] if version.startswith("v18.") else [node]


def new_account(rowfs, server, name=None):
    """Adds an account to the store that is being served; the connection string that the
    command prints."""
    name = name or f"sdk{next(_numbers)}"
    said = rowfs("account", "add", server.store, name).stdout
    connection = re.search(r"^connect +(.*)$", said, re.M)[1]
    assert "AccountKey=" in connection and server.url(name) in connection, said
    return connection


def parts(connection):
    """The connection string as a dictionary."""
    return dict(p.split("=", 1) for p in connection.split(";") if p)


def checks(*scripts):
    """(script, name of the check), as the sources have them, for pytest.mark.parametrize."""
    found = []
    for script in scripts:
        source = (SDK / script).read_text("utf-8")
        names = re.findall(r'^await check\(\s*"([^"]+)"', source, re.M)
        assert names and len(names) == source.count("check("), f"{script}: names not understood"
        assert len(set(names)) == len(names), f"{script} has two checks of one name"
        found += [pytest.param(script, n, id=f"{script.split('/')[-1].split('.')[0]}: {n}")
                  for n in names]
    return found


class Results:
    """results.want(script, name): runs the script if it did not run yet, and fails if the
    check of this name failed or never ran."""

    def __init__(self, command, environment):
        self.command, self.environment = command, environment
        self.done, self.stderr = {}, {}

    def run(self, script):
        env = {**ENV, **self.environment(script)}
        try:
            ran = subprocess.run([*self.command, str(SDK / script)], capture_output=True, env=env,
                                 stdin=subprocess.DEVNULL, cwd=SDK, timeout=200)
            out, err, end = ran.stdout, ran.stderr, f"exit status {ran.returncode}"
        except subprocess.TimeoutExpired as e:
            out, err, end = e.stdout or b"", e.stderr or b"", "ended after 200 s"
        self.stderr[script] = f"{end}\n{err.decode('utf-8', 'replace')[-4000:]}"
        self.done[script] = {}
        for line in out.decode("utf-8").splitlines():
            if line.startswith('{"check":'):
                result = json.loads(line)
                self.done[script][result["check"]] = result

    def want(self, script, name):
        if script not in self.done:
            self.run(script)
        result = self.done[script].get(name)
        if result is None:
            pytest.fail(f"{script} did not get that far: {self.stderr[script]}", pytrace=False)
        if not result["ok"]:
            pytest.fail(result["why"], pytrace=False)


def node_environment(rowfs, server):
    """For Results: each script gets an account of its own."""
    def environment(script):
        return {"ROWFS_CONNECTION": new_account(rowfs, server), "NO_PROXY": "*", "no_proxy": "*",
                "NODE_OPTIONS": os.environ.get("NODE_OPTIONS", "")}
    return environment
