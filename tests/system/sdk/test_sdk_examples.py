# SPDX-License-Identifier: MIT
"""The examples of the client libraries, as a user would run them, with the build at hand."""

import os
import shutil
import subprocess

import pytest

import sdk
from conftest import TOP, need_fuse
from tools import need, run_example

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


@pytest.mark.parametrize("name", ["sdk-javascript", "sdk-azure-storage", "sdk-azure-2012",
                                  "sdk-python", "curl"])
def test_example(name, work):
    if name == "sdk-javascript":
        sdk.need_node("@azure/data-tables")
    elif name == "sdk-azure-storage":
        sdk.need_node("azure-storage")
    elif name == "sdk-azure-2012":
        sdk.need_node("azure")
    elif name == "sdk-python":
        pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    else:
        need("curl", "openssl", "jq")
    out = run_example(work, name)
    assert SAID in out
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        assert FILES in out
        assert '"Text":"Buy tea"' in out and '"Done":true' in out
    else:
        assert "No /dev/fuse here" in out


def test_what_is_missing_is_said_first(work):
    """Not after minutes of building, and not as an error of the shell."""
    done = subprocess.run([TOP / "examples/curl/table-request", "GET", "Tasks"],
                          env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert done.returncode == 2 and "rowfs account add" in done.stderr
    need_fuse()
    need("meson", "ninja", "pkg-config", "python3", "fusermount3", "getfattr", "apt-cache", "dpkg")
    few = work / "bin"
    few.mkdir()
    for name in ("bash", "dirname", "id", "stat", "meson", "ninja", "pkg-config", "python3",
                 "fusermount3", "getfattr", "dpkg", "head"):
        (few / name).symlink_to(shutil.which(name))
    (few / "apt-cache").write_text("#!/bin/sh\n")
    (few / "apt-cache").chmod(0o755)
    start = [shutil.which("bash"), TOP / "examples/quickstart", "--no-install"]
    for gone, said in (("jq rsync", "not found: jq rsync. "), ("", "apt-get update")):
        done = subprocess.run(start, env={"PATH": str(few), "TMPDIR": str(work)},
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and said in done.stderr and not done.stdout, done
        for name in gone.split():
            (few / name).symlink_to("/bin/true")
    assert os.listdir(work) == ["bin"]
