# SPDX-License-Identifier: MIT
"""The tests' own mounts: what makes mount namespaces elsewhere on the machine gets no copies of them."""

import os
import subprocess

import pytest

from namespaces import mounts
from tools import need


@pytest.fixture(autouse=True)
def root():
    need("unshare", "nsenter")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs a mount namespace")
    if os.geteuid() != 0:
        pytest.skip("needs root, as whom the tests have a mount namespace of their own")


def test_who_started_the_tests_does_not_see_their_mounts(mount, store):
    m = mount(store)
    assert list(mounts()) == [str(m.path)]
    assert str(m.path) not in mounts(os.getppid())


def test_a_namespace_that_is_made_elsewhere_keeps_no_mount_alive(mount, store):
    m = mount(store)
    command = ["nsenter", "-t", str(os.getppid()), "-m",
               "unshare", "-m", "--propagation=private", "sh", "-c", "echo made; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"made\n"
            assert str(m.path) not in mounts(other.pid)
            m.umount()
        finally:
            other.stdin.close()
