#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A list of tasks with azure-data-tables."""

import datetime
import os

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableServiceClient, TableTransactionError

service = TableServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
tasks = service.create_table("Tasks")


def task(partition, row, **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


# One row, then three in one transaction.
due = datetime.datetime(2026, 12, 1, 10, tzinfo=datetime.timezone.utc)
tasks.create_entity(task("home", "1", Text="Buy tea", Priority=2, Due=due))
tasks.submit_transaction([
    ("create", task("work", "1", Text="Write the report", Priority=1)),
    ("create", task("work", "2", Text="Call Smith & Sons", Priority=3)),
    ("create", task("work", "3", Text="Learn 日本語", Priority=2)),
])

print("What is urgent:")
for t in tasks.query_entities("Priority le @limit", parameters={"limit": 2}):
    print(f"  {t['PartitionKey']}/{t['RowKey']}: {t['Text']}")

# The etag lets a change through only if nobody else made one meanwhile.
tea = tasks.get_entity("home", "1")
same = {"etag": tea.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
tasks.update_entity({**tea, "Done": True}, mode="merge", **same)
try:
    tasks.update_entity({**tea, "Priority": 5}, mode="merge", **same)
except ResourceModifiedError as e:
    print("A change of what was read before:", e.status_code, e.error_code.value)

# A transaction is done as a whole or not at all.
try:
    tasks.submit_transaction([("delete", task("work", "2")), ("create", task("work", "1"))])
except TableTransactionError as e:
    print("A row that exists already:", e.status_code, e.error_code)

count = sum(len(list(page)) for page in tasks.list_entities(results_per_page=3).by_page())
print(count, "tasks in all")
