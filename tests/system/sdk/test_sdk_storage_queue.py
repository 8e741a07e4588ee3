# SPDX-License-Identifier: MIT
"""@azure/storage-queue, today's library for JavaScript, against the queues' REST socket."""

import pytest

import sdk

SERVE_OPTIONS = ["--rest=127.0.0.1:0", "--rest=queue=127.0.0.1:0"]
SCRIPTS = [f"storage-queue/{name}.mjs" for name in ("queues", "messages", "sas")]


@pytest.fixture(scope="module")
def results(rowfs, module_server):
    node = sdk.need_node("@azure/storage-queue")
    return sdk.Results(node, sdk.node_environment(rowfs, module_server))


@pytest.mark.parametrize("script, name", sdk.checks(*SCRIPTS))
def test_storage_queue(results, script, name):
    results.want(script, name)
