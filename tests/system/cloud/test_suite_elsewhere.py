# SPDX-License-Identifier: MIT
"""Tests of the mount of a store, run once more on the mount of an account elsewhere.

ROWFS_MOUNT_URL makes conftest.py's `mnt` such a mount.  LEFT_OUT and LONGER name the tests that cannot hold there, and why.
"""

import os
import re
import subprocess
import sys

import pytest

from conftest import ENV, TOP
from test_client import PROGRAM

pytestmark = [pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl"), pytest.mark.slow]
EXDEV = "EXDEV: partitions and tables are not renamed"
LOCKS = "the mount has no locks"
BACKUP = "EXDEV: a row does not become an ordinary file"
CHECK = ".batch-check is EOPNOTSUPP"
LEFT_OUT = {
    "semantics/test_semantics_rows.py": {
        "test_W11_its_partition_renamed_while_it_is_written": EXDEV,
        "test_W13_the_number_and_the_lock_stay_with_the_first_document": LOCKS,
    },
    "control/test_batch.py": {
        "test_B2_a_renamed_directory_is_followed": EXDEV,
        "test_B4_what_a_killed_writer_leaves_is_decided_too": "a kill ends requests: the set is applied or kept (test_mount_changes.py)",
        "test_B5_a_fresh_open_reads_the_last_result_of_its_directory": CHECK,
        "test_B6_a_check_judges_all_and_keeps_nothing": CHECK,
    },
}
LONGER = {  # run with ROWFS_ALL_ELSEWHERE=1
    "control/test_query_dirs.py": {},
    "control/test_query_streams.py": {},
    "semantics/test_semantics_tree.py": {
        "test_T1_control_names_are_those_of_their_directories_only": "the service has no feed: no .changes",
        "test_N8_table_names_keep_their_case": EXDEV,
        "test_N9_account_names": "the mount has one account",
    },
    "tools/test_tools.py": {
        "test_cp_both_ways": BACKUP,
        "test_edit_keeps_the_mode[sed -i.bak]": BACKUP,
        "test_edit_keeps_the_mode[perl -pi.orig]": BACKUP,
        "test_flock_between_processes": LOCKS,
    },
}
ALL = LEFT_OUT | LONGER
FILES = ALL if os.environ.get("ROWFS_ALL_ELSEWHERE") else LEFT_OUT


@pytest.fixture
def account(rowfs, serve, store):
    """A second rowfs with the account that the tests use: its URL and connection string."""
    rowfs("account", "add", store, "acct1")
    server = serve(store, "--rest=127.0.0.1:0")
    said = rowfs("account", "keys", store, "acct1").stdout.splitlines()
    return server.url("acct1"), next(line.split()[1] for line in said if line.startswith("connect"))


@pytest.mark.parametrize("file", FILES)
def test_tests_of_a_store_hold_on_an_account_elsewhere(account, file):
    url, secret = account
    words = [f"--deselect={file}::{name}" for name in ALL[file]]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *words, file],
                          cwd=TOP / "tests/system", text=True, capture_output=True, timeout=600,
                          env={**ENV, "ROWFS_MOUNT_URL": url, "AZURE_STORAGE_CONNECTION_STRING": secret})
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert "passed" in last and "skipped" not in last, done.stdout
    deselected = int((re.findall(r"(\d+) deselected", last) or "0")[0])
    assert deselected >= len(ALL[file])
