# SPDX-License-Identifier: MIT
"""What the daemon tells of itself: .rowfs/stats.json, .rowfs/metrics, and the hot partitions."""

import json
import os
import threading
import time

import pytest

import prometheus_text
from queue_client import Queues
from rest_client import ACCOUNT, Client, ok
from tools import get, put, sh


def stats(mnt):
    return json.loads(get(mnt / ".rowfs/stats.json"))


def metrics(mnt):
    return prometheus_text.parse(get(mnt / ".rowfs/metrics"))


class Counts:
    """The operations as .rowfs/metrics counts them, and what came since the last look.  The
    open and the reads of a look itself are counted behind it, so of the mount only other
    operations are of use."""

    def __init__(self, mnt):
        self.mnt = mnt
        self.before = self.look()

    def look(self):
        families = metrics(self.mnt)
        found = {}
        for (name, labels), n in families["rowfs_operation_duration_seconds"].samples.items():
            if name.endswith("_count"):
                of = dict(labels)
                found[of["front_end"], of["operation"]] = n
        for (_, labels), n in families["rowfs_operation_errors_total"].samples.items():
            of = dict(labels)
            found[of["front_end"], of["operation"], of["kind"]] = n
        return found

    def since(self, front_end):
        now = self.look()
        moved = {key[1:] if len(key) > 2 else key[1]: now[key] - self.before[key]
                 for key in now if key[0] == front_end and now[key] != self.before[key]}
        self.before = now
        return moved


@pytest.fixture
def both(rest_mount, rest_store):
    return rest_mount(rest_store)


@pytest.fixture
def client(both):
    with Client(both.port) as c:
        yield c


def hottest(mnt):
    return {(p["account"], p["table"], p["partition_key"]): p
            for p in stats(mnt)["hottest_partitions"]}


def per_second(entities):
    """A rate over a minute, as it is written: in hundredths, the rest cut off."""
    return entities * 100 // 60 / 100


# ---- V: statistics


def test_V5_stats_of_an_empty_store(mnt):
    told = stats(mnt)
    for name in ("version", "pid", "started", "store", "cache", "open_handles", "open_stages",
                 "operations", "hottest_partitions", "held_views", "views"):
        assert name in told, name
    assert told["pid"] == mnt.proc.pid
    assert told["partition_target"] == told["throttled"] == 0
    assert told["hottest_partitions"] == [] and "rest" not in told["operations"]


def test_V5_stats_tell_operations_by_front_end(both, client):
    ok(client.create_table("Tab"))
    for i in range(10):
        ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": str(i)}))
    assert client.get("Tab", "p", "none").status == 404
    for i in range(3):
        (both / ACCOUNT / f"Made{i}").mkdir()
    with pytest.raises(FileExistsError):
        (both / ACCOUNT / "Made1").mkdir()
    both.rowfs("stat", both.store)
    told = stats(both)["operations"]
    assert told["rest"]["InsertEntity"]["count"] == 10
    assert told["rest"]["InsertEntity"]["errors"] == 0
    assert told["rest"]["QueryEntity"]["count"] == told["rest"]["QueryEntity"]["errors"] == 1
    # The kernel knows that Made1 exists, and does not ask.
    assert told["mount"]["mkdir"]["count"] in (3, 4)
    assert told["command"] == {"stat": told["command"]["stat"]}
    for front_end in told.values():
        for figures in front_end.values():
            assert figures["count"] > 0 and figures["failed"] == 0
            assert figures["p50_us"] <= figures["p99_us"] <= figures["max_us"]
            assert figures["mean_us"] <= figures["max_us"]


def test_V5_stats_tell_open_handles(mnt, part):
    def wait_for(n):
        end = time.monotonic() + 60  # a close is told a moment behind it
        while (stats(mnt)["open_handles"] != n
               or b"\nrowfs_open_handles %d\n" % n not in get(mnt / ".rowfs/metrics")):
            assert time.monotonic() < end
            time.sleep(0.05)  # what asked is closed, too
    wait_for(0)
    with open(part / "r.json", "w") as f, open(part / "tmp", "w"):
        wait_for(2)
        f.write('{"a":1}')
    wait_for(0)


def test_V5_stats_tell_open_stages(mnt, part):
    assert stats(mnt)["open_stages"] == 0
    with open(part / "r.json", "w") as f:
        f.write('{"a":')
        f.flush()
        assert stats(mnt)["open_stages"] == 1
        f.write("1}")
    # The last of a close comes a moment behind it.
    while stats(mnt)["open_stages"]:
        pass


