# SPDX-License-Identifier: MIT
"""A mount whose blobs are served over REST too."""


import pytest
from blob_client import blobs_of
from rest_client import ACCOUNT


@pytest.fixture
def rest(mount, rest_store):
    """A client of a mounted store with a container; .dir is its directory."""
    m = mount(rest_store, "rest=127.0.0.1:0", "rest=blob=127.0.0.1:0")
    client = blobs_of(m, rest_store)
    client.mnt, client.root = m, m / ACCOUNT / ".blob"
    client.dir = client.root / "photos"
    assert client.ask("PUT", "/photos", {"restype": "container"}).status == 201
    return client


def put(rest, *names, body=b"x"):
    for name in names:
        assert rest.put(f"/photos/{name}", body).status == 201, name
