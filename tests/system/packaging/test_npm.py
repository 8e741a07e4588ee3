# SPDX-License-Identifier: MIT
"""The npm package: built, installed from its tarball, and run as its users would."""

import json
import os
import re
import signal
import subprocess

import pytest

from conftest import BUILD, ENV, TOP
from tools import need

PROGRAM = BUILD / "src/daemon/rowfs"


@pytest.fixture
def project(work):
    """A program's directory with the package in it."""
    need("npm", "npx")
    d = work / "project"
    d.mkdir()
    env = {**ENV, "HOME": str(work), "npm_config_cache": str(work / "cache"),
           "npm_config_offline": "true", "npm_config_update_notifier": "false"}

    def run(*argv, check=True, **more):
        return subprocess.run(argv, cwd=d, env={**env, **more}, check=check, capture_output=True,
                              text=True, timeout=120)
    made = run(TOP / "examples/packaging/npm/build", PROGRAM, d)
    (d / "package.json").write_text("{}")
    run("npm", "install", "--no-audit", "--no-fund", made.stdout.strip())
    run.dir, run.env = d, env
    return run


def test_npx_starts_the_emulator_and_other_commands(project):
    assert project("npx", "rowfs", "--version").stdout.startswith("rowfs ")
    done = project("npx", "rowfs", "dev", "--memory", "--free-ports", "--exec",
                   "echo $AZURE_STORAGE_CONNECTION_STRING; exit 7", check=False)
    assert done.returncode == 7 and "TableEndpoint=http://127.0.0.1:" in done.stdout
    done = project("npx", "rowfs", "dev", "--memory", "--free-ports", "--exec", "kill -9 $$", check=False)
    assert done.returncode == 137


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_emulator_and_keeps_the_data(project, number):
    with subprocess.Popen(["node_modules/.bin/rowfs"], cwd=project.dir, env=project.env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as npx:
        said = ""
        for line in npx.stdout:
            said += line
            if line.startswith("running; "):
                break
        if number == signal.SIGINT:
            os.killpg(npx.pid, number)  # as a terminal does
        else:
            npx.send_signal(number)
        said += npx.stdout.read()
        assert npx.wait(timeout=120) == 0, said
    assert re.search(r"AccountName=devstoreaccount1;.*TableEndpoint=http://127.0.0.1:\d+/", said)
    assert f"the data is in {project.dir}/rowfs-dev/store.rowfs" in said


def test_it_says_where_it_cannot_run(project):
    shim = project.dir / "node_modules/rowfs/rowfs.js"
    package = shim.parent / "package.json"
    text = json.loads(package.read_text())
    assert text["os"] == ["linux"]
    package.write_text(json.dumps({**text, "cpu": ["vax"]}))
    done = project("npx", "rowfs", check=False)
    assert done.returncode == 1 and "runs on Linux (vax) only" in done.stderr
    done = project("node", "-e", "Object.defineProperty(process, 'platform', { value: 'darwin' });"
                   f"require({json.dumps(str(shim))})", check=False)
    assert done.returncode == 1 and "not on darwin" in done.stderr and "WSL 2" in done.stderr
