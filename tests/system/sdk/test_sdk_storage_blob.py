# SPDX-License-Identifier: MIT
"""@azure/storage-blob, today's library for JavaScript, against the blobs' REST socket."""

import pytest

import sdk

SERVE_OPTIONS = ["--rest=127.0.0.1:0", "--rest=blob=127.0.0.1:0"]
SCRIPTS = [f"storage-blob/{name}.mjs" for name in (
    "blobs", "blocks", "copies", "leases", "pages", "sas", "snapshots")]


@pytest.fixture(scope="module")
def results(rowfs, module_server):
    node = sdk.need_node("@azure/storage-blob")
    return sdk.Results(node, sdk.node_environment(rowfs, module_server))


@pytest.mark.parametrize("script, name", sdk.checks(*SCRIPTS))
def test_storage_blob(results, script, name):
    results.want(script, name)
