# SPDX-License-Identifier: MIT
"""The examples of the client libraries, as a user would run them, with the build at hand."""

import os
import signal
import subprocess

import pytest

import sdk
from conftest import BUILD, ENV, TOP
from tools import need

SAID = """\
What is urgent:
  home/1: Buy tea
  work/1: Write the report
  work/3: Learn 日本語
A change of what was read before: 412 UpdateConditionNotSatisfied
A row that exists already: 409 EntityAlreadyExists
4 tasks in all
"""
FILES = """\
home/1.json
work/1.json
work/2.json
work/3.json
"""


@pytest.mark.parametrize("name", ["sdk-javascript", "sdk-azure-storage", "sdk-python", "curl"])
def test_example(name, work):
    need("meson")
    if name == "sdk-javascript":
        sdk.need_node("@azure/data-tables")
    elif name == "sdk-azure-storage":
        sdk.need_node("azure-storage")
    elif name == "sdk-python":
        pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    else:
        need("curl", "openssl", "jq")
    env = {**ENV, "ROWFS_BUILD": str(BUILD), "TMPDIR": str(work), "NO_PROXY": "*", "no_proxy": "*"}
    running = subprocess.Popen(
        [str(TOP / "examples" / name / "run"), "--no-install"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd="/", start_new_session=True)
    try:
        out = running.communicate(timeout=120)[0].decode("utf-8")
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGTERM)
        pytest.fail(f"still running after 120 s: {running.communicate(timeout=60)[0]!r}")
    assert running.returncode == 0, out
    assert SAID in out
    if os.path.exists("/dev/fuse") and os.access("/dev/fuse", os.R_OK | os.W_OK):
        assert FILES in out
        assert '"Text":"Buy tea"' in out and '"Done":true' in out
    else:
        assert "No /dev/fuse here" in out
    assert os.listdir(work) == [], "left behind"
