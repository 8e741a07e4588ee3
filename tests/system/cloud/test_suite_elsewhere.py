# SPDX-License-Identifier: MIT
"""Tests of the mount of a store, run once more on the mount of an account elsewhere.

ROWFS_MOUNT_URL makes conftest.py's `mnt` such a mount.  LEFT_OUT names the tests that cannot hold there, and why.
"""

import subprocess
import sys

import pytest

from conftest import ENV, TOP
from test_client import PROGRAM

pytestmark = [pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl"), pytest.mark.slow]
LEFT_OUT = {
    "semantics/test_semantics_rows.py": {
        "test_W11_its_partition_renamed_while_it_is_written": "a partition cannot be renamed: EXDEV",
        "test_W13_the_number_and_the_lock_stay_with_the_first_document": "the mount has no locks",
    },
}


@pytest.fixture
def account(rowfs, serve, store):
    """A second rowfs with the account that the tests use: its URL and connection string."""
    rowfs("account", "add", store, "acct1")
    server = serve(store, "--rest=127.0.0.1:0")
    said = rowfs("account", "keys", store, "acct1").stdout.splitlines()
    return server.url("acct1"), next(line.split()[1] for line in said if line.startswith("connect"))


@pytest.mark.parametrize("file", LEFT_OUT)
def test_tests_of_a_store_hold_on_an_account_elsewhere(account, file):
    url, secret = account
    words = [f"--deselect={file}::{name}" for name in LEFT_OUT[file]]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *words, file],
                          cwd=TOP / "tests/system", text=True, capture_output=True, timeout=600,
                          env={**ENV, "ROWFS_MOUNT_URL": url, "AZURE_STORAGE_CONNECTION_STRING": secret})
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert "passed" in last and "skipped" not in last, done.stdout
    assert f"{len(LEFT_OUT[file])} deselected" in last
