# SPDX-License-Identifier: MIT
"""The second part of retry, with azure-data-tables: which tries again by itself."""

import os

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient


def client(**retries):
    return TableClient.from_connection_string(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"], "Orders", **retries)


def put(orders, partition, n):
    orders.upsert_entity({"PartitionKey": partition, "RowKey": f"{n:02}", "Item": "tea"})


refused = []
giving_up = client(retry_total=0)
for n in range(30):
    try:
        put(giving_up, "sdk-given-up", n)
    except HttpResponseError as e:
        refused.append(f"{e.status_code} {e.error_code.value}")
print(f"{len(refused)} refused: {', '.join(sorted(set(refused)))}")
assert set(refused) == {"503 ServerBusy"}, refused

# Three answers of 503 are all that it bears by default.  The delays are none at first, then
# factor * 2, * 4 … seconds, up to the maximum.
patient = client(retry_total=10, retry_status=10, retry_backoff_factor=0.05, retry_backoff_max=1)
for n in range(15):
    put(patient, "sdk", n)
print("15 written")