def test_V5_stats_tell_of_queues(rest_mount, rest_store):
    m = rest_mount(rest_store)
    assert stats(m)["queues"] == {"count": 0, "messages": 0}
    queues = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    for name in ("jobs", "more"):
        assert queues.ask("PUT", f"/{name}").status == 201
    assert queues.put("jobs", "hidden", visibilitytimeout=3600).status == 201
    assert stats(m)["queues"] == {"count": 2, "messages": 1}
    begun = time.monotonic()
    assert queues.put("more", "seen").status == 201
    end = begun + 60
    while (got := stats(m)["queues"])["waiting_seconds"] < 1:
        assert time.monotonic() < end
    assert got == {"count": 2, "messages": 2, "waiting_seconds": 1}
    assert time.monotonic() >= begun + 1
    families = metrics(m)
    assert families["rowfs_queues"].get() == families["rowfs_queue_messages"].get() == 2
    assert families["rowfs_queue_waiting_seconds"].get() >= 1
    [taken] = queues.get("more")
    assert stats(m)["queues"] == {"count": 2, "messages": 2}
    assert queues.delete("more", taken).status == 204
    assert stats(m)["queues"] == {"count": 2, "messages": 1}
    assert metrics(m)["rowfs_queue_waiting_seconds"].get() == 0


def cached(mnt):
    """The bytes of each cache; the metrics have the same caches."""
    told = stats(mnt)
    caches = told["memory"]["caches"]
    assert {dict(labels)["cache"] for _, labels in metrics(mnt)["rowfs_cache_bytes"].samples} == caches.keys()
    assert told["cache"]["bytes"] == caches["rows"]
    assert sum(caches.values()) < told["memory"]["bytes"]
    return caches


CORS = ("<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.example</AllowedOrigins>"
        "<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>10</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders>"
        "<AllowedHeaders>*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>")


def test_V5_stats_tell_the_bytes_of_each_cache(both, client):
    before = cached(both)
    ok(client.create_table("Tab"))
    for i in range(100):
        ok(client.insert("Tab", {"PartitionKey": f"p{i}", "RowKey": "r", "Text": "x" * 8000}))
    for i in range(100):
        get(both / ACCOUNT / "Tab" / f"p{i}" / "r.json")
    after = cached(both)
    assert before["rows"] + 100 * 8000 < after["rows"] < 100 * 16000
    assert before["pages"] + 100 * 8000 < after["pages"]
    assert before["partition_keys"] < after["partition_keys"]
    ok(client.request("PUT", "/?restype=service&comp=properties", CORS), 202)
    ok(client.query("Tab"))
    assert after["names"] < cached(both)["names"], "the account has its properties there"


def test_V5_stats_tell_what_was_kept(mnt, part):
    assert stats(mnt)["rejected_files"] == stats(mnt)["trash_files"] == 0
    for i in range(3):
        with pytest.raises(OSError):
            put(part / f"{i}.json", "{bad")
    assert stats(mnt)["rejected_files"] == 3
    put(part / "r.json", "{}")
    (part / "r.json").unlink()
    assert stats(mnt)["trash_files"] == len(os.listdir(mnt / ".rowfs/trash")) == 1
    families = metrics(mnt)
    assert families["rowfs_rejected_files"].get() == 3
    assert families["rowfs_trash_files"].get() == 1


def test_V5_stats_tell_of_commits_and_the_log(mnt, part):
    before = stats(mnt)["store"]
    for i in range(20):
        put(part / f"{i}.json", '{"n":%d}' % i)
    now = stats(mnt)["store"]
    assert now["change_sets"] - before["change_sets"] >= 20
    assert now["commits"] - before["commits"] <= now["change_sets"] - before["change_sets"]
    assert now["changes"] >= now["change_sets"]
    sizes = now["change_sets_per_commit"]
    assert list(sizes) == ["1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127", "128+"]
    assert sum(sizes.values()) <= now["commits"]
    least = sum(n * int(size.split("-")[0].rstrip("+")) for size, n in sizes.items())
    assert least <= now["change_sets"]
    assert 0 < now["wal_bytes"] <= now["bytes"]


