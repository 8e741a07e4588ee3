# SPDX-License-Identifier: MIT
"""The other writer of index-entities, with azure-data-tables: hires 20, one after the other."""

import os

from azure.core import MatchConditions
from azure.data.tables import TableClient, TableTransactionError

employees = TableClient.from_connection_string(
    os.environ["AZURE_STORAGE_CONNECTION_STRING"], "Employees")


def hire(number, name):
    """Whether it came through: not if the list was changed meanwhile."""
    index = employees.get_entity("Sales", f"lastname_{name}")
    longer = {"PartitionKey": "Sales", "RowKey": index["RowKey"],
              "EmployeeIds": f"{index['EmployeeIds']} {number}"}
    as_read = {"etag": index.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    try:
        employees.submit_transaction([
            ("create", {"PartitionKey": "Sales", "RowKey": f"empid_{number}", "LastName": name}),
            ("update", longer, {"mode": "merge", **as_read}),
        ])
    except TableTransactionError as e:
        if e.error_code != "UpdateConditionNotSatisfied":
            raise
        return False
    return True


for number in range(2000, 2020):
    while not hire(f"{number:06}", "Jones"):
        pass
