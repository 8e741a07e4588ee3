# SPDX-License-Identifier: MIT
"""librados and libcurl are loaded when something needs them: without them all the rest works, and
what needs one names its package (docs/install.md)."""

import conftest
import pytest
from rest_client import ACCOUNT, KEY

LIBRARIES = {"librados.so.2": "librados2", "libcurl.so.4": "libcurl4"}


@pytest.fixture
def without(work, monkeypatch):
    """An environment in which the libraries are files that cannot be loaded."""
    (work / "broken").mkdir()
    for name in LIBRARIES:
        (work / "broken" / name).write_bytes(b"")
    monkeypatch.setitem(conftest.ENV, "LD_LIBRARY_PATH", str(work / "broken"))


def test_a_store_of_this_machine_needs_neither(rowfs, work, without):
    store = work / "store"
    rowfs("init", store)
    rowfs("account", "add", store, ACCOUNT)
    rowfs("put", store, f"{ACCOUNT}/Posts/p/r.json", input='{"N":1}')
    assert rowfs("get", store, f"{ACCOUNT}/Posts/p/r.json").stdout == '{"N":1}'


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_needs_a_library_names_its_package(rowfs, work, without, library):
    secret = work / "connection"
    secret.write_text(f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://127.0.0.1:1/{ACCOUNT}")
    secret.chmod(0o600)
    words = {"librados.so.2": ["stat", "rados:pool/name"],
             "libcurl.so.4": ["ls", f"http://127.0.0.1:1/{ACCOUNT}", f"--connection-string={secret}"]}
    done = rowfs(*words[library], check=False)
    if "built without" in done.stderr:
        pytest.skip("needs a build with it")
    assert done.returncode == 1
    assert f"{library}: file too short; install the package {LIBRARIES[library]}" in done.stderr


def test_a_server_without_a_cluster_does_not_load_them(rest_store, serve):
    server = serve(rest_store, "--rest=127.0.0.1:0")
    with open(f"/proc/{server.proc.pid}/maps") as maps:
        mapped = maps.read()
    assert "libsqlite3" in mapped and "librados" not in mapped and "libcurl" not in mapped