def test_V5_writers_at_once_share_commits(both, client):
    """With REST every change waits for the disk, and those that come meanwhile go together."""
    ok(client.create_table("Tab"))

    def work(k):
        with client.clone() as mine:
            for i in range(25):
                ok(mine.insert("Tab", {"PartitionKey": f"p{k}", "RowKey": str(i)}))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    store = stats(both)["store"]
    assert store["change_sets"] >= 200
    n = metrics(both)["rowfs_store_commit_change_sets"]
    assert n.get("_sum") >= 200 and n.get("_count") <= store["commits"] + 1


def test_V5_stats_are_json_whatever_the_keys(both, client):
    keys = ['say "hi"', "", "tab.json", "naïve 🦆", "%", "a'b", "<&>", "x" * 512]
    ok(client.create_table("Tab"))
    for key in keys:
        ok(client.insert("Tab", {"PartitionKey": key, "RowKey": "r"}))
    assert set(hottest(both)) == {(ACCOUNT, "Tab", key) for key in keys}
    family = metrics(both)["rowfs_partition_entities_per_second"]
    assert {dict(labels)["partition_key"] for _, labels in family.samples} == set(keys)
    sh("jq -e '.hottest_partitions | length == 8' .rowfs/stats.json", cwd=both.path)


def test_V5_a_commit_that_has_to_look_for_its_row_counts_once(mnt, part):
    def changed():
        family = metrics(mnt)["rowfs_partition_entities_per_second"]
        return sum(round(value * 60) for (_, labels), value in family.samples.items()
                   if ("kind", "changed") in labels)
    put(part / "r.json", '{"N":1}')
    counts = []
    for was, now in (("r", None), ("r", "s")):
        before = changed()
        fd = os.open(part / f"{was}.json", os.O_RDWR)
        os.pwrite(fd, b'{"N":2}', 0)
        os.fsync(fd)
        if now is not None:
            os.rename(part / f"{was}.json", part / f"{now}.json")
        os.pwrite(fd, b'{"N":3}', 0)
        os.close(fd)
        counts.append(changed() - before)
    assert get(part / "s.json") == b'{"N":3}'
    assert counts == [2, 3]  # each commit, and the rename


def test_V5_snapshots_are_told(mnt, part):
    room = mnt / ".rowfs/snapshots"
    name = 'ni"gh\\t\nly'
    (room / name).mkdir()
    view, = [v for v in stats(mnt)["views"] if v["kind"] == "snapshot"]
    assert view["name"] == name and view["age_seconds"] >= 0
    log = view["log_bytes"]
    for i in range(50):
        put(part / f"{i}.json", json.dumps({"text": "x" * 4000}))
    view, = [v for v in stats(mnt)["views"] if v["kind"] == "snapshot"]
    assert view["log_bytes"] > log
    assert metrics(mnt)["rowfs_snapshot_log_bytes"].get(snapshot=name) >= view["log_bytes"]
    (room / name).rmdir()
    assert stats(mnt)["views"] == [] and stats(mnt)["held_views"] == 0


# ---- V: metrics


def test_V6_metrics_are_prometheus_text(both, client):
    ok(client.create_table("Tab"))
    for i in range(5):
        ok(client.upsert("Tab", 'quo"te', str(i), {"n": i}))
        get(both / ACCOUNT / "Tab" / 'quo"te' / f"{i}.json")
    families = metrics(both)
    assert families["rowfs_operation_duration_seconds"].type == "histogram"
    assert families["rowfs_operation_errors_total"].type == "counter"
    assert families["rowfs_store_bytes"].type == "gauge"
    assert families["rowfs_build_info"].samples
    for name in families:
        assert name.startswith("rowfs_")
    bounds = {dict(labels)["le"] for (name, labels) in
              families["rowfs_operation_duration_seconds"].samples if name.endswith("_bucket")}
    assert len(bounds) == 21 and {"1.6e-05", "8.388608", "+Inf"} <= bounds


def test_V6_every_series_is_there_from_the_start(both, client):
    series = {key for f in metrics(both).values() for key in f.samples}
    ok(client.create_table("Tab"))
    ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": "r"}))
    (both / ACCOUNT / "Tab" / "q").mkdir()
    both.rowfs("stat", both.store)
    new = {key for f in metrics(both).values() for key in f.samples} - series
    assert {name for name, _ in new} <= {"rowfs_partition_entities_per_second"}


