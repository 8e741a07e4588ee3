# SPDX-License-Identifier: MIT
"""azure 0.7 of 2012, the library of that age that still runs: ATOM at 2011-08-18, with the account
in the path (the emulator's) and, as it is everywhere else, in the Authorization header alone."""

import pytest

import rest_client
import sdk

STYLES = {"path": "0", "host": "1"}


@pytest.fixture(scope="module")
def results(rowfs, module_server):
    node = [*sdk.need_node("azure"), "--no-deprecation"]
    fresh = sdk.node_environment(rowfs, module_server)

    def environment(style):
        def make(script):
            variables = {**fresh(script), "HOSTSTYLE": STYLES[style]}
            if style == "path":
                url = module_server.url(rest_client.ACCOUNT)
                variables["ROWFS_CONNECTION"] = (
                    f"AccountName={rest_client.ACCOUNT};AccountKey={rest_client.KEY};"
                    f"TableEndpoint={url}")
            return variables
        return make

    return {style: sdk.Results(node, environment(style)) for style in STYLES}


@pytest.mark.parametrize("script, name", sdk.checks("azure/all.mjs"))
@pytest.mark.parametrize("style", STYLES)
def test_azure(results, style, script, name):
    results[style].want(script, name)
