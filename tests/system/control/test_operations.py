# SPDX-License-Identifier: MIT
"""The alert rules and the dashboard of examples/operations name metrics and labels that exist.
Prometheus' own promtool reads the rules, the panels and the figures, and tries each alert."""

import json
import pathlib
import re
import subprocess

import pytest

import prometheus_text
from rest_client import Client, ok
from tools import get, need, wait_for

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
    ("rate(rowfs_operation_errors_total{kinds=\"failed\"}[5m])", {"kinds"}),
    ("sum by (front_end, operations) (rowfs_operation_duration_seconds_bucket)", {"operations"}),
    ("sum by (front_end, le) (rowfs_operation_duration_seconds_bucket)", set())))
def test_AD5_a_wrong_name_is_found(shown, expr, what):
    assert wrong(expr, labels_of(expr), shown) == what


def test_AD11_logrotate_renames_and_the_server_follows(serve, rest_store, work):
    need("logrotate")
    log, access = work / "blogs.log", work / "blogs.access"
    s = serve(rest_store, f"--log={log}", f"--access-log={access}")
    text = (EXAMPLES / "logrotate").read_text().replace("/var/log/rowfs", str(work))
    text = text.replace("create 0640 rowfs adm", "create 0640")
    text = re.sub(r"systemctl reload .*", f"kill -HUP {s.proc.pid}", text)
    (work / "conf").write_text(text)
    (work / "conf").chmod(0o600)
    with Client(s.port) as client:
        client.tables()
        wait_for(lambda: get(access).count(b"\n") == 1)
        subprocess.run(["logrotate", "-f", "-s", work / "state", work / "conf"], check=True, timeout=60)
        wait_for(lambda: b"reloaded" in get(log))
        client.tables()
        wait_for(lambda: get(access).count(b"\n") == 1)
    assert b"REST at" in get(work / "blogs.log.1") and get(work / "blogs.access.1").count(b"\n") == 1


def promtool(*args, input=None):
    need("promtool")
    done = subprocess.run(["promtool", *map(str, args)], input=input, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_AD5_promtool_reads_the_rules_and_the_panels(work):
    assert f"{len(alerts())} rules found" in promtool("check", "rules", EXAMPLES / "alerts.yml")
    rules = [{"record": f"panel:{i}", "expr": e} for i, e in enumerate(panels())]
    (work / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", work / "panels.yml")


def test_AD5_promtool_reads_the_figures(rest_mount, rest_store):
    m = rest_mount(rest_store)
    with Client(m.port) as client:
        ok(client.create_table("Tab"))
    promtool("check", "metrics", input=get(m / ".rowfs/metrics").decode())


def slow(per_minute):
    """A histogram with 1,000 operations a minute, of which so many take up to 2 s, the others up to 1 s."""
    base = 'rowfs_operation_duration_seconds_bucket{instance="a",operation="op",front_end="rest",le="%s"}'
    return {base % "1": f"0+{1000 - per_minute}x60", base % "2": "0+1000x60", base % "+Inf": "0+1000x60"}


# The series of a minute each that make an alert fire within the hour, and those that do not.
FIRING = {
    "RowfsDown": ({'up{job="rowfs"}': "0x60"}, {'up{job="rowfs"}': "1x60"}),
    "RowfsFails": ({'rowfs_operation_errors_total{kind="failed"}': "0+1x60"},
                   {'rowfs_operation_errors_total{kind="refused"}': "0+1x60"}),
    "RowfsSlow": (slow(11), slow(9)),
    "RowfsLogIsLarge": ({"rowfs_store_log_bytes": "2000000001x60"}, {"rowfs_store_log_bytes": "2000000000x60"}),
    "RowfsSnapshotIsOld": ({"rowfs_snapshot_age_seconds": "86401x60"}, {"rowfs_snapshot_age_seconds": "86400x60"}),
    "RowfsPartitionIsHot": ({"rowfs_partition_entities_per_second": "501x60"},
                            {"rowfs_partition_entities_per_second": "500x60"}),
    "RowfsQueueWaits": ({"rowfs_queue_waiting_seconds": "601x60"}, {"rowfs_queue_waiting_seconds": "600x60"}),
}


def test_AD5_each_alert_fires_beyond_its_limit_only(work):
    names = re.findall(r"- alert: (\w+)", (EXAMPLES / "alerts.yml").read_text())
    assert sorted(names) == sorted(FIRING)
    tests = []
    for name, cases in FIRING.items():
        for series, fires in zip(cases, (1, 0)):
            tests.append({
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "promql_expr_test": [{
                    "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)',
                    "eval_time": "50m", "exp_samples": [{"labels": "{}", "value": fires}]}]})
    (work / "tests.yml").write_text(json.dumps({
        "rule_files": [str(EXAMPLES / "alerts.yml")], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", work / "tests.yml")
