# SPDX-License-Identifier: MIT
"""A build without libcurl says what is missing, and its other commands work."""

import subprocess

import pytest
from rest_client import ACCOUNT, KEY

from conftest import BUILD, ENV, Rowfs


@pytest.fixture
def rowfs():
    return Rowfs(BUILD / "tests/system/cloud/rowfs_without_libcurl")


@pytest.mark.parametrize("words", [["ls"], ["get", f"{ACCOUNT}/Posts/p/r.json"], ["put", f"{ACCOUNT}/Posts/p/r.json"],
                                   ["merge", f"{ACCOUNT}/Posts/p/r.json"], ["rm", f"{ACCOUNT}/Posts/p/r.json"],
                                   ["mv", f"{ACCOUNT}/Posts/p/r.json", f"{ACCOUNT}/Posts/p/s.json"],
                                   ["query", f"{ACCOUNT}/Posts"], ["export", f"{ACCOUNT}/Posts"],
                                   ["import", f"{ACCOUNT}/Posts"], ["copy", f"{ACCOUNT}/Posts", "store", "mine/Posts"]])
def test_a_command_with_a_url_names_what_the_build_lacks(rowfs, store, work, words):
    secret = work / "connection"
    url = f"http://127.0.0.1:10002/{ACCOUNT}"
    secret.write_text(f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={url}")
    secret.chmod(0o600)
    words = [store if w == "store" else w for w in words]
    done = rowfs(words[0], url, *words[1:], f"--connection-string={secret}", input="{}", check=False)
    assert done.returncode == 1 and "built without libcurl" in done.stderr, done.stderr


def test_a_mount_of_a_url_names_what_the_build_lacks(rowfs, work):
    url = f"http://127.0.0.1:10002/{ACCOUNT}"
    env = {**ENV, "AZURE_STORAGE_CONNECTION_STRING": f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={url}",
           "XDG_CACHE_HOME": str(work)}
    done = subprocess.run([rowfs.program, "mount", url, work], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "built without libcurl" in done.stderr, done.stderr


def test_copies_between_stores_need_no_libcurl(rowfs, store):
    rowfs("account", "add", store, "mine")
    rowfs("put", store, "mine/Posts/p/r.json", input='{"N":1}')
    rowfs("copy", store, "mine/Posts", store, "mine/Copy")
    assert rowfs("get", store, "mine/Copy/p/r.json").stdout == '{"N":1}\n'
