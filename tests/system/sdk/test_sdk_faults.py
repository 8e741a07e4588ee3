# SPDX-License-Identifier: MIT
"""The libraries' own retries while requests fail on order (H10)."""

import json

import pytest

import sdk

RULES = ["fault=busy table=Busy op=insert count=2", "fault=lost table=Lost op=insert count=1",
         "fault=closed table=Closed op=insert count=1",
         "fault=timeout wait=0.1 table=Timeout op=insert count=2",
         "fault=deleting table=Deleted op=create count=2",
         "fault=busy table=Seen op=insert count=1",
         "fault=timeout wait=0.1 table=Seen op=insert count=1",
         "fault=lost table=Seen op=insert count=1",
         "fault=busy queue=busy op=put count=2", "fault=lost queue=lost op=put count=1",
         "fault=timeout wait=0.1 queue=timeout op=put count=2"]
SERVE_OPTIONS = ["--rest=127.0.0.1:0", "--rest=queue=127.0.0.1:0", "--faults=" + ";".join(RULES)]
SCRIPTS = ["data-tables/faults.mjs", "storage-queue/faults.mjs"]


@pytest.fixture(scope="module")
def results(rowfs, module_server):
    node = sdk.need_node("@azure/storage-queue")
    sdk.need_node("@azure/data-tables")
    return sdk.Results(node, sdk.node_environment(rowfs, module_server))


@pytest.mark.parametrize("script, name", sdk.checks(*SCRIPTS))
def test_H10_retries(results, script, name):
    results.want(script, name)


def test_H10_each_rule_was_used_up(results, module_server, rowfs):
    for script in SCRIPTS:
        if script not in results.done:
            results.run(script)
    said = rowfs("stat", "--json", module_server.store).stdout
    assert json.loads(said)["fault_rules"] == 0, rowfs("stat", module_server.store).stdout
