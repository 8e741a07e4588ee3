# SPDX-License-Identifier: MIT
"""The alert rules and the dashboard of examples/operations name metrics and labels that exist."""

import json
import pathlib
import re

import pytest

import prometheus_text
from rest_client import Client, ok
from tools import get

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/operations"
# Prometheus adds these itself.
TARGET_LABELS = {"instance", "job", "__name__"}
NAME = re.compile(r"rowfs_\w+")


def alerts():
    return re.findall(r"^ *expr: (.+)$", (EXAMPLES / "alerts.yml").read_text(), re.M)


def panels():
    board = json.loads((EXAMPLES / "dashboard.json").read_text())
    return [t["expr"] for p in board["panels"] for t in p["targets"]]


def legends():
    board = json.loads((EXAMPLES / "dashboard.json").read_text())
    return [(t["expr"], set(re.findall(r"{{ *(\w+) *}}", t["legendFormat"])))
            for p in board["panels"] for t in p["targets"]]


@pytest.fixture
def shown(rest_mount, rest_store):
    """The labels of each sample's name, with a row and a snapshot in the store."""
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Tab"))
        ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": "r"}))
    (m / ".rowfs/snapshots/one").mkdir()
    labels = {}
    for family in prometheus_text.parse(get(m / ".rowfs/metrics")).values():
        for name, of in family.samples:
            labels.setdefault(name, set()).update(dict(of))
    (m / ".rowfs/snapshots/one").rmdir()
    return labels


def labels_of(expr):
    """Those in braces before an operator, and those of by (...)."""
    found = set(re.findall(r"[{,] *(\w+) *(?:=~|!~|!=|=)", expr))
    for words in re.findall(r"\bby \(([^)]*)\)", expr):
        found |= set(words.replace(" ", "").split(","))
    return found


def wrong(expr, used, shown):
    """The names and labels of the expression that the server does not show."""
    names = set(NAME.findall(expr))
    known = set().union(TARGET_LABELS, *(shown.get(n, set()) for n in names))
    return {n for n in names if n not in shown} | (used - known)


def test_AD5_every_alert_names_metrics_that_exist(shown):
    assert len(alerts()) >= 7
    assert not {e: w for e in alerts() if (w := wrong(e, labels_of(e), shown))}


def test_AD5_every_panel_names_metrics_that_exist(shown):
    assert len(panels()) >= 10
    assert not {e: w for e in panels() if (w := wrong(e, labels_of(e), shown))}
    assert not {e: w for e, used in legends() if (w := wrong(e, used, shown))}


@pytest.mark.parametrize("expr, what", (
    ("rowfs_store_byte > 1", {"rowfs_store_byte"}),
    ("rate(rowfs_operation_errors_total{kin=\"failed\"}[5m])", {"kin"}),
    ("sum by (front_end, operations) (rowfs_operation_duration_seconds_bucket)", {"operations"}),
    ("sum by (front_end, le) (rowfs_operation_duration_seconds_bucket)", set())))
def test_AD5_a_wrong_name_is_found(shown, expr, what):
    assert wrong(expr, labels_of(expr), shown) == what
