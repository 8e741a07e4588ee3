# SPDX-License-Identifier: MIT
"""azure-storage 2.10, the older library for JavaScript that many programs still use: bare-LF
batches, MERGE, the full SharedKey signature; and its clients of queues and blobs."""

import pytest

import sdk

SERVE_OPTIONS = ["--rest=127.0.0.1:0", "--rest=queue=127.0.0.1:0", "--rest=blob=127.0.0.1:0"]
SCRIPTS = [f"azure-storage/{name}.mjs" for name in ("tables", "queues", "blobs", "blob_types")]


@pytest.fixture(scope="module")
def results(rowfs, module_server):
    node = sdk.need_node("azure-storage")
    return sdk.Results([*node, "--no-deprecation"], sdk.node_environment(rowfs, module_server))


@pytest.mark.parametrize("script, name", sdk.checks(*SCRIPTS))
def test_azure_storage(results, script, name):
    results.want(script, name)