@pytest.mark.parametrize("text", [
    "a 1",  # no line feed
    "# TYPE a gauge\n# HELP a x\na{b=\"c\"d=\"e\"} 1\n",
    "# TYPE a gauge\n# HELP a x\na{b=\"c\\q\"} 1\n",
    "# TYPE a gauge\n# HELP a x\na{b=\"c\",b=\"d\"} 1\n",
    "# TYPE a gauge\n# HELP a x\na one\n",
    "# TYPE a gauge\n# HELP a x\na 1\na 2\n",
    "# TYPE a gauge\n# HELP a x\na 1\n# TYPE b gauge\n# HELP b x\nb 1\na{c=\"d\"} 1\n",
    "# HELP a x\na 1\n# TYPE a gauge\n",
    "# TYPE a gauge\n# TYPE a gauge\n# HELP a x\n",
    "# TYPE a counter\n# HELP a x\na 1\n",
    "# TYPE a histogram\n# HELP a x\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
    "# TYPE a histogram\n# HELP a x\na_bucket{le=\"1\"} 3\na_bucket{le=\"+Inf\"} 2\n"
    "a_sum 1\na_count 2\n",
    "# TYPE a histogram\n# HELP a x\na_bucket{le=\"+Inf\"} 2\na_sum 1\na_count 3\n",
    "# TYPE a histogram\n# HELP a x\na_bucket{le=\"+Inf\"} 2\na_count 2\n",
])
def test_V6_the_parser_takes_nothing_else(text):
    with pytest.raises(AssertionError):
        prometheus_text.parse(text)


def test_V7_counters_of_rest_move_by_what_was_done(both, client):
    ok(client.create_table("Tab"))
    row = {"PartitionKey": "p", "RowKey": "r"}
    counts = Counts(both)
    ok(client.insert("Tab", row))
    for _ in range(10):
        ok(client.get("Tab", "p", "r"))
    ok(client.query("Tab"))
    ok(client.upsert("Tab", "p", "r", {"a": 1}))
    ok(client.upsert_merge("Tab", "p", "r", {"a": 1}))
    ok(client.replace("Tab", "p", "r", {"a": 2}))
    ok(client.merge("Tab", "p", "r", {"a": 3}))
    ok(client.tables())
    ok(client.delete("Tab", "p", "r"))
    assert counts.since("rest") == {
        "InsertEntity": 1, "QueryEntity": 10, "QueryEntities": 1, "InsertOrReplaceEntity": 1,
        "InsertOrMergeEntity": 1, "UpdateEntity": 1, "MergeEntity": 1, "QueryTables": 1,
        "DeleteEntity": 1}
    for _ in range(3):
        assert client.get("Tab", "p", "r").status == 404
    assert client.insert("Nowhere", row).status == 404
    with client.clone(key="bm9uZQ==") as stranger:
        assert stranger.get("Tab", "p", "r").status == 403
    assert client.request("OPTIONS", "Tab").status in (400, 403)
    assert counts.since("rest") == {
        "QueryEntity": 3, ("QueryEntity", "refused"): 3, "InsertEntity": 1,
        ("InsertEntity", "refused"): 1, "Other": 1, ("Other", "refused"): 1,
        "PreflightTableRequest": 1, ("PreflightTableRequest", "refused"): 1}


def test_V7_a_change_set_counts_as_it_ended(both, client):
    ok(client.create_table("Tab"))
    row = {"PartitionKey": "p", "RowKey": "r"}
    counts = Counts(both)
    for _ in range(2):
        ok(client.batch([("POST", "Tab", {}, row)]), 202)
    assert counts.since("rest") == {
        "EntityGroupTransaction": 2, ("EntityGroupTransaction", "refused"): 1}


def test_V7_a_query_in_a_batch_counts_as_it_ended(both, client):
    ok(client.create_table("Tab"))
    ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": "r"}))
    counts = Counts(both)
    for rk in ("r", "none"):
        path = f"Tab(PartitionKey='p',RowKey='{rk}')"
        ok(client.batch([("GET", path, {}, None)], change_set=False), 202)
    assert counts.since("rest") == {
        "EntityGroupTransaction": 2, ("EntityGroupTransaction", "refused"): 1}


