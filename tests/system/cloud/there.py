# SPDX-License-Identifier: MIT
"""A service elsewhere and its account as a mount, for the tests of such mounts."""

import re
import urllib.request

import pytest
from rest_client import ACCOUNT, Client
from tools import sanitized

from azurite import Azurite
from conftest import BUILD, ENV, Url
from fault_proxy import FaultProxy
from test_transfer import Elsewhere

COUNT = re.compile(r'^rowfs_operation_duration_seconds_count\{[^}]*front_end="rest"[^}]*\} (\d+)$', re.M)


class There:
    """A service elsewhere, and its account as a mount: there.path is the account's directory."""

    def __init__(self, mount, account, work):
        self.make, self.account, self.work = mount, account, work
        self.client = Client(account.server.port)

    def mounted(self, *options, cache="cache", **env):
        cache = self.work / cache
        cache.mkdir(exist_ok=True)
        self.mount = self.make(Url(self.account.url), f"connection-string={self.account.secret}", *options,
                               env={**ENV, "XDG_CACHE_HOME": str(cache), **env})
        self.path = self.mount.path / ACCOUNT
        return self.path

    def requests(self):
        """How many requests a second rowfs has answered."""
        admin = self.account.server.endpoints[1]
        with urllib.request.urlopen(f"{admin}/metrics", timeout=60) as answer:
            return sum(int(n) for n in COUNT.findall(answer.read().decode()))

    def cost(self, act):
        """How many requests this costs."""
        before = self.requests()
        act()
        return self.requests() - before


def clock(seconds):
    """The environment of a mount whose clock is so far ahead."""
    # AddressSanitizer wants to be the first library.
    return {"LD_PRELOAD": str(BUILD / "tests/system/cloud/clock_ahead.so"), "CLOCK_AHEAD": str(seconds),
            "ASAN_OPTIONS": ENV["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}


@pytest.fixture
def there_with(rowfs, serve, mount, rest_store, work):
    """A factory: there_with("fault=busy ...") -> There of a second rowfs."""
    def make(faults=None):
        server = serve(rest_store, "--rest=127.0.0.1:0", "--admin=127.0.0.1:0",
                       *([f"--faults={faults}"] if faults else []))
        return There(mount, Elsewhere(rowfs, server, work), work)
    return make


@pytest.fixture
def second(there_with):
    """A second rowfs: it counts requests, and ends when it is told to."""
    return there_with()


@pytest.fixture
def proxied(second):  # noqa: F811
    """A proxy before the service, which the mounts of `second` use."""
    proxy = FaultProxy(lambda: second.account.server.port)
    secret = second.account.secret
    secret.write_text(secret.read_text().replace(str(second.client.port), str(proxy.server_port)))
    second.account.url = second.account.url.replace(str(second.client.port), str(proxy.server_port))
    yield proxy
    proxy.go_on.set()
    proxy.stop()


@pytest.fixture(scope="session")
def azurite():
    """One process for the tests of this worker, since node is slow to start."""
    server = Azurite()
    yield server
    server.stop()


@pytest.fixture(params=["rowfs", "azurite"])
def there(request, rowfs, mount, work):
    """A second rowfs, and Azurite."""
    if request.param == "rowfs":
        yield request.getfixturevalue("second")
        return
    if sanitized():
        pytest.skip("the program does the same with a second rowfs")
    server = request.getfixturevalue("azurite")
    yield There(mount, Elsewhere(rowfs, server, work), work)
    server.clear()
