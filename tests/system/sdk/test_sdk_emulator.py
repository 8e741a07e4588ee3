# SPDX-License-Identifier: MIT
"""UseDevelopmentStorage=true: what programs say to reach the emulator reaches rowfs, where the
emulator's account was added and its ports are served."""

import subprocess

import pytest

import sdk
from conftest import ENV
from tools import emulator_ports

# test_the_default_endpoints_are_the_emulators shows that they are the default.
ENDPOINTS = ("127.0.0.1:10002", "queue=127.0.0.1:10001", "blob=127.0.0.1:10000")
# Published by the emulator's documentation; not a secret.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture
def ports():
    with emulator_ports():
        yield


@pytest.fixture
def emulator(ports, rowfs, serve, store):
    said = rowfs("account", "add", store, "devstoreaccount1", f"--key={KEY}").stdout
    for name, port in (("Blob", 10000), ("Queue", 10001), ("Table", 10002)):
        assert f"{name}Endpoint=http://127.0.0.1:{port}/devstoreaccount1;" in said
    return serve(store, *(f"--rest={e}" for e in ENDPOINTS))


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


def test_emulator_storage_queue(emulator):
    assert run_node(sdk.need_node("@azure/storage-queue"), """
        import { QueueServiceClient } from "@azure/storage-queue";
        const s = QueueServiceClient.fromConnectionString("UseDevelopmentStorage=true");
        const q = s.getQueueClient("emulated");
        await q.create();
        await q.sendMessage("hello");
        console.log((await q.receiveMessages()).receivedMessageItems[0].messageText);
    """) == "hello\n"


def test_emulator_azure_storage_queue(emulator):
    assert run_node([*sdk.need_node("azure-storage"), "--no-deprecation"], """
        import azure from "azure-storage";
        const s = azure.createQueueService("UseDevelopmentStorage=true");
        s.createQueue("emulated", (error, result, response) =>
            console.log(error, response.statusCode));
    """) == "null 201\n"


def test_emulator_python(emulator, monkeypatch):
    tables = pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")
    monkeypatch.setenv("NO_PROXY", "*")
    service = tables.TableServiceClient.from_connection_string
    with service("UseDevelopmentStorage=true", retry_total=0) as s:
        t = s.create_table("Emulated")
        t.create_entity({"PartitionKey": "p", "RowKey": "r", "N": 5})
        assert t.get_entity("p", "r")["N"] == 5
