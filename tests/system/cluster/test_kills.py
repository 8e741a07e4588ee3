# SPDX-License-Identifier: MIT
"""The short form of tests/ceph/kills: daemons and monitors are killed, stopped and continued, an OSD
is stopped, and the pool is full, under clients of two REST daemons (docs/reliability-tests.md)."""

import json
import subprocess
import sys
import threading

import pytest

import clusters
from conftest import ENV, TOP
from tools import sanitized

KINDS = {"a daemon killed", "a daemon stopped", "a monitor killed", "a monitor stopped",
         "two of three monitors killed", "an OSD stopped", "the pool full"}


@pytest.mark.slow
def test_faults_of_a_cluster_lose_nothing_and_leave_no_half_change_set(rowfs, work):
    if sanitized():
        pytest.skip("a sanitizer makes the daemons too slow for three monitors beside other tests")
    reason = clusters.ceph.why_not()
    if reason:
        pytest.skip(reason)
    if "without librados" in rowfs("init", "rados:none/store", check=False).stderr:
        pytest.skip("built without librados")
    run = subprocess.Popen([sys.executable, str(TOP / "tests/ceph/kills"), "--short", "--json",
                            f"--faults={len(KINDS)}", "--mounts=0"], env=ENV, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    watch = threading.Timer(200, run.terminate)  # then it ends its daemons
    watch.start()
    try:
        out, err = run.communicate()
    finally:
        watch.cancel()
    assert run.returncode == 0, (out, err)
    result = json.loads(out)
    assert set(result["faults"]) == KINDS
    assert (result["kills"], result["stops"]) == (4, 3)
    assert "clean" in result["check"] and "violation" not in result
