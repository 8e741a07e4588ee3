# SPDX-License-Identifier: MIT
"""The conformance suite of stores (tests/unit/store_contract.c) over the engine of accounts elsewhere."""

import subprocess

import pytest

from conftest import BUILD, ENV
from test_client import PROGRAM
from there import azurite, second, there, there_with  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")


def test_the_engine_keeps_the_contract_of_stores(there, work):  # noqa: F811
    connection = there.account.secret.read_text().strip()
    done = subprocess.run([str(BUILD / "tests/unit/test_cloudstore"), str(work)], text=True, capture_output=True,
                          env={**ENV, "AZURE_STORAGE_CONNECTION_STRING": connection}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\nok ") > 120
