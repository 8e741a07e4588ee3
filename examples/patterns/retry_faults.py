# SPDX-License-Identifier: MIT
"""The third part of retry: a count that stays right while requests fail on order.

An answer that did not come says nothing: the change may be done.  So each increment inserts a row
with an id of its own, in the same change set.  If it is there already, an earlier try was done.
"""

import os
import random
import threading
import time
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableClient, UpdateMode

CLIENTS, EACH = 2, 3


def tries():
    pause = 0.05
    for _ in range(30):
        yield
        time.sleep(pause * random.uniform(0.8, 1.2))
        pause = min(2 * pause, 0.5)
    raise RuntimeError("given up")


def increment(table):
    mine = {"PartitionKey": "p", "RowKey": f"done_{uuid.uuid4()}"}
    for _ in tries():
        try:
            count = table.get_entity("p", "count")
            count["N"] += 1
            table.submit_transaction([
                ("create", mine),
                ("update", count, {"mode": UpdateMode.REPLACE, "etag": count.metadata["etag"],
                                   "match_condition": MatchConditions.IfNotModified})])
            return
        except HttpResponseError as e:
            if e.status_code == 409:  # an earlier try was done
                return
            if e.status_code not in (412, 500, 503):  # 412: another client was faster
                raise
        except AzureError:  # the connection ended
            pass


def begin(table):
    """Creates it, also while the one before is being deleted, which takes its time."""
    for _ in tries():
        try:
            table.create_table()
            break
        except HttpResponseError as e:
            if e.error_code != "TableBeingDeleted":
                raise
    table.create_entity({"PartitionKey": "p", "RowKey": "count", "N": 0})


def work(name):
    # The loop above must know of each try, so the library makes one.
    table = TableClient.from_connection_string(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"], name, retry_total=0)
    for _ in range(EACH):
        increment(table)


names = ["Deleted", "Busy", "Lost", "Closed", "Timeout"]
with open("../.rowfs/faults", "a") as faults:  # at the last moment, since its second runs at once
    faults.write("fault=deleting table=Deleted for=1\n")
tables = {name: TableClient.from_connection_string(
    os.environ["AZURE_STORAGE_CONNECTION_STRING"], name) for name in names}
for table in tables.values():
    begin(table)
threads = [threading.Thread(target=work, args=[name]) for name in names for _ in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name, table in tables.items():
    print(f"{name}: {CLIENTS * EACH} increments, the count is {table.get_entity('p', 'count')['N']}")
