# SPDX-License-Identifier: MIT
"""@azure/data-tables, today's library for JavaScript, against the REST socket."""

import pytest

import sdk

SCRIPTS = [f"data-tables/{name}.mjs" for name in
           ("tables", "entities", "types", "batches", "queries", "sas", "service")]


@pytest.fixture(scope="module")
def results(rowfs, module_server):
    node = sdk.need_node("@azure/data-tables")
    return sdk.Results(node, sdk.node_environment(rowfs, module_server))


@pytest.mark.parametrize("script, name", sdk.checks(*SCRIPTS))
def test_data_tables(results, script, name):
    results.want(script, name)
