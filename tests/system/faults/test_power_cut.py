# SPDX-License-Identifier: MIT
"""Power is cut at the calls of a whole daemon: the short form of tests/fault/power_cut_daemon."""

import subprocess

from conftest import BUILD, TOP, need_fuse


def test_what_was_acknowledged_survives_a_cut_of_power():
    need_fuse()
    with subprocess.Popen(
            [TOP / "tests/fault/power_cut_daemon", "--build", BUILD, "--sets", "6", "--images", "150"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
        try:
            out = p.communicate(timeout=200)[0]
        except subprocess.TimeoutExpired:
            p.terminate()  # and it takes its daemon and its mount along
            out = "not done after 200 s\n" + p.communicate()[0]
    assert p.returncode == 0, out
