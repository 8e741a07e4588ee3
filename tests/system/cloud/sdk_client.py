# SPDX-License-Identifier: MIT
"""A table as a program with Azure's library for Python sees it, with the library's own retries.

Failures are OSError, as those of a mount: ESTALE for a condition that failed, EIO for an unknown outcome.
"""

import contextlib
import errno

import pytest


def library():
    """The library's modules, or the test is skipped."""
    return pytest.importorskip("azure.data.tables", reason="needs Debian's python3-azure")


@contextlib.contextmanager
def as_os_errors():
    from azure.core.exceptions import AzureError, ResourceModifiedError
    try:
        yield
    except ResourceModifiedError as e:
        raise OSError(errno.ESTALE, "changed meanwhile") from e
    except AzureError as e:
        raise OSError(errno.EIO, str(e)) from e


class SdkTable:
    """sdk.row("r1") -> its properties and its ETag, or (None, None)."""

    def __init__(self, connection, names, table="Posts", pk="p"):
        self.tables, self.names, self.pk = library(), names, pk
        self.client = self.tables.TableClient.from_connection_string(
            connection, table, retry_total=5, retry_backoff_factor=0.01, use_env_settings=False)

    def row(self, key):
        from azure.core.exceptions import ResourceNotFoundError
        with as_os_errors():
            try:
                found = self.client.get_entity(self.pk, key)
            except ResourceNotFoundError:
                return None, None
        return {k: v for k, v in found.items() if k in self.names}, found.metadata["etag"]

    def rows(self):
        """All rows by their keys."""
        with as_os_errors():
            found = list(self.client.query_entities("PartitionKey eq @pk", parameters={"pk": self.pk}))
        return {e["RowKey"]: {k: v for k, v in e.items() if k in self.names} for e in found}

    def put(self, key, value):
        with as_os_errors():
            self.client.upsert_entity({"PartitionKey": self.pk, "RowKey": key, **value},
                                      mode=self.tables.UpdateMode.REPLACE)

    def replace(self, key, value, etag):
        from azure.core import MatchConditions
        with as_os_errors():
            self.client.update_entity({"PartitionKey": self.pk, "RowKey": key, **value},
                                      mode=self.tables.UpdateMode.REPLACE, etag=etag,
                                      match_condition=MatchConditions.IfNotModified)

    def remove(self, key):
        with as_os_errors():
            self.client.delete_entity(self.pk, key)
