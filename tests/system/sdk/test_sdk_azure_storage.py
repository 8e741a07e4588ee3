# SPDX-License-Identifier: MIT
"""azure-storage 2.10, the older library for JavaScript that many programs still use: bare-LF
batches, MERGE, the full SharedKey signature."""

import pytest

import sdk


@pytest.fixture(scope="module")
def results(rowfs, module_server):
    node = sdk.need_node("azure-storage")
    return sdk.Results([*node, "--no-deprecation"], sdk.node_environment(rowfs, module_server))


@pytest.mark.parametrize("script, name", sdk.checks("azure-storage/all.mjs"))
def test_azure_storage(results, script, name):
    results.want(script, name)
