# SPDX-License-Identifier: MIT
"""What the image of examples/packaging/container starts.  tests/packaging/container builds the image."""

import subprocess

import pytest

from conftest import BUILD, ENV, TOP

PROGRAM = BUILD / "src/daemon/rowfs"


@pytest.fixture
def start(work):
    """Runs the image's script, with a rowfs that prints how it is told to serve."""
    program = work / "bin/rowfs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ ! -e "{work}/no-$1" ] || exit 3\n'
                       f'[ "$1" = serve ] || exec {PROGRAM} "$@"\necho "$@"\n')
    program.chmod(0o755)
    env = {**ENV, "PATH": f"{program.parent}:{ENV['PATH']}", "ROWFS_STORE": str(work / "s.rowfs")}

    def run(*argv, **more):
        return subprocess.run([TOP / "examples/packaging/container/start", *argv], env={**env, **more},
                              capture_output=True, text=True, timeout=60)
    return run


def accounts(store):
    return subprocess.run([PROGRAM, "account", "list", store], env=ENV, check=True,
                          capture_output=True, text=True).stdout.split()


def test_the_first_start_makes_a_store_and_the_next_serves_it(start, work):
    store = work / "s.rowfs"
    first = start(ROWFS_ACCOUNT="myblogs")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"serve {store} --rest=0.0.0.0:10002")
    assert accounts(store) == ["myblogs"] and f"rowfs account keys {store} myblogs" in first.stderr
    next_one = start(ROWFS_ACCOUNT="other")
    assert (next_one.returncode, next_one.stdout, next_one.stderr) == (0, first.stdout, "")
    assert accounts(store) == ["myblogs"]


def test_a_start_that_fails_leaves_no_store_without_an_account(start, work):
    (work / "no-account").touch()
    assert start().returncode == 3
    assert not (work / "s.rowfs").exists()
    (work / "no-account").unlink()
    assert start().returncode == 0
    assert accounts(work / "s.rowfs") == ["rowfs"]


def test_arguments_are_a_command_of_rowfs(start, work):
    assert start("version").stdout.startswith("rowfs ")
    assert not (work / "s.rowfs").exists()
