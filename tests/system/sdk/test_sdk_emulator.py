# SPDX-License-Identifier: MIT
"""UseDevelopmentStorage=true: what programs say to reach the emulator reaches rowfs, where the
emulator's account was added and its port is served."""

import socket
import subprocess

import pytest

import sdk
from conftest import ENV
from tools import emulator_port

PORT = 10002
# Published by the emulator's documentation; not a secret.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture
def port():
    with emulator_port():
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", PORT))
            except OSError as e:
                pytest.skip(f"needs port {PORT}, the emulator's: {e.strerror}")
        yield


@pytest.fixture
def emulator(port, rowfs, serve, store):
    said = rowfs("account", "add", store, "devstoreaccount1", f"--key={KEY}").stdout
    assert f"TableEndpoint=http://127.0.0.1:{PORT}/devstoreaccount1" in said
    server = serve(store, f"--rest=127.0.0.1:{PORT}")
    assert server.port == PORT
    return server


def run_node(node, script):
    done = subprocess.run([*node, "--input-type=module", "-e", script], cwd=sdk.SDK,
                          capture_output=True, text=True, timeout=60, env={**ENV, "NO_PROXY": "*"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_emulator_data_tables(emulator):
    assert run_node(sdk.need_node("@azure/data-tables"), """
        import { TableClient } from "@azure/data-tables";
        const t = TableClient.fromConnectionString("UseDevelopmentStorage=true", "Emulated");
        await t.createTable();
        await t.createEntity({ partitionKey: "p", rowKey: "r", N: 5 });
        console.log((await t.getEntity("p", "r")).N);
    """) == "5\n"


def test_emulator_azure_storage(emulator):
    assert run_node([*sdk.need_node("azure-storage"), "--no-deprecation"], """
        import azure from "azure-storage";
        const s = azure.createTableService("UseDevelopmentStorage=true");
        s.createTable("Emulated", (error, result, response) =>
            console.log(error, response.statusCode));
    """) == "null 204\n"


def test_emulator_azure_2012(emulator):
    assert run_node([*sdk.need_node("azure"), "--no-deprecation"], """
        import azure from "azure";
        const s = azure.createTableService("UseDevelopmentStorage=true");
        s.createTable("Emulated", (error, result, response) =>
            console.log(error, result.TableName, response.statusCode));
    """) == "null Emulated 201\n"


def test_emulator_python(emulator, monkeypatch):
    tables = pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    monkeypatch.setenv("NO_PROXY", "*")
    service = tables.TableServiceClient.from_connection_string
    with service("UseDevelopmentStorage=true", retry_total=0) as s:
        t = s.create_table("Emulated")
        t.create_entity({"PartitionKey": "p", "RowKey": "r", "N": 5})
        assert t.get_entity("p", "r")["N"] == 5
