# SPDX-License-Identifier: MIT
"""Stores in a Ceph cluster.  A file of tests imports both fixtures, and has a cluster of its own."""

import itertools
import pathlib
import sys

import pytest

from conftest import ENV

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "ceph"))
import cluster as ceph  # noqa: E402

NUMBERS = itertools.count(1)


class Place(str):
    """The name of a store, where fixtures want a path."""

    def exists(self):
        return True


@pytest.fixture(scope="module")
def cluster():
    reason = ceph.why_not()
    if reason:
        pytest.skip(reason)
    with ceph.Cluster() as c:
        ENV.update(c.env)
        yield c
    for name in c.env:
        del ENV[name]


@pytest.fixture
def store(cluster, rowfs):
    """An empty store in the cluster."""
    place = Place(f"rados:{ceph.POOL}/test{next(NUMBERS)}")
    done = rowfs("init", place, check=False)
    if "without librados" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return place
