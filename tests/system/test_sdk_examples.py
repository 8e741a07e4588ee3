# SPDX-License-Identifier: MIT
"""The examples of the client libraries, as a user would run them, with the build at hand."""

import os

import pytest

import sdk
from tools import need, run_example

SAID = """\
What is urgent:
  home/1: Buy tea
  work/1: Write the report
  work/3: Learn 日本語
A change of what was read before: 412 UpdateConditionNotSatisfied
A row that exists already: 409 EntityAlreadyExists
4 tasks in all
"""
FILES = """\
home/1.json
work/1.json
work/2.json
work/3.json
"""


@pytest.mark.parametrize("name", ["sdk-javascript", "sdk-azure-storage", "sdk-azure-2012",
                                  "sdk-python", "curl"])
def test_example(name, work):
    if name == "sdk-javascript":
        sdk.need_node("@azure/data-tables")
    elif name == "sdk-azure-storage":
        sdk.need_node("azure-storage")
    elif name == "sdk-azure-2012":
        sdk.need_node("azure")
    elif name == "sdk-python":
        pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    else:
        need("curl", "openssl", "jq")
    out = run_example(work, name)
    assert SAID in out
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        assert FILES in out
        assert '"Text":"Buy tea"' in out and '"Done":true' in out
    else:
        assert "No /dev/fuse here" in out
