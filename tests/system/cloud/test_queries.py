# SPDX-License-Identifier: MIT
""".query of a mount of an account elsewhere: the service evaluates the filter, and the mount checks each row again."""

import os
import re
import urllib.parse

import pytest
from rest_client import ok
from tools import get, put, sh

from test_client import PROGRAM
from test_transfer import lines
from there import azurite, proxied, second, there, there_with  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")
PARTITIONS, ROWS = 3, 1500


def numbers(n, partitions=PARTITIONS):
    """Row i has N = i, in the order of the keys."""
    each = n // partitions
    return [{"PartitionKey": f"p{i // each}", "RowKey": f"{i:04}", "N": i, "S": f"s{i % 7}", "Pad": "x" * 60}
            for i in range(n)]


@pytest.fixture
def posts(second):  # noqa: F811
    """A mount whose answers stay good, of a table with ROWS rows; its names are known."""
    second.account("import", "Posts", input=lines(numbers(ROWS)))
    second.posts = second.mounted("cache=3600") / "Posts"
    os.listdir(second.posts.parent)
    return second


FILTER = "N ge 10 and N lt 14"
COSTS = [
    # what, the command below .query, its requests, the same command's at once again
    ("count", f"cat '{FILTER}.count'", 1, 1),
    ("count of two pages", "cat 'N ge 100.count'", 2, 2),
    ("lines", f"cat '{FILTER}.ndjson'", 1, 0),
    ("the first rows as lines", "cat 'filter=N ge 3&top=5.ndjson'", 1, 0),
    ("ls", f"ls '{FILTER}'", 1, 0),
    ("ls -R of the first rows", "ls -lR 'filter=N ge 3&top=5'", 1, 0),
    ("ls -lR", f"ls -lR '{FILTER}'", 1, 0),
    ("all rows", f"cat '{FILTER}'/*/*", 1, 0),
    ("a filter of keys", "cat \"PartitionKey eq 'p0' and RowKey lt '0005' and N gt 1.ndjson\"", 1, 0),
    ("a list of rows", "cat \"PartitionKey eq 'p0' and RowKey eq '0001' or PartitionKey eq 'p1' and RowKey eq '0700'.ndjson\"", 1, 0),
]


@pytest.mark.parametrize("command, first, again", [pytest.param(*c[1:], id=c[0]) for c in COSTS])
def test_a_query_costs_a_request_for_each_page_of_rows_that_match(posts, command, first, again):
    said = []

    def run():
        said.append(sh(command, cwd=posts.posts / ".query").stdout)
    assert posts.cost(run) == first
    assert posts.cost(run) == again
    assert said[0] == said[1] != ""


def test_ls_of_the_partitions_of_two_pages_costs_two_requests(posts):
    """One that takes long goes on behind the last partition; a later one may read the end of that partition."""
    def ls():
        assert sh("ls 'N ge 100'", cwd=posts.posts / ".query").stdout.split() == ["p0", "p1", "p2"]
    assert posts.cost(ls) == 2
    assert sum(posts.cost(ls) for _ in range(3)) <= 1


def test_a_query_asks_only_for_what_matches(second, proxied):  # noqa: F811
    second.account("import", "Posts", input=lines(numbers(ROWS)))
    query = second.mounted("cache=3600") / "Posts/.query"
    asked, before = [], proxied.bytes
    proxied.rewrite = lambda path: asked.append(urllib.parse.unquote(path)) or path
    assert get(query / f"{FILTER}.count") == b"4\n"
    assert [a for a in asked if "$select=PartitionKey,RowKey,Timestamp,N" in a and f"$filter=({FILTER})" in a]
    assert len(os.listdir(query / "filter=N ge 3&top=5/p0")) == 5
    assert "$top=5" in asked[-1]
    assert proxied.bytes - before < 10_000  # 9 rows; the table has 200 KB


def without_filter(path):
    return re.sub(r"\$filter=[^&]*N%20[^&]*&?", "", path)


@pytest.fixture
def unable(second, proxied):  # noqa: F811
    """A directory .query, whose service evaluates no filter."""
    second.account("import", "Posts", input=lines(numbers(ROWS)))
    return second.mounted("cache=3600") / "Posts/.query"


def is_evaluated_here(query):
    assert get(query / f"{FILTER}.count") == b"4\n"
    assert os.listdir(query / FILTER) == ["p0"]
    assert sorted(os.listdir(query / FILTER / "p0")) == [f"{n:04}.json" for n in range(10, 14)]
    assert len(get(query / f"{FILTER}.ndjson").splitlines()) == 4
    assert len(get(query / "N ge 100.ndjson").splitlines()) == ROWS - 100