def test_V7_counts_and_forms_hold_while_much_goes_on(both, client):
    ok(client.create_table("Tab"))
    tab, workers, rounds = both / ACCOUNT / "Tab", 4, 60
    counts = Counts(both)

    def work(k):
        (tab / f"m{k}").mkdir()
        with client.clone() as mine:
            for i in range(rounds):
                ok(mine.upsert("Tab", f'r"{k}\U00010000', str(i), {"n": i}))
                put(tab / f"m{k}/{i}.json", "{}")
                if i % 3 == 0:
                    (tab / f"m{k}/{i}.json").unlink()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(workers)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        for front_end in stats(both)["operations"].values():
            for figures in front_end.values():
                assert figures["failed"] <= figures["errors"] <= figures["count"]
                assert figures["mean_us"] <= figures["max_us"]
        metrics(both)
    for t in threads:
        t.join()
    assert counts.since("rest") == {"InsertOrReplaceEntity": workers * rounds}
    changed = {key[2]: p["changed_per_second"] for key, p in hottest(both).items()}
    assert changed == {
        **{f'r"{k}\U00010000': per_second(rounds) for k in range(workers)},
        **{f"m{k}": per_second(rounds + rounds // 3) for k in range(workers)}}


def test_V7_large_bodies_are_counted_once(both, client):
    """Their heads are judged before they are read."""
    ok(client.create_table("Tab"))
    big = {"PartitionKey": "p", "RowKey": "r", **{f"P{i}": "x" * 30000 for i in range(10)}}
    counts = Counts(both)
    ok(client.insert("Tab", big))
    with client.clone(key="bm9uZQ==") as stranger:
        assert stranger.insert("Tab", big).status == 403
    assert counts.since("rest") == {"InsertEntity": 1, "Other": 1, ("Other", "refused"): 1}


def test_V7_counters_of_the_mount_move_by_what_was_done(mnt, part):
    counts = Counts(mnt)
    for i in range(10):
        (part / f".d{i}").mkdir()
    for i in range(5):
        put(part / f"{i}.json", "{}")
    for i in range(4):
        os.rename(part / f"{i}.json", part / f"n{i}.json")
    for i in range(3):
        (part / f"n{i}.json").unlink()
    for i in range(2):
        (part / f".d{i}").rmdir()
    fd = os.open(part / "4.json", os.O_RDONLY)
    for _ in range(6):
        os.fsync(fd)
    os.close(fd)
    with pytest.raises(OSError):
        part.parent.rmdir()
    moved = counts.since("mount")
    assert {name: moved.get(name, 0) for name in
            ("mkdir", "create", "rename", "unlink", "rmdir", ("rmdir", "refused"), "fsync")} == {
        "mkdir": 10, "create": 5, "rename": 4, "unlink": 3, "rmdir": 3, ("rmdir", "refused"): 1,
        "fsync": 6}
    assert not any(name[1] == "failed" for name in moved if isinstance(name, tuple))


def test_V7_opens_count_and_are_no_errors_when_rows_are_overwritten(mnt, part):
    put(part / "r.json", "{}")
    counts = Counts(mnt)
    for i in range(10):
        get(part / "r.json")
    assert counts.since("mount")["open"] == 10 + 1  # one was the look's own
    for i in range(10):
        put(part / "r.json", '{"n":%d}' % i)
    moved = counts.since("mount")
    assert moved["open"] >= 10 and ("open", "refused") not in moved


def test_V7_commands_are_counted_where_they_are_done(mnt, part):
    counts = Counts(mnt)
    mnt.rowfs("stat", mnt.store)
    mnt.rowfs("stat", mnt.store, "--json")
    mnt.rowfs("export", mnt.store, "acct1/None", check=False)
    assert counts.since("command") == {"stat": 2, "export": 1, ("export", "failed"): 1}


def test_V7_a_refused_write_is_counted(mnt, part):
    counts = Counts(mnt)
    with pytest.raises(OSError):
        put(part / "r.json", "{bad")
    moved = counts.since("mount")
    assert moved[("write", "refused")] == 1


# ---- H: heat


def test_H1_both_front_ends_heat_a_partition(both, client):
    ok(client.create_table("Tab"))
    tab = both / ACCOUNT / "Tab"
    for i in range(30):
        ok(client.insert("Tab", {"PartitionKey": "rest", "RowKey": str(i)}))
    for i in range(12):
        ok(client.get("Tab", "rest", str(i)))
    (tab / "files").mkdir()
    for i in range(20):
        put(tab / "files" / f"{i}.json", "{}")
    for i in range(6):
        get(tab / "files" / f"{i}.json")
    for i in range(3):
        (tab / "files" / f"{i}.json").unlink()
    os.rename(tab / "files" / "9.json", tab / "files" / "10.json")
    ok(client.query("Tab", filter="PartitionKey eq 'files'"))
    told = stats(both)["hottest_partitions"]
    assert [p["partition_key"] for p in told] == ["files", "rest"]
    files, rest = told
    assert rest == {"account": ACCOUNT, "table": "Tab", "partition_key": "rest",
                    "entities_per_second": per_second(42), "changed_per_second": per_second(30),
                    "read_per_second": per_second(12)}
    assert files["changed_per_second"] == per_second(24)
    assert files["read_per_second"] == per_second(6 + 16)


def test_H1_change_sets_and_imports_count_each_entity(both, client, rowfs):
    ok(client.create_table("Tab"))
    lines = "".join(json.dumps({"PartitionKey": f"p{i % 2}", "RowKey": str(i)}) + "\n"
                    for i in range(200))
    rowfs("import", both.store, f"{ACCOUNT}/Tab", input=lines)
    hot = hottest(both)
    assert len(hot) == 2
    for p in hot.values():
        assert p["changed_per_second"] == per_second(100) and p["read_per_second"] == 0


def test_H1_a_listing_and_a_check_heat_nothing(both, client, rowfs):
    ok(client.create_table("Tab"))
    ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": "r"}))
    sh("ls -lR . && find . -name '*.json' && stat Tab/p/r.json", cwd=both / ACCOUNT)
    rowfs("check", both.store)
    rowfs("stat", both.store)
    p, = hottest(both).values()
    assert p["read_per_second"] == 0 and p["changed_per_second"] == per_second(1)


def test_H1_a_renamed_partition_is_hot_under_its_new_key(mnt, table):
    (table / "old").mkdir()
    put(table / "old/r.json", "{}")
    for _ in range(6):
        get(table / "old/r.json")
    os.rename(table / "old", table / "new")
    for _ in range(12):
        get(table / "new/r.json")
    assert hottest(mnt)["acct1", "Blogs", "new"]["read_per_second"] == per_second(12)


def test_H1_rows_read_through_a_query_or_a_stream_count(mnt, part):
    for i in range(30):
        put(part / f"{i}.json", "{}")
    mnt.rowfs("export", mnt.store, "acct1/Blogs")
    assert hottest(mnt)["acct1", "Blogs", "Channel_19"]["read_per_second"] == per_second(30)


def test_H1_only_the_hottest_are_listed(both, client):
    ok(client.create_table("Tab"))
    for k in range(25):
        for i in range(2 if k == 7 else 1):
            ok(client.insert("Tab", {"PartitionKey": f"p{k}", "RowKey": str(i)}))
    told = stats(both)["hottest_partitions"]
    assert len(told) == 20 and told[0]["partition_key"] == "p7"
    assert told == sorted(told, key=lambda p: -p["entities_per_second"])


def test_H1_a_table_that_is_gone_is_not_listed(both, client):
    ok(client.create_table("Tab"))
    ok(client.insert("Tab", {"PartitionKey": "p", "RowKey": "r"}))
    ok(client.delete_table("Tab"))
    assert stats(both)["hottest_partitions"] == []


def test_H1_a_table_that_is_gone_hides_nobody(both, client):
    """Its partitions were hotter than all others, and more than are listed."""
    ok(client.create_table("Gone"))
    ok(client.create_table("Here"))
    for k in range(21):
        ok(client.batch([("POST", "Gone", {}, {"PartitionKey": str(k), "RowKey": str(i)})
                         for i in range(2)]))
    ok(client.insert("Here", {"PartitionKey": "p", "RowKey": "r"}))
    assert len(hottest(both)) == 20
    ok(client.delete_table("Gone"))
    assert list(hottest(both)) == [(ACCOUNT, "Here", "p")]


def test_H1_stat_shows_the_hottest_where_the_store_is_served(mnt, part, rowfs):
    put(part / "r.json", "{}")
    told = json.loads(rowfs("stat", mnt.store, "--json").stdout)
    p, = told["hottest_partitions"]
    assert (p["account"], p["table"], p["partition_key"]) == ("acct1", "Blogs", "Channel_19")
    text = rowfs("stat", mnt.store).stdout
    assert "hottest partitions" in text and text.rstrip().endswith("acct1/Blogs/Channel_19")
    mnt.umount()
    assert json.loads(rowfs("stat", mnt.store, "--json").stdout)["hottest_partitions"] == []
    assert "hottest" not in rowfs("stat", mnt.store).stdout
