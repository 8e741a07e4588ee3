# SPDX-License-Identifier: MIT
"""tests/fault/kill in its short form: the daemon is killed under writers of every kind."""

import os
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, TOP, detach, need_fuse, need_to_cut
from tools import sanitized

POINTS = int(os.environ.get("ROWFS_KILL_POINTS", "25" if sanitized() else "50"))
SECONDS = 600 + 5 * POINTS


@pytest.mark.slow
def test_S4_killed_at_every_point(work):
    need_fuse()
    need_to_cut()
    with subprocess.Popen(
            [sys.executable, TOP / "tests/fault/kill", f"--points={POINTS}", "--seed=1",
             f"--build={BUILD}", f"--dir={work}"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True) as p:
        try:
            out, _ = p.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGTERM)
            out = ended(p, work)
    assert p.returncode == 0, out


def ended(p, work):
    """It cleans up; unless it hangs itself."""
    try:
        return p.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        for mnt in work.glob("rowfs-kill-*/mnt"):
            detach(mnt)
        return p.communicate(timeout=60)[0]