def test_a_filter_that_the_service_ignores_is_evaluated_here(unable, proxied):  # noqa: F811
    """Each of its answers begins with the first row of the table, and is no end of a page."""
    changed = []
    proxied.rewrite = lambda path: (changed.append(path != without_filter(path)), without_filter(path))[1]
    before = proxied.requests
    is_evaluated_here(unable)
    assert any(changed) and proxied.requests - before < 60


@pytest.mark.parametrize("code", ["InvalidInput", "OutOfRangeInput", "InvalidUri", "SomethingElse"])
def test_a_filter_that_the_service_refuses_is_evaluated_here(second, unable, proxied, code):  # noqa: F811
    proxied.cut, proxied.cuts, proxied.fault, proxied.code = "N%20", 1000, "refuse", code
    is_evaluated_here(unable)
    assert proxied.cuts < 1000
    assert "too complex" in second.mount.log()


def test_a_query_shows_at_once_what_this_mount_changed(posts):
    query, part = posts.posts / ".query", posts.posts / "p0"
    rows = query / FILTER / "p0"
    assert sorted(os.listdir(rows)) == [f"{n:04}.json" for n in range(10, 14)]
    (part / "0010.json").unlink()
    put(part / "0011.json", '{"N":99}')
    put(part / "new.json", '{"N":12}')
    assert sorted(os.listdir(rows)) == ["0012.json", "0013.json", "new.json"]
    assert get(query / f"{FILTER}.count") == b"3\n"
    put(part / ".batch", lines([{"merge": {"RowKey": "0020", "N": 11}}, {"delete": {"RowKey": "0012"}}]))
    assert sorted(os.listdir(rows)) == ["0013.json", "0020.json", "new.json"]


def test_a_query_shows_what_others_changed_once_the_answer_is_old(there):  # noqa: F811
    ok(there.client.create_table("Posts"))
    ok(there.client.insert("Posts", {"PartitionKey": "p", "RowKey": "a", "N": 1}))
    query = there.mounted("cache=0") / "Posts/.query"
    assert os.listdir(query / "N ge 1/p") == ["a.json"]
    ok(there.client.insert("Posts", {"PartitionKey": "p", "RowKey": "b", "N": 2}))
    ok(there.client.delete("Posts", "p", "a"))
    assert os.listdir(query / "N ge 1/p") == ["b.json"]
    assert get(query / "N ge 1/p/b.json") == b'{"N":2}\n'
    assert get(query / "N ge 1.count") == b"1\n"


FILTERS = ["N ge 100 and N lt 1400", "N lt 3 or N ge 1490", "not (N ge 20)", "S eq 's3' and N gt 1000", "PartitionKey ge 'p1' and N lt 600",
           "RowKey lt '0003'", "PartitionKey eq 'p2' and S ne 's0' and RowKey ge '1400'", "PartitionKey gt 'p0' and RowKey eq '0700'",
           "S eq 'it''s'", "L eq 5000000000L"]


def test_rows_of_a_query_are_those_of_a_store(there, rowfs, mount, work):  # noqa: F811
    """The same table in a store of this machine; pages end within partitions and behind them."""
    rows = [*numbers(ROWS), {"PartitionKey": "q", "RowKey": "it's", "S": "it's"},
            {"PartitionKey": "q", "RowKey": "big", "L@odata.type": "Edm.Int64", "L": "5000000000"}]
    store = work / "here.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, "devstoreaccount1")
    there.account("import", "Posts", input=lines(rows))
    rowfs("import", store, "devstoreaccount1/Posts", input=lines(rows))
    here, far = mount(store) / "devstoreaccount1/Posts/.query", there.mounted("cache=3600") / "Posts/.query"
    for text in FILTERS:
        for options in (text, f"filter={text}&top=7"):
            keys = [re.sub(r'"Timestamp[^,]*,[^,]*,', "", side) for side in
                    ((q / f"{options}.ndjson").read_text() for q in (here, far))]
            assert keys[0] == keys[1], options
            assert get(here / f"{options}.count") == get(far / f"{options}.count"), options
            assert tree(here / options) == tree(far / options), options


def tree(directory):
    return {p: sorted(os.listdir(directory / p)) for p in os.listdir(directory)}
